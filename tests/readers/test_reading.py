import gzip
import json
import os
import re
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from bayesrank.errors import DataError
from bayesrank.readers import READERS, read_battles, read_data, read_responses, read_table
from bayesrank.readers.finding import list_files
from bayesrank.readers.log_table import CHOICES, choose

TABLE = "model,item,score\na,q,1\nb,q,0\n"


def test_path_string_and_list_read_alike(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(TABLE)
    for paths in (path, str(path), [path], (str(path),), tmp_path, iter([tmp_path])):
        assert read_responses(paths).systems == ("a", "b")


def test_folder_is_searched_in_depth_without_hidden_names_and_other_files(tmp_path):
    for folder in ("deep/deeper", ".hidden"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "log.csv").write_text(TABLE)
    (tmp_path / "notes.txt").write_text("no log")
    (tmp_path / "other.json").write_text('{"anything": 1}')
    assert read_responses(tmp_path).shape == (2, 1, 1)


def test_name_of_a_link_is_kept(tmp_path, write_report):
    stored = write_report("0a1b2c.json", resolved_ids=["i"])
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "model.run0.json").symlink_to(stored)
    assert read_responses(folder / "model.run0.json").systems == ("model",)


def test_files_are_in_natural_order(tmp_path):
    for name in ("run10", "run9", "run09b"):
        (tmp_path / name).write_text("x")
    assert [path.name for path in list_files(tmp_path).inside] == ["run9", "run09b", "run10"]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], r"paths must name at least one file or folder; got none"),
        ("nowhere.csv", r"paths must exist; got 'nowhere\.csv'"),
    ],
)
def test_nothing_to_read(paths, message):
    with pytest.raises(DataError, match=message):
        read_responses(paths)


def test_folder_without_logs(tmp_path):
    (tmp_path / "notes.txt").write_text("no log")
    with pytest.raises(
        DataError, match=r"logs in a known format \(npz, inspect, .*\); got folders without"
    ):
        read_responses(tmp_path)


def test_columns_of_a_table_in_a_folder_without_logs_are_named(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.json").write_text('[{"id": 1, "answer": "x", "is_right": true}]')
    with pytest.raises(DataError, match=r"a table \(b\.json has id, answer and is_right\), as by"):
        read_responses(tmp_path)


def test_file_of_no_known_format(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("no log")
    with pytest.raises(DataError, match=r"got 'notes\.txt': pass format=\.\.\., one of npz, insp"):
        read_responses(path)
    sheet = path.rename(tmp_path / "scores.xlsx")
    with pytest.raises(DataError, match=r"got 'scores\.xlsx': save the sheet as \.csv$"):
        read_responses(sheet)
    page = sheet.rename(tmp_path / "README.md")
    with pytest.raises(DataError, match=r"got 'README\.md': save the table as \.csv$"):
        read_responses(page)


@pytest.mark.parametrize(
    "name", ["logs.zip", "logs.tar", "logs.tar.gz", "logs.csv.tar.xz", "l.TGZ"]
)
def test_an_archive_is_to_be_unpacked(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"no log")
    with pytest.raises(DataError, match=rf"got '{re.escape(name)}': unpack it"):
        read_responses(path)


def test_a_compressed_file_is_read_as_it_is(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(b"model,question,outcome\na,q,1\n"))
    assert read_responses(path).systems == ("a",)
    assert read_responses(tmp_path).systems == ("a",)


@pytest.mark.parametrize("name", ["log.csv", "log.eval", "log.json", "log.npz", "log.parquet"])
def test_empty_file(tmp_path, name):
    path = tmp_path / name
    path.touch()
    with pytest.raises(DataError, match=rf"hold data; got the empty file '{re.escape(name)}'"):
        read_responses(path)


def test_what_is_no_log_in_a_folder_is_named_and_counted(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "b.csv").touch()
    (tmp_path / "c.csv").write_text("nodel,item,score\nc,q,1\n")
    (tmp_path / "d.json.gz").write_bytes(b"\x1f\x8bcut")
    (tmp_path / "e.csv").symlink_to(tmp_path / "nowhere")
    table = read_table(tmp_path)
    assert table.message == (
        "2 systems, 1 question, 1 trial; 0 of 2 outcomes missing; 4 files that are no logs "
        "(e.csv (a link to nothing), b.csv (empty), c.csv, d.json.gz (Compressed file ended before "
        f"the end-of-stream marker was reached in {tmp_path.name}/d.json.gz: the file may be cut "
        "off, copy it again or leave it out)) left out"
    )
    with pytest.raises(DataError, match=r"logs only with strict=True; got 4 files .* c\.csv"):
        read_table(tmp_path, strict=True)


def test_a_folder_that_may_not_be_searched_is_named(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "deep").mkdir()
    # Root may read everything, so permissions alone would not show it.
    scandir = os.scandir

    def refuse(path):
        if Path(path).name == "deep":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert "1 file that is no log (deep (Permission denied))" in read_table(tmp_path).message


def test_patterns_and_the_standard_input(tmp_path, monkeypatch):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"model,item,score\n{name},q,1\n")
    assert read_responses(tmp_path / "*.csv").systems == ("a", "b")
    with pytest.raises(DataError, match=r"paths must exist; got .*x\*"):
        read_responses(tmp_path / "x*")
    for text in (TABLE, TABLE.replace(",", "\t"), '[{"model": "a", "item": 1, "score": 1}]'):
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(text.encode())))
        assert read_responses("-").systems[0] == "a"
    with pytest.raises(DataError, match=r"an empty standard input"):
        read_responses("-")


