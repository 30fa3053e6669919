"""Tables on the terminal and in files: as wide as the terminal, or in a format for programs."""

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bayesrank.commands.console import is_terminal, note, say

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrank.layout import Column

_SAID = "bayesrank.said"

# Width of a line, in cells, if the output is not a terminal.
_WIDEST = 100


def leaderboard_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose rows and columns of a leaderboard."""
    for name, kind, metavar, text in (
        (
            "columns",
            None,
            "NAMES",
            "Only these columns, by their names in --format csv or in the table.",
        ),
        (
            "sort",
            None,
            "COLUMN",
            "Sort by this column of --format csv, such as lcb.  [default: rank]",
        ),
        ("top", click.IntRange(min=1), "N", "Only the first N rows."),
    ):
        command = click.option(f"--{name}", type=kind, metavar=metavar, help=text)(command)
    return command


def print_leaderboard(
    tree: "xr.DataTree",
    output_format: str,
    *,
    top: int | None = None,
    sort: str | None = None,
    columns: str | None = None,
) -> None:
    """Print the leaderboard of a result in one of `FORMATS`, or as LaTeX."""
    from bayesrank.reporting.evidence import legend, notes, run_line, said_elsewhere
    from bayesrank.reporting.plain_tables import to_markdown
    from bayesrank.reporting.tables import frame_columns
    from bayesrank.results.leaderboard import leaderboard

    frame = _sorted(leaderboard(tree), sort)
    if output_format in ("json", "csv"):
        names = _chosen(list(frame.columns), columns, list(frame.columns))
        _print_for_programs(frame.reindex(columns=names).head(top or len(frame)), output_format)
        return
    stated = tree["ranking"].attrs
    levels = {name: stated[name] for name in ("ci_prob", "lcb") if name in stated}
    # All rows choose the columns and their decimals, so that fewer rows show the same.
    shown = [each.rows(range(len(each.cells))[:top]) for each in frame_columns(frame, **levels)]
    by_name = {name: each for each in shown for name in (each.name, each.header)}
    if columns is not None:
        names = _chosen(list(by_name), columns, [each.name for each in shown])
        shown = [by_name[name] for name in names]
    if output_format == "markdown":
        click.echo("\n\n".join([to_markdown(shown), *notes(tree)]))
    elif output_format == "latex":
        from bayesrank.reporting.styled import to_latex

        click.echo(to_latex(shown), nl=False)
    else:
        say(run_line(tree))
        if columns is None:
            said = said_elsewhere(tree)
            shown = [each for each in shown if said.isdisjoint((each.header, each.name))]
        printed = print_columns(shown)
        for text in notes(tree):
            say(text)
        _note_once(legend(printed))


def print_frame(frame: "pd.DataFrame", output_format: str) -> None:
    """Print names and numbers: in full precision for programs, rounded for people."""
    from bayesrank.reporting.plain_tables import plain_columns, to_markdown

    if output_format in ("json", "csv"):
        _print_for_programs(frame, output_format)
    elif output_format == "markdown":
        click.echo(to_markdown(plain_columns(frame)))
    else:
        print_columns(plain_columns(frame))


def print_columns(columns: "Sequence[Column]") -> "list[Column]":
    """Print a table in the width of the terminal, and return the columns that fit."""
    from bayesrank.layout import fit_width, table_lines, to_text

    fitting = fit_width(columns, _table_width(), shorten_names=is_terminal(sys.stdout))
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False)
        for line in table_lines(fitting):
            console.print(Text.assemble(*line), no_wrap=True, overflow="ignore", crop=False)
    else:
        click.echo(to_text(fitting))
    kept = {each.header.replace("\n", " ") for each in fitting}
    left_out = [each.header for each in columns if each.header not in kept]
    if left_out:
        options = click.get_current_context().command.params
        kinds = [each.type for each in options if each.name == "output_format"]
        in_csv = any(isinstance(kind, click.Choice) and "csv" in kind.choices for kind in kinds)
        remedy = " --format csv has all of them." * in_csv
        _note_once(f"Columns left out: {', '.join(left_out)}.{remedy}")
    return fitting


def _note_once(text: str) -> None:
    """Print the notes on all tables of a command below the first table."""
    said = click.get_current_context().meta.setdefault(_SAID, set())
    if text and text not in said:
        said.add(text)
        note(text)


def _table_width() -> int:
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _WIDEST


def _sorted(frame: "pd.DataFrame", sort: str | None) -> "pd.DataFrame":
    """Sort a leaderboard, best first."""
    if sort is None:
        return frame
    if sort not in frame:
        raise ValueError(f"--sort must be one of {', '.join(frame)}; got {sort!r}")
    upwards = "rank" in sort or sort in ("system", "group")
    return frame.sort_values(sort, ascending=upwards, kind="stable")


def _chosen(known: list[str], columns: str | None, listed: list[str]) -> list[str]:
    """Return the columns that a list names."""
    if columns is None:
        return listed
    names = [name.strip() for name in columns.split(",")]
    for name in names:
        if name not in known:
            raise ValueError(f"--columns must be among {', '.join(listed)}; got {name!r}")
    return names


def _print_for_programs(frame: "pd.DataFrame", output_format: str) -> None:
    from bayesrank.reporting.plain_tables import to_csv, to_json

    if output_format == "json":
        click.echo(to_json(frame))
    else:
        click.echo(to_csv(frame), nl=False)
