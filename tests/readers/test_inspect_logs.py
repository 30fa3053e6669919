import json
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest

from bayesrank import Responses
from bayesrank.errors import DataError
from bayesrank.readers import read_responses, read_table

if sys.version_info < (3, 14):
    import zipfile_zstd  # noqa: F401 - teaches zipfile the compression of real archives

ROWS = [("s1", 1, "C"), ("s2", 1, "I"), ("s1", 2, "I"), ("s2", 2, "C")]


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_epochs_are_trials(write_eval, inspect_log, suffix):
    data = read_responses(write_eval(f"log.{suffix}", inspect_log("m", ROWS)))
    assert data.systems == ("m",)
    assert data.questions == ("s1", "s2")
    assert data.outcomes.tolist() == [[[1, 0], [0, 1]]]
    assert not data.paired


def test_values_of_all_kinds(write_eval, inspect_log):
    values = ["C", "P", "I", "N", True, 0.75, float("nan"), None]
    rows = [(f"s{number}", 1, value) for number, value in enumerate(values)]
    rows.append(("s0", 2, "C"))
    log = inspect_log("m", rows, config={"epochs": 1})
    table = read_table(write_eval("log.eval", log))
    outcomes = table.frame[table.frame["trial"] == 0].set_index("question")["outcome"]
    np.testing.assert_array_equal(outcomes.tolist(), [1.0, 0.5, 0.0, 0.0, 1.0, 0.75])
    # Six of the eight samples have an outcome, and only one of them in the second epoch.
    assert table.message == (
        "1 system, 6 questions, 2 trials; 5 of 12 outcomes missing (5 absent); "
        "2 questions without any outcome left out"
    )


def test_several_logs_are_several_systems_and_archives_mix_with_json(write_eval, inspect_log):
    first = write_eval("a.eval", inspect_log("a", ROWS))
    second = write_eval("b.json", inspect_log("b", ROWS[:2]))
    data = read_responses([first, second])
    assert data.systems == ("a", "b")
    assert data.outcomes[1].tolist() == [[1, -1], [0, -1]]


def test_second_log_of_a_model_adds_trials_in_the_order_of_creation(write_eval, inspect_log):
    later = {"task_id": "later", "created": "2026-02-01T00:00:00+00:00"}
    write_eval("a.eval", inspect_log("m", [("s1", 1, "C")], **later))
    path = write_eval("b.eval", inspect_log("m", [("s1", 1, "I"), ("s1", 2, "I")]))
    assert read_responses(path.parent).outcomes.tolist() == [[[0, 0, 1]]]


def test_retry_of_a_run_counts_once(write_eval, inspect_log):
    failed = inspect_log("m", ROWS)
    failed["samples"][3] |= {"error": {"message": "lost"}, "scores": {}}
    retry = inspect_log("m", [ROWS[0], ROWS[3]], created="2026-01-02T00:00:00+00:00")
    path = write_eval("a.eval", failed)
    assert read_table(path).n_missing == 1
    write_eval("b.eval", retry)
    assert read_responses(path.parent).outcomes.tolist() == [[[1, 0], [0, 1]]]


@pytest.mark.parametrize(
    ("flaw", "status"),
    [
        ({"error": {"message": "x"}, "scores": {}}, "error"),
        ({"limit": {"type": "time"}, "scores": {}}, "limit"),
        ({"output": {"choices": [{"stop_reason": "content_filter"}]}, "scores": {}}, "refused"),
        ({"invalidation": {"reason": "x"}}, "unscored"),
        ({"scores": None}, "unscored"),
    ],
)
def test_sample_without_a_valid_score_is_missing(write_eval, inspect_log, flaw, status):
    log = inspect_log("m", ROWS)
    log["samples"][1] |= flaw
    path = write_eval("log.eval", log)
    assert read_responses(path).outcomes.tolist() == [[[1, 0], [-1, 1]]]
    table = read_table(path)
    assert table.frame["status"].tolist() == ["", status, "", ""]
    said = f"1 of 4 outcomes missing (1 {status})"
    if status != "unscored":
        said += f"; failed attempts are left out (count_as_wrong={status!r} counts them)"
    assert table.message.endswith(said)
    counted = read_table(path, count_as_wrong=status)
    assert counted.message.endswith(f"0 of 4 outcomes missing; 1 {status} counted as wrong")
    assert counted.frame["outcome"].tolist() == [1, 0, 0, 1]


