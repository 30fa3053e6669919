"""The kernel of growth with default priors against its graph."""

import numpy as np
import pytest
from scipy.special import expit

from bayesrank import Responses, rank
from bayesrank.inference.fits.item_table import dynamic_irt as fit_responses
from bayesrank.inference.fits.laplace import constrained_steps
from bayesrank.inference.fits.pooled_growth import fit_pooled_growth, pooled_growth_problem
from bayesrank.inference.graph.fit import fit as fit_graph
from bayesrank.models import dynamic_irt
from bayesrank.priors import Empirical, Laplace, Normal


def simulate(shape=(6, 14, 5), seed=0):
    """Simulate growth; a question, a trial of a system and single answers are missing."""
    rng = np.random.default_rng(seed)
    lines = rng.normal(size=(2, shape[0], 1, 1))
    logit = lines[0] + lines[1] * np.linspace(0.0, 1.0, shape[2]) - rng.normal(size=(shape[1], 1))
    outcomes = (rng.random(shape) < expit(logit)).astype(int)
    outcomes[0, 1], outcomes[:, 2], outcomes[2, :, 0], outcomes[:, 3] = -1, -1, -1, 1
    return Responses(outcomes)


def problem_at_a_point(seed=1):
    """Return an objective and parameters that are no optimum, but as they are held."""
    problem = pooled_growth_problem(
        simulate().outcomes, slope_mean=0.3, slope_precision=2.0, ability_mean=np.arange(6.0)
    )
    free = 0.5 * np.random.default_rng(seed).normal(size=(1, 26))
    free[:, 12:] -= free[:, 12:].mean()
    return problem, free


def test_derivatives_are_those_of_the_objective():
    problem, free = problem_at_a_point()
    step, held = 1e-5, problem.constraint(free)[0]
    across = np.eye(free.size) - np.outer(held, held) / (held @ held)
    slopes = [
        (problem.value(free + step * row) - problem.value(free - step * row))[0] / (2 * step)
        for row in across
    ]
    np.testing.assert_allclose(problem.gradient(free)[0] @ across, slopes, atol=1e-6)
    bends = [
        (problem.gradient(free - step * row) - problem.gradient(free + step * row))[0] / (2 * step)
        for row in across
    ]
    expected = across @ problem.information(free)[0] @ across
    np.testing.assert_allclose(bends @ across, expected, atol=1e-5)


def test_newton_steps_solve_the_whole_system():
    problem, free = problem_at_a_point()
    gradient, step = problem.system(free)
    held, first = problem.constraint(free)[0][:, None], np.zeros(1, dtype=int)
    expected = constrained_steps(problem.information(free)[0], held, gradient)
    np.testing.assert_allclose(step(np.zeros(1), first), expected, atol=1e-10)
    assert np.abs(step(np.ones(1), first)).max() < np.abs(expected).max()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"score_target": "gain", "slope_prior": "normal(0.5, 0.3)"},
        {"score_target": "mean", "prior": Normal(1.0, 0.5)},
        {"score_target": "initial", "time_points": [0.0, 1.0, 2.0, 5.0, 9.0]},
        {"prior": Empirical(np.arange(24).reshape(6, 4, 1) % 3 % 2)},
    ],
    ids=["default", "gain", "mean", "initial", "empirical"],
)
def test_the_optimum_and_the_draws_are_those_of_the_graph(options):
    data = simulate()
    graph = fit_graph(dynamic_irt(data, assume_time_axis=True, **options), "map")
    given = dict(options)
    prior = given.pop("prior", Normal(0.0, 1.0))
    kernel = fit_responses(data, prior, assume_time_axis=True, **given)
    assert kernel is not None
    assert bool(kernel.converged)
    np.testing.assert_allclose(kernel.score, graph.point["score"], atol=1e-10)
    drawn, expected = kernel.draw(8000, np.random.default_rng(0)), graph.draws(draws=2000)
    assert set(drawn) == set(graph.point.data_vars)
    for name, values in kernel.parameters.items():
        np.testing.assert_allclose(values, graph.point[name], atol=1e-9, err_msg=name)
        spread = expected[name].std(("chain", "draw"))
        np.testing.assert_allclose(drawn[name].std(axis=0), spread, rtol=0.06, err_msg=name)


def test_a_single_trial_is_the_rasch_model():
    data = simulate((6, 14, 1), seed=2)
    fits = [
        fit_responses(data, Normal(0.0, 1.0), assume_time_axis=True, variant=variant)
        for variant in ("growth", "linear")
    ]
    np.testing.assert_array_equal(fits[0].score, fits[1].score)


def test_what_the_kernel_does_not_cover_goes_to_the_graph():
    data, normal, on = simulate(), Normal(0.0, 1.0), {"assume_time_axis": True}
    assert fit_responses(data, Laplace(0.0, 1.0), **on) is None
    assert fit_responses(data, normal, slope_prior="laplace(0, 1)", **on) is None
    assert fit_responses(data, normal, slope_prior="flat", **on) is None
    assert fit_responses(data, normal, difficulty_prior="normal(0, 2)", **on) is None
    with pytest.raises(ValueError, match="assume_time_axis"):
        rank(data, "dynamic_irt", backend="map", prior="normal(0, 1)")


def test_resamples_are_fitted_one_by_one():
    several = np.stack([simulate(seed=seed).outcomes for seed in range(3)])
    fits = fit_pooled_growth(several)
    assert fits.converged.all()
    for row, outcomes in enumerate(several):
        one = fit_pooled_growth(outcomes)
        np.testing.assert_allclose(fits.score[row], one.score, atol=1e-12)
        np.testing.assert_allclose(fits.information[row], one.information, atol=1e-9)


def test_equal_systems_tie():
    outcomes = simulate().outcomes.copy()
    outcomes[3] = outcomes[5]
    fit = fit_pooled_growth(outcomes)
    assert fit.score[3] == fit.score[5]
