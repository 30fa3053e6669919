"""Contributions of questions to a ranker's scores, from the scores without them."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.resample.arguments import Arguments
from bayesrank.inference.resample.clusters import clusters_of
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.resample.prior_unit import LEAST_WEIGHT
from bayesrank.inference.resample.weights import (
    BATCH_SIZE,
    per_sample_of_questions,
    question_arguments,
)
from bayesrank.responses import Responses


def without_clusters(
    data: Responses, kind: str, score_of: Callable[[tuple[Any, ...]], NDArray[np.float64]]
) -> Contributions:
    """Return what clusters of questions add to the scores of a ranker.

    Parameters
    ----------
    data : Responses
        The data as they are.
    kind : str
        What the ranker reads, see :mod:`bayesrank.inference.resample.arguments`; not a stream.
    score_of : callable
        Scores (resample, system) by arguments of the ranker.
    """
    found = [score_of(batch) for batch in _without_clusters(data, kind)]
    return Contributions.of(np.concatenate(found), left_out=True)


def _without_clusters(data: Responses, kind: str) -> Iterator[Arguments]:
    """Yield arguments without one cluster of questions each, in batches."""
    clusters = clusters_of(data)
    n_clusters = int(clusters.max()) + 1
    arguments = question_arguments(data, kind, np.random.default_rng(0))  # no order is left open
    step = max(1, BATCH_SIZE // per_sample_of_questions(data))
    for left in np.split(np.arange(n_clusters), range(step, n_clusters, step)):
        weights = np.where(clusters == left[:, np.newaxis], LEAST_WEIGHT, 1.0)
        yield arguments(weights / weights.mean(axis=1, keepdims=True))
