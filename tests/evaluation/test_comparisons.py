"""Differences of two systems and ranks with intervals: closed forms, simulation, published rule."""

import numpy as np
import pytest
from scipy.special import betainc, ndtr

from bayesrank import Responses, datasets, rank
from bayesrank.errors import DataError
from bayesrank.evaluation import compare, evaluate, rank_with_intervals
from bayesrank.results.ranks import adjacent_z_ranks

GRADED = Responses(
    [[[0, 2, 2, 1], [1, 2, 2, 2]], [[1, 1, 0, 2], [0, 1, -1, -1]], [[0, 0, 0, 1], [0, 0, 0, 0]]],
    weights=(0, 0.4, 1),
    systems=["a", "b", "c"],
    prior_outcomes=[[[2], [2]], [[1], [1]], [[0], [0]]],
)


def drawn(data: Responses, metric: str, prior_weight: float, size: int) -> np.ndarray:
    """Draw scores of the systems directly from the Dirichlets, of shape (draw, system)."""
    rng = np.random.default_rng(5)
    shapes = 1.0 + data.counts
    if prior_weight:
        earlier = np.eye(data.n_categories)[np.asarray(data.prior_outcomes)].sum(axis=-2)
        shapes = shapes + prior_weight * earlier
    gammas = rng.standard_gamma(shapes, (size, *shapes.shape))
    p = gammas / gammas.sum(axis=-1, keepdims=True)
    if metric == "bayes":
        return (p @ data.category_weights).mean(axis=-1)
    return (1 - (1 - p[..., 1]) ** 2).mean(axis=-1)


@pytest.mark.parametrize("prior_weight", [0.0, 0.7])
def test_differences_against_draws(prior_weight: float):
    table = compare(GRADED, "bayes", prior_weight=prior_weight).set_index(["system", "opponent"])
    scores = drawn(GRADED, "bayes", prior_weight, 100_000)
    for (first, second), row in table.iterrows():  # type: ignore[misc]
        gap = scores[:, "abc".index(first)] - scores[:, "abc".index(second)]
        assert row["difference"] == pytest.approx(gap.mean(), abs=2e-3)
        assert row["superiority"] == pytest.approx((gap > 0).mean(), abs=5e-3)
        bounds = np.quantile(gap, [0.025, 0.975])
        np.testing.assert_allclose(
            [row["difference_lower"], row["difference_upper"]], bounds, atol=7e-3
        )


def test_functionals_are_compared_too():
    rng = np.random.default_rng(1)
    data = Responses(rng.integers(0, 2, (2, 6, 5)))
    row = compare(data, "pass_at_k(k=2, estimator='posterior_mean')").iloc[0]
    scores = drawn(data, "pass_at_k", 0.0, 200_000)
    better = data.systems.index(row["system"])
    gap = scores[:, better] - scores[:, 1 - better]
    assert row["superiority"] == pytest.approx((gap > 0).mean(), abs=4e-3)
    assert row["difference"] == pytest.approx(gap.mean(), abs=1e-3)


def test_one_question_in_closed_form():
    # p ~ Beta(3, 1) against q ~ Beta(1, 3): P(p > q) = 1 - E (1 - p)^3 = 1 - B(3, 4) / B(3, 1).
    row = compare(Responses([[[1, 1]], [[0, 0]]]), "bayes").iloc[0]
    assert row["superiority"] == pytest.approx(1 - 1 / 20, abs=1e-7)
    assert row["difference"] == pytest.approx(0.5)
    assert row["z"] == pytest.approx(0.5 / np.sqrt(2 * 3 / 80))
    assert row["rho"] == pytest.approx(ndtr(row["z"]))
    # The interval is narrower than a sum of the ends of both and holds 95 % exactly.
    upper = row["difference_upper"]
    grid = (np.arange(200_000) + 0.5) / 200_000
    above = (3 * grid**2 * betainc(1, 3, np.clip(grid - upper, 0, 1))).mean()
    assert above == pytest.approx(0.025, abs=1e-5)


