"""The directives ``method-table`` and ``preset-table``: what the catalog says, as tables."""

from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from bayesrank.catalog import METHODS, PRESETS
from bayesrank.method import Method


def option_list(row: Method) -> str:
    """Return the options of a method with their defaults, on a line of their own."""
    shown = []
    for name, parameter in row.options.items():
        required = parameter.default is parameter.empty
        shown.append(f"`{name}`" if required else f"`{name}={parameter.default!r}`")
    return f"<br>Options: {', '.join(shown)}".replace("|", r"\|") if shown else ""


def absent_list(row: Method) -> str:
    """Return why a method has no other back ends."""
    return "".join(f"<br>No `{name}`: {reason}." for name, reason in row.absent.items())


def table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


class MethodTable(SphinxDirective):
    """One table per family, with the citations of every method."""

    def run(self) -> list[nodes.Node]:
        """Return the headings and tables."""
        parts = []
        for family in dict.fromkeys(row.family for row in METHODS.values()):
            rows = [
                [
                    f"`{row.name}`",
                    f"{row.title}.{option_list(row)}",
                    ", ".join(row.backends) + absent_list(row),
                    " ".join(f"{{cite:p}}`{key}`" for key in row.citations),
                ]
                for row in METHODS.values()
                if row.family == family
            ]
            header = ["method", "what it does", "back ends", "references"]
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
                    f"`{preset.method}`",
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
