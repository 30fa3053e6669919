"""Look up the coverage of intervals in simulations of designs like that of the data."""

import csv
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import xarray as xr
from numpy.typing import NDArray

from bayesrank.catalog import find_method
from bayesrank.checking.design import Design
from bayesrank.checking.verdicts import Finding
from bayesrank.design import possible_trials
from bayesrank.inference.calibrate.sandwich import default_calibration
from bayesrank.method import LIKELIHOOD_BACKENDS, Method, Preset
from bayesrank.priors import Dirichlet, as_prior

# One row per method with its settings, target and design, made by calibration/measured.py.
TABLE = Path(str(files("bayesrank.checking") / "coverage.csv"))

COLUMNS = (
    "method",
    "calibration",
    "target",
    "kind",
    "design",
    "systems",
    "questions",
    "trials",
    "coverage_score",
    "coverage_difference",
    "n_tensors",
    "passes",
    "fails",
    "worst",
)

# Features of a design that its intervals may depend on.
KINDS = {
    "complete": "every system has as many outcomes on every question",
    "missing": "outcomes are missing",
    "unequal": "a question has less than half of the trials of another",
    "uneven": "a system has less than half of the outcomes of another",
    "alike": "the outcomes of a system are all the same",
    "grades": "outcomes are not only right or wrong",
}

# Shares of missing outcomes: smaller shares make no difference, larger ones were not simulated.
_NEARLY_NONE, _MOST_MISSING = 0.01, 0.25

# Designs are uneven if a system has less than this share of the outcomes of another, or a question
# of its trials.
_UNEVEN = 0.5

_QUANTITIES = {
    "score": "intervals of scores",
    "difference": "intervals of differences",
    "lcb": "lower bounds",
    "joint ranks": "joint ranks",
}


class Cell(NamedTuple):
    """Coverage of a method with its settings on one design; see `COLUMNS`.

    `calibration` is that of the draws, empty for the default; `kind` is one of `KINDS`, and
    `design` is in words; `size` counts systems, questions and trials. `score` and `difference` are
    the coverage of nominal 95 % intervals of them over `n_tensors` simulated sets of data, which
    `passes` or not; `fails` is the quantity that failed most, and `worst` its coverage.
    """

    method: str
    calibration: str
    target: str
    kind: str
    design: str
    size: tuple[int, int, int]
    score: float
    difference: float
    n_tensors: int
    passes: bool
    fails: str
    worst: float

    @property
    def place(self) -> str:
        """The design in words."""
        sizes = zip(self.size, ("system", "question", "trial"), strict=True)
        return ", ".join([self.design, *(f"{n} {name}{'s' * (n != 1)}" for n, name in sizes)])


