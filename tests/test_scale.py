"""Scores on a scale that the user names: read, ranked and shown in its units."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bayesrank import METHODS, Responses, evaluate, leaderboard, point_estimate, rank
from bayesrank.catalog import DEFAULT_METHOD
from bayesrank.errors import DataError
from bayesrank.scale import UNIT, Scale, as_scale

Run = Callable[..., Result]

RATINGS = np.array([[[9, 10], [8, 9], [10, 9]], [[5, 6], [7, 4], [6, 6]]])


@pytest.fixture
def rated() -> Responses:
    return Responses(RATINGS, systems=["good", "fair"], scale=(1, 10))


def test_scores_are_shares_of_the_scale(rated: Responses) -> None:
    assert rated.scale == (1.0, 10.0)
    np.testing.assert_array_equal(rated.values, RATINGS)
    np.testing.assert_array_equal(rated.scores, (RATINGS - 1) / 9)
    np.testing.assert_allclose(rated.in_units(rated.grades), RATINGS.mean(axis=-1), rtol=1e-15)
    assert not rated.is_binary


def test_zeros_and_ones_on_a_scale_are_scores() -> None:
    data = Responses([[0, 1], [1, 1]], scale=(0, 1))
    assert data.scale == UNIT
    np.testing.assert_array_equal(data.scores, [[[0.0], [1.0]], [[1.0], [1.0]]])


@pytest.mark.parametrize(
    ("outcomes", "scale", "missing"),
    [
        ([[7, -1]], (1, 10), [False, True]),
        ([[-1, 3]], (-5, 5), [False, False]),  # on the scale
        ([[7.5, np.nan]], (1, 10), [False, True]),
    ],
)
def test_missing_scores(outcomes, scale, missing) -> None:
    assert np.isnan(Responses(outcomes, scale=scale).scores[0, :, 0]).tolist() == missing


@pytest.mark.parametrize(
    ("outcomes", "scale", "message"),
    [
        ([[5, 11]], (1, 10), "must lie on the scale from 1 to 10; got 11 for .* 'question 2'"),
        ([[5, 0]], (1, 10), "got 0 for system 'system 1'"),
        ([[5.0, -1.0]], (1, 10), "got -1 for .* leave missing outcomes empty"),
        ([[np.inf, 5]], (1, 10), "got inf"),
        ([[-1, -1]], (1, 10), "at least one observed trial"),
        ([[5, 6]], (10, 1), "scale must be two finite numbers, the lower one first"),
        ([[5, 6]], (1, 1), "scale must be two finite numbers"),
        ([[5, 6]], (0, np.inf), "scale must be two finite numbers"),
        ([[5, 6]], (0, 5, 10), "scale must be two finite numbers"),
        ([[5, 6]], 10, "scale must be two finite numbers"),
        ([[5, 6]], ("low", "high"), "scale must be numbers"),
    ],
)
def test_outcomes_have_to_be_on_a_scale(outcomes, scale, message) -> None:
    with pytest.raises(DataError, match=message):
        Responses(outcomes, scale=scale)


@pytest.mark.parametrize(
    "keywords", [{"weights": [0, 1]}, {"categories": 3}, {"prior_outcomes": [[1]]}]
)
def test_scores_are_no_categories(keywords) -> None:
    (name,) = keywords
    with pytest.raises(DataError, match=f"{name} must be None for scores on a scale"):
        Responses([[5]], scale=(1, 10), **keywords)


def test_a_scale_is_kept_by_tables_and_arrays(rated: Responses) -> None:
    table = rated.to_long()
    assert table["outcome"].tolist() == RATINGS.ravel().tolist()
    assert Responses.from_long(table).fingerprint == rated.fingerprint
    # A new statement takes the place of the one that the table keeps.
    assert Responses.from_long(table, scale=(0, 20)).scale == (0.0, 20.0)
    assert Responses.from_long(table, categories=11).n_categories == 11
    table.attrs.clear()
    with pytest.raises(DataError, match="got 9 for system 'good'"):
        Responses.from_long(table)
    array = xr.DataArray(RATINGS, dims=("system", "question", "trial"))
    np.testing.assert_array_equal(
        Responses.from_dataarray(array, scale=(1, 10)).scores, rated.scores
    )


def test_the_fingerprint_tells_scales_apart(rated: Responses) -> None:
    assert Responses(RATINGS, systems=rated.systems, scale=(0, 10)).fingerprint != rated.fingerprint
    fractions = Responses([[0.5, 1.0]])
    assert Responses([[0.5, 1.0]], scale=(0, 1)).fingerprint == fractions.fingerprint


def test_edges_are_in_the_units_of_the_scale(rated: Responses) -> None:
    cut = rated.categorize([5, 9], weights=[0, 0.5, 1])
    np.testing.assert_array_equal(cut.outcomes[0], [[2, 2], [1, 2], [2, 2]])
    np.testing.assert_array_equal(cut.outcomes[1], [[1, 1], [1, 0], [1, 1]])


def test_results_are_in_units(rated: Responses) -> None:
    tree = rank(rated, "avg", random_seed=1)
    ranking = tree["ranking"].to_dataset()
    np.testing.assert_allclose(ranking["score"], [55 / 6, 34 / 6], rtol=1e-14)
    np.testing.assert_array_equal(ranking["observed_mean"], ranking["score"])
    np.testing.assert_array_equal(point_estimate(rated, "avg"), ranking["score"])
    np.testing.assert_array_equal(tree["observed_data"]["grades"], RATINGS.mean(axis=-1))
    assert json.loads(tree.attrs["scale"]) == [1.0, 10.0]
    draws = tree["posterior"]["score"].values
    assert draws.min() >= 1.0
    assert draws.max() <= 10.0
    expected = np.quantile(draws.reshape(-1, 2), [0.025, 0.975], axis=0)
    np.testing.assert_allclose([ranking["score_lower"], ranking["score_upper"]], expected)


def test_scores_of_other_methods_have_no_units(rated: Responses) -> None:
    ranking = rank(rated, "borda", random_seed=1)["ranking"].to_dataset()
    np.testing.assert_array_equal(ranking["score"], [3.0, 0.0])
    np.testing.assert_allclose(ranking["observed_mean"], [55 / 6, 34 / 6], rtol=1e-14)


# Every method that ranks fractions ranks scores on a scale alike.
OF_GRADES = [name for name, row in METHODS.items() if row.data in ("grades", "grouped grades")]


@pytest.mark.parametrize("method", OF_GRADES)
@settings(max_examples=10)
@given(
    outcomes=arrays(np.int64, (3, 4, 2), elements=st.integers(0, 100)),
    seed=st.integers(0, 2**16),
)
def test_ranking_does_not_depend_on_units(method: str, outcomes, seed: int) -> None:
    """The rank of percentages is that of the fractions, and scores are 100 times as large."""
    percentages = Responses(outcomes, scale=(0, 100))
    fractions = Responses(outcomes / 100.0, scale=(0, 1))
    run = {"draws": 5, "random_seed": seed}
    one, other = (rank(data, method, **run) for data in (percentages, fractions))
    factor = 100.0 if METHODS[method].graded else 1.0
    np.testing.assert_array_equal(one["ranking"]["group"], other["ranking"]["group"])
    for name, values in one["ranking"].to_dataset().drop_vars("group").data_vars.items():
        times = factor if name in ("score", "score_lower", "score_upper", "lcb") else 1.0
        times = 100.0 if name == "observed_mean" else times
        np.testing.assert_allclose(values, times * other["ranking"][name], rtol=1e-12, atol=1e-12)
    draws = one["posterior"]["score"].values
    np.testing.assert_allclose(draws, factor * other["posterior"]["score"], rtol=1e-12, atol=1e-12)


@given(
    ends=st.tuples(st.integers(-1000, 999), st.integers(1, 1000)),
    shares=arrays(np.float64, 5, elements=st.floats(0, 1)),
)
def test_units_and_shares_are_inverse(ends, shares) -> None:
    scale = as_scale((ends[0], ends[0] + ends[1]))
    units = scale.units(shares)
    assert np.all((units >= scale.low) & (units <= scale.high))
    np.testing.assert_allclose(scale.shares(units), shares, atol=1e-12)


def test_shares_of_the_unit_scale_are_the_values() -> None:
    values = np.random.default_rng(1).random(1000)
    np.testing.assert_array_equal(UNIT.shares(values), values)
    np.testing.assert_array_equal(UNIT.units(values), values)
    assert str(Scale(0, 100)) == "from 0 to 100"


def test_smaller_data_sets_keep_the_scale(rated: Responses) -> None:
    from bayesrank.studies.subsets import draw_trials, select

    few = draw_trials(rated, 1, "columns", np.random.default_rng(1))
    assert few.scale == rated.scale
    assert set(few.values.ravel()) <= set(RATINGS.ravel())
    np.testing.assert_array_equal(select(rated, systems=[1]).values, RATINGS[1:])
    ordered = Responses([[0, 2], [1, 0]], categories=4)
    assert select(ordered, questions=[0]).n_categories == 4


def test_evaluate_has_the_mean_of_scores_in_units(rated: Responses) -> None:
    table = evaluate(rated)
    assert table["metric"].tolist() == [DEFAULT_METHOD] * 2
    np.testing.assert_allclose(table["score"], [55 / 6, 34 / 6], rtol=1e-14)
    board = leaderboard(rank(rated))
    np.testing.assert_array_equal(table["lower"], board["score_lower"])
    np.testing.assert_array_equal(table["upper"], board["score_upper"])
    normal = evaluate(rated, interval="normal")
    assert normal["upper"].max() <= 10.0
    assert np.all(normal["lower"] < table["mean"])
    pd.testing.assert_frame_equal(evaluate(rated), table)


def test_evaluate_says_which_metrics_scores_have(rated: Responses) -> None:
    message = "must be categories for bayes; got scores from 1 to 10: evaluate .*, or turn"
    with pytest.raises(DataError, match=message):
        evaluate(rated, ["avg", "bayes"])


def test_metrics_of_right_answers_say_which_metrics_categories_have() -> None:
    data = Responses([[[0, 1, 2]]], weights=[0, 0.5, 1])
    message = "must be right or wrong for pass_at_k.*; got 3 categories: evaluate bayes, avg, .*max"
    with pytest.raises(DataError, match=message):
        evaluate(data, "pass_at_k(k=1)")


# The command line


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    rows = [
        f"{system},q{question},{RATINGS[i, question, trial]}"
        for i, system in enumerate(["good", "fair"])
        for question in range(3)
        for trial in range(2)
    ]
    path.write_text("\n".join(["model,question,score", *rows]))
    return path


def test_ratings_need_a_flag(run: Run, ratings: Path) -> None:
    refused = run("rank", ratings, code=2).stderr
    assert "got 9 for system 'good', question 'q0'" in refused
    assert "pass --scale LOW,HIGH" in refused
    assert "--weights W0,W1,..." in refused
    rows = json.loads(
        run("rank", ratings, "--scale", "1,10", "--method", "avg", "--format", "json").stdout
    )
    assert [row["score"] for row in rows] == pytest.approx([55 / 6, 34 / 6])
    header = run("rank", ratings, "--scale", "1,10", "--method", "avg").stdout.splitlines()[0]
    assert header.endswith("scores from 1 to 10, 6 outcomes on 3 questions each)")


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate",),
        ("check",),
        ("report", "--methods", "avg", "-o", "page.html"),
    ],
)
def test_every_command_reads_scales(
    run: Run, ratings: Path, command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "got 9 for" in run(command[0], ratings, *command[1:], code=2).stderr
    run(command[0], ratings, "--scale", "1,10", *command[1:])


def test_a_study_takes_scores_and_categories(run: Run, ratings: Path) -> None:
    assert "got 9 for" in run("study", ratings, code=2).stderr
    given = ("study", ratings, "--scale", "1,10", "--methods", "avg", "--draws", 2)
    for further in ((), ("--edges", 7)):
        printed = run(*given, *further).stdout
        assert "Agreement with the gold standard" in printed


def test_edges_make_categories_in_the_shell(run: Run, ratings: Path) -> None:
    given = (ratings, "--scale", "1,10", "--edges", 7)
    assert "must be categories here" in run("rank", *given[:3], "--method", "bayes", code=2).stderr
    rows = json.loads(run("rank", *given, "--method", "bayes", "--format", "json").stdout)
    assert [row["observed_mean"] for row in rows] == pytest.approx([1.0, 1 / 6])
    run("plan", *given)
    given = (*given[:4], "5,8", "--weights", "0,0.5,1", "--method", "bayes")
    assert "categories 0..2 worth 0, 0.5, 1" in run("rank", *given).stderr


def test_percentages_without_a_scale_are_refused(run: Run, shared: Path) -> None:
    cases = shared / "cases" / "case15"
    assert "--scale LOW,HIGH" in run("rank", cases / "pct100.csv", code=2).stderr
    rows = json.loads(
        run("rank", cases / "pct100.csv", "--scale", "0,100", "--method", "avg", "--format", "json")
        .stdout
    )  # fmt: skip
    assert [row["score"] for row in rows] == pytest.approx([92, 22])


def test_judge_ratings_are_read(run: Run, shared: Path) -> None:
    given = (shared / "cases" / "case15" / "mtb.jsonl", "--scale", "1,10")
    rows = json.loads(run("rank", *given, "--method", "avg", "--format", "json").stdout)
    assert [row["score"] for row in rows] == pytest.approx([9.5, 6.5])
    assert rows[0]["prob_best"] > 0.99
    table = json.loads(run("evaluate", *given, "--metrics", "avg", "--format", "json").stdout)
    assert [row["score"] for row in table] == pytest.approx([9.5, 6.5])


def test_half_wins_count_as_such(run: Run, shared: Path) -> None:
    path = shared / "cases" / "case16" / "alp.csv"
    (row,) = json.loads(run("rank", path, "--method", "avg", "--format", "json").stdout)
    assert (row["score"], row["n_outcomes"]) == (pytest.approx(379.5 / 805), 805)
    (row,) = json.loads(run("evaluate", path, "--metrics", "avg", "--format", "json").stdout)
    assert row["score"] == pytest.approx(379.5 / 805)
    assert "with --edges" in run("evaluate", path, "--metrics", "bayes", code=2).stderr
