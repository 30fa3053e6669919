"""The commands ``bayesrank evaluate`` and ``bayesrank plan``.

Imports sit inside the functions that need them, as in :mod:`bayesrank.cli`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayesrank.console import (
    SELECTION,
    ci_prob_option,
    format_option,
    inputs_argument,
    note,
    print_columns,
    result_option,
    seed_option,
    selection_options,
)

if TYPE_CHECKING:
    import pandas as pd

    from bayesrank.responses import Responses


@click.command()
@inputs_argument
@selection_options
@click.option(
    "--metrics",
    multiple=True,
    default=("bayes", "avg"),
    show_default=True,
    metavar="NAMES",
    help="What to evaluate, such as 'bayes, pass_at_k(k=4)'; may be given more than once.",
)
@click.option(
    "--pairs",
    is_flag=True,
    help="Tabulate the differences of every two systems under the first metric instead.",
)
@click.option(
    "--prior-weight",
    type=float,
    default=0.0,
    show_default=True,
    metavar="W",
    help="Pseudo-trials that each earlier outcome counts as.",
)
@click.option(
    "--interval",
    type=click.Choice(["exact", "normal"]),
    default="exact",
    show_default=True,
    help="Quantiles of the posterior, or the normal approximation cut at the range.",
)
@ci_prob_option
@click.option(
    "--draws",
    type=int,
    default=500,
    show_default=True,
    metavar="N",
    help="Draws per chain, of 4 chains, in --output.",
)
@seed_option
@format_option()
@result_option("draws of all metrics")
def evaluate(
    inputs: tuple[str, ...],
    metrics: tuple[str, ...],
    pairs: bool,
    interval: Any,
    output_format: str,
    output: Path | None,
    draws: int,
    random_seed: int | None,
    **settings: Any,
) -> None:
    """Evaluate each system in evaluation logs by metrics with intervals.

    INPUT is as for `bayesrank rank`. The estimate is the unbiased one from the observed trials (the
    posterior mean for bayes); mean, sd, lower and upper are those of the posterior.
    """
    from bayesrank.evaluation import compare, evaluation_tree
    from bayesrank.evaluation import evaluate as evaluate_systems
    from bayesrank.method import split_calls
    from bayesrank.results.storage import save

    data = _read(inputs, settings)
    names = [name for text in metrics for name in split_calls(text)]
    if pairs:
        table = compare(data, names[0], **settings)
    else:
        table = evaluate_systems(data, names, interval=interval, **settings)
    _print_frame(table, output_format)
    if output is not None:
        tree = evaluation_tree(data, names, draws=draws, random_seed=random_seed, **settings)
        note(f"Wrote {save(tree, output)}")


@click.command()
@inputs_argument
@selection_options
@click.option(
    "--budget",
    type=int,
    metavar="N",
    help="Suggest N further trials; without it, print how far every two systems are apart and how "
    "many trials would separate them.",
)
@click.option(
    "--goal",
    type=click.Choice(["best", "top_k", "full"]),
    default="best",
    show_default=True,
    help="What is to be found: the best system, the best k, or the whole order.",
)
@click.option("--top", "k", type=int, metavar="K", help="How many for the goal top_k.")
@click.option(
    "--error",
    type=float,
    default=0.05,
    show_default=True,
    metavar="P",
    help="Probability of a wrong answer at which it is time to stop.",
)
@click.option(
    "--z",
    type=float,
    default=1.645,
    show_default=True,
    metavar="Z",
    help="Separation of a pair that counts as enough.",
)
@format_option()
def plan(
    inputs: tuple[str, ...],
    budget: int | None,
    goal: Any,
    k: int | None,
    error: float,
    z: float,
    output_format: str,
    **settings: Any,
) -> None:
    """Say whether the trials so far are enough, and which to run next.

    INPUT is as for `bayesrank rank`. Whether to stop is said on stderr, the table goes to stdout.
    """
    from bayesrank.planning import plan_pairs, should_stop, suggest

    data = _read(inputs, settings)
    decision = should_stop(data, goal=goal, k=k, error=error)
    # A result, so --quiet does not leave it out; on stderr, so that the table can be piped.
    probability = f"{decision.error:.3g}" if decision.error >= 0.001 else "less than 0.001"
    verdict = "enough is known" if decision.stop else "more trials are needed"
    answer = ", ".join(decision.answer)
    click.echo(f"{answer}: wrong with probability {probability}, {verdict}", err=True)
    if budget is None:
        _print_frame(plan_pairs(data, z=z), output_format)
    else:
        _print_frame(suggest(data, budget, goal=goal, k=k), output_format)


def _read(inputs: tuple[str, ...], settings: dict[str, Any]) -> "Responses":
    """Read responses, taking what says how to read them out of the settings."""
    from bayesrank.readers import read_responses

    return read_responses(inputs, **{name: settings.pop(name) for name in SELECTION})


def _print_frame(frame: "pd.DataFrame", output_format: str) -> None:
    """Print names and numbers: in full precision for programs, four digits of it for people."""
    from bayesrank.reporting.tables import Column, to_json, to_markdown

    if output_format == "json":
        click.echo(to_json(frame))
        return
    if output_format == "csv":
        click.echo(frame.to_csv(index=False), nl=False)
        return
    columns = []
    for name in frame:
        numeric = frame[name].dtype.kind in "iuf"
        cells = [f"{value:.4g}" if numeric else str(value) for value in frame[name]]
        columns.append(Column(str(name).replace("_", " "), cells, align_right=numeric))
    if output_format == "markdown":
        click.echo(to_markdown(columns))
    else:
        print_columns(columns)
