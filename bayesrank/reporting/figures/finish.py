"""Last steps of every figure: a legend, colours for dark backgrounds, and room for labels."""

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from matplotlib.colors import to_rgb, to_rgba_array
from matplotlib.gridspec import GridSpec
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import Bbox, ScaledTranslation
from rich.cells import cell_len

from bayesrank.layout import wrap_words
from bayesrank.reporting.figures.palette import DARK, MUTED, is_dark

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches between the axes and a legend above or below, for a title or labels.
_TITLE_INCHES, _LABEL_INCHES = 0.3, 0.5
_ENTRY_INCHES = 0.65  # of a mark in a legend and the gap after it
_LETTER_INCHES = 0.068
_LINE_INCHES = 0.19
# Largest shares of the width: of a legend beside the axes, and of a label of an axis.
_BESIDE, _WRAPPED = 0.45, 0.6
_EDGE = 0.01  # of a figure that stays empty
_COLOURS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")

Place = Literal["above", "below", "beside"]


def finish(
    axes: "Axes",
    *,
    legend: Place | None = "above",
    title: str | None = None,
    empty: str = "No value can be drawn.",
) -> "Figure":
    """Finish a figure: add the legend, adapt colours to the background, and fit labels.

    A legend is beside only in figures of this package; `title` is that of the legend, and `empty`
    the text of axes without any mark.
    """
    if not np.isfinite(axes.dataLim.get_points()).all():
        lines = "\n".join(wrap_words(empty, 44))
        axes.text(0.5, 0.5, lines, transform=axes.transAxes, ha="center", va="center", color=MUTED)
    _wrap_labels(axes)
    if legend is not None and axes.get_legend_handles_labels()[0]:
        _name_marks(axes, legend, title)
    show_as_written(axes)
    _suit_background(axes)
    _keep_in_place(axes)
    figure: Any = axes.get_figure(root=True)
    return figure


def is_ours(axes: "Axes") -> bool:
    """Return whether axes are on a figure of this package, which has a layout engine."""
    return getattr(axes.get_figure(root=True), "lays_itself_out", False)


def room(axes: "Axes") -> tuple[float, float]:
    """Return the inches that axes with their labels may fill."""
    figure: Any = axes.get_figure(root=True)
    size = figure.get_size_inches()
    share = Bbox.unit() if is_ours(axes) else _region(axes)
    return float(size[0] * share.width), float(size[1] * share.height)


def suited(axes: "Axes", colour: str) -> str:
    """Return a colour, or its replacement on a dark background."""
    return DARK.get(colour, colour) if _is_dark(axes) else colour


def show_as_written(axes: "Axes") -> None:
    """Keep names beside rows and in legends from being formulas, which dollar signs start."""
    named = list(legend.get_texts()) if (legend := axes.get_legend()) else []
    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_locator(), FixedLocator):
            named += axis.get_ticklabels()
    for text in named:
        text.set_parse_math(False)


