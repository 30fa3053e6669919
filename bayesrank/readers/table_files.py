"""Files of tables as frames: ``.csv``, ``.tsv``, ``.json``, JSON lines, Parquet and Feather."""

import fnmatch
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesrank.columns import NAMES, field_name
from bayesrank.errors import DamagedFileError, DataError
from bayesrank.readers.json_files import parse_json_lines, read_json
from bayesrank.readers.opening import DAMAGE, EXPANSION, HEAD_BYTES, SMALL, open_log, plain_suffix
from bayesrank.readers.text_tables import TEXT, read_text, text_layout

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

LINES = (".jsonl", ".jsonlines", ".ndjson")
BINARY = (".parquet", ".feather", ".arrow")
SUFFIXES = (*TEXT, ".json", *LINES, *BINARY)

# A row holds an outcome, which takes a bit unless outcomes say nothing.
ROWS_PER_BYTE = 8
FEW_ROWS = 1_000_000

# What a JSON document calls the list of its rows.
ROWS = ("data", "rows", "records", "results", "samples")

# A name and how its value starts, another string, or a change of the level.
_TOKEN = re.compile(
    r'"(?P<name>(?:[^"\\]|\\.)*)"\s*:\s*(?=(?P<value>.))|"(?:[^"\\]|\\.)*"|(?P<level>[\[\]{}])',
    re.DOTALL,
)

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


def json_columns(head: str, *, lines: bool = False) -> list[str]:
    """Return the names of the columns of a JSON table, as far as its beginning tells.

    Parameters
    ----------
    head : str
        Beginning of the document.
    lines : bool, default False
        Whether every line is a record.

    Returns
    -------
    list of str
        Empty where it is no table.

    Examples
    --------
    >>> json_columns('[{"model": "a", "score": {"value": 1}}, {"other"')
    ['model', 'score']
    >>> json_columns('{"model": ["a", "b"], "score": [1, 0]}')
    ['model', 'score']
    >>> json_columns('{"version": 2, "results": [{"model": "a"}, {"more": 1}]}')
    ['model']
    """
    opening = head.lstrip()[:1]
    second = head.lstrip().partition("\n")[2].lstrip()[:1]
    if opening == "[":
        return [name for name, _ in _names(head, 2)]
    if opening != "{":
        return []
    own = _names(head, 1)
    if lines or second == "{":
        return [name for name, _ in own]
    listed = next((name for name, value in own if name in ROWS and value == "["), None)
    if listed is not None:
        columns = re.search(r'"columns"\s*:\s*\[([^\]]*)\]', head)
        if columns is not None:
            return re.findall(r'"([^"]*)"', columns[1])
        return [name for name, _ in _names(head[head.index(f'"{listed}"') :], 2)]
    return [name for name, value in own if value in "[{"]


def _names(text: str, level: int) -> list[tuple[str, str]]:
    """Return the names of the first object at a level, and how their values start."""
    found, depth = [], 0
    for token in _TOKEN.finditer(text):
        if token["name"] is not None:
            if depth == level:
                found.append((token["name"], token["value"]))
        elif token["level"] in ("[", "{"):
            depth += 1
        elif token["level"]:
            if depth == level and found:
                break
            depth -= 1
    return found


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
    with _damage_named(path):
        frame = _parse(path, wanted, text=every_column)
    frame = frame.set_axis([str(column).strip() for column in frame.columns], axis="columns")
    if frame.empty:
        raise DamagedFileError(f"paths must hold at least one row; got none in {path.name}")
    names = frame.columns.tolist() if every_column else [field_name(each) for each in frame.columns]
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise DamagedFileError(
            f"paths must name every column once; got {twice[0]!r} twice in {path.name}"
        )
    return frame


@contextmanager
def _damage_named(path: Path, *more: type[Exception]) -> Iterator[None]:
    """Turn the errors of parsers, which may be of `more` kinds, into one that names the file."""
    try:
        yield
    except DataError:
        raise
    # KeyError and TypeError come from damaged metadata.
    except (ValueError, KeyError, TypeError, MemoryError, *DAMAGE, *more) as error:
        remedy = (
            "save the file as text in UTF-8"
            if isinstance(error, UnicodeDecodeError)
            else "the file may be cut off, or not in the format that its name says"
        )
        raise DamagedFileError(
            f"paths must be readable tables; got {' '.join(str(error).split())} in {path.name}: "
            f"{remedy}"
        ) from error


def _everything(name: str) -> bool:
    return True


def _parse(path: Path, needed: Needed, *, text: bool) -> "pd.DataFrame":
    import pandas as pd

    suffix = plain_suffix(path)
    if suffix in TEXT:
        return read_text(path, needed, text=text)
    if suffix in BINARY:
        table, schema = read_arrow(path, lambda field: needed(field.name))
        # Each column of the table goes when it has become one of the frame.
        frame = table.to_pandas(
            strings_to_categorical=not text, split_blocks=True, self_destruct=True
        )
        del table
        blank = pd.Categorical.from_codes(np.full(len(frame), -1, dtype=np.int8), categories=[])
        return frame.assign(**{name: blank for name in schema.names if name not in frame})
    if suffix in LINES:
        return _frame(parse_json_lines(path), needed)
    if suffix == ".json":
        return _from_json(path, needed)
    raise DataError(
        f"paths must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} in format table; got "
        f"{path.name!r}"
    )


