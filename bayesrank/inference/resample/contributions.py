"""The table of contributions: how much each unit of the data adds to each score.

Contributions come from one Newton step, from a fit to the other units, or from the ranker without
the unit. Whatever they come from, the rows of a stratum of n units (all clusters of questions; the
trials of one cell) vary around their mean, and the columns of the table tell covariance,
acceleration and degrees of freedom by the formulas of docs/uncertainty.md.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Scores and their spread are rounded by less, relative to their size.
ROUNDING = 1e-9
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Contributions:
    """How far what each unit adds to each score is from the mean of its stratum."""

    # (unit, system), scaled so that their products add up to the covariance: by the root of
    # n / (n - 1) in a stratum of n.
    deviations: Array
    # Degrees of freedom of the covariance: units less strata.
    freedom: float

    @classmethod
    def of(
        cls, added: Array, strata: NDArray[np.integer] | None = None, *, left_out: bool = False
    ) -> Self:
        """Build the table from what each unit adds.

        Rows of shape (unit, system) are contributions, for example influences; or, if `left_out`,
        scores without a unit, which moves them by its part of n - 1 as it moves a mean, and the
        other way. Units of a stratum vary around one mean, all of them by default.
        """
        stratum = np.zeros(len(added), dtype=np.intp)
        if strata is not None:
            stratum = np.unique(strata, return_inverse=True)[1]
        n = np.bincount(stratum)
        sums = np.zeros((len(n), added.shape[1]))
        np.add.at(sums, stratum, added)
        deviations = added - (sums / n[:, np.newaxis])[stratum]
        size = np.abs(deviations).max(axis=0) / np.maximum(np.abs(added).max(axis=0), _TINY)
        deviations[:, size <= ROUNDING] = 0.0
        unbiased = np.sqrt(n / np.maximum(n - 1.0, 1.0))
        scale = -1.0 / unbiased if left_out else unbiased
        return cls(scale[stratum, np.newaxis] * deviations, float((n - 1.0).sum()))

    @property
    def covariance(self) -> Array:
        """Covariance of the scores, of shape (system, system)."""
        return self.deviations.T @ self.deviations

    @property
    def widening(self) -> float:
        """Variance of Student's t with the degrees of freedom, as far as there are any."""
        return student_variance(self.freedom)

    @cached_property
    def standard_errors(self) -> Array:
        """Root of the variance of each score, of shape (system,)."""
        # Powers of very large or small ones leave float64.
        largest = np.abs(self.deviations).max(axis=0, initial=0.0)
        size = np.where(largest > 0.0, largest, 1.0)
        return size * np.sqrt(((self.deviations / size) ** 2).sum(axis=0))

    @property
    def acceleration(self) -> Array:
        """Skewness of the contributions to each score over six times their norm, (system,)."""
        return (self._directions**3).sum(axis=0) / 6.0

    @property
    def tail_freedom(self) -> Array:
        """Degrees of freedom of each variance by the kurtosis of the contributions, (system,)."""
        n = len(self.deviations)
        kurtosis = n * (self._directions**4).sum(axis=0)
        return 2.0 * n / np.maximum(kurtosis - 1.0, 1.0 / n)

    @cached_property
    def _directions(self) -> Array:
        """Contributions to each score relative to their norm."""
        norm = self.standard_errors
        return self.deviations / np.where(norm > 0.0, norm, 1.0)


def student_variance(freedom: float) -> float:
    """Return the variance of Student's t, with three degrees of freedom at least; 0 without any."""
    return min(1.0 + 2.0 / max(freedom - 2.0, 1.0), freedom)
