"""The directive ``rubric-table``: the shipped schemes of one source."""

from typing import Any, ClassVar

from docutils import nodes
from method_table import table
from sphinx.util.docutils import SphinxDirective

from bayesrank.rubrics import SCHEMES, Scheme

SCOPES = {"group": "dataset", "system": "model", "global": "all attempts"}


def category_list(scheme: Scheme) -> str:
    """Return the categories with their numbers, and their weights where there are any."""
    weights = scheme.weights or ("",) * len(scheme.categories)
    return "<br>".join(
        f"{number} {category}" + (f": {weight:g}" if isinstance(weight, float) else "")
        for number, (category, weight) in enumerate(zip(scheme.categories, weights, strict=True))
    )


class RubricTable(SphinxDirective):
    """A table of the schemes whose source starts with the argument."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = []
        for scheme in SCHEMES.values():
            if not scheme.source.startswith(self.arguments[0]):
                continue
            scopes = dict.fromkeys(SCOPES[each.by] for each in scheme.thresholds.values())
            name = scheme.source.partition(": ")[2] or "the same"
            cells = [f"`{scheme.name}`", name, category_list(scheme)]
            rows.append([*cells, ", ".join(scopes) or "none"])
        header = ["scheme", "in the source", "categories: weights", "thresholds per"]
        return self.parse_text_to_nodes(table(header, rows))


def setup(app: Any) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("rubric-table", RubricTable)
    return {"parallel_read_safe": True}
