"""Each part of the covariance of calibrated draws, held to what it stands for."""

from dataclasses import replace

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.inference.calibrate import unit_likelihoods
from bayesrank.inference.calibrate.variation import Mode, ModelPart, Variation, variation_at
from bayesrank.inference.fits.item_models import fit_rasch
from bayesrank.inference.resample.units import Contributions
from bayesrank.inference.resample.weights import widening_for_single_answers
from bayesrank.priors import NormalPrior
from bayesrank.ranking import draw_scores

NOTHING = np.zeros((2, 2))
COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])


def alike(covariance, freedom):
    """Return a variation to which so many units add alike."""
    squares = (
        np.diag(covariance) ** 2 / freedom if np.any(covariance) else np.zeros(len(covariance))
    )
    return Variation(covariance, freedom, squares)


def test_the_model_is_one_unit_beside_those_of_the_data():
    part = ModelPart(np.eye(2), np.eye(2), NOTHING)
    found = part.covariance(alike(4.0 * COVARIANCE, 9.0))
    np.testing.assert_allclose(found, 4.0 * COVARIANCE + np.eye(2) / 9.0)


def test_few_units_vary_by_the_noise_of_the_model_at_least():
    own = np.diag([2.0, 1.0])
    part = ModelPart(own, own, NOTHING)
    found = part.covariance(alike(np.array([[0.5, 0.3], [0.3, 4.0]]), 8.0))
    np.testing.assert_allclose(found, np.array([[2.0, 0.3], [0.3, 4.125]]))


def test_many_units_may_show_less_than_the_noise_of_the_model():
    part = ModelPart(np.eye(2), np.eye(2), NOTHING)
    # Of 40 alike and one of twice their size, beside which the variance is one half.
    units = 0.525**2 / (0.5**2 / 40 + 0.025**2)
    found = part.covariance(alike(0.5 * np.eye(2), 40.0))
    np.testing.assert_allclose(found, (0.525 + 10 / units * 0.475) * np.eye(2))
    # Where one of them adds nearly all, they are as one.
    one = Variation(0.5 * np.eye(2), 40.0, np.full(2, 0.24))
    np.testing.assert_allclose(part.covariance(one), np.eye(2))


def test_a_system_with_few_questions_has_the_dispersion_of_the_others():
    # The others vary three times as much as independent answers do.
    own = np.diag([1.0, 0.1, 0.1])
    part = ModelPart(own, own, np.zeros((3, 3)))
    units = alike(np.diag([1.0, 0.3, 0.3]), 40.0)
    asked = np.array([4.0, 40.0, 40.0])
    found = np.diag(part.covariance(units, asked))
    seen = np.array([1.025, 0.3025, 0.3025])
    common = (asked * seen / np.diag(own)).sum() / asked.sum()
    np.testing.assert_allclose(found, [0.1 * 1.025 + 0.9 * common, 0.3025, 0.3025])
    np.testing.assert_array_equal(part.covariance(units, np.full(3, 4.0)), part.covariance(units))


def test_rounding_of_a_score_that_cannot_vary_is_no_negative_variance():
    own = np.diag([1.0, 0.0])
    part = ModelPart(own, own, np.zeros((2, 2)))
    found = part.covariance(alike(np.diag([2.0, -1e-33]), 9.0))
    np.testing.assert_allclose(np.diag(found), [2.0 + 1.0 / 9.0, 0.0], atol=1e-30)


def test_noise_that_makes_up_keeps_the_scores_at_sum_zero():
    own = np.eye(3) - 1 / 3
    part = ModelPart(own, own, np.zeros((3, 3)))
    one = np.array([1.0, -1.0, 0.0])
    found = part.covariance(alike(np.outer(one, one), 9.0))
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-7)


@pytest.mark.parametrize("freedom", [0.0, 9.0, 1e6])
def test_what_no_unit_shows_has_the_variance_of_the_model(freedom):
    part = ModelPart(COVARIANCE, COVARIANCE, NOTHING)
    found = part.covariance(alike(NOTHING, freedom))
    np.testing.assert_allclose(found, COVARIANCE)


