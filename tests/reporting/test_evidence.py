"""The line above a leaderboard, and the notes below it."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from click.testing import Result

from bayesrank import Comparisons, Responses, leaderboard, rank
from bayesrank.layout import fit_width, to_text
from bayesrank.reporting.evidence import few_note, leader_notes, notes, run_line, shrunk_note
from bayesrank.reporting.page import report
from bayesrank.reporting.tables import leaderboard_columns
from bayesrank.results.rating_scale import mark_preliminary

Run = Callable[..., Result]

SHRUNK = "The score is shrunk towards 0.5, the prior mean, by its Dirichlet prior; observed"


def uneven() -> Responses:
    """Return a system with 4 outcomes beside two with 40, and two trials of every question."""
    outcomes = np.ones((3, 20, 2), dtype=int)
    outcomes[1, ::2] = 0
    outcomes[2, 2:] = -1
    return Responses(outcomes, systems=["best", "half", "short"])


def cells(result: xr.DataTree, header: str) -> list[str]:
    (column,) = [each for each in leaderboard_columns(result) if each.header == header]
    return column.cells


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (Responses(np.eye(8, 9)), "9 questions each)"),
        (Responses(np.ones((2, 5, 4), dtype=int)), "20 outcomes on 5 questions each)"),
        (Responses([[[1]], [[0]]]), "1 question each, few)"),
        (uneven(), "target benchmark)"),
        (Responses([[[1, 1, 0, 1, 1, 0]], [[0, 1, 0, 1, -1, -1]]]), "1 question each)"),
        (Responses([[0, 50, 100]], scale=(0, 100)), "scores from 0 to 100, 3 questions each, few)"),
        (Comparisons([[0, 7], [2, 0]]), "target battles, 9 battles each)"),
    ],
)
def test_what_systems_have_in_common_is_said_once(data, said: str) -> None:
    method = "davidson" if isinstance(data, Comparisons) else "avg"
    target = None if isinstance(data, Comparisons) else "benchmark"
    assert run_line(rank(data, method, target=target, draws=0)).endswith(said)


@pytest.mark.parametrize(
    ("unit", "target", "said"),
    [
        ("trial", "benchmark", "target benchmark, 80 outcomes"),
        ("question", "population", "target population, 80 outcomes"),
        ("run", "benchmark", "target benchmark, unit run, 80 outcomes"),
        ("run,question", "population", "target population, unit run,question, 80 outcomes"),
    ],
)
def test_a_unit_that_somebody_chose_is_said(unit: str, target: str, said: str) -> None:
    outcomes = np.random.default_rng(0).integers(0, 2, size=(3, 10, 8))
    result = rank(outcomes, target=target, unit=unit, random_seed=1)
    assert said in run_line(result)


def test_little_evidence_is_marked_and_explained() -> None:
    result = rank(uneven(), "avg", target="benchmark", draws=0)
    assert cells(result, "n") == ["40", "4 few", "40"]
    assert cells(result, "questions") == ["20", "2", "20"]
    (said,) = notes(result)
    assert said.startswith("few: fewer than 6 outcomes, or less than a quarter of the median")


def test_a_lead_on_little_evidence_is_said() -> None:
    outcomes = np.array([[1, 1, 1, -1, -1, -1, -1, -1], [1, 1, 1, 1, 1, 1, 1, 0]])
    result = rank(Responses(outcomes, systems=["lucky", "tested"]), "avg", draws=0)
    assert leader_notes(result) == ["The lead of lucky is based on 3 outcomes."]
    assert leader_notes(rank(uneven(), "avg", target="benchmark", draws=0)) == [
        "The lead of short is based on 4 outcomes."  # it shares the lead
    ]


def test_battles_are_not_called_outcomes() -> None:
    wins = np.array([[0, 2, 2, 2], [0, 0, 30, 30], [0, 30, 0, 30], [0, 30, 30, 0]])
    result = rank(Comparisons(wins), "colley", draws=0)
    assert leader_notes(result) == ["The lead of system 1 is based on 6 battles."]
    assert notes(result) == [few_note(6, "battle")]
    assert notes(mark_preliminary(result, 1)) == [few_note(6, "battle")]
    # Its mark replaces the other one, which then needs no definition.
    assert notes(mark_preliminary(result, 7)) == ["preliminary: fewer than 7 battles."]


def test_shrinkage_is_towards_the_mean_of_the_weights() -> None:
    data = Responses([[[0, 2, 1, 1, 0, 0, 1]]], weights=[0, 1, 5])
    (said,) = notes(rank(data, "bayes", target="benchmark", draws=0))
    assert said.startswith("The score is shrunk towards 2, the prior mean")
    # What pulls: with ever more questions without outcomes the score is the mean weight.
    data = Responses([[[0], *[[-1]] * 10_000], [[0]] * 10_001], weights=[0, 1, 5])
    score = rank(data, "bayes", target="benchmark", draws=0)["ranking"]["score"]
    assert score[0] == pytest.approx(2.0, abs=1e-3)
    assert "towards 2, " in shrunk_note(2.0)


def test_notebooks_say_it_too() -> None:
    data = uneven()
    bayes, avg = (leaderboard(rank(data, name, random_seed=1)) for name in ("bayes", "avg"))
    assert SHRUNK in (bayes._repr_html_() or "")
    assert SHRUNK not in (avg._repr_html_() or "")


def test_pages_say_what_scale_outcomes_are_on(tmp_path: Path) -> None:
    data = Responses([[3, 4, 5], [1, 2, 2]], scale=(1, 5))
    page = report(rank(data, "avg", draws=0), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "scores from 1 to 5" in page


def test_pages_say_it_too(tmp_path: Path) -> None:
    results = [rank(uneven(), name, target="benchmark", random_seed=1) for name in ("avg", "bayes")]
    page = report(results, tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"bayes: {SHRUNK}" in page
    assert "few: fewer than 6 outcomes" in page
    assert ">4 few<" in page
    headers = [">observed<", ">n<", ">questions<"]
    assert all(header in page for header in headers)
    assert page.count("is based on 4 outcomes.") == 1


@pytest.mark.parametrize("names", [["a", "b"], ["mockllm/a-name-of-20", "b" * 20], ["x" * 23, "y"]])
def test_terminal_tables_are_no_wider_than_100(run: Run, tmp_path: Path, names: list[str]) -> None:
    rows = [f"{name},q{q},{t},{int(q > i)}" for i, name in enumerate(names) for q in range(12)
            for t in range(9)]  # fmt: skip
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["model,question,trial,score", *rows[:-20]]))
    for method in ("bayes", "avg"):
        result = run("rank", path, "--seed", 1, "--method", method)
        assert max(map(len, result.stdout.splitlines())) <= 100
        assert "observed" in result.stdout
        assert "Pr(best)" in result.stdout
        if "lcb rank" not in result.stdout:
            assert "Columns left out: " in result.stderr
            assert "lcb rank. --format csv has all of them" in result.stderr


def test_numbers_that_are_the_same_are_printed_once(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "one_run.csv"
    rows = [f"a,q{q},{q % 2}" for q in range(9)] + [f"b,q{q},1" for q in range(7)]
    path.write_text("\n".join(["model,question,score", *rows]))
    header = run("rank", path, "--method", "avg").stdout.splitlines()[1].split()
    assert "n" in header
    assert "questions" not in header


def test_one_system_has_no_columns_of_ranks(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "one_system.csv"
    rows = [f"a,q{q},{trial},{(q + trial) % 2}" for q in range(9) for trial in range(2)]
    path.write_text("\n".join(["model,question,trial,score", *rows]))
    printed = run("rank", path)
    assert "95% interval" in printed.stdout
    assert not re.search(r"Pr\(best\)|lcb rank|ranks|group", printed.stdout)
    assert "prob_best" in run("rank", path, "--format", "csv").stdout


def test_what_can_be_spared_goes_in_a_stated_order() -> None:
    columns = leaderboard_columns(rank(uneven(), "avg", target="benchmark", random_seed=1))
    headers = [each.header for each in columns]
    full = len(to_text(columns).splitlines()[0])
    assert [each.header for each in fit_width(columns, full)] == headers
    left_out = []
    for width in range(full, 0, -1):
        kept = {each.header.replace("\n", " ") for each in fit_width(columns, width)}
        left_out += [name for name in headers if name not in kept and name not in left_out]
    assert left_out == ["lcb rank", "lcb 5%", "questions", "observed", "Pr(best)"]
