"""rank(): what it refuses, what it fills in, and how presets and seeds behave."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrank import METHODS, PRESETS, Comparisons, Responses, point_estimate, rank
from bayesrank.errors import DataError, NoFiniteEstimate
from bayesrank.method import LIKELIHOOD_BACKENDS, Method
from bayesrank.ranking import estimate_point

# Three systems, four questions, three trials.
OUTCOMES = np.array(
    [
        [[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 0]],
        [[1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0]],
        [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]],
    ]
)
ACCURACY = np.array([8, 5, 2]) / 12
# Categories that are in order, and not worth anything.
ORDERED = Responses([[0, 2]], categories=3)


@pytest.fixture
def battles() -> Comparisons:
    return Comparisons([[0, 3, 4], [1, 0, 2], [1, 2, 0]], [[0, 1, 0], [1, 0, 2], [0, 2, 0]])


def ranked(data, method, **keywords) -> xr.Dataset:
    return rank(data, method, **{"draws": 0, **keywords})["ranking"].to_dataset()


# What is refused


@pytest.mark.parametrize(
    ("method", "keywords", "message"),
    [
        (
            "nothing",
            {},
            "method must be the name of .* got 'nothing': METHODS and PRESETS hold them",
        ),
        ("bradley_tery", {}, r"got 'bradley_tery' \(did you mean bradley_terry or "),
        (["avg"], {}, r"method must be the name of a method .* got \['avg'\] \(did you"),
        ("avg", {"backend": "mle"}, "backend of avg must be one of bootstrap; got 'mle'"),
        ("bayes", {"backend": "map"}, "backend of bayes must be one of exact, nuts; got 'map'"),
        ("avg", {"ties": "half"}, "options of avg must be among: none; got 'ties'"),
        ("avg", {"tune": 10}, "options of avg must be among: none; got 'tune'"),
        (
            "bradley_terry",
            {"tie": "half"},
            r"options of bradley_terry must be among: ties, .*'tie'",
        ),
        (
            "bradley_terry",
            {"backend": "map", "tune": 10},
            r"bradley_terry must be among: .* 'tune'",
        ),
        ("bradley_terry", {"ties": "some"}, "got 'some'"),
        ("avg", {"unit": 3}, "unit must be text, or a sequence of it; got 3"),
        ("pass_at_k", {}, r"k must be given for pass_at_k; got none"),
        ("pass_at_k", {"k": 4}, "k must be"),
        ("avg", {"prior": 1.0}, "prior must be None for avg with backend 'bootstrap'; got 1.0"),
        ("bayes", {"prior": 0.0}, "counts of a Dirichlet prior must be positive .* got 0.0"),
        (
            "bayes",
            {"prior": "flat", "backend": "nuts", "draws": 1},
            "prior must be Dirichlet counts for bayes; got flat",
        ),
        (
            "bradley_terry",
            {"prior": 1.0, "backend": "mle"},
            "prior must be None for backend='mle', which has none; got 1.0: use backend='map'",
        ),
        ("bradley_terry_map", {"prior": 1.0, "backend": "mle"}, "prior must be None for backend="),
        ("davidson", {"tie_prior": 1.0, "backend": "mle"}, "tie_prior must be 'flat' for backend="),
        ("davidson", {"prior": "gauss"}, "prior must be a number or one of normal, laplace"),
        ("davidson", {"prior": [1]}, r"prior must be a prior of bayesrank.priors"),
        ("davidson", {"prior": -1}, "sigma must be positive and finite; got -1"),
        ("avg", {"target": "trials"}, "target must be 'benchmark' or 'population' for responses"),
        ("avg", {"target": "battles"}, r"target must be 'benchmark' or .* got 'battles'"),
        ("avg", {"ci_prob": 0.0}, "ci_prob must be between 0 and 1; got 0.0"),
        ("avg", {"ci_prob": 95}, "ci_prob must be between 0 and 1; got 95"),
        ("avg", {"ci_prob": np.nan}, "ci_prob must be between 0 and 1; got nan"),
        ("avg", {"lcb": 1.0}, "lcb must be between 0 and 1; got 1.0"),
        ("avg", {"lcb": -0.05}, "lcb must be between 0 and 1; got -0.05"),
        ("avg", {"lcb": "5 %"}, "lcb must be between 0 and 1; got '5 %'"),
        ("avg", {"ci_prob": None}, "ci_prob must be between 0 and 1; got None"),
        ("avg", {"draws": -1}, "draws must be an integer of at least 0; got -1"),
        ("avg", {"draws": 10.0}, "draws must be an integer of at least 0; got 10.0"),
        ("avg", {"draws": True}, "draws must be an integer of at least 0; got True"),
        ("avg", {"draws": "many"}, "draws must be an integer of at least 0; got 'many'"),
        (
            "bradley_terry",
            {"draws": 0, "backend": "nuts"},
            "backend must not be 'nuts' for a point estimate",
        ),
        ("avg", {"random_seed": -1}, "random_seed must be None or an integer >= 0; got -1"),
        ("avg", {"random_seed": 1.5}, "random_seed must be None or an integer >= 0; got 1.5"),
    ],
)
def test_arguments_of_another_form_are_refused(method, keywords, message):
    with pytest.raises(ValueError, match=message):
        rank(OUTCOMES, method, **keywords)


@pytest.mark.parametrize(
    ("data", "method", "message"),
    [
        ([0, 1], "avg", "outcomes must have shape"),
        ("logs.csv", "avg", "data must be outcomes; got 'logs.csv': read files with read_data"),
        ([[0, 2]], "avg", "outcomes must be 0 and 1 unless a scale or categories are named; got 2"),
        (ORDERED, "avg", "weights must be given for outcomes with more than two categories"),
        (ORDERED, "thompson", "outcomes must be right or wrong"),
        ([[0.5, 1]], "thompson", r"got scores from 0 to 1: .*categorize\(edges=...\)"),
        (
            [[[0.5, 1]] * 2] * 2,
            "bradley_terry",
            r"got scores from 0 to 1: .*categorize\(edges=...\)",
        ),
        ([[0, 1], [1, 0]], "bayes_greedy", "prior_outcomes must be given for use_prior_outcomes"),
        (
            Comparisons([[0, 1], [1, 0]]),
            "avg",
            "data must be responses for avg; got comparisons, wh",
        ),
        (Comparisons([[0, 1], [1, 0]]), "rasch", r"got comparisons, which only .*davidson.* can"),
        (
            [[0, 1]],
            "bradley_terry",
            "data must hold two systems or more for bradley_terry; got one",
        ),
        (
            Comparisons([[0]]),
            "davidson",
            "data must hold two systems or more for davidson; got one",
        ),
    ],
)
def test_data_that_a_method_cannot_read_are_refused(data, method, message):
    with pytest.raises(DataError, match=message):
        rank(data, method)


def test_comparisons_have_battles_for_a_target(battles):
    with pytest.raises(ValueError, match="target must be 'battles' for comparisons; got 'populat"):
        rank(battles, "rank_centrality", target="population")
    for target in (None, "battles"):
        result = rank(battles, "rank_centrality", target=target, draws=2, random_seed=1)
        assert result.attrs["target"] == "battles"


def test_an_estimate_that_does_not_exist_is_refused():
    never_loses = Comparisons([[0, 3], [0, 0]], systems=["ada", "bob"])
    with pytest.raises(NoFiniteEstimate, match=r"'ada' never lost .* use backend=\"map\""):
        rank(never_loses, "bradley_terry", backend="mle")
    assert np.isfinite(ranked(never_loses, "bradley_terry", backend="map")["score"]).all()


# What data may be


@pytest.mark.parametrize(
    "data",
    [
        OUTCOMES,
        OUTCOMES.tolist(),
        OUTCOMES.astype(bool),
        Responses(OUTCOMES),
        xr.DataArray(OUTCOMES.transpose(2, 0, 1), dims=("trial", "system", "question")),
    ],
)
def test_data_may_be_anything_that_holds_outcomes(data):
    ranking = ranked(data, "avg")
    np.testing.assert_allclose(ranking["score"], ACCURACY, rtol=1e-15)
    np.testing.assert_array_equal(ranking["system"], ["system 1", "system 2", "system 3"])


def test_data_may_be_a_long_table():
    index = np.indices(OUTCOMES.shape).reshape(3, -1)
    frame = pd.DataFrame(dict(zip(("model", "question", "trial"), index, strict=True)))
    ranking = ranked(frame.assign(outcome=OUTCOMES.ravel()), "avg")
    np.testing.assert_allclose(ranking["score"], ACCURACY, rtol=1e-15)
    np.testing.assert_array_equal(ranking["system"], ["0", "1", "2"])
    # `rank` has no argument for the names of columns.
    with pytest.raises(DataError, match=r"name it by system=\.\.\., .*, to Responses\.from_long"):
        rank(frame.rename(columns={"model": "who"}))


def test_comparisons_rank_with_methods_on_pairs(battles):
    for method in ("rank_centrality", "bradley_terry", "davidson"):
        ranking = ranked(battles, method)
        np.testing.assert_array_equal(ranking["rank"], [1, 2, 3])


def test_fractional_scores_rank_with_methods_on_grades():
    scores = [[[0.2, 0.4], [0.9, 0.5]], [[0.1, 0.5], [0.6, 0.6]]]
    np.testing.assert_allclose(ranked(scores, "avg")["score"], [0.5, 0.45], rtol=1e-15)
    np.testing.assert_allclose(ranked(scores, "borda")["score"], [1.5, 0.5], rtol=1e-15)


# What is filled in


@pytest.mark.parametrize(
    ("outcomes", "target"),
    [
        (OUTCOMES, "benchmark"),
        (OUTCOMES[..., :2], "benchmark"),
        (OUTCOMES[..., :1], "population"),
        (np.where(np.arange(3) < 2, OUTCOMES, -1), "benchmark"),
        (np.where((np.arange(3) < 1) | (np.arange(4)[:, None] > 0), OUTCOMES, -1), "benchmark"),
        (np.where(np.arange(4)[:, None] == np.zeros((3, 1, 1)), -1, OUTCOMES), "benchmark"),
        (np.where((np.arange(3) < 1) | (np.arange(4)[:, None] > 2), OUTCOMES, -1), "population"),
    ],
)
def test_trials_are_the_target_where_most_cells_have_two(outcomes, target):
    assert rank(outcomes, "avg", draws=1, random_seed=1).attrs["target"] == target


def test_a_target_can_be_chosen():
    assert rank(OUTCOMES, "avg", target="population", draws=1).attrs["target"] == "population"


@pytest.mark.parametrize("name", ["pass_at_k", "davidson", "rank_centrality"])
def test_the_first_back_end_of_a_method_is_the_default(name):
    row = METHODS[name]
    attributes = rank(OUTCOMES, name, draws=0, **row.example).attrs
    assert (attributes["preset"], attributes["backend"]) == ("none", row.backends[0])


@pytest.mark.parametrize(("draws", "size"), [(None, 500), (3, 3), (np.int64(2), 2), (0, 1)])
def test_draws_are_per_chain_of_four(draws, size):
    score = rank(OUTCOMES, "avg", draws=draws, random_seed=1)["posterior"]["score"]
    assert score.shape == ((4 if size > 1 else 1), size, 3)


def test_without_draws_there_is_the_estimate_alone():
    result = rank(OUTCOMES, "avg", draws=0)
    evidence = {"observed_mean", "n_outcomes", "n_questions", "few"}
    assert set(result["ranking"].data_vars) == {"score", "rank", "tie_group"} | evidence
    np.testing.assert_array_equal(result["posterior"]["score"][0, 0], result["ranking"]["score"])


def test_one_system_is_first():
    ranking = ranked(OUTCOMES[:1], "avg", draws=5, random_seed=1)
    assert ranking["rank"].item() == 1
    assert ranking["prob_best"].item() == 1
    np.testing.assert_array_equal(ranking["superiority"], [[0.5]])


def test_the_default_prior_is_recorded():
    attributes = rank(OUTCOMES, "davidson", draws=0).attrs
    assert (attributes["backend"], attributes["prior"]) == ("map", "normal(0, 1)")
    attributes = rank(OUTCOMES, "davidson", backend="map", prior=2, draws=0).attrs
    assert attributes["prior"] == "normal(0, 2)"
    assert rank(OUTCOMES, "avg", draws=0).attrs["prior"] == "none"


def test_a_prior_shrinks_the_scores(battles):
    spread = [
        np.ptp(ranked(battles, "bradley_terry", backend="map", prior=sigma)["score"].values)
        for sigma in (0.1, 1.0, 10.0)
    ]
    spread.append(np.ptp(ranked(battles, "bradley_terry", backend="mle")["score"].values))
    assert spread == sorted(spread)
    flat = ranked(battles, "bradley_terry", backend="map", prior="flat")["score"]
    assert np.ptp(flat.values) == pytest.approx(spread[-1], abs=1e-9)


def test_parameters_come_with_the_point_estimate():
    score, parameters = estimate_point(OUTCOMES, "irt_2pl", backend="map", prior=2.0)
    result = rank(OUTCOMES, "irt_2pl", backend="map", prior=2.0, draws=0)
    np.testing.assert_array_equal(score, result["ranking"]["score"])
    assert set(parameters) == set(result["point_estimate"].data_vars)
    for name, values in parameters.items():
        np.testing.assert_array_equal(values, result["point_estimate"][name])


# Presets


def test_a_preset_fixes_its_back_end_and_options():
    attributes = rank(OUTCOMES, "rank_centrality_tie_ignore", draws=0).attrs
    assert attributes["preset"] == "rank_centrality_tie_ignore"
    assert attributes["method"] == "rank_centrality"
    assert json.loads(attributes["options"]) == {"tie_policy": "ignore"}
    attributes = rank(OUTCOMES, "bradley_terry_map", draws=0).attrs
    assert (attributes["backend"], attributes["prior"]) == ("map", "normal(0, 1)")


def test_a_name_of_both_tables_means_the_preset():
    attributes = rank(OUTCOMES, "bradley_terry", draws=0).attrs
    assert (attributes["preset"], attributes["backend"]) == ("bradley_terry", "mle")
    assert METHODS["bradley_terry"].backends[0] == "map"


def test_options_of_a_preset_may_be_overridden():
    chosen = rank(OUTCOMES, "rank_centrality_tie_ignore", tie_policy="half", draws=0)
    half = rank(OUTCOMES, "rank_centrality_tie_half", draws=0)
    np.testing.assert_array_equal(chosen["ranking"]["score"], half["ranking"]["score"])
    assert json.loads(chosen.attrs["options"]) == {"tie_policy": "half"}
    assert dict(PRESETS["rank_centrality_tie_ignore"].options) == {"tie_policy": "ignore"}


def test_tie_handling_is_answered_with_the_name_of_the_option():
    expected = "options of rank_centrality must be among: tie_policy, smoothing, teleport.*handling"
    with pytest.raises(ValueError, match=expected):
        rank(OUTCOMES, "rank_centrality", tie_handling="half", draws=0)
    with pytest.raises(ValueError, match=expected):
        point_estimate(OUTCOMES, "rank_centrality_tie_ignore", tie_handling="half")


def test_the_prior_of_a_preset_may_be_overridden():
    wide = rank(OUTCOMES, "bradley_terry_map", prior=3.0, draws=0)
    assert wide.attrs["prior"] == "normal(0, 3)"
    plain = rank(OUTCOMES, "bradley_terry", backend="map", prior=3.0, draws=0)
    np.testing.assert_array_equal(wide["ranking"]["score"], plain["ranking"]["score"])


def test_the_back_end_of_a_preset_may_be_overridden():
    attributes = rank(OUTCOMES, "bradley_terry_map", backend="mle", draws=0).attrs
    assert (attributes["backend"], attributes["prior"]) == ("mle", "none")
    mle = ranked(OUTCOMES, "bradley_terry_map", backend="mle")
    np.testing.assert_array_equal(mle["score"], ranked(OUTCOMES, "bradley_terry")["score"])


def test_a_quantile_ranks_and_the_posterior_stays_what_it_is():
    plain = rank(OUTCOMES, "bayes", random_seed=1)
    low = rank(OUTCOMES, "bayes_ci", random_seed=1)
    np.testing.assert_array_equal(low["posterior"]["score"], plain["posterior"]["score"])
    k = OUTCOMES.sum(axis=2)
    # Beta(1 + k, 1 + 3 - k) per question: T = 5.
    p = (k + 1) / 5
    mean, sd = p.mean(axis=1), np.sqrt((p * (1 - p)).sum(axis=1) / 6) / 4
    np.testing.assert_allclose(plain["ranking"]["score"], mean, rtol=1e-14)
    z = 1.6448536269514722
    np.testing.assert_allclose(low["ranking"]["score"], mean - z * sd, rtol=1e-12)
    np.testing.assert_allclose(low["ranking"]["lcb"], low["ranking"]["score"], atol=0.03)


# Seeds


@pytest.mark.parametrize("method", ["avg", "borda", "bayes", "thompson", "bradley_terry"])
def test_the_same_seed_gives_the_same_draws(method):
    first, again, other = (
        rank(OUTCOMES, method, draws=10, random_seed=seed)["posterior"]["score"].values
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_chains_differ():
    score = rank(OUTCOMES, "avg", draws=10, random_seed=3)["posterior"]["score"].values
    assert len({chain.tobytes() for chain in score}) == 4


def test_a_run_without_a_seed_can_be_repeated():
    run = rank(OUTCOMES, "avg", draws=5)
    again = rank(OUTCOMES, "avg", draws=5, random_seed=int(run.attrs["random_seed"]))
    np.testing.assert_array_equal(run["posterior"]["score"], again["posterior"]["score"])


def test_the_seed_also_rules_an_estimate_that_is_drawn():
    first, again, other = (
        ranked(OUTCOMES, "thompson", n_samples=50, random_seed=seed)["score"].values
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


# What is recorded


def test_options_of_the_method_and_of_the_back_end_are_recorded(battles):
    result = rank(battles, "bradley_terry", ties="half", centred=True, draws=0)
    given = {"centred": True, "covariate_prior": "flat", "ties": "half"}
    assert json.loads(result.attrs["options"]) == given


def test_the_data_are_recorded_by_their_fingerprint(battles):
    data = Responses(OUTCOMES)
    assert rank(data, "avg", draws=0).attrs["fingerprint"] == data.fingerprint
    assert rank(battles, "davidson", draws=0).attrs["fingerprint"] == battles.fingerprint


@pytest.mark.parametrize(
    "call", ['"borda"', '"bayes"', '"bradley_terry", backend="map"', '"davidson"']
)
def test_fast_paths_import_neither_pymc_nor_arviz(call):
    code = (
        "import sys, bayesrank\n"
        f"bayesrank.rank([[[0, 1, 1], [1, 0, 0]], [[1, 0, 0], [1, 0, 1]]], {call}, draws=5)\n"
        "slow = {'pymc', 'arviz', 'pytensor', 'scipy.stats', 'scipy.optimize', 'numba'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_method_of_ones_own_needs_no_row_in_the_catalog():
    function = "bayesrank.models.paired:bradley_terry"
    own = Method("own", "paired", function, "comparisons", ("map",), ())
    battles = Comparisons([[0, 3, 1], [1, 0, 2], [2, 1, 0]])
    tree = rank(battles, own, draws=0, prior=1.0)
    assert tree.attrs["method"] == "own"
    expected = rank(battles, "bradley_terry_map", draws=0)["ranking"]["score"]
    np.testing.assert_allclose(tree["ranking"]["score"], expected, atol=1e-6)
    with pytest.raises(ValueError, match="options of own must be among: ties, "):
        rank(battles, own, links="probit")


@pytest.mark.parametrize(
    ("method", "backend", "reason"),
    [
        ("bayes", "map", "the mode of the probabilities is on the edge .* rank by avg"),
        ("bayes", "mle", "the observed proportions: rank by avg"),
        ("mirt", "mle", "without the priors the maximum is not unique"),
        ("hierarchical_binomial", "mle", "there is no pooling"),
    ],
)
def test_back_ends_that_cannot_exist_say_why(method, backend, reason):
    assert METHODS[method].absent[backend]
    with pytest.raises(
        ValueError, match=f"backend of {method} must be .* got '{backend}': .*{reason}"
    ):
        rank(OUTCOMES, method, backend=backend)


NO_OUTCOMES = np.random.default_rng(0).integers(0, 2, (4, 6, 3))
NO_OUTCOMES[1] = -1


@pytest.mark.parametrize("method", METHODS)
def test_a_system_without_outcomes_has_an_answer_or_a_reason(method):
    row = METHODS[method]
    options = {**row.example, "draws": 0 if LIKELIHOOD_BACKENDS & {*row.backends[:1]} else 25}
    if method == "g_pass_at_k_tau":  # three trials are too few for its example
        options["k"] = 2
    try:
        score = rank(NO_OUTCOMES, method, **options)["ranking"]["score"]
    except ValueError as error:
        answer = str(error)
    else:
        answer = "'system 2'" if np.isfinite(score).all() else "NaN"
    assert re.search("every system|'system 2'", answer)
