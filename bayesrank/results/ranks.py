"""Scores to ranks, of estimates and of draws, and which pairs of systems are resolved.

Scores are tied by a relative tolerance. One rule decides jointly which pairs are resolved:
:func:`resolved_pairs`. Joint rank sets, groups, separation of neighbours, the headline of a report,
tables of pairs, plans and stopping use it.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.batches import batches
from bayesrank.inference.resample.units import student_variance
from bayesrank.validation import check_number, power_of_two

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

RankMethod = Literal["competition", "competition_max", "dense", "average"]
RANK_METHODS: tuple[RankMethod, ...] = ("competition", "competition_max", "dense", "average")

# Scores that differ by less than this share of their range are equal. In any order, sums of a few
# thousand terms in float64 agree to about 1e-13 of their size, which is the smallest tolerance.
TIE_TOLERANCE = 1e-10
ROUNDING = 1e-13

# Doubles of the differences from one system, which stay in the cache of a core: 1 MB.
_BLOCK_SIZE = 2**17
_ROUNDED_UP = 1.0 + 1e-9


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
        mean position. There are no ordinal ranks, since they give ties an arbitrary order.
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
    """Return which systems have a better point estimate than which others, with ties as in ranks.

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


class PairGaps(NamedTuple):
    """Differences of the scores of all pairs, and the critical value to resolve a pair.

    Attributes
    ----------
    gap, spread : numpy.ndarray of shape (system, opponent)
        Posterior mean and standard deviation of the difference.
    largest : numpy.ndarray of shape (draw,)
        Largest absolute deviation of a difference from its mean, in its standard deviations; as
        large for Student's t as its own tail probability.
    critical : float
        A pair is resolved if its difference exceeds this many standard deviations.
    """

    gap: FloatArray
    spread: FloatArray
    largest: FloatArray
    critical: float


def pair_gaps(draws: FloatArray, *, ci_prob: float, freedom: float = np.inf) -> PairGaps:
    """Compare every pair by its standardised difference, with one critical value for all pairs.

    The critical value is the quantile of the largest absolute deviation of any pair, in its
    standard deviations (max-t): with probability `ci_prob` all true differences lie together
    within that many standard deviations of their posterior means. Draws are Gaussian with the
    variance of Student's t, but many pairs need its tails: the critical value has the tail
    probability of the Gaussian one.

    Parameters
    ----------
    draws : numpy.ndarray of shape (draw, system)
        Draws of the scores.
    ci_prob : float
        Joint probability.
    freedom : float, default inf
        Degrees of freedom of the variances of the draws.

    Returns
    -------
    PairGaps
    """
    # Squares of very large or small scores leave the range of float64.
    unit = power_of_two(draws)
    draws = draws / unit
    mean = draws.mean(axis=0)
    deviations = draws - mean
    covariance = deviations.T @ deviations / len(draws)
    variance = np.diag(covariance)
    spread = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))
    # The difference of a pair that always moves together is exact up to rounding.
    floor = 1e-10 * np.maximum(np.abs(draws).max(initial=0.0), np.finfo(float).tiny)
    spread = np.maximum(spread, floor)
    largest = _largest_gaps(deviations, spread)
    if np.isfinite(freedom):
        from scipy.special import ndtr, stdtrit  # slow to import

        largest = np.maximum(
            largest, -stdtrit(freedom, ndtr(-largest)) / np.sqrt(student_variance(freedom))
        )
    critical = float(np.quantile(largest, ci_prob, method="higher"))
    return PairGaps(unit * (mean[:, None] - mean), unit * spread, largest, critical)


