"""Open files of logs: compressed or not, in UTF-8 or UTF-16, and never larger than they may be."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import sys
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, BinaryIO, cast

from bayesrank.errors import DamagedFileError, DataError

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError
    from compression.zstd import open as open_zstd
else:
    from zstandard import ZstdError
    from zstandard import open as open_zstd

# Compressions of a whole file: the bytes that it starts with, its ending, and what opens it.
COMPRESSIONS: tuple[tuple[bytes, str, Callable[[IO[bytes]], IO[bytes]]], ...] = (
    (b"\x1f\x8b", ".gz", lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file))),
    (b"BZh", ".bz2", lambda file: cast("IO[bytes]", bz2.BZ2File(file))),
    (b"\xfd7zXZ\x00", ".xz", lambda file: cast("IO[bytes]", lzma.LZMAFile(file))),  # noqa: SIM115
    (
        b"\x28\xb5\x2f\xfd",
        ".zst",
        lambda file: cast("IO[bytes]", open_zstd(cast(BinaryIO, file), "rb")),
    ),
)
ENDINGS = frozenset({ending for _, ending, _ in COMPRESSIONS} | {".zip"})

# Logs compress ten to fifty times; a bomb of deflate a thousand times.
EXPANSION = 100
# Size to which any file may expand.
SMALL = 64 << 20

DAMAGE = (
    EOFError,
    OSError,
    ZstdError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
)

# What is no file of an archive: folders, and what macOS adds.
_BESIDE = re.compile(r"__MACOSX/|.*/$|(?:.*/)?\.DS_Store$")

# Errors of code that parses a document with another layout.
_OTHER_LAYOUT = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)

# Declared data without content are missing, up to this multiple of the content.
ANNOUNCED = 1_000
FEW = 1_000_000

# Enough of a file to see its first keys, or the names of its columns.
HEAD_BYTES = 65_536
# Of a text in JSON, such as an answer, that comes before them.
_TEXT_BYTES = 1_000
_TEXT = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)("?)', re.DOTALL)

_CHUNK = 1 << 16

# Messages of int() and float().
_NO_NUMBER = re.compile(r"(?:invalid literal|could not convert).*?: (.*)")

# Number of the compression in zip archives.
_ZSTD = 93


def plain_name(path: Path) -> str:
    """Return the name of a file without the ending of its compression.

    An archive such as ``model.zip`` of ``model.json`` has the ending of its only file.

    Examples
    --------
    >>> plain_name(Path("runs/model.json.gz"))
    'model.json'
    """
    suffix = path.suffix.lower()
    if suffix == ".zip" and path.is_file():
        inside = _member_suffix(path, path.stat().st_mtime_ns)
        return path.stem if path.stem.lower().endswith(inside) else path.stem + inside
    return path.stem if suffix in ENDINGS else path.name


@lru_cache(maxsize=1_000)
def _member_suffix(path: Path, modified: int) -> str:
    """Return the ending of the only file of an archive, in lower case; empty if there is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = _members(archive)
    except DAMAGE:
        return ""
    return Path(names[0]).suffix.lower() if len(names) == 1 else ""


