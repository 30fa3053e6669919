"""Summaries of battles and of ballots: their numbers, systems and judges, and missing fields."""

import datetime

import numpy as np
from numpy.typing import NDArray

from bayesrank.battles import Battles
from bayesrank.views import Comparisons


def battle_facts(data: Comparisons) -> dict[str, str]:
    """Return a summary of battles, as text by subject.

    Parameters
    ----------
    data : Battles or Comparisons
        What was read.

    Returns
    -------
    dict of str

    Examples
    --------
    >>> battle_facts(Battles(["a", "a", "b"], ["b", "b", "c"], ["tie", "a", "c"]))["ties"]
    '1 of 3 (33.3 %)'
    """
    n_systems = len(data.systems)
    total, ties = data.totals.sum() / 2, data.ties.sum() / 2
    met = np.count_nonzero(np.triu(data.totals, 1))
    played = data.totals.sum(axis=1)
    fewest, most = int(played.argmin()), int(played.argmax())
    facts = {
        "systems": f"{n_systems:,}",
        "battles": f"{total:,.10g}",
        "ties": _share(ties, total),
        "pairs that met": _share(met, n_systems * (n_systems - 1) / 2),
        "most battles": f"{data.systems[most]} ({played[most]:,.10g})",
        "fewest battles": f"{data.systems[fewest]} ({played[fewest]:,.10g})",
    }
    return facts | _facts_of_rows(data) if isinstance(data, Battles) else facts


def ballot_facts(grades: NDArray[np.float64]) -> dict[str, str]:
    """Return a summary of ballots (system, ballot), as text by subject."""
    seen = ~np.isnan(grades)
    ranked = seen.sum(axis=0)
    places = [len(np.unique(column[known])) for column, known in zip(grades.T, seen.T, strict=True)]
    tied = np.count_nonzero(places < ranked)
    return {
        "systems": f"{len(grades):,}",
        "ballots": f"{len(ranked):,}",
        "systems on a ballot": f"{ranked.min():,} to {ranked.max():,}",
        "ballots with ties": _share(tied, len(ranked)),
    }


def _facts_of_rows(data: Battles) -> dict[str, str]:
    facts = {}
    if data.both_bad is not None:
        weight = 1.0 if data.weight is None else data.weight
        facts["both bad"] = _share(float((weight * data.both_bad).sum()), data.totals.sum() / 2)
    facts |= {f"{name}s": f"{number:,}" for name, number in data.units.items() if name != "battle"}
    if data.group is not None:
        facts["groups"] = f"{data.group.n_named:,}"
    if data.time is not None:
        ends = (datetime.datetime.fromtimestamp(each, datetime.UTC) for each in data.time[[0, -1]])
        facts["from, to"] = ", ".join(f"{end:%Y-%m-%d}" for end in ends)
        if copies := _count_copies(data):
            facts["equal to another, time included"] = _share(copies, len(data.first))
    if data.covariates:
        facts["covariates"] = ", ".join(data.covariates)
    facts["intervals by"] = data.default_unit(crossed=True)
    return facts


def _count_copies(data: Battles) -> int:
    """Return the number of rows that are equal to another in all columns of the log."""
    import pandas as pd

    if data.vote is not None:  # such as shares of one vote
        return 0
    labels = (data.group, data.prompt, data.judge)
    known = [data.time, data.first, data.second, data.outcome, data.both_bad, data.weight]
    known += [each.codes for each in labels if each is not None] + [*data.covariates.values()]
    table = pd.DataFrame(dict(enumerate(each for each in known if each is not None)))
    return int(table.duplicated().sum())


def _share(number: float | np.integer, total: float) -> str:
    return f"{number:,.10g} of {total:,.10g} ({100 * number / (total or 1.0):.1f} %)"
