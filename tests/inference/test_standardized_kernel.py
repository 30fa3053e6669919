"""The marginal likelihood of abilities against quadrature and finite differences."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from bayesrank.inference.fits.standardized import MarginalDifficulties, fit_chances

TRIALS = np.array([[2.0, 1.0, 0.0, 3.0], [2.0, 1.0, 2.0, 0.0], [1.0, 1.0, 4.0, 2.0]])
TOTALS = np.array([[1.0, 1.0, 0.0, 1.0], [0.5, 0.0, 1.0, 0.0], [1.0, 0.25, 3.0, 0.0]])
POINT = np.array([0.3, -0.8, 1.1, 0.7, -0.2])


def test_integrals_are_those_of_adaptive_quadrature():
    problem, kind = MarginalDifficulties.of(TOTALS, TRIALS)
    ability, slope, sd = POINT[:3], POINT[3], np.exp(POINT[4])
    expected = 0.0
    for question in range(4):

        def density(b: float, m: int = question) -> float:
            logit = ability - b
            logs = TOTALS[:, m] * logit - TRIALS[:, m] * np.logaddexp(0.0, logit)
            return np.exp(logs.sum()) * norm.pdf(b, slope * problem.share[kind[m]], sd)

        expected += np.log(quad(density, -30, 30, epsabs=1e-13, limit=400, points=[0.0])[0])
    assert problem.loglik(POINT[np.newaxis])[0] == pytest.approx(expected, abs=1e-9)


def test_derivatives_are_those_of_finite_differences():
    problem, _ = MarginalDifficulties.of(TOTALS, TRIALS)
    gradient, information, _ = problem.derivatives(POINT)
    moves = 1e-5 * np.eye(len(POINT))

    def at(point: np.ndarray) -> float:
        return problem.value(point[np.newaxis])[0]

    numeric = [(at(POINT + move) - at(POINT - move)) / 2e-5 for move in moves]
    assert np.allclose(gradient, numeric, atol=1e-6)
    slopes = [
        (problem.derivatives(POINT + move)[0] - problem.derivatives(POINT - move)[0]) / 2e-5
        for move in moves
    ]
    assert np.allclose(information, -np.array(slopes), atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 400, 1), (3, 5, 1), (8, 30, 80), (40, 20, 2)])
def test_fits_converge_from_few_and_from_many_trials(shape):
    rng = np.random.default_rng(1)
    trials = np.full(shape[:2], float(shape[2]))
    chance = 1.0 / (1.0 + np.exp(rng.normal(0, 2, shape[1]) - rng.normal(size=(shape[0], 1))))
    totals = rng.binomial(shape[2], chance).astype(float)
    totals[:, 0], totals[:, 1] = 0.0, trials[:, 1]  # nobody, everybody
    found = fit_chances(totals, trials, np.zeros(shape[:2]))
    assert found.optimum.converged[0]
    assert np.linalg.eigvalsh(found.information)[0] > 0.0
    fitted = (trials * found.chance).sum(axis=1)
    assert np.allclose(fitted, totals.sum(axis=1), atol=1e-6)


def test_difficulties_follow_the_answers():
    totals = np.array([[9.0, 5.0, 1.0], [8.0, 6.0, 2.0]])
    found = fit_chances(totals, np.full((2, 3), 10.0), np.zeros((2, 3)))
    assert (np.diff(found.difficulty) > 0).all()
    assert found.difficulty.sum() == pytest.approx(0.0, abs=1e-12)
