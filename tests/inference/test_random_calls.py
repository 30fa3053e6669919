"""Random small data through every method, back end, target and option: what rank() promises of all.

``make fuzz SEED=7`` makes ten thousand calls from another seed.
"""

import json
import os
import warnings
from collections.abc import Iterator
from inspect import signature
from typing import Any, Literal, NamedTuple, get_args, get_origin

import numpy as np
import pytest
import xarray as xr

from bayesrank import METHODS, Battles, Comparisons, Responses, leaderboard, rank
from bayesrank.errors import CalibrationWarning, ConvergenceWarning, NoFiniteEstimate
from bayesrank.inference.fits.symmetry import tie_exchangeable
from bayesrank.method import Method, load_function
from bayesrank.ranking import Target
from bayesrank.views import Ballots
from tests.inference.score_ranges import range_of

Data = Responses | Comparisons | Ballots

ROUNDING = 1e-9
# Those that need no compiled model; NUTS compiles one for each structure of the data.
FAST = frozenset({"bootstrap", "exact", "mle", "map", "mml"})
# A score may be certain though its system has lost: of nash that of a system in the equilibrium is
# the value of the game, or the mixture is all of one system; of pagerank that of two systems with
# losses is half each, and no more losses change it.
MAY_STAY = frozenset({"nash", "pagerank"})
STAYS = (0.0, 0.5, 1.0)
# Draws that are places, of which one may be next to certain.
PLACES = frozenset({"thompson"})
SEED = int(os.environ.get("BAYESRANK_FUZZ_SEED", "0"))
PARTS, CALLS = 20, 10_000


class Call(NamedTuple):
    """Data, and how they are ranked."""

    data: Data
    method: str
    backend: str
    target: Target | None
    unit: str | None
    options: dict[str, Any]

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        where = f"{self.method}/{self.backend}/{self.target}/{self.unit}"
        return f"{where}({options}) of {self.data!r}"


def random_data(rng: np.random.Generator) -> Data:
    """Return a small data set: a tensor with or without holes, battles or ballots."""
    size = int(rng.integers(1, 9))
    kind = rng.integers(10)
    if kind == 0:
        wins = rng.integers(0, 4, (size, size)) * (rng.random((size, size)) < 0.6)
        ties = np.triu(rng.integers(0, 3, (size, size)) * (rng.random() < 0.5), 1)
        np.fill_diagonal(wins, 0)
        return Comparisons(wins, ties + ties.T)
    if kind == 1 and size > 1:
        return random_battles(size, rng)
    if kind == 2:
        grades = rng.integers(0, 4, (size, int(rng.integers(1, 6)))).astype(float)
        grades[rng.random(grades.shape) < 0.2] = np.nan
        return Ballots(grades, tuple(f"s{i}" for i in range(size)))
    return random_responses(size, rng)


def random_battles(size: int, rng: np.random.Generator) -> Battles:
    """Return a log of votes, with some of the things that an arena knows of them."""
    n = int(rng.integers(1, 40))
    first = rng.integers(size, size=n)
    second = (first + rng.integers(1, size, n)) % size
    words: list[Any] = [
        ["model_a", "model_b", "tie", "tie (bothbad)"],
        ["A>>B", "A>B", "A=B", "B>A", "B>>A"],
        [0.0, 0.3, 0.5, 1.0],
    ]
    columns: dict[str, Any] = {
        "prompt": rng.integers(6, size=n),
        "judge": rng.integers(6, size=n),
        "group": rng.integers(3, size=n),
        "weight": rng.integers(0, 3, n).astype(float),
        "time": 1.7e9 + rng.integers(0, 10_000_000, n),
        "covariates": {"length": rng.normal(size=n), "lists": rng.integers(-1, 2, n)},
    }
    columns = {name: each for name, each in columns.items() if rng.random() < 0.4}
    result = rng.choice(words[rng.integers(3)], n)
    return Battles(first, second, result, systems=range(size), **columns)


