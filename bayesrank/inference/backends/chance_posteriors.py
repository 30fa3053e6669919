r"""Posteriors of the chances of a right answer that a system has at its questions.

The chances :math:`p_m` of a system are taken from one distribution (empirical Bayes),

.. math:: p_m = u \pi + (1 - u) b_m, \qquad
          b_m \sim \mathrm{Beta}\bigl(\pi (1 - \rho) / \rho, (1 - \pi) (1 - \rho) / \rho\bigr)

with mean :math:`\pi`, intraclass correlation :math:`\rho` of the trials of a question, and a share
u that keeps the chances away from 0 and 1. The mean is that of the trials, one more included that
is half right. Correlation and share have uniform priors and are averaged over by their posterior.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

# Nodes of a uniform correlation, by Gauss and Legendre, and equally likely shares.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_SHARES = np.arange(4) / 4.0

# Intervals of the arc sine scale, on which n trials tell a chance to 1 / (2 sqrt(n)), per standard
# deviation and in any case.
_PER_SD, _FEWEST = 5.0, 64


def chance_nodes(most_trials: int) -> tuple[Array, Array]:
    """Return nodes between 0 and 1, and the edges of their cells, for up to so many trials."""
    size = _FEWEST + int(np.pi * _PER_SD * np.sqrt(most_trials))
    edges = np.sin(np.arange(size + 1) * np.pi / (2.0 * size)) ** 2
    nodes = np.sin((np.arange(size) + 0.5) * np.pi / (2.0 * size)) ** 2
    return nodes, edges


def chance_posteriors(
    right: Counts, trials: Counts, times: Counts, nodes: Array, edges: Array
) -> Array:
    """Return posterior masses on the nodes of the chances of one system.

    Parameters
    ----------
    right, trials : numpy.ndarray of shape (cell,)
        Right answers and trials.
    times : numpy.ndarray of shape (cell,)
        How many questions have these counts.
    nodes, edges : numpy.ndarray of shape (node,) and (node + 1,)
        See :func:`chance_nodes`.

    Returns
    -------
    numpy.ndarray of shape (cell, node)

    Examples
    --------
    >>> nodes, edges = chance_nodes(4)
    >>> right, trials, times = np.array([0, 4]), np.array([4, 4]), np.array([1, 1])
    >>> mass = chance_posteriors(right, trials, times, nodes, edges)
    >>> (mass @ nodes).round(2)
    array([0.13, 0.87])
    """
    mean = float((times @ right + 0.5) / (times @ trials + 1.0))
    masses, weights = _laws(mean, edges)
    log_likelihood = right[:, np.newaxis] * np.log(nodes)
    log_likelihood += (trials - right)[:, np.newaxis] * np.log1p(-nodes)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    evidence = np.maximum(likelihood @ masses.T, np.finfo(np.float64).tiny)
    log_weight = times @ np.log(evidence) + np.log(weights)
    weight = np.exp(log_weight - log_weight.max())
    return likelihood * ((weight / weight.sum() / evidence) @ masses)


def _laws(mean: float, edges: Array) -> tuple[Array, Array]:
    """Return the distributions that chances may have, of shape (law, node), and prior weights."""
    correlation, share = np.meshgrid((_NODES + 1.0) / 2.0, _SHARES, indexing="ij")
    strength = ((1.0 - correlation) / correlation).reshape(-1, 1)
    share = share.reshape(-1, 1)
    inner = np.clip((edges - share * mean) / (1.0 - share), 0.0, 1.0)
    below = betainc(strength * mean, strength * (1.0 - mean), inner)
    return np.diff(below, axis=1), np.repeat(_WEIGHTS, len(_SHARES))
