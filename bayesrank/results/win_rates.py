"""Expected win rates between systems, from a result of a model of paired comparisons."""

import json

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.catalog import METHODS
from bayesrank.inference.fits.pairs import PairLikelihood
from bayesrank.inference.fits.vote_likelihoods import of_pairs
from bayesrank.method import load_function
from bayesrank.results.leaderboard import ranking_of, require_result, result_draws

FloatArray = NDArray[np.float64]


def expected_win_rates(result: xr.DataTree, *, ci_prob: float | None = None) -> pd.DataFrame:
    """Tabulate the expected win rate of each system against each other one.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned with draws, by a model of paired comparisons such as
        ``davidson``.
    ci_prob : float, optional
        Probability of the intervals; that of the result by default.

    Returns
    -------
    pandas.DataFrame
        One row per pair, the better system first: ``system``, ``opponent``, ``win_rate`` (a tie is
        half a win) with ``win_rate_lower`` and ``win_rate_upper``, and ``tie_rate``.

    Raises
    ------
    ValueError
        If the result is of another method, or has no draws.

    Examples
    --------
    >>> from bayesrank import Battles, rank
    >>> log = Battles(["a"] * 9 + ["b"] * 3, ["b"] * 9 + ["a"] * 3, ["first"] * 12)
    >>> expected_win_rates(rank(log, random_seed=1)).round(2)
      system opponent  win_rate  win_rate_lower  win_rate_upper  tie_rate
    0      a        b      0.71            0.43            0.89       0.0
    """
    likelihood, tie = pair_likelihood(result)
    names, order, draws = _ordered(result)
    score = ranking_of(result)["score"].values[order]
    first, second = np.triu_indices(len(names), 1)
    point = win_chances(likelihood, score[first] - score[second], point_tie(result, likelihood))
    prob = float(ranking_of(result).attrs["ci_prob"]) if ci_prob is None else ci_prob
    bounds = np.empty((2, len(first)))
    for some in batches(len(first), len(draws)):
        rate, _ = win_chances(likelihood, draws[:, first[some]] - draws[:, second[some]], tie)
        bounds[:, some] = np.quantile(rate, (0.5 - prob / 2, 0.5 + prob / 2), axis=0)
    return pd.DataFrame(
        {
            "system": names[first],
            "opponent": names[second],
            "win_rate": point[0],
            "win_rate_lower": bounds[0],
            "win_rate_upper": bounds[1],
            "tie_rate": point[1],
        }
    )


def average_win_rates(result: xr.DataTree, *, ci_prob: float | None = None) -> pd.DataFrame:
    """Tabulate the expected win rate of each system if it met all others equally often.

    Parameters
    ----------
    result, ci_prob
        As in :func:`expected_win_rates`.

    Returns
    -------
    pandas.DataFrame
        One row per system, in the order of the data: ``system``, ``win_rate`` with
        ``win_rate_lower`` and ``win_rate_upper``, ``mean`` and ``sd`` of its draws.

    Raises
    ------
    ValueError
        As :func:`expected_win_rates`.
    """
    likelihood, tie = pair_likelihood(result)
    ranking, draws = ranking_of(result), result_draws(result)
    names = ranking["system"].values.astype(str)
    prob = float(ranking.attrs["ci_prob"]) if ci_prob is None else ci_prob
    tails = (0.5 - prob / 2, 0.5 + prob / 2)
    score, tie_there = ranking["score"].values, point_tie(result, likelihood)
    rows = []
    for system, name in enumerate(names):
        others = np.arange(len(names)) != system
        point = win_chances(likelihood, score[system] - score[others], tie_there)[0].mean()
        drawn = np.zeros(len(draws))
        for some in batches(int(others.sum()), len(draws)):
            gaps = draws[:, [system]] - draws[:, np.flatnonzero(others)[some]]
            drawn += win_chances(likelihood, gaps, tie)[0].sum(axis=1)
        drawn /= max(int(others.sum()), 1)
        lower, upper = np.quantile(drawn, tails)
        rows.append((name, point, lower, upper, drawn.mean(), drawn.std()))
    columns = ["system", "win_rate", "win_rate_lower", "win_rate_upper", "mean", "sd"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def win_chances(
    likelihood: PairLikelihood, gap: FloatArray, log_tie: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the chance of a win with ties as half, and that of a tie.

    Parameters
    ----------
    likelihood : PairLikelihood
        Of one battle.
    gap : numpy.ndarray
        Score of the system minus that of its opponent.
    log_tie : numpy.ndarray, broadcastable to `gap`
        The tie parameter; ignored by a likelihood without one.

    Examples
    --------
    >>> from bayesrank.inference.fits.pairs import davidson
    >>> win, tie = win_chances(davidson(), np.array([0.0, 1.0]), np.array([0.0]))
    >>> win.round(3), tie.round(3)
    (array([0.5 , 0.66]), array([0.333, 0.307]))
    """
    one, none = np.ones_like(gap), np.zeros_like(gap)
    win = np.exp(likelihood.value(one, none, gap, log_tie))
    if likelihood.ties != "outcome":
        return win, none
    lost = np.exp(likelihood.value(one, none, -gap, log_tie))
    tie = np.maximum(1.0 - win - lost, 0.0)
    return win + 0.5 * tie, tie


def pair_likelihood(result: xr.DataTree) -> tuple[PairLikelihood, FloatArray]:
    """Return the likelihood of a result, and the draws of its tie parameter, of shape (draw, 1)."""
    require_result(result)
    row = METHODS.get(result.attrs["method"])
    if row is None or row.data != "comparisons" or row.gradient is None:
        known = ", ".join(
            name for name, each in METHODS.items() if each.data == "comparisons" and each.gradient
        )
        raise ValueError(
            f"result must be of a model of paired comparisons ({known}) for win rates; got "
            f"{result.attrs['method']}"
        )
    if "superiority" not in ranking_of(result):
        raise ValueError("result must have draws for win rates; got only a point estimate")
    if "score_scale" in result.attrs:
        raise ValueError(
            "result must be on the scale of its model for win rates; got one that rescale changed"
        )
    likelihood = stated_likelihood(result)
    if likelihood.start is None:
        return likelihood, np.array([[likelihood.log_tie or 0.0]])
    tie = result["posterior"]["tie_strength"].transpose("chain", "draw").values
    with np.errstate(divide="ignore"):  # no ties at all
        return likelihood, np.log(tie).reshape(-1, 1)


def stated_likelihood(result: xr.DataTree) -> PairLikelihood:
    """Return the likelihood of wins, losses and ties by the model of a result.

    For a model of votes it is the likelihood without grades and votes for neither.
    """
    options = json.loads(result.attrs["options"])
    likelihood = load_function(METHODS[result.attrs["method"]].gradient or "")(**options)
    groups = [name for name in ("posterior", "point_estimate") if name in result.children]
    tied = any("tie_strength" in result[name] for name in groups)
    return of_pairs(likelihood, has_tie_strength=tied)


def point_tie(result: xr.DataTree, likelihood: PairLikelihood) -> FloatArray:
    """Return the tie parameter at the point estimate, of shape (1,)."""
    if likelihood.start is None:
        return np.array([likelihood.log_tie or 0.0])
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(result["point_estimate"]["tie_strength"])).reshape(1)


def _ordered(result: xr.DataTree) -> tuple[NDArray[np.str_], NDArray[np.intp], FloatArray]:
    """Return names, order and draws of the systems, best first."""
    ranking = ranking_of(result)
    order = np.argsort(ranking["rank"].values, kind="stable")
    names = ranking["system"].values.astype(str)[order]
    return names, order, result_draws(result)[:, order]
