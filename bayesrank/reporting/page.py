"""A report as a single HTML page, for readers without Python.

The page needs no network and no other file. A little JavaScript sorts its tables and explains its
columns; the page is also readable without it.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesrank.reporting.details import check_section, data_section, method_section
from bayesrank.reporting.evidence import leader_notes
from bayesrank.reporting.group_section import group_section
from bayesrank.reporting.section import Section
from bayesrank.reporting.sections import (
    agreement_section,
    data_figure,
    history_section,
    leaderboard_section,
    pareto_section,
    probability_sections,
    sensitivity_section,
)
from bayesrank.reporting.wording import headline, versions
from bayesrank.results.leaderboard import (
    ranked_rows,
    require_counts,
    require_result,
    require_results,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrank.responses import Responses
    from bayesrank.views import Ballots, Comparisons


def report(
    results: "xr.DataTree | Mapping[str, xr.DataTree] | Iterable[xr.DataTree]",
    path: str | os.PathLike[str],
    *,
    title: str = "Ranking",
    prior_sensitivity: "xr.Dataset | None" = None,
    columns: "pd.DataFrame | None" = None,
    data: "Responses | Comparisons | Ballots | None" = None,
    failed: Mapping[str, str] | None = None,
    scale: str | None = None,
    anchor: tuple[str, float] | None = None,
    min_votes: int | None = None,
) -> Path:
    """Write a report of one result or of several as a single HTML page.

    Parameters
    ----------
    results : xarray.DataTree, mapping of str to xarray.DataTree, or iterable of xarray.DataTree
        What :func:`bayesrank.rank` returned. With several results from the same data, the first is
        the main one, and the page shows the agreement of all. Results from different data are a
        history: the latest is the main one. Names are those of the methods by default.
    path : path-like
        Path of the page.
    title : str, default "Ranking"
        Heading of the page.
    prior_sensitivity : xarray.Dataset, optional
        What :func:`bayesrank.studies.prior_sensitivity` returned.
    columns : pandas.DataFrame, optional
        Further columns of the leaderboard, such as cost, date or licence, with the systems as its
        index. Scores are drawn against each column of numbers; lower numbers are better.
    data : Responses, Comparisons or Ballots, optional
        The ranked data: some checks need single trials, which results do not hold, and the
        description of battles needs their judges, prompts and times.
    failed : mapping of str to str, optional
        Methods that gave no result, with the reason.
    scale, anchor : optional
        Scale of the scores, as in :func:`bayesrank.rescale`.
    min_votes : int, optional
        Systems with fewer outcomes or battles are marked as preliminary.

    Returns
    -------
    pathlib.Path
        The path; the file is written atomically.

    Raises
    ------
    ValueError
        If there is no result, one has no ranking, the systems of several methods differ, or no
        system has a row in `columns`, or one has two.
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
    from bayesrank.entrance import as_data
    from bayesrank.results.rating_scale import mark_preliminary, rescale

    def show(tree: "xr.DataTree") -> "xr.DataTree":
        if scale is not None or anchor is not None:
            tree = rescale(tree, scale, anchor=anchor)
        return tree if min_votes is None else mark_preliminary(tree, min_votes)

    if columns is not None and not hasattr(columns, "index"):
        raise ValueError(f"columns must be a pandas.DataFrame; got {type(columns).__name__}")
    data = None if data is None else as_data(data)
    history = name_results(results)
    named = _same_data(history)
    main = next(iter(named.values()))
    shown = show(main)
    known = set(map(str, ranked_rows(main)["system"]))
    past = {} if len(history) == len(named) else _by_time(history, main)
    if columns is not None and not known & set(map(str, columns.index)):
        got = ", ".join(map(str, columns.index[:3]))
        raise ValueError(f"columns must have systems of the result as its index; got {got}")
    twice = [] if columns is None else columns.index.map(str)[columns.index.map(str).duplicated()]
    if len(twice):
        raise ValueError(f"columns must have one row for each system; got {twice[0]!r} twice")
    sections = [
        leaderboard_section(shown, main, columns),
        data_figure(main),
        group_section(main, data),
        *probability_sections(main),
        pareto_section(shown, columns),
        history_section({name: show(tree) for name, tree in past.items()}),
        agreement_section(named),
        sensitivity_section(prior_sensitivity),
        data_section(named, data),
        check_section(named, failed or {}, data),
        method_section(named),
    ]
    text = _render(
        title=title,
        lead=" ".join([headline(main), *leader_notes(main)]),
        main=main,
        sections=[section for section in sections if section is not None],
    )
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"path must be in an existing folder; got {str(path)!r}")
    if target.is_dir():
        raise IsADirectoryError(f"path must be that of a file; got the folder {str(path)!r}")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".bayesrank-") as folder:
        draft = Path(folder) / target.name
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    return target


def _same_data(results: "dict[str, xr.DataTree]") -> "dict[str, xr.DataTree]":
    """Return the results from the data of the main one; of several data sets the latest."""
    prints = {tree.attrs["fingerprint"] for tree in results.values()}
    if len(prints) < 2:
        return results
    # Among several of the same second, the last.
    latest = max(reversed(results.values()), key=lambda tree: tree.attrs["created_at"])
    mark = latest.attrs["fingerprint"]
    return {name: tree for name, tree in results.items() if tree.attrs["fingerprint"] == mark}


def _by_time(results: "dict[str, xr.DataTree]", main: "xr.DataTree") -> "dict[str, xr.DataTree]":
    """Return the results by the method of the main one, the oldest first."""
    same = [each for each in results.items() if each[1].attrs["method"] == main.attrs["method"]]
    return dict(sorted(same, key=lambda each: each[1].attrs["created_at"]))


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
        If a method occurs twice, its back end and then a number distinguish the results.

    Raises
    ------
    ValueError
        If there is no result, or one has no ranking.
    """
    # A tree is itself a mapping, of its groups; other objects raise below.
    several = isinstance(results, Iterable) and not hasattr(results, "children")
    trees: Any = results if several else [results]
    if isinstance(trees, Mapping):
        named = dict(trees)
    else:
        named = {}
        for tree in trees:
            require_result(tree)
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
    require_results(named)
    for tree in named.values():
        require_counts(tree)
    return named


def _render(*, title: str, lead: str, main: "xr.DataTree", sections: list[Section]) -> str:
    from jinja2 import Environment, PackageLoader  # only pages need it

    environment = Environment(
        loader=PackageLoader("bayesrank.reporting"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("report.html").render(
        title=title,
        lead=lead,
        versions=", ".join(f"{name} {each}" for name, each in versions(main).items()),
        fingerprint=main.attrs["fingerprint"],
        sections=sections,
    )
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", page)  # a number stays with its sign
