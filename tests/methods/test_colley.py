"""Colley's ratings against hand-worked seasons and the fixed point that defines them."""

import numpy as np
import pytest

from bayesrank.errors import DataError
from bayesrank.methods.colley import colley
from bayesrank.results.ranks import tie_groups


def counts(seed, shape=(6, 6), *, fractions=False):
    rng = np.random.default_rng(seed)
    wins = rng.poisson(2.0, shape).astype(float)
    ties = rng.poisson(1.0, shape).astype(float)
    if fractions:
        wins, ties = wins * rng.random(shape), ties * rng.random(shape)
    off = 1.0 - np.eye(shape[-1])
    return wins * off, (ties + np.swapaxes(ties, -1, -2)) * off


def test_one_game_gives_the_rule_of_succession_between_unequal_opponents():
    # 3 a - b = 3 / 2 and 3 b - a = 1 / 2.
    np.testing.assert_allclose(colley([[0, 1], [0, 0]], np.zeros((2, 2))), [0.625, 0.375])


def test_a_round_robin_has_shrunk_shares():
    # The opponents' ratings sum to L / 2 less one's own: (2 + L) r = 1 + (w - l) / 2 + L / 2.
    wins = np.array([[0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 0, 1], [1, 0, 0, 0]])
    expected = (3.0 + np.array([-3, 1, 3, -1]) / 2.0) / 6.0
    np.testing.assert_allclose(colley(wins, np.zeros((4, 4))), expected, rtol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_ratings_solve_the_system_as_it_is_written(seed):
    wins, ties = counts(seed, fractions=seed % 2 == 1)
    matrix = 2.0 * np.eye(6)
    right = np.ones(6)
    for i in range(6):
        for j in range(6):
            met = wins[i, j] + wins[j, i] + ties[i, j]
            matrix[i, i] += met
            matrix[i, j] -= met
            right[i] += (wins[i, j] - wins[j, i]) / 2.0
    np.testing.assert_allclose(colley(wins, ties), np.linalg.solve(matrix, right), rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_effective_wins_are_shrunk_like_any_share(seed):
    # r = (1 + w') / (2 + n), w' = (w - l) / 2 + the ratings of all opponents met.
    wins, ties = counts(seed)
    rating = colley(wins, ties)
    met = wins + wins.T + ties
    effective = (wins.sum(1) - wins.sum(0)) / 2.0 + met @ rating
    np.testing.assert_allclose(rating, (1.0 + effective) / (2.0 + met.sum(1)), rtol=1e-12)
    np.testing.assert_allclose(rating.mean(), 0.5, rtol=1e-12)


def test_a_tie_is_half_a_win_for_both():
    wins, ties = counts(7)
    np.testing.assert_allclose(colley(wins + ties / 2.0, np.zeros((6, 6))), colley(wins, ties))


def test_nothing_but_ties_and_nothing_at_all_give_one_half():
    tied = 3.0 * (1.0 - np.eye(4))
    np.testing.assert_array_equal(colley(np.zeros((4, 4)), tied), 0.5)
    np.testing.assert_array_equal(colley(np.zeros((4, 4)), np.zeros((4, 4))), 0.5)


def test_interchangeable_systems_tie():
    wins, ties = counts(3)
    for table in (wins, ties):
        table[4], table[:, 4] = table[1], table[:, 1]
        table[1, 4] = table[4, 1] = 0.0
    groups = tie_groups(colley(wins, ties))
    assert groups[1] == groups[4]
    assert len(set(groups)) == 5


def test_batches_equal_loops():
    wins, ties = counts(5, (2, 3, 4, 4))
    together = colley(wins, ties)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(together[index], colley(wins[index], ties[index]), rtol=1e-12)


def test_negative_counts_are_refused():
    with pytest.raises(DataError, match="wins must"):
        colley([[0, -1], [0, 0]], np.zeros((2, 2)))
