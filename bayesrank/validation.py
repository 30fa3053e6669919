"""Checks that data pass once, on their way in; what comes out is a private, read-only array."""

import math
import reprlib
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.errors import DataError

MISSING = -1

# NumPy would drop the imaginary part of a complex number, and count the days of a date.
_NO_NUMBERS = "cmM"


def frozen[ArrayT: np.ndarray](array: ArrayT) -> ArrayT:
    """Return the array itself, made read-only."""
    array.flags.writeable = False
    return array


def numeric(values: Any, name: str) -> NDArray[np.float64]:
    """Return numbers as float64, or say which argument holds something else."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in _NO_NUMBERS:
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        got = reprlib.repr(values.tolist() if isinstance(values, np.ndarray) else values)
        raise DataError(f"{name} must be numbers; got {got}") from error


def check_between_0_and_1(value: Any, name: str) -> None:
    """Raise unless an argument is a number between 0 and 1, neither of them."""
    if not (isinstance(value, int | float | np.floating) and 0 < value < 1):
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}")


def check_integer(value: Any, name: str, *, least: int = 1) -> int:
    """Return an argument that is an integer and not too small, or raise."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")
    return int(value)


def checked_seed(random_seed: int | None) -> int | None:
    """Return a seed that NumPy takes, None for another one every time."""
    if random_seed is not None and (not isinstance(random_seed, Integral) or random_seed < 0):
        raise ValueError(f"random_seed must be None or an integer >= 0; got {random_seed!r}")
    return random_seed


def validate_outcomes(outcomes: ArrayLike) -> NDArray[np.int8] | NDArray[np.float64]:
    """Return a private copy: int8 categories with -1, or float64 scores with NaN."""
    try:
        array = np.asarray(outcomes)
    except ValueError as error:
        raise DataError(
            "outcomes must have as many questions and trials for every system, with -1 or NaN "
            "where one is missing; got rows of different lengths"
        ) from error
    if array.dtype.kind not in "biuf":
        array = numeric(outcomes, "outcomes")
    if array.ndim == 2:
        array = array[..., np.newaxis]
    if array.ndim != 3 or 0 in array.shape:
        raise DataError(
            "outcomes must have shape (system, question, trial) or (system, question), all "
            f"positive; got shape {np.shape(outcomes)}"
        )
    if array.dtype.kind != "f":
        return _categories(array)
    missing = np.isnan(array)
    known = array[~missing]
    if np.array_equal(known, np.floor(known)):
        return _categories(np.where(missing, MISSING, array))
    if known.min() < 0.0 or known.max() > 1.0:
        outside = known[(known < 0.0) | (known > 1.0)][0]
        raise DataError(
            "outcomes must be whole-number categories or scores in [0, 1]; "
            f"got {outside:g} among fractional numbers"
        )
    return frozen(np.array(array, dtype=np.float64))


def _categories(array: NDArray[Any]) -> NDArray[np.int8]:
    low, high = array.min(), array.max()
    if low < MISSING or high > np.iinfo(np.int8).max:
        raise DataError(
            "outcomes must be categories 0..127, or -1 for a missing trial; "
            f"got {low if low < MISSING else high:g}"
        )
    if high == MISSING:
        raise DataError("outcomes must have at least one observed trial; got none")
    return frozen(np.array(array, dtype=np.int8))


def validate_groups(groups: Sequence[Hashable] | None, n_questions: int) -> tuple[str, ...] | None:
    """Return one group label per question."""
    if groups is None:
        return None
    names = label_texts(groups, "groups")
    if len(names) != n_questions:
        raise DataError(
            f"groups must have {n_questions} labels, one per question; got {len(names)}"
        )
    return names


def validate_weights(
    weights: ArrayLike | None, outcomes: NDArray[np.int8] | NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return category weights, (0, 1) for binary outcomes without any."""
    top = max(int(outcomes.max()), 1)
    if weights is None:
        return frozen(np.array([0.0, 1.0])) if top == 1 else None
    worth = numeric(weights, "weights").copy()
    if worth.ndim != 1 or worth.size < 2 or not np.isfinite(worth).all():
        raise DataError(f"weights must be two or more finite numbers; got {weights!r}")
    if worth.size <= top:
        raise DataError(
            f"weights must have one number for each of the categories 0..{top}; got {worth.size}"
        )
    return frozen(worth)


def validate_prior_outcomes(
    prior_outcomes: ArrayLike | None, n_systems: int, n_questions: int, n_categories: int
) -> NDArray[np.int8] | None:
    """Return earlier outcomes as int8 with -1 for missing."""
    if prior_outcomes is None:
        return None
    raw = numeric(prior_outcomes, "prior_outcomes")
    if raw.shape[:-1] not in ((n_questions,), (n_systems, n_questions)) or not raw.size:
        raise DataError(
            f"prior_outcomes must have shape ({n_questions}, d) or ({n_systems}, {n_questions}, d);"
            f" got {raw.shape}"
        )
    raw = np.where(np.isnan(raw), MISSING, raw)
    valid = (raw >= MISSING) & (raw < n_categories) & (raw == np.floor(raw))
    if not valid.all():
        raise DataError(
            f"prior_outcomes must be categories 0..{n_categories - 1} or -1 for missing; "
            f"got {raw[~valid][0]:g}"
        )
    return frozen(raw.astype(np.int8))


def label_systems(systems: Sequence[Hashable] | None, size: int) -> tuple[str, ...]:
    """Return unique labels for `size` systems, numbered from 1 if none are given."""
    return unique_labels(systems, size, "systems", "system")


def unique_labels(
    labels: Sequence[Hashable] | None, size: int, argument: str, word: str
) -> tuple[str, ...]:
    """Return labels as unique strings, numbered from 1 if none are given.

    Raises
    ------
    DataError
        If `labels` has the wrong length, repeats a label, or is no sequence of labels.
    """
    if labels is None:
        return _numbered(word, size)
    names = label_texts(labels, argument)
    if len(names) != size:
        raise DataError(f"{argument} must have {size} labels, one per {word}; got {len(names)}")
    if len(set(names)) != size:
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"{argument} must be unique; got {twice!r} twice")
    return names


@lru_cache(maxsize=16)
def _numbered(word: str, size: int) -> tuple[str, ...]:
    return tuple(f"{word} {i + 1}" for i in range(size))


def label_texts(labels: Sequence[Hashable], argument: str) -> tuple[str, ...]:
    """Return labels as text, or say which argument holds something else."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise DataError(f"{argument} must be a sequence of labels; got {labels!r}")
    names = tuple(labels)
    for name in names:
        if name is None or (isinstance(name, float) and math.isnan(name)):
            raise DataError(f"{argument} must hold a label in every place; got {name!r}")
    return tuple(map(str, names))
