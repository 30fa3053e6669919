"""From paths to responses: find files, recognise the format, read, and report missing outcomes."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bayesrank.battles import Battles
from bayesrank.errors import DataError
from bayesrank.longtable import arrange
from bayesrank.outcomes import refuse
from bayesrank.printable import listing
from bayesrank.readers.battles import read_battle_files
from bayesrank.readers.finding import Logs, PathLike, find_logs, read_sound
from bayesrank.readers.log_table import (
    CHOICES,
    LogTable,
    Selection,
    describe,
    refuse_negative,
    select,
)
from bayesrank.readers.naming import leave_out_copies
from bayesrank.readers.table import ReadBattles
from bayesrank.responses import Responses
from bayesrank.scale import UNIT
from bayesrank.validation import say_lookalikes

logger = logging.getLogger("bayesrank")

# Options that declare outcomes.
_OUTCOMES = {"weights", "scale", "edges"}

# Seconds after which reading reports progress.
_PATIENCE = 2.0


def read_responses(
    paths: PathLike | Iterable[PathLike],
    *,
    format: str | None = None,
    task: str | None = None,
    scorer: str | None = None,
    filter: str | None = None,
    metric: str | None = None,
    split_by: str | Iterable[str] | None = None,
    pool: str | Iterable[str] | None = None,
    count_as_wrong: str | Iterable[str] | None = None,
    system: str | None = None,
    question: str | None = None,
    trial: str | None = None,
    outcome: str | None = None,
    group: str | None = None,
    wide: bool = False,
    weights: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    edges: ArrayLike | None = None,
    strict: bool = False,
) -> Responses:
    r"""Read evaluation logs.

    Several files are several systems; several files of one system add trials, in the order of
    their names or times. What the logs leave out is missing, and counted in a message at level
    info of the logger ``bayesrank``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files, folders, or both, all in one format. Folders are searched with their subfolders;
        files that are not logs are left out and counted. A pattern such as ``runs/*.csv`` stands
        for what matches it, ``-`` for the standard input.
    format : str, optional
        One of `READERS`; recognised from the files by default.
    task, scorer, filter, metric : str, optional
        Which one to read where the logs hold several; ``task="mmlu_*"`` reads all tasks that match,
        each as a group of questions. A format that has none refuses the name.
    split_by, pool : str or iterable of str, optional
        Logs of one name that differ in a setting, such as ``revision`` or ``reasoning_effort``, are
        systems of their own, with the setting in their names; likewise rows of a table that differ
        in its column. Settings to `pool` do not distinguish systems; `split_by` names further ones
        that do, such as ``seed``.
    count_as_wrong : str or iterable of str, optional
        Missing outcomes that count as wrong: some of error, limit, refused, unscored and
        absent; ``()`` for none. By default those that the harness counts as wrong.
    system, question, trial, outcome, group : str, optional
        Columns of a table. By default those that :data:`bayesrank.columns.NAMES` knows. Several
        columns that make up the system, the question or the trial are separated by commas, where
        ``file`` and ``folder`` are the names of the file and its folder, and ``scores.accuracy`` is
        a field of the objects in a column; ``question="row"`` numbers the questions of every
        system by the order of its rows, and ``group="none"`` leaves groups out.
    wide : bool, default False
        Whether every system of a table has a column: all but those of the question, the trial and
        the group, or those that `system` lists; or every question, if there is a column for the
        system, such as the only one of `system`, and none for the question; or every trial, such as
        run1, if there are both.
    weights : array_like of shape (category,), optional
        Worth of the categories 0, 1, ..., which the outcomes are.
    scale : (float, float), optional
        Outcomes are scores: the lowest and the highest there can be, such as (0, 100) or (1, 10).
    edges : array_like of shape (category - 1,), optional
        Turn scores into categories, which begin at these values; `weights` is then their worth.
    strict : bool, default False
        Whether a file in a folder that is no log is an error.

    Returns
    -------
    Responses
        `paired` where trial t is the same run for all systems: arrays, and tables with a column
        run or seed.

    Raises
    ------
    DataError
        If a file is damaged or of no known format, formats are mixed, a choice is left open, the
        outcomes contradict each other, or they are neither 0 and 1, fractions, nor what was named.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> rows = ["model,question,correct", "a,q1,1", "a,q2,1", "b,q1,0", "b,q2,1"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     _ = path.write_text("\n".join(rows))
    ...     read_responses(path)
    Responses(2 systems, 2 questions, 1 trial)
    """
    selection = select(
        task=task,
        scorer=scorer,
        filter=filter,
        metric=metric,
        split_by=split_by,
        pool=pool,
        count_as_wrong=count_as_wrong,
        system=system,
        question=question,
        trial=trial,
        outcome=outcome,
        group=group,
        wide=wide,
    )
    logs = find_logs(paths, format, selection, strict=strict)
    return _read_responses(logs, selection, weights=weights, scale=scale, edges=edges)


def read_table(
    paths: PathLike | Iterable[PathLike],
    *,
    format: str | None = None,
    task: str | None = None,
    scorer: str | None = None,
    filter: str | None = None,
    metric: str | None = None,
    split_by: str | Iterable[str] | None = None,
    pool: str | Iterable[str] | None = None,
    count_as_wrong: str | Iterable[str] | None = None,
    system: str | None = None,
    question: str | None = None,
    trial: str | None = None,
    outcome: str | None = None,
    group: str | None = None,
    wide: bool = False,
    strict: bool = False,
) -> LogTable:
    """Read evaluation logs as a long table, to inspect or change.

    Parameters
    ----------
    paths, format, task, scorer, filter, metric, split_by, pool, count_as_wrong
        As in :func:`read_responses`.
    system, question, trial, outcome, group, wide, strict
        As in :func:`read_responses`.

    Returns
    -------
    LogTable
        Its frame and `paired` are what :meth:`bayesrank.Responses.from_long` takes.

    Raises
    ------
    DataError
        As in :func:`read_responses`.
    """
    selection = select(
        task=task,
        scorer=scorer,
        filter=filter,
        metric=metric,
        split_by=split_by,
        pool=pool,
        count_as_wrong=count_as_wrong,
        system=system,
        question=question,
        trial=trial,
        outcome=outcome,
        group=group,
        wide=wide,
    )
    return _read_table(find_logs(paths, format, selection, strict=strict), selection)


def read_battles(paths: PathLike | Iterable[PathLike]) -> Battles:
    r"""Read battles between two systems, each with a winner or a tie.

    Parameters
    ----------
    paths : path or iterable of paths
        Tables in ``.csv``, ``.tsv``, ``.parquet``, ``.feather``, ``.jsonl``, ``.ndjson`` or
        ``.json``,
        text also compressed, with columns for two systems (model_a and model_b, left and
        right, player_1 and player_2, ...) and who won: a winner by name, side, grade or
        share (:func:`bayesrank.winners.read_winners`), winner_model_a, winner_model_b and
        winner_tie, or numbers of wins (wins_a, wins_b, ties). Also pair judgments of
        MT-bench, games of Arena-Hard and preferences of AlpacaEval. Columns
        for time, prompt, judge or user, group (category, language) and weight are read too,
        and pairs of numbers (length_a, length_b) and the ``conv_metadata`` of arenas.

    Returns
    -------
    Battles

    Raises
    ------
    DataError
        If a file is damaged or holds no battles, or a winner is unknown.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> rows = ["model_a,model_b,winner", "a,b,model_a", "b,c,tie"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "battles.csv"
    ...     _ = path.write_text("\n".join(rows))
    ...     read_battles(path)
    Battles(2 battles, 3 systems)
    """
    return _read_battles(find_logs(paths, "battles", Selection()), read_battle_files)


def read_data(
    paths: PathLike | Iterable[PathLike], *, format: str | None = None, **options: Any
) -> Responses | Battles:
    r"""Read evaluation logs or battles.

    Parameters
    ----------
    paths, format
        As in :func:`read_responses`.
    **options
        Further keywords of :func:`read_responses`, which battles do not have.

    Returns
    -------
    Responses or Battles

    Raises
    ------
    DataError
        As in :func:`read_responses` and :func:`read_battles`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     _ = path.write_text("first,second,winner\na,b,first\n")
    ...     read_data(path)
    Battles(1 battle, 2 systems)
    """
    strict = options.pop("strict", False)
    selection = select(**{name: options.pop(name) for name in CHOICES if name in options})
    for name in options.keys() - _OUTCOMES:
        raise DataError(f"options must be among those of read_responses; got {name!r}")
    logs = find_logs(paths, format, selection, strict=strict)
    if logs.reader.read_battles is not None:
        refuse(options, "must be left out for battles, which have winners and no outcomes")
        return _read_battles(logs, logs.reader.read_battles)
    return _read_responses(logs, selection, **options)


def _read_battles(logs: Logs, read: ReadBattles) -> Battles:
    data, left_out = _read_originals(logs, read)
    for caution in say_lookalikes(data.systems):
        logger.warning(caution)
    logger.info(str(data).removeprefix("Battles(").removesuffix(")") + left_out)
    return data


def _read_responses(
    logs: Logs,
    selection: Selection,
    *,
    weights: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    edges: ArrayLike | None = None,
) -> Responses:
    worths = weights if edges is None else None
    if logs.reader.read_arrays is not None:
        read = logs.reader.read_arrays
        data, left_out = _read_originals(logs, lambda files: read(files, selection, worths, scale))
        n_systems, n_questions, n_trials = data.shape
        asked = np.full(n_questions, n_trials)
        message = describe(n_systems, asked, data.n_missing) + left_out
    else:
        table = _read_table(logs, selection)
        options: dict[str, Any] = {"weights": worths, "scale": scale}
        if scale is None and worths is None:
            # Scores that become categories have weights when they are.
            options = {"scale": None, **table.declared}
        if options["scale"] is None:
            refuse_negative(table.frame)
        if table.standard:
            cells, labels = arrange(table.frame)
            data = Responses(cells, paired=table.paired, **labels, **options)
        else:
            # Details say what the format counts, and are no columns of settings or errors here.
            frame = table.frame.drop(columns=list(table.details))
            data = Responses.from_long(frame, paired=table.paired, **options)
        message = table.message
        for caution in table.cautions:
            logger.warning(caution)
    if edges is not None:
        data = data.categorize(edges, weights=weights)
    for caution in _shares_on_a_scale(data):
        logger.warning(caution)
    logger.info(f"{message}{_what_they_are(data)}")
    return data


def _read_table(logs: Logs, selection: Selection) -> LogTable:
    if logs.reader.read is None:
        raise DataError(
            f"paths must hold outcomes of questions; got {logs.reader.name} in "
            f"{logs.files[0].name}",
            in_python="read them with read_battles",
        )
    read = logs.reader.read
    anywhere = logs.reader.plain and not selection.of_files
    table, left_out = _read_originals(logs, lambda files: read(files, selection), anywhere=anywhere)
    return replace(table, message=table.message + left_out)


def _read_originals[T](
    logs: Logs, read: Callable[[Sequence[Path]], T], *, anywhere: bool = True
) -> tuple[T, str]:
    """Read logs without copies of them; also return the ignored files, as the end of a message."""

    def read_once(paths: Sequence[Path]) -> tuple[T, str]:
        if len(paths) == 1:
            return read(paths), ""
        files, copies = leave_out_copies(paths, anywhere=anywhere)
        return read(files), copies

    with _patiently(logs):
        (found, copies), sound = read_sound(logs, read_once)
    return found, copies + sound.message


@contextmanager
def _patiently(logs: Logs) -> Iterator[None]:
    """Report after two seconds that reading continues."""
    size = sum(path.stat().st_size for path in logs.files)
    text = f"Reading {len(logs.files)} file{'s' * (len(logs.files) != 1)} ({size / 1e6:.0f} MB)"
    timer = Timer(_PATIENCE, logger.info, [text])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shares_on_a_scale(data: Responses) -> Iterator[str]:
    """Report scores that look like fractions of 1 on a larger scale."""
    if data.scale is None or data.scale.low != 0.0 or data.scale.high <= 1.0:
        return
    parts = [("system", name, data.values[[row]]) for row, name in enumerate(data.systems)]
    if data.groups is not None:
        groups = np.array(data.groups, dtype=object)
        parts += [
            ("group", name, data.values[:, groups == name]) for name in dict.fromkeys(data.groups)
        ]
    for kind, name, scores in parts:
        fractions = (scores > 0.0) & (scores < 1.0)
        if fractions.any() and not (scores > 1.0).any():
            yield (
                f"All scores of the {kind} {name!r} lie between 0 and 1 on a scale {data.scale}: "
                "if they are shares, multiply them, or read them by themselves."
            )
    known = ~np.isnan(data.values)
    inside = ((data.values > 0.0) & (data.values < 1.0) | ~known).all(axis=(0, 2))
    found = np.flatnonzero(inside & (known.sum(axis=(0, 2)) > 2))
    if 0 < len(found) < len(inside):
        names = listing([data.questions[place] for place in found])
        yield (
            f"All scores of {names} lie between 0 and 1 on a scale {data.scale}, and not those of "
            "other questions: if they are shares, multiply them."
        )


def _what_they_are(data: Responses) -> str:
    """Report the type of outcomes that are neither 0 and 1 nor fractions."""
    if data.scale is not None:
        return "" if data.scale == UNIT else f"; scores {data.scale}"
    if data.is_binary:
        return ""
    categories = f"; categories 0..{data.n_categories - 1}"
    if data.weights is None:
        return f"{categories} in this order"
    return f"{categories} worth {', '.join(f'{worth:g}' for worth in data.weights)}"
