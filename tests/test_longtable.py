"""Long tables: one row per outcome, in any order and with any gaps."""

import numpy as np
import pandas as pd
import pytest

from bayesrank import Responses
from bayesrank.entrance import as_data
from bayesrank.errors import DataError


def long_table(**changes) -> pd.DataFrame:
    columns = {
        "system": ["b", "a", "b", "a", "b"],
        "question": ["q", "q", "p", "p", "q"],
        "trial": [2, 1, 1, 2, 1],
        "outcome": [1, 0, 1, 1, 0],
    }
    kept = {name: values for name, values in (columns | changes).items() if values is not None}
    return pd.DataFrame(kept)


def test_from_long_leaves_missing_rows_out():
    data = Responses.from_long(long_table())
    assert data.systems == ("b", "a")
    assert data.questions == ("q", "p")
    np.testing.assert_array_equal(data.outcomes, [[[0, 1], [1, -1]], [[0, -1], [-1, 1]]])
    assert data.paired is False
    assert Responses.from_long(long_table(), paired=True).paired


def test_from_long_takes_the_model_column_and_options():
    frame = long_table().rename(columns={"system": "model"})
    data = Responses.from_long(frame, weights=[0.0, 3.0])
    assert data.systems == ("b", "a")
    np.testing.assert_array_equal(data.weights, [0, 3])
    assert Responses.from_long(frame, systems=["first", "second"]).systems == ("first", "second")


def test_from_long_numbers_the_rows_of_a_cell_without_a_trial_column():
    data = Responses.from_long(long_table(trial=None))
    np.testing.assert_array_equal(data.outcomes, [[[1, 0], [1, -1]], [[0, -1], [1, -1]]])


def test_from_long_keeps_the_order_of_named_trials():
    frame = long_table(trial=["late", "early", "early", "late", "early"])
    data = Responses.from_long(frame)
    np.testing.assert_array_equal(data.outcomes, [[[1, 0], [-1, 1]], [[-1, 0], [1, -1]]])


@pytest.mark.parametrize(
    "outcome",
    [
        [1, np.nan, 0, 1, 0],
        pd.array([1, None, 0, 1, 0], dtype="Int64"),
        pd.array([True, None, False, True, False], dtype="boolean"),
        [1, None, 0, True, False],
    ],
)
def test_from_long_takes_missing_outcomes_of_any_kind(outcome):
    data = Responses.from_long(long_table(outcome=outcome))
    np.testing.assert_array_equal(data.outcomes, [[[0, 1], [0, -1]], [[-1, -1], [-1, 1]]])


def test_from_long_takes_categorical_columns_and_any_index():
    frame = long_table()
    typed = frame.astype({"system": "category", "question": "category"})
    typed.index = [7, 7, 7, 0, 0]
    assert Responses.from_long(typed).fingerprint == Responses.from_long(frame).fingerprint


def test_from_long_keeps_fractions():
    data = Responses.from_long(long_table(outcome=[0.5, 0, 1, 1, 0.25]))
    np.testing.assert_array_equal(
        data.scores, [[[0.25, 0.5], [1, np.nan]], [[0, np.nan], [np.nan, 1]]]
    )


def test_from_long_reads_groups_by_question():
    data = Responses.from_long(long_table(group=["g", "g", "h", "h", "g"]))
    assert data.groups == ("g", "h")


def test_from_long_leaves_the_frame_alone():
    frame = long_table(trial=None).rename(columns={"system": "model"})
    before = frame.copy()
    Responses.from_long(frame)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"system": None},
            "frame must have a column for the system, .* got question, trial, outcome",
        ),
        ({"question": None}, "frame must have a column for the question"),
        ({"outcome": None}, "frame must have a column for the outcome"),
        (
            {"system": ["b", None, "b", "a", "b"]},
            "name the system in every row; got a blank in row 2",
        ),
        ({"trial": [2, np.nan, 1, np.nan, 1]}, "name the trial in every row; got a blank in row 2"),
        (
            {"trial": [1, 1, 1, 2, 1]},
            r"one outcome per .* system 'b', question 'q', trial 1: remove",
        ),
        (
            {"group": ["g", "g", "h", "h", None]},
            "name the group in every row; got a blank in row 5",
        ),
        ({"group": ["g", "g", "h", "h", "x"]}, "group must be the same .* got several for 'q'"),
        ({"outcome": ["yes", "no", "no", "yes", "so"]}, "outcomes must be numbers.* got 'so'"),
        ({"outcome": [2.5, 0, 0, 1, 1]}, r"outcomes must lie in .* got 2.5 for system 'b'"),
    ],
)
def test_from_long_refuses_other_tables(changes, message):
    with pytest.raises(DataError, match=message):
        Responses.from_long(long_table(**changes))


