"""How estimates vary over the units of a run, and what the model and its prior add to that.

Formulas and references: docs/uncertainty.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.bordered import symmetric_root
from bayesrank.inference.resample.clusters import SOME_UNITS
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.run import Run
from bayesrank.responses import Responses

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Variation:
    """How estimates vary over units."""

    # (coordinate, coordinate), with the widening of Student's t for few units.
    covariance: Array
    # Its degrees of freedom: units less strata.
    freedom: float
    # (coordinate,): sum over units of the square of what each adds to a variance.
    squares: Array

    @classmethod
    def of(cls, table: Contributions) -> Self:
        """Return what a table of contributions tells."""
        squares = ((table.widening * table.deviations**2) ** 2).sum(axis=0)
        return cls(table.widening * table.covariance, table.freedom, squares)

    def crossed(self, other: "Variation", both: "Variation") -> "Variation":
        """Add another kind of units; `both` are those that share one of either kind.

        What that leaves below zero, where neither kind shows anything, is zero.
        """
        values, axes = np.linalg.eigh(self.covariance + other.covariance - both.covariance)
        total = (np.maximum(values, 0.0) * axes) @ axes.T
        fewer = np.maximum(self.squares, other.squares)
        return Variation(total, min(self.freedom, other.freedom), fewer)


@dataclass(frozen=True)
class ModelPart:
    """What the likelihood and its prior say of estimates besides the units."""

    # (coordinate, coordinate): by the information of the likelihood, as if its model held.
    own: Array
    # (coordinate, coordinate): of the posterior.
    posterior: Array
    # (coordinate, coordinate): of what the prior alone tells of the scores.
    left_open: Array

    def covariance(self, found: Variation) -> Array:
        """Return the covariance of estimates that vary over units."""
        own, unit = np.diag(self.own), np.diag(self.own) / max(found.freedom, 1.0)
        total = found.covariance + self.own / max(found.freedom, 1.0)
        seen, squares = np.diag(total), found.squares + unit**2
        # Of how many units a variance effectively consists; of one where none shows any.
        shown = (squares > 0.0) & (seen**2 > 0.0)
        units = np.divide(seen**2, squares, out=np.ones_like(own), where=shown)
        missing = np.divide(own - seen, own, out=np.zeros_like(own), where=own > seen)
        missing *= np.minimum(SOME_UNITS / units, 1.0)
        root = symmetric_root(self.posterior - self.left_open)
        return total + (root * missing) @ root + self.left_open


def over_units(run: Run, over: Callable[[str], Variation]) -> Variation:
    """Return how estimates vary over the units of a run.

    `over` returns how they vary over one kind of units, ``question``, ``run`` or ``trial`` of
    responses; of battles over units that share all of some kinds, joined by a comma.
    """
    if not isinstance(run.data, Responses):
        kinds = run.unit.split(",")
    elif run.target == "population":
        kinds = ["question", "run"] if run.unit == "run" else ["question"]
    else:
        return over(run.unit)
    found = [over(kind) for kind in kinds]
    if len(found) == 1:
        return found[0]
    return found[0].crossed(
        found[1], over("trial" if isinstance(run.data, Responses) else run.unit)
    )
