"""Factories of the models with normal abilities: densities by hand, predictions, sampling."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from pymc.model_graph import ModelGraph
from pymc.stats import compute_log_likelihood
from pytensor.compile.mode import Mode
from scipy import stats
from scipy.special import expit

from bayesrank import Responses, models, rank
from bayesrank.inference.graph.bound_model import bind_model

PYTHON = Mode(linker="py", optimizer="fast_compile")


@pytest.fixture(scope="module")
def data() -> Responses:
    chance = expit(np.linspace(-1, 1.2, 5)[:, None] - np.linspace(-1.2, 1.2, 6))[..., None]
    outcomes = (np.random.default_rng(1).random((5, 6, 4)) < chance).astype(np.int8)
    outcomes[0, 0] = -1
    return Responses(outcomes)


def evaluate(model, kind):
    bound = bind_model(model, kind, backend="python")
    x = 0.5 * np.random.default_rng(0).normal(size=bound.size)
    return bound.logp_and_gradient(x)[0], {k: v[0] for k, v in bound.named(x[None]).items()}


@pytest.mark.parametrize("options", [{}, {"ability_mean": 0.3, "ability_sd": 0.8}])
def test_the_likelihood_of_rasch(data, options):
    found, values = evaluate(models.rasch_mml(data, **options), "nuts")
    likelihood = found - evaluate_prior(models.rasch_mml(data, **options))
    correct, trials = data.binary_counts
    chance = expit(values["score"][:, None] - values["difficulty"])
    expected = stats.binom.logpmf(correct, trials, chance).sum()
    assert likelihood == pytest.approx(expected, rel=1e-9)
    if not options:
        assert values["difficulty"].sum() == pytest.approx(0, abs=1e-12)


def evaluate_prior(model) -> float:
    """Return the log-density of the priors alone at the point of `evaluate`."""
    bound = bind_model(model, "nuts", backend="python")
    x = 0.5 * np.random.default_rng(0).normal(size=bound.size)
    point = {
        name: x[where].reshape(value.shape)
        for (name, value), where in zip(
            model.initial_point().items(), bound.slices().values(), strict=True
        )
    }
    return float(model.compile_logp(vars=model.free_RVs, mode=PYTHON)(point))


def test_the_abilities_of_rasch_are_normal(data):
    model = models.rasch_mml(data, ability_mean=0.3, ability_sd=0.8)
    score = pm.draw(model["score"], draws=5000, random_seed=1, mode=PYTHON)
    np.testing.assert_allclose(score.mean(axis=0), 0.3, atol=0.05)
    np.testing.assert_allclose(np.cov(score.T), 0.64 * np.eye(5), atol=0.05)


def test_the_likelihood_of_2pl(data):
    model = models.irt_2pl_mml(data)
    found, values = evaluate(model, "nuts")
    correct, trials = data.binary_counts
    line = values["discrimination"] * (values["score"][:, None] - values["difficulty"])
    expected = stats.binom.logpmf(correct, trials, expit(line)).sum()
    assert found - evaluate_prior(model) == pytest.approx(expected, rel=1e-9)
    assert values["score"].sum() == pytest.approx(0, abs=1e-12)
    assert values["score"].std(ddof=1) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("name", ["rasch_mml", "irt_2pl_mml"])
def test_predictive_draws_are_possible_results(data, name):
    model = getattr(models, name)(data)
    prior = pm.sample_prior_predictive(
        50, model=model, random_seed=1, compile_kwargs={"mode": PYTHON}
    )
    draws = prior["prior_predictive"]["correct"].values
    assert draws.min() >= 0
    assert draws.max() <= 4
    assert {"correct_n", "cell_question"} <= ModelGraph(model).make_compute_graph()["correct"]
    posterior = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    predicted = pm.sample_posterior_predictive(
        posterior, model=model, random_seed=1, progressbar=False, compile_kwargs={"mode": PYTHON}
    )["posterior_predictive"]["correct"]
    assert predicted.dims == ("chain", "draw", "cell")
    compute_log_likelihood(
        posterior, model=model, progressbar=False, compile_kwargs={"mode": PYTHON}
    )
    assert (posterior["log_likelihood"]["correct"] <= 0).all()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "rasch_mml",
            {"ability_sd": 0.0},
            r"ability_sd must be a finite number > 0; got 0\.0",
        ),
        ("rasch_mml", {"quantile": 1.0}, r"quantile must be between 0 and 1; got 1\.0"),
        ("irt_2pl_mml", {"quantile": 0.0}, r"quantile must be between 0 and 1; got 0\.0"),
        (
            "irt_2pl_mml",
            {"reg_discrimination": -0.1},
            r"reg_discrimination must be a finite number >= 0; got -0\.1",
        ),
    ],
)
def test_bad_options_are_named(data, name, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(models, name)(data, **options)


def test_back_ends_agree(data):
    mml = rank(data, "rasch_mml", ability_mean=None, ability_sd=None, draws=0)["ranking"]["score"]
    nuts = rank(
        data, "rasch_mml", backend="nuts", ability_mean=None, ability_sd=None, random_seed=1
    )["ranking"]["score"]
    np.testing.assert_allclose(nuts, mml, atol=0.25)
    assert stats.spearmanr(nuts, mml)[0] > 0.8
