r"""The multidimensional two-parameter logistic model by Newton's method.

With :math:`k_{lm}` right out of :math:`n_{lm}`, abilities :math:`\theta_l` that sum to zero over
the systems, loadings :math:`a_m` and intercepts :math:`d_m`,

.. math::

   \ell = \sum_{lm} k_{lm} \eta_{lm} - n_{lm} \log(1 + e^{\eta_{lm}}), \qquad
   \eta_{lm} = \theta_l^\top a_m + d_m,

with normal priors on abilities and on what loadings differ from their reference, in the directions
that it leaves them, and the hierarchical prior on intercepts. Given the abilities, questions meet
only in a few sums, so that the parameters of each are eliminated from a Newton step and a small
system remains. The objective is not concave: a step that does not increase it is damped.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bayesrank.inference.kernels.arrow import one_or_nan, solve_or_nan
from bayesrank.inference.kernels.fit import Fit
from bayesrank.inference.kernels.laplace import zero_sum
from bayesrank.inference.kernels.newton import GRADIENT_TOLERANCE, smoothed_log_odds
from bayesrank.inference.kernels.penalty import Array
from bayesrank.inference.kernels.symmetry import settle_ties
from bayesrank.models.factor_reference import FactorReference, factor_reference
from bayesrank.priors import LEVEL_SD, POOLED_DF

Score = Literal["mean_slope", "norm"]

_MAX_ITERATIONS = 100
# Convergence is quadratic: the error that a full step of this size leaves is its square.
_LAST_STEP = 1e-8
# Share of the objective that a step may lose to rounding.
_ROUNDING = 1e-10
_FIRST_DAMPING = 1e-3
# Abilities are log-odds, of the order of 1.
_NO_ABILITY = 1e-12


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


class _InterceptPrior(NamedTuple):
    """The hierarchical prior near a point: gradient, and precision t I + U diag(s) U'."""

    value: float
    gradient: Array
    precision: float
    columns: Array
    shares: Array


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
        return float((self.right * logit - self.trials * np.logaddexp(0.0, logit)).sum())

    def value(self, point: Point) -> float:
        """Return the objective, without constants."""
        abilities = ((point.ability - self.ability_mean[:, np.newaxis]) ** 2).sum()
        loadings = ((point.loading - self.reference.loading) ** 2).sum()
        penalty = 0.5 * (self.ability_precision * abilities + self.loading_precision * loadings)
        return self.loglik(point) + _intercept_prior(point.intercept).value - penalty

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
        prior = _intercept_prior(intercept)
        full[third, third] = np.diag(weight.sum(axis=0) + prior.precision)
        full[third, third] += (prior.columns * prior.shares) @ prior.columns.T
        return np.triu(full) + np.triu(full, 1).T

    def newton(self, point: Point, damping: float) -> Point:
        """Return the Newton step, with a share of the Hessian's diagonal added to it.

        NaN where the Hessian is singular.
        """
        residual, weight = self._derivatives(point)
        slope, prior = self._gradient(point, residual), _intercept_prior(point.intercept)
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

        sides = np.column_stack([slope.loading, slope.intercept])[..., np.newaxis]
        inner = solve_or_nan(blocks, np.concatenate([border, sides], axis=-1))
        border[:, last, sums] *= prior.shares  # its rows are not its columns
        eliminated = np.tensordot(border, inner, axes=((0, 1), (0, 1)))
        corner -= eliminated[:, :-1]
        right = np.zeros(len(corner)) - eliminated[:, -1]
        right[:n_abilities] += slope.ability.ravel()
        outer = one_or_nan(corner, right)
        steps = inner[..., -1] - inner[..., :-1] @ outer
        abilities = outer[:n_abilities].reshape(n_systems, n_factors)
        return Point(abilities, steps[:, :last], steps[:, last])

    def _ability_blocks(self, point: Point, weight: Array) -> Array:
        """Return the negative Hessian of each system's abilities."""
        blocks = np.einsum("lm,ma,mb->lab", weight, point.loading, point.loading)
        return blocks + self.ability_precision * np.eye(blocks.shape[-1])

    def _derivatives(self, point: Point) -> tuple[Array, Array]:
        """Return right answers above expectation, and n p (1 - p)."""
        chance = expit(point.ability @ point.loading.T + point.intercept)
        expected = self.trials * chance
        return self.right - expected, expected * (1.0 - chance)

    def _gradient(self, point: Point, residual: Array) -> Point:
        above = point.ability - self.ability_mean[:, np.newaxis]
        beside = point.loading - self.reference.loading
        return Point(
            residual @ point.loading - self.ability_precision * above,
            residual.T @ point.ability - self.loading_precision * beside,
            residual.sum(axis=0) + _intercept_prior(point.intercept).gradient,
        )


