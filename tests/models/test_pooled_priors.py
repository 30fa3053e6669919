"""Priors with an integrated-out scale against the mixtures that they are."""

import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import Mode
from scipy import integrate, stats

from bayesrank.inference.graph.bound_model import bind_model
from bayesrank.models.crossed import crossed_effects
from bayesrank.models.pooled_priors import (
    effect,
    is_flat,
    pooled,
    pooled_within,
    pooled_zero_sum,
    zero_sum_effect,
)
from bayesrank.priors import Cauchy, Custom, Empirical, Flat, Laplace, Normal

PYTHON = Mode(linker="py", optimizer="fast_compile")
QUESTIONS = {"system": list("abc"), "question": list("pqrst")}


def mixture(squares: float, dimension: int, scale: float = 1.0) -> float:
    """Integrate independent normals of one scale over the scaled inverse chi-squared prior."""

    def integrand(log_sd: float) -> float:
        sd = np.exp(log_sd)
        # sd^-2 is a Gamma variable: 2 degrees of freedom, mean scale^-2.
        prior = stats.gamma.pdf(sd**-2.0, 1.0, scale=1.0 / scale**2) * 2.0 * sd**-2.0
        return prior * (2 * np.pi * sd**2) ** (-dimension / 2) * np.exp(-squares / (2 * sd**2))

    return integrate.quad(integrand, -8.0, 12.0, limit=200, epsabs=0, epsrel=1e-12)[0]


def logp(model: pm.Model, name: str, value: np.ndarray) -> float:
    function = pm.compile([model[name]], pm.logp(model[name], model[name]), mode=PYTHON)
    return float(np.sum(function(value)))


def test_zero_sum_effects_are_normal_with_an_unknown_scale():
    with pm.Model(coords=QUESTIONS) as model:
        pooled_zero_sum("x", dims="question", scale=0.7)
    value = np.array([1.0, -0.5, 0.2, -1.1, 0.4])
    expected = np.log(mixture((value**2).sum(), 4, 0.7))
    assert logp(model, "x", value) == pytest.approx(expected, rel=1e-9)


def test_effects_that_sum_to_zero_both_ways():
    with pm.Model(coords=QUESTIONS) as model:
        pooled_zero_sum("x", dims=("system", "question"))
    value = np.random.default_rng(0).normal(size=(3, 5))
    value -= value.mean(axis=0)
    value -= value.mean(axis=1, keepdims=True)
    expected = np.log(mixture((value**2).sum(), 8))
    assert logp(model, "x", value) == pytest.approx(expected, rel=1e-9)
    draws = pm.draw(model["x"], draws=3, random_seed=1, mode=PYTHON)
    np.testing.assert_allclose(draws.sum(axis=1), 0, atol=1e-10)
    np.testing.assert_allclose(draws.sum(axis=2), 0, atol=1e-10)


def test_effects_have_a_normal_mean():
    with pm.Model(coords=QUESTIONS) as model:
        pooled("x", dims="question", level=(0.3, 2.0))
    value = np.array([1.0, -0.5, 0.2, -1.1, 3.4])
    mean = value.mean()
    # sqrt(5) times the mean is one of five orthonormal coordinates.
    expected = stats.norm.logpdf(np.sqrt(5) * mean, np.sqrt(5) * 0.3, np.sqrt(5) * 2.0)
    expected += np.log(mixture(((value - mean) ** 2).sum(), 4))
    assert logp(model, "x", value) == pytest.approx(expected, rel=1e-9)


def test_effects_within_groups():
    members = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]], dtype=float)
    with pm.Model(coords=QUESTIONS) as model:
        pooled_within("x", members, dims="question")
    value = np.array([1.0, -0.5, 0.2, -1.1, 3.4])
    means = np.array([value[:2].mean(), value[2:].mean()])
    expected = np.log(mixture(((value - members @ means) ** 2).sum(), 3))
    expected += stats.norm.logpdf(np.sqrt(2) * means.mean(), 0, np.sqrt(2) * 2.5)
    expected += np.log(mixture(((means - means.mean()) ** 2).sum(), 1))
    expected -= 0.5 * np.log(2 * 3)
    assert logp(model, "x", value) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", ["zero_sum", "pooled", "within"])
def test_draws_have_the_density_of_the_scale(kind):
    with pm.Model(coords=QUESTIONS) as model:
        if kind == "zero_sum":
            pooled_zero_sum("x", dims="question")
        elif kind == "pooled":
            pooled("x", dims="question")
        else:
            pooled_within("x", np.ones((5, 1)), dims="question")
    draws = pm.draw(model["x"], draws=4000, random_seed=1, mode=PYTHON)
    deviations = draws - draws.mean(axis=1, keepdims=True)
    # Their mean square is an F variable with 4 and 2 degrees of freedom.
    probability = stats.f(4, 2).cdf((deviations**2).sum(axis=1) / 4)
    assert stats.kstest(probability, "uniform").pvalue > 0.01
    if kind == "zero_sum":
        np.testing.assert_allclose(draws.sum(axis=1), 0, atol=1e-9)
    else:
        assert stats.kstest(draws.mean(axis=1), stats.norm(0, 2.5).cdf).pvalue > 0.01


