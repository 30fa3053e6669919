"""The table of how often runs are flagged: what it promises, and a small part measured anew."""

import csv

import numpy as np
import pytest

pytest.importorskip("calibration", reason="the harness stays in the repository: run from its root")

from calibration.run_effects import DESIGNS, EFFECTS, TABLE, WORLDS, draw, measure
from calibration.worlds import Design


def table():
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_the_table_has_every_cell():
    cells = {(row["design"], row["world"], float(row["lower_by"])) for row in table()}
    assert cells == {
        (str(d), world, effect) for d in DESIGNS for world in WORLDS for effect in EFFECTS
    }
    assert all(int(row["n_tensors"]) >= 1000 for row in table())


def test_independent_trials_are_flagged_in_five_percent_or_less():
    assert max(float(row["flagged"]) for row in table() if row["lower_by"] == "0.0") <= 0.05


def test_the_promised_effect_is_found_in_four_of_five():
    rows = [row for row in table() if (row["design"], row["lower_by"]) == ("20x30x16", "0.35")]
    assert len(rows) == len(WORLDS)
    assert min(float(row["found"]) for row in rows) >= 0.8


@pytest.mark.parametrize("world", WORLDS)
def test_a_quarter_of_the_runs_of_one_system_is_worse(world):
    rng = np.random.default_rng(0)
    data, system = draw(Design(4, 200, 8), world, 0.5, rng)
    grades = np.where(data.observed, data.outcomes, np.nan)
    runs = np.nanmean(grades, axis=1)
    drops = runs.max(axis=1, keepdims=True) - runs > 0.2
    assert drops.sum(axis=1).tolist() == [2 * (i == system) for i in range(4)]
    assert (data.n_missing > 0) == (world == "missing")


@pytest.mark.parametrize("lower_by", [0.0, 0.35])
def test_a_cell_measured_anew(lower_by):
    share = measure(Design(8, 60, 16), "rasch", lower_by, 60)
    if lower_by:
        assert share.found >= 0.8
    else:
        assert share.flagged <= 0.12  # of 60 tensors, 7; more than that has a chance of 1 %
