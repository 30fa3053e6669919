"""What every reader of results promises, on the examples of all formats."""

import gzip
import json
import logging
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrank.errors import DataError
from bayesrank.readers import READERS, read_battles, read_data, read_responses, read_table
from tests.readers.examples import BY_FORMAT, EXAMPLES


def compress(path):
    """Compress a file in its place."""
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()


every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.format)


def means(data):
    """Return the mean outcome of every system and question, None where there is none."""
    grades = np.where(data.observed, data.values, np.nan)
    return {
        system: [None if np.isnan(cell).all() else float(np.nanmean(cell)) for cell in row]
        for system, row in zip(data.systems, grades, strict=True)
    }


@every_example
def test_systems_outcomes_and_groups(tmp_path, caplog, example):
    example.write(tmp_path)
    with caplog.at_level(logging.INFO, logger="bayesrank"):
        data = read_responses(tmp_path, **example.chosen)
    found = means(data)
    assert found.keys() == example.right.keys()
    for system, right in example.right.items():
        assert found[system] == [None if each is None else pytest.approx(each) for each in right]
    assert example.message in caplog.text
    assert data.groups == (None if example.groups is None else tuple(example.groups))
    assert read_table(tmp_path, **example.chosen).source == example.format


@every_example
def test_only_one_format_claims_a_file(tmp_path, example):
    example.write(tmp_path)
    files = [path for path in tmp_path.rglob("*.*") if path.is_file()]
    claims = {row.name for path in files for row in READERS.values() if row.recognises(path)}
    # What is named as a table may be one, but is not taken for it.
    assert {example.format} <= claims <= {example.format, "table"}


@every_example
def test_half_a_file_is_named(tmp_path, example):
    example.write(tmp_path)
    name = max(example.files, key=lambda name: (tmp_path / name).stat().st_size)
    path = tmp_path / name
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 9 // 10])
    with pytest.raises(DataError, match=rf"got .*{path.suffix}"):
        read_responses(path, format=example.format, **example.chosen)


@every_example
def test_further_files_of_a_system_are_trials_and_copies_are_not(tmp_path, example):
    once = tmp_path / "once"
    example.write(once)
    n_trials = read_responses(once, **example.chosen).shape
    copies = tmp_path / "copies"
    for folder in ("one", "two"):
        example.write(copies / folder)
    assert read_responses(copies, **example.chosen).shape == n_trials


@every_example
def test_logs_compressed_with_what_lies_beside_them_are_the_logs(tmp_path, example):
    example.write(tmp_path)
    for path in [path for path in tmp_path.rglob("*.json*") if path.is_file()]:
        compress(path)
    assert set(read_responses(tmp_path, **example.chosen).systems) == example.right.keys()


def changed(name, old, new):
    """Replace something in a file."""
    text = name.read_text()
    assert old in text
    name.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("format", "file", "old", "new", "what"),
    [
        ("promptfoo", "results.json", '"id": "openai:b"', '"id": " "', "place of a name"),
        ("mcpmark", "exp/m__notion/run-2/a__one/meta.json", '"a__one"', "null", "place of a name"),
        ("mt_bench", "gpt-4_single.jsonl", '"model": "b"', '"model": null', "place of a name"),
        (
            "livecodebench",
            "GPT-4.1/Scenario.codegeneration_2_0.2_eval_all.json",
            '"3001"',
            '""',
            "",
        ),
        ("openai_evals", "other.jsonl", '["gpt-5"]', "[null]", "place of a name"),
    ],
)
def test_blank_names_are_refused_with_the_file_and_its_folder(
    tmp_path, format, file, old, new, what
):
    BY_FORMAT[format].write(tmp_path)
    changed(tmp_path / file, old, new)
    place = "/".join((tmp_path / file).parts[-2:])
    with pytest.raises(DataError, match=rf"got a blank .*in .*{re.escape(place)}") as caught:
        read_responses(tmp_path, strict=True)
    assert what in str(caught.value)


def test_files_of_livebench_are_trials(tmp_path):
    for run in ("run1", "run2"):
        BY_FORMAT["livebench"].write(tmp_path / run)
    changed(tmp_path / "run2" / "ground_truth_judgment.jsonl", '"score": 0.5', '"score": 1')
    data = read_responses(tmp_path)
    assert data.values[data.systems.index("b")].tolist() == [[0, 0], [0.5, 1]]