def test_any_prior_can_be_given():
    with pm.Model(coords=QUESTIONS) as model:
        zero_sum_effect("a", "normal(0, 2)", dims="question")
        effect("b", "laplace(1, 2)", dims="question", negative=True)
        effect("c", "normal(1, 2)", dims="question", negative=True)
        effect("d", "cauchy(1, 2)", dims="question", negative=True)
        effect("e", Custom(lambda x: -(x**4)), dims="question", negative=True)
        effect("f", "normal(1, 2)", dims="question")
    value = np.full(5, -1.0)
    # At its centre a density is largest: mirrored ones have it at -1.
    for name in "bcd":
        assert logp(model, name, value) > logp(model, name, -value)
    assert logp(model, "f", -value) > logp(model, "f", value)
    assert np.isfinite(logp(model, "a", np.zeros(5)))


def test_flat_is_told_from_hierarchical():
    assert is_flat("flat")
    assert is_flat(Flat())
    assert not is_flat("hierarchical")
    assert not is_flat(1.0)


def test_crossed_coordinates_state_the_same_density():
    """Contrasts and intercepts are abilities and difficulties up to a constant Jacobian."""
    lead = np.array([0.5, -0.3, 0.1])
    prior = Normal(0.4, 1.3)

    def bound(plain: bool):
        with pm.Model(coords=QUESTIONS) as model:
            if plain:
                ability = pm.Normal("ability", 0.4 + lead, 1.3, dims="system")
                difficulty = zero_sum_effect("difficulty", "hierarchical", dims="question")
            else:
                ability, difficulty = crossed_effects("ability", prior, "hierarchical", lead=lead)
            pm.Normal("y", ability.sum() - difficulty[0], 1.0, observed=0.0)
        return bind_model(model, "map", backend="python")

    crossed, plain = bound(False), bound(True)
    gaps = []
    for x in np.random.default_rng(0).normal(size=(3, 7)):
        named = {k: v[0] for k, v in crossed.named(x[np.newaxis]).items()}
        assert named["difficulty"].sum() == pytest.approx(0, abs=1e-12)
        b = named["difficulty"]
        # ZeroSumTransform leaves out the last element, and spreads it over the others.
        point = np.concatenate([named["ability"], b[:-1] - b[-1] / (np.sqrt(len(b)) + 1)])
        values = {k: v[0] for k, v in plain.named(point[np.newaxis]).items()}
        np.testing.assert_allclose(values["difficulty"], b, atol=1e-10)
        gaps.append(crossed.logp_and_gradient(x)[0] - plain.logp_and_gradient(point)[0])
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-9)


@pytest.mark.parametrize(
    "prior",
    [Laplace(0.2, 0.5), Cauchy(0.2, 0.5), Flat(), Custom(lambda x: -((x - 0.2) ** 2))],
    ids=str,
)
def test_priors_that_cannot_be_crossed_follow_the_lead(prior):
    lead = np.array([0.5, -0.3, 0.1])
    with pm.Model(coords=QUESTIONS) as model:
        crossed_effects("ability", prior, "hierarchical", lead=lead)
    assert [v.name for v in model.free_RVs] == ["ability", "difficulty"]
    with pm.Model(coords=QUESTIONS) as unmoved:
        crossed_effects("ability", prior, "hierarchical")
    point = {"difficulty_zerosum__": np.zeros(4)}
    at_lead = model.compile_logp(mode=PYTHON)({"ability": 0.7 + lead, **point})
    at_zero = unmoved.compile_logp(mode=PYTHON)({"ability": np.full(3, 0.7), **point})
    assert at_lead == pytest.approx(at_zero, rel=1e-12)


def test_an_empirical_prior_is_crossed():
    prior = Empirical([[[1, 1]], [[0, 1]], [[0, 0]]])
    with pm.Model(coords=QUESTIONS) as model:
        ability, _ = crossed_effects("ability", prior, "hierarchical")
    assert [v.name for v in model.free_RVs] == ["contrast", "intercept"]
    draws = pm.draw(ability, draws=4000, random_seed=1, mode=PYTHON)
    np.testing.assert_allclose(draws.mean(axis=0), prior.quadratic()[0], atol=0.08)
    np.testing.assert_allclose(draws.std(axis=0), 1.0, atol=0.05)