def test_error_that_was_scored_counts(write_eval, inspect_log):
    log = inspect_log("m", ROWS, config={"epochs": 2, "score_on_error": True})
    log["samples"][1] |= {"error": {"message": "tool crashed"}}
    table = read_table(write_eval("log.eval", log))
    assert (table.n_missing, table.frame["status"].tolist()) == (0, ["", "error", "", ""])


def test_samples_that_the_header_announces_are_missing(write_eval, inspect_log, caplog):
    log = inspect_log("m", ROWS, config={"epochs": 3}, dataset={"sample_ids": ["s2", "s1"]})
    with caplog.at_level("INFO", logger="bayesrank"):
        data = read_responses(write_eval("log.eval", log))
    assert data.questions == ("s2", "s1")
    assert data.outcomes.tolist() == [[[0, 1, -1], [1, 0, -1]]]
    assert caplog.messages == [
        "1 system, 2 questions, 3 trials; 2 of 6 outcomes missing (2 absent)"
    ]


def test_unfinished_run_is_read_from_its_journal(tmp_path, inspect_log):
    log = inspect_log("m", ROWS)
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"eval": log["eval"]}))
        archive.writestr("samples/s1_epoch_1.json", json.dumps(log["samples"][0]))
    assert read_table(path).message == (
        "1 system, 1 question, 2 trials; 1 of 2 outcomes missing (1 absent); "
        "1 question without any outcome left out"
    )


def test_named_values_are_chosen_by_metric(write_eval, inspect_log):
    rows = [("s1", 1, {"fluent": 1, "true": 0}), ("s2", 1, {"fluent": 0}), ("s2", 2, float("nan"))]
    path = write_eval("log.eval", inspect_log("m", rows))
    with pytest.raises(
        DataError,
        match=r"metric must name one of fluent, true for scorer 'match'; got None \(pass metric=",
    ):
        read_responses(path)
    assert read_table(path, metric="fluent").n_missing == 2
    assert read_responses(path, metric="true").outcomes.tolist() == [[[0, -1]]]


def test_single_values_have_no_metric(write_eval, inspect_log):
    path = write_eval("log.eval", inspect_log("m", ROWS))
    with pytest.raises(DataError, match=r"metric must be left out for scorer 'match'.* got 'acc'"):
        read_responses(path, metric="acc")


def test_single_values_among_named_ones_are_refused(write_eval, inspect_log):
    path = write_eval("log.eval", inspect_log("m", [("s1", 1, {"x": 1}), ("s2", 1, "C")]))
    with pytest.raises(DataError, match=r"named values in all samples; got 'C' for scorer 'match'"):
        read_responses(path)


def test_list_of_values_is_refused(write_eval, inspect_log):
    path = write_eval("log.eval", inspect_log("m", [("s1", 1, [1, 0])]))
    with pytest.raises(DataError, match=r"scorer must give single .* got the list \[1, 0\] for"):
        read_responses(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("maybe", r"outcomes must be numbers.* got 'maybe' for .*'s1'"),
        (3.5, r"outcomes must lie in \[0, 1\] .* got 3.5 for .*'s1'"),
    ],
)
def test_value_that_is_no_outcome(write_eval, inspect_log, value, message):
    path = write_eval("log.eval", inspect_log("m", [("s1", 1, value)]))
    with pytest.raises(DataError, match=message):
        read_responses(path)


def test_open_scorer_lists_the_names(write_eval, inspect_log):
    log = inspect_log("m", ROWS)
    log["samples"][0]["scores"]["graded"] = {"value": 0.5}
    path = write_eval("log.eval", log)
    with pytest.raises(
        DataError, match=r"scorer must name one of match, graded for task 'sums'; got None"
    ):
        read_responses(path)
    assert read_table(path, scorer="graded").n_missing == 1
    log["samples"][0]["scores"]["word_error_rate"] = {"value": 0.5}
    with pytest.raises(DataError, match=r"^scorer must be higher for better .* 'word_error_rate'"):
        read_responses(write_eval("log.eval", log), scorer="word_error_rate")


def test_different_settings_under_one_model_name_tell_systems_apart(write_eval, inspect_log):
    def settings(**values):
        return {"task_id": str(values), "model_generate_config": values}

    write_eval("a.eval", inspect_log("m", ROWS, **settings(temperature=0.5, seed=1)))
    path = write_eval("b.eval", inspect_log("m", ROWS, **settings(temperature=0.5, seed=2)))
    assert read_responses(path.parent).shape == (1, 2, 4)
    write_eval("c.eval", inspect_log("m", ROWS, **settings(temperature=1.0)))
    assert read_responses(path.parent).systems == ("m (temperature=0.5)", "m (temperature=1.0)")
    field = "model_generate_config.temperature"
    assert f"m is several systems, distinguished by {field}: pool='{field}'" in (
        read_table(path.parent).message
    )
    assert read_responses(path.parent, pool="temperature").shape == (1, 2, 6)
    by_seed = read_responses(path.parent, pool="temperature", split_by=["seed"])
    assert by_seed.systems == ("m (seed=1)", "m (seed=2)", "m (seed=unset)")
    with pytest.raises(DataError, match=r"pool must name fields of the logs \(.*temperature.* 'x'"):
        read_responses(path.parent, pool="x")


