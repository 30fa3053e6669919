"""Options of a method and of its back end as flags of the command line.

Nothing is declared here: flags are read from the catalog, hence from the function of the method,
and from the function of the back end. Their keyword-only parameter ``tie_policy`` is the flag
``--tie-policy``, parsed by its annotation, with help from the docstring.
:mod:`bayesrank.validation` checks the values, on the command line as in Python.
"""

import ast
import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import click
from click.core import ParameterSource

from bayesrank import validation as option_types
from bayesrank.catalog import (
    DEFAULT_METHOD,
    METHODS,
    MODELS_OF_BATTLES,
    find_method,
    method_with,
)
from bayesrank.commands.flag_messages import PREFIX
from bayesrank.commands.formulas import plain_text
from bayesrank.ranking import BACKENDS

if TYPE_CHECKING:
    from bayesrank.method import Method, Preset

_SCALARS = {"int": click.INT, "float": click.FLOAT, "str": click.STRING, "bool": click.BOOL}
_NUMBERS = ("ArrayLike", "Sequence[float]", "Sequence[int]", "tuple[float, ...]")


class ReadingOption(click.Option):
    """An option for reading the input."""


class InputCommand(click.Command):
    """A command whose help lists its own options before those for reading the input."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in two sections."""
        self.write_own(ctx, formatter)
        self.write_reading(ctx, formatter)

    def write_own(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command."""
        own = [each for each in self.params if not isinstance(each, ReadingOption)]
        asks_for_help = self.get_help_option(ctx)
        with formatter.section("Options"):
            formatter.write_dl(_records(ctx, [*own, *filter(None, [asks_for_help])]))

    def write_reading(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options for reading the input."""
        reading = [each for each in self.params if isinstance(each, ReadingOption)]
        if reading:
            with formatter.section("How to read INPUT"):
                formatter.write_dl(_records(ctx, reading))


def _records(ctx: click.Context, params: Sequence[click.Parameter]) -> list[tuple[str, str]]:
    return [
        record
        for each in params
        if isinstance(each, click.Option) and (record := each.get_help_record(ctx))
    ]


class MethodCommand(InputCommand):
    """A command with its own options and those of the method that ``--method`` names.

    The options of the back end are included. The callback gets the given options of both as the
    mapping `options`, by parameter name.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find the method, then parse its options together with the command's own."""
        taken = own_flags(self)
        name = _value_of("--method", args) or _method_of_flags(args, taken)
        row, preset = find_method(name)
        backend = _value_of("--backend", args) or default_backend(row, preset)
        own = method_flags(row, preset, taken=taken)
        ctx.meta["bayesrank.method"] = row
        ctx.meta["bayesrank.backend"] = backend
        # Options of the method hide those of its back end, as in rank().
        names = {flag.name for flag in own}
        of_backend = [f for f in backend_flags(backend, taken=taken) if f.name not in names]
        ctx.meta["bayesrank.flags"] = [*own, *of_backend]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = ", ".join(flag.opts[0] for flag in ctx.meta["bayesrank.flags"]) or "none"
            raise click.UsageError(
                f"options must be among those of rank (see --help) and of {row.name} ({known}); "
                f"got {error.option_name}{_other_method(error.option_name)}",
                ctx,
            ) from error

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own parameters and the method's."""
        return [*super().get_params(ctx), *ctx.meta.get("bayesrank.flags", ())]

    def invoke(self, ctx: click.Context) -> Any:
        """Pass the given options of the method on as one mapping."""
        values = {flag.name: ctx.params.pop(flag.name) for flag in ctx.meta["bayesrank.flags"]}
        ctx.params["options"] = {
            name.removeprefix(PREFIX): value
            for name, value in values.items()
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        }
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then the method's in a section of their own."""
        row, flags = ctx.meta["bayesrank.method"], ctx.meta["bayesrank.flags"]
        self.write_own(ctx, formatter)
        options = {f"{PREFIX}{name}" for name in row.all_options}
        of_method = [flag for flag in flags if flag.name in options]
        of_backend = [flag for flag in flags if flag not in of_method]
        backend = ctx.meta["bayesrank.backend"]
        with formatter.section(f"Options of {row.name}"):
            if not of_method:
                formatter.write_text("It has none.")
            _write_flags(ctx, formatter, of_method, describe_options(row))
        if of_backend:
            with formatter.section(f"Options of the back end {backend}"):
                _write_flags(
                    ctx, formatter, of_backend, _describe(inspect.getdoc(BACKENDS[backend]) or "")
                )
        self.write_reading(ctx, formatter)


def _write_flags(
    ctx: click.Context,
    formatter: click.HelpFormatter,
    flags: Sequence[click.Option],
    described: Mapping[str, str],
) -> None:
    records = []
    for flag in flags:
        name = (flag.name or "").removeprefix(PREFIX)
        record = flag.get_help_record(ctx)
        if record is not None:
            records.append((record[0], f"{described.get(name, '')}  {record[1]}".strip()))
    if records:
        formatter.write_dl(records)


def own_flags(command: click.Command) -> frozenset[str]:
    """Return all flags that the command itself declares."""
    return frozenset(flag for param in command.params for flag in param.opts)


def _method_of_flags(args: Sequence[str], taken: Collection[str]) -> str:
    """Return the method that has the flags which neither the command nor a back end has."""
    given = [each.partition("=")[0] for each in args if each.startswith("--") and each != "--"]
    wanted = without_backend_options(_parameter(each) for each in given if each not in taken)
    if wanted <= set(METHODS[DEFAULT_METHOD].all_options):
        return DEFAULT_METHOD
    return method_with(wanted, MODELS_OF_BATTLES) or DEFAULT_METHOD


def without_backend_options(names: Iterable[str]) -> set[str]:
    """Return the names of options that no back end has."""
    return set(names).difference(
        *(inspect.signature(backend).parameters for backend in BACKENDS.values())
    )


def _parameter(flag: str) -> str:
    return flag.removeprefix("--").removeprefix("no-").replace("-", "_")


def _other_method(option: str) -> str:
    """Name the methods with an option."""
    name = _parameter(option)
    having = [row.name for row in METHODS.values() if name in row.all_options]
    return f": it is an option of --method {' or '.join(having)}" if having else ""


def default_backend(row: "Method", preset: "Preset | None") -> str:
    """Return the back end that a method or a published configuration has by default."""
    return preset.backend if preset else row.backends[0]


def method_flags(
    row: "Method", preset: "Preset | None" = None, *, taken: Collection[str] = ()
) -> list[click.Option]:
    """Make the flags of a method, with the options of a published configuration as defaults.

    An option with the same flag as one of the command's, `taken`, gets the name of the method, such
    as ``--hodge-rank-weights``. One that text cannot express, such as a function, has no flag.
    """
    fixed = preset.options if preset else {}
    options = {
        name: parameter.replace(default=fixed.get(name, parameter.default))
        for name, parameter in row.all_options.items()
    }
    return _make_flags(options, row.name, taken)


def backend_flags(backend: str, *, taken: Collection[str] = ()) -> list[click.Option]:
    """Make the flags of a back end, of which an unknown one has none, as :func:`method_flags`."""
    if backend not in BACKENDS:
        return []
    options = {
        name: parameter.replace(annotation=_annotation_text(parameter.annotation))
        for name, parameter in inspect.signature(BACKENDS[backend]).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    return _make_flags(options, backend, taken)


def _annotation_text(annotation: Any) -> str:
    """Return an annotation as source text, types such as ``int | None`` included."""
    if isinstance(annotation, str):
        return annotation
    if annotation is NoneType:
        return "None"
    if get_origin(annotation) is Annotated:
        return _annotation_text(get_args(annotation)[0])
    alternatives = get_args(annotation)
    if NoneType in alternatives:
        return " | ".join(map(_annotation_text, alternatives))
    return inspect.formatannotation(annotation)


def _make_flags(
    options: Mapping[str, inspect.Parameter], owner: str, taken: Collection[str]
) -> list[click.Option]:
    flags = []
    for name, parameter in options.items():
        kind = parameter_type(parameter.annotation)
        if kind is None:
            continue
        flag = f"--{name.replace('_', '-')}"
        if flag in taken:
            flag = f"--{owner.replace('_', '-')}-{flag[2:]}"
        if kind is click.BOOL:
            flag = f"{flag}/--no-{flag[2:]}"
        shown = default_text(parameter)
        default = "[required]" if shown == "required" else f"[default: {shown}]"
        if parameter.default is None and isinstance(kind, click.Choice) and "none" in kind.choices:
            default = ""  # "none" is a word here, and not the default
        flags.append(
            click.Option(
                [flag, PREFIX + name],
                type=kind if kind is click.BOOL or isinstance(kind, Numbers) else _Unchecked(kind),
                default=None,
                help=default,
            )
        )
    return flags


def default_text(parameter: inspect.Parameter) -> str:
    """Return the default of an option as it is typed, or the word "required"."""
    if parameter.default is parameter.empty:
        return "required"
    return "none" if parameter.default is None else str(parameter.default)


def parameter_type(annotation: str) -> click.ParamType | None:
    """Return the type of command-line values for the source text of an annotation.

    None if text on a command line cannot express a value.

    Examples
    --------
    >>> parameter_type("int | None").convert("none", None, None) is None
    True
    >>> parameter_type("Sequence[float]").convert("1,0.5,0", None, None)
    (1.0, 0.5, 0.0)
    """
    names = [name.strip() for name in annotation.split("|")]
    kinds = [kind for name in names if (kind := _named_type(name)) is not None]
    if any("none" in kind.choices for kind in kinds if isinstance(kind, click.Choice)):
        kinds = [kind for kind in kinds if not isinstance(kind, _Nothing)]  # "none" is a word here
    if not kinds or all(isinstance(kind, _Nothing) for kind in kinds):
        return None
    return kinds[0] if len(kinds) == 1 else _Either(kinds)


def _named_type(name: str) -> click.ParamType | None:
    if name == "None":
        return _Nothing()
    if hasattr(option_types, name):
        name = _annotation_text(getattr(option_types, name))
    if name in _SCALARS:
        return _SCALARS[name]
    if name in _NUMBERS:
        return Numbers()
    if name.startswith("Literal["):
        values = ast.literal_eval(f"({name[8:-1]},)")
        return click.Choice(values) if all(isinstance(value, str) for value in values) else None
    # A named type is a set of words; the function itself checks them.
    return click.STRING if name.isidentifier() else None


class _Nothing(click.ParamType):
    """The word "none", for None."""

    name = "none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> None:
        if str(value).lower() != "none":
            self.fail(f"{value!r} is not none.", param, ctx)


class _Unchecked(click.ParamType):
    """A value of a type, or the text itself, which the option checks later."""

    def __init__(self, kind: click.ParamType) -> None:
        self.kind = kind
        self.name = kind.name

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self.kind.get_metavar(param, ctx)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.kind.convert(value, param, ctx)
        except click.BadParameter:
            return value


class Numbers(click.ParamType):
    """Numbers separated by commas."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """Return the numbers."""
        try:
            return tuple(float(number) for number in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not numbers separated by commas.", param, ctx)


class ScaleOrElo(Numbers):
    """The lowest and the highest outcome, or the word "elo"."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the numbers, or the word."""
        return value if value == "elo" else super().convert(value, param, ctx)


class _Either(click.ParamType):
    """The first of several types that accepts a value."""

    def __init__(self, kinds: Sequence[click.ParamType]) -> None:
        # "none" is tried first, or a type that takes any word would take this one too.
        self.kinds = sorted(kinds, key=lambda kind: not isinstance(kind, _Nothing))
        self.name = "|".join(kind.name for kind in kinds)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        for kind in self.kinds:
            try:
                return kind.convert(value, param, ctx)
            except click.BadParameter:
                continue
        raise click.BadParameter(f"{value!r} is not a valid {self.name}.", ctx, param)


def describe_options(row: "Method") -> dict[str, str]:
    """Read the description of each parameter, on one line, from the docstring of a method."""
    return {
        name: text for form in row.forms[::-1] for name, text in _describe(form.docstring).items()
    }


def _describe(docstring: str) -> dict[str, str]:
    section = docstring.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    lines: dict[str, list[str]] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line.startswith(" "):
            for name in names:
                lines[name].append(line.strip())
        else:
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
            lines.update((name, []) for name in names)
    return {name: plain_text(" ".join(text)) for name, text in lines.items()}


def _value_of(flag: str, args: list[str]) -> str | None:
    """Return the last value of a flag, before anything else can be parsed."""
    named = None
    for argument, following in zip(args, [*args, None][1:], strict=True):
        if argument == "--":
            break
        if argument == flag:
            named = following
        elif argument.startswith(f"{flag}="):
            named = argument.partition("=")[2]
    return named
