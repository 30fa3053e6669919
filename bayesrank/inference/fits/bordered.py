"""Negative Hessians of systems against questions: solved, damped and judged block by block."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.fits.linear_systems import solve_or_nan
from bayesrank.inference.fits.penalty import Array

_LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class Bordered:
    """A batch of negative Hessians of both sides, with further rows that border them.

    Attributes
    ----------
    uu, vv, uv : numpy.ndarray
        As in :class:`Expansion`.
    on_u : numpy.ndarray of shape (resample, extra, system, a)
    on_v : numpy.ndarray of shape (resample, extra, question, b)
        The further rows: columns that couple questions, and what is held.
    corner : numpy.ndarray of shape (resample, extra)
        Their diagonal: 0 for what is held, minus the sign of a coupling.
    """

    uu: Array
    vv: Array
    uv: Array
    on_u: Array
    on_v: Array
    corner: Array

    def take(self, index: NDArray[np.intp]) -> Self:
        """Return the matrices of some resamples: themselves, where these are all."""
        if len(index) == len(self.uu):
            return self
        parts = (self.uu, self.vv, self.uv, self.on_u, self.on_v, self.corner)
        return type(self)(*(part[index] for part in parts))

    def damped(self, shares: Array, safe_uu: Array, safe_vv: Array) -> Self:
        """Return the matrices with shares of the diagonals of safe blocks added to theirs."""
        uu, vv = self.uu.copy(), self.vv.copy()
        for blocks, safe in ((uu, safe_uu), (vv, safe_vv)):
            diagonal = np.einsum("bnkk->bnk", safe)
            least = _LEAST_SHARE * diagonal.mean(axis=1, keepdims=True)
            added = shares[:, np.newaxis, np.newaxis] * np.maximum(diagonal, least)
            np.einsum("bnkk->bnk", blocks)[...] += added
        return replace(self, uu=uu, vv=vv)

    def solve(self, gu: Array, gv: Array) -> tuple[Array, Array]:
        """Return the steps of both sides that keep what is held; NaN where singular."""
        questions_first = gv.size >= gu.size
        first, other = (gv, gu) if questions_first else (gu, gv)
        back, complement = self._eliminate(first, other, questions_first=questions_first)
        x = solve_or_nan(complement[:, :, :-1], complement[:, :, -1:])
        step, beside = back(x[:, np.newaxis]), x[:, : other[0].size, 0].reshape(other.shape)
        return (beside, step) if questions_first else (step, beside)

    def definite(self) -> NDArray[np.bool_]:
        """Say which matrices are positive definite along what is not held, (resample,).

        By the signs of the eigenvalues of blocks and Schur complement, which add up to those of
        the whole (Haynsworth): each row that is held has one negative one, and couplings their own.
        """
        gu, gv = np.zeros(self.uu.shape[:-1]), np.zeros(self.vv.shape[:-1])
        questions_first = gv.size >= gu.size
        first, other = (gv, gu) if questions_first else (gu, gv)
        complement = self._eliminate(first, other, questions_first=questions_first)[1][:, :, :-1]
        if not np.isfinite(complement).all():
            return np.zeros(len(gu), dtype=bool)
        blocks = np.linalg.eigvalsh(self.vv if questions_first else self.uu)
        negative = (blocks < 0.0).sum(axis=(1, 2))
        negative += (np.linalg.eigvalsh(complement) < 0.0).sum(axis=1)
        return negative == (self.corner <= 0.0).sum(axis=1)

    def _eliminate(
        self, side: Array, other_side: Array, *, questions_first: bool
    ) -> tuple[Callable[[Array], Array], Array]:
        """Eliminate one side: how the rest gives it, and the complement beside its right side."""
        if questions_first:
            blocks, others, cross = self.vv, self.uu, self.uv.transpose(0, 3, 4, 1, 2)
            border, beside = self.on_v, self.on_u
        else:
            blocks, others, cross, border, beside = self.uu, self.vv, self.uv, self.on_u, self.on_v
        (batch, n, k), (m, j), extra = side.shape, other_side.shape[1:], border.shape[1]
        kept = m * j
        columns = np.empty((batch, n, k, kept + extra + 1))
        columns[..., :kept] = cross.reshape(batch, n, k, kept)
        columns[..., kept:-1] = border.transpose(0, 2, 3, 1)
        columns[..., -1] = side
        solved, unroot = _chain_roots(blocks, columns) or _roots(blocks, columns)
        across, through = (x.reshape(batch, n * k, -1) for x in (columns, solved))
        if unroot is not None:
            across = through  # of one array with itself: BLAS does half the work
        complement = -(across.transpose(0, 2, 1) @ through)[:, :-1]

        def back(x: Array) -> Array:
            found = solved[..., -1:] - solved[..., :-1] @ x
            return (found if unroot is None else unroot(found))[..., 0]

        diagonal = np.einsum("bii->bi", complement[:, :, :-1])
        if j == 1:
            diagonal[:, :kept] += others[..., 0, 0]
        else:
            each = np.arange(m)
            whole = complement[:, :kept, :kept].reshape(batch, m, j, m, j)
            whole[:, each, :, each] += others.transpose(1, 0, 2, 3)
        flat = beside.reshape(batch, extra, kept)
        if flat.any():
            complement[:, kept:, :kept] += flat
            complement[:, :kept, kept:-1] += flat.transpose(0, 2, 1)
        diagonal[:, kept:] += self.corner
        complement[:, :kept, -1] += other_side.reshape(batch, kept)
        return back, complement

    def dense(self) -> Array:
        """Return the matrices in full, of shape (resample, p, p), coordinate by coordinate."""
        batch, n_systems, a, n_questions, b = self.uv.shape
        size = n_systems * a
        full = np.zeros((batch, size + n_questions * b, size + n_questions * b))
        for blocks, first in ((self.uu, 0), (self.vv, size)):
            each, k = first + np.arange(blocks.shape[1]), blocks.shape[-1]
            for row, column in np.ndindex(k, k):
                to = each + row * len(each), each + column * len(each)
                full[:, *to] = blocks[:, :, row, column]
        border = self.uv.transpose(0, 2, 1, 4, 3).reshape(batch, size, -1)
        full[:, :size, size:] = border
        full[:, size:, :size] = border.transpose(0, 2, 1)
        couples = self.corner[0] != 0.0
        if couples.any():
            columns = self.on_v[:, couples].transpose(0, 1, 3, 2).reshape(batch, couples.sum(), -1)
            signed = columns * -self.corner[:, couples, np.newaxis]
            full[:, size:, size:] += columns.transpose(0, 2, 1) @ signed
        return full


Unroot = Callable[[Array], Array]


def _roots(blocks: Array, columns: Array) -> tuple[Array, Unroot | None]:
    """Solve small symmetric blocks by R, R' R their inverse: R columns, and how R' is applied.

    Where not all blocks are positive definite, or smaller than their columns are many, the columns
    are solved, and there is no R.
    """
    k = blocks.shape[-1]
    if k == 1 and blocks.min() > 0.0:
        roots = 1.0 / np.sqrt(blocks)
        return columns * roots, lambda found: found * roots
    with np.errstate(divide="ignore", invalid="ignore"):  # singular blocks
        if k == 1:
            return columns / blocks, None
        if 2 * k < columns.shape[-1]:
            try:
                roots = np.linalg.inv(np.linalg.cholesky(blocks))
                return roots @ columns, lambda found: roots.swapaxes(2, 3) @ found
            except np.linalg.LinAlgError:
                pass
        return solve_or_nan(blocks, columns), None


def _chain_roots(blocks: Array, columns: Array) -> tuple[Array, Unroot] | None:
    """Do what :func:`_roots` does for the blocks of chains, which are tridiagonal; else None."""
    if blocks.shape[-1] < 3:
        return None
    diagonal = np.einsum("bnkk->kbn", blocks)[..., np.newaxis]
    beside = np.einsum("bnkk->kbn", blocks[:, :, 1:, :-1])[..., np.newaxis]
    far = np.count_nonzero(blocks) - np.count_nonzero(diagonal) - 2 * np.count_nonzero(beside)
    if far:
        return None
    pivots = diagonal.copy()
    for t in range(1, len(pivots)):
        pivots[t] -= beside[t - 1] ** 2 / pivots[t - 1]
    if not (pivots > 0.0).all():
        return None
    scale = 1.0 / np.sqrt(pivots)
    below = beside * scale[:-1]
    rows = columns.transpose(2, 0, 1, 3)  # in place
    rows[0] *= scale[0]
    for t in range(1, len(rows)):
        rows[t] -= below[t - 1] * rows[t - 1]
        rows[t] *= scale[t]

    def unroot(found: Array) -> Array:
        rows = found.transpose(2, 0, 1, 3) * scale
        for t in range(len(rows) - 2, -1, -1):
            rows[t] -= scale[t] * below[t] * rows[t + 1]
        return rows.transpose(1, 2, 0, 3)

    return columns, unroot


def positive_definite(blocks: Array) -> NDArray[np.bool_]:
    """Say which symmetric blocks of shape (..., k, k), k up to 3, are positive definite."""
    minors = first = blocks[..., 0, 0]
    definite = first > 0.0
    if blocks.shape[-1] > 1:
        minors = first * blocks[..., 1, 1] - blocks[..., 0, 1] ** 2
        definite = definite & (minors > 0.0)
    if blocks.shape[-1] > 2:
        definite = definite & (np.linalg.det(blocks) > 0.0)
    return definite
