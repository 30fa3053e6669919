"""Fits of paired comparisons under normal priors, whatever their likelihood."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import strongly_connected
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.pairs import Array, PairLikelihood, displace, net
from bayesrank.inference.fits.penalty import checked_precision
from bayesrank.inference.fits.zero_sum import (
    NormalScores,
    ZeroSumScores,
    diagonals,
    first_scores,
    fit_scores,
)

# Log-odds that no finite estimate reaches on fewer than millions of comparisons; beyond them the
# curvature is looked at.
_FAR = 15.0
# Weights with which a sum of fractions is the same only where all of them are.
_IRRATIONAL = (2.0**0.5, 3.0**0.5)


@dataclass(frozen=True)
class PairCounts(ZeroSumScores):
    """The penalised log-likelihood of tables of results.

    Free coordinates: the scores, then the tie parameter where it is estimated. Without any ties, or
    with nothing else, the tie parameter is held at the end of its range. `won`, and `tied`, half
    the ties where they count, are of shape (resample, system, opponent).
    """

    likelihood: PairLikelihood
    won: Array
    tied: Array
    tie_mean: float = 0.0
    tie_precision: float = 0.0
    by_resample = "won", "tied"

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return self.size**2

    @cached_property
    def one_side(self) -> Array:
        """Points of each against each, half of one for a tie that counts."""
        return self.won + self.tied

    @cached_property
    def n_pairs(self) -> Array:
        """Comparisons per pair, of shape (resample, system, opponent)."""
        return self.one_side + self.one_side.transpose(0, 2, 1)

    @cached_property
    def played(self) -> Array:
        """Comparisons of each system, of shape (resample, system)."""
        return self.points + np.add.reduce(self.one_side, axis=-2)

    @cached_property
    def points(self) -> Array:
        """Points of each system, of shape (resample, system)."""
        return np.add.reduce(self.one_side, axis=-1)

    def scale(self, point: Array) -> Array:
        """Return the largest number of comparisons of a system, plus the prior's precision."""
        return np.maximum.reduce(self.played, axis=-1) + self.prior.precision

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        arguments = self.likelihood.arguments(point, self.size)
        each = self.likelihood.value(self.won, self.tied, *arguments)
        # Nothing but ties: all of them are certain.
        return np.where(np.isposinf(point[:, -1]), 0.0, each.sum(axis=(-1, -2)))

    def expand(self, point: Array) -> tuple[Array, Callable[[], Array]]:
        """Return the gradient of the objective, and a function for its negative Hessian."""
        likelihood, size = self.likelihood, self.size
        arguments = likelihood.arguments(point, size)
        found = likelihood.derivatives(self.won, self.tied, *arguments)
        gradient = likelihood.slopes(point, found)
        if self.prior.given:
            scores = gradient[:, :size]
            scores += self.prior.gradient(point[:, :size])
        if self.tie_precision and likelihood.start is not None:
            pull = self.tie_precision * (point[:, size] - self.tie_mean)
            gradient[:, size] -= np.where(likelihood.at_end(point[:, size]), 0.0, pull)
        return gradient, lambda: self._information(point, found)

    def _information(self, point: Array, derivatives: tuple[Array, ...]) -> Array:
        size, p = self.size, point.shape[-1]
        matrix = np.empty((len(point), p, p))
        scores = matrix[:, :size, :size]
        np.add(derivatives[1], derivatives[1].swapaxes(1, 2), out=scores)
        np.negative(scores, out=scores)
        diagonal = diagonals(matrix)
        own = diagonal[:, :size]
        own += self.prior.weight - np.add.reduce(scores, axis=-1)
        if p > size:
            held = self.likelihood.at_end(point[:, size])
            cross = np.where(held[:, np.newaxis], 0.0, net(derivatives[3]))
            matrix[:, :size, size] = matrix[:, size, :size] = cross
            bend = derivatives[4].sum(axis=(-1, -2)) + self.tie_precision
            diagonal[:, size] = np.where(held, 1.0, bend)
        return matrix

    def newton(self, point: Array) -> Array:
        """Return the Newton step, or its share that is safe, of shape (resample, p)."""
        step, safe_share = super().newton(point), self.likelihood.safe_share
        if safe_share is not None:
            step *= safe_share(point, step, self.n_pairs > 0.0)[:, np.newaxis]
        return step

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of two outcomes at most."""
        scores = step[:, : self.size]
        reach = np.maximum.reduce(scores, axis=-1) - np.minimum.reduce(scores, axis=-1)
        return reach if step.shape[-1] == self.size else reach + np.abs(step[:, -1])

    def exists(self, point: Array) -> NDArray[np.bool_]:
        """Say where the optimum is finite without a prior, of shape (resample,)."""
        found = strongly_connected(self.one_side > 0.0)
        if point.shape[-1] == self.size:
            return found
        found &= ~np.isposinf(point[:, -1])
        # Far out on a ridge that rises to infinity the gradient and even the Newton step fall below
        # any tolerance; what gives it away is its curvature.
        finite = np.where(np.isfinite(point), point, 0.0)
        far = np.ptp(finite[:, : self.size], axis=-1) + np.abs(finite[:, -1]) > _FAR
        if (rows := np.flatnonzero(found & far)).size:
            found[rows] = ~self.take(rows).is_flat(point[rows])
        return found


def pair_counts(
    likelihood: PairLikelihood,
    wins: ArrayLike,
    ties: ArrayLike = 0.0,
    *,
    prior_mean: ArrayLike = 0.0,
    prior_precision: ArrayLike = 0.0,
    tie_mean: float = 0.0,
    tie_precision: float = 0.0,
) -> PairCounts:
    """Build the log-posterior of paired comparisons under normal priors.

    For ``wins[..., i, j]``, how often i beat j, and symmetric ties, both of shape (..., system,
    opponent), where leading axes are resamples. Prior means of the zero-sum scores are of shape
    (..., system), precisions of shape (...); a precision of 0 is flat.
    """
    checked_precision("tie_precision", tie_precision)
    won, tied = likelihood.sides(wins, ties)
    prior = NormalScores.of(prior_mean, prior_precision, np.shape(wins)[:-2], won.shape[-1])
    return PairCounts(prior, likelihood, won, tied, tie_mean, tie_precision)


def fit_pairs(
    likelihood: PairLikelihood, wins: ArrayLike, ties: ArrayLike = 0.0, **priors: Any
) -> Fit:
    """Fit a model of paired comparisons with the normal priors of :func:`pair_counts`.

    Free coordinates are the scores, which sum to zero, then the tie parameter where it is
    estimated; ``parameters["tie_strength"]`` is its exponential.
    """
    problem = pair_counts(likelihood, wins, ties, **priors)
    weight = 1.0 if likelihood.points_suffice else _IRRATIONAL[0]

    def tables() -> Array:
        if likelihood.points_suffice:
            return problem.n_pairs
        return problem.n_pairs + weight * problem.won + _IRRATIONAL[1] * problem.tied

    def unpack(free: Array) -> dict[str, Array]:
        score = free[..., : problem.size]
        return {"score": score} | likelihood.names(score, free[..., problem.size :])

    free_tie = likelihood.start is not None
    moved = partial(displace, positive=likelihood.positive) if free_tie else np.add
    return fit_scores(
        problem,
        _start_of(problem),
        np.shape(wins)[:-2],
        totals=problem.points + weight * problem.prior.pull,
        pairs=tables,
        exists=problem.exists,
        unpack=unpack,
        displace=moved,
    )


def _start_of(problem: PairCounts) -> Array:
    """Return where to begin, of shape (resample, p)."""
    likelihood, points, played = problem.likelihood, problem.points, problem.played
    if likelihood.start is None:
        if likelihood.log_tie is not None:
            # A narrow threshold: scores are those of not having lost.
            tied = problem.tied.sum(axis=-1)
            points, played = points + tied, played + 2.0 * tied
        scores = first_scores(points, played)
        return scores * _strength_of_log_odds(scores, likelihood.unit)
    scores, ties = first_scores(points, played), 2.0 * problem.tied.sum(axis=-1)
    n_sides = played.sum(axis=-1)
    share = ties.sum(axis=-1) / np.where(n_sides > 0.0, n_sides, 1.0)
    factor, tie = likelihood.begin(share, proper=problem.tie_precision > 0.0)
    return np.concatenate([scores * factor[:, np.newaxis], tie], axis=1)


def _strength_of_log_odds(log_odds: Array, unit: float) -> Array:
    """Return by what to multiply the log-odds of all comparisons for scores in some unit.

    The odds of a system are those against the others, whose mean strength is further away than the
    mean of all. The share that grows with the spread is fitted to simulated data.
    """
    size = log_odds.shape[-1]
    factor = unit * (1.0 - 1.0 / size)
    spread = np.vecdot(log_odds, log_odds)[:, np.newaxis]
    return factor + factor / (60.0 * size) * spread
