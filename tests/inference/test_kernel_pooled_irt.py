"""The kernel of the default item response models against their graphs."""

import numpy as np
import pytest
from scipy.special import expit

from bayesrank import Responses, models, rank
from bayesrank.inference.fits import item_table
from bayesrank.inference.fits.item_likelihoods import Guessing
from bayesrank.inference.fits.item_models import NormalPrior, fit_pooled_items
from bayesrank.inference.graph.fit import fit as fit_graph
from bayesrank.priors import Empirical, Laplace, Normal

KINDS = {
    "rasch": {},
    "2pl": {"slope_prior": NormalPrior(0.0, 4.0)},
    "3pl": {
        "slope_prior": NormalPrior(0.0, 4.0),
        "guessing": Guessing(None, 0.4),
        "guess_prior": NormalPrior(-1.0, 2.0),
    },
    "known": {"slope_prior": NormalPrior(0.0, 4.0), "guessing": Guessing(0.2)},
}


def simulate(shape=(6, 14, 5), seed=0):
    """Simulate unequal questions; a cell, a question and some trials are missing."""
    rng = np.random.default_rng(seed)
    slope = np.exp(0.3 * rng.normal(size=shape[1]))
    logit = slope * (rng.normal(size=(shape[0], 1)) - rng.normal(size=shape[1]))
    outcomes = (rng.random(shape) < expit(logit)[..., None]).astype(int)
    outcomes[1, 2], outcomes[0, 3, 2:], outcomes[:, 5], outcomes[:, 6] = -1, -1, -1, 1
    return Responses(outcomes)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("rasch", {}),
        ("rasch", {"prior": Normal(1.0, 0.7)}),
        ("rasch", {"prior": Empirical(np.arange(24).reshape(6, 4, 1) % 3 % 2)}),
        ("irt_2pl", {}),
        ("irt_2pl", {"prior": Normal(1.0, 0.7), "discrimination_prior": "normal(1, 0.2)"}),
        ("irt_3pl", {}),
        ("irt_3pl", {"guessing": 0.25}),
        ("irt_3pl", {"guessing": 0.0}),
        ("irt_3pl", {"guessing_upper": 0.3, "guessing_prior": "normal(0, 0.5)"}),
        ("dynamic_irt", {"variant": "linear"}),
        ("hierarchical_binomial", {}),
    ],
)
def test_the_optimum_and_the_draws_are_those_of_the_graph(method, options):
    data = simulate()
    graph = fit_graph(getattr(models, method)(data, **options), "map")
    given = dict(options)
    kernel = getattr(item_table, method)(data, given.pop("prior", Normal(0.0, 1.0)), **given)
    assert kernel is not None
    assert bool(kernel.converged)
    np.testing.assert_allclose(kernel.score, graph.point["score"], atol=1e-9)
    assert set(kernel.parameters) | {"score"} == set(graph.point.data_vars)
    drawn, expected = kernel.draw(8000, np.random.default_rng(0)), graph.draws(draws=2000)
    for name, values in kernel.parameters.items():
        np.testing.assert_allclose(values, graph.point[name], atol=1e-8, err_msg=name)
        # Difficulties are ratios, whose tails make their standard deviation uncertain.
        quartiles = [
            np.subtract(*np.quantile(sample, [0.75, 0.25], axis=0))
            for sample in (
                drawn[name],
                expected[name].stack(sample=("chain", "draw")).transpose("sample", ...),
            )
        ]
        np.testing.assert_allclose(*quartiles, rtol=0.08, err_msg=name)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("rasch", {"backend": "map", "prior": 1.0, "difficulty_prior": "hierarchical"}),
        ("irt_2pl", {}),
        ("irt_3pl", {}),
        ("dynamic_irt", {"assume_time_axis": True}),
        ("mirt", {}),
        ("hierarchical_binomial", {}),
    ],
)
def test_parameters_have_the_dims_of_the_factory(method, options):
    data = simulate()
    result = rank(data, method, random_seed=0, **options)
    own = {name: value for name, value in options.items() if name not in ("backend", "prior")}
    named = getattr(models, method)(data, **own).named_vars_to_dims
    for name, values in result["posterior"].data_vars.items():
        assert values.dims[2:] == tuple(named.get(name, ())), name


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(3, 40, 1), (25, 8, 2)])
def test_few_answers_and_many_systems_reach_the_mode_of_the_graph(shape, seed):
    rng = np.random.default_rng(seed)
    chance = expit(2.0 * rng.normal(size=(shape[0], 1, 1)) + 2.0 * rng.normal(size=(shape[1], 1)))
    data = Responses((rng.random(shape) < 0.2 + 0.8 * chance).astype(int))
    for method in ("irt_2pl", "irt_3pl"):
        graph = fit_graph(getattr(models, method)(data), "map")
        kernel = getattr(item_table, method)(data, Normal(0.0, 1.0))
        assert bool(kernel.converged)
        np.testing.assert_allclose(kernel.score, graph.point["score"], atol=1e-8)


def test_what_the_kernel_does_not_cover_goes_to_the_graph():
    data, normal = simulate(), Normal(0.0, 1.0)
    for method in ("rasch", "irt_2pl", "irt_3pl", "hierarchical_binomial"):
        assert getattr(item_table, method)(data, Laplace(0.0, 1.0)) is None
    for method in ("rasch", "irt_2pl", "irt_3pl"):
        assert getattr(item_table, method)(data, normal, difficulty_prior="normal(0, 2)") is None
    assert item_table.irt_2pl(data, normal, discrimination_prior="laplace(0, 1)") is None
    assert item_table.irt_3pl(data, normal, guessing_prior="flat") is None
    two = Responses(data.outcomes, groups=list("ab" * 7))
    assert item_table.hierarchical_binomial(two, normal) is None
    with pytest.raises(ValueError, match="guessing_upper must be"):
        rank(data, "irt_3pl", backend="map", guessing_upper=2.0)
    with pytest.raises(ValueError, match="guessing must be"):
        rank(data, "irt_3pl", backend="map", guessing=1.5)


def test_resamples_are_fitted_one_by_one():
    _, trials = simulate().binary_counts
    rng = np.random.default_rng(0)
    several = rng.binomial(trials, 0.5, (2, 3, *trials.shape))
    fits = fit_pooled_items(several, trials, **KINDS["2pl"])
    assert fits.score.shape == (2, 3, 6)
    assert fits.converged.all()
    one = fit_pooled_items(several[1, 2], trials, **KINDS["2pl"])
    np.testing.assert_allclose(fits.score[1, 2], one.score, atol=1e-12)
    np.testing.assert_allclose(fits.information[1, 2], one.information, atol=1e-9)
    assert fits.draw(5, rng)["intercept"].shape == (5, 2, 3, 14)


def test_equal_systems_tie():
    outcomes = simulate().outcomes.copy()
    outcomes[3] = outcomes[5]
    counts = Responses(outcomes).binary_counts
    for kind in KINDS:
        score = fit_pooled_items(*counts, **KINDS[kind]).score
        assert score[3] == score[5]
    # As many right, but of other questions: only equal slopes make that a tie.
    outcomes[3] = outcomes[3, np.r_[1:5, 0, 5:14]]
    counts = Responses(outcomes).binary_counts
    scores = [fit_pooled_items(*counts, **KINDS[kind]).score for kind in ("rasch", "2pl")]
    assert scores[0][3] == scores[0][5]
    assert scores[1][3] != scores[1][5]
