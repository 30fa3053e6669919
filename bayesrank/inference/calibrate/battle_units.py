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

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.inference.calibrate.variation import Variation
from bayesrank.inference.fits.pair_rows import PairRows, Sides

Array = NDArray[np.float64]


def unit_variation(problem: PairRows, unit: str, point: Array) -> Variation:
    """Return how the gradient of the log-likelihood varies over units.

    Parameters
    ----------
    problem : PairRows
        Likelihood and battles.
    unit : str
        ``battle``, ``prompt`` or ``judge``; or two, joined by a comma, for battles that share both.
    point : numpy.ndarray of shape (p,)
        Where: in the coordinates of the problem.

    Returns
    -------
    Variation
    """
    data, slopes = cast("Battles", problem.data), []
    for some in problem.blocks:
        terms = problem.terms(point, some)
        others = terms.slope[:, np.newaxis] * problem.design[some]
        slopes.append((*Sides.of(terms).slope, np.hstack([others, terms.shared_slope])))
    one, other, others = (np.concatenate(part) for part in zip(*slopes, strict=True))
    codes = shared_units(data, unit)
    spread = spread_of_units(data, codes, (one, other), others)
    return Variation(spread, float(codes.max()))


def shared_units(data: Battles, unit: str) -> NDArray[np.integer[Any]]:
    """Return the unit of each battle; of two kinds those that share both are one."""
    codes = np.stack([data.unit_codes(kind) for kind in unit.split(",")])
    return codes[0] if len(codes) == 1 else np.unique(codes, axis=1, return_inverse=True)[1].ravel()


def spread_of_units(
    data: Battles, codes: NDArray[np.integer[Any]], slopes: tuple[Array, Array], others: Array
) -> Array:
    """Return the variance of the sum over independent units of what their battles add.

    Parameters
    ----------
    data : Battles
        The battles.
    codes : numpy.ndarray of int and shape (battle,)
        The unit of each battle, numbered without gaps.
    slopes : tuple of two numpy.ndarray of shape (battle,)
        What a battle adds for its first system and for its second.
    others : numpy.ndarray of shape (battle, coordinate)
        What it adds to the coordinates after the systems.

    Returns
    -------
    numpy.ndarray of shape (p, p)
    """
    from scipy.sparse import csr_array

    n, size = int(codes.max()) + 1, len(data.systems)
    place = np.tile(codes, 2), np.concatenate([data.first, data.second])
    table = csr_array((np.concatenate(slopes), place), shape=(n, size))
    table.sum_duplicates()
    sums = np.empty((n, others.shape[1]))
    for column, values in enumerate(others.T):
        sums[:, column] = np.bincount(codes, values, n)
    cross = table.T @ sums
    squares = np.block([[(table.T @ table).toarray(), cross], [cross.T, sums.T @ sums]])
    total = np.concatenate([np.asarray(table.sum(axis=0)), sums.sum(axis=0)])
    freedom = n - 1.0
    widening = min(1.0 + 2.0 / max(freedom - 2.0, 1.0), freedom)
    return widening * n / max(freedom, 1.0) * (squares - np.outer(total, total) / n)
