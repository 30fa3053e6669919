r"""Newton systems with an arrow shape: one diagonal block, one block-diagonal block, a full border.

Item response models have them: abilities interact with questions, but not with each other. With
:math:`A` diagonal and :math:`B` of small blocks, the system is

.. math::

   \begin{pmatrix} A & C \\ C^\top & B \end{pmatrix} \begin{pmatrix} x \\ y \end{pmatrix}
   + \lambda \begin{pmatrix} u \\ v \end{pmatrix} = \begin{pmatrix} f \\ g \end{pmatrix},
   \qquad u^\top x + v^\top y = 0,

where the constraint lies on one side. The longer side is eliminated and the Schur complement of the
shorter one solved.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_TINY = 1e-300
_LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class Arrow:
    """A batch of arrow-shaped symmetric matrices with a constraint on one side.

    Attributes
    ----------
    diagonal : numpy.ndarray of shape (resample, short)
        A.
    blocks : numpy.ndarray of shape (resample, k, k, group)
        B, one symmetric block per group.
    border : numpy.ndarray of shape (resample, short, k, group)
        C.
    on_diagonal : numpy.ndarray of shape (resample, short), or None
        u, the constraint on the diagonal side.
    on_blocks : numpy.ndarray of shape (resample, k, group), or None
        v, the constraint on the block side. One of the two at most.
    """

    diagonal: Array
    blocks: Array
    border: Array
    on_diagonal: Array | None = None
    on_blocks: Array | None = None

    def solve(self, diagonal_side: Array, block_side: Array) -> tuple[Array, Array]:
        """Solve the constrained system.

        Parameters
        ----------
        diagonal_side : numpy.ndarray of shape (resample, short)
            f.
        block_side : numpy.ndarray of shape (resample, k, group)
            g.

        Returns
        -------
        tuple of numpy.ndarray
            x and y in the shapes of f and g; NaN where the matrix is singular.
        """
        if self.diagonal.shape[-1] <= block_side[0].size:
            return self._without_blocks(diagonal_side, block_side)
        return self._without_diagonal(diagonal_side, block_side)

    def take(self, index: NDArray[np.intp]) -> "Arrow":
        """Return the matrices of some resamples: themselves, where these are all."""
        if len(index) == len(self.diagonal):
            return self
        return Arrow(
            self.diagonal[index],
            self.blocks[index],
            self.border[index],
            on_diagonal=None if self.on_diagonal is None else self.on_diagonal[index],
            on_blocks=None if self.on_blocks is None else self.on_blocks[index],
        )

    def damped(self, shares: Array, reference: "Arrow") -> "Arrow":
        """Return the matrices with shares of a reference's diagonals added to theirs."""
        each = shares[:, np.newaxis]
        blocks = self.blocks.copy()
        for row in range(blocks.shape[1]):
            blocks[:, row, row] += each * _floored(reference.blocks[:, row, row])
        diagonal = self.diagonal + each * _floored(reference.diagonal)
        return replace(self, diagonal=diagonal, blocks=blocks)

    def dense(self) -> Array:
        """Return the matrices in full, of shape (resample, short + k group, short + k group).

        The block side is ordered coordinate by coordinate: all groups' first, then their second.
        """
        batch, short, k, groups = self.border.shape
        full = np.zeros((batch, short + k * groups, short + k * groups))
        full.reshape(batch, -1)[:, : short * full.shape[-1] : full.shape[-1] + 1] = self.diagonal
        border = self.border.reshape(batch, short, k * groups)
        full[:, :short, short:] = border
        full[:, short:, :short] = border.transpose(0, 2, 1)
        group = short + np.arange(groups)
        for row, column in np.ndindex(k, k):
            full[:, row * groups + group, column * groups + group] = self.blocks[:, row, column]
        return full

    def _without_blocks(self, f: Array, g: Array) -> tuple[Array, Array]:
        """Eliminate the block side."""
        batch, short, k, groups = self.border.shape
        inverse = inverse_blocks(self.blocks)
        flat = self.border.reshape(batch, short, k * groups)
        scaled = blocks_times(self.border, inverse).reshape(batch, short, k * groups)
        matrix = -(scaled @ flat.transpose(0, 2, 1))
        matrix.reshape(batch, -1)[:, :: short + 1] += self.diagonal
        right = f - (scaled @ g.reshape(batch, -1, 1))[:, :, 0]
        held = _Held(None)
        if self.on_blocks is not None:
            held = _Held(self.on_blocks.reshape(batch, -1))
            weighted = blocks_times(self.on_blocks[:, None], inverse).reshape(batch, -1)
            held.enter(matrix, right, -(flat @ weighted[:, :, None])[:, :, 0], weighted, g)
        x = solve_bordered(matrix, right, self.on_diagonal)
        inner = g - (x[:, None, :] @ flat).reshape(batch, k, groups)
        y = held.project(blocks_times(inner[:, None], inverse).reshape(batch, -1))
        return x, y.reshape(batch, k, groups)

    def _without_diagonal(self, f: Array, g: Array) -> tuple[Array, Array]:
        """Eliminate the diagonal side."""
        batch, short, k, groups = self.border.shape
        flat = self.border.reshape(batch, short, k * groups)
        inverse = 1.0 / self.diagonal
        scaled = flat * inverse[:, :, None]
        matrix = -(scaled.transpose(0, 2, 1) @ flat)
        group = np.arange(groups)
        for row, column in np.ndindex(k, k):
            matrix[:, row * groups + group, column * groups + group] += self.blocks[:, row, column]
        right = g.reshape(batch, -1) - (f[:, None, :] @ scaled)[:, 0]
        held = _Held(self.on_diagonal)
        if self.on_diagonal is not None:
            weighted = self.on_diagonal * inverse
            held.enter(matrix, right, -(weighted[:, None, :] @ flat)[:, 0], weighted, f)
        on_blocks = None if self.on_blocks is None else self.on_blocks.reshape(batch, -1)
        y = solve_bordered(matrix, right, on_blocks)
        x = held.project((f - (flat @ y[:, :, None])[:, :, 0]) * inverse)
        return x, y.reshape(batch, k, groups)


