"""Grades on the range from 0 to 1."""

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.errors import DataError
from bayesrank.grades import UnitGrades


def test_categories_become_shares_of_the_range_of_their_worth():
    grades = UnitGrades.of(Responses([[[0, 1, 2], [2, -1, 2]]], weights=[-1.0, 0.0, 3.0]))
    assert grades.values[0, 0].tolist() == [0.0, 0.25, 1.0]
    assert grades.trials.tolist() == [[3.0, 2.0]]
    assert grades.totals.tolist() == [[1.25, 2.0]]
    assert grades.variances[0] == pytest.approx([np.var([0.0, 0.25, 1.0], ddof=1), 0.0])
    assert grades.worth(np.array([0.0, 0.5, 1.0])).tolist() == [-1.0, 1.0, 3.0]
    assert grades.share_of(np.array([-1.0, 1.0, 3.0])).tolist() == [0.0, 0.5, 1.0]


def test_scores_are_kept():
    grades = UnitGrades.of(Responses([[0.2, np.nan], [0.7, 0.4]]))
    assert grades.totals.tolist() == [[0.2, 0.0], [0.7, 0.4]]
    assert grades.trials.tolist() == [[1.0, 0.0], [1.0, 1.0]]


def test_categories_that_are_all_worth_the_same_have_no_range():
    grades = UnitGrades.of(Responses([[0, 1]], weights=[2.0, 2.0]))
    assert grades.worth(grades.totals).tolist() == [[2.0, 2.0]]


def test_categories_without_weights_are_no_grades():
    with pytest.raises(DataError, match="weights must be given"):
        UnitGrades.of(Responses([[0, 1, 2]], categories=3))
