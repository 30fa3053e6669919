"""Measure how often intervals of metrics of k trials hold the truth, at fixed truths.

    python -m calibration.pass_family                      # two hours on two cores, resumable
    python -m calibration.pass_family --tensors 100 --truths rasch

The truth is the mean over questions of the metric of k fresh trials: of these questions for the
target "benchmark", of the 1,000 kinds that the questions are drawn from for "population". Every
tensor has a truth of its own. Writes ``docs/pass_family_coverage.csv`` row by row and
``docs/pass_family.md``. Seeds follow from the row.
"""

# ruff: noqa: E501 - lines of the page

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


def publish(docs: Path) -> None:
    """Write the page from the table."""
    table = pd.read_csv(docs / TABLE)
    simple = table[(table["trials"] == "complete") & (table["estimator"] == "unbiased")]
    simple = simple[simple["truth"].isin(["rasch", "u-shaped"])]
    main_rows = simple["method"].isin(["pass_hat_k", "pass_at_k", "maj_at_k"])
    parts = [
        ("## On a benchmark", simple[main_rows & (simple["target"] == "benchmark")]),
        ("## Over a population", simple[main_rows & (simple["target"] == "population")]),
        ("## Other metrics, and ragged trials", table[_is_other(table)]),
        ("## Other truths", table[table["truth"].isin(["strong", "two kinds"])]),
        ("## The posterior mean at fixed truths", table[table["estimator"] != "unbiased"]),
    ]
    tensors = f"{int(table['tensors'].max()):,}"
    lines = [PREFACE.format(tensors=tensors, contrast=f"{CONTRAST_TENSORS:,}")]
    for title, rows in parts:
        lines += [title, "", *_markdown(rows), "", NOTES[title], ""]
    (docs / PAGE).write_text("\n".join(lines), encoding="utf-8")


def _is_other(table: pd.DataFrame) -> "pd.Series[bool]":
    few = table["method"].isin(["pass_hat_k", "pass_at_k", "maj_at_k"])
    return (~few | (table["trials"] == "ragged")) & (table["estimator"] == "unbiased")