@cache
def measured() -> tuple[Cell, ...]:
    """Return the table of measured coverages."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return tuple(
            Cell(
                row["method"],
                row["calibration"],
                row["target"],
                row["kind"],
                row["design"],
                (int(row["systems"]), int(row["questions"]), int(row["trials"])),
                float(row["coverage_score"]),
                float(row["coverage_difference"]),
                int(row["n_tensors"]),
                row["passes"] == "True",
                row["fails"],
                float(row["worst"] or "nan"),
            )
            for row in csv.DictReader(lines)
        )


def kinds_of(design: Design) -> tuple[str, ...]:
    """Return the features of a design that intervals may depend on, among `KINDS`."""
    found = {
        "missing": design.missing > _NEARLY_NONE,
        "unequal": design.trials is not None and _is_uneven(possible_trials(design.trials)),
        "uneven": _is_uneven(design.sizes),
        "alike": not design.varied.all(),
        "grades": not design.binary,
    }
    return tuple(kind for kind, one in found.items() if one) or ("complete",)


def _is_uneven(numbers: NDArray[Any]) -> bool:
    return bool(numbers.min() < _UNEVEN * numbers.max())


def judge_coverage(
    result: xr.DataTree, method: Method, design: Design, *, dependent: bool, pulled: bool
) -> Finding:
    """Return the finding on the coverage of intervals in simulations of designs like this one.

    Good if all features of the design were simulated and the coverage passed, doubtful with the
    coverage if it failed, else not measured. Arguments are those of
    :func:`~bayesrank.checking.calibration.check_calibration`.
    """
    trials = design.trials
    if trials is None:
        return _not_measured(f"the simulations are of questions, not of {design.unit}s")
    if "run" in result.attrs.get("unit", "").split(","):
        return _not_measured("the runs of the simulations have independent trials")
    cells = _cells_of(result, method)
    if not cells:
        return _not_measured(
            f"the simulations do not include {method.name} with this back end, prior, target, "
            "calibration and these options"
        )
    size = (len(design.systems), trials.shape[1], int(trials.max()))
    used, reasons, smallest = [], [], []
    for kind in kinds_of(design):
        of_kind = [cell for cell in cells if cell.kind == kind]
        near = _nearest(of_kind, size)
        if near or (of_kind and not any(cell.passes for cell in of_kind)):
            used += near or of_kind
        elif of_kind:
            smallest.append(min(of_kind, key=lambda cell: cell.size[1] * cell.size[2]).place)
        else:
            reasons.append(f"{KINDS[kind]}, as in no simulated design")
    if smallest:
        places = "; ".join(smallest)
        reasons.insert(
            0,
            "each simulated design of this kind has more systems, questions or trials (smallest: "
            f"{places})",
        )
    failed = [cell for cell in used if not cell.passes]
    if failed:
        return _failed(max(failed, key=lambda cell: abs(cell.worst - 0.95)))
    share = f"{100 * design.missing:.0f} % of the outcomes are missing, more than was simulated"
    more = {
        share: design.missing > _MOST_MISSING,
        "groups have weights, as in no simulated design": "group_weights" in result.attrs,
        "runs vary more than the simulated ones": dependent,
        "scores depend on the prior, which is part of the truth in the simulations": pulled,
    }
    reasons += [reason for reason, holds in more.items() if holds]
    return _not_measured("; ".join(reasons)) if reasons else _held(used)


def _cells_of(result: xr.DataTree, method: Method) -> list[Cell]:
    """Return the rows with the method and the settings of a result."""
    attrs = result.attrs
    usual = default_calibration(method, attrs["backend"], attrs["target"])
    calibration = "" if attrs["calibration"] == usual else attrs["calibration"]
    asked = _settings(
        method, attrs["backend"], attrs["prior"], json.loads(attrs["options"]), method.options
    )
    return [
        cell
        for cell in measured()
        if (cell.target, cell.calibration) == (attrs["target"], calibration)
        and _is_way(cell.method, method, asked)
    ]


def _is_way(name: str, method: Method, asked: dict[str, Any]) -> bool:
    """Return whether the name of a method or preset stands for the settings of a result."""
    row, preset = find_method(name)
    return row.name == method.name and _defaults(row, preset) == asked


def _defaults(row: Method, preset: Preset | None) -> dict[str, Any]:
    backend = preset.backend if preset else row.backends[0]
    prior = row.default_prior
    if preset is not None and preset.prior is not None:
        prior = as_prior(preset.prior)
    has_prior = isinstance(prior, Dirichlet) or (
        backend in LIKELIHOOD_BACKENDS - {"mle", "mml"} and prior is not None
    )
    options = preset.options if preset else measured_options(row)
    return _settings(row, backend, str(prior) if has_prior else "none", options, row.options)


def measured_options(row: Method) -> dict[str, Any]:
    """Return the options without which the first back end of a method does not run."""
    # Examples do not centre abilities where maximum likelihood would have no maximum otherwise.
    return {name: value for name, value in row.example.items() if name != "centred"}


def _settings(row: Method, backend: str, prior: str, given: Any, known: Any) -> dict[str, Any]:
    options = {name: option.default for name, option in known.items()}
    options |= {name: value for name, value in given.items() if name in known}
    if backend == "mle":  # which has no priors
        options |= {name: "flat" for name in options if name.endswith("_prior")}
    return {
        "backend": backend,
        "prior": prior,
        "options": json.loads(json.dumps(options, default=str, sort_keys=True)),
    }


def _nearest(cells: Sequence[Cell], size: tuple[int, int, int]) -> list[Cell]:
    """Return the largest of the designs that are no larger than this one in any respect."""
    within = [cell for cell in cells if _is_within(cell.size, size)]
    return [
        cell
        for cell in within
        if not any(cell.size != o.size and _is_within(cell.size, o.size) for o in within)
    ]


def _is_within(smaller: Sequence[int], larger: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(smaller, larger, strict=True))


def _not_measured(reason: str) -> Finding:
    return Finding(
        "calibration",
        "not measured",
        f"The coverage of the intervals was not measured for these data and settings: {reason}.",
        {"reason": reason},
        "coverage",
    )


def _failed(cell: Cell) -> Finding:
    side = "too narrow" if cell.worst < 0.95 else "too wide"
    return Finding(
        "calibration",
        "doubtful",
        f"In simulations ({cell.place}), the coverage of 95 % {_QUANTITIES[cell.fails]} was "
        f"{100 * cell.worst:.1f} %: they are {side}. Choose a method whose coverage passed.",
        {"coverage": cell.worst, "quantity": cell.fails, "design": cell.place},
        "coverage",
    )


def _held(cells: Sequence[Cell]) -> Finding:
    scores = sorted(cell.score for cell in cells)
    differences = sorted(cell.difference for cell in cells)
    return Finding(
        "calibration",
        "good",
        f"In simulations of such designs ({'; '.join(cell.place for cell in cells)}), the coverage "
        f"of 95 % intervals was {_percent(scores)} for scores and {_percent(differences)} for "
        "differences.",
        {
            "coverage_score": scores,
            "coverage_difference": differences,
            "n_tensors": [cell.n_tensors for cell in cells],
        },
        "coverage",
    )


def _percent(shares: Sequence[float]) -> str:
    low, high = (f"{100 * share:.1f}" for share in (shares[0], shares[-1]))
    return f"{low} %" if low == high else f"{low} to {high} %"
