"""Reasons for missing outcomes of a table, from common words of logs."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.columns import ERRORS

if TYPE_CHECKING:
    import pandas as pd

# The first pattern that a text matches determines the reason.
_WORDS = (
    ("", r"(?:none|null|nan|n/?a|no|false|0(?:\.0)?|-)?"),
    ("limit", r".*(?:time[d_ -]*out|limit|budget|max_?(?:tokens|turns|steps)|length|too[_ ]long|"
    r"context[_ ]?(?:window|length)|deadline|exceeded|oom|out[_ ]of[_ ]memory).*"),
    ("refused", r".*(?:refus|content[_ ]?filter|safety|blocked|moderat|policy|guardrail).*"),
    ("absent", r"(?:absent|missing|skip(?:ped)?|not[_ ](?:run|asked|attempted|submitted|started)|"
    r"pending|queued|incomplete|cancell?ed)"),
    ("unscored", r".*(?:unscored|not[_ ]scored|no[_ ](?:score|answer)|pars(?:e|ing)|extract|"
    r"invalid|ambiguous|format).*"),
    ("error", r".*(?:error|exception|crash|fail|abort|killed|fatal|infra).*"),
)  # fmt: skip
_PATTERNS = [(status, re.compile(words, re.IGNORECASE | re.DOTALL)) for status, words in _WORDS]


def why_missing(
    columns: "Sequence[tuple[str, pd.Series]]", outcome: NDArray[np.float64]
) -> NDArray[np.object_]:
    """Return the status of every row; empty if there is an outcome or no fault.

    Parameters
    ----------
    columns : sequence of (str, pandas.Series)
        Names and values of columns such as error and finish_reason; the first one that says
        something counts.
    outcome : numpy.ndarray of shape (row,)
        NaN where it is missing.

    Returns
    -------
    numpy.ndarray of str and shape (row,)
        One of error, limit, refused, unscored and absent.

    Examples
    --------
    >>> import pandas as pd
    >>> reasons = pd.Series(["", "timeout after 60 s", "ValueError", None])
    >>> why_missing([("error", reasons)], np.array([1.0, np.nan, np.nan, np.nan])).tolist()
    ['', 'limit', 'error', 'unscored']
    """
    rows = np.flatnonzero(np.isnan(outcome))
    status = np.full(len(outcome), "", dtype=object)
    told = np.full(len(rows), "", dtype=object)
    for name, column in columns:
        codes, texts = column.iloc[rows].astype(str).fillna("").factorize()
        found = np.array([_status(text, name in ERRORS) for text in texts.tolist()], dtype=object)
        if len(found):
            told = np.where(told == "", found[codes], told)
    status[rows] = np.where(told == "", "unscored", told)
    return status


def say_errors(
    columns: "Sequence[tuple[str, pd.Series]]", outcome: NDArray[np.float64]
) -> tuple[str, ...]:
    """Report outcomes of 0 in rows with an error, since they count as wrong.

    Parameters
    ----------
    columns, outcome
        As in :func:`why_missing`.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> import pandas as pd
    >>> say_errors([("is_error", pd.Series([False, True]))], np.array([1.0, 0.0]))
    ("1 outcome of 0 counts as wrong despite an error in the column 'is_error': leave the outcome \
blank if there was no answer",)
    """
    zero = np.flatnonzero(outcome == 0.0)
    notes = []
    for name, column in columns:
        if name in ERRORS and len(zero):
            codes, texts = column.iloc[zero].astype(str).fillna("").factorize()
            number = int(np.array([bool(_status(each, True)) for each in texts])[codes].sum())
            if number:
                counted = (
                    "1 outcome of 0 counts" if number == 1 else f"{number:,} outcomes of 0 count"
                )
                notes.append(
                    f"{counted} as wrong despite an error in the column {name!r}: leave the "
                    "outcome blank if there was no answer"
                )
    return tuple(notes[:1])


def _status(text: str, is_error: bool) -> str:
    """Return the status from a text; in a column of errors, any text means an error."""
    known = (status for status, pattern in _PATTERNS if pattern.fullmatch(text.strip()))
    return next(known, "error" if is_error else "")
