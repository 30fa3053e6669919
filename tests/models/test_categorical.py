"""The Dirichlet-multinomial factory against closed forms, and under NUTS."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from pymc.model_graph import ModelGraph
from pytensor.compile.mode import Mode
from scipy import stats

from bayesrank import Responses, models, rank
from bayesrank.errors import DataError
from bayesrank.inference.graph.bound_model import bind_model

PYTHON = Mode(linker="py", optimizer="fast_compile")
WORTH = np.array([0.0, 0.25, 1.0])
# Two systems, two questions, up to three trials; b never saw question q.
OUTCOMES = np.array([[[0, 2, 2], [1, 1, -1]], [[0, 0, 1], [-1, -1, -1]]])


@pytest.fixture(scope="module")
def data() -> Responses:
    return Responses(
        OUTCOMES,
        systems=["a", "b"],
        questions=["p", "q"],
        weights=WORTH,
        prior_outcomes=[[2], [0]],
    )


def evaluate(model, kind):
    bound = bind_model(model, kind, backend="python")
    x = np.random.default_rng(0).normal(size=bound.size)
    return bound.logp_and_gradient(x)[0], {k: v[0] for k, v in bound.named(x[None]).items()}


def test_the_likelihood_is_multinomial(data):
    found, values = evaluate(models.dirichlet_multinomial(data), "mle")
    p = values["probability"]
    expected = sum(
        stats.multinomial.logpmf(data.counts[cell], data.trials[cell], p[cell])
        for cell in ((0, 0), (0, 1), (1, 0))
    )
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("use_prior_outcomes", [False, True])
def test_the_prior_is_dirichlet(data, use_prior_outcomes):
    model = models.dirichlet_multinomial(data, use_prior_outcomes=use_prior_outcomes)
    posterior, values = evaluate(model, "map")
    likelihood, _ = evaluate(model, "mle")
    p = values["probability"]
    shape = np.ones((2, 2, 3))
    if use_prior_outcomes:
        shape[:, 0, 2] += 1
        shape[:, 1, 0] += 1
    expected = sum(stats.dirichlet.logpdf(p[cell], shape[cell]) for cell in np.ndindex(2, 2))
    assert posterior - likelihood == pytest.approx(expected, rel=1e-9)


def test_the_score_is_the_expected_worth(data):
    _, values = evaluate(models.dirichlet_multinomial(data), "map")
    expected = (values["probability"] @ WORTH).mean(axis=1)
    np.testing.assert_allclose(values["score"], expected, rtol=1e-12)


def test_variables_have_dims_and_labels(data):
    model = models.dirichlet_multinomial(data)
    assert [v.name for v in model.free_RVs] == ["probability"]
    assert model.named_vars_to_dims["probability"] == ("system", "question", "category")
    assert model.named_vars_to_dims["score"] == ("system",)
    assert model.named_vars_to_dims["counts"] == ("cell", "category")
    # A cell without trials is no observation.
    assert list(model.coords["cell"]) == ["a | p", "a | q", "b | p"]
    assert list(model.coords["system"]) == ["a", "b"]
    assert list(model.coords["category"]) == [0, 1, 2]


def test_the_quantile_does_not_change_the_model(data):
    plain, low = (
        evaluate(models.dirichlet_multinomial(data, quantile=quantile), "map")[0]
        for quantile in (None, 0.05)
    )
    assert plain == low


def test_the_graph_can_be_drawn(data):
    graph = ModelGraph(models.dirichlet_multinomial(data)).make_compute_graph()
    assert "probability" in graph["score"]
    assert "probability" in graph["counts"]


def test_prior_predictive_draws(data):
    tree = pm.sample_prior_predictive(
        500,
        model=models.dirichlet_multinomial(data),
        random_seed=1,
        compile_kwargs={"mode": PYTHON},
    )
    p = tree["prior"]["probability"]
    np.testing.assert_allclose(p.sum("category"), 1, rtol=1e-10)
    np.testing.assert_allclose(p.mean(("chain", "draw")), 1 / 3, atol=0.05)
    counts = tree["prior_predictive"]["counts"]
    np.testing.assert_array_equal(counts.sum("category"), np.broadcast_to([3, 2, 3], (1, 500, 3)))
    # Uniform over all results: (3, 0, 0) is one of ten.
    share = (counts.values[0, :, 0] == [3, 0, 0]).all(axis=-1).mean()
    assert share == pytest.approx(0.1, abs=0.05)


def test_categories_without_worth_are_refused():
    with pytest.raises(DataError, match="weights must be given for outcomes with more than two"):
        models.dirichlet_multinomial(Responses(OUTCOMES, categories=3))


def test_earlier_outcomes_must_be_there():
    data = Responses(OUTCOMES, weights=WORTH)
    with pytest.raises(DataError, match="prior_outcomes must be given for use_prior_outcomes=True"):
        models.dirichlet_multinomial(data, use_prior_outcomes=True)


# Under NUTS


@pytest.fixture(scope="module")
def sampled(data) -> xr.DataTree:
    return rank(data, "bayes", backend="nuts", target="benchmark", draws=500, random_seed=1)


def test_nuts_agrees_with_the_closed_form(data, sampled):
    closed = rank(data, "bayes", target="benchmark", draws=5_000, random_seed=1)
    np.testing.assert_allclose(
        sampled["ranking"]["score"], closed["ranking"]["score"], rtol=0, atol=0.02
    )
    for name in ("score_lower", "score_upper", "lcb"):
        np.testing.assert_allclose(
            sampled["ranking"][name], closed["ranking"][name], rtol=0, atol=0.03
        )
    np.testing.assert_allclose(
        sampled["ranking"]["superiority"], closed["ranking"]["superiority"], rtol=0, atol=0.05
    )


def test_the_estimate_of_nuts_is_the_posterior_mean(sampled):
    mean = sampled["posterior"]["score"].mean(("chain", "draw"))
    np.testing.assert_allclose(sampled["ranking"]["score"], mean, rtol=1e-12)
    assert sampled.attrs["backend"] == "nuts"
    assert sampled.attrs["prior"] == "dirichlet(1)"
    assert sampled["posterior"]["score"].shape == (4, 500, 2)


def test_a_quantile_preset_ranks_by_the_quantile_of_the_draws(data, sampled):
    low = rank(data, "bayes_ci", backend="nuts", target="benchmark", draws=500, random_seed=1)
    np.testing.assert_array_equal(low["posterior"]["score"], sampled["posterior"]["score"])
    quantile = sampled["posterior"]["score"].quantile(0.05, ("chain", "draw"))
    np.testing.assert_allclose(low["ranking"]["score"], quantile, rtol=1e-12)
    closed = rank(data, "bayes_ci", draws=0)["ranking"]["score"]
    np.testing.assert_allclose(low["ranking"]["score"], closed, rtol=0, atol=0.05)


def test_nuts_adds_densities_and_statistics(data, sampled):
    assert {"sample_stats", "log_likelihood", "log_prior"} <= set(sampled.children)
    counts = sampled["log_likelihood"]["counts"]
    assert counts.dims == ("chain", "draw", "cell")
    p = sampled["posterior"]["probability"].values[0, 0]
    expected = [
        stats.multinomial.logpmf(data.counts[cell], data.trials[cell], p[cell])
        for cell in ((0, 0), (0, 1), (1, 0))
    ]
    np.testing.assert_allclose(counts[0, 0], expected, rtol=1e-9)
    assert not sampled["sample_stats"]["diverging"].any()
    rhat = az.summary(sampled, var_names=["score"], ci_prob=0.95, round_to="none")["r_hat"]
    assert (rhat < 1.02).all()


def test_options_of_the_sampler_are_recorded_and_checked(data):
    with pytest.raises(ValueError, match=r"nuts_sampler must be one of compiled, .*got 'gibbs'"):
        rank(data, "bayes", backend="nuts", nuts_sampler="gibbs", draws=2)
    with pytest.raises(ValueError, match=r"target_accept must be between 0 and 1; got 2.0"):
        rank(data, "bayes", backend="nuts", target_accept=2.0, draws=2)
    short = rank(
        data, "bayes", backend="nuts", draws=300, tune=300, log_likelihood=False, random_seed=1
    )
    assert short.attrs["options"] == '{"log_likelihood": false, "tune": 300}'
    assert "log_likelihood" not in short.children
