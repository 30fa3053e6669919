"""The commands ``bayesrank evaluate`` and ``bayesrank plan``.

Imports sit inside the functions that need them, as in :mod:`bayesrank.commands.cli`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bayesrank.catalog import DEFAULT_METHOD
from bayesrank.commands.console import (
    READING,
    ci_prob_option,
    format_option,
    inputs_argument,
    leave_out_empty,
    note,
    progress,
    reading_options,
    rename,
    result_option,
    say,
    seed_option,
)
from bayesrank.commands.flags import InputCommand
from bayesrank.commands.printing import print_frame
from bayesrank.layout import shorten

if TYPE_CHECKING:
    import pandas as pd

    from bayesrank.planning import StopDecision
    from bayesrank.responses import Responses
    from bayesrank.views import Comparisons


@click.command(cls=InputCommand)
@inputs_argument
@reading_options
@click.option(
    "--metrics",
    multiple=True,
    metavar="NAMES",
    help="Metrics, such as 'avg, pass_at_k(k=4)'; repeatable.  "
    f"[default: {DEFAULT_METHOD}; for battles win rates]",
)
@click.option(
    "--pairs",
    is_flag=True,
    help="Tabulate the differences of all pairs of systems under the first metric instead; for "
    "battles, their expected win rates under a model.",
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
    paths: tuple[str, ...],
    metrics: tuple[str, ...],
    pairs: bool,
    interval: Any,
    output_format: str,
    output: Path | None,
    draws: int,
    random_seed: int | None,
    **settings: Any,
) -> None:
    """Evaluate each system by metrics with intervals.

    INPUT is as for `bayesrank rank`, and so is the score of the accuracy. Scores are unbiased
    estimates from the observed trials (the posterior mean for bayes); observed is the mean grade,
    with equal weights of questions; mean, sd and the interval are those of the posterior. With
    --pairs, resolved is a joint decision for all pairs.
    """
    from bayesrank.evaluation import compare, evaluation_tree
    from bayesrank.evaluation import evaluate as evaluate_systems
    from bayesrank.evaluation.metrics import parse_metrics
    from bayesrank.evaluation.ranked import metric_weights
    from bayesrank.method import split_calls
    from bayesrank.reporting.evidence import shrunk_note
    from bayesrank.responses import Responses
    from bayesrank.results.storage import save
    from bayesrank.views import Comparisons

    data = _read(paths, settings)
    of_battles = isinstance(data, Comparisons)
    if of_battles and (output is not None or settings["prior_weight"] or interval != "exact"):
        raise click.UsageError(
            "--output, --prior-weight and --interval go with outcomes of questions"
        )
    if pairs and interval != "exact":
        raise click.UsageError("--interval goes with metrics of systems, not with --pairs")
    names = [name for text in metrics for name in split_calls(text)]
    if not names and not of_battles:
        names = [DEFAULT_METHOD]
    rename(metric="metrics", method="metrics")
    with progress("Evaluating"):
        if pairs:
            names = names[:1]
            table = compare(data, *names, random_seed=random_seed, **settings)
        else:
            table = evaluate_systems(
                data, names or None, interval=interval, random_seed=random_seed, **settings
            )
    if of_battles:
        note(_say_units(table.attrs["unit"]))
        if not pairs and not names:
            note(
                "win_rate: ties count as losses, or as half a win; average_win_rate: under a model"
            )
    else:
        note(_say_targets(table.attrs["target"]))
    for_people = output_format in ("table", "markdown")
    print_frame(_best_first(table) if for_people and not pairs else table, output_format)
    if for_people and isinstance(data, Responses):
        for metric in parse_metrics(names):
            if metric.method.shrunk:
                say(shrunk_note(metric_weights(metric, data).mean(), metric.label))
    if output is not None and isinstance(data, Responses):
        tree = evaluation_tree(data, names, draws=draws, random_seed=random_seed, **settings)
        note(f"Wrote {save(tree, output)}")


@click.command(cls=InputCommand)
@inputs_argument
@reading_options
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="N",
    help="Suggest where to run N further trials, or which pairs of systems need N further "
    "battles; without it, print the pairs that matter for the goal, and the trials or "
    "battles that would resolve them.",
)
@click.option(
    "--goal",
    type=click.Choice(["best", "top_k", "full", "width"]),
    default="best",
    show_default=True,
    help="The goal: the best system, the best k, the whole order, or an interval of at most "
    "--width for every score.",
)
@click.option(
    "--width", type=float, metavar="W", help="Largest width of the intervals for the goal width."
)
@click.option("--top", "k", type=int, metavar="K", help="Number of systems for the goal top_k.")
@click.option(
    "--error",
    type=float,
    default=0.05,
    show_default=True,
    metavar="P",
    help="Allowed probability that any of the resolved orders is wrong (a joint decision for all "
    "pairs), or that a score lies outside its interval.",
)
@click.option(
    "--further",
    type=int,
    metavar="N",
    help="Also forecast the table after N further trials per question and system.",
)
@seed_option
@format_option()
def plan(
    paths: tuple[str, ...],
    budget: int | None,
    goal: Any,
    k: int | None,
    width: float | None,
    error: float,
    further: int | None,
    random_seed: int | None,
    output_format: str,
    **settings: Any,
) -> None:
    """Report whether more trials are needed, and which to run next.

    INPUT is as for `bayesrank rank`; the posterior is the same. The decision whether to stop goes
    to stderr, the table to stdout. Its pairs are those that matter for the goal. "further trials
    needed" is the number of additional trials per question and system: 0 for resolved pairs, inf
    if scores are equal so far or more trials on these questions cannot resolve them. With
    --goal width there is one row per system.
    """
    from bayesrank.planning import plan_pairs, should_stop, suggest
    from bayesrank.views import Comparisons

    if budget is not None and further is not None:
        raise click.UsageError("--further goes with the table of pairs, not with --budget")
    if (goal == "width") != (width is not None):
        raise click.UsageError("--width goes with --goal width, which needs it")
    if goal == "width" and (budget is not None or k is not None):
        raise click.UsageError("--budget and --top go with other goals than width")
    data = leave_out_empty(_read(paths, settings), "plan")
    of_battles = isinstance(data, Comparisons)
    if of_battles and (width is not None or further is not None):
        raise click.UsageError("--goal width and --further go with outcomes of questions")
    if width is not None and not isinstance(data, Comparisons):
        _plan_widths(data, width, output_format, error, further, random_seed)
        return
    aim: dict[str, Any] = {"goal": goal, "k": k, "random_seed": random_seed}
    with progress("Planning"):
        decision = should_stop(data, error=error, **aim)
    # A result, so --quiet does not leave it out; on stderr, so that the table can be piped.
    verdict = _say_whether_to_stop(decision, error, "battles" if of_battles else "trials")
    say(f"{', '.join(map(shorten, decision.answer))}: {verdict}", err=True)
    if budget is None:
        table = plan_pairs(data, error=error, further=further, **aim)
        if not of_battles and float("inf") in table["further_trials_needed"].tolist():
            note(
                "inf: the scores are equal so far, or more trials on these questions cannot "
                "resolve the pair; more questions may"
            )
        print_frame(table, output_format)
    else:
        with progress("Choosing where to run further trials"):
            suggested = suggest(data, budget, **aim)
        for_people = output_format in ("table", "markdown") and "question" in suggested
        print_frame(_by_system(suggested) if for_people else suggested, output_format)


def _say_units(units: dict[str, str]) -> str:
    """Say what the intervals of each metric take as independent."""
    metrics: dict[str, list[str]] = {}
    for metric, unit in units.items():
        metrics.setdefault(unit, []).append(metric)
    said = []
    for unit, names in metrics.items():
        of = f" of {', '.join(names)}" if len(metrics) > 1 else ""
        each = " and ".join(f"each {kind}" for kind in unit.split(","))
        said.append(f"Intervals{of} take {each} as independent")
    return "; ".join(said)


def _best_first(table: "pd.DataFrame") -> "pd.DataFrame":
    """Concatenate the rows of all metrics, the best system first."""
    metrics = list(table["metric"])
    place = [metrics.index(metric) for metric in metrics]
    order = table.assign(place=place).sort_values(["place", "score"], ascending=[True, False])
    return table.loc[order.index].reset_index(drop=True)


def _by_system(suggested: "pd.DataFrame") -> "pd.DataFrame":
    """Sum the suggested trials over questions, most trials first."""
    trials = suggested.groupby("system", sort=False)["trials"]
    summed = trials.agg(["sum", "count", "min", "max"]).reset_index()
    names = ["system", "further trials", "on questions", "least per question", "most per question"]
    return summed.set_axis(names, axis=1).sort_values(names[1], ascending=False, kind="stable")


def _plan_widths(
    data: "Responses",
    width: float,
    output_format: str,
    error: float,
    further: int | None,
    random_seed: int | None,
) -> None:
    """Report whether all intervals are narrow enough, and print them."""
    from bayesrank.planning import plan_widths

    table = plan_widths(data, width, ci_prob=1 - error, further=further, random_seed=random_seed)
    wide = len(table) - int(table["reached"].to_numpy().sum())
    verdict = f"more trials are needed ({wide} of {len(table)} intervals are wider than {width:g})"
    if not wide:
        verdict = f"no more trials are needed (all intervals are at most {width:g} wide)"
    say(verdict, err=True)
    print_frame(table, output_format)


def _say_whether_to_stop(decision: "StopDecision", allowed: float, noun: str) -> str:
    wrong, joint = (_error_text(value, allowed) for value in (decision.error, decision.joint_error))
    if decision.stop:
        return f"no more {noun} are needed (probability of error {wrong}, below {allowed:g})"
    if decision.error <= allowed:
        wrong = f"{wrong}, but {joint} in a joint decision for all pairs"
    return f"more {noun} are needed (probability of error {wrong}, above {allowed:g})"


def _error_text(value: float, allowed: float) -> str:
    """Round a probability to the two digits that draws support, and more next to its limit."""
    if value < 0.001:
        return "less than 0.001"
    short = float(f"{value:.2g}")
    agrees = short != allowed and (short > allowed) == (value > allowed)
    return f"{value:.2g}" if agrees else f"{value:.4g}"


def _say_targets(targets: dict[str, str]) -> str:
    """Print the target of the posterior of each metric."""
    from bayesrank.evaluation.metrics import parse_metrics

    said = []
    for metric in parse_metrics(list(targets)):
        if metric.ranked:
            name = metric.method.name
            command = "bayesrank rank" + f" --method {name}" * (name != DEFAULT_METHOD)
            for option, value in metric.options.items():
                words = ",".join(map(str, value)) if isinstance(value, tuple | list) else value
                command += f" --{option.replace('_', '-')} {words}"
            said.append(f"{metric.label}: as `{command}`, target {targets[metric.label]}")
        else:
            said.append(f"{metric.label}: more trials on these questions, target benchmark")
    return "; ".join(said)


def _read(paths: tuple[str, ...], settings: dict[str, Any]) -> "Responses | Comparisons":
    """Read data; remove the options of reading from the settings."""
    from bayesrank.readers import read_data

    return read_data(paths, **{name: settings.pop(name) for name in READING})
