"""Chances and log normalisers of runs, against sums over cells."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.gradient import verify_grad
from scipy.special import expit

from bayesrank.models.answer_chances import answer_arrays, answer_chances

PYTHON = Mode(linker="py", optimizer="fast_compile")
EVERY = np.zeros((0, 0))


def mask(n_questions: int, n_runs: int) -> np.ndarray:
    return (np.random.default_rng(2).random((n_questions, n_runs)) < 0.7).astype(float)


@pytest.mark.parametrize("asked", [EVERY, mask(40, 700)], ids=["every", "some"])
@pytest.mark.parametrize("spread", [1.0, 30.0, 90.0])
def test_sums_are_those_of_the_cells(asked, spread):
    """More runs than a block, and products of many factors that pass the largest number."""
    rng = np.random.default_rng(0)
    ability, easiness = spread * rng.normal(size=700), spread * rng.normal(size=40)
    logs, expected, chances = answer_arrays(ability, easiness, asked)
    gap = easiness[:, None] + ability
    weight = asked if asked.size else np.ones_like(gap)
    normaliser = (weight * np.logaddexp(0, gap)).sum(axis=0)
    # One plus the odds keeps what is above rounding of one.
    np.testing.assert_allclose(logs, normaliser, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(chances, weight * expit(gap), rtol=1e-12)
    np.testing.assert_allclose(expected, (weight * expit(gap)).sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("asked", [EVERY, mask(3, 5)], ids=["every", "some"])
def test_gradients_are_differences_twice(asked):
    rng = np.random.default_rng(1)
    points = [rng.normal(size=5), rng.normal(size=3)]
    weight = pt.as_tensor(rng.normal(size=5))

    def value(ability, easiness):
        return (weight * answer_chances(ability, easiness, asked)[0]).sum()

    def slopes(ability, easiness):
        by_ability, by_easiness = pytensor.grad(value(ability, easiness), [ability, easiness])
        return (by_ability**2).sum() + (by_easiness**3).sum()

    for function in (value, slopes):
        verify_grad(function, points, rng=rng, mode=PYTHON)
