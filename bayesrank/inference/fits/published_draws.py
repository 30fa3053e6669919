"""Draws of the published 2PL and 3PL models beside the Gaussian ones: their unit and their floor.

A factor of abilities and difficulties, of which discriminations take the inverse, leaves the
likelihood as it is. Where abilities have no prior, discriminations have a geometric mean of 1,
which is a convention that all fits keep. A prior says how far abilities spread: then the unit is
drawn along the curve on which the likelihood is the same, for straight on systems would change
places.
"""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.bordered import parted
from bayesrank.inference.fits.fit import Unit
from bayesrank.inference.fits.item_likelihoods import Lines
from bayesrank.inference.fits.log_odds import finite_exp, logistic, risen, softplus
from bayesrank.inference.fits.penalty import Array

if TYPE_CHECKING:
    from bayesrank.inference.fits.published_irt import PublishedItems

_TINY = 1e-300
# Standard deviations between which the unit is drawn.
_GRID = np.linspace(-8.0, 8.0, 801)


def unit_of(problem: "PublishedItems", point: Array, lead: tuple[int, ...]) -> Unit:
    """Return the unit of abilities at optima, (resample, p), for resamples of shape `lead`."""
    ability, offset, log_slope = problem.parts(point)
    way = np.zeros_like(point)
    # The intercepts (1 + a) e stay as they are.
    moves = ability, offset * logistic(log_slope), -1.0 * problem.kept
    for part, move in zip(problem.parts(way), moves, strict=True):
        part[:] = move  # a view
    way[problem.held(point)] = 0.0
    _, bend, least = problem.along_unit(ability, problem.drift(log_slope))
    bend = np.maximum(bend, least)
    # Equal abilities, and no question that tells of them, have no unit.
    spread = np.where(bend > 0.0, 1.0 / np.sqrt(np.maximum(bend, _TINY)), 0.0)
    draw = partial(_draw_unit, problem, point, spread) if problem.has_prior else None
    return Unit(way.reshape(*lead, -1), spread.reshape(lead), draw)


def _draw_unit(
    problem: "PublishedItems", point: Array, spread: Array, normal: Array, drawn: Array
) -> Array:
    """Turn standard normal draws, (draw, ...), into logs of the unit of drawn abilities.

    By the signed root: their squares are the deviance of the penalties along the unit from its
    least, which is far from quadratic where abilities are near their means.
    """
    ability, _, log_slope = problem.parts(point)
    mean, precision = np.asarray(problem.systems.mean)[:, 0], problem.systems.precision[0, 0]
    drawn = drawn.reshape(len(normal), *ability.shape)
    squares, products = (drawn**2).sum(axis=-1), (drawn * mean).sum(axis=-1)
    rho = problem.questions.precision[1, 1]
    # Discriminations follow abilities so far that the slope along the unit stays.
    slope = precision * ((2.0 * ability - mean) * (drawn - ability)).sum(axis=-1)
    slope += rho * problem.drift(log_slope)
    count = rho * problem.counts.sum(axis=-1)
    normals, found = normal.reshape(slope.shape), np.empty(slope.shape)
    for draw, row in np.ndindex(slope.shape):
        steps = spread[row] * _GRID
        factor = finite_exp(steps)
        deviance = precision * factor * (squares[draw, row] * factor - 2.0 * products[draw, row])
        deviance += steps * (count[row] * steps - 2.0 * slope[draw, row])
        least = int(deviance.argmin())
        root = np.sqrt(deviance - deviance[least])
        root[:least] *= -1.0
        found[draw, row] = np.interp(normals[draw, row], root, steps)
    return found.reshape(normal.shape)


def displace(
    problem: "PublishedItems", unit: Unit, held: NDArray[np.bool_], free: Array, deviations: Array
) -> Array:
    """Move optima by Gaussian deviations, (draw, ..., p), in which the unit has no part of its own.

    Questions at the floor of guessing, `held`, stay there; abilities rise from it.
    """
    points, deviations = free.reshape(held.shape), deviations.reshape(-1, *held.shape)
    kept = np.where(held, 0.0, deviations)
    # The score of the deviations along the unit.
    mean, precision = np.asarray(problem.systems.mean)[:, 0], problem.systems.precision[0, 0]
    ability, _, log_slope = problem.parts(kept)
    along = (precision * (2.0 * problem.parts(points)[0] - mean) * ability).sum(axis=-1)
    along -= problem.questions.precision[1, 1] * problem.drift(log_slope)
    spread = unit.spread.reshape(-1)
    moved = points + kept - (spread**2 * along)[..., np.newaxis] * unit.way.reshape(held.shape)
    if unit.draw is not None:
        moved = problem.in_unit(moved, unit.draw(spread * along, problem.parts(moved)[0]))
    answers = problem.likelihood
    for row, system in np.argwhere(held[:, : answers.shape[0]]):
        v = parted(points[row : row + 1], answers.shape)[1]
        lost = partial(_lost, answers.take(np.array([row])), v, system)
        moved[:, row, system] = risen(lost, float(points[row, system]), deviations[:, row, system])
    return moved.reshape(-1, *free.shape)


def _lost(answers: Lines, v: Array, system: int, ability: Array) -> Array:
    """Return by how much the log-likelihood of a system that only guesses is higher, (ability,)."""
    _, _, x, guess = answers.log_odds(ability[np.newaxis, :, np.newaxis], v)
    right, trials = answers.right[:, system], answers.trials[:, system]
    more = np.log1p((1.0 / np.asarray(guess) - 1.0) * logistic(x))
    return ((trials - right) * softplus(x) - right * more)[0].sum(axis=-1)
