"""Rasch, 2PL and 3PL kernels against closed forms, exact ties and simulated truths."""

import json
from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from bayesrank.inference.fits import newton
from bayesrank.inference.fits.item_likelihoods import Guessing
from bayesrank.inference.fits.item_models import fit_pooled_items, fit_rasch, rasch_items
from bayesrank.inference.fits.pairs import bradley_terry, fit_pairs
from bayesrank.inference.fits.published_irt import fit_published_items, published_items
from bayesrank.priors import NormalPrior
from bayesrank.results.ranks import rank_scores

KINDS = {
    "irt_2pl": {},
    "irt_3pl": {"guessing": Guessing(None)},
    "irt_3pl_fixed": {"guessing": Guessing(0.1)},
}
FITS = {"rasch": fit_rasch} | {
    name: partial(fit_published_items, **options) for name, options in KINDS.items()
}


def problem_of(name, correct, trials, **options):
    if name == "rasch":
        return rasch_items(correct, trials, **options)[0]
    return published_items(correct, trials, **KINDS[name], **options)[0]


def simulated_counts(seed, shape=(20, 30), n_trials=80, guess=0.0):
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=shape[0]), rng.normal(size=shape[1])
    chance = guess + (1.0 - guess) * expit(ability[:, None] - difficulty)
    return ability, rng.binomial(n_trials, chance).astype(float), np.full(shape, float(n_trials))


def central_differences(function, point, step=1e-5):
    shifts = step * np.eye(point.shape[-1])
    return np.stack(
        [(function(point + shift) - function(point - shift)) / (2.0 * step) for shift in shifts],
        axis=-1,
    )


def test_two_systems_and_two_questions_have_the_closed_form():
    # The counts fit exactly: logit p = theta - b is additive in this table.
    logit = np.array([[0.7, -0.3], [1.5, 0.5]])
    fit = fit_rasch(expit(logit), np.ones((2, 2)))
    np.testing.assert_allclose(fit.score, [0.2, 1.0], atol=1e-12)
    np.testing.assert_allclose(fit.parameters["difficulty"], [-0.5, 0.5], atol=1e-12)


def test_rasch_is_bradley_terry_between_systems_and_questions():
    _, correct, trials = simulated_counts(3, (4, 5), 9)
    wins = np.zeros((9, 9))
    wins[:4, 4:], wins[4:, :4] = correct, (trials - correct).T
    strength = fit_pairs(bradley_terry(), wins).score
    fit = fit_rasch(correct, trials)
    np.testing.assert_allclose(fit.score, strength[:4] - strength[4:].mean(), atol=1e-12)
    np.testing.assert_allclose(
        fit.parameters["difficulty"], strength[4:] - strength[4:].mean(), atol=1e-12
    )


@pytest.mark.parametrize("precision", [0.0, 1.0], ids=["mle", "map"])
def test_rasch_orders_by_total_score_with_exact_ties(shared, precision):
    oracle = json.loads((shared / "oracle" / "exact.json").read_text())
    compared = 0
    for case in oracle:
        with np.load(shared / "oracle" / "cases" / f"{case}.npz") as stored:
            shape = tuple(stored["shape"])
            outcomes = np.unpackbits(stored["R"])[: np.prod(shape)].reshape(shape)
        correct = outcomes.sum(axis=2).astype(float)
        fit = fit_rasch(
            correct, np.full(correct.shape, shape[2]), prior=NormalPrior(0.0, precision)
        )
        if not fit.converged:
            continue
        compared += 1
        ranks = rank_scores(correct.sum(axis=1))
        np.testing.assert_array_equal(rank_scores(fit.score), ranks, err_msg=case)
    assert compared >= (50 if precision == 0.0 else len(oracle))


