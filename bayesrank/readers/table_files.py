"""Reader of tables: ``.csv``, ``.tsv``, ``.json``, JSON lines, Parquet and Feather."""

import csv
import fnmatch
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.columns import (
    COLUMNS,
    NAMES,
    SELECTORS,
    Source,
    asked_columns,
    check_settings,
    column_of,
    field_name,
    is_other,
)
from bayesrank.errors import DamagedFileError, DataError
from bayesrank.longtable import place_rows, put_below
from bayesrank.outcomes import DECIMAL_COMMA
from bayesrank.readers.arrow_tables import read_arrow, read_arrow_frame
from bayesrank.readers.json_files import (
    frame_of_records,
    json_columns,
    parse_json_lines,
    read_json_table,
)
from bayesrank.readers.log_table import LogTable, Selection, build_table, choose
from bayesrank.readers.naming import name_files, saved_again, say_copies
from bayesrank.readers.opening import HEAD_BYTES, damage_named, open_log, plain_name, plain_suffix
from bayesrank.standard_table import StandardTable, melt, standardize
from bayesrank.table_settings import other_columns

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.parsers import TextFileReader

TEXT = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".jsonlines", ".ndjson")
BINARY = (".parquet", ".feather", ".arrow")
SUFFIXES = (*TEXT, ".json", *LINES, *BINARY)

# What separates columns where spreadsheets of some languages write them.
SEPARATORS = (";", "\t", "|", ",")

# Rows that are text at a time.
PIECE = 1_000_000

# Excel reads such a first line, and so it is written for Excel.
_HINT = re.compile(r"sep=(?P<separator>[;,|\t])\s*", re.IGNORECASE)
_QUOTED = re.compile(r'"(?:[^"]|"")*"')

type Needed = Callable[[str], bool]


@dataclass(frozen=True)
class HasColumns:
    """Recognises the tables of a format by their columns.

    Attributes
    ----------
    layouts : tuple
        Of one of them a table has every part; a part is there if all columns of one of its
        alternatives are, where ``*`` ends a name of which only the beginning is known.
    spelled : callable, default str
        Spells the names of a table as the layouts do.
    endings : tuple of str
        How the names of files end.
    records : callable, optional
        Recognises JSON in place of its columns.

    Examples
    --------
    >>> is_vote = HasColumns((((("left", "right"), ("a", "b")), (("winner",),)),), str.lower)
    >>> is_vote.fits(["A", "B", "Winner"]), is_vote.fits(["a", "right", "winner"])
    (True, False)
    """

    layouts: tuple[tuple[Collection[Collection[str]], ...], ...]
    spelled: Callable[[str], str] = str
    endings: tuple[str, ...] = SUFFIXES
    records: Callable[[Path], bool] | None = None

    def __call__(self, path: Path) -> bool:
        """Return whether a file is such a table."""
        suffix = plain_suffix(path)
        if suffix not in self.endings:
            return False
        if self.records is not None and suffix not in (*TEXT, *BINARY):
            return self.records(path)
        return self.fits(column_names(path))

    def fits(self, columns: Iterable[str]) -> bool:
        """Return whether a table with such columns is one."""
        names = {self.spelled(name) for name in columns}

        def is_there(column: str) -> bool:
            return column in names or bool(column[-1] == "*" and fnmatch.filter(names, column))

        return any(
            all(any(all(map(is_there, columns)) for columns in part) for part in layout)
            for layout in self.layouts
        )


def column_names(path: Path) -> list[str]:
    """Return the names of the columns of a table, from its first bytes; none if it is damaged.

    Parameters
    ----------
    path : pathlib.Path
        File.

    Returns
    -------
    list of str
        Of JSON all names that its first bytes have.
    """
    suffix = plain_suffix(path)
    if suffix in BINARY:
        try:
            return read_arrow(path, lambda field: False)[1].names
        except DataError:
            return []  # said when it is read
    if suffix in TEXT:
        return text_layout(path).names
    with open_log(path) as file:
        head = file.read(HEAD_BYTES).decode("utf-8-sig", errors="replace")
    return json_columns(head, lines=suffix in LINES)


