"""Questions that are answered alike, fitted as one."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import distinct_columns
from bayesrank.inference.fits.bordered import joined
from bayesrank.inference.fits.item_likelihoods import Rasch
from bayesrank.inference.fits.newton import CACHE_CELLS, Optimum
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.saddles import is_higher, maximise_past_saddles
from bayesrank.inference.fits.two_sided import TwoSided

_ALL = slice(None)


@dataclass(frozen=True)
class Merged[Problem: TwoSided[Any]]:
    """A problem and the same with its like questions merged, whose parameters are equal.

    `place`, (question,), is where each question is among the merged ones; a slice of all where
    none are merged.
    """

    whole: Problem
    reduced: Problem
    place: NDArray[np.intp] | slice = _ALL

    def point(self, point: Array) -> Array:
        """Return points of the merged questions."""
        if isinstance(self.place, slice):
            return point
        u, v = self.whole.split(point)
        merged = np.empty((len(u), *self.reduced.likelihood.shape[2:]))
        merged[:, self.place] = v
        return joined(u, merged)

    def spread(self, optimum: Optimum) -> Optimum:
        """Return an optimum of merged questions as one of the questions one by one."""
        if isinstance(self.place, slice):
            return optimum
        u, v = self.reduced.split(optimum.point)
        return optimum.at(joined(u, v[:, self.place]))

    def maximise(self, start: Array) -> Optimum:
        """Climb from a point of the questions one by one."""
        return self.spread(self.reduced.maximise(self.point(start)))


def merged_questions[Problem: TwoSided[Any]](problem: Problem) -> Merged[Problem]:
    """Merge the questions of one table that are answered alike, where many are."""
    answers = problem.likelihood
    if problem.size != 1:
        return Merged(problem, problem)
    if isinstance(answers, Rasch):
        return _with_same_totals(problem)
    if 2 * problem.cells <= CACHE_CELLS:  # several go at a time, see `newton`
        return Merged(problem, problem)
    first, place = distinct_columns(np.concatenate([answers.right[0], answers.trials[0]]))
    if 2 * len(first) > len(place):
        return Merged(problem, problem)
    return merged_kinds(problem, place)


def merged_kinds[Problem: TwoSided[Any]](
    problem: Problem, place: NDArray[np.intp]
) -> Merged[Problem]:
    """Merge questions of the same kind, of one table where these are answered alike."""
    answers, first = problem.likelihood, np.unique(place, return_index=True)[1]
    counts = np.bincount(place).astype(np.float64)
    right, trials = (counts * table[..., first] for table in (answers.right, answers.trials))
    mean = np.asarray(problem.questions.mean)
    questions = replace(
        problem.questions, mean=mean[first] if mean.ndim > 1 else mean, counts=counts
    )
    likelihood = replace(answers, right=right, trials=trials)
    return _merged(problem, likelihood, counts, place, questions=questions)


def _merged[Problem: TwoSided[Any]](
    problem: Problem, likelihood: Any, counts: Array, place: NDArray[np.intp], **others: Any
) -> Merged[Problem]:
    """Merge questions of a likelihood, with what is held of their sums."""
    rows = np.moveaxis(problem.hold_v[0], 1, 0)
    held = np.zeros((len(counts), *rows.shape[1:]))
    np.add.at(held, place, rows)
    hold_v = np.moveaxis(held, 0, 1)
    if len(hold_v) > 1:  # orthogonal again
        hold_v = np.linalg.qr(hold_v.reshape(len(hold_v), -1).T)[0].T.reshape(hold_v.shape)
    pooled = problem.pooled and replace(problem.pooled, counts=counts)
    reduced = replace(
        problem, likelihood=likelihood, hold_v=hold_v[np.newaxis], pooled=pooled, **others
    )
    return Merged(problem, reduced, place)


def _with_same_totals[Problem: TwoSided[Rasch]](problem: Problem) -> Merged[Problem]:
    """Merge the questions of a complete table that have the same number right.

    Those that are left out are left out; their place is any.
    """
    answers, n_questions = problem.likelihood, problem.likelihood.asked.size
    # Merging a small table takes longer than it saves, unless many are alike.
    small = problem.cells <= CACHE_CELLS
    if small and answers.by_question.max() >= n_questions:
        return Merged(problem, problem)
    kept = np.flatnonzero(answers.asked[0])
    complete = (answers.trials[..., kept] == answers.trials.max()).all()
    n_distinct = len(set(answers.by_question[0, kept].tolist()))
    few = n_distinct == n_questions or (small and 2 * n_distinct > n_questions)
    if not kept.size or not complete or few or (problem.pooled and kept.size < n_questions):
        return Merged(problem, problem)
    right, found, counts = np.unique(
        answers.by_question[0, kept], return_inverse=True, return_counts=True
    )
    place = np.zeros(n_questions, dtype=np.intp)
    place[kept] = found
    trials = (counts * answers.trials.max()).reshape(1, 1, 1, -1)
    merged = replace(answers, by_question=counts * right[np.newaxis], trials=trials)
    return _merged(problem, merged, counts.astype(np.float64), place)


def told_apart[Problem: TwoSided[Any]](
    merged: Merged[Problem], optimum: Optimum, max_iterations: int
) -> Optimum:
    """Climb on where like questions fit better apart: one of each such kind at a time.

    An optimum of merged questions may be a saddle point of the questions one by one, where what is
    held is not held of each kind by itself. Returns where it ended, of the questions one by one.
    """
    place = merged.place
    while not isinstance(place, slice) and optimum.converged[0]:
        point = merged.spread(optimum).point
        if merged.whole.definite(point)[0]:
            break
        lowest = np.linalg.eigvalsh(merged.reduced.blocks(optimum.point).vv[0])[:, 0]
        kind = int(np.where(np.bincount(place) > 1, lowest, np.inf).argmin())
        place = place.copy()
        place[np.flatnonzero(place == kind)[:1]] = len(lowest)
        some = merged_kinds(merged.whole, place)
        start = some.point(point)
        found = maximise_past_saddles(some.reduced, start, max_iterations=max_iterations)
        levels = some.reduced.value(found.point), merged.reduced.value(optimum.point)
        if not is_higher(*(float(level[0]) for level in levels)):
            break
        merged, optimum = some, found
    return merged.spread(optimum)
