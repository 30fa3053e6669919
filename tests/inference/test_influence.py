"""Influences of questions and trials against refits with changed data, and covariances by hand."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bayesrank import METHODS, Responses, rank
from bayesrank.errors import CalibrationWarning, ConvergenceWarning, DataError
from bayesrank.inference.calibrate import sandwich, unit_likelihoods
from bayesrank.inference.calibrate.sandwich import marginal_prior
from bayesrank.inference.calibrate.unit_likelihoods import CellSlopes
from bayesrank.inference.calibrate.variation import (
    Mode,
    ModelPart,
    Variation,
    answer_variation,
    delete_many_jackknife,
    graph_mode,
    jackknife_by_refits,
    question_jackknife,
    variation_at,
)
from bayesrank.inference.fits import marginal, published_irt
from bayesrank.inference.fits.item_models import fit_rasch, fit_trials, growth, rasch_items, walk
from bayesrank.inference.fits.luce import fit_bradley_terry_luce, fit_davidson_luce
from bayesrank.inference.fits.table import bradley_terry_luce, davidson_luce
from bayesrank.inference.graph.fit import fit as fit_graph
from bayesrank.inference.resample.units import Contributions, clusters_of
from bayesrank.method import load_function
from bayesrank.priors import Flat, Normal, NormalPrior

SHAPE = (8, 25, 12)
TIMES = np.linspace(0.0, 1.0, SHAPE[2])
# The published penalty.
SLOPES = NormalPrior(0.0, 0.02)


def simulate(shape=SHAPE, *, seed=0, **options) -> Responses:
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=(shape[0], 1)), rng.normal(size=shape[1])
    chance = 1.0 / (1.0 + np.exp(difficulty - ability))
    return Responses((rng.random(shape) < chance[..., np.newaxis]).astype(int), **options)


def mode_of(fit) -> Mode:
    return Mode(fit.free, fit.steps, fit.unpack)


def widened_over_questions(mode, model) -> np.ndarray:
    return variation_at(mode, model, "question").covariance


def widened_over_trials(mode, model) -> np.ndarray:
    return variation_at(mode, model, "trial").covariance


def widening(freedom) -> float:
    """Return the variance of Student's t."""
    return freedom / (freedom - 2)


def with_prior(fit, name, data, table) -> np.ndarray:
    model = getattr(unit_likelihoods, name)(data)
    found = mode_of(fit).prior(model).covariance(table)
    centring = np.eye(len(found)) - 1 / len(found)  # draws sum to zero
    return centring @ found @ centring


def covariance_of_refits(refit, size=1e-4):
    """Return the covariance over questions from how a refit moves when one counts more."""
    n_questions = SHAPE[1]
    moved = []
    for m in range(n_questions):
        ends = []
        for side in (1.0, -1.0):
            weights = np.ones(n_questions)
            weights[m] += side * size
            ends.append(refit(weights).score)
        moved.append((ends[0] - ends[1]) / (2 * size))
    return Variation.of(Contributions.of(np.array(moved))).covariance


def over_time(build, last, data, weights, **priors):
    """Fit ordered trials, or the final abilities where questions count as often as weights say."""
    model = build(data.outcomes, TIMES, **priors)
    if weights is None:
        return fit_trials(model)
    return refitted(model[0], data.outcomes, weights, last)


def rasch(data, weights, precision):
    """Fit the Rasch model, where questions count as often as weights say."""
    if weights is None:
        return fit_rasch(*data.binary_counts, prior=NormalPrior(0.0, precision))
    problem, _ = rasch_items(*data.binary_counts, prior=NormalPrior(0.0, precision))
    return refitted(problem, data.binary_counts[0][..., np.newaxis], weights, np.ones(1))


def refitted(problem, right, weights, last):
    counted = replace(
        problem.likelihood,
        by_trial=np.einsum("lmt,m->lt", right, weights)[np.newaxis],
        by_question=problem.likelihood.by_question * weights,
        trials=problem.likelihood.trials * weights,
    )
    problem = replace(problem, likelihood=counted, hold_v=problem.hold_v * weights[:, np.newaxis])
    optimum = problem.maximise(np.zeros((1, problem.constraints.shape[1])))
    return SimpleNamespace(score=problem.split(optimum.point)[0][0] @ last)


KERNELS = {
    "rasch": (rasch, {}),
    "growth": (
        lambda d, w, p: over_time(
            growth, [1.0, 0.5], d, w, slope_prior=SLOPES, prior=NormalPrior(0.0, p)
        ),
        {},
    ),
    "state_space": (
        lambda d, w, p: over_time(walk, np.eye(SHAPE[2])[-1], d, w, prior=NormalPrior(0.0, p)),
        {"variant": "state_space"},
    ),
}


