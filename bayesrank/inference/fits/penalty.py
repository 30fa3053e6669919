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

    The precision, of shape (k, k), may be singular; the mean broadcasts to (row, k).
    """

    precision: Array
    mean: Array | float = 0.0

    @cached_property
    def flat(self) -> bool:
        """Whether there is no prior."""
        return not self.precision.any()

    def at(self, x: Array) -> tuple[Array, Array]:
        """Return the log-density up to a constant, (resample,), and its gradient, like `x`."""
        gap = self.mean - x
        gradient = gap @ self.precision
        return -0.5 * np.einsum("bnk,bnk->b", gap, gradient), gradient


class PooledSlopes(NamedTuple):
    """The log-density of :class:`Pooled` near a point, up to a constant, and its derivatives.

    Its precision is diag(t) - C diag(s) C', for t of shape (resample, question), columns C of
    (resample, question, 2), and signs s of (resample, 2).
    """

    value: Array
    gradient: Array
    precision: Array
    columns: Array
    signs: Array


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

    def at(self, v: Array) -> PooledSlopes:
        """Expand the log-density at coordinates of the questions."""
        x = v[..., self.column]
        each = np.ones(x.shape[-1]) if self.counts is None else self.counts
        n, of_mean = each.sum(), self.level_sd**-2
        mean = x @ each / n
        deviation, above = x - mean[:, np.newaxis], mean - self.level
        far, freedom = each * deviation, POOLED_DF + n - 1.0
        squares = POOLED_DF + np.einsum("bm,bm->b", far, deviation)
        precision = freedom / squares
        bend = (precision - of_mean / n) / n
        columns = np.empty((*x.shape, 2))
        columns[..., 0] = np.sqrt(np.abs(bend))[:, np.newaxis] * each
        columns[..., 1] = (precision * (2.0 / freedom) ** 0.5)[:, np.newaxis] * far
        signs = np.ones((len(x), 2))
        signs[bend < 0.0, 0] = -1.0
        gradient = far * -precision[:, np.newaxis] - (above * of_mean / n)[:, np.newaxis] * each
        value = above * above * (-0.5 * of_mean) - 0.5 * freedom * np.log(squares)
        return PooledSlopes(value, gradient, each * precision[:, np.newaxis], columns, signs)


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
