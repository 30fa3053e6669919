"""Measures of agreement against SciPy, hand counts and their limits."""

import tracemalloc
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from bayesrank import Responses, rank
from bayesrank.results.agreement import (
    MEASURES,
    agreement_matrix,
    compare_rankings,
    icc1,
    kendall_tau_a,
    kendall_tau_b,
    pearson,
    spearman,
    weighted_tau,
)
from bayesrank.results.overlap import (
    footrule,
    max_displacement,
    mean_displacement,
    median_displacement,
    rank_biased_overlap,
    top_k_overlap,
)
from bayesrank.results.ranks import rank_scores

DISTANCES = {"footrule", "mean_displacement", "median_displacement", "max_displacement"}
TIED = np.array([1, 2, 2, 4])
PLAIN = np.array([1, 2, 3, 4])


@pytest.mark.parametrize("tied", [False, True])
def test_correlations_equal_scipy(tied: bool):
    rng = np.random.default_rng(0)
    for size in range(3, 12):
        x, y = (
            rng.integers(1, 4, (2, size))
            if tied
            else np.stack([rng.permutation(size), rng.permutation(size)]) + 1
        )
        x[:2], y[:2] = (1, 2), (2, 1)  # never one group of ties
        np.testing.assert_allclose(kendall_tau_b(x, y), stats.kendalltau(x, y).statistic)
        np.testing.assert_allclose(spearman(x, y), stats.spearmanr(x, y).statistic)
        np.testing.assert_allclose(pearson(x, y), stats.pearsonr(x, y).statistic)


@pytest.mark.parametrize("size", [499, 500, 701])  # the signs of all pairs, and sorting
@pytest.mark.parametrize("levels", [1, 2, 40, 10**6])
def test_pairs_of_large_rankings_are_counted(size: int, levels: int):
    rng = np.random.default_rng(size)
    x, y = rng.integers(levels, size=(2, 3, 1, size)), rng.integers(levels, size=(2, size))
    signs = [np.sign(each[..., :, None] - each[..., None, :]) for each in (x, y)]
    concordance = (signs[0] * signs[1]).sum(axis=(-1, -2))
    untied = [(each**2).sum(axis=(-1, -2)) for each in signs]
    if levels == 1:
        assert np.isnan(kendall_tau_b(x, y)).all()
    else:
        np.testing.assert_allclose(
            kendall_tau_b(x, y), concordance / np.sqrt(untied[0] * untied[1]), rtol=1e-12
        )
        assert (kendall_tau_b(x, x) == 1.0).all()
        assert (kendall_tau_b(y, -y) == -1.0).all()
    np.testing.assert_allclose(kendall_tau_a(x, y), concordance / (size * (size - 1)), rtol=1e-12)


def test_tau_of_many_questions_needs_no_table_of_pairs():
    ranks = np.random.default_rng(0).integers(1000, size=(2, 35_550))
    kendall_tau_b(ranks[0], ranks[1])  # imports
    tracemalloc.start()
    kendall_tau_b(ranks[0], ranks[1])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


def test_weighted_tau_equals_scipy_without_ties():
    rng = np.random.default_rng(1)
    for size in range(2, 12):
        x, y = rng.permutation(size) + 1, rng.permutation(size) + 1
        np.testing.assert_allclose(weighted_tau(x, y), stats.weightedtau(-x, -y).statistic)


def test_hand_counts():
    assert kendall_tau_a(TIED, PLAIN) == pytest.approx(5 / 6)
    assert kendall_tau_b(TIED, PLAIN) == pytest.approx(5 / np.sqrt(5 * 6))
    assert footrule(PLAIN, [2, 1, 3, 4]) == pytest.approx(2 / 8)
    assert mean_displacement(TIED, PLAIN) == pytest.approx(0.25)
    assert median_displacement(TIED, PLAIN) == pytest.approx(0.25)
    assert max_displacement(PLAIN, [4, 2, 3, 1]) == 3.0
    # Mean squares 1.5 between and 1/3 within the ranks (1, 2), (2, 1) and (3, 3).
    assert icc1([1, 2, 3], [2, 1, 3]) == pytest.approx((1.5 - 1 / 3) / (1.5 + 1 / 3))


def test_rank_biased_overlap_by_hand():
    p = 0.8
    # Nothing in common at depth 1, all from depth 2 on.
    expected = (1 - p) / p * sum(p**d * a for d, a in enumerate([0.0, 1.0, 1.0], start=1)) + p**3
    assert rank_biased_overlap([1, 2, 3], [2, 1, 3], p=p) == pytest.approx(expected)
    # A tie for first place is in the top 1 by half: overlap 1/2 over the root of 1 times 1/2.
    expected = (1 - p) * (np.sqrt(0.5) + p) + p**2
    assert rank_biased_overlap([1, 1], [1, 2], p=p) == pytest.approx(expected)


