"""Wide tables, one column per system, as long ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bayesrank.columns import NAMES, Source, field_name
from bayesrank.declared_columns import DECLARED
from bayesrank.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

# What a column of a wide table can be beside a system.
_BESIDE = {name: kind for kind in ("question", "trial", "group") for name in NAMES[kind]}


def melt(frame: "pd.DataFrame", chosen: Mapping[str, str | None], source: Source) -> "pd.DataFrame":
    """Turn a table with one column per system into one with one row per outcome.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns for the question, the trial and the group, of which none is needed, under the names
        that :mod:`bayesrank.columns` knows or that the caller chose; without one for the question,
        every row is a question. All others are systems, or those that ``system`` lists.
    chosen : mapping of str to str
        Columns that the caller named.
    source : Source
        For messages.

    Returns
    -------
    pandas.DataFrame
        Columns system, question and outcome, and those beside the systems.

    Raises
    ------
    DataError
        If there is no system.
    """
    import pandas as pd

    if chosen.get("outcome") is not None:
        raise DataError(
            f"outcome must be None for wide tables, which have one in the column of each system; "
            f"got {chosen['outcome']!r}"
        )
    named = {
        name.strip()
        for kind in ("question", "trial", "group", "split_by", "pool")
        for name in (chosen.get(kind) or "").split(",")
    }
    known = DECLARED.union(_BESIDE)
    beside = [each for each in frame.columns if str(each) in named or field_name(each) in known]
    listed = [name.strip() for name in (chosen.get("system") or "").split(",") if name.strip()]
    unknown = [name for name in listed if name not in frame]
    if unknown:
        raise DataError(
            f"system must name columns of {', '.join(map(str, frame.columns))}; got "
            f"{unknown[0]!r}{source.where}"
        )
    systems = listed or [each for each in frame.columns if each not in beside]
    if not systems:
        raise DataError(
            f"{source.argument} must have a column for each system; got "
            f"{', '.join(map(str, frame.columns)) or 'none'}{source.where}"
        )
    n_rows = len(frame)
    columns = {name: np.tile(frame[name].astype(object), len(systems)) for name in beside}
    if not any(_BESIDE.get(field_name(each)) == "question" for each in beside) and not chosen.get(
        "question"
    ):
        columns["question"] = np.tile(np.arange(1, n_rows + 1), len(systems))
    outcome = [frame[name].astype(object).to_numpy() for name in systems]
    long = pd.DataFrame(
        {
            "system": np.repeat(np.array([str(name) for name in systems], dtype=object), n_rows),
            **columns,
            "outcome": np.concatenate(outcome),
        }
    )
    long.attrs |= frame.attrs
    return long
