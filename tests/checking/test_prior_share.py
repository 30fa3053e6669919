"""How much of a score is its prior: against closed forms, and against ArviZ."""

import warnings

import numpy as np
import pytest

from bayesrank import Comparisons, Responses, rank
from bayesrank.checking import check
from bayesrank.checking.prior_share import LARGE_MOVE, SENSITIVE

OPTIONS = {"draws": 500, "random_seed": 0}


def simulate(shape, seed=1):
    rng = np.random.default_rng(seed)
    logit = rng.normal(size=(shape[0], 1)) - rng.normal(size=shape[1])
    return Responses((rng.random(shape) < 1 / (1 + np.exp(-logit))[..., np.newaxis]).astype(int))


def battles(n_battles, gap=2.0):
    """Return battles of three systems, as many of each pair, with the expected results."""
    score = np.array([gap, 0.0, -gap])
    wins = n_battles / (1 + np.exp(score - score[:, np.newaxis]))
    return Comparisons(np.round(wins))


def prior(result, data=None):
    (found,) = check(result, data).about("prior")
    return found


# The closed forms


@pytest.mark.parametrize(("n_trials", "n_questions"), [(1, 40), (4, 40), (80, 30)])
def test_moves_of_bayes_are_those_of_a_quarter_of_the_pseudo_trials(n_trials, n_questions):
    data = simulate((4, n_questions, n_trials))
    result = rank(data, "bayes", target="benchmark" if n_trials > 1 else "population", **OPTIONS)
    right = data.counts[..., 1]
    whole, quarter = ((right + a) / (n_trials + 2 * a) for a in (1.0, 0.25))
    sd = result["posterior"]["score"].std(("chain", "draw")).values
    expected = np.abs((whole - quarter).mean(axis=1)) / sd
    for found in (prior(result, data), prior(result)):
        np.testing.assert_allclose(list(found.numbers["moves"].values()), expected)
        assert found.verdict == ("doubtful" if expected.max() >= LARGE_MOVE else "good")


def test_earlier_outcomes_stay_as_they_are():
    plain = simulate((3, 20, 4))
    data = Responses(plain.outcomes, prior_outcomes=plain.outcomes[..., :1])
    result = rank(data, "bayes", use_prior_outcomes=True, target="benchmark", **OPTIONS)
    right = data.counts[..., 1] + plain.outcomes[..., 0]
    move = ((right + 1) / 7 - (right + 0.25) / 5.5).mean(axis=1)
    sd = result["posterior"]["score"].std(("chain", "draw")).values
    found = prior(result, data)
    np.testing.assert_allclose(list(found.numbers["moves"].values()), np.abs(move) / sd, atol=1e-9)


# Fits again


@pytest.mark.parametrize(
    ("n_battles", "verdict"), [(2, "doubtful"), (10, "doubtful"), (4000, "good")]
)
@pytest.mark.parametrize("method", ["bradley_terry", "plackett_luce"])
def test_moves_are_those_of_a_second_fit(n_battles, verdict, method):
    data = battles(n_battles)
    result = rank(data, method, backend="map", prior=1.0, **OPTIONS)
    wider = rank(data, method, backend="map", prior=2.0, **OPTIONS)
    move = (wider["ranking"]["score"] - result["ranking"]["score"]).values
    sd = result["posterior"]["score"].std(("chain", "draw")).values
    found = prior(result)
    assert found.verdict == verdict
    np.testing.assert_allclose(list(found.numbers["moves"].values()), np.abs(move) / sd, atol=1e-9)


@pytest.mark.parametrize(
    "spec", ["laplace(0, 1)", "cauchy(0, 1)", "normal(0.5, 1)", "empirical(1)"]
)
def test_every_prior_with_a_width_can_be_wider(spec):
    plain = simulate((4, 12, 3))
    data = Responses(plain.outcomes, prior_outcomes=plain.outcomes[..., :1])
    result = rank(data, "rasch", backend="map", prior=spec, **OPTIONS)
    assert prior(result, data).verdict in ("good", "doubtful")


def test_a_result_holds_the_earlier_outcomes_of_its_prior():
    plain = simulate((4, 12, 3))
    data = Responses(plain.outcomes, prior_outcomes=plain.outcomes[..., :2])
    for method, options in (
        ("rasch", {"backend": "map", "prior": "empirical(1)"}),
        ("bayes", {"prior": "dirichlet(2, 1)", "prior_weight": 0.5}),
    ):
        result = rank(data, method, **options, **OPTIONS)
        moves, known = (prior(result, *given).numbers["moves"] for given in ((), (data,)))
        np.testing.assert_allclose(list(moves.values()), list(known.values()), rtol=1e-6)


