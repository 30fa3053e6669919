"""Reader of promptfoo results, ``promptfoo eval --output results.json``, ``.jsonl`` or ``.csv``."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import nan
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import parse_json_lines, read_json
from bayesrank.readers.log import Attempt, Log, digest, label, name_of, number_trials, scored
from bayesrank.readers.log_table import LogTable, Selection, choose
from bayesrank.readers.naming import say_copies
from bayesrank.readers.opening import (
    HEAD_BYTES,
    damage_named,
    expects,
    open_log,
    plain_name,
    plain_suffix,
    starts_like,
)
from bayesrank.readers.table_files import LINES

RESULTS_START = re.compile(
    rb'\{(?=(?s:.*?)"results"\s*:\s*[\[{])(?=(?s:.*?)"provider"\s*:)'
    rb'(?=(?s:.*?)"(?:testIdx|promptIdx|gradingResult|failureReason|vars)"\s*:)'
)

_LINE_START = re.compile(rb'\{(?=.*?"promptIdx"\s*:)(?=.*?"testIdx"\s*:)(?=.*?"success"\s*:)')

# The names of the columns after that of an output; older versions wrote the grade before its text.
_GRADES = ["Status", "Score", "Named Scores"]
_GRADED = re.compile(r"\[(PASS|FAIL|ERROR)\] \(([-\d.]+)")
# The name of the column of an output.
_OUTPUT = re.compile(r"\[([^\]]+)\] (.*)", re.DOTALL)

# What an outcome can be; beside them, the scores that assertions name.
METRICS = ("success", "score")
# The value of failureReason for an error.
ERROR = 2
# Its pass rate counts errors as failures.
WRONG = ("error",)


def is_promptfoo(path: Path) -> bool:
    """Return whether a file starts like results of promptfoo."""
    suffix = plain_suffix(path)
    if suffix != ".csv":
        return starts_like(path, RESULTS_START) or starts_like(path, _LINE_START, LINES)
    with open_log(path) as file:
        head = file.read(HEAD_BYTES).decode("utf-8-sig", errors="replace")
    try:
        names, row = islice(csv.reader(io.StringIO(head, newline="")), 2)
    except (ValueError, csv.Error):
        return False
    return bool(_outputs(names, row))


def read_promptfoo(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read results of tests.

    The system is the provider, by its label where it has one; a provider with several prompts is
    one system per prompt. The question is the number of the test. Repeats, which are numbered as
    further tests of the same variables and assertions, are trials, and not paired. The outcome is
    whether all assertions passed, or by ``metric`` the score or one of the named scores.
    Errors are wrong, as in its pass rate, unless other statuses are to count as wrong; the column
    error has their messages.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results.
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
    best = {_written(path): path for path in sorted(paths, key=_detail)}
    copies = [path for path in paths if best[_written(path)] != path]
    found = {path: _read(path) for path in paths if path not in copies}
    rows = [row for _, own in found.values() for row in own]
    known = [*METRICS, *(name for row in rows for name in row.get("namedScores") or ())]
    metric = selection.metric or METRICS[0]
    if metric not in known:  # scores called latency or cost are higher for better systems, too
        choose("metric", known, metric)
    logs: dict[tuple[Path, str, str, str], Log] = {}
    for path, (run, own) in found.items():
        with expects(path, "results of promptfoo with a provider and success"):
            for result in own:
                log = Log(path, _provider(result), [], run=run)
                logs.setdefault(_column(path, result), log)
            # They are in the order in which they came in.
            ordered = sorted(own, key=lambda result: result.get("testIdx", 0))
            for result, test in zip(ordered, _numbered(map(_test, ordered)), strict=True):
                log = logs[_column(path, result)]
                log.attempts.append(_attempt(result, test, metric, path))
    # Columns of one provider and prompt differ in its configuration, which results do not repeat.
    columns = Counter(key[:3] for key in logs)
    numbered = [
        replace(
            log,
            attempts=number_trials(log.attempts),
            settings={"prompt": key[2], "promptIdx": key[3] if columns[key[:3]] > 1 else None},
        )
        for key, log in logs.items()
    ]
    table = table_of_logs(numbered, "promptfoo", selection, details=("error",), wrong=WRONG)
    return replace(table, message="; ".join([table.message, *say_copies(copies)]))


def _written(path: Path) -> Path:
    """Return a file without its ending; an evaluation may be written in several formats."""
    return path.with_name(Path(plain_name(path)).stem)


def _detail(path: Path) -> int:
    """Return the place of a format among those that say ever more; that of JSON is the last."""
    less = (".csv", *LINES)
    suffix = plain_suffix(path)
    return less.index(suffix) if suffix in less else len(less)


def _read(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return the identifier of an evaluation, and its results."""
    suffix = plain_suffix(path)
    if suffix in (".csv", *LINES):
        return "", list(_rows(path) if suffix == ".csv" else parse_json_lines(path))
    with expects(path, "results of promptfoo with a provider and success"):
        document = read_json(path)
        results = document["results"]
        listed = results["results"] if isinstance(results, dict) else results
        return str(document.get("evalId") or ""), list(listed)


