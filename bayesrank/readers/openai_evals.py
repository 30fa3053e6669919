"""Reader of logs of OpenAI evals, one event per line."""

import re
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

from bayesrank.errors import DataError
from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import parse_json_lines
from bayesrank.readers.log import Attempt, Log, label, name_of, number_trials, scored
from bayesrank.readers.log_table import LogTable, Selection, choose
from bayesrank.readers.opening import expects, in_folder, starts_like

LINES = (".jsonl", ".json", ".log")
LOG_START = re.compile(rb'\{\s*"spec"\s*:\s*\{(?=[^\n]*"(?:completion_fns|eval_name|base_eval)")')

# The metric of an event of the type match; those of the type metrics name theirs.
MATCH = "correct"


def is_openai_evals(path: Path) -> bool:
    """Return whether a file starts like the specification of a run."""
    return starts_like(path, LOG_START, LINES)


def read_openai_evals(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the matches, or one of the metrics, of runs.

    The system is the completion function, the task the eval, the question the sample; several
    events of a sample, and further runs, are trials, and not paired. Samples with an error and
    without an outcome are missing, as in the report of the eval.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Logs.
    selection : Selection
        May name a task or several, and a metric.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a choice is left open, or a log is damaged or has no outcomes.
    """
    runs = [_read(path) for path in paths]
    known = [
        name
        for _, _, events in runs
        for _, values in events
        for name, value in values.items()
        if value is not None
    ]
    if not known:
        raise DataError(
            "paths must hold events of the type match or metrics; got none in "
            f"{in_folder(paths[0])}"
        )
    metric = choose("metric", known, selection.metric)
    logs = []
    for path, (spec, errors, events) in zip(paths, runs, strict=True):
        attempts = [
            scored(sample, values[metric], path) for sample, values in events if metric in values
        ]
        answered = {attempt.question for attempt in attempts}
        attempts += [Attempt(each, nan, status="error") for each in errors if each not in answered]
        with expects(path, "a spec with completion_fns and an eval_spec"):
            functions = spec.get("completion_fns") or [spec.get("model_name")]
            system = ",".join(map(name_of, functions))
            evaluated = (spec.get("run_config") or {}).get("eval_spec") or {}
            conditions = {"split": spec.get("split"), "args": evaluated.get("args")}
        logs.append(
            Log(
                path,
                system,
                number_trials(attempts),
                task=str(spec.get("eval_name") or spec.get("base_eval") or ""),
                run=str(spec.get("run_id") or ""),
                conditions=conditions,
            )
        )
    return table_of_logs(logs, "openai_evals", selection)


def _read(path: Path) -> tuple[dict[str, Any], list[str], list[tuple[str, dict[str, Any]]]]:
    """Return the specification, the samples with errors, and the values of every event."""
    spec: dict[str, Any] = {}
    errors, events = [], []
    for record in parse_json_lines(path):
        with expects(path, "events of OpenAI evals with a sample_id and data"):
            if "spec" in record:
                spec = dict(record["spec"])
            elif record.get("type") == "error":
                errors.append(label(record["sample_id"]))
            elif record.get("type") == "match":
                events.append((label(record["sample_id"]), {MATCH: record["data"][MATCH]}))
            elif record.get("type") == "metrics":
                values = {
                    name: value
                    for name, value in record["data"].items()
                    if isinstance(value, bool | int | float | None)
                }
                events.append((label(record["sample_id"]), values))
    return spec, errors, events
