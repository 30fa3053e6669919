"""Time the configurations without a likelihood beside the peer, and all 72 with posteriors.

python benchmarks/numpy_layer.py                    # point estimates at two sizes
python benchmarks/numpy_layer.py --headline         # 72 posteriors against 72 point estimates
python benchmarks/numpy_layer.py --others           # RankLLM and Kemeny at scale
"""

import single_thread  # noqa: F401

# isort: split

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np
from configurations import (
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
    ignore_warnings,
    interleave,
    print_load,
    print_machine,
    print_row,
    ratio,
)
from simulated import CASES, Shape, nearly_transitive, parse_case, rasch, rasch_chances

from bayesrank import PRESETS, Responses, rank
from bayesrank.inference.run import N_CHAINS
from bayesrank.methods.bipartite import rankllm
from bayesrank.methods.kemeny import kemeny_young
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.studies.configurations import PUBLISHED

# The peer updates ratings one event at a time in Python, so they are compared apart.
RATINGS = ("elo", "glicko", "trueskill")
RATING_BAR, ALL_BAR = 50.0, 10.0

DRAWS = 2000
RANKLLM_SHAPE: Shape = (30, 35_000, 1)
# With 8 trials the largest cycle of majorities has 4 to 10 systems.
KEMENY_SHAPE: Shape = (20, 30, 8)
N_ELECTIONS = 10

WIDTHS = (46, 24, 24, 24, 9, 9, 7)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    ignore_warnings()
    print_machine()
    if not has_peer():
        print("scorio is not installed, so its columns stay empty\n")
    if options.headline:
        time_all(select(options.presets, lambda preset: preset.name in PUBLISHED), options)
    elif options.others:
        time_others(options)
    else:
        for shape in options.cases:
            names = select(options.presets, lambda preset: not is_likelihood(preset))
            time_point_estimates(names, shape, options)
    print_load()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cases",
        nargs="+",
        type=parse_case,
        default=[CASES["small"], CASES["medium"]],
        metavar="CASE",
        help=f"sizes: {', '.join(CASES)} or L,M,N (default: small medium)",
    )
    parser.add_argument("--presets", default="", help="separated by commas (default: all)")
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="time for each call of each side (default 0.5)"
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
    parser.add_argument(
        "--draws", type=int, default=DRAWS, help=f"of each posterior (default {DRAWS})"
    )
    parser.add_argument(
        "--headline",
        action="store_true",
        help="all configurations with posteriors against the peer's point estimates",
    )
    parser.add_argument("--others", action="store_true", help="RankLLM and Kemeny at scale")
    return parser


def time_point_estimates(names: Sequence[str], shape: Shape, options: argparse.Namespace) -> None:
    """Print a table of warm times at one size, and how much faster in geometric mean."""
    outcomes, earlier = rasch(shape, options.seed)
    print(f"Warm, (system, question, trial) = {shape}, least / median ms (calls)")
    print_row(["", "estimate", "rank()", "scorio", "x", "x rank()", "tau-b"], WIDTHS)
    times: dict[str, tuple[float, float]] = {}
    for name in names:
        preset = PRESETS[name]
        estimate = Remembered(point_estimate(preset, outcomes, earlier))
        calls: dict[str, Callable[[], object]] = {
            "estimate": estimate,
            "rank": ranking(preset, outcomes, earlier, draws=0),
        }
        peer = peer_estimate(name, outcomes, earlier)
        remembered = Remembered(peer) if peer else None
        if remembered:
            calls["peer"] = remembered
        timings = interleave(
            calls, seconds=options.seconds, limit=options.limit, clock=options.clock
        )
        theirs = timings.get("peer", Timing((), "-"))
        times[name] = ratio(theirs, timings["estimate"]), ratio(theirs, timings["rank"])
        agreement = ""
        if remembered and remembered.result is not None and estimate.result is not None:
            agreement = f"{float(kendall_tau_b(estimate.result, remembered.result)):.3f}"
        print_row(
            [
                name,
                timings["estimate"],
                timings["rank"],
                theirs,
                *(f"{value:.1f}" for value in times[name]),
                agreement,
            ],
            WIDTHS,
        )
    ratings = [name for name in times if PRESETS[name].method in RATINGS]
    others = [name for name in times if name not in ratings]
    _print_means(f"all (bar {ALL_BAR:g} in the mean)", list(times.values()))
    _print_means(f"ratings (bar {RATING_BAR:g})", [times[name] for name in ratings])
    _print_means("all but ratings", [times[name] for name in others])
    print()


