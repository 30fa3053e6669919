"""Cross-references to what has no page: literals where the object exists, a warning where not."""

from importlib import import_module
from typing import Any

from docutils import nodes


def exists(path: str) -> bool:
    """Return whether a dotted path leads to a module or to something in one.

    Parameters
    ----------
    path : str
        Such as ``arviz.plot_forest``.

    Returns
    -------
    bool
    """
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def show_literal(app: Any, env: Any, node: Any, shown: nodes.Node) -> nodes.Node | None:
    """Return what the reference shows, if what it names is there."""
    target = node.get("reftarget", "")
    module = node.get("py:module")
    inside = [f"{module}.{target}"] if module else []
    known = node.get("refdomain") == "py" and any(map(exists, [target, *inside]))
    return shown if known else None


def leave_roles(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Take the role of a list from citations, whose role is that of an entry of a bibliography."""
    if "body" in context:
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )


def setup(app: Any) -> dict[str, Any]:
    """Connect the handlers."""
    app.connect("missing-reference", show_literal)
    app.connect("html-page-context", leave_roles)
    return {"parallel_read_safe": True}
