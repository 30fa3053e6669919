"""The arguments of every reader of logs, and the long table that it returns, checked once."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayesrank.columns import (
    COLUMNS,
    Source,
    as_words,
    asked_columns,
    refuse_lower,
    split_and_pooled,
)
from bayesrank.errors import DataError
from bayesrank.longtable import CELL, repeated_cells
from bayesrank.printable import listing
from bayesrank.readers.log import STATUSES
from bayesrank.validation import say_lookalikes

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Names of rows and columns that sum up the others.
_SUMMARY = re.compile(
    r"\W*(?:(?:grand|overall|macro|micro|weighted)[\s_-])?"
    r"(?:average|avg|mean|median|overall|total|sum|rank|std(?:[\s_.-]*(?:dev|err))?)"
    r"(?:[\s_-](?:score|acc|accuracy|win[\s_-]rate))?[\W\d]*",
    re.IGNORECASE,
)

# Names of columns beside scores: standard errors and intervals, sizes and numbers.
_BESIDE = re.compile(
    r"(?:.+[\W_])?(?:std[\W_]?(?:dev|err|error)?|stddev|standard[\W_](?:deviation|error)"
    r"|ci[\W_]?(?:low|lower|high|upper)|(?:lower|upper)[\W_]ci|ci[\W_]?95|95[\W_]*ci)"
    r"|\W*(?:n|num|total)?[\W_]*(?:param(?:eter)?s|samples|questions|votes|battles|likes|downloads)"
    r"(?:[\W_]+b)?\W*|context[\W_](?:length|window)|(?:release[\W_])?year",
    re.IGNORECASE,
)

# Columns that every row has.
ROW = [*CELL, "outcome"]


@dataclass(frozen=True)
class Selection:
    """Names chosen by the caller; None where the logs leave no choice.

    Attributes
    ----------
    task, scorer, filter, metric : str, optional
        As in :func:`bayesrank.readers.read_responses`.
    split_by, pool : tuple of str
        Fields of the logs that distinguish systems of one name, and those that do not.
    count_as_wrong : tuple of str, optional
        Statuses that count as wrong; by default those that the harness counts so.
    system, question, trial, outcome, group : str, optional
        Columns of a table.
    wide : bool
        Whether every system of a table has a column.
    """

    task: str | None = None
    scorer: str | None = None
    filter: str | None = None
    metric: str | None = None
    split_by: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    count_as_wrong: tuple[str, ...] | None = None
    system: str | None = None
    question: str | None = None
    trial: str | None = None
    outcome: str | None = None
    group: str | None = None
    wide: bool = False

    @property
    def of_table(self) -> bool:
        """Whether something was chosen that only tables have."""
        return self.wide or any(getattr(self, name) is not None for name in COLUMNS)

    @property
    def of_files(self) -> bool:
        """Whether names of files or folders are a part of the names of systems."""
        asked = asked_columns({"system": self.system, "split_by": ",".join(self.split_by)})
        return not asked.isdisjoint(("file", "folder"))


# Keywords of `select`.
CHOICES = tuple(each.name for each in fields(Selection))


def select(
    *,
    split_by: str | Iterable[str] | None = None,
    pool: str | Iterable[str] | None = None,
    count_as_wrong: str | Iterable[str] | None = None,
    wide: bool = False,
    **names: Any,
) -> Selection:
    """Make a selection from what callers pass.

    Parameters
    ----------
    split_by, pool, count_as_wrong, wide
        As in :func:`bayesrank.readers.read_responses`.
    **names
        Attributes of :class:`Selection` that are names.

    Returns
    -------
    Selection

    Raises
    ------
    DataError
        If a name or a list of words is something else, or a setting is to be split by and pooled.
    """
    for name, value in names.items():
        if not isinstance(value, str | None):
            raise DataError(f"{name} must be a name, or None; got {value!r}")
    split, pooled = split_and_pooled(split_by, pool)
    wrong = None if count_as_wrong is None else as_words("count_as_wrong", count_as_wrong)
    return Selection(
        split_by=split,
        pool=pooled,
        count_as_wrong=() if wrong == ("none",) else wrong,
        wide=wide,
        **names,
    )


def choose(
    argument: str, known: Iterable[str], chosen: str | None, where: str = "", other: str = ""
) -> str:
    """Return the chosen name, or the only known one.

    Parameters
    ----------
    argument : str
        Selector that chooses, for the message.
    known : iterable of str
        Names in the logs; repeats are allowed.
    chosen : str, optional
        What the caller passed.
    where : str, default ""
        Ends the message, such as ``" for task 'arithmetic'"``.
    other : str, default ""
        Another remedy.

    Returns
    -------
    str

    Raises
    ------
    DataError
        If `chosen` is unknown, a metric or scorer of which the lowest value is best, or None while
        there are several (the message lists the names), or if the logs name none.

    Examples
    --------
    >>> choose("task", ["addition"], None)
    'addition'
    """
    names = list(dict.fromkeys(known))
    if chosen is None and len(names) == 1:
        chosen = names[0]
    if chosen is not None and argument in ("metric", "scorer"):
        refuse_lower(argument, chosen)
    if chosen in names:
        return chosen
    if not names:
        raise DataError(f"{argument} must be named in the logs{where}; got none")
    listed = ", ".join(names)
    remedy = f" (pass {argument}=...{other})" if chosen is None else ""
    raise DataError(f"{argument} must name one of {listed}{where}; got {chosen!r}{remedy}")


def choose_tasks(known: Iterable[str], chosen: str | None) -> list[str]:
    """Return the chosen tasks, or the only known one.

    Parameters
    ----------
    known : iterable of str
        Tasks in the logs; repeats are allowed.
    chosen : str, optional
        A task, or a pattern such as ``"mmlu_*"``.

    Returns
    -------
    list of str
        In the order of `known`.

    Raises
    ------
    DataError
        As for :func:`choose`.

    Examples
    --------
    >>> choose_tasks(["mmlu_law", "gsm8k", "mmlu_virology"], "mmlu_*")
    ['mmlu_law', 'mmlu_virology']
    """
    names = list(dict.fromkeys(known))
    if chosen is not None and chosen not in names:
        matching = [name for name in names if fnmatchcase(name, chosen)]
        if matching:
            return matching
    return [choose("task", names, chosen)]


class NoOutcomeError(DataError):
    """Logs without any outcome."""


class SilentSystemError(DataError):
    """A system without any outcome, among others."""


@dataclass(frozen=True)
class LogTable:
    """Outcomes read from logs, before they become responses.

    Attributes
    ----------
    frame : pandas.DataFrame
        Columns system, question, trial, outcome (NaN = missing), group where the logs have groups
        of questions, status (why an outcome is missing or how an attempt ended: one of
        :data:`~bayesrank.readers.log.STATUSES`, or empty), and `details`; systems and questions
        are strings.
    source : str
        Name of the format.
    n_missing : int
        Missing outcomes of the (system, question, trial) array: known to be missing, or without a
        row.
    paired : bool
        Whether a trial is the same run for all systems.
    message : str
        What was read and what is missing, in one sentence.
    details : tuple of str
        Further columns, which say how an outcome came about.
    cautions : tuple of str
        Sentences on what may be wrong with the comparison.
    declared : mapping of str to object
        Keywords of :class:`bayesrank.Responses` that say what outcomes are, such as their scale,
        where the format does.
    standard : bool
        Whether labels and trials are those of the responses already.
    """

    frame: "pd.DataFrame"
    source: str
    n_missing: int
    paired: bool
    message: str
    details: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    declared: Mapping[str, Any] = field(default_factory=dict)
    standard: bool = False

    def to_dataarray(self) -> "xr.DataArray":
        """Return the outcomes with what the logs say of each of them as coordinates.

        Returns
        -------
        xarray.DataArray
            Dims system, question and trial, NaN where an outcome is missing; a coordinate of all
            three dims for each of `details` and for the status, and ``group`` by question where
            there are groups.
            :meth:`bayesrank.Responses.from_dataarray` takes it.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = [("a", "q", 0, 1.0, "token"), ("a", "q", 1, 0.0, "")]
        >>> frame = pd.DataFrame(rows, columns=["system", "question", "trial", "outcome", "limit"])
        >>> table = LogTable(frame, "inspect", 0, False, "", details=("limit",))
        >>> table.to_dataarray().coords["limit"].sel(trial=0).item()
        'token'
        """
        import xarray as xr  # 0.5 s, only when asked for

        coords, index = {}, []
        for name in CELL:
            codes, labels = self.frame[name].factorize(sort=name == "trial")
            coords[name] = labels.tolist()
            index.append(codes)
        shape = tuple(len(labels) for labels in coords.values())
        outcomes = np.full(shape, np.nan)
        outcomes[tuple(index)] = self.frame["outcome"]
        for name in (*self.details, *(["status"] if "status" in self.frame else [])):
            values = np.full(shape, "", dtype=object)
            values[tuple(index)] = self.frame[name]
            coords[name] = (CELL, values)
        if "group" in self.frame:
            first = self.frame.drop_duplicates("question")
            coords["group"] = ("question", first["group"].to_numpy())
        return xr.DataArray(outcomes, coords, CELL, name="outcome")


def build_table(
    frame: "pd.DataFrame",
    source: str,
    *,
    paired: bool,
    details: Sequence[str] = (),
    wrong: Sequence[str] = (),
    every_system: bool = True,
) -> LogTable:
    """Check a long table and count what is missing.

    Questions to which no system has an outcome say nothing and are left out; the message counts
    them.

    Parameters
    ----------
    frame : pandas.DataFrame
        Columns system, question, trial, outcome, `details` and, optionally, group and status.
        Without a status, an outcome that is missing was not scored.
    source : str
        Name of the format.
    paired : bool
        Whether a trial is the same run for all systems.
    details : sequence of str, optional
        Further columns to keep.
    wrong : sequence of str, optional
        Statuses whose missing outcomes count as wrong; ``absent`` is also what has no row.
    every_system : bool, default True
        Whether a system without any outcome is an error, as where a log is missing, or a caution.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If there is no outcome at all or none of a system that must have one, if a (system,
        question, trial) occurs twice, or if a status is unknown.
    """
    _check_statuses(wrong)
    _check_cells(frame)
    frame, n_wrong = _count_wrong(frame, wrong)
    silent = _silent(frame)
    if every_system and silent:
        raise SilentSystemError(
            f"paths must hold an outcome of every system; got none for {silent[0]!r}: leave out "
            f"its logs, or {_count_wrong_remedy(frame, silent)}"
        )
    observed = _observed(frame)
    answered = _marked(frame["question"], observed)
    n_asked = _distinct(frame["question"])
    columns = [*ROW, *(name for name in ("group", "status") if name in frame), *details]
    if not answered.all():
        frame = frame.take(np.flatnonzero(answered)).reset_index(drop=True)
    kept = frame.reindex(columns=columns)
    n_systems, asked = _distinct(kept["system"]), _trials_asked(kept)
    missing = _missing_by_status(kept, n_systems * int(asked.sum()))
    message = describe(n_systems, asked, sum(missing.values()), missing)
    if any(n_wrong.values()):
        message += f"; {_listed(n_wrong)} counted as wrong"
    failed = [status for status in ("error", "limit", "refused") if missing.get(status)]
    if failed:
        remedy = f"count_as_wrong={','.join(failed)!r}"
        message += f"; failed attempts are left out ({remedy} counts them)"
    n_unanswered = n_asked - len(asked)
    if n_unanswered:
        message += f"; {_count(n_unanswered, 'question')} without any outcome left out"
    n_missing = sum(missing.values())
    systems, questions = (kept[name].unique().tolist() for name in CELL[:2])
    cautions = (*say_lookalikes(systems), *_strangers(kept))
    cautions += (*_say_summaries("system", systems), *_say_summaries("question", questions))
    cautions += tuple(_say_pairs(systems, questions))
    known = kept["outcome"].to_numpy(dtype=np.float64)[_observed(kept)]
    if n_missing and (known == 1.0).all():
        reasons = ",".join(status for status, number in missing.items() if number)
        cautions += (
            f"All observed outcomes are right (missing: {n_missing:,}): if only right answers were "
            f"written, count what is missing as wrong (count_as_wrong={reasons!r}).",
        )
    if silent:
        cautions = (_say_silent(frame, silent), *cautions)
    return LogTable(kept, source, n_missing, paired, message, tuple(details), cautions)


def describe(
    n_systems: int,
    asked: NDArray[np.integer[Any]],
    n_missing: int,
    by_status: Mapping[str, int] | None = None,
) -> str:
    """Report how much was read and how much is missing.

    Parameters
    ----------
    n_systems : int
        Number of systems.
    asked : numpy.ndarray of int and shape (question,)
        Trials of each question that some system has.
    n_missing : int
        Missing outcomes among those of all systems.
    by_status : mapping of str to int, optional
        How many of them are missing for which reason.

    Returns
    -------
    str

    Examples
    --------
    >>> describe(3, np.full(12, 4), 5, {"error": 3, "absent": 2})
    '3 systems, 12 questions, 4 trials; 5 of 144 outcomes missing (3 error, 2 absent)'
    >>> describe(2, np.full(1200, 1), 0)
    '2 systems, 1,200 questions, 1 trial; 0 of 2,400 outcomes missing'
    >>> describe(2, np.array([1, 1, 8]), 0)
    '2 systems, 3 questions, 1 to 8 trials; 0 of 20 outcomes missing'
    """
    most = int(asked.max(initial=0))
    fewest = int(asked.min(initial=most))
    trials = _count(most, "trial") if fewest == most else f"{fewest:,} to {_count(most, 'trial')}"
    sizes = f"{_count(n_systems, 'system')}, {_count(len(asked), 'question')}, {trials}"
    reasons = f" ({_listed(by_status)})" if n_missing and by_status else ""
    possible = _count(n_systems * int(asked.sum()), "outcome")
    return f"{sizes}; {n_missing:,} of {possible} missing{reasons}"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {status}" for status, number in counts.items() if number)


def _check_statuses(wrong: Sequence[str]) -> None:
    for status in wrong:
        if status not in STATUSES:
            raise DataError(f"count_as_wrong must be among {', '.join(STATUSES)}; got {status!r}")


def _count_wrong(
    frame: "pd.DataFrame", wrong: Sequence[str]
) -> tuple["pd.DataFrame", dict[str, int]]:
    """Return a table with zeros for outcomes that count as wrong, and their numbers by status."""
    import pandas as pd  # pandas is loaded if there is a table

    if not wrong:
        return frame, {}
    if "status" not in frame:
        frame = frame.assign(status=np.where(_observed(frame), "", "unscored"))
    if "absent" in wrong:
        systems = pd.DataFrame({"system": frame["system"].unique()})
        every = pd.MultiIndex.from_frame(
            systems.merge(_asked(frame), how="cross").reindex(columns=CELL)
        )
        cells = every.difference(frame.set_index(CELL).index, sort=False)
        absent = pd.DataFrame(index=cells).reset_index().assign(outcome=np.nan, status="absent")
        for column in frame.columns.difference(absent.columns):
            absent[column] = ""
        if "group" in frame:
            groups = dict(zip(frame["question"].tolist(), frame["group"].tolist(), strict=True))
            absent["group"] = [groups[question] for question in absent["question"].tolist()]
        frame = pd.concat([frame, absent], ignore_index=True)
    counted = np.asarray(frame["status"].isin(list(wrong))) & ~_observed(frame)
    outcome = np.where(counted, 0.0, frame["outcome"].to_numpy(dtype=np.float64))
    found = Counter(frame["status"].to_numpy()[counted].tolist())
    return frame.assign(outcome=outcome), {status: found[status] for status in wrong}


def _asked(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return the trials of questions that some system has, as questions may have different ones."""
    return frame.reindex(columns=["question", "trial"]).drop_duplicates()