def test_equal_systems_have_even_odds():
    row = compare(Responses([[[1, 0], [1, 1]], [[0, 1], [1, 1]]]), "bayes").iloc[0]
    assert (row["difference"], row["z"]) == (0.0, 0.0)
    assert row["rho"] == row["superiority"] == pytest.approx(0.5)
    assert row["difference_lower"] == pytest.approx(-row["difference_upper"])
    assert not row["resolved"]


def test_differences_stay_within_the_range_of_the_weights():
    data = Responses([np.ones((3, 1), int), np.zeros((3, 1), int)])
    for metric in ("avg", "bayes"):
        row = compare(data, metric).iloc[0]
        assert -1 <= row["difference_lower"] < row["difference_upper"] <= 1


def test_published_rule_shares_ranks_of_neighbours():
    data = datasets.load_olympiad("AIME'24")
    table = rank_with_intervals(data, "bayes", rule="adjacent_z", z=1.96)
    moments = evaluate(data, "bayes")
    expected = adjacent_z_ranks(moments["mean"], moments["sd"], z=1.96)
    by_system = dict(zip(moments["system"], expected, strict=True))
    assert table["shared_rank"].tolist() == [by_system[name] for name in table["system"]]
    assert table["shared_rank"].is_monotonic_increasing
    assert table["shared_rank"].max() < 20


@pytest.mark.parametrize("metric", ["avg", "bayes", "pass_at_k(k=2)"])
def test_joint_sets_hold_the_point_ranks_and_count_what_is_resolved(metric: str):
    data = Responses(datasets.load_olympiad("AIME'24").outcomes[:10, :, :20])
    table = rank_with_intervals(data, metric).set_index("system")
    assert (table["rank_lower"] <= table["rank"]).all()
    assert (table["rank"] <= table["rank_upper"]).all()
    pairs = compare(data, metric)
    resolved = pairs[pairs["resolved"]]
    assert 0 < len(resolved) < len(pairs)
    above = resolved["opponent"].value_counts().reindex(table.index, fill_value=0)
    below = resolved["system"].value_counts().reindex(table.index, fill_value=0)
    np.testing.assert_array_equal(table["rank_lower"], 1 + above)
    np.testing.assert_array_equal(table["rank_upper"], len(table) - below)


def test_three_categories_rank_under_max_at_k_by_draws():
    table = rank_with_intervals(GRADED, "max_at_k(k=2)")
    assert table["system"].iloc[0] == "a"
    with pytest.raises(ValueError, match="max_at_k has for two categories only; got 3 categories"):
        compare(GRADED, "max_at_k(k=2, estimator='posterior_mean')")


def test_unbiased_metrics_are_compared_by_the_draws_of_rank():
    result = rank(GRADED, "max_at_k", k=2, random_seed=3)
    table = compare(GRADED, "max_at_k(k=2)", random_seed=3)
    superiority = result["ranking"]["superiority"]
    assert table["superiority"].tolist() == [
        superiority.sel(system=row["system"], opponent=row["opponent"]).item()
        for _, row in table.iterrows()
    ]
    assert table.attrs["target"] == {"max_at_k(k=2)": result.attrs["target"]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ci_prob": 0}, "ci_prob must be between 0 and 1; got 0"),
        ({"metric": ["bayes"]}, r"metric must be one name; got \['bayes'\]"),
        ({"metric": "bayes(weights=(1, 1, 1))"}, "weights must differ to compare systems"),
    ],
)
def test_arguments_out_of_range_are_refused(options, message: str):
    with pytest.raises(ValueError, match=message):
        compare(GRADED, **options)


def test_one_system_and_unknown_rules_are_refused():
    with pytest.raises(ValueError, match="data must have two systems or more; got 1"):
        compare([[1, 0]])
    with pytest.raises(ValueError, match="rule must be 'joint' or 'adjacent_z'; got 'dense'"):
        rank_with_intervals(GRADED, rule="dense")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="z must be a number above 0; got 0"):
        rank_with_intervals(GRADED, rule="adjacent_z", z=0)
    with pytest.raises(DataError, match="prior_outcomes must be given"):
        compare(Responses([[[1]], [[0]]]), prior_weight=1)


def test_several_metrics_in_a_text_are_none():
    with pytest.raises(ValueError, match="metric must be one name; got 'bayes, avg'"):
        compare(Responses([[1, 0], [0, 0]]), "bayes, avg")
