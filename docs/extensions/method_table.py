"""The directives ``method-table`` and ``preset-table``: what the catalog says, as tables."""

from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from bayesrank.catalog import METHODS, PRESETS


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


class MethodTable(SphinxDirective):
    """One table per family, with a link to the page of every method."""

    def run(self) -> list[nodes.Node]:
        """Return the headings and tables."""
        parts = []
        for family in dict.fromkeys(row.family for row in METHODS.values()):
            rows = [
                [
                    f"[`{row.name}`](method/{row.name}.rst)",
                    f"{row.title}.",
                    row.use,
                    ", ".join(row.backends),
                ]
                for row in METHODS.values()
                if row.family == family
            ]
            header = ["method", "what it does", "when to use it", "back ends"]
            parts.append(f"## {family.capitalize()}\n\n{table(header, rows)}\n")
        return self.parse_text_to_nodes("\n".join(parts), allow_section_headings=True)


class PresetTable(SphinxDirective):
    """The published configurations."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = []
        for preset in PRESETS.values():
            options = ", ".join(f"`{name}={value!r}`" for name, value in preset.options.items())
            rows.append(
                [
                    f"`{preset.name}`",
                    f"[`{preset.method}`](method/{preset.method}.rst)",
                    preset.backend,
                    preset.prior or "none",
                    options or "none",
                ]
            )
        header = ["configuration", "method", "back end", "prior", "options"]
        return self.parse_text_to_nodes(table(header, rows))


def setup(app: Any) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("method-table", MethodTable)
    app.add_directive("preset-table", PresetTable)
    return {"parallel_read_safe": True}
