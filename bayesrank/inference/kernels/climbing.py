r"""Newton's method for objectives that are not concave: it climbs, whatever the curvature.

Each step solves :math:`(H + \lambda D) s = g` with the exact negative Hessian :math:`H` and the
diagonal :math:`D` of the expected one. :math:`\lambda` is 0 as long as Newton's own steps gain what
they should, rises until a step does and falls back after it (Levenberg and Marquardt), so that
every step near a maximum is an exact Newton step and convergence is quadratic. The criteria of
convergence are those of :mod:`bayesrank.inference.kernels.newton`.
"""

from collections.abc import Callable
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.kernels.newton import (
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


class SmoothProblem(Protocol):
    """What :func:`climb` needs from a model: batched arrays whose first axis is the resample."""

    def scale(self, point: Array) -> Array:
        """Return the count scale of the gradient, of shape (resample,)."""
        ...

    def value(self, point: Array) -> Array:
        """Return the objective, of shape (resample,)."""
        ...

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        ...

    def system(self, point: Array) -> tuple[Array, Callable[[float], Array]]:
        """Return the gradient, and a function from the damping to the step."""
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

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some of the resamples."""
        ...


def climb(problem: SmoothProblem, start: Array, *, max_iterations: int = MAX_ITERATIONS) -> Optimum:
    """Climb to a local maximum of every objective in a batch, one after the other.

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
    point = np.array(start, dtype=np.float64)
    settled = np.zeros(len(point), dtype=bool)
    iterations = np.zeros(len(point), dtype=np.int64)
    for row in range(len(point)):
        one = slice(row, row + 1)
        point[one], settled[row], iterations[row] = _climb_one(
            problem.take(one), point[one], max_iterations
        )
    gradient = np.where(problem.held(point), 0.0, problem.gradient(point))
    gradient = along(gradient, problem.constraint(point))
    gradient_norm = np.abs(gradient).max(axis=-1) / np.maximum(problem.scale(point), 1e-300)
    converged = settled & (gradient_norm <= GRADIENT_TOLERANCE)
    return Optimum(point, converged, iterations, gradient_norm)


def _climb_one(
    problem: SmoothProblem, point: Array, max_iterations: int
) -> tuple[Array, bool, int]:
    """Return the point, whether its last step was small, and the number of iterations."""
    level, before, damping = float(problem.value(point)[0]), 0.0, 0.0
    for iteration in range(1, max_iterations + 1):
        found = _damped_step(problem, point, level, damping)
        if found is None:
            return point, False, iteration
        point, level, moved, damping = found
        newton = damping == 0.0
        if newton and (moved <= _LAST_STEP or moved**3 <= ERROR_TOLERANCE * before**2):
            return point, True, iteration
        before = moved if newton else 0.0
        damping = damping * _LESS if damping * _LESS >= _LEAST_DAMPING else 0.0
        if moved > _SETTLED:  # nearer to the maximum Newton's own steps see to everything
            settled = problem.settle(point)
            if settled is not point:
                point, level = settled, float(problem.value(settled)[0])
    return point, False, max_iterations


def _damped_step(
    problem: SmoothProblem, point: Array, level: float, damping: float
) -> tuple[Array, float, float, float] | None:
    """Raise the damping until a step gains enough.

    Returns the new point, its objective, the longest coordinate of the step and the damping; None
    where no step gains anything.
    """
    gradient, solve = problem.system(point)
    while damping <= _MOST_DAMPING:
        step = solve(damping)
        moved = min(float(np.abs(step).max()), _ENDLESS)
        promised = float((gradient * step).sum())
        if moved <= _LAST_STEP:  # rounding decides what such a step gains
            return problem.restore(point + step), level, moved, damping
        if moved <= _LONGEST and promised > 0.0:
            proposal = problem.restore(point + step)
            reached = float(problem.value(proposal)[0])
            enough = level + _SUFFICIENT * promised
            if reached >= enough or promised <= _ROUNDING * abs(level):
                return proposal, reached, moved, damping
        damping = max(_MORE * damping, _LEAST_DAMPING)
    return None
