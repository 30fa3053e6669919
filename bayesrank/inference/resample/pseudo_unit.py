"""The pseudo-unit: draws of scores that are the same in all resamples.

A system without an observed failure still has a positive failure probability (rule of three). So
the data get one more unit, an atom of a Dirichlet-process prior. On this unit a coin decides
whether a system is right (docs/uncertainty.md).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.grades import require_outcomes_of
from bayesrank.inference.resample.arguments import (
    Arguments,
    Array,
    ScoreOf,
    batches,
    log_of,
    per_sample_of_questions,
    question_arguments,
    with_prior_questions,
)
from bayesrank.inference.resample.units import ROUNDING, clusters_of
from bayesrank.inference.resample.weights import question_weights
from bayesrank.inference.run import Run
from bayesrank.methods.battle_ratings import Log
from bayesrank.responses import Responses
from bayesrank.views import Comparisons


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
    n_battles = data.totals.sum() / 2.0
    of_unit = n_battles / data.units[run.unit] if isinstance(data, Battles) else 1.0
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
