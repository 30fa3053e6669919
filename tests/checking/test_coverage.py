"""What is said of calibration: only what was measured, and the figure where it failed."""

import numpy as np
import pytest
import xarray as xr

from bayesrank import METHODS, PRESETS, Comparisons, Responses, rank
from bayesrank.checking import check, coverage
from bayesrank.checking.coverage import COLUMNS, KINDS, Cell, kinds_of, measured
from bayesrank.checking.design import design_of
from bayesrank.results.tree import data_groups

OPTIONS = {"draws": 150, "random_seed": 0}


def simulate(shape=(6, 40, 4), seed=1):
    rng = np.random.default_rng(seed)
    chances = rng.uniform(0.2, 0.8, shape[:2])[..., np.newaxis]
    return (rng.random(shape) < chances).astype(int)


def cell(kind="complete", size=(5, 40, 3), *, passes=True, method="avg", target="benchmark"):
    fails, worst = ("", float("nan")) if passes else ("score", 0.912)
    return Cell(method, "", target, kind, kind, size, 0.951, 0.949, 1000, passes, fails, worst)


@pytest.fixture
def table(monkeypatch):
    """Return a function that puts cells in the place of what was measured."""

    def put(*cells):
        monkeypatch.setattr(coverage, "measured", lambda: cells)

    return put


def found(data, method="avg", **options):
    result = rank(data, method, **OPTIONS | options)
    (finding,) = check(result, data if isinstance(data, Responses) else None).about("coverage")
    return finding


# Kinds of designs


def kinds(outcomes, **options):
    groups = data_groups(Responses(outcomes, **options), "grades")
    return kinds_of(design_of(groups["observed_data"], groups["constant_data"]))


def test_kinds_of_designs():
    complete = simulate()
    assert kinds(complete) == ("complete",)
    holes, uneven, alike = (complete.copy() for _ in range(3))
    holes[::2, ::3, 3] = holes[1::2, 1::3, 3] = -1
    assert kinds(holes) == ("missing",)
    holes[:, ::3, 1:] = -1
    assert kinds(holes) == ("missing", "unequal")
    holes[:, 1::3, 3] = 0
    assert kinds(holes) == ("unequal",)
    uneven[0, 3:] = -1
    assert kinds(uneven) == ("missing", "uneven")
    alike[2] = 1
    assert kinds(alike) == ("alike",)
    assert kinds(np.random.default_rng(0).random((3, 20, 2))) == ("grades",)
    assert kinds(complete + (complete > 0) * complete, weights=[0, 0.5, 1]) == ("grades",)


# The verdict


def test_a_design_that_was_measured_and_held_is_good(table):
    table(cell())
    finding = found(Responses(simulate()))
    assert finding.verdict == "good"
    assert "5 systems, 40 questions, 3 trials" in finding.sentence
    assert finding.numbers["coverage_score"] == [0.951]
    assert finding.numbers["n_tensors"] == [1000]


def test_a_design_that_failed_is_doubtful_with_the_figure(table):
    table(cell(passes=False))
    finding = found(Responses(simulate()))
    assert finding.verdict == "doubtful"
    assert "91.2 %" in finding.sentence
    assert "too narrow" in finding.sentence


@pytest.mark.parametrize("size", [(7, 40, 3), (5, 41, 3), (5, 40, 5)])
def test_smaller_than_all_that_was_measured_is_not_measured(table, size):
    table(cell(size=size))
    assert found(Responses(simulate())).verdict == "not measured"


def test_the_largest_designs_within_are_those_that_count(table):
    table(cell(size=(5, 30, 3), passes=False), cell(size=(5, 40, 3)))
    assert found(Responses(simulate())).verdict == "good"
    table(cell(size=(5, 30, 3)), cell(size=(5, 40, 3), passes=False))
    assert found(Responses(simulate())).verdict == "doubtful"


def test_where_every_design_failed_smaller_data_are_doubtful_too(table):
    table(cell(size=(10, 100, 8), passes=False), cell(size=(20, 100, 8), passes=False))
    assert found(Responses(simulate())).verdict == "doubtful"


@pytest.mark.parametrize("kind", ["missing", "unequal", "alike", "grades"])
def test_every_kind_of_the_design_must_have_been_measured(table, kind):
    outcomes = simulate().astype(float)
    if kind == "missing":
        outcomes[::2, ::4, 2:] = outcomes[1::2, 1::4, 2:] = np.nan
    elif kind == "unequal":
        outcomes[:, ::4, 1:] = np.nan
    elif kind == "alike":
        outcomes[1] = 0
    else:
        outcomes = np.abs(outcomes - 0.1)
    table(cell())
    finding = found(Responses(outcomes))
    assert finding.verdict == "not measured"
    assert KINDS[kind] in finding.sentence
    table(cell(), cell(kind))
    assert found(Responses(outcomes)).verdict == "good"
    table(cell(), cell(kind, passes=False))
    assert found(Responses(outcomes)).verdict == "doubtful"


def test_more_holes_than_were_simulated_are_not_measured(table):
    outcomes = simulate()
    outcomes[::2, :16] = outcomes[1::2, 16:32] = -1
    table(cell("missing"))
    finding = found(Responses(outcomes))
    assert finding.verdict == "not measured"
    assert "40 % of the outcomes are missing" in finding.sentence