@pytest.mark.parametrize(
    ("one", "other", "suffix"),
    [
        ({"model_base_url": "http://a"}, {"model_base_url": "http://b"}, "model_base_url=http://b"),
        ({"model_args": {"path": "1B"}}, {"model_args": {"path": "8B"}}, "path=8B"),
        ({}, {"config": {"epochs": 2, "token_limit": 9}}, "token_limit=9"),
        (
            {"model_roles": {"grader": {"model": "g1"}}},
            {"model_roles": {"grader": {"model": "g2"}}},
            "grader=g2",
        ),
        (
            {"scorers": [{"name": "pkg/match", "options": {"judge": "g1"}}]},
            {"scorers": [{"name": "pkg/match", "options": {"judge": "g2"}}]},
            "judge=g2",
        ),
        ({"dataset": {"name": "v1"}}, {"dataset": {"name": "v2"}}, "dataset=v2"),
        ({"task_version": 0}, {"task_version": 1}, "task_version=1"),
        ({"task_args": {"shots": 0}}, {"task_args": {"shots": 5}}, "shots=5"),
        ({"solver": "plain"}, {"solver": "chain"}, "solver=chain"),
    ],
)
def test_what_tells_systems_of_one_model_apart(write_eval, inspect_log, one, other, suffix):
    write_eval("a.eval", inspect_log("m", ROWS, task_id="1", **one))
    path = write_eval("b.eval", inspect_log("m", ROWS, task_id="2", **other))
    data = read_responses(path.parent)
    assert data.shape == (2, 2, 2)
    assert data.systems[1] == f"m ({suffix})"


def test_effort_of_the_whole_plan_tells_systems_apart(write_eval, inspect_log):
    for name, effort in (("a", "low"), ("b", "high")):
        log = inspect_log("m", ROWS, task_id=name)
        plan = {"steps": [], "config": {"reasoning_effort": effort, "seed": len(effort)}}
        samples = {"samples": log.pop("samples")}
        path = write_eval(f"{name}.json", log | {"plan": plan} | samples)
    assert read_responses(path.parent).systems == (
        "m (reasoning_effort=low)",
        "m (reasoning_effort=high)",
    )


def test_copies_of_a_log_count_once(write_eval, inspect_log):
    log = inspect_log("m", ROWS)
    write_eval("a.eval", log)
    path = write_eval("copy of a.json", log)
    assert read_responses(path.parent).shape == (1, 2, 2)


def test_systems_that_were_measured_differently_are_pointed_out(write_eval, inspect_log, caplog):
    write_eval("a.eval", inspect_log("a", ROWS, config={"epochs": 2, "message_limit": 10}))
    path = write_eval("b.eval", inspect_log("b", ROWS, config={"epochs": 2, "message_limit": 50}))
    with caplog.at_level("WARNING", logger="bayesrank"):
        read_responses(path.parent)
    assert caplog.messages == [
        "Systems were measured under different message_limit: 10 for a; 50 for b."
    ]


def test_several_tasks_are_groups(write_eval, inspect_log):
    for name, task, rows in (("a", "sums_1", ROWS), ("b", "sums_2", ROWS), ("c", "other", ROWS)):
        log = inspect_log("m", rows, task=task, task_id=name, task_args={"kind": name})
        path = write_eval(f"{name}.eval", log)
    data = read_responses(path.parent, task="sums_*")
    assert data.systems == ("m",)
    assert data.questions == ("sums_1/s1", "sums_1/s2", "sums_2/s1", "sums_2/s2")
    assert data.groups == ("sums_1", "sums_1", "sums_2", "sums_2")


def test_log_without_scores(write_eval, inspect_log):
    log = inspect_log("m", ROWS)
    for sample in log["samples"]:
        sample["scores"] = None
    with pytest.raises(DataError, match=r"scored samples; got 4 without a score for task 'sums'"):
        read_responses(write_eval("log.eval", log))
    log["samples"] = []
    with pytest.raises(
        DataError, match=r"got 0 without a score .*: evaluate it with --log-samples"
    ):
        read_responses(write_eval("log.eval", log))


