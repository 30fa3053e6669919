"""What only the multidimensional model promises: factors, and many refits."""

import numpy as np
import pytest
from scipy.special import expit

from bayesrank import Responses, check, rank
from bayesrank.errors import DataError
from bayesrank.inference.calibrate.variation import jackknife_by_refits
from bayesrank.inference.fits.item_models import fit_mirt, mirt_problem
from bayesrank.inference.fits.item_table import mirt as fit_responses
from bayesrank.models.factor_reference import FactorReference
from bayesrank.priors import Normal


def simulate(shape=(6, 14, 5), seed=0):
    """Simulate two abilities, with a cell and some trials missing."""
    rng = np.random.default_rng(seed)
    ability, loading = rng.normal(size=(shape[0], 2)), rng.normal([1.0, 0.0], 0.5, (shape[1], 2))
    chance = expit(ability @ loading.T + rng.normal(size=shape[1]))
    outcomes = (rng.random(shape) < chance[..., None]).astype(int)
    outcomes[1, 2], outcomes[0, 3, 2:] = -1, -1
    return Responses(outcomes)


@pytest.mark.filterwarnings("ignore::bayesrank.errors.CalibrationWarning")
def test_questions_that_tell_nothing_apart_are_ranked_and_checked():
    data = Responses([[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]])
    result = rank(data, "mirt", target="population", draws=20, random_seed=3)
    assert np.isfinite(result["posterior"]["score"].values).all()
    (fit,) = [each for each in check(result, data) if each.topic == "fit"]
    assert fit.sentence == "The model left out every question."


@pytest.mark.parametrize("shape", [(3, 8, 1), (5, 4, 1), (4, 3, 3)])
def test_other_places_of_systems_and_questions_move_labels_alone(shape):
    # In few answers singular values are equal, so that rounding would choose the factors.
    rng = np.random.default_rng(0)
    for _ in range(8):
        values = rng.integers(0, 2, shape)
        systems, questions = (rng.permutation(size) for size in shape[:2])
        score, moved = (
            rank(table, "mirt", backend="map", draws=0)["ranking"]["score"].values
            for table in (values, values[np.ix_(systems, questions)])
        )
        np.testing.assert_allclose(moved, score[systems], atol=1e-7)


def test_systems_that_could_change_places_with_others_tie():
    # The first two, with the questions that each has alone.
    values = [[0, -1, 0, -1, 0], [-1, 0, 0, 0, -1], [1, 1, 0, 1, 1]]
    result = rank(np.array(values)[..., np.newaxis], "mirt", backend="map", random_seed=1)
    score, draws = result["ranking"]["score"].values, result["posterior"]["score"].values
    assert score[0] == score[1] < score[2]
    assert abs((draws[..., 0] > draws[..., 1]).mean() - 0.5) < 0.05


def test_a_norm_needs_factors():
    # None, and one, whose other abilities are rounding errors: scores would be of any size.
    one = np.zeros((3, 7, 2), int)
    one[[0, 2], :2, 1] = one[[0, 2], 2:4, 0] = one[[0, 2], 6, 0] = one[1, 5, 0] = 1
    for outcomes in (np.ones((4, 5, 2), int), one):
        with pytest.raises(DataError, match="must distinguish systems by n_factors=2 abilities"):
            rank(Responses(outcomes), "mirt", score="norm", draws=0)


def test_refits_are_fits_of_what_is_left():
    data = simulate()
    fit = fit_responses(data, Normal(0.0, 1.0))
    assert fit is not None
    assert fit.refit is not None
    right, trials = (counts.astype(float) for counts in data.binary_counts)
    keep = np.arange(14) != 4
    scores = fit.refit(np.stack([right, right * keep]), np.stack([trials, trials * keep]))
    np.testing.assert_array_equal(scores[0], fit.score)
    less = fit_responses(
        Responses(data.outcomes[:, keep]),
        Normal(0.0, 1.0),
    )
    assert less is not None
    np.testing.assert_allclose(scores[1], less.score, atol=1e-12)
    two = trials * (np.arange(14) < 2)
    assert np.isnan(fit.refit(right[None] * (two > 0), two[None])).all()


@pytest.mark.parametrize("kind", ["trial", "run", "question"])
def test_parts_without_an_estimate_give_no_covariance(kind):
    data = simulate((4, 10, 4))
    data = Responses(np.where(data.outcomes < 0, 0, data.outcomes))
    assert jackknife_by_refits(lambda right, _: right.sum(axis=-1), data, kind) is not None
    assert jackknife_by_refits(lambda right, _: right[..., 0] * np.nan, data, kind) is None


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_the_reference_adds_to_the_spread(target):
    # The sandwich at the optimum, which normal intercepts get, holds the reference still.
    rng = np.random.default_rng(3)
    chance = rng.beta(2.0, 2.0, (8, 25, 1))
    data = Responses((rng.random((8, 25, 8)) < chance).astype(int))
    priors = ("hierarchical", "normal(0, 1)")
    spreads = [
        rank(data, "mirt", target=target, random_seed=0, difficulty_prior=prior)["posterior"][
            "score"
        ].var(("chain", "draw"))
        for prior in priors
    ]
    assert float(spreads[0].mean()) > 1.1 * float(spreads[1].mean())


@pytest.mark.parametrize("shape", [(2, 1), (5, 3), (6, 4), (30, 2)], ids=str)
def test_directions_are_orthonormal_and_leave_what_is_held(shape):
    rng = np.random.default_rng(0)
    held, rows = rng.normal(size=shape), rng.normal(size=(3, shape[0]))
    reference = FactorReference(held, held, np.arange(shape[1]))
    directions = reference.directions
    np.testing.assert_allclose(directions.T @ directions, np.eye(shape[0] - shape[1]), atol=1e-14)
    np.testing.assert_allclose(held.T @ directions, 0.0, atol=1e-14)
    np.testing.assert_allclose(reference.along(rows), rows @ directions, atol=1e-14)
    along = rows @ directions
    np.testing.assert_allclose(reference.across(along), along @ directions.T, atol=1e-14)


def test_many_questions_need_no_matrix_of_questions_by_questions(monkeypatch):
    rng = np.random.default_rng(1)
    chance = expit(rng.normal(size=(5, 1)) - rng.normal(size=3000))
    right = (rng.random(chance.shape) < chance).astype(float)
    # Of 3,000 by 3,000 it would be, which nothing may ask for.
    monkeypatch.setattr(FactorReference, "directions", property(lambda _: 1 / 0))
    fit = fit_mirt(mirt_problem(right, np.ones_like(right)))
    assert fit.converged
    drawn = fit.draw(20, rng)
    assert drawn["deviation_1"].shape == (20, 2998)
    assert np.isfinite(drawn["score"]).all()


def test_like_questions_of_a_large_table_need_not_tell_systems_apart():
    data = Responses(np.tile([[0], [1], [0], [0]], (1, 6000)))
    scores = rank(data, "mirt", target="population", draws=0)["ranking"]["score"].values
    assert scores[1] > scores[0] == scores[2] == scores[3]
