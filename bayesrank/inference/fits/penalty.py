"""Normal and hierarchical priors, as the fits take them."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.priors import LEVEL_SD, POOLED_DF

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratic:
    """A normal prior on the coordinates of one side, the same for all its rows.

    The precision, of shape (k, k), may be singular; the mean broadcasts to (row, k). `counts`, of
    shape (row,), say how many like rows each stands for.
    """

    precision: Array
    mean: Array | float = 0.0
    counts: Array | None = None

    @cached_property
    def flat(self) -> bool:
        """Whether there is no prior."""
        return not self.precision.any()

    @property
    def by_row(self) -> Array:
        """The precision of each row, of shape (k, k) or (row, k, k)."""
        if self.counts is None:
            return self.precision
        return self.counts[:, np.newaxis, np.newaxis] * self.precision

    def at(self, x: Array) -> tuple[Array, Array]:
        """Return the log-density up to a constant, (resample,), and its gradient, like `x`."""
        gap, size = self.mean - x, len(x)
        gradient = gap @ self.precision
        if self.counts is not None:
            gradient *= self.counts[:, np.newaxis]
        return -0.5 * np.vecdot(gap.reshape(size, -1), gradient.reshape(size, -1)), gradient


class PooledSlopes(NamedTuple):
    """The log-density of :class:`Pooled` near a point, up to a constant, and its derivatives.

    Its precision is diag(t) - along c c' - s s' 2 / freedom, for t that broadcasts to (resample,
    question), c how many questions each stands for, `along` of shape (resample, 1) and s, the
    gradient by the spread, of (resample, question).
    """

    value: Array
    gradient: Array
    precision: Array
    along: Array
    by_spread: Array


@dataclass(frozen=True)
class Pooled:
    """The hierarchical prior on one coordinate of the questions, with its scale integrated out.

    Its mean is normal, and its deviations are Student's t; see
    :func:`bayesrank.models.pooled_priors.pooled`.

    Attributes
    ----------
    column : int
        Which coordinate.
    level, level_sd : float
        Prior mean and standard deviation of the mean.
    counts : numpy.ndarray of shape (question,), optional
        How many like questions each stands for.
    """

    column: int = 0
    level: float = 0.0
    level_sd: float = LEVEL_SD
    counts: Array | None = None

    def freedom(self, n_rows: int) -> float:
        """Return the degrees of freedom of the spread and its prior, for so many rows."""
        return POOLED_DF - 1.0 + (n_rows if self.counts is None else self.counts.sum())

    def at(self, v: Array) -> PooledSlopes:
        """Expand the log-density at coordinates of the questions."""
        x, each = v[..., self.column], self.counts
        freedom = self.freedom(x.shape[-1])
        n = freedom - POOLED_DF + 1.0
        of_mean = self.level_sd**-2 / n
        mean = np.add.reduce(x if each is None else each * x, axis=-1, keepdims=True) / n
        deviation, above = x - mean, mean - self.level
        far = deviation if each is None else each * deviation
        squares = POOLED_DF + np.vecdot(far, deviation)[:, np.newaxis]
        precision, pull = freedom / squares, above * of_mean
        value = (-0.5 * n) * above * pull - (0.5 * freedom) * np.log(squares)
        # What the spread takes away from the precision along the mean, and its prior adds.
        along = (precision - of_mean) / n
        by_spread = far * -precision
        if each is not None:
            pull, precision = pull * each, precision * each
        return PooledSlopes(value[:, 0], by_spread - pull, precision, along, by_spread)


def checked_precision(name: str, precision: ArrayLike) -> Array:
    """Return the precision of that name as an array; ValueError if negative or not finite."""
    if isinstance(precision, float) and 0.0 <= precision < np.inf:
        return np.array(precision)
    values = np.asarray(precision, dtype=np.float64)
    if not (np.isfinite(values) & (values >= 0.0)).all():
        raise ValueError(f"{name} must be finite and at least 0; got {precision!r}")
    return values


def flattened(values: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast an array to a shape and flatten it."""
    if values.ndim == 0:  # np.broadcast_to costs more than filling a small array
        return np.full(math.prod(shape), values)
    return np.broadcast_to(values, shape).reshape(-1)
