"""Which pairs of systems are resolved, decided jointly, and what follows for ranks and groups.

One rule decides: :func:`resolved_pairs`. Joint rank sets, groups, separation of neighbours, the
headline of a report, tables of pairs, plans and stopping read it.

Not being told apart is not transitive: a may be unresolved from b, and b from c, while a is
resolved from c. So groups overlap, and a system may be in several: the compact letter display of
multiple comparisons.
"""

from collections.abc import Sequence
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.results.ranks import better_scores, tie_groups
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


def letter_groups(score: ArrayLike, resolved: ArrayLike) -> tuple[str, ...]:
    """Give each system the letters of its groups.

    Two systems share a letter if and only if their order is not resolved [1]_. A group is a set of
    systems none of which are resolved from each other, as large as possible, so the groups are a
    cover of the graph of unresolved pairs by cliques. The cover is found by growing cliques [2]_,
    and groups that tell nothing new are left out; their number need not be the smallest, which is
    NP-hard to find. Letters follow the order of the systems: the best has an "a". After "z" come
    "a2" to "z2", "a3" and so on.

    Parameters
    ----------
    score : array_like of shape (system,)
        Point estimates, which give the order of the letters.
    resolved : array_like of bool and shape (system, opponent)
        What :func:`resolved_pairs` returned.

    Returns
    -------
    tuple of str
        Letters of each system, such as "a", "ab" or "b".

    References
    ----------
    .. [1] H.-P. Piepho. An algorithm for a letter-based representation of all-pairwise comparisons.
       Journal of Computational and Graphical Statistics 13 (2004).
       https://doi.org/10.1198/1061860043515
    .. [2] J. Gramm, J. Guo, F. Hüffner, R. Niedermeier, H.-P. Piepho and R. Schmid. Algorithms for
       compact letter displays: comparison and evaluation. Computational Statistics & Data Analysis
       52 (2007). https://doi.org/10.1016/j.csda.2006.09.035

    Examples
    --------
    >>> resolved = [[False, False, True], [False, False, False], [False, False, False]]
    >>> letter_groups([3.0, 2.0, 1.0], resolved)
    ('a', 'ab', 'b')
    """
    better = np.asarray(resolved, dtype=bool)
    order = _order(score, better)
    ordered = better[np.ix_(order, order)]
    letters = [""] * len(order)
    for number, members in enumerate(_cover(~(ordered | ordered.T))):
        for position in members:
            letters[order[position]] += _letter(number)
    return tuple(letters)


def borders(resolved: ArrayLike) -> BoolArray:
    """Say after which systems a border stands, which no group crosses.

    Parameters
    ----------
    resolved : array_like of bool and shape (system, opponent)
        As in :func:`letter_groups`, with systems and opponents from best to worst.

    Returns
    -------
    numpy.ndarray of bool and shape (system,)
        True where every system down to this one is resolved as better than every one below it;
        False for the last.

    Examples
    --------
    >>> borders([[False, True, True], [False, False, False], [False, False, False]])
    array([ True, False, False])
    """
    better = np.asarray(resolved, dtype=bool)
    n_systems = len(better)
    # The last system of the order that a system is not resolved from, in either direction.
    reach = np.where(np.triu(~better, 1), np.arange(n_systems), -1).max(axis=1, initial=-1)
    closed = np.maximum.accumulate(reach) <= np.arange(n_systems)
    closed[-1:] = False
    return closed


def _letter(number: int) -> str:
    turn, place = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[place] + (str(turn + 1) if turn else "")


def _order(score: ArrayLike, better: BoolArray) -> NDArray[np.intp]:
    """Order systems by score, and equal scores by what they are resolved from, not by labels."""
    places = tie_groups(score)
    while True:
        keys = [
            (int(place), _sorted(places[above]), _sorted(places[below]))
            for place, above, below in zip(places, better.T, better, strict=True)
        ]
        known = sorted(set(keys))
        if len(known) == len(set(places.tolist())):
            return np.argsort(places, kind="stable")
        number = {key: position for position, key in enumerate(known)}
        places = np.array([number[key] for key in keys])


def _sorted(places: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(np.sort(places).tolist())


def _cover(unresolved: BoolArray) -> list[list[int]]:
    """Cover the edges of a graph by maximal cliques, in the order of their members.

    Sets of systems are the bits of integers.
    """
    n_systems = len(unresolved)
    bits = [1 << position for position in range(n_systems)]
    near = [sum(bits[j] for j in np.flatnonzero(row) if j != i) for i, row in enumerate(unresolved)]
    # Pairs that share no letter yet, by their first system.
    open_pairs = [near[i] >> (i + 1) << (i + 1) for i in range(n_systems)]
    cliques: list[list[int]] = []
    for i in range(n_systems):
        if not near[i]:
            cliques.append([i])
        while open_pairs[i]:
            j = _lowest(open_pairs[i])
            clique, candidates = bits[i] | bits[j], near[i] & near[j]
            while candidates:
                k = _lowest(candidates)
                clique, candidates = clique | bits[k], candidates & near[k]
            members = [k for k in range(n_systems) if clique & bits[k]]
            for k in members:
                open_pairs[k] &= ~clique
            cliques.append(members)
    return sorted(_without_redundant(cliques, n_systems))


def _lowest(members: int) -> int:
    return (members & -members).bit_length() - 1


def _without_redundant(cliques: Sequence[list[int]], n_systems: int) -> list[list[int]]:
    """Leave out cliques all of whose pairs are in others."""
    count = np.zeros((n_systems, n_systems), dtype=np.int64)
    for members in cliques:
        count[np.ix_(members, members)] += 1
    kept = []
    for members in reversed(cliques):
        pairs = np.ix_(members, members)
        if len(members) > 1 and (count[pairs] + np.eye(len(members), dtype=np.int64) >= 2).all():
            count[pairs] -= 1
        else:
            kept.append(members)
    return kept
