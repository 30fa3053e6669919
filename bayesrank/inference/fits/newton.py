r"""Newton's method for batches of objectives, with one of two safeguards far from the optimum.

If the objective is concave: a trust region. Every such log-likelihood here is that of a log-linear
model of finitely many outcomes, with or without a quadratic penalty. Along a step :math:`s`
its third derivative is then bounded by the second: :math:`|\phi'''| \le r \phi''`, where the reach
:math:`r` is the largest range, over observations, of the change that the step makes to the log-odds
of the outcomes (self-concordance). A step of length :math:`\min(1, \log(1 + r) / r)` then always
increases the objective, which is never evaluated [1]_, and full steps are safe for
:math:`r \le 1`.

If it is not concave: Levenberg-Marquardt [2]_. Steps solve :math:`(H + \lambda D) s = g` with
the exact negative Hessian :math:`H` and the diagonal :math:`D` of the expected one.
:math:`\lambda` is 0 as long as Newton's own steps gain enough, rises until a step gains enough, and
falls after it.

A fit has converged when the error that its last Newton step left has at most the length
`ERROR_TOLERANCE` (its largest coordinate, unless the problem measures it otherwise), and the
largest component of the gradient there is at most `GRADIENT_TOLERANCE` times the count scale (the
largest number of comparisons or responses behind one parameter). The error left by a full step is
extrapolated from the last two, since convergence is quadratic near the maximum: it is
:math:`s_k^3 / s_{k-1}^2`, or less than :math:`s_k` at most. The criterion on the step detects
separated data, whose gradient vanishes while the estimates diverge.

References
----------
.. [1] F. Bach. Self-concordant analysis for logistic regression. Electronic Journal of Statistics 4
   (2010). https://doi.org/10.1214/09-EJS521
.. [2] D. W. Marquardt. An algorithm for least-squares estimation of nonlinear parameters. Journal
   of the Society for Industrial and Applied Mathematics 11 (1963). https://doi.org/10.1137/0111030
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
# From damping, if any, of some resamples to steps.
Solve = Callable[[Array | None, Rows], Array]
ERROR_TOLERANCE = 1e-10
# Longer steps have no information on the rate of convergence.
_NEAR = 0.1
# A step this short is the last, whatever the step before it was.
_LAST_STEP = 1e-8
GRADIENT_TOLERANCE = 1e-10
MAX_ITERATIONS = 100
MAX_DAMPED_ITERATIONS = 500
# Steps this small are taken whole without asking for their reach: no model here moves its log-odds
# by more than three times its largest coordinate (a threshold and two scores).
_SMALL_STEP = 0.3
# Temporaries of this many float64 stay in a core's own cache; larger batches are cut into pieces.
CACHE_CELLS = 1 << 15
# Cubes of longer steps would overflow.
_ENDLESS = 1e50
# Levenberg-Marquardt. Share of the gain promised by the gradient that a step must deliver (Armijo).
_SUFFICIENT = 0.25
# Smaller promised gains, as a fraction of the objective, are rounding; such steps are accepted.
_ROUNDING = 1e-11
# Longest step in any coordinate, on a log or logit scale.
_LONGEST = 3.0
# Nearer to the maximum Newton's own steps are sufficient.
_SETTLED = 1e-3
_LEAST_DAMPING = 1e-6
_MOST_DAMPING = 1e8
_MORE, _LESS = 8.0, 0.1


class Objective(Protocol):
    """A penalised log-likelihood, at points of shape (resample, p)."""

    @property
    def cells(self) -> int:
        """Number of array cells that one resample needs."""
        ...

    def take(self, index: Rows) -> Self:
        """Return the problem of some of the resamples."""
        ...

    def scale(self, point: Array) -> Array:
        """Return the count scale of the gradient, of shape (resample,)."""
        ...

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        ...

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective along what is not held, of shape (resample, p)."""
        ...

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        ...

    def held_rows(self, point: Array) -> Array:
        """Return vectors whose product with a point is held, (1 or resample, p, held)."""
        ...


