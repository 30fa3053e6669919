"""Write a page per method before the sources are read: the row of the catalog and the docstring."""

import csv
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

from api_pages import write_changed
from numpydoc.docscrape_sphinx import SphinxDocString

from bayesrank.catalog import METHODS, PRESETS
from bayesrank.commands.flags import default_text, method_flags
from bayesrank.method import Method, load_function

# What a row takes, in words.
DATA = {
    "grades": "mean grades of systems on questions",
    "grouped grades": "mean grades of systems on questions of several data sets",
    "binary": "right and wrong outcomes",
    "counts": "counts of outcomes by category",
    "evidence": "counts of outcomes by category, and earlier outcomes",
    "pairs": "wins and ties of pairs",
    "stream": "outcomes in the order of trials",
    "log": "battles in the order of time",
    "responses": "outcomes of systems, questions and trials",
    "comparisons": "wins and ties of pairs",
}
DOCS = Path(__file__).parents[1]
# Tables of measured coverage, by page: the file, and the column with the method.
COVERAGE = {
    "calibration": ("calibration.csv", "method"),
    "designs": ("calibration_designs.csv", "method"),
    "battles": ("calibration_battles.csv", "model"),
    "every_method": ("calibration_every_method.csv", "configuration"),
    "pass_family": ("pass_family_coverage.csv", "method"),
}
# Of a docstring, what the page shows elsewhere.
SHOWN = ("Signature", "Summary", "Extended Summary", "References")


def literal(value: Any) -> str:
    """Return a value as code."""
    return f"``{value}``"


def call(row: Method) -> list[str]:
    """Return code that ranks the example by the method, in Python and on the command line."""
    options = "".join(f", {name}={value!r}" for name, value in row.example.items())
    flags = "".join(f" {flag}" for flag in example_flags(row))
    return [
        ".. code-block:: python",
        "",
        "   import bayesrank as br",
        "",
        '   data = br.datasets.load_olympiad("AIME\'25")',
        f'   result = br.rank(data, "{row.name}"{options}, random_seed=1)',
        "   br.leaderboard(result)",
        "",
        ".. code-block:: console",
        "",
        f"   $ bayesrank rank LOGS --method {row.name}{flags} --seed 1",
        "",
    ]


def example_flags(row: Method) -> list[str]:
    """Return the options of the example as flags."""
    given = {flag.name: flag for flag in method_flags(row)}
    shown = []
    for name, value in row.example.items():
        flag = next(each for key, each in given.items() if str(key).endswith(name))
        if value is True:
            shown.append(flag.opts[0])
        elif value is False:
            shown.append(
                (flag.secondary_opts or flag.opts)[0] + ("" if flag.secondary_opts else " false")
            )
        else:
            text = ",".join(map(str, value)) if isinstance(value, tuple) else value
            shown.append(f"{flag.opts[0]} {text}")
    return shown


def facts(row: Method) -> list[str]:
    """Return what the row of the catalog says, as a list of fields."""
    presets = [each.name for each in PRESETS.values() if each.method == row.name]
    first, *others = map(literal, row.backends)
    lines = {
        "When to use": row.use,
        "Family": row.family,
        "Reads": " or ".join(dict.fromkeys(DATA[form.data] for form in row.forms)),
        "Back ends": ", ".join([f"{first} (default)", *others]),
        **{f"No ``{name}``": f"{reason}." for name, reason in row.absent.items()},
        "Intervals": intervals(row),
        "Published configurations": ", ".join(map(literal, presets)),
        "Cite": " ".join(f":cite:p:`{key}`" for key in row.citations),
    }
    return [*(f":{name}: {text}" for name, text in lines.items() if text), ""]


def intervals(row: Method) -> str:
    """Return where the measured coverage of the method is."""
    pages = [f":doc:`/{page}`" for page, names in measured().items() if row.name in names]
    return f"measured coverage is in {'; '.join(pages)}" if pages else "coverage was not measured"


@cache
def measured() -> dict[str, set[str]]:
    """Return the methods in the tables of coverage, by the page that shows them."""
    found = {}
    for page, (table, column) in COVERAGE.items():
        with (DOCS / table).open(encoding="utf-8", newline="") as file:
            names = {row[column].partition("(")[0].strip() for row in csv.DictReader(file)}
        found[page] = {name if name in METHODS else PRESETS[name].method for name in names}
    return found


def options(row: Method) -> list[str]:
    """Return a table of the options with their defaults and what they are."""
    if not row.all_options:
        return ["None.", ""]
    described = {
        parameter: text
        for form in row.forms[::-1]
        for each in sections(form.function)["Parameters"]
        for parameter in re.split(r",\s*", each.name)
        for text in [" ".join(each.desc).strip()]
    }
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 20 20 60", ""]
    lines += ["   * - option", "     - default", "     - meaning"]
    for name, parameter in row.all_options.items():
        lines += [
            f"   * - {literal(name)}",
            f"     - {literal(default_text(parameter))}",
            f"     - {described.get(name, '')}",
        ]
    return [*lines, ""]


def sections(path: str) -> SphinxDocString:
    """Return the docstring of ``module:function`` in its sections."""
    return SphinxDocString(inspect.getdoc(load_function(path)) or "", config={})


def function(path: str) -> list[str]:
    """Return the function with its parameters, what it returns and raises, and its examples."""
    module, _, name = path.partition(":")
    public = public_module(module)
    signature = inspect.signature(load_function(path))
    bare = signature.replace(
        parameters=[each.replace(annotation=each.empty) for each in signature.parameters.values()],
        return_annotation=signature.empty,
    )
    shown = sections(path)
    for section in SHOWN:
        shown[section] = type(shown[section])()
    body = str(shown)
    return [
        f".. py:function:: {name}{bare}",
        f"   :module: {public}",
        "",
        *(f"   {line}" for line in body.splitlines()),
        "",
    ]


def public_module(module: str) -> str:
    """Return the module that exports what is defined in another one."""
    return "bayesrank.models" if module.startswith("bayesrank.models.") else module


def references(path: str) -> list[str]:
    """Return the references of the docstring, one paragraph each."""
    text = inspect.getdoc(load_function(path)) or ""
    listed = text.partition("\nReferences\n----------\n")[2].partition("\n\n")[0]
    numbered = re.split(r"^\.\. \[(\d+)\] ", listed, flags=re.MULTILINE)[1:]
    pairs = zip(numbered[::2], numbered[1::2], strict=True)
    return [f"[{number}] {' '.join(each.split())}\n" for number, each in pairs]


def page(row: Method) -> str:
    """Return the page of a method."""
    title = literal(row.name)
    paths = dict.fromkeys(form.function for form in row.forms)
    scope = public_module(row.function.partition(":")[0])
    lines = [title, "=" * len(title), "", f".. py:currentmodule:: {scope}", ""]
    lines += [f"{row.title}.", "", *facts(row)]
    for heading, part in {
        "Definition": [row.description or row.title, ""],
        "Example": call(row),
        "Options": options(row),
        "References": references(row.function),
        "Function": [line for path in paths for line in function(path)],
    }.items():
        lines += [heading, "-" * len(heading), "", *part]
    # Numbers of references are no footnotes, which would all have to be referred to.
    return re.sub(r"\[(\d+)\]_", r"[\1]", "\n".join(lines)) + "\n"


def write_pages(app: Any) -> None:
    """Write the pages of all methods."""
    folder = Path(app.srcdir) / "method"
    write_changed(folder, {f"{row.name}.rst": page(row) for row in METHODS.values()})


def setup(app: Any) -> dict[str, Any]:
    """Connect the writer."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