def _floored(diagonal: Array) -> Array:
    """Keep parameters of next to no curvature from going anywhere."""
    return np.maximum(diagonal, _LEAST_SHARE * diagonal.mean(axis=-1, keepdims=True))


class _Held:
    """A constraint on the side that is eliminated.

    With the eliminated side solved for a given multiplier, the constraint gives the multiplier in
    terms of the side that is kept, which adds a rank-one term there.
    """

    def __init__(self, vector: Array | None) -> None:
        self.vector = np.zeros((1, 1)) if vector is None else vector
        self.present = vector is not None

    def enter(
        self, matrix: Array, right: Array, along: Array, weighted: Array, given: Array
    ) -> None:
        """Add the rank-one term to the system of the side that is kept, in place."""
        self.weighted = weighted
        strength = (self.vector * weighted).sum(axis=-1, keepdims=True)
        self.strength = np.where(strength == 0.0, _TINY, strength)
        share = along / self.strength
        matrix += share[:, :, None] * along[:, None, :]
        right -= share * (weighted * given.reshape(weighted.shape)).sum(axis=-1, keepdims=True)

    def project(self, solution: Array) -> Array:
        """Return the eliminated side with the constraint met."""
        if not self.present:
            return solution
        excess = (self.vector * solution).sum(axis=-1, keepdims=True) / self.strength
        return solution - excess * self.weighted


