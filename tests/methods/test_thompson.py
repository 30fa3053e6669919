"""Expected ranks against exact rational sums, limits and draws."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest

from bayesrank.methods.thompson import thompson


def beta_function(a: int, b: int) -> Fraction:
    return Fraction(factorial(a - 1) * factorial(b - 1), factorial(a + b - 1))


def beats(a: int, b: int, c: int, d: int) -> Fraction:
    """Return P(X > Y) for X ~ Beta(a, b) and Y ~ Beta(c, d) with whole parameters."""
    return sum(
        (
            beta_function(c + i, d + b) / ((b + i) * beta_function(1 + i, b) * beta_function(c, d))
            for i in range(a)
        ),
        Fraction(0),
    )


def exact_scores(right: list[int], trials: list[int]) -> list[float]:
    shapes = [(1 + s, 1 + n - s) for s, n in zip(right, trials, strict=True)]
    return [
        float(-1 - sum(beats(*other, *own) for j, other in enumerate(shapes) if j != i))
        for i, own in enumerate(shapes)
    ]


@pytest.mark.parametrize(
    ("right", "trials"),
    [
        ([3, 1, 1], [4, 4, 4]),
        ([0, 30, 60], [60, 60, 60]),
        ([0, 0], [1, 200]),
        ([5, 5, 5, 5], [5, 5, 5, 5]),
        ([1, 40, 200, 399], [400, 400, 400, 400]),
        ([0, 7, 250, 3], [3, 9, 251, 200]),
    ],
)
def test_expected_ranks_equal_rational_sums(right: list[int], trials: list[int]):
    scores = thompson(np.array(right)[:, None], np.array(trials)[:, None])
    np.testing.assert_allclose(scores, exact_scores(right, trials), atol=1e-12)


def test_equal_counts_tie_exactly_whatever_the_questions():
    correct = np.array([[3, 0, 2], [1, 2, 2], [5, 5, 0], [0, 0, 5]])
    scores = thompson(correct, np.full((4, 3), 5))
    assert scores[0] == scores[1] == scores[3]
    sampled = thompson(correct, np.full((4, 3), 5), n_samples=50, random_seed=1)
    assert sampled[0] == sampled[1] == sampled[3]


def test_ranks_add_up():
    rng = np.random.default_rng(0)
    scores = thompson(rng.binomial(80, 0.5, (50, 20, 30)), np.full((20, 30), 80))
    np.testing.assert_allclose(scores.sum(axis=-1), -210.0, atol=1e-9)


def test_a_batch_equals_a_loop():
    rng = np.random.default_rng(1)
    trials = rng.integers(0, 40, (5, 4))
    correct = rng.binomial(trials, rng.random((30, 5, 1)), (30, 5, 4))
    together = thompson(correct, trials)
    np.testing.assert_allclose(
        together, [thompson(one, trials) for one in correct], atol=1e-12, rtol=0
    )


def test_weights_count_as_repeated_questions():
    rng = np.random.default_rng(2)
    correct, trials = rng.binomial(6, 0.5, (4, 5)), np.full((4, 5), 6)
    counts = np.array([2, 0, 1, 3, 1])
    repeated = np.repeat(correct, counts, axis=1), np.repeat(trials, counts, axis=1)
    np.testing.assert_allclose(
        thompson(correct, trials, counts.astype(float)), thompson(*repeated), atol=1e-13
    )


def test_the_prior_counts_as_answers():
    correct, trials = np.array([[3], [5]]), np.array([[9], [9]])
    prior = thompson(correct, trials, alpha=3.0, beta=2.0)
    np.testing.assert_allclose(prior, thompson(correct + 2, trials + 3), atol=1e-12)


def test_flat_tails_of_a_weak_prior_are_covered():
    # Under Beta(a, b) alone two systems are exchangeable, however long the tails.
    nothing = np.zeros((3, 1))
    scores = thompson(nothing, nothing, alpha=0.01, beta=0.02)
    np.testing.assert_allclose(scores, -2.0, atol=1e-10)


def test_draws_approach_the_integral():
    correct, trials = np.array([[30], [28], [5]]), np.array([[40], [40], [9]])
    sampled = thompson(correct, trials, n_samples=200_000, random_seed=3)
    np.testing.assert_allclose(sampled, thompson(correct, trials), atol=5e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must be a finite number > 0; got 0.0"),
        ({"beta": np.inf}, "beta must be a finite number > 0; got inf"),
        ({"n_samples": 0}, "n_samples must be an integer of at least 1; got 0"),
    ],
)
def test_bad_options_are_refused(options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        thompson(np.ones((2, 1)), np.ones((2, 1)), **options)
