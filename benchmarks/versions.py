"""Time point estimates beside those of another checkout, in turn and in one run.

    python benchmarks/versions.py ../before
    python benchmarks/versions.py ../before --cases small --names rasch_map,=rasch

``=rasch`` is the method `rasch` by map at its defaults, where a published configuration has the
same name. Each checkout has a process, which this script starts with that checkout first on its
path; dependencies are those of the environment.
"""

import single_thread  # noqa: F401

# isort: split

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from configurations import is_likelihood
from measuring import print_load, print_machine, print_row
from simulated import CASES, parse_case

from bayesrank import PRESETS

WIDTHS = (28, 10, 10, 7)
# Turns of each side, of which the least time counts.
TURNS = 3
POOLED = ("=rasch", "=irt_2pl", "=irt_3pl", "=mirt", "=hierarchical_binomial")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", nargs="?", type=Path, help="root of the other checkout")
    parser.add_argument("--cases", nargs="+", type=parse_case, default=list(CASES.values()))
    parser.add_argument("--names", default="", help="separated by commas (default: likelihoods)")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each turn (default 0.3)")
    parser.add_argument("--serve", action="store_true", help="answer a parent process")
    options = parser.parse_args(arguments)
    if options.serve:
        serve()
        return
    if options.other is None or not (options.other / "bayesrank").is_dir():
        parser.error(f"other must be the root of a checkout; got {options.other}")
    named = [name for name, each in PRESETS.items() if is_likelihood(each) and not _draws(name)]
    names = options.names.split(",") if options.names else [*POOLED, *named]
    print_machine()
    roots = options.other, Path(__file__).parents[1]
    sides = [_start(root.resolve()) for root in roots]
    for shape in options.cases:
        print(f"Least processor time in ms, (system, question, trial) = {shape}")
        print_row(["", "other", "this", "ratio"], WIDTHS)
        for name in names:
            print_row([name, *_compared(sides, name, shape, options.seconds)], WIDTHS)
        print()
    for side in sides:
        side.communicate()
    print_load()


def _draws(name: str) -> bool:
    """Return whether a configuration has no point estimate without draws."""
    return PRESETS[name].backend == "nuts"


def _start(root: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )


def _compared(sides: Sequence[Any], name: str, shape: Sequence[int], seconds: float) -> list[str]:
    """Return the times of both sides and their ratio, or why there is none."""
    least: list[Any] = [float("inf")] * len(sides)
    for _ in range(TURNS):
        for place, side in enumerate(sides):
            if isinstance(least[place], str):
                continue
            print(json.dumps([name, shape, seconds]), file=side.stdin, flush=True)
            found = json.loads(side.stdout.readline())
            least[place] = found if isinstance(found, str) else min(least[place], found)
    if any(isinstance(each, str) for each in least):
        return [each[:9] if isinstance(each, str) else f"{each:.2f}" for each in least] + ["-"]
    return [f"{each:.2f}" for each in least] + [f"{least[1] / least[0]:.2f}"]


def serve() -> None:
    """Time what the lines of standard input name, and print milliseconds or an error for each."""
    from simulated import rasch

    import bayesrank

    for line in sys.stdin:
        name, shape, seconds = json.loads(line)
        outcomes, earlier = rasch(tuple(shape))
        preset = PRESETS.get(name)
        used = preset is not None and preset.options.get("use_prior_outcomes", False)
        options: dict[str, Any] = {"backend": "map"} if name.startswith("=") else {}
        times, end = [], time.perf_counter() + seconds
        try:
            while not times or time.perf_counter() < end:
                begin = time.process_time()
                data = bayesrank.Responses(outcomes, prior_outcomes=earlier if used else None)
                bayesrank.point_estimate(data, name.lstrip("="), **options)
                times.append(time.process_time() - begin)
            print(json.dumps(1e3 * min(times)), flush=True)
        except Exception as error:  # what another version cannot do is a result
            print(json.dumps(type(error).__name__), flush=True)


if __name__ == "__main__":
    main()
