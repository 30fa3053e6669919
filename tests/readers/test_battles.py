"""Battles, in the layouts of published arenas."""

import json

import numpy as np
import pandas as pd
import pytest

from bayesrank import Battles, Responses, point_estimate
from bayesrank.errors import DataError
from bayesrank.readers import read_battles, read_data, read_responses, read_table
from bayesrank.readers.writing import write_table

ROWS = [
    {"model_a": "a", "model_b": "b", "winner": "model_a", "conversation": ["x"]},
    {"model_a": "b", "model_b": "a", "winner": "model_a", "conversation": ["y"]},
    {"model_a": "a", "model_b": "c", "winner": "tie (bothbad)", "conversation": ["z"]},
]


def write(path, rows):
    frame = pd.DataFrame(rows)
    if path.suffix == ".csv":
        frame.drop(columns="conversation", errors="ignore").to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json", "jsonl"])
def test_all_formats_read_alike(tmp_path, suffix):
    path = write(tmp_path / f"battles.{suffix}", ROWS)
    expected = Battles(["a", "b", "a"], ["b", "a", "c"], ["first", "first", "both_bad"])
    for data in (read_battles(path), read_data(tmp_path)):
        assert data.fingerprint == expected.fingerprint
        assert data.systems == ("a", "b", "c")
        assert data.both_bad.tolist() == [False, False, True]


@pytest.mark.parametrize("orient", ["columns", "split", "table", "list"])
def test_json_by_columns_is_read(tmp_path, orient):
    frame = pd.DataFrame(ROWS)
    text = json.dumps(frame.to_dict("list")) if orient == "list" else frame.to_json(orient=orient)
    (tmp_path / "battles.json").write_text(text)
    assert read_data(tmp_path).fingerprint == Battles.from_frame(frame).fingerprint


