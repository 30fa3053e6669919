"""Draws of scores that no resample moves, such as that of a system that is always right.

That no answer was ever wrong is no certainty that none ever will be. In half of the draws one more
unit (a trial, a question or a group of them) stands beside the observed ones, on which the worst
answers are the best; in the other half the score stays where it is. After n right answers the lower
bound at 5 % is about 1 - 2.3 / n, and the 95 % interval begins at 1 - 3 / n.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.clusters import clusters_of
from bayesrank.inference.resampling import (
    BATCH_SIZE,
    per_sample_of_questions,
    question_arguments,
    question_weights,
)
from bayesrank.responses import Responses
from bayesrank.validation import MISSING

Array = NDArray[np.float64]

# Scores are rounded by less, relative to their size.
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
        What the ranker reads, see :mod:`bayesrank.inference.arguments`; not a stream.
    target : {"benchmark", "population"}
        Whether the unit is a trial, or a question or cluster of questions.
    score_of : callable
        Scores (resample, system) by arguments of the ranker.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    numpy.ndarray of shape (chain, draw, system)

    References
    ----------
    .. [1] J. A. Hanley and A. Lippman-Hand. If nothing goes wrong, is everything all right? JAMA
       249 (1983). https://doi.org/10.1001/jama.1983.03330370053031
    """
    flat = draws.reshape(-1, draws.shape[-1])
    stuck = np.flatnonzero(np.ptp(flat, axis=0) <= _ROUNDING * np.abs(flat).max(axis=0))
    if not stuck.size:
        return draws
    arguments = question_arguments(_with_reversed(data), kind, rng)
    n_observed = np.count_nonzero(data.trials[stuck], axis=1)
    loosened = flat.copy()
    step = max(1, BATCH_SIZE // (2 * per_sample_of_questions(data)))
    for start in range(0, len(flat), 2 * step):
        moved = loosened[start : start + 2 * step : 2]
        for n in np.unique(n_observed):
            alike = stuck[n_observed == n]
            weights = _weights(data, target, n, len(moved), rng)
            moved[:, alike] = score_of(arguments(weights))[:, alike]
    return loosened.reshape(draws.shape)


def _weights(
    data: Responses, target: str, n_observed: int, size: int, rng: np.random.Generator
) -> Array:
    """Draw the weights of the questions and of their reversed copies, (size, 2 questions).

    The copies of `n_observed` questions weigh as much as one unit.
    """
    n_questions, n_trials = data.shape[1:]
    if target == "population":
        unit = n_questions / (int(clusters_of(data).max()) + 1)
        observed = question_weights(data, size, rng)
    else:
        unit, observed = 1.0 / n_trials, np.ones((size, n_questions))
    turned = unit * rng.standard_gamma(1.0 / n_observed, observed.shape)
    weights = np.concatenate([observed, turned], axis=1)
    return n_questions * weights / weights.sum(axis=1, keepdims=True)


def _with_reversed(data: Responses) -> Responses:
    """Return data with a copy of every question after them, on which the worst is the best."""
    if data.scores is not None:
        values, opposite = data.scores, 1.0 - data.scores
    else:
        values = data.outcomes
        order = np.argsort(data.category_levels, kind="stable")
        mirror = np.empty_like(order)
        mirror[order] = order[::-1]
        opposite = np.where(data.observed, mirror[values], MISSING)
    earlier = data.prior_outcomes
    return Responses(
        np.concatenate([values, opposite], axis=1),
        systems=data.systems,
        weights=data.weights,
        groups=None if data.groups is None else 2 * data.groups,
        prior_outcomes=None if earlier is None else np.concatenate([earlier, earlier], axis=-2),
        paired=data.paired,
    )
