"""What every figure keeps to: sizes, axes of the caller, dark styles, labels in their place."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import matplotlib.style
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import bayesrank as br
from bayesrank import Battles, Responses, rank, studies
from bayesrank.by_group import rank_by_group
from bayesrank.reporting import figures

SIZES = (3, 20, 60)
PLOTS = [name for name in figures.__all__ if name.startswith("plot_")]
# Panels are figures of ArviZ, which lays them out.
ON_AXES = [name for name in PLOTS if name != "plot_group_scores"]
KNOWN = {name: inspect.signature(getattr(br, name)).parameters for name in PLOTS}
SYSTEM_PLOTS = [name for name in PLOTS if "systems" in KNOWN[name]]
PLOTLY = [name for name in PLOTS if "backend" in KNOWN[name]]
# Their rows are questions, methods, or all systems at once.
# What starts a formula that Matplotlib cannot draw, and HTML.
FORMULA = r"$\nil$-model <i>"
OF_NO_SYSTEM = {"plot_difficulty", "plot_hodge_flow", "plot_item_curves", "plot_method_agreement"}


def names(n_systems: int) -> list[str]:
    """Return names that are short, long, written from right to left, and like formulas."""
    long = [f"organisation/a-model-with-a-very-long-name-{i:02d}-2026" for i in range(n_systems)]
    mixed = [name if i % 5 == 0 else f"model-{i}" for i, name in enumerate(long)]
    return ["\u0646\u0645\u0648\u0630\u062c-2", mixed[1], FORMULA, *mixed[3:]]


@pytest.fixture(scope="module", params=SIZES)
def arguments(request: pytest.FixtureRequest) -> dict[Any, Any]:
    """Return what every figure draws, for each number of systems."""
    return arguments_for(request.param)


@pytest.fixture(scope="module")
def usual() -> dict[Any, Any]:
    """Return what every figure draws, for tests that the number of systems does not matter to."""
    return arguments_for(20)


@cache
def arguments_for(n_systems: int) -> dict[Any, Any]:
    """Return what every figure draws, for a number of systems."""
    rng = np.random.default_rng(n_systems)
    chance = np.linspace(0.85, 0.15, n_systems)[:, None, None]
    outcomes = (rng.random((n_systems, 12, 4)) < chance).astype(np.int8)
    systems = names(n_systems)
    data = Responses(outcomes, systems=systems, groups=["x", "y", "z"] * 4)
    result = rank(data, "avg", random_seed=1)
    rasch = rank(data, "rasch", backend="map", draws=50, random_seed=1)
    series = {
        key: pd.Series(rng.permutation(n_systems) + 1, systems) for key in ("one", "two", "three")
    }
    pair = {key: series[key] for key in ("one", "two")}
    few = Responses(outcomes[:20], systems=systems[:20])
    stability = studies.stability(
        few, ["avg", "borda"], n=[1, 2], draws=4, reference=["gold", "self"]
    )
    gold, own = (stability.sel(reference=name) for name in ("gold", "self"))
    ranks = np.array([series[key] for key in series], dtype=np.int64)
    prior = xr.Dataset(
        {"rank": (("prior", "system"), ranks)}, {"prior": ["a", "b", "c"], "system": systems}
    )
    first = rng.integers(0, n_systems, 900)
    second = (first + rng.integers(1, n_systems, 900)) % n_systems
    battles = Battles(
        *(np.array(systems)[side].tolist() for side in (first, second)),
        rng.choice(["first", "second", "tie"], 900).tolist(),
        time=np.linspace(0.0, 60 * 86_400.0, 900).tolist(),
    )
    taus = rng.uniform(0.2, 0.9, (1, 2, n_systems))
    schemes = xr.Dataset(
        {
            "tau_mean": (("benchmark", "reference", "scheme"), taus),
            "tau_sd": (("benchmark", "reference", "scheme"), taus / 9),
        },
        {"benchmark": ["all"], "reference": ["gold", "self"], "scheme": systems},
        {"n_trials": 1},
    )
    return {
        "plot_agreement": (gold,),
        "plot_convergence": (studies.convergence(few, "avg", replicates=5),),
        "plot_difficulty": (rasch,),
        "plot_gold_agreement": (studies.consensus(few, ["avg", "borda", "copeland"]),),
        "plot_group_scores": (rank_by_group(data, "avg", draws=20, random_seed=1),),
        "plot_groups": (result,),
        "plot_history": (rank(battles, "dynamic_comparisons", draws=20, random_seed=1),),
        "plot_hodge_flow": (rank(data, "hodge_rank", draws=20, random_seed=1),),
        "plot_item_curves": (rasch,),
        "plot_leaderboard": (result,),
        "plot_method_agreement": (series,),
        "plot_pareto": (result, dict(zip(systems, rng.random(n_systems), strict=True))),
        "plot_prior_sensitivity": (prior,),
        "plot_questions": (result,),
        "plot_results_over_time": ({"earlier": rasch, "later": result},),
        "plot_rank_comparison": (pair,),
        "plot_rank_flow": (series,),
        "plot_rank_probabilities": (result,),
        "plot_rank_sets": (result,),
        "plot_rubric_agreement": (schemes,),
        "plot_stability": (gold,),
        "plot_superiority": (result,),
        "plot_tau_distribution": (gold,),
        "plot_tradeoff": (gold, own),
        "plot_trajectories": (studies.convergence(data, "avg", replicates=3),),
        "plot_win_rates": (rank(battles, "davidson", draws=20, random_seed=1),),
    }


def drawn(name: str, arguments: dict[Any, Any], style: str = "default") -> Any:
    """Return a figure in a style, drawn once for all tests that only look at it."""
    if (name, style) not in arguments:
        with matplotlib.style.context(style):
            arguments[name, style] = getattr(br, name)(*arguments[name])
    return arguments[name, style]


def boxes(figure: Figure) -> Iterator[Any]:
    """Yield what each axes of a figure takes up, in pixels, with all of its labels."""
    FigureCanvasAgg(figure).draw()
    for axes in figure.axes:
        yield axes.get_tightbbox()


def test_every_figure_has_arguments(arguments: dict[Any, Any]) -> None:
    assert {name for name in arguments if isinstance(name, str)} == set(PLOTS)


@pytest.mark.parametrize("name", PLOTS)
def test_every_figure_is_at_the_top_level_with_the_same_words(name: str) -> None:
    known = KNOWN[name]
    wanted = {"figsize", "backend"} if name == "plot_group_scores" else {"figsize", "ax"}
    of_systems = next(iter(known)) in ("result", "results", "rankings")
    wanted |= {"systems", "top"} if of_systems and name not in OF_NO_SYSTEM else set()
    assert wanted <= set(known)
    assert all(known[each].kind is inspect.Parameter.KEYWORD_ONLY for each in wanted)


@pytest.mark.parametrize("name", ON_AXES)
def test_nothing_is_cut_in_a_figure_of_its_own(name: str, arguments: Any) -> None:
    figure = drawn(name, arguments)
    for box in boxes(figure):
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= figure.bbox.x1 + 1
        assert box.y1 <= figure.bbox.y1 + 1


@pytest.mark.parametrize("name", ON_AXES)
def test_labels_stay_in_the_cell_of_subplots(name: str, arguments: Any) -> None:
    figure = Figure(figsize=(12, 5))  # as plt.subplots makes it, without a layout engine
    left, right = figure.subplots(1, 2)
    left.plot([0, 1])
    getattr(br, name)(*arguments[name], ax=right)
    first, second = list(boxes(figure))[:2]
    assert second.x0 >= left.get_window_extent().x1 - 1
    assert second.x0 >= first.x1 - 1
    assert second.x1 <= figure.bbox.x1 + 1
    assert second.y0 >= -1
    assert second.y1 <= figure.bbox.y1 + 1
    rows = [each.get_window_extent() for each in right.get_yticklabels() if each.get_text()]
    heights = sorted((box.y0, box.y1) for box in rows)
    assert all(upper[0] >= lower[1] - 2 for lower, upper in pairwise(heights))


def contrast(one: Any, other: Any) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2)."""

    def luminance(colour: Any) -> float:
        parts = np.array(to_rgb(colour))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("style", ["default", "dark_background"])
