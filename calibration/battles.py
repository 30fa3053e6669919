"""Coverage of intervals of arenas: judges with a taste, prompts that favour systems, swapped games.

    python -m calibration.battles [--simulations N] [--minutes M] [--parts PART ...]

What is measured are scores, their differences and the effects of covariates, with the unit of each
world and with single battles as units, which is naive. The truth of a world is the estimate from
very many of its units: with tastes it is what judges prefer on average, not the preference of an
average judge. Groups, periods and judges of unlike reliability have truths of their own in each
simulation, drawn as the model says, without tastes and with them. Writes
docs/calibration_battles.csv; a run that was stopped goes on where it was, part by part.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrank import Battles, rank
from calibration.worlds import derive_seed

Array = NDArray[np.float64]

N_SYSTEMS = 6
N_UNITS, PER_UNIT = 60, 30
_MANY = 20_000  # units behind a truth
_MANY_DRAWN = 2_500  # behind a truth of one simulation, whose error adds 1.2 percent to that of 60
_TASTE = 0.7
_EFFECT, _POSITION = 0.5, 0.2
_NAMES = np.array([f"system {k}" for k in range(N_SYSTEMS)])
_RESULTS = Path(__file__).parent / "results" / "battles.json"
_TABLE = Path(__file__).parents[1] / "docs" / "calibration_battles.csv"
MODELS = (
    "bradley_terry",
    "davidson",
    "rao_kupper",
    "thurstone_mosteller",
    "cumulative_logit",
    "davidson_outside",
)
N_STATES = 5
STATES = {"hierarchical_comparisons": "group_score", "dynamic_comparisons": "history"}


class World(NamedTuple):
    """What varies in an arena: a unit, and whether its battles are played on both sides."""

    unit: str
    swapped: bool = False


WORLDS = {
    "judges with a taste": World("judge"),
    "prompts that favour systems": World("prompt"),
    "swapped games": World("battle", swapped=True),
}


def draw_battles(world: World, n_units: int, rng: np.random.Generator) -> Battles:
    """Draw the battles of a world."""
    per_unit = 2 if world.swapped else PER_UNIT
    n_units = n_units * PER_UNIT // per_unit
    unit = np.repeat(np.arange(n_units), per_unit)
    n = len(unit)
    strength = np.linspace(0.8, -0.8, N_SYSTEMS)
    first = rng.integers(N_SYSTEMS, size=n)
    second = (first + 1 + rng.integers(N_SYSTEMS - 1, size=n)) % N_SYSTEMS
    length = rng.normal(size=n)
    liking = _TASTE * rng.normal(size=(n_units, N_SYSTEMS))
    if world.swapped:  # the second game of a vote turns the sides, and sees the same answers
        first[1::2], second[1::2] = second[::2].copy(), first[::2].copy()
        length[1::2] = -length[::2]
    ahead = strength[first] - strength[second] + liking[unit, first] - liking[unit, second]
    of_length = _EFFECT + 0.3 * rng.normal(size=n_units)
    ahead = ahead + of_length[unit] * length + _POSITION
    winner = _graded(_winners(ahead, rng), ahead, strength[first] + strength[second], rng)
    columns: dict[str, Any] = {"vote" if world.swapped else world.unit: unit}
    return Battles(
        _NAMES[first],
        _NAMES[second],
        winner,
        systems=_NAMES,
        covariates={"length": length},
        **columns,
    )


def _winners(ahead: Array, rng: np.random.Generator) -> NDArray[np.str_]:
    odds = np.stack([np.exp(ahead / 2), np.exp(-ahead / 2), np.full(len(ahead), 0.6)])
    drawn = (rng.random(len(ahead)) > np.cumsum(odds / odds.sum(axis=0), axis=0)).sum(axis=0)
    return np.array(["first", "second", "tie"])[drawn]


def _graded(winner: NDArray[np.str_], ahead: Array, level: Array, rng: Any) -> NDArray[np.str_]:
    """Say of some wins that they were clear, and of some ties that both answers were bad."""
    clear = rng.random(len(winner)) < 1.0 / (1.0 + np.exp(1.0 - np.abs(ahead)))
    bad = rng.random(len(winner)) < 1.0 / (1.0 + np.exp(level))
    words = {
        "first": np.where(clear, "A>>B", "A>B"),
        "second": np.where(clear, "B>>A", "B>A"),
        "tie": np.where(bad, "both_bad", "tie"),
    }
    return np.select([winner == name for name in words], list(words.values()), "")


@cache
def truth(name: str, model: str, formula: str | None) -> dict[str, Array]:
    """Return what a model estimates from very many units of a world, effects per unit of length."""
    data = draw_battles(WORLDS[name], _MANY, np.random.default_rng(derive_seed("truth", name)))
    tree = rank(data, model, backend="mle", formula=formula, draws=0)
    found = {"score": tree["ranking"]["score"].values}
    if formula is not None:
        found["effect"] = tree["point_estimate"]["effect"].values / _spread(data)
    return found


def _spread(data: Battles) -> Array:
    """Return in which units effects are: position, then standard deviations of the length."""
    return np.array([1.0, data.covariates["length"].std()])


def hits_of_world(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield how many intervals of one simulation hold the truth, by model, unit and quantity."""
    world = WORLDS[name]
    data = draw_battles(world, N_UNITS, np.random.default_rng(seed))
    for model in MODELS:
        for formula in (None, "length"):
            right = truth(name, model, formula)
            if formula is not None:
                right = right | {"effect": right["effect"] * _spread(data)}
            for naive in (False, True):
                options: dict[str, Any] = {"unit": world.unit}
                if naive:
                    options = {"unit": "battle", "calibration": "none"}
                options |= {"backend": "map", "formula": formula, "random_seed": seed}
                tree = rank(data, model, **options)
                where = {"world": name, "model": model, "formula": formula or ""}
                where["unit"] = "naive" if naive else world.unit
                for quantity, hit in _hits(tree, right):
                    yield where | {"quantity": quantity, "hits": hit[0], "intervals": hit[1]}


