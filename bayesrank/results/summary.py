"""The group ``ranking``: scores, ranks with their uncertainty, and numbers of observations.

"Not resolved" is not transitive: a may be unresolved from b, and b from c, while a is
resolved from c. So groups overlap, and a system may be in several: the compact letter display of
multiple comparisons.
"""

import math
from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.run import Data, label_index
from bayesrank.responses import Responses
from bayesrank.results.ranks import (
    BoolArray,
    FloatArray,
    joint_rank_sets,
    rank_probability,
    rank_range,
    rank_scores,
    resolved_pairs,
    separated_from_next,
    superiority_of,
    tie_groups,
)
from bayesrank.views import Ballots, Comparisons

# A quarter of the outcomes has twice the standard error.
FEW_SHARE = 0.25


def summarize_point(score: FloatArray, systems: tuple[str, ...]) -> xr.Dataset:
    """Rank systems by a point estimate.

    Parameters
    ----------
    score : numpy.ndarray of shape (system,)
        Higher is better.
    systems : tuple of str
        Labels.

    Returns
    -------
    xarray.Dataset
        ``score``, ``rank`` (competition: equals share the best position) and ``tie_group`` (1 for
        the best), all over ``system``.
    """
    return xr.Dataset(
        {
            "score": ("system", score),
            "rank": ("system", rank_scores(score)),
            "tie_group": ("system", tie_groups(score)),
        },
        coords={"system": label_index("system", systems)},
    )


def summarize_draws(
    draws: FloatArray,
    systems: tuple[str, ...],
    *,
    ci_prob: float,
    lcb: float,
    score: FloatArray | None = None,
    alike: ArrayLike | None = None,
) -> xr.Dataset:
    """Summarise draws of scores by intervals, bounds and probabilities of ranks.

    Systems that tie in a draw share its positions equally.

    Parameters
    ----------
    draws : numpy.ndarray of shape (draw, system)
        Draws of the scores.
    systems : tuple of str
        Labels.
    ci_prob : float
        Probability of the equal-tailed intervals.
    lcb : float
        Quantile of the lower credible bound.
    score : numpy.ndarray of shape (system,), optional
        Estimates. Intervals, and bounds below the median, that exclude an estimate or its rank are
        extended to it.
    alike : array_like of int and shape (system,), optional
        Classes of exchangeable systems: their intervals, bounds and ranks are equal, those of one
        are the mean over its class. Kept as an attribute.

    Returns
    -------
    xarray.Dataset
        Over ``system``: ``score_lower``, ``score_upper``, ``lcb``, ``lcb_rank``, ``rank_lower``
        (best rank in the interval), ``rank_upper``, ``prob_best``, ``expected_rank``; over
        ``(system, opponent)``: ``superiority``, Pr(above) + Pr(equal) / 2; over
        ``(system, position)``: ``rank_probability``.
    """
    tails = (0.5 - ci_prob / 2, 0.5 + ci_prob / 2)
    score_lower, score_upper, bound = np.quantile(draws, (*tails, lcb), axis=0)
    first, last = rank_range(draws)
    # Quantiles of whole numbers are rounded outwards, so that intervals have at least ci_prob.
    rank_lower = np.quantile(first, tails[0], axis=0, method="lower")
    rank_upper = np.quantile(last, tails[1], axis=0, method="higher")
    if score is not None:
        score_lower, score_upper = np.minimum(score_lower, score), np.maximum(score_upper, score)
        bound = np.minimum(bound, score) if lcb < 0.5 else bound
        if lcb >= tails[0]:  # the mean of several bounds may be below the interval of one
            score_lower = np.minimum(score_lower, bound)
        rank = rank_scores(score)
        rank_lower, rank_upper = np.minimum(rank_lower, rank), np.maximum(rank_upper, rank)
    probability, expected = rank_probability(first, last), (first + last).mean(axis=0) / 2
    superiority = superiority_of(first)
    attrs: dict[str, Any] = {"ci_prob": ci_prob, "lcb": lcb}
    if alike is not None:
        attrs["alike"] = np.asarray(alike).tolist()
        score_lower, score_upper, bound, expected, probability, superiority = (
            _class_means(values, alike)
            for values in (score_lower, score_upper, bound, expected, probability, superiority)
        )
        superiority = _class_means(superiority.T, alike).T
        rank_lower, rank_upper = _least(rank_lower, alike), -_least(-rank_upper, alike)
    return xr.Dataset(
        {
            "score_lower": ("system", score_lower),
            "score_upper": ("system", score_upper),
            "lcb": ("system", bound),
            "lcb_rank": ("system", rank_scores(bound)),
            "rank_lower": ("system", rank_lower),
            "rank_upper": ("system", rank_upper),
            "prob_best": ("system", probability[:, 0]),
            "expected_rank": ("system", expected),
            "superiority": (("system", "opponent"), superiority),
            "rank_probability": (("system", "position"), probability),
        },
        coords={
            "system": label_index("system", systems),
            "opponent": label_index("opponent", systems),
            "position": np.arange(1, len(systems) + 1),
        },
        attrs=attrs,
    )