def read_frame(
    path: Path, *, needed: Needed | None = None, every_column: bool = False
) -> "pd.DataFrame":
    """Read a table as it is, fields of CSV files as text.

    Parameters
    ----------
    path : pathlib.Path
        A file with one of `SUFFIXES`, compressed or not.
    needed : callable, optional
        Whether the values of a column are needed, by its name; those of others, such as the texts
        of answers, may be left out. By default those are needed that `NAMES` knows.
    every_column : bool, default False
        Whether the values of all columns are needed.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    DataError
        If the file is damaged, has no row, or names a column twice.
    """
    known = {alias for aliases in NAMES.values() for alias in aliases}
    wanted = needed or (lambda name: field_name(name) in known)
    if every_column:
        wanted = _everything
    with damage_named(path):
        frame = _parse(path, wanted, text=every_column)
    frame = frame.set_axis([str(column).strip() for column in frame.columns], axis="columns")
    if frame.empty:
        raise DamagedFileError(f"paths must hold at least one row; got none in {path.name}")
    refuse_repeats(frame.columns if every_column else map(field_name, frame.columns), path)
    return frame


def refuse_repeats(columns: Iterable[str], path: Path) -> None:
    """Raise if a table names a column twice.

    Raises
    ------
    DamagedFileError
        Naming the column and the file.
    """
    twice = next((name for name, times in Counter(columns).items() if times > 1), None)
    if twice is not None:
        raise DamagedFileError(
            f"paths must name every column once; got {twice!r} twice in {path.name}: leave out or "
            "rename one of them"
        )


def _everything(name: str) -> bool:
    return True


def _parse(path: Path, needed: Needed, *, text: bool) -> "pd.DataFrame":
    suffix = plain_suffix(path)
    if suffix in TEXT:
        return read_text(path, needed, text=text)
    if suffix in BINARY:
        return read_arrow_frame(path, needed, text=text)
    if suffix in LINES:
        return frame_of_records(parse_json_lines(path), needed)
    if suffix == ".json":
        return read_json_table(path, needed)
    raise DataError(
        f"paths must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} in format table; got "
        f"{path.name!r}"
    )


class TextLayout(NamedTuple):
    """What a text says of its columns before its rows begin.

    `hinted` is whether its first line only says what separates them.
    """

    names: list[str]
    separator: str
    hinted: bool

    @property
    def settings(self) -> dict[str, Any]:
        """Keywords of pandas.read_csv, by which fields stay text: 007, 1e5 and NA are labels."""
        return {
            "sep": self.separator,
            "skiprows": int(self.hinted),
            "dtype": str,
            "keep_default_na": False,
            "encoding": "utf-8-sig",
        }


def text_layout(path: Path) -> TextLayout:
    """Return the names of the columns of a text, and what separates them."""
    with open_log(path) as file:
        head = file.read(HEAD_BYTES).decode("utf-8-sig", errors="replace")
    first, second, *_ = [*head.splitlines()[:2], "", ""]
    hint = _HINT.fullmatch(first)
    line = first if hint is None else second
    split = separator(line, plain_suffix(path)) if hint is None else hint["separator"]
    names = next(csv.reader([line], delimiter=split), [])
    return TextLayout([name.strip() for name in names], split, hint is not None)


def separator(line: str, suffix: str) -> str:
    """Return what separates the columns of a text by its first line.

    Examples
    --------
    >>> separator("model;question;score", ".csv"), separator("model", ".csv")
    (';', ',')
    >>> separator('model;"question, in full";score, in percent', ".csv")
    ';'
    """
    usual, unquoted = TEXT[suffix], _QUOTED.sub("", line)
    # The first of equally frequent ones is taken.
    return max((usual, *SEPARATORS), key=unquoted.count)