@pytest.mark.parametrize("method", ["rasch", "rasch_map"])
def test_rasch_agrees_with_the_reference_to_its_accuracy(shared, method):
    precision = 1.0 if method == "rasch_map" else 0.0
    for case in ("rasch_6x12x5_s1", "rasch_20x30x80_s1", "rasch_20x30x80_s2"):
        folder = shared / "oracle" / "cases"
        expected = json.loads((folder / f"{case}.json").read_text())["results"][method]["scores"]
        with np.load(folder / f"{case}.npz") as stored:
            shape = tuple(stored["shape"])
            outcomes = np.unpackbits(stored["R"])[: np.prod(shape)].reshape(shape)
        correct = outcomes.sum(axis=2).astype(float)
        fit = fit_rasch(
            correct, np.full(correct.shape, shape[2]), prior=NormalPrior(0.0, precision)
        )
        np.testing.assert_allclose(fit.score, expected, atol=1e-5)


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("precision", [0.0, 0.7])
def test_item_gradients_match_finite_differences(name, precision):
    _, correct, trials = simulated_counts(1, (5, 4), 7)
    options = {"prior": NormalPrior(0.3, precision)}
    problem = problem_of(name, correct, trials, **options)
    p = 5 + 4 * {"rasch": 1, "irt_2pl": 2, "irt_3pl": 3, "irt_3pl_fixed": 2}[name]
    point = np.random.default_rng(2).normal(size=(1, p))
    held = problem.held_rows(point)[0, :, 0]
    numeric = central_differences(problem.value, point)
    numeric -= (numeric @ held)[:, np.newaxis] * held / (held @ held)
    np.testing.assert_allclose(problem.gradient(point), numeric, atol=1e-6)
    # The information is that of the Lagrangian of the constraint, which is linear for Rasch.
    slope = partial(central_differences, problem.value, step=1e-4)
    numeric = central_differences(slope, point, step=1e-4)
    if name != "rasch":
        multiplier = precision * (point[:, :5] - 0.3).sum()
        numeric -= multiplier * central_differences(lambda x: problem.held_rows(x)[..., 0], point)
    # Second differences are rounded by 1e-16 of the value over the square of the step.
    np.testing.assert_allclose(-problem.information(point), numeric, atol=1e-5)


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("precision", [0.0, 1.0], ids=["mle", "map"])
def test_batched_item_fits_equal_looped_ones(name, precision):
    _, correct, trials = simulated_counts(4, (6, 8), 20)
    weights = np.random.default_rng(5).integers(0, 4, size=(2, 2, 8)).astype(float)
    weights[0, 0] = 1.0
    right, asked = correct * weights[..., None, :], trials * weights[..., None, :]
    together = FITS[name](right, asked, prior=NormalPrior(0.0, precision))
    assert together.score.shape == (2, 2, 6)
    assert together.converged.all()
    for index in np.ndindex(2, 2):
        alone = FITS[name](right[index], asked[index], prior=NormalPrior(0.0, precision))
        np.testing.assert_allclose(together.score[index], alone.score, atol=1e-10)
        np.testing.assert_allclose(together.loglik[index], alone.loglik, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "precision"), [("irt_2pl", 0.0), ("irt_2pl", 1.0), ("irt_3pl", 1.0)]
)
def test_hard_and_easy_resamples_climb_side_by_side(name, precision, monkeypatch):
    # Answers that do not follow the model take many damped steps, in numbers of their own; the
    # batch does not fit into one piece.
    monkeypatch.setattr(newton, "CACHE_CELLS", 13 * 300)
    rng = np.random.default_rng(3)
    trials = np.full((10, 30), 8.0)
    chance = expit(rng.normal(size=(7, 10, 1)) - rng.normal(size=(7, 1, 30)))
    correct = rng.binomial(8, rng.beta(5.0 * chance, 5.0 * (1.0 - chance))).astype(float)
    correct[3] = 4.0
    tiled = np.concatenate([correct] * 3)
    together = FITS[name](tiled, trials, prior=NormalPrior(0.0, precision))
    assert np.ptp(together.iterations) > 5
    for row in range(7):
        alone = FITS[name](correct[row], trials, prior=NormalPrior(0.0, precision))
        assert abs(together.iterations[row] - alone.iterations) <= 2  # rounding decides the last
        for same in (row, row + 7 * 2):
            np.testing.assert_allclose(together.score[same], alone.score, atol=1e-7)


@pytest.mark.parametrize("name", FITS)
def test_identical_systems_tie_bit_for_bit(name):
    _, correct, trials = simulated_counts(7, (6, 8), 20)
    correct[4] = correct[1]
    for precision in (0.0, 1.0):
        score = FITS[name](correct, trials, prior=NormalPrior(0.0, precision)).score
        assert score[4] == score[1]


@pytest.mark.parametrize("name", FITS)
def test_relabelling_permutes_abilities(name):
    _, correct, trials = simulated_counts(8, (6, 8), 20)
    order = np.array([3, 0, 5, 1, 4, 2])
    fit = FITS[name](correct, trials, prior=NormalPrior(0.0, 1.0))
    moved = FITS[name](correct[order], trials, prior=NormalPrior(0.0, 1.0))
    np.testing.assert_allclose(moved.score, fit.score[order], atol=1e-10)


