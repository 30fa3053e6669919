"""Exact ties of systems that the data cannot distinguish, and the highest of several maxima.

If two systems can be swapped without changing the data, their scores are equal under a concave
objective. If the objective is not concave, a symmetric point may be a saddle point: the search
leaves it along directions of negative curvature [1]_ and keeps the highest maximum, independently
of the order of the systems. Questions that are answered alike are merged if that saves time, and
told apart again if they fit better so.

References
----------
.. [1] J. J. More and D. C. Sorensen. On the use of directions of negative curvature in a modified
   Newton method. Mathematical Programming 16 (1979). https://doi.org/10.1007/BF01582091
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import distinct_columns, kinds_of_cells
from bayesrank.counting import told_apart as refined
from bayesrank.inference.fits.bordered import joined
from bayesrank.inference.fits.fit import MOST_DENSE
from bayesrank.inference.fits.item_likelihoods import ItemCounts
from bayesrank.inference.fits.newton import (
    CACHE_CELLS,
    MAX_DAMPED_ITERATIONS,
    Array,
    Optimum,
    Rows,
    SmoothProblem,
    maximise_nonconcave,
)
from bayesrank.inference.fits.two_sided import TwoSided
from bayesrank.log_odds import smoothed_log_odds
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

Classes = NDArray[np.intp]
# Sums of the same counts in another order differ only by rounding.
_ROUNDING = 1e-12
# Counts that differ only in further decimals are sums of the same numbers in another order.
_DECIMALS = 9
# Largest number of saddle points that a fit may leave; each is higher than the previous one.
_MOST_SADDLES = 10
# A negative curvature below this share of the largest one is rounding.
_FLAT = 1e-9
# Two curvatures, or shares of dimensions, that differ by less than this share are equal.
_ALIKE = 1e-6
# Largest coordinate of the step off a saddle point, halved until the objective increases.
_AWAY = 0.5
_MOST_HALVINGS = 12
# A maximum is higher than another, or than a saddle point, by at least this share of its value.
SAME_LEVEL = 1e-9
# Largest distance per coordinate between two results that are the same maximum.
_SAME_PLACE = 1e-4
# Abilities are clear if they explain this multiple of the variance of the strongest other
# dimension.
_CLEAR = 4.0
# Number of the strongest other dimensions that are starting points.
_DIMENSIONS = 3


def tie_exchangeable(
    score: Array, data: Responses | Comparisons | Ballots, kinds: NDArray[Any] | None = None
) -> Array:
    """Give exchangeable systems the mean of their scores, of shape (system,).

    For simulation estimates, whose expectations are equal.

    Examples
    --------
    >>> tie_exchangeable(np.array([0.1, 0.2, 0.4]), Comparisons([[0, 2, 1], [2, 0, 1], [3, 3, 0]]))
    array([0.15, 0.15, 0.4 ])
    """
    groups = exchangeable_systems(data, kinds)
    return (np.bincount(groups, score) / np.bincount(groups))[groups]


def exchangeable_systems(
    data: Responses | Comparisons | Ballots, kinds: NDArray[Any] | None = None
) -> Classes:
    """Return the class of each system: the data stay the same when its members are swapped.

    `kinds`, of shape (system,) or (system, kind), must be equal too, such as prior means.
    """
    if isinstance(data, Comparisons):
        lost, tied, *weights = np.random.default_rng(0).uniform(1.0, 2.0, len(data.systems) + 2)
        table = data.wins + lost * data.wins.T + tied * data.ties
        # What a system met with the weight of another is what that one met with its own.
        sums = (table @ weights)[:, np.newaxis] + np.array(weights)[:, np.newaxis] * table
        rows = (np.abs(sums - sums.T) <= _ROUNDING * np.abs(sums)).argmax(axis=1)[:, np.newaxis]
    else:
        rows = data.values if isinstance(data, Responses) else data.grades
    groups = _alike(rows)
    return groups if kinds is None else _alike(np.column_stack([groups, kinds]))


def _alike(values: NDArray[Any]) -> Classes:
    """Return the classes of systems with the same values, (system, ...); some may be missing."""
    rows = np.nan_to_num(values.reshape(len(values), -1).astype(float), nan=np.inf)
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()


def exchange_alike(draws: Array, data: Responses, rng: np.random.Generator) -> Array:
    """Permute systems with the same answers at random in every draw, (chain, draw, system).

    For resamples that favour one of them by chance, as when each question shuffles the systems.
    """
    groups = _alike(data.values)
    if groups.max() + 1 == len(groups):
        return draws
    order = _shuffled(groups, draws.shape[0] * draws.shape[1], rng)
    return np.take_along_axis(draws, order.reshape(draws.shape), axis=-1)


@dataclass(frozen=True)
class Exchangeable:
    """Classes of exchangeable systems, (system,), and questions, (question,), by resample.

    An objective with several maxima may give the members of a class different values; which of the
    equally high maxima the fit finds then depends on the order of the systems. Resamples in which
    all systems differ are left out.
    """

    classes: dict[int, tuple[Classes, Classes]]

    @classmethod
    def of(cls, right: Array, trials: Array, mean: Array) -> Self:
        """Find them by colour refinement in counts of shape (resample, system, question).

        Systems with different prior means, of shape (system,), are not exchangeable.

        Examples
        --------
        >>> right = np.array([[[2.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 2.0]]])
        >>> Exchangeable.of(right, np.full((1, 3, 3), 2.0), np.zeros(3)).classes
        {0: (array([0, 0, 1]), array([0, 0, 1]))}
        """
        totals = np.sort(right.sum(axis=2).round(_DECIMALS), axis=1)
        kinds = np.unique(mean, return_inverse=True)[1]
        found = {}
        for row in np.flatnonzero((totals[:, 1:] == totals[:, :-1]).any(axis=1)):
            systems, questions = refined(kinds_of_cells(right[row], trials[row]), kinds)
            if systems.max() + 1 < len(systems):
                found[int(row)] = systems, questions
        return cls(found)

    def mean(self, point: Array) -> Array:
        """Give all members of a class its mean, in points of shape (resample, p).

        Points contain the coordinates of the systems, then those of all questions, kind by kind.
        """
        point = point.copy()
        for row, (systems, questions) in self.classes.items():
            n_systems = len(systems)
            blocks = [point[row, :n_systems], *point[row, n_systems:].reshape(-1, len(questions))]
            for block, members in zip(blocks, [systems] + [questions] * len(blocks), strict=False):
                block[:] = (np.bincount(members, block) / np.bincount(members))[members]
        return point

    def exchange(self, drawn: dict[str, Array], rng: np.random.Generator) -> dict[str, Array]:
        """Permute the members of each class at random in every draw of scores and of questions."""
        if not self.classes:
            return drawn
        n_draws, shapes = len(drawn["score"]), {name: drawn[name].shape for name in drawn}
        flat = {name: np.array(drawn[name]) for name in drawn}
        flat = {name: each.reshape(n_draws, -1, each.shape[-1]) for name, each in flat.items()}
        for row, (systems, questions) in self.classes.items():
            orders = _shuffled(systems, n_draws, rng), _shuffled(questions, n_draws, rng)
            for name, values in flat.items():
                order = orders[name != "score"]
                values[:, row] = np.take_along_axis(values[:, row], order, axis=1)
        return {name: values.reshape(shapes[name]) for name, values in flat.items()}


def _shuffled(members: Classes, n_draws: int, rng: np.random.Generator) -> Classes:
    """Return orders that exchange members of a class, of shape (draw, member)."""
    order = np.tile(np.arange(len(members)), (n_draws, 1))
    for number in np.flatnonzero(np.bincount(members) > 1):
        places = np.flatnonzero(members == number)
        order[:, places] = rng.permuted(order[:, places], axis=1)
    return order


def maximise_past_saddles(
    problem: SmoothProblem,
    start: Array,
    *,
    max_iterations: int = MAX_DAMPED_ITERATIONS,
    only_asymmetric: bool = False,
) -> Optimum:
    """Find a local maximum of every objective in a batch.

    From a saddle point the search goes both ways along the direction of most negative curvature and
    keeps the higher maximum. If both are equally high, or if several directions have the same
    curvature, the data do not determine the direction, for example if two systems are exchangeable:
    `only_asymmetric` then stays at the saddle point. Otherwise the choice does not depend on the
    order of the coordinates, unless the maxima have the same coordinates in another order.
    """
    optimum = maximise_nonconcave(problem, start, max_iterations=max_iterations)
    suspects = optimum.converged.copy()
    if suspects.any():
        suspects &= ~problem.definite(optimum.point)
        optimum = optimum.at(optimum.point.copy())  # problems cache the points they have seen
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
    problem: SmoothProblem,
    start: Array,
    others: Mapping[int, Array],
    *,
    max_iterations: int = MAX_DAMPED_ITERATIONS,
) -> Optimum:
    """Maximise from points of shape (resample, p), and return the highest of the maxima found.

    `others` has further starts of a resample, (start, p), as differences from its point.
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
    """Return whether one maximum is above another beyond rounding; -inf means none was found."""
    return bool(level > (other + SAME_LEVEL * abs(other) if np.isfinite(other) else other))


