"""Tables as text that spreadsheets of other languages write, and that are cut off."""

import logging
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesrank import Responses, read_battles, read_data, read_responses
from bayesrank.errors import DataError
from bayesrank.outcomes import outcome_numbers

ROWS = [["a", "1", "0,5"], ["a", "2", "1"], ["b", "1", "0,875"], ["b", "2", "0"]]
EXPECTED = [[[0.5], [1.0]], [[0.875], [0.0]]]


def _write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("first", ["", "sep=;\r\n"])
def test_decimal_commas_of_semicolon_tables_are_read(
    tmp_path: Path, encoding: str, first: str
) -> None:
    lines = [";".join(row) for row in [["model", "question", "score"], *ROWS]]
    path = _write(tmp_path / "de.csv", first + "\r\n".join(lines), encoding)
    assert read_responses(path).scores.tolist() == EXPECTED


def test_decimal_commas_are_read_between_tabs_and_in_quotes(tmp_path: Path) -> None:
    header = ["model", "question", "score"]
    tabs = "\n".join("\t".join(row) for row in [header, *ROWS])
    quoted = "\n".join(",".join(f'"{each}"' for each in row) for row in [header, *ROWS])
    wide = "question;a;b\n1;0,5;0,875\n2;1;0\n"
    for name, text, options in (
        ("a.tsv", tabs, {}),
        ("b.csv", quoted, {}),
        ("c.csv", wide, {"wide": True}),
    ):
        assert read_responses(_write(tmp_path / name, text), **options).scores.tolist() == EXPECTED
    frame = pd.DataFrame(ROWS, columns=header)
    assert Responses.from_long(frame).scores.tolist() == EXPECTED


def test_labels_with_commas_stay_as_they_are(tmp_path: Path) -> None:
    text = "model;question;score\na;1,5;0,5\nb;1,5;1,5\n"
    data = read_responses(_write(tmp_path / "de.csv", text), scale=(0, 2))
    assert data.questions == ("1,5",)


def test_a_comma_that_may_separate_thousands_is_an_error_unless_semicolons_separate(
    tmp_path: Path,
) -> None:
    text = "model;question;score\na;1;1,500\nb;1;2,250\n"
    data = read_responses(_write(tmp_path / "de.csv", text), scale=(0, 10))
    np.testing.assert_allclose(data.values.ravel(), [1.5, 2.25])
    text = 'model,question,score\na,1,"1,500"\nb,1,"2,250"\n'
    with pytest.raises(DataError, match="write decimals with a point"):
        read_responses(_write(tmp_path / "en.csv", text), scale=(0, 10_000))
    with pytest.raises(DataError, match=r"got '1,5' .*write decimals with a point"):
        outcome_numbers(pd.Series(["1,5", "2.5"]), "a test")


@pytest.mark.parametrize(
    "text",
    [
        "# run of 1 May\n#, by hand\n\nmodel,item,score\na,1,1\nb,1,0\n",
        "#,model,item,score\n1,a,1,1\n2,b,1,0\n",
        "sep=;\n;;\nmodel;item;score\na;1;1\nb;1;0\n",
        "| **model** | item | score |\n|:---|---:|---|\n| `a` | 1 | **1** |\n| b | 1 | 0 |\n",
        "model,item,score\na,1,1\nmodel,item,score\nb,1,0\n",
        ",model,item,score\n0,a,1,1\n,model,item,score\n0,b,1,0\n",
    ],
    ids=["comments", "numbers", "blank", "markdown", "concatenated", "with index"],
)
def test_lines_that_are_no_rows_are_left_out(tmp_path: Path, text: str) -> None:
    data = read_responses(_write(tmp_path / "log.csv", text))
    assert (data.systems, data.outcomes.tolist()) == (("a", "b"), [[[1]], [[0]]])


def test_the_most_frequent_separator_of_the_names_is_taken(tmp_path: Path) -> None:
    text = 'model;"question, in full";score, in points\na;1;0,5\nb;1;1\n'
    path = _write(tmp_path / "de.csv", text)
    data = read_responses(path, question="question, in full", outcome="score, in points")
    assert data.values.ravel().tolist() == [0.5, 1.0]


