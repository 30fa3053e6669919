"""Reader of tables: ``.csv``, ``.tsv``, ``.json``, JSON lines, Parquet and Feather."""

import csv
import fnmatch
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.columns import (
    COLUMNS,
    METRICS,
    NAMES,
    SELECTORS,
    Source,
    asked_columns,
    categories_of,
    check_settings,
    column_of,
    field_name,
    is_other,
    pair_codes,
)
from bayesrank.errors import DamagedFileError, DataError
from bayesrank.longtable import StandardTable, place_rows, standardize
from bayesrank.outcomes import DECIMAL_COMMA
from bayesrank.readers.arrow_tables import read_arrow, read_arrow_frame
from bayesrank.readers.json_files import (
    frame_of_records,
    json_columns,
    parse_json_lines,
    read_json_table,
)
from bayesrank.readers.log_table import LogTable, Selection, build_table, choose, say_left_out
from bayesrank.readers.naming import (
    name_places,
    saved_again,
    say_alike,
    say_copies,
    system_folders,
)
from bayesrank.readers.opening import (
    HEAD_BYTES,
    damage_named,
    in_folder,
    json_head,
    open_log,
    plain_name,
    plain_suffix,
)
from bayesrank.readers.several_tables import put_below
from bayesrank.table_settings import other_columns
from bayesrank.wide_tables import melt

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.parsers import TextFileReader

TEXT = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".jsonlines", ".ndjson")
BINARY = (".parquet", ".feather", ".arrow")
SUFFIXES = (*TEXT, ".json", *LINES, *BINARY)

# Separators of columns in the output of spreadsheet programs, by language.
SEPARATORS = (";", "\t", "|", ",")

# Number of rows that are read as text at once.
PIECE = 1_000_000

# A first line for Excel that names the separator.
_HINT = re.compile(r"sep=(?P<separator>[;,|\t])\s*", re.IGNORECASE)
# A line that holds nothing, or a comment.
_BLANK = re.compile(r"[\s;|,]*|#.*")
# A line with a title in its first field above a table, as of spreadsheets.
_TITLE = re.compile(r'(?:"(?:[^"]|"")*"|[^;,|\t"]+)[\s;|,]*')
# The line below the names of a Markdown table.
_RULE = re.compile(r"[\s|:-]*-{2,}[\s|:-]*")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')

type Needed = Callable[[str], bool]


@dataclass(frozen=True)
class HasColumns:
    """Recognises the tables of a format by their columns.

    Attributes
    ----------
    layouts : tuple
        A table fits if it has every part of one layout. It has a part if it has all columns of one
        of the alternatives of the part; a name that ends in ``*`` is a prefix.
    spelled : callable, default str
        Converts the names of a table to the spelling of the layouts.
    endings : tuple of str
        Endings of the names of files.
    records : callable, optional
        Recognises JSON files, instead of their columns.

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
        """Return whether a table with such columns fits one of the layouts."""
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
        For JSON all names in its first bytes.
    """
    suffix = plain_suffix(path)
    if suffix in BINARY:
        try:
            return read_arrow(path, lambda field: False)[1].names
        except DataError:
            return []  # the error is raised when it is read
    if suffix in TEXT:
        return text_layout(path).names
    head = json_head(path).decode("utf-8-sig", errors="replace")
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
        Whether the values of a column are needed, by its name; values of other columns, such as the
        texts of answers, may be left out. By default the columns in `NAMES` are needed.
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
    """The names of the columns of a text file, and their separator.

    `skipped` are lines that hold no row: above the names a separator for Excel, comments and blank
    lines, and below them the rule of a Markdown table. `marks` may stand around fields.
    """

    names: list[str]
    separator: str
    skipped: list[int]
    marks: str

    @property
    def settings(self) -> dict[str, Any]:
        """Keywords of pandas.read_csv that keep fields as text: 007, 1e5 and NA are labels."""
        return {
            "sep": self.separator,
            "skiprows": self.skipped,
            "dtype": str,
            "keep_default_na": False,
            "encoding": "utf-8-sig",
        }


def text_layout(path: Path) -> TextLayout:
    """Return the names of the columns of a text file, and their separator."""
    with open_log(path) as file:
        head = file.read(HEAD_BYTES).decode("utf-8-sig", errors="replace")
    suffix, lines = plain_suffix(path), [*head.splitlines(), "", ""]
    hint = _HINT.fullmatch(lines[0])
    above = range(hint is not None, len(lines) - 2)
    n_above = next((n for n in above if not _BLANK.fullmatch(lines[n])), 0)
    filled = (n for n in above if not _BLANK.fullmatch(lines[n]) and not _TITLE.fullmatch(lines[n]))
    n_above = next(filled, n_above)
    split = separator(lines[n_above], suffix) if hint is None else hint["separator"]
    n_fields = [_n_fields(line, split) for line in lines[n_above - 1 : n_above + 1]]
    if n_above > above.start and lines[n_above - 1].startswith("#") and len(set(n_fields)) == 1:
        n_above -= 1  # names, of which the first is that of the numbers of rows
    line, below = lines[n_above : n_above + 2]
    names = next(csv.reader([line], delimiter=split), [])
    rule = [n_above + 1] if _RULE.fullmatch(below) else []
    marks = " *`" if rule else " "
    names = [name.strip(marks) for name in names]
    return TextLayout(names, split, [*range(n_above), *rule], marks)


