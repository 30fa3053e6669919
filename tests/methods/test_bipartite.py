"""RankLLM against its own updates, the published case study, and its baselines."""

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.errors import DataError
from bayesrank.methods.bipartite import difficulty_weighted_accuracy, rankllm, simple_rank
from bayesrank.ranking import draw_scores
from bayesrank.results.ranks import rank_scores


def iterate(grades, damping=0.85, tol=1e-12, max_rounds=1000):
    """Run the updates as they are written, and return both vectors and the number of rounds."""
    grades = grades[:, (grades > 0).any(axis=0) & (grades < 1).any(axis=0)]
    n_systems, n_questions = grades.shape
    failed, solved = (1 - grades).sum(axis=1), grades.sum(axis=0)
    system, question = np.full(n_systems, 1 / n_systems), np.full(n_questions, 1 / n_questions)
    for number in range(1, max_rounds + 1):
        sent = np.where(failed > 0, system / np.where(failed > 0, failed, 1), 0)
        fed = sent @ (1 - grades) + system[failed == 0].sum() / n_questions
        new_question = damping * fed + (1 - damping) / n_questions
        new_system = damping * grades @ (new_question / solved) + (1 - damping) / n_systems
        change = np.abs(new_question - question).sum() + np.abs(new_system - system).sum()
        system, question = new_system, new_question
        if change < tol or number == max_rounds:
            return system, question, number
    raise AssertionError("max_rounds is at least one")


def rasch_grades(seed: int, n_systems: int, n_questions: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=(n_systems, 1)), rng.normal(size=n_questions)
    chance = 1 / (1 + np.exp(difficulty - ability))
    return (rng.random((n_systems, n_questions)) < chance).astype(float)


@pytest.mark.parametrize("damping", [0.1, 0.5, 0.85, 1.0])
@pytest.mark.parametrize("fractional", [False, True])
def test_the_fixed_point_is_the_limit_of_the_updates(damping: float, fractional: bool):
    grades = rasch_grades(3, 6, 25)
    if fractional:
        grades = np.random.default_rng(0).integers(0, 5, grades.shape) / 4
    result = rankllm(grades, damping=damping)
    system, question, rounds = iterate(grades, damping)
    kept = (grades > 0).any(axis=0) & (grades < 1).any(axis=0)
    np.testing.assert_allclose(result.competency, system, rtol=1e-10)
    np.testing.assert_allclose(result.score, 100 * system / system.max(), rtol=1e-10)
    np.testing.assert_allclose(result.difficulty[kept], 100 * question / question.max(), rtol=1e-10)
    assert result.iterations == rounds


@pytest.mark.parametrize(
    ("damping", "rounds"), [(0.1, 5), (0.5, 8), (0.85, 11), (0.9, 11), (1.0, 12)]
)
def test_rounds_needed_on_a_large_table(damping: float, rounds: int):
    result = rankllm(rasch_grades(0, 30, 35_000), damping=damping)
    assert abs(int(result.iterations) - rounds) <= 1


@pytest.mark.parametrize("damping", [0.5, 0.85, 1.0])
def test_weights_are_copies_of_questions(damping: float):
    grades = rasch_grades(1, 5, 12)
    copies = np.random.default_rng(2).integers(0, 4, (30, 12))
    batch = rankllm(grades, copies, damping=damping)
    stacked = rankllm(np.broadcast_to(grades, (30, 5, 12)), copies, damping=damping)
    np.testing.assert_allclose(stacked.competency, batch.competency, rtol=1e-12)
    for number in range(30):
        alone = rankllm(np.repeat(grades, copies[number], axis=1), damping=damping)
        np.testing.assert_allclose(batch.competency[number], alone.competency, rtol=1e-11)
        assert batch.iterations[number] == alone.iterations
        asked = copies[number] > 0
        spread = np.repeat(batch.difficulty[number], copies[number])
        top = batch.difficulty[number][asked & (batch.difficulty[number] <= 100)].max()
        ranked = (spread >= 0) & (spread <= 100)
        np.testing.assert_allclose(spread[ranked] * 100 / top, alone.difficulty[ranked], rtol=1e-9)


def test_dropped_questions_are_beyond_the_scale():
    grades = np.array([[1, 1, 0, 0], [1, 0, 0, 1], [1, 0, 0, 0.5]])
    result = rankllm(grades)
    assert result.difficulty[0] == -1.0
    assert result.difficulty[2] == 101.0
    assert result.difficulty[[1, 3]].max() == 100.0
    np.testing.assert_allclose(result.score, rankllm(grades[:, [1, 3]]).score, rtol=1e-12)


