r"""Ability as a random walk over trials, one difficulty per question.

With times :math:`t_n` from 0 to 1 and :math:`w_m` the multiplicity of question m,

.. math::

   \ell = \sum_{lmn} w_m \bigl(R_{lmn} (\theta_{ln} - b_m) - \log(1 + e^{\theta_{ln} - b_m})\bigr),

and :math:`\rho \sum (\theta_{l,n+1} - \theta_{ln})^2 / (t_{n+1} - t_n)`,
:math:`\kappa \sum \theta_{l1}^2` and :math:`\sum (\theta_{l1} - \mu_l)^2 / (2 s^2)` are subtracted.
The weighted mean difficulty is held at 0. The Hessian is tridiagonal per system and diagonal in the
difficulties, with a border between them.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.inference.fits.chains import Chains
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


@dataclass(frozen=True)
class WalkTrials:
    """Penalised log-likelihood of the random walk.

    Free coordinates: states, system by system, then difficulties.

    Attributes
    ----------
    counts : TrialCounts
        The data.
    links : numpy.ndarray of shape (trial - 1,)
        Precisions of the steps of the walk.
    anchor_reg : float
        Weight of the sum of squared first states.
    ability_mean : numpy.ndarray of shape (resample, system)
        Means of a normal prior on the first states.
    ability_precision : numpy.ndarray of shape (resample,)
        Precision of that prior; 0 for none.
    """

    counts: TrialCounts
    links: Array
    anchor_reg: float
    ability_mean: Array
    ability_precision: Array

    @property
    def scale(self) -> Array:
        """Largest number of responses behind a parameter, plus the penalties' precisions."""
        return self.counts.scale + self.ability_precision + self.links.max(initial=0.0)

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
        return self.counts.loglik(*self.split(point))

    def value(self, point: Array) -> Array:
        """Return the penalised objective, of shape (resample,)."""
        states, _ = self.split(point)
        first = states[..., 0]
        prior = self.ability_precision * ((first - self.ability_mean) ** 2).sum(axis=-1)
        walk = (self.links * np.diff(states) ** 2).sum(axis=(-1, -2))
        anchor = self.anchor_reg * (first**2).sum(axis=-1)
        return self.loglik(point) - 0.5 * (prior + walk) - anchor

    def gradient(self, point: Array) -> Array:
        """Return the gradient of the objective, of shape (resample, p)."""
        for_states, for_difficulty, _ = self._derivatives(point)
        return np.concatenate([for_states.reshape(len(point), -1), for_difficulty], axis=-1)

    def information(self, point: Array) -> Array:
        """Return the negative Hessian of the objective, of shape (resample, p, p)."""
        n_systems, n_trials, n_questions = self.counts.shape
        dense = self._chains(self._derivatives(point)[2]).dense()
        states = n_questions + np.arange(n_systems * n_trials).reshape(n_trials, n_systems)
        order = np.concatenate([states.T.ravel(), np.arange(n_questions)])
        return dense[:, order[:, np.newaxis], order]

    def newton(self, point: Array) -> Array:
        """Return the Newton step, of shape (resample, p)."""
        for_states, for_difficulty, spread = self._derivatives(point)
        # A single state without data or penalty has no curvature; its NaN ends the fit.
        with np.errstate(divide="ignore", invalid="ignore"):
            states, difficulty = self._chains(spread).solve(for_states, for_difficulty)
        return np.concatenate([states.reshape(len(point), -1), difficulty], axis=-1)

    def reach(self, point: Array, step: Array) -> Array:
        """Return how far a step moves the log-odds of right and wrong at most."""
        states, difficulty = self.split(step)
        up = states.max(axis=(-1, -2)) - difficulty.min(axis=-1)
        return np.maximum(up, difficulty.max(axis=-1) - states.min(axis=(-1, -2)))

    def constraint(self, point: Array) -> Array:
        """Return the vector held at zero, of shape (resample, p)."""
        held = np.zeros(point.shape)
        held[:, point.shape[-1] - self.counts.shape[-1] :] = self.counts.held
        return held

    def split(self, point: Array) -> tuple[Array, Array]:
        """Return states and difficulties."""
        n_systems, n_trials, _ = self.counts.shape
        size = n_systems * n_trials
        return point[:, :size].reshape(-1, n_systems, n_trials), point[:, size:]

    def _derivatives(self, point: Array) -> tuple[Array, Array, Array]:
        """Return the gradients by states and difficulties, and p (1 - p)."""
        states, difficulty = self.split(point)
        for_states, for_difficulty, spread = self.counts.derivatives(states, difficulty)
        pulls = self.links * np.diff(states)
        for_states[..., :-1] += pulls
        for_states[..., 1:] -= pulls
        first = states[..., 0]
        for_states[..., 0] -= 2.0 * self.anchor_reg * first
        for_states[..., 0] -= self.ability_precision[:, np.newaxis] * (first - self.ability_mean)
        return for_states, for_difficulty, spread

    def _chains(self, spread: Array) -> Chains:
        """Return the negative Hessian."""
        counts = self.counts
        states = counts.over_questions(spread)
        states[..., :-1] += self.links
        states[..., 1:] += self.links
        states[..., 0] += 2.0 * self.anchor_reg + self.ability_precision[:, np.newaxis]
        questions = counts.over_trials(spread) + counts.left_out
        return Chains(states, self.links, spread, questions, counts.weights, counts.held)


