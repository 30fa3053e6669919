"""Quadratic penalties: normal priors as the kernels take them."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ScorePenalty:
    """A normal prior on zero-sum scores, one row per resample.

    Attributes
    ----------
    mean : numpy.ndarray of shape (resample, system)
        Prior means, centred.
    precision : numpy.ndarray of shape (resample,)
        1 / variance; 0 for none.
    """

    mean: Array
    precision: Array

    @classmethod
    def broadcast(
        cls, mean: ArrayLike, precision: ArrayLike, lead: tuple[int, ...], size: int
    ) -> Self:
        """Check a prior and spread it over flattened resamples.

        Parameters
        ----------
        mean : array_like, broadcastable to (..., system)
            Prior means; only their differences matter, since scores sum to zero.
        precision : array_like, broadcastable to (...)
            Prior precision, at least 0.
        lead : tuple of int
            Shape of the resample axes.
        size : int
            Number of systems.

        Returns
        -------
        ScorePenalty

        Raises
        ------
        ValueError
            If a precision is negative or not finite.
        """
        means = flattened(np.asarray(mean, dtype=np.float64), (*lead, size)).reshape(-1, size)
        precisions = checked_precision("prior_precision", precision)
        if means.any():
            means = means - means.mean(axis=-1, keepdims=True)
        return cls(means, flattened(precisions, lead))

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the penalties of some resamples."""
        return type(self)(self.mean[index], self.precision[index])

    def value(self, scores: Array) -> Array:
        """Return the penalty, of shape (resample,)."""
        return 0.5 * self.precision * ((scores - self.mean) ** 2).sum(axis=-1)

    def pull(self) -> Array:
        """Return what the penalty adds to the coefficients of the scores."""
        return self.precision[:, None] * self.mean

    def gradient(self, scores: Array) -> Array:
        """Return the gradient of the penalty, of shape (resample, system)."""
        return self.precision[:, None] * (scores - self.mean)


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
