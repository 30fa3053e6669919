"""The result tree: its groups, dims and attributes, and that it holds what a refit needs."""

import datetime
import json

import numpy as np
import pytest
import xarray as xr

from bayesrank import Comparisons, Responses, rank

OUTCOMES = np.array([[[1, 1, 0], [1, 0, 1]], [[0, 1, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 1]]])
SYSTEM_VARIABLES = (
    *("score", "rank", "tie_group", "score_lower", "score_upper", "lcb", "lcb_rank"),
    *("rank_lower", "rank_upper", "prob_best", "expected_rank"),
    *("joint_rank_lower", "joint_rank_upper", "group", "separated_from_next"),
    *("observed_mean", "n_outcomes", "n_questions", "few"),
)


@pytest.fixture(scope="module")
def data() -> Responses:
    return Responses(
        OUTCOMES,
        systems=["ada", "bob", "cyd"],
        questions=["p", "q"],
        groups=["easy", "hard"],
        prior_outcomes=[[1], [0]],
    )


@pytest.fixture(scope="module")
def battles() -> Comparisons:
    return Comparisons.from_battles(
        ["ada", "bob", "ada", "bob"], ["bob", "ada", "bob", "ada"], ["x", "x", "y", "tie"]
    )


@pytest.fixture(scope="module")
def result(data) -> xr.DataTree:
    return rank(data, "bayes", draws=20, random_seed=3, ci_prob=0.8, lcb=0.1)


def test_groups(result, battles):
    assert set(result.children) == {"posterior", "ranking", "observed_data", "constant_data"}
    fitted = rank(battles, "davidson", backend="map", draws=5, random_seed=1)
    assert {"posterior", "ranking", "sample_stats", "observed_data"} <= set(fitted.children)


def test_posterior_holds_the_draws_of_the_score(result):
    score = result["posterior"]["score"]
    assert score.dims == ("chain", "draw", "system")
    assert score.shape == (4, 20, 3)
    np.testing.assert_array_equal(score["chain"], np.arange(4))
    np.testing.assert_array_equal(score["draw"], np.arange(20))
    np.testing.assert_array_equal(score["system"], ["ada", "bob", "cyd"])


def test_ranking_is_over_systems_opponents_and_positions(result):
    ranking = result["ranking"].to_dataset()
    dims = {name: ranking[name].dims for name in ranking.data_vars}
    assert dims.pop("superiority") == dims.pop("resolved") == ("system", "opponent")
    assert dims.pop("rank_probability") == ("system", "position")
    assert set(SYSTEM_VARIABLES) <= set(dims)
    assert set(dims.values()) == {("system",)}
    np.testing.assert_array_equal(ranking["opponent"], ["ada", "bob", "cyd"])
    np.testing.assert_array_equal(ranking["position"], [1, 2, 3])
    for name in ("rank", "tie_group", "lcb_rank", "rank_lower", "rank_upper"):
        assert ranking[name].dtype == np.int64
    for name in ("joint_rank_lower", "joint_rank_upper"):
        assert ranking[name].dtype == np.int64
    for name in ("resolved", "separated_from_next"):
        assert ranking[name].dtype == bool
    assert ranking.attrs == {"ci_prob": 0.8, "lcb": 0.1, "least_outcomes": 4}


def test_ranking_summarises_the_draws(result):
    draws = result["posterior"]["score"].stack(sample=("chain", "draw"))
    ranking = result["ranking"].to_dataset()
    for name, quantile in (("score_lower", 0.1), ("lcb", 0.1), ("score_upper", 0.9)):
        np.testing.assert_allclose(ranking[name], draws.quantile(quantile, "sample"), rtol=1e-12)


def test_no_dim_has_a_name_that_arviz_reserves(result, battles):
    trees = [result, rank(battles, "davidson", backend="map", draws=5, random_seed=1)]
    for tree in trees:
        assert not {"model", "column"} & {dim for group in tree.subtree for dim in group.sizes}


def test_counts_are_observed_data(result, data):
    observed = result["observed_data"].to_dataset()
    assert observed["counts"].dims == ("system", "question", "category")
    np.testing.assert_array_equal(observed["counts"], data.counts)
    np.testing.assert_array_equal(observed["question"], ["p", "q"])
    constant = result["constant_data"].to_dataset()
    np.testing.assert_array_equal(constant["trials"], data.trials)
    np.testing.assert_array_equal(constant["category_weights"], [0, 1])
    np.testing.assert_array_equal(constant["question_group"], ["easy", "hard"])
    # One set of earlier outcomes, shared by all systems.
    assert constant["prior_counts"].dims == ("system", "question", "category")
    np.testing.assert_array_equal(constant["prior_counts"], [[[0, 1], [1, 0]]] * 3)


