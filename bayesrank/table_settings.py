"""Settings in the columns of tables, which distinguish systems of one name."""

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayesrank.columns import (
    Source,
    asked_columns,
    categories_of,
    column_of,
    field_name,
    is_other,
    pair_codes,
)
from bayesrank.errors import DataError
from bayesrank.printable import listing

if TYPE_CHECKING:
    import pandas as pd

    from bayesrank.longtable import StandardTable

UNSET = "unset"

# Longer values are replaced by a digest.
_LONGEST = 40
# Length of a digest in characters.
_DIGEST = 8

# How many equal outcomes a row stands for, in tables of their frequencies.
_TIMES = frozenset({"count", "n", "freq", "frequency", "times"})

# In a column that differs by design, a value is equally frequent on all questions, except for
# missing rows; in a column about answers the frequency varies. A column is a setting from these
# shares of questions with equal frequencies: the first if its name is that of a setting, else the
# second.
_LIKELY, _SURELY = 2 / 3, 0.9

# Words for properties of one answer or one run: columns with such names do not name systems.
_ANSWER_WORDS = """
answer answers at chars comment comments completion completions confidence content cost created
date datetime day duration elapsed ended error exception expected explanation extracted file
finish finished generation gold gpu hash host hostname id idx index job label latency len length
log logprob machine message messages ms node note notes output outputs parsed path pred
prediction price prob rationale reason reasoning reference response responses score sec seconds
started status stop target text time timestamp token tokens url usage uuid words worker
"""
_OF_ANSWERS = frozenset(_ANSWER_WORDS.split())

type Columns = "Mapping[str, pd.Categorical]"


def short(value: str) -> str:
    """Return a value in a form that is short enough for a name.

    Examples
    --------
    >>> short("low"), short("Think step by step, and then give the answer alone.")
    ('low', '75372e39')
    """
    if len(value) <= _LONGEST and "\n" not in value:
        return value
    return hashlib.sha256(value.encode()).hexdigest()[:_DIGEST]


def with_settings(name: str, values: Mapping[str, str]) -> str:
    """Return the name of a system with its settings, which have dotted names.

    Examples
    --------
    >>> with_settings("o3", {"args.effort": "low", "seed": "1"})
    'o3 (effort=low, seed=1)'
    """
    ends = [field.rpartition(".")[2] for field in values]
    parts = [
        f"{end if ends.count(end) == 1 else field}={short(value)}"
        for end, (field, value) in zip(ends, values.items(), strict=True)
    ]
    return f"{name} ({', '.join(parts)})" if parts else name


