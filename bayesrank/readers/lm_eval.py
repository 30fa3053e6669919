"""Reader of lm-evaluation-harness logs, ``<model>/samples_<task>_<time>.jsonl``."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from math import isnan
from pathlib import Path
from typing import Any

from bayesrank.errors import DamagedFileError, DataError
from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import parse_json_lines, read_json
from bayesrank.readers.log import Attempt, Log, logged_outcome
from bayesrank.readers.log_table import LogTable, Selection, choose, choose_tasks
from bayesrank.readers.opening import in_folder, plain_name, plain_suffix

SAMPLES_NAME = re.compile(
    r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT\d\d[-:]\d\d[-:]\d\d.*)\.jsonl?"
)

# The scores of repeats by metric; the line also has their mean or another summary.
REPEATS = "scores_per_repeat"

# Fields of a line that are no metrics, for the versions that do not list their metrics.
NO_METRICS = frozenset({
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
    REPEATS,
})  # fmt: skip

# What the results beside the samples say of the model; ``config`` has more.
MODEL = ("model_name", "model_source", "system_instruction_sha", "chat_template_sha")
CONFIG = ("model", "model_args", "model_revision", "model_sha", "model_dtype", "gen_kwargs")


@dataclass(frozen=True)
class Run:
    """One run of one system on one task, and the results that say how it was run."""

    path: Path
    task: str
    time: str
    results: dict[str, Any] = field(compare=False)

    @property
    def model(self) -> str:
        """Name of the model, empty without results."""
        return str(self.results.get("model_name") or "")


@dataclass(frozen=True, slots=True)
class Line:
    """What is needed of one line of samples; metrics have a value for each repeat."""

    question: str
    filter: str
    prompt: str
    metrics: dict[str, list[object]]


def is_samples_file(path: Path) -> bool:
    """Return whether a file is named as the harness names its samples."""
    return SAMPLES_NAME.fullmatch(plain_name(path)) is not None


def read_lm_eval(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read the samples of one filter and metric.

    The system is the folder that holds the file, or the model where a folder holds several. The
    results beside the samples say how it was run: what differs between runs of one name, such as a
    revision or the number of shots, becomes part of it; other runs are its trials, in the order of
    their times. Without results, runs with different prompts are different systems. Repeats within
    a run are trials, too, where lines have their scores, as those of version 0.5 do. Runs of
    different systems are not the same run, so trials are not paired. Questions are joined on
    ``doc_hash``. Where lines do not name their filter, the results do, or it has a number.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Samples files.
    selection : Selection
        May name a task or several, a filter and a metric.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a choice is left open, a metric is lower for better systems, or a file is damaged.
    """
    runs = [_describe(path) for path in paths]
    tasks = _choose_tasks(runs, selection.task)
    runs = sorted((run for run in runs if run.task in tasks), key=lambda run: run.time)
    lines = {run: list(_read_lines(run)) for run in runs}
    where = f" for task {tasks[0]!r}" if len(tasks) == 1 else ""
    filters = (line.filter for own in lines.values() for line in own)
    chosen = choose("filter", filters, selection.filter, where)
    lines = {run: [line for line in own if line.filter == chosen] for run, own in lines.items()}
    metrics = (name for own in lines.values() for line in own for name in line.metrics)
    metric = choose("metric", metrics, selection.metric, where)
    for run in runs:
        _check_direction(run, metric)
    logs = [
        Log(
            run.path,
            _name(run, runs),
            list(_attempts(run, lines[run], metric)),
            task=run.task,
            run=run.time,
            place=None if run.results else run.path.parent.parent,
            settings=_settings(run),
            conditions=_conditions(run, lines),
        )
        for run in runs
    ]
    return table_of_logs(logs, "lm_eval", replace(selection, task="*"))


def _choose_tasks(runs: list[Run], chosen: str | None) -> list[str]:
    """Return the tasks that were chosen, by a name, a pattern, or a group of the harness."""
    known = [run.task for run in runs]
    groups: dict[str, list[str]] = {}
    for run in runs:
        groups |= run.results.get("group_subtasks") or {}
    members, left = set(), [chosen]
    while left and chosen not in known:
        name = left.pop()
        if name in groups and name not in members:
            left += groups[name]
        members.add(name)
    found = [task for task in dict.fromkeys(known) if task in members]
    return found or choose_tasks(known, chosen)


