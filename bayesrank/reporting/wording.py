"""Sentences on a result."""

import json
import re
from typing import TYPE_CHECKING

import numpy as np

from bayesrank.printable import listing
from bayesrank.reporting.evidence import scale_text
from bayesrank.results.leaderboard import ranking_of
from bayesrank.results.numbers import probability_text

if TYPE_CHECKING:
    import xarray as xr

# Largest number of systems to list by name; with more only their number is shown.
_MOST_NAMED = 3

_IMPERATIVE = re.compile(r"^(Score systems by (their |the )?|Build (the |an? )?)")
_ASSIGNMENT = re.compile(r"\b([a-z]\w*)=(['\"]?)([^\s'\",;:()]*[^\s'\",;:().])\2")

_TARGETS = {
    "benchmark": "the ranking is for these questions; only the trials vary",
    "population": "the questions are a sample of a population; questions and trials vary",
    "battles": "the battles are a sample of a population of battles",
}


def headline(result: "xr.DataTree") -> str:
    """Return which systems lead, and whether they are resolved from the others.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.

    Returns
    -------
    str

    Examples
    --------
    >>> from bayesrank import rank
    >>> sentence = headline(rank([[[1, 1, 1, 1]], [[0, 0, 0, 0]]], "avg", random_seed=1))
    >>> sentence.partition(" at ")[0]
    'system 1 leads and is resolved from every other system'
    """
    ranking = ranking_of(result)
    first = np.flatnonzero(ranking["rank"].values == 1)
    names = ranking["system"].values[first].tolist()
    if ranking.sizes["system"] == 1:
        return f"{names[0]} is the only system."
    if len(names) == ranking.sizes["system"]:
        return "All systems have the same score."
    lead = f"{listing(names)} {'leads' if len(names) == 1 else 'lead'}"
    if "prob_best" not in ranking:
        return f"{lead}. Without draws, Pr(best) is unknown."
    chances = ranking["prob_best"].values[first]
    best, most = (probability_text(float(each)) for each in (chances.min(), chances.max()))
    best = best if best == most else f"{best} to {most}"
    best = best if best[0] in "<>" else f"= {best}"
    if len(names) > 1:
        return f"{lead} with equal scores: no winner should be declared; Pr(best) {best}."
    order = np.argsort(ranking["rank"].values, kind="stable")[1:]
    unresolved = order[~ranking["resolved"].values[first[0], order]]
    open_ones = ranking["system"].values[unresolved].tolist()
    prob = f"{100 * ranking.attrs['ci_prob']:g} % in a joint decision for all pairs"
    if not open_ones:
        return f"{lead} and is resolved from every other system at {prob}; Pr(best) {best}."
    named = listing(open_ones) if len(open_ones) <= _MOST_NAMED else f"{len(open_ones)} systems"
    return (
        f"{lead}, but no winner should be declared: it is not resolved from {named} at {prob}; "
        f"Pr(best) {best}."
    )


def method_title(result: "xr.DataTree") -> str:
    """Return the title of the method of a result.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.

    Returns
    -------
    str
        The title of the method; its name if it is not in the catalogue.

    Examples
    --------
    >>> from bayesrank import rank
    >>> method_title(rank([[[1, 1, 1, 1]], [[0, 0, 0, 0]]], "avg", random_seed=1))
    'Mean grade over questions'
    """
    from bayesrank.catalog import METHODS

    row = METHODS.get(result.attrs["method"])
    if row is None:
        return str(result.attrs["method"])
    words = _IMPERATIVE.sub("", row.title)
    return words[0].upper() + words[1:]


def plain_advice(sentence: str) -> str:
    """Return a sentence without assignments of Python.

    Examples
    --------
    >>> plain_advice("Give the scores a proper prior: backend='map'.")
    'Give the scores a proper prior: setting “backend” to “map”.'
    """
    return _ASSIGNMENT.sub(r"setting “\1” to “\3”", sentence)


def settings(result: "xr.DataTree") -> dict[str, str]:
    """Return the settings of a result as they are typed, by name."""
    run, options = result.attrs, json.loads(result.attrs["options"])
    chosen = ", ".join(f"{name} = {value}" for name, value in options.items())
    posterior = result["posterior"].sizes
    n_draws = posterior["chain"] * posterior["draw"]
    facts = {
        "method": run["method"],
        "published configuration": run["preset"] if run["preset"] != run["method"] else "none",
        "back end": run["backend"],
        "prior": run["prior"],
        "options": chosen or "defaults",
        "target": f"{run['target']}: {_TARGETS.get(run['target'], 'defined by its author')}",
        "unit": run.get("unit", "none"),
        "calibration": run["calibration"],
        "outcomes": scale_text(result),
        "draws": f"{n_draws:,}" if n_draws > 1 else "none, only the point estimate",
        "random seed": run["random_seed"],
        "computed at": run["created_at"],
    }
    return {subject: text for subject, text in facts.items() if text != "none"}


def versions(result: "xr.DataTree") -> dict[str, str]:
    """Return the versions of the software that made a result."""
    return json.loads(result.attrs["versions"])
