"""Scores that no resample moves: systems that are always right, or always wrong."""

import numpy as np
import pytest

from bayesrank import Responses, rank

N_QUESTIONS, N_TRIALS = 40, 5


def outcomes(*chances, seed=0):
    rng = np.random.default_rng(seed)
    return rng.binomial(1, np.reshape(chances, (-1, 1, 1)), (len(chances), N_QUESTIONS, N_TRIALS))


def draws_of(data, method="avg", **options):
    result = rank(data, method, draws=2_000, random_seed=1, **options)
    return result["posterior"]["score"].values.reshape(-1, result["posterior"].sizes["system"])


@pytest.mark.parametrize(
    ("target", "n"), [("benchmark", N_QUESTIONS * N_TRIALS), ("population", N_QUESTIONS)]
)
def test_bounds_follow_the_rule_of_three(target, n):
    draws = draws_of(outcomes(1.0, 0.5, 0.0), target=target)
    right, wrong = draws[:, 0], draws[:, 2]
    # The exact one-sided bound is at 1 - 3 / n, the interval of a uniform prior ends at 3.7 / n.
    assert 1.8 < n * (1.0 - np.quantile(right, 0.05)) < 3.5
    assert 2.4 < n * (1.0 - np.quantile(right, 0.025)) < 4.5
    assert 2.4 < n * np.quantile(wrong, 0.975) < 4.5
    assert right.max() == 1.0
    assert wrong.min() == 0.0


def test_the_unit_is_a_cluster_where_questions_have_groups():
    data = Responses(outcomes(1.0, 0.5), groups=list(np.repeat(list("abcdefghij"), 4)))
    draws = draws_of(data, target="population")
    assert 1.8 < 10 * (1.0 - np.quantile(draws[:, 0], 0.05)) < 4.0


@pytest.mark.parametrize("method", ["spectral", "avg", "elo", "glicko", "trueskill", "pagerank"])
@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_equal_systems_are_tied_and_yet_uncertain(method, target):
    result = rank(np.ones((3, 8, 4), dtype=int), method, target=target, random_seed=1)
    ranking = result["ranking"].to_dataset()
    assert (ranking["rank"] == 1).all()
    np.testing.assert_allclose(ranking["superiority"], 0.5, atol=0.05)
    assert (ranking["score_lower"] < ranking["score_upper"]).all()


@pytest.mark.parametrize("method", ["avg", "bayes", "win_rate", "pass_hat_k", "simple_rank"])
def test_no_question_missed_is_no_certainty(method):
    options = {"k": 2} if method == "pass_hat_k" else {}
    result = rank(outcomes(1.0, 0.7), method, target="population", random_seed=1, **options)
    score, lcb = (result["ranking"][name].values for name in ("score", "lcb"))
    assert lcb[0] < score[0] - 0.01
    assert result["posterior"]["score"].values[..., 0].max() == pytest.approx(score[0])


def test_the_unit_is_that_of_the_questions_a_system_had():
    data = outcomes(1.0, 1.0, 0.5)
    data[0, 4:] = -1
    draws = draws_of(data, target="population")
    # Of four questions, and of forty.
    assert np.quantile(draws[:, 0], 0.05) < 0.65
    assert np.quantile(draws[:, 1], 0.05) > 0.9


def test_a_score_in_the_middle_may_lie_off_to_either_side():
    data = np.full((3, 6, 2), -1)
    data[:2] = outcomes(0.5, 0.7)[:, :6, :2]
    data[2, 0] = [0, 1]  # half right on its only question
    draws = draws_of(data, target="population")[:, 2]
    assert np.quantile(draws, 0.05) < 0.2
    assert np.quantile(draws, 0.95) > 0.8


@pytest.mark.parametrize("method", ["hodge_rank", "rank_centrality"])
def test_single_links_between_systems_are_not_taken_for_certain(method):
    # Two questions link three systems in a chain, so that no weights move the scores.
    data = np.full((3, 3, 2), -1)
    data[0, 1:], data[1, :2], data[2, 0] = 0, [[0, 0], [1, 1]], 1
    result = rank(data, method, target="population", draws=100, random_seed=3)
    score = result["posterior"]["score"].values
    assert np.ptp(score, axis=(0, 1)).min() > 0.01
