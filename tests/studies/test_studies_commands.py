"""The command that makes the tables."""

import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from bayesrank import read_responses, studies
from bayesrank.commands.cli import main
from bayesrank.commands.studies import study


@pytest.fixture
def log(tmp_path):
    """Write a log of four systems with three trials of eight questions."""
    rng = np.random.default_rng(0)
    lines = ["model,question,trial,outcome"]
    for system, chance in (("a", 0.9), ("b", 0.7), ("c", 0.5), ("d", 0.2)):
        for question in range(8):
            lines += [f"{system},q{question},{t},{int(rng.random() < chance)}" for t in range(3)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines))
    return path


def test_tables_are_printed_and_written(log, tmp_path):
    arguments = [str(log), "--methods", "avg, borda", "--draws", "3", "--pools", "2"]
    result = CliRunner().invoke(study, [*arguments, "-o", str(tmp_path / "tables")])
    assert result.exit_code == 0, result.output
    assert "Agreement from few trials with the gold standard (tau)" in result.stdout
    written = pd.read_csv(tmp_path / "tables" / "stability.csv")
    expected = studies.published_tables(read_responses(log), ["avg", "borda"], draws=3, pools=2)
    pd.testing.assert_frame_equal(written, expected["stability"])


SMALL = ("--methods", "avg, pass_at_k(k=2)", "--draws", "2", "--pools", "0")


def test_methods_have_options_and_several_numbers_of_trials(log, tmp_path):
    result = CliRunner().invoke(study, [str(log), *SMALL, "--n", "2,3", "-o", str(tmp_path / "t")])
    assert result.exit_code == 0, result.output
    written = pd.read_csv(tmp_path / "t" / "stability.csv")
    assert sorted(set(written["n_trials"])) == [2, 3]
    listed = ", ".join(written["methods"]).split(", ")
    assert set(listed) == {"avg", "pass_at_k(k=2)"}
    assert not (tmp_path / "t" / "pools.csv").exists()


def test_tables_by_benchmark(tmp_path):
    result = CliRunner().invoke(
        study,
        ["--methods", "avg", "--draws", "80", "--pools", "0", "--by", "benchmark"]
        + ["-o", str(tmp_path)],
    )
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "stability.csv").set_index("benchmark")
    assert table.index.tolist() == ["AIME'24", "HMMT'25", "AIME'25", "BrUMO'25", "pooled"]
    assert table.loc["HMMT'25", "tau_mean"] == pytest.approx(0.7816, abs=5e-5)
    np.testing.assert_allclose(table["self_mean"], table["tau_mean"])  # avg is the gold standard
    greedy = pd.read_csv(tmp_path / "greedy.csv").set_index(["benchmark", "prior"])
    assert greedy.loc[("HMMT'25", "greedy"), "alignment"] == pytest.approx(0.635, abs=5e-4)
    assert (greedy["tau_min"] <= greedy["tau_mean"]).all()


def test_a_task_is_one_benchmark_of_the_bundled_example():
    result = CliRunner().invoke(study, ["--task", "HMMT'25", "--methods", "avg", "--pools", "0"])
    assert result.exit_code == 0, result.output
    assert "0.782" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "AIME'99"), "--task must be one of AIME'24, .* without INPUT; got \"AIME'99\""),
        (("--scorer", "x"), "--scorer must be left out for the bundled example; got 'x'"),
        (("--input-format", "npz"), "--input-format must be left out"),
        (("--n", "1,x"), "--n must be whole numbers, separated by commas; got '1,x'"),
        (("--n", "81"), "n must be integers from 1 to 80; got 81"),
        (("--methods", "nothing"), "methods must be among"),
        (("--pools", "-1"), "pools must be an integer of at least 0; got -1"),
    ],
)
def test_arguments_are_checked(run, arguments, message):
    result = run("study", *arguments, code=2)
    assert re.search(message, result.stderr)


def test_logs_are_asked_for_what_they_have(run, log):
    assert "got 'x'" in run("study", log, "--task", "x", code=2).stderr
    message = run("study", log, "--by", "benchmark", code=2).stderr
    assert "--by benchmark must have logs that name the benchmark of each question" in message


def test_logs_that_name_the_benchmark_are_studied_by_it(tmp_path, run):
    rng = np.random.default_rng(0)
    rows = [
        (system, f"q{question}", trial, int(rng.random() < chance), "ab"[question % 2])
        for system, chance in (("s", 0.9), ("t", 0.6), ("u", 0.2))
        for question in range(8)
        for trial in range(3)
    ]
    columns = ["model", "question", "trial", "outcome", "benchmark"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "log.csv", index=False)
    arguments = ("--methods", "avg", "--draws", "2", "--by", "benchmark", "--checkpoint")
    result = run("study", tmp_path / "log.csv", *arguments, tmp_path / "work")
    shown = {line.split()[0] for line in result.stdout.splitlines() if line.strip()}
    assert {"a", "b", "pooled"} <= shown
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"a", "b", "pooled"}


def test_the_bundled_example_is_the_default():
    result = CliRunner().invoke(
        study, ["--methods", "avg", "--draws", "2", "--pools", "1", "--seed", "3"]
    )
    assert result.exit_code == 0, result.output
    assert "Greedy runs in the prior" in result.stdout
    assert "adaptive" in result.stdout


def test_one_run_has_no_tables_of_fewer_trials(tmp_path):
    log = tmp_path / "one_run.csv"
    right = np.random.default_rng(3).integers(0, 2, (3, 8))
    rows = [f"{'abc'[s]},q{i},{one}" for (s, i), one in np.ndenumerate(right)]
    log.write_text("\n".join(["model,question,outcome", *rows]))
    result = CliRunner().invoke(main, ["study", str(log), "--methods", "avg,borda"])
    assert result.exit_code == 0, result.output
    assert "from all trials" in result.stdout
    assert "from few trials" not in result.stdout
    lines = result.stdout.splitlines()
    (header,) = (line for line in lines if line.startswith("n methods"))
    assert header.endswith("  methods")  # numbers before names, which may be dozens
    assert "no system has more than 1 of a question" in result.stderr
    tables = studies.published_tables(read_responses(log), ["avg"])
    assert list(tables) == ["accuracy", "agreement"]
    with pytest.raises(ValueError, match="n must be integers from 1 to 1; got 2"):
        studies.published_tables(read_responses(log), ["avg"], n=2)
