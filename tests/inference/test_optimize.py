"""Fits of models whose optimum and curvature are known in closed form."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest

from bayesrank import Responses
from bayesrank.errors import ConvergenceWarning
from bayesrank.inference.graph.fit import LARGEST_NEWTON, fit
from bayesrank.models import irt_2pl
from bayesrank.models.latent_priors import zero_sum
from bayesrank.models.observations import BinomialReal


def gaussian(n: int = 3) -> tuple[pm.Model, np.ndarray, np.ndarray]:
    """Return a linear model, and the mean and covariance of its posterior."""
    rng = np.random.default_rng(0)
    design, y = rng.normal(size=(n + 4, n)), rng.normal(size=n + 4)
    with pm.Model(coords={"term": range(n)}) as model:
        slopes = pm.Normal("slopes", 1.0, 2.0, dims="term")
        pm.Deterministic("total", slopes.sum())
        pm.Normal("y", pm.Data("design", design) @ slopes, 0.5, observed=pm.Data("outcome", y))
    precision = design.T @ design / 0.25 + np.eye(n) / 4.0
    covariance = np.linalg.inv(precision)
    return model, covariance @ (design.T @ y / 0.25 + 0.25), covariance


def test_the_mode_of_a_gaussian_is_its_mean() -> None:
    model, mean, covariance = gaussian()
    result = fit(model)
    np.testing.assert_allclose(result.point["slopes"], mean, rtol=1e-12)
    assert result.point["slopes"].dims == ("term",)
    assert float(result.point["total"]) == pytest.approx(mean.sum(), rel=1e-12)
    np.testing.assert_allclose(np.linalg.inv(-result.hessian), covariance, rtol=1e-10)
    assert result.converged
    assert result.gradient_norm < 1e-10


def test_laplace_draws_of_a_gaussian_have_its_moments() -> None:
    model, mean, covariance = gaussian()
    draws = fit(model).draws(draws=5000, chains=4, random_seed=1)
    assert draws["slopes"].dims == ("chain", "draw", "term")
    slopes = draws["slopes"].values.reshape(-1, 3)
    error = np.sqrt(np.diagonal(covariance) / 20_000)
    assert np.all(np.abs(slopes.mean(0) - mean) < 4.0 * error)
    np.testing.assert_allclose(np.cov(slopes.T), covariance, rtol=0.05, atol=5e-4)
    np.testing.assert_allclose(draws["total"], draws["slopes"].sum("term"), rtol=1e-12)


def test_same_seed_same_draws() -> None:
    result = fit(gaussian()[0])
    first, again, other = (result.draws(draws=5, random_seed=s) for s in (1, 1, 2))
    assert first.identical(again)
    assert not first.equals(other)


def test_many_parameters_take_the_same_mode() -> None:
    n = LARGEST_NEWTON + 10
    model, mean, _ = gaussian(n)
    result = fit(model)
    assert result.converged
    np.testing.assert_allclose(result.point["slopes"], mean, atol=1e-9)


def test_a_beta_posterior_has_its_mode_on_the_scale_of_the_model() -> None:
    with pm.Model() as model:
        p = pm.Beta("p", 3.0, 2.0)
        pm.Binomial("y", n=20, p=p, observed=13)
    result = fit(model)
    assert float(result.point["p"]) == pytest.approx(15 / 23, rel=1e-12)
    assert float(fit(model, "mle").point["p"]) == pytest.approx(13 / 20, rel=1e-12)


def test_a_variable_that_the_likelihood_does_not_see_has_no_estimate() -> None:
    with pm.Model() as model:
        spread = pm.HalfNormal("spread")
        mu = pm.Normal("mu", 0.0, spread)
        pm.Deterministic("scaled", mu / spread)
        pm.Normal("y", mu, 1.0, observed=[1.0, 2.0])
    assert list(fit(model, "mle").point) == ["mu"]


def bradley_terry(wins: list[list[float]], kind: str = "normal", scale: float = 1.0) -> pm.Model:
    counts = np.array(wins)
    first, second = np.triu_indices(len(counts), 1)
    with pm.Model(coords={"system": range(len(counts)), "pair": range(first.size)}) as model:
        score = zero_sum("score", kind, dims="system", scale=scale)
        left, right = pm.Data("left", first, dims="pair"), pm.Data("right", second, dims="pair")
        BinomialReal(
            "wins",
            n=(counts + counts.T)[first, second],
            logit_p=score[left] - score[right],
            observed=counts[first, second],
            dims="pair",
        )
    return model


def test_two_systems_have_the_log_odds_of_their_wins() -> None:
    result = fit(bradley_terry([[0, 6], [2, 0]]), "mle")
    np.testing.assert_allclose(result.point["score"], [np.log(3) / 2, -np.log(3) / 2], rtol=1e-12)


def test_halving_the_counts_halves_the_log_likelihood_and_keeps_the_estimate() -> None:
    wins = np.array([[0.0, 6.0, 4.0], [2.0, 0.0, 5.0], [3.0, 1.0, 0.0]])
    whole, half = (fit(bradley_terry((wins * f).tolist()), "mle") for f in (1.0, 0.5))
    np.testing.assert_allclose(half.point["score"], whole.point["score"], rtol=1e-11)
    np.testing.assert_allclose(half.hessian, whole.hessian / 2.0, rtol=1e-10)


def test_a_laplace_prior_puts_equals_exactly_at_its_centre() -> None:
    # Systems 0 and 1 are evenly matched and 2 is weak: by symmetry the first two tie, and a strong
    # enough prior holds all three at the centre.
    wins = [[0.0, 5.0, 6.0], [5.0, 0.0, 6.0], [4.0, 4.0, 0.0]]
    held = fit(bradley_terry(wins, "laplace", scale=0.1))
    assert held.converged
    np.testing.assert_allclose(held.point["score"], 0.0, atol=1e-11)
    # With a weak prior theta = (a, a, -2a): the slope 4 - 20 (1 - sigma(3a)) ... - 4 / b vanishes.
    free = fit(bradley_terry(wins, "laplace", scale=20.0))
    a = float(free.point["score"][0])
    assert free.converged
    assert float(free.point["score"][1]) == pytest.approx(a, abs=1e-12)
    slope = 3.0 * (12.0 - 20.0 / (1.0 + np.exp(-3.0 * a))) - 4.0 / 20.0
    assert abs(slope) < 1e-9
    assert np.all(np.isfinite(held.draws(draws=10, random_seed=0)["score"]))


def test_a_start_without_probability_is_refused() -> None:
    with pm.Model() as model:
        level = pm.Normal("level")
        pm.Normal("y", 0.0, level - 1.0, observed=[1.0])
    with pytest.raises(ValueError, match="model must have a finite log-probability at its start"):
        fit(model)


def test_an_estimate_at_infinity_is_reported() -> None:
    with pytest.warns(ConvergenceWarning, match="the mle fit did not converge"):
        result = fit(bradley_terry([[0, 5], [0, 0]]), "mle")
    assert not result.converged


def test_a_density_without_bound_is_reported() -> None:
    with pm.Model() as model:
        spread = pm.HalfNormal("spread")
        pm.Normal("effect", 0.0, spread, shape=4)
    with pytest.warns(ConvergenceWarning, match="the map fit did not converge"):
        result = fit(model)
    with pytest.raises(ValueError, match="for Laplace draws"):
        result.draws()


def test_a_direction_that_nothing_identifies_has_no_draws() -> None:
    with pm.Model() as model:
        effect = pm.Flat("effect", shape=2)
        pm.Normal("y", effect.sum(), 1.0, observed=[1.0, 2.0])
    with pytest.warns(ConvergenceWarning, match="not be unique"):
        result = fit(model)
    assert float(result.point["effect"].sum()) == pytest.approx(1.5, abs=1e-6)
    with pytest.raises(ValueError, match=r"identified at the optimum for Laplace draws.*effect"):
        result.draws()


def potential(value: Callable[..., Any], start: list[float]) -> pm.Model:
    """Return a model whose log-density is a function of a vector."""
    with pm.Model() as model:
        x = pm.Flat("x", shape=len(start), initval=start)
        pm.Potential("value", value(x))
    return model


def test_newton_finds_the_maximum_of_a_curved_ridge() -> None:
    result = fit(
        potential(lambda x: -((1.0 - x[0]) ** 2) - 100.0 * (x[1] - x[0] ** 2) ** 2, [-1.2, 1.0])
    )
    assert result.converged
    np.testing.assert_allclose(result.x, 1.0, rtol=1e-12)


def test_newton_leaves_a_saddle() -> None:
    result = fit(potential(lambda x: -(x[0] ** 2) - x[1] ** 4 + x[1] ** 2, [1.0, 0.01]))
    assert result.converged
    np.testing.assert_allclose(result.x, [0.0, np.sqrt(0.5)], atol=1e-10)


@pytest.mark.parametrize(("seed", "lower"), [(9, -24.3), (14, -17.3)])
def test_the_highest_of_several_maxima_is_found(seed: int, lower: float) -> None:
    rng = np.random.default_rng(seed)
    shape = rng.integers(3, 6), rng.integers(4, 9), 2
    outcomes = (rng.random(shape) < rng.uniform(0.25, 0.75, (*shape[:2], 1))).astype(int)
    flat = dict.fromkeys(("prior", "difficulty_prior", "discrimination_prior"), "flat")
    found = fit(irt_2pl(Responses(outcomes), **flat), "mle")
    assert found.converged
    assert found.bound.logp_and_gradient(found.x)[0] > lower