def read_text(path: Path, needed: Needed, *, text: bool) -> "pd.DataFrame":
    """Read a table in pieces, so that only different labels take memory.

    Parameters
    ----------
    path : pathlib.Path
        File.
    needed : callable
        Whether the values of a column are needed, by its name; those of others are None.
    text : bool
        Whether all columns are texts, and not categories of them.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    DamagedFileError
        If a row has more fields than the first line, the last one is cut off, or a column that is
        needed has the name of another one.
    """
    import pandas as pd

    layout, pieces = text_layout(path), []
    # pandas would number them, and the first one would be read without a word.
    refuse_repeats((name for name in layout.names if name and needed(name)), path)
    with (
        open_log(path) as file,
        cast("TextFileReader", pd.read_csv(file, **layout.settings, chunksize=PIECE)) as reader,
    ):
        for piece in reader:
            if not isinstance(piece.index, pd.RangeIndex):  # extra fields are taken for labels
                raise DamagedFileError(
                    f"paths must have as many fields in every row as names; got more in {path.name}"
                )
            if not text:
                piece = piece.assign(
                    **{
                        name: pd.Categorical(piece[name]) if needed(str(name)) else None
                        for name in piece.columns
                    }
                )
            pieces.append(piece)
    refuse_cut_off(path, layout)
    if text or len(pieces) < 2:
        whole = pd.concat(pieces, ignore_index=True)
    else:
        whole = pd.DataFrame(
            {
                name: pd.api.types.union_categoricals([piece[name] for piece in pieces])
                if needed(str(name))
                else pd.Series([None] * sum(map(len, pieces)))
                for name in pieces[0].columns
            }
        )
    # Where commas do not separate columns, they are decimal.
    whole.attrs[DECIMAL_COMMA] = layout.separator == ";"
    return whole


def refuse_cut_off(path: Path, layout: TextLayout) -> None:
    """Raise if the last row of a text lacks fields and the end of its line, and no other one does.

    Raises
    ------
    DamagedFileError
        Naming the file.
    """
    end = b""
    with open_log(path) as file:
        while chunk := file.read(HEAD_BYTES):
            end = (end + chunk)[-HEAD_BYTES:]
    *others, last = end.decode("utf-8", errors="replace").splitlines(keepends=True)[1:] or [""]
    n_fields = len(layout.names)
    if last.endswith(("\n", "\r")) or not 0 < _n_fields(last, layout.separator) < n_fields:
        return
    if not any(0 < _n_fields(line, layout.separator) < n_fields for line in others):
        raise DamagedFileError(
            f"paths must hold whole rows; got a last one with fewer fields than names, and without "
            f"an end of line, in {path.name}: the file may be cut off, copy it again or end the "
            "line"
        )


def _n_fields(line: str, separator: str) -> int:
    """Return how many fields a line has; 0 if it is blank or ends a field of several lines."""
    if not line.strip() or line.count('"') % 2:
        return 0
    return _QUOTED.sub("", line).count(separator) + 1


def free_columns() -> None:
    """Give back the memory of columns that were read and are no longer used."""
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.default_memory_pool().release_unused()


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
    # In a question, files of one name in several folders are one.
    told = selection.of_files and "folder" not in asked
    places = {
        "file": name_files(paths) if told else [Path(plain_name(path)).stem for path in paths],
        "folder": [path.parent.name for path in paths],
    }
    for name in filter(asked.__contains__, places):
        frames = [
            frame if _column(frame, name) else frame.assign(**{name: place})
            for frame, place in zip(frames, places[name], strict=True)
        ]
    check_settings(chosen, frames)
    rows = _rows(frames, selection)
    left_out = [name for name in SELECTORS if getattr(selection, name) is not None]
    tables: dict[Path, StandardTable] = {}
    for path, kept in zip(paths, rows, strict=True):
        frame = _take(frames.pop(0), kept, left_out)  # large tables are not kept twice
        if len(frame):
            source = Source("paths", f" in {path.name}")
            named = chosen
            if selection.wide:
                frame, named = melt(frame, chosen, source)
            tables[path] = standardize(frame, named, source)
        del frame
    free_columns()
    copies = saved_again({path: table.frame for path, table in tables.items()})
    tables = {path: table for path, table in tables.items() if path not in copies}
    whole, files = put_below(list(tables.values()))
    source = Source("paths")
    used = [kept for path, kept in zip(paths, rows, strict=True) if path in tables]
    others = partial(_others, list(tables), used, chosen, asked)
    read = place_rows(whole, source, chosen, others, files)
    wrong = selection.count_as_wrong or ()
    table = build_table(read.frame, "table", paired=read.paired, wrong=wrong, every_system=False)
    message = "; ".join([table.message, *read.notes, *say_copies(copies)])
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
