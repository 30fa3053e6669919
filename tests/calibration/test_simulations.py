"""The harness of `make calibrate`: what it expects, what it keeps, that it goes on where it was."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("calibration", reason="the harness stays in the repository: run from its root")

from bayesrank import METHODS, rank
from bayesrank.ranking import draw_scores
from calibration import cells, configurations, coverage, sharing, tables, truths, uniformity, worlds
from calibration.store import COVERAGE, Store

ROOT = Path(__file__).parents[2]
SMALL = worlds.Design(4, 5, 3)
ON_A_BENCHMARK = cells.Setting(SMALL, "benchmark", "rasch")


def small_world(target="benchmark", generator="rasch", design=SMALL):
    rng = np.random.default_rng(0)
    return worlds.draw_world(design, target, generator, rng)


def find(name):
    return next(one for one in configurations.configurations() if one.name == name)


# Worlds


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_expected_comparisons_are_the_mean_of_simulated_ones(target):
    world = small_world(target)
    rng = np.random.default_rng(1)
    drawn = [world.draw_responses(rng).comparisons for _ in range(1000)]
    expected = world.expected_comparisons()
    np.testing.assert_allclose(np.mean([one.wins for one in drawn], 0), expected.wins, atol=0.3)
    np.testing.assert_allclose(np.mean([one.ties for one in drawn], 0), expected.ties, atol=0.3)
    np.testing.assert_allclose(expected.totals[~np.eye(4, dtype=bool)], 15)


@pytest.mark.parametrize("most_enumerated", [12, 0])
def test_expected_events_add_up_to_the_expected_comparisons(monkeypatch, most_enumerated):
    monkeypatch.setattr(worlds, "_MOST_ENUMERATED", most_enumerated)
    world = small_world("population")
    events = world.expected_events(np.random.default_rng(0))
    wins = (events.right.T * events.multiplicity) @ events.wrong
    atol = 1e-10 if most_enumerated else 0.1
    np.testing.assert_allclose(wins, world.expected_comparisons().wins, atol=atol)


def test_expected_responses_have_the_expected_counts():
    world = small_world()
    right, trials = world.expected_responses(np.random.default_rng(0)).binary_counts
    np.testing.assert_allclose(right, 3 * world.chances)
    np.testing.assert_allclose(trials, 3)


def test_a_benchmark_keeps_its_questions_and_a_population_does_not():
    rng = np.random.default_rng(0)
    first, second = small_world().draw_chances(rng, 2)
    np.testing.assert_array_equal(first, second)
    first, second = small_world("population").draw_chances(rng, 2)
    assert not np.array_equal(first, second)


# Truths


def test_the_truth_of_an_average_is_the_mean_chance():
    world = small_world("population")
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(truths.true_score(find("avg"), world, rng), world.accuracy)
    benchmark = small_world()
    np.testing.assert_allclose(truths.true_score(find("bayes"), benchmark, rng), benchmark.accuracy)


@pytest.mark.parametrize("name", ["bayes", "inverse_difficulty", "rankllm"])
def test_the_truth_of_a_population_is_the_score_of_many_questions(name):
    world = small_world("population")
    truth = truths.true_score(find(name), world, np.random.default_rng(0))
    data = world.draw_responses(np.random.default_rng(1), 400)
    score = coverage_free_score(data, name)
    # 2,000 questions instead of 5: the noise of a share is 1 %, of a score in percent as well.
    np.testing.assert_allclose(score, truth, rtol=0.05)
    if name == "bayes":
        np.testing.assert_allclose(truth, (3 * world.accuracy + 1) / (3 + 2))


def test_a_likelihood_that_holds_has_its_parameters_as_truth():
    # Two systems: the log-odds of the expected wins.
    world = worlds.World(worlds.Design(2, 1, 4), "benchmark", np.array([[0.8], [0.5]]))
    score = truths.true_score(find("bradley_terry"), world, np.random.default_rng(0))
    np.testing.assert_allclose(score[0] - score[1], np.log(0.8 * 0.5 / (0.2 * 0.5)))


def test_the_luck_of_the_data_sets_is_taken_out_of_an_expected_score():
    world = small_world()
    rng = np.random.default_rng(0)
    accuracies = world.accuracy + rng.normal(size=(20, len(world.chances)))
    together = accuracies.mean(axis=1, keepdims=True)
    scores = 3.0 * accuracies - together
    expected = 3.0 * world.accuracy - world.accuracy.mean()
    np.testing.assert_allclose(truths.expected_score(scores, accuracies - world.accuracy), expected)


def test_the_truth_of_a_model_that_shrinks_is_its_expected_score():
    world = small_world()
    truth = truths.true_score(find("irt_2pl"), world, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    scores = [coverage_free_score(world.draw_responses(rng), "irt_2pl") for _ in range(400)]
    # The error of the mean of 400 is 1/20 of the standard deviation, that of the truth up to 1/10.
    deviation = np.abs(np.mean(scores, axis=0) - truth) / np.std(scores, axis=0)
    assert np.all(deviation < 5 * np.hypot(1 / 20, 1 / 10))


@pytest.mark.parametrize("name", ["borda", "serial_rank_prob_diff", "elo_tie_skip"])
def test_the_truth_of_scores_that_jump_is_their_expectation(name):
    world = small_world()
    configuration = find(name)
    truth = truths.true_score(configuration, world, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    scores = [
        coverage_free_score(world.draw_responses(rng), configuration.ranker) for _ in range(100)
    ]
    noise = np.std(scores, axis=0) / np.sqrt(100)
    assert np.all(np.abs(np.mean(scores, axis=0) - truth) < 5 * noise + 1e-12)


def coverage_free_score(data, name):
    return rank(data, name, draws=0)["ranking"]["score"].values


# Cells


def test_a_chunk_is_computed_alike_every_time(monkeypatch):
    monkeypatch.setattr(cells, "CHUNK", 3)
    cell = cells.Cell(find("avg"), ON_A_BENCHMARK)
    (first,), (again,), (other,) = (cells.measure([cell], chunk, np.inf) for chunk in (0, 0, 1))
    assert first["covered"] == again["covered"]
    assert first["simulations"] == 3
    assert first["covered"] != other["covered"]


def test_a_cell_does_not_depend_on_those_it_is_computed_with(monkeypatch):
    monkeypatch.setattr(cells, "CHUNK", 3)
    names = (
        "borda",
        "copeland",
        "avg",
        "pass_hat_k_2",
        "pass_at_k_2",
        "rank_centrality_tie_half",
        "hodge_rank_binary_total",
        "bradley_terry",
        "bradley_terry (naive)",
        "rasch_mml",
        "rasch_mml_credible",
    )
    together = [cells.Cell(find(name), ON_A_BENCHMARK) for name in names]
    rows = cells.measure(together, 0, np.inf)
    for cell, row in zip(together, rows, strict=True):
        (alone,) = cells.measure([cell], 0, np.inf)
        assert {**alone, "seconds": 0} == {**row, "seconds": 0}


@pytest.mark.parametrize(
    ("times", "mean"),
    [([0.0, 0.3, 0.0, 0.4, 0.2, 9.0], 0.3), ([0.0] * 9 + [0.5], 0.5), ([0.0] * 10, 0.0)],
)
def test_a_posterior_is_timed_on_three_tensors_that_can_be_ranked(monkeypatch, times, mean):
    monkeypatch.setattr(cells, "CHUNK", 1)
    left = iter(times)
    monkeypatch.setattr(cells, "posterior_seconds", lambda *_: next(left))
    (row,) = cells.measure([cells.Cell(find("avg"), ON_A_BENCHMARK)], 0, np.inf)
    assert row["seconds"] == pytest.approx(mean)


# Draws and resamples for each of four chains; counts in them and in the data; orders of victories;
# the data without a part of them; whether there is a maximum, and the fit; the model, and its
# draws.
@pytest.mark.parametrize(
    ("method", "variants", "n_shared"),
    [
        ("bayes", [{}, {"quantile": 0.1}], 4),
        ("avg", [{}, {}], 4 + 4),
        ("win_rate", [{}, {}], 4 + 4 + 4),
        ("ranked_pairs", [{"strength": "margin"}, {"strength": "winning_votes"}], 4 + 4 + 5 + 5),
        ("pagerank", [{"target": "population"}, {"target": "population"}], 4),
        ("inverse_difficulty", [{}, {}], 4 + 4),
        ("bradley_terry", [{}, {"calibration": "none"}], 1 + 1),
        pytest.param(
            "bayesian_mcmc",
            [{}, {"calibration": "none"}],
            1 + 1,
            marks=pytest.mark.filterwarnings("ignore::bayesrank.errors.ConvergenceWarning"),
        ),
    ],
)
def test_shared_work_leaves_the_draws_as_they_are(method, variants, n_shared):
    data = small_world().draw_responses(np.random.default_rng(0))
    alone = [rank(data, method, draws=10, random_seed=1, **options) for options in variants]
    with sharing.shared_work() as seconds:
        for options, result in zip(variants, alone, strict=True):
            draws = draw_scores(data, method, draws=10, random_seed=1, **options)
            np.testing.assert_array_equal(draws, result["posterior"]["score"])
    assert len(seconds) == n_shared


# In a process of its own, where no ranker has been imported.
WITHOUT_A_TRACE = """
import sys
from bayesrank import METHODS
from bayesrank.method import load_function
from calibration.sharing import shared_work

