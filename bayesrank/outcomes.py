"""Outcomes: conversion of logged values to numbers, and their declared type."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.errors import DamagedFileError, DataError
from bayesrank.scale import UNIT, Scale, as_scale
from bayesrank.validation import MISSING, frozen, numeric, without_mask

if TYPE_CHECKING:
    import pandas as pd

# Labels of the cell at an index (system, question), for messages.
type Where = Callable[[int, int], str]

_TOP_CATEGORY = int(np.iinfo(np.int8).max)

# Keywords that say what outcomes are.
DECLARATIONS = frozenset({"weights", "scale", "categories"})
# Names of columns that do are those keywords after a prefix.
_PREFIX = "outcome_"
DECLARED = frozenset(f"{_PREFIX}{name}" for name in DECLARATIONS)

_SCALE = "scale=(low, high) for scores (higher is better) such as ratings and percentages"
_WEIGHTS = "weights=(w0, w1, ...) for categories 0, 1, ... that are worth so much each"
_COUNTED = "divide numbers of right answers by those of all answers (a column total does so)"
# Ends remedies in Python, since data also come to `bayesrank.rank` as they are.
TO_WHOM = "to Responses, to Responses.from_long, or to the function that reads the data"

# The letters and words of inspect_ai's value_to_float: correct, partial, incorrect, no answer.
WORTH = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
RIGHT = ("yes", "true", "y", "t", "pass", "passed", "correct", "right", "success", "✓", "✔", "✅")
WRONG = ("no", "false", "n", "f", "fail", "failed", "incorrect", "wrong", "failure", "✗", "✘", "❌")
WORDS = {
    **dict.fromkeys(RIGHT, 1.0),
    **dict.fromkeys(WRONG, 0.0),
    **dict.fromkeys(("resolved", "solved"), 1.0),
    **dict.fromkeys(("unresolved", "unsolved"), 0.0),
}
# Of Excel, of pandas and of leaderboards, too.
_SIGNS = {"", "-", "--", ".", "\u2013", "\u2014"}
BLANKS = _SIGNS.union({"nan", "na", "n/a", "n.a.", "#n/a", "<na>", "null", "none"})

# pandas.DataFrame.attrs[DECIMAL_COMMA] is whether commas in a table can only be decimal.
DECIMAL_COMMA = "bayesrank decimal comma"

# The text of a list of values.
_LIST = re.compile(r"\s*\[([^\[\]{}]*)\]\s*")

_WITH_COMMA = re.compile(r"[+-]?\d*,\d+\s*%?")
# What a comma may also be: a separator of thousands.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}\s*%?")
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+\s*%?")


def with_points(values: Iterable[object], *, decimal: bool = False) -> list[object]:
    """Return the values of a column with points for its decimal commas.

    Parameters
    ----------
    values : iterable of object
        Different values of one column. A comma is a decimal one unless it may separate thousands in
        all of them, or others have points.
    decimal : bool, default False
        Whether it certainly separates no thousands.

    Returns
    -------
    list of object

    Examples
    --------
    >>> with_points(["0,875", "1,000", "1"]), with_points(["1,000", "2,500"])
    (['0.875', '1.000', '1'], ['1,000', '2,500'])
    """
    given = list(values)
    texts = [each.strip() for each in given if isinstance(each, str)]
    commas = [text for text in texts if _WITH_COMMA.fullmatch(text)]
    open_to_doubt = not decimal and all(map(_THOUSANDS.fullmatch, commas))
    if open_to_doubt or any(map(_WITH_POINT.fullmatch, texts)):
        return given
    return [
        each.replace(",", ".")
        if isinstance(each, str) and _WITH_COMMA.fullmatch(each.strip())
        else each
        for each in given
    ]


def outcome_number(value: object, where: str) -> float:
    """Turn a logged value into an outcome, NaN when it is missing.

    Parameters
    ----------
    value : object
        A bool, a number, None, or a string: ``C``, ``P``, ``I`` and ``N`` are worth 1, 0.5, 0 and
        0; yes, true, pass, passed, correct, right, success, resolved and solved 1, and their
        opposites 0, in any case; blanks and ``nan`` are missing; numbers are read, ``85%`` as 0.85.
        Commas are read by :func:`with_points`, of a whole column; in one without ``C`` and ``I``,
        ``P`` is a pass.
    where : str
        What holds the value, for the message.

    Returns
    -------
    float

    Raises
    ------
    DataError
        If the value stands for no number.

    Examples
    --------
    >>> [outcome_number(value, "a test") for value in ("C", "P", "pass", "0.25", None)]
    [1.0, 0.5, 1.0, 0.25, nan]
    """
    number = _number_of(value)
    if number is None:
        raise _no_outcome(value, where)
    return number


def _number_of(value: object) -> float | None:
    """Return the number that a value stands for, None where it stands for none."""
    if value is None:
        return math.nan
    try:
        if isinstance(value, bool | int | float | Decimal | np.generic):
            return float(value)
        if isinstance(value, str):
            return _number(value.strip())
    except (OverflowError, TypeError, ValueError):
        pass  # as every other unknown value
    return None


def _no_outcome(value: object, where: str) -> DataError:
    """Return the error that a value stands for no number."""
    shown = repr(value)
    remedy = ": leave an outcome that is missing blank, and say why in a column such as error"
    if isinstance(value, str) and value.strip().strip("+-%'\"")[:1].isdecimal():
        remedy = ": write the number only, with a column total for the one that it is divided by"
        if "," in value:
            remedy = ": write decimals with a point, and thousands without a separator"
    return DataError(
        "outcomes must be numbers, truth values, one of C, P, I, N, or words such as pass or "
        f"fail; got {shown if len(shown) < 80 else shown[:77] + '...'} for {where}{remedy}"
    )


def _number(text: str) -> float:
    if text in WORTH:
        return WORTH[text]
    word = text.lower()
    if word in WORDS:
        return WORDS[word]
    if word in BLANKS:
        return math.nan
    text = text.replace("\u2212", "-")  # the minus of spreadsheets
    return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)


def nested(column: "pd.Series") -> tuple[str, str]:
    """Say what a column holds in place of single values, and a remedy."""
    example = next((each for each in column if isinstance(each, Mapping)), None)
    if example is None:
        return "lists", "write a row for each element"
    field = next(iter(example), "field")
    return "objects with fields of their own", f"name one of these, as '{column.name}.{field}'"


def outcome_numbers(
    column: "pd.Series",
    where: str,
    *,
    decimal: bool = False,
    cell: Callable[[int], str] = lambda row: f"row {row + 1}",
) -> NDArray[np.float64]:
    """Turn a column of logged values into outcomes.

    Parameters
    ----------
    column : pandas.Series
        Values as of :func:`outcome_number`, or with decimal commas; each is looked at once.
    where : str
        What holds the values, for the message.
    decimal : bool, default False
        Whether commas can only be decimal.
    cell : callable, optional
        What a row is, for the message; by default its number.

    Returns
    -------
    numpy.ndarray of shape (row,)

    Raises
    ------
    DataError
        If a value stands for no number.

    Examples
    --------
    >>> import pandas as pd
    >>> outcome_numbers(pd.Series(["pass", "fail", None]), "a test")
    array([ 1.,  0., nan])
    """
    if column.dtype.kind in "biuf":
        return column.to_numpy(np.float64, na_value=np.nan)
    try:
        codes, found = column.factorize()
    except TypeError as error:  # lists and objects of JSON
        found, remedy = nested(column)
        raise DataError(
            f"outcomes must be one value in every row; got {found} for {where}: {remedy}"
        ) from error
    # Code -1, a missing value, takes the last one.
    values = with_points(found.tolist(), decimal=decimal)
    texts = [str(value).strip() for value in values]
    if not {"C", "I"}.intersection(texts):  # P is not partly correct, but a pass
        values = ["pass" if text == "P" else each for each, text in zip(values, texts, strict=True)]
    numbers = [_number_of(value) for value in values]
    if None in numbers:
        place = numbers.index(None)
        raise _no_outcome(values[place], f"{where}, {cell(int((codes == place).argmax()))}")
    return np.array([*numbers, np.nan])[codes]


def elements_of(value: object) -> list[object] | None:
    """Return the elements of a list or of its text, None for any other value.

    Examples
    --------
    >>> elements_of("[1, 0]"), elements_of((True, None)), elements_of("1, 0")
    (['1', '0'], [True, None], None)
    """
    if isinstance(value, str):
        match = _LIST.fullmatch(value)
        if match is None:
            return None
        texts = match[1].split(",") if match[1].strip() else []
        return [text.strip().strip("'\"") for text in texts]
    return list(value) if isinstance(value, list | tuple | np.ndarray) else None


def holds_outcomes(column: "pd.Series") -> bool:
    """Return whether a value of a column stands for outcomes, or all are missing."""
    text = False
    for value in column.dropna():
        if elements_of(value):
            return True
        number = _number_of(with_points([value], decimal=True)[0])
        if number is not None and not math.isnan(number):
            return True
        text |= number is None
    return not text


def outcome_array(outcomes: ArrayLike) -> NDArray[Any]:
    """Return outcomes as numbers or booleans of shape (system, question, trial)."""
    try:
        array = without_mask(outcomes)
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
    return array


class Outcomes(NamedTuple):
    """Outcomes as given, and their type.

    `values` are int8 categories with -1 where a trial is missing, or float64 scores in the units of
    `scale` with NaN; both are private copies. `scale` is None for categories, whose `weights` may
    be None too.
    """

    values: NDArray[np.int8] | NDArray[np.float64]
    scale: Scale | None
    weights: NDArray[np.float64] | None
    n_categories: int


def validate_outcomes(
    array: NDArray[Any],
    *,
    weights: ArrayLike | None,
    scale: ArrayLike | None,
    categories: int | None,
    where: Where,
) -> Outcomes:
    """Check outcomes against their declaration.

    Parameters
    ----------
    array : numpy.ndarray of shape (system, question, trial)
        What :func:`outcome_array` returned.
    weights, scale, categories
        As in :class:`bayesrank.Responses`.
    where : callable
        Names the cell at an index.

    Returns
    -------
    Outcomes

    Raises
    ------
    DataError
        If they are not what was declared; or are neither 0 and 1 nor fractions, and nothing was.
    """
    declared = {"weights": weights, "categories": categories}
    if scale is not None:
        refuse(declared, "must be None for scores on a scale")
        ends = as_scale(scale)
        return Outcomes(_scores(array, ends, where), ends, None, 2)
    are_whole = array.dtype.kind != "f"
    if not are_whole:
        if (infinite := np.isinf(array)).any():
            raise DataError(
                f"outcomes must be finite; got {_first(array, infinite, where)}: leave missing "
                "outcomes empty"
            )
        are_whole = np.array_equal(array, np.floor(array), equal_nan=True)
    if are_whole:
        values = _categories(array, weights is not None or categories is not None, where)
        return Outcomes(values, None, *_worths(weights, categories, values))
    refuse(declared, "must be None for fractional outcomes, which are their own worth")
    return Outcomes(_fractions(array, where), UNIT, None, 2)


def refuse(arguments: Mapping[str, object], why: str) -> None:
    """Raise for the first argument that was given."""
    for name, value in arguments.items():
        if value is not None:
            raise DataError(f"{name} {why}; got {value!r}")


def _fractions(array: NDArray[Any], where: Where) -> NDArray[np.float64]:
    outside = (array < UNIT.low) | (array > UNIT.high)
    if outside.any():
        raise DataError(
            "outcomes must lie in [0, 1] unless a scale is named; got "
            f"{_first(array, outside, where)}",
            in_python=f"pass {_SCALE}, {TO_WHOM}",
            in_shell=f"pass {_SCALE}",
        )
    return frozen(np.array(array, dtype=np.float64))


def _scores(array: NDArray[Any], scale: Scale, where: Where) -> NDArray[np.float64]:
    values = np.array(array, dtype=np.float64)
    # Whole numbers have no NaN.
    if array.dtype.kind == "i" and not scale.low <= MISSING <= scale.high:
        values[array == MISSING] = np.nan
    outside = (values < scale.low) | (values > scale.high)
    if outside.any():
        raise DataError(
            f"outcomes must lie on the scale {scale}; got {_first(values, outside, where)}: "
            "correct the outcome or the scale, and leave missing outcomes empty"
        )
    if np.isnan(values).all():
        raise DataError("outcomes must have at least one observed trial; got none")
    return frozen(values)


def _categories(array: NDArray[Any], declared: bool, where: Where) -> NDArray[np.int8]:
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), MISSING, array)
    low, high = array.min(), array.max()
    if not declared and (low < MISSING or high > 1):
        undeclared = (array < MISSING) | (array > 1)
        raise DataError(
            "outcomes must be 0 and 1 unless a scale or categories are named; got "
            f"{_first(array, undeclared, where)}",
            in_python=f"pass {_SCALE}, or {_WEIGHTS}, {TO_WHOM}; {_COUNTED}",
            in_shell=f"pass {_SCALE}, or {_WEIGHTS}; {_COUNTED}",
        )
    if low < MISSING or high > _TOP_CATEGORY:
        wrong = (array < MISSING) | (array > _TOP_CATEGORY)
        raise DataError(
            f"outcomes must be categories 0..{_TOP_CATEGORY}, or -1 for a missing trial; got "
            f"{_first(array, wrong, where)}"
        )
    if high == MISSING:
        raise DataError("outcomes must have at least one observed trial; got none")
    return frozen(np.array(array, dtype=np.int8))


def _first(array: NDArray[Any], wrong: NDArray[np.bool_], where: Where) -> str:
    """Return the first wrong value, and for whom it is."""
    system, question, trial = np.argwhere(wrong)[0].tolist()
    return f"{array[system, question, trial]:g} for {where(system, question)}"


def _worths(
    weights: ArrayLike | None, categories: int | None, outcomes: NDArray[np.int8]
) -> tuple[NDArray[np.float64] | None, int]:
    """Return category weights, (0, 1) for two categories without any, and their number."""
    top = max(int(outcomes.max()), 1)
    if weights is None:
        number = top + 1 if categories is None else _category_count(categories, top)
        return (frozen(np.array([0.0, 1.0])) if number == 2 else None), number
    refuse({"categories": categories}, "must be None where weights are given")
    worth = numeric(weights, "weights").copy()
    if worth.ndim != 1 or worth.size < 2 or not np.isfinite(worth).all():
        raise DataError(f"weights must be two or more finite numbers; got {weights!r}")
    if worth.size <= top:
        raise DataError(
            f"weights must have one number for each of the categories 0..{top}; got {worth.size}"
        )
    return frozen(worth), worth.size


def _category_count(number: Any, top: int) -> int:
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not whole or not top < number <= _TOP_CATEGORY + 1:
        raise DataError(
            f"categories must be a whole number from {top + 1} to {_TOP_CATEGORY + 1}; got "
            f"{number!r}"
        )
    return int(number)


def cut(values: NDArray[Any], observed: NDArray[np.bool_], edges: ArrayLike) -> NDArray[np.intp]:
    """Return the category of each value: how many edges it has reached, -1 if not observed."""
    bounds = np.atleast_1d(numeric(edges, "edges"))
    if bounds.ndim != 1 or not bounds.size or not np.isfinite(bounds).all():
        raise DataError(f"edges must be one or more finite numbers; got {edges!r}")
    if not np.all(np.diff(bounds) > 0):
        raise DataError(f"edges must increase; got {edges!r}")
    return np.where(observed, np.searchsorted(bounds, values, side="right"), MISSING)


def validate_prior_outcomes(
    prior_outcomes: ArrayLike | None, n_systems: int, n_questions: int, n_categories: int
) -> NDArray[np.int8] | None:
    """Return earlier outcomes as int8 of shape (system, question, d) or (question, d).

    One outcome of each system and question may come without the last axis; missing ones are -1.
    """
    if prior_outcomes is None:
        return None
    raw = numeric(prior_outcomes, "prior_outcomes")
    if raw.shape == (n_systems, n_questions):
        if n_systems == n_questions:
            raise DataError(
                f"prior_outcomes of shape {raw.shape} must have a third axis where systems and "
                "questions are as many: (system, question, 1) for one set of each system, or "
                "(1, question, d) for one that all share"
            )
        raw = raw[..., np.newaxis]
    if raw.ndim == 3 and len(raw) == 1:
        raw = raw[0]
    if raw.shape[:-1] not in ((n_questions,), (n_systems, n_questions)) or not raw.size:
        raise DataError(
            f"prior_outcomes must have shape ({n_questions}, d) for one set that all systems "
            f"share, or ({n_systems}, {n_questions}) or ({n_systems}, {n_questions}, d); "
            f"got {raw.shape}"
        )
    raw = np.where(np.isnan(raw), MISSING, raw)
    valid = (raw >= MISSING) & (raw < n_categories) & (raw == np.floor(raw))
    if not valid.all():
        raise DataError(
            f"prior_outcomes must be categories 0..{n_categories - 1} or -1 for missing; "
            f"got {raw[~valid][0]:g}"
        )
    return frozen(raw.astype(np.int8))


def declared_columns(declared: Mapping[str, Any]) -> dict[str, str]:
    """Return columns of one text each for keywords that say what outcomes are.

    Examples
    --------
    >>> declared_columns({"scale": (1.0, 10.0), "weights": None})
    {'outcome_scale': '1.0,10.0'}
    """
    return {
        f"{_PREFIX}{name}": str(value)
        if isinstance(value, int)
        else ",".join(repr(float(each)) for each in value)
        for name, value in declared.items()
        if value is not None
    }


def read_declared(columns: "Mapping[str, pd.Series]", where: str) -> dict[str, Any]:
    """Return the keywords of Responses that columns of a table, those in `DECLARED`, declare.

    DamagedFileError, with `where` at its end, if rows of a column differ or it holds no numbers.
    """
    found: dict[str, Any] = {}
    for name, column in columns.items():
        texts = column.astype(str).unique().tolist()
        try:
            (text,) = texts
            numbers = tuple(float(each) for each in str(text).split(","))
        except ValueError as error:
            raise DamagedFileError(
                f"{name} must hold the same numbers in every row, such as 1,10; got "
                f"{', '.join(map(repr, texts[:2]))}{where}"
            ) from error
        keyword = name.removeprefix(_PREFIX)
        found[keyword] = int(numbers[0]) if keyword == "categories" else numbers
    return found


def declared_alike(declared: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return what all tables declare, or raise DataError where they differ."""
    if any(each != declared[0] for each in declared):
        raise DataError(
            "paths must declare what outcomes are alike in all tables; got "
            f"{' and '.join(repr(dict(each)) for each in declared[:2])}: read them one at a time"
        )
    return declared[0]
