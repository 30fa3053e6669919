"""Logistic principal components: approximate loadings of several factors.

Factors are identified up to any invertible linear map. The reference determines which of these
equivalent descriptions a model uses. It depends on all questions, so that chains agree and no
direction depends on only a few questions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from bayesrank.counting import canonical_order, distinct_columns, kinds_of_cells

Array = NDArray[np.float64]
Score = Literal["mean_slope", "norm"]

# Few iterations: a choice of coordinates does not need convergence.
_ROUNDS = 30
# Alternating steps overshoot if abilities and loadings explain the same variation.
_STEP = 0.7
_SMALLEST_WEIGHT = 1e-3
# Standard deviation of intercepts; abilities and loadings have 1.
_INTERCEPT_SD = 2.5


@dataclass(frozen=True)
class FactorReference:
    """Coordinates of loadings.

    `loading`, (question, factor), are reference loadings, with mean squares of 1 over questions,
    weighted by the data. `held` are the same times the weights of the questions; deviations of
    loadings from the reference are orthogonal to it. `anchors`, (factor,), are the questions with
    the most different loadings.

    References
    ----------
    .. [1] R. Schreiber and C. Van Loan. A storage-efficient WY representation for products of
       Householder transformations. SIAM Journal on Scientific and Statistical Computing 10 (1989).
       https://doi.org/10.1137/0910005
    """

    loading: Array
    held: Array
    anchors: NDArray[np.intp]

    @cached_property
    def directions(self) -> Array:
        """Orthonormal directions in which loadings may differ from the reference, in columns."""
        n_questions, n_factors = self.held.shape
        return self.across(np.eye(n_questions - n_factors)).T

    def along(self, rows: Array) -> Array:
        """Return coordinates in the directions, of rows of shape (..., question)."""
        vectors, triangle = self._reflections
        turned = rows - ((rows @ vectors) @ triangle) @ vectors.T
        return turned[..., self.held.shape[1] :]

    def across(self, coordinates: Array) -> Array:
        """Return rows of shape (..., question) from coordinates in the directions."""
        vectors, triangle = self._reflections
        rows = np.zeros((*coordinates.shape[:-1], len(vectors)))
        rows[..., self.held.shape[1] :] = coordinates
        return rows - ((rows @ vectors) @ triangle.T) @ vectors.T

    @cached_property
    def _reflections(self) -> tuple[Array, Array]:
        """V and T of the Householder reflections I - V T V' that turn `held` upright [1]_."""
        found: Any = qr(self.held, mode="raw")
        packed, factors = found[0]
        vectors = np.tril(packed, -1) + np.eye(*packed.shape)
        triangle = np.diag(factors)
        for column in range(1, len(factors)):
            beside = vectors[:, :column].T @ vectors[:, column]
            triangle[:column, column] = -factors[column] * (triangle[:column, :column] @ beside)
        return vectors, triangle


def factor_reference(correct: Array, trials: Array, n_factors: int) -> FactorReference:
    """Find reference loadings by logistic principal components of counts (system, question).

    Examples
    --------
    >>> right = np.array([[3.0, 2.0, 3.0], [2.0, 2.0, 1.0], [0.0, 1.0, 0.0]])
    >>> reference = factor_reference(right, np.full((3, 3), 3.0), 1)
    >>> reference.loading.shape, reference.directions.shape
    ((3, 1), (3, 2))
    """
    # Rounding would rotate factors that the data hardly distinguish.
    systems, questions = canonical_order(kinds_of_cells(correct, trials))
    correct, trials = (table[systems][:, questions] for table in (correct, trials))
    first, kinds = distinct_columns(np.concatenate([correct, trials]))
    counts = np.bincount(kinds).astype(np.float64)
    ability, loading, intercept = _first_point(correct, trials, n_factors)
    correct, trials = correct[:, first], trials[:, first]
    loading, intercept = loading[first], intercept[first]
    base = np.zeros(n_factors + 1)
    base[1] = 1.0
    by_question = np.diag([_INTERCEPT_SD**-2, *np.ones(n_factors)])
    by_system = np.eye(n_factors)
    weight = trials
    for _ in range(_ROUNDS):
        weight, work = _working(correct, trials, intercept + ability @ loading.T)
        design = np.column_stack([np.ones(len(ability)), ability])
        lines = _weighted_fits(design, weight.T, work.T, by_question, base)
        intercept = intercept + _STEP * (lines[:, 0] - intercept)
        loading = loading + _STEP * (lines[:, 1:] - loading)
        weight, work = _working(correct, trials, intercept + ability @ loading.T)
        gaps, level = work - intercept, np.zeros(n_factors)
        points = _weighted_fits(loading, counts * weight, gaps, by_system, level)
        ability = ability + _STEP * (points - ability)
    found = _normalised(ability, loading[kinds], weight[:, kinds])
    places = questions.argsort()
    return FactorReference(found.loading[places], found.held[places], questions[found.anchors])