@pytest.mark.parametrize("precision", [0.0, 1.0])
@pytest.mark.parametrize("name", KERNELS)
def test_influences_are_how_the_scores_move_when_a_question_counts_more(name, precision):
    fit, options = KERNELS[name]
    data = simulate()
    row = name if name in METHODS else "dynamic_irt"
    model = getattr(unit_likelihoods, row)(data, **options)
    found = widened_over_questions(mode_of(fit(data, None, precision)), model)
    expected = covariance_of_refits(lambda weights: fit(data, weights, precision))
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3 * expected.max())


def events_of_questions(data):
    """Return right and wrong systems of every event, and its question."""
    columns = data.outcomes.reshape(len(data.systems), -1).T
    question = np.repeat(np.arange(data.shape[1]), data.shape[2])
    mixed = (columns == 1).any(axis=1) & (columns == 0).any(axis=1)
    return columns[mixed] == 1, columns[mixed] == 0, question[mixed]


@pytest.mark.parametrize("precision", [0.0, 1.0])
def test_influences_on_bradley_terry_luce(precision):
    data = simulate()
    right, wrong, question = events_of_questions(data)

    def refit(weights):
        return fit_bradley_terry_luce(
            right, wrong, weights[question], prior=NormalPrior(0.0, precision)
        )

    found = widened_over_questions(
        mode_of(refit(np.ones(SHAPE[1]))), unit_likelihoods.bradley_terry_luce(data)
    )
    np.testing.assert_allclose(found, covariance_of_refits(refit), rtol=1e-4, atol=1e-8)


def test_influences_on_davidson_luce():
    data = simulate()
    right, _, question = events_of_questions(data)
    size = right.sum(axis=1)

    def refit(weights):
        w = weights[question]
        n_sets = np.bincount(size, w, minlength=SHAPE[0])[1:]
        return fit_davidson_luce((w / size) @ right, n_sets, prior=NormalPrior(0.0, 0.01))

    fit = davidson_luce(data, Normal(0.0, 10.0))
    assert fit is not None
    found = widened_over_questions(mode_of(fit), unit_likelihoods.davidson_luce(data))
    expected = covariance_of_refits(refit)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * expected.max())


def test_sets_of_missing_systems_have_their_own_normaliser():
    # One of three systems took part in half of the events; the chances of an event add up to one.
    data = Responses([[[1, 1, 0, 0]], [[0, 1, 1, 0]], [[0, -1, 1, -1]]])
    model = unit_likelihoods.davidson_luce(data)
    named = {"score": np.array([[0.3, -0.2, -0.1]]), "tie_prevalence": np.array([[1.0, 0.7]])}
    sets = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]], dtype=bool)
    members = np.ones(3, dtype=bool)
    ragged = np.array([[1, 0, 0], [0, 1, 0]], dtype=bool)
    right = np.concatenate([sets, ragged])
    wrong = np.concatenate([members & ~sets, np.array([[0, 1, 0], [1, 0, 0]], dtype=bool)])
    chances = np.exp(model.log_chance(right, wrong)(named)[0])
    np.testing.assert_allclose([chances[:6].sum(), chances[6:].sum()], 1.0)


# Over trials


@pytest.mark.parametrize("paired", [True, False])
def test_the_widened_over_trials_is_that_of_the_answers(paired):
    data = simulate((3, 6, 5), paired=paired)
    fit = fit_rasch(*data.binary_counts, prior=NormalPrior(0.0, 1.0))
    correct, trials = data.binary_counts
    # Scores are linear in small changes of the counts, cell by cell.
    slopes = np.zeros((3, 3, 6))
    for system, question in np.ndindex(3, 6):
        ends = []
        for side in (1e-4, -1e-4):
            changed = correct.astype(float)
            changed[system, question] += side
            ends.append(fit_rasch(changed, trials, prior=NormalPrior(0.0, 1.0)).score)
        slopes[:, system, question] = (ends[0] - ends[1]) / 2e-4
    residual = data.outcomes - data.outcomes.mean(axis=-1, keepdims=True)
    rows = np.einsum("slm,lmn->slmn", slopes, residual) * np.sqrt(5 / 4)
    if paired:
        rows = rows.sum(axis=1)
    rows = rows.reshape(3, -1)
    found = widened_over_trials(mode_of(fit), unit_likelihoods.rasch(data))
    expected = widening(6 * 4 * (1 if paired else 3)) * rows @ rows.T
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)


