"""Negative Hessians of systems against questions: solve, damp, check and draw by blocks."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.inference.fits.fit import symmetric_root
from bayesrank.inference.fits.newton import Array, solve_or_nan

# Deviations that are processed at a time: 1 MB, which stays in a cache.
_AT_ONCE = 1 << 17
_LEAST_SHARE = 1e-6


@dataclass(frozen=True)
class Bordered:
    """A batch of negative Hessians of both sides, with further rows that border them.

    Blocks are those of :class:`~bayesrank.inference.fits.two_sided.Expansion`. `on_u`, (resample,
    extra, system, a), and `on_v`, (resample, extra, question, b), are the further rows: what
    couples questions, and what is held. `corner`, (resample, extra), is their diagonal: 0 for what
    is held, else over which a coupling takes away the square of its row.
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

    @cached_property
    def questions_first(self) -> bool:
        """Whether the questions are eliminated, the longer side, and not the systems."""
        return self.vv[0, ..., 0].size >= self.uu[0, ..., 0].size

    @cached_property
    def by_order(self) -> tuple[Array, Array, Array, Array, Array]:
        """Blocks of the side that is eliminated, and of the other; what borders both.

        For n blocks of k coordinates and m of j: (resample, n, k, k), (resample, m, j, j), their
        border (resample, k, n, m, j), and the further rows (resample, k, n, extra) and (resample,
        extra, m, j).
        """
        axes = (0, 4, 3, 1, 2) if self.questions_first else (0, 2, 1, 3, 4)
        border, beside = self._ordered(self.on_u, self.on_v)
        sides = self._ordered(self.uu, self.vv)
        return *sides, self.uv.transpose(axes), border.transpose(0, 3, 2, 1), beside

    @cached_property
    def _factors(self) -> "_Factors":
        """Factors of the blocks that are eliminated."""
        return _Factors.of(self.by_order[0])

    @property
    def has_definite_blocks(self) -> bool:
        """Whether all blocks that are eliminated and couplings are positive, as draws need."""
        return self._factors.all_definite and bool((self.corner >= 0.0).all())

    @property
    def definite_questions(self) -> NDArray[np.bool_]:
        """Which blocks of questions are positive definite, of shape (resample, question)."""
        return (self._factors if self.questions_first else _Factors.of(self.vv)).definite

    def solve(self, gu: Array, gv: Array) -> tuple[Array, Array]:
        """Return the steps of both sides that keep the constraints; NaN where singular."""
        u, v = self._solve(gu[..., np.newaxis], gv[..., np.newaxis])
        return u[..., 0], v[..., 0]

    def steps(self, gradients: Array) -> Array:
        """Return the steps of one matrix for gradients of shape (step, p)."""
        gu, gv = parted(gradients, self.uv.shape[1:])
        both = self._solve(gu.transpose(1, 2, 0)[np.newaxis], gv.transpose(1, 2, 0)[np.newaxis])
        return joined(*(side[0].transpose(2, 0, 1) for side in both))

    def _solve(self, gu: Array, gv: Array) -> tuple[Array, Array]:
        """Return the steps for right sides, (resample, system, a, right) and likewise."""
        first, other = self._ordered(gu, gv)
        through, complement = self._eliminate(first, other)
        size = complement.shape[1]
        x = solve_or_nan(complement[..., :size], complement[..., size:])
        step, beside = self._back(through, x), x[:, : other[0, ..., 0].size].reshape(other.shape)
        return self._ordered(step, beside)

    def definite(self) -> NDArray[np.bool_]:
        """Return which matrices are positive definite along the free directions, (resample,).

        By the signs of the eigenvalues of blocks and Schur complement, which add up to those of the
        whole (Haynsworth): each row that is held has one negative one, and couplings their own.
        """
        first, other = self._ordered(self.uu, self.vv)
        with np.errstate(divide="ignore", invalid="ignore"):  # singular blocks
            complement = self._eliminate(first[..., :0], other[..., :0])[1]
        if not np.isfinite(complement).all():
            return np.zeros(len(first), dtype=bool)
        blocks = np.linalg.eigvalsh(first)
        negative = (blocks < 0.0).sum(axis=(1, 2))
        negative += (np.linalg.eigvalsh(complement) < 0.0).sum(axis=1)
        return negative == (self.corner <= 0.0).sum(axis=1)

    def lowest_direction(self) -> tuple[float, Array, Array]:
        """Return a direction of low curvature of the first matrix, and the curvature along it.

        One of negative curvature where there is any (Haynsworth): within a block of the side that
        is eliminated, or along the Schur complement. Extra rows are left out.
        """
        one = replace(self.take(np.arange(1)), on_u=self.on_u[:1, :0], on_v=self.on_v[:1, :0])
        one = replace(one, corner=self.corner[:1, :0])
        first, other = one._ordered(one.uu, one.vv)
        values, vectors = np.linalg.eigh(first[0])
        worst = int(values[:, 0].argmin())
        inside = np.zeros(first.shape[:-1])
        inside[0, worst] = vectors[worst, :, 0]
        through, complement = one._eliminate(first[..., :0], other[..., :0])
        along, directions = np.linalg.eigh(complement[0])
        beside = directions[np.newaxis, :, :1]
        step = one._back(through, beside)[..., 0]
        length = 1.0 + float((step**2).sum())
        if values[worst, 0] <= along[0] / length:
            return float(values[worst, 0]), *self._ordered(inside, np.zeros(other.shape[:-1]))
        return float(along[0] / length), *self._ordered(step, beside.reshape(other.shape[:-1]))

    def _ordered(self, u: Array, v: Array) -> tuple[Array, Array]:
        """Put the side that is eliminated first; or, of sides so ordered, the systems."""
        return (v, u) if self.questions_first else (u, v)

    def _eliminate(self, side: Array, other_side: Array) -> tuple[Array, Array]:
        """Eliminate one side: return the input of :meth:`_back`, the complement and right sides."""
        blocks, others, cross, border, beside = self.by_order
        (batch, n, k, right), (m, j), extra = side.shape, others.shape[1:3], border.shape[3]
        kept, size = m * j, m * j + extra
        columns = np.empty((batch, k, n, size + right))
        columns[..., :kept] = cross.reshape(batch, k, n, kept)
        columns[..., kept:size] = border
        columns[..., size:] = side.swapaxes(1, 2)
        if self._factors.all_definite:  # BLAS does half the work of a product with itself
            columns = solved = self._factors.halve(columns)
        else:
            solved = solve_or_nan(blocks, columns.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
        across, through = (x.reshape(batch, n * k, -1) for x in (columns, solved))
        complement = across[..., :size].transpose(0, 2, 1) @ through
        np.negative(complement, out=complement)
        diagonal = complement.reshape(batch, -1)[:, :: size + right + 1]
        if j == 1:
            diagonal[:, :kept] += others[..., 0, 0]
        else:
            each = np.arange(m)
            whole = complement[:, :kept, :kept].reshape(batch, m, j, m, j)
            whole[:, each, :, each] += others.transpose(1, 0, 2, 3)
        flat = beside.reshape(batch, extra, kept)
        complement[:, kept:, :kept] += flat
        complement[:, :kept, kept:size] += flat.transpose(0, 2, 1)
        diagonal[:, kept:] += self.corner
        complement[:, :kept, size:] += other_side.reshape(batch, kept, right)
        return through, complement

    def _back(self, through: Array, x: Array) -> Array:
        """Return the side that was eliminated, given the others, (resample, rest, right)."""
        (batch, n, k), (size, right) = self.by_order[0].shape[:3], x.shape[1:]
        own = through[..., size:] if through.shape[2] > size else 0.0
        found = (own - through[..., :size] @ x).reshape(batch, k, n, right)
        if self._factors.all_definite:
            found = self._factors.halve_back(found)
        return found.swapaxes(1, 2)

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Draw from the Gaussian of one precision: deviations that keep the constraints, (draw, p).

        Its memory grows with the parameters of the longer side times those of the shorter one. A
        coupling is one more Gaussian variable that is integrated out. It and the shorter side have
        the inverse of the Schur complement as their covariance; given them the blocks of the longer
        side are independent, and are then moved onto the constraints by kriging [1]_. LinAlgError
        if the constraints leave nothing.

        References
        ----------
        .. [1] H. Rue and L. Held. Gaussian Markov Random Fields: Theory and Applications (2005).
           https://doi.org/10.1201/9780203492024
        """
        first, others, _, _, (beside,) = self.by_order
        (n, k), (m, j) = first.shape[1:3], others.shape[1:3]
        through, complement = self._eliminate(first[..., :0], others[..., :0])
        kept, held = m * j, self.corner[0] == 0.0
        drawn = np.append(np.ones(kept, dtype=bool), ~held)
        root = symmetric_root(np.linalg.inv(complement[0])[drawn][:, drawn])
        onto, across = through[0][:, ~drawn], beside.reshape(-1, kept)[held]
        back = np.linalg.pinv(onto)
        points = np.empty((n_draws, kept + n * k))
        for rows in batches(n_draws, n * k, _AT_ONCE):
            x = root @ rng.standard_normal((len(root), rows.stop - rows.start))
            own = rng.standard_normal((n * k, x.shape[1])) - through[0][:, drawn] @ x
            own -= back.T @ (onto.T @ own + across @ x[:kept])
            side = self._factors.halve_back(own.reshape(1, k, n, -1)).swapaxes(1, 2)
            u, v = self._ordered(side[0], x[:kept].reshape(m, j, -1))
            points[rows] = joined(u.transpose(2, 0, 1), v.transpose(2, 0, 1))
        return points

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
            shares = columns / self.corner[:, couples, np.newaxis]
            full[:, size:, size:] -= columns.transpose(0, 2, 1) @ shares
        return full


@dataclass(frozen=True)
class _Factors:
    """Factors L D L' of many small symmetric blocks: entries of L below the diagonal, and D.

    Entries of L that are zero in all blocks are left out; D is of shape (resample, entry, block).
    """

    lower: dict[tuple[int, int], Array]
    pivots: Array

    @classmethod
    def of(cls, blocks: Array) -> Self:
        """Factor blocks of shape (resample, block, k, k); singular ones divide by zero."""
        k = blocks.shape[-1]
        lower, pivots = dict[tuple[int, int], Array](), np.empty((len(blocks), k, blocks.shape[1]))
        pivots[:, 0] = blocks[..., 0, 0]
        # Chains have blocks of many zeros. Rows of L begin where those of the blocks do.
        begins = [0] * k
        if k > 3:
            begins = (blocks != 0.0).any(axis=(0, 1)).argmax(axis=1).tolist()
        for row in range(1, k):
            pivot, scaled = blocks[..., row, row], dict[int, Array]()
            for column in range(begins[row], row):
                entry = blocks[..., row, column]
                for other in range(max(begins[row], begins[column]), column):
                    entry = entry - scaled[other] * lower[column, other]
                scaled[column] = entry
                lower[row, column] = factor = entry / pivots[:, column]
                pivot = pivot - factor * entry
            pivots[:, row] = pivot
        return cls(lower, pivots)

    @cached_property
    def definite(self) -> NDArray[np.bool_]:
        """Which blocks are positive definite, of shape (resample, block)."""
        return np.minimum.reduce(self.pivots, axis=1) > 0.0

    @cached_property
    def all_definite(self) -> bool:
        """Whether all blocks are positive definite."""
        return bool(self.definite.all())

    @cached_property
    def scale(self) -> Array:
        """D^(-1/2), where all blocks are positive definite, as a column."""
        return self.pivots[..., np.newaxis] ** -0.5

    def halve(self, columns: Array) -> Array:
        """Return D^(-1/2) L^(-1) columns, of shape (resample, k, block, column), in place."""
        for (row, column), factor in self.lower.items():
            columns[:, row] -= factor[..., np.newaxis] * columns[:, column]
        columns *= self.scale
        return columns

    def halve_back(self, columns: Array) -> Array:
        """Return the transpose of that times columns, of that shape, in place."""
        columns *= self.scale
        for (row, column), factor in reversed(self.lower.items()):
            columns[:, column] -= factor[..., np.newaxis] * columns[:, row]
        return columns


def parted(point: Array, shape: tuple[int, int, int, int]) -> tuple[Array, Array]:
    """Return views of u and v at points, (..., p), for a shape (system, a, question, b)."""
    n_systems, a, n_questions, b = shape
    lead, size = point.shape[:-1], n_systems * a
    u = point[..., :size].reshape(*lead, a, n_systems).swapaxes(-1, -2)
    return u, point[..., size:].reshape(*lead, b, n_questions).swapaxes(-1, -2)


def joined(u: Array, v: Array) -> Array:
    """Return the points of coordinates u and v, of shape (..., p)."""
    parts = [side.swapaxes(-1, -2).reshape(*side.shape[:-2], -1) for side in (u, v)]
    return np.concatenate(parts, axis=-1)
