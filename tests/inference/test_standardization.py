"""Standardised accuracy: known values, the form of its intervals, what widens them."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import beta

from bayesrank import Responses, leaderboard, rank, superiority
from bayesrank.inference.backends.standardized import Spread, mid_p_quantile
from bayesrank.inference.fits.standardized import fit_standardized
from bayesrank.methods.accuracy import avg
from bayesrank.ranking import point_estimate

N_DRAWS = 4000


def tensor(seed: int, shape: tuple[int, int, int], missing: float = 0.0) -> Responses:
    """Return right and wrong answers of a Rasch model, with outcomes missing at random."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=shape[0]), rng.normal(size=shape[1])
    chance = 1.0 / (1.0 + np.exp(difficulty - ability[:, np.newaxis]))
    outcomes = (rng.random(shape) < chance[..., np.newaxis]).astype(int)
    absent = rng.random(shape) < missing
    absent[:, 0, 0] = False
    return Responses(np.where(absent, -1, outcomes), paired=False)


def drawn(data: Responses, target: str, unit: str = "trial") -> np.ndarray:
    normals = np.random.default_rng(1).standard_normal((N_DRAWS, len(data.systems)))
    return Spread(fit_standardized(data), target, unit).draw(normals)


@pytest.mark.parametrize("shape", [(2, 3, 1), (7, 31, 1), (5, 12, 4), (1, 6, 2), (30, 3, 2)])
def test_complete_data_score_by_the_observed_mean(shape):
    data = tensor(3, shape)
    assert np.allclose(point_estimate(data), avg(data.grades), rtol=0, atol=1e-12)


# Benchmarks with different numbers of trials: questions and their trials.
BENCHMARKS = ((slice(0, 60), 1), (slice(60, 80), 3), (slice(80, 90), 8))


def of_benchmarks(seed: int) -> tuple[Responses, np.ndarray]:
    """Return answers, and their chances, of systems whose abilities differ between benchmarks."""
    rng = np.random.default_rng(seed)
    outcomes, chance = np.full((5, 90, 8), -1), np.empty((5, 90))
    for questions, trials in BENCHMARKS:
        logit = rng.normal(size=(5, 1)) - rng.normal(size=chance[:, questions].shape[1])
        chance[:, questions] = 1.0 / (1.0 + np.exp(-logit))
        answers = rng.random((*logit.shape, trials)) < chance[:, questions, np.newaxis]
        outcomes[:, questions, :trials] = answers
    return Responses(outcomes, paired=False), chance


def test_trials_that_no_system_has_are_not_missing():
    data, _ = of_benchmarks(5)
    assert np.allclose(point_estimate(data), avg(data.grades), rtol=0, atol=1e-12)
    outcomes = np.where(np.arange(5)[:, np.newaxis, np.newaxis] == 4, -1, data.outcomes)
    outcomes[4, :60] = data.outcomes[4, :60]
    some = point_estimate(Responses(outcomes, paired=False))
    assert np.allclose(some[:4], avg(data.grades)[:4], rtol=0, atol=1e-12)
    assert some[4] != pytest.approx(avg(Responses(outcomes).grades)[4], abs=1e-3)  # filled


def test_a_system_with_fewer_runs_of_everything_lacks_none():
    data = tensor(3, (5, 20, 4))
    outcomes = data.outcomes.copy()
    outcomes[4, :, 1:], outcomes[3, :, 3:] = -1, -1
    assert (fit_standardized(Responses(outcomes, paired=False)).kept == 1.0).all()
    outcomes[4, :5] = -1
    kept = fit_standardized(Responses(outcomes, paired=False)).kept
    assert (kept[4] == np.where(np.arange(20) < 5, 0.0, 1.0)).all()
    assert (kept[:4] == 1.0).all()


def test_intervals_of_benchmarks_with_different_numbers_of_trials_hold_the_truth():
    held = []
    for seed in range(60):
        data, chance = of_benchmarks(seed)
        low, high = np.quantile(drawn(data, "benchmark"), (0.025, 0.975), axis=0)
        truth = chance.mean(axis=1)
        held.append((low <= truth) & (truth <= high))
    assert 0.91 < np.mean(held) < 0.98  # 300 intervals; before, 0.6


def test_equal_totals_tie_exactly_whatever_was_answered():
    outcomes = np.zeros((3, 9, 2), dtype=int)
    for system in range(3):
        outcomes[system, 3 * system : 3 * system + 3] = 1
    score = point_estimate(Responses(outcomes))
    assert score.tolist() == [score[0]] * 3