def test_a_question_without_its_group_is_named(tmp_path):
    BY_FORMAT["mcpmark"].write(tmp_path)
    changed(tmp_path / "exp/m__notion/run-2/a__one/meta.json", '"notion"', "null")
    with pytest.raises(DataError, match=r"group of every question .* blank for 'a__one' of 'm'"):
        read_responses(tmp_path)


def test_of_files_of_one_name_the_folder_says_which_is_damaged(tmp_path):
    BY_FORMAT["opencompass"].write(tmp_path)
    paths = [tmp_path / name for name in BY_FORMAT["opencompass"].files]
    changed(paths[1], '"correct": [false]}', '"correct": [false]')
    with pytest.raises(DataError, match=r"valid JSON; got .* in m-1\.5-chat/gsm8k\.json: "):
        read_responses(paths)


def test_a_task_of_livebench_is_read_alone(tmp_path):
    BY_FORMAT["livebench"].write(tmp_path)
    assert means(read_responses(tmp_path, task="language_task")) == {"a": [0.25], "b": [0.5]}
    with pytest.raises(DataError, match=r"task must name one of .*; got 'chess'"):
        read_responses(tmp_path, task="chess")


def test_logs_without_tasks_refuse_a_task(tmp_path):
    BY_FORMAT["terminal_bench"].write(tmp_path)
    (tmp_path / "run1" / "run_metadata.json").unlink()
    with pytest.raises(DataError, match=r"task must be left out .* the logs name none; got 'x'"):
        read_responses(tmp_path, task="x")


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("evalplus", [], "EvalPlus results; got no object eval in"),
        ("swebench", {"a__b-1": {"resolved": "yes"}}, "truth value for a__b-1; got 'yes' in"),
        ("openai_evals", {"spec": {}}, "events of the type match or metrics; got none"),
        ("table", {"system": ["a", "b"], "question": ["p"]}, "one length; got several in log.json"),
        ("battles", [1, 2], "objects, one per line or in one list; got 1 in .*log.json"),
    ],
)
def test_documents_of_another_layout_are_named(tmp_path, format, content, message):
    path = tmp_path / ("report.json" if format == "swebench" else "log.json")
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        read_battles(path) if format == "battles" else read_responses(path, format=format)


def test_metadata_of_another_layout_are_named(tmp_path):
    BY_FORMAT["terminal_bench"].write(tmp_path)
    (tmp_path / "run1" / "run_metadata.json").write_text("[]")
    with pytest.raises(DataError, match=r"got .* in run1/run_metadata\.json: leave it out"):
        read_responses(tmp_path)


@pytest.mark.parametrize(
    ("format", "file", "old", "new", "suffix"),
    [
        (
            "terminal_bench",
            "run1/run_metadata.json",
            '"dataset_name": "core"',
            '"dataset_name": "core", "agent_kwargs": {"effort": "high"}',
            "terminus__m (effort=high)",
        ),
        (
            "mcpmark",
            "exp/m__notion/run-1/a__one/meta.json",
            '"reasoning_effort": "default"',
            '"reasoning_effort": "high"',
            "m (reasoning_effort=high)",
        ),
        (
            "harbor",
            "job/t1__a/result.json",
            '"version": "2.0"',
            '"version": "2.1"',
            "terminus-2__m",
        ),
        (
            "euroeval",
            "euroeval_benchmark_results.jsonl",
            '"few_shot": true',
            '"few_shot": false',
            "a (few_shot=false)",
        ),
        ("mt_bench", "gpt-4_single.jsonl", '"gpt-4"', '"gpt-5"', "a (judge=gpt-5)"),
        (
            "openai_evals",
            "log.jsonl",
            '"run_id": "r"}',
            '"run_id": "t", "run_config": {"eval_spec": {"args": {"num_few_shot": 5}}}}',
            "gpt-4 (num_few_shot=5)",
        ),
    ],
)
def test_what_tells_systems_apart(tmp_path, format, file, old, new, suffix):
    example = next(each for each in EXAMPLES if each.format == format)
    for folder in ("one", "two"):
        example.write(tmp_path / folder)
    changed(tmp_path / "two" / file, old, new)
    if format == "harbor":
        changed(tmp_path / "two" / file, '"id-t1__a"', '"id-other"')
    assert any(name.startswith(suffix) for name in read_responses(tmp_path).systems)
    assert len(read_responses(tmp_path).systems) > len(example.right)


