"""Battles: one row per vote, in the words of arenas."""

import datetime

import numpy as np
import pandas as pd
import pytest

from bayesrank import Battles, Comparisons, Responses
from bayesrank.errors import DataError
from bayesrank.winners import won_in_part


def outcomes(first, second, winner):
    return Battles(first, second, winner).outcome.tolist()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["A>>B", "A>B", "A=B", "B>A", "B>>A"], [2, 1, 0, -1, -2]),
        (["A_WIN", "B_WIN", "TIE"], [1, -1, 0]),
        (["[[A]]", "[[C]]", "[[B]]"], [1, 0, -1]),
        ([1, 0.5, 0], [1, 0, -1]),
        ([1, 0, -1], [1, 0, -1]),
        ([1, 2, 2], [1, -1, -1]),
        (["player_1", "player_2", "draw"], [1, -1, 0]),
        (["1-0", "0-1", "1/2-1/2"], [1, -1, 0]),
        (["White", "Black", "drawn"], [1, -1, 0]),
        (["p", "q", "tie"], [1, -1, 0]),
    ],
)
def test_words_of_winners(words, expected):
    assert outcomes(["p"] * len(words), ["q"] * len(words), words) == expected


def test_names_win_over_sides():
    assert outcomes(["B", "B"], ["A", "A"], ["A", "A"]) == [-1, -1]
    assert outcomes(["2", "1"], ["1", "2"], ["1", "1"]) == [-1, 1]


@pytest.mark.parametrize(
    ("first", "winner", "message"),
    [
        # The third battle is not one of A, so that A is no name there, and may be a side elsewhere.
        (
            ["A", "B", "C"],
            ["A", "B", "A"],
            "winner must be a system of its battle .* got 'A', a name",
        ),
        (["p", "q", "r"], ["p", "q", "s"], r"winner must be one of .* got 'p'"),
        (["p", "q", "r"], [1, 2, 0], r"winner must hold numbers from 0 to 1 .* got 0, 1, 2"),
        (["p", "q", "r"], [3, 1, 2], r"winner must hold numbers"),
    ],
)
def test_ambiguous_and_unknown_winners_are_refused(first, winner, message):
    with pytest.raises(DataError, match=message):
        Battles(first, ["B" if name == "A" else "X" for name in first], winner)


@pytest.mark.parametrize(
    "labels", [{"judge": ["\ud800"]}, {"group": ["\ud800"]}, {"covariates": {"\ud800": [1.0]}}]
)
def test_half_a_character_in_a_name_is_an_error(labels):
    (argument,) = labels
    with pytest.raises(DataError, match=f"{argument} must be valid text in UTF-8"):
        Battles(["p"], ["q"], ["p"], **labels)


def test_shares_are_rows_of_one_vote():
    data = Battles(
        ["p", "p", "q"], ["q", "q", "p"], [0.75, 0.5, 1.0], prompt=[1, 2, 2], weight=[2, 1, 1]
    )
    assert data.outcome.tolist() == [1, -1, 0, 1]
    assert data.weight.tolist() == [1.5, 0.5, 1.0, 1.0]
    assert data.vote.codes.tolist() == [0, 0, 1, 2]
    assert data.prompt.codes.tolist() == [0, 0, 1, 1]
    assert data.n_battles == 3
    with pytest.raises(DataError, match=r"winner must be shares from 0 to 1; got -0\.5 to 1\.0"):
        won_in_part([-0.5, 1.0])


def test_both_bad_is_a_tie_that_is_remembered():
    data = Battles(["p"] * 3, ["q"] * 3, ["tie", "tie (bothbad)", "model_a"])
    assert data.both_bad.tolist() == [False, True, False]
    assert data.ties[0, 1] == 2
    assert Battles(["p"], ["q"], ["tie"]).both_bad is None


def test_battles_are_comparisons_in_the_order_of_time():
    first, second, winner = ["b", "a", "c"], ["a", "c", "b"], ["tie", "first", "second"]
    data = Battles(first, second, winner, time=[30, 10, 20], judge=["u", "v", "u"])
    counted = Comparisons.from_battles(first, second, winner, systems=data.systems)
    assert data.systems == ("a", "c", "b")
    for name in ("wins", "ties", "first_wins", "second_wins", "first_ties"):
        np.testing.assert_array_equal(getattr(data, name), getattr(counted, name))
    assert data.first.tolist() == [0, 1, 2]
    assert data.time.tolist() == [10, 20, 30]
    assert data.judge.codes.tolist() == [1, 0, 0]
    for array in (data.first, data.outcome, data.judge.codes):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize(
    "time",
    [
        ["2026-01-02", "2026-01-01T00:00:00Z"],
        pd.to_datetime(["2026-01-02", "2026-01-01"]),
        np.array(["2026-01-02", "2026-01-01"], dtype="datetime64[D]"),
        [datetime.date(2026, 1, 2), datetime.date(2026, 1, 1)],
    ],
)
def test_times_may_be_dates(time):
    data = Battles(["a", "a"], ["b", "c"], ["first", "tie"], time=time)
    assert data.time.tolist() == [1767225600.0, 1767312000.0]
    assert data.systems == ("a", "c", "b")


