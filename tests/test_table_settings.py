"""Columns of settings: the rows of a system and question that differ in them are no trials."""

import json
import logging
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrank import Responses, read_responses
from bayesrank.columns import SETTINGS
from bayesrank.errors import DataError
from bayesrank.readers import read_table
from bayesrank.table_settings import short

QUESTIONS = range(6)


def rows(**columns):
    """Return a table with a row for every combination of the values of columns, all answers right.

    A function makes a value of what stands before it.
    """
    crossed = {name: each for name, each in columns.items() if not callable(each)}
    frame = pd.DataFrame(list(product(*crossed.values())), columns=list(crossed))
    for name, make in columns.items():
        if callable(make):
            frame[name] = [make(row) for row in frame.to_dict("records")]
    return frame.assign(correct=1)


@pytest.fixture(params=["csv", "jsonl", "parquet", "frame"])
def read(request, tmp_path):
    """Return what reads a table, as a file or as it is."""

    def read(frame, **options):
        if request.param == "frame":
            return Responses.from_long(frame, **options)
        path = tmp_path / f"table.{request.param}"
        if request.param == "csv":
            frame.to_csv(path, index=False)
        elif request.param == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_parquet(path)
        return read_responses(path, **options)

    return read


@pytest.mark.parametrize("name", ["temperature", "Effort", "revision", "promptTemplate", "variant"])
def test_a_setting_is_part_of_the_name_unless_it_is_pooled(read, name, caplog):
    frame = rows(model=["a", "b"], **{name: ["x", "y"]}, question=QUESTIONS)
    with caplog.at_level(logging.INFO, "bayesrank"):
        data = read(frame)
    assert data.systems == tuple(f"{m} ({name}={v})" for m in "ab" for v in "xy")
    assert data.shape == (4, 6, 1)
    said = f"a and b are several systems each, distinguished by {name}: pool='{name}' makes them"
    assert said in caplog.text
    pooled = read(frame, pool=name)
    assert pooled.systems == ("a", "b")
    assert pooled.shape == (2, 6, 2)


def test_only_systems_that_differ_get_longer_names(read):
    frame = rows(model=["a", "b"], effort=["low", "high"], question=QUESTIONS)
    frame = frame[(frame["model"] == "a") | (frame["effort"] == "low")]
    assert read(frame).systems == ("a (effort=low)", "a (effort=high)", "b")
    by_all = ("a (effort=low)", "a (effort=high)", "b (effort=low)")
    assert read(frame, split_by="effort").systems == by_all


def test_seeds_stay_trials_within_a_setting(read):
    frame = rows(model=["a"], effort=["low", "high"], seed=[3, 5], question=QUESTIONS)
    data = read(frame)
    assert data.shape == (2, 6, 2)
    assert data.paired
    assert read(frame, split_by="seed").systems[0] == "a (seed=3, effort=low)"
    pooled = read(frame, pool="effort")
    assert pooled.shape == (1, 6, 4)
    assert not pooled.paired


@pytest.mark.parametrize("first", [[1, 2], [1, 3]])
def test_numbers_of_trials_that_go_on_start_anew(read, first):
    frame = rows(model=["a"], effort=["low", "high"], trial=first, question=QUESTIONS)
    frame["trial"] += 4 * (frame["effort"] == "high")
    data = read(frame)
    assert data.shape == (2, 6, 2)
    assert data.n_missing == 0


def test_settings_that_go_together_are_one_of_them(read, caplog):
    frame = rows(
        model=["a"],
        temperature=[0, 1],
        question=QUESTIONS,
        top_p=lambda row: row["temperature"] / 2,
    )
    with caplog.at_level(logging.INFO, "bayesrank"):
        assert read(frame).systems == ("a (temperature=0)", "a (temperature=1)")
    assert "(which differ in top_p as well): pool='temperature,top_p' makes" in caplog.text
    assert read(frame, pool="temperature,top_p").shape == (1, 6, 2)
    assert read(frame, pool=["temperature"]).systems[1].startswith("a (top_p=0.5")


def test_long_values_are_named_by_a_digest(read):
    prompts = ["Answer.", "Think step by step about the question, and then answer it."]
    data = read(rows(model=["a"], prompt=prompts, question=QUESTIONS))
    assert data.systems == ("a (prompt=Answer.)", f"a (prompt={short(prompts[1])})")