def test_crossed_kinds_that_cancel_leave_what_says_nothing_without_variance():
    cancelled = Variation(NOTHING, 3.0, np.ones(2))
    np.testing.assert_array_equal(
        ModelPart(NOTHING, COVARIANCE, NOTHING).covariance(cancelled), 0.0
    )


@pytest.mark.parametrize("n", [0, 1, 20])
def test_what_no_unit_shows_has_the_variance_of_the_posterior(n):
    # n answers from N(truth, 1), a prior N(0, 1 / P): the estimate is shrunk by P / H.
    precision = 0.7
    information = n + precision
    part = ModelPart(
        np.array([[n / information**2]]),
        np.array([[1 / information]]),
        np.array([[precision**2 / information**3]]),
    )
    found = part.covariance(alike(np.zeros((1, 1)), np.inf))
    assert found.item() == pytest.approx(1 / information)
    # Where units show the noise, other data have the same prior, but for what it leaves open.
    of_units = part.covariance(alike(part.own, np.inf))
    assert of_units.item() == pytest.approx((part.own + part.left_open).item())


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
        np.testing.assert_array_equal(total.squares, max(one.squares, other.squares))
        found.append(total.covariance.item())
        means.append(table.mean())
    expected = sds[0] ** 2 / n + sds[1] ** 2 / m + sds[2] ** 2 / (n * m)
    assert np.var(means) == pytest.approx(expected, rel=0.25)
    assert np.mean(found) == pytest.approx(expected, rel=0.1)


def test_crossed_kinds_have_no_negative_variance():
    one, both = alike(np.diag([1.0, 0.1]), 9.0), alike(np.diag([1.0, 0.3]), 99.0)
    found = one.crossed(one, both)
    np.testing.assert_allclose(found.covariance, np.diag([1.0, 0.0]), atol=1e-12)


def simulate(shape, seed=0, **options):
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(rng.normal(size=shape[1]) - rng.normal(size=(shape[0], 1))))
    return Responses((rng.random(shape) < chance[..., np.newaxis]).astype(int), **options)


@pytest.mark.parametrize("precision", [0.5, 20.0])
def test_shares_of_the_prior_are_those_of_the_information(precision):
    data = simulate((4, 12, 3))
    fit = fit_rasch(*data.binary_counts, prior=NormalPrior(0.0, precision))
    mode = Mode(fit.free, fit.steps, fit.unpack)
    found = mode.prior(unit_likelihoods.rasch(data))
    of_prior = np.diag(np.where(np.arange(len(fit.information)) < 4, precision, 0.0))
    steps = mode.directions
    np.testing.assert_allclose(found.posterior, steps[:, :4], atol=1e-5)
    variances, axes = np.linalg.eigh(steps[:, :4])
    own = axes.T @ steps @ (fit.information - of_prior) @ steps.T @ axes
    np.testing.assert_allclose(axes.T @ found.own @ axes, np.diag(np.diag(own)), atol=1e-5)
    share = 1.0 - np.diag(own) / variances
    expected = np.diag(share**2 * variances)
    np.testing.assert_allclose(axes.T @ found.left_open @ axes, expected, atol=1e-5)


def test_questions_take_their_parameters_with_them():
    # An easier question moves the level of the difficulties, to which abilities are relative.
    data = simulate((4, 30, 20))
    fit = fit_rasch(*data.binary_counts, prior=NormalPrior(0.0, 1e-6))
    mode = Mode(fit.free, fit.steps, fit.unpack)
    found = variation_at(mode, unit_likelihoods.rasch(data), "question")
    level = np.full(4, 0.25)
    spread = np.var(fit.parameters["difficulty"], ddof=1) / 30
    assert level @ found.covariance @ level == pytest.approx(29 / 27 * spread, rel=0.15)


