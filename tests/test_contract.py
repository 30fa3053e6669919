"""What every row of the catalog promises, checked for all of them alike."""

import inspect
import re
from importlib.resources import files

import numpy as np
import pytest

from bayesrank import METHODS, PRESETS, Battles, Responses, leaderboard, models, rank
from bayesrank.errors import ConvergenceWarning, NoFiniteEstimate
from bayesrank.method import load_function
from bayesrank.priors import Prior
from bayesrank.ranking import BACKENDS
from bayesrank.reporting.evidence import notes

EVIDENCE = {"observed_mean", "n_outcomes", "n_questions", "few"}
RANKING = EVIDENCE | {
    "score",
    "rank",
    "tie_group",
    "score_lower",
    "score_upper",
    "lcb",
    "lcb_rank",
    "rank_lower",
    "rank_upper",
    "prob_best",
    "expected_rank",
    "superiority",
    "rank_probability",
    "joint_rank_lower",
    "joint_rank_upper",
    "group",
    "resolved",
    "separated_from_next",
}
ATTRIBUTES = {
    "scale",
    "shrunk",
    "method",
    "preset",
    "family",
    "backend",
    "options",
    "prior",
    "target",
    "unit",
    "calibration",
    "random_seed",
    "versions",
    "fingerprint",
    "created_at",
    "schema_version",
}

# NUTS has tests of its own, since compiling every model takes long.
FAST_RUNS = [
    (name, backend)
    for name, row in METHODS.items()
    for backend in row.backends
    if backend != "nuts"
]


def simulate(seed: int, *, duplicate: bool = False) -> Responses:
    """Return five systems on eight questions with six trials and earlier outcomes."""
    rng = np.random.default_rng(seed)
    ability = np.array([-1.0, -0.4, 0.1, 0.6, 1.1])[:, None, None]
    difficulty = np.linspace(-1.2, 1.2, 8)[None, :, None]
    chance = 1 / (1 + np.exp(difficulty - ability))
    outcomes = (rng.random((5, 8, 6)) < chance).astype(np.int8)
    greedy = (rng.random((5, 8, 1)) < chance).astype(np.int8)
    if duplicate:
        outcomes[4], greedy[4] = outcomes[1], greedy[1]
    return Responses(outcomes, systems=list("abcde"), prior_outcomes=greedy)


def permute(data: Responses, order: list[int]) -> Responses:
    """Return the same data with the systems in another order."""
    assert data.prior_outcomes is not None
    return Responses(
        data.outcomes[order],
        systems=[data.systems[i] for i in order],
        prior_outcomes=data.prior_outcomes[order],
    )


def run(name: str, backend: str, data: Responses, **keywords):
    return rank(data, name, backend=backend, random_seed=7, **METHODS[name].example, **keywords)


@pytest.fixture(scope="module")
def data() -> Responses:
    return simulate(3)


@pytest.fixture(scope="module", params=FAST_RUNS, ids=lambda pair: "-".join(pair))
def case(request, data):
    name, backend = request.param
    return name, backend, run(name, backend, data, draws=50)


def test_scores_are_finite_and_ranked(case):
    _, _, result = case
    ranking = result["ranking"].to_dataset()
    assert np.isfinite(ranking["score"]).all()
    assert ranking["rank"].values.min() == 1
    assert np.isfinite(result["posterior"]["score"]).all()


def test_tree_follows_the_schema(case):
    name, backend, result = case
    assert result["posterior"]["score"].dims == ("chain", "draw", "system")
    assert result["posterior"]["score"].shape == (4, 50, 5)
    assert set(result["ranking"].data_vars) == RANKING
    assert set(result.attrs) == ATTRIBUTES
    assert all(isinstance(value, str | int | float) for value in result.attrs.values())
    assert (result.attrs["method"], result.attrs["backend"]) == (name, backend)
    assert "observed_data" in result.children
    reserved = {"model", "column"}
    assert not reserved & {dim for group in result.subtree for dim in group.sizes}


