"""Climbing on from saddles, where Newton's method is content and the objective is not.

Systems that begin at the same ability have no reason to part on the way: steps keep them together,
up to a point from which nothing rises but along their difference.
"""

from typing import Protocol

import numpy as np

from bayesrank.inference.fits.climbing import SmoothProblem, climb
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


def climb_past_saddles(problem: CurvedProblem, start: Array) -> Optimum:
    """Climb to a local maximum of every objective, and on where a climb ends at a saddle.

    From a saddle both ways up are climbed, and the higher end is kept. Where both are equally high,
    or several directions rise alike, the data do not say which way to go, as when two systems could
    change places, or three in a circle: the fit then stays at the saddle, where these are tied.

    Parameters
    ----------
    problem : CurvedProblem
        The batch.
    start : numpy.ndarray of shape (resample, p)
        Where to begin.

    Returns
    -------
    Optimum
    """
    optimum = climb(problem, start)
    for row in np.flatnonzero(optimum.converged):
        index = np.array([row])
        one = problem.take(index)
        for _ in range(_MOST_SADDLES):
            direction = _way_up(one, optimum.point[index])
            if direction is None:
                break
            end = _higher_end(one, optimum.point[index], direction)
            if end is None:
                break
            optimum.point[row] = end.point[0]
            optimum.converged[row] = end.converged[0]
            optimum.iterations[row] += end.iterations[0]
            optimum.gradient_norm[row] = end.gradient_norm[0]
        else:
            optimum.converged[row] = False
    return optimum


def _way_up(problem: CurvedProblem, point: Array) -> Array | None:
    """Return the direction in which a saddle rises most, None if there is no such one."""
    information = problem.information(point)[0]
    try:
        np.linalg.cholesky(information)
    except np.linalg.LinAlgError:
        curvature, directions = np.linalg.eigh(information)
        apart = curvature[1:2] - curvature[0] > _ALIKE * curvature[-1]
        if curvature[0] < -_FLAT * curvature[-1] and apart.all():
            return directions[:, 0]
    return None


def _higher_end(problem: CurvedProblem, point: Array, direction: Array) -> Optimum | None:
    """Climb both ways from a saddle; None where neither leads up, or both equally far."""
    away = _AWAY * direction / np.abs(direction).max()
    ends = [climb(problem, point + way) for way in (away, -away)]
    low, high = sorted(ends, key=lambda end: float(problem.value(end.point)[0]))
    level, other, saddle = (float(problem.value(x)[0]) for x in (high.point, low.point, point))
    least = _SAME_LEVEL * abs(level)
    undecided = level - other <= least and np.abs(high.point - low.point).max() > _SAME_PLACE
    return None if undecided or level - saddle <= least else high
