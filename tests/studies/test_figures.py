"""Every study has a figure, and every table its rows."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrank import Battles, Responses, studies
from bayesrank.datasets import load_attempts
from bayesrank.errors import DataError
from bayesrank.studies import simulate
from bayesrank.studies.figures import _DRAWERS
from bayesrank.studies.subsets import select

METHODS = ["avg", "bayes", "elo_tie_skip"]
JUDGED = pd.DataFrame([("a", "p", "q", "first")], columns=["rater", "first", "second", "harder"])
ATTEMPTS = load_attempts("AIME'25").query("trial <= 5")
MAKERS = {
    "categorical": lambda data: studies.categorical(ATTEMPTS, ["rare_event", "ood_robust"]),
    "stability": lambda data: studies.stability(data, METHODS, draws=3),
    "stability over n": lambda data: studies.stability(data, METHODS, n=[1, 2, 5], draws=3),
    "consensus": lambda data: studies.consensus(data, METHODS),
    "stability with both": lambda data: studies.stability(
        data, METHODS, draws=3, reference=["gold", "self"]
    ),
    "stability with itself": lambda data: studies.stability(
        data, METHODS, draws=3, reference=["self"]
    ),
    "convergence": lambda data: studies.convergence(data, replicates=20),
    "convergence of several": lambda data: studies.convergence(
        data, ["bayes", "pass_at_k(k=8)"], replicates=20
    ),
    "prior_transfer": lambda data: studies.prior_transfer(updates=20),
    "battle_stability": lambda data: studies.battle_stability(
        Battles(list("aabc") * 3, list("bcca") * 3, ["a", "tie", "b", "a"] * 3), n=[3, 9], draws=3
    ),
    "model_pools": lambda data: studies.model_pools(data, METHODS, sizes=[3, 4], pools=3),
    "perturbation": lambda data: studies.perturbation(data),
    "perturbation of several sizes": lambda data: studies.perturbation(data, k=[1, 3], draws=5),
    "perturbation without difficulty": lambda data: studies.perturbation(data, "borda"),
    "difficulty_leave_one_out": lambda data: studies.difficulty_leave_one_out(data),
    "difficulty_levels": lambda data: studies.difficulty_levels(data),
    "damping_sensitivity": lambda data: studies.damping_sensitivity(data),
    "bounded_2pl": lambda data: studies.bounded_2pl(data, starts=1),
    "alignment": lambda data: studies.alignment({"p": 1.0, "q": 0.0}, JUDGED),
    "prior_sensitivity": lambda data: studies.prior_sensitivity(data, "bayes"),
    "greedy_alignment": lambda data: studies.greedy_alignment(data),
    "greedy_effect": lambda data: studies.greedy_effect(data, draws=3),
    "prior_data_conflict": lambda data: studies.prior_data_conflict(data),
    "adaptive_greedy": lambda data: studies.adaptive_greedy(data),
    "power_prior": lambda data: studies.power_prior(data, n_weights=5),
    "biased_coins": lambda data: simulate.biased_coins([0.2, 0.8]),
    "rasch_tensor": lambda data: simulate.rasch_tensor(3, 4, 5),
    "model_updates": lambda data: simulate.model_updates(simulate.rasch_tensor(2, 3, 4), [0, 1]),
    "correlated_trials": lambda data: simulate.correlated_trials(
        simulate.rasch_tensor(2, 3, 4), 0.5
    ),
}


def test_every_kind_of_study_is_drawn_here():
    assert {name.split(" ")[0] for name in MAKERS} == set(_DRAWERS)


@pytest.mark.parametrize("name", MAKERS)
def test_a_study_is_a_dataset_with_a_figure(six_systems, name, tmp_path):
    study = MAKERS[name](six_systems)
    assert isinstance(study, xr.Dataset)
    assert all(not dim.startswith("dim_") for dim in map(str, study.dims))
    figure = studies.plot(study)
    figure.savefig(tmp_path / "figure.png")
    assert any(axes.get_xlabel() or axes.get_ylabel() or axes.texts for axes in figure.axes)


def test_numbers_of_trials_are_drawn_in_their_order(six_systems):
    figure = studies.plot(studies.stability(six_systems, "avg", n=[5, 1, 2], draws=3))
    assert figure.axes[0].get_lines()[0].get_xdata().tolist() == [1, 2, 5]


def test_stability_without_a_tau_is_a_gap(tmp_path):
    """Systems that are always equal are one group of ties."""
    equal = Responses(np.tile([0, 1, 1, 0, 1, 0], (2, 3, 1)))
    for n in (1, [1, 3]):
        study = studies.stability(equal, ["avg", "borda"], n=n, draws=2, reference=[1.0, 2.0])
        assert study["tau"].isnull().all()
        studies.plot(study).savefig(tmp_path / "figure.png")


def test_consensus_names_a_method_of_each_group_and_numbers_it(six_systems):
    study = studies.consensus(six_systems, METHODS)
    study["group"] = ("method", ["avg", "avg", "elo_tie_skip"])
    study["tau_mean"] = ("method", [0.1, 0.1, 0.2])
    axes = studies.plot(study).axes[0]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    assert rows == ["elo_tie_skip  1", "avg (+1)  2"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2"]


def test_greedy_runs_are_compared_with_sampled_ones(six_systems):
    study = studies.greedy_alignment(six_systems)
    figure = studies.plot(study)
    assert figure.axes[0].get_xlabel() == "rank: sampled (ring), greedy (dot)"
    assert figure.get_suptitle() == f"tau-b {float(study['tau']):.3f}"


def test_what_is_no_study_has_no_figure():
    with pytest.raises(ValueError, match="study must be a dataset of stability"):
        studies.plot(xr.Dataset())


def test_tables_hold_every_group_once(six_systems, tmp_path):
    tables = studies.published_tables(
        six_systems, METHODS, draws=4, sizes=[3, 20], pools=3, checkpoint=tmp_path / "work"
    )
    assert list(tables) == ["accuracy", "summary", "agreement", "stability", "pools", "greedy"]
    assert "tau_mean_20" not in tables["pools"]
    for name in ("agreement", "stability", "pools"):
        listed = ", ".join(tables[name]["methods"]).split(", ")
        assert sorted(listed) == sorted(METHODS)
    assert tables["greedy"]["prior"].tolist() == ["uniform", "greedy", "adaptive", "power"]

    files = studies.write_tables(tables, tmp_path / "tables")
    assert [file.name for file in files] == [f"{name}.csv" for name in tables]
    read = pd.read_csv(tmp_path / "tables" / "greedy.csv")
    np.testing.assert_allclose(read["tau_mean"], tables["greedy"]["tau_mean"])
    assert not list((tmp_path / "tables").glob(".*"))


def test_tables_without_greedy_runs_leave_that_one_out(six_systems):
    tables = studies.published_tables(Responses(six_systems.outcomes), ["avg"], draws=2, sizes=[])
    assert list(tables) == ["accuracy", "summary", "agreement", "stability"]


def test_accuracies_are_those_of_single_trials(six_systems):
    rated = Responses([[[60.0, 80.0]], [[20.0, 30.0]]], scale=(0, 100))
    table = studies.published_tables(rated, ["avg"], draws=2, pools=0)["accuracy"]
    assert table["mean"].tolist() == pytest.approx([70, 25])
    table = studies.published_tables(six_systems, ["avg"], draws=2, pools=0)["accuracy"]
    by_trial = six_systems.outcomes.mean(axis=1)
    for name, values in (
        ("mean", by_trial.mean(axis=1)),
        ("sd", by_trial.std(axis=1, ddof=1)),
        ("min", by_trial.min(axis=1)),
        ("max", by_trial.max(axis=1)),
        ("greedy", six_systems.prior_outcomes[..., 0].mean(axis=1)),
    ):
        np.testing.assert_allclose(table[name], values)


def test_the_summary_counts_orders_and_names_the_best(six_systems):
    methods = ["avg", "bayes", "inverse_difficulty", "elo_tie_skip"]
    tables = studies.published_tables(six_systems, methods, n=[1, 2], draws=6, pools=0)
    summary = tables["summary"]
    everything = studies.consensus(six_systems, methods)["tau_gold"].values
    assert summary["n_trials"].tolist() == [1, 2]
    assert summary["gold_order"].tolist() == [int((everything == 1).sum())] * 2
    assert summary["tau_gold_mean"][0] == pytest.approx(everything.mean())
    for reference, best in (("gold", "best_gold"), ("self", "best_self")):
        few = studies.stability(six_systems, methods, n=2, draws=6, reference=reference)
        means = few["tau_mean"].values[:, 0]
        assert summary[f"{best}_mean"][1] == pytest.approx(means.max())
        assert summary[best][1] == methods[int(means.argmax())]


def test_tables_by_benchmark_are_those_of_each(six_systems):
    options = {"methods": ["avg", "borda"], "draws": 3, "sizes": [3], "pools": 2}
    tables = studies.published_tables(six_systems, **options, by="benchmark")
    labels = np.array(six_systems.groups)
    for group in ("easy", "hard"):
        part = select(six_systems, questions=np.flatnonzero(labels == group))
        for name, table in studies.published_tables(part, **options).items():
            rows = tables[name][tables[name]["benchmark"] == group]
            rows = rows.drop(columns="benchmark").reset_index(drop=True)
            pd.testing.assert_frame_equal(rows, table)
    pooled = studies.published_tables(six_systems, **options)["stability"]
    rows = tables["stability"].query("benchmark == 'pooled'").drop(columns="benchmark")
    pd.testing.assert_frame_equal(rows.reset_index(drop=True), pooled)


def test_tables_by_benchmark_need_benchmarks(six_systems):
    with pytest.raises(DataError, match="groups must be given for by='benchmark'; got None"):
        studies.published_tables(Responses(six_systems.outcomes), ["avg"], by="benchmark")
    with pytest.raises(ValueError, match="by must be 'benchmark' or None; got 'topic'"):
        studies.published_tables(six_systems, ["avg"], by="topic")


def test_tables_are_the_same_from_a_checkpoint(six_systems, tmp_path):
    options = {"methods": ["avg", "borda"], "draws": 3, "sizes": [3], "pools": 2}
    whole = studies.published_tables(six_systems, **options, checkpoint=tmp_path)
    for path in sorted(tmp_path.rglob("task-*.npz"))[::2]:
        path.unlink()
    resumed = studies.published_tables(six_systems, **options, checkpoint=tmp_path)
    for name, table in whole.items():
        pd.testing.assert_frame_equal(resumed[name], table)
