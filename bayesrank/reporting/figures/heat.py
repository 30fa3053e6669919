"""What the heat maps have in common: a coloured cell per pair, with its number where it fits."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.reporting.figures.canvas import take_axes
from bayesrank.reporting.figures.palette import INK
from bayesrank.results.numbers import probability_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

# Beyond this many rows, numbers in the cells are too small to read.
_MOST_NUMBERS = 12
# Beyond this many, cells are as small as labels allow, so that sixty fit on a page.
_MOST_WIDE = 40
# Points of the labels; the closest rows are 0.165 inches, 11.9 points, apart.
_TEXT = 8.0


def draw_cells(
    values: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    ax: "Axes | None",
    colours: "Colormap",
    limits: tuple[float, float],
    colour_label: str,
    numbers: NDArray[np.bool_],
    number_text: Callable[[float], str] = probability_text,
) -> "tuple[Figure, Axes]":
    """Draw a matrix as coloured cells with labels on the left and on top.

    Parameters
    ----------
    values : numpy.ndarray of shape (row, column)
        What the colours show.
    rows, columns : sequence of str
        Labels.
    ax : matplotlib.axes.Axes or None
        Where to draw; a new figure by default.
    colours : matplotlib.colors.Colormap
        Strong at its ends, so that numbers there are white where their cell is opaque.
    limits : tuple of float
        Values at the ends of the map.
    colour_label : str
        What the colour bar says.
    numbers : numpy.ndarray of bool and shape (row, column)
        In which cells the number stands, if there are few enough.
    number_text : callable, optional
        How it is written; as a probability by default.

    Returns
    -------
    matplotlib.figure.Figure
    matplotlib.axes.Axes
    """
    few = max(values.shape) <= _MOST_NUMBERS
    cell = 0.45 if few else 0.19 if max(values.shape) <= _MOST_WIDE else 0.165
    height, width = cell * values.shape[0], cell * values.shape[1]
    figure, axes = take_axes(
        ax,
        max(width, 2.0) + 1.6 + 0.075 * max(map(len, rows)),
        max(height, 1.0) + 1.2,
        layout="compressed",
    )
    image = axes.imshow(values, cmap=colours, vmin=limits[0], vmax=limits[1], interpolation="none")
    if few:
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
    axes.set_yticks(range(len(rows)), rows, fontsize=_TEXT)
    # Two digits beside two digits touch sooner than rows do.
    axes.set_xticks(range(len(columns)), columns, fontsize=_TEXT if few else _TEXT - 1)
    axes.xaxis.label.set_fontsize(_TEXT + 1)
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, fraction=0.05, shrink=1.0 if few else 0.5)
    bar.set_label(colour_label, size=_TEXT + 1)
    bar.ax.tick_params(labelsize=_TEXT)
    # Lines between the strips of a transparent bar would show as stripes.
    if bar.solids is not None:
        bar.solids.set(edgecolor="face", linewidth=0.0, rasterized=True)
    bar.outline.set_visible(False)
    return figure, axes
