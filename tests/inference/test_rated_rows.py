"""Judges with a reliability and a bias of their own, against derivatives and simulated truths."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from bayesrank import Battles, Comparisons, models, rank
from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.inference.fits import table
from bayesrank.inference.fits.pair_rows import pair_rows
from bayesrank.inference.fits.raters import RatedRows, _averaged, _Scales, _secant, _with_scales
from bayesrank.inference.fits.vote_likelihoods import cumulative_logit
from bayesrank.priors import Cauchy, Flat, Normal, NormalPrior
from bayesrank.vote_rows import VoteRows

SCORE = np.array([0.9, 0.4, -0.3, -1.0])
NAMES = np.array(list("abcd"))
N_JUDGES = 30


def a_log(n=3000, seed=0, spread=(0.5, 0.4), n_judges=N_JUDGES):
    """Draw graded votes of judges, and return the log reliabilities and biases of the judges."""
    rng = np.random.default_rng(seed)
    effects = np.array(spread)[:, np.newaxis] * rng.normal(size=(2, n_judges))
    effects -= effects.mean(axis=1, keepdims=True)
    first = rng.integers(4, size=n)
    second = (first + 1 + rng.integers(3, size=n)) % 4
    judge = np.concatenate([np.arange(n_judges), rng.integers(n_judges, size=n - n_judges)])
    ahead = np.exp(effects[0, judge]) * (SCORE[first] - SCORE[second] + 0.2) + effects[1, judge]
    result = np.searchsorted([-2.0, -0.5, 0.5, 2.0], ahead + rng.logistic(size=n))
    words = np.array(["B>>A", "B>A", "A=B", "A>B", "A>>B"])[result]
    data = Battles(NAMES[first], NAMES[second], words, systems=NAMES, judge=judge)
    return data, effects


@pytest.fixture(scope="module")
def data():
    return a_log()[0]


def rated(data, effects, precision):
    """Return the joint density of votes and of judges with some effects."""
    kind = partial(RatedRows, judge=data.judge.codes, effects=effects, effect_precision=precision)
    priors = {"prior": NormalPrior(0.0, 1.0), "shared_prior": NormalPrior(0.0, 0.25)}
    return pair_rows(cumulative_logit(), data, data.design("1"), kind=kind, **priors)


def test_derivatives_are_those_of_the_joint_density(data):
    rng = np.random.default_rng(1)
    effects = 0.3 * rng.normal(size=(2, len(data.judge.names)))
    problem = rated(data, effects, np.array([4.0, 9.0]))
    point = np.concatenate([SCORE, [0.1, 0.5, 1.5]])
    found = problem.joint(point)

    def value(moves, of_judge):
        there = replace(problem, effects=problem.effects + of_judge)
        return there.value((point + moves)[np.newaxis])

    none, step = np.zeros_like(problem.effects), 1e-4
    for coordinate in range(len(point)):
        move = step * np.eye(len(point))[coordinate]
        slope = (value(move, none) - value(-move, none)) / (2 * step)
        assert found.gradient[coordinate] == pytest.approx(slope, abs=1e-3)
    still = np.zeros(len(point))
    for kind, judge in ((0, 3), (1, 3), (0, 11), (1, 20)):
        move = none.copy()
        move[kind, judge] = step
        slope = (value(still, move) - value(still, -move)) / (2 * step)
        assert found.own[kind, judge] == pytest.approx(slope, abs=1e-3)
        ahead, behind = (
            replace(problem, effects=problem.effects + sign * move).joint(point) for sign in (1, -1)
        )
        bends = (behind.gradient - ahead.gradient) / (2 * step)
        np.testing.assert_allclose(found.cross[:, kind, judge], bends, atol=1e-3)
        own = (behind.own - ahead.own) / (2 * step)
        np.testing.assert_allclose(found.blocks[judge, kind], own[:, judge], atol=1e-3)
        assert np.abs(np.delete(own, judge, axis=1)).max() < 1e-6  # judges are independent


def test_the_common_factor_and_the_scales_are_those_of_the_marginal_density():
    log = a_log(n=180, seed=3, n_judges=6)[0]
    start = rated(log, np.zeros((2, 6)), np.full(2, 4.0))
    point = np.concatenate([SCORE, [0.1, 0.5, 1.5], np.zeros(12)])[np.newaxis]
    problem, optimum = _averaged(*_with_scales(start, point, 0.5), 0.5)
    assert optimum.converged[0]
    point = optimum.point[0, : len(SCORE) + 3]
    problem = replace(problem, effects=problem.of_judges(optimum.point[0]))
    places = np.linspace(-6.0, 6.0, 61)
    grid = np.stack(np.meshgrid(places, places, indexing="ij")).reshape(2, -1)

    def marginal(there, logs):
        """Return the log-density of votes and parameters, over a grid of effects of each judge."""
        spread = np.exp(logs)[:, np.newaxis]
        of_judges = np.zeros((6, grid.shape[1]))
        blank = replace(problem, tilt=0.0, effect_precision=np.zeros(2))
        for k, effects in enumerate((spread * grid).T):
            seen = replace(blank, effects=np.repeat(effects[:, np.newaxis], 6, axis=1))
            for some in seen.blocks:
                value = seen.likelihood.value(some, *seen.predictors(there, some))
                of_judges[:, k] += np.bincount(seen.judge[some], value, 6)
        of_judges -= 0.5 * (grid**2).sum(axis=0)
        largest = of_judges.max(axis=1)
        votes = (largest + np.log(np.exp(of_judges - largest[:, np.newaxis]).sum(axis=1))).sum()
        nothing = replace(blank, effects=np.zeros((2, 6)))
        told = sum(
            nothing.likelihood.value(some, *nothing.predictors(there, some)).sum()
            for some in nothing.blocks
        )
        return votes + nothing.value(there[np.newaxis]) - told

    logs, step = -0.5 * np.log(problem.effect_precision), 0.02
    along = np.where(np.arange(len(point)) < len(SCORE) + 1, point, 0.0)
    values = [marginal(point + sign * step * along, logs) for sign in (-1.0, 0.0, 1.0)]
    bend = (2.0 * values[1] - values[0] - values[2]) / step**2
    joint = problem.joint(point)
    known = joint.tree.schur + _secant(problem, point, along)
    assert along @ known @ along == pytest.approx(bend, rel=0.01)
    assert abs(along @ joint.tree.schur @ along / bend - 1.0) > 0.02
    assert values[2] - values[0] == pytest.approx(0.0, abs=2e-3 * step * bend)
    # Scales are where the density and its prior are highest, less what other parameters add.
    rise = [
        (marginal(point, logs + move) - marginal(point, logs - move)) / (2.0 * step)
        for move in step * np.eye(2)
    ]
    precision = problem.effect_precision
    prior = 2.0 * 0.25 * precision - 2.0
    added = (precision[:, np.newaxis] * joint.spread()).sum(axis=1)
    np.testing.assert_allclose(rise + prior + added, 0.0, atol=0.05)
    information = _Scales.of(problem, point, 0.5).information
    assert np.linalg.eigvalsh(information).min() > 0.0


@pytest.mark.parametrize("prior", [Normal(0.0, 1.0), Flat()])
def test_reliabilities_and_biases_are_found(prior):
    data, effects = a_log(6000, seed=2)
    flat = {"threshold_prior": "flat", "covariate_prior": "flat"}
    options = flat if isinstance(prior, Flat) else {}
    fit = table.cumulative_logit(data, prior, raters="judge", **options)
    assert fit.converged
    assert np.abs(fit.score - SCORE).max() < 0.2
    assert fit.parameters["threshold"] == pytest.approx([0.5, 2.0], abs=0.2)
    order = [data.judge.names.index(str(number)) for number in range(N_JUDGES)]
    found = [fit.parameters[name][order] for name in ("log_reliability", "position_bias")]
    for one, truth in zip(found, effects, strict=True):
        assert np.corrcoef(one, truth)[0, 1] > 0.85
        assert one.std() < truth.std() * 1.1  # pooled


def test_equal_judges_leave_the_scores_alone():
    data, _ = a_log(6000, seed=3, spread=(0.0, 0.0))
    fit = table.cumulative_logit(data, Normal(0.0, 1.0), raters="judge", rater_scale=0.05)
    alike = table.cumulative_logit(data, Normal(0.0, 1.0), formula="1")
    np.testing.assert_allclose(fit.score, alike.score, atol=0.03)
    assert np.abs(fit.parameters["log_reliability"]).max() < 0.2


def test_draws_have_names(data):
    result = rank(data, "cumulative_logit", raters="judge", draws=200, random_seed=1)
    assert result.attrs["unit"] == "judge"
    assert result.attrs["calibration"] == "sandwich"
    for name in ("log_reliability", "position_bias"):
        drawn = result["posterior"][name]
        assert drawn.dims == ("chain", "draw", "rater")
        assert drawn["rater"].values.tolist() == list(data.judge.names)
        middle = result["point_estimate"][name]
        assert np.abs(drawn.mean(("chain", "draw")) - middle).max() < 0.15
        assert drawn.std(("chain", "draw")).min() > 0.03


def test_seeds_share_no_noise(data):
    fit = table.cumulative_logit(data, Normal(0.0, 1.0), raters="judge")
    for draw in (
        lambda rng: fit.draw(200, rng),
        lambda rng: fit.move(np.zeros((200, len(fit.free))), rng),
    ):
        one, again, other = (draw(np.random.default_rng(seed)) for seed in (0, 0, 1))
        for name in ("log_reliability", "position_bias"):
            np.testing.assert_array_equal(one[name], again[name])
            noise = [(each[name] - each[name].mean(axis=0)).ravel() for each in (one, other)]
            assert abs(np.corrcoef(noise)[0, 1]) < 0.1


def test_many_judges_of_few_votes_do_not_pull_the_scores_apart():
    # The maximum of the joint density has scores 7 percent too large here.
    data, _ = a_log(24_000, seed=1, n_judges=800)
    fit = table.cumulative_logit(data, Normal(0.0, 1.0), raters="judge")
    assert fit.score @ SCORE / (SCORE @ SCORE) == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize("n_votes", [1, 7, 34, 150])
@pytest.mark.parametrize("seed", range(6))
def test_small_logs_of_few_judges_have_estimates(n_votes, seed):
    rng = np.random.default_rng([n_votes, seed])
    first = rng.integers(5, size=n_votes)
    second = (first + rng.integers(1, 5, size=n_votes)) % 5
    words = rng.choice(["A>B", "B>A", "tie"], n_votes)
    judge = np.append([0, 1], rng.integers(4, size=n_votes))[:n_votes]
    names = np.array(list("abcde"))
    if n_votes == 1:
        judge, first, second, words = (np.tile(each, 2) for each in ([0], first, second, words))
        judge[1] = 1
    data = Battles(names[first], names[second], words, systems=names.tolist(), judge=judge)
    fit = table.cumulative_logit(data, Normal(0.0, 1.0), raters="judge")
    assert fit.converged
    assert fit.iterations < 300
    assert np.abs(fit.score).max() < 4.0


def test_map_and_nuts_agree():
    # With fewer judges the mean of how far scores are apart is beyond its mode.
    data, _ = a_log(800, seed=5, n_judges=24)
    options = {"raters": "judge", "calibration": "none", "random_seed": 1}
    nuts = rank(
        data,
        "cumulative_logit",
        backend="nuts",
        draws=1000,
        log_likelihood=False,
        **options,
    )
    mode = rank(data, "cumulative_logit", **options)
    assert not nuts["sample_stats"]["diverging"].any()  # and R-hat would have warned
    for name in ("score", "threshold", "log_reliability", "position_bias"):
        one, other = (each["posterior"][name].values for each in (nuts, mode))
        spread = one.std((0, 1))
        assert (np.abs(one.mean((0, 1)) - other.mean((0, 1))) < 0.5 * spread).all(), name
        np.testing.assert_allclose(other.std((0, 1)), spread, rtol=0.3, err_msg=name)


@pytest.mark.parametrize("backend", ["mle", "map"])
@pytest.mark.parametrize(("seed", "scale"), [(0, 3.0), (1, 3.0), (2, 3.0), (0, 0.5)])
def test_few_votes_have_differences_around_their_estimates(backend, seed, scale):
    data, _ = a_log(n=25, seed=seed, n_judges=6)
    options = {"raters": "judge", "rater_scale": scale, "draws": 500, "random_seed": 1}
    result = rank(data, "cumulative_logit", backend=backend, **options)
    score = result["ranking"]["score"].values
    draws = result["posterior"]["score"].values.reshape(-1, len(score))
    apart = draws[:, :, np.newaxis] - draws[:, np.newaxis]
    below = (apart < score[:, np.newaxis] - score).mean(axis=0)
    np.fill_diagonal(below, 0.5)
    assert below.min() > 0.2


@pytest.mark.parametrize("seed", [31, 34])
def test_few_votes_that_leave_the_scales_of_judges_open_have_draws(seed):
    data, _ = a_log(n=30, seed=seed, n_judges=6, spread=(1.5, 1.5))
    options = {"raters": "judge", "rater_scale": 3.0, "draws": 50, "random_seed": 1}
    draws = rank(data, "cumulative_logit", **options)["posterior"]["score"]
    assert (draws.std(("chain", "draw")) > 0.0).all()


def test_the_sandwich_over_judges_is_about_the_curvature(data):
    # The model holds, so that both are standard errors over judges of the population.
    options = {"raters": "judge", "random_seed": 1}
    robust, curved = (
        rank(data, "cumulative_logit", calibration=kind, **options) for kind in ("sandwich", "none")
    )
    for name in ("score", "effect"):
        one, other = (each["posterior"][name].values.std((0, 1)) for each in (robust, curved))
        np.testing.assert_allclose(one, other, rtol=0.4)


def test_prompts_can_be_raters():
    log = Battles.from_responses(_responses())
    result = rank(log, "cumulative_logit", raters="prompt", draws=0)
    assert result["point_estimate"]["reliability"].sizes == {"rater": 12}


def _responses():
    from bayesrank import Responses

    rng = np.random.default_rng(4)
    return Responses((rng.random((4, 12, 5)) < np.linspace(0.7, 0.3, 4)[:, None, None]).astype(int))


def test_what_raters_cannot_be_is_said(data):
    counts = Comparisons(data.wins, data.ties)
    for call in (
        lambda: rank(counts, "cumulative_logit", raters="judge", draws=0),
        lambda: models.cumulative_logit(counts, raters="judge"),
        lambda: rank(data, "cumulative_logit", raters="prompt", draws=0),
    ):
        with pytest.raises(DataError, match="raters must be named by the battles"):
            call()
    one = Battles(["a", "b"], ["b", "a"], ["A>B", "A>B"], judge=["j", "j"])
    with pytest.raises(DataError, match="raters must be two or more; got one judge"):
        rank(one, "cumulative_logit", raters="judge", draws=0)
    with pytest.raises(ValueError, match="raters must be one of judge, prompt"):
        rank(data, "cumulative_logit", raters="user", draws=0)
    with pytest.raises(ValueError, match="normal or flat for raters='judge'"):
        rank(data, "cumulative_logit", raters="judge", prior=Cauchy(0.0, 1.0), draws=0)
    with pytest.raises(ValueError, match="log_likelihood must be False for raters"):
        rank(data, "cumulative_logit", raters="judge", log_likelihood=True)


def test_the_command_line_ranks_graded_votes_of_judges(run, tmp_path, data):
    words = {2: "A>>B", 1: "A>B", 0: "A=B", -1: "B>A", -2: "B>>A"}
    rows = ["model_a,model_b,winner,user"]
    for number in range(600):
        result = "both_bad" if number % 9 == 0 else words[int(data.outcome[number])]
        sides = NAMES[data.first[number]], NAMES[data.second[number]]
        rows.append(",".join([*sides, result, data.judge.names[data.judge.codes[number]]]))
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(rows))
    for flags in (["cumulative_logit", "--raters", "judge"], ["davidson_outside"]):
        shown = run("rank", path, "--method", *flags).stdout
        assert "unit judge" in shown
        ranked = [line.split()[1] for line in shown.splitlines() if line.split()[0].isdigit()]
        assert set(ranked[-4:]) == set("abcd")
        assert ranked[-1] == "d"


def test_judges_of_votes_that_are_set_apart_leave_no_likelihood():
    # Every vote is for the answer shown first, whoever it is of.
    log = Battles(
        ["a", "b"] * 4,
        ["b", "a"] * 4,
        ["A>B", "A>>B"] * 4,
        judge=["ada", "ada", "bob", "bob"] * 2,
    )
    with pytest.raises(NoFiniteEstimate, match="finite maximum-likelihood estimate"):
        rank(log, "cumulative_logit", backend="mle", raters="judge", draws=0)
    assert rank(log, "cumulative_logit", raters="judge", draws=0)["ranking"]["score"].max() < 1.0


@pytest.mark.parametrize(
    ("first", "second", "result", "prompt", "length"),
    [
        ("dddbd", "efecc", [0.97, 0.4, 0.63, 0.5, 0.8], "01212", [-0.007, -0.67, 0.03, -1.9, 1.3]),
        (
            "aadcc",
            "ddeed",
            ["B>A", "A=B", "B>A", "A>B", "B>A"],
            "02221",
            [1.57, -0.1, 0.68, -0.14, -0.38],
        ),
    ],
)
def test_few_votes_without_an_estimate_give_no_warning(first, second, result, prompt, length):
    log = Battles(
        list(first),
        list(second),
        result,
        systems=list("abcdef"),
        prompt=list(prompt),
        covariates={"length": np.array(length) / 1_000},
    )
    with pytest.raises(NoFiniteEstimate, match="finite maximum-likelihood estimate"):
        rank(log, "cumulative_logit", backend="mle", raters="prompt", draws=0)


def test_equal_votes_of_a_judge_count_as_one_of_their_weight(data):
    votes = VoteRows.of(data)
    merged, like = votes.alike(data.judge.codes)
    assert len(like) < 0.5 * len(data.first)
    assert merged.weight.sum() == len(data.first)
    sides = np.stack([votes.first, votes.second, votes.outcome, data.judge.codes])
    rows = np.stack([merged.first, merged.second, merged.outcome, data.judge.codes[like]])
    np.testing.assert_array_equal(rows, sides[:, like])
    found, counts = np.unique(sides, axis=1, return_counts=True)
    order = np.lexsort(rows[::-1])
    np.testing.assert_array_equal(rows[:, order], found)
    np.testing.assert_array_equal(merged.weight[order], counts)


def test_units_are_single_votes_though_equal_ones_are_fitted_as_one(data):
    rows = table.cumulative_logit(data, Normal(0.0, 1.0), raters="judge").rows()
    np.testing.assert_array_equal(rows.votes.first, data.first)
    np.testing.assert_array_equal(rows.judge, data.judge.codes)
