"""Predictive draws and densities of paired-comparison models, by PyMC, ArviZ and by hand."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from pymc.stats import compute_log_likelihood
from pytensor.compile.mode import Mode
from scipy.special import gammaln, log_expit

from bayesrank import Comparisons, models, rank
from bayesrank.priors import Custom

PYTHON = Mode(linker="py", optimizer="fast_compile")

# Fractional counts; c and d never met.
WINS = np.array([[0, 3, 4, 0.5], [1, 0, 2, 2], [1, 2, 0, 0], [2.5, 1, 0, 0]])
TIES = np.array([[0, 2, 0, 1], [2, 0, 1.5, 0], [0, 1.5, 0, 0], [1, 0, 0, 0]])
NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def table() -> Comparisons:
    return Comparisons(WINS, TIES, systems=NAMES)


def binomial(k, n, logit):
    coefficient = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return coefficient + k * log_expit(logit) + (n - k) * log_expit(-logit)


@pytest.mark.parametrize("name", ["bradley_terry", "davidson"])
def test_prior_predictive_draws_are_possible_results(name):
    table = Comparisons(np.ceil(WINS), np.ceil(TIES), systems=NAMES)
    with getattr(models, name)(table) as model:
        tree = pm.sample_prior_predictive(
            300, random_seed=1, compile_kwargs={"mode": PYTHON}, var_names=None
        )
    score = tree["prior"]["score"]
    np.testing.assert_allclose(score.sum("system"), 0, atol=1e-10)
    # Conditioned on the sum, a score keeps 3/4 of its variance.
    np.testing.assert_allclose(score.values.var(), 0.75, rtol=0.15)
    (observed,) = model.observed_RVs
    draws, data = tree["prior_predictive"][observed.name], tree["observed_data"][observed.name]
    assert draws.min() >= 0
    if name == "davidson":
        np.testing.assert_array_equal(
            draws.sum("result"), np.broadcast_to(data.sum("result"), (1, 300, 5))
        )
    else:
        assert (draws <= tree["constant_data"]["wins_n"]).all()
    np.testing.assert_array_equal(draws, draws.round())


@pytest.mark.parametrize("prior", ["flat", Custom(lambda x: -(x**2))])
def test_priors_without_draws_say_so(table, prior):
    message = r"score has a .* prior, which has no draws"
    model = models.bradley_terry(table, prior=prior)
    with pytest.raises(NotImplementedError, match=message):
        pm.sample_prior_predictive(2, model=model, random_seed=1, compile_kwargs={"mode": PYTHON})


@pytest.fixture(scope="module")
def fitted() -> xr.DataTree:
    """Return Laplace draws of a Bradley-Terry model with their densities."""
    table = Comparisons(np.ceil(WINS), systems=NAMES)
    return rank(
        table,
        "bradley_terry",
        backend="map",
        calibration="none",
        log_likelihood=True,
        draws=100,
        random_seed=1,
    )


def test_densities_are_those_of_the_draws(fitted):
    score = fitted["posterior"]["score"].values
    wins = np.ceil(WINS)
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]
    assert fitted["log_likelihood"]["wins"].dims == ("chain", "draw", "pair")
    for position, (i, j) in enumerate(pairs):
        expected = binomial(wins[i, j], wins[i, j] + wins[j, i], score[..., i] - score[..., j])
        found = fitted["log_likelihood"]["wins"].values[..., position]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    expected = -0.5 * (score**2).sum(axis=-1) - 1.5 * np.log(2 * np.pi)
    log_prior = fitted["log_prior"]["score"]
    np.testing.assert_allclose(
        log_prior.sum([d for d in log_prior.dims if d not in ("chain", "draw")]), expected
    )


def test_arviz_reads_the_densities(fitted):
    # Five pairs of few comparisons are too influential for good importance weights.
    with pytest.warns(UserWarning, match="shape parameter of Pareto distribution"):
        assert np.isfinite(az.loo(fitted).elpd)
    summary = az.summary(fitted, var_names=["score"], ci_prob=0.95)
    assert list(summary.index) == [f"score[{name}]" for name in NAMES]
    assert len(az.psense_summary(fitted, var_names=["score"])) == 4


def test_pymc_takes_a_result_as_its_own(fitted):
    table = Comparisons(np.ceil(WINS), systems=NAMES)
    model = models.bradley_terry(table)
    posterior = xr.DataTree.from_dict({"posterior": fitted["posterior"].to_dataset()})
    compute_log_likelihood(
        posterior, model=model, progressbar=False, compile_kwargs={"mode": PYTHON}
    )
    np.testing.assert_allclose(
        posterior["log_likelihood"]["wins"], fitted["log_likelihood"]["wins"], rtol=1e-9
    )
    predicted = pm.sample_posterior_predictive(
        posterior, model=model, random_seed=1, progressbar=False, compile_kwargs={"mode": PYTHON}
    )["posterior_predictive"]["wins"]
    assert predicted.dims == ("chain", "draw", "pair")
    score = fitted["posterior"]["score"].mean(("chain", "draw")).values
    wins = np.ceil(WINS)
    for position, (i, j) in enumerate([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]):
        expected = (wins[i, j] + wins[j, i]) / (1 + np.exp(score[j] - score[i]))
        assert predicted[..., position].mean().item() == pytest.approx(expected, abs=0.35)


def test_predictions_from_a_kernel_fit_use_all_its_parameters():
    table = Comparisons(10 * np.ceil(WINS), 10 * np.ceil(TIES), systems=NAMES)
    result = rank(table, "davidson", backend="map", draws=100, random_seed=1)
    strength = result["posterior"]["tie_strength"]
    np.testing.assert_allclose(result["posterior"]["log_tie_strength"], np.log(strength))
    model = models.davidson(table)
    predicted = pm.sample_posterior_predictive(
        result, model=model, random_seed=1, progressbar=False, compile_kwargs={"mode": PYTHON}
    )["posterior_predictive"]["results"]
    # At the mode the expected number of ties is about the observed one.
    ties = predicted.sel(result="tie").sum("pair").mean().item()
    assert ties == pytest.approx(table.ties.sum() / 2, rel=0.05)


def test_the_published_sampler_has_the_posterior_of_two_systems():
    result = rank(Comparisons([[0, 7], [3, 0]]), "bayesian_mcmc", random_seed=1)
    score = result["posterior"]["score"]
    # Both scores are N(0, 1), so that their difference is N(0, 2) and their sum stays as it is.
    grid = np.linspace(-8, 8, 4001)
    density = np.exp(-(grid**2) / 4 + binomial(7, 10, grid))
    density /= density.sum()
    mean = density @ grid
    sd = np.sqrt(density @ (grid - mean) ** 2)
    difference = score[..., 0] - score[..., 1]
    assert difference.mean().item() == pytest.approx(mean, abs=0.06)
    assert difference.std().item() == pytest.approx(sd, rel=0.06)
    assert score.sum("system").std().item() == pytest.approx(np.sqrt(2), rel=0.06)
    assert score.sum("system").mean().item() == pytest.approx(0, abs=0.12)
    above = result["ranking"]["superiority"].values[0, 1]
    assert above == pytest.approx(density[grid > 0].sum(), abs=0.02)
    attributes = result.attrs
    assert (attributes["backend"], attributes["prior"]) == ("nuts", "normal(0, 1)")
    assert score.shape == (4, 1000, 2)
