"""The tables under docs: a tidy one for computations, and one for readers."""

import csv
import io
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np

from calibration.configurations import Configuration, configurations, n_cells
from calibration.factories import FACTORIES
from calibration.figures import draw_coverage, draw_rank_statistics
from calibration.notes import NOTES, PREFACE, SBC_PREFACE
from calibration.store import COVERAGE, SBC, Store
from calibration.uniformity import uniformity
from calibration.worlds import DESIGNS, Generator, Target

# Two-sided 99 % of a normal distribution.
_Z = 2.5758293035489004

# Where the coverage of a nominal 95 % interval is to lie.
WINDOW = (0.935, 0.965)

QUANTITIES = {
    "score 95": ("score", 0.95),
    "difference 95": ("difference", 0.95),
    "lcb 95": ("lcb", 0.95),
    "joint ranks 95": ("joint ranks", 0.95),
    "score 50": ("score", 0.5),
    "difference 50": ("difference", 0.5),
}

COLUMNS = (
    "method",
    "configuration",
    "design",
    "target",
    "generator",
    "quantity",
    "nominal",
    "n_simulations",
    "n_undefined",
    "coverage",
    "interval_lower",
    "interval_upper",
    "rule",
    "pass",
    "seconds",
)


# Draws among which the truth is ranked.
KEPT = 100

# Simulations that judge a variable; those after them repeat the judgement.
JUDGED = 500

SBC_COLUMNS = (
    "method",
    "variable",
    "elements",
    "n_simulations",
    "adjusted_p",
    "repeated_p",
    "pass",
    "seconds",
)


@dataclass(frozen=True)
class Measured:
    """Coverage of one quantity in one cell.

    Attributes
    ----------
    coverage : float
        Mean over tensors of the share that is covered.
    lower, upper : float
        99 % simulation interval.
    rule : str
        Its target: ``nominal``, ``at least``, or the reason why it has no target.
    passed : bool or None
        Whether it meets the rule; None without a rule, and at 50 %, which has no target.
    """

    coverage: float
    lower: float
    upper: float
    rule: str
    passed: bool | None


def measured(total: float, squares: float, size: int, *, nominal: float, rule: str) -> Measured:
    """Judge a coverage from sums over tensors.

    Parameters
    ----------
    total, squares : float
        Sums over tensors of the covered share and of its square.
    size : int
        Number of tensors.
    nominal : float
        Probability of the intervals.
    rule : str
        As in :class:`Measured`.

    Returns
    -------
    Measured

    Examples
    --------
    >>> found = measured(95.0, 91.0, 100, nominal=0.95, rule="nominal")
    >>> found.coverage, found.passed
    (0.95, True)
    """
    share = total / size
    # The scores of a tensor are dependent, so the unit is the tensor. One pseudo-tensor, half of it
    # covered, keeps the spread above zero where the coverage of all tensors is the same.
    mean = (total + 0.5) / (size + 1)
    spread = (squares + 0.5) / (size + 1) - mean**2
    half = _Z * math.sqrt(spread / size)
    lower, upper = max(share - half, 0.0), min(share + half, 1.0)
    passed = None
    if nominal == 0.95 and rule in ("nominal", "at least"):
        passed = upper >= WINDOW[0] and (rule == "at least" or lower <= WINDOW[1])
    return Measured(share, lower, upper, rule, passed)


