"""The command ``bayesrank study``.

Imports sit inside the function, as in :mod:`bayesrank.commands.cli`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from bayesrank.commands.console import (
    READING,
    complete_method,
    leave_out_empty,
    note,
    reading_options,
    rename,
    say,
)
from bayesrank.commands.flags import InputCommand
from bayesrank.commands.printing import print_frame

if TYPE_CHECKING:
    import pandas as pd

    from bayesrank.battles import Battles
    from bayesrank.responses import Responses

_TITLES = {
    "accuracy": "Mean grade of a trial and its spread over trials; greedy: mean of greedy runs",
    "summary": "Methods with the order of the gold standard, and the best from few trials",
    "agreement": "Agreement with the gold standard and with other methods, from all trials",
    "stability": "Agreement from few trials with the gold standard (tau) and with itself (self)",
    "pools": "Agreement of pools of systems from few trials with their ranking from all trials",
    "greedy": "Greedy runs in the prior, from few trials",
}
# Columns of the table of battles.
_COLUMNS = {
    "n_battles": "battles",
    "tau_mean": "tau",
    "best_share": "same best",
    "draws_infinite": "draws infinite",
}
_NO_AGREEMENT = (
    "none: tau-b does not exist where a ranking has all systems tied, or no draw a finite estimate."
)


@click.command(cls=InputCommand)
@click.argument("paths", nargs=-1, metavar="[INPUT]...", type=click.Path())
@reading_options
@click.option(
    "--methods",
    metavar="NAMES",
    shell_complete=complete_method,
    help="Methods, separated by commas, such as 'bayes, pass_at_k(k=4)'.  "
    "[default: the 72 published configurations]",
)
@click.option(
    "--n",
    "counts",
    metavar="NUMBERS",
    help="Trials per draw, separated by commas; for battles, votes.  [default: 1; for battles "
    "fractions of all]",
)
@click.option(
    "--draws",
    type=int,
    default=80,
    show_default=True,
    metavar="N",
    help="Number of draws of trials.",
)
@click.option(
    "--pools",
    type=int,
    default=1000,
    show_default=True,
    metavar="N",
    help="Number of pools of 5, 10 and 15 systems each; 0 for none. Likelihoods are included only "
    "if --methods names them: thousands of fits take hours.",
)
@click.option(
    "--by",
    type=click.Choice(["benchmark"]),
    help="Also make every table for each benchmark (group of questions).",
)
@click.option(
    "--workers",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Processes; -1 for one per core.",
)
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Store finished work here; the same command resumes from it.",
)
@click.option(
    "--seed", "random_seed", type=int, default=0, show_default=True, metavar="S", help="Seed."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the tables as CSV files, with all digits.",
)
def study(
    paths: tuple[str, ...],
    methods: str | None,
    counts: str | None,
    output: Path | None,
    workers: int,
    **settings: Any,
) -> None:
    """Compare methods: agreement, stability, pools, greedy priors.

    INPUT is as for `bayesrank rank`; without INPUT, the bundled example, in which --task selects
    one benchmark. Methods with the same rankings share a row.
    """
    from bayesrank.battles import Battles
    from bayesrank.method import split_calls
    from bayesrank.studies.tables import published_tables, write_tables

    rename(n="counts")
    reading = {name: settings.pop(name) for name in READING}
    data = leave_out_empty(_read(paths, reading), "study")
    if isinstance(data, Battles):
        source = click.get_current_context().get_parameter_source
        others = map(source, ("by", "checkpoint", "pools", "workers"))
        if ParameterSource.COMMANDLINE in others:
            raise click.UsageError(
                "--by, --checkpoint, --pools and --workers go with outcomes of questions"
            )
        _study_battles(data, methods, counts, settings, output)
        return
    if settings["by"] is not None and data.groups is None:
        raise ValueError(
            "--by benchmark must have logs that name the benchmark of each question, such as a "
            "table with a column benchmark; got none"
        )
    tables = published_tables(
        data,
        None if methods is None else split_calls(methods),
        n=_numbers(counts or "1"),
        workers=workers,
        **settings,
    )
    for place, (name, table) in enumerate(tables.items()):
        if place:
            click.echo()
        click.echo(_TITLES[name])
        # Names of dozens of methods would push the numbers out of sight.
        order = sorted(table.columns, key=lambda column: column == "methods")
        print_frame(table.reindex(columns=order), "table")
    if any(_lacks_agreement(table) for table in tables.values()):
        say(_NO_AGREEMENT)
    if "stability" not in tables:
        note(
            "The tables of few trials are left out, because no system has more than "
            f"{counts or 1} of a question"
        )
    if output is not None:
        for path in write_tables(tables, output):
            note(f"Wrote {path}")


def _lacks_agreement(table: "pd.DataFrame") -> bool:
    return bool(table.filter(regex="tau|self").select_dtypes("number").isna().to_numpy().any())


def _study_battles(
    data: "Battles",
    methods: str | None,
    counts: str | None,
    settings: dict[str, Any],
    output: Path | None,
) -> None:
    """Print the agreement of rankings from some votes with the ranking from all."""
    from bayesrank.method import split_calls
    from bayesrank.studies import battle_stability, write_tables

    study = battle_stability(
        data,
        None if methods is None else split_calls(methods),
        n=None if counts is None else _numbers(counts),
        draws=settings["draws"],
        random_seed=settings["random_seed"],
    )
    table = study.drop_dims("draw").to_dataframe().reset_index().rename(columns=_COLUMNS)
    click.echo("Agreement of rankings from some votes with the ranking from all (tau-b)")
    print_frame(table, "table")
    if _lacks_agreement(table):
        say(_NO_AGREEMENT)
    if output is not None:
        for path in write_tables({"stability": table}, output):
            note(f"Wrote {path}")


def _read(paths: tuple[str, ...], reading: dict[str, Any]) -> "Responses | Battles":
    """Read the logs, or the bundled example, for which only a task can be chosen."""
    from bayesrank.datasets import load_olympiad
    from bayesrank.readers import read_data

    if paths:
        return read_data(paths, **reading)
    task = reading.pop("task")
    for name, chosen in reading.items():
        if chosen:
            flag = "input-format" if name == "format" else name
            raise ValueError(
                f"--{flag} must be left out for the bundled example; got {chosen!r}: name an INPUT"
            )
    known = dict.fromkeys(load_olympiad().groups or ())
    if task is not None and task not in known:
        raise ValueError(f"--task must be one of {', '.join(known)} without INPUT; got {task!r}")
    return load_olympiad(task)


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"--n must be whole numbers, separated by commas; got {text!r}") from None
