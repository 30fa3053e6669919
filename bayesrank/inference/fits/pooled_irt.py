"""Rasch, 2PL and 3PL models whose parameters all have priors, by Newton's method."""

from functools import partial

import numpy as np

from bayesrank.inference.fits.climbing import climb
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.newton import smoothed_log_odds
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.pooled_items import PooledItems
from bayesrank.inference.fits.rasch import stretched


def fit_pooled_items(problem: PooledItems) -> Fit:
    """Find the mode of an item response model whose parameters all have priors.

    It is the one above the first approximation of the Rasch model; with informative priors there is
    no other.

    Parameters
    ----------
    problem : PooledItems
        The objective.

    Returns
    -------
    Fit
        Free coordinates: those of the objective. ``score`` is the ability; ``parameters``:
        ``intercept``, and where they are free ``log_discrimination`` and ``guessing_logit``, with
        what follows from them.

    References
    ----------
    .. [1] A. Birnbaum. Some latent trait models and their use in inferring an examinee's ability.
       In: F. M. Lord and M. R. Novick. Statistical Theories of Mental Test Scores (1968).

    Examples
    --------
    >>> right = [[7.0, 5.0, 2.0], [6.0, 3.0, 3.0], [2.0, 1.0, 1.0]]
    >>> fit = fit_pooled_items(PooledItems.of(right, np.full((3, 3), 8.0)))
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[2])
    (True, True)
    """
    data, lead = problem.data, problem.data.lead
    optimum = climb(problem, _first_point(problem))
    point, n_systems = optimum.point, data.right.shape[-2]
    totals = data.by_system + problem.ability_precision * problem.ability_mean
    # Only where questions differ in more than difficulty does it matter which were right.
    rows = data.trials
    if problem.slope_prior is not None:
        rows = np.concatenate([data.right, rows], axis=-1)
    point[:, :n_systems] = settle_ties(point[:, :n_systems], totals, rows=rows)
    free = point.reshape(*lead, -1)
    named = _unpack(problem, free)
    return Fit(
        score=named.pop("score"),
        parameters=named,
        converged=optimum.converged.reshape(lead),
        iterations=optimum.iterations.reshape(lead),
        gradient_norm=optimum.gradient_norm.reshape(lead),
        free=free,
        unpack=partial(_unpack, problem),
        log_likelihood=lambda: problem.loglik(point).reshape(lead),
        curvature=lambda: (
            problem.information(point).reshape(*lead, *(point.shape[-1],) * 2),
            problem.zero_sums,
        ),
    )


def _first_point(problem: PooledItems) -> Array:
    """Begin at the abilities and intercepts that marginal log-odds suggest."""
    data = problem.data
    ability, difficulty = stretched(
        smoothed_log_odds(data.by_system, data.played),
        -smoothed_log_odds(data.by_question, data.asked),
        None,
    )
    level = ability.mean(axis=-1, keepdims=True)
    parts = [ability - level, level - difficulty]
    if problem.slope_prior is not None:
        parts.append(np.zeros_like(difficulty))
    if problem.guessing.fixed is None:
        parts.append(np.full_like(difficulty, problem.guess_prior.mean))
    return np.concatenate(parts, axis=-1)


def _unpack(problem: PooledItems, free: Array) -> dict[str, Array]:
    """Name the parameters at free coordinates of shape (..., p)."""
    ability, intercept, log_slope, logit = problem.split(free)
    named = {"score": ability, "intercept": intercept}
    if problem.slope_prior is not None:
        slope = np.exp(log_slope)
        named |= {
            "log_discrimination": log_slope,
            "discrimination": slope,
            "difficulty": -intercept / slope,
        }
    if logit is not None:
        guess = problem.guessing.probability(logit, logit.shape)
        named |= {"guessing_logit": logit, "guessing": guess}
    return named
