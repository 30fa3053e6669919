"""2PL and 3PL item response models by Newton's method."""

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import linked_both_ways
from bayesrank.inference.fits.exact_ties import settle_ties
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.item_likelihoods import Guessing
from bayesrank.inference.fits.items import ItemCounts, item_counts, item_fit, known, limited
from bayesrank.inference.fits.log_odds import logistic
from bayesrank.inference.fits.logistic_items import LogisticItems
from bayesrank.inference.fits.newton import (
    MAX_DAMPED_ITERATIONS,
    Optimum,
    maximise_nonconcave,
    smoothed_log_odds,
)
from bayesrank.inference.fits.penalty import Array, checked_precision, flattened
from bayesrank.inference.fits.rasch import fit_rasch

# A maximum is higher than another from this share of the objective on.
_HIGHER = 1e-9
# Abilities are clear if they explain so many times the variance of the strongest other dimension.
_CLEAR = 4.0
_DIMENSIONS = 3
# Precision of the abilities of the Rasch fit to begin with, where the model itself has no prior.
_START_PRECISION = 0.1


def irt_2pl_problem(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
    reg_discrimination: float = 0.01,
) -> LogisticItems:
    """Build the objective that :func:`fit_irt_2pl` maximises; see there.

    Parameters
    ----------
    correct, trials, weights, ability_mean, ability_precision, reg_discrimination
        As in :func:`fit_irt_2pl`.

    Returns
    -------
    LogisticItems
        The free coordinates are the abilities, offsets and log discriminations.
    """
    return _problem(
        correct, trials, weights, ability_mean, ability_precision, reg_discrimination, Guessing()
    )


def fit_irt_2pl(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
    reg_discrimination: float = 0.01,
    max_iterations: int = MAX_DAMPED_ITERATIONS,
) -> Fit:
    r"""Fit the two-parameter logistic model, P(l is right on m) = sigma(a_m (theta_l - b_m)).

    The penalty :math:`\rho \sum (\log a)^2` is subtracted from the log-likelihood; without a prior
    on the abilities it alone fixes their scale. The mean difficulty of the questions that are kept
    is 0. The objective is not concave: the fit is the highest maximum found from the Rasch model's
    abilities and, where those are not clear, from other dimensions of the answers too.

    Parameters
    ----------
    correct, trials : array_like of shape (..., system, question)
        Number right and number of trials; real-valued, 0 trials where a cell is missing.
    weights : array_like of shape (..., question), optional
        Multiplicity of each question; 1 by default.
    ability_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the (uncentred) abilities.
    ability_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 for none.
    reg_discrimination : float, default 0.01
        Weight of the sum of squared log discriminations.
    max_iterations : int, default 500
        Iterations after which a fit is given up and flagged.

    Returns
    -------
    Fit
        Free coordinates: abilities, offsets -a b / (1 + a), log discriminations.
        ``parameters``: ``difficulty``, infinite for questions that every system answers alike
        (they are left out), and ``discrimination``, NaN for those.

    Raises
    ------
    ValueError
        If a precision or penalty is negative, nothing fixes the scale, or some resamples alone
        have a prior.

    References
    ----------
    .. [1] A. Birnbaum. Some latent trait models and their use in inferring an examinee's ability.
       In: F. M. Lord and M. R. Novick. Statistical Theories of Mental Test Scores (1968).

    Examples
    --------
    >>> right = [[7.0, 5.0, 2.0], [6.0, 3.0, 3.0], [2.0, 1.0, 1.0]]
    >>> fit = fit_irt_2pl(right, np.full((3, 3), 8.0))
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[2])
    (True, True)
    """
    return _fit(
        irt_2pl_problem(
            correct,
            trials,
            weights,
            ability_mean=ability_mean,
            ability_precision=ability_precision,
            reg_discrimination=reg_discrimination,
        ),
        max_iterations,
    )


def irt_3pl_problem(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
    reg_discrimination: float = 0.01,
    reg_guessing: float = 0.1,
    guessing: float | None = None,
    guessing_upper: float = 0.5,
) -> LogisticItems:
    """Build the objective that :func:`fit_irt_3pl` maximises; see there.

    Parameters
    ----------
    correct, trials, weights, ability_mean, ability_precision, reg_discrimination
        As in :func:`fit_irt_3pl`.
    reg_guessing, guessing, guessing_upper
        As in :func:`fit_irt_3pl`.

    Returns
    -------
    LogisticItems
        The free coordinates are the abilities, offsets, log discriminations and, where guessing is
        estimated, its logits.
    """
    checked_precision("reg_guessing", reg_guessing)
    if guessing is None and reg_guessing == 0.0:
        raise ValueError("reg_guessing must be positive where guessing is estimated; got 0")
    problem = _problem(
        correct,
        trials,
        weights,
        ability_mean,
        ability_precision,
        reg_discrimination,
        Guessing(guessing, guessing_upper),
    )
    return replace(problem, guessing_penalty=reg_guessing)


