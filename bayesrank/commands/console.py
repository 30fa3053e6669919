"""What the commands share: options, tables, progress, messages and errors as lines on stderr.

Exit codes: 0 done; 1 stopped before the end, by the user or by a pipe that was closed; 2 wrong
usage or data that cannot be read or ranked, with a message of one line on stderr;
3 ``check --method`` found that the method cannot run on the data.
"""

import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ENOENT
from functools import partial
from io import StringIO
from pathlib import Path
from threading import Timer
from typing import IO, TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from bayesrank.commands.flag_messages import Flag, flags_of, in_flags
from bayesrank.commands.flags import Numbers, ReadingOption, ScaleOrElo
from bayesrank.errors import InputError
from bayesrank.printable import printable

if TYPE_CHECKING:
    from bayesrank.responses import Responses
    from bayesrank.views import Comparisons

FORMATS = ("table", "json", "csv", "markdown")

_SELECTORS = ("task", "scorer", "filter", "metric")

# Columns of a table, with additions to their help.
_JOINED = "; or several, separated by commas (file and folder: names of the file and its folder)"
_COLUMNS = {
    "system": _JOINED,
    "question": _JOINED,
    "trial": _JOINED,
    "outcome": "",
    "group": "; none leaves groups out",
}

# Keywords of read_responses that `reading_options` passes on.
READING = (
    "format",
    *_SELECTORS,
    "split_by",
    "pool",
    "count_as_wrong",
    *_COLUMNS,
    "wide",
    "strict",
    "scale",
    "weights",
    "edges",
)

# Settings that separate systems of one name, and outcomes that count as wrong.
_CHOICES = (
    (
        "split-by",
        "FIELD,...",
        "Additional settings in the logs, or columns of a table, that separate systems of one "
        "name, such as seed.",
    ),
    (
        "pool",
        "FIELD,...",
        "Settings that do not separate systems: logs or rows that differ in them are trials of "
        "one system.",
    ),
    (
        "count-as-wrong",
        "KIND,...",
        "Which missing outcomes count as wrong: error, limit, refused, unscored, absent, or none.  "
        "[default: the rule of the harness]",
    ),
)

# The meaning of outcomes other than 0, 1 and fractions.
_OUTCOMES = (
    (
        "scale",
        "LOW,HIGH",
        "The lowest and the highest possible outcome, where outcomes are scores, such as 0,100 "
        "for percentages. For `rank` and `report` of models of battles it may be the word elo: "
        "the table then shows scores on the scale of Elo ratings.",
    ),
    (
        "weights",
        "W0,W1,...",
        "Outcomes are categories 0, 1, ... (or those of --edges) with these worths.",
    ),
    (
        "edges",
        "E1,...",
        "Turn scores into categories: 0 below E1, 1 from E1 on, and so forth.",
    ),
)

_RENAMED = "bayesrank.renamed"
_WARNED = "bayesrank.warned"

# Seconds before progress is shown.
_PATIENCE = 2.0

_LOGGER = logging.getLogger("bayesrank")


class Failure(click.ClickException):
    """An error that the user can repair: one line on stderr and exit code 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))

    def show(self, file: IO[str] | None = None) -> None:
        """Print it in the width of the terminal."""
        say(f"Error: {self.message}", err=True)


class Commands(click.Group):
    """The group of commands, which turns messages, warnings and errors into lines on stderr."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, which gets the option ``--quiet`` as all do."""
        quiet = click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=_be_quiet,
            help="Print only results, warnings and errors, without notes and progress.",
        )
        cmd.params.append(quiet)
        super().add_command(cmd, name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        handler = _Notes()
        _LOGGER.addHandler(handler)
        _LOGGER.setLevel(logging.INFO)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _print_warning
                return super().invoke(ctx)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            shown = StringIO()
            error.show(shown)
            for line in shown.getvalue().splitlines():
                say(line, err=True)
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            raise  # the reader of a pipe has left, and click ends quietly
        except OSError as error:
            reason = in_flags(error.strerror or str(error), self.flags(ctx))
            raise Failure(f"{error.filename}: {reason}" if error.filename else reason) from error
        except ValueError as error:
            text = error.in_shell if isinstance(error, InputError) else str(error)
            raise Failure(" ".join(in_flags(text, self.flags(ctx)).split())) from error
        finally:
            _LOGGER.removeHandler(handler)

    def flags(self, ctx: click.Context) -> dict[str, Flag]:
        """Return the flags of the command that runs, and what it lacks of those of rank."""
        root = ctx.find_root()
        running = self.commands.get(root.invoked_subcommand or "")
        flags = flags_of(self.commands["rank"].params, prefix="bayesrank rank ")
        if running is not None:
            flags |= flags_of(running.get_params(root))
        return flags | {name: flags[other] for name, other in root.meta.get(_RENAMED, {}).items()}


inputs_argument = click.argument(
    "paths", nargs=-1, required=True, metavar="INPUT...", type=click.Path()
)
ci_prob_option = click.option(
    "--ci-prob",
    type=float,
    default=0.95,
    show_default=True,
    metavar="P",
    help="Probability of the intervals.",
)
seed_option = click.option(
    "--seed",
    "random_seed",
    type=int,
    metavar="S",
    help="Seed of the draws.  [default: computed from the data]",
)


def format_option(*more: str) -> Callable[..., Any]:
    """Make the option that says how to print a table: one of `FORMATS` or of some more."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice([*FORMATS, *more]),
        default="table",
        show_default=True,
        help="How to print the table.",
    )


def result_option(what: str) -> Callable[..., Any]:
    """Make the option that names the file to write a result to."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="FILE",
        callback=_check_result_path,
        help=f"Write {what} as InferenceData: NetCDF (.nc) or Zarr (.zarr).",
    )


