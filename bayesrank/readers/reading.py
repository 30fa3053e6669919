"""From paths to responses: find the files, recognise the format, read, and say what is missing."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from bayesrank.battles import Battles
from bayesrank.errors import DataError
from bayesrank.outcomes import refuse
from bayesrank.readers.battles import read_battle_files
from bayesrank.readers.files import PathLike, list_files, natural_key, refuse_empty
from bayesrank.readers.log_table import LogTable, describe, refuse_negative
from bayesrank.readers.selection import CHOICES, SELECTORS, Selection, select
from bayesrank.readers.table import READERS, Reader
from bayesrank.responses import Responses
from bayesrank.scale import UNIT

logger = logging.getLogger("bayesrank")

_NAME_IT = "pass format=..."
_COMPRESSED = frozenset({".bz2", ".gz", ".xz", ".zip", ".zst"})


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
    weights: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    edges: ArrayLike | None = None,
) -> Responses:
    r"""Read evaluation logs.

    Several files are several systems; several files of one system add trials, in the order of
    their names or times. What the logs leave out is missing, and counted in a message at level
    info of the logger ``bayesrank``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files, folders, or both, all in one format. Folders are searched with their subfolders.
    format : str, optional
        One of `READERS`; recognised from the files by default.
    task, scorer, filter, metric : str, optional
        Which one to read where the logs hold several; ``task="mmlu_*"`` reads all tasks that match,
        each as a group of questions. A format that has none refuses the name.
    split_by, pool : str or iterable of str, optional
        Logs of one name that differ in a setting, such as ``revision`` or ``reasoning_effort``, are
        systems of their own, with the setting in their names. Settings to `pool` do not tell
        systems apart; `split_by` names further ones that do, such as ``seed``.
    count_as_wrong : str or iterable of str, optional
        Which outcomes that are missing count as wrong: some of error, limit, refused, unscored and
        absent; ``()`` for none. By default those that the harness itself counts as wrong.
    weights : array_like of shape (category,), optional
        Outcomes are categories 0, 1, ..., worth so much each.
    scale : (float, float), optional
        Outcomes are scores: the lowest and the highest there can be, such as (0, 100) or (1, 10).
    edges : array_like of shape (category - 1,), optional
        Turn scores into categories, which begin at these values; `weights` is then their worth.

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
    >>> rows = ["model,question,correct", "a,q1,1", "a,q2,1", "b,q1,0", "b,q2,1"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     _ = path.write_text("\n".join(rows))
    ...     read_responses(path)
    Responses(2 systems, 2 questions, 1 trial)
    """
    chosen = (task, scorer, filter, metric)
    selection = select(*chosen, split_by=split_by, pool=pool, count_as_wrong=count_as_wrong)
    reader, files = find_logs(paths, format, selection)
    worths = weights if edges is None else None
    if reader.read_arrays is not None:
        data = reader.read_arrays(files, selection, worths, scale)
        message = describe(data.shape, data.n_missing)
    else:
        table = _read_table(reader, files, selection)
        if scale is None:
            refuse_negative(table.frame)
        data = Responses.from_long(table.frame, paired=table.paired, weights=worths, scale=scale)
        message = table.message
        for caution in table.cautions:
            logger.warning(caution)
    if edges is not None:
        data = data.categorize(edges, weights=weights)
    logger.info(f"{message}{_what_they_are(data)}")
    return data


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
) -> LogTable:
    """Read evaluation logs as a long table that can be looked at and changed.

    Parameters
    ----------
    paths, format, task, scorer, filter, metric, split_by, pool, count_as_wrong
        As in :func:`read_responses`.

    Returns
    -------
    LogTable
        Its frame and `paired` are what :meth:`Responses.from_long` takes.

    Raises
    ------
    DataError
        As in :func:`read_responses`.
    """
    chosen = (task, scorer, filter, metric)
    selection = select(*chosen, split_by=split_by, pool=pool, count_as_wrong=count_as_wrong)
    reader, files = find_logs(paths, format, selection)
    return _read_table(reader, files, selection)


def read_battles(paths: PathLike | Iterable[PathLike]) -> Battles:
    r"""Read battles between two systems, each with a winner or a tie.

    Parameters
    ----------
    paths : path or iterable of paths
        Tables in ``.csv``, ``.parquet``, ``.jsonl`` or ``.json`` with columns for two systems
        (model_a and model_b, left and right, player_1 and player_2, ...) and who won: a winner by
        name, side, grade or share (:func:`bayesrank.winners.read_winners`), winner_model_a,
        winner_model_b and winner_tie, or numbers of wins (wins_a, wins_b, ties). Also pair
        judgments of MT-bench, games of Arena-Hard and preferences of AlpacaEval. As far as they are
        there, the columns for time, prompt, judge or user, group (category, language) and weight
        are read too, pairs of numbers (length_a, length_b) and the ``conv_metadata`` of arenas.

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
    >>> rows = ["model_a,model_b,winner", "a,b,model_a", "b,c,tie"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "battles.csv"
    ...     _ = path.write_text("\n".join(rows))
    ...     read_battles(path)
    Battles(2 battles, 3 systems)
    """
    _, files = find_logs(paths, "battles", Selection())
    return read_battle_files(files)


def read_data(
    paths: PathLike | Iterable[PathLike], *, format: str | None = None, **options: Any
) -> Responses | Battles:
    r"""Read evaluation logs or battles, whichever they are.

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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     _ = path.write_text("first,second,winner\na,b,first\n")
    ...     read_data(path)
    Battles(1 battle, 2 systems)
    """
    known = {name: value for name, value in options.items() if name in CHOICES}
    reader, files = find_logs(paths, format, select(**known))
    if reader.read_battles is not None:
        others = {name: value for name, value in options.items() if name not in CHOICES}
        refuse(others, "must be left out for battles, which have winners and no outcomes")
        data = reader.read_battles(files)
        logger.info(str(data).removeprefix("Battles(").removesuffix(")"))
        return data
    return read_responses(paths, format=format, **options)


def _read_table(reader: Reader, files: list[Path], selection: Selection) -> LogTable:
    if reader.read is None:
        raise DataError(
            f"paths must hold outcomes of questions; got {reader.name} in {files[0].name}",
            in_python="read them with read_battles",
            in_shell="`bayesrank rank` reads them",
        )
    return reader.read(files, selection)


def find_logs(
    paths: PathLike | Iterable[PathLike], format: str | None, selection: Selection
) -> tuple[Reader, list[Path]]:
    """Find the files to read and their format.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders.
    format : str, optional
        Name of the format, if the caller knows it. Files named by the caller are then read as
        they are, and files in folders if they look like that format.
    selection : Selection
        Refused where the format has no such choice.

    Returns
    -------
    Reader
    list of pathlib.Path

    Raises
    ------
    DataError
        If the format is unknown, mixed or not recognised, or a file is empty.
    """
    if format is not None and format not in READERS:
        raise DataError(f"format must be one of {', '.join(READERS)}; got {format!r}")
    named, found = list_files(paths)
    for path in named:
        refuse_empty(path)
    if format is not None:
        reader = READERS[format]
        files = named + [path for path in found if reader.recognises(path)]
    else:
        reader, files = _recognise(named, found)
    if not files:
        known = ", ".join(READERS) if format is None else format
        raise DataError(
            f"paths must hold logs in a known format ({known}); got folders without any"
        )
    for path in files:
        refuse_empty(path)
    for name, value in vars(selection).items():
        known = reader.selectors if name in SELECTORS else reader.choices
        if value not in (None, ()) and name not in known:
            raise DataError(
                f"{name} must be left out in format {reader.name}, which has no choice of it; got "
                f"{value!r}"
            )
    return reader, sorted(files, key=natural_key)


def _recognise(named: list[Path], found: list[Path]) -> tuple[Reader, list[Path]]:
    """Return the one format of all files that are logs."""
    by_format: dict[str, list[Path]] = {}
    for path in [*named, *found]:
        reader = next((row for row in READERS.values() if row.recognises(path)), None)
        if reader is not None:
            by_format.setdefault(reader.name, []).append(path)
        elif path in named:
            remedy = "unpack it" if path.suffix.lower() in _COMPRESSED else _NAME_IT
            raise DataError(
                f"paths must be logs in a known format ({', '.join(READERS)}); got {path.name!r} "
                f"({remedy})"
            )
    if len(by_format) > 1:
        examples = ", ".join(f"{name} ({files[0].name})" for name, files in by_format.items())
        raise DataError(
            f"paths must hold logs in one format; got {examples} (name fewer paths, or {_NAME_IT})"
        )
    name, files = next(iter(by_format.items()), ("table", []))
    return READERS[name], files


def _what_they_are(data: Responses) -> str:
    """Say what outcomes are that are neither 0 and 1 nor fractions."""
    if data.scale is not None:
        return "" if data.scale == UNIT else f"; scores {data.scale}"
    if data.is_binary:
        return ""
    categories = f"; categories 0..{data.n_categories - 1}"
    if data.weights is None:
        return f"{categories} in this order"
    return f"{categories} worth {', '.join(f'{worth:g}' for worth in data.weights)}"
