"""The commands that report, check, cite and complete, and what all commands share."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from bayesrank import METHODS
from bayesrank.checking.verdicts import TOPICS
from bayesrank.commands.cli import main

Run = Callable[..., Result]


def test_report_writes_one_page(run: Run, log: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    methods = "bayes, pass_at_k(k=2),borda"
    options = ("--methods", methods, "--title", "My systems", "--seed", 1, "--draws", 50)
    result = run("report", log, *options, "-o", page)
    text = page.read_text(encoding="utf-8")
    assert "<h1>My systems</h1>" in text
    assert "good leads" in text
    assert ">pass_at_k(k=2)" in text
    assert f"Wrote {page}" in result.stderr
    assert result.stdout == ""


def test_report_takes_saved_results(run: Run, log: Path, tmp_path: Path) -> None:
    saved, page = tmp_path / "result.nc", tmp_path / "report.html"
    run("rank", log, "--method", "avg", "--seed", 1, "-o", saved)
    run("report", saved, "-o", page)
    assert "Mean grade over questions: avg (" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("bayes,elro", "did you mean elo?"),
        (
            "pass_at_k(kk=2)",
            "options of pass_at_k must be among: k, estimator, prior_weight; got 'kk'",
        ),
        ("pass_at_k", "k must be given for pass_at_k"),
        ("bayes)", "methods must be names, or name(option=value); got 'bayes)'"),
        (" , ", "methods must be one name or more; got ' , '"),
    ],
)
def test_methods_that_cannot_be_read_are_errors(
    run: Run, log: Path, tmp_path: Path, methods: str, message: str
) -> None:
    page = tmp_path / "report.html"
    result = run("report", log, "--methods", methods, "-o", page, code=2)
    assert message in result.stderr.splitlines()[-1]
    assert not page.exists()


def test_a_method_that_fails_is_a_line_in_the_page(run: Run, log: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    methods = "avg, pass_at_k(k=99)"
    result = run("report", log, "--methods", methods, "-o", page, "--draws", 20)
    assert "pass_at_k(k=99) gave no result: " in result.stderr
    assert "pass_at_k(k=99) gave no result: " in page.read_text("utf-8")
    result = run("report", log, "--methods", "pass_at_k(k=99)", "-o", page, code=2)
    assert "k must be" in result.stderr.splitlines()[-1]


def test_report_adds_columns_of_a_table(run: Run, log: Path, tmp_path: Path) -> None:
    page, costs = tmp_path / "report.html", tmp_path / "costs.csv"
    costs.write_text("licence,model,cost\nopen,good,1.5\nclosed,bad,2\n", encoding="utf-8")
    run("report", log, "-o", page, "--draws", 20, "--columns-from", costs)
    text = page.read_text("utf-8")
    assert '<section id="pareto"' in text
    assert 'data-key="open">open</td>' in text
    costs.write_text("system,cost\nother,1\n", encoding="utf-8")
    result = run("report", log, "-o", page, "--draws", 20, "--columns-from", costs, code=2)
    assert "must have systems of the result" in result.stderr.splitlines()[-1]
    costs.write_text("Model;cost\ngood;1,5\nbad;2,25\n", encoding="utf-8")
    run("report", log, "-o", page, "--draws", 20, "--columns-from", costs)
    assert 'data-key="2.25"' in page.read_text("utf-8")
    for rows, message in (
        ("system,cost\ngood,1\ngood,2\n", "one row for each system; got 'good' twice"),
        ("", "--columns-from must be readable tables"),
    ):
        costs.write_text(rows, encoding="utf-8")
        result = run("report", log, "-o", page, "--draws", 20, "--columns-from", costs, code=2)
        assert message in result.stderr.splitlines()[-1]


def test_report_of_battles_takes_a_scale(run: Run, tmp_path: Path) -> None:
    battles, page = tmp_path / "battles.csv", tmp_path / "report.html"
    rows = ["a,b,model_a"] * 9 + ["a,b,model_b"] * 3 + ["b,c,model_a"] * 8 + ["b,c,tie"] * 4
    battles.write_text("\n".join(["model_a,model_b,winner", *rows]), encoding="utf-8")
    scale = ("--scale", "elo", "--anchor", "b=1200", "--min-votes", 20)
    run("report", battles, "-o", page, "--draws", 20, *scale)
    text = page.read_text("utf-8")
    assert 'data-key="1200">1200</td>' in text
    assert "preliminary: fewer than 20 battles." in text


def test_report_refuses_an_absent_folder_before_it_computes(
    run: Run, log: Path, tmp_path: Path
) -> None:
    result = run("report", log, "-o", tmp_path / "absent" / "r.html", code=2)
    assert "the folder of --output must exist" in result.stderr
    assert "systems" not in result.stderr


@pytest.mark.parametrize("flag", ["--methods", "--prior-sensitivity"])
def test_report_names_the_flag_of_an_unknown_method(
    run: Run, log: Path, tmp_path: Path, flag: str
) -> None:
    result = run("report", log, "-o", tmp_path / "r.html", flag, "borba", code=2)
    assert result.stderr.startswith(f"Error: {flag} must be the name of a method"), result.stderr


def test_options_of_numbers_are_read(run: Run, log: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    methods = "threshold_metric(threshold_weights=0.5,0.5), g_pass_at_k_tau(k=3, tau=0.5)"
    run("report", log, "--methods", methods, "-o", page, "--draws", 20)
    assert "threshold_weights = [0.5, 0.5]" in page.read_text("utf-8")


def test_report_studies_the_prior_on_request(run: Run, log: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    run("report", log, "-o", page, "--draws", 20)
    assert '<section id="sensitivity"' not in page.read_text("utf-8")
    options = ("--prior-sensitivity", "bradley_terry", "--draws", 20)
    assert run("report", log, *options, "-o", page, "--quiet").stderr == ""
    text = page.read_text("utf-8")
    assert "Ranked by bradley_terry under 6 priors. The prior" in text
    table = text[text.index('id="priors-table"') :]
    assert re.findall(r'data-key="(normal[^"]*)"', table)[:2] == ["normal(0, 1)", "normal(0, 0.5)"]
    assert 'data-key="1.000"' in table  # tau-b of the first with itself


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("borda", "method must have a prior on its scores, or be bayes; got 'borda'"),
        ("bayes,bradley_terry", "prior-sensitivity must be one method"),
        ("elro", "did you mean elo?"),
    ],
)
def test_priors_of_what_has_none_are_errors(
    run: Run, log: Path, tmp_path: Path, method: str, message: str
) -> None:
    page = tmp_path / "r.html"
    result = run("report", log, "--prior-sensitivity", method, "-o", page, "--draws", 20, code=2)
    assert message in result.stderr.splitlines()[-1]
    assert not page.exists()


def test_priors_are_not_studied_without_logs(run: Run, log: Path, tmp_path: Path) -> None:
    saved = tmp_path / "result.nc"
    run("rank", log, "--method", "avg", "--seed", 1, "-o", saved)
    page = tmp_path / "r.html"
    result = run("report", saved, "--prior-sensitivity", "bayes", "-o", page, code=2)
    assert "--prior-sensitivity needs logs" in result.stderr


def test_check_says_what_is_there_and_what_is_missing(run: Run, log: Path) -> None:
    facts_, checks, methods = run("check", log).stdout.split("\n\n")
    facts = dict(line.split("  ", 1) for line in facts_.splitlines())
    assert facts["outcomes"].strip() == "89 of 90 possible"
    assert facts["most outcomes missing"].strip() == "fair (1)"
    assert checks.startswith("Findings of the checks of standardized_accuracy:\ntopic ")
    rows = [re.split(r"\s{2,}", line) for line in methods.splitlines()[1:]]
    remarks = {name: row[1:-1] for row in rows for name in row[-1].split(", ")}
    assert all(row[0] == "yes" for row in rows)
    assert set(remarks) == set(METHODS)
    assert remarks["avg"] == []
    assert remarks["pass_at_k"] == ["needs --k (at most 4)"]
    assert len({tuple(remark) for remark in remarks.values()}) == len(rows)


def test_check_prints_the_report_of_the_ranking(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = [f"{system},q{i},{int(i % 3 != 1)}" for system in "ab" for i in range(12)]
    log.write_text("\n".join(["model,question,outcome", *rows[:-4]]))
    report = run("check", log, "--method", "avg,borda").stdout.split("\n\n")
    assert [part.splitlines()[0] for part in report[1:3]] == [
        "Findings of the checks of avg:",
        "Findings of the checks of borda:",
    ]
    topics = [line.split("  ")[0] for line in report[1].splitlines()[2:]]
    assert list(dict.fromkeys(topics)) == list(TOPICS)
    assert "a and b share 8 of 12 (67 %)" in report[1]


def test_remedies_of_checks_are_flags(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    right = np.random.default_rng(0).integers(0, 2, (2, 6, 8))
    rows = [f"{'ab'[s]},q{i},{t},{one}" for (s, i, t), one in np.ndenumerate(right)]
    log.write_text("\n".join(["model,question,trial,outcome", *rows]))
    options = ("--method", "avg", "--target", "population", "--seed", 1)
    assert "with --target benchmark." in run("rank", log, *options).stderr
    assert "--draws 100 for each chain" in run("rank", log, *options, "--draws", 50).stderr
    saved = tmp_path / "result.nc"
    run("rank", log, *options, "-o", saved)
    assert "with bayesrank rank --target benchmark." in run("check", saved).stdout


def test_check_of_a_saved_result_prints_its_report(run: Run, log: Path, tmp_path: Path) -> None:
    saved = tmp_path / "result.nc"
    run("rank", log, "--method", "avg", "--seed", 1, "-o", saved)
    printed = run("check", saved).stdout
    assert printed.splitlines()[1] == f"Findings of the checks of {saved}:"
    assert "can run" not in printed


def test_check_prints_json(run: Run, log: Path, tmp_path: Path) -> None:
    read = json.loads(run("check", log, "--method", "avg", "--format", "json").stdout)
    assert read["data"]["outcomes"] == "89 of 90 possible"
    assert read["methods"] == {"avg": {"can_run": True, "note": ""}}
    findings = read["checks"]["avg"]["findings"]
    assert {one["topic"] for one in findings} == set(TOPICS)
    (enough,) = [one for one in findings if one["name"] == "enough"]
    assert enough["numbers"] == {"fewest": 29.0}


def test_where_nothing_can_be_ranked_the_data_are_checked(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "scores.csv"
    log.write_text("model,question,score\na,q1,0.5\na,q2,0.25\nb,q1,0.75\nb,q2,1.0\n")
    printed = run("check", log, "--method", "elo", code=3).stdout
    assert "Findings of the checks of the data:" in printed
    assert "2 of 2 systems have few outcomes" in printed


def test_check_of_methods_tells_by_its_exit_code(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "scores.csv"
    log.write_text("model,question,score\na,q1,0.5\na,q2,0.25\nb,q1,0.75\nb,q2,1.0\n")
    assert run("check", log, "--method", "avg,borda").exit_code == 0
    result = run("check", log, "--method", "avg,elo", code=3)
    (row,) = [line for line in result.stdout.splitlines() if line.endswith("  elo")]
    assert row.split()[0] == "no"
    assert "turn them into categories with --edges E1,..." in row
    assert run("check", log, "--method", "avg,elo", "--edges", 0.5).exit_code == 0
    run("check", log, "--method", "nonsense", code=2)
    run("check", tmp_path / "absent.csv", code=2)


def test_quiet_leaves_out_notes_and_keeps_warnings_and_errors(
    run: Run, log: Path, tmp_path: Path
) -> None:
    assert "1 of 90 outcomes missing" in run("rank", log).stderr
    assert run("rank", log, "--quiet").stderr == ""
    assert run("report", log, "-q", "-o", tmp_path / "r.html").stderr == ""
    assert run("rank", log, "-q", "--method", "elro", code=2).stderr.startswith("Error: ")
    # The next command is not quiet.
    assert "1 of 90 outcomes missing" in run("rank", log).stderr


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_can_be_quiet(run: Run, command: str) -> None:
    assert "--quiet" in run(command, "--help").stdout


def test_exit_codes_are_documented(run: Run) -> None:
    text = " ".join(run("--help").stdout.split())
    assert "Exit codes: 0 done; 1 stopped before the end; 2 wrong usage" in text


def test_cite_prints_each_entry_once(run: Run) -> None:
    text = run("cite", "borda", "bradley_terry", "borda").stdout
    assert text.count("@article{borda1781memoire,") == 1
    assert text.count("@article{bradley1952rank,") == 1
    run("cite", "elro", code=2)


def test_leaderboards_are_printed_for_latex(run: Run, log: Path) -> None:
    lines = run("rank", log, "--seed", 1, "--format", "latex").stdout.splitlines()
    assert lines[0] == r"\begin{tabular}{rlrrrrrrrrrl}"
    assert lines[4].split(" & ")[:2] == ["1", "good"]
    assert lines[-1] == r"\end{tabular}"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_that_asks_the_command(run: Run, shell: str) -> None:
    script = run("completion", shell).stdout
    assert f"_BAYESRANK_COMPLETE={shell}_complete" in script
    assert "_bayesrank_completion" in script


def complete(*words: str) -> list[str]:
    """Return what a shell is told when the last word is to be completed."""
    line = " ".join(("bayesrank", *words))
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from bayesrank.commands.cli import main; main(prog_name='bayesrank')",
        ],
        env={
            "_BAYESRANK_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words)),
            "PATH": "",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return [item.partition(",")[2] for item in done.stdout.splitlines()]


def test_names_of_methods_are_completed() -> None:
    assert "bradley_terry" in complete("rank", "--method", "brad")
    assert complete("cite", "bord") == ["borda"]
    assert "bayes,borda" in complete("report", "--methods", "bayes,bor")
    assert complete("rep") == ["report"]


def test_flags_of_logs_are_refused_for_saved_results(run: Run, log: Path, tmp_path: Path) -> None:
    saved = tmp_path / "result.nc"
    assert "Error: INPUT must exist" in run("check", saved, code=2).stderr
    run("rank", log, "--method", "avg", "-o", saved)
    for flags in (("--method", "borda"), ("--seed", "1")):
        message = run("check", saved, *flags, code=2).stderr
        assert "--method and --seed go with logs, not with saved results" in message
