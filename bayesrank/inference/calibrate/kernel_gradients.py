"""Gradients of the log-likelihoods of the kernels, for resampled counts at one point.

One function per row of the catalog that can be calibrated: ``gradient(*counts, point, **options)``
with counts of shape (resample, ...), the kernel's free coordinates of shape (p,) and the options of
the row's factory; it returns an array of shape (resample, p) without the part of the priors.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.bradley_terry import TiePolicy, bradley_terry_problem
from bayesrank.inference.fits.davidson import davidson_problem
from bayesrank.inference.fits.rao_kupper import rao_kupper_problem

Array = NDArray[np.float64]


def bradley_terry(
    wins: Array, tied: Array, point: Array, *, ties: TiePolicy = "ignore", **_: Any
) -> Array:
    """Return gradients of Bradley-Terry in the scores."""
    problem = bradley_terry_problem(wins, tied, ties=ties)
    return problem.gradient(_everywhere(point, wins))


def davidson(wins: Array, tied: Array, point: Array, **_: Any) -> Array:
    """Return gradients of Davidson's model in the scores and log nu."""
    return davidson_problem(wins, tied).gradient(_everywhere(point, wins))


def rao_kupper(
    wins: Array, tied: Array, point: Array, *, tie_strength: float | None = None, **_: Any
) -> Array:
    """Return gradients of Rao-Kupper in the scores and, where it is estimated, log kappa."""
    problem = rao_kupper_problem(wins, tied, tie_strength=tie_strength)
    return problem.gradient(_everywhere(point, wins))


def _everywhere(point: Array, counts: Array) -> Array:
    return np.broadcast_to(point, (len(counts), point.size))
