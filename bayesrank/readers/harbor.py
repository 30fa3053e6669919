"""Reader of Harbor results, ``result.json`` of jobs and of their trials."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json
from bayesrank.readers.log import Attempt, Log, label, number_trials
from bayesrank.readers.log_table import LogTable, Selection, choose
from bayesrank.readers.opening import expects, starts_like

JOB_START = re.compile(rb'\{(?=(?s:.*?)"evals"\s*:)(?=(?s:.*?)"stats"\s*:)')
TRIAL_START = re.compile(
    rb'\{(?=(?s:.*?)"trial_name"\s*:)(?=(?s:.*?)"task_name"\s*:)'
    rb'(?=(?s:.*?)"(?:agent_info|verifier_result)"\s*:)'
)

# Harbor's mean counts a trial without a reward as 0.
WRONG = ("error", "limit")
TIMEOUT = "Timeout"

# Jobs name trials by the first 32 characters of their task, without separators at the end.
CUT = 30


def is_harbor(path: Path) -> bool:
    """Return whether a file starts like the result of a job or of a trial."""
    return starts_like(path, JOB_START) or starts_like(path, TRIAL_START)


def read_harbor(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read results of jobs, or those of their trials where these lie below them.

    The system is ``<agent>__<model>``, the task the dataset, the question the name of the task of a
    trial. Trials of a task are trials, and not paired. The outcome is the reward, or another of the
    verifier's by ``metric``. Trials that raised an exception before they had a reward are wrong, as
    in Harbor's mean, unless other statuses are to count as wrong; the column exception says which.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results.
    selection : Selection
        May name a task or several, and a metric.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a choice is left open, or a file is damaged.
    """
    # A job may repeat the results of its trials behind its statistics.
    trials = [path for path in paths if not starts_like(path, JOB_START)]
    jobs = {path.parent.parent for path in trials}
    found = [_trial(path, selection.metric) for path in trials]
    stated: list[Log] = []
    for path in paths:
        if path not in trials and path.parent not in jobs:
            stated += _job(path, selection.metric)
    logs, details = [*found, *stated], ("exception",)
    table = table_of_logs(logs, "harbor", selection, details=details, wrong=WRONG)
    return replace(table, cautions=(*table.cautions, *_say_cut(stated)))


def _say_cut(jobs: Sequence[Log]) -> Iterator[str]:
    """Report a name of a task that a job may have cut, so that it stands for several tasks."""
    cut = (each.question for log in jobs for each in log.attempts if each.trial)
    name = next((name for name in cut if len(name) >= CUT), None)
    if name is not None:
        yield (
            "Jobs of Harbor cut the names of tasks after 32 characters, so that trials of "
            f"{name!r} may be of several tasks: add the results of the trials."
        )


def _trial(path: Path, metric: str | None) -> Log:
    with expects(path, "results of Harbor trials with a task_name and an agent_info"):
        told = read_json(path)
        agent = told.get("agent_info") or {}
        model = agent.get("model_info") or {}
        run = told.get("config") or {}
        config = run.get("agent") or {}
        raised = [each.get("exception_info") for each in (told, *(told.get("step_results") or ()))]
        raised = [each for each in raised if each]
        exception = str(raised[0].get("exception_type")) if raised else ""
        verified = told.get("verifier_result") or {}
        rewards = verified.get("rewards", verified) or {}  # the first versions have one reward
        # Some exceptions leave a reward that does not count.
        if not all((each.get("policy") or {}).get("has_valid_reward", True) for each in raised):
            rewards = {}
        attempt = _attempt(label(told["task_name"]), rewards, exception, metric)
        return Log(
            path,
            _system(agent.get("name") or config.get("name"), model.get("name")),
            [attempt],
            task=str(told.get("source") or "adhoc"),
            run=str(told.get("id") or ""),
            settings={
                "provider": model.get("provider"),
                "agent_version": agent.get("version"),
                "agent_kwargs": config.get("kwargs"),
            },
            conditions={"timeout_multiplier": run.get("timeout_multiplier")},
        )


def _job(path: Path, metric: str | None) -> Iterator[Log]:
    with expects(path, "results of Harbor jobs with stats of evals"):
        told = read_json(path)
        for key, stats in told["stats"]["evals"].items():
            system, _, dataset = key.rpartition("__")
            attempts = number_trials(_stated(stats, metric))
            yield Log(path, system, attempts, task=dataset, run=f"{told.get('id') or ''} {key}")


def _stated(stats: dict[str, Any], metric: str | None) -> Iterator[Attempt]:
    """Yield the trials that the statistics of a job name."""
    exceptions = {
        trial: name
        for name, trials in (stats.get("exception_stats") or {}).items()
        for trial in trials
    }
    rewards: dict[str, dict[str, float]] = {trial: {} for trial in exceptions}
    for name, values in (stats.get("reward_stats") or {}).items():
        for value, trials in values.items():
            for trial in trials:
                rewards.setdefault(trial, {})[name] = float(value)
    for trial in sorted(rewards):
        question = trial.rpartition("__")[0] or trial
        yield _attempt(question, rewards[trial], exceptions.get(trial, ""), metric)


def _attempt(question: str, rewards: dict[str, Any], exception: str, metric: str | None) -> Attempt:
    value = None
    if rewards:
        default = "reward" if "reward" in rewards else None
        value = rewards[choose("metric", rewards, metric or default, f" for task {question!r}")]
    status = "" if not exception else "limit" if TIMEOUT in exception else "error"
    if value is None:
        return Attempt(question, nan, status=status or "unscored", details=(exception,))
    return Attempt(question, float(value), status=status, details=(exception,))


def _system(agent: object, model: object) -> str:
    return "__".join(str(name) for name in (agent, model) if name) or "unnamed"