def test_prompts_and_columns_of_promptfoo_are_systems(tmp_path):
    example = next(each for each in EXAMPLES if each.format == "promptfoo")
    example.write(tmp_path)
    path = tmp_path / "results.json"
    changed(path, '"label": "p"}, "success": true', '"label": "q"}, "success": true')
    assert read_responses(path).systems == (
        "openai:a (prompt=q)",
        "openai:a (prompt=p)",
        "openai:b (prompt=p)",
        "openai:b (prompt=q)",
    )


PROMPTFOO_TABLES = {
    "columns of grades": """Description,q,[openai:a] ask {{q}},Status,Score,Named Scores,\
Grader Reason,Comment,[openai:b] ask {{q}},Status,Score,Named Scores,Grader Reason,Comment
first,1,"a text,
of two lines",PASS,1.00,"{""tone"":0.25}",good,,no,FAIL,0.50,"{""tone"":0.75}",,
second,2,[x],PASS,1.00,,,,HTTP 503,ERROR,0.00,,,
third,3,yes,FAIL,0.25,,,,,,,,,
""",
    "grades before texts": """q,[openai:a] ask {{q}},[openai:b] ask {{q}}
1,"[PASS] (1.00, tone: 0.25)

a text",[FAIL] (0.50) no
2,[PASS] (1.00) [x],[ERROR] (0.00) HTTP 503
3,[FAIL] (0.25) yes,
""",
}


@pytest.mark.parametrize("name", PROMPTFOO_TABLES)
def test_tables_of_promptfoo(tmp_path, name):
    path = tmp_path / "output.csv"
    path.write_text(PROMPTFOO_TABLES[name])
    data = read_responses(path)
    assert data.systems == ("openai:a", "openai:b")
    assert data.outcomes[..., 0].tolist() == [[1, 1, 0], [0, 0, -1]]
    assert read_responses(path, count_as_wrong=()).outcomes[1, :, 0].tolist() == [0, -1, -1]
    scores = read_responses(path, metric="score", count_as_wrong=()).scores[..., 0]
    np.testing.assert_array_equal(scores, [[1.0, 1.0, 0.25], [0.5, np.nan, np.nan]])


def test_tables_of_promptfoo_without_providers_are_named_by_prompts(tmp_path):
    path = tmp_path / "output.csv"
    path.write_text("be brief {{q}},be polite {{q}},q\n[PASS] (1.00) a,[FAIL] (0.00) b,1\n")
    assert read_responses(path).systems == (
        "output (prompt=be brief {{q}})",
        "output (prompt=be polite {{q}})",
    )
    path.write_text("system,question,outcome\na,[PASS] x,1\nb,[PASS] x,0\n")
    assert read_responses(path).systems == ("a", "b")


def test_lines_of_promptfoo(tmp_path):
    example = next(each for each in EXAMPLES if each.format == "promptfoo")
    example.write(tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())["results"]["results"]
    path = tmp_path / "output.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in results))
    data = read_responses(path)
    assert data.fingerprint == read_responses(tmp_path / "results.json").fingerprint
    (tmp_path / "results.json").rename(tmp_path / "output.json")
    both = read_table(tmp_path)
    assert both.frame["trial"].max() == 0
    assert "1 copy of a log left out (output.jsonl)" in both.message


def test_harbor_jobs_without_their_trials(tmp_path):
    stats = {
        "reward_stats": {"reward": {"0.0": ["t1__a"], "1.0": ["t2__b", "t1__c"]}},
        "exception_stats": {"AgentTimeoutError": ["t4__d"]},
    }
    job = {"id": "x", "stats": {"evals": {"terminus-2__m__tb2": stats}}}
    path = tmp_path / "result.json"
    path.write_text(json.dumps(job))
    data = read_responses(path)
    assert means(data) == {"terminus-2__m": [0.5, 1.0, 0.0]}
    assert data.questions == ("t1", "t2", "t4")
    assert read_responses(path, count_as_wrong=()).questions == ("t1", "t2")


