"""Tables in LaTeX and HTML."""

import re

from bayesrank.layout import Column
from bayesrank.reporting.styled import to_html, to_latex

COLUMNS = [
    Column("rank", ["1", "2"], True, "Place; <b>best</b> first."),
    Column("system", ["a_b & c", 'd<e>"f"']),
    Column("Pr(best)", [">0.99", "<0.01"], True, keys=[0.999, 0.001]),
]


def test_latex_is_a_booktabs_table() -> None:
    assert to_latex(COLUMNS).splitlines() == [
        r"\begin{tabular}{rlr}",
        r"\toprule",
        r"rank & system & Pr(best) \\",
        r"\midrule",
        r"1 & a\_b \& c & \textgreater{}0.99 \\",
        r"2 & d\textless{}e\textgreater{}" + r'"f" & \textless{}0.01 \\',
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_latex_with_a_caption_floats() -> None:
    lines = to_latex(COLUMNS, caption="Ranks", label="tab:ranks").splitlines()
    assert lines[:4] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Ranks}",
        r"\label{tab:ranks}",
    ]
    assert lines[-2:] == [r"\end{tabular}", r"\end{table}"]


def test_html_escapes_what_it_shows() -> None:
    table = to_html(COLUMNS, name="ranks", caption="A < B")
    assert "<caption>A &lt; B</caption>" in table
    assert 'data-tip="Place; &lt;b&gt;best&lt;/b&gt; first."' in table
    assert "<bdi>d&lt;e&gt;&#34;f&#34;</bdi></th>" in table


def test_html_says_what_heads_columns_and_rows_and_what_they_sort_by() -> None:
    table = to_html(COLUMNS, name="ranks", caption="Ranks")
    assert re.findall(r'<th scope="col"[^>]*>([^<]+)<', table) == ["rank", "system", "Pr(best)"]
    assert len(re.findall(r'<th scope="row"', table)) == 2
    assert re.findall(r'data-key="([\d.]+)"', table) == ["1", "0.999", "2", "0.001"]


def test_columns_of_one_name_stay_apart() -> None:
    twice = [Column("elo", ["1"], True), Column("elo", ["2"], True)]
    assert re.findall(r">(\d)</td>", to_html(twice, name="x", caption="")) == ["1", "2"]
    assert r"1 & 2 \\" in to_latex(twice)
