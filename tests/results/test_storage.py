"""Results on disk: nothing is lost, and nothing half-written is ever left."""

import errno
import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrank import Responses, leaderboard, rank, superiority
from bayesrank.results.storage import SCHEMA_VERSION, load, save

SYSTEMS = ["Ünïcode-模型", "tab\tand space", "a/b", "😀"]


@pytest.fixture(scope="module")
def data() -> Responses:
    rng = np.random.default_rng(2)
    return Responses(
        rng.integers(0, 2, (4, 5, 3)),
        systems=SYSTEMS,
        questions=[f"frage-ß-{i}" for i in range(5)],
        groups=["é"] * 5,
        prior_outcomes=rng.integers(0, 2, (5, 1)),
    )


@pytest.fixture(
    scope="module",
    params=[("bayes", "exact", 20), ("davidson", "map", 20), ("avg", "bootstrap", 0)],
    ids=lambda run: run[0],
)
def result(request, data) -> xr.DataTree:
    method, backend, draws = request.param
    return rank(data, method, backend=backend, draws=draws, random_seed=1)


def assert_same(read: xr.DataTree, written: xr.DataTree) -> None:
    xr.testing.assert_identical(read, written)
    assert read.attrs == written.attrs
    assert {name: type(value) for name, value in read.attrs.items()} == {
        name: type(value) for name, value in written.attrs.items()
    }
    for name, group in written.children.items():
        assert read[name].attrs == group.attrs
        for variable in group.data_vars:
            assert read[name][variable].dtype.kind == group[variable].dtype.kind or (
                group[variable].dtype.kind == "U"  # text comes back as objects
            )


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_round_trip_loses_nothing(result, tmp_path, suffix):
    before = result.copy(deep=True)
    path = save(result, tmp_path / f"result{suffix}")
    assert path == tmp_path / f"result{suffix}"
    assert os.listdir(tmp_path) == [path.name]
    assert_same(load(path), result)
    xr.testing.assert_identical(result, before)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_tables_from_a_file_are_the_same(result, tmp_path, suffix):
    path = save(result, str(tmp_path / f"result{suffix}"))
    read = load(str(path))
    pd.testing.assert_frame_equal(leaderboard(read), leaderboard(result))
    if "superiority" in result["ranking"]:
        pd.testing.assert_frame_equal(superiority(read), superiority(result))


def test_arviz_reads_both_formats(result, tmp_path):
    netcdf = az.from_netcdf(save(result, tmp_path / "result.nc"))
    zarr = az.from_zarr(save(result, tmp_path / "result.zarr"), consolidated=False)
    for read in (netcdf, zarr):
        assert_same(read.load(), result)
        pd.testing.assert_frame_equal(leaderboard(read), leaderboard(result))
        read.close()


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_an_older_result_is_replaced(data, tmp_path, suffix):
    path = tmp_path / f"result{suffix}"
    save(rank(data, "bayes", draws=5, random_seed=1), path)
    newer = rank(data, "avg", draws=0)
    save(newer, path)
    assert os.listdir(tmp_path) == [path.name]
    assert_same(load(path), newer)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
