"""NUTS at its default settings finds the parameters of every model of votes."""

import numpy as np
import pytest

from bayesrank import Battles, rank

NAMES = np.array(list("abcde"))
N_JUDGES, N_STATES = 6, 4
CUTS = np.array([0.4, 1.5])
TIE, BAR, SLOPE, STEP = 0.6, -1.2, 1.0, 0.15


def a_log(kind, n=750, seed=3):
    """Draw votes as a model says, and return them with the parameters."""
    rng = np.random.default_rng(seed)
    score = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
    state = np.sort(rng.integers(N_STATES, size=n))
    states = np.tile(score, (N_STATES, 1))
    if kind in ("group_score", "history"):
        steps = STEP * rng.normal(size=states.shape)
        states = states + (np.cumsum(steps, axis=0) if kind == "history" else steps)
        states -= states.mean(axis=1, keepdims=True)
    judge = rng.permutation(n) % N_JUDGES
    first = rng.integers(5, size=n)
    second = (first + 1 + rng.integers(4, size=n)) % 5
    length = rng.normal(size=n)
    ahead = states[state, first] - states[state, second] + 0.3 + 0.5 * length
    if kind == "reliability":
        reliability, bias = np.exp(0.4 * rng.normal(size=N_JUDGES)), 0.4 * rng.normal(size=N_JUDGES)
        ahead = reliability[judge] * ahead + bias[judge]
    if kind in ("threshold", "reliability"):
        cuts = np.concatenate([-CUTS[::-1], CUTS])
        grade = (ahead[:, np.newaxis] + rng.logistic(size=(n, 1)) > cuts).sum(axis=1)
        words = np.array(["B>>A", "B>A", "tie", "A>B", "A>>B"])[grade]
    else:
        level = 0.5 * (score[first] + score[second])
        neither = BAR - SLOPE * level if kind == "above_bar" else np.full(n, -np.inf)
        weights = np.stack([ahead / 2, -ahead / 2, np.full(n, np.log(TIE)), neither])
        shares = np.exp(weights) / np.exp(weights).sum(axis=0)
        drawn = (rng.random(n) > np.cumsum(shares, axis=0)).sum(axis=0)
        words = np.array(["A>B", "B>A", "tie", "both_bad"])[drawn]
    data = Battles(
        NAMES[first],
        NAMES[second],
        words,
        systems=NAMES.tolist(),
        judge=judge,
        group=state,
        time=state * 30 * 86_400.0 + np.linspace(0.0, 1.0, n),
        covariates={"length": length},
    )
    truth = {"score": score, "effect": np.array([0.3, 0.5 * length.std()])}
    truth["tie_strength"] = np.array(TIE)
    if kind in ("group_score", "history"):
        truth["score"] = states[-1] if kind == "history" else states.mean(axis=0)
        truth[kind] = states.T
    elif kind == "above_bar":
        truth |= {"bar": np.array(BAR), "bar_slope": np.array(SLOPE)}
    else:
        del truth["tie_strength"]
        truth["threshold"] = CUTS
    if kind == "reliability":  # judges have no mean of their own in `score` and `effect`
        truth = {"threshold": CUTS, "reliability": reliability, "position_bias": bias}
    return data, truth


@pytest.mark.parametrize(
    ("method", "kind", "options"),
    [
        ("cumulative_logit", "threshold", {}),
        ("cumulative_logit", "reliability", {"raters": "judge"}),
        ("davidson_outside", "above_bar", {}),
        ("hierarchical_comparisons", "group_score", {}),
        ("dynamic_comparisons", "history", {"period": 30}),
    ],
)
def test_parameters_are_recovered_without_divergences(method, kind, options):
    data, truth = a_log(kind)
    options = options | {"formula": "length", "calibration": "none", "log_likelihood": False}
    # That R-hat is below 1.01 is part of it: more would be a warning, hence an error here.
    tree = rank(data, method, backend="nuts", random_seed=1, **options)
    assert not tree["sample_stats"]["diverging"].any()
    for name, expected in truth.items():
        drawn = tree["posterior"][name]
        if "rater" in drawn.dims:
            drawn = drawn.sel(rater=[str(number) for number in range(N_JUDGES)])
        values = drawn.values.reshape(-1, *expected.shape)
        z = (values.mean(axis=0) - expected) / values.std(axis=0)
        assert np.abs(z).max() < 4.0, name
        assert (z**2).mean() < 4.0, name
        assert np.all(values.std(axis=0) < 0.5), name  # votes tell


@pytest.mark.parametrize("seed", [1, 2])
def test_groups_that_are_alike_bring_no_divergences(seed):
    # With a sampler on the logarithm of the scale, some steps diverged on these votes.
    rng, n = np.random.default_rng(1), 400
    first = rng.integers(5, size=n)
    second = (first + rng.integers(1, 5, size=n)) % 5
    score = np.linspace(1.0, -1.0, 5)
    lead = score[first] - score[second] + rng.logistic(size=n)
    words = np.array(["B>>A", "B>A", "tie", "A>B", "A>>B"])[
        (lead[:, np.newaxis] > [-1.5, -0.4, 0.4, 1.5]).sum(axis=1)
    ]
    words = np.where((words == "tie") & (rng.random(n) < 0.5), "both_bad", words)
    columns = {"judge": rng.integers(20, size=n), "group": rng.choice(["x", "y", "z"], n)}
    data = Battles(NAMES[first], NAMES[second], words, systems=NAMES.tolist(), **columns)
    options = {"calibration": "none", "log_likelihood": False}
    tree = rank(data, "hierarchical_comparisons", backend="nuts", random_seed=seed, **options)
    assert not tree["sample_stats"]["diverging"].any()
    # The scale may be 0.
    assert np.quantile(tree["posterior"]["group_sd"], 0.05) < 0.1
