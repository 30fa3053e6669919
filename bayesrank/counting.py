"""Wins and ties between systems, and orders of counts that do not depend on labels."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches

# float32 holds every whole number up to here, so that smaller counts are exact in it.
_EXACT_IN_FLOAT32 = 2**24
# Counts that differ in further decimals are sums of the same in another order.
_DECIMALS = 9


def distinct_columns(table: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first of each kind of equal columns, and the kind of every column.

    Kinds are in the order in which their columns sort, by the first row first. The numbers, or
    flags, are at least 0.

    Examples
    --------
    >>> distinct_columns(np.array([[2.0, 1.0, 2.0], [0.0, 5.0, 0.0]]))
    (array([1, 0]), array([1, 0, 1]))
    """
    keys = _column_keys(table)
    order = keys.argsort(kind="stable")
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = keys[order[1:]] != keys[order[:-1]]
    kinds = np.empty(len(order), dtype=np.intp)
    kinds[order] = np.cumsum(begins) - 1
    return order[begins], kinds


def _column_keys(table: NDArray[Any]) -> NDArray[np.void]:
    """Return the bytes of each column, the most significant first, which sort as its numbers do.

    Sorting them takes half of the time of ``numpy.lexsort`` for tens of rows and columns, a
    twentieth for hundreds.
    """
    # Exact for whole numbers below 2**53.
    rows = np.packbits(table, axis=0).T if table.dtype == np.bool_ else table.T.astype(">f8")
    rows = np.ascontiguousarray(rows)
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0]


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
    # Sorting is stable, and by the last row first.
    rows = np.concatenate([trials[systems], right[systems]])[::-1]
    return systems, _column_keys(rows).argsort(kind="stable")


