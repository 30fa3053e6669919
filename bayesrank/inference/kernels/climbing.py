r"""Newton's method for objectives that are not concave: it climbs, whatever the curvature.

Each step solves :math:`(H + \lambda D) s = g` with the exact negative Hessian :math:`H` and the
diagonal :math:`D` of the expected one. :math:`\lambda` is 0 as long as Newton's own steps gain what
they should, rises until a step does and falls back after it (Levenberg and Marquardt), so that
every step near a maximum is an exact Newton step and convergence is quadratic. The criteria of
convergence are those of :mod:`bayesrank.inference.kernels.newton`.

Resamples climb side by side, each with its own damping: for one small model, calls into NumPy take
most of the time.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.kernels.newton import (
    CACHE_CELLS,
    ERROR_TOLERANCE,
    GRADIENT_TOLERANCE,
    Optimum,
    along,
)
from bayesrank.inference.kernels.penalty import Array

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


Rows = slice | NDArray[np.intp]


class SmoothProblem(Protocol):
    """What :func:`climb` needs from a model: batched arrays whose first axis is the resample."""

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

    def take(self, index: Rows) -> Self:
        """Return the problem of some of the resamples."""
        ...


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
    cuts = [slice(first, first + size) for first in range(0, len(start), size)]
    parts = [
        _climb_piece(_some(problem, cut, len(start)), start[cut], max_iterations) for cut in cuts
    ]
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
    point, size = np.array(start, dtype=np.float64), len(start)
    settled, iterations = np.zeros(size, dtype=bool), np.zeros(size, dtype=np.int64)
    level, before, damping = problem.value(point), np.zeros(size), np.zeros(size)
    climbing, some = np.arange(size), problem
    for _ in range(max_iterations):
        iterations[climbing] += 1
        found = _damped_steps(some, point[climbing], level[climbing], damping[climbing])
        point[climbing], level[climbing] = found.point, found.level
        newton = found.damping == 0.0
        last = (found.moved <= _LAST_STEP) | (
            found.moved**3 <= ERROR_TOLERANCE * before[climbing] ** 2
        )
        last &= newton & found.gained
        settled[climbing] = last
        before[climbing] = np.where(newton, found.moved, 0.0)
        less = found.damping * _LESS
        damping[climbing] = np.where(less >= _LEAST_DAMPING, less, 0.0)
        goes_on = found.gained & ~last
        if not goes_on.all():
            climbing = climbing[goes_on]
            if not climbing.size:
                break
            some = problem.take(climbing)
        # Nearer to the maximum Newton's own steps see to everything.
        far = np.flatnonzero(found.moved[goes_on] > _SETTLED)
        if far.size:
            of_far = _some(some, far, len(climbing))
            settling = of_far.settle(point[climbing[far]])
            point[climbing[far]], level[climbing[far]] = settling, of_far.value(settling)
    return point, settled, iterations


def _damped_steps(problem: SmoothProblem, point: Array, level: Array, damping: Array) -> _Stepped:
    """Raise the damping of every resample until its step gains enough."""
    gradient, solve = problem.system(point)
    size, level, damping = len(point), level.copy(), damping.copy()
    reached, moved, gained = point.copy(), np.zeros(size), np.zeros(size, dtype=bool)
    open_rows = np.arange(size)
    while open_rows.size:
        some = _some(problem, open_rows, size)
        step = solve(damping[open_rows], open_rows)
        longest = np.minimum(np.abs(step).max(axis=-1), _ENDLESS)  # NaN stays, and fails
        promised = (gradient[open_rows] * step).sum(axis=-1)
        small = longest <= _LAST_STEP  # rounding decides what such a step gains
        tried = small | ((longest <= _LONGEST) & (promised > 0.0))
        taken = small.copy()
        if tried.any():
            rows = np.flatnonzero(tried)
            of_tried = _some(some, rows, len(open_rows))
            proposal = of_tried.restore(point[open_rows[rows]] + step[rows])
            there = of_tried.value(proposal)
            here, gain = level[open_rows[rows]], promised[rows]
            enough = there >= here + _SUFFICIENT * gain
            enough |= (gain <= _ROUNDING * np.abs(here)) | small[rows]
            taken[rows] = enough
            to = open_rows[rows[enough]]
            reached[to] = proposal[enough]
            level[to] = np.where(small[rows], here, there)[enough]
        moved[open_rows] = longest
        gained[open_rows[taken]] = True
        open_rows = open_rows[~taken]
        damping[open_rows] = np.maximum(_MORE * damping[open_rows], _LEAST_DAMPING)
        open_rows = open_rows[damping[open_rows] <= _MOST_DAMPING]
    return _Stepped(reached, level, moved, damping, gained)


def _some(problem: SmoothProblem, rows: Rows, size: int) -> SmoothProblem:
    """Return the problem of some resamples: itself, where these are all."""
    if isinstance(rows, slice):
        return problem if rows.start == 0 and rows.stop >= size else problem.take(rows)
    return problem if len(rows) == size else problem.take(rows)
