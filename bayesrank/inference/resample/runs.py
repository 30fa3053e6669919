"""Resampled arguments of the NumPy rankers where the unit is the run.

All answers of a run of a system, or of a run that systems share, have one weight. Smooth functions
get Dirichlet weights, as for a few clusters of questions; scores that jump get whole runs, drawn
with replacement.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import compare_cells
from bayesrank.inference.resample.arguments import cell_arguments
from bayesrank.inference.resample.clusters import concentration_of_few
from bayesrank.inference.resample.weights import (
    BATCH_SIZE,
    LEAST_WEIGHT,
    trial_arguments,
)
from bayesrank.responses import Responses

FloatArray = NDArray[np.float64]


def resample_runs(
    data: Responses, kind: str, *, size: int, rng: np.random.Generator, smooth: bool
) -> Iterator[tuple[Any, ...]]:
    """Yield batches of arguments of a ranker, not of a stream, for resamples of the runs.

    Parameters are those of :func:`bayesrank.inference.resample.weights.resample`.
    """
    step = max(1, BATCH_SIZE // max(data.values.size, len(data.systems) ** 2))
    for start in range(0, size, step):
        weights = _draw_weights(data, min(step, size - start), rng, smooth=smooth)
        yield _arguments(data, kind, weights)


def _arguments(data: Responses, kind: str, weights: FloatArray) -> tuple[Any, ...]:
    """Return the arguments of a ranker for weighted runs."""
    if data.paired or (data.scores is not None and kind != "pairs"):
        shape = data.shape[1:] if data.paired else data.shape
        return trial_arguments(data, kind, np.broadcast_to(weights, (len(weights), *shape)))
    if kind == "pairs":
        at = [data.levels == level for level in range(int(data.levels.max(initial=1)) + 1)]
        return compare_cells(_weighted_counts(weights, at), data.trials)
    at = [data.outcomes == category for category in range(data.n_categories)]
    counts = _weighted_counts(weights, at)
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        return cell_arguments(data, kind, counts / counts.sum(axis=-1, keepdims=True))


def runs_of(data: Responses) -> NDArray[np.bool_]:
    """Return which runs have an outcome, of shape (system, trial), (1, trial) where shared."""
    seen = data.observed.any(axis=1)
    return seen.any(axis=0, keepdims=True) if data.paired else seen


def _draw_weights(
    data: Responses, size: int, rng: np.random.Generator, *, smooth: bool
) -> FloatArray:
    """Draw weights of shape (size, system, 1, trial), or (size, 1, trial) where runs are shared."""
    seen = runs_of(data)
    n = seen.sum(axis=1, keepdims=True)
    if smooth:
        drawn = rng.standard_gamma(concentration_of_few(n) * seen, (size, *seen.shape))
        drawn = np.maximum(drawn, LEAST_WEIGHT * drawn.mean(axis=-1, keepdims=True)) * seen
    else:
        drawn = rng.multinomial(n[:, 0], seen / n, (size, len(seen))).astype(np.float64)
    return drawn if data.paired else drawn[:, :, np.newaxis]


def _weighted_counts(weights: FloatArray, at: list[NDArray[np.bool_]]) -> FloatArray:
    """Sum weights over the trials of each cell by value, (resample, system, question, value).

    A cell that none of the drawn runs has answered keeps its counts.
    """
    values = np.stack(at, axis=-2).astype(np.float64)
    counts = (values @ weights[:, :, 0, :, np.newaxis][:, :, np.newaxis])[..., 0]
    nothing = counts.sum(axis=-1, keepdims=True) == 0.0
    return np.where(nothing, values.sum(axis=-1), counts)
