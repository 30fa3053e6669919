"""Abilities and difficulties, identified up to a common shift, in coordinates for good mixing."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesrank.models.latent_priors import laplace, zero_sum
from bayesrank.models.pooled_priors import pooled, zero_sum_effect
from bayesrank.models.score_priors import custom_variable, free_variable
from bayesrank.priors import HIERARCHICAL, Cauchy, Custom, Laplace, Prior, PriorLike


def crossed_effects(
    name: str, prior: Prior, difficulty_prior: PriorLike, *, lead: Any = None
) -> tuple[Any, Any]:
    """State abilities that have a prior, (system,), and difficulties that sum to zero, (question,).

    A question that all systems answer alike has a vague difficulty. As difficulties sum to zero,
    the common location of all other difficulties and of the abilities is then vague too, and a
    sampler has to move along it. So under a normal prior on abilities and the hierarchical prior on
    difficulties, the free variables are contrasts between abilities and intercepts (the log-odds
    of a system of mean ability). The data inform each of them separately; the densities are the
    same. `lead`, (system,), is added to the location of the prior of each ability.

    Examples
    --------
    >>> import pymc as pm
    >>> from bayesrank.priors import Normal
    >>> with pm.Model(coords={"system": ["a", "b"], "question": list("xyz")}) as model:
    ...     ability, difficulty = crossed_effects("ability", Normal(), "hierarchical")
    >>> [variable.name for variable in model.free_RVs]
    ['contrast', 'intercept']
    """
    quadratic = prior.quadratic()
    if quadratic is None or quadratic[1] == 0.0 or difficulty_prior != HIERARCHICAL:
        ability = _shifted(name, prior, lead)
        return ability, zero_sum_effect("difficulty", difficulty_prior, dims="question")
    location, sigma = quadratic[0], quadratic[1] ** -0.5
    each: Any = location if location.ndim else None
    if lead is not None:
        each = lead if each is None else each + lead
    middle = 0.0 if each is None else pt.as_tensor(each).mean()
    if not location.ndim:
        middle = middle + float(location)
    contrast = zero_sum("contrast", "normal", dims="system", scale=sigma, location=each)
    root_n = pt.sqrt(contrast.shape[0].astype("float64"))
    intercept = pooled("intercept", dims="question", level=(middle, sigma / root_n))
    level = intercept.mean()
    ability = pm.Deterministic(name, contrast + level, dims="system")
    return ability, pm.Deterministic("difficulty", level - intercept, dims="question")


def _shifted(name: str, prior: Prior, lead: Any) -> Any:
    """State abilities whose prior has a shifted location."""
    if lead is None:
        return free_variable(name, prior, dims="system")
    quadratic = prior.quadratic()
    if quadratic is not None and quadratic[1] > 0.0:
        location = lead + np.asarray(quadratic[0])
        return pm.Normal(name, location, quadratic[1] ** -0.5, dims="system")
    match prior:
        case Laplace(mu=mu, b=b):
            return laplace(name, location=mu + lead, scale=b, dims="system")
        case Cauchy(alpha=alpha, beta=beta):
            return pm.Cauchy(name, alpha + lead, beta, dims="system")
        case Custom():
            return custom_variable(name, prior, dims="system", location=lead)
    return free_variable(name, prior, dims="system")  # a flat one has no location
