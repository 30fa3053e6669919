"""Questions that are answered alike are fitted as one, with the same result as one by one."""

from functools import partial

import numpy as np
import pytest

from bayesrank.counting import distinct_columns
from bayesrank.inference.calibrate.variation import Mode
from bayesrank.inference.fits import symmetry
from bayesrank.inference.fits.item_likelihoods import Guessing
from bayesrank.inference.fits.item_models import (
    fit_mirt,
    fit_pooled_items,
    mirt_problem,
    rasch_items,
)
from bayesrank.inference.fits.item_table import mirt, rasch
from bayesrank.inference.fits.published_irt import fit_published_items, published_items
from bayesrank.priors import Normal, NormalPrior
from bayesrank.responses import Responses


def two_factors(right, trials):
    return fit_mirt(mirt_problem(right, trials))


FITS = {
    "default 2pl": partial(fit_pooled_items, slope_prior=NormalPrior(0.0, 4.0)),
    "published 2pl": partial(fit_published_items, prior=NormalPrior(0.0, 1.0)),
    "published 2pl, no prior": fit_published_items,
    "published 3pl": partial(
        fit_published_items, prior=NormalPrior(0.0, 1.0), guessing=Guessing(None), reg_guessing=0.5
    ),
    "published 3pl, known guessing": partial(fit_published_items, guessing=Guessing(0.2)),
    "mirt": two_factors,
}


def repeated(n_systems, n_kinds, seed):
    """Return counts of questions of a few kinds, in any order, some cells without trials."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / (1.0 + np.exp(rng.normal(size=n_kinds) - rng.normal(size=(n_systems, 1))))
    trials = np.full(chance.shape, 6.0)
    trials[0, 0] = 0.0
    right = rng.binomial(trials.astype(int), chance).astype(float)
    kinds = rng.permutation(np.repeat(np.arange(n_kinds), rng.integers(2, 6, size=n_kinds)))
    return right[:, kinds], trials[:, kinds]


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("shape", [(5, 7), (9, 4)], ids=str)
def test_like_questions_are_fitted_as_one(kind, shape, monkeypatch):
    counts = repeated(*shape, seed=11)
    monkeypatch.setattr(symmetry, "CACHE_CELLS", 0)
    merged = FITS[kind](*counts)
    each = np.arange(counts[0].shape[1])
    monkeypatch.setattr(symmetry, "distinct_columns", lambda answers: (each, each))
    apart = FITS[kind](*counts)
    assert bool(merged.converged) == bool(apart.converged)
    np.testing.assert_allclose(merged.score, apart.score, atol=1e-9)
    np.testing.assert_allclose(merged.loglik, apart.loglik, rtol=1e-12)
    for name, values in apart.parameters.items():
        np.testing.assert_allclose(merged.parameters[name], values, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize(("concave", "merged"), [(True, False), (False, True)])
def test_like_questions_of_a_small_table_are_merged_where_maxima_are_searched(concave, merged):
    right, trials = repeated(5, 7, seed=3)
    prior = NormalPrior(0.0, 1.0)
    problem = (rasch_items if concave else published_items)(right, trials, prior=prior)[0]
    found = symmetry.merged_questions(problem)
    assert (found.reduced.likelihood.shape[2] == 7) is merged


@pytest.mark.parametrize("fit_items", [mirt, rasch], ids=["mirt", "rasch"])
def test_scores_rise_with_the_free_coordinates_as_differences_say(fit_items):
    outcomes = np.random.default_rng(2).integers(0, 2, size=(6, 15, 4))
    fit = fit_items(Responses(outcomes), Normal(0.0, 1.0))
    differences = Mode(fit.free, fit.steps, fit.unpack).gradients
    np.testing.assert_allclose(fit.gradients(), differences, atol=1e-10)


def test_columns_sort_by_their_first_row():
    table = np.random.default_rng(4).integers(0, 3, size=(4, 60)).astype(float)
    table[2] = 1.0
    first, kinds = distinct_columns(table)
    distinct, places = np.unique(table, axis=1, return_inverse=True)
    np.testing.assert_array_equal(table[:, first], distinct)
    np.testing.assert_array_equal(kinds, places.ravel())


@pytest.mark.parametrize(
    ("n_systems", "seed", "guessing"),
    [(3, 0, Guessing(None)), (4, 7, Guessing(None)), (4, 2, Guessing())],
    ids=["3pl, 3 systems", "3pl, 4 systems", "2pl"],
)
def test_like_questions_that_fit_better_apart_do_not_end_at_a_saddle(
    n_systems, seed, guessing, monkeypatch
):
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=(n_systems, 1))
    chance = 1.0 / (1.0 + np.exp(rng.normal(size=60) - ability))
    right = (rng.random(chance.shape) < chance).astype(float)
    monkeypatch.setattr(symmetry, "CACHE_CELLS", 0)
    fit = fit_published_items(
        right, np.ones_like(right), prior=NormalPrior(0.0, 1.0), guessing=guessing
    )
    assert fit.converged
    assert np.isfinite(fit.draw(3, rng)["score"]).all()
