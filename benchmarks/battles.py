"""Arenas: from the votes in a file to a leaderboard, with peers where they are installed.

    python -m benchmarks.battles [--battles N] [--peers PYTHON]

Another process writes N votes of 500 systems by as many judges as a fifth of them to Parquet; this
one measures reading, point estimates, intervals over judges and style control with ten covariates.
`--peers` names another Python with evalica, arena-rank and choix, which rank the same votes, each
in a process of its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bayesrank import Battles, rank, read_battles

N_SYSTEMS = 500
N_COVARIATES = 10
FORMULA = " + ".join(["1", *(f"x{k}" for k in range(N_COVARIATES))])

PEERS = ("evalica", "arena-rank", "choix")


def write_votes(path: Path, n: int) -> None:
    """Draw votes by Davidson's model with covariates and write them."""
    rng = np.random.default_rng(0)
    names = np.array([f"model-{k}" for k in range(N_SYSTEMS)])
    score = rng.normal(size=N_SYSTEMS)
    first = rng.integers(N_SYSTEMS, size=n)
    second = (first + 1 + rng.integers(N_SYSTEMS - 1, size=n)) % N_SYSTEMS
    x = rng.normal(size=(n, N_COVARIATES))
    d = score[first] - score[second] + 0.1 * x[:, 0] + 0.05
    odds = np.stack([np.exp(d / 2), np.exp(-d / 2), np.full(n, 0.7)])
    drawn = (rng.random(n) > np.cumsum(odds / odds.sum(axis=0), axis=0)).sum(axis=0)
    columns: dict[str, Any] = {
        "model_a": names[first],
        "model_b": names[second],
        "winner": np.array(["model_a", "model_b", "tie"])[drawn],
        "judge": rng.integers(max(n // 5, 1), size=n).astype(str),
        "tstamp": 1.7e9 + np.sort(rng.random(n)) * 1e7,
    }
    for k in range(N_COVARIATES):
        columns |= {f"x{k}_a": x[:, k], f"x{k}_b": np.zeros(n)}
    pd.DataFrame(columns).to_parquet(path, row_group_size=1 << 20)


def clock(name: str, call: Callable[[], Any]) -> Any:
    """Run something once, and print how long it took and the most memory so far."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{name:<58}{wall:8.2f} s{cpu:8.2f} s{memory:8.2f} GB", flush=True)
    return result


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Arenas: from votes to a leaderboard.")
    parser.add_argument("--battles", type=int, default=1_000_000)
    parser.add_argument("--peers", help="a Python with evalica, arena-rank and choix")
    parser.add_argument("--write", type=Path, help="only write the votes, to this file")
    arguments = parser.parse_args()
    if arguments.write:
        write_votes(arguments.write, arguments.battles)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.parquet"
        # Elsewhere, so that the memory is that of ranking alone.
        here = [sys.executable, "-m", "benchmarks.battles", "--battles", str(arguments.battles)]
        subprocess.run([*here, "--write", str(path)], check=True)
        rank(Battles(["a", "b"], ["b", "a"], ["a", "tie"]), draws=10)  # imports
        print(f"{arguments.battles:,} battles{'':<46}{'wall':>10}{'processor':>10}{'memory':>10}")
        data = clock("read", lambda: read_battles(path))
        clock("davidson, estimate", lambda: rank(data, "davidson", draws=0))
        clock("bradley_terry, estimate", lambda: rank(data, "bradley_terry", draws=0))
        for unit in ("battle", "judge"):
            name = f"davidson, posterior and leaderboard, unit {unit}"
            clock(name, lambda unit=unit: rank(data, "davidson", unit=unit))
        clock("elo, estimate", lambda: rank(data, "elo", draws=0))
        name = "davidson, ten covariates and position, unit judge"
        clock(name, lambda: rank(data, "davidson", formula=FORMULA))
        if arguments.peers:
            for peer in PEERS:
                _print_peer(arguments.peers, str(path), peer)


def _print_peer(python: str, path: str, peer: str) -> None:
    """Run a peer in its own process, and print what it took."""
    script = str(Path(__file__).with_name("battle_peers.py"))
    command = [python, script, path, peer]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for name, seconds, cpu, memory in json.loads(found.splitlines()[-1]):
        shown = f"{seconds:8.2f} s" if isinstance(seconds, float) else f"  {seconds}"
        print(f"{name:<58}{shown}{cpu:8.2f} s{memory:8.2f} GB", flush=True)


if __name__ == "__main__":
    main()
