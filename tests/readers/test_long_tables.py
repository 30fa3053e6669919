import json
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest

from bayesrank.errors import DataError
from bayesrank.readers import read_battles, read_data, read_responses, read_table
from bayesrank.responses import Responses

RAGGED = """model,question,trial,outcome
a,q1,0,1
a,q1,2,0
a,q2,0,1
b,q1,0,0
b,q1,1,1
b,q2,1,
"""


def write(folder, text, name="log.csv"):
    path = folder / name
    path.write_text(text)
    return path


def test_trial_numbers_are_kept_and_what_is_left_out_is_missing(tmp_path):
    data = read_responses(write(tmp_path, RAGGED))
    expected = [[[1, -1, 0], [1, -1, -1]], [[0, 1, -1], [-1, -1, -1]]]
    np.testing.assert_array_equal(data.outcomes, expected)
    assert data.systems == ("a", "b")
    assert data.questions == ("q1", "q2")
    assert not data.paired


def test_message_counts_what_is_missing(tmp_path, caplog):
    with caplog.at_level("INFO", logger="bayesrank"):
        read_responses(write(tmp_path, RAGGED))
    # No system has a third trial of q2.
    expected = (
        "2 systems, 2 questions, 2 to 3 trials; 5 of 10 outcomes missing (1 unscored, 4 absent)"
    )
    assert caplog.messages == [expected]
    table = read_table(tmp_path / "log.csv")
    assert (table.message, table.n_missing, table.source) == (expected, 5, "table")


@pytest.mark.parametrize("system", ["system", "Model"])
@pytest.mark.parametrize(
    "question", ["question", "item", "TASK_ID", "sample_id", "doc_id", "instance_id", "QID", "id"]
)
@pytest.mark.parametrize("trial", ["trial", "epoch", "Attempt", "run", "seed"])
@pytest.mark.parametrize("outcome", ["outcome", "score", "reward", "correct", "Resolved", "value"])
def test_aliases(tmp_path, system, question, trial, outcome):
    header = f"{outcome},{trial},{question},{system},note\n"
    path = write(tmp_path, header + "1,0,q,a,x\n0,1,q,a,x\n0,0,q,b,x\n1,1,q,b,x\n")
    data = read_responses(path)
    np.testing.assert_array_equal(data.outcomes, [[[1, 0]], [[0, 1]]])
    assert data.paired == (trial in {"run", "seed"})


def test_without_a_trial_column_rows_are_trials_in_order(tmp_path):
    path = write(tmp_path, "model,item,score\na,q,1\na,q,0\nb,q,0\na,q,1\nb,q,1\n")
    np.testing.assert_array_equal(read_responses(path).outcomes, [[[1, 0, 1]], [[0, 1, -1]]])


def test_trials_with_text_labels_are_numbered_within_each_cell(tmp_path):
    path = write(tmp_path, "model,item,attempt,score\na,q,x1,1\na,q,x2,0\nb,q,y7,1\nb,q,y9,1\n")
    np.testing.assert_array_equal(read_responses(path).outcomes, [[[1, 0]], [[1, 1]]])


def test_runs_with_text_labels_are_the_same_for_all_systems(tmp_path):
    path = write(tmp_path, "model,item,run,score\na,q,mon,1\na,q,tue,0\nb,q,tue,1\nb,q,mon,0\n")
    data = read_responses(path)
    np.testing.assert_array_equal(data.outcomes, [[[1, 0]], [[0, 1]]])
    assert data.paired


def test_numbered_runs_are_sorted_as_numbers(tmp_path):
    path = write(tmp_path, "model,item,seed,score\na,q,10,1\na,q,9,0\n")
    assert read_responses(path).outcomes.tolist() == [[[0, 1]]]


def test_several_files_are_several_systems(tmp_path):
    write(tmp_path, "model,item,trial,score\na,q,0,1\n", "a.csv")
    write(tmp_path, "model,item,trial,score\nb,q,0,0\n", "b.csv")
    data = read_responses(tmp_path)
    assert data.systems == ("a", "b")
    assert data.outcomes.tolist() == [[[1]], [[0]]]


def test_files_that_repeat_trial_numbers_add_trials_in_natural_order(tmp_path):
    write(tmp_path, "model,item,trial,score\na,q,0,0\n", "day10.csv")
    write(tmp_path, "model,item,trial,score\na,q,0,1\n", "day9.csv")
    assert read_responses(tmp_path).outcomes.tolist() == [[[1, 0]]]


def test_one_file_named_twice_counts_once(tmp_path):
    path = write(tmp_path, "model,item,score\na,q,1\n")
    assert read_responses([path, tmp_path, str(path)]).shape == (1, 1, 1)


def test_the_same_run_in_two_files_is_refused(tmp_path):
    for name in ("a.csv", "b.csv"):
        write(tmp_path, "model,item,seed,score\na,q,3,1\n", name)
    with pytest.raises(DataError, match=r"one outcome per system, question and trial; got more"):
        read_responses(tmp_path)


def test_repeated_rows_are_refused(tmp_path):
    path = write(tmp_path, "model,item,trial,score\na,q,0,1\na,q,0,1\n")
    with pytest.raises(
        DataError, match=r"got more for system 'a', question 'q', trial 0: remove the copies"
    ):
        read_responses(path)


def test_parquet_and_json_lines_read_like_csv(tmp_path):
    rows = [
        {"model": "a", "item": 1, "epoch": 1, "correct": True},
        {"model": "a", "item": 1, "epoch": 2, "correct": None},
        {"model": "b", "item": 1, "epoch": 1, "correct": False},
    ]
    frame = pd.DataFrame(rows).astype({"correct": "boolean"})
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    lines = "\n\n".join(json.dumps(row) for row in rows)
    write(tmp_path, lines, "log.jsonl")
    for name in ("log.csv", "log.parquet", "log.jsonl"):
        data = read_responses(tmp_path / name)
        assert data.outcomes.tolist() == [[[1, -1]], [[0, -1]]], name
        assert data.questions == ("1",)


def test_labels_are_text_as_written(tmp_path):
    path = write(tmp_path, "model,item,score\nNA,007,1\nnull,1e5,0\n")
    data = read_responses(path)
    assert data.systems == ("NA", "null")
    assert data.questions == ("007", "1e5")


