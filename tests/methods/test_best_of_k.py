from fractions import Fraction
from itertools import combinations
from math import comb, prod

import numpy as np
import pytest

from bayesrank.methods.best_of_k import max_at_k, max_at_k_probability
from bayesrank.methods.pass_family import pass_at_k, pass_at_k_probability

WEIGHTS = (0.25, 1.0, 0.0)


def cell(*counts: int) -> np.ndarray:
    return np.array(counts, dtype=float)[None, None, :]


@pytest.mark.parametrize("k", range(1, 7))
@pytest.mark.parametrize("counts", [(2, 1, 3), (0, 6, 0), (5, 0, 1), (0, 0, 6)])
def test_max_at_k_equals_enumeration(counts: tuple[int, ...], k: int):
    answers = np.repeat(WEIGHTS, counts)
    expected = np.mean([max(subset) for subset in combinations(answers, k)])
    np.testing.assert_allclose(max_at_k(cell(*counts), WEIGHTS, k=k), [expected], atol=1e-14)


def test_binary_weights_give_pass_at_k():
    rng = np.random.default_rng(0)
    right = rng.binomial(8, 0.4, (4, 6))
    counts = np.stack([8 - right, right], axis=-1)
    np.testing.assert_allclose(
        max_at_k(counts, (0.0, 1.0), k=3), pass_at_k(right, np.full((4, 6), 8), k=3), atol=1e-14
    )
    p = rng.random((5, 4, 6))
    np.testing.assert_allclose(
        max_at_k_probability(np.stack([1 - p, p], axis=-1), (0.0, 1.0), k=3),
        pass_at_k_probability(p, k=3),
        atol=1e-14,
    )


def test_posterior_means_against_draws():
    counts = np.array([[[1.0, 0.0, 2.5], [0.0, 0.0, 0.0], [3.0, 1.0, 0.0]]])
    found = max_at_k(counts, WEIGHTS, k=7, estimator="posterior_mean")
    shapes = 1.0 + counts[:, [0, 2]]  # the second question was not observed
    gammas = np.random.default_rng(2).standard_gamma(shapes, (200_000, *shapes.shape))
    drawn = max_at_k_probability(gammas / gammas.sum(axis=-1, keepdims=True), WEIGHTS, k=7)
    np.testing.assert_allclose(found, drawn.mean(axis=0), atol=5 * drawn.std() / 200_000**0.5)


def test_fresh_answers_by_hand():
    # Of two answers: none above 0 with 1/4, none above 0.25 with 9/16.
    p = np.array([0.25, 0.25, 0.5])[None, None, :]
    expected = 0.25 * (9 / 16 - 1 / 4) + 1.0 * (1 - 9 / 16)
    np.testing.assert_allclose(max_at_k_probability(p, WEIGHTS, k=2), [expected], rtol=1e-14)


def test_one_answer_is_the_mean_weight_and_empty_cells_are_left_out():
    counts = np.array([[[1.0, 2.0, 1.0], [0.0, 0.0, 0.0]]])
    np.testing.assert_allclose(max_at_k(counts, WEIGHTS, k=1), [(0.25 + 2.0) / 4])


@pytest.mark.parametrize(
    ("counts", "weights", "k", "message"),
    [
        (cell(1, 1, 1), (0.0, 1.0), 1, "category_weights must be 3 finite numbers"),
        (cell(1, 1, 1), ("x", 1.0, 2.0), 1, "category_weights must be numbers"),
        (cell(1, 1, 1), (0.0, 1.0, np.nan), 1, "category_weights must be 3 finite numbers"),
        (cell(1, 1, 1), WEIGHTS, 4, "got k = 4 with 3 answers"),
        (cell(1, 1, 1), WEIGHTS, 0, "k must be an integer of at least 1"),
        (cell(1, 1, -1), WEIGHTS, 1, "counts must be whole and non-negative"),
    ],
)
def test_bad_input_is_named(counts: np.ndarray, weights: tuple[float, ...], k: int, message: str):
    with pytest.raises(ValueError, match=message):
        max_at_k(counts, weights, k=k)


def exact_best(below: list[int], worth: list[float], size: int, k: int) -> Fraction:
    """Return the expected best of k of `size` answers, `below` of them worth at most each."""
    none_above = [Fraction(comb(n, k), comb(size, k)) for n in below]
    chance = [
        now - before for now, before in zip(none_above, [Fraction(0), *none_above], strict=False)
    ]
    return sum((p * Fraction(w) for p, w in zip(chance, worth, strict=True)), Fraction(0))


@pytest.mark.parametrize("k", [1, 2, 17, 4000, 999_000])
@pytest.mark.parametrize("worth", [[0.0, 1.0, 3.0], [-3.0, -1.0, 0.0], [2.0, 2.5, 4.0]])
@pytest.mark.parametrize(
    "counts", [(999_998, 1, 1), (999_990, 0, 10), (1, 2, 999_997), (500_000, 250_000, 250_000)]
)
def test_rare_outcomes_of_a_million_answers(counts, worth, k):
    expected = exact_best(np.cumsum(counts).tolist(), worth, 1_000_000, k)
    found = Fraction(float(max_at_k(np.array([[counts]]), worth, k=k)[0]))
    # What is smaller than any float is zero.
    assert abs(found - expected) <= max(Fraction(1, 10**11) * abs(expected), Fraction(1, 10**300))


@pytest.mark.parametrize("n_right", [1, 3, 999_999])
def test_posterior_means_and_chances_of_rare_answers(n_right):
    n, k = 1_000_000, 8
    counts = np.array([[[n - n_right, n_right]]])
    missed = prod(Fraction(n - n_right + 1 + i, n + 2 + i) for i in range(k))
    found = max_at_k(counts, (0, 1), k=k, estimator="posterior_mean")[0]
    assert found == pytest.approx(float(1 - missed), rel=1e-13)
    p = n_right / n
    fresh = max_at_k_probability(np.array([[[1 - p, p]]]), (0, 1), k=k)[0]
    assert fresh == pytest.approx(float(1 - (1 - Fraction(p)) ** k), rel=1e-13)
