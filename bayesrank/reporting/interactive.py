"""An interactive leaderboard for notebooks, with sorting, a filter and comparisons of systems."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bayesrank.reporting.evidence import run_line, said_elsewhere
from bayesrank.reporting.tables import (
    decimal_text,
    interval_cells,
    leaderboard_columns,
    supported_decimals,
)
from bayesrank.results.decisions import pairwise_decisions
from bayesrank.results.leaderboard import leaderboard
from bayesrank.results.numbers import probability_text

if TYPE_CHECKING:
    import xarray as xr

_TEMPLATES = files("bayesrank.reporting") / "templates"


def explore(result: "xr.DataTree") -> Any:
    """Show a leaderboard that sorts by its headers, filters by name and compares two systems.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned with draws.

    Returns
    -------
    anywidget.AnyWidget
        A widget for Jupyter, VS Code, Colab and marimo. Its trait ``selected`` has the names of the
        two systems that are compared, and can be set. In a saved notebook without a
        kernel, the leaderboard works in the same way without the trait; without scripts it is a
        plain table.

    Raises
    ------
    ModuleNotFoundError
        If anywidget is not installed: ``pip install 'bayesrank[jupyter]'``.
    ValueError
        If `result` has no draws.
    """
    try:
        import anywidget  # pyright: ignore[reportMissingImports]
        import traitlets
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "explore() needs anywidget, which is not installed: pip install 'bayesrank[jupyter]'"
        ) from error

    static = leaderboard(result)

    class Explorer(anywidget.AnyWidget):
        _esm = _template("explore.js")
        _css = _template("explore.css")
        table = traitlets.Unicode().tag(sync=True)
        selected = traitlets.List(traitlets.Unicode()).tag(sync=True)

        def _repr_mimebundle_(self, **kwargs: Any) -> Any:
            """Add the versions for pages without a kernel and for print."""
            bundle = super()._repr_mimebundle_(**kwargs)
            if bundle is not None:
                bundle[0]["text/html"] = explorer_html(result)
                bundle[0]["text/plain"] = str(static)
            return bundle

    table = explorer_table(result)
    return Explorer(table=json.dumps(table, ensure_ascii=False), selected=table["systems"][:2])


def explorer_html(result: "xr.DataTree") -> str:
    """Return the interactive leaderboard for a page without a kernel.

    Parameters
    ----------
    result : xarray.DataTree
        As in :func:`explore`.

    Returns
    -------
    str
        HTML without other files: the leaderboard, with a script for sorting, the filter and
        comparisons.

    Examples
    --------
    >>> from bayesrank import rank
    >>> html = explorer_html(rank([[[1, 1, 1, 1]], [[0, 0, 0, 0]]], random_seed=1))
    >>> "<caption>Leaderboard" in html, "model.get" in html
    (True, True)
    """
    table = explorer_table(result)
    values = {"table": json.dumps(table, ensure_ascii=False), "selected": table["systems"][:2]}
    # A page may have several leaderboards, and a name must not end the script.
    name = f"bayesrank-{uuid4().hex}"
    written = json.dumps(values, ensure_ascii=False).replace("<", "\\u003c")
    return (
        f"<style>{_template('explore.css')}</style>\n"
        f'<div id="{name}">{leaderboard(result)._repr_html_()}</div>\n'
        f'<script type="module">\n{_template("explore.js")}\n'
        f'showAlone(document.getElementById("{name}"), {written});\n</script>'
    )


def _template(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def explorer_table(result: "xr.DataTree") -> dict[str, Any]:
    """Return the content of the interactive leaderboard, for JSON.

    Parameters
    ----------
    result : xarray.DataTree
        As in :func:`explore`.

    Returns
    -------
    dict
        ``columns`` with header, meaning, cells and sort keys; ``systems`` in the order of
        the rows; and ``pairs``: for the positions of two systems a sentence on their difference.

    Examples
    --------
    >>> from bayesrank import rank
    >>> result = rank([[[1, 1, 1, 1]], [[0, 0, 0, 0]]], random_seed=1)
    >>> explorer_table(result)["systems"]
    ['system 1', 'system 2']
    """
    said = said_elsewhere(result)  # in the caption
    columns = [each for each in leaderboard_columns(result) if each.header not in said]
    systems = next(each.cells for each in columns if each.name == "system")
    place = {name: number for number, name in enumerate(systems)}
    decisions = pairwise_decisions(result).to_dict("records")  # raises without draws
    prob = 100 * result["ranking"].attrs["ci_prob"]
    pairs = {}
    for row in decisions:
        first, second = place[str(row["system"])], place[str(row["opponent"])]
        pairs[f"{min(first, second)},{max(first, second)}"] = _sentence(row, prob)
    return {
        "caption": run_line(result),
        "systems": systems,
        "columns": [
            {
                "header": each.header,
                "meaning": each.meaning,
                "cells": each.cells,
                "keys": [_plain(key) for key in (each.keys or each.cells)],
                "heading": each.name == "system",
                "numeric": each.align_right,
                "best": each.best,
            }
            for each in columns
        ],
        "pairs": pairs,
    }


def _sentence(row: Mapping[Any, Any], prob: float) -> str:
    """Return a sentence on the difference of two systems."""
    # Isolates, so that names written from right to left do not reorder the text after them.
    first, second = (f"\u2068{row[name]}\u2069" for name in ("system", "opponent"))
    low, high = row["difference_lower"], row["difference_upper"]
    decimals = supported_decimals((high - low) / 2.0)
    (interval,) = interval_cells([low], [high], decimals)
    difference = decimal_text(row["difference"], decimals)
    return (
        f"{first} minus {second}: {difference}, {prob:g}% interval {interval}; "
        f"Pr({first} is better) {probability_text(row['superiority'])}; "
        f"{'resolved' if row['resolved'] else 'not resolved'}"
    )


def _plain(key: Any) -> Any:
    return key.item() if hasattr(key, "item") else key
