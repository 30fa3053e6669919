"""Stationary distributions of small chains, batched over resamples."""

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches

# Chains eliminated at a time: about a megabyte of matrices, which stays in the processor's cache.
_CHUNK_ELEMENTS = 131_072


def stationary_distribution(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return the stationary distribution of chains given by their rates of leaving.

    The elimination of Grassmann, Taksar and Heyman [1]_ has no subtractions, so every entry has a
    small relative error, even if it is very small. A common factor of the rates and the
    probability of staying do not matter.

    Parameters
    ----------
    rates : numpy.ndarray of shape (..., system, system)
        ``rates[i, j] >= 0`` is the rate of moving from i to j; the diagonal is not read. From
        every system one closed class must be reachable, and the system with most positive rates
        into it must lie in that class: true of connected chains, and of chains with a positive
        rate in at least one direction between any two systems.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        Probabilities that sum to one; exactly zero for systems outside the closed class.

    References
    ----------
    .. [1] W. K. Grassmann, M. I. Taksar and D. P. Heyman. Regenerative analysis and steady state
       distributions for Markov chains. Operations Research 33 (1985).
       https://doi.org/10.1287/opre.33.5.1107

    Examples
    --------
    >>> stationary_distribution(np.array([[0.0, 1.0], [3.0, 0.0]]))
    array([0.75, 0.25])
    """
    size = rates.shape[-1]
    chains = rates.reshape(-1, size, size)
    probabilities = np.empty(chains.shape[:2])
    for block in batches(len(chains), size * size, _CHUNK_ELEMENTS):
        probabilities[block] = _eliminate(chains[block])
    return probabilities.reshape(rates.shape[:-1])


def _eliminate(chains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve chains of shape (chain, system, system), all at once."""
    size = chains.shape[-1]
    # Start from a system of the closed class, so that the remaining systems always have exits.
    # Ordering by the chain instead of by label keeps rounding the same under relabelling.
    into = np.where(np.eye(size, dtype=bool), 0.0, chains)
    inflow = into.sum(axis=-2)
    total = inflow.sum(axis=-1, keepdims=True)
    share = np.divide(inflow, 2.0 * total, out=np.zeros_like(inflow), where=total > 0)
    order = np.argsort(-((into > 0).sum(axis=-2) + share), axis=-1, kind="stable")
    batch = np.arange(len(chains))
    ordered = chains[batch[:, None, None], order[:, :, None], order[:, None, :]]
    rate = np.ascontiguousarray(np.moveaxis(ordered, 0, -1))
    for last in range(size - 1, 0, -1):
        rate[:last, last] /= rate[last, :last].sum(axis=0)
        rate[:last, :last] += rate[:last, last, None] * rate[None, last, :last]
    probability = np.ones((size, len(chains)))
    for state in range(1, size):
        probability[state] = (probability[:state] * rate[:state, state]).sum(axis=0)
    probability /= probability.sum(axis=0)
    result = np.empty((len(chains), size))
    result[batch[:, None], order] = probability.T
    return result
