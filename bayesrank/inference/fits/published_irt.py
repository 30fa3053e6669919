"""Fits of the published 2PL and 3PL: the highest of the maxima above several starting points."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.connectivity import linked_both_ways
from bayesrank.inference.fits.exact_ties import Exchangeable, merge_noise
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.items import ItemCounts, known, limited
from bayesrank.inference.fits.log_odds import NO_GUESSING, Guessing, logistic, smoothed_log_odds
from bayesrank.inference.fits.newton import MAX_DAMPED_ITERATIONS, MAX_ITERATIONS, Optimum
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.published_objective import PublishedItems, published_items
from bayesrank.inference.fits.rasch import fit_rasch
from bayesrank.inference.fits.saddles import axes_of, choose_alike, maximise_past_saddles

# A maximum is higher than another from this share of the objective on.
_HIGHER = 1e-9
# Abilities are clear if they explain so many times the variance of the strongest other dimension.
_CLEAR = 4.0
_DIMENSIONS = 3
# Share of the largest eigenvalue by which two differ if the data tell their directions apart.
_ALIKE = 1e-6
# Precision of the abilities of the Rasch fit to begin with, where the model itself has no prior.
_START_PRECISION = 0.1


def fit_published_items(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    ability_mean: ArrayLike = 0.0,
    ability_precision: float = 0.0,
    reg_discrimination: float = 0.01,
    guessing: Guessing = NO_GUESSING,
    reg_guessing: float = 0.1,
    max_iterations: int = MAX_DAMPED_ITERATIONS,
) -> Fit:
    r"""Fit the 2PL or 3PL model, P(l is right on m) = c_m + (1 - c_m) sigma(a_m (theta_l - b_m)).

    The penalty :math:`\rho \sum (\log a)^2` is subtracted from the log-likelihood; without a prior
    on the abilities it alone fixes their scale. Where guessing is estimated, so is
    :math:`\rho_g \sum g^2`. The mean difficulty of the questions that are kept is 0. The objective
    is not concave: the fit is the highest maximum found from the Rasch model's abilities and, where
    those are not clear, from other dimensions of the answers too.

    Systems, and questions, that the data cannot tell apart, because they could change places with
    others, tie, though the likelihood may be higher with them apart: then it has several equally
    high maxima, of which the estimates are the mean.

    Parameters
    ----------
    correct, trials : array_like of shape (..., system, question)
        Number right and number of trials; real-valued, 0 trials where a cell is missing.
    ability_mean : array_like, broadcastable to (system,), default 0
        Means of a normal prior on the (uncentred) abilities.
    ability_precision : float, default 0
        Precision of that prior; 0 for none.
    reg_discrimination : float, default 0.01
        Weight of the sum of squared log discriminations.
    guessing : Guessing, default none
        How guessing is treated. Without a prior, systems that guessing alone explains have
        abilities at minus infinity: they are reported, all equal, at the ability where the chance
        of being right exceeds guessing by less than 1e-10 on every question.
    reg_guessing : float, default 0.1
        Weight of the sum of squared guessing logits.
    max_iterations : int, default 500
        Iterations after which a fit is given up and flagged.

    Returns
    -------
    Fit
        Free coordinates: abilities, offsets -a b / (1 + a), log discriminations, then guessing
        logits g where they are estimated. ``parameters``: ``difficulty``, infinite for questions
        that every system answers alike (they are left out), ``discrimination``, and ``guessing``
        where there is any; NaN for those.

    Raises
    ------
    ValueError
        If a precision or penalty is negative, or nothing fixes a scale.

    References
    ----------
    .. [1] A. Birnbaum. Some latent trait models and their use in inferring an examinee's ability.
       In: F. M. Lord and M. R. Novick. Statistical Theories of Mental Test Scores (1968).

    Examples
    --------
    >>> right = [[7.0, 5.0, 2.0], [6.0, 3.0, 3.0], [2.0, 1.0, 1.0]]
    >>> fit = fit_published_items(right, np.full((3, 3), 8.0))
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[2])
    (True, True)
    """
    problem, data = published_items(
        correct,
        trials,
        ability_mean=ability_mean,
        ability_precision=ability_precision,
        reg_discrimination=reg_discrimination,
        guessing=guessing,
        reg_guessing=reg_guessing,
    )
    exists = problem.has_prior | linked_both_ways(data.right > 0.0, data.right < data.trials)
    if not np.any(exists):  # nothing settles on the way to infinity
        max_iterations = min(max_iterations, MAX_ITERATIONS)
    optimum = _highest(problem, data, max_iterations)
    optimum = replace(optimum, point=problem.levelled(problem.floored(optimum.point)))
    point, shape = optimum.point, data.right.shape[1:]
    unpack = partial(_unpack, shape, guessing, limit=data.limit)
    alike = Exchangeable.of(data.right, data.trials)
    mean = alike.mean(point)
    mean[:, : shape[0]] = merge_noise(mean[:, : shape[0]])
    named = unpack(mean.reshape(*data.lead, -1))
    held = problem.held(point).reshape(*data.lead, -1)
    return Fit.at(
        problem,
        optimum,
        data.lead,
        unpack,
        exists=exists,
        score=named.pop("score"),
        parameters=named,
        displace=partial(_displace, held),
        exchange=alike.exchange,
    )


def _highest(problem: PublishedItems, data: ItemCounts, max_iterations: int) -> Optimum:
    """Return the highest of the maxima above several starting points.

    Above the Rasch model's there are others where its abilities say less of the answers than a
    second dimension does: then abilities are also begun at either end of such dimensions.
    """
    start, n_systems = _first_point(problem, data), data.right.shape[1]
    optimum = maximise_past_saddles(problem, start, max_iterations=max_iterations)
    others = list(_other_abilities(data))
    if not others:
        return optimum
    rows = np.concatenate([np.full(len(ways), row) for row, ways in others])
    begin = start[rows]
    begin[:, :n_systems] += np.concatenate([ways for _, ways in others])
    many = problem.take(rows)
    found = maximise_past_saddles(many, many.restore(begin), max_iterations=max_iterations)
    reached = np.where(found.converged, many.value(found.point), -np.inf)
    levels = np.where(optimum.converged, problem.value(optimum.point), -np.inf)
    optimum = replace(optimum, point=optimum.point.copy())
    for row, _ in others:
        tried = np.flatnonzero(rows == row)
        high, level = reached[tried].max(), levels[row]
        if not high > (level + _HIGHER * abs(level) if np.isfinite(level) else level):
            continue
        best = choose_alike(found.point, tried[reached[tried] >= high - _HIGHER * abs(high)])
        for name in ("point", "converged", "iterations", "gradient_norm"):
            getattr(optimum, name)[row] = getattr(found, name)[best]
    return optimum


def _other_abilities(data: ItemCounts) -> Iterator[tuple[int, Array]]:
    """Yield which resamples need more starts, and the changes of abilities, (start, system)."""
    rates = smoothed_log_odds(data.right, data.trials) * (data.trials > 0.0)
    rest = rates - rates.mean(axis=-1, keepdims=True)
    rest -= rest.mean(axis=-2, keepdims=True)
    rest *= ~data.left_out[:, np.newaxis]
    shares, directions = np.linalg.eigh(rest @ rest.swapaxes(1, 2))
    # Not by the abilities, whose scale is that of their prior.
    spread = smoothed_log_odds(data.by_system, data.played)
    n_systems = spread.shape[-1]
    signal = spread.var(axis=-1) * n_systems * (~data.left_out).sum(axis=-1)
    for row in np.flatnonzero(signal < _CLEAR * shares[:, -1]):
        strong = _strongest(shares[row, ::-1], directions[row, :, ::-1])
        # Along and against the strongest dimensions, and between any two.
        first, second = np.triu_indices(len(strong), 1)
        if len(strong) > _DIMENSIONS:
            first = second = first[:0]
        pairs = [strong[first] + sign * strong[second] for sign in (1.0, -1.0)]
        ways = np.concatenate([strong, *pairs])
        ways = np.concatenate([ways, -ways])
        yield int(row), ways * np.sqrt(n_systems / (ways**2).sum(axis=-1, keepdims=True))


def _strongest(shares: Array, directions: Array) -> Array:
    """Return the strongest dimensions, all of those that are equally strong."""
    found: list[Array] = []
    first = 0
    while first < len(shares) and sum(map(len, found)) < _DIMENSIONS:
        last = first + int((shares[first] - shares[first:] <= _ALIKE * shares[0]).sum())
        found.append(axes_of(directions[:, first:last]))
        first = last
    return np.concatenate(found)


def _first_point(problem: PublishedItems, data: ItemCounts) -> Array:
    """Begin at the Rasch model, on its best scale, with guessing at half the weakest rates."""
    n_systems, guessing = data.right.shape[1], problem.likelihood.guessing
    precision = problem.systems.precision[0, 0] if problem.has_prior else _START_PRECISION
    rasch = fit_rasch(data.right, data.trials, ability_precision=precision)
    offset = -0.5 * np.where(data.left_out, 0.0, rasch.free[:, n_systems:])
    parts = [rasch.score, offset, np.zeros_like(offset)]
    if guessing.fixed is None:
        rates = np.sort((data.right + 0.5) / (data.trials + 1.0), axis=-2)
        weakest = rates[:, : max(1, n_systems // 4)].mean(axis=-2)
        share = np.clip(0.5 * weakest / guessing.upper, 0.02, 0.9)
        parts.append(np.where(data.left_out, 0.0, np.log(share) - np.log1p(-share)))
    point = np.concatenate(parts, axis=-1)
    for _ in range(3):
        point = problem.rescaled(point)
    return problem.restore(point)


def _unpack(
    shape: tuple[int, int], guessing: Guessing, free: Array, *, limit: Array | None
) -> dict[str, Array]:
    n_systems, n_questions = shape
    ability, offset, log_slope, logit = np.split(
        free, n_systems + n_questions * np.arange(3), axis=-1
    )
    difficulty = -offset * (np.exp(-log_slope) + 1.0)
    named = {
        "score": ability,
        "difficulty": limited(difficulty, limit),
        "discrimination": known(np.exp(log_slope), limit),
    }
    if guessing.fixed is None:
        named["guessing"] = known(guessing.upper * logistic(logit), limit)
    elif guessing.fixed:
        named["guessing"] = np.full(difficulty.shape, guessing.fixed)
    return named


def _displace(held: NDArray[np.bool_], free: Array, deviations: Array) -> Array:
    """Leave parameters at the floor where they are."""
    return free + np.where(held, 0.0, deviations)
