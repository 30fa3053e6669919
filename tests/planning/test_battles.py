"""Plans of battles over units with many votes."""

import numpy as np

from bayesrank import Battles
from bayesrank.planning.battles import plan_battles, suggest_battles

NAMES = np.array(["a", "b", "c"])


def a_log(votes_of_each):
    rng = np.random.default_rng(4)
    first = rng.integers(3, size=600)
    second = (first + 1 + rng.integers(2, size=600)) % 3
    chance = 1.0 / (1.0 + np.exp(-np.array([0.0, 0.0, -1.0])[[first, second]].T @ [1.0, -1.0]))
    return Battles(
        NAMES[first],
        NAMES[second],
        np.where(rng.random(600) < chance, "first", "second"),
        systems=NAMES,
        judge=np.arange(600) // 5,
        weight=np.full(600, votes_of_each),
    )


def test_votes_that_judges_repeat_are_not_counted_as_more_information():
    once, repeated = (plan_battles(a_log(n), goal="full", random_seed=1) for n in (1, 4))
    needed = [table["further_battles_needed"].to_numpy()[0] for table in (once, repeated)]
    assert 0.0 < needed[0] < np.inf
    np.testing.assert_allclose(needed[1] / needed[0], 4.0, rtol=0.2)


def test_suggested_battles_add_up():
    table = suggest_battles(a_log(4), 50, random_seed=1)
    assert table["further_battles"].sum() == 50