def test_events_of_a_question_vary_around_their_mean():
    data = simulate((4, 5, 6))
    fit = bradley_terry_luce(data, Normal(0.0, 1.0))
    assert fit is not None
    right, wrong, _ = events_of_questions(data)
    found = widened_over_trials(mode_of(fit), unit_likelihoods.bradley_terry_luce(data))
    moved = np.zeros((4, 5, 6))
    columns = data.outcomes.reshape(4, -1).T
    mixed = np.flatnonzero((columns == 1).any(axis=1) & (columns == 0).any(axis=1))
    for place, where in enumerate(mixed):
        ends = []
        for side in (1e-4, -1e-4):
            weights = np.ones(len(right))
            weights[place] += side
            ends.append(
                fit_bradley_terry_luce(right, wrong, weights, prior=NormalPrior(0.0, 1.0)).score
            )
        moved.reshape(4, -1)[:, where] = (ends[0] - ends[1]) / 2e-4
    moved -= moved.mean(axis=-1, keepdims=True)
    rows = moved.reshape(4, -1)
    expected = widening(25) * 6 / 5 * rows @ rows.T
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("paired", [True, False])
def test_ordered_trials_without_growth_are_those_of_the_rasch_model(paired):
    data = simulate((3, 6, 5), paired=paired)
    times, steep = np.linspace(0.0, 1.0, 5), NormalPrior(0.0, 2e9)
    stiff = fit_trials(growth(data.outcomes, times, slope_prior=steep))
    found = [
        widened_over_trials(mode_of(fit), unit_model(data))
        for fit, unit_model in (
            (stiff, unit_likelihoods.dynamic_irt),
            (fit_rasch(*data.binary_counts), unit_likelihoods.rasch),
        )
    ]
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-9)


def test_scores_of_ordered_trials_vary_as_their_covariance_says():
    rng = np.random.default_rng(0)
    ability, slope, difficulty = rng.normal(size=(3, 20))
    log_odds = ability[:4, np.newaxis] + np.outer(slope[:4], np.linspace(-0.5, 0.5, 10))
    # Chances of the cells are off the model's, as much as its abilities differ.
    log_odds = log_odds[:, np.newaxis] - difficulty[:, np.newaxis] + rng.normal(size=(4, 20, 1))
    scores, found = [], []
    for _ in range(400):
        data = Responses((rng.random((4, 20, 10)) < 1.0 / (1.0 + np.exp(-log_odds))).astype(int))
        fit = fit_trials(growth(data.outcomes, np.linspace(0.0, 1.0, 10), slope_prior=SLOPES))
        scores.append(fit.score)
        found.append(widened_over_trials(mode_of(fit), unit_likelihoods.dynamic_irt(data)))
    expected = np.cov(np.transpose(scores))
    np.testing.assert_allclose(np.diag(np.mean(found, axis=0)), np.diag(expected), rtol=0.2)


@pytest.mark.parametrize("variant", ["linear", "growth", "state_space"])
def test_a_question_that_nobody_was_asked_has_no_trials_to_vary(variant):
    data = simulate((3, 6, 5))
    outcomes = np.insert(data.outcomes, 2, -1, axis=1)
    results = [
        rank(
            one,
            f"dynamic_irt_{variant}",
            target="benchmark",
            calibration="sandwich",
            random_seed=1,
            draws=50,
        )
        for one in (data, Responses(outcomes))
    ]
    np.testing.assert_allclose(
        *(result["posterior"]["score"].values.std(axis=(0, 1)) for result in results), rtol=1e-5
    )


# Clusters


def test_copies_of_a_question_in_one_cluster_are_no_news():
    data = simulate((4, 12, 6))
    twice = Responses(
        np.repeat(data.outcomes, 2, axis=1), groups=np.repeat(np.arange(12), 2).tolist()
    )
    covariances = [
        widened_over_questions(mode_of(fit_rasch(*one.binary_counts)), unit_likelihoods.rasch(one))
        for one in (data, twice)
    ]
    np.testing.assert_allclose(covariances[1], covariances[0], rtol=1e-5)


