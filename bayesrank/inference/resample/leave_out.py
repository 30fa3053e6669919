"""The jackknife: contributions of questions and trials to scores, from scores without them.

References
----------
.. [1] P. S. Kott. The delete-a-group jackknife. Journal of Official Statistics 17 (2001).
.. [2] J. Shao and C. F. J. Wu. A general theory for jackknife variance estimation. Annals of
   Statistics 17 (1989). https://doi.org/10.1214/aos/1176347263
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.resample.arguments import batches, cell_arguments
from bayesrank.inference.resample.clusters import (
    FEW_UNITS,
    LEAST_WEIGHT,
    SOME_UNITS,
    asked_clusters,
    clusters_of,
)
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.resample.trials import trial_arguments, widening_for_single_trials
from bayesrank.inference.resample.weights import per_sample_of_questions, question_arguments
from bayesrank.responses import Responses

Array = NDArray[np.float64]
Arguments = tuple[Any, ...]
ScoreOf = Callable[[Arguments], Array]
ScoresWithout = Callable[[NDArray[np.bool_]], Array]
Numbers = NDArray[np.int64]

# More clusters are joined at random into so many, where each part costs a fit.
_MOST_PARTS = 50

# Divisions of the questions into few parts where fits have several maxima.
_DIVISIONS = 4

# More clusters leave none of them much leverage.
_MOST_CLUSTERS = 500
# More trials take longer than the draws, and leave none of them much leverage.
_MOST_TRIALS = 5000


def question_jackknife(
    scores_without: ScoresWithout, data: Responses, most: int = _MOST_PARTS
) -> Contributions | None:
    """Return what questions or clusters of them add to scores, `most` parts of them at most.

    `scores_without` returns scores (part, system) without the questions of each part, given which
    these are, (part, question). None where some of them cannot be spared for an estimate.
    """
    parts = _parts(data, most)
    scores = scores_without(parts == np.arange(int(parts.max()) + 1)[:, np.newaxis])
    return Contributions.of(scores, left_out=True) if np.isfinite(scores).all() else None


def jackknife_of_many(
    scores_without: ScoresWithout, score: Array, data: Responses
) -> Contributions | None:
    """Return what questions add to scores, by a jackknife that deletes many at once.

    Where the likelihood has several maxima, a fit without a few questions nearly always reaches the
    same as the whole does, and says nothing of how far estimates from other questions jump. Fits
    without a fifth of them do. Their deviations are from the estimate, not from their own mean, so
    that an estimate at another maximum than most of them has wide intervals.
    """
    parts = _parts(data, _MOST_PARTS)
    n = int(parts.max()) + 1
    large = min(FEW_UNITS, n)
    rng = np.random.default_rng(0)
    joined = np.stack([rng.permutation(n) % large for _ in range(_DIVISIONS)])
    left_out = (joined[:, parts] == np.arange(large)[:, np.newaxis, np.newaxis]) & (parts >= 0)
    deviations = scores_without(left_out.reshape(-1, len(parts))) - score
    copies = np.full(len(deviations), (large - 1) / len(deviations))
    return Contributions(deviations, copies, n - 1.0) if np.isfinite(deviations).all() else None


def _parts(data: Responses, most: int) -> NDArray[np.intp]:
    """Return the part of every question, -1 for those that nobody was asked."""
    parts = asked_clusters(data)
    n_parts = int(parts.max()) + 1
    if n_parts > most:
        joined = np.random.default_rng(0).permutation(n_parts) % most
        parts = np.where(parts < 0, -1, joined[parts])
    return parts


def jackknife_by_refits(
    refit: Callable[[Array, Array], Array], data: Responses, kind: str
) -> Contributions | None:
    """Return what questions, runs or trials add to scores, by fits to the others.

    None where some units cannot be spared for an estimate; `refit` returns scores fitted to numbers
    right and of trials (`Fit.refit`). DataError if trials vary and most observed cells have one.
    """
    if kind == "question":
        right, trials = (counts.astype(float) for counts in data.binary_counts)

        def without(left_out: NDArray[np.bool_]) -> Array:
            kept = ~left_out[:, np.newaxis, :]
            return refit(right * kept, trials * kept)

        return question_jackknife(without, data)
    widening = widening_for_single_trials(data)
    rng = np.random.default_rng(0)
    n_parts = min(SOME_UNITS, data.shape[2])
    n_divisions = _MOST_PARTS // n_parts
    divisions = [_counts_of_parts(data, n_parts, kind, rng) for _ in range(n_divisions)]
    # All in one call, which climbs side by side.
    scores = refit(*(np.concatenate(counts) for counts in zip(*divisions, strict=True)))
    if not np.isfinite(scores).all():
        return None
    scores = scores * widening
    found = Contributions.of(scores, np.repeat(np.arange(n_divisions), n_parts), left_out=True)
    # Divisions of the same trials know no more than these.
    units = data.trials - 1 if kind == "trial" else data.trials.max() - 1
    freedom = min(found.freedom, float(np.maximum(units, 0).sum()))
    return replace(found, copies=found.copies / n_divisions, freedom=freedom)


def _counts_of_parts(
    data: Responses, n_parts: int, kind: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return numbers right and of trials without each part, of shape (part, system, question)."""
    n_systems, n_questions, n_trials = data.shape
    shape = (1 if data.paired else n_systems, 1 if kind == "run" else n_questions, n_trials)
    places = rng.random(shape)  # answers of one run of all systems may hang together
    if kind == "trial" and not data.paired:
        places = np.where(data.observed, places, 1.0)  # missing ones come last
    # Cells with fewer trials than parts begin at any of these.
    order = places.argsort(axis=-1).argsort(axis=-1)
    order += rng.integers(n_parts, size=(*order.shape[:-1], 1))
    kept = data.observed & (order % n_parts != np.arange(n_parts).reshape(-1, 1, 1, 1))
    return (kept & (data.outcomes == 1)).sum(axis=-1, dtype=float), kept.sum(axis=-1, dtype=float)


def without_clusters(data: Responses, kind: str, score_of: ScoreOf) -> Contributions | None:
    """Return what clusters of questions add to the scores of a ranker, not of a stream.

    None if there are too few clusters to tell a kurtosis, or so many that none has much leverage.
    `score_of` returns scores (resample, system) by arguments of the ranker.
    """
    n_clusters = int(clusters_of(data).max()) + 1
    if not FEW_UNITS <= n_clusters <= _MOST_CLUSTERS:
        return None
    arguments = question_arguments(data, kind, np.random.default_rng(0))  # no order is left open

    def scores_without(left_out: NDArray[np.bool_]) -> Array:
        weights = np.where(left_out, LEAST_WEIGHT, 1.0)
        weights /= weights.mean(axis=1, keepdims=True)
        blocks = batches(len(weights), per_sample_of_questions(data))
        return np.concatenate([score_of(arguments(weights[block])) for block in blocks])

    return question_jackknife(scores_without, data, n_clusters)


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
