"""Columns in which a table says what its outcomes are: their scale, weights or categories."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bayesrank.errors import DamagedFileError, DataError
from bayesrank.outcomes import DECLARATIONS

if TYPE_CHECKING:
    import pandas as pd

# Before the keyword of Responses.
_PREFIX = "outcome_"
DECLARED = frozenset(f"{_PREFIX}{name}" for name in DECLARATIONS)


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
    """Return the keywords of Responses that columns declare.

    Parameters
    ----------
    columns : mapping of str to pandas.Series
        By their names, those of a table that are in `DECLARED`.
    where : str
        Ends a message.

    Returns
    -------
    dict

    Raises
    ------
    DamagedFileError
        If rows of a column differ, or it holds no numbers.
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
