import numpy as np
import pytest

from bayesrank.methods.accuracy import avg, inverse_difficulty, question_mean

RAGGED = np.array([[1.0, 0.5, np.nan], [0.0, np.nan, 1.0]])


def test_avg_of_complete_grades_is_the_mean():
    assert avg(np.array([[1.0, 0.5, 0.0], [1.0, 1.0, 0.25]])).tolist() == [0.5, 0.75]


def test_avg_leaves_unobserved_cells_out():
    assert avg(RAGGED).tolist() == [0.75, 0.5]


def test_weights_count_as_multiplicity():
    assert avg(RAGGED, np.array([3.0, 1.0, 1.0])).tolist() == [0.875, 0.25]


def test_batched_weights_give_one_score_per_resample():
    weights = np.array([[1.0, 1.0, 1.0], [3.0, 1.0, 1.0]])
    assert avg(RAGGED, weights).tolist() == [[0.75, 0.5], [0.875, 0.25]]


def test_batched_grades_equal_a_loop():
    grades = np.random.default_rng(0).random((7, 4, 9))
    assert (avg(grades) == np.stack([avg(one) for one in grades])).all()


def test_identical_systems_tie_exactly():
    rng = np.random.default_rng(1)
    grades = np.tile(rng.random((1, 37)), (6, 1))
    scores = avg(grades, rng.random((50, 37)))
    assert (scores == scores[:, :1]).all()


def test_a_system_without_observations_is_named():
    with pytest.raises(ValueError, match="got none for the system at index 1"):
        question_mean(np.array([[1.0], [np.nan]]))


def test_inverse_difficulty_by_hand():
    # Solve rates 5/8 and 1/4, so the questions weigh 8/5 and 4.
    correct, trials = np.array([[4, 0], [1, 2]]), np.full((2, 2), 4)
    expected = [1.6 / 5.6, (0.4 + 2.0) / 5.6]
    np.testing.assert_allclose(inverse_difficulty(correct, trials), expected, rtol=1e-14)


def test_inverse_difficulty_clips_solve_rates():
    # Nobody solves the second question, whose rate of 0 counts as 0.5.
    correct, trials = np.array([[2, 0], [1, 0]]), np.full((2, 2), 2)
    scores = inverse_difficulty(correct, trials, clip_low=0.5, clip_high=0.5)
    assert scores.tolist() == [0.5, 0.25]


def test_inverse_difficulty_pools_the_trials_that_exist():
    correct, trials = np.array([[1, 1], [3, 0]]), np.array([[1, 2], [4, 0]])
    # The rates are 4/5 and 1/2; the second system answered only the first question.
    np.testing.assert_allclose(
        inverse_difficulty(correct, trials), [(1.25 + 1.0) / 3.25, 0.75], rtol=1e-14
    )


def test_inverse_difficulty_with_zero_weights_drops_questions():
    rng = np.random.default_rng(2)
    correct, trials = rng.binomial(5, 0.4, (4, 6)), np.full((4, 6), 5)
    kept = np.array([0, 2, 3])
    weights = np.isin(np.arange(6), kept).astype(float)
    np.testing.assert_allclose(
        inverse_difficulty(correct, trials, weights),
        inverse_difficulty(correct[:, kept], trials[:, kept]),
        rtol=1e-14,
    )


def test_inverse_difficulty_ignores_a_question_nobody_answered():
    correct, trials = np.array([[1, 0], [2, 0]]), np.array([[2, 0], [2, 0]])
    assert inverse_difficulty(correct, trials).tolist() == [0.5, 1.0]


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.9), (0.5, 0.4), (0.1, 1.5)])
def test_bounds_out_of_order_are_refused(low: float, high: float):
    with pytest.raises(ValueError, match="0 < clip_low <= clip_high <= 1"):
        inverse_difficulty(np.ones((1, 1)), np.ones((1, 1)), clip_low=low, clip_high=high)
