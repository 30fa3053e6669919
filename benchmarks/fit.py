"""Time every likelihood-based configuration from outcomes to point estimate, beside the peer.

python benchmarks/fit.py                         # the three sizes, warm
python benchmarks/fit.py --cases small --seconds 0.2 --limit 5
python benchmarks/fit.py --cases 20,30,80 --presets rasch,rasch_map
python benchmarks/fit.py --cold                  # first call of a fresh process
python benchmarks/fit.py --refits 1000           # bootstrap refits
"""

import single_thread  # noqa: F401

# isort: split

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from configurations import (
    NUTS_DRAWS,
    PEER_CALLS,
    has_peer,
    is_likelihood,
    peer_estimate,
    point_estimate,
    ranking,
    select,
)
from measuring import (
    CLOCKS,
    Remembered,
    Timing,
    bounded_ratio,
    ignore_warnings,
    interleave,
    print_load,
    print_machine,
    print_row,
)
from numpy.typing import NDArray
from simulated import CASES, Shape, parse_case, rasch

from bayesrank import PRESETS, Responses
from bayesrank.counting import compare_trials
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.item_models import fit_rasch
from bayesrank.inference.fits.pairs import bradley_terry, fit_pairs
from bayesrank.inference.resample.weights import resample
from bayesrank.priors import NormalPrior
from bayesrank.results.agreement import kendall_tau_b

# How many times faster than the peer each has to be at the small size; 1 at every other size.
BARS = {
    "bradley_terry": 30,
    "bradley_terry_map": 30,
    "bradley_terry_davidson": 30,
    "bradley_terry_davidson_map": 30,
    "rao_kupper": 30,
    "rao_kupper_map": 30,
    "plackett_luce": 30,
    "plackett_luce_map": 30,
    "bradley_terry_luce": 500,
    "bradley_terry_luce_map": 500,
    "rasch": 10,
    "rasch_map": 3,
    "rasch_2pl": 3,
    "rasch_2pl_map": 3,
    "rasch_3pl": 3,
    "rasch_3pl_map": 3,
    "dynamic_irt_growth": 10,
    "dynamic_irt_state_space": 3,
}

# Davidson-Luce has bars in milliseconds, since the peer needs more than a minute.
DAVIDSON_LUCE = ("davidson_luce", "davidson_luce_map")
DAVIDSON_LUCE_SHAPE: Shape = (50, 30, 80)
MILLISECONDS = {CASES["small"]: 10.0, DAVIDSON_LUCE_SHAPE: 50.0}

COLUMNS = ("least / median ms (calls)", "estimate", "rank()", "scorio", "x", "x rank()", "bar")
WIDTHS = (28, 24, 24, 24, 8, 8, 8, 9, 6)

