r"""Luce's models of sets of winners, by Newton's method.

*Bradley-Terry-Luce*, a composite likelihood: every system i in the winner set U of an event is a
choice out of itself and the losers V,

.. math:: \ell = \sum_k c_k \sum_{i \in U_k} \log
   \frac{\pi_i}{\pi_i + \sum_{j \in V_k} \pi_j}, \qquad \pi = e^{\theta},

with :math:`c_k` the multiplicity of event k.

*Davidson-Luce*: a winner set U of size t out of one common comparison set has probability
:math:`\delta_t \exp(\sum_{i \in U} \theta_i / t) / Z`. With every :math:`\delta_t` free the sizes
carry no information about :math:`\theta`: given its size, U has probability
:math:`\exp(\sum_{i \in U} \theta_i / t) / e_t(e^{\theta / t})`, and the sizes are multinomial.
With :math:`S_i` the sum of 1 / |U| over the sets that contain i and :math:`n_t` the number of sets
of size t,

.. math:: \ell = \sum_i S_i \theta_i - \sum_t n_t \log e_t(e^{\theta / t})
   + \sum_t n_t \log (n_t / n), \qquad
   \hat\delta_t = \frac{n_t}{n_1} \frac{e_1(e^{\theta})}{e_t(e^{\theta / t})}.

References
----------
.. [1] R. D. Luce. Individual Choice Behavior: A Theoretical Analysis. Wiley (1959).
.. [2] D. Firth, I. Kosmidis and H. Turner. Davidson-Luce model for multi-item choice with ties.
   arXiv (2019). https://arxiv.org/abs/1909.07123
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import strongly_connected
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.log_odds import smoothed_log_odds, softplus
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.winner_sets import independent_inclusion, winner_sets
from bayesrank.inference.fits.zero_sum import (
    NormalScores,
    ZeroSumScores,
    centred,
    diagonals,
    first_scores,
    fit_scores,
)

# Whether a system is in a set, or how often.
Table = Array | NDArray[np.bool_]

# Steps of a cheap approximation that a fit begins with.
_FIRST_STEPS = 2
_LEAST_BEND = 1e-6


def log_choices(score: Array, won: Table, lost: Table) -> Array:
    """Return Bradley-Terry-Luce log-likelihoods of events, of shape (point, event).

    For scores of shape (point, system) and 1 for the systems in the winner set, and in the loser
    set, of each event, (event, system).
    """
    score = score - score.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):  # strengths that underflow
        rivals = np.log(np.exp(score) @ lost.T)
    return -(won * softplus(rivals[..., np.newaxis] - score[:, np.newaxis])).sum(axis=-1)


def log_sets(score: Array, shares: Array, n_sets: Array, sizes: NDArray[np.int64]) -> Array:
    """Return Davidson-Luce log-likelihoods given the sizes, of shape (point, unit).

    For scores of shape (point, system), `shares` S of (point or 1, unit, system), and the numbers
    of winner sets of each of the `sizes`, (point or 1, unit, size).
    """
    log_normaliser = winner_sets(score, sizes).log_normaliser
    found = shares @ score[..., np.newaxis] - n_sets @ log_normaliser[..., np.newaxis]
    return found[..., 0]


@dataclass(frozen=True)
class SetChoices(ZeroSumScores):
    """Penalised Bradley-Terry-Luce log-likelihood; free coordinates: the scores.

    Attributes
    ----------
    won, lost : numpy.ndarray of shape (event, system)
        1 for the systems in U, and in V.
    weights : numpy.ndarray of shape (resample, event)
        Multiplicity of each event.
    """

    won: Array
    lost: Array
    weights: Array
    by_resample = ("weights",)

    def scale(self, point: Array) -> Array:
        """Return the largest number of choices of a system, plus the prior's precision."""
        return (self.chosen + self.passed_over).max(axis=-1) + self.prior.precision

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return max(self.won.size, 1)

    @cached_property
    def chosen(self) -> Array:
        """How often each system was chosen, of shape (resample, system)."""
        return self.weights @ self.won

    @cached_property
    def passed_over(self) -> Array:
        """How often another one was chosen in its place."""
        return (self.weights * self.won.sum(axis=-1)) @ self.lost

    def loglik(self, point: Array) -> Array:
        """Return the composite log-likelihood, of shape (resample,)."""
        return (self.weights * log_choices(point, self.won, self.lost)).sum(axis=-1)

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of two choices at most."""
        return step.max(axis=-1) - step.min(axis=-1)

    def expand(self, point: Array) -> tuple[Array, Callable[[], Array]]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        strength = np.exp(point - point.max(axis=-1, keepdims=True))
        total = (strength @ self.lost.T)[:, :, np.newaxis] + strength[:, np.newaxis, :]
        share = np.divide(self.won, total, out=total)
        expected = (self.weights[:, np.newaxis] @ share)[:, 0]
        expected += (self.weights * _over_systems(share)) @ self.lost
        expected *= strength
        gradient = self.chosen - expected + self.prior.gradient(point)
        return gradient, lambda: self._information(expected, strength, share)

    def _information(self, expected: Array, strength: Array, share: Array) -> Array:
        """Sum diag(p) - p p' over all choices, where `share` is U / (pi + losers); overwritten."""
        share *= share
        own = (self.weights[:, np.newaxis] @ share)[:, 0]
        # p p' has parts winner x loser, its transpose, and loser x loser: half of the last with
        # the first make one product, which is then symmetrised.
        share += (0.5 * _over_systems(share))[:, :, np.newaxis] * self.lost
        share *= self.weights[:, :, np.newaxis]
        half = share.transpose(0, 2, 1) @ self.lost
        matrix = half + half.transpose(0, 2, 1)
        diagonal = diagonals(matrix)
        diagonal += own
        matrix *= -strength[:, :, np.newaxis] * strength[:, np.newaxis, :]
        diagonal += expected + self.prior.precision[:, np.newaxis]
        return matrix


