"""Comparisons and ballots, from counts, battles and rankings."""

import numpy as np
import pandas as pd
import pytest

from bayesrank import Comparisons
from bayesrank.errors import DataError
from bayesrank.views import Ballots


def test_counts_are_copied_and_diagonals_cleared():
    wins, ties = np.array([[9.0, 3.0], [1.0, 9.0]]), np.array([[4.0, 2.0], [2.0, 4.0]])
    table = Comparisons(wins, ties, systems=["a", "b"])
    wins[...] = ties[...] = 0
    np.testing.assert_array_equal(table.wins, [[0, 3], [1, 0]])
    np.testing.assert_array_equal(table.ties, [[0, 2], [2, 0]])
    np.testing.assert_array_equal(table.totals, [[0, 6], [6, 0]])
    assert repr(table) == "Comparisons(2 systems, 4 wins, 2 ties)"
    for array in (table.wins, table.ties, table.totals, *table.pairs):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert Comparisons([[np.nan, 1], [2, np.nan]]).wins.tolist() == [[0, 1], [2, 0]]


def test_labelled_counts_are_in_the_order_of_the_systems():
    wins = pd.DataFrame([[0, 3, 1], [2, 0, 4], [5, 6, 0]], index=list("abc"), columns=list("abc"))
    turned = wins.loc[:, ["c", "a", "b"]]
    for data in (Comparisons(turned), Comparisons(turned, systems=["a", "b", "c"])):
        assert data.systems == ("a", "b", "c")
        np.testing.assert_array_equal(data.wins, wins)
    data = Comparisons(wins.to_numpy(), turned + turned.T, systems=["a", "b", "c"])
    np.testing.assert_array_equal(data.ties, wins + wins.T)
    assert Comparisons(pd.DataFrame([[0, 1], [2, 0]])).systems == ("system 1", "system 2")
    with pytest.raises(DataError, match="wins must have the systems a, b, c as its columns; got x"):
        Comparisons(wins.rename(columns={"a": "x"}))


def test_pairs_are_those_that_were_compared():
    table = Comparisons([[0, 0, 1], [0, 0, 0], [0, 0, 0]], [[0, 2, 0], [2, 0, 0], [0, 0, 0]])
    first, second = table.pairs
    assert list(zip(first, second, strict=True)) == [(0, 1), (0, 2)]
    assert table.systems == ("system 1", "system 2", "system 3")
    assert table.first_wins is None
    assert table.second_wins is None


def test_comparisons_cannot_be_changed():
    with pytest.raises(AttributeError, match="Comparisons is immutable; wins cannot be set"):
        Comparisons([[0, 1], [1, 0]]).wins = 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"wins": [1, 2]}, r"wins must be a square matrix; got shape \(2,\)"),
        ({"wins": [[0, 1]]}, r"wins must be a square matrix; got shape \(1, 2\)"),
        ({"wins": np.zeros((0, 0))}, r"wins must be a square matrix; got shape \(0, 0\)"),
        ({"wins": [[0, 1], [1]]}, "wins must be numbers"),
        ({"wins": [["a", "b"], ["c", "d"]]}, "wins must be numbers"),
        ({"wins": [[0, -1], [2, 0]]}, "wins must be finite and not negative; got -1"),
        ({"wins": [[0, np.inf], [2, 0]]}, "wins must be finite and not negative; got inf"),
        ({"wins": [[0, np.nan], [2, 0]]}, "wins must be finite and not negative; got nan"),
        ({"ties": [[0.0]]}, r"ties must have the shape of wins, \(2, 2\); got \(1, 1\)"),
        ({"ties": [[0, 1], [2, 0]]}, "ties must be symmetric"),
        ({"ties": [[0, -1], [-1, 0]]}, "ties must be finite and not negative; got -1"),
        ({"systems": ["a"]}, "systems must have 2 labels"),
        ({"systems": ["a", "a"]}, "systems must be unique; got 'a' twice"),
        ({"first_wins": [[0, 1], [1, 0]]}, "first_wins and second_wins must be given together"),
        (
            {"first_wins": [[0, 1], [1, 0]], "second_wins": [[0, 1], [1, 0]]},
            "first_wins and second_wins must add up to wins",
        ),
    ],
)
def test_counts_of_another_form_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        Comparisons(**{"wins": [[0, 3], [1, 0]], **arguments})


BATTLES = {
    "first": ["a", "b", "c", "a", "b", "a"],
    "second": ["b", "a", "a", "c", "c", "b"],
    "winner": ["first", "first", "second", "tie", "second", "tie"],
}


