"""Whether ranks are uniform, by the simultaneous band of their distribution function."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

# Simulated samples that give the distribution of the statistic: enough for a p-value, times the
# elements of the largest variable, to fall below 0.01.
_N_SAMPLES = 50_000
_BATCH = 500


def uniformity(ranks: NDArray[np.int64], n_draws: int) -> NDArray[np.float64]:
    """Return p-values of the hypothesis that ranks are uniform on 0, 1, ..., n_draws.

    The statistic is the least pointwise two-sided probability of the empirical distribution
    function, so a p-value below alpha says that it leaves its simultaneous band of probability
    1 - alpha somewhere.

    Parameters
    ----------
    ranks : numpy.ndarray of shape (simulation, quantity)
        Ranks of the truth among the draws.
    n_draws : int
        Number of draws.

    Returns
    -------
    numpy.ndarray of shape (quantity,)

    References
    ----------
    .. [1] T. Sailynoja, P.-C. Burkner and A. Vehtari. Graphical test for discrete uniformity and
       its applications in goodness-of-fit evaluation and multiple sample comparison. Statistics
       and Computing 32 (2022). https://doi.org/10.1007/s11222-022-10090-6
    """
    size = len(ranks)
    null = _null_statistics(size, n_draws)
    found = _statistics(_counts(ranks.T, n_draws), size)
    return (1 + np.searchsorted(null, found * (1 + 1e-9), side="right")) / (1 + len(null))


def band(size: int, n_draws: int, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the simultaneous band of the distribution function of uniform ranks.

    Parameters
    ----------
    size : int
        Number of simulations.
    n_draws : int
        Number of draws.
    alpha : float
        Probability that the distribution function leaves the band somewhere.

    Returns
    -------
    lower, upper : numpy.ndarray of shape (n_draws,)
        At ranks of at most 0, 1, ..., n_draws - 1.
    """
    from scipy.stats import binom

    null = _null_statistics(size, n_draws)
    pointwise = null[int(alpha * len(null))]
    chance = np.arange(1, n_draws + 1) / (n_draws + 1)
    ends = binom.ppf([[pointwise / 2], [1 - pointwise / 2]], size, chance) / size
    return ends[0], ends[1]


def _counts(ranks: NDArray[np.int64], n_draws: int) -> NDArray[np.int64]:
    """Return how many ranks are at most 0, 1, ..., n_draws - 1, of shape (sample, point)."""
    rows = np.arange(len(ranks))[:, np.newaxis] * (n_draws + 1)
    length = len(ranks) * (n_draws + 1)
    histogram = np.bincount((rows + ranks).ravel(), minlength=length)
    return np.cumsum(histogram.reshape(len(ranks), -1), axis=1)[:, :-1]


def _statistics(counts: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Return the least two-sided probability over the points, of shape (sample,)."""
    below, above = _tails(size, counts.shape[1])
    points = np.arange(counts.shape[1])
    return 2 * np.minimum(below[points, counts], above[points, counts]).min(axis=1)


@cache
def _tails(size: int, n_points: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Pr(X <= n) and Pr(X >= n) of binomial counts, of shape (point, n)."""
    from scipy.stats import binom

    chance = np.arange(1, n_points + 1)[:, np.newaxis] / (n_points + 1)
    counts = np.arange(size + 1)
    return binom.cdf(counts, size, chance), binom.sf(counts - 1, size, chance)


@cache
def _null_statistics(size: int, n_draws: int) -> NDArray[np.float64]:
    """Return sorted statistics of samples of uniform ranks."""
    rng = np.random.default_rng(0)
    parts = [
        _statistics(_counts(rng.integers(0, n_draws + 1, (_BATCH, size)), n_draws), size)
        for _ in range(_N_SAMPLES // _BATCH)
    ]
    return np.sort(np.concatenate(parts))
