"""What is written as a table is equal when it is read again."""

import logging

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.battles import Battles
from bayesrank.errors import DataError
from bayesrank.readers import read_battles, read_data, read_responses
from bayesrank.readers.writing import WRITTEN, write_table

ENDINGS = (*WRITTEN, ".csv.gz", ".tsv.zst", ".jsonl.xz")

RESPONSES = {
    "binary": Responses([[[1, 0], [1, -1]], [[0, 1], [0, 0]]], groups=["x", "y"], paired=False),
    "runs": Responses([[[1, 0], [1, -1]], [[0, 1], [0, 0]]], systems=["b", "a"]),
    "fractions": Responses([[0.1, 1 / 3], [0.5, np.nan]], systems=["a (x=1)", "a,b"]),
    "scale": Responses([[1.0, 10.0], [5.5, 0.1 + 0.2 + 1.0]], scale=(1, 10)),
    "wide scale": Responses([[-3.0, 40.0], [0.1, 7.0]], scale=(-3, 100 / 3 + 10)),
    "weights": Responses([[0, 2], [1, 1]], weights=(0, 1 / 3, 1)),
    "categories": Responses([[0, 3], [1, 2]], categories=4),
    "scores called 0 and 1": Responses([[0.0, 1.0], [1.0, 1.0]], scale=(0, 1)),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", RESPONSES)
def test_responses(tmp_path, name, ending):
    data = RESPONSES[name]
    again = read_responses(write_table(data, tmp_path / f"table{ending}"))
    assert again.fingerprint == data.fingerprint
    assert again.paired == (data.paired and data.shape[2] > 0)
    assert again.groups == data.groups


def test_what_is_said_when_reading_wins(tmp_path):
    path = write_table(RESPONSES["weights"], tmp_path / "t.csv")
    assert read_responses(path, weights=(0, 0.9, 1)).weights.tolist() == [0, 0.9, 1]
    assert read_responses(path, scale=(0, 2)).scale == (0, 2)
    rated = write_table(RESPONSES["scale"], tmp_path / "r.csv")
    assert read_responses(rated, edges=(5,)).outcomes[..., 0].tolist() == [[0, 1], [1, 0]]


def test_tables_with_other_scales_are_not_joined(tmp_path):
    for name, high in (("a", 10), ("b", 5)):
        write_table(Responses([[1.0]], systems=[name], scale=(0, high)), tmp_path / f"{name}.csv")
    with pytest.raises(DataError, match=r"declare what outcomes are alike .* 10\.0.* and .* 5\.0"):
        read_responses(tmp_path)


def test_a_scale_that_rows_do_not_agree_on_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('model,id,score,outcome_scale\na,1,2,"0,5"\na,2,2,"0,6"\n')
    with pytest.raises(
        DataError, match=r"outcome_scale must hold the same numbers .* '0,5', '0,6'"
    ):
        read_responses(path)


def test_prior_outcomes_are_said_to_be_left_out(tmp_path, caplog):
    data = Responses([[1, 0]], prior_outcomes=[[1], [0]])
    with caplog.at_level(logging.INFO, "bayesrank"):
        write_table(data, tmp_path / "t.csv")
    assert "Prior outcomes are left out" in caplog.text


def decoded(labels):
    return None if labels is None else [labels.names[code] for code in labels.codes]


BATTLES = {
    "plain": Battles(["a", "b"], ["b", "c"], ["model_a", "tie"]),
    "grades": Battles(["a", "b", "a"], ["b", "a", "c"], ["A>>B", "B>A", "both_bad"]),
    "shares": Battles(["a", "b", "a"], ["b", "c", "c"], [0.7, 0.0, 0.5]),
    "all there is": Battles(
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["first", "tie (bothbad)", "second"],
        weight=[1.0, 0.1, 2.5],
        time=[1.5, 1.5, 1e9 + 1 / 3],
        group=["en", "", "de"],
        prompt=["1", "2", "1"],
        judge=["u", "v", "u"],
        covariates={"length": [0.1, -1 / 3, 0.0], "bold": [1.0, 2.0, 3.0]},
    ),
    "words for names": Battles(["first", "tie"], ["tie", "second"], ["A>B", "B>>A"]),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", BATTLES)
def test_battles(tmp_path, name, ending):
    data = BATTLES[name]
    path = write_table(data, tmp_path / f"table{ending}")
    again = read_battles(path)
    assert isinstance(read_data(path), Battles)
    assert again.systems == data.systems
    for column in ("first", "second", "outcome", "both_bad", "weight", "time"):
        assert np.array_equal(getattr(again, column), getattr(data, column)), column
    for column in ("group", "prompt", "judge", "vote"):
        assert decoded(getattr(again, column)) == decoded(getattr(data, column)), column
    assert again.covariates.keys() == data.covariates.keys()
    for column, values in data.covariates.items():
        assert np.array_equal(again.covariates[column], values)
    assert again.fingerprint == data.fingerprint


@pytest.mark.parametrize("name", ["t.xlsx", "t.csv.zip", "t.parquet.gz", "t"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(DataError, match=r"path must end in \.csv"):
        write_table(RESPONSES["binary"], tmp_path / name)
