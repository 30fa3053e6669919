"""Rankings of groups of questions, and groups with weights."""

import json

import numpy as np
import pytest

from bayesrank import Responses, leaderboard, rank
from bayesrank.by_group import group_shares, rank_by_group, rank_weighted
from bayesrank.errors import DataError


@pytest.fixture
def data() -> Responses:
    rng = np.random.default_rng(5)
    outcomes = (rng.random((3, 9, 4)) < np.array([0.7, 0.5, 0.3])[:, None, None]).astype(int)
    groups = ["large"] * 6 + ["small"] * 3
    return Responses(outcomes, systems=["a", "b", "c"], groups=groups)


def test_few_questions_give_a_weighted_mean_the_tails_of_students_t(data):
    settings = {"target": "population", "random_seed": 1, "draws": 500}
    one = rank_weighted(data, "avg", group_weights={"small": 1}, **settings)
    assert one["ranking"].attrs["freedom"] == pytest.approx(2.0)  # three questions
    both = rank_weighted(data, "avg", group_weights="equal", **settings)
    assert 2.0 < both["ranking"].attrs["freedom"] < 7.0  # at most those of both groups
    trials = rank_weighted(data, "avg", group_weights="equal", random_seed=1, draws=500)
    assert "freedom" not in trials["ranking"].attrs


def test_each_group_is_ranked_as_its_part(data):
    trees = rank_by_group(data, "avg", random_seed=1, draws=50)
    assert list(trees) == ["large", "small"]
    for name, tree in trees.items():
        part = data.select(groups=name)
        np.testing.assert_allclose(tree["ranking"]["score"], part.grades.mean(axis=1))
        assert "lcb" in leaderboard(tree)


def test_groups_leave_out_systems_that_they_lack(data):
    values = np.array(data.values)
    values[2, 6:] = -1
    trees = rank_by_group(
        Responses(values, systems=data.systems, groups=data.groups), "avg", draws=0
    )
    assert [tree.sizes["system"] for tree in (t["ranking"] for t in trees.values())] == [3, 2]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ("equal", (0.5, 0.5)),
        ("size", (6 / 9, 3 / 9)),
        ({"small": 3, "large": 1}, (0.25, 0.75)),
    ],
)
def test_the_score_is_the_weighted_mean(data, weights, expected):
    tree = rank_weighted(data, "avg", group_weights=weights, random_seed=1, draws=300)
    means = [data.grades[:, :6].mean(axis=1), data.grades[:, 6:].mean(axis=1)]
    score = expected[0] * means[0] + expected[1] * means[1]
    np.testing.assert_allclose(tree["ranking"]["score"], score)
    np.testing.assert_allclose(tree["ranking"]["observed_mean"], score)
    assert tuple(json.loads(tree.attrs["group_weights"]).values()) == pytest.approx(expected)
    assert tree.attrs["fingerprint"] == data.fingerprint
    board = leaderboard(tree)
    assert (board["score_lower"] < board["score"]).all()
    # Independent draws: variances add up.
    parts = rank_by_group(data, "avg", random_seed=1, draws=300)
    variance = [tree["posterior"]["score"].var(("chain", "draw")).values for tree in parts.values()]
    own = tree["posterior"]["score"].var(("chain", "draw")).values
    summed = expected[0] ** 2 * variance[0] + expected[1] ** 2 * variance[1]
    np.testing.assert_allclose(own, summed, rtol=0.15)


def test_weights_by_size_are_the_plain_mean(data):
    weighted = rank_weighted(data, "avg", group_weights="size", draws=0)
    plain = rank(data, "avg", draws=0)
    np.testing.assert_allclose(weighted["ranking"]["score"], plain["ranking"]["score"])


def test_a_weight_of_one_group_is_that_group(data):
    tree = rank_weighted(data, "avg", group_weights={"small": 2}, draws=0)
    np.testing.assert_allclose(tree["ranking"]["score"], data.grades[:, 6:].mean(axis=1))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("alike", "group_weights must be equal, size, or a number for each group; got 'alike'"),
        ({"x": 1}, "group_weights must be of the groups large, small; got 'x'"),
        (None, "group_weights must be equal, size, or a number for each group; got None"),
        ({"small": -1}, "group_weights must be positive numbers"),
        ({"small": float("inf")}, "group_weights must be positive numbers"),
        ({"small": "many"}, "group_weights must be numbers; got "),
        ({"small": None}, "group_weights must be positive numbers"),
        ({"small": [1, 2]}, "group_weights must be positive numbers"),
        ({}, "group_weights must be positive numbers"),
    ],
)
def test_weights_that_are_none_are_refused(data, weights, message):
    with pytest.raises(DataError, match=message):
        group_shares(data, weights)


def test_every_system_must_have_all_groups(data):
    values = np.array(data.values)
    values[2, 6:] = -1
    lacking = Responses(values, systems=data.systems, groups=data.groups)
    with pytest.raises(DataError, match=r"got none of 'c' in 'small'"):
        rank_weighted(lacking, "avg", group_weights="equal", draws=0)
    with pytest.raises(DataError, match="groups must be given for rankings by group"):
        rank_by_group(Responses([[1, 0]]), "avg")


def test_the_command_prints_groups_and_weights(run, tmp_path):
    path = tmp_path / "log.csv"
    rows = [
        f"{model},{group},{number},{trial},{int(model < group)}"
        for model in "af"
        for group, size in (("b", 2), ("e", 3))
        for number in range(size)
        for trial in range(2)
    ]
    path.write_text("\n".join(["model,subject,id,trial,score", *rows]))
    common = ("rank", path, "--method", "avg", "--draws", 0)
    result = run(*common, "--by-group")
    assert "Groups: b 2 and e 3; all questions have equal weights" in result.stderr
    assert result.stdout.count("rank  system") == 3
    assert "Group b:" in result.stdout
    result = run(*common, "--group-weights", "b=3,e=1")
    assert "Weights of groups: b 0.75 and e 0.25." in result.stderr
    checked = run("rank", path, "--group-weights", "e=1", "--draws", 20)
    assert "Check: " in checked.stderr
    battles = tmp_path / "votes.csv"
    battles.write_text("model_a,model_b,winner\na,b,tie\n")
    message = run("rank", battles, "--group-weights", "equal", code=2).stderr
    assert "INPUT must be responses for weights of groups; got battles" in message
    message = run(*common, "--group-weights", "x=1", code=2).stderr
    assert "--group-weights must be of the groups b, e; got 'x'" in message
