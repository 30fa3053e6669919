"""Pools of systems, and the batches that rank them."""

import numpy as np
import pytest

from bayesrank import Responses, studies
from bayesrank.datasets import load_olympiad
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.studies.configurations import PUBLISHED, least_trials
from bayesrank.studies.pools import _win_shares
from bayesrank.studies.scoring import Batch, score_rank, scores_at_once
from bayesrank.studies.subsets import draw_trials, select

AT_ONCE = [name for name in PUBLISHED if scores_at_once(name)]
WITH_OPTIONS = ["pass_at_k(k=1)", "threshold_metric(threshold_weights=(0.5, 0.5))", "rankllm"]


def ragged(data: Responses) -> Responses:
    """Return the data with holes, one of them a question that a system has not seen."""
    rng = np.random.default_rng(3)
    outcomes = data.outcomes.copy()
    outcomes[rng.random(outcomes.shape) < 0.2] = -1
    outcomes[2, 3] = -1
    return Responses(outcomes, groups=data.groups, prior_outcomes=data.prior_outcomes, paired=False)


def with_shared_prior(data: Responses) -> Responses:
    return Responses(data.outcomes, groups=data.groups, prior_outcomes=data.prior_outcomes[0])


@pytest.mark.parametrize("change", [lambda data: data, ragged, with_shared_prior])
@pytest.mark.parametrize("method", [*AT_ONCE, *WITH_OPTIONS])
def test_a_batch_ranks_as_one_call_for_each(six_systems, method, change):
    data = change(six_systems)
    samples = [draw_trials(data, 2, "subset", np.random.default_rng(seed)) for seed in range(4)]
    pools = np.array([[0, 1, 2], [1, 3, 5], [0, 4, 5]])
    available = min(int(one.trials[one.trials > 0].min()) for one in samples)
    if least_trials(method) > available:
        with pytest.raises(ValueError, match="k must be at most the number of trials"):
            Batch(samples).rank(method, pools)
        return
    ranks, finite = Batch(samples).rank(method, pools)
    for pool, systems in enumerate(pools):
        for position, sample in enumerate(samples):
            alone = score_rank(select(sample, systems=systems), method)
            np.testing.assert_array_equal(ranks[pool, position], alone.rank)
            assert finite[pool, position] == alone.finite


def test_some_batches_have_no_finite_estimate(six_systems):
    samples = [draw_trials(six_systems, 1, "subset", np.random.default_rng(i)) for i in range(9)]
    pools = np.array([[0, 5], [2, 3]])
    _, finite = Batch(samples).rank("rank_centrality_tie_ignore", pools)
    assert 0 < finite.sum() < finite.size


def test_a_large_batch_is_ranked_in_blocks(six_systems, monkeypatch):
    samples = [draw_trials(six_systems, 1, "subset", np.random.default_rng(i)) for i in range(3)]
    pools = np.array([[0, 1, 2], [1, 3, 5], [0, 4, 5]])
    whole, _ = Batch(samples).rank("borda", pools)
    monkeypatch.setattr("bayesrank.studies.scoring._BLOCK_SIZE", 1)
    np.testing.assert_array_equal(Batch(samples).rank("borda", pools)[0], whole)


@pytest.mark.parametrize("reference", ["self", "gold"])
@pytest.mark.parametrize("method", ["avg", "borda", "bradley_terry_map"])
def test_a_pool_has_the_mean_over_the_draws(six_systems, method, reference):
    study = studies.model_pools(
        six_systems, method, sizes=[3, 4], pools=3, draws=10, reference=reference
    )
    for size in (0, 1):
        for pool in range(3):
            systems = np.flatnonzero(study["members"].values[size, pool])
            some = select(six_systems, systems=systems)
            target = score_rank(some, "bayes" if reference == "gold" else method).rank
            # Ten draws of one trial out of ten are all the trials.
            taus = [
                kendall_tau_b(score_rank(Responses(some.outcomes[..., [t]]), method).rank, target)
                for t in range(10)
            ]
            found = float(study["tau"].values[0, size, pool])
            assert found == pytest.approx(np.nanmean(taus), nan_ok=True)


def test_published_pools_of_the_bundled_example():
    """The spread over 1,000 pools; the standard error of a standard deviation is 2.2 % of it."""
    study = studies.model_pools(load_olympiad("HMMT'25"), "avg")
    assert study["tau"].notnull().all()
    for size, sd in ((5, 0.117), (10, 0.0604), (15, 0.0331)):
        of_size = study.sel({"method": "avg", "size": size})
        assert float(of_size["tau_sd"]) == pytest.approx(sd, rel=0.08)
        assert float(of_size["tau_mean"]) == pytest.approx(0.7816, abs=4 * sd / np.sqrt(1000))


