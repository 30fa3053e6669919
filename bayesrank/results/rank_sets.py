"""Which pairs of systems are resolved, decided jointly, and what follows for ranks.

One rule decides: :func:`resolved_pairs`. Joint rank sets, groups (:mod:`bayesrank.results.groups`),
separation of neighbours, the headline of a report, tables of pairs, plans and stopping read it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.results.ranks import tie_groups
from bayesrank.validation import power_of_two

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Doubles of the differences from one system, which stay in the cache of a core: 1 MB.
_BLOCK_SIZE = 2**17
_ROUNDED_UP = 1.0 + 1e-9


class PairGaps(NamedTuple):
    """Differences of the scores of all pairs, and how large one must be to be resolved.

    Attributes
    ----------
    gap, spread : numpy.ndarray of shape (system, opponent)
        Posterior mean and standard deviation of the difference.
    largest : numpy.ndarray of shape (draw,)
        Largest absolute deviation of a difference from its mean, in its standard deviations.
    critical : float
        The difference of a pair is resolved above this many standard deviations.
    """

    gap: FloatArray
    spread: FloatArray
    largest: FloatArray
    critical: float


def pair_gaps(draws: FloatArray, *, ci_prob: float) -> PairGaps:
    """Compare every pair by its standardised difference, with one critical value for all pairs.

    The critical value is the quantile of the largest absolute deviation of any pair, in its
    standard deviations (max-t): with probability `ci_prob` all true differences lie together
    within that many standard deviations of their posterior means.

    Parameters
    ----------
    draws : numpy.ndarray of shape (draw, system)
        Draws of the scores.
    ci_prob : float
        Joint probability.

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
    # A pair that always moves together is known up to rounding.
    floor = 1e-10 * np.maximum(np.abs(draws).max(initial=0.0), np.finfo(float).tiny)
    spread = np.maximum(spread, floor)
    largest = _largest_gaps(deviations, spread)
    critical = float(np.quantile(largest, ci_prob, method="higher"))
    return PairGaps(unit * (mean[:, None] - mean), unit * spread, largest, critical)


def _largest_gaps(deviations: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the largest standardised difference of any pair in each draw, of shape (draw,).

    Most systems are in no such pair: a difference is at most the root of u_i^2 + u_j^2, with the
    deviations u in standard deviations, times how much closer the pair moves than if independent.
    """
    n_draws, n_systems = deviations.shape
    # What all have in common is in no difference.
    own_part = deviations - deviations.mean(axis=1, keepdims=True)
    variance = own_part.var(axis=0)
    apart = np.where(np.eye(n_systems, dtype=bool), np.inf, spread)
    closer = ((np.sqrt(variance[:, np.newaxis] + variance) / apart) ** 2).max(axis=1, initial=0.0)
    units = np.divide(own_part**2, variance, out=np.zeros_like(own_part), where=variance > 0.0)
    largest = np.zeros(n_draws)
    step = max(1, _BLOCK_SIZE // max(n_systems, 1))
    for start in range(0, n_draws, step):
        some, far = deviations[start : start + step], units[start : start + step]
        top, rows = largest[start : start + step], np.arange(len(some))
        low, high = some.argmin(axis=1), some.argmax(axis=1)
        furthest = far.max(axis=1)
        top[:] = (some[rows, high] - some[rows, low]) / spread[high, low]
        for i, (own, square) in enumerate(zip(some.T.copy(), far.T.copy(), strict=True)):
            # With a little more for rounding.
            (open_,) = np.nonzero((square + furthest) * (closer[i] * _ROUNDED_UP) > top**2)
            if len(open_):
                gaps = np.abs(some[open_] - own[open_, np.newaxis]) / spread[i]
                top[open_] = np.maximum(top[open_], gaps.max(axis=1))
    return largest


def resolved_pairs(score: ArrayLike, draws: FloatArray, *, ci_prob: float) -> BoolArray:
    r"""Say which systems are resolved as better than which, for all pairs at once.

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
    pairs = pair_gaps(draws, ci_prob=ci_prob)
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
        At most 1 less a probability if and only if the pairs are resolved with it.
    """
    distance = (pairs.gap[first, second] / pairs.spread[first, second]).min(initial=np.inf)
    if distance <= 0.0:
        return 1.0
    # Quantiles of n draws leave n - 1 gaps between them.
    return float((pairs.largest >= distance).sum() / max(len(pairs.largest) - 1, 1))


def better_scores(score: ArrayLike) -> BoolArray:
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


def joint_rank_sets(resolved: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bound the ranks of all systems at once.

    The best rank of a system is one more than the number of systems that are resolved as better,
    the worst rank is the number of systems less those that are resolved as worse. The sets hold all
    true ranks together with the probability with which the resolved orders hold, ties included.

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


def simultaneous_rank_sets(
    draws: FloatArray, *, ci_prob: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bound the ranks of all systems at once, from draws whose mean is the point estimate.

    Parameters
    ----------
    draws : numpy.ndarray of shape (draw, system)
        Draws of the scores.
    ci_prob : float
        Joint probability.

    Returns
    -------
    lower, upper : numpy.ndarray of int64 and shape (system,)
        As :func:`joint_rank_sets`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.array([2.0, 0.0, 0.1]) + 0.1 * rng.normal(size=(1000, 3))
    >>> simultaneous_rank_sets(scores, ci_prob=0.95)
    (array([1, 2, 2]), array([1, 3, 3]))
    """
    return joint_rank_sets(resolved_pairs(draws.mean(axis=0), draws, ci_prob=ci_prob))


def separated_from_next(score: ArrayLike, resolved: ArrayLike) -> BoolArray:
    """Say whether each system is resolved from the next one in the order.

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
