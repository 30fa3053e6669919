"""The command ``bayesrank rubric``.

Imports sit inside the functions, as in :mod:`bayesrank.commands.cli`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayesrank.commands.console import (
    ci_prob_option,
    complete_method,
    format_option,
    note,
    rename,
    seed_option,
)
from bayesrank.commands.printing import print_frame, print_leaderboard

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bayesrank.rubrics.schemes import Scheme

_ALL = "all"


@click.command()
@click.argument("attempts", nargs=-1, metavar="[ATTEMPTS]...", type=click.Path())
@click.option(
    "--schemes",
    default=_ALL,
    show_default=True,
    metavar="NAMES",
    help="Schemes, separated by commas. `all` means the schemes with weights whose columns are "
    "present.",
)
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TOML file with your own schemes, for use in --schemes.",
)
@click.option(
    "--weights",
    multiple=True,
    metavar="NAME=W,W,...",
    help="Worths of the categories of the scheme NAME, starting with category 0; repeatable. For "
    "a single scheme, omit NAME=.",
)
@click.option(
    "--by",
    type=click.Choice(["global", "system", "group"]),
    help="Take percentiles of signals over all attempts, per system or per group of questions.  "
    "[default: the choice of each scheme]",
)
@click.option(
    "--method",
    default="bayes",
    show_default=True,
    metavar="NAME",
    shell_complete=complete_method,
    help="Ranking method; it must take categories.",
)
@ci_prob_option
@click.option(
    "--draws",
    type=int,
    metavar="N",
    help="Draws per chain, of 4 chains; 0 for only the point estimate.  [default: 500]",
)
@seed_option
@click.option("--list", "listed", is_flag=True, help="Print the categories of the schemes instead.")
@format_option()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write leaderboards.csv and, for several schemes, ranks.csv and rank_flow.png.",
)
def rubric(
    attempts: tuple[str, ...],
    schemes: str,
    file: Path | None,
    weights: tuple[str, ...],
    by: Any,
    listed: bool,
    output_format: str,
    output: Path | None,
    **settings: Any,
) -> None:
    """Rank under several rubrics, and show the changes of ranks.

    ATTEMPTS is one or more tables (.csv, .parquet, .jsonl) with one row per attempt: columns system
    and question, a column per signal (is_correct, has_box, token_ratio, ...) and, optionally,
    trial, group (the benchmark) and greedy (1 for a greedy run). Without ATTEMPTS the bundled
    example is used. A scheme turns the signals of an attempt into a category with a weight.

    For several schemes, the table and the figure show the rank of each system under each scheme.
    JSON and CSV contain the whole leaderboard of every scheme.
    """
    from bayesrank.datasets import load_attempts
    from bayesrank.rubrics import SCHEMES, rank_rubrics, read_attempts, read_schemes

    rename(path="file")
    own = {} if file is None else read_schemes(file)
    names = list({**SCHEMES, **own}) if schemes == _ALL else _split(schemes)
    if listed:
        print_frame(_describe(names, own), output_format)
        return
    rename(paths="attempts")
    table = read_attempts(attempts) if attempts else load_attempts()
    worth = _parse_weights(weights, names)
    chosen = _choose(table, names, own, worth, everything=schemes == _ALL)
    results = rank_rubrics(table, chosen, weights=worth, by=by, **settings)
    _print_results(results, output_format)
    if output is not None:
        for path in _write(results, output):
            note(f"Wrote {path}")


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _parse_weights(given: Sequence[str], names: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Parse ``NAME=W,W,...``, or ``W,W,...`` for one scheme."""
    parsed: dict[str, tuple[float, ...]] = {}
    for text in given:
        name, equals, numbers = text.rpartition("=")
        if not equals and len(names) != 1:
            raise ValueError(f"--weights must be NAME=W,W,... for several schemes; got {text!r}")
        name = name.strip() if equals else names[0]
        if name not in names or name in parsed:
            raise ValueError(f"--weights must be given once for a chosen scheme; got {text!r}")
        try:
            parsed[name] = tuple(map(float, numbers.split(",")))
        except ValueError as error:
            raise ValueError(f"--weights must be numbers between commas; got {text!r}") from error
    return parsed