def summarize(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one record per cell and quantity, in the order of the catalog and of the designs.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of the results file, one per chunk.

    Returns
    -------
    list of dict
        With the keys of `COLUMNS`. A cell whose tensors could all not be ranked is left out.
    """
    chunks: defaultdict[tuple[str, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["simulations"]:
            chunks[tuple(row["key"])].append(row)
    known = {one.name: one for one in configurations()}
    order = product(known, map(str, DESIGNS), get_args(Target), get_args(Generator))
    cells = [key for key in order if key in chunks]
    return [record for key in cells for record in _records(known[key[0]], key, chunks[key])]


def rank_statistics(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Any]:
    """Return the ranks of every simulation, by factory and variable.

    Parameters
    ----------
    rows : iterable of mapping
        Rows of the results file, one per chunk.

    Returns
    -------
    dict of (str, str) to numpy.ndarray of shape (simulation, element)
        In the order of `FACTORIES`. Elements whose ranks are those of an earlier element of the
        factory, or mirror them, are left out: they are increasing or decreasing functions of it.
    """
    ranks: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    order = {name: position for position, name in enumerate(FACTORIES)}
    known = (row for row in rows if row["key"][0] in order)
    for row in sorted(known, key=lambda row: (order[row["key"][0]], row["chunk"])):
        for variable, values in row["ranks"].items():
            ranks[row["key"][0], variable] += values
    seen: set[tuple[str, bytes]] = set()
    tables = {}
    # The score first, which other variables may hold.
    ordered = sorted(ranks.items(), key=lambda one: (order[one[0][0]], one[0][1] != "score"))
    for (name, variable), values in ordered:
        table = np.array(values)
        both = [{one.tobytes(), (KEPT - one).tobytes()} for one in table.T]
        new = [seen.isdisjoint({(name, one) for one in pair}) for pair in both]
        seen.update((name, one) for pair in both for one in pair)
        if any(new):
            tables[name, variable] = table[:, new]
    return tables


def summarize_sbc(
    ranks: Mapping[tuple[str, str], Any], seconds: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return one record per factory and variable.

    Parameters
    ----------
    ranks : mapping
        What :func:`rank_statistics` returned.
    seconds : mapping
        Processor time per simulation of each factory.

    Returns
    -------
    list of dict
        With the keys of `SBC_COLUMNS`. A p-value is the least one of the elements of a variable,
        multiplied by their number (Bonferroni). The first is that of the first `JUDGED`
        simulations, the repeated one that of all others. It passes if one of the two reaches 0.01.
    """
    records = []
    for (name, variable), table in ranks.items():
        parts = [part for part in (table[:JUDGED], table[JUDGED:]) if len(part)]
        found = [min(1.0, float(uniformity(part, KEPT).min()) * table.shape[1]) for part in parts]
        entries = (
            name,
            variable,
            table.shape[1],
            len(table),
            round(found[0], 4),
            "" if len(found) == 1 else round(found[1], 4),
            max(found) >= 0.01,
            round(seconds[name], 3),
        )
        records.append(dict(zip(SBC_COLUMNS, entries, strict=True)))
    return records


def _records(
    configuration: Configuration, key: tuple[Any, ...], chunks: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    name, design, target, generator = key
    size = sum(chunk["simulations"] for chunk in chunks)
    records = []
    for label, (quantity, nominal) in QUANTITIES.items():
        total, squares = (sum(chunk["covered"][label][i] for chunk in chunks) for i in (0, 1))
        rule = configuration.rule(quantity, target, generator)
        found = measured(total, squares, size, nominal=nominal, rule=rule)
        values = (
            configuration.method.name,
            name,
            design,
            target,
            generator,
            quantity,
            nominal,
            size,
            sum(chunk["undefined"] for chunk in chunks),
            round(found.coverage, 4),
            round(found.lower, 4),
            round(found.upper, 4),
            rule,
            "" if found.passed is None else found.passed,
            round(max(chunk["seconds"] for chunk in chunks), 3),
        )
        records.append(dict(zip(COLUMNS, values, strict=True)))
    return records


def publish(results: Path, docs: Path) -> None:
    """Write ``calibration.csv``, ``calibration_sbc.csv``, ``calibration.md`` and two figures.

    A part without results, coverage or simulation-based calibration, stays as it is.

    Parameters
    ----------
    results : pathlib.Path
        Folder of the results.
    docs : pathlib.Path
        Folder of the pages.
    """
    coverage = summarize(Store(results / COVERAGE).rows.values())
    rows = list(Store(results / SBC).rows.values())
    page, heading = docs / "calibration.md", SBC_PREFACE.partition("\n")[0]
    old = page.read_text(encoding="utf-8") if page.exists() else ""
    first, second = (heading * at + part for at, part in enumerate(old.partition(heading)[::2]))
    if coverage:
        replace_file(docs / "calibration.csv", to_csv(COLUMNS, coverage))
        draw_coverage(coverage, docs / "calibration.svg")
        first = _coverage_part(coverage)
    if rows:
        ranked = rank_statistics(rows)
        seconds = {row["key"][0]: row["seconds"] for row in rows}
        uniform = summarize_sbc(ranked, seconds)
        replace_file(docs / "calibration_sbc.csv", to_csv(SBC_COLUMNS, uniform))
        draw_rank_statistics(ranked, KEPT, docs / "calibration_sbc.svg")
        second = _sbc_part(uniform)
    replace_file(page, first + second)


def to_csv(columns: Sequence[str], records: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV, with a header."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue()


def replace_file(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(path.suffix + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _coverage_part(records: Sequence[Mapping[str, Any]]) -> str:
    judged = [record for record in records if record["pass"] != ""]
    failed = [record for record in judged if not record["pass"]]
    sizes = [record["n_simulations"] for record in records] or [0]
    cells = {tuple(record[name] for name in COLUMNS[1:5]) for record in records}
    lines = [
        PREFACE,
        f"This table: {len(cells)} of {n_cells()} cells, {min(sizes)} to {max(sizes)} simulated "
        f"data sets each; {len(judged) - len(failed)} of {len(judged)} judged coverages pass.",
        "",
        "![Coverage of 95 % intervals by method](calibration.svg)",
        "",
        "## By method",
        "",
        "```{calibration-table}",
        "```",
        "",
        "## What fails",
        "",
        *(_failures(failed) or ["Nothing."]),
        "",
    ]
    return "\n".join(lines) + "\n"


def _sbc_part(uniform: Sequence[Mapping[str, Any]]) -> str:
    sizes = [record["n_simulations"] for record in uniform]
    missing = sorted(set(FACTORIES).difference(record["method"] for record in uniform))
    n_outside = sum(record["adjusted_p"] < 0.01 for record in uniform)
    lines = [
        SBC_PREFACE,
        f"This table: {min(sizes)} to {max(sizes)} simulations per factory; {n_outside} of "
        f"{len(uniform)} variables leave their 99 % band, where {len(uniform) / 100:.1f} do by "
        f"chance; {sum(not record['pass'] for record in uniform)} do not pass. "
        f"Not simulated yet: {', '.join(missing) or 'none'}.",
        "",
        "![Rank statistics by factory](calibration_sbc.svg)",
        "",
        f"| {' | '.join(SBC_COLUMNS).replace('_', ' ')} |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- | ---: |",
        *(f"| {' | '.join(str(record[name]) for name in SBC_COLUMNS)} |" for record in uniform),
    ]
    return "\n".join(lines) + "\n"


def _failures(failed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a list of what fails by method, with the reason where one is known."""
    by_method: defaultdict[str, list[str]] = defaultdict(list)
    for record in failed:
        by_method[record["method"]].append(
            f"{record['configuration']} {record['design']} {record['target']} "
            f"{record['generator']}: {record['quantity']} {100 * record['coverage']:.1f} "
            f"({100 * record['interval_lower']:.1f} to {100 * record['interval_upper']:.1f})"
        )
    lines = []
    for method, texts in by_method.items():
        lines += [f"- **{method}**: {NOTES.get(method, 'no reason known yet.')}"]
        lines += [f"  - {text}" for text in texts]
    return lines
