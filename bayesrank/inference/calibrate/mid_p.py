"""The mid-P confidence distribution of a share of successes, for scores inside a range.

A score s, as a share of its range, varies as the share of successes in n = s (1 - s) / V
independent trials would, where V is its variance (Korn and Graubard 1998).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, expit, logit

from bayesrank.inference.resample.contributions import ROUNDING

Array = NDArray[np.float64]

# Of more effective trials, or with more degrees of freedom, draws differ by rounding alone.
UNLIMITED = 1.0 / ROUNDING

# Probabilities at which distribution functions of scores are tabulated between their ends.
_TAIL = np.geomspace(ROUNDING, 0.06, 60)
_TABLE = np.concatenate([_TAIL, np.linspace(0.06, 0.94, 120)[1:-1], 1.0 - _TAIL[::-1]])


def mid_p_draws(levels: Array, share: Array, number: Array) -> Array:
    """Return quantiles at levels (draw, system) for shares and numbers of trials (system,)."""
    columns = zip(levels.T, share, number, strict=True)
    return np.stack([mid_p_quantile(*column) for column in columns], axis=1)


def mid_p_quantile(level: Array, share: float, number: float) -> Array:
    r"""Return quantiles of the mid-P confidence distribution of a binomial probability.

    Its distribution function is the mean of those of :math:`\mathrm{Beta}(k, n - k + 1)` and
    :math:`\mathrm{Beta}(k + 1, n - k)`, with successes k among n trials that need not be whole; at
    k = 0 the first of them is a point at 0, at k = n the second one is a point at 1.

    Examples
    --------
    >>> mid_p_quantile(np.array([0.025, 0.5, 0.975]), 1.0, 20.0).round(3)
    array([0.861, 1.   , 1.   ])
    >>> mid_p_quantile(np.array([0.025, 0.5, 0.975]), 0.5, 20.0).round(3)
    array([0.289, 0.5  , 0.711])
    """
    right, wrong = number * share, number * (1.0 - share)
    points = betaincinv(right + 0.5, wrong + 0.5, _TABLE)  # near the quantiles: Jeffreys' prior
    lower = betainc(right, wrong + 1.0, points) if right > 0.0 else np.ones(len(points))
    upper = betainc(right + 1.0, wrong, points) if wrong > 0.0 else np.zeros(len(points))
    known = (lower + upper) / 2.0
    inner = (points > 0.0) & (points < 1.0) & (known > 0.0) & (known < 1.0)
    # Smooth on the scale of log-odds, points at the ends apart.
    found = expit(np.interp(logit(level), logit(known[inner]), logit(points[inner])))
    found = np.where((right <= 0.0) & (level <= 0.5), 0.0, found)
    return np.where((wrong <= 0.0) & (level >= 0.5), 1.0, found)
