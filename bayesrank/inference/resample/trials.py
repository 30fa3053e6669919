"""Other trials of the same questions: weighted trials and runs, and data sets drawn anew.

All answers of a run of a system, or of a run that systems share, have one weight. For scores that
jump, outcomes come from shares that are moved a little towards equal ones, since an outcome that
was never seen is not impossible. Fractional scores are drawn with replacement.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.counting import compare_cells, compare_trials, count_categories
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import (
    batches,
    cell_arguments,
    point_arguments,
)
from bayesrank.inference.resample.binomial_tables import redraw_right
from bayesrank.inference.resample.clusters import LEAST_WEIGHT, concentration
from bayesrank.responses import Responses
from bayesrank.units import has_repeated_trials

FloatArray = NDArray[np.float64]
Arguments = tuple[Any, ...]
Cells = NDArray[Any]


def require_two_trials(data: Responses) -> None:
    """Raise DataError if most observed cells have one trial, whose noise cannot be seen."""
    if not has_repeated_trials(data):
        single = np.count_nonzero(data.trials == 1)
        raise DataError(
            "trials must be two or more in most cells for target='benchmark'; got one in "
            f"{single} of {np.count_nonzero(data.trials)} observed cells: use target='population'"
        )


def widening_for_single_trials(data: Responses) -> FloatArray:
    """Return factors (system,) of deviations that see no noise in cells with one trial.

    The noise of a trial is taken to be the same in all cells of a system. A system that has no cell
    with two trials gets the factor of all systems. DataError as of :func:`require_two_trials`.
    """
    require_two_trials(data)
    share = np.where(data.trials > 0, 1.0 / np.maximum(data.trials, 1), 0.0)
    seen = np.where(data.trials > 1, share, 0.0).sum(axis=1)
    ratio = share.sum(axis=1) / np.where(seen > 0.0, seen, 1.0)
    return np.sqrt(np.where(seen > 0.0, ratio, share.sum() / seen.sum()))


def level_counts(levels: NDArray[np.int8]) -> NDArray[np.int64]:
    """Count the levels of the trials of each cell, (system, question, level)."""
    return count_categories(levels, _n_levels(levels))


def _n_levels(levels: NDArray[np.int8]) -> int:
    return int(levels.max(initial=1)) + 1


def trial_arguments(data: Responses, kind: str, gammas: FloatArray) -> Arguments:
    """Return the arguments for weighted trials; not of a stream.

    Weights are on any scale, (resample, question, trial) of trials that all systems share, or
    (resample, system, question, trial).
    """
    if kind == "pairs" and gammas.ndim == 3:
        return compare_trials(data.levels, gammas / gammas.mean(axis=-1, keepdims=True))
    if data.scores is not None:
        total = _weighted_sum(gammas, np.nan_to_num(data.scores))
        with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
            grades = total / _weighted_sum(gammas, data.observed)
        return grades, *point_arguments(data, kind)[1:]
    codes = data.levels if kind == "pairs" else data.outcomes
    size = _n_levels(codes) if kind == "pairs" else data.n_categories
    each = [_weighted_sum(gammas, codes == one) for one in range(size)]
    return _of_counts(data, kind, np.stack(each, axis=-1))


def _of_counts(data: Responses, kind: str, counts: NDArray[Any]) -> Arguments:
    """Return the arguments for counts or weights of the categories, of the levels for pairs."""
    if kind == "pairs":
        return compare_cells(counts, None if counts.dtype.kind in "iu" else data.trials)
    with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
        return cell_arguments(data, kind, counts / counts.sum(axis=-1, keepdims=True))


def weighted_trials(data: Responses, kind: str, size: int, rng: np.random.Generator) -> Arguments:
    """Draw arguments with weights of the trials."""
    return trial_arguments(data, kind, draw_trial_weights(data, size, rng))


def draw_trial_weights(data: Responses, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw a Gamma variable for each trial of a question, and of each system unless paired."""
    # Systems with fewer trials of a question than others set its concentration, so that no
    # interval is too narrow.
    fewest = np.where(data.trials > 0, data.trials, data.shape[2]).min(axis=0)
    shape = (size, *data.shape[1:])
    return rng.standard_gamma(
        concentration(fewest, 2)[:, np.newaxis], shape if data.paired else (size, *data.shape)
    )


def _weighted_sum(weights: FloatArray, values: NDArray[Any]) -> FloatArray:
    """Sum values (system, question, trial) over trials with weights of each resample."""
    values = values.astype(np.float64)
    if weights.ndim == 4:
        return np.einsum("blmn,lmn->blm", weights, values)
    by_question = weights.swapaxes(0, 1) @ values.transpose(1, 2, 0)
    return by_question.transpose(1, 2, 0)


