"""Which nodes of a graph of victories can be reached from which."""

import numpy as np

from bayesrank.connectivity import reachable


def test_reachable_follows_chains_of_edges():
    edges = np.zeros((2, 9, 9), dtype=bool)
    edges[0, np.arange(8), np.arange(1, 9)] = True
    edges[1] = edges[0]
    edges[1, 8, 0] = True
    expected = np.stack([np.triu(np.ones((9, 9), dtype=bool)), np.ones((9, 9), dtype=bool)])
    np.testing.assert_array_equal(reachable(edges), expected)
