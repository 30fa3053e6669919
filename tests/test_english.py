"""What people read uses the field's words: no riddles, no aphorisms."""

import ast
import re
from pathlib import Path

import pytest

import bayesrank

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
    r"(got|is|are) (?!large by chance)[a-z ]{1,20} alone\b": "only",
}


def texts() -> dict[str, str]:
    """Return what the package, its pages and its templates say, by file."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        found[str(path.relative_to(PACKAGE))] = "\n".join(
            each for each in strings if isinstance(each, str)
        )
    for path in [*PACKAGE.rglob("*.html"), ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        if path.exists():  # pages are not installed with the package
            found[path.name] = path.read_text(encoding="utf-8")
    return found


@pytest.mark.parametrize("phrase", BANNED)
def test_no_text_has_a_phrase_that_readers_have_to_guess(phrase: str) -> None:
    pattern = re.compile(phrase.replace(" ", r"\s+"), re.IGNORECASE)
    found = {name: pattern.search(text) for name, text in texts().items()}
    used = {name: match.group() for name, match in found.items() if match}
    assert not used, f"say: {BANNED[phrase]}"
