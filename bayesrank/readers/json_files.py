"""JSON documents and lines, with errors that say what to do."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bayesrank.errors import DamagedFileError
from bayesrank.readers.opening import HEAD_BYTES, in_folder, open_log, plain_suffix

BYTE_ORDER_MARK = rb"(?:\xef\xbb\xbf)?"

# The largest float has 309 digits.
_MOST_DIGITS = 308


def starts_like(
    path: Path, pattern: re.Pattern[bytes], suffixes: tuple[str, ...] = (".json",)
) -> bool:
    """Return whether the first bytes of a file match a pattern.

    Parameters
    ----------
    path : pathlib.Path
        File to look at.
    pattern : re.Pattern
        Pattern of bytes, matched at the start.
    suffixes : tuple of str, default (".json",)
        Names with another ending are not looked into; that of a compression does not count.

    Returns
    -------
    bool
    """
    if plain_suffix(path) not in suffixes:
        return False
    with open_log(path) as file:
        return pattern.match(file.read(HEAD_BYTES)) is not None


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
    with open_log(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = DECODER.decode(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise not_json(error, f"{in_folder(path)}, line {number}") from error
            if not isinstance(record, dict):
                raise DamagedFileError(
                    f"paths must hold one JSON object per line; got {record!r:.40} in "
                    f"{in_folder(path)}, line {number}: name a file that is one document .json"
                )
            yield record