def _members(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the files in an archive, without folders and what macOS adds."""
    return [name for name in archive.namelist() if not _BESIDE.match(name)]


def plain_suffix(path: Path) -> str:
    """Return the ending of a file in lower case, without that of its compression.

    Examples
    --------
    >>> plain_suffix(Path("log.CSV.xz"))
    '.csv'
    """
    return Path(plain_name(path)).suffix.lower()


def stored(path: Path) -> Path | None:
    """Return a file, or what it is compressed to; None where there is neither."""
    compressed = (path.with_name(f"{path.name}{ending}") for ending in sorted(ENDINGS))
    return next((each for each in (path, *compressed) if each.is_file()), None)


def in_folder(path: Path) -> str:
    """Return the name of a file with its folder, since tools call the files of all runs alike.

    Examples
    --------
    >>> in_folder(Path("/logs/gpt-4.1/eval_results.json"))
    'gpt-4.1/eval_results.json'
    """
    return str(Path(path.parent.name) / path.name)


@contextmanager
def open_log(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, decompressed, and in UTF-8 where it is text in UTF-16 or 32.

    Parameters
    ----------
    path : pathlib.Path
        File; its first bytes say how it is compressed.

    Yields
    ------
    binary file

    Raises
    ------
    DataError
        Naming the file, if it may not be read, is damaged, or expands out of all proportion.
    """
    refuse_unreadable(path)
    try:
        with ExitStack() as stack:
            file = stack.enter_context(path.open("rb"))
            size = os.fstat(file.fileno()).st_size
            head = file.peek(8)
            expand = next((each for magic, _, each in COMPRESSIONS if head.startswith(magic)), None)
            if path.suffix.lower() == ".zip":
                file = _bounded(stack.enter_context(_only_member(file, path)), size, path)
            elif expand is not None:
                file = _bounded(stack.enter_context(expand(file)), size, path)
            yield cast(BinaryIO, _in_utf8(file, path))
    except DAMAGE as error:
        raise DamagedFileError(
            f"paths must hold whole files; got {_one_line(error)} in {in_folder(path)}: the file "
            "may be cut off, copy it again or leave it out"
        ) from error


def starts_like(
    path: Path, pattern: re.Pattern[bytes], suffixes: tuple[str, ...] = (".json",)
) -> bool:
    """Return whether the beginning of a file, with long texts cut short, matches a pattern.

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
    return plain_suffix(path) in suffixes and pattern.match(json_head(path)) is not None


def json_head(path: Path) -> bytes:
    """Return the beginning of a JSON file, in which long texts are cut short to see the first keys.

    A byte order mark and white space before it are left out.

    Raises
    ------
    DataError
        As :func:`open_log`.
    """
    told = path.stat()
    return _json_head(path, told.st_mtime_ns, told.st_size)


@lru_cache(maxsize=1)  # every format looks at it
def _json_head(path: Path, modified: int, size: int) -> bytes:
    head = b""
    with open_log(path) as file:
        for _ in range(0, SMALL, HEAD_BYTES):
            chunk = file.read(HEAD_BYTES)
            head = _TEXT.sub(_cut, head + chunk)
            if not chunk or len(head) >= HEAD_BYTES:
                break
    return head.removeprefix(BOM_UTF8).lstrip()


def _cut(text: re.Match[bytes]) -> bytes:
    if len(text[1]) <= _TEXT_BYTES:
        return text[0]
    return b'"' + text[1][:_TEXT_BYTES].rstrip(b"\\") + text[2]


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose members may be compressed with zstd; :func:`read_member` reads them.

    Raises
    ------
    DataError
        Naming the file, if it is damaged.
    """
    refuse_unreadable(path)
    try:
        with zipfile.ZipFile(path) as archive:
            if any(member.compress_type == _ZSTD for member in archive.infolist()):
                _learn_zstd()
            yield archive
    except DAMAGE as error:
        raise DamagedFileError(
            f"paths must be complete archives; got {_one_line(error)} in {in_folder(path)}: the "
            "file may be cut off, copy it again or leave it out"
        ) from error


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the content of a member of an archive.

    Raises
    ------
    DataError
        If it expands out of all proportion.
    """
    path = Path(archive.filename or name)
    with _open_member(archive, name) as member:
        return _bounded(member, path.stat().st_size, path).read()


def refuse_unreadable(path: Path) -> None:
    """Raise if the permissions of a file do not allow reading it.

    Raises
    ------
    DataError
        Naming the file.
    """
    if not os.access(path, os.R_OK):
        raise DataError(f"paths must be readable files; got {str(path)!r}: change its permissions")


@contextmanager
def expects(path: Path, what: str) -> Iterator[None]:
    """Turn the errors of taking a document apart into one that names the file.

    Parameters
    ----------
    path : pathlib.Path
        What is read.
    what : str
        What it must hold, such as ``"runs with a task_id and a reward"``.

    Raises
    ------
    DataError
        In place of a KeyError, a TypeError and the like.

    Examples
    --------
    >>> try:
    ...     with expects(Path("log.json"), "runs with a reward"):
    ...         {}["reward"]
    ... except DataError as error:
    ...     print(error)
    paths must hold runs with a reward; got no 'reward' in log.json: leave it out
    """
    try:
        yield
    except DataError:
        raise
    except _OTHER_LAYOUT as error:
        raise DamagedFileError(
            f"paths must hold {what}; got {misfit(error)} in {in_folder(path)}: leave it out"
        ) from error


@contextmanager
def damage_named(path: Path, *more: type[Exception]) -> Iterator[None]:
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
            f"paths must be readable tables; got {_one_line(error)} in {in_folder(path)}: {remedy}"
        ) from error


def check_announced(number: int, held: int, what: str, path: Path) -> None:
    """Raise if a file declares far more data than it contains.

    Parameters
    ----------
    number, held : int
        Outcomes that are announced, and outcomes that are there.
    what : str
        What is counted, such as ``"epochs of 12 samples"``.
    path : pathlib.Path
        What is read.

    Raises
    ------
    DataError
        Before memory is taken for them.
    """
    if number > max(FEW, ANNOUNCED * held):
        raise DamagedFileError(
            f"paths must hold what they announce; got {what} for {held} outcomes in "
            f"{in_folder(path)}: the file may be damaged, copy it again or leave it out"
        )


def misfit(error: Exception) -> str:
    """Name the missing part of a document.

    Examples
    --------
    >>> misfit(KeyError("reward"))
    "no 'reward'"
    """
    if isinstance(error, KeyError):
        return f"no {error.args[0]!r}"
    if isinstance(error, RecursionError):
        return "too many levels of nesting"
    if isinstance(error, OverflowError):
        return "a number that is too large"
    if isinstance(error, ValueError) and error.args:
        text = _one_line(error)
        no_number = _NO_NUMBER.search(text)
        return f"{no_number[1]} in place of a number" if no_number else text
    return "values of other types"


def _learn_zstd() -> None:
    if sys.version_info < (3, 14):
        import zipfile_zstd  # noqa: F401 - teaches zipfile the compression


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def _only_member(file: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(file) as archive:
        names = _members(archive)
        if len(names) != 1:
            raise DamagedFileError(
                f"paths must be archives of one file; got {len(names)} in {in_folder(path)}: "
                "unpack it"
            )
        with _open_member(archive, names[0]) as member:
            yield member


def _open_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    try:
        return archive.open(name)
    except (NotImplementedError, RuntimeError) as error:  # damaged flags look like encryption
        raise zipfile.BadZipFile(str(error)) from error


def _bounded(file: IO[bytes], size: int, path: Path) -> io.BufferedReader:
    return io.BufferedReader(_Bounded(file, max(SMALL, EXPANSION * size), path), _CHUNK)


def _in_utf8(file: IO[bytes], path: Path) -> IO[bytes]:
    """Return text in UTF-16 or UTF-32 as UTF-8; anything else as it is."""
    head = cast(io.BufferedReader, file).peek(4)[:4]
    encoding = json.detect_encoding(head) if len(head) == 4 else "utf-8"
    if encoding.startswith("utf-8"):
        return file
    return io.BufferedReader(_Recoded(io.TextIOWrapper(file, encoding, newline=""), path), _CHUNK)


class _Bounded(io.RawIOBase):
    """The expanded content of a file, up to a limit."""

    def __init__(self, file: IO[bytes], limit: int, path: Path) -> None:
        self._file, self._limit, self._path = file, limit, path
        self._left = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        chunk = self._file.read(len(buffer))
        self._left -= len(chunk)
        if self._left < 0:
            raise DamagedFileError(
                f"paths must not expand to more than {self._limit >> 20} MB; got more in "
                f"{in_folder(self._path)}: unpack it if it is what you expect"
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)


class _Recoded(io.RawIOBase):
    """Text of another encoding as UTF-8."""

    def __init__(self, text: io.TextIOWrapper, path: Path) -> None:
        self._text, self._path = text, path
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            try:
                text = self._text.read(_CHUNK)
            except UnicodeDecodeError as error:
                raise DamagedFileError(
                    f"paths must be text in one encoding; got {_one_line(error)} in "
                    f"{in_folder(self._path)}: the file may be cut off, or save it in UTF-8"
                ) from error
            self._rest = text.removeprefix("\ufeff").encode("utf-8", "backslashreplace")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
