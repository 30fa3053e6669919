"""Ratings battle by battle, against published numbers and the ratings of events."""

import numpy as np
import pandas as pd
import pytest

from bayesrank import Battles, Comparisons, rank
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import log_of
from bayesrank.methods import ratings
from bayesrank.methods.battle_rating_kernels import glicko_battles
from bayesrank.methods.battle_ratings import elo, glicko, periods_of, trueskill
from bayesrank.readers import read_battles

NAMES = np.array(list("abc"))


def a_log(n=60, n_systems=5, **columns):
    rng = np.random.default_rng(3)
    first = rng.integers(n_systems, size=n)
    second = (first + 1 + rng.integers(n_systems - 1, size=n)) % n_systems
    winner = rng.choice(["first", "second", "tie", "both_bad"], size=n)
    return Battles(first, second, winner, systems=range(n_systems), **columns)


def as_events(data):
    """Return battles as the outcomes of a stream: both right in a tie."""
    outcomes = np.full((1, len(data.first), len(data.systems)), -1)
    rows = np.arange(len(data.first))
    outcomes[0, rows, data.first] = data.outcome >= 0
    outcomes[0, rows, data.second] = data.outcome <= 0
    return outcomes


@pytest.mark.parametrize("name", ["simple", "food", "llmfao"])
def test_elo_is_that_of_evalica(shared, name):
    data = read_battles(shared / "data" / f"evalica_{name}.csv")
    golden = pd.read_csv(shared / "data" / f"evalica_{name}_golden.csv", dtype={"item": str})
    expected = golden[golden["algorithm"] == "elo"].set_index("item")["score"]
    found = rank(data, "elo", draws=0)["ranking"]["score"].to_series()
    np.testing.assert_allclose(found, expected.loc[found.index], rtol=1e-12)


@pytest.mark.parametrize("name", ["elo", "glicko", "trueskill"])
def test_a_battle_is_an_event_of_two(name):
    data = a_log()
    log, events = log_of(data), as_events(data)
    shared = {"tie_policy": "draw"}
    if name == "elo":
        one = elo(log, K=20.0, initial_rating=1500.0)
        other = ratings.elo(events, K=20.0, **shared)
    elif name == "glicko":
        one = glicko(log, c=15.0, rd_max=300.0)
        other = ratings.glicko(events, c=15.0, rd_max=300.0, **shared)
    else:
        one = trueskill(log, tau=0.0, draw_probability=0.0)
        other = ratings.trueskill(events, tau=0.0, **shared)
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_the_published_example_of_glicko():
    # Glickman, The Glicko system (1995): three battles of one period.
    means = np.array([[1500.0, 1400.0, 1550.0, 1700.0]])
    variances = np.array([[200.0, 30.0, 100.0, 300.0]]) ** 2
    glicko_battles(
        np.zeros(3, dtype=np.int32),
        np.array([1, 2, 3], dtype=np.int32),
        np.array([1.0, 0.0, 0.0]),
        np.ones(3, dtype=np.int64),
        np.ones((1, 3), dtype=np.int32),
        0.0,
        350.0**2,
        np.log(10.0) / 400.0,
        means,
        variances,
    )
    assert round(means[0, 0]) == 1464
    assert round(np.sqrt(variances[0, 0]), 1) == 151.4


def test_the_documented_example_of_trueskill():
    # https://trueskill.org: rate_1vs1 of two new players, won and drawn.
    won, drawn = (log_of(Battles(["a"], ["b"], [winner])) for winner in ("a", "draw"))
    rating = trueskill(won)
    np.testing.assert_allclose(rating.score, [29.396, 20.604], atol=5e-4)
    np.testing.assert_allclose(rating.rating_deviation, 7.171, atol=5e-4)
    rating = trueskill(drawn)
    np.testing.assert_allclose(rating.score, 25.0, atol=1e-9)
    np.testing.assert_allclose(rating.rating_deviation, 6.458, atol=5e-4)


def test_periods_are_days_from_the_first_battle():
    data = a_log(4, time=[0.0, 3600.0, 86_400.0, 3 * 86_400.0])
    assert periods_of(log_of(data), 1.0).tolist() == [1, 1, 2, 4]
    assert periods_of(log_of(data), None).tolist() == [1, 2, 3, 4]
    with pytest.raises(DataError, match="period must be None for battles without a time; got 7"):
        rank(a_log(), "glicko", period=7, draws=0)


