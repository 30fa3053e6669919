"""JSON documents whole or piece by piece, JSON lines, and tables in either."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from io import TextIOBase, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesrank.columns import NAMES, QUESTIONS, SETTINGS, field_name, is_other
from bayesrank.errors import DamagedFileError, DataError
from bayesrank.readers.opening import in_folder, json_head, open_log

if TYPE_CHECKING:
    import pandas as pd

# The largest float has 309 digits.
_MOST_DIGITS = 308

# Characters read at a time.
CHUNK = 1 << 18
# Text that ends too early is wrong at its end; further from it, it is simply wrong.
TAIL = 16

# What a document may say of all its rows.
_OF_ALL = SETTINGS.union(NAMES["system"], NAMES["trial"], NAMES["group"])

_SPACE = re.compile(r"[ \t\n\r]*")

# JSON that is a list of records.
LIST = re.compile(rb"\[")

# What a JSON document calls the list of its rows, unless it has only one list.
ROWS = ("data", "rows", "records", "results", "samples")

# A name and how its value starts, another string, or a change of the level.
_TOKEN = re.compile(
    r'"(?P<name>(?:[^"\\]|\\.)*)"\s*:\s*(?=(?P<value>.))|"(?:[^"\\]|\\.)*"|(?P<level>[\[\]{}])',
    re.DOTALL,
)


def read_json(path: Path) -> Any:
    """Read a file that is one JSON document, compressed or not.

    Parameters
    ----------
    path : pathlib.Path
        File.

    Returns
    -------
    object

    Raises
    ------
    DataError
        If the file is damaged or not JSON.
    """
    with open_log(path) as file:
        return parse_json(file.read(), in_folder(path))


def parse_json(text: bytes, where: str) -> Any:
    """Parse JSON, with NaN allowed as the logging tools write it.

    Parameters
    ----------
    text : bytes
        UTF-8, with or without a byte order mark.
    where : str
        Name of the file, for the message.

    Returns
    -------
    object

    Raises
    ------
    DataError
        If the text is not JSON, nested too deeply, or has a number beyond all floats.
    """
    try:
        return DECODER.decode(text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise not_json(error, where) from error


def _whole_number(text: str) -> int:
    """Return a whole number of a JSON document, or raise ValueError beyond all floats."""
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


# One for all documents: to build it takes longer than to parse a line.
DECODER = json.JSONDecoder(parse_int=_whole_number)


def not_json(error: Exception, where: str) -> DamagedFileError:
    """Return the error that says why a document is no JSON."""
    reason = "too many levels of nesting" if isinstance(error, RecursionError) else error
    return DamagedFileError(
        f"paths must hold valid JSON; got {reason} in {where}: the file may be cut off, copy it "
        "again or leave it out"
    )


def parse_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Parse a file with one JSON object per line, compressed or not.

    A list of objects, which some tools call so, is read, too.

    Parameters
    ----------
    path : pathlib.Path
        File to read; blank lines are skipped.

    Yields
    ------
    dict

    Raises
    ------
    DataError
        If a line is not a JSON object.
    """
    if LIST.match(json_head(path)):
        for _, record in stream_json(path):
            yield _as_record(record, in_folder(path))
        return
    with open_log(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = line.decode("utf-8-sig").strip()
                record = DECODER.decode(text) if text else None
            except (ValueError, RecursionError) as error:
                raise not_json(error, f"{in_folder(path)}, line {number}") from error
            if text:
                yield _as_record(record, f"{in_folder(path)}, line {number}")


def _as_record(record: Any, where: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise DamagedFileError(
            f"paths must hold JSON objects, one per line or in one list; got {record!r:.40} in "
            f"{where}: name a file that is one document .json"
        )
    return record


def stream_json(path: Path, spread: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """Read the members of a JSON object, or the elements of a JSON array, one at a time.

    NaN is allowed, as the logging tools write it.

    Parameters
    ----------
    path : pathlib.Path
        UTF-8 file, with or without a byte order mark.
    spread : collection of str, optional
        Members whose arrays are read one element at a time.

    Yields
    ------
    key : str
        Name of the member; empty for the elements of an array.
    value : object
        The member, or the next element of one that is spread.

    Raises
    ------
    DataError
        If the file does not hold one JSON object or array.
    """
    # A document that is cut off, or text in another encoding, raises a ValueError.
    with open_log(path) as binary:
        try:
            source = _Source(TextIOWrapper(binary, "utf-8-sig"))
            opening = source.peek()
            if opening == "[":
                yield from (("", value) for value in _elements(source))
            elif opening == "{":
                yield from _members(source, spread)
            else:
                raise ValueError("neither an object nor an array")
            if source.peek():
                raise ValueError("something after its end")
        except DataError:
            raise  # an expansion without end
        except (ValueError, RecursionError) as error:
            raise not_json(error, in_folder(path)) from error


class _Source:
    """Text of a file from the current position on, read as it is needed."""

    def __init__(self, file: TextIOBase) -> None:
        self._file = file
        self._text = ""
        self._start = 0
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is no space, empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._start)
            self._start = match.end() if match else self._start
            if self._start < len(self._text) or not self._more():
                return self._text[self._start : self._start + 1]

    def take(self, *wanted: str) -> str:
        """Step over the next character, which must be one of those wanted."""
        found = self.peek()
        if found not in wanted or not found:
            raise ValueError(f"{found!r} instead of {' or '.join(map(repr, wanted))}")
        self._start += 1
        return found

    def value(self) -> Any:
        """Read the next value, with ever more text while it ends too early."""
        self.peek()
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._start)
            except json.JSONDecodeError as error:
                cut = error.pos > len(self._text) - TAIL or error.msg.startswith("Unterminated")
                if not cut or self._ended:
                    raise ValueError(error.msg) from error
            else:
                # At the end of the text a number may go on, as 12.5e of 12.5e-3 does.
                if end <= len(self._text) - TAIL or self._ended:
                    self._start = end
                    return value
            self._more()

    def _more(self) -> bool:
        """Read on, at least as much as there is; return whether there was more."""
        if self._ended:
            return False
        self._text = self._text[self._start :]
        self._start = 0
        chunk = self._file.read(max(CHUNK, len(self._text)))
        self._ended = not chunk
        self._text += chunk
        return not self._ended


def _members(source: _Source, spread: Collection[str]) -> Iterator[tuple[str, Any]]:
    source.take("{")
    if source.peek() == "}":
        source.take("}")
        return
    while True:
        key = source.value()
        if not isinstance(key, str):
            raise ValueError(f"{key!r} instead of a name")
        source.take(":")
        if key in spread and source.peek() == "[":
            yield from ((key, value) for value in _elements(source))
        else:
            yield key, source.value()
        if source.take(",", "}") == "}":
            return


def _elements(source: _Source) -> Iterator[Any]:
    source.take("[")
    if source.peek() == "]":
        source.take("]")
        return
    while True:
        yield source.value()
        if source.take(",", "]") == "]":
            return


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
    >>> json_columns('{"model": "a", "results": [{"id": 1}, {"more": 1}]}')
    ['id', 'model']
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
    lists = [name for name, value in own if value == "["]
    objects = [n for n in lists if re.search(rf'"{re.escape(n)}"\s*:\s*\[\s*\{{', head)]
    listed = _rows_of(lists, objects)
    split = '"columns"' in head
    if listed is not None and (split or listed in objects):
        columns = re.search(r'"columns"\s*:\s*\[([^\]]*)\]', head)
        if columns is not None:
            return re.findall(r'"([^"]*)"', columns[1])
        names = [name for name, _ in _names(head[head.index(f'"{listed}"') :], 2)]
        given = [name for name, value in own if value not in "[{"]
        return [*names, *_of_all(given, names)]
    names = [name for name, value in own if value in "[{"]
    return [*names, *_of_all([name for name, value in own if value not in "[{"], names)]


def _rows_of(lists: Collection[str], objects: Sequence[str]) -> str | None:
    """Return which list of a document is that of its rows: a usual one, or the only of objects."""
    only = objects[0] if len(objects) == 1 else None
    return next((name for name in ROWS if name in lists), only)


def _of_all(names: Iterable[str], columns: Collection[str]) -> list[str]:
    """Return what a document says of all its rows; a task is no question of rows without any."""
    known = set(map(field_name, columns))
    left_out = known if known.intersection(NAMES["question"]) else known.union(QUESTIONS)
    return [name for name in names if field_name(name) in _OF_ALL.difference(left_out)]


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


def frame_of_records(
    records: Iterable[dict[str, Any]], needed: Callable[[str], bool]
) -> "pd.DataFrame":
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


def read_json_table(path: Path, needed: Callable[[str], bool]) -> "pd.DataFrame":
    """Read records, columns, or what pandas writes: rows by index, or split from their names."""
    import pandas as pd

    try:
        document = read_json(path)
    except DataError:
        document = list(parse_json_lines(path))  # lines under the name of one document
    if isinstance(document, dict):
        lists = {name: each for name, each in document.items() if isinstance(each, list)}
        objects = [n for n, each in lists.items() if each and isinstance(each[0], dict)]
        rows = lists.get(_rows_of(lists, objects) or "")
        names = document.get("columns")
        if rows is not None and isinstance(names, list):  # split
            if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
                raise DamagedFileError(
                    f"paths must hold rows of {len(names)} values, one for each column; got others "
                    f"in {path.name}"
                )
            rows = [dict(zip(map(str, names), row, strict=True)) for row in rows]
        plain = [n for n, each in document.items() if isinstance(each, str | int | float)]
        if lists and not objects and names is None and len(lists) + len(plain) == len(document):
            if len({len(each) for each in lists.values()}) != 1:
                raise DamagedFileError(
                    f"paths must hold columns of one length; got several in {path.name}"
                )
            columns = {name: pd.Series(each, dtype=object) for name, each in lists.items()}
            return pd.DataFrame(columns).assign(**{n: document[n] for n in _of_all(plain, lists)})
        if rows and isinstance(rows[0], dict):
            shared = {name: document[name] for name in _of_all(plain, rows[0])}
            rows = [{**shared, **row} if isinstance(row, dict) else row for row in rows]
        document = rows if rows is not None else _by_index(document)
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise DamagedFileError(
            f"paths must hold a table: a list of rows, or lists by column; got neither in "
            f"{path.name}: read the log of the answers, or write a row for each model and "
            "question, or each model and benchmark"
        )
    return frame_of_records(document, needed)


def _by_index(document: dict[str, Any]) -> object:
    """Return rows of a table by column and then by index, as pandas writes it by default.

    If only the inner names are usual ones of columns, it is by row.
    """
    if not document or not all(isinstance(each, dict) for each in document.values()):
        return None
    index = dict.fromkeys(key for column in document.values() for key in column)
    if all(map(is_other, document)) and not all(map(is_other, index)):
        rows, index = list(document.values()), dict.fromkeys(document)
    else:
        rows = [{name: column.get(key) for name, column in document.items()} for key in index]
    if all(map(str.isdecimal, index)):
        return rows
    # An index of names is a column without a name, as in a text.
    return [{"Unnamed: 0": key, **row} for key, row in zip(index, rows, strict=True)]
