r"""Latent growth of ability over trials: a line per system, one difficulty per question.

With times :math:`t_n` from 0 to 1, their mean :math:`\bar t`, and :math:`w_m` the multiplicity of
question m,

.. math::

   \ell = \sum_{lmn} w_m \bigl(R_{lmn} (\theta_{ln} - b_m) - \log(1 + e^{\theta_{ln} - b_m})\bigr),
   \qquad \theta_{ln} = \bar\theta_l + \beta_l (t_n - \bar t),

and :math:`\rho \sum \beta_l^2` and :math:`\sum (\theta_{l1} - \mu_l)^2 / (2 s^2)` are subtracted.
The weighted mean difficulty is held at 0. The Hessian is an arrow: a two by two block per system, a
diagonal of the difficulties, and a border between them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.arrow import Arrow
from bayesrank.inference.fits.exact_ties import interchangeable
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.items import limited
from bayesrank.inference.fits.newton import maximise
from bayesrank.inference.fits.penalty import Array, checked_precision, flattened
from bayesrank.inference.fits.trial_counts import (
    TrialCounts,
    linked,
    trial_counts,
    trial_fit,
)
from bayesrank.time_axis import ScoreTarget, check_time_axis

_TINY = 1e-300


@dataclass(frozen=True)
class GrowthTrials:
    """Penalised log-likelihood of the growth model.

    Free coordinates: abilities averaged over the trials, slopes, then difficulties.

    Attributes
    ----------
    counts : TrialCounts
        The data.
    times : numpy.ndarray of shape (trial,)
        Less their mean; they span 1.
    slope_reg : float
        Weight of the sum of squared slopes.
    ability_mean : numpy.ndarray of shape (resample, system)
        Means of a normal prior on the abilities at the first trial.
    ability_precision : numpy.ndarray of shape (resample,)
        Precision of that prior; 0 for none.
    slope_mean : float, default 0
        Where the squared slopes are counted from.
    """

    counts: TrialCounts
    times: Array
    slope_reg: float
    ability_mean: Array
    ability_precision: Array
    slope_mean: float = 0.0

    @property
    def scale(self) -> Array:
        """Largest number of responses behind a parameter, plus the prior's precision."""
        return self.counts.scale + self.ability_precision

    @property
    def cells(self) -> int:
        """Cells per resample."""
        n_systems, n_trials, n_questions = self.counts.shape
        return n_systems * n_trials * n_questions

    def take(self, index: slice | NDArray[np.intp]) -> Self:
        """Return the problem of some resamples."""
        return replace(
            self,
            counts=self.counts.take(index),
            ability_mean=self.ability_mean[index],
            ability_precision=self.ability_precision[index],
        )

    def loglik(self, point: Array) -> Array:
        """Return the log-likelihood, of shape (resample,)."""
        return self.counts.loglik(*self._states(point))

    def value(self, point: Array) -> Array:
        """Return the penalised objective, of shape (resample,)."""
        ability, slope, _ = self.split(point)
        gaps = ability + slope * self.times[0] - self.ability_mean
        prior = self.ability_precision * (gaps**2).sum(axis=-1)
        slopes = self.slope_reg * ((slope - self.slope_mean) ** 2).sum(axis=-1)
        return self.loglik(point) - 0.5 * prior - slopes

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        for_lines, for_difficulty, _ = self.derivatives(point)
        return np.concatenate([for_lines.reshape(len(point), -1), for_difficulty], axis=-1)

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        return self.ordered(self.arrow(self.derivatives(point)[2]).dense())

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, p)."""
        for_lines, for_difficulty, spread = self.derivatives(point)
        arrow = self.arrow(spread)
        if spread.shape[-1] == 1:
            # The complement of a single question is all rounding, and its difficulty is held
            # whatever is added to it.
            arrow = replace(arrow, diagonal=2.0 * arrow.diagonal)
        difficulty, lines = arrow.solve(for_difficulty, for_lines)
        return np.concatenate([lines.reshape(len(point), -1), difficulty], axis=-1)

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of right and wrong at most."""
        ability, slope, difficulty = self.split(step)
        # A line is farthest out at one of its ends.
        ends = ability[..., np.newaxis] + slope[..., np.newaxis] * self.times[[0, -1]]
        up = ends.max(axis=(-1, -2)) - difficulty.min(axis=-1)
        return np.maximum(up, difficulty.max(axis=-1) - ends.min(axis=(-1, -2)))

    def constraint(self, point: Array) -> Array:
        """Return the vector held at zero, of shape (resample, p)."""
        held = np.zeros(point.shape)
        held[:, 2 * self.counts.shape[0] :] = self.counts.held
        return held

    def ordered(self, matrices: Array) -> Array:
        """Return matrices of :meth:`arrow` in the order of the free coordinates."""
        n_questions = self.counts.shape[-1]
        order = np.r_[n_questions : matrices.shape[-1], :n_questions]
        return matrices[:, order[:, np.newaxis], order]

    def split(self, point: Array) -> tuple[Array, Array, Array]:
        """Return abilities, slopes and difficulties."""
        n_systems = self.counts.shape[0]
        return point[:, :n_systems], point[:, n_systems : 2 * n_systems], point[:, 2 * n_systems :]

    def _states(self, point: Array) -> tuple[Array, Array]:
        ability, slope, difficulty = self.split(point)
        return ability[..., np.newaxis] + slope[..., np.newaxis] * self.times, difficulty

    def derivatives(self, point: Array) -> tuple[Array, Array, Array]:
        """Return the gradients by lines and difficulties, and p (1 - p)."""
        ability, slope, _ = self.split(point)
        for_states, for_difficulty, spread = self.counts.derivatives(*self._states(point))
        for_lines = np.empty((len(point), 2, ability.shape[-1]))
        for_states.sum(axis=-1, out=for_lines[:, 0])
        np.matmul(for_states, self.times, out=for_lines[:, 1])
        start = self.times[0]
        gaps = ability + slope * start - self.ability_mean
        pull = self.ability_precision[:, np.newaxis] * gaps
        for_lines[:, 0] -= pull
        for_lines[:, 1] -= 2.0 * self.slope_reg * (slope - self.slope_mean) + start * pull
        return for_lines, for_difficulty, spread

    def arrow(self, spread: Array) -> Arrow:
        """Return the negative Hessian, difficulties on its diagonal."""
        counts, times = self.counts, self.times
        powers = np.stack([np.ones_like(times), times, times**2])
        weight = counts.over_questions(spread)
        weight[..., 0] += self.ability_precision[:, np.newaxis]
        moments = weight @ powers.T
        blocks = np.empty((len(spread), 2, 2, counts.shape[0]))
        blocks[:, 0, 0] = moments[..., 0]
        blocks[:, 0, 1] = blocks[:, 1, 0] = moments[..., 1]
        blocks[:, 1, 1] = moments[..., 2] + 2.0 * self.slope_reg
        # Systems without data and prior have no gradient either, and stay where they are.
        np.maximum(blocks[:, 0, 0], _TINY, out=blocks[:, 0, 0])
        mixed = powers[:2] @ spread
        border = mixed.transpose(0, 3, 2, 1) * -counts.weights[:, :, np.newaxis, np.newaxis]
        diagonal = counts.left_out - border[:, :, 0].sum(axis=-1)
        return Arrow(diagonal, blocks, border, on_diagonal=counts.held)


