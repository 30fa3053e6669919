"""The number that a logged value stands for."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

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
# Of Excel and of pandas, too.
BLANKS = frozenset({"", "nan", "na", "n/a", "#n/a", "<na>", "null", "none"})

# pandas.DataFrame.attrs[DECIMAL_COMMA] is whether commas in a table can only be decimal.
DECIMAL_COMMA = "bayesrank decimal comma"

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
        Commas are read by :func:`with_points`, of a whole column.
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
    comma = isinstance(value, str) and "," in value and value.strip().strip("+-%")[:1].isdecimal()
    remedy = ": leave an outcome that is missing blank, and say why in a column such as error"
    if comma:
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
    return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)


def nested(column: "pd.Series") -> str:
    """Say what a column holds in place of single values."""
    objects = column.map(lambda each: isinstance(each, Mapping)).any()
    return "objects with fields of their own" if objects else "lists"


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
        raise DataError(
            f"outcomes must be one value in every row; got {nested(column)} for {where}"
        ) from error
    # Code -1, a missing value, takes the last one.
    values = with_points(found.tolist(), decimal=decimal)
    numbers = [_number_of(value) for value in values]
    if None in numbers:
        place = numbers.index(None)
        raise _no_outcome(values[place], f"{where}, {cell(int((codes == place).argmax()))}")
    return np.array([*numbers, np.nan])[codes]
