"""Rasch, 2PL and 3PL: densities by hand, kernels and graphs held together, recovery, NUTS."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from pymc.model_graph import ModelGraph
from pymc.stats import compute_log_likelihood
from pytensor.compile.mode import Mode
from scipy import stats
from scipy.special import expit

from bayesrank import METHODS, PRESETS, Responses, models, rank
from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.inference.graph.bound_model import bind_model
from bayesrank.inference.graph.fit import fit, sample
from bayesrank.method import load_function
from bayesrank.priors import Flat, as_prior

PYTHON = Mode(linker="py", optimizer="fast_compile")
FACTORIES = ["rasch", "irt_2pl", "irt_3pl"]
FITS = ["rasch", "rasch_map", "rasch_2pl", "rasch_2pl_map", "rasch_3pl", "rasch_3pl_map"]


def simulate(
    n_systems: int = 5, n_questions: int = 7, n_trials: int = 6, seed: int = 0
) -> tuple[Responses, np.ndarray]:
    """Draw Rasch-type outcomes, and return them with the true abilities."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=n_systems), rng.normal(size=n_questions)
    chance = expit(ability[:, None] - difficulty)[..., None]
    outcomes = rng.random((n_systems, n_questions, n_trials)) < chance
    return Responses(outcomes.astype(np.int8)), ability


@pytest.fixture(scope="module")
def data() -> Responses:
    """Return few outcomes: c never saw q, everybody answered r right and nobody s."""
    outcomes = [
        [[1, 0, 1], [1, 1, 0], [1, 1, 1], [0, 0, 0], [0, 1, 1]],
        [[0, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0], [1, 0, 0]],
        [[1, 1, 1], [-1, -1, -1], [1, 1, -1], [0, 0, 0], [0, 0, 1]],
    ]
    return Responses(outcomes, systems=list("abc"), questions=list("pqrst"))


@pytest.fixture(scope="module")
def graded() -> Responses:
    """Return outcomes, three of them missing, of which every model has a finite maximum."""
    chance = expit(np.linspace(-1, 1.2, 6)[:, None] - np.linspace(-1.2, 1.2, 8))[..., None]
    outcomes = (np.random.default_rng(3).random((6, 8, 12)) < chance).astype(np.int8)
    outcomes[0, 0, :3] = -1
    return Responses(outcomes)


def evaluate(model, kind):
    bound = bind_model(model, kind, backend="python")
    x = 0.5 * np.random.default_rng(0).normal(size=bound.size)
    return bound.logp_and_gradient(x)[0], {k: v[0] for k, v in bound.named(x[None]).items()}


def binomials(data: Responses, chance: np.ndarray) -> float:
    correct, trials = data.binary_counts
    return stats.binom.logpmf(correct, trials, chance).sum()


def line(values) -> np.ndarray:
    gap = values["score"][:, None] - values["difficulty"]
    return values.get("discrimination", 1.0) * gap


def test_the_likelihood_of_rasch(data):
    found, values = evaluate(models.rasch(data), "mle")
    assert values["difficulty"].sum() == pytest.approx(0, abs=1e-12)
    assert found == pytest.approx(binomials(data, expit(line(values))), rel=1e-10)


def test_the_prior_of_rasch(data):
    model = models.rasch(data, prior="laplace(0.5, 2)", difficulty_prior="normal(0, 1.5)")
    posterior, values = evaluate(model, "map")
    likelihood, _ = evaluate(model, "mle")
    expected = stats.laplace.logpdf(values["score"], 0.5, 2).sum()
    expected += -0.5 * ((values["difficulty"] / 1.5) ** 2).sum() - 4 * np.log(
        1.5 * np.sqrt(2 * np.pi)
    )
    # The engine rounds the kink of a Laplace density by less than this.
    assert posterior - likelihood == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("centred", [True, False])
def test_the_likelihood_of_2pl(data, centred):
    found, values = evaluate(models.irt_2pl(data, centred=centred), "mle")
    assert found == pytest.approx(binomials(data, expit(line(values))), rel=1e-10)
    if centred:
        assert values["score"].sum() == pytest.approx(0, abs=1e-12)
        assert np.log(values["discrimination"]).sum() == pytest.approx(0, abs=1e-12)
    else:
        assert values["difficulty"].sum() == pytest.approx(0, abs=1e-12)


def test_the_prior_of_2pl(data):
    model = models.irt_2pl(data, difficulty_prior="normal(0.5, 2)")
    posterior, values = evaluate(model, "map")
    likelihood, _ = evaluate(model, "mle")
    half = np.log(values["discrimination"])
    expected = -0.5 * (values["score"] ** 2).sum() - np.log(2 * np.pi)
    expected += -0.5 * ((half / 0.5) ** 2).sum() - 4 * np.log(0.5 * np.sqrt(2 * np.pi))
    expected += stats.norm.logpdf(values["intercept"], -0.5, 2).sum()
    assert posterior - likelihood == pytest.approx(expected, rel=1e-9)


