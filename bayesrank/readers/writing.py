"""Responses as files of long tables."""

import os
import tempfile
from pathlib import Path

from bayesrank.errors import DataError
from bayesrank.readers.opening import plain_suffix
from bayesrank.readers.table_files import LINES, TEXT
from bayesrank.responses import Responses

WRITTEN = (*TEXT, *LINES, ".parquet", ".feather")


def check_table_ending(path: Path) -> None:
    """Raise unless the ending of a path says how to write a table there."""
    if plain_suffix(path) not in WRITTEN:
        raise DataError(f"path must end in {', '.join(WRITTEN)}; got {str(path)!r}")


def write_table(data: Responses, path: str | os.PathLike[str]) -> Path:
    """Write responses as a long table, which :func:`bayesrank.read_responses` reads again.

    Parameters
    ----------
    data : Responses
        Outcomes.
    path : path-like
        Ends in ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet`` or ``.feather``, and for text perhaps
        in ``.gz``, ``.bz2``, ``.xz`` or ``.zst``; replaced if it exists. Trials that are the same
        run for all systems stand in a column run. What outcomes are, such as a scale, has to be
        said again when they are read; prior outcomes are left out.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    DataError
        If the ending is another one.
    OSError
        If the disk is full, or the folder may not be written to; what was there stays.

    Examples
    --------
    >>> from bayesrank import read_responses
    >>> data = Responses([[1, 0], [1, 1]], systems=["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_responses(write_table(data, Path(folder) / "log.csv"))
    Responses(2 systems, 2 questions, 1 trial)
    """
    target = Path(path)
    check_table_ending(target)
    table = data.to_long()
    if data.paired:
        table = table.rename(columns={"trial": "run"})
    suffix = plain_suffix(target)
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".bayesrank-") as folder:
            draft = Path(folder) / target.name
            if suffix in TEXT:
                table.to_csv(draft, index=False, sep=TEXT[suffix])
            elif suffix in LINES:
                table.to_json(draft, orient="records", lines=True, force_ascii=False)
            elif suffix == ".parquet":
                table.to_parquet(draft, index=False)
            else:
                table.to_feather(draft)
            os.replace(draft, target)
    except OSError as error:  # which names the draft
        raise type(error)(error.errno, error.strerror or str(error), str(target)) from error
    return target