def _outputs(names: Sequence[str], row: Sequence[str]) -> list[int]:
    """Return the places of the columns of outputs, empty in a table of something else."""
    graded = [place for place in range(len(names)) if names[place + 1 : place + 4] == _GRADES]
    return graded or [place for place, text in enumerate(row) if _GRADED.match(text)]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield results as a document in JSON has them, from a table with a row for each test."""
    import pandas as pd

    with damage_named(path), open_log(path) as file:
        table = pd.read_csv(
            file, header=None, dtype=str, keep_default_na=False, encoding="utf-8-sig"
        )
    names, *rows = table.to_numpy().tolist()
    outputs = _outputs(names, rows[0] if rows else [])
    first = min(outputs, default=0)
    for test, row in enumerate(rows):
        variables = dict(zip(names[:first], row, strict=False))
        for number, place in enumerate(outputs):
            after = names[place + 1 : place + 4] == _GRADES
            grade = row[place + 1 : place + 4] if after else _grade(row[place])
            if not any(grade):  # the test was not run
                continue
            status, score, named = grade
            provider = _OUTPUT.fullmatch(names[place])
            yield {
                "provider": provider[1] if provider else Path(plain_name(path)).stem,
                "prompt": provider[2] if provider else names[place],
                "promptIdx": number,
                "testIdx": test,
                "vars": variables,
                "success": status == "PASS",
                "score": float(score) if score else None,
                "namedScores": json.loads(named) if named else {},
                "failureReason": ERROR if status == "ERROR" else 0,
                "error": row[place] or "error",
            }


def _grade(text: str) -> tuple[str, ...]:
    """Return the status and the score before the text of an output."""
    match = _GRADED.match(text)
    return (match[1], match[2], "") if match else ("", "", "")


def _column(path: Path, result: dict[str, Any]) -> tuple[Path, str, str, str]:
    """Return what the results of one column of its table share."""
    return path, _provider(result), _prompt(result), str(result.get("promptIdx", ""))


def _variables(result: dict[str, Any]) -> Any:
    """Return the variables of a test; beside the results may stand what answers added to them."""
    return (result.get("testCase") or {}).get("vars") or result.get("vars")


def _test(result: dict[str, Any]) -> tuple[str, str]:
    """Return the number of a test, and a digest of what it is unless variables are not logged."""
    variables = _variables(result)
    if "testIdx" not in result:
        return label(result["vars"]), ""
    told = digest([variables, result.get("testCase")]) if variables else ""
    return label(result["testIdx"]), told


def _numbered(told: Iterable[tuple[str, str]]) -> list[str]:
    """Return the numbers of tests, where some repeat others those that they have without them."""
    tests = list(told)
    known: dict[str, str] = {}
    for number, test in tests:
        known.setdefault(number, test or number)
    place = {test: str(place) for place, test in enumerate(dict.fromkeys(known.values()))}
    if len(place) == len(known):
        return [number for number, _ in tests]
    return [place[known[number]] for number, _ in tests]


def _provider(result: dict[str, Any]) -> str:
    provider = result["provider"]
    return name_of(
        (provider.get("label") or provider["id"]) if isinstance(provider, dict) else provider
    )


def _prompt(result: dict[str, Any]) -> str:
    prompt = result.get("prompt") or {}
    named = prompt.get("label") or prompt.get("raw") if isinstance(prompt, dict) else prompt
    return str(named or result.get("promptIdx", ""))


def _attempt(result: dict[str, Any], test: str, metric: str, path: Path) -> Attempt:
    # Versions without a failureReason have an error for failed assertions too.
    reason = result.get("failureReason")
    failed = reason == ERROR if reason is not None else not result.get("gradingResult")
    error = str(result.get("error") or "") if failed else ""
    content = digest(_variables(result))
    if error:
        return Attempt(test, nan, status="error", details=(error,), content=content)
    value = result[metric] if metric in METRICS else (result.get("namedScores") or {}).get(metric)
    return scored(test, value, path, details=("",), content=content)
