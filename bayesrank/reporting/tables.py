"""Leaderboards as text, with numbers rounded to the digits that their uncertainty supports."""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from bayesrank.layout import Column
from bayesrank.results.numbers import probability_text, short_letters

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


# Default number of decimals, without an uncertainty.
DECIMALS = 3

# Colours of groups on a terminal.
_GROUP_STYLES = ("cyan", "magenta", "yellow", "blue")


def leaderboard_columns(result: "xr.DataTree") -> list[Column]:
    """Choose and round the columns of a leaderboard for readers.

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
    """Choose and round the columns of a leaderboard for readers, given as a frame.

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
    frame = frame.dropna(subset="rank")  # unranked systems have no outcome
    decimals = score_decimals(frame)
    score = Column(
        "score",
        *rounded_cells(frame["score"], decimals),
        "Point estimate; higher is better.",
        name="score",
        best="descending",
    )
    evidence = _evidence_columns(frame, decimals, score)
    columns = [
        Column(
            "rank",
            *_ranks(frame["rank"]),
            "Place by the score; equal scores share the best place.",
            name="rank",
        ),
        Column(
            "system",
            [str(system) for system in frame["system"]],
            meaning="The ranked system.",
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
            interval_cells(frame["score_lower"], frame["score_upper"], decimals),
            True,
            f"The score is in this interval with a probability of {prob}.",
            frame["score_lower"].to_list(),
            name="score_lower",
            bars=interval_bars(frame["score_lower"], frame["score"], frame["score_upper"]),
            best="descending",
        ),
        *evidence,
        Column(
            f"lcb {tail}",
            *rounded_cells(frame["lcb"], decimals),
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
            bars=interval_bars(frame["rank_lower"], frame["rank"], frame["rank_upper"]),
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


def interval_bars(
    lower: ArrayLike, middle: ArrayLike, upper: ArrayLike
) -> list[tuple[float, float, float]] | None:
    """Return intervals as shares of the common range; None without a range."""
    ends = np.array([lower, middle, upper], dtype=np.float64).T
    low, high = np.nanmin(ends), np.nanmax(ends)
    if not np.isfinite(ends).all() or not low < high:
        return None
    return [(a, b, c) for a, b, c in ((ends - low) / (high - low)).tolist()]


def interval_cells(lower: Iterable[float], upper: Iterable[float], decimals: int) -> list[str]:
    """Return intervals as text."""
    ends = zip(lower, upper, strict=True)
    return [
        f"[{decimal_text(low, decimals)}, {decimal_text(high, decimals)}]" for low, high in ends
    ]


def _evidence_columns(frame: "pd.DataFrame", decimals: int, score: Column) -> list[Column]:
    """Return the observed mean and the numbers of outcomes and questions, if they are known."""
    columns = []
    if "observed_mean" in frame and not np.isnan(frame["observed_mean"].to_numpy()).all():
        # Scores may be Elo points; shares of wins are not.
        shares = frame["observed_mean"].dropna().between(0.0, 1.0).all()
        places = max(decimals, 2) if shares else decimals
        cells, right = rounded_cells(frame["observed_mean"], places)
        columns.append(
            Column(
                "observed",
                cells,
                right,
                "Observed mean of the grades, with equal weights of questions; for battles the "
                "share of wins with ties as half.",
                spare=2 if cells == score.cells else 0,  # it is then redundant
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
                    f"{count_text(n)}{_mark(bool(little), bool(early))}"
                    for n, little, early in zip(frame["n_outcomes"], few, early, strict=True)
                ],
                True,
                "Number of outcomes, or of battles; few marks systems with few of them.",
                frame["n_outcomes"].to_list(),
                name="n_outcomes",
                best="descending",
            )
        )
    if "n_questions" in frame:
        columns.append(
            Column(
                "questions",
                [count_text(n) for n in frame["n_questions"]],
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
        "Place by the rule of arenas: one more than the number of systems whose interval is above."
    )
    return [Column("arena rank", *_ranks(frame["arena_rank"]), meaning, spare=1, name="arena_rank")]


def _mark(few: bool, preliminary: bool) -> str:
    return " preliminary" if preliminary else " few" * few


def _group_column(groups: Iterable[str], prob: str) -> Column:
    cells = [short_letters(letters) for letters in groups]
    meaning = (
        f"Systems that share a letter are not resolved from each other, with the joint probability "
        f"{prob} for all pairs; a-e means all letters from a to e."
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


def _ranks(values: Iterable[float]) -> tuple[list[str], bool]:
    return [f"{rank:g}" for rank in values], True


def rounded_cells(values: Iterable[float], decimals: int) -> tuple[list[str], bool]:
    """Return numbers with some decimals, right-aligned."""
    return [decimal_text(value, decimals) for value in values], True


def decimal_text(value: float, decimals: int) -> str:
    """Return a number with some decimals, the same for numbers that differ by rounding errors.

    Examples
    --------
    >>> [decimal_text(each, 2) for each in (0.125, 0.375, 0.37499999999999994, -0.001)]
    ['0.12', '0.38', '0.38', '0.00']
    """
    return f"{float(f'{value:.12g}'):z.{decimals}f}"


def count_text(value: float) -> str:
    """Return a number of outcomes or battles, which may be a half."""
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"


def score_decimals(frame: "pd.DataFrame") -> int:
    """Return the number of decimals for two digits of the typical uncertainty of a score."""
    if "score_lower" in frame:
        scale = float(np.nanmedian(frame["score_upper"] - frame["score_lower"])) / 2.0
    else:
        scale = float(np.ptp(frame["score"])) / 10.0
    return supported_decimals(scale)


def supported_decimals(scale: float) -> int:
    """Return the number of decimals for two digits of an uncertainty."""
    if not math.isfinite(scale) or scale <= 0.0:
        return DECIMALS
    return min(max(1 - math.floor(math.log10(scale)), 0), 6)