def _replace(optimum: Optimum, row: int, found: Optimum, best: int) -> None:
    """Replace the result of a row by that of a row of another optimum."""
    for name in ("point", "converged", "iterations", "gradient_norm"):
        getattr(optimum, name)[row] = getattr(found, name)[best]


def _higher_end(
    problem: SmoothProblem, point: Array, max_iterations: int, only_asymmetric: bool
) -> tuple[Optimum, int] | None:
    """Maximise from a saddle point along all directions of steepest rise; None if it is none."""
    ways = _ways_up(problem, point, only_asymmetric)
    if ways is None:
        return None
    ways = _AWAY * ways / np.abs(ways).max(axis=1, keepdims=True)
    ways, saddle = np.concatenate([ways, -ways]), problem.value(point)[0]
    many = problem.take(np.zeros(len(ways), dtype=np.intp))
    start = many.restore(point + ways)
    # Close to the saddle point the quadratic term dominates, and all directions rise.
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
    """Choose a point independently of the order of the rows and of the coordinates."""
    return int(max(rows, key=lambda row: tuple(np.sort(points[row]).round(6))))


def _ways_up(problem: SmoothProblem, point: Array, only_asymmetric: bool) -> Array | None:
    """Return the directions of steepest rise at a saddle point, (way, p); None if it is none."""
    if point.shape[1] > MOST_DENSE:
        lowest, direction = problem.lowest_direction(point)
        return direction if lowest < 0.0 else None
    information = problem.information(point)[0]
    held = np.linalg.qr(problem.held_rows(point)[0])[0]
    # The information along the constraints, with a large curvature across them.
    information = information - held @ (held.T @ information)
    information = information - (information @ held) @ held.T
    information += np.abs(np.diag(information)).max() * held @ held.T
    curvature, directions = np.linalg.eigh(information)
    if curvature[0] >= -_FLAT * curvature[-1]:
        return None
    alike = curvature - curvature[0] <= max(-_ALIKE * curvature[0], _FLAT * curvature[-1])
    if alike.sum() > 1 and only_asymmetric:
        return None
    return axes_of(directions[:, alike])


