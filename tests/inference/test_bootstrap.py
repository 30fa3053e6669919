"""The bootstrap back end: intervals of methods that have no likelihood."""

import itertools
import math

import numpy as np
import pytest

from bayesrank import METHODS, Battles, Comparisons, Responses, rank
from bayesrank.errors import DataError
from bayesrank.inference.backends import bootstrap as module
from bayesrank.inference.backends.bootstrap import scale_to_largest
from bayesrank.inference.resample.corrections import ranker_jackknife
from bayesrank.inference.resample.weights import resample
from bayesrank.method import load_function
from bayesrank.methods.accuracy import inverse_difficulty
from bayesrank.methods.bipartite import rankllm
from bayesrank.ranking import Target, draw_scores


def simulate(shape=(3, 12, 6), seed=0, **options) -> Responses:
    rng = np.random.default_rng(seed)
    chance = rng.random((1, shape[1], 1)) * np.linspace(0.6, 1.0, shape[0])[:, None, None]
    return Responses((rng.random(shape) < chance).astype(int), **options)


def draws_of(data, method, **keywords):
    result = rank(data, method, backend="bootstrap", random_seed=1, **keywords)
    return result["ranking"]["score"].values, result["posterior"]["score"].values.reshape(
        -1, len(data.systems)
    )


@pytest.mark.parametrize("paired", [True, False])
def test_the_benchmark_target_has_the_standard_error_of_the_trials(paired):
    data = simulate(paired=paired)
    score, draws = draws_of(data, "avg", draws=4_000)
    np.testing.assert_allclose(score, data.outcomes.mean(axis=(1, 2)), rtol=1e-14)
    variance = data.outcomes.var(axis=2, ddof=1) / 6
    sd = np.sqrt(variance.sum(axis=1)) / 12
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.03)
    np.testing.assert_allclose(draws.mean(axis=0), score, atol=5 * sd.max() / 126)


@pytest.mark.parametrize("method", ["elo", "glicko", "trueskill"])
def test_ratings_of_large_data_have_smoothed_copies_of_some_draws(method, monkeypatch):
    data = simulate((4, 20, 10))
    _, every = draws_of(data, method, draws=1000)
    monkeypatch.setattr(module, "_MOST_MATCHES", 600 * 200 * 6)
    _, fewer = draws_of(data, method, draws=1000)
    assert len(np.unique(fewer, axis=0)) == len(fewer) == 4000
    slack = 0.12 * every.var(axis=0).max()
    np.testing.assert_allclose(np.cov(fewer.T), np.cov(every.T), atol=slack)
    for tail in (0.025, 0.5, 0.975):
        ends = (np.quantile(draws, tail, axis=0) for draws in (fewer, every))
        np.testing.assert_allclose(*ends, atol=0.25 * every.std(axis=0).max())
    monkeypatch.setattr(module, "_MOST_MATCHES", 0.0)
    _, least = draws_of(data, method, draws=1000)
    np.testing.assert_allclose(least.std(axis=0), every.std(axis=0), rtol=0.3)


@pytest.mark.filterwarnings("ignore::bayesrank.errors.CalibrationWarning")
@pytest.mark.parametrize("unit", ["run", "question", "judge"])
def test_a_score_may_be_outside_those_of_three_units(unit):
    right = np.random.default_rng(2).random((2, 3, 30)) < [[[0.4], [0.6], [0.7]]]
    method, outcomes = "avg", right.swapaxes(1, 2) if unit == "run" else right
    data: Responses | Battles = Responses(outcomes.astype(int))
    if unit == "judge":  # of two systems, the score is the share of wins
        right[1] = ~right[0]
        winner = np.where(right[0].ravel(), "a", "b")
        judges = np.repeat(["x", "y", "z"], 30)
        data = Battles(np.full(90, "a"), np.full(90, "b"), winner, judge=judges)
        method = "rank_centrality"
    target: Target | None = "population" if unit == "question" else None
    draws = draw_scores(data, method, target=target, unit=unit, draws=1000, random_seed=1)
    of_units = right.mean(axis=2)
    outside = (draws < of_units.min(axis=1)) | (draws > of_units.max(axis=1))
    assert (outside.mean(axis=(0, 1)) > 0.1).all()
    # The variance of Student's t with two degrees of freedom, but at most that of the units.
    np.testing.assert_allclose(draws.std(axis=(0, 1)), of_units.std(axis=1), rtol=0.1)


