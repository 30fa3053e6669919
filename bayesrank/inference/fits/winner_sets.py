r"""Winner sets: statistics, and subsets of a given size with their inclusion probabilities.

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

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.fit import Fit

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


def set_statistics(
    right: NDArray[np.bool_], counts: Array | NDArray[np.int64]
) -> tuple[Array, Array]:
    """Summarise winner sets out of one common comparison set.

    `right`, of shape (..., event, system), says who is in the winner set; `counts`, (..., event),
    how often each event happened, 0 where all systems won or none did. Returns, for each system,
    the sum of one over the size of the winner sets that contain it, and the numbers of winner sets
    of size 1, 2, ... below that of all systems.

    Examples
    --------
    >>> shares, n_sets = set_statistics(np.tri(3, k=-1)[1:] > 0.0, np.ones(2))
    >>> shares.tolist(), n_sets.tolist()
    ([1.5, 0.5, 0.0], [1.0, 1.0])
    """
    size = right.sum(axis=-1, keepdims=True)
    each: Array = counts / np.maximum(size[..., 0], 1)
    shares = each[..., np.newaxis, :] @ right
    n_sets = counts[..., np.newaxis, :] @ (size == np.arange(1, right.shape[-1]))
    return shares[..., 0, :], n_sets[..., 0, :]


def with_set_sizes(fit: Fit, n_sets: Array) -> Fit:
    """Add the probabilities of the sizes to a fit of Davidson-Luce scores that is not batched.

    Sizes and scores are independent given the data. The free coordinates of the sizes are the
    log-odds of each against all larger ones, in which the sizes are independent too. `n_sets` are
    the numbers of winner sets of size 1, 2, ...; ``size_probability`` and ``tie_prevalence`` are of
    shape (size,), over the sizes that occur; a size alone has no probability to estimate. The
    prevalences are relative to that of the smallest size, and not part of the draws.
    """
    sizes, n_systems = np.flatnonzero(n_sets) + 1, len(fit.score)
    counts = n_sets[sizes - 1]
    log_normaliser = winner_sets(fit.score[np.newaxis], sizes).log_normaliser[0]
    prevalence = np.log(counts) - log_normaliser
    parameters = {"tie_prevalence": np.exp(prevalence - prevalence[0])}
    if len(sizes) == 1:
        return replace(fit, parameters=parameters)
    larger, smaller = np.cumsum(counts[::-1])[::-1][1:], counts[:-1]

    def unpack(free: Array) -> dict[str, Array]:
        odds = np.exp(free[..., n_systems:])
        first = np.ones_like(odds[..., :1])
        before = np.concatenate([first, np.cumprod(1.0 / (1.0 + odds), axis=-1)], axis=-1)
        taken = np.concatenate([odds / (1.0 + odds), first], axis=-1)
        return {"score": free[..., :n_systems], "size_probability": before * taken}

    def curvature() -> tuple[Array, Array]:
        information, held = fit.curvature()
        both = np.diag(np.append(np.zeros(n_systems), smaller * larger / (smaller + larger)))
        both[:n_systems, :n_systems] = information
        return both, np.vstack([held, np.zeros((len(smaller), held.shape[-1]))])

    return replace(
        fit,
        parameters={"size_probability": counts / counts.sum(), **parameters},
        free=np.concatenate([fit.free, np.log(smaller / larger)]),
        unpack=unpack,
        curvature=curvature,
    )
