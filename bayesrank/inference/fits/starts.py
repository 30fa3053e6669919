"""Where iterations begin: log-odds of counts, and what they say of abilities and difficulties."""

import numpy as np

from bayesrank.inference.fits.penalty import Array
from bayesrank.priors import POOLED_DF

_TINY = 1e-300


def smoothed_log_odds(successes: Array, trials: Array) -> Array:
    """Return finite log-odds to begin iterations with, half a success and a failure added.

    Parameters
    ----------
    successes, trials : numpy.ndarray
        Counts.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> smoothed_log_odds(np.array([0.0, 2.0]), np.array([4.0, 4.0])).round(3)
    array([-2.197,  0.   ])
    """
    return np.log((successes + 0.5) / (trials - successes + 0.5))


def shrunk_log_odds(successes: Array, trials: Array) -> Array:
    """Return smoothed log-odds, shrunk to their mean as the hierarchical prior would.

    Its variance is what is left of their spread beyond that of their errors.

    Parameters
    ----------
    successes, trials : numpy.ndarray of shape (resample, n)
        Counts.

    Returns
    -------
    numpy.ndarray of shape (resample, n)

    Examples
    --------
    >>> shrunk_log_odds(np.array([[1.0, 9.0]]), np.full((1, 2), 10.0)).round(2)
    array([[-1.36,  1.36]])
    """
    log_odds = smoothed_log_odds(successes, trials)
    n = log_odds.shape[-1]
    mean = log_odds.sum(axis=-1, keepdims=True) / n
    deviation = log_odds - mean
    # The variance of log-odds is 1 / (n p q).
    noise = (trials + 1.0) ** 2 / ((successes + 0.5) * (trials - successes + 0.5))
    noise /= np.maximum(trials, 1.0)
    beyond = np.maximum((deviation * deviation - noise).sum(axis=-1, keepdims=True), 0.0)
    variance = (POOLED_DF + beyond) / (POOLED_DF + n - 1.0)
    return mean + deviation * (variance / (variance + noise))


def stretched(ability: Array, difficulty: Array, weights: Array | None) -> tuple[Array, Array]:
    """Turn marginal log-odds into abilities and difficulties (the PROX approximation).

    Parameters
    ----------
    ability : numpy.ndarray of shape (resample, system)
        Log-odds of each system.
    difficulty : numpy.ndarray of shape (resample, question)
        Minus the log-odds of each question; centred here.
    weights : numpy.ndarray of shape (resample, question), or None
        Weights of the questions in the centre; None for equal ones.

    Returns
    -------
    tuple of numpy.ndarray
        Both stretched by how much the other side spreads.

    References
    ----------
    .. [1] L. Cohen. Approximate expressions for parameter estimates in the Rasch model. British
       Journal of Mathematical and Statistical Psychology 32 (1979).
       https://doi.org/10.1111/j.2044-8317.1979.tb00756.x
    """
    if weights is None:
        centre = difficulty.sum(axis=-1) / difficulty.shape[-1]
    else:
        total = np.maximum(weights.sum(axis=-1), _TINY)
        centre = (difficulty * weights).sum(axis=-1) / total
    difficulty = difficulty - centre[:, None]
    spread, other = _variance(ability), _variance(difficulty)
    both = np.concatenate([other, spread], axis=-1)
    factors = np.sqrt((1.0 + both / 2.89) / np.maximum(1.0 - spread * other / 8.35, 0.25))
    return ability * factors[:, :1], difficulty * factors[:, 1:]


def _variance(values: Array) -> Array:
    return np.einsum("bi,bi->b", values, values)[:, np.newaxis] / values.shape[-1]
