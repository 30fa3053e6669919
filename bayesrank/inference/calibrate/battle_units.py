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
from bayesrank.inference.fits.pairs import PairLikelihood

Array = NDArray[np.float64]


def unit_variance(data: Battles, unit: str, likelihood: PairLikelihood, point: Array) -> Array:
    """Return the variance of the gradient of the log-likelihood over units.

    Parameters
    ----------
    data : Battles
        What was fitted.
    unit : {"battle", "prompt", "judge"}
        What is independent of what.
    likelihood : PairLikelihood
        Of one battle.
    point : numpy.ndarray of shape (p,)
        The scores, then the tie parameter where it is estimated.

    Returns
    -------
    numpy.ndarray of shape (p, p)
        With the widening of Student's t for few units.
    """
    slope, tie_slope = _slopes(data, likelihood, point)
    rows, columns = [data.first, data.second], [slope, -slope]
    if tie_slope is not None:
        rows.append(np.full(len(slope), len(point) - 1, dtype=np.int32))
        columns.append(tie_slope)
    return spread_of_units(data.unit_codes(unit), rows, columns, len(point))


def _slopes(data: Battles, likelihood: PairLikelihood, point: Array) -> tuple[Array, Array | None]:
    """Return the slopes of each row in the difference of its scores, and in the tie parameter."""
    size = len(data.systems)
    ahead, tie = (
        np.squeeze(each, 0) if np.ndim(each) > 2 else each
        for each in (likelihood.arguments(point[np.newaxis], size))
    )
    by_result, tie_by_result = [], []
    for won, lost, tied in ((0.0, 1.0, 0.0), (0.0, 0.0, 0.5), (1.0, 0.0, 0.0)):
        half = tied if likelihood.ties == "outcome" else 0.0
        shared = tied if likelihood.ties == "half" else 0.0
        one, other = (
            likelihood.derivatives(np.full_like(ahead, score + shared), np.array(half), gap, tie)
            for score, gap in ((won, ahead), (lost, -ahead))
        )
        by_result.append(one[0] - other[0])
        if likelihood.start is not None:
            tie_by_result.append(one[2] + other[2])
    cell = np.sign(data.outcome) + 1, data.first, data.second
    weight = 1.0 if data.weight is None else data.weight
    slope = weight * np.stack(by_result)[cell]
    if likelihood.start is None:
        return slope, None
    held = bool(likelihood.held(point[np.newaxis])[0])
    return slope, np.zeros_like(slope) if held else weight * np.stack(tie_by_result)[cell]


def spread_of_units(
    codes: NDArray[Any], rows: list[NDArray[np.integer]], values: list[Array], p: int
) -> Array:
    """Return the variance of a sum over independent units of sparse vectors.

    Parameters
    ----------
    codes : numpy.ndarray of int and shape (battle,)
        The unit of each battle.
    rows : list of numpy.ndarray of shape (battle,)
        Coordinates to which each battle adds.
    values : list of numpy.ndarray of shape (battle,)
        What it adds there.
    p : int
        Number of coordinates.

    Returns
    -------
    numpy.ndarray of shape (p, p)
    """
    from scipy.sparse import csr_array

    units = np.unique(codes, return_inverse=True)[1]
    n = int(units.max()) + 1
    place = np.concatenate([np.asarray(units)] * len(rows)), np.concatenate(rows)
    table = csr_array((np.concatenate(values), place), shape=(n, p))
    table.sum_duplicates()
    total = np.asarray(table.sum(axis=0))
    squares = (table.T @ table).toarray() - np.outer(total, total) / n
    freedom = n - 1.0
    widening = min(1.0 + 2.0 / max(freedom - 2.0, 1.0), freedom)
    return widening * n / max(freedom, 1.0) * squares
