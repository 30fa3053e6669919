"""The sections of a report: headings, sentences, tables and figures, before any layout."""

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bayesrank.layout import Column
from bayesrank.reporting.citations import bibtex, reference_link, reference_text
from bayesrank.reporting.data_summary import summarize_result
from bayesrank.reporting.evidence import legend, notes, run_line, said_elsewhere
from bayesrank.reporting.page_figures import (
    Figure,
    draw_agreement,
    draw_forest,
    draw_groups,
    draw_rank_probabilities,
    draw_rank_sets,
    draw_sensitivity,
    draw_superiority,
)
from bayesrank.reporting.styled import to_html, to_latex
from bayesrank.reporting.tables import (
    finding_columns,
    leaderboard_columns,
    range_cells,
    to_json,
    to_markdown,
)
from bayesrank.reporting.wording import listing, settings, versions
from bayesrank.results.leaderboard import leaderboard, ranked_rows
from bayesrank.results.stored import ranking_of

if TYPE_CHECKING:
    import xarray as xr

# Questions and systems that are named one by one; beyond, their number says enough.
_MOST_NAMED = 200


@dataclass(frozen=True)
class Table:
    """A table in HTML, and files of it to download: address by name."""

    html: str
    caption: str
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reference:
    """A line of the bibliography."""

    text: str
    link: str | None


@dataclass(frozen=True)
class Section:
    """A section of the page; whatever is empty is left out.

    `facts` is a list of subjects with what is said of them; `folded` holds texts that open on
    request, by heading; `code` is text that is shown as it is.
    """

    name: str
    heading: str
    text: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    references: tuple[Reference, ...] = ()
    folded: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)


def leaderboard_sections(results: "dict[str, xr.DataTree]") -> list[Section]:
    """Return the leaderboard of the main result with its figures, and those of the others."""
    (name, main), *others = results.items()
    has_draws = "superiority" in main["ranking"]
    sections = [
        Section(
            "leaderboard",
            f"Leaderboard by {name}",
            (f"{run_line(main)}.", _how_to_read(main), *notes(main), *_definitions(main)),
            tables=(_leaderboard_table(main, "leaderboard-table", name),),
        ),
        Section("forest", "Scores", figures=(draw_forest(main),)),
    ]
    if has_draws:
        sections += [
            Section("ranks", "Ranks", figures=(draw_rank_sets(main),)),
            Section(
                "probabilities", "Rank probabilities", figures=(draw_rank_probabilities(main),)
            ),
            Section("groups", "Groups", figures=(draw_groups(main),)),
            Section("superiority", "Pairwise comparisons", figures=(draw_superiority(main),)),
        ]
    if others:
        tables = tuple(
            _leaderboard_table(tree, f"leaderboard-table-{number}", other)
            for number, (other, tree) in enumerate(others, start=2)
        )
        said = tuple(f"{other}: {text}" for other, tree in others for text in notes(tree))
        sections.append(Section("others", "The other methods", said, tables=tables))
    return sections


def agreement_section(results: "dict[str, xr.DataTree]") -> Section | None:
    """Return how far several results agree, or None for one."""
    if len(results) < 2:
        return None
    first = ranked_rows(next(iter(results.values())))["system"].to_list()
    columns = [Column("system", first, meaning="In the order of the first method.")]
    for name, tree in results.items():
        rank = ranked_rows(tree).set_index("system")["rank"]
        cells = [f"{rank[system]:g}" for system in first]
        columns.append(Column(name, cells, True, f"Rank by {name}."))
    caption = "The rank of every system by every method"
    return Section(
        "agreement",
        "Agreement of the methods",
        (
            "Where methods disagree on a pair of systems, look at the intervals of both before "
            "trusting either order.",
        ),
        figures=(draw_agreement(results),),
        tables=(Table(to_html(columns, name="agreement-table", caption=caption), caption),),
    )


def sensitivity_section(study: "xr.Dataset | None") -> Section | None:
    """Return how far the ranking depends on the prior, or None without a study of it."""
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
    """Return what each prior changes of the ranking by the first, where the study says it."""
    if not {"tau", "flips", "largest_shift"} <= set(study):
        return ()
    caption = "What each prior changes of the ranking under the first one"
    columns = [
        Column("prior", study["prior"].values.astype(str).tolist()),
        Column(
            "tau-b",
            [f"{tau:.3f}" for tau in study["tau"].values],
            True,
            "Kendall's tau-b with the ranking under the first prior: 1 for the same order.",
        ),
        Column(
            "pairs turned",
            [f"{flips:g}" for flips in study["flips"].values],
            True,
            "Pairs of systems in another order; half a pair for a tie that breaks or forms.",
        ),
        Column(
            "largest shift",
            [f"{shift:.2f}" for shift in study["largest_shift"].values],
            True,
            "Farthest move of a score, in standard deviations of its posterior.",
        ),
    ]
    return (Table(to_html(columns, name="priors-table", caption=caption), caption),)


def data_section(results: "dict[str, xr.DataTree]") -> Section:
    """Return what was observed, and what is missing."""
    summary = summarize_result(next(iter(results.values())))
    if summary is None:
        return Section("data", "Data", ("Battles between systems, without questions.",))
    lacking = summary.missing_by_system()
    folded = {
        "Dead questions": ", ".join(summary.dead[:_MOST_NAMED]),
        "Questions without any outcome": ", ".join(summary.unseen[:_MOST_NAMED]),
        "Outcomes missing by system": ", ".join(
            f"{system}: {count:,}" for system, count in list(lacking.items())[:_MOST_NAMED]
        ),
    }
    text = ()
    if summary.dead:
        text = (
            f"{len(summary.dead):,} of {len(summary.questions):,} questions have the same outcome "
            "for every system and cannot tell systems apart.",
        )
    return Section(
        "data",
        "Data",
        text,
        facts=summary.facts(),
        folded={heading: names for heading, names in folded.items() if names},
    )


