"""Reader of tables, one row per outcome or, wide ones, one column per system."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.cells import place_rows
from bayesrank.columns import (
    COLUMNS,
    SELECTORS,
    Source,
    asked_columns,
    check_settings,
    column_of,
    field_name,
    is_other,
)
from bayesrank.errors import DataError
from bayesrank.missing_reasons import why_missing
from bayesrank.outcomes import declared_alike
from bayesrank.readers.log_table import LogTable, Selection, build_table, choose
from bayesrank.readers.opening import plain_name
from bayesrank.readers.table_files import free_columns, read_frame
from bayesrank.standard_table import StandardTable, melt, standardize
from bayesrank.table_settings import other_columns

if TYPE_CHECKING:
    import pandas as pd

PAIRED, UNPAIRED, UNNAMED = "a run or seed", "a trial number", "no trial column"


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
    chosen |= {name: ",".join(getattr(selection, name)) or None for name in ("split_by", "pool")}
    asked = asked_columns(chosen)
    frames = [
        read_frame(path, needed=lambda name: not is_other(name, asked), every_column=selection.wide)
        for path in paths
    ]
    if "file" in asked:
        frames = [
            frame if _column(frame, "file") else frame.assign(file=Path(plain_name(path)).stem)
            for frame, path in zip(frames, paths, strict=True)
        ]
    check_settings(chosen, frames)
    rows = _rows(frames, selection)
    left_out = [name for name in SELECTORS if getattr(selection, name) is not None]
    tables = []
    for path, kept in zip(paths, rows, strict=True):
        frame = _take(frames.pop(0), kept, left_out)  # large tables are not kept twice
        if len(frame):
            source = Source("paths", f" in {path.name}")
            named = chosen
            if selection.wide:
                frame, named = melt(frame, chosen, source)
            tables.append(standardize(frame, named, source))
        del frame
    free_columns()
    whole, files = _below(tables)
    source = Source("paths")
    others = partial(_others, paths, rows, chosen, asked)
    read = place_rows(whole, source, chosen, others, files)
    wrong = selection.count_as_wrong or ()
    table = build_table(read.frame, "table", paired=read.paired, wrong=wrong, every_system=False)
    message = "; ".join([table.message, *read.notes])
    return replace(table, message=message, declared=read.declared, standard=True)


def _take(
    frame: "pd.DataFrame", rows: NDArray[np.intp] | None, left_out: Sequence[str] = ()
) -> "pd.DataFrame":
    """Return some rows of a table, all of them for None, without some columns."""
    if rows is None:
        return frame
    columns = [column for column in map(partial(_column, frame), left_out) if column is not None]
    return frame.take(rows).drop(columns=columns)


def _others(
    paths: Sequence[Path],
    rows: Sequence[NDArray[np.intp] | None],
    chosen: Mapping[str, str | None],
    asked: Collection[str],
) -> "dict[str, pd.Categorical]":
    """Read the columns that all tables have under names that are not known."""
    import pandas as pd

    found = [
        other_columns(
            _take(read_frame(path, needed=lambda name: is_other(name, asked)), kept), chosen
        )
        for path, kept in zip(paths, rows, strict=True)
    ]
    names = [name for name in found[0] if all(name in each for each in found)]
    return {name: pd.api.types.union_categoricals([each[name] for each in found]) for name in names}


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
    settings = tuple(dict.fromkeys(name for table in tables for name in table.settings))
    tables = [_completed(table, settings, tables) for table in tables]
    columns: dict[str, Any] = {}
    for name in tables[0].frame.columns:
        parts = [column_of(table.frame, name) for table in tables]
        if isinstance(parts[0].dtype, pd.CategoricalDtype):
            columns[name] = pd.api.types.union_categoricals(parts)
        else:
            columns[name] = np.concatenate([part.to_numpy() for part in parts])
    sizes = [len(table.frame) for table in tables]
    declared = declared_alike([table.declared for table in tables])
    frame = pd.DataFrame(columns)
    whole = replace(tables[0], frame=frame, settings=settings, declared=declared)
    return whole, np.repeat(np.arange(len(tables)), sizes)


def _completed(
    table: StandardTable, settings: Sequence[str], tables: Sequence[StandardTable]
) -> StandardTable:
    """Give a table what others say of settings and of missing outcomes, and it does not."""
    import pandas as pd

    frame = table.frame
    blank = pd.Categorical.from_codes(
        np.full(len(frame), -1), categories=pd.Index([], dtype=object)
    )
    lacking = [name for name in settings if name not in table.settings]
    frame = frame.assign(**{f"setting {name}": blank for name in lacking})
    if "status" not in frame and any("status" in each.frame for each in tables):
        frame = frame.assign(status=why_missing([], frame["outcome"].to_numpy()))
    return replace(table, frame=frame)


def _rows(frames: "Sequence[pd.DataFrame]", selection: Selection) -> list[NDArray[np.intp] | None]:
    """Return the rows of the chosen task, scorer, filter and metric, None for all of them."""
    rows: list[NDArray[np.intp] | None] = [None] * len(frames)
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
            column_of(_take(frame, kept), column).astype(str).to_numpy()
            for frame, column, kept in zip(frames, columns, rows, strict=True)
        ]
        known = dict.fromkeys(label for each in labels for label in each.tolist())
        chosen = choose(name, known, wanted)
        found = [np.flatnonzero(label == chosen) for label in labels]
        rows = [
            each if kept is None else kept[each] for each, kept in zip(found, rows, strict=True)
        ]
    return rows


def _column(frame: "pd.DataFrame", name: str) -> str | None:
    return next((column for column in frame.columns if field_name(column) == name), None)