def test_a_score_may_be_outside_those_of_five_runs():
    right = np.random.default_rng(3).random((2, 60, 5)) < [0.3, 0.4, 0.6, 0.6, 0.7]
    data = Responses(right.astype(int))
    draws = draw_scores(data, "avg", unit="run", draws=1000, random_seed=1)
    of_runs = right.mean(axis=1)
    outside = (draws < of_runs.min(axis=1)) | (draws > of_runs.max(axis=1))
    assert (outside.mean(axis=(0, 1)) > 0.02).all()
    # The variance of Student's t with four degrees of freedom.
    np.testing.assert_allclose(draws.std(axis=(0, 1)), of_runs.std(axis=1) / 2**0.5, rtol=0.1)


def test_potentials_of_binary_flows_stay_in_their_range():
    # The last system has beaten one that is above the others, once.
    wins = np.zeros((5, 5))
    wins[4, 3] = 1
    wins[[3, 3, 3], [0, 1, 2]] = wins[[0, 1, 2], [1, 2, 0]] = 3
    data = Comparisons(wins)
    assert np.abs(draw_scores(data, "hodge_rank", random_seed=1)).max() == 2.0
    log_odds = draw_scores(data, "hodge_rank", pairwise_stat="log_odds", random_seed=1)
    assert np.abs(log_odds).max() > 2.0


@pytest.mark.filterwarnings("ignore:.* of unequal sizes count as")
def test_unequal_groups_widen_discontinuous_scores_as_fewer_equal_ones(monkeypatch):
    groups = np.repeat(range(10), [50, 20, 10, 5, 5, 4, 2, 2, 1, 1])
    monkeypatch.setattr(module, "jackknife_corrected", lambda run, draws, score_of: draws)
    rng = np.random.default_rng(0)
    outcomes = rng.random((3, 100, 1)) < rng.random((3, 10, 1))[:, groups]
    data = Responses(outcomes.astype(int), groups=groups.tolist())

    def spread():
        return draw_scores(data, "borda", target="population", random_seed=1).std(axis=(0, 1))

    as_fewer = spread()
    monkeypatch.setattr(module, "equal_units", len)
    # Five units instead of ten, each with three degrees of freedom fewer.
    np.testing.assert_allclose(as_fewer / spread(), math.sqrt(5 / 2 / (10 / 7)), rtol=0.03)


def test_the_population_target_has_the_standard_error_of_the_questions():
    data = simulate()
    score, draws = draws_of(data, "avg", target="population", draws=4_000)
    sd = np.sqrt(data.grades.var(axis=1) / (12 - 3))
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.03)
    np.testing.assert_allclose(draws.mean(axis=0), score, atol=5 * sd.max() / 126)


def test_systems_that_share_trials_vary_together():
    outcomes = np.tile(np.random.default_rng(0).integers(0, 2, (1, 5, 8)), (2, 1, 1))
    outcomes[1, 0, 0] = 1 - outcomes[1, 0, 0]
    _, paired = draws_of(Responses(outcomes), "avg", draws=500)
    _, alone = draws_of(Responses(outcomes, paired=False), "avg", draws=500)
    assert np.corrcoef(paired.T)[0, 1] > 0.9
    assert abs(np.corrcoef(alone.T)[0, 1]) < 0.1
    assert np.ptp(paired, axis=1).max() < 0.2


def test_expected_winning_votes_lie_between_a_victory_and_a_defeat():
    # The first system wins 31 of 50 decided questions, 1.7 standard errors more than half: at
    # this truth it loses one data set in twenty, but the truth may be nearer to a draw.
    outcomes = np.zeros((2, 100, 1), dtype=int)
    outcomes[0, :31], outcomes[1, 31:50] = 1, 1
    score, draws = draws_of(
        Responses(outcomes), "minimax", target="population", variant="winning_votes", draws=2_000
    )
    np.testing.assert_array_equal(score, [0.0, -56.0])
    assert draws.min() > -80.0
    assert draws.max() <= 0.5
    lost = draws[:, 0] / -50.0
    assert 0.08 < lost.mean() < 0.18
    assert draws[:, 1].mean() > -53.0  # not recentred: at the estimate it has never won
    # Not either, as single data sets would have it: a mean of two may be half.
    assert ((lost > 0.1) & (lost < 0.9)).mean() > 0.1


