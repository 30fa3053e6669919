"""Predictive draws and densities of Luce-family models, by PyMC, ArviZ and by enumeration."""

import warnings
from itertools import combinations, permutations

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from pymc.stats import compute_log_likelihood
from pytensor.compile.mode import Mode

from bayesrank import Responses, models, rank
from bayesrank.inference.graph.bound_model import bind_model
from bayesrank.inference.graph.fit import fit
from bayesrank.views import Ballots, Events

PYTHON = Mode(linker="py", optimizer="fast_compile")

SCORE = np.array([1.2, 0.1, -0.4, -0.9])
NAMES = list("abcd")
RIGHT = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1], [1, 1, 0, 1]], dtype=bool)
WRONG = ~RIGHT
# In the last but one event a system was absent.
WRONG[3, 0] = False


def repeat(n: int) -> Events:
    return Events(RIGHT, WRONG, np.full(len(RIGHT), n), tuple(NAMES))


def predict(model, n_draws, **parameters):
    """Draw the observed variables of a model at one point."""
    dims = model.named_vars_to_dims
    point = xr.Dataset(
        {
            name: (("chain", "draw", *dims[name]), np.broadcast_to(value, (1, n_draws, len(value))))
            for name, value in parameters.items()
        },
        coords={dim: list(model.coords[dim]) for name in parameters for dim in dims[name]},
    )
    return pm.sample_posterior_predictive(
        xr.DataTree.from_dict({"posterior": point}),
        model=model,
        random_seed=1,
        progressbar=False,
        compile_kwargs={"mode": PYTHON},
    )["posterior_predictive"].to_dataset()


def density(model, variable, value, **parameters):
    """Return the log-probability of a value of an observed variable, by row."""
    given = [model[name] for name in parameters]
    logp = pytensor.function(
        given, pm.logp(model[variable], value), mode=PYTHON, on_unused_input="ignore"
    )
    return logp(*parameters.values())


def test_rankings_are_drawn_with_their_chances():
    model = models.plackett_luce(Ballots.from_rankings([list("abcd"), list("cad")], systems=NAMES))
    places = predict(model, 20_000, score=SCORE)["places"].values[0]
    strength = np.exp(SCORE)
    for ballot, members in enumerate([(0, 1, 2, 3), (0, 2, 3)]):
        assert not places[:, ballot, [i for i in range(4) if i not in members]].any()
        for order in permutations(members):
            chance = np.prod(
                [strength[i] / strength[list(order[k:])].sum() for k, i in enumerate(order)]
            )
            drawn = (places[:, ballot, list(order)] == np.arange(1, len(order) + 1)).all(axis=1)
            assert drawn.mean() == pytest.approx(chance, abs=4 * np.sqrt(chance / 20_000))


def test_contests_are_won_by_strength():
    model = models.bradley_terry_luce(repeat(3))
    choices = predict(model, 4_000, score=SCORE)["choices"].values[0]
    np.testing.assert_array_equal(choices, choices.round())
    assert choices.min() == 0
    strength = np.exp(SCORE)
    for row, (right, wrong) in enumerate(zip(RIGHT, WRONG, strict=True)):
        expected = np.zeros(4)
        for i in np.flatnonzero(right):
            rivals = strength * wrong
            expected += 3 * rivals / (strength[i] + rivals.sum())
            expected[i] += 3 * strength[i] / (strength[i] + rivals.sum())
        np.testing.assert_allclose(choices[:, row].mean(axis=0), expected, atol=0.1)
        np.testing.assert_array_equal(choices[:, row].sum(axis=1), 3 * right.sum())