def _first_point(correct: Array, trials: Array, n_factors: int) -> tuple[Array, Array, Array]:
    """Start with one factor from the totals, and the others from the residuals."""
    wrong = trials - correct
    intercept = _log_odds(correct.sum(axis=0), wrong.sum(axis=0))
    total = _log_odds(correct.sum(axis=1), wrong.sum(axis=1))
    ability, loading = np.zeros((len(correct), n_factors)), np.zeros((len(intercept), n_factors))
    ability[:, 0], loading[:, 0] = total - total.mean(), 1.0
    rest = _log_odds(correct, wrong) - intercept - ability[:, :1]
    left, size, right = np.linalg.svd(rest * (trials > 0), full_matrices=False)
    n_others = n_factors - 1
    scale = np.sqrt(size[:n_others])
    ability[:, 1:], loading[:, 1:] = left[:, :n_others] * scale, right[:n_others].T * scale
    return ability, loading, intercept


def _log_odds(right: Array, wrong: Array) -> Array:
    return np.log((right + 0.5) / (wrong + 0.5))


def _working(correct: Array, trials: Array, logit: Array) -> tuple[Array, Array]:
    """Return the weights and the working responses of reweighted least squares."""
    chance = 1.0 / (1.0 + np.exp(-logit))
    slope = np.maximum(chance * (1.0 - chance), _SMALLEST_WEIGHT)
    asked = np.maximum(trials, 1.0)
    return trials * slope, logit + (correct - trials * chance) / (asked * slope)


def _weighted_fits(
    design: Array, weight: Array, response: Array, ridge: Array, base: Array
) -> Array:
    """Regress every row of responses, with its own weights, on the same design."""
    columns = design.shape[1]
    products = (design[:, :, np.newaxis] * design[:, np.newaxis, :]).reshape(len(design), -1)
    matrix = (weight @ products).reshape(-1, columns, columns) + ridge
    right = (weight * response) @ design + ridge @ base
    return np.linalg.solve(matrix, right[..., np.newaxis])[..., 0]


def _normalised(ability: Array, loading: Array, weight: Array) -> FactorReference:
    n_factors = loading.shape[1]
    by_system, by_question = weight.sum(axis=1), np.maximum(weight.sum(axis=0), 1e-9)
    by_question = by_question / by_question.mean()
    centred = ability - by_system @ ability / by_system.sum()
    root = np.sqrt(by_question)[:, np.newaxis]
    scaled = (np.sqrt(by_system)[:, np.newaxis] * centred) @ (root * loading).T
    axes = np.linalg.svd(scaled, full_matrices=False)[2][:n_factors].T * np.sqrt(len(loading))
    # A sign that does not depend on the order of the questions.
    axes = axes * np.where((axes * root).sum(axis=0) < 0.0, -1.0, 1.0)
    pivots: Any = qr(axes.T, mode="r", pivoting=True)
    reference = axes / root
    held = by_question[:, np.newaxis] * reference
    return FactorReference(reference, held, pivots[1][:n_factors])
