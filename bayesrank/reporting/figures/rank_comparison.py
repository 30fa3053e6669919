"""Two rankings against each other."""

from typing import TYPE_CHECKING

import numpy as np

from bayesrank.layout import shorten
from bayesrank.reporting.figures.canvas import count_along, label_rows, row_size, take_axes
from bayesrank.reporting.figures.palette import BLUE, INK, MUTED, ORANGE
from bayesrank.results.aligned import align

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bayesrank.results.aligned import Ranking


def plot_rank_comparison(
    rankings: "Mapping[str, Ranking]", *, ax: "Axes | None" = None
) -> "Figure":
    """Draw by how much each system rises or falls from one ranking to another.

    Parameters
    ----------
    rankings : mapping of str to xarray.DataTree, xarray.DataArray or pandas.Series
        Two results of the same systems, or ranks by system; such as that of greedy decoding and
        that of sampling.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        A row per system in the order of the first ranking: its place there as a ring, its place in
        the second as a dot, and the way between, blue upwards and orange downwards.

    Raises
    ------
    ValueError
        If there are not two rankings, or their systems differ.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesrank.reporting.figures import plot_rank_comparison
    >>> greedy, sampled = pd.Series({"a": 1, "b": 2}), pd.Series({"a": 2, "b": 1})
    >>> figure = plot_rank_comparison({"greedy": greedy, "sampled": sampled})
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['a  -1', 'b  +1']
    """
    if len(rankings) != 2:
        raise ValueError(f"rankings must be two; got {len(rankings)}")
    names, systems, (before, after) = align(rankings)
    risen = before - after
    labels = [
        f"{shorten(system)}  {'=' if rise == 0 else f'{rise:+g}'}"
        for system, rise in zip(systems, risen, strict=True)
    ]
    rows = np.arange(len(systems))
    figure, axes = take_axes(ax, *row_size(labels))
    label_rows(axes, labels)
    for colour, chosen, text in (
        (BLUE, risen > 0, "rises"),
        (ORANGE, risen < 0, "falls"),
        (MUTED, risen == 0, "stays"),
    ):
        if chosen.any():
            ends = before[chosen], after[chosen]
            axes.hlines(rows[chosen], *ends, color=colour, linewidth=2.0)
            axes.plot(ends[1], rows[chosen], "o", color=colour, markersize=5.0, label=text)
    axes.plot(
        *(before, rows),
        "o",
        markerfacecolor="none",
        color=INK,
        markersize=7.0,
        markeredgewidth=0.8,
        label=names[0],
    )
    axes.set_xlim(0.4, len(systems) + 0.6)
    count_along(axes.xaxis)
    axes.set_xlabel(f"rank: {names[0]} (ring), {names[1]} (dot)")
    if ax is None:
        figure.legend(loc="outside upper right", ncols=4, frameon=False, fontsize="small")
    else:
        axes.legend(frameon=False, fontsize="small")
    return figure
