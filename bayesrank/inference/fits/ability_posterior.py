r"""One-dimensional posteriors of abilities, on adaptive grids.

With items known, the ability of a system has the log-concave density

.. math:: \log f(z) = \sum_m k_m x_m(z) - n_m \log(1 + e^{x_m(z)}) - z^2 / 2 + \text{const},
   \qquad x_m(z) = a_m z + d_m.

The mode and width are found for every system; the rest is quadrature between points at which the
density is negligible. The trapezoidal rule converges exponentially there: the nearest singularity
is at a distance :math:`\pi / a` from the real line, and with steps of half a standard deviation of
the narrowest density, and of half of :math:`1 / a`, only rounding errors remain. If panels of
Gauss-Legendre nodes around steep items need fewer nodes, they are used instead. All systems share
the nodes, so densities are matrix products.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from bayesrank.inference.fits.newton import Array, Remembered, SmoothProblem, Solve, solve_or_nan
from bayesrank.log_odds import logistic, softplus

_STEPS_PER_SD = 2.0
_STEPS_PER_RISE = 2.0
# Steeper slopes diverge: the density has steps, whose place between two nodes hardly matters.
_STEEPEST = 1e6
_MODE_STEPS = 60
_MODE_TOLERANCE = 1e-3
_TAIL_STEPS = 30
# Panels and nodes of the composite Gauss-Legendre rule that quantiles are read from. Around items
# of slope a, panels begin with a half width of _STEP / a, and each is so much wider than the last.
_PANELS_PER_SD = 1.0
_PANEL_NODES = 10
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_PANEL_NODES)
_STEP = 1.5
_WIDER = 3.0
# Steeper items do not change panels elsewhere.
_STEEP = 10.0
_TABLE_STEPS = 24


@dataclass(frozen=True)
class ItemCurves:
    """The data for abilities: counts and item parameters of one data set.

    Counts, (system, question), may be weighted; `slope` and `intercept` are a and d; `centre` holds
    the prior means, and `near` where to look for the modes first, (system,). Nothing is left of a
    density `tail` nats below its mode; 40 are far below rounding.
    """

    right: Array
    trials: Array
    slope: Array
    intercept: Array
    centre: Array | float = 0.0
    near: Array | None = None
    tail: float = 40.0

    @cached_property
    def _linear(self) -> Array:
        """Coefficients of z in log f, of shape (system,), without those of the prior."""
        return self.right @ self.slope

    def log_density(self, nodes: Array) -> Array:
        """Return log f up to a constant per system, at nodes of shape (system, node)."""
        x = nodes[:, :, None] * self.slope + self.intercept
        return self._gains(nodes) - (softplus(x) @ self.trials[:, :, None])[:, :, 0]

    def shared_log_density(self, nodes: Array) -> Array:
        """Return log f up to a constant per system at the same nodes for all, (system, node)."""
        x = nodes[:, None] * self.slope + self.intercept
        return self._gains(nodes) - self.trials @ softplus(x).T

    def _gains(self, nodes: Array) -> Array:
        constant = (self.right @ self.intercept)[:, None]
        gaps = nodes - np.reshape(self.centre, (-1, 1))
        return self._linear[:, None] * nodes + constant - 0.5 * gaps**2

    def chances(self, points: Array) -> Array:
        """Return chances of being right at points of shape (point,), of shape (point, question)."""
        return logistic(points[:, None] * self.slope + self.intercept)

    def derivatives(self, ability: Array) -> tuple[Array, Array]:
        """Return the first and minus the second derivative of log f at one point per system."""
        chance = self.chances(ability)
        expected = self.trials * chance
        first = self._linear - expected @ self.slope - (ability - self.centre)
        return first, (expected * (1.0 - chance)) @ self.slope**2 + 1.0

    def information(self, nodes: Array) -> Array:
        """Return the largest precision of any system's density, the prior's included, (node,)."""
        chance = self.chances(nodes)
        return 1.0 + (self.trials @ (chance * (1.0 - chance) * self.slope**2).T).max(axis=0)

    @cached_property
    def modes(self) -> tuple[Array, Array]:
        """Modes and minus the second derivatives there, of shape (system,)."""
        mode = np.zeros(len(self.right)) + (self.centre if self.near is None else self.near)
        low, high = np.full_like(mode, -np.inf), np.full_like(mode, np.inf)
        longest = np.ones_like(mode)
        for _ in range(_MODE_STEPS):
            first, second = self.derivatives(mode)
            step = first / second
            length = np.abs(step)
            last = length.max(initial=0.0) <= _MODE_TOLERANCE
            rises = first > 0.0
            np.copyto(low, mode, where=rises)
            np.copyto(high, mode, where=~rises)
            if not last and (length > 0.5 * longest).any():
                step = self._kept(mode, step, longest, low, high)
                length = np.abs(step)
            mode, longest = mode + step, length
            if last:
                break
        return mode, self.derivatives(mode)[1]

    def _kept(self, mode: Array, step: Array, longest: Array, low: Array, high: Array) -> Array:
        """Shorten the Newton steps that do not shrink: the last ones were `longest`.

        Steep items make steps of the first derivative, which Newton's method jumps across. Where
        the mode is known to lie between `low` and `high` their middle is tried.
        """
        held = np.isfinite(high - low)
        ends = np.where(held, low, 0.0), np.where(held, high, 0.0)
        inside = (ends[0] < mode + step) & (mode + step < ends[1])
        fine = (np.abs(step) <= _MODE_TOLERANCE) | (inside & (np.abs(step) <= 0.5 * longest))
        halved = 0.5 * (ends[0] + ends[1]) - mode
        free = np.clip(step, -2.0 * longest, 2.0 * longest)
        return np.where(held, np.where(fine, step, halved), free)

    @cached_property
    def ends(self) -> tuple[Array, Array]:
        """Points on either side of the modes beyond which the density is negligible."""
        mode, precision = self.modes
        # The prior bounds the width.
        widest = np.sqrt(2.0 * self.tail)
        width = np.minimum(np.sqrt(2.0 * self.tail / precision), widest)
        reach = np.stack([-width, width], axis=-1)
        top = self.log_density(mode[:, None])
        for _ in range(_TAIL_STEPS):
            fallen = top - self.log_density(mode[:, None] + reach)
            short = (fallen < self.tail) & (np.abs(reach) < widest)
            if not short.any():
                break
            # In a log-concave tail the fall grows between linearly and quadratically.
            factor = np.clip(self.tail / np.maximum(fallen, 1e-3), 1.05, 1.5)
            reach = np.where(short, np.clip(reach * factor, -widest, widest), reach)
        return mode + reach[:, 0], mode + reach[:, 1]

    @cached_property
    def grid(self) -> tuple[Array, Array, Array]:
        """Nodes of all systems, (node,), their weights, (system, node), and the log integrals."""
        nodes, measure = self._nodes
        log_density = self.shared_log_density(nodes)
        top = log_density.max(axis=-1, keepdims=True)
        weights = np.exp(log_density - top) * measure
        total = weights.sum(axis=-1)
        log_integral = top[:, 0] + np.log(total / np.sqrt(2.0 * np.pi))
        return nodes, weights / total[:, None], log_integral

    @cached_property
    def _nodes(self) -> tuple[Array, Array | float]:
        """Nodes and their measure: equal steps, or panels around steep items if these are fewer."""
        start, end = self.ends[0].min(), self.ends[1].max()
        steepest = min(self.slope.max(initial=0.0), _STEEPEST)
        finest = max(_STEPS_PER_SD * np.sqrt(self.modes[1].max()), _STEPS_PER_RISE * steepest)
        size = int(np.ceil((end - start) * finest)) + 1
        if steepest > _STEEP and _PANEL_NODES * (len(edges := _edges(self)) - 1) < size:
            nodes, measure = _panel_rule(edges)
            return nodes.ravel(), measure.ravel()
        nodes = np.linspace(start, end, size)
        return nodes, nodes[1] - nodes[0]


@dataclass(frozen=True)
class AbilityPosterior:
    """Posterior densities of abilities, piecewise polynomial between Gauss-Legendre panels.

    `edges`, (panel + 1,), are the ends of the panels, `cumulative`, (system, panel + 1), the
    distribution function there, and `density`, (system, panel, node), that at the nodes.
    """

    edges: Array
    cumulative: Array
    density: Array

    @classmethod
    def of(cls, curves: ItemCurves, shift: float, scale: float) -> "AbilityPosterior":
        """Return the posterior of shift + scale z for every system."""
        edges = _edges(curves)
        points, measure = _panel_rule(edges)
        log_density = curves.shared_log_density(points.ravel()).reshape(-1, *points.shape)
        density = np.exp(log_density - log_density.max(axis=(-1, -2), keepdims=True))
        mass = (density * measure).sum(axis=-1)
        total = mass.sum(axis=-1, keepdims=True)
        cumulative = np.zeros((len(mass), len(edges)))
        np.cumsum(mass / total, axis=-1, out=cumulative[:, 1:])
        return cls(shift + scale * edges, cumulative, density / (total[:, :, None] * scale))

    def mean(self) -> Array:
        """Return posterior means, of shape (system,)."""
        points, weights = self._rule()
        return (points * weights).sum(axis=(-1, -2))

    def sd(self) -> Array:
        """Return posterior standard deviations, of shape (system,)."""
        points, weights = self._rule()
        deviations = points - self.mean()[:, None, None]
        return np.sqrt((deviations**2 * weights).sum(axis=(-1, -2)))

    def quantile(self, probability: float) -> Array:
        """Return quantiles at a probability between 0 and 1, of shape (system,)."""
        passed = (self.cumulative <= probability).sum(axis=-1)
        panel = np.clip(passed - 1, 0, self.density.shape[1] - 1)
        system = np.arange(len(panel))
        low, high = self.edges[panel], self.edges[panel + 1]
        half = 0.5 * (high - low)
        # Mass from the left end to position u in [-1, 1] is a polynomial in u.
        polynomial = (self.density[system, panel] @ _antiderivative()) * half[:, None]
        mass = probability - self.cumulative[system, panel]
        return low + half * (1.0 + _solve_increasing(polynomial, mass))

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Return draws, of shape (draw, system), from a fine table of the distribution function."""
        position = np.linspace(-1.0, 1.0, _TABLE_STEPS + 1)[1:]
        basis = np.polynomial.legendre.legvander(position, _PANEL_NODES)
        half = 0.5 * np.diff(self.edges)[:, None]
        inside = (self.density @ _antiderivative()) @ basis.T * half
        table = (self.cumulative[:, :-1, None] + inside).reshape(len(inside), -1)
        points = (self.edges[:-1, None] + half * (1.0 + position)).ravel()
        uniform = rng.random((len(table), n_draws))
        columns = [np.interp(*row, points) for row in zip(uniform, table, strict=True)]
        return np.stack(columns, axis=-1)

    def _rule(self) -> tuple[Array, Array]:
        """Return nodes, of shape (panel, node), and their weights, (system, panel, node)."""
        points, measure = _panel_rule(self.edges)
        return points, self.density * measure