def test_log_without_samples_of_one_system(write_eval, inspect_log):
    first = write_eval("a.eval", inspect_log("a", ROWS))
    second = write_eval("b.eval", inspect_log("b", ROWS) | {"samples": []})
    with pytest.raises(DataError, match=r"outcome of every system; got none for 'b': leave out"):
        read_responses([first, second])


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_truncated_archive(shared, tmp_path, share):
    source = min((shared / "logs" / "inspect").glob("*.eval"))
    whole = source.read_bytes()
    path = tmp_path / "cut.eval"
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataError, match=r"complete archives; got .* in .*/cut\.eval: the"):
        read_responses(path)


def test_damaged_member(shared, tmp_path):
    source = min((shared / "logs" / "inspect").glob("*.eval"))
    whole = bytearray(source.read_bytes())
    with zipfile.ZipFile(source) as archive:
        member = archive.getinfo("samples/add-00_epoch_1.json")
    start = member.header_offset + 200
    whole[start : start + 50] = bytes(50)
    path = tmp_path / "damaged.eval"
    path.write_bytes(whole)
    with pytest.raises(DataError, match=r"complete archives; got .* in .*/damaged\.eval"):
        read_responses(path, scorer="match")


def test_truncated_json(write_eval, inspect_log):
    path = write_eval("log.json", inspect_log("m", ROWS))
    path.write_text(path.read_text()[:-40])
    with pytest.raises(DataError, match=r"valid JSON; got .* in .*/log\.json: the file may be"):
        read_responses(path)


@pytest.mark.parametrize("lost", ["model", "task"])
def test_log_without_a_name(write_eval, inspect_log, lost):
    log = inspect_log("m", ROWS)
    del log["eval"][lost]
    with pytest.raises(DataError, match=r"name their model and task; got .*log\.eval"):
        read_responses(write_eval("log.eval", log))


def test_archive_that_is_no_log(tmp_path):
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(DataError, match=r"name their model and task; got .*log\.eval"):
        read_responses(path)


@pytest.mark.parametrize("flaw", [{"id": None, "epoch": 0}, {"epoch": None}, {"scores": [1]}])
def test_sample_of_another_shape(write_eval, inspect_log, flaw):
    log = inspect_log("m", ROWS)
    log["samples"][0] |= flaw
    with pytest.raises(DataError, match=r"inspect samples with an id.*log\.json"):
        read_responses(write_eval("log.json", log))


def test_log_with_samples_of_another_shape(write_eval, inspect_log):
    path = write_eval("log.json", inspect_log("m", ROWS) | {"samples": 3})
    with pytest.raises(DataError, match=r"inspect samples with an id, .*log\.json"):
        read_responses(path)


WORTH = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


@pytest.mark.parametrize(
    ("task", "scorer"), [("arithmetic", "match"), ("arithmetic", "graded"), ("toy_mc", "choice")]
)
def test_real_archives_recounted(shared, task, scorer):
    folder = shared / "logs" / "inspect"
    expected = {}
    for path in folder.glob("*.eval"):
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("header.json"))
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            samples = [json.loads(archive.read(name)) for name in names]
        if header["eval"]["task"] == task:
            expected[header["eval"]["model"]] = {
                (str(sample["id"]), sample["epoch"]): WORTH[sample["scores"][scorer]["value"]]
                for sample in samples
            }
    data = read_responses(folder, task=task, scorer=scorer)
    assert sorted(data.systems) == sorted(expected)
    outcomes = data.outcomes if data.scores is None else data.scores
    for i, system in enumerate(data.systems):
        read = {
            (question, epoch + 1): outcomes[i, j, epoch]
            for j, question in enumerate(data.questions)
            for epoch in range(data.shape[2])
        }
        assert read == expected[system]


def test_real_archives_have_the_reported_accuracies(shared):
    data = read_responses(shared / "logs" / "inspect", task="arithmetic", scorer="match")
    means = dict(zip(data.systems, data.grades.mean(axis=1).tolist(), strict=True))
    assert means == pytest.approx(
        {
            "mockllm/alpha-large": 42 / 60,
            "mockllm/beta-medium": 27 / 60,
            "mockllm/gamma-small": 19 / 60,
        },
        abs=1e-12,
    )


def test_real_archives_need_the_documented_choices(shared):
    folder = shared / "logs" / "inspect"
    with pytest.raises(
        DataError,
        match=r"^task must name one of arithmetic, toy_mc; got None \(pass task=...\)$",
    ):
        read_responses(folder)
    with pytest.raises(
        DataError,
        match=r"^scorer must name one of match, graded for task 'arithmetic'; got None \(pass scor",
    ):
        read_responses(folder, task="arithmetic")


