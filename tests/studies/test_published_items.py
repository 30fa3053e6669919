"""Every call that the documentation names for an item of the papers, on small data."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from matplotlib.figure import Figure

import bayesrank as br
from bayesrank import studies
from bayesrank.commands.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "studies.md"
HEADING = "## What the papers show, and the call for it"
# What makes a command small; the last of two equal flags counts.
SMALL = ("--methods", "avg, bayes_greedy, bradley_terry_map", "--draws", "2", "--pools", "2")
TITLES = (
    "Mean worth of a trial",
    "Methods with the order of the gold standard",
    "Agreement with the gold standard and with other methods, from all trials",
    "Agreement from few trials",
    "Agreement of pools",
    "Greedy runs in the prior",
)
ITEMS = {
    "R, tables 2, 3, 6 to 9 and 19",
    "R, appendix B",
    "R, figure 1 and appendix C",
    "R, table 4",
    "R, section 3.3",
    "D, appendix C",
    "D, appendix D",
    "D, appendix I.1",
    "D, table 1",
}


def section() -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(HEADING) :].split("\n## ")[0]


def rows() -> dict[str, str]:
    """Return the calls of the table by the item of a paper."""
    lines = re.findall(r"^\| ([RD], [^|]*) \| `([^`]*)` \|", section(), re.MULTILINE)
    return dict(lines)


@pytest.fixture(scope="module")
def namespace() -> dict:
    """Return the names that the page has, with small data in place of the benchmark."""
    names: dict = {"br": br, "studies": studies}
    (code,) = re.findall(r"^```python\n(.*?)^```", section(), re.DOTALL | re.MULTILINE)
    exec(code, names)  # noqa: S102 (of our own page)
    tensor = studies.simulate.rasch_tensor(16, 6, 64, ability_sd=2.0, random_seed=2)
    chance = tensor["probability"].values
    greedy = (np.random.default_rng(1).random(chance.shape) < chance).astype(int)
    names["data"] = br.Responses(tensor["outcomes"].values, prior_outcomes=greedy[..., None])
    return names


def test_the_table_has_the_items_of_the_papers():
    found = re.findall(r"^\| ([RD], [^|]*) \|", section(), re.MULTILINE)
    assert set(found) >= ITEMS
    assert len(rows()) == len(found)  # no item without a call, and none twice


@pytest.mark.parametrize("item", [item for item, call in rows().items() if call[0] != "b"])
def test_a_call_runs_and_is_drawn(item, namespace, tmp_path):
    made = eval(rows()[item], namespace)  # noqa: S307 (of our own page)
    assert isinstance(made, xr.Dataset | pd.DataFrame | np.ndarray | Figure)
    figure = studies.plot(made) if isinstance(made, xr.Dataset) else made
    if isinstance(figure, Figure):
        figure.savefig(tmp_path / "figure.png")


@pytest.mark.parametrize("item", [item for item, call in rows().items() if call[0] == "b"])
def test_a_command_runs(item):
    program, *arguments = shlex.split(rows()[item])
    assert program == "bayesrank"
    result = CliRunner().invoke(main, [*arguments, *SMALL])
    assert result.exit_code == 0, result.output
    for title in TITLES:
        assert title in result.stdout
    assert "pooled" in result.stdout
