"""Reader of LiveCodeBench results, ``<scenario>_<n>_<temperature>_eval_all.json``."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import stream_json
from bayesrank.readers.log import Attempt, Log, label, scored
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.opening import expects, plain_name, starts_like

RESULTS_START = re.compile(
    rb'\[\s*\{(?=(?s:.*?)"(?:question_id|id)"\s*:)'
    rb'(?=(?s:.*?)"graded_list"\s*:\s*\[)'
)
NAME = re.compile(
    r"(?:Scenario\.)?(?P<scenario>[a-z]+)_(?P<n>\d+)_(?P<temperature>[\d.]+)(?P<more>.*)"
    r"_eval_all\.json"
)
# Of answers that somebody else generated.
CUSTOM = re.compile(r"(?P<system>.+?)(?:_(?P<scenario>[a-z]+)_output)?(?:_eval_all)?\.json")

# Problems of the other scenarios have several tests each.
PARTS = ("question_id", "test_id", "id")


def is_livecodebench(path: Path) -> bool:
    """Return whether a file is named as LiveCodeBench names results, or starts like them."""
    return plain_name(path).endswith("_eval_all.json") or starts_like(path, RESULTS_START)


def read_livecodebench(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the grades of solutions, which are trials, and not paired.

    The system is the folder of the model, or what somebody called a file of other answers; the task
    is the scenario. Runs with other temperatures, or with a chain of thought, are other systems. A
    solution is right if it passes all tests.

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
        named, custom = (each.fullmatch(plain_name(path)) for each in (NAME, CUSTOM))
        system, place, settings = path.parent.name, path.parent.parent, {}
        if named:
            more = named["more"].strip("_")
            settings = {"temperature": named["temperature"], "variant": more}
        elif custom:
            system, place = custom["system"], path.parent
        task = str((named or custom or {"scenario": None})["scenario"] or "")
        attempts = list(_attempts(path))
        logs.append(Log(path, system, attempts, task=task, settings=settings, place=place))
    return table_of_logs(logs, "livecodebench", selection)


def _attempts(path: Path) -> Iterator[Attempt]:
    for _, problem in stream_json(path):
        with expects(path, "problems with a question_id and a graded_list"):
            question = label("/".join(label(problem[part]) for part in PARTS if part in problem))
            for trial, grade in enumerate(problem["graded_list"]):
                yield scored(question, grade, path, trial=trial)
