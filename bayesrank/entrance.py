"""The entrance of data: what :func:`bayesrank.rank` takes, every public function takes."""

from os import PathLike
from typing import Any

from bayesrank.battle_tables import is_battle_table
from bayesrank.battles import Battles
from bayesrank.columns import as_frame
from bayesrank.errors import DataError
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons


def as_data(data: Any) -> Responses | Comparisons | Ballots:
    """Return data for ranking: arrays, labelled arrays and tables become responses or battles.

    Raises
    ------
    DataError
        If it is something else.
    """
    if isinstance(data, str | PathLike):
        raise DataError(f"data must be outcomes; got {str(data)!r}: read files with read_data")
    if isinstance(data, Responses | Comparisons | Ballots):
        return data
    if hasattr(data, "dims") and hasattr(data, "coords"):
        return Responses.from_dataarray(data)
    if hasattr(data, "to_pandas") or (hasattr(data, "columns") and hasattr(data, "iloc")):
        frame = as_frame(data)
        battles = is_battle_table(frame.columns)
        return Battles.from_frame(frame) if battles else Responses.from_long(frame)
    return Responses(data)


def as_responses(data: Any, purpose: str) -> Responses:
    """Return responses from all data that :func:`bayesrank.rank` takes, which a purpose requires.

    Raises
    ------
    DataError
        If they are battles or ballots.
    """
    known = as_data(data)
    if not isinstance(known, Responses):
        raise DataError(f"data must be responses {purpose}; got {type(known).__name__.lower()}")
    return known


def as_comparisons(data: Any, purpose: str) -> Comparisons:
    """Return battles or comparisons from all data that :func:`bayesrank.rank` takes.

    Raises
    ------
    DataError
        If they are responses or ballots.
    """
    known = as_data(data)
    if not isinstance(known, Comparisons):
        raise DataError(f"data must be battles {purpose}; got {type(known).__name__.lower()}")
    return known