def test_the_order_in_a_period_does_not_matter_but_time_does():
    times = np.repeat([0.0, 86_400.0, 172_800.0], 20)
    data = a_log(time=times)
    order = np.concatenate([np.random.default_rng(1).permutation(20) + 20 * k for k in range(3)])
    names = np.array(data.systems)
    shuffled = Battles(
        names[data.first[order]],
        names[data.second[order]],
        (1 + np.sign(data.outcome[order])) / 2,
        systems=data.systems,
        time=times,
    )
    one, other = (
        rank(each, "glicko", period=1, c=30.0, draws=0)["ranking"]["score"].values
        for each in (data, shuffled)
    )
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert not np.allclose(one, rank(data, "glicko", c=30.0, draws=0)["ranking"]["score"].values)


def test_ties_can_be_left_out():
    data = a_log()
    for policy, kept in (
        ("skip", data.outcome != 0),
        ("correct_draw_only", ~data.both_bad),
    ):
        names = np.array(data.systems)
        left = Battles(
            names[data.first[kept]],
            names[data.second[kept]],
            (1 + np.sign(data.outcome[kept])) / 2,
            systems=data.systems,
        )
        np.testing.assert_allclose(elo(log_of(data), tie_policy=policy), elo(log_of(left)))


def test_whole_weights_are_repeats_and_fractions_are_refused():
    weighted = Battles(["a", "b"], ["b", "c"], ["a", "b"], weight=[3, 2])
    played = Battles(["a"] * 3 + ["b"] * 2, ["b"] * 3 + ["c"] * 2, ["first"] * 5)
    for method in ("elo", "glicko", "trueskill"):
        one, other = (rank(each, method, draws=0)["ranking"] for each in (weighted, played))
        np.testing.assert_array_equal(one["score"], other["score"])
    with pytest.raises(DataError, match=r"weight must be whole numbers for ratings.*got 0\.6"):
        rank(Battles(["a"], ["b"], [0.6]), "elo", draws=0)


def test_counts_have_no_order():
    with pytest.raises(DataError, match="data must be responses or battles in order for elo"):
        rank(Comparisons([[0, 3], [1, 0]]), "elo")


def test_the_spread_of_draws_is_that_of_new_logs():
    """Elo of 300 battles at K = 4, over logs drawn from the same chances."""
    rng = np.random.default_rng(0)
    strength = np.array([0.6, 0.0, -0.6])

    def fight(n=300):
        first = rng.integers(3, size=n)
        second = (first + 1 + rng.integers(2, size=n)) % 3
        chance = 1 / (1 + np.exp(strength[second] - strength[first]))
        return Battles(NAMES[first], NAMES[second], (rng.random(n) < chance) * 1, systems=NAMES)

    scores = np.array(
        [rank(fight(), "elo", draws=0)["ranking"]["score"].values for _ in range(400)]
    )
    drawn = np.array(
        [
            rank(fight(), "elo", draws=100)["posterior"]["score"].values.std((0, 1))
            for _ in range(10)
        ]
    )
    np.testing.assert_allclose(drawn.mean(axis=0) / scores.std(axis=0), 1.0, atol=0.12)


def test_units_widen_ratings_of_judges_who_agree_with_themselves():
    rng = np.random.default_rng(2)
    judge = np.repeat(np.arange(20), 30)
    taste = rng.normal(size=(20, 3)) * 2
    first = rng.integers(3, size=600)
    second = (first + 1 + rng.integers(2, size=600)) % 3
    ahead = taste[judge, first] - taste[judge, second]
    data = Battles(NAMES[first], NAMES[second], (ahead > 0) * 1, systems=NAMES, judge=judge)
    for method in ("elo", "win_rate", "colley"):
        by_judge, by_battle = (
            rank(data, method, unit=unit, random_seed=1)["posterior"]["score"].values.std((0, 1))
            for unit in ("judge", "battle")
        )
        assert (by_judge > 1.5 * by_battle).all(), method
