"""What draws of rankers lack: the variance of the jackknife, few units, and a pseudo-unit.

A system without an observed failure still has a positive failure probability (rule of three). So
draws of scores that are the same in all resamples get one more unit, an atom of a
Dirichlet-process prior. On this unit a coin decides whether a system is right
(docs/uncertainty.md).
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.battles import FEW_UNITS, Battles
from bayesrank.errors import NoFiniteEstimate
from bayesrank.grades import require_outcomes_of
from bayesrank.inference.resample.arguments import (
    Arguments,
    Array,
    ScoreOf,
    log_of,
    per_sample_of_questions,
    question_arguments,
    with_prior_questions,
)
from bayesrank.inference.resample.units import (
    ROUNDING,
    Contributions,
    asked_clusters,
    clusters_of,
    missing_variance,
    shown_units,
)
from bayesrank.inference.resample.weights import (
    LEAST_WEIGHT,
    as_wins_and_ties,
    counts_by_unit,
    question_weights,
)
from bayesrank.inference.run import Run
from bayesrank.methods.battle_ratings import Log
from bayesrank.responses import Responses
from bayesrank.views import Comparisons


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
    return Contributions.without(scores, sizes=np.bincount(codes[codes >= 0]))


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
            if (found := Contributions.without(scores)) is not None:
                return found
    return None


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


def with_pseudo_unit(run: Run, draws: Array, score_of: ScoreOf, rng: np.random.Generator) -> Array:
    """Replace draws (chain, draw, system) that do not vary by draws with a pseudo-unit.

    DataError if such a system has no outcome.
    """
    flat = draws.reshape(-1, draws.shape[-1])
    slack = ROUNDING * np.abs(flat).max()
    constant = np.flatnonzero(np.ptp(flat, axis=0) <= slack)
    if not constant.size:
        return draws
    data, size, replaced = run.data, len(flat), flat.copy()
    if isinstance(data, Comparisons):
        for system in constant.tolist():
            plan = _with_battle(run, data, system, size, rng)
            drawn = np.concatenate([score_of(batch)[:, system] for batch in plan])
            replaced[:, system] = rng.permutation(drawn)
        return replaced.reshape(draws.shape)
    for system in constant.tolist():
        require_outcomes_of(run.responses, system)
    drawn = np.concatenate([score_of(batch) for batch in _with_answers(run, size, rng)])
    # Systems with the same answers have the same draws, so that they stay tied.
    answers = run.responses.values.reshape(len(run.responses.systems), -1)
    _, first, same = np.unique(answers, axis=0, return_index=True, return_inverse=True)
    replaced[:, constant] = drawn[:, first[same.ravel()][constant]]
    return replaced.reshape(draws.shape)


def _with_answers(run: Run, size: int, rng: np.random.Generator) -> Iterator[Arguments]:
    """Yield arguments of data with one more trial, question or run of coin flips."""
    data, kind = run.responses, run.method.data
    target = "run" if run.unit == "run" else run.target
    more = with_prior_questions(data)
    n_questions = data.shape[1]
    # All of them as often, so that every system is right in half of the draws.
    added = n_questions + rng.permutation(np.arange(size) % (more.shape[1] - n_questions))
    for block in batches(size, per_sample_of_questions(more)):
        if kind == "stream":
            yield more.stream, _orders(more, n_questions, target, added[block], rng)
        else:
            weights = _weights(data, more.shape[1], target, added[block], rng)
            yield question_arguments(more, kind, rng)(weights)


def _orders(
    more: Responses,
    n_questions: int,
    target: str,
    added: NDArray[np.intp],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw orders with one more event, or one more question in all trials, at a random place."""
    _, n_all, n_trials = more.shape
    events = n_all * np.arange(n_trials)[:, np.newaxis] + np.arange(n_questions)
    trials = np.arange(n_trials)[np.newaxis]
    if target == "benchmark":
        trials = rng.integers(n_trials, size=(len(added), 1))
    before = n_questions * trials + rng.integers(n_questions + 1, size=(len(added), 1))
    extra = added[:, np.newaxis] + n_all * trials
    return np.stack([np.insert(events, *one) for one in zip(before, extra, strict=True)])


def _with_battle(
    run: Run, data: Comparisons, system: int, size: int, rng: np.random.Generator
) -> Iterator[Arguments]:
    """Yield arguments of data with one more unit of battles, lost in half of the draws."""
    others = np.delete(np.arange(len(data.systems)), system)
    of_unit = _battles_of_unit(data, run.unit, system) if isinstance(data, Battles) else 1.0
    log = log_of(data) if run.method.data == "log" and isinstance(data, Battles) else None
    per_draw = 2 * data.wins.size if log is None else len(log.first) + 2 * len(others)
    for block in batches(size, per_draw):
        places = np.arange(size)[block]
        rows, lost = np.arange(len(places)), places % 2 == 0
        opponent = rng.integers(len(others), size=len(places))
        if log is not None:
            times = np.zeros((len(places), len(log.first) + 2 * len(others)), dtype=np.int32)
            times[:, : len(log.first)] = 1
            times[rows, len(log.first) + 2 * opponent + lost] = max(round(of_unit), 1)
            yield _longer_log(log, system, others), times
            continue
        wins = np.repeat(data.wins[np.newaxis].astype(float), len(places), axis=0)
        winner = np.where(lost, others[opponent], system)
        loser = np.where(lost, system, others[opponent])
        wins[rows, winner, loser] += of_unit * rng.standard_exponential(len(places))
        yield wins, np.broadcast_to(data.ties, wins.shape)


def _battles_of_unit(data: Battles, unit: str, system: int) -> float:
    """Return how many battles of a system a unit has that has any."""
    own = (data.first == system) | (data.second == system)
    weight = np.ones(len(own)) if data.weight is None else data.weight
    own &= weight > 0.0
    return float(weight[own].sum() / len(np.unique(data.unit_codes(unit)[own])))


def _longer_log(log: Log, system: int, met: NDArray[np.intp]) -> Log:
    """Return a log that ends with a win of a system against each opponent, and with a defeat."""
    n = 2 * len(met)
    end = 0.0 if log.time is None else log.time.max()
    more = np.full(n, system), np.repeat(met, 2), np.tile([1, -1], len(met)), np.zeros(n), end
    columns: list[Any] = [
        None if column is None else np.append(column, np.full(n, added).astype(column.dtype))
        for column, added in zip(log[:-1], more, strict=True)
    ]
    return Log(*columns, size=log.size)


def _weights(
    data: Responses, n_all: int, target: str, added: NDArray[np.intp], rng: np.random.Generator
) -> Array:
    """Draw weights of the questions and of the prior questions, of shape (draw, n_all).

    One of the latter weighs as much as one unit.
    """
    n_questions, n_trials = data.shape[1:]
    weights = np.zeros((len(added), n_all))
    weights[:, :n_questions] = 1.0
    unit = 1.0 / n_trials
    if target == "population":
        unit = n_questions / (int(clusters_of(data).max()) + 1)
        weights[:, :n_questions] = question_weights(data, len(added), rng)
    elif target == "run":  # a run has answers to all questions
        unit *= n_questions
    weights[np.arange(len(added)), added] = unit * rng.standard_exponential(len(added))
    return n_questions * weights / weights.sum(axis=1, keepdims=True)
