"""What draws of a bootstrap do not show by themselves: bias, leverage, skewness and jumps.

Draws are of shape (chain, draw, system). All but scores that jump stay within the range of the
draws of their system, beyond which a score may not exist. Bias and leverage do not concern scores
that are nearly linear in the data, whose draws are left as they are; skewness concerns all.
Formulas, numbers and references: docs/uncertainty.md.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.resample.clusters import FEW_UNITS
from bayesrank.inference.resample.contributions import ROUNDING, Contributions

Array = NDArray[np.float64]

_NORMAL = NormalDist()

# Standard errors up to which what draws show may be their noise.
_CLEAR = 4.0


def correct_bias(score: Array, draws: Array) -> Array:
    """Shift draws along their own quantiles where the estimate is neither median nor mean of them.

    As far as the draws lie off the estimate the estimate lies off the truth. Measured in standard
    deviations of a normal distribution, that distance is the same on any scale of the score. Linear
    scores, however skewed their draws, have the estimate as the mean of these, and are left alone.
    """
    flat = draws.reshape(-1, draws.shape[-1])
    n = len(flat)
    slack = ROUNDING * np.abs(score)
    below = ((flat < score - slack).mean(axis=0) + (flat <= score + slack).mean(axis=0)) / 2.0
    clear = _CLEAR / math.sqrt(n)  # of a mean, in standard deviations
    off = np.abs(flat.mean(axis=0) - score) > clear * _spread(draws) + slack
    off &= np.abs(below - 0.5) > 0.5 * math.erf(clear * math.sqrt(math.pi) / 2.0)  # of a median
    places, normal = {}, _normal_quantiles(n)
    for system in np.flatnonzero(off).tolist():
        bias = _NORMAL.inv_cdf(min(max(below[system], 0.5 / n), 1.0 - 0.5 / n))
        # Beyond the last draw there are no quantiles left to shift the median to.
        places[system] = normal + min(max(2.0 * bias, normal[0]), normal[-1])
    return _move(draws, places)


def _move(draws: Array, places: Mapping[int, Array]) -> Array:
    """Put the draws of some systems elsewhere among their own quantiles, on a normal scale."""
    if not places:
        return draws
    moved = draws.reshape(-1, draws.shape[-1]).copy()
    normal = _normal_quantiles(len(moved))
    for system, place in places.items():
        order = np.argsort(moved[:, system], kind="stable")
        moved[order, system] = np.interp(place, normal, moved[order, system])
    return moved.reshape(draws.shape)


@lru_cache(maxsize=8)
def _normal_quantiles(n: int) -> Array:
    # SciPy takes longer to load than many methods to rank.
    return np.array([_NORMAL.inv_cdf((place + 0.5) / n) for place in range(n)])


def _spread(draws: Array) -> Array:
    """Return the standard deviation of each system, whose squares may overflow."""
    size = np.abs(draws).max(axis=(0, 1))
    size[size == 0.0] = 1.0
    return size * (draws / size).std(axis=(0, 1))


def accelerate(draws: Array, acceleration: Array) -> Array:
    """Move draws along their own quantiles as far as the standard error changes with the score."""
    # At most 1/6 in size, so that the denominators are positive for normal quantiles up to 6.
    normal = _normal_quantiles(draws[..., 0].size)
    skewed = np.flatnonzero(acceleration).tolist()
    return _move(draws, {one: normal / (1.0 - acceleration[one] * normal) for one in skewed})


def scale(draws: Array, factor: Array | float) -> Array:
    """Multiply deviations from the mean of each system by factors."""
    mean = draws.mean(axis=(0, 1))
    return mean + factor * (draws - mean)


def stretch(draws: Array, factor: Array) -> Array:
    """Multiply deviations from the mean of each system by factors, if above 1, within the range."""
    stretched = np.clip(scale(draws, factor), draws.min(axis=(0, 1)), draws.max(axis=(0, 1)))
    return np.where(factor > 1.0, stretched, draws)


def widen(draws: Array, table: Contributions, *, always: bool = False) -> Array:
    """Give draws the spread of the jackknife where that is clearly larger, or larger at all.

    Weights that are drawn at random hardly ever leave a question out, and so hide how far a score
    hangs on a few of them. The degrees of freedom of the jackknife's variance are those that the
    kurtosis of the contributions leaves it.
    """
    mean, spread = draws.mean(axis=(0, 1)), _spread(draws)
    # Draws have the variance of Student's t with n - 1 degrees of freedom.
    found = table.standard_errors
    noise = 1.0 / math.sqrt(2.0 * draws[..., 0].size)  # of a standard deviation, relative to it
    wider = always | (np.sqrt(table.widening) * found > (1.0 + _CLEAR * noise) * spread)
    wider &= spread > ROUNDING * np.abs(mean)
    # At least those of as few units as tell a spread, where the variance of t is twice as large.
    freedom = np.maximum(table.tail_freedom, FEW_UNITS - 1)
    wanted = np.sqrt(freedom / (freedom - 2.0)) * found
    return stretch(draws, np.divide(wanted, spread, out=np.ones_like(spread), where=wider))


def show_leverage(draws: Array, table: Contributions | None, *, always: bool = False) -> Array:
    """Return draws with the spread and the skewness of contributions, where these are known."""
    if table is None:
        return draws
    return accelerate(widen(draws, table, always=always), table.acceleration)


def iterate(draws: Array, again: Array) -> Array:
    """Scale draws by as much as their spread changes from resamples to resamples of those.

    Whatever factor lies between the spread of a score that jumps and that of its resamples, about
    the same lies between that and the spread of their resamples: `again` are scores of data
    resampled from resampled data, two from the same, (2, pair, system).
    """
    variance, following = draws.var(axis=(0, 1)), ((again[0] - again[1]) ** 2).mean(axis=0) / 2.0
    ratio = np.divide(variance, following, out=np.ones_like(variance), where=following > 0.0)
    return scale(draws, np.sqrt(ratio))


def scale_to_largest(score: Array, draws: Array) -> Array:
    """Return draws of positive shares as percentages of the largest, corrected for its bias.

    The largest of several estimates is too large, and that of their draws once more, by as much as
    the mean of the largest is above the largest of the means. Systems far below the largest are
    moved up by both, those near it by less, so that they keep their order.
    """
    # A share is off its expectation by as much as its draws are off the share, on average.
    draws = draws + 2.0 * (score - draws.mean(axis=(0, 1)))
    draws = np.maximum(draws, ROUNDING)
    largest = draws.max(axis=-1, keepdims=True)
    gap = np.log(largest / draws)
    bias = 2.0 * math.log(largest.mean() / draws.mean(axis=(0, 1)).max())
    if bias > ROUNDING:
        gap += bias * np.expm1(-gap / bias)
    return 100.0 * np.exp(-gap)
