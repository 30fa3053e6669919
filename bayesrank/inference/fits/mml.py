"""Item parameters by marginal likelihood, abilities from their exact posteriors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.ability_posterior import AbilityPosterior
from bayesrank.inference.fits.exact_ties import interchangeable
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.items import item_counts, known, limited
from bayesrank.inference.fits.laplace import zero_sum
from bayesrank.inference.fits.marginal import MarginalItems
from bayesrank.inference.fits.marginal_response import score_slopes
from bayesrank.inference.fits.newton import Escape, Optimum, maximise_nonconcave, smoothed_log_odds
from bayesrank.inference.fits.penalty import Array, checked_precision


@dataclass(frozen=True, kw_only=True)
class MarginalFit(Fit):
    """A fit whose scores are posterior means of abilities, with the items at their estimates.

    Attributes
    ----------
    posteriors : tuple of AbilityPosterior
        One per resample, in the order of the flattened resample axes.
    slopes : callable
        Returns how much each score rises with the number right in each cell, of shape
        (..., system of the score, system, question). The items follow the answers.
    afresh : callable
        As ``without``, but each fit begins where one of these data would, not at this optimum: with
        several maxima it may reach another.
    """

    posteriors: tuple[AbilityPosterior, ...]
    slopes: Callable[[], Array]
    afresh: Callable[[NDArray[np.bool_]], Array]

    def quantile(self, probability: float) -> Array:
        """Return a posterior quantile of every ability, of shape (..., system).

        Parameters
        ----------
        probability : float
            Between 0 and 1.

        Returns
        -------
        numpy.ndarray of shape (..., system)

        Raises
        ------
        ValueError
            If `probability` is not strictly between 0 and 1.
        """
        if not 0.0 < probability < 1.0:
            raise ValueError(f"probability must be strictly between 0 and 1; got {probability!r}")
        n_systems = self.score.shape[-1]
        wanted = np.full((1, n_systems), probability)
        found = [posterior.quantile(wanted)[0] for posterior in self.posteriors]
        return np.stack(found).reshape(self.score.shape)

    def score_sd(self) -> Array:
        """Return posterior standard deviations of abilities, of shape (..., system)."""
        found = [posterior.sd() for posterior in self.posteriors]
        return np.stack(found).reshape(self.score.shape)

    def draw(self, n_draws: int, rng: np.random.Generator) -> dict[str, Array]:
        """Draw item parameters from their Gaussian approximation, abilities from their posteriors.

        Parameters
        ----------
        n_draws : int
            Number of draws per fit.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        dict of str to numpy.ndarray
            As :meth:`Fit.draw`. Abilities are drawn with the items at their estimates.
        """
        drawn = super().draw(n_draws, rng)
        scores = [posterior.draw(n_draws, rng) for posterior in self.posteriors]
        drawn["score"] = np.stack(scores, axis=1).reshape(n_draws, *self.score.shape)
        return drawn


def rasch_mml_problem(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ability_sd: float | None = None,
) -> MarginalItems:
    """Build the objective that :func:`fit_rasch_mml` maximises; see there.

    Parameters
    ----------
    correct, trials, weights, ability_sd
        As in :func:`fit_rasch_mml`.

    Returns
    -------
    MarginalItems
        The free coordinates are intercepts -b, for abilities of mean 0, then the log of the
        standard deviation of the abilities unless it is fixed.
    """
    if ability_sd is not None and not 0.0 < ability_sd < np.inf:
        raise ValueError(f"ability_sd must be positive and finite; got {ability_sd!r}")
    data = item_counts(correct, trials, weights, drop=True)
    if ability_sd is None:
        return MarginalItems(data, "common")
    return MarginalItems(data, "fixed", fixed_slope=float(ability_sd))


def fit_rasch_mml(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ability_mean: float | None = None,
    ability_sd: float | None = None,
) -> MarginalFit:
    """Fit the Rasch model by marginal likelihood, with normal abilities.

    Parameters
    ----------
    correct, trials : array_like of shape (..., system, question)
        Number right and number of trials; real-valued, 0 trials where a cell is missing.
    weights : array_like of shape (..., question), optional
        Multiplicity of each question; 1 by default.
    ability_mean : float, optional
        Mean of the abilities, with difficulties where the data put them. When omitted, the mean is
        estimated and the (weighted) mean difficulty of the questions kept is 0.
    ability_sd : float, optional
        Standard deviation of the abilities; estimated when omitted.

    Returns
    -------
    MarginalFit
        ``score``: posterior mean abilities. Free coordinates: intercepts -b for abilities of mean
        0, then the log standard deviation unless it is fixed. ``parameters``: ``difficulty``,
        infinite for questions that every system answers alike, ``ability_mean``, ``ability_sd``
        (0 where the systems differ by no more than chance would have them).

    Raises
    ------
    ValueError
        If `ability_sd` is not positive.

    Examples
    --------
    >>> fit = fit_rasch_mml([[3.0, 1.0], [2.0, 3.0], [1.0, 1.0]], 4.0, ability_sd=1.0)
    >>> bool(fit.converged), bool(fit.score[1] > fit.score[0] > fit.score[2])
    (True, True)
    """
    problem = rasch_mml_problem(correct, trials, weights, ability_sd=ability_sd)
    return _fit(problem, ability_mean)


def irt_2pl_mml_problem(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    reg_discrimination: float = 0.01,
) -> MarginalItems:
    """Build the objective that :func:`fit_irt_2pl_mml` maximises; see there.

    Parameters
    ----------
    correct, trials, weights, reg_discrimination
        As in :func:`fit_irt_2pl_mml`.

    Returns
    -------
    MarginalItems
        The free coordinates are intercepts -a b and log discriminations.
    """
    checked_precision("reg_discrimination", reg_discrimination)
    data = item_counts(correct, trials, weights, drop=True)
    return MarginalItems(data, "each", slope_penalty=reg_discrimination)


def fit_irt_2pl_mml(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    reg_discrimination: float = 0.01,
) -> MarginalFit:
    """Fit the two-parameter logistic model by marginal likelihood, with standard normal abilities.

    Parameters
    ----------
    correct, trials : array_like of shape (..., system, question)
        Number right and number of trials; real-valued, 0 trials where a cell is missing.
    weights : array_like of shape (..., question), optional
        Multiplicity of each question; 1 by default.
    reg_discrimination : float, default 0.01
        Weight of the sum of squared log discriminations, which keeps those of questions that the
        better systems answer worse off 0; 0 for plain maximum likelihood.

    Returns
    -------
    MarginalFit
        ``score``: posterior mean abilities. Free coordinates: intercepts -a b, then log
        discriminations. ``parameters``: ``difficulty`` and ``discrimination``, infinite and NaN
        for questions that every system answers alike. Two systems that could change places, or
        three in a circle, keep the same score, even where the likelihood is higher with them apart.

    Raises
    ------
    ValueError
        If `reg_discrimination` is negative.

    Examples
    --------
    >>> right = [[7.0, 5.0, 2.0], [6.0, 3.0, 3.0], [2.0, 1.0, 1.0]]
    >>> fit = fit_irt_2pl_mml(right, np.full((3, 3), 8.0))
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[2])
    (True, True)
    """
    problem = irt_2pl_mml_problem(correct, trials, weights, reg_discrimination=reg_discrimination)
    return _fit(problem, 0.0)


def _fit(problem: MarginalItems, ability_mean: float | None) -> MarginalFit:
    data = problem.data
    optimum = _climb(problem, _first_point(problem))
    point = optimum.point
    limit = None if data.limit is None else data.limit.reshape(*data.lead, -1)
    weights = data.weights.reshape(*data.lead, -1)
    unpack = partial(_unpack, problem, weights, limit, ability_mean)
    free = point.reshape(*data.lead, -1)
    named = unpack(free)
    posteriors = tuple(
        _posterior(problem, row, point[row], float(mean))
        for row, mean in enumerate(named["ability_mean"].reshape(-1))
    )
    score = np.stack([posterior.mean() for posterior in posteriors])
    if problem.slopes == "each":
        del named["ability_mean"], named["ability_sd"]
    return MarginalFit(
        score=score.reshape(*data.lead, -1),
        parameters=named,
        converged=optimum.converged.reshape(data.lead),
        iterations=optimum.iterations.reshape(data.lead),
        gradient_norm=optimum.gradient_norm.reshape(data.lead),
        free=free,
        unpack=unpack,
        log_likelihood=partial(_log_likelihood, problem, point),
        curvature=partial(_curvature, problem, point),
        posteriors=posteriors,
        slopes=partial(_slopes, problem, point, ability_mean),
        without=partial(_without, problem, point, ability_mean),
        afresh=partial(_without, problem, None, ability_mean),
    )


def _climb(problem: MarginalItems, start: Array) -> Optimum:
    """Climb with one question in the place of all that were answered alike."""
    data = problem.data
    columns = np.concatenate([data.right, data.trials, data.weights[:, None, :]], axis=1)
    flat = columns.reshape(-1, columns.shape[-1])
    _, first, alike, counts = np.unique(
        flat, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    if len(first) == len(alike):
        return _maximise(problem, start)
    n_questions = len(alike)
    some, every = first, alike
    if problem.slopes == "each":
        some = np.concatenate([first, n_questions + first])
        every = np.concatenate([alike, len(first) + alike])
    elif problem.slopes == "common":
        some, every = np.append(first, n_questions), np.append(alike, len(first))
    merged = replace(problem, data=data.merge(first, counts.astype(np.float64)))
    optimum = _maximise(merged, start[:, some])
    return replace(optimum, point=optimum.point[:, every])


def _maximise(problem: MarginalItems, start: Array) -> Optimum:
    # Given the one slope that they share, the likelihood of all else is log-concave.
    escape: Escape = "asymmetric" if problem.slopes == "each" else "never"
    return maximise_nonconcave(problem, start, escape=escape)


def _first_point(problem: MarginalItems) -> Array:
    """Begin at the log-odds of the questions, stretched by the spread of the systems'."""
    data = problem.data
    asked = np.where(data.left_out, 1.0, data.asked)
    intercept = smoothed_log_odds(np.where(data.left_out, 0.5, data.by_question), asked)
    ability = smoothed_log_odds(data.by_system, data.trials.sum(axis=-1))
    spread = np.maximum(ability.std(axis=-1, keepdims=True), 0.2)
    if problem.slopes != "common":
        spread = np.full_like(spread, problem.fixed_slope)
    intercept = np.where(data.left_out, 0.0, intercept * np.sqrt(1.0 + spread**2 / 2.89))
    if problem.slopes == "fixed":
        return intercept
    if problem.slopes == "common":
        return np.concatenate([intercept, np.log(spread)], axis=-1)
    return np.concatenate([intercept, np.zeros_like(intercept)], axis=-1)


