"""Every method and published configuration on data at the edge: score, tie or named error.

The table ``edge_cases.csv`` beside this file says what each does; ``make edge-cases`` writes it
anew, after a deliberate change or for a new method.
"""

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from bayesrank import METHODS, PRESETS, Responses, rank
from bayesrank.errors import ConvergenceWarning, NoFiniteEstimate
from bayesrank.method import LIKELIHOOD_BACKENDS
from bayesrank.results.ranks import tie_groups

TABLE = Path(__file__).with_name("edge_cases.csv")
REMEDY = "if this is what you want, run `make edge-cases` and look at the difference"
TIES = ("all tied", "some tied", "score")


class Configuration(NamedTuple):
    """A name that rank() takes, and a back end."""

    name: str
    backend: str


def configurations() -> Iterator[Configuration]:
    """Yield every preset, and every method that is none with its default back end.

    Not with NUTS, whose posterior is that of map: draws of it tell nothing more about the edge.
    """
    for name, preset in PRESETS.items():
        if preset.backend != "nuts":
            yield Configuration(name, preset.backend)
    for name, row in METHODS.items():
        if name not in PRESETS:
            yield Configuration(name, row.backends[0])


def edge_data() -> dict[str, Responses]:
    """Return one small data set per edge case."""
    rng = np.random.default_rng(11)
    cycle = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1]])[:, :, np.newaxis].repeat(2, axis=2)
    ordinary = (rng.random((4, 6, 3)) < np.linspace(0.2, 0.8, 4)[:, None, None]).astype(int)
    holes = np.where(rng.random(ordinary.shape) < 0.3, -1, ordinary)
    holes[0, 0] = -1
    greedy = ordinary[..., :1]
    same = np.tile(ordinary[1], (3, 1, 1))
    return {
        "cyclic": Responses(cycle, prior_outcomes=cycle[..., :1]),
        "all_tied": Responses(same, prior_outcomes=same[..., :1]),
        "single_question": Responses(ordinary[:, :1], prior_outcomes=greedy[:, :1]),
        "single_trial": Responses(ordinary[..., :1], prior_outcomes=greedy),
        "two_systems": Responses(ordinary[:2], prior_outcomes=greedy[:2]),
        "all_right": Responses(np.ones((3, 4, 2), int), prior_outcomes=np.ones((3, 4, 1), int)),
        "all_wrong": Responses(np.zeros((3, 4, 2), int), prior_outcomes=np.zeros((3, 4, 1), int)),
        "missing_cells": Responses(holes, prior_outcomes=greedy),
    }


def options_of(name: str) -> dict[str, Any]:
    """Return what a name needs besides data: nothing for a preset, k = 2 where there is a k."""
    if name in PRESETS:
        return {}
    row = METHODS[name]
    return {**row.example, **({"k": 2} if "k" in row.options else {})}


def outcome(configuration: Configuration, data: Responses) -> str:
    """Say in a word what a configuration does with data."""
    name, backend = configuration
    options = options_of(name)
    try:
        result = rank(data, name, backend=backend, draws=0, **options)
    except (ValueError, ConvergenceWarning) as error:
        return type(error).__name__
    ranking = result["ranking"].to_dataset()
    assert np.isfinite(ranking["score"]).all()
    assert ranking["rank"].min() == 1
    # Compiled fits leave 1e-17 where a score is zero.
    compiled = name in METHODS and METHODS[name].kernel is None and backend in LIKELIHOOD_BACKENDS
    tied = tie_groups(ranking["score"].values.round(12)) if compiled else ranking["tie_group"]
    groups = len(np.unique(tied))
    return {1: "all tied", len(data.systems): "score"}.get(groups, "some tied")


def read_table() -> dict[tuple[str, str, str], str]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            (row["name"], row["backend"], row["case"]): row["outcome"]
            for row in csv.DictReader(file)
        }


DATA = edge_data()
CONFIGURATIONS = list(configurations())


@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids="-".join)
def test_outcome_is_the_one_in_the_table(configuration: Configuration, case: str):
    expected = read_table().get((*configuration, case), "nothing")
    found = outcome(configuration, DATA[case])
    assert found == expected, f"the table has {expected!r}; {REMEDY}"


def test_the_table_has_every_method_and_no_other():
    rows = {(*configuration, case) for configuration in CONFIGURATIONS for case in DATA}
    differing = sorted(set(read_table()) ^ rows)
    assert not differing, f"rows of one side only: {differing[:9]}; {REMEDY}"
    assert set(METHODS) <= {PRESETS[n].method if n in PRESETS else n for n, _, _ in rows}


def test_methods_without_likelihood_raise_only_where_they_may():
    """Only k above N, and Rank Centrality on data that do not connect all systems, may raise."""
    for (name, backend, case), word in read_table().items():
        if backend in LIKELIHOOD_BACKENDS or word in TIES:
            continue
        row = METHODS[PRESETS[name].method if name in PRESETS else name]
        if name == "rank_centrality_tie_ignore":
            assert word == NoFiniteEstimate.__name__
        else:
            assert {"k", "threshold_weights"} & set(row.options)
            assert case in ("single_trial", "missing_cells")
            with pytest.raises(ValueError, match="k must be at most the number of"):
                rank(DATA[case], name, draws=0, **options_of(name))


def test_likelihoods_raise_by_name():
    """A maximum may not exist; with a prior, only two factors need more than a little."""
    for (name, backend, case), word in read_table().items():
        if backend not in LIKELIHOOD_BACKENDS or word in TIES:
            continue
        if backend == "mle":
            assert word == NoFiniteEstimate.__name__
        else:  # its two factors need three systems and three questions
            assert name == "mirt"
            assert case in ("single_question", "two_systems")


if __name__ == "__main__":
    warnings.simplefilter("error")
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "backend", "case", "outcome"])
        writer.writerows(
            [*configuration, case, outcome(configuration, data)]
            for configuration in CONFIGURATIONS
            for case, data in DATA.items()
        )
