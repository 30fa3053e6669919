"""Trials until intervals are as narrow as wanted: the forecast, against itself and new trials."""

import numpy as np
import pytest

from bayesrank import Comparisons, Responses, rank
from bayesrank.errors import DataError
from bayesrank.planning import plan_widths

CHANCES = np.random.default_rng(2).beta(3.0, 2.0, (3, 40))


def simulate(n_trials: int, seed: int = 0) -> Responses:
    rng = np.random.default_rng(seed)
    return Responses((rng.random((3, 40, n_trials)) < CHANCES[..., np.newaxis]).astype(int))


@pytest.mark.parametrize("method", [None, "bayes"])
def test_widths_are_those_of_rank(method):
    data = simulate(4)
    ranking = rank(data, method, ci_prob=0.9)["ranking"]
    table = plan_widths(data, 0.1, method=method, ci_prob=0.9, further=0).set_index("system")
    width = (ranking["score_upper"] - ranking["score_lower"]).to_series()
    np.testing.assert_array_equal(table["width"], width[table.index])
    np.testing.assert_allclose(table["width_then"], table["width"], rtol=1e-12)
    assert table["width"].is_monotonic_decreasing
    assert (table["trials"] == 4).all()


@pytest.mark.parametrize("wanted", [0.02, 0.06, 0.2])
def test_needed_trials_are_the_least_that_are_enough(wanted):
    data = simulate(4)
    for row in plan_widths(data, wanted).itertuples():
        assert row.reached == (row.width <= wanted) == (row.further_trials_needed == 0)
        if row.reached:
            continue
        n = int(row.further_trials_needed)
        then = [plan_widths(data, wanted, further=m).set_index("system") for m in (n - 1, n)]
        before, after = (each.loc[row.system, "width_then"] for each in then)
        assert after <= wanted <= before


@pytest.mark.parametrize("method", [None, "bayes", "avg"])
def test_new_trials_reach_the_width(method):
    wanted = 0.05
    first = plan_widths(simulate(4, seed=1), wanted, method=method)
    n_trials = 4 + int(first["further_trials_needed"].max())
    assert n_trials > 8
    then = plan_widths(simulate(n_trials, seed=1), wanted, method=method)
    assert then["width"].max() == pytest.approx(wanted, rel=0.1)
    assert not plan_widths(simulate(n_trials // 2, seed=1), wanted, method=method)["reached"].any()


def test_greedy_runs_count_as_trials_of_the_prior():
    data = simulate(4)
    greedy = Responses(data.outcomes, prior_outcomes=simulate(3, seed=5).outcomes)
    few, many = (
        plan_widths(each, 0.01, method=method, further=7)
        for each, method in ((data, "bayes"), (greedy, "bayes_greedy"))
    )
    shrink = [(table["width_then"] / table["width"]).mean() for table in (few, many)]
    np.testing.assert_allclose(shrink, [(6 / 13) ** 0.5, (9 / 16) ** 0.5], rtol=1e-6)


def test_scores_must_be_mean_grades():
    with pytest.raises(ValueError, match="method must be one whose scores are mean grades"):
        plan_widths(simulate(2), 0.1, method="borda")


def test_units_of_the_worths_do_not_matter():
    data = simulate(4)
    plain = plan_widths(data, 0.05, random_seed=1)
    percent = plan_widths(Responses(data.outcomes, weights=(0, 100)), 5.0, random_seed=1)
    np.testing.assert_allclose(percent["width"], 100 * plain["width"], rtol=1e-9)
    columns = ["system", "reached", "further_trials_needed"]
    assert percent[columns].equals(plain[columns])


def test_the_choice_of_questions_stays():
    table = plan_widths(Responses(simulate(1).outcomes), 1e-3)
    assert table.attrs["target"] == "population"
    assert np.isinf(table["further_trials_needed"]).all()


@pytest.mark.parametrize("width", [0.0, -1.0, np.inf, np.nan, "0.1", None])
def test_a_width_is_positive(width):
    with pytest.raises(ValueError, match="width must be a number above 0"):
        plan_widths(simulate(2), width)


def test_questions_are_needed():
    with pytest.raises(DataError, match=r"data must be responses .* got comparisons"):
        plan_widths(Comparisons([[0, 1], [2, 0]]), 0.1)
