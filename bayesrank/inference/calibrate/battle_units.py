r"""The variance of the gradient of a likelihood of battles over prompts, judges or votes.

A judge is one unit however many battles it decided:

.. math:: J = \frac{n}{n - 1} \sum_u (g_u - \bar g)(g_u - \bar g)^\top

with :math:`g_u` the sum of the gradients of the battles of unit u, which sees few of the systems,
so that it is sparse.

References
----------
.. [1] A. C. Cameron and D. L. Miller. A practitioner's guide to cluster-robust inference. Journal
   of Human Resources 50 (2015). https://doi.org/10.3368/jhr.50.2.317
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.inference.calibrate.variation import Variation
from bayesrank.inference.fits.pair_rows import PairRows
from bayesrank.inference.resample.contributions import student_variance

Array = NDArray[np.float64]


def unit_variation(problem: PairRows, data: Battles, unit: str, point: Array) -> Variation:
    """Return how the gradient of the log-likelihood varies over units.

    Parameters
    ----------
    problem : PairRows
        Likelihood of the battles, vote by vote.
    data : Battles
        The battles.
    unit : str
        ``battle``, ``prompt`` or ``judge``; or two, joined by a comma, for battles that share both.
    point : numpy.ndarray of shape (p,)
        Where: in the coordinates of the problem.

    Returns
    -------
    Variation
    """
    from bayesrank.inference.calibrate.unit_kernels import add_units  # loads Numba

    codes = shared_units(data, unit)
    n, p, size = int(codes.max()) + 1, len(point), problem.size
    slopes, others = np.empty((2, len(codes))), np.zeros((p - size, n))
    for some in problem.blocks:
        slopes[:, some], beside = problem.slopes(point, some)
        for column, values in zip(others, beside.T, strict=True):
            np.add.at(column, codes[some], values)
    squares, total, fourth = np.zeros((p, p)), others.sum(axis=1), ((others**2) ** 2).sum(axis=1)
    total, fourth = (np.append(np.zeros(size), each) for each in (total, fourth))
    sides = np.stack([problem.votes.first, problem.votes.second])
    add_units(*_in_order(codes, n), sides, slopes, others.T.copy(), squares, total, fourth)
    diagonal = np.einsum("ii->i", squares)
    diagonal *= 0.5
    squares += squares.T
    squares[size:, size:] = others @ others.T
    freedom = n - 1.0
    widening = student_variance(freedom) * n / max(freedom, 1.0)
    spread = widening * (squares - np.outer(total, total) / n)
    return Variation(spread, freedom, widening**2 * fourth)


def shared_units(data: Battles, unit: str) -> NDArray[np.integer[Any]]:
    """Return the unit of each battle; of two kinds those that share both are one."""
    codes = np.stack([data.unit_codes(kind) for kind in unit.split(",")])
    return codes[0] if len(codes) == 1 else np.unique(codes, axis=1, return_inverse=True)[1].ravel()


def _in_order(
    codes: NDArray[np.integer[Any]], n_units: int
) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
    """Return where the rows of each unit begin, and the rows, each unit together."""
    from scipy.sparse import csr_array

    flags = np.ones(len(codes), dtype=np.bool_)
    # Sorts by counting.
    table = csr_array((flags, (codes, np.arange(len(codes)))), shape=(n_units, len(codes)))
    return table.indptr, table.indices
