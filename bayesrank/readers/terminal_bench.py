"""Reader of Terminal-Bench results, ``results.json`` of runs and of their trials."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json
from bayesrank.readers.log import Attempt, Log, label, number_trials
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.opening import expects, starts_like, stored

_TRIAL = rb'"(?:id|trial_name)"\s*:\s*"(?s:.*?)"is_resolved"\s*:'
RUN_START = re.compile(rb'\{(?:\s*"id"\s*:[^,]*,)?\s*"results"\s*:\s*\[\s*\{\s*' + _TRIAL)
TRIAL_START = re.compile(rb"\{\s*" + _TRIAL)

_METADATA = "run_metadata.json"

# The accuracy of Terminal-Bench is the share of resolved trials among all trials.
WRONG = ("error", "limit", "unscored")
FINE = frozenset({"unset", "none"})
LIMITS = frozenset({
    "agent_timeout",
    "test_timeout",
    "context_length_exceeded",
    "output_length_exceeded",
})  # fmt: skip


def is_terminal_bench(path: Path) -> bool:
    """Return whether a file starts like the results of a run or of a trial."""
    return starts_like(path, RUN_START) or starts_like(path, TRIAL_START)


def read_terminal_bench(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read results of runs, or of trials if their run has no results.

    The system is ``<agent>__<model>`` of the ``run_metadata.json`` beside the results, or else the
    folder. Agents without a model are one system for each folder of runs, since agents run with
    several models. The attempts at a task are trials, and not paired. Unresolved trials are wrong,
    including those that were never tested, as in the accuracy of Terminal-Bench, unless other
    statuses count as wrong; the column failure_mode has the end of a trial.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results.
    selection : Selection
        May name a task, the dataset.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a file is damaged.
    """
    runs = {path.parent: path for path in paths if starts_like(path, RUN_START)}
    trials: dict[Path, list[Path]] = {}
    for path in paths:
        if path not in runs.values() and not runs.keys() & set(path.parents):
            # They lie in <run>/<task>/<trial>.
            trials.setdefault(path.parent.parent.parent, []).append(path)
    logs = []
    for folder, files in [*((each, [path]) for each, path in runs.items()), *trials.items()]:
        attempts = [attempt for path in files for attempt in _attempts(path)]
        logs.append(_log(folder, files[0], number_trials(attempts)))
    logs = _by_submission(logs)
    details = ("failure_mode",)
    return table_of_logs(logs, "terminal_bench", selection, details=details, wrong=WRONG)


def _by_submission(logs: Sequence[Log]) -> list[Log]:
    """Place the runs of an agent without a model in the folder of its submission.

    That is the outermost one that separates its runs and has no runs of other agents.
    """
    folders: dict[str, list[Path]] = {}
    inside: dict[Path, set[str]] = {}
    for log in logs:
        if log.place is not None and stored(log.place / _METADATA):
            folders.setdefault(log.name, []).append(log.place)
        for folder in log.path.parents:
            inside.setdefault(folder, set()).add(log.name)
    placed = []
    for log in logs:
        if log.place is not None and log.place in folders.get(log.name, ()):
            shared = Path(os.path.commonpath(folders[log.name]))
            above = [each for each in (log.place, *log.place.parents) if shared in each.parents]
            alone = (each for each in reversed(above) if len(inside[each]) == 1)
            log = replace(log, place=next(alone, log.place))
        placed.append(log)
    return placed


def _attempts(path: Path) -> list[Attempt]:
    with expects(path, "results of Terminal-Bench with a task_id and is_resolved"):
        told = read_json(path)
        return [_attempt(trial) for trial in told.get("results", [told])]


def _attempt(trial: dict[str, Any]) -> Attempt:
    resolved, mode = trial["is_resolved"], str(trial.get("failure_mode") or "unset")
    status = "" if mode in FINE else "limit" if mode in LIMITS else "error"
    outcome = nan if resolved is None else float(bool(resolved))
    if resolved is None and not status:
        status = "unscored"
    return Attempt(label(trial["task_id"]), outcome, status=status, details=(mode,))


def _log(folder: Path, path: Path, attempts: list[Attempt]) -> Log:
    metadata = stored(folder / _METADATA)
    with expects(metadata or path, "the metadata of a run of Terminal-Bench"):
        told = {} if metadata is None else read_json(metadata)
        named = [str(told[key]) for key in ("agent_name", "model_name") if told.get(key)]
        return Log(
            path,
            "__".join(named) or folder.name,
            attempts,
            task=str(told.get("dataset_name") or ""),
            place=None if told.get("model_name") else folder if named else folder.parent,
            run=str(told.get("uuid") or told.get("run_id") or ""),
            settings={"agent_kwargs": told.get("agent_kwargs")},
            conditions={
                "dataset_version": told.get("dataset_version"),
                "global_timeout_multiplier": told.get("global_timeout_multiplier"),
            },
        )