def test_a_column_of_verdicts_does_not_number_votes(tmp_path):
    rows = [row | {"vote": "left"} for row in ROWS]
    data = read_battles(write(tmp_path / "a.csv", rows))
    assert (data.n_battles, data.vote) == (3, None)
    path = write(tmp_path / "b.csv", [row | {"vote": row.pop("winner")} for row in rows])
    assert read_battles(path).fingerprint == data.fingerprint
    numbered = [row | {"vote_id": number // 2} for number, row in enumerate(rows)]
    assert read_battles(write(tmp_path / "c.csv", numbered)).n_battles == 2


def test_marked_winners_and_weights(tmp_path):
    rows = [
        {"model_a": "a", "model_b": "b", "winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0},
        {"model_a": "a", "model_b": "b", "winner_model_a": 0, "winner_model_b": 0, "winner_tie": 1},
    ]
    weighted = [row | {"weight": 0.5} for row in rows]
    data = read_battles([write(tmp_path / "a.csv", rows), write(tmp_path / "b.csv", weighted)])
    assert data.wins.tolist() == [[0, 1.5], [0, 0]]
    assert data.ties.tolist() == [[0, 1.5], [1.5, 0]]
    for wrong in ({"winner_tie": 1}, {"winner_model_a": 0.75, "winner_tie": 0.25}):
        path = write(tmp_path / "c.csv", [rows[1], rows[0] | wrong])
        with pytest.raises(DataError, match=r"one result .*; got others in c\.csv, row 2"):
            read_battles(path)


@pytest.mark.parametrize(
    "text",
    [
        "model_a,model_b,winner,count\na,b,model_a,3\nb,a,model_a,1\na,b,tie,2\n",
        "model_a,model_b,winner,n\na,b,1,3\na,b,0,1\na,b,0.5,2\n",
        "model_a,model_b,wins_a,wins_b,ties,n\na,b,3,1,2,6\n",
        "winner,loser,tie,count\na,b,False,3\nb,a,False,1\na,b,True,2\n",
    ],
)
def test_rows_count_as_often_as_they_say(tmp_path, text):
    (tmp_path / "battles.csv").write_text(text)
    data = read_data(tmp_path / "battles.csv")
    assert data.wins.tolist() == [[0, 3], [1, 0]]
    assert data.ties.tolist() == [[0, 2], [2, 0]]
    assert data.n_battles == 6


def test_numbers_that_may_be_places_of_winners_are_explained(tmp_path, caplog):
    path = tmp_path / "battles.csv"
    said = "1 is a win of the first system and 0 of the second in battles.csv"
    for numbers, is_said in (((1, 0), True), ((1, 0.5), False), ((1, 2), False)):
        caplog.clear()
        path.write_text("model_a,model_b,winner\n" + "".join(f"a,b,{each}\n" for each in numbers))
        with caplog.at_level("WARNING", "bayesrank"):
            assert read_battles(path).wins[0, 1] >= 1
        assert (said in caplog.text) == is_said
    caplog.clear()
    path.write_text("white,black,result\na,b,1\na,b,0\n")
    with caplog.at_level("WARNING", "bayesrank"):
        read_battles(path)
    assert said not in caplog.text


def test_marks_may_be_words_and_blanks(tmp_path):
    path = tmp_path / "marks.csv"
    names = "model_a,model_b,winner_model_a,winner_model_b,winner_tie"
    path.write_text(f"{names}\na,b,True,False,False\na,b,,,1\n")
    data = read_battles(path)
    assert data.wins.tolist() == [[0, 1], [0, 0]]
    assert data.ties.tolist() == [[0, 1], [1, 0]]
    path.write_text(f"{names}\na,b,a,0,0\n")
    with pytest.raises(DataError, match=r"got 'a' for column winner_model_a of marks\.csv"):
        read_battles(path)
    with pytest.raises(DataError, match=r"got 'a' for column winner_model_a of the table"):
        Battles.from_frame(pd.read_csv(path))


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_what_is_no_text_or_no_label_is_said_in_words(tmp_path, ending):
    path = tmp_path / f"battles{ending}"
    if ending == ".csv":
        path.write_bytes("model_a,model_b,winner\nä,b,a\n".encode("latin-1"))
        message = r"in .*/battles\.csv: save the file as text in UTF-8"
    else:
        path.write_text(json.dumps({"model_a": {"id": 1}, "model_b": "b", "winner": "tie"}))
        message = "hold labels in their columns; got objects with fields of their own for model_a"
    with pytest.raises(DataError, match=message):
        read_battles(path)


def test_real_arena(shared):
    data = read_battles(shared / "data" / "evalica_llmfao.csv")
    frame = pd.read_csv(shared / "data" / "evalica_llmfao.csv")
    assert len(data.systems) == len({*frame["left"], *frame["right"]}) == 59
    assert data.ties.sum() / 2 == (frame["winner"] == "tie").sum()
    assert data.wins.sum() == (frame["winner"] != "tie").sum()
    assert np.isfinite(point_estimate(data, "bradley_terry")).all()
    assert data.units == {"prompt": 13, "judge": 124, "battle": 8931}
    assert data.default_unit(crossed=False) == "prompt"


def counts(table, systems):
    """Return the positive entries of a matrix by the names of the systems."""
    cells = zip(*np.nonzero(table), strict=True)
    return {(systems[i], systems[j]): table[i, j] for i, j in cells}


@pytest.mark.parametrize(
    ("name", "wins", "ties"),
    [
        (
            "case17/fc.csv",
            {("A", "base"): 40, ("base", "A"): 60, ("B", "base"): 40},
            {("base", "B"): 60},
        ),
        ("case18/byname.csv", {("B", "A"): 1, ("A", "B"): 9}, {}),
        ("case20/names2.csv", {("gpt-4", "claude"): 2}, {}),
        ("case20/coval.csv", {("x", "y"): 1, ("y", "x"): 1}, {("x", "y"): 1}),
        ("case20/counts.csv", {("Model1", "Model2"): 7, ("Model2", "Model1"): 3}, {}),
        ("case20/wins.csv", {("x", "y"): 7, ("y", "x"): 3}, {("x", "y"): 1}),
        (
            "case20/v_10.csv",
            {("a", "b"): 2, ("b", "a"): 1, ("c", "a"): 1},
            {("a", "c"): 1, ("b", "c"): 1},
        ),
        ("case20/gpt-4_pair.jsonl", {("m1", "m2"): 15}, {("m1", "m2"): 5}),
        ("case20/arena_hard.jsonl", {("o3-mini", "m1"): 12}, {}),
        (
            "case20/players.csv",
            {("alice", "bob"): 1, ("bob", "alice"): 1},
            {("bob", "carol"): 1, ("alice", "carol"): 1},
        ),
    ],
)
def test_layouts_of_the_public_cases(shared, name, wins, ties):
    data = read_data(shared / "cases" / name)
    assert counts(data.wins, data.systems) == wins
    assert counts(np.triu(data.ties), data.systems) == ties


def test_preferences_of_alpaca_eval_are_shares_of_one_vote(shared):
    data = read_data(shared / "cases" / "case20" / "alpaca.json")
    first, second = data.systems.index("gpt4_turbo"), data.systems.index("m1")
    # 1.0, 1.4 and 1.8 on two instructions each: 1, 0.6 and 0.2 for the first.
    assert data.wins[first, second] == pytest.approx(3.6)
    assert data.wins[second, first] == pytest.approx(2.4)
    assert data.n_battles == 6
    assert data.default_unit(crossed=False) == "prompt"


@pytest.mark.parametrize("words", [("1", "2", "tie"), ("p", "p", "tie"), ("Model A", "B", "Draw")])
def test_preferences_in_words_are_winners(tmp_path, words):
    path = tmp_path / "words.csv"
    rows = zip(("p,q", "q,p", "p,q"), words, strict=True)
    path.write_text("model_a,model_b,preference\n" + "".join(f"{a},{b}\n" for a, b in rows))
    assert read_battles(path).outcome.tolist() == [1, -1, 0]


def test_swapped_games_are_one_vote_and_games_without_a_verdict_are_left_out(tmp_path, caplog):
    rows = [
        {
            "question_id": 1,
            "model_1": "p",
            "model_2": "q",
            "g1_winner": "model_2",
            "g2_winner": "tie",
        },
        {
            "question_id": 2,
            "model_1": "p",
            "model_2": "q",
            "g1_winner": "error",
            "g2_winner": "model_1",
        },
    ]
    with caplog.at_level("INFO", logger="bayesrank"):
        data = read_battles(write(tmp_path / "judged.jsonl", rows))
    assert data.first.tolist() == [0, 1, 1]
    assert data.outcome.tolist() == [-1, 0, -1]
    assert data.vote.codes.tolist() == [0, 0, 1]
    assert data.prompt.names == ("1", "2")
    assert "1 of 4 games have no verdict in judged.jsonl" in caplog.text


def test_arenas_export_time_judges_prompts_and_style(tmp_path):
    style = {
        "sum_assistant_a_tokens": 300,
        "sum_assistant_b_tokens": 100,
        "header_count_a": {"h1": 1, "h2": 2},
        "header_count_b": {"h1": 0, "h2": 0},
        "list_count_a": {"ordered": 0, "unordered": 0},
        "list_count_b": {"ordered": 0, "unordered": 0},
        "bold_count_a": {"**": 1, "__": 0},
        "bold_count_b": {"**": 3, "__": 0},
    }
    row = {
        "model_a": "p",
        "model_b": "q",
        "winner": "model_a",
        "language": "en",
        "conv_metadata": style,
    }
    rows = [
        row | {"evaluation_session_id": "s1", "timestamp": "2025-06-02 10:00:00", "prompt_id": "x"},
        row | {"evaluation_session_id": "s2", "timestamp": "2025-06-01 10:00:00", "prompt_id": "y"},
    ]
    for suffix in ("jsonl", "parquet"):
        data = read_battles(write(tmp_path / f"arena.{suffix}", rows))
        # In the order of time.
        assert [data.judge.names[code] for code in data.judge.codes] == ["s2", "s1"]
        assert [data.prompt.names[code] for code in data.prompt.codes] == ["y", "x"]
        assert np.diff(data.time).tolist() == [86400.0]
        assert data.group.names == ("en",)
        found = {name: values.tolist() for name, values in data.covariates.items()}
        assert found == {
            "length": [0.5, 0.5],
            "headers": [1, 1],
            "lists": [0, 0],
            "bold": [-0.5, -0.5],
        }


def test_pairs_of_numbers_are_covariates(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(
        "model_a,model_b,winner,length_a,length_b,notes_a,notes_b\np,q,a,5,3,x,y\nq,p,b,1,9,u,v\n"
    )
    data = read_battles(path)
    assert {name: values.tolist() for name, values in data.covariates.items()} == {
        "length": [2, -8]
    }


def test_responses_of_battles_are_refused_with_the_remedy(tmp_path):
    path = write(tmp_path / "battles.csv", ROWS)
    for read in (read_responses, read_table):
        with pytest.raises(DataError, match=r"got battles in battles\.csv: read them with read_b"):
            read(path)


def test_read_data_gives_responses_of_logs(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("model,question,score\na,q,1\nb,q,0\n")
    assert read_data(path).shape == (2, 1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model_a,winner\na,model_a\n", r"columns for two systems, .* got model_a, winner"),
        (
            "model_a,model_b,a_won\na,b,1\n",
            r"columns for two systems.* got model_a, model_b, a_won",
        ),
        ("model_a,model_b,winner\n", r"at least one battle; got none in bad\.csv"),
        (
            "model_a,model_b,winner\na,b,\n",
            r"winner of every battle; got a blank in row 1",
        ),
        ("model_a,model_b,winner\na,,tie\n", r"name the second of every battle"),
        ("model_a,model_b,winner\na,b,a\nb,a,maybe\n", r"one of .* got 'maybe' in battle 2"),
        (
            "model_a,model_b,wins_a,wins_b\na,b,-3,1\n",
            r"wins_a must not be negative; got -3 in bad",
        ),
        ("generator_1,generator_2,preference\na,b,\n", r"a verdict .* got none in bad\.csv"),
        (
            "model_1,model_2,g1_winner,g2_winner\na,b,A,tie\n",
            r"g1_winner must be .* got 'A' in bad",
        ),
        (
            "model_a,model_b,winner,date\na,b,a,\n",
            r"time .* got blanks .* another name is not read",
        ),
        ("model_a,model_b,preference\na,b,1\na,b,0\n", r"got 0 and none above 1 in bad\.csv"),
        ("generator_1,generator_2,preference\na,b,2\na,b,3\n", r"from 1 .* got 3 in bad\.csv"),
        ("model_a,model_b,winner\na,a,tie\n", r"must be of two systems; got none in bad\.csv"),
    ],
)
def test_broken_battles(tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_battles(tmp_path / "bad.csv")


@pytest.mark.parametrize("before", ["", "x"])
def test_long_texts_in_other_scripts_are_no_damage(tmp_path, before):
    # One of the two ends its first thousand bytes within a letter.
    rows = [row | {"question": before + 1000 * "ß"} for row in ROWS]
    path = tmp_path / "battles.json"
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    assert read_data(path).n_battles == 3


def test_battles_cut_off(tmp_path):
    path = write(tmp_path / "battles.json", ROWS)
    path.write_text(path.read_text()[:-4])
    with pytest.raises(DataError, match=r"paths must hold valid JSON"):
        read_battles(path)
    path = write(tmp_path / "battles.parquet", ROWS)
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"paths must be readable tables"):
        read_battles(path)


@pytest.mark.parametrize("name", ["votes.tsv", "votes.csv.gz", "votes.jsonl.bz2", "votes.ndjson"])
def test_battles_are_read_compressed_and_from_all_kinds_of_tables(tmp_path, name):
    frame = pd.DataFrame({"model_a": ["x", "y"], "model_b": ["y", "z"], "winner": ["x", "tie"]})
    path = tmp_path / name
    if "json" in name:
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, sep="\t" if name.endswith(".tsv") else ",", index=False)
    battles = read_battles([path])
    assert battles.systems == ("x", "y", "z")
    assert battles.wins.sum() == battles.ties.sum() / 2 == 1


def test_covariates_in_parquet_are_those_of_the_frame(tmp_path):
    frame = pd.DataFrame(
        {
            "model_a": ["a", "b", "a"],
            "model_b": ["b", "c", "c"],
            "winner": ["model_a", "tie", "model_b"],
            "Length_a": [1, 2, 3],
            "length_b": [3.0, 2.0, 0.5],
            "bold_a": [1.0, np.nan, 2.0],
            "bold_b": [1.0, 1.0, 2.0],
        }
    )
    path = tmp_path / "log.parquet"
    frame.to_parquet(path)
    log = read_battles(path)
    assert list(log.covariates) == ["length"]
    np.testing.assert_array_equal(log.covariates["length"], [-2.0, 0.0, 2.5])
    assert log.fingerprint == Battles.from_frame(frame).fingerprint


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_blanks_name_nobody_and_systems_do_not_meet_themselves(tmp_path, suffix, caplog):
    row = {"model_a": "a, turbo", "model_b": "b", "winner": "model_a", "judge": "u"}
    rows = [
        row | {"language": "en"},
        row | {"judge": "", "language": ""},
        row | {"judge": None, "language": None},
        row | {"judge": "  ", "language": "de"},
        row | {"model_b": "a, turbo", "language": "fr"},
    ]
    with caplog.at_level("INFO", logger="bayesrank"):
        read_battles(write(tmp_path / f"named.{suffix}", rows[:1]))
        assert "name no" not in caplog.text
        data = read_battles(write(tmp_path / f"votes.{suffix}", rows))
    assert data.n_battles == 4
    assert len(data.judge.names) == 4
    assert repr(data) == "Battles(4 battles, 2 systems, 4 judges, 2 groups)"
    assert f"3 of 5 battles name no judge in votes.{suffix}" in caplog.text
    assert "1 of 5 battles are of a system with itself, and left out" in caplog.text
    path = write(tmp_path / f"alone.{suffix}", rows[4:])
    with pytest.raises(DataError, match=rf"must be of two systems; got none in alone\.{suffix}"):
        read_battles(path)


@pytest.mark.parametrize(
    "times",
    [
        [1750000000, 1750086400],
        [1750000000_000, 1750086400_000],
        [1750000000_000_000, 1750086400_000_000],
        [1750000000_000_000_000, 1750086400_000_000_000],
        ["2025-06-15T17:06:40+02:00", "2025-06-16T08:06:40-07:00"],
        ["2025-06-15 15:06:40", "2025-06-16T15:06:40Z"],
    ],
)
def test_times_in_any_unit_and_zone_are_seconds(times):
    sides = {"model_a": ["a", "a"], "model_b": ["b", "b"], "winner": ["a", "b"]}
    data = Battles.from_frame(pd.DataFrame(sides | {"tstamp": times}))
    assert data.time.tolist() == [1750000000.0, 1750086400.0]


def test_spaces_around_names_are_left_out(tmp_path, caplog):
    """As they are in tables of outcomes."""
    path = tmp_path / "battles.csv"
    path.write_text("model_a,model_b,winner,judge\na ,b,a,j\n a,b ,b, j\nb,c,tie,k\n")
    with caplog.at_level("INFO", logger="bayesrank"):
        data = read_battles(path)
    assert data.systems == ("a", "b", "c")
    assert data.wins.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert data.judge.names == ("j", "k")
    assert caplog.text.count("Names of a system that differ in spaces around them are one") == 1
    caplog.clear()
    outcomes = pd.DataFrame({"model": ["a ", "a"], "question": [1, 2], "score": [0, 1]})
    with caplog.at_level("INFO", logger="bayesrank"):
        assert Responses.from_long(outcomes).systems == ("a",)
    assert caplog.text.count("Names of a system that differ in spaces around them are one") == 1


@pytest.mark.parametrize(
    ("days", "months", "said"),
    [
        (["1/5/2026", "13/5/2026"], [5, 5], ""),
        (["1/5/2026", "1/13/2026"], [1, 1], ""),
        (["1/5/2026 3:05 PM", "1/6/2026"], [1, 1], "with the month first"),
        (["1.5.2026", "1.6.2026"], [5, 6], "with the day first"),
        (["5/5/2026", "2026-06-01"], [5, 6], ""),
        (["3 May 2026", "4 June 2026"], [5, 6], ""),
        ([20260503, 20260604], [5, 6], ""),
        (["20260503", "20260604"], [5, 6], ""),
        ([20260503, 20260699], [8, 8], ""),  # seconds, since one of them is no date
    ],
)
def test_days_and_months_have_one_order(caplog, days, months, said):
    sides = {"model_a": ["a", "a"], "model_b": ["b", "b"], "winner": ["a", "b"]}
    with caplog.at_level("INFO", logger="bayesrank"):
        data = Battles.from_frame(pd.DataFrame(sides | {"date": days}))
    assert pd.to_datetime(data.time, unit="s").month.tolist() == months
    assert said in caplog.text
    assert bool(said) == bool(caplog.text)


def test_days_and_months_in_two_orders_are_refused():
    sides = {"model_a": ["a", "a"], "model_b": ["b", "b"], "winner": ["a", "b"]}
    frame = pd.DataFrame(sides | {"date": ["13/5/2026", "5/14/2026"]})
    with pytest.raises(DataError, match="days and months in one order; got '13/5/2026' and '5/14"):
        Battles.from_frame(frame)


def test_times_of_day_are_refused():
    """They would be those of the day on which the log is read."""
    sides = {"model_a": ["a", "a"], "model_b": ["b", "b"], "winner": ["a", "b"]}
    frame = pd.DataFrame(sides | {"time": ["2026-05-13 10:33", "10:33:12"]})
    with pytest.raises(DataError, match="time must hold dates; got '10:33:12', a time of day"):
        Battles.from_frame(frame)


def test_a_frame_of_battles_is_ranked_as_battles():
    frame = pd.DataFrame({"model_a": ["a", "a"], "model_b": ["b", "c"], "winner": ["a", "tie"]})
    np.testing.assert_array_equal(point_estimate(frame), point_estimate(Battles.from_frame(frame)))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".parquet"])
def test_names_of_columns_are_spelled_as_in_other_tables(tmp_path, suffix):
    names = ["Model A", "modelB", "Winner", "Prompt-ID", "Length_A", "Length_B"]
    values = [("a", "b", "model_a", "p", 1, 3), ("a", "c", "tie", "q", 2, 5)]
    rows = [dict(zip(names, each, strict=True)) for each in values]
    write(path := tmp_path / f"battles{suffix}", rows)
    data, frame = read_data(path), pd.DataFrame(rows)
    assert data.fingerprint == Battles.from_frame(frame).fingerprint
    assert data.systems == ("a", "b", "c")
    assert data.prompt.names == ("p", "q")
    assert data.covariates["length"].tolist() == [-2, -3]
    np.testing.assert_array_equal(point_estimate(frame), point_estimate(data))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".json", ".parquet"])
