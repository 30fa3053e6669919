"""Statements on the data of a leaderboard: the line above it and the notes below it."""

import json
from typing import TYPE_CHECKING

import numpy as np

from bayesrank.results.leaderboard import shrunk_towards, unranked_systems
from bayesrank.scale import UNIT, Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr

    from bayesrank.layout import Column


_LEGEND = {
    "lcb": "lower credible bound of the score",
    "lcb_rank": "rank by it",
    "rank_lower": "interval of each rank by itself",
    "joint_rank_lower": "intervals that hold the ranks of all systems at once",
    "arena_rank": "one more than the number of systems whose interval is above",
    "prob_best": "probability that no system is better",
    "group": "systems that share a letter are not distinguished by a joint decision for all pairs",
}

# Units that the target implies.
_IMPLIED = ("trial", "question", "battle", "ballot")


def run_line(result: "xr.DataTree") -> str:
    """Return how a result was computed and, if all systems have equally many, numbers of outcomes.

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
    >>> run_line(rank([[[1, 1, 0]], [[0, 1, 0]]], "avg", target="benchmark", draws=0))
    'avg (back end bootstrap, target benchmark, 3 outcomes on 1 question each, few)'
    """
    run = result.attrs
    name = run["method"] if run["preset"] == "none" else run["preset"]
    said = [f"back end {run['backend']}", f"target {run['target']}"]
    if run["unit"] not in _IMPLIED:
        said.append(f"unit {run['unit']}")
    scale = scale_text(result)
    if scale != "none":
        said.append(scale)
    ranking = result["ranking"].to_dataset()
    counts = {
        noun: int(ranking[variable].values[0])
        for variable, noun in (("n_outcomes", _noun(result)), ("n_questions", "question"))
        if _is_shared(ranking, variable)
    }
    if "question" in counts and counts["question"] == counts.get("outcome"):
        del counts["outcome"]  # one for each of them
    if counts:
        numbers = [_counted(number, noun) for noun, number in counts.items()]
        said.append(f"{' on '.join(numbers)} each")
        if _is_shared(ranking, "n_outcomes") and ranking["few"].values.all():
            said.append("few")
    return f"{name} ({', '.join(said)})"


def scale_text(result: "xr.DataTree") -> str:
    """Return the scale of the outcomes of a result in words, "none" without a scale."""
    ends = result.attrs.get("scale", "none")
    scale = UNIT if ends == "none" else Scale(*json.loads(ends))
    return "none" if scale == UNIT else f"scores {scale}"


def said_elsewhere(result: "xr.DataTree") -> set[str]:
    """Return the headers and names of columns that a terminal leaves out.

    Numbers that are equal for all systems are in the line above. If every outcome is of another
    question, the numbers of outcomes and of questions are the same. The rank of one system is 1.
    """
    ranking = result["ranking"].to_dataset()
    shared = {"n": "n_outcomes", "questions": "n_questions"}
    headers = {header for header, name in shared.items() if _is_shared(ranking, name)}
    if "n_questions" in ranking and (ranking["n_questions"] == ranking["n_outcomes"]).all():
        headers.add("questions")
    if ranking.sizes["system"] == 1:
        headers.update(("lcb_rank", "rank_lower", "prob_best", "group"))
    return headers


def _is_shared(ranking: "xr.Dataset", variable: str) -> bool:
    """Return whether all systems have the same whole number of something."""
    if variable not in ranking:
        return False
    values = ranking[variable].values
    return bool((values == values[0]).all() and values[0] == int(values[0]))


def notes(result: "xr.DataTree") -> list[str]:
    """Return the notes below a leaderboard: on shrunk scores, ``few`` and unranked systems."""
    said = effect_notes(result)
    towards = shrunk_towards(result)
    if towards is not None:
        said.append(shrunk_note(towards))
    ranking = result["ranking"].to_dataset()
    noun, early = _noun(result), np.False_
    if "preliminary" in ranking:
        early = ranking["preliminary"].values
        if early.any():
            said.append(f"preliminary: fewer than {_counted(ranking.attrs['min_votes'], noun)}.")
    # The mark of preliminary systems replaces the other one.
    if "few" in ranking and (ranking["few"].values & ~early).any():
        said.append(few_note(ranking.attrs["least_outcomes"], noun))
    return [*said, *unranked_notes(unranked_systems(result))]


