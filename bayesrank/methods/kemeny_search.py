"""All orders of least cost by bounded dynamic programming over sets of nodes in front.

An order is built from the front, and among orders with the same set of nodes in front only the
cheapest matters. A set is dropped if its cost plus a lower bound for the nodes behind it exceeds
the cost of a known order. The bound counts disjoint directed triangles of victories: every order
reverses one victory of each. Both bounds are close on real data, so few of the 2^n sets remain.
"""

import math
import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Largest number of sets; with more, the integer programme is better. 16 nodes have fewer sets than
# this, so the search always ends for them.
STATE_LIMIT = 100_000
_WORD_BITS = 64
# First bounds of the search, as shares of the way from the lower to the upper bound of the optimum.
# A search below the optimum finds nothing, but the lower its bound, the fewer sets it keeps.
_BOUND_SHARES = (0.0, 0.5, 0.75)


class Packing(NamedTuple):
    """Disjoint directed triangles of victories.

    Attributes
    ----------
    total : float
        Least cost of the triangles in any order.
    pairs : numpy.ndarray of uint64 and shape (triangle, word)
        The two other nodes of each triangle of each node.
    weight : numpy.ndarray of shape (triangle,)
        Its least cost.
    first : numpy.ndarray of int and shape (node + 1,)
        The first triangle of each node.
    """

    total: float
    pairs: NDArray[np.uint64]
    weight: FloatArray
    first: NDArray[np.int64]


class Layer(NamedTuple):
    """The sets of one size that may begin an optimum, see :mod:`bayesrank.methods.order_kernels`.

    Attributes
    ----------
    fronts : numpy.ndarray of uint64 and shape (set, word)
        Their nodes.
    so_far : numpy.ndarray of shape (set, 2)
        Their cost, over all pairs with at least one member in the set, and the least cost of the
        nodes behind.
    placing : numpy.ndarray of shape (set, node)
        Cost of placing each node next, before all others that remain.
    table : numpy.ndarray of int
        Hash table of the sets.
    """

    fronts: NDArray[np.uint64]
    so_far: FloatArray
    placing: FloatArray
    table: NDArray[np.int64]


class StateLimitError(Exception):
    """The search would keep too many sets."""


class Optima(NamedTuple):
    """The orders of least cost.

    Attributes
    ----------
    cost : float
        Their cost.
    order : list of int
        One of them: at every place the first possible node.
    can_precede : list of int
        For each node, as bits, the nodes that precede it in at least one of them.
    """

    cost: float
    order: list[int]
    can_precede: list[int]


