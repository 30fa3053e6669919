"""How the gradient of paired comparisons varies: over trials, runs and questions, or battles.

A unit, such as a judge, is one however many battles it decided.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.errors import DataError
from bayesrank.inference.calibrate.influence import event_variation, question_variation
from bayesrank.inference.calibrate.set_covariance import covariance_of
from bayesrank.inference.calibrate.variation import Variation
from bayesrank.inference.fits.pair_rows import PairRows
from bayesrank.inference.fits.pairs import PairLikelihood
from bayesrank.inference.resample.arguments import batches, point_arguments
from bayesrank.inference.resample.contributions import student_variance
from bayesrank.inference.resample.weights import question_pairs, resample
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

Array = NDArray[np.float64]

# Draws of battles, and of trials that each system has for itself.
_RESAMPLES = 2000


def gradient_variation(
    data: Responses | Comparisons,
    likelihood: PairLikelihood,
    point: Array,
    kind: str,
    seed: np.random.SeedSequence,
) -> Variation:
    """Return how the gradient varies over one kind of units of responses, or of counts of battles.

    The point has the scores, then the tie parameter where it is estimated. The seed is for battles,
    and trials of each system, that are drawn anew. DataError for runs that systems do not share.
    """
    if not isinstance(data, Responses):
        return _redrawn(data, likelihood, point, seed)
    if data.paired:
        rows = _event_gradients(data.levels.reshape(len(data.systems), -1), likelihood, point)
        rows = rows.reshape(*data.shape[1:], len(point))
        return event_variation(rows, data, kind, by_system=False)
    if kind == "question":
        rows = [
            likelihood.gradient(point, *question_pairs(data, some))
            for some in batches(data.shape[1], len(data.systems) ** 2)
        ]
        return question_variation(np.concatenate(rows), data)
    if kind == "run":
        raise DataError(
            "unit must be 'trial' for comparisons of runs that systems do not share; got 'run': "
            "build Responses with paired=True"
        )
    return _redrawn(data, likelihood, point, seed)


def _redrawn(
    data: Responses | Comparisons,
    likelihood: PairLikelihood,
    point: Array,
    seed: np.random.SeedSequence,
) -> Variation:
    """Return how the gradient varies over draws of trials, or of battles."""
    drawn = resample(
        data,
        "pairs",
        target="benchmark",
        smooth=True,
        size=_RESAMPLES,
        rng=np.random.default_rng(seed),
    )
    wins, ties = point_arguments(data, "pairs")
    found = np.concatenate([likelihood.gradient(point, *batch) for batch in drawn])
    freedom = float(wins.sum() + ties.sum() / 2.0)
    covariance = covariance_of(found)
    return Variation(covariance, freedom, np.diag(covariance) ** 2 / max(freedom, 1.0))


def _event_gradients(levels: NDArray[np.int8], likelihood: PairLikelihood, point: Array) -> Array:
    """Return the gradient of each trial of all systems, of shape (trial, p).

    Who is at a level has beaten who is below it, has lost to who is above, and tied with the
    others at it: products with tables of the slopes of single results, instead of all pairs.
    """
    size = len(levels)
    one, none = np.ones((size, size)), np.zeros((size, size))
    arguments = likelihood.arguments(point[np.newaxis], size)
    won = likelihood.derivatives(*likelihood.sides(one, none), *arguments)
    rows = np.zeros((levels.shape[1], len(point)))
    for level in range(int(levels.max(initial=0)) + 1):
        at, below = (levels == level).astype(float), (levels >= 0) & (levels < level)
        rows[:, :size] += (at * (won[0][0] @ below) - below * (won[0][0].T @ at)).T
        tables = [(won, below)]
        if at.sum(axis=0).max(initial=0.0) > 1.0:
            tied = likelihood.derivatives(*likelihood.sides(none, one), *arguments)
            slope = tied[0][0] - tied[0][0].T
            rows[:, :size] += (at * (slope @ at)).T
            tables.append((tied, at))
        if likelihood.start is not None and not likelihood.at_end(point[-1]):
            for table, others in tables:
                slope = np.where(np.eye(size, dtype=bool), 0.0, table[2][0])
                rows[:, size] += (at * (slope @ others)).sum(axis=0)
    return rows


def unit_variation(problem: PairRows, data: Battles, unit: str, point: Array) -> Variation:
    """Return how the gradient of the log-likelihood of votes varies over units of battles.

    The unit is ``battle``, ``prompt`` or ``judge``; or two, joined by a comma, for battles that
    share both. Gradients of units see few of the systems, so that they are sparse.
    """
    from bayesrank.inference.calibrate.unit_kernels import add_units  # loads Numba

    kinds = np.stack([data.unit_codes(kind) for kind in unit.split(",")])
    codes = (
        kinds[0] if len(kinds) == 1 else np.unique(kinds, axis=1, return_inverse=True)[1].ravel()
    )
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


def _in_order(
    codes: NDArray[np.integer[Any]], n_units: int
) -> tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]:
    """Return where the rows of each unit begin, and the rows, each unit together."""
    from scipy.sparse import csr_array

    flags = np.ones(len(codes), dtype=np.bool_)
    # Sorts by counting.
    table = csr_array((flags, (codes, np.arange(len(codes)))), shape=(n_units, len(codes)))
    return table.indptr, table.indices
