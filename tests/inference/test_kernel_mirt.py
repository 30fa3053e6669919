"""The kernel of the multidimensional model against its graph, and what it is for: many refits."""

import numpy as np
import pytest
from scipy.special import expit

from bayesrank import Responses, rank
from bayesrank.errors import DataError
from bayesrank.inference.calibrate.jackknife import jackknife_by_refits
from bayesrank.inference.fits.item_table import mirt as fit_responses
from bayesrank.inference.fits.mirt import fit_mirt, mirt_problem
from bayesrank.inference.graph.fit import fit as fit_graph
from bayesrank.models import mirt
from bayesrank.priors import Empirical, Laplace, Normal


def simulate(shape=(6, 14, 5), seed=0):
    """Simulate two abilities, with a cell and some trials missing."""
    rng = np.random.default_rng(seed)
    ability, loading = rng.normal(size=(shape[0], 2)), rng.normal([1.0, 0.0], 0.5, (shape[1], 2))
    chance = expit(ability @ loading.T + rng.normal(size=shape[1]))
    outcomes = (rng.random(shape) < chance[..., None]).astype(int)
    outcomes[1, 2], outcomes[0, 3, 2:] = -1, -1
    return Responses(outcomes)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_factors": 1},
        {"n_factors": 3, "score": "norm"},
        {"prior": Normal(1.0, 0.7), "loading_prior": 0.5},
        {"prior": Empirical(np.arange(24).reshape(6, 4, 1) % 3 % 2)},
    ],
    ids=["default", "one", "norm", "normal", "empirical"],
)
def test_the_optimum_and_the_draws_are_those_of_the_graph(options):
    data = simulate()
    graph = fit_graph(mirt(data, **options), "map")
    kernel = fit_responses(data, options.get("prior", Normal(0.0, 1.0)), **without(options))
    assert kernel is not None
    assert bool(kernel.converged)
    np.testing.assert_allclose(kernel.score, graph.point["score"], atol=1e-10)
    drawn, expected = kernel.draw(8000, np.random.default_rng(0)), graph.draws(draws=2000)
    assert set(drawn) == set(graph.point.data_vars)
    for name, values in kernel.parameters.items():
        np.testing.assert_allclose(values, graph.point[name], atol=1e-9, err_msg=name)
        spread = expected[name].std(("chain", "draw"))
        # A loading above the diagonal of the triangle is zero.
        np.testing.assert_allclose(
            drawn[name].std(axis=0), spread, rtol=0.06, atol=1e-9, err_msg=name
        )


def without(options):
    return {name: value for name, value in options.items() if name != "prior"}


def test_what_the_kernel_does_not_cover_goes_to_the_graph():
    data, normal = simulate(), Normal(0.0, 1.0)
    assert fit_responses(data, Laplace(0.0, 1.0)) is None
    assert fit_responses(data, normal, difficulty_prior="normal(0, 2)") is None
    assert fit_responses(data, normal, loading_prior="normal(1, 0.3)") is None
    assert fit_responses(data, normal, loading_prior="flat") is None
    with pytest.raises(ValueError, match="n_factors must be"):
        rank(data, "mirt", n_factors=6)
    with pytest.raises(ValueError, match="score must be one of"):
        rank(data, "mirt", score="length")


def test_equal_systems_tie():
    outcomes = simulate().outcomes.copy()
    outcomes[3] = outcomes[5]
    fit = fit_mirt(mirt_problem(*Responses(outcomes).binary_counts))
    assert fit.score[3] == fit.score[5]


def test_a_norm_needs_factors():
    with pytest.raises(DataError, match="must tell systems apart by n_factors=2 abilities"):
        rank(Responses(np.ones((4, 5, 2), int)), "mirt", score="norm")


def test_refits_are_fits_of_what_is_left():
    data = simulate()
    fit = fit_responses(data, Normal(0.0, 1.0))
    assert fit is not None
    assert fit.refit is not None
    right, trials = (counts.astype(float) for counts in data.binary_counts)
    keep = np.arange(14) != 4
    scores = fit.refit(np.stack([right, right * keep]), np.stack([trials, trials * keep]))
    np.testing.assert_array_equal(scores[0], fit.score)
    less = fit_responses(
        Responses(data.outcomes[:, keep]),
        Normal(0.0, 1.0),
    )
    assert less is not None
    np.testing.assert_allclose(scores[1], less.score, atol=1e-12)
    two = trials * (np.arange(14) < 2)
    assert np.isnan(fit.refit(right[None] * (two > 0), two[None])).all()


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_parts_without_an_estimate_give_no_covariance(target):
    data = simulate((4, 10, 4))
    data = Responses(np.where(data.outcomes < 0, 0, data.outcomes))
    assert jackknife_by_refits(lambda right, _: right.sum(axis=-1), data, target) is not None
    assert jackknife_by_refits(lambda right, _: right[..., 0] * np.nan, data, target) is None


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_the_reference_adds_to_the_spread(target):
    # The sandwich at the optimum, which normal intercepts get, holds the reference still.
    rng = np.random.default_rng(3)
    chance = rng.beta(2.0, 2.0, (8, 25, 1))
    data = Responses((rng.random((8, 25, 8)) < chance).astype(int))
    priors = ("hierarchical", "normal(0, 1)")
    spreads = [
        rank(data, "mirt", target=target, random_seed=0, difficulty_prior=prior)["posterior"][
            "score"
        ].var(("chain", "draw"))
        for prior in priors
    ]
    assert float(spreads[0].mean()) > 1.1 * float(spreads[1].mean())