def test_a_score_as_wide_as_its_prior_is_hardly_known():
    data = Comparisons([[0, 40, 1], [35, 0, 0], [0, 0, 0]], systems=["a", "b", "c"])
    found = prior(rank(data, "bradley_terry", backend="map", prior=1.0, **OPTIONS))
    assert found.verdict == "doubtful"
    assert "The posterior of the score of c is" in found.sentence
    assert found.numbers["widths"]["c"] >= found.numbers["width_limit"]


def test_a_score_that_is_no_log_odds_is_not_compared_with_the_width_of_its_prior():
    scores = np.round(100 * np.random.default_rng(0).random((4, 60, 4)))
    data = Responses(scores, scale=(0, 100))
    found = prior(rank(data, "standardized_accuracy", backend="map", **OPTIONS), data)
    assert found.verdict == "good", found.sentence
    assert "widths" not in found.numbers


def test_without_any_spread_nothing_is_said_to_be_identified():
    result = rank(simulate((3, 20, 4)), "bradley_terry", backend="map", prior=1.0, **OPTIONS)
    score = result["posterior"]["score"]
    result["posterior"]["score"] = score.copy(data=np.broadcast_to([1.0, 0.0, -1.0], score.shape))
    assert prior(result).verdict == "not measured"


def test_few_draws_are_read_without_a_warning_of_arviz():
    options = {"draws": 5, "random_seed": 0, "log_likelihood": True}
    found = prior(rank(simulate((3, 6, 4)), "rasch", backend="map", **options))
    assert "sensitivity" in found.numbers


@pytest.mark.parametrize("method", ["avg", "borda", "elo", "bradley_terry"])
def test_methods_without_a_prior_have_no_share(method):
    # Of bradley_terry the published form is the maximum-likelihood estimate.
    assert prior(rank(simulate((4, 20, 4)), method, **OPTIONS)).verdict == "does not apply"


# ArviZ


CASES = {
    "few": (simulate((4, 5, 2)), 1.0),
    "some": (simulate((4, 30, 4)), 1.0),
    "many": (simulate((4, 60, 60)), 1.0),
    "narrow": (simulate((4, 30, 4)), 0.1),
    "wide": (simulate((4, 60, 60)), 10.0),
}


def sensitivity(result):
    import arviz as az

    return az.psense_summary(result, var_names=["score"])


def assert_agreement(found, summary):
    pulled = (summary["diagnosis"] != "✓").any()
    assert found.verdict == ("doubtful" if pulled else "good"), found.sentence
    largest = max(found.numbers["sensitivity"].values())
    assert largest == pytest.approx(summary["prior"].max(), abs=0.0006)  # it has three decimals
    assert ("identify all scores" in found.sentence) == (not pulled)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("method", ["rasch", "bradley_terry"])
def test_check_agrees_with_arviz(case, method):
    data, width = CASES[case]
    result = rank(data, method, backend="map", prior=width, log_likelihood=True, **OPTIONS)
    assert_agreement(prior(result), sensitivity(result))


@pytest.mark.parametrize("case", ["few", "many"])
def test_check_agrees_with_arviz_on_nuts(case):
    data, width = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rank(data, "rasch", backend="nuts", prior=width, draws=400, random_seed=0)
    assert_agreement(prior(result), sensitivity(result))


def test_the_cases_lie_on_both_sides():
    verdicts = set()
    for data, width in CASES.values():
        result = rank(data, "rasch", backend="map", prior=width, log_likelihood=True, **OPTIONS)
        verdicts.add(prior(result).verdict)
    assert verdicts == {"good", "doubtful"}


@pytest.mark.parametrize("n_battles", [4, 12, 40, 200, 1000, 5000])
def test_a_second_fit_says_what_arviz_says(n_battles):
    # The limits are the same for normal posteriors; between, each may be on its own side.
    data = battles(n_battles)
    plain = prior(rank(data, "bradley_terry", backend="map", prior=1.0, **OPTIONS))
    result = rank(data, "bradley_terry", backend="map", prior=1.0, log_likelihood=True, **OPTIONS)
    scaling = max(prior(result).numbers["sensitivity"].values())
    assert not 0.8 < scaling / SENSITIVE < 1.25, "the case must not be on the border"
    assert (plain.verdict == "doubtful") == (scaling >= SENSITIVE)
