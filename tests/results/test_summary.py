"""Summaries of draws, against loops over the draws."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayesrank.results.summary import summarize_draws, summarize_point

# Few values, so that systems often tie within a draw.
DRAWS = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 5)),
    elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0]),
)


def labels(draws) -> tuple[str, ...]:
    return tuple("abcde"[: draws.shape[1]])


def summarize(draws, *, ci_prob=0.95, lcb=0.05):
    draws = np.asarray(draws, dtype=float)
    return summarize_draws(draws, labels(draws), ci_prob=ci_prob, lcb=lcb)


def positions(row) -> list[list[int]]:
    """Return the positions that each system may have in a draw, equals sharing theirs."""
    return [list(range(sum(b > a for b in row) + 1, sum(b >= a for b in row) + 1)) for a in row]


@given(DRAWS)
def test_superiority_counts_draws(draws):
    found = summarize(draws)["superiority"].values
    n_draws, n_systems = draws.shape
    for i, j in itertools.product(range(n_systems), repeat=2):
        above = sum(row[i] > row[j] for row in draws)
        equal = sum(row[i] == row[j] for row in draws)
        assert found[i, j] == pytest.approx((above + equal / 2) / n_draws, abs=1e-15)
    np.testing.assert_array_equal(found.diagonal(), 0.5)
    np.testing.assert_allclose(found + found.T, 1, rtol=1e-15)


@given(DRAWS)
def test_rank_probabilities_share_the_positions_of_equals(draws):
    n_draws, n_systems = draws.shape
    expected = np.zeros((n_systems, n_systems))
    for row in draws:
        for system, shared in enumerate(positions(row)):
            expected[system, np.array(shared) - 1] += 1 / len(shared) / n_draws
    summary = summarize(draws)
    found = summary["rank_probability"].values
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(found == 0, expected == 0)
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-13)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_array_equal(summary["prob_best"], found[:, 0])


@given(DRAWS)
def test_expected_ranks_are_means_of_average_ranks(draws):
    summary = summarize(draws)
    expected = np.mean([[np.mean(shared) for shared in positions(row)] for row in draws], axis=0)
    np.testing.assert_allclose(summary["expected_rank"], expected, rtol=1e-14)
    by_position = summary["rank_probability"] @ summary["position"]
    np.testing.assert_allclose(summary["expected_rank"], by_position, rtol=1e-12)
    by_opponent = 0.5 + summary["superiority"].values.T.sum(axis=1)
    np.testing.assert_allclose(summary["expected_rank"], by_opponent, rtol=1e-12)


@given(DRAWS, st.sampled_from([0.5, 0.8, 0.95]))
def test_rank_intervals_hold_their_probability(draws, ci_prob):
    summary = summarize(draws, ci_prob=ci_prob)
    lower, upper = summary["rank_lower"].values, summary["rank_upper"].values
    assert lower.dtype == upper.dtype == np.int64
    ranks = [positions(row) for row in draws]
    for system in range(draws.shape[1]):
        inside = [
            lower[system] <= row[system][0] and row[system][-1] <= upper[system] for row in ranks
        ]
        # Each tail may lose its share of the draws.
        assert np.mean(inside) >= ci_prob - 1e-12
        assert lower[system] in {row[system][0] for row in ranks}
        assert upper[system] in {row[system][-1] for row in ranks}


def test_many_draws_with_ties_give_no_negative_probability():
    rng = np.random.default_rng(0)
    draws = np.zeros((100_000, 8))
    draws[:, 0], draws[:, 5:] = 9, [-1, -2, -3]
    draws[:, 1:5] = rng.integers(0, 2, (100_000, 4))
    found = summarize_draws(draws, tuple("abcdefgh"), ci_prob=0.95, lcb=0.05)
    probability = found["rank_probability"].values
    assert probability.min() == 0
    np.testing.assert_array_equal(probability[1:5, 5:], 0)
    np.testing.assert_array_equal(probability[0], [1, 0, 0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(probability.sum(axis=0), 1, rtol=1e-11)


def test_intervals_are_equal_tailed_quantiles():
    # The draws of a are 0, 1, ..., 100, so that quantile q is 100 q.
    draws = np.stack([np.arange(101.0), np.full(101, 30.0)], axis=1)
    summary = summarize(draws[::-1], ci_prob=0.9, lcb=0.2)
    np.testing.assert_allclose(summary["score_lower"], [5, 30], rtol=1e-12)
    np.testing.assert_allclose(summary["score_upper"], [95, 30], rtol=1e-12)
    np.testing.assert_allclose(summary["lcb"], [20, 30], rtol=1e-12)
    np.testing.assert_array_equal(summary["lcb_rank"], [2, 1])
    np.testing.assert_array_equal(summary["rank_lower"], [1, 1])
    np.testing.assert_array_equal(summary["rank_upper"], [2, 2])
    # a is above in 70 draws and equal in one.
    np.testing.assert_allclose(summary["prob_best"], [70.5 / 101, 30.5 / 101], rtol=1e-14)
    assert summary.attrs == {"ci_prob": 0.9, "lcb": 0.2}


def test_equal_lower_bounds_share_a_rank():
    summary = summarize([[1.0, 1.0, 0.0], [3.0, 3.0, 2.0]])
    np.testing.assert_array_equal(summary["lcb_rank"], [1, 1, 3])


def test_differences_of_rounding_are_ties():
    summary = summarize([[0.1 + 0.2, 0.3]] * 3)
    np.testing.assert_array_equal(summary["superiority"], np.full((2, 2), 0.5))
    np.testing.assert_array_equal(summary["rank_probability"], np.full((2, 2), 0.5))


def test_one_draw_of_one_system():
    summary = summarize([[2.0]])
    np.testing.assert_array_equal(summary["rank_probability"], [[1.0]])
    np.testing.assert_array_equal(summary["superiority"], [[0.5]])
    assert summary["score_lower"].item() == summary["score_upper"].item() == 2.0


def test_dims_and_labels():
    summary = summarize([[1.0, 2.0]])
    assert summary["superiority"].dims == ("system", "opponent")
    assert summary["rank_probability"].dims == ("system", "position")
    np.testing.assert_array_equal(summary["opponent"], ["a", "b"])
    np.testing.assert_array_equal(summary["position"], [1, 2])
    over_systems = set(summary.data_vars) - {"superiority", "rank_probability"}
    assert all(summary[name].dims == ("system",) for name in over_systems)


def test_draws_with_nan_are_refused():
    with pytest.raises(ValueError, match="scores must not contain NaN"):
        summarize([[1.0, np.nan]])


def test_a_point_estimate_has_ranks_and_groups_of_ties():
    summary = summarize_point(np.array([0.5, 0.9, 0.5, 0.1]), tuple("abcd"))
    np.testing.assert_array_equal(summary["rank"], [2, 1, 2, 4])
    np.testing.assert_array_equal(summary["tie_group"], [2, 1, 2, 3])
    np.testing.assert_array_equal(summary["score"], [0.5, 0.9, 0.5, 0.1])
    np.testing.assert_array_equal(summary["system"], list("abcd"))


def test_a_point_estimate_with_nan_is_refused():
    with pytest.raises(ValueError, match="scores must not contain NaN"):
        summarize_point(np.array([0.5, np.nan]), ("a", "b"))


def test_intervals_hold_the_estimate():
    draws = np.random.default_rng(0).normal(size=(400, 3))
    score = np.array([-9.0, 0.0, 9.0])
    plain = summarize_draws(draws, ("a", "b", "c"), ci_prob=0.95, lcb=0.05)
    found = summarize_draws(draws, ("a", "b", "c"), ci_prob=0.95, lcb=0.05, score=score)
    np.testing.assert_array_equal(found["score_lower"], [-9.0, *plain["score_lower"][1:]])
    np.testing.assert_array_equal(found["score_upper"], [*plain["score_upper"][:2], 9.0])
    np.testing.assert_array_equal(found["lcb"], [-9.0, *plain["lcb"][1:]])
    above = summarize_draws(draws, ("a", "b", "c"), ci_prob=0.95, lcb=0.95, score=score)
    np.testing.assert_array_equal(above["lcb"], np.quantile(draws, 0.95, axis=0))


def test_intervals_hold_the_estimates_and_their_ranks():
    draws = np.array([[1.0, 3.0, 2.0], [2.0, 4.0, 3.0]])
    found = summarize_draws(
        draws, ("a", "b", "c"), ci_prob=0.95, lcb=0.05, score=np.array([5.0, 3.5, 2.5])
    )
    np.testing.assert_array_equal(found["rank_lower"], [1, 1, 2])
    np.testing.assert_array_equal(found["rank_upper"], [3, 2, 3])
    assert found["score_upper"].values[0] == 5.0


def test_few_draws_of_equal_scores_keep_the_bound_in_the_interval():
    for seed in range(50):
        draws = np.random.default_rng(seed).normal(size=(40, 5))
        names = tuple("abcde")
        summary = summarize_draws(draws, names, ci_prob=0.95, lcb=0.05, score=np.zeros(5))
        assert (summary["score_lower"] <= summary["lcb"]).all()
