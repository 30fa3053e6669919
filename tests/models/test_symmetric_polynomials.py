"""Symmetric polynomials and draws of winner sets against enumeration of all sets."""

from itertools import combinations
from math import comb

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from bayesrank.models.symmetric_polynomials import draw_subsets, log_symmetric
from bayesrank.models.winner_sets import StickBreaking

PYTHON = Mode(linker="py", optimizer="fast_compile")

SCORES = np.array([0.3, -2.1, 1.7, 0.3, 4.0, -0.6])
MEMBERS = np.array([[True] * 6, [True, False, True, True, False, True]])
SIZES = np.array([1, 2, 3, 5])


def enumerate_sets(scores, members, size):
    """Return all sets of a size and the logarithms of their weights."""
    sets = list(combinations(np.flatnonzero(members), size))
    return sets, np.array([scores[list(winners)].sum() / size for winners in sets])


def compile_symmetric(members=MEMBERS, sizes=SIZES):
    scores = pt.dvector("scores")
    return pytensor.function([scores], log_symmetric(scores, members, sizes), mode=PYTHON)


def test_value_is_the_sum_over_all_sets():
    value = compile_symmetric()(SCORES)
    for row, members in enumerate(MEMBERS):
        for column, size in enumerate(SIZES):
            _, log_weight = enumerate_sets(SCORES, members, size)
            expected = np.logaddexp.reduce(log_weight) if len(log_weight) else -np.inf
            assert value[row, column] == pytest.approx(expected, rel=1e-14)


def test_derivatives_are_those_of_the_sum_over_all_sets():
    scores, weight = pt.dvector("scores"), np.array([[1.0, -2.0, 3.0, 0.5], [2.0, 1.0, -1.0, 0.0]])
    value = log_symmetric(scores, MEMBERS, SIZES)
    cost = pt.switch(np.isfinite(compile_symmetric()(SCORES)), value * weight, 0.0).sum()
    gradient = pt.grad(cost, scores)
    curvature = pt.jacobian(gradient, scores, vectorize=True)
    found = pytensor.function([scores], [gradient, curvature], mode=PYTHON)(SCORES)
    first, second = np.zeros(6), np.zeros((6, 6))
    for row, members in enumerate(MEMBERS):
        for column, size in enumerate(SIZES):
            sets, log_weight = enumerate_sets(SCORES, members, size)
            if not sets:
                continue
            chance = np.exp(log_weight - np.logaddexp.reduce(log_weight))
            holds = np.array([np.isin(np.arange(6), winners) for winners in sets]) / size
            mean = chance @ holds
            first += weight[row, column] * mean
            second += weight[row, column] * ((holds.T * chance) @ holds - np.outer(mean, mean))
    np.testing.assert_allclose(found[0], first, rtol=1e-12)
    np.testing.assert_allclose(found[1], second, rtol=1e-11, atol=1e-13)


def test_equal_scores_count_the_sets():
    sizes = np.arange(1, 51)
    value = compile_symmetric(np.ones((1, 50), dtype=bool), sizes)(np.zeros(50))
    np.testing.assert_allclose(value[0], [np.log(comb(50, t)) for t in sizes], atol=1e-12)


@pytest.mark.parametrize("spread", [60.0, 5_000.0])
def test_scores_far_apart_neither_overflow_nor_vanish(spread):
    scores, sizes = np.linspace(spread, -spread, 50), np.arange(1, 51)
    value = compile_symmetric(np.ones((1, 50), dtype=bool), sizes)(scores)[0]
    largest = np.cumsum(scores) / sizes
    assert (value >= largest - 1e-12 * spread).all()
    assert (value <= largest + [np.log(comb(50, t)) for t in sizes] + 1e-12 * spread).all()


def test_a_common_factor_of_the_strengths_is_a_factor_of_the_sum():
    function = compile_symmetric()
    np.testing.assert_allclose(function(SCORES + 7.0), function(SCORES) + 7.0, rtol=1e-13)


def test_draws_have_the_chances_of_the_sets():
    n_draws = 60_000
    rng = np.random.default_rng(1)
    members = np.repeat(MEMBERS, n_draws, axis=0)
    sizes = np.repeat([3, 2], n_draws)
    drawn = draw_subsets(rng.random(members.shape), SCORES, members, sizes).eval(mode=PYTHON)
    np.testing.assert_array_equal(drawn.sum(axis=1), sizes)
    assert not drawn[~members].any()
    for half, (member, size) in enumerate(zip(MEMBERS, (3, 2), strict=True)):
        sets, log_weight = enumerate_sets(SCORES, member, size)
        chance = np.exp(log_weight - np.logaddexp.reduce(log_weight))
        rows = drawn[half * n_draws : (half + 1) * n_draws]
        share = np.array([rows[:, list(winners)].all(axis=1).mean() for winners in sets])
        error = np.sqrt(chance * (1 - chance) / n_draws)
        assert np.abs(share - chance).max() < 4 * error.max()


def test_drawing_everybody_leaves_nobody_out():
    members = MEMBERS[1:]
    drawn = draw_subsets(np.full((1, 6), 0.999), SCORES, members, np.array([4])).eval(mode=PYTHON)
    np.testing.assert_array_equal(drawn, members)


def test_sticks_are_log_odds_against_the_rest():
    transform, probability = StickBreaking(), np.array([0.1, 0.5, 0.15, 0.25])
    odds = transform.forward(pt.as_tensor(probability)).eval(mode=PYTHON)
    # Zero for equal probabilities, hence the offset.
    expected = np.log([0.1 / 0.9, 0.5 / 0.4, 0.15 / 0.25]) + np.log([3, 2, 1])
    np.testing.assert_allclose(odds, expected, rtol=1e-12)
    np.testing.assert_allclose(
        transform.backward(pt.as_tensor(odds)).eval(mode=PYTHON), probability, rtol=1e-12
    )
    np.testing.assert_allclose(transform.backward(pt.zeros(3)).eval(mode=PYTHON), 0.25)


def test_the_jacobian_of_sticks_is_that_of_their_inverse():
    transform, odds = StickBreaking(), pt.dvector("odds")
    jacobian = pt.jacobian(transform.backward(odds)[:-1], odds, vectorize=True)
    outputs = [jacobian, transform.log_jac_det(odds)]
    matrix, found = pytensor.function([odds], outputs, mode=PYTHON)(np.array([0.4, -1.3, 2.2]))
    assert found == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-12)
