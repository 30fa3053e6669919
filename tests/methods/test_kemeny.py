"""Kemeny-Young against all orders, its three ways to an optimum, and their limits."""

from itertools import permutations

import numpy as np
import pytest

from bayesrank.methods import kemeny
from bayesrank.methods.kemeny import kemeny_young
from bayesrank.methods.kemeny_milp import all_optima_by_milp
from bayesrank.methods.kemeny_search import StateLimitError, all_optima, order_exists
from bayesrank.methods.partial_orders import level_scores
from bayesrank.methods.preferences import preference_counts


def grades_with_margins(margins: np.ndarray) -> np.ndarray:
    """Build questions whose pairwise margins are twice the given ones (McGarvey's construction)."""
    n = len(margins)
    questions = []
    for i, j in np.argwhere(margins > 0):
        rest = [node for node in range(n) if node not in (i, j)]
        for order in ([i, j, *rest], [*reversed(rest), i, j]):
            question = np.empty(n)
            question[order] = np.arange(n, 0, -1)
            questions += [question] * int(margins[i, j])
    return np.array(questions).T if questions else np.zeros((n, 1))


def optimal_orders(margins: np.ndarray) -> list[tuple[int, ...]]:
    """List the orders that reverse the least total margin."""
    n = len(margins)
    costs = {
        order: np.triu(margins.T[np.ix_(order, order)], 1).sum() for order in permutations(range(n))
    }
    least = min(costs.values())
    return [order for order, cost in costs.items() if cost == least]


def common_levels(margins: np.ndarray) -> np.ndarray:
    n = len(margins)
    precedes = np.ones((n, n), dtype=bool)
    for order in optimal_orders(margins):
        place = np.argsort(order)
        precedes &= place[:, None] < place[None, :]
    return level_scores(precedes)


def random_margins(seed: int, n: int, largest: int) -> np.ndarray:
    margins = np.triu(np.random.default_rng(seed).integers(-largest, largest + 1, (n, n)), 1)
    return np.maximum(margins - margins.T, 0).astype(float)


def refuse_to_search(*_: object, **__: object):
    raise StateLimitError