def test_sets_of_winners_are_drawn_with_their_chances():
    model = models.davidson_luce(repeat(1), rows="event")
    size_probability = np.array([0.5, 0.2, 0.3])
    drawn = predict(model, 4_000, score=SCORE, size_probability=size_probability)["winners"]
    weight = {
        u: np.exp(SCORE[list(u)].sum() / t) for t in (1, 2, 3) for u in combinations(range(4), t)
    }
    prevalence = [
        p / sum(w for u, w in weight.items() if len(u) == t)
        for t, p in zip((1, 2, 3), size_probability, strict=True)
    ]
    for row, members in enumerate(RIGHT | WRONG):
        sets = [u for u in weight if members[list(u)].all() and len(u) < members.sum()]
        chance = np.array([weight[u] * prevalence[len(u) - 1] for u in sets])
        indicators = np.array([np.isin(np.arange(4), u) for u in sets])
        rows = drawn.values[0, :, row]
        share = np.array([(rows == u).all(axis=1).mean() for u in indicators])
        np.testing.assert_allclose(share, chance / chance.sum(), atol=0.035)
        assert share.sum() == pytest.approx(1)


def test_counts_of_winners_are_drawn_given_the_sizes():
    model = models.davidson_luce(repeat(5))
    drawn = predict(model, 2_000, score=SCORE, size_probability=[0.5, 0.2, 0.3])
    data = model["winners"].owner.op
    assert data.ndim_supp == 1
    observed = model.rvs_to_values[model["winners"]].get_value()
    totals = drawn["winners"].sum("system")
    np.testing.assert_array_equal(totals, np.broadcast_to(observed.sum(axis=1), totals.shape))
    assert drawn["n_events"].sum(("set", "size")).min() == 25
    # Sets of two of four, ten of them in a row.
    row = int(np.flatnonzero(observed.sum(axis=1) == 20)[0])
    weight = {u: np.exp(SCORE[list(u)].sum() / 2) for u in combinations(range(4), 2)}
    total = sum(weight.values())
    expected = [10 * sum(w for u, w in weight.items() if i in u) / total for i in range(4)]
    np.testing.assert_allclose(drawn["winners"][0, :, row].mean("draw"), expected, atol=0.2)


@pytest.mark.parametrize("name", ["bradley_terry_luce", "davidson_luce"])
@pytest.mark.parametrize("rows", ["merged", "event"])
def test_prior_predictive_draws_are_possible(name, rows):
    model = getattr(models, name)(repeat(2), rows=rows)
    tree = pm.sample_prior_predictive(
        20, model=model, random_seed=1, compile_kwargs={"mode": PYTHON}
    )
    np.testing.assert_allclose(tree["prior"]["score"].sum("system"), 0, atol=1e-9)
    last = model.observed_RVs[-1].name
    drawn = tree["prior_predictive"][last]
    assert drawn.min() == 0
    likelihood = density(
        model,
        last,
        drawn.values[0, 3],
        **{v.name: tree["prior"][v.name].values[0, 3] for v in model.free_RVs},
    )
    assert np.isfinite(likelihood).all()


def test_impossible_values_have_no_probability():
    model = models.davidson_luce(repeat(1), rows="event")
    parameters = {"score": SCORE, "size_probability": np.array([0.5, 0.2, 0.3])}
    value = RIGHT.astype(float)
    value[0] = 1.0  # everybody
    value[1] = 0.0  # nobody
    value[3, 0] = 1.0  # one who was absent
    found = density(model, "winners", value, **parameters)
    np.testing.assert_array_equal(np.isfinite(found), [False, False, True, False, True])
    model = models.bradley_terry_luce(repeat(1))
    value = RIGHT.astype(float)
    value[0] = [0, 0, 1, 1]  # won by the two rivals
    value[1] = [0, 0, 0, 2]  # more than one contest
    value[3] = [1, 0, 0, 1]  # by one who was absent
    found = density(model, "choices", value, score=SCORE)
    np.testing.assert_array_equal(np.isfinite(found), [True, False, True, False, True])
    strength = np.exp(SCORE)
    totals = strength[:2] + strength[2:].sum()
    # Either of the rivals won either of the contests.
    assert found[0] == pytest.approx(np.log(2 * strength[2] * strength[3] / totals.prod()))


