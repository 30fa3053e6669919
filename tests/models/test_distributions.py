"""Real-valued counts and zero-sum priors against PyMC's distributions and against integrals."""

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from pymc.distributions.transforms import ZeroSumTransform
from pytensor.compile.mode import Mode
from pytensor.graph.replace import vectorize_graph
from scipy import stats

from bayesrank.inference.graph.bound_model import FUNCTIONS, bind_model
from bayesrank.inference.graph.fit import fit
from bayesrank.models.latent_priors import laplace, zero_sum
from bayesrank.models.observations import BinomialReal, MultinomialReal
from bayesrank.models.score_priors import zero_sum_score
from bayesrank.priors import Normal

PYTHON = Mode(linker="py", optimizer="fast_compile")


def log_probability(variable: object, value: object) -> np.ndarray:
    """Evaluate a log-probability without compiling anything."""
    with pytensor.config.change_flags(cxx=""):
        return pm.logp(variable, value).eval(mode=PYTHON)


def test_whole_counts_have_the_binomial_probability() -> None:
    k, n, p = np.array([0.0, 3.0, 7.0]), np.array([4.0, 7.0, 7.0]), np.array([0.2, 0.5, 0.9])
    with pm.Model():
        wins = BinomialReal("wins", n=n, logit_p=np.log(p / (1 - p)), observed=k)
    expected = stats.binom.logpmf(k, n, p)
    np.testing.assert_allclose(log_probability(wins, k), expected, rtol=1e-12)


def test_certain_outcomes_are_possible_and_others_are_not() -> None:
    with pm.Model():
        certain = BinomialReal("certain", n=np.array([2.0, 2.0]), logit_p=np.array([-800.0, 800.0]))
    np.testing.assert_allclose(log_probability(certain, np.array([0.0, 2.0])), 0.0, atol=1e-15)
    assert np.all(log_probability(certain, np.array([1.0, 1.5])) < -390.0)
    assert np.all(np.isneginf(log_probability(certain, np.array([-0.5, 2.5]))))


def test_fractional_counts_are_not_truncated() -> None:
    with pm.Model():
        wins = BinomialReal("wins", n=3.0, logit_p=0.4)
    values = [float(log_probability(wins, k)) for k in (1.0, 1.5, 2.0)]
    assert values[0] < values[1]
    slope = 1.5 * 0.4 - 3.0 * np.log1p(np.exp(0.4))
    # Gamma(5/2) = 3 sqrt(pi) / 4 stands for the factorial of 3/2.
    half = slope + np.log(6.0) - 2.0 * np.log(0.75 * np.sqrt(np.pi))
    assert values[1] == pytest.approx(half, rel=1e-12)


def test_draws_of_whole_totals_are_binomial_and_of_fractions_keep_the_mean() -> None:
    with pm.Model():
        wins = BinomialReal("wins", n=np.array([6.0, 6.5]), logit_p=np.array([0.0, 40.0]))
    draws = pm.draw(wins, 4000, random_seed=1, mode=PYTHON)
    assert draws.shape == (4000, 2)
    assert np.array_equal(draws, np.floor(draws))
    frequencies = np.bincount(draws[:, 0].astype(int), minlength=7) / 4000
    np.testing.assert_allclose(frequencies, stats.binom.pmf(np.arange(7), 6, 0.5), atol=0.03)
    assert set(np.unique(draws[:, 1])) == {6.0, 7.0}
    assert draws[:, 1].mean() == pytest.approx(6.5, abs=0.04)


def test_whole_rows_have_the_multinomial_probability() -> None:
    counts = np.array([[2.0, 3.0, 0.0], [1.0, 1.0, 4.0]])
    p = np.array([[0.3, 0.7, 0.0], [0.2, 0.3, 0.5]])
    with np.errstate(divide="ignore"), pm.Model():
        results = MultinomialReal("results", log_p=np.log(p), observed=counts)
    expected = stats.multinomial.logpmf(counts, counts.sum(1), p)
    np.testing.assert_allclose(log_probability(results, counts), expected, rtol=1e-12)
    assert np.all(np.isneginf(log_probability(results, counts + 1.0)))


def test_two_outcomes_are_a_binomial_of_fractions() -> None:
    with pm.Model():
        results = MultinomialReal("results", log_p=np.log([[0.3, 0.7]]), observed=[[1.2, 1.3]])
        wins = BinomialReal("wins", n=2.5, logit_p=np.log(0.3 / 0.7))
    row = np.array([[1.2, 1.3]])
    assert float(log_probability(results, row)[0]) == pytest.approx(
        float(log_probability(wins, 1.2)), rel=1e-12
    )


