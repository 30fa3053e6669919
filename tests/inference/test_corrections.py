"""What draws of a bootstrap do not show by themselves: bias, leverage, skewness and jumps."""

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.inference.resample.bca import (
    accelerate,
    correct_bias,
    iterate,
    scale_to_largest,
    stretch,
    widen,
)
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.resample.leave_out import without_clusters


def simulate(shape=(3, 12, 6), seed=0, **options) -> Responses:
    rng = np.random.default_rng(seed)
    chance = rng.random((1, shape[1], 1)) * np.linspace(0.6, 1.0, shape[0])[:, None, None]
    return Responses((rng.random(shape) < chance).astype(int), **options)


def test_draws_are_scaled_as_their_spread_changes_from_one_resampling_to_the_next():
    rng = np.random.default_rng(0)
    draws = rng.normal([0.0, 5.0, 7.0], [1.0, 2.0, 0.0], (4, 20_000, 3))
    shared = rng.normal(size=(20_000, 3))
    again = shared + rng.normal(size=(2, 20_000, 3)) * [0.5, 4.0, 0.0]
    found = iterate(draws, again)
    np.testing.assert_allclose(found.mean(axis=(0, 1)), draws.mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(found.std(axis=(0, 1)), [2.0, 1.0, 0.0], rtol=0.02)


def test_a_bias_is_corrected_by_twice_what_the_draws_show():
    rng = np.random.default_rng(0)
    score = np.array([0.6, 0.4])
    draws = rng.normal([0.7, 0.4], 0.1, (4, 1000, 2))
    corrected = correct_bias(score, draws)
    np.testing.assert_allclose(corrected[..., 0].mean(), 0.5, atol=0.01)
    # Noise is no bias.
    np.testing.assert_array_equal(corrected[..., 1], draws[..., 1])


def test_a_bias_is_the_same_on_any_scale():
    draws = np.random.default_rng(0).normal(0.3, 1.0, (4, 500, 1))
    corrected = correct_bias(np.array([0.0]), draws)
    of_odds = correct_bias(np.array([1.0]), np.exp(draws))
    np.testing.assert_allclose(np.median(of_odds), np.exp(np.median(corrected)), rtol=1e-3)


def test_a_correction_leaves_no_range():
    draws = np.random.default_rng(0).beta(1, 9, (4, 1000, 1))
    corrected = correct_bias(np.array([0.0]), draws)
    assert corrected.min() == draws.min()
    assert 0 < corrected.max() < draws.max()
    # The draws keep their order, and with it how systems vary together.
    order = np.argsort(draws.ravel())
    assert (np.diff(corrected.ravel()[order]) >= 0).all()


def test_one_question_with_leverage_widens_the_draws():
    rng = np.random.default_rng(0)
    draws = rng.normal(0.0, 1.0, (4, 500, 2))
    # Without any of 19 questions nothing changes; without the last one the second score does.
    left_out = np.zeros((20, 2))
    left_out[:, 0] = rng.normal(0.0, 0.1, 20)
    left_out[-1, 1] = 5.0
    widened = widen(draws, Contributions.of(left_out, left_out=True))
    np.testing.assert_array_equal(widened[..., 0], draws[..., 0])
    assert widened[..., 1].std() > 2.0 * draws[..., 1].std()
    assert np.abs(widened).max() <= np.abs(draws).max()


def test_a_standard_error_that_hangs_on_one_question_has_long_tails():
    draws = np.random.default_rng(0).normal(0.0, 1.0, (4, 500, 1))
    left_out = np.zeros((20, 1))
    left_out[-1] = 1.1
    table = Contributions.of(left_out, left_out=True)
    # Its kurtosis leaves four degrees of freedom at most, and so twice the variance.
    assert widen(draws, table).std() > 1.2 * table.standard_errors[0]


def test_draws_are_moved_as_far_as_contributions_are_skewed():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4, 1_000, 3))
    left_out = np.stack([np.zeros(20), np.linspace(-1.0, 1.0, 20), -np.geomspace(0.01, 1.0, 20)])
    moved = accelerate(draws, Contributions.of(left_out.T, left_out=True).acceleration)
    np.testing.assert_array_equal(moved[..., 0], draws[..., 0])
    np.testing.assert_allclose(moved[..., 1], draws[..., 1], atol=1e-9)
    pull = left_out[2].mean() - left_out[2]
    acceleration = (pull**3).sum() / (6.0 * (pull**2).sum() ** 1.5)
    assert acceleration > 0.05
    before, after = (np.quantile(one[..., 2], [0.05, 0.5, 0.95]) for one in (draws, moved))
    np.testing.assert_allclose(after, before / (1.0 - acceleration * before), atol=0.05)
    assert after[0] > before[0]
    assert after[2] > before[2] + 0.1