OUR_FIRST_CALL = """
from bayesrank import rank
rank(outcomes, {method!r}, backend={backend!r}, prior={prior!r}, draws={draws})
"""
PEER_FIRST_CALL = """
import scorio.rank
scorio.rank.{function}(outcomes, **{options!r})
"""
FIRST_CALL = """
import single_thread
import time
from simulated import rasch
outcomes, earlier = rasch({shape}, {seed})
start = time.perf_counter()
{call}
print(time.perf_counter() - start)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    ignore_warnings()
    print_machine()
    if not has_peer():
        print("scorio is not installed, so its columns stay empty\n")
    names = select(options.presets, is_likelihood)
    if options.cold:
        time_first_calls(names, options.cases[0], seed=options.seed, limit=options.limit)
    elif options.refits:
        time_refits(
            options.refits,
            options.cases[0],
            seed=options.seed,
            seconds=options.seconds,
            clock=options.clock,
        )
    else:
        settings = {name: getattr(options, name) for name in ("seconds", "limit", "clock", "seed")}
        for shape in options.cases:
            time_estimates(names, shape, with_peer=has_peer(), **settings)
        many = [name for name in names if name in DAVIDSON_LUCE]
        if many and not options.without_l50:
            time_estimates(many, DAVIDSON_LUCE_SHAPE, with_peer=False, **settings)
    print_load()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cases",
        nargs="+",
        type=parse_case,
        default=list(CASES.values()),
        metavar="CASE",
        help=f"sizes: {', '.join(CASES)} or L,M,N (default: all three)",
    )
    parser.add_argument("--presets", default="", help="separated by commas (default: all)")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="time for each call of each side (default 1)"
    )
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds that break a call off (default 60)"
    )
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="wall",
        help="processor: the time of this process alone, for a busy machine (default wall)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the simulated data (default 0)")
    parser.add_argument("--cold", action="store_true", help="time first calls of fresh processes")
    parser.add_argument(
        "--refits", type=int, default=0, metavar="N", help="time N bootstrap refits instead"
    )
    parser.add_argument(
        "--without-l50", action="store_true", help="leave out Davidson-Luce with 50 systems"
    )
    return parser


def time_estimates(
    names: Sequence[str],
    shape: Shape,
    *,
    with_peer: bool,
    seconds: float,
    limit: float,
    clock: str,
    seed: int,
) -> None:
    """Print a table of warm times at one size."""
    outcomes, earlier = rasch(shape, seed)
    print(f"Warm, (system, question, trial) = {shape}")
    print_row([*COLUMNS, "max diff", "tau-b"], WIDTHS)
    for name in names:
        preset = PRESETS[name]
        estimate = Remembered(point_estimate(preset, outcomes, earlier))
        calls: dict[str, Callable[[], object]] = {
            "estimate": estimate,
            "rank": ranking(preset, outcomes, earlier, draws=0),
        }
        peer = peer_estimate(name, outcomes, earlier) if with_peer else None
        remembered = Remembered(peer) if peer else None
        if remembered:
            calls["peer"] = remembered
        timings = interleave(calls, seconds=seconds, limit=limit, clock=clock)
        peer_time = timings.get("peer", Timing((), "-"))
        faster, times = bounded_ratio(peer_time, timings["estimate"])
        print_row(
            [
                name,
                timings["estimate"],
                timings["rank"],
                peer_time,
                faster,
                bounded_ratio(peer_time, timings["rank"])[0],
                _bar(name, shape, times, timings["estimate"]),
                *_agreement(estimate.result, remembered.result if remembered else None),
            ],
            WIDTHS,
        )
    print()


def _bar(name: str, shape: Shape, times: float, estimate: Timing) -> str:
    """Return the bar of a configuration, with "!" where it is missed."""
    if name in DAVIDSON_LUCE and shape in MILLISECONDS:
        bar = MILLISECONDS[shape]
        return f"{bar:g} ms" + "!" * (1e3 * estimate.median > bar)
    bar = BARS.get(name, 1) if shape == CASES["small"] else 1
    return f"{bar}" + "!" * (times < bar)


def _agreement(ours: NDArray[np.float64] | None, theirs: NDArray[np.float64] | None) -> list[str]:
    """Return the largest difference of centred scores and the agreement of the orders."""
    if ours is None or theirs is None:
        return ["", ""]
    difference = np.abs((ours - ours.mean()) - (theirs - theirs.mean())).max()
    return [f"{difference:.1e}", f"{float(kendall_tau_b(ours, theirs)):.3f}"]


def time_first_calls(names: Sequence[str], shape: Shape, *, seed: int, limit: float) -> None:
    """Print what the first call takes in a process of its own, imports of the library included."""
    widths = (28, 20, 20)
    print(f"First call of a process in s, imports included, caches on disk warm, {shape}")
    print_row(["", "rank(draws=0)", "scorio"], widths)
    for name in names:
        preset = PRESETS[name]
        ours = OUR_FIRST_CALL.format(
            method=name,
            backend=preset.backend,
            prior=preset.prior,
            draws=NUTS_DRAWS if preset.backend == "nuts" else 0,
        )
        entry = PEER_CALLS.get(name) if has_peer() else None
        theirs = entry and PEER_FIRST_CALL.format(
            function=entry.function, options=dict(entry.options)
        )
        cells = [_first_call(call, shape, seed, limit) if call else "-" for call in (ours, theirs)]
        print_row([name, *cells], widths)
    print()


def _first_call(call: str, shape: Shape, seed: int, limit: float) -> str:
    """Run a call in a fresh process and return the seconds that it took, or why it did not."""
    code = FIRST_CALL.format(shape=shape, seed=seed, call=call)
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return f"over {limit:g} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1][:60]
    return f"{float(done.stdout):.2f}"


def time_refits(n_refits: int, shape: Shape, *, seed: int, seconds: float, clock: str) -> None:
    """Print the time of refits to resampled trials, from the data, resampling included.

    By the Bayesian bootstrap, whose weights are exponential; and with the weights of
    :mod:`bayesrank.inference.resample.weights`, which are calibrated and take longer to draw.
    """
    data = Responses(rasch(shape, seed)[0])
    right = data.outcomes.transpose(1, 2, 0).astype(np.float64)

    def weights() -> NDArray[np.float64]:
        drawn = np.random.default_rng(seed).standard_exponential((n_refits, *shape[1:]))
        return drawn / drawn.mean(axis=-1, keepdims=True)

    def refit_bradley_terry_map() -> list[Fit]:
        return [
            fit_pairs(
                bradley_terry(),
                *compare_trials(data.levels, weights()),
                prior=NormalPrior(0.0, 1.0),
            )
        ]

    def refit_rasch() -> list[Fit]:
        correct = (weights().swapaxes(0, 1) @ right).transpose(1, 2, 0)
        return [fit_rasch(correct, float(shape[2]))]

    def resampled(kind: str) -> Iterator[tuple[NDArray[np.float64], ...]]:
        rng = np.random.default_rng(seed)
        return resample(data, kind, target="benchmark", smooth=True, size=n_refits, rng=rng)

    print(f"{n_refits} bootstrap refits, resampling included, {shape}")
    calls = {
        "bradley_terry_map (bar 150 ms per 1000)": Remembered(refit_bradley_terry_map),
        "rasch (bar 600 ms per 1000)": Remembered(refit_rasch),
        "bradley_terry_map, calibrated weights": Remembered(
            lambda: [
                fit_pairs(bradley_terry(), *pairs, prior=NormalPrior(0.0, 1.0))
                for pairs in resampled("pairs")
            ]
        ),
        "rasch, calibrated weights": Remembered(
            lambda: [fit_rasch(*counts) for counts in resampled("binary")]
        ),
    }
    for name, timing in interleave(calls, seconds=seconds, limit=60.0, clock=clock).items():
        fits = calls[name].result
        converged = sum(int(fit.converged.sum()) for fit in fits)
        print_row([name, timing, f"{converged} converged"], (42, 24, 16))
    print()


if __name__ == "__main__":
    main()
