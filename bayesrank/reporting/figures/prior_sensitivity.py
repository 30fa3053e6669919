"""Ranks under several priors."""

from typing import TYPE_CHECKING

import numpy as np

from bayesrank.layout import shorten
from bayesrank.reporting.figures.canvas import count_along, label_rows, row_size, take_axes
from bayesrank.reporting.figures.palette import CYCLE, INK, MUTED

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = "osD^v<>P*X"


def plot_prior_sensitivity(study: "xr.Dataset", *, ax: "Axes | None" = None) -> "Figure":
    """Draw the ranks that every system has under several priors.

    Parameters
    ----------
    study : xarray.Dataset
        What :func:`bayesrank.studies.prior_sensitivity` returned.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        A row per system in the order of the first prior, with a mark per prior, told apart by
        shape and colour, and a line from the best to the worst rank.

    Examples
    --------
    >>> from bayesrank import Responses, studies
    >>> data = Responses([[[1, 1], [1, 1]], [[1, 0], [1, 0]], [[0, 0], [1, 0]]])
    >>> priors = [1.0, 2.0]
    >>> study = studies.prior_sensitivity(data, "bradley_terry", priors, power_scaling=False)
    >>> len(plot_prior_sensitivity(study).axes[0].get_lines())
    2
    """
    table = study["rank"].transpose("prior", "system")
    order = np.argsort(table.values[0], kind="stable")
    ranks = table.values[:, order]
    labels = [shorten(name) for name in table["system"].values[order]]
    rows = np.arange(len(labels))
    priors = table["prior"].values.astype(str)
    figure, axes = take_axes(ax, *row_size(labels, plot_width=6.0))
    label_rows(axes, labels)
    axes.hlines(rows, ranks.min(axis=0), ranks.max(axis=0), color=MUTED, linewidth=1.0)
    # Marks of priors that agree stand side by side.
    shifts = np.linspace(-0.28, 0.28, len(priors))
    for number, (prior, values, shift) in enumerate(zip(priors, ranks, shifts, strict=True)):
        axes.plot(
            values,
            rows + shift,
            _MARKERS[number % len(_MARKERS)],
            color=INK if number == 0 else CYCLE[(number - 1) % len(CYCLE)],
            markersize=3.5,
            label=prior,
        )
    axes.set_xlim(0.4, len(labels) + 0.6)
    count_along(axes.xaxis)
    axes.set_xlabel("rank")
    axes.legend(
        title="prior", frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0)
    )
    return figure