def test_scores_of_shrunk_methods_say_so(case):
    name, _, result = case
    row = METHODS[name]
    if row.data not in ("comparisons", "responses", "pairs"):
        assert (result.attrs["shrunk"] == "yes") == row.shrunk
        assert (
            any(each.startswith("The score is shrunk towards 0.5, ") for each in notes(result))
            == row.shrunk
        )


def test_intervals_are_ordered(case):
    ranking = case[2]["ranking"].to_dataset()
    assert (ranking["score_lower"] <= ranking["lcb"]).all()
    assert (ranking["lcb"] <= ranking["score"]).all()
    assert (ranking["rank_lower"] <= ranking["rank_upper"]).all()


def test_probabilities_add_up(case):
    ranking = case[2]["ranking"].to_dataset()
    np.testing.assert_allclose(ranking["rank_probability"].sum("position"), 1)
    np.testing.assert_allclose(ranking["rank_probability"].sum("system"), 1)
    np.testing.assert_allclose(ranking["prob_best"].sum(), 1)
    superiority = ranking["superiority"].values
    np.testing.assert_allclose(superiority + superiority.T, 1)


def test_leaderboard_is_sorted(case):
    table = leaderboard(case[2])
    assert list(table["system"].sort_values()) == list("abcde")
    assert table["rank"].is_monotonic_increasing


def test_same_seed_gives_the_same_draws(case, data):
    name, backend, result = case
    again = run(name, backend, data, draws=50)
    np.testing.assert_array_equal(result["posterior"]["score"], again["posterior"]["score"])


@pytest.mark.parametrize(("name", "backend"), FAST_RUNS)
def test_point_estimate_alone(name, backend, data):
    result = run(name, backend, data, draws=0)
    assert result["posterior"]["score"].shape == (1, 1, 5)
    assert set(result["ranking"].data_vars) == {"score", "rank", "tie_group", *EVIDENCE}


@pytest.mark.parametrize(("name", "backend"), FAST_RUNS)
def test_relabelling_permutes_the_scores(name, backend, data):
    order = [3, 0, 4, 2, 1]
    before = run(name, backend, data, draws=0)["ranking"].to_dataset()
    after = run(name, backend, permute(data, order), draws=0)["ranking"].to_dataset()
    np.testing.assert_allclose(
        after["score"], before["score"][order], rtol=0, atol=1e-10 * np.abs(before["score"]).max()
    )
    np.testing.assert_array_equal(after["rank"], before["rank"][order])


@pytest.mark.parametrize(("name", "backend"), FAST_RUNS)
def test_identical_systems_tie_exactly(name, backend):
    result = run(name, backend, simulate(3, duplicate=True), draws=0)
    ranking = result["ranking"].to_dataset()
    for variable in ("rank", "tie_group"):
        assert ranking[variable].sel(system="b") == ranking[variable].sel(system="e")


@pytest.mark.parametrize(("name", "backend"), FAST_RUNS)
def test_input_is_left_alone(name, backend):
    data = simulate(5)
    fingerprint = data.fingerprint
    run(name, backend, data, draws=10)
    fresh = simulate(5)
    assert fresh.fingerprint == fingerprint
    np.testing.assert_array_equal(data.outcomes, fresh.outcomes)
    np.testing.assert_array_equal(data.counts, fresh.counts)
    np.testing.assert_array_equal(data.comparisons.wins, fresh.comparisons.wins)


@pytest.mark.parametrize("name", METHODS)
def test_options_read_from_source_are_those_of_the_function(name):
    row = METHODS[name]
    parameters = inspect.signature(load_function(row.function)).parameters.values()
    live = {
        p.name: p.default
        for p in parameters
        if p.kind is p.KEYWORD_ONLY and p.name not in ("prior", "random_seed")
    }
    assert {option: p.default for option, p in row.options.items()} == live
    row.check_options(row.example)


@pytest.mark.parametrize("name", METHODS)
def test_row_is_complete(name):
    row = METHODS[name]
    assert row.name == name
    assert len(row.title) > 10
    assert row.backends
    assert set(row.backends) <= set(BACKENDS)
    assert row.citations
    for path in (row.factory, row.kernel, row.exact, row.functional, row.existence):
        assert path is None or callable(load_function(path))


