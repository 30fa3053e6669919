"""Whole data sets drawn from the trials of each cell, for scores that jump.

Outcomes are drawn from shares that are moved a little towards equal ones, since an outcome that was
never seen is not impossible: by half a trial of each of two outcomes, as in Jeffreys' prior.
Fractional scores are drawn with replacement.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import compare_cells
from bayesrank.inference.resample.arguments import cell_arguments, point_arguments
from bayesrank.responses import Responses

Cells = NDArray[Any]


def redraw(data: Responses, kind: str, size: int, rng: np.random.Generator) -> tuple[Any, ...]:
    """Draw data sets anew.

    Parameters
    ----------
    data : Responses
        The data as they are.
    kind : str
        What the ranker reads, see :mod:`bayesrank.inference.resample.arguments`.
    size : int
        Number of data sets.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    tuple
        Positional arguments of the ranker, each with a leading axis of data sets.
    """
    return _arguments(data, kind, draw_cells(data, size, rng))


def redraw_twice(
    data: Responses, kind: str, size: int, rng: np.random.Generator
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Draw data sets anew, and two from each of them by the same rule.

    Parameters and results are those of :func:`redraw`, with arguments for the first and for the
    second data set of each pair.
    """
    first = draw_cells(data, size, rng)
    one, other = (_arguments(data, kind, _from(data, first, rng)) for _ in range(2))
    return one, other


def draw_cells(data: Responses, size: int, rng: np.random.Generator) -> Cells:
    """Draw the trials of every cell: counts by category, or scores, those observed first."""
    cells = data.counts if data.scores is None else _observed_first(data, data.scores)
    return _from(data, np.broadcast_to(cells, (size, *cells.shape)), rng)


def _observed_first(data: Responses, scores: NDArray[np.float64]) -> Cells:
    order = np.argsort(~data.observed, axis=-1, kind="stable")
    return np.take_along_axis(np.nan_to_num(scores), order, axis=-1)


def _from(data: Responses, cells: Cells, rng: np.random.Generator) -> Cells:
    """Draw as many trials of every cell as were observed, from those of cells like the data's."""
    n = data.trials
    if data.scores is not None:
        drawn = (rng.random(cells.shape) * n[..., np.newaxis]).astype(np.intp)
        return np.take_along_axis(cells, drawn, axis=-1)
    if data.n_categories == 2:
        right = rng.binomial(n, (cells[..., 1] + 0.5) / (n + 1))
        return np.stack([n - right, right], axis=-1)
    return rng.multinomial(n, (cells + 1 / data.n_categories) / (n + 1)[..., np.newaxis])


def _arguments(data: Responses, kind: str, cells: Cells) -> tuple[Any, ...]:
    """Return what the ranker is called with."""
    n = data.trials[..., np.newaxis]
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        if data.scores is not None:
            total = np.where(np.arange(cells.shape[-1]) < n, cells, 0.0).sum(axis=-1)
            return total / data.trials, *point_arguments(data, kind)[1:]
        if kind != "pairs":
            return cell_arguments(data, kind, cells / n)
    level = data.category_levels
    return compare_cells(cells @ np.eye(level.max() + 1)[level])
