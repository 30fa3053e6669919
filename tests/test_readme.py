"""The examples of the README do what it says that they do."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    text = README.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def assert_same_output(shown: str, expected: str) -> None:
    """Compare words exactly and numbers to 2 %: random streams may differ between versions."""
    assert len(shown.split()) == len(expected.split()), shown
    for word, wanted in zip(shown.split(), expected.split(), strict=True):
        try:
            number, target = float(word.strip("[],")), float(wanted.strip("[],"))
        except ValueError:
            assert word == wanted
        else:
            assert number == pytest.approx(target, rel=0.02, abs=0.02)


def run(command: list[str], folder: Path) -> str:
    """Run a command as on a terminal and return all that it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_python_example(tmp_path: Path) -> None:
    (code,) = blocks("python")
    (expected,) = blocks("text")
    assert len(code.splitlines()) <= 14
    assert_same_output(run([sys.executable, "-c", code], tmp_path), expected)
    assert (tmp_path / "result.nc").is_file()


@pytest.mark.parametrize("block", blocks("console"))
def test_command_example(tmp_path: Path, shared: Path, block: str) -> None:
    (tmp_path / "logs").symlink_to(shared / "logs" / "inspect")
    command, _, expected = block.partition("\n")
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "bayesrank"
    shown = run([sys.executable, "-m", "bayesrank", *arguments], tmp_path)
    assert_same_output(shown, expected)
