"""One more unit beside those observed, of which nothing is known: the prior of every resample.

A system without an observed failure still has a positive failure probability (rule of three). In
every resample the base measure of a Dirichlet process (Ferguson 1973) has one atom among the n
observed ones: a unit in which every system gives the best or the worst answers, each with
probability 1/2. It is a question where questions vary, a trial where trials do, and a battle of
every system where battles do.

References
----------
.. [1] T. S. Ferguson. A Bayesian analysis of some nonparametric problems. The Annals of Statistics
   1 (1973). https://doi.org/10.1214/aos/1176342360
.. [2] J. A. Hanley and A. Lippman-Hand. If nothing goes wrong, is everything all right? JAMA 249
   (1983). https://doi.org/10.1001/jama.1983.03330370053031
"""

import numpy as np
from numpy.typing import NDArray

from bayesrank.responses import Responses
from bayesrank.validation import MISSING
from bayesrank.views import Comparisons

Array = NDArray[np.float64]

# Units that the prior one is drawn from: eight, and eight that are their opposites, so that every
# system is the best in just half of them.
_HALF = 8
N_PRIOR = 2 * _HALF

# Next to no weight: without the only unit that links two systems there is no score at all.
LEAST_WEIGHT = 1e-6


def with_prior_questions(data: Responses, rng: np.random.Generator) -> Responses:
    """Return data with `N_PRIOR` further questions after them, from which the prior unit is drawn.

    Parameters
    ----------
    data : Responses
        The data as they are.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Responses
        In half of the further questions, each system gives the best answers in all trials, and the
        worst ones in the others.
    """
    answers = _prior_answers(data, rng)[:, :, np.newaxis]
    values = np.concatenate([data.values, np.repeat(answers, data.shape[2], axis=2)], axis=1)
    groups, earlier = data.groups, data.prior_sets
    if groups is not None:
        groups = (*groups, *rng.choice(np.array(groups), N_PRIOR))
    if earlier is not None:
        unknown = np.full((*earlier.shape[:-2], N_PRIOR, earlier.shape[-1]), MISSING)
        earlier = np.concatenate([earlier, unknown], axis=-2)
    return Responses(
        values,
        systems=data.systems,
        **data.declared,
        groups=groups,
        prior_outcomes=earlier,
        paired=data.paired,
    )


def with_prior_trials(data: Responses, rng: np.random.Generator) -> Responses:
    """Return data with `N_PRIOR` further trials after them, from which the prior unit is drawn.

    Parameters are those of :func:`with_prior_questions`.
    """
    answers = np.repeat(_prior_answers(data, rng)[:, np.newaxis], data.shape[1], axis=1)
    values = np.concatenate([data.values, answers], axis=2)
    return Responses(values, systems=data.systems, **data.declared, paired=data.paired)


def _prior_answers(data: Responses, rng: np.random.Generator) -> NDArray[np.generic]:
    """Draw an answer of each system to each prior unit, of shape (system, N_PRIOR)."""
    worst, best = extremes(data)
    half = rng.random((len(data.systems), _HALF)) < 0.5
    answers = np.where(np.concatenate([half, ~half], axis=1), best, worst)
    return answers.astype(data.values.dtype)


def extremes(data: Responses) -> tuple[float, float]:
    """Return the worst and the best outcome: a category, or an end of the scale."""
    if data.scale is not None:
        return data.scale.low, data.scale.high
    level = data.category_levels
    return float(level.argmin()), float(level.argmax())


def prior_trials(
    data: Responses, concentration: Array, size: int, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], Array]:
    """Draw one more trial of every system, spread over its cells.

    Parameters
    ----------
    data : Responses
        The data as they are.
    concentration : numpy.ndarray of shape (question,) or (system, question)
        Of the weight of an observed trial, which the prior one shares.
    size : int
        Number of resamples.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    best : numpy.ndarray of bool and shape (size, system)
        Whether the outcome is the best or the worst.
    weights : numpy.ndarray of shape (size, system, question)
        How much of the trial is in each cell.
    """
    seen = data.trials > 0
    share = concentration * seen / seen.sum(axis=1, keepdims=True)
    weights = rng.standard_gamma(share, (size, *share.shape))
    weights[weights < LEAST_WEIGHT * share] = 0.0
    return rng.random((size, len(share))) < 0.5, weights


def prior_battles(data: Comparisons, size: int, rng: np.random.Generator) -> Array:
    """Draw one more battle of every system, spread over its opponents, of shape (size, i, j).

    Entry (i, j) is how often i beats j in it.
    """
    met = data.totals > 0.0
    share = met / np.maximum(met.sum(axis=1, keepdims=True), 1)
    weights = rng.standard_gamma(share, (size, *share.shape))
    won = rng.random((size, len(share), 1)) < 0.5
    return won * weights + (~won * weights).swapaxes(1, 2)


def extreme_data(data: Responses) -> list[Responses]:
    """Return data in which the first system is the only worst on all questions, and the only best.

    Parameters
    ----------
    data : Responses
        The data as they are.
    """
    worst, best = extremes(data)
    found = []
    for own, other in ((worst, best), (best, worst)):
        values = np.full(data.shape, other)
        values[0] = own
        whole = values.astype(data.values.dtype)
        found.append(Responses(whole, **data.declared, paired=data.paired))
    return found
