"""Clusters of questions in resamples, and counts that hardly vary."""

import tracemalloc

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.inference.resample.units import clusters_of
from bayesrank.inference.resample.weights import question_weights, resample

GROUPS = list("aaabbcddee")


def simulate(*, groups=None, shape=(3, 10, 4), seed=0) -> Responses:
    rng = np.random.default_rng(seed)
    return Responses((rng.random(shape) < 0.6).astype(int), groups=groups)


def test_questions_of_a_cluster_share_their_weight():
    weights = question_weights(simulate(groups=GROUPS), 50, np.random.default_rng(0))
    np.testing.assert_allclose(weights.mean(axis=1), 1)
    for name in "abcde":
        members = np.array(GROUPS) == name
        assert (np.ptp(weights[:, members], axis=1) == 0).all()
    assert (np.ptp(weights, axis=1) > 0).all()


def test_without_groups_every_question_is_its_own_cluster():
    assert clusters_of(simulate()).tolist() == list(range(10))
    weights = question_weights(simulate(), 1, np.random.default_rng(0))
    assert len(np.unique(weights)) == 10


def test_few_groups_do_not_show_how_groups_vary():
    assert clusters_of(simulate(groups=list("aaabbbccdd"))).tolist() == list(range(10))


@pytest.mark.parametrize("kind", ["grades", "stream"])
def test_whole_data_sets_have_as_many_questions(kind):
    data = simulate(groups=GROUPS)
    rng = np.random.default_rng(0)
    batches = list(resample(data, kind, target="population", smooth=False, size=40, rng=rng))
    if kind == "stream":
        assert batches[0][1].shape == (40, 40)
        return
    weights = batches[0][-1]
    np.testing.assert_array_equal(weights.sum(axis=1), 10)
    # Clusters are drawn whole, but for the last.
    differ = [sum(np.ptp(row[np.array(GROUPS) == name]) > 0 for name in "abcde") for row in weights]
    assert max(differ) <= 1


def test_counts_that_never_change_are_spread_over_a_step():
    outcomes = np.zeros((3, 20, 4), dtype=int)
    outcomes[0] = 1
    outcomes[1, :, :2] = 1
    result = rank(Responses(outcomes), "copeland", draws=500, random_seed=0)
    draws = result["posterior"]["score"].stack(sample=("chain", "draw")).transpose("sample", ...)
    spread = draws - result["ranking"]["score"]
    np.testing.assert_allclose([spread.min(), spread.max()], [-0.5, 0.5], atol=0.01)
    # The first and the last have every victory and none: their draws are on one
    # side, and half of a spread even from -1/2 to 1/2 has the mean 1/8.
    np.testing.assert_allclose(spread.mean("sample"), [-0.125, 0.0, 0.125], atol=1e-12)
    # The order of different counts stays as it is.
    np.testing.assert_array_equal(result["ranking"]["prob_best"], [1, 0, 0])


def test_systems_that_always_tie_may_differ_by_less_than_a_step():
    # Equal counts are no sign of equal expectations: each is somewhere in the step.
    outcomes = np.zeros((3, 20, 4), dtype=int)
    outcomes[:2] = 1
    result = rank(Responses(outcomes), "copeland", target="population", draws=500, random_seed=0)
    np.testing.assert_allclose(result["ranking"]["superiority"].values[0, 1], 0.5, atol=0.05)
    np.testing.assert_allclose(result["ranking"]["prob_best"], [0.5, 0.5, 0], atol=0.05)
    assert result["ranking"]["group"].values.tolist() == ["a", "a", "b"]


def test_the_worst_defeat_is_not_certain_at_its_end():
    # The last lost every question so far, so that it could not have lost more.
    outcomes = np.zeros((3, 20, 4), dtype=int)
    outcomes[0], outcomes[1, :, :2] = 1, 1
    result = rank(Responses(outcomes), "minimax", target="population", draws=500, random_seed=0)
    last = result["ranking"].to_dataset().isel(system=2)
    assert last["score"] == -20
    assert last["score_upper"] > -19
    assert (result["ranking"]["prob_best"].values == [1, 0, 0]).all()


def test_rates_of_zero_and_one_stay_in_range():
    outcomes = np.zeros((2, 20, 4), dtype=int)
    outcomes[0] = 1
    for method in ("win_rate", "nash"):
        result = rank(Responses(outcomes), method, target="population", draws=50, random_seed=0)
        draws = result["posterior"]["score"].values
        assert draws.min() >= 0.0
        assert draws.max() <= 1.0
        # One question more that the last may win or tie; of the win rate also a step.
        assert 0.1 < (draws[..., 1] == 0.0).mean() < 0.5
        assert 0.1 < draws[..., 1].max() < 0.5


@pytest.mark.parametrize(
    ("method", "shape", "unit"),
    [
        ("win_rate", (3, 1, 150), "run"),
        ("win_rate", (3, 2, 40), "trial"),
        ("serial_rank", (2, 20, 10), "trial"),
    ],
)
def test_scores_of_few_values_have_intervals(method, shape, unit):
    # Draws that hardly ever move a score would leave its quantiles alike.
    rng = np.random.default_rng(0)
    for seed in range(20):
        chances = np.linspace(0.3, 0.7, shape[0])[:, np.newaxis, np.newaxis]
        data = Responses((rng.random(shape) < chances).astype(int))
        ranking = rank(data, method, target="benchmark", unit=unit, random_seed=seed)["ranking"]
        width = ranking["score_upper"].values - ranking["score_lower"].values
        assert width.min() > 1e-9


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("paired", [True, False])
def test_pairs_over_questions_need_no_table_of_all_pairs(paired, missing, monkeypatch):
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 2**17)
    rng = np.random.default_rng(0)
    outcomes = (rng.random((40, 600, 2)) < 0.6).astype(int)
    outcomes[rng.random(outcomes.shape) < missing] = -1
    data = Responses(outcomes, paired=paired)
    assert data.levels.shape == data.shape
    assert data.level_counts.shape == (40, 600, 2)
    options = {"target": "population", "smooth": True}
    tracemalloc.start()
    (batch,) = resample(data, "pairs", size=4, rng=np.random.default_rng(1), **options)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 9 << 20  # a table of wins and ties by question has 15 MB
    weights = question_weights(data, 4, np.random.default_rng(1))
    expected = [np.einsum("bq,qij->bij", weights, one) for one in data.compare_by_question()]
    np.testing.assert_allclose(batch, expected, rtol=1e-12, atol=1e-12)
