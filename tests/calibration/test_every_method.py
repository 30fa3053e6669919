"""The simulations of every method on the designs that people bring."""

from pathlib import Path

import numpy as np
import pytest

from calibration import every_method
from calibration.configurations import configurations
from calibration.every_method import SIZE_OF_RUNS, Setting, Truth, measure
from calibration.every_method_page import REASONS, RUNS, is_low, page, publish, table
from calibration.store import Store
from calibration.worlds import Design


@pytest.mark.parametrize(
    "setting",
    [
        Setting(Design(3, 12, 1), "hardest skipped"),
        Setting(Design(3, 12, 4), "grades"),
        Setting(SIZE_OF_RUNS, RUNS),
    ],
    ids=str,
)
def test_observed_means_exceed_those_expected_by_nothing_on_average(setting):
    rng = np.random.default_rng(3)
    truth = Truth.draw(setting, "beta", rng)
    drawn = [truth.simulate(rng) for _ in range(400)]
    excess = np.array([above for _, above in drawn])
    error = excess.std(axis=0) / len(excess) ** 0.5
    # Shifts of the logit move the mean of chances beyond 1/2 by a little less than nothing.
    slack = 0.03 if setting.design == RUNS else 0.0
    assert (np.abs(excess.mean(axis=0)) < 4.0 * error + slack).all()
    assert len({data.observed.tobytes() for data, _ in drawn[:9]}) == (
        1 if setting.target == "benchmark" else 9
    )


def test_a_chunk_is_measured_stored_and_shown(monkeypatch, tmp_path):
    monkeypatch.setattr(every_method, "CHUNK", 4)
    monkeypatch.setattr(every_method, "N_FITS", 10)
    setting = Setting(Design(4, 10, 2), "always right")
    rows = measure(setting, 0, ["avg", "bayes_ci", "bradley_terry", "rasch_map"], 10.0)
    again = measure(setting, 0, ["avg"], 10.0)
    assert again[0] == rows[0]
    store = Store(tmp_path / "every_method.jsonl")
    store.add(*rows)
    shown = table(store)
    by_name = {row["configuration"]: row for row in shown if row["quantity"] == "score"}
    assert by_name["avg"]["n_tensors"] == by_name["rasch_map"]["n_tensors"] == "4"
    assert 0.5 < float(by_name["bayes_ci"]["coverage"]) <= 1.0
    # No maximum-likelihood estimate of a system that always wins exists.
    assert by_name["bradley_terry"]["n_undefined"] == "4"
    text = page(shown)
    assert "## 2 trials, benchmark" in text
    assert "- always right, 2 trials: bradley_terry\n" in text


def test_the_truth_of_grades_has_their_unit():
    setting = Setting(Design(3, 30, 4), "grades")
    truth = Truth.draw(setting, "rasch", np.random.default_rng(1))
    rng = np.random.default_rng(2)
    fresh = [truth.simulate(rng) for _ in range(every_method.N_DATA_SETS)]
    (avg,) = (one for one in configurations() if one.name == "avg")
    goal = every_method.goal_of(avg, setting.target, fresh)
    np.testing.assert_allclose(goal, 100.0 * truth.chances.mean(axis=1), atol=1.0)


def test_the_published_tables_are_those_of_what_is_stored(tmp_path):
    store = Store(every_method.RESULTS)
    publish(store, tmp_path)
    for name in ("calibration_every_method.csv", "every_method.md"):
        assert (tmp_path / name).read_text() == (Path(every_method.DOCS) / name).read_text()
    low = {row["configuration"] for row in table(store) if row["coverage"] and is_low(row)}
    # A failure has its reason on the page.
    assert low <= set(REASONS)
