"""Concave log-likelihoods of scores that sum to zero, under a normal prior, and their fits."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.bordered import solve_or_nan
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit, Objective, anchored, zero_sum
from bayesrank.inference.fits.log_odds import smoothed_log_odds
from bayesrank.inference.fits.newton import ConcaveProblem, maximise
from bayesrank.inference.fits.penalty import Array, checked_precision, flattened

# Share of the count scale below which a curvature is none.
_FLAT = 1e-12


@dataclass(frozen=True)
class NormalScores:
    """A normal prior on zero-sum scores: centred means, (resample, system), and precisions.

    These are of shape (resample,), 0 for none.
    """

    mean: Array
    precision: Array

    @classmethod
    def of(cls, mean: ArrayLike, precision: ArrayLike, lead: tuple[int, ...], size: int) -> Self:
        """Check a prior and spread it over flattened resamples."""
        precisions = flattened(checked_precision("prior_precision", precision), lead)
        means = np.asarray(mean, dtype=np.float64)
        if means.ndim == 0:  # one mean of all is none
            return cls(np.zeros((len(precisions), size)), precisions)
        return cls(centred(flattened(means, (*lead, size)).reshape(-1, size)), precisions)

    @cached_property
    def given(self) -> bool:
        """Whether any resample has a prior."""
        return bool(np.count_nonzero(self.precision))

    @cached_property
    def flat(self) -> NDArray[np.bool_] | None:
        """Which resamples have none, of shape (resample, 1); None if no one."""
        if np.count_nonzero(self.precision) == len(self.precision):
            return None
        return self.precision[:, np.newaxis] == 0.0

    def take(self, index: NDArray[np.intp]) -> Self:
        """Return the priors of some resamples."""
        return type(self)(self.mean[index], self.precision[index])

    @cached_property
    def weight(self) -> Array:
        """The precisions as a column."""
        return self.precision[:, np.newaxis]

    @cached_property
    def pull(self) -> Array:
        """What the prior adds to the coefficients of the scores, of shape (resample, system)."""
        return self.weight * self.mean

    def gradient(self, scores: Array) -> Array:
        """Return the gradient of the log-density, of shape (resample, system)."""
        return self.pull - self.weight * scores


@dataclass(frozen=True)
class ZeroSumScores(ConcaveProblem, Objective, ABC):
    """A penalised log-likelihood, as :func:`maximise` takes it: concave, of differences of scores.

    Attributes
    ----------
    prior : NormalScores
        Prior on the scores, which are the first coordinates.
    """

    prior: NormalScores
    # Attributes with an axis of resamples.
    by_resample: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def size(self) -> int:
        """Number of systems."""
        return self.prior.mean.shape[-1]

    @property
    def states(self) -> list[slice]:
        """Where scores are that sum to zero."""
        return [slice(0, self.size)]

    @abstractmethod
    def expand(self, point: Array) -> tuple[Array, Callable[[], Array]]:
        """Return the gradient of the objective, and a function for its negative Hessian."""

    def take(self, index: NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        parts = {name: getattr(self, name)[index] for name in self.by_resample}
        return replace(self, prior=self.prior.take(index), **parts)

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        return self.expand(point)[0]

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        return self.expand(point)[1]()

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, p)."""
        gradient, information = self.expand(point)
        return solve_zero_sum(information(), gradient, self.size, self.prior.flat)

    def held_rows(self, point: Array) -> Array:
        """Return that the scores of each state have a sum, of shape (1, p, state)."""
        return zero_sum(point.shape[-1], *self.states)[np.newaxis]

    def is_flat(self, point: Array) -> NDArray[np.bool_]:
        """Say where nothing falls in some direction: on a ridge that rises to infinity."""
        matrix = anchored(self.information(point), self.held_rows(point))
        matrix[~np.isfinite(matrix).all(axis=(1, 2))] = 0.0  # where a fit ran away
        return np.linalg.eigvalsh(matrix)[:, 0] <= _FLAT * self.scale(point)


def fit_scores(
    problem: ZeroSumScores,
    start: Array,
    lead: tuple[int, ...],
    *,
    totals: Array,
    exists: Callable[[Array], NDArray[np.bool_]],
    pairs: Callable[[], Array] | None = None,
    rows: Array | None = None,
    unpack: Callable[[Array], dict[str, Array]] = lambda free: {"score": free},
    **others: Any,
) -> Fit:
    """Maximise an objective of zero-sum scores from points of shape (resample, p), and settle ties.

    `totals`, `pairs` and `rows` are sufficient statistics as of
    :func:`~bayesrank.inference.fits.exact_ties.interchangeable`. `exists` says of the points
    reached where they are finite maxima without the prior. `unpack` and others are as in
    :class:`Fit`; free coordinates are those of the objective.
    """
    optimum = maximise(problem, start)
    point, size = optimum.point, problem.size
    point[:, :size] = centred(settle_ties(point[:, :size], totals, pairs, rows=rows))
    flat = problem.prior.flat
    found = True if flat is None else ~flat[:, 0] | exists(point)
    return Fit.at(problem, optimum, lead, unpack, exists=found, **others)


def first_scores(points: Array, played: Array) -> Array:
    """Return zero-sum scores to begin with: smoothed log-odds of a point, of all comparisons."""
    return centred(smoothed_log_odds(points, played))


def centred(scores: Array) -> Array:
    """Return scores less their mean."""
    return scores - np.add.reduce(scores, axis=-1, keepdims=True) / scores.shape[-1]


def diagonals(matrices: Array) -> Array:
    """Return a view of the diagonals of contiguous matrices; np.einsum takes ten times as long."""
    return matrices.reshape(len(matrices), -1)[:, :: matrices.shape[-1] + 1]


def solve_zero_sum(
    matrix: Array, gradient: Array, size: int, flat: NDArray[np.bool_] | None
) -> Array:
    """Solve for Newton steps, (resample, p), whose first `size` coordinates may shift together.

    The negative Hessians are overwritten; gradients have no part along the shift, and only where
    the prior is `flat`, (resample, 1), something needs fixing. Steps are NaN where the matrix is
    singular.
    """
    if flat is not None:
        diagonal = diagonals(matrix)
        # A parameter without data has a zero row, which must not stop the whole batch.
        if diagonal.min() <= 0.0:
            diagonal += diagonal <= 0.0
        # Any rank-one term along the diagonal makes the shift regular. Weighting it by the
        # diagonal keeps parameters of little information from drowning in the others.
        weights = diagonal[:, :size] * flat
        shares = weights / np.add.reduce(diagonal[:, :size], axis=-1, keepdims=True)
        scores = matrix[:, :size, :size]
        scores += weights[:, :, None] * shares[:, None, :]
    return solve_or_nan(matrix, gradient[:, :, None])[:, :, 0]
