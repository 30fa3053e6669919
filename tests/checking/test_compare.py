"""Comparison of models by what they predict: the right winner, and the right observations."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import bayesrank as br
from bayesrank import Comparisons, Responses, rank
from bayesrank.catalog import METHODS
from bayesrank.checking import compare
from bayesrank.checking.compare import _units
from bayesrank.results.agreement import compare_rankings

OPTIONS = {"draws": 250, "random_seed": 0, "log_likelihood": True}


def simulate(*, discrimination=0.0, seed=1, shape=(8, 20, 12)) -> Responses:
    rng = np.random.default_rng(seed)
    slope = np.exp(discrimination * rng.normal(size=shape[1]))
    ability, difficulty = rng.normal(size=(shape[0], 1)), rng.normal(size=shape[1])
    chance = 1 / (1 + np.exp(-slope * (ability - difficulty)))
    return Responses((rng.random(shape) < chance[..., np.newaxis]).astype(int))


def rasch(data, **options):
    options = {"backend": "map", "prior": 1.0, "difficulty_prior": "hierarchical"} | options
    return rank(data, "rasch", **options, **OPTIONS)


@pytest.mark.parametrize("unit", ["cell", "question"])
@pytest.mark.filterwarnings("ignore::UserWarning")  # Pareto k of left-out questions
def test_questions_that_discriminate_need_slopes(unit):
    data = simulate(discrimination=1.0)
    found = compare({"rasch": rasch(data), "2pl": rank(data, "irt_2pl", **OPTIONS)}, unit=unit)
    assert found.index[0] == "2pl"
    difference = found.loc["rasch", "elpd"] - found.loc["2pl", "elpd"]
    assert found.loc["rasch", "elpd_diff"] == pytest.approx(difference)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pareto k of left-out questions
def test_names_may_hold_the_bar_of_labels():
    data = simulate(shape=(4, 6, 10))
    named = Responses(data.outcomes, systems=[f"a | {i}" for i in range(4)])
    elpd = [
        compare({"one": rasch(each), "two": rasch(each)}, unit="question").loc["one", "elpd"]
        for each in (data, named)
    ]
    assert elpd[0] == pytest.approx(elpd[1], rel=0.02)


def test_results_need_names():
    with pytest.raises(ValueError, match="results must be a mapping of names; got list"):
        compare([rank([[1, 0]], "avg", draws=0)] * 2)


def test_one_observation_is_too_few():
    result = rank(Comparisons([[0, 3], [1, 0]]), "bradley_terry", **OPTIONS)
    with pytest.raises(ValueError, match="two observations or more; got one"):
        compare({"one": result, "two": result})


def test_binomial_coefficients_are_taken_out():
    # A density of ordered answers is below one; binomial counts of cells make more of it.
    data = simulate(shape=(4, 6, 10))
    result = rasch(data)
    cells = result["log_likelihood"]["correct"]
    answers = _units("rasch", result, "cell")
    counts = result["observed_data"]["counts"]
    chance = 1 / (1 + np.exp(result["posterior"]["difficulty"] - result["posterior"]["score"]))
    expected = counts[..., 1] * np.log(chance) + counts[..., 0] * np.log(1 - chance)
    np.testing.assert_allclose(
        answers.sum("unit"), expected.sum(("system", "question")).transpose("chain", "draw")
    )
    assert (answers.sum("unit") < cells.sum("cell")).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_models_of_change_are_compared_by_run():
    data = simulate(shape=(5, 10, 6))
    options = {"assume_time_axis": True, "difficulty_prior": "normal(0, 1)", **OPTIONS}
    growth = rank(data, "dynamic_irt", **options)
    stiff = rank(data, "dynamic_irt", slope_prior="normal(0, 0.01)", **options)
    assert compare({"growth": growth, "stiff": stiff}).index[0] == "stiff"
    with pytest.raises(ValueError, match="results must describe the same observations"):
        compare({"growth": growth, "rasch": rasch(data)})


def test_battles_are_compared_by_pair():
    rng = np.random.default_rng(0)
    score = np.linspace(-1, 1, 5)
    chance = 1 / (1 + np.exp(score - score[:, np.newaxis]))
    wins = np.triu(rng.binomial(60, chance), 1)
    data = Comparisons(wins + np.tril(60 - wins.T, -1))
    close = rank(data, "bradley_terry", backend="map", prior=1.0, **OPTIONS)
    none = rank(data, "bradley_terry", backend="map", prior=0.01, **OPTIONS)
    with np.errstate(all="ignore"):
        found = compare({"close": close, "all alike": none})
    assert found.index[0] == "close"


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_a_model_of_your_own_is_compared():
    row = METHODS["bradley_terry"]
    mine = replace(row, name="mine", gradient=None, kernel=None, composite=False)
    battles = Comparisons([[0, 9, 12], [4, 0, 8], [3, 5, 0]])
    results = {
        name: rank(battles, method, backend="map", prior=1.0, **OPTIONS)
        for name, method in {"theirs": "bradley_terry", "own": mine}.items()
    }
    assert compare(results)["elpd_diff"].abs().max() < 0.5


def test_data_of_a_model_in_place_of_those_of_a_result_are_refused():
    """PyMC puts the data of its model there where it extends a tree by predictive draws."""
    data = simulate(shape=(4, 6, 4))
    result = rasch(data)
    counts = (np.asarray(data.outcomes) == 1).sum(axis=-1).ravel()
    result["observed_data"] = xr.DataTree(xr.Dataset({"correct": ("cell", counts)}))
    message = "result must have the data that rank.. kept in it; got correct of a PyMC model"
    for call in (
        lambda: br.check(result, data),
        lambda: compare({"a": rasch(data), "b": result}),
        lambda: br.report(result, "report.html"),
        lambda: br.plot_questions(result),
        lambda: br.plot_win_rates(result),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert br.leaderboard(result)["rank"].tolist()


def test_composite_likelihoods_predict_nothing():
    data = simulate()
    pairs = rank(data, "bradley_terry", backend="map", prior=1.0, **OPTIONS)
    with pytest.raises(ValueError, match="got pairs, whose composite likelihood counts answers"):
        compare({"rasch": rasch(data), "pairs": pairs})


def test_results_must_be_comparable():
    data = simulate(shape=(4, 6, 4))
    one = rasch(data)
    with pytest.raises(ValueError, match="results must be two or more; got 1"):
        compare({"rasch": one})
    with pytest.raises(ValueError, match="unit must be 'cell' or 'question'; got 'trial'"):
        compare({"a": one, "b": one}, unit="trial")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="results must be of the same data"):
        compare({"a": one, "b": rasch(simulate(shape=(4, 6, 4), seed=2))})
    without = rank(data, "rasch", draws=10, random_seed=0)
    with pytest.raises(ValueError, match="got none for b: rank with log_likelihood=True"):
        compare({"a": one, "b": without})


def test_questions_that_a_model_left_out_cannot_be_compared():
    outcomes = simulate(shape=(4, 6, 4)).outcomes.copy()
    outcomes[:, 0] = 1
    data = Responses(outcomes)
    flat = rank(data, "irt_2pl", backend="map", difficulty_prior="flat", **OPTIONS)
    with pytest.raises(ValueError, match="results must describe the same observations"):
        compare({"all": rasch(data), "fewer": flat})


# Battles with ties


@pytest.fixture(scope="module", params=[(5, 1), (12, 2)], ids=["5 systems", "12 systems"])
def battles(request):
    """Return results of models of the same battles, by name, with the log-likelihood."""
    n_systems, seed = request.param
    rng = np.random.default_rng(seed)
    gap = np.subtract.outer(*(2 * [np.linspace(-1, 1, n_systems)]))
    wins, ties = np.zeros((2, n_systems, n_systems))
    for i, j in zip(*np.triu_indices(n_systems, 1), strict=True):
        chances = np.array([np.exp(gap[i, j]), np.exp(-gap[i, j]), 0.8])
        wins[i, j], wins[j, i], ties[i, j] = rng.multinomial(30, chances / chances.sum())
        ties[j, i] = ties[i, j]
    data, options = Comparisons(wins, ties), {"backend": "map", "prior": 1.0, **OPTIONS}
    return {
        "bradley_terry": rank(data, "bradley_terry", **options),
        "half": rank(data, "bradley_terry", ties="half", **options),
        "plackett_luce": rank(data, "plackett_luce", **options),
        "davidson": rank(data, "davidson", **options),
        "rao_kupper": rank(data, "rao_kupper", tie_strength=None, **options),
    }


@pytest.mark.parametrize(
    "pair",
    [("bradley_terry", "davidson"), ("half", "davidson"), ("bradley_terry", "half")],
)
def test_models_of_other_events_are_refused(battles, pair):
    wins = battles["davidson"]["observed_data"]["wins"].sum().item()
    with pytest.raises(ValueError, match="must describe the same observed events") as raised:
        compare({name: battles[name] for name in pair})
    assert f"of {wins:,g} decisive battles and" in str(raised.value)
    assert "compare_rankings" in str(raised.value)
    for name in pair:
        assert name in str(raised.value)


@pytest.mark.parametrize("pair", [("davidson", "rao_kupper"), ("bradley_terry", "plackett_luce")])
@pytest.mark.filterwarnings("ignore::UserWarning")  # Pareto k of few pairs
def test_models_of_the_same_events_are_compared(battles, pair):
    assert set(compare({name: battles[name] for name in pair}).index) == set(pair)


def test_rankings_can_always_be_compared(battles):
    ranks = [battles[name]["ranking"]["rank"].values for name in ("bradley_terry", "davidson")]
    assert compare_rankings(*ranks)["kendall_tau_b"] > 0.8


def test_without_ties_half_wins_are_the_same_events():
    data = Comparisons([[0, 12, 30], [9, 0, 14], [5, 8, 0]])
    options = {"backend": "map", "prior": 1.0, **OPTIONS}
    both = {one: rank(data, "bradley_terry", ties=one, **options) for one in ("ignore", "half")}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert len(compare(both)) == 2


def test_a_saved_result_still_tells_its_events(battles, tmp_path):
    battles["davidson"].to_netcdf(tmp_path / "davidson.nc")
    with xr.open_datatree(tmp_path / "davidson.nc") as saved:
        with pytest.raises(ValueError, match="must describe the same observed events"):
            compare({"saved": saved, "bradley_terry": battles["bradley_terry"]})
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert len(compare({"saved": saved, "davidson": battles["davidson"]})) == 2


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_many_battles_of_each_pair_have_weights():
    # The density of 3,000 battles of a pair is below the smallest number.
    wins = 500 * np.array([[0, 5, 4, 1], [2, 0, 1, 3], [3, 2, 0, 5], [4, 1, 2, 0]])
    methods = ("bradley_terry", "thurstone_mosteller")
    results = {
        name: rank(Comparisons(wins), name, draws=100, random_seed=1, log_likelihood=True)
        for name in methods
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        table = compare(results)
    assert table["weight"].sum() == pytest.approx(1.0)
    assert table["weight"].iloc[0] > 0.6
