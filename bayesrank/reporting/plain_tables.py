"""Tables of names and numbers, rounded for readers, or complete for programs."""

import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.layout import Column
from bayesrank.printable import cell_text, printable
from bayesrank.reporting.tables import (
    DECIMALS,
    count_text,
    decimal_text,
    interval_cells,
    supported_decimals,
)
from bayesrank.results.numbers import probability_text

if TYPE_CHECKING:
    import pandas as pd

    from bayesrank.checking import Report

# Order in which a narrow terminal leaves out columns of plain tables, the highest first.
_SPARE = {
    **dict.fromkeys(("draws infinite", "draws undefined"), 6),
    **dict.fromkeys(("rho", "self min", "self max"), 5),
    **dict.fromkeys(("z", "self sd", "tau min", "tau max"), 4),
    **dict.fromkeys(("sd", "tau sd", "best gold sd", "best self sd"), 3),
    "mean": 2,
    **dict.fromkeys(("superiority", "width"), 1),
}
# Names of columns whose headers are those of leaderboards.
_HEADERS = {"observed mean": "observed"}
_PROBABILITIES = ("superiority", "superiority then")
# Decimals of statistics: z is a ratio to the standard deviation of draws.
_STATISTICS = {"z": 2, "rho": DECIMALS}
_COUNTS = ("trials", "battles", "further trials needed", "further battles needed")

# Default text for a number that does not exist.
UNDEFINED = "none"

# What Markdown reads: underscores within words and brackets of intervals are text.
_MARKUP = re.compile(r"[|`*~$]|\\(?=[!-/:-@\[-`{-~])|(?<!\w)_|_(?!\w)|\](?=[(\[])")

# Styles of verdicts on a terminal.
_STYLES = {"good": "green", "doubtful": "yellow", "bad": "bold red"}


def finding_columns(report: "Report") -> list[Column]:
    """Return the findings of a check, one row per finding.

    Parameters
    ----------
    report : Report
        What :func:`bayesrank.checking.check` returned.

    Returns
    -------
    list of Column
    """
    verdicts = [one.verdict for one in report]
    return [
        Column("topic", [one.topic for one in report]),
        Column("verdict", verdicts, styles=[_STYLES.get(each, "") for each in verdicts]),
        Column("finding", [one.sentence for one in report], text="sentence"),
    ]


def plain_columns(frame: "pd.DataFrame") -> list[Column]:
    """Round a table of names and numbers for readers.

    Parameters
    ----------
    frame : pandas.DataFrame
        Names, numbers and Boolean values. The columns of an interval end in ``lower`` and
        ``upper``; numbers in the unit of the first interval get its decimals. ``attrs["empty"]``
        has the text for numbers that do not exist: by column, or for all columns;
        ``attrs["ci_prob"]`` the probability of the intervals, for their headers.

    Returns
    -------
    list of Column
        One column for the two ends of an interval.

    Examples
    --------
    >>> import pandas as pd
    >>> row = {"system": "a", "mean": 0.51234, "lower": 0.412, "upper": 0.613}
    >>> table = pd.DataFrame([row])
    >>> [column.cells for column in plain_columns(table)]
    [['a'], ['0.51'], ['[0.41, 0.61]']]
    """
    ends = {
        str(name): str(name).replace("lower", "upper") for name in frame if "lower" in str(name)
    }
    decimals = DECIMALS
    for low, high in list(ends.items())[:1]:
        widths = (frame[high] - frame[low]).to_numpy(dtype=np.float64)
        known = widths[~np.isnan(widths)]
        decimals = supported_decimals(float(np.median(known)) / 2.0) if known.size else DECIMALS
    empty = frame.attrs.get("empty", UNDEFINED)
    interval = "interval"
    if "ci_prob" in frame.attrs:
        interval = f"{100 * frame.attrs['ci_prob']:g}% interval"
    columns = []
    for name, values in frame.items():
        header = str(name).replace("_", " ")
        header = _HEADERS.get(header, header)
        spare = _SPARE.get(header, 0)
        if name in ends.values():
            continue
        if name in ends:
            title = header.replace("lower", interval)
            cells = interval_cells(values, frame[ends[str(name)]], decimals)
            lacking = values.isna() | frame[ends[str(name)]].isna()
            cells = _with_reasons(cells, lacking, empty, str(name))
            columns.append(Column(title, cells, True, spare=spare))
        elif values.dtype.kind == "b":
            columns.append(
                Column(header, ["yes" if each else "no" for each in values], spare=spare)
            )
        elif values.dtype.kind in "iuf":
            cells = _number_cells(header, values.to_numpy(), decimals if ends else DECIMALS)
            cells = _with_reasons(cells, values.isna(), empty, str(name))
            columns.append(Column(header, cells, True, spare=spare))
        else:
            columns.append(Column(header, [str(each) for each in values], spare=spare))
    return columns


