"""The result of a kernel: an optimum, its curvature, and Gaussian draws around it.

Objectives of scores that sum to zero, with their priors and Newton systems, and their fits.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import NoFiniteEstimate
from bayesrank.inference.fits.newton import (
    ERROR_TOLERANCE,
    Array,
    ConcaveProblem,
    Objective,
    Optimum,
    maximise,
    solve_or_nan,
)
from bayesrank.log_odds import smoothed_log_odds
from bayesrank.priors import NormalPrior

if TYPE_CHECKING:
    from bayesrank.inference.fits.bordered import Bordered

# Share of the largest variance, or of the count scale for a curvature, that is rounding.
_FLAT = 1e-12
# Parameters of the largest matrix that is written out in full if there is another way: 32 MB, and
# seconds for its eigenvectors.
MOST_DENSE = 2000
# Scores that differ by less are equal within the error of their fits, at most `ERROR_TOLERANCE`.
_RESOLUTION = 10.0 * ERROR_TOLERANCE
# A single matrix from this size on is solved by its triangles: SciPy takes longer to load than
# smaller ones take.
_MANY = 200


@dataclass(frozen=True)
class Unit:
    """The unit of scores, a common factor that only the penalties identify."""

    # How the free coordinates rise with the log of the factor, of shape (..., p).
    way: Array
    # Standard deviation of that log by the curvature of the penalties, of shape (...).
    spread: Array
    # Turns standard normal draws, (draw, ...), with scores in the unit of the estimate, (draw, ...,
    # system), into logs of the factor. None where the unit is a convention that all fits keep.
    draw: Callable[[Array, Array], Array] | None


@dataclass(frozen=True)
class Fit:
    """An optimum found by a kernel, batched over leading resample axes."""

    # Of shape (..., system). Higher is better; paired and Luce scores sum to zero.
    score: Array
    # The others on their natural scale, for example ``difficulty`` (..., question).
    parameters: dict[str, Array]
    # As in :class:`Optimum`, of shape (...); not converged, too, where the optimum is no single
    # finite point as far as the kernel can tell.
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    gradient_norm: Array
    # The optimum in the free coordinates of the objective, of shape (..., p).
    free: Array
    # Maps free coordinates of shape (..., p) to a dict with ``score`` and the parameters.
    unpack: Callable[[Array], dict[str, Array]]
    # Returns the log-likelihood, of shape (...); called at most once.
    log_likelihood: Callable[[], Array]
    # Returns the information, (..., p, p), and the vectors, (..., p, constraint), whose product
    # with the free coordinates is held; called at most once.
    curvature: Callable[[], tuple[Array, Array]]
    # Moves the optimum by Gaussian deviations; a coordinate with a lower end stays above it.
    displace: Callable[[Array, Array], Array] = np.add
    # Scores (..., system) at the end of their range, of which only draws say how far others may be.
    at_end: NDArray[np.bool_] | None = None
    # Given which questions to leave out, (part, question), returns the scores of the others, (part,
    # system), fitted again from where this fit ended; NaN where they have no finite estimate. For
    # likelihoods whose influences of questions tell too little.
    without: Callable[[NDArray[np.bool_]], Array] | None = None
    # Given draws by name, lets systems and questions change places at random that the data cannot
    # distinguish, of whose equally high maxima the fit ended at one.
    exchange: Callable[[dict[str, Array], np.random.Generator], dict[str, Array]] | None = None
    # Given other numbers right and numbers of trials, (part, system, question), returns the scores
    # fitted to them, (part, system). For what no influence tells: small changes of the data that
    # decide among several maxima, or that move a reference.
    refit: Callable[[Array, Array], Array] | None = None
    # Returns the log-likelihood of single battles without priors, where it is not that of pairs.
    rows: Callable[[], Any] | None = None
    # Returns how the scores rise with the free coordinates, (system, p), where differences along so
    # many coordinates would take long.
    gradients: Callable[[], Array] | None = None
    # The unit of the scores, where the likelihood is the same in any.
    unit: Unit | None = None
    # Returns what draws and steps where there are too many coordinates for a whole information.
    gaussian: "Callable[[], Bordered] | None" = None

    @classmethod
    def at(
        cls,
        problem: Objective,
        optimum: Optimum,
        lead: tuple[int, ...],
        unpack: Callable[[Array], dict[str, Array]],
        *,
        exists: NDArray[np.bool_] | bool = True,
        blocks: "Callable[[Array], Bordered] | None" = None,
        **others: Any,
    ) -> Self:
        """Describe an optimum of a problem, with ties settled, for resamples of shape `lead`.

        `exists` is False where the data have no finite optimum. `blocks` returns the information at
        a point of one resample in blocks. Others are attributes of :class:`Fit`.
        """
        point, p = optimum.point, optimum.point.shape[-1]
        free = point.reshape(*lead, p)
        named = unpack(free)

        def curvature() -> tuple[Array, Array]:
            held = problem.held_rows(point)
            held = held[..., held.any(axis=(0, 1))]  # nothing is held where no question is kept
            held = np.broadcast_to(held, (len(point), *held.shape[1:]))
            information = problem.information(point).reshape(*lead, p, p)
            return information, held.reshape(*lead, p, held.shape[-1])

        given = {
            "score": named.pop("score"),
            "parameters": named,
            "converged": (optimum.converged & exists).reshape(lead),
            "iterations": optimum.iterations.reshape(lead),
            "gradient_norm": optimum.gradient_norm.reshape(lead),
            "free": free,
            "unpack": unpack,
            "log_likelihood": lambda: problem.loglik(point).reshape(lead),
            "curvature": curvature,
        }
        if blocks is not None and not lead and p > MOST_DENSE:
            given["gaussian"] = lambda: blocks(point)
        return cls(**(given | others))

    @cached_property
    def loglik(self) -> Array:
        """Log-likelihood of the data, (...), without penalties and binomial coefficients."""
        return self.log_likelihood()

    @property
    def information(self) -> Array:
        """Negative Hessian of the penalised objective, singular along what is held.

        A tie parameter at the edge of its range (no ties at all, or nothing but ties) has an
        infinite coordinate and a unit diagonal entry.
        """
        return self.geometry[0]

    @cached_property
    def geometry(self) -> tuple[Array, Array]:
        """The information and the held directions, as ``curvature`` returns them."""
        return self.curvature()

    def draw(self, n_draws: int, rng: np.random.Generator) -> dict[str, Array]:
        """Draw from the Gaussian approximation at the optimum (Laplace), by name, draws first."""
        blocks = None if self.gaussian is None else self.gaussian()
        if blocks is not None and blocks.has_definite_blocks:
            with identified():
                deviations = blocks.draw(n_draws, rng)
        else:  # a block may be indefinite only across what is held
            deviations = gaussian_draws(*self.geometry, n_draws, rng)
        drawn = self.moved(deviations, rng)
        return drawn if self.exchange is None else self.exchange(drawn, rng)

    def move(self, gradients: Array, rng: np.random.Generator) -> dict[str, Array]:
        """Return the parameters one Newton step away, for gradients of shape (step, p).

        They are those of the objective for other data; `rng` draws what gradients do not move.
        """
        return self.moved(self.steps(gradients), rng)

    def moved(self, deviations: Array, rng: np.random.Generator) -> dict[str, Array]:
        """Return the parameters at deviations of the free coordinates, of shape (..., p)."""
        return self.unpack(self.displace(self.free, deviations))

    def steps(self, gradients: Array) -> Array:
        """Return Newton steps of a fit of one data set, for gradients of shape (step, p)."""
        with identified():
            if self.gaussian is None:
                return constrained_steps(*self.geometry, gradients)
            return self.gaussian().steps(gradients)


def gaussian_draws(
    information: Array, constraints: Array, n_draws: int, rng: np.random.Generator
) -> Array:
    r"""Draw deviations from a Gaussian with a given precision, held to linear constraints.

    The density is proportional to :math:`\exp(-x^\top H x / 2)` on the space :math:`C^\top x = 0`,
    for `information` H of shape (..., p, p), which may have any curvature outside that space, and
    `constraints` C of shape (..., p, constraint) with orthogonal columns. Returns (draw, ..., p);
    NoFiniteEstimate if a matrix is not positive definite on the constrained space.
    """
    normals = rng.standard_normal((n_draws, *information.shape[:-1]))
    matrix = anchored(information, constraints)
    try:
        root = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:  # possibly only across the constraints
        matrix = anchored(along(information, constraints), constraints)
        with identified():
            root = np.linalg.cholesky(matrix)
    # One solve for all draws of a matrix: put the draws last, where solve wants its columns.
    columns = np.moveaxis(normals, 0, -1)
    sides = np.broadcast_to(constraints, (*matrix.shape[:-1], constraints.shape[-1]))
    if matrix.ndim > 2 or len(matrix) < _MANY:
        draws = np.linalg.solve(np.swapaxes(root, -1, -2), columns)
        spread = np.linalg.solve(matrix, sides)
    else:
        from scipy.linalg import cho_solve, solve_triangular

        draws = solve_triangular(root, columns, lower=True, trans=1)
        spread = cho_solve((root, True), sides)
    return np.moveaxis(_held(draws, spread, constraints), -1, 0)


def merge_noise(scores: Array) -> Array:
    """Make scores in logits, (resample, system), equal if they differ by less than the resolution.

    Systems that the data cannot distinguish tie: where the objective is concave, its maximum has
    their scores equal, whether two can be swapped or three rotated. The tolerance is absolute:
    relative to the largest score it would rank the rounding errors of a cycle, in which all scores
    are 0.

    Examples
    --------
    >>> merge_noise(np.array([[1e-17, 0.5, -1e-17]]))
    array([[-1.e-17,  5.e-01, -1.e-17]])
    """
    ordered = np.sort(scores, axis=-1)
    close = ordered[:, 1:] - ordered[:, :-1] <= _RESOLUTION
    if not np.count_nonzero(close):
        return scores
    places = np.where(np.pad(close, ((0, 0), (1, 0))), 0, np.arange(scores.shape[-1]))
    merged = np.take_along_axis(ordered, np.maximum.accumulate(places, axis=-1), axis=-1)
    found = np.empty_like(scores)
    np.put_along_axis(found, np.argsort(scores, axis=-1), merged, axis=-1)
    return found


@contextmanager
def identified() -> Iterator[None]:
    """Return the error, with a remedy, for a curvature that is not positive."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise NoFiniteEstimate(
            "model must be identified at the optimum for draws around it; its curvature is not "
            "positive there. Give it a proper prior, use backend='nuts', or draws=0 for the "
            "estimate only"
        ) from error


