"""The command line: ``bayesrank rank``, ``methods``, ``show``, ``demo``, ``warmup`` and more.

Imports are inside the functions that need them: help and the table of methods must start at once,
and ranking by a NumPy method must not import PyMC or Matplotlib.
"""

import warnings
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayesrank.catalog import (
    DEFAULT_METHOD,
    METHODS,
    default_method,
    find_method,
)
from bayesrank.commands.arena import arena_options, as_arenas_print
from bayesrank.commands.console import (
    READING,
    Commands,
    ci_prob_option,
    complete_method,
    format_option,
    inputs_argument,
    note,
    progress,
    reading_options,
    result_option,
    seed_option,
)
from bayesrank.commands.convert import convert
from bayesrank.commands.evaluation import evaluate, plan
from bayesrank.commands.flags import MethodCommand, without_backend_options
from bayesrank.commands.groups import group_options, print_groups, rank_or_weigh, weighed_part
from bayesrank.commands.methods import methods
from bayesrank.commands.printing import leaderboard_options, print_leaderboard
from bayesrank.commands.report import report
from bayesrank.commands.reporting import check, cite, completion
from bayesrank.commands.rubrics import rubric
from bayesrank.commands.studies import study

if TYPE_CHECKING:
    from bayesrank.by_group import GroupWeights

_EXAMPLE_SEED = 1


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("bayesrank"), prog_name="bayesrank")
def main() -> None:
    """Rank systems from repeated, noisy evaluation runs, with a posterior for every ranking.

    Exit codes: 0 done; 1 stopped before the end; 2 wrong usage, or data that cannot be read or
    ranked, with a message of one line on stderr; 3 `check --method` found that a method cannot run.

    \b
    To start with:
      bayesrank demo         rank a bundled example
      bayesrank rank LOGS    rank the systems in your logs, files or folders
      bayesrank check LOGS   check the data, and whether to trust the ranking
    """  # noqa: D301


@main.command(cls=MethodCommand)
@inputs_argument
@click.option(
    "--method",
    metavar="NAME",
    shell_complete=complete_method,
    help="Ranking method; `bayesrank methods` lists the names. The options of a method are flags: "
    f"`bayesrank rank --method NAME --help`.  [default: {DEFAULT_METHOD}; for battles davidson "
    "where there are ties, else bradley_terry_map, or the model with the given options]",
)
@click.option(
    "--backend",
    metavar="NAME",
    help="How to compute the posterior.  [default: the first of the method]",
)
@click.option(
    "--prior",
    metavar="SPEC",
    help="Prior on the scores of a model: a standard deviation, normal(0,1), laplace(0,1), "
    "cauchy(0,1), flat or empirical.",
)
@click.option(
    "--target",
    type=click.Choice(["benchmark", "population"]),
    help="What varies: only the trials, or also the questions.  [default: benchmark where most "
    "cells have two trials or more]",
)
@click.option(
    "--unit",
    help="Independent units: trials, or runs whose answers may fail together; for battles: "
    "battles, prompts or judges. Join two units that both vary by a comma, such as "
    "run,question or prompt,judge.  [default: trial; for battles their prompts and judges]",
)
@reading_options
@arena_options
@group_options
@click.option(
    "--lcb",
    type=float,
    default=0.05,
    show_default=True,
    metavar="Q",
    help="Probability level of the lower credible bound of the score.",
)
@ci_prob_option
@click.option(
    "--draws",
    type=int,
    metavar="N",
    help="Draws per chain, of 4 chains; 0 for only the point estimate.  "
    "[default: 1000 for nuts, else 500]",
)
@seed_option
@format_option("latex")
@leaderboard_options
@result_option("the whole result")
def rank(
    paths: tuple[str, ...],
    output_format: str,
    columns: str | None,
    sort: str | None,
    top: int | None,
    output: Path | None,
    options: dict[str, Any],
    anchor: str | None,
    min_votes: int | None,
    by_group: bool,
    group_weights: "GroupWeights | None",
    **settings: Any,
) -> None:
    """Rank the systems in evaluation logs and print the leaderboard.

    INPUT is one or more files or folders, all in one format: NumPy archives (.npz), tables (.csv,
    .parquet, .jsonl and more), battles, or results of Inspect, lm-evaluation-harness, SWE-bench,
    SWE-bench Pro, HELM, EvalPlus, BigCodeBench, LiveCodeBench, Terminal-Bench, Harbor, tau-bench,
    tau2-bench, lighteval, OpenCompass, promptfoo, DeepEval, OpenAI evals, MMLU-Pro, EuroEval,
    LiveBench, MT-bench, MCPMark, Every Eval Ever and py-irt. Notes on stderr report
    what was read and what is missing.
    """
    from bayesrank.by_group import group_names
    from bayesrank.checking import check as check_result
    from bayesrank.readers import read_data
    from bayesrank.results.storage import save

    reading = {name: settings.pop(name) for name in READING}
    # The scale of the outcomes, or that of the scores.
    scale = reading.pop("scale") if reading["scale"] == "elo" else None
    data = read_data(paths, **reading)
    if settings["method"] is None:
        wanted = without_backend_options(options)
        settings["method"] = default_method(data, by_group=by_group, options=wanted)
        if wanted:
            note(f"Method: {settings['method']} (chosen from the data and the given options).")
        outside = settings["method"] == "davidson_outside"
        if getattr(data, "both_bad", None) is not None and not outside:
            note("Votes for neither count as ties; --method davidson_outside models them.")
    if by_group:
        group_names(data)  # before the long computation
    ranked = weighed_part(data, group_weights)
    with progress(f"Ranking by {settings['method']}"):
        tree = rank_or_weigh(ranked, group_weights, settings | options)
    # Printed first: a full disk must not take the leaderboard of a long run with it.
    show = partial(print_leaderboard, output_format=output_format, top=top, sort=sort)
    shown = as_arenas_print(tree, scale, anchor, min_votes)
    show(shown, columns=columns)
    if by_group:
        print_groups(
            data,
            tree,
            lambda board: show(as_arenas_print(board, scale, anchor, min_votes), columns=columns),
            settings | options,
        )
    if settings["draws"] != 0:
        with progress("Checking the ranking"):
            report = check_result(tree, ranked)
        note(report.summary)
    if output is not None:
        before = _stored_target(output)
        if before not in (None, tree.attrs["target"]):
            note(
                f"The target was {before} in {output}; its intervals had another meaning. "
                f"--target {before} compares the two."
            )
        note(f"Wrote {save(tree, output)}")