def _hits(tree: Any, right: dict[str, Array]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield quantities with the numbers of intervals that hold the truth, and of all."""
    for name, expected in right.items():
        draws = np.asarray(tree["posterior"][name]).reshape(-1, *expected.shape)
        yield name, _inside(draws, expected)
        if name == "score":
            i, j = np.triu_indices(len(expected), 1)
            yield "difference", _inside(draws[:, i] - draws[:, j], expected[i] - expected[j])


def _inside(draws: Array, expected: Array) -> tuple[int, int]:
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    return int(((low < expected) & (expected < high)).sum()), expected.size


def hits_of_states(model: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the same for scores by group or period, whose truths the model draws."""
    data, score, scale = _draw_states(model, N_UNITS, 0.0, seed)
    options = {"period": 30} if model == "dynamic_comparisons" else {}
    right = {
        "score": score[-1] if model == "dynamic_comparisons" else score.mean(axis=0),
        STATES[model]: score.T,
        "effect": np.array([_POSITION, _EFFECT * scale]),
    }
    tree = rank(data, model, unit="battle", formula="length", random_seed=seed, **options)
    yield from _told(tree, right, "as the model says", model, "battle")


def hits_of_tastes(model: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the same where judges have tastes as well, whose units are judges."""
    options: dict[str, Any] = {"formula": "length", "backend": "map", "random_seed": seed}
    if model == "dynamic_comparisons":
        options["period"] = 30
    many, _, many_scale = _draw_states(model, _MANY_DRAWN, _TASTE, seed)
    tree = rank(many, model, draws=0, calibration="none", **options)
    data, _, scale = _draw_states(model, N_UNITS, _TASTE, seed, again=True)
    right = {
        "score": tree["ranking"]["score"].values,
        STATES[model]: tree["point_estimate"][STATES[model]].values,
        "effect": tree["point_estimate"]["effect"].values * [1.0, scale / many_scale],
    }
    for unit, how in (("judge", "sandwich"), ("battle", "none")):
        tree = rank(data, model, unit=unit, calibration=how, **options)
        called = "judge" if unit == "judge" else "naive"
        yield from _told(tree, right, "judges with a taste", model, called)


def hits_of_raters(seed: int) -> Iterator[dict[str, Any]]:
    """Yield the same where judges differ in reliability and bias as the model says."""
    rng = np.random.default_rng(seed)
    judge = np.repeat(np.arange(N_UNITS), PER_UNIT)
    first, second, length = _draw_sides(len(judge), rng)
    score = rng.normal(size=N_SYSTEMS)
    score -= score.mean()
    reliability, bias = np.exp(0.5 * rng.normal(size=N_UNITS)), 0.5 * rng.normal(size=N_UNITS)
    ahead = score[first] - score[second] + _EFFECT * length + _POSITION
    cuts = np.array([-1.5, -0.3, 0.3, 1.5])
    seen = reliability[judge] * ahead + bias[judge]
    grade = (seen[:, None] + rng.logistic(size=(len(judge), 1)) > cuts).sum(axis=1)
    data = Battles(
        _NAMES[first],
        _NAMES[second],
        np.array(["B>>A", "B>A", "tie", "A>B", "A>>B"])[grade],
        systems=_NAMES,
        judge=judge,
        covariates={"length": length},
    )
    right = {"score": score, "effect": np.array([_POSITION, _EFFECT * length.std()])}
    for unit, raters in (("judge", "judge"), ("naive", None)):
        how = {"unit": "judge"} if raters else {"unit": "battle", "calibration": "none"}
        options: dict[str, Any] = {"formula": "length", "raters": raters, "random_seed": seed} | how
        tree = rank(data, "cumulative_logit", **options)
        called = "cumulative_logit (raters)" if raters else "cumulative_logit"
        yield from _told(tree, right, "judges of unlike reliability", called, unit)


def _draw_states(
    model: str, n_judges: int, taste: float, seed: int, *, again: bool = False
) -> tuple[Battles, Array, float]:
    """Draw battles in groups or periods, with their scores and the spread of the covariate."""
    rng = np.random.default_rng(seed)
    walks = model == "dynamic_comparisons"
    steps = 0.4 * rng.normal(size=(N_STATES, N_SYSTEMS))
    score = rng.normal(size=N_SYSTEMS) + (np.cumsum(steps, axis=0) if walks else steps)
    score -= score.mean(axis=1, keepdims=True)
    if again:  # of the same scores
        rng = np.random.default_rng(derive_seed("again", seed))
    n = n_judges * PER_UNIT
    state = np.sort(rng.integers(N_STATES, size=n))
    first, second, length = _draw_sides(n, rng)
    judge = rng.permutation(n) % n_judges
    liking = taste * rng.normal(size=(n_judges, N_SYSTEMS))
    ahead = score[state, first] - score[state, second] + _EFFECT * length + _POSITION
    ahead = ahead + liking[judge, first] - liking[judge, second]
    data = Battles(
        _NAMES[first],
        _NAMES[second],
        _winners(ahead, rng),
        systems=_NAMES,
        group=state,
        judge=judge,
        time=state * 30 * 86_400 + np.linspace(0, 1, n),
        covariates={"length": length},
    )
    return data, score, float(length.std())


def _draw_sides(n: int, rng: Any) -> tuple[Any, Any, Array]:
    first = rng.integers(N_SYSTEMS, size=n)
    return first, (first + 1 + rng.integers(N_SYSTEMS - 1, size=n)) % N_SYSTEMS, rng.normal(size=n)


def _told(
    tree: Any, right: dict[str, Array], world: str, model: str, unit: str
) -> Iterator[dict[str, Any]]:
    where = {"world": world, "model": model, "formula": "length", "unit": unit}
    for quantity, hit in _hits(tree, right):
        yield where | {"quantity": quantity, "hits": hit[0], "intervals": hit[1]}


def parts() -> dict[str, Callable[[int], Iterator[dict[str, Any]]]]:
    """Return what yields the hits of one simulation, by the number of it, part by part."""

    def of(simulated: Any, name: str, *before: str) -> Callable[[int], Iterator[dict[str, Any]]]:
        return lambda number: simulated(*before, _seed(name, number))

    found = {name: of(hits_of_world, name, name) for name in WORLDS}
    found |= {f"{model}, as it says": of(hits_of_states, model, model) for model in STATES}
    found |= {f"{model}, with tastes": of(hits_of_tastes, model, model) for model in STATES}
    return found | {"raters": of(hits_of_raters, "raters")}


def simulate(n_simulations: int, minutes: float, names: Sequence[str]) -> None:
    """Add simulations of parts to the results until there are so many, or the time is over."""
    end = time.monotonic() + 60.0 * minutes
    found, simulated = _read_results(), parts()
    for number in range(n_simulations):
        for name in names:
            if time.monotonic() > end:
                return
            if number < found["simulations"].get(name, 0):
                continue
            for row in simulated[name](number):
                told = (row.pop("hits"), row.pop("intervals"), 1)
                sums = found["sums"].setdefault("|".join(row.values()), [0, 0, 0])
                sums[:] = [old + new for old, new in zip(sums, told, strict=True)]
            found["simulations"][name] = number + 1
            beside = _RESULTS.with_suffix(".new")
            beside.write_text(json.dumps(found, indent=1) + "\n")
            beside.replace(_RESULTS)


def _read_results() -> dict[str, Any]:
    if not _RESULTS.exists():
        return {"simulations": {}, "sums": {}}
    return json.loads(_RESULTS.read_text())


def _seed(name: str, number: int) -> int:
    return int(derive_seed("arena", name, number).generate_state(1)[0])


def write_table() -> pd.DataFrame:
    """Write the coverage of all that was simulated."""
    found = _read_results()
    keys = ["world", "model", "formula", "unit", "quantity"]
    table = pd.DataFrame([name.split("|") for name in found["sums"]], columns=keys)
    hits = np.array(list(found["sums"].values()))
    table["coverage"] = (hits[:, 0] / hits[:, 1]).round(4)
    table["simulations"] = hits[:, 2]
    table.to_csv(_TABLE, index=False)
    return table


def main() -> None:
    """Simulate and write the table."""
    parser = argparse.ArgumentParser(description="Coverage of intervals of arenas.")
    parser.add_argument("--simulations", type=int, default=400)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--parts", nargs="+", choices=[*parts()], default=[*parts()])
    arguments = parser.parse_args()
    simulate(arguments.simulations, arguments.minutes, arguments.parts)
    print(write_table().to_string(index=False))


if __name__ == "__main__":
    main()
