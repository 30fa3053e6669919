"""Reader of test runs of DeepEval, ``.deepeval/.temp_test_run_data.json`` and saved results."""

import re
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json
from bayesrank.readers.log import Attempt, Log, digest, label, number_trials, scored
from bayesrank.readers.log_table import LogTable, Selection, choose
from bayesrank.readers.opening import expects, plain_name, starts_like

RUN_START = re.compile(
    rb'\{(?=(?s:.*?)"(?:testCases|conversationalTestCases)"\s*:\s*\[\s*\{)'
    rb'(?=(?s:.*?)"metricsData"\s*:)'
)
CASES = ("testCases", "conversationalTestCases")

# Whether all metrics of a test case passed.
SUCCESS = "success"
# Its number of failed test cases includes errors of metrics.
WRONG = ("error",)


def is_deepeval(path: Path) -> bool:
    """Return whether a file starts like a test run of DeepEval."""
    return starts_like(path, RUN_START)


def read_deepeval(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the test cases of test runs.

    The system is the hyperparameter ``model``, or else the file or the folder of the project; the
    question is the name of the test case. The outcome is whether all metrics passed, or by
    ``metric`` whether one of them did: the lowest score is best for some metrics. A metric with an
    error and without a score is wrong, as in the numbers of DeepEval, unless other statuses are to
    count as wrong; the column error has its message.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Test runs.
    selection : Selection
        May name a metric.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If the metric is unknown, or a file is damaged.
    """
    known: dict[str, None] = {SUCCESS: None}
    logs = []
    for path in paths:
        with expects(path, "test cases of DeepEval with a name and success"):
            run = read_json(path)
            cases = [case for kind in CASES for case in run.get(kind) or ()]
            known |= dict.fromkeys(str(m["name"]) for case in cases for m in _metrics(case))
            attempts = [_attempt(case, selection.metric or SUCCESS, path) for case in cases]
            logs.append(_log(path, run, number_trials(filter(None, attempts))))
    if selection.metric not in (None, *known):
        choose("metric", known, selection.metric)
    return table_of_logs(logs, "deepeval", selection, details=("error",), wrong=WRONG)


def _metrics(case: dict[str, Any]) -> list[dict[str, Any]]:
    return case.get("metricsData") or []


def _attempt(case: dict[str, Any], metric: str, path: Path) -> Attempt | None:
    """Return the outcome of a test case, None where the metric was not measured."""
    metrics = [each for each in _metrics(case) if metric in (SUCCESS, each["name"])]
    if not metrics and metric != SUCCESS:
        return None
    name, content = label(case["name"]), digest(case.get("input") or case.get("turns"))
    error = next((m["error"] for m in metrics if m.get("error") and m.get("score") is None), None)
    if error:
        return Attempt(name, nan, status="error", details=(str(error),), content=content)
    value = case["success"] if metric == SUCCESS else metrics[0]["success"]
    return scored(name, value, path, details=("",), content=content)


def _log(path: Path, run: dict[str, Any], attempts: list[Attempt]) -> Log:
    settings = dict(run.get("hyperparameters") or {})
    named = settings.pop("model", None)
    hidden = path.parent.name == ".deepeval"  # which DeepEval writes into the folder of the project
    place = path.parent.parent if hidden else path.with_name(Path(plain_name(path)).stem)
    return Log(
        path,
        str(named or place.name),
        attempts,
        run=str(run.get("identifier") or ""),
        settings=settings,
        place=None if named else place.parent,
    )
