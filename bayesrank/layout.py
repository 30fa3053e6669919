"""Tables as lines of text that fit a width: names shortened, sentences wrapped, columns left out.

Widths are in cells of a terminal: Chinese, Japanese and Korean characters and most emoji take two.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import takewhile, zip_longest
from typing import NamedTuple

from rich.cells import cell_len

from bayesrank.printable import printable

_GAP = "  "
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# Cells that names and sentences keep before a column that can be spared is left out.
_LEAST_NAME, _LEAST_SENTENCE = 18, 30
_LONGEST_NAME = 44
# How paths and addresses begin, which are never shortened.
_WHOLE = ("/", "~", ".", "http://", "https://")
# Stands before and after names in figures that are written from right to left.
LEFT_TO_RIGHT = "\N{LEFT-TO-RIGHT MARK}"
_JOINER, _EMOJI_STYLE = "\u200d", "\ufe0f"


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    header : str
        Its header.
    cells : list of str
        Its cells, one per row.
    align_right : bool, default False
        Whether cells end below one another, as numbers do.
    meaning : str, default ""
        What the column says, for readers who ask.
    keys : sequence, optional
        What it sorts by, where that is not the text.
    spare : int, default 0
        In what order a narrow terminal does without the column: the highest first, 0 never.
    text : {"name", "title", "sentence"}, default "name"
        How its cells give way: names in their middle, titles at their end, sentences by lines.
    styles : sequence of str, optional
        Style of each cell on a terminal, as Rich names them.
    name : str, default ""
        What it shows of a frame: the name of a column there.
    bars : sequence of (float, float, float), optional
        Low end, middle and high end of an interval that a page draws below each cell, as shares of
        the range of all.
    marks : sequence of float, optional
        A further mark on each bar, such as the lower bound.
    densities : sequence of str, optional
        Outline of a density above each bar, as a path of SVG in a box of 100 by 20.
    best : {"ascending", "descending"}, default "ascending"
        In which order the best come first.
    """

    header: str
    cells: list[str]
    align_right: bool = False
    meaning: str = ""
    keys: Sequence[object] | None = None
    spare: int = 0
    text: str = "name"
    styles: Sequence[str] | None = None
    name: str = ""
    bars: Sequence[tuple[float, float, float]] | None = None
    marks: Sequence[float] | None = None
    densities: Sequence[str] | None = None
    best: str = "ascending"

    @property
    def width(self) -> int:
        """Cells of its widest text."""
        return max(map(cell_len, (*self.header.split("\n"), *self.cells)))

    @property
    def least(self) -> int:
        """Cells that it needs."""
        if self.align_right:
            return self.width
        least = _LEAST_NAME if self.text == "name" else _LEAST_SENTENCE
        return min(self.width, max(least, cell_len(self.header)))

    def rows(self, places: Iterable[int]) -> "Column":
        """Return the column with some of its rows, in another order."""
        order = list(places)
        listed = ("cells", "keys", "styles", "bars", "marks", "densities")
        given = {name: getattr(self, name) for name in listed}
        moved = {name: [each[i] for i in order] for name, each in given.items() if each is not None}
        return self._replace(**moved)


def shorten(name: object, longest: int = _LONGEST_NAME) -> str:
    """Return a name whose middle is left out if it is too long, and that controls nothing.

    Parameters
    ----------
    name : object
        What is named.
    longest : int, default 44
        Cells that are kept at most.

    Returns
    -------
    str

    Examples
    --------
    >>> shorten("organisation/model-2026-11-21", 15)
    'organi…26-11-21'
    """
    text = printable(str(name), kept=LEFT_TO_RIGHT)
    if cell_len(text) <= longest:
        return text
    # Both ends tell: who made it, and which version it is.
    tail = (longest + 1) // 2
    return f"{_start(text, longest - tail - 1)}{_ELLIPSIS}{_end(text, tail)}"


