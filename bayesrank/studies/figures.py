"""Figures of studies: one function that draws the dataset of any study.

If :mod:`bayesrank.reporting.figures` has a figure for the study, it is used; other figures share
its style. They never open a window;
:func:`bayesrank.reporting.figures.save_figure` writes them.
"""

# Matplotlib is imported only for drawing: studies do not need it.

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.results.arguments import study_name
from bayesrank.results.same_rankings import collapse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot(study: xr.Dataset) -> "Figure":
    """Draw a study.

    Parameters
    ----------
    study : xarray.Dataset
        Dataset of a function of :mod:`bayesrank.studies`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the dataset is not one of a study.

    Examples
    --------
    >>> from bayesrank import Responses, studies
    >>> data = Responses(studies.simulate.biased_coins([0.9, 0.6, 0.3], n_trials=10)["outcomes"])
    >>> figure = studies.plot(studies.stability(data, ["avg", "borda"], draws=5))
    >>> figure.axes[0].get_xlabel()
    "Kendall's tau-b with the gold standard"
    """
    name = study_name(study)
    if name not in _DRAWERS:
        raise ValueError(f"study must be a dataset of {', '.join(_DRAWERS)}; got {name!r}")
    return _DRAWERS[name](study)


def _stability(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures import plot_agreement, plot_stability, plot_tradeoff

    if "reference" in study.dims:
        if study.sizes["reference"] == 2:
            return plot_tradeoff(*(study.sel(reference=name) for name in ("gold", "self")))
        study = study.isel(reference=0)
    counts = study["n_trials"].values
    if len(np.unique(counts)) == 1:
        return plot_stability(study)
    # A line goes through the numbers of trials in increasing order.
    return plot_agreement(study.isel(n_trials=np.unique(counts, return_index=True)[1]))


def _battle_stability(study: xr.Dataset) -> "Figure":
    # Methods have rankings of their own, and battles are to them what trials are to others.
    known = study.rename(n_battles="n_trials").assign_attrs(study="stability")
    figure = _stability(known.assign(group=known["method"]))
    if len(np.unique(study["n_battles"])) > 1:
        figure.axes[0].set_xlabel("battles")
    return figure


def _categorical(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures import plot_rubric_agreement

    return plot_rubric_agreement(study)


def _consensus(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures.heat import draw_cells
    from bayesrank.reporting.figures.palette import sequential

    one_each = collapse(study)
    order = np.argsort(-np.nan_to_num(one_each["tau_mean"].values, nan=-2.0), kind="stable")
    values = one_each["tau"].values[np.ix_(order, order)]
    names = _names(one_each, "method")
    sizes = one_each["size"].values
    # Columns are labelled by numbers; the labels of rows have the number and the name.
    numbers = range(1, len(order) + 1)
    equals = [f" (+{sizes[place] - 1})" if sizes[place] > 1 else "" for place in order]
    rows = [
        f"{names[place]}{others}  {number}"
        for place, others, number in zip(order, equals, numbers, strict=True)
    ]
    axes = draw_cells(
        values,
        rows,
        list(map(str, numbers)),
        ax=None,
        colours=sequential(),
        limits=(float(np.nanmin(values, initial=0.0)), 1.0),
        colour_label="Kendall's tau-b",
        numbers=~np.isnan(values),
        number_text="{:.2f}".format,
    )
    return _finish(axes)


def _convergence(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures import plot_convergence

    return plot_convergence(study)


def _model_pools(study: xr.Dataset) -> "Figure":
    mean = study["tau_mean"].transpose("size", "method").values
    order = np.argsort(-np.nan_to_num(mean.mean(axis=0), nan=-2.0), kind="stable")
    labels = _names(study, "method")
    series = dict(zip(_names(study, "size"), mean[:, order], strict=True))
    spread = study["tau_sd"].transpose("size", "method").values[:, order]
    axes = _dots(
        [labels[place] for place in order],
        series,
        "tau-b of a pool, mean and standard deviation over pools",
        spread=spread,
    )
    return _finish(axes, title="systems per pool")


def _prior_transfer(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures.canvas import take_axes
    from bayesrank.reporting.figures.palette import CYCLE, MUTED

    _, axes = take_axes(None, 5.5, 3.6)
    counts = study["n_earlier"].values
    for place, n in enumerate(study["n_trials"].values):
        gain = study["gain"].isel(n_trials=place)
        error = study["gain_se"].isel(n_trials=place)
        axes.errorbar(
            counts, gain, error, fmt="o-", color=CYCLE[place % len(CYCLE)], markersize=4, label=n
        )
    axes.axhline(0.0, color=MUTED, linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set_xlabel("trials of the earlier version")
    axes.set_ylabel("gain in tau-b")
    axes.spines[["top", "right"]].set_visible(False)
    return _finish(axes, title="trials of the new version")


def _perturbation(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures.palette import CYCLE

    axes = _axes(6.0, 3.6)
    drawn = [name for name in ("competency", "difficulty") if study[name].notnull().any()]
    # Measures of one number of removed units, or Spearman's rho by number.
    by_number = study.sizes["k"] > 1
    labels = [str(k) for k in study["k"].values] if by_number else _names(study, "measure")
    width = 0.8 / max(1, len(drawn))
    for place, name in enumerate(drawn):
        position = np.arange(len(labels)) + place * width
        table = study[name].values.T
        if by_number:
            rho = study[name].sel(measure="spearman").values
            table = [rho[study["n_removed"].values == k] for k in study["k"].values]
        values = [column[np.isfinite(column)] for column in table]
        boxes = axes.boxplot(values, positions=position, widths=0.8 * width, patch_artist=True)
        for box in boxes["boxes"]:
            box.set_facecolor(CYCLE[place])
        axes.plot([], [], "s", color=CYCLE[place], label=name)
    axes.set_xticks(np.arange(len(labels)) + width * (len(drawn) - 1) / 2, labels)
    if by_number:
        axes.set_xlabel(f"{study.attrs['remove']} removed")
    measure = "Spearman's rho" if by_number else "correlation"
    axes.set_ylabel(f"{measure} with the estimate from all")
    return _finish(axes)


def _difficulty_leave_one_out(study: xr.Dataset) -> "Figure":
    spearman = study.sel(measure="spearman")
    series = {name: spearman[name].values for name in ("stability", "prediction")}
    axes = _dots(_names(study, "system"), series, "Spearman's rho without the system")
    return _finish(axes)


def _difficulty_levels(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures.palette import CYCLE

    axes = _axes(6.0, 3.6)
    groups, left = _names(study, "group"), np.zeros(study.sizes["group"])
    for place, level in enumerate(_names(study, "level")):
        share = study["share"].sel(level=level).fillna(0.0).values
        axes.barh(groups, share, left=left, color=CYCLE[place], label=level)
        left = left + share
    axes.invert_yaxis()
    axes.set_xlabel("share of questions")
    return _finish(axes)


def _damping_sensitivity(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures.palette import sequential

    axes = _axes(6.0, 3.6)
    # Without the lightest third of the shades, which are hard to see.
    shades = sequential()(np.linspace(1 / 3, 1, study.sizes["damping"]))
    for damping, changes, shade in zip(study["damping"], study["change"], shades, strict=True):
        axes.plot(study["iteration"], changes, color=shade, label=f"{float(damping):g}")
    axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel("change of competency and difficulty")
    return _finish(axes, title="damping")


def _bounded_2pl(study: xr.Dataset) -> "Figure":
    return _finish(_dots(_names(study, "system"), {"": study["score"].values}, "score"))


def _alignment(study: xr.Dataset) -> "Figure":
    labels = [*_names(study, "rater"), "majority"]
    shares = np.append(study["agreement"].values, study["consensus_agreement"].values)
    return _finish(_dots(labels, {"": shares}, "share of judgements that difficulties agree with"))


def _prior_sensitivity(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures import plot_prior_sensitivity

    return plot_prior_sensitivity(study)


def _greedy_alignment(study: xr.Dataset) -> "Figure":
    ranks = {name: study["rank"].sel(condition=name) for name in ("sampled", "greedy")}
    return _comparison(ranks, f"tau-b {float(study['tau']):.3f}")


def _adaptive(study: xr.Dataset) -> "Figure":
    name = study.attrs["study"].replace("_", " ")
    ranks = {"uniform": study["uniform_rank"], name: study["rank"]}
    return _comparison(ranks, f"weight {float(study['weight']):.3f}")


def _greedy_effect(study: xr.Dataset) -> "Figure":
    axes = _axes(5.5, 3.6)
    axes.boxplot(list(study["tau"].values), tick_labels=_names(study, "prior"))
    axes.set_ylabel("tau-b with the gold standard")
    axes.set_title(f"greedy alignment {float(study['alignment']):.3f}", fontsize="medium")
    return _finish(axes)


def _conflict(study: xr.Dataset) -> "Figure":
    surprise = -np.log10(np.maximum(study["p_value"].values, 1e-16))
    label = "-log10 of the p-value (more than 1.3: unlikely at 5 %)"
    return _finish(_dots(_names(study, "system"), {"": surprise}, label))


def _simulated(study: xr.Dataset) -> "Figure":
    from bayesrank.reporting.figures.canvas import row_size, take_axes
    from bayesrank.reporting.figures.palette import sequential

    labels = _names(study, "system")
    figure, axes = take_axes(None, *row_size(labels, plot_width=6.0))
    image = axes.imshow(
        study["outcomes"].mean("trial"), cmap=sequential(), vmin=0.0, vmax=1.0, aspect="auto"
    )
    axes.set_xlabel("question")
    axes.set_yticks(range(len(labels)), labels)
    figure.colorbar(image, ax=axes, label="share of right answers")
    return _finish(axes)


_DRAWERS: Mapping[str, Callable[[xr.Dataset], "Figure"]] = MappingProxyType(
    {
        "stability": _stability,
        "battle_stability": _battle_stability,
        "categorical": _categorical,
        "consensus": _consensus,
        "convergence": _convergence,
        "model_pools": _model_pools,
        "perturbation": _perturbation,
        "difficulty_leave_one_out": _difficulty_leave_one_out,
        "difficulty_levels": _difficulty_levels,
        "damping_sensitivity": _damping_sensitivity,
        "bounded_2pl": _bounded_2pl,
        "alignment": _alignment,
        "prior_sensitivity": _prior_sensitivity,
        "prior_transfer": _prior_transfer,
        "greedy_alignment": _greedy_alignment,
        "greedy_effect": _greedy_effect,
        "prior_data_conflict": _conflict,
        "adaptive_greedy": _adaptive,
        "power_prior": _adaptive,
        "biased_coins": _simulated,
        "rasch_tensor": _simulated,
        "model_updates": _simulated,
        "correlated_trials": _simulated,
    }
)


def _axes(width: float, height: float) -> "Axes":
    """Return new axes for boxes that stand side by side."""
    from bayesrank.reporting.figures.canvas import take_axes
    from bayesrank.reporting.figures.finish import suited
    from bayesrank.reporting.figures.palette import GRID

    _, axes = take_axes(None, width, height)
    axes.grid(axis="y", color=suited(axes, GRID), linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _dots(
    labels: Sequence[str],
    series: Mapping[str, NDArray[np.float64]],
    xlabel: str,
    *,
    spread: NDArray[np.float64] | None = None,
) -> "Axes":
    """Draw a row per label, with a dot of every series of values, and a bar of its spread."""
    from bayesrank.reporting.figures.canvas import label_rows, row_size, take_axes
    from bayesrank.reporting.figures.palette import CYCLE

    _, axes = take_axes(None, *row_size(labels))
    label_rows(axes, labels)
    for place, (name, values) in enumerate(series.items()):
        colour = CYCLE[place % len(CYCLE)]
        rows = np.arange(len(labels), dtype=np.float64)
        if spread is not None:
            rows += 0.22 * (place - (len(series) - 1) / 2)
            ends = values - spread[place], values + spread[place]
            axes.hlines(rows, *ends, color=colour, linewidth=1.2)
        axes.plot(values, rows, "o", markersize=4.0, color=colour, label=name)
    axes.set_xlabel(xlabel)
    return axes


def _finish(axes: "Axes", title: str | None = None) -> "Figure":
    """Add a legend beside the rows, so that it covers none of them."""
    from bayesrank.reporting.figures.finish import finish

    return finish(axes, legend="beside", title=title)


def _comparison(ranks: Mapping[str, xr.DataArray], title: str) -> "Figure":
    from bayesrank.reporting.figures import plot_rank_comparison

    figure = plot_rank_comparison(ranks)
    figure.suptitle(title, fontsize="medium")  # above the legend
    return figure


def _names(study: xr.Dataset, dim: str) -> list[str]:
    from bayesrank.layout import shorten

    return [shorten(label) for label in study[dim].values]