@pytest.mark.parametrize("method", ["bradley_terry", "avg", "bayes", "borda", "elo", "rasch_mml"])
def test_clusters_widen_every_kind_of_interval(method):
    data = simulate((4, 20, 2))
    copies = np.repeat(data.outcomes[:, :10], 2, axis=1)
    spreads = []
    for groups in (None, np.repeat(np.arange(10), 2).tolist()):
        ranked = Responses(copies, groups=groups)
        result = rank(ranked, method, target="population", draws=1000, random_seed=0)
        spreads.append(result["posterior"]["score"].std(("chain", "draw")).values)
    # Copies of ten questions have the variance of twenty if they are taken for twenty.
    assert np.median(spreads[1] / spreads[0]) > 1.2


def test_few_groups_are_no_clusters():
    data = simulate((3, 6, 4), groups=list("aabbcc"))
    assert clusters_of(data).tolist() == [0, 1, 2, 3, 4, 5]
    for method in ("rasch", "avg", "bayes"):
        with pytest.warns(CalibrationWarning, match="3 groups of questions are too few"):
            rank(data, method, target="population", draws=10, random_seed=0)


def test_groups_of_unequal_sizes_count_as_fewer():
    groups = np.repeat(["a", "b", "c", "d", "e"], [1, 1, 1, 2, 35]).tolist()
    data = simulate((3, 40, 2), groups=groups)
    for method in ("standardized_accuracy", "rasch", "avg", "bayes"):
        with pytest.warns(CalibrationWarning, match="5 groups .* of unequal sizes count as 1,"):
            rank(data, method, target="population", draws=10, random_seed=0)


# The jackknife


def test_the_jackknife_agrees_with_influences_where_both_are_known():
    data = simulate((6, 200, 4))
    fit = marginal.fit_rasch_mml(*data.binary_counts, ability_sd=3.0)
    found = Variation.of(question_jackknife(fit.without, data)).covariance
    fit = fit_rasch(*data.binary_counts, prior=NormalPrior(0.0, 1 / 9))
    expected = widened_over_questions(mode_of(fit), unit_likelihoods.rasch(data))
    ratio = np.sqrt(np.diag(found) / np.diag(expected))
    # Fifty parts tell a standard deviation to a tenth.
    np.testing.assert_allclose(ratio, 1.0, atol=0.25)


@pytest.mark.parametrize("method", ["rasch_mml", "irt_2pl_mml"])
def test_a_marginal_fit_without_questions_is_the_fit_to_the_others(method):
    correct, trials = simulate((6, 12, 4)).binary_counts
    correct = correct.copy()
    correct[:, 5] = trials[:, 5]  # of no influence
    left_out = np.isin(np.arange(12), [2, 7, 8])
    fit = getattr(marginal, f"fit_{method}")
    expected = fit(correct[:, ~left_out], trials[:, ~left_out]).score
    found = fit(correct, trials).without(left_out[np.newaxis])
    np.testing.assert_allclose(found[0], expected, atol=1e-6)


def test_a_marginal_fit_begun_afresh_may_reach_another_maximum():
    # At which it is the fit to the questions that are left, as from a warm start it need not be.
    correct, trials = simulate((5, 60, 1), seed=0).binary_counts
    left_out = np.arange(60) % 5 == np.arange(5)[:, np.newaxis]
    fit = marginal.fit_irt_2pl_mml(correct, trials)
    expected = [
        marginal.fit_irt_2pl_mml(correct[:, ~one], trials[:, ~one]).score for one in left_out
    ]
    np.testing.assert_allclose(fit.afresh(left_out), expected, atol=1e-4)
    assert np.abs(fit.without(left_out) - expected).max() > 0.05


def test_a_mean_without_many_of_its_questions_has_its_variance():
    values = np.random.default_rng(0).normal(size=(40, 200))
    data = Responses(np.ones((40, 200, 1), dtype=int))

    def variation_of_many(score):
        table = delete_many_jackknife(lambda left_out: ~left_out @ values.T / 160, score, data)
        return Variation.of(table).covariance

    found = variation_of_many(values.mean(axis=1))
    # Forty ratios of 20 degrees of freedom: five divisions into five parts.
    ratio = np.diag(found) / widening(49) / (values.var(axis=1, ddof=1) / 200)
    assert ratio.mean() == pytest.approx(1.0, abs=0.15)
    beside = variation_of_many(values.mean(axis=1) + np.eye(40)[1])
    # The mean square of 25 deviations, times the ratio of what is left to what is left out.
    assert beside[1, 1] == pytest.approx(found[1, 1] + 4.0 * widening(49))
    assert beside[0, 0] == pytest.approx(found[0, 0])


