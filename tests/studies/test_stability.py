"""Stability: draws of trials, references, groups, estimates that do not exist."""

import numpy as np
import pytest

from bayesrank import PRESETS, Responses, point_estimate, studies
from bayesrank.datasets import load_olympiad
from bayesrank.errors import DataError
from bayesrank.ranking import draw_scores
from bayesrank.results.agreement import kendall_tau_b
from bayesrank.results.ranks import rank_scores
from bayesrank.studies.configurations import PUBLISHED, choose_methods, least_trials
from bayesrank.studies.scoring import score_rank
from bayesrank.studies.subsets import draw_trials, plan_draws, select


def test_there_are_72_published_configurations_and_three_need_a_second_trial():
    assert len(PUBLISHED) == 72
    two = {name for name in PUBLISHED if least_trials(name) == 2}
    assert two == {name for name in PUBLISHED if PRESETS[name].options.get("k") == 2}
    assert len(two) == 3
    assert all(least_trials(name) == 1 for name in set(PUBLISHED) - two)


@pytest.mark.parametrize("study", [studies.stability, studies.consensus])
def test_a_system_without_an_outcome_is_an_error_with_a_remedy(six_systems, study):
    outcomes = six_systems.outcomes.copy()
    outcomes[2] = -1
    data = Responses(outcomes, systems=six_systems.systems)
    with pytest.raises(DataError, match=r"got none of .* leave them out by data.select"):
        study(data, ["avg", "borda"])
    left = data.select(systems=[each for each in data.systems if each != data.systems[2]])
    assert study(left, ["avg", "borda"]) is not None


def test_all_trials_give_the_gold_standard(six_systems):
    study = studies.stability(six_systems, ["avg", "bayes"], n=10, draws=3)
    np.testing.assert_array_equal(study["tau"], 1.0)
    np.testing.assert_array_equal(study["tau_sd"], 0.0)


def test_the_mean_is_that_of_rankings_computed_by_hand(six_systems):
    study = studies.stability(six_systems, "avg", n=2, draws=4, random_seed=5)
    gold = rank_scores(point_estimate(six_systems, "bayes"))
    taus = []
    for trials in plan_draws(six_systems, 2, 4, "subset", 5):
        few = six_systems.outcomes[..., trials]
        taus.append(kendall_tau_b(rank_scores(few.sum(axis=(1, 2))), gold))
    np.testing.assert_allclose(study["tau"].values[0, 0], taus)
    assert study["tau_mean"].item() == pytest.approx(np.mean(taus))


def test_each_trial_is_used_once(six_systems):
    plan = plan_draws(six_systems, 1, 10, "subset", 3)
    assert sorted(int(trials[0]) for trials in plan) == list(range(10))
    # Three fit into ten thrice; the next order starts with the fourth draw.
    plan = plan_draws(six_systems, 3, 7, "subset", 3)
    for deal in (plan[:3], plan[3:6]):
        assert len(set(np.concatenate(deal).tolist())) == 9
    for short, long in zip(plan, plan_draws(six_systems, 3, 12, "subset", 3)[:7], strict=True):
        np.testing.assert_array_equal(short, long)
    assert plan_draws(six_systems, 3, 2, "columns", 3) == [None, None]


@pytest.mark.parametrize("seed", [0, 1, 99])
def test_every_single_trial_gives_one_mean_whatever_the_seed(seed):
    study = studies.stability(load_olympiad("HMMT'25"), "avg", random_seed=seed)
    assert study["tau_mean"].item() == pytest.approx(0.7816, abs=5e-5)


def test_both_references_are_a_dim(six_systems):
    methods = ["avg", "copeland", "elo_tie_skip"]
    both = studies.stability(six_systems, methods, draws=6, reference=["gold", "self"])
    for reference in ("gold", "self"):
        alone = studies.stability(six_systems, methods, draws=6, reference=reference)
        chosen = both.sel(reference=reference)
        for name in ("tau", "tau_mean", "tau_sd", "tau_min", "tau_max", "tau_true_lower"):
            np.testing.assert_array_equal(chosen[name], alone[name])
    np.testing.assert_array_equal(both["tau_min"], both["tau"].min("draw"))
    np.testing.assert_array_equal(both["tau_max"], both["tau"].max("draw"))
    assert both["tau_true"].sel(reference="self").isnull().all()


