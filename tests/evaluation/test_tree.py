"""Evaluations as InferenceData."""

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.evaluation import evaluate, evaluation_tree

DATA = Responses(
    [[[1, 1, 0], [0, 0, 1]], [[1, 1, 1], [0, 1, 0]]],
    systems=["a", "b"],
    prior_outcomes=[[1], [0]],
)
METRICS = ["bayes", "avg", "pass_at_k(k=2)", "max_at_k(k=2)"]


def test_draws_agree_with_the_table():
    tree = evaluation_tree(DATA, METRICS, prior_weight=1, draws=5000, random_seed=3)
    table = evaluate(DATA, METRICS, prior_weight=1)
    score = tree["posterior"]["score"]
    mean = score.mean(("chain", "draw")).values.ravel()
    np.testing.assert_allclose(mean, table["mean"], atol=0.012)
    sd = score.std(("chain", "draw")).values.ravel()
    # The table has fewer draws of the average than the tree.
    np.testing.assert_allclose(sd, table["sd"], rtol=0.05)


def test_the_accuracy_has_the_draws_of_rank():
    tree = evaluation_tree(DATA, METRICS, draws=30)
    result = rank(DATA, "avg", draws=30)
    drawn = tree["posterior"]["score"].sel(metric="avg")
    np.testing.assert_array_equal(drawn, result["posterior"]["score"])


def test_groups_and_seed():
    first = evaluation_tree(DATA, METRICS, draws=5, random_seed=1)
    again = evaluation_tree(DATA, METRICS, draws=5, random_seed=1)
    assert set(first.children) == {"posterior", "evaluation", "observed_data", "constant_data"}
    assert first["posterior"]["score"].dims == ("chain", "draw", "system", "metric")
    assert first["posterior"]["score"].equals(again["posterior"]["score"])
    assert first["evaluation"]["metric"].values.tolist() == METRICS


def test_no_draws_are_refused():
    with pytest.raises(ValueError, match="draws must be an integer of at least 1; got 0"):
        evaluation_tree(DATA, draws=0)


def test_negative_seeds_are_refused():
    with pytest.raises(ValueError, match="random_seed must be None or an integer >= 0; got -1"):
        evaluation_tree(DATA, draws=1, random_seed=-1)
