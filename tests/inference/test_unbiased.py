"""Intervals of metrics of k trials describe what their estimates do."""

import numpy as np
import pytest

from bayesrank import METHODS, Responses, rank
from bayesrank.ranking import draw_scores, point_estimate

ROWS = [name for name, row in METHODS.items() if row.functional is not None]


def options_of(name: str, k: int) -> dict[str, object]:
    if name == "threshold_metric":
        return {"threshold_weights": tuple(np.arange(1, k + 1) / k)}
    return {"k": k, **({"tau": 0.5} if name == "g_pass_at_k_tau" else {})}


@pytest.mark.parametrize("target", ["benchmark", "population"])
@pytest.mark.parametrize("name", ROWS)
def test_every_interval_holds_its_estimate(name: str, target: str):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n_systems, n_questions, n_trials = rng.integers(2, 6), rng.integers(5, 9), 2 + seed % 4
        chances = rng.beta(0.4, 0.4, (n_systems, n_questions, 1))
        outcomes = (rng.random((n_systems, n_questions, n_trials)) < chances).astype(int)
        outcomes[0] = seed % 2  # always right, or always wrong
        data = Responses(outcomes, paired=False)
        options = options_of(name, int(rng.integers(1, n_trials + 1)))
        estimate = point_estimate(data, name, **options)
        drawn = draw_scores(data, name, target=target, random_seed=1, **options)
        draws = drawn.reshape(-1, n_systems)
        lower, upper = np.quantile(draws, [0.025, 0.975], axis=0)
        assert (lower <= estimate + 1e-12).all(), (seed, options)
        assert (estimate <= upper + 1e-12).all(), (seed, options)
        ends = [np.full((1, 1, n_trials), answer) for answer in (0, 1)]
        low, high = (point_estimate(Responses(end), name, **options)[0] for end in ends)
        # A metric that every number of right answers gives the same value is certain.
        assert (upper > lower).all() or low == high, (seed, options)
        assert ((draws >= low - 1e-12) & (draws <= high + 1e-12)).all(), (seed, options)


def test_all_trials_right_are_estimated_where_their_interval_lies():
    # With k = N the estimate of a question is 0 or 1, and its posterior mean is neither.
    rng = np.random.default_rng(1)
    outcomes = (rng.random((20, 30, 4)) < rng.beta(2, 2, (20, 30, 1))).astype(int)
    result = rank(Responses(outcomes, paired=False), "pass_hat_k", k=4, random_seed=1)
    ranking = result["ranking"]
    assert (ranking["score_lower"] <= ranking["score"]).all()
    assert (ranking["score"] < ranking["score_upper"]).all()


def test_the_posterior_mean_has_its_own_name_and_interval():
    outcomes = np.random.default_rng(2).integers(0, 2, (3, 6, 4))
    for estimator in ("unbiased", "posterior_mean"):
        result = rank(outcomes, "pass_hat_k", k=3, estimator=estimator, random_seed=1)
        mean = result["posterior"]["score"].mean(("chain", "draw"))
        np.testing.assert_allclose(mean, result["ranking"]["score"], atol=0.05)
    with pytest.raises(ValueError, match="estimator must be"):
        rank(outcomes, "pass_hat_k", k=3, estimator="mode")


def test_equal_counts_tie_in_every_draw():
    outcomes = np.zeros((3, 5, 4), dtype=int)
    outcomes[:2, 0, :2], outcomes[2] = 1, 1
    draws = draw_scores(Responses(outcomes), "pass_at_k", k=2, random_seed=1)
    np.testing.assert_array_equal(draws[..., 0], draws[..., 1])


def test_intervals_cover_a_fixed_truth():
    rng = np.random.default_rng(3)
    chances, hits = rng.beta(1.5, 1.5, (8, 25)), []
    truth = (1 - (1 - chances) ** 3).mean(axis=1)
    for seed in range(80):
        outcomes = (rng.random((8, 25, 6)) < chances[..., np.newaxis]).astype(int)
        data = Responses(outcomes, paired=False)
        draws = draw_scores(data, "pass_at_k", k=3, random_seed=seed).reshape(-1, 8)
        lower, upper = np.quantile(draws, [0.025, 0.975], axis=0)
        hits.append((lower <= truth) & (truth <= upper))
    # 640 intervals, of which 95 % are to hold: five standard errors of independent ones.
    assert abs(np.mean(hits) - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 640)
