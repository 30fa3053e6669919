"""One question about one file has one answer, whichever function or command is asked.

Is A better than B? The answers of rank, superiority, evaluate, plan, should_stop and report are
held together, as are what they say is resolved.
"""

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import Result

from bayesrank import Responses, evaluate, leaderboard, rank, superiority
from bayesrank.catalog import default_method
from bayesrank.evaluation import compare, rank_with_intervals
from bayesrank.planning import plan_pairs, should_stop
from bayesrank.readers import read_responses
from bayesrank.reporting.wording import headline
from bayesrank.results.numbers import probability_text
from bayesrank.results.storage import load

Run = Callable[..., Result]

SHAPES = {
    "complete": (3, 20, 6),
    "two systems": (2, 24, 4),
    "single trials": (4, 60, 1),
    "missing outcomes": (3, 25, 4),
    "missing questions": (3, 40, 1),
}


@pytest.fixture(params=SHAPES)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Write outcomes of systems that are hard to tell apart."""
    rng = np.random.default_rng(list(SHAPES).index(request.param) + 1)
    n_systems, n_questions, _ = shape = SHAPES[request.param]
    ability, difficulty = np.linspace(0.6, 0.0, n_systems), rng.normal(size=n_questions)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    outcomes = (rng.random(shape) < chance[..., None]).astype(int)
    lines = ["system,question,trial,outcome"]
    for (system, question, trial), outcome in np.ndenumerate(outcomes):
        if "missing" not in request.param or rng.random() > 0.2:
            lines.append(f"system {system},q{question},{trial},{outcome}")
    path = tmp_path / "outcomes.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def data(file: Path) -> Responses:
    return read_responses([file])


@pytest.fixture
def result(data: Responses) -> xr.DataTree:
    return rank(data, default_method(data))


def pairs_of(table: pd.DataFrame) -> Iterator[tuple[str, str, pd.Series]]:
    for _, row in table.iterrows():
        yield row["system"], row["opponent"], row


def assert_same_pairs(table: pd.DataFrame, result: xr.DataTree) -> None:
    """Hold superiority and resolution of pairs to those of a ranking."""
    better, ranking = superiority(result), result["ranking"]
    assert len(table)
    for system, opponent, row in pairs_of(table):
        assert row["superiority"] == better.loc[system, opponent]
        resolved = ranking["resolved"].sel(system=system, opponent=opponent).item()
        assert row["resolved"] == resolved


def test_pairs_are_those_of_the_ranking(data: Responses, result: xr.DataTree):
    assert_same_pairs(compare(data), result)
    assert_same_pairs(plan_pairs(data), result)
    forecast = plan_pairs(data, further=0)
    np.testing.assert_array_equal(forecast["superiority_then"], forecast["superiority"])
    np.testing.assert_array_equal(forecast["resolved_then"], forecast["resolved"])


def test_the_accuracy_is_that_of_the_leaderboard(data: Responses, result: xr.DataTree):
    board = leaderboard(result).set_index("system")
    table = evaluate(data).set_index("system").loc[board.index]
    np.testing.assert_array_equal(table["score"], board["score"])
    np.testing.assert_array_equal(table["lower"], board["score_lower"])
    np.testing.assert_array_equal(table["upper"], board["score_upper"])
    ranks = rank_with_intervals(data).set_index("system").loc[board.index]
    joint = result["ranking"].to_dataset().sel(system=board.index.to_list())
    np.testing.assert_array_equal(ranks["rank"], board["rank"])
    np.testing.assert_array_equal(ranks["rank_lower"], joint["joint_rank_lower"])
    np.testing.assert_array_equal(ranks["rank_upper"], joint["joint_rank_upper"])


def test_stopping_has_the_probabilities_of_the_ranking(data: Responses, result: xr.DataTree):
    decision = should_stop(data)
    best = leaderboard(result).iloc[0]
    assert decision.answer == (best["system"],)
    assert 1 - decision.error == pytest.approx(best["prob_best"], abs=1e-12)
    if len(data.systems) == 2:
        other = leaderboard(result)["system"].iloc[1]
        better = superiority(result).loc[best["system"], other]
        assert 1 - decision.error == pytest.approx(better, abs=1e-12)
    assert decision.stop == ("resolved from every other" in headline(result))
    deciding = plan_pairs(data, goal="best")
    assert decision.stop == deciding["resolved"].all()
    assert decision.stop == (deciding["further_trials_needed"] == 0).all()


@pytest.mark.parametrize("seed", [(), ("--seed", 5)], ids=["no seed", "seed"])
def test_commands_give_one_answer(run: Run, file: Path, tmp_path: Path, seed: tuple[object, ...]):
    saved, page = tmp_path / "result.nc", tmp_path / "page.html"
    board = json.loads(run("rank", file, *seed, "--format", "json", "-o", saved).stdout)
    result = load(saved)
    as_json = ("--format", "json", *seed)
    assert_same_pairs(read_json(run("evaluate", file, "--pairs", *as_json)), result)
    planned = run("plan", file, *as_json)
    assert_same_pairs(read_json(planned), result)
    estimates = read_json(run("evaluate", file, *as_json)).set_index("system")
    for row in board:
        assert estimates.loc[row["system"], "score"] == row["score"]
        assert estimates.loc[row["system"], "lower"] == row["score_lower"]

    (verdict,) = [line for line in planned.stderr.splitlines() if "trials are needed" in line]
    wrong = re.search(r"probability of error (less than )?([\d.]+)", verdict)
    assert wrong is not None
    error = 1 - board[0]["prob_best"]
    assert error < 0.001 if wrong[1] else float(wrong[2]) == pytest.approx(error, rel=0.05)
    assert ("no more trials" in verdict) == (read_json(planned)["resolved"].all())

    run("report", file, *seed, "-o", page)
    text = page.read_text(encoding="utf-8")
    assert headline(result) in html.unescape(text).replace("\N{NO-BREAK SPACE}", " ")
    better = superiority(result)
    cells = next(
        found
        for found in map(json.loads, map(html.unescape, re.findall('data-cells="([^"]*)"', text)))
        if "is better than" in found["sentence"]
    )
    for name, codes in zip(cells["rows"], cells["values"], strict=True):
        shown = dict(zip(cells["columns"], (cells["texts"][code] for code in codes), strict=True))
        for other in better.columns:
            assert shown[other] == probability_text(better.loc[name, other])


def read_json(result: Result) -> pd.DataFrame:
    return pd.DataFrame(json.loads(result.stdout))


def test_another_question_is_said_to_be_one(run: Run, file: Path):
    asked = "avg, pass_at_k(k=1), pass_at_k(k=1, estimator='posterior_mean')"
    notes = run("evaluate", file, "--metrics", asked).stderr
    for metric, flags in {"avg": "avg", "pass_at_k(k=1)": "pass_at_k --k 1"}.items():
        assert f"{metric}: as `bayesrank rank --method {flags}`, target" in notes
    assert "as `bayesrank rank`, target" in run("evaluate", file).stderr
    assert "'posterior_mean'): more trials on these questions, target benchmark" in notes