def test_impossible_counts_are_refused() -> None:
    with pm.Model():
        with pytest.raises(ValueError, match=r"observed must be between 0 and n; got 3.0 for wins"):
            BinomialReal("wins", n=[2.0, 4.0], logit_p=0.0, observed=[3.0, 4.0])
        with pytest.raises(ValueError, match="observed must be between 0 and n; got nan for wins"):
            BinomialReal("wins", n=[2.0, 4.0], logit_p=0.0, observed=[np.nan, 4.0])
        with pytest.raises(ValueError, match=r"observed must be between 0 and n; got -1.0 for"):
            MultinomialReal("results", log_p=np.log([[0.5, 0.5]]), observed=[[-1.0, 2.0]])


KINDS = ["normal", "laplace", "cauchy"]
LOCATION = np.array([0.5, -0.2, 0.3])
SCALE = 0.7


@pytest.fixture(scope="module")
def grid() -> np.ndarray:
    """Unconstrained points of three variables that sum to zero, and the area of each."""
    t = np.linspace(-6.0, 6.0, 241)
    # Equal steps in t are long ones far out, where the Cauchy still has mass.
    x, width = np.sinh(t), np.cosh(t) * (t[1] - t[0])
    first, second = np.meshgrid(x, x, indexing="ij")
    area = width[:, np.newaxis] * width
    return np.stack([first.ravel(), second.ravel(), area.ravel()], axis=-1)


def zero_sum_model(kind: str, scale: float = SCALE, **options: object) -> pm.Model:
    with pm.Model(coords={"system": ["a", "b", "c"]}) as model:
        zero_sum("score", kind, dims="system", scale=scale, location=LOCATION, **options)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_zero_sum_densities_integrate_to_one_at_any_scale(kind: str, grid: np.ndarray) -> None:
    points = pytensor.tensor.dmatrix("points")
    for scale in (0.7, 1.6):
        model = zero_sum_model(kind, scale)
        logp = vectorize_graph(model.logp(), replace={model.value_vars[0]: points})
        density = np.exp(pytensor.function([points], logp, mode=PYTHON)(grid[:, :2].copy()))
        assert (density * grid[:, 2]).sum() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_prior_draws_sum_to_zero_and_follow_the_density(kind: str, grid: np.ndarray) -> None:
    with pm.Model(coords={"copy": range(20_000), "system": ["a", "b", "c"]}) as model:
        zero_sum("score", kind, dims=("copy", "system"), scale=SCALE, location=LOCATION)
    draws = pm.draw(model["score"], random_seed=1, mode=PYTHON)
    assert np.abs(draws.sum(axis=-1)).max() < 1e-9 * max(1.0, np.abs(draws).max())
    centre = LOCATION - LOCATION.mean()
    z = (_on_plane(grid[:, :2]) - centre) / SCALE
    kernels = {"normal": -0.5 * z**2, "laplace": -np.abs(z), "cauchy": -np.log1p(z**2)}
    mass = np.exp(kernels[kind].sum(axis=-1)) * grid[:, 2]
    mass /= mass.sum()
    for share in (0.25, 0.5, 0.75, 0.95):
        threshold = np.quantile(np.abs(draws - centre), share, axis=0)
        below = (mass[:, np.newaxis] * (np.abs(z) * SCALE < threshold)).sum(axis=0)
        np.testing.assert_allclose(below, share, atol=0.02)


def _on_plane(points: np.ndarray) -> np.ndarray:
    x = pytensor.tensor.dmatrix("x")
    backward = ZeroSumTransform([-1]).backward(x)
    return pytensor.function([x], backward, mode=PYTHON)(np.ascontiguousarray(points))


def test_the_normal_with_a_mean_is_that_of_pymc_shifted() -> None:
    with pm.Model(coords={"system": ["a", "b", "c"]}) as plain:
        zero_sum_score("score", Normal(0.0, SCALE))
    shifted = zero_sum_model("normal")
    with pm.Model(coords={"system": ["a", "b", "c"]}) as by_pymc:
        pm.ZeroSumNormal("score", sigma=SCALE, dims="system")
    x = np.array([0.4, -1.1])
    value, expected, at = (
        bind_model(m, "map", backend="python") for m in (plain, by_pymc, shifted)
    )
    assert value.logp_and_gradient(x)[0] == expected.logp_and_gradient(x)[0]
    np.testing.assert_allclose(
        at.logp_and_gradient(x + at.start)[0], value.logp_and_gradient(x)[0], rtol=1e-12
    )


@pytest.mark.parametrize("kind", ["laplace", "flat"])
def test_models_of_one_prior_share_compiled_code(kind: str) -> None:
    bind_model(zero_sum_model(kind), "map", backend="python")
    before = FUNCTIONS.compilations
    bind_model(zero_sum_model(kind), "map", backend="python")
    assert FUNCTIONS.compilations == before


def test_a_batch_of_zero_sum_priors_is_independent() -> None:
    with pm.Model(coords={"benchmark": ["x", "y"], "system": ["a", "b", "c"]}) as model:
        score = zero_sum("score", "laplace", dims=("benchmark", "system"))
    assert bind_model(model, "map", backend="python").size == 4
    draw = pm.draw(score, random_seed=1, mode=PYTHON)
    assert draw.shape == (2, 3)
    np.testing.assert_allclose(draw.sum(-1), 0.0, atol=1e-12)


