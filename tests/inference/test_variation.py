"""Each part of the covariance of calibrated draws, held to what it stands for."""

from dataclasses import replace

import numpy as np
import pytest

from bayesrank import METHODS, Responses, rank
from bayesrank.inference.calibrate import unit_likelihoods
from bayesrank.inference.calibrate.influence import (
    Mode,
    question_contributions,
    trial_contributions,
)
from bayesrank.inference.calibrate.variation import ModelPart, Variation
from bayesrank.inference.fits.rasch import fit_rasch
from bayesrank.inference.resample.contributions import Contributions
from bayesrank.ranking import draw_scores

NOTHING = np.zeros((2, 2))
COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])


def test_the_model_is_one_unit_beside_those_of_the_data():
    # Nine units that add a ninth of a quarter each, and one of the model, four times as large.
    found = Variation(np.eye(2) / 4, 9.0, np.full(2, 9 / 36**2))
    share = (9 / 36**2 + 1 / 9**2) / (1 / 4 + 1 / 9) ** 2
    part = ModelPart(np.eye(2), np.zeros(2), NOTHING)
    np.testing.assert_allclose(part.covariance(found), (1 + 3 * share) / 4 * np.eye(2))


@pytest.mark.parametrize("freedom", [0.0, 9.0, 1e6])
def test_what_no_unit_shows_has_the_variance_of_the_model(freedom):
    part = ModelPart(COVARIANCE, np.zeros(2), NOTHING)
    found = part.covariance(Variation(NOTHING, freedom, np.zeros(2)))
    np.testing.assert_allclose(found, COVARIANCE)


def test_what_units_show_beyond_the_model_stays():
    part = ModelPart(COVARIANCE / 2, np.zeros(2), NOTHING)
    found = part.covariance(Variation(COVARIANCE, 9.0, np.diag(COVARIANCE) ** 2 / 9))
    np.testing.assert_allclose(found, COVARIANCE)


def test_one_unit_of_weight_makes_no_more_than_a_variance_of_one_unit():
    # A variance to which one unit in a hundred adds nearly all is that of one unit.
    part = ModelPart(np.eye(1), np.zeros(1), np.zeros((1, 1)))
    rows = np.zeros((100, 1))
    rows[0] = 0.01
    found = Variation.of(Contributions.of(rows))
    assert part.covariance(found).item() > 0.9


@pytest.mark.parametrize("n", [1, 20])
def test_error_over_the_posterior_of_the_truth_is_that_of_a_normal_model(n):
    # n answers from N(truth, 1), a prior N(0, 1 / P): the estimate is shrunk by P / H.
    precision, estimate = 0.7, 1.3
    information = n + precision
    share = precision / information
    rng = np.random.default_rng(0)
    truth = rng.normal(estimate, information**-0.5, 200_000)
    data = rng.normal(truth, n**-0.5)
    error = np.mean(((1 - share) * data - truth) ** 2)
    part = ModelPart(
        np.array([[n / information**2]]),
        np.array([share * estimate]),
        np.array([[share**2 / information]]),
    )
    found = part.covariance(Variation(part.own, float(n - 1), np.zeros(1)))
    assert found.item() == pytest.approx(error, rel=0.02)


def test_units_have_the_variance_of_a_sum_and_the_tails_of_student():
    rows = np.random.default_rng(0).normal(size=(12, 2))
    found = Variation.of(Contributions.of(rows))
    assert found.freedom == 11.0
    np.testing.assert_allclose(found.covariance, 11 / 9 * 12 * np.cov(rows.T))


def test_crossed_kinds_count_what_they_share_once():
    # The mean of a table of rows, columns and cells, each with a variance of its own.
    rng, n, m = np.random.default_rng(0), 40, 30
    sds, found, means = (1.0, 0.7, 2.0), [], []
    for _ in range(300):
        row, column = rng.normal(0.0, sds[0], (n, 1)), rng.normal(0.0, sds[1], (1, m))
        table = row + column + rng.normal(0.0, sds[2], (n, m))
        deviations = (table - table.mean()) / (n * m)
        sums = deviations.sum(axis=1), deviations.sum(axis=0), deviations.ravel()
        one, other, both = (Variation.of(Contributions.of(x[:, np.newaxis])) for x in sums)
        total = one.crossed(other, both)
        assert total.freedom == m - 1
        found.append(total.covariance.item())
        means.append(table.mean())
    expected = sds[0] ** 2 / n + sds[1] ** 2 / m + sds[2] ** 2 / (n * m)
    assert np.var(means) == pytest.approx(expected, rel=0.25)
    assert np.mean(found) == pytest.approx(expected, rel=0.1)


