"""Data resampled by bootstrap weights of units.

The units are clusters of questions, trials and runs, and battles, or all battles of a prompt or a
judge. They get Dirichlet weights (the Bayesian bootstrap). If the score is discontinuous, they are
drawn with replacement (docs/uncertainty.md).
Samples of questions may include the prior unit, a question on which systems are right by coin
flips.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import (
    Arguments,
    Array,
    Draw,
    batches,
    log_of,
    per_sample_of_questions,
    played_rows,
    question_arguments,
    with_prior_questions,
)
from bayesrank.inference.resample.trials import (
    LEAST_CONCENTRATION,
    LEAST_WEIGHT,
    concentration,
    over_trials,
    weighted_runs,
)
from bayesrank.inference.resample.units import equal_units, question_clusters
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def unit_weights(sizes: NDArray[Any], size: int, rng: np.random.Generator) -> Array:
    """Draw Dirichlet weights of units of such sizes with mean 1, of shape (size, unit)."""
    gammas = rng.standard_gamma(concentration(equal_units(sizes), 4), (size, len(sizes)))
    return gammas / gammas.mean(axis=1, keepdims=True)


def question_weights(data: Responses, size: int, rng: np.random.Generator) -> Array:
    """Draw Dirichlet weights of questions with mean 1, equal within a cluster."""
    clusters = question_clusters(data)
    weights = unit_weights(np.bincount(clusters), size, rng)[:, clusters]
    weights = np.maximum(weights, LEAST_WEIGHT * weights.mean(axis=1, keepdims=True))
    return weights / weights.mean(axis=1, keepdims=True)


def resample(
    data: Responses | Comparisons,
    kind: str,
    *,
    target: str,
    smooth: bool,
    size: int,
    rng: np.random.Generator,
    turns: bool = False,
    of_each: int = 0,
    unit: str = "battle",
) -> Iterator[Arguments]:
    """Yield batches of resampled arguments of a ranker, each with a leading axis of resamples.

    If few questions may turn a majority (`turns`), samples of questions may include the prior unit.
    With `of_each` above 0 there are `size` populations of questions (the Bayesian bootstrap), and
    `of_each` samples from each, one after another.
    """
    if isinstance(data, Battles) and (kind == "log" or not data.rows_are_units(unit)):
        draw, doubles = draw_units(data, kind, unit, smooth=smooth, rng=rng)
    elif isinstance(data, Comparisons):
        draw, doubles = partial(_draw_counts, data, rng=rng, smooth=smooth), data.wins.size
    elif unit == "run":
        draw = partial(weighted_runs, data, kind, rng=rng, smooth=smooth)
        doubles = max(data.values.size, len(data.systems) ** 2)
    elif target == "population":
        draw, doubles = _over_questions(data, kind, smooth, turns, of_each, rng)
    else:
        draw, doubles = over_trials(data, kind, smooth, rng)
    for block in batches(size, doubles * max(of_each, 1)):
        yield draw(block.stop - block.start)


def _over_questions(
    data: Responses, kind: str, smooth: bool, turns: bool, of_each: int, rng: np.random.Generator
) -> tuple[Draw, int]:
    """Return the function that draws a batch of samples of questions, and the doubles of each."""
    doubles = per_sample_of_questions(data)
    if smooth:
        arguments = question_arguments(data, kind, rng)
        return lambda n: arguments(question_weights(data, n, rng)), doubles
    clusters, asked = question_clusters(data), data
    sizes = np.bincount(clusters)
    chances = np.ones(n_clusters := len(sizes))
    if turns:
        # Prior questions are clusters of their own; all of them are drawn as often as one cluster.
        asked = with_prior_questions(data)
        n_more = asked.shape[1] - data.shape[1]
        clusters = np.append(clusters, n_clusters + np.arange(n_more))
        chances = np.append(chances, np.full(n_more, 1.0 / n_more))
        doubles = per_sample_of_questions(asked)
    arguments = question_arguments(asked, kind, rng)

    def draw(n: int) -> Arguments:
        likely = np.tile(chances, (n, 1))
        if of_each:
            likely[:, :n_clusters] = unit_weights(sizes, n, rng)
            likely = np.repeat(likely, of_each, axis=0)
        return arguments(_question_draws(clusters, likely, data.shape[1], rng))

    return draw, doubles


def _question_draws(
    clusters: NDArray[np.intp], chances: Array, n_drawn: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw clusters with replacement, and count each of their questions, (resample, question).

    Chances of clusters, of shape (resample, cluster), are on any scale.
    """
    chances = chances / chances.sum(axis=-1, keepdims=True)
    if chances.shape[-1] == len(clusters):
        return rng.multinomial(n_drawn, chances)[:, clusters]
    members = [np.flatnonzero(clusters == cluster) for cluster in range(chances.shape[-1])]
    drawn = np.zeros((len(chances), len(clusters)), dtype=np.int64)
    for row, likely in zip(drawn, chances, strict=True):
        # Until there are enough questions; the last cluster adds only the number still missing.
        missing = n_drawn
        while missing:
            cluster = rng.choice(len(likely), p=likely)
            questions = rng.permutation(members[cluster])[:missing]
            row[questions] += 1
            missing -= len(questions)
    return drawn


