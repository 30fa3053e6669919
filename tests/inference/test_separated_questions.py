"""Questions that part the systems exactly: 3PL fits them without an error of linear algebra."""

import warnings

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.errors import ConvergenceWarning
from bayesrank.inference.fits.item_likelihoods import Guessing
from bayesrank.inference.fits.published_irt import published_items


def parted(seed: int) -> Responses:
    """Return outcomes in which three questions are solved by the better half alone, always."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=6), rng.normal(size=8)
    chance = 1 / (1 + np.exp(difficulty - ability[:, None]))
    outcomes = (rng.random((6, 8, 2)) < chance[..., None]).astype(np.int8)
    outcomes[:, :3] = (ability > np.median(ability))[:, None, None]
    return Responses(outcomes)


@pytest.mark.parametrize("preset", ["rasch_3pl", "rasch_3pl_map"])
@pytest.mark.parametrize("seed", [0, 7, 11])
def test_presets_return_and_say_whether_they_converged(preset, seed):
    data = parted(seed)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = rank(data, preset, draws=0)
    complaints = [w for w in said if issubclass(w.category, ConvergenceWarning)]
    assert bool(complaints) != bool(result["sample_stats"]["converged"])
    score = result["ranking"]["score"].values
    assert np.isfinite(score).all()
    solved = data.outcomes[:, 0, 0] == 1
    assert score[solved].mean() > score[~solved].mean()


def test_questions_without_curvature_stay_where_they_are():
    data = parted(0)
    right, trials = data.binary_counts
    problem = published_items(right, trials, guessing=Guessing(None))[0]
    n_systems, n_questions = right.shape
    point = np.zeros((1, n_systems + 3 * n_questions))
    # So far apart that no chance on a parted question moves with its offset or its slope.
    point[0, :n_systems] = np.where(data.outcomes[:, 0, 0] == 1, 2000.0, -2000.0)
    _, step = problem.system(point)
    moved = step(np.zeros(1), np.zeros(1, dtype=int))[0, n_systems:].reshape(3, n_questions)
    np.testing.assert_array_equal(moved[:2, :3], 0.0)
