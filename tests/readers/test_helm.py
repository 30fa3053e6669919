"""Files are written in the layout of HELM's PerInstanceStats and Stat, as its runner dumps them."""

import json
from pathlib import Path

import numpy as np
import pytest

from bayesrank.errors import DataError
from bayesrank.readers import read_responses, read_table
from tests.readers.test_formats import compress


def stat(metric, value, split="test", **name):
    name = {"name": metric, "split": split} | name
    if value is None:
        return {"name": name, "count": 0, "sum": 0}
    return {
        "name": name,
        "count": 1,
        "sum": value,
        "sum_squared": value * value,
        "min": value,
        "max": value,
        "mean": value,
        "variance": 0.0,
        "stddev": 0.0,
    }


def instance(question, values, trial=0, perturbation=None, **options):
    """Build the statistics of one instance; HELM leaves out an absent perturbation."""
    stats = [
        stat(metric, value, perturbation=perturbation, **options)
        if perturbation
        else stat(metric, value, **options)
        for metric, value in values.items()
    ]
    entry = {"instance_id": question, "train_trial_index": trial, "stats": stats}
    return entry | ({"perturbation": perturbation} if perturbation else {})


@pytest.fixture
def write_run(tmp_path):
    def write(folder, entries, model=None) -> Path:
        run = tmp_path / folder
        run.mkdir()
        (run / "per_instance_stats.json").write_text(json.dumps(entries, indent=2))
        if model:
            spec = {"name": folder, "adapter_spec": {"model": model, "num_train_trials": 2}}
            (run / "run_spec.json").write_text(json.dumps(spec))
        return run

    return write


def test_train_trials_are_paired_trials_of_the_model_in_the_run_spec(write_run, tmp_path):
    first = [
        instance("id1", {"exact_match": 1.0, "num_bytes": 7}),
        instance("id2", {"exact_match": 0.0, "num_bytes": 9}),
        instance("id1", {"exact_match": 0.5, "num_bytes": 7}, trial=1),
    ]
    write_run("mmlu:subject=law,model=org_a", first, model="org/a")
    write_run("mmlu:subject=law,model=org_b", [instance("id1", {"exact_match": 0.0})])
    data = read_responses(tmp_path, metric="exact_match")
    assert data.systems == ("org/a", "org_b")
    assert data.questions == ("id1", "id2")
    assert data.paired
    np.testing.assert_array_equal(
        data.scores, [[[1, 0.5], [0, np.nan]], [[0, np.nan], [np.nan, np.nan]]]
    )
    assert read_table(tmp_path, metric="exact_match").source == "helm"


def test_metrics_of_one_instance_may_stand_apart(write_run):
    run = write_run(
        "x:model=m", [instance("id1", {"f1": 0.5}), instance("id1", {"exact_match": 1.0})]
    )
    assert read_responses(run, metric="f1").scores.tolist() == [[[0.5]]]


def test_statistic_that_counted_nothing_is_missing(write_run):
    run = write_run("x:model=m", [instance("a", {"em": None}), instance("b", {"em": 1.0})])
    assert read_table(run).message == (
        "1 system, 1 question, 1 trial; 0 of 1 outcome missing; "
        "1 question without any outcome left out"
    )


def test_splits_and_perturbations_are_chosen_by_filter(write_run):
    typos = {"name": "misspellings", "robustness": True, "fairness": False}
    run = write_run(
        "x:model=m",
        [
            instance("id1", {"em": 1.0}),
            instance("id1", {"em": 0.0}, perturbation=typos),
            instance("id9", {"em": 1.0}, split="valid"),
        ],
    )
    assert read_responses(run, filter="test").outcomes.tolist() == [[[1]]]
    assert read_responses(run, filter="test+misspellings").outcomes.tolist() == [[[0]]]
    with pytest.raises(DataError, match=r"filter must name one of test, .*, valid for metric 'em'"):
        read_responses(run)


