"""The hierarchical prior on intercepts, as the kernels take it: with its scale integrated out."""

from typing import NamedTuple, Self

import numpy as np

from bayesrank.inference.fits.penalty import Array
from bayesrank.priors import LEVEL_SD, POOLED_DF


class PooledPrior(NamedTuple):
    """The log-density of :func:`bayesrank.models.pooled_priors.pooled` near a point.

    Up to a constant; its precision is t I + U diag(s) U'.

    Attributes
    ----------
    value : numpy.ndarray of shape (...)
        Log-density.
    gradient : numpy.ndarray of shape (..., question)
        Its gradient.
    precision : numpy.ndarray of shape (...)
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
    def at(cls, intercept: Array, level: Array | float = 0.0, level_sd: float = LEVEL_SD) -> Self:
        """Expand a normal mean, and Student's t around it.

        Parameters
        ----------
        intercept : numpy.ndarray of shape (..., question)
            Where.
        level : numpy.ndarray of shape (...) or float, default 0
            Prior mean of the mean of the intercepts.
        level_sd : float, default 2.5
            Its prior standard deviation.

        Returns
        -------
        PooledPrior
        """
        n = intercept.shape[-1]
        mean = intercept.mean(axis=-1)
        deviation = intercept - mean[..., np.newaxis]
        freedom = POOLED_DF + n - 1.0
        squares = POOLED_DF + (deviation**2).sum(axis=-1)
        precision = freedom / squares
        above, of_mean = mean - level, level_sd**-2 / n
        slope = precision[..., np.newaxis] * deviation + of_mean * above[..., np.newaxis]
        return cls(
            value=-0.5 * (above / level_sd) ** 2 - 0.5 * freedom * np.log(squares),
            gradient=-slope,
            precision=precision,
            columns=np.stack([np.ones_like(deviation), deviation], axis=-1),
            shares=np.stack([(of_mean - precision) / n, -2.0 * precision**2 / freedom], axis=-1),
        )
