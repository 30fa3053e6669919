"""Long tables, one row per outcome: to standard columns, and to cells of an array."""

import json
import logging
import math
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.battle_tables import is_battle_table
from bayesrank.columns import (
    DIRECTIONS,
    QUESTIONS,
    Found,
    Source,
    are_counts,
    column_of,
    field_name,
    find_columns,
    with_fields,
)
from bayesrank.errors import DamagedFileError, DataError
from bayesrank.missing_reasons import say_errors, why_missing
from bayesrank.outcomes import (
    DECIMAL_COMMA,
    DECLARED,
    elements_of,
    nested,
    outcome_numbers,
    read_declared,
)
from bayesrank.table_groups import is_meant, join_labels, tell_apart
from bayesrank.table_settings import Columns, name_systems, refuse_unknown

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("bayesrank")

CELL = ["system", "question", "trial"]

# Names questions by the order of the rows, where no column of the table is called so.
_ROW = "row"

# Two runs that guess agree on so many outcomes with a probability of 1.6 %.
BY_CHANCE = 6

_WHOLE = re.compile(r"(-?\d+)\.0+")

# A table of so many cells fits into memory; a larger one must have one row for a hundred cells.
CELLS = 10_000_000
CELLS_PER_ROW = 100


@dataclass(frozen=True)
class StandardTable:
    """Rows of a table under the names that they have here.

    Attributes
    ----------
    frame : pandas.DataFrame
        Columns system and question, categories of text; outcome, float64 with NaN where missing;
        trial where the table has one (text, or numbers after
        :func:`bayesrank.longtable.number_trials`); group, where questions have groups; status,
        where the table says why outcomes are missing.
    paired : bool
        Whether a trial is the same run for all systems.
    levels : tuple of str
        Columns that may group questions, until :func:`tell_apart` has looked at them.
    group : str
        That of them which the caller chose; empty if none.
    asked : str
        Columns of the question, for messages.
    settings : tuple of str
        Columns that may distinguish systems, until
        :func:`bayesrank.table_settings.name_systems` has looked at them.
    declared : mapping of str to object
        Keywords of :class:`bayesrank.Responses` that say what outcomes are.
    named : bool
        Whether settings became a part of the names of systems.
    notes : tuple of str
        What was decided about columns, for the message.
    cautions : tuple of str
        Sentences on decisions that may be wrong.
    """

    frame: "pd.DataFrame"
    paired: bool
    levels: tuple[str, ...] = ()
    group: str = ""
    asked: str = ""
    settings: tuple[str, ...] = ()
    declared: Mapping[str, Any] = field(default_factory=dict)
    named: bool = False
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def standardize(
    frame: "pd.DataFrame", chosen: Mapping[str, str | None], source: Source
) -> StandardTable:
    """Give a table its standard columns; trials and groups are as the table has them.

    Parameters
    ----------
    frame : pandas.DataFrame
        Table with one row per outcome.
    chosen : mapping of str to str
        Columns that the caller named, as in :func:`bayesrank.columns.find_columns`.
    source : Source
        For messages.

    Returns
    -------
    StandardTable

    Raises
    ------
    DataError
        If a column is absent or ambiguous, a label is missing, a value is no outcome, or it is open
        whether ids of questions start anew in each group.
    """
    import pandas as pd

    if not len(frame) and not frame.columns.empty:
        raise DataError(f"{source.argument} must have at least one row; got none{source.where}")
    frame = _with_rows(with_fields(frame, chosen), chosen, source)
    found = _find_columns(frame, chosen, source)
    frame = _without_empty_rows(frame, [*found.system, *found.question, found.outcome])
    frame, found, notes = _spread(frame, found, source)
    named = {
        name: reduce(
            join_labels, [_labels(column_of(frame, each), name, source) for each in columns]
        )
        for name, columns in zip(CELL, (found.system, found.question, found.trial), strict=True)
        if columns
    }

    def cell(row: int) -> str:
        return ", ".join(f"{role} {named[role][row]!r}" for role in CELL[:2])

    outcome = outcome_numbers(
        column_of(frame, found.outcome),
        f"the outcome column{_of(source)}",
        decimal=frame.attrs.get(DECIMAL_COMMA, False),
        cell=cell,
    )
    maximum = found.maximum
    if found.total is not None and are_counts(column_of(frame, found.outcome)):
        maximum = found.total
    if maximum is not None:
        outcome, told = _shares(outcome, found.outcome, column_of(frame, maximum), cell, source)
        notes += told
    _refuse_lower_rows(frame, outcome, cell, source)
    table: dict[str, Any] = {**named, "outcome": outcome}
    levels = tuple(map(str, found.groups))
    group = "" if found.group is None else str(found.group)
    for name in found.groups:
        needed = is_meant(str(name), group)
        values = as_texts(column_of(frame, name))
        table[f"level {name}"] = _labels(values, str(name), source, needed=needed)
    settings = tuple(map(str, found.settings))
    for name in found.settings:
        values = as_texts(column_of(frame, name))
        table[f"setting {name}"] = _labels(values, str(name), source, needed=False)
    if found.reasons:
        columns = [(field_name(each), column_of(frame, each)) for each in found.reasons]
        table["status"] = why_missing(columns, outcome)
        notes += say_errors(columns, outcome)
    columns = {name: pd.Series(each, copy=False) for name, each in table.items()}
    standard = pd.DataFrame(columns, copy=False)
    declaring = {field_name(each): column_of(frame, each) for each in frame.columns}
    declaring = {name: column for name, column in declaring.items() if name in DECLARED}
    return StandardTable(
        standard,
        found.paired,
        levels=levels,
        group=group,
        asked=",".join(map(str, found.question)),
        settings=settings,
        declared=read_declared(declaring, source.where),
        notes=notes,
    )


