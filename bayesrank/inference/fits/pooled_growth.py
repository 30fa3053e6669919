r"""Latent growth of ability over trials, with priors on slopes and on difficulties.

The model of :mod:`bayesrank.inference.fits.growth`, whose penalty on slopes is the density of
their normal prior, with the hierarchical prior on the difficulties. That is not concave: its
precision :math:`t I - u b b^\top` adds to the arrow a diagonal and one direction.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.arrow import Arrow
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.growth import (
    GrowthTrials,
    line_times,
    named_lines,
    tied_lines,
)
from bayesrank.inference.fits.newton import FiniteMaximum, along, maximise_nonconcave
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.pooled_intercepts import PooledPrior
from bayesrank.inference.fits.trial_counts import TrialCounts, trial_counts, trial_fit
from bayesrank.time_axis import ScoreTarget


@dataclass(frozen=True)
class PooledGrowth(FiniteMaximum):
    """Log-posterior of the growth model.

    Free coordinates: abilities averaged over the trials, slopes, then difficulties.

    Attributes
    ----------
    growth : GrowthTrials
        All but the prior on the difficulties.
    """

    growth: GrowthTrials

    @property
    def counts(self) -> TrialCounts:
        """The data."""
        return self.growth.counts

    @property
    def size(self) -> int:
        """Number of resamples."""
        return len(self.counts.weights)

    @property
    def cells(self) -> int:
        """Cells per resample."""
        return self.growth.cells

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(self, growth=self.growth.take(index))

    def scale(self, point: Array) -> Array:
        """Return the count scale of the gradient, of shape (resample,)."""
        return self.growth.scale

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        return self.growth.loglik(point)

    def value(self, point: Array) -> Array:
        """Return the log-posterior without constants, of shape (resample,)."""
        return self.growth.value(point) + self._pooled(point).value

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the log-posterior along what is not held, (resample, p)."""
        return along(self._gradient(point), self.constraint(point))

    def _gradient(self, point: Array) -> Array:
        gradient = self.growth.gradient(point)
        gradient[:, -self.counts.shape[-1] :] += self._pooled(point).gradient
        return gradient

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the log-posterior, of shape (resample, p, p)."""
        prior, n_questions = self._pooled(point), self.counts.shape[-1]
        full = self.growth.ordered(self._arrow(point, prior).dense())
        full[:, -n_questions:, -n_questions:] += prior.coupling
        return full

    def system(self, point: Array) -> tuple[Array, Callable[[Array, NDArray[np.intp]], Array]]:
        """Return the gradient, and a function from the damping of some resamples to their steps."""
        gradient, prior = self._gradient(point), self._pooled(point)
        whole, (n_systems, _, n_questions) = self._arrow(point, prior), self.counts.shape
        # Along the difficulties, which sum to zero; the other column of the prior does not count.
        direction, share = prior.columns[..., 1], prior.shares[:, 1]

        def step(damping: Array, rows: NDArray[np.intp]) -> Array:
            arrow = whole.take(rows)
            if damping.any():
                arrow = arrow.damped(damping, arrow)
            across, lines = direction[rows], gradient[rows, :-n_questions]
            lines = lines.reshape(len(rows), 2, n_systems)
            first = _joined(arrow.solve(gradient[rows, -n_questions:], lines))
            second = _joined(arrow.solve(across, np.zeros_like(lines)))
            weight = share[rows]
            met = (across * first[:, -n_questions:]).sum(axis=-1)
            own = 1.0 + weight * (across * second[:, -n_questions:]).sum(axis=-1)
            return first - (weight * met / own)[:, np.newaxis] * second

        return gradient, step

    def constraint(self, point: Array) -> Array:
        """Return the vector held at zero, of shape (resample, p)."""
        return self.growth.constraint(point)

    def _pooled(self, point: Array) -> PooledPrior:
        # Their mean is 0, whatever prior it has.
        return PooledPrior.at(self.growth.split(point)[2])

    def _arrow(self, point: Array, prior: PooledPrior) -> Arrow:
        arrow = self.growth.arrow(self.growth.derivatives(point)[2])
        return replace(arrow, diagonal=arrow.diagonal + prior.precision[:, np.newaxis])


def pooled_growth_problem(
    outcomes: ArrayLike,
    *,
    time_points: ArrayLike | None = None,
    slope_mean: float = 0.0,
    slope_precision: float = 1.0,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 1.0,
) -> PooledGrowth:
    """Build the objective that :func:`fit_pooled_growth` maximises; see there.

    Parameters
    ----------
    outcomes, time_points, slope_mean, slope_precision, ability_mean, ability_precision
        As in :func:`fit_pooled_growth`.

    Returns
    -------
    PooledGrowth
    """
    counts = trial_counts(outcomes, None, drop=False)
    times = line_times(outcomes, time_points, "mean")
    batch, n_systems = counts.responses.shape
    growth = GrowthTrials(
        counts,
        times - times.mean(),
        0.5 * slope_precision,
        np.broadcast_to(np.asarray(ability_mean, dtype=np.float64), (batch, n_systems)),
        np.full(batch, float(ability_precision)),
        slope_mean,
    )
    return PooledGrowth(growth)


def fit_pooled_growth(
    outcomes: ArrayLike,
    *,
    time_points: ArrayLike | None = None,
    score_target: ScoreTarget = "final",
    slope_mean: float = 0.0,
    slope_precision: float = 1.0,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 1.0,
) -> Fit:
    """Find the mode of the growth model with priors on all its parameters.

    Parameters
    ----------
    outcomes : array_like of shape (..., system, question, trial)
        1 for right, 0 for wrong, negative where a response is missing; two trials at least.
    time_points, score_target
        As in :func:`~bayesrank.inference.fits.growth.fit_growth`.
    slope_mean, slope_precision : float, default 0 and 1
        Mean and precision of the normal prior on the slopes.
    ability_mean : array_like, broadcastable to (system,), default 0
        Means of the normal prior on the (uncentred) abilities at the first trial.
    ability_precision : float, default 1.0
        Precision of that prior, positive.

    Returns
    -------
    Fit
        Free coordinates: abilities averaged over the trials, slopes, difficulties.
        ``parameters``: ``ability`` and ``slope`` of shape (..., system), ``difficulty`` of shape
        (..., question), whose mean is 0.

    References
    ----------
    .. [1] C. Wang and S. W. Nydick. On longitudinal item response theory models: a didactic.
       Journal of Educational and Behavioral Statistics 45 (2020).
       https://doi.org/10.3102/1076998619882026

    Examples
    --------
    >>> improving, falling = [[0, 0, 1, 1], [0, 1, 0, 1]], [[1, 1, 0, 0], [1, 1, 0, 1]]
    >>> fit = fit_pooled_growth([improving, falling], score_target="gain")
    >>> bool(fit.score[0] > 0.0 > fit.score[1])
    True
    """
    problem = pooled_growth_problem(
        outcomes,
        time_points=time_points,
        slope_mean=slope_mean,
        slope_precision=slope_precision,
        ability_mean=ability_mean,
        ability_precision=ability_precision,
    )
    growth = problem.growth
    ability, difficulty = growth.counts.first_point()
    slope = np.full_like(ability, slope_mean)
    optimum = maximise_nonconcave(problem, np.concatenate([ability, slope, difficulty], axis=-1))
    ability, slope, difficulty = growth.split(optimum.point)
    lines = tied_lines(growth, ability, slope)
    optimum = replace(optimum, point=np.concatenate([*lines, difficulty], axis=-1))
    exists = np.ones(len(ability), dtype=bool)
    return trial_fit(problem, optimum, exists=exists, unpack=named_lines(growth, score_target))


def _joined(solution: tuple[Array, Array]) -> Array:
    """Put lines before difficulties."""
    difficulty, lines = solution
    return np.concatenate([lines.reshape(len(lines), -1), difficulty], axis=-1)
