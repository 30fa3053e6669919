"""Measure how often intervals of every method hold the truth on the designs that people bring.

    python -m calibration.every_method --minutes 60
    python -m calibration.every_method --tables-only

The data are those of :mod:`calibration.designs`, with 8 systems and 40 questions; besides, runs of
a system that go well or badly as a whole, where the unit is the run. The truth of a method is the
expected score of a new data set from the same truth and with the same holes, from simulated fits
with observed means as control variates; of a smooth ranker, whose draws are corrected for bias, the
score of the expected data. A piece of work is a chunk of 20 data sets from one truth,
ranked by all configurations; results are lines of ``calibration/results/every_method.jsonl``, so
that a run that was stopped goes on where it was. It writes ``docs/every_method.md`` and
``docs/calibration_every_method.csv``.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from bayesrank import Responses, point_estimate
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.ranking import draw_scores
from calibration.cells import undefined_or
from calibration.configurations import Configuration, configurations
from calibration.designs import (
    GENERATORS,
    HOLES,
    N_POPULATION,
    draw_chances,
    draw_missing,
    draw_outcomes,
    responses,
)
from calibration.every_method_page import RUNS, publish
from calibration.sharing import shared_work
from calibration.store import Row, Store
from calibration.truths import expected_score, scores_of
from calibration.worlds import Design, Generator, Target, derive_seed

Array = NDArray[np.float64]

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "every_method.jsonl"
DOCS = HERE.parent / "docs"

# One trial has its questions from a population; several are about these questions.
SIZES = (Design(8, 40, 1), Design(8, 40, 4))
# Runs are few where they are whole evaluations.
SIZE_OF_RUNS = Design(8, 40, 6)

CHUNK = 20
# Simulated fits of an expected score, and data sets whose mean is the expected data.
N_FITS, N_DATA_SETS = 40, 200
# Draws per chain, of four chains.
DRAWS = 100
# Standard deviation of the logit that all answers of a run of a system share.
_RUN_SD = 0.5

_TAIL = 0.025


class Setting(NamedTuple):
    """What data sets are simulated from."""

    size: Design
    design: str

    @property
    def target(self) -> Target:
        """What the scores are about, as :func:`bayesrank.rank` chooses it."""
        return "population" if self.size.n_trials == 1 else "benchmark"


def settings() -> list[Setting]:
    """Return all settings; the runs of one trial would be its questions."""
    usual = [Setting(size, holes) for holes in HOLES for size in SIZES]
    return [*usual, Setting(SIZE_OF_RUNS, RUNS)]


@dataclass(frozen=True)
class Truth:
    """What the data sets of a chunk have in common.

    Attributes
    ----------
    setting : Setting
        Sizes and holes.
    generator : {"rasch", "beta"}
        Where the chances come from.
    ability : numpy.ndarray of shape (system,)
        Abilities, in logits.
    population : numpy.ndarray of shape (system,)
        Mean chances over the questions of the population.
    chances, difficulty, missing : numpy.ndarray
        Those of the questions of a benchmark.
    """

    setting: Setting
    generator: Generator
    ability: Array
    population: Array
    chances: Array
    difficulty: Array
    missing: NDArray[np.bool_]

    @classmethod
    def draw(cls, setting: Setting, generator: Generator, rng: np.random.Generator) -> "Truth":
        """Draw abilities, and the questions of a benchmark."""
        size, design = setting
        ability = rng.normal(size=size.n_systems)
        population = draw_chances(ability, N_POPULATION, "rasch", rng)[0].mean(axis=1)
        chances, difficulty = draw_chances(ability, size.n_questions, generator, rng)
        if design == "always right":
            chances[0], population[0] = 1.0, 1.0
        missing = draw_missing(design, size, difficulty, rng)
        return cls(setting, generator, ability, population, chances, difficulty, missing)

    def simulate(self, rng: np.random.Generator) -> tuple[Responses, Array]:
        """Draw a data set, and how far its observed means are above those expected."""
        size, design = self.setting
        chances, missing, excess = self.chances, self.missing, np.zeros(size.n_systems)
        if self.setting.target == "population":
            chances, difficulty = draw_chances(self.ability, size.n_questions, self.generator, rng)
            if design == "always right":
                chances[0] = 1.0
            missing = draw_missing(design, size, difficulty, rng)
            excess = chances.mean(axis=1) - self.population
        drawn = chances[..., np.newaxis]
        if design == RUNS:
            inner = np.clip(drawn, 1e-6, 1.0 - 1e-6)
            shift = rng.normal(scale=_RUN_SD, size=(size.n_systems, 1, size.n_trials))
            drawn = 1.0 / (1.0 + (1.0 / inner - 1.0) * np.exp(-shift))
            outcomes = (rng.random(drawn.shape) < drawn).astype(float)
        else:
            outcomes = draw_outcomes(chances, design, size.n_trials, rng)
        data, unit = responses(outcomes, missing, design)
        expected = np.broadcast_to(chances[..., np.newaxis], outcomes.shape)
        seen = ~missing
        noise = np.where(seen, outcomes / unit - expected, 0.0).sum(axis=(1, 2))
        return data, excess + noise / seen.sum(axis=(1, 2))


def measure(setting: Setting, chunk: int, names: Sequence[str], slowest: float) -> list[Row]:
    """Simulate a chunk of a setting for configurations.

    Parameters
    ----------
    setting : Setting
        Sizes and holes.
    chunk : int
        Number of the chunk; each has a truth of its own.
    names : sequence of str
        Names of configurations.
    slowest : float
        Seconds that a data set may take; a slower configuration is left out.

    Returns
    -------
    list of dict
        For each configuration its key and the chunk, the number of data sets ranked, of those that
        could not be, with an example of the error, and by quantity the sum over data sets of the
        share covered and the sum of its squares.
    """
    seeds = [derive_seed(kind, *setting, chunk) for kind in ("truth", "data", "new")]
    truth_rng, rng, new = (np.random.default_rng(seed) for seed in seeds)
    truth = Truth.draw(setting, GENERATORS[chunk % len(GENERATORS)], truth_rng)
    known = {one.name: one for one in configurations()}
    chosen = [known[name] for name in names]
    tensors = [truth.simulate(rng)[0] for _ in range(CHUNK)]
    fresh = [truth.simulate(new) for _ in range(N_DATA_SETS)]
    found: dict[str, list[dict[str, float]]] = {one.name: [] for one in chosen}
    failed: dict[str, list[str]] = {one.name: [] for one in chosen}
    late: set[str] = set()
    expected = {}
    for one in chosen:
        started = time.process_time()
        expected[one.name] = undefined_or(goal_of, one, setting.target, fresh)
        if (time.process_time() - started) / N_FITS > slowest:
            late.add(one.name)
    for number, data in enumerate(tensors):
        with shared_work():
            for one in chosen:
                started = time.process_time()
                if one.name in late:
                    continue
                goal = expected[one.name]
                one_found = (
                    goal
                    if isinstance(goal, str)
                    else undefined_or(_coverage, one, truth, data, goal, chunk * CHUNK + number)
                )
                if isinstance(one_found, str):
                    failed[one.name].append(one_found)
                else:
                    found[one.name].append(one_found)
                # The first call imports and compiles.
                if number == 1 and time.process_time() - started > slowest:
                    late.add(one.name)
    return [
        _row(one.name, setting, chunk, found[one.name], failed[one.name])
        for one in chosen
        if one.name not in late
    ]


def _row(
    name: str,
    setting: Setting,
    chunk: int,
    found: Sequence[Mapping[str, float]],
    failed: Sequence[str],
) -> Row:
    quantities = next(iter(found), {})
    shares = {quantity: np.array([one[quantity] for one in found]) for quantity in quantities}
    return {
        "key": [name, setting.design, str(setting.size.n_trials), setting.target],
        "chunk": chunk,
        "simulations": len(found),
        "undefined": len(failed),
        "error": failed[0] if failed else "",
        "covered": {q: [float(x.sum()), float((x**2).sum())] for q, x in shares.items()},
    }


def goal_of(one: Configuration, target: Target, fresh: Sequence[tuple[Responses, Array]]) -> Array:
    """Return the truth of a configuration, from new data sets."""
    if one.backend == "bootstrap" and one.method.smooth:
        return _of_expected_data(one, target, [data for data, _ in fresh])
    return _expected(one, fresh[:N_FITS])


def _of_expected_data(one: Configuration, target: Target, fresh: Sequence[Responses]) -> Array:
    """Return the score of the mean of data sets; over a population, of all questions together."""
    kind = one.method.data
    each = [point_arguments(data, kind) for data in fresh]
    parts = list(zip(*each, strict=True))
    if target == "benchmark" or kind == "pairs":
        arguments = [None if part[0] is None else np.mean(part, axis=0) for part in parts]
    else:
        arguments = [
            np.concatenate(part, axis=1) if np.ndim(part[0]) > 1 else part[0] for part in parts
        ]
        n_questions = fresh[0].shape[1]
        arguments.append(np.full(len(fresh) * n_questions, 1.0 / len(fresh)))
    scores = scores_of(one, *arguments)
    return fresh[0].in_units(scores) if one.method.graded else scores


def _expected(one: Configuration, fresh: Sequence[tuple[Responses, Array]]) -> Array:
    """Return the expected score of new data sets, of those that can be ranked."""
    scores, excess = [], []
    # Draws are of the score without the quantile that a preset may rank by.
    ranker, options = one.ranker, dict(one.options)
    if "quantile" in one.method_options:
        ranker, options = one.method.name, {**one.method_options, "quantile": None}
    estimate = partial(point_estimate, method=ranker, backend=one.backend, **options)
    for data, above in fresh:
        score = undefined_or(estimate, data)
        if not isinstance(score, str):
            scores.append(score)
            excess.append(above)
    if len(scores) < len(fresh) / 2:
        raise ValueError("less than half of the simulated data sets can be ranked")
    return expected_score(np.array(scores), np.array(excess))


def _coverage(
    one: Configuration, truth: Truth, data: Responses, goal: Array, seed: int
) -> dict[str, float]:
    """Rank a data set and return the share of systems, and of pairs, that intervals hold."""
    setting = truth.setting
    # As users are told to: item models are calibrated where they may be wrong.
    options = one.options_for(setting.target, truth.generator)
    unit = "run" if setting.design == RUNS else None
    drawn = draw_scores(
        data,
        one.ranker,
        backend=one.backend,
        target=setting.target,
        unit=unit,
        draws=DRAWS,
        random_seed=seed,
        **options,
    )
    draws = drawn.reshape(-1, len(goal))
    first, second = np.triu_indices(len(goal), 1)
    return {
        "score": _held(draws, goal),
        "difference": _held(draws[:, first] - draws[:, second], goal[first] - goal[second]),
    }


def _held(draws: Array, goal: Array) -> float:
    lower, upper = np.quantile(draws, (_TAIL, 1.0 - _TAIL), axis=0, method="weibull")
    slack = 1e-9 * max(1.0, float(np.abs(goal).max()))
    return float(((lower <= goal + slack) & (goal <= upper + slack)).mean())


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, simulate what is missing and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tensors", type=int, default=200, help="per cell (200)")
    parser.add_argument("--methods", nargs="+", help="names of configurations")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--slowest", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=DOCS)
    parser.add_argument("--tables-only", action="store_true", help="simulate nothing")
    options = parser.parse_args(arguments)
    store = Store(options.results)
    if not options.tables_only:
        _run(options, store)
        store.merge()
    publish(store, options.docs)


def _run(options: argparse.Namespace, store: Store) -> None:
    """Simulate the chunks that are missing, first chunks first."""
    end = time.monotonic() + 60 * options.minutes
    todo, running = _missing(options, store), set[Future]()
    context, limit = get_context("spawn"), partial(threadpool_limits, 1)
    with ProcessPoolExecutor(options.workers, context, limit) as pool:
        while True:
            while len(running) < 2 * options.workers and time.monotonic() < end:
                piece = next(todo, None)
                if piece is None:
                    break
                running.add(pool.submit(measure, *piece, options.slowest))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                store.add(*future.result())


def _missing(options: argparse.Namespace, store: Store) -> Iterator[tuple[Setting, int, list[str]]]:
    """Yield settings, chunks and the configurations whose results are missing."""
    chosen = options.methods or [
        one.name for one in configurations() if not (one.naive or one.is_slow)
    ]
    for chunk in range(-(-options.tensors // CHUNK)):
        for setting in settings():
            key = (setting.design, str(setting.size.n_trials), setting.target)
            names = [name for name in chosen if not store.has((name, *key), chunk)]
            if names:
                yield setting, chunk, names


if __name__ == "__main__":
    main()