@pytest.mark.parametrize("moment", ["writing", "renaming"])
def test_a_failure_leaves_the_older_result(data, tmp_path, monkeypatch, suffix, moment):
    path = tmp_path / f"result{suffix}"
    older = rank(data, "bayes", draws=5, random_seed=1)
    save(older, path)

    def fail(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device", "a draft")

    owner, method = (Path, "write_bytes") if suffix == ".nc" else (xr.DataTree, "to_zarr")
    with monkeypatch.context() as patch:
        if moment == "writing":
            write = getattr(owner, method)

            def half_write(content, draft, **options):
                write(content, draft, **options)
                fail()

            patch.setattr(owner, method, half_write)
        else:
            patch.setattr("bayesrank.results.storage.os.replace", fail)
        with pytest.raises(OSError, match="No space left") as caught:
            save(rank(data, "avg", draws=0), path)
        assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == [path.name]
    assert_same(load(path), older)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_failure_leaves_nothing_where_nothing_was(data, tmp_path, monkeypatch, suffix):
    def fail(*args, **options):
        raise RuntimeError("interrupted")

    monkeypatch.setattr(xr.DataTree, "to_netcdf" if suffix == ".nc" else "to_zarr", fail)
    with pytest.raises(RuntimeError, match="interrupted"):
        save(rank(data, "avg", draws=0), tmp_path / f"result{suffix}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["result", "result.csv", "result.netcdf", "result.NC"])
def test_other_endings_are_refused(data, tmp_path, name):
    with pytest.raises(ValueError, match=r"path must end in \.nc or \.zarr; got .*result"):
        save(rank(data, "avg", draws=0), tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_does_not_exist_is_refused(data, tmp_path):
    with pytest.raises(FileNotFoundError, match="path must be in an existing folder; got"):
        save(rank(data, "avg", draws=0), tmp_path / "nowhere" / "result.nc")
    with pytest.raises(FileNotFoundError, match="path must exist; got"):
        load(tmp_path / "result.nc")


@pytest.mark.parametrize("content", [b"", b"rank,system,score\n1,a,0.5\n", b"\x89HDF\r\n\x1a\n"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "result.nc"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="path must hold a NetCDF or Zarr result; got"):
        load(path)


def test_a_truncated_file_is_refused(data, tmp_path):
    path = save(rank(data, "bayes", draws=50, random_seed=1), tmp_path / "result.nc")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="path must hold a NetCDF or Zarr result; got"):
        load(path)


def test_another_folder_is_refused(tmp_path):
    (tmp_path / "result.zarr").mkdir()
    with pytest.raises(ValueError, match="path must hold a NetCDF or Zarr result; got"):
        load(tmp_path / "result.zarr")


def test_a_file_can_be_replaced_after_it_was_read(data, tmp_path):
    path = save(rank(data, "bayes", draws=5, random_seed=1), tmp_path / "result.nc")
    read = load(path)
    path.unlink()
    assert read["posterior"]["score"].shape == (4, 5, 4)


SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.parametrize("name", ["bayes", "battles", "evaluation"])
def test_results_of_version_0_1_0_open(name):
    tree = load(SAMPLES / f"0.1.0-{name}.nc")
    assert "schema_version" not in tree.attrs
    if name == "evaluation":
        assert tree["evaluation"]["estimate"].sizes == {"system": 3, "metric": 1}
        return
    board = leaderboard(tree)
    expected = pd.read_csv(SAMPLES / f"0.1.0-{name}.csv")
    pd.testing.assert_frame_equal(board[expected.columns], expected, check_dtype=False)


def test_a_result_of_a_later_schema_is_refused(data, tmp_path):
    result = rank(data, "avg", draws=0)
    assert result.attrs["schema_version"] == SCHEMA_VERSION
    result.attrs["schema_version"] = str(int(SCHEMA_VERSION) + 1)
    path = save(result, tmp_path / "result.nc")
    with pytest.raises(ValueError, match=r"schema version 1 or earlier; got 2 in .*: update"):
        load(path)


def test_damaged_results_are_named(data, tmp_path, capfd):
    path = save(rank(data, "bayes", draws=20, random_seed=1), tmp_path / "result.nc")
    whole = path.read_bytes()
    rng = random.Random(1)  # noqa: S311 - no secret
    n_named = 0
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 20])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged[: rng.choice([len(damaged), rng.randrange(len(damaged))])])
        with suppress(ValueError):  # any other error fails
            load(path)
            continue
        n_named += 1
    assert n_named > 20
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of the size of a file")
def test_a_full_disk_is_said_and_does_not_end_the_process(tmp_path):
    code = (
        "import resource, signal, sys\n"
        "from bayesrank import rank\n"
        "from bayesrank.results.storage import save\n"
        "result = rank([[[1, 0]], [[1, 1]]], 'bayes', draws=2000, random_seed=1)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "try:\n    save(result, sys.argv[1])\nexcept OSError as error:\n    print(error)\n"
    )
    path = tmp_path / "result.nc"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "File too large" in done.stdout
    assert str(path) in done.stdout
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["result.nc"]
