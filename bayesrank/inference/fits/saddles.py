"""Climbing on from saddles, where Newton's method is content and the objective is not.

Systems that begin at the same ability have no reason to part on the way: steps keep them together,
up to a point from which nothing rises but along their difference.
"""

from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.climbing import MAX_ITERATIONS, SmoothProblem, climb
from bayesrank.inference.fits.newton import Optimum
from bayesrank.inference.fits.penalty import Array

# Saddles that a climb may come by; each is higher than the one before it.
_MOST_SADDLES = 10
# Share of the largest curvature below which a negative one is rounding.
_FLAT = 1e-9
# Share of the largest curvature by which two differ if the data tell their directions apart.
_ALIKE = 1e-6
# Longest coordinate of the way off a saddle.
_AWAY = 0.5
# Share of the objective by which a maximum is higher than another, or than a saddle.
_SAME_LEVEL = 1e-9
# Longest coordinate between the ends of two climbs to the same maximum.
_SAME_PLACE = 1e-4


class CurvedProblem(SmoothProblem, Protocol):
    """A problem that knows its curvature."""

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        ...

    def held_rows(self, point: Array) -> Array:
        """Return what of a point is held, of shape (resample, p, held)."""
        ...

    def definite(self, point: Array) -> NDArray[np.bool_]:
        """Say where the information is positive definite along what is not held, (resample,)."""
        ...


def climb_past_saddles(
    problem: CurvedProblem,
    start: Array,
    *,
    max_iterations: int = MAX_ITERATIONS,
    ties: Literal["stay", "first"] = "stay",
) -> Optimum:
    """Climb to a local maximum of every objective, and on where a climb ends at a saddle.

    From a saddle both ways up are climbed, and the higher end is kept.

    Parameters
    ----------
    problem : CurvedProblem
        The batch.
    start : numpy.ndarray of shape (resample, p)
        Where to begin.
    max_iterations : int, default 500
        Iterations of one climb.
    ties : {"stay", "first"}, default "stay"
        What is done where both ways lead equally high, or several directions rise alike, so that
        the data do not say which way to go, as when two systems could change places, or three in a
        circle: "stay" at the saddle, where these are tied, or the way whose first coordinates are
        higher.

    Returns
    -------
    Optimum
    """
    optimum = climb(problem, start, max_iterations=max_iterations)
    suspects = optimum.converged.copy()
    if suspects.any():
        suspects &= ~problem.definite(optimum.point)
    for row in np.flatnonzero(suspects):
        index = np.array([row])
        one = problem.take(index)
        for _ in range(_MOST_SADDLES):
            direction = _way_up(one, optimum.point[index], ties)
            if direction is None:
                break
            end = _higher_end(one, optimum.point[index], direction, ties)
            if end is None:
                break
            optimum.point[row] = end.point[0]
            optimum.converged[row] = end.converged[0]
            optimum.iterations[row] += end.iterations[0]
            optimum.gradient_norm[row] = end.gradient_norm[0]
        else:
            optimum.converged[row] = False
    return optimum


def _way_up(problem: CurvedProblem, point: Array, ties: str) -> Array | None:
    """Return the direction in which a saddle rises most, None if there is no such one."""
    information = problem.information(point)[0]
    held = np.linalg.qr(problem.held_rows(point)[0])[0]
    # As it is along what is not held, and steep across it.
    information = information - held @ (held.T @ information)
    information = information - (information @ held) @ held.T
    information += np.abs(np.diag(information)).max() * held @ held.T
    curvature, directions = np.linalg.eigh(information)
    if curvature[0] >= -_FLAT * curvature[-1]:
        return None
    alike = curvature[1:2] - curvature[0] <= _ALIKE * curvature[-1]
    return None if ties == "stay" and alike.any() else directions[:, 0]


def _higher_end(
    problem: CurvedProblem, point: Array, direction: Array, ties: str
) -> Optimum | None:
    """Climb both ways from a saddle; None where neither leads up, or both equally far."""
    away = _AWAY * direction / np.abs(direction).max()
    ends = [climb(problem, point + way) for way in (away, -away)]
    low, high = sorted(ends, key=lambda end: float(problem.value(end.point)[0]))
    level, other, saddle = (float(problem.value(x)[0]) for x in (high.point, low.point, point))
    least = _SAME_LEVEL * abs(level)
    if level - saddle <= least:
        return None
    if level - other <= least and np.abs(high.point - low.point).max() > _SAME_PLACE:
        if ties == "stay":
            return None
        return max(high, low, key=lambda end: tuple(end.point[0].round(6)))
    return high
