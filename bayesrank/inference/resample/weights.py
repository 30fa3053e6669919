"""Data resampled by weights of units, and what weights of few trials lack.

Units are clusters of questions, trials and runs, and battles, or all battles of a prompt or a
judge. They get Dirichlet weights (the Bayesian bootstrap), which are Gamma variables. If the score
is discontinuous, units are drawn with replacement (docs/uncertainty.md). Samples of questions may
include the prior unit, a question on which systems are right by coin flips.

Systems of paired data share their trials, and so the weights of these. For discontinuous scores a
parametric bootstrap draws outcomes from the shares of their cell with a pseudo-count of 1/2 for
each of two categories (Jeffreys' prior), since an outcome that was never observed is not
impossible. Fractional scores are drawn with replacement. Cells with the same counts have the same
chance, and there are few different counts. So numbers of right answers come from a table of
quantiles by kind, ten times as fast as binomial variables.
"""

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.battles import Battles
from bayesrank.design import has_repeated_trials
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import (
    Arguments,
    Array,
    Draw,
    cell_arguments,
    count_arguments,
    log_of,
    per_sample_of_questions,
    played_rows,
    question_arguments,
    trial_arguments,
    with_prior_questions,
)
from bayesrank.inference.resample.units import equal_units, question_clusters
from bayesrank.responses import Responses
from bayesrank.views import Comparisons

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Cells = NDArray[Any]

# With a smaller concentration all Dirichlet weights would underflow to zero. Of two units, or up to
# four, for which this is the least, a standard deviation is 2 to 4 % smaller.
LEAST_CONCENTRATION = 0.02

# Least weight of a unit, relative to the mean: some scores do not exist without the only question
# that links two systems.
LEAST_WEIGHT = 1e-6

_TINY = np.finfo(np.float64).tiny

# Quantiles of a distribution in its table, one for each value of 16 random bits: the error of a
# probability.
_QUANTILES = 2**16
# Kinds of cells in the largest table, which takes a second to build. More of them have binomial
# variables instead, without an error.
_MOST_KINDS = 2**10


def concentration(n: Array | NDArray[np.integer] | float, lost: int) -> Array:
    """Return the concentration (n - lost) / n of Dirichlet weights of n units.

    `lost` is 2 for the unbiased variance, and 4 for the variance of Student's t.
    """
    return np.maximum((n - lost) / np.maximum(n, 1), LEAST_CONCENTRATION)


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


def require_two_trials(data: Responses) -> None:
    """Raise DataError if most observed cells have one trial, which does not identify its noise."""
    if not has_repeated_trials(data):
        single = np.count_nonzero(data.trials == 1)
        raise DataError(
            "trials must be two or more in most cells for target='benchmark'; got one in "
            f"{single} of {np.count_nonzero(data.trials)} observed cells: use target='population'"
        )


def widening_for_fewer_trials(data: Responses, kind: str, unit: str) -> Array:
    """Return factors (system,) for deviations, where cells have fewer trials than weights suppose.

    Or systems fewer runs, if these are units. One trial shows no variation. The factors assume the
    same noise of trials in all cells of a system. Pairs of paired data have the trials that systems
    share on average.
    """
    lost, observed = 2, data.observed
    if unit == "run":
        lost, observed = 4, observed.any(axis=1, keepdims=True)
    n = observed.sum(axis=-1).astype(np.float64)
    drawn_for = n.max(axis=0) if data.paired else n
    if kind == "pairs" and data.paired:
        others, answered = observed.sum(axis=0) - observed, n > 0.0
        opponents = answered.sum(axis=0) - answered
        n = (observed * others).sum(axis=-1) / np.maximum(opponents, 1)
    share = np.maximum(n - 1.0, 0.0) / np.maximum(n, 1.0)
    shown = share / (n * concentration(drawn_for, lost) + 1.0)
    if not shown.any():
        raise DataError(
            "trials must be two or more that systems share, for target='benchmark' of paired data; "
            "got one at most: build Responses with paired=False"
        )
    wanted = np.where(n > 1.0, share / np.maximum(n - lost + 1.0, 1.0), n > 0.0)
    return _root_of_ratio(wanted.sum(axis=1), shown.sum(axis=1))


def widening_for_single_answers(data: Responses, *, events: bool = False) -> Array:
    """Return factors (system,) for slopes of a likelihood, as :func:`widening_for_fewer_trials`.

    The variance of a slope is proportional to the trials of a cell, not to their inverse. With
    `events`, trials of all systems are units, so that the only trial of a question has none.
    """
    require_two_trials(data)
    units = data.observed.any(axis=0).sum(axis=-1) if events else data.trials
    seen = np.where(units > 1, data.trials, 0)
    return _root_of_ratio(data.trials.sum(axis=1), seen.sum(axis=1))


def _root_of_ratio(wanted: NDArray[Any], seen: NDArray[Any]) -> Array:
    """Return roots of ratios (system,), 1 where a system shows nothing."""
    return np.sqrt(np.divide(wanted, seen, out=np.ones(len(seen)), where=seen > 0))