def _over_systems(values: Array) -> Array:
    """Sum over the last axis, which takes np.sum ten times as long where it is short."""
    return values @ np.ones(values.shape[-1])


def set_choices(
    won: ArrayLike,
    lost: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
) -> SetChoices:
    """Build the Bradley-Terry-Luce log-posterior; see :func:`fit_bradley_terry_luce`."""
    winners, losers = np.asarray(won, dtype=np.float64), np.asarray(lost, dtype=np.float64)
    counts = np.ones(len(winners)) if weights is None else np.asarray(weights, np.float64)
    prior = NormalScores.of(prior_mean, prior_precision, counts.shape[:-1], winners.shape[-1])
    counts = counts.reshape(len(prior.precision), len(winners))
    told = winners.any(axis=-1) & losers.any(axis=-1)
    if not told.all():
        winners, losers, counts = winners[told], losers[told], counts[:, told]
    return SetChoices(prior, winners, losers, counts)


def fit_bradley_terry_luce(
    won: ArrayLike, lost: ArrayLike, weights: ArrayLike | None = None, **prior: Any
) -> Fit:
    """Fit the Bradley-Terry-Luce model to winner and loser sets.

    `won` and `lost`, of shape (event, system), are 1 for the systems in either set; one in neither
    took no part. `weights`, 1 by default, are multiplicities of shape (..., event), whose leading
    axes are resamples. ``prior_mean``, of shape (..., system), and ``prior_precision``, (...), are
    those of a normal prior on the zero-sum scores, the free coordinates; 0, the default, is flat.

    Examples
    --------
    >>> won = [[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 0]]
    >>> fit = fit_bradley_terry_luce(won, 1 - np.array(won))
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[2])
    (True, True)
    """
    problem = set_choices(won, lost, weights, **prior)
    losers = problem.lost.sum(axis=-1)
    points = (problem.weights * losers) @ problem.won
    # Systems with the same results in every event; other ties are left to the resolution.
    columns = (problem.won - problem.lost).T

    def exists(_: Array) -> NDArray[np.bool_]:
        wins = (problem.won.T * problem.weights[:, np.newaxis, :]) @ problem.lost
        return strongly_connected(wins > 0.0)

    return fit_scores(
        problem,
        first_scores(points, points + problem.passed_over),
        () if weights is None else np.shape(weights)[:-1],
        totals=points + problem.prior.pull,
        rows=np.broadcast_to(columns, (len(points), *columns.shape)),
        exists=exists,
    )