def _class_means(values: FloatArray, alike: ArrayLike) -> FloatArray:
    """Return the mean over the class of each system, of shape (system, ...)."""
    classes = np.asarray(alike)
    sums = np.zeros((classes.max() + 1, *values.shape[1:]))
    np.add.at(sums, classes, values)
    return (sums.T / np.bincount(classes)).T[classes]


def _least(values: NDArray[Any], alike: ArrayLike) -> NDArray[Any]:
    """Return the least value in the class of each system, of shape (system, ...)."""
    classes = np.asarray(alike)
    least = np.full((classes.max() + 1, *values.shape[1:]), values.max())
    np.minimum.at(least, classes, values)
    return least[classes]


def summarize_resolution(
    score: FloatArray,
    draws: FloatArray,
    systems: tuple[str, ...],
    *,
    ci_prob: float,
    freedom: float = np.inf,
    alike: ArrayLike | None = None,
) -> xr.Dataset:
    """Summarise the resolved part of the order, by joint decisions for all pairs.

    Parameters
    ----------
    score : numpy.ndarray of shape (system,)
        Point estimate.
    draws : numpy.ndarray of shape (draw, system)
        Draws of the scores.
    systems : tuple of str
        Labels.
    ci_prob : float
        Joint probability with which resolved orders hold.
    freedom : float, default inf
        Degrees of freedom of the variances of the draws; kept as an attribute if there are few.
    alike : array_like of int and shape (system,), optional
        Classes of exchangeable systems, which are resolved together or not at all.

    Returns
    -------
    xarray.Dataset
        Over ``(system, opponent)``: ``resolved``, whether the system is resolved as better than the
        opponent (:func:`bayesrank.results.ranks.resolved_pairs`). The others follow from it,
        over ``system``: ``joint_rank_lower`` and ``joint_rank_upper`` (sets that hold all ranks
        jointly), ``group`` (two systems share a letter if and only if they are not resolved) and
        ``separated_from_next``.
    """
    resolved = resolved_pairs(score, draws, ci_prob=ci_prob, freedom=freedom)
    if alike is not None:
        resolved = _least(_least(resolved, alike).T, alike).T
    lower, upper = joint_rank_sets(resolved)
    return xr.Dataset(
        {
            "resolved": (("system", "opponent"), resolved),
            "joint_rank_lower": ("system", lower),
            "joint_rank_upper": ("system", upper),
            "group": ("system", np.array(letter_groups(score, resolved))),
            "separated_from_next": ("system", separated_from_next(score, resolved)),
        },
        coords={
            "system": label_index("system", systems),
            "opponent": label_index("opponent", systems),
        },
        attrs={"freedom": freedom} if np.isfinite(freedom) else {},
    )


def letter_groups(score: ArrayLike, resolved: ArrayLike) -> tuple[str, ...]:
    """Give each system the letters of its groups.

    Two systems share a letter if and only if their order is not resolved [1]_. A group is a maximal
    set of systems without a resolved pair, so the groups are a cover of the graph of unresolved
    pairs by cliques. The algorithm grows cliques [2]_ and leaves out redundant groups. Their number
    may not be minimal, since finding the minimum is NP-hard. Letters follow the order of the
    systems: the best has an "a". After "z" come "a2" to "z2", "a3" and so on.

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
    """Return after which systems there is a border, which no group crosses.

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
    """Order systems by score, and equal scores by their resolved pairs, not by labels."""
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


