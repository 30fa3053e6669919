"""Systems and questions without any outcome, under every method and back end, in every table."""

import json

import numpy as np
import pytest

from bayesrank import (
    METHODS,
    Battles,
    Comparisons,
    Responses,
    evaluate,
    leaderboard,
    point_estimate,
    rank,
    superiority,
)
from bayesrank.by_group import group_shares
from bayesrank.evaluation import compare
from bayesrank.planning import plan_widths, should_stop, suggest
from bayesrank.ranking import draw_scores
from bayesrank.reporting.data_summary import summarize_result
from bayesrank.reporting.evidence import notes
from bayesrank.reporting.plain_tables import to_json
from bayesrank.reporting.tables import leaderboard_columns
from bayesrank.studies.perturbation import estimate_difficulty
from bayesrank.views import Ballots

SYSTEMS = ("a", "gone", "b", "c")
KEPT = ("a", "b", "c")
UNASKED = ["q4", "q11"]
FAST = [
    (name, backend)
    for name, row in METHODS.items()
    for backend in row.backends
    if backend in ("bootstrap", "exact", "mle", "map", "mml")
]


@pytest.fixture(scope="module")
def outcomes() -> np.ndarray:
    """Return six trials of ten questions by four systems, none of the second."""
    rng = np.random.default_rng(4)
    chance = np.array([0.35, 0.5, 0.5, 0.65])[:, np.newaxis, np.newaxis]
    drawn = (rng.random((4, 10, 6)) < chance).astype(int)
    drawn[1] = -1
    return drawn


@pytest.fixture(scope="module")
def asked(outcomes) -> Responses:
    """Return the outcomes of the others, with two questions that nobody was asked."""
    holes = np.full((3, 1, 6), -1)
    parts = [outcomes[[0, 2, 3], :4], holes, outcomes[[0, 2, 3], 4:], holes]
    labels = [f"q{m}" for m in range(12)]
    groups = ["x"] * 5 + ["y"] * 7
    return Responses(np.concatenate(parts, axis=1), systems=KEPT, questions=labels, groups=groups)


@pytest.fixture(scope="module")
def data(outcomes) -> Responses:
    return Responses(outcomes, systems=SYSTEMS)


def settings_of(name, backend):
    options = dict(METHODS[name].example)
    if name == "dynamic_irt":
        options["assume_time_axis"] = True
    if backend == "nuts":
        options |= {"tune": 20, "chains": 1}
    return {"backend": backend, "draws": 20, "random_seed": 1, **options}


@pytest.mark.parametrize(("name", "backend"), FAST)
def test_the_others_are_ranked_as_if_it_were_not_there(name, backend, data):
    settings = settings_of(name, backend)
    result = rank(data, name, **settings)
    alone = rank(data.select(systems=KEPT), name, **settings)
    for group in ("posterior", "ranking"):
        assert result[group].to_dataset().equals(alone[group].to_dataset())
    assert json.loads(result.attrs["unranked"]) == ["gone"]
    assert result.attrs["fingerprint"] == data.fingerprint
    table = leaderboard(result)
    assert table["system"].to_list()[-1] == "gone"
    assert table["rank"].isna().to_list() == [False, False, False, True]
    assert np.isnan(table["score"].iloc[-1])
    assert table["n_outcomes"].iloc[-1] == 0


@pytest.mark.filterwarnings("ignore::bayesrank.errors.ConvergenceWarning")
@pytest.mark.parametrize(("name", "backend"), [*FAST, ("irt_2pl", "nuts"), ("bayes", "nuts")])
def test_questions_that_nobody_was_asked_bear_on_nothing(uncompiled, name, backend, asked):
    settings = settings_of(name, backend)
    result = rank(asked, name, **settings)
    alone = rank(
        asked.select(questions=[q for q in asked.questions if q not in UNASKED]), name, **settings
    )
    for group in ("posterior", "ranking"):
        assert result[group].to_dataset().equals(alone[group].to_dataset())
    assert json.loads(result.attrs["unasked"]) == UNASKED
    assert "unranked" not in result.attrs


def test_reports_and_studies_name_them(asked):
    assert summarize_result(rank(asked, "rasch", draws=5)).unseen == tuple(UNASKED)
    difficulty = estimate_difficulty(asked, "rasch")
    assert np.flatnonzero(np.isnan(difficulty)).tolist() == [4, 11]
    assert group_shares(asked, "size") == {"x": 0.4, "y": 0.6}


