"""The section of a report on groups of questions."""

import warnings
from typing import TYPE_CHECKING

from bayesrank.battles import FEW_UNITS
from bayesrank.errors import CalibrationWarning
from bayesrank.layout import Column
from bayesrank.reporting.leaderboard_table import name_column
from bayesrank.reporting.section import Section, Table
from bayesrank.reporting.styled import to_html
from bayesrank.reporting.tables import (
    DECIMALS,
    interval_cells,
    rounded_cells,
    score_decimals,
)
from bayesrank.responses import Responses
from bayesrank.results.leaderboard import ranked_rows

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrank.views import Ballots, Comparisons

# With more groups the table is unreadable.
_MOST_GROUPS = 40
# With more groups the section has the full width of the page.
_MOST_ABREAST = 3


def group_section(
    result: "xr.DataTree", data: "Responses | Comparisons | Ballots | None"
) -> Section | None:
    """Return the mean grade of every system on each group of questions, or None without groups.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.
    data : Responses or Comparisons, optional
        The ranked data. Intervals need them, or counts in the result.
    """
    from bayesrank.reporting.figures.questions import cell_grades

    constant = result["constant_data"].to_dataset() if "constant_data" in result else {}
    grades = cell_grades(result)
    if grades is None or "question_group" not in constant:
        return None
    sizes = constant["question_group"].to_series().value_counts(sort=False)
    if not 1 < len(sizes) <= _MOST_GROUPS:
        return None
    systems = ranked_rows(result)["system"].to_list()
    frames, interval = _scores(result, data, grades)
    columns = [name_column(systems, "In the order of the leaderboard.")]
    what = "Accuracy (mean grade)" if interval else "Mean grade"
    for name, frame in frames.items():
        meaning = f"{what} on the {sizes[name]:,} questions of {name}{interval}."
        columns.append(_column(name, frame.reindex(systems), meaning))
    caption = f"{what} on each group of questions"
    html = to_html(columns, name="groups-table", caption=caption)
    table = Table(html, caption, folded="narrow")
    said = ()
    if interval and result.attrs["target"] == "population" and sizes.min() < FEW_UNITS:
        said = (
            f"Fewer than {FEW_UNITS} questions are too few to estimate how scores vary over "
            "questions: the intervals of such groups may be too narrow.",
        )
    wide = len(frames) > _MOST_ABREAST
    return Section("groups", "Scores by group", said, tables=(table,), wide=wide)


def _scores(
    result: "xr.DataTree", data: "Responses | Comparisons | Ballots | None", grades: "xr.DataArray"
) -> "tuple[dict[str, pd.DataFrame], str]":
    """Return scores by system for each group, with intervals if possible, and a description."""
    from bayesrank.by_group import rank_by_group
    from bayesrank.catalog import DEFAULT_METHOD
    from bayesrank.checking.rebuild import rebuilt

    outcomes = data if isinstance(data, Responses) else rebuilt(result)
    if not isinstance(outcomes, Responses) or outcomes.groups is None:
        groups = result["constant_data"].to_dataset()["question_group"]
        means = grades.groupby(groups).mean().transpose("question_group", "system")
        return {
            str(name): means.sel(question_group=name).to_dataframe(name="score")
            for name in dict.fromkeys(groups.values)
        }, ""
    prob = float(result["ranking"].attrs.get("ci_prob", 0.95))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # the page has this note
        trees = rank_by_group(
            outcomes,
            DEFAULT_METHOD,
            target=result.attrs["target"],
            ci_prob=prob,
        )
    frames = {name: ranked_rows(tree).set_index("system") for name, tree in trees.items()}
    return frames, f", with its interval of {100 * prob:g} %"


def _column(name: str, frame: "pd.DataFrame", meaning: str) -> Column:
    """Return the scores on a group; a system may have no outcome in it."""
    score = frame["score"]
    decimals = score_decimals(frame) if "score_lower" in frame else DECIMALS
    absent = score.isna().to_numpy()
    cells = rounded_cells(score, decimals)[0]
    if "score_lower" in frame:
        ends = interval_cells(frame["score_lower"], frame["score_upper"], decimals)
        cells = [f"{middle} {both}" for middle, both in zip(cells, ends, strict=True)]
    cells = ["no outcome" if lacks else cell for lacks, cell in zip(absent, cells, strict=True)]
    return Column(name, cells, True, meaning, score.tolist(), best="descending")
