"""Write the table of what was measured that `bayesrank.checking` reads.

    python -m calibration.measured

It is made of docs/calibration.csv, complete designs, and of docs/calibration_designs.csv, the
designs that people bring, where that exists. A row is a way of ranking, a target and a design; over
the generators of truths it has the worst that was found.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bayesrank.checking.coverage import COLUMNS, TABLE
from calibration.configurations import configurations
from calibration.designs import DESIGN_WINDOW
from calibration.tables import WINDOW, replace_file, to_csv

DOCS = Path(__file__).parents[1] / "docs"

# What a design of docs/calibration_designs.csv shows: one of `KINDS`.
KIND_OF_DESIGN = {
    "complete": "complete",
    "a fifth missing": "missing",
    "hardest skipped": "missing",
    "failed trials": "missing",
    "three questions": "uneven",
    "unequal trials": "unequal",
    "always right": "alike",
    "grades": "grades",
}

Row = Mapping[str, str]


def measured_rows(docs: Path) -> list[dict[str, str]]:
    """Return the rows of the table.

    Parameters
    ----------
    docs : pathlib.Path
        Folder of the published tables.

    Returns
    -------
    list of dict
        With the keys of `COLUMNS`.
    """
    rows = list(_complete(_read(docs / "calibration.csv")))
    designs = docs / "calibration_designs.csv"
    if designs.exists():
        rows += [one for row in _read(designs) for one in _of_design(row)]
    return rows


def main() -> None:
    """Write the table into the package."""
    replace_file(TABLE, to_csv(COLUMNS, measured_rows(DOCS)))


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _of_design(row: Row) -> Iterator[dict[str, str]]:
    if row["design"] not in KIND_OF_DESIGN:
        raise ValueError(
            f"design must be one of {', '.join(KIND_OF_DESIGN)}; got {row['design']!r}"
        )
    coverage = {name: float(row[f"coverage_{name}"]) for name in ("score", "difference")}
    low, high = DESIGN_WINDOW
    beyond = {name: max(low - one, one - high) for name, one in coverage.items()}
    worst = max(beyond, key=lambda name: beyond[name])
    passes = beyond[worst] <= 0.0
    # The target follows from the data, so that a design may have both.
    for target in row["target"].split("/"):
        yield {
            **{name: row[name] for name in COLUMNS if name in row},
            "calibration": "",
            "target": target,
            "kind": KIND_OF_DESIGN[row["design"]],
            "passes": str(passes),
            "fails": "" if passes else worst,
            "worst": "" if passes else row[f"coverage_{worst}"],
        }


def _complete(rows: Iterable[Row]) -> Iterator[dict[str, str]]:
    """Merge the rows of complete designs over quantities and generators."""
    known = {one.name: one for one in configurations()}
    cells: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["nominal"] != "0.95" or row["configuration"] not in known:
            continue
        one = known[row["configuration"]]
        options = one.options_for(row["target"], row["generator"])  # pyright: ignore[reportArgumentType]
        calibration = str(options.get("calibration", ""))
        cells[one.ranker, calibration, row["target"], row["design"]].append(row)
    for (ranker, calibration, target, design), found in cells.items():
        systems, questions, trials = design.split("x")
        failed = [row for row in found if not _passes(row)]
        worst = max(failed, key=lambda row: abs(float(row["coverage"]) - 0.95), default=None)
        yield {
            "method": ranker,
            "calibration": calibration,
            "target": target,
            "kind": "complete",
            "design": "complete",
            "systems": systems,
            "questions": questions,
            "trials": trials,
            "coverage_score": _worst(found, "score"),
            "coverage_difference": _worst(found, "difference"),
            "n_tensors": min((row["n_simulations"] for row in found), key=int),
            "passes": str(not failed),
            "fails": "" if worst is None else worst["quantity"],
            "worst": "" if worst is None else worst["coverage"],
        }


def _passes(row: Row) -> bool:
    """Return whether a coverage meets its rule; one without a rule is to reach 93.5 %."""
    if row["rule"] in ("nominal", "at least"):
        return row["pass"] == str(True)
    return float(row["interval_upper"]) >= WINDOW[0]


def _worst(rows: Iterable[Row], quantity: str) -> str:
    return max(
        (row["coverage"] for row in rows if row["quantity"] == quantity),
        key=lambda text: abs(float(text) - 0.95),
    )


if __name__ == "__main__":
    main()
