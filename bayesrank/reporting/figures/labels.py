"""What stands beside rows and points: systems in order, their names, and names kept apart."""

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.layout import shorten_apart
from bayesrank.results.stored import ranking_of

if TYPE_CHECKING:
    import xarray as xr

_LEFT_TO_RIGHT = "\N{LEFT-TO-RIGHT MARK}"
_FIGURE_SPACE = "\N{FIGURE SPACE}"  # as wide as a digit


def by_rank(result: "xr.DataTree", needs: Sequence[str] = (), what: str = "") -> "xr.Dataset":
    """Return the group ``ranking`` with systems and opponents from best to worst.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.
    needs : sequence of str
        Variables without which there is nothing to draw.
    what : str
        What the figure shows, for the error.

    Returns
    -------
    xarray.Dataset

    Raises
    ------
    ValueError
        If a variable is absent, since the result has no draws.
    """
    ranking = ranking_of(result)
    if any(name not in ranking for name in needs):
        raise ValueError(f"result must have draws to show {what}; got only a point estimate")
    # Stable, so that tied systems keep the order that the leaderboard shows them in.
    order = np.argsort(ranking["rank"].values, kind="stable")
    return ranking.isel({dim: order for dim in ("system", "opponent") if dim in ranking.dims})


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
        f"{_left_to_right(name)}  {rank.rjust(width, _FIGURE_SPACE)}"
        for name, rank in zip(names, ranks, strict=True)
    ]


def _left_to_right(name: str) -> str:
    """Keep what follows a name in a script from right to left behind it."""
    if any(unicodedata.bidirectional(each) in ("R", "AL") for each in name):
        return f"{_LEFT_TO_RIGHT}{name}{_LEFT_TO_RIGHT}"
    return name


def spread_apart(positions: ArrayLike, gap: float) -> NDArray[np.float64]:
    """Move positions as little as possible until neighbours are a gap apart.

    The least squares solution: what is closer than the gap forms a block around its mean.

    Parameters
    ----------
    positions : array_like of shape (n,)
        Where labels belong.
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
    # With the gaps taken out, what remains is isotonic regression: pool adjacent violators.
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
