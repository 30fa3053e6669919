"""JSON documents read piece by piece, so that a large log never is in memory as a whole."""

import json
import re
from collections.abc import Collection, Iterator
from io import TextIOBase, TextIOWrapper
from pathlib import Path
from typing import Any

from bayesrank.errors import DataError
from bayesrank.readers.json_files import DECODER, not_json
from bayesrank.readers.opening import in_folder, open_log

# Characters read at a time.
CHUNK = 1 << 18
# Text that ends too early is wrong at its end; further from it, it is simply wrong.
TAIL = 16

_SPACE = re.compile(r"[ \t\n\r]*")


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