def _describe(path: Path) -> Run:
    match = SAMPLES_NAME.fullmatch(plain_name(path))
    if match is None:
        raise DataError(
            f"paths must be named samples_<task>_<time>.jsonl in format lm_eval; got {path.name!r}"
        )
    # They are called results_<time>.json, or as --output_path says.
    named = sorted(path.parent.glob(f"*_{match['time']}.json*"))
    found = (each for each in named if plain_suffix(each) == ".json" and not is_samples_file(each))
    beside = next(found, None)
    results = {} if beside is None else read_json(beside)
    return Run(path, match["task"], match["time"], results if isinstance(results, dict) else {})


def _name(run: Run, runs: list[Run]) -> str:
    """Return the folder, or the model where the folder holds several."""
    folder = run.path.parent
    models = {other.model for other in runs if other.path.parent == folder and other.model}
    return run.model if run.model and len(models) > 1 else folder.name


def _settings(run: Run) -> dict[str, Any]:
    """Return what makes another system of the same name."""
    config = run.results.get("config")
    config = config if isinstance(config, dict) else {}
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        pairs = (argument.partition("=") for argument in arguments.split(","))
        arguments = {name.strip(): value for name, _, value in pairs}
    named = {name: run.results.get(name) for name in MODEL}
    configured = {name: config.get(name) for name in CONFIG}
    return {**named, **configured, "model_args": arguments}


def _conditions(run: Run, lines: dict[Run, list[Line]]) -> dict[str, Any]:
    """Return what is measured otherwise: shots and versions, or else the prompts."""
    name = _name(run, list(lines))
    same = [other for other in lines if _name(other, list(lines)) == name]
    same = [other for other in same if other.task == run.task]
    task = _of_task(run, "configs")
    told = {
        "n-shot": _of_task(run, "n-shot"),
        "task_version": _of_task(run, "versions"),
        "generation_kwargs": task.get("generation_kwargs") if isinstance(task, dict) else None,
    }
    if len(same) == 1 or all(other.results for other in same):
        return told
    prompts = [{line.question: line.prompt for line in lines[other]} for other in same]
    shared = sorted(set.intersection(*map(set, prompts)))
    own = prompts[same.index(run)]
    return told | {"prompts": "".join(own[question] for question in shared)}


def _of_task(run: Run, key: str) -> Any:
    of_tasks = run.results.get(key)
    return of_tasks.get(run.task) if isinstance(of_tasks, dict) else None


def _filters(run: Run) -> Iterator[str]:
    """Yield the names of the filters of a task, and then numbers, without end."""
    config = _of_task(run, "configs")
    listed = config.get("filter_list") if isinstance(config, dict) else None
    names = [str(each["name"]) for each in listed or [{"name": "none"}]]
    return chain(names, (f"filter {number}" for number in count(len(names) + 1)))


def _read_lines(run: Run) -> Iterator[Line]:
    # Every filter has a line for each document; versions before 0.4.7 do not say which one.
    unnamed: dict[object, Iterator[str]] = defaultdict(lambda: _filters(run))
    for record in parse_json_lines(run.path):
        question = record.get("doc_hash")
        if not isinstance(question, str):
            raise DamagedFileError(
                f"paths must hold samples with a doc_hash; got {question!r} in "
                f"{in_folder(run.path)}: log the samples with lm-evaluation-harness 0.4.3 or later"
            )
        names = record.get("metrics") or [name for name in record if name not in NO_METRICS]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DamagedFileError(
                f"paths must hold samples with a list of metrics; got {names!r} in "
                f"{in_folder(run.path)}: leave it out"
            )
        repeats = record.get(REPEATS) or {}
        metrics: dict[str, list[object]] = {
            name: list(repeats.get(name) or [record.get(name)]) for name in names
        }
        kind = record["filter"] if "filter" in record else next(unnamed[record.get("doc_id")])
        yield Line(question, str(kind), str(record.get("prompt_hash") or ""), metrics)


def _attempts(run: Run, lines: list[Line], metric: str) -> Iterator[Attempt]:
    copies: Counter[str] = Counter()
    for line in lines:
        # A document may occur several times in a task; its copies are different questions.
        copies[line.question] += 1
        copy = copies[line.question]
        question = line.question if copy == 1 else f"{line.question}#{copy}"
        where = f"metric {metric!r} in {in_folder(run.path)}"
        for trial, value in enumerate(line.metrics.get(metric) or [None]):
            outcome = logged_outcome(value, where)
            yield Attempt(question, outcome, trial, status="unscored" if isnan(outcome) else "")


def _check_direction(run: Run, metric: str) -> None:
    of_task = _of_task(run, "higher_is_better")
    if isinstance(of_task, dict) and of_task.get(metric) is False:
        raise DataError(
            f"metric must be higher for better systems; got {metric!r} for task {run.task!r}, "
            "where lower is better (pass metric=... with another one)"
        )
