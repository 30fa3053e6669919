r"""Rao-Kupper by Newton's method, with the threshold fixed or estimated.

With :math:`c = \log\kappa > 0`, :math:`V = W + T` and :math:`\tau` the number of ties,

.. math:: \ell = \sum_{ij} V_{ij} \log\sigma(\theta_i - \theta_j - c) + \tau \log(e^{2c} - 1),

which is concave in the scores and c together.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import strongly_connected
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.logistic_pairs import (
    LogisticPairs,
    comparisons_scale,
    fill_score_information,
    fit_logistic,
    log_not_lost,
    losses,
)
from bayesrank.inference.fits.newton import maximise, solve_zero_sum
from bayesrank.inference.fits.pairs import first_scores, paired_fit, runs_away, tie_share
from bayesrank.inference.fits.penalty import Array, ScorePenalty, checked_precision


@dataclass(frozen=True)
class ThresholdPairs:
    """Penalised log-likelihood of Rao-Kupper data with the threshold estimated.

    Free coordinates: the scores, then log kappa. Without any tie log kappa belongs at 0, with
    nothing but ties at infinity; points there are edge points, where log kappa is held.

    Attributes
    ----------
    counts : numpy.ndarray of shape (resample, system, opponent)
        V: comparisons that the system did not lose to the opponent.
    n_ties : numpy.ndarray of shape (resample,)
        Number of ties.
    penalty : ScorePenalty
        Normal prior on the scores.
    tie_precision : float, default 0
        Precision of a half-normal prior on log kappa; 0 for a flat one.
    """

    counts: Array
    n_ties: Array
    penalty: ScorePenalty
    tie_precision: float = 0.0

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
            n_ties=self.n_ties[index],
            penalty=self.penalty.take(index),
        )

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        scores, log_kappa = point[:, :-1], point[:, -1]
        edge = _edge(log_kappa)
        inside = np.where(edge, 1.0, log_kappa)
        threshold = np.where(np.isinf(log_kappa), 0.0, log_kappa)
        ties = self.n_ties * (2.0 * inside + np.log(-np.expm1(-2.0 * inside)))
        value = log_not_lost(self.counts, scores, threshold) + np.where(edge, 0.0, ties)
        # Nothing but ties: every one of them is certain.
        return np.where(np.isinf(log_kappa), 0.0, value)

    def value(self, point: Array) -> Array:
        """Return the penalised objective, of shape (resample,)."""
        value = self.loglik(point) - self.penalty.value(point[:, :-1])
        if self.tie_precision:
            value = value - 0.5 * self.tie_precision * point[:, -1] ** 2
        return value

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p); 0 in a held log kappa."""
        return self._gradient(point, losses(self.counts, point[:, :-1], point[:, -1])[0])

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        loss, likely = losses(self.counts, point[:, :-1], point[:, -1])
        return self._information(point, loss * likely)

    def newton(self, point: Array) -> Array:
        """Return the Newton step, cut so that log kappa is at most halved."""
        loss, likely = losses(self.counts, point[:, :-1], point[:, -1])
        gradient = self._gradient(point, loss)
        matrix = self._information(point, loss * likely)
        step = solve_zero_sum(matrix, gradient, point.shape[-1] - 1, self.penalty.precision)
        half = np.where(_edge(point[:, -1]), 1.0, 0.5 * point[:, -1])
        return step * np.minimum(1.0, half / np.maximum(-step[:, -1], half))[:, None]

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of two outcomes at most."""
        spread = step[:, :-1].max(axis=-1) - step[:, :-1].min(axis=-1)
        # log(e^{2c} - 1) has |third| = 2 coth(c) |second|, and c is at most halved along the step.
        edge = _edge(point[:, -1])
        bend = np.where(edge, 0.0, 2.0 / np.tanh(0.5 * np.where(edge, 1.0, point[:, -1])))
        move = np.abs(step[:, -1])
        return np.maximum(spread + move, bend * move)

    def _gradient(self, point: Array, loss: Array) -> Array:
        scores, log_kappa = point[:, :-1], point[:, -1]
        gradient = np.empty_like(point)
        gradient[:, :-1] = loss.sum(axis=-1) - loss.sum(axis=-2) - self.penalty.gradient(scores)
        edge = _edge(log_kappa)
        inside = np.where(edge, 1.0, log_kappa)
        slope = 2.0 * self.n_ties / -np.expm1(-2.0 * inside) - loss.sum(axis=(-1, -2))
        gradient[:, -1] = np.where(edge, 0.0, slope - self.tie_precision * inside)
        return gradient

    def _information(self, point: Array, curvature: Array) -> Array:
        batch, p = point.shape
        size = p - 1
        matrix = np.empty((batch, p, p))
        fill_score_information(matrix[:, :size, :size], curvature, self.penalty.precision)
        edge = _edge(point[:, -1])
        cross = curvature.sum(axis=-2) - curvature.sum(axis=-1)
        cross[edge] = 0.0
        matrix[:, :size, size] = cross
        matrix[:, size, :size] = cross
        sinh = np.sinh(np.minimum(np.where(edge, 1.0, point[:, -1]), 300.0))
        bend = curvature.sum(axis=(-1, -2)) + self.n_ties / sinh**2 + self.tie_precision
        matrix[:, size, size] = np.where(edge, 1.0, bend)
        return matrix


def _edge(log_kappa: Array) -> NDArray[np.bool_]:
    return (log_kappa == 0.0) | np.isinf(log_kappa)


def fit_rao_kupper(
    wins: ArrayLike,
    ties: ArrayLike,
    *,
    tie_strength: float | None = None,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
    tie_precision: float = 0.0,
    start: ArrayLike | None = None,
) -> Fit:
    r"""Fit the Rao-Kupper model, P(i beats j) = pi_i / (pi_i + kappa pi_j).

    Parameters
    ----------
    wins, ties : array_like of shape (..., system, opponent)
        Win counts, and symmetric tie counts.
    tie_strength : float, optional
        The threshold kappa, at least 1; estimated when omitted.
    prior_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the zero-sum scores.
    prior_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 gives the maximum-likelihood estimate.
    tie_precision : float, default 0
        Precision of a half-normal prior on log kappa; 0 for a flat one.
    start : array_like, broadcastable to (..., system), optional
        Where the scores begin.

    Returns
    -------
    Fit
        Free coordinates: the scores, which sum to zero, then log kappa unless it is fixed.
        ``parameters["tie_strength"]``: kappa.

    Raises
    ------
    ValueError
        If `tie_strength` is below 1, or 1 although there are ties, or a precision is negative.

    References
    ----------
    .. [1] P. V. Rao and L. L. Kupper. Ties in paired-comparison experiments: a generalization of
       the Bradley-Terry model. Journal of the American Statistical Association 62 (1967).
       https://doi.org/10.1080/01621459.1967.10482901

    Examples
    --------
    >>> wins = [[0.0, 4.0], [2.0, 0.0]]
    >>> ties = [[0.0, 3.0], [3.0, 0.0]]
    >>> bool(fit_rao_kupper(wins, ties).parameters["tie_strength"] > 1.0)
    True
    """
    problem = rao_kupper_problem(
        wins,
        ties,
        tie_strength=tie_strength,
        prior_mean=prior_mean,
        prior_precision=prior_precision,
        tie_precision=tie_precision,
    )
    lead = np.broadcast_shapes(np.shape(wins), np.shape(ties))[:-2]
    if isinstance(problem, LogisticPairs):
        return fit_logistic(problem, lead, start, has_ties=True)
    return _fit_threshold(problem, lead, start)


def _fit_threshold(problem: ThresholdPairs, lead: tuple[int, ...], start: ArrayLike | None) -> Fit:
    counts = problem.counts
    totals, against = counts.sum(axis=-1), counts.sum(axis=-2)
    n_comparisons = totals.sum(axis=-1) - problem.n_ties  # V holds every tie twice
    share = tie_share(problem.n_ties, n_comparisons)
    if problem.tie_precision:
        share = np.minimum(share, 0.99)
    with np.errstate(divide="ignore"):  # nothing but ties: kappa is infinite
        log_kappa = np.log1p(share) - np.log1p(-share)
    scores = first_scores(totals, totals + against, start, lead)
    optimum = maximise(problem, np.column_stack([scores, log_kappa]))
    exists = problem.penalty.precision > 0.0
    if not exists.all():
        exists = exists | (
            strongly_connected(counts > 0.0)
            & np.isfinite(log_kappa)
            & ~runs_away(problem, optimum.point)
        )
    scores = settle_ties(
        optimum.point[:, :-1], totals + problem.penalty.pull(), counts + counts.transpose(0, 2, 1)
    )
    return paired_fit(problem, optimum, scores, lead, exists=exists, displace=_displace)


def _displace(free: Array, deviations: Array) -> Array:
    """Move log kappa in proportion, which agrees to first order and keeps kappa above 1."""
    moved = free + deviations
    log_kappa = free[..., -1]
    inside = np.where(_edge(log_kappa), 1.0, log_kappa)
    moved[..., -1] = log_kappa * np.exp(deviations[..., -1] / inside)
    return moved


def rao_kupper_problem(
    wins: ArrayLike,
    ties: ArrayLike,
    *,
    tie_strength: float | None = None,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
    tie_precision: float = 0.0,
) -> LogisticPairs | ThresholdPairs:
    """Build the objective that :func:`fit_rao_kupper` maximises; see there.

    Parameters
    ----------
    wins, ties, tie_strength, prior_mean, prior_precision, tie_precision
        As in :func:`fit_rao_kupper`.

    Returns
    -------
    LogisticPairs or ThresholdPairs
        The free coordinates are the scores, then log kappa unless `tie_strength` fixes it.
    """
    won, tied = np.broadcast_arrays(
        np.asarray(wins, dtype=np.float64), np.asarray(ties, dtype=np.float64)
    )
    n_ties = 0.5 * tied.sum(axis=(-1, -2))
    if tie_strength is not None and not 1.0 <= tie_strength < np.inf:
        raise ValueError(f"tie_strength must be finite and at least 1; got {tie_strength!r}")
    if tie_strength == 1.0 and (n_ties > 0.0).any():
        raise ValueError(
            "tie_strength must be greater than 1 when the comparisons contain ties; got 1"
        )
    checked_precision("tie_precision", tie_precision)
    size = won.shape[-1]
    penalty = ScorePenalty.broadcast(prior_mean, prior_precision, won.shape[:-2], size)
    not_lost = (won + tied).reshape(-1, size, size)
    if tie_strength is not None:
        return LogisticPairs(not_lost, penalty, float(np.log(tie_strength)), n_ties.reshape(-1))
    return ThresholdPairs(not_lost, n_ties.reshape(-1), penalty, tie_precision)
