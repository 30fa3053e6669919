"""Scores to ranks: ties by a relative tolerance, every function batched over leading axes."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

RankMethod = Literal["competition", "competition_max", "dense", "average"]
RANK_METHODS: tuple[RankMethod, ...] = ("competition", "competition_max", "dense", "average")

# Scores that differ by less than this share of their range are equal. Sums of a few thousand terms
# in float64 agree to about 1e-13 of their size whatever their order, so that is the least.
TIE_TOLERANCE = 1e-10
ROUNDING = 1e-13


def _descending(
    scores: NDArray[np.float64], tol: float
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Order scores from best to worst and mark where a new group of equal scores starts."""
    if np.isnan(scores).any():
        raise ValueError("scores must not contain NaN; got NaN")
    order = np.argsort(-scores, axis=-1, kind="stable")
    ordered = np.take_along_axis(scores, order, axis=-1)
    finite = np.isfinite(ordered)
    size = np.where(finite, np.abs(ordered), 0.0).max(axis=-1, keepdims=True, initial=0.0)
    high = np.where(finite, ordered, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    low = np.where(finite, ordered, np.inf).min(axis=-1, keepdims=True, initial=np.inf)
    gap = np.maximum(tol * np.maximum(high - low, 0.0), min(tol, ROUNDING) * size)
    starts = np.ones(scores.shape, dtype=bool)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, which compares as equal, as it should
        starts[..., 1:] = ordered[..., :-1] - ordered[..., 1:] > gap
    return order, starts


def tie_groups(scores: ArrayLike, *, tol: float = TIE_TOLERANCE) -> NDArray[np.int64]:
    """Label the groups of equal scores, 1 for the best.

    Parameters
    ----------
    scores : array_like of shape (..., system)
        Scores, higher is better; no NaN.
    tol : float, default 1e-10
        Neighbours in the order are equal when they differ by at most `tol` times the range of the
        finite scores, or by at most 1e-13 of the largest one, which is rounding.

    Returns
    -------
    numpy.ndarray of int64 and shape (..., system)

    Raises
    ------
    ValueError
        If a score is NaN.

    Examples
    --------
    >>> tie_groups([0.2, 0.9, 0.1 + 0.1, 0.5])
    array([3, 1, 3, 2])
    """
    values = np.asarray(scores, dtype=np.float64)
    order, starts = _descending(values, tol)
    groups = np.empty(values.shape, dtype=np.int64)
    np.put_along_axis(groups, order, np.cumsum(starts, axis=-1), axis=-1)
    return groups


def rank_range(
    scores: ArrayLike, *, tol: float = TIE_TOLERANCE
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last position that each system shares with its equals.

    Parameters
    ----------
    scores : array_like of shape (..., system)
        Scores, higher is better; no NaN.
    tol : float, default 1e-10
        As in :func:`tie_groups`.

    Returns
    -------
    first, last : numpy.ndarray of int64 and shape (..., system)

    Raises
    ------
    ValueError
        If a score is NaN.

    Examples
    --------
    >>> rank_range([3.0, 5.0, 3.0])
    (array([2, 1, 2]), array([3, 1, 3]))
    """
    values = np.asarray(scores, dtype=np.float64)
    order, starts = _descending(values, tol)
    size = values.shape[-1]
    position = np.arange(1, size + 1)
    ends = np.ones_like(starts)
    ends[..., :-1] = starts[..., 1:]
    first = np.maximum.accumulate(np.where(starts, position, 1), axis=-1)
    last = np.minimum.accumulate(np.where(ends, position, size)[..., ::-1], axis=-1)[..., ::-1]
    ranges = np.empty((2, *values.shape), dtype=np.int64)
    np.put_along_axis(ranges[0], order, first, axis=-1)
    np.put_along_axis(ranges[1], order, last, axis=-1)
    return ranges[0], ranges[1]


def rank_scores(
    scores: ArrayLike, *, method: RankMethod = "competition", tol: float = TIE_TOLERANCE
) -> NDArray[np.int64] | NDArray[np.float64]:
    """Rank scores, 1 for the highest, with ties by a relative tolerance.

    Parameters
    ----------
    scores : array_like of shape (..., system)
        Scores, higher is better; no NaN.
    method : {"competition", "competition_max", "dense", "average"}, default "competition"
        What equal scores share: the best position, the worst, the number of their group, or the
        mean position. Ordinal ranks are not offered, since they invent an order among ties.
    tol : float, default 1e-10
        As in :func:`tie_groups`.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        int64, or float64 for ``method="average"``.

    Raises
    ------
    ValueError
        If a score is NaN or `method` is unknown.

    Examples
    --------
    >>> rank_scores([3.0, 5.0, 3.0])
    array([2, 1, 2])
    >>> rank_scores([3.0, 5.0, 3.0], method="average")
    array([2.5, 1. , 2.5])
    """
    if method not in RANK_METHODS:
        raise ValueError(f"method must be one of {', '.join(RANK_METHODS)}; got {method!r}")
    values = np.asarray(scores, dtype=np.float64)
    if method == "dense":
        return tie_groups(values, tol=tol)
    first, last = rank_range(values, tol=tol)
    if method == "average":
        return (first + last) / 2.0
    return first if method == "competition" else last


def average_rank(
    scores: ArrayLike, *, axis: int = -1, tol: float = TIE_TOLERANCE
) -> NDArray[np.float64]:
    """Return average ranks in ascending order, 1 for the lowest score.

    ``scipy.stats.rankdata`` does the same without a tolerance; importing scipy.stats costs half a
    second, as much as everything else a NumPy ranking does.

    Parameters
    ----------
    scores : array_like
        Scores; no NaN.
    axis : int, default -1
        The axis to rank along.
    tol : float, default 1e-10
        As in :func:`tie_groups`.

    Returns
    -------
    numpy.ndarray of float64 and the shape of `scores`

    Examples
    --------
    >>> average_rank([3.0, 5.0, 3.0])
    array([1.5, 3. , 1.5])
    """
    values = np.moveaxis(np.asarray(scores, dtype=np.float64), axis, -1)
    return np.moveaxis(
        np.asarray(rank_scores(-values, method="average", tol=tol), dtype=np.float64), -1, axis
    )


def better_scores(score: ArrayLike) -> NDArray[np.bool_]:
    """Say which systems have a better point estimate than which, exact ties decided as in ranks.

    Parameters
    ----------
    score : array_like of shape (system,)
        Point estimates.

    Returns
    -------
    numpy.ndarray of bool and shape (system, opponent)
    """
    places = tie_groups(score)
    return places[:, None] < places


def adjacent_z_ranks(mean: ArrayLike, sd: ArrayLike, *, z: float = 1.645) -> NDArray[np.int64]:
    """Rank by the rule that neighbours closer than z share a rank.

    The rule chains: a share of ranks may run through any number of systems, the ends of which are
    far apart.

    Parameters
    ----------
    mean, sd : array_like of shape (system,)
        Posterior means and standard deviations of independent scores.
    z : float, default 1.645
        Systems that follow one another in the order share a rank while the difference of their
        means is below z standard deviations of it.

    Returns
    -------
    numpy.ndarray of int64 and shape (system,)
        Dense ranks, 1 for the best.

    Raises
    ------
    ValueError
        If means and standard deviations are not one finite number for each system, a standard
        deviation is negative, or `z` is.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025), section 2.7.1. https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> adjacent_z_ranks([0.62, 0.61, 0.4], [0.01, 0.01, 0.01])
    array([1, 1, 2])
    """
    means, sds = np.asarray(mean, dtype=np.float64), np.asarray(sd, dtype=np.float64)
    if means.ndim != 1 or not np.isfinite(means).all():
        raise ValueError(f"mean must hold one finite number for each system; got {mean!r}")
    if sds.shape != means.shape:
        raise ValueError(
            f"sd must hold one number for each of {len(means)} systems; got shape {sds.shape}"
        )
    if not ((sds >= 0) & (sds < np.inf)).all():
        raise ValueError(f"sd must hold finite numbers of at least 0; got {sd!r}")
    if not 0 <= z < np.inf:
        raise ValueError(f"z must be a number of at least 0; got {z!r}")
    order = np.argsort(-means, kind="stable")
    gap = means[order[:-1]] - means[order[1:]]
    apart = gap >= z * np.hypot(sds[order[:-1]], sds[order[1:]])
    # Equal means without spread are not apart, whatever z.
    apart &= gap > 0
    ranks = np.empty(len(means), dtype=np.int64)
    ranks[order] = np.concatenate([[1], 1 + np.cumsum(apart)])
    return ranks