def test_identical_systems_are_not_told_apart():
    outcomes = simulate().outcomes.copy()
    outcomes[2] = outcomes[0]
    for method in ("avg", "borda", "minimax"):
        for target in ("benchmark", "population"):
            result = rank(outcomes, method, target=target, draws=50, random_seed=1)
            superiority = result["ranking"]["superiority"].values[0, 2]
            if method == "avg":
                assert superiority == 0.5
            else:  # redrawn cells, coin flips and places between counts are not shared
                assert 0.3 < superiority < 0.7


@pytest.mark.parametrize("method", ["copeland", "schulze", "ranked_pairs", "minimax", "baldwin"])
def test_prior_questions_favour_none_of_identical_systems(method):
    outcomes = np.random.default_rng(0).integers(0, 2, (6, 12, 1))
    outcomes[1:3] = outcomes[0]
    result = rank(outcomes, method, target="population", random_seed=1)
    superiority = result["ranking"]["superiority"].values[:3, :3]
    # Shares of 2,000 draws have a standard error of 0.011.
    assert superiority == pytest.approx(np.full((3, 3), 0.5), abs=0.035)


ENDS = {
    "win_rate": lambda n_systems, _: (0.0, 1.0),
    "borda": lambda n_systems, n_questions: (0.0, n_questions * (n_systems - 1.0)),
    "copeland": lambda n_systems, _: (1.0 - n_systems, n_systems - 1.0),
    "schulze": lambda n_systems, _: (1.0, n_systems),
    "nanson": lambda n_systems, _: (0.0, n_systems - 1.0),
    "serial_rank": lambda n_systems, _: (
        -math.sqrt(1 - 1 / n_systems),
        math.sqrt(1 - 1 / n_systems),
    ),
}


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("borda", "benchmark"),
        ("copeland", "benchmark"),
        ("copeland", "population"),
        ("schulze", "population"),
        ("nanson", "population"),
    ],
)
def test_scores_that_jump_are_recentred_on_the_estimate(method, target):
    data = simulate((7, 60, 6))
    score, draws = draws_of(data, method, target=target, draws=100)
    low, high = ENDS[method](*data.shape[:2])
    inside = (draws.min(axis=0) > low) & (draws.max(axis=0) < high)
    assert inside.any()
    np.testing.assert_allclose(draws.mean(axis=0)[inside], score[inside], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("target", "shape"),
    [
        *itertools.product(["benchmark", "population"], [(2, 3, 3), (4, 6, 2), (3, 5, 2)]),
        ("population", (4, 7, 1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ENDS)
def test_no_draw_leaves_the_range_of_the_score(method, target, shape):
    outcomes = np.random.default_rng(sum(shape)).integers(0, 2, shape)
    draws = draws_of(Responses(outcomes), method, target=target, draws=200)[1]
    low, high = ENDS[method](*shape[:2])
    assert low - 1e-9 <= draws.min() < draws.max() <= high + 1e-9


def test_borda_over_questions_has_the_standard_error_of_a_sum():
    data = simulate()
    _, draws = draws_of(data, "borda", target="population", draws=4_000)
    points = np.stack(
        [rank(data.outcomes[:, [m]], "borda", draws=0)["ranking"]["score"] for m in range(12)]
    )
    sd = np.sqrt(12 * points.var(axis=0) * 12 / (12 - 3))  # with the widening of Student's t
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.03)
    np.testing.assert_allclose(np.median(draws, axis=0), points.sum(axis=0), atol=0.2)


def test_majorities_over_few_questions_have_the_variance_of_students_t():
    outcomes = np.ones((2, 12, 1), dtype=int)
    outcomes[1, :6] = 0
    draws = draws_of(Responses(outcomes), "minimax", target="population", draws=2_000)[1]
    # Of thirteen questions that are drawn twelve times one is of coin flips.
    variance = 12 * (0.5 - (12 / 13 * 0.5) ** 2) * 12 / (12 - 3) + 1 / 12
    assert draws[:, 1].var() == pytest.approx(variance, rel=0.1)


def test_ratings_over_trials_have_the_standard_error_of_a_sum():
    outcomes = np.random.default_rng(0).integers(0, 2, (2, 12, 3))
    # With next to nothing at stake a rating adds up half the differences of the answers.
    result = rank(outcomes, "elo", K=1e-3, target="benchmark", draws=2000, random_seed=0)
    lead = (outcomes[0] - outcomes[1]) * 1e-3 / 2
    expected = np.sqrt((3 * lead.var(axis=1, ddof=1)).sum())
    assert result["posterior"]["score"][..., 0].std() == pytest.approx(expected, rel=0.03)


def test_bounds_of_a_skewed_level_hold():
    # Where only right answers draw, the level of Glicko's ratings has a long lower tail. With draws
    # that have it too, the upper bound is too low in 10 % of the cases, and the lower one always.
    rng = np.random.default_rng(0)
    shape = (150, 10, 30, 2)
    estimate, bounds = [], []
    for tensor in rng.binomial(1, rng.beta(2, 2, (150, 1, 30, 1)), shape):
        draws = draw_scores(
            tensor,
            "glicko",
            tie_policy="correct_draw_only",
            target="population",
            draws=100,
            random_seed=1,
        ).mean(axis=-1)
        estimate.append(draws.mean())
        bounds.append(np.quantile(draws, [0.05, 0.95]))
    lower, upper = np.transpose(bounds)
    assert 0.01 < np.mean(lower > np.mean(estimate)) < 0.08
    assert 0.01 < np.mean(upper < np.mean(estimate)) < 0.08


def test_accuracy_by_rare_answers_is_corrected():
    # Weights 1 / p of few answers are too large on average, and its score too small.
    rng = np.random.default_rng(3)
    chance = np.linspace(0.02, 0.5, 20) ** np.array([[0.6], [1.0], [1.4]])
    data = Responses((rng.random((3, 20, 8)) < chance[..., np.newaxis]).astype(int))
    score, draws = draws_of(data, "inverse_difficulty", draws=1000)
    raw = np.concatenate(
        [
            inverse_difficulty(*batch)
            for batch in resample(
                data, "binary", target="benchmark", smooth=True, size=4000, rng=rng
            )
        ]
    )
    too_small = (raw < score).mean(axis=0)
    assert too_small.min() > 0.6
    assert (draws > score).mean(axis=0).min() > 0.6


def spread_over_that_of_weights(data, method):
    """Return standard deviations of draws over questions relative to those of weighted scores."""
    row = METHODS[method]
    rng = np.random.default_rng(1)
    plan = {"target": "population", "smooth": True, "size": 4_000, "rng": rng}
    found = [load_function(row.function)(*one) for one in resample(data, row.data, **plan)]
    raw = np.concatenate([one[0] if isinstance(one, tuple) else one for one in found])
    _, draws = draws_of(data, method, target="population", draws=1_000)
    return draws.std(axis=0) / raw.std(axis=0)


@pytest.mark.parametrize("method", ["avg", "spectral", "hodge_rank"])
def test_draws_are_hardly_wider_where_no_question_has_leverage(method):
    ratio = spread_over_that_of_weights(simulate((4, 30, 6), seed=1), method)
    assert np.abs(ratio - 1.0).max() < 0.06


def test_rank_widens_draws_where_few_questions_have_leverage():
    rng = np.random.default_rng(2)
    chance = 1.0 / (1.0 + np.exp(rng.normal(size=(1, 30)) - np.linspace(-1.0, 1.0, 6)[:, None]))
    data = Responses((rng.random((6, 30, 8)) < chance[..., np.newaxis]).astype(int))
    assert (spread_over_that_of_weights(data, "rankllm") > 1.1).any()


@pytest.mark.parametrize(
    "method", sorted(name for name, row in METHODS.items() if "bootstrap" in row.backends)
)
def test_the_only_question_of_a_system_is_not_missed(method):
    outcomes = simulate((4, 8, 3)).outcomes.copy()
    outcomes[3, 1:] = -1
    _, draws = draws_of(Responses(outcomes), method, target="population", draws=20)
    assert np.isfinite(draws).all()


def test_battles_are_weighted():
    table = Comparisons([[0, 300], [100, 0]])
    score, draws = draws_of(table, "rank_centrality", draws=4_000)
    np.testing.assert_allclose(score, [0.75, 0.25], rtol=1e-12)
    # With two systems the score is the share of wins, Beta(300, 100).
    np.testing.assert_allclose(draws[:, 0].mean(), 0.75, atol=0.001)
    np.testing.assert_allclose(draws[:, 0].std(), np.sqrt(0.75 * 0.25 / 401), rtol=0.03)


def test_extras_are_a_point_estimate():
    outcomes = simulate((3, 5, 4)).outcomes
    result = rank(outcomes, "rankllm", draws=10, random_seed=1)
    difficulty = result["point_estimate"]["difficulty"]
    assert difficulty.dims == ("question",)
    assert difficulty.shape == (5,)
    assert set(result["posterior"].data_vars) == {"score"}


@pytest.mark.parametrize("cores", [1, 2, 64, None])
def test_draws_do_not_depend_on_the_number_of_threads(monkeypatch, cores):
    data = simulate()
    _, expected = draws_of(data, "avg", draws=20)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    _, found = draws_of(data, "avg", draws=20)
    np.testing.assert_array_equal(found, expected)


def test_small_batches_give_as_many_draws(monkeypatch):
    data = simulate()
    _, expected = draws_of(data, "avg", draws=20)
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 100)
    _, found = draws_of(data, "avg", draws=20)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_errors_in_a_chain_reach_the_caller():
    with pytest.raises(DataError, match="trials must be two or more in most cells"):
        rank(simulate((2, 4, 1)), "avg", target="benchmark", draws=5)
    with pytest.raises(DataError, match="questions must be two or more"):
        rank(simulate((2, 1, 4)), "avg", target="population", draws=5)


@pytest.mark.parametrize(("shape", "target"), [((2, 4, 1), "benchmark"), ((2, 1, 4), "population")])
def test_an_estimate_alone_needs_no_variation(shape, target):
    data = simulate(shape)
    result = rank(data, "avg", target=target, draws=0)
    np.testing.assert_allclose(result["ranking"]["score"], data.outcomes.mean(axis=(1, 2)))


@pytest.mark.parametrize("n_questions", [2, 3, 4])
def test_few_questions_keep_ragged_scores_in_range(n_questions):
    outcomes = np.random.default_rng(0).integers(0, 2, (3, n_questions, 3))
    outcomes[0, 1:] = -1
    _, draws = draws_of(Responses(outcomes), "avg", target="population", draws=500)
    assert draws.min() >= 0
    assert draws.max() <= 1
    # One question says next to nothing; half of the draws are of the score as it is.
    assert (np.abs(draws[:, 0] - outcomes[0, 0].mean()) < 1e-12).mean() == 0.5
    assert np.ptp(draws[:, 0]) > 0.9


def test_scores_that_weigh_questions_vary_as_those_without_one_do():
    data = Responses((np.random.default_rng(3).random((4, 40, 2)) < 0.6).astype(int))
    table = ranker_jackknife(data, "binary", lambda arguments: inverse_difficulty(*arguments), 500)
    expected = np.sqrt(1.0 + 2.0 / (table.tail_freedom - 2.0)) * table.standard_errors
    draws = draws_of(data, "inverse_difficulty", target="population", draws=500)[1]
    np.testing.assert_allclose(draws.std(axis=0), expected, rtol=0.03)


def test_equal_systems_are_drawn_near_the_largest_of_them():
    # The largest of several equal shares is too large, and that of their draws once more.
    data = Responses(np.random.default_rng(4).integers(0, 2, (6, 30, 4)))
    score, draws = draws_of(data, "rankllm", target="benchmark", draws=500)
    weights = resample(
        data,
        "grades",
        target="benchmark",
        smooth=True,
        size=2000,
        rng=np.random.default_rng(0),
    )
    raw = np.concatenate([rankllm(*batch).score for batch in weights])
    below = score < 100.0
    assert np.ptp(draws.mean(axis=0)[below]) < 0.8 * np.ptp(raw.mean(axis=0)[below])
    assert draws.max() == 100.0


def test_single_trials_are_as_noisy_as_those_of_other_questions():
    outcomes = np.tile([0, 1, 0, 1], (2, 40, 1))
    outcomes[0, :15, 1:] = -1
    draws = draws_of(Responses(outcomes, paired=False), "avg", target="benchmark", draws=1_000)[1]
    # Trials have the unbiased variance 1/3, means of four a quarter of it.
    noise = np.array([15 / 3 + 25 / 12, 40 / 12])
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(noise) / 40, rtol=0.05)


