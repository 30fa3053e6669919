import json
import math
import tracemalloc

import pytest

from bayesrank.errors import DataError
from bayesrank.readers import json_files
from bayesrank.readers.json_files import stream_json


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
def test_members_and_elements_come_in_order_whatever_the_chunks(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(json_files, "CHUNK", chunk)
    path = tmp_path / "log.json"
    path.write_text(
        ' {"a": 12, "b": [1, {"c": "é\\n]"}], "samples": [true, -0.5e3 , [], NaN],\n"d": {}, '
        '"samples2": []} \n'
    )
    found = list(stream_json(path, {"samples", "samples2"}))
    assert found[:2] == [("a", 12), ("b", [1, {"c": "é\n]"}])]
    assert found[2:5] == [("samples", True), ("samples", -500.0), ("samples", [])]
    assert found[5][0] == "samples"
    assert math.isnan(found[5][1])
    assert found[6:] == [("d", {})]


@pytest.mark.parametrize("text", ["[1, 2]", "\ufeff[1,2]", "[1,\n2 ]"])
def test_elements_of_an_array_have_no_name(tmp_path, text):
    path = tmp_path / "array.json"
    path.write_text(text, encoding="utf-8")
    assert list(stream_json(path)) == [("", 1), ("", 2)]


@pytest.mark.parametrize("text", ["[]", "{}", ' {"samples": [ ] }'])
def test_nothing_comes_of_nothing(tmp_path, text):
    path = tmp_path / "empty.json"
    path.write_text(text)
    assert list(stream_json(path, {"samples"})) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "[1, 2",
        "[1 2]",
        '{"a": 1',
        '{"a" 1}',
        "{1: 2}",
        '{"a": "cut',
        "[1] 2",
        "[1,]",
        "[nonsense]" + " " * 100,
    ],
)
def test_broken_documents_are_refused_by_name(tmp_path, text):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"paths must hold valid JSON; got .* in .*/broken\.json"):
        list(stream_json(path))


def test_other_encodings_are_refused_by_name(tmp_path):
    path = tmp_path / "latin.json"
    path.write_bytes('["é"]'.encode("latin-1"))
    with pytest.raises(DataError, match=r"paths must hold valid JSON; got .* in .*/latin\.json"):
        list(stream_json(path))


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "large.json"
    sample = json.dumps({"text": "x" * 20_000})
    with path.open("w") as file:
        file.write("[" + ",".join([sample] * 1_000) + "]")
    tracemalloc.start()
    assert sum(1 for _ in stream_json(path)) == 1_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 20_000_000
    assert peak < 4_000_000
