"""Resampled arguments: their means, variances and shapes, against what the data say."""

import itertools

import numpy as np
import pytest

from bayesrank import Comparisons, Responses, rank
from bayesrank.errors import DataError
from bayesrank.inference.resample import arguments as resampling
from bayesrank.inference.resample.weights import question_weights, require_two_trials, resample
from bayesrank.ranking import draw_scores

SIZE = 60_000


def draw(data, kind, *, target="benchmark", smooth=True, size=SIZE, seed=1):
    """Return all resampled arguments, those without a resample axis once."""
    rng = np.random.default_rng(seed)
    batches = list(resample(data, kind, target=target, smooth=smooth, size=size, rng=rng))
    return [
        np.concatenate(parts) if np.ndim(parts[0]) and len(parts[0]) != 0 else parts[0]
        for parts in zip(*batches, strict=True)
    ]


def simulate(n_trials, *, categories=2, n_questions=3, seed=0, **options) -> Responses:
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, categories, (3, n_questions, n_trials))
    if categories > 2:
        options["weights"] = np.linspace(0, 1, categories)
    return Responses(outcomes, **options)


def variance_of_mean(values, axis=-1):
    """Return the unbiased variance of the mean of values."""
    return values.var(axis=axis, ddof=1) / values.shape[axis]


def assert_moments(draws, mean, variance, *, rtol=0.03):
    """Compare the first two moments over draws, within the noise of SIZE draws."""
    noise = 5 * np.sqrt(np.maximum(variance, 1e-12) / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - mean) < noise + 1e-12)
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=rtol, atol=1e-12)


def assert_every_trial_compared(wins, ties, n_trials):
    """Check that every pair of three systems adds up to the trials in every draw."""
    totals = wins + wins.swapaxes(1, 2) + ties
    expected = np.broadcast_to(n_trials * (1 - np.eye(3)), totals.shape)
    np.testing.assert_allclose(totals, expected, rtol=1e-12, atol=1e-12)


# Trials, with weights


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("categories", [2, 3])
@pytest.mark.parametrize("n_trials", [3, 8])
def test_weighted_trials_have_the_unbiased_variance_of_a_mean(n_trials, categories, paired):
    data = simulate(n_trials, categories=categories, paired=paired)
    worth = data.category_weights[data.outcomes]
    (grades,) = draw(data, "grades")
    assert grades.shape == (SIZE, 3, 3)
    assert_moments(grades, data.grades, variance_of_mean(worth))


@pytest.mark.parametrize("paired", [True, False])
def test_two_weighted_trials_have_almost_the_unbiased_variance(paired):
    data = Responses([[[0, 1], [1, 1]], [[1, 0], [0, 0]]], paired=paired)
    (grades,) = draw(data, "grades")
    # One of the two trials takes almost all the weight: 0.25 / (2 * 0.02 + 1).
    expected = np.array([[0.25 / 1.04, 0], [0.25 / 1.04, 0]])
    assert_moments(grades, data.grades, expected)
    assert grades.min() >= 0
    assert grades.max() <= 1


def test_paired_trials_keep_the_covariance_of_systems():
    data = simulate(8, seed=3)
    (grades,) = draw(data, "grades")
    for m in range(3):
        expected = np.cov(data.outcomes[:, m], ddof=1) / 8
        np.testing.assert_allclose(np.cov(grades[:, :, m].T), expected, rtol=0.1, atol=2e-3)


def test_unpaired_trials_are_independent():
    (grades,) = draw(simulate(8, seed=3, paired=False), "grades")
    for m in range(3):
        correlation = np.corrcoef(grades[:, :, m].T)
        np.testing.assert_allclose(correlation, np.eye(3), atol=0.03)


def test_questions_are_weighted_independently():
    (grades,) = draw(simulate(8, seed=3), "grades")
    np.testing.assert_allclose(np.corrcoef(grades[:, 0].T), np.eye(3), atol=0.03)


