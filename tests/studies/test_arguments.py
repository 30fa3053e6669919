"""What studies, plans, checks and rankings of groups take as data, and what they refuse."""

import inspect

import numpy as np
import pytest

from bayesrank import Ballots, Battles, Responses, checking, planning, studies
from bayesrank.by_group import rank_by_group, rank_weighted
from bayesrank.errors import DataError

# Those of a likelihood of comparisons, and the rule for stopping, are for battles, too.
OF_ALL_DATA = {"prior_sensitivity", "should_stop"}
OF_BATTLES_ONLY = {"battle_stability"}
OF_RESPONSES = {
    name: function
    for module in (studies, planning)
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if name in module.__all__
    and next(iter(inspect.signature(function).parameters)) == "data"
    and name not in OF_ALL_DATA | OF_BATTLES_ONLY
}
# These take the other data of pairs, too.
OF_BATTLES = ["plan_pairs", "suggest"]
NEEDED = {"method": "rasch", "methods": ["avg"], "budget": 3, "width": 0.1}
FEW = {"methods": ["avg"], "draws": 2, "pools": 2, "replicates": 4, "sizes": [2], "n": [1]}


def _called(name, data):
    parameters = list(inspect.signature(OF_RESPONSES[name]).parameters.values())
    needed = [each.name for each in parameters if each.default is each.empty][1:]
    options = {each.name: FEW[each.name] for each in parameters if each.name in FEW}
    return OF_RESPONSES[name](data, **options | {n: NEEDED[n] for n in needed if n in NEEDED})


@pytest.mark.parametrize("name", [name for name in OF_RESPONSES if name not in OF_BATTLES])
def test_battles_are_refused(name):
    with pytest.raises(DataError, match=r"data must be responses to .*; got battles"):
        _called(name, Battles(["a"], ["b"], ["tie"]))


@pytest.mark.parametrize("name", OF_BATTLES)
def test_ballots_are_refused(name):
    with pytest.raises(DataError, match="data must be responses or battles; got ballots"):
        _called(name, Ballots(np.eye(2), ["a", "b"]))


@pytest.mark.parametrize("name", OF_RESPONSES)
def test_all_functions_of_responses_take_tables(name):
    chances = np.linspace(0.2, 0.8, 5)[:, None, None]
    outcomes = (np.random.default_rng(0).random((5, 8, 5)) < chances).astype(int)
    data = Responses(outcomes[..., 1:], prior_outcomes=outcomes[..., 0])
    assert str(_called(name, data.to_long())) == str(_called(name, data))


RIGHT = np.array([[[1, 1], [1, 1], [0, 1]], [[1, 0], [0, 1], [0, 0]]])
OF_ALL = {
    "check_data": checking.check_data,
    "should_stop": lambda data: planning.should_stop(data, random_seed=1),
    "prior_sensitivity": lambda data: studies.prior_sensitivity(
        data, "bradley_terry", [1.0, 2.0], power_scaling=False
    ).to_dict(),
}
BY_GROUP = {
    "rank_by_group": rank_by_group,
    "rank_weighted": lambda data: rank_weighted(data, group_weights="equal"),
}


@pytest.mark.parametrize("name", OF_ALL)
def test_arrays_are_outcomes_wherever_all_data_are(name):
    assert OF_ALL[name](RIGHT) == OF_ALL[name](Responses(RIGHT))


@pytest.mark.parametrize("function", (OF_ALL | BY_GROUP).values(), ids=OF_ALL | BY_GROUP)
def test_paths_are_refused_wherever_all_data_are_taken(function):
    with pytest.raises(DataError, match="read files with read_data"):
        function("answers.csv")


@pytest.mark.parametrize("function", BY_GROUP.values(), ids=BY_GROUP)
@pytest.mark.parametrize(
    "data", [RIGHT, Ballots(np.eye(2), ["a", "b"]), Battles(["a"], ["b"], ["a"])]
)
def test_data_without_groups_have_no_rankings_by_group(function, data):
    with pytest.raises(DataError, match="group"):
        function(data)


def test_priors_of_battles_are_compared_as_those_of_responses():
    battles = Battles(list("aab"), list("bcc"), list("aac"))
    study = studies.prior_sensitivity(battles, "bradley_terry", power_scaling=False)
    assert study.sizes["prior"] > 2
    assert not any(str(prior).startswith("empirical") for prior in study["prior"].values)
    with pytest.raises(DataError, match="data must be responses for bayes; got battles"):
        studies.prior_sensitivity(battles, "bayes")