def mirt_problem(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    n_factors: int = 2,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 1.0,
    loading_precision: float = 0.3**-2,
) -> FactorItems:
    """Build the objective that :func:`fit_mirt` maximises; see there.

    Parameters
    ----------
    correct, trials, n_factors, ability_mean, ability_precision, loading_precision
        As in :func:`fit_mirt`.

    Returns
    -------
    FactorItems
    """
    right, total = (np.asarray(table, dtype=np.float64) for table in (correct, trials))
    mean = np.broadcast_to(np.asarray(ability_mean, dtype=np.float64), len(right))
    return FactorItems(
        right,
        total,
        factor_reference(right, total, n_factors),
        mean - mean.mean(),
        ability_precision,
        loading_precision,
    )


def fit_mirt(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    n_factors: int = 2,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 1.0,
    loading_precision: float = 0.3**-2,
    score: Score = "mean_slope",
) -> Fit:
    """Fit the multidimensional model of :func:`bayesrank.models.mirt`, for one table.

    Parameters
    ----------
    correct, trials : array_like of shape (system, question)
        Number right and number of trials, 0 where a cell is missing.
    n_factors : int, default 2
        Number of abilities per system, fewer than systems and than questions.
    ability_mean : array_like, broadcastable to (system,), default 0
        Means of the normal prior on the abilities; only their differences matter.
    ability_precision : float, default 1.0
        Precision of that prior.
    loading_precision : float, default 1 / 0.3**2
        Precision of the normal prior on what loadings differ from the reference, positive.
    score : {"mean_slope", "norm"}, default "mean_slope"
        As in the factory.

    Returns
    -------
    Fit
        Not batched. Free coordinates: those of :class:`FactorItems`.

    References
    ----------
    .. [1] M. D. Reckase. Multidimensional Item Response Theory. Springer (2009).
       https://doi.org/10.1007/978-0-387-89976-3

    Examples
    --------
    >>> fit = fit_mirt([[3, 2, 3], [2, 2, 1], [0, 1, 0]], [[3, 3, 3]] * 3)
    >>> bool(fit.score[0] > fit.score[1] > fit.score[2])
    True
    """
    problem = mirt_problem(
        correct,
        trials,
        n_factors=n_factors,
        ability_mean=ability_mean,
        ability_precision=ability_precision,
        loading_precision=loading_precision,
    )
    point, settled, iterations = _climb(problem)
    # Sums leave rounding errors where all abilities are zero, which are no factors.
    ability = np.where(np.abs(point.ability) < _NO_ABILITY, 0.0, point.ability)
    point = point._replace(ability=ability)
    free = problem.free(point)
    n_systems = len(problem.right)
    starts = range(0, n_systems * n_factors, n_systems)
    held = zero_sum(len(free), *(slice(start, start + n_systems) for start in starts))
    gradient = problem.gradient(point)
    gradient -= held @ (held.T @ gradient) / n_systems
    gradient_norm = np.abs(gradient).max() / problem.scale
    named = _unpack(problem, score, free)
    totals = problem.right.sum(axis=1) + ability_precision * problem.ability_mean
    rows = np.concatenate([problem.right, problem.trials], axis=1)
    return Fit(
        score=settle_ties(named.pop("score")[None], totals[None], rows=rows[None])[0],
        parameters=named,
        converged=np.asarray(settled and gradient_norm <= GRADIENT_TOLERANCE),
        iterations=np.asarray(iterations),
        gradient_norm=gradient_norm,
        free=free,
        unpack=partial(_unpack, problem, score),
        log_likelihood=lambda: np.asarray(problem.loglik(point)),
        curvature=lambda: (problem.information(point), held),
    )


