"""Tables as text: what the command line prints and what goes into a report.

For people (plain text, Markdown), numbers are rounded to what their uncertainty supports; for
programs (JSON, CSV), every column is there in full precision.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.layout import Column
from bayesrank.printable import printable
from bayesrank.results.numbers import probability_text, short_letters

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrank.checking import Report

# Where no uncertainty says how many a number supports.
_DECIMALS = 3

# In what order a narrow terminal does without columns of plain tables, the highest first.
_SPARE = {
    **dict.fromkeys(("draws infinite", "draws undefined"), 6),
    **dict.fromkeys(("rho", "self min", "self max"), 5),
    **dict.fromkeys(("z", "self sd", "tau min", "tau max"), 4),
    **dict.fromkeys(("sd", "tau sd"), 3),
    "mean": 2,
    **dict.fromkeys(("superiority", "width"), 1),
}
_PROBABILITIES = ("superiority",)
_STATISTICS = ("z", "rho")
_COUNTS = ("trials", "further trials needed")

# Of verdicts and groups on a terminal.
_STYLES = {"good": "green", "doubtful": "yellow", "bad": "bold red"}
_GROUP_STYLES = ("cyan", "magenta", "yellow", "blue")


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
        As :func:`leaderboard_columns`; unranked systems are left to a note.
    """
    frame = frame.dropna(subset="rank")  # others have no outcome
    decimals = _decimals(frame)
    score = Column(
        "score",
        *_rounded(frame["score"], decimals),
        "Point estimate; higher is better.",
        name="score",
        best="descending",
    )
    evidence = _evidence_columns(frame, decimals, score)
    columns = [
        Column(
            "rank",
            *_ranks(frame["rank"]),
            "Place by the score; equals share the best place.",
            name="rank",
        ),
        Column(
            "system",
            [str(system) for system in frame["system"]],
            meaning="What is ranked.",
            name="system",
        ),
        score,
    ]
    if "score_lower" not in frame:
        return [*columns, *evidence]
    prob, tail = f"{100 * ci_prob:g}%", f"{100 * lcb:g}%"
    return [
        *columns,
        Column(
            f"{prob} interval",
            _intervals(frame["score_lower"], frame["score_upper"], decimals),
            True,
            f"The score is in this interval with a probability of {prob}.",
            frame["score_lower"].to_list(),
            name="score_lower",
            bars=_bars(frame["score_lower"], frame["score"], frame["score_upper"]),
            best="descending",
        ),
        *evidence,
        Column(
            f"lcb {tail}",
            *_rounded(frame["lcb"], decimals),
            f"Lower credible bound: the score is below it with a probability of {tail}.",
            spare=4,
            name="lcb",
            best="descending",
        ),
        Column(
            "lcb rank",
            *_ranks(frame["lcb_rank"]),
            "Conservative place, by the lower credible bound.",
            spare=5,
            name="lcb_rank",
        ),
        Column(
            f"{prob} ranks",
            range_cells(frame["rank_lower"], frame["rank_upper"]),
            True,
            f"The place of this system is in this range with a probability of {prob}.",
            frame["rank_lower"].to_list(),
            name="rank_lower",
            bars=_bars(frame["rank_lower"], frame["rank"], frame["rank_upper"]),
        ),
        *_arena_column(frame),
        Column(
            "Pr(best)",
            [probability_text(each) for each in frame["prob_best"]],
            True,
            "Probability that no system is better.",
            frame["prob_best"].to_list(),
            spare=1,
            name="prob_best",
            best="descending",
        ),
        *([_group_column(frame["group"], prob)] if "group" in frame else []),
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
    verdicts = [one.verdict for one in report]
    return [
        Column("topic", [one.topic for one in report]),
        Column("verdict", verdicts, styles=[_STYLES.get(each, "") for each in verdicts]),
        Column("finding", [one.sentence for one in report], text="sentence"),
    ]


def plain_columns(frame: "pd.DataFrame") -> list[Column]:
    """Round a table of names and numbers for people.

    Parameters
    ----------
    frame : pandas.DataFrame
        Names, numbers, and what is true or not. Of intervals, a column ends in ``lower`` and the
        next in ``upper``; numbers in the unit of the first interval get its decimals.

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
    decimals = _DECIMALS
    for low, high in list(ends.items())[:1]:
        decimals = _supported(float(np.nanmedian(frame[high] - frame[low])) / 2.0)
    columns = []
    for name, values in frame.items():
        header = str(name).replace("_", " ")
        spare = _SPARE.get(header, 0)
        if name in ends.values():
            continue
        if name in ends:
            title = header.replace("lower", "interval")
            cells = _intervals(values, frame[ends[str(name)]], decimals)
            columns.append(Column(title, cells, True, spare=spare))
        elif values.dtype.kind == "b":
            columns.append(
                Column(header, ["yes" if each else "no" for each in values], spare=spare)
            )
        elif values.dtype.kind in "iuf":
            cells = _number_cells(header, values.to_numpy(), decimals if ends else _DECIMALS)
            columns.append(Column(header, cells, True, spare=spare))
        else:
            columns.append(Column(header, [str(each) for each in values], spare=spare))
    return columns


def _number_cells(name: str, values: NDArray[Any], decimals: int) -> list[str]:
    """Return counts as whole numbers, probabilities as such, and others with some decimals."""
    finite = values[np.isfinite(values)]
    if (finite == finite.round()).all() and (values.dtype.kind != "f" or name in _COUNTS):
        return [_count(each) if math.isfinite(each) else f"{each:g}" for each in values]
    if name in _PROBABILITIES:
        return [probability_text(each) for each in values]
    return [f"{each:.{_DECIMALS if name in _STATISTICS else decimals}f}" for each in values]


def _bars(
    lower: ArrayLike, middle: ArrayLike, upper: ArrayLike
) -> list[tuple[float, float, float]] | None:
    """Return intervals as shares of the range of all; None where there is no range."""
    ends = np.array([lower, middle, upper], dtype=np.float64).T
    low, high = np.nanmin(ends), np.nanmax(ends)
    if not np.isfinite(ends).all() or not low < high:
        return None
    return [(a, b, c) for a, b, c in ((ends - low) / (high - low)).tolist()]


def _intervals(lower: Iterable[float], upper: Iterable[float], decimals: int) -> list[str]:
    ends = zip(lower, upper, strict=True)
    return [f"[{low:.{decimals}f}, {high:.{decimals}f}]" for low, high in ends]


def _evidence_columns(frame: "pd.DataFrame", decimals: int, score: Column) -> list[Column]:
    """Return the observed mean and the numbers of outcomes and questions, where they are known."""
    columns = []
    if "observed_mean" in frame and not np.isnan(frame["observed_mean"].to_numpy()).all():
        # Scores may be Elo points, and shares of wins not.
        shares = frame["observed_mean"].dropna().between(0.0, 1.0).all()
        cells, right = _rounded(frame["observed_mean"], max(decimals, 2) if shares else decimals)
        columns.append(
            Column(
                "observed",
                cells,
                right,
                "Observed mean: of the grades, every question counting the same; of battles, the "
                "wins with ties as half.",
                spare=2 if cells == score.cells else 0,  # then it says nothing else
                name="observed_mean",
                best="descending",
            )
        )
    if "n_outcomes" in frame:
        few, early = (
            frame[name] if name in frame else np.zeros(len(frame), dtype=bool)
            for name in ("few", "preliminary")
        )
        columns.append(
            Column(
                "n",
                [
                    f"{_count(n)}{_mark(bool(little), bool(early))}"
                    for n, little, early in zip(frame["n_outcomes"], few, early, strict=True)
                ],
                True,
                "Number of outcomes, or of battles; few where that is little evidence.",
                frame["n_outcomes"].to_list(),
                name="n_outcomes",
                best="descending",
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
                spare=3,
                name="n_questions",
                best="descending",
            )
        )
    return columns


def _arena_column(frame: "pd.DataFrame") -> list[Column]:
    if "arena_rank" not in frame:
        return []
    meaning = (
        "Place as arenas print it: one more than the number of systems whose interval is above."
    )
    return [Column("arena rank", *_ranks(frame["arena_rank"]), meaning, spare=1, name="arena_rank")]


def _mark(few: bool, preliminary: bool) -> str:
    return " preliminary" if preliminary else " few" * few


def _group_column(groups: Iterable[str], prob: str) -> Column:
    cells = [short_letters(letters) for letters in groups]
    meaning = (
        f"Systems that share a letter are not told apart: at {prob}, all pairs decided at once, "
        "their order is not resolved; a-e stands for all letters from a to e."
    )
    # Neighbours that share their first letter share a colour.
    firsts = list(dict.fromkeys(cell[:1] for cell in cells))
    styles = [_GROUP_STYLES[firsts.index(cell[:1]) % len(_GROUP_STYLES)] for cell in cells]
    return Column("group", cells, meaning=meaning, styles=styles, name="group")


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
    """Return text that ends no cell and starts no HTML or code."""
    without_html = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", printable(text))
    return re.sub(r"([|`])", r"\\\1", without_html)


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
    # JSON itself writes out the control characters of ASCII alone.
    return "".join(
        each if each == "\n" or printable(each) == each else f"\\u{ord(each):04x}" for each in text
    )


def _finite_or_none(value: Any) -> object:
    import pandas as pd

    return (
        None if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)) else value
    )


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
    return _supported(scale)


def _supported(scale: float) -> int:
    """Return how many decimals show two digits of an uncertainty."""
    if not math.isfinite(scale) or scale <= 0.0:
        return _DECIMALS
    return min(max(1 - math.floor(math.log10(scale)), 0), 6)
