"""A short version of `make calibrate`: what is calibrated holds, and what is not does not."""

import dataclasses

import numpy as np
import pytest

pytest.importorskip("calibration", reason="the harness stays in the repository: run from its root")

from calibration import cells, configurations, worlds

DESIGN = worlds.Design(6, 20, 8)
N_CHUNKS = 5
# The mean of 100 tensors has a standard error of one percentage point.
LEAST, MOST = 0.915, 0.985


def coverage(name, target, *, quantity="difference 95", **options):
    configuration = next(one for one in configurations.configurations() if one.name == name)
    options = {**configuration.options, **options}
    configuration = dataclasses.replace(configuration, options=options)
    cell = cells.Cell(configuration, cells.Setting(DESIGN, target, "rasch"))
    rows = [cells.measure([cell], chunk, np.inf)[0] for chunk in range(N_CHUNKS)]
    return sum(row["covered"][quantity][0] for row in rows) / sum(
        row["simulations"] for row in rows
    )


@pytest.mark.parametrize(
    "name", ["bradley_terry", "bradley_terry_luce", "davidson_luce_map", "rasch_map", "bayes"]
)
def test_intervals_hold_for_other_questions(name):
    assert LEAST < coverage(name, "population") < MOST


@pytest.mark.parametrize("name", ["bradley_terry_luce", "davidson_luce_map", "rasch_map"])
def test_intervals_hold_for_other_trials(name):
    assert LEAST < coverage(name, "benchmark") < MOST


def test_naive_posteriors_do_not_hold():
    assert coverage("bradley_terry_luce (naive)", "population") < LEAST - 0.03


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_scores_of_few_values_hold_at_least(target):
    assert coverage("copeland", target, quantity="score 95") > LEAST