@pytest.mark.parametrize("name", FITS)
def test_missing_cells_are_no_responses(name):
    _, correct, trials = simulated_counts(9, (5, 6), 20)
    trials[1, 2] = trials[3, 0] = correct[1, 2] = correct[3, 0] = 0.0
    fit = FITS[name](correct, trials, prior=NormalPrior(0.0, 1.0))
    assert fit.converged
    problem = problem_of(name, correct, trials, prior=NormalPrior(0.0, 1.0))
    np.testing.assert_allclose(problem.gradient(fit.free[np.newaxis]), 0.0, atol=1e-7)


@pytest.mark.parametrize("name", FITS)
def test_questions_that_all_answer_alike_are_left_out(name):
    _, correct, trials = simulated_counts(10, (5, 6), 20)
    more = np.concatenate([np.full((5, 1), 20.0), correct, np.zeros((5, 1))], axis=1)
    asked = np.full((5, 8), 20.0)
    fit, wide = FITS[name](correct, trials), FITS[name](more, asked)
    np.testing.assert_allclose(wide.score, fit.score, atol=1e-10)
    difficulty = wide.parameters["difficulty"]
    np.testing.assert_array_equal(difficulty[[0, -1]], [-np.inf, np.inf])
    np.testing.assert_allclose(difficulty[1:-1].mean(), 0.0, atol=1e-10)
    draws = wide.draw(3, np.random.default_rng(0))
    assert np.isfinite(draws["score"]).all()
    np.testing.assert_array_equal(draws["difficulty"][:, 0], -np.inf)


@pytest.mark.parametrize("name", FITS)
def test_a_perfect_system_has_no_estimate_but_a_mode(name):
    _, correct, trials = simulated_counts(12, (4, 6), 5)
    correct[2] = 5.0
    assert not FITS[name](correct, trials).converged
    fit = FITS[name](correct, trials, prior=NormalPrior(0.0, 1.0))
    assert fit.converged
    assert fit.score.argmax() == 2


@pytest.mark.parametrize("seed", range(10))
def test_simulated_truths_are_recovered(seed):
    ability, correct, trials = simulated_counts(seed)
    for name, fit in FITS.items():
        for precision in (0.0, 1.0):
            found = fit(correct, trials, prior=NormalPrior(0.0, precision))
            assert found.converged, (name, precision)
            if name in ("rasch", "irt_2pl"):
                assert np.corrcoef(found.score, ability)[0, 1] > 0.99
            else:
                ranks = rank_scores(found.score), rank_scores(ability)
                assert np.corrcoef(*ranks)[0, 1] > 0.98


def test_guessing_is_recovered():
    _, correct, trials = simulated_counts(13, (60, 20), 400, guess=0.25)
    fit = FITS["irt_3pl"](correct, trials)
    assert fit.converged
    assert np.median(fit.parameters["guessing"]) == pytest.approx(0.25, abs=0.03)


def test_systems_that_only_guess_tie_at_the_floor():
    _, correct, trials = simulated_counts(14, (8, 10), 400, guess=0.25)
    # Below the known guessing rate on every question, by different amounts.
    correct[2], correct[5] = 80.0, 90.0
    fit = fit_published_items(correct, trials, guessing=Guessing(0.25))
    assert fit.converged
    assert fit.score[2] == fit.score[5] == fit.score.min()
    # Half of the draws are there, the others where the likelihood is not much lower.
    low, level = fit.draw(400, np.random.default_rng(0))["score"][:, [2, 5]], fit.score[2]
    assert (low >= level).all()
    assert 0.4 < (low == level).mean() < 0.6
    # The lower of the two is the surer to be low.
    ends = np.quantile(low, 0.975, axis=0)
    assert ends[0] < ends[1] < np.sort(fit.score)[2]


@pytest.mark.parametrize("fit", [fit_rasch, fit_pooled_items], ids=["published", "pooled"])
def test_merging_like_questions_leaves_the_fit_as_it_is(fit):
    # Only a single table is merged.
    _, correct, trials = simulated_counts(19, (6, 40), 1)
    correct[:, 3], correct[:, 7] = 1.0, 0.0
    alone, twice = fit(correct, trials), fit(np.stack([correct, correct]), trials)
    np.testing.assert_allclose(alone.score, twice.score[1], atol=1e-11)
    for name, values in alone.parameters.items():
        np.testing.assert_allclose(values, twice.parameters[name][1], atol=1e-11)
    np.testing.assert_allclose(alone.loglik, twice.loglik[1], rtol=1e-13)
    np.testing.assert_allclose(alone.information, twice.information[1], atol=1e-10)


