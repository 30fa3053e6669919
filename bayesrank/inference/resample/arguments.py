"""The positional arguments of a NumPy ranker, for the original data and for resampled data.

The kind of data in a row of the catalog determines the positional arguments of its function:

============== =================================================================================
data           positional arguments
============== =================================================================================
grades         mean worth per cell (system, question), NaN where unobserved
grouped grades the same, and the group of each question (question,) or None
binary         right answers and trials, both (system, question)
counts         trials per category (system, question, category) and the worth of each category
evidence       the same, and counts of earlier outcomes or None
pairs          wins and ties, both (system, opponent)
stream         outcomes in the order of play (trial, question, system)
log            battles in the order of play, a :class:`bayesrank.methods.battle_ratings.Log`
============== =================================================================================

Functions of grades, grouped grades, binary, counts and evidence also take weights of the questions
(question,). Functions of a stream take the order of its events, functions of a log the number of
times each battle is played. Arguments of resampled data have a leading axis of resamples; counts
and evidence are resampled only by weights of the questions.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.battles import Battles
from bayesrank.counting import compare_cells, compare_shared_trials, compare_trials, sum_over_levels
from bayesrank.errors import DataError
from bayesrank.inference.resample.units import has_clusters
from bayesrank.methods.battle_ratings import Log
from bayesrank.responses import Responses, prior_counts
from bayesrank.views import Ballots, Comparisons

Array = NDArray[np.float64]
Arguments = tuple[Any, ...]
ScoreOf = Callable[[Arguments], Array]
Draw = Callable[[int], Arguments]


def point_arguments(data: Responses | Comparisons | Ballots, kind: str) -> Arguments:
    """Return the positional arguments for the original data; DataError if these lack them."""
    if kind == "pairs" and not isinstance(data, Ballots):
        comparisons = data if isinstance(data, Comparisons) else data.comparisons
        return comparisons.wins, comparisons.ties
    if kind == "log" and isinstance(data, Battles):
        return (log_of(data),)
    if not isinstance(data, Responses):
        hint = ", which only methods on pairs can rank" if isinstance(data, Comparisons) else ""
        got = f"{type(data).__name__.lower()}{hint}"
        raise DataError(f"data must be responses for this method; got {got}")
    if kind == "grades":
        return (data.grades,)
    if kind == "grouped grades":
        return data.grades, None if data.groups is None else np.array(data.groups)
    if kind == "binary":
        return data.binary_counts
    if kind == "counts":
        return data.counts, data.category_weights
    if kind == "evidence":
        return data.counts, data.category_weights, prior_counts(data)
    return (data.stream,)


def log_of(data: Battles) -> Log:
    """Return the battles in their order, each repeated by its weight."""
    rows = played_rows(data)
    columns = data.first, data.second, data.outcome, data.both_bad, data.time
    kept: list[Any] = [None if column is None else column[rows] for column in columns]
    return Log(*kept, size=len(data.systems))


def played_rows(data: Battles) -> NDArray[np.intp]:
    """Return the row of each battle of a log; DataError for weights of fractions, or only zeros."""
    weight = np.ones(len(data.first)) if data.weight is None else data.weight
    times = weight.astype(np.int64)
    if not np.array_equal(times, weight):
        raise DataError(
            "weight must be whole numbers for ratings, which play battle by battle; got "
            f"{weight[times != weight][0]:g}: rank them by davidson or bradley_terry"
        )
    if not times.any():
        raise DataError("weight must be positive for one battle at least; got zeros")
    return np.repeat(np.arange(len(times)), times)


def question_arguments(
    data: Responses, kind: str, rng: np.random.Generator
) -> Callable[[NDArray[Any]], Arguments]:
    """Return the function that turns weights of questions (resample, question) into arguments."""
    if kind == "pairs":
        return partial(_weighted_pairs, data)
    if kind == "stream":
        return lambda weights: (data.stream, _question_order(data, weights, rng))
    point = point_arguments(data, kind)
    if kind == "grouped grades" and has_clusters(data):
        return lambda weights: (*point, weights, weights)
    return lambda weights: (*point, weights)


def _weighted_pairs(data: Responses, weights: NDArray[Any]) -> Arguments:
    """Return wins and ties of weighted questions, without a table of all pairs by question."""
    if data.paired:
        return compare_trials(data.levels, weights[:, :, np.newaxis])
    found = np.zeros((2, len(weights), len(data.systems) ** 2))
    for some in batches(data.shape[1], 2 * found.shape[2]):
        for total, table in zip(found, data.compare_by_question(some), strict=True):
            total += weights[:, some] @ table.reshape(len(table), -1)
    return tuple(found.reshape(2, len(weights), len(data.systems), -1))


def _question_order(
    data: Responses, drawn: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Order the drawn questions at random, the same in all trials, of shape (resample, event).

    The order is random since some ratings depend almost only on the last events.
    """
    n_questions, n_trials = data.shape[1:]
    questions = np.repeat(np.tile(np.arange(n_questions), len(drawn)), drawn.ravel())
    questions = rng.permuted(questions.reshape(len(drawn), -1), axis=1)
    starts = n_questions * np.arange(n_trials)[:, np.newaxis]
    return (starts + questions[:, np.newaxis]).reshape(len(drawn), -1)


