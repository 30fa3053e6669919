"""The directive ``calibration-table``: measured coverage in colour, details folded behind it.

The numbers are those of ``docs/calibration.csv``, which ``make calibrate`` writes.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

TABLE = Path(__file__).parents[1] / "calibration.csv"
# Where the coverage of a nominal 95 % interval is to lie.
LOW, HIGH = 0.935, 0.965

Row = Mapping[str, str]

LEGEND = {
    "holds": "between 93.5 and 96.5 %, within simulation error",
    "above": "above: intervals are wider than needed",
    "below": "below 93.5 %, within simulation error",
    "fails": "fails: the 99 % simulation interval misses this range",
    "untargeted": "(in brackets): not judged, see above",
}


def fails(row: Row) -> bool:
    """Return whether a coverage misses its range."""
    return row["pass"].lower().startswith("f")


def verdict(row: Row) -> str:
    """Return the class of a coverage."""
    if not row["pass"]:
        return "untargeted"
    if fails(row):
        return "fails"
    coverage = float(row["coverage"])
    return "below" if coverage < LOW else "above" if coverage > HIGH else "holds"


def percent(row: Row) -> str:
    """Return a coverage in percent, in brackets where it is not judged."""
    text = f"{100 * float(row['coverage']):.1f}"
    return f"({text})" if not row["pass"] else text


def cell(rows: Iterable[Row]) -> str:
    """Return the cell of a design: of several generators the one farthest from 95 %."""
    judged = [row for row in rows if row["pass"]] or list(rows)
    if not judged:
        return "<td></td>"
    worst = max(judged, key=lambda row: (fails(row), abs(float(row["coverage"]) - 0.95)))
    return f'<td class="{verdict(worst)}" title="{worst["generator"]}">{percent(worst)}</td>'


def overview(rows: list[Row]) -> str:
    """Return the table of all configurations: 95 % intervals of scores, by design and target."""
    designs = list(dict.fromkeys((row["target"], row["design"]) for row in rows))
    designs.sort()
    by_cell: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_cell[row["configuration"], row["target"], row["design"]].append(row)
    head = "".join(f"<th>{target}<br>{design}</th>" for target, design in designs)
    lines = [f"<thead><tr><th>configuration</th>{head}</tr></thead><tbody>"]
    for name in dict.fromkeys(row["configuration"] for row in rows):
        cells = "".join(cell(by_cell[(name, *each)]) for each in designs)
        lines.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return f"<table>{''.join(lines)}</tbody></table>"


def detail(row: Row) -> str:
    """Return the cell of a quantity; those of 50 % intervals are not judged."""
    if row["nominal"] != "0.95":
        return f"<td>{100 * float(row['coverage']):.1f}</td>"
    return f'<td class="{verdict(row)}">{percent(row)}</td>'


def details(method: str, rows: list[Row]) -> str:
    """Return everything that was measured of a method, folded."""
    cells: defaultdict[tuple[str, ...], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        key = tuple(row[name] for name in ("configuration", "design", "target", "generator"))
        cells[key][f"{row['quantity']} {100 * float(row['nominal']):.0f}"] = row
    quantities = list(dict.fromkeys(name for found in cells.values() for name in found))
    names = ["configuration", "design", "target", "generator", *quantities, "data sets"]
    lines = [f"<thead><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr></thead><tbody>"]
    for key, found in cells.items():
        first, *others = key
        values = "".join(detail(found[name]) for name in quantities)
        size = next(iter(found.values()))["n_simulations"]
        words = "".join(f"<td>{each}</td>" for each in others)
        lines.append(f'<tr><th scope="row">{escape(first)}</th>{words}{values}<td>{size}</td></tr>')
    table = f"<table>{''.join(lines)}</tbody></table>"
    return (
        f'<details id="coverage-{method}"><summary>{method}</summary>'
        f'<div class="scroll" tabindex="0">{table}</div></details>'
    )


class CalibrationTable(SphinxDirective):
    """One table of all configurations, then the details of every method."""

    def run(self) -> list[nodes.Node]:
        """Return the tables."""
        self.env.note_dependency(str(TABLE))
        with TABLE.open(encoding="utf-8", newline="") as file:
            rows: list[Row] = list(csv.DictReader(file))
        scores = [row for row in rows if row["quantity"] == "score" and row["nominal"] == "0.95"]
        by_method: defaultdict[str, list[Row]] = defaultdict(list)
        for row in rows:
            by_method[row["method"]].append(row)
        legend = "".join(
            f'<li><span class="{name}">{text}</span></li>' for name, text in LEGEND.items()
        )
        parts = [
            '<div class="coverage">',
            f"<ul>{legend}</ul>",
            f'<div class="scroll" tabindex="0">{overview(scores)}</div>',
            "<p>All that was measured, by method:</p>",
            *(details(method, found) for method, found in by_method.items()),
            "</div>",
        ]
        return [nodes.raw("", "\n".join(parts), format="html")]


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("calibration-table", CalibrationTable)
    return {"parallel_read_safe": True}
