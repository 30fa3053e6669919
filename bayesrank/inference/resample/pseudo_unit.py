"""Draws of scores that no resample moves, such as that of a system that is always right.

A system without an observed failure still has a positive failure probability (rule of three). One
more unit (a trial, a question or a group of them) stands beside the observed ones, on which the
system alone gives the worst answers in half of the draws and the best in the others. After n right
answers the lower bound at 5 % is about 1 - 2.3 / n, and the 95 % interval begins at 1 - 3 / n.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.grades import require_outcomes_of
from bayesrank.inference.resample.clusters import clusters_of
from bayesrank.inference.resample.weights import (
    BATCH_SIZE,
    per_sample_of_questions,
    question_arguments,
    question_weights,
)
from bayesrank.responses import Responses
from bayesrank.validation import MISSING

Array = NDArray[np.float64]

# Scores are rounded by less, relative to the largest of them.
_ROUNDING = 1e-9


def loosen(
    draws: Array,
    data: Responses,
    kind: str,
    *,
    target: str,
    score_of: Callable[[tuple[Any, ...]], Array],
    rng: np.random.Generator,
) -> Array:
    """Draw the scores anew that are the same in all draws.

    Parameters
    ----------
    draws : numpy.ndarray of shape (chain, draw, system)
        Scores of resampled data.
    data : Responses
        The data as they are.
    kind : str
        What the ranker reads, see :mod:`bayesrank.inference.resample.arguments`; not a stream.
    target : {"benchmark", "population"}
        Whether the unit is a trial, or a question or cluster of questions.
    score_of : callable
        Scores (resample, system) by arguments of the ranker.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    numpy.ndarray of shape (chain, draw, system)

    Raises
    ------
    DataError
        If such a system has no outcome.

    References
    ----------
    .. [1] J. A. Hanley and A. Lippman-Hand. If nothing goes wrong, is everything all right? JAMA
       249 (1983). https://doi.org/10.1001/jama.1983.03330370053031
    """
    flat = draws.reshape(-1, draws.shape[-1])
    stuck = np.flatnonzero(np.ptp(flat, axis=0) <= _ROUNDING * np.abs(flat).max())
    if not stuck.size:
        return draws
    loosened = flat.copy()
    answers = data.values
    done: dict[bytes, Array] = {}
    for system in stuck.tolist():
        require_outcomes_of(data, system)
        # Systems with the same answers have the same draws, so that they stay tied.
        key = answers[system].tobytes()
        if key not in done:
            done[key] = _draw(data, kind, system, len(flat), target, score_of, rng)
        loosened[:, system] = done[key]
    return loosened.reshape(draws.shape)


def _draw(
    data: Responses,
    kind: str,
    system: int,
    size: int,
    target: str,
    score_of: Callable[[tuple[Any, ...]], Array],
    rng: np.random.Generator,
) -> Array:
    """Draw the score of a system with one unit more."""
    arguments = question_arguments(_with_extremes(data, system), kind, rng)
    n_observed = int(np.count_nonzero(data.trials[system]))
    step = max(1, BATCH_SIZE // (3 * per_sample_of_questions(data)))
    places = np.split(np.arange(size), range(step, size, step))
    weights = (_weights(data, target, n_observed, part, rng) for part in places)
    return np.concatenate([score_of(arguments(one))[:, system] for one in weights])


def _weights(
    data: Responses,
    target: str,
    n_observed: int,
    places: NDArray[np.intp],
    rng: np.random.Generator,
) -> Array:
    """Draw weights of the questions and of their two copies, of shape (place, 3 questions).

    Either copy of `n_observed` questions weighs as much as one unit in every other draw.
    """
    n_questions, n_trials = data.shape[1:]
    shape = (len(places), n_questions)
    if target == "population":
        unit = n_questions / (int(clusters_of(data).max()) + 1)
        observed = question_weights(data, len(places), rng)
    else:
        unit, observed = 1.0 / n_trials, np.ones(shape)
    extra = unit * rng.standard_gamma(1.0 / n_observed, shape)
    is_worst = (places % 2 == 0)[:, np.newaxis]
    weights = np.concatenate([observed, is_worst * extra, ~is_worst * extra], axis=1)
    return n_questions * weights / weights.sum(axis=1, keepdims=True)


def _with_extremes(data: Responses, system: int) -> Responses:
    """Return data with two copies of every question after them.

    On the first the system alone gives the worst answers, on the second the best.
    """
    if data.scale is None:
        level = data.category_levels
        worst, best = np.int8(level.argmin()), np.int8(level.argmax())
        missing = np.int8(MISSING)
    else:
        (worst, best), missing = data.scale, np.nan
    alone = (np.arange(len(data.systems)) == system)[:, np.newaxis, np.newaxis]
    copies = [
        np.where(data.observed, np.where(alone, one, other), missing)
        for one, other in ((worst, best), (best, worst))
    ]
    earlier = data.prior_sets
    return Responses(
        np.concatenate([data.values, *copies], axis=1),
        systems=data.systems,
        **data.declared,
        groups=None if data.groups is None else 3 * data.groups,
        prior_outcomes=None if earlier is None else np.concatenate(3 * [earlier], axis=-2),
        paired=data.paired,
    )