def test_what_says_something_of_the_question_tells_nothing_apart(read):
    frame = rows(
        model=["a", "b"], question=QUESTIONS, prompt=lambda row: f"What is {row['question']}?"
    )
    assert read(frame).systems == ("a", "b")
    frame = rows(
        model=["a", "b"],
        subject=["law", "art"],
        id=QUESTIONS,
        prompt=lambda row: f"{row['subject']} {row['id']}",
    )
    assert read(frame).shape == (2, 12, 1)


def test_what_differs_from_answer_to_answer_is_an_error_with_both_remedies(read):
    rng = np.random.default_rng(0)
    frame = rows(model=["a", "b"], k=[0, 1], question=range(20))
    frame = frame.drop(columns="k").assign(provider=rng.choice(["x", "y", "z"], len(frame)))
    with pytest.raises(
        DataError, match=r"provider must have one value .* pool='provider' .* split_by="
    ):
        read(frame)
    assert read(frame, pool="provider").shape == (2, 20, 2)


def test_an_unknown_column_by_design_is_an_error_with_all_remedies(read):
    frame = rows(model=["a", "b"], flavour=["x", "y"], question=QUESTIONS)
    remedies = (
        r"differ in flavour \(x, y\).* split_by='flavour' .* question='question,flavour' .* "
        r"pool='flavour' .* trial='flavour'"
    )
    for table in (frame, frame.drop(index=[3]), frame.assign(trial=1)):
        with pytest.raises(DataError, match=remedies):
            read(table)
    assert read(frame, split_by="flavour").systems[:2] == ("a (flavour=x)", "a (flavour=y)")
    assert read(frame, pool="flavour").shape == (2, 6, 2)
    assert read(frame, trial="flavour").shape == (2, 6, 2)
    assert read(frame, question="question,flavour").shape == (2, 12, 1)


def test_what_answers_vary_in_is_no_setting(read):
    rng = np.random.default_rng(1)
    frame = rows(model=["a", "b"], k=range(4), question=range(20)).drop(columns="k")
    frame["letter"] = rng.choice(["A", "B"], len(frame))
    frame["tokens"] = rng.integers(100, 200, len(frame))
    frame["completion_ok"] = rng.choice([True, False], len(frame), p=[0.9, 0.1])
    assert read(frame).shape == (2, 20, 4)
    numbered = rows(model=["a", "b"], take=[1, 2, 3], question=range(20))
    assert read(numbered).shape == (2, 20, 3)


def test_another_name_of_the_system_tells_systems_apart(read):
    frame = rows(system=["react", "cot"], model=["a", "b"], question=QUESTIONS)
    both = ("react (model=a)", "react (model=b)", "cot (model=a)", "cot (model=b)")
    assert read(frame).systems == both
    agents = frame.rename(columns={"system": "agent"})
    with pytest.raises(DataError, match="one column for the system; got model, agent"):
        read(agents)
    assert read(agents, system="agent").systems == both
    pooled = read(agents, system="agent", pool="model")
    assert (pooled.systems, pooled.shape) == (("react", "cot"), (2, len(QUESTIONS), 2))


def test_unknown_settings_are_refused(read):
    frame = rows(model=["a"], effort=["low", "high"], question=QUESTIONS)
    for argument in ("split_by", "pool"):
        with pytest.raises(
            DataError, match=f"{argument} must name columns of model, .*; got 'nope'"
        ):
            read(frame, **{argument: "nope"})


def test_settings_of_files_that_lack_the_column_are_unset(tmp_path):
    rows(model=["a"], effort=["low"], question=QUESTIONS).to_csv(tmp_path / "a.csv", index=False)
    rows(model=["a", "b"], question=QUESTIONS).to_csv(tmp_path / "b.csv", index=False)
    assert read_responses(tmp_path).systems == ("a (effort=low)", "a (effort=unset)", "b")
    assert read_responses(tmp_path, split_by="file").systems == (
        "a (file=a)",
        "a (file=b)",
        "b (file=b)",
    )


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    def write(*folders):
        for number, folder in enumerate(folders):
            path = tmp_path / folder / "runs.csv"
            path.parent.mkdir(parents=True)
            rows(question=QUESTIONS).assign(who="m", correct=number % 2).to_csv(path, index=False)
        return tmp_path / Path(folders[0]).parts[0]

    folder = write("x/run1", "x/run2")
    assert read_responses(folder, system="file").shape == (1, 6, 2)
    folder = write("y/a/run1", "y/a/run2", "y/b")  # the last one holds the same as the first
    both = ("runs (folder=a)", "runs (folder=b)")
    assert read_responses(folder, system="file").systems == both
    apart = read_responses(folder, system="who", split_by="file")
    assert apart.systems == ("m (file=runs (folder=a))", "m (file=runs (folder=b))")
    folders = read_responses(folder, system="folder")
    assert (folders.systems, folders.shape) == (("a", "b"), (2, 6, 2))
    # In the names of questions, files of one name are one.
    joined = read_responses(folder, system="who", question="file,question")
    assert joined.questions[:2] == ("runs/0", "runs/1")


