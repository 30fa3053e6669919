"""Reader of OpenCompass results with details, ``results/<model>/<dataset>.json``."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bayesrank.errors import DamagedFileError
from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json
from bayesrank.readers.log import Attempt, Log, label, scored
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.opening import expects, in_folder, plain_name, starts_like

# Which member of a detail says whether the answer is right; the first one wins.
CORRECT = ("correct", "is_correct", "cascade_correct", "llm_correct", "rule_correct")

# What comes before the details are metrics.
_METRIC = rb'(?:[-+.\deE]+|"[^"]*"|null|true|false|NaN|\[[^\[\]]*\]|\{[^{}]*\})'
_METRICS = rb'(?:\s*"[^"]+"\s*:\s*' + _METRIC + rb"\s*,)*"
RESULTS_START = re.compile(
    rb"\{" + _METRICS + rb'\s*"details"\s*:\s*[\[{]'
    rb'(?=(?s:.*?)"(?:correct|\w+_correct)"\s*:)'
)


def is_opencompass(path: Path) -> bool:
    """Return whether a file starts like results with details."""
    return starts_like(path, RESULTS_START)


def read_opencompass(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read details of OpenCompass, which ``--dump-eval-details`` writes.

    The system is the folder of a file, the task its name, the question the place in the dataset, or
    the example that has several replicas, which are trials. A further file of a system, of an
    experiment at another time, adds trials.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results.
    selection : Selection
        May name a task or several.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If the task is left open, or details do not say what is right.
    """
    logs = []
    for path in paths:
        task = Path(plain_name(path)).stem
        folder = path.parent
        attempts = list(_attempts(path))
        logs.append(Log(path, folder.name, attempts, task=task, place=folder.parent))
    return table_of_logs(logs, "opencompass", selection)


def _attempts(path: Path) -> Iterator[Attempt]:
    with expects(path, "details of OpenCompass"):
        details = read_json(path)["details"]
        if isinstance(details, list):
            details = {str(place): each for place, each in enumerate(details)}
        for question, detail in details.items():
            if isinstance(detail, dict):  # beside them may stand what type they are
                named = label(detail.get("example_abbr") or question)
                for trial, value in enumerate(_correct(detail, path)):
                    yield scored(named, value, path, trial=trial)


def _correct(detail: dict[str, Any], path: Path) -> list[Any]:
    name = next((name for name in CORRECT if name in detail), None)
    if name is None:
        raise DamagedFileError(
            f"paths must hold details that say what is correct; got {', '.join(detail)} in "
            f"{in_folder(path)}: leave it out"
        )
    value = detail[name]
    return value if isinstance(value, list) else [value]
