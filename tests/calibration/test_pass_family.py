"""The simulations of metrics of k trials, and their stored table."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrank.methods.pass_family import pass_hat_k
from calibration.pass_family import PAGE, SMALL, TABLE, Cell, cells, measure, publish, simulate

DOCS = Path(__file__).parents[2] / "docs"


def test_rows_are_told_apart_and_have_seeds_of_their_own():
    keys = [cell.key for cell in cells()]
    assert len(set(keys)) == len(keys)
    cell = next(cells())
    assert measure(cell, 0, size=2) == measure(cell, 0, size=2) != measure(cell, 1, size=2)


@pytest.mark.parametrize("target", ["benchmark", "population"])
@pytest.mark.parametrize("truth", ["rasch", "u-shaped", "strong", "two kinds"])
def test_the_unbiased_estimate_is_right_on_average(truth, target):
    cell = Cell("pass_hat_k", {"k": 3}, SMALL, truth, "complete", target)
    errors = []
    for seed in range(200):
        data, score = simulate(cell, np.random.default_rng(seed))
        errors.append(pass_hat_k(*data.binary_counts, k=3).mean() - score.mean())
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))


def test_ragged_trials_leave_two_of_every_question():
    cell = Cell("pass_at_k", {"k": 2}, SMALL, "rasch", "ragged", "benchmark")
    trials = simulate(cell, np.random.default_rng(0))[0].trials
    assert trials.min() == 2
    assert trials.mean() == pytest.approx(2 + 0.8 * 2, abs=0.1)


def test_worse_answers_of_max_at_k_are_half_right_half_of_the_time():
    cell = Cell("max_at_k", {"k": 2}, SMALL, "u-shaped", "complete", "population")
    data, truth = simulate(cell, np.random.default_rng(0))
    shares = data.counts.sum(axis=(0, 1)) / data.trials.sum()
    assert shares[0] == pytest.approx(shares[1], abs=0.04)
    assert ((truth > 0.25) & (truth < 1)).all()


def test_the_promise_is_kept_in_every_stored_row(tmp_path):
    table = pd.read_csv(DOCS / TABLE)
    assert [tuple(row) for row in table[table.columns[:7]].astype(str).to_numpy()] == [
        cell.key for cell in cells()
    ]
    promised = table[(table["estimator"] == "unbiased") & (table["truth"] != "two kinds")]
    assert (promised["tensors"] >= 1000).all()
    assert (promised[["score", "difference"]] >= 0.935).all(axis=None)
    # Intervals are too wide where most scores are near an end of the range.
    near_an_end = promised["options"].isin(["k=8", "k=41", "k=80"]) | (
        promised["truth"] == "strong"
    )
    assert (promised.loc[~near_an_end, ["score", "difference"]] <= 0.9725).all(axis=None)
    (tmp_path / TABLE).write_text((DOCS / TABLE).read_text())
    publish(tmp_path)
    assert (tmp_path / PAGE).read_text() == (DOCS / PAGE).read_text()
