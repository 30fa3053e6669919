"""Tables as text: columns for people, full precision for programs."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from markdown_it import MarkdownIt  # which Rich needs

from bayesrank.layout import Column, to_text
from bayesrank.reporting.plain_tables import plain_columns, to_json, to_markdown
from bayesrank.reporting.tables import leaderboard_columns


def result(scale: float = 1.0, *, draws: bool = True) -> xr.DataTree:
    """Return a result of two systems with intervals of 0.03 times `scale`."""
    values = {"rank": [2, 1], "score": scale * np.array([0.61234, 0.71234])}
    if draws:
        values |= {
            "score_lower": scale * np.array([0.59734, 0.69734]),
            "score_upper": scale * np.array([0.62734, 0.72734]),
            "lcb": scale * np.array([0.605, 0.705]),
            "lcb_rank": [2, 1],
            "rank_lower": [1, 1],
            "rank_upper": [2, 1],
            "prob_best": [0.004, 0.996],
            "expected_rank": [1.996, 1.004],
        }
    ranking = xr.Dataset(
        {name: ("system", value) for name, value in values.items()},
        {"system": ["a", "b"]},
        attrs={"ci_prob": 0.9, "lcb": 0.05},
    )
    return xr.DataTree.from_dict({"ranking": ranking})


def test_leaderboard_for_people() -> None:
    assert to_text(leaderboard_columns(result())).splitlines() == [
        "rank  system  score    90% interval  lcb 5%  lcb rank  90% ranks  Pr(best)",
        "   1  b       0.712  [0.697, 0.727]   0.705         1          1     >0.99",
        "   2  a       0.612  [0.597, 0.627]   0.605         2        1-2     <0.01",
    ]


def test_narrow_terminals_lose_the_lower_bound_first_and_pages_sort_high_values_first() -> None:
    columns = {column.name: column for column in leaderboard_columns(result())}
    spare = sorted(columns, key=lambda name: -columns[name].spare)
    assert spare[:3] == ["lcb_rank", "lcb", "prob_best"]
    assert [name for name in columns if columns[name].spare] == ["lcb", "lcb_rank", "prob_best"]
    descending = [name for name, column in columns.items() if column.best == "descending"]
    assert descending == ["score", "score_lower", "lcb", "prob_best"]


def test_leaderboard_without_draws_has_three_columns() -> None:
    headers = [column.header for column in leaderboard_columns(result(draws=False))]
    assert headers == ["rank", "system", "score"]


@pytest.mark.parametrize(
    ("scale", "shown"), [(1e-3, "0.000712"), (1.0, "0.712"), (2000.0, "1425"), (1e6, "712340")]
)
def test_scores_show_the_digits_that_their_uncertainty_supports(scale: float, shown: str) -> None:
    assert leaderboard_columns(result(scale))[2].cells[0] == shown


def test_scores_that_are_all_equal_are_shown() -> None:
    tree = result(draws=False)
    tree["ranking"] = tree["ranking"].to_dataset().assign(score=("system", [0.5, 0.5]))
    assert leaderboard_columns(tree)[2].cells == ["0.500", "0.500"]


def test_text_has_no_trailing_blanks() -> None:
    assert to_text([Column("system", ["a", "long name"])]) == "system\na\nlong name"


def test_markdown_keeps_a_bar_in_a_name() -> None:
    assert to_markdown([Column("system", ["a|b"])]).splitlines()[-1] == r"| a\|b |"


@pytest.mark.parametrize(
    "name",
    [
        "<b>bold</b> & co",
        "R&amp;D",
        "*starred*",
        "model*1*|pipe",
        "_private_ and snake_case__name__",
        "[name](http://a.example)",
        "`code`",
        "~~old~~",
        "a\\*b\\|c\\",
        "[0.91, 1.00]",
    ],
)
def test_markdown_shows_names_as_they_are(name: str) -> None:
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    cells = [
        each for each in reader.parse(to_markdown([Column("system", [name])])) if each.children
    ]
    _, cell = cells
    assert [each.type for each in cell.children or ()] in (["text"], ["text", "text"])
    assert "".join(each.content for each in cell.children or ()) == name


def test_json_has_null_for_what_does_not_exist() -> None:
    frame = pd.DataFrame({"system": ["\u00e4"], "rank": [1], "score": [0.1 + 0.2], "lcb": [np.nan]})
    assert json.loads(to_json(frame)) == [
        {"system": "\u00e4", "rank": 1, "score": 0.1 + 0.2, "lcb": None}
    ]


def test_means_of_counts_are_no_fractions_of_a_thousandth():
    table = pd.DataFrame(
        {
            "trials": [2.0, 5 / 3],
            "further_trials_needed": [12000.0, np.inf],
            "superiority_then": [0.9996, 0.749],
            "observed_mean": [0.5, 0.25],
        }
    )
    found = {column.header: column.cells for column in plain_columns(table)}
    assert found == {
        "trials": ["2", "1.7"],
        "further trials needed": ["12,000", "inf"],
        "superiority then": [">0.99", "0.75"],
        "observed": ["0.500", "0.250"],
    }
