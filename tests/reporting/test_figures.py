"""Figures: what is on them, that they are readable, and that nothing opens a window."""

import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from bayesrank import Responses, rank
from bayesrank.reporting.figures import (
    plot_groups,
    plot_leaderboard,
    plot_questions,
    plot_rank_probabilities,
    plot_rank_sets,
    plot_superiority,
    save_figure,
)
from bayesrank.reporting.figures.labels import rank_labels
from bayesrank.reporting.figures.palette import diverging


def tick_labels(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_leaderboard_lists_the_best_on_top(three: xr.DataTree) -> None:
    figure = plot_leaderboard(three)
    assert tick_labels(figure) == ["high  1", "middle  2", "low  3"]
    bottom, top = figure.axes[0].get_ylim()
    assert bottom > top


def test_leaderboard_shows_score_interval_and_bound(three: xr.DataTree) -> None:
    axes = plot_leaderboard(three).axes[0]
    score, bound = axes.get_lines()
    np.testing.assert_allclose(score.get_xdata(), [0.9, 0.5, 0.4])
    np.testing.assert_allclose(bound.get_xdata(), [0.82, 0.42, 0.32])
    (intervals,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    ends = [segment[:, 0] for segment in intervals.get_segments()]
    np.testing.assert_allclose(ends, [[0.8, 1.0], [0.4, 0.6], [0.3, 0.5]])


def test_leaderboard_names_the_probabilities(three: xr.DataTree) -> None:
    figure = plot_leaderboard(three)
    names = {text.get_text() for text in figure.axes[0].get_legend().get_texts()}
    assert names == {"score", "95 % interval", "lower bound (5 %)"}


def test_leaderboard_without_draws_shows_scores_alone(make_result) -> None:
    axes = plot_leaderboard(make_result([1.0, 2.0], ["a", "b"], draws=False)).axes[0]
    assert len(axes.get_lines()) == 1
    assert not axes.collections


def test_tied_systems_share_their_rank(make_result) -> None:
    figure = plot_leaderboard(make_result([0.5, 0.9, 0.5], ["a", "b", "c"]))
    assert tick_labels(figure) == ["b  1", "a  2", "c  2"]


def test_leaderboard_shows_letters_and_shades_between_borders(three: xr.DataTree) -> None:
    axes = plot_leaderboard(three).axes[0]
    assert [text.get_text() for text in axes.texts] == ["group", "a", "b", "b"]
    assert [text.get_position()[1] for text in axes.texts[1:]] == [0.0, 1.0, 2.0]
    (band,) = axes.patches
    assert (band.get_y(), band.get_height()) == (-0.5, 1.0)


def test_groups_that_overlap_have_no_border(make_result) -> None:
    chain = make_result([0.9, 0.8, 0.7], ["a", "b", "c"])
    axes = plot_leaderboard(chain).axes[0]
    assert [text.get_text() for text in axes.texts] == ["group", "a", "ab", "b"]
    assert len(axes.patches) == 3  # all three rows have one shade
    (lines,) = plot_groups(chain).axes[0].collections
    assert not lines.get_segments()


def test_figures_draw_on_the_axes_of_the_caller(three: xr.DataTree) -> None:
    from matplotlib.figure import Figure

    mine = Figure()
    left, right = mine.subplots(1, 2)
    assert plot_rank_sets(three, ax=left) is mine
    assert plot_leaderboard(three, ax=right) is mine
    assert left.get_xlabel() == "rank"
    assert {text.get_text() for text in right.get_legend().get_texts()} >= {"score"}


def test_notebooks_show_figures(three: xr.DataTree) -> None:
    assert plot_leaderboard(three)._repr_png_().startswith(b"\x89PNG")


def test_rank_probabilities_are_sorted_and_numbered(three: xr.DataTree) -> None:
    figure = plot_rank_probabilities(three)
    cells = np.asarray(figure.axes[0].get_images()[0].get_array())
    assert tick_labels(figure) == ["high  1", "middle  2", "low  3"]
    np.testing.assert_allclose(np.diag(cells), 0.8 + 0.2 / 3)
    numbers = [text.get_text() for text in figure.axes[0].texts]
    assert numbers == ["0.87", "0.07", "0.07", "0.07", "0.87", "0.07", "0.07", "0.07", "0.87"]


def test_rank_sets_show_both_sets(three: xr.DataTree) -> None:
    axes = plot_rank_sets(three).axes[0]
    joint, own = [each for each in axes.collections if isinstance(each, LineCollection)]
    ends = [segment[:, 0] for segment in joint.get_segments()]
    np.testing.assert_allclose(ends, [[0.85, 2.15], [0.85, 3.15], [1.85, 3.15]])
    ends = [segment[:, 0] for segment in own.get_segments()]
    np.testing.assert_allclose(ends, [[0.85, 2.15], [1.85, 3.15], [2.85, 3.15]])
    np.testing.assert_allclose(axes.get_lines()[0].get_xdata(), [1, 2, 3])


def test_groups_are_lines_that_no_border_crosses(three: xr.DataTree) -> None:
    axes = plot_groups(three).axes[0]
    score, first, second = axes.get_lines()
    np.testing.assert_allclose(score.get_xdata(), [0.9, 0.5, 0.4])
    assert first.get_ydata().tolist() == [0]
    assert second.get_ydata().tolist() == [1, 2]
    assert [text.get_text() for text in axes.texts] == ["a", "b"]
    (borders,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    assert [segment[0, 1] for segment in borders.get_segments()] == [0.5]


def test_superiority_is_sorted_by_rank_on_both_axes(three: xr.DataTree) -> None:
    figure = plot_superiority(three)
    cells = np.asarray(figure.axes[0].get_images()[0].get_array())
    assert tick_labels(figure) == ["high  1", "middle  2", "low  3"]
    assert (cells[np.triu_indices(3, 1)] > 0.5).all()
    assert (np.diff(cells, axis=1) > 0).all()


def test_superiority_is_colourless_at_one_half(three: xr.DataTree) -> None:
    image = plot_superiority(three).axes[0].get_images()[0]
    assert image.get_clim() == (0.0, 1.0)
    opacity = image.get_cmap()(np.array([0.0, 0.5, 1.0]))[:, 3]
    # The ends differ in grey.
    np.testing.assert_allclose(opacity, [0.7, 0.0, 1.0], atol=0.01)


def test_superiority_is_never_certain(make_result) -> None:
    figure = plot_superiority(make_result([0.0, 9.0], ["a", "b"]))
    assert [text.get_text() for text in figure.axes[0].texts] == [">0.99", "<0.01"]


def test_colours_of_grades_span_their_scale() -> None:
    ratings = [[[-1.0], [-3.5]], [[-2.0], [-9.0]]]
    for scale in ((-10, 0), (-10, 20)):
        result = rank(Responses(ratings, scale=scale), "avg", target="population", draws=0)
        assert plot_questions(result).axes[0].get_images()[0].get_clim() == scale
    result = rank(Responses([[[0], [2]], [[1], [2]]], weights=(0, 1, 3)), "avg", draws=0)
    assert plot_questions(result).axes[0].get_images()[0].get_clim() == (0, 3)


def test_superiority_without_draws_is_refused(make_result) -> None:
    tree = make_result([1.0, 2.0], ["a", "b"], draws=False)
    with pytest.raises(ValueError, match="result must have draws to show superiority"):
        plot_superiority(tree)


@pytest.mark.parametrize(
    "plot",
    [plot_leaderboard, plot_superiority, plot_rank_probabilities, plot_rank_sets, plot_groups],
)
@pytest.mark.parametrize("n_systems", [2, 5, 60])
def test_labels_neither_overlap_nor_leave_the_figure(make_result, plot, n_systems: int) -> None:
    names = [f"organisation/a-model-with-a-very-long-name-and-a-date-{i:02d}" for i in range(60)]
    scores = np.linspace(0, 1, n_systems).tolist()
    figure = plot(make_result(scores, names[:n_systems]))
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_yticklabels()]
    assert min(box.x0 for box in boxes) >= 0
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in pairwise(boxes))


def test_long_names_keep_both_ends(make_result) -> None:
    figure = plot_leaderboard(make_result([1.0], ["organisation/" + 50 * "x" + "-2026-11"]))
    (label,) = tick_labels(figure)
    assert label.startswith("organisation/")
    assert label.endswith("-2026-11  1")
    assert "\N{HORIZONTAL ELLIPSIS}" in label


def test_the_ends_of_the_superiority_map_differ_in_grey() -> None:
    ends = diverging()([0.0, 1.0])
    on_white = ends[:, :3] * ends[:, 3:] + 1.0 - ends[:, 3:]
    low, high = on_white @ (0.299, 0.587, 0.114)
    assert low - high > 0.25


def test_save_figure_leaves_only_the_whole_file(tmp_path: Path, three: xr.DataTree) -> None:
    save_figure(plot_leaderboard(three), tmp_path / "leaderboard.png")
    assert [path.name for path in tmp_path.iterdir()] == ["leaderboard.png"]
    assert (tmp_path / "leaderboard.png").read_bytes().startswith(b"\x89PNG")


def test_save_figure_leaves_nothing_when_it_fails(tmp_path: Path, three: xr.DataTree) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        save_figure(plot_leaderboard(three), tmp_path / "leaderboard.nonsense")
    assert not list(tmp_path.iterdir())


def test_figures_do_not_import_pyplot() -> None:
    """It is pyplot that would choose a window system and keep figures alive."""
    code = (
        "import sys; from bayesrank.reporting.figures import plot_leaderboard;"
        "from matplotlib.figure import Figure; Figure().savefig('/dev/null', format='png');"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("plot", [plot_leaderboard, plot_rank_probabilities])
def test_narrow_figures_keep_ranks_and_names_apart(plot: Callable[..., Figure]) -> None:
    names = [f"provider-{i % 3}/system-number-{i:02d}-instruct" for i in range(30)]
    outcomes = np.arange(40) < 2 + np.arange(30)[:, np.newaxis]
    result = rank(Responses(outcomes[..., np.newaxis].astype(int), systems=names), "avg")
    labels = tick_labels(plot(result, figsize=(4, 8)))
    shown, ranks = zip(*(label.split("  ") for label in labels), strict=True)
    assert [int(number) for number in ranks] == list(range(1, 31))
    assert len(set(shown)) == 30


def test_ranks_stay_behind_names_from_right_to_left() -> None:
    names = ["\u0646\u0645\u0648\u0630\u062c", "short"]
    ranking = xr.Dataset({"rank": ("system", [1, 2])}, {"system": names})
    first, second = rank_labels(ranking)
    assert first == f"\u200e{names[0]}\u200e  1"
    assert second == "short  2"
