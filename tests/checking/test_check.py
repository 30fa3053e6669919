"""check() on results that are known to be good, and on results that are known to be bad."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr

from bayesrank import METHODS, Battles, Comparisons, Responses, rank, rescale
from bayesrank.checking import Finding, Report, check
from bayesrank.checking.predictions import pair_misfit
from bayesrank.checking.verdicts import TOPICS
from bayesrank.errors import CalibrationWarning, ConvergenceWarning

BATTLES = 400


def simulate(shape=(6, 30, 20), *, seed=1, paired=True, shared=0.0, slopes=0.0) -> Responses:
    """Return answers; with shared luck systems are right in the same trials."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(size=(shape[0], 1)), rng.normal(size=shape[1])
    slope = np.exp(slopes * rng.normal(size=shape[1]))
    logit = slope * (ability - difficulty)
    luck = shared * rng.normal(size=shape[1:])
    chance = 1 / (1 + np.exp(-logit[..., np.newaxis] - luck))
    return Responses((rng.random(shape) < chance).astype(int), paired=paired)


def sentences(report, topic):
    return " ".join(one.sentence for one in report if one.topic == topic)


# Good results


@pytest.mark.parametrize("method", ["avg", "borda", "bradley_terry", "bradley_terry_map"])
def test_sound_results_are_trustworthy(method):
    data = simulate((10, 30, 8))
    result = rank(data, method, random_seed=0)
    for report, runs in (
        (check(result), " Not measured: variation between runs."),
        (check(result, data), ""),
    ):
        assert report.trustworthy, str(report)
        assert report.verdict("calibration") == "good"
        assert report.summary == f"Check: no warnings.{runs}"


def test_chains_that_agree_are_good():
    data = simulate((4, 10, 10))
    result = rank(data, "rasch", backend="nuts", prior=1.0, draws=1000, random_seed=3)
    report = check(result, data)
    assert report.verdict("sampling") == "good", str(report)
    assert "R-hat of scores at most 1.0" in sentences(report, "sampling")
    assert report.verdict("fit") == "good"


def test_battles_of_a_model_that_holds():
    rng = np.random.default_rng(0)
    score = np.linspace(-1, 1, 6)
    wins = np.triu(rng.binomial(BATTLES, 1 / (1 + np.exp(score - score[:, np.newaxis]))), 1)
    data = Comparisons(wins + np.tril(BATTLES - wins.T, -1))
    report = check(rank(data, "bradley_terry", backend="map", prior=1.0, random_seed=0))
    assert report.trustworthy, str(report)