def state_space_problem(
    outcomes: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    time_points: ArrayLike | None = None,
    state_reg: float = 1.0,
    anchor_reg: float = 0.001,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
) -> WalkTrials:
    """Build the objective that :func:`fit_state_space` maximises; see there.

    Parameters
    ----------
    outcomes, weights, time_points, state_reg, anchor_reg, ability_mean, ability_precision
        As in :func:`fit_state_space`.

    Returns
    -------
    WalkTrials
        The free coordinates are the states, system by system, then the difficulties.
    """
    return _problem(
        trial_counts(outcomes, weights),
        _times(outcomes, time_points, "mean"),
        state_reg,
        anchor_reg,
        ability_mean,
        ability_precision,
    )


def fit_state_space(
    outcomes: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    time_points: ArrayLike | None = None,
    score_target: ScoreTarget = "final",
    state_reg: float = 1.0,
    anchor_reg: float = 0.001,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
) -> Fit:
    r"""Fit the random walk of abilities, P(l is right on m at n) = sigma(theta_ln - b_m).

    Trials are ordered times. The penalties :math:`\rho \sum (\Delta\theta)^2 / \Delta t`, which is
    a Gaussian walk of variance :math:`1 / (2 \rho)` over the whole span, and
    :math:`\kappa \sum \theta_{l1}^2` are subtracted from the log-likelihood. With a positive
    :math:`\kappa` or prior precision the maximum always exists.

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
    state_reg : float, default 1.0
        Weight of the sum of squared steps over their times, positive.
    anchor_reg : float, default 0.001
        Weight of the sum of squared first states.
    ability_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the (uncentred) abilities at the first trial.
    ability_precision : array_like, broadcastable to (...), default 0
        Precision of that prior, which adds to the anchor; 0 for maximum likelihood.

    Returns
    -------
    Fit
        Free coordinates: states, system by system, then difficulties. ``parameters``:
        ``trajectory``, the states, of shape (..., system, trial), ``ability``, their means over
        the trials, and ``difficulty``, infinite for questions that every system answers alike in
        all trials (they are left out) and NaN for those without weight. The mean difficulty of the
        others is 0.

    Raises
    ------
    ValueError
        If an option is unknown or out of range, or times do not increase.

    References
    ----------
    .. [1] X. Wang, J. O. Berger and D. S. Burdick. Bayesian analysis of dynamic item response
       models in educational testing. The Annals of Applied Statistics 7 (2013).
       https://doi.org/10.1214/12-AOAS608

    Examples
    --------
    >>> improving, falling = [[0, 0, 1, 1], [0, 1, 0, 1]], [[1, 1, 0, 0], [1, 1, 0, 1]]
    >>> fit = fit_state_space([improving, falling], score_target="gain")
    >>> bool(fit.score[0] > 0.0 > fit.score[1])
    True
    """
    times = _times(outcomes, time_points, score_target)
    counts = trial_counts(outcomes, weights)
    problem = _problem(counts, times, state_reg, anchor_reg, ability_mean, ability_precision)
    merged = counts.merged()
    n_systems, n_trials, _ = counts.shape
    reduced = problem if merged is None else replace(problem, counts=merged[0])
    ability, difficulty = reduced.counts.first_point()
    ability = np.where(counts.responses > 0.0, ability, problem.ability_mean)
    start = np.concatenate([np.repeat(ability, n_trials, axis=-1), difficulty], axis=-1)
    optimum = maximise(reduced, start, constraint=reduced.constraint)
    states, difficulty = reduced.split(optimum.point)
    same = _indistinguishable(problem)
    if same is not None:
        states = np.take_along_axis(states, same[..., np.newaxis], axis=1)
    if merged is not None:
        difficulty = difficulty[:, merged[1]]
    point = np.concatenate([states.reshape(len(states), -1), difficulty], axis=-1)
    exists = (problem.ability_precision > 0.0) | (anchor_reg > 0.0)
    if not exists.all():
        exists = exists | linked(outcomes, counts)
    unpack = partial(_unpack, (n_systems, n_trials), score_target)
    return trial_fit(problem, replace(optimum, point=point), exists=exists, unpack=unpack)


