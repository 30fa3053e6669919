"""The table of contributions, the jackknife, and the variance that draws lack."""

import numpy as np
import pytest

from bayesrank import Battles, Comparisons, Responses
from bayesrank.inference.resample.corrections import (
    battle_jackknife,
    ranker_jackknife,
    with_common_variance,
    with_missing_variance,
)
from bayesrank.inference.resample.units import Contributions, freedom_of
from bayesrank.inference.resample.weights import unit_weights
from bayesrank.methods.graph import win_rates
from bayesrank.ranking import draw_scores, point_estimate


def simulate(shape=(3, 12, 6), seed=0, **options) -> Responses:
    rng = np.random.default_rng(seed)
    chance = rng.random((1, shape[1], 1)) * np.linspace(0.6, 1.0, shape[0])[:, None, None]
    return Responses((rng.random(shape) < chance).astype(int), **options)


def test_one_question_with_leverage_widens_the_draws():
    rng = np.random.default_rng(0)
    draws = rng.normal(0.0, 1.0, (4, 500, 2))
    # Without any of 19 questions nothing changes; without the last one the second score does.
    left_out = np.zeros((20, 2))
    left_out[:, 0] = rng.normal(0.0, 0.1, 20)
    left_out[-1, 1] = 5.0
    table = Contributions.of(left_out, left_out=True)
    widened = with_missing_variance(draws, table, np.random.SeedSequence(0))
    np.testing.assert_array_equal(widened[..., 0], draws[..., 0])
    assert widened[..., 1].std() > 2.0 * draws[..., 1].std()


def test_a_standard_error_that_hangs_on_one_question_has_long_tails():
    draws = np.random.default_rng(0).normal(0.0, 1.0, (4, 500, 1))
    left_out = np.zeros((20, 1))
    left_out[-1] = 1.1
    table = Contributions.of(left_out, left_out=True)
    # Its kurtosis leaves four degrees of freedom at most, and so twice the variance.
    assert (
        with_missing_variance(draws, table, np.random.SeedSequence(0)).std()
        > 1.2 * table.standard_errors[0]
    )


def mean_grades(arguments):
    grades, weights = arguments
    return (grades * weights[:, np.newaxis]).mean(axis=-1)


@pytest.mark.parametrize(("n_questions", "is_told"), [(4, False), (5, True), (501, False)])
def test_a_jackknife_needs_some_questions_and_not_too_many(n_questions, is_told):
    table = ranker_jackknife(simulate((2, n_questions, 2)), "grades", mean_grades, 501)
    assert (table is not None) == is_told
    assert table is None or len(table.deviations) == n_questions


def test_clusters_are_left_out_whole():
    data = simulate((2, 12, 2), groups=list("aabbccddeeff"))
    table = ranker_jackknife(data, "grades", mean_grades, 501)
    by_cluster = data.grades.reshape(2, 6, 2).sum(axis=-1) / 12
    expected = np.cov(by_cluster) * 6
    np.testing.assert_allclose(table.covariance, expected, rtol=1e-4)
    assert table.freedom == 5.0


# The table


def test_contributions_of_units_of_unequal_size_are_those_of_the_jackknife():
    rng = np.random.default_rng(0)
    values, clusters = rng.normal(size=(15, 2)), np.repeat(np.arange(4), [1, 2, 3, 9])
    left_out = np.stack([values[clusters != one].mean(axis=0) for one in range(4)])
    expected = Contributions.of(left_out, left_out=True).deviations
    sums = np.stack(
        [(values - values.mean(axis=0))[clusters == one].sum(axis=0) for one in range(4)]
    )
    found = Contributions.of(sums / 15, sizes=np.bincount(clusters)).deviations
    np.testing.assert_allclose(found, expected, atol=1e-12)


UNEQUAL = np.array([2, 4, 6, 10, 15, 20, 30, 50, 100, 200])


@pytest.mark.parametrize("left_out", [False, True])
def test_units_of_unequal_size_count_as_fewer_in_the_degrees_of_freedom(left_out):
    rows = np.random.default_rng(0).normal(size=(10, 3))
    equal = Contributions.of(rows, sizes=np.full(10, 7), left_out=left_out)
    assert equal.freedom == 9.0
    unequal = Contributions.of(rows, sizes=UNEQUAL, left_out=left_out)
    assert unequal.freedom == pytest.approx(437**2 / (UNEQUAL**2).sum() - 1)
    # One of two is left even if nearly all data are of one unit.
    assert freedom_of(np.array([1, 1, 98])) == 1.0


def test_weights_of_units_of_unequal_size_vary_more():
    rng = np.random.default_rng(0)
    equal, unequal = (unit_weights(each, 4000, rng).var() for each in (np.full(10, 9), UNEQUAL))
    # A normalised weight of n units has the variance (n - 1) / (n c + 1): c is 0.6, and 0.2.
    assert (equal, unequal) == pytest.approx((9 / 7, 9 / 3), rel=0.05)