def test_the_target_and_the_way_of_ranking_must_be_those_that_were_measured(table):
    data = Responses(simulate())
    table(cell(target="population"), cell(method="borda"))
    assert found(data).verdict == "not measured"
    assert found(data, target="population").verdict == "good"
    assert found(data, "borda").verdict == "good"
    assert found(data, "win_rate").verdict == "not measured"


def test_prior_and_calibration_must_be_those_that_were_measured(table):
    data = Responses(simulate((6, 40, 8)))
    table(cell(method="bradley_terry_map"))
    assert found(data, "bradley_terry_map").verdict == "good"
    # The same by another name:
    assert found(data, "bradley_terry", backend="map", prior=1.0).verdict == "good"
    assert found(data, "bradley_terry_map", prior=2.0).verdict == "not measured"
    assert found(data, "bradley_terry_map", ties="half").verdict == "not measured"


def test_battles_were_not_simulated():
    data = Comparisons([[0, 40, 30], [20, 0, 25], [15, 18, 0]])
    finding = found(data, "bradley_terry_map")
    assert finding.verdict == "not measured"
    assert "battles" in finding.sentence


# Intervals that cannot be right


def broken(system, **ends):
    result = rank(Responses(simulate()), "avg", **OPTIONS)
    ranking = result["ranking"].to_dataset()
    for name, value in ends.items():
        values = ranking[name].values.copy()
        values[system] = value(ranking, system)
        ranking[name] = ("system", values)
    result["ranking"] = xr.DataTree(ranking)
    return check(result)


def test_an_interval_without_width_is_bad():
    report = broken(
        2,
        score_lower=lambda ranking, i: ranking["score"].values[i],
        score_upper=lambda ranking, i: ranking["score"].values[i],
    )
    (finding,) = report.about("zero width")
    assert finding.verdict == "bad"
    assert finding.numbers["systems"] == ["system 3"]
    assert not report.about("coverage")


def test_the_largest_of_relative_scores_is_known_by_definition():
    outcomes = np.random.default_rng(0).random((4, 40, 8)) < np.linspace(0.2, 0.9, 4)[:, None, None]
    result = rank(Responses(outcomes.astype(int)), "rankllm", **OPTIONS)
    ranking = result["ranking"].to_dataset()
    assert (ranking["score_upper"] - ranking["score_lower"]).min() == 0
    assert not check(result).about("zero width")


@pytest.mark.parametrize(("end", "sign"), [("score_lower", 1), ("score_upper", -1)])
def test_a_score_outside_its_interval_is_bad(end, sign):
    (finding,) = broken(
        4, **{end: lambda ranking, i: ranking["score"].values[i] + sign * 1e-3}
    ).about("outside")
    assert finding.verdict == "bad"
    assert finding.numbers["systems"] == ["system 5"]


def test_scores_inside_their_intervals_say_nothing():
    report = check(rank(Responses(simulate()), "avg", **OPTIONS))
    assert not report.about("outside")
    assert not report.about("zero width")


def test_a_score_that_is_a_quantile_may_lie_outside():
    result = rank(Responses(simulate()), "bayes", quantile=0.001, **OPTIONS)
    assert not check(result).about("outside")


# The table


def test_the_table_names_methods_that_exist():
    assert measured()
    for row in measured():
        assert row.method in PRESETS or row.method in METHODS
        assert row.kind in KINDS
        assert row.passes == (row.fails == "") == np.isnan(row.worst)
        assert 0 <= row.score <= 1 <= row.n_tensors
    assert len(COLUMNS) == 14


@pytest.mark.parametrize("method", ["avg", "borda", "bradley_terry"])
def test_published_designs_are_found_in_the_table(method):
    data = Responses(simulate((10, 30, 8)))
    assert found(data, method).verdict == "good"


@pytest.mark.parametrize("kind", ["complete", "missing", "alike", "grades"])
@pytest.mark.parametrize("shape", [(8, 45, 4), (20, 60, 3), (8, 50, 1)])
def test_the_default_method_is_good_on_what_people_bring(shape, kind):
    rng = np.random.default_rng(3)
    outcomes = simulate(shape, seed=3).astype(float)
    if kind == "missing":
        outcomes[rng.random(shape) < 0.15] = np.nan
    elif kind == "alike":
        outcomes[2] = 1
    options = {}
    if kind == "grades":
        outcomes, options = np.round(100 * rng.random(shape)), {"scale": (0, 100)}
    finding = found(Responses(outcomes, paired=False, **options), None)
    assert finding.verdict == "good", finding.sentence


def test_the_default_method_is_not_measured_on_anything_smaller():
    for shape in ((5, 45, 4), (8, 39, 4), (8, 45, 2)):
        data = Responses(simulate(shape, seed=3), paired=False)
        assert found(data, None).verdict == "not measured"


def test_bayes_is_not_said_to_be_calibrated_on_a_benchmark():
    finding = found(Responses(simulate((10, 30, 8))), "bayes", target="benchmark")
    assert finding.verdict == "doubtful"
    assert finding.numbers["coverage"] < 0.9


@pytest.mark.parametrize("shape", [(8, 250, 1), (6, 500, 1)])
def test_a_shrunken_score_is_not_said_to_be_calibrated(shape):
    # Its simulated truths are shrunk as it is: they are not the accuracy of the system.
    outcomes = (np.random.default_rng(0).random(shape) < 0.25).astype(int)
    finding = found(Responses(outcomes), "bayes")
    assert finding.verdict == "not measured"
    assert "scores depend on the prior" in finding.sentence
