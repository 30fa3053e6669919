"""Reader of samples in the schema of Every Eval Ever, ``<uuid>_samples.jsonl``."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bayesrank.errors import DataError
from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import parse_json_lines, read_json
from bayesrank.readers.log import Attempt, Log, label, name_of, number_trials, scored
from bayesrank.readers.log_table import LogTable, Selection, choose, choose_tasks
from bayesrank.readers.opening import expects, in_folder, plain_name, starts_like, stored

SAMPLES_START = re.compile(
    rb'\{(?=[^\n]*?"evaluation_id"\s*:)(?=[^\n]*?"(?:evaluation_name|sample_id)"\s*:)'
)
LINES = (".jsonl", ".jsonlines", ".ndjson")

# Fields of the evaluation that can be outcomes; the first one is read by default.
METRICS = ("score", "is_correct")

# What the file without the samples says of the model.
MODEL = ("inference_platform", "inference_engine", "additional_details")


@dataclass(frozen=True, slots=True)
class Sample:
    """What is needed of one line."""

    task: str
    system: str
    run: str
    scorer: str
    hash: str
    attempt: Attempt


def is_every_eval_ever(path: Path) -> bool:
    """Return whether a file starts like samples in the schema of Every Eval Ever."""
    return starts_like(path, SAMPLES_START, LINES)


def read_every_eval_ever(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read samples of evaluations.

    The system is the model_id, the task the evaluation_name, the question the sample_id, the scorer
    the evaluation_result_id where there are several. What the file beside the samples says of the
    model and of the generation distinguishes systems. Several lines of a sample, and further
    evaluations, are trials in order of appearance, and not paired. The outcome is the score of the
    evaluation, or its is_correct by ``metric="is_correct"``; samples with an error are missing, and
    the column error has its text. Where the hash of a sample differs between models, so that its
    name may stand for two inputs, the message says so.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Samples.
    selection : Selection
        May name a task or several, a scorer and a metric.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a choice is left open, scores are lower for better systems, or a file is damaged.
    """
    metric = choose("metric", METRICS, selection.metric or METRICS[0])
    found = {path: list(_samples(path, metric)) for path in paths}
    tasks = choose_tasks((each.task for own in found.values() for each in own), selection.task)
    found = {path: [each for each in own if each.task in tasks] for path, own in found.items()}
    known = (each.scorer for own in found.values() for each in own)
    scorer = choose("scorer", known, selection.scorer)
    logs: dict[tuple[Path, str, str, str], Log] = {}
    hashes: dict[tuple[str, str], set[str]] = {}
    for path, own in found.items():
        told = _told(path)
        if metric == METRICS[0]:
            _check_direction(path, told, {scorer} if scorer else set(tasks))
        for each in own:
            key = (path, each.task, each.system, each.run)
            log = logs.setdefault(key, _log(path, each, told))
            if each.scorer != scorer:
                continue
            log.attempts.append(each.attempt)
            hashes.setdefault((each.task, each.attempt.question), set()).add(each.hash)
    numbered = [replace(log, attempts=number_trials(log.attempts)) for log in logs.values()]
    read = table_of_logs(numbered, "every_eval_ever", selection, details=("error",))
    n_differing = sum(len(each - {""}) > 1 for each in hashes.values())
    if not n_differing:
        return read
    return replace(
        read, message=f"{read.message}; {n_differing} sample_id with different sample_hash"
    )


def _samples(path: Path, metric: str) -> Iterator[Sample]:
    what = "samples with evaluation_name, model_id, sample_id and evaluation"
    for record in parse_json_lines(path):
        with expects(path, what):
            error = str(record.get("error") or "")
            value = None if error else record["evaluation"][metric]
            status = "error" if error else ""
            question = label(record["sample_id"])
            yield Sample(
                str(record["evaluation_name"]),
                name_of(record["model_id"]),
                str(record.get("evaluation_id") or ""),
                str(record.get("evaluation_result_id") or ""),
                str(record.get("sample_hash") or ""),
                scored(question, value, path, status=status, details=(error,)),
            )


def _told(path: Path) -> dict[str, Any]:
    """Read what the file beside the samples says of the evaluations."""
    beside = stored(path.with_name(plain_name(path).partition("_samples.")[0] + ".json"))
    if beside is None:
        return {}
    with expects(beside, "evaluations in the schema of Every Eval Ever"):
        return dict(read_json(beside))


def _check_direction(path: Path, told: dict[str, Any], read: Collection[str]) -> None:
    """Raise if scores of results that are read, by name, are lower for better systems."""
    with expects(path, "evaluations in the schema of Every Eval Ever"):
        for result in told.get("evaluation_results") or ():
            names = {result.get("evaluation_result_id"), result.get("evaluation_name")}
            lower = (result.get("metric_config") or {}).get("lower_is_better")
            if lower and names.intersection(read):
                raise DataError(
                    f"metric must be higher for better systems; got {METRICS[0]!r} for "
                    f"{result.get('evaluation_name')!r} of {in_folder(path)}, where lower is "
                    f"better: pass metric={METRICS[1]!r}, or leave it out"
                )


def _log(path: Path, sample: Sample, told: dict[str, Any]) -> Log:
    model = told.get("model_info") or {}
    results = [
        each
        for each in told.get("evaluation_results") or ()
        if each.get("evaluation_name") in (sample.task, None)
    ]
    generation = results[0].get("generation_config") if results else None
    return Log(
        path,
        sample.system,
        [],
        task=sample.task,
        run=sample.run,
        settings={name: model.get(name) for name in MODEL},
        conditions={"generation_config": generation},
    )
