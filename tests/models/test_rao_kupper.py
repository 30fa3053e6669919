"""The Rao-Kupper factory against its formulas, its kernel and exact optima."""

import json

import numpy as np
import pymc as pm
import pytest
from pymc.model_graph import ModelGraph
from pymc.stats import compute_log_likelihood
from pytensor.compile.mode import Mode
from scipy.special import gammaln

from bayesrank import Comparisons, Responses, models, rank
from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.inference.graph.bound_model import bind_model
from bayesrank.inference.graph.fit import fit
from bayesrank.priors import Custom

PYTHON = Mode(linker="py", optimizer="fast_compile")

# Fractional counts; c and d never met.
WINS = np.array([[0, 3, 4, 0.5], [1, 0, 2, 2], [1, 2, 0, 0], [2.5, 1, 0, 0]])
TIES = np.array([[0, 2, 0, 1], [2, 0, 1.5, 0], [0, 1.5, 0, 0], [1, 0, 0, 0]])
NAMES = ["a", "b", "c", "d"]
PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]


@pytest.fixture
def table() -> Comparisons:
    return Comparisons(WINS, TIES, systems=NAMES)


def evaluate(model, kind="mle", seed=0):
    """Return the log-probability of a model and its variables at a random point."""
    bound = bind_model(model, kind, backend="python")
    x = np.random.default_rng(seed).normal(size=bound.size)
    return bound.logp_and_gradient(x)[0], {k: v[0] for k, v in bound.named(x[None]).items()}


def loglik(score, kappa):
    """Return the log-likelihood of the counts above by the formulas of the paper."""
    strength = np.exp(score)
    total = 0.0
    for i, j in PAIRS:
        win = strength[i] / (strength[i] + kappa * strength[j])
        loss = strength[j] / (strength[j] + kappa * strength[i])
        tie = (kappa**2 - 1) * win * loss
        assert win + loss + tie == pytest.approx(1)
        counts = np.array([WINS[i, j], WINS[j, i], TIES[i, j]])
        total += gammaln(counts.sum() + 1) - gammaln(counts + 1).sum()
        total += counts @ np.log([win, loss, tie])
    return total


@pytest.mark.parametrize("tie_strength", [None, 1.1])
def test_likelihood_is_that_of_the_formulas(table, tie_strength):
    found, values = evaluate(models.rao_kupper(table, tie_strength=tie_strength))
    kappa = values["tie_strength"]
    if tie_strength is None:
        np.testing.assert_allclose(kappa, np.exp(values["log_tie_strength"]))
    else:
        assert kappa == pytest.approx(1.1)
    assert kappa > 1
    assert found == pytest.approx(loglik(values["score"], kappa), rel=1e-10)


def test_variables_have_dims_and_labels(table):
    free, fixed = models.rao_kupper(table), models.rao_kupper(table, tie_strength=1.1)
    assert [v.name for v in free.free_RVs] == ["score", "log_tie_strength"]
    assert [v.name for v in fixed.free_RVs] == ["score"]
    for model in (free, fixed):
        assert [v.name for v in model.deterministics] == ["strength", "tie_strength"]
        assert model.named_vars_to_dims["results"] == ("pair", "result")
        assert list(model.coords["system"]) == NAMES
        assert "score" in ModelGraph(model).make_compute_graph()["results"]


@pytest.mark.parametrize(
    ("prior", "log_density"),
    [
        ("normal(0, 2)", lambda c: -0.5 * (c / 2) ** 2 + np.log(2 / np.sqrt(8 * np.pi))),
        ("laplace(0, 2)", lambda c: -c / 2 - np.log(2)),
        ("cauchy(0, 2)", lambda c: np.log(2 / (2 * np.pi)) - np.log1p((c / 2) ** 2)),
        ("flat", lambda c: 0.0),
        (Custom(lambda c: -(c**3)), lambda c: -(c**3)),
    ],
    ids=lambda value: "logp" if callable(value) else str(value),
)
def test_the_threshold_has_the_positive_half_of_its_prior(table, prior, log_density):
    model = models.rao_kupper(table, prior="flat", threshold_prior=prior)
    posterior, values = evaluate(model, "map")
    found = posterior - loglik(values["score"], values["tie_strength"])
    assert found == pytest.approx(log_density(values["log_tie_strength"]), abs=1e-8)


@pytest.mark.parametrize("tie_strength", [None, 1.1])
@pytest.mark.parametrize("backend", ["mle", "map"])
def test_the_kernel_finds_the_optimum_of_the_graph(table, tie_strength, backend):
    model = models.rao_kupper(table, tie_strength=tie_strength)
    graph = fit(model, backend).point
    options = {} if tie_strength is None else {"tie_strength": tie_strength}
    result = rank(
        table, "rao_kupper", backend=backend, draws=0, **{"tie_strength": None, **options}
    )
    np.testing.assert_allclose(result["ranking"]["score"], graph["score"], rtol=0, atol=1e-8)
    found = result["point_estimate"]["tie_strength"].item()
    assert found == pytest.approx(graph["tie_strength"].item(), abs=1e-8)


def test_half_the_counts_have_half_the_information(table):
    half = Comparisons(WINS / 2, TIES / 2, systems=NAMES)
    whole, halved = (rank(data, "rao_kupper", draws=0) for data in (table, half))
    np.testing.assert_allclose(halved["ranking"]["score"], whole["ranking"]["score"], atol=1e-9)
    loglik = [tree["sample_stats"]["maximum_loglik"].item() for tree in (whole, halved)]
    assert loglik[1] == pytest.approx(loglik[0] / 2, rel=1e-9)