def test_rows_of_a_chosen_scorer_are_looked_at(tmp_path):
    path = tmp_path / "table.csv"
    frame = rows(model=["a"], scorer=["s", "t"], flavour=["x", "y"], question=QUESTIONS)
    frame.to_csv(path, index=False)
    with pytest.raises(DataError, match="differ in flavour"):
        read_responses(path, scorer="s")
    once = frame[(frame["scorer"] == "s") | (frame["flavour"] == "x")]
    once.to_csv(path, index=False)
    assert read_responses(path, scorer="t").shape == (1, 6, 1)


def test_wide_tables_have_settings_too(tmp_path):
    path = tmp_path / "table.json"
    both = [
        {"question": q, "effort": e, "m": 1, "n": 0} for q in QUESTIONS for e in ("low", "high")
    ]
    path.write_text(json.dumps(both))
    data = read_responses(path, wide=True, split_by="effort")
    assert data.systems == (
        "m (effort=low)",
        "m (effort=high)",
        "n (effort=low)",
        "n (effort=high)",
    )


def test_names_of_settings_are_spelled_as_columns_are():
    assert all(name == name.lower().replace(" ", "_") for name in SETTINGS)


@pytest.mark.parametrize(
    ("column", "text", "status"),
    [
        ("error", "Traceback: KeyError", "error"),
        ("error_type", "AgentTimeoutError", "limit"),
        ("exception", "whatever it was", "error"),
        ("finish_reason", "length", "limit"),
        ("finish_reason", "content_filter", "refused"),
        ("finish_reason", "stop", "unscored"),
        ("status", "refused", "refused"),
        ("status", "skipped", "absent"),
        ("status", "parse failure", "unscored"),
        ("status", "crashed", "error"),
        ("status", "", "unscored"),
        ("error", "None", "unscored"),
    ],
)
def test_tables_say_why_outcomes_are_missing(tmp_path, column, text, status):
    path = tmp_path / "table.csv"
    frame = pd.DataFrame({"model": ["a", "a", "b"], "id": [1, 2, 2], "passed": [1, None, 0]})
    frame.assign(**{column: ["stop", text, "boom"]}).to_csv(path, index=False)
    table = read_table(path)
    expected = {"absent": "(2 absent)"}.get(status, f"(1 {status}, 1 absent)")
    assert expected in table.message
    assert table.frame["status"].tolist() == ["", status, ""]
    assert read_responses(path, count_as_wrong=status).outcomes[0, 1, 0] == 0


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_settings_that_are_objects_are_text(tmp_path, ending):
    frame = pd.DataFrame(
        [
            {"model": "a", "id": q, "score": 1, "config": {"t": t}, "category": ["x", "y"]}
            for q in QUESTIONS
            for t in (0, 1)
        ]
    )
    path = tmp_path / f"table.{ending}"
    frame.to_json(path, orient="records", lines=True) if ending == "jsonl" else frame.to_parquet(
        path
    )
    assert read_responses(path).systems == ('a (config={"t": 0})', 'a (config={"t": 1})')
    assert read_responses(path, pool="config").shape == (1, 6, 2)


def test_a_setting_is_not_split_by_and_pooled(tmp_path):
    frame = pd.DataFrame({"model": ["a", "a"], "item": ["q", "q"], "run": [1, 2], "score": [1, 0]})
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    chosen = {"split_by": ["seed", "run"], "pool": "run"}
    for read, data in ((Responses.from_long, frame), (read_responses, path), (read_table, path)):
        with pytest.raises(DataError, match="name different settings; got 'run' in both"):
            read(data, **chosen)
