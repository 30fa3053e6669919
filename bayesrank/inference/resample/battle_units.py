"""Resamples of battles by what is independent of what: votes, prompts or judges."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.errors import DataError
from bayesrank.inference.resample.prior_unit import prior_battles
from bayesrank.methods.battle_ratings import Log

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
    """Return how often each row is played, None for once each.

    Raises
    ------
    DataError
        If a weight is a fraction, which no rating can play.
    """
    if data.weight is None:
        return None
    times = data.weight.astype(np.int64)
    if not np.array_equal(times, data.weight):
        raise DataError(
            "weight must be whole numbers for ratings, which play battle by battle; got "
            f"{data.weight[times != data.weight][0]:g}: rank them by davidson or bradley_terry"
        )
    return times


def draw_units(
    data: Battles,
    kind: str,
    unit: str,
    *,
    smooth: bool,
    rng: np.random.Generator,
    prior: bool = False,
) -> tuple[Draw, int]:
    """Return what draws a batch of resamples over units, and the doubles that one takes.

    Parameters
    ----------
    data : Battles
        The data as they are.
    kind : {"log", "pairs"}
        What the ranker reads, see :mod:`bayesrank.inference.resample.arguments`.
    unit : {"battle", "prompt", "judge"}
        What is independent of what.
    smooth : bool
        Whether units may have fractional weights; else they are drawn with replacement.
    rng : numpy.random.Generator
        Source of randomness.
    prior : bool, default False
        Whether the prior unit is among those that are resampled.
    """
    codes = data.unit_codes(unit)
    n_units = int(codes.max()) + 1
    if n_units < 2:
        raise DataError(f"battles must have two {unit}s or more for unit={unit!r}; got one")
    if kind == "log":
        return _draw_logs(data, codes, n_units, prior, rng)
    weights = _gamma_weights if smooth else _whole_draws
    count = _counts_by_unit(data, codes, n_units)

    def draw(n: int) -> tuple[FloatArray, FloatArray]:
        wins, ties = count(weights(n_units, n, rng))
        if prior:
            more = prior_battles(data, n, rng)
            wins += more if smooth else rng.poisson(more)
        return wins, ties

    return draw, max(n_units, 3 * data.wins.size)


def _draw_logs(
    data: Battles,
    codes: NDArray[np.integer[Any]],
    n_units: int,
    prior: bool,
    rng: np.random.Generator,
) -> tuple[Draw, int]:
    """Return what draws how often each battle of a log is played."""
    times = whole_weights(data)
    if times is not None:
        codes = np.repeat(codes, times)
    log = log_of(data)
    if not prior:
        return lambda n: (log, _whole_draws(n_units, n, rng)[:, codes]), len(codes)
    log, rows = _with_prior_battles(log, rng)

    def draw(n: int) -> tuple[Log, NDArray[np.int32]]:
        drawn = _whole_draws(n_units, n, rng)[:, codes]
        more = rng.poisson(0.5, (n, len(log.first) - len(codes))).astype(np.int32)
        return log, np.concatenate([drawn, more], axis=1)[:, rows]

    return draw, len(log.first)


def _with_prior_battles(log: Log, rng: np.random.Generator) -> tuple[Log, NDArray[np.intp]]:
    """Return a log with a win and a loss of every system at places of it, and where rows were.

    Each is against one of the opponents that the system met.
    """
    n = len(log.first)
    sides = np.concatenate([log.first, log.second]), np.concatenate([log.second, log.first])
    order = rng.permutation(2 * n)
    systems, place = np.unique(sides[0][order], return_index=True)
    opponents = sides[1][order][place]
    first, second = np.tile(systems, 2), np.tile(opponents, 2)
    outcome = np.repeat(np.array([1, -1], dtype=log.outcome.dtype), len(systems))
    where = rng.integers(n, size=len(first))
    rows = np.argsort(np.concatenate([np.arange(n), where + 0.5]), kind="stable")

    def joined(values: Any, more: Any) -> Any:
        return None if values is None else np.concatenate([values, more])[rows].astype(values.dtype)

    return (
        Log(
            joined(log.first, first),
            joined(log.second, second),
            joined(log.outcome, outcome),
            joined(log.both_bad, np.zeros(len(first))),
            joined(log.time, None if log.time is None else log.time[where]),
            log.size,
        ),
        rows,
    )


def _whole_draws(n_units: int, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw how often each unit is in a sample with replacement, of shape (size, unit)."""
    drawn = rng.integers(n_units, size=(size, n_units))
    rows = [np.bincount(row, minlength=n_units) for row in drawn]
    return np.array(rows, dtype=np.int32)


def _gamma_weights(n_units: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw Dirichlet weights of units with mean 1, widened for few of them."""
    gammas = rng.standard_gamma(max((n_units - 4) / n_units, 0.02), (size, n_units))
    return gammas / gammas.mean(axis=1, keepdims=True)


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
