r"""The objective of item response models whose parameters all have priors.

With :math:`x_{lm} = a_m \theta_l + d_m`, :math:`a = e^{\alpha}` (1 in the Rasch model) and
:math:`c = u\,\sigma(g)` for an upper limit u of guessing (0 without),

.. math:: P_{lm} = c_m + (1 - c_m)\,\sigma(x_{lm}).

Abilities :math:`\theta` and log discriminations :math:`\alpha` sum to zero. Abilities, log
discriminations and logits g have normal priors, intercepts d the hierarchical one, which couples
the questions through two sums alone: the parameters of each are eliminated from a Newton step.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.arrow import Arrow, solve_by_blocks
from bayesrank.inference.fits.climbing import Unbounded
from bayesrank.inference.fits.item_cells import (
    NO_GUESSING,
    Guessing,
    ItemCells,
    loglik,
    positive_definite,
)
from bayesrank.inference.fits.items import ItemCounts, item_counts
from bayesrank.inference.fits.laplace import zero_sum
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.pooled_intercepts import PooledPrior
from bayesrank.priors import LEVEL_SD


@dataclass(frozen=True)
class NormalPrior:
    """A normal prior on a parameter of the questions."""

    mean: float = 0.0
    precision: float = 1.0

    def value(self, parameter: Array) -> Array:
        """Return the log-density up to a constant, summed over the last axis."""
        return -0.5 * self.precision * ((parameter - self.mean) ** 2).sum(axis=-1)

    def gradient(self, parameter: Array) -> Array:
        """Return the gradient of the log-density."""
        return -self.precision * (parameter - self.mean)


_STANDARD = NormalPrior()


@dataclass(frozen=True)
class PooledItems(Unbounded):
    """Log-posterior of the default Rasch, 2PL or 3PL model.

    Free coordinates: abilities, intercepts, log discriminations where they differ, logits g where
    guessing is estimated.

    Attributes
    ----------
    data : ItemCounts
        Counts.
    ability_mean : numpy.ndarray of shape (system,)
        Means of the normal prior on the abilities, centred.
    ability_precision : float
        Precision of that prior.
    slope_prior : NormalPrior or None
        Prior on the log discriminations; None where all are 0.
    guessing : Guessing
        How guessing is treated; its penalty is not used.
    guess_prior : NormalPrior
        Prior on the logits g.
    level, level_sd : float
        Prior mean and standard deviation of the mean of the intercepts.
    """

    data: ItemCounts
    ability_mean: Array
    ability_precision: float
    slope_prior: NormalPrior | None
    guessing: Guessing
    guess_prior: NormalPrior
    level: float
    level_sd: float

    @classmethod
    def of(
        cls,
        correct: ArrayLike,
        trials: ArrayLike,
        *,
        ability_mean: ArrayLike = 0.0,
        ability_precision: float = 1.0,
        slope_prior: NormalPrior | None = None,
        guessing: Guessing = NO_GUESSING,
        guess_prior: NormalPrior = _STANDARD,
        level: float = 0.0,
        level_sd: float = LEVEL_SD,
    ) -> Self:
        """Build the objective of counts.

        Parameters
        ----------
        correct, trials : array_like of shape (..., system, question)
            Number right and number of trials, 0 trials where a cell is missing.
        ability_mean : array_like, broadcastable to (system,), default 0
            As the attribute; only differences matter.
        ability_precision : float, default 1.0
            As the attribute, positive.
        slope_prior, guessing, guess_prior, level, level_sd
            As the attributes; by default a Rasch model.

        Returns
        -------
        PooledItems
        """
        data = item_counts(correct, trials, None, drop=False)
        mean = np.broadcast_to(np.asarray(ability_mean, dtype=np.float64), data.right.shape[-2])
        return cls(
            data,
            mean - mean.mean(),
            ability_precision,
            slope_prior,
            guessing,
            guess_prior,
            level,
            level_sd,
        )

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(self, data=self.data.take(index))

    def split(self, point: Array) -> tuple[Array, Array, Array, Array | None]:
        """Return abilities, intercepts, log discriminations and guessing logits."""
        n_systems = self.data.trials.shape[-2]
        parts = np.split(point[..., n_systems:], self._n_kinds, axis=-1)
        log_slope = np.zeros_like(parts[0]) if self.slope_prior is None else parts[1]
        logit = parts[-1] if self.guessing.fixed is None else None
        return point[..., :n_systems], parts[0], log_slope, logit

    @property
    def zero_sums(self) -> Array:
        """Constraints, of shape (p, constraint): abilities and log discriminations sum to zero."""
        n_systems, n_questions = self.data.trials.shape[-2:]
        blocks = [slice(0, n_systems)]
        if self.slope_prior is not None:
            blocks.append(slice(n_systems + n_questions, n_systems + 2 * n_questions))
        return zero_sum(n_systems + self._n_kinds * n_questions, *blocks)

    @property
    def size(self) -> int:
        """Number of resamples."""
        return len(self.data.trials)

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return self.data.trials[0].size

    def scale(self, point: Array) -> Array:
        """Return the count scale of the gradient, of shape (resample,)."""
        slope = np.exp(self.split(point)[2])
        by_system = (self.data.trials @ slope[:, :, None]).max(axis=(-1, -2))
        return np.maximum(by_system, self.data.asked.max(axis=-1)) + self.ability_precision

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        ability, intercept, log_slope, logit = self.split(point)
        x = ability[:, :, None] * np.exp(log_slope)[:, None, :] + intercept[:, None, :]
        return loglik(self.data, self.guessing, x, logit)

    def value(self, point: Array) -> Array:
        """Return the log-posterior without constants, of shape (resample,)."""
        ability, intercept, log_slope, logit = self.split(point)
        value = self.loglik(point) + self._pooled(intercept).value
        value -= 0.5 * self.ability_precision * ((ability - self.ability_mean) ** 2).sum(axis=-1)
        if self.slope_prior is not None:
            value += self.slope_prior.value(log_slope)
        return value if logit is None else value + self.guess_prior.value(logit)

    def gradient(self, point: Array) -> Array:
        """Return the gradient along the log discriminations that sum to zero, (resample, p)."""
        return self._gradient(point, self._cells(point))

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the log-posterior, of shape (resample, p, p)."""
        prior = self._pooled(self.split(point)[1])
        full = self._arrow(self._cells(point), prior, guarded=False).dense()
        n_systems, n_questions = self.data.trials.shape[-2:]
        intercepts = slice(n_systems, n_systems + n_questions)
        full[:, intercepts, intercepts] += prior.coupling
        return full

    def system(self, point: Array) -> tuple[Array, Callable[[Array, NDArray[np.intp]], Array]]:
        """Return the gradient, and a function from the damping of some resamples to their steps."""
        cells, prior = self._cells(point), self._pooled(self.split(point)[1])
        gradient, arrows = self._gradient(point, cells), [self._arrow(cells, prior)]

        def step(damping: Array, rows: NDArray[np.intp]) -> Array:
            arrow = arrows[0].take(rows)
            if damping.any():
                if len(arrows) == 1:
                    arrows.append(self._arrow(cells, prior, exact=False))
                arrow = arrow.damped(damping, arrows[1].take(rows))
            return self._step(arrow, prior.take(rows), gradient[rows])

        return gradient, step

    def constraint(self, point: Array) -> Array:
        """Return the gradient of the sum of the abilities, of shape (resample, p)."""
        return np.broadcast_to(self.zero_sums[:, 0], point.shape)

    @property
    def _n_kinds(self) -> int:
        """How many parameters a question has."""
        return 1 + (self.slope_prior is not None) + (self.guessing.fixed is None)

    def _pooled(self, intercept: Array) -> PooledPrior:
        return PooledPrior.at(intercept, self.level, self.level_sd)

    def _cells(self, point: Array) -> ItemCells:
        return ItemCells.at_intercepts(self.data, self.guessing, *self.split(point))

    def _gradient(self, point: Array, cells: ItemCells) -> Array:
        ability, intercept, log_slope, logit = self.split(point)
        parts = cells.gradient()
        parts[0] -= self.ability_precision * (ability - self.ability_mean)
        parts[1] += self._pooled(intercept).gradient
        if self.slope_prior is None:
            del parts[2]
        else:
            slope = parts[2] + self.slope_prior.gradient(log_slope)
            parts[2] = slope - slope.mean(axis=-1, keepdims=True)
        if logit is not None:
            parts[-1] += self.guess_prior.gradient(logit)
        return np.concatenate(parts, axis=-1)

    def _arrow(
        self, cells: ItemCells, prior: PooledPrior, *, exact: bool = True, guarded: bool = True
    ) -> Arrow:
        """Return the matrix of a Newton step but for what couples the questions.

        Questions whose own block of the exact matrix is not positive definite get the expected
        one, unless it is for the record.
        """
        by_question = np.full(self.data.weights.shape, exact)
        arrow = self._with_priors(cells.curvature(by_question), prior)
        if exact and guarded:
            by_question = positive_definite(arrow.blocks)
            if not by_question.all():
                arrow = self._with_priors(cells.curvature(by_question), prior)
        return arrow

    def _with_priors(self, parts: tuple[Array, Array, Array], prior: PooledPrior) -> Arrow:
        diagonal, blocks, border = parts
        diagonal += self.ability_precision
        blocks[:, 0, 0] += prior.precision[:, None]
        if self.slope_prior is None:
            return Arrow(diagonal, blocks[:, :1, :1], border[:, :, :1])
        blocks[:, 1, 1] += self.slope_prior.precision
        if self.guessing.fixed is None:
            blocks[:, 2, 2] += self.guess_prior.precision
        return Arrow(diagonal, blocks, border)

    def _step(self, arrow: Arrow, prior: PooledPrior, gradient: Array) -> Array:
        """Solve for a step that keeps what sums to zero."""
        batch, n_systems, n_kinds, n_questions = arrow.border.shape
        # For all questions: abilities, the sums of intercepts in their prior, and the multipliers
        # of what is held, first of the log discriminations and then of the abilities.
        width = n_systems + 4
        first, second, held, last = n_systems, n_systems + 1, n_systems + 2, n_systems + 3
        rows = np.zeros((batch, n_questions, n_kinds, width))
        rows[..., :n_systems] = arrow.border.transpose(0, 3, 2, 1)
        columns = rows.copy()
        rows[:, :, 0, first:held] = prior.columns
        columns[:, :, 0, first:held] = prior.columns * prior.shares[:, None, :]
        corner = np.zeros((batch, width, width))
        each = np.arange(n_systems)
        corner[:, each, each] = arrow.diagonal
        corner[:, first, first] = corner[:, second, second] = -1.0
        corner[:, each, last] = corner[:, last, each] = 1.0
        if self.slope_prior is None:
            corner[:, held, held] = 1.0  # nothing is held
        else:
            rows[:, :, 1, held] = columns[:, :, 1, held] = 1.0
        side = np.zeros((batch, width))
        side[:, :n_systems] = gradient[:, :n_systems]
        by_question = gradient[:, n_systems:].reshape(batch, n_kinds, n_questions)
        blocks = arrow.blocks.transpose(0, 3, 1, 2)
        steps, others = solve_by_blocks(
            blocks, columns, rows, corner, by_question.transpose(0, 2, 1), side
        )
        of_questions = steps.transpose(0, 2, 1).reshape(batch, -1)
        return np.concatenate([others[:, :n_systems], of_questions], axis=-1)
