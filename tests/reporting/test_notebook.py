"""What notebooks show."""

import re
import subprocess
import sys

import pytest
import xarray as xr

from bayesrank import Battles, Responses, evaluate, leaderboard, rank
from bayesrank.reporting.notebook import leaderboard_html, responses_html
from bayesrank.results.storage import save

DATA = Responses([[[1, 1], [1, 0]], [[1, 0], [0, -1]]], systems=["good", "<bad>"])


def test_data_are_shown_with_what_is_missing() -> None:
    html = responses_html(DATA)
    assert "<caption>Responses(2 systems, 2 questions, 2 trials, 1 outcome missing)" in html
    assert "<td>7 of 8 possible</td>" in html


def test_systems_are_sorted_by_mean_grade_and_escaped() -> None:
    html = responses_html(DATA)
    assert re.findall(r'data-key="(0\.\d+)"', html) == ["0.750", "0.250"]
    assert '<td style="text-align: right" data-key="0.750">0.750</td>' in html
    assert "&lt;bad&gt;" in html
    assert "<bad>" not in html


def test_categories_without_worth_have_no_grades() -> None:
    assert "Systems by mean grade" not in responses_html(Responses([[[0, 1, 2]]], categories=3))


def test_mean_grades_are_in_the_units_of_the_scale() -> None:
    html = responses_html(Responses([[[9, 10]], [[6, 7]]], scale=(1, 10)))
    assert re.findall(r'data-key="(\d\.\d+)"', html) == ["9.500", "6.500"]


def test_many_systems_are_cut() -> None:
    html = responses_html(Responses([[[1]]] * 70))
    assert "Systems by mean grade, and 50 more" in html


@pytest.fixture
def tree() -> xr.DataTree:
    return rank(DATA, "bayes", random_seed=1)


def test_leaderboard_is_rounded_as_in_text(tree: xr.DataTree) -> None:
    frame = leaderboard(tree)
    frame.attrs.update(tree["ranking"].attrs)
    html = leaderboard_html(frame)
    assert html is not None
    assert "95% interval" in html
    assert 'title="Point estimate; higher is better."' in html
    assert len(re.findall(r'<th scope="row"', html)) == 2


def test_parts_of_a_leaderboard_are_plain_frames(tree: xr.DataTree) -> None:
    frame = leaderboard(tree)
    frame.attrs.clear()
    assert leaderboard_html(frame) is None  # which probabilities the intervals have is not known
    frame.attrs.update(tree["ranking"].attrs)
    assert leaderboard_html(frame[["rank", "score"]]) is None


def test_notebooks_show_data_and_leaderboards(tree: xr.DataTree) -> None:
    assert DATA._repr_html_() == responses_html(DATA)
    frame = leaderboard(tree)
    assert frame._repr_html_() == leaderboard_html(frame)
    assert "dataframe" in frame[["rank", "score"]]._repr_html_()
    stated = {"ci_prob": 0.95, "lcb": 0.05, "shrunk_towards": 0.5}
    assert frame.sort_values("lcb").attrs == stated


def test_a_result_shows_its_leaderboard_before_its_groups(tree: xr.DataTree, tmp_path) -> None:
    path = save(tree, tmp_path / "result.nc")
    pytest.importorskip("IPython", reason="needs the extra docs")
    code = (
        "import bayesrank as br, arviz as az\n"
        "from IPython import get_ipython\n"
        "show = get_ipython().display_formatter.formatters['text/html']\n"
        "show.enabled = True\n"
        f"for tree in (br.rank([[[1, 1]], [[0, 1]]]), az.from_netcdf({str(path)!r})):\n"
        "    html = show(tree)\n"
        "    print(0 < html.index('<caption>Leaderboard') < html.index('posterior'))\n"
        "print('Leaderboard' in show(tree['posterior']))\n"
    )
    command = [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-3:] == ["True", "True", "False"], done.stdout + done.stderr


def test_battles_are_shown_by_win_rate() -> None:
    log = Battles(["<a>", "b", "<a>"], ["b", "c", "c"], ["<a>", "tie", "<a>"])
    html = log._repr_html_() or ""
    assert "<td>1 of 3 (33.3 %)</td>" in html
    assert re.findall(r'data-key="([01]\.\d+)"', html) == ["1.000", "0.250", "0.250"]
    assert "&lt;a&gt;" in html
    assert "<a>" not in html


def test_metrics_are_rounded_and_parts_are_plain_frames() -> None:
    table = evaluate(DATA, ["avg", "bayes"], random_seed=1)
    assert "<caption>Metrics with their intervals</caption>" in table._repr_html_()
    assert "<caption>" not in table[["system", "mean"]]._repr_html_()