def test_the_likelihood_of_3pl(data):
    found, values = evaluate(models.irt_3pl(data, guessing_upper=0.4), "mle")
    guessing = 0.4 * expit(values["guessing_logit"])
    np.testing.assert_allclose(values["guessing"], guessing)
    chance = guessing + (1 - guessing) * expit(line(values))
    assert found == pytest.approx(binomials(data, chance), rel=1e-10)


@pytest.mark.parametrize("guessing", [0.0, 0.25])
def test_known_guessing(data, guessing):
    model = models.irt_3pl(data, guessing=guessing)
    found, values = evaluate(model, "mle")
    assert "guessing_logit" not in values
    chance = guessing + (1 - guessing) * expit(line(values))
    assert found == pytest.approx(binomials(data, chance), rel=1e-10)


def test_penalties_stand_in_for_flat_priors(data):
    options = {"discrimination_prior": "flat", "guessing_prior": "flat"}
    without, _ = evaluate(
        models.irt_3pl(data, **options, reg_discrimination=0.0, reg_guessing=0.0), "mle"
    )
    found, values = evaluate(
        models.irt_3pl(data, **options, reg_discrimination=0.3, reg_guessing=0.2), "mle"
    )
    penalty = 0.3 * (np.log(values["discrimination"]) ** 2).sum()
    penalty += 0.2 * (values["guessing_logit"] ** 2).sum()
    assert found == pytest.approx(without - penalty, rel=1e-10)
    assert not models.irt_3pl(data).potentials


def test_uninformative_questions_are_left_out_of_flat_priors_alone(data):
    model = models.rasch(data, difficulty_prior="flat")
    assert list(model.coords["question"]) == ["p", "q", "t"]
    assert len(model.coords["cell"]) == 8
    assert list(models.rasch(data).coords["question"]) == list("pqrst")


def test_variables_have_dims_and_labels(data):
    model = models.irt_3pl(data)
    free = ["score", "log_discrimination", "intercept", "guessing_logit"]
    assert [v.name for v in model.free_RVs] == free
    assert model.named_vars_to_dims["score"] == ("system",)
    for name in (*free[1:], "difficulty", "discrimination", "guessing"):
        assert model.named_vars_to_dims[name] == ("question",)
    assert model.named_vars_to_dims["correct"] == ("cell",)
    # A cell without trials is no observation.
    assert "c | q" not in model.coords["cell"]
    assert len(model.coords["cell"]) == 14


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guessing": 1.0}, r"guessing must be in \[0, 1\); got 1\.0"),
        ({"guessing_upper": 0.0}, r"guessing_upper must be in \(0, 1\]; got 0\.0"),
        ({"reg_guessing": -1.0}, r"reg_guessing must be a finite number >= 0; got -1\.0"),
        (
            {"reg_discrimination": -1.0},
            r"reg_discrimination must be a finite number >= 0; got -1\.0",
        ),
    ],
)
def test_bad_options_are_named(data, options, message):
    with pytest.raises(ValueError, match=message):
        models.irt_3pl(data, **options)


def test_data_without_information_are_refused():
    with pytest.raises(DataError, match="outcomes must differ on one question at least"):
        models.rasch(Responses([[1, 0], [1, 0]]), difficulty_prior="flat")


def test_separated_systems_are_named(data):
    with pytest.raises(NoFiniteEstimate, match="'a' answered every question"):
        rank(Responses([[[1, 1]], [[0, 1]]], systems=["a", "b"]), "rasch")
    assert np.isfinite(rank(data, "rasch_map", draws=0)["ranking"]["score"]).all()


def test_left_out_questions_are_noted_in_the_result(data):
    point = rank(data, "rasch_map", draws=0)["point_estimate"]["difficulty"]
    assert point.sel(question="r") == -np.inf
    assert point.sel(question="s") == np.inf


@pytest.mark.parametrize("name", FACTORIES)
def test_predictive_draws_are_possible_results(data, name):
    model = getattr(models, name)(data)
    prior = pm.sample_prior_predictive(
        50, model=model, random_seed=1, compile_kwargs={"mode": PYTHON}
    )
    draws = prior["prior_predictive"]["correct"].isel(chain=0).values
    trials = data.trials[data.trials > 0]
    assert draws.min() >= 0
    assert (draws <= trials).all()
    assert draws.std(axis=0).min() > 0
    np.testing.assert_array_equal(draws, draws.round())
    graph = ModelGraph(model).make_compute_graph()
    assert graph["correct"] >= {"correct_n", "cell_system", "cell_question", "score"}


