"""Entries of the bibliography, from ``references.bib``."""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from unicodedata import lookup, normalize

_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303", '"': "\u0308"}


def bibtex(keys: Iterable[str]) -> str:
    """Return BibTeX entries.

    Parameters
    ----------
    keys : iterable of str
        Keys of ``references.bib``, such as the citations of a method.

    Returns
    -------
    str
        The entries, each once, in the order of the keys.

    Examples
    --------
    >>> bibtex(["borda1781memoire"]).splitlines()[0]
    '@article{borda1781memoire,'
    """
    entries = _entries()
    return "\n\n".join(entries[key] for key in dict.fromkeys(keys))


def reference_text(key: str) -> str:
    """Return an entry of ``references.bib`` as a line: authors, title, where, year."""
    fields = _fields(key)
    authors = fields.get("author", "").replace(" and ", "; ").replace("; others", " and others")
    where = fields.get("journal") or fields.get("booktitle") or fields.get("publisher", "")
    parts = [authors, fields.get("title", ""), where, fields.get("year", "")]
    return " ".join(part if part[-1] in ".?!" else f"{part}." for part in parts if part)


def reference_link(key: str) -> str | None:
    """Return the address of an entry, if it has a DOI or an address."""
    fields = _fields(key)
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    return fields.get("url")


@cache
def _entries() -> dict[str, str]:
    text = files("bayesrank").joinpath("references.bib").read_text(encoding="utf-8")
    return {
        body.partition("{")[2].partition(",")[0].strip(): f"@{body.strip()}"
        for body in re.split(r"^@", text, flags=re.MULTILINE)[1:]
    }


def _fields(key: str) -> dict[str, str]:
    """Return the fields of an entry without braces."""
    found = re.findall(r"^\s*(\w+)\s*=\s*\{(.*)\},?\s*$", _entries()[key], flags=re.MULTILINE)
    return {name.lower(): _plain(value) for name, value in found}


def _plain(text: str) -> str:
    """Return LaTeX as Unicode: accents, Greek letters, dashes, braces."""
    text = re.sub(r"\\([\"'`^~])\{?(\w)\}?", lambda m: m[2] + _ACCENTS[m[1]], text)
    text = re.sub(r"\$\\(\w+)\$", lambda m: lookup(f"GREEK SMALL LETTER {m[1]}"), text)
    return normalize("NFC", re.sub(r"[{}]", "", text).replace("--", "-"))
