"""Every notebook runs on data that every reader has, and shows what its text says."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need the extra docs")
nbclient = pytest.importorskip("nbclient", reason="notebooks need the extra docs")
jupyter_client = pytest.importorskip("jupyter_client", reason="notebooks need the extra docs")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))

# What the outputs must hold, with the numbers that the conclusions name.
SHOWN = {
    "01_first_ranking": [
        r"Responses\(5 systems, 30 questions, 4 trials\)",
        r"'method': 'standardized_accuracy'",
        r"1 +Qwen3-4B \(sim\) +0\.725",
        r"image/png",
    ],
    "02_posterior_diagnostics": [
        r"\b0 divergences",
        r"rasch: Pareto k above 0\.7 in [0-9] of 300 cells",
        r"irt_2pl: Pareto k above 0\.7 in [0-2]?[0-9] of 300 cells",
        r"image/png",
    ],
    "03_conservative_rankings": [
        r"naive +none +benchmark +0\.4",
        r"calibrated +sandwich +benchmark +1\.0",
        r"naive +81%\s+calibrated +52%\s+population +38%",
        r"image/png",
    ],
    "04_prior_sensitivity": [
        r"tau-b between the greedy run and two sampled trials: 0\.61",
        r"reverses 3 of 190 pairs",
        r"image/png",
    ],
    "05_studies": [
        r"avg, bayes, pagerank, rasch +1\.000",
        r"never converge",
        r"greedy alignment: tau-b 0\.660",
        r"the same: True",
    ],
    "06_battles": [
        r"Battles\(6,000 battles, 20 systems, 120 prompts, 40 judges\)",
        r"'battles', 'judge,prompt', 'sandwich'",
        r"being shown first is worth 0\.[3-7]\d logits, 95 % interval 0\.[2-6]",
        r"best Qwen3-Thinking \(sim\).*\n.*best Qwen3-Thinking.*\n.*best Qwen3-Thinking",
        r"tau-b 0\.[89]\d, best by accuracy: Qwen3-Thinking",
        r"image/png",
    ],
    "08_arena_over_time": [
        r"Battles\(12,000 battles, 12 systems, 600 judges, 3 groups\)",
        r"math: mean width 0\.\d+ pooled, 0\.\d+ by itself",
        r"above zero with probability (1\.000|0\.99\d)",
        r"image/png",
    ],
    "07_your_own_model": [
        r"Rank by Thurstone's model",
        r"options of thurstone must be among",
        r"image/png",
    ],
}


def outputs(path: Path, folder: Path, kernel: Any) -> str:
    """Execute a notebook in a folder and return all that it shows, as text and as kinds."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {folder}"))
    client = nbclient.NotebookClient(notebook, km=kernel, timeout=300)
    try:
        client.execute()
    finally:
        client.kc.stop_channels()
    shown = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            shown += [output.get("text") or data.get("text/plain", ""), *data]
    return "\n".join(shown)


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """Return a kernel for all notebooks, since importing PyMC takes longer than most of them."""
    manager = jupyter_client.AsyncKernelManager(kernel_name="python3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        patch.setenv("OMP_NUM_THREADS", "1")
        # Kernels on this machine alone talk without encryption, and say so.
        patch.setenv("PYTHONWARNINGS", "ignore")
        yield manager
    nbclient.util.run_sync(manager.shutdown_kernel)(now=True)


def test_notebooks_are_committed_without_outputs():
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        code = [cell for cell in cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in code), path.name


@pytest.mark.filterwarnings("ignore")  # of the client, whose loop and sockets are its own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_shows_what_it_says(path, tmp_path, kernel):
    shown = outputs(path, tmp_path, kernel)
    for pattern in SHOWN.get(path.stem, ()):
        assert re.search(pattern, shown), f"{pattern} in\n{shown}"
