"""Reader of MCPMark results, ``<run>/<category>__<task>/meta.json``."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json
from bayesrank.readers.log import Attempt, Log, label, name_of
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.opening import expects, starts_like

META_START = re.compile(
    rb'\{\s*"task_name"\s*:(?=(?s:.*?)"model_name"\s*:)'
    rb'(?=(?s:.*?)"execution_result"\s*:)'
)
_TIMEOUT = re.compile(r"time[d ]*-?\s?out|max(?:imum)? turns", re.IGNORECASE)


def is_mcpmark(path: Path) -> bool:
    """Return whether a file starts like the result of a task."""
    return starts_like(path, META_START)


def read_mcpmark(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read results of tasks; the services, and each suite of theirs, are groups of questions.

    The system is the model with its reasoning effort; the folder of a run is a trial, and not
    paired. Tasks that failed are wrong, also by an error or a timeout.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results.
    selection : Selection
        Says what counts as wrong.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a file is damaged.
    """
    logs: dict[tuple[str, ...], Log] = {}
    for path in paths:
        with expects(path, "results of MCPMark with a task_name and an execution_result"):
            told = read_json(path)
            settings = {"reasoning_effort": told.get("reasoning_effort")}
            conditions = {"time_limit": told.get("timeout")}
            # They lie in <experiment>/<model>__<service>/run-<n>/<task>.
            run = path.parent.parent
            experiment = str(run.parent.parent)
            model = name_of(told["model_name"])
            key = (model, experiment, run.name, str(settings), str(conditions))
            log = Log(path, model, [], settings=settings, conditions=conditions)
            logs.setdefault(key, log).attempts.append(_attempt(told, run.parent.name))
    return table_of_logs(list(logs.values()), "mcpmark", selection)


def _attempt(told: dict[str, Any], folder: str) -> Attempt:
    """Return the attempt at a task; only the folder of a service says of what suite it is."""
    service, suite = str(told.get("mcp") or ""), folder.rpartition("__")[2]
    group = suite if suite.startswith(f"{service}-") else service
    result = told["execution_result"]
    error = str(result.get("error_message") or "")
    status = "" if not error else "limit" if _TIMEOUT.search(error) else "error"
    success = result["success"]
    if not isinstance(success, bool):
        raise TypeError(success)
    return Attempt(label(told["task_name"]), float(success), status=status, group=group)
