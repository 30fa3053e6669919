"""Readers of tau-bench and tau2-bench results."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json, stream_json
from bayesrank.readers.log import Attempt, Log, digest, label, name_of
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.opening import check_announced, expects, plain_name, starts_like

# The start has more fields, since tables may begin with a task_id, too.
TAU_START = re.compile(
    rb'\[\s*\{\s*"task_id"\s*:[^,{}\[\]]+,\s*"reward"\s*:[^,{}\[\]]+,\s*"info"\s*:'
)
TAU2_START = re.compile(rb'\{\s*"timestamp"\s*:(?s:.*?)"user_info"\s*:')

# tau-bench names its files <strategy>-<model>-<temperature>_range_<from>-<to>_user-<...>.json.
TAU_NAME = re.compile(r"(?P<system>.+)_range_-?\d+-+\d+_user-(?P<user>.+?)(?:_\d{6,})?")

# Both tools accept a reward as a success within this tolerance.
TOLERANCE = 1e-6

# A simulation that the infrastructure ended has no information about the agent.
UNKNOWN = "infrastructure_error"
ENDS = {
    **dict.fromkeys((UNKNOWN, "agent_error", "user_error", "unexpected_error"), "error"),
    **dict.fromkeys(
        ("max_steps", "too_many_errors", "timeout", "context_window_exceeded"), "limit"
    ),
}
# Further conditions of the measurement in a file.
CONDITIONS = ("max_steps", "max_errors", "retrieval_config", "speech_complexity")


def is_tau_results(path: Path) -> bool:
    """Return whether a file starts like tau-bench results."""
    return starts_like(path, TAU_START)


def is_tau2_results(path: Path) -> bool:
    """Return whether a file starts like tau2-bench results."""
    return starts_like(path, TAU2_START)


def read_tau_bench(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read tau-bench results, lists of runs.

    The system is the name of the file up to ``_range_``, or the whole name; runs with another user
    are another system, and further files of a system add trials. A reward of 1 is right, any other
    wrong. Runs that raised an error are wrong, as in tau-bench itself, unless other statuses count
    as wrong; the column error has their messages.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results.
    selection : Selection
        Empty: the results name no domain.

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
        stem = Path(plain_name(path)).stem
        named = TAU_NAME.fullmatch(stem)
        conditions = {"user": named["user"]} if named else {}
        system = named["system"] if named else stem
        attempts, place = list(_attempts(path)), None if named else path.parent
        logs.append(Log(path, system, attempts, conditions=conditions, place=place))
    return table_of_logs(logs, "tau_bench", selection, details=("error",), wrong=("error",))


def _attempts(path: Path) -> Iterator[Attempt]:
    for _, run in stream_json(path):
        with expects(path, "tau-bench runs with a task_id and a reward"):
            error = str((run.get("info") or {}).get("error") or "")
            outcome = math.nan if error else _success(run["reward"])
            status, trial = "error" if error else "", int(run.get("trial", 0))
            # All domains number their tasks from 0, and files do not name their domain.
            content = digest((run.get("info") or {}).get("task"))
            question = label(run["task_id"])
            yield Attempt(question, outcome, trial, status, details=(error,), content=content)


@dataclass
class Results:
    """What one file of tau2-bench results holds."""

    path: Path
    info: dict[str, Any] = field(default_factory=dict)
    tasks: list[str] = field(default_factory=list)
    simulations: list[Attempt] = field(default_factory=list)

    @property
    def domain(self) -> str:
        """Name of the domain."""
        return str((self.info.get("environment_info") or {}).get("domain_name") or "")

    @property
    def system(self) -> str:
        """Language model of the agent, or the agent itself if it has none."""
        agent = self.info.get("agent_info") or {}
        return name_of(agent.get("llm") or agent.get("implementation"))

    @property
    def log(self) -> Log:
        """The simulations, and those that were announced but not run."""
        agent, user = (self.info.get(key) or {} for key in ("agent_info", "user_info"))
        return Log(
            self.path,
            self.system,
            [*self.simulations, *self._absent()],
            task=self.domain,
            settings={
                "agent": agent.get("implementation"),
                "llm_args": agent.get("llm_args"),
                # The settings of speech models.
                "audio": self.info.get("audio_native_config"),
            },
            conditions={
                "user": user.get("implementation"),
                "user_llm": user.get("llm"),
                "user_llm_args": user.get("llm_args"),
                **{name: self.info.get(name) for name in CONDITIONS},
            },
        )

    def _absent(self) -> Iterator[Attempt]:
        simulated = {(each.question, each.trial) for each in self.simulations}
        announced = int(self.info.get("num_trials") or 0)
        n_here = max([announced, *(trial + 1 for _, trial in simulated)])
        n_cells, told = n_here * len(self.tasks), f"{n_here} trials of {len(self.tasks)} tasks"
        check_announced(n_cells, len(simulated), told, self.path)
        for task in self.tasks:
            for trial in range(n_here):
                if (task, trial) not in simulated:
                    yield Attempt(task, math.nan, trial, "absent", details=("",))


def read_tau2_bench(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read tau2-bench results of one domain.

    The system is the language model of the agent, the task the domain; further files of a system
    add trials. A reward of 1 is right, any other wrong. Infrastructure errors, simulations without
    a reward, and tasks that were not simulated as often as announced are missing. The column
    termination_reason says how a simulation ended.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Results, in one file or beside their folder of simulations.
    selection : Selection
        May name a task.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If the task is ambiguous, two files of one system have different settings, or a file is
        damaged.
    """
    logs = [_log(path) for path in paths]
    details = ("termination_reason",)
    return table_of_logs(logs, "tau2_bench", selection, details=details)


def _log(path: Path) -> Log:
    """Read a file, and the simulations in its folder if it has only their index."""
    results, has_index = Results(path), False
    with expects(path, "tau2-bench simulations with a task_id, a trial and a reward"):
        for key, value in stream_json(path, {"tasks", "simulations", "simulation_index"}):
            if key == "info":
                results.info = dict(value)
            elif key == "tasks":
                results.tasks.append(label(value["id"]))
            elif key == "simulations" or (key == "simulation_index" and value is not None):
                results.simulations.append(_simulation(value))
                has_index = True
        if not has_index and (path.parent / "simulations").is_dir():
            for file in sorted((path.parent / "simulations").glob("*.json")):
                results.simulations.append(_simulation(read_json(file)))
        return results.log


def _simulation(record: dict[str, Any]) -> Attempt:
    # The index of a folder of simulations has the reward itself.
    reward = (record.get("reward_info") or record).get("reward")
    reason = str(record.get("termination_reason") or "")
    status = ENDS.get(reason, "" if reward is not None else "unscored")
    unknown = reward is None or reason == UNKNOWN
    return Attempt(
        label(record["task_id"]),
        math.nan if unknown else _success(reward),
        int(record.get("trial") or 0),
        status,
        details=(reason,),
    )


def _success(reward: Any) -> float:
    return float(abs(float(reward) - 1.0) <= TOLERANCE)
