"""Draws of the trials of each cell: weights of trials, and the parametric bootstrap.

*Weights* are Gamma variables, which give Dirichlet weights in every cell. Systems of paired data
share their trials, and so the weights of these.

The *parametric bootstrap* draws outcomes from the shares of their cell with a pseudo-count of 1/2
for each of two categories (Jeffreys' prior), since an outcome that was never observed is not
impossible. Fractional scores are drawn with replacement. Cells with the same counts have the same
chance, and there are few different counts. So numbers of right answers come from a table of
quantiles by kind, ten times as fast as binomial variables.
"""

from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.design import has_repeated_trials
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import (
    Arguments,
    Array,
    Draw,
    cell_arguments,
    count_arguments,
    trial_arguments,
)
from bayesrank.responses import Responses

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
