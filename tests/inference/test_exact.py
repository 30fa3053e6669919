"""The exact back end: posteriors in closed form."""

import numpy as np
import pytest

from bayesrank import Comparisons, Responses, rank
from bayesrank.catalog import METHODS
from bayesrank.errors import DataError

# Right answers of two systems on three questions with four trials.
RIGHT = np.array([[4, 2, 1], [1, 0, 3]])
OUTCOMES = (np.arange(4) < RIGHT[..., None]).astype(int)


def draws_of(data, method, **keywords):
    result = rank(data, method, backend="exact", random_seed=1, **keywords)
    posterior = result["posterior"]["score"].values
    return result["ranking"]["score"].values, posterior.reshape(-1, posterior.shape[-1])


def test_bayes_draws_are_dirichlet():
    score, draws = draws_of(OUTCOMES, "bayes", draws=5_000)
    p = (RIGHT + 1) / 6
    np.testing.assert_allclose(score, p.mean(axis=1), rtol=1e-14)
    sd = np.sqrt((p * (1 - p) / 7).sum(axis=1)) / 3
    np.testing.assert_allclose(draws.mean(axis=0), score, atol=5 * sd.max() / 141)
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.03)


def test_draws_of_a_functional_are_those_of_beta_probabilities():
    score, draws = draws_of(OUTCOMES, "pass_hat_k", k=2, draws=5_000, estimator="posterior_mean")
    # E p**2 and E p**4 under Beta(1 + k, 1 + 4 - k).
    a = RIGHT + 1.0
    second = a * (a + 1) / (6 * 7)
    fourth = second * (a + 2) * (a + 3) / (8 * 9)
    mean, sd = second.mean(axis=1), np.sqrt((fourth - second**2).sum(axis=1)) / 3
    np.testing.assert_allclose(score, mean, rtol=1e-13)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * sd.max() / 141)
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.04)


def test_one_trial_is_enough_for_a_posterior():
    _, draws = draws_of(OUTCOMES[..., :1], "bayes", target="benchmark", draws=2_000)
    np.testing.assert_allclose(draws.mean(axis=0), [2 / 3, (2 / 3 + 1 / 3 + 2 / 3) / 3], atol=0.02)


def test_unobserved_questions_have_their_prior_or_nothing():
    outcomes = OUTCOMES.copy()
    outcomes[0, 1:] = -1
    _, draws = draws_of(outcomes, "bayes", target="benchmark", draws=2_000)
    np.testing.assert_allclose(draws[:, 0].mean(), (5 / 6 + 0.5 + 0.5) / 3, atol=0.02)
    posterior = {"estimator": "posterior_mean", "target": "benchmark"}
    _, draws = draws_of(outcomes, "pass_at_k", k=1, draws=2_000, **posterior)
    np.testing.assert_allclose(draws[:, 0].mean(), 5 / 6, atol=0.02)


def test_thompson_draws_are_minus_ranks():
    score, draws = draws_of(OUTCOMES, "thompson", draws=2_000)
    assert set(np.unique(draws)) == {-2.0, -1.0}
    np.testing.assert_array_equal(draws.sum(axis=1), -3)
    np.testing.assert_allclose(draws.mean(axis=0), score, atol=0.03)


def test_thompson_draws_of_a_clear_winner_are_ranks():
    outcomes = np.random.default_rng(2).integers(0, 2, size=(3, 12, 6))
    outcomes[0], outcomes[2] = 1, 0
    _, draws = draws_of(outcomes, "thompson", target="population", draws=500)
    assert set(np.unique(draws)) <= {-3.0, -2.0, -1.0}
    np.testing.assert_allclose(draws.mean(axis=0), [-1.0, -2.0, -3.0], atol=0.02)


def test_max_at_k_draws_from_dirichlet_probabilities():
    data = Responses([[[0, 1, 2, 2]], [[0, 0, 1, 0]]], weights=[0, 0.5, 1])
    score, draws = draws_of(data, "max_at_k", k=1, draws=4_000, estimator="posterior_mean")
    # The best of one draw is its worth: shapes (2, 2, 3) and (4, 2, 1).
    np.testing.assert_allclose(score, [4 / 7, 2 / 7], rtol=1e-14)
    np.testing.assert_allclose(draws.mean(axis=0), [4 / 7, 2 / 7], atol=0.01)


def test_the_population_target_widens_the_posterior():
    _, benchmark = draws_of(OUTCOMES, "bayes", draws=2_000)
    _, population = draws_of(OUTCOMES, "bayes", target="population", draws=2_000)
    assert (population.std(axis=0) > 1.2 * benchmark.std(axis=0)).all()
    np.testing.assert_allclose(population.mean(axis=0), benchmark.mean(axis=0), atol=0.03)


def test_one_question_is_no_sample_of_a_population():
    with pytest.raises(DataError, match="questions must be two or more for target='population'"):
        rank(OUTCOMES[:, :1], "bayes", target="population", draws=2)
    alone = rank(OUTCOMES[:, :1], "bayes", target="population", draws=0)
    np.testing.assert_allclose(alone["ranking"]["score"], [5 / 6, 2 / 6], rtol=1e-14)


@pytest.mark.parametrize("method", ["bayes", "pass_at_k", "thompson"])
def test_small_batches_give_the_same_draws(monkeypatch, method):
    options = dict(METHODS[method].example)
    if method == "pass_at_k":
        options["estimator"] = "posterior_mean"
    _, at_once = draws_of(OUTCOMES, method, draws=25, **options)
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 30)
    _, in_batches = draws_of(OUTCOMES, method, draws=25, **options)
    np.testing.assert_allclose(in_batches, at_once, rtol=1e-14)


def test_comparisons_have_no_closed_form():
    with pytest.raises(DataError, match="data must be responses for thompson; got comparisons"):
        rank(Comparisons([[0, 1], [1, 0]]), "thompson")


@pytest.mark.filterwarnings("ignore:.* of unequal sizes count as")
def test_one_group_of_most_questions_has_leverage_over_a_population():
    # Weights drawn at random hardly ever leave it out.
    rng = np.random.default_rng(0)
    groups = np.array(["large"] * 22 + list("aabbccdd"))
    outcomes = np.broadcast_to((groups == "large")[:, np.newaxis], (2, 30, 400)).astype(int)
    result = rank(
        Responses(outcomes, groups=groups.tolist()),
        "bayes",
        target="population",
        draws=1_000,
        random_seed=0,
    )
    weights = rng.standard_gamma(1 / 5, (100_000, 5)) * [22, 2, 2, 2, 2]
    at_random = (weights[:, 0] / weights.sum(axis=1)).std()
    assert (result["posterior"]["score"].std(("chain", "draw")) > 1.05 * at_random).all()
