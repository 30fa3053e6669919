"""Maxima of objectives that have saddle points, left along directions of negative curvature [1]_.

References
----------
.. [1] J. J. More and D. C. Sorensen. On the use of directions of negative curvature in a modified
   Newton method. Mathematical Programming 16 (1979). https://doi.org/10.1007/BF01582091
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.bordered import MOST_DENSE
from bayesrank.inference.fits.newton import (
    MAX_DAMPED_ITERATIONS,
    Array,
    Optimum,
    Rows,
    SmoothProblem,
    maximise_nonconcave,
)

# Saddle points that a fit may come by; each is higher than the one before it.
_MOST_SADDLES = 10
# Share of the largest curvature below which a negative one is rounding.
_FLAT = 1e-9
# Share of the largest curvature by which two differ if the data tell their directions apart.
_ALIKE = 1e-6
# Longest coordinate of the way off a saddle point, halved until the objective rises.
_AWAY = 0.5
_MOST_HALVINGS = 12
# Share of the objective by which a maximum is higher than another, or than a saddle point.
SAME_LEVEL = 1e-9
# Longest coordinate between the ends of two ways to the same maximum.
_SAME_PLACE = 1e-4


class CurvedProblem(SmoothProblem, Protocol):
    """What :func:`maximise_past_saddles` needs."""

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        ...

    def lowest_direction(self, point: Array) -> tuple[float, Array]:
        """Return a direction of low curvature at one point, (1, p), without the whole matrix."""
        ...

    def held_rows(self, point: Array) -> Array:
        """Return the gradients of what is held, of shape (1 or resample, p, held)."""
        ...

    def definite(self, point: Array) -> NDArray[np.bool_]:
        """Say where the information is positive definite along what is not held, (resample,)."""
        ...


def maximise_past_saddles(
    problem: CurvedProblem,
    start: Array,
    *,
    max_iterations: int = MAX_DAMPED_ITERATIONS,
    only_asymmetric: bool = False,
) -> Optimum:
    """Climb to a local maximum of every objective in a batch; options as of the climb itself.

    Saddle points are left both ways along the direction of most negative curvature, of which the
    higher end is kept. Where both ends are equally high, or several directions rise alike, the data
    do not say which way, as when two systems could change places: `only_asymmetric` stays there.
    Which of the ends is kept then does not depend on the order of coordinates, unless they have the
    same coordinates in another order.
    """
    optimum = maximise_nonconcave(problem, start, max_iterations=max_iterations)
    suspects = optimum.converged.copy()
    if suspects.any():
        suspects &= ~problem.definite(optimum.point)
        optimum = optimum.at(optimum.point.copy())  # problems know points they saw
    for row in np.flatnonzero(suspects).tolist():
        index = np.array([row])
        one = problem.take(index)
        for _ in range(_MOST_SADDLES):
            end = _higher_end(one, optimum.point[index], max_iterations, only_asymmetric)
            if end is None:
                break
            iterations = optimum.iterations[row]
            _replace(optimum, row, *end)
            optimum.iterations[row] += iterations
        else:
            optimum.converged[row] = False
    return optimum


def maximise_from_several(
    problem: CurvedProblem,
    start: Array,
    others: Mapping[int, Array],
    *,
    max_iterations: int = MAX_DAMPED_ITERATIONS,
) -> Optimum:
    """Climb from points of shape (resample, p), and return the highest of the maxima found.

    `others` gives changes of the point of a resample, (start, p), from which it is begun, too.
    """
    optimum = maximise_past_saddles(problem, start, max_iterations=max_iterations)
    if not others:
        return optimum
    rows = np.concatenate([np.full(len(ways), row) for row, ways in others.items()])
    many = problem.take(rows)
    begin = many.restore(start[rows] + np.concatenate(list(others.values())))
    found = maximise_past_saddles(many, begin, max_iterations=max_iterations)
    reached = np.where(found.converged, many.value(found.point), -np.inf)
    levels = np.where(optimum.converged, problem.value(optimum.point), -np.inf)
    optimum = optimum.at(optimum.point.copy())
    for row in others:
        tried = np.flatnonzero(rows == row)
        high = reached[tried].max()
        if is_higher(high, levels[row]):
            alike = tried[reached[tried] >= high - SAME_LEVEL * abs(high)]
            _replace(optimum, row, found, choose_alike(found.point, alike))
    return optimum


def is_higher(level: float, other: float) -> bool:
    """Say whether one objective is above another, infinite where nothing was found, for certain."""
    return bool(level > (other + SAME_LEVEL * abs(other) if np.isfinite(other) else other))


def _replace(optimum: Optimum, row: int, found: Optimum, best: int) -> None:
    """Put what was found for another row in the place of a row."""
    for name in ("point", "converged", "iterations", "gradient_norm"):
        getattr(optimum, name)[row] = getattr(found, name)[best]


def _higher_end(
    problem: CurvedProblem, point: Array, max_iterations: int, only_asymmetric: bool
) -> tuple[Optimum, int] | None:
    """Climb from one saddle point in all directions that rise most; None where it is none."""
    ways = _ways_up(problem, point, only_asymmetric)
    if ways is None:
        return None
    ways = _AWAY * ways / np.abs(ways).max(axis=1, keepdims=True)
    ways, saddle = np.concatenate([ways, -ways]), problem.value(point)[0]
    many = problem.take(np.zeros(len(ways), dtype=np.intp))
    start = many.restore(point + ways)
    # Near enough the curvature decides, and all ways rise.
    for _ in range(_MOST_HALVINGS):
        low = ~(many.value(start) > saddle)
        if not low.any():
            break
        ways[low] /= 2.0
        start = many.restore(point + ways)
    ends = maximise_nonconcave(many, start, max_iterations=max_iterations)
    levels = many.value(ends.point)
    high = int(levels.argmax())
    least = SAME_LEVEL * abs(levels[high])
    if levels[high] - saddle <= least:
        return None
    alike = np.flatnonzero(levels[high] - levels <= least)
    if only_asymmetric and np.ptp(ends.point[alike], axis=0).max() > _SAME_PLACE:
        return None
    return ends, choose_alike(ends.point, alike)


def choose_alike(points: Array, rows: Rows) -> int:
    """Return one of several points, whatever the order of the rows and of the coordinates."""
    return int(max(rows, key=lambda row: tuple(np.sort(points[row]).round(6))))


def _ways_up(problem: CurvedProblem, point: Array, only_asymmetric: bool) -> Array | None:
    """Return directions in which a saddle point rises most, (way, p); None if it is none."""
    if point.shape[1] > MOST_DENSE:
        lowest, direction = problem.lowest_direction(point)
        return direction if lowest < 0.0 else None
    information = problem.information(point)[0]
    held = np.linalg.qr(problem.held_rows(point)[0])[0]
    # As it is along what is not held, and steep across it.
    information = information - held @ (held.T @ information)
    information = information - (information @ held) @ held.T
    information += np.abs(np.diag(information)).max() * held @ held.T
    curvature, directions = np.linalg.eigh(information)
    if curvature[0] >= -_FLAT * curvature[-1]:
        return None
    alike = curvature - curvature[0] <= _ALIKE * curvature[-1]
    if alike.sum() > 1 and only_asymmetric:
        return None
    return axes_of(directions[:, alike])


def axes_of(space: Array) -> Array:
    """Return directions of a space, (direction, p), whatever the basis that it is given by.

    The space is given by orthonormal columns, (p, k). Where there is one it is the direction, else
    the projections of the coordinate axes are, those that differ in more than sign and length.

    Examples
    --------
    >>> axes_of(np.eye(3)[:, :2])
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    if space.shape[1] == 1:
        return space.T
    lengths = np.sqrt((space**2).sum(axis=1))
    axes = (space @ space.T)[lengths > _ALIKE] / lengths[lengths > _ALIKE, np.newaxis]
    same = np.abs(axes @ axes.T) > 1.0 - _ALIKE
    return axes[same.argmax(axis=1) == np.arange(len(axes))]


def strongest_axes(shares: Array, directions: Array, least: int) -> Array:
    """Return the strongest dimensions, at least so many, and all of those that are equally strong.

    `shares`, (k,), fall, and `directions`, (p, k), are orthonormal.
    """
    found: list[Array] = []
    first = 0
    while first < len(shares) and sum(map(len, found)) < least:
        last = first + int((shares[first] - shares[first:] <= _ALIKE * shares[0]).sum())
        found.append(axes_of(directions[:, first:last]))
        first = last
    return np.concatenate(found)