def test_davidson_luce_without_questions_is_the_fit_to_the_others():
    outcomes = simulate().outcomes.copy()
    outcomes[:, 4] = 1  # of no influence, but for the weight of the prior
    data, left_out = Responses(outcomes), np.isin(np.arange(25), [2, 7, 8, 11, 12])
    fit = davidson_luce(data, Normal(0.0, 1.0))
    fewer = Responses(outcomes[:, ~left_out])
    expected = davidson_luce(fewer, Normal(0.0, (25 / 20) ** 0.5)).score
    found = fit.without(np.stack([left_out, np.zeros_like(left_out)]))
    np.testing.assert_allclose(found, [expected, fit.score], atol=1e-6)


@pytest.mark.parametrize("log_likelihood", [False, True])
def test_davidson_luce_over_questions_has_the_spread_of_the_jackknife(log_likelihood):
    data = simulate()
    options = {"backend": "map", "prior": 1.0, "log_likelihood": log_likelihood}
    result = rank(data, "davidson_luce", target="population", **options, draws=50, random_seed=0)
    fit = davidson_luce(data, Normal(0.0, 1.0))
    refits = [fit.without(np.arange(25)[np.newaxis] == m)[0] for m in range(25)]
    deviations = refits - np.mean(refits, axis=0)
    table = Variation.of(question_jackknife(fit.without, data))
    expected = widening(24) * 24 / 25 * deviations.T @ deviations
    np.testing.assert_allclose(table.covariance, expected, rtol=1e-6)
    expected = with_prior(fit, "davidson_luce", data, table)
    draws = result["posterior"]["score"].values.reshape(-1, SHAPE[0])
    np.testing.assert_allclose(np.cov(draws.T), expected, rtol=1e-6, atol=1e-8)


def test_influences_stand_in_where_a_question_cannot_be_spared():
    # Question 0 alone has the last system right where others are wrong.
    outcomes = simulate((4, 8, 6), seed=1).outcomes.copy()
    outcomes[-1] = 0
    outcomes[:, 0] = 0
    outcomes[-1, 0] = [1, 1, 1, 0, 0, 0]
    data = Responses(outcomes)
    fit = davidson_luce(data, Flat())
    assert bool(fit.converged)
    assert question_jackknife(fit.without, data) is None
    result = rank(data, "davidson_luce", backend="mle", target="population", random_seed=0)
    table = variation_at(mode_of(fit), unit_likelihoods.davidson_luce(data), "question")
    expected = with_prior(fit, "davidson_luce", data, table)
    draws = result["posterior"]["score"].values.reshape(-1, 4)
    np.testing.assert_allclose(np.cov(draws.T), expected, rtol=1e-6, atol=1e-8)


# Fits to parts of the data


def mean_rates(right, trials):
    return (right / trials).mean(axis=-1)


@pytest.mark.parametrize("n_trials", [2, 7, 40])
def test_parts_of_the_trials_have_the_variance_of_means(n_trials):
    outcomes = simulate((32, 60, n_trials)).outcomes.copy()
    outcomes[:16, :, 4:] = -1
    data = Responses(outcomes, paired=False)
    right, trials = data.binary_counts
    expected = (right * (trials - right) / trials**2 / (trials - 1)).sum(axis=1) / 60**2
    n_parts, n_left = min(n_trials, 10), min(n_trials, 4)
    freedom = 50 // n_parts * (n_parts - 1)
    wide = freedom / (freedom - 2) * expected
    found = Variation.of(jackknife_by_refits(mean_rates, data, "trial")).covariance
    ratio = np.diag(found) / wide
    np.testing.assert_allclose(ratio[16:].mean(), 1.0, atol=0.15)
    # Of n trials in k parts, n < k, one at a time has (k - 1) n / (k (n - 1)) times the variance.
    excess = (n_parts - 1) * n_left / (n_parts * (n_left - 1))
    np.testing.assert_allclose(ratio[:16].mean(), excess, atol=0.15)


def test_runs_of_all_systems_are_left_out_together():
    outcomes = simulate((3, 40, 9)).outcomes.copy()
    outcomes[1] = outcomes[0]
    found = Variation.of(jackknife_by_refits(mean_rates, Responses(outcomes), "trial")).covariance
    np.testing.assert_allclose(found[0], found[1])
    assert found[0, 0] > 2.0 * abs(found[0, 2])


