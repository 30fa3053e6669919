"""How well N trials per question separate two systems.

If the expected scores of two systems differ by d, and s is the standard deviation of the difference
of one trial's scores on all questions, then z after N trials has mean d sqrt(N) / s and standard
deviation one.
"""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrank.entrance import as_data, as_responses
from bayesrank.planning.battles import plan_battles
from bayesrank.planning.forecast import forecast
from bayesrank.planning.goals import Goal, critical_pairs, pairs_goal, worth_scale
from bayesrank.planning.stopping import part_to_plan, present_state
from bayesrank.responses import Responses
from bayesrank.results.decisions import pairwise_decisions
from bayesrank.results.leaderboard import gaps_of, ranking_of, result_draws
from bayesrank.results.ranks import TIE_TOLERANCE, better_scores
from bayesrank.validation import check_integer, check_number
from bayesrank.views import Comparisons

if TYPE_CHECKING:
    import xarray as xr

FloatArray = NDArray[np.float64]


def correct_order_probability(
    difference: ArrayLike, spread: ArrayLike, trials: ArrayLike
) -> FloatArray:
    r"""Return the probability that N trials per question put two systems in the right order.

    .. math:: \Phi\left(|d| \sqrt{N} / s\right)

    Parameters
    ----------
    difference : array_like
        Difference d of the expected scores.
    spread : array_like
        Standard deviation s of the difference of the scores of one trial: for right or wrong
        answers to M questions, ``sqrt(sum(p (1 - p)) + sum(q (1 - q))) / M``.
    trials : array_like
        Trials N per question of each system.

    Returns
    -------
    numpy.ndarray
        With the shape to which the arguments broadcast.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025), appendix D. https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> correct_order_probability(0.0133, np.sqrt(0.4 / 30), [80, 199]).round(3)
    array([0.849, 0.948])
    """
    from scipy.special import ndtr  # importing this module should not cost SciPy

    return ndtr(_separation(difference, spread, trials))


def expected_z(difference: ArrayLike, spread: ArrayLike, trials: ArrayLike) -> FloatArray:
    """Return the mean absolute z of two systems after N trials per question.

    Parameters
    ----------
    difference, spread, trials
        As in :func:`correct_order_probability`.

    Returns
    -------
    numpy.ndarray
        Mean of the absolute value of a normal variable around d sqrt(N) / s; sqrt(2 / pi) for
        equal systems.

    Examples
    --------
    >>> expected_z(0.0133, np.sqrt(0.4 / 30), [80, 199]).round(2)
    array([1.19, 1.67])
    """
    from scipy.special import ndtr

    z = _separation(difference, spread, trials)
    return z * (2.0 * ndtr(z) - 1.0) + np.sqrt(2.0 / np.pi) * np.exp(-(z**2) / 2.0)


def trials_needed(difference: ArrayLike, spread: ArrayLike, *, z: float = 1.645) -> FloatArray:
    """Return the trials per question after which two systems are separated by z.

    Parameters
    ----------
    difference, spread
        As in :func:`correct_order_probability`.
    z : float, default 1.645
        Required separation; with 1.645 the probability of the right order is 95 %.

    Returns
    -------
    numpy.ndarray of float
        Integers of at least 1; infinite for equal systems.

    Raises
    ------
    ValueError
        If z is not a number above 0.

    Examples
    --------
    >>> trials_needed([0.0133, 0.0], np.sqrt(0.4 / 30))
    array([204.,  inf])
    """
    check_number(z, "z", above=0)
    one = _separation(difference, spread, 1.0)
    with np.errstate(divide="ignore"):
        return np.maximum(np.ceil((z / one) ** 2), 1.0)