def test_decimal_commas_of_battles_are_read(tmp_path: Path) -> None:
    text = (
        "model_a;model_b;winner;length_a;length_b;weight\n"
        "a;b;1,0;1,5;2,5;0,5\na;b;0,5;3,5;2,5;1\nb;a;0;3,5;2,5;1,5\n"
    )
    battles = read_battles(_write(tmp_path / "de.csv", text))
    assert battles.wins.tolist() == [[0.0, 2.0], [0.0, 0.0]]
    assert battles.ties.sum() == 2.0


@pytest.mark.parametrize(
    "text",
    [
        "model,question,trial,score,error\na,1,1,1,\na,2,1,1,\nb,1,1,0,\nb,2,1",
        'model,question,score,note\na,1,1,"x\ny"\na,2,1,z\nb,1,0,"u, v"\nb,2',
        "model_a,model_b,winner,judge,weight\na,b,1,x,1\nb,a,0,x,1\na,b,0.5,y",
    ],
)
def test_a_last_row_that_is_cut_is_damage(tmp_path: Path, text: str) -> None:
    path = _write(tmp_path / "cut.csv", text)
    with pytest.raises(DataError, match=r"copy the file again if it is cut off"):
        read_data(path)


@pytest.mark.parametrize(
    "text",
    [
        "model,question,score,note\na,1,1,x\na,2,1,y\nb,1,0,z\nb,2,0\n",  # Excel leaves blanks out
        "model,question,score,note\na,1,1\na,2,1,y\nb,1,0,z\nb,2,0",
        'model,question,score,note\na,1,1,x\na,2,1,y\nb,1,0,z\nb,2,0,"two\nlines"',
        "model,question,score\na,1,1\na,2,1\nb,1,0\nb,2,0",
    ],
)
def test_rows_without_damage_are_read(tmp_path: Path, text: str) -> None:
    data = read_responses(_write(tmp_path / "whole.csv", text))
    assert data.outcomes.tolist() == [[[1], [1]], [[0], [0]]]


def test_a_setting_that_differs_between_questions_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = ["a,low,1,1", "a,low,2,1", "a,high,3,0", "a,high,4,1"]
    others = ["b,low,1,0", "b,low,2,1", "b,low,3,1", "b,low,4,0"]
    header = "model,effort,question,score"
    path = _write(tmp_path / "half.csv", "\n".join([header, *rows, *others, ""]))
    with caplog.at_level(logging.INFO, logger="bayesrank"):
        assert read_responses(path).systems == ("a", "b")
    assert "a has several values of effort, each on other questions" in caplog.text
    assert read_responses(path, split_by="effort").systems == (
        "a (effort=low)",
        "a (effort=high)",
        "b (effort=low)",
    )
    caplog.clear()
    _write(path, "\n".join([header, *rows, ""]))
    with caplog.at_level(logging.INFO, logger="bayesrank"):
        read_responses(path)
    assert "a has several values of effort" in caplog.text
    caplog.clear()
    alike = [row.replace("a,", "b,") for row in rows]  # belongs to the questions
    _write(path, "\n".join([header, *rows, *alike, ""]))
    with caplog.at_level(logging.INFO, logger="bayesrank"):
        read_responses(path)
        read_responses(path, pool="effort")
    assert "several values" not in caplog.text


def test_rows_that_hold_nothing_are_left_out(tmp_path: Path) -> None:
    text = "model,question,score,note\na,1,1,\n\n,,,\nb,1,0,\n,,,\n"
    data = read_responses(_write(tmp_path / "log.csv", text))
    assert data.outcomes.tolist() == [[[1]], [[0]]]
    frame = pd.DataFrame([["a", "1", 1], [None, None, None], ["b", "1", 0]])
    assert Responses.from_long(frame.set_axis(["model", "question", "score"], axis=1)).shape == (
        2,
        1,
        1,
    )
    text = "model_a,model_b,winner,judge\na,b,model_a,x\n,,,\nb,a,tie,x\n,,,\n"
    assert len(read_battles(_write(tmp_path / "battles.csv", text)).first) == 2
    with pytest.raises(DataError, match="name the system in every row; got a blank in row 2"):
        read_responses(_write(tmp_path / "part.csv", "model,question,score\na,1,1\n,1,0\n"))


