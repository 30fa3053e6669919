"""The last sections of a report: the data, the checks, and how the results were computed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bayesrank.layout import Column
from bayesrank.printable import listing
from bayesrank.reporting.battle_summary import ballot_facts, battle_facts
from bayesrank.reporting.citations import bibtex, reference_link, reference_text
from bayesrank.reporting.data_summary import summarize_result
from bayesrank.reporting.plain_tables import finding_columns
from bayesrank.reporting.section import Reference, Section, Table
from bayesrank.reporting.styled import to_html
from bayesrank.reporting.wording import method_title, plain_advice, settings

if TYPE_CHECKING:
    import xarray as xr

    from bayesrank.responses import Responses
    from bayesrank.views import Ballots, Comparisons

    type Data = Responses | Comparisons | Ballots

# Largest number of questions and systems to list by name; with more only their number is shown.
_MOST_NAMED = 200


def data_section(results: "dict[str, xr.DataTree]", data: "Data | None") -> Section:
    """Return the section on observed and missing outcomes."""
    summary = summarize_result(next(iter(results.values())))
    if summary is None:
        return _choices_section(next(iter(results.values())), data)
    lacking = summary.missing_by_system()
    folded = {
        "Questions without differences (the same outcome of every system)": ", ".join(
            summary.dead[:_MOST_NAMED]
        ),
        "Questions without any outcome": ", ".join(summary.unseen[:_MOST_NAMED]),
        "Outcomes missing by system": ", ".join(
            f"{system}: {count:,}" for system, count in list(lacking.items())[:_MOST_NAMED]
        ),
    }
    return Section(
        "data",
        "Data",
        facts=summary.facts(),
        folded={heading: names for heading, names in folded.items() if names},
    )


def _choices_section(result: "xr.DataTree", data: "Data | None") -> Section:
    """Return the section on battles or on ballots; results hold only counts of battles."""
    from bayesrank.checking.rebuild import rebuilt
    from bayesrank.views import Comparisons

    known = rebuilt(result) if data is None else data
    observed = result.children.get("observed_data", {})
    by = {"intervals by": result.attrs["unit"]}
    facts = battle_facts(known) | by if isinstance(known, Comparisons) else {}
    if "grades" in observed and "ballot" in observed["grades"].dims:
        facts = ballot_facts(observed["grades"].transpose("system", "ballot").values)
    text = () if facts else ("The result does not hold the data.",)
    return Section("data", "Data", text, facts=facts)


def check_section(
    results: "dict[str, xr.DataTree]", failed: Mapping[str, str], data: "Data | None"
) -> Section:
    """Return the findings of the checks of every result, and the methods without a result."""
    from bayesrank.checking import (
        Finding,
        Report,
        check,
    )  # reports of saved results do not need it

    reports = {name: check(tree, data).reworded(plain_advice) for name, tree in results.items()}
    # A finding for several results is shown once.
    found: dict[tuple[str, str, str], tuple[Finding, list[str]]] = {}
    for name, report in reports.items():
        for each in report:
            same = found.setdefault((each.topic, each.verdict, each.sentence), (each, []))
            same[1].append(name)

    def table(kept: bool, name: str, caption: str) -> Table | None:
        """Return the warnings, or the other findings, which open on request."""
        rows = [each for each in found.values() if Report((each[0],)).trustworthy != kept]
        if not rows:
            return None
        columns = finding_columns(Report(tuple(each for each, _ in rows)))
        if len(reports) > 1:
            named = [names for _, names in rows]
            cells = ["all" if len(each) == len(reports) else ", ".join(each) for each in named]
            columns.insert(0, Column("result", cells))
        html = to_html(columns, name=name, caption=caption, sortable=False)
        return Table(html, caption, folded="never" if kept else "always")

    bad = [
        name
        for name, each in reports.items()
        if each.warnings and each.warnings[0].verdict == "bad"
    ]
    doubtful = [name for name, each in reports.items() if each.warnings and name not in bad]
    answers = []
    if bad:
        answers.append(f"Not yet: first resolve the bad findings for {listing(bad, len(bad))}.")
    if doubtful:
        answers.append(f"With caution: read the warnings for {listing(doubtful, len(doubtful))}.")
    answer = " ".join(answers) or "There are no warnings."
    unmeasured = Report(tuple(each for each, _ in found.values())).unmeasured
    advice = (
        "The author of the ranking can change the settings that a finding names."
        if any("setting “" in each.sentence for each, _ in found.values())
        else ""
    )
    lines = [f"{name} gave no result: {plain_advice(reason)}" for name, reason in failed.items()]
    return Section(
        "checks",
        "Can this be trusted?",
        tuple(filter(None, (answer, unmeasured, advice, *lines))),
        tables=tuple(
            each
            for each in (
                table(True, "checks-table", "Warnings"),
                table(False, "passed-table", "Other checks"),
            )
            if each is not None
        ),
    )


def method_section(results: "dict[str, xr.DataTree]") -> Section:
    """Return the section on how the results were computed, with references."""
    from bayesrank.catalog import METHODS

    keys: list[str] = []
    described = {name: settings(tree) for name, tree in results.items()}
    subjects = list(dict.fromkeys(subject for facts in described.values() for subject in facts))
    columns = [Column("setting", subjects)]
    for name, facts in described.items():
        row = METHODS.get(facts["method"])
        if row is not None:
            keys += row.citations
            facts["method"] = f"{method_title(results[name])} ({facts['method']})"
        columns.append(Column(name, [facts.get(subject, "none") for subject in subjects]))
    caption = "How the results were computed"
    html = to_html(columns, name="settings", caption=caption, sortable=False)
    cited = list(dict.fromkeys(keys))
    return Section(
        "methods",
        "Methods",
        tables=(Table(html, caption, folded="always"),),
        references=tuple(Reference(reference_text(key), reference_link(key)) for key in cited),
        code={"BibTeX": bibtex(cited)} if cited else {},
        wide=True,
    )