@pytest.mark.parametrize("name", ["rasch", "rasch_2pl_map", "rasch_3pl_map"])
def test_predictions_and_densities_of_a_fit(name):
    data, _ = simulate(6, 8, 40, seed=3)
    result = rank(data, name, backend="map", draws=50, random_seed=1)
    row = METHODS[PRESETS[name].method]
    # Penalties belong to the fit: PyMC warns that draws cannot follow them.
    without = {option: 0.0 for option in row.options if option.startswith("reg_")}
    options = dict(PRESETS[name].options) | {"difficulty_prior": "flat"} | without
    model = load_function(row.function)(data, **options)
    tree = xr.DataTree.from_dict({"posterior": result["posterior"].to_dataset()})
    predicted = pm.sample_posterior_predictive(
        tree, model=model, random_seed=1, progressbar=False, compile_kwargs={"mode": PYTHON}
    )["posterior_predictive"]["correct"]
    assert predicted.dims == ("chain", "draw", "cell")
    compute_log_likelihood(tree, model=model, progressbar=False, compile_kwargs={"mode": PYTHON})
    posterior = {k: v.values for k, v in tree["posterior"].data_vars.items()}
    gap = posterior["score"][..., None] - posterior["difficulty"][..., None, :]
    slope, guessing = (
        posterior.get(v, np.full((1, 1, 1), d))[..., None, :]
        for v, d in (("discrimination", 1.0), ("guessing", 0.0))
    )
    chance = (guessing + (1 - guessing) * expit(slope * gap)).reshape(4, 50, -1)
    # Five standard errors of 200 draws.
    np.testing.assert_allclose(
        predicted.mean(("chain", "draw")), 40 * chance.mean(axis=(0, 1)), atol=1.1
    )
    expected = stats.binom.logpmf(data.binary_counts[0].ravel(), 40, chance)
    found = tree["log_likelihood"]["correct"].values
    # A chance that rounds to 1 makes SciPy's minus infinity, or loses its last digits.
    inside = np.abs(chance - 0.5) < 0.499999
    np.testing.assert_allclose(found[inside], expected[inside], rtol=1e-7)


@pytest.mark.parametrize("name", FITS)
def test_kernels_and_graphs_have_one_optimum(name, graded):
    preset = PRESETS[name]
    row = METHODS[preset.method]
    flat = {option: "flat" for option in row.options if option.endswith("_prior")}
    prior = Flat() if preset.prior is None else as_prior(preset.prior)
    options = dict(preset.options) | flat
    kernel = load_function(row.kernel)(graded, prior, **options)
    graph = fit(load_function(row.function)(graded, prior=prior, **options), preset.backend)
    assert kernel.converged
    for variable, value in graph.point.items():
        found = kernel.score if variable == "score" else kernel.parameters[variable]
        np.testing.assert_allclose(value, found, atol=1e-8)


def test_the_centred_maximum_is_the_published_one_shifted():
    data, _ = simulate(6, 8, 12, seed=3)
    published = rank(data, "rasch_2pl", draws=0)["ranking"]["score"]
    centred = rank(data, "irt_2pl", backend="mle", draws=0)["ranking"]["score"]
    np.testing.assert_allclose(centred, published - published.mean(), atol=1e-8)


def test_joint_rasch_orders_by_totals_with_exact_ties():
    for seed in range(5):
        data, _ = simulate(12, 10, 2, seed)
        total = data.binary_counts[0].sum(axis=1)
        assert len(set(total)) < len(total)
        for name in ("rasch_map", "rasch_mml", "rasch_mml_credible"):
            ranks = rank(data, name, draws=0)["ranking"]["rank"]
            expected = 1 + (total[:, None] < total).sum(axis=1)
            np.testing.assert_array_equal(ranks, expected)


def test_presets_recover_abilities():
    smallest = dict.fromkeys((*FITS, "rasch_mml", "rasch_mml_credible"), 1.0)
    for seed in range(10):
        data, ability = simulate(20, 30, 80, seed)
        for name in smallest:
            result = rank(data, name, draws=0)
            assert result["sample_stats"]["converged"]
            score = result["ranking"]["score"].values
            # 3PL fits put systems that guess far away, so that their order counts alone.
            correlate = stats.spearmanr if "3pl" in name else stats.pearsonr
            smallest[name] = min(smallest[name], correlate(score, ability)[0])
    for name, correlation in smallest.items():
        assert correlation > (0.98 if "3pl" in name else 0.99), name


def test_nuts_samples_2pl():
    data, ability = simulate(8, 10, 20, seed=1)
    groups = sample(models.irt_2pl(data), draws=1000, random_seed=1)
    score = groups["posterior"]["score"].mean(("chain", "draw"))
    mode = rank(data, "irt_2pl", draws=0)["ranking"]["score"]
    assert int(groups["sample_stats"]["diverging"].sum()) == 0
    np.testing.assert_allclose(score, mode, atol=0.15)
    assert stats.pearsonr(score, ability)[0] > 0.95