def fit_irt_3pl(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: ArrayLike = 0.0,
    reg_discrimination: float = 0.01,
    reg_guessing: float = 0.1,
    guessing: float | None = None,
    guessing_upper: float = 0.5,
    max_iterations: int = MAX_DAMPED_ITERATIONS,
) -> Fit:
    r"""Fit the three-parameter logistic model, P = c_m + (1 - c_m) sigma(a_m (theta_l - b_m)).

    As :func:`fit_irt_2pl`, with a guessing probability :math:`c = u \sigma(g)` per question and
    the penalty :math:`\rho_g \sum g^2`, or a known one. Without a prior, systems that guessing
    alone explains have abilities at minus infinity: they are reported, all equal, at the ability
    where the chance of being right exceeds guessing by less than 1e-10 on every question.

    Parameters
    ----------
    correct, trials : array_like of shape (..., system, question)
        Number right and number of trials; real-valued, 0 trials where a cell is missing.
    weights : array_like of shape (..., question), optional
        Multiplicity of each question; 1 by default.
    ability_mean : array_like, broadcastable to (..., system), default 0
        Means of a normal prior on the (uncentred) abilities.
    ability_precision : array_like, broadcastable to (...), default 0
        Precision of that prior; 0 for none.
    reg_discrimination : float, default 0.01
        Weight of the sum of squared log discriminations.
    reg_guessing : float, default 0.1
        Weight of the sum of squared guessing logits.
    guessing : float, optional
        A known guessing probability for all questions; estimated when omitted.
    guessing_upper : float, default 0.5
        Upper limit u of estimated guessing probabilities.
    max_iterations : int, default 500
        Iterations after which a fit is given up and flagged.

    Returns
    -------
    Fit
        Free coordinates: abilities, offsets -a b / (1 + a), log discriminations, then guessing
        logits g where they are estimated. ``parameters``: ``difficulty``, ``discrimination`` and
        ``guessing``; infinite and NaN for questions that every system answers alike.

    Raises
    ------
    ValueError
        If a precision, penalty or guessing probability is out of range, nothing fixes the scale,
        or some resamples alone have a prior.

    References
    ----------
    .. [1] A. Birnbaum. Some latent trait models and their use in inferring an examinee's ability.
       In: F. M. Lord and M. R. Novick. Statistical Theories of Mental Test Scores (1968).

    Examples
    --------
    >>> right = [[7.0, 5.0, 2.0], [6.0, 3.0, 3.0], [2.0, 1.0, 1.0]]
    >>> fit = fit_irt_3pl(right, np.full((3, 3), 8.0), guessing=0.1, ability_precision=1.0)
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[2])
    (True, True)
    """
    return _fit(
        irt_3pl_problem(
            correct,
            trials,
            weights,
            ability_mean=ability_mean,
            ability_precision=ability_precision,
            reg_discrimination=reg_discrimination,
            reg_guessing=reg_guessing,
            guessing=guessing,
            guessing_upper=guessing_upper,
        ),
        max_iterations,
    )


def _problem(
    correct: ArrayLike,
    trials: ArrayLike,
    weights: ArrayLike | None,
    ability_mean: ArrayLike,
    ability_precision: ArrayLike,
    reg_discrimination: float,
    guessing: Guessing,
) -> LogisticItems:
    precision = checked_precision("ability_precision", ability_precision)
    checked_precision("reg_discrimination", reg_discrimination)
    if reg_discrimination == 0.0 and not (precision > 0.0).all():
        raise ValueError(
            "reg_discrimination must be positive where abilities have no prior, since nothing "
            "else fixes their scale; got 0"
        )
    if (precision > 0.0).any() and not (precision > 0.0).all():
        raise ValueError(
            f"ability_precision must be positive for all resamples or for none; got {precision!r}"
        )
    data = item_counts(correct, trials, weights, drop=True)
    n_systems = data.by_system.shape[-1]
    means = np.asarray(ability_mean, dtype=np.float64)
    return LogisticItems(
        data,
        flattened(means, (*data.lead, n_systems)).reshape(-1, n_systems),
        flattened(precision, data.lead),
        reg_discrimination,
        guessing,
    )


def _fit(problem: LogisticItems, max_iterations: int) -> Fit:
    data = problem.data
    n_systems = data.by_system.shape[-1]
    optimum = _highest(problem, max_iterations)
    optimum = replace(optimum, point=problem.levelled(problem.floored(optimum.point)))
    held = problem.held(optimum.point)
    exists = problem.ability_precision > 0.0
    if not exists.all():
        exists = exists | linked_both_ways(data.right > 0.0, data.right < data.trials)
    totals = data.by_system + problem.ability_precision[:, None] * problem.ability_mean
    rows = np.concatenate([data.right, data.trials], axis=-1)
    scores = settle_ties(optimum.point[:, :n_systems], totals, rows=rows)
    fixed = problem.guessing if problem.guessing.fixed != 0.0 else None
    return item_fit(
        problem,
        optimum,
        scores,
        exists=exists,
        unpack=partial(_unpack, data.trials.shape[-2:], fixed),
        displace=partial(_displace, held.reshape(*data.lead, -1)),
    )


