"""``bayesrank evaluate`` and ``bayesrank plan``, from arguments to what is printed and written."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from bayesrank.commands.evaluation import _say_whether_to_stop
from bayesrank.evaluation import compare, evaluate
from bayesrank.planning import StopDecision, plan_pairs, plan_widths, should_stop
from bayesrank.readers import read_responses
from bayesrank.results.storage import load

Run = Callable[..., Result]


def test_evaluate_prints_the_table_of_the_function(run: Run, log: Path):
    metrics = "bayes, pass_at_k(k=2)"
    printed = run("evaluate", log, "--metrics", metrics, "--format", "json").stdout
    expected = evaluate(read_responses([log]), ["bayes", "pass_at_k(k=2)"]).to_dict("records")
    assert json.loads(printed) == expected
    noted = run("evaluate", log, "--metrics", metrics).stderr
    assert "pass_at_k(k=2): as `bayesrank rank --method pass_at_k --k 2`, target" in noted


def test_metrics_with_commas_of_their_own_stay_whole(run: Run, log: Path):
    first = "bayes(weights=(0, 2)),avg"
    second = "g_pass_at_k_tau(k=2, tau=0.5)"
    printed = run(
        "evaluate", log, "--metrics", first, "--metrics", second, "--format", "csv"
    ).stdout
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [row["metric"] for row in rows[:3]] == ["bayes(weights=(0, 2))", "avg", second]


def test_evaluate_prints_rounded_numbers_for_people(run: Run, log: Path):
    lines = run("evaluate", log, "--metrics", "avg").stdout.splitlines()
    headers = ["system", "metric", "score", "observed", "mean", "sd", "95% interval"]
    assert re.split(r"\s{2,}", lines[0]) == headers
    assert [line.split()[:3] for line in lines[1:]] == [
        ["good", "avg", "0.60"],
        ["fair", "avg", "0.42"],
        ["bad", "avg", "0.20"],
    ]
    markdown = run("evaluate", log, "--metrics", "avg", "--format", "markdown").stdout
    assert markdown.splitlines()[0].startswith("| system | metric |")


def test_pairs_are_those_of_the_function(run: Run, log: Path):
    printed = run("evaluate", log, "--pairs", "--ci-prob", 0.9, "--format", "json").stdout
    assert json.loads(printed) == compare(read_responses([log]), ci_prob=0.9).to_dict("records")
    refused = run("evaluate", log, "--pairs", "--interval", "normal", code=2)
    assert "--interval goes with metrics of systems" in refused.stderr


def test_evaluate_writes_inference_data(run: Run, log: Path, tmp_path: Path):
    path = tmp_path / "evaluation.nc"
    run("evaluate", log, "--metrics", "bayes", "--draws", 20, "--seed", 1, "-o", path)
    tree = load(path)
    assert dict(tree["posterior"]["score"].sizes) == {
        "chain": 4,
        "draw": 20,
        "system": 3,
        "metric": 1,
    }


def test_unknown_metrics_are_said_in_one_line(run: Run, log: Path):
    result = run("evaluate", log, "--metrics", "best", code=2)
    assert "metrics must be among bayes, avg" in result.stderr
    assert result.stdout == ""


def test_plan_tabulates_pairs_and_says_whether_to_stop(run: Run, log: Path):
    result = run("plan", log, "--error", 0.01, "--format", "json")
    pairs = plan_pairs(read_responses([log]), goal="best", error=0.01)
    assert json.loads(result.stdout) == pairs.to_dict("records")
    verdict = result.stderr.splitlines()[-1]
    assert verdict.startswith("good: more trials are needed (probability of error 0.")
    assert verdict.endswith(", above 0.01)")


def test_plan_says_where_deciding_all_pairs_at_once_asks_for_more(run: Run, tmp_path: Path):
    # Many pairs besides the one on which the answer turns.
    lines = ["system,question,trial,outcome"]
    for system, right in (("first", 7), ("second", 5), *((f"other {i}", 3) for i in range(8))):
        for question in range(12):
            lines += [f"{system},q{question},{trial},{int(trial < right)}" for trial in range(9)]
    path = tmp_path / "many.csv"
    path.write_text("\n".join(lines))
    decision = should_stop(read_responses([path]), error=0.003)
    assert decision.error < 0.003 < decision.joint_error
    verdict = run("plan", path, "--error", 0.003).stderr.splitlines()[-1]
    assert verdict.startswith("first: more trials are needed (probability of error ")
    assert verdict.endswith(" in a joint decision for all pairs, above 0.003)")


def test_plan_says_where_only_more_questions_help(run: Run, tmp_path: Path):
    path = tmp_path / "benchmarks.csv"
    path.write_text("model,a,b,c,d,e,f,g\nx,91,80,70,66,52,83,90\ny,90,82,69,67,51,80,92\n")
    said = "inf: the scores are equal so far, or more trials on these questions cannot resolve"
    assert said in run("plan", path, "--wide", "--scale", "0,100").stderr


@pytest.mark.parametrize(
    ("error", "allowed", "said"),
    [
        (0.3753, 0.05, "error 0.38, above 0.05"),
        (0.0512, 0.05, "error 0.051, above 0.05"),
        (0.05003, 0.05, "error 0.05003, above 0.05"),
        (0.0544, 0.0541, "error 0.0544, above 0.0541"),
    ],
)
def test_the_error_of_a_plan_has_the_digits_of_its_draws(error: float, allowed: float, said: str):
    decision = StopDecision(False, error, error, ("a",))
    assert said in _say_whether_to_stop(decision, allowed, "trials")


@pytest.mark.filterwarnings("always")
def test_a_plan_prints_each_warning_once(run: Run, tmp_path: Path):
    path = tmp_path / "one_question.csv"
    path.write_text("model,question,score\na,q,1\nb,q,0\n")
    said = run("plan", path).stderr
    assert said.count("1 question is too few to estimate how scores vary") == 1


def test_plan_forecasts_further_trials(run: Run, log: Path):
    table = json.loads(run("plan", log, "--further", 0, "--format", "json").stdout)
    assert all(row["superiority_then"] == row["superiority"] for row in table)
    refused = run("plan", log, "--further", 3, "--budget", 2, code=2)
    assert "--further goes with the table of pairs" in refused.stderr


def test_plan_narrows_intervals(run: Run, log: Path):
    goal = ("--goal", "width", "--width", 0.3, "--error", 0.1)
    result = run("plan", log, *goal, "--further", 2, "--format", "json")
    table = plan_widths(read_responses([log]), 0.3, ci_prob=0.9, further=2)
    assert json.loads(result.stdout) == table.to_dict("records")
    wide = int((~table["reached"]).sum())
    verdict = f"more trials are needed ({wide} of 3 intervals are wider than 0.3)"
    assert result.stderr.splitlines()[-1] == verdict
    enough = run("plan", log, "--goal", "width", "--width", 1).stderr.splitlines()[-1]
    assert enough == "no more trials are needed (all intervals are at most 1 wide)"
    for options in (("--goal", "width"), ("--width", 0.3)):
        assert "--width goes with --goal width" in run("plan", log, *options, code=2).stderr
    for options in (("--budget", 2), ("--top", 1)):
        refused = run("plan", log, *goal, *options, code=2).stderr
        assert "--budget and --top go with other goals than width" in refused


def test_plan_suggests_trials_for_a_budget(run: Run, log: Path):
    goal = ("--goal", "top_k", "--top", 2)
    result = run("plan", log, "--budget", 5, *goal, "--error", 0.4, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert sum(int(row["trials"]) for row in rows) == 5
    verdict = result.stderr.splitlines()[-1]
    assert verdict.startswith("good, fair: no more trials are needed (probability of error 0.0")
    assert verdict.endswith(", below 0.4)")


def test_a_plan_leaves_out_systems_without_outcomes(run: Run, tmp_path: Path):
    rows = [
        f"{name},{q},{t},{int(q < n)}"
        for name, n in (("a", 5), ("b", 3))
        for q in range(8)
        for t in (0, 1)
    ]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["model,question,trial,score", *rows, "c,0,0,", ""]))
    for arguments in ((), ("--budget", 8), ("--goal", "width", "--width", 0.1)):
        result = run("plan", path, "--format", "json", *arguments)
        assert "leaves out what has no outcome: c" in result.stderr
        assert {row["system"] for row in json.loads(result.stdout)} <= {"a", "b"}