def test_grades_are_the_observed_data_of_fractional_scores():
    tree = rank([[0.5, 1.0], [0.25, 0.5]], "avg", draws=0)
    np.testing.assert_array_equal(tree["observed_data"]["grades"], [[0.5, 1.0], [0.25, 0.5]])
    np.testing.assert_array_equal(tree["constant_data"]["trials"], np.ones((2, 2)))


def test_categories_without_weights_are_observed_data_too():
    data = Responses([[0, 2, 1], [1, 1, 0]], categories=3)
    tree = rank(data, "rank_centrality", draws=0)
    assert tree["observed_data"]["counts"].shape == (2, 3, 3)
    assert "category_weights" not in tree["constant_data"]


@pytest.mark.parametrize("method", ["rank_centrality", "bradley_terry_map"])
def test_wins_and_ties_are_observed_data_of_methods_on_pairs(data, method):
    observed = rank(data, method, draws=0)["observed_data"].to_dataset()
    assert observed["wins"].dims == observed["ties"].dims == ("system", "opponent")
    np.testing.assert_array_equal(observed["wins"], data.comparisons.wins)
    np.testing.assert_array_equal(observed["ties"], data.comparisons.ties)
    np.testing.assert_array_equal(observed["counts"], data.counts)


def test_battles_are_observed_data(battles):
    tree = rank(battles, "bradley_terry_map", draws=0)
    np.testing.assert_array_equal(tree["observed_data"]["wins"], [[0, 1], [2, 0]])
    np.testing.assert_array_equal(tree["observed_data"]["ties"], [[0, 1], [1, 0]])
    np.testing.assert_array_equal(tree["constant_data"]["first_wins"], [[0, 1], [1, 0]])
    np.testing.assert_array_equal(tree["constant_data"]["second_wins"], [[0, 0], [1, 0]])
    first_ties = tree["constant_data"]["first_ties"]
    np.testing.assert_array_equal(first_ties + first_ties.values.T, [[0, 1], [1, 0]])
    unordered = rank(Comparisons(battles.wins), "bradley_terry_map", draws=0)
    assert "constant_data" not in unordered.children


def test_a_refit_from_the_tree_gives_the_same_score(data, battles):
    for given in (data, battles):
        tree = rank(given, "davidson", draws=0)
        observed = tree["observed_data"].to_dataset()
        refit = rank(Comparisons(observed["wins"], observed["ties"]), "davidson", draws=0)
        np.testing.assert_array_equal(refit["ranking"]["score"], tree["ranking"]["score"])


def test_the_parameters_of_a_method_have_draws_and_a_point_estimate(battles):
    fitted = rank(battles, "davidson", backend="map", draws=5, random_seed=1)
    assert fitted["posterior"]["tie_strength"].dims == ("chain", "draw")
    alone = rank(battles, "davidson", backend="map", draws=0)
    assert alone["point_estimate"]["tie_strength"].shape == ()
    assert bool(alone["sample_stats"]["converged"])


def test_attributes_say_what_was_done(result, data):
    attributes = result.attrs
    assert all(isinstance(value, str | int | float) for value in attributes.values())
    stated = {
        "method": "bayes",
        "preset": "bayes",
        "family": "metrics",
        "backend": "exact",
        "options": "{}",
        "prior": "dirichlet(1)",
        "target": "benchmark",
        "calibration": "none",
        "random_seed": "3",
        "fingerprint": data.fingerprint,
    }
    assert {name: attributes[name] for name in stated} == stated
    versions = json.loads(attributes["versions"])
    assert {"bayesrank", "numpy", "pymc", "arviz", "xarray"} <= set(versions)
    created = datetime.datetime.fromisoformat(attributes["created_at"])
    assert abs(datetime.datetime.now(datetime.UTC) - created) < datetime.timedelta(minutes=5)


def test_options_are_recorded_as_json():
    data = [[[0, 1, 1], [1, 0, 1]], [[1, 1, 0], [0, 0, 1]]]
    options = {"damping": np.float64(0.5), "teleport": np.array([0.25, 0.75])}
    tree = rank(data, "pagerank", **options, draws=0)
    assert json.loads(tree.attrs["options"]) == {"damping": 0.5, "teleport": [0.25, 0.75]}