def growth_problem(
    outcomes: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    time_points: ArrayLike | None = None,
    slope_reg: float = 0.01,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
) -> GrowthTrials:
    """Build the objective that :func:`fit_growth` maximises; see there.

    Parameters
    ----------
    outcomes, weights, time_points, slope_reg, ability_mean, ability_precision
        As in :func:`fit_growth`.

    Returns
    -------
    GrowthTrials
        The free coordinates are the abilities, the slopes, then the difficulties.
    """
    return _problem(
        trial_counts(outcomes, weights),
        line_times(outcomes, time_points, "mean"),
        slope_reg,
        ability_mean,
        ability_precision,
    )


def fit_growth(
    outcomes: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    time_points: ArrayLike | None = None,
    score_target: ScoreTarget = "final",
    slope_reg: float = 0.01,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
) -> Fit:
    r"""Fit the latent growth model.

    At time t from 0 to 1, P(l is right on m) = sigma(ability_l + slope_l (t - mean t) - b_m).

    Trials are ordered times. The penalty :math:`\rho \sum \beta_l^2` on the slopes is subtracted
    from the log-likelihood; with it the maximum exists where that of the Rasch model does. With one
    trial the slopes are 0 and this is the Rasch model.

    Parameters
    ----------
    outcomes : array_like of shape (..., system, question, trial)
        1 for right, 0 for wrong, negative where a response is missing.
    weights : array_like of shape (..., question), optional
        Multiplicity of each question; 1 by default.
    time_points : array_like of shape (trial,), optional
        Strictly increasing times, which are scaled to run from 0 to 1; equal steps by default.
    score_target : {"final", "initial", "mean", "gain"}, default "final"
        The score: ability at the last trial, at the first, its mean over trials, or the last less
        the first.
    slope_reg : float, default 0.01
        Weight of the sum of squared slopes, positive.
    ability_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the (uncentred) abilities at the first trial.
    ability_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 for maximum likelihood.

    Returns
    -------
    Fit
        Free coordinates: abilities averaged over the trials, slopes, difficulties.
        ``parameters``: ``ability`` and ``slope`` of shape (..., system), and ``difficulty``,
        infinite for questions that every system answers alike in all trials (they are left out)
        and NaN for those without weight. The mean difficulty of the others is 0.

    Raises
    ------
    ValueError
        If an option is unknown or out of range, or times do not increase.

    References
    ----------
    .. [1] C. Wang and S. W. Nydick. On longitudinal item response theory models: a didactic.
       Journal of Educational and Behavioral Statistics 45 (2020).
       https://doi.org/10.3102/1076998619882026

    Examples
    --------
    >>> improving, falling = [[0, 0, 1, 1], [0, 1, 0, 1]], [[1, 1, 0, 0], [1, 1, 0, 1]]
    >>> fit = fit_growth([improving, falling], score_target="gain")
    >>> bool(fit.score[0] > 0.0 > fit.score[1])
    True
    """
    times = line_times(outcomes, time_points, score_target)
    counts = trial_counts(outcomes, weights)
    problem = _problem(counts, times, slope_reg, ability_mean, ability_precision)
    merged = counts.merged()
    reduced = problem if merged is None else replace(problem, counts=merged[0])
    ability, difficulty = reduced.counts.first_point()
    start = np.concatenate([ability, np.zeros_like(ability), difficulty], axis=-1)
    optimum = maximise(reduced, start, constraint=reduced.constraint)
    ability, slope, difficulty = reduced.split(optimum.point)
    ability, slope = tied_lines(problem, ability, slope)
    if merged is not None:
        difficulty = difficulty[:, merged[1]]
    point = np.concatenate([ability, slope, difficulty], axis=-1)
    exists = problem.ability_precision > 0.0
    if not exists.all():
        exists = exists | linked(outcomes, counts)
    unpack = named_lines(problem, score_target)
    return trial_fit(problem, replace(optimum, point=point), exists=exists, unpack=unpack)


