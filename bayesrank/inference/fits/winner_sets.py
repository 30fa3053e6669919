r"""Random subsets of a given size: normaliser, inclusion probabilities and their covariance.

A set U of size t drawn with probability proportional to :math:`\prod_{i \in U} x_i` has the
elementary symmetric polynomial :math:`e_t(x)` as its normaliser. Let every element enter on its own
with odds :math:`\lambda x_i`, with :math:`\lambda` such that t are expected. Then

.. math:: e_t(x) = \Pr(|U| = t) \prod_i (1 + \lambda x_i) / \lambda^t,

and the probability on the right, which is of the order of one over the standard deviation of the
size, comes from the characteristic function at L + 1 points of the circle: exactly, without
overflow and without cancellation. The same points give the probabilities that one or two given
elements are in the set, for all sizes at once and by matrix products. Independent entry itself
approximates them (Hajek, 1964), at a fraction of the cost.

References
----------
.. [1] J. Hajek. Asymptotic theory of rejective sampling with varying probabilities from a finite
   population. The Annals of Mathematical Statistics 35 (1964).
   https://doi.org/10.1214/aoms/1177700375
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_TILT_STEPS = 60
_TILT_TOLERANCE = 1e-6


@dataclass(frozen=True)
class WinnerSets:
    """Winner sets of several sizes under scores, where x = exp(score / size).

    Attributes
    ----------
    log_normaliser : numpy.ndarray of shape (resample, size)
        log e_t(exp(theta / t)).
    inclusion : numpy.ndarray of shape (resample, size, system)
        Probability that a system is in a set of that size.
    joint_factors : tuple of numpy.ndarray
        Complex factors of shape (resample, size, point, system) and weights of shape (resample,
        size, point) whose products are the joint inclusion probabilities.
    """

    log_normaliser: Array
    inclusion: Array
    joint_factors: tuple[ComplexArray, ComplexArray]

    def covariance(self, weights: Array) -> Array:
        """Return the covariance of the inclusion indicators, summed over sizes with weights."""
        factors, points = self.joint_factors
        batch, _, _, n_systems = factors.shape
        weighted = (factors * (points * weights[:, :, None])[..., None]).reshape(
            batch, -1, n_systems
        )
        flat = factors.reshape(batch, -1, n_systems)
        # The real part of a complex product, as two real ones.
        joint = weighted.real.transpose(0, 2, 1) @ flat.real
        joint -= weighted.imag.transpose(0, 2, 1) @ flat.imag
        single = (self.inclusion * weights[:, :, None]).transpose(0, 2, 1) @ self.inclusion
        own = (self.inclusion * weights[:, :, None]).sum(axis=1)
        joint.reshape(batch, -1)[:, :: n_systems + 1] = own
        return joint - single


def independent_inclusion(scores: Array, sizes: NDArray[np.int64]) -> Array:
    """Approximate inclusion probabilities, (resample, size, system), by independent entry."""
    log_x = scores[:, None, :] / sizes[:, None]
    odds = np.exp(log_x + _tilt(log_x, sizes)[..., None])
    return odds / (1.0 + odds)


def winner_sets(scores: Array, sizes: NDArray[np.int64]) -> WinnerSets:
    """Evaluate winner sets of sizes of at least 1 and below the number of systems.

    Examples
    --------
    >>> sets = winner_sets(np.zeros((1, 4)), np.array([1, 2]))
    >>> np.exp(sets.log_normaliser).round(12)
    array([[4., 6.]])
    >>> sets.inclusion[0, :, 0].round(12)
    array([0.25, 0.5 ])
    """
    n_systems = scores.shape[-1]
    log_x = (scores[:, None, :] - scores.max(axis=-1)[:, None, None]) / sizes[:, None]
    tilt = _tilt(log_x, sizes)
    odds = np.exp(log_x + tilt[..., None])
    chance = odds / (1.0 + odds)
    # An odd number of points, at least L + 1, none of which is at -1 where a factor can vanish;
    # the upper half of the circle mirrors the lower one.
    n_points = n_systems + 1 + n_systems % 2
    angle = 2.0 * np.pi * np.arange(n_points // 2 + 1) / n_points
    turn = np.exp(1j * angle)
    entering = chance[:, :, None, :] * turn[:, None]
    staying = (1.0 - chance)[:, :, None, :] + entering
    share = np.where(angle == 0.0, 1.0, 2.0) / n_points
    density = staying.prod(axis=-1) * np.exp(-1j * sizes[:, None] * angle) * share
    probability = density.real.sum(axis=-1)
    log_normaliser = np.log(probability) + np.log1p(odds).sum(axis=-1) - sizes * tilt
    factors = entering / staying
    points = density / probability[..., None]
    inclusion = (factors * points[..., None]).real.sum(axis=-2)
    top = scores.max(axis=-1, keepdims=True)
    return WinnerSets(log_normaliser + top, inclusion, (factors, points))


def _tilt(log_x: Array, sizes: NDArray[np.int64]) -> Array:
    """Return log lambda for which each size is the expected one, to good approximation."""
    n_systems = log_x.shape[-1]
    # Between the thresholds at which half of the t-th and of the next largest enter.
    ordered = np.sort(log_x, axis=-1)
    index = np.broadcast_to(n_systems - sizes, log_x.shape[:-1])[..., None]
    upper = np.take_along_axis(ordered, index, axis=-1)
    lower = np.take_along_axis(ordered, index - 1, axis=-1)
    tilt = -0.5 * (upper + lower)[..., 0]
    for _ in range(_TILT_STEPS):
        odds = np.exp(log_x + tilt[..., None])
        chance = odds / (1.0 + odds)
        excess = chance.sum(axis=-1) - sizes
        slope = (chance * (1.0 - chance)).sum(axis=-1)
        if np.abs(excess).max(initial=0.0) <= _TILT_TOLERANCE * n_systems:
            break
        tilt = tilt - np.clip(excess / np.maximum(slope, 1e-3), -2.0, 2.0)
    return tilt
