"""Paired comparisons whose abilities differ between groups, or walk from period to period."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytensor.tensor as pt
import pytest

from bayesrank import METHODS, Battles, Comparisons, rank
from bayesrank.battle_states import groups_of, periods_of
from bayesrank.errors import DataError
from bayesrank.inference.fits import pairs, table
from bayesrank.inference.fits.pair_fits import fit_states
from bayesrank.inference.fits.pair_rows import BlockTree, StateTree
from bayesrank.method import load_function
from bayesrank.models import hierarchical_comparisons
from bayesrank.priors import Normal

DAY = 86_400.0
TREES = {"star": StateTree.star(3), "chain": StateTree.chain(4)}
MODELS = {
    "hierarchical_comparisons": ("group_score", "group_sd"),
    "dynamic_comparisons": ("history", "walk_sd"),
}


def a_log(n=1200, *, n_systems=5, n_states=4, step=0.4, walk=False, seed=0, **columns):
    """Return battles in states and the scores there, of shape (system, state)."""
    rng = np.random.default_rng(seed)
    steps = step * rng.normal(size=(n_states, n_systems))
    score = rng.normal(size=n_systems) + (np.cumsum(steps, axis=0) if walk else steps)
    state = np.sort(rng.integers(n_states, size=n))
    first = rng.integers(n_systems, size=n)
    second = (first + 1 + rng.integers(n_systems - 1, size=n)) % n_systems
    length = rng.normal(size=n)
    d = score[state, first] - score[state, second] + 0.5 * length
    odds = np.stack([np.exp(d / 2), np.exp(-d / 2), np.full(n, 0.6)])
    drawn = (rng.random(n) > np.cumsum(odds / odds.sum(axis=0), axis=0)).sum(axis=0)
    names = np.array([f"s{k}" for k in range(n_systems)])
    log = Battles(
        names[first],
        names[second],
        np.array(["first", "second", "tie"])[drawn],
        systems=names,
        group=[f"g{k}" for k in state],
        time=30 * DAY * state + rng.random(n),
        covariates={"length": length},
        **columns,
    )
    return log, (score - score.mean(axis=1, keepdims=True)).T


def options_of(method):
    return {"period": 30} if "period" in METHODS[method].options else {}


@pytest.mark.parametrize("prior", ["normal(0, 0.5)", "laplace(0, 0.3)"])
def test_the_coordinates_of_a_scale_have_the_right_jacobian(prior):
    model = hierarchical_comparisons(a_log(n=20)[0], group_prior=prior)
    scale = model["group_sd"]
    transform, inputs = model.rvs_to_transforms[scale], scale.owner.inputs
    points = pt.constant(np.linspace(-8.0, 8.0, 9))
    values = transform.backward(points, *inputs)
    np.testing.assert_allclose(transform.forward(values, *inputs).eval(), points.data, atol=1e-12)
    slopes = pt.grad(values.sum(), points)
    jacobian = transform.log_jac_det(points, *inputs)
    np.testing.assert_allclose(jacobian.eval(), np.log(slopes.eval()), atol=1e-12)


@pytest.mark.parametrize("name", TREES)
def test_elimination_is_the_inverse(name):
    tree, rng = TREES[name], np.random.default_rng(0)
    n_states, n, k = 4, 5, 2
    weights = rng.gamma(1.0, size=(n_states, n, n))
    weights += weights.swapaxes(1, 2)
    blocks = np.array([np.diag(each.sum(axis=0)) - each for each in weights])
    border = rng.normal(size=(n_states, n, k))
    border -= border.mean(axis=1, keepdims=True)
    precisions = np.append(1.3, np.full(n_states - 1, 0.7**-2))
    steps = np.kron(tree.matrix(precisions), np.eye(n))
    blocks += np.eye(n) * np.diag(tree.matrix(precisions))[:, np.newaxis, np.newaxis]
    corner, free = 30.0 * np.eye(k), np.zeros((k, 0))
    found = BlockTree.factor(tree, precisions, blocks, border, corner, free)
    for state in range(n_states):
        place = slice(state * n, (state + 1) * n)
        steps[place, place] = blocks[state]
    flat = border.reshape(-1, k)
    whole = np.block([[steps, flat], [flat.T, corner]])
    right = rng.normal(size=(3, n_states * n + k))
    expected = np.linalg.solve(whole, right.T).T
    np.testing.assert_allclose(found.solve(right), expected, atol=1e-12)
    assert found.log_determinant == pytest.approx(np.linalg.slogdet(whole)[1])
    drawn = np.cov(found.draw(50_000, rng), rowvar=False)
    np.testing.assert_allclose(drawn, np.linalg.inv(whole), atol=0.03)
    paths = np.zeros((n_states, n_states))  # the steps that lead to each state
    for state in range(1, n_states):
        paths[state] = paths[tree.parent[state]]
        paths[state, state] = 1.0
    np.testing.assert_allclose(
        np.linalg.inv(tree.matrix(precisions)), 1 / 1.3 + 0.49 * paths @ paths.T
    )


@pytest.mark.parametrize("formula", [None, "length"])
@pytest.mark.parametrize("likelihood", get_args(table.Likelihood))
def test_derivatives_are_those_of_the_value(likelihood, formula):
    data, _ = a_log(300, n_states=3)
    tree = StateTree.star(3)
    bound = getattr(pairs, likelihood)()
    fit = fit_states(
        bound,
        data,
        Normal(0.0, 0.7**-0.5),
        groups_of(data).codes + 1,
        tree,
        lambda scores: {"score": scores},
        ("sd", 0.5, "flat"),
        formula=formula,
    )
    assert fit is not None
    assert fit.converged
    rows = fit.rows()
    problem = replace(rows, prior=rows.prior._replace(precision=np.array([0.7])), step_sd=0.5)
    point = fit.free[np.newaxis] + 0.05 * np.random.default_rng(1).normal(size=fit.free.shape)
    steps = 1e-4 * np.eye(point.shape[1])[:, np.newaxis]
    slopes = [(problem.value(point + s) - problem.value(point - s)) / 2e-4 for s in steps]
    np.testing.assert_allclose(problem.gradient(point)[0], slopes, rtol=1e-5, atol=1e-4)
    bends = [(problem.gradient(point - s) - problem.gradient(point + s))[0] / 2e-4 for s in steps]
    np.testing.assert_allclose(problem.information(point)[0], bends, rtol=1e-5, atol=1e-4)
    # At the optimum, votes one by one and merged ones have the same information.
    held = problem.held_rows(point)[0]
    own = rows.information(fit.free[np.newaxis])[0]
    assert fit.information.shape == own.shape
    assert held.shape[1] == 4


@pytest.mark.parametrize("method", MODELS)
@pytest.mark.parametrize(
    ("likelihood", "formula"),
    [("davidson", "length"), ("rao_kupper", None), ("bradley_terry", None)],
)
def test_the_kernel_finds_the_optimum_of_the_graph(method, likelihood, formula):
    from bayesrank.inference.graph.fit import fit

    data, _ = a_log(400, walk=method.startswith("dynamic"))
    state, scale = MODELS[method]
    options = {scale: 0.4, "likelihood": likelihood, "formula": formula, **options_of(method)}
    found = getattr(table, method)(data, Normal(0.0, 0.8), **options)
    graph = fit(
        load_function(METHODS[method].function)(data, prior=Normal(0.0, 0.8), **options), "map"
    )
    assert found.converged
    np.testing.assert_allclose(found.score, graph.point["score"], atol=1e-7)
    np.testing.assert_allclose(found.parameters[state], graph.point[state], atol=1e-7)
    if formula:
        np.testing.assert_allclose(found.parameters["effect"], graph.point["effect"], atol=1e-7)


@pytest.mark.parametrize("method", MODELS)
def test_abilities_and_their_scale_are_recovered(method):
    state, scale = MODELS[method]
    inside, scales = [], []
    for seed in range(12):
        data, truth = a_log(1500, n_systems=8, walk=method.startswith("dynamic"), seed=seed)
        result = rank(data, method, formula="length", random_seed=1, **options_of(method))
        posterior = result["posterior"]
        names = posterior[state].dims[-1]
        truth = (
            truth if names == "period" else truth[:, [int(g[1:]) for g in posterior[names].values]]
        )
        low, high = posterior[state].quantile([0.025, 0.975], dim=("chain", "draw")).values
        inside.append(((low < truth) & (truth < high)).mean())
        low, high = posterior[scale].quantile([0.005, 0.995], dim=("chain", "draw")).values
        scales.append(low < 0.4 < high)
        assert result["point_estimate"]["effect"][1] == pytest.approx(0.5, abs=0.25)
    assert 0.91 < np.mean(inside) < 0.985
    assert np.mean(scales) > 0.8


def test_seeds_share_no_scales():
    data, _ = a_log(300)
    fit = table.hierarchical_comparisons(data, Normal(0.0, 1.0))
    still = np.zeros((200, len(fit.free)))
    one, again, other = (fit.move(still, np.random.default_rng(s))["group_sd"] for s in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.3


def test_groups_with_few_battles_borrow_from_the_others():
    data, _ = a_log(3000, n_states=3, step=0.05, seed=1)
    few = np.flatnonzero((groups_of(data).codes < 2) | (np.arange(3000) % 100 == 0))
    data = data.take(few)
    pooled = rank(data, "hierarchical_comparisons", random_seed=1)["posterior"]["group_score"]
    alone = rank(data.take(np.flatnonzero(data.group.codes == 2)), "davidson", random_seed=1)
    spread = pooled.std(("chain", "draw")).sel(group="g2")
    assert spread.mean() < 0.6 * alone["posterior"]["score"].std(("chain", "draw")).mean()


@pytest.mark.parametrize("method", MODELS)
def test_judges_with_a_taste_widen_the_intervals(method):
    rng = np.random.default_rng(3)
    judge = np.repeat(np.arange(40), 30)
    taste = rng.normal(size=(40, 4))
    first = rng.integers(4, size=1200)
    second = (first + 1 + rng.integers(3, size=1200)) % 4
    ahead = taste[judge, first] - taste[judge, second] + rng.logistic(size=1200)
    data = Battles(
        np.array(list("abcd"))[first],
        np.array(list("abcd"))[second],
        (ahead > 0) * 1,
        judge=judge,
        group=np.array(["x", "y"])[np.arange(1200) % 2],
        time=np.arange(1200) * DAY / 20,
    )
    spreads = [
        rank(data, method, unit=unit, random_seed=1, **options_of(method))["posterior"]["score"]
        .std(("chain", "draw"))
        .mean()
        for unit in ("judge", "battle")
    ]
    assert spreads[0] > 1.2 * spreads[1]


def test_counts_know_neither_groups_nor_times():
    data, _ = a_log(200)
    counts = Comparisons(data.wins, data.ties, systems=data.systems)
    for method in MODELS:
        one = getattr(table, method)(counts, Normal(0.0, 1.0))
        np.testing.assert_array_equal(one.score, table.davidson(counts, Normal(0.0, 1.0)).score)
    bare = Battles(["a", "b"], ["b", "a"], ["first", "tie"])
    with pytest.raises(DataError, match="battles must have groups, such as their category"):
        rank(bare, "hierarchical_comparisons", draws=0)
    with pytest.raises(DataError, match="battles must have times for abilities over time"):
        rank(bare, "dynamic_comparisons", draws=0)
    with pytest.raises(ValueError, match="backend of dynamic_comparisons must be one of map, nuts"):
        rank(bare, "dynamic_comparisons", backend="mle")


def test_periods_are_those_of_the_calendar():
    when = np.array(["2024-02-28T23:00", "2024-03-01T01:00", "2024-05-06T00:00"], "datetime64[s]")
    log = Battles(["a"] * 3, ["b"] * 3, ["a"] * 3, time=when.astype(float))
    months = periods_of(log, "month")
    assert months.names == ("2024-02", "2024-03", "2024-04", "2024-05")
    assert months.codes.tolist() == [0, 1, 3]
    weeks = periods_of(log, "week")
    assert weeks.names[0] == "2024-02-26"
    assert weeks.names[-1] == "2024-05-06"
    assert weeks.codes.tolist() == [0, 0, 10]
    assert periods_of(log, 2).names[:2] == ("2024-02-28", "2024-03-01")
    assert periods_of(log, 2).codes.tolist() == [0, 0, 33]
    for period in ("year", 0, -1.0, True, None):
        with pytest.raises(ValueError, match="period must be month, week or a positive number"):
            periods_of(log, period)
    with pytest.raises(DataError, match="period must make at most 1000 periods"):
        periods_of(log, 0.01)


def test_one_period_is_the_model_without_time():
    data, _ = a_log(300, n_states=1)
    one = rank(data, "dynamic_comparisons", draws=0)
    np.testing.assert_allclose(
        one["ranking"]["score"], rank(data, "davidson", draws=0)["ranking"]["score"], atol=1e-9
    )
