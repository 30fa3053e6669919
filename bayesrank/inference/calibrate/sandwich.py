"""Calibrated draws: the sandwich (Godambe) covariance of scores over the units that vary.

A composite likelihood uses each response more than once (a pairwise likelihood once per opponent),
so its curvature H overstates the information. The curvature of a misspecified likelihood may
overstate or understate it, and a likelihood of the questions at hand does not describe other
questions. The estimate still has the sandwich covariance: the inverse of H on both sides of the
variance of the gradient over the units. Terms for variation that no unit shows are added
(docs/uncertainty.md, with formulas).
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from bayesrank.battles import FEW_UNITS, Battles
from bayesrank.errors import CalibrationWarning, DataError, NoFiniteEstimate
from bayesrank.inference.calibrate.unit_likelihoods import CellSlopes, UnitModel, moments
from bayesrank.inference.calibrate.variation import (
    Array,
    Mode,
    ModelPart,
    Variation,
    answer_variation,
    delete_many_jackknife,
    gradient_variation,
    graph_mode,
    jackknife_by_refits,
    over_units,
    question_jackknife,
    unit_variation,
    variation_at,
)
from bayesrank.inference.fits.fit import Fit, Unit, along, anchored, symmetric_root
from bayesrank.inference.fits.pair_rows import PairRows, pair_rows
from bayesrank.inference.fits.pairs import PairCounts, pair_counts
from bayesrank.inference.fits.vote_likelihoods import of_pairs
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.inference.resample.units import (
    ROUNDING,
    shown_units,
    voting_units,
    warn_of_few_groups,
)
from bayesrank.inference.run import Estimate, Run
from bayesrank.log_odds import finite_exp
from bayesrank.method import LIKELIHOOD_BACKENDS, Method, load_function
from bayesrank.priors import Flat, Normal, Prior
from bayesrank.responses import Responses
from bayesrank.validation import Calibration
from bayesrank.views import Comparisons

if TYPE_CHECKING:
    from bayesrank.inference.fits.marginal import MarginalFit
    from bayesrank.inference.graph.fit import ModelFit


def default_calibration(method: Method, backend: str, target: str) -> Calibration:
    """Return the default calibration of a likelihood.

    It is "none" for battles, which are independent observations.
    """
    if backend not in LIKELIHOOD_BACKENDS or target == "battles" or not method.can_be_calibrated:
        return "none"
    # The draws of mml take the items as known.
    wanted = method.is_calibrated or backend == "mml" or target == "population"
    return "sandwich" if wanted else "none"


def choose_calibration(run: Run, calibration: Calibration | None) -> Calibration:
    """Return the calibration of a run of a likelihood: the given one, or the default.

    CalibrationWarning if there are too few questions, or groups of questions, to estimate the
    variance over them.
    """
    if calibration == "sandwich" and not run.method.can_be_calibrated:
        raise ValueError(f"calibration must be 'none' for {run.method.name}; got 'sandwich'")
    if calibration is None:
        calibration = default_calibration(run.method, run.backend, run.target)
        of_units = isinstance(run.data, Battles) and not run.data.rows_are_units(run.unit)
        if (of_units or run.unit == "run") and run.method.can_be_calibrated:
            calibration = "sandwich"
    if calibration == "sandwich" and not isinstance(run.data, Responses | Comparisons):
        raise ValueError("calibration must be 'none' for ballots; got 'sandwich'")
    if calibration == "none" or run.draws == 0 or run.target != "population":
        return calibration
    n_questions = len(run.responses.questions)
    if n_questions < FEW_UNITS:
        usable: Calibration = "none" if n_questions < 2 else calibration
        few = "1 question is" if n_questions == 1 else f"{n_questions} questions are"
        warnings.warn(
            f"{few} too few to estimate how scores vary over questions: intervals for other "
            f"questions may be too narrow (calibration {usable!r})",
            CalibrationWarning,
            stacklevel=2,
        )
        return usable
    warn_of_few_groups(run.responses)
    return calibration


def sandwich_draws(run: Run, fit: Fit) -> dict[str, Array]:
    """Draw parameters around a kernel's fit of the data, the scores with the sandwich covariance.

    By name, with a leading axis of draws; parameters of questions keep the covariance of the
    curvature.
    """
    rng = np.random.default_rng(run.seed)
    if run.method.data == "responses":
        drawn = fit.draw(run.size, rng)
        covariance = score_covariance(run, fit, fit.unit)
        if fit.refit is None:
            drawn["score"] = map_to_covariance(drawn["score"][np.newaxis], covariance)[0]
        else:
            drawn["score"] = draw_with_covariance(drawn["score"], fit.score, covariance, rng)
        if fit.unit is not None and fit.unit.draw is not None:
            log_factor = fit.unit.draw(rng.standard_normal(run.size), drawn["score"])
            drawn["score"] = drawn["score"] * np.exp(log_factor)[:, np.newaxis]
        return drawn
    return fit.move(draw_gaussian(_gradient_covariance(run, fit), run.size, rng), rng)


def _gradient_covariance(run: Run, fit: Fit) -> Array:
    """Return the covariance of the gradient of paired comparisons at the optimum."""
    likelihood = load_function(run.method.gradient or "")(**run.options)
    data = cast("Responses | Comparisons", run.data)
    over: Callable[[str], Variation]
    shown = _shown(run)
    problem: PairRows | PairCounts
    if isinstance(data, Battles):
        rows = fit.rows() if fit.rows else pair_rows(likelihood, data, data.design(run.formula))
        problem, over = rows, partial(unit_variation, rows, data, point=fit.free)
        if not data.rows_are_units(run.unit):
            shown = voting_units(data, run.unit, rows.votes)
    else:
        likelihood = of_pairs(likelihood, has_tie_strength=len(fit.free) > len(data.systems))
        problem = pair_counts(likelihood, *point_arguments(data, "pairs"))
        over = partial(gradient_variation, data, likelihood, fit.free, seed=run.seed)
    own = problem.information(fit.free[np.newaxis])[0]
    # Neither the likelihood nor this curvature informs the level of scores that sum to zero.
    posterior = along(*fit.geometry)
    prior = posterior - own
    left_open = prior @ np.linalg.solve(anchored(*fit.geometry), prior)
    return ModelPart(own, posterior, left_open).covariance(over_units(run, over), shown)


def _shown(run: Run) -> Array | None:
    """Return the numbers of units that show how the scores of systems vary; None for battles."""
    if not isinstance(run.data, Responses):
        return None
    return shown_units(run.data, run.target, run.unit)[0]


def calibrate(run: Run, estimate: Estimate, find_mode: "Callable[[], ModelFit]") -> Estimate:
    """Give the draws of the scores of an estimate the sandwich covariance, by an affine map.

    The covariance is that of a fit to the same data: by a kernel if one covers the prior and
    the options, else by the graph of the model, whose fit `find_mode` returns. Parameters other
    than scores and strengths keep their draws. CalibrationWarning, and unchanged draws, if the fit
    of the graph does not converge.
    """
    if estimate.draws is None:
        return estimate
    if run.method.spread is not None:
        drawn = load_function(run.method.spread)(run, None, like=estimate)
        return replace(estimate, draws=drawn, calibration="sandwich")
    of_pairs = isinstance(run.factory_data, Comparisons)
    if of_pairs:
        covariance = covariance_of(sandwich_draws(run, _reference_fit(run))["score"])
    elif (found := _posterior_covariance(run, find_mode)) is not None:
        covariance = found
    else:
        warnings.warn(
            f"the posterior of {run.method.name} has no mode to calibrate at: intervals are those "
            f"of the likelihood only, and may be too narrow for target={run.target!r}",
            CalibrationWarning,
            stacklevel=2,
        )
        return estimate
    draws = map_to_covariance(estimate.draws, covariance)
    if of_pairs:
        # Comparisons identify contrasts only: the common level does not vary over data sets.
        level = draws.mean(axis=-1, keepdims=True)
        draws = draws - (level - level.mean())
    parameters = estimate.parameters
    if parameters is not None and "strength" in parameters:
        strength = parameters["strength"].transpose("chain", "draw", "system")
        parameters = parameters.assign(strength=strength.copy(data=finite_exp(draws)))
    return replace(estimate, draws=draws, parameters=parameters, calibration="sandwich")


def _posterior_covariance(run: Run, find_mode: "Callable[[], ModelFit]") -> Array | None:
    """Return the covariance at the mode of a posterior of responses, None where it has none."""
    try:
        kernel = _kernel_fit(run, run.factory_prior)
    except NoFiniteEstimate:
        return None
    if kernel is not None:
        return score_covariance(run, kernel)
    fit = find_mode()
    if not fit.converged:
        return None
    part, over = _at_mode(run, graph_mode(fit, run.responses))
    return part.covariance(over_units(run, over), _shown(run))


def score_covariance(run: Run, fit: Fit, unit: Unit | None = None) -> Array:
    """Return the covariance of the scores of a kernel's fit to responses, on a scale if given."""
    from bayesrank.inference.fits.marginal import MarginalFit

    data = run.responses
    # With single answers of a few systems the estimated discriminations are very large: the
    # likelihood has a maximum for each order of similar abilities, and hardly any posterior spread
    # at a maximum. NUTS has priors on the questions.
    many_maxima = run.backend == "mml" and run.method.weighs_questions and data.trials.max() < 2

    if isinstance(fit, MarginalFit):
        part = marginal_prior(fit, data)
        by_slopes = partial(answer_variation, CellSlopes.of_scores(fit.slopes()), data)
    else:
        mode = Mode(fit.free, fit.steps, fit.unpack, fit.gradients, unit)
        part, by_slopes = _at_mode(run, mode)

    def over(kind: str) -> Variation:
        table = None
        if fit.refit is not None:
            table = jackknife_by_refits(fit.refit, data, kind)
        elif kind == "question" and isinstance(fit, MarginalFit) and many_maxima:
            table = delete_many_jackknife(fit.afresh, fit.score, data)
        elif kind == "question" and fit.without is not None:
            table = question_jackknife(fit.without, data)
        return by_slopes(kind) if table is None else Variation.of(table)

    covariance = part.covariance(over_units(run, over), _shown(run))
    if fit.at_end is not None:
        covariance[fit.at_end] = covariance[:, fit.at_end] = 0.0
    return covariance


