"""Sample every model factory on real data and write how well that went: docs/sampling.csv.

    python benchmarks/convergence.py                        # every factory and data set
    python benchmarks/convergence.py --factories rasch,irt_3pl --data evalperf

Each row is one call of ``bayesrank.rank(data, method, backend="nuts")`` with 4 x 1000 draws and the
default sampler. Rows that are not measured again keep what the table has. The real data sets are
read from the folder that the tests read too.
"""

import single_thread  # noqa: F401

# isort: split

import argparse
import csv
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from arviz_stats.sampling_diagnostics import ess, rhat
from measuring import ignore_warnings

from bayesrank import METHODS, Responses, rank
from bayesrank.datasets import load_olympiad
from bayesrank.inference.run import Run

REPOSITORY = Path(__file__).parents[1]
TABLE = REPOSITORY / "docs" / "sampling.csv"
SHARED = Path(os.environ.get("BAYESRANK_SHARED", REPOSITORY.parent / "shared"))

TIMES = {"assume_time_axis": True}

# Options where the defaults of the factory are not what the name alone means: published
# configurations of the same name, and variants that are models of their own.
VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "rao_kupper": {"rao_kupper": {"tie_strength": None}},
    "rasch_mml": {"rasch_mml": {"ability_mean": None, "ability_sd": None}},
    "dynamic_irt": {
        "dynamic_irt linear": {"variant": "linear"},
        "dynamic_irt growth": {"variant": "growth", **TIMES},
        "dynamic_irt state_space": {"variant": "state_space", **TIMES},
    },
}
MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    label: (name, options)
    for name, row in METHODS.items()
    if "nuts" in row.backends
    for label, options in VARIANTS.get(name, {name: {}}).items()
}

COLUMNS = (
    "data",
    "model",
    "options",
    "free parameters",
    "R-hat",
    "R-hat of",
    "bulk ESS",
    "bulk ESS of",
    "divergences",
    "steps per draw",
    "seed",
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--factories", default=",".join(MODELS), help="separated by commas")
    parser.add_argument("--data", default=",".join(DATA), help="separated by commas")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("--table", type=Path, default=TABLE, help="default %(default)s")
    options = parser.parse_args(arguments)
    ignore_warnings()
    rows = _read(options.table)
    for name in options.data.split(","):
        data = DATA[name]()
        for label in options.factories.split(","):
            start = time.perf_counter()
            row = measure(data, label, options.seed)
            print(name, *row.values(), f"{time.perf_counter() - start:.0f} s", flush=True)
            rows[name, label] = {"data": name, **row}
            _write(options.table, rows)


def measure(data: Responses, label: str, seed: int) -> dict[str, Any]:
    """Sample one model on one data set and return its row of the table."""
    method, options = MODELS[label]
    tree = rank(data, method, backend="nuts", random_seed=seed, **options)
    posterior = tree["posterior"].to_dataset()[_free_parameters(method, data, options)]
    statistics = tree["sample_stats"].to_dataset()
    largest, least = rhat(posterior).max(), ess(posterior, method="bulk").min()
    worst_rhat = max(posterior, key=lambda name: float(largest[name]))
    worst_ess = min(posterior, key=lambda name: float(least[name]))
    return {
        "model": label,
        "options": ", ".join(f"{name}={value!r}" for name, value in options.items()),
        "free parameters": sum(v[0, 0].size for v in posterior.values()),
        "R-hat": f"{float(largest[worst_rhat]):.4f}",
        "R-hat of": worst_rhat,
        "bulk ESS": round(float(least[worst_ess])),
        "bulk ESS of": worst_ess,
        "divergences": int(statistics["diverging"].sum()),
        "steps per draw": f"{float(statistics['n_steps'].mean()):.1f}",
        "seed": seed,
    }


def _free_parameters(method: str, data: Responses, options: Mapping[str, Any]) -> list[str]:
    row = METHODS[method]
    run = Run(
        method=row,
        data=data,
        backend="nuts",
        target="benchmark",
        prior=row.default_prior,
        draws=1,
        seed=np.random.SeedSequence(0),
        options=options,
    )
    return [v.name for v in run.build_model().free_RVs]


def _load(name: str) -> Responses:
    with np.load(SHARED / "data" / f"{name}.npz", allow_pickle=False) as stored:
        return Responses(
            stored["R"], systems=stored["models"].tolist(), questions=stored["questions"].tolist()
        )


DATA: Mapping[str, Callable[[], Responses]] = {
    "olympiad": load_olympiad,
    "misguided_attention": lambda: _load("misguided_attention"),
    "evalperf": lambda: _load("evalperf"),
}


def _read(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {(row["data"], row["model"]): row for row in csv.DictReader(file)}


def _write(path: Path, rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        table: Any = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(
            rows[name, label] for name in DATA for label in MODELS if (name, label) in rows
        )


if __name__ == "__main__":
    main()
