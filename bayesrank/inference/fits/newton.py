r"""Newton's method for concave problems: damped so that it never diverges, batched.

Every log-likelihood served here is that of a log-linear model of finitely many outcomes, perhaps
with a quadratic penalty. Along a step :math:`s` its third derivative is then bounded by the second:
:math:`|\phi'''| \le r \phi''`, where the reach :math:`r` is the largest range, over observations,
of the change that the step makes to the log-odds of the outcomes. It follows that a step of
length :math:`\min(1, \log(1 + r) / r)` always increases the objective, without evaluating it
(Bach, 2010), and that full steps are safe for :math:`r \le 1`, where convergence is quadratic.

A fit has converged when the error that its last Newton step left is at most `ERROR_TOLERANCE` in
every parameter, and the largest component of the gradient there is at most `GRADIENT_TOLERANCE`
times the count scale (the largest number of comparisons or responses behind one parameter). The
error left by a full step is extrapolated from the last two, since convergence is quadratic: it is
:math:`s_k^3 / s_{k-1}^2`, or less than :math:`s_k` at most. The step is what unmasks separated
data, whose gradient vanishes while the estimates run away.

References
----------
.. [1] F. Bach. Self-concordant analysis for logistic regression. Electronic Journal of Statistics 4
   (2010). https://doi.org/10.1214/09-EJS521
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.arrow import solve_or_nan

Array = NDArray[np.float64]

ERROR_TOLERANCE = 1e-13
# A step this short is the last, whatever the step before it was.
_LAST_STEP = 1e-8
GRADIENT_TOLERANCE = 1e-10
MAX_ITERATIONS = 100
# Steps this small are taken whole without asking for their reach: no model here moves its log-odds
# by more than three times its largest coordinate (a threshold and two scores).
_SMALL_STEP = 0.3
# Temporaries of this many float64 stay in a core's own cache; larger batches are cut into pieces.
CACHE_CELLS = 1 << 15


class ConcaveProblem(Protocol):
    """What :func:`maximise` needs from a model: batched arrays whose first axis is the resample."""

    @property
    def scale(self) -> Array:
        """Count scale of the gradient, of shape (resample,)."""
        ...

    @property
    def cells(self) -> int:
        """Number of array cells that one resample needs."""
        ...

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        ...

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, p)."""
        ...

    def reach(self, point: Array, step: Array) -> Array:
        """Return a bound on how far a step moves any log-odds, of shape (resample,)."""
        ...

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some of the resamples."""
        ...


@dataclass(frozen=True)
class Optimum:
    """Where :func:`maximise` ended.

    Attributes
    ----------
    point : numpy.ndarray of shape (resample, p)
        The maximisers.
    converged : numpy.ndarray of bool and shape (resample,)
        Whether both criteria of the module docstring hold.
    iterations : numpy.ndarray of int64 and shape (resample,)
        Newton iterations.
    gradient_norm : numpy.ndarray of shape (resample,)
        Largest component of the gradient over the count scale.
    """

    point: Array
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    gradient_norm: Array


def maximise(
    problem: ConcaveProblem,
    start: Array,
    *,
    constraint: Callable[[Array], Array] | None = None,
    error_tolerance: float = ERROR_TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Optimum:
    """Maximise a batch of concave objectives.

    Parameters
    ----------
    problem : ConcaveProblem
        The batch.
    start : numpy.ndarray of shape (resample, p)
        Where to begin.
    constraint : callable, optional
        Returns, at a point, a vector of shape (resample, p) whose product with the point the
        steps leave alone; the gradient along it need not vanish.
    error_tolerance : float, default 1e-13
        Error that the last step may leave; larger for a mere start.
    max_iterations : int, default 100
        Iterations after which a resample is given up and flagged.

    Returns
    -------
    Optimum
    """
    size = len(start)
    piece = max(1, CACHE_CELLS // problem.cells)
    if size == 1:
        found = _maximise_one(problem, start, max_iterations, error_tolerance)
    elif size <= piece:
        found = _maximise_piece(problem, start, max_iterations, error_tolerance)
    else:
        cuts = [slice(first, first + piece) for first in range(0, size, piece)]
        parts = [
            _maximise_piece(problem.take(cut), start[cut], max_iterations, error_tolerance)
            for cut in cuts
        ]
        found = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    point, settled, iterations, gradient = found
    scale = problem.scale
    scale = np.where(scale > 0.0, scale, 1.0)
    gradient_norm = np.abs(gradient).max(axis=-1) / scale
    if constraint is not None and gradient_norm.max(initial=0.0) > GRADIENT_TOLERANCE:
        gradient_norm = np.abs(along(gradient, constraint(point))).max(axis=-1) / scale
    converged = settled & (gradient_norm <= GRADIENT_TOLERANCE)
    return Optimum(point, converged, iterations, gradient_norm)


def along(gradient: Array, constraint: Array) -> Array:
    """Return the part of a gradient that a linear constraint leaves to act on.

    Parameters
    ----------
    gradient, constraint : numpy.ndarray of shape (resample, p)
        The gradient, and the vector whose product with the point is held.

    Returns
    -------
    numpy.ndarray of shape (resample, p)

    Examples
    --------
    >>> along(np.array([[3.0, 1.0]]), np.array([[1.0, 1.0]]))
    array([[ 1., -1.]])
    """
    lengths = np.maximum((constraint**2).sum(axis=-1, keepdims=True), 1e-300)
    share = (gradient * constraint).sum(axis=-1, keepdims=True) / lengths
    return gradient - share * constraint


def _maximise_one(
    problem: ConcaveProblem, start: Array, max_iterations: int, error_tolerance: float
) -> tuple[Array, NDArray[np.bool_], NDArray[np.int64], Array]:
    """Do what :func:`_maximise_piece` does for a single resample, on numbers instead of arrays.

    Bookkeeping in arrays takes as long as a small model's Newton steps.
    """
    point = np.array(start, dtype=np.float64)
    before, settled, iteration = 0.0, False, 0
    while not settled and iteration < max_iterations:
        iteration += 1
        step = problem.newton(point)
        moved, length = float(np.abs(step).max()), 1.0
        if not moved <= _SMALL_STEP:  # also when NaN
            length = float(step_length(problem.reach(point, step))[0])
            step *= length
            if not np.isfinite(step).all():
                break
        point += step
        cubed = moved * moved * moved  # a power of a float raises where it overflows
        settled = moved <= _LAST_STEP or cubed <= error_tolerance * before * before
        # The step after a shortened one says nothing about the rate of convergence.
        before = moved if length == 1.0 else 0.0
    return point, np.array([settled]), np.array([iteration]), problem.gradient(point)


def _maximise_piece(
    problem: ConcaveProblem, start: Array, max_iterations: int, error_tolerance: float
) -> tuple[Array, NDArray[np.bool_], NDArray[np.int64], Array]:
    """Return points, whether their last step was small, iterations and gradients."""
    point = np.array(start, dtype=np.float64)
    iterations = np.full(len(point), max_iterations)
    settled = np.zeros(len(point), dtype=bool)
    active = np.arange(len(point))
    current, here, before = problem, point.copy(), np.zeros(len(point))
    for iteration in range(1, max_iterations + 1):
        step = current.newton(here)
        moved = np.abs(step).max(axis=-1)
        lost = length = None
        if not moved.max() <= _SMALL_STEP:  # also when NaN
            length = step_length(current.reach(here, step))
            step *= length[:, None]
            lost = ~np.isfinite(step).all(axis=-1)
            step[lost] = 0.0
        here += step
        done = (moved <= _LAST_STEP) | (moved**3 <= error_tolerance * before**2)
        before = moved
        if lost is not None and length is not None:
            done |= lost
            # The step after a shortened one says nothing about the rate of convergence.
            before = np.where(length < 1.0, 0.0, moved)
        if done.any():
            point[active] = here
            iterations[active[done]] = iteration
            settled[active] = done if lost is None else done & ~lost
            if done.all():
                break
            left = np.flatnonzero(~done)
            active, here, current = active[left], here[left], current.take(left)
            before = before[left]
    else:
        point[active] = here
    return point, settled, iterations, problem.gradient(point)


def smoothed_log_odds(successes: Array, trials: Array) -> Array:
    """Return finite log-odds to begin iterations with, half a success and a failure added.

    Parameters
    ----------
    successes, trials : numpy.ndarray
        Counts.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> smoothed_log_odds(np.array([0.0, 2.0]), np.array([4.0, 4.0])).round(3)
    array([-2.197,  0.   ])
    """
    return np.log((successes + 0.5) / (trials - successes + 0.5))


def step_length(reach: Array) -> Array:
    """Return the share of a Newton step that is certain to increase the objective.

    Parameters
    ----------
    reach : numpy.ndarray
        Largest range of the step's changes in log-odds.

    Returns
    -------
    numpy.ndarray of the shape of `reach`
        1 up to a reach of 1, then log(1 + reach) / reach.

    Examples
    --------
    >>> step_length(np.array([0.5, 1.0, 10.0])).round(3)
    array([1.  , 1.  , 0.24])
    """
    far = np.maximum(reach, 1.0)
    return np.where(reach <= 1.0, 1.0, np.log1p(far) / far)


def solve_zero_sum(matrix: Array, gradient: Array, size: int, precision: Array) -> Array:
    """Solve for Newton steps whose first `size` coordinates are determined up to a common shift.

    Parameters
    ----------
    matrix : numpy.ndarray of shape (resample, p, p)
        Negative Hessians; overwritten.
    gradient : numpy.ndarray of shape (resample, p)
        Gradients, without a part along the shift.
    size : int
        Number of coordinates that shift together.
    precision : numpy.ndarray of shape (resample,)
        Prior precision of those coordinates; where it is positive nothing needs fixing.

    Returns
    -------
    numpy.ndarray of shape (resample, p)
        Steps, up to that shift; NaN where the matrix is singular.
    """
    diagonal = np.einsum("bii->bi", matrix)
    # A parameter without data has a zero row, which must not stop the whole batch.
    diagonal += diagonal <= 0.0
    free = precision == 0.0
    if free.any():
        # Any rank-one term along the diagonal makes the shift regular. Weighting it by the
        # diagonal keeps parameters of little information from drowning in the others.
        weights = diagonal[:, :size].copy()
        scaled = weights / weights.sum(axis=-1, keepdims=True)
        if len(free) > 1:
            scaled *= free[:, None]
        matrix[:, :size, :size] += weights[:, :, None] * scaled[:, None, :]
    return solve_or_nan(matrix, gradient[:, :, None])[:, :, 0]
