"""What notebooks show of data, of leaderboards and of checks."""

import math
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from bayesrank.layout import Column
from bayesrank.reporting.data_summary import summarize_responses
from bayesrank.reporting.evidence import shrunk_note, unranked_notes
from bayesrank.reporting.styled import to_html
from bayesrank.reporting.tables import finding_columns, frame_columns
from bayesrank.results.leaderboard import POINT_COLUMNS, ordered_columns

if TYPE_CHECKING:
    import pandas as pd

    from bayesrank.checking import Report
    from bayesrank.responses import Responses

# Rows that a notebook shows before it leaves out the middle.
_MOST_ROWS = 60


def responses_html(data: "Responses") -> str:
    """Return data for a notebook: what was observed, and the mean grade of every system.

    Parameters
    ----------
    data : Responses
        What to show.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> "<td>4 of 4 possible</td>" in responses_html(Responses([[[1, 1]], [[0, 1]]]))
    True
    """
    facts = summarize_responses(data).facts()
    rows = "".join(
        f'<tr><th scope="row">{escape(subject)}</th><td>{escape(fact)}</td></tr>'
        for subject, fact in facts.items()
    )
    parts = [f"<table><caption>{escape(repr(data))}</caption>{rows}</table>"]
    if data.scale is not None or data.weights is not None:
        parts.append(_systems_html(data))
    return "".join(parts)


def leaderboard_html(frame: "pd.DataFrame") -> str | None:
    """Return a leaderboard for a notebook, rounded to what its uncertainty supports.

    Parameters
    ----------
    frame : pandas.DataFrame
        What :func:`bayesrank.leaderboard` returned, with ``ci_prob`` and ``lcb`` in its attrs.

    Returns
    -------
    str or None
        HTML; None for a part of a leaderboard, or for more rows than a notebook should show, which
        are shown as any other frame.
    """
    names = tuple(frame.columns)
    # Battles have no questions, and older results no numbers of outcomes.
    columns = ordered_columns(names)
    known = [each for each in columns if each in names or each not in POINT_COLUMNS]
    without_draws = [each for each in known if each in (*POINT_COLUMNS, "preliminary")]
    whole = {"rank", "system", "score"} <= set(names) and list(names) in (known, without_draws)
    stated = list(names) == without_draws or {"ci_prob", "lcb"} <= set(frame.attrs)
    if not whole or not stated or not 0 < len(frame) <= _MOST_ROWS:
        return None
    ci_prob, lcb = (frame.attrs.get(name, math.nan) for name in ("ci_prob", "lcb"))
    columns = frame_columns(frame, ci_prob=ci_prob, lcb=lcb)
    towards = frame.attrs.get("shrunk_towards")
    notes = [] if towards is None else [shrunk_note(towards)]
    notes += unranked_notes(list(frame.loc[frame["rank"].isna(), "system"]))
    return _table_html(columns, "Leaderboard") + "".join(f"<p>{escape(note)}</p>" for note in notes)


def check_html(report: "Report") -> str:
    """Return what a check found for a notebook.

    Parameters
    ----------
    report : Report
        What :func:`bayesrank.checking.check` returned.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> from bayesrank.checking import Finding, Report
    >>> ">Few draws.</td>" in check_html(Report((Finding("sampling", "bad", "Few draws."),)))
    True
    """
    return _table_html(finding_columns(report), "What the checks found")


def _systems_html(data: "Responses") -> str:
    trials = data.trials
    # A system is as good as its mean over the questions that it was seen on.
    seen = np.maximum((trials > 0).sum(axis=1), 1)
    mean = np.nansum(data.grades, axis=1) / seen
    order = np.argsort(-mean, kind="stable")[:_MOST_ROWS]
    columns = [
        Column("system", [data.systems[i] for i in order]),
        Column("mean grade", [f"{value:.3f}" for value in data.in_units(mean)[order]], True),
        Column("outcomes", [f"{trials[i].sum():,}" for i in order], True),
    ]
    rest = len(mean) - len(order)
    caption = "Systems by mean grade" + (f", and {rest} more" if rest else "")
    return _table_html(columns, caption)


def _table_html(columns: list[Column], caption: str) -> str:
    """Return a table without the style sheet and the script of a page."""
    table = to_html(columns, name="", caption=caption, sortable=False)
    # Browsers show titles by themselves.
    table = table.replace(" data-tip=", " title=")
    return table.replace(' class="number"', ' style="text-align: right"')
