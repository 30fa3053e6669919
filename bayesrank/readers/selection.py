"""What to read from logs, what tells their systems apart, and what counts as wrong."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bayesrank.columns import COLUMNS, SELECTORS, as_words, split_and_pooled
from bayesrank.errors import DataError


@dataclass(frozen=True)
class Selection:
    """Names chosen by the caller; None where the logs leave no choice.

    Attributes
    ----------
    task, scorer, filter, metric : str, optional
        As in :func:`bayesrank.readers.read_responses`.
    split_by, pool : tuple of str
        Fields of the logs that tell systems of one name apart, and those that do not.
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


# Keywords of `select`.
CHOICES = (*SELECTORS, "split_by", "pool", "count_as_wrong", *COLUMNS, "wide")


def select(
    task: str | None = None,
    scorer: str | None = None,
    filter: str | None = None,
    metric: str | None = None,
    *,
    split_by: str | Iterable[str] | None = None,
    pool: str | Iterable[str] | None = None,
    count_as_wrong: str | Iterable[str] | None = None,
    wide: bool = False,
    **columns: str | None,
) -> Selection:
    """Make a selection from what callers pass.

    Parameters
    ----------
    task, scorer, filter, metric, split_by, pool, count_as_wrong, wide
        As in :func:`bayesrank.readers.read_responses`.
    **columns : str, optional
        Columns of a table by what they hold, of :data:`bayesrank.columns.COLUMNS`.

    Returns
    -------
    Selection

    Raises
    ------
    DataError
        If a name or a list of words is something else, or a setting is to be split by and pooled.
    """
    chosen = {"task": task, "scorer": scorer, "filter": filter, "metric": metric, **columns}
    for name, value in chosen.items():
        if not isinstance(value, str | None):
            raise DataError(f"{name} must be a name, or None; got {value!r}")
    wrong = None if count_as_wrong is None else as_words("count_as_wrong", count_as_wrong)
    return Selection(
        task,
        scorer,
        filter,
        metric,
        *split_and_pooled(split_by, pool),
        () if wrong == ("none",) else wrong,
        wide=wide,
        **columns,
    )


def choose(argument: str, known: Iterable[str], chosen: str | None, where: str = "") -> str:
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

    Returns
    -------
    str

    Raises
    ------
    DataError
        If `chosen` is unknown, or None while there are several (the message lists the names),
        or if the logs name none.

    Examples
    --------
    >>> choose("task", ["addition"], None)
    'addition'
    """
    names = list(dict.fromkeys(known))
    if chosen is None and len(names) == 1:
        return names[0]
    if chosen in names:
        return chosen
    if not names:
        raise DataError(f"{argument} must be named in the logs{where}; got none")
    listed = ", ".join(names)
    remedy = f" (pass {argument}=...)" if chosen is None else ""
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