def separated() -> dict[str, Responses | Battles]:
    """Return data in which nothing bounds some difference between systems."""
    best, apart, groups = (simulate(3).outcomes.copy() for _ in range(3))
    best[0], best[-1] = 1, 0
    apart[:2, 4:], apart[2:, :4] = -1, -1
    groups[:2, 4:], groups[2:, :4] = 1, 0
    wins = ["ab", "ab", "bc", "cb", "bc"]
    islands = ["ab", "ba", "cd", "dc", "dc"]
    logs = {
        name: Battles(*zip(*pairs, strict=True), results)
        for name, pairs, results in (
            ("always won", wins, [1, 1, 1, 1, 1]),
            ("always won, with ties", [*wins, "bc"], [*["first"] * 5, "tie"]),
            ("never met", islands, [1, 1, 1, 1, 1]),
            ("never met, with ties", [*islands, "ab", "cd"], [*["first"] * 5, "tie", "tie"]),
            ("only ties", wins, ["tie"] * 5),
        )
    }
    found = {"best and worst": best, "never compared": apart, "two groups": groups}
    return {name: Responses(each) for name, each in found.items()} | logs


SEPARATED = separated()


@pytest.mark.parametrize(
    ("name", "case"),
    [
        (name, case)
        for name, row in METHODS.items()
        for case, data in SEPARATED.items()
        if "mle" in row.backends and (isinstance(data, Responses) or row.data == "comparisons")
    ],
)
def test_separated_data_have_a_finite_estimate_or_the_error_that_says_why(name, case):
    row, data = METHODS[name], SEPARATED[case]
    try:
        result = rank(data, name, backend="mle", draws=0, **row.example)
    except NoFiniteEstimate:
        return
    except (ConvergenceWarning, np.linalg.LinAlgError) as error:
        pytest.fail(f"{name} needs existence= in its row, which says why: {error}")
    assert np.abs(result["ranking"]["score"]).max() < 50.0


@pytest.mark.parametrize("name", [n for n, row in METHODS.items() if row.composite])
def test_composite_likelihoods_have_a_sandwich(name):
    row = METHODS[name]
    assert row.can_be_calibrated, (
        f"{name} counts trials more than once (composite=True), so its draws need the sandwich: "
        "name its likelihood in the row as gradient=, see 'A likelihood' in CONTRIBUTING.md"
    )
    # What the row names takes the options of the method.
    likelihood = load_function(row.gradient)
    data = () if row.data == "comparisons" else (simulate(3),)
    assert likelihood(*data, **row.example)


def test_factories_are_found_by_the_names_of_the_catalog():
    for row in METHODS.values():
        path = row.factory_path
        if path.startswith("bayesrank.models."):
            assert getattr(models, path.split(":")[1]) is load_function(path)
            assert path.split(":")[1] in dir(models)
    with pytest.raises(AttributeError, match="no factory 'thurstone'"):
        _ = models.thurstone


def test_citations_are_in_the_bibliography():
    text = files("bayesrank").joinpath("references.bib").read_text(encoding="utf-8")
    keys = set(re.findall(r"^@\w+\{([^,]+),", text, flags=re.MULTILINE))
    cited = {key for row in METHODS.values() for key in row.citations}
    missing = sorted(cited - keys)
    assert not missing, f"add these keys to bayesrank/references.bib: {', '.join(missing)}"


@pytest.mark.parametrize("name", [n for n, row in METHODS.items() if "map" in row.backends])
def test_likelihood_rows_have_a_default_prior(name):
    assert isinstance(METHODS[name].default_prior, Prior)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_runnable_rows(name):
    preset = PRESETS[name]
    row = METHODS[preset.method]
    assert preset.backend in row.backends
    row.check_options(preset.options)


@pytest.mark.parametrize("name", [n for n, preset in PRESETS.items() if preset.backend != "nuts"])
def test_presets_rank(name, data):
    result = rank(data, name, draws=0)
    assert np.isfinite(result["ranking"]["score"]).all()
    assert result.attrs["preset"] == name
