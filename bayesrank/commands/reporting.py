"""The commands ``bayesrank check``, ``cite`` and ``completion``.

Imports sit inside the functions that need them, as in :mod:`bayesrank.commands.cli`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from bayesrank.catalog import DEFAULT_METHOD, METHODS, default_method, find_method
from bayesrank.commands.console import (
    complete_method,
    for_shell,
    inputs_argument,
    progress,
    reading_options,
    rename,
    seed_option,
)
from bayesrank.commands.flags import InputCommand
from bayesrank.commands.printing import print_columns
from bayesrank.printable import listing

if TYPE_CHECKING:
    from bayesrank.checking import Report
    from bayesrank.layout import Column
    from bayesrank.method import Method
    from bayesrank.reporting.capabilities import Capability
    from bayesrank.responses import Responses
    from bayesrank.views import Comparisons

_CANNOT_RUN = 3

# Groups that are named.
_SHOWN = 10

_SHELLS = ("bash", "zsh", "fish")


@click.command(cls=InputCommand)
@inputs_argument
@click.option(
    "--method",
    "methods",
    metavar="NAMES",
    shell_complete=complete_method,
    help="Check the ranking by these methods, separated by commas, and report only for them "
    f"whether they can run; the exit code is 3 unless all can.  [default: {DEFAULT_METHOD}; "
    "reports for all methods whether they can run]",
)
@reading_options
@seed_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How to print the findings.",
)
def check(
    paths: tuple[str, ...],
    methods: str | None,
    output_format: str,
    random_seed: int | None,
    **reading: Any,
) -> None:
    """Check whether to trust a ranking, and which methods can run.

    INPUT is evaluation logs as for `bayesrank rank`, which are ranked by the method; or results
    that it saved with --output (.nc, .zarr). For logs it also reports the contents of the files
    and the missing outcomes.
    """
    from bayesrank.checking import check as check_result
    from bayesrank.readers import read_data
    from bayesrank.results.storage import load

    if all(Path(path).suffix in (".nc", ".zarr") for path in paths):
        if methods is not None or random_seed is not None:
            raise click.UsageError("--method and --seed go with logs, not with saved results")
        rename(path="paths")
        _print_reports({path: check_result(load(path)) for path in paths}, output_format)
        return
    rename(method="methods")
    named = [] if methods is None else [name.strip() for name in methods.split(",")]
    rows = [find_method(name)[0] for name in named] or list(METHODS.values())
    files = _files(paths, reading, output_format)
    data = read_data(paths, **reading)
    reports = dict(_check_rankings(data, named or [default_method(data)], random_seed))
    can_run = _print_data(data, rows, reports, output_format, files)
    if named and not can_run:
        click.get_current_context().exit(_CANNOT_RUN)


def _files(
    paths: tuple[str, ...], reading: dict[str, Any], output_format: str
) -> list[dict[str, Any]]:
    """Return the content of each file, and print it if there are several."""
    from bayesrank.layout import Column
    from bayesrank.readers.file_summaries import summarize_files

    if "-" in paths:  # which can only be read once
        return []
    found = summarize_files(paths, **reading)
    if output_format == "table" and len(found) > 1:
        problems = [for_shell(each.problem) or "no" for each in found]
        left_out = any(each.problem for each in found)
        print_columns(
            [
                Column("file", [f"{each.path.parent.name}/{each.path.name}" for each in found]),
                Column("systems", [", ".join(each.systems) or "none" for each in found]),
                Column("questions", [f"{each.n_questions:,}" for each in found], True),
                Column("trials", [f"{each.n_trials:,}" for each in found], True),
                Column("groups", [f"{each.n_groups:,}" for each in found], True),
                Column("missing", [f"{each.n_missing:,}" for each in found], True),
                *[Column("left out, why", problems, text="sentence")] * left_out,
            ]
        )
        click.echo()
    return [{**asdict(each), "path": str(each.path)} for each in found]


def _check_rankings(
    data: "Responses | Comparisons", names: list[str], random_seed: int | None
) -> "Iterator[tuple[str, Report]]":
    """Yield the report on the ranking by each method; on the data where it cannot rank them."""
    from bayesrank.checking import check, check_data
    from bayesrank.ranking import rank

    for name in names:
        try:
            with progress(f"Ranking by {name}"):
                result = rank(data, name, random_seed=random_seed)
        except ValueError:  # the table of methods has the reason
            yield "the data", check_data(data)
        else:
            with progress(f"Checking the ranking by {name}"):
                report = check(result, data)
            yield name, report


def _print_data(
    data: "Responses | Comparisons",
    rows: "list[Method]",
    reports: "dict[str, Report]",
    output_format: str,
    files: list[dict[str, Any]],
) -> bool:
    """Print data, findings and the methods that can run; return whether all can."""
    from bayesrank.layout import Column
    from bayesrank.reporting.battle_summary import battle_facts
    from bayesrank.reporting.capabilities import capability
    from bayesrank.views import Comparisons

    facts = battle_facts(data) if isinstance(data, Comparisons) else _facts(data)
    found = [capability(row, data) for row in rows]
    if output_format == "json":
        methods = {
            each.method.name: {
                "can_run": not each.reason,
                "note": for_shell(each.reason or each.note),
            }
            for each in found
        }
        _print_reports(reports, output_format, data=facts, methods=methods, files=files)
    else:
        columns = [
            Column("what was read", list(facts)),
            Column("value", list(facts.values()), text="sentence"),
        ]
        print_columns(columns)
        _print_reports(reports, output_format)
        click.echo()
        print_columns(_method_columns(found))
    return not any(each.reason for each in found)


def _method_columns(found: "list[Capability]") -> "list[Column]":
    """Return which methods can run, with reasons and notes, one row per remark."""
    from bayesrank.layout import Column

    names = defaultdict(list)
    for each in found:
        names["no" if each.reason else "yes", for_shell(each.reason or each.note)].append(
            each.method.name
        )
    return [
        Column("can run", [can_run for can_run, _ in names]),
        Column("reason or note", [remark for _, remark in names], text="sentence"),
        Column("methods", [", ".join(methods) for methods in names.values()], text="sentence"),
    ]


def _facts(data: "Responses") -> dict[str, str]:
    """Return a summary of responses, as text by subject."""
    from bayesrank.reporting.data_summary import summarize_responses

    summary = summarize_responses(data)
    facts = summary.facts() | {"outcomes are": _kind(data)}
    lacking = summary.missing_by_system()
    if lacking:
        system, count = next(iter(lacking.items()))
        facts["most outcomes missing"] = f"{system} ({count:,})"
    if data.groups is not None:
        sizes = Counter(data.groups)
        named = (f"{name} ({number:,})" for name, number in sizes.most_common())
        facts["groups, and their questions"] = f"{len(sizes)}: {listing(named, _SHOWN)}"
    return facts


def _print_reports(reports: "dict[str, Report]", output_format: str, **more: Any) -> None:
    from bayesrank.reporting.plain_tables import finding_columns

    reports = {name: report.reworded(for_shell) for name, report in reports.items()}
    if output_format == "json":
        checks = {name: report.to_dict() for name, report in reports.items()}
        click.echo(json.dumps({**more, "checks": checks}, indent=2, ensure_ascii=False))
        return
    for name, report in reports.items():
        click.echo(f"\nFindings of the checks of {name}:")
        print_columns(finding_columns(report))


@click.command()
@click.argument("method", nargs=-1, required=True, shell_complete=complete_method)
def cite(method: tuple[str, ...]) -> None:
    """Print what to cite for each METHOD, as BibTeX."""
    from bayesrank.reporting.citations import bibtex

    click.echo(bibtex(key for name in method for key in find_method(name)[0].citations))


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes commands in a SHELL.

    For bash: `bayesrank completion bash > ~/.local/share/bash-completion/completions/bayesrank`.
    For zsh and fish, write it to a file of a folder of $fpath, or to
    ~/.config/fish/completions/bayesrank.fish.
    """
    kind = get_completion_class(shell)
    context = click.get_current_context().find_root()
    if kind is None:
        raise click.UsageError(f"shell must be one of {', '.join(_SHELLS)}; got {shell!r}")
    script = kind(context.command, {}, "bayesrank", "_BAYESRANK_COMPLETE")
    # Only the template: source() starts the shell to ask for its version.
    click.echo(script.source_template % script.source_vars())


def _kind(data: "Responses") -> str:
    if data.scale is not None:
        return f"scores {data.scale}"
    if data.is_binary:
        return "right or wrong"
    worth = ", ".join(f"{each:g}" for each in data.category_weights)
    return f"{data.n_categories} categories worth {worth}"
