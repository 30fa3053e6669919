"""Right answers drawn from tables have the distribution of binomial variables."""

import numpy as np
import pytest
from scipy import stats

from bayesrank.inference.resample.weights import draw_right, quantile_table


@pytest.mark.parametrize("sizes", [(1,), (2,), (10,), (80,), (250,), (300,), (1, 3, 4, 17), (0, 7)])
def test_tables_have_binomial_chances_to_the_resolution_of_16_bits(sizes):
    table = quantile_table(sizes)
    assert table.shape == (sum(n + 1 for n in sizes), 2**16)
    found = np.stack([np.bincount(row, minlength=sizes[-1] + 1) for row in table]) / 2**16
    first = 0
    for n in sizes:
        k = np.arange(n + 1)[:, np.newaxis]
        expected = stats.binom.pmf(np.arange(sizes[-1] + 1), n, (k + 0.5) / (n + 1))
        # Both ends of the quantiles of a count are rounded by at most half a bit.
        assert np.abs(found[first : first + n + 1] - expected).max() <= 2.0**-16 + 1e-12
        first += n + 1


@pytest.mark.parametrize(
    ("trials", "is_table"), [(np.full((2, 3), 10), True), (np.array([[2000, 3, 9]] * 2), False)]
)
def test_draws_follow_the_distribution_of_each_cell(trials, is_table):
    quantile_table.cache_clear()
    rng = np.random.default_rng(5)
    right = np.minimum(np.array([[0, 3, 9], [1, 2, 4]]), trials)
    drawn = draw_right(right, trials, 40_000, rng)
    assert quantile_table.cache_info().currsize == is_table
    for cell in np.ndindex(2, 3):
        n, chance = trials[cell], (right[cell] + 0.5) / (trials[cell] + 1)
        # Counts with few draws expected are one class, so that chi-square is near its limit.
        expected = stats.binom.pmf(np.arange(n + 1), n, chance) * 40_000
        found = np.bincount(drawn[(slice(None), *cell)], minlength=n + 1)
        common = expected >= 10
        classes = [np.append(one[common], one[~common].sum()) for one in (found, expected)]
        few = classes[1] > 5
        assert stats.chisquare(classes[0][few], classes[1][few], sum_check=False).pvalue > 1e-4
        assert found[expected < 1e-12 * 40_000].sum() == 0


def test_cells_differ_in_their_trials_and_their_answers():
    trials = np.array([[0, 1, 5], [2, 2, 3]])
    for right in np.array([[[0, 1, 5], [0, 1, 3]], [[0, 0, 0], [2, 1, 1]]]):
        drawn = draw_right(right, trials, 20_000, np.random.default_rng(1))
        assert (drawn <= trials).all()
        error = drawn.mean(axis=0) - trials * (right + 0.5) / (trials + 1)
        assert np.abs(error).max() < 4.5 * np.sqrt(3 / 4 / 20_000)


def test_the_same_seed_gives_the_same_draws():
    right, trials = np.full((30, 40), 3), np.full((30, 40), 9)
    one, other = (draw_right(right, trials, 7, np.random.default_rng(8)) for _ in range(2))
    np.testing.assert_array_equal(one, other)
