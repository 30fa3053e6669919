r"""Davidson's likelihood: paired comparisons with an estimated tie strength.

With :math:`s_i = \sum_j (W_ij + T_ij / 2)`, :math:`N` the comparisons per pair, :math:`\tau` the
number of ties and :math:`e = \log\nu`,

.. math::

   \ell = \sum_i s_i \theta_i + \tau e
          - \sum_{i<j} N_{ij} \log\bigl(e^{\theta_i} + e^{\theta_j}
          + e^{e + (\theta_i + \theta_j)/2}\bigr).
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import strongly_connected
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.newton import maximise, solve_zero_sum
from bayesrank.inference.fits.pairs import first_scores, paired_fit, runs_away, tie_share
from bayesrank.inference.fits.penalty import Array, ScorePenalty, checked_precision

# exp of a difference of two scores within this bound neither overflows nor underflows.
_LARGEST_SCORE = 300.0


@dataclass(frozen=True)
class DavidsonPairs:
    """Penalised log-likelihood of Davidson's model.

    Free coordinates: the scores, then log nu.

    Attributes
    ----------
    totals : numpy.ndarray of shape (resample, system)
        Wins plus half the ties.
    n_pairs : numpy.ndarray of shape (resample, system, opponent)
        Comparisons per pair, symmetric with a zero diagonal.
    n_ties : numpy.ndarray of shape (resample,)
        Number of ties.
    penalty : ScorePenalty
        Normal prior on the scores.
    tie_mean, tie_precision : float
        Normal prior on log nu; precision 0 for a flat one.
    """

    totals: Array
    n_pairs: Array
    n_ties: Array
    penalty: ScorePenalty
    tie_mean: float = 0.0
    tie_precision: float = 0.0

    @property
    def scale(self) -> Array:
        """Largest number of comparisons of a system, plus the prior's precision."""
        return self.n_pairs.sum(axis=-1).max(axis=-1) + self.penalty.precision

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return self.n_pairs.shape[-1] ** 2

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(
            self,
            totals=self.totals[index],
            n_pairs=self.n_pairs[index],
            n_ties=self.n_ties[index],
            penalty=self.penalty.take(index),
        )

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        scores, log_nu = point[:, :-1], point[:, -1]
        half = 0.5 * np.abs(scores[:, :, None] - scores[:, None, :])
        # log(2 cosh(d / 2) + nu) from its largest term outwards, halved because each pair is
        # visited twice.
        sides = half + np.log1p(np.exp(-2.0 * half))
        log_total = np.logaddexp(sides, log_nu[:, None, None])
        middle = 0.5 * (scores[:, :, None] + scores[:, None, :])
        with np.errstate(invalid="ignore"):  # nothing but ties: log nu is infinite
            per_pair = 0.5 * self.n_pairs * (log_total + middle)
            ties = np.where(self.n_ties > 0.0, self.n_ties * log_nu, 0.0)
            value = (self.totals * scores).sum(axis=-1) + ties - per_pair.sum(axis=(-1, -2))
        return np.where(np.isposinf(log_nu), 0.0, value)

    def value(self, point: Array) -> Array:
        """Return the penalised objective, of shape (resample,)."""
        value = self.loglik(point) - self.penalty.value(point[:, :-1])
        if self.tie_precision:
            value = value - 0.5 * self.tie_precision * (point[:, -1] - self.tie_mean) ** 2
        return value

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        return self._gradient(point, *self._probabilities(point))

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        return self._information(point, *self._probabilities(point))

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, p)."""
        win, tie = self._probabilities(point)
        gradient = self._gradient(point, win, tie)
        matrix = self._information(point, win, tie)
        return solve_zero_sum(matrix, gradient, self.totals.shape[-1], self.penalty.precision)

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of two outcomes at most."""
        spread = step[:, :-1].max(axis=-1) - step[:, :-1].min(axis=-1)
        return np.maximum(spread, 0.5 * spread + np.abs(step[:, -1]))

    def _probabilities(self, point: Array) -> tuple[Array, Array]:
        """Return the probabilities of a win and of a tie for every ordered pair."""
        scores = np.clip(point[:, :-1], -_LARGEST_SCORE, _LARGEST_SCORE)
        root = np.exp(0.5 * scores)
        ratio = root[:, :, None] / root[:, None, :]
        opposite = ratio.transpose(0, 2, 1)
        sides = ratio + opposite
        with np.errstate(over="ignore"):
            tie = 1.0 / (1.0 + np.exp(-point[:, -1])[:, None, None] * sides)
        win = (1.0 - tie) * (ratio / sides)
        return win, tie

    def _gradient(self, point: Array, win: Array, tie: Array) -> Array:
        gradient = np.empty_like(point)
        scores, log_nu = point[:, :-1], point[:, -1]
        expected = (self.n_pairs * (win + 0.5 * tie)).sum(axis=-1)
        gradient[:, :-1] = self.totals - expected - self.penalty.gradient(scores)
        gradient[:, -1] = self.n_ties - 0.5 * (self.n_pairs * tie).sum(axis=(-1, -2))
        if self.tie_precision:
            gradient[:, -1] -= self.tie_precision * (log_nu - self.tie_mean)
        return gradient

    def _information(self, point: Array, win: Array, tie: Array) -> Array:
        batch, p = point.shape
        size = p - 1
        matrix = np.empty((batch, p, p))
        lose = win.transpose(0, 2, 1)
        # Variance of the half points scored, and their covariance with the tie indicator.
        variance = self.n_pairs * (win * lose + 0.25 * tie * (1.0 - tie))
        np.negative(variance, out=matrix[:, :size, :size])
        cross = -0.5 * (self.n_pairs * tie * (win - lose)).sum(axis=-1)
        matrix[:, :size, size] = cross
        matrix[:, size, :size] = cross
        diagonal = np.einsum("bii->bi", matrix)
        diagonal[:, :size] += variance.sum(axis=-1) + self.penalty.precision[:, None]
        bend = 0.5 * (self.n_pairs * tie * (1.0 - tie)).sum(axis=(-1, -2)) + self.tie_precision
        # No ties at all, or nothing else: nu sits at the end of its range.
        diagonal[:, size] = np.where(np.isfinite(point[:, -1]), bend, 1.0)
        return matrix


