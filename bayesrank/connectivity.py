"""Strong connectivity of win graphs, in plain NumPy and batched."""

import numpy as np
from numpy.typing import NDArray


def reachable(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which nodes can be reached from which: the reflexive transitive closure.

    ``edges[..., i, j]`` says that there is an edge from i to j.

    Examples
    --------
    >>> reachable(np.array([[False, True], [False, False]]))
    array([[ True,  True],
           [False,  True]])
    """
    size = edges.shape[-1]
    closure = edges | np.eye(size, dtype=bool)
    length = 1
    while length < size - 1:
        # float32 so that BLAS does the work; counts of paths up to 2**24 are exact, and more than
        # that is still positive.
        steps = closure.astype(np.float32)
        closure = (steps @ steps) > 0.0
        length *= 2
    return closure


def strongly_connected(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say which graphs of edges (..., node, node) are strongly connected; the diagonal is ignored.

    Examples
    --------
    >>> cycle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    >>> bool(strongly_connected(cycle))
    True
    """
    size = edges.shape[-1]
    lead = edges.shape[:-2]
    cells = np.array(edges).reshape(-1, size**2)
    cells[:, :: size + 1] = True
    connected = cells.all(axis=-1)  # every edge present: nothing to search
    rest = np.flatnonzero(~connected)
    if rest.size:
        # float32 so that BLAS does the work; counts of paths are only asked whether they are 0.
        some = cells[rest].reshape(-1, size, size).astype(np.float32)
        connected[rest] = _root_reaches_all(some) & _root_reaches_all(some.transpose(0, 2, 1))
    return connected.reshape(lead)


def linked_both_ways(right: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say which graphs between systems and questions are strongly connected.

    `right` and `wrong`, (..., system, question), say whether the system was ever right, and ever
    wrong: edges to and from the question. A question that no system was right on, or none wrong, is
    left out.

    Examples
    --------
    >>> right = np.array([[True, False], [True, True]])
    >>> bool(linked_both_ways(right, ~right))
    False
    """
    lead, shape = right.shape[:-2], right.shape[-2:]
    flat_right, flat_wrong = right.reshape(-1, *shape), wrong.reshape(-1, *shape)
    # One question on which every system was both right and wrong links all the systems, and every
    # question that is kept links to them both ways.
    linked = (flat_right & flat_wrong).all(axis=-2).any(axis=-1)
    if linked.all():
        return linked.reshape(lead)
    keep = flat_right.any(axis=-2) & flat_wrong.any(axis=-2)
    rest = np.flatnonzero(~linked & keep.any(axis=-1))
    if rest.size:
        left_out = ~keep[rest]
        wins = (flat_right[rest] & ~left_out[:, None, :]).astype(np.float32)
        losses = (flat_wrong[rest] & ~left_out[:, None, :]).astype(np.float32)
        linked[rest] = _covers(wins, losses, left_out) & _covers(losses, wins, left_out)
    return linked.reshape(lead)


def _root_reaches_all(graphs: NDArray[np.float32]) -> NDArray[np.bool_]:
    seen = np.zeros(graphs.shape[:2], dtype=bool)
    seen[:, 0] = True
    while True:
        grown = seen | (_follow(seen, graphs) > 0.0)
        if (grown == seen).all():
            return grown.all(axis=-1)
        seen = grown


def _covers(
    out: NDArray[np.float32], back: NDArray[np.float32], left_out: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Say whether the first system reaches all, over `out` to questions and `back` to systems."""
    systems = np.zeros(out.shape[:2], dtype=bool)
    systems[:, 0] = True
    questions = left_out
    while True:
        more = questions | (_follow(systems, out) > 0.0)
        grown = systems | (_follow(more & ~left_out, back.transpose(0, 2, 1)) > 0.0)
        if (grown == systems).all() and (more == questions).all():
            return grown.all(axis=-1) & more.all(axis=-1)
        systems, questions = grown, more


def _follow(seen: NDArray[np.bool_], graphs: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.matmul(seen[:, None, :].astype(np.float32), graphs)[:, 0]
