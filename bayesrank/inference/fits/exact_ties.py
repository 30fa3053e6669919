"""Exact ties: systems that the sufficient statistics cannot tell apart."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Sums of the same counts in another order differ by rounding alone.
_ROUNDING = 1e-12
# Converged log-strengths are good to about 1e-14; what differs by less than this differs by noise.
_RESOLUTION = 1e-12


def settle_ties(
    scores: Array, totals: Array, pairs: Array | None = None, *, rows: Array | None = None
) -> Array:
    """Make the scores of a converged fit exactly equal where they must be.

    Systems that the data cannot tell apart get the score of the first of them, and scores that
    differ by less than the resolution of the fit become equal.

    Parameters
    ----------
    scores : numpy.ndarray of shape (resample, system)
        Converged scores.
    totals, pairs, rows
        Sufficient statistics, as in :func:`interchangeable`.

    Returns
    -------
    numpy.ndarray of shape (resample, system)

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
    totals: Array, pairs: Array | None = None, *, rows: Array | None = None
) -> NDArray[np.intp] | None:
    """Return, for each system, the first system that the data cannot tell from it.

    Two systems are interchangeable when swapping them leaves the sufficient statistics as they
    are: equal totals and, where the likelihood also depends on a symmetric table of pair counts,
    equal counts against every third system. A strictly concave objective then has its maximum
    where their scores are equal. Ties that follow from a longer symmetry (a cycle of three) or
    from no symmetry at all are not found; see :func:`merge_noise`.

    Parameters
    ----------
    totals : numpy.ndarray of shape (resample, system)
        The statistic that multiplies each system's score.
    pairs : numpy.ndarray of shape (resample, system, system), optional
        Symmetric counts per pair.
    rows : numpy.ndarray of shape (resample, system, column), optional
        Further statistics of each system, all of which must agree.

    Returns
    -------
    numpy.ndarray of intp and shape (resample, system), or None
        Index of the representative; None when all totals differ.

    Examples
    --------
    >>> interchangeable(np.array([[3.0, 1.0, 3.0]]))
    array([[0, 1, 0]])
    """
    # Sorting finds equal totals in L log L; most data have few.
    ordered = np.sort(totals, axis=-1)
    slack = _ROUNDING * np.maximum(ordered[:, -1:], -ordered[:, :1])
    if not (ordered[:, 1:] - ordered[:, :-1] <= slack).any():
        return None
    first = _runs(totals, slack)
    if rows is not None:
        first = _where_same_rows(first, rows)
    if pairs is not None:
        uneven = np.flatnonzero(~_even(pairs))
        if uneven.size:
            first[uneven] = _where_same_opponents(totals[uneven], pairs[uneven], slack[uneven])
    return first


def _runs(totals: Array, slack: Array) -> NDArray[np.intp]:
    """Return, for each system, the first of the systems with the same total."""
    order = np.argsort(totals, axis=-1, kind="stable")
    ordered = np.take_along_axis(totals, order, axis=-1)
    position = np.broadcast_to(np.arange(totals.shape[-1]), totals.shape).copy()
    position[:, 1:][ordered[:, 1:] - ordered[:, :-1] <= slack] = 0
    leader = np.take_along_axis(order, np.maximum.accumulate(position, axis=-1), axis=-1)
    first = np.empty_like(order)
    np.put_along_axis(first, order, leader, axis=-1)
    return first


def _where_same_rows(first: NDArray[np.intp], rows: Array) -> NDArray[np.intp]:
    """Keep the representatives whose rows agree; the others stand alone."""
    if (rows == rows[:, :1]).all():
        return first
    gaps = np.abs(rows - np.take_along_axis(rows, first[:, :, None], axis=1)).max(axis=-1)
    alone = gaps > _ROUNDING * np.abs(rows).max(axis=-1)
    return np.where(alone, np.arange(first.shape[-1]), first)


def _even(pairs: Array) -> NDArray[np.bool_]:
    """Say in which tables all pairs have the same count."""
    size = pairs.shape[-1]
    typical = pairs.sum(axis=(-1, -2)) / max(size * (size - 1), 1)
    off = np.abs(pairs - typical[:, None, None]) <= _ROUNDING * typical[:, None, None]
    return (off | np.eye(size, dtype=bool)).all(axis=(-1, -2))


def _where_same_opponents(totals: Array, pairs: Array, slack: Array) -> NDArray[np.intp]:
    """Return representatives among systems with equal totals and equal counts per opponent."""
    size = totals.shape[-1]
    first = np.broadcast_to(np.arange(size), totals.shape).copy()
    close = np.abs(totals[:, :, None] - totals[:, None, :]) <= slack[:, :, None]
    batch, low, high = np.nonzero(close & np.tri(size, k=-1, dtype=bool).T)
    same = _same_opponents(pairs, batch, low, high)
    np.minimum.at(first, (batch[same], high[same]), low[same])
    return np.take_along_axis(first, first, axis=-1)


def _same_opponents(
    pairs: Array, batch: NDArray[np.intp], low: NDArray[np.intp], high: NDArray[np.intp]
) -> NDArray[np.bool_]:
    gaps = np.abs(pairs[batch, low] - pairs[batch, high])
    every = np.arange(len(batch))
    gaps[every, low] = 0.0  # counts against each other are symmetric already
    gaps[every, high] = 0.0
    return gaps.max(axis=-1) <= _ROUNDING * np.abs(pairs[batch, low]).max(axis=-1)


def merge_noise(scores: Array) -> Array:
    """Make scores equal that differ by no more than the resolution of a converged fit.

    This completes the ties that :func:`interchangeable` cannot see, such as a cycle of three in
    which all scores are 0 up to rounding: a tolerance relative to the largest score would rank
    that rounding.

    Parameters
    ----------
    scores : numpy.ndarray of shape (resample, system)
        Converged scores in logits.

    Returns
    -------
    numpy.ndarray of shape (resample, system)

    Examples
    --------
    >>> merge_noise(np.array([[1e-17, 0.5, -1e-17]]))
    array([[-1.e-17,  5.e-01, -1.e-17]])
    """
    ordered = np.sort(scores, axis=-1)
    gaps = ordered[:, 1:] - ordered[:, :-1]
    noisy = ((gaps > 0.0) & (gaps <= _RESOLUTION)).any(axis=-1)
    if not noisy.any():
        return scores
    merged = scores.copy()
    rows = np.flatnonzero(noisy)
    order = np.argsort(scores[rows], axis=-1)
    position = np.arange(scores.shape[-1])
    starts = np.ones(order.shape, dtype=bool)
    starts[:, 1:] = gaps[rows] > _RESOLUTION
    lowest = np.maximum.accumulate(np.where(starts, position, 0), axis=-1)
    values = np.take_along_axis(ordered[rows], lowest, axis=-1)
    part = np.empty_like(values)
    np.put_along_axis(part, order, values, axis=-1)
    merged[rows] = part
    return merged
