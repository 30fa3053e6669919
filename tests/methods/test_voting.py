"""Borda, Copeland and win rate on hand-counted ballots."""

import numpy as np
import pytest

from bayesrank.methods.voting import battle_win_rate, borda, copeland, win_rate

GRADES = np.array([[1.0, 0.5, 0.0], [0.5, 0.5, 1.0], [0.0, 0.25, 0.5]])


def test_scores_by_hand():
    assert borda(GRADES).tolist() == [3.5, 4.5, 1.0]
    assert copeland(GRADES).tolist() == [1.0, 1.0, -2.0]
    np.testing.assert_allclose(win_rate(GRADES), [3 / 5, 4 / 5, 1 / 6])


def test_borda_points_of_complete_data_add_up():
    grades = np.random.default_rng(0).integers(0, 3, (50, 6, 9)) / 2
    assert (borda(grades).sum(axis=-1) == 9 * 15).all()


def test_borda_counts_a_missing_cell_as_its_own_average():
    grades = np.array([[1.0, 1.0], [0.5, np.nan], [0.0, 0.0]])
    # On the second question the better of two gets the two points of the best of three.
    assert borda(grades).tolist() == [4.0, 2.0, 0.0]


def test_borda_leaves_out_what_a_system_answered_alone():
    grades = np.array([[1.0, 1.0], [0.0, np.nan], [0.5, np.nan]])
    assert borda(grades).tolist() == [4.0, 0.0, 2.0]


def test_borda_rule_for_missing_cells_is_unbiased():
    # Leaving systems out at random leaves the expected points of the others where they were.
    rng = np.random.default_rng(1)
    grades = np.tile(np.array([[0.9], [0.7], [0.4], [0.1]]), (1, 40_000))
    grades[rng.random(grades.shape) < 0.4] = np.nan
    np.testing.assert_allclose(borda(grades) / 40_000, [3.0, 2.0, 1.0, 0.0], atol=0.02)


def test_systems_without_answers_stand_in_the_middle():
    grades = np.array([[1.0, 1.0], [0.0, 0.0], [np.nan, np.nan]])
    assert borda(grades)[2] == pytest.approx(2.0)
    assert copeland(grades).tolist() == [1.0, -1.0, 0.0]
    assert win_rate(grades).tolist() == [1.0, 0.0, 0.5]


def test_win_rate_without_a_decisive_comparison_is_one_half():
    assert win_rate(np.full((3, 4), 0.5)).tolist() == [0.5, 0.5, 0.5]


def test_copeland_counts_a_pair_on_the_questions_both_answered():
    grades = np.array([[1.0, np.nan, 0.0], [0.0, 1.0, np.nan], [0.5, 0.0, 1.0]])
    # 0 beats 1 on the first question, 1 and 2 are even, and so are 0 and 2.
    assert copeland(grades).tolist() == [1.0, -1.0, 0.0]


def test_ties_of_battles_are_losses_half_wins_or_no_battles():
    wins = np.array([[0.0, 3.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    ties = np.array([[0.0, 4.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for ties_count, rates in (
        ("zero", [3 / 8, 1 / 8, 1 / 2]),
        ("half", [5 / 8, 3 / 8, 1 / 2]),
        ("ignore", [3 / 4, 1 / 4, 1 / 2]),
    ):
        found = battle_win_rate(wins, ties, ties_count=ties_count)
        np.testing.assert_array_equal(found, rates, err_msg=ties_count)
    with pytest.raises(ValueError, match="ties_count must be one of zero, half, ignore; got 'all'"):
        battle_win_rate(wins, ties, ties_count="all")
