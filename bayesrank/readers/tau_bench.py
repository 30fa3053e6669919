"""Readers of tau-bench and tau2-bench results."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bayesrank.errors import DataError
from bayesrank.readers.files import BYTE_ORDER_MARK, parse_json, starts_like
from bayesrank.readers.json_stream import stream_json
from bayesrank.readers.log_table import COLUMNS, RENAME_ONE, LogTable, build_table
from bayesrank.readers.selection import Selection, choose

TAU_START = re.compile(BYTE_ORDER_MARK + rb'\s*\[\s*\{\s*"task_id"\s*:')
TAU2_START = re.compile(BYTE_ORDER_MARK + rb'\s*\{\s*"timestamp"\s*:(?s:.*?)"user_info"\s*:')

# tau-bench calls its files <strategy>-<model>-<temperature>_range_<from>-<to>_user-<...>.json.
TAU_NAME = re.compile(r"(?P<system>.+)_range_-?\d+-+\d+_user-.*")

# What both tools take for success.
TOLERANCE = 1e-6

# A simulation that the infrastructure ended says nothing of the agent.
UNKNOWN = "infrastructure_error"


def is_tau_results(path: Path) -> bool:
    """Return whether a file starts like tau-bench results."""
    return starts_like(path, TAU_START)


def is_tau2_results(path: Path) -> bool:
    """Return whether a file starts like tau2-bench results."""
    return starts_like(path, TAU2_START)


def read_tau_bench(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read tau-bench results, lists of runs.

    The system is what the name of the file says before ``_range_``, or the whole name; further
    files of a system add trials. A reward of 1 is right, any other wrong. Runs that raised an
    error are missing, although tau-bench itself counts them as wrong; the column error has their
    messages.

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
    import pandas as pd  # 0.3 s, only when a log is read

    rows: list[tuple[str, str, int, float, str]] = []
    n_trials: dict[str, int] = {}
    for path in paths:
        named = TAU_NAME.fullmatch(path.stem)
        system = named["system"] if named else path.stem
        first = n_trials.get(system, 0)
        for _, run in stream_json(path):
            try:
                error = str((run.get("info") or {}).get("error") or "")
                outcome = math.nan if error else _success(run["reward"])
                trial = first + int(run.get("trial", 0))
                rows.append((system, str(run["task_id"]), trial, outcome, error))
            except (KeyError, TypeError, ValueError, AttributeError) as wrong:
                raise DataError(
                    "paths must hold tau-bench runs with a task_id and a reward; got "
                    f"{wrong!r} in {path.name}: leave it out"
                ) from wrong
            n_trials[system] = max(n_trials.get(system, 0), trial + 1)
    frame = pd.DataFrame(rows, columns=pd.Index([*COLUMNS, "error"]))
    return build_table(frame, "tau_bench", paired=False, details=("error",))


@dataclass
class Results:
    """What one file of tau2-bench results holds."""

    path: Path
    info: dict[str, Any] = field(default_factory=dict)
    tasks: list[str] = field(default_factory=list)
    simulations: list[tuple[str, int, float, str]] = field(default_factory=list)

    @property
    def domain(self) -> str:
        """Name of the domain."""
        return str((self.info.get("environment_info") or {}).get("domain_name"))

    @property
    def system(self) -> str:
        """Language model of the agent, or the agent itself where it has none."""
        agent = self.info.get("agent_info") or {}
        return str(agent.get("llm") or agent.get("implementation"))

    @property
    def settings(self) -> dict[str, object]:
        """What would make another system under the same name."""
        agent, user = (self.info.get(key) or {} for key in ("agent_info", "user_info"))
        return {
            "agent implementation": agent.get("implementation"),
            "agent llm_args": agent.get("llm_args"),
            "user llm": user.get("llm"),
        }


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
        If the task is left open, two files of one system were run with different settings, or a
        file is damaged.
    """
    import pandas as pd  # 0.3 s, only when a log is read

    found = [_read_results(path) for path in paths]
    task = choose("task", (results.domain for results in found), selection.task)
    found = [results for results in found if results.domain == task]
    _check_settings(found)
    frame = pd.DataFrame(_rows(found), columns=pd.Index([*COLUMNS, "termination_reason"]))
    return build_table(frame, "tau2_bench", paired=False, details=("termination_reason",))


def _read_results(path: Path) -> Results:
    """Read a file, and the simulations beside it where it holds only their index."""
    results, has_index = Results(path), False
    try:
        for key, value in stream_json(path, {"tasks", "simulations", "simulation_index"}):
            if key == "info":
                results.info = dict(value)
            elif key == "tasks":
                results.tasks.append(str(value["id"]))
            elif key == "simulations" or (key == "simulation_index" and value is not None):
                results.simulations.append(_simulation(value))
                has_index = True
        if not has_index and (path.parent / "simulations").is_dir():
            for file in sorted((path.parent / "simulations").glob("*.json")):
                results.simulations.append(_simulation(parse_json(file.read_bytes(), file.name)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            "paths must hold tau2-bench simulations with a task_id, a trial and a reward; got "
            f"{error!r} in {path.name}: leave it out"
        ) from error
    return results


def _simulation(record: dict[str, Any]) -> tuple[str, int, float, str]:
    # The index of a folder of simulations has the reward itself.
    reward = (record.get("reward_info") or record).get("reward")
    reason = str(record.get("termination_reason") or "")
    outcome = math.nan if reward is None or reason == UNKNOWN else _success(reward)
    return str(record["task_id"]), int(record.get("trial") or 0), outcome, reason


def _success(reward: Any) -> float:
    return float(abs(float(reward) - 1.0) <= TOLERANCE)


def _rows(found: list[Results]) -> Iterator[tuple[str, str, int, float, str]]:
    """Yield what was simulated, and what was announced and was not."""
    n_trials: dict[str, int] = {}
    for results in found:
        first = n_trials.get(results.system, 0)
        simulated = {(task, trial) for task, trial, _, _ in results.simulations}
        announced = int(results.info.get("num_trials") or 0)
        n_here = max([announced, *(trial + 1 for _, trial in simulated)])
        for task, trial, outcome, reason in results.simulations:
            yield results.system, task, first + trial, outcome, reason
        for task in results.tasks:
            for trial in range(n_here):
                if (task, trial) not in simulated:
                    yield results.system, task, first + trial, math.nan, ""
        n_trials[results.system] = first + n_here


def _check_settings(found: list[Results]) -> None:
    first: dict[str, Results] = {}
    for results in found:
        known = first.setdefault(results.system, results)
        for name, setting in results.settings.items():
            if setting != known.settings[name]:
                raise DataError(
                    f"paths must hold one system per model name; got different {name} for "
                    f"{results.system!r} in {known.path.name} and {results.path.name}",
                    **RENAME_ONE,
                )
