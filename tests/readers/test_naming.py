"""Systems that only files and folders name: never two as one, never a cut name."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrank.errors import DataError
from bayesrank.readers import read_battles, read_responses, read_table

EVALPLUS = {"date": "", "eval": {"q/1": [{"base_status": "pass", "plus_status": "fail"}]}}
BIGCODE = {"date": "", "eval": {"q/1": [{"task_id": "q/1", "status": "pass"}]}}
PRO = {"instance_a__b-1": True, "instance_a__b-2": False}
CODE = [{"question_id": "q", "graded_list": [True, False], "pass@1": 0.5}]
COMPASS = {"accuracy": 50.0, "details": {"0": {"pred": "a", "correct": True}}}
SWEBENCH = {"total_instances": 1, "submitted_ids": ["i"], "resolved_ids": ["i"]}
TAU = [{"task_id": 0, "reward": 1.0, "info": {}, "trial": 0}]
TRIAL = {"id": "1", "trial_name": "t", "task_id": "t", "is_resolved": True}

# A file, and the folders of two systems that it may lie in, beside the name that it gives them.
SAME_NAMES = {
    "evalplus file": ("humaneval_eval_results.json", EVALPLUS, "humaneval"),
    "evalplus folder": ("samples/eval_results.json", EVALPLUS, "samples"),
    "bigcodebench": ("x-sanitized_calibrated_eval_results.json", BIGCODE, "x-sanitized_calibrated"),
    "swebench_pro": ("output/eval_results.json", PRO, "output"),
    "livecodebench": ("results/Scenario.codegeneration_2_0.2_eval_all.json", CODE, "results"),
    "livecodebench custom": ("mine_codegeneration_output_eval_all.json", CODE, "mine"),
    "opencompass": ("results/gsm8k.json", COMPASS, "results"),
    "swebench": ("preds.json", SWEBENCH, "preds"),
    "tau_bench": ("results.json", TAU, "results"),
    "terminal_bench": ("out/results.json", {"results": [TRIAL]}, "out"),
}


def write(path: Path, document: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))


def otherwise(document: object) -> object:
    """Return a document with another outcome."""
    text = json.dumps(document)
    for old, new in (
        ('"plus_status": "fail"', '"plus_status": "pass"'),
        ('"status": "pass"', '"status": "fail"'),
        ("true", "false"),
        ('"reward": 1.0', '"reward": 0.0'),
        ('"resolved_ids": ["i"]', '"resolved_ids": []'),
    ):
        if old in text:
            return json.loads(text.replace(old, new))
    raise AssertionError(text)


@pytest.mark.parametrize("name", SAME_NAMES)
def test_one_name_in_two_folders_is_two_systems(tmp_path, name):
    file, document, system = SAME_NAMES[name]
    write(tmp_path / "org" / "gpt-4.1" / file, document)
    write(tmp_path / "org" / "gpt-4.1-mini" / file, otherwise(document))
    table = read_table(tmp_path)
    assert set(table.frame["system"]) == {
        f"{system} (folder=gpt-4.1)",
        f"{system} (folder=gpt-4.1-mini)",
    }
    assert "distinguished by folder: pool='folder' makes them trials of one" in table.message
    pooled = read_responses(tmp_path, pool="folder")
    assert pooled.systems == (system,)


@pytest.mark.parametrize("name", SAME_NAMES)
@pytest.mark.parametrize(
    "repeats", [("run1", "run2"), ("20260101_120000", "20260102_120000"), "12"]
)
def test_folders_of_repeats_are_trials(tmp_path, name, repeats):
    file, document, system = SAME_NAMES[name]
    for repeat in repeats:
        write(tmp_path / "m" / repeat / file, document)
    data = read_responses(tmp_path)
    assert data.systems == (system,)
    assert data.shape[2] == 2 * (1 + (document is CODE))


@pytest.mark.parametrize("name", SAME_NAMES)
def test_folders_of_repeats_of_several_systems_are_trials_of_each(tmp_path, name):
    file, document, system = SAME_NAMES[name]
    for folder, indent in (("gpt", None), ("llama", 1)):  # the same bytes would be a copy
        for number, each in enumerate((document, otherwise(document)), start=1):
            path = tmp_path / folder / f"run{number}" / file
            write(path, each)
            path.write_text(json.dumps(each, indent=indent))
    data = read_responses(tmp_path)
    assert data.systems == (f"{system} (folder=gpt)", f"{system} (folder=llama)")
    assert data.shape[2] == 2 * (1 + (document is CODE))


FOLDERS = [name for name, (file, _, system) in SAME_NAMES.items() if file.startswith(f"{system}/")]


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_repeats_do_not_name_systems(tmp_path, name):
    file, document, _ = SAME_NAMES[name]
    for folder in ("gpt", "llama"):
        for number, each in enumerate((document, otherwise(document)), start=1):
            write(tmp_path / folder / f"run{number}" / Path(file).name, each)
    data = read_responses(tmp_path)
    assert data.systems == ("gpt", "llama")
    assert data.shape[2] == 2 * (1 + (document is CODE))
    assert data.n_missing == 0
    assert read_responses(tmp_path / "gpt").systems == ("run1", "run2")


def test_folders_called_by_numbers_name_systems_beside_others(tmp_path):
    for folder in ("1000", "2000", "final", "run1"):
        write(tmp_path / folder / "eval_results.json", PRO)
    assert read_responses(tmp_path).systems == ("1000", "2000", "final", "run1")
    for folder in ("1000", "2000"):
        write(tmp_path / "other" / folder / "eval_results.json", otherwise(PRO))
    assert len(read_responses(tmp_path).systems) == 6


def test_folders_of_repeats_do_not_name_systems_of_tables(tmp_path):
    for folder, right in (("gpt", 1), ("llama", 0)):
        for number in (1, 2):
            path = tmp_path / folder / f"run{number}" / "log.csv"
            path.parent.mkdir(parents=True)
            path.write_text(f"question,score\nq,{right}\nr,{number - 1}\n")
    data = read_responses(tmp_path, system="folder")
    assert data.systems == ("gpt", "llama")
    assert data.outcomes.tolist() == [[[1, 1], [0, 1]], [[0, 0], [0, 1]]]


def test_other_questions_in_another_folder_are_of_the_same_system(tmp_path):
    write(tmp_path / "humaneval" / "m_eval_results.json", EVALPLUS)
    other = {"date": "", "eval": {"Mbpp/1": EVALPLUS["eval"]["q/1"]}}
    write(tmp_path / "mbpp" / "m_eval_results.json", other)
    assert read_responses(tmp_path).shape == (1, 2, 1)


def test_names_of_tools_are_taken_off_and_nothing_else(tmp_path):
    for model in ("org--gpt-4.1_vllm_temp_0.0", "org--gpt-4.1-mini_vllm_temp_0.0"):
        write(tmp_path / f"{model}_eval_results.json", EVALPLUS)
        write(tmp_path / f"{model}.raw.eval_results.json", EVALPLUS)
    assert set(read_responses(tmp_path).systems) == {
        "org--gpt-4.1_vllm_temp_0.0",
        "org--gpt-4.1-mini_vllm_temp_0.0",
        "org--gpt-4.1_vllm_temp_0.0.raw",
        "org--gpt-4.1-mini_vllm_temp_0.0.raw",
    }


def test_a_chain_of_thought_of_livecodebench_is_another_system(tmp_path):
    for more in ("", "_cot"):
        write(tmp_path / "m" / f"Scenario.codeexecution_2_0.2{more}_eval_all.json", CODE)
    assert set(read_responses(tmp_path).systems) == {"m (variant=unset)", "m (variant=cot)"}


def test_replicas_of_opencompass_are_trials(tmp_path):
    details = [
        {"example_abbr": "algebra_0", "pred": ["1", "2"], "correct": [True, False]},
        {"example_abbr": "geometry_0", "pred": ["3", "4"], "correct": [False, False]},
    ]
    document = {"accuracy (2 runs average)": 25.0, "type": ["GEN", "GEN"], "details": details}
    write(tmp_path / "m" / "math.json", document)
    data = read_responses(tmp_path)
    assert data.questions == ("algebra_0", "geometry_0")
    assert data.outcomes.tolist() == [[[1, 0], [0, 0]]]


def test_samples_without_results_in_folders_of_one_name(tmp_path):
    for day, model in enumerate("ab", start=1):
        sample = {"doc_hash": "h", "acc": day - 1, "filter": "none", "metrics": ["acc"]}
        write(tmp_path / model / "out" / f"samples_t_2026-01-0{day}T00-00-00.000001.jsonl", sample)
    assert read_responses(tmp_path).systems == ("out (folder=a)", "out (folder=b)")


@pytest.mark.parametrize("copy", ["votes (1).csv", "votes.csv.gz", "old/votes.csv"])
def test_copies_of_votes_count_once(tmp_path, caplog, copy):
    votes = "model_a,model_b,winner\na,b,model_a\nb,a,tie\n"
    (tmp_path / "votes.csv").write_text(votes)
    content = gzip.compress(votes.encode()) if copy.endswith(".gz") else votes.encode()
    (tmp_path / copy).parent.mkdir(exist_ok=True)
    (tmp_path / copy).write_bytes(content)
    with caplog.at_level("INFO", logger="bayesrank"):
        assert read_battles(tmp_path).n_battles == 2
    assert "2 battles, 2 systems; 1 copy of a log left out" in caplog.text


@pytest.mark.parametrize("ending", ["parquet", "json", "feather"])
def test_a_table_in_several_formats_counts_once(tmp_path, caplog, ending):
    votes = pd.DataFrame({"model_a": ["a", "b"], "model_b": ["b", "a"], "winner": ["a", "tie"]})
    answers = pd.DataFrame({"model": ["a", "b"], "item": [1, 1], "passed": [True, None], "run": 3})
    for kind, table in (("votes", votes), ("answers", answers)):
        (tmp_path / kind).mkdir()
        table.to_csv(tmp_path / kind / "log.csv", index=False)
        getattr(table, f"to_{ending}")(tmp_path / kind / f"log.{ending}")
    with caplog.at_level("INFO", logger="bayesrank"):
        assert read_battles(tmp_path / "votes").n_battles == 2
        assert read_responses(tmp_path / "answers").outcomes.tolist() == [[[1]], [[-1]]]
    assert caplog.text.count(f"1 copy of a log left out (log.{ending})") == 2
    answers.assign(passed=[False, None]).to_csv(tmp_path / "answers" / "log.csv", index=False)
    with pytest.raises(DataError, match="one outcome per system, question and trial"):
        read_responses(tmp_path / "answers")


def test_copies_of_an_archive_count_once(tmp_path):
    for name in ("runs.npz", "runs (1).npz"):
        np.savez(tmp_path / name, R=np.array([[[0, 1]], [[1, 1]]]))
    assert read_responses(tmp_path).shape == (2, 1, 2)


def test_agents_without_a_model_are_one_system_for_each_submission(tmp_path):
    told = {"agent_name": "agent", "model_name": None, "dataset_name": "core"}
    for number, folder in enumerate(["gpt/x_1", "gpt/x_2", "opus/y_1", "haiku"]):
        run = tmp_path / "core" / folder
        write(run / "run_metadata.json", {**told, "uuid": str(number)})
        write(run / "results.json", {"results": [{**TRIAL, "is_resolved": number != 3}]})
    write(tmp_path / "core" / "other" / "results.json", {"results": [TRIAL]})
    assert read_responses(tmp_path).shape == (4, 1, 2)
    table = read_table(tmp_path)
    assert set(table.frame["system"]) == {
        "agent (folder=gpt)",
        "agent (folder=opus)",
        "agent (folder=haiku)",
        "other",
    }
    assert "agent is several systems, distinguished by folder" in table.message


def test_folders_that_are_too_long_for_a_name_are_told_by_their_ends(tmp_path):
    for folder, name, resolved in [("a" * 30, "x" * 30, True), ("b" * 30, "y" * 30, False)]:
        trial = {**TRIAL, "is_resolved": resolved}
        write(tmp_path / folder / name / "out" / "results.json", {"results": [trial]})
    assert read_responses(tmp_path).systems == (
        f"out (folder={'x' * 30})",
        f"out (folder={'y' * 30})",
    )


def test_logs_without_a_task_are_of_the_task_with_their_questions(tmp_path, caplog):
    told = {"agent_name": "agent", "model_name": "m", "dataset_name": "core"}
    write(tmp_path / "a" / "run_metadata.json", told)
    write(tmp_path / "a" / "results.json", {"results": [TRIAL]})
    write(tmp_path / "b" / "results.json", {"results": [{**TRIAL, "is_resolved": False}]})
    assert read_responses(tmp_path).systems == ("agent__m", "b")
    write(tmp_path / "c" / "results.json", {"results": [{**TRIAL, "task_id": "other"}]})
    assert read_responses(tmp_path).systems == ("agent__m", "b")
    assert "Logs of c name no task, and are left out" in caplog.text


@pytest.mark.parametrize(
    ("one", "two"),
    [("2026-01-01__04-05-06", "2026-01-02__01-02-03"), ("run1_2026-01-01__04-05-06", "run2")],
)
def test_folders_with_times_are_repeats(tmp_path, one, two):
    for system in "ab":
        for folder in (one, two):
            write(tmp_path / system / folder / "results.json", {"results": [TRIAL]})
    assert read_responses(tmp_path).shape == (2, 1, 2)