def test_harbor_jobs_that_may_have_cut_names_of_tasks(tmp_path, caplog):
    name = "instance_internetarchive__openli"
    for number, caution in ((1, False), (2, True)):
        trials = [f"{name}__{letter}" for letter in "abc"[:number]]
        stats = {"reward_stats": {"reward": {"1.0": trials, "0.0": ["t1__d", "t1__e"]}}}
        job = {"id": "x", "stats": {"evals": {"terminus-2__m__pro": stats}}}
        (tmp_path / "result.json").write_text(json.dumps(job))
        read_responses(tmp_path / "result.json")
        assert (f"trials of {name!r} may be of several tasks" in caplog.text) is caution


def test_rewards_of_the_first_versions_of_harbor(tmp_path):
    BY_FORMAT["harbor"].write(tmp_path)
    for name in ("t1__a", "t2__b"):
        path = tmp_path / "job" / name / "result.json"
        told = json.loads(path.read_text())
        path.write_text(json.dumps(told | {"verifier_result": told["verifier_result"]["rewards"]}))
    assert means(read_responses(tmp_path)) == BY_FORMAT["harbor"].right


def test_long_answers_to_the_first_problem_of_livecodebench(tmp_path):
    long = "x" * 100_000
    problem = {"question_title": "t", "output_list": [long], "question_id": "1"}
    path = tmp_path / "m_codegeneration_output_eval_all.json"
    path.write_text(json.dumps([problem | {"graded_list": [True]}]))
    assert means(read_responses(tmp_path)) == {"m": [1]}


LONG = 'a "text" \\ ' * 20_000
LONG_FIRST = {
    "opencompass.json": {"accuracy": 5.0, "details": [{"pred": LONG, "correct": True}]},
    "table.json": [{"model": "m", "answer": LONG, "question": "q", "score": 1}],
    "table.jsonl": [{"model": "m", "answer": LONG, "question": "q", "score": 1}],
    "j_single.jsonl": [
        {"question_id": 1, "model": "m", "judge": ["j"], "judgment": LONG, "score": 9, "turn": 1}
    ],
    "battles.jsonl": [{"model_a": "m", "answer_a": LONG, "model_b": "n", "winner": "model_a"}],
    "battles.json": [{"model_a": "m", "answer_a": LONG, "model_b": "n", "winner": "model_a"}],
}


@pytest.mark.parametrize("name", LONG_FIRST)
def test_logs_are_recognised_behind_a_long_first_answer(tmp_path, name):
    content = LONG_FIRST[name]
    lines = name.endswith("l")
    text = "\n".join(map(json.dumps, content)) if lines else json.dumps(content, indent=4)
    (tmp_path / name).write_text(text)
    assert "m" in read_data(tmp_path).systems or name == "opencompass.json"


def test_scores_of_openai_evals_that_are_none_are_unscored(tmp_path):
    lines: list[dict] = [{"spec": {"completion_fns": ["m"], "eval_name": "e", "run_id": "r"}}]
    for number, score in enumerate((1.0, None)):
        data = {"choice": "A", "score": score, "metascore": None}
        lines.append({"sample_id": f"s{number}", "type": "metrics", "data": data})
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    table = read_table(tmp_path, count_as_wrong="unscored")
    assert table.frame["outcome"].tolist() == [1, 0]


def test_metrics_of_opencompass_may_have_parts(tmp_path):
    BY_FORMAT["opencompass"].write(tmp_path)
    for path in tmp_path.glob("results/*/*.json"):
        path.write_text(json.dumps({"by_level": {"easy": 1.0}} | json.loads(path.read_text())))
    assert means(read_responses(tmp_path)) == BY_FORMAT["opencompass"].right