@pytest.mark.parametrize("paired", [True, False])
def test_fractional_scores_are_weighted_like_categories(paired):
    scores = np.random.default_rng(0).random((2, 3, 6))
    (grades,) = draw(Responses(scores, paired=paired), "grades")
    assert_moments(grades, scores.mean(axis=-1), variance_of_mean(scores))


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("scale", [None, (0, 1)])
def test_few_trials_of_a_system_do_not_widen_the_others(paired, scale):
    outcomes = np.array([[[0, 1, 0, 1, 1, 0, 0, 1]], [[0, 1, 1, -1, -1, -1, -1, -1]]])
    values = outcomes if scale is None else np.where(outcomes < 0, np.nan, outcomes)
    data = Responses(values, scale=scale, paired=paired)
    draws = draw_scores(data, "avg", target="benchmark", draws=2_000, random_seed=0)
    # The unbiased variances of the means of 8 and of 3 trials. Wide draws are clipped to the range.
    ratio = draws.var(axis=(0, 1)) / [0.25 / 7, 1 / 9]
    assert 0.9 < ratio[0] < 1.1
    assert 0.7 < ratio[1] < 1.1


def test_comparisons_of_unequal_runs_vary_as_their_trials_do():
    rng = np.random.default_rng(0)
    outcomes = (rng.random((3, 40, 8)) < 0.5).astype(int)
    outcomes[2, :, 4:] = -1
    wins, ties = draw(Responses(outcomes), "pairs", size=4_000)
    totals = wins + wins.swapaxes(1, 2) + ties
    expected = [[0, 320, 160], [320, 0, 160], [160, 160, 0]]
    np.testing.assert_allclose(totals, np.broadcast_to(expected, totals.shape), rtol=1e-12)
    net = (wins - wins.swapaxes(1, 2))[:, 0]
    # The weights have the concentration of eight trials; draws of scores are widened afterwards.
    shared = np.array([8, 4])
    factor = (shared - 1) / (shared * (1 - 2 / 8) + 1)
    for place, (n, shown) in enumerate(zip(shared, factor, strict=True), start=1):
        differences = outcomes[0, :, :n] - outcomes[place, :, :n]
        wanted = n**2 * variance_of_mean(differences).sum()
        np.testing.assert_allclose(net[:, place].var(), shown * wanted, rtol=0.1)


@pytest.mark.parametrize("method", ["avg", "colley", "pagerank"])
def test_a_system_of_few_trials_leaves_the_others_as_precise(method):
    rng = np.random.default_rng(0)
    outcomes = (rng.random((4, 30, 30)) < rng.random((4, 30, 1))).astype(int)
    whole = draw_scores(Responses(outcomes[:3]), method, random_seed=0)
    outcomes[3, :, 2:] = -1
    ragged = draw_scores(Responses(outcomes), method, random_seed=0)
    ratio = ragged[..., :3].std(axis=(0, 1)) / whole.std(axis=(0, 1))
    # Comparisons with the fourth have the noise of two trials.
    assert (ratio < (1.1 if method == "avg" else 2.5)).all()


def test_paired_systems_without_two_trials_in_common_cannot_be_compared():
    outcomes = np.array([[[0, 1, -1, -1]] * 3, [[-1, -1, 1, 0]] * 3, [[-1, 1, 1, -1]] * 3])
    message = "trials must be two or more that systems share.*paired=False"
    with pytest.raises(DataError, match=message):
        rank(Responses(outcomes), "colley", target="benchmark")


@pytest.mark.parametrize("paired", [True, False])
def test_unobserved_cells_stay_unobserved(paired):
    outcomes = np.array([[[0, 1, 1], [-1, -1, -1]], [[1, 0, -1], [0, 0, 1]]])
    data = Responses(outcomes, paired=paired)
    (grades,) = draw(data, "grades", size=50)
    np.testing.assert_array_equal(np.isnan(grades), np.broadcast_to([[0, 1], [0, 0]], (50, 2, 2)))
    correct, trials = draw(data, "binary", size=50)
    np.testing.assert_array_equal(trials, np.broadcast_to(data.trials, (50, 2, 2)))
    np.testing.assert_array_equal(correct[:, 0, 1], 0)


def test_binary_counts_are_the_grades_times_trials():
    data = simulate(5)
    (grades,) = draw(data, "grades", size=20)
    correct, trials = draw(data, "binary", size=20)
    np.testing.assert_allclose(correct, 5 * grades, rtol=1e-12)
    np.testing.assert_array_equal(trials, np.full((20, 3, 3), 5))


