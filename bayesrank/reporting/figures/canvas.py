"""Figures without a window, the axes on them, and files of them."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bayesrank.reporting.figures.palette import BAND, GRID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_DPI = 150
_ROW_INCHES = 0.24
_CHARACTER_INCHES = 0.075


class Drawing(Figure):
    """A Matplotlib figure that notebooks show although pyplot, which they watch, made none."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_DPI, bbox_inches="tight")
        return buffer.getvalue()


def take_axes(
    ax: "Axes | None", width: float, height: float, *, layout: str = "constrained"
) -> "tuple[Figure, Axes]":
    """Return axes to draw on: those of the caller, or new ones on a figure of the stated size.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        What the caller of a plot passed.
    width, height : float
        Inches of a new figure.
    layout : str, default "constrained"
        Layout engine of a new figure.

    Returns
    -------
    matplotlib.figure.Figure
    matplotlib.axes.Axes
    """
    if ax is not None:
        return cast("Figure", ax.get_figure(root=True)), ax
    # pyplot would choose a window system and keep the figure alive.
    figure = Drawing(figsize=(width, height), layout=cast("Any", layout))
    return figure, figure.subplots()


def row_size(labels: "Sequence[str]", *, plot_width: float = 5.0) -> tuple[float, float]:
    """Return the inches that a figure with a labelled row per system needs.

    Parameters
    ----------
    labels : sequence of str
        One per row.
    plot_width : float, default 5
        Inches beside the labels.

    Returns
    -------
    width, height : float
    """
    width = plot_width + _CHARACTER_INCHES * max(map(len, labels))
    return width, 1.3 + _ROW_INCHES * len(labels)


def label_rows(axes: "Axes", labels: "Sequence[str]") -> None:
    """Label a row per system, the first on top, with a fine line behind each.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Rows are at 0, 1, ...
    labels : sequence of str
        One per row.
    """
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def count_along(axis: "Axis") -> None:
    """Put ticks at whole numbers alone.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        What counts something.
    """
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def shade_rows(axes: "Axes", groups: "Sequence[int]") -> None:
    """Shade every other group of neighbouring rows.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Rows are at 0, 1, ...
    groups : sequence of int
        Group of each row, 1 first and increasing.
    """
    for row, group in enumerate(groups):
        if group % 2:
            axes.axhspan(row - 0.5, row + 0.5, color=BAND, linewidth=0, zorder=0)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure to a file, whole or not at all.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What a plot of this package returned.
    path : path-like
        Where to; its suffix is the format (.png, .pdf, .svg).

    Returns
    -------
    pathlib.Path
        Where it is.

    Raises
    ------
    ValueError
        If there is no format of that name.
    """
    target = Path(path)
    partial = target.with_name(f".{target.stem}.partial{target.suffix}")
    try:
        figure.savefig(partial, dpi=_DPI, bbox_inches="tight")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target