def test_suites_of_mcpmark_have_questions_of_their_own(tmp_path):
    BY_FORMAT["mcpmark"].write(tmp_path)
    path = tmp_path / "exp/m__notion/run-1/a__one/meta.json"
    easy = tmp_path / "exp/m__notion-easy/run-1/a__one/meta.json"
    easy.parent.mkdir(parents=True)
    easy.write_text(path.read_text())
    data = read_responses(tmp_path)
    assert data.questions == ("github/b__two", "notion-easy/a__one", "notion/a__one")
    assert data.groups == ("github", "notion-easy", "notion")


def test_document_ids_that_repeat_are_places(tmp_path):
    example = next(each for each in EXAMPLES if each.format == "lighteval")
    rows = [row | {"doc": {"id": ""}} for row in next(iter(example.files.values()))]
    type(example)("lighteval", {next(iter(example.files)): rows}, {}).write(tmp_path)
    assert read_responses(tmp_path, metric="f1").questions == ("0", "1")


def test_numbers_of_tests_that_stand_for_different_variables_are_told_apart(tmp_path):
    example = next(each for each in EXAMPLES if each.format == "promptfoo")
    for folder, asked in (("one", "2 + 2"), ("two", "3 + 3")):
        example.write(tmp_path / folder)
        path = tmp_path / folder / "results.json"
        changed(path, '"evalId": "e"', f'"evalId": "{folder}"')
        changed(path, '"testIdx": 0', f'"vars": {{"q": "{asked}"}}, "testIdx": 0')
        changed(path, '"testIdx": 1', f'"vars": {{"q": "{asked} + 1"}}, "testIdx": 1')
    data = read_responses(tmp_path)
    assert data.questions == ("0", "1", "0#2", "1#2")
    assert not (data.outcomes == -1).any()


def test_tests_of_promptfoo_that_failed_are_told_apart_by_their_variables(tmp_path):
    for name, asked, reason in (("one", "2 + 2", 0), ("two", "3 + 3", 2)):
        told = {"prompt": {"raw": "?"}, "promptIdx": 0, "testIdx": 0, "vars": {"q": asked}}
        right = told | {"success": True, "score": 1.0, "failureReason": 0}
        rows = [right | {"provider": {"id": "a"}}]
        rows += [right | {"provider": {"id": "b"}, "failureReason": reason, "error": "HTTP 503"}]
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": {"results": rows}}))
    data = read_responses(tmp_path)
    assert data.questions == ("0", "0#2")
    assert data.outcomes.tolist() == [[[1], [1]], [[1], [0]]]


def test_revisions_of_a_model_are_systems_of_lighteval(tmp_path):
    example = next(each for each in EXAMPLES if each.format == "lighteval")
    name, rows = next(iter(example.files.items()))
    for day, revision in ((1, "step1000"), (2, "step143000")):
        time = f"2026-01-0{day}T00"
        type(example)("lighteval", {name.replace("2026-01-01T00", time): rows}, {}).write(tmp_path)
        results = tmp_path / "results" / "org" / "m" / f"results_{time}.json"
        results.parent.mkdir(parents=True, exist_ok=True)
        config = {"model_name": "org/m", "revision": revision}
        results.write_text(json.dumps({"config_general": {"model_config": config}}))
    systems = read_responses(tmp_path, metric="f1").systems
    assert systems == ("org/m (revision=step1000)", "org/m (revision=step143000)")


def test_metrics_that_were_stored_as_text(tmp_path):
    name = "details_gsm8k|0_2026-01-01T00.parquet"
    rows = [{"doc": "{'id': 'q1'}", "metric": "{'em': 1.0}"}]
    rows += [{"doc": "{'id': 'q2'}", "metric": "{'em': 0.0}"}]
    type(EXAMPLES[0])("lighteval", {name: rows}, {}).write(tmp_path)
    data = read_responses(tmp_path)
    assert (data.questions, data.outcomes.ravel().tolist()) == (("q1", "q2"), [1, 0])