def _edges(curves: ItemCurves) -> Array:
    """Return ends of panels, narrow around the steps that steep items make of a density."""
    low, high = curves.ends[0].min(), curves.ends[1].max()
    slope = np.minimum(curves.slope, _STEEPEST)
    steep, place = slope > _STEEP, -curves.intercept / curves.slope
    places = np.concatenate([curves.modes[0], place[~steep & (place > low) & (place < high)]])
    smooth = replace(curves, slope=np.where(steep, 0.0, slope))
    precision = smooth.information(places).max()
    n_panels = int(np.ceil(_PANELS_PER_SD * (high - low) * np.sqrt(precision)))
    equal = np.linspace(low, high, n_panels + 1)
    if not steep.any():
        return equal
    limited, place = replace(curves, slope=slope, intercept=-place * slope), place[steep]
    # The nearest singularities are at a distance of pi / a from the place of an item of slope a.
    narrow = reach = np.minimum(_STEP / slope[steep], 1.0 / np.sqrt(limited.information(place)))
    edges, width = [equal], (high - low) / n_panels
    while (narrow < width).any():
        beside = np.where(narrow < width, narrow, np.nan)
        edges += [place - beside, place + beside]
        narrow = narrow * _WIDER
    found = np.unique(np.concatenate(edges))
    found = found[(found >= low) & (found <= high)]
    sd = 1.0 / (_PANELS_PER_SD * np.sqrt(smooth.information(equal)))
    least = np.append(np.minimum(sd[1:], sd[:-1]), sd[-1])
    widest = least[np.searchsorted(equal, found, side="right") - 1]
    return found[_far_enough(found, np.minimum(_room(found, place, reach), widest))]