def test_from_long_refuses_other_types():
    with pytest.raises(DataError, match=r"frame must be a pandas\.DataFrame; got list"):
        Responses.from_long([1, 0])


def test_from_long_refuses_a_table_without_columns():
    with pytest.raises(DataError, match=r"frame must have a column for the system, .* got none"):
        Responses.from_long(pd.DataFrame())


def test_from_long_refuses_an_empty_table():
    with pytest.raises(DataError, match="frame must have at least one row; got none"):
        Responses.from_long(long_table().iloc[:0])


def test_to_long_has_a_row_for_every_outcome():
    data = Responses([[[1, 0], [1, -1]]], systems=["a"], questions=["p", "q"], groups=["g", "h"])
    table = data.to_long()
    assert list(table.columns) == ["system", "question", "trial", "outcome", "group"]
    np.testing.assert_array_equal(table["outcome"], [1, 0, 1, np.nan])
    assert table["group"].tolist() == ["g", "g", "h", "h"]


def test_parquet_keeps_what_no_row_can_say(tmp_path):
    data = Responses(
        [[[1, 2], [0, -1]]], weights=[0, 0.5, 1], prior_outcomes=[[1], [0]], paired=False
    )
    data.to_long().to_parquet(tmp_path / "long.parquet")
    restored = Responses.from_long(pd.read_parquet(tmp_path / "long.parquet"))
    assert restored.fingerprint == data.fingerprint


@pytest.mark.parametrize("shape", [(2, 1), (2, 2, 1)])
def test_prior_outcomes_follow_the_labels_that_are_left(shape):
    prior = np.arange(np.prod(shape)).reshape(shape) % 2
    data = Responses(
        [[1, 0], [0, 1]], systems=["a", "b"], questions=["p", "q"], prior_outcomes=prior
    )
    table = data.to_long()
    left = Responses.from_long(table[table["question"] == "q"].iloc[::-1])
    expected = prior[np.newaxis, 1:] if prior.ndim == 2 else prior[::-1, 1:]
    np.testing.assert_array_equal(left.prior_sets, expected)
    renamed = table.replace({"question": {"p": "r"}})
    assert Responses.from_long(renamed).prior_outcomes is None


def test_names_in_the_index_are_columns_as_in_the_file():
    rows = [("a", "q", 1), ("a", "r", 0), ("b", "q", 0), ("b", "r", 1)]
    frame = pd.DataFrame(rows, columns=["model", "question", "score"])
    expected = Responses.from_long(frame)
    for long in (frame.set_index(["model", "question"]), frame.set_index("model")):
        assert Responses.from_long(long).fingerprint == expected.fingerprint
    by_system = frame.pivot(index="model", columns="question", values="score")
    for wide in (by_system, by_system.T):
        assert Responses.from_long(wide, wide=True).fingerprint == expected.fingerprint
    with pytest.raises(DataError, match="must name every column of a wide table; got a, "):
        Responses.from_long(by_system.rename_axis(None), wide=True)
    with pytest.raises(DataError, match="frame must name every column once; got 2 rows of names"):
        Responses.from_long(frame.pivot(index="model", columns="question"), wide=True)
    shuffled = frame.iloc[[0, 2, 1, 3]]
    assert Responses.from_long(shuffled).systems == ("a", "b")


def test_tables_of_other_libraries_are_read():
    arrow = pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"model": ["a", "b"], "question": ["q", "q"], "score": [1, 0]})
    table = arrow.Table.from_pandas(frame)
    expected = Responses.from_long(frame).fingerprint
    assert Responses.from_long(table).fingerprint == as_data(table).fingerprint == expected
    votes = pd.DataFrame({"model_a": ["a"], "model_b": ["b"], "winner": ["a"]})
    assert as_data(arrow.Table.from_pandas(votes)).wins.tolist() == [[0, 1], [0, 0]]
