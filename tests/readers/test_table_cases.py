"""Tables after public bug reports: the right value, or one clear error with its remedy."""

import json
import re
import shlex

import pytest

ALIKE = ["question_id.csv", "o_is_correct.csv", "o_passed.csv", "sys_model_name.csv"]
ALIKE += ["v_correct.csv", "v_pass.csv", "ok.tsv", "ok.json", "ok.ndjson"]
SUBJECTS = ["subject", "category", "dataset", "group", "benchmark"]
RIGHT = {
    **{f"case25/{name}": {"a": 0.8, "b": 0.3} for name in ALIKE},
    **{f"case07/{name}.csv": {"A": 7 / 12, "B": 7 / 12} for name in SUBJECTS},
    "case09/samples_df.csv": {"a": 0.8, "b": 0.3},
    "case15/pct100.csv --scale 0,100": {"a": 92.0, "b": 22.0},
    "case16/alp.csv": {"aligner": 379.5 / 805},
}


@pytest.mark.filterwarnings("ignore:3 groups of questions")
@pytest.mark.parametrize("case", RIGHT)
def test_right_value(run, shared, case):
    path, *flags = shlex.split(case)
    common = ("--method", "avg", "--draws", 0, "--format", "json")
    result = run("rank", shared / "cases" / path, *flags, *common)
    found = {row["system"]: row["score"] for row in json.loads(result.stdout)}
    assert found == pytest.approx(RIGHT[case])
    assert "; 0 of" in result.stderr


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("case07/rb2.csv", "got 10 of the 50 questions of 'rmA' several times, .* --question"),
        ("case15/pct100.csv", "pass --scale LOW,HIGH"),
        ("case15/rating10.csv", "pass --scale LOW,HIGH"),
    ],
)
def test_one_error_with_its_remedy(run, shared, case, message):
    said = run("rank", shared / "cases" / case, code=2).stderr
    assert re.search(message, said)
    assert len(said.splitlines()) == 1
