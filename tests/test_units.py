"""What varies: the names of units, and intervals over one kind or two that cross."""

import numpy as np
import pytest

from bayesrank import Battles, Comparisons, Responses, rank
from bayesrank.errors import CalibrationWarning
from bayesrank.inference.resample.weights import widening_for_fewer_trials
from bayesrank.ranking import draw_scores, point_estimate

NAMES = np.array(list("abcd"))


def logistic(x):
    return 1.0 / (1.0 + np.exp(-x))


def runs_and_questions(rng, sd_of_runs=0.8, shape=(3, 40, 10)):
    """Answers of systems, any run of which may be better or worse as a whole, to new questions."""
    ability = np.array([0.5, 0.0, -0.5])[:, np.newaxis, np.newaxis]
    interaction = rng.normal(0.0, 1.0, (*shape[:2], 1))
    run = rng.normal(0.0, sd_of_runs, (shape[0], 1, shape[2]))
    return (rng.random(shape) < logistic(ability + interaction + run)).astype(int)


def judged(rng, n=1500, n_judges=30, n_prompts=40):
    """Battles of which judges and prompts have tastes of their own."""
    strength = np.array([0.6, 0.2, -0.2, -0.6])
    first = rng.integers(4, size=n)
    second = (first + 1 + rng.integers(3, size=n)) % 4
    judge, prompt = rng.integers(n_judges, size=n), rng.integers(n_prompts, size=n)
    taste = rng.normal(0.0, 0.8, (n_judges, 4)), rng.normal(0.0, 0.8, (n_prompts, 4))
    worth = strength + taste[0][judge] + taste[1][prompt]
    ahead = worth[np.arange(n), first] - worth[np.arange(n), second]
    winner = np.where(rng.random(n) < logistic(ahead), "first", "second")
    return Battles(NAMES[first], NAMES[second], winner, systems=NAMES, judge=judge, prompt=prompt)


def coverage(simulate, method, units, n=150, **options):
    """Return how often 95 % intervals hold the mean estimate, by unit."""
    data = [simulate(np.random.default_rng(seed)) for seed in range(n)]
    expected = np.mean([point_estimate(one, method) for one in data], axis=0)
    found = {}
    for unit in units:
        held = []
        for one in data:
            draws = draw_scores(one, method, unit=unit, draws=100, random_seed=0, **options)
            low, high = np.quantile(draws.reshape(-1, len(expected)), [0.025, 0.975], axis=0)
            held.append((low <= expected) & (expected <= high))
        found[unit] = float(np.mean(held))
    return found


@pytest.mark.parametrize("method", ["rasch_map", "bradley_terry_map"])
def test_runs_and_questions_that_both_vary_are_covered(method):
    found = coverage(
        lambda rng: Responses(runs_and_questions(rng)), method, ["run,question", "question"]
    )
    assert found["run,question"] > 0.9
    assert found["question"] < found["run,question"] - 0.03


def test_runs_are_covered_on_a_benchmark():
    chance = np.random.default_rng(0).normal(0.0, 1.0, (3, 40, 1))

    def simulate(rng):
        run = rng.normal(0.0, 0.8, (3, 1, 10))
        return Responses((rng.random((3, 40, 10)) < logistic(chance + run)).astype(int))

    found = coverage(simulate, "rasch_map", ["run", "trial"], target="benchmark")
    assert found["run"] > 0.9
    assert found["trial"] < 0.85


@pytest.mark.parametrize("method", ["bradley_terry_map", "davidson"])
def test_prompts_and_judges_that_both_vary_are_covered(method):
    assert rank(judged(np.random.default_rng(0)), method, draws=20).attrs["unit"] == "judge,prompt"
    units = ["prompt,judge", "prompt", "judge", "battle"]
    found = coverage(judged, method, units, n=80)
    assert found["prompt,judge"] > 0.9
    assert max(found["prompt"], found["judge"]) < found["prompt,judge"] - 0.02
    assert found["battle"] < min(found["prompt"], found["judge"])


@pytest.mark.parametrize(
    ("unit", "target", "said"),
    [
        ("run", "benchmark", "run"),
        ("run", "population", "run,question"),
        (("question", "run"), None, "run,question"),
        ("question", None, "question"),
        ("trial,question", None, "question"),
    ],
)
def test_the_result_says_what_varies(unit, target, said):
    data = Responses(runs_and_questions(np.random.default_rng(0)))
    result = rank(data, "rasch_map", unit=unit, target=target, draws=20, random_seed=0)
    assert result.attrs["unit"] == said
    assert result.attrs["calibration"] == "sandwich"
    assert result.attrs["target"] == target or result.attrs["target"] == "population"


