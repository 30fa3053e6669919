"""The command ``bayesrank study``.

Imports sit inside the function, as in :mod:`bayesrank.cli`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayesrank.console import complete_method, note, print_columns, reading_options

if TYPE_CHECKING:
    import pandas as pd

_TITLES = {
    "agreement": "Agreement with the gold standard and with other methods, from all trials",
    "stability": "Agreement with the gold standard from one trial",
    "pools": "The same for pools of systems",
    "greedy": "Greedy runs in the prior, from one trial",
}


@click.command()
@click.argument("paths", nargs=-1, metavar="[INPUT]...", type=click.Path())
@reading_options
@click.option(
    "--methods",
    metavar="NAMES",
    shell_complete=complete_method,
    help="Which methods, by commas.  [default: the 72 published configurations]",
)
@click.option(
    "--draws", type=int, default=80, show_default=True, metavar="N", help="Draws of one trial."
)
@click.option(
    "--pools",
    type=int,
    metavar="N",
    help="Pools of each size.  [default: 50 of 5 systems, 20 of 10 and of 15]",
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
    help="Keep what is done here; the same command goes on from it.",
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
    output: Path | None,
    draws: int,
    pools: int | None,
    workers: int,
    checkpoint: Path | None,
    random_seed: int,
    **reading: Any,
) -> None:
    """Compare methods: agreement, stability from one trial, pools of systems, greedy priors.

    INPUT is as for `bayesrank rank`; the bundled example without any. Methods with the same
    rankings share a row.
    """
    from bayesrank.datasets import load_olympiad
    from bayesrank.readers import read_responses
    from bayesrank.studies.tables import published_tables, write_tables

    data = read_responses(paths, **reading) if paths else load_olympiad()
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    tables = published_tables(
        data,
        names,
        draws=draws,
        pools=pools,
        workers=workers,
        checkpoint=checkpoint,
        random_seed=random_seed,
    )
    for place, (name, table) in enumerate(tables.items()):
        if place:
            click.echo()
        click.echo(_TITLES[name])
        _print_table(table)
    if output is not None:
        for path in write_tables(tables, output):
            note(f"Wrote {path}")


def _print_table(table: "pd.DataFrame") -> None:
    """Print a table with numbers of three decimals."""
    from bayesrank.reporting.tables import Column

    columns = []
    for name, values in table.items():
        numeric = values.dtype.kind in "fi"
        cells = [f"{value:.3f}" if isinstance(value, float) else str(value) for value in values]
        columns.append(Column(str(name), cells, align_right=numeric))
    print_columns(columns)
