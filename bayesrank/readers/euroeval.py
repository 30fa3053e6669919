"""Reader of EuroEval results, ``euroeval_benchmark_results.jsonl``."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesrank.columns import refuse_lower
from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import parse_json_lines
from bayesrank.readers.log import Attempt, Log, name_of, scored
from bayesrank.readers.log_table import LogTable, Selection, choose, choose_tasks
from bayesrank.readers.opening import expects, starts_like

LINES = (".jsonl",)
RESULTS_START = re.compile(
    rb'\{(?=[^\n]*"dataset"\s*:)(?:'
    rb'(?=[^\n]*"model"\s*:)(?=[^\n]*"results"\s*:\s*\{)(?=[^\n]*"raw"\s*:)'
    rb'|(?=[^\n]*"schema_version"\s*:)(?=[^\n]*"raw_results"\s*:))'
)
CONDITIONS = ("few_shot", "validation_split", "euroeval_version", "generative_type")


def is_euroeval(path: Path) -> bool:
    """Return whether a file starts like results of EuroEval."""
    return starts_like(path, RESULTS_START, LINES)


def read_euroeval(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the scores of datasets, which are the questions, by their bootstrapped samples.

    The system is the model, the task that of EuroEval. The samples of a dataset are trials, the
    same ones for all models unless some failed and were skipped. The metric is the first of the
    totals, by which EuroEval ranks, or ``metric``. Versions from 17 on write lines in the schema
    of Every Eval Ever.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results.
    selection : Selection
        May name a task or several, and a metric, such as ``mcc``.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a choice is left open, the metric is lower for better systems, or a line is damaged.
    """
    records = [(path, _plain(path, each)) for path in paths for each in parse_json_lines(path)]
    tasks = choose_tasks((_task(path, record) for path, record in records), selection.task)
    records = [(path, record) for path, record in records if _task(path, record) in tasks]
    metrics = {task: _metric(task, records, selection.metric) for task in tasks}
    logs: dict[tuple[Path, str, str, str], Log] = {}
    for path, record in records:
        task, model = _task(path, record), name_of(record["model"])
        conditions = {name: record.get(name) for name in CONDITIONS}
        log = Log(path, model, [], task=task, conditions=conditions)
        log = logs.setdefault((path, model, task, str(conditions)), log)
        log.attempts.extend(_attempts(path, record, metrics[task]))
    sizes = {(str(record["dataset"]), len(_scores(path, record))) for path, record in records}
    # Nothing says which samples were skipped.
    paired = len(sizes) == len({dataset for dataset, _ in sizes})
    table = table_of_logs(list(logs.values()), "euroeval", selection, paired=paired)
    shown = ", ".join(dict.fromkeys(metrics.values()))
    return replace(table, message=f"{table.message}; metric {shown}")


def _plain(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Return a line of any version under the names of the first ones."""
    if "schema_version" not in record:
        return record
    with expects(path, "results of EuroEval with a model_info and raw_results"):
        library = record["eval_library"]
        details = library["additional_details"]
        totals = [each["evaluation_name"] for each in record["evaluation_results"]]
        raw = json.loads(details["raw_results"])
        return {
            **details,
            "model": record["model_info"]["name"],
            "euroeval_version": library.get("version"),
            "generative_type": record["model_info"]["additional_details"].get("generative_type"),
            "results": {"raw": raw, "total": dict.fromkeys(totals)},
        }


def _task(path: Path, record: dict[str, Any]) -> str:
    with expects(path, "results of EuroEval with a dataset, a task and a model"):
        _ = record["dataset"], record["model"]
        return str(record["task"])


def _attempts(path: Path, record: dict[str, Any], metric: str) -> Iterator[Attempt]:
    samples = _scores(path, record)
    choose("metric", samples[0], metric)
    with expects(path, "results of EuroEval with one score of each metric"):
        for trial, sample in enumerate(samples):
            yield scored(str(record["dataset"]), sample[metric], path, trial=trial)


def _metric(task: str, records: Sequence[tuple[Path, dict[str, Any]]], chosen: str | None) -> str:
    """Return the metric of a task, which some versions rank by another one."""
    own = [(path, record) for path, record in records if _task(path, record) == task]
    names = [_first(path, record) for path, record in own]
    metric = chosen or choose("metric", names, None, f" for task {task!r}")
    refuse_lower("metric", metric)
    return metric


def _first(path: Path, record: dict[str, Any]) -> str:
    """Return the metric that a line ranks by: of samples the first may be the loss."""
    names = list(_scores(path, record)[0])
    totals = (_named(name) for name in record["results"].get("total") or names)
    return next((name for name in totals if name in names), names[0])


def _named(score: str) -> str:
    return score.removeprefix("test_")


def _scores(path: Path, record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the scores of every bootstrapped sample by their metrics."""
    with expects(path, "results of EuroEval with raw scores"):
        raw = record["results"]["raw"]
        samples = raw["test"] if isinstance(raw, dict) else raw
        named = [{_named(name): value for name, value in sample.items()} for sample in samples]
        _ = named[0]
        return named