def _posterior(
    problem: MarginalItems, row: int, point: Array, ability_mean: float
) -> AbilityPosterior:
    """Return the posteriors of one resample, the same object for systems that cannot differ."""
    curves = problem.curves(row, point)
    posterior = AbilityPosterior.of(curves, ability_mean, _scale(problem, point))
    first = interchangeable((curves.right @ curves.slope)[None], rows=curves.trials[None])
    return posterior if first is None else posterior.take(first[0])


def _scale(problem: MarginalItems, point: Array) -> float:
    """Return the standard deviation of the abilities."""
    if problem.slopes == "common":
        return float(np.exp(point[-1]))
    return problem.fixed_slope if problem.slopes == "fixed" else 1.0


def _unpack(
    problem: MarginalItems,
    weights: Array,
    limit: Array | None,
    ability_mean: float | None,
    free: Array,
) -> dict[str, Array]:
    n_questions = weights.shape[-1]
    intercept, log_slope = free[..., :n_questions], free[..., n_questions:]
    if problem.slopes == "each":
        slope = np.exp(log_slope)
        mean = np.zeros(free.shape[:-1])
        return {
            "difficulty": limited(-intercept / slope, limit),
            "discrimination": known(slope, limit),
            "ability_mean": mean,
            "ability_sd": mean + 1.0,
        }
    total = np.maximum(weights.sum(axis=-1), 1e-300)
    centre = (weights * intercept).sum(axis=-1) / total
    mean = centre if ability_mean is None else np.full(centre.shape, ability_mean)
    sd = (
        np.exp(log_slope[..., 0])
        if problem.slopes == "common"
        else np.full(centre.shape, problem.fixed_slope)
    )
    difficulty = mean[..., None] - intercept
    return {
        "difficulty": limited(difficulty, limit),
        "ability_mean": mean,
        "ability_sd": sd,
    }


