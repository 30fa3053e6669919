"""Which files to read, in which format, and which files are ignored."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from glob import glob
from pathlib import Path
from typing import NamedTuple

from bayesrank.columns import SELECTORS
from bayesrank.errors import DamagedFileError, DataError
from bayesrank.printable import listing
from bayesrank.readers.log_table import NoOutcomeError, Selection, SilentSystemError
from bayesrank.readers.opening import (
    expects,
    in_folder,
    plain_suffix,
    refuse_unreadable,
    starts_like,
)
from bayesrank.readers.table import READERS, Reader
from bayesrank.readers.table_files import LINES, SUFFIXES, column_names

# Longer names of columns are text.
_LONGEST = 40

_NAME_IT = f"pass format=..., one of {', '.join(READERS)}"
# Remedies for files that are not logs, by their endings.
_REMEDIES = {
    **dict.fromkeys(
        (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers"), "save the sheet as .csv"
    ),
    **dict.fromkeys((".md", ".tex", ".html", ".htm"), "save the table as .csv"),
    **dict.fromkeys((".pkl", ".pickle", ".rds", ".rda", ".h5", ".db"), "save the table as .csv"),
    **dict.fromkeys(
        (".npy", ".nc", ".mat"), "save the array as R in .npz, with models and questions"
    ),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar"), "unpack it"),
}
# Files of tools that no format reads: how they start, what they are, and the table to write.
_UNREAD = (
    (
        rb'\{"accuracy": *[\d.]+, *"correct_count": *\d+, *"total_count": *\d+\}',
        "scores of BFCL, which list only the wrong answers",
        "model, task, correct_count and total_count for each file",
    ),
    (
        rb'\[\s*\{\s*"session_id":.*?"chat_history":.*?"generator":',
        "outputs of ZeroEval, which have no grades",
        "model, question and correct for each graded answer",
    ),
    (
        rb'\{(?=.*?"(?:mteb_dataset_name|task_name)":)(?=.*?"mteb_version":)',
        "scores of MTEB, which have a file for each task",
        "model, task and score (main_score) for each file",
    ),
    (
        rb'\{\s*"config":.*?"benchmark_name":.*?"successful_tasks":',
        "results of HAL, which have a file for each run",
        "model, question and correct for each of successful_tasks and failed_tasks",
    ),
)
# Number of ignored files that are named.
_NAMED = 5

_STANDARD_INPUT = "-"

# What binary formats start with, and their endings.
_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"PK\x03\x04": ".npz"}


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
    if isinstance(paths, Mapping) or hasattr(paths, "columns"):
        kind = type(paths).__name__
        raise DataError(f"paths must be paths of files; got a {kind}: give it to rank as it is")
    if isinstance(paths, str | bytes | os.PathLike) or not isinstance(paths, Iterable):
        paths = [paths]
    given = [each for path in paths for each in _expand(path)]
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
    inside = sorted(found - named, key=_natural_key)
    return Files(sorted(named, key=_natural_key), inside, unreadable)


def _expand(path: PathLike) -> list[Path]:
    """Return the paths that one argument stands for."""
    if not isinstance(path, str | os.PathLike) or path == "":
        raise DataError(f"paths must be paths of files or folders; got {path!r}")
    if path == _STANDARD_INPUT:
        return [_spool_input()]
    try:
        if Path(path).exists():
            return [Path(path)]
        matches = [Path(match) for match in sorted(glob(os.fspath(path), recursive=True))]
    except ValueError as error:  # a NUL in the name
        raise DataError(f"paths must be names of files; got {path!r}") from error
    if not matches:
        raise DataError(f"paths must exist; got {str(path)!r}")
    return matches


def _spool_input() -> Path:
    """Write the standard input to a file that lives as long as the process.

    Returns
    -------
    pathlib.Path
        Its ending says what the first bytes look like.

    Raises
    ------
    DataError
        If there is nothing to read.
    """
    path = Path(tempfile.mkdtemp(dir=_input_folder().name)) / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        first, second = file.readline(1 << 16), file.readline(1 << 16)
    if not first:
        raise DataError("paths must hold data; got an empty standard input for '-'")
    return path.rename(path.with_suffix(_input_ending(first, second)))


@cache
def _input_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="bayesrank-")


def _input_ending(first: bytes, second: bytes) -> str:
    ending = next((each for magic, each in _MAGIC.items() if first.startswith(magic)), None)
    if ending:
        return ending
    text = first.removeprefix(b"\xef\xbb\xbf").strip()
    if text.startswith(b"{"):
        whole = text.endswith(b"}") and (not second or second.lstrip().startswith(b"{"))
        return ".jsonl" if whole else ".json"
    if text.startswith(b"["):
        return ".json"
    return ".tsv" if b"\t" in first and b"," not in first else ".csv"


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


def _natural_key(path: Path) -> list[tuple[int, int | str]]:
    """Return a sorting key in which numbers inside names count as numbers.

    Examples
    --------
    >>> names = sorted([Path("run10"), Path("run2")], key=_natural_key)
    >>> [str(name) for name in names]
    ['run2', 'run10']
    """
    parts = re.split(r"(\d+)", str(path))
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts]


def _refuse_empty(path: Path) -> None:
    """Raise if a file has no bytes or cannot be read."""
    refuse_unreadable(path)
    if path.stat().st_size == 0:
        raise DataError(
            f"paths must hold data; got the empty file {path.name!r}: leave it out or run the "
            "evaluation again"
        )


class LeftOut(NamedTuple):
    """A file in a folder that is not read, and why; `damaged` if it is a log nevertheless."""

    path: Path
    reason: str = ""
    damaged: bool = False


class Logs(NamedTuple):
    """Files in one format, in natural order, and what in their folders is left out.

    Files that are `required`, since the caller named them or is strict, are not left out.
    """

    reader: Reader
    files: list[Path]
    left_out: list[LeftOut]
    required: frozenset[Path] = frozenset()

    @property
    def message(self) -> str:
        """The ignored files, as the end of a message."""
        return f"; {_listed(self.left_out)} left out" if self.left_out else ""


def _has_names(path: Path) -> bool:
    """Return whether the first line of a table can be shown as names of columns."""
    names = column_names(path)
    return bool(names) and all(len(name) <= _LONGEST and name.isprintable() for name in names)


def find_logs(
    paths: PathLike | Iterable[PathLike],
    format: str | None,
    selection: Selection,
    *,
    strict: bool = False,
) -> Logs:
    """Find the files to read and their format.

    Parameters
    ----------
    paths : path or iterable of paths
        Files, folders, patterns such as ``runs/*.csv``, or ``-`` for the standard input.
    format : str, optional
        Name of the format, if the caller knows it. Files named by the caller are then read as
        they are, and files in folders if they look like that format.
    selection : Selection
        Refused where the format has no such choice; columns are those of a table.
    strict : bool, default False
        Whether a file in a folder that is no log is an error.

    Returns
    -------
    Logs

    Raises
    ------
    DataError
        If the format is unknown, mixed or not recognised, or a file is empty.
    """
    if format is not None and format not in READERS:
        raise DataError(f"format must be one of {', '.join(READERS)}; got {format!r}")
    found = list_files(paths)
    for path in found.named:
        _refuse_empty(path)
    left_out = [LeftOut(path, reason) for path, reason in found.unreadable]
    if format is None and selection.of_table:
        format = "table"
    if format is None:
        reader, files, others = _recognise(found.named, found.inside)
    else:
        reader = READERS[format]
        files, others = _of_format(reader, found.inside, by_name=selection.of_table)
        files += found.named
    folders, names = {path.parent for path in files}, {path.name for path in files}
    left_out += [
        each
        for each in others
        # A file that is called as the logs are is a damaged log.
        if each.path.name in names or not reader.has_beside(each.path, folders)
    ]
    if not files:
        known = ", ".join(READERS) if format is None else format
        holding = f" but {_listed(left_out)}" if left_out else ""
        tables = (e.path for e in left_out if plain_suffix(e.path) in SUFFIXES and not e.reason)
        table = next(filter(_has_names, tables), None)
        if table is not None:
            columns = listing(column_names(table), 8)
            holding += (
                f": name the columns of a table ({table.name} has {columns}), as by system=... "
                "(file or folder if these name it), or pass wide=True for one column per system"
            )
        raise DataError(
            f"paths must hold logs in a known format ({known}); got folders without any{holding}"
        )
    if strict and left_out:
        raise DataError(f"paths must hold logs only with strict=True; got {_listed(left_out)}")
    for path in files:
        _refuse_empty(path)
    _check_selection(reader, selection)
    required = files if strict else found.named
    return Logs(reader, sorted(files, key=_natural_key), left_out, frozenset(required))


def read_sound[T](logs: Logs, read: Callable[[Sequence[Path]], T]) -> tuple[T, Logs]:
    """Read logs, without those in folders that are damaged or have no outcome, beside others.

    Parameters
    ----------
    logs : Logs
        What :func:`find_logs` found.
    read : callable
        Reads files.

    Returns
    -------
    read : object
        What `read` returned.
    logs : Logs
        With the damaged ones among what is left out.

    Raises
    ------
    DataError
        If a damaged log is required, or no other is left.
    """

    def read_named(files: Sequence[Path]) -> T:
        with expects(files[0], f"logs in format {logs.reader.name}"):
            return read(files)

    try:
        return read_named(logs.files), logs
    except (DamagedFileError, SilentSystemError) as error:
        kind = NoOutcomeError if isinstance(error, SilentSystemError) else DamagedFileError
        unusable = list(_unusable(logs, read_named, kind))
        left = {each.path for each in unusable}
        files = [path for path in logs.files if path not in left]
        if not unusable or not files:
            raise
    return read_sound(logs._replace(files=files, left_out=[*logs.left_out, *unusable]), read)


def _unusable(
    logs: Logs, read: Callable[[Sequence[Path]], object], kind: type[DataError]
) -> Iterator[LeftOut]:
    """Read every log that may be left out by itself, and yield those that raise such an error."""
    for path in logs.files:
        if path in logs.required:
            continue
        try:
            read([path])
        except kind as error:
            yield LeftOut(path, _reason(error), damaged=True)
        except DataError:
            pass  # says something of the choices of the caller, or of all logs


def _reason(error: DataError) -> str:
    return str(error).partition("; got ")[2] or str(error)


def _check_selection(reader: Reader, selection: Selection) -> None:
    for name, value in vars(selection).items():
        known = reader.selectors if name in SELECTORS else reader.choices
        if value not in (None, False, ()) and name not in known:
            given = ",".join(value) if isinstance(value, tuple) else value
            remedy = ": write them as a table with a column for it" if not reader.choices else ""
            raise DataError(
                f"{name} must be left out in format {reader.name}, whose files say nothing of it; "
                f"got {given!r}{remedy}"
            )


def _of_format(
    reader: Reader, inside: Sequence[Path], *, by_name: bool
) -> tuple[list[Path], list[LeftOut]]:
    """Return the files of a format in folders; of tables with chosen columns, by their names."""
    files, others = [], []
    for path in inside:
        if by_name:
            name, reason = reader.name * (plain_suffix(path) in SUFFIXES), ""
        else:
            name, reason = _format_of(path, [reader])
        if name:
            files.append(path)
        else:
            others.append(LeftOut(path, reason))
    return files, others


def _recognise(
    named: Sequence[Path], inside: Sequence[Path]
) -> tuple[Reader, list[Path], list[LeftOut]]:
    """Return the one format of all files that are logs, and the other files."""
    by_format: dict[str, list[Path]] = {}
    left_out = []
    for path in named:
        name, _ = _format_of(path, READERS.values(), raising=True)
        if not name and plain_suffix(path) in SUFFIXES:
            name = "table"  # the error names the missing part
        if not name:
            # An archive may be compressed as well, as .tar.gz.
            endings = (plain_suffix(path), path.suffix.lower())
            remedy = next((_REMEDIES[each] for each in endings if each in _REMEDIES), _NAME_IT)
            raise DataError(f"paths must be logs in a known format; got {path.name!r}: {remedy}")
        by_format.setdefault(name, []).append(path)
    for path in inside:
        name, reason = _format_of(path, READERS.values())
        if name:
            by_format.setdefault(name, []).append(path)
        else:
            left_out.append(LeftOut(path, reason))
    name = _format_meant(by_format, named)
    left_out += [
        LeftOut(path, f"in format {other}")
        for other, files in by_format.items()
        for path in files
        if other != name
    ]
    return READERS[name], by_format.get(name, []), left_out


def _format_meant(by_format: Mapping[str, Sequence[Path]], named: Sequence[Path]) -> str:
    """Return the one format of all files, or that of a tool among tables derived from its logs."""
    if len(by_format) < 2:
        return next(iter(by_format), "table")
    of_tools = [name for name in by_format if not READERS[name].plain]
    derived = [path for name in by_format if READERS[name].plain for path in by_format[name]]
    few = len(of_tools) == 1 and len(derived) <= len(by_format[of_tools[0]])
    if few and not set(named).intersection(derived):
        return of_tools[0]
    counts = ", ".join(
        f"{len(files)} in {name} ({files[0].name}{', ...' * (len(files) > 1)})"
        for name, files in by_format.items()
    )
    raise DataError(
        f"paths must hold logs in one format; got {counts}: choose one by format=..., or name "
        "fewer paths"
    )


def _format_of(path: Path, readers: Iterable[Reader], *, raising: bool = False) -> tuple[str, str]:
    """Return the format of a file, empty if it has none, and then what is wrong with it."""
    if path.stat().st_size == 0:
        return "", "empty"
    try:
        for start, kind, row in _UNREAD:
            if starts_like(path, re.compile(start, re.DOTALL), (".json", *LINES)):
                raise DataError(
                    f"paths must be logs in a known format; got {kind}, in {in_folder(path)}: "
                    f"write a table that has a row with {row}"
                )
        likely = (row for row in readers if plain_suffix(path) in row.endings)
        return next((row.name for row in likely if row.recognises(path)), ""), ""
    except DataError as error:
        if raising:
            raise
        return "", _reason(error)


def _listed(left_out: Sequence[LeftOut]) -> str:
    damaged = [each for each in left_out if each.damaged]
    others = [each for each in left_out if not each.damaged]
    parts = []
    if others:
        noun = "file that is no log" if len(others) == 1 else "files that are no logs"
        parts.append(f"{len(others)} {noun} ({_shown(others)})")
    if damaged:
        noun = "unusable log" if len(damaged) == 1 else "unusable logs"
        parts.append(f"{len(damaged)} {noun} ({_shown(damaged)})")
    return " and ".join(parts)


def _shown(left_out: Sequence[LeftOut]) -> str:
    shown = [
        f"{each.path.name} ({each.reason})" if each.reason else each.path.name
        for each in left_out[:_NAMED]
    ]
    more = [f"{len(left_out) - _NAMED} more"] * (len(left_out) > _NAMED)
    return ", ".join([*shown, *more])