def solve_bordered(matrix: Array, right: Array, constraint: Array | None) -> Array:
    """Solve symmetric systems, optionally held to one linear constraint.

    Parameters
    ----------
    matrix : numpy.ndarray of shape (resample, p, p)
        Matrices, which may be singular across the constraint; overwritten.
    right : numpy.ndarray of shape (resample, p)
        Right-hand sides.
    constraint : numpy.ndarray of shape (resample, p), or None
        The vector whose product with the solution must vanish.

    Returns
    -------
    numpy.ndarray of shape (resample, p)
        NaN where a matrix is singular.

    Examples
    --------
    >>> singular = np.array([[[1.0, -1.0], [-1.0, 1.0]]])
    >>> solve_bordered(singular, np.array([[1.0, -1.0]]), np.ones((1, 2)))
    array([[ 0.5, -0.5]])
    """
    if constraint is None:
        return solve_or_nan(matrix, right[:, :, None])[:, :, 0]
    # Any multiple of the constraint's outer product leaves the constrained solution alone; one of
    # the diagonal's size keeps the matrix well conditioned.
    size = np.abs(np.einsum("bii->bi", matrix)).max(axis=-1)
    weight = size / np.maximum((constraint**2).sum(axis=-1), 1e-300)
    matrix += (weight[:, None] * constraint)[:, :, None] * constraint[:, None, :]
    both = solve_or_nan(matrix, np.stack([right, constraint], axis=-1))
    solution, spread = both[:, :, 0], both[:, :, 1]
    across = (constraint * spread).sum(axis=-1)
    share = (constraint * solution).sum(axis=-1) / (across + (across == 0.0))
    return solution - share[:, None] * spread


def solve_or_nan(matrix: Array, right: Array) -> Array:
    """Solve a batch of linear systems; singular ones become NaN and leave the others alone.

    Parameters
    ----------
    matrix : numpy.ndarray of shape (resample, p, p)
        Matrices.
    right : numpy.ndarray of shape (resample, p, column)
        Right-hand sides.

    Returns
    -------
    numpy.ndarray of shape (resample, p, column)
    """
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.stack([one_or_nan(*pair) for pair in zip(matrix, right, strict=True)])


def one_or_nan(matrix: Array, right: Array) -> Array:
    """Solve one linear system; NaN where it is singular.

    Parameters
    ----------
    matrix : numpy.ndarray of shape (p, p)
        Matrix.
    right : numpy.ndarray of shape (p,) or (p, column)
        Right-hand side.

    Returns
    -------
    numpy.ndarray of the shape of `right`
    """
    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)


def inverse_blocks(blocks: Array) -> Array:
    """Invert small symmetric blocks, in closed form up to two by two.

    Parameters
    ----------
    blocks : numpy.ndarray of shape (resample, k, k, group)
        The blocks.

    Returns
    -------
    numpy.ndarray of shape (resample, k, k, group)
        NaN or infinite where a block is singular.

    Examples
    --------
    >>> inverse_blocks(np.diag([2.0, 4.0]).reshape(1, 2, 2, 1)).ravel()
    array([ 0.5 , -0.  , -0.  ,  0.25])
    """
    k = blocks.shape[1]
    if k == 1:
        return 1.0 / blocks
    if k > 2:
        return np.moveaxis(_inverses(np.moveaxis(blocks, -1, 1)), 1, -1)
    a, b, d = blocks[:, 0, 0], blocks[:, 0, 1], blocks[:, 1, 1]
    inverse = np.empty_like(blocks)
    determinant = a * d - b * b
    inverse[:, 0, 0] = d / determinant
    inverse[:, 1, 1] = a / determinant
    inverse[:, 0, 1] = inverse[:, 1, 0] = -b / determinant
    return inverse


def blocks_times(vectors: Array, blocks: Array) -> Array:
    """Multiply the vector of every group by its symmetric block.

    Parameters
    ----------
    vectors : numpy.ndarray of shape (resample, row, k, group)
        One vector per row and group.
    blocks : numpy.ndarray of shape (resample, k, k, group)
        Symmetric blocks.

    Returns
    -------
    numpy.ndarray of shape (resample, row, k, group)
    """
    k = blocks.shape[1]
    product = vectors[:, :, :1] * blocks[:, None, 0]
    for row in range(1, k):
        product += vectors[:, :, row : row + 1] * blocks[:, None, row]
    return product


def _inverses(matrices: Array) -> Array:
    """Invert matrices, NaN for singular ones, which NumPy refuses together with all others."""
    try:
        return np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        regular = np.linalg.slogdet(matrices).sign != 0.0
        inverse = np.full_like(matrices, np.nan)
        inverse[regular] = np.linalg.inv(matrices[regular])
        return inverse