def over_trials(
    data: Responses, kind: str, smooth: bool, rng: np.random.Generator
) -> tuple[Draw, int]:
    """Return the function that draws a batch of data sets, and the doubles of each."""
    require_two_trials(data)
    if kind == "stream":
        return partial(_trial_orders, data, rng=rng), data.shape[1] * data.shape[2]
    if not smooth:
        return lambda n: cell_arguments(data, kind, draw_cells(data, n, rng)), per_data_set(data)
    if not data.paired and data.scores is None:
        return partial(_weighted_cells, data, kind, rng=rng), data.counts.size
    n_weights = data.shape[1] * data.shape[2] * (1 if data.paired else data.shape[0])
    cells = 2 * len(data.systems) ** 2 if kind == "pairs" else per_data_set(data)
    return (
        lambda n: trial_arguments(data, kind, draw_trial_weights(data, n, rng)),
        max(n_weights, cells),
    )


def _trial_orders(data: Responses, size: int, rng: np.random.Generator) -> Arguments:
    """Draw the trials of each question with replacement: a stream and its orders."""
    n_questions, n_trials = data.shape[1:]
    trials = rng.integers(0, n_trials, (size, n_trials, n_questions))
    return data.stream, (trials * n_questions + np.arange(n_questions)).reshape(size, -1)


def _weighted_cells(data: Responses, kind: str, size: int, rng: np.random.Generator) -> Arguments:
    """Draw arguments with weights of the categories of every cell, the sums of those of trials."""
    counts = data.level_counts if kind == "pairs" else data.counts
    shapes = concentration(data.trials, 2)[..., np.newaxis] * counts
    return count_arguments(data, kind, rng.standard_gamma(shapes, (size, *counts.shape)))


def weighted_runs(
    data: Responses, kind: str, size: int, rng: np.random.Generator, *, smooth: bool
) -> Arguments:
    """Draw arguments with weights of runs, or with runs drawn with replacement."""
    seen = data.observed.any(axis=1)
    if data.paired:
        seen = seen.any(axis=0, keepdims=True)
    n = seen.sum(axis=1, keepdims=True)
    if smooth:
        drawn = rng.standard_gamma(concentration(n, 4) * seen, (size, *seen.shape))
        drawn = np.maximum(drawn, LEAST_WEIGHT * drawn.mean(axis=-1, keepdims=True)) * seen
    else:
        drawn = rng.multinomial(n[:, 0], seen / n, (size, len(seen))).astype(np.float64)
    if data.paired:
        return trial_arguments(data, kind, drawn)
    weights = np.broadcast_to(drawn[:, :, np.newaxis], (size, *data.shape))
    # A cell without an answer in any drawn run keeps its trials.
    answered = (weights * data.observed).any(axis=-1, keepdims=True)
    return trial_arguments(data, kind, np.where(answered, weights, 1.0))


def draw_trial_weights(data: Responses, size: int, rng: np.random.Generator) -> Array:
    """Draw a Gamma variable for each trial of a question, and of each system unless paired.

    Of shape (resample, system, question, trial), or (resample, question, trial) of paired data.
    """
    trials = data.trials.max(axis=0) if data.paired else data.trials
    shapes = concentration(trials, 2)[..., np.newaxis]
    return np.maximum(rng.standard_gamma(shapes, (size, *trials.shape, data.shape[2])), _TINY)


def per_data_set(data: Responses) -> int:
    """Return the doubles that the cells of one data set take."""
    return data.counts.size if data.scores is None else data.scores.size


def draw_cells(data: Responses, size: int, rng: np.random.Generator) -> Cells:
    """Draw as many trials of every cell as the data have: counts by category, or scores."""
    n = data.trials
    if data.scores is not None:
        order = np.argsort(~data.observed, axis=-1, kind="stable")  # observed trials first
        cells = np.take_along_axis(np.nan_to_num(data.scores), order, axis=-1)[np.newaxis]
        drawn = (rng.random((size, *data.shape)) * n[..., np.newaxis]).astype(np.intp)
        return np.take_along_axis(cells, drawn, axis=-1)
    if data.n_categories == 2:
        right = draw_right(data.counts[..., 1], n, size, rng)
        return np.stack([n.astype(right.dtype) - right, right], axis=-1)
    shares = (data.counts + 1 / data.n_categories) / (n + 1)[..., np.newaxis]
    return rng.multinomial(n, shares, (size, *n.shape))


def draw_right(
    right: NDArray[Any], trials: NDArray[np.int64], size: int, rng: np.random.Generator
) -> NDArray[np.integer]:
    """Draw numbers of right answers of n trials with chance (k + 1/2) / (n + 1), from k of n."""
    sizes = np.unique(trials)
    ends = np.cumsum(sizes + 1)
    shape = (size, *right.shape)
    if ends[-1] > _MOST_KINDS:
        return rng.binomial(trials, (right + 0.5) / (trials + 1), shape)
    # The kinds for 0, ..., n right answers of n trials follow those for fewer trials.
    first = (ends - (sizes + 1))[np.searchsorted(sizes, trials)]
    bits = rng.integers(0, _QUANTILES, shape, dtype=np.uint16)
    return quantile_table(tuple(sizes.tolist()))[first + right, bits]


@lru_cache(maxsize=8)
def quantile_table(sizes: tuple[int, ...]) -> NDArray[np.integer]:
    """Return quantiles (kind, quantile) for each number of right answers of each of trials."""
    from scipy.special import bdtr  # slow to import

    rows = []
    for n in sizes:
        counts = np.arange(n + 1)
        chance = (counts[:, np.newaxis] + 0.5) / (n + 1)
        ends = np.rint(bdtr(counts, n, chance) * _QUANTILES).astype(np.intp)
        rows += [np.repeat(counts, np.diff(each, prepend=0)) for each in ends]
    return np.array(rows, dtype=np.min_scalar_type(sizes[-1]))
