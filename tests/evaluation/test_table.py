"""The table of metrics: published values, closed forms, prior evidence, errors."""

import ast
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrank import METHODS, Responses, evaluation, rank
from bayesrank.catalog import DEFAULT_METHOD
from bayesrank.errors import DataError
from bayesrank.evaluation import evaluate
from bayesrank.evaluation.metrics import metric_names, parse_metrics
from bayesrank.method import load_function
from bayesrank.results.decisions import pairwise_decisions

GRADED = np.array([[0, 1, 2, 2, 1], [1, 1, 0, 2, 2]])
GRADED_PRIOR = np.array([[0, 2], [1, 2]])
GRADED_DATA = Responses(GRADED[None], weights=(0, 0.5, 1), prior_outcomes=GRADED_PRIOR)


def test_published_example():
    # The quick start of the reference implementation states both pairs of numbers.
    row = evaluate(GRADED_DATA, "bayes").iloc[0]
    assert (row["mean"], row["sd"]) == (pytest.approx(0.5625), pytest.approx(0.091998, abs=1e-6))
    row = evaluate(GRADED_DATA, "bayes", prior_weight=1).iloc[0]
    assert (row["mean"], row["sd"]) == (pytest.approx(0.575), pytest.approx(0.084275, abs=1e-6))


def test_the_published_average_is_the_posterior_stretched_about_the_prior_mean():
    bayes, avg = evaluate(GRADED_DATA, ["bayes", "avg"], interval="normal").to_dict("records")
    assert (avg["score"], avg["mean"]) == (pytest.approx(0.6), pytest.approx(0.6))
    assert avg["sd"] == pytest.approx(bayes["sd"] * 8 / 5)
    assert avg["lower"] == pytest.approx(0.5 + (bayes["lower"] - 0.5) * 8 / 5, abs=1e-9)


@pytest.mark.parametrize("interval", ["exact", "normal"])
def test_intervals_of_the_average_stay_within_the_weights(interval):
    row = evaluate(np.ones((4, 2), dtype=int), "avg", interval=interval).iloc[0]
    assert row["lower"] < row["upper"] <= 1.0
    assert row["score"] == pytest.approx(1.0)


@pytest.mark.parametrize("n_trials", [1, 3])
def test_the_accuracy_is_that_of_the_leaderboard(n_trials):
    outcomes = np.random.default_rng(n_trials).integers(0, 2, (4, 12, n_trials))
    table = evaluate(Responses(outcomes), ci_prob=0.9)
    result = rank(outcomes, DEFAULT_METHOD, ci_prob=0.9)
    ranking, draws = result["ranking"], result["posterior"]["score"]
    np.testing.assert_array_equal(table["score"], ranking["score"])
    np.testing.assert_array_equal(table["lower"], ranking["score_lower"])
    np.testing.assert_array_equal(table["upper"], ranking["score_upper"])
    np.testing.assert_allclose(table["mean"], draws.mean(("chain", "draw")), rtol=1e-12)
    assert table.attrs["target"] == {DEFAULT_METHOD: result.attrs["target"]}


def test_fractions_have_an_accuracy():
    table = evaluate(Responses([[0.5, 0.25, 1.0], [0.125, 0.5, 0.0]]), "avg")
    np.testing.assert_allclose(table["score"], [1.75 / 3, 0.625 / 3])


def test_own_weights_of_the_average():
    data = Responses([[[0, 1, 2], [2, 2, 1]], [[0, 0, 1], [1, 2, 1]]], weights=(0, 0.5, 1))
    table = evaluate(data, "avg(weights=(0, 0, 1))")
    other = rank(Responses(data.outcomes, weights=(0, 0, 1)), "avg")
    np.testing.assert_array_equal(table["lower"], other["ranking"]["score_lower"])


@pytest.mark.parametrize("metric", ["bayes", "avg"])
@pytest.mark.parametrize("category", [1, 3])
@pytest.mark.parametrize("n_questions", [1, 30])
def test_exact_intervals_never_leave_the_range_of_the_weights(metric, category, n_questions):
    outcomes = np.full((1, n_questions, 2), category)
    data = Responses(outcomes, weights=(0.0, -0.1, 0.05, 1.0))
    row = evaluate(data, metric, ci_prob=0.999).iloc[0]
    rounding = 1e-15
    assert -0.1 - rounding <= row["lower"] < row["upper"] <= 1.0 + rounding