def _frame(records: "Iterator[dict[str, Any]]", needed: Needed) -> "pd.DataFrame":
    """Return records as a frame; columns that are not needed are there without values."""
    import pandas as pd

    columns: dict[str, list[Any] | None] = {}
    read: list[tuple[str, list[Any]]] = []
    number = 0
    for record in records:
        if not record.keys() <= columns.keys():
            for name in record:
                if name not in columns:
                    columns[name] = [None] * number if needed(name) else None
            read = [(name, values) for name, values in columns.items() if values is not None]
        for name, values in read:
            values.append(record.get(name))
        number += 1
    blank = [None] * number
    return pd.DataFrame(
        {name: blank if values is None else values for name, values in columns.items()}
    )


def _from_json(path: Path, needed: Needed) -> "pd.DataFrame":
    """Read records, columns, or what pandas writes: rows by index, or split from their names."""
    import pandas as pd

    try:
        document = read_json(path)
    except DataError:
        document = list(parse_json_lines(path))  # lines under the name of one document
    if isinstance(document, dict):
        rows = next((document[name] for name in ROWS if isinstance(document.get(name), list)), None)
        names = document.get("columns")
        if rows is not None and isinstance(names, list):  # split
            rows = [dict(zip(map(str, names), row, strict=True)) for row in rows]
        if rows is None and document and all(isinstance(each, list) for each in document.values()):
            if len({len(each) for each in document.values()}) != 1:
                raise DamagedFileError(
                    f"paths must hold columns of one length; got several in {path.name}"
                )
            return pd.DataFrame({name: pd.Series(v, dtype=object) for name, v in document.items()})
        document = rows if rows is not None else _by_index(document)
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise DamagedFileError(
            f"paths must hold a table: a list of rows, or lists by column; got neither in "
            f"{path.name}"
        )
    return _frame(iter(document), needed)


def _by_index(document: dict[str, Any]) -> object:
    """Return rows of a table by column and then by index, as pandas writes it by default."""
    if not document or not all(isinstance(each, dict) for each in document.values()):
        return None
    index = dict.fromkeys(key for column in document.values() for key in column)
    return [{name: column.get(key) for name, column in document.items()} for key in index]


def read_arrow(path: Path, needed: "Callable[[pa.Field], bool]") -> "tuple[pa.Table, pa.Schema]":
    """Read the columns of a Parquet or Feather file that are needed, after a look at its size.

    Parameters
    ----------
    path : pathlib.Path
        File.
    needed : callable
        Whether a column is needed, by its field.

    Returns
    -------
    table : pyarrow.Table
    schema : pyarrow.Schema
        Of all columns.

    Raises
    ------
    DamagedFileError
        If the file is damaged, or announces more than it can hold.
    """
    import pyarrow as pa
    from pyarrow import feather, parquet

    with _damage_named(path, pa.ArrowException), path.open("rb") as file:
        if plain_suffix(path) != ".parquet":
            reader = pa.ipc.open_file(file)
            schema = reader.schema
            batches = range(reader.num_record_batches)
            _check_size(path, sum(reader.get_batch(i).num_rows for i in batches), 0)
            columns = [field.name for field in schema if needed(field)]
            return feather.read_table(path, columns=columns, memory_map=False), schema
        source = parquet.ParquetFile(file)
        metadata, schema = source.metadata, source.schema_arrow
        parts = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
        _check_size(path, metadata.num_rows, sum(parts))
        kept = [field for field in schema if needed(field)]
        columns = [field.name for field in kept]
        texts = [field.name for field in kept if is_text(field.type)]
    # A native file: threads may still read after an error, and one of Python would be closed.
    with (
        _damage_named(path, pa.ArrowException),
        parquet.ParquetFile(str(path), read_dictionary=texts) as whole,
    ):
        return whole.read(columns=columns), schema


def free_columns() -> None:
    """Give back the memory of columns that were read and are no longer used."""
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        pa.default_memory_pool().release_unused()


def is_text(kind: "pa.DataType") -> bool:
    """Return whether values of an Arrow type are strings."""
    import pyarrow as pa

    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _check_size(path: Path, n_rows: int, n_bytes: int) -> None:
    """Raise if a file announces more than it can hold."""
    size = path.stat().st_size
    if n_rows > max(FEW_ROWS, ROWS_PER_BYTE * size) or n_bytes > max(SMALL, EXPANSION * size):
        raise DamagedFileError(
            f"paths must hold what they announce; got {n_rows} rows in {size} bytes of "
            f"{path.name}: the file may be damaged, copy it again or leave it out"
        )