with shared_work():
    for method in METHODS.values():
        load_function(method.function)
kept = [
    (module.__name__, name)
    for module in list(sys.modules.values())
    for name, value in list(vars(module).items())
    if getattr(value, "__module__", "") == "calibration.sharing" and name != "shared_work"
]
assert all(module == "calibration.sharing" for module, _ in kept), kept
"""


def test_what_is_shared_leaves_no_trace():
    subprocess.run([sys.executable, "-c", WITHOUT_A_TRACE], check=True, cwd=ROOT)


def test_what_shares_an_estimand_has_the_same_truth_and_differs_in_calibration_alone():
    names = [one.estimand for one in configurations.configurations()]
    twice = {name for name in names if names.count(name) > 1}
    assert find("rasch_mml").estimand == find("rasch_mml_credible").estimand in twice
    assert find("bayes").estimand != find("bayes_ci").estimand
    naive = {one.ranker for one in configurations.configurations() if one.naive}
    assert twice - naive == {find("rasch_mml").estimand}


@pytest.mark.parametrize("digits", [0, 1, 9])
@pytest.mark.parametrize("probability", [0.025, 0.05, 0.25, 0.75, 0.975])
def test_to_count_is_to_compare_a_quantile(digits, probability):
    rng = np.random.default_rng(0)
    for size in (2, 39, 40, 41, 1000):
        values = rng.normal(size=(500, size)).round(digits)
        quantile = np.quantile(values, probability, axis=1, method="weibull")
        near = quantile + rng.choice([-1e-9, 0.0, 1e-9], 500)
        limit = np.where(rng.random(500) < 0.5, near, rng.normal(size=500).round(digits))
        for compare in (np.less, np.less_equal):
            found = cells._quantile_is(compare, values, probability, limit)
            np.testing.assert_array_equal(found, compare(quantile, limit))


def test_intervals_hold_one_more_draw_as_often_as_they_say():
    values = np.random.default_rng(0).normal(size=(40_000, 41))
    found = cells._intervals("score", values[:, :-1], values[:, -1], 0.0)
    # Standard errors of 0.0011 and 0.0025.
    assert found["score 95"] == pytest.approx(0.95, abs=0.004)
    assert found["score 50"] == pytest.approx(0.50, abs=0.008)


def test_what_cannot_be_ranked_is_counted(monkeypatch):
    monkeypatch.setattr(cells, "CHUNK", 2)
    setting = cells.Setting(worlds.Design(3, 6, 1), "population", "rasch")
    (row,) = cells.measure([cells.Cell(find("pass_at_k_2"), setting)], 0, np.inf)
    assert (row["simulations"], row["undefined"]) == (0, 2)
    assert "k must be at most" in row["error"]


def test_a_chunk_that_is_too_slow_is_given_up():
    (row,) = cells.measure([cells.Cell(find("avg"), ON_A_BENCHMARK)], 0, 0.0)
    assert (row["simulations"], row["undefined"]) == (0, 0)


def test_benchmarks_need_two_trials_and_priors_a_closed_form():
    assert not find("avg").has("benchmark", "rasch", 1)
    assert find("avg").has("population", "rasch", 1)
    assert find("bayes").has("benchmark", "prior", 8)
    assert not find("avg").has("benchmark", "prior", 8)


@pytest.mark.parametrize(
    ("name", "sandwich"),
    [
        ("rasch_map", True),
        ("rasch_mml", True),
        ("dynamic_irt_linear", True),
        ("dynamic_irt_growth", True),
        ("bradley_terry", False),  # by default
        ("avg", False),
    ],
)
def test_item_models_that_do_not_fit_have_the_sandwich(name, sandwich):
    options = find(name).options_for("benchmark", "beta")
    assert (options.get("calibration") == "sandwich") == sandwich
    assert "calibration" not in find(name).options_for("benchmark", "rasch")
    assert "calibration" not in find(name).options_for("population", "beta")
    assert find("bradley_terry (naive)").options_for("benchmark", "beta")["calibration"] == "none"


def test_a_walk_is_held_to_its_own_prior():
    walk = find("dynamic_irt_state_space")
    assert walk.has("benchmark", "prior", 8)
    assert walk.rule("score", "benchmark", "rasch") == "fixed truth"
    assert walk.rule("score", "benchmark", "prior") == "nominal"
    assert walk.rule("score", "population", "rasch") == "nominal"
    assert 1 / (2 * METHODS["dynamic_irt"].options["state_reg"].default) == worlds.WALK_VARIANCE


def test_abilities_walk_over_the_trials():
    rng = np.random.default_rng(0)
    design = worlds.Design(2000, 20, 11)
    world = worlds.draw_world(design, "benchmark", "prior", rng, prior="walk")
    assert isinstance(world, worlds.Walk)
    assert np.diff(world.ability).var() * 10 == pytest.approx(worlds.WALK_VARIANCE, rel=0.05)
    np.testing.assert_array_equal(
        truths.true_score(find("dynamic_irt_state_space"), world, rng), world.ability[:, -1]
    )
    early, late = world.draw_responses(rng).outcomes[..., [0, -1]].mean(axis=1).T
    assert np.corrcoef(late, world.ability[:, -1])[0, 1] > 0.6
    assert np.corrcoef(late - early, world.ability[:, -1] - world.ability[:, 0])[0, 1] > 0.5


def test_a_population_needs_draws_that_know_of_it():
    assert find("bradley_terry").has("population", "rasch", 8)
    assert find("rasch").has("population", "rasch", 8)
    nobody = dataclasses.replace(find("rasch").method, gradient=None)
    uncalibrated = dataclasses.replace(find("rasch"), method=nobody)
    assert not uncalibrated.has("population", "rasch", 8)
    assert uncalibrated.has("benchmark", "rasch", 8)


def test_the_truth_of_an_item_model_is_the_limit_for_many_questions():
    # Two answers to each question: joint estimates are twice too far apart, however many there are.
    world = worlds.World(worlds.Design(2, 50, 1), "population", np.array([[0.8, 0.6], [0.5, 0.3]]))
    score = truths.true_score(find("rasch"), world, np.random.default_rng(0))
    chance = world.chances
    wins = (chance[0] * (1 - chance[1])).mean() / (chance[1] * (1 - chance[0])).mean()
    np.testing.assert_allclose(score[0] - score[1], 2 * np.log(wins), rtol=0.1)


def test_a_prior_weighs_as_much_in_the_limit():
    world = small_world("population")
    rng = np.random.default_rng(0)
    limit = truths.true_score(find("rasch_map"), world, rng)
    drawn = [
        coverage_free_score(world.draw_responses(np.random.default_rng(seed)), "rasch_map")
        for seed in range(300)
    ]
    assert np.abs(np.mean(drawn, axis=0) - limit).max() < 0.25


def test_naive_posteriors_stand_beside_calibrated_ones():
    names = [one.name for one in configurations.configurations()]
    assert "bradley_terry (naive)" in names
    assert len(set(names)) == len(names)


def test_a_method_is_left_out_where_a_preset_has_its_defaults():
    names = {one.name for one in configurations.configurations()}
    assert {"nanson_rank_ties_average", "davidson", "bradley_terry_davidson_map"} <= names
    assert "nanson" not in names


# The store


def row(chunk, total=1.8, name="avg", size=2):
    covered = {quantity: [total, total**2 / size] for quantity in tables.QUANTITIES}
    return {
        "key": [name, "10x30x8", "benchmark", "rasch"],
        "chunk": chunk,
        "simulations": size,
        "undefined": 0,
        "error": "",
        "seconds": 0.1,
        "covered": covered,
    }


def test_a_line_that_was_cut_short_is_forgotten(tmp_path):
    path = tmp_path / "new" / COVERAGE
    store = Store(path)
    store.add(row(0))
    store.add(row(1))
    with path.open("a") as file:
        file.write('{"key": ["avg"')
    again = Store(path)
    assert list(again.rows) == list(store.rows)
    again.add(row(2))
    assert [json.loads(line)["chunk"] for line in path.read_text().splitlines()] == [0, 1, 2]


def test_a_run_computes_only_what_is_missing(tmp_path):
    store = Store(tmp_path / COVERAGE)
    options = coverage._parse(["--simulations", "60", "--methods", "avg", "--designs", "10x30x8"])
    chosen = coverage._select(options)
    everything = list(coverage._missing(options, chosen, store, set()))
    assert len(everything) == 3 * len(chosen) == 12
    done = {**row(1), "key": list(chosen[0].key)}
    store.add(done)
    left = list(coverage._missing(options, chosen, store, set()))
    assert len(left) == 11
    assert ([chosen[0]], 1) not in left


def test_configurations_share_the_tensors_of_a_setting(tmp_path):
    options = coverage._parse(["--simulations", "20", "--methods", "avg", "bayes", "thompson"])
    chosen = coverage._select(options)
    pieces = list(coverage._missing(options, chosen, Store(tmp_path / COVERAGE), set()))
    assert sum(len(some) for some, _ in pieces) == len(chosen)
    for some, _ in pieces:
        assert len({(cell.setting, cell.prior) for cell in some}) == 1
    # Where chances come from the prior, Thompson sampling has others.
    assert len(pieces) == len({cell.setting for cell in chosen}) + 2


def test_merged_chunks_add_up_and_are_not_computed_again(tmp_path):
    store = Store(tmp_path / COVERAGE)
    for chunk, total in ((1, 1.5), (0, 1.8), (3, 2.0), (2, 1.0)):
        store.add(row(chunk, total=total))
    store.add(row(1, name="borda"))
    before = tables.summarize(store.rows.values())
    store.merge()
    again = Store(tmp_path / COVERAGE)
    assert sorted(again.rows) == [(*row(0)["key"], 0), (*row(0, name="borda")["key"], 1)]
    assert tables.summarize(again.rows.values()) == before
    key = tuple(row(0)["key"])
    assert [again.has(key, chunk) for chunk in range(5)] == [True] * 4 + [False]
    again.add(row(4))
    again.merge()
    assert again.rows[*key, 0]["simulations"] == 5 * 2
    assert again.rows[*key, 0]["chunks"] == 5


def test_slow_cells_get_fewer_tensors(tmp_path):
    store = Store(tmp_path / COVERAGE)
    options = coverage._parse(["--methods", "avg", "--designs", "10x30x8"])
    (cell, *_) = coverage._select(options)
    store.add({**row(0), "key": list(cell.key), "seconds": 1.0})
    assert len(list(coverage._missing(options, [cell], store, set()))) == 400 // 20 - 1
    store.add({**row(0), "key": list(cell.key), "seconds": 0.01})
    assert len(list(coverage._missing(options, [cell], store, set()))) == 4000 // 20 - 1


@pytest.mark.parametrize("method", ["elo", "trueskill", "bayesian_mcmc"])
def test_sequential_ratings_and_nuts_are_slow_on_any_machine(method, tmp_path):
    store = Store(tmp_path / COVERAGE)
    options = coverage._parse(["--methods", method, "--designs", "10x30x8"])
    (cell, *_) = coverage._select(options)
    store.add({**row(0), "key": list(cell.key), "seconds": 0.01})
    assert len(list(coverage._missing(options, [cell], store, set()))) == 400 // 20 - 1


def test_unknown_methods_are_refused():
    with pytest.raises(SystemExit, match="methods must be in the catalog; got bordar"):
        coverage._select(coverage._parse(["--methods", "bordar"]))


# Tables


def test_the_simulation_interval_is_that_of_a_mean_over_tensors():
    shares = np.random.default_rng(0).choice([0.8, 0.9, 1.0, 1.0, 1.0], 4000)
    found = tables.measured(shares.sum(), (shares**2).sum(), 4000, nominal=0.95, rule="nominal")
    assert found.coverage == pytest.approx(shares.mean())
    half = 2.576 * shares.std() / np.sqrt(4000)
    assert found.upper - found.coverage == pytest.approx(half, rel=0.01)


@pytest.mark.parametrize(
    ("share", "rule", "passed"),
    [
        (0.95, "nominal", True),
        (0.90, "nominal", False),
        (0.90, "at least", False),
        (0.99, "nominal", False),
        (0.99, "at least", True),
        (0.50, "contrast", None),
    ],
)
def test_what_passes(share, rule, passed):
    size = 4000
    found = tables.measured(share * size, share**2 * size, size, nominal=0.95, rule=rule)
    assert found.passed is passed
    assert (
        tables.measured(share * size, share**2 * size, size, nominal=0.5, rule=rule).passed is None
    )


def test_tables_say_what_fails(tmp_path):
    store = Store(tmp_path / COVERAGE)
    store.add(row(0, total=1000 * 0.8, size=1000))
    store.add({**row(0, total=1000 * 0.95, size=1000, name="borda")})
    tables.publish(tmp_path, tmp_path / "docs")
    lines = (tmp_path / "docs" / "calibration.csv").read_text().splitlines()
    assert lines[0].split(",") == list(tables.COLUMNS)
    assert len(lines) == 1 + 2 * len(tables.QUANTITIES)
    page = (tmp_path / "docs" / "calibration.md").read_text()
    assert "{calibration-table}" in page
    failures = page.split("## What fails")[1]
    assert "avg 10x30x8 benchmark rasch: score 80.0" in failures
    assert "borda" not in failures
    assert (tmp_path / "docs" / "calibration.svg").read_text().startswith("<?xml")


# Uniformity of ranks


def test_uniform_ranks_leave_their_band_as_rarely_as_stated():
    rng = np.random.default_rng(5)
    p = uniformity.uniformity(rng.integers(0, 101, (200, 400)), 100)
    assert np.mean(p < 0.05) == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize("exponent", [0.6, 1.6])
def test_ranks_that_lean_to_one_side_leave_it(exponent):
    rng = np.random.default_rng(5)
    ranks = np.floor(101 * rng.random((300, 5)) ** exponent).astype(int)
    assert uniformity.uniformity(ranks, 100).max() < 0.001