def test_top_k_overlap_by_hand():
    assert top_k_overlap(PLAIN, [4, 3, 2, 1], k=2) == 0.0
    assert top_k_overlap(PLAIN, [1, 4, 2, 3], k=2) == pytest.approx(0.5)
    assert top_k_overlap(PLAIN, [1, 4, 2, 3], k=4) == pytest.approx(1.0)
    assert top_k_overlap(TIED, TIED, k=2) == pytest.approx(1.0)


@pytest.mark.parametrize("name", MEASURES)
def test_equal_rankings_agree_fully(name: str):
    perfect = 0.0 if name in DISTANCES else 1.0
    measure = MEASURES[name]
    assert measure(PLAIN, PLAIN) == pytest.approx(perfect, abs=1e-15)
    tied = 5 / 6 if name == "kendall_tau_a" else perfect
    assert measure(TIED, TIED) == pytest.approx(tied, abs=1e-15)


@pytest.mark.parametrize("name", sorted(set(MEASURES) - DISTANCES - {"rank_biased_overlap"}))
def test_reversed_rankings_disagree_fully(name: str):
    assert MEASURES[name](PLAIN, PLAIN[::-1]) == pytest.approx(-1.0)


@pytest.mark.parametrize("name", MEASURES)
def test_measures_are_symmetric_and_free_of_labels(name: str):
    rng = np.random.default_rng(2)
    x, y = rng.integers(1, 5, (2, 50, 6))
    x[:, :2], y[:, :2] = (1, 2), (2, 1)
    permutation = rng.permutation(6)
    measure = MEASURES[name]
    np.testing.assert_allclose(measure(x, y), measure(y, x), atol=1e-14)
    np.testing.assert_allclose(
        measure(x, y), measure(x[:, permutation], y[:, permutation]), atol=1e-14
    )


@pytest.mark.parametrize("name", sorted(set(MEASURES) - {"pearson"}))
def test_only_the_order_counts(name: str):
    competition, average = np.array([1, 2, 2, 4, 5]), np.array([1.0, 2.5, 2.5, 4.0, 5.0])
    other = np.array([2, 1, 3, 5, 4])
    measure = MEASURES[name]
    assert measure(competition, other) == pytest.approx(measure(average, other), abs=1e-15)


@pytest.mark.parametrize("name", MEASURES)
def test_batches_broadcast(name: str):
    rankings = np.array(list(permutations(range(1, 5))))
    measure = MEASURES[name]
    table = measure(rankings[:, None], rankings[None, :3])
    assert table.shape == (24, 3)
    expected = [[measure(x, y) for y in rankings[:3]] for x in rankings]
    np.testing.assert_allclose(table, expected, atol=1e-15)


def test_tau_averages_to_zero_over_all_orders():
    rankings = np.array(list(permutations(range(1, 6))))
    for measure in (kendall_tau_b, kendall_tau_a, spearman, pearson):
        assert measure(rankings, np.arange(1, 6)).mean() == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(
    "measure", [kendall_tau_b, spearman, weighted_tau, pearson], ids=lambda m: m.__name__
)
def test_correlation_with_one_group_of_ties_is_undefined(measure):
    assert np.isnan(measure([1, 1, 1], [1, 2, 3]))


def test_several_raters():
    assert icc1(PLAIN, PLAIN, PLAIN) == pytest.approx(1.0)
    # Between systems there is nothing when every rater has another one first.
    latin = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    assert icc1(*latin) == pytest.approx(-0.5)


def test_table_of_measures():
    table = compare_rankings(PLAIN, [[2, 1, 3, 4], [4, 3, 2, 1]], k=2, p=0.5)
    assert set(table) == {*MEASURES, "top_k_overlap"}
    assert table["top_k_overlap"].tolist() == [1.0, 0.0]
    assert all(values.shape == (2,) for values in table.values())
    assert "top_k_overlap" not in compare_rankings(PLAIN, PLAIN)


@pytest.fixture(scope="module")
def runs() -> Responses:
    rng = np.random.default_rng(4)
    chance = np.array([0.8, 0.6, 0.5, 0.45, 0.2])[:, None, None]
    outcomes = (rng.random((5, 12, 6)) < chance).astype(int)
    return Responses(outcomes, systems=["e", "d", "c", "b", "a"])


def test_results_are_matched_by_name(runs):
    one = rank(runs, "avg", draws=0)
    turned = Responses(runs.outcomes[::-1], systems=runs.systems[::-1])
    other = rank(turned, "borda", draws=0)
    expected = compare_rankings(
        rank(runs, "avg", draws=0)["ranking"].to_dataset()["rank"].values,
        rank(runs, "borda", draws=0)["ranking"].to_dataset()["rank"].values,
    )
    found = compare_rankings(one, other)
    assert set(found) == set(expected)  # point estimates have no intervals
    for name, value in expected.items():
        assert found[name] == pytest.approx(float(value))
    labelled = other["ranking"].to_dataset()["rank"]
    assert compare_rankings(one, labelled)["kendall_tau_b"] == found["kendall_tau_b"]
    assert compare_rankings(labelled.to_series(), one)["spearman"] == found["spearman"]


