"""Exact ties: systems, and questions, that the data cannot tell apart, as no posterior can."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import kinds_of_cells, told_apart
from bayesrank.inference.fits.newton import ERROR_TOLERANCE
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

Array = NDArray[np.float64]
Classes = NDArray[np.intp]

# Sums of the same counts in another order differ by rounding alone.
_ROUNDING = 1e-12
# Scores that differ by less differ by what their fits left, each at most `ERROR_TOLERANCE`.
_RESOLUTION = 10.0 * ERROR_TOLERANCE
# Counts that differ in further decimals are sums of the same in another order.
_DECIMALS = 9


def settle_ties(
    scores: Array,
    totals: Array,
    pairs: Callable[[], Array] | None = None,
    *,
    rows: Array | None = None,
) -> Array:
    """Make the scores of a converged fit, of shape (resample, system), equal where they must be.

    Systems that the data cannot tell apart (:func:`interchangeable`) get the score of the first of
    them, and scores that differ by less than the resolution of the fit become equal.

    Examples
    --------
    >>> settle_ties(np.array([[0.5, -1.0, 0.4999]]), np.array([[3.0, 1.0, 3.0]]))
    array([[ 0.5, -1. ,  0.5]])
    """
    first = interchangeable(totals, pairs, rows=rows)
    if first is not None:
        scores = np.take_along_axis(scores, first, axis=-1)
    return merge_noise(scores)


def interchangeable(
    totals: Array, pairs: Callable[[], Array] | None = None, *, rows: Array | None = None
) -> NDArray[np.intp] | None:
    """Return, for each system, the first that the data cannot tell from it; None if all differ.

    Two systems are interchangeable when swapping them leaves the sufficient statistics as they are:
    equal `totals` (what multiplies the score), equal counts against every third system in a
    table that `pairs` returns, and equal `rows` of further statistics. All have a first axis of
    resamples. A strictly concave objective then has its maximum where their scores are equal. Ties
    of a longer symmetry, as of a cycle of three, are not found; see :func:`merge_noise`.

    Examples
    --------
    >>> interchangeable(np.array([[3.0, 1.0, 3.0]]))
    array([[0, 1, 0]])
    """
    # Sorting finds equal totals in L log L; most data have few.
    ordered = np.sort(totals, axis=-1)
    slack = _ROUNDING * np.maximum(ordered[:, -1:], -ordered[:, :1])
    if not np.count_nonzero(ordered[:, 1:] - ordered[:, :-1] <= slack):
        return None
    same = np.abs(totals[:, :, np.newaxis] - totals[:, np.newaxis]) <= slack[:, :, np.newaxis]
    if rows is not None:
        sums = rows @ _any_weights(rows.shape[-1])
        same &= _equal(np.broadcast_to(sums[:, :, np.newaxis], same.shape))
    if pairs is not None:
        weights = _any_weights(totals.shape[-1])
        # What a system met with the weight of another is what that one met with its own.
        table = pairs()
        same &= _equal((table @ weights)[:, :, np.newaxis] + weights[:, np.newaxis] * table)
    return same.argmax(axis=-1)


def _any_weights(size: int) -> Array:
    """Return weights with which sums of counts are equal only where all the counts are."""
    return np.random.default_rng(0).uniform(1.0, 2.0, size)


def _equal(sums: Array) -> NDArray[np.bool_]:
    """Say which sums of shape (resample, system, system) are those of the pair turned around."""
    return np.abs(sums - sums.transpose(0, 2, 1)) <= _ROUNDING * np.abs(sums)


def tie_exchangeable(score: Array, data: Responses | Comparisons | Ballots) -> Array:
    """Give exchangeable systems the mean of their scores, of shape (system,).

    For estimates by simulation, whose expectations are equal. Two systems are exchangeable if the
    data stay the same when they trade names: the same answers, or the same results against all
    others and each other.

    Examples
    --------
    >>> tie_exchangeable(np.array([0.1, 0.2, 0.4]), Comparisons([[0, 2, 1], [2, 0, 1], [3, 3, 0]]))
    array([0.15, 0.15, 0.4 ])
    """
    if isinstance(data, Comparisons):
        lost, tied = _any_weights(2)
        table = (data.wins + lost * data.wins.T + tied * data.ties)[np.newaxis]
        first = interchangeable(table.sum(axis=-1), lambda: table)
        if first is None:
            return score
        rows = first.T
    else:
        rows = _rows(data.values if isinstance(data, Responses) else data.grades)
    groups = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    return (np.bincount(groups, score) / np.bincount(groups))[groups]


def _rows(values: Array) -> Array:
    """Return what each system answered, of shape (system, answer), missing ones as infinity."""
    return np.nan_to_num(values.reshape(len(values), -1).astype(float), nan=np.inf)


def exchange_alike(draws: Array, data: Responses, rng: np.random.Generator) -> Array:
    """Let systems with the same answers change places at random in every draw.

    For draws, of shape (chain, draw, system), of resamples that favour one of them by accident, as
    questions do whose systems are shuffled.
    """
    groups = np.unique(_rows(data.values), axis=0, return_inverse=True)[1].ravel()
    if groups.max() + 1 == len(groups):
        return draws
    order = _shuffled(groups, draws.shape[0] * draws.shape[1], rng)
    return np.take_along_axis(draws, order.reshape(draws.shape), axis=-1)


def merge_noise(scores: Array) -> Array:
    """Make scores in logits, (resample, system), equal that differ by no more than a fit resolves.

    A tolerance relative to the largest score would rank the rounding of a cycle, in which all are
    0.

    Examples
    --------
    >>> merge_noise(np.array([[1e-17, 0.5, -1e-17]]))
    array([[-1.e-17,  5.e-01, -1.e-17]])
    """
    ordered = np.sort(scores, axis=-1)
    gaps = ordered[:, 1:] - ordered[:, :-1]
    close = gaps <= _RESOLUTION
    if not np.count_nonzero(close):
        return scores
    merged = scores.copy()
    for row in np.flatnonzero((close & (gaps > 0.0)).any(axis=-1)):
        starts = np.append(True, gaps[row] > _RESOLUTION)
        merged[row, np.argsort(scores[row])] = ordered[row, starts][starts.cumsum() - 1]
    return merged


@dataclass(frozen=True)
class Exchangeable:
    """Classes of systems, and of questions, that could change places.

    An objective with several maxima may have them apart; which of several equally high maxima is
    found then depends on the order of the systems. By resample: classes of systems, of shape
    (system,), and of questions, (question,); without resamples in which all differ.
    """

    classes: dict[int, tuple[Classes, Classes]]

    @classmethod
    def of(cls, right: Array, trials: Array, mean: Array) -> Self:
        """Find them by colour refinement in counts of shape (resample, system, question).

        Systems of other prior means, of shape (system,), are not alike.

        Examples
        --------
        >>> right = np.array([[[2.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 2.0]]])
        >>> Exchangeable.of(right, np.full((1, 3, 3), 2.0), np.zeros(3)).classes
        {0: (array([0, 0, 1]), array([0, 0, 1]))}
        """
        totals = np.sort(right.sum(axis=2).round(_DECIMALS), axis=1)
        kinds = np.unique(mean, return_inverse=True)[1]
        found = {}
        for row in np.flatnonzero((totals[:, 1:] == totals[:, :-1]).any(axis=1)):
            systems, questions = told_apart(kinds_of_cells(right[row], trials[row]), kinds)
            if systems.max() + 1 < len(systems):
                found[int(row)] = systems, questions
        return cls(found)

    def mean(self, point: Array) -> Array:
        """Give all members of a class its mean, in points of shape (resample, p).

        Points hold coordinates of the systems, then some of all questions, one kind after the
        other.
        """
        point = point.copy()
        for row, (systems, questions) in self.classes.items():
            n_systems = len(systems)
            blocks = [point[row, :n_systems], *point[row, n_systems:].reshape(-1, len(questions))]
            for block, members in zip(blocks, [systems] + [questions] * len(blocks), strict=False):
                block[:] = (np.bincount(members, block) / np.bincount(members))[members]
        return point

    def exchange(self, drawn: dict[str, Array], rng: np.random.Generator) -> dict[str, Array]:
        """Let the members of each class change places at random in every draw.

        `drawn` has ``score`` of shape (draw, ..., system) and parameters of shape (draw, ...,
        question).
        """
        if not self.classes:
            return drawn
        n_draws, shapes = len(drawn["score"]), {name: drawn[name].shape for name in drawn}
        flat = {name: np.array(drawn[name]) for name in drawn}
        flat = {name: each.reshape(n_draws, -1, each.shape[-1]) for name, each in flat.items()}
        for row, (systems, questions) in self.classes.items():
            orders = _shuffled(systems, n_draws, rng), _shuffled(questions, n_draws, rng)
            for name, values in flat.items():
                order = orders[name != "score"]
                values[:, row] = np.take_along_axis(values[:, row], order, axis=1)
        return {name: values.reshape(shapes[name]) for name, values in flat.items()}


def _shuffled(members: Classes, n_draws: int, rng: np.random.Generator) -> Classes:
    """Return orders that exchange members of a class, of shape (draw, member)."""
    order = np.tile(np.arange(len(members)), (n_draws, 1))
    for number in np.flatnonzero(np.bincount(members) > 1):
        places = np.flatnonzero(members == number)
        order[:, places] = rng.permuted(order[:, places], axis=1)
    return order
