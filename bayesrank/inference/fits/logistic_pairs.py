r"""The likelihood of Bradley-Terry, and of Rao-Kupper with a fixed threshold.

With :math:`c = \log\kappa`, :math:`V_{ij}` the comparisons that i did not lose to j and
:math:`\tau` the number of ties,

.. math:: \ell = \sum_{ij} V_{ij} \log\sigma(\theta_i - \theta_j - c) + \tau \log(e^{2c} - 1).

Bradley-Terry is :math:`c = 0`, :math:`\tau = 0` and :math:`V = W`; Rao-Kupper has
:math:`V = W + T`.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import strongly_connected
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.log_odds import softplus
from bayesrank.inference.fits.newton import maximise, solve_zero_sum
from bayesrank.inference.fits.pairs import first_scores, paired_fit
from bayesrank.inference.fits.penalty import Array, ScorePenalty

# exp of a difference of two scores within this bound neither overflows nor underflows.
_LARGEST_SCORE = 300.0


@dataclass(frozen=True)
class LogisticPairs:
    """Penalised log-likelihood of Bradley-Terry or fixed-threshold Rao-Kupper data.

    Free coordinates: the scores.

    Attributes
    ----------
    counts : numpy.ndarray of shape (resample, system, opponent)
        V: comparisons that the system did not lose to the opponent.
    penalty : ScorePenalty
        Normal prior on the scores.
    log_kappa : float, default 0
        Log threshold; 0 is Bradley-Terry.
    n_ties : numpy.ndarray of shape (resample,), optional
        Number of ties, which enters the log-likelihood as a constant.
    """

    counts: Array
    penalty: ScorePenalty
    log_kappa: float = 0.0
    n_ties: Array | None = None

    @property
    def scale(self) -> Array:
        """Largest number of comparisons of a system, plus the prior's precision."""
        return comparisons_scale(self.counts, self.penalty.precision)

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return self.counts.shape[-1] ** 2

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(
            self,
            counts=self.counts[index],
            penalty=self.penalty.take(index),
            n_ties=None if self.n_ties is None else self.n_ties[index],
        )

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        value = log_not_lost(self.counts, point, np.full(len(point), self.log_kappa))
        if self.n_ties is None or self.log_kappa == 0.0:
            return value
        return value + self.n_ties * np.log(np.expm1(2.0 * self.log_kappa))

    def value(self, point: Array) -> Array:
        """Return the penalised objective, of shape (resample,)."""
        return self.loglik(point) - self.penalty.value(point)

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, system)."""
        return self._gradient(point, losses(self.counts, point, self.log_kappa)[0])

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, system, system)."""
        loss, likely = losses(self.counts, point, self.log_kappa)
        return self._information(loss * likely)

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, system)."""
        loss, likely = losses(self.counts, point, self.log_kappa)
        gradient = self._gradient(point, loss)
        matrix = self._information(np.multiply(loss, likely, out=likely))
        return solve_zero_sum(matrix, gradient, point.shape[-1], self.penalty.precision)

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of two outcomes at most."""
        return step.max(axis=-1) - step.min(axis=-1)

    def _gradient(self, point: Array, loss: Array) -> Array:
        return loss.sum(axis=-1) - loss.sum(axis=-2) - self.penalty.gradient(point)

    def _information(self, curvature: Array) -> Array:
        matrix = np.empty_like(curvature)
        fill_score_information(matrix, curvature, self.penalty.precision)
        return matrix


def comparisons_scale(counts: Array, precision: Array) -> Array:
    """Return the largest number of comparisons of a system, plus the prior's precision.

    Parameters
    ----------
    counts : numpy.ndarray of shape (resample, system, opponent)
        Comparisons, counted for one side or both.
    precision : numpy.ndarray of shape (resample,)
        Prior precision of the scores.

    Returns
    -------
    numpy.ndarray of shape (resample,)
    """
    return (counts.sum(axis=-1) + counts.sum(axis=-2)).max(axis=-1) + precision