@pytest.mark.parametrize("seed", range(4))
def test_fitted_and_observed_grades_have_the_same_sum(seed):
    data = tensor(seed, (6, 25, 3), missing=0.3)
    fit = fit_standardized(data)
    trials = fit.grades.trials
    fitted = (trials * fit.chances.chance).sum(axis=1)
    assert np.allclose(fitted, fit.grades.totals.sum(axis=1), atol=1e-8)
    assert fit.converged


def test_scores_allow_for_the_difficulty_of_what_was_asked():
    # Everybody has the easy half right and the hard half wrong; the last system skipped the latter.
    outcomes = np.zeros((5, 20, 3), dtype=int)
    outcomes[:, :10] = 1
    outcomes[:, 9], outcomes[:, 10] = 0, 1
    outcomes[4, 10:] = -1
    score = point_estimate(Responses(outcomes))
    assert score[:4].tolist() == [0.5] * 4
    assert 0.45 < score[4] < 0.65
    assert avg(Responses(outcomes).grades)[4] == 0.9


def test_missing_attempts_say_nothing_for_a_system():
    wrong = np.zeros((2, 20, 1), dtype=int)
    wrong[1, 5:] = -1  # 15 errors and no right answer
    result = rank(Responses(wrong, systems=["answers", "crashes"]), random_seed=1)
    board = leaderboard(result).set_index("system")
    assert board["score"].tolist() == [0.0, 0.0]
    assert board.loc["crashes", "score_upper"] > board.loc["answers", "score_upper"]
    assert superiority(result).loc["crashes", "answers"] == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("n", [1, 5, 20, 130])
def test_a_system_that_is_always_right_has_the_interval_of_the_rule_of_three(n):
    data = Responses(np.ones((1, n, 1), dtype=int))
    draws = drawn(data, "population")[:, 0]
    assert draws.max() == 1.0
    assert np.quantile(draws, 0.025) == pytest.approx(0.05 ** (1.0 / n), abs=0.02)


@pytest.mark.parametrize(("share", "number"), [(0.3, 11.5), (0.02, 60.0), (0.9, 4.2)])
def test_mid_p_quantiles_solve_their_definition(share, number):
    right, wrong = share * number, (1 - share) * number
    for level in (0.025, 0.05, 0.5, 0.9, 0.975):

        def excess(x: float, level: float = level) -> float:
            cumulative = (beta.cdf(x, right, wrong + 1) + beta.cdf(x, right + 1, wrong)) / 2
            return cumulative - level

        found = mid_p_quantile(np.array([level]), share, number)[0]
        assert found == pytest.approx(brentq(excess, 1e-12, 1 - 1e-12), abs=1e-4)


@pytest.mark.parametrize("seed", range(60))
def test_every_interval_has_a_width_and_holds_its_estimate_inside_the_range(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 7, size=3))
    kind = seed % 4
    if kind == 0:  # worth from -1 to 2
        outcomes = rng.integers(0, 3, shape)
        options, low, high = {"weights": [-1.0, 0.0, 2.0]}, -1.0, 2.0
    elif kind == 1:
        outcomes, options, low, high = rng.random(shape).round(1), {}, 0.0, 1.0
        outcomes.flat[0] = 0.35
    elif kind == 2:  # nothing varies between trials
        outcomes = np.broadcast_to(rng.integers(0, 2, shape[:2])[..., np.newaxis], shape)
        options, low, high = {"weights": [0.0, 1.0]}, 0.0, 1.0
    else:
        outcomes = np.full(shape, int(rng.integers(0, 2)))
        options, low, high = {"weights": [0.0, 1.0]}, 0.0, 1.0
    outcomes = np.array(outcomes, dtype=float)
    outcomes[rng.random(shape) < 0.3] = np.nan
    outcomes[:, 0, 0] = 0.0
    if kind == 1:
        outcomes[0, 0, 0] = 0.35
    data = Responses(outcomes, paired=bool(seed % 2), **options)
    for target in ("benchmark", "population"):
        for unit in ("trial", "run"):
            fit = fit_standardized(data)
            draws = drawn(data, target, unit)
            lower, upper = np.quantile(draws, [0.025, 0.975], axis=0)
            assert (low <= draws).all()
            assert (draws <= high).all()
            assert (upper - lower > 0).all()
            assert ((lower <= fit.score + 1e-12) & (fit.score <= upper + 1e-12)).all()


