"""Reader of responses of subjects as py-irt takes them, JSON lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import parse_json_lines
from bayesrank.readers.log import Attempt, Log, label, name_of, number_trials, scored
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.opening import expects, starts_like

SUBJECTS_START = re.compile(rb'\{\s*"(?:subject_id|responses)"\s*:')
LINES = (".jsonl", ".jsonlines", ".ndjson")


def is_py_irt(path: Path) -> bool:
    """Return whether a file starts like the responses of a subject, as py-irt writes them."""
    return starts_like(path, SUBJECTS_START, LINES)


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
    logs: dict[tuple[Path, str], Log] = {}
    for path in paths:
        for system, attempt in _responses(path):
            logs.setdefault((path, system), Log(path, system, [])).attempts.append(attempt)
    numbered = [replace(log, attempts=number_trials(log.attempts)) for log in logs.values()]
    return table_of_logs(numbered, "py_irt", selection)


def _responses(path: Path) -> Iterator[tuple[str, Attempt]]:
    for record in parse_json_lines(path):
        with expects(path, "lines with a subject_id and responses by item"):
            system = name_of(record["subject_id"])
            for item, response in record["responses"].items():
                yield system, scored(label(item), response, path)
