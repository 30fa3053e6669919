"""Tables of decisions, from draws counted by hand."""

import numpy as np
import pytest
import xarray as xr

from bayesrank import rank
from bayesrank.results.decisions import pairwise_decisions, prob_top_k
from bayesrank.results.summary import summarize_draws, summarize_point

SYSTEMS = ("ada", "bob", "cyd")


def tree_of(draws, score=None) -> xr.DataTree:
    """Return the parts of a result that decisions read; draws of shape (draw, system)."""
    draws = np.asarray(draws, dtype=float)
    systems = SYSTEMS[: draws.shape[1]]
    score = draws.mean(axis=0) if score is None else np.asarray(score, dtype=float)
    ranking = xr.merge(
        [
            summarize_point(score, systems),
            summarize_draws(draws, systems, ci_prob=0.95, lcb=0.05),
        ],
        combine_attrs="no_conflicts",
    )
    dims = ("chain", "draw", "system")
    posterior = xr.Dataset({"score": (dims, draws[np.newaxis])}, coords={"system": list(systems)})
    return xr.DataTree.from_dict({"posterior": posterior, "ranking": ranking})


@pytest.fixture
def four_draws() -> xr.DataTree:
    # Orders: ada bob cyd, ada cyd bob, bob ada cyd, and ada with bob and cyd as equals.
    return tree_of([[3, 2, 1], [3, 1, 2], [2, 3, 1], [3, 1, 1]])


def test_the_best_k_are_counted_over_draws(four_draws):
    one, two = prob_top_k(four_draws, 1), prob_top_k(four_draws, 2)
    assert one.to_dict() == {"ada": 0.75, "bob": 0.25, "cyd": 0.0}
    # Equals share positions 2 and 3.
    assert two.to_dict() == {"ada": 1.0, "bob": 0.625, "cyd": 0.375}
    assert one.name == "prob_top_k"


def test_everybody_is_among_all(four_draws):
    np.testing.assert_allclose(prob_top_k(four_draws, 3), 1, rtol=1e-15)
    assert prob_top_k(four_draws, 2).sum() == pytest.approx(2)


@pytest.mark.parametrize("k", [0, 4, -1, 1.5, "1", True, None])
def test_k_is_one_of_the_positions(four_draws, k):
    with pytest.raises(ValueError, match=rf"k must be .*; got '?{k}"):
        prob_top_k(four_draws, k)


@pytest.mark.parametrize("ci_prob", [0, 1, 2, "0.9"])
def test_ci_prob_is_between_0_and_1(four_draws, ci_prob):
    with pytest.raises(ValueError, match="ci_prob must be between 0 and 1; got"):
        pairwise_decisions(four_draws, ci_prob=ci_prob)


def test_decisions_have_one_row_per_pair_the_better_first(four_draws):
    table = pairwise_decisions(four_draws)
    pairs = list(zip(table["system"], table["opponent"], strict=True))
    assert pairs == [("ada", "bob"), ("ada", "cyd"), ("bob", "cyd")]
    # Differences by draw: 1 2 -1 2, then 2 1 1 2, then 1 -1 2 0.
    np.testing.assert_allclose(table["difference"], [1.0, 1.5, 0.5])
    np.testing.assert_allclose(table["superiority"], [0.75, 1.0, 0.625])
    np.testing.assert_array_equal(table["resolved"], [False, True, False])
    sd = np.sqrt([1.5, 0.25, 1.25])
    np.testing.assert_allclose(table["z"], [1.0, 1.5, 0.5] / sd)


def test_intervals_of_differences_are_quantiles(four_draws):
    table = pairwise_decisions(four_draws, ci_prob=0.5)
    np.testing.assert_allclose(table["difference_lower"], [0.5, 1.0, -0.25])
    np.testing.assert_allclose(table["difference_upper"], [2.0, 2.0, 1.25])


def test_confidence_is_the_normal_probability_of_z():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(50_000, 2)) / np.sqrt(2) + [1.645, 0.0]
    table = pairwise_decisions(tree_of(draws, score=[1.645, 0.0]))
    assert table["z"].item() == pytest.approx(1.645, rel=0.01)
    assert table["confidence"].item() == pytest.approx(0.95, abs=0.003)


def test_own_intervals_may_overlap_where_the_order_is_resolved():
    # Standard deviation 1 each, 3 apart: 2.1 standard deviations of the difference.
    rng = np.random.default_rng(0)
    table = pairwise_decisions(tree_of(rng.normal([3.0, 0.0], 1.0, (20_000, 2))))
    assert table["resolved"].item()
    assert table["intervals_overlap"].item()
    apart = pairwise_decisions(tree_of(rng.normal([9.0, 0.0], 1.0, (20_000, 2))))
    assert not apart["intervals_overlap"].item()


def test_no_spread_is_certainty_and_equality_is_none():
    table = pairwise_decisions(tree_of(np.tile([2.0, 2.0, 1.0], (10, 1))))
    np.testing.assert_array_equal(table["z"], [0.0, np.inf, np.inf])
    np.testing.assert_array_equal(table["confidence"], [0.5, 1.0, 1.0])
    np.testing.assert_array_equal(table["superiority"], [0.5, 1.0, 1.0])


def test_the_order_is_that_of_the_ranks_whatever_the_labels():
    table = pairwise_decisions(tree_of([[1, 2, 3], [1, 2, 3]]))
    assert table["system"].tolist() == ["cyd", "cyd", "bob"]
    assert table["opponent"].tolist() == ["bob", "ada", "ada"]


def test_decisions_agree_with_the_ranking_of_a_result():
    rng = np.random.default_rng(0)
    result = rank(rng.integers(0, 2, (4, 10, 5)), "bayes", draws=100, random_seed=1)
    table = pairwise_decisions(result)
    superiority = result["ranking"]["superiority"]
    for row in table.itertuples():
        expected = superiority.sel(system=row.system, opponent=row.opponent).item()
        assert row.superiority == expected
        assert row.difference >= 0
    assert prob_top_k(result, 1).to_list() == result["ranking"]["prob_best"].values.tolist()


def test_point_estimates_decide_nothing():
    result = rank([[[1, 0]], [[0, 0]]], "avg", draws=0)
    with pytest.raises(ValueError, match="result must have draws for prob_top_k"):
        prob_top_k(result, 1)
    with pytest.raises(ValueError, match="result must have draws for decisions"):
        pairwise_decisions(result)