def test_unreadable_file(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    path.write_text(TABLE)
    # Root may read everything, so permissions alone would not show it.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(DataError, match=r"paths must be readable files"):
        read_responses(path)


def test_mixed_formats_are_counted_and_format_chooses(tmp_path):
    for name in "ac":
        (tmp_path / f"{name}.csv").write_text(TABLE)
    np.savez(tmp_path / "b.npz", R=[[1], [0], [1]])
    with pytest.raises(
        DataError,
        match=r"one format; got 2 in table \(a\.csv, \.\.\.\), 1 in npz \(b\.npz\): choose one by "
        r"format=\.\.\., or name fewer paths",
    ):
        read_responses(tmp_path)
    (tmp_path / "c.csv").unlink()
    assert read_responses(tmp_path, format="table").shape == (2, 1, 1)
    assert read_responses(tmp_path, format="npz").shape == (3, 1, 1)


def test_tables_beside_the_logs_of_a_tool_are_named_and_left_out(tmp_path, write_report):
    write_report("model.run0.json", resolved_ids=["i"], unresolved_ids=["j"])
    summary = tmp_path / "summary.csv"
    summary.write_text("model,task,accuracy\nmodel,swebench,0.5\n")
    table = read_table(tmp_path)
    assert table.source == "swebench"
    assert table.message.endswith("1 file that is no log (summary.csv (in format table)) left out")
    assert read_table(tmp_path, format="table").source == "table"
    for paths, strict in (([tmp_path, summary], False), (tmp_path, True)):
        with pytest.raises(DataError, match=r"summary\.csv"):
            read_table(paths, strict=strict)
    (tmp_path / "further.csv").write_text(summary.read_text())
    with pytest.raises(DataError, match=r"2 in table"):
        read_table(tmp_path)


def test_tables_without_the_chosen_columns_are_named_and_left_out(tmp_path):
    (tmp_path / "a.csv").write_text("who,item,score\na,q,1\nb,q,0\n")
    (tmp_path / "b.csv").write_text("nodel,item,score\nc,q,1\n")
    assert "1 unusable log (b.csv" in read_table(tmp_path, system="who").message


def test_unknown_format_lists_the_known_ones():
    with pytest.raises(DataError, match=r"format must be one of npz, inspect, lm_eval, .* 'xml'"):
        read_responses("log.xml", format="xml")


@pytest.mark.parametrize("selector", ["task", "scorer", "filter", "metric"])
def test_selector_is_honoured_or_refused(tmp_path, write_report, selector):
    write_report("model.run0.json", resolved_ids=["i"])
    with pytest.raises(DataError, match=f"{selector} must be left out in format swebench"):
        read_responses(tmp_path, **{selector: "x"})
    with pytest.raises(DataError, match=f"{selector} must be left out in format swebench"):
        read_table(tmp_path, **{selector: "x"})


def test_responses_are_built_from_the_table(tmp_path):
    (tmp_path / "log.csv").write_text(TABLE)
    table = read_table(tmp_path)
    assert list(table.frame.columns) == ["system", "question", "trial", "outcome"]
    assert table.frame["outcome"].tolist() == [1.0, 0.0]
    assert table.message == "2 systems, 1 question, 1 trial; 0 of 2 outcomes missing"


@pytest.mark.parametrize("name", READERS)
def test_row_is_complete(name):
    row = READERS[name]
    assert row.name == name
    assert row.title
    assert set(row.selectors) | set(row.choices) <= set(CHOICES)
    assert not row.recognises(Path("log.unknown"))


def test_all_real_logs_together_are_refused(shared):
    with pytest.raises(DataError, match=r"one format; got \d+ in inspect .* lm_eval .* swebench"):
        read_responses(shared / "logs")


def test_logs_that_name_nothing():
    with pytest.raises(DataError, match=r"metric must be named in the logs for task 'x'; got none"):
        choose("metric", [], None, " for task 'x'")


def test_absent_outcomes_can_count_as_wrong(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("model,question,score,group\na,p,1,x\na,q,1,y\nb,q,1,y\n")
    assert read_responses(path).outcomes[..., 0].tolist() == [[1, 1], [-1, 1]]
    data = read_responses(path, count_as_wrong="absent")
    assert data.outcomes[..., 0].tolist() == [[1, 1], [0, 1]]
    assert data.groups == ("x", "y")
    assert read_table(path, count_as_wrong="absent").message.endswith("1 absent counted as wrong")


def test_compressed_and_marked_copies_count_once(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    (tmp_path / "a (1).csv").write_text(TABLE)
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "a.csv").write_text(TABLE)
    table = read_table(tmp_path)
    assert table.message.endswith("0 of 2 outcomes missing; 3 copies of a log left out (a (1).csv)")
    for folder in ("run1", "run2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.csv").write_text(TABLE)
    assert read_responses([tmp_path / "run1", tmp_path / "run2"]).shape == (2, 1, 2)
    (tmp_path / "a (1).csv").write_text(TABLE.replace("1", "0"))
    assert read_responses([tmp_path / "a.csv", tmp_path / "a (1).csv"]).shape == (2, 1, 2)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_text_with_other_separators_is_read(tmp_path, mark):
    path = tmp_path / "log.csv"
    path.write_text(TABLE.replace(",", mark))
    assert read_responses(path).systems == ("a", "b")
    assert read_responses(tmp_path).systems == ("a", "b")
    path.write_text("model_a,model_b,winner\na,b,model_a\n".replace(",", mark))
    assert read_data(tmp_path).wins[0, 1] == 1


def test_shares_on_a_scale_of_percentages_are_pointed_out(tmp_path, caplog):
    path = tmp_path / "log.csv"
    rows = ["a,x,p,95", "a,y,q,0.8", "b,x,p,60", "b,y,q,0.7", "c,x,p,0.9"]
    path.write_text("\n".join(["model,benchmark,id,score", *rows]))
    read_responses(path, scale=(0, 100))
    assert "All scores of the group 'y' lie between 0 and 1 on a scale from 0 to 100" in caplog.text
    assert "the system 'c'" in caplog.text
    assert "'x'" not in caplog.text
    assert "'a'" not in caplog.text


def test_a_log_without_outcomes_among_others_is_named_and_left_out(
    tmp_path, write_eval, inspect_log
):
    write_eval("good.json", inspect_log("a", [("p", 1, "C"), ("q", 1, "I")]))
    crashed = inspect_log("b", [("p", 1, "C"), ("q", 1, "I")])
    path = write_eval("crashed.json", crashed | {"status": "error", "samples": []})
    table = read_table(tmp_path)
    assert "1 unusable log (crashed.json (0 without a score for task" in table.message
    for paths, strict in ((tmp_path, True), ([tmp_path, path], False)):
        with pytest.raises(DataError, match=r"every system; got none for 'b'"):
            read_table(paths, strict=strict)
    assert read_responses(tmp_path, count_as_wrong="absent").shape == (2, 2, 1)


def test_a_system_without_outcomes_takes_no_others_with_it(tmp_path):
    (tmp_path / "a.csv").write_text(TABLE)
    (tmp_path / "b.csv").write_text("model,item,score\na,r,1\nb,r,0\nc,r,\n")
    data = read_responses(tmp_path)
    assert data.systems == ("a", "b", "c")
    assert data.trials.sum(axis=1).tolist() == [2, 2, 0]


def test_a_folder_of_tables_without_known_columns_says_how_to_name_them(tmp_path):
    (tmp_path / "t.csv").write_text("q,a,b\np,1,0\n")
    with pytest.raises(
        DataError, match=r"t\.csv\): name the columns .* system=\.\.\. \(file .*\), or pass wide"
    ):
        read_responses(tmp_path)
    assert read_responses(tmp_path, wide=True, question="q").systems == ("a", "b")


@pytest.mark.parametrize("paths", [None, 3, b"log.csv", "", ["log.csv", None]])
def test_what_is_no_path_is_refused(tmp_path, monkeypatch, paths):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(TABLE)
    for read in (read_responses, read_data, read_battles):
        with pytest.raises(
            DataError, match=r"paths must be paths of files or folders; got (N|3|b|')"
        ):
            read(paths)


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pa.table])
def test_data_in_place_of_paths_are_named(kind):
    table = kind({"model_a": ["x"], "model_b": ["y"], "winner": ["model_a"]})
    for read in (read_responses, read_data, read_battles):
        with pytest.raises(DataError, match=rf"got a {type(table).__name__}: give it to rank"):
            read(table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"system": 3}, "system must be a name, or None; got 3"),
        ({"question": ["item"]}, r"question must be a name, or None; got \['item'\]"),
        ({"task": 3}, "task must be a name, or None; got 3"),
        ({"split_by": 3}, "split_by must be names, or one text with commas; got 3"),
        ({"count_as_wrong": 3}, "count_as_wrong must be names, .*; got 3"),
        ({"wieghts": (0, 1)}, "options must be among those of read_responses; got 'wieghts'"),
    ],
)
def test_options_of_another_type_or_name_are_refused(tmp_path, options, message):
    (tmp_path / "log.csv").write_text(TABLE)
    with pytest.raises(DataError, match=message):
        read_data(tmp_path / "log.csv", **options)


