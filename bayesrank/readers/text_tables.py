"""Tables as text: ``.csv`` and ``.tsv``, whatever separates their columns."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from bayesrank.errors import DamagedFileError
from bayesrank.outcome_values import DECIMAL_COMMA
from bayesrank.readers.opening import HEAD_BYTES, open_log, plain_suffix

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.parsers import TextFileReader

TEXT = {".csv": ",", ".tsv": "\t"}
# What separates columns where spreadsheets of some languages write them.
SEPARATORS = (";", "\t", "|", ",")

# Rows that are text at a time.
PIECE = 1_000_000

# Excel reads such a first line, and so it is written for Excel.
_HINT = re.compile(r"sep=(?P<separator>[;,|\t])\s*", re.IGNORECASE)
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class TextLayout(NamedTuple):
    """What a text says of its columns before its rows begin.

    `hinted` is whether its first line only says what separates them.
    """

    names: list[str]
    separator: str
    hinted: bool

    @property
    def settings(self) -> dict[str, Any]:
        """Keywords of pandas.read_csv, by which fields stay text: 007, 1e5 and NA are labels."""
        return {
            "sep": self.separator,
            "skiprows": int(self.hinted),
            "dtype": str,
            "keep_default_na": False,
            "encoding": "utf-8-sig",
        }


def text_layout(path: Path) -> TextLayout:
    """Return the names of the columns of a text, and what separates them."""
    with open_log(path) as file:
        head = file.read(HEAD_BYTES).decode("utf-8-sig", errors="replace")
    first, second, *_ = [*head.splitlines()[:2], "", ""]
    hint = _HINT.fullmatch(first)
    line = first if hint is None else second
    split = separator(line, plain_suffix(path)) if hint is None else hint["separator"]
    names = next(csv.reader([line], delimiter=split), [])
    return TextLayout([name.strip() for name in names], split, hint is not None)


def separator(line: str, suffix: str) -> str:
    """Return what separates the columns of a text by its first line.

    Examples
    --------
    >>> separator("model;question;score", ".csv"), separator("model", ".csv")
    (';', ',')
    >>> separator('model;"question, in full";score, in percent', ".csv")
    ';'
    """
    usual, unquoted = TEXT[suffix], _QUOTED.sub("", line)
    # The first of equally frequent ones is taken.
    return max((usual, *SEPARATORS), key=unquoted.count)


def read_text(path: Path, needed: Callable[[str], bool], *, text: bool) -> "pd.DataFrame":
    """Read a table in pieces, so that only different labels take memory.

    Parameters
    ----------
    path : pathlib.Path
        File.
    needed : callable
        Whether the values of a column are needed, by its name; those of others are None.
    text : bool
        Whether all columns are texts, and not categories of them.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    DamagedFileError
        If a row has more fields than the first line, or the last one is cut off.
    """
    import pandas as pd

    layout, pieces = text_layout(path), []
    with (
        open_log(path) as file,
        cast("TextFileReader", pd.read_csv(file, **layout.settings, chunksize=PIECE)) as reader,
    ):
        for piece in reader:
            if not isinstance(piece.index, pd.RangeIndex):  # extra fields are taken for labels
                raise DamagedFileError(
                    f"paths must have as many fields in every row as names; got more in {path.name}"
                )
            if not text:
                piece = piece.assign(
                    **{
                        name: pd.Categorical(piece[name]) if needed(str(name)) else None
                        for name in piece.columns
                    }
                )
            pieces.append(piece)
    refuse_cut_off(path, layout)
    if text or len(pieces) < 2:
        whole = pd.concat(pieces, ignore_index=True)
    else:
        whole = pd.DataFrame(
            {
                name: pd.api.types.union_categoricals([piece[name] for piece in pieces])
                if needed(str(name))
                else pd.Series([None] * sum(map(len, pieces)))
                for name in pieces[0].columns
            }
        )
    # Where commas do not separate columns, they are decimal.
    whole.attrs[DECIMAL_COMMA] = layout.separator == ";"
    return whole


def refuse_cut_off(path: Path, layout: TextLayout) -> None:
    """Raise if the last row of a text lacks fields and the end of its line, and no other one does.

    Raises
    ------
    DamagedFileError
        Naming the file.
    """
    end = b""
    with open_log(path) as file:
        while chunk := file.read(HEAD_BYTES):
            end = (end + chunk)[-HEAD_BYTES:]
    *others, last = end.decode("utf-8", errors="replace").splitlines(keepends=True)[1:] or [""]
    n_fields = len(layout.names)
    if last.endswith(("\n", "\r")) or not 0 < _n_fields(last, layout.separator) < n_fields:
        return
    if not any(0 < _n_fields(line, layout.separator) < n_fields for line in others):
        raise DamagedFileError(
            f"paths must hold whole rows; got a last one with fewer fields than names, and without "
            f"an end of line, in {path.name}: the file may be cut off, copy it again or end the "
            "line"
        )


def _n_fields(line: str, separator: str) -> int:
    """Return how many fields a line has; 0 if it is blank or ends a field of several lines."""
    if not line.strip() or line.count('"') % 2:
        return 0
    return _QUOTED.sub("", line).count(separator) + 1
