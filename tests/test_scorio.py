"""The page for those who come from Scorio, against Scorio itself where it is installed."""

import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

from bayesrank import Responses, evaluate, point_estimate, rank
from bayesrank.priors import Cauchy, Empirical, Laplace, Normal

PAGE = Path(__file__).parent.parent / "docs" / "scorio.md"
RAISES = " or raises"
PRIORS = {"Cauchy": Cauchy, "Empirical": Empirical, "Laplace": Laplace, "Normal": Normal}


def rows(title: str) -> list[list[str]]:
    """Return the cells of the table under a title, code without its quotes."""
    if not PAGE.exists():
        return []
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture(scope="module")
def scorio():
    """Scorio, or a reason to skip."""
    found = pytest.importorskip("scorio", reason="Scorio is not installed")
    pytest.importorskip("scorio.categorical")
    return found


@pytest.fixture(scope="module")
def tensors():
    """Answers of a Rasch world, and earlier ones of the same."""
    rng = np.random.default_rng(20)
    chance = 1 / (1 + np.exp(rng.normal(size=(25, 1)) - rng.normal(size=(6, 1, 1))))
    return [(rng.random((6, 25, n)) < chance).astype(int) for n in (5, 1)]


def score(call: str, outcomes, earlier):
    """Evaluate a call of ours as the page writes it."""
    data = Responses(outcomes, prior_outcomes=earlier)
    names = {"data": data, "R0": earlier, "point_estimate": point_estimate, **PRIORS}
    if call == '"bayesian_mcmc"':
        return rank(data, "bayesian_mcmc", random_seed=1)["ranking"]["score"].values
    return eval(f"point_estimate(data, {call})", names)  # noqa: S307


def places(scores):
    return rankdata(-np.round(scores, 9), method="min")


@pytest.mark.parametrize("row", rows("Rankings") + rows("Priors"), ids=lambda row: row[0])
@pytest.mark.filterwarnings("ignore")
def test_rankings_agree_as_the_page_says(row, scorio, tensors):
    theirs, ours, agreement = row[:3]
    outcomes, earlier = tensors
    names = {"R": outcomes, "R0": earlier, **vars(scorio.rank)}
    try:
        expected = eval(theirs[:-1] + ", return_scores=True)", names)[1]  # noqa: S307
    except RuntimeError:
        assert agreement.endswith(RAISES)
        expected = None
    agreement = agreement.removesuffix(RAISES)
    found = score(ours, outcomes, earlier)
    assert np.isfinite(found).all()
    if expected is None or agreement == "differs":
        return
    if agreement == "ranks":
        np.testing.assert_array_equal(places(found), places(expected))
        return
    if found.min() < 0 < expected.min():  # strengths, whose logarithms are the scores here
        expected = np.log(expected) - np.log(expected).mean()
    np.testing.assert_allclose(found, expected, rtol=0, atol=float(agreement))


@pytest.mark.parametrize("row", rows("Metrics of one system"), ids=lambda row: row[0])
def test_metrics_agree_as_the_page_says(row, scorio, tensors):
    theirs, ours, columns, agreement = row
    outcomes = tensors[0][0]
    expected = eval(theirs, {"Q": outcomes, **vars(scorio.eval)})  # noqa: S307
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = evaluate(outcomes, [ours.strip('"')])
    wanted = columns.split(", ")
    found = table.iloc[0][wanted].astype(float).values
    np.testing.assert_allclose(found, np.atleast_1d(expected)[: len(wanted)], atol=float(agreement))


def public_functions(scorio):
    """Yield what Scorio offers for evaluation and ranking, by name."""
    for module in (scorio.rank, scorio.eval):
        for name in module.__all__:
            yield name, getattr(module, name)
    for module in (scorio.utils, scorio.sinf):
        for name, each in inspect.getmembers(module, inspect.isfunction):
            if each.__module__ == module.__name__ and not name.startswith("_"):
                yield name, each
    for name in ("evaluate_schema", "evaluate_all", "load_records"):
        yield name, getattr(scorio.categorical, name)


def words_in_code(texts):
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", " ".join(texts)))))


def test_the_page_names_every_function_and_every_option(scorio):
    text = re.sub(r"^```.*?^```", "", PAGE.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    words = words_in_code([text])
    absent = words_in_code(
        re.findall(r"^.*not here.*(?:\n  .*)*", text, re.IGNORECASE | re.MULTILINE)
    )
    missing = set()
    for name, each in public_functions(scorio):
        options = set(inspect.signature(each).parameters) - {"self", "args", "kwargs"}
        if name in absent:
            continue
        missing |= {f"{name}({option})" for option in options - words}
        missing |= {name} - words
    assert not missing


def test_the_page_has_rows():
    assert len(rows("Rankings")) > 50
    assert len(rows("Metrics of one system")) > 20
