"""Groups of systems that are not told apart."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.transforms import ScaledTranslation

from bayesrank.reporting.figures.canvas import label_rows, row_size, take_axes
from bayesrank.reporting.figures.labels import by_rank, rank_labels
from bayesrank.reporting.figures.palette import BLUE, MUTED, ORANGE
from bayesrank.results.groups import borders, split_letters

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Between the lines of two groups.
_COLUMN_INCHES = 0.18
_PLOT_INCHES = 5.0


def plot_groups(result: "xr.DataTree", *, ax: "Axes | None" = None) -> "Figure":
    """Draw which systems are not told apart: a line per group, beside the scores.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned, with draws.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        A row per system, best on top, with its score. On the right each letter is a group: the
        dots of its line are systems whose order is not resolved, all pairs decided at once. A line
        across is a border: every system above it is resolved from every one below.

    Raises
    ------
    ValueError
        If the result has no draws.

    Examples
    --------
    >>> from bayesrank import rank
    >>> from bayesrank.reporting.figures import plot_groups
    >>> result = rank([[[1, 1, 1, 1]], [[0, 0, 0, 0]]], "avg", random_seed=1)
    >>> [text.get_text() for text in plot_groups(result).axes[0].texts]
    ['a', 'b']
    """
    ranking = by_rank(result, ["resolved", "group"], "groups")
    labels = rank_labels(ranking)
    members: dict[str, list[int]] = {}
    for row, letters in enumerate(ranking["group"].values):
        for letter, _ in split_letters(str(letters)):
            members.setdefault(letter, []).append(row)
    width, height = row_size(labels, plot_width=_PLOT_INCHES + _COLUMN_INCHES * len(members))
    figure, axes = take_axes(ax, width, height)
    label_rows(axes, labels)
    axes.plot(
        ranking["score"], np.arange(len(labels)), "o", color=BLUE, markersize=4.0, label="score"
    )
    for column, (letter, rows) in enumerate(members.items(), start=1):
        # Inches right of the axes, however wide these are.
        shift = ScaledTranslation(column * _COLUMN_INCHES, 0.0, figure.dpi_scale_trans)
        beside = axes.get_yaxis_transform() + shift
        axes.plot(
            np.ones(len(rows)),
            rows,
            "o-",
            color=MUTED,
            markersize=3.0,
            linewidth=1.2,
            transform=beside,
            clip_on=False,
        )
        axes.text(1.0, -0.95, letter, transform=beside, color=MUTED, fontsize=8, ha="center")
    _draw_borders(axes, np.flatnonzero(borders(ranking["resolved"].values)), ranking)
    axes.set_xlabel(f"score ({result.attrs['method']})")
    if ax is None:
        figure.legend(loc="outside upper right", ncols=2, frameon=False, fontsize="small")
    else:
        axes.legend(frameon=False, fontsize="small")
    return figure


def _draw_borders(axes: "Axes", rows: np.ndarray, ranking: "xr.Dataset") -> None:
    """Draw a line below each of some rows."""
    axes.hlines(
        rows + 0.5,
        0.0,
        1.0,
        transform=axes.get_yaxis_transform(),
        color=ORANGE,
        linewidth=1.2,
        label=f"all above resolved from all below ({100 * ranking.attrs['ci_prob']:g} %)",
    )
