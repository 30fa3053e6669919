"""Find log files, and open them with errors that say what to do."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

from bayesrank.errors import DamagedFileError, DataError
from bayesrank.readers.opening import open_log, plain_suffix, refuse_unreadable
from bayesrank.readers.standard_input import STANDARD_INPUT, spool_input

# Enough of a JSON file to see its first keys.
HEAD_BYTES = 65_536
BYTE_ORDER_MARK = rb"(?:\xef\xbb\xbf)?"

# The largest float has 309 digits.
_MOST_DIGITS = 308

type PathLike = str | os.PathLike[str]


class Files(NamedTuple):
    """Files in natural order (run2 before run10), without repeats.

    Attributes
    ----------
    named : list of pathlib.Path
        Files named by the caller.
    inside : list of pathlib.Path
        Further files in the folders.
    unreadable : list of (pathlib.Path, str)
        What in the folders cannot be looked at, and why.
    """

    named: list[Path]
    inside: list[Path]
    unreadable: list[tuple[Path, str]]


def list_files(paths: PathLike | Iterable[PathLike]) -> Files:
    """List the named files, and the files inside the named folders.

    Parameters
    ----------
    paths : path or iterable of paths
        Files, folders, patterns and ``-`` for the standard input; folders are searched with their
        subfolders, without hidden names.

    Returns
    -------
    Files

    Raises
    ------
    DataError
        If a path does not exist or there is none.
    """
    single = isinstance(paths, str | os.PathLike)
    given = [each for path in ([paths] if single else paths) for each in _expand(path)]
    if not given:
        raise DataError("paths must name at least one file or folder; got none")
    named, found = set(), set()
    unreadable: list[tuple[Path, str]] = []
    for path in given:
        # Not resolved: the name of a link may be the name of a system.
        if path.is_dir():
            found.update(_files_inside(path.absolute(), unreadable))
        else:
            named.add(path.absolute())
    inside = sorted(found - named, key=natural_key)
    return Files(sorted(named, key=natural_key), inside, unreadable)


def _expand(path: PathLike) -> list[Path]:
    """Return the paths that one argument stands for."""
    if path == STANDARD_INPUT:
        return [spool_input()]
    try:
        if Path(path).exists():
            return [Path(path)]
        matches = [Path(match) for match in sorted(glob(os.fspath(path), recursive=True))]
    except ValueError as error:  # a NUL in the name
        raise DataError(f"paths must be names of files; got {path!r}") from error
    if not matches:
        raise DataError(f"paths must exist; got {str(path)!r}")
    return matches


def _files_inside(folder: Path, unreadable: list[tuple[Path, str]]) -> Iterator[Path]:
    def note(error: OSError) -> None:
        unreadable.append((Path(error.filename), error.strerror or "unreadable"))

    for parent, folders, names in os.walk(folder, onerror=note):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(parent) / name
            if name.startswith("."):
                continue
            if path.is_file():
                yield path
            elif path.is_symlink():
                unreadable.append((path, "a link to nothing"))


def natural_key(path: Path) -> list[tuple[int, int | str]]:
    """Return a sorting key in which numbers inside names count as numbers.

    Parameters
    ----------
    path : pathlib.Path
        Path to sort.

    Returns
    -------
    list of tuple

    Examples
    --------
    >>> names = sorted([Path("run10"), Path("run2")], key=natural_key)
    >>> [str(name) for name in names]
    ['run2', 'run10']
    """
    parts = re.split(r"(\d+)", str(path))
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def refuse_empty(path: Path) -> None:
    """Raise if a file has no bytes or cannot be read.

    Parameters
    ----------
    path : pathlib.Path
        File to look at.

    Raises
    ------
    DataError
        Naming the file.
    """
    refuse_unreadable(path)
    if path.stat().st_size == 0:
        raise DataError(
            f"paths must hold data; got the empty file {path.name!r}: leave it out or run the "
            "evaluation again"
        )


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
        return parse_json(file.read(), path.name)


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
                raise not_json(error, f"{path.name}, line {number}") from error
            if not isinstance(record, dict):
                raise DamagedFileError(
                    f"paths must hold one JSON object per line; got {line[:40]!r} in {path.name}, "
                    f"line {number}"
                )
            yield record