def test_units_are_listed_from_the_coarsest():
    names = [f"u{row % 6}" for row in range(24)]
    prompts = [row // 2 for row in range(24)]
    data = Battles(["a"] * 24, ["b"] * 24, ["a"] * 24, judge=names, prompt=prompts)
    assert dict(data.units) == {"judge": 6, "prompt": 12, "battle": 24}
    assert data.default_unit(crossed=False) == "judge"
    assert data.default_unit(crossed=True) == "judge,prompt"
    assert data.unit_codes("prompt").tolist() == prompts
    within = Battles(["a"] * 24, ["b"] * 24, ["a"] * 24, judge=names, prompt=range(24))
    assert within.default_unit(crossed=True) == "judge"  # one judge saw each prompt
    few = Battles(["a"] * 24, ["b"] * 24, ["a"] * 24, judge=["gpt-4"] * 24)
    assert few.default_unit(crossed=False) == "battle"
    light = Battles(["a"] * 24, ["b"] * 24, ["a"] * 24, judge=names, weight=[0.2] * 24)
    assert dict(light.units) == {"judge": 6, "battle": 5}
    assert light.default_unit(crossed=False) == "judge"
    with pytest.raises(DataError, match="unit must be one of judge, battle; got 'prompt'"):
        few.unit_codes("prompt")
    with pytest.raises(ValueError, match="unit must be one of battle, prompt, judge; got 'user'"):
        few.unit_codes("user")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"judge": ["u"]}, "judge must have one label per battle, 2; got 1"),
        ({"prompt": ["u", None]}, "prompt must hold a label in every place; got None"),
        ({"judge": pd.Series(["u", "\ud83d"], dtype=object)}, "judge must be valid text in UTF-8"),
        ({"time": [1.0]}, "time must be one finite number per battle"),
        ({"time": [1.0, np.nan]}, "time must be one finite number per battle"),
        ({"covariates": {"length": ["x", "y"]}}, "length must be numbers"),
    ],
)
def test_columns_of_another_form_are_refused(changes, message):
    with pytest.raises(DataError, match=message):
        Battles(["a", "b"], ["b", "a"], ["tie", "tie"], **changes)


def test_every_row_shows_in_the_fingerprint():
    plain = Battles(["a", "b"], ["b", "a"], ["first", "tie"])
    others = [
        Battles(["b", "a"], ["a", "b"], ["tie", "first"], systems=["a", "b"]),
        Battles(["a", "b"], ["b", "a"], ["A>>B", "tie"]),
        Battles(["a", "b"], ["b", "a"], ["first", "tie"], judge=["u", "u"]),
        Battles(["a", "b"], ["b", "a"], ["first", "tie"], time=[1, 2]),
        Battles(["a", "b"], ["b", "a"], ["first", "both_bad"]),
        Battles(["a", "b"], ["b", "a"], ["first", "tie"], covariates={"length": [0.0, 1.0]}),
    ]
    assert len({each.fingerprint for each in (plain, *others)}) == 7
    assert Battles(["a", "b"], ["b", "a"], ["A", "draw"], systems=["a", "b"]).fingerprint == (
        plain.fingerprint
    )


@pytest.mark.parametrize("paired", [True, False])
def test_questions_vote_on_every_pair(paired):
    rng = np.random.default_rng(1)
    data = Responses(rng.integers(-1, 2, (4, 6, 3)), groups=list("xxyyzz"), paired=paired)
    votes = Battles.from_responses(data)
    np.testing.assert_allclose(votes.wins, data.comparisons.wins)
    np.testing.assert_allclose(votes.ties, data.comparisons.ties)
    assert votes.systems == data.systems
    assert votes.prompt.names == tuple(data.questions)
    by_prompt = dict(zip(votes.prompt.codes.tolist(), votes.group.codes.tolist(), strict=True))
    assert [votes.group.names[by_prompt[m]] for m in range(6)] == list("xxyyzz")


def test_frames_in_any_layout():
    frame = pd.DataFrame(
        {"Player1": ["x", "y"], "player2": ["y", "z"], "win1": [4, 0], "win2": [1, 2]}
    )
    data = Battles.from_frame(frame)
    assert data.wins.tolist() == [[0, 4, 0], [1, 0, 0], [0, 2, 0]]
    assert data.n_battles == 7
    games = pd.DataFrame({"White": ["x", "z"], "Black": ["y", "x"], "Result": ["1-0", "1/2-1/2"]})
    assert Battles.from_frame(games).outcome.tolist() == [1, 0]
    with pytest.raises(
        DataError, match=r"columns for two systems, .* got model, score in the table"
    ):
        Battles.from_frame(pd.DataFrame({"model": ["a"], "score": [1]}))
    with pytest.raises(DataError, match=r"frame must be a pandas\.DataFrame; got list"):
        Battles.from_frame([1])


def test_unknown_judges_are_different_ones():
    frame = pd.DataFrame(
        {
            "model_a": ["x"] * 3,
            "model_b": ["y"] * 3,
            "winner": ["a", "b", "tie"],
            "judge": ["u", None, None],
        }
    )
    assert len(Battles.from_frame(frame).judge.names) == 3