def test_categories_are_not_binary():
    with pytest.raises(DataError, match="outcomes must be right or wrong"):
        draw(simulate(5, categories=3), "binary", size=2)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("n_trials", [3, 8])
def test_wins_vary_as_differences_of_systems_do(n_trials, paired):
    data = simulate(n_trials, seed=5, paired=paired)
    wins, ties = draw(data, "pairs", size=20_000)
    assert wins.shape == ties.shape == (20_000, 3, 3)
    assert wins.min() >= 0
    assert ties.min() >= 0
    assert_every_trial_compared(wins, ties, 3 * n_trials)
    right = data.outcomes
    for i, j in itertools.combinations(range(3), 2):
        if paired:
            variance = variance_of_mean(right[i] - right[j])
        else:
            variance = variance_of_mean(right[i]) + variance_of_mean(right[j])
        net = wins[:, i, j] - wins[:, j, i]
        mean = float((right[i] - right[j]).sum())
        assert_moments(net, mean, n_trials**2 * variance.sum(), rtol=0.06)
    np.testing.assert_allclose(wins.mean(axis=0), data.comparisons.wins, atol=0.06)


@pytest.mark.parametrize("paired", [True, False])
def test_pairs_of_two_trials_are_never_negative(paired):
    wins, ties = draw(simulate(2, seed=2, paired=paired), "pairs", size=2_000)
    assert wins.min() >= 0
    assert ties.min() >= 0
    assert_every_trial_compared(wins, ties, 6)


def test_pairs_follow_the_worth_of_the_categories():
    outcomes = np.random.default_rng(1).integers(0, 3, (2, 3, 4))
    upwards, downwards = (Responses(outcomes, weights=w) for w in ([0, 1, 2], [2, 1, 0]))
    wins, ties = draw(upwards, "pairs", size=10)
    turned, same = draw(downwards, "pairs", size=10)
    np.testing.assert_allclose(turned, wins.swapaxes(1, 2), rtol=1e-12)
    np.testing.assert_allclose(same, ties, rtol=1e-12)


# Trials, drawn anew


def test_redrawn_right_answers_are_binomial_around_shrunk_shares():
    data = simulate(4, seed=1)
    correct, trials = draw(data, "binary", smooth=False)
    p = (data.counts[..., 1] + 0.5) / 5
    assert_moments(correct, 4 * p, 4 * p * (1 - p))
    np.testing.assert_array_equal(correct, correct.round())
    assert correct.min() >= 0
    assert correct.max() <= 4
    np.testing.assert_array_equal(trials[0], data.trials)


def test_redrawn_categories_are_multinomial_around_shrunk_shares():
    data = simulate(4, categories=3, seed=1)
    (grades,) = draw(data, "grades", smooth=False)
    p, worth = (data.counts + 1 / 3) / 5, data.category_weights
    mean = p @ worth
    assert_moments(grades, mean, (p @ worth**2 - mean**2) / 4)


def test_redrawn_cells_keep_their_number_of_trials():
    outcomes = np.array([[[0, 1, 1], [-1, -1, -1]], [[1, 0, -1], [0, 0, 1]]])
    (grades,) = draw(Responses(outcomes), "grades", smooth=False, size=200)
    assert set(np.unique(grades[:, 0, 0])) <= {0, 1 / 3, 2 / 3, 1}
    assert set(np.unique(grades[:, 1, 0])) <= {0, 0.5, 1}
    assert np.isnan(grades[:, 0, 1]).all()


def test_redrawn_scores_are_drawn_with_replacement():
    scores = np.random.default_rng(0).random((2, 2, 4))
    scores[0, 0, 1] = np.nan
    scores[1, 1, :] = np.nan
    (grades,) = draw(Responses(scores), "grades", smooth=False)
    seen = np.array([[3, 4], [4, np.nan]])
    with np.errstate(invalid="ignore"):
        mean = np.nansum(scores, axis=-1) / seen
        variance = (np.nansum(scores**2, axis=-1) / seen - mean**2) / seen
    assert np.isnan(grades[:, 1, 1]).all()
    for cell in ((0, 0), (0, 1), (1, 0)):
        assert_moments(grades[:, *cell], mean[cell], variance[cell])


