"""Findings on the data: who was asked what, how often, and with which outcomes."""

import warnings

import numpy as np
import pytest

from bayesrank import Comparisons, Responses, leaderboard, rank
from bayesrank.checking import check, check_data
from bayesrank.checking.design import design_of
from bayesrank.results.tree import data_groups
from bayesrank.views import Ballots


def simulate(shape=(4, 40, 3), seed=0):
    return np.random.default_rng(seed).integers(0, 2, shape)


def only(data, name):
    (found,) = check_data(data).about(name)
    return found


# Complete data


@pytest.mark.parametrize("shape", [(2, 40, 1), (4, 40, 3), (20, 30, 8)])
def test_complete_data_are_good(shape):
    report = check_data(Responses(simulate(shape)))
    assert report.trustworthy, str(report)
    assert {one.name for one in report} == {"enough", "runs"}


def test_a_result_says_of_its_data_what_they_say_themselves():
    outcomes = simulate((4, 40, 3))
    outcomes[0, 5:] = -1
    outcomes[1] = 1
    data = Responses(outcomes)
    result = rank(data, "avg", draws=150, random_seed=0)
    of_result = [one for one in check(result, data) if one.topic == "data"]
    assert of_result == list(check_data(data))


# Different questions


@pytest.mark.parametrize(("n_questions", "n_own"), [(40, 30), (100, 50), (12, 1)])
def test_the_pair_that_shares_least_is_named(n_questions, n_own):
    outcomes = simulate((5, n_questions, 4))
    outcomes[3, n_own:] = -1
    found = only(Responses(outcomes, systems=list("abcde")), "different questions")
    assert found.verdict == "doubtful"
    assert "d" in found.numbers["pair"]
    assert found.numbers["smallest_share"] == pytest.approx(n_own / n_questions)
    assert (found.numbers["pairs"], found.numbers["of"]) == (4, 10)
    assert f"share {n_own} of {n_questions}" in found.sentence


def test_the_shared_questions_are_a_part_of_those_of_either():
    outcomes = simulate((2, 30, 2))
    outcomes[0, :10] = outcomes[1, 20:] = -1
    found = only(Responses(outcomes), "different questions")
    assert found.numbers["smallest_share"] == pytest.approx(10 / 30)


def test_fewer_trials_of_the_same_questions_are_no_other_questions():
    outcomes = simulate((3, 30, 4))
    outcomes[0, :, 1:] = -1
    assert not check_data(Responses(outcomes)).about("different questions")
    outcomes[0, :1] = -1  # 29 of 30
    assert not check_data(Responses(outcomes)).about("different questions")
    outcomes[0, :2] = -1
    assert check_data(Responses(outcomes)).about("different questions")


# Never compared


def test_pairs_without_a_shared_question_are_named():
    outcomes = simulate((3, 60, 2))
    outcomes[0, 30:] = outcomes[1, :30] = -1
    data = Responses(outcomes, systems=list("abc"))
    found = only(data, "never compared")
    assert found.numbers["example"] == ["a", "b"]
    assert (found.numbers["pairs"], found.numbers["of"]) == (1, 3)
    report = check(rank(data, "avg", draws=150, random_seed=0))
    (connection,) = report.about("connection")
    assert connection.verdict == "good"  # through the third system


def test_sets_that_were_never_compared_are_counted():
    outcomes = simulate((4, 60, 2))
    outcomes[:2, 30:] = outcomes[2:, :30] = -1
    report = check(rank(Responses(outcomes), "avg", draws=150, random_seed=0))
    (connection,) = report.about("connection")
    assert connection.verdict == "bad"
    assert connection.numbers == {"parts": 2}
    assert connection.sentence.endswith("Compare systems of different sets on the same questions.")
    pairs = np.kron(np.eye(2), [[0, 3], [1, 0]])
    report = check(rank(Comparisons(pairs), "davidson", draws=150, random_seed=0))
    (connection,) = report.about("connection")
    assert connection.sentence.endswith("Compare systems of different sets in battles.")


def test_battles_have_pairs_too():
    wins = np.array([[0, 30, 0], [20, 0, 25], [0, 15, 0]])
    found = only(Comparisons(wins, systems=list("abc")), "never compared")
    assert found.numbers["example"] == ["a", "c"]
    assert "in a battle" in found.sentence


