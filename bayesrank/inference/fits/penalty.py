"""Precisions of normal priors, as the fits take them."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def checked_precision(name: str, precision: ArrayLike) -> Array:
    """Return a precision as an array, or raise.

    Parameters
    ----------
    name : str
        Name of the argument, for the message.
    precision : array_like
        1 / variance.

    Returns
    -------
    numpy.ndarray

    Raises
    ------
    ValueError
        If a value is negative or not finite.
    """
    if isinstance(precision, float) and 0.0 <= precision < np.inf:
        return np.array(precision)
    values = np.asarray(precision, dtype=np.float64)
    if not (np.isfinite(values) & (values >= 0.0)).all():
        raise ValueError(f"{name} must be finite and at least 0; got {precision!r}")
    return values


def flattened(values: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast an array to a shape and flatten it.

    Parameters
    ----------
    values : numpy.ndarray
        Broadcastable to `shape`.
    shape : tuple of int
        The shape.

    Returns
    -------
    numpy.ndarray of one axis
    """
    if values.ndim == 0:  # np.broadcast_to costs more than filling a small array
        return np.full(math.prod(shape), values)
    return np.broadcast_to(values, shape).reshape(-1)
