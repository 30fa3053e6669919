"""Chances of right answers as functions of log-odds.

All in vectorised steps of NumPy, which are three times as fast as the ready-made functions:
`numpy.logaddexp` and `scipy.special.expit` work element by element.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrank.priors import POOLED_DF

Array = NDArray[np.float64]

# Of a logarithm, so that products and ratios of a few exponentials are in the range of float64.
_LARGEST_LOG = 300.0
_TINY = 1e-300
# Signed roots of likelihood ratios between which abilities above the floor are interpolated, the
# smallest as a share of the largest, and halvings of an interval that leave rounding.
_ROOTS, _LEAST_ROOT, _HALVINGS = 64, 1e-6, 60


def softplus(x: Array) -> Array:
    """Return log(1 + exp(x)), of any size without overflow.

    Examples
    --------
    >>> softplus(np.array([-np.inf, 0.0, 1000.0])).tolist()
    [0.0, 0.6931471805599453, 1000.0]
    """
    found = np.abs(x)
    np.negative(found, out=found)
    np.exp(found, out=found)
    np.log1p(found, out=found)
    found += np.maximum(x, 0.0)
    return found


def finite_exp(x: Array) -> Array:
    """Return exp(x) within the range of float64: draws of what no datum tells may be of any size.

    Examples
    --------
    >>> finite_exp(np.array([0.0, 1e5])).tolist()
    [1.0, 1.9424263952412558e+130]
    """
    return np.exp(np.clip(x, -_LARGEST_LOG, _LARGEST_LOG))


def smoothed_log_odds(successes: Array, trials: Array) -> Array:
    """Return finite log-odds to begin iterations with, half a success and a failure added.

    Examples
    --------
    >>> smoothed_log_odds(np.array([0.0, 2.0]), np.array([4.0, 4.0])).round(3)
    array([-2.197,  0.   ])
    """
    return np.log((successes + 0.5) / (trials - successes + 0.5))


def shrunk_log_odds(successes: Array, trials: Array) -> Array:
    """Return smoothed log-odds of counts, (resample, n), shrunk as the hierarchical prior would.

    Its variance is what is left of their spread beyond that of their errors.

    Examples
    --------
    >>> shrunk_log_odds(np.array([[1.0, 9.0]]), np.full((1, 2), 10.0)).round(2)
    array([[-1.36,  1.36]])
    """
    log_odds, n = smoothed_log_odds(successes, trials), successes.shape[-1]
    mean = log_odds.sum(axis=-1, keepdims=True) / n
    deviation, chance = log_odds - mean, (successes + 0.5) / (trials + 1.0)
    # The variance of log-odds is 1 / (n p q).
    noise = 1.0 / (chance * (1.0 - chance) * np.maximum(trials, 1.0))
    beyond = np.maximum((deviation * deviation - noise).sum(axis=-1, keepdims=True), 0.0)
    variance = (POOLED_DF + beyond) / (POOLED_DF + n - 1.0)
    return mean + deviation * (variance / (variance + noise))


def stretched(ability: Array, difficulty: Array, weights: Array | None) -> tuple[Array, Array]:
    """Turn marginal log-odds into abilities and difficulties (the PROX approximation).

    Both are stretched by how much the other side spreads: log-odds of systems, (resample, system),
    and minus those of questions, (resample, question), centred here with `weights` of that shape.

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
    return np.vecdot(values, values)[:, np.newaxis] / values.shape[-1]


def logistic(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)).

    Examples
    --------
    >>> logistic(np.array([-1000.0, 0.0, np.inf]))
    array([0. , 0.5, 1. ])
    """
    with np.errstate(over="ignore"):  # the reciprocal of infinity is right
        odds = np.exp(-x)
    odds += 1.0
    return 1.0 / odds


@dataclass(frozen=True)
class Guessing:
    """How the lower asymptote is treated; ValueError if a probability is out of range.

    A known guessing probability (0 for 2PL), or None to estimate one per question, up to `upper`.
    """

    fixed: float | None = 0.0
    upper: float = 0.5

    def __post_init__(self) -> None:
        if self.fixed is not None and not 0.0 <= self.fixed < 1.0:
            raise ValueError(f"guessing must be at least 0 and below 1; got {self.fixed!r}")
        if not 0.0 < self.upper <= 1.0:
            raise ValueError(f"guessing_upper must be above 0 and at most 1; got {self.upper!r}")

    def probability(self, logit: Array) -> Array | float | None:
        """Return guessing probabilities from their logits, or the known one; None for 0."""
        return self.upper * logistic(logit) if self.fixed is None else self.fixed or None


NO_GUESSING = Guessing()


def risen(lost: Callable[[Array], Array], floor: float, normals: Array) -> Array:
    """Return abilities at the floor of guessing, or above it, for standard normal numbers, (draw,).

    A positive number is the signed root of a likelihood ratio: the log-likelihood has `lost` half
    its square from the floor to the ability. For others the ability is at the floor, as half of all
    estimates at the end of a range are [1]_. `lost` is of abilities of any number.

    References
    ----------
    .. [1] S. G. Self and K.-Y. Liang. Asymptotic properties of maximum likelihood estimators and
       likelihood ratio tests under nonstandard conditions. Journal of the American Statistical
       Association 82 (1987). https://doi.org/10.1080/01621459.1987.10478472

    Examples
    --------
    >>> risen(np.exp, -20.0, np.array([-1.0, 1.0, 2.0])).round(2)
    array([-20.  ,  -0.69,   0.69])
    """
    roots = max(float(normals.max()), _LEAST_ROOT) * np.geomspace(_LEAST_ROOT, 1.0, _ROOTS)
    reach = 1.0
    while lost(np.array([floor + reach]))[0] <= 0.5 * roots[-1] ** 2:
        reach *= 2.0
    low, high = np.full(_ROOTS, floor), np.full(_ROOTS, floor + reach)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        over = lost(middle) > 0.5 * roots**2
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    found = np.interp(np.log(np.maximum(normals, roots[0])), np.log(roots), low)
    return np.where(normals > 0.0, found, floor)
