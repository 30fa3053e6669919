"""Point estimates of the item response models that have a Newton kernel, without PyMC.

As in :mod:`bayesrank.inference.fits.table`: ``fit(data, prior, **options)`` with the options of
the factory, where None means that the compiled graph of the factory is used.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.batches import batches
from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.inference.fits.existence import REMEDY
from bayesrank.inference.fits.existence import named as named_systems
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.item_likelihoods import Guessing
from bayesrank.inference.fits.item_models import (
    Named,
    fit_mirt,
    fit_pooled_items,
    fit_rasch,
    fit_trials,
    growth,
    mirt_problem,
    walk,
)
from bayesrank.inference.fits.marginal import (
    MarginalFit,
    fit_irt_2pl_mml,
    fit_rasch_mml,
    is_scalogram,
)
from bayesrank.inference.fits.newton import CACHE_CELLS
from bayesrank.inference.fits.published_irt import fit_published_items
from bayesrank.models.factor_reference import Score
from bayesrank.priors import HIERARCHICAL, Flat, NormalPrior, Prior, PriorLike, as_prior
from bayesrank.responses import Responses
from bayesrank.time_axis import ScoreTarget, Variant, check_time_axis
from bayesrank.validation import (
    AboveZero,
    BelowOne,
    Count,
    Finite,
    NonNegative,
    Positive,
    Probability,
)

# Fits that have not converged by then diverge to infinity.
_REFIT_ITERATIONS = 100
# Log-odds below which the chance of a right answer is that of guessing.
_GUESS = -20.0


def rasch(
    data: Responses, prior: Prior, *, difficulty_prior: PriorLike = "hierarchical"
) -> Fit | None:
    """Fit the Rasch model with a normal prior on abilities, or free difficulties."""
    abilities = prior.quadratic()
    if abilities is None:
        return None
    if _is_flat(difficulty_prior):
        return fit_rasch(*data.binary_counts, prior=abilities)
    if difficulty_prior != HIERARCHICAL or abilities.precision == 0.0:
        return None
    n_systems, n_questions = data.shape[:2]
    means = np.asarray(abilities.mean, dtype=np.float64)

    def gradients() -> NDArray[np.float64]:
        level = np.arange(n_systems + n_questions) >= n_systems
        return np.eye(n_systems, len(level)) + level / n_questions

    return fit_pooled_items(
        *data.binary_counts,
        derive=_uncentred,
        gradients=gradients,
        prior=abilities,
        level=float(means.sum()) / means.size,
        level_sd=(abilities.precision * n_systems) ** -0.5,
    )


def irt_2pl(
    data: Responses,
    prior: Prior,
    *,
    difficulty_prior: PriorLike = "hierarchical",
    discrimination_prior: PriorLike = "normal(0, 0.5)",
    centred: bool = True,
    reg_discrimination: NonNegative = 0.01,
) -> Fit | None:
    """Fit the default form of the 2PL model, or the published one with free item parameters."""
    if centred and difficulty_prior == HIERARCHICAL:
        return _fit_lines(data, prior, discrimination_prior)
    if centred or not _is_flat(difficulty_prior, discrimination_prior):
        return None
    return _fit_published(data, prior, reg_discrimination=reg_discrimination)


def irt_3pl(
    data: Responses,
    prior: Prior,
    *,
    difficulty_prior: PriorLike = "hierarchical",
    discrimination_prior: PriorLike = "normal(0, 0.2)",
    guessing: BelowOne | None = None,
    guessing_upper: AboveZero = 0.5,
    guessing_prior: PriorLike = "normal(-1, 0.3)",
    centred: bool = True,
    reg_discrimination: NonNegative = 0.01,
    reg_guessing: NonNegative = 0.1,
) -> Fit | None:
    """Fit the default form of the 3PL model, or the published one with free item parameters."""
    chances = Guessing(guessing, guessing_upper)
    if centred and difficulty_prior == HIERARCHICAL:
        guesses = as_prior(guessing_prior).quadratic()
        if not _is_proper(guesses):
            return None
        return _fit_lines(data, prior, discrimination_prior, guessing=chances, guess_prior=guesses)
    if centred or not _is_flat(difficulty_prior, discrimination_prior, guessing_prior):
        return None
    penalties = {"reg_discrimination": reg_discrimination, "reg_guessing": reg_guessing}
    fit = _fit_published(data, prior, guessing=chances, **penalties)
    if fit is not None and isinstance(prior, Flat):
        _require_no_guess(data, fit)
    return fit


def dynamic_irt(
    data: Responses,
    prior: Prior,
    *,
    variant: Variant = "growth",
    assume_time_axis: bool = False,
    time_points: Sequence[float] | None = None,
    score_target: ScoreTarget = "final",
    difficulty_prior: PriorLike = "hierarchical",
    slope_prior: PriorLike = "normal(0, 1)",
    walk_prior: PriorLike = "normal(0, 0.5)",
    slope_reg: NonNegative = 0.01,
    state_reg: NonNegative = 1.0,
) -> Fit | None:
    """Fit the published forms of the dynamic models, or growth with default priors.

    Raises ValueError if an option cannot be used, and NoFiniteEstimate if an optimiser is to
    estimate the scale of a walk.
    """
    times = check_time_axis(
        data.shape[2],
        variant=variant,
        assume_time_axis=assume_time_axis,
        time_points=time_points,
        score_target=score_target,
    )
    if variant == "state_space" and not _is_flat(walk_prior):
        raise NoFiniteEstimate(
            f"walk_prior must be 'flat' where an optimiser fits variant='state_space', which then "
            f"has the penalty state_reg; got {walk_prior!r}: increments and their scale vanish "
            "together at the mode, so estimate the scale with backend='nuts'"
        )
    pooled = variant == "growth" and difficulty_prior == HIERARCHICAL
    if variant == "linear" or (pooled and data.shape[2] == 1):
        return rasch(data, prior, difficulty_prior=difficulty_prior)
    abilities = prior.quadratic()
    if abilities is None or not (pooled or _is_flat(difficulty_prior)):
        return None
    given = {"times": times, "prior": abilities}
    data.binary_counts  # noqa: B018 - raises unless outcomes are right or wrong
    if pooled:
        slopes = as_prior(slope_prior).quadratic()
        if not (_is_proper(slopes) and _is_proper(abilities)):
            return None
        return fit_trials(
            growth(data.outcomes, slope_prior=slopes, pooled=True, **given), score_target
        )
    # Else a single run of right answers can make a slope infinite.
    if variant == "growth" and _is_flat(slope_prior) and slope_reg > 0:
        penalty = NormalPrior(0.0, 2.0 * slope_reg)
        return fit_trials(growth(data.outcomes, slope_prior=penalty, **given), score_target)
    if variant == "state_space" and state_reg > 0:
        return fit_trials(walk(data.outcomes, state_reg=state_reg, **given), score_target)
    return None


def mirt(
    data: Responses,
    prior: Prior,
    *,
    n_factors: Count = 2,
    score: Score = "mean_slope",
    difficulty_prior: PriorLike = "hierarchical",
    loading_prior: PriorLike = "normal(0, 0.3)",
) -> Fit | None:
    """Fit the multidimensional model with normal abilities and hierarchical intercepts.

    Raises DataError if the score is a norm of abilities in which systems do not differ.
    """
    abilities, loadings = prior.quadratic(), as_prior(loading_prior).quadratic()
    if not (_is_proper(abilities) and _is_proper(loadings) and loadings.mean == 0.0):
        return None
    if n_factors >= min(data.shape[:2]) or difficulty_prior != HIERARCHICAL:
        return None

    def fit_counts(right: ArrayLike, trials: ArrayLike) -> Fit:
        priors = {"prior": abilities, "loading_precision": loadings.precision}
        return fit_mirt(mirt_problem(right, trials, n_factors=n_factors, **priors), score)

    def refit(right: NDArray[np.float64], trials: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = np.full(right.shape[:2], np.nan)
        for part, (answers, asked) in enumerate(zip(right, trials, strict=True)):
            kept = asked.any(axis=0)
            if kept.sum() > n_factors:
                scores[part] = fit_counts(answers[:, kept], asked[:, kept]).score
        return scores

    fit = fit_counts(*data.binary_counts)
    if np.isnan(fit.score).any():
        raise DataError(
            f"outcomes must distinguish systems by n_factors={n_factors} abilities for "
            "score='norm'; got outcomes that do not; use score='mean_slope'"
        )
    return replace(fit, refit=refit)


def hierarchical_binomial(data: Responses, prior: Prior) -> Fit | None:
    """Fit the model of one benchmark with normal abilities, which has no interactions."""
    abilities = prior.quadratic()
    if not _is_proper(abilities) or len(set(data.groups or ())) > 1:
        return None
    return fit_pooled_items(*data.binary_counts, derive=_with_difficulties, prior=abilities)


def rasch_mml(
    data: Responses,
    *,
    ability_mean: Finite | None = None,
    ability_sd: Positive | None = None,
    quantile: Probability | None = None,
) -> MarginalFit:
    """Fit the Rasch model with normal abilities by marginal likelihood.

    Raises NoFiniteEstimate if the likelihood rises with their standard deviation for ever.
    """
    if ability_sd is None and is_scalogram(*data.binary_counts):
        raise NoFiniteEstimate(
            "rasch_mml has no finite estimate of ability_sd: an order of systems and questions "
            "explains every answer; set it, as in ability_sd=1"
        )
    return fit_rasch_mml(*data.binary_counts, ability_mean=ability_mean, ability_sd=ability_sd)


def irt_2pl_mml(
    data: Responses, *, reg_discrimination: NonNegative = 0.01, quantile: Probability | None = None
) -> MarginalFit:
    """Fit the 2PL model with normal abilities by marginal likelihood."""
    return fit_irt_2pl_mml(*data.binary_counts, reg_discrimination=reg_discrimination)


def _require_no_guess(data: Responses, fit: Fit) -> None:
    """Raise if guessing explains a system, but not another one with the same counts.

    The likelihood then has a maximum for each of them, all equally high or nearly so, and with
    another one of them at minus infinity.
    """
    right, trials = (counts.sum(axis=1) for counts in data.binary_counts)
    named = fit.unpack(fit.free)
    gaps = named["score"][:, np.newaxis] - named["difficulty"]
    log_odds = np.where(np.isfinite(gaps), named["discrimination"] * gaps, -np.inf)
    guesses = log_odds.max(axis=1) < _GUESS
    alike = (right[:, np.newaxis] == right) & (trials[:, np.newaxis] == trials)
    if (alike & guesses[:, np.newaxis] & ~guesses).any() or not np.isfinite(fit.score).all():
        raise NoFiniteEstimate(
            "irt_3pl has no finite maximum-likelihood estimate: guessing explains the answers of "
            f"{named_systems(data.systems, guesses)}, but not those of others with as many right; "
            f"{REMEDY}"
        )


def _is_proper(prior: NormalPrior | None) -> TypeGuard[NormalPrior]:
    """Return whether a prior is normal and not flat."""
    return prior is not None and prior.precision != 0.0


def _fit_lines(
    data: Responses, prior: Prior, discrimination_prior: PriorLike, **guessing: Any
) -> Fit | None:
    """Fit questions of normal log discriminations and hierarchical intercepts."""
    abilities, slopes = prior.quadratic(), as_prior(discrimination_prior).quadratic()
    if not (_is_proper(abilities) and _is_proper(slopes)):
        return None
    # A common factor of the discriminations is the scale of the abilities, and has no prior.
    slopes = NormalPrior(0.0, slopes.precision)
    return fit_pooled_items(*data.binary_counts, slope_prior=slopes, prior=abilities, **guessing)


def _uncentred(named: Named) -> Named:
    """Measure abilities from the mean difficulty instead of from the mean ability."""
    contrast, intercept = named["score"], named["intercept"]
    level = intercept.sum(axis=-1, keepdims=True) / intercept.shape[-1]
    derived = {"score": contrast + level, "contrast": contrast, "difficulty": level - intercept}
    return named | derived


def _fit_published(data: Responses, prior: Prior, **options: Any) -> Fit | None:
    """Fit the published form to the data, and any other counts in the same way."""
    abilities = prior.quadratic()
    if abilities is None:
        return None
    fit_counts = partial(fit_published_items, prior=abilities, **options)

    def refit(right: NDArray[np.float64], trials: NDArray[np.float64]) -> NDArray[np.float64]:
        # A full batch of Newton steps: single tables would merge like questions.
        fits = (
            fit_counts(right[some], trials[some], max_iterations=_REFIT_ITERATIONS)
            for some in batches(len(right), right[0].size, CACHE_CELLS)
        )
        return np.concatenate([fit.score for fit in fits])

    return replace(fit_counts(*data.binary_counts), refit=refit)


def _with_difficulties(named: Named) -> Named:
    intercept = named["intercept"]
    return named | {"difficulty": -intercept, "difficulty_sd": intercept.std(axis=-1)}


def _is_flat(*priors: PriorLike) -> bool:
    return all(prior != HIERARCHICAL and isinstance(as_prior(prior), Flat) for prior in priors)