@pytest.mark.parametrize("name", ["plackett_luce", "bradley_terry_luce", "davidson_luce"])
def test_priors_without_draws_say_so(name):
    data = Ballots.from_rankings([list("ab")]) if name == "plackett_luce" else repeat(1)
    model = getattr(models, name)(data, prior="flat")
    with pytest.raises(NotImplementedError, match="score has a flat prior, which has no draws"):
        pm.sample_prior_predictive(2, model=model, random_seed=1, compile_kwargs={"mode": PYTHON})


@pytest.fixture(scope="module")
def data() -> Responses:
    rng = np.random.default_rng(4)
    chance = 1 / (1 + np.exp(rng.normal(size=(1, 9, 1)) - np.linspace(-1, 1, 4)[:, None, None]))
    return Responses((rng.random((4, 9, 3)) < chance).astype(np.int8), systems=NAMES)


@pytest.mark.parametrize(
    ("name", "variable"), [("bradley_terry_luce", "choices"), ("davidson_luce", "winners")]
)
def test_the_log_likelihood_is_that_of_single_events(data, name, variable):
    result = rank(
        data,
        name,
        backend="map",
        calibration="none",
        log_likelihood=True,
        draws=50,
        random_seed=1,
    )
    found = result["log_likelihood"][variable]
    assert found.dims == ("chain", "draw", "event")
    assert found.sizes["event"] == data.events.multiplicity.sum() > len(data.events.right)
    with warnings.catch_warnings():
        # Draws around the mode make poor importance weights for some events.
        warnings.simplefilter("ignore", UserWarning)
        assert np.isfinite(az.loo(result, var_name=variable).elpd)
    model = getattr(models, name)(data, rows="event")
    tree = xr.DataTree.from_dict({"posterior": result["posterior"].to_dataset()})
    compute_log_likelihood(tree, model=model, progressbar=False, compile_kwargs={"mode": PYTHON})
    np.testing.assert_allclose(tree["log_likelihood"][variable], found, rtol=1e-9)


def test_predictions_from_a_kernel_fit_use_all_its_parameters(data):
    result = rank(data, "davidson_luce", backend="map", draws=50, random_seed=1)
    assert result["posterior"]["size_probability"].dims == ("chain", "draw", "size")
    predicted = pm.sample_posterior_predictive(
        result,
        model=models.davidson_luce(data, rows="event"),
        random_seed=1,
        progressbar=False,
        compile_kwargs={"mode": PYTHON},
    )["posterior_predictive"]["winners"]
    events = data.events
    expected = events.multiplicity @ events.right
    np.testing.assert_allclose(predicted.sum("event").mean(("chain", "draw")), expected, atol=1.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plackett_luce", "bradley_terry_luce", "davidson_luce"])
def test_nuts_agrees_with_importance_sampling(data, name):
    build = getattr(models, name)
    model = build(data.comparisons if name == "plackett_luce" else data, prior=1.0)
    result = rank(
        data,
        name,
        backend="nuts",
        prior=1.0,
        random_seed=1,
        calibration="none",
        log_likelihood=True,
    )
    fitted, bound = fit(model), bind_model(model, "nuts", backend="python")
    rng = np.random.default_rng(1)
    # A Gaussian around the mode, widened for its tails, as proposal.
    root = 1.3 * np.linalg.cholesky(fitted.covariance)
    noise = rng.standard_normal((40_000, bound.size))
    points = fitted.x + noise @ root.T
    log_weight = np.array([bound.logp_and_gradient(x)[0] for x in points])
    log_weight += 0.5 * (noise**2).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    sampled = bound.named(points)["score"]
    expected = weight @ sampled
    error = np.sqrt(weight**2 @ (sampled - expected) ** 2)
    error += az.mcse(result["posterior"].to_dataset()[["score"]])["score"].values
    assert (np.abs(result["ranking"]["score"].values - expected) < 3 * error).all()
    assert not result["sample_stats"]["diverging"].any()
    unit = "pair" if name == "plackett_luce" else "event"
    assert unit in result["log_likelihood"].dims
