"""``bayesrank rubric``, from arguments to what is printed and written."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from bayesrank import leaderboard
from bayesrank.rubrics import rank_rubrics, read_attempts

Run = Callable[..., Result]

OWN = """
[schemes.brief]
categories = ["wrong", "long", "brief"]
weights = [0, 0.5, 1]
thresholds.limit = { signal = "token_ratio", percentile = 50, by = "system" }
rules = [
    { category = "wrong", when = "not is_correct" },
    { category = "long", when = "token_ratio > limit" },
]
otherwise = "brief"
"""


@pytest.fixture
def attempts(tmp_path: Path) -> Path:
    """Write attempts of two systems: a is right more often, b keeps to the format more often."""
    rng = np.random.default_rng(5)
    size = 60
    table = pd.DataFrame({"model": ["a", "b"] * 30, "question": np.repeat(range(6), 10)})
    is_a = table["model"] == "a"
    chance, boxed = np.where(is_a, 0.8, 0.6), np.where(is_a, 0.4, 0.9)
    table["is_correct"] = (rng.random(size) < chance).astype(int)
    table["has_box"] = (rng.random(size) < boxed).astype(int)
    table["token_ratio"] = rng.random(size)
    table[["repeated_pattern", "compass_C"]] = 0
    path = tmp_path / "attempts.csv"
    table.to_csv(path, index=False)
    return path


def test_leaderboards_are_those_of_the_function(run: Run, attempts: Path):
    names = ["format_aware", "efficiency_adjusted"]
    options = ("--seed", 2, "--draws", 20, "--ci-prob", 0.8, "--by", "global")
    printed = run("rubric", attempts, "--schemes", ",".join(names), *options, "--format", "json")
    results = rank_rubrics(
        read_attempts(attempts), names, by="global", random_seed=2, draws=20, ci_prob=0.8
    )
    expected = [
        {"scheme": name, **row}
        for name in names
        for row in leaderboard(results[name]).to_dict("records")
    ]
    assert json.loads(printed.stdout) == expected


def test_all_takes_what_can_be_used_and_says_what_cannot(run: Run, attempts: Path):
    result = run("rubric", attempts, "--draws", 0)
    first, _, second = result.stdout.partition("\n\n")
    schemes = [line.split()[1] for line in first.splitlines()[1:]]
    assert schemes == ["efficiency_adjusted", "format_aware", "format_compliance"]
    assert second.splitlines()[0].split() == ["system", "1", "2", "3"]
    assert [line.split()[0] for line in second.splitlines()[1:]] == ["a", "b"]
    assert "Left out, no weights: exact_match, format_aware_2025, " in result.stderr
    assert "Left out, no column completion_bpt: conservative" in result.stderr


def test_ranks_flow_from_the_first_scheme(run: Run, attempts: Path, tmp_path: Path):
    folder = tmp_path / "out"
    weights = ("--weights", "exact_match=0,0,1", "--weights", "strict_compliance=0,0,1")
    names = "exact_match,strict_compliance"
    result = run("rubric", attempts, "--schemes", names, *weights, "--draws", 0, "-o", folder)
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[1:3] == [
        ["1", "exact_match", "1.000", "0", "0"],
        ["2", "strict_compliance", "-1.000", "2", "1"],
    ]
    assert rows[5:] == [["a", "1", "2"], ["b", "2", "1"]]
    assert sorted(path.name for path in folder.iterdir()) == [
        "leaderboards.csv",
        "rank_flow.png",
        "ranks.csv",
    ]
    ranks = pd.read_csv(folder / "ranks.csv")
    assert ranks.to_dict("list") == {
        "system": ["a", "b"],
        "exact_match": [1, 2],
        "strict_compliance": [2, 1],
    }
    assert len(pd.read_csv(folder / "leaderboards.csv")) == 4


def test_one_scheme_has_a_leaderboard_and_weights_without_a_name(
    run: Run, attempts: Path, tmp_path: Path
):
    folder = tmp_path / "out"
    options = ("--schemes", "format_aware_2025", "--weights", "0,0,1,2,3", "--draws", 0)
    lines = run("rubric", attempts, *options, "-o", folder).stdout.splitlines()
    assert lines[1].split()[:3] == ["rank", "system", "score"]
    assert [path.name for path in folder.iterdir()] == ["leaderboards.csv"]


def test_own_schemes_are_read_from_a_file(run: Run, attempts: Path, tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(OWN)
    options = ("--file", path, "--draws", 0, "--format", "csv")
    printed = run("rubric", attempts, "--schemes", "brief", *options).stdout
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [row["scheme"] for row in rows] == ["brief", "brief"]
    everything = run("rubric", attempts, *options).stdout
    assert "brief" in {row["scheme"] for row in csv.DictReader(io.StringIO(everything))}


def test_schemes_are_listed_with_their_weights(run: Run):
    options = ("--list", "--schemes", "conservative,exact_match", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run("rubric", *options).stdout)))
    assert [(row["no"], row["weight"]) for row in rows if row["scheme"] == "conservative"] == [
        ("0", "0"),
        ("1", "-0.1"),
        ("2", "0.05"),
        ("3", "1"),
    ]
    assert [row["weight"] for row in rows if row["scheme"] == "exact_match"] == [""] * 3


def test_the_bundled_example_is_the_default(run: Run):
    options = ("--schemes", "conservative,verifier_only", "--draws", 0, "--format", "markdown")
    lines = run("rubric", *options).stdout.splitlines()
    assert lines[0].startswith("| no | scheme |")
    assert "| Qwen3-Thinking (sim) | 1 | 1 |" in lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--schemes", "best"), "schemes must be among exact_match"),
        (("--schemes", "exact_match"), "add --weights exact_match=W,W,... for Invalid, Wrong"),
        (("--schemes", "ood_robust"), "table must have a column 'prompt_bpt'"),
        (("--weights", "0,1"), "--weights must be NAME=W,W,... for several schemes; got '0,1'"),
        (("--weights", "best=0,1"), "--weights must be given once for a chosen scheme"),
        (("--schemes", "format_aware", "--weights", "a,b"), "--weights must be numbers between"),
        (("--schemes", "format_aware", "--weights", "0,1"), "weights must be 5 numbers"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    run: Run, attempts: Path, options: tuple[str, ...], message: str
):
    result = run("rubric", attempts, *options, code=2)
    assert message in result.stderr.splitlines()[-1]
    assert result.stdout == ""


def test_a_table_without_signals_is_refused(run: Run, tmp_path: Path):
    path = tmp_path / "log.csv"
    path.write_text("system,question,outcome\na,q,1\n")
    result = run("rubric", path, code=2)
    assert "ATTEMPTS must have the columns of a scheme with weights" in result.stderr


def test_a_file_that_is_no_toml_is_named(run: Run, attempts: Path):
    message = run("rubric", attempts, "--file", attempts, code=2).stderr
    assert f"Error: --file must hold schemes in TOML; got '{attempts}': " in message
