"""Tables as people have them: any names, any spellings, any files, and never a silent guess."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrank import Responses, read_responses
from bayesrank.columns import NAMES
from bayesrank.errors import DataError

ROWS = [("a", 1, 0, 1), ("a", 1, 1, 0), ("a", 2, 0, 1), ("a", 2, 1, 1), ("b", 1, 0, 0)]
ROWS += [("b", 1, 1, 0), ("b", 2, 0, 1), ("b", 2, 1, 0)]
TABLE = pd.DataFrame(ROWS, columns=["system", "question", "trial", "outcome"])
EXPECTED = [[[1, 0], [1, 1]], [[0, 0], [1, 0]]]


def as_file(frame: pd.DataFrame, tmp_path, name="log.csv"):
    path = tmp_path / name
    writers = {
        ".csv": lambda: frame.to_csv(path, index=False),
        ".tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        ".parquet": lambda: frame.to_parquet(path),
        ".feather": lambda: frame.to_feather(path),
        ".jsonl": lambda: frame.to_json(path, orient="records", lines=True),
        ".ndjson": lambda: frame.to_json(path, orient="records", lines=True),
    }
    writers[path.suffix]()
    return path


def assert_both(frame: pd.DataFrame, tmp_path, expected=EXPECTED, **columns) -> Responses:
    """Read a frame as it is and as a file."""
    data = Responses.from_long(frame, **columns)
    np.testing.assert_array_equal(data.values, expected)
    read = read_responses(as_file(frame, tmp_path), **columns)
    assert read.fingerprint == data.fingerprint
    return data


@pytest.mark.parametrize(
    ("column", "name"),
    [(column, name) for column, names in NAMES.items() for name in names if column != "group"],
)
@pytest.mark.parametrize("spelling", [str, str.upper, lambda name: f" {name.replace('_', '-')}"])
def test_names_of_the_field(tmp_path, column, name, spelling):
    frame = TABLE.rename(columns={column: spelling(name)})
    data = assert_both(frame, tmp_path)
    assert data.paired == (name in {"run", "seed"})


@pytest.mark.parametrize("name", NAMES["group"])
def test_names_of_groups(tmp_path, name):
    frame = TABLE.assign(**{name: ["x", "x", "y", "y"] * 2})
    # A question of its own for each group needs no groups.
    wanted = ("x", "y") if name in ("group", "benchmark") else None
    assert assert_both(frame, tmp_path).groups == wanted
    more = pd.concat([frame, frame.assign(question=frame["question"] + 2)])
    data = Responses.from_long(more)
    assert data.groups == ("x", "y", "x", "y")
    assert Responses.from_long(more, group="none").groups is None


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "feather", "jsonl", "ndjson"])
def test_every_kind_of_file(tmp_path, suffix):
    data = read_responses(as_file(TABLE, tmp_path, f"log.{suffix}"))
    assert data.fingerprint == Responses.from_long(TABLE).fingerprint


@pytest.mark.parametrize(
    "document",
    [
        TABLE.to_dict("records"),
        TABLE.to_dict("list"),
        json.loads(TABLE.to_json()),
        json.loads(TABLE.to_json(orient="split")),
        json.loads(TABLE.to_json(orient="table")),
        {"version": 1, "results": TABLE.to_dict("records")},
    ],
)
def test_json_documents(tmp_path, document):
    path = tmp_path / "log.json"
    path.write_text(json.dumps(document))
    assert read_responses(path).fingerprint == Responses.from_long(TABLE).fingerprint
    assert read_responses(tmp_path).fingerprint == Responses.from_long(TABLE).fingerprint


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("pass", "fail"),
        ("Passed", "Failed"),
        ("correct", "incorrect"),
        ("yes", "no"),
        ("C", "I"),
        ("true", "False"),
        ("success", "failure"),
        ("1.0", "0"),
    ],
)
def test_words_for_right_and_wrong(tmp_path, right, wrong):
    assert_both(TABLE.assign(outcome=np.where(TABLE["outcome"], right, wrong)), tmp_path)


def test_columns_can_be_named(tmp_path):
    names = {"system": "who", "question": "What", "trial": "when", "outcome": "how good"}
    columns = names | {"question": "what"}
    assert_both(TABLE.rename(columns=names), tmp_path, **columns)
    grouped = TABLE.rename(columns=names).assign(part=["x", "x", "y", "y"] * 2)
    assert assert_both(grouped, tmp_path, **columns, group="part").groups == ("x", "y")
    with pytest.raises(DataError, match=r"outcome must name a column of who, .*; got 'nothing'"):
        Responses.from_long(grouped, **columns | {"outcome": "nothing"})


def test_several_columns_make_up_a_name(tmp_path):
    frame = TABLE.assign(effort=["low"] * 4 + ["high"] * 4, system="m")
    data = assert_both(frame, tmp_path, system="system,effort")
    assert data.systems == ("m/low", "m/high")


def test_the_file_can_be_part_of_a_name(tmp_path):
    for subject in ("anatomy", "virology"):
        as_file(TABLE, tmp_path, f"{subject}.csv")
    data = read_responses(tmp_path, question="file,question")
    assert data.questions == ("anatomy/1", "anatomy/2", "virology/1", "virology/2")
    assert data.shape == (2, 4, 2)


def test_the_same_id_as_number_and_text_is_one_question(tmp_path):
    frame = TABLE.assign(question=TABLE["question"].astype(float))
    assert assert_both(frame, tmp_path).questions == ("1", "2")
    mixed = TABLE.assign(question=pd.Series([1, "1", 2.0, 2, 1.0, 1, "2", "2.0"], dtype=object))
    assert Responses.from_long(mixed).questions == ("1", "2")
    # Versions of systems are text.
    versions = TABLE.assign(system=["1.0"] * 4 + ["1"] * 4)
    assert assert_both(versions, tmp_path).systems == ("1.0", "1")


@pytest.mark.parametrize("name", ["subject", "category", "dataset", "group", "benchmark", "task"])
@pytest.mark.parametrize("trials", [False, True])
def test_ids_that_start_anew_in_each_group_are_other_questions(tmp_path, name, trials):
    rows = [
        (model, group, number, trial, int(group == "x"))
        for model in "AB"
        for group in "xyz"
        for number in range(4)
        for trial in range(1 + trials)
    ]
    frame = pd.DataFrame(rows, columns=["model", name, "doc_id", "epoch", "correct"])
    frame = frame if trials else frame.drop(columns="epoch")
    data = Responses.from_long(frame)
    assert data.shape == (2, 12, 1 + trials)
    assert data.groups == tuple("xxxxyyyyzzzz")
    assert data.questions[4] == "y/0"
    assert read_responses(as_file(frame, tmp_path)).fingerprint == data.fingerprint
    # In one file for each model and group, too.
    for (model, group), part in frame.groupby(["model", name]):
        (tmp_path / "parts").mkdir(exist_ok=True)
        as_file(part, tmp_path / "parts", f"{model}{group}.csv")
    assert read_responses(tmp_path / "parts").fingerprint == data.fingerprint


def test_what_says_something_of_the_answer_is_no_group():
    frame = TABLE.assign(category=["ok", "cut", "ok", "ok", "cut", "ok", "ok", "cut"])
    data = Responses.from_long(frame)
    assert (data.shape, data.groups) == ((2, 2, 2), None)


def test_groups_that_differ_between_systems_are_left_open():
    frame = TABLE.assign(subject=["x"] * 4 + ["y"] * 4)
    with pytest.raises(
        DataError,
        match=r"subject must be the same for all rows of a question; got several for '1': pass "
        r"question='subject,question' where ids start anew .* or group='none'",
    ):
        Responses.from_long(frame)
    assert Responses.from_long(frame, question="subject,question").shape == (2, 4, 2)
    assert Responses.from_long(frame, group="none").shape == (2, 2, 2)


def test_ids_that_occur_twice_for_some_questions_are_refused():
    rows = [("A", number % 10, 1) for number in range(13)]
    frame = pd.DataFrame(rows, columns=["model", "id", "correct"])
    with pytest.raises(DataError, match=r"got 3 of the 10 questions of 'A' several times.*'0'"):
        Responses.from_long(frame)


def test_several_columns_for_one_purpose():
    same = TABLE.assign(is_correct=TABLE["outcome"] == 1, score=TABLE["outcome"])
    assert Responses.from_long(same.drop(columns="outcome")).shape == (2, 2, 2)
    other = same.drop(columns="outcome").assign(score=0.5)
    with pytest.raises(DataError, match=r"one column for the outcome; got score, is_correct"):
        Responses.from_long(other)
    assert Responses.from_long(other, outcome="is_correct").is_binary
    one = TABLE.rename(columns={"system": "model"}).assign(agent="x")
    assert Responses.from_long(one).systems == ("a", "b")
    both = one.assign(agent=["x", "y"] * 4)
    with pytest.raises(DataError, match=r"one column for the system; got model, agent"):
        Responses.from_long(both)


def test_runs_that_no_two_systems_share_are_not_the_same():
    frame = TABLE.rename(columns={"trial": "run"})
    assert Responses.from_long(frame).paired
    named = frame.assign(run=frame["system"] + frame["run"].astype(str))
    data = Responses.from_long(named)
    assert (data.shape, data.paired) == ((2, 2, 2), False)


def test_wide_tables(tmp_path):
    frame = pd.DataFrame({"id": ["p", "q"], "subject": ["x", "y"], "a": [1, 0], "b": ["fail", ""]})
    data = Responses.from_long(frame, wide=True)
    np.testing.assert_array_equal(data.values[..., 0], [[1, 0], [0, -1]])
    assert (data.systems, data.questions) == (("a", "b"), ("p", "q"))
    read = read_responses(as_file(frame, tmp_path), wide=True)
    assert read.systems == data.systems
    assert Responses.from_long(frame, wide=True, system="b").systems == ("b",)
    bare = frame[["a", "b"]]
    assert Responses.from_long(bare, wide=True).questions == ("1", "2")
    with pytest.raises(DataError, match=r"a column for each system; got id"):
        Responses.from_long(frame[["id"]], wide=True)


def test_a_table_that_is_nearly_empty_is_refused_before_memory_is_taken():
    labels = np.arange(4_000).astype(str)
    frame = pd.DataFrame({"model": labels, "id": labels, "outcome": 1.0})
    with pytest.raises(DataError, match="one cell in a hundred; got 4000 rows for 4000 systems"):
        Responses.from_long(frame)


def summary(frame: pd.DataFrame) -> str:
    """Return what comes of a frame: responses or a message."""
    try:
        return Responses.from_long(frame).fingerprint
    except DataError as error:
        return str(error)


labels = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)


@given(
    st.lists(
        st.tuples(labels, labels, st.integers(0, 3), st.sampled_from([0, 1, None])),
        min_size=1,
        unique_by=lambda row: (row[0].strip(), row[1].strip(), row[2]),
    ),
    st.sampled_from(["trial", "run"]),
)
def test_a_frame_and_its_file_are_equal(rows, trial):
    frame = pd.DataFrame(rows, columns=["model", "question", trial, "score"])
    read = pd.read_csv(StringIO(frame.to_csv(index=False)), dtype=str, keep_default_na=False)
    assert summary(frame) == summary(read)
