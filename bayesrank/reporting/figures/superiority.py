"""Pairwise comparisons as a heat map."""

from typing import TYPE_CHECKING

import numpy as np

from bayesrank.reporting.figures.heat import draw_cells
from bayesrank.reporting.figures.labels import by_rank, rank_labels
from bayesrank.reporting.figures.palette import diverging

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_superiority(result: "xr.DataTree", *, ax: "Axes | None" = None) -> "Figure":
    """Draw the probability that one system is better than another, systems sorted by rank.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned, with draws.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        A heat map: the row's system against the column's. One half, where nothing is known, has
        no colour; the columns carry the ranks that the rows show with their names.

    Raises
    ------
    ValueError
        If the result has no draws, hence no probabilities.

    Examples
    --------
    >>> from bayesrank import rank
    >>> from bayesrank.reporting.figures import plot_superiority
    >>> result = rank([[[1, 1], [0, 1]], [[0, 1], [0, 0]]], "bayes", random_seed=1)
    >>> figure = plot_superiority(result)
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['system 1  1', 'system 2  2']
    """
    ranking = by_rank(result, ["superiority"], "superiority")
    labels = rank_labels(ranking)
    figure, axes = draw_cells(
        ranking["superiority"].transpose("system", "opponent").values,
        labels,
        [f"{rank:g}" for rank in ranking["rank"].values],
        ax=ax,
        colours=diverging(),
        limits=(0.0, 1.0),
        colour_label="Pr(row is better than column)",
        numbers=~np.eye(len(labels), dtype=bool),
    )
    axes.set_xlabel("opponent (by rank)")
    return figure
