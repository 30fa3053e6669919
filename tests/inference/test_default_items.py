"""The default item response models: their fits without PyMC against those of their graphs."""

import numpy as np
import pytest
from scipy.special import expit

from bayesrank import Responses, models, rank
from bayesrank.inference.fits import item_table
from bayesrank.inference.fits.item_likelihoods import Guessing
from bayesrank.inference.fits.item_models import fit_pooled_items
from bayesrank.inference.graph.fit import fit as fit_graph
from bayesrank.priors import Empirical, Laplace, Normal, NormalPrior

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


OVER_TIME = {"assume_time_axis": True}
EARLIER = Empirical(np.arange(24).reshape(6, 4, 1) % 3 % 2)


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
        ("rasch", {"prior": EARLIER}),
        ("irt_2pl", {}),
        ("irt_2pl", {"prior": Normal(1.0, 0.7), "discrimination_prior": "normal(1, 0.2)"}),
        ("irt_3pl", {}),
        ("irt_3pl", {"guessing": 0.25}),
        ("irt_3pl", {"guessing": 0.0}),
        ("irt_3pl", {"guessing_upper": 0.3, "guessing_prior": "normal(0, 0.5)"}),
        ("dynamic_irt", {"variant": "linear"}),
        ("hierarchical_binomial", {}),
        ("dynamic_irt", OVER_TIME),
        ("dynamic_irt", {"score_target": "gain", "slope_prior": "normal(0.5, 0.3)", **OVER_TIME}),
        ("dynamic_irt", {"score_target": "mean", "prior": Normal(1.0, 0.5), **OVER_TIME}),
        ("dynamic_irt", {"score_target": "initial", "time_points": [0, 1, 2, 5, 9], **OVER_TIME}),
        ("dynamic_irt", {"prior": EARLIER, **OVER_TIME}),
        ("mirt", {}),
        ("mirt", {"n_factors": 1}),
        ("mirt", {"n_factors": 3, "score": "norm"}),
        ("mirt", {"prior": Normal(1.0, 0.7), "loading_prior": 0.5}),
        ("mirt", {"prior": EARLIER}),
    ],
    ids=str,
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
        # A loading above the diagonal of the triangle is zero.
        np.testing.assert_allclose(*quartiles, rtol=0.08, atol=1e-9, err_msg=name)


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


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("rasch", {}),
        ("irt_2pl", {"discrimination_prior": "laplace(0, 1)"}),
        ("irt_3pl", {"guessing_prior": "flat"}),
        ("dynamic_irt", {"slope_prior": "laplace(0, 1)", **OVER_TIME}),
        ("dynamic_irt", {"slope_prior": "flat", **OVER_TIME}),
        ("mirt", {"loading_prior": "normal(1, 0.3)"}),
        ("mirt", {"loading_prior": "flat"}),
    ],
    ids=str,
)
def test_what_the_kernel_does_not_cover_goes_to_the_graph(method, options):
    data, normal, fit = simulate(), Normal(0.0, 1.0), getattr(item_table, method)
    assert not options or fit(data, normal, **options) is None
    given = OVER_TIME if method == "dynamic_irt" else {}
    assert fit(data, Laplace(0.0, 1.0), **given) is None
    assert fit(data, normal, difficulty_prior="normal(0, 2)", **given) is None


def test_groups_of_questions_go_to_the_graph():
    two, normal = Responses(simulate().outcomes, groups=list("ab" * 7)), Normal(0.0, 1.0)
    assert item_table.hierarchical_binomial(two, normal) is None
    assert item_table.hierarchical_binomial(simulate(), Laplace(0.0, 1.0)) is None


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("irt_3pl", {"guessing_upper": 2.0}, "guessing_upper must be"),
        ("irt_3pl", {"guessing": 1.5}, "guessing must be"),
        (
            "irt_3pl",
            {"guessing": 0.2, "guessing_prior": "normal(0, 1)"},
            "guessing_prior must be left out where guessing is known",
        ),
        (
            "irt_3pl",
            {"guessing": 0.0, "guessing_upper": 0.4},
            "guessing_upper must be left out where guessing is known; got 0.4",
        ),
        (
            "irt_2pl",
            {"reg_discrimination": 0.1},
            "reg_discrimination must be left out unless discrimination_prior='flat'; got 0.1",
        ),
        ("mirt", {"n_factors": 6}, "n_factors must be"),
        ("mirt", {"score": "length"}, "score must be one of"),
        ("dynamic_irt", {}, "assume_time_axis"),
    ],
)
def test_options_out_of_range_are_refused(method, options, message):
    with pytest.raises(ValueError, match=message):
        rank(simulate(), method, backend="map", **options)


def test_options_without_effect_may_have_their_defaults():
    options = {"guessing": 0.2, "guessing_upper": 0.5, "reg_guessing": 0.1}
    result = rank(simulate(), "irt_3pl", backend="map", draws=0, **options)
    assert np.isfinite(result["ranking"]["score"]).all()


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


@pytest.mark.parametrize(
    "method", ["rasch", "irt_2pl", "irt_3pl", "hierarchical_binomial", "dynamic_irt", "mirt"]
)
def test_equal_systems_tie(method):
    outcomes, given = simulate().outcomes.copy(), OVER_TIME if method == "dynamic_irt" else {}
    outcomes[3] = outcomes[5]
    fit = getattr(item_table, method)(Responses(outcomes), Normal(0.0, 1.0), **given)
    assert fit.score[3] == fit.score[5]


def test_as_many_right_of_other_questions_tie_where_slopes_are_equal():
    outcomes = simulate().outcomes.copy()
    outcomes[3] = outcomes[5, np.r_[1:5, 0, 5:14]]
    data, normal = Responses(outcomes), Normal(0.0, 1.0)
    rasch, other = item_table.rasch(data, normal), item_table.irt_2pl(data, normal)
    assert rasch.score[3] == rasch.score[5]
    assert other.score[3] != other.score[5]
