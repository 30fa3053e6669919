"""The objective of the multidimensional logistic model, its derivatives and its Newton step.

Given the abilities, questions meet only in a few sums, so that the parameters of each are
eliminated from a Newton step and a small system remains.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bayesrank.inference.fits.arrow import solve_by_blocks
from bayesrank.inference.fits.log_odds import logistic, softplus
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.pooled_intercepts import PooledPrior
from bayesrank.models.factor_reference import FactorReference


class Point(NamedTuple):
    """Parameters, or a step of them.

    Attributes
    ----------
    ability : numpy.ndarray of shape (system, factor)
        Sums to zero over the systems.
    loading : numpy.ndarray of shape (question, factor)
        In the coordinates of the reference.
    intercept : numpy.ndarray of shape (question,)
        Log-odds of a system without ability.
    """

    ability: Array
    loading: Array
    intercept: Array

    def plus(self, step: "Point") -> "Point":
        """Return the point one step away."""
        return Point(*(here + move for here, move in zip(self, step, strict=True)))


@dataclass(frozen=True)
class FactorItems:
    """Penalised log-likelihood of the multidimensional model, for one table.

    Free coordinates: abilities in the first factor, in the second, ...; what the loadings of the
    first factor differ from the reference in each direction, of the second, ...; intercepts.

    Attributes
    ----------
    right, trials : numpy.ndarray of shape (system, question)
        Number right and number of trials.
    reference : FactorReference
        Where the loadings are, roughly.
    ability_mean : numpy.ndarray of shape (system,)
        Means of the normal prior on the abilities in each factor, centred.
    ability_precision, loading_precision : float
        Precisions of the normal priors.
    """

    right: Array
    trials: Array
    reference: FactorReference
    ability_mean: Array
    ability_precision: float
    loading_precision: float

    @property
    def scale(self) -> float:
        """Largest number of responses behind a parameter, plus the prior's precision."""
        most = max(self.trials.sum(axis=0).max(), self.trials.sum(axis=1).max())
        return float(most) + self.ability_precision

    def point(self, free: Array) -> Point:
        """Return the parameters at free coordinates of shape (..., p)."""
        n_systems, n_questions = self.trials.shape
        n_factors = self.reference.loading.shape[-1]
        lead, n_abilities = free.shape[:-1], n_systems * n_factors
        ability = free[..., :n_abilities].reshape(*lead, n_factors, n_systems)
        deviation = free[..., n_abilities:-n_questions].reshape(*lead, n_factors, -1)
        loading = self.reference.loading + self.reference.directions @ np.swapaxes(
            deviation, -1, -2
        )
        return Point(np.swapaxes(ability, -1, -2), loading, free[..., -n_questions:])

    def free(self, point: Point) -> Array:
        """Return the free coordinates of shape (p,) of parameters."""
        deviation = self.reference.directions.T @ (point.loading - self.reference.loading)
        return np.concatenate([point.ability.T.ravel(), deviation.T.ravel(), point.intercept])

    def loglik(self, point: Point) -> float:
        """Return the log-likelihood."""
        logit = point.ability @ point.loading.T + point.intercept
        return float((self.right * logit - self.trials * softplus(logit)).sum())

    def value(self, point: Point) -> float:
        """Return the objective, without constants."""
        abilities = ((point.ability - self.ability_mean[:, np.newaxis]) ** 2).sum()
        loadings = ((point.loading - self.reference.loading) ** 2).sum()
        penalty = 0.5 * (self.ability_precision * abilities + self.loading_precision * loadings)
        return self.loglik(point) + float(PooledPrior.at(point.intercept).value) - penalty

    def gradient(self, point: Point) -> Array:
        """Return the gradient in the free coordinates, of shape (p,)."""
        slope = self._gradient(point, self._derivatives(point)[0])
        loadings = self.reference.directions.T @ slope.loading
        return np.concatenate([slope.ability.T.ravel(), loadings.T.ravel(), slope.intercept])

    def information(self, point: Point) -> Array:
        """Return the negative Hessian in the free coordinates, of shape (p, p)."""
        residual, weight = self._derivatives(point)
        ability, loading, intercept = point
        (n_systems, n_factors), n_questions = ability.shape, len(loading)
        directions, same = self.reference.directions, np.eye(n_factors)
        n_abilities = n_systems * n_factors
        full = np.zeros((n_abilities + n_factors * directions.shape[1] + n_questions,) * 2)
        first, third = slice(0, n_abilities), slice(-n_questions, None)
        second = slice(first.stop, third.start)
        full[first, first] = np.einsum(
            "lab,lk->albk", self._ability_blocks(point, weight), np.eye(n_systems)
        ).reshape(n_abilities, n_abilities)
        between = np.einsum("lm,ma,lb->albm", weight, loading, ability)
        between -= np.einsum("lm,ab->albm", residual, same)
        full[first, second] = (between @ directions).reshape(n_abilities, -1)
        full[first, third] = np.einsum("lm,ma->alm", weight, loading).reshape(n_abilities, -1)
        of_loadings = np.einsum("lm,la,lb->mab", weight, ability, ability)
        of_loadings += self.loading_precision * same
        size = full[second, second].shape
        full[second, second] = np.einsum(
            "mi,mab,mj->aibj", directions, of_loadings, directions, optimize=True
        ).reshape(size)
        full[second, third] = np.einsum(
            "mi,lm,la->aim", directions, weight, ability, optimize=True
        ).reshape(size[0], n_questions)
        prior = PooledPrior.at(intercept)
        full[third, third] = np.diag(weight.sum(axis=0) + prior.precision)
        full[third, third] += prior.coupling
        return np.triu(full) + np.triu(full, 1).T

    def newton(self, point: Point, damping: float) -> Point:
        """Return the Newton step, with a share of the Hessian's diagonal added to it.

        NaN where the Hessian is singular.
        """
        residual, weight = self._derivatives(point)
        slope, prior = self._gradient(point, residual), PooledPrior.at(point.intercept)
        (n_systems, n_factors), n_questions = point.ability.shape, len(point.loading)
        design = np.column_stack([point.ability, np.ones(n_systems)])
        each, last = np.arange(n_factors), n_factors

        # Per question: its loadings and its intercept.
        blocks = np.einsum("lm,la,lb->mab", weight, design, design)
        blocks[:, each, each] += self.loading_precision
        blocks[:, last, last] += prior.precision
        diagonal = np.arange(n_factors + 1)
        blocks[:, diagonal, diagonal] *= 1.0 + damping

        # For all: abilities, the sums of intercepts in the prior, and the multipliers of what is
        # held, first for the loadings and then for the abilities.
        n_abilities = n_systems * n_factors
        sums = slice(n_abilities, n_abilities + 2)
        border = np.zeros((n_questions, n_factors + 1, n_abilities + 2 + n_factors**2 + n_factors))
        crossed = np.einsum("lm,ma,lb->mbla", weight, point.loading, design)
        crossed[:, each, :, each] -= residual.T
        border[..., :n_abilities] = crossed.reshape(n_questions, n_factors + 1, n_abilities)
        border[:, last, sums] = prior.columns
        for a in each:
            start = sums.stop + a * n_factors
            border[:, a, start : start + n_factors] = self.reference.held
        corner = np.zeros((border.shape[-1],) * 2)
        of_abilities = self._ability_blocks(point, weight)
        of_abilities[:, each, each] *= 1.0 + damping
        corner[:n_abilities, :n_abilities] = np.einsum(
            "lab,lk->lakb", of_abilities, np.eye(n_systems)
        ).reshape(n_abilities, n_abilities)
        corner[sums, sums] = -np.eye(2)
        total = np.tile(np.eye(n_factors), (n_systems, 1))
        corner[:n_abilities, -n_factors:], corner[-n_factors:, :n_abilities] = total, total.T

        rows = border.copy()
        rows[:, last, sums] *= prior.shares
        sides = np.column_stack([slope.loading, slope.intercept])
        right = np.zeros(len(corner))
        right[:n_abilities] = slope.ability.ravel()
        parts = blocks, border, rows, corner, sides, right
        inner, outer = solve_by_blocks(*(part[np.newaxis] for part in parts))
        steps, outer = inner[0], outer[0]
        abilities = outer[:n_abilities].reshape(n_systems, n_factors)
        return Point(abilities, steps[:, :last], steps[:, last])

    def _ability_blocks(self, point: Point, weight: Array) -> Array:
        """Return the negative Hessian of each system's abilities."""
        blocks = np.einsum("lm,ma,mb->lab", weight, point.loading, point.loading)
        return blocks + self.ability_precision * np.eye(blocks.shape[-1])

    def _derivatives(self, point: Point) -> tuple[Array, Array]:
        """Return right answers above expectation, and n p (1 - p)."""
        chance = logistic(point.ability @ point.loading.T + point.intercept)
        expected = self.trials * chance
        return self.right - expected, expected * (1.0 - chance)

    def _gradient(self, point: Point, residual: Array) -> Point:
        above = point.ability - self.ability_mean[:, np.newaxis]
        beside = point.loading - self.reference.loading
        return Point(
            residual @ point.loading - self.ability_precision * above,
            residual.T @ point.ability - self.loading_precision * beside,
            residual.sum(axis=0) + PooledPrior.at(point.intercept).gradient,
        )