def test_options_are_those_of_the_method(six_systems):
    texts = ["pass_at_k(k=4)", "g_pass_at_k_tau(k=4, tau=0.5)", "bradley_terry(backend='map')"]
    study = studies.stability(six_systems, texts, n=5, draws=3)
    assert study["method"].values.tolist() == texts
    for draw, trials in enumerate(plan_draws(six_systems, 5, 3, "subset", 0)):
        few = Responses(six_systems.outcomes[..., trials])
        for place, (name, options) in enumerate(
            (
                ("pass_at_k", {"k": 4}),
                ("g_pass_at_k_tau", {"k": 4, "tau": 0.5}),
                ("bradley_terry", {"backend": "map"}),
            )
        ):
            expected = rank_scores(point_estimate(few, name, **options))
            np.testing.assert_array_equal(study["rank"].values[place, 0, draw], expected)


def test_the_interval_is_that_of_the_order_that_the_gold_standard_estimates(six_systems):
    study = studies.stability(six_systems, ["avg", "borda"], draws=5, ci_prob=0.8)
    draws = draw_scores(six_systems, "avg", target="benchmark", draws=125, random_seed=0)
    for place in range(2):
        ranks = study["rank"].values[place, 0]
        tau = [kendall_tau_b(ranks, -order).mean() for order in draws.reshape(-1, 6)]
        for name, expected in (
            ("tau_true", np.mean(tau)),
            ("tau_true_lower", np.quantile(tau, 0.1)),
            ("tau_true_upper", np.quantile(tau, 0.9)),
        ):
            assert study[name].values[place, 0] == pytest.approx(expected)
    # Noise of the gold standard does not help to agree with it.
    assert (study["tau_true_upper"] > study["tau_true_lower"]).all()


def test_the_interval_covers_the_agreement_with_the_truth():
    covered = []
    for seed in range(120):
        tensor = studies.simulate.rasch_tensor(8, 30, 12, random_seed=seed)
        truth = rank_scores(tensor["probability"].values.mean(axis=1))
        study = studies.stability(Responses(tensor["outcomes"].values), "avg", draws=12)
        expected = kendall_tau_b(study["rank"].values[0, 0], truth).mean()
        lower, upper = (float(study[f"tau_true_{end}"].item()) for end in ("lower", "upper"))
        covered.append(lower <= expected <= upper)
    # 95 % of 120, less three standard errors; tau takes few values, so that more is held.
    assert np.mean(covered) > 0.89


def test_a_single_trial_of_fractions_has_no_order_to_draw():
    scores = np.random.default_rng(0).random((4, 6, 1))
    study = studies.stability(Responses(scores), "avg", draws=1)
    assert study["tau_mean"].item() == 1.0
    assert study["tau_true"].isnull().all()


def test_methods_see_the_same_trials_whichever_are_asked(six_systems):
    together = studies.stability(six_systems, ["borda", "avg"], draws=4)
    alone = studies.stability(six_systems, ["avg"], draws=4)
    np.testing.assert_array_equal(together["tau"].sel({"method": "avg"}), alone["tau"][0])


def test_several_numbers_of_trials_are_a_dim(six_systems):
    study = studies.stability(six_systems, ["avg"], n=[1, 10], draws=20)
    assert study["n_trials"].values.tolist() == [1, 10]
    few, many = study["tau_mean"].values[0]
    assert few < many


@pytest.mark.parametrize("resample", ["subset", "columns", "rows"])
def test_trials_are_drawn_as_asked(six_systems, resample):
    numbered = np.broadcast_to(np.arange(10), six_systems.shape) / 16
    drawn = draw_trials(Responses(numbered), 6, resample, np.random.default_rng(0)).scores
    assert drawn is not None
    assert (drawn == drawn[:1]).all()  # all systems have the same trials
    by_question = [tuple(row) for row in drawn[0]]
    assert (len(set(by_question)) == 1) == (resample != "rows")
    assert (len(set(by_question[0])) == 6) == (resample == "subset") or resample != "subset"


