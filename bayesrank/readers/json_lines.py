"""Readers of JSON lines with a layout of their own: Every Eval Ever and py-irt."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path

from bayesrank.errors import DataError
from bayesrank.outcome_values import outcome_number
from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.files import BYTE_ORDER_MARK, parse_json_lines, starts_like
from bayesrank.readers.log import Attempt, Log, label, number_trials
from bayesrank.readers.log_table import LogTable
from bayesrank.readers.opening import misfit
from bayesrank.readers.selection import Selection, choose, choose_tasks

SAMPLES_START = re.compile(BYTE_ORDER_MARK + rb'\s*\{(?=[^\n]*?"evaluation_id"\s*:)')
SUBJECTS_START = re.compile(BYTE_ORDER_MARK + rb'\s*\{\s*"(?:subject_id|responses)"\s*:')

LINES = (".jsonl", ".jsonlines", ".ndjson")

# Fields of the evaluation that can be outcomes; the first one is read by default.
METRICS = ("score", "is_correct")


def is_every_eval_ever(path: Path) -> bool:
    """Return whether a file starts like samples in the schema of Every Eval Ever."""
    return starts_like(path, SAMPLES_START, LINES)


def is_py_irt(path: Path) -> bool:
    """Return whether a file starts like the responses of a subject, as py-irt writes them."""
    return starts_like(path, SUBJECTS_START, LINES)


def read_every_eval_ever(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read samples in the schema of Every Eval Ever, ``<uuid>_samples.jsonl``.

    The system is the model_id, the task the evaluation_name, the question the sample_id. Several
    lines of a model and sample are trials in order of appearance, and not paired. The outcome is
    the score of the evaluation, or its is_correct by ``metric="is_correct"``; samples with an error
    are missing, and the column error has its text. Where the hash of a sample differs between
    models, so that its name may stand for two inputs, the message says so.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Samples.
    selection : Selection
        May name a task and a metric.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If the task is left open, or a file is damaged.
    """
    metric = choose("metric", METRICS, selection.metric or METRICS[0])
    logs: dict[tuple[str, str], Log] = {}
    hashes: dict[tuple[str, str], set[str]] = {}
    for path in paths:
        for task, system, attempt, hashed in _samples(path, metric):
            log = logs.setdefault((task, system), Log(path, system, [], task=task))
            log.attempts.append(attempt)
            if hashed:
                hashes.setdefault((task, attempt.question), set()).add(hashed)
    numbered = [replace(log, attempts=number_trials(log.attempts)) for log in logs.values()]
    read = table_of_logs(numbered, "every_eval_ever", selection, details=("error",))
    tasks = choose_tasks((task for task, _ in logs), selection.task)
    n_differing = sum(len(each) > 1 for (task, _), each in hashes.items() if task in tasks)
    if not n_differing:
        return read
    return replace(
        read, message=f"{read.message}; {n_differing} sample_id with different sample_hash"
    )


def read_py_irt(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the responses of subjects, as py-irt takes them.

    Each line is ``{"subject_id": ..., "responses": {item: response, ...}}``. Subjects are systems
    and items questions; several lines of a subject are trials, and not paired.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Files.
    selection : Selection
        Empty: the lines name no task.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a file is damaged.
    """
    logs: dict[str, Log] = {}
    for path in paths:
        for system, attempt in _responses(path):
            logs.setdefault(system, Log(path, system, [])).attempts.append(attempt)
    numbered = [replace(log, attempts=number_trials(log.attempts)) for log in logs.values()]
    return table_of_logs(numbered, "py_irt", selection)


def _samples(path: Path, metric: str) -> Iterator[tuple[str, str, Attempt, str]]:
    for record in parse_json_lines(path):
        try:
            error = str(record.get("error") or "")
            value = None if error else record["evaluation"][metric]
            labels = [record[key] for key in ("evaluation_name", "model_id", "sample_id")]
            hashed = str(record.get("sample_hash") or "")
        except (KeyError, TypeError) as wrong:
            raise DataError(
                "paths must hold samples with evaluation_name, model_id, sample_id and "
                f"evaluation; got {misfit(wrong)} in {path.name}: leave it out"
            ) from wrong
        task, system, question = str(labels[0]), str(labels[1]), label(labels[2])
        outcome = outcome_number(value, f"the {metric} of {question!r} in {path.name}")
        status = "error" if error else "unscored" if isnan(outcome) else ""
        yield task, system, Attempt(question, outcome, status=status, details=(error,)), hashed


def _responses(path: Path) -> Iterator[tuple[str, Attempt]]:
    for record in parse_json_lines(path):
        responses = record.get("responses")
        if "subject_id" not in record or not isinstance(responses, dict):
            raise DataError(
                "paths must hold lines with a subject_id and responses by item; got "
                f"{', '.join(record)} in {path.name}: leave it out"
            )
        for item, response in responses.items():
            outcome = outcome_number(response, f"item {item!r} in {path.name}")
            status = "unscored" if isnan(outcome) else ""
            yield str(record["subject_id"]), Attempt(label(item), outcome, status=status)