def test_questions_with_earlier_outcomes_count():
    data = Responses([[1, -1], [0, -1]], prior_outcomes=[[[1], [0]], [[1], [1]]])
    with_both = point_estimate(data, "bayes", use_prior_outcomes=True)
    assert with_both.tolist() == pytest.approx([(3 / 4 + 1 / 3) / 2, (2 / 4 + 2 / 3) / 2])


def test_arrays_have_nan_in_its_place(data):
    score = point_estimate(data, "avg")
    assert np.isnan(score).tolist() == [False, True, False, False]
    draws = draw_scores(data, "avg", draws=3, random_seed=1)
    assert np.isnan(draws).all(axis=(0, 1)).tolist() == [False, True, False, False]


@pytest.mark.parametrize("kind", ["comparisons", "battles", "ballots"])
def test_battles_and_ballots(kind):
    rng = np.random.default_rng(1)
    if kind == "ballots":
        grades = rng.permuted(np.tile(np.arange(4.0)[:, np.newaxis], (1, 12)), axis=0)
        grades[1] = np.nan
        data, name = Ballots(grades, SYSTEMS), "plackett_luce"
        backend = "map"
    else:
        name, backend = "bradley_terry", "map"
        first = rng.integers(3, size=60)
        second = (first + 1 + rng.integers(2, size=60)) % 3
        kept = np.array(KEPT)
        data = Battles(
            kept[first], kept[second], ["model_a"] * 30 + ["model_b"] * 30, systems=SYSTEMS
        )
        if kind == "comparisons":
            data = Comparisons(data.wins, data.ties, systems=SYSTEMS)
    result = rank(data, name, backend=backend, draws=20, random_seed=1)
    assert leaderboard(result)["system"].to_list()[-1] == "gone"
    assert np.isnan(point_estimate(data, name, backend=backend)[1])
    assert result["ranking"].sizes["system"] == 3


def test_a_rating_of_battles_in_order_leaves_out_rows_that_weigh_nothing():
    data = Battles(["a", "b", "a"], ["b", "a", "gone"], ["a", "a", "a"], weight=[1, 1, 0])
    result = rank(data, "elo", draws=5, random_seed=1)
    assert leaderboard(result)["system"].to_list() == ["a", "b", "gone"]


def test_tables_and_notes_name_it(data):
    result = rank(data, "avg", draws=20, random_seed=1)
    assert notes(result) == ["unranked, without any outcome: gone."]
    assert leaderboard_columns(result)[1].cells == ["c", "b", "a"]
    rows = json.loads(to_json(leaderboard(result)))
    assert rows[-1]["rank"] is None
    assert rows[-1]["system"] == "gone"
    html = leaderboard(result)._repr_html_()
    assert html is not None
    assert "without any outcome: gone" in html
    assert superiority(result).shape == (3, 3)


def test_evaluations_have_no_estimate_of_it(data):
    table = evaluate(data, ["avg", "pass_at_k(k=2)"]).set_index("system")
    assert table.index.to_list() == [name for name in SYSTEMS for _ in range(2)]
    assert np.isnan(table.loc[["gone"], "score"].to_numpy()).all()
    assert not np.isnan(table.drop(index="gone")["score"].to_numpy()).any()
    assert set(compare(data)["system"]) <= set(KEPT)


def test_plans_of_what_to_observe_next_hold_it(data):
    assert suggest(data, 6)["system"].to_list() == ["gone"] * 6
    with pytest.warns(UserWarning, match="the plan leaves out systems without any outcome: gone"):
        assert plan_widths(data, 0.1)["system"].to_list() != list(SYSTEMS)
    wins = [[0, 0, 9], [0, 0, 0], [1, 0, 0]]
    assert not should_stop(Comparisons(wins, systems=["a", "gone", "b"])).stop


def test_parameters_without_a_finite_estimate_are_marked(outcomes):
    alike = outcomes[[0, 2, 3]].copy()
    alike[:, 0], alike[:, 1] = 1, 0
    result = rank(Responses(alike), "rasch", backend="mle", draws=5)
    difficulty = result["posterior"].to_dataset()["difficulty"]
    assert np.isfinite(difficulty.values[..., 2:]).all()
    assert not np.isfinite(difficulty.values[..., :2]).any()
    assert "no finite estimate" in difficulty.attrs["dropped"]