def test_winners_share_a_pool():
    tau = np.array(
        [
            [[0.9, 0.5, 0.3, np.nan]],
            [[0.9, 0.4, 0.6, np.nan]],
            [[0.9, 0.5, 0.3, np.nan]],  # equal to the first in all pools: counts as one with it
            [[0.1, np.nan, 0.6, np.nan]],
        ]
    )
    np.testing.assert_allclose(_win_shares(tau)[:, 0], [1.5 / 3, 1.0 / 3, 1.5 / 3, 0.5 / 3])


def test_win_shares_are_of_the_best(six_systems):
    study = studies.model_pools(six_systems, ["avg", "bayes", "elo_tie_skip"], sizes=[4], pools=40)
    one_each = study.sel({"method": ["avg", "elo_tie_skip"]})
    assert float(one_each["win_share"].sum()) == pytest.approx(1.0)
    better = (one_each["tau"][0] > one_each["tau"][1] + 1e-9).mean()
    equal = (abs(one_each["tau"][0] - one_each["tau"][1]) <= 1e-9).mean()
    assert float(one_each["win_share"][0, 0]) == pytest.approx(float(better + equal / 2))
    assert study["group"].values.tolist() == ["avg", "avg", "elo_tie_skip"]


def test_pools_of_all_trials_agree_with_themselves(six_systems):
    study = studies.model_pools(six_systems, ["avg"], sizes=[3, 5], pools=[4, 2], n=None)
    assert dict(study["tau"].sizes) == {"method": 1, "size": 2, "pool": 4}
    assert study["tau"].isnull().sum() == 2
    assert (study["tau"].values[:, 0] == 1).all()
    assert study["members"].sum("system").values.tolist() == [[3, 3, 3, 3], [5, 5, 0, 0]]


def test_the_default_is_what_scores_at_once(six_systems):
    study = studies.model_pools(six_systems, sizes=[3], pools=1, draws=2)
    expected = [name for name in AT_ONCE if least_trials(name) == 1]
    assert study["method"].values.tolist() == expected


def test_pools_are_the_same_from_a_checkpoint(six_systems, tmp_path):
    options = {"methods": ["avg", "thompson"], "sizes": [3], "pools": 250, "draws": 2}
    whole = studies.model_pools(six_systems, **options, checkpoint=tmp_path)
    next(iter(sorted(tmp_path.glob("task-*.npz")))).unlink()
    again = studies.model_pools(six_systems, **options, checkpoint=tmp_path, workers=2)
    assert again.identical(whole)
    assert studies.model_pools(six_systems, **options).identical(whole)


def test_trials_with_replacement_depend_on_the_seed(six_systems):
    options = {"methods": ["avg"], "sizes": [4], "pools": 3, "draws": 3, "resample": "columns"}
    one, same, other = (
        studies.model_pools(six_systems, **options, random_seed=seed) for seed in (1, 1, 2)
    )
    assert one.identical(same)
    assert not one["tau"].equals(other["tau"])
    whole = studies.model_pools(six_systems, **{**options, "n": None})
    np.testing.assert_array_equal(whole["tau"], 1.0)  # all trials, and none twice


def test_missing_trials_stay_missing_in_pools(six_systems):
    study = studies.model_pools(ragged(six_systems), ["avg"], sizes=[4], pools=5, draws=3)
    assert study["tau"].notnull().all()


def test_fractional_scores_have_pools(six_systems):
    halves = Responses(six_systems.outcomes / 2)
    for reference in ("self", "gold"):
        options = {"sizes": [4], "pools": 5, "draws": 3, "reference": reference}
        study = studies.model_pools(halves, ["avg"], **options)
        whole = studies.model_pools(six_systems, ["avg"], **options)
        np.testing.assert_array_equal(study["tau"], whole["tau"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": [6]}, "sizes must be from 2 to 5; got 6"),
        ({"sizes": [2.5]}, "sizes must be integers"),
        ({"sizes": [3], "pools": [1, 2]}, "pools must be one number"),
        ({"sizes": [3], "pools": 0}, "pools must be one number"),
        ({"sizes": [3], "draws": 0}, "draws must be an integer of at least 1; got 0"),
        ({"sizes": [3], "reference": "other"}, "reference must be 'self' or 'gold'; got 'other'"),
    ],
)
def test_pools_are_checked(six_systems, options, message):
    with pytest.raises(ValueError, match=message):
        studies.model_pools(six_systems, ["avg"], **options)


def test_two_systems_have_no_pools(six_systems):
    with pytest.raises(ValueError, match="data must have three systems or more for pools"):
        studies.model_pools(Responses(six_systems.outcomes[:2]), ["avg"], sizes=[2])
