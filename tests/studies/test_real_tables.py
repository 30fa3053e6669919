"""The published tables on the bundled example and on real data, in a short form."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from bayesrank import METHODS, PRESETS
from bayesrank.commands.studies import study
from bayesrank.studies.configurations import PUBLISHED, least_trials
from bayesrank.studies.scoring import scores_at_once

# Systems, and whether there are greedy runs, or others that stand in for them.
DATA = {
    "olympiad": (20, True),
    "farel_paired_sys": (38, True),
    "misguided_attention": (45, False),
    "evalperf": (31, False),
}
# One configuration of every family, and those that fit the most.
SHORT = (
    "avg",
    "bayes",
    "elo_tie_skip",
    "copeland",
    "kemeny_young_tie_half",
    "rank_centrality_tie_half",
    "bradley_terry",
    "bradley_terry_luce_map",
    "rasch",
    "rasch_mml",
)


@pytest.fixture(params=DATA)
def source(request) -> str:
    return request.param


@pytest.fixture
def inputs(source, request) -> list[str]:
    """Return the arguments that name the data; the bundled example needs none."""
    if source == "olympiad":
        return []
    return [str(request.getfixturevalue("shared") / "data" / f"{source}.npz")]


def make(inputs: list[str], folder: Path, *arguments: str) -> dict[str, pd.DataFrame]:
    result = CliRunner().invoke(study, [*inputs, *arguments, "-o", str(folder)])
    assert result.exit_code == 0, result.output
    return {path.stem: pd.read_csv(path) for path in folder.glob("*.csv")}


def check(tables: dict[str, pd.DataFrame], has_greedy: bool) -> None:
    expected = {"accuracy", "summary", "agreement", "stability", "pools"}
    expected |= {"greedy"} if has_greedy else set()
    assert set(tables) == expected
    for name in ("agreement", "stability", "pools"):
        taus = tables[name].filter(regex=r"^tau_(gold|others|mean)").to_numpy()
        assert (np.abs(taus[np.isfinite(taus)]) <= 1).all()
        assert np.isfinite(tables[name].drop(columns="methods").iloc[0].astype(float)).all()
    agreement = tables["agreement"]
    assert agreement["tau_gold"].iloc[0] == 1.0
    assert "bayes" in agreement["methods"].iloc[0].split(", ")


def members(table: pd.DataFrame) -> list[str]:
    return sorted(", ".join(table["methods"]).split(", "))


def test_every_family_is_in_the_short_form():
    families = {METHODS[PRESETS[name].method].family for name in PUBLISHED}
    assert {METHODS[PRESETS[name].method].family for name in SHORT} == families


def test_tables_in_short(source, inputs, tmp_path):
    options = ["--methods", ",".join(SHORT), "--draws", "2", "--pools", "1"]
    tables = make(inputs, tmp_path, *options)
    check(tables, DATA[source][1])
    for name in ("agreement", "stability", "pools"):
        assert members(tables[name]) == sorted(SHORT)


@pytest.mark.slow
def test_tables_of_all_configurations(source, inputs, tmp_path):
    tables = make(inputs, tmp_path, "--draws", "1", "--pools", "1")
    check(tables, DATA[source][1])
    lacking = set() if DATA[source][1] else {"bayes_greedy"}
    assert set(members(tables["agreement"])) == set(PUBLISHED) - lacking
    once = {name for name in PUBLISHED if least_trials(name) == 1} - lacking
    assert set(members(tables["stability"])) == once
    assert set(members(tables["pools"])) == set(filter(scores_at_once, once))
