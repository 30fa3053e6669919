"""Every command takes battles."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrank import Battles, Comparisons, Responses, rank
from bayesrank.errors import DataError
from bayesrank.evaluation import compare, evaluate
from bayesrank.evaluation.battles import compare_battles, evaluate_battles
from bayesrank.planning import plan_pairs, suggest
from bayesrank.planning.battles import plan_battles, suggest_battles
from bayesrank.results.win_rates import average_win_rates, expected_win_rates
from bayesrank.studies import battle_stability, plot


@pytest.fixture
def ties(tmp_path):
    """Write 40 wins in 100 battles of A and of B against base, those of B with 60 ties."""
    path = tmp_path / "fc.csv"
    rows = ["model_a,model_b,winner"]
    rows += ["A,base,model_a"] * 40 + ["A,base,model_b"] * 60
    rows += ["B,base,model_a"] * 40 + ["B,base,tie"] * 60
    path.write_text("\n".join(rows))
    return path


def records(result):
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_rank_has_a_model_with_ties_by_default(run, ties):
    result = run("rank", ties)
    assert result.stdout.startswith("davidson (back end map, target battles)")
    assert "200 battles, 3 systems" in result.stderr
    assert [row["system"] for row in records(run("rank", ties, "--format", "csv"))] == [
        "B",
        "base",
        "A",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"A": 0.4, "B": 0.4, "base": 0.3}),
        (["--ties-count", "half"], {"A": 0.4, "B": 0.7, "base": 0.45}),
        (["--ties-count", "ignore"], {"A": 0.4, "B": 1.0, "base": 60 / 140}),
    ],
)
def test_win_rates_say_what_a_tie_is_worth(run, ties, options, expected):
    table = records(run("rank", ties, "--method", "win_rate", "--format", "csv", *options))
    assert {row["system"]: float(row["score"]) for row in table} == pytest.approx(expected)


@pytest.mark.parametrize("method", ["elo", "glicko", "trueskill", "win_rate", "colley"])
def test_rank_by_methods_without_a_likelihood(run, ties, method):
    assert run("rank", ties, "--method", method).stdout.startswith(method)


def test_evaluate_prints_win_rates_with_intervals(run, ties):
    table = records(run("evaluate", ties, "--format", "csv"))
    found = {(row["system"], row["metric"]): float(row["score"]) for row in table}
    assert found["A", "win_rate"] == found["B", "win_rate"] == 0.4
    assert found["B", "win_rate(ties_count='half')"] == pytest.approx(0.7)
    assert all(float(r["lower"]) <= float(r["score"]) <= float(r["upper"]) for r in table)
    pairs = records(run("evaluate", ties, "--pairs", "--format", "csv"))
    assert [(row["system"], row["opponent"]) for row in pairs] == [
        ("B", "base"),
        ("B", "A"),
        ("base", "A"),
    ]


def test_check_says_what_was_read_and_what_can_run(run, ties):
    found = json.loads(run("check", ties, "--format", "json").stdout)
    assert found["data"]["ties"] == "60 of 200 (30.0 %)"
    assert found["data"]["intervals by"] == "battle"
    can_run = {name for name, each in found["methods"].items() if each["can_run"]}
    assert {"davidson", "elo", "win_rate", "pagerank"} <= can_run
    assert not {"avg", "rasch", "borda"} & can_run
    assert not any("equal to another" in name for name in found["data"])
    assert run("check", ties, "--method", "elo").exit_code == 0
    assert "methods on pairs" in run("check", ties, "--method", "avg", code=3).stdout


def test_check_counts_copies_and_says_once_what_was_left_out(run, tmp_path):
    path = tmp_path / "votes.csv"
    twice = "a,b,tie,2025-06-02T10:00:00+02:00,u"
    others = ["a,b,a,2025-06-03,v", "a,a,a,2025-06-04,v"]
    path.write_text("\n".join(["model_a,model_b,winner,date,judge", twice, twice, *others]))
    found = run("check", path, "--format", "json")
    assert json.loads(found.stdout)["data"]["equal to another, time included"] == "1 of 3 (33.3 %)"
    assert found.stderr.count("of a system with itself") == 1


def test_options_choose_the_model_that_has_them(run, tmp_path):
    path = tmp_path / "votes.csv"
    lines = ["model_a,model_b,winner,judge,category,tstamp,length_a,length_b"]
    for k in range(60):
        one, other = "abc"[k % 3], "bca"[k % 3]
        winner = ("model_a", "model_b", "tie")[k * k % 7 % 3]
        what = f"u{k % 6},{'xy'[k // 3 % 2]},{1.7e9 + k * 86_400},{k % 5},{k % 7}"
        lines.append(f"{one},{other},{winner},{what}")
    path.write_text("\n".join(lines))
    for options, method in (
        (["--formula", "length"], "davidson"),
        (["--raters", "judge"], "cumulative_logit"),
        (["--period=week"], "dynamic_comparisons"),
        (["--by-group", "--formula", "length"], "hierarchical_comparisons"),
        (["--bar-prior", "normal(0,1)", "--calibration", "none"], "davidson_outside"),
        (["--K", "8"], "elo"),
    ):
        found = run("rank", path, "--draws", "20", *options)
        assert f"Method: {method} (chosen from" in found.stderr, options
        assert f"{method} (back end" in found.stdout
    plain = run("rank", path, "--draws", "20", "--calibration", "none")
    assert "davidson (back end" in plain.stdout
    assert "Method:" not in plain.stderr + run("rank", path, "--method", "elo", "--K", "8").stderr


def test_votes_for_neither_have_a_model(run, ties):
    path = ties.with_name("bad.csv")
    path.write_text(ties.read_text().replace("B,base,tie", "B,base,both_bad", 5))
    said = "Votes for neither count as ties; --method davidson_outside models them."
    assert said in run("rank", path, "--draws", 0).stderr
    assert said not in run("rank", ties, "--draws", 0).stderr
    for flags in (["--method", "davidson"], ["--bar-prior", "normal(0,1)"]):
        assert said not in run("rank", path, *flags, "--draws", 0).stderr


def test_options_of_several_other_methods_are_named(run, ties):
    said = run("rank", ties, "--tie-policy", "half", code=2).stderr
    assert "got --tie-policy: it is an option of --method" in said
    assert "an option" not in run("rank", ties, "--nonsense", "1", code=2).stderr


def test_groups_are_asked_for_before_anything_is_ranked(run, ties):
    result = run("rank", ties, "--by-group", code=2)
    assert "battles must have groups" in result.stderr
    assert not result.stdout


def test_report_is_written(run, ties, tmp_path):
    for options in ([], ["--methods", "davidson,elo(K=8)"]):
        run("report", ties, "-o", tmp_path / "page.html", *options)
        assert "davidson" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_plan_says_whether_to_stop_and_which_pairs_to_ask(run, ties):
    result = run("plan", ties, "--format", "csv")
    assert "B: no more battles are needed" in result.stderr
    assert [row["further_battles_needed"] for row in records(result)] == ["0.0", "0.0"]
    shown = run("plan", ties).stdout
    assert all(line.split()[-1] == "0" for line in shown.splitlines()[1:3])
    table = records(run("plan", ties, "--budget", "70", "--format", "csv", "--goal", "full"))
    assert sum(int(row["further_battles"]) for row in table) == 70
    assert "--further go with outcomes" in run("plan", ties, "--further", "3", code=2).stderr


def test_study_draws_votes(run, ties, tmp_path):
    result = run("study", ties, "--n", "20,200", "--draws", "5", "-o", tmp_path)
    table = list(csv.DictReader(io.StringIO((tmp_path / "stability.csv").read_text())))
    assert [row["battles"] for row in table] == ["20", "200"]
    assert float(table[1]["tau"]) == 1.0  # all of the votes
    assert "davidson" in result.stdout


# What the commands compute


def test_expected_win_rates_are_those_of_the_model():
    data = Comparisons([[0, 30, 20], [10, 0, 15], [5, 10, 0]], np.full((3, 3), 4.0))
    result = rank(data, "davidson", random_seed=1)
    score = result["ranking"]["score"].values
    tie = float(result["point_estimate"]["tie_strength"])
    table = expected_win_rates(result).set_index(["system", "opponent"])
    names = data.systems
    for i, j in ((0, 1), (0, 2), (1, 2)):
        one, other, both = (
            np.exp(score[i]),
            np.exp(score[j]),
            tie * np.exp((score[i] + score[j]) / 2),
        )
        row = table.loc[(names[i], names[j])]
        total = one + other + both
        assert row["win_rate"] == pytest.approx((one + both / 2) / total)
        assert row["tie_rate"] == pytest.approx(both / total)
        assert row["win_rate_lower"] < row["win_rate"] < row["win_rate_upper"]
    average = average_win_rates(result)["win_rate"]
    means = [table["win_rate"].loc[("system 1",)].mean(), None, None]
    assert average[0] == pytest.approx(means[0])
    assert average.mean() == pytest.approx(0.5)


@pytest.mark.parametrize("method", ["rao_kupper", "thurstone_mosteller", "bradley_terry"])
def test_win_rates_of_other_models_add_up(method):
    data = Comparisons([[0, 30, 20], [10, 0, 15], [5, 10, 0]])
    result = rank(data, method, draws=50, random_seed=1)
    assert average_win_rates(result)["win_rate"].mean() == pytest.approx(0.5)
    with pytest.raises(ValueError, match="result must have draws for win rates"):
        expected_win_rates(rank(data, method, draws=0))


def test_win_rates_need_a_model_of_pairs():
    result = rank(Comparisons([[0, 3], [1, 0]]), "pagerank", draws=50)
    with pytest.raises(
        ValueError, match=r"a model of paired comparisons \(bradley_terry, davidson"
    ):
        expected_win_rates(result)


def a_log(n, seed=0, strength=(1.0, 0.5, 0.4, -1.0)):
    rng = np.random.default_rng(seed)
    names, score = np.array(list("abcd")), np.array(strength)
    first = rng.integers(4, size=n)
    second = (first + 1 + rng.integers(3, size=n)) % 4
    wins = rng.random(n) < 1 / (1 + np.exp(score[second] - score[first]))
    return Battles(names[first], names[second], np.where(wins, names[first], names[second]))


def test_further_battles_resolve_a_pair():
    data = a_log(200, strength=(0.7, 0.4, 0.2, -1.0))
    table = plan_battles(data, random_seed=1)
    needed = table["further_battles_needed"]
    assert (needed.eq(0) == table["resolved"]).all()
    row = table.iloc[0]
    assert not row["resolved"]
    # As many battles again, with the share of wins that the model expects.
    rate = compare_battles(data, random_seed=1).iloc[0]["win_rate"]
    i, j = (data.systems.index(row[name]) for name in ("system", "opponent"))
    wins = data.wins.copy()
    for share, resolved in ((1.3, True), (0.7, False)):
        more = wins.copy()
        more[i, j] += share * row["further_battles_needed"] * rate
        more[j, i] += share * row["further_battles_needed"] * (1 - rate)
        after = plan_battles(Comparisons(more, systems=data.systems), random_seed=1)
        assert bool(after.iloc[0]["resolved"]) is resolved


def test_suggested_battles_are_those_that_decide():
    table = suggest_battles(a_log(300), 200, random_seed=1)
    assert table["further_battles"].sum() == 200
    # The worst system is far behind, and tells least of the best.
    of_worst = table[(table["system"] == "d") | (table["opponent"] == "d")]["further_battles"]
    assert of_worst.sum() < 40
    assert {"a", "b"} <= set(table.iloc[:2][["system", "opponent"]].to_numpy().ravel())


def test_more_votes_agree_better():
    study = battle_stability(a_log(800), ["davidson", "elo(K=8)"], n=[25, 400], draws=20)
    tau = study["tau_mean"]
    assert (tau.sel(n_battles=400) > tau.sel(n_battles=25)).all()
    assert study["tau"].dims == ("method", "n_battles", "draw")
    assert plot(study).axes[0].get_xlabel() == "battles"
    with pytest.raises(ValueError, match="n must be from 1 to 800, the number of votes; got 900"):
        battle_stability(a_log(800), n=900)


def test_votes_that_are_counted_are_drawn_one_by_one():
    counted = Battles(list("aab"), list("bcc"), ["a", "c", "tie"], weight=[30, 40, 0])
    single = Battles(["a"] * 70, ["b"] * 30 + ["c"] * 40, ["a"] * 30 + ["c"] * 40)
    assert counted.single_votes().first.tolist() == single.first.tolist()
    xr.testing.assert_identical(
        battle_stability(counted, n=[2, 35], draws=9), battle_stability(single, n=[2, 35], draws=9)
    )


def test_numbers_of_few_votes_are_studied_once_and_ties_agree_with_nothing():
    study = battle_stability(Battles(list("abc"), list("bca"), ["tie"] * 3), draws=5)
    assert study["n_battles"].values.tolist() == [1]
    for name in ("tau_mean", "tau_sd", "tau_min", "tau_max"):
        assert study[name].isnull().all()
    assert study["draws_infinite"].item() == 0


def test_systems_without_a_battle_have_no_metrics():
    met = Battles(list("abab"), list("baba"), ["first", "first", "tie", "second"])
    data = Battles(
        list("abab"), list("baba"), ["first", "first", "tie", "second"], systems=["z", "a", "b"]
    )
    table = evaluate_battles(data, random_seed=1)
    assert table["system"].tolist() == list("zzzaaabbb")
    assert table.iloc[:3]["score"].isna().all()
    known = table.iloc[3:].reset_index(drop=True)
    pd.testing.assert_frame_equal(known, evaluate_battles(met, random_seed=1), check_like=True)


def test_intervals_of_metrics_follow_the_unit():
    data = a_log(400)
    names = np.array(data.systems)
    judged = Battles(
        names[data.first],
        names[data.second],
        (1 + data.outcome) / 2,
        judge=np.arange(400) // 40,
        systems=data.systems,
    )
    assert evaluate_battles(judged, "win_rate").attrs["unit"] == {"win_rate": "judge"}
    assert compare_battles(judged, unit="battle").attrs["unit"] == {"bradley_terry": "battle"}


@pytest.mark.parametrize(
    "function",
    [evaluate_battles, compare_battles, plan_battles, lambda data: suggest_battles(data, 1)],
)
def test_functions_of_battles_name_other_data(function):
    with pytest.raises(DataError, match=r"data must be battles .*; got responses"):
        function(Responses([[1, 0], [0, 0]]))
    table = pd.DataFrame({"model_a": list("aab"), "model_b": list("bcc"), "winner": ["tie"] * 3})
    pd.testing.assert_frame_equal(function(table), function(Battles.from_frame(table)))


def test_functions_of_outcomes_take_battles():
    log = a_log(120)
    for found, expected in (
        (evaluate(log, random_seed=1), evaluate_battles(log, random_seed=1)),
        (evaluate(log, "elo", random_seed=1), evaluate_battles(log, "elo", random_seed=1)),
        (compare(log, random_seed=1), compare_battles(log, random_seed=1)),
        (plan_pairs(log, goal="best", random_seed=1), plan_battles(log, random_seed=1)),
        (suggest(log, 50, random_seed=1), suggest_battles(log, 50, random_seed=1)),
    ):
        pd.testing.assert_frame_equal(found, expected)
    pairs = plan_pairs(log, random_seed=1)
    assert len(pairs) == 6
    score = rank(log, random_seed=1)["ranking"]["score"].to_pandas()
    assert (score[pairs["system"]].to_numpy() >= score[pairs["opponent"]].to_numpy()).all()
    for call, message in (
        (lambda: evaluate(log, prior_weight=1), "prior_weight must be 0 for battles; got 1"),
        (lambda: compare(log, prior_weight=1), "prior_weight must be 0 for battles; got 1"),
        (lambda: evaluate(log, interval="normal"), "interval must be 'exact' for battles"),
        (lambda: suggest(log, 5, max_trials=2), "max_trials must be None for battles; got 2"),
        (lambda: plan_pairs(log, k=2), "k must be None without the goal 'top_k'; got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_stability_of_battles_does_not_depend_on_the_order_of_systems():
    votes = list("abc"), list("bca"), ["tie", "b", "tie"]  # a and c tie in some parts
    studies = [
        battle_stability(Battles(*votes, systems=list(order)), "win_rate", n=[1, 2])
        for order in ("abc", "cba")
    ]
    xr.testing.assert_identical(*studies)


def test_stability_of_battles_takes_tables_with_a_row_for_each_vote():
    table = pd.DataFrame({"model_a": list("aab"), "model_b": list("bcc"), "winner": list("acb")})
    study = battle_stability(table, "elo", n=2, draws=3)
    xr.testing.assert_identical(
        study, battle_stability(Battles.from_frame(table), "elo", n=2, draws=3)
    )
    with pytest.raises(DataError, match="a row for each vote; got comparisons"):
        battle_stability(Comparisons([[0, 3], [1, 0]]))


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([], "metrics must be one or more different names"),
        (["win_rate", "win_rate"], "metrics must be one or more different names"),
        ("bradly_terry", "metrics must be the name of a method .* mean bradley_terry"),
        ("average_win_rate(a=1)", "options of average_win_rate must be none; got 'a'"),
    ],
)
def test_metrics_of_battles_are_named(metrics, message):
    with pytest.raises(ValueError, match=message):
        evaluate_battles(Comparisons([[0, 3], [1, 0]]), metrics)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "-o", "x.nc"], "--output, --prior-weight and --interval go with outcomes"),
        (["evaluate", "--interval", "normal"], "--interval go with outcomes of questions"),
        (["evaluate", "--prior-weight", "1"], "--interval go with outcomes of questions"),
        (["evaluate", "--pairs", "--metrics", "foo"], "Error: --metrics must be the name of a"),
        (["study", "--by", "benchmark"], "--pools and --workers go with outcomes of"),
        (["study", "--pools", "9"], "--pools and --workers go with outcomes of"),
        (["study", "--workers", "2"], "--pools and --workers go with outcomes of"),
    ],
)
def test_flags_of_questions_are_refused_for_battles(run, ties, arguments, message):
    command, *flags = arguments
    assert message in run(command, ties, *flags, code=2).stderr
