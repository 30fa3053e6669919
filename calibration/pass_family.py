"""Measure how often intervals of metrics of k trials hold the truth, at fixed truths.

    python -m calibration.pass_family                      # two hours on two cores, resumable
    python -m calibration.pass_family --tensors 100 --truths rasch

The truth is the mean over questions of the metric of k fresh trials: of these questions for the
target "benchmark", of the 1,000 kinds that the questions are drawn from for "population". Every
tensor has a truth of its own. Writes ``docs/pass_family_coverage.csv`` row by row and the tables
of ``docs/pass_family.md``. Seeds follow from the row.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bayesrank import METHODS, Responses
from bayesrank.method import load_function
from bayesrank.ranking import draw_scores
from calibration.worlds import N_KINDS, Design, Target, derive_seed

Array = NDArray[np.float64]

DOCS = Path(__file__).parents[1] / "docs"
TABLE, PAGE = "pass_family_coverage.csv", "pass_family.md"
TENSORS, CONTRAST_TENSORS, CHUNK = 1000, 200, 50

SIZES = (
    Design(8, 40, 4),
    Design(20, 30, 8),
    Design(20, 52, 3),
    Design(6, 200, 4),
    Design(20, 30, 80),
)
# Where all metrics, ragged trials and further truths are measured.
SMALL = SIZES[0]
TARGETS: tuple[Target, ...] = ("benchmark", "population")
_QUANTILES, _LCB = (0.025, 0.975), 0.05
_KEYS = ["method", "options", "size", "truth", "trials", "target", "estimator"]


class Cell(NamedTuple):
    """A row of the table."""

    method: str
    options: Mapping[str, Any]
    size: Design
    truth: str
    trials: str
    target: Target
    estimator: str = "unbiased"

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that distinguish rows."""
        method, options, *rest = self
        shown = ", ".join(f"{name}={value}" for name, value in options.items())
        return (method, shown, *map(str, rest))


