"""What other packages take for the votes that `benchmarks.battles` wrote; runs in their Python.

    PYTHON benchmarks/battle_peers.py votes.parquet evalica|arena-rank|choix

Prints JSON: lists of name, seconds, processor seconds and peak memory so far in GB. Only columns
that a package needs are read, with pandas; "read" goes up to the input that it takes. Calls of
evalica and estimates of arena-rank are timed the second time, when what they compile is compiled.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SIDES = ["model_a", "model_b", "winner"]
SHARES = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5}
found: list[tuple[str, float | str, float, float]] = []


def clock(name: str, call: Callable[[], Any], *, repeat: bool = True) -> Any:
    """Run something, and note how long it took and the most memory so far."""
    result = None
    try:
        if repeat:
            call()
        start, cpu = time.perf_counter(), time.process_time()
        result = call()
        seconds: float | str = time.perf_counter() - start
    except Exception as error:  # a peer that fails is a result
        seconds, cpu = repr(error)[:200], time.process_time()
    found.append((name, seconds, time.process_time() - cpu, peak_memory()))
    return result


def peak_memory() -> float:
    """Return the most memory that this process had, in GB; Linux knows it."""
    # Not ru_maxrss, which begins with that of the process that started this one.
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(float(line.split()[1]) / 1e6 for line in lines if line.startswith("VmHWM"))


def evalica(path: str) -> None:
    """Time lists of names and winners, and two models."""
    from evalica import Winner, bradley_terry, elo, newman

    words = {"model_a": Winner.X, "model_b": Winner.Y, "tie": Winner.Draw}

    def read() -> tuple[list[str], list[str], list[Any]]:
        frame = pd.read_parquet(path, columns=SIDES)
        return (
            frame["model_a"].tolist(),
            frame["model_b"].tolist(),
            frame["winner"].map(words).tolist(),
        )

    votes = clock("evalica, read", read, repeat=False)
    clock("evalica, bradley_terry", lambda: bradley_terry(*votes))
    clock("evalica, newman", lambda: newman(*votes))
    clock("evalica, elo", lambda: elo(*votes))


def arena_rank(path: str) -> None:
    """Time ratings with sandwich intervals, without and with ten covariates."""
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
    from arena_rank.utils.data_utils import ContextualPairDataset, PairDataset

    def read() -> Any:
        frame = pd.read_parquet(path, columns=SIDES)
        return PairDataset.from_pandas(frame, outcome_map=SHARES)

    def read_covariates() -> Any:
        names = [f"x{k}" for k in range(10)]
        both = [f"{name}_{side}" for name in names for side in "ab"]
        frame = pd.read_parquet(path, columns=SIDES + both)
        values = {name: frame[f"{name}_a"] - frame[f"{name}_b"] for name in names}
        return ContextualPairDataset.from_pandas(
            frame[SIDES].assign(**values),
            feature_cols=names,
            reweighted=False,
            outcome_map=SHARES.get,
        )

    data = clock("arena-rank, read", read, repeat=False)
    time_arena_rank("arena-rank", BradleyTerry(data.n_competitors), data)
    data = clock("arena-rank, read with ten covariates", read_covariates, repeat=False)
    time_arena_rank(
        "arena-rank, ten covariates", ContextualBradleyTerry(data.n_competitors, 10), data
    )


def time_arena_rank(name: str, model: Any, data: Any) -> None:
    """Time the estimate, and the estimate with intervals, of a model that keeps its code."""
    start = model.params

    def anew() -> Any:
        model.params, model.fitted = start, False
        return model

    clock(f"{name}, estimate", lambda: anew().fit(data))
    # Once: what it compiles besides takes little.
    clock(
        f"{name}, ratings and intervals",
        lambda: anew().compute_ratings_and_cis(data),
        repeat=False,
    )


def choix(path: str) -> None:
    """Time one pass of spectral ranking, and the estimate of maximum likelihood by iterating it."""
    from choix import ilsr_pairwise, lsr_pairwise

    def read() -> tuple[int, list[tuple[int, int]]]:
        frame = pd.read_parquet(path, columns=SIDES)
        frame = frame[frame["winner"] != "tie"]
        n = len(frame)
        codes, names = pd.factorize(pd.concat([frame["model_a"], frame["model_b"]]))
        left, right = codes[:n], codes[n:]
        won = (frame["winner"] == "model_a").to_numpy()
        pairs = np.where(won, (left, right), (right, left))
        return len(names), list(zip(*pairs.tolist(), strict=True))

    votes = clock("choix, read", read, repeat=False)
    clock("choix, lsr_pairwise", lambda: lsr_pairwise(*votes), repeat=False)
    clock("choix, ilsr_pairwise", lambda: ilsr_pairwise(*votes), repeat=False)


if __name__ == "__main__":
    {"evalica": evalica, "arena-rank": arena_rank, "choix": choix}[sys.argv[2]](sys.argv[1])
    print(json.dumps(found))
