"""The hierarchical prior on intercepts, as the kernels take it: with its scale integrated out."""

from typing import NamedTuple, Self

import numpy as np

from bayesrank.inference.fits.penalty import Array
from bayesrank.priors import LEVEL_SD, POOLED_DF


class PooledPrior(NamedTuple):
    """The log-density of :func:`bayesrank.models.pooled_priors.pooled` near a point.

    Up to a constant; its precision is diag(t) + U diag(s) U'.

    Attributes
    ----------
    value : numpy.ndarray of shape (...)
        Log-density.
    gradient : numpy.ndarray of shape (..., question)
        Its gradient.
    precision : numpy.ndarray broadcastable to (..., question)
        t.
    columns : numpy.ndarray of shape (..., question, 2)
        U.
    shares : numpy.ndarray of shape (..., 2)
        s.
    """

    value: Array
    gradient: Array
    precision: Array
    columns: Array
    shares: Array

    @classmethod
    def at(
        cls,
        intercept: Array,
        level: Array | float = 0.0,
        level_sd: float = LEVEL_SD,
        counts: Array | None = None,
    ) -> Self:
        """Expand a normal mean, and Student's t around it.

        Parameters
        ----------
        intercept : numpy.ndarray of shape (..., question)
            Where.
        level : numpy.ndarray of shape (...) or float, default 0
            Prior mean of the mean of the intercepts.
        level_sd : float, default 2.5
            Its prior standard deviation.
        counts : numpy.ndarray of shape (question,), optional
            For how many questions each intercept stands; 1 by default.

        Returns
        -------
        PooledPrior
        """
        each = 1.0 if counts is None else counts
        n = intercept.shape[-1] if counts is None else counts.sum()
        mean = (each * intercept).sum(axis=-1) / n
        above, of_mean = mean - level, level_sd**-2 / n
        deviation = intercept - mean[..., np.newaxis]
        far = each * deviation
        columns = np.empty((*intercept.shape, 2))
        columns[..., 0], columns[..., 1] = each, far
        freedom = POOLED_DF + n - 1.0
        squares = POOLED_DF + (far * deviation).sum(axis=-1)
        precision = freedom / squares
        shares = np.empty((*mean.shape, 2))
        shares[..., 0] = (of_mean - precision) / n
        shares[..., 1] = precision * precision * (-2.0 / freedom)
        gradient = far * -precision[..., np.newaxis]
        gradient -= each * (of_mean * above)[..., np.newaxis]
        value = above * above * (-0.5 / level_sd**2) - 0.5 * freedom * np.log(squares)
        return cls(value, gradient, each * precision[..., np.newaxis], columns, shares)