@dataclass(frozen=True)
class WinnerSetCounts(ZeroSumScores):
    """Penalised Davidson-Luce log-likelihood given the sizes; free coordinates: the scores.

    Attributes
    ----------
    shares, n_sets, sizes
        As in :func:`log_sets`, of shape (resample, system) and (resample, size).
    """

    shares: Array
    n_sets: Array
    sizes: NDArray[np.int64]
    by_resample = "shares", "n_sets"

    def scale(self, point: Array) -> Array:
        """Return the number of sets, plus the prior's precision."""
        return self.n_sets.sum(axis=-1) + self.prior.precision

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return max(1, len(self.sizes) * self.size * (self.size // 2 + 1))

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of the sizes too, of shape (resample,)."""
        units = self.shares[:, np.newaxis], self.n_sets[:, np.newaxis]
        total = self.n_sets.sum(axis=-1, keepdims=True)
        share = self.n_sets / np.where(total > 0.0, total, 1.0)
        of_sizes = self.n_sets * np.log(np.where(share > 0.0, share, 1.0))
        return log_sets(point, *units, self.sizes)[:, 0] + of_sizes.sum(axis=-1)

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of two sets of one size at most."""
        ordered = np.sort(step, axis=-1)
        lowest = ordered.cumsum(axis=-1)[:, self.sizes - 1]
        highest = ordered[:, ::-1].cumsum(axis=-1)[:, self.sizes - 1]
        spread = np.where(self.n_sets > 0.0, (highest - lowest) / self.sizes, 0.0)
        return spread.max(axis=-1, initial=0.0)

    def expand(self, point: Array) -> tuple[Array, Callable[[], Array]]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        sets, weights = winner_sets(point, self.sizes), self.n_sets / self.sizes
        expected = (weights[:, np.newaxis, :] @ sets.inclusion)[:, 0]

        def information() -> Array:
            matrix = sets.covariance(weights / self.sizes)
            diagonals(matrix)[...] += self.prior.precision[:, np.newaxis]
            return matrix

        return self.shares - expected + self.prior.gradient(point), information


def winner_set_counts(
    shares: ArrayLike,
    n_sets: ArrayLike,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
) -> WinnerSetCounts:
    """Build the Davidson-Luce log-posterior given the sizes; see :func:`fit_davidson_luce`."""
    totals, counts = np.asarray(shares, dtype=np.float64), np.asarray(n_sets, dtype=np.float64)
    prior = NormalScores.of(prior_mean, prior_precision, totals.shape[:-1], totals.shape[-1])
    totals, counts = totals.reshape(-1, prior.mean.shape[-1]), counts.reshape(len(prior.mean), -1)
    occurring = np.flatnonzero((counts > 0.0).any(axis=0))
    return WinnerSetCounts(prior, totals, counts[:, occurring], occurring + 1)


def fit_davidson_luce(shares: ArrayLike, n_sets: ArrayLike, **prior: Any) -> Fit:
    """Fit the Davidson-Luce model of winner sets out of one common comparison set.

    `shares`, of shape (..., system), are sums of 1 / |U| over the winner sets U that contain a
    system, `n_sets`, (..., system - 1), the numbers of winner sets of size 1, 2, ...; priors are as
    in :func:`fit_bradley_terry_luce`. ``with_set_sizes`` adds the sizes.

    Examples
    --------
    >>> fit = fit_davidson_luce([3.5, 1.5, 1.0], [4.0, 2.0])
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[1] > fit.score[2])
    (True, True)
    """
    problem = winner_set_counts(shares, n_sets, **prior)
    return fit_scores(
        problem,
        _first_sets(problem),
        np.shape(shares)[:-1],
        totals=problem.shares + problem.prior.pull,
        exists=lambda point: ~problem.is_flat(point),
    )


def _first_sets(problem: WinnerSetCounts) -> Array:
    """Return where to begin: at the estimates, nearly, if systems entered sets independently."""
    weights = problem.n_sets / problem.sizes
    total, possible = (each.sum(axis=-1, keepdims=True) for each in (problem.n_sets, weights))
    size = total / np.where(possible > 0.0, possible, 1.0)
    # The inclusion odds at a typical size.
    scores = centred(size * smoothed_log_odds(problem.shares * size, possible * size))
    for _ in range(_FIRST_STEPS):
        # Of sets of one size, diagonal steps are Newton steps: the constraint does the rest.
        chance = independent_inclusion(scores, problem.sizes)
        expected, spread = weights[:, np.newaxis] @ chance, chance * (1.0 - chance)
        bend = (weights / problem.sizes)[:, np.newaxis] @ spread
        bend = bend[:, 0] + problem.prior.precision[:, np.newaxis]
        gradient = problem.shares - expected[:, 0] + problem.prior.gradient(scores)
        scores = centred(scores + gradient / np.maximum(bend, _LEAST_BEND))
    return scores