def test_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_text("model,item,score\na,q,1\n", encoding="utf-8-sig")
    assert read_responses(path).systems == ("a",)


def test_fractional_scores_are_kept(tmp_path):
    data = read_responses(write(tmp_path, "model,item,reward\na,q,0.25\nb,q,1\n"))
    np.testing.assert_array_equal(data.scores, [[[0.25]], [[1.0]]])


def test_categories_take_weights(tmp_path):
    path = write(tmp_path, "model,item,score\na,q,0\na,q,3\nb,q,2\n")
    assert read_responses(path, weights=[0, 0.1, 0.2, 1]).grades[1, 0] == pytest.approx(0.2)
    assert read_responses(path, scale=(0, 3)).grades[1, 0] == pytest.approx(2 / 3)
    with pytest.raises(DataError, match="got 3 for system 'a', question 'q'"):
        read_responses(path)


def test_edges_turn_scores_into_categories(tmp_path):
    path = write(tmp_path, "model,item,score\na,q,2\na,r,7\nb,q,9\nb,r,5\n")
    cut = read_responses(path, scale=(1, 10), edges=[5, 8], weights=[0, 0.4, 1])
    np.testing.assert_array_equal(cut.outcomes[..., 0], [[0, 1], [2, 1]])
    assert cut.weights.tolist() == [0, 0.4, 1]
    assert read_responses(path, scale=(1, 10), edges=5).is_binary
    ordered = read_responses(path, scale=(1, 10), edges=[5, 8])
    assert (ordered.weights, ordered.n_categories) == (None, 3)
    with pytest.raises(DataError, match="edges must be None for categories"):
        read_responses(write(tmp_path, "model,item,score\na,q,1\n"), edges=5)


def test_groups_of_questions(tmp_path):
    path = write(tmp_path, "model,item,benchmark,score\na,q1,math,1\na,q2,code,0\n")
    assert read_responses(path).groups == ("math", "code")


def test_question_without_outcomes_is_left_out_and_counted(tmp_path):
    table = read_table(write(tmp_path, "model,item,score\na,q1,1\na,q2,\n"))
    assert table.frame["question"].tolist() == ["q1"]
    assert table.message == (
        "1 system, 1 question, 1 trial; 0 of 1 outcome missing; "
        "1 question without any outcome left out"
    )


def test_tables_of_right_answers_only_are_pointed_out(tmp_path, caplog):
    path = write(tmp_path, "model,item,score\na,q1,✓\na,q2,\na,q3,✓\nb,q1,✓\nb,q2,✓\n")
    read_responses(path)
    assert "right (missing: 2): if only right answers were written, count what is" in caplog.text
    assert "count_as_wrong='unscored,absent'" in caplog.text
    caplog.clear()
    counted = read_responses(path, count_as_wrong="unscored,absent")
    assert counted.outcomes[..., 0].tolist() == [[1, 0, 1], [1, 1, 0]]
    assert not caplog.text.count("All observed")


def test_selector_columns_choose_rows(tmp_path):
    path = write(tmp_path, "model,task,item,score\na,math,1,1\na,code,1,0\na,code,2,0\n")
    assert read_responses(path, task="code").shape == (1, 2, 1)
    # A task that nobody chose is a group, in which ids start anew.
    data = read_responses(path)
    assert data.questions == ("math/1", "code/1", "code/2")
    assert data.groups == ("math", "code", "code")
    path = write(tmp_path, "model,metric,item,score\na,em,1,1\na,f1,1,0\n")
    with pytest.raises(
        DataError, match=r"metric must name one of em, f1; got None \(pass metric=\.\.\., or"
    ):
        read_responses(path)


def test_systems_without_the_metric_are_pointed_out(tmp_path):
    rows = "a,em,1,1\na,f1,1,0\nb,em,1,0\nc,f1,1,1\nd,f1,1,0\n"
    path = write(tmp_path, f"model,metric,item,score\n{rows}")
    assert read_table(path, metric="em").cautions == (
        "c and d have no answers of the kind that was read, and will not be ranked.",
    )
    assert read_table(path, metric="f1").cautions == (
        "b has no answers of the kind that was read, and will not be ranked.",
    )


