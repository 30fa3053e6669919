"""Growth and state-space kernels against Rasch, a general optimiser and published values."""

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize, root

from bayesrank.inference.fits.chains import Chains
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.growth import fit_growth, growth_problem
from bayesrank.inference.fits.rasch import fit_rasch
from bayesrank.inference.fits.state_space import fit_state_space, state_space_problem
from bayesrank.results.ranks import rank_scores

# Finite differences stop the peer of the oracle about this far from its optimum, in logits and,
# for nearly perfect systems, whose objective is flat, as a share of the score.
PEER_TOLERANCE, PEER_SHARE = 1e-3, 2e-4
FITS: dict[str, Callable[..., Fit]] = {"growth": fit_growth, "state_space": fit_state_space}
PROBLEMS = {"growth": growth_problem, "state_space": state_space_problem}
VARIANTS = sorted(FITS)
PRIOR = {"ability_mean": np.array([0.3, -0.2, 0.0, 0.5]), "ability_precision": 0.8}
UNEVEN = [0.0, 1.0, 4.0, 5.0, 9.0]
OPTIONS = {
    "plain": {},
    "uneven times": {"time_points": UNEVEN},
    "prior": PRIOR,
    "weights": {"weights": np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])},
}


def simulate(shape, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    n_systems, n_questions, n_trials = shape
    ability = rng.normal(size=(n_systems, 1, 1)) + np.linspace(0, 1, n_trials)
    difficulty = rng.normal(size=(1, n_questions, 1))
    outcomes = (rng.random(shape) < 1.0 / (1.0 + np.exp(difficulty - ability))).astype(np.int8)
    outcomes[rng.random(shape) < missing] = -1
    return outcomes


COMPLETE = simulate((4, 6, 5), seed=1)
RAGGED = simulate((4, 6, 5), seed=29, missing=0.3)
DATA = {"complete": COMPLETE, "ragged": RAGGED}


def central_differences(function, point, step=1e-5):
    columns = []
    for coordinate in range(point.shape[-1]):
        shift = np.zeros(point.shape[-1])
        shift[coordinate] = step
        columns.append((function(point + shift) - function(point - shift)) / (2.0 * step))
    return np.stack(columns, axis=-1)


def objective_of(
    variant,
    free,
    outcomes,
    *,
    weights=None,
    time_points=None,
    ability_mean=0.0,
    ability_precision=0.0,
    slope_reg=0.01,
    state_reg=1.0,
):
    """Return the penalised log-likelihood and its gradient, written as in the definition."""
    n_systems, n_questions, n_trials = outcomes.shape
    times = np.arange(n_trials) if time_points is None else np.array(time_points)
    times = (times - times[0]) / (times[-1] - times[0])
    n_states, slope = free.size - (n_questions - 1), np.zeros(n_systems)
    difficulty = np.append(free[n_states:], 0.0)
    shares = np.ones(n_questions) if weights is None else weights
    difficulty[-1] = -(difficulty * shares).sum() / shares[-1]
    if variant == "growth":
        ability, slope = free[:n_states].reshape(2, n_systems)
        states = ability[:, None] + slope[:, None] * (times - times.mean())
        penalty = slope_reg * (slope**2).sum()
    else:
        states = free[:n_states].reshape(n_systems, n_trials)
        penalty = state_reg * (np.diff(states) ** 2 / np.diff(times)).sum()
        penalty += 0.001 * (states[:, 0] ** 2).sum()
    gaps = states[:, 0] - ability_mean
    penalty += 0.5 * ability_precision * (gaps**2).sum()
    x = states[:, None, :] - difficulty[None, :, None]
    seen = (outcomes >= 0) * shares[None, :, None]
    loglik = (seen * (outcomes * x - np.logaddexp(0.0, x))).sum()
    pull = seen * (outcomes - 1.0 / (1.0 + np.exp(-x)))
    for_states = pull.sum(axis=1)
    for_states[:, 0] -= ability_precision * gaps
    if variant == "growth":
        for_slope = for_states @ (times - times.mean()) - 2.0 * slope_reg * slope
        for_lines = np.concatenate([for_states.sum(axis=1), for_slope])
    else:
        steps = 2.0 * state_reg * np.diff(states) / np.diff(times)
        for_states[:, :-1] += steps
        for_states[:, 1:] -= steps
        for_states[:, 0] -= 0.002 * states[:, 0]
        for_lines = for_states.ravel()
    for_difficulty = -pull.sum(axis=(0, 2))
    tied = for_difficulty[:-1] - for_difficulty[-1] * shares[:-1] / shares[-1]
    return loglik - penalty, np.concatenate([for_lines, tied])


def optimise(variant, outcomes, **options):
    n_systems, n_questions, n_trials = outcomes.shape
    n_states = n_systems * (2 if variant == "growth" else n_trials)

    def negative(free):
        value, gradient = objective_of(variant, free, outcomes, **options)
        return -value, -gradient

    start = np.zeros(n_states + n_questions - 1)
    found = minimize(negative, start, jac=True, method="BFGS", options={"gtol": 1e-10})
    # How near BFGS comes depends on how the processor rounds; the zero of the gradient does not.
    zero = root(lambda free: negative(free)[1], found.x, tol=1e-12)
    assert np.abs(zero.fun).max() < 1e-10
    return zero.x, n_states


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_fit_is_where_a_general_optimiser_ends(variant, data, options):
    outcomes = DATA[data]
    fit = FITS[variant](outcomes, **OPTIONS[options])
    free, n_states = optimise(variant, outcomes, **OPTIONS[options])
    assert fit.converged
    # The gradient is below 1e-10 there, and the least curvature, that of the penalty of a slope, is
    # 0.02.
    np.testing.assert_allclose(fit.free[:n_states], free[:n_states], atol=1e-8)
    np.testing.assert_allclose(fit.parameters["difficulty"][:-1], free[n_states:], atol=1e-8)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("variant", VARIANTS)
def test_derivatives_agree_with_finite_differences(variant, data, options):
    problem = PROBLEMS[variant](DATA[data], **OPTIONS[options])
    n_systems, n_trials, n_questions = problem.counts.shape
    p = n_systems * (2 if variant == "growth" else n_trials) + n_questions
    point = np.random.default_rng(3).normal(size=(1, p))
    gradient = problem.gradient(point)
    np.testing.assert_allclose(gradient, central_differences(problem.value, point), atol=2e-6)
    hessian = -central_differences(problem.gradient, point)
    np.testing.assert_allclose(problem.information(point), hessian, atol=2e-6)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_newton_step_solves_the_constrained_system(variant, data):
    problem = PROBLEMS[variant](DATA[data], **PRIOR)
    n_systems, n_trials, n_questions = problem.counts.shape
    p = n_systems * (2 if variant == "growth" else n_trials) + n_questions
    point = np.random.default_rng(5).normal(size=(1, p))
    held = problem.constraint(point)[0]
    bordered = np.block([[problem.information(point)[0], held[:, None]], [held, 0.0]])
    right = np.append(problem.gradient(point)[0], 0.0)
    expected = np.linalg.solve(bordered, right)[:-1]
    np.testing.assert_allclose(problem.newton(point)[0], expected, atol=1e-11)


@pytest.mark.parametrize("n_questions", [1, 3, 20])
def test_chains_are_solved_from_either_side(n_questions):
    rng = np.random.default_rng(1)
    chains = Chains(
        states=rng.uniform(4.0, 6.0, size=(2, 3, 4)),
        links=np.array([1.0, 2.0, 0.5]),
        border=rng.uniform(0.0, 0.2, size=(2, 3, 4, n_questions)),
        questions=rng.uniform(6.0, 8.0, size=(2, n_questions)),
        weights=rng.uniform(0.5, 1.5, size=(2, n_questions)),
        held=rng.uniform(0.5, 1.5, size=(2, n_questions)),
    )
    f, g = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, n_questions))
    dense = chains.dense()
    states, questions = chains.solve(f, g)
    for row in range(2):
        held = np.concatenate([chains.held[row], np.zeros(12)])
        bordered = np.block([[dense[row], held[:, None]], [held, 0.0]])
        right = np.concatenate([g[row], f[row].T.ravel(), [0.0]])
        expected = np.linalg.solve(bordered, right)
        np.testing.assert_allclose(questions[row], expected[:n_questions], atol=1e-13)
        np.testing.assert_allclose(states[row].T.ravel(), expected[n_questions:-1], atol=1e-13)


