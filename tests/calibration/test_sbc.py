"""Simulation-based calibration in short: it passes models that hold and not those that do not."""

import numpy as np
import pytest

pytest.importorskip("calibration", reason="the harness stays in the repository: run from its root")

from bayesrank import METHODS, Comparisons
from bayesrank.models import bradley_terry, observations
from calibration import factories, sbc, tables, uniformity
from calibration.store import COVERAGE, SBC, Store

N_SIMULATIONS = 40


def least_p(*, n_each, prior=1.0):
    """Return p-values of small Bradley-Terry models, of which draws may have another prior."""
    data = Comparisons(n_each * (1 - np.eye(4)))
    simulator = sbc.Simulator(bradley_terry(data, prior=prior), posterior=bradley_terry(data))
    ranks = simulator.ranks(1, range(N_SIMULATIONS))["ranks"]
    return {
        name: uniformity.uniformity(np.array(values), tables.KEPT).min() * np.shape(values)[1]
        for name, values in ranks.items()
    }


def test_a_model_that_holds_has_uniform_ranks():
    p = least_p(n_each=10)
    assert set(p) == {"score", "strength", sbc.LOG_DENSITY}
    assert min(p.values()) > 0.01


def test_prior_draws_that_are_not_of_the_prior_show():
    p = least_p(n_each=1, prior=2.0)
    assert max(p.values()) < 0.001


def test_data_that_are_not_of_the_likelihood_show(monkeypatch):
    original = observations._binomial_dist

    def half_the_logit(n, logit_p, size):
        return original(n, 0.5 * logit_p, size)

    monkeypatch.setattr(observations, "_binomial_dist", half_the_logit)
    assert min(least_p(n_each=10).values()) < 0.001


def test_every_factory_is_calibrated():
    sampled = {row.name for row in METHODS.values() if "nuts" in row.backends}
    missing = sampled - {one.method for one in factories.FACTORIES.values()}
    assert not missing, f"add {missing} to FACTORIES in calibration/factories.py"


def test_rankings_and_battles_are_of_the_size_of_the_responses():
    assert len(factories.template("rankings").grades.T) == 12 * 4
    battles = factories.template("battles")
    assert battles.first_wins.sum() + battles.second_wins.sum() == 8 * 12 * 4


# Tables


def row(chunk, ranks, name="davidson"):
    return {"key": [name, "8x12x4"], "chunk": chunk, "seconds": 0.1, "ranks": ranks}


def test_what_repeats_an_element_is_left_out():
    score = np.random.default_rng(0).integers(0, 101, (50, 3))
    tie = np.random.default_rng(1).integers(0, 101, (50, 1))
    ranks = {"score": score, "minus": 100 - score[:, 1:], "both": np.hstack([score, tie])}
    found = tables.rank_statistics([row(0, {name: r.tolist() for name, r in ranks.items()})])
    assert {variable: table.shape for (_, variable), table in found.items()} == {
        "score": (50, 3),
        "both": (50, 1),
    }


@pytest.mark.parametrize(
    ("first", "again", "passed"),
    [(1.0, None, True), (1.7, None, False), (1.7, 1.0, True), (1.7, 1.7, False)],
)
def test_a_variable_that_leaves_its_band_is_judged_by_a_repetition(first, again, passed):
    rng = np.random.default_rng(0)
    exponents = [first] if again is None else [first, again]
    shares = np.concatenate([rng.random((500, 2)) ** exponent for exponent in exponents])
    ranks = {("davidson", "score"): np.floor(101 * shares).astype(int)}
    (record,) = tables.summarize_sbc(ranks, {"davidson": 0.1})
    assert (record["adjusted_p"] < 0.01) == (first > 1.0)
    assert (record["repeated_p"] == "") == (again is None)
    assert record["pass"] is passed


def test_a_variable_of_many_elements_can_fail():
    ranks = {("bayes", "probability"): np.zeros((500, 300), dtype=int)}
    (record,) = tables.summarize_sbc(ranks, {"bayes": 0.1})
    assert not record["pass"]


def test_ranks_leave_the_band_as_often_as_stated():
    rng = np.random.default_rng(0)
    ranks = rng.integers(0, 101, (1000, 200, 1))
    shares = (ranks <= np.arange(100)).mean(axis=1)
    lower, upper = uniformity.band(200, 100, 0.1)
    outside = ((shares < lower) | (shares > upper)).any(axis=1)
    assert outside.mean() == pytest.approx(0.1, abs=0.03)


def test_tables_keep_what_has_no_results(tmp_path):
    docs, page = tmp_path / "docs", tmp_path / "docs" / "calibration.md"
    ranks = np.random.default_rng(0).integers(0, 101, (50, 2)).tolist()
    Store(tmp_path / SBC).add(row(0, {"score": ranks}))
    tables.publish(tmp_path, docs)
    assert not (docs / "calibration.csv").exists()
    assert (docs / "calibration_sbc.svg").read_text().startswith("<?xml")
    of_sbc = page.read_text()
    assert "| davidson | score | 2 | 50 |" in of_sbc

    (tmp_path / SBC).unlink()
    sums = {quantity: [19.0, 18.5] for quantity in tables.QUANTITIES}
    covered = {"simulations": 20, "undefined": 0, "error": "", "covered": sums}
    key = ["avg", "10x30x8", "benchmark", "rasch"]
    Store(tmp_path / COVERAGE).add({**row(0, {}), "key": key, **covered})
    tables.publish(tmp_path, docs)
    assert page.read_text().endswith(of_sbc)
    both = page.read_text()

    (tmp_path / COVERAGE).unlink()
    Store(tmp_path / SBC).add(row(0, {"score": ranks}))
    tables.publish(tmp_path, docs)
    assert page.read_text() == both