UNREAD = {
    "simple_score.json": (
        '{"accuracy": 0.5, "correct_count": 1, "total_count": 2}\n'
        '{"id": "simple_1", "model_name": "a", "test_category": "simple", "valid": false}\n',
        "scores of BFCL, which list only the wrong answers, .*correct_count and total_count",
    ),
    "gpt.json": (
        json.dumps(
            [{"session_id": "0", "chat_history": ["1 + 1?"], "output": ["2"], "generator": "a"}]
        ),
        "outputs of ZeroEval, which have no grades, .*for each graded answer",
    ),
    "Banking77Classification.json": (
        json.dumps(
            {
                "dataset_revision": "1",
                "task_name": "Banking77Classification",
                "mteb_version": "1.2",
                "scores": {"test": [{"hf_subset": "default", "main_score": 0.5}]},
            }
        ),
        "scores of MTEB, .*: write a table that has a row with model, task and score",
    ),
    "run_UPLOAD.json": (
        json.dumps(
            {
                "config": {"agent_name": "a", "benchmark_name": "usaco", "run_id": "1"},
                "results": {"accuracy": 0.5, "successful_tasks": ["1"], "failed_tasks": ["2"]},
            }
        ),
        "results of HAL, .*for each of successful_tasks and failed_tasks",
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_files_of_tools_that_are_not_read_are_named(tmp_path, caplog, name):
    text, told = UNREAD[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=told):
        read_responses(tmp_path / name)
    (tmp_path / "log.csv").write_text("model,question,correct\na,q,1\nb,q,0\n")
    with caplog.at_level("INFO", logger="bayesrank"):
        assert read_responses(tmp_path).shape == (2, 1, 1)
    assert f"1 file that is no log ({name} (" in caplog.text