@pytest.mark.parametrize("unit", ["prompt,judge", "judge, prompt", ["prompt", "judge"]])
def test_two_kinds_may_be_named_in_any_form(unit):
    result = rank(judged(np.random.default_rng(0)), unit=unit, draws=20, random_seed=0)
    assert result.attrs["unit"] == "judge,prompt"


@pytest.mark.parametrize(
    "method", ["rasch_mml", "irt_2pl", "bradley_terry_luce_map", "mirt", "davidson_luce_map"]
)
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_runs_that_vary_widen_every_likelihood(method, paired, target):
    outcomes = runs_and_questions(np.random.default_rng(1), sd_of_runs=1.5, shape=(3, 20, 6))
    data = Responses(outcomes, paired=paired)
    one, other = (
        draw_scores(data, method, unit=unit, target=target, calibration="sandwich", random_seed=0)
        .reshape(-1, 3)
        .std(axis=0)
        for unit in (("run", "trial") if target == "benchmark" else ("run,question", "question"))
    )
    assert one.mean() > 1.1 * other.mean()


RESPONSES = Responses(runs_and_questions(np.random.default_rng(0), shape=(3, 8, 4)))
BATTLES = judged(np.random.default_rng(0), n=200)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (RESPONSES, {"unit": "judge"}, "unit must be 'trial', 'run' or 'question', or 'run,ques"),
        (RESPONSES, {"unit": "run,trial"}, "got 'run,trial'"),
        (RESPONSES, {"unit": "question", "target": "benchmark"}, "use target='population'"),
        (RESPONSES, {"unit": "run", "method": "bayes"}, "unit must be 'trial' for bayes"),
        (RESPONSES, {"unit": "run", "method": "elo"}, "do not follow the order of play"),
        (RESPONSES, {"unit": "run,question", "method": "avg"}, "use target='benchmark'"),
        (Responses([[[1], [0]], [[0], [0]]]), {"unit": "run"}, "show no variation of runs"),
        (BATTLES, {"unit": "judge,battle"}, "battles lie within prompts and judges"),
        (BATTLES, {"unit": "prompt,user"}, "unit must be"),
        (BATTLES, {"unit": "prompt,judge", "method": "elo"}, "only likelihoods can"),
        (
            BATTLES,
            {"unit": "prompt,judge", "method": "win_rate"},
            "that only likelihoods can cross",
        ),
        (
            Battles(["a", "a"], ["b", "b"], ["a", "tie"], judge=["u", "u"]),
            {"unit": "judge"},
            "battles must have two judges or more for unit='judge'; got one",
        ),
        (
            Comparisons([[0, 1], [2, 0]]),
            {"unit": "prompt"},
            "unit must be 'battle' for comparisons",
        ),
    ],
)
def test_other_units_are_refused(data, options, message):
    with pytest.raises(ValueError, match=message):
        rank(data, **options, draws=10)


def test_runs_that_systems_do_not_share_are_refused_for_comparisons():
    data = Responses(RESPONSES.outcomes, paired=False)
    with pytest.raises(ValueError, match="build Responses with paired=True"):
        rank(data, "bradley_terry_map", unit="run", target="benchmark", draws=10)


RANKERS = (
    "avg",
    "inverse_difficulty",
    "win_rate",
    "borda",
    "copeland",
    "schulze",
    "majority_judgment",
    "pagerank",
    "nash",
    "rankllm",
)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("method", RANKERS)
def test_rankers_resample_whole_runs(method, paired):
    rng = np.random.default_rng(5)
    shape = (3, 30, 8)
    together = np.repeat(rng.random((3, 1, 8)) < 0.6, 30, axis=1) & (rng.random(shape) < 0.9)
    outcomes = np.where(rng.random(shape) < 0.1, -1, together.astype(int))
    data = Responses(outcomes, paired=paired)
    options = {"target": "benchmark", "draws": 100, "random_seed": 1}
    by_run, by_trial = (draw_scores(data, method, unit=u, **options) for u in ("run", "trial"))
    assert np.isfinite(by_run).all()
    assert by_run.std(axis=(0, 1)).sum() > 1.2 * by_trial.std(axis=(0, 1)).sum()
    np.testing.assert_array_equal(by_run, draw_scores(data, method, unit="run", **options))


