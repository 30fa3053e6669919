"""The figures of a report, named and described for those who do not see them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.reporting.figures import (
    plot_groups,
    plot_leaderboard,
    plot_method_agreement,
    plot_rank_probabilities,
    plot_rank_sets,
    plot_superiority,
)
from bayesrank.reporting.svg import Cells, to_svg
from bayesrank.reporting.tables import leaderboard_columns, range_cells
from bayesrank.results.groups import split_letters
from bayesrank.results.leaderboard import ranked_rows
from bayesrank.results.numbers import probability_text

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Figure:
    """A figure as SVG, with what stands below it."""

    svg: str
    caption: str


def draw_forest(result: "xr.DataTree") -> Figure:
    """Draw scores, with a tooltip per system."""
    columns = leaderboard_columns(result)
    tips = [
        ", ".join(f"{column.header} {cell}" for column, cell in zip(columns, row, strict=True))
        for row in zip(*(column.cells for column in columns), strict=True)
    ]
    drawn = to_svg(
        plot_leaderboard(result),
        name="forest-figure",
        title="Scores with credible intervals",
        description="A line per system, best on top: its score as a dot, its credible interval, "
        "and a mark at the lower credible bound. The leaderboard holds the same numbers.",
        rows=tips,
    )
    return Figure(
        drawn,
        "Scores, credible intervals and lower credible bounds. Shading changes where every system "
        "above is resolved from every one below.",
    )


def draw_rank_sets(result: "xr.DataTree") -> Figure:
    """Draw sets of ranks."""
    frame = ranked_rows(result)
    ranges = range_cells(frame["rank_lower"], frame["rank_upper"])
    tips = [f"{name}: ranks {each}" for name, each in zip(frame["system"], ranges, strict=True)]
    drawn = to_svg(
        plot_rank_sets(result),
        name="rank-sets-figure",
        title="Ranks that each system may have",
        description="Per system its rank as a dot, the interval of its rank as a thick line, and "
        "behind it, wider, the set of ranks that holds together with those of all others.",
        rows=tips,
    )
    return Figure(drawn, "The ranks that each system may have, one by one and all at once.")


def draw_rank_probabilities(result: "xr.DataTree") -> Figure:
    """Draw the probabilities of ranks, with a tooltip per cell."""
    names = ranked_rows(result)["system"].to_list()
    table = result["ranking"].to_dataset()["rank_probability"].sel(system=names)
    values = table.transpose("system", "position").values
    positions = [f"{position:g}" for position in table["position"].values]
    drawn = to_svg(
        plot_rank_probabilities(result),
        name="rank-probabilities-figure",
        title="Rank probabilities of all systems",
        description="A heat map with a row per system and a column per rank.",
        cells=Cells(names, positions, _texts(values), "{row} has rank {column}: {value}"),
    )
    return Figure(drawn, "How probable each rank of each system is.")


def draw_groups(result: "xr.DataTree") -> Figure:
    """Draw groups."""
    frame = ranked_rows(result)
    drawn = to_svg(
        plot_groups(result),
        name="groups-figure",
        title="Groups of systems that are not told apart",
        description="A line per letter joins the systems of a group, none of which are resolved "
        "from each other; a line across is a border that no group crosses. The leaderboard holds "
        "the letters of every system.",
        rows=[
            f"{name}: {'group' if len(split_letters(letters)) == 1 else 'groups'} {letters}"
            for name, letters in zip(frame["system"], frame["group"], strict=True)
        ],
    )
    return Figure(
        drawn,
        "Systems that share a letter are not told apart. At a line across, every system above is "
        "resolved from every one below.",
    )


def draw_superiority(result: "xr.DataTree") -> Figure:
    """Draw the pairwise comparisons, with a tooltip per cell."""
    names = ranked_rows(result)["system"].to_list()
    values = result["ranking"].to_dataset()["superiority"].sel(system=names, opponent=names)
    texts = _texts(values.transpose("system", "opponent").values)
    drawn = to_svg(
        plot_superiority(result),
        name="superiority-figure",
        title="Probability that one system is better than another",
        description="A heat map with a row per system and a column per opponent, both by rank.",
        cells=Cells(names, names, texts, "{row} is better than {column}: {value}"),
    )
    return Figure(
        drawn, "The probability that the system of a row is better than that of a column."
    )


def draw_agreement(results: "dict[str, xr.DataTree]") -> Figure:
    """Draw the agreement of several rankings."""
    drawn = to_svg(
        plot_method_agreement(results),
        name="agreement-figure",
        title="Agreement of the methods",
        description="A heat map of Kendall's tau-b between every two rankings: 1 for the same "
        "order, 0 for none in common, -1 for the reverse. The table of ranks holds the same facts.",
    )
    return Figure(drawn, "Kendall's tau-b between rankings; columns are numbered as the rows are.")


def draw_sensitivity(study: "xr.Dataset") -> Figure:
    """Draw the ranks under several priors."""
    from bayesrank.reporting.figures import plot_prior_sensitivity

    drawn = to_svg(
        plot_prior_sensitivity(study),
        name="sensitivity-figure",
        title="Ranks under several priors",
        description="A line per system through its ranks under the priors that were tried.",
    )
    return Figure(drawn, "Ranks under the priors that were tried.")


def _texts(values: NDArray[np.float64]) -> list[list[str]]:
    return [[probability_text(float(value)) for value in row] for row in values]
