"""A default target that changes while trials are added is announced."""

import warnings

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.errors import TargetWarning

SYSTEMS, QUESTIONS = ["a", "b"], [f"growing {m}" for m in range(6)]


def grown(n_trials: int, seed: int = 1) -> Responses:
    outcomes = np.random.default_rng(seed).integers(0, 2, (2, 6, 3))
    return Responses(outcomes[..., :n_trials], systems=SYSTEMS, questions=QUESTIONS)


def test_a_change_is_announced_once():
    assert rank(grown(1)).attrs["target"] == "population"
    with pytest.warns(TargetWarning, match="it was 'population' before"):
        assert rank(grown(2)).attrs["target"] == "benchmark"
    assert rank(grown(3)).attrs["target"] == "benchmark"


def test_other_data_and_chosen_targets_are_none_of_its_business():
    rank(grown(1, seed=2))
    rank(grown(2, seed=3))
    rank(grown(1, seed=3))
    rank(grown(2, seed=3), target="benchmark")
    rank(grown(2, seed=3), draws=0)


def test_a_unit_that_names_the_target_is_no_change_of_the_default():
    rank(grown(2, seed=4))
    rank(grown(2, seed=4), unit="run,question")
    rank(grown(2, seed=4))
    rank(grown(3, seed=4), unit="question")


def test_the_same_trials_are_no_growth(uncompiled):
    rank(grown(1, seed=5))
    few = {"draws": 4, "tune": 4, "chains": 1, "progressbar": False, "log_likelihood": False}
    rank(grown(1, seed=5), "bayes", backend="nuts", **few)


def test_a_few_missing_cells_do_not_change_the_target():
    outcomes = np.random.default_rng(1).integers(0, 2, (4, 10, 2))
    outcomes[0, :3] = -1
    outcomes[1, 4, 1] = -1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in (None, "avg", "bayes", "rasch_map", "bradley_terry_map", "borda"):
            assert rank(Responses(outcomes), method, random_seed=1).attrs["target"] == "benchmark"
    outcomes[:3, :, 1] = -1
    assert rank(Responses(outcomes), random_seed=1).attrs["target"] == "population"
