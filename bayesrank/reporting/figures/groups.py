"""Groups of systems that are not resolved from each other."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.transforms import ScaledTranslation

from bayesrank.reporting.figures.canvas import label_rows, row_size, take_axes
from bayesrank.reporting.figures.finish import finish, room
from bayesrank.reporting.figures.labels import by_rank, rank_labels
from bayesrank.reporting.figures.palette import BLUE, MUTED, ORANGE
from bayesrank.results.numbers import split_letters
from bayesrank.results.summary import borders

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Between the lines of two groups.
_COLUMN_INCHES = 0.18
_SHARE = 0.25  # of the room, that all lines take at most
_LETTER_INCHES = 0.15
_PLOT_INCHES = 5.0


def plot_groups(
    result: "xr.DataTree",
    *,
    systems: Sequence[str] | None = None,
    top: int | None = None,
    ci_prob: float | None = None,
    figsize: tuple[float, float] | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw groups of systems that are not resolved: a line per group, beside the scores.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned, with draws.
    systems : sequence of str, optional
        Systems to show; all by default.
    top : int, optional
        Number of best systems to show.
    ci_prob : float, optional
        Joint probability of all groups; that of the result by default.
    figsize : (float, float), optional
        Inches of a new figure; by default what its rows need.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        A row per system, best on top, with its score. On the right each letter is a group: the
        dots of its line are systems whose order is not resolved, by joint decisions for all pairs.
        A line across is a border: every system above it is resolved from every system below.

    Raises
    ------
    ValueError
        If the result has no draws, or a system is unknown.

    Examples
    --------
    >>> from bayesrank import rank
    >>> from bayesrank.reporting.figures import plot_groups
    >>> result = rank([[[1, 1, 1, 1]], [[0, 0, 0, 0]]], "avg", random_seed=1)
    >>> [text.get_text() for text in plot_groups(result).axes[0].texts]
    ['a', 'b']
    """
    ranking = by_rank(
        result, ["resolved", "group"], "groups", systems=systems, top=top, ci_prob=ci_prob
    )
    labels = rank_labels(ranking)
    members: dict[str, list[int]] = {}
    for row, letters in enumerate(ranking["group"].values):
        for letter, _ in split_letters(str(letters)):
            members.setdefault(letter, []).append(row)
    width, height = row_size(labels, plot_width=_PLOT_INCHES + _COLUMN_INCHES * len(members))
    figure, axes = take_axes(ax, width, height, figsize)
    label_rows(axes, labels)
    axes.plot(
        ranking["score"], np.arange(len(labels)), "o", color=BLUE, markersize=4.0, label="score"
    )
    apart = _COLUMN_INCHES
    if ax is not None or figsize is not None:
        apart = min(apart, _SHARE * room(axes)[0] / len(members))
    every = math.ceil(_LETTER_INCHES / apart)
    for column, (letter, rows) in enumerate(members.items(), start=1):
        # Inches right of the axes, for any width of the axes.
        shift = ScaledTranslation(column * apart, 0.0, figure.dpi_scale_trans)
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
            label="not resolved from one another" if column == 1 else None,
        )
        if column % every == 1 or every == 1:
            axes.text(1.0, -0.95, letter, transform=beside, color=MUTED, fontsize=8, ha="center")
    _draw_borders(axes, np.flatnonzero(borders(ranking["resolved"].values)), ranking)
    axes.set_xlabel(f"score ({result.attrs['method']})")
    return finish(axes)


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
