"""The table of what was measured, in the package, is made of the published tables."""

import csv

import pandas as pd
import pytest

pytest.importorskip("calibration", reason="the harness stays in the repository: run from its root")

from bayesrank.checking.coverage import COLUMNS, KINDS, TABLE
from calibration.designs import _KEYS, HOLES
from calibration.measured import DOCS, KIND_OF_DESIGN, measured_rows


def test_the_table_of_the_package_is_up_to_date():
    with TABLE.open(encoding="utf-8", newline="") as lines:
        kept = list(csv.DictReader(lines))
    assert kept == measured_rows(DOCS), "make it anew: python -m calibration.measured"


def test_designs_of_people_become_rows(tmp_path):
    (tmp_path / "calibration.csv").write_text((DOCS / "calibration.csv").read_text())
    rows = [
        ("avg", 8, 40, 4, "always right", "benchmark", 1000, 0.951, 0.947),
        ("avg", 8, 40, 4, "grades", "benchmark/population", 1000, 0.968, 0.902),
    ]
    columns = [*_KEYS, "target", "n_tensors", "coverage_score", "coverage_difference"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "calibration_designs.csv", index=False)
    held, failed, again = measured_rows(tmp_path)[-3:]
    assert (failed["target"], again["target"]) == ("benchmark", "population")
    assert tuple(sorted(held)) == tuple(sorted(COLUMNS))
    assert (held["kind"], held["passes"], held["fails"]) == ("alike", "True", "")
    assert (failed["kind"], failed["fails"], failed["worst"]) == ("grades", "difference", "0.902")


def test_designs_must_be_known(tmp_path):
    (tmp_path / "calibration.csv").write_text((DOCS / "calibration.csv").read_text())
    (tmp_path / "calibration_designs.csv").write_text("method,design\navg,strange\n")
    with pytest.raises(ValueError, match="got 'strange'"):
        measured_rows(tmp_path)
    assert set(KIND_OF_DESIGN) == set(HOLES)
    assert set(KIND_OF_DESIGN.values()) == set(KINDS)
