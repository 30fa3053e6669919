import json

import pytest

from bayesrank.errors import DataError
from bayesrank.readers import read_responses, read_table
from tests.readers.test_formats import compress


def test_questions_are_joined_on_their_hash(write_samples, tmp_path):
    write_samples("a", {"h1": 1.0, "h2": 0.0})
    write_samples("b", {"h2": 1.0, "h3": 1.0})
    data = read_responses(tmp_path)
    assert data.systems == ("a", "b")
    assert data.questions == ("h1", "h2", "h3")
    assert data.outcomes[..., 0].tolist() == [[1, 0, -1], [-1, 1, 1]]
    assert not data.paired


def test_runs_are_trials_in_the_order_of_their_times(write_samples, tmp_path):
    write_samples("a", {"h1": 1.0}, day=1)
    write_samples("a", {"h1": 0.0}, day=2)
    write_samples("b", {"h1": 1.0}, day=3)
    table = read_table(tmp_path)
    assert table.message == "2 systems, 1 question, 2 trials; 1 of 4 outcomes missing (1 absent)"
    assert read_responses(tmp_path).outcomes.tolist() == [[[1, 0]], [[1, -1]]]


def test_copies_of_a_document_are_different_questions(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    line = {"doc_id": 0, "filter": "none", "metrics": ["acc"], "doc_hash": "h", "acc": 1.0}
    lines = [line, line | {"doc_id": 1, "acc": 0.0}]
    path = folder / "samples_sums_2026-01-01T00-00-00.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    data = read_responses(path)
    assert data.questions == ("h", "h#2")
    assert data.outcomes.ravel().tolist() == [1, 0]


def test_versions_that_do_not_list_metrics_and_filters(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    path = folder / "samples_sums_2024-01-01T00-00-00.jsonl"
    path.write_text('{"doc_id": 0, "doc": {}, "target": "1", "doc_hash": "h", "acc": true}\n')
    assert read_responses(path).outcomes.tolist() == [[[1]]]


@pytest.mark.parametrize(
    ("filter_list", "names"),
    [
        (
            [{"name": "strict-match"}, {"name": "flexible-extract"}],
            "strict-match, flexible-extract",
        ),
        (None, "none, filter 2"),
    ],
)
def test_versions_that_do_not_name_the_filters_of_lines(
    write_samples, tmp_path, filter_list, names
):
    results = {"configs": {"sums": {"filter_list": filter_list}}}
    path = write_samples("a", {"h1": 0.0, "h2": 0.0}, results=results)
    write_samples("a", {"h1": 1.0, "h2": 0.0})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        del line["filter"]
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(DataError, match=f"filter must name one of {names} for task"):
        read_responses(tmp_path)
    data = read_responses(tmp_path, filter=names.partition(", ")[2])
    assert (data.questions, data.outcomes.tolist()) == (("h1", "h2"), [[[1], [0]]])


def test_repeats_whose_scores_are_stored_are_trials(write_samples):
    path = write_samples("a", {"h1": 0.5, "h2": 1.0})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line, scores in zip(lines, ([0.0, 1.0], [1.0, 1.0]), strict=True):
        line["scores_per_repeat"] = {"acc": scores}
    path.write_text("\n".join(map(json.dumps, lines)))
    assert read_responses(path).outcomes.tolist() == [[[0, 1], [1, 1]]]


def test_systems_without_the_filter_are_pointed_out(write_samples, tmp_path):
    write_samples("a", {"h": 1.0}, filter="first")
    write_samples("b", {"h": 1.0}, filter="vote")
    assert read_table(tmp_path, filter="first").cautions == (
        "b has no answers of the kind that was read, and will not be ranked.",
    )


def test_open_choices_list_the_names(write_samples, tmp_path):
    write_samples("a", {"h": 1.0}, task="sums", filter="first")
    write_samples("a", {"h": 0.0}, task="sums", filter="vote")
    write_samples("a", {"h": 1.0}, task="words_2026", metric="acc")
    write_samples("a", {"h": 0.0}, task="words_2026", metric="f1")
    with pytest.raises(
        DataError, match=r"task must name one of sums, words_2026; got None \(pass task=\.\.\.\)"
    ):
        read_responses(tmp_path)
    with pytest.raises(
        DataError,
        match=r"filter must name one of first, vote for task 'sums'; got None \(pass filter=",
    ):
        read_responses(tmp_path, task="sums")
    with pytest.raises(DataError, match=r"filter must name one of first, vote.* got 'last'$"):
        read_responses(tmp_path, task="sums", filter="last")
    with pytest.raises(DataError, match=r"metric must name one of acc, f1 for task 'words_2026'"):
        read_responses(tmp_path, task="words_2026")
    assert read_responses(tmp_path, task="sums", filter="vote").outcomes.item() == 0
    with pytest.raises(DataError, match=r"scorer must be left out in format lm_eval"):
        read_responses(tmp_path, scorer="match")


def test_metric_where_lower_is_better_is_refused(write_samples, tmp_path):
    results = {"higher_is_better": {"sums": {"error": False}}}
    write_samples("a", {"h": 0.2}, metric="error", results=results)
    with pytest.raises(DataError, match=r"metric must be higher for better systems; got 'error'"):
        read_responses(tmp_path)


def test_models_in_one_folder_are_systems(write_samples, tmp_path):
    # With --output_path x.json, samples and results of all models lie in the same folder.
    for day, model in enumerate(("org/a", "org/b"), start=1):
        path = write_samples("all", {"h": 1.0}, day=day, results={"model_name": model})
        results = path.with_name(f"results_{path.stem[-26:]}.json")
        results.rename(results.with_name(results.name.replace("results", "x")))
    assert read_responses(tmp_path).systems == ("org/a", "org/b")


@pytest.mark.parametrize(
    ("one", "other", "suffix"),
    [
        (
            {"config": {"model_args": "pretrained=m,revision=step1"}},
            {"config": {"model_args": "pretrained=m,revision=step2"}},
            "revision=step2",
        ),
        (
            {"config": {"model_args": {"pretrained": "m", "dtype": "float16"}}},
            {"config": {"model_args": {"pretrained": "m", "dtype": "bfloat16"}}},
            "dtype=bfloat16",
        ),
        (
            {"config": {"gen_kwargs": {"temperature": 0}}},
            {"config": {"gen_kwargs": {"temperature": 1}}},
            "temperature=1",
        ),
        ({"n-shot": {"sums": 0}}, {"n-shot": {"sums": 5}}, "n-shot=5"),
        ({"versions": {"sums": 1}}, {"versions": {"sums": 2}}, "task_version=2"),
        ({"chat_template_sha": None}, {"chat_template_sha": "ab"}, "chat_template_sha=ab"),
    ],
)
def test_what_tells_runs_of_one_folder_apart(write_samples, tmp_path, one, other, suffix):
    write_samples("a", {"h": 1.0}, day=1, results={"model_name": "m", **one})
    write_samples("a", {"h": 0.0}, day=2, results={"model_name": "m", **other})
    data = read_responses(tmp_path)
    assert data.shape == (2, 1, 1)
    assert data.systems[1] == f"a ({suffix})"
    field = suffix.partition("=")[0]
    assert read_responses(tmp_path, pool=field).outcomes.tolist() == [[[1, 0]]]


def test_runs_without_results_are_told_apart_by_their_prompts(write_samples, tmp_path):
    for day, prompt in ((1, "p0"), (2, "p5")):
        path = write_samples("a", {"h": 1.0}, day=day)
        line = json.loads(path.read_text()) | {"prompt_hash": prompt}
        path.write_text(json.dumps(line))
    assert read_responses(tmp_path).systems == ("a (prompts=p0)", "a (prompts=p5)")


def test_subtasks_are_groups_of_one_benchmark(write_samples, tmp_path):
    for task, shots in (("mmlu_law", 5), ("mmlu_virology", 3), ("gsm8k", 8)):
        for model in ("a", "b"):
            results = {"n-shot": {task: shots}, "model_name": model}
            write_samples(model, {"h1": 1.0, "h2": 0.0}, task=task, day=shots, results=results)
    data = read_responses(tmp_path, task="mmlu_*")
    assert data.systems == ("a", "b")
    assert data.groups == ("mmlu_virology", "mmlu_virology", "mmlu_law", "mmlu_law")
    assert data.questions[0] == "mmlu_virology/h1"
    with pytest.raises(DataError, match=r"task must name one of .* got 'arc_\*'"):
        read_responses(tmp_path, task="arc_*")


def test_copied_run_counts_once_and_another_one_of_its_time_is_refused(write_samples, tmp_path):
    path = write_samples("a", {"h": 1.0})
    copy = tmp_path / "copy" / "a" / path.name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(path.read_bytes())
    assert read_responses(tmp_path).outcomes.tolist() == [[[1]]]
    assert read_table(tmp_path).message.endswith(f"1 copy of a log left out ({path.name})")
    copy.write_text(copy.read_text().replace("1.0", "0.0"))
    with pytest.raises(DataError, match=r"every run once; got the run '2026-01-01T.*: leave out"):
        read_responses(tmp_path)


def test_metric_that_is_no_score(write_samples, tmp_path):
    path = write_samples("a", {"h": 35.2}, metric="perplexity")
    with pytest.raises(DataError, match=r"metric must be higher .* got 'perplexity'"):
        read_responses(tmp_path, scale=(0, 100))
    path.write_text(path.read_text().replace("perplexity", "bleu"))
    with pytest.raises(DataError, match=r"lie in \[0, 1\] .* got 35\.2 for system 'a'"):
        read_responses(tmp_path)


def test_truncated_samples(write_samples):
    path = write_samples("a", {"h1": 1.0, "h2": 1.0})
    path.write_text(path.read_text()[:-10])
    with pytest.raises(DataError, match=r"valid JSON; got .*jsonl, line 2: the file may be cut"):
        read_responses(path)


def test_samples_without_a_hash(tmp_path):
    path = tmp_path / "samples_sums_2026-01-01T00-00-00.jsonl"
    path.write_text('{"doc_id": 0, "acc": 1}\n')
    with pytest.raises(DataError, match=r"samples with a doc_hash; got None"):
        read_responses(path)


def test_samples_with_metrics_of_another_shape(tmp_path):
    path = tmp_path / "samples_sums_2026-01-01T00-00-00.jsonl"
    path.write_text('{"doc_hash": "h", "metrics": [["acc"]], "acc": 1}\n')
    with pytest.raises(DataError, match=r"samples with a list of metrics; got \[\['acc'\]\] in"):
        read_responses(path)


def test_samples_under_another_name(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"doc_id": 0, "acc": 1}\n')
    with pytest.raises(DataError, match=r"named samples_<task>_<time>\.jsonl in format lm_eval"):
        read_responses(path, format="lm_eval")


def test_samples_of_leaderboards_are_lists(tmp_path):
    for day, model in enumerate("ab", start=1):
        lines = [{"doc_id": n, "doc_hash": f"h{n}", "acc": float(model == "b")} for n in range(2)]
        path = tmp_path / model / f"samples_sums_2024-06-0{day}T00-00-00.000001.json"
        path.parent.mkdir()
        path.write_text(json.dumps(lines, indent=2))
    table = read_table(tmp_path)
    assert table.source == "lm_eval"
    assert read_responses(tmp_path).outcomes[..., 0].tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("task", "filter", "metric"),
    [
        ("tiny_gen", "take_first", "exact_match"),
        ("tiny_gen", "maj@4", "exact_match"),
        ("tiny_mc", "none", "acc_norm"),
    ],
)
def test_real_samples_recounted(shared, task, filter, metric):
    folder = shared / "logs" / "lmeval" / "mock"
    data = read_responses(folder, task=task, filter=filter, metric=metric)
    assert data.shape[0] == 3
    for system, grades in zip(data.systems, data.grades, strict=True):
        (path,) = (folder / system).glob(f"samples_{task}_*.jsonl")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        values = [line[metric] for line in lines if line["filter"] == filter]
        assert len(values) == data.shape[1]
        assert grades.mean() == pytest.approx(sum(values) / len(values), abs=1e-12)
        # The harness counted the same.
        (results,) = (folder / system).glob("results_*.json")
        reported = json.loads(results.read_text())["results"][task][f"{metric},{filter}"]
        assert grades.mean() == pytest.approx(reported, abs=1e-12)


def test_real_samples_need_the_documented_choices(shared):
    folder = shared / "logs" / "lmeval" / "mock"
    with pytest.raises(
        DataError, match=r"^task must name one of tiny_gen, tiny_mc; got None \(pass task=\.\.\.\)$"
    ):
        read_responses(folder)
    with pytest.raises(
        DataError, match=r"^filter must name one of take_first, maj@4 for task 'tiny_gen'; got None"
    ):
        read_responses(folder, task="tiny_gen")
    with pytest.raises(DataError, match=r"^metric must name one of acc, acc_norm for task 'tiny"):
        read_responses(folder, task="tiny_mc")
    means = read_responses(folder, task="tiny_gen", filter="take_first").grades.mean(axis=1)
    assert means.tolist() == [1.0, 0.5, 0.125]


def test_a_group_of_the_harness_names_its_subtasks(write_samples, tmp_path):
    groups = {"mmlu": ["mmlu_stem"], "mmlu_stem": ["mmlu_law", "mmlu_virology"]}
    results = {"group_subtasks": groups, "model_name": "m"}
    for task in ("mmlu_law", "mmlu_virology", "gsm8k"):
        write_samples("m", {"h": 1.0}, task=task, results=results)
    assert read_responses(tmp_path, task="mmlu").groups == ("mmlu_law", "mmlu_virology")
    assert read_responses(tmp_path, task="gsm8k").groups is None
    with pytest.raises(DataError, match=r"task must name one of gsm8k, mmlu_law, .* got 'arc'"):
        read_responses(tmp_path, task="arc")


def test_compressed_samples_and_results_are_the_same_runs(write_samples, tmp_path, caplog):
    for day, model in enumerate(("org/a", "org/b"), start=1):
        write_samples("all", {"h": 1.0}, day=day, results={"model_name": model})
    for path in list((tmp_path / "all").iterdir()):
        compress(path)
    with caplog.at_level("INFO", logger="bayesrank"):
        assert read_responses(tmp_path).systems == ("org/a", "org/b")
    assert "left out" not in caplog.text