def draw_units(
    data: Battles, kind: str, unit: str, *, smooth: bool, rng: np.random.Generator
) -> tuple[Draw, int]:
    """Return the function that draws a batch of resamples over units, and the doubles of each."""
    codes = data.unit_codes(unit)
    n_units = int(codes.max()) + 1
    if n_units < 2:
        raise DataError(f"battles must have two {unit}s or more for unit={unit!r}; got one")
    if kind == "log":
        log, codes = log_of(data), codes[played_rows(data)]
        return lambda n: (log, _whole_draws(n_units, n, rng)[:, codes]), len(codes)
    table = counts_by_unit(data, unit, n_units)
    sizes = table.sum(axis=1)

    def draw(n: int) -> Arguments:
        weights = unit_weights(sizes, n, rng) if smooth else _whole_draws(n_units, n, rng)
        return as_wins_and_ties(weights.astype(np.float64) @ table, len(data.systems))

    return draw, max(n_units, 3 * data.wins.size)


def _whole_draws(n_units: int, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw how often each unit is in a sample with replacement, of shape (size, unit)."""
    drawn = rng.integers(n_units, size=(size, n_units))
    return np.array([np.bincount(row, minlength=n_units) for row in drawn], dtype=np.int32)


def counts_by_unit(data: Comparisons, unit: str, most: int) -> "csr_array":
    """Return the wins and ties of each unit of battles, (unit, 2 * system * opponent).

    Ties count in one order of the systems. More units than `most` are joined at random. Counts
    without rows are of single battles.
    """
    from scipy.sparse import csr_array

    size = len(data.systems)
    if isinstance(data, Battles):
        codes = data.unit_codes(unit)
        winner = np.where(data.outcome < 0, data.second, data.first).astype(np.int64)
        loser = np.where(data.outcome < 0, data.first, data.second)
        cell = winner * size + loser + np.where(data.outcome == 0, size**2, 0)
        weight = np.ones(len(codes)) if data.weight is None else data.weight
    else:
        counts = np.append(data.wins, np.triu(data.ties))
        parts = np.minimum(np.ceil(counts), most).astype(np.int64)
        cell = np.repeat(np.arange(len(counts)), parts)
        codes, weight = np.arange(len(cell)), np.repeat(counts / np.maximum(parts, 1), parts)
    n_units = int(codes.max(initial=-1)) + 1
    if n_units > most:
        codes, n_units = (np.random.default_rng(0).permutation(n_units) % most)[codes], most
    return csr_array((weight, (codes, cell)), shape=(n_units, 2 * size**2))


def as_wins_and_ties(cells: Array, size: int) -> tuple[Array, Array]:
    """Return wins and ties, (resample, system, opponent), of sums over :func:`counts_by_unit`."""
    wins, ties = cells.reshape(-1, 2, size, size).swapaxes(0, 1)
    return wins, ties + ties.swapaxes(1, 2)


def _draw_counts(
    data: Comparisons, size: int, rng: np.random.Generator, *, smooth: bool
) -> tuple[Array, Array]:
    """Draw wins and ties of independent battles, of shape (resample, system, opponent).

    The weights of equal battles add up to one Gamma variable. Scores that are not smooth have
    Poisson counts of the outcomes of each pair.
    """
    if not data.totals.any():
        raise DataError("comparisons must hold one at least for target='battles'; got none")
    shape = (size, *data.wins.shape)
    if not smooth:
        ties = np.triu(rng.poisson(data.ties, shape)).astype(np.float64)
        return rng.poisson(data.wins, shape).astype(np.float64), ties + ties.swapaxes(1, 2)
    # Scaled up, since draws for very small weights of votes would all underflow to zero.
    factor = max(1.0, LEAST_CONCENTRATION / max(data.wins.max(), data.ties.max()))
    wins = rng.standard_gamma(factor * data.wins, shape)
    ties = np.triu(rng.standard_gamma(factor * data.ties, shape))
    total = wins.sum(axis=(1, 2), keepdims=True) + ties.sum(axis=(1, 2), keepdims=True)
    scale = (data.wins.sum() + data.ties.sum() / 2) / total
    return scale * wins, scale * (ties + ties.swapaxes(1, 2))