def random_responses(size: int, rng: np.random.Generator) -> Responses:
    """Return a tensor of right and wrong answers, categories or scores, perhaps with holes."""
    shape = (size, *rng.integers(1, (9, 5)))
    chance = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], (size, 1, 1))
    options: dict[str, Any] = {"paired": bool(rng.random() < 0.7)}
    form = rng.choice(["binary", "same", "scores", "categories"], p=[0.65, 0.1, 0.15, 0.1])
    outcomes = (rng.random(shape) < chance).astype(float)
    if form == "same":
        outcomes[-1] = outcomes[0]
    elif form == "scores":
        outcomes, scale = np.round(rng.random(shape), 2), rng.choice(["unit", "percent", "signed"])
        if scale != "unit":
            low, high = options["scale"] = {"percent": (0.0, 100.0), "signed": (-1.0, 3.0)}[scale]
            outcomes = low + (high - low) * outcomes
    elif form == "categories":
        outcomes, options["weights"] = rng.integers(0, 3, shape).astype(float), (0.0, 0.3, 1.0)
    holes = rng.choice(["none", "cells", "trials", "systems"], p=[0.5, 0.2, 0.15, 0.15])
    if holes == "cells":
        outcomes[rng.random(shape[:2]) < 0.3] = np.nan
    elif holes == "trials":
        outcomes[rng.random(shape) < 0.3] = np.nan
    elif holes == "systems":
        outcomes[rng.random(size) < 0.3] = np.nan
    if not np.isfinite(outcomes).any():
        outcomes[0, 0, 0] = 1.0
    if rng.random() < 0.2:
        options["groups"] = [f"g{i}" for i in rng.integers(0, 6, shape[1])]
    if form == "categories":
        outcomes = np.where(np.isnan(outcomes), -1, outcomes).astype(int)
    return Responses(outcomes, **options)


def random_options(row: Method, data: Data, rng: np.random.Generator) -> dict[str, Any]:
    """Return what a method requires, with words, switches and a formula drawn for some options."""
    options = dict(row.example)
    known = signature(load_function(row.kernel or row.function)).parameters
    for name in row.options:
        annotation = known[name].annotation if name in known else None
        values = [False, True] if annotation is bool else list(get_args(annotation))
        words = annotation is bool or get_origin(annotation) is Literal
        if words and name not in options and rng.random() < 0.3:
            options[name] = values[rng.integers(len(values))]
    if "formula" in row.options and isinstance(data, Battles) and rng.random() < 0.3:
        options["formula"] = " + ".join([*data.covariates, "position"])
    return options


def calls(data: Data, backends: frozenset[str], rng: np.random.Generator) -> Iterator[Call]:
    """Yield calls of all methods and back ends on some data."""
    targets: tuple[Target | None, ...] = (None,)
    units = [None, None, *data.units, "judge,prompt"] if isinstance(data, Battles) else [None]
    if isinstance(data, Responses):
        targets, units = ("benchmark", "population"), [None, None, "run"]
    for name, row in METHODS.items():
        form = row.forms[-1] if isinstance(data, Comparisons) else row
        for backend in sorted(backends.intersection(form.backends)):
            for target in targets:
                unit = units[rng.integers(len(units))]
                if unit == "run" and target == "population":
                    unit = "run,question"
                yield Call(data, name, backend, target, unit, random_options(form, data, rng))