def test_its_own_ranking_is_a_reference(six_systems):
    study = studies.stability(six_systems, ["copeland"], n=10, draws=2, reference="self")
    np.testing.assert_array_equal(study["tau"], 1.0)


def test_given_ranks_are_a_reference(six_systems):
    study = studies.stability(six_systems, ["avg"], n=10, draws=2, reference=[6, 5, 4, 3, 2, 1])
    assert (study["tau"] < 0).all()


def test_methods_with_the_same_rankings_are_one_group(six_systems):
    study = studies.stability(six_systems, ["avg", "bayes", "elo_tie_skip"], draws=6)
    one_each = studies.collapse(study)
    assert one_each["members"].values.tolist() == ["avg, bayes", "elo_tie_skip"]
    assert one_each["size"].values.tolist() == [2, 1]


def test_the_default_is_what_the_data_allow(six_systems):
    once = choose_methods(six_systems, None, n=1)
    assert once == tuple(name for name in PUBLISHED if least_trials(name) == 1)
    assert choose_methods(six_systems, None, n=2) == PUBLISHED
    without = choose_methods(Responses(six_systems.outcomes), None, n=2)
    assert set(PUBLISHED) - set(without) == {"bayes_greedy"}


def test_fractional_scores_are_ranked_by_what_reads_grades(six_systems):
    fractions = Responses(six_systems.outcomes / 2)
    study = studies.stability(fractions, draws=2)
    assert {"avg", "borda"} <= set(study["method"].values)
    assert not {"rasch", "bayes", "pagerank"} & set(study["method"].values)
    halved = studies.stability(six_systems, "avg", draws=2)["tau"]
    np.testing.assert_array_equal(study["tau"].sel({"method": ["avg"]}), halved)


def test_a_sampled_posterior_is_ranked_by_its_mean(six_systems):
    study = studies.stability(six_systems, ["bayesian_mcmc", "bradley_terry_map"], n=10, draws=1)
    assert (study["tau"] > 0.8).all()


def test_draws_without_a_finite_estimate_are_counted_and_ranked():
    outcomes = np.zeros((3, 4, 1), dtype=int)
    outcomes[0] = 1
    outcomes[1, :2] = 1
    study = studies.stability(Responses(outcomes), ["bradley_terry", "avg"], draws=2)
    assert study["draws_infinite"].values[:, 0].tolist() == [2, 0]
    np.testing.assert_array_equal(study["tau"], 1.0)


def test_the_limit_of_rank_centrality_ranks_systems_that_never_lose():
    outcomes = np.zeros((3, 4, 1), dtype=int)
    outcomes[0] = 1
    outcomes[1, :2] = 1
    scored = score_rank(Responses(outcomes), "rank_centrality_tie_ignore")
    assert not scored.finite
    assert scored.rank.tolist() == [1, 2, 3]


def test_a_study_goes_on_from_its_checkpoint(six_systems, tmp_path):
    options = {"methods": ["avg", "trueskill"], "draws": 5, "random_seed": 2}
    whole = studies.stability(six_systems, **options)
    studies.stability(six_systems, **options, checkpoint=tmp_path)
    for path in sorted(tmp_path.glob("task-*.npz"))[1:4]:
        path.unlink()
    resumed = studies.stability(six_systems, **options, checkpoint=tmp_path, workers=2)
    assert resumed.identical(whole)


