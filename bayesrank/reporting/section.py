"""What a section of a report is made of, before any layout."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bayesrank.reporting.page_figures import Figure


@dataclass(frozen=True)
class Table:
    """A table in HTML, and files of it to download: address by name.

    One that is folded opens on request, and on paper: always, or on narrow screens.
    """

    html: str
    caption: str
    files: dict[str, str] = field(default_factory=dict)
    folded: Literal["never", "narrow", "always"] = "never"


@dataclass(frozen=True)
class Reference:
    """A line of the bibliography."""

    text: str
    link: str | None


@dataclass(frozen=True)
class Section:
    """A section of the page; whatever is empty is left out.

    `facts` is a list of subjects with what is said of them; `below` are paragraphs that follow the
    tables; `folded` holds texts that open on request, by heading; `code` is text that is shown as
    it is. Two sections stand side by side where the screen has room, but for those that are `wide`.
    """

    name: str
    heading: str
    text: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    figures: "tuple[Figure, ...]" = ()
    references: tuple[Reference, ...] = ()
    below: tuple[str, ...] = ()
    folded: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    wide: bool = False
