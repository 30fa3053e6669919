"""Progress is shown where people look, and nowhere else."""

import io
import os
import pty
import subprocess
import sys
import textwrap
import time

import pytest

from bayesrank.progress import track

CELL = """
    import time
    import numpy as np
    from bayesrank import rank
    from bayesrank.studies.execution import run_tasks

    def slow(task, seed):
        time.sleep(0.15)
        return {"value": np.array(task)}

    results = run_tasks(slow, range(4), name="A <slow> study")
    assert [int(result["value"]) for result in results] == [0, 1, 2, 3]
    silent = run_tasks(slow, range(1), name="a silent study", progress=False)
"""
SAMPLING = """
    outcomes = np.random.default_rng(1).integers(0, 2, (3, 4, 4))
    tree = rank(outcomes, "bradley_terry", backend="nuts", draws=50, random_seed=1)
"""
TERMINAL = """
    import time
    from bayesrank.progress import track

    for _ in track(range(4), name="slow study", total=4):
        time.sleep(0.15)
"""


@pytest.fixture(scope="module")
def displayed() -> list[tuple[str, dict]]:
    """Run cells in a kernel and return all that it sent for display, in order."""
    nbclient = pytest.importorskip("nbclient", reason="kernels need the extra test")
    nbformat = pytest.importorskip("nbformat", reason="kernels need the extra test")
    sent = []

    class Watching(nbclient.NotebookClient):
        def process_message(self, msg, cell, cell_index):
            sent.append((msg["msg_type"], msg["content"]))
            return super().process_message(msg, cell, cell_index)

    cells = [nbformat.v4.new_code_cell(textwrap.dedent(text)) for text in (CELL, SAMPLING)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with pytest.MonkeyPatch.context() as patch:
        # Kernels on this machine alone talk without encryption, and say so.
        patch.setenv("PYTHONWARNINGS", "ignore")
        patch.setenv("OMP_NUM_THREADS", "1")
        Watching(notebook, timeout=120, kernel_name="python3").execute()
    return sent


def html(displayed: list[tuple[str, dict]], kind: str) -> list[str]:
    return [content["data"].get("text/html", "") for found, content in displayed if found == kind]


@pytest.mark.filterwarnings("ignore")  # of the client, whose loop and sockets are its own
def test_a_study_shows_a_bar_in_a_notebook(displayed) -> None:
    (first,) = [text for text in html(displayed, "display_data") if "study" in text]
    assert "A &lt;slow&gt; study: 0 of 4" in first
    assert '<progress max="4" value="0"' in first
    updates = html(displayed, "update_display_data")
    assert any('<progress max="4" value="2"' in text for text in updates)
    assert any("4 of 4, 0 s left" in text for text in updates)
    assert "" in updates  # what has ended is gone


@pytest.mark.filterwarnings("ignore")
def test_nuts_shows_its_chains_in_a_notebook(displayed) -> None:
    updates = html(displayed, "update_display_data")
    assert any("Sampler Progress" in text and "<progress" in text for text in updates)


@pytest.mark.filterwarnings("ignore")
def test_notebooks_need_no_widgets(displayed) -> None:
    written = [content["text"] for kind, content in displayed if kind == "stream"]
    assert not any("ipywidgets" in text for text in written)


def test_a_terminal_shows_a_bar() -> None:
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(TERMINAL)],
            stderr=theirs,
            stdout=subprocess.PIPE,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
        )
        assert process.communicate(timeout=60)[0] == b""
        time.sleep(0.1)  # the line discipline of the terminal
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert "slow study" in shown
    assert "%" in shown


@pytest.mark.parametrize("shown", [None, False])
def test_a_file_is_shown_nothing(shown, capsys) -> None:
    assert list(track("abc", name="study", total=3, shown=shown)) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_file_gets_the_end_on_request(capsys) -> None:
    assert list(track("abc", name="study", total=3, shown=True)) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("study") == 1
    assert "100%" in captured.err


def test_nothing_to_do_is_shown_nowhere() -> None:
    assert list(track([], name="study", total=0, shown=True)) == []


def test_commands_show_what_goes_on_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    from bayesrank.commands import console

    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr(console.sys, "stderr", shown)
    monkeypatch.setattr(console, "_PATIENCE", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    console._LOGGER.setLevel("INFO")
    with console.progress("a quick step"):
        pass
    assert shown.getvalue() == ""
    with console.progress("a slow step"):
        time.sleep(0.4)
    assert "a slow step" in shown.getvalue()
