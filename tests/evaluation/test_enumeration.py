"""Every metric of k trials against its definition, by going through all subsets of all banks."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, product
from math import ceil, factorial

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.catalog import DEFAULT_METHOD
from bayesrank.evaluation import evaluate
from bayesrank.evaluation.metrics import metric_names, parse_metrics
from bayesrank.evaluation.table import metric_estimates

LARGEST_BANK = 8
BANKS = [(n, k) for n in range(1, LARGEST_BANK + 1) for k in range(1, n + 1)]
THRESHOLD_WEIGHTS = (0.5, -0.25, 0.0, 1.0, 0.125, -2.0, 3.0, 0.25)
WEIGHTS = (0.25, 1.0, 0.0)


def payoffs(k: int) -> dict[str, Callable[[int], float]]:
    """Return what x right answers of k are worth, by metric."""
    schedule = THRESHOLD_WEIGHTS[:k]
    return {
        f"pass_at_k(k={k})": lambda x: float(x >= 1),
        f"pass_hat_k(k={k})": lambda x: float(x == k),
        f"g_pass_at_k_tau(k={k}, tau=0.0)": lambda x: float(x >= 1),
        f"g_pass_at_k_tau(k={k}, tau=0.6)": lambda x: float(x >= ceil(Fraction(3, 5) * k)),
        f"mg_pass_at_k(k={k})": lambda x: 2 / k * max(x - ceil(k / 2), 0),
        f"mg_pass_at_k(k={k}, exact_integral=True)": lambda x: max(2 * x / k - 1, 0.0),
        f"maj_at_k(k={k})": lambda x: float(2 * x > k),
        f"auc_at_k(k={k})": lambda x: area_below_pass_curve(x, k),
        f"threshold_metric(threshold_weights={schedule})": lambda x: sum(schedule[:x]),
    }


def area_below_pass_curve(right: int, k: int) -> float:
    """Return the mean of the trapezoids of pass@1, ..., pass@k of k answers."""
    answers = [True] * right + [False] * (k - right)
    curve = [np.mean([any(s) for s in combinations(answers, j)]) for j in range(1, k + 1)]
    return float(np.mean([(a + b) / 2 for a, b in pairwise(curve)] or curve))


def test_every_metric_of_k_trials_is_enumerated():
    named = {text.partition("(")[0] for text in payoffs(1)} | {"max_at_k", "bayes", "avg"}
    assert named == set(metric_names()) - {DEFAULT_METHOD}


@pytest.mark.parametrize(("n", "k"), BANKS)
def test_estimates_average_over_all_subsets(n: int, k: int):
    # A system for every number of right answers.
    data = Responses((np.arange(n) < np.arange(n + 1)[:, None, None]).astype(int))
    wanted = payoffs(k)
    table = evaluate(data, list(wanted), interval="normal")
    subsets = list(combinations(range(n), k))
    for text, payoff in wanted.items():
        right = [[sum(trial < c for trial in s) for s in subsets] for c in range(n + 1)]
        expected = [np.mean([payoff(x) for x in counts]) for counts in right]
        got = table.loc[table["metric"] == text, "score"]
        np.testing.assert_allclose(got, expected, atol=1e-13, err_msg=text)


@pytest.mark.parametrize("k", range(1, LARGEST_BANK + 1))
def test_posterior_means_average_over_all_new_answers(k: int):
    n, right = LARGEST_BANK, 5
    wanted = payoffs(k)
    data = Responses([[[1] * right + [0] * (n - right)]])
    table = evaluate(data, list(wanted), interval="normal").set_index("metric")
    # Polya's urn: one ball each, and one of the colour of every answer seen.
    chance = [
        sum(
            urn_probability(answers, right, n - right)
            for answers in product((0, 1), repeat=k)
            if sum(answers) == x
        )
        for x in range(k + 1)
    ]
    assert sum(chance) == 1
    for text, payoff in wanted.items():
        expected = sum(float(c) * payoff(x) for x, c in enumerate(chance))
        assert table.loc[text, "mean"] == pytest.approx(expected, abs=1e-12), text


def urn_probability(answers: tuple[int, ...], right: int, wrong: int) -> Fraction:
    probability, balls = Fraction(1), [wrong + 1, right + 1]
    for answer in answers:
        probability *= Fraction(balls[answer], sum(balls))
        balls[answer] += 1
    return probability


@pytest.mark.parametrize("n", range(1, LARGEST_BANK + 1))
def test_best_of_k_averages_over_all_subsets(n: int):
    banks = list(combinations_with_replacement(range(3), n))
    assert len(banks) == factorial(n + 2) // factorial(n) // 2
    data = Responses([[bank] for bank in banks], weights=WEIGHTS)
    metrics = [f"max_at_k(k={k})" for k in range(1, n + 1)]
    estimates = [
        [np.mean([max(WEIGHTS[c] for c in s) for s in combinations(bank, k)]) for bank in banks]
        for k in range(1, n + 1)
    ]
    for text, expected in zip(metrics, estimates, strict=True):
        got = metric_estimates(parse_metrics(text)[0], data)
        np.testing.assert_allclose(got, expected, atol=1e-13, err_msg=text)
