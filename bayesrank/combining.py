"""Parts of responses, and responses of parts: the keywords of what comes out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.errors import DataError
from bayesrank.response_views import ResponseViews
from bayesrank.validation import MISSING

type Renaming = Mapping[str, str] | Callable[[str], str] | None

_APPEND = "join repeats with append_trials"


def choose(
    data: ResponseViews,
    systems: Iterable[str] | str | None,
    questions: Iterable[str] | str | None,
    groups: Iterable[str] | str | None,
    trials: ArrayLike | slice | None,
) -> dict[str, Any]:
    """Return the keywords of part of some responses, see :meth:`bayesrank.Responses.select`."""
    rows = _places("systems", data.systems, systems)
    columns = _places("questions", data.questions, questions)
    if groups is not None:
        known = data.groups or ()
        kept = {known[place] for place in _places("groups", known, groups)}
        columns = [place for place in columns if known[place] in kept]
    if not rows or not columns:
        raise DataError("select must leave a system and a question; got none that are in all")
    every = np.arange(data.shape[2])
    try:
        chosen = trials if isinstance(trials, slice) else np.asarray(trials)
        turns = every if trials is None else every[chosen]
    except IndexError as error:
        raise DataError(
            f"trials must be positions below {data.shape[2]}; got {trials!r}"
        ) from error
    values = data.values[np.ix_(rows, columns, np.atleast_1d(turns))]
    earlier = data.prior_outcomes
    if earlier is not None:
        # With three axes, whichever sizes they have.
        shared = earlier.ndim == 2
        earlier = earlier[np.newaxis, columns] if shared else earlier[np.ix_(rows, columns)]
    return _keywords(data) | {
        "outcomes": values,
        "systems": [data.systems[row] for row in rows],
        "questions": [data.questions[column] for column in columns],
        "groups": None if data.groups is None else [data.groups[each] for each in columns],
        "prior_outcomes": earlier,
    }


def join(parts: Sequence[ResponseViews]) -> dict[str, Any]:
    """Return the keywords of joined responses, see :meth:`bayesrank.Responses.concat`."""
    if not parts:
        raise DataError("parts must hold at least one Responses; got none")
    return _together(parts, [0] * len(parts))


def append(first: ResponseViews, second: ResponseViews) -> dict[str, Any]:
    """Return the keywords of more trials, see :meth:`bayesrank.Responses.append_trials`."""
    return _together([first, second], [0, first.shape[2]])


def renamed(
    data: ResponseViews, systems: Renaming, questions: Renaming, groups: Renaming
) -> dict[str, Any]:
    """Return the keywords under other labels, see :meth:`bayesrank.Responses.rename`."""
    return _keywords(data) | {
        "outcomes": data.values,
        "systems": _labels("systems", data.systems, systems),
        "questions": _labels("questions", data.questions, questions),
        "groups": None if data.groups is None else _labels("groups", data.groups, groups),
        "prior_outcomes": data.prior_sets,
    }


def _keywords(data: ResponseViews) -> dict[str, Any]:
    """Return the keywords that the parts of some responses share."""
    return {**data.declared, "paired": data.paired}


def _places(argument: str, known: Sequence[str], chosen: Iterable[str] | str | None) -> list[int]:
    """Return where the chosen labels are, in the order in which they are named."""
    if chosen is None:
        return list(range(len(known)))
    places: dict[int, None] = {}
    for label in [chosen] if isinstance(chosen, str) else chosen:
        found = [place for place, name in enumerate(known) if name == label]
        found = found or [p for p, name in enumerate(known) if fnmatchcase(name, str(label))]
        if not found:
            raise DataError(
                f"{argument} must be among {', '.join(dict.fromkeys(known)) or 'none'}; got "
                f"{label!r}"
            )
        places.update(dict.fromkeys(found))
    return list(places)


def _labels(argument: str, known: Sequence[str], renaming: Renaming) -> list[str]:
    if renaming is None:
        return list(known)
    if callable(renaming):
        return [str(renaming(label)) for label in known]
    unknown = [label for label in renaming if label not in known]
    if unknown:
        raise DataError(f"{argument} must be among {', '.join(known)}; got {unknown[0]!r}")
    return [str(renaming.get(label, label)) for label in known]


def _together(parts: Sequence[ResponseViews], offsets: Sequence[int]) -> dict[str, Any]:
    """Lay parts into one array, each from its own first trial on."""
    first = parts[0]
    _check_alike(parts)
    systems = _union(part.systems for part in parts)
    questions = _union(part.questions for part in parts)
    n_trials = max(offset + part.shape[2] for part, offset in zip(parts, offsets, strict=True))
    shape = (len(systems), len(questions), n_trials)
    scores = first.scale is not None
    values: NDArray[Any] = (
        np.full(shape, np.nan) if scores else np.full(shape, MISSING, dtype=np.int8)
    )
    taken = np.zeros(shape, dtype=bool)
    for part, offset in zip(parts, offsets, strict=True):
        place = np.ix_(
            [systems[name] for name in part.systems],
            [questions[name] for name in part.questions],
            np.arange(offset, offset + part.shape[2]),
        )
        both = taken[place] & part.observed
        if both.any():
            row, column, _ = np.argwhere(both)[0]
            raise DataError(
                "parts must have different systems or questions; got two outcomes of "
                f"{part.systems[row]!r} for {part.questions[column]!r}: {_APPEND}, or rename one"
            )
        values[place] = np.where(part.observed, part.values, values[place])
        taken[place] |= part.observed
    return _keywords(first) | {
        "outcomes": values,
        "systems": list(systems),
        "questions": list(questions),
        "groups": _groups(parts, questions),
        "paired": all(part.paired for part in parts),
        "prior_outcomes": _earlier(parts, systems, questions),
    }


def _union(labels: Iterable[Sequence[str]]) -> dict[str, int]:
    names = dict.fromkeys(name for each in labels for name in each)
    return {name: place for place, name in enumerate(names)}


def _check_alike(parts: Sequence[ResponseViews]) -> None:
    """Raise unless all parts have outcomes of one kind."""
    kinds = []
    for part in parts:
        weights = None if part.weights is None else tuple(part.weights.tolist())
        number = None if part.scale is not None else part.n_categories
        kinds.append((part.scale, weights, number))
    if len(set(kinds)) > 1:
        raise DataError(
            "parts must have outcomes of one kind; got different scale, weights or categories: "
            "name them when the data are read"
        )


def _groups(parts: Sequence[ResponseViews], questions: Mapping[str, int]) -> list[str] | None:
    grouped = [part for part in parts if part.groups is not None]
    if not grouped:
        return None
    found: dict[str, str] = {}
    for part in grouped:
        for question, group in zip(part.questions, part.groups or (), strict=True):
            if found.setdefault(question, group) != group:
                raise DataError(
                    f"groups must be the same in all parts; got {found[question]!r} and {group!r} "
                    f"for {question!r}"
                )
    lacking = [question for question in questions if question not in found]
    if lacking:
        raise DataError(
            f"groups must be given in all parts or in none; got none for {lacking[0]!r}"
        )
    return [found[question] for question in questions]


def _earlier(
    parts: Sequence[ResponseViews], systems: Mapping[str, int], questions: Mapping[str, int]
) -> NDArray[np.int8] | None:
    """Return the earlier outcomes of all parts, of as many sets as the largest has."""
    known = [part for part in parts if part.prior_sets is not None]
    if not known:
        return None
    depth = max(part.prior_sets.shape[2] for part in known if part.prior_sets is not None)
    earlier = np.full((len(systems), len(questions), depth), MISSING, dtype=np.int8)
    for part in known:
        sets = part.prior_sets
        if sets is None:
            continue
        place = np.ix_(
            [systems[name] for name in part.systems],
            [questions[name] for name in part.questions],
            np.arange(sets.shape[2]),
        )
        own = np.broadcast_to(sets, (len(part.systems), *sets.shape[1:]))
        earlier[place] = np.where(own != MISSING, own, earlier[place])
    return earlier
