"""The jackknife: contributions of questions and trials to scores, from scores without them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.resample.arguments import batches
from bayesrank.inference.resample.clusters import (
    FEW_UNITS,
    LEAST_WEIGHT,
    SOME_UNITS,
    asked_clusters,
    clusters_of,
)
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.resample.trials import widening_for_single_trials
from bayesrank.inference.resample.weights import per_sample_of_questions, question_arguments
from bayesrank.responses import Responses

Array = NDArray[np.float64]
Arguments = tuple[Any, ...]
ScoreOf = Callable[[Arguments], Array]
ScoresWithout = Callable[[NDArray[np.bool_]], Array]

# Fits to parts of the data for which contributions are told: 50 tell a standard deviation to a
# tenth. More clusters are joined at random into so many.
_MOST_PARTS = 50


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
    same as the whole does. Deviations are from the estimate, not from their own mean, so that an
    estimate at another maximum than most of them has wide intervals.
    """
    parts = _parts(data, _MOST_PARTS)
    n = int(parts.max()) + 1
    large = min(FEW_UNITS, n)
    rng = np.random.default_rng(0)
    joined = np.stack([rng.permutation(n) % large for _ in range(FEW_UNITS)])
    left_out = (joined[:, parts] == np.arange(large)[:, np.newaxis, np.newaxis]) & (parts >= 0)
    deviations = scores_without(left_out.reshape(-1, len(parts))) - score
    deviations *= np.sqrt((large - 1) / len(deviations))
    return Contributions(deviations, n - 1.0) if np.isfinite(deviations).all() else None


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

    None where some units cannot be spared for an estimate; `refit` is that of a `Fit`.
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
    return Contributions(found.deviations / np.sqrt(n_divisions), freedom)


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


def without_clusters(
    data: Responses, kind: str, score_of: ScoreOf, most: int
) -> Contributions | None:
    """Return what clusters of questions add to the scores of a ranker, not of a stream.

    None if there are too few clusters to tell a kurtosis, or `most` or more, each of which costs a
    run of the ranker: the more there are, the less leverage each of them has.
    """
    n_clusters = int(clusters_of(data).max()) + 1
    if not FEW_UNITS <= n_clusters < most:
        return None
    arguments = question_arguments(data, kind, np.random.default_rng(0))  # no order is left open

    def scores_without(left_out: NDArray[np.bool_]) -> Array:
        weights = np.where(left_out, LEAST_WEIGHT, 1.0)
        weights /= weights.mean(axis=1, keepdims=True)
        blocks = batches(len(weights), per_sample_of_questions(data))
        return np.concatenate([score_of(arguments(weights[block])) for block in blocks])

    return question_jackknife(scores_without, data, n_clusters)
