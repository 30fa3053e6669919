"""Reader of lighteval details, ``details/<model>/<time>/details_<task>_<time>.parquet``."""

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json
from bayesrank.readers.log import Log, label, scored
from bayesrank.readers.log_table import LogTable, Selection, choose, choose_tasks
from bayesrank.readers.opening import expects, plain_suffix, stored
from bayesrank.readers.table_files import column_names, read_frame

NAME = re.compile(r"details_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\d[^_]*)\.parquet")

TIME = re.compile(r"\d{4}[-_]\d\d[-_]\d\d")

DOCUMENT = "doc"
COLUMNS = {DOCUMENT, "metric", "model_response"}
# The struct of metrics, in the current version and before it.
METRICS = ("metric", "metrics")

# Python writes it, and does not read it as a literal.
_NAN = re.compile(r"(?<=: )nan(?=[,}])")


def is_lighteval(path: Path) -> bool:
    """Return whether a file is named as lighteval names details, or has their columns."""
    if NAME.fullmatch(path.name) is not None:
        return True
    return plain_suffix(path) == ".parquet" and set(column_names(path)) >= COLUMNS


def read_lighteval(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read one metric of details.

    The system is the folder of the model below ``details``, or that of the times of its runs; facts
    on the model in the results, such as its revision, distinguish systems. Several files of a task
    are trials in the order of their times, and not paired. A question is the id of its document, or
    its place where ids repeat.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Details.
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
    names = {path: NAME.fullmatch(path.name) for path in paths}
    tasks = choose_tasks((_task(path) for path in paths), selection.task)
    paths = sorted((path for path in paths if _task(path) in tasks), key=lambda path: path.name)
    found = {path: _read(path) for path in paths}
    known = (name for own in found.values() for _, metrics in own for name in metrics)
    metric = choose("metric", known, selection.metric)
    logs = []
    for path, own in found.items():
        model, root = _model(path)
        named = names[path]
        time = named["time"] if named else ""
        attempts = [scored(each, value, path) for each, value in _outcomes(own, metric)]
        folder = root / "results" / model if root else _named_folder(path)
        settings = _settings(folder / f"results_{time}.json")
        run = f"{time} {_task(path)}" if root else ""
        place = None if root else _named_folder(path).parent
        told = {"run": run, "settings": settings, "place": place}
        logs.append(Log(path, model, attempts, task=_task(path), **told))
    return table_of_logs(logs, "lighteval", selection)


def _task(path: Path) -> str:
    named = NAME.fullmatch(path.name)
    return named["task"] if named else path.stem


def _model(path: Path) -> tuple[str, Path | None]:
    """Return the model that the folders name, and the folder of all output."""
    parts = path.parts
    if "details" in parts[:-3]:
        place = len(parts) - 1 - parts[::-1].index("details")
        return "/".join(parts[place + 1 : -2]), Path(*parts[:place])
    return _named_folder(path).name, None


def _named_folder(path: Path) -> Path:
    """Return the folder of a file that is not called by the time of its run, as on a hub."""
    own = path.parent
    return own.parent if TIME.match(own.name) else own


def _read(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return ids and metrics of documents, which are text where structs could not be stored."""
    frame = read_frame(path, needed=lambda name: name in (DOCUMENT, *METRICS))
    with expects(path, "lighteval details with metrics of every document"):
        column = next(name for name in METRICS if name in frame)
        metrics = [dict(_parsed(cell)) for cell in frame[column].tolist()]
        cells = frame[DOCUMENT].tolist() if DOCUMENT in frame else []
        ids = [str(_parsed(cell).get("id") or "").strip() for cell in cells]
        return list(zip(ids or [""] * len(metrics), metrics, strict=True))


def _outcomes(
    documents: Sequence[tuple[str, dict[str, Any]]], metric: str
) -> list[tuple[str, Any]]:
    """Return documents by their ids, or by their places where ids repeat, and what they scored.

    Metrics of texts and metrics of probabilities have a row each for every document.
    """
    found = [(name, _plain(metrics.get(metric))) for name, metrics in documents]
    scores = {name for name, value in found if name and value is not None}
    found = [(name, value) for name, value in found if value is not None or name not in scores]
    names = [name for name, _ in found]
    if not all(names) or len(set(names)) < len(names):
        return [(str(place), value) for place, (_, value) in enumerate(found)]
    return [(label(name), value) for name, value in found]


def _parsed(cell: Any) -> Any:
    return ast.literal_eval(_NAN.sub("None", cell)) if isinstance(cell, str) else cell


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _settings(path: Path) -> dict[str, Any]:
    """Return what the results of a run say of its model."""
    results = stored(path)
    if results is None:
        return {}
    with expects(results, "lighteval results with a config_general"):
        general = read_json(results)["config_general"]
        config = general.get("model_config") or general.get("config") or {}
        told = {name: general.get(name) for name in ("model_sha", "model_dtype")}
        return {**told, "model_config": config if isinstance(config, dict) else str(config)}
