"""What notebooks show of an object, without the object knowing the layer that draws it."""

import sys
from importlib import import_module
from typing import Any

# Imported where a notebook asks: nothing else needs the templates and tables of reports.
_NOTEBOOK = "bayesrank.reporting.notebook"
# Results are trees of xarray, written by :func:`bayesrank.rank` or read from a file.
_TREE = ("xarray.core.datatree", "DataTree")


def show_results() -> None:
    """Have notebooks show a result with its leaderboard first, where one runs."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None:
        formatter = shell.display_formatter.formatters["text/html"]
        formatter.for_type_by_name(*_TREE, lambda tree: to_html("tree_html", tree))


def to_html(function: str, shown: Any) -> str | None:
    """Return an object as HTML, by a function of :mod:`bayesrank.reporting.notebook`.

    None where the function leaves the object to its plain form.
    """
    return getattr(import_module(_NOTEBOOK), function)(shown)