def check_folder(ctx: click.Context, param: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file in a folder that does not exist, before the computation."""
    if path is not None and not path.parent.is_dir():
        name = param.opts[-1] if isinstance(param, click.Option) else param.human_readable_name
        raise FileNotFoundError(ENOENT, f"the folder of {name} must exist", str(path.parent))
    return path


def _check_result_path(
    ctx: click.Context, param: click.Parameter, path: Path | None
) -> Path | None:
    if path is not None:
        from bayesrank.results.storage import check_ending

        check_ending(path)
    return check_folder(ctx, param, path)


_reading = partial(click.option, cls=ReadingOption)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what to read and how, by the keywords of ``read_responses``."""
    for name, metavar, text in reversed(_OUTCOMES):
        kind = ScaleOrElo() if name == "scale" else Numbers()
        command = _reading(f"--{name}", type=kind, metavar=metavar, help=text)(command)
    for name, metavar, text in reversed(_CHOICES):
        command = _reading(f"--{name}", metavar=metavar, callback=_words, help=text)(command)
    command = _reading(
        "--strict", is_flag=True, help="Fail if a folder contains a file that is not a log."
    )(command)
    command = _reading(
        "--wide",
        is_flag=True,
        help="Tables have one column per system (all other columns, or those of --system), or, if "
        "there is a column for the system (such as the only one of --system), one per question, or "
        "with a column for the question, too, one per trial (run1).",
    )(command)
    for name in reversed(_COLUMNS):
        text = f"Column of a table that holds the {name}{_COLUMNS[name]}."
        command = _reading(f"--{name}", metavar="COL", help=text)(command)
    for name in reversed(_SELECTORS):
        text = f"Which {name} to read if logs have several."
        if name == "task":
            text = "Which task to read if logs have several; 'mmlu_*' reads all matching tasks."
        command = _reading(f"--{name}", metavar="NAME", help=text)(command)
    return _reading(
        "--input-format",
        "format",
        metavar="NAME",
        help="Format of the logs, if it is not recognised.",
    )(command)


def _words(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value.split(","))


def complete_method(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a method or published configuration; in a list, the last name."""
    from bayesrank.catalog import METHODS, PRESETS

    before, comma, start = incomplete.rpartition(",")
    names = dict.fromkeys([*METHODS, *PRESETS])
    return [CompletionItem(before + comma + name) for name in names if name.startswith(start)]


def note(text: str) -> None:
    """Print a note on stderr; ``--quiet`` omits it."""
    _LOGGER.info(text)


def say(text: str, *, err: bool = False) -> None:
    """Print a sentence, in lines of whole words where a terminal shows it."""
    stream = sys.stderr if err else sys.stdout
    text = printable(text, kept="\n")
    if is_terminal(stream):
        from bayesrank.layout import wrap_words

        text = "\n".join(wrap_words(text, shutil.get_terminal_size().columns))
    click.echo(text, err=err)


def leave_out_empty[Data: "Responses | Comparisons"](data: Data, what: str) -> Data:
    """Leave out systems without an outcome, and print their names."""
    from bayesrank.design import part_with_outcomes

    part = part_with_outcomes(data)
    left_out = [name for name in data.systems if name not in part.systems]
    if left_out:
        note(f"The {what} leaves out what has no outcome: {', '.join(left_out)}")
    return part


def is_terminal(stream: IO[str]) -> bool:
    """Return whether lines must fit a terminal; the shell may state its width by COLUMNS."""
    return stream.isatty() or "COLUMNS" in os.environ


class _Notes(logging.Handler):
    """Print the log messages of the package on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        say(for_shell(record.getMessage()), err=True)


def for_shell(text: str) -> str:
    """Return a message of the package with the flags of the command that runs."""
    ctx = click.get_current_context(silent=True)  # threads of a computation have none
    group = None if ctx is None else ctx.find_root().command
    return in_flags(text, group.flags(ctx)) if ctx and isinstance(group, Commands) else text


def rename(**arguments: str) -> None:
    """Let messages on an argument name the flag of another one from here on."""
    click.get_current_context().meta[_RENAMED] = arguments


def _print_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning once, however many parts of the command raise it."""
    text = f"Warning: {for_shell(str(message))}"
    ctx = click.get_current_context(silent=True)
    said = ctx.meta.setdefault(_WARNED, set()) if ctx else set()
    if text not in said:
        said.add(text)
        say(text, err=True)


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Show a long computation and its elapsed time on a terminal."""
    if not sys.stderr.isatty() or not _LOGGER.isEnabledFor(logging.INFO):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    display = Progress(*columns, console=Console(stderr=True), transient=True)
    display.add_task(doing, total=None)
    timer = Timer(_PATIENCE, display.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        display.stop()


def _be_quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        _LOGGER.setLevel(logging.WARNING)
