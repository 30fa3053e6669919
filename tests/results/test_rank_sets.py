"""Resolved pairs, joint rank sets and separation: counted cases, properties, a simulation."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from bayesrank import Battles, rank
from bayesrank.results.ranks import (
    adjacent_z_ranks,
    joint_error,
    joint_rank_sets,
    pair_gaps,
    rank_scores,
    resolved_pairs,
    separated_from_next,
)

DRAWS = arrays(
    np.float64,
    st.tuples(st.integers(2, 30), st.integers(1, 6)),
    elements=st.sampled_from([-1.0, 0.0, 0.5, 2.0, 2.25]),
)


def noise(size, *, scale=1.0, seed=0, n_draws=4000, around=0.0):
    return np.asarray(around) + scale * np.random.default_rng(seed).normal(size=(n_draws, size))


def simultaneous_rank_sets(draws, *, ci_prob):
    return joint_rank_sets(resolved_pairs(draws.mean(axis=0), draws, ci_prob=ci_prob))


# Joint sets of ranks


def test_systems_far_apart_have_one_rank_each():
    lower, upper = simultaneous_rank_sets(
        noise(3, scale=0.01, around=[1.0, 3.0, 2.0]), ci_prob=0.95
    )
    np.testing.assert_array_equal(lower, [3, 1, 2])
    np.testing.assert_array_equal(upper, [3, 1, 2])


def test_systems_that_nothing_tells_apart_may_have_any_rank():
    lower, upper = simultaneous_rank_sets(noise(4), ci_prob=0.95)
    np.testing.assert_array_equal(lower, 1)
    np.testing.assert_array_equal(upper, 4)


def test_shared_noise_does_not_hide_a_difference():
    shared, own = noise(1, scale=10.0), noise(3, scale=0.1, seed=1)
    lower, upper = simultaneous_rank_sets(shared + own + [0.0, 1.0, 2.0], ci_prob=0.95)
    np.testing.assert_array_equal(lower, [3, 2, 1])
    np.testing.assert_array_equal(upper, [3, 2, 1])


def test_one_pair_is_resolved_by_the_usual_interval():
    # The critical value of a single difference is the normal quantile, 1.96 at 95 %.
    spread = np.sqrt(2)
    for gap, resolved in ((1.93, False), (1.99, True)):
        draws = noise(2, n_draws=200_000, around=[gap * spread, 0.0])
        lower, upper = simultaneous_rank_sets(draws, ci_prob=0.95)
        assert (tuple(lower), tuple(upper)) == (((1, 2), (1, 2)) if resolved else ((1, 1), (2, 2)))


def test_more_systems_need_larger_differences():
    # The 95 % quantile of the studentised range of three means, over sqrt(2): 2.34.
    for gap, resolved in ((2.30, False), (2.39, True)):
        draws = noise(3, n_draws=200_000, around=[gap * np.sqrt(2), 0.0, 0.0])
        lower, _ = simultaneous_rank_sets(draws, ci_prob=0.95)
        np.testing.assert_array_equal(lower, [1, 2, 2] if resolved else [1, 1, 1])


def test_scores_without_noise_have_their_own_ranks_and_ties_share_them():
    draws = np.tile([3.0, 1.0, 3.0, 2.0], (10, 1))
    lower, upper = simultaneous_rank_sets(draws, ci_prob=0.95)
    np.testing.assert_array_equal(lower, [1, 4, 1, 3])
    np.testing.assert_array_equal(upper, [2, 4, 2, 3])


def test_systems_that_move_together_share_their_ranks():
    draws = noise(2)[:, [0, 0, 1]] + [0.0, 0.0, 9.0]
    lower, upper = simultaneous_rank_sets(draws, ci_prob=0.95)
    np.testing.assert_array_equal(lower, [2, 2, 1])
    np.testing.assert_array_equal(upper, [3, 3, 1])


def test_one_system_is_first():
    lower, upper = simultaneous_rank_sets(noise(1), ci_prob=0.95)
    assert (lower.tolist(), upper.tolist()) == ([1], [1])


@given(DRAWS, st.sampled_from([0.5, 0.8, 0.95]))
def test_joint_sets_hold_the_order_of_the_means(draws, ci_prob):
    lower, upper = simultaneous_rank_sets(draws, ci_prob=ci_prob)
    n_systems = draws.shape[1]
    ranks = rank_scores(draws.mean(axis=0))
    assert (lower >= 1).all()
    assert (upper <= n_systems).all()
    assert (lower <= ranks).all()
    assert (ranks <= upper).all()


@given(DRAWS, st.randoms(use_true_random=False))
def test_joint_sets_follow_the_labels(draws, random):
    order = np.array(random.sample(range(draws.shape[1]), draws.shape[1]))
    lower, upper = simultaneous_rank_sets(draws, ci_prob=0.8)
    moved_lower, moved_upper = simultaneous_rank_sets(draws[:, order], ci_prob=0.8)
    np.testing.assert_array_equal(moved_lower, lower[order])
    np.testing.assert_array_equal(moved_upper, upper[order])


def test_more_probability_never_narrows_the_sets():
    draws = noise(6) + np.linspace(0, 6, 6)
    sets = [simultaneous_rank_sets(draws, ci_prob=p) for p in (0.5, 0.8, 0.95, 0.99)]
    for (lower, upper), (wider_lower, wider_upper) in itertools.pairwise(sets):
        assert (wider_lower <= lower).all()
        assert (wider_upper >= upper).all()


def test_blocks_of_draws_give_the_same_sets(monkeypatch):
    draws = noise(5, n_draws=101) + np.linspace(0, 4, 5)
    at_once = simultaneous_rank_sets(draws, ci_prob=0.8)
    monkeypatch.setattr("bayesrank.results.ranks._BLOCK_SIZE", 70)
    for part, whole in zip(simultaneous_rank_sets(draws, ci_prob=0.8), at_once, strict=True):
        np.testing.assert_array_equal(part, whole)


@pytest.mark.parametrize(
    "truth",
    [np.zeros(5), np.array([0.0, 0.0, 1.0, 1.0, 2.0]), np.linspace(0, 8, 5)],
    ids=["all equal", "two pairs", "spread out"],
)
@pytest.mark.parametrize("ci_prob", [0.8, 0.95])
def test_joint_sets_hold_all_true_ranks_at_once(truth, ci_prob):
    # Posterior draws around an estimate that itself is drawn around the truth, both with one
    # covariance of unequal variances.
    rng = np.random.default_rng(7)
    root = np.linalg.cholesky(np.diag([0.2, 0.5, 1.0, 0.5, 0.2]) + 0.1)
    n_simulations, held = 400, 0
    # Systems of equal truth may have any of the positions that they share.
    first, last = rank_scores(truth), rank_scores(truth, method="competition_max")
    for _ in range(n_simulations):
        estimate = truth + root @ rng.normal(size=5)
        draws = estimate + rng.normal(size=(500, 5)) @ root.T
        lower, upper = simultaneous_rank_sets(draws, ci_prob=ci_prob)
        held += bool((lower <= first).all() and (last <= upper).all())
    # Three standard errors below the nominal probability.
    assert held / n_simulations > ci_prob - 3 * np.sqrt(ci_prob * (1 - ci_prob) / n_simulations)
    if not truth.any():
        # All equal is the hardest case, where the sets are no wider than they need be.
        assert held / n_simulations < ci_prob + 0.05


# Resolved pairs, and what follows from them


def test_equal_scores_are_never_resolved():
    draws = noise(2, scale=0.01, around=[1.0, 2.0])
    assert resolved_pairs([1.0, 2.0], draws, ci_prob=0.95)[1, 0]
    assert not resolved_pairs([2.0, 2.0], draws, ci_prob=0.95).any()
    # Nor is an order that the point estimates contradict.
    assert not resolved_pairs([2.0, 1.0], draws, ci_prob=0.95).any()


def test_systems_that_always_tie_are_not_resolved():
    draws = noise(2)[:, [0, 0, 1]] + [0.0, 0.0, 9.0]
    resolved = resolved_pairs(draws.mean(axis=0), draws, ci_prob=0.95)
    np.testing.assert_array_equal(resolved, [[0, 0, 0], [0, 0, 0], [1, 1, 0]])


@given(DRAWS, st.sampled_from([0.5, 0.8, 0.95]))
def test_resolved_is_a_strict_partial_order(draws, ci_prob):
    resolved = resolved_pairs(draws.mean(axis=0), draws, ci_prob=ci_prob)
    assert not (resolved & resolved.T).any()
    steps = resolved.astype(int)
    assert not ((steps @ steps > 0) & ~resolved).any()


def test_resolved_orders_hold_together_in_the_stated_share_of_draws():
    draws = noise(5, scale=0.4) + np.linspace(0, 2, 5)
    resolved = resolved_pairs(draws.mean(axis=0), draws, ci_prob=0.8)
    assert resolved.any()
    held = ((draws[:, :, None] > draws[:, None, :]) | ~resolved).all(axis=(1, 2))
    assert held.mean() >= 0.8


def test_the_joint_error_is_a_probability():
    draws = np.random.default_rng(0).normal(size=(200, 3))
    pairs = pair_gaps(draws - draws.mean(axis=0) + [1e-6, 0.0, 0.0], ci_prob=0.95)
    assert joint_error(pairs, np.array([0]), np.array([1])) == 1.0


def test_joint_sets_count_what_is_resolved():
    lower, upper = joint_rank_sets([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert (lower.tolist(), upper.tolist()) == ([1, 2, 2], [1, 3, 3])


def test_separation_is_from_every_system_of_the_next_score():
    two = [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(separated_from_next([2.0, 1.0, 1.0], two), [True, False, False])
    one = [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(separated_from_next([2.0, 1.0, 1.0], one), [False] * 3)
    np.testing.assert_array_equal(separated_from_next([3.0, 2.0, 1.0], one), [True, False, True])


# The papers' rule


def test_neighbours_closer_than_z_share_dense_ranks():
    mean = [0.683, 0.664, 0.656, 0.601, 0.595, 0.512]
    np.testing.assert_array_equal(adjacent_z_ranks(mean, [0.008] * 6), [1, 2, 2, 3, 3, 4])
    # Independent systems: 0.019 / (0.008 sqrt(2)) = 1.679, between 1.645 and 1.96.
    np.testing.assert_array_equal(adjacent_z_ranks(mean, [0.008] * 6, z=1.96), [1, 1, 1, 2, 2, 3])


def test_the_rule_chains():
    mean = [0.60, 0.58, 0.56, 0.54]
    np.testing.assert_array_equal(adjacent_z_ranks(mean, [0.01] * 4), 1)


def test_ranks_of_neighbours_follow_the_means():
    np.testing.assert_array_equal(adjacent_z_ranks([0.1, 0.9, 0.5], [0.01] * 3), [3, 1, 2])


def test_unequal_spreads_add_in_squares():
    # 0.05 / sqrt(0.03^2 + 0.04^2) = 1.
    np.testing.assert_array_equal(adjacent_z_ranks([0.55, 0.5], [0.03, 0.04], z=0.99), [1, 2])
    np.testing.assert_array_equal(adjacent_z_ranks([0.55, 0.5], [0.03, 0.04], z=1.01), [1, 1])


def test_equal_means_share_a_rank_without_spread():
    np.testing.assert_array_equal(adjacent_z_ranks([0.5, 0.5, 0.4], [0.0] * 3), [1, 1, 2])
    np.testing.assert_array_equal(adjacent_z_ranks([0.5, 0.5], [0.1, 0.1], z=0.0), [1, 1])


@pytest.mark.parametrize(
    ("mean", "sd", "z", "message"),
    [
        (
            [0.5, 0.4],
            [0.1],
            1.0,
            r"sd must hold one number for each of 2 systems; got shape \(1,\)",
        ),
        ([0.5, 0.4], 0.1, 1.0, r"sd must hold one number for each of 2 systems; got shape \(\)"),
        ([[0.5, 0.4]], [[0.1, 0.1]], 1.0, "mean must hold one finite number for each system"),
        ([0.5, np.nan], [0.1, 0.1], 1.0, "mean must hold one finite number for each system"),
        ([0.5, 0.4], [0.1, -0.1], 1.0, "sd must hold finite numbers of at least 0"),
        ([0.5, 0.4], [0.1, np.inf], 1.0, "sd must hold finite numbers of at least 0"),
        ([0.5, 0.4], [0.1, 0.1], -1.0, "z must be a number of at least 0; got -1.0"),
    ],
)
def test_the_rule_of_neighbours_is_given_one_number_each(mean, sd, z, message):
    with pytest.raises(ValueError, match=message):
        adjacent_z_ranks(mean, sd, z=z)


@pytest.mark.parametrize("kind", ["alike", "unlike", "together", "constant"])
def test_the_largest_gap_is_that_of_all_pairs(kind):
    rng = np.random.default_rng(3)
    draws = rng.normal(size=(300, 40))
    if kind == "unlike":
        draws *= np.exp(rng.normal(size=40))
    elif kind == "together":
        draws = 0.01 * draws + rng.normal(size=(300, 1))
    elif kind == "constant":
        draws[:, 3:6] = 1.0
    found = pair_gaps(draws, ci_prob=0.9)
    deviations = draws - draws.mean(axis=0)
    gaps = np.abs(deviations[:, :, np.newaxis] - deviations[:, np.newaxis])
    np.testing.assert_allclose(found.largest, (gaps / found.spread).max(axis=(1, 2)), rtol=1e-9)


@pytest.mark.parametrize("freedom", [4.0, 19.0, 200.0])
def test_few_units_need_the_tails_of_student_t(freedom):
    draws = np.random.default_rng(0).normal(size=(4000, 12))
    many, few = (pair_gaps(draws, ci_prob=0.95, freedom=each) for each in (np.inf, freedom))
    tail = stats.t(freedom).isf(stats.norm.sf(many.critical))
    assert few.critical == pytest.approx(tail * np.sqrt((freedom - 2) / freedom))
    assert few.critical > many.critical
    np.testing.assert_array_equal(few.gap, many.gap)


def test_equal_systems_with_few_questions_are_rarely_resolved():
    """Without the tails, a pair of 20 equal systems is resolved in 17 % of data sets."""
    rng = np.random.default_rng(0)
    n_systems, n_questions, n_data = 20, 20, 150
    freedom = n_questions - 1
    wrong = np.zeros(2)
    for _ in range(n_data):
        grades = rng.normal(size=(n_systems, n_questions))
        score = grades.mean(axis=1)
        spread = np.cov(grades) / n_questions * freedom / (freedom - 2)
        draws = rng.multivariate_normal(score, spread, 500, method="eigh")
        for place, units in enumerate((np.inf, freedom)):
            wrong[place] += resolved_pairs(score, draws, ci_prob=0.95, freedom=units).any()
    without, rate = wrong / n_data
    assert rate <= 0.1
    assert without >= rate + 0.06


@pytest.mark.parametrize(
    ("options", "freedom"),
    [
        ({"target": "population"}, 11.0),
        ({"target": "population", "method": "borda"}, 11.0),
        ({"target": "population", "method": "rasch_map"}, 11.0),
        ({"target": "population", "method": "rasch_map", "calibration": "none"}, np.inf),
        ({"target": "population", "unit": "run"}, 5.0),
        ({"target": "benchmark", "unit": "run"}, 5.0),
        ({"target": "benchmark"}, np.inf),
    ],
)
def test_results_have_the_degrees_of_freedom_of_their_units(options, freedom):
    outcomes = np.random.default_rng(0).integers(0, 2, (3, 12, 6))
    ranking = rank(outcomes, draws=100, random_seed=0, **options)["ranking"].to_dataset()
    assert ranking.attrs.get("freedom", np.inf) == freedom


def test_judges_are_the_units_of_battles():
    rng = np.random.default_rng(0)
    first, second = rng.permuted(np.tile(list("abc"), (60, 1)), axis=1).T[:2]
    for sizes, freedom in (([7] * 8, 7.0), ([4] * 7 + [28], 56**2 / (7 * 4**2 + 28**2) - 1)):
        judge = np.repeat([f"judge {i}" for i in range(8)], sizes)
        log = Battles(first[:56], second[:56], first[:56], judge=judge)
        assert rank(log, random_seed=0)["ranking"].attrs["freedom"] == freedom