def compare_trials(
    levels: NDArray[np.int8], weights: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties of paired trials, (..., system, opponent), with zero diagonals.

    ``wins[..., i, j]`` sums the trials in which i's level is above j's. In `levels`, (system,
    question, trial), higher is better, and negative is missing. `weights`, (resample, question or
    1, trial or 1), say how often each trial counts in each resample, or all trials of a question,
    or each trial on all questions; once by default.
    """
    if weights is not None:
        return _compare_weighted_trials(levels, weights)
    flat = levels.reshape(len(levels), -1)
    if flat.min(initial=0) >= 0 and flat.max(initial=0) <= 1:
        return _compare_complete_binary(flat, _exact_type(flat.shape[1]))
    return _compare_levels(flat)


def compare_trials_by_question(
    levels: NDArray[np.int8],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties on each question, (question, ...), as :func:`compare_trials`."""
    return _compare_levels(levels.swapaxes(0, 1))


def compare_shared_trials(
    levels: NDArray[np.int8], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties of weighted paired trials; a pair has the trials that both systems share.

    As :func:`compare_trials`; weights of a question are on any scale. A pair of which all trials of
    a question have no weight keeps them.
    """
    n_systems = len(levels)
    one, other = np.triu_indices(n_systems, 1)
    sums, compared = np.zeros((2, len(weights), len(one))), np.zeros(len(one))
    for question in range(levels.shape[1]):
        above, below, tied = _results(levels[one, question], levels[other, question])
        both = above | below | tied
        drawn, n = weights[:, question], both.sum(axis=1)
        scale = drawn @ both.T.astype(np.float64)
        lacking = (scale <= 0.0) & (n > 0)
        np.divide(n, scale, out=scale, where=scale > 0.0)
        for total, result in zip(sums, (above, below), strict=True):
            found = drawn @ result.T.astype(np.float64)
            found *= scale
            total += np.where(lacking, result.sum(axis=1), found) if lacking.any() else found
        compared += n
    wins, ties = np.zeros((2, len(weights), n_systems, n_systems))
    wins[:, one, other], wins[:, other, one] = sums
    # What neither won; rounding may leave a little less than nothing.
    ties[:, one, other] = np.maximum(compared - sums[0] - sums[1], 0.0)
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
    dtype = _exact_type(levels.shape[-1])
    for level in range(int(levels.max(initial=0)) + 1):
        at = (levels == level).astype(dtype)
        if level:
            below = ((levels >= 0) & (levels < level)).astype(dtype)
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


def _compare_weighted_trials(
    levels: NDArray[np.int8], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count wins and ties of weighted trials, of shape (resample, system, opponent)."""
    wins, ties = np.zeros((2, len(weights), len(levels), len(levels)))
    if levels.min(initial=0) < 0 or levels.max(initial=0) > 1:
        for i, j, won, lost, tied in _weighted_pairs(levels, weights, _results):
            wins[:, i, j], wins[:, j, i] = won, lost
            ties[:, i, j] = ties[:, j, i] = tied
        return wins, ties
    # From how often both were right: one product instead of three.
    total = np.broadcast_to(weights, (len(weights), *levels.shape[1:])).sum(axis=(1, 2))
    (own,) = _products(weights, [levels == 1])
    for i, j, both in _weighted_pairs(levels, weights, lambda one, other: [one & other]):
        wins[:, i, j], wins[:, j, i] = own[:, i] - both, own[:, j] - both
    ties += total[:, np.newaxis, np.newaxis] - wins - np.swapaxes(wins, -1, -2)
    # Rounding leaves a trace of what never occurs, which would pass for a win.
    flat = levels.reshape(len(levels), -1)
    won, tied = _compare_complete_binary(flat, _exact_type(flat.shape[1]))
    wins[:, won == 0.0] = 0.0
    ties[:, tied == 0.0] = 0.0
    # Nor can a difference be negative.
    return np.maximum(wins, 0.0, out=wins), np.maximum(ties, 0.0, out=ties)


def _results(one: NDArray[np.int8], other: NDArray[np.int8]) -> list[NDArray[np.bool_]]:
    """Return where the first level is above the second, below it, and equal."""
    both = (one >= 0) & (other >= 0)
    return [(one > other) & both, (one < other) & both, (one == other) & both]


def _weighted_pairs(
    levels: NDArray[np.int8],
    weights: NDArray[np.float64],
    results: Callable[[NDArray[np.int8], NDArray[np.int8]], list[NDArray[Any]]],
) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield blocks of pairs of systems, and their weighted results, each (resample, pair).

    Tables of all pairs by trial would not fit into memory.
    """
    one, other = np.triu_indices(len(levels), 1)
    for pairs in batches(len(one), levels[0].size):
        i, j = one[pairs], other[pairs]
        yield i, j, *_products(weights, results(levels[i], levels[j]))


def _products(
    weights: NDArray[np.float64], tables: list[NDArray[Any]]
) -> list[NDArray[np.float64]]:
    """Return weighted sums of tables (row, question, trial), each of shape (resample, row)."""
    found = []
    for table in tables:
        shared = tuple(axis for axis in (1, 2) if weights.shape[axis] < table.shape[axis])
        by_weight = table.sum(axis=shared, dtype=np.float64) if shared else table.astype(np.float64)
        found.append(weights.reshape(len(weights), -1) @ by_weight.reshape(len(table), -1).T)
    return found


def sum_over_levels(counts: NDArray[Any]) -> NDArray[Any]:
    """Sum over a short last axis, which takes np.sum several times as long; of the same type.

    Examples
    --------
    >>> sum_over_levels(np.array([[1, 2], [0, 4]]))
    array([3, 4])
    """
    return reduce(np.add, np.moveaxis(counts, -1, 0))


def compare_cells(
    counts: NDArray[np.int64] | NDArray[np.float64], trials: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average wins and ties over all cross-trial pairs of each question, (..., system, opponent).

    Those expected if as many random pairs of trials were compared as the side with fewer trials
    has; zero diagonals. `counts`, (..., system, question, level), are trials at each level, higher
    is better; resampled counts may be fractions. `trials`, (system, question), are those that each
    cell stands for, by default the sum of its counts.
    """
    size = sum_over_levels(counts) if trials is None else trials
    is_whole = trials is None and counts.dtype.kind in "iu"
    if is_whole and ((size == size.max(initial=0)) | (size == 0)).all():
        return _compare_equal_cells(counts, size)
    shares = counts / np.maximum(sum_over_levels(counts), np.finfo(float).tiny)[..., np.newaxis]
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