def test_a_ranking_without_names_has_the_order_of_the_result(runs):
    result = rank(runs, "avg", draws=0)
    ranks = result["ranking"].to_dataset()["rank"].values
    assert compare_rankings(result, ranks)["kendall_tau_b"] == 1.0
    assert compare_rankings(ranks[::-1], result)["kendall_tau_b"] < 0.0


def test_ranks_against_a_result_vary_with_its_draws(runs):
    gold = rank(runs, "avg", random_seed=3)
    scores = gold["posterior"].to_dataset()["score"].values.reshape(-1, 5)
    ranks = [1, 3, 2, 4, 5]
    table = compare_rankings(ranks, gold, ci_prob=0.8, k=2)
    for name in ("kendall_tau_b", "spearman", "top_k_overlap", "footrule"):
        measure = {**MEASURES, "top_k_overlap": lambda x, y: top_k_overlap(x, y, k=2)}[name]
        values = measure(ranks, rank_scores(scores))
        assert table[f"{name}_mean"] == pytest.approx(values.mean())
        assert table[f"{name}_lower"] == pytest.approx(np.quantile(values, 0.1))
        assert table[f"{name}_upper"] == pytest.approx(np.quantile(values, 0.9))
    assert table["kendall_tau_b_lower"] < table["kendall_tau_b_upper"]


def test_batches_against_a_result(runs, monkeypatch):
    gold = rank(runs, "avg", draws=40, random_seed=3)
    batch = np.array([[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]])
    table = compare_rankings(batch, gold)
    for row, ranks in enumerate(batch):
        one = compare_rankings(ranks, gold)
        for name, values in table.items():
            assert values[row] == pytest.approx(float(one[name]))
    assert compare_rankings(gold, batch)["kendall_tau_b_mean"] == pytest.approx(
        table["kendall_tau_b_mean"]
    )
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 1)
    again = compare_rankings(batch, gold)
    for name, values in table.items():
        np.testing.assert_allclose(again[name], values)


def test_two_results_are_uncertain_both(runs):
    gold = rank(runs, "avg", random_seed=3)
    itself = compare_rankings(gold, gold)
    # Two estimates of one order differ as two sets of runs would.
    assert itself["kendall_tau_b"] == 1.0
    ranks = gold["ranking"].to_dataset()["rank"]
    assert itself["kendall_tau_b_mean"] < compare_rankings(ranks, gold)["kendall_tau_b_mean"] < 1.0


def test_results_of_other_systems_are_refused(runs):
    other = Responses(runs.outcomes, systems=["e", "d", "c", "b", "x"])
    with pytest.raises(ValueError, match="rankings must be of the same systems; got 'a'"):
        compare_rankings(rank(runs, "avg", draws=0), rank(other, "avg", draws=0))


def test_matrix_of_rankings():
    rankings = np.array([[1, 2, 3], [1, 3, 2], [3, 2, 1]])
    expected = [[1, 1 / 3, -1], [1 / 3, 1, -1 / 3], [-1, -1 / 3, 1]]
    np.testing.assert_allclose(agreement_matrix(rankings), expected)
    assert agreement_matrix(np.stack([rankings] * 4), measure="spearman").shape == (4, 3, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: top_k_overlap(PLAIN, PLAIN, k=5), r"k must be at most the 4 systems; got 5"),
        (lambda: top_k_overlap(PLAIN, PLAIN, k=0), r"k must be an integer of at least 1; got 0"),
        (lambda: rank_biased_overlap(PLAIN, PLAIN, p=1.0), "p must be between 0 and 1"),
        (lambda: agreement_matrix([PLAIN], measure="tau"), "measure must be one of kendall_tau_b"),
        (lambda: icc1(PLAIN), "rankings must be at least two; got 1"),
        (lambda: kendall_tau_b([1, np.nan], [1, 2]), "scores must not contain NaN"),
        (lambda: compare_rankings([], []), r"x must rank one system or more; got shape \(0,\)"),
        (lambda: compare_rankings(1, 1), r"x must rank one system or more; got shape \(\)"),
        (lambda: compare_rankings([1, np.inf], [1, 2]), "x must hold finite ranks; got inf"),
        (lambda: compare_rankings([1, 2], [1, np.nan]), "y must hold finite ranks; got nan"),
        (lambda: compare_rankings([1, 2], [1]), "x and y must rank the same systems; got 2 and 1"),
        (lambda: compare_rankings([1], [1], ci_prob=1.0), "ci_prob must be between 0 and 1"),
    ],
)
def test_bad_input_is_named(call, message: str):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("rankings", [[], [[]], [[1, np.inf], [2, 1]], [[1, np.nan], [2, 1]]])
def test_matrices_need_finite_rankings(rankings):
    with pytest.raises(ValueError, match=r"rankings must (rank one system|hold finite ranks)"):
        agreement_matrix(rankings)
