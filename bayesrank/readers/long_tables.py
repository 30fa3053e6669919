"""Reader of long tables, one row per outcome: ``.csv``, ``.parquet``, ``.jsonl``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.readers.files import parse_json_lines
from bayesrank.readers.log_table import CELL, LogTable, build_table
from bayesrank.readers.outcome_values import outcome_number
from bayesrank.readers.selection import SELECTORS, Selection, choose

if TYPE_CHECKING:
    import pandas as pd

# Names of each column in the wild; the first one wins over the others.
ALIASES = {
    "system": ("system", "model"),
    "question": ("question", "item", "task_id", "sample_id", "doc_id", "instance_id", "id"),
    "trial": ("trial", "epoch", "run", "seed", "attempt"),
    "outcome": ("outcome", "score", "reward", "correct", "resolved", "value"),
    "group": ("group", "benchmark", "topic"),
}
OPTIONAL = frozenset({"trial", "group"})

NEEDED = frozenset(SELECTORS).union(*ALIASES.values())

# A run or a seed is the same one for all systems; an epoch or an attempt is just a number.
PAIRED_TRIALS = frozenset({"run", "seed"})
PAIRED, UNPAIRED, UNNAMED = "a run or seed", "a trial number", "no trial column"


def is_long_table(path: Path) -> bool:
    """Return whether a file is named as a table."""
    return path.suffix.lower() in {".csv", ".parquet", ".jsonl"}


def read_long_tables(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read long tables and put them below one another.

    Columns, in any case: system or model; question, item, task_id, sample_id, doc_id, instance_id
    or id (of several, one that numbers the rows is no question); trial, epoch, run, seed or
    attempt; outcome, score, reward, correct, resolved or value; optionally group, benchmark or
    topic. Other columns are ignored, but for ``task``, ``scorer``, ``filter`` and ``metric``, by
    which rows are chosen.

    Without a trial column, the rows of a system and question are its trials in order of
    appearance. Trials are paired if their column is called run or seed: then a value is the same
    run for all systems. If not, files that repeat each other's trial numbers add trials.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Tables.
    selection : Selection
        May name what the columns ``task``, ``scorer``, ``filter`` and ``metric`` hold.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a table is damaged, lacks a column or has several for one purpose, if a label is blank,
        or if a choice is left open.
    """
    import pandas as pd  # 0.3 s, only when a table is read

    tables = []
    kinds = set()
    for number, path in enumerate(paths):
        frame = read_frame(path)
        columns = _find_columns(frame, path)
        kinds.add(_trial_kind(columns.get("trial")))
        table = pd.DataFrame({name: frame[column] for name, column in columns.items()})
        tables.append(_clean(table, path).assign(file=number))
    if len(kinds) > 1:
        raise DataError(
            f"paths must count trials alike in all tables; got {' and '.join(sorted(kinds))}: name "
            "the column run where a trial is the same run for all systems, else trial"
        )
    table = pd.concat(tables, ignore_index=True)
    for name in table.columns.drop("outcome"):
        if table[name].isna().to_numpy().any():
            raise DataError(f"paths must have a column {name} in all tables or in none; got both")
    table = _number_trials(_select(table, selection), paired=kinds == {PAIRED})
    wrong = selection.count_as_wrong or ()
    return build_table(table, "table", paired=kinds == {PAIRED}, wrong=wrong)


def _trial_kind(column: str | None) -> str:
    if column is None:
        return UNNAMED
    return PAIRED if column in PAIRED_TRIALS else UNPAIRED


def read_frame(path: Path, *, every_column: bool = False) -> "pd.DataFrame":
    """Read a table as it is, fields of CSV files as text.

    Parameters
    ----------
    path : pathlib.Path
        A ``.csv``, ``.parquet`` or ``.jsonl`` file.
    every_column : bool, default False
        Whether to keep the case of column names, and the values of all columns. By default, names
        are in lower case, and JSON lines have values of the columns that outcomes need only.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    DataError
        If the file is damaged, has no row, or names a column twice.
    """
    try:
        frame = _parse(path, every_column)
    except DataError:
        raise
    # The parsers of pandas and pyarrow raise subclasses; KeyError comes from damaged metadata.
    except (ValueError, OSError, KeyError) as error:
        remedy = (
            "save the file as text in UTF-8"
            if isinstance(error, UnicodeDecodeError)
            else "the file may be cut off, or not in the format that its name says"
        )
        raise DataError(
            f"paths must be readable tables; got {' '.join(str(error).split())} in {path.name}: "
            f"{remedy}"
        ) from error
    names = [str(column).strip() for column in frame.columns]
    names = names if every_column else [name.lower() for name in names]
    if frame.empty:
        raise DataError(f"paths must hold at least one row; got none in {path.name}")
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise DataError(f"paths must name every column once; got {twice[0]!r} twice in {path.name}")
    return frame.set_axis(names, axis="columns")