def constrained_steps(information: Array, constraints: Array, gradients: Array) -> Array:
    """Solve H x = g on the space of linear constraints, for gradients g of shape (step, p)."""
    matrix = anchored(information, constraints)
    columns = np.linalg.solve(matrix, np.concatenate([gradients.T, constraints], axis=1))
    return _held(columns[:, : len(gradients)], columns[:, len(gradients) :], constraints).T


def _held(columns: Array, spread: Array, constraints: Array) -> Array:
    """Move columns onto the constrained space, along the metric of a matrix.

    `spread` is what its inverse makes of the constraints.
    """
    if not constraints.shape[-1]:
        return columns
    across = np.swapaxes(constraints, -1, -2)
    columns = columns - spread @ np.linalg.solve(across @ spread, across @ columns)
    # Once more along the constraints, to remove rounding errors.
    lengths = (constraints**2).sum(axis=-2)[..., None]
    return columns - constraints @ ((across @ columns) / lengths)


def anchored(information: Array, constraints: Array) -> Array:
    """Return an information matrix made regular along the constraints.

    Adding a multiple of a constraint's outer product leaves the density on the constrained space
    alone; a multiple of the size of the diagonal keeps the matrix well conditioned.
    """
    unit = _unit(constraints)
    size = np.einsum("...ii->...", information)[..., None, None] / max(information.shape[-1], 1)
    return information + size * (unit @ np.swapaxes(unit, -1, -2))


