"""What people read uses the field's words: no riddles, no aphorisms."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

import bayesrank
from bayesrank.catalog import METHODS
from bayesrank.commands.flags import describe_options

PACKAGE = Path(bayesrank.__file__).parent
ROOT = PACKAGE.parent

# Beside each phrase, what to say instead.
BANNED = {
    r"explain themselves": "hover over a header for its meaning",
    r"not without a look": "with caution: the check failed",
    r"pull the scores? of": "prior and data conflict for",
    r"stands? high here": "a high place needs strong evidence",
    r"surely good": "strong evidence",
    r"the data alone decide": "the data identify",
    r"held to nothing": "has no target",
    r"which leap": "is discontinuous",
    r"climbing on": "escape saddle points along directions of negative curvature",
    r"no certainty": "still has a positive probability (rule of three)",
    r"\bevery rank\b of": "rank probabilities",
    r"who beats whom": "pairwise comparisons",
    r"enough is known": "no more trials are needed",
    r"of 1 systems": "1 system",
}

# What readers meet outside the source: messages, help, methods on the terminal, pages, notebooks.
BANNED_WHERE_SHOWN = {
    r"\balone\b": "only",
    r"\b(is|are|was|were|be|been) said\b": "say who or what says it",
    r"\bsurely\b": "the probability, or certainly",
    r"\bby a hair\b": "the difference in numbers",
    r"\bgive or take\b": "plus or minus",
    r"\bmerely\b": "only",
    r"\bnothing says\b": "what is not known",
    r"\bspeaks? louder\b": "outweighs",
    r"\bhonest\b": "calibrated, or allowing for dependence",
    r"\bsays? little\b": "too few to estimate",
    r"\bno (draw|unit) moves\b": "is the same in all draws, or for all units",
}


@cache
def sources() -> dict[str, ast.Module]:
    """Return the syntax trees of the package and of its models, by file."""
    paths = [*PACKAGE.rglob("*.py"), *(PACKAGE / "models").glob("*.py")]
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in paths
    }


@cache
def pages() -> dict[str, str]:
    """Return the pages, templates and notebooks, by file."""
    paths = [*PACKAGE.rglob("*.html"), *PACKAGE.rglob("*.js"), ROOT / "README.md"]
    paths += [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")]
    paths += (ROOT / "docs" / "gallery_code").glob("*")
    # Pages are not installed with the package.
    found = {path.name: path.read_text(encoding="utf-8") for path in paths if path.is_file()}
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = ["".join(one["source"]) for one in cells if one["cell_type"] == "markdown"]
        found[path.name] = "\n".join(prose)
    return found


@cache
def texts() -> dict[str, str]:
    """Return all strings of the package, docstrings among them, and its pages, by file."""
    found = dict(pages())
    for name, tree in sources().items():
        strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        found[name] = "\n".join(each for each in strings if isinstance(each, str))
    return found


@cache
def shown_texts() -> dict[str, str]:
    """Return what is shown to readers: messages, help, methods on the terminal, and pages."""
    found = dict(pages())
    for name, tree in sources().items():
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, documented) and ast.get_docstring(node) is not None
        }
        strings = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and id(node) not in docstrings
        ]
        # The docstring of a command is its help.
        if name.startswith("commands"):
            functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
            strings += [ast.get_docstring(node) for node in functions if node.decorator_list]
        found[name] = "\n".join(each for each in strings if isinstance(each, str))
    for row in METHODS.values():
        options = describe_options(row)
        shown = [row.title, row.description, row.use, *(options[name] for name in row.all_options)]
        found[f"methods {row.name}"] = "\n".join(shown)
    return found


def assert_absent(phrase: str, instead: str, found: dict[str, str]) -> None:
    pattern = re.compile(phrase.replace(" ", r"\s+"), re.IGNORECASE)
    used = {name: match.group() for name, text in found.items() if (match := pattern.search(text))}
    assert not used, f"say: {instead}"


@pytest.mark.parametrize("phrase", BANNED)
def test_no_text_has_a_phrase_that_readers_have_to_guess(phrase: str) -> None:
    assert_absent(phrase, BANNED[phrase], texts())


@pytest.mark.parametrize("phrase", BANNED_WHERE_SHOWN)
def test_what_is_shown_uses_plain_words(phrase: str) -> None:
    assert_absent(phrase, BANNED_WHERE_SHOWN[phrase], shown_texts())
