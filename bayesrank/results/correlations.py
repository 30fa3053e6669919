"""Correlations of rankings: Kendall's tau, Spearman's rho, the intraclass correlation.

Every function takes ranks of shape (..., system), 1 for the best; leading axes are batches of
rankings and broadcast. Only the order counts; only :func:`pearson` uses the values. The correlation
with a ranking in which all systems are tied is NaN.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.batches import batches
from bayesrank.results.ranks import average_rank

FloatArray = NDArray[np.float64]

# From this many systems on, pairs are counted by sorting, one pair of rankings at a time. Below,
# the signs of all pairs, for all rankings at once, are faster.
_SORTED_FROM = 500


def _pair_signs(ranks: ArrayLike) -> NDArray[np.int8]:
    """Return the sign of every pair of systems, exact ties 0, of shape (..., pair)."""
    places = average_rank(np.asarray(ranks, dtype=np.float64))
    first, second = np.triu_indices(places.shape[-1], 1)
    a, b = places[..., first], places[..., second]
    return (a > b).astype(np.int8) - (a < b).astype(np.int8)


def _concordance(x: NDArray[np.int8], y: NDArray[np.int8]) -> FloatArray:
    """Count concordant minus discordant pairs, exactly and without a copy of the broadcast."""
    return np.einsum("...p,...p->...", x, y, dtype=np.float64)


def _untied(places: FloatArray) -> float:
    """Count the pairs that one ranking does not tie."""
    sizes = np.unique(places, return_counts=True)[1]
    return float((len(places) ** 2 - (sizes**2).sum()) // 2)


def _count_pairs(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count concordant minus discordant pairs, and the pairs not tied in x and in y."""
    if np.shape(x)[-1] < _SORTED_FROM:
        a, b = _pair_signs(x), _pair_signs(y)
        return _concordance(a, b), _concordance(a, a), _concordance(b, b)
    from scipy.stats import kendalltau  # half a second, for large rankings only

    places = np.broadcast_arrays(average_rank(np.asarray(x)), average_rank(np.asarray(y)))
    counts = np.zeros((3, *places[0].shape[:-1]))
    for row in np.ndindex(places[0].shape[:-1]):
        a, b = places[0][row], places[1][row]
        untied = _untied(a), _untied(b)
        size = np.sqrt(untied[0] * untied[1])
        # Its tau is rounded; the count of pairs is whole.
        tau = kendalltau(a, b, method="asymptotic")[0] if size > 0.0 else 0.0
        counts[(slice(None), *row)] = np.rint(tau * size), *untied
    return counts[0], counts[1], counts[2]


def _ratio(numerator: FloatArray, denominator: FloatArray | np.float64) -> FloatArray:
    """Divide, with NaN where the denominator is zero."""
    safe = np.where(denominator > 0.0, denominator, 1.0)
    return np.where(denominator > 0.0, numerator / safe, np.nan)


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> FloatArray:
    r"""Return Kendall's tau-b, which corrects for ties.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(P - T_x)(P - T_y)}}

    with C concordant and D discordant pairs of P = L(L-1)/2, and T pairs tied in one ranking.
    Large rankings take time in proportion to L log L and memory in proportion to L.

    Parameters
    ----------
    x, y : array_like of shape (..., system)
        Ranks, 1 for the best.

    Returns
    -------
    numpy.ndarray of shape (...)
        Between -1 and 1; NaN if a ranking is one group of ties.

    References
    ----------
    .. [1] M. G. Kendall. The treatment of ties in ranking problems. Biometrika 33 (1945).
       https://doi.org/10.1093/biomet/33.3.239

    Examples
    --------
    >>> round(float(kendall_tau_b([1, 2, 2, 4], [1, 2, 3, 4])), 6)
    0.912871
    """
    concordance, untied_x, untied_y = _count_pairs(x, y)
    # The root of a squared count is exact, so equal rankings give exactly 1.
    return _ratio(concordance, np.sqrt(untied_x * untied_y))


def kendall_tau_a(x: ArrayLike, y: ArrayLike) -> FloatArray:
    r"""Return Kendall's tau-a, concordant minus discordant pairs as a share of all pairs.

    Parameters and shapes are those of :func:`kendall_tau_b`; ties lower it, even between equal
    rankings.

    References
    ----------
    .. [1] M. G. Kendall. A new measure of rank correlation. Biometrika 30 (1938).
       https://doi.org/10.1093/biomet/30.1-2.81

    Examples
    --------
    >>> round(float(kendall_tau_a([1, 2, 2, 4], [1, 2, 3, 4])), 6)
    0.833333
    """
    n_systems = np.shape(x)[-1]
    return _ratio(_count_pairs(x, y)[0], np.float64(n_systems * (n_systems - 1) / 2))


