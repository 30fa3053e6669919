"""Reader of tables that ``samples_df`` of inspect_ai makes, stored as CSV, Parquet and the like."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayesrank.errors import DataError
from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.inspect_files import CONDITIONS, LIMITS
from bayesrank.readers.log import Attempt, Log, label, scored
from bayesrank.readers.log_table import LogTable
from bayesrank.readers.opening import expects, plain_suffix
from bayesrank.readers.selection import Selection, choose
from bayesrank.readers.table_files import SUFFIXES, column_names, read_frame

# What identifies the evaluation, the sample and its repeat; sample_id is another one in every row.
IDS = {"eval_id", "sample_id", "id", "epoch"}
SCORE = "score_"
DETAILS = ("limit", "error")


def is_inspect_frame(path: Path) -> bool:
    """Return whether a table has the ids of samples_df, and scores."""
    if plain_suffix(path) not in SUFFIXES:
        return False
    names = column_names(path)
    return set(names) >= IDS and any(name.startswith(SCORE) for name in names)


def read_inspect_frames(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the samples of tables that ``samples_df`` makes with the columns of ``EvalModel``.

    The system is the model; the columns on the model, the limits and the arguments of the task tell
    systems apart. Epochs are trials, and further evaluations of a system add trials; they are not
    paired. Samples without a score are missing, those with an error or a limit that were scored
    count.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Tables.
    selection : Selection
        May name a task or several, and a scorer.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a choice is left open, or a table lacks the model or is damaged.
    """
    logs: dict[tuple[Path, str, str], Log] = {}
    for path in paths:
        frame = read_frame(path, needed=_is_needed)
        scorers = [name.removeprefix(SCORE) for name in frame if name.startswith(SCORE)]
        scorer = choose("scorer", scorers, selection.scorer)
        if "model" not in frame:
            raise DataError(
                f"paths must be tables with a column model; got none in {path.name}: make it by "
                "samples_df(columns=EvalInfo + EvalTask + EvalModel + SampleSummary)"
            )
        with expects(path, "samples with an id, an epoch and a score"):
            for row in _rows(frame):
                key = (path, str(row["eval_id"]), str(row["model"]))
                log = logs.setdefault(key, _log(path, row))
                log.attempts.append(_attempt(row, scorer, path))
    return table_of_logs(list(logs.values()), "inspect_frames", selection, details=DETAILS)


def _is_needed(name: str) -> bool:
    """Return whether a column is read; others hold the texts of samples."""
    known = name in IDS or name in (*DETAILS, *LIMITS, *CONDITIONS, "task", "task_name")
    return known or name.startswith((SCORE, "model", "task_arg_"))


def _rows(frame: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows as text, numbers, and None where there is nothing."""
    for values in zip(*(frame[name].tolist() for name in frame), strict=True):
        yield {
            name: None if _is_blank(value) else value
            for name, value in zip(frame, values, strict=True)
        }


def _is_blank(value: Any) -> bool:
    return value is None or value == "" or (np.ndim(value) == 0 and value != value)


def _log(path: Path, row: dict[str, Any]) -> Log:
    arguments = {name: row[name] for name in row if name.startswith("task_arg_")}
    return Log(
        path,
        str(row["model"]),
        [],
        task=str(row.get("task_name") or row.get("task") or ""),
        run=str(row["eval_id"]),
        settings={name: row[name] for name in row if name.startswith("model_")},
        conditions={name: row.get(name) for name in (*LIMITS, *CONDITIONS)} | arguments,
    )


def _attempt(row: dict[str, Any], scorer: str, path: Path) -> Attempt:
    limit, error = (str(row.get(name) or "") for name in DETAILS)
    status = "error" if error else "limit" if limit else ""
    value = row[f"{SCORE}{scorer}"]
    trial = int(float(row["epoch"])) - 1
    question = label(row["id"])
    return scored(question, value, path, trial=trial, status=status, details=(limit, error))