def per_sample_of_questions(data: Responses) -> int:
    """Return the doubles that one sample of questions takes."""
    n_systems, n_questions, n_trials = data.shape
    return max(n_systems**2, n_questions * n_trials)


def with_prior_questions(data: Responses) -> Responses:
    """Return data with questions appended, of which one at random is the prior unit.

    On it every system has the best answer in all trials with probability 1/2, otherwise the worst,
    independently of any other system: the columns of a Hadamard matrix.

    Examples
    --------
    >>> with_prior_questions(Responses([[1, 0], [1, 1]])).values[:, 2:, 0]
    array([[0, 1, 0, 1],
           [0, 0, 1, 1]], dtype=int8)
    """
    n_systems, n_questions, n_trials = data.shape
    systems, columns = np.arange(1, n_systems + 1), np.arange(2 ** n_systems.bit_length())
    worst, best = data.scale or (data.category_levels.argmin(), data.category_levels.argmax())
    is_best = np.bitwise_count(systems[:, np.newaxis] & columns) % 2 == 1
    more = np.where(is_best, best, worst).astype(data.values.dtype)[..., np.newaxis]
    # Copies of which question decides only their groups and earlier outcomes.
    copied, earlier = np.arange(n_questions + len(columns)) % n_questions, data.prior_sets
    return Responses(
        np.concatenate([data.values, np.repeat(more, n_trials, axis=2)], axis=1),
        systems=data.systems,
        **data.declared,
        groups=None if data.groups is None else [data.groups[one] for one in copied],
        prior_outcomes=None if earlier is None else earlier[..., copied, :],
        paired=data.paired,
    )


def trial_arguments(data: Responses, kind: str, gammas: Array) -> Arguments:
    """Return the arguments for weighted trials; not of a stream.

    Weights are on any scale and of shape (resample, system, question, trial), or (resample,
    question, trial) for trials that all systems share.
    """
    if kind == "pairs" and gammas.ndim == 3:
        if np.isin(data.trials, (0, data.shape[2])).all():
            return compare_trials(data.levels, gammas / gammas.mean(axis=-1, keepdims=True))
        return compare_shared_trials(
            data.levels, np.broadcast_to(gammas, (len(gammas), *data.shape[1:]))
        )
    if kind == "pairs":
        size = data.level_counts.shape[-1]
        each = [_weighted_sum(gammas, data.levels == one) for one in range(size)]
        return count_arguments(data, kind, np.stack(each, axis=-1))
    worths = data.category_weights[data.outcomes] if data.scores is None else data.scores
    total = _weighted_sum(gammas, np.where(data.observed, worths, 0.0))
    return _grade_arguments(data, kind, total, _weighted_sum(gammas, data.observed))


def _weighted_sum(weights: Array, values: NDArray[Any]) -> Array:
    """Sum values (system, question, trial) over trials with weights of each resample."""
    values = values.astype(np.float64)
    if weights.ndim == 4:
        return np.einsum("blmn,lmn->blm", weights, values)
    by_question = weights.swapaxes(0, 1) @ values.transpose(1, 2, 0)
    return by_question.transpose(1, 2, 0)


def count_arguments(data: Responses, kind: str, counts: NDArray[Any]) -> Arguments:
    """Return the arguments for counts or weights of the categories, of the levels for pairs.

    Not of a stream; weights of the categories of a cell are on any scale.
    """
    if kind == "pairs":
        return compare_cells(counts, None if counts.dtype.kind in "iu" else data.trials)
    return _grade_arguments(data, kind, counts @ data.category_weights, sum_over_levels(counts))


def cell_arguments(data: Responses, kind: str, cells: NDArray[Any]) -> Arguments:
    """Return the arguments for cells of other trials: counts by category, or scores.

    Of shape (resample, system, question, ...), those of observed trials first.
    """
    if data.scores is not None:
        drawn = np.arange(cells.shape[-1]) < data.trials[..., np.newaxis]
        total = np.where(drawn, cells, 0.0).sum(axis=-1)
        return _grade_arguments(data, kind, total, data.trials)
    level = data.category_levels
    if kind == "pairs" and (level != np.arange(len(level))).any():
        cells = cells @ (level[:, np.newaxis] == np.arange(level.max() + 1))
    return count_arguments(data, kind, cells)


def _grade_arguments(data: Responses, kind: str, total: Array, weights: NDArray[Any]) -> Arguments:
    """Return the arguments for cells with a total worth of weighted trials."""
    _, *others = point_arguments(data, kind)  # raises if the data lack them
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        grades = total / weights
    if kind == "binary":
        return np.nan_to_num(grades) * data.trials, np.broadcast_to(data.trials, grades.shape)
    return grades, *others
