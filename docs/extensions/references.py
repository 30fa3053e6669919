"""Cross-references to objects that the pages have under another name, or not at all.

The first become links, the others literals. Of what does not exist Sphinx warns.
"""

from functools import cache, reduce
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.util.nodes import make_refnode


@cache
def find(path: str) -> Any:
    """Return what a dotted path leads to, a module or something in one; None if nothing.

    Parameters
    ----------
    path : str
        Such as ``arviz.plot_forest``.

    Returns
    -------
    object or None
    """
    parts = path.split(".")
    # A function that its package exports has priority over the module of this name.
    for cut in (*range(len(parts) - 1, 0, -1), len(parts)):
        try:
            return reduce(getattr, parts[cut:], import_module(".".join(parts[:cut])))
        except (ImportError, AttributeError):
            continue
    return None


def resolve(app: Any, env: Any, node: Any, shown: nodes.Node) -> nodes.Node | None:
    """Return a link to the object that the reference names, or what it shows; None if neither."""
    if node.get("refdomain") != "py":
        return None
    target, module = node.get("reftarget", ""), node.get("py:module")
    named = [find(target), find(f"{module}.{target}") if module else None]
    found = next((each for each in named if each is not None), None)
    if found is None:
        return None
    for name, entry in env.domains["py"].objects.items():
        if find(name) is found:
            page = node.get("refdoc")
            return make_refnode(app.builder, page, entry.docname, entry.node_id, shown, name)
    return shown


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
    app.connect("missing-reference", resolve)
    app.connect("html-page-context", leave_roles)
    return {"parallel_read_safe": True}