@pytest.mark.parametrize("preset", ["rasch_2pl", "rasch_3pl_map"])
def test_published_item_models_vary_over_questions_as_fits_without_one(preset, monkeypatch):
    # Beside what the prior leaves open.
    nothing = ModelPart(*np.zeros((3, 6, 6)))
    monkeypatch.setattr(sandwich.Mode, "prior", lambda *_, **__: nothing)
    # And beside the unit, which the prior of abilities has alone.
    monkeypatch.setattr(published_irt, "_draw_unit", lambda *given: np.zeros_like(given[3]))
    data = simulate((6, 12, 8), seed=2)
    options = {"target": "population", "random_seed": 0}
    result = rank(data, preset, draws=5_000, **options)
    without = [
        rank(Responses(np.delete(data.outcomes, m, axis=1)), preset, draws=0, random_seed=0)
        for m in range(12)
    ]
    scores = np.array([one["ranking"]["score"].values for one in without])
    expected = Variation.of(Contributions.of(scores, left_out=True)).covariance
    draws = result["posterior"]["score"].values.reshape(-1, 6)
    np.testing.assert_allclose(draws.mean(axis=0), result["ranking"]["score"], atol=0.1)
    np.testing.assert_allclose(np.cov(draws.T), expected, atol=0.05 * np.trace(expected))


def test_published_item_models_need_two_trials_on_a_benchmark():
    data = simulate((4, 8, 1))
    options = {"target": "benchmark", "draws": 50, "random_seed": 0, "calibration": "sandwich"}
    with pytest.raises(DataError, match="trials must be two or more"):
        rank(data, "rasch_2pl_map", **options)


# Marginal likelihoods over trials


def slopes_by_cell(fit):
    """Return slopes of the scores of a marginal fit, (system of the score, system, question)."""
    n_systems, n_questions = len(fit.score), len(fit.parameters["difficulty"])
    found = np.zeros((n_systems, n_systems, n_questions))
    for axis, rate, by_cell in fit.slopes():
        found += (rate[..., np.newaxis] if axis == "l" else rate[:, np.newaxis]) * by_cell
    return found


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("irt_2pl_mml", {}),
        ("rasch_mml", {}),
        ("rasch_mml", {"ability_mean": 0.0}),
        ("rasch_mml", {"ability_mean": 0.0, "ability_sd": 1.0}),
        ("rasch_mml", {"ability_sd": 0.7}),
    ],
)
def test_scores_of_marginal_likelihoods_rise_with_answers_as_their_slopes_say(method, options):
    correct, trials = simulate((5, 7, 8)).binary_counts
    correct, trials = correct.astype(float), trials.astype(float)
    correct[:, 6] = trials[:, 6]  # of no influence
    trials[0, 1] += 3.0
    fit = getattr(marginal, f"fit_{method}")
    slopes = slopes_by_cell(fit(correct, trials, **options))
    assert not slopes[..., 6].any()
    for cell in np.ndindex(5, 6):
        ends = []
        for move in (1e-4, -1e-4):
            moved = correct.copy()
            moved[cell] += move
            ends.append(fit(moved, trials, **options).score)
        np.testing.assert_allclose(
            slopes[(slice(None), *cell)], (ends[0] - ends[1]) / 2e-4, atol=1e-6
        )


def test_the_marginal_2pl_varies_as_the_jackknife_and_its_prior_say():
    data = simulate()
    fit = marginal.fit_irt_2pl_mml(*data.binary_counts)
    result = rank(data, "irt_2pl_mml", target="population", draws=200, random_seed=0)
    table = Variation.of(question_jackknife(fit.without, data))
    prior = marginal_prior(fit, data)
    scores = result["posterior"]["score"].values.reshape(-1, SHAPE[0])
    np.testing.assert_allclose(np.cov(scores.T), prior.covariance(table), rtol=1e-6, atol=1e-8)
    variance = fit.posterior.sd() ** 2
    logit = fit.parameters["discrimination"] * (
        fit.score[:, np.newaxis] - fit.parameters["difficulty"]
    )
    noise = SHAPE[2] / (2.0 + 2.0 * np.cosh(logit))
    slopes = slopes_by_cell(fit)
    own = np.einsum("slm,lm,tlm->st", slopes, noise, slopes)
    np.testing.assert_allclose(prior.own, own, atol=1e-12)
    np.testing.assert_allclose(prior.posterior, np.diag(variance))
    # Abilities are standard normal: level and scale, two of eight directions, are left open.
    assert 8 * np.trace(prior.left_open) / variance.sum() == pytest.approx(2.0, abs=0.3)


