"""Measure how often intervals hold the truth, over simulated tensors; resumable.

    python -m calibration.coverage --simulations 200 --methods bayes voting
    python -m calibration.coverage --tables-only

A piece of work is a chunk of 20 tensors of a setting (design, target, generator), ranked by all
configurations that miss it. Its seeds follow from the setting and the chunk, and its results are
lines of a file, so a run that was killed goes on where it was, with nothing lost and nothing
computed twice, on any machine that has the file.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path
from typing import get_args

from pytensor.configdefaults import config
from threadpoolctl import threadpool_limits

from calibration.cells import CHUNK, Cell, Setting, measure
from calibration.configurations import Configuration, configurations
from calibration.store import COVERAGE, Store
from calibration.tables import publish
from calibration.worlds import DESIGNS, Generator, Prior, Target

HERE = Path(__file__).parent

# Tensors per cell of the full run, and of slow cells: NUTS, sequential ratings, and wherever a
# posterior takes longer than a quarter of a second.
SIMULATIONS, SLOW_SIMULATIONS, SLOW_SECONDS = 4000, 400, 0.25


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, simulate what is missing and write the tables."""
    options = _parse(arguments)
    store = Store(options.results / COVERAGE)
    if not options.tables_only:
        _run(options, _select(options), store)
        store.merge()
    publish(options.results, options.docs)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--simulations", type=int, help="tensors per cell (4000; 400 where slow)")
    parser.add_argument("--methods", nargs="+", help="configurations, methods or families")
    parser.add_argument("--designs", nargs="+", choices=[str(design) for design in DESIGNS])
    parser.add_argument("--targets", nargs="+", choices=get_args(Target))
    parser.add_argument("--generators", nargs="+", choices=get_args(Generator))
    parser.add_argument("--minutes", type=float, help="start nothing new after this time")
    parser.add_argument(
        "--slowest",
        type=float,
        default=float("inf"),
        help="leave out cells where a tensor takes more seconds than this",
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--docs", type=Path, default=HERE.parent / "docs")
    parser.add_argument("--tables-only", action="store_true", help="simulate nothing")
    return parser.parse_args(arguments)


def _select(options: argparse.Namespace) -> list[Cell]:
    """Return the cells that were asked for."""
    chosen = configurations()
    if options.methods:
        chosen = [one for one in chosen if _names(one).intersection(options.methods)]
        unknown = set(options.methods).difference(*map(_names, chosen))
        if unknown:
            raise SystemExit(f"methods must be in the catalog; got {', '.join(sorted(unknown))}")
    return [
        Cell(one, Setting(design, target, generator))
        for design in DESIGNS
        for target in options.targets or get_args(Target)
        for generator in options.generators or get_args(Generator)
        if not options.designs or str(design) in options.designs
        for one in chosen
        if one.has(target, generator, design.n_trials)
    ]


def _names(one: Configuration) -> set[str]:
    return {one.name, one.method.name, one.method.family}


def _run(options: argparse.Namespace, cells: Sequence[Cell], store: Store) -> None:
    """Simulate the chunks that are missing, first chunks first."""
    end = float("inf") if options.minutes is None else time.monotonic() + 60 * options.minutes
    too_slow: set[tuple[str, ...]] = set()
    todo = _missing(options, cells, store, too_slow)
    running: set[Future] = set()
    # Spawned processes share no state of NumPy, Numba or PyTensor.
    with ProcessPoolExecutor(options.workers, get_context("spawn"), _begin_worker) as pool:
        while True:
            # One waiting for each process keeps it busy without looking far ahead.
            while len(running) < 2 * options.workers and time.monotonic() < end:
                piece = next(todo, None)
                if piece is None:
                    break
                running.add(pool.submit(measure, *piece, options.slowest))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                rows = future.result()
                # A chunk that was given up may be wanted by a run with more patience.
                kept = [row for row in rows if row["simulations"] or row["undefined"]]
                too_slow.update(tuple(row["key"]) for row in rows if row not in kept)
                store.add(*kept)
                setting = " ".join(rows[0]["key"][1:])
                print(setting, rows[0]["chunk"], f"{len(kept)} of {len(rows)}", flush=True)


def _missing(
    options: argparse.Namespace, cells: Sequence[Cell], store: Store, too_slow: Set[tuple[str, ...]]
) -> Iterator[tuple[list[Cell], int]]:
    """Yield cells that share their tensors, and chunks of which they have no result."""
    most = SIMULATIONS if options.simulations is None else options.simulations
    for chunk in range(-(-most // CHUNK)):
        for _, group in groupby(cells, key=lambda cell: cell.setting):
            # Priors differ, and the truths with them.
            together: defaultdict[Prior | None, list[Cell]] = defaultdict(list)
            for cell in group:
                if cell.key not in too_slow and _is_wanted(cell, chunk, store):
                    together[cell.prior].append(cell)
            for some in together.values():
                yield some, chunk


def _is_wanted(cell: Cell, chunk: int, store: Store) -> bool:
    """Return whether a chunk of a cell is missing from the table."""
    if store.has(cell.key, chunk):
        return False
    first = store.rows.get((*cell.key, 0))
    if first is None:
        return True
    slow = cell.configuration.is_slow or first["seconds"] > SLOW_SECONDS
    return bool(first["simulations"]) and not (slow and chunk * CHUNK >= SLOW_SIMULATIONS)


def _begin_worker() -> None:
    # Threads of linear algebra make small matrices slower, and the workers would fight over them.
    threadpool_limits(1)
    # Where each node of a graph was made takes a tenth of the time of a fit to note.
    config.traceback__limit = 0


if __name__ == "__main__":
    main()