def test_single_trials_widen_draws_no_further_than_the_grades():
    data = np.full((3, 6, 3), np.nan)
    data[:, :4] = [1, 1, 0]
    data[0, 4:, 0], data[1:, 4:] = 1, 1  # the first system has single trials of two questions
    data[0, :4] = [1, 1, 1]
    data[0, 0] = [1, 1, 0]
    result = rank(data, "avg", target="benchmark", draws=500, random_seed=0)
    draws = result["posterior"]["score"].values
    assert draws.max() <= 1.0
    assert np.ptp(draws[..., 0]) > 0.0


def test_majorities_that_all_questions_agree_on_may_be_turned():
    data = np.zeros((3, 3, 1), dtype=int)
    data[0] = 1
    _, draws = draws_of(Responses(data), "copeland", target="population", draws=200)
    # More than the step between two counts, over which scores are spread in any case.
    assert np.ptp(draws[:, 0]) > 1.05 * METHODS["copeland"].step


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_draws_of_scores_on_a_scale_are_those_of_their_shares(target):
    scores = np.random.default_rng(4).choice([1.0, 9.5, 10.0], (3, 5, 2), p=[0.1, 0.2, 0.7])
    shares = (scores - 1.0) / 9.0
    drawn = [
        draws_of(Responses(values, scale=scale), "avg", target=target, draws=200)[1]
        for values, scale in ((scores, (1.0, 10.0)), (shares, (0.0, 1.0)))
    ]
    np.testing.assert_allclose(drawn[0], 1.0 + 9.0 * drawn[1], atol=1e-12)
    assert drawn[0].min() >= 1.0
    assert drawn[0].max() <= 10.0


