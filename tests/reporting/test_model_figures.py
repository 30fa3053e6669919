"""Figures of what a model estimates besides its scores."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection

from bayesrank.reporting.figures import (
    plot_difficulty,
    plot_hodge_flow,
    plot_item_curves,
    plot_trajectories,
)


def item_result(**parameters: list[float]) -> xr.DataTree:
    """Return a result of two systems whose questions have the given parameters in every draw."""
    n_questions = len(parameters["difficulty"])
    posterior = xr.Dataset(
        {
            name: (("chain", "draw", "question"), np.tile(values, (2, 3, 1)))
            for name, values in parameters.items()
        },
        {"question": [f"q{i}" for i in range(n_questions)]},
    )
    ranking = xr.Dataset({"score": ("system", [-0.5, 0.5])}, {"system": ["a", "b"]})
    tree = {"/": xr.Dataset(attrs={"method": "irt"}), "posterior": posterior, "ranking": ranking}
    return xr.DataTree.from_dict(tree)


def curve(figure, label: str) -> tuple[np.ndarray, np.ndarray]:
    (line,) = [each for each in figure.axes[0].get_lines() if each.get_label() == label]
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def test_item_curve_is_the_three_parameter_model() -> None:
    result = item_result(difficulty=[0.5, -1.0], discrimination=[2.0, 1.0], guessing=[0.2, 0.0])
    ability, chance = curve(plot_item_curves(result), "q0")
    np.testing.assert_allclose(chance, 0.2 + 0.8 / (1 + np.exp(-2.0 * (ability - 0.5))))


def test_item_curve_of_a_rasch_model_has_slope_one() -> None:
    ability, chance = curve(plot_item_curves(item_result(difficulty=[1.0])), "q0")
    np.testing.assert_allclose(chance, 1 / (1 + np.exp(1.0 - ability)))


def test_item_curves_show_the_named_questions_from_easy_to_hard() -> None:
    result = item_result(difficulty=[3.0, 1.0, 2.0, 0.0])
    figure = plot_item_curves(result, questions=["q0", "q1"])
    shown = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert shown == ["other questions", "q1", "q0", "systems"]


def test_item_curves_mark_the_systems() -> None:
    lines = plot_item_curves(item_result(difficulty=[0.0])).axes[0].get_lines()
    np.testing.assert_array_equal(lines[-1].get_xdata(), [-0.5, 0.5])


def test_unknown_questions_are_refused() -> None:
    with pytest.raises(ValueError, match="questions must be labels of the result; got 'x'"):
        plot_item_curves(item_result(difficulty=[0.0]), questions=["x"])


def test_difficulties_are_sorted_with_the_hardest_on_top() -> None:
    result = item_result(difficulty=[0.0, 2.0, 1.0])
    axes = plot_difficulty(result).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["q1", "q2", "q0"]
    np.testing.assert_allclose(axes.get_lines()[0].get_xdata(), [2.0, 1.0, 0.0])
    (intervals,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    assert len(intervals.get_segments()) == 3


def test_many_questions_have_no_names() -> None:
    axes = plot_difficulty(item_result(difficulty=list(range(200)))).axes[0]
    assert not axes.get_yticklabels()
    assert axes.get_ylabel() == "200 questions, the hardest on top"


@pytest.mark.parametrize(("farthest", "scale"), [(3.0, "linear"), (40.0, "symlog")])
def test_difficulties_far_outside_do_not_crush_the_others(farthest: float, scale: str) -> None:
    axes = plot_difficulty(item_result(difficulty=[0.0, 1.0, farthest])).axes[0]
    assert axes.get_xscale() == scale


def test_difficulties_that_are_hardly_known_do_not_crush_the_others() -> None:
    result = item_result(difficulty=[0.0, 1.0, 2.0])
    result["posterior"]["difficulty"].values[0, 0, 2] = 90.0
    assert plot_difficulty(result).axes[0].get_xscale() == "symlog"


def test_results_without_difficulties_are_refused(three: xr.DataTree) -> None:
    with pytest.raises(ValueError, match="result must be of an item response model"):
        plot_difficulty(three)


def growing(**options: str) -> xr.DataTree:
    """Return a result in which a gains 2 from the first trial to the last, and b nothing."""
    posterior = xr.Dataset(
        {
            "ability": (("chain", "draw", "system"), [[[0.0, 0.5]]]),
            "slope": (("chain", "draw", "system"), [[[2.0, 0.0]]]),
        },
        {"system": ["a", "b"]},
    )
    ranking = xr.Dataset({"score": ("system", [1.0, 0.5])}, {"system": ["a", "b"]})
    attrs = {"method": "dynamic_irt", "options": options.get("options", "{}")}
    tree = {"/": xr.Dataset(attrs=attrs), "posterior": posterior, "ranking": ranking}
    return xr.DataTree.from_dict(tree)


def test_trajectories_grow_around_the_mean_time() -> None:
    a, b = plot_trajectories(growing()).axes[0].get_lines()[:2]
    np.testing.assert_allclose(a.get_ydata()[[0, -1]], [-1.0, 1.0])
    np.testing.assert_allclose(b.get_ydata(), 0.5)


def test_trajectories_use_the_stated_times() -> None:
    """The mean of 0, 9 and 10 is 0.63 of the way."""
    result = growing(options='{"time_points": [0, 9, 10]}')
    (a, *_) = plot_trajectories(result).axes[0].get_lines()
    np.testing.assert_allclose(a.get_ydata()[0], -2.0 * 19 / 30)


def test_walks_are_shown_as_they_are() -> None:
    path = xr.Dataset(
        {"trajectory": (("chain", "draw", "system", "trial"), [[[[0.0, 3.0, 1.0]]]])},
        {"system": ["a"], "trial": [1, 2, 3]},
    )
    ranking = xr.Dataset({"score": ("system", [1.0])}, {"system": ["a"]})
    result = xr.DataTree.from_dict({"posterior": path, "ranking": ranking})
    axes = plot_trajectories(result).axes[0]
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), [0.0, 3.0, 1.0])
    assert axes.get_xlabel() == "trial"


def test_names_of_sixty_trajectories_do_not_overlap() -> None:
    ability = np.zeros((1, 1, 60))
    posterior = xr.Dataset(
        {
            "ability": (("chain", "draw", "system"), ability),
            "slope": (("chain", "draw", "system"), ability),
        },
        {"system": [f"system {i}" for i in range(60)]},
    )
    ranking = xr.Dataset({"score": ("system", ability[0, 0])}, posterior.coords)
    attrs = {"method": "dynamic_irt", "options": "{}"}
    tree = {"/": xr.Dataset(attrs=attrs), "posterior": posterior, "ranking": ranking}
    figure = plot_trajectories(xr.DataTree.from_dict(tree))
    figure.draw_without_rendering()
    heights = sorted(text.get_window_extent().y0 for text in figure.axes[0].texts)
    size = figure.axes[0].texts[0].get_window_extent().height
    assert np.diff(heights).min() > 0.8 * size


def hodge_result(wins: list[list[float]]) -> xr.DataTree:
    from bayesrank import Comparisons, rank

    return rank(Comparisons(wins), "hodge_rank", draws=0)


def test_flow_that_scores_explain_is_on_the_line() -> None:
    axes = plot_hodge_flow(hodge_result([[0, 2, 4], [2, 0, 4], [0, 0, 0]])).axes[0]
    pairs = axes.get_lines()[2]
    np.testing.assert_allclose(pairs.get_xdata(), pairs.get_ydata(), atol=1e-12)
    assert axes.get_title() == "gradient 100.0 %, curl 0.0 %, harmonic 0.0 %"


def test_circles_are_off_the_line() -> None:
    """Each beats the next in a circle: the scores are equal and explain nothing."""
    axes = plot_hodge_flow(hodge_result([[0, 3, 0], [0, 0, 3], [3, 0, 0]])).axes[0]
    pairs = axes.get_lines()[2]
    np.testing.assert_allclose(pairs.get_xdata(), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.abs(pairs.get_ydata()), 1.0)
    assert axes.get_title().startswith("gradient 0.0 %, curl 100.0 %")


def test_other_methods_have_no_flow(three: xr.DataTree) -> None:
    with pytest.raises(ValueError, match="result must be of hodge_rank; got bayes"):
        plot_hodge_flow(three)
