"""How trials separate a pair: closed forms, and the published study of biased coins."""

import numpy as np
import pytest

from bayesrank import Comparisons, Responses
from bayesrank.errors import DataError
from bayesrank.planning import (
    correct_order_probability,
    expected_z,
    plan_pairs,
    trials_needed,
)
from bayesrank.planning.forecast import forecast, trial_noise

# Trials, P(correct order) and mean |z| of the pair with means 0.608 and 0.6213, from appendix D of
# arXiv:2510.04265.
PUBLISHED = [(80, 0.837, 1.14), (199, 0.947, 1.645), (285, 0.969, 1.96)]


def coins(mean: float, rng: np.random.Generator, within: float = 0.20) -> np.ndarray:
    """Draw 30 probabilities with this mean, and this mean of p (1 - p)."""
    concentration = mean * (1 - mean) / (mean * (1 - mean) - within) - 1
    logits = rng.beta(mean * concentration, (1 - mean) * concentration, 30)
    logits = np.log(logits / (1 - logits))
    for _ in range(500):
        p = 1 / (1 + np.exp(-logits))
        logits = logits * (1 + 2 * ((p * (1 - p)).mean() - within)) + 3 * (mean - p.mean())
    return 1 / (1 + np.exp(-logits))


def simulate(n_trials: int, n_sets: int, seed: int) -> tuple[float, float]:
    """Return the share of right orders and the mean |z| of the posterior means."""
    rng = np.random.default_rng(seed)
    means, variances = [], []
    for mean in (0.6213, 0.608):
        right = rng.binomial(n_trials, coins(mean, rng), (n_sets, 30))
        posterior = (right + 1) / (n_trials + 2)
        means.append(posterior.mean(axis=1))
        variances.append((posterior * (1 - posterior)).sum(axis=1) / (n_trials + 3) / 900)
    gap = means[0] - means[1]
    order = np.where(np.abs(gap) < 1e-12, 0.5, gap > 0)
    return order.mean(), np.abs(gap / np.sqrt(variances[0] + variances[1])).mean()


@pytest.mark.parametrize(("n_trials", "order", "z"), PUBLISHED)
def test_forecasts_of_the_published_pair(n_trials: int, order: float, z: float):
    spread = np.sqrt(2 * 0.20 / 30)
    assert correct_order_probability(0.0133, spread, n_trials) == pytest.approx(order, abs=0.015)
    assert expected_z(0.0133, spread, n_trials) == pytest.approx(z, abs=0.05)


@pytest.mark.parametrize(("n_trials", "order", "z"), PUBLISHED)
def test_simulated_coins(n_trials: int, order: float, z: float):
    got = simulate(n_trials, 40_000, 1)
    assert got == (pytest.approx(order, abs=0.015), pytest.approx(z, abs=0.05))


@pytest.mark.slow
@pytest.mark.parametrize(("n_trials", "order", "z"), PUBLISHED)
def test_simulated_coins_at_length(n_trials: int, order: float, z: float):
    got = np.mean([simulate(n_trials, 20_000, seed) for seed in range(10)], axis=0)
    assert tuple(got) == (pytest.approx(order, abs=0.015), pytest.approx(z, abs=0.05))


def test_trials_needed_give_the_separation():
    needed = trials_needed(0.02, 0.1, z=1.96)
    assert 0.02 * np.sqrt(needed) / 0.1 >= 1.96 > 0.02 * np.sqrt(needed - 1) / 0.1
    assert trials_needed(0.5, 0.0) == 1.0
    assert trials_needed(0.0, 0.1) == np.inf


def test_equals_have_even_chances():
    assert correct_order_probability(0.0, 0.1, 5) == 0.5
    assert expected_z(0.0, 0.1, 5) == pytest.approx(np.sqrt(2 / np.pi))


def simulated(n_questions: int, n_trials: int, seed: int = 0) -> Responses:
    rng = np.random.default_rng(seed)
    ability, difficulty = np.array([1.2, 0.9, 0.0, -1.0]), rng.normal(size=n_questions)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    outcomes = rng.random((4, n_questions, n_trials)) < chance[..., None]
    return Responses(outcomes.astype(int), systems=["a", "b", "c", "d"])


def test_k_needs_a_goal():
    with pytest.raises(ValueError, match="k must be None without the goal 'top_k'; got 1"):
        plan_pairs(simulated(20, 5), k=1)


def test_pairs_of_a_goal_are_those_on_which_it_turns():
    data = simulated(20, 5)
    order = plan_pairs(data, goal="full")["system"].tolist()
    last = plan_pairs(data, goal="full")["opponent"].iloc[-1]
    best = plan_pairs(data, goal="best")
    assert set(best["system"]) == {order[0]}
    assert best["opponent"].tolist() == [*order[1:], last]
    assert len(plan_pairs(data, goal="top_k", k=2)) == 4
    everything = plan_pairs(data).set_index(["system", "opponent"])
    assert len(everything) == 6
    for row in best.itertuples():
        assert everything.loc[(row.system, row.opponent), "superiority"] == row.superiority


