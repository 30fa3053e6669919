"""Tables that fit the width of a terminal."""

import numpy as np
import pytest
from rich.cells import cell_len

from bayesrank.layout import (
    Column,
    fit_width,
    shorten,
    shorten_apart,
    to_text,
    wrap_words,
)

NAMES = [
    "meta-llama/Llama-3.1-405B-Instruct-FP8-dynamic-quantised-2025-01-01",
    "meta-llama/Llama-3.1-405B-Instruct-FP8-dynamic-quantised-2025-02-01",
    "\u901a\u4e49\u5343\u95ee-72B-\u5bf9\u8bdd-\u8d85\u957f\u540d\u5b57-\u6d4b\u8bd5\u7248\u672c",
    "\u0646\u0645\u0648\u0630\u062c \u0627\u0644\u0644\u063a\u0629 \u0627\u0644\u0639\u0631\u0628",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 family " * 4,
    "short",
]


def table() -> list[Column]:
    rows = len(NAMES)
    return [
        Column("rank", [str(place + 1) for place in range(rows)], align_right=True),
        Column("system", NAMES),
        Column("score", ["0.123"] * rows, align_right=True),
        Column("further trials needed", ["12"] * rows, align_right=True),
        Column("least", ["0.1"] * rows, align_right=True, spare=2),
        Column("finding", ["What was found, in a sentence."] * rows, text="sentence"),
    ]


@pytest.mark.parametrize("width", [60, 70, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = to_text(fit_width(table(), width))
    assert max(map(cell_len, text.splitlines())) <= width


def test_a_table_that_fits_stays_as_it_is() -> None:
    assert fit_width(table(), 300) == table()


@pytest.mark.parametrize("width", [60, 80, 100])
def test_different_names_stay_different(width: int) -> None:
    (names,) = (each.cells for each in fit_width(table(), width) if each.header == "system")
    assert len(set(names)) == len(NAMES)


def test_piped_names_are_whole_and_columns_that_can_be_spared_go() -> None:
    kept = fit_width(table(), 100, shorten_names=False)
    assert [each.header for each in kept] == [
        each.header for each in table() if each.header != "least"
    ]
    assert kept[1].cells == NAMES


def test_numbers_are_never_cut() -> None:
    numbers = Column("score", ["0.123456789"], align_right=True)
    assert fit_width([numbers], 5)[0].cells == numbers.cells


@pytest.mark.parametrize("width", range(4, 30))
@pytest.mark.parametrize("name", NAMES)
def test_shortened_names_fit_and_keep_both_ends(name: str, width: int) -> None:
    short = shorten(name, width)
    assert cell_len(short) <= width
    start, ellipsis, end = short.partition("\N{HORIZONTAL ELLIPSIS}")
    assert name.startswith(start)
    assert name.endswith(end)
    assert (short == name) == (not ellipsis)


def test_a_character_of_several_code_points_is_not_divided() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    for width in range(2, 12):
        for part in shorten(family * 5, width).split("\N{HORIZONTAL ELLIPSIS}"):
            assert part.replace(family, "") == ""


def test_names_that_differ_in_the_middle_alone_show_it() -> None:
    rng = np.random.default_rng(4)
    stem, rest = "organisation/" * 3, "-instruct" * 4
    middles = {"".join(rng.choice(list("abc"), 6)) for _ in range(40)}
    names = [f"{stem}{middle}{rest}" for middle in middles]
    short = shorten_apart(names, 24)
    assert len(set(short)) == len(names)
    assert max(map(cell_len, short)) <= 24


def test_sentences_break_between_words_and_lose_none() -> None:
    text = "Every system has outcomes on the same questions, and not all alike."
    lines = wrap_words(text, 20)
    assert max(map(len, lines)) <= 20
    assert " ".join(lines) == text


def test_long_names_are_shortened_in_sentences_and_paths_are_not() -> None:
    name, path = (
        "organisation/a-very-long-name-of-a-model",
        "./results/a-long-folder-of-logs/file.csv",
    )
    lines = wrap_words(f"{name} leads in {path}", 24)
    assert max(map(len, lines)) <= 24
    assert "\N{HORIZONTAL ELLIPSIS}" in lines[0]
    assert path in "".join(lines[1:])


def test_titles_end_where_they_are_cut() -> None:
    (column,) = fit_width([Column("what", ["Score systems by their mean"], text="title")], 20)
    assert column.cells == ["Score systems by\N{HORIZONTAL ELLIPSIS}"]