def _parse(path: Path, every_column: bool) -> "pd.DataFrame":
    import pandas as pd

    suffix = path.suffix.lower()
    if suffix == ".csv":
        # As text: labels such as 007, 1e5 and NA are labels.
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
        if not isinstance(frame.index, pd.RangeIndex):  # pandas takes extra fields for labels
            raise DataError(
                f"paths must have as many fields in every row as names; got more in {path.name}"
            )
        return frame
    if suffix == ".parquet":
        return pd.read_parquet(path)
    if suffix == ".jsonl":
        lines = parse_json_lines(path)
        return pd.DataFrame.from_records(list(lines if every_column else map(_keep, lines)))
    raise DataError(
        f"paths must end in .csv, .parquet or .jsonl in format table; got {path.name!r}"
    )


def _keep(line: dict[str, Any]) -> dict[str, Any]:
    """Blank what is not needed, such as the text of an answer, which may be large."""
    return {name: line[name] if name.strip().lower() in NEEDED else None for name in line}


def _find_columns(frame: "pd.DataFrame", path: Path) -> dict[str, str]:
    """Map the standard names, and the selectors that are there, to the columns of a table."""
    columns = {name: name for name in SELECTORS if name in frame}
    for name, aliases in ALIASES.items():
        present = [alias for alias in aliases if alias in frame]
        if name == "question":
            present = _without_row_ids(frame, present)
        if len(present) > 1 and present[0] != name:
            raise DataError(
                f"paths must have one column for the {name}; got {', '.join(present)} in "
                f"{path.name}: rename the right one to {name}"
            )
        if present:
            columns[name] = present[0]
        elif name not in OPTIONAL:
            remedy = ": separate the columns by commas" if len(frame.columns) == 1 else ""
            raise DataError(
                f"paths must have a column for the {name}, called {' or '.join(aliases)}; got "
                f"{', '.join(frame.columns)} in {path.name}{remedy}"
            )
    return columns


def _without_row_ids(frame: "pd.DataFrame", names: list[str]) -> list[str]:
    """Leave out columns that have another value in every row, where one has not.

    Such are the uuids that logs give to every sample: no two systems would share a question.
    """
    if len(names) < 2:
        return names
    return [name for name in names if frame[name].astype(str).duplicated().any()] or names


def _clean(table: "pd.DataFrame", path: Path) -> "pd.DataFrame":
    """Make labels strings, refuse blank ones, and make outcomes numbers."""
    cleaned: dict[str, Any] = {}
    for name in table.columns.drop("outcome"):
        try:
            codes, found = table[name].factorize()
        except TypeError as error:  # lists and objects of JSON lines
            raise DataError(
                f"paths must name the {name} by text or a number; got {error} in {path.name}"
            ) from error
        known = [str(label).strip() for label in found.tolist()]
        labels = np.array([*known, ""], dtype=object)[codes]  # code -1, a missing label, is blank
        blank = labels == ""
        if blank.any():
            raise DataError(
                f"paths must name the {name} in every row; got a blank in row "
                f"{int(blank.argmax()) + 1} of {path.name}"
            )
        cleaned[name] = labels
    return table.assign(outcome=_numbers(table["outcome"], path), **cleaned)


def _numbers(outcome: Any, path: Path) -> NDArray[np.float64]:
    missing = np.asarray(outcome.isna())
    where = f"the outcome column of {path.name}"
    values = [
        None if blank else outcome_number(value, where)
        for value, blank in zip(outcome.tolist(), missing, strict=True)
    ]
    return np.array(values, dtype=np.float64)  # None becomes NaN


def _select(table: "pd.DataFrame", selection: Selection) -> "pd.DataFrame":
    """Keep the rows of the chosen task, scorer, filter and metric."""
    for name in SELECTORS:
        wanted = getattr(selection, name)
        if name in table:
            labels = table[name].to_numpy()
            kept = np.flatnonzero(labels == choose(name, labels.tolist(), wanted))
            table = table.take(kept).drop(columns=name)
        elif wanted is not None:
            raise DataError(
                f"{name} must be left out for tables without a column {name}; got {wanted!r}"
            )
    return table


def _number_trials(table: "pd.DataFrame", *, paired: bool) -> "pd.DataFrame":
    """Make trials numbers where they are not runs with names."""
    if "trial" in table:
        numbers = _as_numbers(table["trial"].tolist())
        named = table if numbers is None else table.assign(trial=numbers)
        if paired or np.asarray(named.duplicated(["file", *CELL])).any():
            return named  # repeated rows are refused by the checks of the whole table
        if numbers is not None and not np.asarray(named.duplicated(CELL)).any():
            return named
    return table.assign(trial=table.groupby(CELL[:2], sort=False).cumcount())


def _as_numbers(labels: list[str]) -> NDArray[Any] | None:
    """Return labels as numbers, whole ones if they all are, None if one is no number."""
    for kind in (int, float):
        try:
            numbers = np.array([kind(label) for label in labels])
        except ValueError:
            continue
        return None if kind is float and not np.isfinite(numbers).all() else numbers
    return None
