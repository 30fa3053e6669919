"""Rankings and evaluations under several schemes at once."""

import numpy as np
import pandas as pd
import pytest

from bayesrank import plot_rank_flow, rank
from bayesrank.errors import DataError
from bayesrank.rubrics import SCHEMES, evaluate_rubrics, rank_rubrics, rubric_responses
from bayesrank.rubrics.scoring import why_not

# Of the two systems, a is right more often and b always has the wanted format.
ATTEMPTS = pd.DataFrame(
    {
        "system": ["a"] * 4 + ["b"] * 4,
        "question": [1, 1, 2, 2] * 2,
        "is_correct": [1, 1, 1, 0, 1, 1, 0, 0],
        "has_box": [0, 0, 1, 0, 1, 1, 1, 1],
        "repeated_pattern": 0,
        "compass_C": 0.0,
    }
)
WEIGHTS = {"exact_match": (0, 0, 1), "strict_compliance": (0, 0, 1)}


def test_ranks_follow_the_scheme():
    results = rank_rubrics(ATTEMPTS, list(WEIGHTS), weights=WEIGHTS, random_seed=1, draws=20)
    ranks = {name: tree["ranking"]["rank"].values.tolist() for name, tree in results.items()}
    assert ranks == {"exact_match": [1, 2], "strict_compliance": [2, 1]}
    columns = [text.get_text() for text in plot_rank_flow(results).axes[0].get_xticklabels()]
    assert columns == ["exact_match", "strict_compliance"]


def test_a_result_is_that_of_rank():
    (got,) = rank_rubrics(ATTEMPTS, "format_aware", "avg", random_seed=3, draws=30).values()
    data = rubric_responses(ATTEMPTS, SCHEMES["format_aware"])
    expected = rank(data, "avg", random_seed=3, draws=30)
    np.testing.assert_array_equal(got["posterior"]["score"], expected["posterior"]["score"])


def test_an_evaluation_has_a_row_per_scheme_and_system():
    weights = {"exact_match": (0, 0, 1)}
    table = evaluate_rubrics(ATTEMPTS, ["format_aware", "exact_match"], weights=weights)
    assert table["scheme"].tolist() == ["format_aware"] * 2 + ["exact_match"] * 2
    # Exact match: categories 2 2 and 2 1, and one of each of three.
    assert table["mean"].iloc[2] == pytest.approx((3 / 5 + 2 / 5) / 2)
    assert (table["lower"] < table["mean"]).all()


def test_weights_are_needed_and_named():
    with pytest.raises(DataError, match="weights must be given for the scheme exact_match"):
        rank_rubrics(ATTEMPTS, "exact_match")
    with pytest.raises(ValueError, match="weights must be by name of a scheme, one of exact_match"):
        rank_rubrics(ATTEMPTS, "exact_match", weights={"exact": (0, 0, 1)})
    with pytest.raises(DataError, match=r"weights must be 3 numbers.*for the scheme exact_match"):
        evaluate_rubrics(ATTEMPTS, "exact_match", weights={"exact_match": (0, 1)})


def test_what_a_scheme_lacks_is_said():
    assert why_not(ATTEMPTS, SCHEMES["format_aware"]) == ""
    assert why_not(ATTEMPTS, SCHEMES["exact_match"]) == "no weights"
    assert why_not(ATTEMPTS, SCHEMES["ood_robust"]) == "no column prompt_bpt"
