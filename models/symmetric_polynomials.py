r"""Elementary symmetric polynomials of strengths, for likelihoods of sets of winners.

A set :math:`U` of :math:`t` winners has the geometric mean of its strengths as weight,
:math:`g(U) = \exp(\sum_{i \in U} \theta_i / t)`. Summed over all sets of t out of the members of S,

.. math:: e_t(S) = \sum_{U \subset S, |U| = t} \exp\Bigl(\sum_{i \in U} \theta_i / t\Bigr),

which is the elementary symmetric polynomial of degree t of :math:`\exp(\theta_i / t)`. The
recursion over members needs :math:`t |S|` additions of positive terms, without cancellation.
Every term is divided by the largest one, so that the scaled sum lies between 1 and the number of
sets, for any scores.
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


def log_symmetric(scores: Any, members: Any, sizes: Any) -> Any:
    r"""Return :math:`\log e_t(S)`, the logarithm of the summed weights of all sets, (set, size).

    It is minus infinity where S has fewer than t members. `members`, (set, system), are those of
    each S, and `sizes`, (size,), the numbers of winners t, at least 1.

    Examples
    --------
    Two of the three sets of two out of three equal systems hold any one of them:

    >>> import numpy as np
    >>> import pytensor.tensor as pt
    >>> from bayesrank.models.symmetric_polynomials import log_symmetric
    >>> members = np.ones((1, 3), dtype=bool)
    >>> value = log_symmetric(pt.zeros(3), members, np.array([1, 2, 3]))
    >>> np.exp(value.eval(mode="FAST_COMPILE")).round(12)
    array([[3., 3., 1.]])
    """
    return _LOG_SYMMETRIC(scores, members, sizes)[0]


def draw_subsets(uniforms: Any, scores: Any, members: Any, sizes: Any) -> Any:
    """Draw sets of winners of given sizes, each with a chance in proportion to its weight.

    `uniforms`, (event, system), are independent draws between 0 and 1. `sizes`, (event,), are
    between 1 and the number of `members`, (event, system). The result is 1 for winners, else 0.
    """
    return _SUBSET_DRAWS(uniforms, scores, members, sizes)


@njit(cache=True, fastmath=REORDER_SUMS)
def _scale_factors(
    scores: Array, ranked: Array, size: int, skip: Array, take: Array
) -> float:  # pragma: no cover - compiled
    """Fill in the factors of not winning and winning; return the log of their common factor.

    A threshold between the size-th and the next score separates the winners in the largest term
    from the others. The factor is 1 for these winners when they win, and for the others when they
    do not win. So the largest term is 1 and no product exceeds it.
    """
    n = len(scores)
    threshold = ranked[n - 1] if size == n else 0.5 * (ranked[size - 1] + ranked[size])
    for i in range(n):
        above = (scores[i] - threshold) / size
        skip[i] = np.exp(-above) if above > 0.0 else 1.0
        take[i] = np.exp(above) if above < 0.0 else 1.0
    return ranked[:size].sum() / size


@njit(cache=True, fastmath=REORDER_SUMS)
def _fill_prefixes(
    skip: Array, take: Array, size: int, table: Array
) -> float:  # pragma: no cover - compiled
    """Sum over the sets of s among the first i members in ``table[i, s]``; return the total.

    Only entries that can still lead to a set of `size` are filled in.
    """
    n = len(skip)
    table[0, 0] = 1.0
    for i in range(n):
        if i < size:
            table[i, i + 1] = 0.0
        fewest = size - (n - i - 1)
        if fewest <= 0:
            table[i + 1, 0] = skip[i] * table[i, 0]
        for s in range(max(1, fewest), min(i + 1, size) + 1):
            table[i + 1, s] = skip[i] * table[i, s] + take[i] * table[i, s - 1]
    return table[n, size]


@njit(cache=True, fastmath=REORDER_SUMS)
def log_symmetric_arrays(
    scores: Array, members: NDArray[np.bool_], sizes: NDArray[np.int64]
) -> tuple[Array, Array]:  # pragma: no cover - compiled
    """Return log symmetric polynomials and their gradients; see :func:`log_symmetric`."""
    n_sets, n_systems = members.shape
    value = np.full((n_sets, len(sizes)), -np.inf)
    gradient = np.zeros((n_sets, len(sizes), n_systems))
    table = np.empty((n_systems + 1, n_systems + 2))
    suffix = np.empty(n_systems + 2)
    skip, take = np.empty(n_systems), np.empty(n_systems)
    for g in range(n_sets):
        index = np.flatnonzero(members[g])
        n = len(index)
        own = scores[index]
        ranked = np.sort(own)[::-1]
        for k in range(len(sizes)):
            size = sizes[k]
            if size > n:
                continue
            largest = _scale_factors(own, ranked, size, skip, take)
            total = _fill_prefixes(skip[:n], take[:n], size, table)
            value[g, k] = largest + np.log(total)
            # suffix[s] sums over the sets that complete s winners among the members before i.
            suffix[:size] = 0.0
            suffix[size] = 1.0
            for i in range(n - 1, -1, -1):
                with_i = 0.0
                for s in range(max(0, size - (n - i)), min(i, size - 1) + 1):
                    with_i += table[i, s] * suffix[s + 1]
                gradient[g, k, index[i]] = take[i] * with_i / (total * size)
                for s in range(max(0, size - (n - i)), min(i, size - 1) + 1):
                    suffix[s] = skip[i] * suffix[s] + take[i] * suffix[s + 1]
                if size <= i:
                    suffix[size] *= skip[i]
    return value, gradient


@njit(cache=True, fastmath=REORDER_SUMS)
def _fill_tangents(
    skip: Array, take: Array, slope: Array, size: int, table: Array, tangent: Array
) -> float:  # pragma: no cover - compiled
    """Fill in the derivatives of the prefix sums along a direction; `slope` is that of `take`."""
    n = len(skip)
    tangent[0, 0] = 0.0
    for i in range(n):
        if i < size:
            tangent[i, i + 1] = 0.0
        fewest = size - (n - i - 1)
        if fewest <= 0:
            tangent[i + 1, 0] = skip[i] * tangent[i, 0]
        for s in range(max(1, fewest), min(i + 1, size) + 1):
            tangent[i + 1, s] = (
                skip[i] * tangent[i, s] + take[i] * tangent[i, s - 1] + slope[i] * table[i, s - 1]
            )
    return tangent[n, size]


@njit(cache=True, fastmath=REORDER_SUMS)
def curvature_product_array(
    scores: Array, members: NDArray[np.bool_], sizes: NDArray[np.int64], directions: Array
) -> Array:  # pragma: no cover - compiled
    """Return the sum of Hessians of log symmetric polynomials, each times its direction, (system,).

    `directions` are of shape (set, size, system); see :func:`log_symmetric`.
    """
    n_sets, n_systems = members.shape
    product = np.zeros(n_systems)
    table = np.empty((n_systems + 1, n_systems + 2))
    tangent = np.empty((n_systems + 1, n_systems + 2))
    suffix, suffix_tangent = np.empty(n_systems + 2), np.empty(n_systems + 2)
    skip, take = np.empty(n_systems), np.empty(n_systems)
    for g in range(n_sets):
        index = np.flatnonzero(members[g])
        n = len(index)
        own = scores[index]
        ranked = np.sort(own)[::-1]
        for k in range(len(sizes)):
            size = sizes[k]
            if size > n:
                continue
            _scale_factors(own, ranked, size, skip, take)
            slope = take[:n] * directions[g, k][index] / size
            total = _fill_prefixes(skip[:n], take[:n], size, table)
            change = _fill_tangents(skip[:n], take[:n], slope, size, table, tangent) / total
            suffix[:size] = 0.0
            suffix[size] = 1.0
            suffix_tangent[: size + 1] = 0.0
            for i in range(n - 1, -1, -1):
                with_i, moved = 0.0, 0.0
                for s in range(max(0, size - (n - i)), min(i, size - 1) + 1):
                    with_i += table[i, s] * suffix[s + 1]
                    moved += tangent[i, s] * suffix[s + 1] + table[i, s] * suffix_tangent[s + 1]
                chance = take[i] * with_i / total
                rise = (slope[i] * with_i + take[i] * moved) / total - chance * change
                product[index[i]] += rise / size
                for s in range(max(0, size - (n - i)), min(i, size - 1) + 1):
                    suffix_tangent[s] = (
                        skip[i] * suffix_tangent[s]
                        + take[i] * suffix_tangent[s + 1]
                        + slope[i] * suffix[s + 1]
                    )
                    suffix[s] = skip[i] * suffix[s] + take[i] * suffix[s + 1]
                if size <= i:
                    suffix[size] *= skip[i]
                    suffix_tangent[size] *= skip[i]
    return product


@njit(cache=True, fastmath=REORDER_SUMS)
def subset_array(
    uniforms: Array, scores: Array, members: NDArray[np.bool_], sizes: NDArray[np.int64]
) -> Array:  # pragma: no cover - compiled
    """Return the sets that uniform draws select; see :func:`draw_subsets`."""
    n_events, n_systems = members.shape
    chosen = np.zeros((n_events, n_systems))
    table = np.empty((n_systems + 1, n_systems + 2))
    skip, take = np.empty(n_systems), np.empty(n_systems)
    for e in range(n_events):
        index = np.flatnonzero(members[e])
        own = scores[index]
        left = sizes[e]
        _scale_factors(own, np.sort(own)[::-1], left, skip, take)
        _fill_prefixes(skip[: len(index)], take[: len(index)], left, table)
        # From the last member to the first: the prefix sums cover the choices of the other members.
        for i in range(len(index) - 1, -1, -1):
            if left == 0:
                break
            wins = take[i] * table[i, left - 1]
            if left > i or uniforms[e, index[i]] * table[i + 1, left] < wins:
                chosen[e, index[i]] = 1.0
                left -= 1
    return chosen


class LogSymmetric(ArrayOp):
    """Log symmetric polynomials of shape (set, size), and their gradients (set, size, system)."""

    function = log_symmetric_arrays
    gufunc_signature = "(l),(s,l),(t)->(s,t),(s,t,l)"
    dtypes = ("float64", "bool", "int64")

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Declare only the scores as differentiable."""
        return [[True, True], [False, False], [False, False]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Return the gradient with respect to the scores."""
        by_value, by_gradient = cotangents
        parts = []
        if not isinstance(by_value.type, DisconnectedType):
            parts.append((by_value[:, :, np.newaxis] * outputs[1]).sum(axis=(0, 1)))
        if not isinstance(by_gradient.type, DisconnectedType):
            parts.append(_CURVATURE_PRODUCT(*inputs, by_gradient))
        return [sum(parts), disconnected_type(), disconnected_type()]


class CurvatureProduct(ArrayOp):
    """Second derivatives of log symmetric polynomials, each times a direction, all summed."""

    function = curvature_product_array
    gufunc_signature = "(l),(s,l),(t),(s,t,l)->(l)"
    dtypes = ("float64", "bool", "int64", "float64")


class SubsetDraws(ArrayOp):
    """Sets of winners from uniform draws; a function without randomness of its own."""

    function = subset_array
    gufunc_signature = "(e,l),(l),(e,l),(e)->(e,l)"
    dtypes = ("float64", "float64", "bool", "int64")


_LOG_SYMMETRIC = LogSymmetric()
_CURVATURE_PRODUCT = CurvatureProduct()
_SUBSET_DRAWS = SubsetDraws()
