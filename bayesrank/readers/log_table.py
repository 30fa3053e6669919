"""The long table that every reader of logs returns, checked once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Remedies where two systems have one name.
RENAME_ONE = {
    "in_python": "read them apart with read_table, rename one system, and join the frames with "
    "Responses.from_long",
    "in_shell": "name them apart, or as one long table with a name for each system",
}

CELL = ["system", "question", "trial"]
COLUMNS = [*CELL, "outcome"]


@dataclass(frozen=True)
class LogTable:
    """Outcomes read from logs, before they become responses.

    Attributes
    ----------
    frame : pandas.DataFrame
        Columns system, question, trial, outcome (NaN = missing), group where the logs have groups
        of questions, and `details`; systems and questions are strings.
    source : str
        Name of the format.
    n_missing : int
        Missing outcomes of the (system, question, trial) array: known to be missing, or without a
        row.
    paired : bool
        Whether a trial is the same run for all systems.
    message : str
        What was read and what is missing, in one sentence.
    details : tuple of str
        Further columns, which say how an outcome came about.
    """

    frame: "pd.DataFrame"
    source: str
    n_missing: int
    paired: bool
    message: str
    details: tuple[str, ...] = ()

    def to_dataarray(self) -> "xr.DataArray":
        """Return the outcomes with what the logs say of each of them as coordinates.

        Returns
        -------
        xarray.DataArray
            Dims system, question and trial, NaN where an outcome is missing; a coordinate of all
            three dims for each of `details`, and ``group`` by question where there are groups.
            :meth:`bayesrank.Responses.from_dataarray` takes it.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = [("a", "q", 0, 1.0, "token"), ("a", "q", 1, 0.0, "")]
        >>> frame = pd.DataFrame(rows, columns=["system", "question", "trial", "outcome", "limit"])
        >>> table = LogTable(frame, "inspect", 0, False, "", details=("limit",))
        >>> table.to_dataarray().coords["limit"].sel(trial=0).item()
        'token'
        """
        import xarray as xr  # 0.5 s, only when asked for

        coords, index = {}, []
        for name in CELL:
            codes, labels = self.frame[name].factorize(sort=name == "trial")
            coords[name] = labels.tolist()
            index.append(codes)
        shape = tuple(len(labels) for labels in coords.values())
        outcomes = np.full(shape, np.nan)
        outcomes[tuple(index)] = self.frame["outcome"]
        for name in self.details:
            values = np.full(shape, "", dtype=object)
            values[tuple(index)] = self.frame[name]
            coords[name] = (CELL, values)
        if "group" in self.frame:
            first = self.frame.drop_duplicates("question")
            coords["group"] = ("question", first["group"].to_numpy())
        return xr.DataArray(outcomes, coords, CELL, name="outcome")


def build_table(
    frame: "pd.DataFrame", source: str, *, paired: bool, details: Sequence[str] = ()
) -> LogTable:
    """Check a long table and count what is missing.

    Questions to which no system has an outcome say nothing and are left out; the message counts
    them.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns system, question, trial, outcome, `details` and, optionally, group.
    source : str
        Name of the format.
    paired : bool
        Whether a trial is the same run for all systems.
    details : sequence of str, optional
        Further columns to keep.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If there is no outcome at all or none of a system, or if a (system, question, trial) occurs
        twice.
    """
    _check_cells(frame)
    _check_outcomes(frame)
    observed = _observed(frame)
    answered = np.asarray(frame["question"].isin(list(set(frame["question"].to_numpy()[observed]))))
    columns = [*COLUMNS, *["group"] * ("group" in frame), *details]
    kept = frame.take(np.flatnonzero(answered)).reset_index(drop=True).reindex(columns=columns)
    n_systems, n_questions, n_trials = (_distinct(kept[column]) for column in CELL)
    n_missing = n_systems * n_questions * n_trials - int(observed.sum())
    message = describe((n_systems, n_questions, n_trials), n_missing)
    n_unanswered = _distinct(frame["question"]) - n_questions
    if n_unanswered:
        message += f"; {_count(n_unanswered, 'question')} without any outcome left out"
    return LogTable(kept, source, n_missing, paired, message, tuple(details))


def describe(shape: tuple[int, int, int], n_missing: int) -> str:
    """Say how much was read and how much is missing.

    Parameters
    ----------
    shape : tuple of int
        Numbers of systems, questions and trials.
    n_missing : int
        Missing outcomes among them.

    Returns
    -------
    str

    Examples
    --------
    >>> describe((3, 12, 4), 5)
    '3 systems, 12 questions, 4 trials; 5 of 144 outcomes missing'
    """
    sizes = ", ".join(map(_count, shape, ("system", "question", "trial")))
    return f"{sizes}; {n_missing} of {_count(math.prod(shape), 'outcome')} missing"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _distinct(column: Any) -> int:
    return len(set(column.tolist()))


def _observed(frame: "pd.DataFrame") -> NDArray[np.bool_]:
    return ~np.isnan(frame["outcome"].to_numpy(dtype=np.float64))


def _check_cells(frame: "pd.DataFrame") -> None:
    repeated = np.asarray(frame.duplicated(CELL))
    if repeated.any():
        cell = frame.iloc[repeated.argmax()]
        raise DataError(
            "paths must hold one outcome per system, question and trial; got more for "
            f"{_where(cell)}, trial {cell['trial']}: remove the copies or number the repeats as "
            "trials"
        )


def _check_outcomes(frame: "pd.DataFrame") -> None:
    known = _observed(frame)
    if not known.any():
        raise DataError(
            f"paths must hold at least one outcome; got {_count(len(frame), 'row')} without any"
        )
    systems = frame["system"].to_numpy()
    silent = ~np.asarray(frame["system"].isin(list(set(systems[known]))))
    if silent.any():
        raise DataError(
            "paths must hold an outcome of every system; got none for "
            f"{systems[silent.argmax()]!r}: leave out its logs"
        )


def refuse_negative(frame: "pd.DataFrame") -> None:
    """Raise for a negative outcome, which no log has but for missing ones, or on a scale."""
    negative = frame["outcome"].to_numpy(dtype=np.float64) < 0.0
    if negative.any():
        row = frame.iloc[negative.argmax()]
        raise DataError(
            "outcome must not be negative unless a scale is named; got "
            f"{row['outcome']:g} for {_where(row)}: leave missing ones empty, or pass "
            "scale=(low, high) for scores"
        )


def _where(row: Any) -> str:
    return f"system {row['system']!r}, question {row['question']!r}"
