"""Write one page per public module before the sources are read; none of them is committed."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import bayesrank

# The back ends, which rank() calls, and the command line are no interface for programs; factories
# are documented with the package that exports them.
PRIVATE = (
    "bayesrank.inference",
    "bayesrank.commands",
    "bayesrank.counting",
    "bayesrank.validation",
    "bayesrank.models.",
)


def public_modules() -> Iterator[ModuleType]:
    """Yield the package and the modules in it that programs may import."""
    yield bayesrank
    exported: list[str] = []
    for found in pkgutil.walk_packages(bayesrank.__path__, "bayesrank."):
        name = found.name
        # What a package exports is documented with it, and not again with its modules.
        inside = name.rpartition(".")[0] in exported
        if name.startswith(PRIVATE) or name.rpartition(".")[2].startswith("_") or inside:
            continue
        module = importlib.import_module(name)
        if found.ispkg and hasattr(module, "__all__"):
            exported.append(name)
        yield module


def members(module: ModuleType) -> list[str]:
    """Return the functions and classes to document: of a package, what it exports."""
    exported = getattr(module, "__all__", None)
    package = f"{module.__name__}."
    kept = []
    for name in dir(module) if exported is None else exported:
        member = getattr(module, name)
        public = inspect.isfunction(member) or inspect.isclass(member)
        if not public or name.startswith("_"):
            continue
        if exported is not None or f"{member.__module__}.".startswith(package):
            kept.append(name)
    return kept


def page(module: ModuleType, names: list[str]) -> str:
    """Return the page of a module."""
    name = module.__name__
    lines = [f"``{name}``", "=" * (len(name) + 4), "", f".. automodule:: {name}", ""]
    for member in names:
        kind = "autoclass" if inspect.isclass(getattr(module, member)) else "autofunction"
        lines += [f".. {kind}:: {name}.{member}"]
        lines += ["   :members:", ""] if kind == "autoclass" else [""]
    return "\n".join(lines)


def write_pages(app: Any) -> None:
    """Write the pages that have changed, and remove those whose module is gone."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    pages = {}
    for module in public_modules():
        names = members(module)
        if names:
            pages[f"{module.__name__}.rst"] = page(module, names)
    for path in folder.glob("*.rst"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Connect the writer."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}