def _trials_asked(frame: "pd.DataFrame") -> NDArray[np.intp]:
    """Return how many trials of each question some system has, of shape (question,)."""
    codes = _asked(frame)["question"].factorize()[0]
    return np.bincount(codes)


def _missing_by_status(frame: "pd.DataFrame", n_cells: int) -> dict[str, int]:
    """Count missing outcomes; those without a row are absent."""
    unknown = ~_observed(frame)
    found = Counter({"unscored": int(unknown.sum())})
    if "status" in frame:
        found = Counter(frame["status"].to_numpy()[unknown].tolist())
    found["absent"] += n_cells - len(frame)
    return {status: found[status] for status in STATUSES}


def _strangers(frame: "pd.DataFrame") -> tuple[str, ...]:
    """Report systems that share no question with any other."""
    observed = frame.loc[_observed(frame), CELL[:2]]
    system_of, systems = observed["system"].factorize()
    question_of, questions = observed["question"].factorize()
    asked = np.zeros((len(systems), len(questions)), dtype=bool)
    asked[system_of, question_of] = True
    alone = np.flatnonzero(~(asked & (asked.sum(axis=0) > 1)).any(axis=1))
    if not len(alone) or len(systems) < 2:
        return ()
    pair = (int(alone[0]), 1 if alone[0] == 0 else 0)
    examples = [", ".join(map(repr, questions[asked[row]][:2].tolist())) for row in pair]
    more = f" and {len(alone) - 1} more share" if len(alone) > 1 else " shares"
    return (
        f"{systems[alone[0]]}{more} no question with another system, so that no answers can be "
        f"compared: {systems[pair[0]]} has {examples[0]}, {systems[pair[1]]} has {examples[1]}.",
    )


