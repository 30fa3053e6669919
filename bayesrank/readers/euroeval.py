"""Reader of EuroEval results, ``euroeval_benchmark_results.jsonl``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import BYTE_ORDER_MARK, parse_json_lines, starts_like
from bayesrank.readers.log import Attempt, Log, name_of, scored
from bayesrank.readers.log_table import LogTable, Selection, choose, choose_tasks
from bayesrank.readers.opening import expects

LINES = (".jsonl",)
RESULTS_START = re.compile(
    BYTE_ORDER_MARK + rb'\s*\{(?=[^\n]*"dataset"\s*:)(?=[^\n]*"model"\s*:)'
    rb'(?=[^\n]*"results"\s*:\s*\{)(?=[^\n]*"raw"\s*:)'
)
CONDITIONS = ("few_shot", "validation_split", "euroeval_version", "generative_type")


def is_euroeval(path: Path) -> bool:
    """Return whether a file starts like results of EuroEval."""
    return starts_like(path, RESULTS_START, LINES)


def read_euroeval(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the scores of datasets, which are the questions, by their bootstrapped samples.

    The system is the model, the task that of EuroEval. The samples of a dataset are trials, the
    same ones for all models. The metric is the first that EuroEval lists, by which it ranks, or
    ``metric``.

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
        If a choice is left open, or a line is damaged.
    """
    records = [(path, record) for path in paths for record in parse_json_lines(path)]
    tasks = choose_tasks((_task(path, record) for path, record in records), selection.task)
    records = [(path, record) for path, record in records if _task(path, record) in tasks]
    logs: dict[tuple[Path, str, str, str], Log] = {}
    for path, record in records:
        task, model = _task(path, record), name_of(record["model"])
        conditions = {name: record.get(name) for name in CONDITIONS}
        log = Log(path, model, [], task=task, conditions=conditions)
        log = logs.setdefault((path, model, task, str(conditions)), log)
        log.attempts.extend(_attempts(path, record, selection.metric))
    table = table_of_logs(list(logs.values()), "euroeval", selection, paired=True)
    first = next(name for path, record in records for name in _scores(path, record)[0])
    return replace(table, message=f"{table.message}; metric {selection.metric or first}")


def _task(path: Path, record: dict[str, Any]) -> str:
    with expects(path, "results of EuroEval with a dataset, a task and a model"):
        _ = record["dataset"], record["model"]
        return str(record["task"])


def _attempts(path: Path, record: dict[str, Any], metric: str | None) -> Iterator[Attempt]:
    samples = _scores(path, record)
    names = list(samples[0])
    chosen = choose("metric", names, metric or names[0])
    with expects(path, "results of EuroEval with one score of each metric"):
        for trial, sample in enumerate(samples):
            yield scored(str(record["dataset"]), sample[chosen], path, trial=trial)


def _scores(path: Path, record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the scores of every bootstrapped sample by their metrics."""
    with expects(path, "results of EuroEval with raw scores"):
        raw = record["results"]["raw"]
        samples = raw["test"] if isinstance(raw, dict) else raw
        named = [
            {name.removeprefix("test_"): value for name, value in sample.items()}
            for sample in samples
        ]
        _ = named[0]
        return named
