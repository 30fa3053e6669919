"""The kernel of the pass@k family against enumeration and closed forms."""

from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from bayesrank.methods.thresholds import (
    as_payoff,
    as_trial_count,
    binomial_payoff,
    finite_bank_score,
    fresh_trials_score,
    hypergeometric_payoff,
)

BANKS = [(n, k) for n in range(1, 9) for k in range(1, n + 1)]


def enumerated(n: int, right: int, payoff: np.ndarray) -> float:
    """Average the payoff over all subsets of k of n trials, of which the first are right."""
    subsets = list(combinations(range(n), len(payoff) - 1))
    return sum(payoff[sum(t < right for t in subset)] for subset in subsets) / len(subsets)


@pytest.mark.parametrize(("n", "k"), BANKS)
def test_hypergeometric_payoff_equals_enumeration(n: int, k: int):
    payoff = np.random.default_rng(n * 10 + k).normal(size=k + 1)
    expected = [enumerated(n, right, payoff) for right in range(n + 1)]
    np.testing.assert_allclose(hypergeometric_payoff(n, payoff), expected, atol=1e-13)


@pytest.mark.parametrize(("n", "k"), [(80, 2), (80, 40), (300, 150), (1000, 999)])
def test_hypergeometric_payoff_of_large_banks_is_accurate(n: int, k: int):
    threshold = k // 2 + 1
    payoff = (np.arange(k + 1) >= threshold).astype(float)
    got = hypergeometric_payoff(n, payoff)
    for right in (0, 1, n // 3, n // 2, n - 1, n):
        exact = sum(comb(right, x) * comb(n - right, k - x) for x in range(threshold, k + 1))
        assert got[right] == pytest.approx(float(Fraction(exact, comb(n, k))), abs=1e-12)


def test_sure_payoffs_are_exact():
    payoff = as_payoff([0.0, 0.0, 1.0])
    table = hypergeometric_payoff(80, payoff)
    assert table[0] == 0.0
    assert table[80] == 1.0
    assert binomial_payoff(np.array([0.0, 1.0]), payoff).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("k", range(1, 7))
def test_binomial_payoff_equals_enumeration(k: int):
    payoff = np.random.default_rng(k).normal(size=k + 1)
    p = np.array([0.0, 0.07, 0.5, 0.51, 0.93, 1.0])
    expected = sum(
        payoff[sum(outcome)] * p ** sum(outcome) * (1.0 - p) ** (k - sum(outcome))
        for outcome in product((0, 1), repeat=k)
    )
    np.testing.assert_allclose(binomial_payoff(p, payoff), expected, atol=1e-14)


def test_binomial_payoff_is_continuous_where_powers_would_overflow():
    p = np.array([0.2, 0.499, 0.5, 0.7])
    small = binomial_payoff(p, (np.arange(1001) >= 495).astype(float))
    large = binomial_payoff(p, (np.arange(1002) >= 495.5).astype(float))
    # One trial more and half a threshold more: the two are neighbours.
    assert np.abs(small - large).max() < 0.05
    assert large[0] == pytest.approx(0.0, abs=1e-12)
    assert large[3] == pytest.approx(1.0, abs=1e-12)


def test_fresh_trials_are_the_limit_of_a_large_bank():
    payoff = as_payoff([0.5, 0.0, 0.5])
    n, right = 200_000, 60_000
    bank = finite_bank_score(np.array([[right]]), np.array([[n]]), None, payoff)
    fresh = fresh_trials_score(np.array([[right / n]]), None, payoff)
    np.testing.assert_allclose(bank, fresh, atol=1e-5)


def test_cells_without_trials_are_left_out():
    payoff = as_payoff([1.0])
    score = finite_bank_score(np.array([[1, 0], [1, 3]]), np.array([[2, 0], [1, 4]]), None, payoff)
    assert score.tolist() == [0.5, 0.875]
    assert fresh_trials_score(np.array([[0.25, np.nan]]), None, payoff).tolist() == [0.25]


def test_a_batch_of_counts_equals_a_loop():
    rng = np.random.default_rng(4)
    trials = rng.integers(3, 9, (5, 7))
    correct = rng.binomial(trials, 0.5, (20, 5, 7))
    payoff = as_payoff([0.2, 0.3, 0.5])
    together = finite_bank_score(correct, trials, None, payoff)
    alone = [finite_bank_score(one, trials, None, payoff) for one in correct]
    assert (together == np.stack(alone)).all()


@pytest.mark.parametrize("k", [0, -1, 1.5, 2.0, "2", True, None])
def test_k_that_is_no_positive_integer_is_refused(k: object):
    with pytest.raises(ValueError, match="k must be an integer of at least 1; got"):
        as_trial_count(k)  # type: ignore[arg-type]


def test_too_few_trials_are_located():
    trials = np.array([[4, 4, 0], [4, 2, 3]])
    with pytest.raises(ValueError, match="got k = 4, but 2 in the smallest one") as caught:
        finite_bank_score(np.zeros((2, 3)), trials, None, as_payoff([1.0, 0.0, 0.0, 0.0]))
    assert "2 of 6 cells of a system and a question have fewer than 4)" in str(caught.value)


@pytest.mark.parametrize(("correct", "trials"), [(0.5, 2), (3, 2), (-1, 2), (1, 2.5)])
def test_counts_that_are_not_whole_are_refused(correct: float, trials: float):
    with pytest.raises(ValueError, match="whole counts with 0 <= correct <= trials"):
        finite_bank_score(np.array([[correct]]), np.array([[trials]]), None, as_payoff([1.0]))


@pytest.mark.parametrize("weights", [[], [1.0, np.nan], [[1.0]]])
def test_malformed_threshold_weights_are_refused(weights: list):
    with pytest.raises(ValueError, match="threshold_weights must be a non-empty sequence"):
        as_payoff(weights)


def test_threshold_weights_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="threshold_weights must be numbers; got 'x'"):
        as_payoff("x")