def test_a_custom_density_may_be_summed_or_not() -> None:
    x = np.array([0.4, -1.1])
    values = []
    for log_density in (lambda v: -0.5 * v**2, lambda v: -0.5 * (v**2).sum()):
        with pm.Model(coords={"system": ["a", "b", "c"]}) as model:
            zero_sum("score", "custom", dims="system", log_density=log_density)
        values.append(bind_model(model, "map", backend="python").logp_and_gradient(x)[0])
    assert values[0] == pytest.approx(values[1], rel=1e-14)
    assert values[0] == pytest.approx(-0.5 * (x @ x), rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "options"), [("flat", {}), ("custom", {"log_density": lambda v: -(v**2)})]
)
def test_priors_without_draws_say_so(kind: str, options: dict[str, object]) -> None:
    model = zero_sum_model(kind, **options)
    with pytest.raises(NotImplementedError, match=f"score has a {kind} prior, which has no draws"):
        pm.draw(model["score"], mode=PYTHON)


def test_a_flat_prior_adds_nothing() -> None:
    bound = bind_model(zero_sum_model("flat"), "map", backend="python")
    value, gradient = bound.logp_and_gradient(np.array([1.0, -2.0]))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, 0.0)


def test_independent_laplace_priors_are_those_of_pymc() -> None:
    values = np.array([-3.0, -0.01, 0.0, 0.5])
    with pm.Model():
        rounded = laplace("rounded", location=0.1, scale=0.7, shape=4)
        sharp = pm.Laplace("sharp", 0.1, 0.7, shape=4)
    np.testing.assert_allclose(
        log_probability(rounded, values), log_probability(sharp, values), rtol=1e-15
    )
    assert pm.draw(rounded, 3, random_seed=1, mode=PYTHON).shape == (3, 4)


def test_the_mode_under_a_laplace_prior_is_a_soft_threshold() -> None:
    y = np.array([3.0, 0.4, -0.9, -2.5])
    with pm.Model() as model:
        level = laplace("level", scale=1.0, shape=4)
        pm.Normal("y", level, 1.0, observed=y)
    result = fit(model)
    assert result.converged
    np.testing.assert_allclose(result.point["level"], [2.0, 0.0, 0.0, -1.5], atol=1e-11)


def test_bad_zero_sum_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"kind must be one of normal, laplace, .*; got 'gamma'"):
        zero_sum_model("gamma")
    with pytest.raises(
        ValueError, match="log_density must be given for kind custom and for no other"
    ):
        zero_sum_model("custom")
    with pytest.raises(
        ValueError, match="log_density must be given for kind custom and for no other"
    ):
        zero_sum_model("laplace", log_density=lambda v: v)


def test_predictive_draws_and_log_likelihood_work() -> None:
    with pm.Model(
        coords={"system": ["a", "b", "c"], "pair": ["ab", "ac"], "result": ["win", "loss", "tie"]}
    ) as model:
        score = zero_sum("score", "laplace", dims="system")
        margin = pm.math.stack([score[0] - score[1], score[0] - score[2]])
        BinomialReal("wins", n=[4.0, 2.5], logit_p=margin, observed=[3.0, 1.0], dims="pair")
        log_p = pm.math.log_softmax(
            pm.math.stack([margin, -margin, 0.0 * margin], axis=-1), axis=-1
        )
        MultinomialReal(
            "results",
            log_p=log_p,
            observed=[[1.0, 0.5, 1.0], [2.0, 0.0, 0.0]],
            dims=("pair", "result"),
        )
    few = {"compile_kwargs": {"mode": "FAST_COMPILE"}}
    prior = pm.sample_prior_predictive(7, model=model, random_seed=1, **few)
    assert dict(prior["prior_predictive"].sizes) == {"chain": 1, "draw": 7, "pair": 2, "result": 3}
    assert set(prior["constant_data"]) == {"wins_n", "results_n"}
    assert set(prior["observed_data"]) == {"wins", "results"}
    tree = xr.DataTree.from_dict({"posterior": prior["prior"].to_dataset()})
    options = {"model": model, "random_seed": 1, "progressbar": False}
    predicted = pm.sample_posterior_predictive(tree, **options, **few)["posterior_predictive"]
    assert float(predicted["wins"].max()) <= 4.0
    assert set(np.unique(predicted["results"].sum("result"))) <= {2.0, 3.0}
    with model:
        densities = pm.compute_log_likelihood(tree, progressbar=False, **few)
    log_likelihood = densities["log_likelihood"]
    assert dict(log_likelihood["results"].sizes) == {"chain": 1, "draw": 7, "pair": 2}
    assert bool(np.isfinite(log_likelihood["wins"]).all())
