"""Text for people: names in a sentence, without controls of a terminal or formulas of a sheet."""

import re
import unicodedata
from collections.abc import Iterable

# Besides control characters, surrogates and separators of lines: what reorders text.
_REORDERING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HARMFUL = frozenset({"Cc", "Cs", "Zl", "Zp"})

# What makes a spreadsheet take a cell for a formula.
_FORMULA = re.compile(r"[=+\-@]")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE)


def listing(names: Iterable[object], most: int = 3) -> str:
    """Join names by commas and the word "and"; of more than `most` + 1 the first and their number.

    Examples
    --------
    >>> listing(["a", "b"]), listing("abcd"), listing("abcdef")
    ('a and b', 'a, b, c and d', 'a, b, c and 3 more')
    """
    shown = list(map(str, names))
    if len(shown) > most + 1:
        shown[most:] = [f"{len(shown) - most} more"]
    *others, last = shown
    return f"{', '.join(others)} and {last}" if others else last


def printable(text: str, *, kept: str = "") -> str:
    r"""Write out the characters of a text that control how it is shown, but those `kept`.

    Examples
    --------
    >>> print(printable("red \x1b[31m"))
    red \x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(
        character if character in kept or not _is_harmful(character) else _written(character)
        for character in text
    )


def cell_text(text: str) -> str:
    """Return the cell of a CSV file that no spreadsheet takes for a formula.

    It has an apostrophe before what begins like a formula and is no number.

    Examples
    --------
    >>> [cell_text(text) for text in ("=1+1", "-0.5", "gpt-4")]
    ["'=1+1", '-0.5', 'gpt-4']
    """
    shown = printable(text)
    formula = _FORMULA.match(shown.lstrip()) and not _NUMBER.fullmatch(shown)
    return f"'{shown}" if formula else shown


def _is_harmful(character: str) -> bool:
    return unicodedata.category(character) in _HARMFUL or character in _REORDERING


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
