"""Luce-family factories against enumeration, their kernels, and exact optima."""

import json
from itertools import combinations

import numpy as np
import pytest
from pymc.model_graph import ModelGraph
from scipy.special import gammaln

from bayesrank import Comparisons, Responses, models, rank
from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.inference.fits import existence
from bayesrank.inference.fits import table as kernel_fits
from bayesrank.inference.graph.bound_model import bind_model
from bayesrank.inference.graph.fit import fit
from bayesrank.priors import Custom, Flat
from bayesrank.ranking import rank_all
from bayesrank.views import Ballots, Events

RANKINGS = [["a", "b", "c", "d"], ["b", "a"], ["d", "c", "a"], ["c", "b", "a", "d"], ["a"]]
NAMES = list("abcd")


@pytest.fixture
def ballots() -> Ballots:
    return Ballots.from_rankings(RANKINGS, systems=NAMES)


def simulate(missing: float = 0.0) -> Responses:
    """Return four systems on nine questions with three trials, some of them missing."""
    rng = np.random.default_rng(4)
    chance = 1 / (1 + np.exp(rng.normal(size=(1, 9, 1)) - np.linspace(-1, 1, 4)[:, None, None]))
    outcomes = (rng.random((4, 9, 3)) < chance).astype(np.int8)
    outcomes[rng.random(outcomes.shape) < missing] = -1
    return Responses(outcomes, systems=NAMES)


COMPLETE, RAGGED = simulate(), simulate(0.25)


def evaluate(model, kind="mle", seed=0):
    """Return the log-probability of a model and its variables at a random point."""
    bound = bind_model(model, kind, backend="python")
    x = np.random.default_rng(seed).normal(size=bound.size)
    return bound.logp_and_gradient(x)[0], {k: v[0] for k, v in bound.named(x[None]).items()}


def each_event(data):
    """Yield who was right and who was wrong in every informative event."""
    for column in data.outcomes.reshape(4, -1).T:
        right, wrong = np.flatnonzero(column == 1), np.flatnonzero(column == 0)
        if right.size and wrong.size:
            yield right, wrong