def shorten_apart(names: Sequence[str], longest: int = _LONGEST_NAME) -> list[str]:
    """Shorten names so that different ones stay different, where the width allows that.

    Parameters
    ----------
    names : sequence of str
        What is named.
    longest : int, default 44
        Cells that are kept at most of each.

    Returns
    -------
    list of str
        Names that would look alike without their middle show where they begin to differ.

    Examples
    --------
    >>> shorten_apart(["organisation/model-a-instruct", "organisation/model-b-instruct"], 15)
    ['organ…a-instruc', 'organ…b-instruc']
    """
    distinct = dict.fromkeys(names)
    found = {name: shorten(name, longest) for name in distinct}
    for same in _look_alike(found):
        found |= _apart(same, longest)
    return [found[name] for name in names]


def fit_width(columns: Sequence[Column], width: int, *, shorten_names: bool = True) -> list[Column]:
    """Fit a table into a width.

    Columns that can be spared are left out while names and sentences have not enough room; the room
    that is left is shared by these.

    Parameters
    ----------
    columns : sequence of Column
        The table.
    width : int
        Most cells of a line.
    shorten_names : bool, default True
        Whether texts and headers give way; if not, only columns that can be spared do.

    Returns
    -------
    list of Column
        Columns whose texts are shortened, and whose sentences have line breaks. Wider still where
        numbers that cannot be spared are.

    Examples
    --------
    >>> table = [Column("system", ["a"]), Column("lcb rank", ["1"], spare=1)]
    >>> [column.header for column in fit_width(table, 10)]
    ['system']
    """
    kept = [each._replace(cells=list(map(printable, each.cells))) for each in columns]
    if shorten_names and _total(each.width for each in kept) > width:
        kept = [_wrap_header(each) if each.align_right else each for each in kept]
    while (most := max((column.spare for column in kept), default=0)) and width < _total(
        each.least if shorten_names else each.width for each in kept
    ):
        kept = [column for column in kept if column.spare != most]
    if not shorten_names:
        return kept
    flexible = [each.width for each in kept if not each.align_right]
    room = width - _total(each.width for each in kept) + sum(flexible)
    return [each if each.align_right else _narrow(each, _level(flexible, room)) for each in kept]


def to_text(columns: Sequence[Column]) -> str:
    """Return a table as aligned plain text.

    Parameters
    ----------
    columns : sequence of Column
        The table.

    Returns
    -------
    str
        A line for the headers and one or more per row; no line ends in blanks.

    Examples
    --------
    >>> ranks = Column("rank", ["1", "10"], align_right=True)
    >>> print(to_text([ranks, Column("system", ["a", "b"])]))
    rank  system
       1  a
      10  b
    """
    return "\n".join("".join(text for text, _ in line).rstrip() for line in table_lines(columns))


def table_lines(columns: Sequence[Column]) -> list[list[tuple[str, str]]]:
    """Return the lines of a table, each as texts with their styles.

    Parameters
    ----------
    columns : sequence of Column
        The table, whose cells may have line breaks.

    Returns
    -------
    list of list of (str, str)
        The header in bold first.
    """
    widths = [max(cell_len(part) for text in _texts(each) for part in text) for each in columns]
    lines = []
    for number, row in enumerate(zip(*map(_texts, columns), strict=True)):
        height = max(map(len, row))
        if not number:  # headers stand on their rows
            row = tuple([""] * (height - len(text)) + text for text in row)
        for parts in zip_longest(*row, fillvalue=""):
            line = []
            for place, (column, part, width) in enumerate(zip(columns, parts, widths, strict=True)):
                blank = " " * (width - cell_len(part))
                style = "bold" if not number else column.styles[number - 1] if column.styles else ""
                padded = blank + part if column.align_right else part + blank
                line += [(_GAP * (place > 0), ""), (padded, style)]
            lines.append(line)
    return lines


