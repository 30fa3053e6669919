"""Gaussians whose precision is bordered blocks: draws and Newton steps without the whole matrix."""

import numpy as np

from bayesrank.inference.fits.bordered import Bordered
from bayesrank.inference.fits.penalty import Array
from bayesrank.inference.fits.two_sided import joined, parted

# Share of the largest variance below which one is rounding.
_FLAT = 1e-12


class BlockGaussian:
    """A Gaussian of points of two sides, held to linear constraints, by one bordered precision.

    Its memory grows with the parameters of the longer side times those of the shorter one. The
    longer side is eliminated [1]_: the shorter one has the inverse of the Schur complement as its
    covariance, and given it the blocks of the longer side depend on each other through the extra
    rows alone.

    Parameters
    ----------
    matrix : Bordered
        Of one resample.

    References
    ----------
    .. [1] H. Rue and L. Held. Gaussian Markov Random Fields: Theory and Applications (2005).
       https://doi.org/10.1201/9780203492024
    """

    def __init__(self, matrix: Bordered) -> None:
        self._questions_first = matrix.vv[0, ..., 0].size >= matrix.uu[0, ..., 0].size
        if self._questions_first:
            blocks, others, cross = matrix.vv[0], matrix.uu[0], matrix.uv[0].transpose(2, 3, 0, 1)
            border, beside = matrix.on_v[0], matrix.on_u[0]
        else:
            blocks, others, cross = matrix.uu[0], matrix.vv[0], matrix.uv[0]
            border, beside = matrix.on_u[0], matrix.on_v[0]
        n, k = blocks.shape[:2]
        self._points, self._shape = matrix.uv.shape[1:], others.shape[:2]
        self._kept = kept = others[..., 0].size
        columns = np.concatenate([cross.reshape(n, k, kept), border.transpose(1, 2, 0)], axis=2)
        self._blocks, self._columns = blocks, columns
        self._solved = np.linalg.solve(blocks, columns)
        self._beside, self._corner = beside.reshape(-1, kept), matrix.corner[0]
        complement = -np.tensordot(columns, self._solved, ((0, 1), (0, 1)))
        for at, block in enumerate(others):
            each = slice(at * len(block), (at + 1) * len(block))
            complement[each, each] += block
        complement[kept:, :kept] += self._beside
        complement[:kept, kept:] += self._beside.T
        np.einsum("ii->i", complement)[kept:] += self._corner
        self._inverse = np.linalg.inv(complement)

    def steps(self, gradients: Array) -> Array:
        """Return the Newton steps that keep what is held, (step, p), for gradients (step, p)."""
        gu, gv = parted(gradients, self._points)
        first, other = (gv, gu) if self._questions_first else (gu, gv)
        alone = np.linalg.solve(self._blocks, first.transpose(1, 2, 0))
        right = -np.tensordot(self._columns, alone, ((0, 1), (0, 1)))
        right[: self._kept] += other.reshape(len(other), -1).T
        x = self._inverse @ right
        return self._join(alone - self._solved @ x, x[: self._kept].T)

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Draw deviations that keep what is held, of shape (draw, p).

        Raises
        ------
        numpy.linalg.LinAlgError
            If a block of the longer side is not positive definite.
        """
        kept = self._kept
        root = np.linalg.cholesky(self._blocks)
        columns = np.linalg.solve(root, self._columns)
        across, extra = columns[..., :kept], columns[..., kept:]
        x = rng.standard_normal((n_draws, kept)) @ _root(self._inverse[:kept, :kept])
        # What the extra rows do to the longer side, given the shorter one.
        inner = np.tensordot(extra, extra, ((0, 1), (0, 1)))
        through = np.linalg.pinv(inner - np.diag(self._corner), hermitian=True)
        right = (self._beside - np.tensordot(extra, across, ((0, 1), (0, 1)))) @ x.T
        whitened = rng.standard_normal((*extra.shape[:2], n_draws))
        basis, triangle = np.linalg.qr(extra.reshape(-1, extra.shape[2]))
        inside = basis.T @ whitened.reshape(len(basis), n_draws)
        left = np.eye(len(triangle)) - triangle @ through @ triangle.T
        whitened += (basis @ (_root(left) @ inside - inside)).reshape(whitened.shape)
        whitened -= across @ x.T + extra @ (through @ right)
        return self._join(np.linalg.solve(root.swapaxes(1, 2), whitened), x)

    def _join(self, first: Array, other: Array) -> Array:
        """Return points of the longer side, (block, coordinate, point), and of the other."""
        first, other = first.transpose(2, 0, 1), other.reshape(len(other), *self._shape)
        return joined(other, first) if self._questions_first else joined(first, other)


def _root(covariance: Array) -> Array:
    """Return the symmetric root of a matrix that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.where(values > _FLAT * values[-1], values, 0.0)
    return (vectors * np.sqrt(values)) @ vectors.T