def test_2pl_with_strong_penalty_is_rasch():
    _, correct, trials = simulated_counts(15, (6, 8), 30)
    fit = fit_published_items(correct, trials, reg_discrimination=1e9)
    np.testing.assert_allclose(fit.score, fit_rasch(correct, trials).score, atol=1e-5)
    np.testing.assert_allclose(fit.parameters["discrimination"], 1.0, atol=1e-5)


def test_3pl_without_guessing_is_2pl():
    _, correct, trials = simulated_counts(16, (6, 8), 30)
    fit = fit_published_items(correct, trials, guessing=Guessing(0.0))
    np.testing.assert_allclose(fit.score, FITS["irt_2pl"](correct, trials).score, atol=1e-10)


def test_a_question_that_better_systems_miss_still_converges():
    _, correct, trials = simulated_counts(17, (10, 12), 50)
    correct[:, 0] = np.sort(correct[:, 0])[np.argsort(np.argsort(-correct[:, 1:].sum(axis=1)))]
    for name in ("irt_2pl", "irt_3pl"):
        for precision in (0.0, 1.0):
            assert FITS[name](correct, trials, prior=NormalPrior(0.0, precision)).converged


@pytest.mark.parametrize("name", FITS)
def test_item_draws_have_the_constrained_covariance(name):
    _, correct, trials = simulated_counts(19, (4, 5), 40, guess=0.2 if "3pl" in name else 0.0)
    options = {"prior": NormalPrior(0.0, 1.0 if name == "rasch" else 0.0)}
    fit = FITS[name](correct, trials, **options)
    draws = fit.draw(100_000, np.random.default_rng(1))["score"]
    p = fit.information.shape[-1]
    problem = problem_of(name, correct, trials, **options)
    held = problem.held_rows(fit.free[None])[0, :, 0]
    basis = np.linalg.qr(np.column_stack([held, np.eye(p)]))[0][:, 1:p]
    exact = basis @ np.linalg.inv(basis.T @ fit.information @ basis) @ basis.T
    if fit.unit is not None:
        slopes = slice(9, 14)
        unit = fit.unit.spread * fit.unit.way
        exact -= np.outer(unit, unit)
        # Only what moves the mean of log discriminations is gone.
        np.testing.assert_allclose(exact[slopes].sum(axis=0), 0.0, atol=1e-6 * exact.max())
        assert np.linalg.eigvalsh(exact)[0] > -1e-9 * exact.max()
    exact = exact[:4, :4]
    np.testing.assert_allclose(np.cov(draws.T), exact, atol=0.02 * exact.max())
    mean = draws.mean(axis=0)
    np.testing.assert_allclose(mean, fit.score, atol=0.02 * max(1.0, exact.max() ** 0.5))


@pytest.mark.parametrize("n_systems", [4, 12])
def test_an_open_unit_is_drawn_from_its_penalties(n_systems):
    _, correct, trials = simulated_counts(18, (n_systems, 8), 40)
    fit = FITS["irt_2pl"](correct, trials, prior=NormalPrior(0.0, 1.0))
    ability, log_slope = fit.score, fit.parameters["log_discrimination"]
    normal = np.random.default_rng(0).standard_normal(20_000)
    drawn = fit.unit.draw(normal, np.broadcast_to(ability, (len(normal), n_systems)))
    # The signed root of the deviance, which is least at the estimate.
    scaled = ability * np.exp(drawn)[:, None], log_slope - drawn[:, None]
    deviance = (scaled[0] ** 2).sum(axis=-1) + 0.02 * (scaled[1] ** 2).sum(axis=-1)
    least = (ability**2).sum() + 0.02 * (log_slope**2).sum()
    np.testing.assert_allclose(deviance - least, normal**2, atol=0.02)
    np.testing.assert_array_equal(
        np.sign(drawn[np.abs(normal) > 0.1]), np.sign(normal[np.abs(normal) > 0.1])
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda k, n: fit_published_items(k, n, reg_discrimination=0.0),
            "reg_discrimination must be",
        ),
        (
            lambda k, n: fit_published_items(k, n, guessing=Guessing(None), reg_guessing=0.0),
            "reg_guessing must be positive",
        ),
    ],
)
def test_impossible_item_options_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.ones((2, 2)), np.full((2, 2), 2.0))