def _at_mode(run: Run, mode: Mode) -> tuple[ModelPart, Callable[[str], Variation]]:
    """Return the parts of the covariance at a mode, and the variation over a kind of units."""
    model: UnitModel = load_function(run.method.gradient or "")(run.data, **run.options)
    return mode.prior(model), partial(variation_at, mode, model)


def marginal_prior(fit: "MarginalFit", data: Responses) -> ModelPart:
    """Return the parts of the covariance of posterior means, of the answers and of the prior.

    The posterior takes the items as known. The slopes of the means give their covariance over
    answers, with items estimated from the same answers; the ability distribution gives the rest.
    """
    sd = fit.posterior.sd()
    with np.errstate(invalid="ignore"):  # questions that were left out
        logit = fit.score[:, np.newaxis] - fit.parameters["difficulty"]
        logit = np.nan_to_num(logit * fit.parameters.get("discrimination", 1.0))
    _, noise = moments(*data.binary_counts, logit)
    own = CellSlopes.of_scores(fit.slopes()).products(noise[..., np.newaxis])
    # Relative to the posterior: along axes without variance over answers, the prior has all of it.
    spread = np.outer(sd, sd)
    known = np.divide(own, spread, out=np.zeros_like(own), where=spread > 0.0)
    values, axes = np.linalg.eigh(known)
    left_open = spread * ((np.clip(1.0 - values, 0.0, 1.0) ** 2 * axes) @ axes.T)
    return ModelPart(own, np.diag(sd**2), left_open)