@pytest.mark.parametrize("method", [name for name, row in METHODS.items() if row.backends])
def test_every_method_can_be_checked(method):
    data = simulate((5, 12, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = rank(data, method, draws=120, random_seed=0, **METHODS[method].example)
    report = check(result, data)
    assert {one.topic for one in report} == set(TOPICS)
    assert all(one.name and one.sentence.endswith(".") for one in report), str(report)
    # No design as small as this one was simulated.
    assert report.verdict("calibration") != "good", str(report)
    assert len(report.summary.splitlines()) == 1
    assert json.loads(report.to_json())["verdicts"]["fit"] == report.verdict("fit")


# Bad results


def test_short_chains_are_told():
    data = simulate((4, 10, 10))
    with pytest.warns(ConvergenceWarning):
        result = rank(data, "rasch", backend="nuts", prior=1.0, draws=15, tune=20, random_seed=0)
    report = check(result)
    assert report.verdict("sampling") in ("doubtful", "bad")
    assert "draw more" in sentences(report, "sampling")
    assert not report.trustworthy


def test_chains_that_disagree_are_bad():
    # One of four chains two standard deviations off: R-hat is about sqrt(1 + 1) of the draws' own.
    result = rank(simulate((4, 10, 10)), "rasch_map", random_seed=0)
    score = result["posterior"]["score"]
    shift = xr.where(score["chain"] == 0, 2.0, 0.0) * score.std(("chain", "draw"))
    result["posterior"]["score"] = score + shift
    result.attrs["backend"] = "nuts"
    report = check(result)
    assert report.verdict("sampling") == "bad", str(report)
    assert "R-hat" in sentences(report, "sampling")
    assert "R-hat" in report.summary
    assert not report.trustworthy


def test_few_draws_are_told():
    report = check(rank(simulate((3, 6, 4)), "avg", draws=20, random_seed=0))
    assert report.verdict("sampling") == "doubtful"
    assert "With 80 draws the ends of intervals are noisy" in sentences(report, "sampling")
    assert "draws=100 for each chain" in sentences(report, "sampling")


def test_an_estimate_alone_has_nothing_to_trust():
    report = check(rank(simulate((3, 6, 4)), "avg", draws=0))
    assert report.verdict("sampling") == report.verdict("calibration") == "not measured"


@pytest.mark.parametrize("method", ["bradley_terry", "davidson", "bradley_terry_luce"])
def test_naive_composite_posteriors_are_bad(method):
    report = check(rank(simulate(), method, calibration="none", random_seed=0))
    assert report.verdict("calibration") == "bad"
    assert "counts each answer once per opponent" in report.summary
    assert not report.trustworthy


def test_a_naive_prior_from_the_data_is_doubtful():
    data, options = simulate((10, 30, 8)), {"target": "benchmark", "random_seed": 0}
    assert not check(rank(data, "mirt", **options)).about("not calibrated")
    naive = rank(data, "mirt", calibration="none", **options)
    assert check(naive).verdict("calibration") == "doubtful"
    other = rank(data, "mirt", calibration="none", target="population", random_seed=0)
    assert check(other).verdict("calibration") == "bad"


def test_naive_posteriors_of_the_population_are_bad():
    data, options = simulate((10, 30, 8)), {"target": "population", "random_seed": 0}
    assert not check(rank(data, "rasch_map", **options)).about("not calibrated")
    naive = rank(data, "rasch_map", calibration="none", **options)
    assert check(naive).verdict("calibration") == "bad"


def test_few_questions_say_little_of_a_population():
    for n_questions, verdict in ((4, "bad"), (7, "doubtful"), (12, "not measured")):
        data = simulate((3, n_questions, 8))
        report = check(rank(data, "avg", target="population", random_seed=0))
        assert report.verdict("calibration") == verdict


@pytest.mark.filterwarnings("ignore:1 question is too few")
@pytest.mark.parametrize("method", ["standardized_accuracy", "rasch_map", "bradley_terry_map"])
def test_a_single_question_is_too_few_and_no_option_helps(method):
    report = check(rank(Responses([[[1]], [[0]]]), method, random_seed=0))
    assert report.verdict("calibration") == "bad"
    assert "1 question is too few" in sentences(report, "calibration")


def test_cells_with_few_trials_are_counted():
    outcomes = simulate((3, 12, 4)).outcomes.copy()
    outcomes[0, :5, 2:] = -1
    report = check(rank(Responses(outcomes), "bradley_terry_map", random_seed=0))
    assert "5 of 36 cells of a system and a question" in sentences(report, "calibration")


@pytest.mark.filterwarnings("ignore:.* of unequal sizes count as")
def test_groups_of_unequal_size_count_as_fewer():
    outcomes = simulate((3, 60, 1)).outcomes
    sizes = {"equal": [5] * 12, "unequal": [1] * 11 + [49]}
    said = {}
    for name, each in sizes.items():
        data = Responses(outcomes, groups=np.repeat([f"g{one}" for one in range(12)], each))
        result = rank(data, "avg", target="population", draws=50, random_seed=1)
        said[name] = sentences(check(result), "calibration")
    assert "too few" not in said["equal"]
    assert "12 groups of unequal size count as 1 and are too few" in said["unequal"]


@pytest.mark.parametrize("method", ["standardized_accuracy", "rasch_map"])
@pytest.mark.parametrize(("unit", "target"), [("run", "benchmark"), ("run,question", None)])
@pytest.mark.parametrize(("n_runs", "verdict"), [(2, "bad"), (9, "doubtful"), (10, None)])
def test_few_runs_are_too_few_for_every_method(method, unit, target, n_runs, verdict):
    data = simulate((3, 12, n_runs))
    result = rank(data, method, target=target, unit=unit, draws=50, random_seed=1)
    found = check(result).about("few units")
    assert [one.verdict for one in found] == [verdict] * (verdict is not None)
    said = f"{n_runs} runs are too few to estimate how scores vary over runs. Gather more."
    assert [one.sentence for one in found] == [said] * (verdict is not None)


@pytest.mark.parametrize(("n_judges", "verdict"), [(3, "bad"), (7, "doubtful"), (10, None)])
def test_few_judges_are_too_few_to_vary(n_judges, verdict):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, 300)
    names = np.array(list("abc"))
    data = Battles(
        names[first],
        names[(first + rng.integers(1, 3, 300)) % 3],
        rng.choice(["first", "second"], 300),
        judge=[f"j{one % n_judges}" for one in range(300)],
    )
    result = rank(data, "bradley_terry_map", unit="judge", draws=50, random_seed=1)
    found = check(result, data).about("few units")
    assert [one.verdict for one in found] == [verdict] * (verdict is not None)
    assert all(f"{n_judges} judges are too few" in one.sentence for one in found)


def test_few_groups_say_little_of_other_groups():
    data = Responses(simulate((3, 12, 8)).outcomes, groups=list("aaaabbbbcccc"))
    with pytest.warns(CalibrationWarning):
        result = rank(data, "avg", target="population", random_seed=0)
    assert "3 groups are too few" in sentences(check(result), "calibration")


def test_questions_that_discriminate_differently_do_not_fit_rasch():
    data = simulate((12, 40, 40), slopes=1.0)
    report = check(rank(data, "rasch_map", random_seed=0))
    assert report.verdict("fit") == "bad", str(report)
    assert "accuracy by difficulty" in sentences(report, "fit")
    assert "Use calibration='sandwich'" in sentences(report, "fit")
    held = check(rank(data, "rasch_map", calibration="sandwich", random_seed=0))
    assert "intervals do not need a model that fits" in sentences(held, "fit")
    assert "Use calibration" not in sentences(held, "fit")
    richer = check(rank(data, "rasch_2pl_map", random_seed=0))
    assert richer.verdict("fit") == "good", str(richer)


@pytest.mark.parametrize(
    ("shape", "name"),
    [((8, 30, 1), "accuracy by difficulty"), ((3, 100, 2), "wins and losses in the same trials")],
)
def test_few_answers_to_a_question_fit_their_own_model(shape, name):
    """Estimates of difficulties are pulled together; the answers are not."""
    doubted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        logit = rng.normal(0, 1, (shape[0], 1)) - rng.normal(0, 1.5, shape[1])
        chances = 1 / (1 + np.exp(-logit))
        data = Responses((rng.random(shape) < chances[..., np.newaxis]).astype(int))
        result = rank(data, "rasch", backend="map", draws=100, random_seed=0)
        (found,) = check(result, data).about(name)
        doubted += found.verdict != "good"
    assert doubted <= 4  # with 5 %, more happens once in 400


def test_single_trials_show_no_shared_luck():
    data = Responses(simulate((6, 30, 8)).outcomes[..., :1])
    report = check(rank(data, "rasch_map", random_seed=0), data)
    assert not report.about("wins and losses in the same trials")


def test_shared_luck_shows_in_the_win_matrix_alone():
    data = simulate((6, 30, 40), shared=1.5)
    result = rank(data, "rasch_map", random_seed=0)
    assert check(result).verdict("fit") == "good"
    report = check(result, data)
    assert report.verdict("fit") == "bad", str(report)
    assert "wins and losses in the same trials" in sentences(report, "fit")


def test_a_cycle_is_no_scale_of_strength():
    wins = np.array([[0, 90, 10, 50], [10, 0, 90, 50], [90, 10, 0, 50], [50, 50, 50, 0]])
    report = check(rank(Comparisons(wins), "bradley_terry", backend="map", prior=1.0))
    assert report.verdict("fit") == "bad"
    assert "no single scale of strength orders these systems" in sentences(report, "fit")


def test_ties_of_rao_kupper_are_part_of_its_win_rates():
    rng = np.random.default_rng(0)
    score, threshold = np.linspace(-1.5, 1.5, 5), 0.8
    gap = score[:, np.newaxis] - score
    win, loss = (1 / (1 + np.exp(threshold - one)) for one in (gap, -gap))
    wins, ties = np.zeros((5, 5)), np.zeros((5, 5))
    for i, j in zip(*np.triu_indices(5, 1), strict=True):
        drawn = rng.multinomial(2000, [win[i, j], loss[i, j], 1 - win[i, j] - loss[i, j]])
        wins[i, j], wins[j, i], ties[i, j] = drawn
        ties[j, i] = ties[i, j]
    data = Comparisons(wins, ties)
    report = check(rank(data, "rao_kupper", tie_strength=None, random_seed=0))
    assert report.verdict("fit") == "good", str(report)
    # The published threshold leaves less room for ties than there are.
    assert check(rank(data, "rao_kupper", random_seed=0)).verdict("fit") == "bad"


def test_win_rates_are_those_of_the_likelihood_of_the_result():
    score = np.linspace(-1.5, 1.5, 5)
    wins = np.round(5000 * ndtr(score[:, np.newaxis] - score)) * (1 - np.eye(5))
    result = rank(Comparisons(wins), "thurstone_mosteller", draws=10, random_seed=0)
    assert pair_misfit(result).share < 0.002
    # A logistic model has other rates between those of the ends.
    logistic = rank(Comparisons(wins), "bradley_terry", draws=10, random_seed=0)
    assert pair_misfit(logistic).share > 0.005


def test_a_row_without_a_stated_likelihood_has_no_predictive_check(monkeypatch):
    battles = Comparisons([[0, 9, 12], [4, 0, 8], [3, 5, 0]])
    result = rank(battles, "bradley_terry", draws=10, random_seed=0)
    unstated = replace(METHODS["bradley_terry"], gradient=None)
    monkeypatch.setattr("bayesrank.checking.fit.METHODS", {"bradley_terry": unstated})
    (found,) = check(result, battles).about("fit")
    assert found.sentence == "There is no predictive check for the likelihood of bradley_terry."


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("davidson", {"formula": "0 + length"}),
        ("bradley_terry", {"order_effect": True, "backend": "map"}),
        ("hierarchical_comparisons", {}),
        ("dynamic_comparisons", {"period": 1}),
    ],
)
def test_win_rates_are_not_held_to_models_with_more_than_strengths(method, options):
    """Such as a system that wins by its length, or in one period only."""
    length = np.repeat([1.0, -1.0, 0.0], 40)
    won = np.r_[np.ones(40), np.zeros(40), np.tile([1.0, 0.0], 20)]
    data = Battles(
        np.repeat(["a", "a", "b"], 40),
        np.repeat(["b", "c", "c"], 40),
        won,
        covariates={"length": length},
        group=np.repeat(["x", "y"], 60),
        time=np.repeat([0.0, 86_400.0], 60),
    )
    report = check(rank(data, method, draws=100, random_seed=0, **options), data)
    assert report.verdict("fit") == "not measured"