def along(information: Array, constraints: Array) -> Array:
    """Return an information matrix projected onto the constrained space."""
    unit = _unit(constraints)
    inside = np.eye(information.shape[-1]) - unit @ np.swapaxes(unit, -1, -2)
    return inside @ information @ inside


def _unit(constraints: Array) -> Array:
    return constraints / np.sqrt((constraints**2).sum(axis=-2, keepdims=True))


def symmetric_root(covariance: Array) -> Array:
    """Return the symmetric root of a covariance that may be singular.

    Variances that are rounding beside the largest are zero. Unlike other roots it does not hang on
    the signs of eigenvectors, nor on which of them span a space.
    """
    values, vectors = np.linalg.eigh(covariance)
    values = np.where(values > _FLAT * values[-1:], values, 0.0)
    return (vectors * np.sqrt(values)) @ vectors.T


def zero_sum(prior: NormalPrior, size: int) -> NormalPrior:
    """Return a prior on so many scores that sum to zero: its means, (system,), sum to zero too."""
    return NormalPrior(centred(np.zeros(size) + prior.mean), prior.precision)


@dataclass(frozen=True)
class ZeroSumScores(ConcaveProblem, ABC):
    """A concave penalised log-likelihood whose first coordinates are the scores, with a prior."""

    # With a mean for each system, of `zero_sum`.
    prior: NormalPrior
    # Attributes with an axis of resamples.
    by_resample: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def size(self) -> int:
        """Number of systems."""
        return np.size(self.prior.mean)

    @property
    def states(self) -> list[slice]:
        """Coordinates of the scores that sum to zero, for each state."""
        return [slice(0, self.size)]

    @abstractmethod
    def expand(self, point: Array) -> tuple[Array, Callable[[], Array]]:
        """Return the gradient of the objective, and a function for its negative Hessian."""

    def take(self, index: NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        parts = {name: getattr(self, name)[index] for name in self.by_resample}
        return replace(self, **parts)

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        return self.expand(point)[0]

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        return self.expand(point)[1]()

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, p), NaN where the curvature is singular."""
        gradient, information = self.expand(point)
        matrix = information()
        if not self.prior.precision:  # singular along the shift of all scores: make it regular
            diagonal = diagonals(matrix)
            # A parameter without data has a zero row, which would make the whole batch fail.
            if diagonal.min() <= 0.0:
                diagonal += diagonal <= 0.0
            # Any rank-one term along the diagonal removes the singularity. Weights by the diagonal
            # keep the precision of parameters with little information.
            weights = diagonal[:, : self.size].copy()
            shares = weights / np.add.reduce(weights, axis=-1, keepdims=True)
            scores = matrix[:, : self.size, : self.size]
            scores += weights[:, :, None] * shares[:, None, :]
        return solve_or_nan(matrix, gradient[:, :, None])[:, :, 0]

    def reach(self, point: Array, step: Array) -> Array:
        """Return the largest change of the log-odds of two outcomes by a step."""
        scores = step[:, : self.size]
        reach = np.maximum.reduce(scores, axis=-1) - np.minimum.reduce(scores, axis=-1)
        return reach if step.shape[-1] == self.size else reach + np.abs(step[:, -1])

    def held_rows(self, point: Array) -> Array:
        """Return the zero-sum constraint of each state, of shape (1, p, state)."""
        held = np.zeros((1, point.shape[-1], len(self.states)))
        for column, state in enumerate(self.states):
            held[0, state, column] = 1.0
        return held

    def is_flat(self, point: Array) -> NDArray[np.bool_]:
        """Return where the curvature vanishes in some direction: a ridge that rises to infinity."""
        matrix = anchored(self.information(point), self.held_rows(point))
        matrix[~np.isfinite(matrix).all(axis=(1, 2))] = 0.0  # where a fit diverged
        return np.linalg.eigvalsh(matrix)[:, 0] <= _FLAT * self.scale(point)


def fit_scores(
    problem: ZeroSumScores,
    start: Array,
    lead: tuple[int, ...],
    *,
    exists: Callable[[Array], NDArray[np.bool_]],
    unpack: Callable[[Array], dict[str, Array]] = lambda free: {"score": free},
    **others: Any,
) -> Fit:
    """Maximise an objective of zero-sum scores from points of shape (resample, p), and settle ties.

    `exists` returns which of the points found are finite maxima without the prior.
    """
    optimum = maximise(problem, start)
    point, size = optimum.point, problem.size
    point[:, :size] = centred(merge_noise(point[:, :size]))
    found = True if problem.prior.precision else exists(point)
    return Fit.at(problem, optimum, lead, unpack, exists=found, **others)


def first_scores(points: Array, played: Array) -> Array:
    """Return starting values: smoothed log-odds of the points won in all comparisons."""
    return centred(smoothed_log_odds(points, played))


def centred(scores: Array) -> Array:
    """Return scores minus their mean."""
    return scores - np.add.reduce(scores, axis=-1, keepdims=True) / scores.shape[-1]


def diagonals(matrices: Array) -> Array:
    """Return a view of the diagonals of contiguous matrices, ten times faster than np.einsum."""
    return matrices.reshape(len(matrices), -1)[:, :: matrices.shape[-1] + 1]