def _room(points: Array, place: Array, reach: Array) -> Array:
    """Return how wide a panel may be at each point, for points in order.

    The width is that at the place of an item, `reach`, plus the distance to it, for the item that
    asks for the narrowest panel.
    """
    order = np.argsort(place)
    place, reach = place[order], reach[order]
    before = np.append(np.inf, np.minimum.accumulate(reach - place))
    after = np.append(np.minimum.accumulate((reach + place)[::-1])[::-1], np.inf)
    left = before[np.searchsorted(place, points, side="right")] + points
    right = after[np.searchsorted(place, points)] - points
    return np.minimum(left, right)


def _far_enough(edges: Array, room: Array) -> list[int]:
    """Return which edges to keep, so that no panel is wider than the `room` at it.

    Many steep items in nearly the same place ask for nearly the same edges.
    """
    parts = np.diff(edges) / np.minimum(room[1:], room[:-1])
    passed = np.append(0.0, np.cumsum(parts)).tolist()
    kept = [0]
    while kept[-1] < len(passed) - 1:
        furthest = bisect_right(passed, passed[kept[-1]] + 1.0) - 1
        kept.append(max(furthest, kept[-1] + 1))
    return kept


def _panel_rule(edges: Array) -> tuple[Array, Array]:
    """Return the nodes between ends of panels and their measure, both of shape (panel, node)."""
    half = 0.5 * np.diff(edges)[:, None]
    return edges[:-1, None] + half * (1.0 + _NODES), half * _WEIGHTS