def say_told_apart(systems: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> list[str]:
    """Return notes on the settings that distinguish systems of one name.

    Parameters
    ----------
    systems : mapping of str to (sequence of str, sequence of str)
        By name, the settings that distinguish its systems, and others that differ with them.

    Returns
    -------
    list of str
        One sentence per combination of settings.

    Examples
    --------
    >>> say_told_apart({"a": (["effort"], [])})
    ["a is several systems, distinguished by effort: pool='effort' makes them trials of one"]
    """
    alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for name, (split, others) in systems.items():
        if split:
            alike.setdefault((tuple(split), tuple(others)), []).append(name)
    notes = []
    for (split, others), names in alike.items():
        is_many = "is several systems" if len(names) == 1 else "are several systems each"
        also = f" (which differ in {', '.join(others)} as well)" if others else ""
        notes.append(
            f"{listing(names)} {is_many}, distinguished by "
            f"{', '.join(split)}{also}: pool='{','.join([*split, *others])}' makes them trials of "
            "one"
        )
    return notes


def name_systems(
    read: "StandardTable", source: Source, chosen: Mapping[str, str | None]
) -> "StandardTable":
    """Add settings that differ between the rows of a system and question to its name.

    Parameters
    ----------
    read : StandardTable
        What :func:`bayesrank.table_groups.tell_apart` returned.
    source : Source
        For messages.
    chosen : mapping of str to str
        Under ``split_by`` the columns that always distinguish systems, under ``pool`` those that
        never do, separated by commas.

    Returns
    -------
    StandardTable
        Without the columns of settings; the column ``part`` numbers the pooled settings.

    Raises
    ------
    DataError
        If it is ambiguous whether a column is a setting.
    """
    table = read.frame
    systems, questions = categories_of(table, "system"), categories_of(table, "question")
    settings = {name: categories_of(table, f"setting {name}") for name in read.settings}
    frame = table.drop(columns=[f"setting {name}" for name in settings])
    pool, split_by = (asked_columns({"": chosen.get(name)}) for name in ("pool", "split_by"))
    split = [name for name in settings if field_name(name) in split_by]
    pooled = [name for name in settings if field_name(name) in pool]
    cells = pair_codes(systems, questions)
    of_system: dict[int, list[str]] = {}
    notes: list[str] = []
    for name, values in settings.items():
        if name not in split and name not in pooled:
            varying = _varying(systems, cells, values, name, source)
            for system in varying:
                of_system.setdefault(system, []).append(name)
            notes += _say_mixed(systems, questions, values, name, varying)
    if split or of_system:
        names, told = _names(systems, settings, split, of_system)
        frame, notes = frame.assign(system=names), [*notes, *told]
    if pooled:
        parts = table.groupby([f"setting {name}" for name in pooled], observed=True, dropna=False)
        frame = frame.assign(part=parts.ngroup())
    named = bool(split or of_system)
    return replace(read, frame=frame, settings=(), named=named, notes=(*read.notes, *notes))


def refuse_unknown(read: "StandardTable", others: Columns, source: Source) -> list[str]:
    """Raise if rows of a system and question seem to differ by design in an unknown column.

    Columns that number such rows, and ids, are no error, since they may be those of trials.

    Parameters
    ----------
    read : StandardTable
        What :func:`name_systems` returned, with rows that repeat others.
    others : mapping of str to pandas.Categorical
        Columns without a known name.
    source : Source
        For messages.

    Returns
    -------
    list of str
        Notes on these.

    Raises
    ------
    DataError
        Naming the column.
    """
    notes: list[str] = []
    systems, questions = categories_of(read.frame, "system"), categories_of(read.frame, "question")
    cells = pair_codes(systems, questions)
    for name, values in others.items():
        if field_name(name) in _TIMES:
            _refuse_times(read, name, values, source)
        share, n_values = _designed(systems, cells, values)
        found = (share >= _SURELY) & (n_values > 1)
        if found.any() and (_counts(values.categories) or _is_id(name)):
            another = f"question='{read.asked},{name}' makes each value another question"
            notes.append(f"rows that differ in {name} are trials: {another}")
        elif found.any():
            examples = ", ".join(map(str, values.categories[:2]))
            raise DataError(
                f"{source.argument} must name the trials of a question; got rows of "
                f"{systems.categories[int(found.argmax())]!r} that differ in {name} ({examples})"
                f"{source.where}: pass split_by={name!r} if each value is another system, "
                f"question='{read.asked},{name}' if it is another question, or pool={name!r} or "
                f"trial={name!r} if such rows are trials"
            )
    return notes


def _refuse_times(
    read: "StandardTable", name: str, values: "pd.Categorical", source: Source
) -> None:
    """Raise if the rows of a system and question are its outcomes, each with its frequency."""
    order = read.frame.groupby(["system", "question"], observed=True).cumcount()
    repeats = [order.astype(str).tolist(), (order + 1).astype(str).tolist()]
    again = read.frame.duplicated(["system", "question", "outcome"]).any()
    if not again and [str(label) for label in values] not in repeats:
        raise DataError(
            f"{source.argument} must have a row for each outcome; got {name!r}, which seems to "
            f"count equal ones{source.where}: repeat every row as often, or pass pool={name!r} if "
            "it says something else"
        )


def other_columns(frame: "pd.DataFrame", chosen: Mapping[str, str | None]) -> Columns:
    """Return the columns of a table without a known name, except for lists and objects."""
    import pandas as pd

    asked = asked_columns(chosen)
    found = {}
    for name in frame.columns:
        if is_other(name, asked) and (_is_id(name) or not is_of_answers(name)):
            try:
                found[str(name)] = pd.Categorical(column_of(frame, name).astype(object))
            except TypeError:
                continue
    return found


def is_of_answers(column: Hashable) -> bool:
    """Return whether the name of a column is that of a property of an answer or a run.

    Examples
    --------
    >>> [is_of_answers(name) for name in ("completion_tokens", "variant")]
    [True, False]
    """
    return not _OF_ANSWERS.isdisjoint(field_name(column).split("_"))


def _is_id(column: Hashable) -> bool:
    """Return whether a column is an id, as of raters and criteria, and nothing of an answer."""
    return _OF_ANSWERS.intersection(field_name(column).split("_")) == {"id"}


def _codes(values: "pd.Categorical") -> NDArray[np.int64]:
    """Return codes from 0; the last one is for blanks."""
    codes = values.codes.astype(np.int64)
    return np.where(codes < 0, len(values.categories), codes)


def _varying(
    systems: "pd.Categorical",
    cells: NDArray[np.int64],
    values: "pd.Categorical",
    name: str,
    source: Source,
) -> list[int]:
    """Return the systems whose rows of one question differ in a setting."""
    import pandas as pd

    codes = _codes(values)
    if len(pd.unique(codes)) < 2:
        return []
    n_systems = len(systems.categories)
    both = ~pd.Series(cells * (codes.max() + 1) + codes).duplicated().to_numpy()
    once = ~pd.Series(cells).duplicated().to_numpy()
    n_both, n_cells = (
        np.bincount(systems.codes[each], minlength=n_systems) for each in (both, once)
    )
    varying = n_both > n_cells
    if not varying.any():
        return []
    share, _ = _designed(systems, cells, values)
    unclear = varying & (share < _LIKELY)
    if unclear.any():
        raise DataError(
            f"{name} must have one value for the rows of a system and question, or differ alike on "
            f"most questions; got other values for {systems.categories[int(unclear.argmax())]!r}"
            f"{source.where}: pass pool={name!r} if such rows are trials of one system, or "
            f"split_by={name!r} if every value is another system"
        )
    return np.flatnonzero(varying).tolist()


def _designed(
    systems: "pd.Categorical", cells: NDArray[np.int64], values: "pd.Categorical"
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the share of a column that differs by design, and its number of values, by system.

    The value of a setting occurs in equally many rows of every question. The share is that of the
    questions for which this holds, for the value with the smallest share; it is 1 for a complete
    design.
    """
    n_systems, codes = len(systems.categories), _codes(values)
    size = int(codes.max()) + 1
    _, first, times = np.unique(cells * size + codes, return_index=True, return_counts=True)
    of_value = systems.codes[first].astype(np.int64) * size + codes[first]
    # For each value: the number of cells by frequency, and that of the most common frequency.
    cases, n_cases = np.unique(of_value * (times.max() + 1) + times, return_counts=True)
    of_value, case = np.unique(cases // (times.max() + 1), return_inverse=True)
    usual = np.zeros(len(of_value))
    np.maximum.at(usual, case, n_cases)
    system = of_value // size
    _, first = np.unique(cells, return_index=True)
    n_cells = np.bincount(systems.codes[first], minlength=n_systems)
    share = np.ones(n_systems)
    np.minimum.at(share, system, usual / n_cells[system])
    return share, np.bincount(system, minlength=n_systems)


def _say_mixed(
    systems: "pd.Categorical",
    questions: "pd.Categorical",
    values: "pd.Categorical",
    name: str,
    told_apart: Sequence[int],
) -> list[str]:
    """Return notes on systems with different values of a setting on different questions.

    A value that all systems share on each question, such as its prompt, belongs to the question; if
    there is one system, so does a value that differs between most questions.
    """
    import pandas as pd

    codes = _codes(values)
    size = int(codes.max(initial=0)) + 1
    of_question = pd.unique(questions.codes.astype(np.int64) * size + codes)
    n_questions = len(pd.unique(questions.codes))
    few = len(systems.categories) == 1 and 2 * len(pd.unique(codes)) <= n_questions
    if len(of_question) == n_questions and not few:
        return []
    of_system = pd.unique(systems.codes.astype(np.int64) * size + codes) // size
    counts = np.bincount(of_system, minlength=len(systems.categories))
    counts[list(told_apart)] = 0
    mixed = [str(systems.categories[system]) for system in np.flatnonzero(counts > 1)]
    if not mixed:
        return []
    subject = f"{listing(mixed)} {'has' if len(mixed) == 1 else 'have'}"
    return [
        f"{subject} several values of {name}, each on other questions: split_by={name!r} makes "
        "each value a separate system"
    ]


def _names(
    systems: "pd.Categorical",
    settings: Columns,
    split: Sequence[str],
    of_system: Mapping[int, Sequence[str]],
) -> "tuple[pd.Categorical, list[str]]":
    """Return the names of systems with the settings that distinguish them, and notes on these."""
    import pandas as pd

    varying = {name for names in of_system.values() for name in names}
    wanted = [name for name in settings if name in split or name in varying]
    keys = pd.DataFrame({"system": systems.codes, **{n: settings[n].codes for n in wanted}})
    group = keys.groupby(list(keys.columns), sort=False).ngroup().to_numpy()
    first = keys.drop_duplicates()
    telling = {
        system: _telling(first.loc[first["system"] == system, :], split, names)
        for system, names in of_system.items()
    }
    labels = []
    for row in first.to_dict("records"):
        system = int(row["system"])
        own = [n for n in wanted if n in split or n in telling.get(system, ((),))[0]]
        values = {n: UNSET if row[n] < 0 else str(settings[n].categories[row[n]]) for n in own}
        labels.append(with_settings(str(systems.categories[system]), values))
    known = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    codes = np.array([known[label] for label in labels])[group]
    names = pd.Categorical.from_codes(codes, categories=pd.Index(list(known), dtype=object))
    said = {str(systems.categories[system]): found for system, found in telling.items()}
    return names, say_told_apart(said)


def _telling(
    own: "pd.DataFrame", chosen: Sequence[str], names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the settings that distinguish the rows of a system, and those that vary with them."""
    split: list[str] = []
    for name in names:
        so_far = [*chosen, *split]
        n_before = len(own.drop_duplicates(so_far)) if so_far else 1
        if len(own.drop_duplicates([*so_far, name])) > n_before:
            split.append(name)
    return split, [name for name in names if name not in split]


def _counts(labels: Iterable[object]) -> bool:
    """Return whether labels number repeats: 0, 1, 2, ... or 1, 2, 3, ..."""
    texts = sorted(map(str, labels), key=lambda text: (len(text), text))
    return any(texts == [str(number + start) for number in range(len(texts))] for start in (0, 1))
