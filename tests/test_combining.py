"""Responses taken apart and put together again."""

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.errors import DataError

LABELS = {"systems": ["gpt-a", "gpt-b", "o"], "questions": ["p", "q", "r", "s"]}


def responses(kind: str) -> Responses:
    rng = np.random.default_rng(3)
    keywords = LABELS | {"groups": ["x", "x", "y", "z"], "paired": kind == "binary"}
    if kind == "scale":
        return Responses(rng.integers(1, 11, (3, 4, 2)), scale=(1, 10), **keywords)
    if kind == "fractions":
        values = rng.random((3, 4, 2))
        values[0] = 1.0
        return Responses(values, **keywords)
    earlier = rng.integers(0, 2, (4, 2) if kind == "binary" else (3, 4, 2))
    weights = [0, 0.5, 1] if kind == "weights" else None
    values = rng.integers(0, 3 if kind == "weights" else 2, (3, 4, 2))
    values[1, 2, 1] = -1
    return Responses(values, weights=weights, prior_outcomes=earlier, **keywords)


KINDS = ["binary", "weights", "scale", "fractions"]


@pytest.mark.parametrize("kind", KINDS)
def test_parts_put_together_are_the_whole(kind):
    data = responses(kind)
    halves = [data.select(systems="gpt-*"), data.select(systems=["o"])]
    by_question = [data.select(questions=["p", "q"]), data.select(groups=["y", "z"])]
    joined = [Responses.concat(halves), Responses.concat(by_question)]
    one, two = data.select(trials=slice(1)), data.select(trials=[1])
    joined.append(one.append_trials(two))
    for each in joined:
        np.testing.assert_array_equal(each.values, data.values)
        assert (each.groups, each.paired, each.scale) == (data.groups, data.paired, data.scale)
        if data.prior_sets is not None:
            sets = np.broadcast_to(data.prior_sets, each.prior_sets.shape)
            np.testing.assert_array_equal(each.prior_sets, sets)


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_of_the_same_kind(kind):
    data = responses(kind)
    part = data.select(systems="gpt-a", questions="r", trials=0)
    assert part.shape == (1, 1, 1)
    assert part.declared["scale"] == data.declared["scale"]
    assert part.values.item() == data.values[0, 2, 0]


def test_select_follows_the_order_of_the_names():
    data = responses("binary").select(systems=["o", "gpt-a"], questions=["s", "p"])
    assert (data.systems, data.questions, data.groups) == (("o", "gpt-a"), ("s", "p"), ("z", "x"))


def test_trials_of_systems_that_lack_questions_are_missing():
    data = responses("binary")
    more = data.select(systems="o", questions="p", trials=0)
    whole = data.append_trials(more)
    assert whole.shape == (3, 4, 3)
    assert whole.n_missing == data.n_missing + 11


def test_rename():
    data = responses("weights")
    renamed = data.rename(systems={"o": "o1"}, questions=str.upper, groups={"x": "y"})
    assert renamed.systems == ("gpt-a", "gpt-b", "o1")
    assert renamed.questions == ("P", "Q", "R", "S")
    assert renamed.groups == ("y", "y", "y", "z")
    np.testing.assert_array_equal(renamed.values, data.values)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda data: data.select(systems="x"), "systems must be among gpt-a, .*; got 'x'"),
        (lambda data: data.select(groups="w"), "groups must be among x, y, z; got 'w'"),
        (lambda data: data.select(trials=[7]), r"trials must be positions below 2; got \[7\]"),
        (lambda data: data.select(systems=[]), "select must leave a system and a question"),
        (lambda data: data.rename(systems={"x": "y"}), "systems must be among .*; got 'x'"),
        (lambda data: data.rename(systems={"o": "gpt-a"}), "systems must be unique; got 'gpt-a'"),
        (lambda data: Responses.concat([]), "parts must hold at least one"),
        (lambda data: Responses.concat([data, data]), "two outcomes of 'gpt-a' for 'p': .*append"),
        (lambda data: data.append_trials(responses("scale")), "outcomes of one kind"),
        (
            lambda data: data.append_trials(data.rename(groups={"x": "y"})),
            "groups must be the same in all parts; got 'x' and 'y' for 'p'",
        ),
    ],
)
def test_what_cannot_be_is_said(wrong, message):
    with pytest.raises(DataError, match=message):
        wrong(responses("binary"))
