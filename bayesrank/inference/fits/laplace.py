"""Gaussian draws from an information matrix under linear constraints."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# A single matrix from this size on is solved by its triangles: SciPy takes longer to load than
# smaller ones take.
_MANY = 200


def gaussian_draws(
    information: Array, constraints: Array, n_draws: int, rng: np.random.Generator
) -> Array:
    r"""Draw deviations from a Gaussian with a given precision, held to linear constraints.

    The density is proportional to :math:`\exp(-x^\top H x / 2)` on the space :math:`C^\top x = 0`.
    :math:`H` may be singular outside that space.

    Parameters
    ----------
    information : numpy.ndarray of shape (..., p, p)
        The precision matrix :math:`H`.
    constraints : numpy.ndarray of shape (..., p, constraint)
        The columns of :math:`C`, orthogonal to each other; there may be none.
    n_draws : int
        Number of draws per matrix.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    numpy.ndarray of shape (draw, ..., p)

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite on the constrained space.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> precision = np.array([[1.0, -1.0], [-1.0, 1.0]])
    >>> draws = gaussian_draws(precision, zero_sum(2, slice(0, 2)), 3, rng)
    >>> bool(np.allclose(draws.sum(axis=-1), 0.0))
    True
    """
    normals = rng.standard_normal((n_draws, *information.shape[:-1]))
    matrix = anchored(information, constraints)
    try:
        root = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            "model must be identified at the optimum for draws around it; its curvature is not "
            "positive there. Give it a proper prior, use backend='nuts', or draws=0 for the "
            "estimate alone"
        ) from error
    # One solve for all draws of a matrix: put the draws last, where solve wants its columns.
    columns = np.moveaxis(normals, 0, -1)
    sides = np.broadcast_to(constraints, (*matrix.shape[:-1], constraints.shape[-1]))
    if matrix.ndim > 2 or len(matrix) < _MANY:
        draws = np.linalg.solve(np.swapaxes(root, -1, -2), columns)
        spread = np.linalg.solve(matrix, sides)
    else:
        from scipy.linalg import cho_solve, solve_triangular

        draws = solve_triangular(root, columns, lower=True, trans=1)
        spread = cho_solve((root, True), sides)
    return np.moveaxis(_held(draws, spread, constraints), -1, 0)


def constrained_steps(information: Array, constraints: Array, gradients: Array) -> Array:
    """Solve H x = g on the space of linear constraints, for gradients g of shape (step, p)."""
    matrix = anchored(information, constraints)
    columns = np.linalg.solve(matrix, np.concatenate([gradients.T, constraints], axis=1))
    return _held(columns[:, : len(gradients)], columns[:, len(gradients) :], constraints).T


def _held(columns: Array, spread: Array, constraints: Array) -> Array:
    """Move columns onto the constrained space, along the metric of a matrix.

    `spread` is what its inverse makes of the constraints.
    """
    if not constraints.shape[-1]:
        return columns
    across = np.swapaxes(constraints, -1, -2)
    columns = columns - spread @ np.linalg.solve(across @ spread, across @ columns)
    # Once more along the constraints themselves, for what rounding left.
    lengths = (constraints**2).sum(axis=-2)[..., None]
    return columns - constraints @ ((across @ columns) / lengths)


def anchored(information: Array, constraints: Array) -> Array:
    """Return an information matrix made regular along the constraints.

    Adding a multiple of a constraint's outer product leaves the density on the constrained space
    alone; a multiple of the size of the diagonal keeps the matrix well conditioned.
    """
    unit = constraints / np.sqrt((constraints**2).sum(axis=-2, keepdims=True))
    size = np.einsum("...ii->...", information)[..., None, None] / max(information.shape[-1], 1)
    return information + size * (unit @ np.swapaxes(unit, -1, -2))


def zero_sum(p: int, *blocks: slice) -> Array:
    """Return the constraints that disjoint blocks of p coordinates sum to zero, (p, block).

    Examples
    --------
    >>> zero_sum(3, slice(0, 2)).ravel()
    array([1., 1., 0.])
    """
    constraints = np.zeros((p, len(blocks)))
    for column, block in enumerate(blocks):
        constraints[block, column] = 1.0
    return constraints