def separator(line: str, suffix: str) -> str:
    """Return the separator of the columns of a text file, from its first line.

    Examples
    --------
    >>> separator("model;question;score", ".csv"), separator("model", ".csv")
    (';', ',')
    >>> separator('model;"question, in full";score, in percent', ".csv")
    ';'
    """
    usual, unquoted = TEXT[suffix], _QUOTED.sub("", line)
    # Of equally frequent separators the first is used.
    return max((usual, *SEPARATORS), key=unquoted.count)


def read_text(path: Path, needed: Needed, *, text: bool) -> "pd.DataFrame":
    """Read a table in pieces, so that memory is needed only for different labels.

    Parameters
    ----------
    path : pathlib.Path
        File.
    needed : callable
        Whether the values of a column are needed, by its name; values of other columns are None.
    text : bool
        Whether all columns are text instead of categories.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    DamagedFileError
        If a row has more fields than the first line, if the last row is cut off, or if two columns
        have the same name and are needed.
    """
    import pandas as pd

    layout, pieces = text_layout(path), []
    # pandas renames repeated columns, and only the first one would be read, without a message.
    refuse_repeats((name for name in layout.names if name and needed(name)), path)
    with (
        open_log(path) as file,
        cast("TextFileReader", pd.read_csv(file, **layout.settings, chunksize=PIECE)) as reader,
    ):
        for piece in reader:
            if not isinstance(piece.index, pd.RangeIndex):  # pandas takes extra fields for labels
                raise DamagedFileError(
                    "paths must have one field per column in every row; got more in "
                    f"{path.name}: quote fields with separators, and leave out lines above the "
                    "names of the columns"
                )
            piece = _without_names(piece, layout.names)
            if layout.marks != " ":
                piece = piece.rename(columns=lambda name: name.strip(layout.marks))
                piece = piece.apply(lambda column: column.str.strip(layout.marks))
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
    # Commas are decimal if they do not separate columns.
    whole.attrs[DECIMAL_COMMA] = layout.separator == ";"
    return whole


def _without_names(piece: "pd.DataFrame", names: Sequence[str]) -> "pd.DataFrame":
    """Leave out rows that repeat the names of the columns, as of files that were concatenated."""
    again: Any = True
    for column, name in zip(piece.columns, names, strict=False):
        again &= piece[column] == (column if name else "")
        if not again.any():
            return piece
    return piece.loc[~again]


