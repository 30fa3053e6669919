"""Figures without a window, the axes on them, and files of them."""

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.cells import cell_len

from bayesrank.reporting.figures.finish import fitting, room, suited
from bayesrank.reporting.figures.labels import shorten_labels
from bayesrank.reporting.figures.palette import BAND, GRID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis, XAxis, YAxis
    from numpy.typing import ArrayLike

_DPI = 150
_ROW_INCHES = 0.24
_CHARACTER_INCHES = 0.075
# Inches above and below rows; largest share of the width and fewest characters of labels.
_AROUND_INCHES = 1.2
_LABEL_SHARE, _LEAST_CHARACTERS = 0.48, 8
_LEAST_TAU = 0.1


class Drawing(Figure):
    """A Matplotlib figure that notebooks show although pyplot did not make it."""

    lays_itself_out = True
    grows = True  # if the caller did not choose its size

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_DPI, bbox_inches="tight")
        return buffer.getvalue()


def take_axes(
    ax: "Axes | None",
    width: float,
    height: float,
    figsize: tuple[float, float] | None = None,
    *,
    layout: str = "constrained",
) -> "tuple[Figure, Axes]":
    """Return axes to draw on: those of the caller, or new ones on a figure of the stated inches.

    `figsize` is a size that the caller chose instead.
    """
    if ax is not None:
        return cast("Figure", ax.get_figure(root=True)), ax
    # pyplot would choose a window system and keep the figure alive.
    size = (width, height) if figsize is None else figsize
    figure = Drawing(figsize=size, layout=cast("Any", layout))
    figure.grows = figsize is None
    return figure, figure.subplots()


def row_size(labels: "Sequence[str]", *, plot_width: float = 5.0) -> tuple[float, float]:
    """Return width and height, in inches, that a figure with a labelled row per system needs."""
    width = plot_width + _CHARACTER_INCHES * max(map(cell_len, labels))
    return width, 1.3 + _ROW_INCHES * len(labels)


def label_rows(axes: "Axes", labels: "Sequence[str]") -> None:
    """Label a row per system, at 0, 1, ..., the first on top, with a fine line behind each.

    If there is no room for all labels in a readable size, only every k-th row has a label. Labels
    that are wider than half of the width are shortened.
    """
    size, every = fitting(axes, len(labels), _AROUND_INCHES)
    longest = int(_LABEL_SHARE * room(axes)[0] / (_CHARACTER_INCHES * size / 10.0))
    shown = shorten_labels(labels, max(longest, _LEAST_CHARACTERS))[::every]
    axes.set_yticks(range(0, len(labels), every), shown)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, labelsize=size)
    axes.grid(axis="y", color=suited(axes, GRID), linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def rank_along(axes: "Axes", *ranks: "ArrayLike") -> None:
    """Make the horizontal axis an axis of ranks, with room for all drawn ranks."""
    every = np.concatenate([np.ravel(np.asarray(each, dtype=np.float64)) for each in ranks])
    seen = every[np.isfinite(every)]
    if len(seen):
        axes.set_xlim(seen.min() - 0.6, seen.max() + 0.6)
    count_along(axes.xaxis)
    axes.set_xlabel("rank")


def tau_along(axis: "XAxis | YAxis", values: "ArrayLike") -> None:
    """Keep the range of an axis of correlations within [-1, 1] and wider than one value."""
    low, high = axis.get_view_interval()
    seen = np.asarray(values, dtype=np.float64)
    if np.isfinite(seen).any() and high - low < _LEAST_TAU:
        low = min(low, high - _LEAST_TAU)
    axis.axes.set(**{f"{axis.axis_name}lim": (max(low, -1.02), min(high, 1.02))})


def count_along(axis: "Axis") -> None:
    """Put ticks only at whole numbers."""
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def shade_rows(axes: "Axes", groups: "Sequence[int]") -> None:
    """Shade every other group of neighbouring rows, whose numbers increase from 1."""
    for row, group in enumerate(groups):
        if group % 2:
            axes.axhspan(row - 0.5, row + 0.5, color=BAND, linewidth=0, zorder=0)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure to a file atomically.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What a plot of this package returned.
    path : path-like
        Path of the file; its suffix is the format (.png, .pdf, .svg).

    Returns
    -------
    pathlib.Path
        The path.

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
