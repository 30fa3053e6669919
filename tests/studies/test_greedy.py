"""Alignment, effect and conflict of greedy runs."""

import numpy as np
import pytest
from scipy.stats import betabinom, chi2

from bayesrank import Responses, point_estimate, studies
from bayesrank.datasets import load_olympiad
from bayesrank.errors import DataError

PUBLISHED = {"AIME'24": 0.739, "HMMT'25": 0.635, "AIME'25": 0.660, "BrUMO'25": 0.768}


@pytest.mark.parametrize(("benchmark", "tau"), PUBLISHED.items())
def test_published_alignments(benchmark, tau):
    assert float(studies.greedy_alignment(load_olympiad(benchmark))["tau"]) == pytest.approx(
        tau, abs=5e-4
    )


def test_displacements_by_hand():
    data = Responses([[[1, 1]], [[1, 0]], [[0, 0]]])
    study = studies.greedy_alignment(data, [[[0]], [[1]], [[1]]])
    assert study["displacement"].values.tolist() == [2.0, -0.5, -1.5]
    assert study["difference"].values.tolist() == [-1.0, 0.5, 1.0]


def test_effect_compares_priors_on_the_same_draws():
    data = load_olympiad("AIME'24")
    study = studies.greedy_effect(data, draws=6, random_seed=3)
    stability = studies.stability(data, ["bayes", "bayes_greedy"], draws=6, random_seed=3)
    for prior, method in (("uniform", "bayes"), ("greedy", "bayes_greedy")):
        np.testing.assert_allclose(
            study["tau"].sel(prior=prior), stability["tau"].sel({"method": method})[0]
        )
    change = study["tau"].sel(prior="greedy") - study["tau"].sel(prior="uniform")
    assert float(study["change"].sel(prior="greedy")) == pytest.approx(float(change.mean()))
    assert float(study["sd_reduction"].sel(prior="uniform")) == 0.0


def test_a_fixed_greedy_run_lowers_the_spread():
    study = studies.greedy_effect(load_olympiad("BrUMO'25"), draws=30)
    assert float(study["sd_reduction"].sel(prior="greedy")) > 0.2
    assert float(study["change"].sel(prior="adaptive")) > 0.0


def test_p_values_of_one_question_are_those_of_the_beta_binomial():
    data = Responses([[[1, 1, 1, 0]], [[0, 0, 0, 0]]], prior_outcomes=[[[0, 0]], [[1, 1]]])
    study = studies.prior_data_conflict(data)
    first = 2 * betabinom.sf(2, 4, 1, 3)
    second = 2 * betabinom.cdf(0, 4, 3, 1)
    np.testing.assert_allclose(study["p_value"], [first, second])
    assert float(study["p_any"]) == pytest.approx(2 * min(first, second))


def test_p_values_of_several_questions_are_those_of_the_sum():
    rng = np.random.default_rng(0)
    earlier, outcomes = rng.integers(0, 2, (2, 3, 2)), rng.integers(0, 2, (2, 3, 2))
    study = studies.prior_data_conflict(Responses(outcomes, prior_outcomes=earlier))
    for system in range(2):
        mass = np.ones(1)
        for question in range(3):
            right = earlier[system, question].sum()
            mass = np.convolve(mass, betabinom.pmf(np.arange(3), 2, 1 + right, 3 - right))
        total = outcomes[system].sum()
        expected = min(1.0, 2 * min(mass[: total + 1].sum(), mass[total:].sum()))
        assert float(study["p_value"][system]) == pytest.approx(expected)


def test_no_difference_between_conditions_gives_uniform_p_values():
    rng = np.random.default_rng(1)
    p_values = []
    for _ in range(200):
        chance = rng.random((10, 40, 1))
        sampled, greedy = (rng.random((10, 40, 1)) < chance for _ in range(2))
        data = Responses(sampled.astype(int), prior_outcomes=greedy.astype(int))
        p_values.append(float(studies.prior_data_conflict(data)["p_between"]))
    assert 0.01 < np.mean(np.array(p_values) < 0.05) < 0.11
    assert 0.4 < np.mean(p_values) < 0.6


def test_the_test_between_conditions_by_hand():
    sampled = np.array([[1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]])
    greedy = np.array([[0, 0, 1, 0], [1, 1, 0, 0], [1, 1, 0, 1]])
    study = studies.prior_data_conflict(
        Responses(sampled[..., None], prior_outcomes=greedy[..., None])
    )
    gaps = greedy - sampled
    ratio = gaps.mean(axis=1).var(ddof=1) / (gaps.var(axis=1, ddof=1) / 4).mean()
    assert float(study["ratio"]) == pytest.approx(ratio)
    assert float(study["p_between"]) == pytest.approx(chi2.sf(2 * ratio, 2))


def test_only_the_first_test_rejects_a_wrong_uniform_prior():
    rng = np.random.default_rng(0)
    earlier, outcomes = (rng.random((3, 200, n)) < 0.9 for n in (1, 8))
    study = studies.prior_data_conflict(
        Responses(outcomes.astype(int), prior_outcomes=earlier.astype(int))
    )
    np.testing.assert_allclose(study["expected"], 0.63 * 1600, rtol=0.05)
    assert float(study["p_any"]) < 1e-6
    assert float(study["p_between"]) > 0.001


def test_greedy_outcomes_are_needed():
    data = Responses([[[1, 0]], [[0, 1]]])
    for study in (studies.greedy_alignment, studies.greedy_effect, studies.prior_data_conflict):
        with pytest.raises(DataError, match="prior_outcomes must hold greedy outcomes"):
            study(data)


def test_uniform_scores_are_those_of_bayes():
    data = load_olympiad("AIME'24")
    np.testing.assert_allclose(
        studies.adaptive_greedy(data)["uniform"], point_estimate(data, "bayes")
    )
