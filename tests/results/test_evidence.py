"""What was observed of each system: counted by hand, and marked where it is little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayesrank import Ballots, Comparisons, Responses, leaderboard, point_estimate, rank
from bayesrank.results.summary import is_little, least_outcomes, mean_grade, summarize_evidence


def summary(data, ci_prob: float = 0.95) -> dict[str, list[object]]:
    found = summarize_evidence(data, ci_prob=ci_prob)
    return {str(name): values.values.tolist() for name, values in found.data_vars.items()}


def test_questions_count_the_same_however_often_they_were_asked() -> None:
    data = Responses([[[1, 1, 1], [0, -1, -1]], [[0, 1, -1], [-1, -1, -1]]])
    assert summary(data) == {
        "observed_mean": [0.5, 0.5],
        "n_outcomes": [4, 2],
        "n_questions": [2, 1],
        "few": [True, True],
    }


def test_a_system_without_outcomes_has_no_mean() -> None:
    found = summary(Responses([[[1, 0]], [[-1, -1]]]))
    assert found["n_outcomes"] == [2, 0]
    assert found["observed_mean"][0] == 0.5
    assert np.isnan(found["observed_mean"][1])


def test_categories_have_a_mean_where_they_have_a_worth() -> None:
    assert summary(Responses([[[2, 1]]], weights=[0, 3, 7]))["observed_mean"] == [5.0]
    assert np.isnan(summary(Responses([[[2, 1]]], categories=3))["observed_mean"]).all()


def test_ties_are_half_a_win() -> None:
    data = Comparisons([[0, 3, 1], [1, 0, 0], [0, 0, 0]], [[0, 2, 0], [2, 0, 0], [0, 0, 0]])
    found = summary(data)
    assert found["observed_mean"] == [5 / 7, 2 / 6, 0.0]
    assert found["n_outcomes"] == [7, 6, 1]
    assert isinstance(found["n_outcomes"][0], int)
    assert "n_questions" not in found


def test_weights_of_battles_are_counted() -> None:
    data = Comparisons.from_battles(["a", "a"], ["b", "b"], ["first", "tie"], [0.5, 1.0])
    assert summary(data)["n_outcomes"] == [1.5, 1.5]
    assert summary(data)["observed_mean"] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]


def test_ballots_have_the_share_of_the_others_below() -> None:
    data = Ballots.from_rankings([["a", "b", "c"], ["b", "a"], [["a", "c"]], ["c"]])
    assert summary(data)["observed_mean"] == [
        pytest.approx((1.0 + 0.0 + 0.5) / 3),
        pytest.approx((0.5 + 1.0) / 2),
        pytest.approx((0.0 + 0.5) / 2),  # alone on a ballot, it is above nobody and below nobody
    ]
    assert summary(data)["n_outcomes"] == [3, 2, 3]


@pytest.mark.parametrize(("ci_prob", "least"), [(0.95, 6), (0.99, 8), (0.8, 4), (0.5, 2)])
def test_fewer_outcomes_could_all_be_tosses_of_a_coin(ci_prob: float, least: int) -> None:
    tail = (1 - ci_prob) / 2
    assert least_outcomes(ci_prob) == least
    assert 0.5**least <= tail * (1 + 1e-12) < 0.5 ** (least - 1)


def test_less_than_a_quarter_of_the_median_is_little() -> None:
    little = is_little(np.array([100, 100, 100, 25, 24]), least=6)
    assert little.tolist() == [False, False, False, False, True]
    # Many trials of few questions are little too.
    trials = is_little(np.array([100, 100, 100]), np.array([50, 50, 3]), least=6)
    assert trials.tolist() == [False, False, True]


@given(outcomes=arrays(np.int8, (3, 4, 3), elements=st.integers(-1, 1)))
def test_the_mean_is_that_of_avg(outcomes) -> None:
    data_known = (outcomes >= 0).any(axis=(1, 2))
    if not data_known.all():
        return
    data = Responses(outcomes)
    found = summarize_evidence(data, ci_prob=0.95)
    np.testing.assert_allclose(found["observed_mean"], point_estimate(data, "avg"), rtol=1e-14)
    np.testing.assert_array_equal(found["n_outcomes"], (outcomes >= 0).sum(axis=(1, 2)))
    np.testing.assert_array_equal(mean_grade(data.grades), found["observed_mean"])


def test_every_kind_of_result_has_it() -> None:
    battles = Comparisons([[0, 3], [1, 0]], systems=["a", "b"])
    ballots = Ballots.from_rankings([["a", "b"], ["b", "a"], ["a", "b"]])
    responses = Responses([[[1, 1, 0]], [[0, 1, 0]]], systems=["a", "b"])
    for data, method in (
        (battles, "davidson"),
        (ballots, "plackett_luce"),
        (responses, "bayes"),
        (responses, "rasch"),
    ):
        board = leaderboard(rank(data, method, draws=20, random_seed=1))
        assert {"observed_mean", "n_outcomes", "few"} <= set(board.columns)
        assert ("n_questions" in board) == isinstance(data, Responses)


def test_equals_with_more_evidence_come_first() -> None:
    outcomes = np.zeros((3, 8, 1), dtype=int)
    outcomes[0, 2:] = -1
    outcomes[1, 6:] = -1
    board = leaderboard(rank(Responses(outcomes), "avg", draws=0))
    assert board["rank"].tolist() == [1, 1, 1]
    assert board["n_outcomes"].tolist() == [8, 6, 2]
    assert board["few"].tolist() == [False, False, True]
