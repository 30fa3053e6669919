"""Sums of outer products of sparse gradients over units, compiled."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.integer[Any]]


@njit(cache=True, nogil=True)
def add_units(
    starts: Rows,
    sides: tuple[Rows, Rows],
    slopes: tuple[Array, Array],
    others: Array,
    squares: Array,
    total: Array,
    fourth: Array,
) -> None:
    """Add the gradients of units to their total, and squares to one triangle or the other.

    Parameters
    ----------
    starts : numpy.ndarray of int and shape (unit + 1,)
        Where the rows of each unit begin.
    sides, slopes : tuple of two numpy.ndarray of shape (row,)
        The coordinates of both systems of a row, and its slopes in them.
    others : numpy.ndarray of shape (row, other)
        Its slopes in the last coordinates.
    squares : numpy.ndarray of shape (p, p)
        Each pair of coordinates is added in one order.
    total, fourth : numpy.ndarray of shape (p,)
        Sums of gradients and of their fourth powers.
    """
    p, n_others = len(total), others.shape[1]
    gradient, seen = np.zeros(p), np.zeros(p, dtype=np.bool_)
    touched = np.empty(p, dtype=np.int64)
    touched[:n_others] = np.arange(p - n_others, p)
    for unit in range(len(starts) - 1):
        count = n_others
        for row in range(starts[unit], starts[unit + 1]):
            for side in range(2):
                place = sides[side][row]
                if not seen[place]:
                    seen[place] = True
                    touched[count] = place
                    count += 1
                gradient[place] += slopes[side][row]
            for other in range(n_others):
                gradient[p - n_others + other] += others[row, other]
        for one in range(count):
            i = touched[one]
            total[i] += gradient[i]
            fourth[i] += gradient[i] ** 4
            for another in range(one + 1):
                j = touched[another]
                squares[i, j] += gradient[i] * gradient[j]
        for one in range(count):
            gradient[touched[one]] = 0.0
            seen[touched[one]] = False
