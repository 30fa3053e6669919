"""What Sphinx makes of the catalog and of the measured coverage."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from bayesrank.catalog import METHODS

DOCS = Path(__file__).parents[1] / "docs"
pytest.importorskip("numpydoc", reason="needs the extra docs")


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "extensions")
    return lambda name: __import__(name)


@pytest.mark.parametrize("name", METHODS)
def test_a_page_has_what_the_row_says(load, name):
    row = METHODS[name]
    page = load("method_pages").page(row)
    assert row.use in page
    assert all(f"``{option}``" in page for option in row.all_options)
    assert all(f":cite:p:`{key}`" in page for key in row.citations)
    for heading in ("Definition", "Example", "Options", "References", "Function"):
        assert f"\n{heading}\n---" in page
    assert "\n[1] " in page.split("\nReferences\n")[1]
    assert f".. py:function:: {row.function.partition(':')[2]}(" in page
    assert "   :module: bayesrank." in page


def test_public_names_have_one_page_each(load):
    pages = load("api_pages")
    names = [
        name for topic in pages.load_topics().values() for name in pages.expand(topic["names"])
    ]
    assert len(names) == len(set(names))
    missing = [name for name in pages.bayesrank.__all__ if f"bayesrank.{name}" not in names]
    assert [each for each in missing if callable(getattr(pages.bayesrank, each))] == []
    assert all(pages.summary(pages.find(name)) for name in names)


def test_the_coverage_table_has_every_configuration_and_fails_in_words_and_colour(load):
    table = load("calibration_table")
    with table.TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    scores = [row for row in rows if row["quantity"] == "score" and row["nominal"] == "0.95"]
    shown = table.overview(scores)
    assert all(f">{row['configuration']}</th>" in shown for row in scores)
    failed = {row["configuration"] for row in scores if table.fails(row)}
    assert shown.count('class="fails"') >= len(failed) > 0


def test_references_to_nothing_are_not_excused(load):
    find = load("references").find
    assert callable(find("arviz.plot_forest"))
    assert callable(find("bayesrank.Responses.from_long"))
    assert find("bayesrank.Responses.from_nowhere") is None
    assert find("no_such_package.function") is None


def test_formulas_are_mathml_without_a_script(load):
    pytest.importorskip("latex2mathml", reason="needs the extra docs")
    shown = load("mathml").formula(r"\frac{\pi_i}{\pi_i + \pi_j}", None, "block")
    assert shown.startswith("<math")
    assert "<mfrac>" in shown


def test_pages_name_the_tables_that_have_the_method(load):
    intervals = load("method_pages").intervals
    assert "/calibration`" in intervals(METHODS["borda"])
    assert "/battles`" in intervals(METHODS["dynamic_comparisons"])
    assert "/every_method`" in intervals(METHODS["colley"])
    assert "/pass_family`" in intervals(METHODS["auc_at_k"])
    own = replace(METHODS["colley"], name="own")
    assert intervals(own) == "coverage was not measured"
