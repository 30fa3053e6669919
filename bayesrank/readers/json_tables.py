"""Tables as JSON: records, columns, or what pandas writes."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesrank.errors import DamagedFileError, DataError
from bayesrank.readers.json_files import parse_json_lines, read_json

if TYPE_CHECKING:
    import pandas as pd

# What a JSON document calls the list of its rows.
ROWS = ("data", "rows", "records", "results", "samples")

# A name and how its value starts, another string, or a change of the level.
_TOKEN = re.compile(
    r'"(?P<name>(?:[^"\\]|\\.)*)"\s*:\s*(?=(?P<value>.))|"(?:[^"\\]|\\.)*"|(?P<level>[\[\]{}])',
    re.DOTALL,
)


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
        rows = next((document[name] for name in ROWS if isinstance(document.get(name), list)), None)
        names = document.get("columns")
        if rows is not None and isinstance(names, list):  # split
            if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
                raise DamagedFileError(
                    f"paths must hold rows of {len(names)} values, one for each column; got others "
                    f"in {path.name}"
                )
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
    return frame_of_records(document, needed)


def _by_index(document: dict[str, Any]) -> object:
    """Return rows of a table by column and then by index, as pandas writes it by default."""
    if not document or not all(isinstance(each, dict) for each in document.values()):
        return None
    index = dict.fromkeys(key for column in document.values() for key in column)
    return [{name: column.get(key) for name, column in document.items()} for key in index]
