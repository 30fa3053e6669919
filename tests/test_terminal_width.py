"""What commands print fits the terminal, whatever the names."""

import re
from collections.abc import Callable
from itertools import pairwise
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
    ("rank", "LOGS", "--format", "nonsense"),
    ("rank", "LOGS", "--columns", "nonsense"),
    *((name, "--help") for name in ("rank", "check", "evaluate", "plan", "study", "report")),
    *((name, "--help") for name in ("convert", "show", "methods", "rubric", "demo", "cite")),
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
    result = run(
        *(str(logs) if word == "LOGS" else word for word in command),
        code=2 if "nonsense" in command else 0,
    )
    assert_lines_fit([*result.stdout.splitlines(), *result.stderr.splitlines()], width)


def assert_lines_fit(lines: list[str], width: int) -> None:
    """Check that lines are no wider than a terminal, split no name, and print no NaN."""
    # A word alone on its line cannot be broken: paths and addresses.
    assert not [line for line in lines if cell_len(line) > width and " " in line.strip()]
    assert not [line for line in lines if re.search(r"\b(nan|NaN|None)\b|<NA>", line)]
    assert_no_name_is_split(lines)


@pytest.fixture(scope="module")
def battles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Votes on the same systems, by judges and by period."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("battles") / "votes.csv"
    lines = ["model_a,model_b,winner,judge,prompt_id,tstamp"]
    for vote in range(400):
        first, second = rng.choice(len(NAMES), 2, replace=False)
        winner = ("tie", "model_a", "model_b")[rng.integers(3)]
        when = 1_770_000_000 + 20_000 * vote
        names = f'"{NAMES[first]}","{NAMES[second]}"'
        lines.append(f"{names},{winner},judge-{vote % 13},p{vote % 40},{when}")
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


ON_BATTLES = [
    ("rank", "LOGS"),
    ("rank", "LOGS", "--scale", "elo"),
    ("rank", "LOGS", "--method", "elo"),
    ("check", "LOGS"),
    ("evaluate", "LOGS"),
    ("plan", "LOGS"),
    ("study", "LOGS", "--draws", "2"),
    ("study", "LOGS", "--methods", "bradley_terry", "--n", "3,30", "--draws", "2"),
]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", ON_BATTLES, ids=" ".join)
def test_lines_on_battles_fit_too(
    run: Run, battles: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(*(str(battles) if word == "LOGS" else word for word in command))
    assert_lines_fit([*result.stdout.splitlines(), *result.stderr.splitlines()], width)


def assert_no_name_is_split(lines: list[str]) -> None:
    """Check that no name without a space goes on in the next line."""
    whole = [name for name in NAMES if " " not in name]
    for line, after in pairwise(lines):
        words = line.split()
        if not words or not after.split():
            continue
        for name in whole:
            at = len(words[-1])
            goes_on = name.startswith(words[-1]) and name[at:].startswith(after.split()[0][:4])
            assert not (goes_on and at >= 4), f"{line}\n{after}"


@pytest.fixture(scope="module")
def odd_logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A system without outcomes beside one with a single outcome, and systems that all tie."""
    folder = tmp_path_factory.mktemp("odd")
    rng = np.random.default_rng(2)
    holes, ties = ["system,question,trial,outcome"], ["system,question,trial,outcome"]
    for place, name in enumerate(NAMES):
        for question in range(8):
            for trial in range(2):
                seen = place not in (0, 1) or (place == 1 and not question and not trial)
                outcome = str(int(rng.random() < 0.7)) if seen else ""
                holes.append(f'"{name}",q{question},{trial},{outcome}')
                ties.append(f'"{name}",q{question},{trial},1')
    paths = {"holes": folder / "holes.csv", "ties": folder / "ties.csv"}
    paths["holes"].write_text("\n".join(holes), encoding="utf-8")
    paths["ties"].write_text("\n".join(ties), encoding="utf-8")
    return paths


ON_ODD_LOGS = [
    ("rank", "LOGS"),
    ("check", "LOGS"),
    ("evaluate", "LOGS"),
    ("evaluate", "LOGS", "--pairs"),
    ("plan", "LOGS"),
    ("study", "LOGS", "--methods", "avg,borda", "--draws", "3", "--pools", "3"),
]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("which", ["holes", "ties"])
@pytest.mark.parametrize("command", ON_ODD_LOGS, ids=" ".join)
def test_empty_cells_say_so_in_words(
    run: Run,
    odd_logs: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    which: str,
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    path = str(odd_logs[which])
    result = run(*(path if word == "LOGS" else word for word in command))
    assert "Warning" not in result.stderr
    assert_lines_fit([*result.stdout.splitlines(), *result.stderr.splitlines()], width)


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("command", [("check", "LOGS"), ("plan", "LOGS")], ids=" ".join)
def test_names_in_sentences_are_not_split(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(*(str(logs) if word == "LOGS" else word for word in command))
    assert_no_name_is_split([*result.stdout.splitlines(), *result.stderr.splitlines()])


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


def test_fewer_rows_have_the_same_decimals(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rows = [
        f"{name},{i},{int(i < n)}"
        for name, n in zip("abc", (19, 18, 1), strict=True)
        for i in range(20)
    ]
    table.write_text("\n".join(["system,question,correct", *rows]))
    common = ("rank", table, "--method", "avg", "--draws", 0)
    few = run(*common, "--top", 2).stdout.splitlines()
    assert few == run(*common).stdout.splitlines()[:-1]


@pytest.mark.parametrize("option", ["--columns", "--sort"])
def test_an_unknown_column_is_named_with_the_known_ones(run: Run, logs: Path, option: str) -> None:
    result = run("rank", str(logs), option, "loss", code=2)
    assert f"{option} must be" in result.stderr
    assert "got 'loss'" in result.stderr
    assert "score" in result.stderr


def test_the_list_of_commands_has_whole_sentences(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = run("--help").stdout.partition("Commands:")[2].splitlines()[1:]
    assert len(listed) > 10
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)


def test_options_of_a_command_come_before_those_that_read_its_input(run: Run) -> None:
    for command in ("rank", "check", "convert", "evaluate", "plan", "report", "study"):
        own, found, reading = run(command, "--help").stdout.partition("How to read INPUT:")
        assert found
        assert "--input-format" in reading
        assert "--input-format" not in own
        assert "--help" in own
