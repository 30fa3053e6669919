"""Batches of linear systems, of which some may be singular."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def solve_or_nan(matrix: Array, right: Array) -> Array:
    """Solve a batch of linear systems; singular ones become NaN and leave the others alone.

    Parameters
    ----------
    matrix : numpy.ndarray of shape (resample, p, p)
        Matrices.
    right : numpy.ndarray of shape (resample, p, column)
        Right-hand sides.

    Returns
    -------
    numpy.ndarray of shape (resample, p, column)
    """
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.stack([_one_or_nan(*pair) for pair in zip(matrix, right, strict=True)])


def _one_or_nan(matrix: Array, right: Array) -> Array:
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)