def test_covariates_with_holes_are_said(tmp_path, caplog, suffix):
    names = ["model_a", "model_b", "winner", "length_a", "length_b", "answer_a", "answer_b"]
    lengths, answers = [1.5, None, 2.5, 3.5], ["1", "no", "so", "x"]
    values = [
        ("a", "b", "a", length, 1.5, answer, answer)
        for length, answer in zip(lengths, answers, strict=True)
    ]
    write(
        path := tmp_path / f"battles{suffix}",
        [dict(zip(names, each, strict=True)) for each in values],
    )
    with caplog.at_level("INFO", logger="bayesrank"):
        assert not read_data(path).covariates
    said = [text for text in caplog.messages if "left out" in text]
    assert said == ["length is left out: it is missing on a side of 1 of 4 battles"]


def test_columns_of_one_name_are_refused():
    frame = pd.DataFrame([["a", "b", "a", "b"]], columns=["model_a", "model_b", "Winner", "winner"])
    with pytest.raises(DataError, match="battles must have one column winner; got several"):
        Battles.from_frame(frame)


def test_what_only_some_tables_have_is_left_out_and_said(tmp_path, caplog):
    (tmp_path / "one.csv").write_text("model_a,model_b,winner,judge\na,b,a,u\n")
    (tmp_path / "two.csv").write_text("model_a,model_b,winner\nb,a,a\n")
    with caplog.at_level("INFO", logger="bayesrank"):
        assert read_battles(tmp_path).judge is None
    assert "Only some of the tables have judge: left out" in caplog.text


