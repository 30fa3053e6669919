"""Posterior means by NUTS against importance sampling from the Gaussian approximation.

The reference shares the log-probability with NUTS (which other tests hold to formulas) and nothing
else: no chain, no tuning, no adaptation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from arviz_stats.sampling_diagnostics import mcse
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit

from bayesrank import Comparisons, Responses, models, rank
from bayesrank.inference.graph.bound_model import bind_model

N_POINTS = 40_000
# Heavier tails than a Gaussian bound the importance weights.
TAIL_DF = 8.0


@dataclass(frozen=True)
class Reference:
    """Posterior means by importance sampling, and their Monte Carlo errors, by variable.

    Attributes
    ----------
    mean, error : dict of str to numpy.ndarray
        By name of the variable.
    pareto_k : float
        Shape of the tail of the weights; below 0.7 their mean can be trusted.
    """

    mean: dict[str, np.ndarray]
    error: dict[str, np.ndarray]
    pareto_k: float


def simulate_comparisons() -> Comparisons:
    """Draw wins and ties of five systems, seven comparisons per pair."""
    rng = np.random.default_rng(2)
    score = np.linspace(-0.8, 0.8, 5)
    wins, ties = np.zeros((5, 5)), np.zeros((5, 5))
    for i in range(5):
        for j in range(i):
            strength = np.exp([score[i], score[j], np.log(0.7) + 0.5 * (score[i] + score[j])])
            wins[i, j], wins[j, i], ties[i, j] = rng.multinomial(7, strength / strength.sum())
    return Comparisons(wins, ties + ties.T)


def simulate_responses() -> Responses:
    """Draw Rasch outcomes of five systems, six questions and four trials."""
    rng = np.random.default_rng(3)
    chance = expit(np.linspace(-1.0, 1.0, 5)[:, None] - np.linspace(-1.0, 1.5, 6))[..., None]
    return Responses((rng.random((5, 6, 4)) < chance).astype(np.int8))


def sample_by_importance(model: pm.Model, seed: int) -> Reference:
    """Weight draws from a multivariate t around the mode by the posterior density."""
    bound = bind_model(model, "nuts")

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = bound.logp_and_gradient(x)
        return -value, -gradient

    mode = minimize(objective, bound.start, jac=True, method="BFGS").x
    scale = np.linalg.inv(-bound.hessian(mode))
    proposal = stats.multivariate_t(mode, scale, df=TAIL_DF, seed=np.random.default_rng(seed))
    points = proposal.rvs(N_POINTS)
    logp = np.array([bound.logp_and_gradient(x)[0] for x in np.ascontiguousarray(points)])
    # ArviZ takes the logarithms of inverse ratios, as log-likelihoods left out are.
    inverse = xr.DataArray(proposal.logpdf(points) - logp, dims="sample")
    log_weights, pareto_k = inverse.azstats.psislw(dim="sample")
    weights = np.exp(log_weights.values)
    weights /= weights.sum()
    mean, error = {}, {}
    for name, values in bound.named(points).items():
        mean[name] = np.tensordot(weights, values, 1)
        error[name] = np.sqrt(np.tensordot(weights**2, (values - mean[name]) ** 2, 1))
    return Reference(mean, error, float(pareto_k))


@pytest.mark.parametrize(
    ("method", "simulate", "options", "variables"),
    [
        ("bradley_terry", simulate_comparisons, {}, ["score"]),
        ("davidson", simulate_comparisons, {}, ["score", "log_tie_strength"]),
        # The published configuration of this name knows the tie strength.
        ("rao_kupper", simulate_comparisons, {"tie_strength": None}, ["score", "log_tie_strength"]),
        ("rasch", simulate_responses, {}, ["score", "difficulty"]),
        ("irt_2pl", simulate_responses, {}, ["score", "intercept", "log_discrimination"]),
        ("davidson_luce", simulate_responses, {}, ["score", "size_probability"]),
    ],
)
def test_posterior_means_agree_with_importance_sampling(
    method: str, simulate: Callable[[], Any], options: dict[str, Any], variables: list[str]
) -> None:
    data = simulate()
    reference = sample_by_importance(getattr(models, method)(data, **options), seed=1)
    assert reference.pareto_k < 0.7
    options = {**options, "calibration": "none"}
    tree = rank(data, method, backend="nuts", draws=2000, random_seed=3, **options)
    posterior = tree["posterior"].to_dataset()[variables]
    errors = mcse(posterior, method="mean")
    for name in variables:
        difference = posterior[name].mean(("chain", "draw")).values - reference.mean[name]
        error = np.hypot(errors[name].values, reference.error[name])
        assert np.all(error < 0.05)
        assert np.all(np.abs(difference) < 3.0 * error), name
