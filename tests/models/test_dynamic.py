"""Models of abilities in time: densities by hand, kernels and graphs, recovery, NUTS."""

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
from bayesrank.inference.fits.item_table import dynamic_irt
from bayesrank.inference.graph.bound_model import bind_model
from bayesrank.inference.graph.fit import fit, sample
from bayesrank.priors import Flat, Normal

PYTHON = Mode(linker="py", optimizer="fast_compile")
TIMES = [1.0, 2.0, 4.0, 9.0]
FLAT = {"difficulty_prior": "flat", "slope_prior": "flat", "walk_prior": "flat"}


@pytest.fixture(scope="module")
def data() -> Responses:
    """Return outcomes of four trials; a never saw q, and c was absent from the second trial."""
    chance = expit(np.linspace(-1, 1, 4)[:, None] - np.linspace(-1, 1, 6))[..., None]
    outcomes = (np.random.default_rng(0).random((4, 6, 4)) < chance).astype(np.int8)
    outcomes[0, 1] = -1
    outcomes[2, :, 1] = -1
    return Responses(outcomes, systems=list("abcd"), questions=list("pqrstu"))


def drifting(scale: float, seed: int = 0) -> tuple[Responses, np.ndarray]:
    """Draw outcomes of walks, and return them with the abilities, (system, trial)."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, scale / np.sqrt(20), (8, 20))
    ability = rng.normal(size=(8, 1)) + steps.cumsum(axis=1)
    chance = expit(ability[:, None, :] - rng.normal(size=(15, 1)))
    return Responses((rng.random((8, 15, 20)) < chance).astype(np.int8)), ability


def build(data, variant, **options):
    return models.dynamic_irt(data, variant=variant, assume_time_axis=True, **options)


def evaluate(model, kind):
    bound = bind_model(model, kind, backend="python")
    x = 0.5 * np.random.default_rng(0).normal(size=bound.size)
    return bound.logp_and_gradient(x)[0], {k: v[0] for k, v in bound.named(x[None]).items()}


def states(values, variant) -> np.ndarray:
    unit = (np.array(TIMES) - 1) / 8
    if variant == "growth":
        return values["ability"][:, None] + values["slope"][:, None] * (unit - unit.mean())
    np.testing.assert_allclose(np.diff(values["trajectory"]), values["increment"], atol=1e-10)
    np.testing.assert_allclose(values["trajectory"].mean(axis=1), values["ability"], atol=1e-10)
    return values["trajectory"]


@pytest.mark.parametrize("variant", ["growth", "state_space"])
def test_the_likelihood_is_of_single_answers(data, variant):
    found, values = evaluate(build(data, variant, time_points=TIMES), "mle")
    gap = states(values, variant)[:, None, :] - values["difficulty"][:, None]
    right, seen = data.outcomes == 1, data.outcomes >= 0
    expected = np.where(right, gap, 0).sum() - np.logaddexp(0, gap)[seen].sum()
    assert found == pytest.approx(expected, rel=1e-10)
    assert values["difficulty"].sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("variant", ["growth", "state_space"])
def test_the_prior_is_on_first_abilities_and_changes(data, variant):
    model = build(
        data,
        variant,
        time_points=TIMES,
        prior=Normal(0.3, 0.7),
        difficulty_prior="normal(0, 1)",
        slope_prior="normal(0, 0.4)",
    )
    posterior, values = evaluate(model, "map")
    likelihood, _ = evaluate(model, "mle")
    expected = stats.norm.logpdf(states(values, variant)[:, 0], 0.3, 0.7).sum()
    expected += -0.5 * (values["difficulty"] ** 2).sum() - 2.5 * np.log(2 * np.pi)
    if variant == "growth":
        expected += stats.norm.logpdf(values["slope"], 0, 0.4).sum()
    else:
        sd = values["walk_scale"] * np.sqrt(np.diff(TIMES) / 8)
        expected += stats.halfnorm.logpdf(values["walk_scale"], 0, 0.5)
        expected += stats.norm.logpdf(values["increment"], 0, sd).sum()
    assert posterior - likelihood == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("variant", ["growth", "state_space"])
def test_penalties_stand_in_for_flat_priors(data, variant):
    options = {"time_points": TIMES, "slope_reg": 0.3, "state_reg": 0.2}
    penalised, values = evaluate(build(data, variant, **options, **FLAT), "mle")
    path = states(values, variant)
    # Every question was answered both right and wrong, so that all are kept.
    gap = path[:, None, :] - values["difficulty"][:, None]
    right, seen = data.outcomes == 1, data.outcomes >= 0
    expected = np.where(right, gap, 0).sum() - np.logaddexp(0, gap)[seen].sum()
    if variant == "growth":
        expected -= 0.3 * (values["slope"] ** 2).sum()
    else:
        expected -= 0.2 * (np.diff(path) ** 2 / (np.diff(TIMES) / 8)).sum()
        expected -= 0.001 * (path[:, 0] ** 2).sum()
    assert penalised == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("target", ["initial", "final", "mean", "gain"])
@pytest.mark.parametrize("variant", ["growth", "state_space"])
def test_the_score_is_what_was_asked_for(data, variant, target):
    model = build(data, variant, time_points=TIMES, score_target=target)
    _, values = evaluate(model, "map")
    path = states(values, variant)
    expected = {
        "initial": path[:, 0],
        "final": path[:, -1],
        "mean": values["ability"],
        "gain": path[:, -1] - path[:, 0],
    }
    np.testing.assert_allclose(values["score"], expected[target], atol=1e-12)


def test_one_trial_is_rasch(data):
    once = Responses(data.outcomes[:, :, :1])
    for variant in ("growth", "state_space", "linear"):
        model = build(once, variant)
        assert [v.name for v in model.observed_RVs] == ["correct"]
    dynamic = rank(data, "dynamic_irt_linear", backend="map", draws=0)["ranking"]["score"]
    static = rank(data, "rasch", backend="map", draws=0)["ranking"]["score"]
    np.testing.assert_array_equal(dynamic, static)


def test_runs_without_answers_are_no_observations(data):
    model = build(data, "growth")
    assert len(model.coords["run"]) == 15
    assert "c | 2" not in model.coords["run"]
    assert model.named_vars_to_dims["answers"] == ("run", "question")
    assert model.named_vars_to_dims["score"] == ("system",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"assume_time_axis": False}, "assume_time_axis must be True for variant='growth'"),
        ({"variant": "cubic"}, "variant must be one of growth, state_space, linear; got 'cubic'"),
        ({"score_target": "gain", "variant": "linear"}, "score_target must be .* do not change"),
        ({"score_target": "best"}, "score_target must be one of final, initial, mean, gain; got"),
        ({"time_points": [0, 1, 1, 2]}, "time_points must be finite and strictly increase"),
        ({"time_points": [0, 1]}, "time_points must have 4 numbers, one per trial"),
        ({"slope_reg": -1.0}, r"slope_reg must be a finite number >= 0; got -1\.0"),
    ],
)
def test_bad_options_are_named(data, options, message):
    with pytest.raises(ValueError, match=message):
        models.dynamic_irt(data, **{"assume_time_axis": True, **options})


def test_optimisers_cannot_estimate_the_scale_of_a_walk(data):
    options = {"variant": "state_space", "assume_time_axis": True, "backend": "map", "draws": 0}
    with pytest.raises(ValueError, match="walk_prior must be 'flat' where an optimiser fits"):
        rank(data, "dynamic_irt", **options)
    result = rank(data, "dynamic_irt", **options, walk_prior="flat", difficulty_prior="flat")
    assert np.isfinite(result["ranking"]["score"]).all()


@pytest.mark.parametrize(
    ("variant", "prior"), [("growth", Normal(0.2, 1.5)), ("state_space", Flat())]
)
def test_kernels_and_graphs_have_one_optimum(data, variant, prior):
    options = {"variant": variant, "assume_time_axis": True, "time_points": TIMES, **FLAT}
    kernel = dynamic_irt(data, prior, **options)
    assert kernel is not None
    assert kernel.converged
    kind = "mle" if isinstance(prior, Flat) else "map"
    graph = fit(models.dynamic_irt(data, prior=prior, **options), kind)
    for variable, value in graph.point.items():
        found = kernel.score if variable == "score" else kernel.parameters[variable]
        np.testing.assert_allclose(value, found, atol=1e-8)


@pytest.mark.parametrize("variant", ["growth", "state_space"])
def test_predictive_draws_are_possible_results(data, variant):
    model = build(data, variant)
    prior = pm.sample_prior_predictive(
        20, model=model, random_seed=1, compile_kwargs={"mode": PYTHON}
    )
    draws = prior["prior_predictive"]["answers"]
    assert set(np.unique(draws)) == {0.0, 1.0}
    # What was not asked is not drawn either.
    assert draws.sel(run="a | 1", question="q").sum() == 0
    assert {"answers_asked", "difficulty"} <= ModelGraph(model).make_compute_graph()["answers"]
    posterior = xr.DataTree.from_dict(
        {
            "posterior": prior["prior"].to_dataset(),
            "constant_data": prior["constant_data"].to_dataset(),
        }
    )
    predicted = pm.sample_posterior_predictive(
        posterior, model=model, random_seed=1, progressbar=False, compile_kwargs={"mode": PYTHON}
    )["posterior_predictive"]["answers"]
    assert predicted.dims == ("chain", "draw", "run", "question")
    compute_log_likelihood(
        posterior, model=model, progressbar=False, compile_kwargs={"mode": PYTHON}
    )
    assert posterior["log_likelihood"]["answers"].dims == ("chain", "draw", "run")


def test_predictions_use_all_parameters_of_a_kernel_fit():
    data, _ = drifting(1.0)
    result = rank(data, "dynamic_irt_state_space", draws=50, random_seed=1)
    model = build(data, "state_space", prior="flat", **FLAT)
    with pytest.warns(UserWarning, match="effect of Potentials"):
        predicted = pm.sample_posterior_predictive(
            result, model=model, random_seed=1, progressbar=False, compile_kwargs={"mode": PYTHON}
        )["posterior_predictive"]["answers"]
    rate = predicted.mean(("chain", "draw", "question")).values.reshape(8, 20)
    observed = data.outcomes.mean(axis=1)
    assert np.abs(rate - observed).mean() < 0.1


def first_abilities(data: Responses, difficulty: np.ndarray) -> np.ndarray:
    """Fit a line per system, with the preset's penalty, to answers to known questions."""
    times = np.linspace(0, 1, data.shape[2])
    design = np.stack([np.ones_like(times), times])
    penalty = np.diag([0.0, 0.02])
    lines = np.zeros((data.shape[0], 2))
    right = (data.outcomes == 1).sum(axis=1)
    for _ in range(20):
        chance = expit((lines @ design)[..., None] - difficulty)
        slope = (right - chance.sum(axis=-1)) @ design.T - lines @ penalty
        weight = (chance * (1 - chance)).sum(axis=-1)
        curvature = np.einsum("ln,in,jn->lij", weight, design, design) + penalty
        lines += np.linalg.solve(curvature, slope[..., None])[..., 0]
    assert np.abs(slope).max() < 1e-8
    return lines[:, 0]