def test_a_mean_varies_as_much_as_its_runs_do():
    rng = np.random.default_rng(2)
    outcomes = runs_and_questions(rng, shape=(3, 40, 30))
    means = outcomes.mean(axis=1)
    # The variance of Student's t with one degree of freedom less than there are runs.
    expected = means.std(axis=1, ddof=1) / 30**0.5 * (29 / 27) ** 0.5
    for paired in (True, False):
        data = Responses(outcomes, paired=paired)
        draws = draw_scores(data, "avg", unit="run", random_seed=3)
        np.testing.assert_allclose(draws.std(axis=(0, 1)), expected, rtol=0.06)


def test_fewer_paired_runs_have_their_own_degrees_of_freedom():
    rng = np.random.default_rng(0)
    outcomes = (rng.random((3, 40, 30)) < 0.2 + 0.6 * rng.random((3, 1, 30))).astype(int)
    outcomes[2, :, 8:] = -1
    data = Responses(outcomes)
    means = [one[:, :n].mean(axis=0) for one, n in zip(outcomes, (30, 30, 8), strict=True)]
    expected = [
        one.std(ddof=1) / len(one) ** 0.5 * ((len(one) - 1) / (len(one) - 3)) ** 0.5
        for one in means
    ]
    draws = draw_scores(data, "avg", unit="run", random_seed=3)
    np.testing.assert_allclose(draws.std(axis=(0, 1)), expected, rtol=0.06)
    factors = widening_for_fewer_trials(data, "pairs", "run")
    assert 1.0 < factors[0] == factors[1] < factors[2]
    others = data.select(systems=data.systems[:2])
    np.testing.assert_allclose(widening_for_fewer_trials(others, "pairs", "run"), 1)


@pytest.mark.parametrize("method", ["avg", "borda"])
def test_few_runs_are_announced(method):
    outcomes = np.random.default_rng(0).integers(0, 2, (3, 10, 5))
    with pytest.warns(CalibrationWarning, match="^4 runs are too few"):
        rank(outcomes[..., :4], method, unit="run", draws=5, random_seed=1)
    rank(outcomes[..., :4], method, unit="run", draws=0)
    rank(outcomes, method, unit="run", draws=5, random_seed=1)
    outcomes[0, :, 2:] = -1  # of one system
    for paired in (True, False):
        data = Responses(outcomes, paired=paired)
        with pytest.warns(CalibrationWarning, match="^2 runs are too few"):
            rank(data, method, unit="run", draws=5, random_seed=1)


def test_few_judges_are_announced():
    sides = NAMES[np.arange(24) % 4], NAMES[(np.arange(24) + 1) % 4]
    winners = np.where(np.arange(24) % 3, "model_a", "model_b")
    votes = Battles(*sides, winners, judge=np.arange(24) % 3)
    with pytest.warns(CalibrationWarning, match="^3 judges are too few.*davidson has wider ones"):
        rank(votes, "win_rate", unit="judge", draws=5, random_seed=1)


def test_runs_of_graded_answers_are_resampled_in_their_units():
    rng = np.random.default_rng(4)
    grades = np.clip(60 + rng.normal(0, 15, (3, 1, 12)) + rng.normal(0, 5, (3, 20, 12)), 0, 100)
    data = Responses(grades.round(), scale=(0, 100), paired=False)
    draws = draw_scores(data, "avg", unit="run", random_seed=3)
    expected = grades.mean(axis=1).std(axis=1, ddof=1) / 12**0.5 * (11 / 9) ** 0.5
    np.testing.assert_allclose(draws.std(axis=(0, 1)), expected, rtol=0.1)


def test_a_system_whose_runs_were_all_right_may_have_a_bad_one():
    outcomes = np.ones((2, 10, 9), dtype=int)
    outcomes[1, :5] = np.random.default_rng(1).random((5, 9)) < 0.5
    low = {
        unit: np.quantile(draw_scores(outcomes, "avg", unit=unit, random_seed=1)[..., 0], 0.05)
        for unit in ("run", "trial")
    }
    # One more of 9 runs that fails, with half of the weight that rules of three have at 5 %.
    assert low["run"] == pytest.approx(1.0 - 2.3 / 9 / (1.0 + 2.3 / 9), abs=0.04)
    assert low["trial"] > 0.95