def _name_marks(axes: "Axes", place: Place, title: str | None) -> None:
    """Put a legend beside the marks, never on them."""
    figure: Any = axes.get_figure(root=True)
    width = room(axes)[0]
    handles, names = axes.get_legend_handles_labels()
    most = int((width - _ENTRY_INCHES) / _LETTER_INCHES)
    names = ["\n".join(wrap_words(name, most)) if cell_len(name) > most else name for name in names]
    widths = [_ENTRY_INCHES + _LETTER_INCHES * cell_len(name) for name in names]
    look: Any = {"frameon": False, "fontsize": "small", "title": title, "borderaxespad": 0.2}
    beside = max(*widths, _LETTER_INCHES * 1.2 * cell_len(title or ""))
    if place == "beside" and is_ours(axes) and beside < _BESIDE * width:
        axes.legend(handles, names, loc="upper left", bbox_to_anchor=(1.02, 1.0), **look)
        return
    columns = len(names) if sum(widths) < width else max(1, int(width / max(widths)))
    look["ncols"] = min(len(names), columns)
    if getattr(figure, "grows", False):
        n_lines = -(-len(names) // columns) + (title is not None) - (place == "above")
        figure.set_size_inches(width, figure.get_figheight() + _LINE_INCHES * n_lines)
    above = place != "below"
    inches = -_LABEL_INCHES * bool(axes.get_xlabel()) - _LINE_INCHES * axes.get_xlabel().count("\n")
    if above:
        inches = _TITLE_INCHES * (1 + axes.get_title().count("\n")) if axes.get_title() else 0.05
        if axes.texts or axes.xaxis.get_ticks_position() == "top":
            inches = max(inches, 0.2)
    shift = ScaledTranslation(0.0, inches, figure.dpi_scale_trans)
    axes.legend(
        handles,
        names,
        loc="lower right" if above else "upper right",
        bbox_to_anchor=(1.0, 1.0 if above else 0.0),
        bbox_transform=axes.transAxes + shift,
        **look,
    )


def _wrap_labels(axes: "Axes") -> None:
    """Break the title and the labels of axes that are wider than their room."""
    across, up = room(axes)
    for text, inches in ((axes.title, across), (axes.xaxis.label, across), (axes.yaxis.label, up)):
        most = int(_WRAPPED * inches * 72.0 / (0.55 * float(text.get_fontsize())))
        lines = [wrap_words(line, most) for line in text.get_text().split("\n")]
        text.set_text("\n".join(each for line in lines for each in line))


def _is_dark(axes: "Axes") -> bool:
    figure: Any = axes.get_figure(root=True)
    return is_dark(axes.get_facecolor(), figure.get_facecolor())


def _suit_background(axes: "Axes") -> None:
    """Replace the colours of all marks by colours that are visible on a dark background."""
    if not _is_dark(axes):
        return
    exchanged = {tuple(np.round(to_rgb(old), 3)): to_rgb(new) for old, new in DARK.items()}
    panels = (axes, *axes.child_axes)
    behind = {*panels, *(each.patch for each in panels)}
    for artist in axes.findobj(lambda each: each not in behind):
        for name in _COLOURS:
            get, put = (getattr(artist, f"{verb}_{name}", None) for verb in ("get", "set"))
            if get is None or put is None or (isinstance(get(), str) and get() == "none"):
                continue
            colours = to_rgba_array(get())
            for row in colours:
                row[:3] = exchanged.get(tuple(np.round(row[:3], 3)), row[:3])
            put(colours if np.ndim(get()) == 2 else tuple(colours[0]))


def _keep_in_place(axes: "Axes") -> None:
    """Shrink axes of a figure without a layout engine until their labels stay within their cell."""
    figure, part = axes.get_figure(root=True), axes.get_figure(root=False)
    if figure is None or part is None or figure.get_layout_engine() is not None:
        return
    if axes.get_subplotspec() is None:
        return
    region = _region(axes)
    for _ in range(2):  # ticks may change with the size
        axes.apply_aspect()
        now = axes.get_position()
        box = axes.get_tightbbox()
        if box is None:
            return
        outer = box.transformed(part.transSubfigure.inverted())
        least, most = region.get_points()
        low = least + np.maximum(now.get_points()[0] - outer.get_points()[0], 0.0)
        high = most - np.maximum(outer.get_points()[1] - now.get_points()[1], 0.0)
        # Never without a width.
        axes.set_position(Bbox([low, np.maximum(high, low + 0.2 * (most - least))]))


def _region(axes: "Axes") -> Bbox:
    """Return the part of a figure that axes may fill with their labels.

    Their cell, most of the gap on its left, half of that below, and the margins of the figure.
    """
    spec = axes.get_subplotspec()
    part = axes.get_figure(root=False)
    if spec is None or part is None:
        return axes.get_position()
    grid = spec.get_gridspec()
    bottoms, tops, lefts, rights = grid.get_grid_positions(part)  # type: ignore[arg-type]
    rows, columns = spec.rowspan, spec.colspan
    outermost = isinstance(grid, GridSpec)

    def gap(ends: Any, starts: Any, place: int) -> float:
        return abs(float(starts[place] - ends[place - 1]))

    left, right = float(lefts[columns.start]), float(rights[columns.stop - 1])
    bottom, top = float(bottoms[rows.stop - 1]), float(tops[rows.start])
    if columns.start:
        left -= 0.9 * gap(rights, lefts, columns.start)
    elif outermost:
        left = _EDGE
    if columns.stop == grid.ncols and outermost:
        right = 1.0 - _EDGE
    if rows.stop < grid.nrows:
        bottom -= 0.5 * gap(bottoms, tops, rows.stop)
    elif outermost:
        bottom = _EDGE
    if rows.start:
        top += 0.4 * gap(bottoms, tops, rows.start)
    elif outermost:
        top = 1.0 - _EDGE
    return Bbox([[left, bottom], [right, top]])


def fitting(axes: "Axes", n_rows: int, around: float) -> tuple[float, int]:
    """Return the size in points of text that fits into rows, and k if only every k-th has a label.

    `around` are inches above and below the rows.
    """
    row = max(room(axes)[1] - around, 0.5) / max(n_rows, 1)
    size = 72.0 * row / _LINE
    return min(_TEXT, max(size, _LEAST_TEXT)), max(1, math.ceil(_LEAST_TEXT / size))


# Points of labels, at most and at least, and the height of a line in sizes of its text.
_TEXT, _LEAST_TEXT, _LINE = 10.0, 6.0, 1.25