def test_wide_tables_may_have_a_column_for_each_question(tmp_path: Path) -> None:
    text = "Model,run,temperature,q1,q2\na,1,0.5,1,0\na,2,0.5,1,\nb,1,0.5,0,1\nb,2,0.5,0,1\n"
    path = _write(tmp_path / "wide.csv", text)
    data = read_responses(path, wide=True)
    assert (data.systems, data.questions) == (("a", "b"), ("q1", "q2"))
    assert data.outcomes.tolist() == [[[1, 1], [0, -1]], [[0, 0], [1, 1]]]
    assert Responses.from_long(pd.read_csv(path), wide=True).outcomes.tolist() == (
        data.outcomes.tolist()
    )
    with pytest.raises(DataError, match="wide=True for one column per question"):
        read_responses(path)


def test_wide_tables_may_have_a_column_for_each_trial(tmp_path: Path) -> None:
    text = "Who,item,Run 1,Run 2,mean\na,q1,1,0,0.5\na,q2,1,,1\nb,q1,0,0,0\nb,q2,1,1,1\n"
    path = _write(tmp_path / "wide.csv", text)
    data = read_responses(path, wide=True, system="Who")
    assert (data.systems, data.questions, data.paired) == (("a", "b"), ("q1", "q2"), True)
    assert data.outcomes.tolist() == [[[1, 0], [1, -1]], [[0, 0], [1, 1]]]
    _write(path, text.replace("Who", "model").replace("Run ", "attempt_"))
    attempts = read_responses(path, wide=True)
    assert (attempts.outcomes.tolist(), attempts.paired) == (data.outcomes.tolist(), False)
    with pytest.raises(DataError, match="wide=True for one column per trial"):
        read_responses(path)
    _write(path, "item,agent,human\nq1,1,0\nq2,1,1\n")
    assert read_responses(path, wide=True).systems == ("agent", "human")
    _write(path, "model,item,by_gpt,by_kim\na,q1,1,0\nb,q1,1,1\n")
    with pytest.raises(DataError, match=r"run1, run2, .* got by_gpt, by_kim .* by outcome=\.\.\."):
        read_responses(path, wide=True)


def test_columns_of_wide_tables_that_hold_no_outcomes_are_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "wide.csv", "dataset,commit,gpt,kim\nmmlu,abc,1,0\ngsm8k,abc,-,1\n")
    message = "got 'abc' in 'commit' in wide.csv: leave it out, or name those of the systems"
    with pytest.raises(DataError, match=message):
        read_responses(path, wide=True, question="dataset")
    named = read_responses(path, wide=True, question="dataset", system="gpt,kim")
    assert named.outcomes[..., 0].tolist() == [[1, -1], [0, 1]]
    _write(path, "model,key,license,mmlu\na,x,MIT,1\nb,z,,0\n")
    with pytest.raises(DataError, match=r"got 'x' in 'key' in wide.csv: leave out key, license$"):
        read_responses(path, wide=True)
    _write(path, "Rank,Model,MMLU,Latency Mean (s),Cost ($ Per 1k Calls)\n1,a,1,2,3\n2,b,0,1,2\n")
    lower = r"got 'Rank', 'Latency Mean \(s\)', 'Cost \(\$ Per 1k Calls\)', .*: leave them out"
    with pytest.raises(DataError, match=lower):
        read_responses(path, wide=True)
    _write(path, "model,license,mmlu\na,MIT,1\nb,,0\n")
    with pytest.raises(DataError, match=r"got 'MIT' in 'license' in wide.csv: leave it out$"):
        read_responses(path, wide=True)


@pytest.mark.parametrize(("letters", "worth"), [("PF", [1, 0]), ("PP", [1, 1]), ("PI", [0.5, 0])])
def test_p_is_a_pass_but_beside_correct_and_incorrect(
    tmp_path: Path, letters: str, worth: list[float]
) -> None:
    frame = pd.DataFrame({"model": "a", "item": [1, 2], "score": list(letters)})
    assert Responses.from_long(frame).values.ravel().tolist() == worth
    path = _write(tmp_path / "log.csv", frame.to_csv(index=False))
    assert read_responses(path).values.ravel().tolist() == worth


