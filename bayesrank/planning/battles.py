r"""Which pairs of systems need battles next, and how many battles resolve a pair.

One more battle of systems i and j has information :math:`w_{ij}` on the difference of their scores
under the model. It reduces the covariance V of all scores by
:math:`V e e^\top V / (1 / w_{ij} + e^\top V e)` with :math:`e = e_i - e_j`.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrank.catalog import default_method
from bayesrank.entrance import as_comparisons
from bayesrank.planning.goals import Goal, check_goal, critical_pairs, pairs_goal
from bayesrank.planning.stopping import present_state
from bayesrank.ranking import rank_all
from bayesrank.results.decisions import pairwise_decisions
from bayesrank.results.leaderboard import gaps_of, ranking_of, result_draws
from bayesrank.results.win_rates import pair_likelihood, point_tie, win_chances
from bayesrank.validation import check_integer
from bayesrank.views import Comparisons

if TYPE_CHECKING:
    import xarray as xr

FloatArray = NDArray[np.float64]

# A budget is allocated in this number of parts; the covariance is updated after each.
_PARTS = 100


def plan_battles(
    data: Comparisons | ArrayLike,
    *,
    goal: Goal | None = "best",
    k: int | None = None,
    error: float = 0.05,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Tabulate the pairs that matter for a goal, and the battles that would resolve them.

    Parameters
    ----------
    data : Battles, Comparisons or pandas.DataFrame
        Battles so far.
    goal : {"best", "top_k", "full"}, default "best"
        As in :func:`bayesrank.planning.should_stop`; None for all pairs.
    k : int, optional
        For the goal ``"top_k"``.
    error : float, default 0.05
        Allowed probability that any of the resolved orders is wrong.
    random_seed : int, optional
        As in :func:`bayesrank.rank`.

    Returns
    -------
    pandas.DataFrame
        One row per pair, the better system first: ``system``, ``opponent``, ``difference``,
        ``battles`` of the two so far, ``z``, ``superiority``, ``resolved``, and
        ``further_battles_needed``: the number of battles of these two that would resolve them if
        the present difference is the true one, with as many of one judge or prompt as so far; 0
        if and only if they are resolved.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> wins = [[0, 12, 18], [8, 0, 16], [2, 4, 0]]
    >>> table = plan_battles(Comparisons(wins, systems=["a", "b", "c"]), random_seed=1)
    >>> table[["system", "opponent", "battles", "resolved"]]
      system opponent  battles  resolved
    0      a        b     20.0     False
    1      a        c     20.0      True
    """
    data = as_comparisons(data, "to plan battles")
    n_top = pairs_goal(goal, k, len(data.systems))
    result = present_state(data, error=error, random_seed=random_seed)
    ranking = ranking_of(result)
    first, second = critical_pairs(ranking["score"].values, n_top)
    pairs = gaps_of(result)
    gap, variance = pairs.gap[first, second], pairs.spread[first, second] ** 2
    told = _information(result, data, random_seed)[first, second]
    with np.errstate(divide="ignore"):
        wanted = (np.maximum(gap, 0.0) / pairs.critical) ** 2
        needed = np.maximum(np.ceil((1.0 / wanted - 1.0 / variance) / told), 1.0)
    resolved = ranking["resolved"].values[first, second]
    table = pairwise_decisions(result).set_index(["system", "opponent"])
    names = np.array(data.systems)
    rows = [(names[i], names[j]) for i, j in zip(first, second, strict=True)]
    found = table.loc[rows, ["difference", "z", "superiority"]].reset_index()
    found.insert(3, "battles", data.totals[first, second])
    found["resolved"] = resolved
    found["further_battles_needed"] = np.where(resolved, 0.0, needed)
    found.attrs["target"] = result.attrs["target"]
    return found