def test_metrics_of_texts_and_of_probabilities_are_of_the_same_documents(tmp_path):
    def rows(ids):
        docs = [{"doc": {"id": name}, "model_response": {"text": ["x"]}} for name in ids]
        acc = [each | {"metric": {"acc": 1.0, "em": None}} for each in docs]
        em = [each | {"metric": {"acc": None, "em": float(ids[0] == "2")}} for each in docs]
        return acc + em

    files = {
        f"details/{model}/2026-01-01T00/details_mmlu_2026-01-01T00.parquet": rows(ids)
        for model, ids in (("m", ["2", "0", "1"]), ("n", ["0"]))
    }
    type(EXAMPLES[0])("lighteval", files, {}).write(tmp_path)
    data = read_responses(tmp_path, metric="em")
    assert data.questions == ("2", "0", "1")
    assert means(data) == {"m": [1.0, 1.0, 1.0], "n": [None, 0.0, None]}


def test_details_of_a_hub_are_called_by_their_model(tmp_path):
    files = {
        f"details_org__{model}/2026_01_0{day}T00/details_gsm8k_2026-01-0{day}T00.parquet": [
            {"metrics": f"{{'em': {value}, 'f1': nan}}"} for value in values
        ]
        for model, day, values in (("m", 1, [1, 0]), ("m", 2, [1, 1]), ("n", 1, [1, 0]))
    }
    type(EXAMPLES[0])("lighteval", files, {}).write(tmp_path)
    data = read_responses(tmp_path, metric="em")
    assert means(data) == {"details_org__m": [1.0, 0.5], "details_org__n": [1.0, 0.0]}


def euroeval(folder, lines):
    """Write lines of EuroEval, and return what is read from them."""
    path = folder / "euroeval_benchmark_results.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return read_responses(path)


def euroeval_line(model, samples, total="test_mcc"):
    """Return a line as versions before 17 write it."""
    results = {"raw": samples, "total": {total: 50.0, f"{total}_se": 1.0}}
    return {"dataset": "d", "task": "t", "model": model, "results": results, "few_shot": None}


def test_lines_of_every_version_of_euroeval(tmp_path):
    additional = {"dataset": "d", "languages": "[]", "task": "t", "few_shot": None}
    additional |= {"raw_results": json.dumps([{"mcc": 0.5, "failed_instances": []}, {"mcc": 0.25}])}
    line = {
        "schema_version": "0.2.1",
        "evaluation_id": "d/a/1",
        "model_info": {"name": "a", "id": "a", "additional_details": {"generative_type": None}},
        "eval_library": {
            "name": "euroeval",
            "version": "17.0.0",
            "additional_details": additional,
        },
        "evaluation_results": [{"evaluation_name": "test_mcc", "score_details": {"score": 37.5}}],
    }
    # The first one of a sample is the loss where a model was trained.
    trained = [{"test_loss": 3.5, "test_mcc": 0.75}, {"test_loss": 4.5, "test_mcc": 0.5}]
    data = euroeval(tmp_path, [line, euroeval_line("b", trained)])
    assert data.paired
    assert data.values.tolist() == [[[0.5, 0.25]], [[0.75, 0.5]]]


def test_samples_of_euroeval_that_failed_leave_trials_unpaired(tmp_path):
    lines = [euroeval_line("a", [{"mcc": 0.5}] * 3), euroeval_line("b", [{"mcc": 0.5}] * 2)]
    assert not euroeval(tmp_path, lines).paired


def test_a_metric_of_euroeval_that_is_lower_for_better_models_is_refused(tmp_path):
    samples = [{"bits_per_character": 0.5}, {"bits_per_character": 0.25}]
    with pytest.raises(DataError, match=r"^metric must be higher .* got 'bits_per_character'"):
        euroeval(tmp_path, [euroeval_line("a", samples, "test_bits_per_character")])


def test_versions_of_euroeval_that_rank_by_other_metrics_leave_a_choice(tmp_path):
    samples = [{"f1": 0.5, "em": 0.25}]
    lines = [euroeval_line("a", samples, "test_f1"), euroeval_line("b", samples, "test_em")]
    with pytest.raises(DataError, match="metric must name one of f1, em"):
        euroeval(tmp_path, lines)
    path = tmp_path / "euroeval_benchmark_results.jsonl"
    assert read_responses(path, metric="f1").values.tolist() == [[[0.5]], [[0.5]]]