def test_decimals_of_databases_are_numbers() -> None:
    scores = [Decimal("0.5"), Decimal("1")]
    frame = pd.DataFrame({"model": ["a", "b"], "question": ["1", "1"], "score": scores})
    assert Responses.from_long(frame).scores.ravel().tolist() == [0.5, 1.0]


@pytest.mark.parametrize(
    "names",
    [("GPT-4", "gpt-4"), ("caf\u00e9", "cafe\u0301"), ("Llama 3", "Llama  3"), ("7", "7.0")],
)
def test_names_that_look_alike_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, names: tuple[str, str]
) -> None:
    rows = [f"{name},{question},1" for name in (*names, "other") for question in "12"]
    path = _write(tmp_path / "log.csv", "\n".join(["model,question,score", *rows, ""]))
    with caplog.at_level(logging.WARNING, logger="bayesrank"):
        assert read_responses(path).systems == (*names, "other")
    (message,) = caplog.messages
    assert message.startswith(f"{names[0]!r} and {names[1]!r} are read as different systems")


@pytest.mark.parametrize(
    "name",
    ["Average \u2b06\ufe0f", "avg.", "Overall Score", "**Mean** (6)", "mean_win_rate", "Total"],
)
def test_names_of_summaries_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    path = _write(tmp_path / "log.csv", f"Model,{name},law,art\na,0.5,1,0\nb,1,1,1\n")
    with caplog.at_level(logging.WARNING, logger="bayesrank"):
        assert read_responses(path, wide=True).questions == (name, "law", "art")
        read_responses(path, wide=True, question="Model")
    assert [message.split(" is called")[0] for message in caplog.messages] == [
        f"The question {name!r}",
        f"The system {name!r}",
    ]
    caplog.clear()
    _write(path, "Model,meanness,total recall\na,1,0\nb,1,1\n")
    with caplog.at_level(logging.WARNING, logger="bayesrank"):
        read_responses(path, wide=True)
    assert not caplog.messages


def test_nested_values_are_said_in_words(tmp_path: Path) -> None:
    for text, message in (
        ('{"model": "a", "question": "1", "score": {"value": 1}}', "objects with fields of their"),
        ('{"model": "a", "question": ["x"], "score": 1}', "got lists in"),
    ):
        with pytest.raises(DataError, match=message):
            read_responses(_write(tmp_path / "log.jsonl", text))


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ("model,question,score,score", {}),
        ("model,question,score,points,points", {"outcome": "points"}),
        ("question,gpt,gpt", {"wide": True}),
        ("model_a,model_b,winner,winner", {}),
    ],
)
def test_columns_of_one_name_are_refused_where_they_are_read(
    tmp_path: Path, names: str, options: dict[str, Any]
) -> None:
    path = _write(tmp_path / "log.csv", f"{names}\n" + ",".join("a" * names.count(",")) + ",1\n")
    with pytest.raises(DataError, match=r"name every column once; got '\w+' twice in log\.csv"):
        read_data(path, **options)


def test_columns_of_one_name_that_are_not_read_do_no_harm(tmp_path: Path) -> None:
    path = _write(tmp_path / "log.csv", "model,item,score,note,note,\na,q,1,x,y,\nb,q,0,x,y,\n")
    assert read_responses(path).outcomes.tolist() == [[[1]], [[0]]]


def test_an_outcome_that_is_none_is_named_with_its_file_and_cell(tmp_path: Path) -> None:
    path = _write(tmp_path / "wins in may.csv", "model,item,score\na,q,1\nb,q,oops\n")
    message = r"outcome column of wins in may\.csv, system 'b', question 'q': leave"
    with pytest.raises(DataError, match=message):
        read_responses(path)
    path = _write(tmp_path / "wide.csv", "item,a,b\nq,1,0\nr,1,oops\n")
    with pytest.raises(DataError, match=r"of wide\.csv, system 'b', question 'r'"):
        read_responses(path, wide=True)