@pytest.mark.parametrize("n_trials", [1, 6])
def test_without_further_trials_the_forecast_is_the_present(n_trials: int):
    table = plan_pairs(simulated(25, n_trials), further=0)
    np.testing.assert_array_equal(table["superiority_then"], table["superiority"])
    np.testing.assert_array_equal(table["resolved_then"], table["resolved"])


def test_as_many_further_trials_as_needed_resolve_and_one_less_does_not():
    data = simulated(25, 4, seed=3)
    table = plan_pairs(data)
    open_pairs = table[np.isfinite(table["further_trials_needed"]) & ~table["resolved"]]
    assert len(open_pairs)
    for pair in open_pairs.itertuples():
        needed = int(pair.further_trials_needed)
        for further, resolved in ((needed, True), (needed - 1, False)):
            then = plan_pairs(data, further=further).loc[pair.Index, "resolved_then"]
            assert bool(then) == resolved


def test_unequal_numbers_of_trials_are_counted_by_question():
    outcomes = simulated(25, 8).outcomes.copy()
    outcomes[0, :10, 4:], outcomes[1, 5:, 2:] = -1, -1
    data = Responses(outcomes, systems=["a", "b", "c", "d"])
    table = plan_pairs(data, further=0)
    np.testing.assert_array_equal(table["resolved_then"], table["resolved"])
    first = table.set_index(["system", "opponent"]).loc[("a", "c")]
    assert first["trials"] == pytest.approx((10 * 4 + 15 * 8) / 25)


def test_on_a_benchmark_the_spread_falls_with_the_root_of_the_trials():
    data = simulated(25, 8)
    noise = trial_noise(data)
    pair = np.array([0]), np.array([1])
    assert noise.of_difference(*pair, 24.0) == pytest.approx(noise.of_difference(*pair, 0.0) / 4)
    ahead = forecast(data, *pair, np.array([0.1]), target="benchmark")
    assert ahead.remaining(24.0) == pytest.approx(0.5)
    # Less than half of the spread is left after one more.
    assert ahead.trials_until(np.array([0.5])) == [25.0]
    assert ahead.trials_until(np.array([0.0])) == [np.inf]


def test_more_trials_do_not_tell_about_other_questions():
    data = simulated(25, 8)
    pair = np.array([0]), np.array([1])
    explained = trial_noise(data).of_difference(*pair, 0.0)
    ahead = forecast(data, *pair, 2 * np.sqrt(explained), target="population")
    assert ahead.explained == pytest.approx(0.25)
    assert ahead.remaining(1e12) == pytest.approx(np.sqrt(0.75))
    assert ahead.trials_until(np.array([0.8])) == [np.inf]


def test_variance_within_questions_is_the_posterior_mean_of_its_own():
    # E p (1 - p) = a b / (T (T + 1)) for p ~ Beta(a, b), T = a + b.
    noise = trial_noise(Responses([[[1, 1, 0], [0, 0, 0]], [[1, 1, 1], [1, 0, 1]]]))
    np.testing.assert_allclose(noise.variance[:, 0] * 4, [(6 + 4) / 30, (4 + 6) / 30])


def test_fractions_are_planned_too():
    rng = np.random.default_rng(0)
    grades = np.clip(rng.normal([[0.7], [0.3]], 0.1, (2, 30)), 0, 1)
    table = plan_pairs(Responses(grades))
    assert table["resolved"].tolist() == [True]


def test_equal_scores_are_never_resolved_by_more_trials():
    data = Responses([[[1, 1, 0], [0, 0, 0]], [[1, 1, 1], [1, 0, 1]], [[1, 0, 1], [0, 0, 0]]])
    table = plan_pairs(data).set_index(["system", "opponent"])
    assert table.loc[("system 1", "system 3"), "further_trials_needed"] == np.inf


def test_arguments_out_of_range_are_refused():
    with pytest.raises(ValueError, match="z must be a number above 0; got 0"):
        trials_needed(0.1, 0.1, z=0)
    with pytest.raises(ValueError, match="spread and trials must be at least 0"):
        expected_z(0.1, -0.1, 3)
    data = simulated(5, 2)
    with pytest.raises(ValueError, match="further must be an integer of at least 0; got -1"):
        plan_pairs(data, further=-1)
    with pytest.raises(ValueError, match="error must be between 0 and 1; got 1"):
        plan_pairs(data, error=1)
    with pytest.raises(ValueError, match="further must be None for battles; got 2"):
        plan_pairs(Comparisons([[0, 1], [1, 0]]), further=2)
    with pytest.raises(DataError, match="weights must differ to compare systems"):
        plan_pairs(Responses([[[0, 1]], [[1, 1]]], weights=(1, 1)))