@pytest.mark.parametrize("name", [name for name in metric_names() if METHODS[name].functional])
def test_posterior_moments_by_simulation(name: str):
    options = {
        "threshold_metric": "threshold_weights=(0.2, 0.5, 0.3)",
        "g_pass_at_k_tau": "tau=0.6",
    }
    text = f"{name}({options.get(name, '')}"
    text += "" if name == "threshold_metric" else f"{', ' * (name in options)}k=3"
    text += ", estimator='posterior_mean')"
    right = np.array([0, 2, 4, 1])
    outcomes = (np.arange(4) < right[:, None]).astype(int)
    row = evaluate(outcomes, text).iloc[0]
    rng = np.random.default_rng(0)
    p = rng.beta(1 + right, 5 - right, (100_000, 4))[:, None, :]
    metric = parse_metrics(text)[0]
    assert metric.method.functional is not None
    function = load_function(metric.method.functional)
    if metric.method.data == "binary":
        draws = function(p, None, **metric.functional_options)[:, 0]
    else:
        pair = np.stack([1 - p, p], axis=-1)
        draws = function(pair, np.array([0.0, 1.0]), None, **metric.functional_options)[:, 0]
    assert row["score"] == row["mean"]
    assert row["mean"] == pytest.approx(draws.mean(), abs=2e-3)
    assert row["sd"] == pytest.approx(draws.std(), rel=0.01)
    tails = np.quantile(draws, [0.025, 0.975])
    np.testing.assert_allclose([row["lower"], row["upper"]], tails, atol=4e-3)


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_unbiased_metrics_are_those_of_rank(target: str):
    # One trial or more of every question decides which target is the default.
    n_trials = 3 if target == "benchmark" else 1
    outcomes = np.random.default_rng(4).integers(0, 2, (3, 9, n_trials))
    k = min(n_trials, 2)
    for name in ("pass_hat_k", "max_at_k"):
        label = f"{name}(k={k})"
        table = evaluate(outcomes, label, ci_prob=0.9, random_seed=5)
        result = rank(outcomes, name, k=k, ci_prob=0.9, random_seed=5)
        assert table.attrs["target"] == {label: target} == {label: result.attrs["target"]}
        for column, variable in {"score": "", "lower": "_lower", "upper": "_upper"}.items():
            np.testing.assert_array_equal(table[column], result["ranking"][f"score{variable}"])


def test_best_of_k_graded_answers():
    row = evaluate(GRADED_DATA, "max_at_k(k=2, estimator='posterior_mean')").iloc[0]
    rng = np.random.default_rng(1)
    counts = np.array([[1, 2, 2], [1, 2, 2]])
    p = rng.dirichlet(1.0 + counts[0], (200_000, 2))
    at_most = np.cumsum(p, axis=-1)[..., :2]
    draws = (1 - 0.5 * (at_most**2).sum(axis=-1)).mean(axis=1)
    assert row["mean"] == pytest.approx(draws.mean(), abs=1e-3)
    assert row["sd"] == pytest.approx(draws.std(), rel=0.01)
    np.testing.assert_allclose(
        [row["lower"], row["upper"]], np.quantile(draws, [0.025, 0.975]), atol=5e-3
    )


def test_own_weights_of_a_metric():
    outcomes = Responses([[[0, 1, 2], [2, 2, 1]]], categories=3)
    table = evaluate(outcomes, ["bayes(weights=(0, 0, 1))", "bayes(weights=(0, 1, 1))"])
    np.testing.assert_allclose(table["mean"], [(2 / 6 + 3 / 6) / 2, (4 / 6 + 5 / 6) / 2])


def test_rows_are_by_system_then_metric():
    data = Responses(np.ones((2, 1, 2), dtype=int), systems=["a", "b"])
    table = evaluate(data, ["avg", "bayes"])
    assert table["system"].tolist() == ["a", "a", "b", "b"]
    assert table["metric"].tolist() == ["avg", "bayes"] * 2


