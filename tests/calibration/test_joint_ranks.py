"""Joint rank sets and groups of ranked data: they hold the whole order, and follow the decisions.

Systems that are all equal are the worst case: a set fails as soon as one pair seems resolved.
"""

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.results.decisions import pairwise_decisions
from bayesrank.results.ranks import rank_range

N_SIMULATIONS = 120
# A coverage of 0.95 has a standard error of 0.02.
LEAST = 0.95 - 3 * 0.02

ABILITIES = {
    "all equal": np.zeros(5),
    "two groups": np.array([0.0, 0.0, 0.0, 2.0, 2.0]),
    "close": np.linspace(0.0, 1.0, 5),
}


def draw_data(abilities, seed, *, population):
    rng = np.random.default_rng(seed)
    kinds = np.random.default_rng(9).normal(size=500)
    difficulty = rng.choice(kinds, 25) if population else kinds[:25]
    chance = 1 / (1 + np.exp(difficulty - abilities[:, np.newaxis]))
    return Responses((rng.random((5, 25, 6)) < chance[..., np.newaxis]).astype(int))


@pytest.mark.parametrize("target", ["benchmark", "population"])
@pytest.mark.parametrize("method", ["avg", "bradley_terry"])
@pytest.mark.parametrize("truth", ["all equal", "two groups"])
def test_joint_rank_sets_hold_the_whole_order(truth, method, target):
    abilities = ABILITIES[truth]
    best, worst = rank_range(abilities)
    held = []
    for seed in range(N_SIMULATIONS):
        data = draw_data(abilities, seed, population=target == "population")
        ranking = rank(data, method, target=target, draws=150, random_seed=seed)["ranking"]
        lower, upper = (ranking[f"joint_rank_{end}"].values for end in ("lower", "upper"))
        held.append(bool(((lower <= best) & (worst <= upper)).all()))
    assert np.mean(held) >= LEAST


@pytest.mark.parametrize("method", ["avg", "bayes", "bradley_terry", "borda", "rasch_map"])
@pytest.mark.parametrize("truth", ABILITIES)
def test_groups_and_tables_of_pairs_follow_one_decision(truth, method):
    for seed in range(5):
        data = draw_data(ABILITIES[truth], seed, population=False)
        result = rank(data, method, draws=150, random_seed=seed)
        letters = result["ranking"]["group"].to_series()
        for pair in pairwise_decisions(result).itertuples():
            shared = set(letters[pair.system]) & set(letters[pair.opponent])
            assert bool(shared) != pair.resolved