def test_a_checkpoint_of_other_data_is_refused(six_systems, tmp_path):
    studies.stability(six_systems, ["avg"], draws=2, checkpoint=tmp_path)
    other = select(six_systems, systems=[0, 1, 2])
    with pytest.raises(ValueError, match="checkpoint must be"):
        studies.stability(other, ["avg"], draws=2, checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 11}, "n must be integers from 1 to 10; got 11"),
        ({"n": 0}, "n must be integers from 1 to 10; got 0"),
        ({"n": []}, "n must be one number or more"),
        ({"draws": 0}, "draws must be an integer of at least 1; got 0"),
        ({"resample": "cells"}, "resample must be one of"),
        ({"methods": ["nothing"]}, "methods must be among"),
        ({"methods": ["avg", "avg"]}, "methods must be one or more, each once"),
        ({"methods": ["pass_at_k_2"]}, "n must be at least 2 for the method 'pass_at_k_2'; got 1"),
        ({"methods": ["pass_at_k(k=3)"], "n": 2}, "n must be at least 3 for the method"),
        (
            {"methods": ["pass_at_k(j=3)"]},
            "options of pass_at_k must be among: k, estimator; got 'j'",
        ),
        ({"methods": ["avg(backend='map')"]}, "backend must be one of bootstrap; got 'map'"),
        ({"methods": ["avg(1)"]}, "methods must have the form name or name\\(option=value\\)"),
        ({"methods": [3]}, "methods must be names; got 3"),
        ({"ci_prob": 1.0}, "ci_prob must be between 0 and 1"),
        ({"reference": ["gold", "silver"]}, "reference must be 'gold', 'self' or ranks"),
        ({"reference": []}, "reference must hold one rank for each of 6"),
        ({"reference": "silver"}, "reference must be 'gold', 'self' or ranks"),
        ({"reference": [1, 2]}, "reference must hold one rank for each of 6"),
    ],
)
def test_arguments_are_checked(six_systems, options, message):
    with pytest.raises(ValueError, match=message):
        studies.stability(six_systems, **{"methods": ["avg"], "draws": 2, **options})


def test_missing_trials_stay_missing(six_systems):
    outcomes = six_systems.outcomes.copy()
    outcomes[0, 0, 5:] = -1
    outcomes[1, 3] = -1
    ragged = Responses(outcomes)
    few = draw_trials(ragged, 7, "subset", np.random.default_rng(1))
    # Cells have the trials that they have, up to seven.
    np.testing.assert_array_equal(few.trials, np.minimum(ragged.trials, 7))
    again = draw_trials(ragged, 7, "columns", np.random.default_rng(1))
    np.testing.assert_array_equal(again.trials == 0, ragged.trials == 0)
    assert set(again.trials.ravel()) == {0, 7}
    whole = draw_trials(ragged, 10, "subset", np.random.default_rng(1))
    np.testing.assert_array_equal(whole.counts, ragged.counts)
    study = studies.stability(Responses(outcomes), ["avg", "borda"], n=3, draws=4)
    assert study["tau"].notnull().all()


def test_consensus_of_equal_methods_is_one(six_systems):
    study = studies.consensus(six_systems, ["avg", "bayes", "borda"])
    np.testing.assert_array_equal(study["tau_gold"][:2], 1.0)
    assert study["group"].values[1] == "avg"
    expected = study["tau"].values[0, [1, 2]].mean()
    assert study["tau_mean"].values[0] == pytest.approx(expected)
    np.testing.assert_array_equal(study["rank"][0], rank_scores(six_systems.outcomes.sum((1, 2))))
    # The gold standard has its own order, which is not surely the true one.
    assert study["tau_true_lower"].values[0] < study["tau_true"].values[0] < 1.0


def test_consensus_takes_options(six_systems):
    study = studies.consensus(six_systems, ["pass_at_k(k=10)", "avg"])
    expected = rank_scores((six_systems.outcomes.sum(axis=2) > 0).sum(axis=1))
    np.testing.assert_array_equal(study["rank"][0], expected)
    with pytest.raises(ValueError, match="trials must be at least 11 for the method"):
        studies.consensus(six_systems, ["pass_at_k(k=11)"])


def test_consensus_of_one_method_has_no_average(six_systems):
    assert np.isnan(studies.consensus(six_systems, ["avg"])["tau_mean"]).all()
