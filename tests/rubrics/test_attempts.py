"""Tables of attempts: files, names of columns, greedy runs."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrank.errors import DataError
from bayesrank.rubrics import SCHEMES, Rule, Scheme, Threshold, classify, rubric_responses
from bayesrank.rubrics.attempts import read_attempts, standard_columns

SCHEME = SCHEMES["format_compliance"]
ROWS = [
    {"Model": "007", "task_id": 1, "dataset": "x", "is_correct": True, "compass_context_A": 0.5},
    {"Model": "b", "task_id": 2, "dataset": "y", "is_correct": False, "compass_context_A": 0.25},
]


def write(path: Path) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)))
    elif path.suffix == ".parquet":
        pd.DataFrame(ROWS).to_parquet(path)
    else:
        pd.DataFrame(ROWS).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_table_is_the_same_from_every_format(tmp_path: Path, suffix: str):
    table = read_attempts(write(tmp_path / f"attempts{suffix}"))
    assert table.columns.tolist() == ["system", "question", "group", "is_correct", "compass_A"]
    assert table["system"].tolist() == ["007", "b"]
    assert table["question"].tolist() == ["1", "2"]
    assert table["is_correct"].tolist() == [1.0, 0.0]
    assert table["compass_A"].tolist() == [0.5, 0.25]


def test_several_files_are_one_table(tmp_path: Path):
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name)
    assert len(read_attempts(tmp_path)) == 4


def test_blanks_are_missing_and_texts_stay(tmp_path: Path):
    path = tmp_path / "attempts.csv"
    path.write_text("system,question,is_correct,finish\n,q,1,stop\na,q,,length\n")
    table = read_attempts(path)
    assert table["system"].isna().tolist() == [True, False]
    assert table["finish"].tolist() == ["stop", "length"]
    with pytest.raises(DataError, match="is_correct must be given for every attempt; got 1 blanks"):
        classify(table.assign(has_box=1), SCHEME)
    with pytest.raises(DataError, match="name the system in every row; got a blank in row 1"):
        rubric_responses(table.assign(has_box=1, is_correct=1), SCHEME)


def test_a_file_that_is_no_table_is_refused(tmp_path: Path):
    path = tmp_path / "attempts.txt"
    path.write_text("nothing")
    with pytest.raises(DataError, match=r"paths must end in \.csv"):
        read_attempts(path)


def test_a_column_with_two_names_is_refused():
    with pytest.raises(DataError, match="one column for the group; got benchmark, topic"):
        standard_columns(pd.DataFrame({"benchmark": [1], "topic": [1]}))
    named = pd.DataFrame({"group": [1], "topic": [2]})
    assert standard_columns(named).columns.tolist() == ["group", "topic"]


def test_a_table_without_groups_is_one_dataset():
    scheme = Scheme(
        "s",
        ("short", "long"),
        (Rule("long", "length >= middle"),),
        otherwise="short",
        thresholds={"middle": Threshold("length", 50)},
    )
    table = pd.DataFrame({"system": "a", "length": [1.0, 2.0, 3.0, 10.0]})
    assert classify(table, scheme).tolist() == [0, 0, 1, 1]
    assert classify(table.assign(dataset=[1, 1, 2, 2]), scheme).tolist() == [0, 1, 0, 1]
    with pytest.raises(DataError, match="group must be given in every row; got 1 blanks"):
        classify(table.assign(group=["x", "x", "y", None]), scheme)
    with pytest.raises(DataError, match="table must have a column 'system' for thresholds"):
        classify(table.drop(columns="system"), scheme, by="system")


@pytest.fixture
def with_greedy() -> pd.DataFrame:
    """Return two attempts of two systems, and greedy runs of two questions for one of them."""
    return pd.DataFrame(
        {
            "system": ["b", "b", "a", "a", "a", "a", "a"],
            "question": ["p", "q", "p", "q", "q", "p", "p"],
            "greedy": [0, 0, 0, 0, 1, 1, 1],
            "is_correct": [1, 0, 1, 1, 1, 0, 1],
            "has_box": [1, 1, 1, 0, 1, 0, 0],
        }
    )


def test_greedy_runs_are_prior_outcomes(with_greedy: pd.DataFrame):
    data = rubric_responses(with_greedy, SCHEME)
    assert data.systems == ("b", "a")
    np.testing.assert_array_equal(data.outcomes[..., 0], [[3, 1], [3, 2]])
    # Categories are Neither, Format only, Correct only, Correct in format; -1 is none.
    expected = [[[-1, -1], [-1, -1]], [[0, 2], [3, -1]]]
    np.testing.assert_array_equal(data.prior_outcomes, expected)


def test_percentiles_do_not_count_greedy_runs():
    scheme = Scheme(
        "s",
        ("short", "long"),
        (Rule("long", "length > limit"),),
        otherwise="short",
        thresholds={"limit": Threshold("length", 100)},
    )
    table = pd.DataFrame({"length": [1.0, 2.0, 3.0], "greedy": [0, 0, 1]})
    assert classify(table, scheme).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"greedy": 2}, "greedy must be 0 or 1 in every row; got 2"),
        ({"question": list("ppppqpp")}, "question of a greedy run must have attempts.*got 'q'"),
    ],
)
def test_greedy_runs_that_belong_to_nothing_are_refused(with_greedy, change, message: str):
    with pytest.raises(DataError, match=message):
        rubric_responses(with_greedy.assign(**change), SCHEME)


def test_by_is_a_known_word():
    table = pd.DataFrame({"is_correct": [1, 0], "repeated_pattern": 0, "completion_bpt": 1.0})
    with pytest.raises(ValueError, match="by must be one of global, system, group; got 'systm'"):
        classify(table, "conf_calibrated", by="systm")
