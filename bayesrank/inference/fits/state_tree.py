r"""Gaussian steps of scores along a tree of states, and systems of equations on it.

The scores of a state are those of its parent plus independent normal steps; those of the root have
a normal prior. Groups are the children of one root, periods a chain. The information is block by
block: a matrix for each state, multiples of the identity between a state and its parent, and a
border of parameters that all states share. Elimination from the leaves to the root, then of the
border, solves it in the time of one dense matrix for each state.

References
----------
.. [1] H. Rue and L. Held. Gaussian Markov Random Fields: Theory and Applications. Chapman and Hall
   (2005). https://doi.org/10.1201/9780203492024
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class StateTree:
    """How scores step from state to state.

    `parent`, of int and shape (state,), is the state before each, a lower number; -1 for the root,
    which is the first.
    """

    parent: NDArray[np.intp]

    @classmethod
    def star(cls, n_leaves: int) -> Self:
        """Return a root with equal children."""
        return cls(np.append(-1, np.zeros(n_leaves, dtype=np.intp)))

    @classmethod
    def chain(cls, n_states: int) -> Self:
        """Return a walk."""
        return cls(np.arange(-1, n_states - 1))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.parent)

    def precisions(self, scale: float, root: float) -> Array:
        """Return the precision of each step, for a scale of steps; first that of the root."""
        return np.append(root, np.full(self.n_states - 1, 1.0 / scale**2))

    def matrix(self, precisions: Array) -> Array:
        """Return the precision matrix of the states of one system, of shape (state, state)."""
        found = np.diag(precisions)
        for state in range(1, self.n_states):
            before, precision = self.parent[state], precisions[state]
            found[before, before] += precision
            found[before, state] = found[state, before] = -precision
        return found


@dataclass(frozen=True)
class BlockTree:
    """A positive definite matrix along a tree of states, factored.

    Scores sum to zero in every state: what blocks say along their sum, to which `anchors` of shape
    (state,) are added, is only what keeps them regular. As states are eliminated, blocks have the
    Cholesky factors `root` and the inverses `inverse`, of shape (state, system, system), and the
    border is `border`, (state, system, shared); `corner` is the Cholesky factor of what is left.
    """

    tree: StateTree
    precisions: Array
    inverse: Array
    root: Array
    border: Array
    corner: Array
    anchors: Array

    @classmethod
    def factor(
        cls, tree: StateTree, precisions: Array, blocks: Array, border: Array, corner: Array
    ) -> Self:
        """Factor the information of the likelihood and the precision of the steps.

        `blocks`, of shape (state, system, system), are the information of the likelihood on the
        scores of each state, `border`, (state, system, shared), that across scores and shared
        parameters, and `corner`, (shared, shared), that on these, with their prior.
        """
        from scipy.linalg import cho_solve  # other fits of pairs do not need SciPy

        n = blocks.shape[1]
        own = np.diag(tree.matrix(precisions))
        anchors = np.einsum("sii->s", blocks) / n + own
        blocks = blocks + own[:, np.newaxis, np.newaxis] * np.eye(n)
        blocks += (anchors / n)[:, np.newaxis, np.newaxis]
        border, corner = border.copy(), corner.copy()
        inverse, root = np.empty_like(blocks), np.empty_like(blocks)
        for state in range(tree.n_states - 1, -1, -1):
            root[state] = np.linalg.cholesky(blocks[state])
            inverse[state] = cho_solve((root[state], True), np.eye(n))
            told = inverse[state] @ border[state]
            corner -= border[state].T @ told
            if state:
                before, step = tree.parent[state], precisions[state]
                blocks[before] -= step**2 * inverse[state]
                border[before] += step * told
        return cls(tree, precisions, inverse, root, border, np.linalg.cholesky(corner), anchors)

    def solve(self, scores: Array, shared: Array) -> tuple[Array, Array]:
        """Solve for right sides, of shape (state, system, ...) and (shared, ...)."""
        scores, shared = scores.copy(), shared.copy()
        for state in range(self.tree.n_states - 1, -1, -1):
            scores[state] = self.inverse[state] @ scores[state]
            shared -= self.border[state].T @ scores[state]
            if state:
                scores[self.tree.parent[state]] += self.precisions[state] * scores[state]
        if len(shared):
            shared = np.linalg.solve(self.corner.T, np.linalg.solve(self.corner, shared))
        return self._from_root(scores, shared), shared

    def _from_root(self, own: Array, shared: Array) -> Array:
        """Add to scores what shared parameters and the states before them make of them."""
        found = np.empty_like(own)
        for state in range(self.tree.n_states):
            rest = -self.border[state] @ shared
            if state:
                rest += self.precisions[state] * found[self.tree.parent[state]]
            found[state] = own[state] + self.inverse[state] @ rest
        return found - found.mean(axis=1, keepdims=True)

    def draw(self, n_draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw from the Gaussian with this precision, (draw, state, system) and (draw, shared)."""
        from scipy.linalg import solve_triangular

        n_states, n, k = self.border.shape
        shared = np.zeros((k, n_draws))
        if k:
            shared = np.linalg.solve(self.corner.T, rng.standard_normal((k, n_draws)))
        own = rng.standard_normal((n_states, n, n_draws))
        for state, root in enumerate(self.root):
            own[state] = solve_triangular(root, own[state], lower=True, trans=1)
        return np.moveaxis(self._from_root(own, shared), -1, 0), shared.T

    @property
    def log_determinant(self) -> float:
        """Of the matrix on scores that sum to zero in every state."""
        roots = np.log(np.einsum("sii->si", self.root)).sum()
        whole = 2.0 * (roots + np.log(np.diag(self.corner)).sum())
        sums = self.tree.matrix(self.precisions) + np.diag(self.anchors)
        return float(whole - np.linalg.slogdet(sums)[1])
