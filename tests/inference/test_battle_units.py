"""Intervals over prompts and judges: what units add to the gradient, and resamples of them."""

import numpy as np
import pytest

from bayesrank import Battles, Comparisons, rank
from bayesrank.inference.calibrate.variation import ModelPart, unit_variation
from bayesrank.inference.fits import pairs
from bayesrank.inference.fits.pair_rows import pair_rows
from bayesrank.inference.resample.weights import draw_units
from bayesrank.methods.eigen import serial_rank
from bayesrank.ranking import draw_scores, point_estimate

NAMES = np.array(list("abcd"))


def a_log(n=240, n_judges=8, seed=0, **columns):
    rng = np.random.default_rng(seed)
    first = rng.integers(4, size=n)
    second = (first + 1 + rng.integers(3, size=n)) % 4
    winner = rng.choice(["first", "first", "second", "tie"], size=n)
    judge = rng.integers(n_judges, size=n)
    columns = {"judge": judge, "prompt": np.arange(n) // 2} | columns
    return Battles(NAMES[first], NAMES[second], winner, systems=NAMES, **columns)


@pytest.mark.parametrize(
    ("likelihood", "point"),
    [
        (pairs.bradley_terry(), [0.4, 0.1, -0.2, -0.3]),
        (pairs.bradley_terry(ties="half"), [0.4, 0.1, -0.2, -0.3]),
        (pairs.thurstone_mosteller(), [0.4, 0.1, -0.2, -0.3]),
        (pairs.davidson(), [0.4, 0.1, -0.2, -0.3, -0.7]),
        (pairs.rao_kupper(), [0.4, 0.1, -0.2, -0.3, 0.5]),
        (pairs.rao_kupper(tie_strength=1.6), [0.4, 0.1, -0.2, -0.3]),
    ],
)
@pytest.mark.parametrize("unit", ["judge", "prompt", "battle"])
def test_the_variance_is_that_of_the_gradients_of_units(likelihood, point, unit):
    weight = np.random.default_rng(1).choice([0.5, 1.0, 2.0], 240)
    data, point = a_log(weight=weight), np.array(point)
    codes = data.unit_codes(unit)
    parts = [data.take(np.flatnonzero(codes == code)) for code in np.unique(codes)]
    wins, ties = (np.stack([getattr(part, name) for part in parts]) for name in ("wins", "ties"))
    gradients = likelihood.gradient(point, wins, ties)
    n = len(parts)
    share = np.bincount(codes, weight) / weight.sum()
    widening = 1 + 2 / (1 / (share**2).sum() - 3)
    # Without a unit of share w a sum moves by 1 / (1 - w) of what the unit adds: the jackknife.
    own = gradients - share[:, np.newaxis] * gradients.sum(axis=0)
    moves = own / (1 - share)[:, np.newaxis]
    expected = widening * (n - 1) ** 2 / n * np.cov(moves, rowvar=False)
    rows = pair_rows(likelihood, data, data.design(None))
    np.testing.assert_allclose(
        unit_variation(rows, data, unit, point).covariance,
        expected,
        atol=1e-9 * np.abs(expected).max(),
    )


def test_the_spread_of_scores_is_the_sandwich():
    data = a_log(2400, n_judges=40)
    result = rank(data, "davidson", unit="judge", draws=5000, random_seed=1)
    assert result.attrs["unit"] == "judge"
    assert result.attrs["calibration"] == "sandwich"
    fit = pairs.davidson()
    score = result["ranking"]["score"].values
    point = np.append(score, np.log(result["point_estimate"]["tie_strength"]))
    found = unit_variation(pair_rows(fit, data, data.design(None)), data, "judge", point)
    step = 1e-5
    moved = point + step * np.eye(5)
    backwards = point - step * np.eye(5)
    tables = data.wins[np.newaxis], data.ties[np.newaxis]
    slopes = [fit.gradient(at, *tables)[0] for at in (*moved, *backwards)]
    hessian = (np.array(slopes[5:]) - np.array(slopes[:5])) / (2 * step)
    bread = np.linalg.pinv(hessian + np.diag([1.0] * 4 + [0.25]))  # with the priors
    meat = ModelPart(hessian, hessian, np.zeros((5, 5))).covariance(found)
    contrast = np.eye(4) - 0.25
    expected = contrast @ (bread @ meat @ bread)[:4, :4] @ contrast
    found = np.cov(result["posterior"]["score"].values.reshape(-1, 4), rowvar=False)
    np.testing.assert_allclose(found, expected, atol=0.04 * np.abs(expected).max())


@pytest.mark.parametrize("method", ["bradley_terry", "davidson", "cumulative_logit"])
@pytest.mark.parametrize("backend", ["map", "mle"])
def test_counts_of_battles_have_the_sandwich_of_their_rows(method, backend):
    rows = a_log(2400, judge=None, prompt=None)
    spread = [
        np.cov(
            rank(data, method, backend=backend, calibration="sandwich", draws=2000, random_seed=1)[
                "posterior"
            ]["score"].values.reshape(-1, 4),
            rowvar=False,
        )
        for data in (rows, Comparisons(rows.wins, rows.ties))
    ]
    np.testing.assert_allclose(*spread, atol=0.1 * spread[0].max())


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("davidson", {"calibration": "sandwich"}),
        ("davidson", {"calibration": "sandwich", "formula": "1"}),
        ("pagerank", {}),
        ("serial_rank", {}),
        ("elo", {}),
    ],
)
def test_a_row_of_many_votes_has_the_intervals_of_a_row_for_each(method, options):
    data = a_log(60, judge=None, prompt=None, weight=np.repeat([1, 7, 20], 20))
    alone = data.single_votes()
    found, expected = (
        rank(each, method, random_seed=1, draws=50, **options)["ranking"] for each in (data, alone)
    )
    for name in ("score_lower", "score_upper"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12)
    assert found.attrs.get("freedom") == expected.attrs.get("freedom")