def test_unobserved_question_has_its_prior_or_is_left_out():
    data = Responses([[[1, 1], [-1, -1]], [[0, 1], [0, 1]]])
    label = "pass_at_k(k=2, estimator='posterior_mean')"
    table = evaluate(data, ["bayes", "avg", label])
    table = table[table["system"] == "system 1"].set_index("metric")
    assert table.loc["bayes", "mean"] == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert table.loc["avg", "score"] == pytest.approx(1.0)
    assert table.loc[label, "mean"] == pytest.approx(1 - 1 / 4 * 2 / 5)


def test_fractional_prior_weight_counts_as_fractional_trials():
    row = evaluate(GRADED_DATA, "bayes", prior_weight=0.5).iloc[0]
    shapes = np.array([[2.5, 3.0, 3.5], [2.0, 3.5, 3.5]])
    assert row["mean"] == pytest.approx((shapes @ [0, 0.5, 1] / 9).mean())
    rng = np.random.default_rng(2)
    draws = np.mean([rng.dirichlet(s, 200_000) @ [0, 0.5, 1] for s in shapes], axis=0)
    assert row["upper"] == pytest.approx(np.quantile(draws, 0.975), abs=2e-3)


def compare_with_reference(paths: list[Path]) -> int:
    """Hold all metrics of all systems of some cases to their stored values; return how many."""
    checked = 0
    for path in paths:
        case = json.loads(path.read_text())
        bits = np.unpackbits(np.load(path.with_suffix(".npz"))["R"])
        outcomes = bits[: np.prod(case["shape"])].reshape(case["shape"])
        for system, values in case["eval"].items():
            texts = {key: metric_text(key, v, case["shape"][2]) for key, v in values.items()}
            wanted = sorted({text for text in texts.values() if text})
            rows = evaluate(outcomes[int(system)], wanted, interval="normal").set_index("metric")
            # The reference states 90 % intervals of Bayes@N, and 95 % ones of all else.
            bayes = evaluate(outcomes[int(system)], "bayes", interval="normal", ci_prob=0.9)
            for key, value in values.items():
                if text := texts[key]:
                    row = bayes.iloc[0] if key == "bayes_ci" else rows.loc[text]
                    compare(row, f"{path.stem} {system} {key}", value)
                    checked += 1
    return checked


def oracle_files(shared: Path) -> list[Path]:
    return sorted((shared / "oracle" / "cases").glob("*.json"))


def test_reference_values(shared: Path):
    assert compare_with_reference(oracle_files(shared)[::8]) > 1000


@pytest.mark.slow
def test_all_reference_values(shared: Path):
    assert compare_with_reference(oracle_files(shared)) > 14_000


def metric_text(key: str, value: object, n_trials: int) -> str | None:
    """Turn a key such as ``pass_at_k_ci(3)`` into a metric, None for what is not one of ours."""
    name, _, arguments = key.partition("(")
    name = name.removesuffix("_ci")
    if name not in metric_names() or isinstance(value, dict):
        return None
    if not arguments:
        return name
    numbers = ast.literal_eval(f"({arguments[:-1]},)")
    if numbers[0] > n_trials:
        return None
    options = ", ".join(f"{o}={n}" for o, n in zip(("k", "tau"), numbers, strict=False))
    return f"{name}({options})"


def compare(row: pd.Series, key: str, value: float | list[float]) -> None:
    if isinstance(value, float):
        assert row["score"] == pytest.approx(value, abs=1e-10), key
        return
    np.testing.assert_allclose([row["mean"], row["sd"]], value[:2], atol=1e-10, err_msg=key)
    if len(value) == 4:
        # Cut at 0 and 1 there, and here at the range of the metric, less for mG-Pass@k at odd k.
        k = int(key.partition("(")[2].rstrip(")")) if "mg_pass" in key else 0
        ends = np.clip(value[2:], 0, 1 - 1 / k if k % 2 else 1)
        np.testing.assert_allclose([row["lower"], row["upper"]], ends, atol=1e-10, err_msg=key)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("best", "metrics must be among bayes, avg, standardized_accuracy, pass_at_k"),
        ("pass_at_k", "k must be given for pass_at_k"),
        ("pass_at_k(n=2)", "options of pass_at_k must be among: k, estimator; got 'n'"),
        ("bayes(k=2)", "options of bayes must be among: weights; got 'k'"),
        ("pass_at_k(2)", "metrics must have the form"),
        ([3], "metrics must be one or more different names; got"),
        ("__import__('os')", "metrics must have the form"),
        ([], "metrics must be one or more different names"),
        (["avg", "avg"], "metrics must be one or more different names"),
    ],
)
def test_metrics_that_are_none_are_refused(metrics, message: str):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        evaluate([[1, 0]], metrics)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ci_prob": 1.0}, "ci_prob must be between 0 and 1; got 1.0"),
        ({"interval": "wald"}, "interval must be 'exact' or 'normal'; got 'wald'"),
        ({"prior_weight": -1}, "prior_weight must be a number of at least 0; got -1"),
    ],
)
def test_arguments_out_of_range_are_refused(options, message: str):
    with pytest.raises(ValueError, match=message):
        evaluate([[1, 0]], **options)


