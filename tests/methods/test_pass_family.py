"""Metrics of k trials: hand-counted values, identities between them, and posterior twins."""

import inspect
from fractions import Fraction
from itertools import combinations
from math import ceil, comb

import numpy as np
import pytest

from bayesrank.methods import pass_family
from bayesrank.methods.pass_family import (
    auc_at_k,
    auc_at_k_probability,
    g_pass_at_k_tau,
    g_pass_at_k_tau_probability,
    maj_at_k,
    maj_at_k_probability,
    mg_pass_at_k,
    mg_pass_at_k_probability,
    pass_at_k,
    pass_at_k_probability,
    pass_hat_k,
    pass_hat_k_probability,
    threshold_metric,
    threshold_metric_probability,
)

METRICS = [
    "pass_at_k",
    "pass_hat_k",
    "g_pass_at_k_tau",
    "mg_pass_at_k",
    "maj_at_k",
    "auc_at_k",
    "threshold_metric",
]
N = 7
BANK = np.arange(N + 1)[:, None], np.full((N + 1, 1), N)


def subsets_right(k: int) -> list[np.ndarray]:
    """List, for 0 to N right trials of N, how many of every k trials are right."""
    chosen = [set(subset) for subset in combinations(range(N), k)]
    return [np.array([sum(t < c for t in s) for s in chosen]) for c in range(N + 1)]


@pytest.mark.parametrize("k", range(1, N + 1))
def test_metrics_equal_their_definitions_by_enumeration(k: int):
    right = subsets_right(k)
    expected = {
        pass_at_k: [(x >= 1).mean() for x in right],
        pass_hat_k: [(x == k).mean() for x in right],
        maj_at_k: [(2 * x > k).mean() for x in right],
        mg_pass_at_k: [2.0 / k * np.maximum(x - ceil(k / 2), 0).mean() for x in right],
    }
    got = {metric: metric(*BANK, k=k) for metric in expected}
    np.testing.assert_allclose(list(got.values()), list(expected.values()), atol=1e-14)


@pytest.mark.parametrize("tau", [0.0, 0.2, 0.5, 0.6, 1.0])
@pytest.mark.parametrize("k", [1, 3, 5, 7])
def test_g_pass_equals_its_definition_by_enumeration(k: int, tau: float):
    threshold = max(1, ceil(round(tau * k, 9)))
    expected = [(x >= threshold).mean() for x in subsets_right(k)]
    np.testing.assert_allclose(g_pass_at_k_tau(*BANK, k=k, tau=tau), expected, atol=1e-14)


@pytest.mark.parametrize("k", range(1, N + 1))
def test_the_exact_integral_averages_g_pass_over_shares(k: int):
    # G-Pass@k is constant between multiples of 1/k, so midpoints of a finer grid are exact.
    shares = 0.5 + (np.arange(4 * k) + 0.5) / (8 * k)
    mean = np.mean([g_pass_at_k_tau(*BANK, k=k, tau=tau) for tau in shares], axis=0)
    np.testing.assert_allclose(mg_pass_at_k(*BANK, k=k, exact_integral=True), mean, atol=1e-14)


@pytest.mark.parametrize("k", range(2, N + 1))
def test_auc_is_the_trapezoid_of_the_pass_curve(k: int):
    curve = np.array([pass_at_k(*BANK, k=j) for j in range(1, k + 1)])
    trapezoid = (curve[:-1] + curve[1:]).sum(axis=0) / 2.0 / (k - 1)
    np.testing.assert_allclose(auc_at_k(*BANK, k=k), trapezoid, atol=1e-14)


def test_auc_at_1_is_pass_at_1():
    assert (auc_at_k(*BANK, k=1) == pass_at_k(*BANK, k=1)).all()


def test_a_share_times_k_that_is_whole_in_decimals_is_whole():
    # 0.07 * 100 is 7.000000000000001 in binary.
    correct, trials = np.array([[7]]), np.array([[100]])
    assert g_pass_at_k_tau(correct, trials, k=100, tau=0.07).tolist() == [1.0]


def test_identities_between_metrics():
    rng = np.random.default_rng(0)
    correct, trials = rng.binomial(9, 0.6, (5, 8)), np.full((5, 8), 9)
    k = 4
    np.testing.assert_allclose(
        g_pass_at_k_tau(correct, trials, k=k, tau=0.0), pass_at_k(correct, trials, k=k)
    )
    np.testing.assert_allclose(
        g_pass_at_k_tau(correct, trials, k=k, tau=1.0), pass_hat_k(correct, trials, k=k)
    )
    np.testing.assert_allclose(
        mg_pass_at_k(correct, trials, k=2), pass_hat_k(correct, trials, k=2), rtol=1e-13
    )
    np.testing.assert_allclose(
        mg_pass_at_k(correct, trials, k=k), mg_pass_at_k(correct, trials, k=k, exact_integral=True)
    )
    np.testing.assert_allclose(
        threshold_metric(correct, trials, threshold_weights=[1 / k] * k), (correct / 9).mean(axis=1)
    )


@pytest.mark.parametrize("k", [1, 3, 5])
def test_published_grid_gives_a_perfect_system_less_than_one_at_odd_k(k: int):
    perfect = np.array([[5]]), np.array([[5]])
    np.testing.assert_allclose(mg_pass_at_k(*perfect, k=k), (k - 1) / k, atol=1e-15)
    assert mg_pass_at_k(*perfect, k=k, exact_integral=True).tolist() == [1.0]


