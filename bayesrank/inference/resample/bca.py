"""From scores of resampled data to draws around the estimate, within the range of the score."""

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NORMAL = NormalDist()

# Scores are rounded by less, relative to their size.
_ROUNDING = 1e-9


def median_place(score: Array, draws: Array) -> Array:
    """Return where the estimate is among draws, on a normal scale on which their median is 0.

    Parameters
    ----------
    score : numpy.ndarray of shape (system,)
        Estimate on the data.
    draws : numpy.ndarray of shape (chain, draw, system)
        Scores of resampled data.

    Returns
    -------
    numpy.ndarray of shape (system,)
        0 where the estimate is among equal draws that hold the median; in size at most what leaves
        the ends of 95 % intervals among the draws.
    """
    flat = draws.reshape(-1, draws.shape[-1])
    slack = _ROUNDING * np.abs(score)
    below, up_to = (flat < score - slack).mean(axis=0), (flat <= score + slack).mean(axis=0)
    half = 0.5 / len(flat)
    share = np.clip(np.clip(0.5, below, up_to), half, 1.0 - half)
    places = np.array([_NORMAL.inv_cdf(one) for one in share.tolist()])
    most = max(float(_normal_quantiles(len(flat))[-1]) - _NORMAL.inv_cdf(0.975), 0.0)
    return np.clip(places, -most, most)


def move(draws: Array, *, shift: Array, factor: Array) -> Array:
    """Move draws along their own quantiles.

    On a normal scale the draw at place w goes to ``factor * w + shift``. With the place of the
    estimate among the draws for `shift`, the estimate is their median; with its place among
    resamples of the observed units added, that is the bias-corrected percentile method [1]_.
    Dirichlet weights give the draws of a mean twice the skewness of the mean, which together with
    the correction is within an acceleration of the BCa interval of a mean [2]_.

    Parameters
    ----------
    draws : numpy.ndarray of shape (chain, draw, system)
        Scores of resampled data.
    shift, factor : numpy.ndarray of shape (system,)
        By how much they lie off, on the normal scale, and how much wider than the draws the
        distribution is.

    Returns
    -------
    numpy.ndarray of shape (chain, draw, system)
        Within the range of the draws of a system, beyond which a score may not exist.

    References
    ----------
    .. [1] B. Efron. Nonparametric standard errors and confidence intervals. The Canadian Journal of
       Statistics 9 (1981). https://doi.org/10.2307/3314608
    .. [2] B. Efron. Better bootstrap confidence intervals. Journal of the American Statistical
       Association 82 (1987). https://doi.org/10.1080/01621459.1987.10478410

    Examples
    --------
    >>> draws = np.linspace(0.0, 1.0, 1001).reshape(1, 1001, 1)
    >>> place = median_place(np.array([0.4]), draws)
    >>> moved = move(draws, shift=place, factor=np.ones(1))
    >>> np.quantile(moved, [0.0, 0.5, 1.0]).round(2)
    array([0. , 0.4, 1. ])
    """
    moved = draws.reshape(-1, draws.shape[-1]).copy()
    normal = _normal_quantiles(len(moved))
    for system in range(len(shift)):
        order = np.argsort(moved[:, system], kind="stable")
        place = factor[system] * normal + shift[system]
        moved[order, system] = np.interp(place, normal, moved[order, system])
    return moved.reshape(draws.shape)


def spread_steps(draws: Array, *, step: float, ends: tuple[float, float]) -> Array:
    """Spread draws of scores that count over the step between two values, within the range.

    What is to be covered, the expected score of a new data set of the same design, lies between the
    values that a score can take. Where few of the resamples, or none, have another value, it may
    still be off this one by a part of a step.

    Parameters
    ----------
    draws : numpy.ndarray of shape (chain, draw, system)
        Scores of resampled data, around the estimate.
    step : float
        Step between two values of the score, 0 for scores that take any.
    ends : tuple of float
        Least and largest value of the score.

    Returns
    -------
    numpy.ndarray of shape (chain, draw, system)

    Examples
    --------
    >>> spread_steps(np.array([-1.0, 1.0]).reshape(1, 2, 1), step=0.0, ends=(0.0, 4.0)).ravel()
    array([0., 1.])
    """
    return np.clip(draws + step * _evenly(draws.shape) if step > 0.0 else draws, *ends)


def iterated_factor(draws: Array, again: Array) -> Array:
    """Return by how much the spread changes from resamples to resamples of those.

    Where a score jumps inside a question, the data at hand may lie beside the jump, and resamples
    vary less than new data would; where data hardly ever lie beside one, they vary more. Whatever
    factor lies between the spread of the score and that of its resamples, about the same lies
    between that and the spread of their resamples.

    Parameters
    ----------
    draws : numpy.ndarray of shape (chain, draw, system)
        Scores of resampled data.
    again : numpy.ndarray of shape (2, pair, system)
        Scores of data resampled from resampled data, two from the same.

    Returns
    -------
    numpy.ndarray of shape (system,)

    References
    ----------
    .. [1] P. Hall and M. A. Martin. On bootstrap resampling and iteration. Biometrika 75 (1988).
       https://doi.org/10.1093/biomet/75.4.661

    Examples
    --------
    >>> draws = np.array([-2.0, 0.0, 2.0]).reshape(1, 3, 1)
    >>> again = np.array([[1.0, 3.0, 0.0], [-1.0, 1.0, 2.0]]).reshape(2, 3, 1)
    >>> iterated_factor(draws, again).round(3)
    array([1.155])
    """
    variance = draws.var(axis=(0, 1))
    next_variance = ((again[0] - again[1]) ** 2).mean(axis=0) / 2.0
    ratio = np.ones_like(variance)
    np.divide(variance, next_variance, out=ratio, where=next_variance > 0.0)
    return np.sqrt(ratio)


def _evenly(shape: tuple[int, ...]) -> Array:
    """Return deviations from -1/2 to 1/2 with mean 0, of every system in an order of its own.

    Equal counts are no sign of equal expectations.
    """
    size = math.prod(shape[:-1])
    evenly = (np.arange(size) + 0.5) / size - 0.5
    rng = np.random.default_rng(size)
    return rng.permuted(np.tile(evenly, (shape[-1], 1)), axis=1).T.reshape(shape)


@lru_cache(maxsize=8)
def _normal_quantiles(n: int) -> Array:
    # SciPy takes longer to load than many methods to rank.
    return np.array([_NORMAL.inv_cdf((place + 0.5) / n) for place in range(n)])
