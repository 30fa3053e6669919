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
    rows: Rows,
    sides: Rows,
    slopes: Array,
    others: Array,
    squares: Array,
    total: Array,
    fourth: Array,
) -> None:
    """Add the gradients of units in scores to their total, and squares to one triangle or other.

    `starts` (unit + 1) says where the `rows` of each unit begin, `sides` and `slopes` (2, row) are
    the scores of both systems of a row and its slopes in them, `others` (unit, other) gradients in
    the last coordinates. `squares` (p, p) has each pair of coordinates in one order, none of two
    last ones; `total` and `fourth` (p) are sums of gradients and of their fourth powers.
    """
    n_others = others.shape[1]
    size = len(total) - n_others
    gradient, seen = np.zeros(size), np.zeros(size, dtype=np.bool_)
    touched = np.empty(size, dtype=np.int64)
    for unit in range(len(starts) - 1):
        count = 0
        for row in rows[starts[unit] : starts[unit + 1]]:
            for side in range(2):
                place = sides[side, row]
                if not seen[place]:
                    seen[place] = True
                    touched[count] = place
                    count += 1
                gradient[place] += slopes[side, row]
        for one in range(count):
            i = touched[one]
            total[i] += gradient[i]
            fourth[i] += gradient[i] ** 4
            for another in range(one + 1):
                j = touched[another]
                squares[i, j] += gradient[i] * gradient[j]
            for other in range(n_others):
                squares[i, size + other] += gradient[i] * others[unit, other]
        for one in range(count):
            gradient[touched[one]] = 0.0
            seen[touched[one]] = False