# Few outcomes


@pytest.mark.parametrize("n_few", [0, 1, 24])
def test_systems_with_few_outcomes_are_named(n_few):
    outcomes = simulate((6, 50, 2))
    kept = outcomes[2].ravel().copy()
    kept[n_few:] = -1
    outcomes[2] = kept.reshape(50, 2)
    found = only(Responses(outcomes), "few outcomes")
    assert found.numbers["systems"] == {"system 3": n_few}
    assert found.numbers["median"] == 100
    assert found.verdict == ("doubtful" if n_few else "bad")


@pytest.mark.parametrize("n_questions", [3, 10, 200])
def test_the_leaderboard_marks_the_systems_that_the_check_names(n_questions):
    outcomes = simulate((5, n_questions, 1))
    outcomes[1, 2:] = outcomes[3, max(2, n_questions // 3) :] = -1
    data = Responses(outcomes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rank(data, "avg", draws=150, random_seed=0)
    table = leaderboard(result)
    found = check(result, data).about("few outcomes")
    named = set(found[0].numbers["systems"]) if found else set()
    assert named == set(table["system"][table["few"]])


def test_six_outcomes_of_everybody_are_not_few():
    assert not check_data(Responses(simulate((3, 6, 1)))).about("few outcomes")
    assert check_data(Responses(simulate((3, 5, 1)))).about("few outcomes")
    assert check_data(Comparisons([[0, 3], [2, 0]])).about("few outcomes")
    assert not check_data(Comparisons([[0, 4], [2, 0]])).about("few outcomes")


# Always alike


@pytest.mark.parametrize("value", [0, 1])
@pytest.mark.parametrize("n_questions", [10, 100])
def test_a_system_that_is_always_right_or_wrong_is_named(value, n_questions):
    outcomes = simulate((3, n_questions, 2))
    outcomes[1] = value
    found = only(Responses(outcomes), "always alike")
    assert found.numbers["systems"] == ["system 2"]
    n = 2 * n_questions
    # The bound is exact: a chance of it shows nothing in n outcomes with a probability of 5 %.
    assert (1 - found.numbers["largest_unseen_chance"]) ** n == pytest.approx(0.05)


def test_one_other_outcome_is_enough_to_vary():
    outcomes = np.ones((2, 20, 2), dtype=int)
    outcomes[:, 3, 1] = 0
    assert not check_data(Responses(outcomes)).about("always alike")


def test_scores_that_are_all_the_same_are_named():
    scores = np.random.default_rng(0).random((3, 40))
    scores[0] = 0.4
    assert only(Responses(scores), "always alike").numbers["systems"] == ["system 1"]


def test_battles_that_were_all_won_are_named():
    found = only(
        Comparisons([[0, 40, 9], [0, 0, 20], [0, 15, 0]], systems=list("abc")), "always alike"
    )
    assert found.numbers["systems"] == ["a"]
    assert "the same result in every battle" in found.sentence
    ties = Comparisons([[0, 0, 0], [0, 0, 9], [0, 8, 0]], [[0, 9, 9], [9, 0, 0], [9, 0, 0]])
    assert "the same result in every battle" in only(ties, "always alike").sentence
    with_tie = Comparisons([[0, 40], [0, 0]], [[0, 1], [1, 0]])
    assert not check_data(with_tie).about("always alike")


def test_ballots_are_looked_at():
    grades = np.random.default_rng(0).random((4, 50))
    grades[0] += 1.0
    grades[3, 10:] = np.nan
    report = check_data(Ballots(grades, tuple("abcd")))
    assert report.about("always alike")[0].numbers["systems"] == ["a"]
    assert report.about("few outcomes")[0].numbers["systems"] == {"d": 10}


def test_single_trials_are_not_measured():
    found = only(Responses(simulate((3, 40, 1))), "runs")
    assert found.verdict == "not measured"
    outcomes = simulate((3, 40, 2))
    outcomes[..., 1] = -1
    assert check_data(Responses(outcomes)).about("runs")


def test_the_share_that_is_missing_is_of_the_fullest_cell():
    outcomes = simulate((2, 10, 4))
    outcomes[0, :5] = -1
    groups = data_groups(Responses(outcomes), "grades")
    design = design_of(groups["observed_data"], groups["constant_data"])
    assert design.missing == pytest.approx(0.25)
