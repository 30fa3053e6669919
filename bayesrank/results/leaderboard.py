"""What a result tree says: its ranking and its draws, and both as tables."""

import json
from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from bayesrank.display import to_html
from bayesrank.priors import as_dirichlet
from bayesrank.results.ranks import PairGaps, pair_gaps
from bayesrank.results.summary import summarize_resolution

# Columns of a point estimate without draws.
POINT_COLUMNS = ("rank", "system", "score", "observed_mean", "n_outcomes", "n_questions", "few")

COLUMNS = (
    *POINT_COLUMNS,
    "score_lower",
    "score_upper",
    "lcb",
    "lcb_rank",
    "rank_lower",
    "rank_upper",
    "prob_best",
    "expected_rank",
    "group",
    "separated_from_next",
)

# Columns of only some results, and the column before each.
_MORE = {"few": "preliminary", "rank_upper": "arena_rank"}

_STATED = ("ci_prob", "lcb")

# Variables that follow from the joint decisions, and their old counterpart.
_IMPLIED = ("joint_rank_lower", "joint_rank_upper", "group", "separated_from_next", "tier")


class Leaderboard(pd.DataFrame):
    """A leaderboard: a frame that notebooks show rounded, with its columns named for people.

    Its ``attrs`` hold ``ci_prob``, ``lcb`` and, if a prior shrinks the score, its target.
    Parts of it are shown like any other frame.
    """

    @property
    def _constructor(self) -> type["Leaderboard"]:
        return Leaderboard

    def _repr_html_(self) -> str | None:
        return to_html("leaderboard_html", self) or super()._repr_html_()


def leaderboard(result: xr.DataTree) -> Leaderboard:
    """Return the ranking as a table, best system first.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned, or one read from a file.

    Returns
    -------
    Leaderboard, a pandas.DataFrame
        One row per system. ``rank`` is by the point estimate ``score``, where ties share the best
        position; ``observed_mean`` is the mean grade with equal weights of questions (for battles
        the win rate), ``n_outcomes`` and ``n_questions`` (not for battles) are their numbers, and
        ``few`` marks systems with few of them (:func:`bayesrank.results.summary.is_little`;
        ``preliminary`` after :func:`bayesrank.results.rating_scale.mark_preliminary`);
        ``score_lower`` and ``score_upper`` bound the credible interval; ``lcb`` is the lower
        credible bound and ``lcb_rank`` the conservative rank by it; ``rank_lower`` and
        ``rank_upper`` bound the rank of one system at a time; ``arena_rank``, for battles, is one
        more than the number of systems whose interval lies above; ``prob_best`` is the probability
        of being first and ``expected_rank`` the posterior mean of the rank; ``group`` has letters:
        two systems share a letter if and only if the joint decisions for all pairs do not resolve
        their order; ``separated_from_next`` is whether the same decisions resolve a system from the
        next one, and true for the last. Without draws the columns end with ``few``. Systems without
        any outcome are unranked and come last: their numbers of outcomes are 0, and other columns
        are missing.

    Raises
    ------
    ValueError
        If `result` has no ranking.

    Examples
    --------
    >>> from bayesrank import rank
    >>> result = rank([[[1, 1, 0]], [[0, 1, 0]]], "avg", draws=0)
    >>> leaderboard(result)[["rank", "system", "score", "n_outcomes", "few"]]
       rank    system     score  n_outcomes   few
    0     1  system 1  0.666667           3  True
    1     2  system 2  0.333333           3  True
    """
    ranked = ranked_rows(result)
    unranked = unranked_systems(result)
    if not unranked:
        return ranked
    known = {"n_outcomes": 0, "n_questions": 0, "few": True, "group": ""}
    rows = pd.DataFrame({"system": unranked}).assign(
        **{name: value for name, value in known.items() if name in ranked}
    )
    # Whole numbers and decisions keep their types beside missing values.
    missing = {"i": "Int64", "b": "boolean"}
    kinds = {name: missing.get(ranked[name].dtype.kind, ranked[name].dtype) for name in ranked}
    board = Leaderboard(
        {
            name: pd.concat(
                [ranked[name].astype(kind), rows.reindex(columns=[name])[name].astype(kind)],
                ignore_index=True,
            )
            for name, kind in kinds.items()
        }
    )
    board.attrs.update(ranked.attrs)
    return board


def unranked_systems(result: xr.DataTree) -> list[str]:
    """Return the systems of a result without any outcome."""
    return json.loads(result.attrs.get("unranked", "[]"))


def ranked_rows(result: xr.DataTree) -> Leaderboard:
    """Return the leaderboard of the systems that have an outcome.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.

    Returns
    -------
    Leaderboard
        As :func:`leaderboard`, without the unranked systems.
    """
    ranking = ranking_of(result)
    columns = [name for name in ordered_columns(ranking) if name == "system" or name in ranking]
    table = pd.DataFrame({name: ranking[name].values for name in columns})
    table["system"] = table["system"].astype(str)
    # Equal scores are sorted by the amount of their evidence, then in the order of the data.
    known = -table["n_outcomes"] if "n_outcomes" in table else 0
    order = table.assign(known=known).sort_values(["rank", "known"], kind="stable").index
    board = Leaderboard(table.loc[order].reset_index(drop=True))
    board.attrs.update({name: ranking.attrs[name] for name in _STATED if name in ranking.attrs})
    towards = shrunk_towards(result)
    if towards is not None:
        board.attrs["shrunk_towards"] = towards
    return board