def test_relabelling_moves_labels_and_nothing_else():
    data = tensor(5, (6, 14, 3), missing=0.25)
    order, questions = np.array([3, 0, 5, 1, 4, 2]), np.random.default_rng(0).permutation(14)
    moved = Responses(data.outcomes[order][:, questions], paired=False)
    assert np.allclose(point_estimate(moved), point_estimate(data)[order], atol=1e-10)
    for target in ("benchmark", "population"):
        spreads = [Spread(fit_standardized(one), target) for one in (data, moved)]
        expected = spreads[0].covariance[np.ix_(order, order)]
        assert np.allclose(spreads[1].covariance, expected, atol=1e-10)


def test_the_covariance_over_questions_of_complete_data_is_that_of_their_means():
    data = tensor(8, (4, 60, 1))
    means = data.grades
    found = Spread(fit_standardized(data), "population").covariance
    correlation = np.corrcoef(found)
    assert np.allclose(np.diag(found), means.var(axis=1, ddof=1) / 60, rtol=0.03)
    sd = np.sqrt(np.diag(found))
    assert np.allclose(found / np.outer(sd, sd), np.corrcoef(means), atol=0.02)
    assert correlation.shape == (4, 4)


def test_a_group_of_many_questions_varies_as_the_jackknife_says():
    groups = np.repeat(np.arange(21), [1] * 20 + [20])
    data = tensor(8, (4, 40, 1))
    data = Responses(data.outcomes, groups=[f"g{one}" for one in groups])
    found = Spread(fit_standardized(data), "population")._by_cluster
    left_out = np.stack([data.grades[:, groups != one].mean(axis=1) for one in range(21)])
    expected = 20 / 21 * 40**2 * 20 * np.cov(left_out, rowvar=False)
    np.testing.assert_allclose((len(found) - 1) * np.cov(found, rowvar=False), expected)


def test_questions_with_more_trials_move_what_is_fitted_on_the_others():
    # A quarter of the questions has 40 trials, on which systems deviate from the item model. The
    # others have one, and 39 of 40 parts of their grades are fitted.
    rng = np.random.default_rng(11)
    logit = rng.normal(size=(3, 1)) + rng.normal(size=48) + rng.normal(scale=0.7, size=(3, 48))
    outcomes = (rng.random((3, 48, 40)) < 1.0 / (1.0 + np.exp(-logit[..., np.newaxis]))).astype(int)
    outcomes[:, np.arange(48) % 4 > 0, 1:] = -1
    data = Responses(outcomes)
    each = [np.delete(outcomes, one, axis=1) for one in range(48)]
    left_out = np.stack([point_estimate(Responses(one), "standardized_accuracy") for one in each])
    expected = 47**2 / 48 * np.cov(left_out, rowvar=False)
    found = Spread(fit_standardized(data), "population").covariance
    for contrast in ([1, 0, 0], [1, -1, 0], [0, 1, -1], [1, 0, -1]):
        assert contrast @ found @ contrast == pytest.approx(
            contrast @ expected @ contrast, rel=0.25
        )


@pytest.mark.filterwarnings("ignore:2 questions")
def test_two_questions_on_which_systems_differ_alike_leave_their_difference_open():
    # Half a grade apart on both questions, of two trials each.
    data = Responses([[[1, 1], [0, 1]], [[1, 0], [0, 0]]])
    result = rank(data, target="population", random_seed=1)
    score = result["posterior"]["score"]
    assert (score[..., 0] - score[..., 1]).min() < 0.0
    better = superiority(result).iloc[0, 1]
    apart = superiority(rank(data, target="benchmark", random_seed=1)).iloc[0, 1]
    assert better == pytest.approx(apart, abs=0.15)


def test_the_variance_over_trials_is_that_within_cells():
    data = tensor(9, (3, 80, 6))
    within = data.outcomes.var(axis=2, ddof=1).mean(axis=1) / (80 * 6)
    found = np.diag(Spread(fit_standardized(data), "benchmark").covariance)
    assert np.allclose(found, within, rtol=0.1)