def ranked(call: Call, draws: int = 40) -> xr.DataTree | str:
    """Return the result, or the documented error as text."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in (CalibrationWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", known)
        try:
            return rank(
                call.data,
                call.method,
                backend=call.backend,
                target=call.target,
                unit=call.unit,
                draws=draws,
                random_seed=3,
                **call.options,
            )
        except ValueError as error:  # those of bayesrank are of this class
            if type(error).__module__ not in ("builtins", "bayesrank.errors"):
                raise
            if not (isinstance(error, NoFiniteEstimate) or " must " in str(error)):
                raise
            return str(error)


def findings(call: Call) -> list[str]:
    """Return what a call breaks of the promises."""
    try:
        result = ranked(call)
        again = ranked(call)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    if isinstance(result, str):
        return [] if again == result else ["same seed, another error"]
    found = [*_of_scores(result, call), *_of_ranks(result), *_of_systems(result, call.data)]
    found += _of_labels(result, call)
    posterior = result["posterior"].to_dataset()
    if isinstance(again, str) or not again["posterior"].to_dataset().equals(posterior):
        found.append("same seed, other draws")
    for name, values in posterior.data_vars.items():
        if values.dtype.kind == "f" and not np.isfinite(values.values).all():
            found += [] if "dropped" in values.attrs else [f"{name} is not finite"]
    return found


def _of_scores(result: xr.DataTree, call: Call) -> list[str]:
    table = result["ranking"].to_dataset()
    score, lower, upper, bound = (
        table[column].values for column in ("score", "score_lower", "score_upper", "lcb")
    )
    slack = ROUNDING * (1.0 + np.abs(score))
    draws = result["posterior"].to_dataset()["score"].transpose("chain", "draw", "system").values
    found = []
    if not (np.isfinite(score).all() and np.isfinite(draws).all()):
        found.append("not finite")
    if not ((lower <= score + slack) & (score - slack <= upper)).all():
        found.append("score outside its interval")
    least = np.minimum(draws.min(axis=(0, 1)), score)
    # Identical systems share the mean of their bounds, and one of them has a draw below it.
    least = np.where(bound[:, np.newaxis] == bound, least, np.inf).min(axis=1)
    if not ((least - slack <= bound) & (bound <= score + slack)).all():
        found.append("bound below all draws and the score, or above the score")
    low, high = range_of(result.attrs, call.data, len(score))
    for name, values in (("draws", draws), ("interval", np.stack([lower, upper, bound]))):
        if not ((values >= low - slack) & (values <= high + slack)).all():
            found.append(f"{name} outside the range of the score")
    # Certain by definition: the score of a system alone, and the largest of percentages of it.
    certain = np.full(len(score), len(score) == 1 or low == high)
    if METHODS[call.method].kind == "share":
        certain |= (draws == 100.0).all(axis=(0, 1))
    certain |= np.isin(score, STAYS) & (call.method in MAY_STAY)
    certain |= (draws == draws.round()).all(axis=(0, 1)) & (call.method in PLACES)
    if not ((np.ptp(draws, axis=(0, 1)) > 0.0) | certain).all():
        found.append("zero width")
    return found


def _of_ranks(result: xr.DataTree) -> list[str]:
    table = result["ranking"].to_dataset()
    found = []
    ranks = table["rank"].values
    for ends in (("joint_rank_lower", "joint_rank_upper"), ("rank_lower", "rank_upper")):
        low, high = (table[name].values for name in ends)
        if not ((low >= 1) & (low <= high) & (high <= len(ranks))).all():
            found.append(f"{ends[0]} is no set of ranks")
    if not ((table["joint_rank_lower"] <= ranks) & (ranks <= table["joint_rank_upper"])).all():
        found.append("rank outside its joint set")
    better = table["superiority"].values
    if not np.allclose(better + better.T, 1.0):
        found.append("superiority and its transpose are not one")
    if not np.allclose(table["rank_probability"].sum("position"), 1.0):
        found.append("probabilities of ranks are not one")
    return found


def _of_systems(result: xr.DataTree, data: Data) -> list[str]:
    board = leaderboard(result)
    unranked = json.loads(result.attrs.get("unranked", "[]"))
    found = []
    if sorted(board["system"]) != sorted(data.systems):
        found.append("systems are missing")
    if list(board.loc[board["rank"].isna(), "system"]) != unranked:
        found.append("unranked systems have ranks")
    # Ratings hang on the order of battles, which counts do not tell.
    if _has_orders_of_its_own(result) or isinstance(data, Battles):
        return found
    for name in {"rank", "lcb", "rank_lower", "expected_rank"}.intersection(board):
        column = board.set_index("system")[name].fillna(0.0).reindex(data.systems).to_numpy()
        if not np.allclose(tie_exchangeable(column, data), column, rtol=1e-12, atol=0.0):
            found.append(f"identical systems are not tied by {name}")
    return found


def _has_orders_of_its_own(result: xr.DataTree) -> bool:
    """Return whether one of several best orders is taken, or matches follow the systems' order."""
    options = json.loads(result.attrs["options"])
    return options.get("tie_aware") is False or options.get("update") == "sequential"


def _of_labels(result: xr.DataTree, call: Call) -> list[str]:
    """Compare with the same data whose systems, questions and trials have other places."""
    stats = result["sample_stats"].to_dataset() if "sample_stats" in result else xr.Dataset()
    if not stats.get("converged", xr.DataArray(True)).all() or _has_orders_of_its_own(result):
        return []
    row = METHODS[call.method]
    in_order = row.kind == "rating" or "assume_time_axis" in row.options
    moved = relabelled(call.data, np.random.default_rng(5), in_order=in_order)
    other = ranked(call._replace(data=moved), draws=0)
    if isinstance(other, str):
        return ["other labels, an error"]
    score, again = (each["ranking"].to_dataset()["score"].to_series() for each in (result, other))
    again = again.reindex(score.index)
    if not np.allclose(score, again, rtol=1e-6, atol=1e-6):
        return [f"other labels, other scores: by {np.abs(score - again).max():.2g}"]
    return []