def line_times(outcomes: ArrayLike, time_points: ArrayLike | None, score_target: str) -> Array:
    """Check the options of times and scores and return the times, from 0 to 1.

    Parameters
    ----------
    outcomes, time_points, score_target
        As in :func:`fit_growth`.

    Returns
    -------
    numpy.ndarray of shape (trial,)
    """
    return check_time_axis(
        np.shape(outcomes)[-1],
        variant="growth",
        assume_time_axis=True,
        time_points=time_points,
        score_target=score_target,
    )


def _problem(
    counts: TrialCounts,
    times: Array,
    slope_reg: float,
    ability_mean: ArrayLike,
    ability_precision: ArrayLike,
) -> GrowthTrials:
    precision = checked_precision("ability_precision", ability_precision)
    if not 0.0 < slope_reg < np.inf:
        raise ValueError(
            "slope_reg must be positive and finite, since a single run of right answers can make "
            f"free slopes infinite; got {slope_reg!r}"
        )
    means = np.asarray(ability_mean, dtype=np.float64)
    return GrowthTrials(
        counts,
        times - times.mean(),
        slope_reg,
        flattened(means, (*counts.lead, counts.shape[0])).reshape(-1, counts.shape[0]),
        flattened(precision, counts.lead),
    )


def tied_lines(problem: GrowthTrials, ability: Array, slope: Array) -> tuple[Array, Array]:
    """Make the lines of systems equal that the data cannot tell apart.

    Parameters
    ----------
    problem : GrowthTrials
        The objective.
    ability, slope : numpy.ndarray of shape (resample, system)
        The lines at its maximum.

    Returns
    -------
    tuple of numpy.ndarray of shape (resample, system)
    """
    counts = problem.counts
    by_trial = counts.by_trial.copy()
    by_trial[..., 0] += problem.ability_precision[:, np.newaxis] * problem.ability_mean
    totals, trends = by_trial.sum(axis=-1), by_trial @ problem.times
    rows = [totals[..., np.newaxis], trends[..., np.newaxis]]
    same = interchangeable(totals, rows=counts.system_rows(rows))
    if same is None:
        return ability, slope
    return np.take_along_axis(ability, same, axis=-1), np.take_along_axis(slope, same, axis=-1)


def named_lines(
    problem: GrowthTrials, score_target: ScoreTarget
) -> Callable[..., dict[str, Array]]:
    """Return what names the free coordinates, given the ``limit`` of difficulties.

    Parameters
    ----------
    problem : GrowthTrials
        The objective.
    score_target : {"final", "initial", "mean", "gain"}
        As in :func:`fit_growth`.

    Returns
    -------
    callable
    """
    ends = problem.times[[0, -1]]
    share = {"initial": ends[0], "final": ends[1], "mean": 0.0, "gain": ends[1] - ends[0]}
    level = 0.0 if score_target == "gain" else 1.0
    return partial(_unpack, problem.counts.shape[0], level, float(share[score_target]))


def _unpack(
    n_systems: int, level: float, share: float, free: Array, *, limit: Array | None
) -> dict[str, Array]:
    ability, slope = free[..., :n_systems], free[..., n_systems : 2 * n_systems]
    return {
        "score": level * ability + share * slope,
        "ability": ability,
        "slope": slope,
        "difficulty": limited(free[..., 2 * n_systems :], limit),
    }