def test_systems_that_look_alike_are_said(tmp_path, caplog):
    path = tmp_path / "battles.csv"
    path.write_text("model_a,model_b,winner\ngpt,GPT,tie\n")
    read_battles(path)
    assert "'gpt' and 'GPT' are read as different systems" in caplog.text


def test_a_blank_number_of_ties_is_named(tmp_path):
    path = tmp_path / "battles.csv"
    path.write_text("model_a,model_b,wins_a,wins_b,ties\na,b,1,2,\na,c,1,2,3\n")
    with pytest.raises(DataError, match=r"^ties must be numbers; got '' in battles.csv"):
        read_battles(path)


def test_timed_battles_come_back_in_the_same_order_of_systems(tmp_path):
    data = Battles(list("zba"), list("bcz"), ["first", "tie", "second"], time=[3.0, 1.0, 2.0])
    assert data.systems == ("b", "c", "a", "z")
    again = read_battles(write_table(data, tmp_path / "log.csv"))
    assert again.fingerprint == data.fingerprint


def test_names_of_columns_are_refused_with_the_names_that_battles_have(tmp_path, run):
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,winner,topic\nx,y,model_a,math\ny,z,tie,code\n")
    shown = run("rank", path, "--group", "topic", code=2).stderr
    assert "got battles, with the columns model_a, model_b, winner, topic in votes.csv" in shown
    assert "groups of battles are in a column group" in shown
    for call in (
        lambda: read_responses(path, group="topic"),
        lambda: Responses.from_long(pd.read_csv(path)),
    ):
        with pytest.raises(DataError, match="read them with read_battles or Battles"):
            call()