def test_redrawn_pairs_compare_the_redrawn_cells():
    data = Responses([[[1, 1, 0]], [[0, 1, 0]]], paired=True)
    wins, ties = draw(data, "pairs", smooth=False)
    p, q = 2.5 / 4, 1.5 / 4
    np.testing.assert_allclose(
        wins.mean(axis=0), [[0, 3 * p * (1 - q)], [3 * q * (1 - p), 0]], atol=0.02
    )
    np.testing.assert_allclose(wins[:, 0, 1] + wins[:, 1, 0] + ties[:, 0, 1], 3, rtol=1e-12)


def test_redrawn_pairs_need_no_weights():
    data = Responses([[[0, 1, 2]], [[2, 1, 0]]], categories=3)
    wins, ties = draw(data, "pairs", smooth=False, size=20)
    np.testing.assert_allclose(wins[:, 0, 1] + wins[:, 1, 0] + ties[:, 0, 1], 3, rtol=1e-12)


def test_a_stream_replays_trials_of_every_question():
    data = simulate(4)
    rng = np.random.default_rng(1)
    ((stream, order),) = resample(
        data, "stream", target="benchmark", smooth=False, size=500, rng=rng
    )
    np.testing.assert_array_equal(stream, data.stream)
    assert order.shape == (500, 12)
    # Trial-major: every block of three events has questions 0, 1, 2 in this order.
    np.testing.assert_array_equal(order % 3, np.broadcast_to(np.tile(np.arange(3), 4), (500, 12)))
    trials = order // 3
    np.testing.assert_allclose(np.bincount(trials.ravel()) / trials.size, 0.25, atol=0.02)


# Questions


@pytest.mark.parametrize("n_questions", [5, 8, 20])
def test_weighted_questions_have_the_variance_of_students_t(n_questions):
    rng = np.random.default_rng(0)
    data = simulate(1, n_questions=n_questions)
    weights = question_weights(data, SIZE, rng)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.mean(axis=1), 1, rtol=1e-12)
    values = rng.random(n_questions)
    means = weights @ values / n_questions
    assert_moments(means, values.mean(), values.var() / (n_questions - 3))


@pytest.mark.parametrize("n_questions", [2, 3, 4])
def test_few_questions_have_the_variance_of_one(n_questions):
    rng = np.random.default_rng(0)
    weights = question_weights(simulate(1, n_questions=n_questions), SIZE, rng)
    values = rng.random(n_questions)
    means = weights @ values / n_questions
    assert_moments(means, values.mean(), values.var() / (0.02 * n_questions + 1))
    # Next to nothing, but enough for a score where one question links two systems.
    assert weights.min() == pytest.approx(1e-6, rel=0.01)


