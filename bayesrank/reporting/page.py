"""A report: one HTML page that holds everything, for people who do not run Python.

The page needs no network and no other file. It sorts its tables and explains its columns with a
little JavaScript, without which it reads as well.
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesrank.reporting.evidence import leader_notes
from bayesrank.reporting.sections import (
    Section,
    agreement_section,
    check_section,
    data_section,
    leaderboard_sections,
    method_section,
    sensitivity_section,
)
from bayesrank.reporting.wording import headline

if TYPE_CHECKING:
    import xarray as xr


def report(
    results: "xr.DataTree | Mapping[str, xr.DataTree] | Iterable[xr.DataTree]",
    path: str | os.PathLike[str],
    *,
    title: str = "Ranking",
    prior_sensitivity: "xr.Dataset | None" = None,
) -> Path:
    """Write a report of one result or of several as a single HTML page.

    Parameters
    ----------
    results : xarray.DataTree, mapping of str to xarray.DataTree, or iterable of xarray.DataTree
        What :func:`bayesrank.rank` returned. Of several results of the same systems, the first is
        the main one; the agreement of all is shown. Names are those of the methods by default.
    path : path-like
        Where to.
    title : str, default "Ranking"
        Heading of the page.
    prior_sensitivity : xarray.Dataset, optional
        What :func:`bayesrank.studies.prior_sensitivity` returned.

    Returns
    -------
    pathlib.Path
        Where it is; written whole or not at all.

    Raises
    ------
    ValueError
        If there is no result, one has no ranking, or the systems of several differ.
    FileNotFoundError
        If the folder of `path` does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from bayesrank import rank
    >>> result = rank([[[1, 1, 1, 1]], [[0, 0, 0, 0]]], "bayes", random_seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = report(result, Path(folder) / "report.html").read_text(encoding="utf-8")
    >>> "system 1 leads and is resolved from every other system" in page
    True
    """
    named = name_results(results)
    sections = [
        *leaderboard_sections(named),
        agreement_section(named),
        sensitivity_section(prior_sensitivity),
        data_section(named),
        check_section(named),
        method_section(named),
    ]
    main = next(iter(named.values()))
    text = _render(
        title=title,
        lead=" ".join([headline(main), *leader_notes(main)]),
        created=main.attrs["created_at"],
        sections=[section for section in sections if section is not None],
    )
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path must be in an existing folder; got {str(path)!r}")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".bayesrank-") as folder:
        draft = Path(folder) / target.name
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    return target


def name_results(
    results: "xr.DataTree | Mapping[str, xr.DataTree] | Iterable[xr.DataTree]",
) -> "dict[str, xr.DataTree]":
    """Return results by name, checked.

    Parameters
    ----------
    results : xarray.DataTree, mapping of str to xarray.DataTree, or iterable of xarray.DataTree
        As in :func:`report`.

    Returns
    -------
    dict of str to xarray.DataTree
        Where a method occurs twice, its back end and then a number tell the results apart.

    Raises
    ------
    ValueError
        If there is no result, or one has no ranking.
    """
    # A tree is itself a mapping, of its groups.
    if hasattr(results, "children"):
        trees: Any = [results]
    else:
        trees = results
    if isinstance(trees, Mapping):
        named = dict(trees)
    else:
        named = {}
        for tree in trees:
            run = tree.attrs
            name = run["method"] if run["preset"] == "none" else run["preset"]
            if name in named:
                name = f"{name} ({run['backend']})"
            number = 2
            unnumbered = name
            while name in named:
                name = f"{unnumbered} {number}"
                number += 1
            named[name] = tree
    if not named:
        raise ValueError("results must hold one result or more; got none")
    for name, tree in named.items():
        if "ranking" not in tree.children:
            raise ValueError(f"results must have a group 'ranking'; got none in {name!r}")
    return named


def _render(*, title: str, lead: str, created: str, sections: list[Section]) -> str:
    from jinja2 import Environment, PackageLoader  # only pages need it

    environment = Environment(
        loader=PackageLoader("bayesrank.reporting"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        title=title, lead=lead, created=created, sections=sections
    )
