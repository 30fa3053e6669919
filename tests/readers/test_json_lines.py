"""Lines are in the schema of Every Eval Ever, instance_level_eval 0.2.1, and in py-irt's."""

import json

import pytest

from bayesrank.errors import DataError
from bayesrank.readers import read_responses, read_table

SUBJECTS = """\
{"subject_id": "ann", "responses": {"q1": 1, "q2": 0, "q3": 1}}
{"subject_id": "bo",  "responses": {"q1": 0, "q3": 1}}
{"subject_id": "bo",  "responses": {"q1": 1}}
"""


def sample(model, name, score, **changes):
    return {
        "schema_version": "0.2.1",
        "evaluation_id": "run-1",
        "model_id": model,
        "evaluation_name": "sums",
        "sample_id": name,
        "sample_hash": f"hash of {name}",
        "interaction_type": "single_turn",
        "input": {"raw": "1 + 1?", "reference": ["2"]},
        "output": {"raw": ["2"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score > 0.5},
        "error": None,
        **changes,
    }


@pytest.fixture
def write_lines(tmp_path):
    def write(*samples, name="0a1b_samples.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in samples))
        return path

    return write


def test_every_eval_ever_repeats_are_trials(write_lines):
    path = write_lines(
        sample("org/a", "s1", 1.0), sample("org/a", "s1", 0.0), sample("org/b", "s1", 1.0)
    )
    table = read_table(path)
    assert (table.source, table.paired, table.n_missing) == ("every_eval_ever", False, 1)
    assert read_responses(path).outcomes.tolist() == [[[1, 0]], [[1, -1]]]


def test_every_eval_ever_score_or_is_correct(write_lines):
    path = write_lines(sample("org/a", "s1", 0.75), sample("org/a", "s2", 0.25))
    assert read_responses(path).scores.tolist() == [[[0.75], [0.25]]]
    assert read_responses(path, metric="is_correct").outcomes.tolist() == [[[1], [0]]]
    with pytest.raises(DataError, match=r"metric must name one of score, is_correct; got 'f1'"):
        read_responses(path, metric="f1")


def test_every_eval_ever_errors_are_missing_and_kept(write_lines):
    path = write_lines(
        sample("org/a", "s1", 1.0),
        sample("org/b", "s1", 1.0),
        sample("org/a", "s2", 1.0),
        sample("org/b", "s2", 0.0, error="timeout"),
    )
    assert read_responses(path).outcomes.tolist() == [[[1], [1]], [[1], [-1]]]
    errors = read_table(path).to_dataarray().coords["error"]
    assert errors.sel(system="org/b", question="s2", trial=0).item() == "timeout"


def test_every_eval_ever_evaluations_are_tasks(write_lines):
    path = write_lines(sample("a", "s", 1.0), sample("a", "p", 0.0, evaluation_name="products"))
    assert read_responses(path, task="products").questions == ("p",)
    with pytest.raises(DataError, match=r"task must name one of sums, products; got None"):
        read_responses(path)


def test_every_eval_ever_names_that_stand_for_two_inputs_are_counted(write_lines):
    path = write_lines(sample("a", "s", 1.0), sample("b", "s", 1.0, sample_hash="another"))
    assert read_table(path).message.endswith("; 1 sample_id with different sample_hash")


@pytest.mark.parametrize("lost", ["model_id", "sample_id", "evaluation", "evaluation_name"])
def test_every_eval_ever_sample_of_another_shape(write_lines, lost):
    record = sample("a", "s", 1.0)
    del record[lost]
    with pytest.raises(DataError, match=rf"samples with evaluation_name, .*{lost}.*0a1b_"):
        read_responses(write_lines(record))


def test_every_eval_ever_cut_off(write_lines):
    path = write_lines(sample("a", "s", 1.0), sample("b", "s", 1.0))
    path.write_text(path.read_text()[:-30])
    with pytest.raises(DataError, match=r"valid JSON; got .* in .*/0a1b_samples\.jsonl, line 2"):
        read_responses(path)


@pytest.mark.parametrize("name", ["data.jsonl", "data.jsonlines"])
def test_py_irt_subjects_are_systems_and_their_lines_trials(tmp_path, name):
    (tmp_path / name).write_text(SUBJECTS)
    data = read_responses(tmp_path)
    assert data.systems == ("ann", "bo")
    assert data.questions == ("q1", "q2", "q3")
    assert data.outcomes.tolist() == [[[1, -1], [0, -1], [1, -1]], [[0, 1], [-1, -1], [1, -1]]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"subject_id": "a"}', r"lines with a subject_id and responses by item; got no 'respons"),
        ('{"subject_id": "a", "responses": [1]}', r"lines with a subject_id and responses"),
        ('{"subject_id": "a", "responses": {"q": "x"}}', r"outcomes must be .* for 'q'"),
        ('{"subject_id": "a", "responses": {"q"', r"valid JSON"),
    ],
)
def test_py_irt_broken_line(tmp_path, line, message):
    (tmp_path / "data.jsonl").write_text(line)
    with pytest.raises(DataError, match=message):
        read_responses(tmp_path)


def test_every_eval_ever_results_are_scorers(write_lines):
    path = write_lines(
        sample("org/a", "s1", 1.0, evaluation_result_id="exact_match"),
        sample("org/a", "s1", 0.25, evaluation_result_id="f1"),
    )
    with pytest.raises(DataError, match=r"scorer must name one of exact_match, f1; got None"):
        read_responses(path)
    assert read_responses(path, scorer="f1").scores.tolist() == [[[0.25]]]


def test_every_eval_ever_scores_that_are_lower_for_better_systems_are_refused(
    write_lines, tmp_path
):
    path = write_lines(sample("m", "s1", 0.25), sample("m", "s2", 0.75))
    result = {"evaluation_name": "sums", "metric_config": {"lower_is_better": True}}
    (tmp_path / "0a1b.json").write_text(json.dumps({"evaluation_results": [result]}))
    with pytest.raises(DataError, match=r"^metric must be higher .* got 'score' for 'sums' of"):
        read_responses(path)
    assert read_responses(path, metric="is_correct").outcomes.tolist() == [[[0], [1]]]


def test_every_eval_ever_settings_beside_the_samples_tell_systems_apart(write_lines, tmp_path):
    for name, temperature in (("0a", 0.0), ("1b", 1.0)):
        write_lines(sample("m", "s1", 1.0, evaluation_id=name), name=f"{name}_samples.jsonl")
        result = {
            "evaluation_name": "sums",
            "generation_config": {"generation_args": {"temperature": temperature}},
        }
        told = {"model_info": {"id": "m"}, "evaluation_results": [result]}
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    assert read_responses(tmp_path).systems == ("m (temperature=0.0)", "m (temperature=1.0)")
    assert read_responses(tmp_path, pool="temperature").shape == (1, 1, 2)


def test_files_of_one_system_that_share_some_questions_are_later_trials(tmp_path):
    for name, right in (("1", {"p": 1, "q": 0}), ("2", {"q": 1, "r": 0})):
        line = json.dumps({"subject_id": "a", "responses": right})
        (tmp_path / f"{name}.jsonl").write_text(line)
    data = read_responses(tmp_path, format="py_irt")
    assert data.questions == ("p", "q", "r")
    assert data.outcomes.tolist() == [[[1, -1], [0, 1], [-1, 0]]]