def test_scores_of_any_size_have_the_same_shape():
    rows, sizes = np.random.default_rng(0).gamma(1.0, size=(30, 1)), np.array([1e-200, 1.0, 1e200])
    table = Contributions.of(rows * sizes)
    np.testing.assert_allclose(table.tail_freedom, table.tail_freedom[1])
    np.testing.assert_allclose(table.standard_errors, rows.std(ddof=1) * 30**0.5 * sizes)


def test_rounding_is_no_contribution():
    rows = 1.0 + 1e-15 * np.random.default_rng(0).normal(size=(30, 1))
    table = Contributions.of(rows)
    assert not table.covariance.any()


@pytest.mark.parametrize("unit", ["battle", "judge"])
def test_the_only_battle_of_a_pair_has_leverage_on_its_share(unit):
    # With a few battles per pair, shares of pairs vary less over resamples than over data sets.
    rng, n = np.random.default_rng(0), 12

    def simulate_battles() -> Battles:
        first, second = np.triu_indices(n, 1)
        right = rng.random(len(first)) < 0.6
        named = [f"s{one}" for one in range(n)]
        winner = np.where(right, "model_a", "model_b").tolist()
        judge = [f"j{one % 30}" for one in range(len(first))]
        pairs = ([named[one] for one in side] for side in (first, second))
        return Battles(*pairs, winner, systems=named, judge=judge)

    logs = [simulate_battles() for _ in range(20)]
    points = np.array([point_estimate(log, "pagerank") for log in logs])
    drawn = [draw_scores(log, "pagerank", unit=unit, draws=50) for log in logs]
    spread = np.sqrt(np.mean([each.var(axis=(0, 1)) for each in drawn], axis=0))
    assert 0.9 < (spread / points.std(axis=0, ddof=1)).mean() < 2.0


def test_the_jackknife_of_battles_has_the_variance_of_shares():
    wins, ties = np.array([[0.0, 6.0], [3.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])

    def shares(arguments):
        return win_rates(*arguments).sum(axis=-1)

    for most in (10, 11, 2000):
        table = battle_jackknife(Comparisons(wins, ties), shares, most, "battle")
        assert table is not None
        results = np.repeat([1.0, 0.5, 0.0], [6, 1, 3])
        np.testing.assert_allclose(table.covariance[0, 0], results.var(ddof=1) / 10)
    # Of more battles than that, several are left out at once.
    table = battle_jackknife(Comparisons(100 * wins, 100 * ties), shares, 500, "battle")
    assert table is not None
    assert len(table.deviations) == 500
    np.testing.assert_allclose(table.covariance[0, 0], results.var() / 1000, rtol=0.15)


def test_a_system_with_few_units_has_the_common_variance_of_a_unit():
    rng = np.random.default_rng(0)
    units = np.array([40.0, 40.0, 4.0, 4.0, 20.0])
    draws = rng.normal(0.0, [0.1, 0.1, 0.01, 1.0, 0.1], (4, 5000, 5))
    wider = with_common_variance(draws, units, 1.0 / units, np.random.SeedSequence(1))
    # Those with most units, and those that vary more anyway, keep their draws.
    kept = [0, 1, 3]
    np.testing.assert_array_equal(wider[..., kept], draws[..., kept])
    variances = np.array([0.01, 0.01, 1e-4, 1.0, 0.01])
    one_unit = (units**2 * variances).sum() / units.sum()
    for system, share in ((2, 0.9), (4, 0.5 * 0.5)):
        wanted = share * one_unit / units[system] + (1.0 - share) * variances[system]
        assert wider[..., system].var() == pytest.approx(wanted, rel=0.03)
    fours = np.full(5, 4.0)
    equal = with_common_variance(draws, fours, 1.0 / fours, np.random.SeedSequence(0))
    np.testing.assert_array_equal(equal, draws)


@pytest.mark.parametrize("method", ["colley", "win_rate", "rank_centrality", "bradley_terry_map"])
def test_a_system_with_three_questions_has_wide_intervals(method):
    # Its answers are alike: they show no variance over questions.
    data = simulate((6, 40, 1), paired=False)
    outcomes = data.outcomes.copy()
    outcomes[0] = -1
    outcomes[0, :3, 0] = (0, 0, 1)
    outcomes[1:, :3, 0] = np.array([0, 1, 0, 1, 0])[:, np.newaxis]
    draws = draw_scores(Responses(outcomes, paired=False), method, random_seed=0)
    sd = draws.std(axis=(0, 1))
    assert sd[0] > 2.0 * sd[1:].mean()


@pytest.mark.parametrize("method", ["avg", "colley", "rank_centrality", "bradley_terry_map"])
@pytest.mark.parametrize("unit", ["trial", "run"])
@pytest.mark.filterwarnings("ignore:1 run is too few")
def test_a_system_with_one_run_varies_as_the_others(method, unit):
    outcomes = simulate((4, 30, 6), paired=True).outcomes.copy()
    outcomes[0, :, 1:] = -1
    data = Responses(outcomes)
    sd = draw_scores(data, method, target="benchmark", unit=unit, random_seed=0).std(axis=(0, 1))
    assert 1.5 < sd[0] / sd[1:].mean() < 3.5