def test_battles_are_counted_by_hand():
    table = Comparisons.from_battles(**BATTLES)
    assert table.systems == ("a", "b", "c")
    np.testing.assert_array_equal(table.wins, [[0, 1, 1], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(table.ties, [[0, 1, 1], [1, 0, 0], [1, 0, 0]])
    # a beat b and b beat a as the first named; a beat c and c beat b as the second.
    np.testing.assert_array_equal(table.first_wins, [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(table.second_wins, [[0, 0, 1], [0, 0, 0], [0, 1, 0]])


def test_battles_remember_who_was_named_first_in_ties():
    table = Comparisons.from_battles(["a", "b", "b"], ["b", "a", "a"], ["tie", "tie", "draw"])
    assert table.first_ties.tolist() == [[0, 1], [2, 0]]
    assert table.ties.tolist() == [[0, 3], [3, 0]]
    with pytest.raises(DataError, match="first_ties must add up to ties with their transpose"):
        Comparisons(table.wins, table.ties, first_ties=table.ties)


def test_battles_have_weights_and_an_order_of_systems():
    table = Comparisons.from_battles(
        **BATTLES, weight=[2, 0.5, 1, 3, 0, 4], systems=["c", "d", "b", "a"]
    )
    assert table.systems == ("c", "d", "b", "a")
    wins, ties = np.zeros((2, 4, 4))
    wins[3, 2], wins[2, 3], wins[3, 0] = 2, 0.5, 1
    ties[3, 0] = ties[0, 3] = 3
    ties[3, 2] = ties[2, 3] = 4
    np.testing.assert_array_equal(table.wins, wins)
    np.testing.assert_array_equal(table.ties, ties)


def test_repeated_battles_add_up():
    table = Comparisons.from_battles(["a"] * 5, ["b"] * 5, [1, 1, 2, 1, "tie"])
    np.testing.assert_array_equal(table.wins, [[0, 3], [1, 0]])
    np.testing.assert_array_equal(table.ties, [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("word", "wins", "ties"),
    [(word, [[0, 1], [0, 0]], 0) for word in ("first", "Left", "a", "model_a", "x", "MODEL_X", 1)]
    + [(word, [[0, 0], [1, 0]], 0) for word in ("second", "right", "B", "model_b", "y", "2", 2)]
    + [(word, [[0, 0], [0, 0]], 1) for word in ("tie", " draw ", "Tie (bothbad)", "both_bad")]
    + [("tie (inconsistent)", [[0, 0], [0, 0]], 1)],
)
def test_logs_name_the_winner_in_several_ways(word, wins, ties):
    table = Comparisons.from_battles(["p"], ["q"], [word])
    np.testing.assert_array_equal(table.wins, wins)
    assert table.ties[0, 1] == ties


def test_the_winner_of_turned_battles_is_the_same():
    turned = Comparisons.from_battles(
        BATTLES["second"],
        BATTLES["first"],
        [{"first": "second", "second": "first"}.get(w, w) for w in BATTLES["winner"]],
        systems=["a", "b", "c"],
    )
    straight = Comparisons.from_battles(**BATTLES)
    np.testing.assert_array_equal(turned.wins, straight.wins)
    np.testing.assert_array_equal(turned.ties, straight.ties)
    np.testing.assert_array_equal(turned.first_wins, straight.second_wins)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"winner": ["first"] * 5}, "winner must have one entry per battle; got 5 for 6 battles"),
        ({"first": ["a"]}, "must have one entry per battle, at least one; got 1 and 6"),
        ({"weight": [1.0]}, r"weight must have one entry per battle, 6; got shape \(1,\)"),
        ({"weight": 2.0}, r"weight must have one entry per battle, 6; got shape \(\)"),
        ({"first": [], "second": [], "winner": []}, "at least one; got 0 and 0"),
        ({"weight": [1, 1, 1, 1, 1, -2]}, "weight must hold finite .* got -2"),
        ({"weight": [1, 1, 1, 1, 1, np.nan]}, "weight must hold finite .* got nan"),
        ({"weight": ["1", "x", "1", "1", "1", "1"]}, "weight must be numbers"),
        ({"first": ["b", "b", "c", "a", "b", "a"]}, "first and second must differ; got 'b' twice"),
        ({"winner": ["a won"] * 6}, "winner must be one of the two systems .* got 'a won'"),
        ({"systems": ["a", "b"]}, r"systems must hold every system of a battle; got none for \['c"),
        ({"systems": ["a", "b", "c", "a"]}, "systems must be unique; got 'a' twice"),
        ({"systems": "abc"}, "systems must be a sequence of labels; got 'abc'"),
        ({"systems": 3}, "systems must be a sequence of labels; got 3"),
        ({"first": None}, "first must be a sequence of labels; got None"),
        ({"second": "bbbbbb"}, "second must be a sequence of labels; got 'bbbbbb'"),
        ({"winner": "1"}, "winner must be a sequence of labels; got '1'"),
        ({"winner": [None] * 6}, "winner must hold a label in every place; got None"),
    ],
)
def test_battles_of_another_form_are_refused(changes, message):
    with pytest.raises(DataError, match=message):
        Comparisons.from_battles(**BATTLES | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"winner": ["second", "first", "second", "tie", "second", "tie"]},
        {"weight": [1, 1, 1, 1, 1, 2]},
        {"systems": ["c", "b", "a"]},
        # The same wins, with the other one named first.
        {"first": ["a", "b", "a", "a", "b", "a"], "second": ["b", "a", "c", "c", "c", "b"]}
        | {"winner": ["first", "first", "first", "tie", "second", "tie"]},
    ],
)
def test_every_change_of_battles_shows_in_the_fingerprint(changes):
    changed = Comparisons.from_battles(**BATTLES | changes)
    assert changed.fingerprint != Comparisons.from_battles(**BATTLES).fingerprint