def test_blanks_of_spreadsheets_and_frames_are_missing(tmp_path: Path) -> None:
    path = _write(tmp_path / "log.csv", "model,item,score\na,q,1\na,r,#N/A\nb,q,<NA>\nb,r,0\n")
    assert read_responses(path).outcomes.tolist() == [[[1], [-1]], [[-1], [0]]]


def test_the_index_of_a_frame_is_no_system_of_a_wide_table(tmp_path: Path) -> None:
    numbered = _write(tmp_path / "numbered.csv", ",item,a,b\n0,q,1,0\n1,r,1,1\n")
    assert read_responses(numbered, wide=True).systems == ("a", "b")
    path = _write(tmp_path / "log.csv", ",a,b\nq,1,0\nr,1,1\n")
    message = r"name every column of a wide table; got q, \.\.\. in one without a name in log"
    with pytest.raises(DataError, match=message):
        read_responses(path, wide=True)
    data = read_responses(path, wide=True, question="Unnamed: 0")
    assert (data.systems, data.questions) == (("a", "b"), ("q", "r"))


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "feather"])
def test_an_index_of_names_is_not_lost(tmp_path: Path, ending: str) -> None:
    # Two files may have their rows in different orders.
    for system, rows in (("a", {"q": 1, "r": 0}), ("b", {"r": 0, "q": 1})):
        frame = pd.DataFrame({system: pd.Series(rows)})
        getattr(frame, f"to_{ending}")(tmp_path / f"{system}.{ending}")
    with pytest.raises(DataError, match=r"got q, \.\.\. in one without a name"):
        read_responses(tmp_path, wide=True)
    data = read_responses(tmp_path, wide=True, question="Unnamed: 0")
    assert (data.questions, data.outcomes.tolist()) == (("q", "r"), [[[1], [0]]] * 2)


def test_columns_without_names_and_values_are_left_out(tmp_path: Path) -> None:
    path = _write(tmp_path / "log.csv", "item,a,b,,\nq,1,0,,\nr,1,1,,\n")
    assert read_responses(path, wide=True).systems == ("a", "b")


@pytest.mark.parametrize(
    "title", ["Weekly results 2025,,", "Weekly results\n", '"Results, all",,\n,,']
)
def test_titles_above_the_names_of_columns_are_left_out(tmp_path: Path, title: str) -> None:
    rows = "model,question,correct\na,q1,1\na,q2,0\nb,q1,0\n"
    data = read_responses(_write(tmp_path / "log.csv", f"{title}\n{rows}"))
    assert data.outcomes[..., 0].tolist() == [[1, 0], [0, -1]]
    votes = "model_a,model_b,winner\na,b,model_a\n"
    data = read_battles(_write(tmp_path / "votes.csv", f"{title}\n{votes}"))
    assert data.systems == ("a", "b")
    with pytest.raises(DataError, match="leave out lines above the names of the columns"):
        read_responses(_write(tmp_path / "log.csv", f"Weekly, of May\n{rows}"))


def test_other_signs_for_missing_and_negative_outcomes(tmp_path: Path) -> None:
    rows = "model,question,score\na,q1,--\na,q2,n.a.\na,q3,.\na,q4,\u22120.5\nb,q4,0.5\n"
    data = read_responses(_write(tmp_path / "log.csv", rows), scale=(-1, 1))
    assert data.questions == ("q4",)
    assert data.values.ravel().tolist() == [-0.5, 0.5]


@pytest.mark.parametrize("value", ["0.85 \u00b1 0.02", "0.85 (0.02)", "7/10", "'1'"])
def test_outcomes_that_are_more_than_a_number_are_told_so(tmp_path: Path, value: str) -> None:
    path = _write(tmp_path / "log.csv", f"model,question,score\na,q,{value}\nb,q,1\n")
    with pytest.raises(DataError, match="write the number only, with a column total"):
        read_responses(path)


def test_infinite_outcomes_are_refused_whatever_the_others_are(tmp_path: Path) -> None:
    for other in ("0.5", "1"):
        path = _write(tmp_path / "log.csv", f"model,question,score\na,q,inf\nb,q,{other}\n")
        with pytest.raises(DataError, match="must be finite; got inf for system 'a', question 'q'"):
            read_responses(path)
