"""Arguments of the NumPy rankers without some of the data, for the jackknife."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.resample.arguments import cell_arguments
from bayesrank.inference.resample.clusters import clusters_of
from bayesrank.inference.resample.weights import (
    BATCH_SIZE,
    per_sample_of_questions,
    question_arguments,
    trial_arguments,
)
from bayesrank.responses import Responses

Arguments = tuple[Any, ...]
Numbers = NDArray[np.int64]

# Weight of what is left out: of next to no influence, but there is no score at all without the only
# question of a system, or the only one that links two.
_LEFT_OUT = 1e-6
# Fewer clusters than these tell no kurtosis; more leave none of them much leverage.
_FEWEST_CLUSTERS, _MOST_CLUSTERS = 5, 500
# More trials take longer than the draws, and leave none of them much leverage.
_MOST_TRIALS = 5000


def leave_out_clusters(data: Responses, kind: str) -> Iterator[Arguments]:
    """Yield batches of arguments without the questions of each cluster.

    Nothing if there are too few clusters, or so many that none has much leverage.
    """
    clusters = clusters_of(data)
    n_clusters = int(clusters.max()) + 1
    if not _FEWEST_CLUSTERS <= n_clusters <= _MOST_CLUSTERS:
        return
    weights = np.where(clusters == np.arange(n_clusters)[:, np.newaxis], _LEFT_OUT, 1.0)
    weights /= weights.mean(axis=1, keepdims=True)
    draw = question_arguments(data, kind, np.random.default_rng(0))  # weights leave no order open
    step = max(1, BATCH_SIZE // per_sample_of_questions(data))
    for start in range(0, n_clusters, step):
        yield draw(weights[start : start + step])


def leave_out_trials(data: Responses, kind: str) -> Iterator[tuple[Arguments, Numbers, Numbers]]:
    """Yield batches of arguments without one trial.

    Trials of a cell with the same outcome are left out once for all; systems that share their
    trials lose the same one.

    Parameters
    ----------
    data : Responses
        With two trials or more in every cell that was observed.
    kind : str
        What the ranker reads, see :mod:`bayesrank.inference.resample.arguments`; not a stream.

    Yields
    ------
    arguments : tuple
        Positional arguments of the ranker, each with a leading axis.
    cell : numpy.ndarray of shape (left out,)
        Number of the cell, or of the question where trials are shared.
    n_equal : numpy.ndarray of shape (left out,)
        How many trials of the cell have that outcome.
    """
    if data.paired or data.scores is not None:
        yield from _without_trials(data, kind)
    else:
        yield from _without_outcomes(data, kind)


def _without_outcomes(data: Responses, kind: str) -> Iterator[tuple[Arguments, Numbers, Numbers]]:
    counts = data.counts
    varies = np.count_nonzero(counts, axis=-1, keepdims=True) > 1
    places = np.argwhere((counts > 0) & varies)
    if len(places) > _MOST_TRIALS:
        return
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        shares = counts / data.trials[..., np.newaxis]
    step = max(1, BATCH_SIZE // counts.size)
    for start in range(0, len(places), step):
        system, question, category = (places[start : start + step, axis] for axis in range(3))
        left = counts[system, question] - np.eye(counts.shape[-1])[category]
        without = np.repeat(shares[np.newaxis], len(system), axis=0)
        n = data.trials[system, question, np.newaxis]
        without[np.arange(len(system)), system, question] = left / (n - 1)
        cell = np.ravel_multi_index((system, question), data.shape[:2])
        yield cell_arguments(data, kind, without), cell, counts[system, question, category]


def _without_trials(data: Responses, kind: str) -> Iterator[tuple[Arguments, Numbers, Numbers]]:
    observed = data.observed.any(axis=0) if data.paired else data.observed
    places = np.argwhere(observed)
    if len(places) > _MOST_TRIALS:
        return
    number = np.arange(observed[..., 0].size).reshape(observed.shape[:-1])
    step = max(1, BATCH_SIZE // data.observed.size)
    for start in range(0, len(places), step):
        index = places[start : start + step]
        gammas = np.ones((len(index), *observed.shape))
        gammas[(np.arange(len(index)), *index.T)] = 0.0
        cell = number[tuple(index[:, :-1].T)]
        yield trial_arguments(data, kind, gammas), cell, np.ones_like(cell)
