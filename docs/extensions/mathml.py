"""Formulas as MathML, which browsers draw by themselves: no script, no font and no network."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)


def formula(latex: str, node: nodes.Element, display: str) -> str:
    """Return a formula as MathML; warn of one that cannot be read."""
    try:
        return convert(latex, display=display)
    except Exception as error:  # of many kinds in the library
        LOGGER.warning("formula %r: %s", latex, type(error).__name__, location=node)
        return ""


def inline_formula(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula inside a sentence."""
    translator.body.append(formula(node.astext(), node, "inline"))
    raise nodes.SkipNode


def block_formula(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write formulas on lines of their own; an empty line separates two."""
    # Long formulas scroll on narrow screens, also by keyboard.
    translator.body.append('<div class="math" tabindex="0">')
    for part in node.astext().strip().split("\n\n"):
        translator.body.append(formula(part, node, "block"))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline_formula, None), (block_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