def test_equal_battles_have_equal_fingerprints():
    order = [5, 2, 0, 1, 4, 3]
    shuffled = {name: [column[i] for i in order] for name, column in BATTLES.items()}
    again = Comparisons.from_battles(**shuffled, systems=["a", "b", "c"])
    assert again.fingerprint == Comparisons.from_battles(**BATTLES).fingerprint


# Ballots


def test_rankings_become_grades():
    ballots = Ballots.from_rankings([["b", "a"], ["a", "c", "b"]], systems=["a", "b", "c", "d"])
    np.testing.assert_array_equal(ballots.grades, [[1, 3], [2, 1], [np.nan, 2], [np.nan, np.nan]])
    assert ballots.systems == ("a", "b", "c", "d")
    assert Ballots.from_rankings(iter([["b", "a"], ["c"]])).systems == ("b", "a", "c")


@pytest.mark.parametrize(
    ("rankings", "options", "message"),
    [
        ([], {}, "rankings must hold one or more rankings"),
        ([["a"], []], {}, "rankings must hold one or more rankings, .* none empty"),
        (["ab", "ba"], {}, "each a sequence of labels"),
        ([1, 2], {}, r"each a sequence of labels and none empty; got \[1, 2\]"),
        (None, {}, "rankings must hold one or more rankings"),
        ([["a"]], {"systems": 1}, "systems must be a sequence of labels; got 1"),
        ([["a", "b", "a"]], {}, "rankings must name known systems once each; got .*'a', 'b', 'a'"),
        ([["a", "b"]], {"systems": ["a", "c"]}, "rankings must name known systems once each"),
        ([["a"]], {"systems": ["a", "a"]}, "systems must be unique"),
        ([["a"]], {"systems": "a"}, "systems must be a sequence of labels"),
        ([["a", []]], {}, "rankings must hold one or more rankings, .* none empty"),
        ([["a", ["b", "a"]]], {}, "rankings must name known systems once each"),
    ],
)
def test_rankings_of_another_form_are_refused(rankings, options, message):
    with pytest.raises(DataError, match=message):
        Ballots.from_rankings(rankings, **options)


@pytest.mark.parametrize(
    ("grades", "systems", "message"),
    [
        ([1, 2], ("a", "b"), r"grades must have shape \(system, voter\), all positive; got \(2,\)"),
        ([[], []], ("a", "b"), r"all positive; got \(2, 0\)"),
        ([["best"]], ("a",), "grades must be numbers"),
        ([[1.0], [2.0]], ("a",), "systems must have 2 labels, one per system; got 1"),
        ([[1.0], [2.0]], ("a", "a"), "systems must be unique; got 'a' twice"),
    ],
)
def test_grades_of_another_form_are_refused(grades, systems, message):
    with pytest.raises(DataError, match=message):
        Ballots(grades, systems)


def test_grades_are_copied():
    grades = np.array([[2.0, 1.0], [1.0, 2.0]])
    ballots = Ballots(grades, ("a", "b"))
    grades[...] = 0
    np.testing.assert_array_equal(ballots.grades, [[2, 1], [1, 2]])
    with pytest.raises(ValueError, match="read-only"):
        ballots.grades[...] = 0


def test_systems_may_share_a_place():
    for shared_place in (["b", "c"], ("b", "c"), {"b", "c"}):
        ballots = Ballots.from_rankings([["a", shared_place, "d"]], systems=list("abcd"))
        np.testing.assert_array_equal(ballots.grades[:, 0], [3, 2, 2, 1])


def test_a_ranking_is_made_up_of_choices():
    ballots = Ballots.from_rankings([list("abc"), ["c", "a"], [["a", "b"], "c"], [["b", "c"]]])
    events = ballots.events
    choices = {
        ("".join(np.array(list("abc"))[right]), "".join(np.array(list("abc"))[wrong])): int(n)
        for right, wrong, n in zip(events.right, events.wrong, events.multiplicity, strict=True)
    }
    # To take the last place, or to share it with all that are left, is no choice.
    assert choices == {("a", "bc"): 1, ("b", "c"): 1, ("c", "a"): 1, ("ab", "c"): 1}


def test_ballots_without_a_ranked_system_have_no_choices():
    assert len(Ballots(np.full((2, 3), np.nan), ("a", "b")).events.right) == 0


def test_equal_ballots_have_equal_fingerprints():
    first, again = (Ballots.from_rankings([list("ab"), list("ba")]) for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != Ballots.from_rankings([list("ab"), list("ab")]).fingerprint
    assert repr(first) == "Ballots(2 systems, 2 ballots)"
