"""Wide tables, with one column per system, question or trial, to one row per outcome."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesrank.columns import (
    DIRECTIONS,
    NAMES,
    SETTINGS,
    Source,
    column_of,
    field_name,
    refuse_lower,
)
from bayesrank.errors import DataError
from bayesrank.longtable import is_empty
from bayesrank.outcomes import DECLARED, holds_outcomes

if TYPE_CHECKING:
    import pandas as pd

# What pandas calls a column of a text that has no name.
_UNNAMED = re.compile(r"Unnamed: \d+")

# What the columns of several trials are called: run1, Seed 42, ...
_NUMBERED = re.compile(rf"({'|'.join(NAMES['trial'])})_?\d+")

# What a column of a wide table can be beside a system.
_BESIDE = {name: kind for kind in ("question", "trial", "group") for name in NAMES[kind]}


def melt(
    frame: "pd.DataFrame", chosen: Mapping[str, str | None], source: Source
) -> "tuple[pd.DataFrame, Mapping[str, str | None]]":
    """Turn a table with one column per system, question or trial into one row per outcome.

    Parameters
    ----------
    frame : pandas.DataFrame
        Optional columns for the question, the trial and the group, under the names that
        :mod:`bayesrank.columns` knows or that the caller chose; without a column for the question,
        every row is a question. All other columns are systems, or those that ``system`` lists. With
        a column for the system and none for the question, all other columns are questions; a single
        column that ``system`` names is then the column for the system. With both, columns such as
        run1 and run2 are trials.
    chosen : mapping of str to str
        Columns that the caller named.
    source : Source
        For messages.

    Returns
    -------
    table : pandas.DataFrame
        Columns system, question and outcome, and those beside the systems.
    chosen : mapping of str to str
        Columns of it that the caller named: what was listed for the systems are none.

    Raises
    ------
    DataError
        If there is no system.
    """
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
    listed = [name.strip() for name in (chosen.get("system") or "").split(",") if name.strip()]
    frame = _without_unnamed(frame, named.union(listed), source)
    known = DECLARED.union(_BESIDE, DIRECTIONS)
    beside = [each for each in frame.columns if str(each) in named or field_name(each) in known]
    unknown = [name for name in listed if name not in frame]
    if unknown:
        raise DataError(
            f"system must name columns of {', '.join(map(str, frame.columns))}; got "
            f"{unknown[0]!r}{source.where}"
        )
    asked = bool(chosen.get("question")) or any(
        _BESIDE.get(field_name(each)) == "question" for each in beside
    )
    usual = [each for each in frame.columns.drop(beside) if field_name(each) in NAMES["system"]]
    named_in = listed or usual
    numbered = {each: _NUMBERED.fullmatch(field_name(each)) for each in frame.columns}
    trials = {each: match[1] for each, match in numbered.items() if match is not None}
    if trials and asked and named_in and not trials.keys() & set(listed):
        kept = [each for each in frame.columns if each not in trials]
        return _melted(frame, next(iter(trials.values())), kept, source), chosen
    if usual and asked and not listed and not holds_outcomes(column_of(frame, usual[0])):
        others = ", ".join(str(each) for each in frame.columns.drop([*usual, *beside]))
        raise DataError(
            f"{source.argument} must have columns run1, run2, ... for the trials beside those for "
            f"the system and the question; got {others or 'none'}{source.where}: rename them, or "
            "name one by outcome=... without wide=True"
        )
    if len(named_in) == 1 and not asked:
        kept = [
            each for each in frame.columns if field_name(each) in SETTINGS and each not in named
        ]
        refuse_lower("outcome", *frame.columns.drop([*named_in, *beside, *kept]))
        return _melted(frame, "question", [*named_in, *beside, *kept], source), chosen
    systems = listed or [each for each in frame.columns if each not in beside]
    if not systems:
        raise DataError(
            f"{source.argument} must have a column for each system; got "
            f"{', '.join(map(str, frame.columns)) or 'none'}{source.where}"
        )
    if not asked:
        frame = frame.assign(question=np.arange(1, len(frame) + 1))
        beside = [*beside, "question"]
    return _melted(frame, "system", beside, source, systems), {**chosen, "system": None}


def _without_unnamed(
    frame: "pd.DataFrame", asked: Collection[str], source: Source
) -> "pd.DataFrame":
    """Leave out columns without a name that hold no values, as of spreadsheets, or number the rows.

    One with other values is often the index of a data frame, and neither a system nor a question.
    """
    unnamed = [
        each for each in frame.columns if _UNNAMED.fullmatch(str(each)) and str(each) not in asked
    ]
    for each in unnamed:
        column = column_of(frame, each)
        numbers = column.astype(str).tolist() == [str(row) for row in range(len(frame))]
        if not numbers and not is_empty(column).all():
            raise DataError(
                f"{source.argument} must name every column of a wide table; got "
                f"{column.iloc[0]}, ... in one without a name{source.where}: "
                f"leave it out, or pass question={str(each)!r} or system={str(each)!r} if it names "
                f"the questions or systems"
            )
    return frame.drop(columns=unnamed)


def _melted(
    frame: "pd.DataFrame",
    kind: str,
    beside: Sequence[Any],
    source: Source,
    melted: Sequence[Any] | None = None,
) -> "pd.DataFrame":
    """Put columns below one another, by default all but those beside them; the rest is repeated."""
    import pandas as pd

    chosen = [each for each in frame.columns if each not in beside] if melted is None else melted
    others = [each for each in chosen if not holds_outcomes(column_of(frame, each))]
    if others:
        named = ", or name those of the systems by system=... or of the questions by question=..."
        named = named if kind == "system" else ""
        left_out = "it out" if len(others) == 1 else f"out {', '.join(map(str, others))}"
        raise DataError(
            f"{source.argument} must have outcomes in all columns of a wide table but those for "
            f"the system, question, trial and group; got {frame[others[0]].iloc[0]!r} in "
            f"{str(others[0])!r}{source.where}: leave {left_out}{named}"
        )
    n_rows = len(frame)
    long = pd.DataFrame(
        {
            kind: np.repeat(np.array([str(name) for name in chosen], dtype=object), n_rows),
            **{name: np.tile(frame[name].astype(object), len(chosen)) for name in beside},
            "outcome": np.concatenate([frame[name].astype(object).to_numpy() for name in chosen]),
        }
    )
    long.attrs |= frame.attrs
    return long
