"""How much of the order is resolved: joint sets of ranks, tiers, separation of neighbours."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.results.ranks import tie_groups

FloatArray = NDArray[np.float64]

# Doubles in one block of pairwise differences: 32 MB.
_BLOCK_SIZE = 2**22


def simultaneous_rank_sets(
    draws: FloatArray, *, ci_prob: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bound the ranks of all systems at once.

    Every pair is compared by its standardised difference, with one critical value for all pairs:
    the quantile of the largest absolute deviation of any pair. A system's best rank is one more
    than the number of systems that are then above it, its worst rank follows from those below. The
    sets hold all true ranks together with at least the stated probability, ties included.

    Parameters
    ----------
    draws : numpy.ndarray of shape (draw, system)
        Draws of the scores.
    ci_prob : float
        Joint probability.

    Returns
    -------
    lower, upper : numpy.ndarray of int64 and shape (system,)
        Best and worst rank of each system.

    References
    ----------
    .. [1] M. Mogstad, J. P. Romano, A. M. Shaikh and D. Wilhelm. Inference for ranks with
       applications to mobility across neighbourhoods and academic achievement across countries.
       The Review of Economic Studies 91 (2024). https://doi.org/10.1093/restud/rdad006

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.array([2.0, 0.0, 0.1]) + 0.1 * rng.normal(size=(1000, 3))
    >>> simultaneous_rank_sets(scores, ci_prob=0.95)
    (array([1, 2, 2]), array([1, 3, 3]))
    """
    n_systems = draws.shape[1]
    mean = draws.mean(axis=0)
    deviations = draws - mean
    covariance = deviations.T @ deviations / len(draws)
    variance = np.diag(covariance)
    spread = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))
    # A pair that always moves together is known up to rounding.
    floor = 1e-10 * np.maximum(np.abs(draws).max(initial=0.0), np.finfo(float).tiny)
    spread = np.maximum(spread, floor)
    first, second = np.triu_indices(n_systems, 1)
    largest = np.zeros(len(draws))
    step = max(1, _BLOCK_SIZE // max(len(first), 1))
    by_system = np.ascontiguousarray(deviations.T)
    for start in range(0, len(draws), step):
        some = by_system[:, start : start + step]
        gaps = np.abs(some[first] - some[second])
        gaps /= spread[first, second, np.newaxis]
        largest[start : start + step] = gaps.max(axis=0, initial=0.0)
    critical = np.quantile(largest, ci_prob, method="higher")
    gap = mean[:, None] - mean
    above = gap > critical * spread
    return 1 + above.sum(axis=0), n_systems - above.sum(axis=1)


def tiers(
    score: ArrayLike, superiority: ArrayLike, *, probability: float = 0.95
) -> NDArray[np.int64]:
    """Group neighbours whose order is not resolved.

    Going down from the best, a system joins the tier above it if its order against every member is
    unresolved, that is if neither is superior with the stated probability; else it starts the next
    tier. So a tier never holds two systems whose order is resolved, however long the chain of
    unresolved neighbours between them.

    Parameters
    ----------
    score : array_like of shape (system,)
        Point estimates; equal ones always share a tier.
    superiority : array_like of shape (system, opponent)
        Pr(above) + Pr(equal) / 2.
    probability : float, default 0.95
        When an order counts as resolved.

    Returns
    -------
    numpy.ndarray of int64 and shape (system,)
        Tier of each system, 1 for the best.

    Examples
    --------
    >>> tiers([3.0, 2.0, 1.0], [[0.5, 0.9, 0.99], [0.1, 0.5, 0.8], [0.01, 0.2, 0.5]])
    array([1, 1, 2])
    """
    superior = np.asarray(superiority, dtype=np.float64)
    resolved = np.maximum(superior, superior.T) >= probability
    groups = tie_groups(score)
    result = np.zeros(len(groups), dtype=np.int64)
    members: list[int] = []
    tier = 0
    for group in range(1, int(groups.max()) + 1):
        equals = np.flatnonzero(groups == group)
        if not members or resolved[np.ix_(equals, members)].any():
            members, tier = [], tier + 1
        members.extend(int(i) for i in equals)
        result[equals] = tier
    return result


def separated_from_next(
    score: ArrayLike, superiority: ArrayLike, *, probability: float = 0.95
) -> NDArray[np.bool_]:
    """Say whether each system is resolved from the next one in the order.

    Where the first is not, do not declare a winner.

    Parameters
    ----------
    score, superiority, probability
        As in :func:`tiers`.

    Returns
    -------
    numpy.ndarray of bool and shape (system,)
        Whether the system has a score of its own and is superior with the stated probability to
        every system of the next score; True for the last.

    Examples
    --------
    >>> separated_from_next([3.0, 2.0], [[0.5, 0.9], [0.1, 0.5]])
    array([False,  True])
    """
    superior = np.asarray(superiority, dtype=np.float64)
    groups = tie_groups(score)
    alone = np.bincount(groups)[groups] == 1
    below = groups[:, None] + 1 == groups[None, :]
    return alone & np.where(below, superior >= probability, True).all(axis=1)


def adjacent_z_ranks(mean: ArrayLike, sd: ArrayLike, *, z: float = 1.645) -> NDArray[np.int64]:
    """Rank by the rule that neighbours closer than z share a rank.

    The rule chains: a share of ranks may run through any number of systems, the ends of which are
    far apart. :func:`tiers` does not.

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
