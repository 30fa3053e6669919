"""The standard input as a file, with an ending that says what it is."""

import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from bayesrank.errors import DataError

STANDARD_INPUT = "-"

# What binary formats start with, and their endings.
_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".feather", b"PK\x03\x04": ".npz"}


def spool_input() -> Path:
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
    path = Path(tempfile.mkdtemp(dir=_folder().name)) / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        first, second = file.readline(1 << 16), file.readline(1 << 16)
    if not first:
        raise DataError("paths must hold data; got an empty standard input for '-'")
    return path.rename(path.with_suffix(_ending(first, second)))


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="bayesrank-")


def _ending(first: bytes, second: bytes) -> str:
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
