"""Fits whose objective is not concave end at maxima, and at the highest of several."""

import numpy as np
import pytest

from bayesrank import rank
from bayesrank.errors import NoFiniteEstimate
from bayesrank.inference.fits import symmetry
from bayesrank.inference.fits.item_likelihoods import Guessing
from bayesrank.inference.fits.item_models import fit_pooled_items
from bayesrank.inference.fits.newton import maximise_nonconcave
from bayesrank.inference.fits.published_irt import fit_published_items, published_items
from bayesrank.priors import NormalPrior

KINDS = {
    "2pl": (fit_published_items, {}),
    "2pl map": (fit_published_items, {"prior": NormalPrior(0.0, 1.0)}),
    "3pl": (fit_published_items, {"guessing": Guessing(None)}),
    "3pl map": (fit_published_items, {"guessing": Guessing(None), "prior": NormalPrior(0.0, 1.0)}),
    "default 2pl": (fit_pooled_items, {"slope_prior": NormalPrior(0.0, 4.0)}),
}
SHAPES = [(2, 3, 4), (3, 4, 3), (4, 3, 2), (5, 6, 1), (3, 2, 5)]
CYCLIC = np.array([[2, 1, 0, 3], [0, 1, 2, 3], [2, 3, 0, 1]])


def equal_totals(shape, number, seed=0):
    """Return numbers right of systems with equal totals, but on other questions."""
    rng = np.random.default_rng(seed)
    n_systems, n_questions, n_trials = shape
    answers = rng.integers(0, 2, (number, 1, n_questions * n_trials))
    answers[..., :2] = 0, 1
    answers = rng.permuted(np.repeat(answers, n_systems, axis=1), axis=-1)
    return answers.reshape(number, n_systems, n_questions, n_trials).sum(axis=-1).astype(float)


def least_curvature(fit):
    """Return the least eigenvalue along what is not held, over the largest."""
    information, held = fit.geometry
    basis = np.linalg.qr(np.broadcast_to(held, (*information.shape[:-1], held.shape[-1])))[0]
    across = np.eye(information.shape[-1]) - basis @ np.swapaxes(basis, -1, -2)
    values = np.linalg.eigvalsh(across @ information @ across)
    return values[..., 0] / values[..., -1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("number", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_no_fit_of_equal_totals_ends_at_a_saddle(kind, shape, number):
    fit, priors = KINDS[kind]
    right = equal_totals(shape, number, seed=number)
    found = fit(right, np.full(shape[:2], float(shape[2])), **priors)
    assert found.converged.mean() > 0.9
    assert least_curvature(found)[found.converged].min() > -1e-7


def test_the_highest_maximum_of_a_cycle_is_the_known_one():
    fit = fit_published_items(CYCLIC, np.full((3, 4), 3.0))
    problem = published_items(CYCLIC, np.full((3, 4), 3.0))[0]
    assert problem.value(fit.free[np.newaxis])[0] == pytest.approx(-16.612, abs=5e-4)
    assert fit.score[1] > fit.score[0] > fit.score[2]
    assert np.isfinite(fit.draw(5, np.random.default_rng(0))["score"]).all()


def test_few_random_starts_lead_higher():
    higher = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        row = rng.integers(0, 4, 5)
        right, trials = np.array([np.roll(row, k) for k in range(4)]), np.full((4, 5), 3.0)
        fit = fit_published_items(right, trials, prior=NormalPrior(0.0, 1.0))
        problem = published_items(right, trials, prior=NormalPrior(0.0, 1.0))[0]
        start = np.zeros((8, fit.free.size)) + rng.normal(size=(8, fit.free.size))
        many = problem.take(np.zeros(8, dtype=int))
        found = maximise_nonconcave(many, many.restore(start))
        best = many.value(found.point)[found.converged].max()
        higher.append(best - problem.value(fit.free[np.newaxis])[0])
    assert np.mean(np.array(higher) > 1e-6) <= 0.1
    assert max(higher) < 0.5


RELABELLED = {
    "two that could change places": [[3, 1, 2, 0], [1, 3, 2, 0], [2, 2, 1, 1]],
    "a circle": [np.roll([2, 0, 3, 1], shift) for shift in range(4)],
    "two and two": [[3, 0, 2, 2], [0, 3, 2, 2], [2, 2, 3, 0], [2, 2, 0, 3]],
    "no symmetry": [[3, 1, 0, 2], [0, 2, 3, 1], [1, 3, 1, 1]],
}


@pytest.mark.parametrize("kind", ["2pl", "2pl map", "3pl map"])
@pytest.mark.parametrize("name", RELABELLED)
def test_relabelling_moves_labels_only(name, kind):
    fit_counts, priors = KINDS[kind]
    right = np.array(RELABELLED[name], dtype=float)
    trials, rng = np.full(right.shape, 3.0), np.random.default_rng(0)
    fit = fit_counts(right, trials, **priors)
    for _ in range(4):
        systems, questions = rng.permutation(len(right)), rng.permutation(4)
        moved = fit_counts(right[systems][:, questions], trials, **priors)
        np.testing.assert_allclose(moved.score, fit.score[systems], atol=1e-7)
        for parameter, values in moved.parameters.items():
            np.testing.assert_allclose(
                values, fit.parameters[parameter][questions], rtol=1e-6, atol=1e-7
            )


@pytest.mark.parametrize("kind", ["2pl", "2pl map"])
def test_systems_that_could_change_places_tie(kind):
    fit_counts, priors = KINDS[kind]
    right = np.array([[3.0, 1.0, 2.0, 0.0], [1.0, 3.0, 2.0, 0.0]])
    fit = fit_counts(right, np.full(right.shape, 3.0), **priors)
    assert fit.score[0] == fit.score[1]
    # Though the likelihood is higher with them apart, and draws have them apart either way.
    assert np.ptp(fit.unpack(fit.free)["score"]) > 0.01
    draws = fit.draw(1000, np.random.default_rng(0))["score"]
    assert abs(draws[:, 0].mean() - draws[:, 1].mean()) < 0.2 * draws.std()


def test_systems_that_guessing_tells_apart_by_chance_have_no_estimate():
    with pytest.raises(NoFiniteEstimate, match="as many right"):
        rank([[[1, 0], [0, 0]], [[0, 0], [1, 0]]], "rasch_3pl", draws=0)


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_the_penalty_of_a_random_walk_keeps_perfect_systems_finite(target):
    rng = np.random.default_rng(0)
    outcomes = rng.integers(0, 2, (5, 6, 4))
    outcomes[0], outcomes[4] = 1, 0
    result = rank(outcomes, "dynamic_irt_state_space", draws=20, random_seed=0, target=target)
    score = result["ranking"].to_dataset()["score"].values
    assert np.isfinite(score).all()
    assert score.argmax() == 0
    assert score.argmin() == 4


def test_directions_of_small_positive_curvature_are_not_searched():
    # Discriminations of hundreds have curvatures of 1e6, beside which all others are small.
    curvature = np.array([1e6, -0.1, 0.05, 0.06, 0.07])

    class Saddle:
        def information(self, point):
            return np.diag(curvature)[np.newaxis]

        def held_rows(self, point):
            return np.zeros((1, len(curvature), 0))

    np.testing.assert_allclose(
        np.abs(symmetry._ways_up(Saddle(), np.zeros((1, 5)), False)), np.eye(5)[[1]], atol=1e-9
    )
