"""The pseudo-unit, and other draws of scores at an end of their range."""

import numpy as np
import pytest

from bayesrank import METHODS, Battles, Responses, rank
from bayesrank.errors import DataError
from bayesrank.inference.resample import arguments, corrections
from bayesrank.inference.run import Run
from bayesrank.methods.accuracy import avg

N_QUESTIONS, N_TRIALS = 40, 5


def outcomes(*chances, seed=0):
    rng = np.random.default_rng(seed)
    return rng.binomial(1, np.reshape(chances, (-1, 1, 1)), (len(chances), N_QUESTIONS, N_TRIALS))


def run_of(data, target):
    seed = np.random.SeedSequence(0)
    return Run(METHODS["avg"], data, "bootstrap", target, None, 5, seed, {})


def draws_of(data, method="avg", **options):
    result = rank(data, method, draws=2_000, random_seed=1, **options)
    return result["posterior"]["score"].values.reshape(-1, result["posterior"].sizes["system"])


@pytest.mark.parametrize(
    ("target", "n", "tolerance"),
    [("benchmark", N_QUESTIONS * N_TRIALS, 0.1), ("population", N_QUESTIONS, 0.15)],
)
def test_bounds_follow_the_rule_of_three(target, n, tolerance):
    draws = draws_of(outcomes(1.0, 0.5, 0.0), target=target)
    right, wrong = draws[:, 0], draws[:, 2]
    assert n * (1.0 - np.quantile(right, 0.05)) == pytest.approx(np.log(10), rel=tolerance)
    assert n * (1.0 - np.quantile(right, 0.025)) == pytest.approx(np.log(20), rel=tolerance)
    assert n * np.quantile(wrong, 0.975) == pytest.approx(np.log(20), rel=tolerance)
    assert (right == 1.0).mean() == (wrong == 0.0).mean() == 0.5
    assert right.max() == 1.0
    assert wrong.min() == 0.0


def test_the_miss_of_one_system_is_no_miss_of_another():
    draws = draws_of(outcomes(1.0, 0.5, 0.0), target="population")
    # The estimate of the difference, which holds in a quarter of the draws.
    assert (draws[:, 0] - draws[:, 2] == 1.0).mean() == pytest.approx(0.25, abs=0.03)


def test_points_of_all_questions_lost_may_be_won_of_another():
    # Beside the step between two points.
    draws = draws_of(outcomes(1.0, 0.5, 0.0)[:, :4], "borda", target="population")
    assert np.quantile(draws[:, 2], 0.975) > 2.0
    draws = draws_of(outcomes(1.0, 0.5, 0.0)[:, :4], "borda", target="benchmark")
    assert np.quantile(draws[:, 2], 0.975) > 0.5


@pytest.mark.parametrize("method", ["avg", "bayes", "win_rate", "pass_hat_k", "simple_rank"])
def test_no_question_missed_is_no_certainty(method):
    options = {"k": 2} if method == "pass_hat_k" else {}
    result = rank(outcomes(1.0, 0.7), method, target="population", random_seed=1, **options)
    score, lcb = (result["ranking"][name].values for name in ("score", "lcb"))
    assert lcb[0] < score[0] - 0.01
    assert result["posterior"]["score"].values[..., 0].max() == pytest.approx(score[0])


def test_systems_that_are_always_right_stay_tied():
    result = rank(outcomes(1.0, 1.0, 0.5), "avg", random_seed=1)
    assert result["ranking"]["superiority"].values[0, 1] == 0.5


def test_the_unit_is_that_of_the_questions_a_system_had():
    data = outcomes(1.0, 1.0, 0.5)
    data[0, 4:] = -1
    draws = draws_of(data, target="population")
    # Of four questions, and of forty.
    assert np.quantile(draws[:, 0], 0.05) < 0.65
    assert np.quantile(draws[:, 1], 0.05) > 0.9


def test_the_unit_is_a_cluster_where_questions_have_groups():
    data = Responses(outcomes(1.0, 0.5), groups=list(np.repeat(list("abcdefghij"), 4)))
    draws = draws_of(data, target="population")
    assert 10 * (1.0 - np.quantile(draws[:, 0], 0.05)) == pytest.approx(np.log(10), rel=0.25)


