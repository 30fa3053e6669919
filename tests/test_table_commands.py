"""``bayesrank convert``, and what ``bayesrank check`` says of files."""

import json

import pytest

from bayesrank import read_responses

ROWS = "model,subject,id,run,score\na,x,0,1,1\na,x,1,1,0\na,y,0,1,1\nb,x,0,1,0\nb,y,0,1,\n"


HEADER = ["file", "systems", "questions", "trials", "groups", "missing", "left", "out,", "why"]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "logs"
    path.mkdir()
    header, *rows = ROWS.splitlines()
    for system in "ab":
        own = [row for row in rows if row.startswith(system)]
        (path / f"{system}.csv").write_text("\n".join([header, *own]))
    (path / "notes.csv").write_text("hello,there\n1,2\n")
    return path


@pytest.mark.parametrize(
    "name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet", "t.feather", "t.csv.gz", "t.jsonl.xz"]
)
def test_convert_writes_what_reads_alike(run, folder, tmp_path, name):
    result = run("convert", folder, tmp_path / name)
    assert "1 file that is no log (notes.csv) left out" in result.stderr
    data = read_responses(tmp_path / name)
    assert data.fingerprint == read_responses(folder).fingerprint
    assert data.paired


def test_convert_says_which_endings_there_are(run, folder, tmp_path):
    result = run("convert", folder, tmp_path / "t.xlsx", code=2)
    assert "OUTPUT must end in .csv, .tsv, .jsonl" in result.stderr
    assert not list(tmp_path.glob("t*"))
    result = run("convert", folder, tmp_path / "absent" / "t.csv", code=2)
    assert "absent: the folder of OUTPUT must exist" in result.stderr


def test_a_full_disk_leaves_the_older_table(run, folder, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bayesrank.readers.writing.os.replace", fail)
    result = run("convert", folder, path, code=2)
    assert f"{path}: No space left on device" in result.stderr
    assert path.read_text() == "old"


@pytest.mark.filterwarnings("ignore:2 groups of questions")
def test_check_says_what_each_file_holds(run, folder):
    (folder / "c.csv").write_text("model,id,score\nc,0,maybe\n")
    result = run("check", folder, code=2)
    lines = result.stdout.splitlines()
    assert lines[0].split() == HEADER
    assert lines[1].split() == ["logs/a.csv", "a", "3", "1", "2", "0", "no"]
    assert "got 'maybe' for the outcome column of c.csv" in " ".join(result.stdout.split())
    # No flag is wrong, but the data.
    assert result.stderr.splitlines()[-1].startswith("Error: outcomes must be numbers")
    assert "in no known format" in result.stdout
    (folder / "c.csv").unlink()
    result = run("check", folder, "--method", "avg", "--format", "json")
    files = json.loads(result.stdout)["files"]
    assert [each["problem"] for each in files] == ["", "", "in no known format"]


@pytest.mark.filterwarnings("ignore:2 groups of questions")
def test_check_says_the_groups(run, folder):
    result = run("check", folder, "--method", "avg")
    assert "groups, and their questions" in result.stdout
    assert "2: x (2) and y (1)" in result.stdout


def test_columns_are_flags(run, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("who,what,when,good\na,p,0,1\na,q,0,0\nb,p,0,1\nb,q,0,1\n")
    flags = ["--system", "who", "--question", "what", "--trial", "when", "--outcome", "good"]
    result = run("rank", path, *flags, "--method", "avg", "--draws", 0)
    assert "2 systems, 2 questions, 1 trial" in result.stderr
    message = run("rank", path, *flags[2:], code=2).stderr
    assert "name it by --system COL" in message
    wide = tmp_path / "wide.csv"
    wide.write_text("id,a,b\np,1,0\nq,1,1\n")
    result = run("rank", wide, "--wide", "--method", "avg", "--draws", 0)
    assert "2 systems, 2 questions, 1 trial" in result.stderr


@pytest.mark.parametrize("flags", [(), ("--system", "name")])
def test_a_wide_table_has_systems_in_rows_if_a_column_names_them(run, tmp_path, flags):
    path = tmp_path / "wide.csv"
    path.write_text(f"{flags[1] if flags else 'model'},law,art,tax\na,1,0,1\nb,1,1,1\n")
    result = run("rank", path, "--wide", *flags, "--method", "avg", "--draws", 0)
    assert "2 systems, 3 questions, 1 trial" in result.stderr
