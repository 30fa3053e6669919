"""Times of battles, as arenas and spreadsheets write them."""

import logging
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.style import as_numbers

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("bayesrank")

# Nanoseconds, microseconds and milliseconds, which programs write as well as seconds since 1970:
# a number that is 1973 or later in them would be after the year 5100 in the next larger unit.
_UNITS, _EARLIEST = (1e9, 1e6, 1e3), 1e8

# A date that begins with two numbers, day and month in either order.
_DAY_AND_MONTH = r"^\s*(\d{1,2})([./-])(\d{1,2})[./-]\d{2}"


def read_times(column: "pd.Series", source: str) -> NDArray[np.float64]:
    """Return times as seconds; numbers of today's dates tell whether they are smaller units."""
    import pandas as pd

    if column.dtype.kind != "M":
        numbers = as_numbers(column)
        if np.isfinite(numbers).all():
            largest = np.abs(numbers).max(initial=0.0)
            return numbers / next((unit for unit in _UNITS if largest >= _EARLIEST * unit), 1.0)
    try:
        when = pd.DatetimeIndex(_as_times(column, source))
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"time must be times; got {error} in {source}") from error
    if when.hasnans:
        raise DataError(f"time must be given for every battle; got blanks in {source}")
    return np.asarray(
        (when - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1), dtype=np.float64
    )


def _as_times(column: "pd.Series", source: str) -> "pd.Series":
    """Read times: ISO 8601, or dates whose days and months have one order in all rows."""
    import pandas as pd

    try:
        return pd.to_datetime(column, utc=True, format="ISO8601")
    except (TypeError, ValueError):
        texts = pd.Series(column.astype(str))
    parts = texts.str.extract(_DAY_AND_MONTH)
    one, two = (parts[place].astype(float) for place in (0, 2))
    first, second = one > 12, two > 12
    if first.any() and second.any():
        raise DataError(
            f"time must have its days and months in one order; got {texts.loc[first].iloc[0]!r} "
            f"and {texts.loc[second].iloc[0]!r} in {source}: write them as 2026-01-31"
        )
    # Dots are of languages that write the day first.
    day_first = bool(first.any() or ((parts[1] == ".").any() and not second.any()))
    if not (first.any() or second.any()) and (one != two)[one.notna()].any():
        example = texts.loc[one.notna() & (one != two)].iloc[0]
        order = "day" if day_first else "month"
        logger.info(f"Times such as {example!r} are read with the {order} first in {source}")
    return pd.to_datetime(column, utc=True, format="mixed", dayfirst=day_first)