def weighted_cells(data: Responses, kind: str, size: int, rng: np.random.Generator) -> Arguments:
    """Draw arguments with weights of the trials of every cell on its own."""
    counts = level_counts(data.levels) if kind == "pairs" else data.counts
    shapes = concentration(data.trials, 2)[..., np.newaxis] * counts
    return _of_counts(data, kind, rng.standard_gamma(shapes, (size, *counts.shape)))


def runs_of(data: Responses) -> NDArray[np.bool_]:
    """Return which runs have an outcome, of shape (system, trial), (1, trial) where shared."""
    seen = data.observed.any(axis=1)
    return seen.any(axis=0, keepdims=True) if data.paired else seen


def weighted_runs(
    data: Responses, kind: str, size: int, rng: np.random.Generator, *, smooth: bool
) -> Arguments:
    """Draw arguments with weights of runs, or with runs drawn with replacement."""
    seen = runs_of(data)
    n = seen.sum(axis=1, keepdims=True)
    if smooth:
        drawn = rng.standard_gamma(concentration(n, 4) * seen, (size, *seen.shape))
        drawn = np.maximum(drawn, LEAST_WEIGHT * drawn.mean(axis=-1, keepdims=True)) * seen
    else:
        drawn = rng.multinomial(n[:, 0], seen / n, (size, len(seen))).astype(np.float64)
    if data.paired:
        return trial_arguments(data, kind, np.broadcast_to(drawn, (size, *data.shape[1:])))
    weights = np.broadcast_to(drawn[:, :, np.newaxis], (size, *data.shape))
    # A cell that none of the drawn runs has answered keeps its trials.
    answered = (weights * data.observed).any(axis=-1, keepdims=True)
    return trial_arguments(data, kind, np.where(answered, weights, 1.0))


def redraw(data: Responses, kind: str, size: int, rng: np.random.Generator) -> Arguments:
    """Draw arguments of data sets that are drawn anew."""
    return _of_cells(data, kind, draw_cells(data, size, rng))


def redraw_twice(
    data: Responses, kind: str, *, size: int, rng: np.random.Generator
) -> Iterator[tuple[Arguments, Arguments]]:
    """Yield batches of arguments of data sets drawn from such data sets, two from each."""
    for block in batches(size, per_redrawn(data)):
        first = draw_cells(data, block.stop - block.start, rng)
        one, other = (_of_cells(data, kind, _from(data, first, rng)) for _ in range(2))
        yield one, other


def per_redrawn(data: Responses) -> int:
    """Return the doubles that one data set takes whose cells are drawn anew."""
    return data.counts.size if data.scores is None else data.scores.size


def draw_cells(data: Responses, size: int, rng: np.random.Generator) -> Cells:
    """Draw the trials of every cell: counts by category, or scores, those observed first."""
    if data.scores is None:
        cells = data.counts
    else:
        order = np.argsort(~data.observed, axis=-1, kind="stable")
        cells = np.take_along_axis(np.nan_to_num(data.scores), order, axis=-1)
    return _from(data, np.broadcast_to(cells, (size, *cells.shape)), rng)


def _from(data: Responses, cells: Cells, rng: np.random.Generator) -> Cells:
    """Draw as many trials of every cell as were observed, from those of cells like the data's."""
    n = data.trials
    if data.scores is not None:
        drawn = (rng.random(cells.shape) * n[..., np.newaxis]).astype(np.intp)
        return np.take_along_axis(cells, drawn, axis=-1)
    if data.n_categories == 2:
        right = redraw_right(cells[..., 1], n, rng)
        return np.stack([n.astype(right.dtype) - right, right], axis=-1)
    return rng.multinomial(n, (cells + 1 / data.n_categories) / (n + 1)[..., np.newaxis])


def _of_cells(data: Responses, kind: str, cells: Cells) -> Arguments:
    """Return the arguments for cells as :func:`draw_cells` draws them."""
    if data.scores is not None:
        drawn = np.arange(cells.shape[-1]) < data.trials[..., np.newaxis]
        with np.errstate(invalid="ignore"):  # an unobserved cell is 0 / 0
            grades = np.where(drawn, cells, 0.0).sum(axis=-1) / data.trials
        return grades, *point_arguments(data, kind)[1:]
    level = data.category_levels
    if kind == "pairs" and (level != np.arange(len(level))).any():
        each = [cells[..., level == one].sum(axis=-1) for one in range(level.max() + 1)]
        cells = np.stack(each, axis=-1)
    return _of_counts(data, kind, cells)


def draw_trial_order(data: Responses, size: int, rng: np.random.Generator) -> Arguments:
    """Draw the trials of each question with replacement: a stream and its orders."""
    n_questions, n_trials = data.shape[1:]
    trials = rng.integers(0, n_trials, (size, n_trials, n_questions))
    return data.stream, (trials * n_questions + np.arange(n_questions)).reshape(size, -1)
