"""Reader of tables, one row per outcome or, wide ones, one column per system."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.columns import COLUMNS, NAMES, QUESTIONS, Source, column_of, field_name
from bayesrank.errors import DataError
from bayesrank.readers.log_table import LogTable, build_table
from bayesrank.readers.opening import plain_name, plain_suffix
from bayesrank.readers.selection import SELECTORS, Selection, choose
from bayesrank.readers.table_files import SUFFIXES, column_names, free_columns, read_frame
from bayesrank.standard_table import StandardTable, standardize, tell_apart
from bayesrank.trial_numbers import number_trials
from bayesrank.wide_table import melt

if TYPE_CHECKING:
    import pandas as pd

PAIRED, UNPAIRED, UNNAMED = "a run or seed", "a trial number", "no trial column"


def is_long_table(path: Path) -> bool:
    """Return whether a file is named as a table and has the columns of one."""
    if plain_suffix(path) not in SUFFIXES:
        return False
    names = {field_name(name) for name in column_names(path)}
    known = {kind: set(NAMES[kind]) for kind in ("system", "question", "outcome")}
    known["question"] |= set(QUESTIONS)
    return all(names & aliases for aliases in known.values())


def read_long_tables(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read tables and put them below one another.

    Columns, in any case: those that :data:`bayesrank.columns.NAMES` knows for the system, the
    question, the trial, the outcome and the group, or those that the selection names. Of several
    for the question, one that numbers the rows is none. Where ids start anew in each group of
    questions, the group is part of the question. Rows are chosen by the columns ``task``,
    ``scorer``, ``filter`` and ``metric``; without a choice, the task is a group.

    Without a trial column, the rows of a system and question are its trials in order of
    appearance. Trials are paired if their column is called run or seed: then a value is the same
    run for all systems. If not, files that repeat each other's trial numbers add trials.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Tables.
    selection : Selection
        May name columns, and what the columns ``task``, ``scorer``, ``filter`` and ``metric`` hold.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a table is damaged, lacks a column or has several for one purpose, if a label is blank,
        or if a choice is left open.
    """
    chosen = {name: getattr(selection, name) for name in COLUMNS}
    asked = {field_name(name) for text in chosen.values() for name in (text or "").split(",")}
    needed = asked.union(SELECTORS, QUESTIONS, *NAMES.values())
    frames = [
        read_frame(
            path, needed=lambda name: field_name(name) in needed, every_column=selection.wide
        )
        for path in paths
    ]
    if "file" in asked:
        frames = [
            frame if _column(frame, "file") else frame.assign(file=Path(plain_name(path)).stem)
            for frame, path in zip(frames, paths, strict=True)
        ]
    frames = _select(frames, selection)
    tables = []
    for path in paths:
        frame = frames.pop(0)  # large tables are not kept twice
        if len(frame):
            source = Source("paths", f" in {path.name}")
            tables.append(_standard(frame, chosen, source, wide=selection.wide))
        del frame
    free_columns()
    whole, files = _below(tables)
    read = number_trials(tell_apart(whole, Source("paths")), Source("paths"), files)
    wrong = selection.count_as_wrong or ()
    table = build_table(read.frame, "table", paired=read.paired, wrong=wrong)
    return replace(table, message="; ".join([table.message, *read.notes]))


def _standard(
    frame: "pd.DataFrame", chosen: dict[str, Any], source: Source, *, wide: bool
) -> StandardTable:
    if not wide:
        return standardize(frame, chosen, source)
    # What is listed for the systems are columns of the wide table.
    return standardize(melt(frame, chosen, source), chosen | {"system": None}, source)


def _trial_kind(table: StandardTable) -> str:
    if "trial" not in table.frame:
        return UNNAMED
    return PAIRED if table.paired else UNPAIRED


def _below(tables: Sequence[StandardTable]) -> "tuple[StandardTable, NDArray[np.int64] | None]":
    """Put tables below one another; also return which row is of which, if there are several."""
    import pandas as pd

    if len(tables) == 1:
        return tables[0], None
    kinds = {_trial_kind(table) for table in tables}
    if len(kinds) > 1:
        raise DataError(
            f"paths must count trials alike in all tables; got {' and '.join(sorted(kinds))}: name "
            "the column run where a trial is the same run for all systems, else trial"
        )
    levels = {
        name: sum(name in table.levels for table in tables)
        for table in tables
        for name in table.levels
    }
    some = [name for name, count in levels.items() if count < len(tables)]
    if some:
        raise DataError(
            f"paths must have a column {some[0]} in all tables or in none; got both: pass "
            "group='none', or group=... for another one"
        )
    columns: dict[str, Any] = {}
    for name in tables[0].frame.columns:
        parts = [column_of(table.frame, name) for table in tables]
        if isinstance(parts[0].dtype, pd.CategoricalDtype):
            columns[name] = pd.api.types.union_categoricals(parts)
        else:
            columns[name] = np.concatenate([part.to_numpy() for part in parts])
    sizes = [len(table.frame) for table in tables]
    whole = replace(tables[0], frame=pd.DataFrame(columns))
    return whole, np.repeat(np.arange(len(tables)), sizes)


def _select(frames: "list[pd.DataFrame]", selection: Selection) -> "list[pd.DataFrame]":
    """Keep the rows of the chosen task, scorer, filter and metric."""
    for name in SELECTORS:
        wanted = getattr(selection, name)
        columns = [_column(frame, name) for frame in frames]
        if wanted is None and (name == "task" or not any(columns)):
            continue  # a task is a group of questions
        if not any(columns):
            raise DataError(
                f"{name} must be left out for tables without a column {name}; got {wanted!r}"
            )
        if not all(columns):
            raise DataError(f"paths must have a column {name} in all tables or in none; got both")
        labels = [
            frame[column].astype(str).to_numpy()
            for frame, column in zip(frames, columns, strict=True)
        ]
        known = dict.fromkeys(label for each in labels for label in each.tolist())
        kept = choose(name, known, wanted)
        frames = [
            frame.take(np.flatnonzero(label == kept)).drop(columns=[column])
            for frame, column, label in zip(frames, columns, labels, strict=True)
        ]
    return frames


def _column(frame: "pd.DataFrame", name: str) -> str | None:
    return next((column for column in frame.columns if field_name(column) == name), None)
