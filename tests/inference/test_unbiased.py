"""Draws around unbiased estimates of metrics of k trials."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import betainc

from bayesrank import METHODS, Responses, rank
from bayesrank.design import has_repeated_trials
from bayesrank.errors import DataError
from bayesrank.ranking import draw_scores, point_estimate

ROWS = [name for name, row in METHODS.items() if row.functional]
TARGETS = ["benchmark", "population"]


def options_of(name: str, k: int) -> dict[str, object]:
    """Return options of a row for k trials; the weights of thresholds have both signs."""
    if name == "threshold_metric":
        return {"threshold_weights": tuple(np.resize([0.5, -1.0, 1.5], k))}
    return {"k": k} | ({"tau": 0.5} if name == "g_pass_at_k_tau" else {})


def range_of(name: str, k: int) -> tuple[float, float]:
    if name != "threshold_metric":
        return 0.0, 1.0
    payoff = np.cumsum(np.resize([0.5, -1.0, 1.5], k))
    return min(payoff.min(), 0.0), max(payoff.max(), 0.0)


def interval(draws: np.ndarray, ci_prob: float) -> tuple[np.ndarray, np.ndarray]:
    tails = (0.5 - ci_prob / 2, 0.5 + ci_prob / 2)
    lower, upper = np.quantile(draws.reshape(-1, draws.shape[-1]), tails, axis=0)
    return lower, upper


def banks(right: np.ndarray, n_trials: int) -> np.ndarray:
    """Return outcomes (system, question, trial) with so many right ones first."""
    return (np.arange(n_trials) < np.asarray(right)[..., None]).astype(int)


def sample(right: np.ndarray, n_trials: int) -> Responses:
    return Responses(banks(right, n_trials), weights=(0.0, 1.0))


@st.composite
def tensors(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """Draw outcomes with missing trials and questions, and k that every observed cell has."""
    shape = [draw(st.integers(1, 3)), draw(st.integers(2, 6)), draw(st.integers(2, 5))]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    level = draw(st.sampled_from([0.02, 0.3, 1.0, 20.0]))
    outcomes = (rng.random(shape) < rng.beta(level, level, (*shape[:2], 1))).astype(int)
    outcomes[rng.random(shape) < draw(st.sampled_from([0.0, 0.3]))] = -1
    outcomes[:, :2, :2] = np.abs(outcomes[:, :2, :2])  # two trials of the first two questions
    trials = (outcomes >= 0).sum(axis=-1)
    return outcomes, draw(st.integers(1, int(trials[trials > 0].min())))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ROWS)
@given(tensor=tensors())
@settings(max_examples=60)
def test_intervals_hold_the_estimate_and_stay_in_the_range(name, target, tensor):
    outcomes, k = tensor
    options, (low, high) = options_of(name, k), range_of(name, k)
    data = Responses(outcomes, weights=(0.0, 1.0))
    assume(target == "population" or has_repeated_trials(data))
    score = point_estimate(data, name, **options)
    draws = draw_scores(data, name, target=target, draws=100, random_seed=1, **options)
    assert ((low - 1e-12 <= draws) & (draws <= high + 1e-12)).all()
    certain = name == "mg_pass_at_k" and k == 1  # 0 by definition
    for ci_prob in (0.2, 0.5, 0.95):
        lower, upper = interval(draws, ci_prob)
        assert ((lower <= score + 1e-12) & (score <= upper + 1e-12)).all()
        assert certain or (upper - lower > 1e-6).all()


@pytest.mark.parametrize("target", TARGETS)
def test_graded_answers_stay_in_the_range_of_their_worths(target):
    rng = np.random.default_rng(0)
    for _ in range(20):
        worths = rng.normal(size=4)
        outcomes = rng.choice(4, (3, 5, 4), p=rng.dirichlet(np.full(4, 0.3)))
        data = Responses(outcomes, weights=worths)
        score = point_estimate(data, "max_at_k", k=2)
        draws = draw_scores(data, "max_at_k", k=2, target=target, draws=100, random_seed=1)
        lower, upper = interval(draws, 0.95)
        assert ((lower <= score + 1e-12) & (score <= upper + 1e-12) & (lower < upper)).all()
        assert worths.min() <= draws.min()
        assert draws.max() <= worths.max()


@pytest.mark.parametrize("target", TARGETS)
def test_a_score_that_is_certain_by_definition_does_not_vary(target):
    data = Responses(banks([[1, 2], [0, 3]], 3), weights=(0.5, 0.5))
    draws = draw_scores(data, "max_at_k", k=2, target=target, draws=5)
    assert (draws == 0.5).all()


@pytest.mark.parametrize(("target", "n"), [("benchmark", 30 * 8 / 4), ("population", 30)])
@pytest.mark.parametrize("name", ["pass_at_k", "pass_hat_k"])
def test_systems_always_right_or_wrong_follow_the_rule_of_three(name, target, n):
    # Every four trials are one observation on a benchmark, every question one of a population.
    data = Responses(banks(np.repeat([[8], [0]], 30, axis=1), 8))
    ranking = rank(data, name, k=4, target=target, random_seed=1)["ranking"]
    assert ranking["score"].values.tolist() == [1.0, 0.0]
    assert ranking["score_upper"].values[0] == 1.0
    assert ranking["score_lower"].values[1] == 0.0
    # The mid-P limit of no failure in n is the q with (1 - q)^n / 2 = 0.025.
    limit = 1.0 - 0.05 ** (1.0 / n)
    assert 1.0 - ranking["score_lower"].values[0] == pytest.approx(limit, rel=0.03)
    assert ranking["score_upper"].values[1] == pytest.approx(limit, rel=0.03)


def test_one_system_on_questions_that_are_alike_is_a_binomial_sample():
    # With k = N a question is one Bernoulli trial of a population, whatever the chances.
    right = np.repeat([4, 3, 0], [9, 4, 7])
    draws = draw_scores(sample(right[None], 4), "pass_hat_k", k=4, target="population")
    lower, upper = interval(draws, 0.95)
    for limit, tail in ((lower[0], 0.025), (upper[0], 0.975)):
        mid_p = (betainc(9, 12, limit) + betainc(10, 11, limit)) / 2
        assert mid_p == pytest.approx(tail, abs=1e-3)


@pytest.mark.parametrize(("n_trials", "k"), [(4, 1), (4, 3), (12, 5)])
def test_the_width_on_a_benchmark_is_that_of_the_sampling_distribution(n_trials, k):
    # Many questions tell the law of the chances; the estimate is simulated for the true ones.
    rng = np.random.default_rng(k)
    chances = rng.beta(2.0, 1.0, 4_000)
    right = rng.binomial(n_trials, chances)
    draws = draw_scores(sample(right[None], n_trials), "pass_hat_k", k=k, target="benchmark")
    table = point_estimate(banks(np.arange(n_trials + 1)[:, None], n_trials), "pass_hat_k", k=k)
    sampled = table[rng.binomial(n_trials, chances, (400, len(chances)))].mean(axis=1)
    assert draws.std() == pytest.approx(sampled.std(), rel=0.1)


def test_two_categories_of_worth_are_right_and_wrong():
    # By simulation and by quadrature.
    data = sample(np.random.default_rng(5).binomial(6, 0.4, (1, 25)), 6)
    graded = draw_scores(data, "max_at_k", k=3, target="benchmark").std()
    binary = draw_scores(data, "pass_at_k", k=3, target="benchmark").std()
    assert graded == pytest.approx(binary, rel=0.08)


def test_systems_with_the_same_counts_stay_tied():
    right = np.array([[4, 2, 1, 3], [1, 0, 3, 2], [4, 2, 1, 3]])
    outcomes = banks(right, 4)
    outcomes[2] = outcomes[2][:, ::-1]
    for target in TARGETS:
        result = rank(outcomes, "pass_hat_k", k=2, target=target, random_seed=2)
        assert result["ranking"]["superiority"].values[0, 2] == 0.5
        assert result["ranking"]["rank"].values[0] == result["ranking"]["rank"].values[2]


def test_systems_that_fail_on_the_same_questions_vary_together():
    rng = np.random.default_rng(7)
    hard = rng.random(40) < 0.5
    right = np.where(hard, rng.binomial(8, 0.1, (2, 40)), rng.binomial(8, 0.9, (2, 40)))
    spread = {}
    for target in TARGETS:
        draws = draw_scores(sample(right, 8), "maj_at_k", k=3, target=target).reshape(-1, 2)
        spread[target] = np.corrcoef(draws.T)[0, 1]
    assert abs(spread["benchmark"]) < 0.1
    assert spread["population"] > 0.7


def test_groups_of_questions_vary_together():
    right = np.repeat(np.arange(10) % 3 * 2, 4)[None]
    alone, grouped = (
        draw_scores(
            Responses(banks(right, 4), groups=groups), "pass_at_k", k=2, target="population"
        )
        for groups in (None, [str(q // 4) for q in range(40)])
    )
    assert grouped.std() > 1.5 * alone.std()


@pytest.mark.filterwarnings("ignore:.* of unequal sizes count as")
def test_a_large_group_has_the_leverage_of_the_cluster_jackknife():
    # Half of the questions are one group, without which the mean moves twice as far.
    right = np.repeat([4, 0, 4, 0, 2, 1, 3, 2, 1, 3, 2], [20] + 10 * [2])[None]
    groups = np.repeat(np.arange(11), [20] + 10 * [2])
    drawn = draw_scores(
        Responses(banks(right, 4), groups=groups), "pass_at_k", k=1, target="population"
    )
    by_group = [right[0, groups == one].sum() / 4 for one in range(11)]
    size = np.bincount(groups)
    left_out = (right.sum() / 4 - np.array(by_group)) / (40 - size)
    jackknife = 10 / 11 * ((left_out - left_out.mean()) ** 2).sum()
    assert drawn.std() > 0.8 * np.sqrt(jackknife)


def test_bounds_of_skewed_scores_hold():
    # Few questions decide the mean, and samples without them have a low mean and a low spread.
    rng = np.random.default_rng(1)
    truth = 1 * 2 / (3 * 4)  # second moment of Beta(1, 2)
    missed = np.zeros(2)
    for _ in range(300):
        right = rng.binomial(5, rng.beta(1, 2, (1, 30)))
        draws = draw_scores(sample(right, 5), "pass_hat_k", k=2, target="population", draws=100)
        lower, upper = interval(draws, 0.9)
        missed += [truth < lower[0], truth > upper[0]]
    assert (missed / 300 < 0.085).all()


def test_intervals_do_not_depend_on_the_seed():
    data = sample(np.random.default_rng(0).binomial(4, 0.6, (3, 10)), 4)
    for target in TARGETS:
        first, second = (
            interval(draw_scores(data, "auc_at_k", k=3, target=target, random_seed=seed), 0.95)
            for seed in (1, 2)
        )
        np.testing.assert_allclose(first, second, rtol=1e-12)


def test_data_that_do_not_vary_are_refused():
    with pytest.raises(DataError, match="trials must be two or more in most cells"):
        rank(banks([[1, 0, 1]], 1), "pass_at_k", k=1, target="benchmark")
    with pytest.raises(DataError, match="questions must be two or more"):
        rank(banks([[1]], 3), "pass_at_k", k=1, target="population")


def test_fewer_than_k_trials_of_a_question_need_the_posterior_mean():
    outcomes = banks([[3, 2], [1, 0]], 3)
    outcomes[1, 1, 2] = -1
    with pytest.raises(ValueError, match=r"k must be .* set estimator='posterior_mean'"):
        rank(outcomes, "pass_hat_k", k=3)
    result = rank(outcomes, "pass_hat_k", k=3, estimator="posterior_mean", random_seed=1)
    expected = [[4 * 5 * 6 / (5 * 6 * 7), 3 * 4 * 5 / (5 * 6 * 7)], [24 / 210, 6 / 120]]
    np.testing.assert_allclose(result["ranking"]["score"], np.mean(expected, axis=1), rtol=1e-13)
    assert (result["ranking"]["score_lower"] < result["ranking"]["score"]).all()
