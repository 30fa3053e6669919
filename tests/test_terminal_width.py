"""What commands print fits the terminal, whatever the names."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from rich.cells import cell_len

Run = Callable[..., Result]

NAMES = [
    "meta-llama/Llama-3.1-405B-Instruct-FP8-dynamic-quantised-2025-01-01",
    "meta-llama/Llama-3.1-405B-Instruct-FP8-dynamic-quantised-2025-02-01",
    "\u901a\u4e49\u5343\u95ee-72B-\u5bf9\u8bdd-\u8d85\u957f\u540d\u5b57-\u6d4b\u8bd5\u7248\u672c",
    "\u0646\u0645\u0648\u0630\u062c \u0627\u0644\u0644\u063a\u0629 \u0627\u0644\u0639\u0631\u0628",
    "\U0001f916 robot",
    "Qwen/Qwen2.5-72B-Instruct (temperature 0.7, top-p 0.95, thinking)",
]

COMMANDS = [
    ("rank", "LOGS"),
    ("rank", "LOGS", "--method", "borda", "--top", "3"),
    ("check", "LOGS", "--method", "borda,bayes"),
    ("evaluate", "LOGS", "--metrics", "avg,pass_at_k(k=2)"),
    ("evaluate", "LOGS", "--pairs"),
    ("plan", "LOGS"),
    ("plan", "LOGS", "--goal", "full", "--budget", "200"),
    ("plan", "LOGS", "--goal", "width", "--width", "0.1"),
    ("study", "LOGS", "--methods", "avg,borda", "--draws", "4", "--pools", "4"),
    ("methods",),
    ("methods", "--presets"),
    ("methods", "bradley_terry_map"),
    ("methods", "irt_2pl"),
    ("rank", "--help"),
    ("--help",),
]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outcomes of systems with long names, and names in other scripts."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("logs") / "outcomes.csv"
    lines = ["system,question,trial,outcome"]
    for place, name in enumerate(NAMES):
        for question in range(20):
            for trial in range(3):
                right = rng.random() < 0.8 - 0.1 * place
                lines.append(f'"{name}",q{question},{trial},{int(right)}')
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_line_is_wider_than_the_terminal(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(*(str(logs) if word == "LOGS" else word for word in command))
    lines = [*result.stdout.splitlines(), *result.stderr.splitlines()]
    # A word alone on its line cannot be broken: names, paths and addresses.
    too_wide = [line for line in lines if cell_len(line) > width and " " in line.strip()]
    assert not too_wide


@pytest.mark.parametrize("width", [80, 120])
def test_every_system_keeps_a_line_and_a_name_of_its_own(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = run("rank", str(logs)).stdout.splitlines()
    shown = [row for row in rows if "[" in row and "]" in row]
    assert len(shown) == len(NAMES)
    for name in NAMES:
        assert any(name[:4] in row and name[-4:] in row for row in shown)


def test_a_pipe_gets_whole_names(run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert all(name in run("rank", str(logs)).stdout for name in NAMES)


def test_the_methods_are_listed_in_sixty_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(run("methods").stdout.splitlines()) <= 60


def test_rows_and_columns_can_be_chosen(run: Run, logs: Path) -> None:
    chosen = ("--columns", "system,lcb", "--sort", "lcb", "--top", "2", "--format", "csv")
    header, *rows = run("rank", str(logs), *chosen).stdout.splitlines()
    assert header == "system,lcb"
    bounds = [float(row.rpartition(",")[2]) for row in rows]
    assert len(bounds) == 2
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.parametrize("option", ["--columns", "--sort"])
def test_an_unknown_column_is_named_with_the_known_ones(run: Run, logs: Path, option: str) -> None:
    result = run("rank", str(logs), option, "loss", code=2)
    assert f"{option} must be" in result.stderr
    assert "got 'loss'" in result.stderr
    assert "score" in result.stderr
