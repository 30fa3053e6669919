"""The adaptive greedy prior: closed form, fallback, rounding, missing trials."""

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad
from scipy.special import gammaln

from bayesrank import Responses, point_estimate, studies
from bayesrank.datasets import load_olympiad
from bayesrank.errors import DataError
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.results.ranks import rank_scores
from bayesrank.studies.adaptive import random_effects_weight, shrink
from bayesrank.studies.subsets import draw_trials


@pytest.mark.parametrize(("noise", "spread", "n_systems"), [(1.0, 2.0, 20), (0.3, 0.1, 6)])
def test_the_weight_is_the_integral_that_it_is_documented_to_be(noise, spread, n_systems):
    freedom = n_systems - 1

    def density(variance: float) -> float:
        return variance ** (-freedom / 2 - 1) * np.exp(-freedom * spread / (2 * variance))

    weighted = quad(lambda v: noise / v * density(v), noise, np.inf)[0]
    expected = weighted / quad(density, noise, np.inf)[0]
    assert random_effects_weight(np.array(noise), np.array(spread), n_systems) == pytest.approx(
        expected, rel=1e-6
    )


def test_the_weight_falls_with_the_spread_and_vanishes_without_noise():
    spreads = np.geomspace(1e-9, 1e6, 60)
    weights = random_effects_weight(np.ones(60), spreads, 20)
    assert (np.diff(weights) <= 1e-12).all()
    assert weights[0] == pytest.approx(9.5 / 10.5, abs=1e-5)
    assert weights[-1] < 1e-5
    assert random_effects_weight(np.array(0.0), np.array(1.0), 20) == 0.0


def test_opposite_greedy_runs_leave_the_ranking_as_it_is():
    rng = np.random.default_rng(0)
    chance = np.linspace(0.9, 0.1, 12)[:, None]
    sampled = (rng.random((12, 40)) < chance).astype(int)
    greedy = (rng.random((12, 40)) < chance[::-1]).astype(int)
    data = Responses(sampled, prior_outcomes=greedy[..., None])
    study = studies.adaptive_greedy(data)
    assert float(study["weight"]) < 0.02
    assert float(kendall_tau_b(study["rank"], study["uniform_rank"])) > 0.97


def test_equal_greedy_runs_count():
    data = load_olympiad("BrUMO'25")
    few = draw_trials(data, 1, "subset", np.random.default_rng(0))
    study = studies.adaptive_greedy(few)
    assert 0.1 < float(study["weight"]) < 0.9
    gold = rank_scores(point_estimate(data, "bayes"))
    before, after = (kendall_tau_b(study[name], gold) for name in ("uniform_rank", "rank"))
    assert after > before


def test_shifts_are_whole_answers():
    few = draw_trials(load_olympiad("AIME'24"), 1, "subset", np.random.default_rng(2))
    study = studies.adaptive_greedy(few, score="avg")
    answers = study["shift"].values * 30
    np.testing.assert_allclose(answers, np.rint(answers), atol=1e-9)
    assert np.abs(answers).max() >= 1


def test_labels_do_not_matter():
    few = draw_trials(load_olympiad("HMMT'25"), 1, "subset", np.random.default_rng(2))
    order = np.random.default_rng(0).permutation(20)
    turned = Responses(few.outcomes[order], prior_outcomes=few.prior_outcomes[order])
    for score in ("bayes", "avg"):
        one, other = (studies.adaptive_greedy(data, score=score) for data in (few, turned))
        np.testing.assert_allclose(one["score"].values[order], other["score"], atol=1e-12)
        np.testing.assert_array_equal(one["rank"].values[order], other["rank"])


def test_scores_without_weight_are_those_of_the_methods():
    few = draw_trials(load_olympiad("HMMT'25"), 3, "subset", np.random.default_rng(2))
    for score in ("bayes", "avg"):
        uniform = studies.adaptive_greedy(few, score=score)["uniform"]
        np.testing.assert_allclose(uniform, point_estimate(few, score), rtol=1e-12)


def test_many_trials_leave_little_weight_to_greedy_runs():
    data = load_olympiad("BrUMO'25")
    weights = [
        float(
            studies.adaptive_greedy(draw_trials(data, n, "subset", np.random.default_rng(1))).weight
        )
        for n in (1, 10, 80)
    ]
    assert weights[0] > weights[1] > weights[2]


