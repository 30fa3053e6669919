r"""The multidimensional two-parameter logistic model by Newton's method.

With :math:`k_{lm}` right out of :math:`n_{lm}`, abilities :math:`\theta_l` that sum to zero over
the systems, loadings :math:`a_m` and intercepts :math:`d_m`,

.. math::

   \ell = \sum_{lm} k_{lm} \eta_{lm} - n_{lm} \log(1 + e^{\eta_{lm}}), \qquad
   \eta_{lm} = \theta_l^\top a_m + d_m,

with normal priors on abilities and on what loadings differ from their reference, in the directions
that it leaves them, and the hierarchical prior on intercepts. The objective, of
:mod:`bayesrank.inference.fits.factor_items`, is not concave: a step that does not increase it is
damped.
"""

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.factor_items import FactorItems, Point
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.laplace import zero_sum
from bayesrank.inference.fits.newton import GRADIENT_TOLERANCE, smoothed_log_odds
from bayesrank.inference.fits.penalty import Array
from bayesrank.models.factor_reference import Score, factor_reference

_MAX_ITERATIONS = 100
# Convergence is quadratic: the error that a full step of this size leaves is its square.
_LAST_STEP = 1e-8
# Share of the objective that a step may lose to rounding.
_ROUNDING = 1e-10
_FIRST_DAMPING = 1e-3
# Abilities are log-odds, of the order of 1.
_NO_ABILITY = 1e-12


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