def test_without_ties_kappa_of_one_is_bradley_terry():
    table = Comparisons(WINS)
    scores = [
        rank(table, name, backend="map", draws=0, **options)["ranking"]["score"]
        for name, options in (("bradley_terry", {}), ("rao_kupper", {"tie_strength": 1.0}))
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=0, atol=1e-10)
    graph = fit(models.rao_kupper(table, tie_strength=1.0)).point
    np.testing.assert_allclose(graph["score"], scores[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "prior", ["laplace(0, 0.5)", "cauchy(0, 0.5)", "flat", Custom(lambda x: -(x**4))]
)
def test_every_prior_has_a_mode(table, prior):
    result = rank(table, "rao_kupper", backend="map", tie_strength=None, prior=prior, draws=0)
    assert bool(result["sample_stats"]["converged"])
    assert result["ranking"]["score"].sum().item() == pytest.approx(0, abs=1e-9)


def test_predictive_draws_are_possible_results():
    table = Comparisons(np.ceil(WINS), np.ceil(TIES), systems=NAMES)
    with models.rao_kupper(table):
        tree = pm.sample_prior_predictive(200, random_seed=1, compile_kwargs={"mode": PYTHON})
    assert (tree["prior"]["tie_strength"] > 1).all()
    draws, data = tree["prior_predictive"]["results"], tree["observed_data"]["results"]
    assert draws.min() >= 0
    np.testing.assert_array_equal(
        draws.sum("result"), np.broadcast_to(data.sum("result"), (1, 200, 5))
    )


def test_predictions_and_densities_of_a_fit():
    table = Comparisons(10 * np.ceil(WINS), 10 * np.ceil(TIES), systems=NAMES)
    result = rank(table, "rao_kupper", backend="map", tie_strength=None, draws=100, random_seed=1)
    model = models.rao_kupper(table)
    predicted = pm.sample_posterior_predictive(
        result, model=model, random_seed=1, progressbar=False, compile_kwargs={"mode": PYTHON}
    )["posterior_predictive"]["results"]
    ties = predicted.sel(result="tie").sum("pair").mean().item()
    assert ties == pytest.approx(table.ties.sum() / 2, rel=0.05)
    compute_log_likelihood(result, model=model, progressbar=False, compile_kwargs={"mode": PYTHON})
    assert result["log_likelihood"]["results"].dims == ("chain", "draw", "pair")


def test_optima_are_exact(shared):
    exact = json.loads((shared / "oracle" / "exact.json").read_text(encoding="utf-8"))
    compared = 0
    for case, expected in exact.items():
        for name in {"rao_kupper", "rao_kupper_map"} & set(expected):
            stored = np.load(shared / "oracle" / "cases" / f"{case}.npz")
            shape = stored["shape"]
            outcomes = np.unpackbits(stored["R"])[: np.prod(shape)].reshape(shape)
            ranking = rank(Responses(outcomes), name, draws=0)["ranking"].to_dataset()
            optimum = np.array(expected[name]["log_strength"])
            optimum -= optimum.mean()
            np.testing.assert_allclose(ranking["score"], optimum, rtol=0, atol=1e-8, err_msg=case)
            ahead = (optimum[:, None] > optimum + 1e-8).sum(axis=0)
            np.testing.assert_array_equal(ranking["rank"], ahead + 1, err_msg=case)
            compared += 1
    assert compared > 170


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda t: models.rao_kupper(t, tie_strength=0.9),
            ValueError,
            "tie_strength must be a finite number >= 1; got 0.9",
        ),
        (
            lambda t: models.rao_kupper(t, tie_strength=1.0),
            ValueError,
            "tie_strength must be greater than 1 when the comparisons contain ties; got 1",
        ),
        (
            lambda t: models.rao_kupper(Comparisons(np.zeros((2, 2)))),
            DataError,
            "comparisons must hold one at least; got none",
        ),
        (
            lambda t: models.rao_kupper(t, threshold_prior="normal(1, 1)"),
            ValueError,
            r"prior of log_tie_strength must be flat, custom or have its location at 0; got normal",
        ),
        (
            lambda t: rank(t, "rao_kupper", tie_strength=1.0, draws=0),
            ValueError,
            "tie_strength must be greater than 1",
        ),
        (
            lambda t: rank(Comparisons([[0, 3], [0, 0]]), "rao_kupper", draws=0),
            NoFiniteEstimate,
            "'system 1' never lost to or tied with",
        ),
        (
            lambda t: rank(Comparisons(WINS), "rao_kupper", tie_strength=None, draws=0),
            NoFiniteEstimate,
            "there are no ties",
        ),
        (
            lambda t: rank(Comparisons([[0, 3], [0, 0]]), "rao_kupper", tie_strength=1.0, draws=0),
            NoFiniteEstimate,
            "rao_kupper has no finite maximum-likelihood estimate",
        ),
    ],
)
def test_what_makes_no_estimate_is_refused(table, build, error, message):
    with pytest.raises(error, match=message):
        build(table)


@pytest.mark.slow
def test_nuts_agrees_with_importance_sampling(table):
    result = rank(table, "rao_kupper", backend="nuts", tie_strength=None, random_seed=1)
    fitted = fit(models.rao_kupper(table))
    bound = bind_model(models.rao_kupper(table), "nuts", backend="python")
    rng = np.random.default_rng(1)
    # A Gaussian around the mode, widened for its tails, as proposal.
    root = 1.3 * np.linalg.cholesky(fitted.covariance)
    noise = rng.standard_normal((20_000, bound.size))
    points = fitted.x + noise @ root.T
    log_weight = np.array([bound.logp_and_gradient(x)[0] for x in points])
    log_weight += 0.5 * (noise**2).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    expected = weight @ bound.named(points)["score"] / weight.sum()
    np.testing.assert_allclose(result["ranking"]["score"], expected, atol=0.05)
    assert not result["sample_stats"]["diverging"].any()
