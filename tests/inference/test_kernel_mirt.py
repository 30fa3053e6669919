"""What only the multidimensional model promises: factors, and many refits."""

import numpy as np
import pytest
from scipy.special import expit

from bayesrank import Responses, rank
from bayesrank.errors import DataError
from bayesrank.inference.calibrate.jackknife import jackknife_by_refits
from bayesrank.inference.fits.item_table import mirt as fit_responses
from bayesrank.priors import Normal


def simulate(shape=(6, 14, 5), seed=0):
    """Simulate two abilities, with a cell and some trials missing."""
    rng = np.random.default_rng(seed)
    ability, loading = rng.normal(size=(shape[0], 2)), rng.normal([1.0, 0.0], 0.5, (shape[1], 2))
    chance = expit(ability @ loading.T + rng.normal(size=shape[1]))
    outcomes = (rng.random(shape) < chance[..., None]).astype(int)
    outcomes[1, 2], outcomes[0, 3, 2:] = -1, -1
    return Responses(outcomes)


def test_a_norm_needs_factors():
    with pytest.raises(DataError, match="must tell systems apart by n_factors=2 abilities"):
        rank(Responses(np.ones((4, 5, 2), int)), "mirt", score="norm")


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