def test_crossed_kinds_have_no_negative_variance():
    one = Variation(np.diag([1.0, 0.1]), 9.0, np.ones(2))
    both = Variation(np.diag([1.0, 0.3]), 99.0, np.ones(2))
    found = one.crossed(one, both)
    np.testing.assert_allclose(found.covariance, np.diag([1.0, 0.0]), atol=1e-12)


def simulate(shape, seed=0, **options):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(rng.normal(size=shape[1]) - rng.normal(size=(shape[0], 1))))
    return Responses((rng.random(shape) < chance[..., np.newaxis]).astype(int), **options)


@pytest.mark.parametrize("precision", [0.5, 20.0])
def test_shares_of_the_prior_are_those_of_the_information(precision):
    data = simulate((4, 12, 3))
    fit = fit_rasch(*data.binary_counts, ability_precision=precision)
    mode = Mode(fit.free, fit.steps, fit.unpack)
    found = mode.prior(unit_likelihoods.rasch(data), same_questions=False)
    of_prior = np.diag(np.where(np.arange(len(fit.information)) < 4, precision, 0.0))
    steps = mode.directions
    np.testing.assert_allclose(found.pull, steps @ of_prior @ fit.free, atol=1e-4)
    variances, axes = np.linalg.eigh(steps[:, :4])
    own = axes.T @ steps @ (fit.information - of_prior) @ steps.T @ axes
    np.testing.assert_allclose(axes.T @ found.own @ axes, np.diag(np.diag(own)), atol=1e-5)
    share = 1.0 - np.diag(own) / variances
    expected = np.diag(share**2 * variances)
    np.testing.assert_allclose(axes.T @ found.left_open @ axes, expected, atol=1e-5)


def test_questions_take_their_parameters_with_them():
    # An easier question moves the level of the difficulties, to which abilities are relative.
    data = simulate((4, 30, 20))
    fit = fit_rasch(*data.binary_counts, ability_precision=1e-6)
    mode = Mode(fit.free, fit.steps, fit.unpack)
    found = question_contributions(mode, unit_likelihoods.rasch(data))
    level = np.full(4, 0.25)
    spread = np.var(fit.parameters["difficulty"], ddof=1) / 30
    assert level @ found.covariance @ level == pytest.approx(29 / 27 * spread, rel=0.15)


def test_cells_with_one_trial_have_the_noise_of_the_others():
    outcomes = simulate((4, 12, 3)).outcomes.copy()
    outcomes[0, :6, 1:] = -1
    data = Responses(outcomes, paired=False)
    fit = fit_rasch(*data.binary_counts, ability_precision=1.0)
    mode = Mode(fit.free, fit.steps, fit.unpack)
    model = unit_likelihoods.rasch(data)
    right, trials = data.binary_counts
    noise = right * (trials - right) / np.maximum(trials - 1, 1)
    # Of the variance 1 / n summed over cells, six with one trial hide six of eight for system 0.
    factor = np.array([2.0, 1.0, 1.0, 1.0])
    freedom = np.maximum(trials - 1, 0).sum()
    expected = factor[:, np.newaxis] * model.products(noise[..., np.newaxis], mode.moves) * factor
    found = trial_contributions(mode, model)
    assert found.freedom == freedom
    np.testing.assert_allclose(found.covariance, freedom / (freedom - 2) * expected, rtol=1e-9)


def test_scores_that_are_means_over_questions_vary_with_their_terms():
    data = simulate((4, 30, 20))
    fit = fit_rasch(*data.binary_counts, ability_precision=1.0)
    mode = Mode(fit.free, fit.steps, fit.unpack)
    terms = 1e6 * np.random.default_rng(0).normal(size=(30, 4)) / 30
    model = replace(unit_likelihoods.rasch(data), mean_of=lambda _: terms)
    found = question_contributions(mode, model).covariance
    expected = 29 / 27 * 30 * np.cov(terms.T)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


