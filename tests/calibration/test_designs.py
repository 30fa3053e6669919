"""The simulations of the designs that people bring, and their stored table."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration.designs import (
    HOLES,
    SIZES,
    Cell,
    Design,
    measure,
    publish,
    simulate,
)

STORED = Path(__file__).parents[2] / "docs" / "calibration_designs.csv"


@pytest.mark.parametrize("holes", HOLES)
def test_tensors_have_the_holes_of_their_name(holes):
    tensor = simulate(Design(6, 20, 3), holes, "beta", np.random.default_rng(1))
    data = tensor.data
    missing = ~data.observed
    expected = {
        "hardest skipped": 3 * 4 * 3,
        "three questions": 17 * 3,
        "unequal trials": 6 * 13 * 2,
        "complete": 0,
        "always right": 0,
        "grades": 0,
    }
    assert missing.sum() == expected.get(holes, missing.sum())
    assert missing.any() == (expected.get(holes, 1) > 0)
    if holes == "always right":
        assert tensor.observed_mean[0] == tensor.truth["benchmark"][0] == 1.0
    high = 100.0 if holes == "grades" else 1.0
    for truth in tensor.truth.values():
        assert ((truth >= 0) & (truth <= high)).all()


def test_a_chunk_is_measured_as_the_table_says(monkeypatch):
    monkeypatch.setattr("calibration.designs.CHUNK", 4)
    cell = Cell("avg", Design(4, 10, 2), "complete")
    found = measure(cell, 0)
    assert found == measure(cell, 0)
    assert found["target"] == "benchmark"
    assert 0.0 < found["score"] <= 4.0
    assert found["error"] == pytest.approx(found["error_of_mean"])


def test_the_default_holds_its_promise_in_every_stored_row(tmp_path):
    table = pd.read_csv(STORED)
    default = table[table["method"] == "standardized_accuracy"]
    single = sum(size.n_trials == 1 for size in SIZES)  # without "unequal trials"
    assert len(default) == len(SIZES) * len(HOLES) - single
    assert (default["n_tensors"] >= 1000).all()
    assert default["passes"].all()
    assert default["coverage_score"].between(0.935, 0.97).all()
    assert default["coverage_difference"].between(0.935, 0.97).all()
    complete = default[default["design"].isin(["complete", "always right", "grades"])]
    assert (complete["error_ratio"] == 1.0).all()
    publish(table, tmp_path)
    for name in ("calibration_designs.csv", "designs.md"):
        assert (tmp_path / name).read_text() == (STORED.parent / name).read_text()
