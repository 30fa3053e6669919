"""Files as they come: compressed, in other encodings, cut off, and larger than they seem."""

import bz2
import gzip
import json
import lzma
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zstandard
from numpy.lib import format as npy

from bayesrank.errors import DataError
from bayesrank.readers import read_responses
from bayesrank.readers.json_files import parse_json_lines, read_json, stream_json
from bayesrank.readers.opening import check_announced, expects, json_head, plain_name
from bayesrank.readers.swebench import is_swebench

DOCUMENT = {"a": [1, 2.5, None], "ü": "模型"}
TEXT = json.dumps(DOCUMENT, ensure_ascii=False).encode()

COMPRESS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}


@pytest.mark.parametrize("ending", COMPRESS)
def test_compressed_documents_read_as_they_were(tmp_path, ending):
    path = tmp_path / f"log.json{ending}"
    path.write_bytes(COMPRESS[ending](TEXT))
    assert read_json(path) == dict(stream_json(path)) == DOCUMENT
    assert list(parse_json_lines(path)) == [DOCUMENT]


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_compressed_document_that_is_cut_off_is_named(tmp_path, ending):
    path = tmp_path / f"log.json{ending}"
    path.write_bytes(COMPRESS[ending](TEXT * 50)[:-9])
    with pytest.raises(
        DataError, match=rf"paths must hold .* in .*/log\.json\{ending}: .* copy it"
    ):
        read_json(path)


def test_a_zip_archive_has_the_ending_of_its_only_file(tmp_path):
    path = tmp_path / "model_v0.1.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model_v0.1.csv", "model,question,correct\na,q,1\nb,q,0\n")
    assert plain_name(path) == "model_v0.1.csv"
    assert read_responses(tmp_path).systems == ("a", "b")
    damaged = tmp_path / "cut.zip"
    damaged.write_bytes(path.read_bytes()[:40])
    assert plain_name(damaged) == "cut"


def test_a_zip_archive_of_one_file_is_that_file(tmp_path):
    path = tmp_path / "log.json.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inside.json", TEXT)
    assert read_json(path) == DOCUMENT
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("__MACOSX/._inside.json", "what macOS adds")
        archive.writestr(".DS_Store", "")
    assert read_json(path) == DOCUMENT
    assert plain_name(path.rename(tmp_path / "log.zip")) == "log.json"
    path = tmp_path / "log.zip"
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("other.json", TEXT)
    with pytest.raises(DataError, match=r"archives of one file; got 2 in .*/log\.zip: unpack"):
        read_json(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings_are_recognised(tmp_path, encoding):
    path = tmp_path / "log.json"
    path.write_bytes(TEXT.decode().encode(encoding))
    assert read_json(path) == dict(stream_json(path)) == DOCUMENT


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("space", ["", "\n\t "])
def test_formats_are_recognised_by_what_follows_a_byte_order_mark(tmp_path, encoding, space):
    path = tmp_path / "log.json"
    path.write_text(space + '{"no_generation": [], "resolved": ["q"]}', encoding=encoding)
    assert json_head(path).startswith(b'{"no_generation"')
    assert is_swebench(path)
    assert next(parse_json_lines(path))["resolved"] == ["q"]


@pytest.mark.parametrize("ending", COMPRESS)
def test_an_expansion_without_end_is_refused_before_memory_is_taken(tmp_path, ending):
    path = tmp_path / f"log.json{ending}"
    path.write_bytes(COMPRESS[ending](b" " * (100 << 20)))
    tracemalloc.start()
    with pytest.raises(DataError, match=rf"not expand to more than 64 MB; got more in .*{ending}"):
        list(stream_json(path))
    assert tracemalloc.get_traced_memory()[1] < 40 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "too many levels of nesting"),
        ('{"a":' * 100_000, "too many levels of nesting"),
        ("[" + "9" * 400 + "]", "a number of 400 digits"),
        ("[" + "9" * 5_000 + "]", "a number of 5000 digits"),
        ("\0" * 100, "."),
        ('{"a": 1', "."),
    ],
)
def test_documents_that_are_none_get_one_sentence(tmp_path, text, reason):
    path = tmp_path / "log.json"
    path.write_text(text)
    for read in (read_json, lambda path: list(stream_json(path))):
        with pytest.raises(
            DataError, match=rf"paths must hold valid JSON; got .*{reason}.* in .*/log"
        ):
            read(path)


def test_an_array_that_announces_more_than_it_holds_is_refused(tmp_path):
    path = tmp_path / "runs.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("R.npy", "w") as member:
        header = {"descr": "|i1", "fortran_order": False, "shape": (2**20, 2**20, 1)}
        npy.write_array_header_1_0(member, header)
        member.write(b"\1" * 8)
    with pytest.raises(DataError, match=r"1099511627776 bytes announced and 8 there in runs\.npz"):
        read_responses(path)


def test_an_array_of_zeros_that_expands_without_end_is_refused(tmp_path):
    path = tmp_path / "runs.npz"
    np.savez_compressed(path, R=np.zeros((100, 1_000, 1_000), dtype=np.int8))
    with pytest.raises(DataError, match=r"not expand to more than 64 MB; got more in .*/runs\.npz"):
        read_responses(path)


def test_what_is_announced_must_be_in_proportion_to_what_is_there(tmp_path):
    check_announced(1_000_000, 1, "epochs", tmp_path)
    with pytest.raises(DataError, match=r"announce; got 100000000 epochs for 12 outcomes in x\.js"):
        check_announced(10**8, 12, "100000000 epochs", Path("x.json"))


@pytest.mark.parametrize("error", [KeyError("x"), TypeError(), OverflowError(), IndexError()])
def test_another_layout_is_said_in_words_of_documents(error):
    message = r"^paths must hold runs; got .* in runs/a\.json: leave it out$"
    with pytest.raises(DataError, match=message), expects(Path("runs/a.json"), "runs"):
        raise error
