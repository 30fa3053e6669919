"""Paired-comparison factories against hand-written likelihoods and published estimates."""

import ast
import csv
import inspect

import numpy as np
import pytest
from pymc.model_graph import ModelGraph
from pytensor.compile.mode import Mode
from scipy.special import gammaln, log_expit

from bayesrank import Comparisons, Responses, models, rank
from bayesrank.errors import DataError
from bayesrank.inference.graph.bound_model import bind_model
from bayesrank.inference.graph.fit import fit
from bayesrank.priors import Cauchy, Custom, Empirical, Flat, Laplace, Normal

PYTHON = Mode(linker="py", optimizer="fast_compile")

# Fractional counts; c and d never met.
WINS = np.array([[0, 3, 4, 0.5], [1, 0, 2, 2], [1, 2, 0, 0], [2.5, 1, 0, 0]])
TIES = np.array([[0, 2, 0, 1], [2, 0, 1.5, 0], [0, 1.5, 0, 0], [1, 0, 0, 0]])
NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def table() -> Comparisons:
    return Comparisons(WINS, TIES, systems=NAMES)


@pytest.fixture
def ordered() -> Comparisons:
    first = np.array([[0, 2, 1, 0.5], [1, 0, 2, 0], [0, 0, 0, 0], [2, 1, 0, 0]])
    return Comparisons(WINS, TIES, systems=NAMES, first_wins=first, second_wins=WINS - first)


def read_rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def evaluate(model, kind="mle", seed=0):
    """Return the log-probability of a model and its variables at a random point."""
    bound = bind_model(model, kind, backend="python")
    x = np.random.default_rng(seed).normal(size=bound.size)
    return bound.logp_and_gradient(x)[0], {k: v[0] for k, v in bound.named(x[None]).items()}


def binomial(k, n, logit):
    coefficient = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return coefficient + k * log_expit(logit) + (n - k) * log_expit(-logit)


def bradley_terry_loglik(score, wins):
    total = 0.0
    for i in range(4):
        for j in range(i + 1, 4):
            total += binomial(wins[i, j], wins[i, j] + wins[j, i], score[i] - score[j])
    return total


# Likelihoods


@pytest.mark.parametrize(("ties", "share"), [("ignore", 0.0), ("half", 0.5)])
def test_bradley_terry_has_the_likelihood_of_its_formula(table, ties, share):
    found, values = evaluate(models.bradley_terry(table, ties=ties))
    expected = bradley_terry_loglik(values["score"], WINS + share * TIES)
    assert found == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(values["score"].sum(), 0, atol=1e-12)
    np.testing.assert_allclose(values["strength"], np.exp(values["score"]), rtol=1e-12)


@pytest.mark.parametrize(("ties", "share"), [("ignore", 0.0), ("half", 0.25)])
def test_an_order_effect_helps_the_system_that_is_named_first(ordered, ties, share):
    found, values = evaluate(models.bradley_terry(ordered, ties=ties, order_effect=True))
    score, effect = values["score"], values["order_effect"]
    won = ordered.first_wins + share * TIES
    lost = ordered.second_wins.T + share * TIES
    expected = sum(
        binomial(won[i, j], won[i, j] + lost[i, j], score[i] - score[j] + effect)
        for i in range(4)
        for j in range(4)
        if i != j
    )
    assert found == pytest.approx(expected, rel=1e-12)


def test_an_order_effect_knows_who_was_named_first_in_ties():
    battles = Comparisons.from_battles(["a"] * 4, ["b"] * 4, ["first", "tie", "tie", "second"])
    model = models.bradley_terry(battles, ties="half", order_effect=True)
    # One pair, a named first: two ties are one win each, and b is never named first.
    assert model.coords["pair"] == ("a | b",)
    found, values = evaluate(model)
    ahead = values["score"][0] - values["score"][1] + values["order_effect"]
    assert found == pytest.approx(binomial(2.0, 4.0, ahead), rel=1e-12)


def test_davidson_has_the_likelihood_of_its_formula(table):
    found, values = evaluate(models.davidson(table))
    score, nu = values["score"], values["tie_strength"]
    np.testing.assert_allclose(nu, np.exp(values["log_tie_strength"]), rtol=1e-12)
    expected = 0.0
    for i in range(4):
        for j in range(i + 1, 4):
            counts = np.array([WINS[i, j], WINS[j, i], TIES[i, j]])
            shares = np.exp([score[i], score[j], np.log(nu) + (score[i] + score[j]) / 2])
            expected += gammaln(counts.sum() + 1) - gammaln(counts + 1).sum()
            expected += counts @ np.log(shares / shares.sum())
    assert found == pytest.approx(expected, rel=1e-12)