def _times(outcomes: ArrayLike, time_points: ArrayLike | None, score_target: str) -> Array:
    """Check the options that the variants share and return the times, from 0 to 1."""
    return check_time_axis(
        np.shape(outcomes)[-1],
        variant="state_space",
        assume_time_axis=True,
        time_points=time_points,
        score_target=score_target,
    )


def _problem(
    counts: TrialCounts,
    times: Array,
    state_reg: float,
    anchor_reg: float,
    ability_mean: ArrayLike,
    ability_precision: ArrayLike,
) -> WalkTrials:
    precision = checked_precision("ability_precision", ability_precision)
    checked_precision("anchor_reg", anchor_reg)
    if not 0.0 < state_reg < np.inf:
        raise ValueError(f"state_reg must be positive and finite; got {state_reg!r}")
    means = np.asarray(ability_mean, dtype=np.float64)
    return WalkTrials(
        counts,
        2.0 * state_reg / np.diff(times),
        anchor_reg,
        flattened(means, (*counts.lead, counts.shape[0])).reshape(-1, counts.shape[0]),
        flattened(precision, counts.lead),
    )


def _indistinguishable(problem: WalkTrials) -> NDArray[np.intp] | None:
    """Return, for each system, the first system that the data cannot tell from it."""
    counts = problem.counts
    by_trial = counts.by_trial.copy()
    by_trial[..., 0] += problem.ability_precision[:, np.newaxis] * problem.ability_mean
    return interchangeable(by_trial.sum(axis=-1), rows=counts.system_rows([by_trial]))


def _unpack(
    shape: tuple[int, int], target: ScoreTarget, free: Array, *, limit: Array | None
) -> dict[str, Array]:
    n_systems, n_trials = shape
    size = n_systems * n_trials
    states = free[..., :size].reshape(*free.shape[:-1], n_systems, n_trials)
    ability = states.mean(axis=-1)
    if target == "mean":
        score = ability
    elif target == "gain":
        score = states[..., -1] - states[..., 0]
    else:
        score = states[..., 0 if target == "initial" else -1]
    return {
        "score": score,
        "ability": ability,
        "trajectory": states,
        "difficulty": limited(free[..., size:], limit),
    }