def test_the_units_of_a_log_are_the_default_and_are_printed(run, tmp_path):
    assert rank(a_log(), draws=50).attrs["unit"] == "judge,prompt"
    assert rank(a_log(), "pagerank", draws=50).attrs["unit"] == "judge"
    data = a_log(prompt=None)
    assert rank(data, draws=50).attrs["unit"] == "judge"
    path = tmp_path / "log.csv"
    rows = [
        f"{NAMES[i]},{NAMES[j]},{['model_b', 'tie', 'model_a'][o + 1]},u{u}"
        for i, j, o, u in zip(data.first, data.second, data.outcome, data.judge.codes, strict=True)
    ]
    path.write_text("\n".join(["model_a,model_b,winner,judge", *rows]))
    assert "target battles, unit judge" in run("rank", path).stdout.splitlines()[0]
    by_battle = run("rank", path, "--unit", "battle").stdout.splitlines()[0]
    assert "unit" not in by_battle
    assert (
        "unit must be one of judge, battle" in run("rank", path, "--unit", "prompt", code=2).stderr
    )


def test_swapped_games_are_one_unit():
    """Two games of a judge that always agree with each other tell as much as one."""
    rng = np.random.default_rng(3)
    n = 400
    first = rng.integers(4, size=n)
    second = (first + 1 + rng.integers(3, size=n)) % 4
    won = rng.random(n) < 0.6
    single = Battles(NAMES[first], NAMES[second], won * 1, systems=NAMES)
    both = Battles(
        np.concatenate([NAMES[first], NAMES[second]]),
        np.concatenate([NAMES[second], NAMES[first]]),
        np.concatenate([won, ~won]) * 1,
        systems=NAMES,
        vote=np.tile(np.arange(n), 2),
    )
    spread = [
        rank(each, "bradley_terry", backend="mle", draws=4000, random_seed=1)["posterior"]["score"]
        .values.std((0, 1))
        .mean()
        for each in (single, both)
    ]
    assert spread[1] == pytest.approx(spread[0], rel=0.05)


def test_resamples_of_units_are_counts_of_their_battles():
    data = a_log(weight=np.random.default_rng(1).choice([0.5, 1.0, 2.0], 240))
    rng = np.random.default_rng(0)
    for smooth in (True, False):
        draw, _ = draw_units(data, "pairs", "judge", smooth=smooth, rng=rng)
        wins, ties = draw(3000)
        scale = np.maximum(data.wins, 1.0)
        np.testing.assert_allclose(wins.mean(axis=0) / scale, data.wins / scale, atol=0.05)
        np.testing.assert_array_equal(ties, ties.swapaxes(1, 2))
        # A judge is in or out as a whole.
        total = wins.sum(axis=(1, 2)) + ties.sum(axis=(1, 2)) / 2
        by_judge = np.bincount(data.judge.codes, data.weight)
        if not smooth:
            np.testing.assert_allclose(total.var() / (8 * by_judge.var()), 1.0, atol=0.1)


