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
        Symmetric counts per pair, 0 of a system with itself.
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
    same = np.abs(totals[:, :, np.newaxis] - totals[:, np.newaxis]) <= slack[:, :, np.newaxis]
    if rows is not None:
        sums = rows @ _any_weights(rows.shape[-1])
        same &= _equal(np.broadcast_to(sums[:, :, np.newaxis], same.shape))
    if pairs is not None:
        weights = _any_weights(totals.shape[-1])
        # What a system met with the weight of another is what that one met with its own.
        same &= _equal((pairs @ weights)[:, :, np.newaxis] + weights[:, np.newaxis] * pairs)
    return same.argmax(axis=-1)


def _any_weights(size: int) -> Array:
    """Return weights with which sums of counts are equal only where all the counts are."""
    return np.random.default_rng(0).uniform(1.0, 2.0, size)


def _equal(sums: Array) -> NDArray[np.bool_]:
    """Say which sums of shape (resample, system, system) are those of the pair turned around."""
    return np.abs(sums - sums.transpose(0, 2, 1)) <= _ROUNDING * np.abs(sums)


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
    for row in np.flatnonzero(noisy):
        starts = np.append(True, gaps[row] > _RESOLUTION)
        merged[row, np.argsort(scores[row])] = ordered[row, starts][starts.cumsum() - 1]
    return merged
