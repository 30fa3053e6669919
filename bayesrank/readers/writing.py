"""Responses and battles as files of long tables."""

import bz2
import gzip
import json
import logging
import lzma
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesrank.battles import Battles, Labels
from bayesrank.errors import DataError
from bayesrank.outcomes import declared_columns
from bayesrank.readers.opening import open_zstd, plain_suffix
from bayesrank.readers.table_files import BINARY, LINES, TEXT
from bayesrank.responses import Responses
from bayesrank.winners import BETTER, MUCH_BETTER, TIE

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("bayesrank")

# Words for winners by outcome, and for votes for neither, that are not names of systems.
_WINNERS = (
    {
        MUCH_BETTER: "first_much_better",
        BETTER: "first",
        TIE: "tie",
        -BETTER: "second",
        -MUCH_BETTER: "second_much_better",
    },
    {MUCH_BETTER: "A>>B", BETTER: "A>B", TIE: "A=B", -BETTER: "B>A", -MUCH_BETTER: "B>>A"},
)
_BOTH_BAD = ("both_bad", "tie (bothbad)")

WRITTEN = (*TEXT, *LINES, ".parquet", ".feather")
_OPENED = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open, ".zst": open_zstd}


def check_table_ending(path: Path) -> None:
    """Raise unless the ending of a path is that of a format in which tables are written."""
    suffix, last = plain_suffix(path), path.suffix.lower()
    if suffix not in WRITTEN or (suffix != last and (suffix in BINARY or last not in _OPENED)):
        raise DataError(f"path must end in {', '.join(WRITTEN)}; got {str(path)!r}")


def write_table(data: Responses | Battles, path: str | os.PathLike[str]) -> Path:
    """Write responses or battles as a long table, which :func:`bayesrank.read_data` reads again.

    Parameters
    ----------
    data : Responses or Battles
        Outcomes, or votes.
    path : path-like
        Ends in ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet`` or ``.feather``; text may be
        compressed, with the ending ``.gz``, ``.bz2``, ``.xz`` or ``.zst``. The file is replaced if
        it exists. Paired trials are in a column run; a scale, weights or the number of categories
        are in columns outcome_scale, outcome_weights and outcome_categories. Prior outcomes are
        left out, with a message. Battles have a row for each result.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    DataError
        If the path has another ending.
    OSError
        If the disk is full, or the folder is not writable; an existing file is kept.

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
    suffix = plain_suffix(target)
    try:
        table = _battle_rows(data) if isinstance(data, Battles) else _response_rows(data)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".bayesrank-") as folder:
            draft = Path(folder) / target.name
            if suffix in TEXT:
                table.to_csv(draft, index=False, sep=TEXT[suffix])
            elif suffix in LINES:
                _write_lines(table, draft)
            elif suffix == ".parquet":
                table.to_parquet(draft, index=False)
            else:
                table.to_feather(draft)
            os.replace(draft, target)
    except OSError as error:  # whose message has the path of the draft
        raise type(error)(error.errno, error.strerror or str(error), str(target)) from error
    return target


def _write_lines(table: "pd.DataFrame", path: Path) -> None:
    """Write one object per line, with all digits of numbers and null for NaN."""
    names = table.columns.tolist()
    columns = [table[name].astype(object).where(table[name].notna(), None) for name in names]
    with _OPENED.get(path.suffix.lower(), open)(path, "wt", encoding="utf-8") as file:
        for row in zip(*columns, strict=True):
            record = dict(zip(names, row, strict=True))
            file.write(f"{json.dumps(record, ensure_ascii=False)}\n")


def _response_rows(data: Responses) -> "pd.DataFrame":
    table = data.to_long()
    if data.prior_outcomes is not None:
        logger.info("Prior outcomes are left out of the table")
    if data.paired:
        table = table.rename(columns={"trial": "run"})
    return table.assign(**declared_columns(data.declared))


def _battle_rows(data: Battles) -> "pd.DataFrame":
    """Return battles as a table with a row for each result."""
    import pandas as pd

    names = np.array(data.systems, dtype=object)
    taken = {name.strip().lower() for name in data.systems}
    place = next(
        (i for i, words in enumerate(_WINNERS) if taken.isdisjoint(map(str.lower, words.values()))),
        0,
    )
    winner = np.array([_WINNERS[place][int(each)] for each in data.outcome], dtype=object)
    if data.both_bad is not None:
        winner[data.both_bad] = _BOTH_BAD[place]
    columns = {"first": names[data.first], "second": names[data.second], "winner": winner}
    columns |= {
        "vote_id" if name == "vote" else name: _values(column)
        for name in ("weight", "time", "group", "prompt", "judge", "vote")
        if (column := getattr(data, name)) is not None
    }
    for name, values in data.covariates.items():
        columns |= {f"{name}_a": values, f"{name}_b": np.zeros(len(values))}
    return pd.DataFrame(columns)


def _values(column: Labels | np.ndarray) -> np.ndarray:
    """Return a column of numbers unchanged, and labels as text."""
    if isinstance(column, Labels):
        return np.array(column.names, dtype=object)[column.codes]
    return column