def refuse_cut_off(path: Path, layout: TextLayout) -> None:
    """Raise if only the last row of a text file lacks fields, and its line has no end.

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
            "paths must hold complete rows; got a last row with fewer fields than columns and no "
            f"end of line in {path.name}: copy the file again if it is cut off, or end the line"
        )


def _n_fields(line: str, separator: str) -> int:
    """Return the number of fields of a line; 0 if it is blank or ends a field of several lines."""
    if not line.strip() or line.count('"') % 2:
        return 0
    return _QUOTED.sub("", line).count(separator) + 1


def free_columns() -> None:
    """Release the memory of columns that are no longer used."""
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.default_memory_pool().release_unused()


def read_long_tables(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read tables and concatenate them.

    The columns for the system, the question, the trial, the outcome and the group have names of
    :data:`bayesrank.columns.NAMES`, in upper or lower case, or those of the selection. If there are
    several columns for the question, a column that numbers the rows is ignored. If ids start again
    in each group of questions, the group is part of the question. The columns ``task``, ``scorer``,
    ``filter`` and ``metric`` select rows; without a selection, the task is a group.

    Without a trial column, the rows of a system and question are its trials in order of
    appearance. Trials are paired if their column is named run or seed: a value is then the same run
    for all systems. Otherwise, files with the same trial numbers add trials.

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
        If a table is damaged, lacks a column or has several columns for one purpose, if a label is
        blank, or if a selection is missing.
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
    stems = [path.parent / Path(plain_name(path)).stem for path in paths]
    folders = [path.parent for path in paths]
    of_systems = selection.of_files and "folder" not in asked_columns({"trial": selection.trial})
    if of_systems:
        folders = system_folders(folders)
    places = {
        "file": name_places(stems) if told else [each.name for each in stems],
        "folder": name_places(folders) if of_systems else [each.name for each in folders],
    }
    for name in filter(asked.__contains__, places):
        frames = [
            frame if _column(frame, name) else frame.assign(**{name: place})
            for frame, place in zip(frames, places[name], strict=True)
        ]
    check_settings(chosen, frames)
    rows = _rows(frames, selection, asked)
    left_out = [name for name in SELECTORS if getattr(selection, name) is not None]
    cautions = tuple(_say_unselected(frames, rows, chosen["system"]))
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
    whole, files = next(iter(tables.values())), None
    notes: list[str] = []
    if len(tables) > 1:
        copies = saved_again({path: table.frame for path, table in tables.items()})
        tables = {path: table for path, table in tables.items() if path not in copies}
        notes = say_copies(copies)
        whole, files = put_below(list(tables.values()))
    source = Source("paths")
    used = [kept for path, kept in zip(paths, rows, strict=True) if path in tables]
    others = partial(_others, list(tables), used, chosen, asked)
    read = place_rows(whole, source, chosen, others, files)
    wrong = selection.count_as_wrong or ()
    table = build_table(read.frame, "table", paired=read.paired, wrong=wrong, every_system=False)
    message = "; ".join([table.message, *read.notes, *notes])
    if files is not None:
        labels = [name for name in whole.frame if name not in ("outcome", "status")]
        alike = say_alike(whole.frame.reindex(columns=[*labels, "outcome"]), files, list(tables))
        if not alike and asked.isdisjoint(places):
            alike = _say_repeated(read.frame, files, list(tables))
        cautions = (*cautions, *alike)
    cautions = (*table.cautions, *cautions, *read.cautions)
    return replace(table, message=message, declared=read.declared, standard=True, cautions=cautions)


def _say_repeated(
    table: "pd.DataFrame", files: NDArray[np.int64], paths: Sequence[Path]
) -> Iterator[str]:
    """Caution if files whose names differ in more than numbers answer the same questions."""
    stems = [f"{path.parent.name}/{Path(plain_name(path)).stem}" for path in paths]
    names = {re.sub(r"\d+", "", stem): path for stem, path in zip(stems, paths, strict=True)}
    if len(names) > 1:
        cells = pair_codes(categories_of(table, "system"), categories_of(table, "question"))
        of_file = np.unique(np.column_stack([cells, files]), axis=0)
        if len(of_file) > len(np.unique(cells)):
            one, two, *_ = map(in_folder, names.values())
            yield (
                f"Files such as {one} and {two} answer the same questions, and count as trials: "
                "pass group='file' if their ids start again in each file, or trial='file'"
            )


def _say_unselected(
    frames: "Sequence[pd.DataFrame]", rows: Sequence[NDArray[np.intp] | None], system: str | None
) -> Iterator[str]:
    """Report systems without a row of the selected task, scorer, filter and metric."""
    names = [field_name(system)] if system else NAMES["system"]
    given: list[str] = []
    answered: set[str] = set()
    for frame, kept in zip(frames, rows, strict=True):
        column = next(filter(None, (_column(frame, name) for name in names)), None)
        if column is not None and kept is not None:
            labels = column_of(frame, column)
            given += map(str, labels.unique())
            answered.update(map(str, labels.iloc[kept].unique()))
    yield from say_left_out(given, answered)


def _take(
    frame: "pd.DataFrame", rows: NDArray[np.intp] | None, left_out: Sequence[str] = ()
) -> "pd.DataFrame":
    """Return some rows of a table, all of them for None, without some columns."""
    if rows is None:
        return frame
    columns = [column for column in map(partial(_selector, frame), left_out) if column is not None]
    return frame.take(rows).drop(columns=columns)


def _others(
    paths: Sequence[Path],
    rows: Sequence[NDArray[np.intp] | None],
    chosen: Mapping[str, str | None],
    asked: Collection[str],
) -> "dict[str, pd.Categorical]":
    """Read the columns without a known name that all tables have."""
    import pandas as pd

    found = [
        other_columns(
            _take(read_frame(path, needed=lambda name: is_other(name, asked)), kept), chosen
        )
        for path, kept in zip(paths, rows, strict=True)
    ]
    names = [name for name in found[0] if all(name in each for each in found)]
    return {name: pd.api.types.union_categoricals([each[name] for each in found]) for name in names}


def _rows(
    frames: "Sequence[pd.DataFrame]", selection: Selection, asked: Collection[str]
) -> list[NDArray[np.intp] | None]:
    """Return the rows of the selected task, scorer, filter and metric; None for all rows."""
    rows: list[NDArray[np.intp] | None] = [None] * len(frames)
    for name in SELECTORS:
        wanted = getattr(selection, name)
        columns = [_selector(frame, name) for frame in frames]
        other = any(column and field_name(column) in asked for column in columns)
        if wanted is None and (name == "task" or other or not any(columns)):
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
        other = f", or question='ID,{columns[0]}' if each is that of another question"
        chosen = choose(name, known, wanted, other=other)
        found = [np.flatnonzero(label == chosen) for label in labels]
        rows = [
            each if kept is None else kept[each] for each, kept in zip(found, rows, strict=True)
        ]
    return rows


def _column(frame: "pd.DataFrame", name: str) -> str | None:
    return next((column for column in frame.columns if field_name(column) == name), None)


def _selector(frame: "pd.DataFrame", name: str) -> str | None:
    names = METRICS if name == "metric" else (name,)
    return next(filter(None, map(partial(_column, frame), names)), None)
