"""Which part of the package may import which."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import bayesrank

ROOT = Path(bayesrank.__file__).parent
# The front door exports what lies behind it.
FRONT = {"bayesrank.__init__", "bayesrank.__main__"}


def module_names() -> dict[str, Path]:
    folders = {
        "bayesrank.": ROOT,
        "bayesrank.models.": Path(bayesrank.models.__file__ or "").parent,
    }
    found = {}
    for prefix, folder in folders.items():
        for path in folder.rglob("*.py"):
            inner = path.relative_to(folder).with_suffix("").parts
            if prefix == "bayesrank." and inner[0] == "models":
                continue
            found[prefix + ".".join(inner)] = path
    return found


def part(name: str) -> str:
    """Return the folder of a module; a module beside folders is a part of its own."""
    folder = name.rpartition(".")[0]
    return name if folder in ("bayesrank", "bayesrank.inference") else folder


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree, without what type checkers alone read."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        if not typing:
            yield from runtime_nodes(child)


def imports() -> dict[str, set[str]]:
    """Return what each part imports when it runs, wherever in a module the import stands."""
    modules = module_names()
    found = defaultdict(set)
    for name, path in modules.items():
        if name in FRONT:
            continue
        for node in runtime_nodes(ast.parse(path.read_text(encoding="utf-8"))):
            taken = []
            if isinstance(node, ast.ImportFrom) and node.module:
                taken = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
            elif isinstance(node, ast.Import):
                taken = [alias.name for alias in node.names]
            for each in taken:
                target = each if each in modules else f"{each}.__init__"
                if target in modules and target not in FRONT:
                    found[part(name)].add(part(target))
    return found


def test_no_two_parts_import_each_other():
    found = imports()
    both = {
        tuple(sorted((one, other)))
        for one, others in found.items()
        for other in others - {one}
        if one in found.get(other, ())
    }
    assert not both


def test_models_and_data_know_nothing_of_inference_or_display():
    found = imports()
    for one in ("bayesrank.models", "bayesrank.responses", "bayesrank.views", "bayesrank.methods"):
        assert not {other for other in found[one] if "inference" in other or "reporting" in other}


def test_every_folder_is_seen():
    assert {"bayesrank.inference.fits", "bayesrank.models", "bayesrank.reporting"} <= set(imports())