def axes_of(space: Array) -> Array:
    """Return directions of a space, (direction, p), independently of its orthonormal basis, (p, k).

    A single column is the direction. Otherwise they are the projections of the coordinate axes,
    without those that differ only in sign and length.

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
    """Return at least `least` of the strongest dimensions, and all that tie with the last one.

    `shares`, (k,), are in descending order, and `directions`, (p, k), are orthonormal.
    """
    found: list[Array] = []
    first = 0
    while first < len(shares) and sum(map(len, found)) < least:
        last = first + int((shares[first] - shares[first:] <= _ALIKE * shares[0]).sum())
        found.append(axes_of(directions[:, first:last]))
        first = last
    return np.concatenate(found)


@dataclass(frozen=True)
class Merged[Problem: TwoSided[Any]]:
    """A problem and the same with its like questions merged; `place` is where each question is."""

    whole: Problem
    reduced: Problem
    place: NDArray[np.intp]

    def point(self, point: Array) -> Array:
        """Return points of the merged questions."""
        u, v = self.whole.split(point)
        merged = np.empty((len(u), *self.reduced.likelihood.shape[2:]))
        merged[:, self.place] = v
        return joined(u, merged)

    def spread(self, optimum: Optimum) -> Optimum:
        """Return an optimum of merged questions as one of the questions one by one."""
        u, v = self.reduced.split(optimum.point)
        return optimum.at(joined(u, v[:, self.place]))

    def maximise(self, start: Array) -> Optimum:
        """Maximise from a point of the questions one by one."""
        if self.reduced is self.whole:
            return self.whole.maximise(start)
        return self.spread(self.reduced.maximise(self.point(start)))


def merged_questions[Problem: TwoSided[Any]](problem: Problem) -> Merged[Problem]:
    """Merge the questions of one table that are answered alike, if that saves time.

    Where merged ones may have other maxima, see :func:`told_apart`, only if that leaves a half.
    A small table with one maximum or several constraints is fitted as it is, and there must be as
    many questions left as constraints.
    """
    likelihood, n_held = problem.likelihood, len(problem.hold_v[0])
    # Several tables are fitted at a time, see `newton`.
    large = 2 * problem.cells > CACHE_CELLS or (n_held <= 1 and not likelihood.concave)
    if problem.size == 1 and large and likelihood.answers is not None:
        first, place = distinct_columns(likelihood.answers)
        if n_held <= len(first) <= len(place) * (1.0 if likelihood.concave else 0.5):
            return merged_kinds(problem, place)
    return Merged(problem, problem, np.arange(likelihood.shape[2]))


def merged_kinds[Problem: TwoSided[Any]](
    problem: Problem, place: NDArray[np.intp]
) -> Merged[Problem]:
    """Merge questions of the same kind, of one table where these are answered alike."""
    _, first, sizes = np.unique(place, return_index=True, return_counts=True)
    counts, mean = sizes.astype(np.float64), np.asarray(problem.questions.mean)
    rows = np.moveaxis(problem.hold_v[0], 1, 0)
    held = np.zeros((len(counts), *rows.shape[1:]))
    np.add.at(held, place, rows)
    hold_v = np.moveaxis(held, 0, 1)
    if len(hold_v) > 1:  # orthogonal again
        hold_v = np.linalg.qr(hold_v.reshape(len(hold_v), -1).T)[0].T.reshape(hold_v.shape)
    reduced = replace(
        problem,
        likelihood=problem.likelihood.merged(first, counts),
        questions=replace(
            problem.questions, mean=mean[first] if mean.ndim > 1 else mean, counts=counts
        ),
        pooled=problem.pooled and replace(problem.pooled, counts=counts),
        hold_v=hold_v[np.newaxis],
    )
    return Merged(problem, reduced, place)


def told_apart[Problem: TwoSided[Any]](
    merged: Merged[Problem], optimum: Optimum, max_iterations: int
) -> Optimum:
    """Maximise further if separate like questions fit better: one of each such kind at a time.

    An optimum of merged questions may be a saddle point of the questions one by one. Returns where
    it ended, of the questions one by one.
    """
    place = merged.place
    while np.bincount(place).max() > 1 and optimum.converged[0]:
        point = merged.spread(optimum).point
        if merged.whole.definite(point)[0]:
            break
        lowest = np.linalg.eigvalsh(merged.reduced.blocks(optimum.point).vv[0])[:, 0]
        kind = int(np.where(np.bincount(place) > 1, lowest, np.inf).argmin())
        place = place.copy()
        place[np.flatnonzero(place == kind)[:1]] = len(lowest)
        some = merged_kinds(merged.whole, place)
        start = some.point(point)
        found = maximise_past_saddles(some.reduced, start, max_iterations=max_iterations)
        levels = some.reduced.value(found.point), merged.reduced.value(optimum.point)
        if not is_higher(*(float(level[0]) for level in levels)):
            break
        merged, optimum = some, found
    return merged.spread(optimum)


def other_abilities(data: ItemCounts, size: int) -> dict[int, Array]:
    """Return changes of points of that size, (start, size), for resamples that need more starts.

    Their abilities in the Rasch model say less of the answers than a second dimension does: other
    maxima are above either end of such dimensions.
    """
    rates = smoothed_log_odds(data.right, data.trials) * (data.trials > 0.0)
    rest = rates - rates.mean(axis=-1, keepdims=True)
    rest -= rest.mean(axis=-2, keepdims=True)
    rest *= ~data.left_out[:, np.newaxis]
    shares, directions = np.linalg.eigh(rest @ rest.swapaxes(1, 2))
    # Not along the abilities, whose scale is that of their prior.
    spread = smoothed_log_odds(data.by_system, data.played)
    n_systems = spread.shape[-1]
    signal = spread.var(axis=-1) * n_systems * (~data.left_out).sum(axis=-1)
    others = {}
    for row in np.flatnonzero(signal < _CLEAR * shares[:, -1]):
        strong = strongest_axes(shares[row, ::-1], directions[row, :, ::-1], _DIMENSIONS)
        # Along and against the strongest dimensions, and between any two.
        first, second = np.triu_indices(len(strong), 1)
        if len(strong) > _DIMENSIONS:
            first = second = first[:0]
        pairs = [strong[first] + sign * strong[second] for sign in (1.0, -1.0)]
        ways = np.concatenate([strong, *pairs])
        ways = np.concatenate([ways, -ways])
        ways *= np.sqrt(n_systems / (ways**2).sum(axis=-1, keepdims=True))
        others[int(row)] = np.pad(ways, ((0, 0), (0, size - n_systems)))
    return others
