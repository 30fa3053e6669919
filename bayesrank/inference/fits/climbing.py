r"""Newton's method for objectives that are not concave: it climbs, whatever the curvature.

Each step solves :math:`(H + \lambda D) s = g` with the exact negative Hessian :math:`H` and the
diagonal :math:`D` of the expected one. :math:`\lambda` is 0 as long as Newton's own steps gain what
they should, rises until a step does and falls back after it (Levenberg and Marquardt), so that
every step near a maximum is an exact Newton step and convergence is quadratic. The criteria of
convergence are those of :mod:`bayesrank.inference.fits.newton`.

Resamples climb side by side, each with its own damping: for one small model, calls into NumPy take
most of the time.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.newton import (
    CACHE_CELLS,
    ERROR_TOLERANCE,
    GRADIENT_TOLERANCE,
    Optimum,
    along,
)
from bayesrank.inference.fits.penalty import Array

MAX_ITERATIONS = 500
_LAST_STEP = 1e-8
# Share of the gain promised by the gradient that a step must deliver (Armijo).
_SUFFICIENT = 0.25
# Promises below this share of the objective drown in its rounding; such steps are taken on trust.
_ROUNDING = 1e-11
# Longest step in any coordinate, all of which are on a log or logit scale.
_LONGEST = 3.0
_ENDLESS = 1e50
_SETTLED = 1e-3
_LEAST_DAMPING = 1e-6
_MOST_DAMPING = 1e8
_MORE, _LESS = 8.0, 0.1


class SmoothProblem(Protocol):
    """What :func:`climb` needs from a model: batched arrays whose first axis is the resample."""

    @property
    def size(self) -> int:
        """Number of resamples."""
        ...

    @property
    def cells(self) -> int:
        """Number of array cells that one resample needs."""
        ...

    def scale(self, point: Array) -> Array:
        """Return the count scale of the gradient, of shape (resample,)."""
        ...

    def value(self, point: Array) -> Array:
        """Return the objective, of shape (resample,)."""
        ...

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        ...

    def system(self, point: Array) -> tuple[Array, Callable[[Array, NDArray[np.intp]], Array]]:
        """Return the gradient, and a function from the damping of some resamples to their steps."""
        ...

    def restore(self, point: Array) -> Array:
        """Return the nearest point that meets the constraint."""
        ...

    def settle(self, point: Array) -> Array:
        """Make far moves that Newton's steps would be slow to make, without loss."""
        ...

    def held(self, point: Array) -> NDArray[np.bool_]:
        """Say which coordinates have their maximum at infinity, of shape (resample, p)."""
        ...

    def constraint(self, point: Array) -> Array:
        """Return the gradient of what is held at zero, of shape (resample, p)."""
        ...

    def take(self, index: NDArray[np.intp]) -> Self:
        """Return the problem of some of the resamples."""
        ...


class Unbounded:
    """The far moves of a :class:`SmoothProblem` that makes none: its maximum is finite."""

    def restore(self, point: Array) -> Array:
        """Return the point: steps keep what is held."""
        return point

    def settle(self, point: Array) -> Array:
        """Return the point: Newton's steps do all."""
        return point

    def held(self, point: Array) -> NDArray[np.bool_]:
        """Return that no maximum is at infinity, of shape (resample, p)."""
        return np.zeros(point.shape, dtype=bool)

    def held_rows(self, point: Array) -> Array:
        """Return that no linear function of the point is held, of shape (resample, p, 0)."""
        return np.zeros((*point.shape, 0))


class _Stepped(NamedTuple):
    """Where damped steps led, one row per resample.

    Attributes
    ----------
    point, level : numpy.ndarray of shape (resample, p) and (resample,)
        The new point, and the objective there.
    moved : numpy.ndarray of shape (resample,)
        Longest coordinate of the step.
    damping : numpy.ndarray of shape (resample,)
        Damping of the step.
    gained : numpy.ndarray of bool and shape (resample,)
        False where no step gains anything.
    """

    point: Array
    level: Array
    moved: Array
    damping: Array
    gained: NDArray[np.bool_]