def test_cells_with_one_trial_have_the_noise_of_the_others():
    outcomes = simulate((4, 12, 3)).outcomes.copy()
    outcomes[0, :6, 1:] = -1
    data = Responses(outcomes, paired=False)
    fit = fit_rasch(*data.binary_counts, prior=NormalPrior(0.0, 1.0))
    mode = Mode(fit.free, fit.steps, fit.unpack)
    model = unit_likelihoods.rasch(data)
    right, trials = data.binary_counts
    noise = right * (trials - right) / np.maximum(trials - 1, 1)
    # Six cells with one trial hide the noise of six of the 24 answers of system 0.
    factor = np.sqrt([24 / 18, 1.0, 1.0, 1.0])
    freedom = np.maximum(trials - 1, 0).sum()
    expected = (
        factor[:, np.newaxis] * model.slopes(mode.moves).products(noise[..., np.newaxis]) * factor
    )
    found = variation_at(mode, model, "trial")
    assert found.freedom == freedom
    np.testing.assert_allclose(found.covariance, freedom / (freedom - 2) * expected, rtol=1e-9)


def test_scores_that_are_means_over_questions_vary_with_their_terms():
    data = simulate((4, 30, 20))
    fit = fit_rasch(*data.binary_counts, prior=NormalPrior(0.0, 1.0))
    mode = Mode(fit.free, fit.steps, fit.unpack)
    terms = 1e6 * np.random.default_rng(0).normal(size=(30, 4)) / 30
    model = replace(unit_likelihoods.rasch(data), mean_of=lambda _: terms)
    found = variation_at(mode, model, "question").covariance
    expected = 29 / 27 * 30 * np.cov(terms.T)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("method", "n_last"), [("rasch", 2), ("rasch", 1), ("bradley_terry_luce", 1)]
)
def test_a_system_of_few_trials_does_not_widen_all_intervals(method, n_last):
    outcomes = simulate((4, 3, 40)).outcomes.copy()
    outcomes[3, :, n_last:] = -1
    calibrated, posterior = (
        draw_scores(
            Responses(outcomes),
            method,
            backend="map",
            target="benchmark",
            calibration=calibration,
            random_seed=1,
        )
        for calibration in ("sandwich", "none")
    )
    np.testing.assert_allclose(calibrated.std(axis=(0, 1)), posterior.std(axis=(0, 1)), rtol=0.2)


def test_questions_of_one_trial_hide_their_share_of_the_answers():
    outcomes = simulate((3, 8, 10)).outcomes.copy()
    outcomes[:, 6:, 1:] = -1
    outcomes[0, 0, 1:] = -1
    # Cells of one trial: two of each system, and a third of the first.
    by_event = widening_for_single_answers(Responses(outcomes), events=True)
    np.testing.assert_allclose(by_event**2, [53 / 51, 62 / 60, 62 / 60])
    by_cell = widening_for_single_answers(Responses(outcomes))
    np.testing.assert_allclose(by_cell**2, [53 / 50, 62 / 60, 62 / 60])


@pytest.mark.parametrize("method", ["rasch", "bradley_terry_luce"])
def test_a_system_of_fewer_runs_varies_as_the_others(method):
    rng = np.random.default_rng(0)
    ability = rng.normal(0.0, 0.8, (4, 1, 30))
    outcomes = (rng.random((4, 40, 30)) < 1 / (1 + np.exp(-ability))).astype(int)
    outcomes[3, :, 4:] = -1
    outcomes[3, :, 1:4] = outcomes[3, :, :1]  # alike, so that they show no variation

    def spread(**options):
        drawn = draw_scores(
            Responses(outcomes), method, target="benchmark", random_seed=1, draws=250, **options
        )
        return drawn.std(axis=(0, 1))

    by_runs = spread(unit="run") / spread(backend="map", calibration="none")
    assert by_runs[:3].min() > 1.5
    assert by_runs[3] > 0.7 * by_runs[:3].mean()
