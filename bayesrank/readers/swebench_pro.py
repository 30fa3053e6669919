"""Reader of SWE-bench Pro results, ``eval_results.json``."""

import re
from collections.abc import Sequence
from pathlib import Path

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json
from bayesrank.readers.log import Attempt, Log
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.opening import expects, plain_name, starts_like

RESULTS = "eval_results"

# An object of instances that are resolved or not, and nothing else as far as one can see.
RESULTS_START = re.compile(
    rb'\{(?:\s*"(?=[^"]{0,300}__)[^"]{1,400}"\s*:\s*(?:true|false)\s*(?:,|\}))+'
)


def is_swebench_pro(path: Path) -> bool:
    """Return whether a file starts like an object of instances that are true or false."""
    return starts_like(path, RESULTS_START)


def read_swebench_pro(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read results of SWE-bench Pro; each file is one trial of its system.

    The system is the folder of ``eval_results.json``, or the name of another file. Instances are
    resolved or not; those that have no result, since no patch was evaluated, are absent.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results.
    selection : Selection
        Says what counts as wrong.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a file is damaged.
    """
    logs = []
    for path in paths:
        with expects(path, "instances of SWE-bench Pro that are true or false"):
            attempts = [Attempt(name, _resolved(told)) for name, told in read_json(path).items()]
        stem = Path(plain_name(path)).stem
        named = (path.parent.name, path.parent.parent) if stem == RESULTS else (stem, path.parent)
        logs.append(Log(path, named[0], attempts, place=named[1]))
    return table_of_logs(logs, "swebench_pro", selection)


def _resolved(told: object) -> float:
    if not isinstance(told, bool):
        raise TypeError(told)
    return float(told)
