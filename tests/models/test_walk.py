"""Increments of walks: their density, draws, and the coordinates that they are sampled in."""

import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import Mode
from scipy import stats

from bayesrank.inference.graph.bound_model import bind_model
from bayesrank.models.walk import path_matrix, walk_increments

PYTHON = Mode(linker="py", optimizer="fast_compile")
DURATIONS = np.array([0.1, 0.3, 0.6])
COORDS = {"system": list("ab"), "step": [2, 3, 4]}
SLOPES = np.array([[1.0, -2.0, 0.5, 0.7], [-30.0, 10.0, 0.0, 15.0]])


def build(information=(2.0, 50.0)) -> pm.Model:
    with pm.Model(coords=COORDS) as model:
        scale = pm.HalfNormal("scale", 1.0)
        walk_increments(
            "x", scale, DURATIONS, np.array(information), SLOPES, dims=("system", "step")
        )
    return model


def test_paths_are_deviations_from_their_mean():
    steps = np.array([0.5, -1.0, 2.0])
    path = np.concatenate([[0.0], np.cumsum(steps)])
    np.testing.assert_allclose(path_matrix(4) @ steps, path - path.mean(), atol=1e-12)


def test_increments_are_normal():
    bound = bind_model(build(), "map", backend="python")
    x = np.random.default_rng(0).normal(size=7)
    values = {k: v[0] for k, v in bound.named(x[None]).items()}
    expected = stats.halfnorm.logpdf(values["scale"])
    expected += stats.norm.logpdf(values["x"], 0, values["scale"] * np.sqrt(DURATIONS)).sum()
    assert bound.logp_and_gradient(x)[0] == pytest.approx(expected, rel=1e-10)


def test_the_jacobian_is_that_of_the_coordinates():
    model = build()
    with_jacobian, without = (bind_model(model, k, backend="python") for k in ("nuts", "map"))
    x = np.random.default_rng(1).normal(size=7)
    found = with_jacobian.logp_and_gradient(x)[0] - without.logp_and_gradient(x)[0]
    step = 1e-5
    ends = with_jacobian.named(np.concatenate([x + step * np.eye(7), x - step * np.eye(7)]))
    flat = np.concatenate([ends["scale"][:, None], ends["x"].reshape(14, -1)], axis=1)
    slopes = (flat[:7] - flat[7:]) / (2 * step)
    assert found == pytest.approx(np.linalg.slogdet(slopes)[1], abs=1e-6)


def test_the_transform_is_undone():
    model = build()
    value = np.random.default_rng(2).normal(size=(2, 3))
    transform = model.rvs_to_transforms[model["x"]]
    inputs = model["x"].owner.inputs
    there = transform.forward(value, *inputs)
    back = pm.compile([model["scale"]], transform.backward(there, *inputs), mode=PYTHON)
    np.testing.assert_allclose(back(0.7), value, atol=1e-12)


@pytest.mark.parametrize("log_scale", [-4.0, 0.0, 1.0])
def test_the_coordinates_of_a_gaussian_posterior_are_standard(log_scale):
    """Where all times are equally informative, the posterior is N(0, I), whatever the scale."""
    information, y = 30.0, np.random.default_rng(3).normal(size=(2, 4))
    with pm.Model(coords=COORDS) as model:
        scale = pm.HalfNormal("scale", 1.0)
        steps = walk_increments(
            "x", scale, DURATIONS, np.full(2, information), information * y, dims=("system", "step")
        )
        level = pm.Flat("level", shape=(2, 1))
        pm.Normal("y", level + steps @ path_matrix(4).T, information**-0.5, observed=y)
    bound = bind_model(model, "nuts", backend="python")
    where = bound.slices()
    x = np.ones(bound.size)
    x[where["scale"]], x[where["x"]] = log_scale, 0.0
    np.testing.assert_allclose(bound.logp_and_gradient(x)[1][where["x"]], 0.0, atol=1e-8)
    curvature = bound.hessian(x)[where["x"]]
    np.testing.assert_allclose(curvature[:, where["x"]], -np.eye(6), atol=1e-8)
    np.testing.assert_allclose(curvature[:, where["scale"]], 0.0, atol=1e-8)


def test_draws_are_independent():
    draws = pm.draw(build()["x"], draws=4000, random_seed=1, mode=PYTHON)
    assert draws.shape == (4000, 2, 3)
    correlation = np.corrcoef(draws.reshape(4000, -1).T)
    np.testing.assert_allclose(correlation, np.eye(6), atol=0.06)
    share = draws.std(axis=0) / np.sqrt(DURATIONS)
    np.testing.assert_allclose(share, share.mean(), rtol=0.1)
