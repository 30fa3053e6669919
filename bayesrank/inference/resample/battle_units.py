"""Resamples of battles: of counts, or by what is independent: votes, prompts or judges."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.errors import DataError
from bayesrank.inference.resample.clusters import unit_weights
from bayesrank.methods.battle_ratings import Log
from bayesrank.views import Comparisons

FloatArray = NDArray[np.float64]
Draw = Callable[[int], tuple[Any, ...]]


def log_of(data: Battles) -> Log:
    """Return the battles in their order, each as often as its weight says."""
    times = whole_weights(data)
    rows: Any = slice(None) if times is None else np.repeat(np.arange(len(times)), times)
    both_bad = None if data.both_bad is None else data.both_bad[rows]
    time = None if data.time is None else data.time[rows]
    sides = data.first[rows], data.second[rows]
    return Log(*sides, data.outcome[rows], both_bad, time, len(data.systems))


def whole_weights(data: Battles) -> NDArray[np.int64] | None:
    """Return how often each row is played, None for once each; no fractions, nor all zero."""
    if data.weight is None:
        return None
    times = data.weight.astype(np.int64)
    if not np.array_equal(times, data.weight):
        raise DataError(
            "weight must be whole numbers for ratings, which play battle by battle; got "
            f"{data.weight[times != data.weight][0]:g}: rank them by davidson or bradley_terry"
        )
    if not times.any():
        raise DataError("weight must be positive for one battle at least; got zeros")
    return times


def draw_units(
    data: Battles, kind: str, unit: str, *, smooth: bool, rng: np.random.Generator
) -> tuple[Draw, int]:
    """Return what draws a batch of resamples over units, and the doubles that one takes."""
    codes = data.unit_codes(unit)
    n_units = int(codes.max()) + 1
    if n_units < 2:
        raise DataError(f"battles must have two {unit}s or more for unit={unit!r}; got one")
    if kind == "log":
        times = whole_weights(data)
        if times is not None:
            codes = np.repeat(codes, times)
        log = log_of(data)
        return lambda n: (log, _whole_draws(n_units, n, rng)[:, codes]), len(codes)
    count = _counts_by_unit(data, codes, n_units)

    def draw(n: int) -> tuple[Any, ...]:
        return count((unit_weights if smooth else _whole_draws)(n_units, n, rng))

    return draw, max(n_units, 3 * data.wins.size)


def draw_counts(
    data: Comparisons, size: int, rng: np.random.Generator, *, smooth: bool
) -> tuple[FloatArray, FloatArray]:
    """Draw wins and ties of independent battles, of shape (resample, system, opponent).

    By the Bayesian bootstrap if the score is smooth, in which equal battles add up to one Gamma
    variable; else how often each outcome of each pair occurs in about as many battles.
    """
    if not data.totals.any():
        raise DataError("comparisons must hold one at least for target='battles'; got none")
    shape = (size, *data.wins.shape)
    if not smooth:
        ties = np.triu(rng.poisson(data.ties, shape))
        wins = rng.poisson(data.wins, shape)
        return wins.astype(np.float64), (ties + ties.swapaxes(1, 2)).astype(np.float64)
    wins = rng.standard_gamma(data.wins, shape)
    ties = np.triu(rng.standard_gamma(data.ties, shape))
    total = wins.sum(axis=(1, 2), keepdims=True) + ties.sum(axis=(1, 2), keepdims=True)
    scale = (data.wins.sum() + data.ties.sum() / 2) / total
    return scale * wins, scale * (ties + ties.swapaxes(1, 2))


def _whole_draws(n_units: int, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw how often each unit is in a sample with replacement, of shape (size, unit)."""
    drawn = rng.integers(n_units, size=(size, n_units))
    rows = [np.bincount(row, minlength=n_units) for row in drawn]
    return np.array(rows, dtype=np.int32)


def _counts_by_unit(
    data: Battles, codes: NDArray[np.integer[Any]], n_units: int
) -> Callable[[NDArray[Any]], tuple[FloatArray, FloatArray]]:
    """Return what turns weights of units into wins and ties, by one sparse product."""
    from scipy.sparse import csr_array

    size = len(data.systems)
    winner = np.where(data.outcome < 0, data.second, data.first).astype(np.int64)
    loser = np.where(data.outcome < 0, data.first, data.second)
    cell = winner * size + loser + np.where(data.outcome == 0, size**2, 0)
    found, place = np.unique(cell, return_inverse=True)
    weight = np.ones(len(codes)) if data.weight is None else data.weight
    table = csr_array((weight, (place, codes)), shape=(len(found), n_units))

    def count(weights: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        cells = np.zeros((len(weights), 2 * size**2))
        cells[:, found] = (table @ weights.T.astype(np.float64)).T
        wins, ties = cells.reshape(-1, 2, size, size).swapaxes(0, 1)
        return wins, ties + ties.swapaxes(1, 2)

    return count
