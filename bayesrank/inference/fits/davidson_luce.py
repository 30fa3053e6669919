r"""Davidson-Luce by Newton's method, through the conditional likelihood given the set sizes.

A winner set U of size t out of one common comparison set has probability
:math:`\delta_t \exp(\sum_{i \in U} \theta_i / t) / Z`. With every :math:`\delta_t` free the sizes
carry no information about :math:`\theta`: given its size, U has probability
:math:`\exp(\sum_{i \in U} \theta_i / t) / e_t(e^{\theta / t})`, and the sizes are multinomial.
With :math:`S_i` the sum of 1 / |U| over the sets that contain i and :math:`n_t` the number of sets
of size t,

.. math:: \ell = \sum_i S_i \theta_i - \sum_t n_t \log e_t(e^{\theta / t})
   + \sum_t n_t \log (n_t / n), \qquad
   \hat\delta_t = \frac{n_t}{n_1} \frac{e_1(e^{\theta})}{e_t(e^{\theta / t})}.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.laplace import anchored, zero_sum
from bayesrank.inference.fits.newton import maximise, smoothed_log_odds, solve_zero_sum
from bayesrank.inference.fits.penalty import Array, ScorePenalty
from bayesrank.inference.fits.winner_sets import (
    IndependentSets,
    WinnerSets,
    independent_sets,
    winner_sets,
)

# Share of the counts below which the smallest curvature says that the estimate runs away.
_FLAT = 1e-12


@dataclass(frozen=True)
class WinnerSetCounts:
    """Penalised conditional log-likelihood of winner sets.

    Free coordinates: the scores.

    Attributes
    ----------
    shares : numpy.ndarray of shape (resample, system)
        S: the sum of 1 / |U| over the winner sets that contain the system.
    n_sets : numpy.ndarray of shape (resample, size)
        Number of winner sets of each size in `sizes`.
    sizes : numpy.ndarray of int64 and shape (size,)
        The sizes that occur.
    penalty : ScorePenalty
        Normal prior on the scores.
    approximate : bool, default False
        Whether systems enter the sets independently, for a cheap start.
    """

    shares: Array
    n_sets: Array
    sizes: NDArray[np.int64]
    penalty: ScorePenalty
    approximate: bool = False

    @property
    def scale(self) -> Array:
        """Number of sets, plus the prior's precision."""
        return self.n_sets.sum(axis=-1) + self.penalty.precision

    @property
    def cells(self) -> int:
        """Cells per resample."""
        n_systems = self.shares.shape[-1]
        return max(1, len(self.sizes) * n_systems * (n_systems // 2 + 1))

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(
            self,
            shares=self.shares[index],
            n_sets=self.n_sets[index],
            penalty=self.penalty.take(index),
        )

    def conditional_loglik(self, point: Array) -> Array:
        """Return the log-likelihood given the sizes, of shape (resample,)."""
        log_normaliser = winner_sets(point, self.sizes).log_normaliser
        return (self.shares * point).sum(axis=-1) - (self.n_sets * log_normaliser).sum(axis=-1)

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood with the best delta, of shape (resample,)."""
        total = self.n_sets.sum(axis=-1, keepdims=True)
        share = self.n_sets / np.where(total > 0.0, total, 1.0)
        sizes = self.n_sets * np.log(np.where(share > 0.0, share, 1.0))
        return self.conditional_loglik(point) + sizes.sum(axis=-1)

    def value(self, point: Array) -> Array:
        """Return the penalised conditional objective, of shape (resample,)."""
        return self.conditional_loglik(point) - self.penalty.value(point)

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, system)."""
        return self._gradient(point, self._sets(point))

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, system, system)."""
        return self._information(self._sets(point))

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, system)."""
        sets = self._sets(point)
        gradient, matrix = self._gradient(point, sets), self._information(sets)
        return solve_zero_sum(matrix, gradient, point.shape[-1], self.penalty.precision)

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of two sets of one size at most."""
        ordered = np.sort(step, axis=-1)
        lowest = ordered.cumsum(axis=-1)[:, self.sizes - 1]
        highest = ordered[:, ::-1].cumsum(axis=-1)[:, self.sizes - 1]
        spread = np.where(self.n_sets > 0.0, (highest - lowest) / self.sizes, 0.0)
        return spread.max(axis=-1, initial=0.0)

    def _sets(self, point: Array) -> WinnerSets | IndependentSets:
        return (independent_sets if self.approximate else winner_sets)(point, self.sizes)

    def _gradient(self, point: Array, sets: WinnerSets | IndependentSets) -> Array:
        weights = (self.n_sets / self.sizes)[:, None, :]
        return self.shares - (weights @ sets.inclusion)[:, 0] - self.penalty.gradient(point)

    def _information(self, sets: WinnerSets | IndependentSets) -> Array:
        matrix = sets.covariance(self.n_sets / self.sizes**2)
        n_systems = matrix.shape[-1]
        diagonal = matrix.reshape(len(matrix), -1)[:, :: n_systems + 1]
        diagonal += self.penalty.precision[:, None]
        return matrix


def davidson_luce_problem(
    shares: ArrayLike,
    n_sets: ArrayLike,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
) -> WinnerSetCounts:
    """Build the objective that :func:`fit_davidson_luce` maximises; see there.

    Parameters
    ----------
    shares, n_sets, prior_mean, prior_precision
        As in :func:`fit_davidson_luce`.

    Returns
    -------
    WinnerSetCounts
        The free coordinates are the scores.
    """
    totals, counts = np.asarray(shares, dtype=np.float64), np.asarray(n_sets, dtype=np.float64)
    n_systems = totals.shape[-1]
    if counts.shape[-1] >= n_systems and counts[..., n_systems - 1 :].any():
        raise ValueError(
            f"n_sets must count sizes 1 to {n_systems - 1} only, since a set of all {n_systems} "
            f"systems says nothing; got sizes up to {counts.shape[-1]}"
        )
    lead = np.broadcast_shapes(totals.shape[:-1], counts.shape[:-1])
    totals = np.broadcast_to(totals, (*lead, n_systems)).reshape(-1, n_systems)
    counts = np.broadcast_to(counts, (*lead, counts.shape[-1])).reshape(-1, counts.shape[-1])
    occurring = np.flatnonzero((counts > 0.0).any(axis=0))
    penalty = ScorePenalty.broadcast(prior_mean, prior_precision, lead, n_systems)
    return WinnerSetCounts(totals, counts[:, occurring], occurring + 1, penalty)


def fit_davidson_luce(
    shares: ArrayLike,
    n_sets: ArrayLike,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
    start: ArrayLike | None = None,
) -> Fit:
    """Fit the Davidson-Luce model of winner sets out of one common comparison set.

    Parameters
    ----------
    shares : array_like of shape (..., system)
        The sum of 1 / |U| over the winner sets U that contain the system.
    n_sets : array_like of shape (..., size)
        Number of winner sets of size 1, 2, ... up to the number of systems less one.
    prior_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the zero-sum scores.
    prior_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 gives the maximum-likelihood estimate.
    start : array_like, broadcastable to (..., system), optional
        Where to begin.

    Returns
    -------
    Fit
        Free coordinates: the scores, which sum to zero. ``parameters["tie_prevalence"]``, of shape
        (..., size), are the delta, 1 for size 1: 0 for sizes that do not occur, and all infinite
        where size 1 does not. They are a function of the scores and of the sizes, and not part of
        the draws.

    Raises
    ------
    ValueError
        If `n_sets` counts sets of all systems or `prior_precision` is negative.

    References
    ----------
    .. [1] D. Firth, I. Kosmidis and H. Turner. Davidson-Luce model for multi-item choice with ties.
       arXiv (2019). https://arxiv.org/abs/1909.07123

    Examples
    --------
    >>> fit = fit_davidson_luce([3.5, 1.5, 1.0], [4.0, 2.0])
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[1] > fit.score[2])
    (True, True)
    """
    problem = davidson_luce_problem(
        shares, n_sets, prior_mean=prior_mean, prior_precision=prior_precision
    )
    lead = np.broadcast_shapes(np.shape(shares)[:-1], np.shape(n_sets)[:-1])
    optimum = maximise(problem, _first_scores(problem, start, lead))
    scores = settle_ties(optimum.point, problem.shares + problem.penalty.pull())
    point = scores - scores.mean(axis=-1, keepdims=True)
    exists = problem.penalty.precision > 0.0
    if not exists.all():
        exists = exists | ~_runs_away(problem, point)
    prevalence = _tie_prevalence(problem, point, np.shape(n_sets)[-1])
    free = point.reshape(*lead, -1)
    return Fit(
        score=free,
        parameters={"tie_prevalence": prevalence.reshape(*lead, -1)},
        converged=(optimum.converged & exists).reshape(lead),
        iterations=optimum.iterations.reshape(lead),
        gradient_norm=optimum.gradient_norm.reshape(lead),
        free=free,
        unpack=_unpack,
        log_likelihood=partial(_log_likelihood, problem, point, lead),
        curvature=partial(_curvature, problem, point, lead),
    )


def _first_scores(
    problem: WinnerSetCounts, start: ArrayLike | None, lead: tuple[int, ...]
) -> Array:
    """Begin where the inclusion odds at a typical size match the data."""
    n_systems = problem.shares.shape[-1]
    if start is None:
        total = problem.n_sets.sum(axis=-1, keepdims=True)
        possible = (problem.n_sets / problem.sizes).sum(axis=-1, keepdims=True)
        size = total / np.where(possible > 0.0, possible, 1.0)
        scores = size * smoothed_log_odds(problem.shares * size, possible * size)
    else:
        scores = np.broadcast_to(np.asarray(start, dtype=np.float64), (*lead, n_systems))
        scores = scores.reshape(-1, n_systems)
    scores = scores - scores.mean(axis=-1, keepdims=True)
    if start is not None:
        return scores
    rough = maximise(replace(problem, approximate=True), scores, error_tolerance=1e-3)
    return np.where(np.isfinite(rough.point), rough.point, scores)


def _runs_away(problem: WinnerSetCounts, point: Array) -> NDArray[np.bool_]:
    n_systems = point.shape[-1]
    matrix = anchored(problem.information(point), zero_sum(n_systems, slice(0, n_systems)))
    return np.linalg.eigvalsh(matrix)[:, 0] <= _FLAT * problem.scale


def _tie_prevalence(problem: WinnerSetCounts, point: Array, n_sizes: int) -> Array:
    """Return the delta that fit the sizes exactly."""
    log_normaliser = winner_sets(point, problem.sizes).log_normaliser
    prevalence = np.zeros((len(point), n_sizes))
    top = point.max(axis=-1)
    log_first = np.log(np.exp(point - top[:, None]).sum(axis=-1)) + top
    single = problem.n_sets[:, problem.sizes == 1].sum(axis=-1)
    # Sizes of other rows of the batch, and rows without single winners.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_share = np.log(problem.n_sets) - np.log(single)[:, None]
        prevalence[:, problem.sizes - 1] = np.exp(log_share + log_first[:, None] - log_normaliser)
    prevalence[single == 0.0] = np.inf
    return prevalence


def _unpack(free: Array) -> dict[str, Array]:
    return {"score": free}


def _log_likelihood(problem: WinnerSetCounts, point: Array, lead: tuple[int, ...]) -> Array:
    return problem.loglik(point).reshape(lead)


def _curvature(
    problem: WinnerSetCounts, point: Array, lead: tuple[int, ...]
) -> tuple[Array, Array]:
    p = point.shape[-1]
    return problem.information(point).reshape(*lead, p, p), zero_sum(p, slice(0, p))