def _with_reasons(
    cells: list[str], lacking: "pd.Series", empty: str | Mapping[str, str], name: str
) -> list[str]:
    """Return in words why there is no number."""
    reason = empty if isinstance(empty, str) else empty.get(name, UNDEFINED)
    return [reason if lacks else cell for cell, lacks in zip(cells, lacking, strict=True)]


def _number_cells(name: str, values: NDArray[Any], decimals: int) -> list[str]:
    """Return counts and their means as such, probabilities too, and others with some decimals."""
    if values.dtype.kind != "f" or name in _COUNTS:
        return [count_text(each) if math.isfinite(each) else f"{each:g}" for each in values]
    if name in _PROBABILITIES:
        return [probability_text(each) for each in values]
    return [decimal_text(each, _STATISTICS.get(name, decimals)) for each in values]


def to_markdown(columns: list[Column]) -> str:
    r"""Return a table in Markdown.

    Parameters
    ----------
    columns : list of Column
        The table.

    Returns
    -------
    str

    Examples
    --------
    >>> print(to_markdown([Column("rank", ["1"], align_right=True), Column("system", ["a|b"])]))
    | rank | system |
    | ---: | --- |
    | 1 | a\|b |
    """
    rows = [
        [column.header for column in columns],
        ["---:" if column.align_right else "---" for column in columns],
        *zip(*(column.cells for column in columns), strict=True),
    ]
    return "\n".join(f"| {' | '.join(map(_markdown_cell, row))} |" for row in rows)


def _markdown_cell(text: str) -> str:
    """Return text with escapes, which cannot end a cell or start HTML, code, a link or emphasis."""
    without_html = re.sub(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)", _entity, printable(text))
    return _MARKUP.sub(r"\\\g<0>", without_html)


def _entity(found: re.Match[str]) -> str:
    return {"<": "&lt;", "&": "&amp;"}[found[0]]


def to_json(frame: "pd.DataFrame") -> str:
    """Return the rows of a leaderboard as a JSON list; numbers that do not exist become null.

    Parameters
    ----------
    frame : pandas.DataFrame
        What :func:`bayesrank.leaderboard` returned.

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> print(to_json(pd.DataFrame({"rank": [1], "system": ["a"], "lcb": [float("nan")]})))
    [
      {
        "rank": 1,
        "system": "a",
        "lcb": null
      }
    ]
    """
    rows = [
        {name: _finite_or_none(value) for name, value in row.items()}
        for row in frame.to_dict(orient="records")
    ]
    text = json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False)
    # JSON escapes only the control characters of ASCII.
    return "".join(
        each if each == "\n" or printable(each) == each else f"\\u{ord(each):04x}" for each in text
    )


def to_csv(frame: "pd.DataFrame") -> str:
    """Return the rows of a table as CSV, with names that no spreadsheet takes for formulas.

    Examples
    --------
    >>> import pandas as pd
    >>> print(to_csv(pd.DataFrame({"rank": [1], "system": ["=A1"]})), end="")
    rank,system
    1,'=A1
    """
    texts = frame.select_dtypes(exclude="number").columns
    safe = frame.assign(**{name: [_cell(value) for value in frame[name]] for name in texts})
    return safe.to_csv(index=False)


def _cell(value: object) -> object:
    return cell_text(value) if isinstance(value, str) else value


def _finite_or_none(value: Any) -> object:
    import pandas as pd

    return (
        None if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)) else value
    )
