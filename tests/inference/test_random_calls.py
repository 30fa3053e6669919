"""Random small data through every method, back end and target: what rank() promises of all."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import xarray as xr

from bayesrank import METHODS, Comparisons, Responses, rank
from bayesrank.errors import CalibrationWarning, ConvergenceWarning, InputError, NoFiniteEstimate
from bayesrank.views import Ballots

Data = Responses | Comparisons | Ballots
Call = tuple[Data, str, str, str]

ROUNDING = 1e-9


def random_data(rng: np.random.Generator) -> Data:
    """Return a small data set: a tensor with or without holes, battles or ballots."""
    kind = rng.integers(8)
    size = int(rng.integers(1, 7))
    if kind == 0:
        wins = rng.integers(0, 4, (size, size)) * (rng.random((size, size)) < 0.6)
        ties = np.triu(rng.integers(0, 3, (size, size)) * (rng.random() < 0.5), 1)
        np.fill_diagonal(wins, 0)
        return Comparisons(wins, ties + ties.T)
    if kind == 1:
        grades = rng.integers(0, 4, (size, int(rng.integers(1, 6)))).astype(float)
        grades[rng.random(grades.shape) < 0.2] = np.nan
        return Ballots(grades, tuple(f"s{i}" for i in range(size)))
    shape = (size, *rng.integers(1, (8, 5)))
    chance = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], (shape[0], 1, 1))
    outcomes = (rng.random(shape) < chance).astype(float)
    if kind == 2:
        outcomes[-1] = outcomes[0]
    if kind == 3:
        outcomes = np.round(rng.random(shape), 2)
    if kind in (4, 5):
        outcomes[rng.random(shape[:2]) < 0.3] = np.nan
    if kind == 5:
        outcomes[rng.random(shape) < 0.2] = np.nan
    if not np.isfinite(outcomes).any():
        outcomes[0, 0, 0] = 1.0
    return Responses(outcomes, paired=bool(rng.random() < 0.7))


def calls(seed: int, data: Data, *, backends: frozenset[str]) -> Iterator[Call]:
    """Yield the method, the back end and the target of all calls on some data."""
    targets = ("benchmark", "population") if isinstance(data, Responses) else ("battles",)
    for name, row in METHODS.items():
        for backend in backends.intersection(row.backends):
            for target in targets:
                yield data, name, backend, target


def ranked(call: Call, **changes: Any) -> xr.DataTree | str:
    """Return the result, or the documented error as text."""
    data, name, backend, target = call
    options = {"backend": backend, "target": target, "draws": 40, "random_seed": 3}
    if name == "dynamic_irt":
        options["assume_time_axis"] = True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in (CalibrationWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", known)
        try:
            return rank(data, name, **{**options, **METHODS[name].example, **changes})
        except (InputError, NoFiniteEstimate) as error:
            return str(error)
        except ValueError as error:
            if type(error) is not ValueError:
                raise
            return str(error)


def findings(call: Call) -> list[str]:
    """Return what a call breaks of the promises."""
    data = call[0]
    try:
        result = ranked(call)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    if isinstance(result, str):
        return [] if " must " in result or "no finite" in result else [f"message: {result}"]
    table = result["ranking"].to_dataset()
    score, lower, upper = (
        table[column].values for column in ("score", "score_lower", "score_upper")
    )
    slack = ROUNDING * (1.0 + np.abs(score))
    draws = result["posterior"]["score"].transpose("chain", "draw", "system").values
    found = []
    if not (np.isfinite(score).all() and np.isfinite(draws).all()):
        found.append("not finite")
    if not ((lower <= score + slack) & (score - slack <= upper)).all():
        found.append("score outside its interval")
    # Certain by definition: the score of a system alone, the largest of percentages of the largest,
    # a place among systems that no draw changes.
    certain = len(score) == 1 or (draws == draws.round()).all(axis=(0, 1))
    if not ((np.ptp(draws, axis=(0, 1)) > 0.0) | certain).all():
        found.append("zero width")
    better = table["superiority"].values
    if not np.allclose(better + better.T, 1.0):
        found.append("superiority and its transpose are not one")
    if isinstance(data, Responses):
        _, same = np.unique(np.nan_to_num(data.values, nan=-7.0), axis=0, return_inverse=True)
        for group in range(same.max() + 1):
            if np.ptp(table["rank"].values[same.ravel() == group]) > 0:
                found.append("identical systems are not tied")
    again = ranked(call)
    if isinstance(again, str) or not again["posterior"].to_dataset().equals(
        result["posterior"].to_dataset()
    ):
        found.append("same seed, other draws")
    return found


def check(seeds: range, backends: frozenset[str]) -> None:
    broken = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for call in calls(seed, random_data(rng), backends=backends):
            broken += [f"{seed} {' '.join(call[1:])}: {one}" for one in findings(call)]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("seed", range(2))
def test_a_few_random_calls_keep_the_promises(seed):
    check(range(seed, seed + 1), frozenset({"bootstrap", "exact", "mle", "mml"}))


@pytest.mark.parametrize("method", ["bradley_terry_luce", "davidson_luce", "irt_2pl", "rasch"])
@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_a_system_alone_is_ranked(method, target):
    call = (Responses([[[0, 1], [1, 1], [0, 0]]]), method, "map", target)
    result = ranked(call)
    assert not isinstance(result, str)
    assert findings(call) == []
