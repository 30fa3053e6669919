"""Systems that the data do not tell apart tie, whatever the back end."""

import warnings

import numpy as np
import pytest

from bayesrank import Ballots, Battles, Comparisons, Responses, leaderboard, rank
from bayesrank.errors import ConvergenceWarning
from bayesrank.inference.fits.symmetry import tie_exchangeable
from bayesrank.priors import Custom, Empirical, Normal


@pytest.mark.parametrize("method", ["rasch", "bradley_terry"])
def test_nuts_ties_identical_systems(method):
    outcomes = np.random.default_rng(0).integers(0, 2, (2, 8, 2))
    data = Responses(outcomes[[0, 1, 0, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few draws
        result = rank(data, method, backend="nuts", draws=50, tune=50, random_seed=1)
    score, groups = (result["ranking"][name].values for name in ("score", "tie_group"))
    assert score[0] == score[2] == score[3] != score[1]
    assert groups[0] == groups[2] == groups[3] != groups[1]


@pytest.mark.filterwarnings("ignore::bayesrank.errors.ConvergenceWarning")  # few draws
def test_nuts_tells_systems_with_equal_counts_apart_by_their_covariates():
    # Both won half of their votes, each the longer answers; those of a were longer than those of b.
    longer = np.tile([0.0, 1.0], 20)
    first = ["a"] * 40 + ["b"] * 40
    winner = [each if own else "c" for each, own in zip(first, np.tile(longer, 2), strict=True)]
    covariates = {"length": np.concatenate([longer + 1.0, longer - 1.0])}
    log = Battles(first, ["c"] * 80, winner, covariates=covariates)
    options = {"backend": "nuts", "draws": 50, "tune": 100, "random_seed": 1}
    score = rank(log, "bradley_terry", formula="length", **options)["ranking"]["score"]
    assert score.sel(system="b") > score.sel(system="a") + 1.0
    score = rank(log, "bradley_terry", **options)["ranking"]["score"]
    assert score.sel(system="b") == score.sel(system="a")


@pytest.mark.parametrize(
    ("prior", "differ"),
    [
        (Normal(1.0, 2.0), False),
        (Empirical([[1] * 9 + [0], [0] * 9 + [1], [0, 1] * 5]), True),
        (Custom(lambda score: -((score - np.array([1.0, 0.0, 0.0])) ** 2)), True),
        (Custom(lambda score: -(score**2)), False),
    ],
)
def test_priors_tell_systems_with_equal_answers_apart(prior, differ):
    data = Responses([[1, 0], [1, 0], [0, 1]])
    score = tie_exchangeable(np.array([1.0, 2.0, 0.0]), data, prior.kinds(3))
    np.testing.assert_array_equal(score, [1.0, 2.0, 0.0] if differ else [1.5, 1.5, 0.0])


@pytest.mark.parametrize(("mean", "differ"), [(1.0, True), (0.0, False)])
def test_optima_of_graphs_tell_systems_with_equal_answers_apart_by_their_priors(mean, differ):
    prior = Custom(lambda score: -((score - np.array([mean, 0.0, 0.0])) ** 2))
    answers = [[1, 0, 1], [1, 0, 1], [0, 1, 1]]
    score = rank(answers, "rasch", backend="map", prior=prior, draws=0)["ranking"]["score"].values
    assert (score[0] > score[1] + 0.1) if differ else score[0] == score[1]


@pytest.mark.parametrize("method", ["standardized_accuracy", "rasch_map", "borda", "elo", "bayes"])
def test_exchangeable_systems_have_equal_bounds_and_ranks(method):
    right = np.random.default_rng(3).integers(0, 2, (3, 12, 2))
    right[2] = 1
    data = right[[0, 1, 0, 2, 0, 2]]
    result = rank(data, method, draws=50, random_seed=1)
    board = leaderboard(result).set_index("system")
    for same in (["system 1", "system 3", "system 5"], ["system 4", "system 6"]):
        assert (board.loc[same] == board.loc[same[0]]).all(axis=None)
    superiority = result["ranking"]["superiority"].values
    np.testing.assert_allclose(superiority[[0, 0, 3], [2, 4, 5]], 0.5, rtol=1e-12)
    np.testing.assert_allclose(superiority + superiority.T, 1.0, rtol=1e-12)
    np.testing.assert_allclose(result["ranking"]["rank_probability"].sum("position"), 1.0)
    np.testing.assert_allclose(result["ranking"]["rank_probability"].sum("system"), 1.0)


@pytest.mark.filterwarnings("ignore::bayesrank.errors.CalibrationWarning")
def test_judges_tell_systems_with_equal_counts_apart():
    # Both won half of their votes against c: a in each judge's votes, b with half of the judges.
    judge = np.tile(np.repeat(np.arange(20), 4), 2)
    won = np.concatenate([np.tile([1, 0], 40), np.repeat([1, 0], 40)])
    first = np.repeat(["a", "b"], 80)
    log = Battles(first, ["c"] * 160, np.where(won, first, "c"), judge=judge.astype(str))
    ranking = rank(log, "bradley_terry_map", unit="judge", random_seed=1)["ranking"]
    width = ranking["score_upper"] - ranking["score_lower"]
    assert ranking["score"].sel(system="a") == pytest.approx(ranking["score"].sel(system="b"))
    assert width.sel(system="b") > 1.3 * width.sel(system="a")


def test_earlier_outcomes_tell_systems_with_equal_answers_apart():
    earlier = np.array([[[1, 1, 1, 0], [0, 0, 0, 1]], [[1, 0, 0, 0], [1, 1, 1, 0]]])
    data = Responses([[1, 0], [1, 0]], prior_outcomes=earlier)
    result = rank(data, "bayes", use_prior_outcomes=True, random_seed=1)
    assert "alike" not in result["ranking"].attrs


def test_systems_with_one_record_are_exchangeable():
    score = np.array([1.0, 2.0, 4.0, 8.0])
    wins = np.array([[0, 2, 1, 1], [2, 0, 1, 1], [3, 3, 0, 5], [0, 0, 1, 0]])
    np.testing.assert_array_equal(tie_exchangeable(score, Comparisons(wins)), [1.5, 1.5, 4.0, 8.0])
    ties = np.zeros((4, 4))
    ties[0, 2] = ties[2, 0] = 1.0
    np.testing.assert_array_equal(tie_exchangeable(score, Comparisons(wins, ties)), score)
    # Each of the first two beats the other in turn: other records against each other.
    wins[0, 1] = 3
    np.testing.assert_array_equal(tie_exchangeable(score, Comparisons(wins)), score)


def test_missing_answers_are_answers_too():
    score = np.array([1.0, 2.0, 4.0])
    data = Responses([[1, 0, -1], [1, 0, 0], [1, 0, -1]])
    np.testing.assert_array_equal(tie_exchangeable(score, data), [2.5, 2.0, 2.5])
    ballots = Ballots([[2.0, np.nan], [2.0, 1.0], [2.0, np.nan]], ("a", "b", "c"))
    np.testing.assert_array_equal(tie_exchangeable(score, ballots), [2.5, 2.0, 2.5])


@pytest.mark.parametrize("method", ["irt_2pl", "irt_3pl"])
def test_systems_that_could_change_places_with_questions_tie(method):
    # Each system failed once on a question of its own; several maxima have them apart.
    outcomes = np.ones((2, 3, 4), dtype=int)
    outcomes[0, 1, 1] = outcomes[1, 0, 3] = 0
    result = rank(outcomes, method, backend="mle", draws=200, random_seed=1)
    score, superiority = (result["ranking"][name].values for name in ("score", "superiority"))
    assert score[0] == score[1]
    assert superiority[0, 1] == pytest.approx(0.5, abs=0.07)
