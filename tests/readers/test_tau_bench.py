"""Files are written in the layouts of tau-bench's EnvRunResult and tau2-bench's Results."""

import json

import numpy as np
import pytest

from bayesrank.errors import DataError
from bayesrank.readers import read_responses, read_table

NAME = "tool-calling-gpt-4o-0.0_range_0--1_user-gpt-4o-llm_1121103000.json"


def run(task, trial, reward, **info):
    return {"task_id": task, "reward": reward, "info": info, "traj": [], "trial": trial}


def simulation(task, trial, reward, reason="user_stop"):
    return {
        "id": f"{task}-{trial}",
        "task_id": task,
        "termination_reason": reason,
        "reward_info": None if reward is None else {"reward": reward},
        "messages": [{"role": "user", "content": "hello"}],
        "trial": trial,
        "seed": 300 + trial,
    }


@pytest.fixture
def write_tau2(tmp_path):
    def write(name, simulations, llm="org/a", tasks=("t1", "t2"), num_trials=2, **changes):
        info = {
            "git_commit": "0" * 40,
            "num_trials": num_trials,
            "user_info": {"implementation": "user_simulator", "llm": "org/user", "llm_args": {}},
            "agent_info": {"implementation": "llm_agent", "llm": llm, "llm_args": {"t": 0}},
            "environment_info": {"domain_name": "airline", "policy": "..."},
            "seed": 300,
        }
        document = {
            "timestamp": "2026-01-01T00:00:00",
            "info": info | changes,
            "tasks": [{"id": task, "user_scenario": {}} for task in tasks],
            "simulations": simulations,
        }
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(document, indent=2))
        return path

    return write


def test_tau_trials_and_rewards(tmp_path):
    runs = [run(0, 0, 1.0), run(1, 0, 0.0), run(0, 1, 0.5), run(1, 1, 1.0 + 1e-9)]
    (tmp_path / NAME).write_text(json.dumps(runs, indent=2))
    (tmp_path / "gpt-3.5-airline.json").write_text(json.dumps([run(0, 0, 1.0)], indent=2))
    data = read_responses(tmp_path)
    assert data.systems == ("gpt-3.5-airline", "tool-calling-gpt-4o-0.0")
    assert data.questions == ("0", "1")
    assert data.outcomes.tolist() == [[[1, -1], [-1, -1]], [[1, 0], [0, 1]]]
    assert not data.paired


def test_tau_files_of_one_system_add_trials(tmp_path):
    for day in (1121103000, 1121113000):
        path = tmp_path / NAME.replace("1121103000", str(day))
        path.write_text(json.dumps([run(0, 0, 1.0), run(0, 1, 0.0)], indent=2))
    assert read_responses(tmp_path).outcomes.tolist() == [[[1, 0, 1, 0]]]


def test_tau_run_that_raised_is_wrong_as_in_the_tool_and_says_why(tmp_path):
    runs = [run(0, 0, 1.0), run(0, 1, 0.0, error="connection lost", traceback="...")]
    (tmp_path / NAME).write_text(json.dumps(runs))
    table = read_table(tmp_path)
    assert table.frame["outcome"].tolist() == [1, 0]
    assert table.message.endswith("1 error counted as wrong")
    assert read_table(tmp_path, count_as_wrong=()).n_missing == 1
    assert table.frame["error"].tolist() == ["", "connection lost"]
    assert table.to_dataarray().coords["error"].dims == ("system", "question", "trial")


@pytest.mark.parametrize("flaw", [{"reward": None}, {"task_id": None}])
def test_tau_run_of_another_shape(tmp_path, flaw):
    broken = {key: value for key, value in run(0, 0, 1.0).items() if key not in flaw}
    (tmp_path / NAME).write_text(json.dumps([broken]))
    with pytest.raises(DataError, match=r"tau-bench runs with a task_id and a reward"):
        read_responses(tmp_path / NAME, format="tau_bench")


def test_tau_results_cut_off(tmp_path):
    (tmp_path / NAME).write_text(json.dumps([run(0, 0, 1.0)])[:-5])
    with pytest.raises(DataError, match=r"paths must hold valid JSON"):
        read_responses(tmp_path)


def test_tau2_rewards_and_what_is_missing(write_tau2, tmp_path):
    write_tau2(
        "a.json",
        [
            simulation("t1", 0, 1.0),
            simulation("t1", 1, 0.0, "max_steps"),
            simulation("t2", 0, 1.0, "infrastructure_error"),
        ],
    )
    write_tau2("b.json", [simulation("t2", 0, 0.9999999), simulation("t1", 0, None)], llm="org/b")
    data = read_responses(tmp_path)
    assert data.systems == ("org/a", "org/b")
    np.testing.assert_array_equal(data.outcomes, [[[1, 0], [-1, -1]], [[-1, -1], [1, -1]]])
    reasons = read_table(tmp_path).to_dataarray().coords["termination_reason"]
    assert reasons.sel(system="org/a", question="t1", trial=1).item() == "max_steps"
    assert reasons.sel(system="org/a", question="t2", trial=0).item() == "infrastructure_error"
    assert reasons.sel(system="org/a", question="t2", trial=1).item() == ""


