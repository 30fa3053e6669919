"""Every row of the page on the papers' tables and figures runs, on small data."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from matplotlib.figure import Figure

import bayesrank as br
from bayesrank import studies
from bayesrank.commands.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
ITEMS = re.findall(r"^\| ([RD], [^|]*) \|", PAGE, re.MULTILINE)
ROWS = re.findall(r"^\| ([RD], [^|]*) \| `([^`]*)` \|[^|]*\|[^|]*\|[^|]*\|$", PAGE, re.MULTILINE)
# What makes a command small (the last of two equal flags counts), and what it must print.
COMMANDS = {
    "study": (
        ("--methods", "avg, bayes_greedy, bradley_terry_map", "--draws", "2", "--pools", "2"),
        (
            "Mean grade of a trial",
            "Methods with the order of the gold standard",
            "Agreement with the gold standard and with other methods, from all trials",
            "Agreement from few trials",
            "Agreement of pools",
            "Greedy runs in the prior",
            "pooled",
        ),
    ),
    "rubric": (("--draws", "0"), ("conservative", "verifier_only")),
    "methods": ((), ("bayes_greedy", "hodge_rank_log_odds_uniform")),
}


@pytest.fixture(scope="module")
def namespace() -> dict:
    """Return the names that the page has, with small data in place of the benchmarks."""
    names: dict = {}
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    exec(code, names)  # noqa: S102 (of our own page)
    tensor = studies.simulate.rasch_tensor(16, 6, 64, ability_sd=2.0, random_seed=2)
    chance = tensor["probability"].values
    greedy = (np.random.default_rng(1).random(chance.shape) < chance).astype(int)
    names["data"] = br.Responses(tensor["outcomes"].values, prior_outcomes=greedy[..., None])
    names["attempts"] = few(names["attempts"])
    return names


def few(attempts: pd.DataFrame) -> pd.DataFrame:
    """Return the attempts of four systems at ten questions in six trials and the greedy run."""
    systems, questions = (sorted(set(attempts[name])) for name in ("system", "question"))
    kept = attempts["system"].isin(systems[:4]) & attempts["question"].isin(questions[::12])
    return attempts.loc[kept & (attempts["trial"] <= 6)]


def assert_there_are_numbers(made: Any) -> None:
    """Assert that what a call returned has finite numbers, or lines and bars."""
    if isinstance(made, Figure):
        assert any(axes.has_data() for axes in made.axes)
    elif isinstance(made, xr.Dataset):
        assert any(np.isfinite(made[name]).any() for name in made if made[name].dtype.kind == "f")
    else:
        table = pd.DataFrame(made).select_dtypes("number")
        assert np.isfinite(table).any(axis=None)


def test_every_item_has_a_call_and_none_is_there_twice():
    assert [item for item, _ in ROWS] == ITEMS
    assert len(set(ITEMS)) == len(ITEMS)
    named = " ".join(ITEMS)
    for paper, item in (
        *[("R", name) for name in ("tables 2, 3, 6 to 9 and 19", "table 4", "tables 5 and 22")],
        *[("R", name) for name in ("tables 20 and 21", "figure 1", "figure 4", "section 3.3")],
        *[("R", name) for name in ("appendix B", "appendix C", "appendix D", "appendix I")],
        *[("D", name) for name in ("table 1", "tables 4 and 5", "equation 7", "appendix C")],
        *[("D", name) for name in ("appendix D", "appendix F", "appendix I.1")],
    ):
        assert f"{paper}, {item}" in named


@pytest.mark.parametrize(("item", "call"), ROWS, ids=[item for item, _ in ROWS])
def test_a_row_runs(item, call, namespace, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if call.startswith("bayesrank "):
        run_command(call)
        return
    small = re.sub(r"\bupdates=[\d_]+", "updates=200", call)
    made = eval(small, namespace)  # noqa: S307 (of our own page)
    assert_there_are_numbers(made)
    figure = studies.plot(made) if isinstance(made, xr.Dataset) else made
    if isinstance(figure, Figure):
        figure.savefig("figure.png")


def test_numbers_are_those_of_the_page():
    calls = dict(ROWS)
    names: dict = {"studies": studies, "data": br.datasets.load_olympiad("HMMT'25")}
    study = eval(calls["R, appendix D, gold standard"], names)  # noqa: S307 (of our own page)
    one = study.sel({"method": "bayes"}).squeeze()
    assert f"`bayes` {float(one['tau_mean']):.4f} ± {float(one['tau_sd']):.4f} (any seed)" in PAGE
    found = []
    for benchmark in ("AIME'24", "HMMT'25", "AIME'25", "BrUMO'25"):
        names["data"] = br.datasets.load_olympiad(benchmark)
        study = eval(calls["R, greedy alignment"], names)  # noqa: S307 (of our own page)
        found.append(f"{float(study['tau']):.3f}")
    assert f"| {', '.join(found)} | the same |" in PAGE


def run_command(call: str) -> None:
    """Run a command on small data, and find what it must print and write."""
    _, command, *arguments = shlex.split(call)
    small, printed = COMMANDS[command]
    if command == "rubric" and "--list" not in arguments:
        few(br.datasets.load_attempts()).to_csv("attempts.csv", index=False)
        small = ("attempts.csv", *small)
    result = CliRunner().invoke(main, [command, *arguments, *small])
    assert result.exit_code == 0, result.output
    for text in printed:
        assert text in result.stdout
    if "-o" in arguments:
        assert list(Path(arguments[arguments.index("-o") + 1]).iterdir())