def _print_means(title: str, ratios: Sequence[tuple[float, float]]) -> None:
    """Print the geometric mean and the least of the ratios, of the estimate and of rank()."""
    usable = [pair for pair in ratios if not any(map(math.isnan, pair))]
    if not usable:
        return
    means = [math.exp(np.log(column).mean()) for column in zip(*usable, strict=True)]
    least = [min(column) for column in zip(*usable, strict=True)]
    for word, values in (("geometric mean", means), ("least", least)):
        cells = [f"{word} of {title}", "", "", "", *(f"{value:.1f}" for value in values), ""]
        print_row(cells, WIDTHS)


def time_all(names: Sequence[str], options: argparse.Namespace) -> None:
    """Print the time of posteriors of all configurations, and of the peer's point estimates.

    A peer that raises has spent its time all the same; one that is broken off makes the sum a lower
    bound.
    """
    outcomes, earlier = rasch(options.cases[0], options.seed)
    draws = math.ceil(options.draws / N_CHAINS)
    print(f"{len(names)} configurations with {N_CHAINS * draws} draws each, {outcomes.shape}, warm")
    widths = (46, 24, 24)
    print_row(["least / median ms (calls)", "posterior", "scorio, point estimate"], widths)
    sums = {"posterior": 0.0, "peer": 0.0}
    broken_off = 0
    for name in names:
        calls: dict[str, Callable[[], object]] = {
            "posterior": ranking(PRESETS[name], outcomes, earlier, draws=draws)
        }
        peer = peer_estimate(name, outcomes, earlier)
        if peer is not None:
            calls["peer"] = peer
        timings = interleave(
            calls, seconds=options.seconds, limit=options.limit, clock=options.clock
        )
        for side, timing in timings.items():
            sums[side] += timing.median
            broken_off += side == "peer" and timing.broken_off
        print_row([name, timings["posterior"], timings.get("peer", "-")], widths)
    ours, theirs = (f"{total:.2f}" for total in sums.values())
    bound = "at least " if broken_off else ""
    print_row(["sum of medians in s", ours, bound + theirs], widths)
    print()


def time_others(options: argparse.Namespace) -> None:
    """Print what has a bar of its own in milliseconds."""
    rng = np.random.default_rng(options.seed)
    matrix = (rng.random(RANKLLM_SHAPE) < rasch_chances(RANKLLM_SHAPE, rng))[..., 0]
    right = matrix.astype(np.int8)
    scores = matrix.astype(np.float64)
    elections = [
        Responses(nearly_transitive(KEMENY_SHAPE, options.seed + i)).grades
        for i in range(N_ELECTIONS)
    ]
    calls: dict[str, Callable[[], object]] = {
        f"rankllm {RANKLLM_SHAPE[:2]}, int8 matrix (bar 10 ms)": lambda: rankllm(right),
        f"rankllm {RANKLLM_SHAPE[:2]}, float64 matrix": lambda: rankllm(scores),
        f"rank(rankllm) {RANKLLM_SHAPE[:2]}": lambda: rank(right, "rankllm", draws=0),
        f"{N_ELECTIONS} of kemeny_young {KEMENY_SHAPE} (bar 1000 ms)": lambda: [
            kemeny_young(grades) for grades in elections
        ],
    }
    print("least / median ms (calls)")
    for name, timing in interleave(
        calls, seconds=options.seconds, limit=options.limit, clock=options.clock
    ).items():
        print_row([name, timing], (58, 24))
    print()


if __name__ == "__main__":
    main()