def _slopes(problem: MarginalItems, point: Array, ability_mean: float | None) -> Array:
    centred = ability_mean is None
    found = [score_slopes(problem, row, one, centred=centred) for row, one in enumerate(point)]
    return np.stack(found).reshape(*problem.data.lead, *found[0].shape)


def _without(
    problem: MarginalItems,
    start: Array | None,
    ability_mean: float | None,
    left_out: NDArray[np.bool_],
) -> Array:
    data, found = problem.data, []
    for kept in ~left_out:
        counts = item_counts(data.right * kept, data.trials * kept, None, drop=True)
        weights = data.weights * ~counts.left_out
        fewer = replace(problem, data=replace(counts, weights=weights, lead=data.lead))
        point = _climb(fewer, _first_point(fewer) if start is None else start).point
        mean = _unpack(fewer, weights, None, ability_mean, point)["ability_mean"]
        nodes, share, _ = fewer.curves(0, point[0]).grid
        found.append(mean + _scale(fewer, point[0]) * (share @ nodes))
    return np.stack(found)


def _log_likelihood(problem: MarginalItems, point: Array) -> Array:
    return problem.loglik(point).reshape(problem.data.lead)


def _curvature(problem: MarginalItems, point: Array) -> tuple[Array, Array]:
    lead, p = problem.data.lead, point.shape[-1]
    return problem.information(point).reshape(*lead, p, p), zero_sum(p)
