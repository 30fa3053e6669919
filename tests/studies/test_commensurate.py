"""The commensurate prior: what it learns, when it gives way, and that kernels and graphs agree."""

import numpy as np
import pytest

from bayesrank import Responses, point_estimate, rank, studies
from bayesrank.datasets import load_olympiad
from bayesrank.errors import DataError
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.results.ranks import rank_scores
from bayesrank.studies.subsets import draw_trials


@pytest.fixture(scope="module")
def conditions() -> dict[str, Responses]:
    """Eight systems of one trial per question, with greedy runs that agree or are turned."""
    rng = np.random.default_rng(1)
    chance = np.linspace(0.9, 0.2, 8)[:, None, None]
    sampled, agreeing = ((rng.random((8, 40, 1)) < chance).astype(int) for _ in range(2))
    return {
        name: Responses(sampled, prior_outcomes=greedy)
        for name, greedy in (("agreeing", agreeing), ("turned", agreeing[::-1]))
    }


@pytest.mark.parametrize("method", ["rasch_map", "bradley_terry_map"])
def test_greedy_runs_that_disagree_leave_the_prior_of_the_method(conditions, method):
    prior = studies.commensurate_prior(conditions["turned"], method)
    assert prior.weight < 0.05
    np.testing.assert_array_equal(prior.mean, 0.0)
    assert prior.sigma == 1.0
    np.testing.assert_array_equal(
        _scores(conditions["turned"], method, prior), _scores(conditions["turned"], method, 1.0)
    )


@pytest.mark.parametrize("method", ["rasch_map", "bradley_terry_map"])
def test_greedy_runs_that_agree_move_scores_towards_them(conditions, method):
    data = conditions["agreeing"]
    prior = studies.commensurate_prior(data, method)
    turned = studies.commensurate_prior(conditions["turned"], method)
    assert prior.weight > 4 * turned.weight
    assert prior.between_sd < turned.between_sd
    assert prior.sigma < 1.0
    greedy = data.prior_outcomes.mean(axis=(1, 2))
    assert np.corrcoef(prior.mean, greedy)[0, 1] > 0.7
    before, after = (_scores(data, method, chosen) for chosen in (1.0, prior))
    assert np.corrcoef(after, greedy)[0, 1] > np.corrcoef(before, greedy)[0, 1]


def test_a_shift_that_all_systems_share_does_not_matter(conditions):
    """Greedy runs that fail on questions of their own are weaker, not in another order."""
    data = conditions["agreeing"]
    harder = np.concatenate([data.prior_outcomes, np.zeros((8, 10, 1), dtype=int)], axis=1)
    sampled = np.concatenate([data.outcomes, np.zeros((8, 10, 1), dtype=int)], axis=1)
    sampled[:, 40:] = 1
    lower = studies.commensurate_prior(Responses(sampled, prior_outcomes=harder), "rasch_map")
    turned = studies.commensurate_prior(conditions["turned"], "rasch_map")
    assert lower.weight > 4 * turned.weight


def test_ties_that_greedy_runs_hardly_tell_apart_stay():
    few = draw_trials(load_olympiad("AIME'24"), 1, "subset", np.random.default_rng(5))
    prior = studies.commensurate_prior(few, "rasch_map")
    right = few.outcomes.sum(axis=(1, 2))
    scores = _scores(few, "rasch_map", prior)
    pulls = prior.mean / prior.sigma**2
    together = [
        (i, j)
        for i in range(20)
        for j in range(i)
        if right[i] == right[j] and abs(pulls[i] - pulls[j]) < 0.5
    ]
    assert together
    ranks = rank_scores(scores)
    assert all(ranks[i] == ranks[j] for i, j in together)
    # Pulls differ by whole right answers.
    steps = pulls - pulls.min()
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-9)


def test_many_trials_leave_little_to_greedy_runs():
    data = load_olympiad("BrUMO'25")
    weights = [
        studies.commensurate_prior(
            draw_trials(data, n, "subset", np.random.default_rng(1)), "rasch_map"
        ).weight
        for n in (1, 10, 80)
    ]
    assert weights[0] > weights[1] > weights[2]


def test_a_system_without_greedy_runs_has_the_mean_of_the_others(conditions):
    data = conditions["agreeing"]
    greedy = data.prior_outcomes.copy()
    greedy[3] = -1
    prior = studies.commensurate_prior(Responses(data.outcomes, prior_outcomes=greedy), "rasch_map")
    pulls = np.sort(prior.mean)
    assert pulls[0] < prior.mean[3] < pulls[-1]
    assert np.isfinite(prior.mean).all()


def test_equal_systems_keep_the_prior_of_the_method():
    equal = Responses([[[1], [0]], [[0], [1]]], prior_outcomes=[[[1], [1]], [[0], [0]]])
    prior = studies.commensurate_prior(equal, "rasch_map")
    assert (prior.weight, prior.sigma) == (0.0, 1.0)


def _scores(data, method, prior):
    return point_estimate(data, method, backend="map", prior=prior)


def test_the_commensurate_prior_is_that_of_its_systems(six_systems):
    prior = studies.commensurate_prior(six_systems, "rasch")
    assert str(prior).startswith("commensurate(")
    with pytest.raises(DataError, match="prior must be for the 2 systems of the data; got one for"):
        point_estimate([[[1, 0]], [[0, 0]]], "rasch", backend="map", prior=prior)


@pytest.mark.parametrize("method", ["rasch", "bradley_terry"])
def test_kernel_and_graph_agree_on_the_commensurate_prior(six_systems, method):
    prior = studies.commensurate_prior(six_systems, method)
    kernel = point_estimate(six_systems, method, backend="map", prior=prior)
    tree = rank(
        six_systems,
        method,
        backend="map",
        prior=prior,
        draws=10,
        log_likelihood=True,
        calibration="none",
        random_seed=1,
    )
    np.testing.assert_allclose(tree["ranking"]["score"], kernel, atol=1e-5)


def test_the_commensurate_prior_works_as_any_prior(six_systems):
    few = Responses(
        six_systems.outcomes[..., :1],
        systems=six_systems.systems,
        prior_outcomes=six_systems.prior_outcomes,
    )
    prior = studies.commensurate_prior(few, "rasch")
    tree = rank(few, "rasch", backend="map", prior=prior, draws=50, random_seed=1)
    gold = rank_scores(point_estimate(six_systems, "bayes"))
    assert float(kendall_tau_b(tree["ranking"]["rank"], gold)) > 0.6
    assert tree["posterior"]["score"].notnull().all()


def test_the_commensurate_prior_needs_greedy_outcomes_and_a_likelihood(six_systems):
    with pytest.raises(DataError, match="prior_outcomes must hold greedy outcomes"):
        studies.commensurate_prior(Responses(six_systems.outcomes), "rasch")
    with pytest.raises(ValueError, match="method must have a prior on its scores; got 'borda'"):
        studies.commensurate_prior(six_systems, "borda")
