"""Every benchmark runs at its smallest setting; what it measures is nobody's business here."""

import importlib
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from bayesrank.inference.run import Run

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = (
    *("fit.py", "nuts.py", "numpy_layer.py", "presets.py", "startup.py", "studies.py"),
    *("unchanged.py", "versions.py"),
)

# Three systems answer four questions, in as few calls as possible.
SMALL = "3,4,8"
QUICK = ["--cases", SMALL, "--seconds", "0.001", "--limit", "20"]

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the benchmarks are not beside the tests"
)


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs a script in this process and returns what it prints.

    A process of each would import everything again.
    """
    monkeypatch.syspath_prepend(FOLDER)

    def run(script: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        try:
            runpy.run_path(str(FOLDER / script), run_name="__main__")
        except SystemExit as end:
            if end.code:
                raise
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("script", SCRIPTS)
def test_help(run, script):
    assert f"usage: {script}" in run(script, "--help")


def test_estimates_of_likelihoods(run):
    out = run("fit.py", *QUICK, "--presets", "bradley_terry_map,bradley_terry_davidson_map")
    assert "bradley_terry_davidson_map" in out


def test_two_checkouts(run):
    out = run(
        "versions.py",
        *(str(FOLDER.parent), "--cases", SMALL, "--seconds", "0.001", "--names", "=rasch,nothing"),
    )
    rasch, nothing = (line.split() for line in out.splitlines() if line.startswith(("=", "not")))
    assert float(rasch[3]) > 0
    assert nothing[-1] == "-"


def test_first_calls(run):
    assert "bradley_terry_map" in run(
        "fit.py", "--cold", "--cases", SMALL, "--presets", "bradley_terry_map"
    )


def test_refits(run):
    assert "3 converged" in run("fit.py", *QUICK, "--refits", "3")


def test_point_estimates(run):
    out = run("numpy_layer.py", *QUICK, "--presets", "avg,borda,pagerank")
    assert "pagerank" in out


def test_posteriors(run):
    out = run("numpy_layer.py", *QUICK, "--headline", "--presets", "avg,copeland", "--draws", "8")
    assert "sum of medians" in out


def test_samplers(run):
    out = run(
        "nuts.py",
        *("--case", SMALL, "--factories", "bradley_terry"),
        *("--samplers", "compiled", "--draws", "50", "--chains", "2"),
    )
    assert "ESS/s" in out
    assert "Error" not in out


def test_processes(run):
    out = run("startup.py", "--case", SMALL, "--runs", "1", "--only", "rank borda")
    assert "rank borda, 2000 draws" in out


def test_unknown_names_are_refused(run):
    with pytest.raises(SystemExit, match="'nobody'"):
        run("fit.py", "--presets", "nobody")


def test_every_published_configuration_has_a_name_in_the_peer(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    configurations = importlib.import_module("configurations")
    assert set(configurations.PRESETS) <= set(configurations.PEER_CALLS)


def test_studies(run):
    small = ("--draws", "1", "--replicates", "50", "--pools", "1")
    out = run("studies.py", "--studies", "convergence,numpy,pools", *small)
    assert "stability of 48" in out
    assert "50 replicates, AIME'25, pass_at_k(k=8), rows" in out
    assert "1 pools of 5, 10 and 15, all that score at once" in out


def test_unchanged_estimates(run, tmp_path):
    build_model = Run.build_model
    few = ["--tensors", "1", "--forms", "rasch by map,rao_kupper"]
    run("unchanged.py", *few, "--write", str(tmp_path / "before.pkl"))
    out = run("unchanged.py", *few, "--against", str(tmp_path / "before.pkl"))
    assert out.count("0.0e+00") == 6
    assert Run.build_model is build_model  # the script refuses graphs only while it runs


def test_presets_with_their_posteriors():
    # In a process of its own, since the script forks, and this process has threads.
    command = [sys.executable, str(FOLDER / "presets.py"), "--case", SMALL]
    command += ["--presets", "avg,borda,bradley_terry_map"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in printed.splitlines()]
    assert [row[0] for row in rows[-4:]] == ["avg", "borda", "bradley_terry_map", "total"]
    assert "failed" not in printed