def say_left_out(names: Iterable[str], answered: Collection[str]) -> Iterator[str]:
    """Report systems without answers, such as those that were measured by other metrics.

    Parameters
    ----------
    names : iterable of str
        All systems.
    answered : collection of str
        Those with answers of the chosen task, scorer, filter and metric.

    Yields
    ------
    str
        A sentence, if there are any.
    """
    lacking = list(dict.fromkeys(name for name in names if name not in answered))
    if lacking:
        verb = "has" if len(lacking) == 1 else "have"
        missing = f"{verb} no answers of the kind that was read, and will not be ranked."
        yield f"{listing(lacking)} {missing}"


def _say_summaries(role: str, names: Sequence[str]) -> Iterator[str]:
    """Report names that tables give to the mean of the others, or to what stands beside scores."""
    kinds = [(_SUMMARY, "a summary of others", "summaries of others")]
    if role == "question":
        kinds.append((_BESIDE, "a size or a standard error", "sizes or standard errors"))
    for pattern, one, many in kinds:
        found = [repr(name) for name in names if pattern.fullmatch(name.rpartition("/")[2])]
        if 1 < len(found) < len(names):
            called = f"The {role}s {', '.join(found)} are called like {many}"
            yield f"{called}: leave them out if they are."
        elif 1 == len(found) < len(names):
            yield f"The {role} {found[0]} is called like {one}: leave it out if it is one."


