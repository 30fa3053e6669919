"""Write one page per topic of the interface before the sources are read; none is committed.

``docs/api_topics.toml`` says which names belong to which topic. A name that ends in ``.*`` stands
for all that a package exports. Of ``modules`` the page has the docstrings, which explain what
several functions share. Methods have pages of their own: see :mod:`method_pages`.
"""

import inspect
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import bayesrank

TOPICS = Path(__file__).parents[1] / "api_topics.toml"


def load_topics() -> dict[str, dict[str, Any]]:
    """Return the topics by the name of their page."""
    return tomllib.loads(TOPICS.read_text(encoding="utf-8"))


def find(path: str) -> Any:
    """Return the object of a dotted path."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def expand(names: list[str]) -> list[str]:
    """Return the names with those that packages export in place of ``package.*``."""
    listed = []
    for name in names:
        package, star, _ = name.partition(".*")
        listed += (
            [f"{package}.{each}" for each in import_module(package).__all__] if star else [name]
        )
    at_top = {id(getattr(bayesrank, name)) for name in bayesrank.__all__}
    # What the package itself exports is documented under that name, and only once.
    kept = [n for n in listed if n.count(".") == 1 or id(find(n)) not in at_top]
    return [n for n in dict.fromkeys(kept) if callable(find(n))]


def summary(member: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(member) or "").split("\n")[0]


def role(member: Any) -> str:
    """Return the role of references to a function or class."""
    return "class" if inspect.isclass(member) else "func"


def overview(names: list[str]) -> list[str]:
    """Return a table of names and what they do."""
    lines = [".. list-table::", "   :widths: 35 65", "   :class: api-summary", ""]
    for name in names:
        member = find(name)
        lines += [f"   * - :{role(member)}:`~{name}`", f"     - {summary(member)}"]
    return [*lines, ""]


def page(topic: dict[str, Any]) -> str:
    """Return the page of a topic."""
    names = expand(topic["names"])
    title = topic["title"]
    lines = [title, "=" * len(title), "", topic["text"], "", *overview(names)]
    for name in names:
        is_class = inspect.isclass(find(name))
        lines += [f".. auto{'class' if is_class else 'function'}:: {name}"]
        lines += ["   :members:", ""] if is_class else [""]
    for module in topic.get("modules", ()):
        lines += [f".. rubric:: {module}", "", f".. automodule:: {module}", "   :no-members:", ""]
    return "\n".join(lines)


def index(topics: dict[str, dict[str, Any]]) -> str:
    """Return the page that lists the topics, each with its names."""
    lines = ["API reference", "=============", ""]
    lines += ["All public names by topic. :doc:`/methods` have one page each.", ""]
    lines += [".. toctree::", "   :hidden:", "", *(f"   {name}" for name in topics), ""]
    for name, topic in topics.items():
        heading = f":doc:`{topic['title']} <{name}>`"
        lines += [heading, "-" * len(heading), "", topic["text"], ""]
        lines += overview(expand(topic["names"]))
    return "\n".join(lines)


def write_changed(folder: Path, pages: dict[str, str]) -> None:
    """Write the pages that have changed, and remove those that are gone.

    Parameters
    ----------
    folder : pathlib.Path
        Made if it is not there; holds nothing else.
    pages : dict of str to str
        Text by name of the file.
    """
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def write_pages(app: Any) -> None:
    """Write the pages of all topics."""
    topics = load_topics()
    pages = {f"{name}.rst": page(topic) for name, topic in topics.items()}
    write_changed(Path(app.srcdir) / "api", {"index.rst": index(topics), **pages})


def setup(app: Any) -> dict[str, Any]:
    """Connect the writer."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
