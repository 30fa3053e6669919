"""The jackknife: contributions of units to scores, and what draws lack of their variance."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import FEW_UNITS
from bayesrank.errors import NoFiniteEstimate
from bayesrank.inference.resample.arguments import (
    Array,
    ScoreOf,
    batches,
    per_sample_of_questions,
    question_arguments,
)
from bayesrank.inference.resample.units import (
    ROUNDING,
    SOME_UNITS,
    Contributions,
    asked_clusters,
    clusters_of,
    missing_variance,
    shown_units,
    sums_over_clusters,
)
from bayesrank.inference.resample.weights import (
    LEAST_WEIGHT,
    as_wins_and_ties,
    counts_by_unit,
    widening_for_single_answers,
)
from bayesrank.inference.run import Run
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

ScoresWithout = Callable[[NDArray[np.bool_]], Array]

# Most fits to parts of the data: the standard deviation of 50 contributions has an error of a
# tenth. More clusters are joined at random into this number of parts.
_MOST_PARTS = 50


def question_jackknife(scores_without: ScoresWithout, data: Responses) -> Contributions | None:
    """Return contributions of clusters of questions, many joined into parts; None if one lacks.

    `scores_without` takes the questions of each part, (part, question), and returns the scores
    without them, (part, system).
    """
    parts = _parts(data)
    sizes = sums_over_clusters(data.trials.sum(axis=0, dtype=float), parts)
    return _left_out(scores_without(parts == np.arange(len(sizes))[:, np.newaxis]), sizes=sizes)


def _left_out(scores: Array, **units: Any) -> Contributions | None:
    """Return the table of scores without each unit, None if some of these do not exist."""
    return Contributions.of(scores, left_out=True, **units) if np.isfinite(scores).all() else None


def delete_many_jackknife(
    scores_without: ScoresWithout, score: Array, data: Responses
) -> Contributions | None:
    """Return contributions of questions by a jackknife that deletes many at once.

    If the likelihood has several maxima, a fit without a few questions nearly always ends at
    the maximum of all data. Deviations are from the estimate, not from their own mean. So an
    estimate has wide intervals if most of the fits end at another maximum.
    """
    parts = _parts(data)
    n = int(parts.max()) + 1
    large = min(FEW_UNITS, n)
    rng = np.random.default_rng(0)
    joined = np.stack([rng.permutation(n) % large for _ in range(FEW_UNITS)])
    left_out = (joined[:, parts] == np.arange(large)[:, np.newaxis, np.newaxis]) & (parts >= 0)
    deviations = scores_without(left_out.reshape(-1, len(parts))) - score
    deviations *= np.sqrt((large - 1) / len(deviations))
    return Contributions(deviations, n - 1.0) if np.isfinite(deviations).all() else None


def _parts(data: Responses) -> NDArray[np.intp]:
    """Return the part of every question, -1 for questions that no system was asked."""
    parts = asked_clusters(data)
    n_parts = int(parts.max()) + 1
    if n_parts > _MOST_PARTS:
        joined = np.random.default_rng(0).permutation(n_parts) % _MOST_PARTS
        parts = np.where(parts < 0, -1, joined[parts])
    return parts


def jackknife_by_refits(
    refit: Callable[[Array, Array], Array], data: Responses, kind: str
) -> Contributions | None:
    """Return contributions of questions, runs or trials, by fits without them.

    None if there is no estimate without some of them; `refit` is that of a `Fit`.
    """
    if kind == "question":
        right, trials = (counts.astype(float) for counts in data.binary_counts)

        def without(left_out: NDArray[np.bool_]) -> Array:
            kept = ~left_out[:, np.newaxis, :]
            return refit(right * kept, trials * kept)

        return question_jackknife(without, data)
    widening = widening_for_single_answers(data)
    rng = np.random.default_rng(0)
    n_parts = min(SOME_UNITS, data.shape[2])
    n_divisions = _MOST_PARTS // n_parts
    divisions = [_counts_of_parts(data, n_parts, kind, rng) for _ in range(n_divisions)]
    # All in one call, a batch of fits.
    scores = widening * refit(*(np.concatenate(counts) for counts in zip(*divisions, strict=True)))
    found = _left_out(scores, strata=np.repeat(np.arange(n_divisions), n_parts))
    if found is None:
        return None
    # Several divisions of the same trials have no more degrees of freedom than one.
    units = data.trials - 1 if kind == "trial" else data.trials.max() - 1
    freedom = min(found.freedom, float(np.maximum(units, 0).sum()))
    deviations = found.deviations / np.sqrt(n_divisions)
    return Contributions(deviations, freedom)


def _counts_of_parts(
    data: Responses, n_parts: int, kind: str, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return right answers and trials without each part, both (part, system, question)."""
    n_systems, n_questions, n_trials = data.shape
    shape = (1 if data.paired else n_systems, 1 if kind == "run" else n_questions, n_trials)
    places = rng.random(shape)  # answers of one run of all systems may be dependent
    if kind == "trial" and not data.paired:
        places = np.where(data.observed, places, 1.0)  # missing trials come last
    # In cells with fewer trials than parts the first trial is in a random part.
    order = places.argsort(axis=-1).argsort(axis=-1)
    order += rng.integers(n_parts, size=(*order.shape[:-1], 1))
    kept = data.observed & (order % n_parts != np.arange(n_parts).reshape(-1, 1, 1, 1))
    return (kept & (data.outcomes == 1)).sum(axis=-1, dtype=float), kept.sum(axis=-1, dtype=float)