def _kernel_fit(run: Run, prior: Prior | None) -> Fit | None:
    """Fit by the kernel, if there is one that covers the prior and the fit converges."""
    if run.method.kernel is None or prior is None:
        return None
    fit = load_function(run.method.kernel)(run.factory_data, prior, **run.options)
    return fit if fit is not None and bool(fit.converged) else None


def _reference_fit(run: Run) -> Fit:
    """Fit by the kernel, with the prior if the kernel covers it, else with a similar prior."""
    options = dict(run.options)
    if run.method.data == "comparisons" and "centred" in options:
        # Comparisons identify contrasts only. A prior of independent scores implies the same prior
        # of contrasts for centred and uncentred scores.
        options["centred"] = True
    run = replace(run, options=options)
    for candidate in (run.factory_prior, Flat(), Normal(0.0, 1.0)):
        if (found := _kernel_fit(run, candidate)) is not None:
            return found
    raise DataError(
        f"calibration must be 'none' for these data and options of {run.method.name}; "
        "got 'sandwich', for which its likelihood has no kernel"
    )


def map_to_covariance(draws: Array, covariance: Array) -> Array:
    """Give draws (chain, draw, parameter) another covariance by an affine map, keeping their mean.

    Directions without variance of either, such as the common shift of zero-sum scores, keep theirs.
    """
    flat = draws.reshape(-1, draws.shape[-1])
    mean = flat.mean(axis=0)
    current = covariance_of(flat)
    varied = axes_of(current)
    axes = varied @ axes_of(varied.T @ covariance @ varied)
    deviations = draws - mean
    projected = deviations @ axes
    now = symmetric_root(axes.T @ current @ axes)
    moved = projected @ np.linalg.solve(now, symmetric_root(axes.T @ covariance @ axes))
    return mean + deviations + (moved - projected) @ axes.T


def draw_with_covariance(
    draws: Array, score: Array, covariance: Array, rng: np.random.Generator
) -> Array:
    """Draw scores from a Gaussian, and keep the draws in directions without variance.

    Refits do not vary in these directions, for example for systems that are always right.
    """
    axes, deviations = axes_of(covariance), draws - score
    held = deviations - deviations @ axes @ axes.T
    return score + held + draw_gaussian(covariance, len(draws), rng)


def draw_gaussian(variance: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw from a Gaussian with a covariance that may be singular, of shape (size, p)."""
    return rng.standard_normal((size, len(variance))) @ symmetric_root(variance)


def covariance_of(draws: Array) -> Array:
    """Return the covariance of draws of shape (draw, parameter), a matrix for one parameter too."""
    return np.atleast_2d(np.cov(draws, rowvar=False))


def axes_of(covariance: Array) -> Array:
    """Return orthonormal directions in which a covariance has spread, in columns."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors[:, values > ROUNDING * values.max(initial=0.0)]
