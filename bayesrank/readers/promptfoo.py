"""Reader of promptfoo results, ``promptfoo eval --output results.json``."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import BYTE_ORDER_MARK, read_json, starts_like
from bayesrank.readers.log import Attempt, Log, digest, label, name_of, number_trials, scored
from bayesrank.readers.log_table import LogTable, Selection, choose
from bayesrank.readers.opening import expects

RESULTS_START = re.compile(
    BYTE_ORDER_MARK + rb'\s*\{(?=(?s:.*?)"results"\s*:\s*[\[{])(?=(?s:.*?)"provider"\s*:)'
    rb'(?=(?s:.*?)"(?:testIdx|promptIdx|gradingResult|failureReason|vars)"\s*:)'
)

# What an outcome can be; beside them, the scores that assertions name.
METRICS = ("success", "score")
# The value of failureReason for an error.
ERROR = 2
# Its pass rate counts errors as failures.
WRONG = ("error",)


def is_promptfoo(path: Path) -> bool:
    """Return whether a file starts like results of promptfoo."""
    return starts_like(path, RESULTS_START)


def read_promptfoo(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read results of tests.

    The system is the provider, by its label where it has one; providers that ran with several
    prompts are told apart by the prompt. The question is the number of the test, and repeats are
    trials, not paired. The outcome is whether all assertions passed, or by ``metric`` the score or
    one of the named scores. Errors are wrong, as in its pass rate, unless other statuses are to
    count as wrong; the column error has their messages.

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
    logs: dict[tuple[Path, str, str, str], Log] = {}
    for path in paths:
        with expects(path, "results of promptfoo with a provider and success"):
            results = read_json(path)["results"]
            for result in results["results"] if isinstance(results, dict) else results:
                key = (path, _provider(result), _prompt(result), str(result.get("promptIdx", "")))
                log = logs.setdefault(key, Log(path, key[1], []))
                log.attempts.append(_attempt(result, selection.metric, path))
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
    return table_of_logs(numbered, "promptfoo", selection, details=("error",), wrong=WRONG)


def _provider(result: dict[str, Any]) -> str:
    provider = result["provider"]
    return name_of(
        (provider.get("label") or provider["id"]) if isinstance(provider, dict) else provider
    )


def _prompt(result: dict[str, Any]) -> str:
    prompt = result.get("prompt") or {}
    named = prompt.get("label") or prompt.get("raw") if isinstance(prompt, dict) else prompt
    return str(named or result.get("promptIdx", ""))


def _attempt(result: dict[str, Any], metric: str | None, path: Path) -> Attempt:
    named = result.get("namedScores") or {}
    name = choose("metric", (*METRICS, *named), metric or METRICS[0])
    # Versions without a failureReason have an error for failed assertions too.
    reason = result.get("failureReason")
    failed = reason == ERROR if reason is not None else not result.get("gradingResult")
    error = str(result.get("error") or "") if failed else ""
    question = label(result["testIdx"] if "testIdx" in result else result["vars"])
    content = digest(result.get("vars"))
    if error:
        return Attempt(question, nan, status="error", details=(error,), content=content)
    value = named[name] if name in named else result[name]
    return scored(question, value, path, details=("",), content=content)
