r"""Probabilities of winner sets of given sizes, out of one common comparison set.

For the elementary symmetric polynomial :math:`e_t(x)` let every element enter on its own with odds
:math:`\lambda x_i`, with :math:`\lambda` such that t are expected. Then

.. math:: e_t(x) = \Pr(|U| = t) \prod_i (1 + \lambda x_i) / \lambda^t,

and the probability on the right, which is of the order of one over the standard deviation of the
size, comes from the characteristic function at L + 1 points of the circle: exactly, without
overflow and without cancellation. The same points give the probabilities that one or two given
elements are in the set, for all sizes at once and by matrix products.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.zero_sum import diagonals

# Newton steps of a tilt, and the share of all systems by which the expected size may be off.
_TILT_STEPS = 60
_TILT_TOLERANCE = 1e-6


def log_sets(score: Array, shares: Array, n_sets: Array, sizes: NDArray[np.int64]) -> Array:
    """Return Davidson-Luce log-likelihoods given the sizes, of shape (point, unit).

    For scores of shape (point, system), `shares` S of (point or 1, unit, system), and the numbers
    of winner sets of each of the `sizes`, (point or 1, unit, size).
    """
    log_normaliser = winner_sets(score, sizes).log_normaliser
    found = shares @ score[..., np.newaxis] - n_sets @ log_normaliser[..., np.newaxis]
    return found[..., 0]


def set_statistics(
    right: NDArray[np.bool_], counts: Array | NDArray[np.int64]
) -> tuple[Array, Array]:
    """Summarise winner sets out of one common comparison set.

    `right`, of shape (..., event, system), says who is in the winner set; `counts`, (..., event),
    how often each event happened, 0 where all systems won or none did. Returns what
    :func:`~bayesrank.inference.fits.luce.fit_davidson_luce` takes.
    """
    size = right.sum(axis=-1, keepdims=True)
    each: Array = counts / np.maximum(size[..., 0], 1)
    shares = each[..., np.newaxis, :] @ right
    n_sets = counts[..., np.newaxis, :] @ (size == np.arange(1, right.shape[-1]))
    return shares[..., 0, :], n_sets[..., 0, :]


@dataclass(frozen=True)
class WinnerSets:
    """Winner sets of several sizes under scores, where x = exp(score / size).

    `log_normaliser`, of shape (resample, size), is log e_t(exp(theta / t)), and `inclusion`,
    (resample, size, system), the probability that a system is in a set of that size. The joint
    inclusion probabilities are products of `factors`, (resample, size, point, system), with
    weights of the `points`, (resample, size, point).
    """

    log_normaliser: Array
    inclusion: Array
    factors: NDArray[np.complex128]
    points: NDArray[np.complex128]

    def covariance(self, weights: Array) -> Array:
        """Return the covariance of the inclusion indicators, summed over sizes with weights."""
        batch, _, _, n_systems = self.factors.shape
        weighted = self.factors * (self.points * weights[:, :, np.newaxis])[..., np.newaxis]
        weighted, flat = (each.reshape(batch, -1, n_systems) for each in (weighted, self.factors))
        # The real part of a complex product, as two real ones.
        joint = weighted.real.transpose(0, 2, 1) @ flat.real
        joint -= weighted.imag.transpose(0, 2, 1) @ flat.imag
        single = (self.inclusion * weights[:, :, np.newaxis]).transpose(0, 2, 1) @ self.inclusion
        own = (self.inclusion * weights[:, :, np.newaxis]).sum(axis=1)
        diagonals(joint)[...] = own
        return joint - single


def winner_sets(scores: Array, sizes: NDArray[np.int64]) -> WinnerSets:
    """Evaluate winner sets of sizes of at least 1 and below the number of systems."""
    n_systems = scores.shape[-1]
    top = scores.max(axis=-1, keepdims=True)
    log_x = (scores - top)[:, np.newaxis] / sizes[:, np.newaxis]
    tilt, odds = tilted(log_x, sizes)
    chance = odds / (1.0 + odds)
    # An odd number of points, at least L + 1, none of which is at -1 where a factor can vanish;
    # the upper half of the circle mirrors the lower one.
    n_points = n_systems + 1 + n_systems % 2
    angle = 2.0 * np.pi * np.arange(n_points // 2 + 1) / n_points
    turn = np.exp(1j * angle)
    entering = chance[:, :, np.newaxis] * turn[:, np.newaxis]
    staying = (1.0 - chance)[:, :, np.newaxis] + entering
    share = np.where(angle == 0.0, 1.0, 2.0) / n_points
    density = staying.prod(axis=-1) * np.exp(-1j * sizes[:, np.newaxis] * angle) * share
    probability = density.real.sum(axis=-1)
    log_normaliser = np.log(probability) + np.log1p(odds).sum(axis=-1) - sizes * tilt
    factors = entering / staying
    points = density / probability[..., np.newaxis]
    inclusion = (factors * points[..., np.newaxis]).real.sum(axis=-2)
    return WinnerSets(log_normaliser + top, inclusion, factors, points)


def tilted(log_x: Array, sizes: NDArray[np.int64]) -> tuple[Array, Array]:
    """Return log lambda for which each size is about the expected one, and the odds of entry."""
    n_systems = log_x.shape[-1]
    # Between the thresholds at which half of the t-th and of the next largest enter.
    ordered = np.sort(log_x, axis=-1)
    index = np.broadcast_to(n_systems - sizes, log_x.shape[:-1])[..., np.newaxis]
    upper = np.take_along_axis(ordered, index, axis=-1)
    lower = np.take_along_axis(ordered, index - 1, axis=-1)
    tilt = -0.5 * (upper + lower)[..., 0]
    for _ in range(_TILT_STEPS):
        odds = np.exp(log_x + tilt[..., np.newaxis])
        chance = odds / (1.0 + odds)
        excess = chance.sum(axis=-1) - sizes
        slope = (chance * (1.0 - chance)).sum(axis=-1)
        if np.abs(excess).max(initial=0.0) <= _TILT_TOLERANCE * n_systems:
            break
        tilt = tilt - np.clip(excess / np.maximum(slope, 1e-3), -2.0, 2.0)
    return tilt, np.exp(log_x + tilt[..., np.newaxis])
