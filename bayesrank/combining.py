"""Parts of responses, and responses of parts: methods of :class:`bayesrank.Responses`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.errors import DataError
from bayesrank.outcomes import cut
from bayesrank.validation import MISSING

if TYPE_CHECKING:
    from bayesrank.responses import Responses

type Renaming = Mapping[str, str] | Callable[[str], str] | None

_APPEND = "join repeats with append_trials"


def categorize(
    self: "Responses", edges: ArrayLike, *, weights: ArrayLike | None = None
) -> "Responses":
    """Turn scores into ordered categories.

    Parameters
    ----------
    edges : array_like of shape (category - 1,)
        Increasing lower bounds of categories 1, 2, ... in the units of the scores; a score
        equal to an edge belongs to the category above it.
    weights : array_like of shape (category,), optional
        Worth of each category; (0, 1) by default for one edge.

    Returns
    -------
    Responses

    Raises
    ------
    DataError
        If the outcomes are categories already, or the edges are not increasing numbers.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> Responses([[0.2, 0.7]]).categorize([0.5]).outcomes[0, :, 0]
    array([0, 1], dtype=int8)
    """
    if self.scores is None:
        raise DataError("edges must be None for categories; got outcomes that are no scores")
    earlier = self.prior_sets
    outcomes = cut(self.values, self.observed, edges)
    # The categories are declared by their edges.
    number = np.size(edges) + 1 if weights is None else None
    return type(self)(
        outcomes,
        systems=self.systems,
        questions=self.questions,
        weights=weights,
        categories=number,
        groups=self.groups,
        # Earlier outcomes 0 and 1 are the scores 0 and 1.
        prior_outcomes=None if earlier is None else cut(earlier, earlier != MISSING, edges),
        paired=self.paired,
    )


def select(
    self: "Responses",
    *,
    systems: Iterable[str] | str | None = None,
    questions: Iterable[str] | str | None = None,
    groups: Iterable[str] | str | None = None,
    trials: ArrayLike | slice | None = None,
) -> "Responses":
    """Keep some systems, questions or trials, in the order in which they are named.

    Parameters
    ----------
    systems, questions, groups : str or iterable of str, optional
        Labels, or patterns such as ``"gpt-*"``; all by default.
    trials : slice or array_like of int, optional
        Positions of trials.

    Returns
    -------
    Responses

    Raises
    ------
    DataError
        If a label is unknown, or nothing is left.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> data = Responses([[1, 0], [1, 1]], systems=["a", "b"], groups=["x", "y"])
    >>> data.select(systems="b", groups=["y"]).outcomes.tolist()
    [[[1]]]
    """
    rows = _places("systems", self.systems, systems)
    columns = _places("questions", self.questions, questions)
    if groups is not None:
        known = self.groups or ()
        kept = {known[place] for place in _places("groups", known, groups)}
        columns = [place for place in columns if known[place] in kept]
    if not rows or not columns:
        raise DataError("select must leave a system and a question; got none that are in all")
    every = np.arange(self.shape[2])
    try:
        chosen = trials if isinstance(trials, slice) else np.asarray(trials)
        turns = every if trials is None else every[chosen]
    except IndexError as error:
        raise DataError(
            f"trials must be positions below {self.shape[2]}; got {trials!r}"
        ) from error
    values = self.values[np.ix_(rows, columns, np.atleast_1d(turns))]
    earlier = self.prior_outcomes
    if earlier is not None:
        # With three axes, whichever sizes they have.
        shared = earlier.ndim == 2
        earlier = earlier[np.newaxis, columns] if shared else earlier[np.ix_(rows, columns)]
    return type(self)(
        values,
        systems=[self.systems[row] for row in rows],
        questions=[self.questions[column] for column in columns],
        groups=None if self.groups is None else [self.groups[each] for each in columns],
        prior_outcomes=earlier,
        paired=self.paired,
        **self.declared,
    )


def concat(cls: "type[Responses]", parts: "Iterable[Responses]") -> "Responses":
    """Join responses of different systems or questions.

    Parameters
    ----------
    parts : iterable of Responses
        Outcomes of one kind. Systems and questions are joined by their labels, trials by their
        positions; what no part has is missing.

    Returns
    -------
    Responses
        Paired if all parts are.

    Raises
    ------
    DataError
        If two parts have an outcome in the same place, or differ in what outcomes are.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> one = Responses([[1, 0]], systems=["a"])
    >>> Responses.concat([one, one.rename(systems={"a": "b"})])
    Responses(2 systems, 2 questions, 1 trial)
    """
    given = list(parts)
    if not given:
        raise DataError("parts must hold at least one Responses; got none")
    return _together(given, [0] * len(given))


def append_trials(self: "Responses", other: "Responses") -> "Responses":
    """Put the trials of other responses behind those at hand.

    Parameters
    ----------
    other : Responses
        Outcomes of one kind; of systems and questions that one side lacks, its trials are
        missing.

    Returns
    -------
    Responses
        Paired if both are.

    Raises
    ------
    DataError
        If they differ in what outcomes are.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> Responses([[1, 0]]).append_trials(Responses([[0, 0]])).outcomes.tolist()
    [[[1, 0], [0, 0]]]
    """
    return _together([self, other], [0, self.shape[2]])


def rename(
    self: "Responses",
    *,
    systems: Renaming = None,
    questions: Renaming = None,
    groups: Renaming = None,
) -> "Responses":
    """Give systems, questions or groups other labels.

    Parameters
    ----------
    systems, questions, groups : mapping of str to str or callable, optional
        New labels by the old ones, which stay where there is none. Groups may become one,
        systems and questions may not.

    Returns
    -------
    Responses

    Raises
    ------
    DataError
        If a label that is renamed is unknown, or two would become one.

    Examples
    --------
    >>> from bayesrank import Responses
    >>> Responses([[1], [0]], systems=["a", "b"]).rename(systems={"b": "c"}).systems
    ('a', 'c')
    """
    return type(self)(
        self.values,
        systems=_labels("systems", self.systems, systems),
        questions=_labels("questions", self.questions, questions),
        groups=None if self.groups is None else _labels("groups", self.groups, groups),
        prior_outcomes=self.prior_sets,
        paired=self.paired,
        **self.declared,
    )


def _places(argument: str, known: Sequence[str], chosen: Iterable[str] | str | None) -> list[int]:
    """Return where the chosen labels are, in the order in which they are named."""
    if chosen is None:
        return list(range(len(known)))
    named: dict[str, list[int]] = {}
    for place, name in enumerate(known):
        named.setdefault(name, []).append(place)
    places: dict[int, None] = {}
    for label in [chosen] if isinstance(chosen, str) else chosen:
        found = named.get(str(label)) or [
            p for p, name in enumerate(known) if fnmatchcase(name, str(label))
        ]
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


def _together(parts: Sequence["Responses"], offsets: Sequence[int]) -> "Responses":
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
    return type(first)(
        values,
        systems=list(systems),
        questions=list(questions),
        groups=_groups(parts, questions),
        prior_outcomes=_earlier(parts, systems, questions),
        paired=all(part.paired for part in parts),
        **first.declared,
    )


def _union(labels: Iterable[Sequence[str]]) -> dict[str, int]:
    names = dict.fromkeys(name for each in labels for name in each)
    return {name: place for place, name in enumerate(names)}


def _check_alike(parts: Sequence["Responses"]) -> None:
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


def _groups(parts: Sequence["Responses"], questions: Mapping[str, int]) -> list[str] | None:
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
    parts: Sequence["Responses"], systems: Mapping[str, int], questions: Mapping[str, int]
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
