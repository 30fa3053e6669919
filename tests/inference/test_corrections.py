"""From resampled scores to draws around the estimate: bias, spread, range and jumps."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from bayesrank import Responses
from bayesrank.inference.resample.bca import iterated_factor, median_place, move, spread_steps
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.resample.leave_out import without_clusters


def simulate(shape=(3, 12, 6), seed=0, **options) -> Responses:
    rng = np.random.default_rng(seed)
    chance = rng.random((1, shape[1], 1)) * np.linspace(0.6, 1.0, shape[0])[:, None, None]
    return Responses((rng.random(shape) < chance).astype(int), **options)


def moved(score, draws, *, bias: ArrayLike = 0.0, factor: ArrayLike = 1.0):
    shift = median_place(np.array(score), draws) + np.asarray(bias)
    return move(draws, shift=shift, factor=np.asarray(factor) * np.ones(len(score)))


def test_the_factor_is_that_from_one_resampling_to_the_next():
    rng = np.random.default_rng(0)
    draws = rng.normal([0.0, 5.0, 7.0], [1.0, 2.0, 0.0], (4, 20_000, 3))
    shared = rng.normal(size=(20_000, 3))
    again = shared + rng.normal(size=(2, 20_000, 3)) * [0.5, 4.0, 0.0]
    found = iterated_factor(draws, again)
    np.testing.assert_allclose(found * draws.std(axis=(0, 1)), [2.0, 1.0, 0.0], rtol=0.02)


def test_draws_are_moved_to_the_estimate_less_its_bias():
    draws = np.random.default_rng(0).normal([0.7, 0.4], 0.1, (4, 1000, 2))
    found = moved([0.6, 0.4], draws)
    np.testing.assert_allclose(np.median(found, axis=(0, 1)), [0.6, 0.4], atol=0.005)
    bias = median_place(np.array([0.6, 0.4]), draws)
    np.testing.assert_allclose(bias, [-1.0, 0.0], atol=0.08)
    found = moved([0.6, 0.4], draws, bias=bias)
    np.testing.assert_allclose(np.median(found, axis=(0, 1)), [0.5, 0.4], atol=0.015)


def test_a_bias_is_the_same_on_any_scale():
    draws = np.random.default_rng(0).normal(0.3, 1.0, (4, 500, 1))
    of_odds = moved([1.0], np.exp(draws), bias=0.2)
    np.testing.assert_allclose(np.median(of_odds), np.exp(np.median(moved([0.0], draws, bias=0.2))))


def test_draws_stay_in_their_range_and_order_and_do_not_collapse():
    draws = np.random.default_rng(0).beta(1, 9, (4, 500, 1))
    found = moved([0.0], draws, bias=np.array([-1.0]), factor=1.5)
    assert found.min() == draws.min()
    assert found.max() <= draws.max()
    assert (np.diff(found.ravel()[np.argsort(draws.ravel())]) >= 0).all()
    # An estimate beyond all draws is moved to where 95 % intervals still end among them.
    assert np.quantile(moved([0.0], draws), 0.975) > np.quantile(draws, 0.4)


def test_an_estimate_among_equal_draws_is_their_median():
    draws = np.array([1.0, 1.0, 1.0, 0.2, 0.1]).reshape(1, 5, 1)
    assert median_place(np.array([1.0]), draws) == 0.0
    np.testing.assert_array_equal(moved([1.0], draws), draws)


def test_a_factor_widens_within_the_range():
    draws = np.random.default_rng(0).normal(0.5, 0.1, (4, 500, 2))
    found = moved([0.5, 0.5], draws, factor=np.array([1.3, 1.0]))
    inner = [0.1, 0.9]
    np.testing.assert_allclose(
        np.ptp(np.quantile(found[..., 0], inner)),
        1.3 * np.ptp(np.quantile(draws[..., 0], inner)),
        rtol=0.06,
    )
    assert found[..., 0].max() <= draws[..., 0].max()


def test_counts_are_spread_over_steps_and_kept_between_the_ends():
    draws = np.tile([2.0, 4.0], (4, 250, 1))
    found = spread_steps(draws, step=1.0, ends=(0.0, 4.0))
    np.testing.assert_allclose(np.ptp(found, axis=(0, 1)), [1.0, 0.5], atol=0.01)
    assert found[..., 0].mean() == pytest.approx(2.0)
    assert found.max() <= 4.0
    assert abs(np.corrcoef(found[..., 0].ravel(), found[..., 1].ravel())[0, 1]) < 0.15


def mean_grades(arguments):
    grades, weights = arguments
    return (grades * weights[:, np.newaxis]).mean(axis=-1)


def test_clusters_are_left_out_whole():
    data = simulate((2, 12, 2), groups=list("aabbccddeeff"))
    table = without_clusters(data, "grades", mean_grades)
    by_cluster = data.grades.reshape(2, 6, 2).sum(axis=-1) / 12
    expected = np.cov(by_cluster) * 6
    np.testing.assert_allclose(table.covariance, expected, rtol=1e-4)
    assert table.freedom == 5.0


# The table


def test_equal_units_may_share_a_row():
    rng = np.random.default_rng(0)
    rows, copies = rng.normal(size=(6, 2)), np.array([1, 3, 2, 1, 4, 2])
    strata = np.array([0, 0, 0, 1, 1, 1])
    found = Contributions.of(rows, strata, copies)
    expected = Contributions.of(np.repeat(rows, copies, axis=0), np.repeat(strata, copies))
    np.testing.assert_allclose(found.covariance, expected.covariance)
    assert found.freedom == expected.freedom == 11.0


def test_scores_of_any_size_have_a_standard_error():
    rows, sizes = np.random.default_rng(0).gamma(1.0, size=(30, 1)), np.array([1e-200, 1.0, 1e200])
    table = Contributions.of(rows * sizes)
    np.testing.assert_allclose(table.standard_errors, rows.std(ddof=1) * 30**0.5 * sizes)


def test_rounding_is_no_contribution():
    rows = 1.0 + 1e-15 * np.random.default_rng(0).normal(size=(30, 1))
    table = Contributions.of(rows)
    assert not table.covariance.any()
