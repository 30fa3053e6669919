"""Rankings of groups of questions, and one ranking in which groups have chosen weights."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import compress
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bayesrank.battle_states import groups_of
from bayesrank.battles import Battles
from bayesrank.catalog import default_method, find_method
from bayesrank.design import asked_questions
from bayesrank.entrance import as_data, as_responses
from bayesrank.errors import DataError
from bayesrank.inference.run import Data
from bayesrank.method import Method
from bayesrank.ranking import rank
from bayesrank.responses import Responses
from bayesrank.validation import checked_seed, numeric

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike

type GroupWeights = str | Mapping[str, float]


def rank_by_group(
    data: Data,
    method: str | Method | None = None,
    *,
    random_seed: int | None = None,
    result: "xr.DataTree | None" = None,
    **settings: Any,
) -> "dict[str, xr.DataTree]":
    """Rank the systems on each group of questions, or of battles.

    Each group is ranked by itself; but by ``hierarchical_comparisons``, the default for battles,
    all come from one posterior, with all systems in each.

    Parameters
    ----------
    data : Responses or Battles
        Outcomes whose questions have groups, or battles that have them; also as a table or a
        labelled array, as :func:`bayesrank.rank` takes them.
    method, random_seed, **settings
        As in :func:`bayesrank.rank`. Groups have seeds of their own.
    result : xarray.DataTree, optional
        What :func:`bayesrank.rank` returned for all of the data, which is not found again.

    Returns
    -------
    dict of str to xarray.DataTree
        What :func:`bayesrank.rank` returns, by group in the order of the questions; a group has the
        systems with an outcome in it.

    Raises
    ------
    DataError
        If questions, or battles, have no groups.

    Examples
    --------
    >>> data = Responses([[1, 0, 1], [1, 1, 0]], systems=["a", "b"], groups=["x", "x", "y"])
    >>> trees = rank_by_group(data, "avg", draws=0)
    >>> {name: tree["ranking"]["score"].values.tolist() for name, tree in trees.items()}
    {'x': [0.5, 1.0], 'y': [1.0, 0.0]}
    """
    from bayesrank.results.state_boards import group_boards  # loads pandas

    data = as_data(data)
    if isinstance(data, Battles):
        method = default_method(data, by_group=True) if method is None else method
        row = method if isinstance(method, Method) else find_method(method)[0]
        if "group_sd" in row.options:
            if result is None:
                result = rank(data, method, random_seed=random_seed, **settings)
            return group_boards(result, data)
    names = group_names(data)
    seeds: list[int | None] = [None] * len(names)
    if random_seed is not None:
        states = np.random.SeedSequence(checked_seed(random_seed)).generate_state(len(names))
        seeds = states.tolist()
    grouped, trees = cast("Responses | Battles", data), {}
    for name, seed in zip(names, seeds, strict=True):
        trees[name] = rank(_part(grouped, name), method, random_seed=seed, **settings)
    return trees


def group_names(data: Data) -> list[str]:
    """Return the groups of questions, or of battles, or raise DataError where there are none."""
    return list(groups_of(data).names if isinstance(data, Battles) else _sizes(data))


def _part(data: Responses | Battles, name: str) -> Responses | Battles:
    """Return what a group holds."""
    if isinstance(data, Responses):
        return data.select(groups=[name])
    states = groups_of(data)
    return data.take(np.flatnonzero(states.codes == states.names.index(name)))


def rank_weighted(
    data: "Responses | ArrayLike",
    method: str | Method | None = None,
    *,
    group_weights: GroupWeights,
    ci_prob: float = 0.95,
    lcb: float = 0.05,
    **settings: Any,
) -> "xr.DataTree":
    r"""Rank systems by the weighted mean of their scores on groups of questions.

    The score of a system is :math:`\sum_g w_g s_g` of its scores :math:`s_g` on each group, which
    are drawn independently. So benchmarks of different sizes can count alike.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Outcomes, whose questions have groups; every system has outcomes in all groups that have a
        weight.
    group_weights : "equal", "size" or mapping of str to float
        Weights of the groups, which are made to sum to one: all alike, the numbers of their
        questions, or a number for each.
    method, ci_prob, lcb, **settings
        As in :func:`bayesrank.rank`.

    Returns
    -------
    xarray.DataTree
        As of :func:`bayesrank.rank`, with the weights as the attribute ``group_weights``; observed
        means have the same weights.

    Raises
    ------
    DataError
        If questions have no groups, a weight is not a positive number or of no group, or a system
        lacks a group.

    Examples
    --------
    >>> data = Responses([[1, 0, 1], [1, 1, 0]], systems=["a", "b"], groups=["x", "x", "y"])
    >>> tree = rank_weighted(data, "avg", group_weights="equal", draws=0)
    >>> tree["ranking"]["score"].values.tolist()
    [0.75, 0.5]
    """
    data = as_responses(data, "for weights of groups")
    shares = group_shares(data, group_weights)
    kept = data.select(groups=list(shares))
    trees = rank_by_group(kept, method, ci_prob=ci_prob, lcb=lcb, **settings)
    for name, tree in trees.items():
        lacking = sorted(
            set(kept.systems) - set(map(str, tree["ranking"].to_dataset()["system"].values))
        )
        if lacking:
            raise DataError(
                f"group_weights must be of groups that every system has outcomes in; got none of "
                f"{lacking[0]!r} in {name!r}: leave the group or the system out"
            )
    return _combined(kept, trees, shares, ci_prob=ci_prob, lcb=lcb)


def group_shares(data: Responses, group_weights: GroupWeights) -> dict[str, float]:
    """Return the weight of each group, which sum to one.

    Parameters
    ----------
    data, group_weights
        As in :func:`rank_weighted`.

    Returns
    -------
    dict of str to float

    Raises
    ------
    DataError
        As :func:`rank_weighted`.

    Examples
    --------
    >>> group_shares(Responses([[1, 0, 1, 1]], groups=["x", "x", "x", "y"]), "size")
    {'x': 0.75, 'y': 0.25}
    """
    sizes = _sizes(data)
    weights: dict[str, float]
    if group_weights in ("equal", "size"):
        weights = {name: 1.0 if group_weights == "equal" else float(n) for name, n in sizes.items()}
    elif not isinstance(group_weights, Mapping):
        raise DataError(
            f"group_weights must be equal, size, or a number for each group; got {group_weights!r}"
        )
    else:
        unknown = [name for name in group_weights if name not in sizes]
        if unknown:
            raise DataError(
                f"group_weights must be of the groups {', '.join(sizes)}; got {unknown[0]!r}"
            )
        named = [name for name in sizes if name in group_weights]
        given = numeric([group_weights[name] for name in named], "group_weights")
        if not named or given.ndim > 1 or not (np.isfinite(given) & (given > 0.0)).all():
            raise DataError(f"group_weights must be positive numbers; got {dict(group_weights)!r}")
        weights = dict(zip(named, given.tolist(), strict=True))
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _sizes(data: Data) -> Counter[str]:
    if not isinstance(data, Responses) or data.groups is None:
        raise DataError(
            "groups must be given for rankings by group; got none: name the column of a "
            "table by group=..."
        )
    return Counter(compress(data.groups, asked_questions(data)))


def _combined(
    data: Responses,
    trees: "Mapping[str, xr.DataTree]",
    shares: Mapping[str, float],
    *,
    ci_prob: float,
    lcb: float,
) -> "xr.DataTree":
    """Put the results of groups into one."""
    import xarray as xr

    from bayesrank.results.summary import summarize_evidence
    from bayesrank.results.tree import data_groups, summarize_scores

    def weighted(group: str, variable: str) -> "xr.DataArray":
        parts = [
            share * trees[name][group].to_dataset()[variable].sel(system=list(data.systems))
            for name, share in shares.items()
        ]
        return sum(parts[1:], parts[0])

    score = weighted("ranking", "score").values
    posterior = weighted("posterior", "score").transpose("chain", "draw", "system")
    draws = posterior.values if posterior.sizes["draw"] > 1 else None
    freedom = np.inf if draws is None else _freedom(trees, shares)
    ranking = summarize_scores(score, draws, data, ci_prob=ci_prob, lcb=lcb, freedom=freedom)
    evidence = summarize_evidence(data, ci_prob=ci_prob)
    evidence["observed_mean"] = ("system", weighted("ranking", "observed_mean").values)
    ranking = ranking.assign(evidence.data_vars).assign_attrs(evidence.attrs)
    groups = {"posterior": posterior.to_dataset(name="score"), "ranking": ranking}
    tree = xr.DataTree.from_dict(groups | data_groups(data, "counts"))
    first = next(iter(trees.values()))
    tree.attrs.update(first.attrs)
    tree.attrs.update(fingerprint=data.fingerprint, group_weights=json.dumps(dict(shares)))
    return tree


def _freedom(trees: "Mapping[str, xr.DataTree]", shares: Mapping[str, float]) -> float:
    """Return the degrees of freedom of the variance of a weighted sum (Welch-Satterthwaite)."""
    from bayesrank.results.leaderboard import result_draws

    spread = np.array(
        [w**2 * float(result_draws(trees[name]).var(axis=0).sum()) for name, w in shares.items()]
    )
    own = np.array([trees[name]["ranking"].attrs.get("freedom", np.inf) for name in shares])
    uncertain = float((spread**2 / own).sum())
    return float(spread.sum()) ** 2 / uncertain if uncertain else np.inf