def test_growth_with_one_trial_is_the_rasch_model():
    outcomes = simulate((12, 15, 1), seed=4)
    fit = fit_growth(outcomes)
    rasch = fit_rasch(outcomes[..., 0], 1.0)
    assert fit.converged
    np.testing.assert_allclose(fit.score, rasch.score, atol=1e-11)
    np.testing.assert_allclose(
        fit.parameters["difficulty"], rasch.parameters["difficulty"], atol=1e-11
    )
    np.testing.assert_array_equal(fit.parameters["slope"], 0.0)
    np.testing.assert_allclose(fit.loglik, rasch.loglik, rtol=1e-13)


def test_a_walk_of_one_trial_is_the_rasch_model_with_its_anchor_as_prior():
    outcomes = simulate((12, 15, 1), seed=4)
    fit = fit_state_space(outcomes, anchor_reg=0.3, ability_precision=0.2)
    rasch = fit_rasch(outcomes[..., 0], 1.0, ability_precision=0.8)
    np.testing.assert_allclose(fit.score, rasch.score, atol=1e-11)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stiff_penalty_leaves_the_rasch_model(variant):
    option = {"slope_reg": 1e9} if variant == "growth" else {"state_reg": 1e7, "anchor_reg": 0.0}
    fit = FITS[variant](COMPLETE, **option)
    rasch = fit_rasch(COMPLETE.sum(axis=-1), 5.0)
    np.testing.assert_allclose(fit.score, rasch.score, atol=1e-6)