def test_growth_recovers_abilities():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        ability, difficulty = rng.normal(size=20), rng.normal(size=30)
        chance = expit(ability[:, None] - difficulty)[..., None]
        data = Responses((rng.random((20, 30, 80)) < chance).astype(np.int8))
        mean = rank(data, "dynamic_irt_growth", score_target="mean", draws=0)
        first = rank(data, "dynamic_irt_growth", draws=0)
        assert first["sample_stats"]["converged"]
        assert stats.pearsonr(mean["ranking"]["score"], ability)[0] > 0.99
        # A line's end has four times the variance of its middle: known difficulties help no more.
        known = stats.pearsonr(first_abilities(data, difficulty), ability)[0]
        found = stats.pearsonr(first["ranking"]["score"], ability)[0]
        assert found > min(0.99, known - 1e-3)


def test_nuts_samples_walks():
    data, ability = drifting(1.0)
    groups = sample(build(data, "state_space"), draws=1000, random_seed=1)
    posterior = groups["posterior"]
    assert int(groups["sample_stats"]["diverging"].sum()) == 0
    low, high = posterior["walk_scale"].quantile([0.01, 0.99]).values
    assert low < 1.0 < high
    final = posterior["score"].mean(("chain", "draw"))
    assert stats.pearsonr(final, ability[:, -1])[0] > 0.9
