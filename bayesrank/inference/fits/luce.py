r"""Luce's models of sets of winners, by Newton's method.

Those of :func:`bayesrank.models.bradley_terry_luce`, and of :func:`bayesrank.models.davidson_luce`
where all events have one comparison set. With every prevalence :math:`\delta_t` free the sizes
carry no information about :math:`\theta` then: given its size t, U has probability
:math:`\exp(\sum_{i \in U} \theta_i / t) / e_t(e^{\theta / t})`, and the sizes are multinomial.
With :math:`S_i` the sum of 1 / |U| over the sets that contain i and :math:`n_t` the number of sets
of size t,

.. math:: \ell = \sum_i S_i \theta_i - \sum_t n_t \log e_t(e^{\theta / t})
   + \sum_t n_t \log (n_t / n), \qquad
   \hat\delta_t = \frac{n_t}{n_1} \frac{e_1(e^{\theta})}{e_t(e^{\theta / t})}.

Here :math:`e_t` are elementary symmetric polynomials.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import strongly_connected
from bayesrank.inference.fits.fit import (
    Fit,
    ZeroSumScores,
    centred,
    diagonals,
    first_scores,
    fit_scores,
    zero_sum,
)
from bayesrank.inference.fits.newton import Array
from bayesrank.log_odds import finite_exp, logistic, smoothed_log_odds, softplus
from bayesrank.priors import FLAT, NormalPrior

# Whether a system is in a set, or the number of times.
Table = Array | NDArray[np.bool_]
# First steps of a fit by a cheap approximation: independent entry (Hajek, 1964).
_FIRST_STEPS = 2
_LEAST_BEND = 1e-6
# Newton steps of a tilt, and the share of all systems by which the expected size may be off.
_TILT_STEPS = 60
_TILT_TOLERANCE = 1e-6


def log_choices(score: Array, won: Table, lost: Table) -> Array:
    """Return Bradley-Terry-Luce log-likelihoods of events, of shape (point, event).

    `won` and `lost`, (event, system), are 1 for the systems in the winner set, and in the loser
    set.
    """
    score = score - score.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):  # strengths that underflow
        rivals = np.log(np.exp(score) @ lost.T)
    return -(won * softplus(rivals[..., np.newaxis] - score[:, np.newaxis])).sum(axis=-1)


@dataclass(frozen=True)
class SetChoices(ZeroSumScores):
    """Penalised Bradley-Terry-Luce log-likelihood of scores.

    `won` and `lost` are as in :func:`log_choices`; `weights`, (resample, event), are
    multiplicities.
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
        diagonal += expected + self.prior.precision
        return matrix


def _over_systems(values: Array) -> Array:
    """Sum over the last axis, which takes np.sum ten times as long where it is short."""
    return values @ np.ones(values.shape[-1])


def set_choices(
    won: ArrayLike, lost: ArrayLike, weights: ArrayLike, prior: NormalPrior = FLAT
) -> SetChoices:
    """Build the Bradley-Terry-Luce log-posterior; see :func:`fit_bradley_terry_luce`."""
    winners, losers = np.asarray(won, dtype=np.float64), np.asarray(lost, dtype=np.float64)
    counts = np.asarray(weights, dtype=np.float64)
    scores = zero_sum(prior, winners.shape[-1])
    n_resamples = math.prod(counts.shape[:-1])
    return SetChoices(scores, winners, losers, counts.reshape(n_resamples, len(winners)))


def fit_bradley_terry_luce(
    won: ArrayLike, lost: ArrayLike, weights: ArrayLike, prior: NormalPrior = FLAT
) -> Fit:
    """Fit the Bradley-Terry-Luce model to winner and loser sets, neither of them empty.

    `won` and `lost`, (event, system), are 1 for the systems in either set; one in neither took no
    part. `weights` are multiplicities of shape (..., event), whose leading axes are resamples.
    """
    problem = set_choices(won, lost, weights, prior)
    losers = problem.lost.sum(axis=-1)
    points = (problem.weights * losers) @ problem.won

    def exists(_: Array) -> NDArray[np.bool_]:
        wins = (problem.won.T * problem.weights[:, np.newaxis, :]) @ problem.lost
        return strongly_connected(wins > 0.0)

    return fit_scores(
        problem,
        first_scores(points, points + problem.passed_over),
        np.shape(weights)[:-1],
        exists=exists,
    )


@dataclass(frozen=True)
class WinnerSetCounts(ZeroSumScores):
    """Penalised Davidson-Luce log-likelihood of scores given the sizes; see :func:`log_sets`."""

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
            diagonals(matrix)[...] += self.prior.precision
            return matrix

        return self.shares - expected + self.prior.gradient(point), information