@cache
def _antiderivative() -> Array:
    """Return Legendre coefficients of the integral from -1, per value at each node."""
    degree = np.arange(_PANEL_NODES)
    basis = np.polynomial.legendre.legvander(_NODES, _PANEL_NODES - 1)
    coefficients = (basis * _WEIGHTS[:, None]) * (degree + 0.5)
    integrals = np.polynomial.legendre.legint(coefficients.T, lbnd=-1.0)
    return np.asarray(integrals, dtype=np.float64).T


def _solve_increasing(polynomial: Array, target: Array) -> Array:
    """Find where Legendre series that increase on [-1, 1] reach a value, both with a first axis."""
    from scipy.optimize.elementwise import find_root  # only quantiles need it

    def excess(u: Array, value: Array, *coefficients: Array) -> Array:
        return np.polynomial.legendre.legval(u, np.stack(coefficients), tensor=False) - value

    found = find_root(excess, (-1.0, 1.0), args=(target, *polynomial.T))
    # Rounding may put a value at an end just beyond it.
    return np.where(found.success, found.x, np.where(target > 0.0, 1.0, -1.0))


class MarginalLikelihood(SmoothProblem, ABC):
    """An objective of one data set with something integrated out, evaluated point by point."""

    def take(self, index: NDArray[np.intp]) -> Self:
        """Return the problem of other points: all are of the same data."""
        return self

    @abstractmethod
    def level(self, point: Array) -> float:
        """Return the objective at a point of shape (p,)."""

    @abstractmethod
    def derivatives(self, point: Array) -> tuple[Array, Array, Array]:
        """Return gradient, negative Hessian and diagonal of the complete-data information."""

    @cached_property
    def _last(self) -> Remembered[tuple[Array, Array, Array]]:
        return Remembered()

    def expand(self, point: Array) -> tuple[Array, Array, Array]:
        """Return the derivatives, those of the last point as they were found."""
        return self._last.at(point, self.derivatives)

    def value(self, point: Array) -> Array:
        """Return the objective at points of shape (point, p)."""
        return np.array([self.level(one) for one in point])

    def gradient(self, point: Array) -> Array:
        """Return the gradient, of shape (point, p)."""
        return np.stack([self.expand(one)[0] for one in point])

    def information(self, point: Array) -> Array:
        """Return the negative Hessian, of shape (point, p, p)."""
        return np.stack([self.expand(one)[1] for one in point])

    def held_rows(self, point: Array) -> Array:
        """Return that no linear function of the point is held, of shape (point, p, 0)."""
        return np.zeros((*point.shape, 0))

    def definite(self, point: Array) -> NDArray[np.bool_]:
        """Say where the negative Hessian is positive definite, of shape (point,)."""
        return np.linalg.eigvalsh(self.information(point))[:, 0] > 0.0

    def lowest_direction(self, point: Array) -> tuple[float, Array]:
        """Return the direction of lowest curvature at one point, of shape (1, p)."""
        value, vector = eigh(self.information(point)[0], subset_by_index=(0, 0))
        return float(value[0]), vector.T

    def system(self, point: Array) -> tuple[Array, Solve]:
        """Return the gradient, and a function from damping, if any, of some points to steps."""
        parts = zip(*(self.expand(one) for one in point), strict=True)
        gradient, matrix, expected = (np.stack(part) for part in parts)

        def step(damping: Array | None, rows: NDArray[np.intp]) -> Array:
            damped = matrix[rows]
            if damping is not None:
                np.einsum("bii->bi", damped)[...] += damping[:, np.newaxis] * expected[rows]
            return solve_or_nan(damped, gradient[rows, :, np.newaxis])[:, :, 0]

        return gradient, step