def test_a_score_in_the_middle_may_lie_off_to_either_side():
    data = np.full((3, 6, 2), -1)
    data[:2] = outcomes(0.5, 0.7)[:, :6, :2]
    data[2, 0] = [0, 1]  # half right on its only question
    draws = draws_of(data, target="population")[:, 2]
    assert np.quantile(draws, 0.05) < 0.2
    assert np.quantile(draws, 0.95) > 0.8


@pytest.mark.parametrize("method", ["spectral", "avg"])
def test_equal_systems_are_tied_and_yet_uncertain(method):
    result = rank(np.ones((3, 8, 4), dtype=int), method, random_seed=1)
    assert (result["ranking"]["superiority"].values[0, 1:] == 0.5).all()
    assert (result["ranking"]["lcb"] < result["ranking"]["score"] - 0.01).all()


def test_scores_that_vary_are_left_as_they_are():
    run = run_of(Responses(outcomes(0.5, 0.6)), "benchmark")
    draws = np.random.default_rng(0).random((4, 5, 2))
    found = corrections.with_pseudo_unit(
        run, draws, lambda _: pytest.fail("nothing is to be drawn"), np.random.default_rng(0)
    )
    assert found is draws


def test_batches_change_nothing_but_the_draws_of_one(monkeypatch):
    data = Responses(outcomes(1.0, 0.5))
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 7 * (4 + N_QUESTIONS) * N_TRIALS)
    sizes = []

    def score_of(arguments):
        sizes.append(len(arguments[1]))
        return avg(*arguments)

    draws = np.ones((4, 5, 2))
    draws[..., 1] = np.random.default_rng(0).random((4, 5))
    run = run_of(data, "population")
    found = corrections.with_pseudo_unit(run, draws, score_of, np.random.default_rng(0))
    assert sizes == [7, 7, 6]
    assert (found[..., 0] < 1.0).sum() == 10
    np.testing.assert_array_equal(found[..., 1], draws[..., 1])


@pytest.mark.parametrize("method", ["hodge_rank", "rank_centrality"])
def test_single_links_between_systems_are_not_taken_for_certain(method):
    # Two questions link three systems in a chain, so that no weights move the scores.
    data = np.full((3, 3, 2), -1)
    data[0, 1:], data[1, :2], data[2, 0] = 0, [[0, 0], [1, 1]], 1
    result = rank(data, method, target="population", draws=100, random_seed=3)
    score = result["posterior"]["score"].values
    assert np.ptp(score, axis=(0, 1)).min() > 0.01


@pytest.mark.parametrize("method", ["colley", "pagerank", "win_rate", "glicko"])
@pytest.mark.parametrize("paired", [True, False])
def test_a_system_that_shares_no_question_is_not_certain(method, paired):
    data = Responses([[1, 0, -1], [0, 1, -1], [-1, -1, 1]], paired=paired)
    result = rank(data, method, draws=100, random_seed=0)
    score = result["posterior"]["score"].values
    assert np.ptp(score, axis=(0, 1)).min() > 0.05


def test_a_log_of_little_weight_is_one_battle():
    data = Battles(["a", "b"], ["b", "c"], ["a", "b"], weight=[0.1, 0.2])
    assert data.units["battle"] == 1
    score = rank(data, "win_rate", draws=100, random_seed=0)["posterior"]["score"].values
    assert np.ptp(score, axis=(0, 1)).min() > 0.05


@pytest.mark.parametrize("method", ["elo", "glicko", "trueskill"])
def test_ratings_need_a_battle_that_counts(method):
    with pytest.raises(DataError, match="weight must be positive for one battle at least"):
        rank(Battles(["a"], ["b"], ["a"], weight=[0]), method)


@pytest.mark.parametrize("n", [10, 40])
@pytest.mark.parametrize("unit", ["battle", "prompt"])
def test_battles_that_were_all_won_may_yet_be_lost(n, unit):
    # Rule of three: one more unit, of one battle or of two, lost in every other draw.
    names, result = ["a"] * n, ["model_a"] * n
    prompts = np.arange(n) // 2
    data = Battles(names, ["b"] * n, result, prompt=prompts, systems=["a", "b"])
    board = rank(data, "win_rate", unit=unit, draws=1_000, random_seed=0)
    draws = board["posterior"]["score"].values[..., 0].ravel()
    size = 1 if unit == "battle" else 2
    assert n * (1.0 / np.quantile(draws, 0.05) - 1.0) / size == pytest.approx(np.log(10), rel=0.15)
    assert (draws == 1.0).mean() == 0.5