def check_gradient(model):
    """Compare the gradient and the Hessian of a model with finite differences."""
    bound = bind_model(model, "nuts", backend="python")
    x = np.random.default_rng(2).normal(size=bound.size)
    steps = 1e-6 * np.eye(bound.size)
    ahead = [bound.logp_and_gradient(x + step) for step in steps]
    behind = [bound.logp_and_gradient(x - step) for step in steps]
    slopes = [(a[0] - b[0]) / 2e-6 for a, b in zip(ahead, behind, strict=True)]
    curves = [(a[1] - b[1]) / 2e-6 for a, b in zip(ahead, behind, strict=True)]
    np.testing.assert_allclose(bound.logp_and_gradient(x)[1], slopes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(bound.hessian(x), curves, rtol=1e-6, atol=1e-6)


# Likelihoods


def test_plackett_luce_chooses_the_best_of_those_left(ballots):
    found, values = evaluate(models.plackett_luce(ballots))
    strength = dict(zip(NAMES, np.exp(values["score"]), strict=True))
    expected = 0.0
    for order in RANKINGS:
        for place, name in enumerate(order):
            expected += np.log(strength[name] / sum(strength[rest] for rest in order[place:]))
    assert found == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(values["strength"], np.exp(values["score"]), rtol=1e-12)
    check_gradient(models.plackett_luce(ballots))


@pytest.mark.parametrize("data", [COMPLETE, RAGGED], ids=["complete", "ragged"])
@pytest.mark.parametrize("rows", ["merged", "event"])
def test_bradley_terry_luce_sets_each_winner_against_all_losers(data, rows):
    model = models.bradley_terry_luce(data, rows=rows)
    found, values = evaluate(model)
    strength = np.exp(values["score"])
    expected = sum(
        np.log(strength[i] / (strength[i] + strength[wrong].sum()))
        for right, wrong in each_event(data)
        for i in right
    )
    assert found == pytest.approx(expected, rel=1e-12)
    check_gradient(model)


@pytest.mark.parametrize("data", [COMPLETE, RAGGED], ids=["complete", "ragged"])
@pytest.mark.parametrize("rows", ["merged", "event"])
def test_davidson_luce_weighs_all_sets_of_winners(data, rows):
    model = models.davidson_luce(data, rows=rows)
    found, values = evaluate(model)
    prevalence = dict(zip(model.coords["size"], values["tie_prevalence"], strict=True))
    score = values["score"]

    def log_weight(winners):
        winners = list(winners)
        if prevalence.get(len(winners)) is None:
            return -np.inf
        return np.log(prevalence[len(winners)]) + score[winners].sum() / len(winners)

    expected, n_events = 0.0, {}
    for right, wrong in each_event(data):
        members = np.sort(np.concatenate([right, wrong]))
        sets = [u for t in range(1, len(members)) for u in combinations(members, t)]
        expected += log_weight(right) - np.logaddexp.reduce([log_weight(u) for u in sets])
        by_size = n_events.setdefault(tuple(members), {})
        by_size[len(right)] = by_size.get(len(right), 0) + 1
    if rows == "merged":
        # The sizes of the events of a set are counted, in any order.
        for by_size in n_events.values():
            counts = np.array(list(by_size.values()))
            expected += gammaln(counts.sum() + 1) - gammaln(counts + 1).sum()
    assert found == pytest.approx(expected, rel=1e-11)
    check_gradient(model)


def test_size_probabilities_are_those_of_an_event_of_everybody():
    for data in (COMPLETE, RAGGED):
        model = models.davidson_luce(data)
        _, values = evaluate(model)
        probability = np.array(
            [
                delta
                * np.exp(
                    [values["score"][list(u)].sum() / t for u in combinations(range(4), t)]
                ).sum()
                for t, delta in zip(model.coords["size"], values["tie_prevalence"], strict=True)
            ]
        )
        np.testing.assert_allclose(values["size_probability"], probability / probability.sum())


def test_scores_are_independent_of_the_sizes_given_a_common_set():
    bound = bind_model(models.davidson_luce(COMPLETE), "nuts", backend="python")
    hessian = bound.hessian(np.random.default_rng(3).normal(size=bound.size))
    where = bound.slices()
    assert not hessian[where["score"], where["size_probability"]].any()
    of_sizes = hessian[where["size_probability"], where["size_probability"]]
    np.testing.assert_allclose(of_sizes, np.diag(np.diag(of_sizes)), atol=1e-15)


# Relations between the models


def test_comparisons_are_rankings_of_two():
    rankings = [["a", "b"], ["a", "b"], ["b", "c"], ["c", "a"], ["a", "c"], ["b", "a"], ["c", "b"]]
    wins = np.zeros((3, 3))
    for better, worse in rankings:
        wins["abc".index(better), "abc".index(worse)] += 1
    of_ballots = fit(models.plackett_luce(Ballots.from_rankings(rankings))).point
    for name in ("plackett_luce", "bradley_terry"):
        ranking = rank(Comparisons(wins), name, backend="map", draws=0)["ranking"]
        np.testing.assert_allclose(ranking["score"], of_ballots["score"], rtol=0, atol=1e-9)


def test_single_winners_make_all_luce_models_alike():
    winner = np.array([0, 0, 1, 2, 0, 1, 1, 2, 0])
    data = Responses((np.arange(3)[:, None] == winner)[:, :, None].astype(int))
    scores = [
        rank(data, name, backend="mle", draws=0)["ranking"]["score"]
        for name in ("bradley_terry_luce", "davidson_luce")
    ]
    # Each system wins in proportion to its strength.
    expected = np.log([4, 3, 2])
    for score in scores:
        np.testing.assert_allclose(score, expected - expected.mean(), rtol=0, atol=1e-9)
    alone = models.davidson_luce(data)
    assert [v.name for v in alone.free_RVs] == ["score"]
    np.testing.assert_array_equal(fit(alone, "mle").point["tie_prevalence"], [1.0])
    without_events = models.davidson_luce(Responses(np.ones((3, 4, 2), dtype=int)))
    np.testing.assert_array_equal(fit(without_events, "map").point["tie_prevalence"], [1.0])


@pytest.mark.parametrize("name", ["bradley_terry_luce", "davidson_luce"])
@pytest.mark.parametrize("data", [COMPLETE, RAGGED], ids=["complete", "ragged"])
def test_merging_rows_leaves_the_posterior_as_it_is(name, data):
    merged, single = (getattr(models, name)(data, rows=rows) for rows in ("merged", "event"))
    bounds = [bind_model(model, "nuts", backend="python") for model in (merged, single)]
    x = np.random.default_rng(1).normal(size=bounds[0].size)
    gradients = [bound.logp_and_gradient(x)[1] for bound in bounds]
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-10, atol=1e-10)


def test_events_are_as_good_as_responses():
    assert isinstance(COMPLETE.events, Events)
    for name in ("bradley_terry_luce", "davidson_luce"):
        found = [
            fit(getattr(models, name)(data)).point["score"] for data in (COMPLETE, COMPLETE.events)
        ]
        np.testing.assert_array_equal(found[1], found[0])


# Variables, dims and names