def ranker_jackknife(
    data: Responses, kind: str, score_of: ScoreOf, most: int
) -> Contributions | None:
    """Return contributions of clusters of questions to scores of a ranker; not for streams.

    Each unit needs a run of the ranker. None for at least `most` units, whose leverage is low, or
    for too few for a kurtosis.
    """
    codes = asked_clusters(data)
    if not FEW_UNITS <= int(clusters_of(data).max()) + 1 < most:
        return None
    # The generator is not used: only streams draw orders.
    arguments = question_arguments(data, kind, np.random.default_rng(0))
    weights = np.where(codes == np.arange(codes.max() + 1)[:, np.newaxis], LEAST_WEIGHT, 1.0)
    weights /= weights.mean(axis=1, keepdims=True)
    blocks = batches(len(weights), per_sample_of_questions(data))
    scores = np.concatenate([score_of(arguments(weights[block])) for block in blocks])
    return _left_out(scores, sizes=np.bincount(codes[codes >= 0]))


def battle_jackknife(
    data: Comparisons, score_of: ScoreOf, most: int, unit: str
) -> Contributions | None:
    """Return contributions of units of battles to scores of a ranker, of `most` units at most.

    None if there are too few units for a kurtosis, or no score without some of them.
    """
    table: Any = counts_by_unit(data, unit, most)
    if table.shape[0] < FEW_UNITS:
        return None
    total, blocks = table.sum(axis=0), list(batches(*table.shape))

    def scores_without(block: slice, least: float) -> Array:
        left = total - (1.0 - least) * table[block].toarray()
        left[left <= ROUNDING * total] = 0.0
        return score_of(as_wins_and_ties(left, len(data.systems)))

    # Some scores do not exist without the only battle of a system.
    for least in (0.0, LEAST_WEIGHT):
        with suppress(NoFiniteEstimate):
            scores = np.concatenate([scores_without(block, least) for block in blocks])
            if (found := _left_out(scores)) is not None:
                return found
    return None


def scale(draws: Array, factor: Array | float) -> Array:
    """Multiply deviations from the mean of each system by factors."""
    mean = draws.mean(axis=(0, 1))
    return mean + factor * (draws - mean)


def with_missing_variance(
    draws: Array, table: Contributions, seed: np.random.SeedSequence
) -> Array:
    """Add Gaussian deviations along contributions where these have more variance than the draws.

    Random weights hardly ever leave a unit out, so that draws do not show the leverage of single
    questions. Weights of battles do not change the shares of a pair with a single battle.
    """
    flat, found = draws.reshape(-1, draws.shape[-1]), table.standard_errors
    size = np.where(found > 0.0, found, 1.0)
    # With the degrees of freedom of the fewest units, t has twice the variance of a normal.
    freedom = np.maximum(table.tail_freedom, FEW_UNITS - 1)
    shown = ((flat - flat.mean(axis=0)) / size).var(axis=0)
    lacking = np.sqrt(np.maximum((found > 0.0) * freedom / (freedom - 2.0) - shown, 0.0))
    moved, rng = np.empty_like(flat), np.random.default_rng(seed)
    for block in batches(len(flat), len(table.deviations)):
        normals = rng.standard_normal((block.stop - block.start, len(table.deviations)))
        moved[block] = flat[block] + lacking * (normals @ table.deviations)
    return moved.reshape(draws.shape)


def jackknife_corrected(run: Run, draws: Array, score_of: ScoreOf) -> Array:
    """Give draws of a ranker the variance of the jackknife, if it exists and is larger.

    And the common variance of a unit, if a system has few of them.
    """
    lacking, common = run.seed.spawn(2)
    table = None
    if isinstance(run.data, Comparisons):
        table = battle_jackknife(run.data, score_of, run.size, run.unit)
    elif run.target == "population":
        table = ranker_jackknife(run.responses, run.method.data, score_of, run.size)
    if table is not None:
        draws = with_missing_variance(draws, table, lacking)
    # Posteriors have a prior, and no draws beyond the range of the score.
    if isinstance(run.data, Comparisons) or run.backend == "exact":
        return draws
    return with_common_variance(draws, *shown_units(run.responses, run.target, run.unit), common)


def with_common_variance(
    draws: Array, units: Array, model: Array, seed: np.random.SeedSequence
) -> Array:
    """Add Gaussian deviations where few units show how a score varies.

    Weighted means of few units lie between the scores of the units, and these may happen to be
    alike. A score has the common variance relative to the `model`, of shape (system,). Scores that
    do not vary over some units are left to the pseudo-unit.
    """
    deviations = draws - draws.mean(axis=(0, 1))
    size = np.abs(deviations).max() or 1.0  # squares of large worths overflow
    variance = (deviations / size).var(axis=(0, 1))
    lacking = size * np.sqrt(missing_variance(variance, units, model))
    lacking[(np.sqrt(variance) <= ROUNDING) & (units > 0.0)] = 0.0
    if not lacking.any():
        return draws
    return draws + lacking * np.random.default_rng(seed).standard_normal(draws.shape)
