r"""Log-probability of contests in which several systems meet the same rivals, compiled.

In a row, every contestant i meets only all rivals V, in r contests. With
:math:`x_l` the number of contests that l won, the part of the log-probability that depends on the
scores is

.. math:: f = \sum_l x_l \theta_l
    - r \sum_i \log\Bigl(e^{\theta_i} + \sum_{j \in V} e^{\theta_j}\Bigr).

With tensor operations it needs a logarithm and passes over several arrays per row and
system. Here the totals of a row are multiplied, so that a row needs one logarithm.
"""

# PyTensor generates its functions, with annotations that say None.
# pyright: reportPrivateImportUsage=false

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply

from bayesrank.models.array_ops import REORDER_SUMS, ArrayOp

Array = NDArray[np.float64]

# The product of two numbers in this range is a double, neither zero nor infinite.
_SMALL, _LARGE = 1e-150, 1e150

# Keeps the total positive for rivals that are e^-700 times as strong as the strongest system.
_TINY = np.finfo(np.float64).tiny


def log_contests(scores: Any, wins: Any, contestants: Any, rivals: Any, repeats: Any) -> Any:
    """Return the part f of the log-probability of contests, of shape (event,).

    `wins`, `contestants` and `rivals` are of shape (event, system), `repeats` of shape (event,). A
    system may be neither contestant nor rival.

    Examples
    --------
    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> from bayesrank.models.luce_contests import log_contests
    >>> first = np.array([[True, False, False]])
    >>> value = log_contests(pt.zeros(3), np.eye(1, 3), first, ~first, np.ones(1))
    >>> np.exp(value.eval(mode="FAST_COMPILE")).round(4)
    array([0.3333])
    """
    return _LOG_CONTESTS(scores, wins, contestants, rivals, repeats)[0]


@njit(cache=True)
def _sum_of_logs(values: Array) -> float:  # pragma: no cover - compiled
    """Return the sum of the logarithms of positive values; one logarithm for many of them."""
    product, logs = 1.0, 0.0
    whole = len(values) - len(values) % 4
    for i in range(0, whole, 4):
        four = (values[i] * values[i + 1]) * (values[i + 2] * values[i + 3])
        if four < _SMALL or four > _LARGE:
            for k in range(i, i + 4):
                logs += np.log(values[k])
            continue
        product *= four
        if product < _SMALL or product > _LARGE:
            logs += np.log(product)
            product = 1.0
    for i in range(whole, len(values)):
        logs += np.log(values[i])
    return logs + np.log(product)


@njit(cache=True, fastmath=REORDER_SUMS)
def log_contests_arrays(
    scores: Array,
    wins: Array,
    contestants: NDArray[np.bool_],
    rivals: NDArray[np.bool_],
    repeats: Array,
) -> tuple[Array, Array]:  # pragma: no cover - compiled
    """Return the log-probability of each row and its gradient; see :func:`log_contests`."""
    n_events, n_systems = wins.shape
    value, gradient = np.empty(n_events), np.empty((n_events, n_systems))
    totals, inverse = np.empty(n_systems), np.empty(n_systems)
    top = scores.max()
    strength = np.exp(scores - top)
    for e in range(n_events):
        fighting, opposing, won, slope = contestants[e], rivals[e], wins[e], gradient[e]
        against, fits = 0.0, 0.0
        for i in range(n_systems):
            against += opposing[i] * strength[i]
            fits += won[i] * (scores[i] - top)
        against = max(against, _TINY)
        inverses = 0.0
        for i in range(n_systems):
            # Arithmetic on 0 and 1, because a processor mispredicts half of the branches on them.
            fights = 1.0 * fighting[i]
            totals[i] = fights * (strength[i] + against) + (1.0 - fights)
            inverse[i] = fights / totals[i]
            inverses += inverse[i]
        value[e] = fits - repeats[e] * _sum_of_logs(totals)
        for i in range(n_systems):
            share = strength[i] * (inverse[i] + opposing[i] * inverses)
            slope[i] = won[i] - repeats[e] * share
    return value, gradient


@njit(cache=True, fastmath=REORDER_SUMS)
def contests_curvature_array(
    scores: Array,
    contestants: NDArray[np.bool_],
    rivals: NDArray[np.bool_],
    repeats: Array,
    directions: Array,
) -> Array:  # pragma: no cover - compiled
    """Return the sum over rows of their Hessians, each times its direction, of shape (system,).

    `directions` are of shape (event, system); see :func:`log_contests`.
    """
    n_events, n_systems = contestants.shape
    product = np.zeros(n_systems)
    strength = np.exp(scores - scores.max())
    for e in range(n_events):
        against, pull = 0.0, 0.0
        for j in range(n_systems):
            if rivals[e, j]:
                against += strength[j]
                pull += strength[j] * directions[e, j]
        inverses, means = 0.0, 0.0
        for i in range(n_systems):
            if contestants[e, i]:
                total = strength[i] + max(against, _TINY)
                # The mean of the direction over contestant and rivals, weighted by their chances.
                mean = (strength[i] * directions[e, i] + pull) / total
                inverses += 1.0 / total
                means += mean / total
                product[i] -= repeats[e] * strength[i] * (directions[e, i] - mean) / total
        for j in range(n_systems):
            if rivals[e, j]:
                product[j] -= repeats[e] * strength[j] * (directions[e, j] * inverses - means)
    return product


class LogContests(ArrayOp):
    """Log-probability of each row, of shape (event,), and its gradient (event, system)."""

    function = log_contests_arrays
    gufunc_signature = "(l),(e,l),(e,l),(e,l),(e)->(e),(e,l)"
    dtypes = ("float64", "float64", "bool", "bool", "float64")

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Declare only the scores as differentiable."""
        return [[True, True], *([False, False] for _ in range(4))]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Return the gradient with respect to the scores."""
        by_value, by_gradient = cotangents
        scores, _, contestants, rivals, repeats = inputs
        parts = []
        if not isinstance(by_value.type, DisconnectedType):
            parts.append((by_value[:, np.newaxis] * outputs[1]).sum(axis=0))
        if not isinstance(by_gradient.type, DisconnectedType):
            parts.append(_CURVATURE_PRODUCT(scores, contestants, rivals, repeats, by_gradient))
        return [sum(parts), *(disconnected_type() for _ in range(4))]


class ContestsCurvatureProduct(ArrayOp):
    """Second derivatives of the rows of LogContests, each times a direction, all summed."""

    function = contests_curvature_array
    gufunc_signature = "(l),(e,l),(e,l),(e),(e,l)->(l)"
    dtypes = ("float64", "bool", "bool", "float64", "float64")


_LOG_CONTESTS = LogContests()
_CURVATURE_PRODUCT = ContestsCurvatureProduct()
