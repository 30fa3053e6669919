"""Runs that vary more than independent trials: exact moments, rates of alarms, what is named."""

from itertools import permutations, product

import numpy as np
import pytest

from bayesrank import Responses, rank
from bayesrank.checking import check
from bayesrank.checking.runs import _runs, has_runs, run_effects
from bayesrank.datasets import load_olympiad


def tensors(shape, seed, *, level=0.0, lower_by=0.0, missing=0.0, n=100):
    """Yield outcomes of a Rasch model, and the system of which a quarter of the runs is worse."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        logit = level + rng.normal(size=(shape[0], 1)) - rng.normal(size=shape[1])
        chances = np.repeat(1 / (1 + np.exp(-logit))[..., np.newaxis], shape[2], axis=-1)
        system = int(rng.integers(shape[0]))
        worse = rng.permutation(shape[2])[: shape[2] // 4]
        chances[system][:, worse] = np.maximum(chances[system][:, worse] - lower_by, 0)
        outcomes = (rng.random(shape) < chances).astype(int)
        outcomes[rng.random(shape) < missing] = -1
        yield Responses(outcomes), f"system {system + 1}"


def rate(shape, seed, **options):
    """Return the share of tensors in which the right system, or without one any, is named."""
    effect = options.get("lower_by", 0.0) > 0
    hits = 0
    for number, (data, system) in enumerate(tensors(shape, seed, **options)):
        named = {one.system for one in run_effects(data, random_seed=number)}
        hits += system in named if effect else bool(named)
    return hits / options.get("n", 100)


# The statistic against all permutations


def all_statistics(values, seen):
    """Return the sum of squared run totals for every permutation of observed trials."""
    rows = []
    for row, there in zip(values, seen, strict=True):
        deviations = np.where(there, row - row[there].mean(), 0.0)
        places = np.flatnonzero(there)
        moved = []
        for order in permutations(places):
            new = np.zeros(len(row))
            new[places] = deviations[list(order)]
            moved.append(new)
        rows.append(moved)
    return np.array([(sum(choice) ** 2).sum() for choice in product(*rows)])


@pytest.mark.parametrize("hole", [False, True])
@pytest.mark.parametrize("scores", [False, True])
def test_moments_and_p_values_are_those_of_all_permutations(hole, scores):
    rng = np.random.default_rng(3)
    values = np.array([[1.0, 0, 0, 1], [1, 1, 0, 1], [0, 0, 0, 1]])
    if scores:
        values = rng.random((3, 4))
    seen = np.ones((3, 4), dtype=bool)
    seen[1, 2] = not hole
    runs = _runs(np.where(seen, values, 0.0), seen)
    every = all_statistics(values, seen)
    assert runs.squares.sum() == pytest.approx(every.mean())
    from scipy.stats import gamma

    mean, variance = every.mean(), every.var()
    shape = mean**2 / variance
    expected = gamma.sf(runs.statistic, shape, scale=variance / mean)
    assert runs.chi_squared_p() == pytest.approx(expected)
    exact = (every >= runs.statistic * (1 - 1e-9)).mean()
    assert runs.permutation_p(20_000, rng) == pytest.approx(exact, abs=0.02)


def test_standard_deviations_are_those_of_means_of_runs():
    rng = np.random.default_rng(0)
    outcomes = (rng.random((40, 9)) < 0.5).astype(float)
    observed, expected = _runs(outcomes, np.ones((40, 9), dtype=bool)).spread()
    assert observed == pytest.approx(outcomes.mean(axis=0).std(ddof=1))
    assert expected == pytest.approx(outcomes.var(axis=1, ddof=1).sum() ** 0.5 / 40)


def test_one_question_tells_nothing_of_runs():
    outcomes = np.zeros((2, 5, 8), dtype=int)
    outcomes[:, 0, :3] = 1
    assert run_effects(Responses(outcomes)) == []


# How often, on data of several sizes


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((20, 30, 16), {}),
        ((8, 40, 4), {}),
        ((20, 30, 16), {"level": 4.0}),  # hardly anything is wrong: totals have heavy tails
        ((6, 12, 24), {"missing": 0.2}),
    ],
)
def test_independent_trials_are_rarely_flagged(shape, options):
    # 5 % is promised; of 200 tensors with that rate 10 or fewer are flagged in 58 %, 18 in 99 %.
    assert rate(shape, 1, n=200, **options) <= 0.09


@pytest.mark.parametrize("shape", [(20, 30, 16), (5, 60, 16), (8, 120, 8)])
def test_runs_that_fail_more_often_are_found(shape):
    assert rate(shape, 2, lower_by=0.35) >= 0.8


@pytest.mark.slow
def test_the_promised_rates_at_the_promised_design():
    assert rate((20, 30, 16), 3, n=1000) <= 0.05
    assert rate((20, 30, 16), 4, lower_by=0.35, n=1000) >= 0.8


def test_two_hundred_systems_are_tested_together():
    assert rate((200, 20, 5), 5, n=40) <= 0.1


# What is named, and said


@pytest.mark.parametrize("benchmark", ["AIME'24", "AIME'25"])
def test_the_bundled_example_has_them_where_the_table_does(benchmark):
    (found,) = run_effects(load_olympiad(benchmark))
    assert found.system == "gpt-oss-low (sim)"
    published = {"AIME'24": 0.130, "AIME'25": 0.142}[benchmark]
    assert found.observed == pytest.approx(published, abs=0.004)
    assert found.observed > 2 * found.expected


@pytest.mark.parametrize("benchmark", ["HMMT'25", "BrUMO'25"])
def test_the_bundled_example_has_none_elsewhere(benchmark):
    assert run_effects(load_olympiad(benchmark)) == []


def test_groups_of_questions_are_tested_by_themselves():
    found = {one.group for one in run_effects(load_olympiad())}
    assert found == {"AIME'24", "AIME'25", None}


def test_check_names_the_system_the_sizes_and_the_remedy():
    data = load_olympiad("AIME'24")
    report = check(rank(data, "avg", random_seed=1), data)
    (found,) = report.about("runs")
    assert found.verdict == "bad"
    assert "gpt-oss-low (sim)" in found.sentence
    assert "standard deviation of 0.131, independent trials 0.0634" in found.sentence
    assert "unit='run', for likelihoods and resampled scores" in found.sentence
    (run,) = found.numbers["runs"]
    assert run["run_sd"] / run["independent_sd"] == pytest.approx(found.numbers["ratio"])
    (calibration,) = report.about("coverage")
    assert calibration.verdict == "not measured"
    assert "runs vary more than the simulated ones" in calibration.sentence


def test_the_remedy_gives_wider_intervals_and_is_known():
    data = load_olympiad("AIME'24")
    by_trial, by_run = (rank(data, unit=unit, random_seed=1) for unit in ("trial", "run"))
    width = [
        (one["ranking"]["score_upper"] - one["ranking"]["score_lower"])
        .sel(system="gpt-oss-low (sim)")
        .item()
        for one in (by_trial, by_run)
    ]
    assert width[1] > 1.6 * width[0]
    assert not check(by_trial, data).trustworthy
    report = check(by_run, data)
    (found,) = report.about("runs")
    assert found.verdict == "good"
    assert "The intervals take the run as the unit." in found.sentence
    assert report.trustworthy


def test_standard_deviations_are_in_the_units_of_the_scale():
    rng = np.random.default_rng(0)
    scores = np.clip(rng.normal(60, 10, (3, 40, 8)), 0, 100)
    scores[1, :, 2] -= 15
    (found,) = run_effects(Responses(scores, scale=(0, 100)))
    means = scores[1].mean(axis=0)
    assert found.observed == pytest.approx(means.std(ddof=1))


@pytest.mark.parametrize("shape", [(3, 20, 1), (1, 1, 1)])
def test_single_trials_are_not_judged(shape):
    data = Responses(np.random.default_rng(0).integers(0, 2, shape))
    assert not has_runs(data)


def test_sorted_trials_are_not_judged():
    counts = np.random.default_rng(0).integers(1, 5, (4, 20))
    outcomes = (np.arange(5) < counts[..., np.newaxis]).astype(int)
    data = Responses(outcomes)
    report = check(rank(data, "avg", draws=150, random_seed=0), data)
    (found,) = report.about("runs")
    assert found.verdict == "not measured"
    assert "sorted" in found.sentence
    for other in (outcomes[..., ::-1], np.sort(np.random.default_rng(1).random((4, 20, 5)))):
        assert not has_runs(Responses(other))


def test_fractions_and_categories_have_runs_too():
    rng = np.random.default_rng(0)
    scores = np.clip(rng.normal(0.6, 0.1, (4, 40, 8)), 0, 1)
    scores[2, :, 3] -= 0.1
    (found,) = run_effects(Responses(scores))
    assert found.system == "system 3"
    categories = rng.integers(0, 3, (4, 60, 8))
    categories[1, :, :2] = 0
    (found,) = run_effects(Responses(categories, weights=[0, 0.5, 1]))
    assert found.system == "system 2"


@pytest.mark.parametrize("unit", [1e-200, 1e-8, 1e150])
def test_units_of_the_worths_do_not_matter(unit):
    rng = np.random.default_rng(0)
    categories = rng.integers(0, 3, (3, 30, 8))
    categories[1, :, :2] = 0
    (found,) = run_effects(Responses(categories, weights=np.array([0, 0.5, 1]) * unit))
    (plain,) = run_effects(Responses(categories, weights=[0, 0.5, 1]))
    assert found.system == plain.system == "system 2"
    np.testing.assert_allclose(np.array(found[2:4]) / unit, plain[2:4])
    assert found.p_value == pytest.approx(plain.p_value)
