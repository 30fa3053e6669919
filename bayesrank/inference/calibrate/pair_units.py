"""How the gradient of paired comparisons varies: over trials, runs and questions, or battles."""

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import compare_cells, count_categories
from bayesrank.errors import DataError
from bayesrank.inference.calibrate.influence import event_contributions
from bayesrank.inference.calibrate.set_covariance import covariance_of
from bayesrank.inference.calibrate.variation import Variation
from bayesrank.inference.fits.pairs import PairLikelihood
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.inference.resample.clusters import sums_over_clusters
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.resample.weights import (
    BATCH_SIZE,
    require_two_trials,
    resample,
    widening_for_single_trials,
)
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

Array = NDArray[np.float64]

# Draws of battles, and of trials that each system has for itself.
_RESAMPLES = 2000


def gradient_variation(
    data: Responses | Comparisons,
    likelihood: PairLikelihood,
    point: Array,
    kind: str,
    seed: np.random.SeedSequence,
) -> Variation:
    """Return how the gradient varies over one kind of units of responses, or of counts of battles.

    Parameters
    ----------
    data : Responses or Comparisons
        What was fitted.
    likelihood : PairLikelihood
        Of one pair.
    point : numpy.ndarray of shape (p,)
        The scores, then the tie parameter where it is estimated.
    kind : {"question", "run", "trial", "battle"}
        The units; clusters of questions where the data have them.
    seed : numpy.random.SeedSequence
        For battles, and trials of each system, that are drawn anew.

    Raises
    ------
    DataError
        If trials vary and most observed cells have one, or runs where systems share none.
    """
    if not isinstance(data, Responses):
        return _redrawn(data, likelihood, point, "battles", seed)
    if kind == "question":
        return Variation.of(Contributions.of(_questions(data, likelihood, point)))
    require_two_trials(data)
    if data.paired:
        levels = data.levels.reshape(len(data.systems), -1)
        rows = np.sqrt((widening_for_single_trials(data) ** 2).mean()) * _event_gradients(
            levels, likelihood, point
        )
        (observed,) = np.nonzero((levels >= 0).any(axis=0))
        return event_contributions(rows[observed], data, kind, observed)
    if kind == "run":
        raise DataError(
            "unit must be 'trial' for comparisons of runs that systems do not share; got 'run': "
            "build Responses with paired=True"
        )
    return _redrawn(data, likelihood, point, "benchmark", seed)


def _redrawn(
    data: Responses | Comparisons,
    likelihood: PairLikelihood,
    point: Array,
    target: str,
    seed: np.random.SeedSequence,
) -> Variation:
    """Return how the gradient varies over draws of trials, or of battles."""
    batches = resample(
        data,
        "pairs",
        target=target,
        smooth=True,
        size=_RESAMPLES,
        rng=np.random.default_rng(seed),
    )
    wins, ties = point_arguments(data, "pairs")
    found = np.concatenate([likelihood.gradient(point, *batch) for batch in batches])
    freedom = float(wins.sum() + ties.sum() / 2.0)
    covariance = covariance_of(found)
    return Variation(covariance, freedom, np.diag(covariance) ** 2 / freedom)


def _questions(data: Responses, likelihood: PairLikelihood, point: Array) -> Array:
    """Return what clusters of questions add to the gradient, of shape (cluster, p)."""
    if data.paired:
        by_trial = _event_gradients(data.levels.reshape(len(data.systems), -1), likelihood, point)
        rows = by_trial.reshape(data.shape[1], data.shape[2], -1).sum(axis=1)
    else:
        counts = count_categories(data.levels, int(data.levels.max(initial=1)) + 1)
        by_question = counts.swapaxes(0, 1)[:, :, np.newaxis]
        step = max(1, BATCH_SIZE // len(data.systems) ** 2)
        blocks = np.split(by_question, range(step, len(by_question), step))
        rows = np.concatenate([likelihood.gradient(point, *compare_cells(b)) for b in blocks])
    return sums_over_clusters(rows, data)


def _event_gradients(levels: NDArray[np.int8], likelihood: PairLikelihood, point: Array) -> Array:
    """Return the gradient of each trial of all systems, of shape (trial, p).

    Who is at a level has beaten who is below it, has lost to who is above, and tied with the
    others at it: products with tables of the slopes of single results, instead of all pairs.
    """
    size = len(levels)
    one, none = np.ones((size, size)), np.zeros((size, size))
    arguments = likelihood.arguments(point[np.newaxis], size)
    won = likelihood.derivatives(*likelihood.sides(one, none), *arguments)
    rows = np.zeros((levels.shape[1], len(point)))
    for level in range(int(levels.max(initial=0)) + 1):
        at, below = (levels == level).astype(float), (levels >= 0) & (levels < level)
        rows[:, :size] += (at * (won[0][0] @ below) - below * (won[0][0].T @ at)).T
        tables = [(won, below)]
        if at.sum(axis=0).max(initial=0.0) > 1.0:
            tied = likelihood.derivatives(*likelihood.sides(none, one), *arguments)
            slope = tied[0][0] - tied[0][0].T
            rows[:, :size] += (at * (slope @ at)).T
            tables.append((tied, at))
        if likelihood.start is not None and not likelihood.at_end(point[-1]):
            for table, others in tables:
                slope = np.where(np.eye(size, dtype=bool), 0.0, table[2][0])
                rows[:, size] += (at * (slope @ others)).sum(axis=0)
    return rows
