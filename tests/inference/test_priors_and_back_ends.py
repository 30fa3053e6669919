"""Every prior with every factory: a mode, samples, and a reason where there are no prior draws."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from bayesrank import METHODS, Responses, models, rank
from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.inference.backends.optimum import STRENGTH_FAMILIES
from bayesrank.inference.graph.bound_model import FUNCTIONS, bind_model
from bayesrank.inference.graph.fit import fit
from bayesrank.method import load_function
from bayesrank.models.score_priors import free_variable
from bayesrank.priors import Cauchy, Custom, Empirical, Flat, Laplace, Normal, Prior

FACTORIES = [name for name, row in METHODS.items() if {"map", "nuts"} <= set(row.backends)]
PYTHON = Mode(linker="py", optimizer="fast_compile")
OPTIONS = {"dynamic_irt": {"variant": "growth", "assume_time_axis": True}}


def quartic(score):
    return -(score**4).sum() / 50


PRIORS: dict[str, Prior] = {
    "normal": Normal(0.1, 0.8),
    "laplace": Laplace(0.0, 0.7),
    "cauchy": Cauchy(0.0, 0.9),
    "flat": Flat(),
    "empirical": Empirical(),
    "custom": Custom(quartic),
}


@pytest.fixture(scope="module")
def data() -> Responses:
    """Return outcomes without a system or question that is always right or wrong."""
    rng = np.random.default_rng(5)
    chance = 1 / (1 + np.exp(np.linspace(-1, 1, 6) - np.linspace(-1, 1.2, 5)[:, None]))
    outcomes = rng.random((5, 6, 8)) < chance[..., None]
    earlier = rng.random((5, 6, 1)) < chance[..., None]
    return Responses(outcomes.astype(np.int8), prior_outcomes=earlier.astype(np.int8))


def build(name: str, data: Responses, prior: Prior) -> pm.Model:
    row = METHODS[name]
    options = {**row.example, **OPTIONS.get(name, {})}
    if row.data == "comparisons":
        return load_function(row.factory_path)(
            data.comparisons, prior=prior.resolve(data), **options
        )
    return load_function(row.factory_path)(data, prior=prior.resolve(data), **options)


# One of two for each factory, the other for its neighbour; `make calibrate` runs all priors.
USUAL = {name: ("laplace", "custom")[i % 2] for i, name in enumerate(FACTORIES)}
QUICK = {("bradley_terry", "laplace"), ("bradley_terry_luce", "cauchy"), ("rasch", "custom")}


@pytest.mark.parametrize(
    ("name", "prior"),
    [
        pytest.param(name, prior, marks=[] if USUAL[name] == prior else pytest.mark.slow)
        for name in FACTORIES
        for prior in PRIORS
    ],
)
def test_every_prior_has_a_density_and_a_mode(data, name, prior):
    model = build(name, data, PRIORS[prior])
    for kind in ("map", "nuts"):
        bound = bind_model(model, kind, backend="python")
        value, gradient = bound.logp_and_gradient(bound.start)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
    found = fit(model, "map")
    assert np.isfinite(found.point["score"]).all()
    if METHODS[name].family in STRENGTH_FAMILIES:
        assert found.converged
        assert found.point["score"].sum().item() == pytest.approx(0, abs=1e-8)
    # Other outcomes compile nothing.
    before = FUNCTIONS.compilations
    other = Responses(1 - data.outcomes, prior_outcomes=data.prior_outcomes)
    fit(build(name, other, PRIORS[prior]), "map")
    assert FUNCTIONS.compilations == before


# What PyMC says of potentials before the draws are refused.
@pytest.mark.filterwarnings("ignore:The effect of Potentials:UserWarning")
@pytest.mark.parametrize("name", FACTORIES)
def test_prior_draws_are_refused_with_the_name_of_the_prior(data, name):
    for prior in ("flat", "custom"):
        with (
            build(name, data, PRIORS[prior]),
            pytest.raises(NotImplementedError, match=rf"(?i){prior}"),
        ):
            pm.sample_prior_predictive(1, compile_kwargs={"mode": PYTHON})


GRID = [
    pytest.param(name, prior, marks=[] if (name, prior) in QUICK else pytest.mark.slow)
    for name in FACTORIES
    for prior in PRIORS
]


@pytest.mark.filterwarnings("ignore::bayesrank.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::bayesrank.errors.CalibrationWarning")
@pytest.mark.parametrize(("name", "prior"), GRID)
def test_every_prior_can_be_sampled(uncompiled, data, name, prior):
    options = {**METHODS[name].example, **OPTIONS.get(name, {})}
    sampled = rank(
        data,
        name,
        backend="nuts",
        prior=PRIORS[prior],
        draws=50,
        tune=100,
        random_seed=1,
        **options,
    )
    posterior = sampled["posterior"]["score"]
    assert np.isfinite(posterior).all()
    assert (posterior.std(("chain", "draw")) > 0).all()
    # However low an ability, guesses stay possible: that posterior is not proper.
    if (name, prior) != ("irt_3pl", "flat"):
        rates = data.outcomes.mean(axis=(1, 2))
        assert np.corrcoef(sampled["ranking"]["score"], rates)[0, 1] > 0.8


@pytest.mark.filterwarnings("ignore::bayesrank.errors.ConvergenceWarning")
@pytest.mark.parametrize(("name", "prior"), GRID)
def test_every_prior_has_a_mode_through_rank(data, name, prior):
    options = {**METHODS[name].example, **OPTIONS.get(name, {})}
    found = rank(data, name, backend="map", prior=PRIORS[prior], draws=0, **options)
    rates = data.outcomes.mean(axis=(1, 2))
    assert np.corrcoef(found["ranking"]["score"], rates)[0, 1] > 0.8


@pytest.mark.parametrize("name", ["bradley_terry", "plackett_luce", "bradley_terry_luce"])
def test_a_flat_prior_is_maximum_likelihood(data, name):
    likeliest = rank(data, name, backend="mle", draws=0)["ranking"]["score"]
    mode = rank(data, name, backend="map", prior="flat", draws=0)["ranking"]["score"]
    np.testing.assert_allclose(mode, likeliest, atol=1e-8)
    graph = fit(build(name, data, Flat()), "mle")
    np.testing.assert_allclose(graph.point["score"], likeliest, atol=1e-6)


@pytest.mark.filterwarnings("ignore::bayesrank.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "name", ["bradley_terry", "plackett_luce", "bradley_terry_luce", "davidson_luce"]
)
def test_without_information_the_posterior_is_the_prior(uncompiled, name):
    data = Responses([[[1, 0]], [[1, 0]], [[1, 0]]])
    mode = rank(data, name, backend="map", prior=1.0, draws=0)
    np.testing.assert_allclose(mode["ranking"]["score"], 0.0, atol=1e-12)
    sampled = rank(data, name, backend="nuts", prior=1.0, draws=200, tune=300, random_seed=1)
    # Three independent normals that are made to sum to zero keep two thirds of their variance.
    spread = sampled["posterior"]["score"].std(("chain", "draw"))
    np.testing.assert_allclose(spread, np.sqrt(2 / 3), rtol=0.1)
    with pytest.raises((DataError, NoFiniteEstimate)):
        rank(data, name, backend="map", prior="flat", draws=0)


@pytest.mark.parametrize(
    "penalty", [lambda x: 0.5 * (x**2).sum(), lambda x: abs(x), lambda x: pt.exp(abs(x))]
)
def test_a_penalty_is_no_log_density(data, penalty):
    prior = Custom(penalty)
    for build, argument, given in (
        (models.bradley_terry, "prior", data.comparisons),
        (models.rasch, "prior", data),
        (models.irt_2pl, "difficulty_prior", data),
        (models.davidson, "tie_prior", data.comparisons),
        (models.rao_kupper, "threshold_prior", data.comparisons),
    ):
        with pytest.raises(ValueError, match=r"must be a log-density, .* return minus the penalty"):
            build(given, **{argument: prior})
        build(given, **{argument: Custom(lambda x: -1.0 * penalty(x))})


def test_densities_that_rise_on_one_side_are_left_to_the_user(data):
    models.davidson(data.comparisons, tie_prior=Custom(pt.exp))
    with pm.Model():
        scale = pm.HalfNormal("scale", 1.0)
        free_variable("x", Custom(lambda x: (x / scale) ** 2))