def wrap_words(text: str, width: int) -> list[str]:
    """Break a text between words, and shorten names that a line cannot hold.

    Parameters
    ----------
    text : str
        A paragraph.
    width : int
        Most cells of a line.

    Returns
    -------
    list of str
        The lines; paths and addresses that are wider than a line are broken.

    Examples
    --------
    >>> wrap_words("a line that is too long", 12)
    ['a line that', 'is too long']
    """
    lines = [""]
    for word in text.split():
        if not word.startswith(_WHOLE):
            word = shorten(word, width)
        while True:
            joined = f"{lines[-1]} {word}" if lines[-1] else word
            if cell_len(joined) <= width:
                lines[-1] = joined
                break
            if lines[-1]:
                lines.append("")
                continue
            lines[-1] = _start(word, width)
            word = word[len(lines[-1]) :]
            lines.append("")
    return lines


def _texts(column: Column) -> list[list[str]]:
    """Return the lines of the header and of each cell."""
    return [text.split("\n") for text in (column.header, *column.cells)]


def _total(widths: Iterable[int]) -> int:
    each = list(widths)
    return sum(each) + len(_GAP) * (len(each) - 1)


def _level(widths: Sequence[int], room: int) -> int:
    """Return the width to which the widest of some columns are cut so that all fit a room."""
    left = len(widths)
    for width in sorted(widths):
        if width * left > room:
            return max(room // left, 1)
        room -= width
        left -= 1
    return max(widths, default=0)


def _narrow(column: Column, width: int) -> Column:
    """Return a column of texts that is no wider than some cells, or than its header."""
    width = max(width, cell_len(column.header))
    if column.width <= width:
        return column
    if column.text == "sentence":
        cells = ["\n".join(wrap_words(cell, width)) for cell in column.cells]
    elif column.text == "title":
        cells = [_cut_title(cell, width) for cell in column.cells]
    else:
        cells = shorten_apart(column.cells, width)
    return column._replace(cells=cells)


def _cut_title(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return wrap_words(text, width - 1)[0] + _ELLIPSIS


def _wrap_header(column: Column) -> Column:
    """Break the header of numbers where it is wider than they are."""
    width = max(map(cell_len, (*column.header.split(), *column.cells)))
    return column._replace(header="\n".join(wrap_words(column.header, width)))


def _look_alike(shown: dict[str, str]) -> list[list[str]]:
    """Return the groups of names that are shown alike."""
    groups = defaultdict(list)
    for name, short in shown.items():
        groups[short].append(name)
    return [same for same in groups.values() if len(same) > 1]


def _apart(names: Sequence[str], longest: int) -> dict[str, str]:
    """Shorten names that begin alike so that they show where they begin to differ."""
    # Of all names, the first and the last in order share the least.
    ends = zip(min(names), max(names), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    found = {name: _from_difference(name, shared, longest) for name in names}
    for same in _look_alike(found):
        if len(same) < len(names):
            found |= _apart(same, longest)
    return found


def _from_difference(name: str, shared: int, longest: int) -> str:
    """Return a long name by its start and by what follows the part that it shares with others."""
    rest = name[shared:]
    start = _start(name[:shared], max(longest // 3, longest - 1 - cell_len(rest)))
    return f"{start}{_ELLIPSIS}{_start(rest, longest - 1 - cell_len(start))}"


def _start(text: str, width: int) -> str:
    """Return the longest start of a text that takes no more than some cells."""
    kept = min(len(text), width)
    while kept and (cell_len(text[:kept]) > width or _divides(text, kept)):
        kept -= 1
    return text[:kept]


def _end(text: str, width: int) -> str:
    """Return the longest end of a text that takes no more than some cells."""
    first = max(len(text) - width, 0)
    while first < len(text) and (cell_len(text[first:]) > width or _divides(text, first)):
        first += 1
    return text[first:]


def _divides(text: str, place: int) -> bool:
    """Return whether a cut at a place would divide what is drawn as one character."""
    if place >= len(text):
        return False
    following = text[place]
    joined = following in (_JOINER, _EMOJI_STYLE) or text[place - 1 : place] == _JOINER
    return joined or unicodedata.combining(following) > 0
