"""Attempts to categories, and categories to responses."""

import numpy as np
import pandas as pd
import pytest

from bayesrank import rank
from bayesrank.errors import DataError
from bayesrank.rubrics import SCHEMES, Rule, Scheme, Threshold, classify, rubric_responses

ATTEMPTS = pd.DataFrame(
    {
        "model": ["a", "a", "b", "b"],
        "question": [1, 1, 1, 1],
        "is_correct": [True, True, False, False],
        "has_box": [1, 0, 1, 0],
        "length": [10.0, 20.0, 30.0, 100.0],
    },
    index=["r1", "r2", "r3", "r4"],
)
NEAT = Rule("neat", "is_correct and has_box")
RIGHT = Rule("right", "is_correct")
LABELS = ("wrong", "right", "neat")


def test_the_first_rule_that_holds_decides():
    got = classify(ATTEMPTS, Scheme("s", LABELS, (NEAT, RIGHT), otherwise="wrong"))
    assert got.tolist() == [2, 1, 0, 0]
    assert got.index.tolist() == ATTEMPTS.index.tolist()
    swapped = classify(ATTEMPTS, Scheme("s", LABELS, (RIGHT, NEAT), otherwise="wrong"))
    assert swapped.tolist() == [1, 1, 0, 0]


def test_no_match_without_otherwise_is_an_error():
    with pytest.raises(DataError, match=r"must hold for every attempt.* 2 attempts.* row 'r3'"):
        classify(ATTEMPTS, Scheme("s", LABELS, (NEAT, RIGHT)))


def test_overlap_in_an_exclusive_scheme_is_an_error():
    scheme = Scheme("s", LABELS, (NEAT, RIGHT), otherwise="wrong", exclusive=True)
    with pytest.raises(DataError, match=r"must not overlap; got .* in 1 attempts.* row 'r1'"):
        classify(ATTEMPTS, scheme)


@pytest.mark.parametrize(
    ("by", "where", "expected"),
    [
        ("global", "", [0, 0, 1, 1]),  # median 25
        ("system", "", [0, 1, 0, 1]),  # medians 15 and 65
        ("global", "is_correct", [0, 1, 1, 1]),  # median of 10 and 20
    ],
)
def test_thresholds(by, where: str, expected: list[int]):
    scheme = Scheme(
        "s",
        ("short", "long"),
        (Rule("long", "length >= middle"),),
        otherwise="short",
        thresholds={"middle": Threshold("length", 50, by, where)},
    )
    assert classify(ATTEMPTS, scheme).tolist() == expected
    assert classify(ATTEMPTS, scheme, by=by).tolist() == expected


def test_verifier_only_takes_the_dominant_label():
    table = pd.DataFrame(
        {
            "repeated_pattern": [1, 0, 0, 0, 0],
            "compass_A": [0.9, 0.1, 0.2, 0.8, 0.4],
            "compass_B": [0.1, 0.2, 0.7, 0.1, 0.4],
            "compass_C": [0.0, 0.7, 0.1, 0.1, 0.2],
        }
    )
    # Of equal labels the first one counts, as argmax has it.
    assert classify(table, SCHEMES["verifier_only"]).tolist() == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_every_shipped_scheme_runs_and_ranks(name: str):
    scheme = SCHEMES[name]
    rng = np.random.default_rng(7)
    size = 240
    table = pd.DataFrame({"system": rng.permutation(["x", "y", "z"] * 80)})
    table["question"] = rng.permutation(np.repeat(np.arange(8), 30))
    table["group"] = np.where(table["question"] < 4, "low", "high")
    for signal in scheme.signals:
        flag = signal in ("is_correct", "has_box", "repeated_pattern")
        table[signal] = rng.integers(0, 2, size) if flag else rng.random(size)
    weights = scheme.weights or tuple(range(len(scheme.categories)))
    data = rubric_responses(table, scheme, weights=weights)
    assert data.n_categories == len(scheme.categories)
    result = rank(data, "bayes", random_seed=1, draws=20)
    assert sorted(result["ranking"]["system"].values) == ["x", "y", "z"]


def test_weights_are_required_where_the_scheme_has_none():
    scheme = Scheme("s", LABELS, (NEAT, RIGHT), otherwise="wrong")
    with pytest.raises(DataError, match="weights must be given for the scheme s"):
        rubric_responses(ATTEMPTS, scheme)
    with pytest.raises(DataError, match="weights must be 3 numbers"):
        rubric_responses(ATTEMPTS, scheme, weights=(0, 1))
    data = rubric_responses(ATTEMPTS, scheme, weights=(0, 0.5, 1))
    np.testing.assert_allclose(data.grades, [[0.75], [0.0]])


def test_a_shipped_scheme_can_be_named():
    expected = classify(ATTEMPTS, SCHEMES["format_compliance"])
    pd.testing.assert_series_equal(classify(ATTEMPTS, "format_compliance"), expected)
    assert rubric_responses(ATTEMPTS, "format_compliance").n_categories == 4
    with pytest.raises(ValueError, match=r"schemes must be among .*; got 'best'"):
        classify(ATTEMPTS, "best")


def test_missing_signals_are_refused():
    scheme = SCHEMES["format_compliance"]
    with pytest.raises(DataError, match="table must have a column 'has_box'"):
        classify(ATTEMPTS.drop(columns="has_box"), scheme)
    with pytest.raises(DataError, match="has_box must be given for every attempt; got 1 blanks"):
        classify(ATTEMPTS.assign(has_box=[1, 0, np.nan, 1]), scheme)
    with pytest.raises(DataError, match="is_correct must be numbers or truth values"):
        classify(ATTEMPTS.assign(is_correct="yes"), scheme)