def log_not_lost(counts: Array, scores: Array, log_kappa: Array) -> Array:
    """Return the sum of V log sigma(theta_i - theta_j - c), of shape (resample,).

    Parameters
    ----------
    counts : numpy.ndarray of shape (resample, system, opponent)
        V.
    scores : numpy.ndarray of shape (resample, system)
        theta.
    log_kappa : numpy.ndarray of shape (resample,)
        c, finite.

    Returns
    -------
    numpy.ndarray of shape (resample,)
    """
    behind = scores[:, None, :] - scores[:, :, None] + log_kappa[:, None, None]
    return -(counts * softplus(behind)).sum(axis=(-1, -2))


def losses(counts: Array, scores: Array, log_kappa: Array | float) -> tuple[Array, Array]:
    """Return V (1 - sigma(theta_i - theta_j - c)) and sigma for every ordered pair.

    Parameters
    ----------
    counts : numpy.ndarray of shape (resample, system, opponent)
        V.
    scores : numpy.ndarray of shape (resample, system)
        theta.
    log_kappa : numpy.ndarray of shape (resample,), or float
        c; may be infinite.

    Returns
    -------
    tuple of numpy.ndarray
        Both of shape (resample, system, opponent).
    """
    ahead = np.exp(np.minimum(np.maximum(scores, -_LARGEST_SCORE), _LARGEST_SCORE))
    behind = 1.0 / ahead
    if not isinstance(log_kappa, float):
        behind = behind * np.exp(-log_kappa)[:, None]
    elif log_kappa:
        behind *= np.exp(-log_kappa)
    # One exponential per system instead of one per pair.
    likely = ahead[:, :, None] * behind[:, None, :]
    loss = 1.0 / (1.0 + likely)
    likely *= loss
    loss *= counts
    return loss, likely


def fill_score_information(matrix: Array, curvature: Array, precision: Array) -> None:
    """Write the negative Hessian in the scores from the curvature of every ordered pair.

    Parameters
    ----------
    matrix : numpy.ndarray of shape (resample, system, system)
        Where to write.
    curvature : numpy.ndarray of shape (resample, system, opponent)
        V sigma (1 - sigma).
    precision : numpy.ndarray of shape (resample,)
        Prior precision of the scores.
    """
    both = curvature + curvature.transpose(0, 2, 1)
    np.negative(both, out=matrix)
    np.einsum("bii->bi", matrix)[...] += both.sum(axis=-1) + precision[:, None]


def fit_logistic(
    problem: LogisticPairs,
    lead: tuple[int, ...],
    start: ArrayLike | None,
    *,
    has_ties: bool = False,
) -> Fit:
    """Maximise a paired log-likelihood without free tie parameter.

    Parameters
    ----------
    problem : LogisticPairs
        The objective.
    lead : tuple of int
        Shape of the resample axes.
    start : array_like, broadcastable to (..., system), or None
        Where the scores begin.
    has_ties : bool, default False
        Whether the fit reports the fixed ``tie_strength``.

    Returns
    -------
    Fit
    """
    counts = problem.counts
    totals, against = counts.sum(axis=-1), counts.sum(axis=-2)
    first = first_scores(totals, totals + against, start, lead)
    if start is None and problem.log_kappa == 0.0:
        first *= _strength_of_log_odds(first)
    optimum = maximise(problem, first)
    scores = settle_ties(
        optimum.point, totals + problem.penalty.pull(), counts + counts.transpose(0, 2, 1)
    )
    exists = problem.penalty.precision > 0.0
    if not exists.all():
        exists = exists | strongly_connected(counts > 0.0)
    log_tie = problem.log_kappa if has_ties else None
    return paired_fit(problem, optimum, scores, lead, exists=exists, log_tie=log_tie)


def _strength_of_log_odds(log_odds: Array) -> Array:
    """Return by what to multiply the log-odds of all comparisons for Bradley-Terry scores.

    The odds of a system are those against the others, whose mean strength is further away than the
    mean of all. The share that grows with the spread is fitted to simulated data; together they
    save a step of Newton's method.
    """
    size = log_odds.shape[-1]
    spread = (log_odds**2).sum(axis=-1, keepdims=True) / size
    return (1.0 - 1.0 / size) * (1.0 + spread / 60.0)