def test_variables_have_dims_and_labels(ballots):
    ranked = models.plackett_luce(ballots)
    assert [v.name for v in ranked.free_RVs] == ["score"]
    assert ranked.named_vars_to_dims["places"] == ("ballot", "system")
    assert len(ranked.coords["ballot"]) == 4  # the ballot of one system says nothing
    choices = models.bradley_terry_luce(COMPLETE)
    assert choices.named_vars_to_dims["choices"] == ("event", "system")
    sets = models.davidson_luce(RAGGED)
    assert [v.name for v in sets.free_RVs] == ["score", "size_probability"]
    assert sets.named_vars_to_dims["tie_prevalence"] == ("size",)
    assert sets.named_vars_to_dims["n_events"] == ("set", "size")
    assert sets.named_vars_to_dims["winners"] == ("row", "system")
    assert list(sets.coords["size"]) == [1, 2, 3]
    single = models.davidson_luce(RAGGED, rows="event")
    assert single.named_vars_to_dims["winners"] == ("event", "system")
    for model in (ranked, choices, sets, single):
        graph = ModelGraph(model).make_compute_graph()
        assert "score" in graph[model.observed_RVs[-1].name]
        assert list(model.coords["system"]) == NAMES


# Kernels and back ends


@pytest.mark.parametrize("backend", ["mle", "map"])
@pytest.mark.parametrize("name", ["plackett_luce", "bradley_terry_luce", "davidson_luce"])
def test_the_kernel_finds_the_optimum_of_the_graph(name, backend):
    data = COMPLETE.comparisons if name == "plackett_luce" else COMPLETE
    graph = fit(getattr(models, name)(data, prior=0.8), backend).point
    prior = {} if backend == "mle" else {"prior": 0.8}
    result = rank(COMPLETE, name, backend=backend, draws=0, **prior)
    assert "maximum_loglik" in result["sample_stats"]  # which kernels alone report
    np.testing.assert_allclose(result["ranking"]["score"], graph["score"], rtol=0, atol=1e-8)
    if name == "davidson_luce":
        point = result["point_estimate"].to_dataset()
        for parameter in ("size_probability", "tie_prevalence"):
            np.testing.assert_allclose(point[parameter], graph[parameter], rtol=1e-8)
        assert list(point["size"]) == [1, 2, 3]


def test_prevalences_are_relative_to_the_smallest_size_that_occurs():
    columns = [(1, 1, 0, 0), (0, 1, 1, 0), (1, 0, 1, 1), (0, 0, 1, 1), (1, 1, 0, 1), (1, 0, 0, 1)]
    data = Responses(np.array(columns).T[:, :, None])
    graph = fit(models.davidson_luce(data)).point
    point = rank(data, "davidson_luce", backend="map", draws=0)["point_estimate"].to_dataset()
    assert point["tie_prevalence"].values[0] == 1
    np.testing.assert_allclose(point["tie_prevalence"], graph["tie_prevalence"], rtol=1e-8)
    assert list(point["size"]) == list(graph["size"]) == [2, 3]


def test_draws_of_the_kernel_have_the_covariance_of_the_graph():
    prior = Flat()
    fitted = kernel_fits.davidson_luce(COMPLETE, prior)
    drawn = fitted.draw(40_000, np.random.default_rng(1))
    np.testing.assert_allclose(drawn["size_probability"].sum(axis=-1), 1)
    graph = fit(models.davidson_luce(COMPLETE), "mle")
    others = graph.draws(draws=10_000, random_seed=2)
    for name in ("score", "size_probability"):
        values = others[name].values.reshape(40_000, -1)
        np.testing.assert_allclose(
            np.cov(drawn[name].T), np.cov(values.T), rtol=0.06, atol=0.02 * values.var()
        )


@pytest.mark.parametrize("name", ["plackett_luce", "bradley_terry_luce", "davidson_luce"])
@pytest.mark.parametrize(
    "prior", ["laplace(0, 2)", "cauchy(0, 2)", "flat", "empirical", Custom(lambda x: -(x**4) / 50)]
)
def test_every_prior_has_a_mode(name, prior):
    earlier = np.array([[[0], [1]] * 4 + [[0]], [[1]] * 9, [[0]] * 9, [[1]] * 9])
    data = Responses(COMPLETE.outcomes, systems=NAMES, prior_outcomes=earlier)
    result = rank(data, name, backend="map", prior=prior, draws=0)
    assert bool(result["sample_stats"]["converged"])
    assert result["ranking"]["score"].sum().item() == pytest.approx(0, abs=1e-9)


def test_systems_that_missed_all_events_keep_their_prior():
    outcomes = COMPLETE.outcomes.copy()
    outcomes[3] = -1
    for name in ("bradley_terry_luce", "davidson_luce"):
        result = rank_all(Responses(outcomes), name, backend="map", prior="normal(0, 1)", draws=0)
        others = rank(Responses(outcomes[:3]), name, backend="map", prior="normal(0, 1)", draws=0)
        score = result["ranking"]["score"].values
        assert score[3] == pytest.approx(0, abs=1e-8)
        np.testing.assert_allclose(score[:3], others["ranking"]["score"], rtol=0, atol=1e-8)