@pytest.mark.parametrize("selector", ["task", "scorer", "filter", "metric"])
def test_selector_without_a_column_is_refused(tmp_path, selector):
    path = write(tmp_path, "model,item,score\na,q,1\n")
    with pytest.raises(DataError, match=f"{selector} must be left out for tables without"):
        read_responses(path, **{selector: "x"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,score\na,1\n", r"column for the question, called question, item,.* got model, "),
        ("item,score\nq,1\n", r"column for the system, called system, model, .* got item, score"),
        ("model:item:score\na:q:1\n", r"column for the system.*: separate the columns by commas$"),
        (
            "model,item,reward,score\na,q,1,0\n",
            r"one column for the outcome; got score, reward in log\.csv: name the right one",
        ),
        ("model,item,Score,score\na,q,1,1\n", r"every column once; got 'score' twice"),
        ("model,item,score\n", r"at least one row; got none in log\.csv"),
        ("model,item,score\na,q,\n", r"at least one outcome; got 1 row without any"),
        ("model,item,score\na,q,1\n,q,1\n", r"name the system in every row; got a blank in row 2"),
        ("model,item,trial,score\na,q,,1\n", r"name the trial in every row; got a blank in row 1"),
        ("model,item,score\na,q,7.5\n", r"lie in \[0, 1\] .* got 7\.5 for system 'a', .* scale="),
        ("model,item,score\na,q,-1\n", r"got -1 for system 'a', question 'q'.* ones empty"),
        ("model,item,score\na,q,200\n", r"got 200 for system 'a'"),
        ("model,item,score\na,q,inf\n", r"got inf for system 'a'"),
        ("model,item,score\na,q,0.5\na,q,2\n", r"got 2 for system 'a', question 'q'"),
        ("model,item,score\na,q,good\n", r"got 'good' for the outcome column of log\.csv"),
        ('model,item,score\n"a,q,1\n', r"paths must be readable tables; got .* in .*/log\.csv"),
        ("model,item,score\na,q,1,1\n", r"one field per column in every row"),
    ],
)
def test_bad_table(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_responses(write(tmp_path, text))


def test_a_table_in_another_encoding_says_which_one_is_read(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes("model,item,score\né,q,1\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"readable tables; got .*: save the file as text in UTF-8"):
        read_responses(path)


def test_trials_must_be_counted_alike_in_all_tables(tmp_path):
    write(tmp_path, "model,item,run,score\na,q,0,1\n", "a.csv")
    write(tmp_path, "model,item,epoch,score\nb,q,0,1\n", "b.csv")
    with pytest.raises(DataError, match=r"count trials alike .* a run or seed and a trial number"):
        read_responses(tmp_path)


def test_group_must_be_in_all_tables_or_in_none(tmp_path):
    write(tmp_path, "model,item,topic,score\na,q,x,1\n", "a.csv")
    write(tmp_path, "model,item,score\nb,q,1\n", "b.csv")
    with pytest.raises(DataError, match=r"a column topic in all tables or in none; got both"):
        read_responses(tmp_path)


def test_broken_json_line_is_named(tmp_path):
    path = write(tmp_path, '{"model": "a", "item": 1, "score": 1}\n{"model": "a", "it', "log.jsonl")
    with pytest.raises(DataError, match=r"valid JSON; got .* in .*/log\.jsonl, line 2: .* cut off"):
        read_responses(path)


def test_json_line_that_is_no_object(tmp_path):
    path = write(tmp_path, "[1, 2]\n", "log.jsonl")
    with pytest.raises(
        DataError, match=r"JSON objects, one per line or in one list; got 1 in .*/log\.jsonl: name"
    ):
        read_responses(path)


@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_in_a_file_of_lines_is_read(tmp_path, indent):
    rows = [{"model": name, "item": 1, "score": name == "b"} for name in "ab"]
    path = write(tmp_path, json.dumps(rows, indent=indent), "log.jsonl")
    assert read_responses(path).outcomes.tolist() == [[[0]], [[1]]]
    votes = [{"model_a": "a", "model_b": "b", "winner": "model_b"}]
    path = write(tmp_path, json.dumps(votes, indent=indent), "votes.jsonl")
    assert read_battles(path).systems == ("a", "b")


@pytest.mark.parametrize("rows", ["results", "per_item"])
def test_what_a_document_says_of_all_its_rows_is_in_each_row(tmp_path, rows):
    for number, (model, task) in enumerate([("a", "x"), ("b", "x"), ("a", "y"), ("b", "y")]):
        document = {
            "model": model,
            "task": task,
            "accuracy": 0.5,
            "config": {"shots": 5},
            rows: [{"id": 1, "correct": model == "b"}, {"id": 2, "correct": True}],
        }
        write(tmp_path, json.dumps(document, indent=1), f"{number}.json")
    data = read_responses(tmp_path)
    assert (data.systems, data.groups) == (("a", "b"), ("x", "x", "y", "y"))
    assert data.outcomes[..., 0].tolist() == [[0, 1, 0, 1], [1, 1, 1, 1]]
    path = write(tmp_path, '{"model": "a", "task": "x", "results": [{"correct": 1}]}', "log.json")
    with pytest.raises(DataError, match="column for the question"):
        read_responses(path)


def test_label_that_is_no_label(tmp_path):
    path = write(tmp_path, '{"model": ["a"], "item": 1, "score": 1}\n', "log.jsonl")
    with pytest.raises(DataError, match=r"name the system by text or a number"):
        read_responses(path)


def test_what_pandas_calls_an_index_is_a_column(tmp_path):
    frame = pd.DataFrame({"model": ["a", "b", "b"], "item": ["q", "q", "r"], "score": [1, 0, 1]})
    path = tmp_path / "log.parquet"
    frame.set_index(["model", "item"]).to_parquet(path)
    assert read_responses(path).outcomes.tolist() == [[[1], [-1]], [[0], [1]]]
    frame.pivot(index="item", columns="model", values="score").to_parquet(path)
    assert read_responses(path, wide=True).questions == ("q", "r")
    # An index without a name, which pandas stores as well, numbers rows.
    wide = pd.DataFrame({"item": ["q", "r", "s"], "a": [1, 0, 1], "b": [0, 0, 1]})
    wide.iloc[[0, 2]].to_parquet(path)
    assert read_responses(path, wide=True).systems == ("a", "b")


def test_bytes_are_text_unless_they_are_none(tmp_path):
    path = tmp_path / "log.parquet"
    columns = {"model": [b"a", "b\u00e4".encode()], "item": [b"q", b"q"], "score": [1, 0]}
    pd.DataFrame(columns | {"image": [b"\xff\xd8", b"\xff"]}).to_parquet(path)
    assert read_responses(path).systems == ("a", "b\u00e4")
    columns = {"model_a": [b"a"], "model_b": [b"b"], "winner": [b"model_b"]}
    pd.DataFrame(columns).to_parquet(path)
    assert read_battles(path).wins.tolist() == [[0, 0], [1, 0]]


def test_split_tables_with_rows_of_another_length_are_refused(tmp_path):
    table = {"columns": ["model", "item", "score"], "data": [["a", "q", 1], ["b", "q"]]}
    path = write(tmp_path, json.dumps(table), "log.table.json")
    with pytest.raises(DataError, match=r"hold rows of 3 values, .* got others in log\.table\.js"):
        read_responses(path)


def test_truncated_parquet(tmp_path):
    path = tmp_path / "log.parquet"
    pd.DataFrame({"model": ["a"], "item": ["q"], "score": [1]}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"readable tables; got .* in .*/log\.parquet"):
        read_responses(path)


def test_long_seeds_are_not_rounded(tmp_path):
    seeds = [2**62, 2**62 + 1]
    rows = "".join(f"a,q,{seed},1\n" for seed in seeds)
    assert read_responses(write(tmp_path, "model,item,seed,score\n" + rows)).shape == (1, 1, 2)


def test_ids_of_single_samples_are_no_questions(tmp_path):
    rows = [("a", 1, "u1", 0, 1), ("a", 0, "u2", 1, 1), ("b", 1, "u3", 0, 1), ("b", 1, "u4", 1, 1)]
    frame = pd.DataFrame(rows, columns=["model", "score", "sample_id", "id", "epoch"])
    frame.to_csv(tmp_path / "samples.csv", index=False)
    data = read_responses(tmp_path / "samples.csv")
    assert data.shape == (2, 2, 1)
    assert data.n_missing == 0


def test_a_system_without_outcomes_is_kept_and_said(tmp_path, caplog):
    rows = "model,item,score,error\na,q,1,\na,r,0,\nb,q,,timeout\nb,r,,timeout\n"
    path = write(tmp_path, rows)
    with caplog.at_level("WARNING", logger="bayesrank"):
        data = read_responses(path)
    assert data.outcomes.tolist() == [[[1], [0]], [[-1], [-1]]]
    assert "b has no outcome and will not be ranked" in caplog.text
    assert "count_as_wrong='limit'" in caplog.text
    frame = Responses.from_long(pd.read_csv(path))
    assert frame.systems == data.systems
    np.testing.assert_array_equal(frame.outcomes, data.outcomes)
    counted = read_responses(path, count_as_wrong="limit")
    assert counted.outcomes.tolist() == [[[1], [0]], [[0], [0]]]


def test_tables_of_frequencies_are_refused(tmp_path):
    rows = "a,q1,1,3\na,q1,0,1\na,q2,1,2\na,q2,0,2\nb,q1,1,1\nb,q1,0,3\nb,q2,1,4\nb,q2,0,0\n"
    for name in ("count", "n"):
        path = write(tmp_path, f"system,question,outcome,{name}\n{rows}")
        with pytest.raises(
            DataError, match=rf"row for each outcome; got '{name}', .* pool='{name}'"
        ):
            read_responses(path)
        with pytest.raises(DataError, match=f"row for each outcome; got '{name}'"):
            Responses.from_long(pd.read_csv(path))
    assert read_responses(path, pool="n").shape == (2, 2, 2)
    repeats = "system,question,outcome,n\na,q,1,1\na,q,0,2\na,q,1,3\n"
    assert read_responses(write(tmp_path, repeats)).shape == (1, 1, 3)
    numbered = "system,question,outcome,n\na,q,1,1\na,q,0,2\nb,q,0,1\nb,q,1,2\n"
    assert read_responses(write(tmp_path, numbered)).shape == (2, 1, 2)


def test_scores_are_shares_of_the_highest_of_their_rows(tmp_path, caplog):
    path = write(
        tmp_path, "system,question,score,max_score\na,q1,3,5\na,q2,1,2\nb,q1,1,5\nb,q2,,\n"
    )
    with caplog.at_level("INFO", logger="bayesrank"):
        data = read_responses(path)
    np.testing.assert_array_equal(data.scores[..., 0], [[0.6, 0.5], [0.2, np.nan]])
    assert "outcomes are divided by max_score" in caplog.text
    frame = Responses.from_long(pd.read_csv(path))
    np.testing.assert_array_equal(frame.scores, data.scores)
    shares = "system,question,score,max_score\na,q1,0.6,5\na,q2,0.5,2\nb,q1,0.2,5\nb,q2,,2\n"
    with caplog.at_level("INFO", logger="bayesrank"):
        same = read_responses(write(tmp_path, shares))
    np.testing.assert_array_equal(same.scores, data.scores)
    assert "not divided by max_score, since they are fractions" in caplog.text
    right = "system,question,correct,max_score\na,q1,1,5\na,q2,0,2\nb,q1,1,5\nb,q2,1,2\n"
    assert read_responses(write(tmp_path, right)).outcomes[..., 0].tolist() == [[1, 0], [1, 1]]
    path = write(tmp_path, "system,question,score,max_score\na,q1,3,\nb,q1,1,5\n")
    with pytest.raises(
        DataError, match="max_score must be positive for every outcome; got 3 of a blank for"
    ):
        read_responses(path)


@pytest.mark.parametrize(
    "name",
    [
        "Place",
        "error_rate",
        "eval/loss",
        "wordErrorRate",
        "Toxicity",
        "latency_p95_ms",
        "CO2 (g) ↓",
    ],
)
def test_outcomes_that_are_lower_for_better_systems_are_refused(tmp_path, name):
    path = write(tmp_path, f"system,question,{name}\na,q1,1\nb,q1,0\n")
    message = re.escape(f"got {name!r}, of which the lowest is best: leave it out, or reverse")
    with pytest.raises(DataError, match=message):
        read_responses(path, outcome=name, scale=(0, 2))
    with pytest.raises(DataError, match=message):
        read_responses(write(tmp_path, f"model,{name},mmlu\na,1,1\nb,0,0\n"), wide=True)


@pytest.mark.parametrize("name", ["neg_log_loss", "mean_reciprocal_rank", "acc_norm", "no_error"])
def test_outcomes_whose_names_only_sound_like_losses_are_read(tmp_path, name):
    path = write(tmp_path, f"system,question,{name}\na,q1,1\nb,q1,0\n")
    assert read_responses(path, outcome=name).outcomes[:, 0, 0].tolist() == [1, 0]


@pytest.mark.parametrize("column", ["metric", "metric_name", "Measure", "score_name"])
def test_rows_of_a_metric_that_is_lower_for_better_systems_are_refused(tmp_path, column):
    text = f"system,question,{column},value\na,q1,error_rate,1\nb,q1,error_rate,0\n"
    message = r"^metric must be higher .* got 'error_rate'"
    with pytest.raises(DataError, match=message):
        read_responses(write(tmp_path, text))
    with pytest.raises(DataError, match=message):
        Responses.from_long(pd.read_csv(tmp_path / "log.csv"))


def test_rows_of_several_metrics_are_no_trials(tmp_path):
    rows = [f"{a},q1,{name},{a == 'b':d}" for a in "ab" for name in ("accuracy", "f1")]
    path = write(tmp_path, "\n".join(["model,question,metric_name,value", *rows]))
    with pytest.raises(DataError, match="metric must name one of accuracy, f1; got None"):
        read_responses(path)
    frame = pd.read_csv(path)
    with pytest.raises(DataError, match="frame must hold rows of one metric; got accuracy, f1 in"):
        Responses.from_long(frame)
    assert read_responses(path, metric="f1").outcomes.tolist() == [[[0]], [[1]]]
    both = read_responses(path, question="question,metric_name")
    assert both.questions == Responses.from_long(frame, question="question,metric_name").questions
    assert both.questions == ("q1/accuracy", "q1/f1")


def test_questions_of_one_text_with_different_ids_are_not_trials(tmp_path):
    rows = [f"{a},{i},What is it {i // 2}?,1" for a in "ab" for i in range(6)]
    path = write(tmp_path, "\n".join(["model,question_id,question,correct", *rows]))
    with pytest.raises(DataError, match=r"got question, question_id .* as question='question,que"):
        read_responses(path)
    assert len(read_responses(path, question="question_id").questions) == 6


@pytest.mark.parametrize(("second", "paired"), [("epoch", False), ("run", True)])
def test_several_columns_name_a_trial(tmp_path, second, paired):
    rows = [f"{a},q,{i},{j},{i != j:d}" for a in "ab" for i in (1, 2) for j in (1, 2)]
    path = write(tmp_path, "\n".join([f"model,question,seed,{second},score", *rows]))
    with pytest.raises(DataError, match=r"one column for the trial; .* or several as trial='"):
        read_responses(path)
    data = read_responses(path, trial=f"seed,{second}")
    assert data.outcomes.tolist() == [[[0, 1, 1, 0]]] * 2
    assert data.paired == paired


def test_fields_of_objects_are_columns_that_the_caller_may_name(tmp_path):
    rows = [
        {"model": {"id": "a"}, "input": {"id": 1}, "scores": {"F1": 0.5, "acc": 1}},
        {"model": {"id": "b"}, "input": {"id": 1}, "scores": None},
    ]
    path = write(tmp_path, json.dumps(rows), "log.json")
    pd.DataFrame(rows).to_parquet(tmp_path / "log.parquet")
    names = {"system": "model.id", "question": "input.id", "outcome": "scores.F1"}
    for given in (path, tmp_path / "log.parquet"):
        data = read_responses(given, **names)
        np.testing.assert_array_equal(data.scores, [[[0.5]], [[np.nan]]])
    with pytest.raises(DataError, match=r"fields of their own.*: name one .*'scores.F1'"):
        read_responses(path, **{**names, "outcome": "scores"})


@pytest.mark.parametrize("keys", ["01", "xy"])
def test_objects_by_row_are_read_as_rows(tmp_path, keys):
    rows = [
        {"model": "a", "question": "q", "score": 1},
        {"model": "b", "question": "q", "score": 0},
    ]
    path = write(tmp_path, json.dumps(dict(zip(keys, rows, strict=True))), "log.json")
    assert read_responses(path).outcomes.tolist() == [[[1]], [[0]]]


@pytest.mark.parametrize(("second", "warned"), [("gsm8k.csv", True), ("mmlu_2.csv", False)])
def test_files_of_other_names_that_answer_the_same_questions_are_pointed_out(
    tmp_path, caplog, second, warned
):
    text = "model,id,correct\na,1,1\nb,1,0\n"
    write(tmp_path, text, "mmlu_1.csv")
    write(tmp_path, text.replace(",1\n", ",0\n"), second)
    assert read_responses(tmp_path).shape == (2, 1, 2)
    assert ("answer the same questions, and count as trials" in caplog.text) == warned
    caplog.clear()
    assert read_responses(tmp_path, group="file").shape == (2, 2, 1)
    assert "answer the same questions" not in caplog.text


VOTES = "model_a,model_b,winner\n" + "x,y,model_a\ny,z,model_b\nz,x,tie\n" * 2
OUTCOMES = "model,id,correct\na,1,1\na,2,0\na,3,1\nb,1,0\nb,2,0\nb,3,1\n"


@pytest.mark.parametrize("text", [VOTES, OUTCOMES], ids=["battles", "outcomes"])
@pytest.mark.parametrize("name", ["run2.csv", "other.json"])
def test_tables_of_other_names_with_the_same_rows_are_pointed_out(tmp_path, caplog, text, name):
    frame = pd.read_csv(write(tmp_path, text, "run1.csv"), dtype=str).sample(frac=1, random_state=1)
    path = tmp_path / name
    write_frame = {".csv": frame.to_csv, ".json": partial(frame.to_json, orient="records")}
    write_frame[path.suffix](path, index=False)
    read_data(tmp_path)
    assert "have the same outcomes, and count twice: leave out one" in caplog.text
    caplog.clear()
    frame.assign(**{frame.columns[-1]: frame.iloc[::-1, -1].tolist()}).to_csv(path, index=False)
    read_data(path.rename(tmp_path / "run2.csv").parent)
    assert "have the same outcomes" not in caplog.text


def test_tables_that_were_joined_with_themselves_are_pointed_out(tmp_path, caplog):
    twice = OUTCOMES + OUTCOMES.partition("\n")[2]
    path = write(tmp_path, twice)
    for read in (lambda: read_responses(path), lambda: Responses.from_long(pd.read_csv(path))):
        assert read().shape == (2, 3, 2)
        assert "All rows occur at least 2 times with the same outcomes" in caplog.text
        caplog.clear()
    read_responses(write(tmp_path, OUTCOMES + "a,1,0\na,2,0\na,3,1\nb,1,0\nb,2,0\nb,3,1\n"))
    read_responses(write(tmp_path, OUTCOMES))
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


def test_runs_that_a_column_names_may_agree(tmp_path, caplog):
    for run in "12":
        rows = OUTCOMES.replace("\n", f",{run}\n").replace(f"correct,{run}", "correct,run")
        write(tmp_path, rows, f"{run}.csv")
    assert read_responses(tmp_path).shape == (2, 3, 2)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


def test_a_series_with_names_in_its_index_is_a_table():
    frame = pd.DataFrame({"model": ["a", "b"], "q1": [1, 0], "q2": [0, 1]}).set_index("model")
    data = Responses.from_long(frame.rename_axis("question", axis="columns").stack())
    assert data.outcomes[..., 0].tolist() == [[1, 0], [0, 1]]


def test_wide_tables_as_people_write_them(tmp_path, caplog):
    text = ",question,a,b\n0,q1,1,-\n1,q2,0,\u2014\n2,q3,1,0\n3,Std. Dev,0,1\n"
    data = read_responses(write(tmp_path, text), wide=True)
    assert data.questions == ("q1", "q2", "q3", "Std. Dev")
    assert data.outcomes[..., 0].tolist() == [[1, 0, 1, 0], [-1, -1, 0, 1]]
    assert "'Std. Dev' is called like a summary" in caplog.text
    read_responses(write(tmp_path, "model,Overall,MMLU,Average\na,0,1,0.5\nb,1,0,0.5\n"), wide=True)
    assert "questions 'Overall', 'Average' are called like summaries" in caplog.text
    read_responses(write(tmp_path, "system,a,b\na,,1\nb,0,\n"), wide=True)
    assert "Systems and questions have the same names" in caplog.text


@pytest.mark.parametrize("question", ["task", "Benchmark", "dataset", "category"])
@pytest.mark.parametrize(
    ("right", "total"),
    [("correct", "total"), ("num_correct", "num_questions"), ("passed", "total")],
)
def test_numbers_of_right_answers_are_divided_by_their_total(
    tmp_path, caplog, question, right, total
):
    text = f"model,{question},{right},{total}\na,x,45,50\na,y,6,8\nb,x,20,50\nb,y,8,8\n"
    path = write(tmp_path, text)
    with caplog.at_level("INFO", logger="bayesrank"):
        data = read_responses(path)
    assert f"outcomes are divided by {total}" in caplog.text
    assert data.questions == ("x", "y")
    np.testing.assert_array_equal(data.scores[..., 0], [[0.9, 0.75], [0.4, 1.0]])
    frame = Responses.from_long(pd.read_csv(path))
    np.testing.assert_array_equal(frame.scores, data.scores)


def test_a_share_beside_the_number_of_right_answers_is_the_outcome(tmp_path):
    text = "model,dataset,correct,total,accuracy\na,x,45,50,0.9\nb,x,20,50,0.4\n"
    np.testing.assert_array_equal(read_responses(write(tmp_path, text)).scores.ravel(), [0.9, 0.4])
    right = "model,question,correct,total\na,q1,1,9\nb,q1,0,9\n"
    assert read_responses(write(tmp_path, right)).outcomes.ravel().tolist() == [1, 0]
    text = "model,dataset,n_correct,total\na,x,1,9\nb,x,0,9\n"
    np.testing.assert_array_equal(read_responses(write(tmp_path, text)).scores.ravel(), [1 / 9, 0])


@pytest.mark.parametrize("question", ["question", "task", "dataset"])
@pytest.mark.parametrize(
    ("right", "total"), [("correct", "total"), ("n_passed", "n_items"), ("score", "max_score")]
)
@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_more_right_answers_than_answers_are_named(tmp_path, question, right, total, ending):
    rows = [("a", "x", 4, 10), ("b", "x", 12, 10)]
    frame = pd.DataFrame(rows, columns=["model", question, right, total])
    path = tmp_path / f"log{ending}"
    if ending == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records")
    told = rf"{right} must be at most {total}; got 12 of 10 for system 'b', question 'x', row 2"
    with pytest.raises(DataError, match=rf"{told} of log{ending}: correct the row, or leave out"):
        read_responses(path)
    with pytest.raises(DataError, match=told):
        Responses.from_long(frame)


def test_counts_without_a_total_are_told_to_be_divided(tmp_path):
    told = "divide numbers of right answers by those of all answers"
    with pytest.raises(DataError, match=told):
        read_responses(write(tmp_path, "question,a,b\nq1,7,3\nq2,2,1\n"), wide=True)
    with pytest.raises(DataError, match=told):
        read_responses(write(tmp_path, "model,task,correct\na,x,7\nb,x,3\n"))
    with pytest.raises(DataError, match=told):
        Responses([[7, 3], [2, 1]])


SEVERAL = "model,task,correct\na,x,1\na,x,0\na,y,1\nb,x,0\nb,x,1\nb,x,1\nb,y,0\n"


@pytest.mark.parametrize("task", ["task", "Task Name"])
def test_several_rows_of_a_task_are_trials_with_a_warning(tmp_path, caplog, task):
    path = write(tmp_path, SEVERAL.replace("task", task))
    frame = pd.read_csv(path)
    for read in (lambda: read_responses(path), lambda: Responses.from_long(frame)):
        assert read().shape == (2, 2, 3)
        (told,) = [each.message for each in caplog.records if each.levelname == "WARNING"]
        assert f"rows of one system and {task} count as trials (3 of 'b' for 'x')" in told
        assert "question='row' if each row is another question" in told
        caplog.clear()
    read_responses(path, question=task)
    Responses.from_long(frame, question=task)
    read_responses(path, question="row")
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.parametrize(
    "text",
    [
        "model,task,correct\na,x,1\na,y,0\nb,x,0\nb,y,1\n",
        "model,task,trial,correct\na,x,1,1\na,x,2,0\nb,x,1,0\nb,x,2,1\n",
        "model,task,effort,correct\na,x,low,1\na,x,high,0\nb,x,low,0\nb,x,high,1\n",
        "model,task_id,correct\na,x,1\na,x,0\nb,x,0\nb,x,1\n",
    ],
    ids=["once", "with trials", "with settings", "with ids"],
)
def test_tasks_whose_rows_are_told_apart_are_no_warning(tmp_path, caplog, text):
    path = write(tmp_path, text)
    read_responses(path)
    Responses.from_long(pd.read_csv(path))
    read_responses([path, write(tmp_path, text + "\n", "log2.csv")])
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.parametrize(
    ("text", "questions", "groups"),
    [
        (SEVERAL, ("x/1", "x/2", "y/1", "x/3"), ("x", "x", "y", "x")),
        (SEVERAL.replace("task", "dataset"), ("x/1", "x/2", "y/1", "x/3"), ("x", "x", "y", "x")),
        ("model,correct\na,1\na,0\nb,1\n", ("1", "2"), None),
        ("model,run,correct\na,1,1\na,1,0\na,2,1\na,2,1\n", ("1", "2"), None),
    ],
)
def test_rows_in_one_order_are_questions_if_asked_for(tmp_path, text, questions, groups):
    path = write(tmp_path, text)
    for data in (
        read_responses(path, question="row"),
        Responses.from_long(pd.read_csv(path), question="row"),
    ):
        assert (data.questions, data.groups) == (questions, groups)
    named = "row,model,correct\nq1,a,1\nq2,a,0\nq1,b,1\n"
    assert read_responses(write(tmp_path, named), question="row").questions == ("q1", "q2")


def test_groups_with_several_rows_of_a_system_are_no_questions(tmp_path):
    text = "model,dataset,correct\na,x,1\na,x,0\nb,x,1\nb,x,1\n"
    with pytest.raises(DataError, match="must have a column for the question"):
        read_responses(write(tmp_path, text))
    kinds = "model,category,accuracy\na,open,0.5\nb,open,0.25\nc,closed,0.75\n"
    with pytest.raises(DataError, match="must have a column for the question"):
        read_responses(write(tmp_path, kinds))
    seeds = "model,dataset,seed,accuracy\na,x,1,0.5\na,x,2,0.25\nb,x,1,1\nb,x,2,0.5\n"
    assert read_responses(write(tmp_path, seeds)).shape == (2, 1, 2)


@pytest.mark.parametrize("name", ["idx", "index", "Index", "question_idx", "sample_idx"])
def test_a_number_is_the_question_unless_it_counts_all_rows(tmp_path, name):
    again = f"{name},model,text,correct\n0,a,t,1\n1,a,t,0\n0,b,t,1\n1,b,t,1\n"
    data = read_responses(write(tmp_path, again))
    assert data.questions == ("0", "1")
    assert data.outcomes[..., 0].tolist() == [[1, 0], [1, 1]]
    rows = f"{name},model,text,correct\n0,a,t,1\n1,a,t,0\n2,b,t,1\n3,b,t,1\n"
    with pytest.raises(DataError, match="must have a column for the question"):
        read_responses(write(tmp_path, rows))
    named = f"{name},model,qid,correct\n0,a,q,1\n1,a,r,0\n2,b,q,1\n3,b,r,1\n"
    assert read_responses(write(tmp_path, named)).questions == ("q", "r")
    tasks = f"model,task,{name},correct\na,x,0,1\na,x,1,0\na,y,0,1\nb,x,0,0\nb,x,1,0\nb,y,0,1\n"
    data = read_responses(write(tmp_path, tasks))
    assert data.questions == ("x/0", "x/1", "y/0")
    assert data.groups == ("x", "x", "y")


LISTS = [[1, 0, 1], [0, 0, 1], [1, 1, 1], [1, 0, None]]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_list_in_place_of_an_outcome_holds_trials(tmp_path, caplog, suffix):
    frame = pd.DataFrame({"model": [*"aabb"], "qid": ["q", "r"] * 2, "correct": LISTS})
    path = tmp_path / f"log.{suffix}"
    if suffix == "csv":
        frame.assign(correct=frame["correct"].astype(str)).to_csv(path, index=False)
    elif suffix == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    expected = [[[1, 0, 1], [0, 0, 1]], [[1, 1, 1], [1, 0, -1]]]
    with caplog.at_level("INFO", logger="bayesrank"):
        data = read_responses(path)
    assert data.outcomes.tolist() == expected
    assert not data.paired
    assert "each list in correct holds the trials" in caplog.text
    assert Responses.from_long(frame).outcomes.tolist() == expected


def test_lists_of_several_lengths_or_beside_trials_are_an_error(tmp_path):
    path = write(tmp_path, 'model,qid,correct\na,q,"[1, 0]"\nb,q,[1]\n')
    with pytest.raises(DataError, match=r"got lists .*: write a row for each element"):
        read_responses(path)
    path = write(tmp_path, 'model,qid,seed,correct\na,q,1,"[1, 0]"\nb,q,1,"[1, 1]"\n')
    with pytest.raises(DataError, match=r"got lists .*: write a row for each element"):
        read_responses(path)
    again = 'model,qid,kind,correct\na,q,x,"[1, 0]"\na,q,y,"[1, 1]"\nb,q,x,"[1, 1]"\n'
    with pytest.raises(DataError, match="one outcome per system, question and trial"):
        read_responses(write(tmp_path, again))


def test_lists_in_wide_tables_hold_trials(tmp_path):
    path = write(tmp_path, 'task,a,b\nx,"[1,0]","[0,0]"\ny,"[True, False]","[1,1]"\n')
    data = read_responses(path, wide=True)
    assert data.outcomes.tolist() == [[[1, 0], [1, 0]], [[0, 0], [1, 1]]]


def test_zeros_with_an_error_are_reported(tmp_path, caplog):
    text = "model,id,is_error,score\na,q,False,1\na,r,True,0\nb,q,False,0\nb,r,False,1\n"
    with caplog.at_level("INFO", logger="bayesrank"):
        assert read_responses(write(tmp_path, text)).outcomes[..., 0].tolist() == [[1, 0], [0, 1]]
    assert "1 outcome of 0 counts as wrong despite an error in the column 'is_error'" in caplog.text


@pytest.mark.parametrize("files", [1, 3])
def test_outcomes_that_belong_to_the_questions_are_pointed_out(tmp_path, caplog, files):
    rows = [
        {"model": system, "id": f"q{n}", "resolved": n % 3 > 0, "right": (n + len(system)) % 2}
        for system in ("a", "bb", "ccc")
        for n in range(6)
    ]
    for number in range(files):
        lines = "\n".join(map(json.dumps, rows[number::files]))
        write(tmp_path, lines, f"log{number}.jsonl")
    read_responses(tmp_path)
    told = "All systems have the same outcome on each of the 6 questions that they share: pass outc"
    assert told in caplog.text
    caplog.clear()
    read_responses(tmp_path, outcome="right")
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.parametrize(("name", "kinds"), [("step", "12"), ("criterion_id", "cd")])
def test_columns_that_tell_the_rows_of_a_question_apart_are_named(tmp_path, name, kinds):
    cells = [(system, question, kind) for system in "ab" for question in "xy" for kind in kinds]
    text = "".join(f"{','.join(cell)},{number % 3 // 2}\n" for number, cell in enumerate(cells))
    path = write(tmp_path, f"model,item,{name},correct\n{text}")
    another = f"question='item,{name}' makes each value another question"
    assert read_table(path).message.endswith(f"; rows that differ in {name} are trials: {another}")
    questions = tuple(f"{question}/{kind}" for question in "xy" for kind in kinds)
    assert read_responses(path, question=f"item,{name}").questions == questions


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("is_lower_better", "True", "False"), ("higherIsBetter", "0", "1"), ("lower_better", "1", "")],
)
def test_rows_of_which_the_lowest_outcome_is_best_are_refused(tmp_path, name, low, high):
    def long(y, *scores):
        cells = zip(("a,x", "a,y", "b,x", "b,y"), scores, (high, y) * 2, strict=True)
        return write(tmp_path, f"model,item,score,{name}\n" + "\n".join(map(",".join, cells)))

    told = f"got '{name}' that says the opposite of system 'a', question 'y'"
    with pytest.raises(DataError, match=told):
        read_responses(long(low, "0.5", "0.9", "0.2", "0.1"))
    wide = f"item,{name},a,b\nx,{high},0.5,0.2\ny,{low},0.9,0.1\n"
    with pytest.raises(DataError, match=told):
        read_responses(write(tmp_path, wide, "wide.csv"), wide=True)
    data = read_responses(long(high, "0.5", "0.9", "0.2", "0.1"))
    assert data.scores[..., 0].tolist() == [[0.5, 0.9], [0.2, 0.1]]
    medals = read_responses(long(low, "1", "0", "", "1"))
    assert medals.outcomes[..., 0].tolist() == [[1, 0], [-1, 1]]


def test_percentages_are_not_divided_by_numbers_of_questions(tmp_path):
    path = write(tmp_path, "model,subject,total,accuracy\na,x,250,60\nb,x,250,70\n")
    with pytest.raises(DataError, match=r"got 60 for system 'a', question 'x': pass scale=\(low"):
        read_responses(path)
    assert read_responses(path, scale=(0, 100)).scores[..., 0].tolist() == [[0.6], [0.7]]


def test_folders_of_one_name_are_named_by_those_above_them(tmp_path):
    for system, right in (("gpt", 1), ("llama", 0)):
        for run in ("run1", "run2"):
            folder = tmp_path / system / run / "mmlu"
            folder.mkdir(parents=True)
            write(folder, f"id,correct\nq1,{right}\nq2,{int(run == 'run1')}\n")
    data = read_responses(tmp_path, system="folder")
    assert data.systems == ("mmlu (folder=gpt)", "mmlu (folder=llama)")
    np.testing.assert_array_equal(data.outcomes, [[[1, 1], [1, 0]], [[0, 0], [1, 0]]])


def test_columns_beside_scores_are_pointed_out_in_wide_tables(tmp_path, caplog):
    text = "model,#Params (B),MMLU,MMLU_stderr\na,7,60.5,1.5\nb,70,80.5,1.5\n"
    read_responses(write(tmp_path, text), wide=True, scale=(0, 100))
    told = "questions '#Params (B)', 'MMLU_stderr' are called like sizes or standard errors"
    assert told in caplog.text
    caplog.clear()
    read_responses(write(tmp_path, "model,MMLU,n\na,0.6,0.5\nb,0.8,1\n"), wide=True)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


def test_metrics_of_other_questions_may_be_part_of_their_names(tmp_path):
    text = "model,task,metric,score\na,x,acc,0.5\na,y,f1,0.2\nb,x,acc,0.1\nb,y,f1,0.3\n"
    told = r"got None \(pass metric=..., or question='ID,metric' if each is that of another quest"
    with pytest.raises(DataError, match=told):
        read_responses(write(tmp_path, text))
    data = read_responses(write(tmp_path, text), question="task,metric")
    assert data.questions == ("x/acc", "y/f1")


def test_columns_of_json_share_the_name_of_their_system(tmp_path):
    for system, right in (("a", [1, 0]), ("b", [0, 0])):
        table = {"id": [1, 2], "model": system, "kind": "x", "correct": right, "note": [None, "y"]}
        write(tmp_path, json.dumps(table), f"{system}.json")
    data = read_responses(tmp_path)
    assert (data.systems, data.questions) == (("a", "b"), ("1", "2"))
    assert data.outcomes[..., 0].tolist() == [[1, 0], [0, 0]]
    path = write(tmp_path, json.dumps(table | {"note": [1]}), "uneven.json")
    with pytest.raises(DataError, match="columns of one length; got several in uneven"):
        read_responses(path)


def test_a_benchmark_of_shares_among_percentages_is_pointed_out(tmp_path, caplog):
    rows = "a,x,0.5\nb,x,0.6\nc,x,0.9\na,y,50\nb,y,0.4\nc,y,70\n"
    path = write(tmp_path, f"model,benchmark,score\n{rows}")
    read_responses(path, scale=(0, 100))
    told = "All scores of x lie between 0 and 1 on a scale from 0 to 100, and not those of other"
    assert told in caplog.text


def test_benchmarks_may_have_different_numbers_of_trials(tmp_path, caplog):
    rows = [
        {"model": model, "question": question, "trial": trial, "correct": int(trial == 0)}
        for model in ("a", "b")
        for question, trials in (("mmlu 1", 1), ("aime 1", 3))
        for trial in range(trials)
        if (model, question, trial) != ("b", "aime 1", 2)
    ]
    path = tmp_path / "both.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    with caplog.at_level("INFO", logger="bayesrank"):
        read_responses(path)
        # Trials that no system has are not wrong answers.
        counted = read_responses(path, count_as_wrong="absent")
    start = "2 systems, 2 questions, 1 to 3 trials; "
    assert f"{start}1 of 8 outcomes missing (1 absent)" in caplog.messages
    assert f"{start}0 of 8 outcomes missing; 1 absent counted as wrong" in caplog.messages
    assert counted.trials.tolist() == [[1, 3], [1, 3]]