def test_percentages_of_the_largest_allow_for_its_bias():
    # Five systems of which four are equal: the largest of four estimates is too large, and the
    # fifth too small beside it, which draws from around the estimates show once more.
    rng = np.random.default_rng(0)
    truth = np.array([0.22, 0.22, 0.22, 0.22, 0.12])
    covered = {"scaled": 0, "as they are": 0}
    for _ in range(400):
        score = truth + rng.normal(0.0, 0.01, 5)
        draws = score + rng.normal(0.0, 0.01, (4, 250, 5))
        plain = 100.0 * draws / draws.max(axis=-1, keepdims=True)
        without_bias = draws + 2.0 * (score - draws.mean(axis=(0, 1)))
        for name, one in (("scaled", scale_to_largest(without_bias)), ("as they are", plain)):
            lower, upper = np.quantile(one[..., 4], [0.025, 0.975])
            covered[name] += lower <= 100.0 * 0.12 / 0.22 <= upper
    assert covered["scaled"] / 400 >= 0.93
    assert covered["as they are"] / 400 < 0.92


def test_percentages_of_the_largest_keep_the_order_of_the_draws():
    draws = np.random.default_rng(0).dirichlet([50.0] * 4, (4, 250))
    scaled = scale_to_largest(draws)
    np.testing.assert_array_equal(scaled.argsort(axis=-1), draws.argsort(axis=-1))
    np.testing.assert_allclose(scaled.max(axis=-1), 100.0)
    assert scaled.min() > 0.0
