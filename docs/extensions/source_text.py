"""A small change to the sources of pages before they are parsed."""

import re
from typing import Any

# [text](../path), where the page is not in a folder of its own.
OUTSIDE = re.compile(r"\[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)]+)\)")


def show_paths(app: Any, docname: str, source: list[str]) -> None:
    """Show links to files outside the documentation as their paths in the repository."""
    if "/" not in docname:
        source[0] = OUTSIDE.sub(r"\g<text> (`\g<path>` in the repository)", source[0])


def setup(app: Any) -> dict[str, Any]:
    """Connect the change."""
    app.connect("source-read", show_paths)
    return {"parallel_read_safe": True}