def test_real_json_logs_recounted(shared):
    folder = shared / "logs" / "inspect_json"
    data = read_responses(folder)
    for path in folder.glob("*.json"):
        log = json.loads(path.read_text())
        values = [WORTH[sample["scores"]["choice"]["value"]] for sample in log["samples"]]
        mean = data.grades[data.systems.index(log["eval"]["model"])].mean()
        assert mean == pytest.approx(sum(values) / len(values), abs=1e-12)


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_limits_and_errors_are_coordinates(write_eval, inspect_log, suffix):
    log = inspect_log("m", ROWS)
    log["samples"][1] |= {"limit": {"type": "token", "limit": 100.0}}
    log["samples"][3] |= {"error": {"message": "connection lost"}, "scores": {}}
    table = read_table(write_eval(f"log.{suffix}", log))
    assert table.details == ("limit", "error")
    outcomes = table.to_dataarray()
    assert outcomes.dims == ("system", "question", "trial")
    assert outcomes.coords["limit"].values.tolist() == [[["", ""], ["token", ""]]]
    assert outcomes.coords["error"].values.tolist() == [[["", ""], ["", "connection lost"]]]
    assert outcomes.coords["status"].values.tolist() == [[["", ""], ["limit", "error"]]]
    # A sample that reached a limit has an outcome, one with an error has none.
    np.testing.assert_array_equal(outcomes.values, [[[1, 0], [0, np.nan]]])
    assert Responses.from_dataarray(outcomes).outcomes.tolist() == [[[1, 0], [0, -1]]]


def test_coordinates_of_a_ragged_log_follow_its_labels(write_eval, inspect_log):
    log = inspect_log("a", [("s2", 1, "C"), ("s1", 1, "I")])
    log["samples"][0] |= {"limit": {"type": "time", "limit": 5}}
    first = write_eval("a.eval", log)
    second = write_eval("b.eval", inspect_log("b", [("s1", 2, "C"), ("s1", 1, "I")]))
    limits = read_table([first, second]).to_dataarray().coords["limit"]
    assert limits.sel(system="a", question="s2", trial=0).item() == "time"
    assert limits.values.tolist().count("time") == 0
    assert (limits == "time").sum() == 1
    assert limits.coords["question"].values.tolist() == ["s2", "s1"]


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_large_log_is_never_in_memory_as_a_whole(write_eval, inspect_log, suffix):
    log = inspect_log("m", [(f"s{number}", 1, "C") for number in range(400)])
    for sample in log["samples"]:
        sample["events"] = ["x" * 1_000] * 100
    path = write_eval(f"log.{suffix}", log)
    assert path.stat().st_size > 40_000_000
    del log
    read_table(path)  # what is imported once does not count
    tracemalloc.start()
    data = read_responses(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert data.shape == (1, 400, 1)
    assert peak < 4_000_000


def test_sample_that_occurs_twice_in_an_epoch(write_eval, inspect_log):
    path = write_eval("log.json", inspect_log("m", [("s1", 1, "C"), ("s1", 1, "I")]))
    with pytest.raises(DataError, match=r"once; got 's1' twice in epoch 1 of .*/log\.json: give"):
        read_responses(path)


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_messages_have_other_ids_in_every_run(write_eval, inspect_log, suffix):
    for model in ("a", "b"):
        document = inspect_log(model, [("s1", 1, "C")])
        message = {"id": f"of {model}", "role": "user", "content": "2 + 2?"}
        document["samples"][0]["input"] = [message]
        path = write_eval(f"{model}{suffix}", document)
    assert read_responses(path.parent).questions == ("s1",)


def test_the_first_version_has_one_score(write_eval, inspect_log):
    document = inspect_log("a", [("s1", 1, "C"), ("s2", 1, "I")])
    for sample in document["samples"]:
        sample["score"] = sample.pop("scores")["match"]
    assert read_responses(write_eval("a.json", document)).outcomes.tolist() == [[[1], [0]]]


def test_addresses_in_memory_tell_nothing_apart(write_eval, inspect_log):
    for number in (1, 2):
        arguments = {"grade": f"<function grade at 0x7f00{number}>"}
        log = inspect_log("m", ROWS, task_id=str(number), solver_args=arguments)
        path = write_eval(f"{number}.eval", log)
    assert read_responses(path.parent).shape == (1, 2, 4)