def _largest_gaps(deviations: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the largest standardised difference of any pair in each draw, of shape (draw,).

    Most systems are in no such pair, by a bound: a difference is at most the root of u_i^2 + u_j^2,
    with the deviations u in standard deviations, times the ratio of the spread of the difference
    under independence to its own.
    """
    n_draws, n_systems = deviations.shape
    # The common level cancels in differences.
    own_part = deviations - deviations.mean(axis=1, keepdims=True)
    variance = own_part.var(axis=0)
    apart = np.where(np.eye(n_systems, dtype=bool), np.inf, spread)
    closer = ((np.sqrt(variance[:, np.newaxis] + variance) / apart) ** 2).max(axis=1, initial=0.0)
    units = np.divide(own_part**2, variance, out=np.zeros_like(own_part), where=variance > 0.0)
    largest = np.zeros(n_draws)
    for part in batches(n_draws, n_systems, _BLOCK_SIZE):
        some, far, top = deviations[part], units[part], largest[part]
        rows = np.arange(len(some))
        low, high = some.argmin(axis=1), some.argmax(axis=1)
        furthest = far.max(axis=1)
        top[:] = (some[rows, high] - some[rows, low]) / spread[high, low]
        for i, (own, square) in enumerate(zip(some.T.copy(), far.T.copy(), strict=True)):
            # Slightly larger, for rounding.
            (open_,) = np.nonzero((square + furthest) * (closer[i] * _ROUNDED_UP) > top**2)
            if len(open_):
                gaps = np.abs(some[open_] - own[open_, np.newaxis]) / spread[i]
                top[open_] = np.maximum(top[open_], gaps.max(axis=1))
    return largest


def resolved_pairs(
    score: ArrayLike, draws: FloatArray, *, ci_prob: float, freedom: float = np.inf
) -> BoolArray:
    r"""Return which systems are resolved as better than which others, jointly for all pairs.

    A pair is resolved if 0 lies outside the simultaneous interval of its difference, which holds
    for all pairs together with the stated probability (:func:`pair_gaps`), and if the point
    estimates are in the same order. Equal scores are never resolved. Standard deviations of
    differences obey the triangle inequality, so the relation is transitive: if i is resolved as
    better than j, and j than k, so is i than k.

    Parameters
    ----------
    score : array_like of shape (system,)
        Point estimates.
    draws : numpy.ndarray of shape (draw, system)
        Draws of the scores.
    ci_prob : float
        Joint probability with which all resolved orders hold.
    freedom : float, default inf
        As in :func:`pair_gaps`.

    Returns
    -------
    numpy.ndarray of bool and shape (system, opponent)
        True where the system is resolved as better than the opponent.

    References
    ----------
    .. [1] M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm. Inference for ranks with
       applications to mobility across neighbourhoods and academic achievement across countries.
       The Review of Economic Studies 91 (2024). https://doi.org/10.1093/restud/rdad006

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.array([2.0, 0.0, 0.1]) + 0.1 * rng.normal(size=(1000, 3))
    >>> resolved_pairs(scores.mean(axis=0), scores, ci_prob=0.95)
    array([[False,  True,  True],
           [False, False, False],
           [False, False, False]])
    """
    pairs = pair_gaps(draws, ci_prob=ci_prob, freedom=freedom)
    return (pairs.gap > pairs.critical * pairs.spread) & better_scores(score)


def joint_error(pairs: PairGaps, first: NDArray[np.intp], second: NDArray[np.intp]) -> float:
    """Return the least joint probability of error at which all of some pairs are resolved.

    Parameters
    ----------
    pairs : PairGaps
        All pairs of systems.
    first, second : numpy.ndarray of shape (pair,)
        Better and worse system of the pairs.

    Returns
    -------
    float
        It is at most 1 - p if and only if the pairs are resolved with the joint probability p.
    """
    distance = (pairs.gap[first, second] / pairs.spread[first, second]).min(initial=np.inf)
    if distance <= 0.0:
        return 1.0
    # Quantiles of n draws leave n - 1 gaps between them.
    return min(float((pairs.largest >= distance).sum() / max(len(pairs.largest) - 1, 1)), 1.0)


def joint_rank_sets(resolved: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bound the ranks of all systems jointly.

    The best rank of a system is one more than the number of systems that are resolved as better,
    the worst rank is the number of systems minus those that are resolved as worse. The sets hold
    all true ranks with the joint probability of the resolved orders, ties included.

    Parameters
    ----------
    resolved : array_like of bool and shape (system, opponent)
        What :func:`resolved_pairs` returned.

    Returns
    -------
    lower, upper : numpy.ndarray of int64 and shape (system,)
        Best and worst rank of each system.

    Examples
    --------
    >>> joint_rank_sets([[False, True, True], [False, False, False], [False, False, False]])
    (array([1, 2, 2]), array([1, 3, 3]))
    """
    better = np.asarray(resolved, dtype=bool)
    return 1 + better.sum(axis=0), len(better) - better.sum(axis=1)


def separated_from_next(score: ArrayLike, resolved: ArrayLike) -> BoolArray:
    """Return whether each system is resolved from the next one in the order.

    Parameters
    ----------
    score : array_like of shape (system,)
        Point estimates.
    resolved : array_like of bool and shape (system, opponent)
        What :func:`resolved_pairs` returned.

    Returns
    -------
    numpy.ndarray of bool and shape (system,)
        Whether the system has a score of its own and is resolved as better than every system of
        the next score; True for the last.

    Examples
    --------
    >>> separated_from_next([3.0, 2.0], [[False, False], [False, False]])
    array([False,  True])
    """
    groups = tie_groups(score)
    alone = np.bincount(groups)[groups] == 1
    below = groups[:, None] + 1 == groups[None, :]
    return alone & np.where(below, np.asarray(resolved, dtype=bool), True).all(axis=1)


def rank_probability(first: NDArray[np.int64], last: NDArray[np.int64]) -> FloatArray:
    """Return the probability of each position, of shape (system, position)."""
    n_draws, n_systems = first.shape
    share = 1.0 / (last - first + 1)
    # Each draw adds a constant between two positions: mark where it starts and ends, then sum up.
    rows = np.arange(n_systems) * (n_systems + 1)
    length = n_systems * (n_systems + 1)
    steps = np.bincount((rows + first - 1).ravel(), share.ravel(), length)
    steps -= np.bincount((rows + last).ravel(), share.ravel(), length)
    probability = np.cumsum(steps.reshape(n_systems, -1), axis=1)[:, :-1] / n_draws
    # The least share of a draw is 1 / n_systems; smaller values are rounding errors of the sums.
    return np.where(probability < 0.5 / (n_draws * n_systems), 0.0, probability)


def superiority_of(first: NDArray[np.int64]) -> FloatArray:
    """Return Pr(i above j) + Pr(equal) / 2 from first shared positions."""
    n_draws, n_systems = first.shape
    # Small integers, which a processor compares and adds in vectors.
    by_system = np.ascontiguousarray(first.T, dtype=np.min_scalar_type(n_systems))
    kind = np.min_scalar_type(n_draws)
    above = np.array([(row < by_system).sum(axis=1, dtype=kind) for row in by_system], dtype=float)
    return (n_draws + above - above.T) / (2.0 * n_draws)


def adjacent_z_ranks(mean: ArrayLike, sd: ArrayLike, *, z: float = 1.645) -> NDArray[np.int64]:
    """Rank by the rule that neighbours with a z-statistic below z share a rank.

    The rule chains: the first and the last of many systems with one rank may be far apart.

    Parameters
    ----------
    mean, sd : array_like of shape (system,)
        Posterior means and standard deviations of independent scores.
    z : float, default 1.645
        Neighbours in the order share a rank if the difference of their means is below z standard
        deviations of the difference.

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
    check_number(z, "z", least=0)
    order = np.argsort(-means, kind="stable")
    gap = means[order[:-1]] - means[order[1:]]
    apart = gap >= z * np.hypot(sds[order[:-1]], sds[order[1:]])
    # Equal means without spread share a rank for every z.
    apart &= gap > 0
    ranks = np.empty(len(means), dtype=np.int64)
    ranks[order] = np.concatenate([[1], 1 + np.cumsum(apart)])
    return ranks
