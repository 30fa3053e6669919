"""Densities of the contributions of questions to a score, on nodes that all questions share.

A :class:`Scores` holds independent random variables, one per question, that are functions of a
number u in [0, 1]: the probability of a right answer, or the expected worth of an answer between
the lowest and the highest weight. Sums and averages need only their densities on any nodes, and the
value at each node.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches

FloatArray = NDArray[np.float64]

# Step of the trapezoid rule along the line of integration; the line ends where the integrand has
# fallen by exp(-_LOG_SMALL), or at v = _LONGEST_LINE.
_LINE_STEP = 0.12
_LOG_SMALL = 38.0
_LONGEST_LINE = 60.0

# Nodes of a panel of the Gauss-Legendre rule.
_RULE = 32

# Densities between these many points of an interval are interpolated by cubic splines.
_MOST_DENSITIES = 4096


@dataclass(frozen=True)
class Scores:
    """Independent scores, one per question, as functions of numbers in [0, 1].

    Attributes
    ----------
    density : callable
        Maps nodes of shape (node,) to densities of shape (question, node), up to a factor.
    value : callable
        Maps nodes of shape (node,) to values of shape (node,), the same for all questions.
    breaks : tuple of float
        Points from 0 to 1 where densities are not smooth.
    sharpness : float
        Largest number of (pseudo-)trials of a density, which bounds how narrow it is.
    scale : numpy.ndarray of shape (question,)
        Factor of the value of each question.
    shift : numpy.ndarray of shape (question,)
        Constant that is added to it.
    """

    density: Callable[[FloatArray], FloatArray]
    value: Callable[[FloatArray], FloatArray]
    breaks: tuple[float, ...]
    sharpness: float
    scale: FloatArray
    shift: FloatArray

    def nodes(self, size: int) -> tuple[FloatArray, FloatArray]:
        """Return Gauss nodes, at least `size` between two breaks, and masses per question.

        The nodes crowd at the ends of every interval, where densities may be steep.

        Returns
        -------
        nodes : numpy.ndarray of shape (node,)
        masses : numpy.ndarray of shape (question, node)
            Summing to one over nodes.
        """
        x, w = _gauss_rule()
        n_panels = -(-size // _RULE)
        fraction = ((np.arange(n_panels)[:, None] + (x + 1) / 2) / n_panels).ravel()
        nodes, stretch = self._spread(fraction)
        masses = self.density(nodes) * stretch * np.tile(w, n_panels * (len(self.breaks) - 1))
        return nodes, masses / masses.sum(axis=1, keepdims=True)

    def midpoints(self, size: int) -> tuple[FloatArray, FloatArray]:
        """Return about `size` nodes without interpolation between them, and masses as above."""
        from scipy.interpolate import CubicSpline  # few need so many nodes

        n_intervals = len(self.breaks) - 1
        part = -(-size // n_intervals)
        fraction = (np.arange(part) + 0.5) / part
        nodes = self._spread(fraction)[0]
        coarse = min(part, _MOST_DENSITIES)
        knots = (np.arange(coarse) + 0.5) / coarse
        at_knots = self._spread(knots)
        masses = (self.density(at_knots[0]) * at_knots[1]).reshape(-1, n_intervals, coarse)
        fine = CubicSpline(knots, masses, axis=2)(fraction).reshape(len(masses), -1)
        masses = np.maximum(fine, 0.0)
        return nodes, masses / masses.sum(axis=1, keepdims=True)

    def _spread(self, fraction: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Map fractions of every interval to nodes; also return the derivatives."""
        edges = np.asarray(self.breaks)
        width = np.diff(edges)[:, None]
        nodes = edges[:-1, None] + width * np.sin(fraction * np.pi / 2) ** 2
        return nodes.ravel(), (width * np.sin(fraction * np.pi)).ravel()


@cache
def _gauss_rule() -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(_RULE)


def beta_scores(
    first: FloatArray, second: FloatArray, value: Callable[[FloatArray], FloatArray]
) -> Scores:
    """Return a function of independent Beta(first, second) probabilities, shapes of (question,)."""
    a, b = first[:, None] - 1.0, second[:, None] - 1.0
    mode = np.where(a + b > 0, a / np.where(a + b > 0, a + b, 1.0), 0.5)

    def log_density(u: FloatArray) -> FloatArray:
        return _times_log(a, u) + _times_log(b, 1.0 - u)

    peak = log_density(mode)

    def density(u: FloatArray) -> FloatArray:
        return np.exp(log_density(u) - peak)

    ones = np.ones(len(first))
    sharpness = float((first + second).max())
    return Scores(density, value, (0.0, 1.0), sharpness, ones, np.zeros(len(first)))


