"""The posterior with crossed effects, against plain Gaussian conditioning on all cells."""

import numpy as np
import pytest

from bayesrank.planning.crossed import Components, CrossedPosterior

SHAPE = (4, 5)


def conditioned(totals: np.ndarray, trials: np.ndarray, c: Components):
    """Return mean and covariance of all cells, minus 1/2, by the textbook formula."""
    system, question = (axis.ravel() for axis in np.indices(SHAPE))
    same_system = system[:, None] == system
    same_question = question[:, None] == question
    prior = c.system * same_system + c.question * same_question
    prior = prior + c.cell * (same_system & same_question)
    n = trials.ravel()
    seen = n > 0
    noise = np.diag(c.trial / n[seen])
    gain = np.linalg.solve(prior[np.ix_(seen, seen)] + noise, prior[seen]).T
    return gain @ (totals.ravel()[seen] / n[seen] - 0.5), prior - gain @ prior[seen]


@pytest.mark.parametrize("components", [Components(), Components(0.5, 0.01, 0.2, 0.05)])
def test_equals_conditioning_on_cells(components: Components):
    rng = np.random.default_rng(0)
    trials = rng.integers(0, 4, SHAPE).astype(float)
    totals = rng.binomial(trials.astype(int), 0.6).astype(float)
    posterior = CrossedPosterior(totals, trials, components)
    mean, covariance = conditioned(totals, trials, components)
    scores = np.kron(np.eye(SHAPE[0]), np.full(SHAPE[1], 1 / SHAPE[1]))
    np.testing.assert_allclose(posterior.mean, 0.5 + scores @ mean, atol=1e-13)
    np.testing.assert_allclose(posterior.covariance, scores @ covariance @ scores.T, atol=1e-14)
    leverage = (scores @ covariance).reshape(SHAPE[0], *SHAPE)
    np.testing.assert_allclose(posterior.leverage, leverage, atol=1e-14)
    spread = np.diag(covariance).reshape(SHAPE) + components.trial
    np.testing.assert_allclose(posterior.trial_variance, spread, atol=1e-14)


def test_a_trial_changes_what_it_was_said_to_change():
    trials = np.zeros(SHAPE)
    trials[0] = 2.0
    before = CrossedPosterior(trials / 2, trials)
    cell = (2, 3)
    more = trials.copy()
    more[cell] += 1
    after = CrossedPosterior(trials / 2, more)
    told = before.leverage[:, *cell]
    expected = before.covariance - np.outer(told, told) / before.trial_variance[cell]
    np.testing.assert_allclose(after.covariance, expected, atol=1e-14)


def test_without_trials_there_is_the_prior():
    posterior = CrossedPosterior(np.zeros(SHAPE), np.zeros(SHAPE))
    np.testing.assert_allclose(posterior.mean, 0.5)
    c = Components()
    off = c.question / SHAPE[1]
    np.testing.assert_allclose(posterior.covariance[0, 1], off)
    np.testing.assert_allclose(posterior.covariance[0, 0], off + c.system + c.cell / SHAPE[1])


def test_components_must_be_positive():
    with pytest.raises(ValueError, match="cell must be a number above 0; got 0"):
        Components(cell=0)