def winner_set_counts(
    shares: ArrayLike, n_sets: ArrayLike, prior: NormalPrior = FLAT
) -> WinnerSetCounts:
    """Build the Davidson-Luce log-posterior given the sizes; see :func:`fit_davidson_luce`."""
    totals, counts = np.asarray(shares, dtype=np.float64), np.asarray(n_sets, dtype=np.float64)
    scores = zero_sum(prior, totals.shape[-1])
    totals, counts = (each.reshape(-1, each.shape[-1]) for each in (totals, counts))
    occurring = np.flatnonzero((counts > 0.0).any(axis=0))
    return WinnerSetCounts(scores, totals, counts[:, occurring], occurring + 1)


def fit_davidson_luce(shares: ArrayLike, n_sets: ArrayLike, prior: NormalPrior = FLAT) -> Fit:
    """Fit the Davidson-Luce model of winner sets out of one common comparison set.

    `shares`, of shape (..., system), are sums of 1 / |U| over the winner sets U that contain a
    system, `n_sets`, (..., system - 1), the numbers of winner sets of size 1, 2, ...;
    ``with_set_sizes`` adds the sizes.
    """
    problem = winner_set_counts(shares, n_sets, prior)
    return fit_scores(
        problem,
        _first_sets(problem),
        np.shape(shares)[:-1],
        exists=lambda point: ~problem.is_flat(point),
    )


def _first_sets(problem: WinnerSetCounts) -> Array:
    """Return a starting point: the approximate estimates if systems entered sets independently."""
    weights, sizes = problem.n_sets / problem.sizes, problem.sizes
    total, possible = (each.sum(axis=-1, keepdims=True) for each in (problem.n_sets, weights))
    size = total / np.where(possible > 0.0, possible, 1.0)
    # The inclusion odds at a typical size.
    scores = centred(size * smoothed_log_odds(problem.shares * size, possible * size))
    for _ in range(_FIRST_STEPS):
        # For sets of one size, diagonal steps are Newton steps, because of the constraint.
        log_x = scores[:, np.newaxis] / sizes[:, np.newaxis]
        odds = tilted(log_x, sizes)[1]
        chance = odds / (1.0 + odds)
        expected, spread = weights[:, np.newaxis] @ chance, chance * (1.0 - chance)
        bend = (weights / sizes)[:, np.newaxis] @ spread
        bend = bend[:, 0] + problem.prior.precision
        gradient = problem.shares - expected[:, 0] + problem.prior.gradient(scores)
        scores = centred(scores + gradient / np.maximum(bend, _LEAST_BEND))
    return scores


def with_set_sizes(fit: Fit, n_sets: Array) -> Fit:
    """Add the probabilities of the sizes to a fit of Davidson-Luce scores that is not batched.

    The free coordinates of the sizes are the log-odds of each against all larger ones, which are
    independent of each other and of the scores. ``size_probability``, where there are two sizes or
    more, and ``tie_prevalence`` are over the sizes that occur. The prevalences are relative to that
    of the smallest size, and not part of the draws.
    """
    sizes, n_systems = np.flatnonzero(n_sets) + 1, len(fit.score)
    counts = n_sets[sizes - 1]
    log_normaliser = winner_sets(fit.score[np.newaxis], sizes).log_normaliser[0]
    prevalence = np.log(counts) - log_normaliser
    parameters = {"tie_prevalence": finite_exp(prevalence - prevalence[0])}
    if len(sizes) == 1:
        return replace(fit, parameters=parameters)
    larger, smaller = np.cumsum(counts[::-1])[::-1][1:], counts[:-1]

    def unpack(free: Array) -> dict[str, Array]:
        odds = free[..., n_systems:]
        first = np.ones_like(odds[..., :1])
        before = np.concatenate([first, np.cumprod(logistic(-odds), axis=-1)], axis=-1)
        taken = np.concatenate([logistic(odds), first], axis=-1)
        return {"score": free[..., :n_systems], "size_probability": before * taken}

    def curvature() -> tuple[Array, Array]:
        information, held = fit.curvature()
        both = np.diag(np.append(np.zeros(n_systems), smaller * larger / (smaller + larger)))
        both[:n_systems, :n_systems] = information
        return both, np.vstack([held, np.zeros((len(smaller), held.shape[-1]))])

    return replace(
        fit,
        parameters={"size_probability": counts / counts.sum(), **parameters},
        free=np.concatenate([fit.free, np.log(smaller / larger)]),
        unpack=unpack,
        curvature=curvature,
    )


def log_sets(score: Array, shares: Array, n_sets: Array, sizes: NDArray[np.int64]) -> Array:
    """Return Davidson-Luce log-likelihoods given the sizes, of shape (point, unit).

    For scores of shape (point, system), `shares` S of (point or 1, unit, system), and the numbers
    of winner sets of each of the `sizes`, (point or 1, unit, size).
    """
    log_normaliser = winner_sets(score, sizes).log_normaliser
    found = shares @ score[..., np.newaxis] - n_sets @ log_normaliser[..., np.newaxis]
    return found[..., 0]