def test_half_the_counts_have_half_the_information(table):
    half = Comparisons(WINS / 2, TIES / 2, systems=NAMES)
    for method in ("bradley_terry", "davidson"):
        whole, halved = (rank(data, method, backend="mle", draws=0) for data in (table, half))
        np.testing.assert_allclose(
            halved["ranking"]["score"], whole["ranking"]["score"], rtol=0, atol=1e-9
        )
        loglik = [tree["sample_stats"]["maximum_loglik"].item() for tree in (whole, halved)]
        assert loglik[1] == pytest.approx(loglik[0] / 2, rel=1e-9)


# Variables, dims and names


def test_variables_have_dims_and_labels(table):
    model = models.davidson(table)
    assert [v.name for v in model.free_RVs] == ["score", "log_tie_strength"]
    assert [v.name for v in model.deterministics] == ["strength", "tie_strength"]
    assert [v.name for v in model.observed_RVs] == ["results"]
    assert model.named_vars_to_dims["score"] == ("system",)
    assert model.named_vars_to_dims["results"] == ("pair", "result")
    assert list(model.coords["system"]) == NAMES
    assert list(model.coords["pair"]) == ["a | b", "a | c", "a | d", "b | c", "b | d"]
    assert list(model.coords["result"]) == ["win", "loss", "tie"]


def test_pairs_with_an_order_are_named_by_it(ordered):
    model = models.bradley_terry(ordered, order_effect=True)
    assert [v.name for v in model.free_RVs] == ["score", "order_effect"]
    # Named first: b never against d, and c never against b and d.
    pairs = ["a | b", "a | c", "a | d", "b | a", "b | c", "c | a", "d | a", "d | b"]
    assert list(model.coords["pair"]) == pairs


def test_pairs_without_a_decision_are_left_out():
    table = Comparisons([[0, 1, 0], [2, 0, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0], [1, 0, 0]])
    assert len(models.bradley_terry(table).coords["pair"]) == 1
    assert len(models.bradley_terry(table, ties="half").coords["pair"]) == 2
    assert len(models.davidson(table).coords["pair"]) == 2


@pytest.mark.parametrize("name", ["bradley_terry", "davidson"])
def test_the_graph_of_a_model_can_be_drawn(table, name):
    model = getattr(models, name)(table)
    graph = ModelGraph(model).make_compute_graph()
    (observed,) = model.observed_RVs
    assert "score" in graph[observed.name]
    assert graph["strength"] == {"score"}


# Priors


@pytest.mark.parametrize(
    ("prior", "log_density"),
    [
        # Independent densities conditioned on the sum, in orthonormal coordinates of the plane.
        (Normal(5.0, 0.7), lambda x: -0.5 * (x @ x) / 0.49 - 1.5 * np.log(2 * np.pi * 0.49)),
        (0.7, lambda x: -0.5 * (x @ x) / 0.49 - 1.5 * np.log(2 * np.pi * 0.49)),
        (Laplace(0, 2), lambda x: -np.abs(x).sum() / 2),
        (Cauchy(0, 2), lambda x: -np.log1p((x / 2) ** 2).sum()),
        (Flat(), lambda x: 0.0),
        (Custom(lambda x: -(x**4)), lambda x: -(x**4).sum()),
    ],
    ids=lambda value: "logp" if callable(value) else str(value),
)
def test_a_prior_is_conditioned_on_the_sum(table, prior, log_density):
    model = models.bradley_terry(table, prior=prior)
    found = []
    for seed in (1, 2):
        posterior, values = evaluate(model, "map", seed)
        score = values["score"]
        found.append(posterior - bradley_terry_loglik(score, WINS) - log_density(score))
    # Laplace and Cauchy have a constant too.
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    if isinstance(prior, Normal | float):
        assert found[0] == pytest.approx(0, abs=1e-9)


def test_an_empirical_prior_is_centred_on_earlier_outcomes(table):
    earlier = np.array([[[1], [1]], [[1], [0]], [[0], [1]], [[0], [0]]])
    prior = Empirical(earlier, sigma=0.5, eps=0.2)
    posterior, values = evaluate(models.bradley_terry(table, prior=prior), "map")
    z = (values["score"] - np.log(4) * np.array([1, 0, 0, -1])) / 0.5
    expected = -0.5 * z @ z - 1.5 * np.log(2 * np.pi * 0.25)
    found = posterior - bradley_terry_loglik(values["score"], WINS)
    assert found == pytest.approx(expected, rel=1e-9)
    with pytest.raises(DataError, match="prior_outcomes must be given, with the data or the"):
        models.bradley_terry(table, prior="empirical")


