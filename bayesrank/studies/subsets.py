"""Smaller data sets of one: trials, redrawn trials, systems and questions."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.responses import Responses

Resample = Literal["subset", "columns", "rows"]
RESAMPLES: tuple[Resample, ...] = ("subset", "columns", "rows")


def with_outcomes(data: Responses, outcomes: NDArray[np.generic]) -> Responses:
    """Return data with other trials of the same systems and questions."""
    return Responses(
        outcomes,
        systems=data.systems,
        questions=data.questions,
        **data.declared,
        groups=data.groups,
        prior_outcomes=data.prior_outcomes,
        paired=data.paired,
    )


def draw_trials(data: Responses, n: int, resample: Resample, rng: np.random.Generator) -> Responses:
    """Draw n trials.

    Where trials are missing there is no common set of them: each cell draws from the trials that it
    has, and keeps all of them where it has fewer than n different ones.

    Parameters
    ----------
    data : Responses
        Outcomes of all trials.
    n : int
        How many to draw.
    resample : {"subset", "columns", "rows"}
        Different trials; trials with replacement; or trials with replacement for each question
        apart, the same ones for all systems (complete data).
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Responses
    """
    n_questions, n_trials = data.shape[1:]
    if data.n_missing:
        return with_outcomes(data, _draw_from_cells(data, n, resample, rng))
    if resample == "subset":
        drawn = data.values[..., np.sort(rng.choice(n_trials, n, replace=False))]
    elif resample == "columns":
        drawn = data.values[..., rng.integers(n_trials, size=n)]
    else:
        chosen = rng.integers(n_trials, size=(1, n_questions, n))
        drawn = np.take_along_axis(data.values, chosen, axis=-1)
    return with_outcomes(data, drawn)


def _draw_from_cells(
    data: Responses, n: int, resample: str, rng: np.random.Generator
) -> NDArray[np.generic]:
    # Observed trials of a cell come first, in random order.
    order = np.argsort(np.where(data.observed, rng.random(data.shape), 2.0), axis=-1)
    if resample == "subset":
        chosen = order[..., :n]
    else:
        place = rng.integers(np.maximum(data.trials, 1)[..., None], size=(*data.trials.shape, n))
        chosen = np.take_along_axis(order, place, axis=-1)
    return np.take_along_axis(data.values, chosen, axis=-1)


def select(
    data: Responses,
    *,
    systems: Sequence[int] | NDArray[np.intp] | None = None,
    questions: Sequence[int] | NDArray[np.intp] | None = None,
) -> Responses:
    """Keep systems and questions by their positions, in the order given."""
    rows = np.arange(data.shape[0]) if systems is None else np.asarray(systems)
    columns = np.arange(data.shape[1]) if questions is None else np.asarray(questions)
    earlier = data.prior_outcomes
    if earlier is not None:
        earlier = earlier[rows][:, columns] if earlier.ndim == 3 else earlier[columns]
    return Responses(
        data.values[rows][:, columns],
        systems=[data.systems[row] for row in rows],
        questions=[data.questions[column] for column in columns],
        **data.declared,
        groups=None if data.groups is None else [data.groups[column] for column in columns],
        prior_outcomes=earlier,
        paired=data.paired,
    )


def check_resample(resample: str) -> None:
    """Raise ValueError for a way of resampling that is not known."""
    if resample not in RESAMPLES:
        raise ValueError(f"resample must be one of {', '.join(RESAMPLES)}; got {resample!r}")


def check_trial_counts(data: Responses, n: int | Sequence[int], resample: str) -> list[int]:
    """Return the numbers of trials that a study asks for.

    Raises
    ------
    ValueError
        If one is not an integer of at least 1, or more than there are trials to choose from.
    """
    counts = [n] if isinstance(n, int | np.integer) else list(n)
    most = data.shape[2] if resample == "subset" else np.inf
    for count in counts:
        integer = isinstance(count, int | np.integer) and not isinstance(count, bool)
        if not integer or not 1 <= count <= most:
            raise ValueError(f"n must be integers from 1 to {most:g}; got {count!r}")
    if not counts:
        raise ValueError("n must be one number or more; got none")
    return [int(count) for count in counts]
