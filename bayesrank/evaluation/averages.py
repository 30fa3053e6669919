"""Exact distribution functions and quantiles of the average of independent scores.

The distribution of a sum is computed by one of two numerical convolutions:

- a Fourier series of the distribution function on a window around the mean, whose coefficients are
  products of the characteristic functions of the terms: exact to rounding, if there are
  enough terms for the coefficients to decay;
- else, for a few terms, a fast Fourier transform of the terms on a fine lattice, where every piece
  of mass is split between its two neighbours, which preserves means.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrank.evaluation.scores import Scores
from bayesrank.validation import power_of_two

FloatArray = NDArray[np.float64]

# Half-width of the window in standard deviations: a sum of exponentials, which has the longest
# tail, has a probability of 2e-11 beyond it.
_WINDOW = 14.0

# The series ends where its coefficients are this small. If it needs more complex exponentials than
# this, the lattice is used.
_SMALL_COEFFICIENT = 1e-13
_MOST_WAVES = 2**22

# Points of the lattice, and of the masses that are put on it.
_LATTICE = 2**15
_FINE = 2**18

_BISECTIONS = 52


@dataclass(frozen=True)
class Average:
    """Mean, standard deviation and quantiles of an average of independent scores.

    Attributes
    ----------
    mean, sd : float
    quantiles : numpy.ndarray of shape (probability,)
    """

    mean: float
    sd: float
    quantiles: FloatArray


@dataclass(frozen=True)
class AverageDistribution:
    """Distribution of an average of independent scores.

    Attributes
    ----------
    mean, sd : float
    ends : tuple of float
        All but a negligible probability lies between them.
    below : callable
        The distribution function, for values of shape (value,) between the ends.
    """

    mean: float
    sd: float
    ends: tuple[float, float]
    below: Callable[[FloatArray], FloatArray]

    def probability_below(self, values: FloatArray) -> FloatArray:
        """Return the distribution function at values of shape (value,)."""
        low, high = self.ends
        if low == high:  # half of the point's mass lies below it
            return np.where(values == low, 0.5, values > low)
        inside = np.clip(self.below(np.clip(values, low, high)), 0.0, 1.0)
        return np.where(values <= low, 0.0, np.where(values >= high, 1.0, inside))

    def quantiles(self, probabilities: FloatArray) -> FloatArray:
        """Return quantiles for probabilities of shape (probability,)."""
        low, high = (np.full(len(probabilities), end) for end in self.ends)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            under = self.below(middle) < probabilities
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        return (low + high) / 2


def average(scores: Scores, probabilities: FloatArray) -> Average:
    """Return moments, and quantiles at probabilities, of the average of scores over questions.

    Quantiles are exact to about 1e-9 standard deviations by the series, 1e-6 by the lattice.

    Examples
    --------
    >>> from bayesrank.evaluation.scores import beta_scores
    >>> two = beta_scores(np.ones(2), np.ones(2), lambda u: u)  # a triangle between 0 and 1
    >>> average(two, np.array([0.125])).quantiles.round(6)
    array([0.25])
    """
    if not len(probabilities):
        mean, sd, _ = _moments(scores)
        return Average(mean, sd, np.empty(0))
    distribution = average_distribution(scores)
    quantiles = distribution.quantiles(probabilities)
    return Average(distribution.mean, distribution.sd, quantiles)


def average_distribution(scores: Scores) -> AverageDistribution:
    """Return the distribution of the average of scores over questions.

    Scales of both signs are allowed, so that the difference of two averages is an average too.

    Parameters
    ----------
    scores : Scores
        One independent score per question.

    Returns
    -------
    AverageDistribution

    Examples
    --------
    >>> from bayesrank.evaluation.scores import beta_scores
    >>> two = beta_scores(np.ones(2), np.ones(2), lambda u: u)
    >>> average_distribution(two).probability_below(np.array([0.25, 0.5])).round(6)
    array([0.125, 0.5  ])
    """
    mean, sd, (low, high) = _moments(scores)
    if sd <= 1e-14 * max(abs(low), abs(high), 1e-300):
        return AverageDistribution(mean, sd, (mean, mean), lambda x: np.where(x < mean, 0.0, 1.0))
    constant = float(scores.shift.mean())
    centre = mean - constant
    ends = max(low, centre - _WINDOW * sd), min(high, centre + _WINDOW * sd)
    term = scores.scale / len(scores.scale)
    if len(term) == 1:
        below = _of_one(scores, term[0])
    else:
        below = _by_series(scores, term, ends) or _by_lattice(scores, term, ends)
    shifted = ends[0] + constant, ends[1] + constant
    return AverageDistribution(mean, sd, shifted, lambda x: below(x - constant))


def _moments(scores: Scores) -> tuple[float, float, tuple[float, float]]:
    """Return mean and standard deviation, and the range without the constant shift."""
    term = scores.scale / len(scores.scale)
    nodes, masses = scores.nodes(_node_count(scores.sharpness))
    value = scores.value(nodes)
    each = masses @ value
    spread = np.maximum(masses @ value**2 - each**2, 0.0)
    # The square of the difference avoids cancellation if a score hardly varies.
    spread = np.where(spread < 1e-6 * each**2, _central(masses, value, each), spread)
    mean = float(term @ each) + float(scores.shift.mean())
    unit = power_of_two(term)  # squares of very large or small worths leave the range of float64
    sd = unit * float(np.sqrt((term / unit) ** 2 @ spread))
    reach = np.append(value, scores.value(np.asarray(scores.breaks)))
    sides = np.multiply.outer(term, [reach.min(), reach.max()])
    return mean, sd, (float(sides.min(axis=1).sum()), float(sides.max(axis=1).sum()))


def _central(masses: FloatArray, value: FloatArray, mean: FloatArray) -> FloatArray:
    return (masses * (value - mean[:, None]) ** 2).sum(axis=1)


def _node_count(sharpness: float, phase: float = 0.0) -> int:
    """Return how many nodes resolve densities of so many trials and waves of this phase."""
    return int(64 + 5.0 * np.sqrt(sharpness) + phase)


def _by_series(
    scores: Scores, term: FloatArray, ends: tuple[float, float]
) -> Callable[[FloatArray], FloatArray] | None:
    """Invert the Fourier series of the distribution function; None if it decays too slowly."""
    start, period = ends[0], ends[1] - ends[0]
    largest = np.abs(term).max()
    size = 128  # a multiple of 16
    base = 2.0 * np.pi / period
    while True:
        if size * _node_count(scores.sharpness, size * base * 2.0 * largest) > _MOST_WAVES:
            return None
        coefficients = _characteristic(scores, term, base, size)
        if np.abs(coefficients[-size // 4 :]).max() < _SMALL_COEFFICIENT:
            break
        size *= 2
    frequency = base * np.arange(1.0, size + 1.0)
    coefficients = coefficients * np.exp(1j * frequency * start) / (1j * frequency * period)

    def below(x: FloatArray) -> FloatArray:
        x = x - start
        waves = np.exp(1j * np.multiply.outer(x, frequency)) - 1.0
        return x / period + 2.0 * (waves @ coefficients).real

    return below


def _characteristic(
    scores: Scores, term: FloatArray, base: float, size: int
) -> NDArray[np.complex128]:
    """Return the conjugate of the characteristic function of the sum of term * value.

    At the first `size` multiples of the base frequency.
    """
    n_nodes = _node_count(scores.sharpness, size * base * 2.0 * np.abs(term).max())
    nodes, masses = scores.nodes(n_nodes)
    value = scores.value(nodes)
    product = np.ones(size, dtype=np.complex128)
    for factor in np.unique(term):
        # Questions with the same outcomes have the same density, and there are few possible
        # outcomes.
        alike = Counter(mass.tobytes() for mass in masses[term == factor])
        distinct = np.array([np.frombuffer(row) for row in alike])
        factors = distinct @ _waves(factor * base * value, size)
        product *= (factors ** np.array(list(alike.values()))[:, None]).prod(axis=0)
    return product


def _waves(phase: FloatArray, size: int) -> NDArray[np.complex128]:
    """Return exp(-i phase j) for j from 1 to size, of shape (node, frequency)."""
    fine = np.exp(-1j * np.multiply.outer(phase, np.arange(1.0, 17.0)))
    coarse = np.exp(-1j * np.multiply.outer(phase, np.arange(0.0, size, 16.0)))
    return (coarse[:, :, None] * fine[:, None, :]).reshape(len(phase), size)


def _by_lattice(
    scores: Scores, term: FloatArray, ends: tuple[float, float]
) -> Callable[[FloatArray], FloatArray]:
    """Convolve the masses of the terms on a cyclic lattice over the window."""
    step = (ends[1] - ends[0]) / (_LATTICE - 16)  # a margin that keeps the ends apart
    start = ends[0] - 8 * step
    nodes, masses = scores.midpoints(_FINE)
    value = scores.value(nodes)
    transform = np.ones(_LATTICE // 2 + 1, dtype=np.complex128)
    for factor, mass in zip(term, masses, strict=True):
        position = value * factor / step
        whole = np.floor(position)
        right = position - whole
        cell = whole.astype(np.int64) % _LATTICE
        on_lattice = np.bincount(cell, mass * (1.0 - right), _LATTICE)
        on_lattice += np.bincount((cell + 1) % _LATTICE, mass * right, _LATTICE)
        transform *= np.fft.rfft(on_lattice)
    total = np.maximum(np.fft.irfft(transform, _LATTICE), 0.0)
    # Lattice point 0 is the sum 0: rotate the lattice so that the window comes first.
    turn = int(np.floor(start / step))
    total = np.roll(total, -turn)
    points = (turn + np.arange(_LATTICE)) * step
    # Half of a point's mass lies below it.
    mass_below = (np.cumsum(total) - total / 2) / total.sum()
    return lambda x: np.interp(x, points, mass_below)


def _of_one(scores: Scores, factor: float) -> Callable[[FloatArray], FloatArray]:
    """Return the distribution function of a single term, from its masses on fine nodes."""
    nodes, masses = scores.midpoints(_FINE)
    value = factor * scores.value(nodes)
    order = np.argsort(value, kind="stable")
    mass = masses[0, order]
    ordered, mass_below = value[order], np.cumsum(mass) - mass / 2
    return lambda x: np.interp(x, ordered, mass_below)