def _markdown(rows: pd.DataFrame) -> list[str]:
    """Return a table with a line per metric, size and target, and a column per truth."""
    truths = list(dict.fromkeys(rows["truth"]))
    several = rows["target"].nunique() > 1
    head = ["metric", "size", *(["target"] if several else []), *truths]
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(['---'] * len(head))} |"]
    keys = ["method", "options", "size", "trials", "target"]
    for (method, options, size, trials, target), group in rows.groupby(keys, sort=False):
        ragged = ", ragged trials" if trials == "ragged" else ""
        cells = [f"{method}({options}){ragged}", size.replace("x", " x ")]
        cells += [target] if several else []
        by_truth = group.set_index("truth")
        cells += [
            " / ".join(_percent(by_truth.loc[truth, name]) for name in ("score", "difference"))
            for truth in truths
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _percent(share: float) -> str:
    shown = f"{100 * share:.1f}"
    return shown if 0.935 <= share <= 0.97 else f"**{shown}**"


PREFACE = """\
# Metrics of k trials

| method | a question scores | for |
| --- | --- | --- |
| `pass_at_k` | the chance that at least one of k trials is right | retries with a checker |
| `pass_hat_k` | the chance that all of k trials are right | agents that must not fail |
| `g_pass_at_k_tau`, `mg_pass_at_k` | the chance of a share tau of right trials; its mean over shares from one half | stability |
| `maj_at_k` | the chance that most of k trials are right | majority votes |
| `auc_at_k` | the mean of pass@1, ..., pass@k | one number for a curve |
| `threshold_metric` | a weighted sum of the chances of at least 1, ..., k right trials | other metrics of this kind |
| `max_at_k` | the expected grade of the best of k answers | graded answers |

The score is the mean over questions. The score of a system leaves out questions without trials of this system.

## Estimate and interval

The score is the unbiased estimate: the mean over all ways to choose k of the N trials of a question, as published. Its
interval is for the same quantity, and always holds the estimate. It is the mid-P interval of a proportion with
n = s (1 - s) / V effective trials, where V is the variance of the estimate (Korn and Graubard 1998).

- On a benchmark V is the variance over trials. A question with only k trials, or with only right answers, does not identify its
  variance. So the chances of all questions of a system come from one Beta distribution, whose spread is estimated from the share of
  pairs of trials of a question that differ (empirical Bayes). Only the width of the interval depends on it, not the estimate.
- Over a population V is the variance between questions, or groups of questions.
- A system that is always right has the score 1 and an interval that ends at 1. It begins at about 1 - 3 / n, where n is the
  number of blocks of k trials on a benchmark, the number of questions for a population.

```python
import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
few = br.Responses(data.outcomes[:3, :, :4], systems=["A", "B", "C"])
for estimator in ("unbiased", "posterior_mean"):
    result = br.rank(few, "pass_hat_k", k=4, estimator=estimator, random_seed=1)
    table = br.leaderboard(result)[["system", "score", "score_lower", "score_upper"]]
    print(estimator)
    print(table.round(2).to_string(index=False))
```

```text
unbiased
system  score  score_lower  score_upper
     C   0.47         0.37         0.57
     B   0.20         0.11         0.32
     A   0.17         0.10         0.25
posterior_mean
system  score  score_lower  score_upper
     C   0.31         0.24         0.39
     B   0.21         0.15         0.27
     A   0.12         0.08         0.17
```

## The posterior mean

`estimator="posterior_mean"` gives each chance a uniform prior and scores by the posterior mean of the metric of k new trials,
with the interval of that posterior. Estimate and interval are shrunk towards the value of a uniform chance, for `pass_hat_k`
1 / (k + 1), the more so the fewer trials there are. The posterior mean exists for any k; the unbiased estimate raises an error if a
question has fewer than k trials. The posterior mean takes earlier outcomes as evidence (`prior_weight`). The coverage of its
intervals is 95 % on average over uniform chances, but not at a fixed truth: see the last table.

## What was measured

Coverage of 95 % intervals in percent, scores / differences of two systems, over {tensors} simulated tensors per cell ({contrast} for
the posterior mean), at fixed truths: the mean over questions of the metric of k fresh trials. **Bold** is outside 93.5 to
97 %. `rasch`: the logit of a chance is ability minus difficulty, both standard normal. `u-shaped`: every chance is from
Beta(0.3, 0.3). A size is systems x questions x trials. `python -m calibration.pass_family` makes the table
[pass_family_coverage.csv](pass_family_coverage.csv), with lower bounds and mean widths; seeds follow from the row.
The variance over trials was by quadrature then; with simulated trials, coverage on a benchmark was up to 2.4 points lower in 40 to
60 tensors of each of 13 cells, and 5 points higher for two kinds with k = 4.
"""

NOTES = {
    "## On a benchmark": (
        "No cell is below 93.5. Intervals are too wide where k is the number of trials and nearly "
        "all questions score 0,\nor nearly all score 1: the data hardly identify the variance."
    ),
    "## Over a population": (
        "No cell is below 93.5. Intervals of the same metrics as on a benchmark are too wide, for "
        "the same reason."
    ),
    "## Other metrics, and ragged trials": (
        "Ragged trials: a fifth of the third and later trials of each question is missing."
    ),
    "## Other truths": (
        "`strong`: abilities are higher by 2.5 logits, so that most questions are always right. "
        "`two kinds`: the chances of a\nsystem are 0.95 or 0.05, which is not one Beta "
        "distribution; with k equal to the number of trials, intervals\non a benchmark are too "
        "narrow. More trials than k help: compare k = 2 with k = 4."
    ),
    "## The posterior mean at fixed truths": (
        "The posterior mean is biased at these truths: their chances are far from uniform, and "
        "four trials do not outweigh the\nuniform prior."
    ),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, simulate and write the table and the page."""
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
