"""The shipped schemes by name, and on attempts whose category is plain to see."""

import pandas as pd
import pytest

from bayesrank.errors import DataError
from bayesrank.rubrics import SCHEMES, Rule, Scheme, Threshold, classify, find_schemes

# Ten attempts of one system. Bits per token are 1, ..., 10: the first four are at most the 40th
# percentile 4.6; of the wrong ones 1, 4, 6, 8, 9, three are at most the 60th percentile 6.8.
ATTEMPTS = pd.DataFrame(
    {
        "system": "a",
        "is_correct": [0, 1, 1, 0, 1, 0, 1, 0, 0, 1],
        "has_box": [1, 1, 0, 0, 1, 1, 1, 0, 1, 1],
        "token_ratio": [0.5, 0.1, 0.2, 0.9, 0.4, 0.6, 0.8, 0.3, 0.7, 1.0],
        "repeated_pattern": [0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        "prompt_bpt": [1.0, 1.1, 1.7, 1.2, 1.3, 1.8, 1.4, 1.5, 1.6, 3.2],
        "completion_bpt": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0],
        "compass_A": [0.7, 0.9, 0.2, 0.1, 0.4, 0.4, 0.35, 0.1, 0.1, 0.6],
        "compass_B": [0.2, 0.1, 0.7, 0.8, 0.3, 0.3, 0.55, 0.7, 0.1, 0.3],
        "compass_C": [0.1, 0.0, 0.1, 0.1, 0.3, 0.3, 0.1, 0.2, 0.8, 0.1],
    }
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("conservative", [1, 3, 3, 1, 3, 2, 3, 0, 0, 3]),
        ("conf_wrong_penalty", [1, 3, 3, 1, 3, 1, 3, 0, 0, 3]),
        # Token ratios are 0.1, ..., 1.0, with percentiles 0.397 and 0.694.
        ("efficiency_adjusted", [2, 4, 4, 3, 5, 2, 6, 0, 0, 6]),
        ("format_aware", [2, 4, 3, 1, 4, 2, 4, 0, 0, 4]),
        ("balanced_composite", [3, 7, 5, 1, 6, 2, 6, 0, 0, 6]),
        # Bits per token of the prompt: the 90th percentile is 1.94.
        ("ood_robust", [2, 4, 4, 2, 4, 2, 4, 0, 0, 3]),
        ("rare_event", [3, 4, 4, 5, 4, 3, 4, 0, 0, 2]),
        ("verifier_calibrated", [1, 5, 3, 2, 4, 2, 4, 0, 0, 5]),
        ("verifier_only", [3, 3, 2, 2, 3, 3, 2, 0, 1, 3]),
        # No label reaches 0.6 in the fifth, sixth and seventh.
        ("verifier_only_2025", [3, 3, 2, 2, 1, 1, 1, 0, 0, 3]),
    ],
)
def test_categories_by_hand(name: str, expected: list[int]):
    assert classify(ATTEMPTS, SCHEMES[name]).tolist() == expected


def test_the_same_name_in_both_papers_is_two_schemes():
    for name in ("format_aware", "efficiency_adjusted", "verifier_only"):
        assert SCHEMES[name].source.startswith("arXiv:2603.10960")
        assert SCHEMES[f"{name}_2025"].source.startswith("arXiv:2510.04265")


@pytest.mark.parametrize(
    ("name", "by"), [("efficiency_adjusted", "system"), ("efficiency_adjusted_2025", "group")]
)
def test_thresholds_are_per_model_or_per_dataset(name: str, by: str):
    assert {threshold.by for threshold in SCHEMES[name].thresholds.values()} == {by}


def test_schemes_are_found_by_name_and_as_they_are():
    mine = Scheme("mine", ("no", "yes"), (Rule("yes", "is_correct"),), otherwise="no")
    assert find_schemes("mine", own={"mine": mine}) == (mine,)
    assert find_schemes(mine) == (mine,)
    found = find_schemes(["rare_event", mine])
    assert [scheme.name for scheme in found] == ["rare_event", "mine"]


@pytest.mark.parametrize(
    ("schemes", "message"),
    [
        (["best"], "schemes must be among exact_match, .*; got 'best'"),
        ([], "schemes must be one or more, each once; got none"),
        (["rare_event", "rare_event"], "each once; got rare_event, rare_event"),
    ],
)
def test_names_that_say_no_schemes_are_refused(schemes: list[str], message: str):
    with pytest.raises(ValueError, match=message):
        find_schemes(schemes)


def test_a_dataset_without_right_answers_has_no_thresholds_among_them_and_needs_none():
    attempts = ATTEMPTS.assign(is_correct=0)
    assert set(classify(attempts, SCHEMES["conf_calibrated"])) == {0, 1, 2}


def test_a_percentile_of_nothing_that_decides_is_an_error():
    scheme = Scheme(
        "s",
        ("long", "short"),
        (Rule("short", "token_ratio <= middle"),),
        otherwise="long",
        thresholds={"middle": Threshold("token_ratio", 50, "system", "is_correct")},
    )
    with pytest.raises(DataError, match="'is_correct' must hold for an attempt of every group"):
        classify(ATTEMPTS.assign(is_correct=0), scheme)