def weighted_tau(x: ArrayLike, y: ArrayLike) -> FloatArray:
    r"""Return Kendall's tau with pairs near the top weighing more.

    .. math::

        \tau_w = \frac{\sum w_{ij} s^x_{ij} s^y_{ij}}
            {\sqrt{\sum w_{ij} (s^x_{ij})^2 \sum w_{ij} (s^y_{ij})^2}}, \qquad
        s^x_{ij} = \operatorname{sgn}(x_i - x_j)

    with :math:`w_{ij} = 1/r_i + 1/r_j`, averaged over r the ranks in x and r the ranks in y. Ties
    share their mean rank, so labels do not matter.

    Parameters
    ----------
    x, y : array_like of shape (..., system)
        Ranks, 1 for the best.

    Returns
    -------
    numpy.ndarray of shape (...)
        Between -1 and 1; NaN if a ranking is one group of ties.

    References
    ----------
    .. [1] S. Vigna. A weighted correlation index for rankings with ties. WWW (2015).
       https://doi.org/10.48550/arXiv.1404.3325

    Examples
    --------
    >>> round(float(weighted_tau([1, 2, 3, 4], [2, 1, 3, 4])), 6)
    0.52
    >>> round(float(weighted_tau([1, 2, 3, 4], [1, 2, 4, 3])), 6)
    0.813333
    """
    a, b = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    n_systems = a.shape[-1]
    flat_a, flat_b = a.reshape(-1, n_systems), b.reshape(-1, n_systems)
    tau = np.empty(len(flat_a))
    for rows in batches(len(flat_a), n_systems * (n_systems - 1) // 2):
        tau[rows] = _weighted_tau_block(flat_a[rows], flat_b[rows])
    return tau.reshape(a.shape[:-1])


def _weighted_tau_block(x: FloatArray, y: FloatArray) -> FloatArray:
    signs_x, signs_y = _pair_signs(x).astype(np.float64), _pair_signs(y).astype(np.float64)
    first, second = np.triu_indices(x.shape[-1], 1)
    total = np.zeros(len(x))
    for ranks in (x, y):
        importance = 1.0 / average_rank(ranks)
        weight = importance[:, first] + importance[:, second]
        concordant = (weight * signs_x * signs_y).sum(axis=-1)
        untied_x = (weight * signs_x**2).sum(axis=-1)
        untied_y = (weight * signs_y**2).sum(axis=-1)
        total += _ratio(concordant, np.sqrt(untied_x * untied_y))
    return total / 2.0


def pearson(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Return Pearson's correlation of the values themselves.

    Parameters
    ----------
    x, y : array_like of shape (..., system)
        Ranks or scores.

    Returns
    -------
    numpy.ndarray of shape (...)
        Between -1 and 1; NaN where all values of one side are equal.

    Examples
    --------
    >>> float(pearson([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]))
    1.0
    """
    a = np.asarray(x, dtype=np.float64)
    b = np.asarray(y, dtype=np.float64)
    a = a - a.mean(axis=-1, keepdims=True)
    b = b - b.mean(axis=-1, keepdims=True)
    norm = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    return np.clip(_ratio((a * b).sum(axis=-1), norm), -1.0, 1.0)


def spearman(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Return Spearman's rho, Pearson's correlation of average ranks.

    Parameters and shapes are those of :func:`kendall_tau_b`.

    References
    ----------
    .. [1] C. Spearman. The proof and measurement of association between two things. The American
       Journal of Psychology 15 (1904). https://doi.org/10.2307/1412159

    Examples
    --------
    >>> round(float(spearman([1, 2, 3, 4], [2, 1, 3, 4])), 6)
    0.8
    """
    return pearson(average_rank(np.asarray(x)), average_rank(np.asarray(y)))


def icc1(*rankings: ArrayLike) -> FloatArray:
    r"""Return the one-way intraclass correlation of two rankings or more.

    .. math:: \operatorname{ICC}(1) = \frac{B - W}{B + (n - 1) W}

    with B and W the mean squares of average ranks between and within systems, over n rankings.

    Parameters
    ----------
    *rankings : array_like of shape (..., system)
        Ranks, 1 for the best.

    Returns
    -------
    numpy.ndarray of shape (...)
        At most 1, for equal rankings; NaN if every ranking is one group of ties.

    Raises
    ------
    ValueError
        If there are fewer than two rankings.

    References
    ----------
    .. [1] P. E. Shrout and J. L. Fleiss. Intraclass correlations: uses in assessing rater
       reliability. Psychological Bulletin 86 (1979). https://doi.org/10.1037/0033-2909.86.2.420

    Examples
    --------
    >>> round(float(icc1([1, 2, 3], [2, 1, 3])), 6)
    0.636364
    """
    if len(rankings) < 2:
        raise ValueError(f"rankings must be at least two; got {len(rankings)}")
    places = np.stack(
        np.broadcast_arrays(*(average_rank(np.asarray(ranking)) for ranking in rankings)), axis=-2
    )
    n, n_systems = places.shape[-2:]
    per_system = places.mean(axis=-2)
    overall = per_system.mean(axis=-1)
    between = n * ((per_system - overall[..., None]) ** 2).sum(axis=-1) / max(1, n_systems - 1)
    within = ((places - per_system[..., None, :]) ** 2).sum(axis=(-2, -1)) / (n_systems * (n - 1))
    return _ratio(between - within, between + (n - 1) * within)