def test_trial_noise_is_the_variance_within_cells():
    data = load_olympiad("BrUMO'25")
    study = studies.adaptive_greedy(data)
    within = data.outcomes.var(axis=-1, ddof=1).mean() / 80 / 30
    assert float(study["noise_sd"]) == pytest.approx(np.sqrt(within))


def test_missing_trials_and_absent_greedy_runs():
    data = load_olympiad("BrUMO'25")
    outcomes, greedy = data.outcomes[..., :3].copy(), data.prior_outcomes.copy()
    outcomes[0, :5] = -1
    greedy[1] = -1
    study = studies.adaptive_greedy(Responses(outcomes, prior_outcomes=greedy))
    assert np.isfinite(study["score"]).all()
    assert float(study["shift"][1]) == 0.0


def test_worths_of_categories_count():
    data = load_olympiad("BrUMO'25")
    doubled = Responses(
        2 * data.outcomes[..., :1], weights=[0, 0.5, 1], prior_outcomes=2 * data.prior_outcomes
    )
    plain = Responses(data.outcomes[..., :1], prior_outcomes=data.prior_outcomes)
    one, other = (studies.adaptive_greedy(d, score="avg") for d in (plain, doubled))
    assert float(one["weight"]) == pytest.approx(float(other["weight"]))


def test_shrink_takes_batches():
    rng = np.random.default_rng(4)
    sampled, greedy = rng.integers(0, 2, (3, 5, 6, 8, 1)), rng.integers(0, 2, (5, 6, 8, 1))
    whole = shrink(sampled.astype(float), greedy.astype(float), unit=1.0)
    one = shrink(sampled[1, 2].astype(float), greedy[2].astype(float), unit=1.0)
    np.testing.assert_allclose(whole.worth[1, 2], one.worth)
    np.testing.assert_allclose(whole.weight[1, 2], one.weight)


STUDIES = [studies.adaptive_greedy, studies.power_prior]


def greedy_effect(data: Responses):
    return studies.greedy_effect(data, n=2, draws=3, workers=1)


@pytest.mark.parametrize("study", STUDIES)
def test_greedy_outcomes_are_needed(study):
    with pytest.raises(DataError, match="prior_outcomes must hold greedy outcomes"):
        study(Responses([[[1]], [[0]]]))


@pytest.mark.parametrize(
    "study", [*STUDIES, studies.greedy_alignment, studies.prior_data_conflict, greedy_effect]
)
def test_greedy_outcomes_that_systems_share_are_those_of_each(study):
    outcomes = np.random.default_rng(3).integers(0, 2, (4, 6, 3))
    shared = outcomes[0, :, :2]
    found, repeated = (
        study(Responses(outcomes, prior_outcomes=earlier))
        for earlier in (shared, np.broadcast_to(shared, (4, 6, 2)))
    )
    xr.testing.assert_allclose(found, repeated)


def test_score_must_be_known():
    with pytest.raises(ValueError, match="score must be 'bayes' or 'avg'"):
        studies.adaptive_greedy(load_olympiad("BrUMO'25"), score="borda")


def test_power_prior_is_the_average_over_powers():
    data = Responses([[[1]], [[0]]], prior_outcomes=[[[1]], [[1]]])
    study = studies.power_prior(data, n_weights=3)
    powers = np.array([0.0, 0.5, 1.0])
    # One cell predicted, one missed: the product of the predictive probabilities.
    density = (1 + powers) / (2 + powers) * 1 / (2 + powers)
    np.testing.assert_allclose(study["posterior"], density / density.sum())
    right = (2 + powers) / (3 + powers)
    assert float(study["score"][0]) == pytest.approx((density * right).sum() / density.sum())


def test_power_prior_matches_the_log_gamma_formula():
    data = Responses([[[1, 1, 0]]], prior_outcomes=[[[1, 0]]])
    study = studies.power_prior(data, n_weights=2)
    # Beta-binomial without its binomial coefficient, at powers 0 and 1.
    logs = [
        gammaln(a + 2)
        + gammaln(b + 1)
        - gammaln(a + b + 3)
        + gammaln(a + b)
        - gammaln(a)
        - gammaln(b)
        for a, b in ((1, 1), (2, 2))
    ]
    expected = np.exp(logs) / np.exp(logs).sum()
    np.testing.assert_allclose(study["posterior"], expected)
