"""Comparison of rankings place by place: overlap near the top, footrule and displacement.

Every function takes ranks of shape (..., system), 1 for the best; leading axes are batches of
rankings and broadcast. Only the order counts, for any kind of ranks: ties share the mean of their
places.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.results.ranks import average_rank, rank_scores
from bayesrank.validation import check_between_0_and_1, check_integer

FloatArray = NDArray[np.float64]


def _chance_within(ranks: FloatArray, depth: NDArray[np.int64]) -> FloatArray:
    """Return the chance that a system stands within each depth when ties are broken at random."""
    first = np.asarray(rank_scores(-ranks, method="competition"), dtype=np.float64)
    last = np.asarray(rank_scores(-ranks, method="competition_max"), dtype=np.float64)
    within = (depth - first[..., None] + 1.0) / (last - first + 1.0)[..., None]
    return np.clip(within, 0.0, 1.0)


def _agreement_at(x: ArrayLike, y: ArrayLike, depth: NDArray[np.int64]) -> FloatArray:
    """Return the share that two rankings have in common within each depth."""
    in_x = _chance_within(np.asarray(x, dtype=np.float64), depth)
    in_y = _chance_within(np.asarray(y, dtype=np.float64), depth)
    shared = np.einsum("...sd,...sd->...d", in_x, in_y)
    norm_x = np.einsum("...sd,...sd->...d", in_x, in_x)
    norm_y = np.einsum("...sd,...sd->...d", in_y, in_y)
    return shared / np.sqrt(norm_x * norm_y)


def top_k_overlap(x: ArrayLike, y: ArrayLike, *, k: int) -> FloatArray:
    r"""Return the share of the k best systems that two rankings have in common.

    If the k-th place is within a group of ties, each of its systems is in the top k with the share
    of its places that are; with :math:`c` these shares, the overlap is
    :math:`\sum c_x c_y / \sqrt{\sum c_x^2 \sum c_y^2}`, which is 1 for equal rankings and the plain
    share without ties.

    Parameters
    ----------
    x, y : array_like of shape (..., system)
        Ranks, 1 for the best.
    k : int
        Depth, from 1 to the number of systems.

    Returns
    -------
    numpy.ndarray of shape (...)
        Between 0 and 1.

    Raises
    ------
    ValueError
        If k is not between 1 and the number of systems.

    Examples
    --------
    >>> float(top_k_overlap([1, 2, 3, 4], [2, 3, 1, 4], k=2))
    0.5
    """
    n_systems = np.shape(x)[-1]
    if check_integer(k, "k") > n_systems:
        raise ValueError(f"k must be at most the {n_systems} systems; got {k}")
    return _agreement_at(x, y, np.array([k]))[..., 0]


def rank_biased_overlap(x: ArrayLike, y: ArrayLike, *, p: float = 0.9) -> FloatArray:
    r"""Return the overlap of two rankings averaged over depths, the top weighing most.

    .. math:: \frac{1-p}{p} \sum_{d=1}^{L} p^d A_d + p^L

    with :math:`A_d` the overlap of the d best, ties as in :func:`top_k_overlap`. The last term is
    the part beyond depth L, where two rankings of the same systems agree.

    Parameters
    ----------
    x, y : array_like of shape (..., system)
        Ranks, 1 for the best.
    p : float, default 0.9
        Persistence, between 0 and 1: the weight of depth d falls like p to the power d.

    Returns
    -------
    numpy.ndarray of shape (...)
        Between 0 and 1; 1 for equal rankings.

    Raises
    ------
    ValueError
        If p is not strictly between 0 and 1.

    References
    ----------
    .. [1] W. Webber, A. Moffat and J. Zobel. A similarity measure for indefinite rankings. ACM
       Transactions on Information Systems 28 (2010). https://doi.org/10.1145/1852102.1852106
    .. [2] M. Corsi and J. Urbano. The treatment of ties in rank-biased overlap. SIGIR (2024).
       https://doi.org/10.48550/arXiv.2406.07121

    Examples
    --------
    >>> round(float(rank_biased_overlap([1, 2, 3], [2, 1, 3], p=0.5)), 6)
    0.5
    """
    check_between_0_and_1(p, "p")
    depth = np.arange(1, np.shape(x)[-1] + 1)
    discount = (1.0 - p) * p ** (depth - 1.0)
    return (_agreement_at(x, y, depth) * discount).sum(axis=-1) + p ** depth[-1]


def _displacements(x: ArrayLike, y: ArrayLike) -> FloatArray:
    return np.abs(average_rank(np.asarray(x)) - average_rank(np.asarray(y)))


def footrule(x: ArrayLike, y: ArrayLike) -> FloatArray:
    r"""Return Spearman's footrule, as a share of the largest possible.

    .. math:: \sum_i |x_i - y_i| \big/ \lfloor L^2 / 2 \rfloor

    Parameters
    ----------
    x, y : array_like of shape (..., system)
        Ranks, 1 for the best.

    Returns
    -------
    numpy.ndarray of shape (...)
        Distance between 0 for equal and 1 for reversed rankings; 0 for a single system.

    References
    ----------
    .. [1] P. Diaconis and R. L. Graham. Spearman's footrule as a measure of disarray. Journal of
       the Royal Statistical Society B 39 (1977). https://doi.org/10.1111/j.2517-6161.1977.tb01624.x

    Examples
    --------
    >>> float(footrule([1, 2, 3, 4], [4, 3, 2, 1]))
    1.0
    """
    moved = _displacements(x, y)
    return moved.sum(axis=-1) / max(1, moved.shape[-1] ** 2 // 2)


def mean_displacement(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Return the mean number of places by which systems differ between two rankings.

    Parameters and shapes are those of :func:`footrule`.

    Examples
    --------
    >>> float(mean_displacement([1, 2, 3, 4], [1, 3, 2, 4]))
    0.5
    """
    return _displacements(x, y).mean(axis=-1)


def median_displacement(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Return the median number of places by which systems differ between two rankings.

    Parameters and shapes are those of :func:`footrule`.

    Examples
    --------
    >>> float(median_displacement([1, 2, 3, 4], [1, 3, 2, 4]))
    0.5
    """
    return np.asarray(np.median(_displacements(x, y), axis=-1))


def max_displacement(x: ArrayLike, y: ArrayLike) -> FloatArray:
    """Return the largest number of places by which a system differs between two rankings.

    Parameters and shapes are those of :func:`footrule`.

    Examples
    --------
    >>> float(max_displacement([1, 2, 3, 4], [1, 3, 2, 4]))
    1.0
    """
    return _displacements(x, y).max(axis=-1)
