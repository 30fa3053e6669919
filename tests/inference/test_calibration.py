"""Sandwich calibration against covariances computed by hand, unit by unit."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from bayesrank import METHODS, Comparisons, Responses, point_estimate, rank
from bayesrank.errors import CalibrationWarning, DataError
from bayesrank.inference.calibrate.sandwich import (
    calibrate,
    choose_calibration,
    map_to_covariance,
    sandwich_draws,
)
from bayesrank.inference.calibrate.variation import Variation, gradient_variation
from bayesrank.inference.fits.fit import constrained_steps, symmetric_root
from bayesrank.inference.resample.units import Contributions
from bayesrank.inference.resample.weights import widening_for_single_answers
from bayesrank.inference.run import Estimate, Run
from bayesrank.method import load_function
from bayesrank.priors import Flat, Laplace, Normal
from bayesrank.ranking import draw_scores
from tests.inference.pair_methods import METHODS_OF_PAIRS

DRAWS = 25_000


def simulate(shape=(3, 6, 5), *, seed=4, **options) -> Responses:
    rng = np.random.default_rng(seed)
    chance = np.linspace(0.35, 0.65, shape[0])[:, np.newaxis, np.newaxis]
    return Responses((rng.random(shape) < chance).astype(int), **options)


def make_run(data, method="bradley_terry", *, target="benchmark", draws=DRAWS, **options) -> Run:
    return Run(
        method=METHODS[method],
        data=data,
        backend="map",
        target=target,
        prior=Normal(0.0, 1.0),
        draws=draws,
        seed=np.random.SeedSequence(1),
        options=options,
    )


def fit_map(run):
    data = run.data.comparisons if isinstance(run.data, Responses) else run.data
    return load_function(run.method.kernel)(data, run.prior, **run.options)


def bradley_terry_bread(wins, score, precision):
    """Return the inverse of the penalised information on zero-sum scores, entry by entry."""
    size = len(wins)
    information = precision * np.eye(size)
    for i in range(size):
        for j in range(size):
            if i != j:
                chance = 1 / (1 + np.exp(score[j] - score[i]))
                weight = (wins[i, j] + wins[j, i]) * chance * (1 - chance)
                information[i, i] += weight
                information[i, j] -= weight
    centring = np.eye(size) - 1 / size
    return np.linalg.pinv(centring @ information @ centring)


def bradley_terry_gradient(right, score):
    """Return the gradient of one trial, by hand; right holds who was right."""
    gradient = np.zeros(len(score))
    for i in range(len(score)):
        for j in range(len(score)):
            if right[i] == 1 and right[j] == 0:
                chance = 1 / (1 + np.exp(score[j] - score[i]))
                gradient[i] += 1 - chance
                gradient[j] -= 1 - chance
    return gradient


def with_prior(variance, freedom, wins, score, bread):
    """Return a variance with what the model adds, and a prior of precision 1."""
    information = np.linalg.pinv(bradley_terry_bread(wins, score, 0.0))
    variance = variance + information / freedom
    prior = np.eye(len(score)) - 1 / len(score)
    values, axes = np.linalg.eigh(information + prior - bread)
    root = axes @ np.diag(np.sqrt(np.maximum(values, 0.0))) @ axes.T
    missing = np.maximum(1.0 - np.diag(variance) / np.diag(information), 0.0)
    return variance + root @ np.diag(missing) @ root + bread


def spread(rows):
    deviations = rows - rows.mean(axis=0)
    return deviations.T @ deviations


# The covariance


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_bradley_terry_has_the_godambe_covariance(target):
    data = simulate()
    run = make_run(data, target=target)
    fit = fit_map(run)
    n_questions, n_trials = data.shape[1:]
    by_trial = np.array(
        [
            [bradley_terry_gradient(data.outcomes[:, m, n], fit.score) for n in range(n_trials)]
            for m in range(n_questions)
        ]
    )
    if target == "benchmark":
        variance = n_trials / (n_trials - 1) * sum(spread(rows) for rows in by_trial)
        freedom = n_questions * (n_trials - 1)
        variance *= freedom / (freedom - 2)
    else:
        # A t distribution with n - 1 degrees of freedom has the variance (n - 1) / (n - 3).
        variance = n_questions / (n_questions - 3) * spread(by_trial.sum(axis=1))
        freedom = n_questions - 1
    wins = data.comparisons.wins
    bread = bradley_terry_bread(wins, fit.score, 1.0)
    expected = bread @ with_prior(variance, freedom, wins, fit.score, bread) @ bread
    drawn = sandwich_draws(run, fit)["score"]
    assert drawn.shape == (4 * DRAWS, 3)
    np.testing.assert_allclose(np.cov(drawn.T), expected, rtol=0.03, atol=0.01 * expected.max())
    np.testing.assert_allclose(drawn.mean(axis=0), fit.score, atol=0.01)
    np.testing.assert_allclose(drawn.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("bradley_terry", {"ties": "half"}),
        ("davidson", {}),
        ("rao_kupper", {}),
        ("rao_kupper", {"tie_strength": 1.1}),
    ],
)
def test_the_draws_follow_how_the_estimate_moves_when_a_question_counts_more(method, options):
    # The derivative of the estimate by the weight of a question is H^-1 g_m.
    data = simulate((3, 30, 4))
    run = make_run(data, method, target="population", **options)
    fit = fit_map(run)
    size, moved = 1e-4, []
    for m in range(data.shape[1]):
        alone = Responses(data.outcomes[:, [m]]).comparisons
        both = data.comparisons
        refits = [
            load_function(run.method.kernel)(
                Comparisons(both.wins + step * alone.wins, both.ties + step * alone.ties),
                run.prior,
                **options,
            ).score
            for step in (size, -size)
        ]
        moved.append((refits[0] - refits[1]) / (2 * size))
    likelihood = load_function(run.method.gradient)(**options)
    units = gradient_variation(data, likelihood, fit.free, "question", run.seed)
    once = constrained_steps(*fit.geometry, units.covariance)
    found = constrained_steps(*fit.geometry, once.T)[:3, :3]
    expected = Variation.of(Contributions.of(np.array(moved))).covariance
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", METHODS_OF_PAIRS)
@pytest.mark.parametrize("ties", ["ignore", "half"])
def test_gradients_of_trials_are_those_of_their_pairs(method, ties):
    outcomes = np.random.default_rng(0).integers(-1, 3, (5, 6, 3))
    data = Responses(outcomes, weights=[0.0, 0.5, 1.0])
    options = {"ties": ties} if "ties" in METHODS[method].options else {}
    likelihood = load_function(METHODS[method].gradient)(**options)
    point = np.append(np.linspace(-1.0, 1.0, 5), 0.4)[: 5 + (likelihood.start is not None)]
    expected = likelihood.gradient(
        point,
        *map(
            np.array,
            zip(
                *(
                    (one.wins, one.ties)
                    for one in (
                        Responses(
                            outcomes[:, [m], [n]][..., np.newaxis], weights=[0.0, 0.5, 1.0]
                        ).comparisons
                        for m in range(6)
                        for n in range(3)
                    )
                ),
                strict=True,
            ),
        ),
    )
    by_trial = expected.reshape(6, 3, -1)
    found = gradient_variation(data, likelihood, point, "question", np.random.SeedSequence(0))
    by_question = by_trial.sum(axis=1)
    share = (outcomes >= 0).sum(axis=(0, 2)) / (outcomes >= 0).sum()
    freedom = 1 / (share**2).sum() - 1
    assert found.freedom == pytest.approx(freedom)
    widening = freedom / (freedom - 2)
    own = by_question.T - share * by_question.sum(axis=0)[:, np.newaxis]
    moves = own / (1 - share)
    np.testing.assert_allclose(found.covariance, widening * 25 / 6 * np.cov(moves), atol=1e-12)
    found = gradient_variation(data, likelihood, point, "trial", np.random.SeedSequence(0))
    seen = (outcomes >= 0).any(axis=0)
    pooled = sum(n.sum() * np.cov(rows[n].T) for rows, n in zip(by_trial, seen, strict=True))
    freedom = found.freedom
    assert freedom == (seen.sum(axis=1) - 1).sum()
    widening = (
        freedom / (freedom - 2) * (widening_for_single_answers(data, events=True) ** 2).mean()
    )
    np.testing.assert_allclose(found.covariance, widening * pooled, atol=1e-12)


def test_unpaired_trials_vary_on_their_own():
    # To first order: shares vary by p (1 - p) / (N - 1) in every cell, independently.
    data = simulate((3, 3, 60), paired=False)
    run = make_run(data)
    fit = fit_map(run)
    share, variance = data.grades, np.zeros((3, 3))
    for system in range(3):
        for question in range(3):
            gradients = []
            for value in (0.0, 1.0):
                changed = share.copy()
                changed[system, question] = value
                wins = 60 * changed @ (1 - changed).T
                np.fill_diagonal(wins, 0)
                chance = 1 / (1 + np.exp(fit.score - fit.score[:, np.newaxis]))
                gradients.append((wins - (wins + wins.T) * chance).sum(axis=1))
            slope = gradients[1] - gradients[0]
            p = share[system, question]
            variance += p * (1 - p) / 59 * np.outer(slope, slope)
    bread = bradley_terry_bread(data.comparisons.wins, fit.score, 1.0)
    wins = data.comparisons.wins
    # Of hundreds of wins the likelihood's own unit is next to nothing.
    expected = bread @ with_prior(variance, wins.sum(), wins, fit.score, bread) @ bread
    covariance = np.cov(sandwich_draws(run, fit)["score"].T)
    np.testing.assert_allclose(covariance, expected, rtol=0.1, atol=0.03 * expected.max())


def test_questions_that_nobody_was_asked_do_not_matter():
    asked = simulate((3, 6, 4)).outcomes
    gap = np.full((3, 1, 4), -1)
    with_gap = Responses(np.concatenate([asked[:, :2], gap, asked[:, 2:]], axis=1))
    for target in ("benchmark", "population"):
        runs = [make_run(data, target=target, draws=50) for data in (Responses(asked), with_gap)]
        plain, gapped = (sandwich_draws(run, fit_map(run))["score"] for run in runs)
        np.testing.assert_allclose(plain, gapped, rtol=1e-12, atol=1e-12)


def test_missing_systems_do_not_vary():
    outcomes = simulate((3, 8, 4)).outcomes.copy()
    outcomes[2, :4] = -1
    run = make_run(Responses(outcomes), draws=500)
    assert np.isfinite(sandwich_draws(run, fit_map(run))["score"]).all()


def test_one_trial_has_no_benchmark_covariance():
    run = make_run(simulate((3, 6, 1)))
    with pytest.raises(DataError, match=r"trials must be two or more .* target='population'"):
        sandwich_draws(run, fit_map(run))


def test_other_parameters_are_drawn_too():
    run = make_run(simulate((3, 10, 4)), "davidson", draws=100)
    drawn = sandwich_draws(run, fit_map(run))
    assert drawn["tie_strength"].shape == (400,)
    assert drawn["tie_strength"].min() > 0


# Draws that are there already


def test_adjust_gives_the_covariance_and_keeps_the_mean():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4, 300, 3)) @ rng.normal(size=(3, 3)) + [1.0, 2.0, 3.0]
    target = rng.normal(size=(900, 3)) @ rng.normal(size=(3, 3)) - 7.0
    adjusted = map_to_covariance(draws, np.cov(target.T))
    assert adjusted.shape == draws.shape
    flat = adjusted.reshape(-1, 3)
    np.testing.assert_allclose(np.cov(flat.T), np.cov(target.T), rtol=1e-10)
    np.testing.assert_allclose(flat.mean(axis=0), draws.mean(axis=(0, 1)), rtol=1e-12)


def test_adjusting_to_their_own_covariance_changes_nothing():
    draws = np.random.default_rng(0).normal(size=(4, 300, 3))
    np.testing.assert_allclose(
        map_to_covariance(draws, np.cov(draws.reshape(-1, 3).T)), draws, rtol=1e-9, atol=1e-12
    )


def test_adjust_is_affine_so_that_order_and_autocorrelation_stay():
    rng = np.random.default_rng(0)
    draws, target = rng.normal(size=(2, 50, 2)), rng.normal(size=(400, 2)) * [1, 5]
    adjusted = map_to_covariance(draws, np.cov(target.T)).reshape(-1, 2)
    given = np.column_stack([np.ones(100), draws.reshape(-1, 2)])
    map_, *_ = np.linalg.lstsq(given, adjusted)
    np.testing.assert_allclose(given @ map_, adjusted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 20])
def test_directions_without_a_target_are_left_alone(size):
    # Zero-sum targets say nothing of the common shift of uncentred draws.
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4, 500, size))
    target = 0.1 * rng.normal(size=(2000, size))
    target -= target.mean(axis=1, keepdims=True)
    adjusted = map_to_covariance(draws, np.cov(target.T))
    np.testing.assert_allclose(adjusted.mean(axis=-1), draws.mean(axis=-1), atol=1e-10)
    contrasts = adjusted - adjusted.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(
        np.cov(contrasts.reshape(-1, size).T), np.cov(target.T), rtol=1e-6, atol=1e-10
    )


def test_draws_do_not_move_where_they_do_not_vary():
    # Factors of single trials by system leave a covariance of zero-sum scores with a level.
    draws = np.random.default_rng(0).normal(size=(1, 20, 4))
    draws -= draws.mean(axis=-1, keepdims=True)
    factors = np.array([1.0, 1.2, 1.0, 1.5])
    wanted = factors[:, np.newaxis] * (np.eye(4) - 0.25) * factors
    adjusted = map_to_covariance(draws, wanted)
    np.testing.assert_allclose(adjusted.sum(axis=-1), 0.0, atol=1e-12)
    contrast = np.eye(4) - 0.25
    expected = contrast @ wanted @ contrast
    np.testing.assert_allclose(np.cov(adjusted[0].T), expected, atol=1e-12)


def test_targets_of_few_units_move_few_directions():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(4, 500, 12))
    target = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 12))
    adjusted = map_to_covariance(draws, np.cov(target.T)).reshape(-1, 12)
    along = np.linalg.svd(target, full_matrices=False)[2][:3]
    np.testing.assert_allclose(
        np.cov((adjusted @ along.T).T), np.cov((target @ along.T).T), rtol=1e-8, atol=1e-8
    )
    # What the target does not see keeps its spread.
    assert np.linalg.matrix_rank(np.cov(adjusted.T)) == 12


def test_a_target_that_does_not_vary_changes_nothing():
    draws = np.random.default_rng(0).normal(size=(4, 50, 3))
    np.testing.assert_allclose(
        map_to_covariance(draws, np.zeros((3, 3))), draws, rtol=1e-12, atol=1e-14
    )


def fabricate(size, *, strength, shape=(4, 400)) -> Estimate:
    """Return draws of a sampler that was never run."""
    scores = 0.05 * np.random.default_rng(2).normal(size=(*shape, size)) + np.arange(size)
    parameters = xr.Dataset({"other": (("chain", "draw"), np.ones(shape))})
    if strength:
        dims = ("system", "chain", "draw")
        parameters["strength"] = (dims, np.moveaxis(np.exp(scores), -1, 0))
    return Estimate(scores.mean(axis=(0, 1)), scores, parameters)


def find_no_mode():
    raise AssertionError("comparisons are fitted by their kernel")


@pytest.mark.parametrize("prior", [Normal(0.0, 1.0), Laplace(0.0, 1.0)])
def test_draws_of_a_sampler_get_the_sandwich_covariance(prior):
    # No kernel has a Laplace prior: the likelihood alone gives the covariance then.
    data = simulate((3, 20, 6))
    run = replace(make_run(data, draws=400), prior=prior)
    estimate = fabricate(3, strength=True)
    calibrated = calibrate(run, estimate, find_no_mode)
    fit_prior = prior if isinstance(prior, Normal) else Flat()
    fit = load_function(run.method.kernel)(data.comparisons, fit_prior)
    covariance = np.cov(sandwich_draws(run, fit)["score"].T)
    assert calibrated.calibration == "sandwich"
    assert calibrated.draws is not None
    contrasts = (calibrated.draws - calibrated.draws.mean(axis=-1, keepdims=True)).reshape(-1, 3)
    np.testing.assert_allclose(np.cov(contrasts.T), covariance, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(calibrated.score, estimate.score)
    np.testing.assert_allclose(calibrated.draws.mean(axis=(0, 1)), estimate.score, atol=1e-13)
    # Comparisons say nothing of the common level, so that it does not vary over data.
    np.testing.assert_allclose(calibrated.draws.mean(axis=-1), estimate.score.mean(), atol=1e-13)
    strength = calibrated.parameters["strength"].transpose("chain", "draw", "system")
    np.testing.assert_allclose(strength, np.exp(calibrated.draws))
    np.testing.assert_array_equal(calibrated.parameters["other"], 1)


def test_a_point_estimate_has_nothing_to_calibrate():
    data = simulate()
    estimate = Estimate(np.zeros(3), None)
    assert calibrate(make_run(data), estimate, find_no_mode) is estimate


def test_uncentred_draws_are_calibrated_where_no_maximum_likelihood_estimate_exists():
    outcomes = simulate((3, 8, 4)).outcomes.copy()
    outcomes[0] = 1
    data = Responses(outcomes)
    run = make_run(data, draws=400, centred=False)
    calibrated = calibrate(run, fabricate(3, strength=False), find_no_mode)
    centred = sandwich_draws(make_run(data, draws=400), fit_map(make_run(data)))["score"]
    contrasts = calibrated.draws - calibrated.draws.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(
        np.cov(contrasts.reshape(-1, 3).T), np.cov(centred.T), rtol=1e-8, atol=1e-10
    )


def test_options_that_no_kernel_covers_cannot_be_calibrated():
    data = simulate()
    run = make_run(data, order_effect=True)
    with pytest.raises(DataError, match="calibration must be 'none' for these data and options"):
        calibrate(run, fabricate(3, strength=False), find_no_mode)


# The default


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_composite_likelihoods_are_calibrated_by_default(target):
    data = simulate()
    assert choose_calibration(make_run(data, target=target), None) == "sandwich"
    assert choose_calibration(make_run(data, target=target), "none") == "none"


def test_battles_are_independent_and_need_no_calibration():
    battles = make_run(Comparisons([[0, 3], [2, 0]]), target="battles")
    assert choose_calibration(battles, None) == "none"
    assert choose_calibration(battles, "sandwich") == "sandwich"


def test_methods_without_a_gradient_have_none():
    run = make_run(simulate(), "bayes", target="population")
    assert choose_calibration(run, None) == "none"
    with pytest.raises(ValueError, match="calibration must be 'none' for bayes; got 'sandwich'"):
        choose_calibration(run, "sandwich")


def test_unknown_calibrations_are_refused():
    with pytest.raises(ValueError, match="calibration must be one of sandwich, none; got 'jack'"):
        rank(simulate(), "bradley_terry", calibration="jack")


@pytest.mark.parametrize(("n_questions", "usable"), [(1, "none"), (2, "sandwich"), (4, "sandwich")])
def test_few_questions_warn(n_questions, usable):
    run = make_run(simulate((3, n_questions, 4)), target="population")
    few = f"^{n_questions} questions? (is|are) too few"
    with pytest.warns(CalibrationWarning, match=few) as caught:
        assert choose_calibration(run, None) == usable
    assert f"(calibration {usable!r})" in str(caught[0].message)


def test_enough_questions_or_no_draws_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choose_calibration(make_run(simulate((3, 5, 4)), target="population"), None)
        choose_calibration(make_run(simulate((3, 2, 4)), target="population", draws=0), None)
        choose_calibration(make_run(simulate((3, 2, 4)), target="benchmark"), None)


# Through rank()


@pytest.mark.parametrize("backend", ["mle", "map"])
def test_the_result_says_how_it_was_calibrated(backend):
    data = simulate((3, 12, 8))
    options = {"backend": backend, "draws": 500, "random_seed": 1}
    calibrated = rank(data, "bradley_terry", **options)
    naive = rank(data, "bradley_terry", calibration="none", **options)
    assert calibrated.attrs["calibration"] == "sandwich"
    assert naive.attrs["calibration"] == "none"
    np.testing.assert_array_equal(calibrated["ranking"]["score"], naive["ranking"]["score"])
    width = [
        (tree["ranking"]["score_upper"] - tree["ranking"]["score_lower"]).values
        for tree in (calibrated, naive)
    ]
    assert (width[0] > width[1]).all()
    assert set(calibrated["posterior"].data_vars) == set(naive["posterior"].data_vars)


def test_the_graph_engine_gets_the_sandwich_of_the_likelihood():
    data = simulate((3, 20, 6))
    options = {"backend": "map", "prior": "laplace(0, 1)", "draws": 500, "random_seed": 1}
    calibrated = rank(data, "bradley_terry", **options)
    naive = rank(data, "bradley_terry", calibration="none", **options)
    assert calibrated.attrs["calibration"] == "sandwich"
    spreads = [
        tree["posterior"]["score"].std(("chain", "draw")).values for tree in (calibrated, naive)
    ]
    assert (spreads[0] > spreads[1]).all()


@pytest.mark.parametrize("method", ["rasch_2pl_map", "rasch_3pl_map", "mirt"])
@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_scores_that_no_refit_moves_keep_a_spread(method, target):
    # Whatever is left out, these systems tie, and yet they are not known to be equal.
    alike = Responses(np.tile([[[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 1]]], (4, 1, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # four questions
        result = rank(alike, method, target=target, calibration="sandwich", random_seed=0)
    score = result["posterior"]["score"].transpose("chain", "draw", "system").values
    assert np.diff(score, axis=-1).std(axis=(0, 1)).min() > 0.15
    assert (result["ranking"]["tie_group"] == 1).all()


@pytest.mark.parametrize("n_trials", [1, 3])
@pytest.mark.parametrize("n_questions", [2, 12])
@pytest.mark.parametrize(  # not the probit, whose posterior of wins alone is no parabola
    "method", [name for name in METHODS_OF_PAIRS if METHODS[name].family == "paired"]
)
def test_wins_that_never_vary_are_as_uncertain_as_the_same_battles(method, n_questions, n_trials):
    target = "population" if n_trials == 1 else "benchmark"
    data = Responses(np.tile([[[1]], [[0]]], (1, n_questions, n_trials)))
    run = make_run(data, method, target=target, draws=2_000)
    responses = sandwich_draws(run, fit_map(run))["score"].std(axis=0)
    battles = fit_map(make_run(data.comparisons, method, target="battles"))
    expected = battles.draw(8_000, np.random.default_rng(0))["score"].std(axis=0)
    # Two units that are alike leave to the model's noise and to the prior what neither shows alone.
    assert (responses / expected > 0.85).all()
    assert (responses / expected < 1.5).all()


@pytest.mark.parametrize("n_wins", [9, 10])
def test_a_single_loss_makes_no_leap(n_wins):
    # One loss of ten varies over questions; none does not, and is about as uncertain.
    outcomes = np.zeros((2, 10, 1), dtype=int)
    outcomes[0, :n_wins], outcomes[1, n_wins:] = 1, 1
    run = make_run(Responses(outcomes), target="population", draws=2_000)
    assert 0.3 < sandwich_draws(run, fit_map(run))["score"][:, 0].std() < 0.55


def test_systems_that_never_met_are_as_uncertain_as_their_prior():
    outcomes = simulate((2, 8, 4)).outcomes.copy()
    outcomes[0, :4] = outcomes[1, 4:] = -1
    run = make_run(Responses(outcomes))
    # Of two independent standard normal scores, half the difference is left.
    drawn = sandwich_draws(run, fit_map(run))["score"]
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(0.5), rtol=0.02)


def test_draws_with_a_covariance_do_not_hang_on_its_eigenvectors():
    # Equal eigenvalues: any rotation of their vectors is as good, and rounding chooses one.
    covariance = np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    nudged = covariance + 1e-13 * np.diag([1.0, -1.0, 0.5])
    draws = np.random.default_rng(0).normal(size=(4, 200, 3)) * [1.0, 2.0, 3.0]
    for one in (covariance, nudged):
        root = symmetric_root(one)
        np.testing.assert_allclose(root @ root, one)
        np.testing.assert_allclose(root, symmetric_root(covariance), atol=1e-10)
        np.testing.assert_allclose(
            map_to_covariance(draws, one), map_to_covariance(draws, covariance), atol=1e-10
        )


def test_relabelled_systems_have_relabelled_draws():
    covariance = np.cov(
        np.random.default_rng(1).normal(size=(4, 30)) * [[1.0], [1.0], [2.0], [3.0]]
    )
    draws, order = np.random.default_rng(0).normal(size=(4, 200, 4)), [2, 0, 3, 1]
    found = map_to_covariance(draws[..., order], covariance[np.ix_(order, order)])
    np.testing.assert_allclose(found, map_to_covariance(draws, covariance)[..., order], atol=1e-10)


@pytest.mark.parametrize("paired", [True, False])
def test_nothing_but_ties_leaves_intervals_as_wide_as_the_posterior(paired):
    # The model is then that of Rao and Kupper, with a prior on the threshold of ties.
    data = Responses(np.ones((2, 8, 2), dtype=int), paired=paired)
    for target in ("benchmark", "population"):
        calibrated, posterior = (
            rank(
                data,
                "cumulative_logit",
                backend="map",
                target=target,
                calibration=calibration,
                random_seed=1,
            )["posterior"]["score"].std(("chain", "draw"))
            for calibration in ("sandwich", "none")
        )
        assert (calibrated > 0.8 * posterior).all()


@pytest.mark.parametrize("calibration", ["none", "sandwich"])
@pytest.mark.parametrize("method", ["rasch_2pl", "rasch_2pl_map"])
def test_the_unit_of_published_fits_does_not_turn_systems_round(method, calibration):
    rng = np.random.default_rng(5)
    ability, difficulty = rng.normal(size=(12, 1)), rng.normal(size=40)
    slope = np.exp(0.3 * rng.normal(size=40))
    chance = 1.0 / (1.0 + np.exp(-slope * (ability - difficulty)))
    sets = [rng.binomial(1, chance[..., None], (12, 40, 10)) for _ in range(20)]
    draws = draw_scores(
        Responses(sets[0]), method, draws=1000, random_seed=0, calibration=calibration
    )
    spread = draws[..., ability.argmax()] - draws[..., ability.argmin()]
    assert (spread > 0.0).mean() > 0.999
    if method == "rasch_2pl":  # whose unit is a convention
        estimates = np.array([point_estimate(Responses(each), method) for each in sets])
        varies = estimates[:, ability.argmax()] - estimates[:, ability.argmin()]
        assert 0.7 < spread.std() / varies.std() < 1.5


@pytest.mark.parametrize("prior", ["normal(0, 1)", "cauchy(0, 1)"])  # of a kernel, and of a graph
@pytest.mark.parametrize("method", ["bradley_terry_luce", "davidson_luce"])
def test_a_single_system_does_not_vary_among_right_systems(method, prior):
    options = {"backend": "map", "prior": prior, "draws": 5, "random_seed": 0}
    result = rank(simulate((1, 6, 3)), method, **options)
    assert result.attrs["calibration"] == "sandwich"
    assert (result["posterior"]["score"] == 0.0).all()