def _stored_target(path: Path) -> str | None:
    """Return the target of a result that is about to be replaced; None if there is none."""
    from bayesrank.results.storage import load

    try:
        return load(path).attrs.get("target") if path.exists() else None
    except ValueError:  # another kind of file
        return None


@main.command()
@click.argument("result", type=click.Path(path_type=Path))
@click.option("--scale", type=click.Choice(["elo"]), help="Print scores on the scale of Elo.")
@arena_options
@format_option("latex")
@leaderboard_options
def show(
    result: Path,
    scale: str | None,
    anchor: str | None,
    min_votes: int | None,
    output_format: str,
    columns: str | None,
    sort: str | None,
    top: int | None,
) -> None:
    """Print the leaderboard of a saved RESULT."""
    from bayesrank.results.storage import load

    tree = as_arenas_print(load(result), scale, anchor, min_votes)
    print_leaderboard(tree, output_format, top=top, sort=sort, columns=columns)


@main.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("bayesrank-demo"),
    show_default=True,
    metavar="DIR",
    help="Where to write the result and the figures.",
)
def demo(output: Path) -> None:
    """Rank the bundled example and write its result and two figures."""
    from bayesrank.datasets import load_olympiad
    from bayesrank.ranking import rank as rank_systems
    from bayesrank.reporting.figures import plot_leaderboard, plot_superiority, save_figure
    from bayesrank.results.storage import save

    output.mkdir(parents=True, exist_ok=True)
    data = load_olympiad()
    n_systems, n_questions, n_trials = data.shape
    click.echo(
        f"A simulated evaluation: {n_systems} language models, {n_questions} questions of four "
        f"mathematics olympiads, {n_trials} runs each.\n"
    )
    tree = rank_systems(data, random_seed=_EXAMPLE_SEED)
    print_leaderboard(tree, "table")
    written = {
        "InferenceData": save(tree, output / "olympiad.nc"),
        "forest plot": save_figure(plot_leaderboard(tree), output / "leaderboard.png"),
        "superiority": save_figure(plot_superiority(tree), output / "superiority.png"),
    }
    click.echo("\nWritten:")
    for what, path in written.items():
        click.echo(f"  {what:<14} {path}")


@main.command()
@click.argument("names", nargs=-1, metavar="[METHOD]...")
def warmup(names: tuple[str, ...]) -> None:
    """Compile the methods, so that later first calls are fast.

    Runs every back end of the named methods, or of all methods, on a small example; the compiled
    code stays in the caches of PyTensor and Numba.
    """
    from bayesrank.datasets import load_olympiad
    from bayesrank.errors import ConvergenceWarning
    from bayesrank.ranking import rank as rank_systems
    from bayesrank.responses import Responses

    named = [find_method(name)[0] for name in names] or METHODS.values()
    small = Responses(load_olympiad().outcomes[:5, :30, :4])
    warnings.simplefilter("ignore", ConvergenceWarning)
    settings = {"draws": 50, "random_seed": _EXAMPLE_SEED}
    for row in named:
        for backend in row.backends:
            with progress(f"Compiling {row.name} for {backend}"):
                rank_systems(small, row.name, backend=backend, **settings, **row.example)
            click.echo(f"{row.name} ({backend}) is ready")


main.add_command(methods)
main.add_command(evaluate)
main.add_command(plan)
main.add_command(rubric)
main.add_command(report)
main.add_command(study)
main.add_command(check)
main.add_command(convert)
main.add_command(cite)
main.add_command(completion)