def _with_rows(
    frame: "pd.DataFrame", chosen: Mapping[str, str | None], source: Source
) -> "pd.DataFrame":
    """Add a column with numbers of rows that are else alike, if ``row`` is to name questions."""
    if _ROW not in (chosen.get("question") or "").split(",") or _ROW in frame:
        return frame
    found = find_columns(frame.assign(**{_ROW: 0}), chosen, source)
    within = dict.fromkeys(
        [*found.system, *found.question, *found.trial, *found.groups, *found.settings]
    )
    texts = frame[[name for name in within if name != _ROW]].astype(str)
    return frame.assign(**{_ROW: texts.groupby(list(texts)).cumcount() + 1})


def _spread(
    frame: "pd.DataFrame", found: Found, source: Source
) -> "tuple[pd.DataFrame, Found, tuple[str, ...]]":
    """Give each element of lists in place of outcomes a row, as a trial.

    Lists of several lengths, or beside a column of trials, may say something else.
    """
    column = column_of(frame, found.outcome)
    known = np.flatnonzero(column.notna().to_numpy(bool))
    if not len(known) or elements_of(column.iloc[known[0]]) is None:
        return frame, found, ()
    lists = [elements_of(value) for value in column]
    number = len(lists[known[0]] or ())
    if found.trial or not number or any(each is None or len(each) != number for each in lists):
        raise DataError(
            "outcomes must be one value in every row, or lists of one length without a column of "
            f"trials; got lists for the outcome column{_of(source)}: write a row for each element"
        )
    rows = frame.take(np.repeat(np.arange(len(frame)), number)).reset_index(drop=True)
    rows[found.outcome] = [element for each in lists for element in each or ()]
    trial = "trial" if "trial" not in frame else f"trial of {found.outcome}"
    rows[trial] = np.tile(np.arange(number), len(frame))
    rows.attrs |= frame.attrs
    return rows, found._replace(trial=(trial,)), (f"each list in {found.outcome} holds the trials",)