def _say_pairs(systems: Sequence[str], questions: Sequence[str]) -> Iterator[str]:
    """Report a table that may hold the wins of systems against each other."""
    if len(systems) > 1 and set(systems) == set(questions):
        yield (
            "Systems and questions have the same names: if these are wins of systems against each "
            "other, write a row with model_a, model_b, wins_a and wins_b for each pair."
        )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _distinct(column: Any) -> int:
    return int(column.nunique())


def _marked(column: Any, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows have a label that some of the chosen rows have."""
    codes, found = column.factorize()
    marked = np.zeros(len(found), dtype=bool)
    marked[codes[rows]] = True
    return marked[codes]


def _observed(frame: "pd.DataFrame") -> NDArray[np.bool_]:
    return ~np.isnan(frame["outcome"].to_numpy(dtype=np.float64))


def _check_cells(frame: "pd.DataFrame") -> None:
    repeated = repeated_cells(frame, Source("paths"))
    if repeated is not None:
        cell = frame.iloc[repeated.argmax()]
        raise DataError(
            "paths must hold one outcome per system, question and trial; got more for "
            f"{_where(cell)}, trial {cell['trial']}: remove the copies or number the repeats as "
            "trials"
        )


def _silent(frame: "pd.DataFrame") -> list[str]:
    """Return the systems without any outcome; raise if there is no outcome at all."""
    known = _observed(frame)
    if not known.any():
        raise NoOutcomeError(
            f"paths must hold at least one outcome; got {_count(len(frame), 'row')} without any"
        )
    silent = frame["system"].to_numpy()[~_marked(frame["system"], known)]
    return list(dict.fromkeys(silent.tolist()))


def _say_silent(frame: "pd.DataFrame", silent: Sequence[str]) -> str:
    """Report unranked systems."""
    more = f" and {len(silent) - 1} more have" if len(silent) > 1 else " has"
    return (
        f"{silent[0]}{more} no outcome and will not be ranked: {_count_wrong_remedy(frame, silent)}"
    )


def _count_wrong_remedy(frame: "pd.DataFrame", systems: Sequence[str]) -> str:
    """Return how the missing outcomes of systems would count."""
    found = {"unscored"}
    if "status" in frame:
        found = set(frame.loc[frame["system"].isin(list(systems)), "status"])
    reasons = ",".join(status for status in STATUSES if status in found)
    return f"count what is missing as wrong (count_as_wrong={reasons!r})"


def refuse_negative(frame: "pd.DataFrame") -> None:
    """Raise for a negative outcome, which no log has but for missing ones, or on a scale."""
    negative = frame["outcome"].to_numpy(dtype=np.float64) < 0.0
    if negative.any():
        row = frame.iloc[negative.argmax()]
        raise DataError(
            "outcomes must not be negative unless a scale is named; got "
            f"{row['outcome']:g} for {_where(row)}: leave missing ones empty, or pass "
            "scale=(low, high) for scores"
        )


def _where(row: Any) -> str:
    return f"system {row['system']!r}, question {row['question']!r}"