def test_scenarios_are_tasks(write_run, tmp_path):
    write_run("mmlu:subject=law,model=org_a,method=joint", [instance("i", {"em": 1.0})])
    write_run("gsm:model=org_a", [instance("j", {"em": 0.0})])
    assert read_responses(tmp_path, task="gsm").questions == ("j",)
    assert read_responses(tmp_path, task="mmlu:subject=law,method=joint").questions == ("i",)
    with pytest.raises(DataError, match=r"task must name one of gsm, mmlu:subject=law,method"):
        read_responses(tmp_path)


def test_arguments_that_follow_from_the_model_are_no_part_of_the_task(write_run, tmp_path):
    runs = (
        "gsm:model=org_a,model_deployment=hf_a",
        "gsm:model_deployment=hf_b",
        "gsm:model=org_c,stop=hash,global_prefix=nlg",
    )
    for run in runs:
        write_run(run, [instance("j", {"em": 1.0})])
    assert read_responses(tmp_path, task="gsm").systems == ("org_a", "org_c", "hf_b")


@pytest.mark.parametrize("lost", ["instance_id", "train_trial_index", "stats"])
def test_instance_of_another_shape(write_run, lost):
    entry = instance("id1", {"em": 1.0})
    del entry[lost]
    run = write_run("x:model=m", [entry])
    with pytest.raises(DataError, match=rf"HELM instances with an instance_id, .*{lost}.* x:model"):
        read_responses(run)


def test_broken_run(write_run):
    run = write_run("x:model=m", [instance("id1", {"em": 1.0})])
    path = run / "per_instance_stats.json"
    path.write_text(path.read_text()[:-10])
    with pytest.raises(
        DataError, match=r"paths must hold valid JSON; .* x:model=m/per_instance_stats\.json"
    ):
        read_responses(path)


def test_run_without_a_model(write_run):
    run = write_run("x", [instance("id1", {"em": 1.0})])
    with pytest.raises(DataError, match=r"HELM runs that name their model, .* got 'x'"):
        read_responses(run)


def test_copied_run_counts_once_and_another_suite_is_refused(write_run, tmp_path):
    for folder in ("x:model=m", "y"):
        write_run(folder, [instance("id1", {"em": 1.0})])
    spec = {"name": "x:model=m", "adapter_spec": {"model": "m"}}
    for folder in ("x:model=m", "y"):
        (tmp_path / folder / "run_spec.json").write_text(json.dumps(spec))
    assert read_responses(tmp_path).outcomes.tolist() == [[[1]]]
    path = tmp_path / "y" / "per_instance_stats.json"
    path.write_text(path.read_text().replace("1.0", "0.0"))
    with pytest.raises(DataError, match=r"one outcome per system, question and trial"):
        read_responses(tmp_path)


def test_files_of_the_summarizer_are_no_runs(write_run):
    run = write_run("x:model=m", [instance("id1", {"em": 1.0})])
    shown = [{"instance_id": "id1", "train_trial_index": 0, "stats": {"em": 1.0}}]
    for name in ("display_predictions.json", "display_requests.json"):
        (run / name).write_text(json.dumps(shown))
    assert read_responses(run).outcomes.tolist() == [[[1]]]


def test_several_scenarios_are_groups_and_their_adapters_no_systems(write_run, tmp_path):
    for model in ("a", "b"):
        for subject in ("law", "math"):
            name = f"mmlu:subject={subject},model={model}"
            run = write_run(name, [instance("id1", {"em": 1.0})])
            adapter = {"model": model, "instructions": f"On {subject}."}
            spec = {"name": name, "adapter_spec": adapter}
            (run / "run_spec.json").write_text(json.dumps(spec))
    data = read_responses(tmp_path, task="mmlu:*")
    assert data.systems == ("a", "b")
    assert data.groups == ("mmlu:subject=law", "mmlu:subject=math")


def test_a_compressed_run_has_the_name_of_its_specification(write_run):
    run = write_run("x:model=org_m", [instance("q", {"em": 1.0})], "org/m")
    for path in list(run.iterdir()):
        compress(path)
    assert read_responses(run).systems == ("org/m",)