def test_a_model_that_holds_fits_with_one_answer_to_each_of_many_questions():
    # The draws of hundreds of difficulties around their mode do not replicate such data.
    data = simulate((8, 200, 1))
    assert check(rank(data, "rasch_map", random_seed=0), data).verdict("fit") == "good"


@pytest.mark.parametrize("method", ["avg", "bayes", "davidson_luce_map"])
def test_a_model_without_a_predictive_check_is_not_said_to_fit(method):
    data = simulate((4, 10, 5))
    report = check(rank(data, method, draws=150, random_seed=0), data)
    (found,) = [one for one in report if one.topic == "fit"]
    assert found.verdict == "does not apply"
    assert "no model" in found.sentence or "no predictive check" in found.sentence


def test_systems_that_never_met_have_no_order():
    wins = np.zeros((4, 4))
    wins[0, 1], wins[1, 0], wins[2, 3], wins[3, 2] = 9, 4, 8, 5
    report = check(rank(Comparisons(wins), "bradley_terry", backend="map", prior=1.0))
    assert report.verdict("identification") == "bad"
    assert "2 sets that were never compared" in sentences(report, "identification")


# The report


def test_the_summary_is_the_worst_sentence():
    report = Report(
        (
            Finding("sampling", "good", "Fine."),
            Finding("fit", "doubtful", "Hm."),
            Finding("identification", "not measured", "Unknown.", name="prior"),
            Finding("calibration", "bad", "Too narrow."),
        )
    )
    assert report.summary == (
        "Check: calibration bad. Too narrow. (1 more warning) Not measured: influence of the prior."
    )
    assert str(report).splitlines()[1] == "fit doubtful: Hm."


def test_battles_with_effects_say_that_their_fit_was_not_measured():
    first, second, winner = ["a", "b", "a", "b"] * 6, ["b", "a"] * 12, ["first", "second"] * 12
    log = Battles(first, second, winner, covariates={"length": np.arange(24.0)})
    report = check(rank(log, "davidson", formula="length", random_seed=1))
    assert "fit of the win rates and coverage of the intervals." in report.summary


def test_other_trees_and_other_data_are_refused():
    data = simulate((3, 6, 4))
    result = rank(data, "avg", draws=10, random_seed=0)
    with pytest.raises(ValueError, match="data must be those that were ranked"):
        check(result, simulate((3, 6, 4), seed=5))
    with pytest.raises(ValueError, match="result must have a group 'ranking'; got groups none"):
        check(result["posterior"])


def test_another_scale_of_the_scores_has_the_same_findings():
    result = rank(Comparisons([[0, 6, 7], [2, 0, 5], [1, 3, 0]]), "davidson", random_seed=0)
    report = str(check(result))
    assert str(check(rescale(result, "elo", anchor=("system 1", 1000)))) == report
    assert str(check(rescale(result, anchor=("system 1", 5)))) == report
