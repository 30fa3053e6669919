"""Names that would control a terminal, a spreadsheet or a document do nothing."""

import json

import pytest

from bayesrank.printable import cell_text, listing, printable

HARMFUL = [
    "\x1b[31mred",
    "bell\x07",
    "\u202egnp",
    "a\nb",
    "\x9b2J",
    "=cmd|' /C calc'!A1",
    "@SUM(A1)",
]


@pytest.mark.parametrize(
    ("names", "text"),
    [("a", "a"), ("ab", "a and b"), ("abcd", "a, b, c and d"), ("abcde", "a, b, c and 2 more")],
)
def test_some_names_are_listed(names: str, text: str) -> None:
    assert listing(names) == text


@pytest.mark.parametrize("text", ["gpt-4.1", "模型 ü 😀", "👩‍🔬", "a_b $x$"])
def test_other_names_stay(text):
    assert printable(text) == cell_text(text) == text


@pytest.mark.parametrize("output_format", ["table", "csv", "markdown", "latex", "json"])
@pytest.mark.parametrize("name", HARMFUL)
def test_no_output_has_them(run, tmp_path, name, output_format):
    rows = [{"model": each, "question": q, "score": 1} for each in (name, "b") for q in range(3)]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    result = run("rank", path, "--method", "avg", "--draws", 0, "--format", output_format)
    shown = result.stdout + result.stderr
    assert not any(each in shown for each in "\x1b\x07\x9b\u202e")
    if output_format == "csv":
        fields = [line.split(",")[1].strip('"') for line in result.stdout.splitlines()]
        assert not any(field.startswith(("=", "+", "@")) for field in fields)
    if output_format == "markdown":
        assert len(result.stdout.splitlines()[2:4]) == 2
        assert all(line.startswith("| ") for line in result.stdout.splitlines()[:4])


def test_no_error_has_them(run, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("model,question,score\n\x1b[31mred,q,7\n")
    message = run("rank", path, code=2).stderr
    assert "\x1b" not in message
    assert "x1b[31mred" in message