def _climb(problem: FactorItems) -> tuple[Point, bool, int]:
    """Return where damped Newton steps end, whether they vanished, and their number."""
    point = _first_point(problem)
    value, damping = problem.value(point), 0.0
    for iteration in range(1, _MAX_ITERATIONS + 1):
        step = problem.newton(point, damping)
        there = point.plus(step)
        reached = problem.value(there)
        if not reached >= value - _ROUNDING * abs(value):  # also when NaN
            damping = max(10.0 * damping, _FIRST_DAMPING)
            continue
        point, value = there, reached
        if damping == 0.0 and max(np.abs(move).max() for move in step) <= _LAST_STEP:
            return point, True, iteration
        damping = damping / 10.0 if damping > _FIRST_DAMPING else 0.0
    return point, False, _MAX_ITERATIONS


def _first_point(problem: FactorItems) -> Point:
    """Begin at the reference, with the abilities that explain smoothed log-odds best."""
    right, trials, loading = problem.right, problem.trials, problem.reference.loading
    intercept = smoothed_log_odds(right.sum(axis=0), trials.sum(axis=0))
    rest = (smoothed_log_odds(right, trials) - intercept) * (trials > 0.0)
    ability = np.linalg.solve(loading.T @ loading + np.eye(loading.shape[1]), loading.T @ rest.T).T
    return Point(ability - ability.mean(axis=0), loading, intercept)


def _intercept_prior(intercept: Array) -> _InterceptPrior:
    """Expand the hierarchical prior, a normal mean and Student's t around it."""
    n = len(intercept)
    mean = intercept.mean()
    deviation = intercept - mean
    freedom = POOLED_DF + n - 1.0
    squares = POOLED_DF + deviation @ deviation
    precision = float(freedom / squares)
    of_mean = LEVEL_SD**-2 / n
    return _InterceptPrior(
        value=float(-0.5 * (mean / LEVEL_SD) ** 2 - 0.5 * freedom * np.log(squares)),
        gradient=-precision * deviation - of_mean * mean,
        precision=precision,
        columns=np.column_stack([np.ones(n), deviation]),
        shares=np.array([(of_mean - precision) / n, -2.0 * precision**2 / freedom]),
    )


def _unpack(problem: FactorItems, score: Score, free: Array) -> dict[str, Array]:
    """Name the parameters at free coordinates of shape (..., p), as the factory does."""
    ability, loading, intercept = problem.point(free)
    deviation = np.swapaxes(loading - problem.reference.loading, -1, -2)
    deviation = deviation @ problem.reference.directions
    abilities, slopes = _triangular(ability, loading, problem.reference.anchors)
    if score == "mean_slope":
        value = np.einsum("...lk,...k->...l", ability, loading.mean(axis=-2))
    else:
        products = np.swapaxes(slopes, -1, -2)
        origin = np.linalg.solve(products @ slopes, products @ intercept[..., np.newaxis])
        value = np.sqrt(((abilities + np.swapaxes(origin, -1, -2)) ** 2).sum(axis=-1))
    each = range(ability.shape[-1])
    return (
        {"score": value}
        | {f"coordinate_{k + 1}": ability[..., k] for k in each}
        | {"intercept": intercept}
        | {f"deviation_{k + 1}": deviation[..., k, :] for k in each}
        | {"ability": abilities, "loading": slopes}
    )


def _triangular(ability: Array, loading: Array, anchors: NDArray[np.intp]) -> tuple[Array, Array]:
    """Describe the same factors by uncorrelated abilities and triangular loadings."""
    root = _cholesky(np.swapaxes(ability, -1, -2) @ ability / ability.shape[-2])
    loading = loading @ root
    rows = loading[..., anchors, :]
    # With rows = triangle Q, rotating by Q' makes them the triangle.
    triangle = _cholesky(rows @ np.swapaxes(rows, -1, -2))
    rotation = np.swapaxes(np.linalg.solve(triangle, rows), -1, -2)
    whitened = np.swapaxes(np.linalg.solve(root, np.swapaxes(ability, -1, -2)), -1, -2)
    return whitened @ rotation, loading @ rotation


def _cholesky(matrices: Array) -> Array:
    """Return triangular roots, NaN where abilities or loadings are all alike."""
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if matrices.ndim == 2:
            return np.full_like(matrices, np.nan)
        return np.stack([_cholesky(matrix) for matrix in matrices])
