r"""How estimates vary over the units of a run, and what the model and its prior add to that.

Two kinds of units that cross, as runs and questions or prompts and judges, add up, less what is
counted twice: :math:`C_a + C_b - C_{ab}`, with the units that share both in the last.

References
----------
.. [1] A. C. Cameron, J. B. Gelbach and D. L. Miller. Robust inference with multiway clustering.
   Journal of Business & Economic Statistics 29 (2011). https://doi.org/10.1198/jbes.2010.07136
.. [2] A. V. Carter, K. T. Schnepel and D. G. Steigerwald. Asymptotic behavior of a t-test robust to
   cluster heterogeneity. Review of Economics and Statistics 99 (2017).
   https://doi.org/10.1162/REST_a_00639
.. [3] G. Marra and S. N. Wood. Coverage properties of confidence intervals for generalized
   additive model components. Scandinavian Journal of Statistics 39 (2012).
   https://doi.org/10.1111/j.1467-9469.2011.00760.x
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.calibrate.set_covariance import symmetric_root
from bayesrank.inference.resample.clusters import SOME_UNITS
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.inference.run import Run
from bayesrank.responses import Responses

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Variation:
    """How estimates vary over units.

    Attributes
    ----------
    covariance : numpy.ndarray of shape (coordinate, coordinate)
        With the widening of Student's t for few units.
    freedom : float
        Its degrees of freedom: units less strata.
    squares : numpy.ndarray of shape (coordinate,)
        Sum over units of the square of what each adds to a variance.
    """

    covariance: Array
    freedom: float
    squares: Array

    @classmethod
    def of(cls, table: Contributions) -> Self:
        """Return what a table of contributions tells."""
        each = table.widening * table.copies[:, np.newaxis] * table.deviations**2
        return cls(table.widening * table.covariance, table.freedom, (each**2).sum(axis=0))

    def crossed(self, other: "Variation", both: "Variation") -> "Variation":
        """Add another kind of units; `both` are those that share one of either kind.

        What that leaves below zero, where neither kind shows anything, is zero.
        """
        total = positive_part(self.covariance + other.covariance - both.covariance)
        fewer = np.maximum(self.squares, other.squares)
        return Variation(total, min(self.freedom, other.freedom), fewer)


@dataclass(frozen=True)
class ModelPart:
    """What the likelihood and its prior say of estimates besides the units.

    Attributes
    ----------
    own : numpy.ndarray of shape (coordinate, coordinate)
        Covariance of the estimates by the information of the likelihood, as if its model held.
    pull : numpy.ndarray of shape (coordinate,)
        How far the prior moves the estimates.
    left_open : numpy.ndarray of shape (coordinate, coordinate)
        Covariance of what the prior alone tells of the scores.
    """

    own: Array
    pull: Array
    left_open: Array

    def covariance(self, found: Variation) -> Array:
        """Return the covariance of estimates that vary over units.

        One unit of the model stands among these. Where they vary less than the noise of single
        answers, the noise makes up for it, as far as a variance consists of few units [2]_, whose
        spread is rough. Beside them is what the prior leaves open: the mean square error of the
        estimates over the posterior of the truth [3]_.
        """
        own, unit = np.diag(self.own), np.diag(self.own) / max(found.freedom, 1.0)
        total = found.covariance + self.own / max(found.freedom, 1.0)
        seen, squares = np.diag(total), found.squares + unit**2
        # Of how many units a variance effectively consists.
        units = np.divide(seen**2, squares, out=np.ones_like(own), where=squares > 0.0)
        missing = np.divide(own - seen, own, out=np.zeros_like(own), where=own > seen)
        missing *= np.minimum(SOME_UNITS / units, 1.0)
        root = symmetric_root(self.own)
        total = total + (root * missing) @ root
        return total + np.outer(self.pull, self.pull) + self.left_open


def positive_part(matrix: Array) -> Array:
    """Return a symmetric matrix with what is below zero along its axes set to zero."""
    values, axes = np.linalg.eigh(matrix)
    return (np.maximum(values, 0.0) * axes) @ axes.T


def over_units(run: Run, over: Callable[[str], Variation | None]) -> Variation | None:
    """Return how estimates vary over the units of a run.

    Parameters
    ----------
    run : Run
        Its target and unit say what varies.
    over : callable
        Returns how they vary over one kind of units, ``question``, ``run`` or ``trial`` of
        responses; of battles over units that share all of some kinds, joined by a comma. None
        where the data cannot tell.

    Returns
    -------
    Variation or None
    """
    if not isinstance(run.data, Responses):
        kinds = run.unit.split(",")
    elif run.target == "population":
        kinds = ["question", "run"] if run.unit == "run" else ["question"]
    else:
        return over(run.unit)
    found = [over(kind) for kind in kinds]
    if len(found) == 2:
        found.append(over("trial" if isinstance(run.data, Responses) else run.unit))
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return known[0] if len(known) == 1 else known[0].crossed(*known[1:])
