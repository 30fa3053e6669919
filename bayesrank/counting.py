"""Counts of outcomes by category, and of wins and ties between systems."""

from collections.abc import Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.validation import MISSING

if TYPE_CHECKING:
    from bayesrank.responses import Responses

# float32 holds every whole number up to here, so that smaller counts are exact in it.
_EXACT_IN_FLOAT32 = 2**24

# Outcomes turned into float32 at a time, which is 1 MB.
_COUNTED_AT_ONCE = 2**18

# Doubles in a table of all pairs of systems by trial: 64 MB.
_LARGEST_PAIR_TABLE = 2**23
# Counts that differ in further decimals are sums of the same in another order.
_DECIMALS = 9


def distinct_columns(table: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first of each kind of equal columns, and the kind of every column.

    Kinds are in the order in which their columns sort, by the first row first.

    Examples
    --------
    >>> distinct_columns(np.array([[2.0, 1.0, 2.0], [0.0, 5.0, 0.0]]))
    (array([1, 0]), array([1, 0, 1]))
    """
    rows = table[np.ptp(table, axis=1) > 0]
    # Sorting is stable, and sorts by the last key first.
    order = np.lexsort(rows[::-1]) if len(rows) else np.arange(table.shape[1])
    ordered = rows[:, order]
    begins = np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))
    kinds = np.empty(len(order), dtype=np.intp)
    kinds[order] = np.cumsum(begins) - 1
    return order[begins], kinds


def kinds_of_cells(right: NDArray[Any], trials: NDArray[Any]) -> NDArray[np.intp]:
    """Return which pair of right answers and trials each cell has, of shape (system, question)."""
    counts = (right + 1j * trials).round(_DECIMALS)  # sorted by the real part first
    return np.unique(counts, return_inverse=True)[1].reshape(right.shape)


def told_apart(
    cells: NDArray[np.intp], rows: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Divide rows, perhaps of several kinds, and columns into kinds, by colour refinement [1]_.

    Rows are distinguished by what they hold in columns of each kind, and columns likewise, until no
    more kinds appear. `cells` are numbered from 0, of shape (row, column).

    References
    ----------
    .. [1] B. Weisfeiler and A. Leman. The reduction of a graph to canonical form and the algebra
       which appears therein. Nauchno-Technicheskaya Informatsia 2 (1968).
    """
    rows = np.zeros(len(cells), dtype=np.intp) if rows is None else rows
    columns = np.zeros(cells.shape[1], dtype=np.intp)
    n_before, n_kinds = -1, 0
    while n_kinds > n_before:
        n_before = n_kinds
        rows = _refined(rows, cells, columns)
        columns = _refined(columns, cells.T, rows)
        n_kinds = int(rows.max() + columns.max())
    return rows, columns


def _refined(
    own: NDArray[np.intp], cells: NDArray[np.intp], others: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Divide kinds by what is found how often in cells with which others."""
    held = np.sort(cells * (others.max() + 1) + others, axis=1)
    return distinct_columns(np.column_stack([own, held]).T)[1]


def canonical_order(
    cells: NDArray[np.intp], rows: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return orders of rows and of columns that lead to the same table from any permutation of it.

    Rows may be of several kinds to begin with. Of rows that differ and yet are of one kind
    (:func:`told_apart`), as those of a Latin square, one is set apart, and then the others by it.
    Equal rows stay in their order.

    Examples
    --------
    >>> table = np.array([[1, 0, 1], [0, 0, 1]])
    >>> rows, columns = canonical_order(table)
    >>> table[rows][:, columns]
    array([[0, 0, 1],
           [0, 1, 1]])
    """
    equal = distinct_columns(cells.T)[1]
    while True:
        rows, columns = told_apart(cells, rows)
        first, last = np.full(len(rows), len(rows)), np.zeros(len(rows), dtype=np.intp)
        np.minimum.at(first, rows, equal)
        np.maximum.at(last, rows, equal)
        mixed = np.flatnonzero(first[rows] < last[rows])
        if not len(mixed):
            return rows.argsort(kind="stable"), columns.argsort(kind="stable")
        rows = 2 * rows
        rows[mixed[rows[mixed].argmin()]] += 1


def order_of_counts(
    right: NDArray[Any], trials: NDArray[Any], kinds: NDArray[np.intp] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return a canonical order of systems, perhaps of several kinds, and of questions.

    Counts are of shape (system, question). The numbers right sort the systems where they differ.

    Examples
    --------
    >>> right = np.array([[2, 1, 2], [0, 0, 1]])
    >>> order_of_counts(right, np.full((2, 3), 2))
    (array([1, 0]), array([1, 0, 2]))
    """
    totals = right.sum(axis=1).round(_DECIMALS)
    systems = totals.argsort()
    if not np.diff(totals[systems]).all():
        return canonical_order(kinds_of_cells(right, trials), kinds)
    return systems, np.lexsort(np.concatenate([trials[systems], right[systems]]))


def count_categories(outcomes: NDArray[np.int8], n_categories: int) -> NDArray[np.int64]:
    """Count the trials in each category, of shape (system, question, category)."""
    counts = np.empty((*outcomes.shape[:-1], n_categories), dtype=np.int64)
    counts[..., 0] = count_observed(outcomes)
    for category in range(1, n_categories):
        counts[..., category] = _count_equal(outcomes, category)
        counts[..., 0] -= counts[..., category]
    return counts


def count_observed(outcomes: NDArray[np.int8]) -> NDArray[np.int64]:
    """Count the trials that are not missing, of shape (system, question)."""
    n_trials = outcomes.shape[-1]
    if outcomes.min(initial=0) != MISSING:
        return np.full(outcomes.shape[:-1], n_trials)
    return n_trials - _count_equal(outcomes, MISSING)


def _count_equal(outcomes: NDArray[np.int8], category: int) -> NDArray[np.int64]:
    """Count the trials in one category, of shape (system, question)."""
    n_trials = outcomes.shape[-1]
    if n_trials > _COUNTED_AT_ONCE:
        return np.count_nonzero(outcomes == category, axis=-1)
    # A product with ones, exact here, is several times faster than a sum along a short last axis.
    rows, ones = outcomes.reshape(-1, n_trials), np.ones(n_trials, dtype=np.float32)
    counts = np.empty(len(rows), dtype=np.int64)
    step = max(1, _COUNTED_AT_ONCE // max(n_trials, 1))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        counts[block] = (rows[block] == category).astype(np.float32) @ ones
    return counts.reshape(outcomes.shape[:-1])


def compare_trials(
    levels: NDArray[np.int8], weights: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties of paired trials.

    Parameters
    ----------
    levels : numpy.ndarray of int8 and shape (system, question, trial)
        Higher is better, negative is missing.
    weights : numpy.ndarray of shape (resample, question, trial), optional
        How often each trial counts in each resample; once by default.

    Returns
    -------
    wins, ties : numpy.ndarray of shape (..., system, opponent)
        ``wins[..., i, j]`` sums the trials in which i's level is above j's; zero diagonals.
    """
    flat = levels.reshape(len(levels), -1)
    if weights is not None:
        return _compare_weighted_trials(flat, weights.reshape(len(weights), -1))
    if flat.min(initial=0) >= 0 and flat.max(initial=0) <= 1:
        return _compare_complete_binary(flat, _exact_type(flat.shape[1]))
    return _compare_levels(flat)


def compare_trials_by_question(
    levels: NDArray[np.int8],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties of paired trials on each question.

    Parameters
    ----------
    levels : numpy.ndarray of int8 and shape (system, question, trial)
        Higher is better, negative is missing.

    Returns
    -------
    wins, ties : numpy.ndarray of shape (question, system, opponent)
        As in :func:`compare_trials`.
    """
    return _compare_levels(levels.swapaxes(0, 1))


def compare_shared_trials(
    levels: NDArray[np.int8], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties of weighted paired trials; a pair has the trials that both systems share.

    Parameters
    ----------
    levels, weights
        As in :func:`compare_trials`; weights of a question are on any scale, but positive.

    Returns
    -------
    wins, ties : numpy.ndarray of shape (resample, system, opponent)
        As in :func:`compare_trials`.
    """
    n_systems, n_questions, n_trials = levels.shape
    one, other = np.triu_indices(n_systems, 1)
    won, lost = np.zeros((2, len(weights), len(one)))
    compared = np.zeros(len(one))
    for question in range(n_questions):
        a, b = levels[one, question].T, levels[other, question].T
        both = (a >= 0) & (b >= 0)
        n = both.sum(axis=0)
        results = np.stack([(a > b) & both, (a < b) & both, both], axis=1, dtype=np.float64)
        found = weights[:, question] @ results.reshape(n_trials, -1)
        above, below, total = found.reshape(len(weights), 3, -1).swapaxes(0, 1)
        scale = n / np.where(n > 0, total, 1.0)
        won += scale * above
        lost += scale * below
        compared += n
    wins, ties = np.zeros((2, len(weights), n_systems, n_systems))
    wins[:, one, other], wins[:, other, one] = won, lost
    # What neither won; rounding may leave a little less than nothing.
    ties[:, one, other] = np.maximum(compared - won - lost, 0.0)
    return wins, ties + ties.swapaxes(1, 2)


def _exact_type(n_trials: int) -> type[np.floating]:
    """Return the fastest type that holds counts of so many trials exactly."""
    return np.float32 if n_trials < _EXACT_IN_FLOAT32 else np.float64


def _compare_levels(
    levels: NDArray[np.int8],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties of levels of shape (..., system, trial), which may be missing."""
    shape = (*levels.shape[:-1], levels.shape[-2])
    wins, ties = np.zeros((2, *shape))
    for at, below in _levels_and_below(levels, _exact_type(levels.shape[-1])):
        if below is not None:
            wins += at @ below.swapaxes(-1, -2)
        ties += at @ at.swapaxes(-1, -2)
    _clear_diagonal(ties)
    return wins, ties


def _compare_complete_binary(
    flat: NDArray[np.int8], dtype: type[np.floating]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties from how often both were right: one symmetric product does it all."""
    right = flat.astype(dtype)
    both = (right @ right.T).astype(np.float64)
    wins = np.diagonal(both)[:, np.newaxis] - both
    ties = flat.shape[1] - wins - wins.T
    _clear_diagonal(ties)
    return wins, ties


def _levels_and_below(
    levels: NDArray[np.int8], dtype: type[np.floating]
) -> Iterator[tuple[NDArray[np.floating], NDArray[np.floating] | None]]:
    """Yield for every level who is at it and who is observed below it, in the levels' shape.

    Nobody is below level 0.
    """
    for level in range(int(levels.max(initial=0)) + 1):
        below = ((levels >= 0) & (levels < level)).astype(dtype) if level else None
        yield (levels == level).astype(dtype), below


def _compare_weighted_trials(
    flat: NDArray[np.int8], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties of weighted trials, of shape (resample, system, opponent)."""
    n_systems, n_trials = flat.shape
    if flat.min(initial=0) >= 0 and flat.max(initial=0) <= 1:
        return _compare_weighted_complete_binary(flat, weights)
    shape = (len(weights), n_systems, n_systems)
    wins, ties = np.zeros((2, *shape))
    if n_systems**2 * n_trials <= _LARGEST_PAIR_TABLE:
        # One product with the table of pairs instead of one small product per resample.
        one, other = np.nonzero(~np.eye(n_systems, dtype=bool))
        above = (flat[one] > flat[other]) & (flat[other] >= 0)
        wins[:, one, other] = weights @ above.T.astype(np.float64)
        compared = weights.sum(axis=1)[:, np.newaxis]
        if flat.min(initial=0) < 0:
            both = (flat[one] >= 0) & (flat[other] >= 0)
            compared = weights @ both.T.astype(np.float64)
        # What neither won; rounding may leave a little less than nothing.
        tied = compared - wins[:, one, other] - wins[:, other, one]
        ties[:, one, other] = np.maximum(tied, 0.0)
    else:
        for at, below in _levels_and_below(flat, np.float64):
            for b, row in enumerate(weights):
                if below is not None:
                    wins[b] += (at * row) @ below.T
                ties[b] += (at * row) @ at.T
    _clear_diagonal(ties)
    return wins, ties


def _compare_weighted_complete_binary(
    flat: NDArray[np.int8], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count weighted wins and ties from how often both were right, one pair in two of them."""
    n_systems, n_trials = flat.shape
    right = flat.astype(np.float64)
    one, other = np.triu_indices(n_systems)
    both = np.empty((len(weights), n_systems, n_systems))
    step = max(1, _LARGEST_PAIR_TABLE // max(n_trials, 1))
    for start in range(0, len(one), step):
        i, j = one[start : start + step], other[start : start + step]
        both[:, i, j] = both[:, j, i] = weights @ (right[i] * right[j]).T
    wins = np.einsum("bii->bi", both)[:, :, np.newaxis] - both
    ties = weights.sum(axis=-1)[:, np.newaxis, np.newaxis] - wins - np.swapaxes(wins, -1, -2)
    # Rounding leaves a trace of what never occurs, which would pass for a win.
    won, tied = _compare_complete_binary(flat, np.float64)
    wins[:, won == 0.0] = 0.0
    ties[:, tied == 0.0] = 0.0
    # Nor can a difference be negative.
    return np.maximum(wins, 0.0, out=wins), np.maximum(ties, 0.0, out=ties)


def compare_cells(
    counts: NDArray[np.int64] | NDArray[np.float64], trials: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average wins and ties over all cross-trial pairs of each question.

    Parameters
    ----------
    counts : numpy.ndarray of shape (..., system, question, level)
        Trials at each level, higher is better; resampled counts may be fractions.
    trials : numpy.ndarray of shape (system, question), optional
        Number of trials that each cell stands for; the sum of its counts by default.

    Returns
    -------
    wins, ties : numpy.ndarray of shape (..., system, opponent)
        Expected wins and ties if as many random pairs of trials were compared as the side with
        fewer trials has; zero diagonals.
    """
    # A sum along a short last axis takes several times as long as one over its slices.
    size = reduce(np.add, np.moveaxis(counts, -1, 0)) if trials is None else trials
    is_whole = trials is None and counts.dtype.kind in "iu"
    if is_whole and ((size == size.max(initial=0)) | (size == 0)).all():
        return _compare_equal_cells(counts, size)
    shares = counts / np.maximum(counts.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
    # Not the sum less the share itself, in which a small share below would be lost.
    below = np.zeros_like(shares)
    below[..., 1:] = np.cumsum(shares[..., :-1], axis=-1)
    *batch, n_systems, n_questions, n_levels = counts.shape
    wins, ties = np.zeros((2, *batch, n_systems, n_systems))
    # min(a, b) is the sum over thresholds t of [a >= t][b >= t] times the step up to t, which
    # makes ragged data a short sum of matrix products.
    thresholds = np.unique(size[size > 0])
    for step, threshold in zip(np.diff(thresholds, prepend=0), thresholds, strict=True):
        has = np.asarray(size >= threshold, dtype=np.float64)[..., np.newaxis]
        flat = (*batch, n_systems, n_questions * n_levels)
        at, under = (shares * has).reshape(flat), (below * has).reshape(flat)
        wins += step * (at @ np.swapaxes(under, -1, -2))
        ties += step * (at @ np.swapaxes(at, -1, -2))
    _clear_diagonal(wins)
    _clear_diagonal(ties)
    return wins, (ties + np.swapaxes(ties, -1, -2)) / 2


def _compare_equal_cells(
    counts: NDArray[Any], trials: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compare cells that all have as many trials, or none, in whole numbers."""
    *batch, n_systems, n_questions, n_levels = counts.shape
    n_trials = max(int(trials.max(initial=1)), 1)
    dtype = _exact_type(n_questions * n_trials**2)
    at, below = np.zeros((2, *batch, n_systems, n_questions, n_levels - 1), dtype=dtype)
    at[:], below[:] = counts[..., 1:], counts[..., :-1]
    for level in range(1, n_levels - 1):
        below[..., level] += below[..., level - 1]
    flat = (*batch, n_systems, n_questions * (n_levels - 1))
    wins = (at.reshape(flat) @ np.swapaxes(below.reshape(flat), -1, -2)).astype(np.float64)
    seen = (trials > 0).astype(dtype)
    compared = n_trials**2 * (seen @ np.swapaxes(seen, -1, -2)).astype(np.float64)
    ties = compared - wins - np.swapaxes(wins, -1, -2)
    _clear_diagonal(wins)
    _clear_diagonal(ties)
    return wins / n_trials, ties / n_trials


def _clear_diagonal(matrices: NDArray[np.float64]) -> None:
    diagonal = np.arange(matrices.shape[-1])
    matrices[..., diagonal, diagonal] = 0.0


def prior_counts(data: "Responses") -> NDArray[np.int64] | None:
    """Return counts of earlier outcomes, of shape (system or 1, question, category), or None."""
    sets = data.prior_sets
    return None if sets is None else count_categories(sets, data.n_categories)