def n_words(n_nodes: int) -> int:
    """Return how many 64-bit words a set of nodes takes."""
    return -(-n_nodes // _WORD_BITS)


def check_deadline(deadline: float) -> None:
    """Raise TimeoutError when the clock has passed the deadline."""
    if time.monotonic() > deadline:
        raise TimeoutError(
            "time_limit must be long enough to prove an order optimal; got no proof in time, so "
            "raise it or rank with another method"
        )


def all_optima(
    costs: FloatArray, *, deadline: float = math.inf, state_limit: int = STATE_LIMIT
) -> Optima:
    """Find the orders of least cost, where placing i before j costs ``costs[i, j]``.

    Parameters
    ----------
    costs : numpy.ndarray of shape (node, node)
        Non-negative, with a zero diagonal. Their sums must be exact, as for
        :func:`bayesrank.methods.preferences.preference_counts`, since costs are compared for
        equality.
    deadline : float, default infinity
        Time limit on the monotonic clock.
    state_limit : int, default 100,000
        Largest number of sets.

    Returns
    -------
    Optima

    Raises
    ------
    StateLimitError
        If more than `state_limit` sets remain.
    TimeoutError
        If the deadline passes.

    Examples
    --------
    >>> cycle = np.array([[0.0, 0.0, 2.0], [3.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> all_optima(cycle).order
    [2, 0, 1]
    """
    packing = _pack_triangles(costs)
    upper = _local_search(costs.tolist())
    for share in _BOUND_SHARES:
        bound = packing.total + share * (upper - packing.total)
        layers = _forward(costs, bound, packing, deadline, state_limit)
        if len(layers[-1].fronts):
            return _backward(costs, layers)
    return _backward(costs, _forward(costs, upper, packing, deadline, state_limit))


def order_exists(costs: FloatArray, at_most: float, *, deadline: float) -> bool:
    """Return whether some order costs at most the given amount.

    Parameters, limits and errors are those of :func:`all_optima`.

    Examples
    --------
    >>> cycle = np.array([[0.0, 0.0, 2.0], [3.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> order_exists(cycle, 0.5, deadline=np.inf), order_exists(cycle, 1.0, deadline=np.inf)
    (False, True)
    """
    packing = _pack_triangles(costs)
    return bool(len(_forward(costs, at_most, packing, deadline, STATE_LIMIT)[-1].fronts))


def _pack_triangles(costs: FloatArray) -> Packing:
    """Pack directed triangles of victories greedily.

    Every order reverses a victory of a packed triangle, and no victory is used beyond its margin.
    """
    margin = costs.T  # placing i before j costs the victory of j over i
    beats = margin > 0.0
    cycles = np.argwhere(beats[:, :, None] & beats[None, :, :] & beats.T[:, None, :])
    cycles = cycles[(cycles[:, 0] < cycles[:, 1]) & (cycles[:, 0] < cycles[:, 2])]
    edges = [(cycles[:, a], cycles[:, b]) for a, b in ((0, 1), (1, 2), (2, 0))]
    used = np.zeros(costs.shape)
    for edge in edges:
        np.add.at(used, edge, 1.0)
    # Triangles whose victories are in few other triangles go first, since they block the fewest.
    crowding = sum((used[edge] for edge in edges), start=np.zeros(len(cycles)))
    left = margin.tolist()
    packed = []
    for i, j, k in cycles[np.argsort(crowding, kind="stable")].tolist():
        weight = min(left[i][j], left[j][k], left[k][i])
        if weight > 0.0:
            packed.append((i, j, k, weight))
            for node, follower in ((i, j), (j, k), (k, i)):
                left[node][follower] -= weight
    nodes = np.array([corners[:3] for corners in packed], dtype=np.int64).reshape(-1, 3)
    weights = np.array([corners[3] for corners in packed])
    # Every triangle is listed with each of its nodes.
    corner = nodes.T.ravel()
    others = np.concatenate([nodes[:, [1, 2]], nodes[:, [2, 0]], nodes[:, [0, 1]]])
    order = np.argsort(corner, kind="stable")
    pairs = np.zeros((len(corner), n_words(len(costs))), dtype=np.uint64)
    for other in others.T:
        bit = np.uint64(1) << (other % _WORD_BITS).astype(np.uint64)
        pairs[np.arange(len(corner)), other // _WORD_BITS] |= bit
    first = np.searchsorted(corner[order], np.arange(len(costs) + 1))
    return Packing(float(weights.sum()), pairs[order], np.tile(weights, 3)[order], first)


def _forward(
    costs: FloatArray, bound: float, packing: Packing, deadline: float, state_limit: int
) -> list[Layer]:
    """Return, for each number of nodes in front, the sets that may begin an optimum."""
    # Imported here and below, since Numba takes longer to load than most rankers run.
    from bayesrank.methods.order_kernels import grow_layer

    n = len(costs)
    layer = Layer(
        np.zeros((1, n_words(n)), dtype=np.uint64),
        np.array([[0.0, packing.total]]),
        costs.sum(axis=1)[np.newaxis],
        np.zeros(16, dtype=np.int64),
    )
    layers = [layer]
    n_states = 0
    for _ in range(n):
        check_deadline(deadline)
        layer = Layer(
            *grow_layer(
                costs,
                bound,
                packing.pairs,
                packing.weight,
                packing.first,
                layer.fronts,
                layer.so_far,
                layer.placing,
                state_limit - n_states,
            )
        )
        n_states += len(layer.fronts)
        if n_states > state_limit:
            raise StateLimitError
        layers.append(layer)
    return layers


def _backward(costs: FloatArray, layers: list[Layer]) -> Optima:
    """Follow the cheapest paths back from the full set and collect their common pairs."""
    from bayesrank.methods.order_kernels import as_integers, mark_optimal

    n = len(costs)
    precede = np.zeros((n, n_words(n)), dtype=np.uint64)
    optimal = np.ones(1, dtype=np.bool_)  # the full set
    choices = []
    for layer, following in zip(layers[-2::-1], layers[:0:-1], strict=True):
        optimal, choice = mark_optimal(
            costs,
            layer.fronts,
            layer.so_far,
            following.fronts,
            following.so_far,
            following.table,
            optimal,
            precede,
        )
        choices.append(choice)
    order: list[int] = []
    front = 0
    for choice in reversed(choices):
        node, front = choice[front].tolist()
        order.append(node)
    return Optima(float(layers[-1].so_far[0, 0]), order, as_integers(precede))


def _local_search(cost: list[list[float]]) -> float:
    """Return the cost of a good order: by net cost, then moving single nodes while it pays."""
    n = len(cost)
    order = sorted(range(n), key=lambda i: sum(cost[i][j] - cost[j][i] for j in range(n)))
    improved = True
    while improved:
        improved = False
        for node in list(order):
            place = order.index(node)
            rest = order[:place] + order[place + 1 :]
            change, best_change, best_place = 0.0, 0.0, place
            for new_place in range(place - 1, -1, -1):
                other = rest[new_place]
                change += cost[node][other] - cost[other][node]
                if change < best_change:
                    best_change, best_place = change, new_place
            change = 0.0
            for new_place in range(place + 1, n):
                other = rest[new_place - 1]
                change += cost[other][node] - cost[node][other]
                if change < best_change:
                    best_change, best_place = change, new_place
            if best_place != place:
                rest.insert(best_place, node)
                order = rest
                improved = True
    return sum(cost[i][j] for place, i in enumerate(order) for j in order[place + 1 :])
