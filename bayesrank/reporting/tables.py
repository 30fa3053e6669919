"""Tables as text: what the command line prints and what goes into a report.

For people (plain text, Markdown), numbers are rounded to what their uncertainty supports; for
programs (JSON, CSV), every column is there in full precision.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesrank.results.numbers import probability_text, short_letters

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrank.checking import Report


class Column(NamedTuple):
    """A column of a table.

    Its header, its cells as text, on which side they align, what the column says (for readers who
    ask), what it sorts by where that is not the text, and in what order a narrow terminal does
    without it: the highest first, 0 never.
    """

    header: str
    cells: list[str]
    align_right: bool = False
    meaning: str = ""
    keys: Sequence[object] | None = None
    spare: int = 0


def leaderboard_columns(result: "xr.DataTree") -> list[Column]:
    """Choose and round what people read of a leaderboard.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.

    Returns
    -------
    list of Column
        Rank, system, score, observed mean and numbers of outcomes and questions; with draws also
        the interval of the score, the lower credible bound and the rank by it, the interval of the
        rank, the probability of being the best,
        and the letters of groups.
    """
    from bayesrank.results.leaderboard import leaderboard

    settings = result["ranking"].attrs
    return frame_columns(
        leaderboard(result),
        ci_prob=settings.get("ci_prob", math.nan),
        lcb=settings.get("lcb", math.nan),
    )


def frame_columns(
    frame: "pd.DataFrame", *, ci_prob: float = math.nan, lcb: float = math.nan
) -> list[Column]:
    """Choose and round what people read of a leaderboard, given as a frame.

    Parameters
    ----------
    frame : pandas.DataFrame
        What :func:`bayesrank.leaderboard` returned.
    ci_prob, lcb : float
        Probability of the intervals and quantile of the lower bound; without draws there are none.

    Returns
    -------
    list of Column
        As :func:`leaderboard_columns`.
    """
    decimals = _decimals(frame)
    evidence = _evidence_columns(frame, decimals)
    columns = [
        Column("rank", *_ranks(frame["rank"]), "Place by the score; equals share the best place."),
        Column("system", [str(system) for system in frame["system"]], meaning="What is ranked."),
        Column("score", *_rounded(frame["score"], decimals), "Point estimate; higher is better."),
    ]
    if "score_lower" not in frame:
        return [*columns, *evidence]
    prob, tail = f"{100 * ci_prob:g}%", f"{100 * lcb:g}%"
    bounds = zip(frame["score_lower"], frame["score_upper"], strict=True)
    groups = [short_letters(letters) for letters in frame["group"]] if "group" in frame else None
    return [
        *columns,
        Column(
            f"{prob} interval",
            [f"[{low:.{decimals}f}, {high:.{decimals}f}]" for low, high in bounds],
            True,
            f"The score is in this interval with a probability of {prob}.",
            frame["score_lower"].to_list(),
        ),
        *evidence,
        Column(
            f"lcb {tail}",
            *_rounded(frame["lcb"], decimals),
            f"Lower credible bound: the score is below it with a probability of {tail}.",
            spare=2,
        ),
        Column(
            "lcb rank",
            *_ranks(frame["lcb_rank"]),
            "Conservative place, by the lower credible bound.",
            spare=3,
        ),
        Column(
            f"{prob} ranks",
            range_cells(frame["rank_lower"], frame["rank_upper"]),
            True,
            f"The place of this system is in this range with a probability of {prob}.",
            frame["rank_lower"].to_list(),
        ),
        Column(
            "Pr(best)",
            [probability_text(each) for each in frame["prob_best"]],
            True,
            "Probability that no system is better.",
            frame["prob_best"].to_list(),
        ),
        *([] if groups is None else [_group_column(groups, prob)]),
    ]


def finding_columns(report: "Report") -> list[Column]:
    """Return what a check found, one row per finding.

    Parameters
    ----------
    report : Report
        What :func:`bayesrank.checking.check` returned.

    Returns
    -------
    list of Column
    """
    return [
        Column("topic", [one.topic for one in report]),
        Column("verdict", [one.verdict for one in report]),
        Column("finding", [one.sentence for one in report]),
    ]


def _evidence_columns(frame: "pd.DataFrame", decimals: int) -> list[Column]:
    """Return the observed mean and the numbers of outcomes and questions, where they are known."""
    columns = []
    if "observed_mean" in frame and not np.isnan(frame["observed_mean"].to_numpy()).all():
        columns.append(
            Column(
                "observed",
                *_rounded(frame["observed_mean"], decimals),
                "Observed mean: of the grades, every question counting the same; of battles, the "
                "wins with ties as half.",
            )
        )
    if "n_outcomes" in frame:
        few = frame["few"] if "few" in frame else np.zeros(len(frame), dtype=bool)
        columns.append(
            Column(
                "n",
                [
                    f"{_count(n)}{' few' * bool(mark)}"
                    for n, mark in zip(frame["n_outcomes"], few, strict=True)
                ],
                True,
                "Number of outcomes, or of battles; few where that is little evidence.",
                frame["n_outcomes"].to_list(),
            )
        )
    if "n_questions" in frame:
        columns.append(
            Column(
                "questions",
                [_count(n) for n in frame["n_questions"]],
                True,
                "Number of questions with an outcome.",
                frame["n_questions"].to_list(),
                spare=1,
            )
        )
    return columns


def _group_column(cells: list[str], prob: str) -> Column:
    meaning = (
        f"Systems that share a letter are not told apart: at {prob}, all pairs decided at once, "
        "their order is not resolved; a-e stands for all letters from a to e."
    )
    return Column("group", cells, meaning=meaning)


def range_cells(lower: Iterable[float], upper: Iterable[float]) -> list[str]:
    """Return ranges of ranks as text, a single rank for a range of one.

    Parameters
    ----------
    lower, upper : iterable of float
        Ends of the ranges.

    Returns
    -------
    list of str

    Examples
    --------
    >>> range_cells([1, 2], [1, 4])
    ['1', '2-4']
    """
    ends = zip(lower, upper, strict=True)
    return [f"{low:g}" if low == high else f"{low:g}-{high:g}" for low, high in ends]


def fit_width(columns: list[Column], width: int) -> list[Column]:
    """Leave out columns that can be spared until a table of plain text has a width.

    Parameters
    ----------
    columns : list of Column
        The table.
    width : int
        Most characters of a line.

    Returns
    -------
    list of Column
        Wider still where what is left cannot be spared.

    Examples
    --------
    >>> table = [Column("system", ["a"]), Column("lcb rank", ["1"], spare=1)]
    >>> [column.header for column in fit_width(table, 10)]
    ['system']
    """
    kept = list(columns)
    while (most := max(column.spare for column in kept)) and _width(kept) > width:
        kept = [column for column in kept if column.spare != most]
    return kept


def to_text(columns: list[Column]) -> str:
    """Return a table as aligned plain text.

    Parameters
    ----------
    columns : list of Column
        The table.

    Returns
    -------
    str
        A line for the headers and one per row; no line ends in blanks.

    Examples
    --------
    >>> ranks = Column("rank", ["1", "10"], align_right=True)
    >>> print(to_text([ranks, Column("system", ["a", "b"])]))
    rank  system
       1  a
      10  b
    """
    padded = []
    for header, cells, align_right, *_ in columns:
        width = max(map(len, (header, *cells)))
        padded.append(
            [cell.rjust(width) if align_right else cell.ljust(width) for cell in (header, *cells)]
        )
    return "\n".join("  ".join(row).rstrip() for row in zip(*padded, strict=True))


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
    return "\n".join(f"| {' | '.join(cell.replace('|', r'\|') for cell in row)} |" for row in rows)


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
    return json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False)


def _width(columns: list[Column]) -> int:
    return max(map(len, to_text(columns).splitlines()))


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _ranks(values: Iterable[float]) -> tuple[list[str], bool]:
    return [f"{rank:g}" for rank in values], True


def _rounded(values: Iterable[float], decimals: int) -> tuple[list[str], bool]:
    return [f"{value:.{decimals}f}" for value in values], True


def _count(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def _decimals(frame: "pd.DataFrame") -> int:
    """Return how many decimals show two digits of the typical uncertainty of a score."""
    if "score_lower" in frame:
        scale = float(np.median(frame["score_upper"] - frame["score_lower"])) / 2.0
    else:
        scale = float(np.ptp(frame["score"])) / 10.0
    if not math.isfinite(scale) or scale <= 0.0:
        return 3
    return min(max(1 - math.floor(math.log10(scale)), 0), 6)