def test_items_that_follow_the_answers_leave_abilities_to_their_distribution():
    # Each question has one system: its difficulty explains its answers, whatever the ability.
    outcomes = np.full((3, 30, 4), -1)
    for system in range(3):
        outcomes[system, system::3] = simulate((3, 30, 4)).outcomes[system, system::3]
    data = Responses(outcomes)
    fit = marginal.fit_rasch_mml(*data.binary_counts, ability_mean=0.0, ability_sd=1.0)
    prior = marginal_prior(fit, data)
    np.testing.assert_allclose(prior.own, 0.0, atol=1e-3)
    # As open as in the posterior, which takes the difficulties as known.
    np.testing.assert_allclose(np.diag(prior.left_open), fit.posterior.sd() ** 2, rtol=0.02)


def test_the_marginal_2pl_of_single_answers_varies_as_fits_without_a_fifth_of_them():
    data = simulate((5, 60, 1), seed=5)
    result = rank(data, "irt_2pl_mml", target="population", draws=200, random_seed=0)
    fit = marginal.fit_irt_2pl_mml(*data.binary_counts)
    table = Variation.of(delete_many_jackknife(fit.afresh, fit.score, data))
    expected = marginal_prior(fit, data).covariance(table)
    scores = result["posterior"]["score"].values.reshape(-1, 5)
    np.testing.assert_allclose(np.cov(scores.T), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", ["rasch_mml", "irt_2pl_mml"])
def test_marginal_likelihoods_are_calibrated_over_trials_by_default(method):
    data = simulate()
    options = {"target": "benchmark", "draws": 50, "random_seed": 0}
    by_default, asked, none = (
        rank(data, method, **options, **given)["posterior"]["score"]
        for given in ({}, {"calibration": "sandwich"}, {"calibration": "none"})
    )
    assert by_default.equals(asked)
    assert not by_default.equals(none)


def test_a_system_with_many_trials_varies_with_the_questions_that_others_estimate():
    rng = np.random.default_rng(4)
    chance = 1 / (1 + np.exp(rng.normal(size=20) - rng.normal(size=(8, 1))))
    n_trials = np.array([[200], *[[2]] * 7])
    many = [rng.binomial(n_trials, chance) for _ in range(60)]
    asked, given = n_trials + 0 * many[0], {"ability_mean": 0.0, "ability_sd": 1.0}
    scores = [marginal.fit_rasch_mml(right, asked, **given).score[0] for right in many]
    trial = np.arange(200)
    outcomes = np.where(trial < asked[..., np.newaxis], trial < many[0][..., np.newaxis], -1)
    data = Responses(outcomes, paired=False)  # right answers come first
    draws = rank(data, "rasch_mml", random_seed=0, **given)["posterior"]["score"]
    sd = draws[..., 0].std().item()
    assert sd == pytest.approx(np.std(scores), rel=0.3)


def test_marginal_likelihoods_are_calibrated_over_trials_if_asked():
    data = simulate((4, 8, 4))
    options = {"target": "benchmark", "draws": 200, "random_seed": 0, "calibration": "sandwich"}
    draws = rank(data, "rasch_mml", ability_mean=None, ability_sd=1.0, **options)["posterior"]
    fit = marginal.fit_rasch_mml(*data.binary_counts, ability_sd=1.0)
    found = np.cov(draws["score"].values.reshape(-1, 4).T)
    expected = marginal_prior(fit, data).covariance(
        answer_variation(CellSlopes.of_scores(fit.slopes()), data)
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(DataError, match="trials must be two or more"):
        rank(Responses(data.outcomes[..., :1]), "rasch_mml", **options)


def test_nuts_of_the_marginal_rasch_model_varies_as_its_marginal_likelihood():
    data = simulate((5, 20, 4))
    options = {"ability_mean": 0.0, "ability_sd": 1.0}
    run = {"target": "population", "draws": 100, "random_seed": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few draws
        sampled = rank(data, "rasch_mml", backend="nuts", **run, **options)
    drawn = sampled["posterior"]["score"].values.reshape(-1, 5)
    fit = marginal.fit_rasch_mml(*data.binary_counts, **options)
    expected = Variation.of(question_jackknife(fit.without, data)).covariance
    # Priors of the questions draw the scores together a little.
    # Where all of them lie on the scale only the prior tells.
    contrasts = drawn - drawn.mean(axis=1, keepdims=True)
    ratio = np.trace(np.cov(contrasts.T)) / np.trace(expected)
    assert 0.7 < ratio < 1.1


# Through rank()


@pytest.mark.parametrize(
    "method", [name for name, row in METHODS.items() if row.data == "responses"]
)
def test_every_likelihood_of_responses_has_a_population_target(method):
    data = simulate((4, 16, 3), groups=np.repeat(np.arange(8), 2).tolist())
    options = {"draws": 200, "random_seed": 1, **METHODS[method].example}
    calibrated = rank(data, method, target="population", **options)
    naive = rank(data, method, target="population", calibration="none", **options)
    assert calibrated.attrs["calibration"] == "sandwich"
    assert naive.attrs["calibration"] == "none"
    np.testing.assert_array_equal(calibrated["ranking"]["score"], naive["ranking"]["score"])
    assert np.isfinite(calibrated["posterior"]["score"].values).all()
    assert set(calibrated["posterior"].data_vars) == set(naive["posterior"].data_vars)


def test_one_trial_has_the_population_for_its_target():
    data = simulate((4, 30, 1))
    result = rank(data, "rasch", draws=100, random_seed=0)
    assert result.attrs["target"] == "population"
    assert result.attrs["calibration"] == "sandwich"
    with pytest.raises(DataError, match="use target='population'"):
        rank(data, "rasch", target="benchmark", calibration="sandwich", draws=100)


def test_graph_and_kernel_give_one_covariance():
    # The preset's flat priors send it to the kernel; a normal one, wide enough, to the graph.
    data = simulate((5, 20, 10))
    options = {"prior": 1.0, "backend": "map", "draws": 2000, "random_seed": 0}
    spreads = [
        rank(data, "rasch_map", target="population", **options, difficulty_prior=prior)[
            "posterior"
        ]["score"]
        .std(("chain", "draw"))
        .values
        for prior in ("flat", "normal(0, 1000)")
    ]
    np.testing.assert_allclose(spreads[0], spreads[1], rtol=0.02)


def test_naive_posteriors_of_the_population_are_too_narrow():
    data = simulate((5, 20, 40))
    options = {"target": "population", "draws": 500, "random_seed": 0}
    calibrated, naive = (
        rank(data, "rasch_map", **options, **more)["posterior"]["score"].std(("chain", "draw"))
        for more in ({}, {"calibration": "none"})
    )
    assert (calibrated > 2 * naive).all()


def test_draws_of_nuts_get_the_covariance_of_the_mode():
    data = simulate((4, 12, 6))
    options = {"prior": 1.0, "difficulty_prior": "hierarchical", "target": "population"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few draws
        sampled = rank(data, "rasch", backend="nuts", **options, draws=150, random_seed=0)
    at_mode = rank(data, "rasch", backend="map", **options, draws=4000, random_seed=0)
    assert sampled.attrs["calibration"] == "sandwich"
    spreads = [one["posterior"]["score"].std(("chain", "draw")) for one in (sampled, at_mode)]
    np.testing.assert_allclose(spreads[0], spreads[1], rtol=0.05)


@pytest.mark.parametrize("target", ["population", "benchmark"])
@pytest.mark.parametrize(
    "method", ["rasch", "irt_2pl", "irt_3pl", "dynamic_irt", "bradley_terry_luce"]
)
def test_kernel_and_graph_are_one_mode(method, target):
    row, data = METHODS[method], simulate((4, 12, 4))
    options = {"assume_time_axis": True} if method == "dynamic_irt" else {}
    prior = row.default_prior.resolve(data)
    kernel = load_function(row.kernel)(data, prior, **options)
    events = data.events if method == "bradley_terry_luce" else data
    graph = fit_graph(load_function(row.function)(events, prior=prior, **options), "map")
    model = load_function(row.gradient)(data, **options)
    covariance = widened_over_questions if target == "population" else widened_over_trials
    expected = covariance(graph_mode(graph, data), model)
    size = np.abs(expected).max()
    np.testing.assert_allclose(covariance(mode_of(kernel), model), expected, atol=1e-6 * size)


def test_draws_of_nuts_without_a_mode_keep_their_covariance(uncompiled):
    data = simulate((4, 12, 4))
    options = {"variant": "state_space", "assume_time_axis": True, "target": "population"}
    few = {"draws": 20, "tune": 30, "log_likelihood": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # few draws
        with pytest.warns(CalibrationWarning, match="dynamic_irt has no mode to calibrate at"):
            sampled = rank(data, "dynamic_irt", backend="nuts", **few, **options)
    assert sampled.attrs["calibration"] == "none"


def test_models_are_found_by_the_catalog():
    for row in METHODS.values():
        if row.data == "responses" and row.spread is None:
            shared = {"rasch_mml": "rasch"}
            assert load_function(row.gradient).__name__ == shared.get(row.name, row.name)