def test_runs_that_fail_together_widen_the_interval_by_unit_run():
    rng = np.random.default_rng(2)
    chance = np.where(rng.random((1, 1, 16)) < 0.25, 0.2, 0.8)
    outcomes = (rng.random((3, 40, 16)) < chance).astype(int)
    outcomes[1:] = rng.random((2, 40, 16)) < 0.6  # independent
    data = Responses(outcomes, paired=False)
    by_trial, by_run = (
        np.sqrt(np.diag(Spread(fit_standardized(data), "benchmark", unit).covariance))
        for unit in ("trial", "run")
    )
    means = outcomes[0].mean(axis=0)
    assert by_run[0] == pytest.approx(means.std(ddof=1) / 4.0, rel=0.05)
    assert by_run[0] > 2.0 * by_trial[0]
    assert (by_run[1:] < 1.7 * by_trial[1:]).all()


@pytest.mark.filterwarnings("ignore:2 questions")
@pytest.mark.parametrize(("target", "unit"), [("population", "run,question"), ("benchmark", "run")])
def test_two_runs_do_not_put_the_draws_at_the_ends_of_the_range(target, unit):
    data = Responses([[[0, 0], [0, 1]], [[1, 0], [1, 0]], [[1, 1], [1, 0]]])
    score = rank(data, target=target, unit=unit, random_seed=1)["posterior"]["score"]
    assert ((score < 1e-3) | (score > 1 - 1e-3)).mean(("chain", "draw")).max() < 0.2
    assert (score.max(("chain", "draw")) - score.min(("chain", "draw")) > 0.9).all()


def test_systems_with_the_same_answers_in_the_same_runs_vary_together():
    outcomes = tensor(4, (2, 30, 5)).outcomes
    outcomes = np.concatenate([outcomes, outcomes[:1]])
    paired, apart = (
        Spread(fit_standardized(Responses(outcomes, paired=paired)), "benchmark").covariance
        for paired in (True, False)
    )
    assert paired[0, 2] > 0.5 * paired[0, 0]
    assert apart[0, 2] == 0.0


@pytest.mark.parametrize("backend", ["map", "nuts"])
def test_other_back_ends_keep_their_centre_and_have_draws_inside_the_range(backend):
    data = tensor(6, (4, 15, 2), missing=0.2)
    options = {"draws": 500} if backend == "nuts" else {}
    result = rank(data, backend=backend, random_seed=1, **options)
    score = result["posterior"]["score"]
    assert result.attrs["calibration"] == "sandwich"
    assert ((score > 0) & (score < 1)).all()
    # The prior on abilities is wide.
    assert np.allclose(result["ranking"]["score"], point_estimate(data), atol=0.05)
    assert np.allclose(score.mean(("chain", "draw")), result["ranking"]["score"], atol=0.03)


def test_the_model_alone_is_the_posterior_of_independent_answers():
    data = tensor(7, (3, 50, 4))
    result = rank(data, calibration="none", random_seed=1)
    expected = np.sqrt((data.grades * (1 - data.grades)).mean(axis=1) / (50 * 4))
    sd = result["posterior"]["score"].std(("chain", "draw"))
    assert result.attrs["calibration"] == "none"
    assert (sd > 0.9 * expected).all()


def test_a_lone_system_whose_trials_agree_has_one_cell_of_noise():
    outcomes = np.zeros((1, 6, 3), dtype=int)
    outcomes[0, :3] = 1
    spread = Spread(fit_standardized(Responses(outcomes)), "benchmark")
    np.testing.assert_allclose(spread.dispersion[0], 1 / 7)
    # With many others whose trials agree, that they do is known better.
    crowd = Spread(fit_standardized(Responses(np.repeat(outcomes, 20, axis=0))), "benchmark")
    assert (crowd.dispersion[0] < 1 / 60).all()


def test_single_grades_that_a_fit_reproduces_tell_nothing_of_their_noise():
    one = Responses(np.array([3.0, 0.0, np.nan, 0.76, 0.36, np.nan, -0.28])[:, None], scale=(-1, 3))
    seen = one.select(systems=[one.systems[place] for place in (0, 1, 3, 4, 6)])
    np.testing.assert_array_equal(Spread(fit_standardized(seen), "benchmark").dispersion[0], 1.0)
    # Nor does the only grade of one system among others with many.
    grades = np.random.default_rng(0).uniform(size=(5, 30))
    grades[0, 1:] = np.nan
    found = Spread(fit_standardized(Responses(grades)), "benchmark").dispersion[0]
    others = Spread(fit_standardized(Responses(grades[1:])), "benchmark").dispersion[0]
    assert found[0] == pytest.approx(others.mean(), rel=0.1)
