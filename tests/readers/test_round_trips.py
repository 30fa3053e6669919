"""Whatever is read can be written as a long table and read again."""

import json

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.readers import READERS, read_responses, read_table
from tests.readers.examples import EXAMPLES


def logs(folder, name):
    """Write a small ragged log of a format, and return what has to be chosen in it."""
    folder.mkdir(exist_ok=True)
    if name == "npz":
        outcomes = [[[1, 0], [2, -1]], [[0, 0], [1, 2]]]
        np.savez(folder / "runs.npz", R=outcomes, R0=[[1], [2]], weights=[0, 0.2, 1])
    elif name == "helm":
        stats = [{"name": {"name": "em", "split": "test"}, "count": 1, "sum": 0.25}]
        rows = [{"instance_id": i, "train_trial_index": 0, "stats": stats} for i in "pq"]
        for model, entries in (("a", rows), ("b", rows[1:])):
            (folder / f"x:model={model}").mkdir()
            path = folder / f"x:model={model}" / "per_instance_stats.json"
            path.write_text(json.dumps(entries))
    elif name == "evalplus":
        statuses = [{"base_status": "pass", "plus_status": each} for each in ("pass", "fail")]
        for model, solutions in (("a", statuses), ("b", statuses[1:])):
            document = {"date": "", "hash": "", "eval": {"q/1": solutions}}
            (folder / f"{model}_eval_results.json").write_text(json.dumps(document))
    elif name == "tau_bench":
        rows = [{"task_id": task, "reward": 1.0, "info": {}, "trial": task} for task in (0, 1)]
        (folder / "m.json").write_text(json.dumps(rows))
    elif name == "tau2_bench":
        info = {"num_trials": 2, "user_info": {}, "agent_info": {"llm": "m"}}
        info["environment_info"] = {"domain_name": "retail"}
        runs = [{"task_id": "t", "trial": 1, "reward_info": {"reward": 1}}]
        document = {"timestamp": "", "info": info, "tasks": [{"id": "t"}], "simulations": runs}
        (folder / "m.json").write_text(json.dumps(document))
    elif name == "every_eval_ever":
        line = {"evaluation_id": "e", "model_id": "m", "evaluation_name": "x", "sample_id": "s"}
        (folder / "x_samples.jsonl").write_text(json.dumps(line | {"evaluation": {"score": 0.5}}))
    elif name == "py_irt":
        lines = ['{"subject_id": "a", "responses": {"p": 1, "q": 0}}']
        lines += ['{"subject_id": "b", "responses": {"q": 1}}']
        (folder / "irt.jsonl").write_text("\n".join(lines))
    elif name == "table":
        text = "model,question,run,score,group\na,p,0,1,g\nb,p,1,0.5,g\nb,q,0,0,h\n"
        (folder / "log.csv").write_text(text)


def assert_restored(data: Responses) -> None:
    table = data.to_long()
    assert Responses.from_long(table).fingerprint == data.fingerprint
    # The rows say everything but what outcomes are, prior outcomes and pairing, in any order of
    # columns.
    table.attrs.clear()
    kept = {name: getattr(data, name) for name in ("prior_outcomes", "paired")}
    restored = Responses.from_long(table[table.columns[::-1]], **kept, **data.declared)
    assert restored.fingerprint == data.fingerprint


WRITTEN = {
    "npz",
    "evalplus",
    "helm",
    "tau_bench",
    "tau2_bench",
    "every_eval_ever",
    "py_irt",
    "table",
}
REAL = {
    "inspect": ("logs/inspect", {"task": "arithmetic", "scorer": "graded"}),
    "lm_eval": ("logs/lmeval", {"task": "tiny_mc", "filter": "none", "metric": "acc"}),
    "swebench": ("logs/swebench", {}),
    "npz": ("data/misguided_attention_ragged.npz", {"weights": [0, 0.5, 1]}),
}


def test_every_format_is_tried_here():
    examples = {example.format for example in EXAMPLES}
    missing = set(READERS) - (WRITTEN | set(REAL) | examples | {"battles"})
    assert not missing, f"add an example of {missing} to tests/readers/examples.py"


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_written_logs(tmp_path, name):
    folder = tmp_path / "logs"
    logs(folder, name)
    assert next(iter(READERS[name].recognises(path) for path in folder.rglob("*.*")))
    data = read_responses(folder)
    assert data.observed.sum() == read_table(folder).frame["outcome"].notna().sum()
    assert_restored(data)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.format)
def test_examples(tmp_path, example):
    example.write(tmp_path)
    data = read_responses(tmp_path, **example.chosen)
    table = read_table(tmp_path, **example.chosen)
    assert data.observed.sum() == table.frame["outcome"].notna().sum()
    assert_restored(data)


@pytest.mark.parametrize("name", sorted(REAL))
def test_real_logs(shared, name):
    path, selection = REAL[name]
    assert_restored(read_responses(shared / path, **selection))