@pytest.mark.parametrize("method", ["elo", "glicko", "trueskill"])
@pytest.mark.parametrize("form", ["population", "benchmark", "battles"])
def test_ratings_of_a_system_that_never_lost_are_not_certain(method, form):
    if form == "battles":
        data, options = Battles(["a"] * 6, ["b"] * 6, ["model_a"] * 6), {}
    else:
        data, options = np.stack([np.ones((3, 2), int), np.zeros((3, 2), int)]), {"target": form}
    result = rank(data, method, **options, draws=50, random_seed=0)
    draws = result["posterior"]["score"].values.reshape(-1, 2)
    score = result["ranking"]["score"].values
    assert (draws.min(axis=0) < score - 1e-3).all()
    assert (draws.max(axis=0) > score + 1e-3).all()


def test_a_score_that_no_battle_with_those_it_met_moves_is_not_certain():
    # SerialRank has c and d in the middle, whatever one more battle with a system that they met.
    words = ["tie", "model_a", "tie", "model_a", "tie"]
    draws = draws_of(Battles(list("eadbd"), list("ceeab"), words), "serial_rank")
    assert (np.ptp(draws, axis=0) > 0.5).all()


def test_one_battle_more_comes_after_the_others_against_a_system_that_was_met():
    data = Battles(
        list("abcb"),
        list("bcac"),
        ["model_a", "model_b", "tie", "both_bad"],
        time=[3.0, 1.0, 7.0, 2.0],
        systems=list("abc"),
    )
    log = corrections.log_of(data)
    longer = corrections._longer_log(log, 0, np.array([1, 2]))
    for name in ("first", "second", "outcome", "time", "both_bad"):
        np.testing.assert_array_equal(getattr(longer, name)[:4], getattr(log, name))
    np.testing.assert_array_equal(longer.first[4:], 0)
    np.testing.assert_array_equal(longer.second[4:], [1, 1, 2, 2])
    np.testing.assert_array_equal(longer.outcome[4:], [1, -1, 1, -1])
    np.testing.assert_array_equal(longer.time[4:], log.time.max())
    assert not longer.both_bad[4:].any()


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_one_event_or_question_more_is_anywhere_among_the_others(target):
    data = Responses(outcomes(1.0, 0.5)[:, :4, :3])
    more, added = arguments.with_prior_questions(data), 4 + np.arange(200) % 4
    orders = corrections._orders(more, 4, target, added, np.random.default_rng(0))
    trial, question = np.divmod(orders, 8)
    n_more = 1 if target == "benchmark" else 3
    assert orders.shape == (200, 12 + n_more)
    extra = question >= 4
    assert (extra.sum(axis=1) == n_more).all()
    assert (question[extra].reshape(200, -1) == added[:, np.newaxis]).all()
    kept = orders[~extra].reshape(200, 12)
    assert (np.diff(kept, axis=1) > 0).all()
    assert (np.diff(trial, axis=1) >= 0).all()
    assert extra[:, 0].any()
    assert extra[:, -1].any()


@pytest.mark.parametrize(
    "options",
    [{"target": "benchmark"}, {"target": "population"}, {"unit": "run"}],
    ids=["trials", "questions", "runs"],
)
def test_a_system_that_guesses_worse_than_chance_may_know_something(options):
    answers = outcomes(0.1, 0.4, 0.6, 0.8, 0.9, 0.5)[:, :12]
    result = rank(
        answers, "irt_3pl", backend="mle", centred=False, guessing=0.25, random_seed=1, **options
    )
    score, lower, upper = (
        result["ranking"][name].values for name in ("score", "score_lower", "score_upper")
    )
    assert lower[0] == score[0] == score.min()
    assert score[0] < upper[0] < score[1]
    assert 0.4 < (result["posterior"]["score"][..., 0] > score[0]).mean() < 0.6


def test_published_abilities_that_nothing_tells_of_are_as_wide_as_their_prior():
    # Every question is answered alike, so that none is left to give abilities a unit.
    data = Responses([[1, 0, 0], [1, 0, 0]])
    options = {"centred": False, "difficulty_prior": "flat", "discrimination_prior": "flat"}
    result = rank(
        data, "irt_2pl", backend="map", target="benchmark", calibration="none", prior=1.0, **options
    )
    sd = result["posterior"]["score"].std(("chain", "draw"))
    np.testing.assert_allclose(sd, 1.0, rtol=0.1)
