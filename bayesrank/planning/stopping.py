"""When no more trials are needed."""

import warnings
from dataclasses import dataclass
from math import comb, factorial
from typing import cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.catalog import default_method
from bayesrank.design import part_with_outcomes
from bayesrank.entrance import as_data
from bayesrank.planning.goals import Goal, check_goal, critical_pairs
from bayesrank.ranking import rank_all
from bayesrank.responses import Responses
from bayesrank.results.leaderboard import gaps_of, ranking_of, result_draws
from bayesrank.results.ranks import better_scores, joint_error, tie_groups
from bayesrank.validation import check_between_0_and_1
from bayesrank.views import Comparisons

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class StopDecision:
    """Whether to stop, and the answer.

    Attributes
    ----------
    stop : bool
        Whether every pair that matters for the answer is resolved, that is, whether the joint
        error is at most the allowed one.
    error : float
        Posterior probability that the answer is wrong. For the goal ``"best"`` this is 1 less the
        ``prob_best`` of the answer.
    joint_error : float
        Probability of an error in a joint decision for all pairs at the level at which the pairs
        that matter for the answer are resolved; never less than `error`.
    answer : tuple of str
        The best system; the best k; or all of them, best first.
    """

    stop: bool
    error: float
    joint_error: float
    answer: tuple[str, ...]


def should_stop(
    data: Responses | Comparisons,
    *,
    goal: Goal = "best",
    k: int | None = None,
    error: float = 0.05,
    random_seed: int | None = None,
) -> StopDecision:
    """Report whether the goal is reached with a stated probability of error.

    The posterior is that of :func:`bayesrank.rank` by its default method, and pairs are resolved by
    the same rule. No more trials are needed when every pair that matters for the answer is
    resolved, in a joint decision for all pairs of systems at the joint probability 1 - `error`.
    Therefore this function never contradicts the groups of a leaderboard or the headline of a
    report. The rule is stricter than a probability below `error` that the answer is wrong.

    Parameters
    ----------
    data : Responses or Comparisons
        Outcomes so far. A system without any is left out, with a warning; among battles it is as
        uncertain as its prior.
    goal : {"best", "top_k", "full"}, default "best"
        Find the best system, the best k (in any order), or the whole order.
    k : int, optional
        For the goal ``"top_k"``.
    error : float, default 0.05
        Allowed probability that any of the resolved orders is wrong.
    random_seed : int, optional
        As in :func:`bayesrank.rank`.

    Returns
    -------
    StopDecision

    Raises
    ------
    ValueError
        If an argument is invalid.
    DataError
        If the data do not have what the default method needs.

    Examples
    --------
    >>> data = Responses([[[1] * 20] * 9, [[0] * 20] * 9], systems=["good", "bad"])
    >>> should_stop(data)
    StopDecision(stop=True, error=0.0, joint_error=0.0, answer=('good',))
    """
    data = cast("Responses | Comparisons", as_data(data))
    if isinstance(data, Responses):
        data = part_to_plan(data)
    n_top = check_goal(goal, k, len(data.systems))
    return decide(present_state(data, error=error, random_seed=random_seed), n_top)


def part_to_plan(data: Responses) -> Responses:
    """Return the data of the systems with an outcome, with a warning that names the others."""
    part = part_with_outcomes(data)
    left_out = [name for name in data.systems if name not in part.systems]
    if left_out:
        warnings.warn(
            f"the plan leaves out systems without any outcome: {', '.join(left_out)}", stacklevel=3
        )
    return part


def present_state(
    data: Responses | Comparisons, *, error: float, random_seed: int | None
) -> xr.DataTree:
    """Rank the present data: the posterior from which all plans start.

    Parameters
    ----------
    data, error, random_seed
        As in :func:`should_stop`.

    Returns
    -------
    xarray.DataTree
        Result of :func:`bayesrank.rank` by the default method.
    """
    check_between_0_and_1(error, "error")
    return rank_all(data, default_method(data), ci_prob=1 - error, random_seed=random_seed)


def decide(result: xr.DataTree, n_top: int) -> StopDecision:
    """Return the decision from a result.

    Parameters
    ----------
    result : xarray.DataTree
        Result of :func:`bayesrank.rank`, with draws; resolved at its ``ci_prob``.
    n_top : int
        Number of top systems to separate from the rest; 0 for the whole order.

    Returns
    -------
    StopDecision
    """
    ranking = ranking_of(result)
    names = ranking["system"].values.astype(str).tolist()
    score = ranking["score"].values
    order = np.argsort(-score, kind="stable")
    first, second = critical_pairs(score, n_top)
    draws = result_draws(result)
    pairs = gaps_of(result)
    in_order = better_scores(score)[first, second].all()
    places = tie_groups(draws[:, order])
    right = _share_in_order(places) if n_top == 0 else _share_on_top(places, n_top)
    chosen = order if n_top == 0 else order[:n_top]
    return StopDecision(
        stop=bool(ranking["resolved"].values[first, second].all()),
        error=float(1.0 - right.mean()),
        joint_error=joint_error(pairs, first, second) if in_order else 1.0,
        answer=tuple(names[system] for system in chosen),
    )


def _share_on_top(places: NDArray[np.int64], n_top: int) -> FloatArray:
    """Return the fraction of the ways to break ties in which a draw has the first systems on top.

    Parameters
    ----------
    places : numpy.ndarray of shape (draw, system)
        Dense ranks in the draws, of systems in the order of the answer.
    n_top : int
        Number of the first systems.
    """
    top, rest = places[:, :n_top], places[:, n_top:]
    last, first = top.max(axis=1), rest.min(axis=1)
    share = (last < first).astype(np.float64)
    # Each selection of the right number of systems that tie at the cut is equally probable.
    tied = np.flatnonzero(last == first)
    inside = (top[tied] == last[tied, None]).sum(axis=1)
    outside = (rest[tied] == last[tied, None]).sum(axis=1)
    for draw, chosen, others in zip(tied, inside, outside, strict=True):
        share[draw] = 1.0 / comb(int(chosen + others), int(chosen))
    return share


def _share_in_order(places: NDArray[np.int64]) -> FloatArray:
    """Return the fraction of the ways to break ties in which a draw has the order of the answer."""
    steps = np.diff(places, axis=1)
    share = (steps >= 0).all(axis=1).astype(np.float64)
    for draw in np.flatnonzero((share > 0) & (steps == 0).any(axis=1)):
        for size in np.unique(places[draw], return_counts=True)[1]:
            share[draw] /= factorial(int(size))
    return share