@pytest.mark.parametrize("name", METRICS)
def test_posterior_twin_has_the_same_options(name: str):
    def options(function):
        parameters = inspect.signature(function).parameters.values()
        return [(p.name, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY]

    estimate, twin = getattr(pass_family, name), getattr(pass_family, f"{name}_probability")
    assert options(estimate) == [*options(twin), ("estimator", "unbiased")]


def test_posterior_twins_by_closed_form():
    p = np.array([[0.3, 0.9]])
    np.testing.assert_allclose(
        pass_at_k_probability(p, k=5), [(1 - (1 - p) ** 5).mean()], rtol=1e-14
    )
    np.testing.assert_allclose(pass_hat_k_probability(p, k=5), [(p**5).mean()], rtol=1e-14)
    np.testing.assert_allclose(
        maj_at_k_probability(p, k=3), [(p**3 + 3 * p**2 * (1 - p)).mean()], rtol=1e-14
    )
    np.testing.assert_allclose(
        g_pass_at_k_tau_probability(p, k=2, tau=0.6), [(p**2).mean()], rtol=1e-14
    )
    np.testing.assert_allclose(
        mg_pass_at_k_probability(p, k=3, exact_integral=True),
        [(p**3 + p**2 * (1 - p)).mean()],
        rtol=1e-14,
    )
    curve = [pass_at_k_probability(p, k=j) for j in (1, 2, 3)]
    np.testing.assert_allclose(
        auc_at_k_probability(p, k=3), (curve[0] + 2 * curve[1] + curve[2]) / 4, rtol=1e-14
    )
    np.testing.assert_allclose(
        threshold_metric_probability(p, threshold_weights=(0.5, 0.5)), [p.mean()], rtol=1e-14
    )


def test_posterior_mean_differs_from_the_unbiased_estimate():
    # Beta(1 + 4, 1 + 0): E p^2 = 5/7 while all four observed trials are right.
    bank = np.array([[4]]), np.array([[4]])
    assert pass_hat_k(*bank, k=2).tolist() == [1.0]
    posterior = pass_hat_k(*bank, k=2, estimator="posterior_mean")
    np.testing.assert_allclose(posterior, [5 / 7], rtol=1e-14)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("k", [1, 3, 12])
def test_posterior_means_are_those_of_the_twin(name: str, k: int):
    # A functional is a polynomial of degree k, the density one of degree N: the rule is exact.
    x, w = np.polynomial.legendre.leggauss(20)
    p, right, n = (x + 1) / 2, np.arange(6.0), 5.0
    more = {"g_pass_at_k_tau": {"tau": 0.6}}.get(name, {})
    options = {"threshold_weights": np.arange(k) - 1.5} if "threshold" in name else {"k": k, **more}
    density = w * p ** right[:, None] * (1 - p) ** (n - right)[:, None]
    twin = getattr(pass_family, f"{name}_probability")(p[:, None, None], **options)[:, 0]
    expected = density @ twin / density.sum(axis=1)
    bank = right[:, None, None], np.full((6, 1, 1), n)
    found = getattr(pass_family, name)(*bank, estimator="posterior_mean", **options)[:, 0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_posterior_means_leave_out_what_was_not_observed():
    correct, trials = np.array([[1.5, 0.0]]), np.array([[2.5, 0.0]])
    found = pass_at_k(correct, trials, k=1, estimator="posterior_mean")
    np.testing.assert_allclose(found, [2.5 / 4.5], rtol=1e-14)


def test_estimators_that_are_none_are_refused():
    with pytest.raises(
        ValueError, match="estimator must be one of unbiased, posterior_mean; got 'b'"
    ):
        pass_at_k(np.ones((1, 1)), np.ones((1, 1)), k=1, estimator="b")  # type: ignore[arg-type]


def test_weights_count_as_repeated_questions():
    rng = np.random.default_rng(3)
    correct, trials = rng.binomial(6, 0.5, (4, 5)), np.full((4, 5), 6)
    counts = np.array([2, 0, 1, 3, 1])
    repeated = np.repeat(correct, counts, axis=1), np.repeat(trials, counts, axis=1)
    np.testing.assert_allclose(
        auc_at_k(correct, trials, counts.astype(float), k=3), auc_at_k(*repeated, k=3), rtol=1e-14
    )


@pytest.mark.parametrize("tau", [-0.1, 1.1, np.nan])
def test_a_share_outside_the_unit_interval_is_refused(tau: float):
    with pytest.raises(ValueError, match=r"tau must be in \[0, 1\]; got"):
        g_pass_at_k_tau(*BANK, k=2, tau=tau)


def test_k_beyond_the_trials_is_refused():
    with pytest.raises(ValueError, match="k must be at most the number of trials"):
        pass_at_k(*BANK, k=N + 1)


@pytest.mark.parametrize("n_right", [1, 2, 100, 500_000, 999_997])
@pytest.mark.parametrize("k", [1, 2, 8])
def test_a_million_trials_leave_no_rounding_errors(n_right, k):
    n = 1_000_000
    correct, trials = np.array([[n_right]]), np.array([[n]])
    chance = [
        Fraction(comb(n_right, x) * comb(n - n_right, k - x), comb(n, k)) for x in range(k + 1)
    ]
    for found, expected in (
        (pass_at_k(correct, trials, k=k), 1 - chance[0]),
        (pass_hat_k(correct, trials, k=k), chance[k]),
        (g_pass_at_k_tau(correct, trials, k=k, tau=0.5), sum(chance[-(-k // 2) :])),
    ):
        assert found[0] == pytest.approx(float(expected), rel=1e-12, abs=0.0)
