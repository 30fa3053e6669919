"""Resampled arguments of the NumPy rankers, in batches of bounded memory.

Units get Dirichlet weights, or are drawn with replacement where scores jump (docs/uncertainty.md).
Samples of whole questions may be drawn with one more question beside the observed ones, one of them
with its systems shuffled, which is half a question won and half a question lost for every pair.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.counting import compare_cells, compare_trials_by_question
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import batches, point_arguments
from bayesrank.inference.resample.battle_units import draw_counts, draw_units
from bayesrank.inference.resample.clusters import LEAST_WEIGHT, clusters_of, unit_weights
from bayesrank.inference.resample.trials import (
    draw_trial_order,
    level_counts,
    per_redrawn,
    redraw,
    require_two_trials,
    weighted_cells,
    weighted_runs,
    weighted_trials,
)
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

FloatArray = NDArray[np.float64]
Arguments = tuple[Any, ...]
Draw = Callable[[int], Arguments]


def resample(
    data: Responses | Comparisons,
    kind: str,
    *,
    target: str,
    smooth: bool,
    size: int,
    rng: np.random.Generator,
    shuffled: bool = False,
    of_each: int = 0,
    unit: str = "battle",
) -> Iterator[Arguments]:
    """Yield batches of resampled arguments of a ranker, each with a leading axis of resamples.

    Over questions whole data sets may have one more question beside the observed ones, with its
    systems `shuffled`, and come from each of `size` populations that questions may come from (the
    Bayesian bootstrap), `of_each` one after another; 0 draws from the observed questions. DataError
    if there are too few units to show any variation.
    """
    if isinstance(data, Battles) and (kind == "log" or not data.rows_are_units(unit)):
        draw, doubles = draw_units(data, kind, unit, smooth=smooth, rng=rng)
    elif isinstance(data, Comparisons):
        draw, doubles = partial(draw_counts, data, rng=rng, smooth=smooth), data.wins.size
    elif unit == "run":
        draw = partial(weighted_runs, data, kind, rng=rng, smooth=smooth)
        doubles = max(data.values.size, len(data.systems) ** 2)
    elif target == "population":
        draw, doubles = _over_questions(data, kind, smooth, shuffled, of_each, rng)
    else:
        draw, doubles = _over_trials(data, kind, smooth, rng)
    for block in batches(size, doubles * max(of_each, 1)):
        yield draw(block.stop - block.start)


def _over_questions(
    data: Responses, kind: str, smooth: bool, shuffled: bool, of_each: int, rng: np.random.Generator
) -> tuple[Draw, int]:
    """Return what draws a batch of a given size, and the doubles that one resample takes."""
    doubles = per_sample_of_questions(data)
    if smooth:
        arguments = question_arguments(data, kind, rng)
        return lambda n: arguments(question_weights(data, n, rng)), doubles
    clusters, asked = question_clusters(data), data
    n_clusters = int(clusters.max()) + 1
    chances = np.ones(n_clusters)
    if shuffled:
        # Questions of a cluster are shuffled alike. The copies are clusters of their own, drawn
        # together as often as one.
        order = rng.permuted(np.tile(np.arange(len(data.systems)), (n_clusters, 1)), axis=1)
        order = order[clusters].T[..., np.newaxis]
        asked = with_copies(data, np.take_along_axis(data.values, order, axis=0))
        clusters = np.concatenate([clusters, clusters + n_clusters])
        chances = np.append(chances, chances / n_clusters)
        doubles *= 2
    arguments = question_arguments(asked, kind, rng)

    def draw(n: int) -> Arguments:
        likely = np.tile(chances, (n, 1))
        if of_each:
            likely[:, :n_clusters] = unit_weights(n_clusters, n, rng)
            likely = np.repeat(likely, of_each, axis=0)
        return arguments(_question_draws(clusters, likely, data.shape[1], rng))

    return draw, doubles


def _over_trials(
    data: Responses, kind: str, smooth: bool, rng: np.random.Generator
) -> tuple[Draw, int]:
    """Return what draws a batch of a given size, and the doubles that one resample takes."""
    require_two_trials(data)
    if kind == "stream":
        return partial(draw_trial_order, data, rng=rng), data.shape[1] * data.shape[2]
    if not smooth:
        return partial(redraw, data, kind, rng=rng), per_redrawn(data)
    if not data.paired and data.scores is None:
        return partial(weighted_cells, data, kind, rng=rng), data.counts.size
    weights = data.shape[1] * data.shape[2] if data.paired else data.values.size
    cells = len(data.systems) ** 2 if kind == "pairs" else per_redrawn(data)
    return partial(weighted_trials, data, kind, rng=rng), max(weights, cells)


def with_copies(data: Responses, *copies: NDArray[Any]) -> Responses:
    """Return data with copies of all questions after them, of other outcomes."""
    n, earlier = 1 + len(copies), data.prior_sets
    return Responses(
        np.concatenate([data.values, *copies], axis=1),
        systems=data.systems,
        **data.declared,
        groups=None if data.groups is None else n * data.groups,
        prior_outcomes=None if earlier is None else np.concatenate(n * [earlier], axis=-2),
        paired=data.paired,
    )


def question_clusters(data: Responses) -> NDArray[np.intp]:
    """Return the clusters of the questions, or raise DataError if they cannot vary."""
    if data.shape[1] < 2:
        raise DataError(
            "questions must be two or more for target='population'; got 1: use target='benchmark' "
            "with two or more trials, or draws=0 for the estimate only"
        )
    return clusters_of(data)


def question_weights(data: Responses, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw Dirichlet weights of questions with mean 1, the same for those of a cluster."""
    clusters = question_clusters(data)
    weights = unit_weights(int(clusters.max()) + 1, size, rng)[:, clusters]
    weights = np.maximum(weights, LEAST_WEIGHT * weights.mean(axis=1, keepdims=True))
    return weights / weights.mean(axis=1, keepdims=True)