def test_a_question_of_livebench_has_one_category(tmp_path):
    told = {"question_id": "q", "task": "t", "turn": 1, "tstamp": 1.5}
    judged = (("a", 1, "coding"), ("b", 0, "agentic_coding"), ("c", 1, "coding"))
    lines = [
        told | {"model": model, "score": score, "category": category}
        for model, score, category in judged
    ]
    (tmp_path / "ground_truth_judgment.jsonl").write_text("\n".join(map(json.dumps, lines)))
    data = read_responses(tmp_path)
    assert (data.questions, data.groups) == (("q",), ("coding",))
    assert means(data) == {"a": [1.0], "b": [0.0], "c": [1.0]}


def test_subjects_of_local_runs_of_mmlu_pro_are_no_systems(tmp_path):
    for model, right in (("m", "A"), ("n", "B")):
        for number, subject in enumerate(("law", "math")):
            path = tmp_path / model / "CoT" / "all" / f"{subject}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            told = {"question_id": number, "question": "?", "answer": "A", "answer_index": 0}
            path.write_text(json.dumps([told | {"category": subject, "pred": right}]))
    assert means(read_responses(tmp_path)) == {"m": [1.0, 1.0], "n": [0.0, 0.0]}


def test_details_under_another_name(tmp_path):
    example = next(each for each in EXAMPLES if each.format == "lighteval")
    rows = next(iter(example.files.values()))
    type(example)("lighteval", {"m/gsm8k.parquet": rows}, {}).write(tmp_path)
    assert means(read_responses(tmp_path, metric="extractive_match")) == {"m": [1.0, 0.0]}


def test_repeats_of_promptfoo_are_trials_though_they_are_numbered_as_tests(tmp_path):
    def row(provider, test, variables, success, **more):
        case = {"vars": variables, "assert": [{"type": "equals", "value": "4"}], "metadata": {}}
        told = {"provider": {"id": provider}, "prompt": {"raw": "?"}, "promptIdx": 0}
        told |= {"success": success, "score": float(success), "failureReason": 1 - success}
        return told | {"testIdx": test, "testCase": case, "vars": variables, **more}

    # Two tests that ran twice, as they came in, and once in another run.
    asked = [{"q": "2 + 2"}, {"q": "2 + 2"}, {"q": "1 + 3"}, {"q": "1 + 3"}]
    twice = [row("a", test, asked[test], test in (0, 2)) for test in (3, 1, 0, 2)]
    twice[0] |= {"failureReason": 2, "error": "HTTP 503", "namedScores": {}}
    named = {"exact": 0.5, "Latency": 1.0}
    once = [row("b", test, asked[2 * test], True, namedScores=named) for test in (0, 1)]
    for name, rows in (("twice", twice), ("once", once)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"results": {"results": rows}}))
    data = read_responses(tmp_path)
    assert data.questions == ("0", "1")
    outcomes = dict(zip(data.systems, data.outcomes.tolist(), strict=True))
    assert outcomes == {"a": [[1, 0], [1, 0]], "b": [[1, -1], [1, -1]]}
    table = read_table(tmp_path, metric="exact")
    assert table.frame.groupby("system")["outcome"].mean().to_dict() == {"a": 0.0, "b": 0.5}
    table = read_table(tmp_path, metric="Latency")  # one that passed
    assert table.frame.groupby("system")["outcome"].mean().to_dict() == {"a": 0.0, "b": 1.0}


def test_an_evaluation_of_promptfoo_that_was_written_twice_counts_once(tmp_path):
    example = next(each for each in EXAMPLES if each.format == "promptfoo")
    example.write(tmp_path)
    document = json.loads((tmp_path / "results.json").read_text())
    (tmp_path / "export.json").write_text(json.dumps(document, indent=2))
    assert read_responses(tmp_path).shape[2] == 1
    (tmp_path / "export.json").write_text(json.dumps(document | {"evalId": "other"}))
    assert read_responses(tmp_path).shape[2] == 2


