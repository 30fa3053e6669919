"""Time studies: stability of every configuration over 80 draws, and convergence@n.

    python benchmarks/studies.py                     # every study, one process per core
    python benchmarks/studies.py --slowest 12        # and which configurations take longest
    python benchmarks/studies.py --studies convergence,numpy

The data are the bundled example, of 20 systems, 120 questions and 80 trials; convergence@n, by
bayes and by the pass@k family, is also timed on one of its benchmarks, of 30 questions, and on
simulated systems that are far apart, whose replicates are ranked after every trial; pools are of
that benchmark. Wall time of one run, and the processor time of this process and of those it
started.
"""

import single_thread  # noqa: F401

# isort: split

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from measuring import ignore_warnings, print_machine

from bayesrank import PRESETS, Responses, studies
from bayesrank.datasets import load_olympiad
from bayesrank.method import LIKELIHOOD_BACKENDS
from bayesrank.studies.configurations import PUBLISHED, choose_methods
from bayesrank.studies.scoring import score_rank
from bayesrank.studies.subsets import draw_trials

NUMPY = tuple(name for name in PUBLISHED if PRESETS[name].backend not in LIKELIHOOD_BACKENDS)

type Calls = list[tuple[str, Callable[[], Any]]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", default=",".join(STUDIES), help="default %(default)s")
    parser.add_argument("--draws", type=int, default=80, help="default %(default)s")
    parser.add_argument("--replicates", type=int, default=100_000, help="default %(default)s")
    parser.add_argument("--pools", type=int, default=1000, help="default %(default)s")
    parser.add_argument("--workers", type=int, default=-1, help="default one per core")
    parser.add_argument("--slowest", type=int, default=0, help="list so many configurations")
    options = parser.parse_args(arguments)
    ignore_warnings()
    print_machine()
    for name in options.studies.split(","):
        for label, call in STUDIES[name](options):
            wall, processor = _measure(call)
            print(f"{label:<78} {wall:9.2f} s, {processor:9.2f} s of processor time", flush=True)
    if options.slowest:
        _print_slowest(options.slowest)


def _convergence(options: argparse.Namespace) -> Calls:
    apart = studies.simulate.biased_coins(np.linspace(0.02, 0.98, 20), n_questions=30, n_trials=80)
    sources = {
        "AIME'25": load_olympiad("AIME'25"),
        "all benchmarks": load_olympiad(),
        "far apart": Responses(apart["outcomes"]),
    }
    return [
        _converge(options.replicates, name, data, method, bootstrap)
        for name, data in sources.items()
        for method in ("bayes", "pass_at_k(k=8)", "g_pass_at_k_tau(k=8, tau=0.5)")
        for bootstrap in ("columns", "rows")
    ]


def _converge(
    replicates: int, name: str, data: Responses, method: str, bootstrap: str
) -> tuple[str, Callable[[], Any]]:
    settings: dict[str, Any] = {"bootstrap": bootstrap}
    studies.convergence(data, method, replicates=100, **settings)  # compiles
    return (
        f"convergence@n, {replicates} replicates, {name}, {method}, {bootstrap}",
        lambda: studies.convergence(data, method, replicates=replicates, **settings),
    )


def _pools(options: argparse.Namespace) -> Calls:
    data = load_olympiad("HMMT'25")
    return [
        (
            f"{options.pools} pools of 5, 10 and 15, {label}, {options.draws} draws",
            lambda methods=methods: studies.model_pools(
                data, methods, pools=options.pools, draws=options.draws
            ),
        )
        for label, methods in (("avg", "avg"), ("all that score at once", None))
    ]


def _numpy(options: argparse.Namespace) -> Calls:
    names = [name for name in choose_methods(load_olympiad(), None, n=1) if name in NUMPY]
    return [_stability(options, names, n=1, workers=1)]


def _all(options: argparse.Namespace) -> Calls:
    # With two trials, so that the three configurations that need a second one are among them.
    return [_stability(options, list(PUBLISHED), n=2, workers=options.workers)]


STUDIES: Mapping[str, Callable[[argparse.Namespace], Calls]] = {
    "convergence": _convergence,
    "numpy": _numpy,
    "pools": _pools,
    "all": _all,
}


def _stability(
    options: argparse.Namespace, names: Sequence[str], *, n: int, workers: int
) -> tuple[str, Callable[[], Any]]:
    data = load_olympiad()
    processes = os.cpu_count() if workers == -1 else workers
    return (
        f"stability of {len(names)}, n={n}, {options.draws} draws, {processes} processes",
        lambda: studies.stability(data, names, n=n, draws=options.draws, workers=workers),
    )


def _print_slowest(number: int) -> None:
    """Print the configurations that take longest on two draws, after one that compiles."""
    data, seconds = load_olympiad(), dict.fromkeys(PUBLISHED, 0.0)
    for seed in range(3):
        few = draw_trials(data, 2, "subset", np.random.default_rng(seed))
        for name in PUBLISHED:
            start = time.process_time()
            score_rank(few, name, random_seed=seed)
            if seed:
                seconds[name] += (time.process_time() - start) / 2
    for name in sorted(seconds, key=lambda name: -seconds[name])[:number]:
        print(f"  {name:<45} {1e3 * seconds[name]:8.1f} ms a draw, of processor time")


def _measure(call: Callable[[], Any]) -> tuple[float, float]:
    """Return wall time and processor time, that of finished processes included."""
    start, before = time.perf_counter(), _processor_seconds()
    call()
    wall = time.perf_counter() - start
    _stop_workers()
    return wall, _processor_seconds() - before


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _stop_workers() -> None:
    """End the processes that joblib keeps, whose time counts only then."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


if __name__ == "__main__":
    main()
