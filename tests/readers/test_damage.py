"""Damaged logs: a sane result or one documented error, and nothing lost without a word."""

import bz2
import gzip
import io
import json
import logging
import lzma
import random
import re
import tempfile
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zstandard
from click.testing import CliRunner

from bayesrank.commands.cli import main
from bayesrank.errors import DataError
from bayesrank.readers import READERS, read_data, read_responses
from bayesrank.readers.finding import find_logs
from bayesrank.readers.log_table import select
from tests.readers.examples import EXAMPLES as WRITTEN

SYSTEMS = ("alpha", "beta")
FRAME = pd.DataFrame(
    [(name, q, t, (q + t) % 2) for name in SYSTEMS for q in range(3) for t in range(2)],
    columns=["model", "question", "trial", "score"],
)
BATTLES = [
    {"model_a": "alpha", "model_b": "beta", "winner": winner}
    for winner in ("model_a", "model_b", "tie", "model_a")
]


def written(write: str, frame: pd.DataFrame, **options: Any) -> bytes:
    file = io.BytesIO()
    getattr(frame, write)(file, **options)
    return file.getvalue()


def archive(members: dict[str, object]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, document in members.items():
            opened.writestr(name, json.dumps(document))
    return file.getvalue()


def inspect_log(model: str) -> dict[str, Any]:
    spec = {
        "task": "sums",
        "task_id": model,
        "created": "2026-01-01T00:00:00+00:00",
        "model": model,
        "dataset": {"sample_ids": ["1", "2", "3"]},
        "config": {"epochs": 2},
        "model_args": {"revision": "main"},
    }
    samples = [
        {"id": str(q), "epoch": t, "scores": {"match": {"value": "CI"[(q + t) % 2]}}}
        for q in (1, 2, 3)
        for t in (1, 2)
    ]
    return {"version": 2, "status": "success", "eval": spec, "samples": samples}


def inspect_archive(model: str) -> bytes:
    log = inspect_log(model)
    samples = {f"samples/{each['id']}_epoch_{each['epoch']}.json": each for each in log["samples"]}
    return archive({**samples, "header.json": {k: v for k, v in log.items() if k != "samples"}})


def lines(rows: list[Any]) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def each_system(name: str, document: Any) -> dict[str, bytes]:
    """Return one file for each system; `document` makes what it holds from the system."""
    found = {}
    for system in SYSTEMS:
        content = document(system)
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        found[name.format(system)] = content
    return found


def lm_eval_lines(system: str) -> bytes:
    rows = [
        {"doc_id": i, "filter": "none", "metrics": ["acc"], "doc_hash": f"h{i}", "acc": i % 2}
        for i in range(4)
    ]
    return lines(rows)


def tau2(system: str) -> dict[str, Any]:
    info = {"num_trials": 2, "user_info": {"llm": "u"}, "agent_info": {"llm": system}}
    info["environment_info"] = {"domain_name": "retail"}
    runs = [
        {"task_id": q, "trial": t, "reward_info": {"reward": (q + t) % 2}}
        for q in (0, 1)
        for t in (0, 1)
    ]
    return {"timestamp": "", "info": info, "tasks": [{"id": 0}, {"id": 1}], "simulations": runs}


def helm(system: str) -> list[Any]:
    return [
        {
            "instance_id": f"id{i}",
            "train_trial_index": 0,
            "stats": [{"name": {"name": "em", "split": "test"}, "count": 1, "sum": i % 2}],
        }
        for i in range(3)
    ]


CSV = FRAME.to_csv(index=False).encode()
EXAMPLES: dict[str, dict[str, bytes]] = {
    "csv": {"log.csv": CSV},
    "csv by system": each_system(
        "{}.csv", lambda system: FRAME[FRAME["model"] == system].to_csv(index=False).encode()
    ),
    "tsv": {"log.tsv": FRAME.to_csv(index=False, sep="\t").encode()},
    "utf-16": {"log.csv": CSV.decode().encode("utf-16")},
    "gz": {"log.csv.gz": gzip.compress(CSV)},
    "bz2": {"log.csv.bz2": bz2.compress(CSV)},
    "xz": {"log.csv.xz": lzma.compress(CSV)},
    "zst": {"log.csv.zst": zstandard.compress(CSV)},
    "json": {"log.json": FRAME.to_json(orient="records").encode()},
    "json columns": {"log.json": json.dumps(FRAME.to_dict("list")).encode()},
    "jsonl": {"log.jsonl": FRAME.to_json(orient="records", lines=True).encode()},
    "parquet": {"log.parquet": written("to_parquet", FRAME)},
    "feather": {"log.feather": written("to_feather", FRAME)},
    "npz": {},
    "inspect json": each_system("{}.json", inspect_log),
    "inspect eval": each_system("{}.eval", inspect_archive),
    "lm_eval": each_system("{}/samples_sums_2026-01-01T00-00-00.000001.jsonl", lm_eval_lines),
    "swebench": each_system(
        "{}.run.json",
        lambda system: {
            "total_instances": 3,
            "submitted_ids": ["a", "b", "c"],
            "resolved_ids": ["a"],
            "unresolved_ids": ["b"],
            "empty_patch_ids": ["c"],
        },
    ),
    "evalplus": each_system(
        "{}_eval_results.json",
        lambda system: {
            "date": "",
            "hash": "",
            "eval": {
                f"q/{i}": [{"base_status": "pass", "plus_status": "pass"}] * 2 for i in range(2)
            },
        },
    ),
    "helm": each_system("sums:model={}/per_instance_stats.json", helm),
    "tau_bench": each_system(
        "{}.json",
        lambda system: [{"task_id": i, "reward": i % 2, "info": {}, "trial": 0} for i in range(4)],
    ),
    "tau2_bench": each_system("{}.json", tau2),
    "every_eval_ever": each_system(
        "{}_samples.jsonl",
        lambda system: lines(
            [
                {
                    "evaluation_id": "e",
                    "model_id": system,
                    "evaluation_name": "x",
                    "sample_id": i,
                    "evaluation": {"score": i % 2},
                }
                for i in range(3)
            ]
        ),
    ),
    "py_irt": {
        "irt.jsonl": lines(
            [{"subject_id": system, "responses": {"p": 1, "q": 0}} for system in SYSTEMS]
        )
    },
    "battles csv": {"b.csv": pd.DataFrame(BATTLES).to_csv(index=False).encode()},
    "battles jsonl": {"b.jsonl": lines(BATTLES)},
    "battles json": {"b.json": json.dumps(BATTLES).encode()},
    "battles parquet": {"b.parquet": written("to_parquet", pd.DataFrame(BATTLES))},
}
_npz = io.BytesIO()
np.savez_compressed(_npz, R=np.arange(12).reshape(2, 3, 2) % 2, models=np.array(SYSTEMS))
EXAMPLES["npz"] = {"runs.npz": _npz.getvalue()}

# Who is in them, and what has to be chosen, where it is not as above.
INSIDE = dict.fromkeys(EXAMPLES, SYSTEMS)
CHOSEN: dict[str, dict[str, str]] = {}
for _number, _example in enumerate(WRITTEN):
    _name = f"{_example.format} {_number}"
    with tempfile.TemporaryDirectory() as _folder:
        _example.write(Path(_folder))
        EXAMPLES[_name] = {
            str(path.relative_to(_folder)): path.read_bytes()
            for path in sorted(Path(_folder).rglob("*"))
            if path.is_file()
        }
    INSIDE[_name] = tuple(_example.right)
    CHOSEN[_name] = _example.chosen

# What stands in place of a value, or of a part of a document, as text.
WRONG = [
    "null",
    "[]",
    "{}",
    '"x"',
    "-1",
    "NaN",
    "Infinity",
    "1e999",
    "9" * 400,
    "true",
    '"\\u0000"',
]
WRONG += ["100000000", "0.5", "[" * 100_000, '"\\ud800"', '[[["deep"]]]', '{"a": {"b": 1}}']


def bytes_changed(content: bytes, rng: random.Random) -> bytes:
    """Change some bytes: flip bits, cut off, repeat, or put others in their place."""
    place = rng.randrange(len(content))
    kind = rng.choice(["flip", "cut", "drop", "zeros", "twice", "noise", "head"])
    if kind == "flip":
        flipped = content[place] ^ (1 << rng.randrange(8))
        return content[:place] + bytes([flipped]) + content[place + 1 :]
    if kind == "cut":
        return content[:place]
    if kind == "drop":
        return content[:place] + content[place + rng.randrange(1, 20) :]
    if kind == "zeros":
        return content[:place] + bytes(rng.randrange(1, 20)) + content[place + 5 :]
    if kind == "twice":
        return content[:place] + content[max(0, place - 30) :]
    if kind == "noise":
        return content[:place] + rng.randbytes(rng.randrange(1, 9)) + content[place + 4 :]
    return content[min(place, 40) :]


def values_changed(content: bytes, rng: random.Random) -> bytes:
    """Put another value in place of one of a JSON document; other content is changed by bytes."""
    text = content.decode("utf-8", errors="replace")
    starts = [i for i, c in enumerate(text) if c == ":" and text[i - 1 : i] == '"']
    if not starts or text[:1] not in "[{":
        return bytes_changed(content, rng)
    start = rng.choice(starts) + 1
    try:
        _, end = json.JSONDecoder().raw_decode(text, start + (text[start] == " "))
    except ValueError:
        return bytes_changed(content, rng)
    return (text[:start] + rng.choice(WRONG) + text[end:]).encode("utf-8", "surrogatepass")


def damaged(name: str, seed: int) -> dict[str, bytes]:
    """Return the files of an example, of which one is damaged."""
    rng = random.Random(f"{name} {seed}")  # noqa: S311 - no secret
    files = dict(EXAMPLES[name])
    victim = rng.choice(list(files))
    change = rng.choice([bytes_changed, values_changed])
    files[victim] = change(files[victim], rng)
    return files


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def check(name: str, folder: Path, seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Read a folder with a damaged log."""
    files = damaged(name, seed)
    write(folder, files)
    caplog.clear()
    with caplog.at_level(logging.INFO, "bayesrank"):
        try:
            data = read_data(folder, **CHOSEN.get(name, {}))
        except DataError as error:
            message = str(error)
            assert len(message) < 1_000, message
            assert not any(word in message for word in ("Error(", "Traceback", "NoneType")), message
            return
    if len(data.systems) < len(INSIDE[name]) and len(files) > 1:
        assert "left out" in caplog.text, files


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_whole(tmp_path, name):
    data = read_data(write(tmp_path, EXAMPLES[name]), **CHOSEN.get(name, {}))
    assert set(data.systems) == set(INSIDE[name])


def test_every_format_is_damaged_here(tmp_path):
    found = set()
    for name, files in EXAMPLES.items():
        folder = write(tmp_path / name, files)
        found.add(find_logs(folder, None, select(**CHOSEN.get(name, {}))).reader.name)
    missing = set(READERS) - found
    assert not missing, f"add an example of {missing} to tests/readers/examples.py"


@pytest.mark.parametrize("name", EXAMPLES)
def test_damaged_logs(tmp_path, caplog, name):
    for seed in range(10):
        check(name, tmp_path / str(seed), seed, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_many_damaged_logs(tmp_path, caplog, name):
    for seed in range(10, 130):
        check(name, tmp_path / str(seed), seed, caplog)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_commands_end_with_a_ranking_or_one_sentence_in_time(tmp_path, name):
    chosen = [word for key, value in CHOSEN.get(name, {}).items() for word in (f"--{key}", value)]
    method = "win_rate" if "battles" in name else "avg"
    for seed in range(130, 160):
        folder = write(tmp_path / str(seed), damaged(name, seed))
        tracemalloc.start()
        started = time.perf_counter()
        arguments = ["rank", str(folder), *chosen, "--method", method, "--draws", "0"]
        result = CliRunner().invoke(main, arguments)
        seconds, (_, most) = time.perf_counter() - started, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert result.exit_code in (0, 2), result.exception
        assert seconds < 10
        assert most < 1e9
        if result.exit_code:
            *_, last = result.stderr.splitlines()
            assert last.startswith("Error: "), result.stderr
            assert "Traceback" not in result.stderr


@pytest.mark.parametrize("content", [b"", b"\0" * 1_000, b"\x80\x04K\x01.", b"{" * 1_000_000])
@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.json", "a.jsonl", "a.parquet", "a.feather", "a.npz", "a.eval"]
)
def test_files_that_hold_something_else(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    for paths in (path, tmp_path):
        with pytest.raises(DataError) as caught:
            read_responses(paths)
        # One sentence, beside the names of all formats where none is recognised.
        assert len(str(caught.value).replace(", ".join(READERS), "")) < 300


@pytest.mark.parametrize("name", [name for name in EXAMPLES if len(EXAMPLES[name]) > 1])
def test_a_damaged_log_among_good_ones_is_named_and_left_out(tmp_path, caplog, name):
    chosen = CHOSEN.get(name, {})
    whole = read_data(write(tmp_path, EXAMPLES[name]), **chosen)
    files = find_logs(tmp_path, None, select(**chosen)).files
    victim = files[-1]
    content = victim.read_bytes()
    victim.write_bytes(content[: 4 * len(content) // 5])
    caplog.clear()
    with caplog.at_level(logging.INFO, "bayesrank"):
        rest = read_data(tmp_path, **chosen)
    # Results of trials are not read where there are those of their run.
    said = re.search(
        rf"1 (unusable log|file that is no log) \({re.escape(victim.name)}", caplog.text
    )
    assert said or rest.fingerprint == whole.fingerprint
    for paths, strict in ((tmp_path, True), (files, False), (victim, False)) if said else ():
        with pytest.raises(DataError, match=victim.name.partition("=")[0]):
            read_data(paths, strict=strict, **chosen)


def test_loops_of_links_end(tmp_path):
    write(tmp_path, EXAMPLES["csv"])
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "self.csv").symlink_to(tmp_path / "self.csv")
    assert read_responses(tmp_path).systems == SYSTEMS
