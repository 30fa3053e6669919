"""Prior sensitivity in numbers and words."""

import numpy as np
import pytest

from bayesrank import Responses, point_estimate, studies
from bayesrank.priors import Empirical
from bayesrank.results.agreement import kendall_tau_b


def test_scores_are_posterior_modes_under_each_prior(six_systems):
    priors = ["normal(0, 1)", "normal(0, 0.2)", "laplace(0, 1)"]
    study = studies.prior_sensitivity(six_systems, "bradley_terry", priors, power_scaling=False)
    assert study["prior"].values.tolist() == priors
    for prior in priors:
        expected = point_estimate(six_systems, "bradley_terry", backend="map", prior=prior)
        np.testing.assert_allclose(study["score"].sel(prior=prior), expected)
    assert float(study["largest_shift"][1]) > 1.0
    assert study["shift"].values[0].tolist() == [0.0] * 6


def test_systems_without_an_outcome_are_left_out():
    data = Responses(
        [[[1, 0], [1, 1]], [[0, 0], [1, 0]], [[-1, -1], [-1, -1]]], systems=list("abz")
    )
    study = studies.prior_sensitivity(data, "rasch", [1.0, 2.0], power_scaling=False)
    assert study["system"].values.tolist() == ["a", "b"]


def test_weights_of_greedy_outcomes_turn_pairs():
    data = Responses([[[1]], [[1]], [[0]]], prior_outcomes=[[[0]], [[1]], [[1]]])
    study = studies.prior_sensitivity(data, "bayes", [0.0, 1.0])
    # 1 = 2 > 3 without, 2 > 1 = 3 with them: a tie broken, a tie formed.
    assert study["flips"].values.tolist() == [0.0, 1.0]
    assert study.attrs["verdict"].startswith("The prior changes the ranking substantially")
    assert "2 of 3 systems change their rank" in study.attrs["verdict"]


def test_a_mapping_names_priors_of_one_description(six_systems):
    n_systems, n_questions = six_systems.shape[:2]
    greedy = np.arange(n_systems)[:, np.newaxis] > np.arange(n_questions) % n_systems
    outcomes = {"first": greedy, "second": greedy[::-1]}
    priors = {name: Empirical(each.astype(int), 0.2) for name, each in outcomes.items()}
    study = studies.prior_sensitivity(six_systems, "rasch", priors, power_scaling=False)
    assert study["prior"].values.tolist() == ["first", "second"]
    expected = point_estimate(six_systems, "rasch", backend="map", prior=priors["second"])
    np.testing.assert_allclose(study["score"].sel(prior="second"), expected)
    with pytest.raises(ValueError, match=r"each once; got \['empirical.*: a mapping of names"):
        studies.prior_sensitivity(six_systems, "rasch", [priors["first"]] * 2)
    listed = studies.prior_sensitivity(
        six_systems, "rasch", list(priors.values()), power_scaling=False
    )
    np.testing.assert_array_equal(listed["score"], study["score"])


def test_the_first_default_is_the_method_s_own(six_systems):
    study = studies.prior_sensitivity(six_systems, "rasch", power_scaling=False)
    assert study["prior"].values[0] == "normal(0, 1)"
    assert "empirical(1, 0.01)" in study["prior"].values
    assert len(set(study["prior"].values)) == 9


def test_power_scaling_joins_the_verdict(six_systems):
    study = studies.prior_sensitivity(six_systems, "bradley_terry", [1.0, 3.0])
    assert study["prior_sensitivity"].dims == ("system",)
    assert (study["prior_sensitivity"] >= 0).all()
    conflict = (
        (study["prior_sensitivity"] >= 0.05) & (study["likelihood_sensitivity"] >= 0.05)
    ).sum()
    assert f"Prior and data conflict for {int(conflict)} system" in study.attrs["verdict"]


def test_scores_do_not_depend_on_a_flat_prior(six_systems, caplog):
    study = studies.prior_sensitivity(six_systems, "bradley_terry", ["flat", "normal(0, 0.3)"])
    assert (study["prior_sensitivity"] == 0).all()
    assert (study["likelihood_sensitivity"] > 0).any()
    turned = studies.prior_sensitivity(six_systems, "bradley_terry", ["normal(0, 0.3)", "flat"])
    assert (turned["prior_sensitivity"] > 0).all()
    assert not caplog.records  # the verdict is in the study


@pytest.mark.parametrize(
    ("method", "priors", "message"),
    [
        ("borda", None, "method must have a prior on its scores, or be bayes; got 'borda'"),
        ("bradley_terry", [1.0], "priors must be two or more"),
        ("bradley_terry", [1.0, "normal(0, 1)"], "priors must be two or more, each once"),
        ("bayes", [0.0, -1.0], "priors of bayes must be numbers of at least 0"),
    ],
)
def test_arguments_are_checked(six_systems, method, priors, message):
    with pytest.raises(ValueError, match=message):
        studies.prior_sensitivity(six_systems, method, priors, power_scaling=False)