def fit_davidson(
    wins: ArrayLike,
    ties: ArrayLike,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
    tie_mean: float = 0.0,
    tie_precision: float = 0.0,
    start: ArrayLike | None = None,
) -> Fit:
    r"""Fit Davidson's model, in which P(tie) is proportional to nu sqrt(pi_i pi_j).

    Parameters
    ----------
    wins, ties : array_like of shape (..., system, opponent)
        Win counts, and symmetric tie counts.
    prior_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the zero-sum scores.
    prior_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 gives the maximum-likelihood estimate.
    tie_mean, tie_precision : float, default 0
        Normal prior on log nu; a precision of 0 gives a flat one.
    start : array_like, broadcastable to (..., system), optional
        Where the scores begin.

    Returns
    -------
    Fit
        Free coordinates: the scores, which sum to zero, then log nu.
        ``parameters["tie_strength"]``: nu.

    Raises
    ------
    ValueError
        If a precision is negative.

    References
    ----------
    .. [1] R. R. Davidson. On extending the Bradley-Terry model to accommodate ties in paired
       comparison experiments. Journal of the American Statistical Association 65 (1970).
       https://doi.org/10.1080/01621459.1970.10481082

    Examples
    --------
    >>> wins = [[0.0, 2.0], [2.0, 0.0]]
    >>> ties = [[0.0, 2.0], [2.0, 0.0]]
    >>> float(fit_davidson(wins, ties).parameters["tie_strength"].round(6))
    1.0
    """
    problem = davidson_problem(
        wins,
        ties,
        prior_mean=prior_mean,
        prior_precision=prior_precision,
        tie_mean=tie_mean,
        tie_precision=tie_precision,
    )
    lead = np.broadcast_shapes(np.shape(wins), np.shape(ties))[:-2]
    n_comparisons = 0.5 * problem.n_pairs.sum(axis=(-1, -2))
    share = tie_share(problem.n_ties, n_comparisons)
    if tie_precision:
        share = np.clip(share, 0.01, 0.99)
    with np.errstate(divide="ignore"):  # no ties, or nothing else: nu is 0 or infinite
        log_nu = np.log(2.0 * share) - np.log1p(-share)
    scores = first_scores(problem.totals, problem.n_pairs.sum(axis=-1), start, lead)
    optimum = maximise(problem, np.column_stack([scores, log_nu]))
    scores = settle_ties(
        optimum.point[:, :-1], problem.totals + problem.penalty.pull(), problem.n_pairs
    )
    exists = problem.penalty.precision > 0.0
    if not exists.all():
        size = scores.shape[-1]
        not_lost = np.add(wins, ties).reshape(-1, size, size) > 0.0
        exists = exists | (
            strongly_connected(not_lost) & ~np.isposinf(log_nu) & ~runs_away(problem, optimum.point)
        )
    return paired_fit(problem, optimum, scores, lead, exists=exists)


def davidson_problem(
    wins: ArrayLike,
    ties: ArrayLike,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
    tie_mean: float = 0.0,
    tie_precision: float = 0.0,
) -> DavidsonPairs:
    """Build the objective that :func:`fit_davidson` maximises; see there.

    Parameters
    ----------
    wins, ties, prior_mean, prior_precision, tie_mean, tie_precision
        As in :func:`fit_davidson`.

    Returns
    -------
    DavidsonPairs
        The free coordinates are the scores, then log nu.
    """
    won, tied = np.broadcast_arrays(
        np.asarray(wins, dtype=np.float64), np.asarray(ties, dtype=np.float64)
    )
    checked_precision("tie_precision", tie_precision)
    size = won.shape[-1]
    penalty = ScorePenalty.broadcast(prior_mean, prior_precision, won.shape[:-2], size)
    return DavidsonPairs(
        (won + 0.5 * tied).sum(axis=-1).reshape(-1, size),
        (won + np.swapaxes(won, -1, -2) + tied).reshape(-1, size, size),
        0.5 * tied.sum(axis=(-1, -2)).reshape(-1),
        penalty,
        tie_mean=tie_mean,
        tie_precision=tie_precision,
    )