@pytest.mark.parametrize("name", evaluation.__all__)
def test_tables_are_evaluated_as_what_they_hold(name):
    data = Responses([[[1, 1, 0], [1, 1, 1]], [[0, 1, 0], [0, 0, 1]]])
    function = getattr(evaluation, name)
    assert str(function(data.to_long(), "bayes")) == str(function(data, "bayes"))


def test_data_that_lack_what_is_needed_are_refused():
    with pytest.raises(DataError, match=r"as many questions and trials .* different lengths"):
        evaluate([[1, 0], [1]])
    with pytest.raises(DataError, match="prior_outcomes must be given for prior_weight = 1"):
        evaluate([[1, 0]], prior_weight=1)
    with pytest.raises(DataError, match="weights must be given"):
        evaluate(Responses([[[2, 0]]], categories=3))
    with pytest.raises(DataError, match=r"metrics must give 2 finite weights.* got 'bayes"):
        evaluate([[1, 0]], "bayes(weights=(0, 1, 2))")
    with pytest.raises(DataError, match=r"outcomes must be categories for pass.*: evaluate "):
        evaluate([[0.5, 0.25]], ["avg", "pass_at_k(k=1)"])


@pytest.mark.parametrize("unit", [2.0**515, 2.0**-700])  # near 1e155 and 1e-211
@pytest.mark.parametrize(
    "metric", ["bayes", "max_at_k(k=2)", "max_at_k(k=2, estimator='posterior_mean')"]
)
@pytest.mark.parametrize("worth", [(0.0, 1.5), (-1.0, 0.5, 1.5)])
def test_worths_whose_squares_overflow(metric, worth, unit):
    outcomes = np.random.default_rng(0).integers(0, len(worth), (3, 5, 4))
    columns = ["score", "mean", "sd", "lower", "upper"]
    small, large = (
        evaluate(Responses(outcomes, weights=weights), metric, random_seed=1)[columns].values
        for weights in (worth, np.array(worth) * unit)
    )
    np.testing.assert_allclose(large / unit, small, rtol=1e-9)


@pytest.mark.parametrize("target", ["benchmark", "population"])
@pytest.mark.parametrize(
    ("method", "options"), [("bayes", {"quantile": 0.05}), ("max_at_k", {"k": 2}), ("avg", {})]
)
def test_rankings_by_worths_whose_squares_overflow(method, options, target):
    outcomes, unit = np.random.default_rng(0).integers(0, 2, (3, 5, 4)), 2.0**515
    seeded = {"random_seed": 1, **options}
    small, large = (
        rank(Responses(outcomes, weights=(0, weight)), method, target=target, **seeded)
        for weight in (1.0, unit)
    )
    for name in ("score", "score_lower", "score_upper"):
        found = large["ranking"][name] / unit
        np.testing.assert_allclose(found, small["ranking"][name], rtol=1e-9)
    np.testing.assert_array_equal(large["ranking"]["resolved"], small["ranking"]["resolved"])
    sd = [pairwise_decisions(tree)["z"] for tree in (small, large)]
    np.testing.assert_allclose(*sd, rtol=1e-9)


def test_metrics_are_split_at_commas_as_on_the_command_line():
    table = evaluate([[1, 1, 0], [1, 0, 0]], "bayes, pass_at_k(k=2)")
    assert table["metric"].tolist() == ["bayes", "pass_at_k(k=2)"]
