r"""Newton systems of chains that are bordered by a diagonal: random walks against questions.

The states of a system form a chain: its block :math:`T` is tridiagonal. Together with the diagonal
:math:`D` of the questions, whose weights are :math:`W`, and the border :math:`Q` between them,

.. math::

   \begin{pmatrix} T & -Q W \\ -W Q^\top & D \end{pmatrix} \begin{pmatrix} x \\ y \end{pmatrix}
   + \lambda \begin{pmatrix} 0 \\ u \end{pmatrix} = \begin{pmatrix} f \\ g \end{pmatrix},
   \qquad u^\top y = 0.

The longer side is eliminated and the Schur complement of the shorter one solved. A chain is
factored as :math:`T = R R^\top` with bidiagonal :math:`R`, state by state for all systems at once,
so that the complement needs :math:`R^{-1} Q` only, and no full inverse.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bayesrank.inference.fits.arrow import Arrow, solve_bordered
from bayesrank.inference.fits.penalty import Array

# A chain without data is singular along its level; only rounding is left of its last pivot.
_LEAST_PIVOT = 1e-14


@dataclass(frozen=True)
class Chains:
    """A batch of bordered chains.

    Attributes
    ----------
    states : numpy.ndarray of shape (resample, system, trial)
        Diagonal of T.
    links : numpy.ndarray of shape (trial - 1,)
        Minus the elements of T beside its diagonal, the same for all systems.
    border : numpy.ndarray of shape (resample, system, trial, question)
        Q; overwritten by :meth:`solve`.
    questions : numpy.ndarray of shape (resample, question)
        D.
    weights : numpy.ndarray of shape (resample, question)
        W.
    held : numpy.ndarray of shape (resample, question)
        u.
    """

    states: Array
    links: Array
    border: Array
    questions: Array
    weights: Array
    held: Array

    def solve(self, f: Array, g: Array) -> tuple[Array, Array]:
        """Solve the constrained system.

        Parameters
        ----------
        f : numpy.ndarray of shape (resample, system, trial)
            Right-hand side of the states.
        g : numpy.ndarray of shape (resample, question)
            Right-hand side of the questions.

        Returns
        -------
        tuple of numpy.ndarray
            x and y in the shapes of f and g; NaN where the matrix is singular.
        """
        n_systems, n_trials, n_questions = self.border.shape[1:]
        if n_questions > n_systems * n_trials:
            difficulty, states = self._arrow().solve(g, f.transpose(0, 2, 1))
            return states.transpose(0, 2, 1), difficulty
        factor = ChainFactor.of(self.states, self.links)
        f = factor.solve_lower(f[..., np.newaxis].copy())
        scaled = factor.solve_lower(self.border).reshape(len(f), -1, n_questions)
        transposed = scaled.transpose(0, 2, 1)
        matrix = transposed @ scaled  # of one array with itself: BLAS does half the work
        matrix *= -self.weights[:, :, np.newaxis]
        matrix *= self.weights[:, np.newaxis]
        matrix.reshape(len(f), -1)[:, :: n_questions + 1] += self.questions
        if n_questions == 1:
            # Its complement may be all rounding, and it is held whatever is added to it.
            matrix += self.questions[:, np.newaxis]
        flat = f.reshape(len(f), -1, 1)
        right = g + self.weights * (transposed @ flat)[:, :, 0]
        difficulty = solve_bordered(matrix, right, self.held)
        flat = flat + scaled @ (self.weights * difficulty)[:, :, np.newaxis]
        return factor.solve_upper(flat.reshape(len(f), n_systems, n_trials)), difficulty

    def dense(self) -> Array:
        """Return the matrices in full: questions first, then states, trial by trial."""
        return self._arrow().dense()

    def _arrow(self) -> Arrow:
        """Return the system with full blocks in the place of the chains."""
        batch, n_systems, n_trials, _ = self.border.shape
        blocks = np.zeros((batch, n_trials, n_trials, n_systems))
        trial = np.arange(n_trials)
        blocks[:, trial, trial] = self.states.transpose(0, 2, 1)
        links = self.links[:, np.newaxis]
        blocks[:, trial[1:], trial[:-1]] = blocks[:, trial[:-1], trial[1:]] = -links
        border = self.border.transpose(0, 3, 2, 1) * -self.weights[:, :, np.newaxis, np.newaxis]
        return Arrow(self.questions, blocks, border, on_diagonal=self.held)


@dataclass(frozen=True)
class ChainFactor:
    """Bidiagonal factors R of chains, T = R R'.

    Attributes
    ----------
    inverse : numpy.ndarray of shape (trial, resample, system)
        One over the diagonal of R.
    below : numpy.ndarray of shape (trial, resample, system)
        Its elements below the diagonal; the first is unused.
    """

    inverse: Array
    below: Array

    @classmethod
    def of(cls, states: Array, links: Array) -> Self:
        """Factor chains.

        Parameters
        ----------
        states : numpy.ndarray of shape (resample, system, trial)
            Diagonals.
        links : numpy.ndarray of shape (trial - 1,)
            Minus the elements beside them.

        Returns
        -------
        ChainFactor
        """
        diagonal = np.moveaxis(states, -1, 0)
        pivots = np.array(diagonal, order="C")
        # Square roots can wait: T = L D L' first, in a loop over trials.
        for trial, square in enumerate((links**2).tolist(), start=1):
            pivots[trial] -= square / pivots[trial - 1]
        inverse = 1.0 / np.sqrt(np.maximum(pivots, _LEAST_PIVOT * diagonal))
        below = np.zeros_like(inverse)
        below[1:] = -links[:, np.newaxis, np.newaxis] * inverse[:-1]
        return cls(inverse, below)

    def solve_lower(self, right: Array) -> Array:
        """Solve R x = b in place.

        Parameters
        ----------
        right : numpy.ndarray of shape (resample, system, trial, column)
            b; overwritten.

        Returns
        -------
        numpy.ndarray of shape (resample, system, trial, column)
        """
        rows = right.transpose(2, 0, 1, 3)
        inverse, below = self.inverse[..., np.newaxis], self.below[..., np.newaxis]
        rows[0] *= inverse[0]
        for trial in range(1, len(rows)):
            row = rows[trial]
            row -= below[trial] * rows[trial - 1]
            row *= inverse[trial]
        return right

    def solve_upper(self, right: Array) -> Array:
        """Solve R' x = b.

        Parameters
        ----------
        right : numpy.ndarray of shape (resample, system, trial)
            b.

        Returns
        -------
        numpy.ndarray of shape (resample, system, trial)
        """
        rows = np.moveaxis(right, -1, 0) * self.inverse
        share = self.below[1:] * self.inverse[:-1]
        for trial in range(len(rows) - 2, -1, -1):
            rows[trial] -= share[trial] * rows[trial + 1]
        return np.moveaxis(rows, 0, -1)
