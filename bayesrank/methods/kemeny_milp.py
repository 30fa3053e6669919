"""Orders of least cost by integer programming, for problems too large for the search."""

import math
import time
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from bayesrank.methods.kemeny_search import Optima, check_deadline

FloatArray = NDArray[np.float64]

# Ten times the tolerance of HiGHS: smaller differences in cost, relative to the largest entry,
# count as ties.
_RESOLUTION = 1e-5


def all_optima_by_milp(costs: FloatArray, *, deadline: float) -> Optima:
    """Find the pairs common to all orders of least cost by a few integer programmes.

    The first finds one optimum. Each later one, constrained to the same cost, reverses the largest
    possible number of pairs common to all optima so far. When none can be reversed, these pairs are
    common to all optima.

    Parameters
    ----------
    costs : numpy.ndarray of shape (node, node)
        Cost of placing i before j; non-negative with a zero diagonal. Costs of orders that
        differ by less than 1e-5 of the largest entry count as equal, unless all are whole numbers.
    deadline : float
        Time limit on the monotonic clock.

    Returns
    -------
    Optima

    Raises
    ------
    TimeoutError
        If the deadline passes.

    Examples
    --------
    >>> cycle = np.array([[0.0, 0.0, 2.0], [3.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> all_optima_by_milp(cycle, deadline=np.inf).order
    [2, 0, 1]
    """
    n = len(costs)
    whole = bool((costs == np.rint(costs)).all())
    unit = float(costs.max()) or 1.0
    exact, costs = costs, costs / unit  # HiGHS works with absolute tolerances
    first, second = np.triu_indices(n, 1)
    # The variable of a pair is 1 when its first node precedes, which adds this to the cost.
    extra = costs[first, second] - costs[second, first]
    triangles = _triangle_constraints(n)
    x = _solve(extra, [triangles], deadline)
    order = _as_order(x, n)
    least, slack = _cost(order, costs), 0.5 / unit if whole else _RESOLUTION
    held = LinearConstraint(extra[None, :], ub=float(extra @ x) + slack)
    precedes, grown = _relation(order), True
    while grown:
        ahead, behind = precedes[first, second], precedes[second, first]
        # Minimising this reverses pairs that had the same order in all optima so far.
        turn = ahead.astype(np.float64) - behind
        found = _as_order(_solve(turn, [triangles, held], deadline), n)
        relation = _relation(found)
        grown = _cost(found, costs) <= least + slack and bool((relation & ~precedes).any())
        if grown:
            precedes |= relation
    can_precede = [sum(1 << int(j) for j in np.flatnonzero(precedes[:, i])) for i in range(n)]
    return Optima(_cost(order, exact), order, can_precede)


def _triangle_constraints(n: int) -> LinearConstraint:
    """Forbid both directed cycles of every three nodes: 0 <= x_ij + x_jk - x_ik <= 1."""
    index = np.zeros((n, n), dtype=np.int64)
    index[np.triu_indices(n, 1)] = np.arange(n * (n - 1) // 2)
    triples = np.array(list(combinations(range(n), 3)), dtype=np.int64).reshape(-1, 3)
    i, j, k = triples.T
    rows = np.tile(np.arange(len(triples)), 3)
    columns = np.concatenate([index[i, j], index[j, k], index[i, k]])
    signs = np.repeat([1.0, 1.0, -1.0], len(triples))
    matrix = csr_array((signs, (rows, columns)), shape=(len(triples), n * (n - 1) // 2))
    return LinearConstraint(matrix, lb=0.0, ub=1.0)


def _solve(
    objective: FloatArray, constraints: list[LinearConstraint], deadline: float
) -> FloatArray:
    """Return the 0/1 solution of least objective, proven optimal."""
    check_deadline(deadline)
    options = {"mip_rel_gap": 0.0}
    if math.isfinite(deadline):
        options["time_limit"] = deadline - time.monotonic()
    result = milp(
        objective,
        integrality=np.ones(objective.size),
        bounds=Bounds(0.0, 1.0),
        constraints=constraints,
        options=options,
    )
    if result.status == 1:
        check_deadline(-math.inf)
    if result.status != 0:
        raise RuntimeError(f"the integer programme must be solved; HiGHS says: {result.message}")
    return np.rint(result.x)


def _as_order(x: FloatArray, n: int) -> list[int]:
    """Turn pair variables into an order, by the number of nodes that each node precedes."""
    precedes = np.zeros((n, n))
    precedes[np.triu_indices(n, 1)] = x
    precedes += np.tril(1.0 - precedes.T, -1)
    behind = precedes.sum(axis=1)
    order = np.argsort(-behind)
    if (behind[order] != np.arange(n - 1, -1, -1)).any():
        raise RuntimeError("the integer programme must return an order; got a cycle")
    return [int(node) for node in order]


def _relation(order: list[int]) -> NDArray[np.bool_]:
    """Return which node precedes which in an order."""
    place = np.argsort(order)
    return place[:, None] < place[None, :]


def _cost(order: list[int], costs: FloatArray) -> float:
    """Return the cost of an order."""
    return float(np.triu(costs[np.ix_(order, order)], 1).sum())