def test_fifty_systems_with_sets_of_all_sizes():
    rng = np.random.default_rng(1)
    ability = np.linspace(-2, 2, 50)[:, None, None]
    easiness = np.linspace(-4, 4, 120)[None, :, None]
    outcomes = rng.random((50, 120, 4)) < 1 / (1 + np.exp(-ability - easiness))
    data = Responses(outcomes.astype(np.int8))
    kernel = rank(data, "davidson_luce_map", draws=0)
    graph = fit(models.davidson_luce(data, prior=1.0))
    assert len(graph.point["size"]) > 45
    np.testing.assert_allclose(kernel["ranking"]["score"], graph.point["score"], atol=1e-8)


PRESETS = ["plackett_luce", "plackett_luce_map", "bradley_terry_luce", "bradley_terry_luce_map"]


@pytest.mark.parametrize("name", PRESETS)
def test_optima_are_exact(shared, name):
    exact = json.loads((shared / "oracle" / "exact.json").read_text(encoding="utf-8"))
    cases = [case for case, expected in exact.items() if name in expected]
    assert len(cases) > 50
    for case in cases:
        stored = np.load(shared / "oracle" / "cases" / f"{case}.npz")
        shape = stored["shape"]
        outcomes = np.unpackbits(stored["R"])[: np.prod(shape)].reshape(shape)
        ranking = rank(Responses(outcomes), name, draws=0)["ranking"].to_dataset()
        optimum = np.array(exact[case][name]["log_strength"])
        optimum -= optimum.mean()
        np.testing.assert_allclose(ranking["score"], optimum, rtol=0, atol=1e-8, err_msg=case)
        ahead = (optimum[:, None] > optimum + 1e-8).sum(axis=0)
        np.testing.assert_array_equal(ranking["rank"], ahead + 1, err_msg=case)


# What is refused


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda: models.plackett_luce(Ballots(np.array([[2.0], [2.0], [1.0]]), ("a", "b", "c"))),
            DataError,
            "ballots must have no ties for plackett_luce; got 'a' and 'b' in one place on 1 of 1",
        ),
        (
            lambda: models.plackett_luce(Ballots.from_rankings([["a"], ["b"]])),
            DataError,
            "ballots must rank two systems at least once; got none that does",
        ),
        (
            lambda: models.plackett_luce(Comparisons(np.zeros((2, 2))), prior="flat"),
            DataError,
            "comparisons must hold a decisive one for a flat prior",
        ),
        (
            lambda: models.bradley_terry_luce(Responses([[[1, 0]], [[1, 0]]]), prior="flat"),
            DataError,
            "events must hold one in which some systems were right and others wrong for a flat",
        ),
        (
            lambda: models.davidson_luce(Responses([[[1, 0]], [[1, 0]]]), prior="flat"),
            DataError,
            "events must hold one in which some systems were right and others wrong for a flat",
        ),
        (
            lambda: models.davidson_luce(COMPLETE, rows="all"),
            ValueError,
            "rows must be one of merged, event; got 'all'",
        ),
        (
            lambda: models.davidson_luce(COMPLETE, max_tie_order=4),
            ValueError,
            "max_tie_order must be between 1 and 3 for 4 systems; got 4",
        ),
        (
            lambda: rank(COMPLETE, "davidson_luce", max_tie_order=2, draws=0),
            DataError,
            "events must have at most max_tie_order=2 right systems; got 3, and more than that in",
        ),
        (
            lambda: rank(Comparisons([[0, 1], [1, 0]]), "bradley_terry_luce", draws=0),
            DataError,
            "data must be responses for bradley_terry_luce; got comparisons",
        ),
        (
            lambda: rank(Responses([[[1, 1]], [[0, 1]]]), "bradley_terry_luce", draws=0),
            NoFiniteEstimate,
            "bradley_terry_luce has no finite .* 'system 1' never lost to",
        ),
        (
            lambda: rank(Responses([[[1, 1]], [[0, 1]]]), "davidson_luce", draws=0),
            NoFiniteEstimate,
            "davidson_luce has no finite .* 'system 1' never lost to",
        ),
        (
            lambda: existence.require_wins(
                Ballots.from_rankings([list("abc"), list("acb")]), method="plackett_luce"
            ),
            NoFiniteEstimate,
            "plackett_luce has no finite .* 'a' never lost to",
        ),
    ],
)
def test_what_makes_no_estimate_is_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_a_permissible_order_changes_nothing():
    scores = [
        rank(COMPLETE, "davidson_luce", max_tie_order=order, draws=0)["ranking"]["score"]
        for order in (None, 3)
    ]
    np.testing.assert_array_equal(scores[1], scores[0])