def suggest_battles(
    data: Comparisons | ArrayLike,
    budget: int,
    *,
    goal: Goal = "best",
    k: int | None = None,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Suggest the pairs whose next battles contribute most to a goal.

    The battles are allocated in parts. Each part goes to the pair whose battles are expected to
    reduce the probabilities of a wrong order most, summed over the pairs that matter for the goal.

    Parameters
    ----------
    data : Battles, Comparisons or pandas.DataFrame
        Battles so far.
    budget : int
        Number of further battles.
    goal, k, random_seed
        As in :func:`plan_battles`.

    Returns
    -------
    pandas.DataFrame
        One row per pair with further battles, most first: ``system``, ``opponent``, ``battles`` so
        far and ``further_battles``, which add up to `budget`.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> wins = [[0, 12, 18], [8, 0, 16], [2, 4, 0]]
    >>> data = Comparisons(wins, systems=["a", "b", "c"])
    >>> suggest_battles(data, 100, random_seed=1)[["system", "opponent"]].iloc[0].tolist()
    ['a', 'b']
    """
    data = as_comparisons(data, "to plan battles")
    check_integer(budget, "budget")
    n_top = check_goal(goal, k, len(data.systems))
    result = present_state(data, error=0.05, random_seed=random_seed)
    draws = result_draws(result)
    score = ranking_of(result)["score"].values
    told = _information(result, data, random_seed)
    given = _allocate(draws, score, told, critical_pairs(score, n_top), budget)
    first, second = np.nonzero(given)
    better = score[first] < score[second]
    first, second = np.where(better, second, first), np.where(better, first, second)
    names = np.array(data.systems)
    table = pd.DataFrame(
        {
            "system": names[first],
            "opponent": names[second],
            "battles": data.totals[first, second],
            "further_battles": (given + given.T)[first, second],
        }
    )
    return table.sort_values("further_battles", ascending=False, kind="stable", ignore_index=True)


def _allocate(
    draws: FloatArray,
    score: FloatArray,
    told: FloatArray,
    critical: tuple[NDArray[np.intp], NDArray[np.intp]],
    n: int,
) -> NDArray[np.int64]:
    """Allocate n battles to pairs, of shape (system, opponent) above the diagonal."""
    i, j = critical
    covariance = np.atleast_2d(np.cov(draws, rowvar=False))
    given = np.zeros(covariance.shape, dtype=np.int64)
    parts = np.diff(np.linspace(0, n, min(n, _PARTS) + 1).astype(int))
    for part in parts:
        spread = np.diag(covariance)[:, np.newaxis] + np.diag(covariance) - 2.0 * covariance
        variance = np.maximum(spread[i, j], np.finfo(float).tiny)
        # The truth is not known: a zero gap is replaced by one standard deviation.
        z = np.sqrt((score[i] - score[j]) ** 2 / variance + 1.0)
        urgency = np.exp(-0.5 * z**2) * z / variance
        # Information of all battles of a part on the pairs that matter for the goal.
        rows = covariance[i] - covariance[j]
        gain = np.zeros_like(covariance)
        for weight, row in zip(urgency, rows, strict=True):
            gain += weight * (row[:, np.newaxis] - row) ** 2
        gain /= 1.0 / (part * told + np.finfo(float).tiny) + spread
        best = np.unravel_index(int(np.argmax(np.triu(gain, 1))), gain.shape)
        given[best] += part
        row = covariance[best[0]] - covariance[best[1]]
        covariance = covariance - np.outer(row, row) / (1.0 / (part * told[best]) + spread[best])
    return given


def _information(result: "xr.DataTree", data: Comparisons, random_seed: int | None) -> FloatArray:
    """Return the expected information of a battle on the difference of two scores.

    Where battles of a judge or a prompt are alike, a further one has less than the model says, by
    the same factor as those so far.
    """
    likelihood, _ = pair_likelihood(result)
    score = ranking_of(result)["score"].values
    gap, tie = score[:, np.newaxis] - score, point_tie(result, likelihood)
    half, tied = win_chances(likelihood, gap, tie)
    win = half - 0.5 * tied
    zero, one = np.zeros_like(gap), np.ones_like(gap)
    slopes = [
        (
            likelihood.derivatives(won, share, gap, tie)[0],
            likelihood.derivatives(lost, share, -gap, tie)[0],
        )
        for won, lost, share in ((one, zero, zero), (zero, one, zero), (zero, zero, 0.5 * one))
    ]
    chances = win, 1.0 - win - tied, tied
    told = sum(
        (chance * (a - b) ** 2 for chance, (a, b) in zip(chances, slopes, strict=True)), zero
    )
    if result.attrs["calibration"] == "none":
        return told
    alone = rank_all(data, default_method(data), calibration="none", random_seed=random_seed)
    seen, model = gaps_of(result).spread, gaps_of(alone).spread
    return told * np.divide(model, seen, out=np.ones_like(seen), where=seen > 0.0) ** 2