@pytest.mark.parametrize("kind", ["grades", "binary", "counts", "evidence"])
def test_weighted_questions_leave_the_data_as_they_are(kind):
    data = simulate(3, prior_outcomes=np.zeros((3, 1)))
    rng = np.random.default_rng(0)
    ((*arrays, weights),) = resample(data, kind, target="population", smooth=True, size=7, rng=rng)
    assert weights.shape == (7, 3)
    point = {
        "grades": (data.grades,),
        "binary": data.binary_counts,
        "counts": (data.counts, data.category_weights),
        "evidence": (data.counts, data.category_weights, np.full((1, 3, 2), [1, 0])),
    }[kind]
    for found, expected in zip(arrays, point, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("paired", [True, False])
def test_pairs_of_a_question_are_those_of_its_trials_alone(paired):
    outcomes = np.random.default_rng(0).integers(-1, 2, (4, 6, 3))
    found = Responses(outcomes, paired=paired).compare_by_question()
    for m in range(outcomes.shape[1]):
        alone = Responses(outcomes[:, m : m + 1]).compare("paired" if paired else "all")
        for parts, expected in zip(found, (alone.wins, alone.ties), strict=True):
            np.testing.assert_allclose(parts[m], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("paired", [True, False])
def test_wins_are_sums_over_weighted_questions(paired):
    data = simulate(3, n_questions=6, paired=paired)
    wins, ties = draw(data, "pairs", target="population", size=20)
    weights = question_weights(data, 20, np.random.default_rng(1))
    alone = [Responses(data.outcomes[:, [m]], paired=paired).comparisons for m in range(6)]
    expected = np.einsum("bm,mij->bij", weights, [one.wins for one in alone])
    np.testing.assert_allclose(wins, expected, rtol=1e-12, atol=1e-12)
    expected = np.einsum("bm,mij->bij", weights, [one.ties for one in alone])
    np.testing.assert_allclose(ties, expected, rtol=1e-12, atol=1e-12)
    assert min(wins.min(), ties.min()) >= 0


def redrawn(data, kind, size, *, turns=True, seed=0):
    rng = np.random.default_rng(seed)
    options = {"target": "population", "smooth": False, "size": size, "turns": turns}
    ((arrays, weights),) = resample(data, kind, rng=rng, **options)
    return arrays, weights


@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("groups", [None, list("aabbccddeeff")])
def test_redrawn_questions_are_whole_numbers_that_add_up(groups, turns):
    data = simulate(2, n_questions=12, groups=groups)
    _, weights = redrawn(data, "grades", SIZE // 20, turns=turns)
    assert weights.dtype == np.int64
    assert weights.shape == (SIZE // 20, 16 if turns else 12)
    np.testing.assert_array_equal(weights.sum(axis=1), 12)


def test_questions_are_drawn_alike_and_prior_ones_as_often_as_one_of_them():
    data = simulate(2, n_questions=6)
    _, weights = redrawn(data, "grades", SIZE, turns=False)
    assert_moments(weights.astype(float), np.ones(6), np.full(6, 5 / 6))
    _, weights = redrawn(data, "grades", SIZE)
    chance = np.repeat([1.0, 1 / 4], [6, 4]) / 7
    assert_moments(weights.astype(float), 6 * chance, 6 * chance * (1 - chance))


@pytest.mark.parametrize("groups", [None, list("abcdefghijkk")])
def test_data_sets_of_a_population_share_it(groups):
    data = simulate(2, n_questions=12, groups=groups)
    rng = np.random.default_rng(0)
    ((_, weights),) = resample(
        data, "grades", target="population", smooth=False, size=SIZE // 20, rng=rng, of_each=2
    )
    np.testing.assert_array_equal(weights.sum(axis=1), 12)
    first, second = weights.reshape(-1, 2, 12).swapaxes(0, 1)
    assert (first != second).any()
    # Between two data sets of a population the covariance is the variance of Dirichlet weights
    # with concentration (n - 4) / n, 1 - 1 / n times n / (n - 3).
    n = 11 if groups else 12
    shared = ((first - 1.0) * (second - 1.0)).mean(axis=0)[:10].mean()
    assert shared == pytest.approx((n - 1) / (n - 3), rel=0.15)


@pytest.mark.parametrize("n_systems", [1, 2, 3, 8])
def test_coins_of_systems_are_even_and_independent(n_systems):
    data = Responses(np.full((n_systems, 2, 3), 0.5), groups=["a", "b"])
    coins = resampling.with_prior_questions(data).values[:, 2:, 0]
    assert set(np.unique(coins)) == {0.0, 1.0}
    products = (2.0 * coins - 1.0) @ (2.0 * coins - 1.0).T / coins.shape[1]
    np.testing.assert_array_equal(products, np.eye(n_systems))
    np.testing.assert_array_equal(coins.mean(axis=1), 0.5)


def test_prior_questions_have_the_ends_of_worths_and_are_answered_by_all():
    values = np.array([[[0, 1, 2, -1]], [[2, 2, 1, 0]]])
    data = Responses(values, weights=[0.5, 0.0, 1.0], groups=["a"], prior_outcomes=[[0]])
    more = resampling.with_prior_questions(data)
    np.testing.assert_array_equal(more.outcomes[:, :1], values)
    # By worth the categories are 1, 0, 2.
    np.testing.assert_array_equal(more.outcomes[:, 1:, 0], [[1, 2, 1, 2], [1, 1, 2, 2]])
    assert (np.ptp(more.outcomes[:, 1:], axis=2) == 0).all()
    assert more.groups == ("a",) * 5
    np.testing.assert_array_equal(more.prior_outcomes, [[0]] * 5)


def test_a_stream_repeats_whole_questions():
    data = simulate(3, n_questions=4)
    stream, order = redrawn(data, "stream", 50, turns=False)
    assert order.shape == (50, 12)
    np.testing.assert_array_equal(stream, data.stream)
    questions, trials = order % 4, order // 4
    np.testing.assert_array_equal(trials, np.broadcast_to(np.repeat(np.arange(3), 4), (50, 12)))
    for block in (questions[:, 4:8], questions[:, 8:]):
        np.testing.assert_array_equal(block, questions[:, :4])


def test_any_question_may_end_a_stream():
    _, order = redrawn(simulate(3, n_questions=4), "stream", 2000, turns=False)
    last = np.bincount(order[:, -1] % 4) / len(order)
    np.testing.assert_allclose(last, 0.25, atol=0.04)


# Battles


def test_battles_have_dirichlet_weights():
    table = Comparisons([[0, 3, 2], [1, 0, 0], [0.5, 2, 0]], [[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    wins, ties = draw(table, "pairs", target="battles")
    total = 8.5 + 3
    np.testing.assert_allclose(wins.sum(axis=(1, 2)) + ties.sum(axis=(1, 2)) / 2, total)
    np.testing.assert_array_equal(ties, ties.swapaxes(1, 2))
    for draws, counts in ((wins, table.wins), (ties, table.ties)):
        # A Dirichlet with parameters that add up to the number of battles.
        share = counts / total
        variance = total**2 * share * (1 - share) / (total + 1)
        assert_moments(draws, counts, variance, rtol=0.05)
        np.testing.assert_array_equal(draws[:, counts == 0], 0)


# Batches and seeds


CASES = [
    ("grades", "benchmark", True),
    ("pairs", "benchmark", True),
    ("grades", "benchmark", False),
    ("pairs", "benchmark", False),
    ("grades", "population", True),
    ("pairs", "population", True),
]


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("kind", "target", "smooth"), CASES)
def test_small_batches_add_up_to_the_size(monkeypatch, kind, target, smooth, paired):
    data = simulate(3, paired=paired)
    options = {"target": target, "smooth": smooth, "size": 23}
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 60)
    batches = list(resample(data, kind, rng=np.random.default_rng(0), **options))
    assert len(batches) > 3
    assert sum(len(batch[-1]) for batch in batches) == 23


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("kind", ["grades", "pairs"])
def test_weighted_trials_do_not_depend_on_the_size_of_batches(monkeypatch, kind, paired):
    data = simulate(3, paired=paired)
    at_once = draw(data, kind, size=23)
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 60)
    # Processors differ in how they round sums of other lengths.
    for part, whole in zip(draw(data, kind, size=23), at_once, strict=True):
        np.testing.assert_allclose(part, whole, rtol=1e-12)


@pytest.mark.parametrize(("kind", "target", "smooth"), CASES)
def test_the_seed_decides(kind, target, smooth):
    data = simulate(3)
    first, again, other = (
        draw(data, kind, target=target, smooth=smooth, size=5, seed=seed)[-1] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_memory_counts_the_weights_of_unpaired_scores(monkeypatch):
    data = Responses(np.random.default_rng(0).random((3, 2, 10)), paired=False)
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 120)
    batches = list(
        resample(
            data, "grades", target="benchmark", smooth=True, size=8, rng=np.random.default_rng(0)
        )
    )
    # One resample has 60 weights.
    assert [len(batch[0]) for batch in batches] == [2, 2, 2, 2]


# What is refused


def test_one_trial_shows_no_variation():
    for data in (simulate(1), Responses([[[0, 1], [1, -1]]])):
        with pytest.raises(DataError, match=r"trials must be two or more .* target='population'"):
            draw(data, "grades", size=2)
    with pytest.raises(DataError, match=r"got one in 1 of 2 observed cells"):
        require_two_trials(Responses([[[0, 1], [1, -1]]]))
    require_two_trials(Responses([[[0, 1], [-1, -1]]]))


@pytest.mark.parametrize("smooth", [True, False])
def test_one_question_shows_no_variation(smooth):
    with pytest.raises(DataError, match=r"questions must be two or more .* target='benchmark'"):
        draw(simulate(3, n_questions=1), "grades", target="population", smooth=smooth, size=2)


def test_no_battle_shows_no_variation():
    with pytest.raises(DataError, match="comparisons must hold one at least for target='battles'"):
        draw(Comparisons(np.zeros((2, 2))), "pairs", target="battles", size=2)
