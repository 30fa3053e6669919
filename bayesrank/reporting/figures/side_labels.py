"""Names beside the ends of lines, moved apart where they would overlap."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from bayesrank.layout import shorten
from bayesrank.reporting.figures.labels import spread_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST_NAME = 32
# Where joints end and names begin, as shares of the width of the axes.
_JOINT, _NAME = 0.04, 0.046


def name_ends(
    axes: "Axes",
    names: Sequence[object],
    heights: ArrayLike,
    ranks: ArrayLike | None = None,
    *,
    gap: float,
    colours: Sequence[str],
    side: Literal["left", "right"] = "right",
) -> None:
    """Write a name beside the end of each line, joined to it by a fine line.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Lines end at its left and right edges.
    names : sequence
        One per line.
    heights : array_like of shape (line,)
        Where the lines end.
    ranks : array_like of shape (line,), optional
        Written between the ends and the names.
    gap : float
        Least distance of names, in units of the vertical axis.
    colours : sequence of str
        Colours of the fine lines.
    side : {"left", "right"}, default "right"
        At which edge.
    """
    ends = np.asarray(heights, dtype=np.float64)
    edge, sign = (1.0, 1.0) if side == "right" else (0.0, -1.0)
    place = axes.get_yaxis_transform()
    texts = [shorten(name, LONGEST_NAME) for name in names]
    if ranks is not None:
        numbers = [f"{rank:g}" for rank in np.asarray(ranks)]
        pairs = zip(texts, numbers, strict=True)
        texts = [f"{n}  {text}" if side == "right" else f"{text}  {n}" for text, n in pairs]
    for text, end, spot, colour in zip(texts, ends, spread_apart(ends, gap), colours, strict=True):
        axes.plot(
            [edge, edge + sign * _JOINT],
            [end, spot],
            color=colour,
            linewidth=0.6,
            transform=place,
            clip_on=False,
        )
        axes.text(
            edge + sign * _NAME,
            spot,
            text,
            transform=place,
            fontsize=8,
            ha="left" if side == "right" else "right",
            va="center",
        )
