"""Reader of HELM runs, ``<run>/per_instance_stats.json``."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesrank.errors import DamagedFileError
from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json, stream_json
from bayesrank.readers.log import Attempt, Log, label
from bayesrank.readers.log_table import LogTable, Selection, choose, choose_tasks
from bayesrank.readers.opening import expects, starts_like, stored

STATS_START = re.compile(rb'\[\s*\{\s*"instance_id"\s*:(?=.*?"stats"\s*:\s*\[)', re.DOTALL)

# What a run says of its model.
NAMES = ("model", "model_deployment")

# A run is called <scenario>:<argument>=<value>,... and these arguments follow from the model.
MODEL_ARGUMENT = re.compile(
    r"(?P<before>^|[:,])(?P<name>model|model_deployment|stop|global_prefix)=(?P<value>[^,]*)"
)


@dataclass(frozen=True)
class Run:
    """One run: a model on a scenario."""

    path: Path
    system: str
    task: str
    adapter: dict[str, Any]


@dataclass(frozen=True)
class Stat:
    """One statistic of one instance; `filter` is its split and perturbation."""

    question: str
    trial: int
    filter: str
    metric: str
    value: float

    @property
    def attempt(self) -> Attempt:
        """What it says of the answer."""
        status = "unscored" if math.isnan(self.value) else ""
        return Attempt(self.question, self.value, self.trial, status)


def is_instance_stats(path: Path) -> bool:
    """Return whether a file is named as HELM names its statistics, or starts like them."""
    # What the summarizer writes beside them starts alike, and has no list of statistics.
    return path.name == "per_instance_stats.json" or starts_like(path, STATS_START)


def read_helm(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read one metric of one scenario.

    The system is the model that ``run_spec.json`` beside the file names, or else the name of the
    folder; the task is the name of the run without its model. Train trials are trials: they share
    their in-context examples over models, so they are paired. Instances of another split or
    perturbation are other questions; ``filter`` chooses one kind, as in ``test`` or
    ``test+misspellings``.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Files of statistics.
    selection : Selection
        May name a task, a filter and a metric.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a choice is left open, a run names no model, or a file is damaged.
    """
    runs = [_describe(path) for path in paths]
    tasks = choose_tasks((run.task for run in runs), selection.task)
    runs = [run for run in runs if run.task in tasks]
    # Read twice, so that the statistics not asked for are never kept.
    known = {(stat.metric, stat.filter) for run in runs for stat in _read_stats(run.path)}
    where = f" for task {tasks[0]!r}" if len(tasks) == 1 else ""
    metric = choose("metric", sorted({name for name, _ in known}), selection.metric, where)
    filters = sorted({name for found, name in known if found == metric})
    chosen = choose("filter", filters, selection.filter, f" for metric {metric!r}")
    logs = [
        Log(
            run.path,
            run.system,
            [
                stat.attempt
                for stat in _read_stats(run.path)
                if stat.metric == metric and stat.filter == chosen
            ],
            task=run.task,
            settings={"model_deployment": run.adapter.get("model_deployment")},
            conditions={key: run.adapter[key] for key in run.adapter if key not in NAMES},
        )
        for run in runs
    ]
    return table_of_logs(logs, "helm", selection, paired=True)


def _describe(path: Path) -> Run:
    spec_path = stored(path.with_name("run_spec.json"))
    spec = {} if spec_path is None else read_json(spec_path)
    name = str(spec.get("name") or path.parent.name)
    named = {match["name"]: match["value"] for match in MODEL_ARGUMENT.finditer(name)}
    adapter = spec.get("adapter_spec") or {}
    said = [of.get(key) for of in (adapter, named) for key in NAMES]
    model = next(filter(None, said), None)
    if not model:
        raise DamagedFileError(
            "paths must be HELM runs that name their model, in run_spec.json or in the name of "
            f"their folder; got {name!r}: copy run_spec.json as well"
        )
    task = MODEL_ARGUMENT.sub(lambda match: match["before"], name)
    task = re.sub(r"([:,]),+", r"\1", task).strip(":,") or "unnamed"
    return Run(path, str(model), task, adapter)


def _read_stats(path: Path) -> Iterator[Stat]:
    for _, instance in stream_json(path):
        with expects(path, "HELM instances with an instance_id, a train_trial_index and stats"):
            perturbation = instance.get("perturbation") or {}
            for stat in instance["stats"]:
                name = stat["name"]
                kind = [str(name.get("split") or "none"), *_named(perturbation)]
                yield Stat(
                    label(instance["instance_id"]),
                    int(instance["train_trial_index"]),
                    "+".join(kind),
                    str(name["name"]),
                    _mean(stat),
                )


def _named(perturbation: dict[str, Any]) -> list[str]:
    return [str(perturbation["name"])] if perturbation else []


def _mean(stat: dict[str, Any]) -> float:
    """Return the mean of a statistic, NaN if nothing was counted."""
    return float(stat["sum"]) / int(stat["count"]) if stat["count"] else math.nan