def test_tau2_folder_of_simulations_is_read_by_its_index(write_tau2, tmp_path):
    path = write_tau2("run/results.json", [], num_trials=1)
    document = json.loads(path.read_text())
    index = {"id": "x", "task_id": "t1", "trial": 0, "reward": 1.0, "termination_reason": "stop"}
    del document["simulations"]
    path.write_text(json.dumps(document | {"simulation_index": [index]}))
    (tmp_path / "run" / "simulations").mkdir()
    (tmp_path / "run" / "simulations" / "x.json").write_text(json.dumps(simulation("t1", 0, 1.0)))
    assert read_responses(tmp_path).outcomes.tolist() == [[[1]]]
    path.write_text(json.dumps(document | {"simulation_index": None}))
    assert read_responses(tmp_path).outcomes.tolist() == [[[1]]]


def test_tau2_files_of_one_system_add_trials_unless_settings_differ(write_tau2, tmp_path):
    write_tau2("a1.json", [simulation("t1", 0, 1.0)], tasks=["t1"], num_trials=1)
    write_tau2("a2.json", [simulation("t1", 0, 0.0)], tasks=["t1"], num_trials=1)
    assert read_responses(tmp_path).outcomes.tolist() == [[[1, 0]]]
    agent = {"implementation": "llm_agent", "llm": "org/a", "llm_args": {"t": 1}}
    write_tau2("a2.json", [simulation("t1", 0, 0.0)], agent_info=agent)
    assert read_responses(tmp_path).systems == ("org/a (t=0)", "org/a (t=1)")


@pytest.mark.parametrize(
    ("name", "one", "other", "system"),
    [
        ("retrieval_config", "bm25", "none", "org/a (retrieval_config=bm25)"),
        ("audio_native_config", {"model": "x"}, {"model": "y"}, "org/a (model=x)"),
    ],
)
def test_tau2_settings_of_other_kinds_of_agents(write_tau2, tmp_path, name, one, other, system):
    for file, value in (("a1.json", one), ("a2.json", other)):
        path = write_tau2(file, [simulation("t1", 0, 1.0)])
        document = json.loads(path.read_text())
        document["info"][name] = value
        path.write_text(json.dumps(document))
    assert read_responses(tmp_path).systems[0] == system


def test_tau2_simulations_that_ended_without_a_reward_say_why(write_tau2):
    path = write_tau2("a.json", [simulation("t1", 0, 1.0), simulation("t1", 1, None, "timeout")])
    assert read_table(path).frame["status"].tolist() == ["", "limit"]


def test_tau2_domains_are_tasks(write_tau2, tmp_path):
    write_tau2("a.json", [simulation("t1", 0, 1.0)])
    write_tau2("b.json", [simulation("r1", 0, 1.0)], environment_info={"domain_name": "retail"})
    assert read_responses(tmp_path, task="retail").questions == ("r1",)
    with pytest.raises(DataError, match=r"task must name one of airline, retail; got None"):
        read_responses(tmp_path)


def test_tau2_broken_results(write_tau2):
    broken = simulation("t1", 0, 1.0)
    del broken["task_id"]
    path = write_tau2("a.json", [broken])
    with pytest.raises(DataError, match=r"tau2-bench simulations .* no 'task_id' in .*a\.json"):
        read_responses(path)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(DataError, match=r"a\.json"):
        read_responses(path)


def test_domains_that_number_their_tasks_alike_are_different_questions(tmp_path):
    for folder, instruction in (("airline", "cancel a flight"), ("retail", "return a shoe")):
        asked = {"info": {"task": {"instruction": instruction}}}
        failed = run(1, 0, 0.0, error="lost", traceback="...")
        runs = [run(0, 0, float(folder == "retail")) | asked, run(2, 0, 1.0) | asked, failed]
        (tmp_path / folder).mkdir()
        (tmp_path / folder / NAME).write_text(json.dumps(runs))
    data = read_responses(tmp_path)
    assert data.shape == (1, 5, 2)
    outcomes = dict(zip(data.questions, data.outcomes[0].tolist(), strict=True))
    assert outcomes["0"] == [0, -1]
    assert outcomes["0#2"] == [-1, 1]
    assert "2 names of questions, such as '0', stand for several inputs" in (
        read_table(tmp_path).message
    )
