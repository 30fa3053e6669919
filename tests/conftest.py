"""Fixtures shared by all tests."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import settings

from bayesrank import design
from bayesrank.commands.cli import main

# A busy machine is no fault of the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# PyTensor notes where every variable was created, which takes a tenth of the time to compile.
os.environ.setdefault("PYTENSOR_FLAGS", "traceback__limit=0")

# Real data, logs and reference values live beside the repository and are never copied into it.
SHARED = Path(os.environ.get("BAYESRANK_SHARED", Path(__file__).parents[2] / "shared"))


@pytest.fixture(autouse=True)
def _forget_targets() -> None:
    """Let no test announce a target that differs from that of another test's data."""
    design.forget()


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of real data, logs and reference values, or skip when it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"the shared data folder {SHARED} is absent; set BAYESRANK_SHARED to its place")
    return SHARED


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the width of a terminal, which readline leaves to the processes that pytest starts."""
    monkeypatch.delenv("COLUMNS", raising=False)
    os.unsetenv("COLUMNS")  # readline does not tell os.environ


@pytest.fixture
def run() -> Callable[..., Result]:
    """Return a function that runs a command and keeps stdout and stderr apart."""

    def invoke(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [str(each) for each in arguments])
        if result.exit_code not in (0, code) and result.exception is not None:
            raise result.exception
        assert result.exit_code == code, result.stderr
        return result

    return invoke


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a log of three systems, with 18, 12 and 6 right answers of 30, and one missing."""
    path = tmp_path / "log.csv"
    lines = ["model,question,trial,outcome"]
    for system, right in (("bad", 1), ("good", 3), ("fair", 2)):
        for question in range(6):
            lines += [f"{system},q{question},{trial},{int(trial < right)}" for trial in range(5)]
    path.write_text("\n".join(lines[:-1]))
    return path


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sample by NUTS without machine code, which takes some ten seconds for each new structure."""
    from bayesrank.inference.graph import bound_model, fit

    monkeypatch.setattr(fit, "bind_model", partial(bound_model.bind_model, backend="python"))
