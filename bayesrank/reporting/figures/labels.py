"""Labels of rows and points: systems in order, their names, and distances between labels."""

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.layout import LEFT_TO_RIGHT, shorten_apart
from bayesrank.results.leaderboard import ranking_of, result_draws

if TYPE_CHECKING:
    import xarray as xr

_FIGURE_SPACE = "\N{FIGURE SPACE}"  # as wide as a digit


def by_rank(
    result: "xr.DataTree",
    needs: Sequence[str] = (),
    what: str = "",
    *,
    systems: Sequence[str] | None = None,
    top: int | None = None,
    ci_prob: float | None = None,
) -> "xr.Dataset":
    """Return the group ``ranking`` with systems and opponents from best to worst.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.
    needs : sequence of str
        Variables that the figure needs.
    what : str
        Content of the figure, for the error.
    systems : sequence of str, optional
        Systems to keep; all by default.
    top : int, optional
        Number of best systems to keep.
    ci_prob : float, optional
        Probability of intervals and decisions, recomputed from the draws; that of the result by
        default.

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    ValueError
        If a variable is absent because the result has no draws, or a system is absent.
    """
    ranking = ranking_of(result)
    if ci_prob is not None and "lcb" in ranking:
        ranking = _at_probability(ranking, result, ci_prob)
    if any(name not in ranking for name in needs):
        raise ValueError(f"result must have draws to show {what}; got only a point estimate")
    # Stable, so that tied systems keep their order in the leaderboard.
    order = np.argsort(ranking["rank"].values, kind="stable")
    order = order[chosen(ranking["system"].values[order], systems, top)]
    return ranking.isel({dim: order for dim in ("system", "opponent") if dim in ranking.dims})


def chosen(names: ArrayLike, systems: Sequence[str] | None, top: int | None) -> list[int]:
    """Return the places of the requested systems, in their order.

    Parameters
    ----------
    names : array_like of shape (system,)
        All systems, best first.
    systems : sequence of str or None
        Those to keep; None for all.
    top : int or None
        Keep as many of the first; None for all.

    Returns
    -------
    list of int

    Raises
    ------
    ValueError
        If a system is unknown, both are given, or `top` is not a number of systems.
    """
    known = [str(name) for name in np.asarray(names)]
    if systems is not None and top is not None:
        raise ValueError("top must be None where systems are given; got both")
    if top is not None:
        if top < 1:
            raise ValueError(f"top must be at least 1; got {top}")
        return list(range(min(top, len(known))))
    if systems is None:
        return list(range(len(known)))
    unknown = [name for name in systems if name not in known]
    if unknown or not len(systems):
        got = repr(unknown[0]) if unknown else "none"
        raise ValueError(f"systems must be among {', '.join(known[:10])}; got {got}")
    return [place for place, name in enumerate(known) if name in set(systems)]


def _at_probability(ranking: "xr.Dataset", result: "xr.DataTree", ci_prob: float) -> "xr.Dataset":
    from bayesrank.results.summary import summarize_draws, summarize_resolution

    if not 0.0 < ci_prob < 1.0:
        raise ValueError(f"ci_prob must be between 0 and 1; got {ci_prob}")
    draws, score = result_draws(result), ranking["score"].values
    names = tuple(map(str, ranking["system"].values))
    lcb, alike = ranking.attrs["lcb"], ranking.attrs.get("alike")
    anew = summarize_draws(draws, names, ci_prob=ci_prob, lcb=lcb, score=score, alike=alike)
    freedom = ranking.attrs.get("freedom", float("inf"))
    resolution = summarize_resolution(
        score, draws, names, ci_prob=ci_prob, freedom=freedom, alike=alike
    )
    anew = anew.assign(resolution.data_vars)
    return ranking.assign(anew.data_vars).assign_attrs(ci_prob=ci_prob)


def rank_labels(ranking: "xr.Dataset") -> list[str]:
    """Return the name and the rank of each system, the ranks right-aligned.

    Parameters
    ----------
    ranking : xarray.Dataset
        With ``rank`` over ``system``.

    Returns
    -------
    list of str
    """
    ranks = [f"{rank:g}" for rank in ranking["rank"].values]
    width = max(map(len, ranks))
    names = shorten_apart([str(name) for name in ranking["system"].values])
    return [
        f"{left_to_right(name)}  {rank.rjust(width, _FIGURE_SPACE)}"
        for name, rank in zip(names, ranks, strict=True)
    ]


def shorten_labels(labels: Sequence[str], longest: int) -> list[str]:
    """Shorten the names of labels apart, and keep the ranks after them whole.

    Parameters
    ----------
    labels : sequence of str
        Names, or names with ranks as of :func:`rank_labels`.
    longest : int
        Cells that are kept at most of each.

    Returns
    -------
    list of str

    Examples
    --------
    >>> shorten_labels(["lab/model-07-instruct  1", "lab/model-12-instruct  2"], 14)
    ['lab…07-inst  1', 'lab…12-inst  2']
    """
    parts = [label.rpartition("  ") for label in labels]
    if not all(gap for _, gap, _ in parts):
        return shorten_apart(labels, longest)
    ends = [gap + rank for _, gap, rank in parts]
    names = shorten_apart([name for name, _, _ in parts], max(longest - max(map(len, ends)), 1))
    return [name + end for name, end in zip(names, ends, strict=True)]


def left_to_right(name: str) -> str:
    """Isolate a name, so that text after a name written from right to left keeps its place."""
    if any(unicodedata.bidirectional(each) in ("R", "AL") for each in name):
        return f"{LEFT_TO_RIGHT}{name}{LEFT_TO_RIGHT}"
    return name


def spread_apart(positions: ArrayLike, gap: float) -> NDArray[np.float64]:
    """Move positions as little as possible until neighbours are a gap apart.

    It is the least-squares solution: positions closer than the gap form a block around their mean.

    Parameters
    ----------
    positions : array_like of shape (n,)
        Ideal positions of labels.
    gap : float
        Least distance.

    Returns
    -------
    numpy.ndarray of shape (n,)
        In the same order.

    Examples
    --------
    >>> spread_apart([0.0, 0.0, 5.0], 1.0)
    array([-0.5,  0.5,  5. ])
    """
    wanted = np.asarray(positions, dtype=np.float64)
    order = np.argsort(wanted, kind="stable")
    # After subtracting the gaps this is isotonic regression: pool adjacent violators.
    offsets = gap * np.arange(len(wanted))
    means: list[float] = []
    sizes: list[int] = []
    for value in wanted[order] - offsets:
        means.append(float(value))
        sizes.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            mean, size = means.pop(), sizes.pop()
            means[-1] = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            sizes[-1] += size
    result = np.empty_like(wanted)
    result[order] = np.repeat(means, sizes) + offsets
    return result