class ConcaveProblem(Objective, Protocol):
    """What :func:`maximise` needs."""

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, p)."""
        ...

    def reach(self, point: Array, step: Array) -> Array:
        """Return a bound on how far a step moves any log-odds, of shape (resample,)."""
        ...


class SmoothProblem(Objective, Protocol):
    """What :func:`maximise_nonconcave` needs, and the search for other maxima after it."""

    def value(self, point: Array) -> Array:
        """Return the objective, of shape (resample,)."""
        ...

    def system(self, point: Array) -> tuple[Array, Solve]:
        """Return the gradient, and a function from damping, if any, of some resamples to steps."""
        ...

    def restore(self, point: Array) -> Array:
        """Return the nearest point that meets what is held: by default steps keep it."""
        return point

    def moved(self, point: Array, step: Array) -> Array:
        """Return where steps lead: straight on, and from there to what is held."""
        return self.restore(point + step)

    def length(self, point: Array, step: Array) -> Array:
        """Return how long steps are, on a scale of logits, of shape (resample,)."""
        return np.maximum.reduce(np.abs(step), axis=-1)

    def settle(self, point: Array) -> Array:
        """Make large moves that would take many Newton steps, without loss; or none."""
        return point

    def definite(self, point: Array) -> NDArray[np.bool_]:
        """Say where the information is positive definite along what is not held, (resample,)."""
        ...

    def lowest_direction(self, point: Array) -> tuple[float, Array]:
        """Return a direction of low curvature at one point, (1, p), and the curvature along it."""
        ...


@dataclass(frozen=True)
class Optimum:
    """Where Newton's method ended: points of shape (resample, p), all else of shape (resample,).

    `gradient_norm` is the largest component of the gradient over the count scale.
    """

    point: Array
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]
    gradient_norm: Array

    def at(self, point: Array) -> "Optimum":
        """Return the same optimum at points in other coordinates."""
        return Optimum(point, self.converged, self.iterations, self.gradient_norm)


class Remembered[Found]:
    """Cache of results at the last points: derivatives may also be needed at a tried step."""

    def __init__(self, most: int = 1) -> None:
        self.most, self.found = most, dict[bytes, Found]()

    def at(self, point: Array, find: Callable[[Array], Found]) -> Found:
        """Return what `find` finds at a point, by its coordinates."""
        place = point.tobytes()
        if place not in self.found:
            found = find(point)
            if len(self.found) >= self.most:
                self.found.clear()
            self.found[place] = found
        return self.found[place]


class _Step(NamedTuple):
    """Where safe steps led, (resample, p), and their longest coordinates before any shortening.

    `most` is the longest of all. `whole` says which were Newton's own, all if None; `gained` is
    False where none gains anything.
    """

    point: Array
    moved: Array
    most: float
    whole: NDArray[np.bool_] | None = None
    gained: NDArray[np.bool_] | None = None


def maximise(problem: ConcaveProblem, start: Array) -> Optimum:
    """Maximise a batch of concave objectives from points of shape (resample, p)."""
    return _in_pieces(problem, start, MAX_ITERATIONS, ERROR_TOLERANCE, damps=False)


def maximise_nonconcave(
    problem: SmoothProblem, start: Array, *, max_iterations: int = MAX_DAMPED_ITERATIONS
) -> Optimum:
    """Find a stationary point of every objective in a batch, whatever the curvature on the way.

    It is never below the start, of shape (resample, p), but may be a saddle point; see
    :mod:`bayesrank.inference.fits.symmetry`. A resample is given up after `max_iterations`.
    """
    return _in_pieces(problem, start, max_iterations, ERROR_TOLERANCE, damps=True)


def _in_pieces(
    problem: Any, start: Array, max_iterations: int, error_tolerance: float, *, damps: bool
) -> Optimum:
    """Maximise as many objectives at a time as fit into the cache, with damping if they need it."""
    size = max(1, CACHE_CELLS // problem.cells)
    with np.errstate(divide="ignore", invalid="ignore"):  # singular matrices make steps of NaN
        if len(start) <= size:
            found = _iterate(problem, start, max_iterations, error_tolerance, damps=damps)
        else:
            cuts = np.split(np.arange(len(start)), np.arange(size, len(start), size))
            parts = [
                _iterate(
                    problem.take(cut), start[cut], max_iterations, error_tolerance, damps=damps
                )
                for cut in cuts
            ]
            found = tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    point, settled, iterations = found
    scale = problem.scale(point)
    gradient_norm = np.maximum.reduce(np.abs(problem.gradient(point)), axis=-1)
    gradient_norm /= scale + (scale == 0.0)
    if (gradient_norm <= GRADIENT_TOLERANCE).all():
        return Optimum(point, settled, iterations, gradient_norm)
    rough = settled & (gradient_norm > GRADIENT_TOLERANCE)
    settled &= gradient_norm <= GRADIENT_TOLERANCE
    if error_tolerance == ERROR_TOLERANCE and rough.any():
        # From a point of symmetry the first steps shrink faster than later ones: go on.
        rows = np.flatnonzero(rough)
        more = _in_pieces(problem.take(rows), point[rows], max_iterations, 0.0, damps=damps)
        point[rows], settled[rows] = more.point, more.converged
        iterations[rows] += more.iterations
        gradient_norm[rows] = more.gradient_norm
    return Optimum(point, settled, iterations, gradient_norm)


def _iterate(
    problem: Any, start: Array, max_iterations: int, error_tolerance: float, *, damps: bool
) -> tuple[Array, NDArray[np.bool_], NDArray[np.int64]]:
    """Step until all resamples are done, leaving out those that are."""
    point, size = np.array(start, dtype=np.float64), len(start)
    ends, settled = np.empty_like(point), np.zeros(size, dtype=bool)
    iterations = np.full(size, max_iterations)
    # Of the resamples that have not converged:
    rows, before, shortest, longest = np.arange(size), np.zeros(size), 0.0, 0.0
    damping = _LevenbergMarquardt(problem, point) if damps else None
    step = damping.step if damping else _safe_step
    for iteration in range(1, max_iterations + 1):
        point, moved, most, whole, gained = step(problem, point)
        least = most if len(moved) == 1 else float(moved.min())
        if whole is None:  # comparisons are false for NaN
            if least > _LAST_STEP and least**3 > error_tolerance * longest**2:  # for none
                before, shortest, longest = moved, min(least, _NEAR), min(most, _NEAR)
                continue
            over = most <= _LAST_STEP or most**3 <= error_tolerance * shortest**2  # for all
            if over and len(moved) == size:
                settled[:], iterations[:] = True, iteration
                return point, settled, iterations
        near = np.minimum(before, _NEAR)
        last = (moved <= _LAST_STEP) | (moved * moved * moved <= error_tolerance * near * near)
        # The step after a shortened one has no information on the rate of convergence.
        before, done = moved, last
        if whole is not None and gained is not None:
            last &= whole & gained
            before, done = np.where(whole, moved, 0.0), last | ~gained
        if done.any():
            if len(done) == size and done.all():
                return point, last, np.full(size, iteration)
            over, left = rows[done], np.flatnonzero(~done)
            ends[over], settled[over], iterations[over] = point[done], last[done], iteration
            if not left.size:
                return ends, settled, iterations
            rows, problem, point, before = rows[left], problem.take(left), point[left], before[left]
            if damping:
                damping.keep(left)
        shortest, longest = min(float(before.min()), _NEAR), min(float(before.max()), _NEAR)
    ends[rows] = point
    return ends, settled, iterations


def _safe_step(problem: ConcaveProblem, point: Array) -> _Step:
    """Take Newton steps no longer than their reach allows: a trust region."""
    step = problem.newton(point)
    moved = np.maximum.reduce(np.abs(step), axis=-1)
    most = float(moved.max())
    if most <= _SMALL_STEP:  # not when NaN
        return _Step(point + step, moved, most)
    reach = problem.reach(point, step)
    if reach.max() <= 1.0:
        return _Step(point + step, moved, most)
    length, finite = step_length(reach), np.isfinite(moved)
    step *= length[:, np.newaxis]
    step[~finite] = 0.0
    moved = np.minimum(moved, _ENDLESS)
    return _Step(point + step, moved, float(moved.max()), length == 1.0, finite)


class _LevenbergMarquardt:
    """Newton steps with as much damping as they need to gain what they promise."""

    def __init__(self, problem: SmoothProblem, point: Array) -> None:
        self.level = problem.value(point)
        self.damping, self.damped = np.zeros(len(point)), False
        self.moved, self.most = np.zeros(len(point)), 0.0

    def keep(self, rows: Rows) -> None:
        """Forget other resamples."""
        self.level, self.damping = self.level[rows], self.damping[rows]
        self.moved = self.moved[rows]

    def step(self, problem: SmoothProblem, point: Array) -> _Step:
        """Raise the damping of every resample until its step gains enough."""
        if self.most > _SETTLED:
            point = self._settle(problem, point)
        gradient, solve = problem.system(point)
        rows, damping, damped = np.arange(len(point)), self.damping, self.damped
        some, here, slope, level, found = problem, point, gradient, self.level, None
        while True:
            step = solve(damping if damped else None, rows)
            moved = np.minimum(some.length(here, step), _ENDLESS)  # NaN fails
            taken, proposal, reached = _tried(some, here, step, moved, slope, level)
            if found is None:
                if not damped and _all(taken):
                    self.level, self.moved, self.most = reached, moved, float(moved.max())
                    return _Step(proposal, moved, self.most)
                found = point.copy(), moved, self.level.copy(), damping.copy(), taken.copy()
            to = rows[taken]
            found[0][to], found[2][to] = proposal[taken], reached[taken]
            found[1][rows], found[3][rows], found[4][to] = moved, damping, True
            more = np.maximum(_MORE * damping, _LEAST_DAMPING)
            left = ~taken & (more <= _MOST_DAMPING)
            if not left.any():
                return self._stepped(*found)
            rows, damping, damped = rows[left], more[left], True
            if len(rows) < len(here):
                some, here = problem.take(rows), point[rows]
                slope, level = gradient[rows], self.level[rows]

    def _stepped(
        self, point: Array, moved: Array, level: Array, damping: Array, gained: NDArray[np.bool_]
    ) -> _Step:
        """Remember where steps led, with less damping for the next."""
        self.level, self.moved, self.most = level, moved, float(moved.max())
        less = damping * _LESS
        self.damping = np.where(less >= _LEAST_DAMPING, less, 0.0)
        self.damped = bool(self.damping.any())
        return _Step(point, moved, self.most, damping == 0.0, gained)

    def _settle(self, problem: SmoothProblem, point: Array) -> Array:
        """Let the problem make its far moves after long steps."""
        settled = problem.settle(point)
        if settled is point:
            return point
        far = self.moved > _SETTLED
        if not _all(far):
            settled = np.where(far[:, np.newaxis], settled, point)
        self.level = np.where(far, problem.value(settled), self.level)
        return settled


def _tried(
    problem: SmoothProblem, here: Array, step: Array, moved: Array, slope: Array, level: Array
) -> tuple[NDArray[np.bool_], Array, Array]:
    """Return which steps gain enough, their end points and the objective there."""
    promised = np.vecdot(slope, step)
    small = moved <= _LAST_STEP  # rounding decides what such a step gains
    tried = small | ((moved <= _LONGEST) & (promised > 0.0))
    if not _all(tried):
        if not tried.any():
            return tried, here, level
        rows = np.flatnonzero(tried)
        parts = (part[rows] for part in (here, step, moved, slope, level))
        taken, proposal, reached = _tried(problem.take(rows), *parts)
        everywhere, point, value = tried, here.copy(), level.copy()
        everywhere[rows], point[rows], value[rows] = taken, proposal, reached
        return everywhere, point, value
    proposal = problem.moved(here, step)
    reached = problem.value(proposal)
    enough = reached >= level + _SUFFICIENT * promised
    if not _all(enough):
        enough |= small | (promised <= _ROUNDING * np.abs(level))
        reached = np.where(small, level, reached)
    return enough, proposal, reached


def _all(which: NDArray[np.bool_]) -> bool:
    """Return whether all are true, in a fifth of the time of NumPy for short arrays."""
    return np.count_nonzero(which) == which.size


def step_length(reach: Array) -> Array:
    """Return the share of a Newton step that is certain to increase the objective, given its reach.

    Examples
    --------
    >>> step_length(np.array([0.5, 1.0, 10.0])).round(3)
    array([1.  , 1.  , 0.24])
    """
    far = np.maximum(reach, 1.0)
    return np.where(reach <= 1.0, 1.0, np.log1p(far) / far)


def solve_or_nan(matrix: Array, right: Array) -> Array:
    """Solve linear systems, (..., p, p) by (..., p, column); singular ones become NaN."""
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        if matrix.ndim == 2:
            return np.full_like(right, np.nan)
        return np.stack([solve_or_nan(*pair) for pair in zip(matrix, right, strict=True)])