def test_a_perfect_system_is_first_and_a_hopeless_one_last():
    grades = np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0.0]])
    result = rankllm(grades)
    assert rank_scores(result.score).tolist() == [1, 2, 2, 4]
    # A system that solves nothing receives the uniform share alone.
    np.testing.assert_allclose(result.competency[3], 0.15 / 4, rtol=1e-12)
    np.testing.assert_allclose(result.competency, iterate(grades)[0], rtol=1e-11)


@pytest.mark.parametrize(
    "grades", [np.ones((3, 4)), np.zeros((3, 4)), np.tile([1.0, 0.0], (3, 1)), np.ones((1, 1))]
)
def test_without_a_telling_question_all_tie(grades: np.ndarray):
    result = rankllm(grades)
    np.testing.assert_array_equal(result.score, 100.0)
    assert result.iterations == 0
    assert np.isin(result.difficulty, [-1.0, 101.0]).all()


def test_identical_and_relabelled_systems():
    grades = np.random.default_rng(4).random((20, 6, 9))
    grades[:, 5] = grades[:, 2]
    order = np.random.default_rng(5).permutation(6)
    result, relabelled = rankllm(grades), rankllm(grades[:, order])
    np.testing.assert_allclose(relabelled.score, result.score[:, order], rtol=1e-12)
    np.testing.assert_allclose(relabelled.difficulty, result.difficulty, rtol=1e-12)
    ranks = rank_scores(result.score)
    np.testing.assert_array_equal(ranks[:, 5], ranks[:, 2])


def test_walks_that_never_settle_still_have_a_fixed_point():
    # Two groups that each solve what the other fails swap their mass in every undamped round.
    grades = np.array([[1, 0], [0, 1], [0, 1.0]])
    result = rankllm(grades, damping=1.0)
    np.testing.assert_allclose(result.competency, [0.5, 0.25, 0.25], rtol=1e-12)
    assert result.iterations == 1000


def test_missing_cells_are_passed_over():
    grades = np.array([[np.nan, 1, 0, 1], [1, 0, 1, np.nan], [0, 1, np.nan, np.nan]])
    result = rankllm(grades)
    # The last question was solved by all it was put to: it is dropped.
    assert result.difficulty[3] == -1.0
    np.testing.assert_allclose(result.score, rankllm(grades[:, :3]).score, rtol=1e-12)
    # System 2 was not asked the third question, so it neither solves nor fails it.
    right, wrong = np.nan_to_num(grades[:, :3]), np.nan_to_num(1 - grades[:, :3])
    system = result.competency
    question = 0.85 * (system / wrong.sum(axis=1)) @ wrong + 0.15 / 3
    expected = 0.85 * right @ (question / right.sum(axis=0)) + 0.15 / 3
    np.testing.assert_allclose(system, expected, rtol=1e-11)


def test_a_question_nobody_was_asked_has_no_difficulty():
    result = rankllm([[1, np.nan], [0, np.nan]])
    assert np.isnan(result.difficulty[1])
    assert rank_scores(result.score).tolist() == [1, 2]