def test_nearly_free_slopes_over_two_trials_are_a_rasch_model_of_every_run():
    outcomes = simulate((6, 15, 2), seed=12)
    rasch = fit_rasch(outcomes.transpose(0, 2, 1).reshape(12, 15), 1.0)
    assert rasch.converged
    first = fit_growth(outcomes, slope_reg=1e-12, score_target="initial")
    last = fit_growth(outcomes, slope_reg=1e-12, score_target="final")
    np.testing.assert_allclose(first.score, rasch.score[::2], atol=1e-10)
    np.testing.assert_allclose(last.score, rasch.score[1::2], atol=1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
def test_score_targets_are_read_off_the_path(variant):
    fits = {
        target: FITS[variant](COMPLETE, time_points=UNEVEN, score_target=target)
        for target in ("initial", "final", "mean", "gain")
    }
    named = fits["final"].parameters
    if variant == "growth":
        times = np.array(UNEVEN) / 9.0
        path = named["ability"][:, None] + named["slope"][:, None] * (times - times.mean())
    else:
        path = named["trajectory"]
    np.testing.assert_allclose(fits["initial"].score, path[:, 0], atol=1e-14)
    np.testing.assert_allclose(fits["final"].score, path[:, -1], atol=1e-14)
    np.testing.assert_allclose(fits["mean"].score, path.mean(axis=1), atol=1e-14)
    np.testing.assert_allclose(fits["gain"].score, path[:, -1] - path[:, 0], atol=1e-14)
    np.testing.assert_allclose(named["ability"], path.mean(axis=1), atol=1e-14)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_repeat_questions(variant, data):
    outcomes, times = DATA[data], np.array([1, 0, 3, 2, 1, 1])
    weighted = FITS[variant](outcomes, times)
    repeated = FITS[variant](np.repeat(outcomes, times, axis=1))
    np.testing.assert_allclose(weighted.score, repeated.score, atol=1e-11)
    np.testing.assert_allclose(weighted.loglik, repeated.loglik, rtol=1e-12)
    assert np.isnan(weighted.parameters["difficulty"][1])
    np.testing.assert_allclose(
        np.repeat(weighted.parameters["difficulty"], times),
        repeated.parameters["difficulty"],
        atol=1e-11,
    )


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_batch_of_resamples_has_the_fits_of_its_rows(variant, data):
    weights = np.random.default_rng(8).integers(0, 3, size=(2, 3, 6)).astype(float)
    weights[..., 0] = 1.0
    batch = FITS[variant](DATA[data], weights, **PRIOR)
    assert batch.score.shape == (2, 3, 4)
    assert batch.converged.all()
    assert batch.information.shape == (2, 3, batch.free.shape[-1], batch.free.shape[-1])
    for row in np.ndindex(2, 3):
        one = FITS[variant](DATA[data], weights[row], **PRIOR)
        np.testing.assert_allclose(batch.score[row], one.score, atol=1e-11)
        np.testing.assert_allclose(batch.loglik[row], one.loglik, rtol=1e-11)
        for name, values in one.parameters.items():
            np.testing.assert_allclose(batch.parameters[name][row], values, atol=1e-11)


@pytest.mark.parametrize("variant", VARIANTS)
def test_data_sets_can_be_stacked(variant):
    stack = np.stack([RAGGED, COMPLETE])
    batch = FITS[variant](stack)
    for row, outcomes in enumerate(stack):
        np.testing.assert_allclose(batch.score[row], FITS[variant](outcomes).score, atol=1e-11)


@pytest.mark.parametrize("variant", VARIANTS)
def test_many_questions_with_gaps_are_as_good_as_few(variant):
    # More questions than states: the other side is eliminated.
    outcomes = simulate((3, 40, 3), seed=6, missing=0.1)
    kept = (outcomes == 1).any(axis=(0, 2)) & (outcomes == 0).any(axis=(0, 2))
    fit = FITS[variant](outcomes)
    free, n_states = optimise(variant, outcomes[:, kept])
    assert fit.converged
    np.testing.assert_allclose(fit.free[:n_states], free[:n_states], atol=1e-8)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_trial_that_a_system_missed_can_be_left_out_of_its_path(variant):
    outcomes = COMPLETE.copy()
    outcomes[2, :, 3] = -1
    fit = FITS[variant](outcomes)
    free, n_states = optimise(variant, outcomes)
    np.testing.assert_allclose(fit.free[:n_states], free[:n_states], atol=1e-8)


@pytest.mark.parametrize("variant", VARIANTS)
def test_questions_that_all_answer_alike_are_left_out(variant):
    extremes = np.stack([np.ones((4, 5)), np.zeros((4, 5))], axis=1)
    outcomes = np.concatenate([extremes, COMPLETE], axis=1).astype(np.int8)
    fit, without = FITS[variant](outcomes), FITS[variant](COMPLETE)
    assert fit.converged
    np.testing.assert_allclose(fit.score, without.score, atol=1e-12)
    np.testing.assert_array_equal(fit.parameters["difficulty"][:2], [-np.inf, np.inf])
    np.testing.assert_allclose(fit.parameters["difficulty"][2:].mean(), 0.0, atol=1e-13)


def test_a_perfect_system_has_a_finite_ability_with_an_anchor_or_a_prior_only():
    outcomes = COMPLETE.copy()
    outcomes[1] = 1
    assert not fit_growth(outcomes).converged
    assert fit_growth(outcomes, ability_precision=1.0).converged
    assert fit_state_space(outcomes).converged
    assert not fit_state_space(outcomes, anchor_reg=0.0).converged
    assert fit_state_space(outcomes, anchor_reg=0.0, ability_precision=1.0).converged


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_system_without_responses_stays_at_the_mean_of_its_prior(variant):
    outcomes = COMPLETE.copy()
    outcomes[3] = -1
    option = {"anchor_reg": 0.0} if variant == "state_space" else {}
    fit = FITS[variant](outcomes, **PRIOR, **option)
    assert fit.converged
    np.testing.assert_allclose(fit.parameters["ability"][3], 0.5, atol=1e-9)
    assert not FITS[variant](outcomes, **option).converged


@pytest.mark.parametrize("variant", VARIANTS)
def test_data_that_tell_nothing_do_not_converge_without_a_prior(variant):
    option = {"anchor_reg": 0.0} if variant == "state_space" else {}
    fit = FITS[variant](np.ones((3, 2, 4), dtype=np.int8), **option)
    assert not fit.converged
    assert np.isfinite(fit.score).all()


@pytest.mark.parametrize("target", ["final", "mean", "gain"])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("variant", VARIANTS)
def test_systems_with_the_same_data_tie_exactly(variant, data, target):
    outcomes = DATA[data][[0, 1, 2, 1, 3, 0]]
    score = FITS[variant](outcomes, score_target=target).score
    assert score[1] == score[3]
    assert score[0] == score[5]


def test_systems_with_the_same_sums_in_time_tie_exactly():
    # Which questions were right does not matter where all were asked in every trial.
    outcomes = np.concatenate([COMPLETE, COMPLETE[:1, [3, 4, 5, 0, 1, 2]]])
    for variant in VARIANTS:
        score = FITS[variant](outcomes).score
        assert score[0] == score[4]


@pytest.mark.parametrize("variant", VARIANTS)
def test_relabelling_permutes_the_scores(variant):
    order, questions = np.array([2, 0, 3, 1]), np.array([5, 2, 0, 1, 4, 3])
    fit = FITS[variant](RAGGED)
    other = FITS[variant](RAGGED[order][:, questions])
    np.testing.assert_allclose(other.score, fit.score[order], atol=1e-12)
    np.testing.assert_allclose(
        other.parameters["difficulty"], fit.parameters["difficulty"][questions], atol=1e-12
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_times_are_scaled_to_the_unit_interval(variant):
    fit = FITS[variant](COMPLETE, time_points=UNEVEN)
    shifted = FITS[variant](COMPLETE, time_points=7.0 * np.array(UNEVEN) - 3.0)
    np.testing.assert_allclose(fit.score, shifted.score, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_draws_have_the_curvature_of_the_fit_and_centred_difficulties(variant):
    fit = FITS[variant](COMPLETE, **PRIOR)
    draws = fit.draw(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws["difficulty"].sum(axis=-1), 0.0, atol=1e-10)
    np.testing.assert_allclose(draws["score"].mean(axis=0), fit.score, atol=0.05)
    held = np.zeros(fit.free.size)
    held[-6:] = 1.0
    bordered = np.block([[fit.information, held[:, None]], [held, 0.0]])
    covariance = np.linalg.inv(bordered)[:-1, :-1]
    spread = covariance[-6:, -6:]
    np.testing.assert_allclose(np.cov(draws["difficulty"].T), spread, atol=0.03)


@pytest.mark.parametrize(
    ("fit", "options", "message"),
    [
        (fit_growth, {"time_points": [0, 1]}, "time_points must have 5"),
        (fit_growth, {"time_points": [0, 1, 1, 2, 3]}, "time_points must be finite and strictly"),
        (fit_growth, {"score_target": "best"}, "score_target must be one of"),
        (fit_growth, {"slope_reg": 0.0}, "slope_reg must be positive and finite"),
        (fit_growth, {"ability_precision": -1.0}, "ability_precision must be finite"),
        (fit_state_space, {"state_reg": 0.0}, "state_reg must be positive and finite; got 0.0"),
        (fit_state_space, {"anchor_reg": np.nan}, "anchor_reg must be finite and at least 0"),
        (fit_state_space, {"score_target": "best"}, "score_target must be one of"),
    ],
)
def test_options_out_of_range_are_refused(fit, options, message):
    with pytest.raises(ValueError, match=message):
        fit(COMPLETE, **options)


@pytest.mark.parametrize("variant", VARIANTS)
def test_outcomes_need_a_trial_axis(variant):
    with pytest.raises(ValueError, match="outcomes must be of shape"):
        FITS[variant](COMPLETE[..., 0])


@pytest.mark.parametrize(
    ("name", "fit"),
    [
        ("dynamic_irt_growth", fit_growth),
        ("dynamic_irt_growth_initial", partial(fit_growth, score_target="initial")),
        ("dynamic_irt_state_space", fit_state_space),
    ],
)
def test_fits_agree_with_the_peer_where_it_converged(shared, name, fit):
    compared = 0
    for path in sorted((shared / "oracle" / "cases").glob("*.json")):
        result = json.loads(path.read_text())["results"].get(name, {})
        if "scores" not in result:
            continue
        with np.load(path.with_suffix(".npz")) as arrays:
            shape = tuple(arrays["shape"])
            outcomes = np.unpackbits(arrays["R"])[: np.prod(shape)].reshape(shape)
        found = fit(outcomes.astype(np.int8))
        assert found.converged, path.stem
        np.testing.assert_allclose(
            found.score,
            result["scores"],
            rtol=PEER_SHARE,
            atol=PEER_TOLERANCE,
            err_msg=path.stem,
        )
        gaps = np.diff(np.sort(result["scores"]))
        if ((gaps > 1e-9) & (gaps < 2 * PEER_TOLERANCE)).any():
            continue  # the peer's own error decides the order
        ranks = rank_scores(found.score)
        np.testing.assert_array_equal(ranks, result["ranks"], err_msg=path.stem)
        compared += 1
    assert compared > 20
