"""Reader of LiveCodeBench results, ``<scenario>_<n>_<temperature>_eval_all.json``."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.files import BYTE_ORDER_MARK, starts_like
from bayesrank.readers.json_stream import stream_json
from bayesrank.readers.log import Attempt, Log, label, scored
from bayesrank.readers.log_table import LogTable
from bayesrank.readers.opening import expects, plain_name
from bayesrank.readers.selection import Selection

RESULTS_START = re.compile(
    BYTE_ORDER_MARK + rb'\s*\[\s*\{(?=(?s:.*?)"(?:question_id|id)"\s*:)'
    rb'(?=(?s:.*?)"graded_list"\s*:\s*\[)'
)
NAME = re.compile(
    r"(?:Scenario\.)?(?P<scenario>[a-z]+)_(?P<n>\d+)_(?P<temperature>[\d.]+).*_eval_all\.json"
)

# Problems of the other scenarios have several tests each.
PARTS = ("question_id", "test_id", "id")


def is_livecodebench(path: Path) -> bool:
    """Return whether a file is named as LiveCodeBench names results, or starts like them."""
    return NAME.fullmatch(plain_name(path)) is not None or starts_like(path, RESULTS_START)


def read_livecodebench(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the grades of solutions, which are trials, and not paired.

    The system is the folder of the model, the task the scenario; runs with other temperatures are
    other systems. A solution is right if it passes all tests.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results.
    selection : Selection
        May name a task.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If the task is left open, or a file is damaged.
    """
    logs = []
    for path in paths:
        named = NAME.fullmatch(plain_name(path))
        system = path.parent.name if named else Path(plain_name(path)).stem
        task = named["scenario"] if named else ""
        settings = {"temperature": named["temperature"]} if named else {}
        logs.append(Log(path, system, list(_attempts(path)), task=task, settings=settings))
    return table_of_logs(logs, "livecodebench", selection)


def _attempts(path: Path) -> Iterator[Attempt]:
    for _, problem in stream_json(path):
        with expects(path, "problems with a question_id and a graded_list"):
            question = "/".join(label(problem[part]) for part in PARTS if part in problem)
            for trial, grade in enumerate(problem["graded_list"]):
                yield scored(question, grade, path, trial=trial)