# Several maxima, models of the sampling distribution, and models of votes, which are others without
# grades.
OTHERS = {
    *("mirt", "standardized_accuracy"),
    *("cumulative_logit", "davidson_outside", "hierarchical_comparisons", "dynamic_comparisons"),
}
OPTIONS = {
    "dynamic_irt": {"variant": "growth"},
    "rasch_mml": {"ability_mean": 0.0, "ability_sd": 1.0},
}
LIKELIHOODS = {
    name: {**row.example, **OPTIONS.get(name, {})}
    for name, row in METHODS.items()
    if row.can_be_calibrated and name not in OTHERS
}


def designs():
    rng = np.random.default_rng(0)
    chance = 1 / (1 + np.exp(rng.normal(size=(3, 12, 1)) - np.array([0, 0.5, -0.5])[:, None, None]))
    others = (rng.random((3, 12, 6)) < chance).astype(int)
    apart = (rng.random((3, 30, 4)) < 0.6).astype(int)
    for system in range(3):
        apart[system, np.arange(30) % 3 != system] = -1
    two = 1 / (1 + np.exp(rng.normal(size=(1, 20, 1)) - np.array([0.3, -0.3])[:, None, None]))
    return {
        "ten of ten": np.stack([np.ones((10, 1)), np.zeros((10, 1))]).astype(int),
        "72 of 72": np.concatenate([np.ones((1, 12, 6), dtype=int), others]),
        "no shared question": apart,
        "one question": (rng.random((3, 1, 20)) < np.array([0.3, 0.5, 0.7])[:, None, None]) * 1,
        "two systems": (rng.random((2, 20, 4)) < two).astype(int),
    }


def widths(data, method, target, **options):
    """Return widths of calibrated intervals, and of those of the posterior."""
    found = []
    for calibration in ("sandwich", "none"):
        draws = draw_scores(
            data,
            method,
            target=target,
            calibration=calibration,
            draws=500,
            random_seed=1,
            **options,
        )
        ends = np.quantile(draws.reshape(-1, data.shape[0]), [0.025, 0.975], axis=0)
        found.append(ends[1] - ends[0])
    return found


# Of no comparison their factories make no model.
NEED_A_COMPARISON = ("davidson", "rao_kupper")


@pytest.mark.parametrize(
    ("name", "design"),
    [
        (name, design)
        for name in LIKELIHOODS
        for design in designs()
        if (name, design) not in [(one, "no shared question") for one in NEED_A_COMPARISON]
    ],
)
def test_little_data_leave_intervals_as_wide_as_the_posterior(name, design):
    data, row = Responses(designs()[design]), METHODS[name]
    backend = "map" if "map" in row.backends else "mml"
    many_trials, many_questions = data.shape[2] > 1, data.shape[1] > 1
    targets = ["benchmark"] * many_trials + ["population"] * many_questions
    for target in targets:
        calibrated, posterior = widths(data, row, target, backend=backend, **LIKELIHOODS[name])
        assert (calibrated / posterior).min() > 0.8


@pytest.mark.parametrize("backend", ["map", "nuts"])
@pytest.mark.parametrize("name", NEED_A_COMPARISON)
def test_models_that_need_a_comparison_say_so_under_every_back_end(name, backend):
    data = Responses(designs()["no shared question"])
    with pytest.raises(ValueError, match="no two systems share a question"):
        rank(data, name, backend=backend, draws=10)


@pytest.mark.parametrize("target", ["benchmark", "population"])
@pytest.mark.parametrize("preset", ["rasch_2pl_map", "rasch_3pl_map"])
@pytest.mark.parametrize(
    ("design", "systems"), [("no shared question", slice(3)), ("72 of 72", slice(1))]
)
def test_published_models_leave_open_what_only_the_prior_places(preset, target, design, systems):
    calibrated, posterior = widths(Responses(designs()[design]), preset, target)
    assert (calibrated / posterior)[systems].min() > 0.8


def test_origin_and_unit_of_published_models_are_no_uncertainty():
    # The prior of the abilities sets both; the posterior has them open.
    rng = np.random.default_rng(2)
    chance = 1 / (1 + np.exp(rng.normal(size=60) - rng.normal(size=(4, 1))))
    data = Responses((rng.random((4, 60, 3)) < chance[..., np.newaxis]).astype(int))
    calibrated, posterior = widths(data, "rasch_2pl_map", "population")
    assert (calibrated < posterior / 4).all()
