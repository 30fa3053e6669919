"""Marginal likelihood kernels against published estimates, quadrature and exact ties."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from bayesrank.inference.fits import ability_posterior, marginal
from bayesrank.inference.fits.ability_posterior import AbilityPosterior, ItemCurves
from bayesrank.inference.fits.marginal import MarginalItems, fit_irt_2pl_mml, fit_rasch_mml
from bayesrank.inference.fits.newton import maximise_nonconcave
from bayesrank.results.ranks import rank_scores

PROBLEMS = {
    "rasch": {"slopes": "common"},
    "rasch_fixed": {"slopes": "fixed", "fixed_slope": 0.8},
    "irt_2pl": {"slopes": "each", "slope_penalty": 0.01},
}


def simulated_counts(seed, shape=(20, 30), n_trials=80):
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=shape[0]), rng.normal(size=shape[1])
    chance = expit(ability[:, None] - difficulty)
    return ability, rng.binomial(n_trials, chance).astype(float), np.full(shape, float(n_trials))


def lsat6(shared):
    with np.load(shared / "data" / "irt_lsat6.npz") as stored:
        correct = (stored["R"] == 1).sum(axis=2).astype(float)
    return correct, np.ones(correct.shape)


def central_differences(function, point, step=1e-5):
    shifts = step * np.eye(point.shape[-1])
    return np.stack(
        [(function(point + shift) - function(point - shift)) / (2.0 * step) for shift in shifts],
        axis=-1,
    )


def test_lsat6_has_its_published_rasch_estimates(shared):
    fit = fit_rasch_mml(*lsat6(shared))
    assert fit.converged
    np.testing.assert_allclose(fit.loglik, -2466.938, atol=5e-4)
    np.testing.assert_allclose(fit.parameters["ability_sd"], 0.7551, atol=5e-5)
    np.testing.assert_allclose(fit.parameters["ability_mean"], 1.4749, atol=5e-5)
    published = [-1.2551, 0.4763, 1.2350, 0.1684, -0.6245]
    np.testing.assert_allclose(fit.parameters["difficulty"], published, atol=6e-5)


def test_lsat6_has_its_published_2pl_estimates(shared):
    fit = fit_irt_2pl_mml(*lsat6(shared), reg_discrimination=0.0)
    assert fit.converged
    np.testing.assert_allclose(fit.loglik, -2466.653, atol=5e-4)
    slope = [0.8257, 0.7227, 0.8909, 0.6884, 0.6569]
    np.testing.assert_allclose(fit.parameters["discrimination"], slope, atol=6e-5)
    difficulty = [-3.3588, -1.3701, -0.2797, -1.8664, -3.1259]
    np.testing.assert_allclose(fit.parameters["difficulty"], difficulty, atol=6e-5)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("complete", [True, False])
def test_marginal_derivatives_match_finite_differences(name, complete):
    rng = np.random.default_rng(3)
    trials = np.full((6, 4), 5.0) if complete else rng.integers(0, 5, size=(6, 4)).astype(float)
    correct = rng.binomial(trials.astype(int), 0.5).astype(float)
    weights = np.array([1.0, 2.0, 0.5, 1.0])
    problem = MarginalItems(correct, trials, weights, **PROBLEMS[name])
    point = rng.normal(size=(1, {"rasch": 5, "rasch_fixed": 4, "irt_2pl": 8}[name]))
    numeric = central_differences(problem.value, point)
    np.testing.assert_allclose(problem.gradient(point), numeric, atol=1e-7)
    numeric = central_differences(problem.gradient, point)
    np.testing.assert_allclose(-problem.information(point), numeric, atol=1e-7)


def test_marginal_likelihood_matches_brute_force_integration():
    # Few and many responses, so wide and narrow posteriors on one grid.
    trials = np.array([[1.0, 2.0], [400.0, 900.0], [3.0, 0.0]])
    correct = np.array([[1.0, 2.0], [130.0, 500.0], [0.0, 0.0]])
    problem = MarginalItems(correct, trials, np.ones(2), "common")
    point = np.array([[0.4, -0.3, np.log(1.3)]])
    z = np.linspace(-12.0, 12.0, 400_001)
    x = 1.3 * z[:, None] + point[0, :2]
    log_density = correct @ x.T - trials @ np.logaddexp(0.0, x).T - 0.5 * z**2
    top = log_density.max(axis=1, keepdims=True)
    total = np.exp(log_density - top).sum(axis=1) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
    np.testing.assert_allclose(
        problem.loglik(point)[0], (top[:, 0] + np.log(total)).sum(), rtol=1e-13
    )


def test_posteriors_match_brute_force_integration():
    curves = ItemCurves(
        np.array([[3.0, 0.0], [250.0, 100.0], [5.0, 4.0]]),
        np.array([[5.0, 4.0], [500.0, 400.0], [5.0, 4.0]]),
        np.array([1.4, 0.6]),
        np.array([0.2, -0.5]),
    )
    posterior = AbilityPosterior.of(curves, 0.0, 1.0)
    z = np.linspace(-12.0, 12.0, 400_001)
    log_density = curves.shared_log_density(z)
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    mean = density @ z
    np.testing.assert_allclose(posterior.mean(), mean, atol=1e-10)
    sd = np.sqrt(density @ z**2 - mean**2)
    np.testing.assert_allclose(posterior.sd(), sd, rtol=1e-8)
    right_ends = z + 0.5 * (z[1] - z[0])
    for probability in (0.001, 0.05, 0.5, 0.975):
        found = posterior.quantile(probability)
        below = [
            np.interp(x, right_ends, row.cumsum()) for row, x in zip(density, found, strict=True)
        ]
        np.testing.assert_allclose(below, probability, atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_posteriors_follow_the_steps_that_steep_items_make(seed):
    rng = np.random.default_rng(seed)
    slope = np.exp(rng.normal(1.0, 2.0, 8)).clip(0.1, 900.0)
    right = rng.integers(0, 2, (6, 8)).astype(float)
    curves = ItemCurves(right, np.ones((6, 8)), slope, slope * rng.normal(size=8))
    posterior = AbilityPosterior.of(curves, 0.0, 1.0)
    z = np.linspace(-10.0, 10.0, 200_001)
    log_density = curves.shared_log_density(z)
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    mean = density @ z
    np.testing.assert_allclose(posterior.mean(), mean, atol=1e-11)
    np.testing.assert_allclose(posterior.sd(), np.sqrt(density @ z**2 - mean**2), rtol=1e-10)
    median = posterior.quantile(0.5)
    below = [np.interp(x, z + 5e-5, row.cumsum()) for row, x in zip(density, median, strict=True)]
    np.testing.assert_allclose(below, 0.5, atol=1e-5)


def test_posterior_draws_follow_the_posterior():
    _, correct, trials = simulated_counts(2, (5, 6), 9)
    fit = fit_rasch_mml(correct, trials, ability_sd=1.0)
    draws = fit.draw(200_000, np.random.default_rng(4))["score"]
    np.testing.assert_allclose(draws.mean(axis=0), fit.score, atol=0.01)
    np.testing.assert_allclose(draws.std(axis=0), fit.posterior.sd(), rtol=0.02)
    np.testing.assert_allclose(np.quantile(draws, 0.05, axis=0), fit.quantile(0.05), atol=0.02)


def test_mml_scores_and_quantiles_follow_the_total_score_with_exact_ties(shared):
    for case in ("rasch_6x12x5_s1", "rasch_20x30x80_s1", "edge_identical_models_s1"):
        path = shared / "oracle" / "cases" / f"{case}.npz"
        if not path.exists():
            continue
        with np.load(path) as stored:
            shape = tuple(stored["shape"])
            outcomes = np.unpackbits(stored["R"])[: np.prod(shape)].reshape(shape)
        correct = outcomes.sum(axis=2).astype(float)
        fit = fit_rasch_mml(
            correct, np.full(correct.shape, float(shape[2])), ability_mean=0.0, ability_sd=1.0
        )
        assert fit.converged
        ranks = rank_scores(correct.sum(axis=1))
        np.testing.assert_array_equal(rank_scores(fit.score), ranks)
        np.testing.assert_array_equal(rank_scores(fit.quantile(0.05)), ranks)


@pytest.mark.parametrize("seed", range(10))
def test_simulated_truths_are_recovered_by_mml(seed):
    ability, correct, trials = simulated_counts(seed)
    for fit in (
        fit_rasch_mml(correct, trials),
        fit_rasch_mml(correct, trials, ability_mean=0.0, ability_sd=1.0),
        fit_irt_2pl_mml(correct, trials),
    ):
        assert fit.converged
        assert np.corrcoef(fit.score, ability)[0, 1] > 0.99


def test_estimated_and_fixed_levels_differ_by_a_shift():
    _, correct, trials = simulated_counts(5, (8, 6), 10)
    free, fixed = fit_rasch_mml(correct, trials), fit_rasch_mml(correct, trials, ability_mean=0.0)
    shift = free.parameters["ability_mean"]
    np.testing.assert_allclose(free.score, fixed.score + shift, atol=1e-12)
    np.testing.assert_allclose(free.parameters["difficulty"].mean(), 0.0, atol=1e-12)
    np.testing.assert_allclose(fixed.parameters["ability_mean"], 0.0)


def test_systems_that_do_not_differ_have_no_spread():
    correct = np.array([[5.0, 3.0], [5.0, 3.0], [5.0, 3.0]])
    fit = fit_rasch_mml(correct, np.full((3, 2), 8.0))
    assert fit.converged
    assert fit.parameters["ability_sd"] < 2e-4
    assert len(set(fit.score.tolist())) == 1


def test_perfect_systems_and_uninformative_questions_have_scores():
    correct = np.array([[4.0, 4.0, 4.0], [4.0, 1.0, 2.0], [4.0, 0.0, 3.0]])
    fit = fit_rasch_mml(correct, np.full((3, 3), 4.0))
    assert fit.converged
    assert np.isfinite(fit.score).all()
    assert fit.parameters["difficulty"][0] == -np.inf
    assert fit.score.argmax() == 0


@pytest.mark.parametrize("fit", [fit_rasch_mml, fit_irt_2pl_mml])
def test_questions_answered_alike_are_fitted_as_one_of_their_number(fit):
    _, correct, trials = simulated_counts(4, (5, 8), n_trials=4)
    alike = np.random.default_rng(4).integers(0, 8, size=60)
    many = fit(correct[:, alike], trials[:, alike])
    options = PROBLEMS["rasch" if fit is fit_rasch_mml else "irt_2pl"]
    every = MarginalItems(correct[:, alike], trials[:, alike], np.ones(60), **options)
    np.testing.assert_allclose(every.gradient(many.free[np.newaxis]), 0.0, atol=1e-7)
    left_out = alike == np.array([[2], [5]])
    fewer = [fit(correct[:, alike[~left]], trials[:, alike[~left]]).score for left in left_out]
    np.testing.assert_allclose(many.without(left_out), fewer, atol=1e-9)
    assert many.curvature()[0].shape[-1] == many.free.shape[-1] > 60


@pytest.mark.parametrize("seed", [10, 11, 14])
def test_the_marginal_2pl_leaves_saddle_points(seed, monkeypatch):
    _, right, trials = simulated_counts(seed, shape=(4, 30), n_trials=1)
    fit = fit_irt_2pl_mml(right, trials)
    assert fit.converged
    assert np.linalg.eigvalsh(fit.information)[0] > 0.0
    # Where Newton's method ends by itself something rises still.
    monkeypatch.setattr(
        marginal, "maximise_past_saddles", lambda *given, **_: maximise_nonconcave(*given)
    )
    saddle = fit_irt_2pl_mml(right, trials)
    assert saddle.converged
    assert np.linalg.eigvalsh(saddle.information)[0] < -0.1
    assert fit.loglik > saddle.loglik + 0.5


@pytest.mark.parametrize("seed", [0, 3, 12])
def test_systems_that_could_change_places_stay_tied_at_a_saddle(seed):
    _, right, _ = simulated_counts(seed, shape=(4, 30), n_trials=1)
    right = np.concatenate([right, right[[1, 0, 2, 3]]], axis=1)
    fit = fit_irt_2pl_mml(right, np.ones(right.shape))
    np.testing.assert_allclose(fit.score[0], fit.score[1], atol=1e-9)
    assert np.linalg.eigvalsh(fit.information)[0] < -0.1


def test_systems_in_a_circle_stay_tied_at_a_saddle():
    circle = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    fit = fit_irt_2pl_mml(2.0 * circle, np.full(circle.shape, 2.0))
    np.testing.assert_allclose(fit.score, fit.score[0], atol=1e-9)
    # Two directions rise alike, and which is found first depends on the processor.
    curvature = np.linalg.eigvalsh(fit.information)
    assert curvature[0] < -0.01
    np.testing.assert_allclose(curvature[0], curvature[1], rtol=1e-6)


def test_discriminations_of_several_hundred_are_maxima_too():
    _, right, trials = simulated_counts(36, shape=(5, 200), n_trials=1)
    fit = fit_irt_2pl_mml(right, trials)
    assert np.nanmax(fit.parameters["discrimination"]) > 300.0
    assert fit.converged


def test_steps_leave_steep_items_where_they_are():
    problem = MarginalItems(*np.ones((2, 3, 2)), np.ones(2), **PROBLEMS["irt_2pl"])
    intercept, log_slope, rise = np.array([4e3, 0.0]), np.log([2e3, 0.5]), np.array([0.7, 0.7])
    point = np.concatenate([intercept, log_slope])[np.newaxis]
    step = np.concatenate([intercept * rise, rise])[np.newaxis]
    end, log_end = np.split(problem.moved(point, step)[0], 2)
    np.testing.assert_allclose(end * np.exp(-log_end), [2.0, 0.0], rtol=1e-14)
    np.testing.assert_allclose(problem.length(point, step), 0.7)
    step[0, 0] += 1e3  # half a standard deviation of the abilities
    np.testing.assert_allclose(problem.length(point, step), 0.7)
    step[0, 1] -= 2.0
    np.testing.assert_allclose(problem.length(point, step), 2.0)


def test_fits_of_many_single_answers_converge():
    _, right, trials = simulated_counts(5, shape=(12, 500), n_trials=1)
    fit = fit_irt_2pl_mml(right, trials)
    assert np.nanmax(fit.parameters["discrimination"]) > 200.0
    assert fit.converged
    assert fit.iterations < 100


def test_panels_of_many_steep_items_are_few_and_exact():
    rng = np.random.default_rng(8)
    slope = 10.0 ** rng.uniform(-0.5, 4.0, size=300)
    place = rng.choice([-0.4, 0.2, 0.21], size=300) + rng.normal(size=300) / slope
    right = rng.binomial(1, expit(slope * (rng.normal(size=(8, 1)) - place))).astype(float)
    curves = ItemCurves(right, np.ones(right.shape), slope, -slope * place)
    nodes, weights, log_integral = curves.grid
    assert len(nodes) < 2000
    edges = ability_posterior._edges(curves)
    finer = np.unique(np.linspace(edges[:-1], edges[1:], 8))
    points, measure = ability_posterior._panel_rule(finer)
    log_density = curves.shared_log_density(points.ravel())
    top = log_density.max(axis=-1)
    density = np.exp(log_density - top[:, np.newaxis]) * measure.ravel()
    exact = top + np.log(density.sum(axis=-1) / np.sqrt(2.0 * np.pi))
    np.testing.assert_allclose(log_integral, exact, atol=1e-8)
    mean = density @ points.ravel() / density.sum(axis=-1)
    np.testing.assert_allclose(weights @ nodes, mean, atol=1e-9)


def test_draws_of_many_items_are_those_of_one_matrix(monkeypatch):
    _, correct, trials = simulated_counts(4, (5, 8), n_trials=4)
    alike = np.random.default_rng(4).integers(0, 8, size=40)
    repeated = correct[:, alike], trials[:, alike]
    # Of these the Rasch model merges questions that different systems answered right.
    single = (np.random.default_rng(3).random((6, 25)) < 0.5).astype(float), np.ones((6, 25))
    for fit_items, counts in (
        (fit_rasch_mml, repeated),
        (fit_irt_2pl_mml, repeated),
        (partial(fit_rasch_mml, ability_sd=1.0), single),
    ):
        whole = np.linalg.inv(fit_items(*counts).information)
        with monkeypatch.context() as patch:
            patch.setattr(marginal, "MOST_DENSE", 0)
            fit = fit_items(*counts)
        deviations = fit.draw_items(40_000, np.random.default_rng(1))
        scale = np.sqrt(np.diag(whole))
        found = np.cov(deviations.T) / np.outer(scale, scale)
        np.testing.assert_allclose(found, whole / np.outer(scale, scale), atol=0.03)


def test_questions_with_as_many_right_answers_are_fitted_as_one():
    _, right, trials = simulated_counts(3, shape=(5, 40), n_trials=1)
    for options in ({"slopes": "common"}, {"slopes": "fixed", "fixed_slope": 1.3}):
        data = marginal._Data.of(right, trials, 0.0, **options)
        assert len(data.problem.weights) <= 6
        found = data.fit().point[:, data.every]
        every = MarginalItems(right * data.kept, trials * data.kept, np.ones(40), **options)
        np.testing.assert_allclose(every.gradient(found), 0.0, atol=1e-9)


def test_marginal_fits_of_thousands_of_questions_need_no_matrix_of_all_of_them():
    _, right, trials = simulated_counts(2, shape=(4, 6000), n_trials=1)
    fit = fit_rasch_mml(right, trials)
    assert fit.converged
    assert {rate.shape for _, rate, _ in fit.slopes()} == {(4, 4), (4, 6000)}
    drawn = fit.draw(10, np.random.default_rng(0))
    assert np.isfinite(drawn["score"]).all()
    assert drawn["difficulty"].shape == (10, 6000)


@pytest.mark.parametrize("seed", range(3))
def test_panels_around_steep_items_integrate_as_equal_steps_do(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    slope, intercept = np.exp(rng.uniform(0.0, 6.0, 40)), rng.normal(size=40)
    right = rng.integers(0, 2, size=(7, 40)).astype(float)
    items = right, np.ones_like(right), slope, intercept * slope
    nodes, weights, level = ItemCurves(*items).grid
    monkeypatch.setattr(ability_posterior, "_STEEP", np.inf)
    equal, shares, expected = ItemCurves(*items).grid
    assert len(nodes) < len(equal)
    np.testing.assert_allclose(level, expected, atol=1e-10)
    np.testing.assert_allclose(weights @ nodes, shares @ equal, atol=1e-10)
    np.testing.assert_allclose(weights @ nodes**2, shares @ equal**2, atol=1e-10)
