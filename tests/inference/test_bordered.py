"""Draws and steps by blocks are those of the whole matrix; tensors of many questions have them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from bayesrank import rank
from bayesrank.inference.fits import fit as fits
from bayesrank.inference.fits.bordered import Bordered
from bayesrank.inference.fits.item_likelihoods import Guessing
from bayesrank.inference.fits.item_models import (
    fit_mirt,
    fit_pooled_items,
    fit_rasch,
    mirt_problem,
)
from bayesrank.inference.fits.published_irt import fit_published_items
from bayesrank.priors import NormalPrior

SLOPES = {"slope_prior": NormalPrior(0.0, 4.0)}
FITS = {
    "rasch": lambda *counts: fit_rasch(*counts),
    "rasch map": lambda *counts: fit_rasch(*counts, prior=NormalPrior(0.0, 1.0)),
    "pooled rasch": lambda *counts: fit_pooled_items(*counts),
    "pooled 2pl": lambda *counts: fit_pooled_items(*counts, **SLOPES),
    "pooled 3pl": lambda *counts: fit_pooled_items(*counts, **SLOPES, guessing=Guessing(None)),
    "mirt": lambda *counts: fit_mirt(mirt_problem(*counts)),
}


def counts(shape, seed):
    rng = np.random.default_rng(seed)
    chance = 1.0 / (1.0 + np.exp(rng.normal(size=shape[1]) - rng.normal(size=(shape[0], 1))))
    return rng.binomial(9, chance).astype(float), np.full(shape, 9.0)


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("shape", [(4, 11), (9, 5)], ids=str)
def test_blocks_give_the_steps_and_draws_of_the_whole_matrix(kind, shape, monkeypatch):
    agree(FITS[kind], counts(shape, 3), monkeypatch)


@pytest.mark.parametrize("guessing", [Guessing(), Guessing(None)], ids=["2pl", "3pl"])
def test_published_items_are_drawn_by_blocks_or_whole(guessing, monkeypatch):
    fit_items = partial(fit_published_items, guessing=guessing, prior=NormalPrior(0.0, 1.0))
    whole = fit_items(*counts((4, 11), 3)).draw(5, np.random.default_rng(0))
    agree(fit_items, counts((9, 5), 3), monkeypatch)
    # A block is indefinite across the mean difficulty, which is held.
    blocks = fit_items(*counts((4, 11), 3))
    assert not blocks.gaussian().has_definite_blocks
    drawn = blocks.draw(5, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn["score"], whole["score"])


def agree(fit_items, data, monkeypatch):
    whole = fit_items(*data)
    monkeypatch.setattr(fits, "MOST_DENSE", 0)
    blocks = fit_items(*data)
    assert whole.gaussian is None
    assert blocks.gaussian is not None
    unit = np.eye(whole.free.size)
    covariance = whole.steps(unit)
    scale = np.abs(covariance).max()
    np.testing.assert_allclose(blocks.steps(unit), covariance, atol=1e-9 * scale)
    deviations = blocks.gaussian().draw(20_000, np.random.default_rng(1))
    np.testing.assert_allclose(deviations @ whole.geometry[1], 0.0, atol=1e-11)
    sd = np.sqrt(np.diag(covariance))
    expected = covariance / np.outer(sd, sd)
    found = deviations.T @ deviations / len(deviations) / np.outer(sd, sd)
    np.testing.assert_allclose(found, expected, atol=6.0 / np.sqrt(len(deviations)))


@pytest.mark.parametrize(("method", "draws"), [("rasch", 100), ("irt_2pl", 100), ("rasch_2pl", 0)])
def test_many_questions_need_no_whole_matrix(method, draws, monkeypatch):
    rng = np.random.default_rng(5)
    chance = 1.0 / (1.0 + np.exp(rng.normal(size=2200) - np.array([[0.0], [0.6], [1.2]])))
    outcomes = (rng.random((3, 2200)) < chance).astype(int)[..., np.newaxis]

    dense = Bordered.dense

    def of_merged_questions(self):
        matrix = dense(self)
        assert matrix.shape[-1] < 100, "the whole matrix was asked for"
        return matrix

    monkeypatch.setattr(Bordered, "dense", of_merged_questions)
    table = rank(outcomes, method, draws=draws, random_seed=1)["ranking"].to_dataset()
    assert table["rank"].values.tolist() == [3, 2, 1]
    if draws:
        assert (table["score_lower"] < table["score"]).all()
        assert (table["score"] < table["score_upper"]).all()


@pytest.mark.parametrize("seed", range(40))
def test_the_lowest_direction_has_negative_curvature_where_any_has(seed):
    rng = np.random.default_rng(seed)
    n_systems, a, n_questions, b = rng.integers(1, 6), *rng.integers(1, [3, 8, 3])
    uu, vv = rng.normal(size=(1, n_systems, a, a)), rng.normal(size=(1, n_questions, b, b))
    uu, vv = uu @ uu.swapaxes(2, 3), vv @ vv.swapaxes(2, 3) - 0.2 * (seed % 3 == 0) * np.eye(b)
    uv = 0.3 * rng.normal(size=(1, n_systems, a, n_questions, b))
    on_u, on_v = np.zeros((1, 1, n_systems, a)), np.zeros((1, 1, n_questions, b))
    matrix = Bordered(uu, vv, uv, on_u, on_v, np.zeros((1, 1)))
    whole = matrix.dense()[0]
    curvature, *sides = matrix.lowest_direction()
    direction = np.concatenate([side[0].T.ravel() for side in sides])
    length = direction @ direction
    assert curvature == pytest.approx(direction @ whole @ direction / length, abs=1e-9)
    assert (curvature < 0.0) == (np.linalg.eigvalsh(whole)[0] < 0.0)


def test_a_coupling_that_adds_precision_is_drawn_whole():
    blocks, border = np.ones((1, 3, 1, 1)), np.zeros((1, 1, 3, 1))
    matrix = Bordered(
        blocks, blocks, 0.1 * np.ones((1, 3, 1, 3, 1)), border, border, -np.ones((1, 1))
    )
    assert not matrix.has_definite_blocks
    assert replace(matrix, corner=np.ones((1, 1))).has_definite_blocks
