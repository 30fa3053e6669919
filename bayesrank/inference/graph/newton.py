"""Newton's method for a smooth function with an exact Hessian, safe far from the optimum."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array]]

# Converged when the next Newton step would move no parameter further than this, relative to the
# largest one (or 1). The step estimates the error itself; a gradient also vanishes on the way to
# infinity, where an estimate does not exist.
STEP_TOLERANCE = 1e-9
# Longest step in any one unconstrained parameter: logits and log scales move by a few units.
LONGEST_STEP = 5.0
# Decrease demanded of a step, as a share of what the gradient promises (Armijo's rule).
SUFFICIENT_DECREASE = 1e-4
MOST_HALVINGS = 34
# Share of a diagonal element that elimination may leave; less is rounding noise.
SMALLEST_PIVOT = 1e-14


@dataclass(frozen=True)
class Minimum:
    """Where a minimisation ended.

    Attributes
    ----------
    x : numpy.ndarray of shape (parameter,)
        The point.
    value : float
        The function there.
    gradient : numpy.ndarray of shape (parameter,)
        Its gradient.
    hessian : numpy.ndarray of shape (parameter, parameter)
        Its second derivatives.
    converged : bool
        Whether the matrix is positive definite and the next step within the tolerance.
    iterations : int
        Newton steps taken.
    """

    x: Array
    value: float
    gradient: Array
    hessian: Array
    converged: bool
    iterations: int


def minimize_newton(
    function: Function,
    hessian: Callable[[Array], Array],
    x: Array,
    *,
    max_iterations: int = 100,
) -> Minimum:
    """Minimise by Newton steps, damped where the function is not convex.

    Parameters
    ----------
    function : callable
        Value and gradient at a point.
    hessian : callable
        Matrix of second derivatives at a point.
    x : numpy.ndarray of shape (parameter,)
        Where to start; the value must be finite there.
    max_iterations : int, default 100
        Steps after which to give up.

    Returns
    -------
    Minimum
        The last point, and whether it is a minimum.
    """
    value, gradient = function(x)
    curvature = hessian(x)
    converged = False
    for iteration in range(max_iterations):
        if not np.isfinite(curvature).all():
            return Minimum(x, value, gradient, curvature, False, iteration)
        step, definite = _newton_step(curvature, gradient)
        converged = definite and _largest(step) <= STEP_TOLERANCE * max(1.0, _largest(x))
        moved = _line_search(function, x, value, gradient, step)
        if moved is None:
            # Rounding hides any further decrease.
            return Minimum(x, value, gradient, curvature, converged, iteration)
        if converged and _largest(moved[2]) >= 0.5 * _largest(gradient):
            # Steps within the tolerance still double the correct digits, until rounding stops them.
            return Minimum(x, value, gradient, curvature, True, iteration)
        x, value, gradient = moved
        curvature = hessian(x)
    return Minimum(x, value, gradient, curvature, converged, max_iterations)


def _largest(values: Array) -> float:
    return float(np.abs(values).max())


def positive_definite_root(matrix: Array) -> Array | None:
    """Return the lower Cholesky factor of a matrix, None if it is not positive definite.

    A matrix that is singular but for rounding counts as singular.
    """
    try:
        root = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None
    left = np.diagonal(root) ** 2
    return root if np.all(left > SMALLEST_PIVOT * np.diagonal(matrix)) else None


def _newton_step(curvature: Array, gradient: Array) -> tuple[Array, bool]:
    """Solve for the step, adding to the diagonal until the matrix is positive definite.

    Also return whether it was so from the start.
    """
    scale = max(1e-8, _largest(np.diagonal(curvature)))
    shift = 0.0
    while (root := positive_definite_root(curvature + shift * np.eye(len(gradient)))) is None:
        shift = max(10.0 * shift, 1e-10 * scale)
    step = -cho_solve((root, True), gradient)
    return step * min(1.0, LONGEST_STEP / max(_largest(step), LONGEST_STEP)), shift == 0.0


def _line_search(
    function: Function, x: Array, value: float, gradient: Array, step: Array
) -> tuple[Array, float, Array] | None:
    """Shorten a step until the function decreases; None when it never does."""
    slope = float(gradient @ step)
    # Below this the value is rounding noise, and the gradient alone says whether a step helps.
    noise = 1e-13 * max(1.0, abs(value))
    for halvings in range(MOST_HALVINGS):
        length = 0.5**halvings
        candidate = x + length * step
        new_value, new_gradient = function(candidate)
        if not (np.isfinite(new_value) and np.isfinite(new_gradient).all()):
            continue
        decrease = new_value - value
        if decrease <= SUFFICIENT_DECREASE * length * slope or (
            decrease <= noise and _largest(new_gradient) < _largest(gradient)
        ):
            return candidate, new_value, new_gradient
    return None