def summarize_evidence(data: Data, *, ci_prob: float) -> xr.Dataset:
    """Summarise the observed mean and the number of observations of each system.

    Parameters
    ----------
    data : Responses, Comparisons or Ballots
        What was ranked.
    ci_prob : float
        Probability of the intervals.

    Returns
    -------
    xarray.Dataset
        Over ``system``: ``observed_mean``, the mean grade in the units of the outcomes, where every
        question with an outcome counts the same; for battles the win rate with ties as half, for
        ballots the mean share of the others that a system is placed above. ``n_outcomes`` is the
        number of outcomes, battles or ballots; for responses there is also ``n_questions`` with an
        outcome. ``few`` marks systems with few of them, see :func:`is_little`. The mean is NaN for
        categories without a worth, and for a system without outcomes.

    Examples
    --------
    >>> summary = summarize_evidence(Responses([[[1, 0], [1, -1]]]), ci_prob=0.95)
    >>> [summary[name].item() for name in ("observed_mean", "n_outcomes", "n_questions", "few")]
    [0.75, 3, 2, True]
    """
    variables: dict[str, Any] = {}
    if isinstance(data, Responses):
        has_worth = data.scale is not None or data.weights is not None
        grades = data.grades if has_worth else np.full(data.shape[:2], np.nan)
        mean = data.in_units(mean_grade(grades))
        n_outcomes = data.trials.sum(axis=1)
        variables["n_questions"] = np.count_nonzero(data.trials, axis=1)
    elif isinstance(data, Comparisons):
        n_outcomes = _whole(data.totals.sum(axis=1))
        mean = _ratio((data.wins + data.ties / 2).sum(axis=1), n_outcomes)
    else:
        mean, n_outcomes = _places(data)
    least = least_outcomes(ci_prob)
    numbers = [n_outcomes, *variables.values()]
    variables = {"observed_mean": mean, "n_outcomes": n_outcomes, **variables}
    variables["few"] = is_little(*numbers, least=least)
    return xr.Dataset(
        {name: ("system", values) for name, values in variables.items()},
        coords={"system": label_index("system", data.systems)},
        attrs={"least_outcomes": least},
    )


def mean_grade(grades: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of grades (system, question) over questions with a grade, NaN without any."""
    return _ratio(np.nansum(grades, axis=1), np.count_nonzero(~np.isnan(grades), axis=1))


def least_outcomes(ci_prob: float) -> int:
    """Return the least number of outcomes with which a system can differ from chance.

    With fewer outcomes, a system with random answers (probability 1/2) has all of them right with
    a probability above that of either tail of the intervals.

    Examples
    --------
    >>> least_outcomes(0.95)
    6
    """
    return math.ceil(math.log2(2.0 / (1.0 - ci_prob)))


def is_little(*numbers: NDArray[Any], least: int) -> NDArray[np.bool_]:
    """Return which systems have little evidence.

    They have fewer outcomes than `least`, or less than a quarter of the evidence of the median
    system, so that their standard error is twice as large.

    Parameters
    ----------
    *numbers : numpy.ndarray of shape (system,)
        Outcomes of each system, and further numbers that measure evidence.
    least : int
        What :func:`least_outcomes` returned.

    Examples
    --------
    >>> is_little(np.array([260, 250, 40]), least=6)
    array([False, False,  True])
    """
    little = numbers[0] < least
    for number in numbers:
        little = little | (number < FEW_SHARE * np.median(number))
    return little


def _places(data: Ballots) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the mean share of the others that each system is above, and its ballots."""
    grades = data.grades
    seen = np.isfinite(grades)
    above = (grades[:, np.newaxis] > grades).sum(axis=1)
    equal = (grades[:, np.newaxis] == grades).sum(axis=1) - seen  # all but itself
    others = np.where(seen, seen.sum(axis=0) - 1, 0)
    shares = np.where(others > 0, (above + equal / 2) / np.maximum(others, 1), 0.0)
    mean = _ratio(shares.sum(axis=1), np.count_nonzero(others, axis=1))
    return mean, np.count_nonzero(seen, axis=1)


def _ratio(total: NDArray[np.float64], number: NDArray[Any]) -> NDArray[np.float64]:
    return np.where(number > 0, total / np.where(number > 0, number, 1), np.nan)


def _whole(numbers: NDArray[np.float64]) -> NDArray[Any]:
    """Return counts as integers, unless weights of battles make fractions of them."""
    rounded = numbers.round()
    return rounded.astype(np.int64) if np.array_equal(numbers, rounded) else numbers