def cells() -> Iterator[Cell]:
    """Yield what is measured."""
    for target in TARGETS:
        for size in SIZES:
            n = size.n_trials
            some = [("pass_hat_k", k) for k in sorted({2, (n + 2) // 2, n})]
            some += [("pass_at_k", 2), ("pass_at_k", n), ("maj_at_k", 3)]
            for truth in ("rasch", "u-shaped"):
                for method, k in some:
                    yield Cell(method, {"k": k}, size, truth, "complete", target)
        for truth in ("rasch", "u-shaped"):
            for method in ("pass_hat_k", "pass_at_k"):
                yield Cell(method, {"k": 2}, SMALL, truth, "ragged", target)
                for k in (2, 4):
                    contrast = Cell(method, {"k": k}, SMALL, truth, "complete", target)
                    yield contrast._replace(estimator="posterior_mean")
            for method, options in {
                "g_pass_at_k_tau": {"k": 4, "tau": 0.5},
                "mg_pass_at_k": {"k": 4},
                "auc_at_k": {"k": 4},
                "threshold_metric": {"threshold_weights": (1.0, -0.5, 0.5)},
                "max_at_k": {"k": 2},
            }.items():
                yield Cell(method, options, SMALL, truth, "complete", target)
        for truth in ("strong", "two kinds"):
            for method, k in (("pass_hat_k", 2), ("pass_hat_k", 4), ("pass_at_k", 4)):
                yield Cell(method, {"k": k}, SMALL, truth, "complete", target)


def draw_chances(truth: str, n_systems: int, n_questions: int, rng: np.random.Generator) -> Array:
    """Draw chances of a right answer, of shape (system, question)."""
    if truth == "u-shaped":
        return rng.beta(0.3, 0.3, (n_systems, n_questions))
    if truth == "two kinds":
        return np.where(
            rng.random((n_systems, n_questions)) < rng.random((n_systems, 1)), 0.95, 0.05
        )
    level = {"rasch": 0.0, "strong": 2.5}[truth]
    ability = level + rng.normal(size=(n_systems, 1))
    return 1.0 / (1.0 + np.exp(rng.normal(size=n_questions) - ability))


def simulate(cell: Cell, rng: np.random.Generator) -> tuple[Responses, Array]:
    """Draw a truth, and a tensor and the true scores of it."""
    n_systems, n_questions, n_trials = cell.size
    is_benchmark = cell.target == "benchmark"
    chances = draw_chances(cell.truth, n_systems, n_questions if is_benchmark else N_KINDS, rng)
    kinds = np.arange(n_questions) if is_benchmark else rng.integers(N_KINDS, size=n_questions)
    if cell.method == "max_at_k":  # worse answers are half right in half of the cases
        law = np.stack([(1.0 - chances) / 2.0, (1.0 - chances) / 2.0, chances], axis=-1)
        weights = (0.0, 0.5, 1.0)
    else:
        law, weights = np.stack([1.0 - chances, chances], axis=-1), (0.0, 1.0)
    steps = np.cumsum(law[:, kinds], axis=-1)[..., np.newaxis, :-1]
    outcomes = (rng.random((n_systems, n_questions, n_trials, 1)) > steps).sum(axis=-1)
    if cell.trials == "ragged":  # a fifth fails, but two trials of every question are left
        fails = rng.random(outcomes.shape) < 0.2
        fails[..., :2] = False
        outcomes = np.where(fails, -1, outcomes)
    return Responses(outcomes, weights=weights), _true_score(cell, law, weights)


def _true_score(cell: Cell, law: Array, weights: tuple[float, ...]) -> Array:
    row = METHODS[cell.method]
    functional = load_function(row.functional or "")
    if row.data == "binary":
        return functional(law[..., 1], **cell.options)
    return functional(law, weights, **cell.options)


def measure(cell: Cell, chunk: int, size: int = CHUNK) -> dict[str, float]:
    """Return sums over the tensors of a chunk."""
    found: dict[str, float] = dict.fromkeys(("score", "difference", "lcb", "width"), 0.0)
    for seed in derive_seed(*cell.key, chunk).spawn(size):
        data, truth = simulate(cell, np.random.default_rng(seed))
        options = {**cell.options, "estimator": cell.estimator}
        number = int(seed.generate_state(1)[0])
        drawn = draw_scores(data, cell.method, target=cell.target, random_seed=number, **options)
        draws = drawn.reshape(-1, len(truth))
        first, second = np.triu_indices(len(truth), 1)
        lower, upper, bound = np.quantile(draws, (*_QUANTILES, _LCB), axis=0)
        between = draws[:, first] - draws[:, second]
        least, most = np.quantile(between, _QUANTILES, axis=0)
        found["score"] += _share_inside(lower, truth, upper)
        found["difference"] += _share_inside(least, truth[first] - truth[second], most)
        found["lcb"] += _share_inside(bound, truth, np.inf)
        found["width"] += float((upper - lower).mean())
    return found


def _share_inside(lower: Array, value: Array, upper: Array | float) -> float:
    # A truth at the end of the range is inside an interval that reaches it, rounding or not.
    return float(((lower <= value + 1e-9) & (value <= upper + 1e-9)).mean())


def run(options: argparse.Namespace) -> None:
    """Simulate the rows that are missing."""
    table = options.docs / TABLE
    done = set()
    if table.exists():
        stored = pd.read_csv(table, dtype=str, keep_default_na=False)
        done = {tuple(row) for row in stored[_KEYS].to_numpy()}
    with ProcessPoolExecutor(
        options.workers, get_context("spawn"), partial(threadpool_limits, 1)
    ) as pool:
        for cell in cells():
            if cell.key in done or {cell.truth, cell.target} - {*options.truths, *options.targets}:
                continue
            most = options.tensors
            most = most if cell.estimator == "unbiased" else min(most, CONTRAST_TENSORS)
            parts = list(pool.map(partial(measure, cell), range(max(1, most // CHUNK))))
            n = len(parts) * CHUNK
            means = {name: sum(part[name] for part in parts) / n for name in parts[0]}
            row = dict(zip(_KEYS, cell.key, strict=True)) | {"tensors": n}
            row |= {name: round(value, 4) for name, value in means.items()}
            print(row, flush=True)
            pd.DataFrame([row]).to_csv(
                table, mode="a", header=not table.exists(), index=False, lineterminator="\n"
            )


def publish(docs: Path, page: Path = DOCS / PAGE) -> None:
    """Write the tables below the headings of the page, from the stored rows."""
    rows = pd.read_csv(docs / TABLE)
    unbiased = rows["estimator"] == "unbiased"
    plain = unbiased & (rows["trials"] == "complete") & rows["truth"].isin(["rasch", "u-shaped"])
    few = plain & rows["method"].isin(["pass_hat_k", "pass_at_k", "maj_at_k"])
    ragged = rows["trials"] == "ragged"
    rows["metric"] = rows["method"] + "(" + rows["options"] + ")"
    rows.loc[ragged, "metric"] += ", ragged trials"
    k, n = rows["options"].str[2:], rows["size"].str.rpartition("x")[2]  # as in "k=3" and "8x40x4"
    half = (rows["method"] == "pass_hat_k") & (k != n)
    kinds = np.select([k == "2", rows["method"] == "maj_at_k", half], ["2", "3", "N/2 + 1"], "N")
    tables = {
        "Five sizes": rows[few].assign(metric=rows["method"] + ", k = " + kinds),
        "Other metrics, and ragged trials": rows[(plain & ~few) | ragged],
        "Other truths": rows[rows["truth"].isin(["strong", "two kinds"])],
        "The posterior mean at fixed truths": rows[~unbiased],
    }
    text = page.read_text(encoding="utf-8")
    for title, part in tables.items():
        before, heading, rest = text.partition(f"## {title}\n\n")
        text = before + heading + _markdown(part) + rest[rest.index("\n\n") :]
    (docs / PAGE).write_text(text, encoding="utf-8")


def _markdown(rows: pd.DataFrame) -> str:
    """Return a table with a line per metric; cells of several sizes have the range."""
    columns = [(target, truth) for target in TARGETS for truth in rows["truth"].unique()]
    head = ["metric", *(f"{target}, {truth}" for target, truth in columns)]
    lines = [head, ["---"] * len(head)]
    for metric, group in rows.groupby("metric", sort=False):
        cells = group.groupby(["target", "truth"])[["score", "difference"]].agg(["min", "max"])
        shown = [
            " / ".join(_range(*cells.loc[each, name]) for name in ("score", "difference"))
            for each in columns
        ]
        lines.append([str(metric), *shown])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _range(least: float, most: float) -> str:
    return " to ".join(dict.fromkeys([_percent(least), _percent(most)]))


def _percent(share: float) -> str:
    shown = f"{100 * share:.1f}"
    return shown if 0.935 <= share <= 0.97 else f"**{shown}**"


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, simulate and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    truths = ("rasch", "u-shaped", "strong", "two kinds")
    parser.add_argument("--truths", nargs="+", choices=truths, default=truths)
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=TARGETS)
    parser.add_argument("--tensors", type=int, default=TENSORS, help=f"per row ({TENSORS})")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--docs", type=Path, default=DOCS)
    parser.add_argument("--page-only", action="store_true", help="simulate nothing")
    options = parser.parse_args(arguments)
    if not options.page_only:
        run(options)
    publish(options.docs)


if __name__ == "__main__":
    main()
