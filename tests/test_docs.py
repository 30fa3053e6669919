"""Every code block of the documentation runs, and prints what it says that it prints."""

import io
import re
import runpy
import shlex
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

DOCS = Path(__file__).parents[1] / "docs"
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
# Ends what one block has printed.
END = "== end of block ==\n"

PAGES = sorted([*DOCS.parent.glob("README.md"), *DOCS.glob("*.md"), *DOCS.glob("howto/*.md")])
FIGURES = sorted(DOCS.glob("gallery_code/*.py"))


class Block(NamedTuple):
    """A fenced block, and the block of output that follows it, if there is one."""

    language: str
    text: str
    expected: str | None


def blocks(page: Path) -> list[Block]:
    """Return the blocks of code of a page."""
    fences = list(FENCE.finditer(page.read_text(encoding="utf-8")))
    found = []
    for number, fence in enumerate(fences):
        after = fences[number + 1] if number + 1 < len(fences) else None
        shown = after is not None and after["language"] == "text"
        expected = after["text"] if shown and after is not None else None
        found.append(Block(fence["language"], fence["text"], expected))
    return found


def pages_with(language: str) -> list[Path]:
    """Return the pages that have a block of a language."""
    return [page for page in PAGES if any(block.language == language for block in blocks(page))]


def assert_same_output(shown: str, expected: str) -> None:
    """Compare words exactly and numbers to 2 %: random streams may differ between versions."""
    assert len(shown.split()) == len(expected.split()), shown
    for word, wanted in zip(shown.split(), expected.split(), strict=True):
        try:
            number, target = float(word.strip("[](),")), float(wanted.strip("[](),"))
        except ValueError:
            assert word == wanted, shown
        else:
            assert number == pytest.approx(target, rel=0.02, abs=0.02), shown


def without_notes(printed: str) -> str:
    """Leave out what only slow machines print."""
    return re.sub(r"^Reading .*\n", "", printed, flags=re.MULTILINE)


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Return a function that runs code as a script in an empty folder and returns what it prints.

    In this process: importing PyMC and Matplotlib anew takes longer than most pages.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def run_script(code: str) -> str:
        script = tmp_path / "page.py"
        script.write_text(code, encoding="utf-8")
        printed = io.StringIO()

        def print_warning(*warning: Any) -> None:
            printed.write(warnings.formatwarning(*warning[:4]))

        with warnings.catch_warnings(), redirect_stdout(printed), redirect_stderr(printed):
            # Pages may warn, and print that they do, as the interpreter of a reader does.
            warnings.resetwarnings()
            for category in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
                warnings.simplefilter("ignore", category)
            warnings.showwarning = print_warning
            runpy.run_path(str(script), run_name="__main__")
        return without_notes(printed.getvalue())

    return run_script


def test_there_are_pages_with_code():
    assert {"README", "formats", "targets"} <= {page.stem for page in pages_with("python")}
    assert {"README", "quickstart"} <= {page.stem for page in pages_with("console")}


@pytest.mark.parametrize("page", pages_with("python"), ids=lambda page: page.stem)
def test_python_blocks_run_in_order(page, show):
    code = [block for block in blocks(page) if block.language == "python"]
    text = "".join(f"{block.text}\nprint({END.strip()!r})\n" for block in code)
    printed = show(text).split(END)[:-1]
    for block, shown in zip(code, printed, strict=True):
        if block.expected is not None:
            assert_same_output(shown, block.expected)


@pytest.mark.parametrize("page", pages_with("console"), ids=lambda page: page.stem)
def test_commands_run(page, tmp_path, shared, run, monkeypatch):
    commands = [block.text for block in blocks(page) if block.language == "console"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").symlink_to(shared / "logs" / "inspect")
    for text in commands:
        command, _, expected = text.partition("\n")
        program, *arguments = shlex.split(command.removeprefix("$ "))
        assert program == "bayesrank"
        shown = without_notes(run(*arguments).output)
        if expected:
            assert_same_output(shown, expected)


def test_every_figure_is_in_the_gallery():
    from bayesrank.reporting import figures

    drawn = "\n".join(path.read_text(encoding="utf-8") for path in FIGURES)
    plots = [name for name in figures.__all__ if name.startswith("plot_")]
    assert [name for name in plots if f"br.{name}(" not in drawn] == []


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_figures_of_the_gallery_are_drawn(path, tmp_path, show):
    show(path.read_text(encoding="utf-8") + "\nfigure.savefig('figure.png')\n")
    assert (tmp_path / "figure.png").stat().st_size > 5_000


def test_pictures_of_the_readme_are_there_and_small():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    shown = [DOCS.parent / path for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", readme)]
    assert {path.name for path in shown} == {"leaderboard.png", "report.png"}
    assert all(path.stat().st_size < 200_000 for path in shown)