def mean_grades(arguments):
    grades, weights = arguments
    return (grades * weights[:, np.newaxis]).mean(axis=-1)


@pytest.mark.parametrize(("n_questions", "is_told"), [(4, False), (5, True), (501, False)])
def test_a_jackknife_needs_some_questions_and_not_too_many(n_questions, is_told):
    table = without_clusters(simulate((2, n_questions, 2)), "grades", mean_grades, 501)
    assert (table is not None) == is_told
    assert table is None or len(table.deviations) == n_questions


def test_clusters_are_left_out_whole():
    data = simulate((2, 12, 2), groups=list("aabbccddeeff"))
    table = without_clusters(data, "grades", mean_grades, 501)
    by_cluster = data.grades.reshape(2, 6, 2).sum(axis=-1) / 12
    expected = np.cov(by_cluster) * 6
    np.testing.assert_allclose(table.covariance, expected, rtol=1e-4)
    assert table.freedom == 5.0


def test_draws_are_stretched_within_their_range():
    draws = np.random.default_rng(0).normal(0.5, 0.1, (4, 500, 2))
    wider = stretch(draws, np.array([1.5, 0.5]))
    np.testing.assert_array_equal(wider[..., 1], draws[..., 1])
    mean = draws[..., 0].mean()
    inner = np.abs(draws[..., 0] - mean) < 0.1
    np.testing.assert_allclose(wider[inner, 0] - mean, 1.5 * (draws[inner, 0] - mean), rtol=1e-9)
    assert wider[..., 0].max() == draws[..., 0].max()
    assert wider[..., 0].min() == draws[..., 0].min()


# The table


def test_scores_of_any_size_have_the_same_shape():
    rows, sizes = np.random.default_rng(0).gamma(1.0, size=(30, 1)), np.array([1e-200, 1.0, 1e200])
    table = Contributions.of(rows * sizes)
    np.testing.assert_allclose(table.acceleration, table.acceleration[1])
    np.testing.assert_allclose(table.tail_freedom, table.tail_freedom[1])
    np.testing.assert_allclose(table.standard_errors, rows.std(ddof=1) * 30**0.5 * sizes)


def test_rounding_is_no_contribution():
    rows = 1.0 + 1e-15 * np.random.default_rng(0).normal(size=(30, 1))
    table = Contributions.of(rows)
    assert not table.covariance.any()
    assert not table.acceleration.any()


def test_percentages_of_the_largest_allow_for_its_bias():
    # Five systems of which four are equal: the largest of four estimates is too large, and the
    # fifth too small beside it, which draws from around the estimates show once more.
    rng = np.random.default_rng(0)
    truth = np.array([0.22, 0.22, 0.22, 0.22, 0.12])
    covered = {"scaled": 0, "as they are": 0}
    for _ in range(400):
        score = truth + rng.normal(0.0, 0.01, 5)
        draws = score + rng.normal(0.0, 0.01, (4, 250, 5))
        plain = 100.0 * draws / draws.max(axis=-1, keepdims=True)
        for name, one in (("scaled", scale_to_largest(score, draws)), ("as they are", plain)):
            lower, upper = np.quantile(one[..., 4], [0.025, 0.975])
            covered[name] += lower <= 100.0 * 0.12 / 0.22 <= upper
    assert covered["scaled"] / 400 >= 0.93
    assert covered["as they are"] / 400 < 0.92


def test_percentages_of_the_largest_keep_the_order_of_the_draws():
    draws = np.random.default_rng(0).dirichlet([50.0] * 4, (4, 250))
    scaled = scale_to_largest(np.full(4, 0.25), draws)
    without_bias = draws + 2.0 * (0.25 - draws.mean(axis=(0, 1)))
    np.testing.assert_array_equal(scaled.argsort(axis=-1), without_bias.argsort(axis=-1))
    np.testing.assert_allclose(scaled.max(axis=-1), 100.0)
    assert scaled.min() > 0.0