def set_statistics(
    right: NDArray[np.bool_], counts: Array | NDArray[np.int64]
) -> tuple[Array, Array]:
    """Summarise winner sets out of one common comparison set, for :func:`fit_davidson_luce`.

    `right`, (..., event, system), says who is in the winner set; `counts`, (..., event), how often
    each event happened, 0 where all systems won or none did.
    """
    size = right.sum(axis=-1, keepdims=True)
    each: Array = counts / np.maximum(size[..., 0], 1)
    shares = each[..., np.newaxis, :] @ right
    n_sets = counts[..., np.newaxis, :] @ (size == np.arange(1, right.shape[-1]))
    return shares[..., 0, :], n_sets[..., 0, :]


@dataclass(frozen=True)
class WinnerSets:
    """Winner sets of several sizes under scores, where x = exp(score / size).

    `log_normaliser`, of shape (resample, size), is log e_t(exp(theta / t)). The joint inclusion
    probabilities are products of `factors`, the parts of the factors of the generating function
    with the system, (resample, size, point, system), with weights of the `points`, (resample, size,
    point).
    """

    log_normaliser: Array
    factors: NDArray[np.complex128]
    points: NDArray[np.complex128]

    @cached_property
    def inclusion(self) -> Array:
        """Probabilities that a system is in a set of a size, (resample, size, system)."""
        return (self.factors * self.points[..., np.newaxis]).real.sum(axis=-2)

    def covariance(self, weights: Array) -> Array:
        """Return the covariance of the inclusion indicators, summed over sizes with weights."""
        batch, _, _, n_systems = self.factors.shape
        weighted = self.factors * (self.points * weights[:, :, np.newaxis])[..., np.newaxis]
        weighted, flat = (each.reshape(batch, -1, n_systems) for each in (weighted, self.factors))
        # The real part of a complex product, as two real ones.
        joint = weighted.real.transpose(0, 2, 1) @ flat.real
        joint -= weighted.imag.transpose(0, 2, 1) @ flat.imag
        single = (self.inclusion * weights[:, :, np.newaxis]).transpose(0, 2, 1) @ self.inclusion
        own = (self.inclusion * weights[:, :, np.newaxis]).sum(axis=1)
        diagonals(joint)[...] = own
        return joint - single


def winner_sets(scores: Array, sizes: NDArray[np.int64]) -> WinnerSets:
    """Evaluate winner sets of sizes of at least 1 and below the number of systems."""
    n_systems = scores.shape[-1]
    top = scores.max(axis=-1, keepdims=True)
    log_x = (scores - top)[:, np.newaxis] / sizes[:, np.newaxis]
    tilt, odds = tilted(log_x, sizes)
    chance = odds / (1.0 + odds)
    # An odd number of points, at least L + 1, none of which is at -1 where a factor can vanish;
    # the upper half of the circle mirrors the lower one.
    n_points = n_systems + 1 + n_systems % 2
    angle = 2.0 * np.pi * np.arange(n_points // 2 + 1) / n_points
    turn = np.exp(1j * angle)
    entering = chance[:, :, np.newaxis] * turn[:, np.newaxis]
    staying = (1.0 - chance)[:, :, np.newaxis] + entering
    share = np.where(angle == 0.0, 1.0, 2.0) / n_points
    density = staying.prod(axis=-1) * np.exp(-1j * sizes[:, np.newaxis] * angle) * share
    probability = density.real.sum(axis=-1)
    log_normaliser = np.log(probability) + np.log1p(odds).sum(axis=-1) - sizes * tilt
    points = density / probability[..., np.newaxis]
    return WinnerSets(log_normaliser + top, entering / staying, points)


def tilted(log_x: Array, sizes: NDArray[np.int64]) -> tuple[Array, Array]:
    """Return log lambda for which each size is about the expected one, and the odds of entry."""
    n_systems = log_x.shape[-1]
    # Between the thresholds at which half of the t-th and of the next largest enter.
    ordered = np.sort(log_x, axis=-1)
    index = np.broadcast_to(n_systems - sizes, log_x.shape[:-1])[..., np.newaxis]
    upper = np.take_along_axis(ordered, index, axis=-1)
    lower = np.take_along_axis(ordered, index - 1, axis=-1)
    tilt = -0.5 * (upper + lower)[..., 0]
    for _ in range(_TILT_STEPS):
        odds = np.exp(log_x + tilt[..., np.newaxis])
        chance = odds / (1.0 + odds)
        excess = chance.sum(axis=-1) - sizes
        slope = (chance * (1.0 - chance)).sum(axis=-1)
        if np.abs(excess).max(initial=0.0) <= _TILT_TOLERANCE * n_systems:
            break
        tilt = tilt - np.clip(excess / np.maximum(slope, 1e-3), -2.0, 2.0)
    return tilt, np.exp(log_x + tilt[..., np.newaxis])