def climb(problem: SmoothProblem, start: Array, *, max_iterations: int = MAX_ITERATIONS) -> Optimum:
    """Climb to a local maximum of every objective in a batch.

    Parameters
    ----------
    problem : SmoothProblem
        The batch.
    start : numpy.ndarray of shape (resample, p)
        Where to begin; the maximum reached is never below it.
    max_iterations : int, default 500
        Iterations after which a resample is given up and flagged.

    Returns
    -------
    Optimum
    """
    size = max(1, CACHE_CELLS // problem.cells)
    cuts = [np.arange(len(start))[first : first + size] for first in range(0, len(start), size)]
    parts = [_climb_piece(_some(problem, cut), start[cut], max_iterations) for cut in cuts]
    point, settled, iterations = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    gradient = np.where(problem.held(point), 0.0, problem.gradient(point))
    gradient = along(gradient, problem.constraint(point))
    gradient_norm = np.abs(gradient).max(axis=-1) / np.maximum(problem.scale(point), 1e-300)
    converged = settled & (gradient_norm <= GRADIENT_TOLERANCE)
    return Optimum(point, converged, iterations, gradient_norm)


def _climb_piece(
    problem: SmoothProblem, start: Array, max_iterations: int
) -> tuple[Array, NDArray[np.bool_], NDArray[np.int64]]:
    """Return the points, whether their last steps were small, and the numbers of iterations."""
    ends, size = np.array(start, dtype=np.float64), len(start)
    settled, iterations = np.zeros(size, dtype=bool), np.full(size, max_iterations)
    # Of those that are still climbing:
    rows, point, level = np.arange(size), ends, problem.value(ends)
    before = damping = np.zeros(size)
    for iteration in range(1, max_iterations + 1):
        point, level, moved, damping, gained = _damped_steps(problem, point, level, damping)
        newton = damping == 0.0
        last = (moved <= _LAST_STEP) | (moved**3 <= ERROR_TOLERANCE * before**2)
        last &= newton & gained
        before = np.where(newton, moved, 0.0)
        damping = np.where(damping * _LESS >= _LEAST_DAMPING, damping * _LESS, 0.0)
        goes_on = gained & ~last
        if not goes_on.all():
            done = rows[~goes_on]
            ends[done], settled[done] = point[~goes_on], last[~goes_on]
            iterations[done] = iteration
            left = np.flatnonzero(goes_on)
            if not left.size:
                return ends, settled, iterations
            rows, problem = rows[left], problem.take(left)
            point, level, moved = point[left], level[left], moved[left]
            before, damping = before[left], damping[left]
        # Nearer to the maximum Newton's own steps see to everything.
        far = np.flatnonzero(moved > _SETTLED)
        if far.size:
            of_far, farther = _some(problem, far), point[far]
            settling = of_far.settle(farther)
            if settling is not farther:
                point[far], level[far] = settling, of_far.value(settling)
    ends[rows] = point
    return ends, settled, iterations


def _damped_steps(problem: SmoothProblem, point: Array, level: Array, damping: Array) -> _Stepped:
    """Raise the damping of every resample until its step gains enough."""
    gradient, solve = problem.system(point)
    nowhere = np.zeros(len(point))
    found = _Stepped(point.copy(), level.copy(), nowhere, damping.copy(), nowhere > 0.0)
    rows, here, slope = np.arange(len(point)), point, gradient
    while True:
        step = solve(damping, rows)
        moved = np.minimum(np.abs(step).max(axis=-1), _ENDLESS)  # NaN stays, and fails
        promised = (slope * step).sum(axis=-1)
        small = moved <= _LAST_STEP  # rounding decides what such a step gains
        tried = np.flatnonzero(small | ((moved <= _LONGEST) & (promised > 0.0)))
        taken = np.zeros(len(rows), dtype=bool)
        if tried.size:
            some = _some(problem, tried)
            proposal = some.restore(here[tried] + step[tried])
            reached, base, gain = some.value(proposal), level[tried], promised[tried]
            enough = reached >= base + _SUFFICIENT * gain
            enough |= (gain <= _ROUNDING * np.abs(base)) | small[tried]
            taken[tried] = enough
            to = rows[tried[enough]]
            found.point[to] = proposal[enough]
            found.level[to] = np.where(small[tried], base, reached)[enough]
        found.moved[rows] = moved
        found.gained[rows[taken]] = True
        if taken.all():
            return found
        more = np.maximum(_MORE * damping, _LEAST_DAMPING)
        left = np.flatnonzero(~taken & (more <= _MOST_DAMPING))
        if not left.size:
            return found
        rows, here, slope, level = rows[left], here[left], slope[left], level[left]
        damping, problem = more[left], _some(problem, left)
        found.damping[rows] = damping


def _some(problem: SmoothProblem, rows: NDArray[np.intp]) -> SmoothProblem:
    """Return the problem of some resamples: itself, where these are all."""
    return problem if len(rows) == problem.size else problem.take(rows)