def _shares(
    outcome: NDArray[np.float64],
    column: Hashable,
    maximum: "pd.Series",
    cell: Callable[[int], str],
    source: Source,
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return scores as shares of the highest possible ones, unless they are fractions of 1."""
    name, known = maximum.name, outcome[~np.isnan(outcome)]
    if ((known >= 0.0) & (known <= 1.0)).all() and (known != np.floor(known)).any():
        return outcome, (f"outcomes are not divided by {name}, since they are fractions",)
    highest = outcome_numbers(maximum, f"{name}{_of(source)}")
    checks = {
        f"{name} must be positive for every outcome": ~(highest > 0.0),
        f"{column} must be at most {name}": outcome > highest,
    }
    for rule, broken in checks.items():
        wrong = ~np.isnan(outcome) & broken
        if wrong.any():
            row = int(wrong.argmax())
            most = "a blank" if np.isnan(highest[row]) else f"{highest[row]:g}"
            raise DataError(
                f"{rule}; got {outcome[row]:g} of {most} for {cell(row)}, row "
                f"{row + 1}{_of(source)}: correct the row, or leave out {name} if outcomes are not "
                "to be divided by it"
            )
    return outcome / np.where(highest > 0.0, highest, np.nan), (f"outcomes are divided by {name}",)


def _refuse_lower_rows(
    frame: "pd.DataFrame",
    outcome: NDArray[np.float64],
    cell: Callable[[int], str],
    source: Source,
) -> None:
    """Raise if a column says of scores that the lowest one is best; zeros and ones are verdicts."""
    if (np.isnan(outcome) | np.isin(outcome, (0.0, 1.0))).all():
        return
    for name in frame.columns:
        if (lowest := DIRECTIONS.get(field_name(name))) is not None:
            said = outcome_numbers(column_of(frame, name), f"{name}{_of(source)}") == lowest
            if (wrong := said & ~np.isnan(outcome)).any():
                raise DataError(
                    f"outcomes must be higher for better systems; got {name!r} that says the "
                    f"opposite of {cell(int(wrong.argmax()))}{source.where}: leave such rows out, "
                    f"or reverse their outcomes and leave {name} out"
                )


def _find_columns(frame: "pd.DataFrame", chosen: Mapping[str, str | None], source: Source) -> Found:
    """Find columns; of battles, which have none of a system, say what they are."""
    try:
        return find_columns(frame, chosen, source)
    except DamagedFileError:
        if chosen.get("system") is None and is_battle_table(frame.columns):
            raise DamagedFileError(
                f"{source.argument} must hold outcomes of systems; got battles, with the columns "
                f"{', '.join(map(str, frame.columns))}{source.where}",
                in_python="read them with read_battles or Battles.from_frame",
                in_shell="leave out names of columns; groups of battles are in a column group, "
                "prompts in prompt and judges in judge",
            ) from None
        raise


def _without_empty_rows(frame: "pd.DataFrame", columns: "Sequence[Hashable]") -> "pd.DataFrame":
    """Leave out rows that hold nothing, as spreadsheets write below their tables."""
    empty = is_empty(column_of(frame, columns[0]))
    for name in columns[1:]:
        if not empty.any():
            return frame
        empty &= is_empty(column_of(frame, name))
    return frame if empty.all() else frame.loc[~empty].reset_index(drop=True)


def is_empty(column: "pd.Series") -> NDArray[np.bool_]:
    """Return which values are missing or the empty text, of categories by a look at each one."""
    missing = column.isna().to_numpy(bool)
    if column.dtype.name == "category":
        empty = np.flatnonzero(column.cat.categories == "")
        return missing | np.isin(column.cat.codes.to_numpy(), empty)
    return missing if column.dtype.kind in "biufM" else missing | np.asarray(column == "")


def _of(source: Source) -> str:
    """Return where a table is from, after the name of a row or column."""
    return source.where.replace(" in", " of", 1)


def _labels(
    column: "pd.Series", name: str, source: Source, *, needed: bool = True
) -> "pd.Categorical":
    """Make labels text; missing ones are an error, or missing where they are not needed."""
    import pandas as pd

    try:
        codes, found = label_codes(column)
    except TypeError as error:  # lists and objects of JSON
        holds, remedy = nested(column)
        raise DataError(
            f"{source.argument} must name the {name} by text or a number; got "
            f"{holds}{source.where}: {remedy}"
        ) from error
    texts = [_text(label, whole=name != "system") for label in found.tolist()]
    known = {text: number for number, text in enumerate(dict.fromkeys(filter(None, texts)))}
    written = {str(label) for label, text in zip(found.tolist(), texts, strict=True) if text}
    if name == "system" and len(known) < len(written):
        logger.info(f"Names of a system that differ in spaces around them are one{source.where}")
    places = [*(known.get(text, -1) for text in texts), -1]
    place = np.array(places, dtype=np.int32)[codes]
    blank = place < 0
    if needed and blank.any():
        raise DamagedFileError(
            f"{source.argument} must name the {name} in every row; got a blank in row "
            f"{int(blank.argmax()) + 1}{_of(source)}"
        )
    return pd.Categorical.from_codes(place, categories=pd.Index(list(known), dtype=object))


def as_texts(column: "pd.Series") -> "pd.Series":
    """Return a column with lists and objects of JSON as text."""
    if column.dtype != object:
        return column
    nested = column.map(lambda each: isinstance(each, Mapping | list | tuple | np.ndarray))
    if not nested.any():
        return column
    texts = [json.dumps(each, sort_keys=True, default=_plain) for each in column[nested]]
    column = column.copy()
    column[nested] = texts
    return column


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def label_codes(column: "pd.Series") -> "tuple[NDArray[Any], pd.Index]":
    """Return codes and labels; those of categories as they are, which takes no memory."""
    if column.dtype.name != "category":
        return column.factorize()
    codes = column.cat.codes.to_numpy()
    used = np.zeros(len(column.cat.categories) + 1, dtype=bool)
    used[codes] = True  # code -1, a missing label, is the last one
    if not used[:-1].all():
        column = column.cat.remove_unused_categories()
    return column.cat.codes.to_numpy(), column.cat.categories


def _text(label: object, *, whole: bool) -> str:
    """Return a label as text; 1, "1" and 1.0 are one question, but maybe two systems."""
    text = str(label).strip()
    match = _WHOLE.fullmatch(text) if whole else None
    return match[1] if match else text


def place_rows(
    read: StandardTable,
    source: Source,
    chosen: Mapping[str, str | None],
    others: "Callable[[], Columns]",
    files: "NDArray[np.int64] | None" = None,
) -> StandardTable:
    """Give every row its question, its system and its trial.

    Parameters
    ----------
    read : StandardTable
        What :func:`standardize` returned, or several of them below one
        another.
    source : Source
        For messages.
    chosen : mapping of str to str
        As in :func:`bayesrank.table_settings.name_systems`.
    others : callable
        Returns the columns without a known name; repeated rows may differ in one of them.
    files : numpy.ndarray of shape (row,), optional
        As in :func:`number_trials`.

    Returns
    -------
    StandardTable

    Raises
    ------
    DataError
        If it is open what a column says, or a (system, question, trial) occurs twice.
    """
    named = tell_apart(read, source) if read.levels else read
    if "trial" not in named.frame:
        cautions = _say_equal(named.frame) if files is None else ()
        if field_name(read.asked) in QUESTIONS and chosen.get("question") is None:
            cautions = (*cautions, *_say_rows(named, files))
        named = replace(named, cautions=tuple(cautions))
    named = replace(named, cautions=(*named.cautions, *_say_of_questions(named.frame)))
    if named.settings:
        named = name_systems(named, source, chosen)

    def explain() -> list[str]:
        columns = others()
        if all(len(values) == len(named.frame) for values in columns.values()):  # no list of trials
            return refuse_unknown(named, columns, source)
        return []

    return number_trials(named, source, files, explain=explain)


def arrange(table: "pd.DataFrame") -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Lay rows out as an array, NaN where there is none.

    Parameters
    ----------
    table : pandas.DataFrame
        What :func:`place_rows` returned.

    Returns
    -------
    outcomes : numpy.ndarray of shape (system, question, trial)
    labels : dict
        Keywords ``systems``, ``questions`` and, where there is a column, ``groups`` of
        :class:`bayesrank.Responses`.
    """
    place: Any = 0
    labels = []
    for name in CELL:
        numbered = name == "trial" and column_of(table, name).dtype.kind in "iuf"
        codes, found = table[name].factorize(sort=numbered)
        place = place * len(found) + codes
        labels.append(found.tolist())
    shape = tuple(map(len, labels))
    cells = np.full(math.prod(shape), np.nan)
    cells[place] = table["outcome"].to_numpy()
    named: dict[str, Any] = {"systems": labels[0], "questions": labels[1]}
    if "group" in table:
        groups = np.empty(shape[1], dtype=object)
        groups[table["question"].factorize()[0]] = table["group"].astype(object).to_numpy()
        named["groups"] = groups.tolist()
    return cells.reshape(shape), named


def number_trials(
    read: StandardTable,
    source: Source,
    files: "NDArray[np.int64] | None" = None,
    *,
    explain: Callable[[], Sequence[str]] = tuple,
) -> StandardTable:
    """Give every row its trial.

    Without a column of trials, the rows of a system and question are its trials in order of
    appearance. Trials with names that no two systems share are numbered like that, too, and so are
    those of files, or of settings that were pooled, that repeat each other's trials.

    Parameters
    ----------
    read : StandardTable
        What :func:`standardize` returned, or several of them below one another.
    source : Source
        For messages.
    files : numpy.ndarray of shape (row,), optional
        Which file each row is from, where there are several.
    explain : callable, optional
        Called where rows repeat others, to raise an error that says in which column they differ, or
        to return notes on it.

    Returns
    -------
    StandardTable
        With a column trial.

    Raises
    ------
    DataError
        If a (system, question, trial) occurs twice in a file; or, without trials, if ids of
        questions occur several times where most occur once.
    """
    table, pooled = read.frame, "part" in read.frame
    if pooled:
        parts = column_of(table, "part").to_numpy()
        files = parts if files is None else files * (parts.max() + 1) + parts
        table = table.drop(columns="part")
    if "trial" not in table:
        order = _order(table)
        notes = explain() if order.any() else ()
        if files is None:
            _refuse_some_repeats(table, order)
        notes = (*read.notes, *notes)
        numbered = replace(read, frame=table.assign(trial=order), notes=notes)
        repeated_cells(numbered.frame, source)
        return numbered
    numbers = _as_numbers(table["trial"].cat.categories.tolist())
    if numbers is not None:
        table = table.assign(trial=numbers[table["trial"].cat.codes.to_numpy()])
    repeated = repeated_cells(table, source)
    if repeated is not None:
        within = None if files is None else table.assign(file=files).duplicated(["file", *CELL])
        if within is None or (read.paired and not pooled):
            within = repeated
        if np.asarray(within).any():
            explain()
            raise _repeated(table, within, source)
        return replace(read, frame=table.assign(trial=_order(table)), paired=False)
    if (numbers is None or read.paired) and not _shared(table):
        return replace(read, frame=table.assign(trial=_order(table)), paired=False)
    if read.named and numbers is not None and not read.paired:
        # Numbers that go on from one setting to the next start anew in each system.
        table = table.assign(trial=_ranks(table))
    return replace(read, frame=table)


def repeated_cells(table: "pd.DataFrame", source: Source) -> NDArray[np.bool_] | None:
    """Return which rows repeat a system, question and trial, None if no row does.

    Parameters
    ----------
    table : pandas.DataFrame
        With columns system, question and trial.
    source : Source
        For messages.

    Returns
    -------
    numpy.ndarray of bool and shape (row,), or None

    Raises
    ------
    DataError
        If the table fills so few of its cells that an array of them takes too much memory.
    """
    place: Any = 0
    n_cells = 1
    sizes = []
    for name in CELL:
        codes, found = label_codes(column_of(table, name))
        n_cells *= len(found)
        sizes.append(len(found))
        if n_cells > max(CELLS, CELLS_PER_ROW * len(table)):
            counted = ", ".join(f"{n} {each}s" for n, each in zip(sizes, CELL, strict=False))
            raise DataError(
                f"{source.argument} must have an outcome for one cell in a hundred; got "
                f"{len(table)} rows for {counted}: check which columns name the system, the "
                "question and the trial"
            )
        kind = np.int32 if n_cells <= np.iinfo(np.int32).max else np.int64
        place = np.multiply(place, len(found), dtype=kind) + codes.astype(kind, copy=False)
    filled = np.zeros(n_cells, dtype=bool)
    filled[place] = True
    return None if filled.sum() == len(table) else np.asarray(table.duplicated(CELL))


def _order(table: "pd.DataFrame") -> NDArray[np.int64]:
    """Return how many rows of the same system and question come before each row."""
    return table.groupby(CELL[:2], sort=False, observed=True).cumcount().to_numpy()


def _say_rows(read: StandardTable, files: "NDArray[np.int64] | None") -> Iterator[str]:
    """Caution if a table has several rows for a task, which may be of different questions."""
    table = read.frame.assign(file=0 if files is None else files)
    settings = [f"setting {name}" for name in read.settings]
    cells = table.groupby(["file", *CELL[:2], *settings], observed=True, dropna=False, sort=False)
    numbers: Any = cells.size()
    if numbers.max() > 1:
        _, system, task, *_ = numbers.idxmax()
        yield (
            f"No column names the question, so that rows of one system and {read.asked} count as "
            f"trials ({numbers.max()} of {system!r} for {task!r}): pass question=... for a column "
            f"of ids, question='row' if each row is another question, in the same order for every "
            f"system, or question={read.asked!r} if they are trials"
        )


def _say_equal(table: "pd.DataFrame") -> Iterator[str]:
    """Caution if every row of a table occurs again, as if it was joined with itself."""
    keys = [name for name in table if name not in ("outcome", "status")]
    if len(table) < 2 * BY_CHANCE or not table.duplicated(keys).any():
        return
    cells: Any = table.groupby(keys, observed=True, dropna=False, sort=False)["outcome"]
    low, high, sizes = cells.min(), cells.max(), cells.size()
    if len(sizes) >= BY_CHANCE and sizes.min() > 1 and low.equals(high) and low.nunique() > 1:
        yield (
            f"All rows occur at least {sizes.min()} times with the same outcomes, and count as "
            "trials: leave out the repeated ones if they are copies"
        )


def _say_of_questions(table: "pd.DataFrame") -> Iterator[str]:
    """Caution if outcomes depend on the question alone, as right answers do."""
    if len(table) > CELLS:
        return
    known = table.loc[table["outcome"].notna(), ["system", "question", "outcome"]]
    outcomes, questions = known["outcome"].to_numpy(), known["question"].cat.codes.to_numpy()
    of_question = np.full(len(known["question"].cat.categories), np.nan)
    of_question[questions] = outcomes
    if (outcomes != of_question[questions]).any():
        return
    n_systems = known.drop_duplicates(CELL[:2])["question"].value_counts()
    shared = n_systems.index[n_systems > 1]
    differ = known.loc[known["question"].isin(shared), "outcome"].nunique() > 1
    if differ and (n_systems - 1).clip(0).sum() >= 2 * BY_CHANCE:
        yield (
            f"All systems have the same outcome on each of the {len(shared)} questions that they "
            "share: pass outcome=... for the column of their results if these are right answers or "
            "something else that belongs to the question"
        )


def _ranks(table: "pd.DataFrame") -> NDArray[np.int64]:
    """Return the place of every trial among those of its system."""
    ranks = table.groupby("system", observed=True)["trial"].rank("dense")
    return ranks.to_numpy().astype(np.int64) - 1


def _refuse_some_repeats(table: "pd.DataFrame", order: NDArray[np.int64]) -> None:
    """Raise where a system has some ids several times, but most of them once.

    These are hardly trials, but two questions of one id.
    """
    if not order.any():
        return
    systems = table["system"].cat.codes.to_numpy()
    n_ids, n_again = (np.bincount(systems[order == each], minlength=1) for each in (0, 1))
    n_again = np.pad(n_again, (0, len(n_ids) - len(n_again)))
    few = (n_again > 0) & (2 * n_again < n_ids)
    if few.any():
        system = int(few.argmax())
        row = table.iloc[int(((systems == system) & (order == 1)).argmax())]
        raise DataError(
            "question must occur once for each system, or the trials must have a column; got "
            f"{n_again[system]} of the {n_ids[system]} questions of {row['system']!r} several "
            f"times, for example {row['question']!r}: pass question='GROUP,ID' where ids start "
            "anew in each group, or number the repeats in a column trial"
        )


def _repeated(table: "pd.DataFrame", repeated: Any, source: Source) -> DataError:
    cell = table.iloc[int(np.asarray(repeated).argmax())]
    return DataError(
        f"{source.argument} must hold one outcome per system, question and trial; got more for "
        f"system {cell['system']!r}, question {cell['question']!r}, trial {cell['trial']}: remove "
        "the copies, number the repeats as trials, or pass question='GROUP,ID' where ids start "
        "anew in each group"
    )


def _shared(table: "pd.DataFrame") -> bool:
    """Return whether any trial is one of two systems or more, if there are several."""
    if len(table["system"].cat.categories) < 2:
        return True
    repeated = table.duplicated(["system", "trial"])
    return bool(column_of(table.loc[~repeated], "trial").duplicated().any())


def _as_numbers(labels: Sequence[Hashable]) -> NDArray[Any] | None:
    """Return labels as numbers, whole ones if they all are, None if one is no number."""
    for kind in (int, float):
        try:
            numbers = np.array([kind(str(label)) for label in labels])
        except (ValueError, OverflowError):
            continue
        usable = numbers.dtype.kind in "iuf" and bool(np.isfinite(numbers).all())
        # 1 and 01 are two labels of one number.
        if not usable or len(set(numbers.tolist())) < len(labels):
            return None
        # Numbers of trials are small, and there is one in every row.
        small = numbers.dtype.kind == "i" and np.abs(numbers).max() < np.iinfo(np.int16).max
        return numbers.astype(np.int16) if small else numbers
    return None
