"""Readers of judgments, one per line: LiveBench by the ground truth, MT-bench by a judge."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import parse_json_lines
from bayesrank.readers.log import Log, label, name_of, number_trials, scored
from bayesrank.readers.log_table import LogTable, Selection, choose_tasks
from bayesrank.readers.opening import expects, starts_like

LINES = (".jsonl", ".json")

_LINE = rb'\{(?=[^\n]*"question(?:_id)?"\s*:)(?=[^\n]*"model"\s*:)(?=[^\n]*"score"\s*:)'
LIVEBENCH_START = re.compile(_LINE + rb'(?=[^\n]*"task"\s*:)(?=[^\n]*"category"\s*:)[^\n]*"tstamp"')
MT_BENCH_START = re.compile(_LINE + rb'(?=[^\n]*"judge"\s*:\s*\[)[^\n]*"turn"\s*:')

# A judge of MT-bench rates from 1 to 10, and is -1 where the rating cannot be read.
RATINGS = (1.0, 10.0)
UNREAD = -1


def is_livebench(path: Path) -> bool:
    """Return whether a file starts like judgments of LiveBench."""
    return starts_like(path, LIVEBENCH_START, LINES)


def is_mt_bench(path: Path) -> bool:
    """Return whether a file starts like ratings of single answers by a judge."""
    return starts_like(path, MT_BENCH_START, LINES)


def read_livebench(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read judgments of LiveBench; its categories are groups of questions.

    The last judgment of a model and question in a file counts, as LiveBench keeps it; further
    files add trials. All tasks are read unless some are named.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Judgments, ``ground_truth_judgment.jsonl``.
    selection : Selection
        May name a task or several.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If the task is unknown, or a line is damaged.
    """
    records = list(_records(paths))
    if selection.task is not None:
        tasks = choose_tasks((_task(path, record) for path, record in records), selection.task)
        records = [(path, record) for path, record in records if _task(path, record) in tasks]
    last = {
        (path, record["model"], record["question_id"]): (path, record) for path, record in records
    }
    # An answer that could not be judged may have another category than others of its question.
    categories: dict[str, Counter[str]] = defaultdict(Counter)
    for path, record in last.values():
        with expects(path, "judgments of LiveBench with a category"):
            categories[record["question_id"]][name_of(record["category"])] += 1
    logs: dict[tuple[Path, str], Log] = {}
    for path, record in last.values():
        log = logs.setdefault((path, record["model"]), Log(path, record["model"], []))
        question = record["question_id"]
        group = max(sorted(categories[question]), key=categories[question].__getitem__)
        log.attempts.append(scored(question, record["score"], path, group=group))
    return table_of_logs(list(logs.values()), "livebench", replace(selection, task=None))


def read_mt_bench(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read ratings of single answers, from 1 to 10, by the judge of MT-bench.

    The turns of a question are questions of their own. Further ratings of a model are trials, and
    not paired; ratings by another judge are another system. What a judge did not rate is missing.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Judgments, ``<judge>_single.jsonl``.
    selection : Selection
        May distinguish systems.

    Returns
    -------
    LogTable
        On the scale from 1 to 10.

    Raises
    ------
    DataError
        If a line is damaged.
    """
    logs: dict[tuple[Path, str, str], Log] = {}
    for path, record in _records(paths):
        with expects(path, "ratings with a model, a judge, a turn and a score"):
            model, judge = record["model"], str(record["judge"][0])
            log = Log(path, model, [], conditions={"judge": judge})
            question = f"{record['question_id']}/{label(record['turn'])}"
            value = None if record["score"] == UNREAD else record["score"]
            attempt = scored(question, value, path)
            logs.setdefault((path, model, judge), log).attempts.append(attempt)
    numbered = [replace(log, attempts=number_trials(log.attempts)) for log in logs.values()]
    return replace(table_of_logs(numbered, "mt_bench", selection), declared={"scale": RATINGS})


def _task(path: Path, record: dict[str, Any]) -> str:
    with expects(path, "judgments of LiveBench with a task"):
        return name_of(record["task"])


def _records(paths: Sequence[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in paths:
        for record in parse_json_lines(path):
            with expects(path, "judgments with a question_id, a model and a score"):
                question = label(record.get("question_id", record.get("question")))
                _ = record["score"]
                named = {"question_id": question, "model": name_of(record["model"])}
            yield path, record | named