def _times_log(factor: FloatArray, u: FloatArray) -> FloatArray:
    """Return factor * log(u), 0 where the factor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(factor == 0.0, 0.0, factor * np.log(u))


def dirichlet_scores(shapes: FloatArray, weights: FloatArray) -> Scores:
    """Return the expected worths of answers whose category probabilities are Dirichlet.

    Parameters
    ----------
    shapes : numpy.ndarray of shape (question, category)
        Parameters of the Dirichlet distributions, at least 1.
    weights : numpy.ndarray of shape (category,)
        Worth of each category; not all equal.
    """
    # Categories of equal worth add up to one category.
    worth, level = np.unique(weights, return_inverse=True)
    merged = shapes @ (level[:, None] == np.arange(len(worth)))
    low, width = worth[0], worth[-1] - worth[0]
    position = (worth - low) / width
    scale, shift = np.full(len(shapes), width), np.full(len(shapes), low)
    if len(worth) == 2:
        plain = beta_scores(merged[:, 1], merged[:, 0], lambda u: u)
        return Scores(plain.density, plain.value, (0.0, 1.0), plain.sharpness, scale, shift)
    distinct, which = np.unique(merged, axis=0, return_inverse=True)

    def density(u: FloatArray) -> FloatArray:
        return _linear_form_density(u, distinct, position)[which]

    sharpness = float(merged.sum(axis=1).max())
    return Scores(density, lambda u: u, tuple(position), sharpness, scale, shift)


def _linear_form_density(u: FloatArray, shapes: FloatArray, position: FloatArray) -> FloatArray:
    r"""Return the density of sum_k position_k p_k for Dirichlet p, of shape (question, node).

    With T the sum of the shapes it is

    .. math:: \frac{T-1}{2\pi i} \int \prod_k (1 - s (w_k - u))^{-\nu_k} ds

    over a line parallel to the imaginary axis. The line goes through the saddle point, where the
    integrand has no cancellation.
    """
    out = np.empty((len(shapes), len(u)))
    per_node = 200 * len(position)  # a line has about 200 steps
    for row, nu in enumerate(shapes):
        for part in batches(len(u), per_node):
            out[row, part] = _density_of_one(u[part], nu, position)
    return out


def _density_of_one(u: FloatArray, nu: FloatArray, position: FloatArray) -> FloatArray:
    offset = position - u[:, None]  # (node, category)
    saddle = _saddle(offset, nu)
    stretch = 1.0 - saddle[:, None] * offset
    slope = offset / stretch
    log_peak = -(nu * np.log(stretch)).sum(axis=1)
    total = nu.sum()
    scale = 1.0 / np.sqrt((nu * slope**2).sum(axis=1))
    # y = scale sinh(v) turns the decay of a power of y into an exponential one; the integrand is
    # even in v.
    slope *= scale[:, None]
    end = _decay(slope, nu)
    n_steps = math.ceil(end.max() / _LINE_STEP)
    step = end / n_steps
    v = step[:, None] * (np.arange(n_steps) + 0.5)
    path = np.log(1.0 - 1j * slope[:, None, :] * np.sinh(v)[..., None]) @ nu
    integral = (np.real(np.exp(-path)) * np.cosh(v)).sum(axis=1) * step * scale
    return np.maximum((total - 1.0) / np.pi * np.exp(log_peak) * integral, 0.0)


def _decay(slope: FloatArray, nu: FloatArray) -> FloatArray:
    """Return the v at which the integrand has fallen to a size without meaning, per node."""
    low, high = np.zeros(len(slope)), np.full(len(slope), _LONGEST_LINE)
    for _ in range(20):
        middle = (low + high) / 2
        size = np.log1p((slope * np.sinh(middle)[:, None]) ** 2) @ nu / 2 - middle
        small = size > _LOG_SMALL
        high, low = np.where(small, middle, high), np.where(small, low, middle)
    return high


def _saddle(offset: FloatArray, nu: FloatArray) -> FloatArray:
    """Solve sum_k nu_k offset_k / (1 - s offset_k) = 0 for s, per node.

    The left side increases in s between its poles 1 / min(offset) < 0 < 1 / max(offset).
    """
    low, high = 1.0 / offset.min(axis=1), 1.0 / offset.max(axis=1)
    for _ in range(60):
        middle = (low + high) / 2
        rising = (nu * offset / (1.0 - middle[:, None] * offset)).sum(axis=1) > 0
        high, low = np.where(rising, middle, high), np.where(rising, low, middle)
    return (low + high) / 2
