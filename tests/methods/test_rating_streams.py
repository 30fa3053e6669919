"""Resampled streams of many systems, whose sums over opponents are expansions, against pairs."""

import numpy as np
import pytest

from bayesrank.methods import rating_streams
from bayesrank.methods.expansions import logistic_expansions, normal_expansions
from bayesrank.methods.ratings import Rating, elo, glicko, trueskill
from bayesrank.methods.trueskill_kernels import win_factor

CALLS = {
    "elo": (elo, {"K": 0.5}),
    "glicko": (glicko, {}),
    "trueskill": (trueskill, {"tau": 0.0033}),
}


def _stream(n_systems, n_questions, n_trials, n_streams, *, spread=1.0, missing=0.0):
    rng = np.random.default_rng(n_systems)
    ability, difficulty = rng.normal(0.0, spread, n_systems), rng.normal(size=(n_questions, 1))
    chance = 1.0 / (1.0 + np.exp(difficulty - ability))
    outcomes = (rng.random((n_trials, n_questions, n_systems)) < chance).astype(np.int8)
    outcomes[rng.random(outcomes.shape) < missing] = -1
    outcomes[..., 3] = outcomes[..., 5]
    trials = rng.integers(0, n_trials, (n_streams, n_trials, n_questions))
    return outcomes, (trials * n_questions + np.arange(n_questions)).reshape(n_streams, -1)


def _both_ways(call, outcomes, order, monkeypatch, **options):
    found = call(outcomes, order, **options)
    monkeypatch.setattr(rating_streams, "_MANY_SYSTEMS", len(outcomes[0, 0]) + 1)
    expected = call(outcomes, order, **options)
    # Means and deviations of Rating, or scores.
    return (x if isinstance(x, Rating) else (x,) for x in (found, expected))


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("tie_policy", ["skip", "draw", "correct_draw_only"])
@pytest.mark.parametrize("name", CALLS)
def test_expansions_change_what_draws_do_not_show(name, tie_policy, missing, monkeypatch):
    call, options = CALLS[name]
    outcomes, order = _stream(70, 300, 12, 3, missing=missing)
    found, expected = _both_ways(
        call, outcomes, order, monkeypatch, tie_policy=tie_policy, **options
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-7 * other.std())
        # The same outcomes give the same ratings to the last bit.
        np.testing.assert_array_equal(one[:, 3], one[:, 5])
    exact_too = name == "trueskill" and tie_policy != "skip"
    assert exact_too == all(
        (one == other).all() for one, other in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("name", CALLS)
def test_streams_that_expansions_cannot_play_go_pair_by_pair(name, monkeypatch):
    call, options = CALLS[name]
    # So few events leave the uncertainty unlike; so far apart no expansion reaches.
    outcomes, order = _stream(66, 20, 2, 3, spread=9.0)
    options = {"K": 300.0} if name == "elo" else options
    found, expected = _both_ways(call, outcomes, order, monkeypatch, **options)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_an_estimate_goes_pair_by_pair(monkeypatch):
    outcomes, _ = _stream(70, 40, 3, 1)
    found, expected = _both_ways(elo, outcomes, None, monkeypatch)
    np.testing.assert_array_equal(next(iter(found)), next(iter(expected)))


def _logistic(z, unlike):
    return 1.0 / (1.0 + np.exp(-z * (1.0 + unlike)))


def test_terms_of_the_logistic_function_are_its_derivatives():
    x = np.linspace(-1.0, 1.0, 21)
    z = x - x[:, np.newaxis]
    step = 1e-5
    chances = [_logistic(z, unlike) for unlike in (-step, 0.0, step)]
    slopes = [chance * (1.0 - chance) for chance in chances]
    expected = (
        chances[1] - 0.5,
        (chances[2] - chances[0]) / (2.0 * step),
        slopes[1],
        (slopes[2] - slopes[0]) / (2.0 * step),
    )
    _compare(logistic_expansions(), x, expected)


def test_terms_of_trueskill_are_derivatives_in_variances():
    x = np.linspace(-1.0, 1.0, 21)
    z = x - x[:, np.newaxis]

    def parts(h, s):
        t = z / np.sqrt(1.0 + h)
        v = np.vectorize(win_factor)(t)
        w = v * (v + t) / (1.0 + h)
        return w / (1.0 - s * w), v / np.sqrt(1.0 + h) / (1.0 - s * w)

    step = 1e-5
    expected = []
    for kind in range(2):
        value = parts(0.0, 0.0)[kind]
        by_h = (parts(step, 0.0)[kind] - parts(-step, 0.0)[kind]) / (2.0 * step)
        by_s = (parts(0.0, step)[kind] - parts(0.0, -step)[kind]) / (2.0 * step)
        expected += [value, by_h, by_s]
    _compare(normal_expansions(), x, expected)


def _compare(expansions, x, expected):
    """Hold the expansions on [-1, 1] to tables (source, target) of the functions."""
    which = int(np.searchsorted(expansions.widths, 1.0))
    places = np.arccos(x / expansions.widths[which])
    basis = np.cos(places[:, np.newaxis] * np.arange(expansions.coefficients.shape[-1]))
    basis[:, expansions.sizes[which] :] = 0.0
    for coefficients, values in zip(expansions.coefficients[which], expected, strict=True):
        np.testing.assert_allclose(basis @ coefficients @ basis.T, values, atol=3e-8)
