"""Wins, ties and counts, against loops that count one trial at a time."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayesrank import Responses, counting
from bayesrank.counting import (
    canonical_order,
    compare_cells,
    compare_shared_trials,
    compare_trials,
    compare_trials_by_question,
)
from bayesrank.responses import count_categories

SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
LEVELS = SHAPES.flatmap(lambda shape: arrays(np.int8, shape, elements=st.integers(-1, 2)))
COMPLETE = SHAPES.flatmap(lambda shape: arrays(np.int8, shape, elements=st.integers(0, 1)))


def count_trials(levels, weights=None):
    """Count the wins and ties of paired trials one by one."""
    n_systems, n_questions, n_trials = levels.shape
    wins, ties = np.zeros((2, n_systems, n_systems))
    weights = np.ones((n_questions, n_trials)) if weights is None else weights
    for i, j in itertools.permutations(range(n_systems), 2):
        for m, t in itertools.product(range(n_questions), range(n_trials)):
            a, b = levels[i, m, t], levels[j, m, t]
            if a >= 0 and b >= 0:
                wins[i, j] += weights[m, t] * (a > b)
                ties[i, j] += weights[m, t] * (a == b)
    return wins, ties


def average_pairs(levels):
    """Average the wins and ties of all pairs of trials of a question, one by one."""
    n_systems, n_questions, _ = levels.shape
    wins, ties = np.zeros((2, n_systems, n_systems))
    for i, j in itertools.permutations(range(n_systems), 2):
        for m in range(n_questions):
            ours = [a for a in levels[i, m] if a >= 0]
            theirs = [b for b in levels[j, m] if b >= 0]
            if ours and theirs:
                share = min(len(ours), len(theirs)) / (len(ours) * len(theirs))
                wins[i, j] += share * sum(a > b for a in ours for b in theirs)
                ties[i, j] += share * sum(a == b for a in ours for b in theirs)
    return wins, ties


# Paired trials


@given(LEVELS)
def test_paired_trials_are_those_of_the_loop(levels):
    wins, ties = compare_trials(levels)
    expected_wins, expected_ties = count_trials(levels)
    np.testing.assert_array_equal(wins, expected_wins)
    np.testing.assert_array_equal(ties, expected_ties)
    assert wins.dtype == ties.dtype == np.float64


@given(LEVELS)
def test_paired_trials_of_each_question_are_those_of_the_loop(levels):
    wins, ties = compare_trials_by_question(levels)
    expected = [count_trials(levels[:, m : m + 1]) for m in range(levels.shape[1])]
    np.testing.assert_array_equal(np.stack([wins, ties], axis=1), expected)


@given(LEVELS, st.integers(0, 2**32 - 1))
def test_weighted_trials_are_those_of_the_loop(levels, seed):
    weights = np.random.default_rng(seed).exponential(size=(3, *levels.shape[1:]))
    wins, ties = compare_trials(levels, weights)
    assert wins.shape == ties.shape == (3, len(levels), len(levels))
    for b in range(3):
        expected_wins, expected_ties = count_trials(levels, weights[b])
        np.testing.assert_allclose(wins[b], expected_wins, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ties[b], expected_ties, rtol=1e-12, atol=1e-12)


@given(LEVELS, st.integers(0, 2**32 - 1))
def test_each_pair_has_as_many_weighted_trials_as_it_shares(levels, seed):
    weights = np.random.default_rng(seed).exponential(size=(2, *levels.shape[1:]))
    wins, ties = compare_shared_trials(levels, weights)
    expected = np.zeros((2, 2, len(levels), len(levels)))
    for m in range(levels.shape[1]):
        counted = np.add(*(count_trials(levels[:, m : m + 1])[k] for k in (0, 1)))
        shared = counted + count_trials(levels[:, m : m + 1])[0].T
        for b in range(2):
            won, tied = count_trials(levels[:, m : m + 1], weights[b, m : m + 1])
            total = won + won.T + tied
            scale = np.divide(shared, total, out=np.zeros_like(total), where=total > 0)
            expected[:, b] += scale * won, scale * tied
    np.testing.assert_allclose([wins, ties], expected, rtol=1e-10, atol=1e-10)


def test_a_pair_whose_shared_trials_have_no_weight_keeps_them():
    # All weight is on trials that one of the systems lacks.
    levels = np.array([[[1, 1, -1]], [[0, -1, 0]]], dtype=np.int8)
    wins, ties = compare_shared_trials(levels, np.array([[[0.0, 2.0, 1.0]], [[1.0, 1.0, 1.0]]]))
    np.testing.assert_array_equal(wins, [[[0.0, 1.0], [0.0, 0.0]]] * 2)
    assert not ties.any()


@given(LEVELS, st.tuples(st.booleans(), st.booleans()), st.integers(0, 2**32 - 1))
def test_questions_and_trials_are_weighted_as_all_they_have(levels, shared, seed):
    shape = np.where(shared, 1, levels.shape[1:])
    weights = np.random.default_rng(seed).exponential(size=(2, *shape))
    whole = np.broadcast_to(weights, (2, *levels.shape[1:]))
    found, expected = compare_trials(levels, weights), compare_trials(levels, whole)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("least", [-1, 0])
def test_blocks_of_pairs_are_all_pairs(least, monkeypatch):
    rng = np.random.default_rng(0)
    levels = rng.integers(least, 2, (6, 4, 3)).astype(np.int8)
    weights = rng.exponential(size=(2, 4, 1))
    together = compare_trials(levels, weights)
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 30)
    np.testing.assert_allclose(compare_trials(levels, weights), together, rtol=1e-12)


@given(LEVELS)
def test_weights_of_one_change_nothing(levels):
    weighted = compare_trials(levels, np.ones((2, *levels.shape[1:])))
    for plain, both in zip(compare_trials(levels), weighted, strict=True):
        np.testing.assert_array_equal(both, [plain, plain])


def test_a_repeated_trial_is_a_weight_of_two():
    levels = np.random.default_rng(0).integers(-1, 3, (4, 3, 2)).astype(np.int8)
    weights = np.ones((1, 3, 2))
    weights[0, 1, 0] = 2
    repeated = np.concatenate([levels, np.full((4, 3, 1), -1, dtype=np.int8)], axis=2)
    repeated[:, 1, 2] = levels[:, 1, 0]
    for weighted, plain in zip(
        compare_trials(levels, weights), compare_trials(repeated), strict=True
    ):
        np.testing.assert_array_equal(weighted[0], plain)


def test_single_and_double_precision_count_alike(monkeypatch):
    levels = np.random.default_rng(0).integers(-1, 3, (4, 5, 6)).astype(np.int8)
    in_single = compare_trials(levels)
    monkeypatch.setattr(counting, "_EXACT_IN_FLOAT32", 30)
    for single, double in zip(in_single, compare_trials(levels), strict=True):
        np.testing.assert_array_equal(single, double)


def test_float32_is_exact_below_the_limit():
    limit = counting._EXACT_IN_FLOAT32
    whole = np.array([limit - 1, limit, limit + 1])
    assert (whole.astype(np.float32) == whole).tolist() == [True, True, False]


def test_counts_beyond_bytes_are_exact():
    levels = np.zeros((2, 1, 70_000), dtype=np.int8)
    levels[0, 0, :40_000] = 1
    wins, ties = compare_trials(levels)
    np.testing.assert_array_equal(wins, [[0, 40_000], [0, 0]])
    np.testing.assert_array_equal(ties, [[0, 30_000], [30_000, 0]])


@given(COMPLETE)
def test_net_wins_are_differences_of_right_answers(outcomes):
    data = Responses(outcomes)
    right = (data.outcomes == 1).sum(axis=(1, 2))
    for pairing in ("paired", "all"):
        wins = data.compare(pairing).wins
        np.testing.assert_allclose(wins - wins.T, right[:, None] - right, rtol=0, atol=1e-12)


@given(COMPLETE)
def test_complete_data_compare_every_trial(outcomes):
    data = Responses(outcomes)
    n_systems, n_questions, n_trials = outcomes.shape
    expected = n_questions * n_trials * (1 - np.eye(n_systems))
    for pairing in ("paired", "all"):
        np.testing.assert_allclose(data.compare(pairing).totals, expected, rtol=1e-12)


# All pairs of trials


@given(LEVELS)
def test_cross_trial_pairs_are_those_of_the_loop(levels):
    wins, ties = compare_cells(count_categories(levels, 3))
    expected_wins, expected_ties = average_pairs(levels)
    np.testing.assert_allclose(wins, expected_wins, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ties, expected_ties, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(ties, ties.T)


def test_a_batch_of_cells_is_each_of_them():
    rng = np.random.default_rng(4)
    batch = rng.integers(-1, 3, (2, 3, 4, 3, 5)).astype(np.int8)
    counts = count_categories(batch, 3)
    wins, ties = compare_cells(counts)
    assert wins.shape == ties.shape == (2, 3, 4, 4)
    for index in np.ndindex(2, 3):
        for together, alone in zip((wins, ties), compare_cells(counts[index]), strict=True):
            np.testing.assert_allclose(together[index], alone, rtol=1e-12, atol=1e-14)


def test_fractional_counts_stand_for_the_trials_that_are_given():
    counts = np.array([[[1.5, 0.5]], [[0.2, 0.8]]])
    wins, ties = compare_cells(counts, np.array([[2], [4]]))
    # Shares 3/4, 1/4 against 1/5, 4/5, and two comparisons.
    np.testing.assert_allclose(wins, [[0, 2 * 0.05], [2 * 0.6, 0]], rtol=1e-14)
    np.testing.assert_allclose(ties, [[0, 2 * 0.35], [2 * 0.35, 0]], rtol=1e-14)


def test_small_shares_are_not_lost():
    # Resampled counts put almost all weight on one of two trials.
    counts = np.array([[[2.0, 1e-30]], [[1e-30, 2.0]]])
    wins, _ = compare_cells(counts, np.full((2, 1), 2))
    np.testing.assert_allclose(wins, [[0, 2 * 0.25e-60], [2, 0]], rtol=1e-12)


def test_an_unobserved_cell_is_no_comparison():
    wins, ties = compare_cells(np.array([[[0, 0]], [[1, 2]], [[2, 0]]]))
    np.testing.assert_allclose(wins, [[0, 0, 0], [0, 0, 4 / 3], [0, 0, 0]], rtol=1e-14)
    np.testing.assert_allclose(ties, [[0, 0, 0], [0, 0, 2 / 3], [0, 2 / 3, 0]], rtol=1e-14)


@pytest.mark.parametrize(
    "table",
    [
        np.random.default_rng(0).integers(0, 3, (4, 7)),
        np.random.default_rng(1).integers(0, 2, (5, 5)),
        np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]]),  # whose rows and columns are of one kind
        np.kron(np.eye(3, dtype=int), np.ones((2, 2), dtype=int)),
    ],
)
def test_the_canonical_order_of_a_table_is_that_of_its_permutations(table):
    def ordered(table):
        rows, columns = canonical_order(table)
        assert sorted(rows) == list(range(len(rows)))
        assert sorted(columns) == list(range(len(columns)))
        return table[rows][:, columns]

    rng = np.random.default_rng(2)
    for _ in range(20):
        rows, columns = (rng.permutation(size) for size in table.shape)
        np.testing.assert_array_equal(ordered(table[rows][:, columns]), ordered(table))