@pytest.mark.parametrize(("method", "step"), [("win_rate", 1.0 / 4), ("elo", 1e-3)])
def test_few_judges_have_the_variance_of_students_t(method, step):
    won = np.random.default_rng(2).integers(0, 5, 12)
    outcome = np.concatenate([np.repeat([1, -1], [k, 4 - k]) for k in won])
    judge = np.repeat(np.arange(12), 4)
    data = Battles(["a"] * 48, ["b"] * 48, outcome, judge=judge, systems=["a", "b"])
    options = {"K": 1e-3} if method == "elo" else {}  # next to nothing at stake: ratings add up
    result = rank(data, method, unit="judge", draws=2_000, random_seed=0, **options)
    # A win rate is the mean of those of the judges, a rating the sum of their wins.
    variance = won.var() / (12 - 3) * (step if method == "win_rate" else 12 * step) ** 2
    spread = result["posterior"]["score"].values.reshape(-1, 2)[:, 0].std()
    assert spread == pytest.approx(np.sqrt(variance), rel=0.04)


def test_discontinuous_scores_are_widened_over_whole_judges():
    data = a_log(n=960, n_judges=12)
    draw, _ = draw_units(data, "pairs", "judge", smooth=False, rng=np.random.default_rng(0))
    drawn, longest = serial_rank(*draw(4_000)), np.sqrt(3 / 4)
    widened = np.sqrt(12 / (12 - 3)) * (drawn - drawn.mean(axis=0))
    expected = np.clip(point_estimate(data, "serial_rank") + widened, -longest, longest).std(axis=0)
    result = rank(data, "serial_rank", unit="judge", draws=1_000, random_seed=0)
    spread = result["posterior"]["score"].values.reshape(-1, 4).std(axis=0)
    np.testing.assert_allclose(spread, expected, rtol=0.04)


def test_an_order_effect_leaves_the_spread_over_judges():
    data = a_log(1200, n_judges=20)
    widths = [
        rank(data, "bradley_terry", backend="map", random_seed=1, **options)["posterior"][
            "score"
        ].values.std((0, 1))
        for options in ({"order_effect": True}, {"formula": "1"})
    ]
    np.testing.assert_allclose(widths[0], widths[1], rtol=0.04)


def test_one_unit_is_refused():
    with pytest.raises(ValueError, match="battles must have two judges or more"):
        rank(a_log(n_judges=1), "win_rate", unit="judge")


def test_counts_alone_have_the_unit_battle():
    data = Comparisons([[0, 9], [3, 0]])
    assert rank(data, draws=50).attrs["unit"] == "battle"
    with pytest.raises(ValueError, match="unit must be 'battle' for comparisons; got 'judge'"):
        rank(data, unit="judge")


def test_nuts_draws_get_the_spread_over_judges():
    rng = np.random.default_rng(5)
    judge = np.repeat(np.arange(30), 40)
    taste = rng.normal(size=(30, 4))
    first = rng.integers(4, size=1200)
    second = (first + 1 + rng.integers(3, size=1200)) % 4
    ahead = taste[judge, first] - taste[judge, second] + rng.logistic(size=1200)
    data = Battles(NAMES[first], NAMES[second], (ahead > 0) * 1, systems=NAMES, judge=judge)
    spreads = [
        rank(data, "davidson", backend=backend, draws=500, random_seed=1)["posterior"][
            "score"
        ].values.std((0, 1))
        for backend in ("map", "nuts")
    ]
    np.testing.assert_allclose(spreads[1], spreads[0], rtol=0.04)


@pytest.mark.parametrize("others", [0.0, 1e-9, 1e-3])
def test_a_judge_of_nearly_all_votes_leaves_an_interval_like_the_priors(others):
    judge = np.random.default_rng(0).integers(6, size=240)
    votes = a_log(judge=judge, weight=np.where(judge == 0, 1.0, others))
    for method in ("bradley_terry_map", "davidson"):
        table = rank(votes, method, unit="judge", draws=500, random_seed=1)["ranking"]
        width = (table["score_upper"] - table["score_lower"]).values
        assert (width > 0.5).all()
        # The prior has intervals of 4; three degrees of freedom double them at most.
        assert (width < 10.0).all()


