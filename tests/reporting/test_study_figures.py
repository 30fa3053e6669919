"""Figures of studies, drawn from datasets whose numbers are known."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection
from matplotlib.text import Text

from bayesrank import Responses, studies
from bayesrank.reporting.figures import (
    plot_agreement,
    plot_convergence,
    plot_gold_agreement,
    plot_prior_sensitivity,
    plot_rubric_agreement,
    plot_stability,
    plot_tau_distribution,
    plot_tradeoff,
    plot_trajectories,
)


def stability(
    tau: list | np.ndarray, methods: list[str], *, groups: list[str] | None = None
) -> xr.Dataset:
    """Return a study with the given tau, of shape (method, n_trials, draw)."""
    values = np.array(tau, dtype=float)
    return xr.Dataset(
        {
            "tau": (("method", "n_trials", "draw"), values),
            "tau_mean": (("method", "n_trials"), values.mean(axis=-1)),
            "tau_sd": (("method", "n_trials"), values.std(axis=-1)),
            "group": ("method", groups or methods),
        },
        {"method": methods, "n_trials": [1, 4][: values.shape[1]], "reference": "gold"},
        attrs={"study": "stability"},
    )


@pytest.fixture
def study() -> xr.Dataset:
    """Return two methods, of which the second is better, and one that ranks as the first."""
    worse, better = [[0.0, 0.4], [0.6, 0.8]], [[0.5, 0.7], [0.9, 1.0]]
    return stability(
        [worse, better, worse], ["avg", "borda", "elo"], groups=["avg", "borda", "avg"]
    )


def rows(figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_agreement_is_drawn_against_trials(study: xr.Dataset) -> None:
    axes = plot_agreement(study).axes[0]
    lines = [line for line in axes.get_lines() if line.get_marker() == "o"]
    np.testing.assert_allclose([line.get_ydata() for line in lines], [[0.2, 0.7], [0.6, 0.95]])
    assert [text.get_text() for text in axes.texts] == ["avg (+1)", "borda"]
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(0.01)  # the 2.5 % quantile of 0 and 0.4


def test_agreement_has_a_gap_where_no_draw_has_a_tau(study: xr.Dataset) -> None:
    study["tau"][1, 1] = np.nan  # its last number of trials
    study["tau"][0, 0, 0] = np.nan
    study["tau_mean"][1, 1] = np.nan
    axes = plot_agreement(study).axes[0]
    bands = [band.get_paths() for band in axes.collections]
    assert bands[0][0].vertices[:, 1].min() == pytest.approx(0.4)  # of the one draw that is left
    assert not any(np.isnan(path.vertices).any() for paths in bands for path in paths)
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert np.isfinite(list(heights.values())).all()
    assert heights["avg (+1)"] > heights["borda"]


def test_agreement_needs_several_numbers_of_trials() -> None:
    with pytest.raises(ValueError, match="study must have two numbers of trials or more; got 1"):
        plot_agreement(stability([[[0.1, 0.2]]], ["avg"]))


def test_stability_is_sorted_and_shows_standard_deviations(study: xr.Dataset) -> None:
    figure = plot_stability(study)
    assert rows(figure) == ["borda", "avg (+1)"]
    axes = figure.axes[0]
    np.testing.assert_allclose(axes.get_lines()[0].get_xdata(), [0.6, 0.2])
    (bars,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    ends = [segment[:, 0] for segment in bars.get_segments()]
    np.testing.assert_allclose(ends, [[0.5, 0.7], [0.0, 0.4]], atol=1e-12)


def test_stability_of_a_stated_number_of_trials(study: xr.Dataset) -> None:
    axes = plot_stability(study, n_trials=4).axes[0]
    np.testing.assert_allclose(axes.get_lines()[0].get_xdata(), [0.95, 0.7])
    with pytest.raises(ValueError, match="n_trials must be one of 1, 4; got 3"):
        plot_stability(study, n_trials=3)


def test_distribution_marks_the_median_and_the_worst_draw(study: xr.Dataset) -> None:
    figure = plot_tau_distribution(study)
    assert rows(figure) == ["borda", "avg (+1)"]
    marks = {line.get_label(): line.get_xdata() for line in figure.axes[0].get_lines()}
    np.testing.assert_allclose(marks["median"], [0.6, 0.2])
    np.testing.assert_allclose(marks["worst draw"], [0.5, 0.0])


def test_distribution_of_constants_and_of_nothing() -> None:
    """A method that always agrees has no spread, and one without a tau has no violin."""
    study = stability([[[1.0, 1.0]], [[np.nan, np.nan]]], ["sure", "none"])
    figure = plot_tau_distribution(study)
    assert rows(figure) == ["sure", "none"]
    assert figure.axes[0].get_lines()[0].get_xdata() == [1.0]


def test_tradeoff_names_what_nothing_beats_in_both() -> None:
    methods = ["exact", "steady", "worse", "twin"]
    gold = stability([[[0.9]], [[0.5]], [[0.4]], [[0.9]]], methods)
    own = stability([[[0.6]], [[0.8]], [[0.5]], [[0.6]]], methods)
    axes = plot_tradeoff(gold, own).axes[0]
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == ["other methods", "1  exact (+1)", "2  steady"]
    behind = axes.get_lines()[0]
    np.testing.assert_allclose([behind.get_xdata(), behind.get_ydata()], [[0.5], [0.4]])


def test_tradeoff_has_room_for_many_names() -> None:
    methods = [f"method {i}" for i in range(40)]
    rising = np.linspace(0.1, 0.9, 40)[:, None, None]
    figure = plot_tradeoff(stability(rising, methods), stability(rising[::-1], methods))
    figure.draw_without_rendering()  # a layout that has no room for the axes would warn
    (axes,) = figure.axes
    names = axes.get_legend().get_window_extent().height
    assert axes.get_window_extent().height > 0.8 * names


def test_tradeoff_is_of_the_same_methods(study: xr.Dataset) -> None:
    with pytest.raises(ValueError, match="must be of the same methods"):
        plot_tradeoff(study, study.isel(method=[1, 0, 2]))


def test_convergence_shows_shares_and_says_who_never_converges() -> None:
    study = xr.Dataset(
        {
            "pmf": ("n_trials", [0.1, 0.3, 0.0]),
            "cdf": ("n_trials", [0.1, 0.4, 0.4]),
            "tau_mean": ("n_trials", [0.5, 0.8, 0.9]),
            "no_convergence": 0.6,
        },
        {"n_trials": [1, 2, 3]},
    )
    axes = plot_convergence(study).axes[0]
    assert axes.get_title() == "60.0 % never converge"
    assert [bar.get_height() for bar in axes.patches] == [0.1, 0.3, 0.0]
    np.testing.assert_allclose(axes.get_lines()[0].get_ydata(), [0.1, 0.4, 0.4])


def test_convergence_of_several_methods_is_compared() -> None:
    cdf = [[0.1, 0.4, 0.4], [0.0, 0.2, 0.2]]
    study = xr.Dataset(
        {
            "cdf": (("method", "n_trials"), cdf),
            "tau_mean": (("method", "n_trials"), [[0.5, 0.8, 0.9], [np.nan, -0.2, 0.1]]),
            "no_convergence": ("method", [0.6, 0.8]),
        },
        {"n_trials": [1, 2, 3], "method": ["bayes", "pass_at_k(k=2)"]},
    )
    figure = plot_convergence(study)
    (axes,) = figure.axes
    steps = [line for line in axes.get_lines() if line.get_linestyle() == "-"]
    np.testing.assert_allclose([line.get_ydata() for line in steps], cdf)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "bayes: 60.0 % never",
        "pass_at_k(k=2): 80.0 % never",
    ]
    assert axes.get_ylim()[0] == pytest.approx(-0.2)


def test_convergence_marks_the_actual_order() -> None:
    data = Responses([[[1] * 5], [[0, 1, 0, 0, 0]], [[0] * 5]])
    study = studies.convergence(data, replicates=20)
    (line,) = [x for x in plot_convergence(study).axes[0].get_lines() if x.get_linestyle() == ":"]
    assert line.get_xdata()[0] == 2 == int(study["actual_converged_at"])


@pytest.fixture
def converging() -> xr.Dataset:
    rng = np.random.default_rng(0)
    chance = np.array([0.8, 0.6, 0.4])[:, None, None]
    data = Responses((rng.random((3, 5, 6)) < chance).astype(int), systems=["a", "b", "c"])
    return studies.convergence(data, ["bayes", "pass_at_k(k=3)"], replicates=30)


def test_trajectories_of_a_study_are_ranks(converging: xr.Dataset) -> None:
    study = converging.sel({"method": "pass_at_k(k=3)"})
    axes = plot_trajectories(study).axes[0]
    lines = axes.get_lines()[:3]
    known = study["actual_rank"].values[2:]  # from the third trial on
    np.testing.assert_array_equal([line.get_ydata() for line in lines], known.T)
    np.testing.assert_array_equal(lines[0].get_xdata(), [3, 4, 5, 6])
    low, high = axes.get_ylim()
    assert low > high  # the best is on top
    assert axes.get_ylabel() == "rank, 95 % band"
    assert {text.get_text() for text in axes.texts} == {"a", "b", "c"}


def test_trajectories_of_the_worst_replicate(converging: xr.Dataset) -> None:
    study = converging.sel({"method": "bayes"})
    axes = plot_trajectories(study, order="worst").axes[0]
    found = [line.get_ydata() for line in axes.get_lines()[:3]]
    np.testing.assert_array_equal(found, study["worst_rank"].values[0].T)
    assert axes.get_ylabel() == "rank"
    assert axes.get_xlabel() == "trials of the worst replicate"


def test_trajectories_need_a_study_of_one_method(converging: xr.Dataset) -> None:
    one = converging.sel({"method": "bayes"})
    with pytest.raises(ValueError, match="result must be a study of one method; got 2"):
        plot_trajectories(converging)
    with pytest.raises(ValueError, match="order must be 'actual' or 'worst'; got 'best'"):
        plot_trajectories(one, order="best")
    with pytest.raises(ValueError, match="must keep a worst replicate for order='worst'"):
        plot_trajectories(one.isel(worst=slice(0)), order="worst")
    with pytest.raises(ValueError, match="dynamic_irt or a study of convergence; got 'stability'"):
        plot_trajectories(xr.Dataset(attrs={"study": "stability"}))


def test_prior_sensitivity_marks_every_prior() -> None:
    study = xr.Dataset(
        {"rank": (("prior", "system"), [[2, 1, 3], [1, 2, 3]])},
        {"prior": ["normal(0, 1)", "flat"], "system": ["a", "b", "c"]},
    )
    axes = plot_prior_sensitivity(study).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["b", "a", "c"]
    marks = {line.get_label(): line.get_xdata().tolist() for line in axes.get_lines()}
    assert marks == {"normal(0, 1)": [1, 2, 3], "flat": [2, 1, 3]}
    shapes = {line.get_marker() for line in axes.get_lines()}
    assert len(shapes) == 2


@pytest.fixture
def rubrics() -> xr.Dataset:
    """Return a study of two schemes, of which the second agrees better with the gold standard."""
    dims = ("scheme", "benchmark", "reference")
    return xr.Dataset(
        {
            "tau_mean": (dims, [[[0.5, 0.9], [0.7, 0.8]], [[0.6, 0.7], [np.nan, 0.4]]]),
            "tau_sd": (dims, [[[0.1, 0.2], [0.3, 0.4]], [[0.05, 0.05], [np.nan, 0.1]]]),
        },
        {
            "scheme": ["verifier_only", "conservative"],
            "benchmark": ["combined", "hard"],
            "reference": ["gold", "self"],
        },
        attrs={"study": "categorical", "n_trials": 1},
    )


def test_rubric_agreement_has_a_row_per_scheme_and_a_mark_per_reference(rubrics: xr.Dataset):
    figure = plot_rubric_agreement(rubrics)
    assert rows(figure) == ["conservative", "verifier_only"]
    axes = figure.axes[0]
    assert axes.get_title() == "combined, 1 trial"
    gold, own = (line for line in axes.get_lines() if len(line.get_xdata()) == 2)
    np.testing.assert_allclose(gold.get_xdata(), [0.6, 0.5])
    np.testing.assert_allclose(own.get_xdata(), [0.7, 0.9])
    assert (own.get_ydata() > gold.get_ydata()).all()  # apart from each other
    bars = [each for each in axes.collections if isinstance(each, LineCollection)]
    ends = [segment[:, 0] for segment in bars[0].get_segments()]
    np.testing.assert_allclose(ends, [[0.55, 0.65], [0.4, 0.6]])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "right answers",
        "the scheme itself",
    ]


def test_rubric_agreement_of_a_benchmark(rubrics: xr.Dataset, tmp_path):
    figure = plot_rubric_agreement(rubrics, benchmark="hard")
    assert rows(figure) == ["verifier_only", "conservative"]  # what has no tau is last
    figure.savefig(tmp_path / "figure.png")
    with pytest.raises(ValueError, match="benchmark must be one of combined, hard; got 'easy'"):
        plot_rubric_agreement(rubrics, benchmark="easy")


def test_rubric_agreement_is_drawn_where_it_is_asked_for(rubrics: xr.Dataset):
    outer = plot_rubric_agreement(rubrics)
    axes = outer.add_subplot()
    assert plot_rubric_agreement(rubrics, ax=axes) is outer
    assert axes.get_legend() is not None


def test_tradeoff_numbers_of_near_points_do_not_collide() -> None:
    methods = [f"method {i}" for i in range(12)]
    rising = np.linspace(0.5, 0.501, 12)[:, None, None]
    far = np.full((1, 1, 1), 0.0)
    gold = stability(np.concatenate([rising, far]), [*methods, "far"])
    own = stability(np.concatenate([rising[::-1], far]), [*methods, "far"])
    figure = plot_tradeoff(gold, own)
    figure.draw_without_rendering()
    # Those of annotations hold their lines as well.
    boxes = [Text.get_window_extent(text) for text in figure.axes[0].texts]
    assert len(boxes) == 12
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[i + 1 :])


def test_agreement_against_cost(study: xr.Dataset) -> None:
    axes = plot_agreement(study, cost_per_trial=2.5, cost_label="dollars").axes[0]
    assert axes.get_xlabel() == "dollars"
    np.testing.assert_allclose(axes.get_lines()[0].get_xdata(), [2.5, 10.0])
    with pytest.raises(ValueError, match="cost_per_trial must be a finite number > 0; got 0"):
        plot_agreement(study, cost_per_trial=0)


def test_bars_of_agreement_with_the_gold_standard(study: xr.Dataset) -> None:
    data = Responses(studies.simulate.biased_coins([0.9, 0.6, 0.5, 0.3], n_trials=9)["outcomes"])
    found = studies.consensus(data, ["bayes", "avg", "copeland"])
    axes = plot_gold_agreement(found).axes[0]
    assert axes.patches[0].get_width() == 1.0  # bayes is the gold standard
    assert len(axes.patches) == len(set(found["group"].values))
    with pytest.raises(ValueError, match=r"what studies\.consensus returned; got stability"):
        plot_gold_agreement(study)
