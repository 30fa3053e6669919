"""The group ``ranking`` of a result, also of one that an earlier version stored."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.results.summary import summarize_resolution

# What the joint decisions imply, and what stood for it before there were any.
_IMPLIED = ("joint_rank_lower", "joint_rank_upper", "group", "separated_from_next", "tier")


def ranking_of(result: xr.DataTree) -> xr.Dataset:
    """Return the group ``ranking``; what an old result lacks is made from its draws.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned, or one read from a file.

    Returns
    -------
    xarray.Dataset
        As of today: results that were stored with ``tier`` get the joint decisions ``resolved``
        and what follows from them instead.

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
    if not isinstance(result, xr.DataTree):
        raise ValueError(f"result must be what rank() returned; got {type(result).__name__}")
    if "ranking" not in result.children:
        groups = ", ".join(result.children) or "none"
        raise ValueError(f"result must have a group 'ranking'; got groups {groups}")
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