def test_an_empirical_prior_takes_the_outcomes_of_responses():
    outcomes = np.random.default_rng(0).integers(0, 2, (3, 4, 2))
    earlier = np.array([[[1]] * 4, [[0]] * 4, [[1], [0], [1], [0]]])
    data = Responses(outcomes, prior_outcomes=earlier)
    strong, weak = (
        rank(data, "bradley_terry_map", prior=prior, draws=0)["ranking"]["score"].values
        for prior in ("empirical(0.01)", "normal(0, 0.01)")
    )
    expected = np.log(99) * np.array([1, -1, 0])
    np.testing.assert_allclose(strong, expected, atol=0.01)
    np.testing.assert_allclose(weak, 0, atol=0.01)


def test_free_scores_have_independent_priors(table):
    model = models.bradley_terry(table, prior=Normal(1.0, 0.5), centred=False)
    posterior, values = evaluate(model, "map")
    score = values["score"]
    z = (score - 1) / 0.5
    found = posterior - bradley_terry_loglik(score, WINS)
    # Scores are a zero-sum part and a mean; turning to orthonormal coordinates scales by root 4.
    expected = -0.5 * z @ z - 2 * np.log(2 * np.pi * 0.25) + np.log(2)
    assert found == pytest.approx(expected, rel=1e-9)
    assert abs(score.mean()) > 0.1


def test_free_scores_with_other_priors(table):
    posterior, values = evaluate(models.bradley_terry(table, prior="cauchy", centred=False), "map")
    found = posterior - bradley_terry_loglik(values["score"], WINS)
    expected = -np.log(np.pi * (1 + values["score"] ** 2)).sum()
    assert found == pytest.approx(expected, rel=1e-9)


def test_maximum_likelihood_has_no_use_for_free_scores(table):
    free, centred = (
        rank(table, "bradley_terry", backend="mle", centred=choice, draws=0)["ranking"]["score"]
        for choice in (False, True)
    )
    np.testing.assert_array_equal(free, centred)


def test_the_mean_of_a_prior_moves_free_scores_alone(table):
    scores = [
        rank(table, "bradley_terry", backend="map", draws=0, **options)["ranking"]["score"].values
        for options in (
            {"prior": "normal(0, 1)"},
            {"prior": "normal(3, 1)"},
            {"prior": "normal(3, 1)", "centred": False},
        )
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(scores[2], scores[0] + 3, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "options"),
    [("bradley_terry", {"ties": "half"}), ("davidson", {"tie_prior": "normal(-1, 0.3)"})],
)
def test_the_kernel_finds_the_mode_of_the_graph(table, name, options):
    model = getattr(models, name)(table, prior=0.8, **options)
    graph = fit(model, "map").point
    result = rank(table, name, backend="map", prior=0.8, draws=0, **options)
    np.testing.assert_allclose(result["ranking"]["score"], graph["score"], rtol=0, atol=1e-8)
    if name == "davidson":
        found = result["point_estimate"]["tie_strength"].item()
        assert found == pytest.approx(graph["tie_strength"].item(), abs=1e-8)


# What is refused


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (
            lambda t: models.bradley_terry(t, ties="drop"),
            ValueError,
            "ties must be one of ignore, half; got",
        ),
        (lambda t: models.bradley_terry(t, prior="gauss"), ValueError, "prior must be a number or"),
        (lambda t: models.bradley_terry(t, prior=-1), ValueError, "sigma must be positive"),
        (
            lambda t: models.bradley_terry(t, order_effect=True),
            DataError,
            "comparisons must record which system was named first for order_effect=True",
        ),
        (
            lambda t: models.bradley_terry(Comparisons(np.zeros((4, 4)), TIES), prior="flat"),
            DataError,
            "comparisons must hold a decisive one for a flat prior; got only ties",
        ),
        (
            lambda t: models.davidson(Comparisons(np.zeros((2, 2)))),
            DataError,
            "comparisons must hold one at least; got none",
        ),
    ],
)
def test_what_makes_no_model_is_refused(table, build, error, message):
    with pytest.raises(error, match=message):
        build(table)


def test_an_unknown_factory_is_no_attribute():
    with pytest.raises(AttributeError, match=r"module 'bayesrank.models' has no factory 'nothing'"):
        _ = models.nothing
    assert {"bradley_terry", "davidson", "dirichlet_multinomial"} <= set(dir(models))


def test_editors_know_every_factory():
    source = ast.parse(inspect.getsource(models))
    (typed,) = (node for node in source.body if isinstance(node, ast.If) and node.orelse)
    known = {f"{line.module}:{name.name}" for line in typed.body for name in line.names}
    assert known == set(models._factories().values())
