"""How often the check of runs finds what is there, and what is not.

Run from the root of the repository; a quarter of an hour:

    python -m calibration.run_effects

It writes ``docs/run_effects.csv``. Tensors have independent trials, or a quarter of the runs of one
system in which every chance of a right answer is lower, by the same amount but not below 0. Every
tensor has a truth of its own, from a generator of :mod:`calibration.worlds`; "ceiling" moves the
abilities of its Rasch model up by 4 logits, and "missing" takes away a fifth of the outcomes.
"""

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayesrank import Responses
from bayesrank.checking.runs import run_effects
from calibration.worlds import Design, Generator, derive_seed, draw_world

TABLE = Path(__file__).parents[1] / "docs" / "run_effects.csv"
COLUMNS = ("design", "world", "lower_by", "n_tensors", "flagged", "found", "standard_error")

DESIGNS = tuple(
    Design(*size)
    for size in ((20, 30, 16), (20, 30, 80), (8, 40, 4), (5, 60, 16), (3, 200, 5), (50, 20, 8))
)
WORLDS = ("rasch", "beta", "ceiling", "missing")
EFFECTS = (0.0, 0.25, 0.3, 0.35)

N_TENSORS = 2_000

_CEILING = 4.0
_MISSING = 0.2
_SHARE_OF_RUNS = 0.25


class Share(NamedTuple):
    """Shares of tensors in which any system was named, and in which the right one was."""

    flagged: float
    found: float


def draw(
    design: Design, world: str, lower_by: float, rng: np.random.Generator
) -> tuple[Responses, int]:
    """Return a tensor, and the position of the system some of whose runs are worse.

    Parameters
    ----------
    design : Design
        Size of the tensor.
    world : str
        One of `WORLDS`.
    lower_by : float
        By how much chances are lower in a quarter of the runs of one system.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Responses
    int
    """
    generator: Generator = "beta" if world == "beta" else "rasch"
    chances = draw_world(design, "benchmark", generator, rng).chances
    if world == "ceiling":
        chances = 1.0 / (1.0 + np.exp(-_CEILING) * (1.0 - chances) / chances)
    by_run = np.repeat(chances[..., np.newaxis], design.n_trials, axis=-1)
    system = int(rng.integers(design.n_systems))
    worse = rng.permutation(design.n_trials)[: max(1, round(_SHARE_OF_RUNS * design.n_trials))]
    by_run[system][:, worse] = np.maximum(by_run[system][:, worse] - lower_by, 0.0)
    outcomes: NDArray[np.int8] = (rng.random(by_run.shape) < by_run).astype(np.int8)
    if world == "missing":
        outcomes[rng.random(outcomes.shape) < _MISSING] = -1
    return Responses(outcomes), system


def measure(design: Design, world: str, lower_by: float, n_tensors: int) -> Share:
    """Return how often a check of runs says something, and names the right system.

    Parameters
    ----------
    design, world, lower_by
        As in :func:`draw`.
    n_tensors : int
        Number of tensors.

    Returns
    -------
    Share
    """
    rng = np.random.default_rng(derive_seed("runs", design, world, lower_by))
    flagged = found = 0
    for number in range(n_tensors):
        data, system = draw(design, world, lower_by, rng)
        named = {one.system for one in run_effects(data, random_seed=number)}
        flagged += bool(named)
        found += data.systems[system] in named
    return Share(flagged / n_tensors, found / n_tensors)


def rows(n_tensors: int = N_TENSORS) -> Iterator[tuple[str | float, ...]]:
    """Yield the rows of the table."""
    for design in DESIGNS:
        for world in WORLDS:
            for lower_by in EFFECTS:
                share = measure(design, world, lower_by, n_tensors)
                # Without an effect there is no right system to find.
                found = "" if lower_by == 0.0 else round(share.found, 4)
                rate = share.flagged if lower_by == 0.0 else share.found
                error = round((rate * (1.0 - rate) / n_tensors) ** 0.5, 4)
                yield str(design), world, lower_by, n_tensors, round(share.flagged, 4), found, error


def main() -> None:
    """Write the table."""
    partial = TABLE.with_suffix(".partial")
    with partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows())
    os.replace(partial, TABLE)


if __name__ == "__main__":
    main()