def per_sample_of_questions(data: Responses) -> int:
    """Return the doubles that one sample of questions takes."""
    n_systems, n_questions, n_trials = data.shape
    return max(n_systems**2, n_questions * n_trials)


def _question_draws(
    clusters: NDArray[np.intp], chances: FloatArray, n_drawn: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw whole clusters of questions with replacement, as how often each question is drawn.

    Of shape (resample, question), given the cluster of each question and the chances of the
    clusters, of shape (resample, cluster), on any scale.
    """
    chances = chances / chances.sum(axis=-1, keepdims=True)
    if chances.shape[-1] == len(clusters):
        return rng.multinomial(n_drawn, chances)[:, clusters]
    members = [np.flatnonzero(clusters == cluster) for cluster in range(chances.shape[-1])]
    drawn = np.zeros((len(chances), len(clusters)), dtype=np.int64)
    for row, likely in zip(drawn, chances, strict=True):
        # Until there are enough questions; the last cluster is cut to what is missing.
        missing = n_drawn
        while missing:
            cluster = rng.choice(len(likely), p=likely)
            questions = rng.permutation(members[cluster])[:missing]
            row[questions] += 1
            missing -= len(questions)
    return drawn


def question_arguments(
    data: Responses, kind: str, rng: np.random.Generator
) -> Callable[[NDArray[Any]], Arguments]:
    """Return what turns weights of questions, of shape (resample, question), into arguments."""
    if kind == "pairs":
        by_question = np.stack(question_pairs(data), axis=1)
        flat = by_question.reshape(len(by_question), -1)
        shape = by_question.shape[1:]
        return lambda weights: tuple((weights @ flat).reshape(-1, *shape).swapaxes(0, 1))
    if kind == "stream":
        return lambda weights: (data.stream, _question_order(data, weights, rng))
    point = point_arguments(data, kind)
    return lambda weights: (*point, weights)


def _question_order(
    data: Responses, drawn: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Order the questions drawn at random, alike in all trials, of shape (resample, event).

    Ratings may remember little but the end of a stream, where another sample has any question.
    """
    n_questions, n_trials = data.shape[1:]
    questions = np.repeat(np.tile(np.arange(n_questions), len(drawn)), drawn.ravel())
    questions = rng.permuted(questions.reshape(len(drawn), -1), axis=1)
    starts = n_questions * np.arange(n_trials)[:, np.newaxis]
    return (starts + questions[:, np.newaxis]).reshape(len(drawn), -1)


def question_pairs(data: Responses, some: slice = slice(None)) -> tuple[FloatArray, FloatArray]:
    """Return wins and ties on each of some questions, both (question, system, opponent)."""
    levels = data.levels[:, some]
    if data.paired:
        return compare_trials_by_question(levels)
    return compare_cells(level_counts(levels).swapaxes(0, 1)[:, :, np.newaxis])