def test_exports_of_one_evaluation_under_two_names_are_pointed_out(tmp_path, caplog):
    outcomes = {"openai:a": [1, 0, 1, 1], "openai:b": [0, 0, 1, 0]}
    results = [
        {
            "provider": {"id": provider},
            "prompt": {"raw": "be brief", "label": "be brief"},
            "promptIdx": 0,
            "testIdx": test,
            "vars": {"q": str(test)},
            "success": bool(right),
            "gradingResult": {"pass": bool(right)},
        }
        for provider, own in outcomes.items()
        for test, right in enumerate(own)
    ]
    document = {"evalId": "eval-1", "results": {"version": 3, "results": results}}
    (tmp_path / "eval.json").write_text(json.dumps(document))
    read_responses(tmp_path)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
    header = "q," + ",".join(f"[{name}] be brief,Status,Score,Named Scores" for name in outcomes)
    rows = [
        f"{test}," + ",".join(f"x,{'PASS' if right else 'FAIL'},{right},{{}}" for right in both)
        for test, both in enumerate(zip(*outcomes.values(), strict=True))
    ]
    path = tmp_path / "export.csv"
    path.write_text("\n".join([header, *rows]))
    assert read_responses(tmp_path).shape == (2, 4, 2)
    assert "eval.json and " in caplog.text
    assert "export.csv have the same outcomes, and count twice" in caplog.text
    caplog.clear()
    path.write_text(path.read_text().replace("PASS", "FAIL", 1))
    read_responses(tmp_path)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


def test_columns_of_one_provider_and_prompt_are_systems(tmp_path):
    example = next(each for each in EXAMPLES if each.format == "promptfoo")
    example.write(tmp_path)
    path = tmp_path / "results.json"
    text = path.read_text().replace("openai:b", "openai:a")
    first, second, third = text.partition("HTTP 503")
    before, mark, after = first.rpartition('"promptIdx": 0')
    third = third.replace('"promptIdx": 0', '"promptIdx": 1')
    path.write_text(before + mark.replace("0", "1") + after + second + third)
    assert read_responses(path).systems == ("openai:a (promptIdx=0)", "openai:a (promptIdx=1)")


@pytest.mark.parametrize("copy", ["{} (1)", "{} copy", "Copy of {}", "{}-copy2"])
def test_copies_beside_a_file_count_once_and_other_files_do_not(tmp_path, copy):
    example = next(each for each in EXAMPLES if each.format == "bigcodebench")
    example.write(tmp_path)
    (path,) = tmp_path.iterdir()
    other = path.with_stem(copy.format(path.stem))
    other.write_bytes(path.read_bytes())
    assert read_responses(tmp_path).shape == (1, 2, 1)
    assert "1 copy of a log left out" in read_table(tmp_path).message
    other.write_text(other.read_text().replace("timeout", "pass"))
    assert len(read_responses(tmp_path).systems) == 2


@pytest.mark.parametrize("title", ["format | files | system", "tested on | formats"])
def test_every_format_is_documented(title: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    table = page.partition(f"| {title}")[2].partition("\n\n")[0]
    unnamed = [name for name in READERS if name != "table" and f"`{name}`" not in table]
    assert not unnamed, f"add {unnamed} to the table '{title}' of docs/formats.md"


@pytest.mark.parametrize(
    ("name", "first"), [("runs.json", "task_id"), ("runs.jsonl", "evaluation_id")]
)
def test_tables_that_begin_like_logs_are_tables(tmp_path, name, first):
    # tau-bench names no model: those of a table would be trials of one.
    rows = [
        {first: "t", "model": model, "question": "q", "reward": reward, "trial": trial}
        for trial, (model, reward) in enumerate((("a", 1), ("b", 0)))
    ]
    path = tmp_path / name
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows))
    assert read_table(path).source == "table"
    assert read_responses(path).systems == ("a", "b")


def test_scorers_whose_names_begin_alike_are_two_of_a_table_of_samples(tmp_path):
    row = {"eval_id": "e", "sample_id": "x", "id": "s1", "epoch": 1, "model": "a", "task_name": "t"}
    row |= {"score_match": "C", "score_match_strict": "I", "score_match_explanation": "why"}
    path = tmp_path / "samples.csv"
    pd.DataFrame([row]).to_csv(path, index=False)
    with pytest.raises(DataError, match="scorer must name one of match, match_strict for task 't'"):
        read_responses(path)
    assert means(read_responses(path, scorer="match_strict")) == {"a": [0.0]}
