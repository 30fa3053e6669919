r"""Newton systems of two sides that interact with each other, but not among themselves.

The system

.. math::

   \begin{pmatrix} A & -Q \\ -Q^\top & D \end{pmatrix} \begin{pmatrix} x \\ y \end{pmatrix}
   + \lambda \begin{pmatrix} u \\ v \end{pmatrix} = \begin{pmatrix} f \\ g \end{pmatrix},
   \qquad u^\top x + v^\top y = 0,

has diagonal :math:`A` and :math:`D` and a constraint on one side, if any. The longer side is
eliminated and the Schur complement of the shorter one solved. Without priors the matrix is singular
along a common shift of both sides, and the constraint need not be met before the end.
"""

import numpy as np

from bayesrank.inference.fits.arrow import one_or_nan, solve_bordered
from bayesrank.inference.fits.penalty import Array

_TINY = 1e-300


def solve_bipartite(
    diagonals: tuple[Array, Array],
    coupling: Array,
    right: tuple[Array, Array],
    held: tuple[Array | None, Array | None] | None,
) -> tuple[Array, Array]:
    """Solve a batch of two-sided systems.

    Parameters
    ----------
    diagonals : tuple of numpy.ndarray of shapes (resample, n) and (resample, m)
        A and D.
    coupling : numpy.ndarray of shape (resample, n, m)
        Q.
    right : tuple of numpy.ndarray of shapes (resample, n) and (resample, m)
        f and g.
    held : tuple of numpy.ndarray or None, or None
        u and v, one of which at most is given; None for a system that is singular along a common
        shift, of which any solution will do.

    Returns
    -------
    tuple of numpy.ndarray of shapes (resample, n) and (resample, m)
        x and y; NaN where a matrix is singular.
    """
    (kept, gone), (f, g), (u, v) = diagonals, right, held or (None, None)
    swapped = coupling.shape[-2] > coupling.shape[-1]
    if swapped:
        kept, gone, f, g, u, v = gone, kept, g, f, v, u
        coupling = coupling.transpose(0, 2, 1)
    inverse = 1.0 / gone
    scaled = coupling * inverse[:, None, :]
    matrix = scaled @ coupling.transpose(0, 2, 1)
    np.negative(matrix, out=matrix)
    matrix.reshape(len(matrix), -1)[:, :: kept.shape[-1] + 1] += kept
    if held is None:
        matrix += (kept.sum(axis=-1) / kept.shape[-1] ** 2)[:, None, None]
    x = f + (scaled @ g[:, :, None])[:, :, 0]
    if v is None:
        x = solve_bordered(matrix, x, u)
        y = inverse * (g + (x[:, None, :] @ coupling)[:, 0])
    else:
        # y = D^-1 (g + Q'x - lambda v), with lambda such that v'y = 0.
        weighted = v * inverse
        along = (scaled @ v[:, :, None])[:, :, 0]
        level = (weighted * g).sum(axis=-1, keepdims=True)
        strength = np.maximum((weighted * v).sum(axis=-1, keepdims=True), _TINY)
        share = along / strength
        matrix += share[:, :, None] * along[:, None, :]
        x -= share * level
        x = solve_bordered(matrix, x, None)
        y = inverse * (g + (x[:, None, :] @ coupling)[:, 0])
        y -= ((v * y).sum(axis=-1, keepdims=True) / strength) * weighted
    return (y, x) if swapped else (x, y)


def solve_one_bipartite(
    diagonals: tuple[Array, Array],
    coupling: Array,
    right: tuple[Array, Array],
    held: Array | None = None,
) -> tuple[Array, Array]:
    """Solve one two-sided system; see :func:`solve_bipartite` for a batch of them.

    Parameters
    ----------
    diagonals : tuple of numpy.ndarray of shapes (n,) and (m,)
        A and D.
    coupling : numpy.ndarray of shape (n, m)
        Q.
    right : tuple of numpy.ndarray of shapes (n,) and (m,)
        f and g.
    held : numpy.ndarray of shape (m,), optional
        v, for n up to m; None for a system that is singular along a common shift, of which any
        solution will do.

    Returns
    -------
    tuple of numpy.ndarray of shapes (n,) and (m,)
        x and y; NaN where the matrix is singular otherwise.
    """
    if held is None and len(coupling) > coupling.shape[1]:
        (kept, gone), (f, g) = diagonals, right
        y, x = solve_one_bipartite((gone, kept), coupling.T, (g, f))
        return x, y
    (kept, gone), (f, g) = diagonals, right
    scaled = coupling / gone
    matrix = scaled @ coupling.T
    np.negative(matrix, out=matrix)
    matrix.reshape(-1)[:: len(kept) + 1] += kept
    x = f + scaled @ g
    if held is None:
        matrix += kept.sum() / len(kept) ** 2
        x = one_or_nan(matrix, x)
        return x, (g + x @ coupling) / gone
    weighted, along = held / gone, scaled @ held
    strength = max(float(weighted @ held), _TINY)
    share = along / strength
    matrix += np.multiply.outer(share, along)
    x = one_or_nan(matrix, x - share * (weighted @ g))
    y = (g + x @ coupling) / gone
    return x, y - (held @ y / strength) * weighted