def plan_pairs(
    data: Responses | Comparisons | ArrayLike,
    *,
    goal: Goal | None = None,
    k: int | None = None,
    error: float = 0.05,
    further: int | None = None,
    random_seed: int | None = None,
) -> pd.DataFrame:
    """Tabulate the order of each pair of systems, and the trials that would resolve it.

    The posterior is that of :func:`bayesrank.rank` by its default method. A pair is resolved by the
    same rule: a joint decision for all pairs, at the joint probability 1 - `error`. The forecast
    assumes that the present difference is the true one, and shrinks the part of its spread that
    trials explain (:mod:`bayesrank.planning.forecast`). If a difference is uncertain, the number of
    trials is uncertain too.

    Parameters
    ----------
    data : Responses, Battles, Comparisons, pandas.DataFrame or array_like
        Outcomes so far, or battles. A system without any is left out, with a warning.
    goal : {"best", "top_k", "full"}, optional
        Only pairs that matter for the goal, as in
        :func:`bayesrank.planning.should_stop`; all pairs by default.
    k : int, optional
        For the goal ``"top_k"``.
    error : float, default 0.05
        Allowed probability that any of the resolved orders is wrong.
    further : int, optional
        Also forecast the table after this number of further trials per question and system; not
        for battles.
    random_seed : int, optional
        As in :func:`bayesrank.rank`.

    Returns
    -------
    pandas.DataFrame
        One row per pair, the better system first: ``system``, ``opponent``, ``difference``,
        ``trials`` (the smaller mean number per question so far), ``z``, ``superiority`` and
        ``resolved``, as :func:`bayesrank.results.decisions.pairwise_decisions` has them;
        ``superiority_then`` and ``resolved_then`` if `further` is given (the present ones for 0);
        and ``further_trials_needed``, the additional trials per question and system: 0 if and only
        if the pair is resolved, infinite if trials on these questions cannot resolve it.
        ``attrs["target"]`` is the target. For battles the columns of
        :func:`bayesrank.planning.battles.plan_battles`.

    Raises
    ------
    DataError
        If the outcomes have no worth.
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chances = np.array([0.7, 0.6, 0.2])[:, None, None]
    >>> data = Responses((rng.random((3, 20, 4)) < chances).astype(int), systems=["a", "b", "c"])
    >>> plan_pairs(data, goal="full")[["system", "opponent", "resolved", "further_trials_needed"]]
      system opponent  resolved  further_trials_needed
    0      a        b     False                    1.0
    1      b        c      True                    0.0
    """
    known = as_data(data)
    if isinstance(known, Comparisons):
        if further is not None:
            raise ValueError(f"further must be None for battles; got {further!r}")
        return plan_battles(known, goal=goal, k=k, error=error, random_seed=random_seed)
    data = part_to_plan(as_responses(known, "or battles"))
    if further is not None:
        check_integer(further, "further", least=0)
    n_top = pairs_goal(goal, k, len(data.systems))
    worth_scale(data)
    result = present_state(data, error=error, random_seed=random_seed)
    table = pairwise_decisions(result)
    first, second = (
        pd.Index(data.systems).get_indexer(table[name].to_list()) for name in ("system", "opponent")
    )
    per_system = data.trials.mean(axis=1)
    table["trials"] = np.minimum(per_system[first], per_system[second])
    columns = ["system", "opponent", "difference", "trials", "z", "superiority", "resolved"]
    table = table[columns].join(_forecast_columns(data, result, first, second, further))
    if n_top is not None:
        wanted = set(zip(*critical_pairs(ranking_of(result)["score"].values, n_top), strict=True))
        kept = [row for row, pair in enumerate(zip(first, second, strict=True)) if pair in wanted]
        table = table.iloc[kept].reset_index(drop=True)
    table.attrs["target"] = result.attrs["target"]
    return table


def _forecast_columns(
    data: Responses,
    result: "xr.DataTree",
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    further: int | None,
) -> pd.DataFrame:
    """Return the effect of further trials on pairs."""
    ranking = ranking_of(result)
    draws = result_draws(result)
    pairs = gaps_of(result)
    gap, spread = pairs.gap[first, second], pairs.spread[first, second]
    # Pairs with equal scores, or with different orders by draws and by scores, are never resolved.
    gap = np.where(better_scores(ranking["score"].values)[first, second], gap, 0.0)
    ahead = forecast(data, first, second, spread, target=result.attrs["target"])
    limit = pairs.critical * spread
    columns = {}
    if further is not None:
        remaining = ahead.remaining(float(further))
        columns["superiority_then"] = _superiority_then(draws, first, second, remaining)
        columns["resolved_then"] = gap > limit * remaining
    share = np.divide(np.maximum(gap, 0.0), limit, out=np.zeros_like(gap), where=limit > 0)
    needed = ahead.trials_until(np.minimum(share, 1.0))
    resolved = ranking["resolved"].values[first, second]
    return pd.DataFrame(columns | {"further_trials_needed": np.where(resolved, 0.0, needed)})


def _superiority_then(
    draws: FloatArray, first: NDArray[np.intp], second: NDArray[np.intp], remaining: FloatArray
) -> FloatArray:
    """Return superiorities if the draws of differences were closer to their means."""
    by_system = np.ascontiguousarray(draws.T)
    same = TIE_TOLERANCE * np.ptp(draws, axis=1)
    superiority = np.empty(len(first))
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        gaps = by_system[i] - by_system[j]
        gaps = gaps - (1.0 - remaining[pair]) * (gaps - gaps.mean())
        superiority[pair] = (gaps > same).mean() + (np.abs(gaps) <= same).mean() / 2.0
    return superiority


def _separation(difference: ArrayLike, spread: ArrayLike, trials: ArrayLike) -> FloatArray:
    d, s = np.abs(np.asarray(difference, np.float64)), np.asarray(spread, np.float64)
    n = np.asarray(trials, np.float64)
    if (s < 0).any() or (n < 0).any():
        raise ValueError(f"spread and trials must be at least 0; got {spread!r} and {trials!r}")
    gap, s = np.broadcast_arrays(d * np.sqrt(n), s)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0.0, 0.0, gap / s)
