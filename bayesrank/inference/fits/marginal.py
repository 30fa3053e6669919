r"""The marginal likelihood of Rasch and 2PL items, abilities integrated out.

With standard normal z and :math:`x_m = a_m z + d_m`, the objective is the sum over systems of the
log of :math:`\int \phi(z) \prod_m \sigma(x_m)^{k_m} (1 - \sigma(x_m))^{n_m - k_m} dz`, less
:math:`\rho \sum w (\log a)^2`. In the Rasch model all a are one: the standard deviation of the
abilities. Integrals are exact to rounding (:mod:`ability_posterior`), so that Fisher's and Louis'
identities give exact derivatives: posterior means of the complete-data score, and complete-data
information less its posterior covariance.

References
----------
.. [1] R. D. Bock and M. Aitkin. Marginal maximum likelihood estimation of item parameters:
   application of an EM algorithm. Psychometrika 46 (1981). https://doi.org/10.1007/BF02293801
.. [2] T. A. Louis. Finding the observed information matrix when using the EM algorithm. Journal of
   the Royal Statistical Society B 44 (1982). https://doi.org/10.1111/j.2517-6161.1982.tb01203.x
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.ability_posterior import ItemCurves
from bayesrank.inference.fits.arrow import solve_or_nan
from bayesrank.inference.fits.items import ItemCounts
from bayesrank.inference.fits.log_odds import logistic
from bayesrank.inference.fits.newton import FiniteMaximum
from bayesrank.inference.fits.penalty import Array

Slopes = Literal["each", "common", "fixed"]
# exp of this is no slope at all: the coordinate is held there when it still falls.
_LEAST_LOG_SLOPE = -9.0
# Nodes that hold less than this share of a density are left out of its covariance.
_NEGLIGIBLE = 1e-18


@dataclass(frozen=True)
class MarginalItems(FiniteMaximum):
    """Penalised marginal log-likelihood of item parameters.

    Free coordinates: intercepts d, then log slopes: one per question, one for all, or none.

    Attributes
    ----------
    data : ItemCounts
        Weighted counts.
    slopes : {"each", "common", "fixed"}
        Whether every question has its slope, all share one, or it is known.
    fixed_slope : float, default 1
        The known slope.
    slope_penalty : float, default 0
        Weight of the sum of squared log slopes, where every question has one.
    """

    data: ItemCounts
    slopes: Slopes
    fixed_slope: float = 1.0
    slope_penalty: float = 0.0
    # By resample: the last point and its items. A step is tried by its value, the derivatives are
    # wanted where it led, and the next modes are near.
    _last: dict[int, tuple[bytes, ItemCurves]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(self, data=self.data.take(index))

    @property
    def size(self) -> int:
        """Number of resamples."""
        return len(self.data.trials)

    @property
    def cells(self) -> int:
        """Cells per resample: those of the matrix of its Newton steps."""
        return (2 * self.data.weights.shape[-1]) ** 2

    def scale(self, point: Array) -> Array:
        """Return the count scale of the gradient, of shape (resample,)."""
        return np.maximum(self.data.asked.max(axis=-1), self.data.trials.sum(axis=(-1, -2)))

    def loglik(self, point: Array) -> Array:
        """Return the marginal log-likelihood, of shape (resample,)."""
        return np.array([self._integrals(row, one).sum() for row, one in enumerate(point)])

    def value(self, point: Array) -> Array:
        """Return the penalised objective, of shape (resample,)."""
        value = self.loglik(point)
        if self.slopes == "each":
            log_slope = point[:, self.data.weights.shape[-1] :]
            value -= self.slope_penalty * (self.data.weights * log_slope**2).sum(axis=-1)
        return value

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        gradient = np.stack([self._derivatives(row, one)[0] for row, one in enumerate(point)])
        return np.where(self.held(point, gradient), 0.0, gradient)

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        matrices = []
        for row, one in enumerate(point):
            gradient, matrix, _ = self._derivatives(row, one)
            held = self.held(one[np.newaxis], gradient[np.newaxis])[0]
            matrices.append(_decoupled(matrix, held | self._left_out(row)))
        return np.stack(matrices)

    def system(self, point: Array) -> tuple[Array, Callable[[Array, NDArray[np.intp]], Array]]:
        """Return the gradient, and a function from the damping of some resamples to their steps."""
        found = [self._derivatives(row, one) for row, one in enumerate(point)]
        gradient = np.stack([parts[0] for parts in found])
        fixed = self.held(point, gradient)
        fixed |= np.stack([self._left_out(row) for row in range(len(point))])
        gradient[fixed] = 0.0
        pairs = zip(found, fixed, strict=True)
        matrix = np.stack([_decoupled(parts[1], some) for parts, some in pairs])
        expected = np.where(fixed, 0.0, np.stack([parts[2] for parts in found]))

        def step(damping: Array, rows: NDArray[np.intp]) -> Array:
            damped = matrix[rows]
            index = np.arange(damped.shape[-1])
            damped[:, index, index] += damping[:, np.newaxis] * expected[rows]
            return solve_or_nan(damped, gradient[rows, :, np.newaxis])[:, :, 0]

        return gradient, step

    def held(self, point: Array, gradient: Array | None = None) -> NDArray[np.bool_]:
        """Say which log slopes run to minus infinity, of shape (resample, p)."""
        if gradient is None:
            gradient = np.stack([self._derivatives(row, one)[0] for row, one in enumerate(point)])
        held = np.zeros(point.shape, dtype=bool)
        n_questions = self.data.weights.shape[-1]
        low = point[:, n_questions:] <= _LEAST_LOG_SLOPE
        held[:, n_questions:] = low & (gradient[:, n_questions:] <= 0.0)
        return held

    def definite(self, point: Array) -> NDArray[np.bool_]:
        """Say where the information is positive definite, of shape (resample,)."""
        return np.linalg.eigvalsh(self.information(point))[:, 0] > 0.0

    def curves(self, row: int, point: Array) -> ItemCurves:
        """Return the items of one resample at a point of shape (p,)."""
        place, near = point.tobytes(), None
        if row in self._last:
            last, curves = self._last[row]
            if last == place:
                return curves
            near = curves.modes[0]
        kept = ~self.data.left_out[row]
        n_questions = len(kept)
        slope = np.full(n_questions, self.fixed_slope)
        if self.slopes != "fixed":
            slope = np.broadcast_to(np.exp(point[n_questions:]), (n_questions,))
        curves = ItemCurves(
            self.data.right[row][:, kept],
            self.data.trials[row][:, kept],
            slope[kept],
            point[:n_questions][kept],
            near,
        )
        self._last[row] = place, curves
        return curves

    def _left_out(self, row: int) -> NDArray[np.bool_]:
        """Say which coordinates belong to questions that are left out."""
        questions = self.data.left_out[row]
        if self.slopes == "each":
            return np.concatenate([questions, questions])
        return np.concatenate([questions, np.zeros(int(self.slopes == "common"), dtype=bool)])

    def _integrals(self, row: int, point: Array) -> Array:
        return self.curves(row, point).grid[2]

    def _derivatives(self, row: int, point: Array) -> tuple[Array, Array, Array]:
        """Return gradient, negative Hessian and diagonal of the complete-data information."""
        curves = self.curves(row, point)
        nodes, weights, _ = curves.grid
        chance = logistic(nodes[:, None] * curves.slope + curves.intercept)
        # Numbers right expected at each node and question, and the variance they have there.
        expected = (weights.T @ curves.trials) * chance
        own, by_z, by_square = np.stack([np.ones_like(nodes), nodes, nodes**2]) @ (
            expected * (1.0 - chance)
        )
        pull = curves.right.sum(axis=0) - expected.sum(axis=0)
        leaning = curves.slope * ((weights @ nodes) @ curves.right - nodes @ expected)
        mixed = curves.slope * by_z
        bend = curves.slope**2 * by_square - leaning
        gradient, complete = self._complete(pull, leaning, own, mixed, bend)
        spread = self._spread(curves, nodes, weights, chance)
        return self._full(row, point, gradient, complete - spread, np.diag(complete))

    def _complete(
        self, pull: Array, leaning: Array, own: Array, mixed: Array, bend: Array
    ) -> tuple[Array, Array]:
        """Return the gradient and the expected complete-data information."""
        if self.slopes == "fixed":
            return pull, np.diag(own)
        if self.slopes == "common":
            complete = np.diag(np.append(own, bend.sum()))
            complete[-1, :-1] = complete[:-1, -1] = mixed
            return np.append(pull, leaning.sum()), complete
        complete = np.diag(np.concatenate([own, bend]))
        index = np.arange(len(own))
        complete[index, len(own) + index] = complete[len(own) + index, index] = mixed
        return np.concatenate([pull, leaning]), complete

    def _spread(self, curves: ItemCurves, nodes: Array, weights: Array, chance: Array) -> Array:
        """Return the posterior covariance of the complete-data scores, summed over systems."""
        same = (curves.trials == curves.trials[:1]).all()
        groups = [slice(None)] if same else [slice(row, row + 1) for row in range(len(weights))]
        total = np.zeros(())
        for group in groups:
            some = weights[group]
            near = np.flatnonzero(some.max(axis=0) > _NEGLIGIBLE)
            total = total + self._group_spread(
                curves.trials[group][0] * chance[near],
                nodes[near],
                some[:, near],
                curves.right[group],
                curves.slope,
            )
        return total

    def _group_spread(
        self, expected: Array, z: Array, weights: Array, right: Array, slope: Array
    ) -> Array:
        """Return that of systems with the same numbers of trials.

        With e the expected numbers right at a node, the scores are k - e for intercepts and
        (k - e) a z for log slopes. Systems differ only by what is linear in z.
        """
        # Squares of these, summed over nodes, are moments of all systems together.
        root = np.sqrt(weights.sum(axis=0))[:, None] * expected
        if self.slopes == "fixed":
            mean = weights @ expected
            return root.T @ root - mean.T @ mean

        def by_slope(values: Array) -> Array:
            moved = values * slope
            return moved if self.slopes == "each" else moved.sum(axis=-1, keepdims=True)

        powers = np.stack([weights, weights * z, weights * z**2])
        mean, first, second = powers @ expected
        _, mean_z, mean_square = powers.sum(axis=-1, keepdims=True)
        moved, moved_z, linear = by_slope(root) * z[:, None], by_slope(first), by_slope(right)
        own = root.T @ root - mean.T @ mean
        crossed = root.T @ moved - mean.T @ moved_z - (first - mean_z * mean).T @ linear
        squared = moved.T @ moved - moved_z.T @ moved_z
        both = (by_slope(second) - mean_z * moved_z).T @ linear
        squared += linear.T @ (linear * (mean_square - mean_z**2)) - both - both.T
        return np.block([[own, crossed], [crossed.T, squared]])

    def _full(
        self, row: int, point: Array, gradient: Array, matrix: Array, expected: Array
    ) -> tuple[Array, Array, Array]:
        """Put the derivatives of the questions kept in their places and subtract the penalty."""
        kept = np.flatnonzero(~self._left_out(row))
        p, n_questions = len(point), self.data.weights.shape[-1]
        full_gradient, full_expected, full_matrix = np.zeros(p), np.ones(p), np.eye(p)
        full_gradient[kept], full_expected[kept] = gradient, np.abs(expected)
        full_matrix[np.ix_(kept, kept)] = matrix
        if self.slopes == "each":
            penalty = 2.0 * self.slope_penalty * self.data.weights[row]
            full_gradient[n_questions:] -= penalty * point[n_questions:]
            slopes = np.arange(n_questions, p)
            full_matrix[slopes, slopes] += penalty
        return full_gradient, full_matrix, full_expected


def _decoupled(matrix: Array, fixed: NDArray[np.bool_]) -> Array:
    """Return the matrix with unit rows for coordinates that stay where they are."""
    free = ~fixed
    return matrix * free[:, None] * free + np.diag(fixed.astype(float))
