"""States of battles between which abilities differ: their groups, or periods of time."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.errors import DataError

Period = Literal["month", "week"] | float

_DAY = 86_400.0
_MOST_PERIODS = 1000


@dataclass(frozen=True)
class States:
    """The state of each battle.

    Attributes
    ----------
    codes : numpy.ndarray of int and shape (battle,)
        Number of the state; -1 where it is not known.
    names : tuple of str
        Names of the states.
    """

    codes: NDArray[np.integer[Any]]
    names: tuple[str, ...]


def groups_of(data: Battles) -> States:
    """Return the groups of battles, such as categories or languages.

    Parameters
    ----------
    data : Battles
        With groups; those of an empty name are not known.

    Returns
    -------
    States

    Raises
    ------
    DataError
        If the battles have no groups.

    Examples
    --------
    >>> log = Battles(["a", "a"], ["b", "c"], ["a", "tie"], group=["code", "prose"])
    >>> groups_of(log).names
    ('code', 'prose')
    """
    if data.group is None:
        raise DataError(
            "battles must have groups, such as their category or language; got none",
            in_python="pass group=, or call their column group, category, language or dataset",
            in_shell="call their column group, category, language or dataset in the table",
        )
    names = data.group.names
    kept = [name for name in names if name]
    place = np.array([kept.index(name) if name else -1 for name in names])
    if not kept:
        raise DataError("battles must have groups; got only empty names")
    return States(place[data.group.codes], tuple(kept))


def periods_of(data: Battles, period: Hashable) -> States:
    """Return the periods in which battles took place, those without any between them included.

    Parameters
    ----------
    data : Battles
        With times, in seconds since 1970.
    period : {"month", "week"} or float
        Calendar months or weeks from Monday on, in UTC; or a number of days.

    Returns
    -------
    States
        Named by their first day, months without it.

    Raises
    ------
    DataError
        If the battles have no times, or there are more than 1000 periods.
    ValueError
        If the period is another one.

    Examples
    --------
    >>> log = Battles(["a", "a"], ["b", "b"], ["a", "tie"], time=[0, 40 * 86_400])
    >>> periods_of(log, "month").names
    ('1970-01', '1970-02')
    """
    if data.time is None:
        raise DataError(
            "battles must have times for abilities over time; got none",
            in_python="pass time=, or call their column time, timestamp or date",
            in_shell="call their column time, timestamp or date in the table",
        )
    if period not in ("month", "week") and not _is_length(period):
        raise ValueError(f"period must be month, week or a positive number of days; got {period!r}")
    first, last = float(data.time.min()), float(data.time.max())
    days = 7.0 if period == "week" else 28.0 if period == "month" else float(str(period))
    if (last - first) / (days * _DAY) > _MOST_PERIODS:
        raise DataError(
            f"period must make at most {_MOST_PERIODS} periods of the time from first to last "
            f"battle; got {period!r} for {(last - first) / _DAY:,.0f} days"
        )
    seconds = data.time.astype("datetime64[s]")
    if period == "month":
        codes = seconds.astype("datetime64[M]").astype(np.int64)
    elif period == "week":  # the first Monday was the fifth day
        codes = np.floor_divide(data.time - 4 * _DAY, 7 * _DAY).astype(np.int64)
    else:
        codes = np.floor_divide(data.time - first, days * _DAY).astype(np.int64)
    codes = codes - codes.min()
    numbers = np.arange(int(codes.max()) + 1)
    start = seconds.min().astype("datetime64[D]")
    if period == "month":
        names = start.astype("datetime64[M]") + numbers
    elif period == "week":
        names = start - (start.astype(np.int64) - 4) % 7 + 7 * numbers
    else:
        moments = first + days * _DAY * numbers
        names = moments.astype("datetime64[s]")
        names = names.astype("datetime64[D]") if days >= 1.0 else names
    return States(codes, tuple(map(str, names)))


def _is_length(period: Hashable) -> bool:
    number = isinstance(period, int | float) and not isinstance(period, bool)
    return number and 0.0 < float(str(period)) < np.inf