def _choose(
    table: "pd.DataFrame",
    names: Sequence[str],
    own: Mapping[str, "Scheme"],
    weights: Mapping[str, Sequence[float]],
    *,
    everything: bool,
) -> "list[Scheme]":
    """Return the named schemes; for all, those that can be used, with a note on the others."""
    from bayesrank.rubrics import find_schemes
    from bayesrank.rubrics.scoring import why_not

    chosen: list[Scheme] = []
    left_out: dict[str, list[str]] = {}
    for scheme in find_schemes(names, own=own):
        weighted = scheme.name in weights
        if everything and not weighted and (reason := why_not(table, scheme)):
            left_out.setdefault(reason, []).append(scheme.name)
        elif scheme.weights is None and not weighted:
            raise ValueError(
                f"--weights must be given for {scheme.name}, whose source states none; got none: "
                f"add --weights {scheme.name}=W,W,... for {', '.join(scheme.categories)}"
            )
        else:
            chosen.append(scheme)
    for reason, schemes in left_out.items():
        note(f"Left out, {reason}: {', '.join(schemes)}")
    if not chosen:
        raise ValueError("ATTEMPTS must have the columns of a scheme with weights; got others")
    return chosen


def _print_results(results: "Mapping[str, xr.DataTree]", output_format: str) -> None:
    """Print whole leaderboards for programs; for people, the changes of ranks between schemes."""
    from bayesrank.results.agreement import kendall_tau_b

    if output_format in ("json", "csv"):
        print_frame(_leaderboards(results), output_format)
        return
    if len(results) == 1:
        (tree,) = results.values()
        print_leaderboard(tree, output_format)
        return
    import pandas as pd

    ranks = _ranks(results)
    table = ranks.drop(columns="system").to_numpy()
    numbers = range(1, len(results) + 1)
    moves = abs(table - table[:, :1])
    print_frame(
        pd.DataFrame(
            {
                "no": numbers,
                "scheme": list(results),
                "tau-b with no 1": kendall_tau_b(table.T, table[:, 0]),
                "systems moved": (moves > 0).sum(axis=0),
                "largest move": moves.max(axis=0),
            }
        ),
        output_format,
    )
    click.echo()
    # Columns have the numbers of the schemes, because their names would be too wide.
    numbered = dict(zip(results, map(str, numbers), strict=True))
    print_frame(ranks.rename(columns=numbered), output_format)


def _leaderboards(results: "Mapping[str, xr.DataTree]") -> "pd.DataFrame":
    """Concatenate the leaderboards of all schemes."""
    import pandas as pd

    from bayesrank.results.leaderboard import leaderboard

    tables = {name: leaderboard(tree) for name, tree in results.items()}
    stacked = pd.concat(tables, names=["scheme", "row"])
    return stacked.reset_index("scheme").reset_index(drop=True)


def _ranks(results: "Mapping[str, xr.DataTree]") -> "pd.DataFrame":
    """Return the rank of each system under each scheme, best first under the first one."""
    stacked = _leaderboards(results)
    ranks = stacked.pivot(index="system", columns="scheme", values="rank")
    order = stacked["system"].unique()  # as in the leaderboard of the first scheme
    return ranks.loc[order, list(results)].rename_axis(columns=None).reset_index()


def _write(results: "Mapping[str, xr.DataTree]", folder: Path) -> list[Path]:
    from bayesrank.reporting.figures import plot_rank_flow, save_figure
    from bayesrank.studies.tables import write_tables

    tables = {"leaderboards": _leaderboards(results)}
    if len(results) == 1:
        return write_tables(tables, folder)
    written = write_tables({**tables, "ranks": _ranks(results)}, folder)
    return [*written, save_figure(plot_rank_flow(results), folder / "rank_flow.png")]


def _describe(names: Sequence[str], own: Mapping[str, "Scheme"]) -> "pd.DataFrame":
    """Tabulate the categories of schemes, with their weights."""
    import pandas as pd

    from bayesrank.rubrics import find_schemes

    rows = []
    for scheme in find_schemes(names, own=own):
        for number, category in enumerate(scheme.categories):
            weight = "" if scheme.weights is None else f"{scheme.weights[number]:g}"
            rows.append((scheme.name, number, category, weight, scheme.source))
    return pd.DataFrame(rows, columns=["scheme", "no", "category", "weight", "source"])
