"""Earlier outcomes as pseudo-trials of the posterior of metrics of k trials."""

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.errors import DataError

# Right answers of two systems on three questions with four trials, and of two earlier ones.
RIGHT = np.array([[4, 2, 1], [1, 0, 3]])
EARLIER = np.array([[2, 0, 1], [0, 1, 2]])
OUTCOMES = (np.arange(4) < RIGHT[..., None]).astype(int)
DATA = Responses(OUTCOMES, prior_outcomes=(np.arange(2) < EARLIER[..., None]).astype(int))


def posterior_of(data: Responses, method: str = "pass_at_k", **options):
    options = {"k": 1, "estimator": "posterior_mean", **options}
    result = rank(data, method, draws=4_000, random_seed=3, **options)
    return result["ranking"]["score"].values, result["posterior"]["score"].values.reshape(-1, 2)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0, 3.0])
def test_earlier_outcomes_count_as_pseudo_trials(weight: float):
    # Beta(1 + right + w earlier, 1 + wrong + w earlier wrong).
    mean = (1 + RIGHT + weight * EARLIER) / (2 + 4 + weight * 2)
    score, draws = posterior_of(DATA, prior_weight=weight)
    np.testing.assert_allclose(score, mean.mean(axis=1), rtol=1e-13)
    np.testing.assert_allclose(draws.mean(axis=0), score, atol=0.005)
    if weight == 0.0:
        np.testing.assert_array_equal(draws, posterior_of(Responses(OUTCOMES))[1])


def test_questions_with_earlier_outcomes_alone_stay_left_out():
    outcomes = np.where(np.arange(3)[:, None] == 1, -1, OUTCOMES)
    data = Responses(outcomes, prior_outcomes=DATA.prior_outcomes)
    mean = (1 + RIGHT + EARLIER) / 8
    score, draws = posterior_of(data, prior_weight=1.0)
    np.testing.assert_allclose(score, mean[:, [0, 2]].mean(axis=1), rtol=1e-13)
    np.testing.assert_allclose(draws.mean(axis=0), score, atol=0.005)


def test_shared_earlier_outcomes_count_for_all():
    shared = Responses(OUTCOMES, prior_outcomes=[[1, 1], [0, 0], [1, 0]])
    mean = (1 + RIGHT + [2, 0, 1]) / 8
    score, draws = posterior_of(shared, prior_weight=1.0)
    np.testing.assert_allclose(score, mean.mean(axis=1), rtol=1e-13)
    np.testing.assert_allclose(draws.mean(axis=0), score, atol=0.005)


def test_categories_of_earlier_outcomes_count_too():
    data = Responses(
        [[[0, 1, 2, 2]], [[0, 0, 1, 0]]],
        weights=[0, 0.5, 1],
        prior_outcomes=[[[2, 2]], [[0, 0]]],
    )
    score, draws = posterior_of(data, "max_at_k", prior_weight=1.0)
    # The best of one draw is its worth: Dirichlet shapes (2, 2, 5) and (6, 2, 1).
    np.testing.assert_allclose(score, [6 / 9, 2 / 9], rtol=1e-14)
    np.testing.assert_allclose(draws.mean(axis=0), score, atol=0.01)


def test_what_cannot_be_weighed_is_refused():
    with pytest.raises(DataError, match=r"prior_outcomes must be given for prior_weight=1\.0"):
        rank(OUTCOMES, "pass_at_k", k=1, prior_weight=1.0, estimator="posterior_mean")
    with pytest.raises(ValueError, match=r"0 for the unbiased .* set estimator='posterior_mean'"):
        rank(DATA, "pass_at_k", k=1, prior_weight=1.0)
    with pytest.raises(ValueError, match="prior_weight must be a finite number >= 0; got -1"):
        rank(DATA, "pass_at_k", k=1, prior_weight=-1)
    with pytest.raises(ValueError, match="prior_weight must be 0 for target='population'"):
        posterior_of(DATA, prior_weight=1.0, target="population")
    with pytest.raises(DataError, match=r"prior_outcomes must be given for prior_weight=1\.0"):
        rank(OUTCOMES, "bayes", prior_weight=1.0)
    with pytest.raises(ValueError, match="prior_weight must be 0 for thompson"):
        rank(DATA, "thompson", prior_weight=1.0)
