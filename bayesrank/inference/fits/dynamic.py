r"""Abilities that change over ordered trials: along lines, or as random walks.

With difficulties :math:`b_m` of mean 0, and times :math:`t_n` from 0 to 1 of mean :math:`\bar t`, a
system is right with probability :math:`\sigma(\theta_{ln} - b_m)`. Under growth

.. math:: \theta_{ln} = \bar\theta_l + \beta_l (t_n - \bar t)

with a normal prior, or a penalty, on the slopes. The states of a random walk are free, and

.. math:: \rho \sum_{ln} \frac{(\theta_{l,n+1} - \theta_{ln})^2}{t_{n+1} - t_n}
   + 0.001 \sum_l \theta_{l1}^2

is subtracted from the log-likelihood. Both are rows of the two-sided engine: a design of the trials
and a quadratic prior on the coordinates of a system.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import linked_both_ways
from bayesrank.inference.fits.exact_ties import interchangeable, merge_noise
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.item_likelihoods import Rasch
from bayesrank.inference.fits.item_models import Named, NormalPrior, merged_questions
from bayesrank.inference.fits.items import ItemCounts, item_counts, limited
from bayesrank.inference.fits.newton import smoothed_log_odds
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.rasch import stretched
from bayesrank.inference.fits.two_sided import Pooled, Quadratic, TwoSided, joined
from bayesrank.time_axis import ANCHOR, ScoreTarget

Trials = tuple[TwoSided[Rasch], ItemCounts]
_ALL = slice(None)


def growth(
    outcomes: ArrayLike,
    times: Array,
    *,
    slope_prior: NormalPrior,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 0.0,
    pooled: bool = False,
) -> Trials:
    """Build the objective that :func:`fit_growth` maximises.

    Parameters
    ----------
    outcomes, times, slope_prior, ability_mean, ability_precision, pooled
        As in :func:`fit_growth`.

    Returns
    -------
    tuple of TwoSided and ItemCounts
        The objective, whose points hold abilities, slopes and minus the difficulties; and the
        counts per trial and question.
    """
    centred = times - times.mean()
    first = np.array([1.0, centred[0]])
    precision = ability_precision * np.outer(first, first)
    precision[1, 1] += slope_prior.precision
    mean = _by_system(outcomes, ability_mean)
    slope = np.full_like(mean, slope_prior.mean)
    systems = Quadratic(precision, np.stack([mean - centred[0] * slope, slope], axis=1))
    return _trials(outcomes, _lines(times), systems, pooled=pooled)


def fit_growth(
    outcomes: ArrayLike, times: Array, *, score_target: ScoreTarget = "final", **priors: Any
) -> Fit:
    r"""Fit the latent growth model.

    At time t, P(l is right on m) = sigma(ability_l + slope_l (t - mean t) - b_m).

    Parameters
    ----------
    outcomes : array_like of shape (..., system, question, trial)
        1 for right, 0 for wrong, negative where a response is missing.
    times : numpy.ndarray of shape (trial,)
        As :func:`~bayesrank.time_axis.check_time_axis` returns them.
    score_target : {"final", "initial", "mean", "gain"}, default "final"
        The score: ability at the last trial, at the first, its mean over trials, or the last less
        the first.
    slope_prior : NormalPrior
        Prior on the slopes; its precision, which is positive, is twice the weight of a penalty on
        their squares.
    ability_mean : array_like, broadcastable to (system,), default 0
        Means of a normal prior on the (uncentred) abilities at the first trial.
    ability_precision : float, default 0
        Precision of that prior; 0 for maximum likelihood.
    pooled : bool, default False
        Whether difficulties have the hierarchical prior. Without it, questions that every system
        answers alike in all trials are left out.

    Returns
    -------
    Fit
        Free coordinates: abilities averaged over the trials, slopes, difficulties.
        ``parameters``: ``ability`` and ``slope`` of shape (..., system), and ``difficulty``, of
        mean 0, infinite for questions that were left out and NaN for those that nobody was asked.

    References
    ----------
    .. [1] C. Wang and S. W. Nydick. On longitudinal item response theory models: a didactic.
       Journal of Educational and Behavioral Statistics 45 (2020).
       https://doi.org/10.3102/1076998619882026

    Examples
    --------
    >>> improving, falling = [[0, 0, 1, 1], [0, 1, 0, 1]], [[1, 1, 0, 0], [1, 1, 0, 1]]
    >>> times, prior = np.linspace(0.0, 1.0, 4), NormalPrior()
    >>> fit = fit_growth([improving, falling], times, score_target="gain", slope_prior=prior)
    >>> bool(fit.score[0] > 0.0 > fit.score[1])
    True
    """
    problem, data = growth(outcomes, times, **priors)
    slope, limit = np.asarray(problem.systems.mean)[:, 1], _limit(data)

    def start(ability: Array) -> Array:
        return np.stack([ability, np.broadcast_to(slope, ability.shape)], axis=-1)

    def unpack(free: Array) -> Named:
        n_systems = len(slope)
        ability, slopes = free[..., :n_systems], free[..., n_systems : 2 * n_systems]
        return {
            "score": level * ability + share * slopes,
            "ability": ability,
            "slope": slopes,
            "difficulty": limited(free[..., 2 * n_systems :], limit),
        }

    level, share = _target(times.size, score_target) @ _lines(times)
    return _fit(problem, data, start, unpack)


def walk(
    outcomes: ArrayLike,
    times: Array,
    *,
    state_reg: float = 1.0,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 0.0,
) -> Trials:
    """Build the objective that :func:`fit_walk` maximises.

    Parameters
    ----------
    outcomes, times, state_reg, ability_mean, ability_precision
        As in :func:`fit_walk`.

    Returns
    -------
    tuple of TwoSided and ItemCounts
        The objective, whose points hold the first states of all systems, their second, ..., and
        minus the difficulties; and the counts per trial and question.
    """
    if not 0.0 < state_reg < np.inf:
        raise ValueError(f"state_reg must be positive and finite; got {state_reg!r}")
    steps = np.diff(np.eye(times.size), axis=0)
    precision = steps.T @ (steps * (2.0 * state_reg / np.diff(times))[:, np.newaxis])
    # The anchor and the prior, two normal densities of the first state, make one.
    first = 2.0 * ANCHOR + ability_precision
    precision[0, 0] += first
    mean = _by_system(outcomes, ability_mean) * (ability_precision / first)
    return _trials(outcomes, None, Quadratic(precision, mean[:, np.newaxis]), pooled=False)


def fit_walk(
    outcomes: ArrayLike, times: Array, *, score_target: ScoreTarget = "final", **priors: Any
) -> Fit:
    r"""Fit random walks of ability, P(l is right on m at n) = sigma(theta_ln - b_m).

    The penalty on the steps is that of a Gaussian walk of variance :math:`1 / (2 \rho)` over the
    whole span, and the one on the first states keeps all finite.

    Parameters
    ----------
    outcomes, times, score_target
        As in :func:`fit_growth`.
    state_reg : float, default 1.0
        Weight :math:`\rho` of the sum of squared steps over their times, positive.
    ability_mean : array_like, broadcastable to (system,), default 0
        Means of a normal prior on the (uncentred) abilities at the first trial.
    ability_precision : float, default 0
        Precision of that prior; 0 for maximum likelihood.

    Returns
    -------
    Fit
        Free coordinates: states, system by system, then difficulties. ``parameters``:
        ``trajectory``, the states, of shape (..., system, trial), ``ability``, their means over
        the trials, and ``difficulty`` as in :func:`fit_growth`.

    Raises
    ------
    ValueError
        If `state_reg` is out of range.

    References
    ----------
    .. [1] X. Wang, J. O. Berger and D. S. Burdick. Bayesian analysis of dynamic item response
       models in educational testing. The Annals of Applied Statistics 7 (2013).
       https://doi.org/10.1214/12-AOAS608

    Examples
    --------
    >>> improving, falling = [[0, 0, 1, 1], [0, 1, 0, 1]], [[1, 1, 0, 0], [1, 1, 0, 1]]
    >>> fit = fit_walk([improving, falling], np.linspace(0.0, 1.0, 4), score_target="gain")
    >>> bool(fit.score[0] > 0.0 > fit.score[1])
    True
    """
    problem, data = walk(outcomes, times, **priors)
    n_systems, n_trials, n_questions, _ = problem.likelihood.shape
    target, limit = _target(n_trials, score_target), _limit(data)
    size = n_systems * n_trials

    def start(ability: Array) -> Array:
        return np.repeat(ability[..., np.newaxis], n_trials, axis=-1)

    def unpack(free: Array) -> Named:
        states = free[..., :size].reshape(*free.shape[:-1], n_systems, n_trials)
        return {
            "score": states @ target,
            "ability": states.mean(axis=-1),
            "trajectory": states,
            "difficulty": limited(free[..., size:], limit),
        }

    order = np.arange(size).reshape(n_trials, n_systems).T.ravel()
    order = np.concatenate([order, np.arange(size, size + n_questions)])
    return _fit(problem, data, start, unpack, order=order)


def _by_system(outcomes: ArrayLike, values: ArrayLike) -> Array:
    """Return one value per system."""
    return np.broadcast_to(np.asarray(values, dtype=np.float64), np.shape(outcomes)[-3])


def _lines(times: Array) -> Array:
    """Return the design of lines, of which the first coordinate is the mean over trials."""
    return np.stack([np.ones_like(times), times - times.mean()], axis=1)


def _limit(data: ItemCounts) -> Array | None:
    """Return the difficulties of questions that are left out, of shape (..., question)."""
    return None if data.limit is None else data.limit.reshape(*data.lead, -1)


def _target(n_trials: int, score_target: ScoreTarget) -> Array:
    """Return the weights of the states of a system in its score."""
    first, last = np.eye(n_trials)[[0, -1]]
    mean = np.full(n_trials, 1.0 / n_trials)
    return {"initial": first, "final": last, "mean": mean, "gain": last - first}[score_target]


def _trials(
    outcomes: ArrayLike, design: Array | None, systems: Quadratic, *, pooled: bool
) -> Trials:
    """Build an objective of ordered trials, whose questions differ in difficulty alone."""
    values = np.asarray(outcomes)
    right, observed = values > 0, values >= 0
    data = item_counts(right.sum(axis=-1), observed.sum(axis=-1), None, drop=not pooled)
    n_systems, n_questions, n_trials = values.shape[-3:]
    by_trial = (right & ~data.left_out.reshape(*data.lead, 1, n_questions, 1)).sum(axis=-2)
    kept = (~data.left_out).astype(np.float64)[:, np.newaxis, np.newaxis]
    if observed.all():
        trials = kept
    else:
        cells = (-1, n_systems, n_trials, n_questions)
        trials = kept * observed.swapaxes(-1, -2).reshape(cells)
    likelihood = Rasch(
        by_trial.reshape(-1, n_systems, n_trials).astype(np.float64),
        data.by_question,
        trials,
        design,
    )
    if pooled:  # questions that nobody was asked are where their prior is
        data = replace(data, weights=np.ones_like(data.weights), limit=None)
    # Where no question is kept any level will do.
    held = np.where(data.left_out.all(axis=-1, keepdims=True), 1.0, data.weights)
    problem = TwoSided(
        likelihood,
        systems,
        Quadratic(np.zeros((1, 1))),
        Pooled() if pooled else None,
        np.zeros((0, n_systems, len(systems.precision))),
        held[:, np.newaxis, :, np.newaxis],
        len(data.right),
    )
    return problem, data


def _fit(
    problem: TwoSided[Rasch],
    data: ItemCounts,
    start: Callable[[Array], Array],
    unpack: Callable[[Array], Named],
    order: NDArray[np.intp] | slice = _ALL,
) -> Fit:
    """Maximise an objective of ordered trials from about the Rasch model of its counts."""
    reduced, place = problem, None
    if problem.pooled is None:
        reduced, place = merged_questions(problem)
    ability, difficulty = stretched(
        smoothed_log_odds(data.by_system, data.played),
        -smoothed_log_odds(reduced.likelihood.by_question, reduced.likelihood.asked),
        reduced.hold_v[:, 0, :, 0],
    )
    optimum = reduced.maximise(joined(start(ability), -difficulty[..., np.newaxis]))
    u, v = reduced.split(optimum.point)
    same = _alike(problem)
    if same is not None:
        u = np.take_along_axis(u, same[..., np.newaxis], axis=1)
    if place is not None:
        v = v[:, place]
    optimum = replace(optimum, point=joined(u, v))
    exists = np.ones(problem.size, dtype=bool)
    if problem.pooled is None and not problem.systems.precision.any(axis=-1).all():
        exists = linked_both_ways(data.right > 0.0, data.right < data.trials)
    signs = np.ones(optimum.point.shape[-1])
    signs[-v.shape[1] :] = -1.0  # difficulties

    def along(rows: Array) -> Array:
        return (rows * signs)[..., order]

    fit = Fit.at(problem, optimum, data.lead, unpack, exists=exists, along=along)
    flat = merge_noise(fit.score.reshape(problem.size, -1))
    return replace(fit, score=flat.reshape(fit.score.shape))


def _alike(problem: TwoSided[Rasch]) -> NDArray[np.intp] | None:
    """Return, for each system, the first system that the data cannot tell from it."""
    answers, prior = problem.likelihood, problem.systems
    sums = answers.by_trial if answers.design is None else answers.by_trial @ answers.design
    sums = sums + np.broadcast_to(prior.mean, sums.shape[1:]) @ prior.precision
    rows = sums
    if answers.trials.shape[1] > 1:
        rows = np.concatenate([sums, answers.trials.reshape(*sums.shape[:2], -1)], axis=-1)
    return interchangeable(sums.sum(axis=-1), rows=rows)