def test_simple_rank_counts_errors():
    grades = np.array([[1, 1, 0], [1, 0, 0], [0.5, 0.5, 0.5]])
    ranking = simple_rank(grades)
    np.testing.assert_array_equal(ranking.score, [-1, -2, -1.5])
    np.testing.assert_array_equal(ranking.difficulty, [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(
        simple_rank(grades, [[2, 1, 0], [0, 0, 3]]).score, [[0, -1, -1.5], [-3, -3, -1.5]]
    )
    stacked = simple_rank(np.stack([grades, 1 - grades]))
    np.testing.assert_array_equal(stacked.score, [[-1, -2, -1.5], [-2, -1, -1.5]])
    np.testing.assert_array_equal(stacked.difficulty, [[0.5, 1.5, 2.5], [2.5, 1.5, 0.5]])


def test_simple_rank_extends_the_rate_of_errors_to_missing_cells():
    missing = np.array([[1, np.nan, 0, np.nan], [1, 0, 0, np.nan], [np.nan] * 4])
    ranking = simple_rank(missing)
    np.testing.assert_allclose(ranking.score, [-2, -8 / 3, -4])
    np.testing.assert_array_equal(ranking.difficulty, [0, 3, 3, np.nan])


def test_accuracy_is_weighted_by_the_error_rate_of_the_data_set():
    grades = np.array([[1, 1, 0, 0], [1, 0, 1, 0]])
    groups = ["easy", "easy", "hard", "hard"]
    # Mean accuracies 3/4 and 1/4.
    expected = [(0.25 * 1 + 0.75 * 0) / 1, (0.25 * 0.5 + 0.75 * 0.5) / 1]
    np.testing.assert_allclose(difficulty_weighted_accuracy(grades, groups), expected)
    np.testing.assert_allclose(difficulty_weighted_accuracy(grades), [0.5, 0.5])
    copies = [[1, 1, 1, 1], [2, 0, 0, 2]]
    batch = difficulty_weighted_accuracy(grades, groups, copies)
    np.testing.assert_allclose(batch[0], expected)
    np.testing.assert_allclose(batch[1], [0, 0])
    np.testing.assert_array_equal(difficulty_weighted_accuracy(np.ones((2, 3))), [1, 1])
    part = np.array([[1, 0, np.nan, np.nan], [1, 1, 1, 0]])
    scores = difficulty_weighted_accuracy(part, groups)
    np.testing.assert_allclose(scores, [0.5, (0.25 * 1 + 0.5 * 0.5) / 0.75])


@pytest.mark.parametrize("method", [rankllm, simple_rank, difficulty_weighted_accuracy])
@pytest.mark.parametrize(
    ("grades", "weights", "message"),
    [
        (
            [[1.5, 0.0]],
            None,
            r"grades must be in \[0, 1\]; got 1.5: categories need weights in \[0, 1\]",
        ),
        ([[np.nan, -0.5]], None, r"grades must be in \[0, 1\]; got -0.5"),
        ([1.0, 0.0], None, "grades must have shape"),
        ([[1.0, 0.0]], [1.0], "weights must have shape"),
        ([[1.0, 0.0]], [1.0, -1.0], "weights must be finite and >= 0; got -1"),
        ([[1.0, 0.0]], [1.0, np.nan], "weights must be finite and >= 0; got nan"),
    ],
)
def test_bad_grades_and_weights_are_named(method, grades, weights, message: str):
    with pytest.raises(DataError, match=message):
        method(grades, weights=weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"damping": 1.1}, "damping must be in"), ({"tol": 0.0}, "tol must be a finite number > 0")],
)
def test_bad_rankllm_options_are_named(options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        rankllm([[1.0, 0.0]], **options)


def test_data_sets_count_as_often_as_they_were_drawn():
    grades = np.array([[1, 1, 0, 0.5], [1, 0, 1, 0.5]])
    drawn = np.array([0, 0, 2, 1])
    scores = difficulty_weighted_accuracy(grades, [0, 0, 1, 2], drawn, drawn)
    again = np.array([[0, 0, 0.5], [1, 1, 0.5]])
    np.testing.assert_allclose(scores, difficulty_weighted_accuracy(again, ["b", "c", "d"]))
    with pytest.raises(DataError, match="group_weights must be finite"):
        difficulty_weighted_accuracy(grades, [0, 0, 1, 2], None, -drawn)


@pytest.mark.parametrize("groups", [np.arange(12), np.repeat(np.arange(12), 3)])
def test_accuracy_varies_over_whole_data_sets(groups):
    rng = np.random.default_rng(0)
    grades = rng.random((2, 12))[:, groups, np.newaxis]
    data = Responses(grades, groups=groups)
    drawn = draw_scores(data, "difficulty_weighted_accuracy", target="population", random_seed=0)
    weights = rng.multinomial(12, np.full(12, 1 / 12), 2_000)[:, groups]
    arguments = data.grades, groups, weights, weights
    expected = difficulty_weighted_accuracy(*arguments).std(axis=0)
    ratio = drawn.std(axis=(0, 1)) / expected
    assert (ratio > 0.95).all()
    assert (ratio < 1.4).all()


def test_groups_must_name_every_question():
    with pytest.raises(DataError, match="groups must hold one name per question, 2 in all"):
        difficulty_weighted_accuracy([[1.0, 0.0]], ["a"])


def test_groups_of_the_data_are_the_data_sets():
    rng = np.random.default_rng(5)
    outcomes = (rng.random((3, 6, 4)) < [[[0.3]], [[0.5]], [[0.7]]]).astype(int)
    groups = ["easy", "easy", "hard", "hard", "hard", "odd"]
    data = Responses(outcomes, groups=groups)
    result = rank(data, "difficulty_weighted_accuracy", draws=100, random_seed=0)
    expected = difficulty_weighted_accuracy(outcomes.mean(axis=2), groups)
    np.testing.assert_allclose(result["ranking"]["score"], expected, rtol=1e-12)
    draws = result["posterior"]["score"].values
    assert (np.abs(draws.mean(axis=(0, 1)) - expected) < 0.05).all()
    assert (draws.std(axis=(0, 1)) > 0).all()
    fractions = Responses(outcomes.mean(axis=2, keepdims=True).repeat(2, axis=2), groups=groups)
    with_scores = rank(fractions, "difficulty_weighted_accuracy", draws=10, random_seed=0)
    np.testing.assert_allclose(with_scores["ranking"]["score"], expected, rtol=1e-12)