def ordered_columns(present: Container[str]) -> list[str]:
    """Return the columns of a leaderboard in order, with those of the others that are present.

    Parameters
    ----------
    present : container of str
        Columns of a leaderboard, or variables of a ranking.

    Returns
    -------
    list of str
    """
    ordered = []
    for name in COLUMNS:
        ordered.append(name)
        if name in _MORE and _MORE[name] in present:
            ordered.append(_MORE[name])
    return ordered


def superiority(result: xr.DataTree) -> pd.DataFrame:
    """Return the probability that each system is better than each other one.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned with draws.

    Returns
    -------
    pandas.DataFrame
        Rows are systems, columns opponents, both best first; an entry is Pr(score of the row >
        score of the column), plus half the probability that they are equal.

    Raises
    ------
    ValueError
        If `result` has no ranking or no draws.

    Examples
    --------
    >>> from bayesrank import rank
    >>> result = rank([[[1, 1, 1, 0]], [[0, 0, 0, 0]]], "bayes", random_seed=1)
    >>> float(superiority(result).loc["system 1", "system 2"]) > 0.9
    True
    """
    ranking = ranking_of(result)
    if "superiority" not in ranking:
        raise ValueError("result must have draws for superiority; got only a point estimate")
    order = ranked_rows(result)["system"].to_list()
    return ranking["superiority"].to_pandas().loc[order, order]


def require_result(result: Any) -> None:
    """Raise unless a tree is a result of :func:`bayesrank.rank`."""
    if not isinstance(result, xr.DataTree):
        raise ValueError(f"result must be what rank() returned; got {type(result).__name__}")
    if "ranking" not in result.children:
        groups = ", ".join(result.children) or "none"
        raise ValueError(f"result must have a group 'ranking'; got groups {groups}")


def require_results(results: Any) -> None:
    """Raise unless the argument is a mapping of names to results."""
    if not isinstance(results, Mapping) or isinstance(results, xr.DataTree):
        raise ValueError(f"results must be a mapping of names; got {type(results).__name__}")
    for result in results.values():
        require_result(result)


def require_counts(result: xr.DataTree) -> None:
    """Raise where the data of a PyMC model have taken the place of those that were ranked."""
    observed = result.children.get("observed_data")
    if observed is not None and "system" not in observed.coords:
        names = ", ".join(map(str, observed.data_vars))
        raise ValueError(
            f"result must have the data that rank() kept in it; got {names} of a PyMC model in "
            "their place: keep predictive draws in a tree of their own"
        )


def ranking_of(result: xr.DataTree) -> xr.Dataset:
    """Return the group ``ranking``; variables missing in an old result come from its draws.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned, or one read from a file.

    Returns
    -------
    xarray.Dataset
        In the present schema: for stored results with ``tier``, the joint decisions ``resolved``
        and the variables that follow from them replace it.

    Raises
    ------
    ValueError
        If `result` has no ranking.

    Examples
    --------
    >>> from bayesrank import rank
    >>> result = rank([[[1, 1, 1, 1]], [[0, 0, 0, 0]]], "avg", random_seed=1)
    >>> ranking_of(result)["group"].values.tolist()
    ['a', 'b']
    """
    require_result(result)
    ranking = result["ranking"].to_dataset()
    if "superiority" not in ranking or "resolved" in ranking:
        return ranking
    resolution = summarize_resolution(
        ranking["score"].values,
        result_draws(result),
        tuple(map(str, ranking["system"].values)),
        ci_prob=ranking.attrs["ci_prob"],
    )
    return ranking.drop_vars(_IMPLIED, errors="ignore").assign(resolution.data_vars)


def result_draws(result: xr.DataTree) -> NDArray[np.float64]:
    """Return the draws of the scores of all chains.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.

    Returns
    -------
    numpy.ndarray of shape (draw, system)
    """
    score = result["posterior"]["score"].transpose("chain", "draw", "system").values
    return score.reshape(-1, score.shape[-1])


def gaps_of(result: xr.DataTree) -> PairGaps:
    """Compare every pair of a result, as its resolved pairs are."""
    attrs = ranking_of(result).attrs
    prob, freedom = float(attrs["ci_prob"]), attrs.get("freedom", np.inf)
    return pair_gaps(result_draws(result), ci_prob=prob, freedom=freedom)


def shrunk_towards(result: xr.DataTree) -> float | None:
    """Return the value towards which the prior shrinks scores of a result, None if it does not."""
    if result.attrs.get("shrunk") != "yes":
        return None
    weights = result["constant_data"].to_dataset()["category_weights"].values
    return as_dirichlet(result.attrs["prior"]).mean(weights)
