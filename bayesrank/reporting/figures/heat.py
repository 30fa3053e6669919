"""Common parts of the heat maps: a coloured cell per pair, with its number if it fits."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from bayesrank.reporting.figures.canvas import take_axes
from bayesrank.reporting.figures.finish import fitting, room
from bayesrank.reporting.figures.labels import shorten_labels
from bayesrank.reporting.figures.palette import INK
from bayesrank.results.numbers import probability_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage

# With more rows, numbers in the cells are too small to read.
_MOST_NUMBERS = 12
# With more rows, cells are as small as labels allow, so that sixty fit on a page.
_MOST_WIDE = 40
# Points of the labels; the closest rows are 0.165 inches, 11.9 points, apart.
_TEXT = 8.0
_CHARACTER_INCHES = 0.063  # of such text
_LABEL_SHARE, _LEAST_CHARACTERS = 0.42, 8
_NUMBER_INCHES = 0.27  # of the smallest cell that has room for its number
# Beside the cells, of the colour bar; above and below them.
_BAR_INCHES, _AROUND_INCHES = 0.95, 1.0
_MOST_ABREAST = 80


def draw_cells(
    values: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    ax: "Axes | None",
    figsize: tuple[float, float] | None = None,
    colours: "Colormap",
    limits: tuple[float, float],
    colour_label: str,
    numbers: NDArray[np.bool_],
    number_text: Callable[[float], str] = probability_text,
) -> "Axes":
    """Draw a matrix as coloured cells with labels on the left and on top.

    Parameters
    ----------
    values : numpy.ndarray of shape (row, column)
        Values of the colours.
    rows, columns : sequence of str
        Labels.
    ax : matplotlib.axes.Axes or None
        Axes to draw on; a new figure by default.
    figsize : (float, float), optional
        Inches of a new figure, which its cells fill; by default the size for square cells.
    colours : matplotlib.colors.Colormap
        Strong at its ends, so that numbers there are white where their cell is opaque.
    limits : tuple of float
        Values at the ends of the map.
    colour_label : str
        Label of the colour bar.
    numbers : numpy.ndarray of bool and shape (row, column)
        Cells that show their number, if there are few enough.
    number_text : callable, optional
        Format of a number; that of a probability by default.

    Returns
    -------
    matplotlib.axes.Axes
    """
    few = max(values.shape) <= _MOST_NUMBERS
    cell = 0.45 if few else 0.19 if max(values.shape) <= _MOST_WIDE else 0.165
    height, width = cell * values.shape[0], cell * min(values.shape[1], _MOST_ABREAST)
    names = _CHARACTER_INCHES * max(map(cell_len, rows))
    size = max(width, 2.0) + _BAR_INCHES + names, max(height, 1.0) + _AROUND_INCHES
    _, axes = take_axes(ax, *size, figsize, layout="compressed")
    width, height = room(axes)
    text, every = fitting(axes, len(rows), _AROUND_INCHES)
    text = min(text, _TEXT)
    longest = int(_LABEL_SHARE * width / (_CHARACTER_INCHES * text / _TEXT))
    shown = list(rows)
    if ax is not None or figsize is not None:
        shown = shorten_labels(rows, max(longest, _LEAST_CHARACTERS))
    inside = width - _BAR_INCHES - _CHARACTER_INCHES * text / _TEXT * max(map(cell_len, shown))
    across, down = inside / len(columns), (height - _AROUND_INCHES) / len(rows)
    image = axes.imshow(
        values,
        cmap=colours,
        vmin=limits[0],
        vmax=limits[1],
        interpolation="none",
        aspect="equal" if figsize is None else "auto",
    )
    if few and min(across, down) > _NUMBER_INCHES:
        opacity = image.to_rgba(values)[..., 3]
        for row, column in np.argwhere(numbers):
            axes.text(
                column,
                row,
                number_text(float(values[row, column])),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if opacity[row, column] > 0.8 else INK,
            )
    axes.set_yticks(range(0, len(rows), every), shown[::every], fontsize=text)
    # Neighbouring numbers of two digits touch before rows do.
    digits = _TEXT if few else _TEXT - 1
    beside = _CHARACTER_INCHES * (max(map(len, columns)) + 0.7)
    step = max(1, math.ceil(beside / max(min(across, down) if figsize is None else across, 0.01)))
    axes.set_xticks(range(0, len(columns), step), columns[::step], fontsize=digits)
    axes.xaxis.label.set_fontsize(_TEXT + 1)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.spines[:].set_visible(False)
    _explain_colours(axes, image, colour_label, 1.0 if few else 0.5)
    return axes


def _explain_colours(axes: "Axes", image: "AxesImage", label: str, share: float) -> None:
    """Put a colour bar beside the cells, without taking space from other axes."""
    figure: Any = axes.get_figure(root=True)
    width = room(axes)[0]
    place = axes.inset_axes((1.0 + 0.1 / width, (1.0 - share) / 2.0, 0.2 / width, share))
    bar = figure.colorbar(image, cax=place)
    bar.set_label(label, size=_TEXT + 1)
    bar.ax.tick_params(labelsize=_TEXT)
    # Lines between the strips of a transparent bar would show as stripes.
    if bar.solids is not None:
        bar.solids.set(edgecolor="face", linewidth=0.0, rasterized=True)
    bar.outline.set_visible(False)