@pytest.mark.parametrize("name", ON_AXES)
def test_marks_and_words_can_be_told_from_the_background(name: str, style: str, usual: Any) -> None:
    figure = drawn(name, usual, style)
    for axes in figure.axes:
        behind = axes.get_facecolor()
        words = [each for each in axes.texts if not axes.get_images()]
        labels = [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label]
        for text in (*words, *labels):
            assert contrast(text.get_color(), behind) >= 4.5
        for line in axes.get_lines():
            if line.get_label() and not str(line.get_label()).startswith("_"):
                assert contrast(line.get_color(), behind) >= 2.0
        for grid in axes.yaxis.get_gridlines():
            if grid.get_visible():
                assert contrast(grid.get_color(), behind) <= 2.5


@pytest.mark.parametrize("name", ON_AXES)
def test_no_mark_is_outside_of_the_limits(name: str, arguments: Any) -> None:
    axes = drawn(name, arguments).axes[0]
    (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    for line in axes.get_lines():
        if line.get_transform() != axes.transData:
            continue
        x, y = (np.asarray(each, dtype=float) for each in line.get_data())
        known = np.isfinite(x) & np.isfinite(y)
        assert ((x[known] >= left - 1e-9) & (x[known] <= right + 1e-9)).all()
        assert ((y[known] >= low - 1e-9) & (y[known] <= high + 1e-9)).all()


@pytest.mark.parametrize("name", [name for name in SYSTEM_PLOTS if name in ON_AXES])
def test_systems_can_be_picked(name: str, usual: Any) -> None:
    plot: Callable[..., Any] = getattr(br, name)
    assert plot(*usual[name], top=2).axes
    with pytest.raises(ValueError, match=r"systems must be among .*; got 'nobody'"):
        plot(*usual[name], systems=["nobody"])
    with pytest.raises(ValueError, match="top must be at least 1; got 0"):
        plot(*usual[name], top=0)
    with pytest.raises(ValueError, match="top must be None where systems are given"):
        plot(*usual[name], systems=["model-1"], top=1)


@pytest.mark.parametrize("name", ON_AXES)
def test_a_figure_has_the_size_that_is_asked_for(name: str, usual: Any) -> None:
    figure = getattr(br, name)(*usual[name], figsize=(4.0, 5.0))
    assert figure.get_size_inches().tolist() == [4.0, 5.0]
    for box in boxes(figure):
        assert box.x0 >= -1
        assert box.x1 <= figure.bbox.x1 + 1


def test_ranks_beyond_the_number_of_rows_are_shown() -> None:
    before, after = pd.Series({"a": 1, "b": 9}), pd.Series({"a": 12, "b": 2})
    axes = br.plot_rank_comparison({"before": before, "after": after}).axes[0]
    assert axes.get_xlim()[1] > 12


def test_what_cannot_be_drawn_is_said() -> None:
    nothing = xr.Dataset(
        {
            "tau": (("method", "n_trials", "draw"), np.full((1, 1, 2), np.nan)),
            "group": ("method", ["avg"]),
            "tau_mean": (("method", "n_trials"), [[np.nan]]),
            "tau_sd": (("method", "n_trials"), [[np.nan]]),
        },
        {"method": ["avg"], "n_trials": [1]},
    )
    for plot in (br.plot_stability, br.plot_tau_distribution):
        said = [text.get_text() for text in plot(nothing).axes[0].texts]
        assert "".join(said).replace("\n", " ").startswith("No draw has a tau")


def test_intervals_of_another_probability_are_made_from_the_draws(usual: Any) -> None:
    (result,) = usual["plot_leaderboard"]

    def width(**how: Any) -> float:
        lines = br.plot_leaderboard(result, **how).axes[0].collections[0].get_segments()
        return float(np.mean([segment[1, 0] - segment[0, 0] for segment in lines]))

    assert width(ci_prob=0.5) < width() < width(ci_prob=0.99)


def test_names_are_drawn_as_they_are_written() -> None:
    data = Responses(np.eye(2, 4, dtype=int), systems=["a\u202eb\tc", FORMULA], groups=["$x$"] * 4)
    result = rank(data, "avg", target="population", random_seed=1)
    labels = br.plot_leaderboard(result).axes[0].get_yticklabels()
    assert [each.get_text()[:-3] for each in labels] == [r"a\u202eb\x09c", FORMULA]
    assert not any(each.get_parse_math() for each in labels)
    drawn = br.plot_leaderboard(result, backend="plotly").viz["figure"].item()
    assert drawn.layout.yaxis.ticktext[1][:-3] == r"$\nil$-model &lt;i&gt;"
    panels = br.plot_group_scores({"$x$": result}).viz["figure"].item()
    assert panels.axes[0].get_title() == r"\$x\$"
    pyplot.close(panels)


def test_what_was_not_observed_is_no_low_value() -> None:
    outcomes = np.array([[1, 0, 0], [1, 0, -1]])
    battles = br.Comparisons([[0, 2, 1], [2, 0, 0], [3, 0, 0]])
    for figure in (
        br.plot_questions(rank(outcomes, "avg", draws=0)),
        br.plot_win_rates(rank(battles, "colley", draws=0)),
    ):
        (image,) = figure.axes[0].get_images()
        shown = image.to_rgba(image.get_array())
        gaps = np.ma.getmaskarray(image.get_array())
        assert gaps.any()
        assert (shown[gaps][:, 3] > 0.2).all()
        assert np.ptp(shown[gaps][:, :3], axis=1).max() == 0.0


def test_panels_are_one_per_group(usual: Any) -> None:
    panels = br.plot_group_scores(*usual["plot_group_scores"], top=3)
    assert panels.viz["plot"].sizes == {"panel": 3}
    pyplot.close(panels.viz["figure"].item())


def test_plotly_draws_panels_and_intervals(usual: Any) -> None:
    for name in PLOTLY:
        panels = getattr(br, name)(*usual[name], backend="plotly")
        drawn = panels.viz["figure"].item()
        low, high = sorted(drawn.layout.yaxis.range)
        rows = np.concatenate([np.array(trace.y, dtype=float) for trace in drawn.data])
        rows = rows[np.isfinite(rows)]
        assert rows.size
        assert ((rows > low) & (rows < high)).all()


@pytest.mark.parametrize("backend", ["matplotlib", "plotly"])
@pytest.mark.parametrize("is_dark", [False, True])
def test_panels_suit_the_style(backend: str, is_dark: bool, usual: Any) -> None:
    from plotly import io

    style, template = ("dark_background", "plotly_dark") if is_dark else ("default", "plotly")
    before = io.templates.default
    io.templates.default = template
    try:
        with matplotlib.style.context(style):
            panels = br.plot_group_scores(*usual["plot_group_scores"], top=3, backend=backend)
    finally:
        io.templates.default = before
    figure = panels.viz["figure"].item()
    if backend == "plotly":
        colours = [(trace.marker.color, trace.line.color) for trace in figure.data]
        (colour,) = {each for pair in colours for each in pair if each}
    else:
        (line,) = figure.axes[0].get_lines()[:1]
        colour = line.get_color()
        pyplot.close(figure)
    assert contrast(colour, "#111111" if is_dark else "white") >= 4.5


def test_intervals_of_all_figures_can_have_another_probability(usual: Any) -> None:
    """Every figure that draws intervals of a result has the word for their probability."""

    def ends(axes: Any) -> float:
        lines = [each for each in axes.collections if hasattr(each, "get_segments")]
        return float(
            sum(np.ptp(part, axis=0).sum() for each in lines for part in each.get_segments())
        )

    for name in ("plot_pareto", "plot_results_over_time"):
        narrow, wide = (
            getattr(br, name)(*usual[name], ci_prob=prob).axes[0] for prob in (0.5, 0.99)
        )
        assert ends(narrow) < ends(wide)


def test_unknown_backends_are_refused(usual: Any) -> None:
    with pytest.raises(ValueError, match="backend must be one of matplotlib, plotly; got 'svg'"):
        br.plot_leaderboard(*usual["plot_leaderboard"], backend="svg")


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize(
    "wrong", [None, "x", pd.DataFrame(), xr.Dataset(), xr.DataTree()], ids=type
)
def test_what_is_no_result_and_no_study_is_refused(name: str, wrong: Any) -> None:
    n_required = sum(each.default is inspect.Parameter.empty for each in KNOWN[name].values())
    message = r"^(study|rankings|results?) must (be|have|hold) .*; got "
    with pytest.raises(ValueError, match=message):
        getattr(br, name)(*[wrong] * n_required)


@pytest.mark.parametrize("name", ["plot_agreement", "plot_stability", "plot_tau_distribution"])
def test_studies_with_two_references_are_drawn_one_by_one(name: str) -> None:
    data = Responses([[[1, 1, 0]], [[0, 1, 0]]])
    study = studies.stability(data, ["avg"], n=[1, 2], draws=3, reference=["gold", "self"])
    with pytest.raises(ValueError, match=r"of one reference; got gold, self: pass study\.sel"):
        getattr(br, name)(study)
