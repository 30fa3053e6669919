"""Contributions of questions and trials to a ranker's scores, from the scores without them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.resample.arguments import batches, cell_arguments
from bayesrank.inference.resample.clusters import FEW_UNITS, LEAST_WEIGHT, clusters_of
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.resample.trials import trial_arguments
from bayesrank.inference.resample.weights import per_sample_of_questions, question_arguments
from bayesrank.responses import Responses

Arguments = tuple[Any, ...]
ScoreOf = Callable[[Arguments], NDArray[np.float64]]
Numbers = NDArray[np.int64]

# More clusters leave none of them much leverage.
_MOST_CLUSTERS = 500
# More trials take longer than the draws, and leave none of them much leverage.
_MOST_TRIALS = 5000


def without_clusters(data: Responses, kind: str, score_of: ScoreOf) -> Contributions | None:
    """Return what clusters of questions add to the scores of a ranker, not of a stream.

    None if there are too few clusters to tell a kurtosis, or so many that none has much leverage.
    `score_of` returns scores (resample, system) by arguments of the ranker.
    """
    found = [score_of(batch) for batch in _without_clusters(data, kind)]
    return Contributions.of(np.concatenate(found), left_out=True) if found else None


def _without_clusters(data: Responses, kind: str) -> Iterator[Arguments]:
    """Yield arguments without one cluster of questions each, in batches."""
    clusters = clusters_of(data)
    n_clusters = int(clusters.max()) + 1
    if not FEW_UNITS <= n_clusters <= _MOST_CLUSTERS:
        return
    weights = np.where(clusters == np.arange(n_clusters)[:, np.newaxis], LEAST_WEIGHT, 1.0)
    weights /= weights.mean(axis=1, keepdims=True)
    arguments = question_arguments(data, kind, np.random.default_rng(0))  # no order is left open
    for block in batches(n_clusters, per_sample_of_questions(data)):
        yield arguments(weights[block])


def without_trials(data: Responses, kind: str, score_of: ScoreOf) -> Contributions | None:
    """Return what trials add to the scores of a ranker, not of a stream.

    Trials of a cell with the same outcome are left out once for all; systems that share their
    trials lose the same one. None if no trial makes a difference, or there are so many that none
    has much leverage. Every observed cell must have two trials or more.
    """
    shared = data.paired or data.scores is not None
    parts = _without_trials(data, kind) if shared else _without_outcomes(data, kind)
    found = [(score_of(batch), cell, n_equal) for batch, cell, n_equal in parts]
    if not found:
        return None
    scores, cell, n_equal = (np.concatenate(part) for part in zip(*found, strict=True))
    return Contributions.of(scores, cell, n_equal, left_out=True)


def _without_outcomes(data: Responses, kind: str) -> Iterator[tuple[Arguments, Numbers, Numbers]]:
    """Yield arguments without one outcome of a cell, its number, and how many are equal."""
    counts = data.counts
    varies = np.count_nonzero(counts, axis=-1, keepdims=True) > 1
    places = np.argwhere((counts > 0) & varies)
    if len(places) > _MOST_TRIALS:
        return
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        shares = counts / data.trials[..., np.newaxis]
    for block in batches(len(places), counts.size):
        system, question, category = places[block].T
        left = counts[system, question] - np.eye(counts.shape[-1])[category]
        without = np.repeat(shares[np.newaxis], len(system), axis=0)
        n = data.trials[system, question, np.newaxis]
        without[np.arange(len(system)), system, question] = left / (n - 1)
        cell = system * data.shape[1] + question
        yield cell_arguments(data, kind, without), cell, counts[system, question, category]


def _without_trials(data: Responses, kind: str) -> Iterator[tuple[Arguments, Numbers, Numbers]]:
    observed = data.observed.any(axis=0) if data.paired else data.observed
    places = np.argwhere(observed)
    if len(places) > _MOST_TRIALS:
        return
    number = np.arange(observed[..., 0].size).reshape(observed.shape[:-1])
    for block in batches(len(places), data.observed.size):
        index = places[block]
        gammas = np.ones((len(index), *observed.shape))
        gammas[(np.arange(len(index)), *index.T)] = 0.0
        cell = number[tuple(index[:, :-1].T)]
        yield trial_arguments(data, kind, gammas), cell, np.ones_like(cell)