def unranked_notes(names: "Sequence[str]") -> list[str]:
    """Return a note on the systems without an outcome.

    Examples
    --------
    >>> unranked_notes(["a", "b"])
    ['unranked, without any outcome: a, b.']
    """
    return [f"unranked, without any outcome: {', '.join(names)}."] if names else []


def legend(columns: "Sequence[Column]") -> str:
    """Return one line on the meaning of the columns of uncertainty in a leaderboard.

    It is empty if none of them is shown.
    """
    said = {each.header.replace("\n", " "): _LEGEND.get(each.name) for each in columns}
    return "; ".join(f"{header}: {meaning}" for header, meaning in said.items() if meaning)


def effect_notes(result: "xr.DataTree") -> list[str]:
    """Return the effects of the covariates of battles, a line for each, and their intervals."""
    point = result["point_estimate"].to_dataset() if "point_estimate" in result else {}
    if "effect" not in point:
        return []
    ranking = result["ranking"]
    said = []
    for name in point["effect"]["covariate"].values.astype(str):
        text = f"{name}: {float(point['effect'].sel(covariate=name)):+z.3f}"
        if "score_lower" in ranking:
            prob = float(ranking.attrs["ci_prob"])
            drawn = np.asarray(result["posterior"]["effect"].sel(covariate=name))
            low, high = np.quantile(drawn, (0.5 - prob / 2, 0.5 + prob / 2))
            text = f"{text} [{low:+z.3f}, {high:+z.3f}]"
        what = "for the system named first" if name == "position" else "per standard deviation"
        said.append(f"effect of {text} {what}")
    return said


def leader_notes(result: "xr.DataTree") -> list[str]:
    """Return a note for each leading system with few outcomes.

    Parameters
    ----------
    result : xarray.DataTree
        What :func:`bayesrank.rank` returned.

    Returns
    -------
    list of str
        A sentence for each.

    Examples
    --------
    >>> from bayesrank import rank
    >>> leader_notes(rank([[[1, 1, 0]], [[0, 1, 0]]], "avg", target="benchmark", draws=0))
    ['The lead of system 1 is based on 3 outcomes.']
    """
    ranking = result["ranking"].to_dataset()
    if "few" not in ranking:
        return []
    leaders = ranking.isel(system=np.flatnonzero((ranking["rank"] == 1) & ranking["few"]))
    return [
        f"The lead of {name} is based on {_counted(int(n), _noun(result))}."
        for name, n in zip(leaders["system"].values, leaders["n_outcomes"].values, strict=True)
    ]


def shrunk_note(towards: float, what: str = "The score") -> str:
    """Return a note on the prior mean towards which a score is shrunk.

    Examples
    --------
    >>> shrunk_note(0.5, "bayes").partition(", by")[0]
    'bayes is shrunk towards 0.5, the prior mean'
    """
    return (
        f"{what} is shrunk towards {towards:.3g}, the prior mean, by its Dirichlet prior; observed "
        "is not."
    )


def few_note(least: int, noun: str) -> str:
    """Return the definition of systems with few outcomes, battles or ballots.

    Examples
    --------
    >>> few_note(6, "battle")
    "few: fewer than 6 battles, or less than a quarter of the median system's battles."
    """
    questions = " or questions" * (noun == "outcome")
    return (
        f"few: fewer than {_counted(least, noun)}, or less than a quarter of the median system's "
        f"{noun}s{questions}."
    )


def _noun(result: "xr.DataTree") -> str:
    """Return what was counted: only outcomes are of questions."""
    if "n_questions" in result["ranking"]:
        return "outcome"
    return "ballot" if result.attrs["unit"] == "ballot" else "battle"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
