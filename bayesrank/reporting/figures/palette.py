"""Colours of all figures.

Colours with a meaning are from the Okabe-Ito palette, which colour-blind readers can distinguish.
Position, shape or text always show the same meaning. A page in a dark theme replaces
these colours by name, see :mod:`bayesrank.reporting.svg`.
"""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.colors import Colormap, LinearSegmentedColormap
    from matplotlib.typing import ColorType

BLUE = "#0072b2"
ORANGE = "#d55e00"
GREEN = "#009e73"
PURPLE = "#cc79a7"
AMBER = "#e69f00"
SKY = "#56b4e9"
PALE = "#a6d4f2"  # SKY half way to white: a band behind what is BLUE

INK = "#000000"
MUTED = "#6b6b6b"  # less important text and lines, with a contrast of 5 : 1 on white
GRID = "#ebebeb"
BAND = "#f1f4f8"  # shading behind rows

CYCLE = (BLUE, ORANGE, GREEN, PURPLE, AMBER, SKY)

# Shares of red, green and blue in the brightness of a colour.
_LUMINANCE = (0.2126, 0.7152, 0.0722)

# Their replacements on a dark background.
DARK = {
    BLUE: "#4aa8e0",
    ORANGE: "#f08a3c",
    GREEN: "#2fc79b",
    SKY: "#b5e3ff",
    PALE: "#1f4d6b",
    INK: "#ffffff",
    MUTED: "#a3abb4",
    GRID: "#2d333a",
    BAND: "#1e242a",
}


def diverging() -> "LinearSegmentedColormap":
    """Return a map from orange over transparent to blue, which shows on light and on dark.

    Orange is paler at its end, so that the two ends differ in grey.
    """
    from matplotlib.colors import LinearSegmentedColormap

    stops = [(ORANGE, 0.7), (ORANGE, 0.0), (BLUE, 0.0), (BLUE, 1.0)]
    return LinearSegmentedColormap.from_list(
        "diverging", list(zip((0.0, 0.5, 0.5, 1.0), map(_with_alpha, stops), strict=True))
    )


def sequential() -> "LinearSegmentedColormap":
    """Return a map from transparent to blue, which shows small values on dark as well."""
    from matplotlib.colors import LinearSegmentedColormap

    opacities = {0.0: 0.0, 0.1: 0.2, 0.5: 0.65, 1.0: 1.0}
    return LinearSegmentedColormap.from_list(
        "sequential", [(place, _with_alpha((BLUE, alpha))) for place, alpha in opacities.items()]
    )


def with_gaps(colours: "LinearSegmentedColormap") -> "Colormap":
    """Return a map in which what was not observed is grey."""
    return colours.with_extremes(bad=_with_alpha((MUTED, 0.35)))


def _with_alpha(colour: tuple[str, float]) -> tuple[float, float, float, float]:
    from matplotlib.colors import to_rgba

    return to_rgba(*colour)


def is_dark(*backgrounds: "ColorType") -> bool:
    """Return whether the first of some backgrounds that is not transparent is dark."""
    from matplotlib.colors import to_rgba

    for colour in backgrounds:
        *parts, opacity = to_rgba(colour)
        if opacity > 0.5:
            return float(np.dot(parts, _LUMINANCE)) < 0.5
    return False
