"""Messages with flags of the command line in place of arguments in Python.

The package words its messages for Python: ``<argument> must <constraint>; got <value>: use
backend='map'``. On the command line the same arguments are flags. The parameters of the command
define the flags, so no message is written twice, and a new option needs no entry here.
"""

import ast
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import click

# Prefix of the names of options of a method, to separate them from those of the command.
PREFIX = "method_option_"

# Arguments that are not flags but have another name in files.
_IN_FILES = {"prior_outcomes": "R0 in an .npz archive"}

# Other names of the package for arguments of a command; the first that the command has is used.
_ALSO = {"data": ("paths",), "path": ("output", "result")}

# Options appear in an assignment, or without a value if they contain an underscore. Calls and
# quoted values are input of the user.
_PARTS = re.compile(
    r"""
    (?<![\w.'"])(?P<name>\w+)(?:=|\ =\ )(?P<value>'[^']*'|"[^"]*"|\([^()]*\)|\[[^\[\]]*\]|\.\.\.
        |[^\s,;:()]*[^\s,;:().])?
    | (?P<verbatim>\w+\((?:[^()]|\([^()]*\))*\)|(?<!\w)'[^']*'|(?<!\w)"[^"]*")
    | (?P<word>(?<![\w.])[A-Za-z]+_\w+)
    """,
    re.VERBOSE,
)
# Values of Python with another name in files and on the command line.
_GOT = re.compile(r"; got (?:None|True|False)\b")
_SUBJECT = re.compile(r"^[\w, ]+?(?= (?:of \S+ )?must )")


class Flag(NamedTuple):
    """Names of an option on the command line: its flag, the flag of its negation, its value."""

    name: str
    negation: str = ""
    value: str = ""


def flags_of(params: Iterable[click.Parameter], prefix: str = "") -> dict[str, Flag]:
    """Return the flags of the parameters of a command, by the names of the arguments in Python.

    `prefix` is put before every flag: the name of the command, if it is another one. The command's
    own options come before those of a method with the same name.
    """
    found: dict[str, Flag] = {}
    for param in params:
        if param.name is None:
            continue
        name = param.name.removeprefix(PREFIX)
        if isinstance(param, click.Option):
            negation = f"{prefix}{param.secondary_opts[0]}" if param.secondary_opts else ""
            value = param.metavar or param.type.name.upper()
            found.setdefault(name, Flag(f"{prefix}{max(param.opts, key=len)}", negation, value))
        else:
            found.setdefault(name, Flag((param.metavar or name.upper()).strip("[].")))
    for other, names in _ALSO.items():
        same = next((found[name] for name in names if name in found), None)
        if same is not None:
            found.setdefault(other, same)
    return found


def in_flags(text: str, flags: Mapping[str, Flag]) -> str:
    """Return a message with flags in place of arguments; names without a flag are unchanged.

    Examples
    --------
    >>> flags = {"prior": Flag("--prior"), "backend": Flag("--backend")}
    >>> in_flags("prior must be None for backend='mle', which has none; got 2: use x=1", flags)
    '--prior must be left out for --backend mle, which has none; got 2: use x=1'
    """
    text = _GOT.sub(lambda found: found[0].lower(), text)
    subject = _SUBJECT.match(text)
    if subject is not None:
        named = _name_subject(subject[0], flags)
        rest = text[subject.end() :]
        if named != subject[0]:
            rest = rest.replace(" must be None", " must be left out", 1)
        return named + _name_parts(rest, flags)
    return _name_parts(text, flags)


def _name_subject(subject: str, flags: Mapping[str, Flag]) -> str:
    return re.sub(r"\w+", lambda word: _named(word[0], flags), subject)


def _name_parts(text: str, flags: Mapping[str, Flag]) -> str:
    def replace(found: re.Match[str]) -> str:
        if found["verbatim"]:
            return found[0]
        if found["word"]:
            return _named(found["word"], flags)
        flag = flags.get(found["name"])
        return found[0] if flag is None else _with_value(flag, found["value"])

    return _PARTS.sub(replace, text)


def _named(word: str, flags: Mapping[str, Flag]) -> str:
    return flags[word].name if word in flags else _IN_FILES.get(word, word)


def _with_value(flag: Flag, value: str | None) -> str:
    """Return a flag with a value as it is typed."""
    if value is None:
        return flag.name
    try:
        literal = ast.literal_eval(value)
    except (SyntaxError, ValueError):  # not a value, but words in place of one
        literal = ...
    if literal is ...:
        return f"{flag.name} {flag.value}".rstrip()
    if isinstance(literal, bool):
        return flag.name if literal else flag.negation or f"no {flag.name}"
    if isinstance(literal, tuple | list):
        return f"{flag.name} {','.join(map(str, literal))}"
    return f"{flag.name} {'none' if literal is None else shlex.quote(str(literal))}"