def relabelled(data: Data, rng: np.random.Generator, *, in_order: bool) -> Data:
    """Return data with systems in another order, and questions and trials where they have none."""
    places = rng.permutation(len(data.systems))
    systems = tuple(data.systems[place] for place in places)
    if isinstance(data, Ballots):
        return Ballots(data.grades[places], systems)
    if isinstance(data, Battles):
        return data.take(np.arange(len(data.first)), systems)
    if isinstance(data, Comparisons):
        square = np.ix_(places, places)
        return Comparisons(data.wins[square], data.ties[square], systems=systems)
    questions, trials = (
        np.arange(size) if in_order else rng.permutation(size) for size in data.shape[1:]
    )
    return Responses(
        data.values[np.ix_(places, questions, trials)],
        systems=systems,
        questions=[data.questions[place] for place in questions],
        groups=None if data.groups is None else [data.groups[place] for place in questions],
        paired=data.paired,
        **data.declared,
    )


def check(seed: list[int], n_calls: int) -> None:
    """Make calls on random data, as many as asked for."""
    rng = np.random.default_rng(seed)
    broken: list[str] = []
    done = 0
    while done < n_calls:
        for call in calls(random_data(rng), FAST, rng):
            broken += [f"{seed} {call}: {one}" for one in findings(call)]
            done += 1
    assert not broken, f"{len(broken)} findings:\n" + "\n".join(broken)


@pytest.mark.parametrize("part", range(2))
def test_a_few_random_calls_keep_the_promises(part):
    check([SEED, part], 120)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_many_random_calls_keep_the_promises(part):
    check([SEED, 1000 + part], CALLS // PARTS)


@pytest.mark.parametrize("method", ["bradley_terry_luce", "davidson_luce", "irt_2pl", "rasch"])
@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_a_system_alone_is_ranked(method, target):
    call = Call(Responses([[[0, 1], [1, 1], [0, 0]]]), method, "map", target, None, {})
    assert not isinstance(ranked(call), str)
    assert findings(call) == []


def test_draws_of_parameters_that_the_data_hardly_tell_are_finite():
    # Votes of little weight, and slopes with hardly a penalty on the answers to one question.
    words = ["B>A", "B>A", "B>A", "B>A", "tie"]
    weight = [0.013, 0.078, 0.435, 0.865, 0.06]
    votes = Battles(list("aaaab"), list("bebdc"), words, weight=weight, systems=list("abcde"))
    answers = Responses([[[0]], [[0]], [[0]], [[0]], [[1]]])
    for call in (
        Call(votes, "cumulative_logit", "map", None, None, {}),
        Call(answers, "irt_2pl_mml", "mml", None, None, {"reg_discrimination": 1e-8}),
    ):
        result = ranked(call, draws=500)
        assert not isinstance(result, str)
        assert findings(call) == []


@pytest.mark.parametrize(
    ("method", "backend", "options"),
    [
        ("davidson", "mle", {}),
        ("rao_kupper", "mle", {}),
        ("bradley_terry", "map", {"prior": "normal(0, 1000)"}),
        ("bradley_terry_luce", "map", {"prior": "normal(0, 1000)"}),
        ("davidson_luce", "map", {"prior": "normal(0, 1000)"}),
    ],
)
def test_strengths_that_the_data_hardly_tell_are_finite(method, backend, options):
    # Votes of next to no weight, and four trials under a prior that says nothing.
    winners = ["model_a", "model_a", "tie", "model_b", "model_a", "model_b", "tie", "model_a"]
    votes = Battles(list("abacbcab"), list("bcbbabcc"), winners, weight=np.full(8, 1e-6))
    answers = Responses(np.random.default_rng(0).integers(0, 2, (4, 5, 2))[:2, :2])
    call = Call(votes if backend == "mle" else answers, method, backend, None, None, options)
    result = ranked(call, draws=50)
    assert not isinstance(result, str)
    assert all(np.isfinite(each).all() for each in result["posterior"].data_vars.values())
