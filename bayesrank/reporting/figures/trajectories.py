"""Abilities, or ranks, from trial to trial."""

import json
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.reporting.figures.canvas import count_along, take_axes
from bayesrank.reporting.figures.palette import CYCLE
from bayesrank.reporting.figures.side_labels import LONGEST_NAME, name_ends

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# More bands would hide one another.
_MOST_BANDS = len(CYCLE)
_ROW_INCHES = 0.17
_N_POINTS = 25


class _Paths(NamedTuple):
    """Lines of systems over time, each with a band, and what the axes show."""

    systems: list[str]
    time: NDArray[np.float64]
    middle: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    time_label: str
    height_label: str


def plot_trajectories(
    result: "xr.DataTree | xr.Dataset",
    *,
    order: Literal["actual", "worst"] = "actual",
    ci_prob: float = 0.95,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw the ability of each system, or its rank, over the trials.

    Parameters
    ----------
    result : xarray.DataTree or xarray.Dataset
        What :func:`bayesrank.rank` returned for ``"dynamic_irt"``, for abilities; or, for ranks,
        what :func:`bayesrank.studies.convergence` returned for one method.
    order : {"actual", "worst"}, default "actual"
        Of a study: the trials in their actual order, with bands of the replicates; or the worst of
        the replicates.
    ci_prob : float, default 0.95
        Probability of the bands; of a study, the share of the replicates that they hold.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        A line per system, named at its end; up to six systems have bands.

    Raises
    ------
    ValueError
        If the result has no change over time, or the study is of several methods or kept no worst
        replicate.

    Examples
    --------
    >>> from bayesrank import rank
    >>> from bayesrank.reporting.figures import plot_trajectories
    >>> runs = [[[0, 1, 1], [0, 0, 1]], [[0, 1, 0], [1, 0, 0]]]
    >>> result = rank(runs, "dynamic_irt", assume_time_axis=True, random_seed=1)
    >>> [text.get_text() for text in plot_trajectories(result).axes[0].texts]
    ['system 1', 'system 2']
    """
    # A tree has groups, a dataset has none.
    is_study = not hasattr(result, "children")
    if is_study:
        paths = _of_study(cast("xr.Dataset", result), order, ci_prob)
    else:
        paths = _of_result(cast("xr.DataTree", result), ci_prob)
    names, ends = paths.systems, paths.middle[:, -1]
    few = len(names) <= _MOST_BANDS
    banded = few and bool((paths.low < paths.high).any())
    height = max(4.0, 1.0 + _ROW_INCHES * len(names))
    figure, axes = take_axes(ax, 5.5 + 0.06 * min(LONGEST_NAME, max(map(len, names))), height)
    # Neighbours at the end differ in colour, so that their lines can be followed to the names.
    place = np.argsort(np.argsort(ends))
    colours = [CYCLE[each % len(CYCLE)] for each in place]
    for system, colour in enumerate(colours):
        axes.plot(paths.time, paths.middle[system], color=colour, linewidth=1.6 if few else 0.8)
        if few:
            band = paths.low[system], paths.high[system]
            axes.fill_between(paths.time, *band, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlim(paths.time[0], paths.time[-1])
    shown = (paths.low, paths.high) if few else (paths.middle, paths.middle)
    bottom, top = float(np.nanmin(shown[0])), float(np.nanmax(shown[1]))
    margin = 0.03 * ((top - bottom) or 1.0)
    if is_study:
        margin = min(margin, 0.5)  # there is no rank 0 to have a tick
    axes.set_ylim(bottom - margin, top + margin)
    gap = (top - bottom + 2 * margin) * _ROW_INCHES / (height - 1.0)
    name_ends(axes, names, ends, gap=gap, colours=colours)
    if is_study:
        axes.invert_yaxis()  # the best is on top
        count_along(axes.yaxis)
        count_along(axes.xaxis)
    axes.set_xlabel(paths.time_label)
    band = f", {100 * ci_prob:g} % band" if banded else ""
    axes.set_ylabel(paths.height_label + band)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _of_study(study: "xr.Dataset", order: str, ci_prob: float) -> _Paths:
    """Return the ranks of a study of convergence."""
    if study.attrs.get("study") != "convergence":
        raise ValueError(
            "result must be a result of dynamic_irt or a study of convergence; got "
            f"{study.attrs.get('study', 'another dataset')!r}"
        )
    if "method" in study.dims:
        raise ValueError(
            f"result must be a study of one method; got {study.sizes['method']}: pass "
            "study.sel({'method': ...})"
        )
    if order not in ("actual", "worst"):
        raise ValueError(f"order must be 'actual' or 'worst'; got {order!r}")
    if order == "worst" and not study.sizes["worst"]:
        raise ValueError("result must keep a worst replicate for order='worst'; got none")
    ranks = study["actual_rank"] if order == "actual" else study["worst_rank"].isel(worst=0)
    # Before a method has the trials that it needs there is no rank.
    known = ranks.notnull().all("system").values
    middle = ranks.transpose("system", "n_trials").values[:, known]
    low = high = middle
    if order == "actual" and study.sizes["trajectory"]:
        tails = (0.5 - ci_prob / 2, 0.5 + ci_prob / 2)
        replicates = study["rank"].transpose("trajectory", "system", "n_trials").values[..., known]
        # Ranks are what replicates had, not values between two of them.
        low, high = np.quantile(replicates, tails, axis=0, method="inverted_cdf")
    label = "trials" if order == "actual" else "trials of the worst replicate"
    systems = [str(name) for name in study["system"].values]
    time = study["n_trials"].values[known].astype(np.float64)
    return _Paths(systems, time, middle, low, high, label, "rank")


def _of_result(result: "xr.DataTree", ci_prob: float) -> _Paths:
    """Return the abilities of a dynamic model."""
    names = result["ranking"].to_dataset()["system"].values.tolist()
    time, label, draws = _paths(result)
    tails = (0.5 - ci_prob / 2, 0.5, 0.5 + ci_prob / 2)
    low, middle, high = np.quantile(draws, tails, axis=0)
    return _Paths(names, time, middle, low, high, label, "ability")


def _paths(
    result: "xr.DataTree",
) -> tuple[NDArray[np.float64], str, NDArray[np.float64]]:
    """Return times, what they are, and draws (sample, system, time) of abilities."""
    posterior = result["posterior"].to_dataset()
    if "trajectory" in posterior:
        states = posterior["trajectory"].stack(sample=("chain", "draw"))
        draws = states.transpose("sample", "system", "trial").values
        return posterior["trial"].values.astype(np.float64), "trial", draws
    if "slope" not in posterior or "ability" not in posterior:
        raise ValueError(
            "result must be of dynamic_irt with variant growth or state_space; got "
            f"{result.attrs.get('method', 'no method')}"
        )
    given = json.loads(result.attrs["options"]).get("time_points")
    points = np.linspace(0.0, 1.0, _N_POINTS)
    middle = 0.5 if given is None else float(np.mean(_unit(given)))
    line = posterior[["ability", "slope"]].stack(sample=("chain", "draw"))
    ability, slope = (
        line[name].transpose("sample", "system").values[..., None] for name in ("ability", "slope")
    )
    return (
        points,
        "time, from the first trial (0) to the last (1)",
        ability + slope * (points - middle),
    )


def _unit(times: list[float]) -> NDArray[np.float64]:
    """Return times from 0 to 1."""
    values = np.asarray(times, dtype=np.float64)
    return (values - values[0]) / (values[-1] - values[0])