@pytest.mark.parametrize("method", ["win_rate", "colley"])
def test_a_judge_of_half_of_the_votes_has_leverage(method):
    rng = np.random.default_rng(3)
    judge = np.where(np.arange(240) < 120, 0, rng.integers(1, 20, 240))
    first = rng.integers(4, size=240)
    second = (first + 1 + rng.integers(3, size=240)) % 4
    # One judge favours the first names, the others nobody.
    winner = np.where(
        np.where(judge == 0, first < second, rng.random(240) < 0.5), "first", "second"
    )
    data = Battles(NAMES[first], NAMES[second], winner, judge=judge, systems=NAMES)
    draws = draw_scores(data, method, unit="judge", draws=500, random_seed=1)
    parts = [data.take(np.flatnonzero(judge != one)) for one in range(20)]
    left_out = np.stack([point_estimate(part, method) for part in parts])
    jackknife = np.sqrt(19 * left_out.var(axis=0))
    assert (draws.std(axis=(0, 1)) > 0.9 * jackknife).all()


@pytest.mark.parametrize("method", ["win_rate", "colley", "alpharank"])
def test_votes_of_next_to_no_weight_have_draws(method):
    winners = ["model_a", "model_b", "tie", "model_a"]
    votes = Battles(list("abca"), list("bcab"), winners, weight=[1e-7] * 4)
    assert np.isfinite(rank(votes, method, draws=50, random_seed=1)["posterior"]["score"]).all()


@pytest.mark.parametrize("method", ["davidson", "bradley_terry_map"])
def test_a_system_with_few_judges_has_the_dispersion_of_all_judges(method):
    rng = np.random.default_rng(1)
    judge = np.repeat(np.arange(40), 12)
    first = rng.integers(3, size=len(judge))
    second = (first + 1 + rng.integers(2, size=len(judge))) % 3
    taste = 2.0 * rng.normal(size=(40, 3))
    odds = np.exp(taste[judge, first] - taste[judge, second])
    winner = np.where(rng.random(len(judge)) < odds / (1.0 + odds), "first", "second")
    # Three judges happen to agree on another system: each has two wins of four.
    new = np.full(12, 3), np.tile([0, 1, 2, 0], 3), np.tile(["first", "second"], 6)
    columns = [np.append(*pair) for pair in zip((first, second, winner), new, strict=True)]
    data = Battles(
        NAMES[columns[0].astype(int)],
        NAMES[columns[1].astype(int)],
        columns[2],
        systems=NAMES,
        judge=np.append(judge, np.repeat([0, 1, 2], 4)),
    )
    by_judge, by_battle = (
        rank(data, method, unit=unit, random_seed=1)["posterior"]["score"].std(("chain", "draw"))
        for unit in ("judge", "battle")
    )
    ratio = (by_judge / by_battle).values
    assert ratio[:3].min() > 1.15
    assert ratio[3] > 1.15


def test_one_more_judge_has_as_many_battles_of_a_system_as_its_judges():
    # A newcomer won 40 votes of 30 judges, who have 25 votes each, most of them on other systems.
    rng = np.random.default_rng(0)
    first = rng.integers(1, 6, size=750)
    second = 1 + (first - 1 + rng.integers(1, 5, size=750)) % 5
    first[:40], judge = 0, np.arange(750) % 30
    result = np.where((first == 0) | (rng.random(750) < 0.5), "A>B", "B>A")
    names = np.array(list("nabcde"))
    log = Battles(names[first], names[second], result, systems=names.tolist(), judge=judge)
    lowest = {}
    for unit in ("judge", "battle"):
        ranked = rank(log, "win_rate", unit=unit, draws=500, random_seed=0)["ranking"]
        assert ranked["score"].sel(system="n") == 1.0
        lowest[unit] = ranked["score_lower"].sel(system="n").item()
    # A judge has 4/3 votes on the newcomer, hardly more than a battle.
    assert 0.8 < lowest["judge"] < lowest["battle"] < 1.0