def _highest(problem: LogisticItems, max_iterations: int) -> Optimum:
    """Return the highest of the maxima above several starting points.

    Above the Rasch model's there are others where its abilities say less of the answers than a
    second dimension does: then abilities are also begun at either end of such dimensions.
    """

    def climb_from(some: LogisticItems, start: Array) -> Optimum:
        return maximise_nonconcave(some, start, max_iterations=max_iterations, escape="always")

    start = _first_point(problem)
    optimum = climb_from(problem, start)
    rows, others = _other_abilities(problem.data, start[:, : problem.data.by_system.shape[-1]])
    if not rows.size:
        return optimum
    many = problem.take(np.repeat(rows, others.shape[1]))
    begin = start[np.repeat(rows, others.shape[1])]
    begin[:, : others.shape[-1]] = others.reshape(len(begin), -1)
    found = climb_from(many, many.restore(begin))
    reached = np.where(found.converged, many.value(found.point), -np.inf).reshape(len(rows), -1)
    best = reached.argmax(axis=1) + np.arange(len(rows)) * others.shape[1]
    level = np.where(optimum.converged, problem.value(optimum.point), -np.inf)[rows]
    higher = reached.max(axis=1) > level + _HIGHER * np.where(np.isfinite(level), -level, 0.0)
    for name in ("point", "converged", "iterations", "gradient_norm"):
        getattr(optimum, name)[rows[higher]] = getattr(found, name)[best[higher]]
    return optimum


def _other_abilities(data: ItemCounts, ability: Array) -> tuple[NDArray[np.intp], Array]:
    """Return which resamples need more starts, and the abilities of each, (row, start, system)."""
    rates = smoothed_log_odds(data.right, data.trials) * (data.trials > 0.0)
    rest = rates - rates.mean(axis=-1, keepdims=True)
    rest -= rest.mean(axis=-2, keepdims=True)
    rest *= ~data.left_out[:, np.newaxis]
    shares, directions = np.linalg.eigh(rest @ rest.swapaxes(1, 2))
    # Not by the abilities, whose scale is that of their prior.
    spread = smoothed_log_odds(data.by_system, data.played)
    signal = spread.var(axis=-1) * spread.shape[-1] * (~data.left_out).sum(axis=-1)
    rows = np.flatnonzero(signal < _CLEAR * shares[:, -1])
    n_systems = ability.shape[-1]
    # Along and against the strongest dimensions, and between any two.
    strong = directions[rows].swapaxes(1, 2)[:, ::-1][:, :_DIMENSIONS]
    first, second = np.triu_indices(strong.shape[1], 1)
    pairs = [strong[:, first] + sign * strong[:, second] for sign in (1.0, -1.0)]
    ways = np.concatenate([strong, *pairs], axis=1)
    ways = np.concatenate([ways, -ways], axis=1)
    ways *= np.sqrt(n_systems / (ways**2).sum(axis=-1, keepdims=True))
    return rows, ability[rows, np.newaxis] + ways


def _first_point(problem: LogisticItems) -> Array:
    """Begin at the Rasch model, on its best scale, with guessing at half the weakest rates."""
    data = problem.data
    n_systems = data.by_system.shape[-1]
    precision = np.where(problem.has_prior, problem.ability_precision, _START_PRECISION)
    rasch = fit_rasch(data.right, data.trials, ability_precision=precision)
    offset = -0.5 * np.where(data.left_out, 0.0, rasch.free[:, n_systems:])
    parts = [rasch.score, offset, np.zeros_like(offset)]
    if problem.guessing.fixed is None:
        rates = np.sort((data.right + 0.5) / (data.trials + 1.0), axis=-2)
        weakest = rates[:, : max(1, n_systems // 4)].mean(axis=-2)
        share = np.clip(0.5 * weakest / problem.guessing.upper, 0.02, 0.9)
        parts.append(np.where(data.left_out, 0.0, np.log(share) - np.log1p(-share)))
    point = np.concatenate(parts, axis=-1)
    for _ in range(3):
        point = problem.rescaled(point)
    return problem.restore(point)


def _unpack(
    shape: tuple[int, int], guessing: Guessing | None, free: Array, *, limit: Array | None
) -> dict[str, Array]:
    n_systems, n_questions = shape
    first, second = n_systems + n_questions, n_systems + 2 * n_questions
    log_slope = free[..., first:second]
    difficulty = -free[..., n_systems:first] * (np.exp(-log_slope) + 1.0)
    named = {
        "score": free[..., :n_systems],
        "difficulty": limited(difficulty, limit),
        "discrimination": known(np.exp(log_slope), limit),
    }
    if guessing is not None and guessing.fixed is None:
        named["guessing"] = known(guessing.upper * logistic(free[..., second:]), limit)
    elif guessing is not None:
        named["guessing"] = np.full(difficulty.shape, guessing.fixed)
    return named


def _displace(held: NDArray[np.bool_], free: Array, deviations: Array) -> Array:
    """Leave parameters at the floor where they are."""
    return free + np.where(held, 0.0, deviations)
