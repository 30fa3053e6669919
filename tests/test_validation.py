"""Data that are refused: every message names the argument and what was given."""

import numpy as np
import pandas as pd
import pytest

from bayesrank import Responses
from bayesrank.errors import DataError


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ([0, 1], r"outcomes must have shape \(system, question, trial\).*got shape \(2,\)"),
        (3, r"outcomes must have shape .*got shape \(\)"),
        (np.zeros((1, 1, 1, 1)), r"outcomes must have shape .*got shape \(1, 1, 1, 1\)"),
        (np.zeros((0, 2, 3)), r"all positive; got shape \(0, 2, 3\)"),
        (np.zeros((2, 0, 3)), r"all positive; got shape \(2, 0, 3\)"),
        (np.zeros((2, 3, 0)), r"all positive; got shape \(2, 3, 0\)"),
        ([], r"outcomes must have shape .*got shape \(0,\)"),
        ([[0, 1], [1]], "outcomes must have as many questions and trials for every system"),
        ([["right", "wrong"]], r"outcomes must be numbers; got \[\['right', 'wrong'\]\]"),
        ([["a"] * 1000], r"outcomes must be numbers; got \[\['a', 'a', .*\.\.\.\]\]$"),
        ({"a": [0, 1]}, r"outcomes must be numbers; got \{'a': \[0, 1\]\}"),
        ([[0, 1j]], r"outcomes must be numbers; got \[\[0, 1j\]\]"),
        (np.zeros((1, 2), dtype="datetime64[D]"), "outcomes must be numbers; got .*1970"),
        ([[0, 2]], "must be 0 and 1 unless a scale or .* got 2 for system 'system 1', question 'q"),
        ([[0, 2.0]], r"got 2 for .* pass scale=\(low, high\) .* or weights=\(w0, w1, \.\.\.\)"),
        ([[-2, 1]], "outcomes must be 0 and 1 unless .* got -2"),
        ([[-2.0, 1.0]], "outcomes must be 0 and 1 unless .* got -2"),
        (np.array([[255, 1]], dtype=np.uint8), "outcomes must be 0 and 1 unless .* got 255"),
        ([[np.inf, 1]], "outcomes must be finite; got inf"),
        ([[-np.inf, 1]], "outcomes must be finite; got -inf"),
        ([[0.5, 1.5]], r"lie in \[0, 1\] .* got 1.5 for .*'question 2': pass scale=\(low, high\)"),
        ([[0.5, -0.25]], r"lie in \[0, 1\] unless a scale is named; got -0.25"),
        ([[0.5, -1.0]], r"lie in \[0, 1\] unless a scale is named; got -1 for"),
        ([[0.5, np.inf]], "outcomes must be finite; got inf for .*'question 2'"),
        ([[-1, -1]], "outcomes must have at least one observed trial; got none"),
        ([[np.nan, np.nan]], "outcomes must have at least one observed trial; got none"),
    ],
)
def test_outcomes_of_another_form_are_refused(outcomes, message):
    with pytest.raises(DataError, match=message):
        Responses(outcomes)


@pytest.mark.parametrize(
    ("keyword", "labels", "message"),
    [
        ("systems", ["a"], "systems must have 2 labels, one per system; got 1"),
        ("systems", ["a", "b", "c"], "systems must have 2 labels, one per system; got 3"),
        ("systems", ["a", "a"], "systems must be unique; got 'a' twice"),
        ("systems", [1, "1"], "systems must be unique; got '1' twice"),
        ("systems", "ab", "systems must be a sequence of labels; got 'ab'"),
        ("systems", 2, "systems must be a sequence of labels; got 2"),
        ("systems", ["a", None], "systems must hold a label in every place; got None"),
        ("systems", ["a", np.nan], "systems must hold a label in every place; got nan"),
        ("systems", ["a", pd.NA], "systems must hold a label in every place; got <NA>"),
        ("systems", pd.Series(["a", None], dtype="string"), "in every place; got <NA>"),
        ("systems", ["a", pd.NaT], "systems must hold a label in every place; got NaT"),
        ("systems", np.array([1, np.nan], dtype=np.float32), "in every place; got .*nan"),
        ("systems", ["a", b"\xff"], r"systems must be valid text in UTF-8; got b'\\xff'"),
        ("groups", ["a", "b\0", "a"], r"groups must not hold null characters, .* got 'b\\x00'"),
        ("questions", ["a", "b", "cut \ud83d"], r"must be valid text in UTF-8; got 'cut \\ud83d'"),
        ("questions", ["p", "q"], "questions must have 3 labels, one per question; got 2"),
        ("questions", ["p", "q", "p"], "questions must be unique; got 'p' twice"),
        ("groups", ["g"], "groups must have 3 labels, one per question; got 1"),
        ("groups", "abc", "groups must be a sequence of labels; got 'abc'"),
    ],
)
def test_labels_of_another_form_are_refused(keyword, labels, message):
    with pytest.raises(DataError, match=message):
        Responses([[0, 1, 1], [1, 0, 0]], **{keyword: labels})


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.0, 1.0], r"weights must have one number for each of the categories 0..2; got 2"),
        ([0.0, np.nan, 1.0], "weights must be two or more finite numbers"),
        ([0.0, np.inf, 1.0], "weights must be two or more finite numbers"),
        ([1.0], "weights must be two or more finite numbers"),
        ([[0.0, 0.5, 1.0]], "weights must be two or more finite numbers"),
        (["low", "high", "best"], "weights must be numbers"),
    ],
)
def test_weights_of_another_form_are_refused(weights, message):
    with pytest.raises(DataError, match=message):
        Responses([[0, 2]], weights=weights)


