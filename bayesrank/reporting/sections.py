"""The sections of a report on the ranking: their content, before any layout."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bayesrank.layout import Column
from bayesrank.reporting.evidence import legend, notes, run_line, said_elsewhere
from bayesrank.reporting.leaderboard_table import (
    battle_columns,
    density_paths,
    extra_columns,
    name_column,
    numbers_by_system,
)
from bayesrank.reporting.page_figures import (
    draw_agreement,
    draw_history,
    draw_pareto,
    draw_questions,
    draw_rank_probabilities,
    draw_sensitivity,
    draw_superiority,
    draw_win_rates,
)
from bayesrank.reporting.plain_tables import to_csv, to_json, to_markdown
from bayesrank.reporting.section import Section, Table
from bayesrank.reporting.styled import to_html, to_latex
from bayesrank.reporting.tables import (
    decimal_text,
    leaderboard_columns,
    range_cells,
    score_decimals,
)
from bayesrank.reporting.wording import method_title
from bayesrank.results.leaderboard import leaderboard, ranked_rows, ranking_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


def leaderboard_section(
    result: "xr.DataTree", original: "xr.DataTree", more: "pd.DataFrame | None"
) -> Section:
    """Return the leaderboard of a result, which may have scores on another scale than its model."""
    systems = ranked_rows(result)["system"].to_list()
    shown = _leaderboard_columns(
        result,
        battle_columns(original, with_elo=result.attrs.get("score_scale") != "elo"),
        extra_columns(more, systems),
    )
    said = notes(result)
    if more is not None:
        lacking = sorted(set(map(str, systems)) - set(map(str, more.index)))
        if lacking:
            said.append(f"Without further columns: {', '.join(lacking)}.")
    return Section(
        "leaderboard",
        "Leaderboard",
        (f"{method_title(result)}: {run_line(result)}. {_how_to_read(result)}", *said),
        tables=(_leaderboard_table(result, shown),),
        below=_definitions(shown),
        wide=True,
    )


def pareto_section(result: "xr.DataTree", more: "pd.DataFrame | None") -> Section | None:
    """Return scores against every numeric column of the user, or None without any."""
    drawn = [
        draw_pareto(result, values, label, f"pareto-figure-{number}")
        for number, (label, values) in enumerate(numbers_by_system(result, more).items(), start=1)
    ]
    return Section("pareto", "Score and cost", figures=tuple(drawn)) if drawn else None


def data_figure(result: "xr.DataTree") -> Section | None:
    """Return the grades on the questions that separate systems, if any, or win rates by pair."""
    from bayesrank.reporting.figures.questions import cell_grades

    observed = result["observed_data"] if "observed_data" in result.children else {}
    grades = cell_grades(result)
    if grades is not None:
        if not (grades.max("system") > grades.min("system")).any():
            return None
        figure, names = draw_questions(result)
        numbered = ", ".join(f"{number} {name}" for number, name in enumerate(names, start=1))
        return Section(
            "questions",
            "Questions that separate the systems",
            figures=(figure,),
            folded={"Questions by number": numbered},
        )
    if "wins" in observed:
        return Section("battles", "Battles", figures=(draw_win_rates(result),))
    return None


def probability_sections(result: "xr.DataTree") -> list[Section]:
    """Return pairwise comparisons and rank probabilities; none without draws of two systems."""
    ranking = result["ranking"]
    if "superiority" not in ranking or ranking.sizes["system"] < 2:
        return []
    return [
        Section("superiority", "Pairwise comparisons", figures=(draw_superiority(result),)),
        Section("probabilities", "Rank probabilities", figures=(draw_rank_probabilities(result),)),
    ]


def history_section(results: "Mapping[str, xr.DataTree]") -> Section | None:
    """Return how scores changed over several results, the oldest first, or None for one."""
    if len(results) < 2:
        return None
    frames = {name: ranked_rows(tree).set_index("system") for name, tree in results.items()}
    latest = [str(name) for frame in reversed(frames.values()) for name in frame.index]
    systems = list(dict.fromkeys(latest))
    columns = [name_column(systems, "In the order of the latest result.")]
    for name, frame in frames.items():
        aligned = frame.reindex(systems)
        scores, ranks = (aligned[name].to_numpy(float).tolist() for name in ("score", "rank"))
        decimals = score_decimals(frame)
        cells = [
            "not included" if np.isnan(s) else f"{decimal_text(s, decimals)} ({r:g})"
            for s, r in zip(scores, ranks, strict=True)
        ]
        meaning = "Score, and the rank in parentheses."
        columns.append(Column(name, cells, True, meaning, scores, best="descending"))
    caption = "Scores and ranks from the oldest result to the latest"
    return Section(
        "history",
        "History",
        figures=(draw_history(results),),
        tables=(
            Table(
                to_html(columns, name="history-table", caption=caption), caption, folded="always"
            ),
        ),
    )


def agreement_section(results: "dict[str, xr.DataTree]") -> Section | None:
    """Return the agreement of several results, or None for one."""
    if len(results) < 2:
        return None
    first = ranked_rows(next(iter(results.values())))["system"].to_list()
    columns = [name_column(first, "In the order of the first method.")]
    for name, tree in results.items():
        frame = ranked_rows(tree).set_index("system")
        cells = [f"{frame['rank'][system]:g}" for system in first]
        columns.append(Column(name, cells, True, f"Rank by {method_title(tree)}."))
    caption = "The rank of every system by every method"
    # The notes of the first are below the leaderboard.
    others = list(results.items())[1:]
    said = tuple(f"{name}: {text}" for name, tree in others for text in notes(tree))
    return Section(
        "agreement",
        "Agreement of the methods",
        (
            "If methods disagree on a pair of systems, compare the intervals of both methods: the "
            "order may be uncertain.",
            *said,
        ),
        figures=(draw_agreement(results),),
        tables=(
            Table(
                to_html(columns, name="agreement-table", caption=caption), caption, folded="always"
            ),
        ),
    )


def sensitivity_section(study: "xr.Dataset | None") -> Section | None:
    """Return the sensitivity of the ranking to the prior, or None without a study of it."""
    if study is None:
        return None
    method, verdict = (study.attrs.get(name, "") for name in ("method", "verdict"))
    text = (
        f"Ranked by {method} under {study.sizes['prior']} priors. {verdict}" if method else verdict
    )
    return Section(
        "sensitivity",
        "Sensitivity to the prior",
        (text,) if text else (),
        tables=_prior_tables(study),
        figures=(draw_sensitivity(study),),
    )


def _prior_tables(study: "xr.Dataset") -> tuple[Table, ...]:
    """Return the changes of the ranking under each prior, if the study has them."""
    if not {"tau", "flips", "largest_shift"} <= set(study):
        return ()
    caption = "Changes of the ranking under each prior, relative to the first"
    columns = [
        Column("prior", study["prior"].values.astype(str).tolist()),
        Column(
            "tau-b",
            [f"{tau:.3f}" for tau in study["tau"].values],
            True,
            "Kendall's tau-b with the ranking under the first prior: 1 for the same order.",
        ),
        Column(
            "pairs reversed",
            [f"{flips:g}" for flips in study["flips"].values],
            True,
            "Pairs of systems in another order; half a pair for a tie that breaks or forms.",
        ),
        Column(
            "largest shift",
            [f"{shift:.2f}" for shift in study["largest_shift"].values],
            True,
            "Largest change of a score, in standard deviations of its posterior.",
        ),
    ]
    return (Table(to_html(columns, name="priors-table", caption=caption), caption),)


def _how_to_read(result: "xr.DataTree") -> str:
    ranking = result["ranking"]
    if "lcb" not in ranking:
        return "These are point estimates without intervals: the order has an unknown uncertainty."
    tail = f"{100 * ranking.attrs['lcb']:g}"
    bound = (
        f"lower credible bound (lcb {tail}%): the score is below it with a probability of {tail} %."
    )
    if ranking.sizes["system"] == 1:
        return f"The {bound}"
    return f"Sorted by the {bound} A high place here needs strong evidence, not only a high score."


def _leaderboard_columns(
    result: "xr.DataTree", ratings: list[Column], more: list[Column]
) -> list[Column]:
    """Return the leaderboard, by the conservative rank if there is one."""
    said = said_elsewhere(result)
    columns = [
        each for each in leaderboard_columns(result) if said.isdisjoint((each.header, each.name))
    ]
    frame = ranked_rows(result)
    if "lcb_rank" in frame:
        ranking = ranking_of(result).sel(system=frame["system"].to_list())
        joint = ranking["joint_rank_lower"].values, ranking["joint_rank_upper"].values
        prob, tail = (f"{100 * ranking.attrs[name]:g}%" for name in ("ci_prob", "lcb"))
        all_ranks = Column(
            "joint ranks",
            range_cells(*joint),
            True,
            f"With a joint probability of {prob}, these ranges hold the places of all systems.",
            joint[0].tolist(),
            name="joint_rank_lower",
        )
        for ranks in [i for i, each in enumerate(columns) if each.name == "rank_lower"]:
            columns.insert(ranks + 1, all_ranks)
        # The conservative rank is first and gives the order of the rows.
        first = ("lcb rank", "system", f"lcb {tail}", "score", f"{prob} interval", "rank")
        place = {header: position for position, header in enumerate(first)}
        columns.sort(key=lambda each: place.get(each.header, len(first)))
        score = next(i for i, each in enumerate(columns) if each.name == "score_lower")
        columns[score] = density_paths(columns[score], result, frame)
        # For battles, the ratings are next to the score.
        columns[score + 1 : score + 1] = ratings
        columns += more
        order = frame["lcb_rank"].to_numpy().argsort(kind="stable").tolist()
        return [column.rows(order) for column in columns]
    return [*columns, *ratings, *more]


def _leaderboard_table(result: "xr.DataTree", columns: list[Column]) -> Table:
    """Return the leaderboard with downloads."""
    caption = "Leaderboard"
    html = to_html(columns, name="leaderboard-table", caption=caption)
    return Table(html, caption, _downloads(result))


def _definitions(columns: list[Column]) -> tuple[str, ...]:
    """Return the meaning of the columns of uncertainty, for print and for touch screens.

    The text above the table explains the lower bound, by which it is sorted.
    """
    said = legend([each for each in columns if not each.name.startswith("lcb")])
    return (f"{said[0].upper()}{said[1:]}.",) if said else ()


def _downloads(result: "xr.DataTree") -> dict[str, str]:
    """Return the leaderboard as files inside of links."""
    frame, columns = leaderboard(result), leaderboard_columns(result)
    texts = {
        "leaderboard.csv": ("text/csv", to_csv(frame)),
        "leaderboard.json": ("application/json", to_json(frame)),
        "leaderboard.tex": ("application/x-tex", to_latex(columns)),
        "leaderboard.md": ("text/markdown", to_markdown(columns)),
    }
    return {
        name: f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
        for name, (kind, text) in texts.items()
    }
