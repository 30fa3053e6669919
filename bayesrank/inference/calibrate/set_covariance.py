"""Draws of scores with another covariance than they have."""

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.bordered import symmetric_root
from bayesrank.inference.resample.contributions import ROUNDING

Array = NDArray[np.float64]


def adjust(draws: Array, covariance: Array) -> Array:
    """Give draws (chain, draw, parameter) another covariance by an affine map, keeping their mean.

    Directions in which that does not vary, or the draws do not, such as the common shift of
    zero-sum scores, are left as they are.
    """
    flat = draws.reshape(-1, draws.shape[-1])
    mean = flat.mean(axis=0)
    current = covariance_of(flat)
    varied = axes_of(current)
    axes = varied @ axes_of(varied.T @ covariance @ varied)
    deviations = draws - mean
    along = deviations @ axes
    now = symmetric_root(axes.T @ current @ axes)
    moved = along @ np.linalg.solve(now, symmetric_root(axes.T @ covariance @ axes))
    return mean + deviations + (moved - along) @ axes.T


def redraw(draws: Array, score: Array, covariance: Array, rng: np.random.Generator) -> Array:
    """Draw scores anew where a covariance lets them vary, whether or not the draws do.

    Where other fits do not vary either, as with systems that are always right, the draws are all
    that is known.
    """
    axes, deviations = axes_of(covariance), draws - score
    held = deviations - deviations @ axes @ axes.T
    return score + held + draw_gaussian(covariance, len(draws), rng)


def draw_gaussian(variance: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw from a Gaussian with a covariance that may be singular, of shape (size, p)."""
    return rng.standard_normal((size, len(variance))) @ symmetric_root(variance)


def covariance_of(draws: Array) -> Array:
    """Return the covariance of draws of shape (draw, parameter), a matrix for one parameter too."""
    return np.atleast_2d(np.cov(draws, rowvar=False))


def axes_of(covariance: Array) -> Array:
    """Return orthonormal directions in which a covariance has spread, in columns."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors[:, values > ROUNDING * values.max(initial=0.0)]
