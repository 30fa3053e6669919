"""The exact back end: scores drawn from a posterior in closed form."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import sum_over_levels
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import Arguments, Array, batches, point_arguments
from bayesrank.inference.resample.jackknife import jackknife_corrected
from bayesrank.inference.resample.pseudo_unit import with_pseudo_unit
from bayesrank.inference.resample.units import warn_of_few_groups
from bayesrank.inference.resample.weights import question_weights
from bayesrank.inference.run import Estimate, Run, draw_chains, split_scores
from bayesrank.method import load_function
from bayesrank.methods.thresholds import is_posterior_mean
from bayesrank.responses import Responses, prior_counts
from bayesrank.validation import NonNegative


def exact(run: Run, *, prior_weight: NonNegative = 0.0) -> Estimate:
    """Estimate a score and draw it from its closed-form posterior, or around an unbiased estimate.

    Unbiased estimates of functionals of probabilities have draws with the variance of the estimate,
    see :mod:`bayesrank.inference.backends.unbiased`. The closed forms describe the questions at
    hand. For the population target the draws weight the questions at random instead, as in the
    bootstrap back end; these draws include the noise of the trials.

    Parameters
    ----------
    run : Run
        With a method that has a closed form.
    prior_weight : float, default 0.0
        Pseudo-trials that each earlier outcome (`prior_outcomes` of the data) counts as in the
        posterior of a probability; 1 takes earlier outcomes for trials. For functionals of
        probabilities with ``estimator="posterior_mean"`` and the benchmark target; ``bayes`` has an
        option of this name.

    Raises
    ------
    ValueError
        If `prior_weight` is negative or not finite, or not for this method, estimator or target.
    DataError
        If the data do not have what the method needs, or no earlier outcomes to weigh.
    """
    is_unbiased = run.method.functional is not None and not is_posterior_mean(
        run.options.get("estimator", "unbiased")
    )
    _check_prior_weight(run, prior_weight, is_unbiased)
    arguments = point_arguments(run.data, run.method.data)
    if prior_weight:
        arguments = _with_earlier(run, arguments, prior_weight)
    ranker = load_function(run.method.function)
    score, parameters = split_scores(ranker(*arguments, **run.ranker_options))
    if run.draws == 0:
        return Estimate(score, None, point=parameters)
    if is_unbiased:
        # SciPy's functions take longer to load than many methods to rank.
        from bayesrank.inference.backends.unbiased import draw_around_unbiased

        return Estimate(score, draw_around_unbiased(run, score), point=parameters)

    per_draw = arguments[0].size
    if run.target == "population" and run.responses.trials.all():
        per_draw = sum(run.responses.shape)  # weights of questions, and scores

    def draw_chain(seed: np.random.SeedSequence) -> Array:
        rng = np.random.default_rng(seed)
        sizes = [some.stop - some.start for some in batches(run.draws, per_draw)]
        return np.concatenate([_draw(run, arguments, size, rng) for size in sizes])

    draws = draw_chains(run.seed, draw_chain)
    if run.target == "population":
        warn_of_few_groups(run.responses)
        corrected = jackknife_corrected(
            run, draws, lambda given: split_scores(ranker(*given, **run.ranker_options))[0]
        )
        # The ends of the draws are in the range of the score, whatever the method and the weights.
        draws = np.clip(corrected, draws.min(axis=(0, 1)), draws.max(axis=(0, 1)))
        rng = np.random.default_rng(run.seed.spawn(1)[0])
        draws = with_pseudo_unit(
            run, draws, lambda given: _draw(run, given[:-1], len(given[-1]), rng, given[-1]), rng
        )
    return Estimate(score, draws, point=parameters)


def _check_prior_weight(run: Run, prior_weight: float, is_unbiased: bool) -> None:
    """Raise if there is a weight, but earlier outcomes cannot be weighted for this run."""
    if prior_weight == 0.0:
        return
    if run.method.functional is None:
        raise ValueError(
            f"prior_weight must be 0 for {run.method.name}, which is no functional of "
            f"probabilities; got {prior_weight!r}"
        )
    if is_unbiased:
        raise ValueError(
            f"prior_weight must be 0 for the unbiased estimate of {run.method.name}, which uses "
            f"only the trials; got {prior_weight!r}: set estimator='posterior_mean'"
        )
    if run.target != "benchmark":
        raise ValueError(
            f"prior_weight must be 0 for target={run.target!r}, whose draws weigh questions; "
            f"got {prior_weight!r}: use target='benchmark'"
        )
    if isinstance(run.data, Responses) and run.data.prior_outcomes is None:
        raise DataError(f"prior_outcomes must be given for prior_weight={prior_weight!r}; got None")


def _with_earlier(run: Run, arguments: Arguments, prior_weight: float) -> Arguments:
    """Return right answers and trials, or counts and worths, with earlier outcomes added.

    Questions with only earlier outcomes stay without trials.
    """
    data = run.responses
    seen = (data.trials > 0)[..., np.newaxis]
    counts = data.counts + prior_weight * cast("NDArray[np.int64]", prior_counts(data)) * seen
    if run.method.data == "binary":
        return counts[..., 1], counts.sum(axis=-1)
    return counts, arguments[1]


def _draw(
    run: Run,
    arguments: Arguments,
    size: int,
    rng: np.random.Generator,
    weights: Array | None = None,
) -> Array:
    """Draw scores of shape (size, system), of questions with random weights over a population."""
    if weights is None and run.target == "population":
        weights = question_weights(run.responses, size, rng)
    if run.method.exact is not None:
        sampler = load_function(run.method.exact)
        return sampler(*arguments, weights, size=size, rng=rng, **run.sampler_options)
    if weights is not None:
        return load_function(run.method.function)(*arguments, weights, **run.options)
    functional = load_function(run.method.functional or "")
    options = run.method.functional_options(run.options)
    return functional(*draw_probabilities(arguments, size, rng), **options)


def draw_probabilities(arguments: Arguments, size: int, rng: np.random.Generator) -> Arguments:
    """Draw the probabilities of a functional under the uniform prior, as its arguments.

    From right answers and trials (system, question), or counts by category and the worths:
    probabilities with the draws first, NaN where nothing was observed, and the worths.
    """
    counts, other = arguments
    if counts.ndim == 2:
        p = rng.beta(1.0 + counts, 1.0 + other - counts, (size, *counts.shape))
        return (np.where(other > 0, p, np.nan),)
    gammas = rng.standard_gamma(1.0 + counts, (size, *counts.shape))
    p = gammas / sum_over_levels(gammas)[..., np.newaxis]
    return np.where(counts.sum(axis=-1, keepdims=True) > 0, p, np.nan), other