@pytest.fixture(params=["all sets", "search", "integer programme"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Leave few systems to one of the three ways to an optimum."""
    if request.param != "all sets":
        monkeypatch.setattr(kemeny, "FEW", 0)
    if request.param == "integer programme":
        monkeypatch.setattr(kemeny, "all_optima", refuse_to_search)
        monkeypatch.setattr(kemeny, "order_exists", refuse_to_search)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(60))
def test_levels_equal_those_of_all_orders(seed: int):
    margins = random_margins(seed, n=3 + seed % 4, largest=1 + seed % 3)
    grades = grades_with_margins(margins)
    assert (
        preference_counts(grades) - preference_counts(grades).T == 2 * (margins - margins.T)
    ).all()
    assert (kemeny_young(grades) == common_levels(margins)).all()


@pytest.mark.parametrize("n", [8, 11, kemeny.FEW])
def test_all_sets_equal_search(n: int, monkeypatch: pytest.MonkeyPatch):
    grades = np.random.default_rng(n).integers(0, 2, (30, n, 15)).astype(float)
    expected = kemeny_young(grades)
    monkeypatch.setattr(kemeny, "FEW", 0)
    assert (kemeny_young(grades) == expected).all()


@pytest.mark.parametrize("seed", range(20))
def test_one_order_is_an_optimum(seed: int):
    margins = random_margins(seed, n=6, largest=2)
    scores = kemeny_young(grades_with_margins(margins), tie_aware=False)
    assert tuple(np.argsort(-scores).tolist()) in optimal_orders(margins)
    assert sorted(scores) == [1, 2, 3, 4, 5, 6]


def connected_margins() -> np.ndarray:
    """Return seven systems of which the last two are tied but in one order in every optimum.

    The first five have three optimal orders. System 5 beats 2 and 3, and 0 and 1 beat system 6. No
    two of these stand the same way round in all three orders, yet each order puts 5 before 6.
    """
    margins = np.zeros((7, 7))
    margins[:5, :5] = [
        [0, 2, 2, 0, 0],
        [0, 0, 0, 2, 2],
        [0, 1, 0, 0, 1],
        [2, 0, 0, 0, 0],
        [2, 0, 0, 2, 0],
    ]
    margins[5, [2, 3]] = 1.0
    margins[[0, 1], 6] = 1.0
    return margins


@pytest.mark.usefixtures("way")
def test_tied_systems_that_every_optimum_connects_differently():
    margins = connected_margins()
    scores = kemeny_young(grades_with_margins(margins))
    assert (scores == common_levels(margins)).all()
    assert scores[5] > scores[6]


def test_tie_policies_agree():
    grades = np.random.default_rng(0).integers(0, 3, (20, 6, 9)) / 2
    assert (
        kemeny_young(grades, tie_policy="half") == kemeny_young(grades, tie_policy="ignore")
    ).all()


def test_identical_systems_in_a_cycle_are_merged():
    # Seven copies each of three systems in a cycle have 3 (7!)^3 optimal orders.
    cycle = np.array([[2.0, 0.0, 1.0], [1.0, 2.0, 0.0], [0.0, 1.0, 2.0]])
    assert kemeny_young(np.repeat(cycle, 7, axis=0)).tolist() == [21.0] * 21
    one = kemeny_young(np.repeat(cycle, 7, axis=0), tie_aware=False)
    assert sorted(one) == list(range(1, 22))


def test_a_cycle_among_twenty_breaks_at_its_weakest_victory():
    n = 20
    margins = np.triu(np.full((n, n), 3.0), 1)
    margins[4, 9], margins[9, 4] = 0.0, 1.0
    assert kemeny_young(grades_with_margins(margins)).tolist() == list(range(n, 0, -1))


@pytest.mark.parametrize("seed", range(12))
def test_integer_programme_equals_search(seed: int):
    costs = random_margins(seed, n=4 + seed % 4, largest=1 + seed % 3)
    searched, solved = all_optima(costs), all_optima_by_milp(costs, deadline=np.inf)
    assert solved.cost == pytest.approx(searched.cost, abs=1e-9)
    assert solved.can_precede == searched.can_precede


def test_search_gives_up_at_its_limit():
    with pytest.raises(StateLimitError):
        all_optima(random_margins(0, n=8, largest=1), state_limit=1)


@pytest.mark.parametrize("seed", range(20))
def test_triangle_bound_keeps_every_optimum(seed: int):
    costs = random_margins(seed, n=7, largest=1 + seed % 4).T
    least = all_optima(costs).cost
    assert order_exists(costs, least, deadline=np.inf)
    assert not order_exists(costs, least - 0.5, deadline=np.inf)
    # Without the bound, from the definition: every order that costs the least.
    optimal = [np.argsort(order) for order in optimal_orders(costs.T)]
    before = np.any([place[:, None] < place[None, :] for place in optimal], axis=0)
    expected = [sum(1 << int(j) for j in np.flatnonzero(before[:, i])) for i in range(7)]
    assert all_optima(costs).can_precede == expected


def test_search_costs_and_orders_by_hand():
    # Breaking the cheapest of 0 > 1 (by 3), 1 > 2 (by 1) and 2 > 0 (by 2) leaves 2, 0, 1.
    optima = all_optima(np.array([[0.0, 0.0, 2.0], [3.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    assert optima == (1.0, [2, 0, 1], [0b100, 0b101, 0b000])


@pytest.mark.usefixtures("way")
def test_out_of_time_is_an_error():
    cycle = np.array([[2.0, 0.0, 1.0], [1.0, 2.0, 0.0], [0.0, 1.0, 2.0]])
    with pytest.raises(TimeoutError, match="time_limit must be long enough"):
        kemeny_young(cycle, time_limit=1e-9)
    with pytest.raises(TimeoutError, match="time_limit must be long enough"):
        all_optima_by_milp(np.array([[0.0, 1.0], [0.0, 0.0]]), deadline=0.0)


@pytest.mark.parametrize("limit", [0.0, -1.0, np.nan])
def test_a_time_limit_that_is_not_positive_is_refused(limit: float):
    with pytest.raises(ValueError, match="time_limit must be a finite number > 0"):
        kemeny_young(np.zeros((3, 2)), time_limit=limit)