def check_section(results: "dict[str, xr.DataTree]") -> Section:
    """Return what the checks of every result say."""
    from bayesrank.checking import check  # reports of saved results alone need not load it

    reports = {name: check(tree) for name, tree in results.items()}
    columns = [Column("result", [name for name, report in reports.items() for _ in report])]
    tables = [finding_columns(report) for report in reports.values()]
    columns += [
        first._replace(cells=[cell for column in (first, *others) for cell in column.cells])
        for first, *others in zip(*tables, strict=True)
    ]
    caption = "What the checks found"
    table = to_html(columns, name="checks-table", caption=caption, sortable=False)
    doubtful = [name for name, report in reports.items() if not report.trustworthy]
    answer = (
        f"With caution: read what the checks found of {listing(doubtful)}."
        if doubtful
        else "No check found anything doubtful."
    )
    return Section("checks", "Can this be trusted?", (answer,), tables=(Table(table, caption),))


def method_section(results: "dict[str, xr.DataTree]") -> Section:
    """Return how the results were computed, and whom to cite."""
    from bayesrank.catalog import METHODS

    keys: list[str] = []
    titles = []
    described = {name: settings(tree) for name, tree in results.items()}
    subjects = list(dict.fromkeys(subject for facts in described.values() for subject in facts))
    columns = [Column("setting", subjects)]
    for name, facts in described.items():
        columns.append(Column(name, [facts.get(subject, "none") for subject in subjects]))
        row = METHODS.get(facts["method"])
        if row is not None:
            keys += row.citations
            titles.append(f"{name}: {row.title}.")
    caption = "How the results were computed"
    table = Table(to_html(columns, name="settings", caption=caption, sortable=False), caption)
    packages = versions(next(iter(results.values())))
    cited = list(dict.fromkeys(keys))
    return Section(
        "methods",
        "Methods",
        tuple(titles),
        tables=(table,),
        facts={"versions": ", ".join(f"{name} {each}" for name, each in packages.items())},
        references=tuple(Reference(reference_text(key), reference_link(key)) for key in cited),
        code={"BibTeX": bibtex(cited)} if cited else {},
    )


def _how_to_read(result: "xr.DataTree") -> str:
    ranking = result["ranking"]
    if "lcb" not in ranking:
        return "These are point estimates without intervals: nothing says how sure the order is."
    tail = f"{100 * ranking.attrs['lcb']:g} %"
    return (
        f"Sorted by the lower credible bound of the score, which the score is below with a "
        f"probability of {tail}. A high place here needs strong evidence, not only a high score."
    )


def _leaderboard_table(result: "xr.DataTree", identifier: str, name: str) -> Table:
    """Return the leaderboard, by the conservative rank where there is one, with downloads."""
    said = said_elsewhere(result)
    columns = [each for each in leaderboard_columns(result) if each.header not in said]
    frame = ranked_rows(result)
    caption = f"Leaderboard by {name}"
    if "lcb_rank" in frame:
        ranking = ranking_of(result).sel(system=frame["system"].to_list())
        joint = ranking["joint_rank_lower"].values, ranking["joint_rank_upper"].values
        prob, tail = (f"{100 * ranking.attrs[name]:g}%" for name in ("ci_prob", "lcb"))
        ranks = next(i for i, each in enumerate(columns) if each.header == f"{prob} ranks")
        columns.insert(
            ranks + 1,
            Column(
                "joint ranks",
                range_cells(*joint),
                True,
                f"With a probability of {prob}, these ranges hold the places of all systems.",
                joint[0].tolist(),
            ),
        )
        # The conservative rank leads, and decides the order; the rank by the score follows it.
        first = ("lcb rank", "system", f"lcb {tail}", "score", f"{prob} interval", "rank")
        place = {header: position for position, header in enumerate(first)}
        columns.sort(key=lambda each: place.get(each.header, len(first)))
        order = frame["lcb_rank"].to_numpy().argsort(kind="stable").tolist()
        columns = [_reorder(column, order) for column in columns]
    html = to_html(columns, name=identifier, caption=caption)
    return Table(html, caption, _downloads(result))


def _reorder(column: Column, order: "list[int]") -> Column:
    keys = None if column.keys is None else [column.keys[i] for i in order]
    bars = None if column.bars is None else [column.bars[i] for i in order]
    return column._replace(cells=[column.cells[i] for i in order], keys=keys, bars=bars)


def _definitions(result: "xr.DataTree") -> list[str]:
    """Say what the columns of uncertainty are, for print and for those who cannot hover."""
    said = legend(leaderboard_columns(result))
    return [f"{said[0].upper()}{said[1:]}."] if said else []


def _downloads(result: "xr.DataTree") -> dict[str, str]:
    """Return the leaderboard as files inside of links."""
    frame, columns = leaderboard(result), leaderboard_columns(result)
    texts = {
        "leaderboard.csv": ("text/csv", frame.to_csv(index=False)),
        "leaderboard.json": ("application/json", to_json(frame)),
        "leaderboard.tex": ("application/x-tex", to_latex(columns)),
        "leaderboard.md": ("text/markdown", to_markdown(columns)),
    }
    return {
        name: f"data:{kind};charset=utf-8;base64,{base64.b64encode(text.encode()).decode()}"
        for name, (kind, text) in texts.items()
    }