@pytest.mark.parametrize(
    ("outcomes", "got"), [([[-2, 1]], "-2"), ([[128, 1]], "128"), ([[0.0, 200.0]], "200")]
)
def test_categories_are_small_whole_numbers(outcomes, got):
    with pytest.raises(DataError, match=f"outcomes must be categories 0..127, .* got {got} for"):
        Responses(outcomes, weights=np.arange(128))


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        (3, "categories must be a whole number from 4 to 128; got 3"),
        (129, "categories must be a whole number from 4 to 128; got 129"),
        (4.5, "categories must be a whole number"),
        (True, "categories must be a whole number"),
    ],
)
def test_a_number_of_categories_has_to_hold_them(categories, message):
    with pytest.raises(DataError, match=message):
        Responses([[0, 3]], categories=categories)


def test_weights_say_how_many_categories_there_are():
    with pytest.raises(DataError, match="categories must be None where weights are given; got 3"):
        Responses([[0, 2]], weights=[0, 0.5, 1], categories=3)


def test_fractional_outcomes_take_no_weights():
    with pytest.raises(DataError, match="weights must be None for fractional outcomes"):
        Responses([[0.5, 1.0]], weights=[0.0, 1.0])


@pytest.mark.parametrize(
    ("earlier", "message"),
    [
        ([1, 0, 1], r"shape \(3, d\) .* or \(2, 3\) or \(2, 3, d\); got \(3,\)"),
        ([[1, 0, 1]], r"got \(1, 3\)"),
        (np.zeros((2, 2, 1)), r"got \(2, 2, 1\)"),
        (np.zeros((3, 3, 1)), r"got \(3, 3, 1\)"),
        (np.zeros((3, 0)), r"got \(3, 0\)"),
        (0, r"got \(\)"),
        (np.full((3, 1), 2), r"prior_outcomes must be categories 0..1 or -1 for missing; got 2"),
        (np.full((3, 1), 0.5), r"prior_outcomes must be categories 0..1 .* got 0.5"),
        (np.full((3, 1), -2), r"prior_outcomes must be categories 0..1 .* got -2"),
        (np.full((3, 1), np.inf), r"prior_outcomes must be categories 0..1 .* got inf"),
        ([["x"], ["y"], ["z"]], "prior_outcomes must be numbers"),
    ],
)
def test_prior_outcomes_of_another_form_are_refused(earlier, message):
    with pytest.raises(DataError, match=message):
        Responses([[0, 1, 1], [1, 0, 0]], prior_outcomes=earlier)


def test_a_word_does_not_say_whether_trials_are_paired():
    with pytest.raises(DataError, match="paired must be True or False; got 'no'"):
        Responses([[0, 1]], paired="no")


def test_a_data_error_is_a_value_error():
    assert issubclass(DataError, ValueError)


def test_masked_outcomes_are_missing():
    outcomes = np.ma.array([[1, 0, 1], [0, 1, 1]], mask=[[0, 0, 1], [0, 0, 0]])
    assert Responses(outcomes).outcomes.tolist() == [[[1], [0], [-1]], [[0], [1], [1]]]
    scores = np.ma.array([[5.0, 7.0]], mask=[[True, False]])
    np.testing.assert_array_equal(Responses(scores, scale=(0, 10)).scores, [[[np.nan], [0.7]]])
    unmasked = np.ma.array([[1, 0]])
    assert Responses(unmasked).outcomes.tolist() == [[[1], [0]]]
    with pytest.raises(DataError, match="weights must be two or more finite numbers"):
        Responses(outcomes, weights=np.ma.array([0.0, 1.0], mask=[0, 1]))


def test_labels_may_be_bytes_and_not_empty():
    data = Responses([[1], [0]], systems=np.array([b"a", "é".encode()]))
    assert data.systems == ("a", "é")
    for name in ("systems", "questions"):
        with pytest.raises(DataError, match=f"{name} must hold a label in every place; got ''"):
            Responses([[1, 0], [0, 1]], **{name: ["", "b"]})