def test_bayes_without_greedy_outcomes_has_no_weights_to_try(six_systems):
    with pytest.raises(ValueError, match="priors of bayes must be 0 for data without"):
        studies.prior_sensitivity(Responses(six_systems.outcomes), "bayes")


def test_the_back_end_is_checked(six_systems):
    with pytest.raises(ValueError, match="backend must be 'map' or 'nuts'; got 'mle'"):
        studies.prior_sensitivity(six_systems, "rasch", backend="mle")
    with pytest.raises(ValueError, match="backend must be None for bayes"):
        studies.prior_sensitivity(six_systems, "bayes", [0.0, 1.0], backend="map")


@pytest.fixture(scope="module")
def clear() -> Responses:
    """Five systems that 400 trials of two questions tell apart, greedy runs the other way round."""
    rng = np.random.default_rng(4)
    chance = np.array([0.9, 0.7, 0.5, 0.3, 0.1])[:, None, None]
    turned = np.array([0, 0, 1, 1, 2])[:, None]
    return Responses(
        (rng.random((5, 2, 400)) < chance).astype(int),
        prior_outcomes=(np.arange(2) < turned).astype(int)[..., None],
    )


METHODS = ["bayes", "bradley_terry", "rasch"]


@pytest.mark.parametrize("method", METHODS)
def test_many_clear_trials_leave_nothing_to_the_prior(clear, method):
    study = studies.prior_sensitivity(clear, method)
    assert (study["flips"] == 0).all()
    assert (study["tau"] == 1).all()
    assert study.attrs["verdict"].startswith("The prior does not change the ranking: all")
    if method != "bayes":
        assert "Power-scaling finds no score that depends on the prior." in study.attrs["verdict"]


@pytest.mark.parametrize(
    ("method", "priors"),
    [
        ("bayes", [0.0, 1e4]),
        ("bradley_terry", [1.0, Empirical(sigma=0.01)]),
        ("rasch", [1.0, Empirical(sigma=0.01)]),
    ],
)
def test_a_prior_that_outweighs_the_trials_ranks_by_itself(clear, method, priors):
    one = Responses(clear.outcomes[..., :1], prior_outcomes=clear.prior_outcomes)
    strong = clear if method == "bayes" else one
    study = studies.prior_sensitivity(strong, method, priors, power_scaling=False)
    greedy = clear.prior_outcomes.sum(axis=(1, 2))
    assert float(kendall_tau_b(-study["rank"][1], greedy)) > 0.85  # it breaks two ties of theirs
    assert float(study["tau"][1]) < 0
    assert study.attrs["verdict"].startswith("The prior changes the ranking substantially")
    assert "standard deviations of their posterior" in study.attrs["verdict"]


def test_a_prior_against_the_trials_is_in_conflict_with_them(clear):
    few = Responses(clear.outcomes[..., :6], prior_outcomes=clear.prior_outcomes)
    study = studies.prior_sensitivity(few, "rasch", [Empirical(sigma=0.5), 1.0])
    assert ((study["prior_sensitivity"] > 0.05) & (study["likelihood_sensitivity"] > 0.05)).any()
    assert "Prior and data conflict for" in study.attrs["verdict"]


def test_trials_that_say_nothing_beside_a_prior_are_called_so():
    data = Responses([[[1, 0]], [[0, 1]], [[1, 0]]])
    study = studies.prior_sensitivity(data, "rasch", [0.05, 0.1])
    assert (study["likelihood_sensitivity"] < 0.05).all()
    assert "Prior and data" not in study.attrs["verdict"]


def test_posterior_means_by_nuts_agree_with_modes_where_trials_are_many(clear):
    priors = ["normal(0, 1)", "normal(0, 3)"]
    sampled = studies.prior_sensitivity(clear, "bradley_terry", priors, backend="nuts", draws=250)
    modes = studies.prior_sensitivity(clear, "bradley_terry", priors)
    np.testing.assert_allclose(sampled["score"], modes["score"], atol=0.03)
    np.testing.assert_array_equal(sampled["rank"], modes["rank"])
    for source in ("prior_sensitivity", "likelihood_sensitivity"):
        np.testing.assert_allclose(sampled[source], modes[source], atol=0.05)
    assert sampled.attrs["verdict"] == modes.attrs["verdict"]


def test_a_configuration_that_is_sampled_is_sampled_here(six_systems):
    study = studies.prior_sensitivity(
        six_systems, "bayesian_mcmc", [1.0, 2.0], power_scaling=False, draws=500
    )
    mode = point_estimate(six_systems, "bradley_terry", backend="map", prior=1.0)
    assert not np.allclose(study["score"][0], mode, atol=1e-6)
    assert np.corrcoef(study["score"][0], mode)[0, 1] > 0.99
