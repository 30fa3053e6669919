"""Names of systems: settings that differ between runs of one name become part of the name."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from bayesrank.errors import DataError
from bayesrank.longtable import BY_CHANCE
from bayesrank.readers.log import Log
from bayesrank.readers.log_table import Selection
from bayesrank.readers.opening import in_folder, open_log, plain_name
from bayesrank.table_settings import UNSET, say_told_apart, short, with_settings

if TYPE_CHECKING:
    import pandas as pd

# Settings that change between repeats of a run, or only affect how requests are sent.
REPEATED = frozenset({
    "adaptive_connections",
    "attempt_timeout",
    "batch",
    "batch_size",
    "cache",
    "data_parallel_size",
    "device",
    "fewshot_seed",
    "gpu_memory_utilization",
    "max_batch_size",
    "max_connections",
    "max_retries",
    "num_concurrent",
    "num_workers",
    "parallelize",
    "random_seed",
    "run",
    "seed",
    "tensor_parallel_size",
    "timeout",
})  # fmt: skip

# Address of an object in memory.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

# The setting of logs that only their folders distinguish.
FOLDER = "folder"

# Names of folders of repeats: a word and a number, a time, or both.
_TIME = r"\d{4}-?\d\d-?\d\d(?:[-_T ]{0,2}\d\d[-_:]?\d\d.*)?"
_REPEAT = re.compile(
    r"(?:(?:run|trial|seed|attempt|repeat|repetition|rep|round|iter|iteration|epoch|sample)s?)?"
    rf"[-_ .]?(?:\d+(?:[-_ ]{_TIME})?|{_TIME})",
    re.IGNORECASE,
)

# Names of copies by file managers and people.
_COPY = re.compile(r"^copy of |(?:[ _-]*\(\d+\)|[ _-]copy(?:[ _-]?\d+)?)+$", re.IGNORECASE)

type Fields = dict[str, str]


def name_systems(logs: Sequence[Log], selection: Selection) -> tuple[list[str], list[str]]:
    """Name the system of every log.

    Runs of one name that differ in a setting are runs of different systems, called
    ``name (setting=value)``, but for settings that change between repeats, such as a seed, and
    those to pool.

    Parameters
    ----------
    logs : sequence of Log
        Runs.
    selection : Selection
        Its `split_by` are further fields that distinguish systems, its `pool` fields that do not.
        A field is named in full, such as ``model_args.revision``, or by its beginning or end.

    Returns
    -------
    names : list of str
        In the order of the logs.
    notes : list of str
        Which names stand for several systems, and what distinguishes them.

    Raises
    ------
    DataError
        If a field is unknown.
    """
    fields = [_fields(log) for log in logs]
    known = list(dict.fromkeys(name for each in fields for name in each))
    for argument in ("split_by", "pool"):
        _check_known(argument, getattr(selection, argument), known)
    names, told = [log.name for log in logs], {}
    for name in dict.fromkeys(names):
        places = [place for place, log in enumerate(logs) if log.name == name]
        chosen, others = _telling([logs[place] for place in places], known, selection)
        for place in places:
            values = {field: fields[place].get(field, UNSET) for field in chosen}
            names[place] = with_settings(name, values)
        told[name] = [field for field in chosen if not _among(field, selection.split_by)], others
    return names, say_told_apart(told)


def name_folders(logs: Sequence[Log]) -> list[Log]:
    """Separate logs in different folders, if only a file or folder names their system.

    They have the names of :func:`system_folders`. Those that answer the same questions are two
    systems with files of one name, such as ``a/results.json`` and ``b/results.json``, unless the
    folders say that they are repeats, as in ``a/run1/results.json`` and ``a/run2/results.json``.

    Parameters
    ----------
    logs : sequence of Log
        Runs.

    Returns
    -------
    list of Log
        With a setting ``folder`` where it distinguishes them.
    """
    logs = list(logs)
    placed = {number: log.place / log.name for number, log in enumerate(logs) if log.place}
    for number, folder in zip(placed, system_folders(placed.values()), strict=True):
        if folder != placed[number]:
            logs[number] = replace(logs[number], name=folder.name, place=folder.parent)
    named: dict[tuple[str, str], list[int]] = {}
    for number, log in enumerate(logs):
        if log.place is not None:
            named.setdefault((log.name, json.dumps(_fields(log), sort_keys=True)), []).append(
                number
            )
    found = list(logs)
    for alike in named.values():
        folders = _told_folders(place for number in alike if (place := logs[number].place))
        asked: dict[Path, set[tuple[str, str, str]]] = {}
        for number in alike:
            cells = {(logs[number].task, e.group, e.question) for e in logs[number].attempts}
            asked.setdefault(logs[number].place or Path(), set()).update(cells)
        n_cells = len(set().union(*asked.values()))
        if n_cells == sum(map(len, asked.values())) or not folders:
            continue
        for number in alike:
            log = logs[number]
            told = folders[log.place or Path()]
            found[number] = replace(log, settings={**log.settings, FOLDER: told})
    return found


def system_folders(folders: Iterable[Path]) -> list[Path]:
    """Return the folders that name systems: those above ``run1`` and the like, if they differ.

    Examples
    --------
    >>> [each.name for each in system_folders([Path("a/run1"), Path("a/run2"), Path("b")])]
    ['a', 'a', 'b']
    >>> [each.name for each in system_folders([Path("a/run1"), Path("a/run2")])]
    ['run1', 'run2']
    """
    given = list(folders)
    # Models and checkpoints are called by numbers, too.
    above = [
        next(
            (
                up
                for up in (own, *own.parents)
                if up.name.isdecimal() or not _REPEAT.fullmatch(up.name)
            ),
            own,
        )
        for own in given
    ]
    beside = {up for own in set(above) for up in own.parents}.isdisjoint(above)
    return above if beside and len(set(above)) > 1 else given


def name_places(places: Sequence[Path]) -> list[str]:
    """Return the names of folders, or of files without endings, and what distinguishes equal ones.

    Examples
    --------
    >>> name_places([Path("gpt/mmlu"), Path("llama/mmlu"), Path("gpt/gsm8k")])
    ['mmlu (folder=gpt)', 'mmlu (folder=llama)', 'gsm8k']
    """
    alike: dict[str, list[Path]] = {}
    for place in places:
        alike.setdefault(place.name, []).append(place)
    names = {}
    for name, own in alike.items():
        folders = _told_folders(place.parent for place in own)
        for place in own:
            told = {FOLDER: folders[place.parent]} if folders else {}
            names[place] = with_settings(name, told)
    return [names[place] for place in places]


def _told_folders(places: Iterable[Path]) -> dict[Path, str]:
    """Return what distinguishes folders beside the names of repeats; empty if nothing does."""
    folders = {
        place: "/".join(part for part in parts if not _REPEAT.fullmatch(part))
        for place, parts in _differing(places).items()
    }
    ends = {place: told.rpartition("/")[2] for place, told in folders.items()}
    if len(set(ends.values())) == len(set(folders.values())) and any(
        short(told) != told for told in folders.values()
    ):
        folders = ends  # a name can have them in full
    return {place: told or "." for place, told in folders.items()} if any(folders.values()) else {}


def _are_repeats(folders: Iterable[Sequence[str]]) -> bool:
    """Return whether folders, by the parts in which they differ, are called as repeats are."""
    parts = [part for each in folders for part in each]
    return bool(parts) and all(_REPEAT.fullmatch(part) for part in parts)


def _differing(paths: Iterable[Path]) -> dict[Path, tuple[str, ...]]:
    """Return the parts of paths without those at both ends that they share."""
    parts = {path: path.parts for path in paths}
    for turn in (1, -1):
        ends = [each[::turn] for each in parts.values()]
        shared = next(
            (n for n, each in enumerate(zip(*ends, strict=False)) if len(set(each)) > 1),
            min(map(len, ends), default=0),
        )
        parts = {path: each[::turn][shared:][::turn] for path, each in parts.items()}
    return parts


def compare_conditions(logs: Sequence[Log], names: Sequence[str]) -> list[str]:
    """Report different conditions of measurement that are not part of the names.

    Parameters
    ----------
    logs : sequence of Log
        Runs.
    names : sequence of str
        Names of their systems.

    Returns
    -------
    list of str
        One sentence for each condition.
    """
    said: dict[str, str] = {}
    # Conditions that a log does not contain are unknown.
    measured = [
        (log.task, name, told)
        for log, name in zip(logs, names, strict=True)
        if (told := _flat(log.conditions))
    ]
    for task in dict.fromkeys(task for task, _, _ in measured):
        own = [(name, told) for other, name, told in measured if other == task]
        for field in dict.fromkeys(field for _, told in own for field in told):
            example: dict[str, str] = {}
            for name, told in own:
                example.setdefault(told.get(field, UNSET), name)
            end = field.rpartition(".")[2]
            visible = all(f"{end}={short(value)}" in name for value, name in example.items())
            if len(example) > 1 and not visible and end not in REPEATED:
                shown = "; ".join(f"{short(value)} for {name}" for value, name in example.items())
                said[field] = f"Systems were measured under different {field}: {shown}."
    return list(said.values())


def leave_out_copies(paths: Sequence[Path], *, anywhere: bool = False) -> tuple[list[Path], str]:
    """Leave out copies of files, such as ``a (1).json`` or ``a.json.gz`` beside ``a.json``.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Logs.
    anywhere : bool, default False
        Whether files of one name in other folders are copies too, unless the folders are called as
        repeats are. Where folders name the systems they are not.

    Returns
    -------
    paths : list of pathlib.Path
        Without those that hold the same, and are called the same but for marks of copies.
    note : str
        How many were left out, to end a message; empty if none was.
    """
    alike: dict[tuple[Path, str], list[Path]] = {}
    for path in paths:
        alike.setdefault((Path() if anywhere else path.parent, _unmarked(path)), []).append(path)
    copies: set[Path] = set()
    for group in alike.values():
        known: dict[str, Path] = {}
        for path in sorted(group, key=lambda each: len(each.name)) if len(group) > 1 else ():
            original = known.setdefault(_digest(path), path)
            folders = _differing([path.parent, original.parent]).values()
            if path is not original and not _are_repeats(folders):
                copies.add(path)
    kept = [path for path in paths if path not in copies]
    return kept, "".join(f"; {note}" for note in say_copies(sorted(copies)))


def drop_copies(logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """Leave out logs that are copies of others.

    Parameters
    ----------
    logs : sequence of Log
        Runs. Those with a `run` are copies if they agree in name, task and run; others if the bytes
        and the names of their files agree, but for marks such as ``(1)`` and ``copy``, unless their
        folders are called as repeats are.

    Returns
    -------
    logs : list of Log
    notes : list of str
        How many were left out.

    Raises
    ------
    DataError
        If a run occurs twice with other outcomes.
    """
    alike: dict[tuple[str, ...], list[Log]] = {}
    copies: list[Path] = []
    for log in logs:
        known = alike.setdefault(_identity(log), [])
        if any(_is_copy(log, other) for other in known):
            copies.append(log.path)
            continue
        if log.run and known:
            raise DataError(
                f"paths must hold every run once; got the run {log.run!r} of {log.name!r} with "
                f"different outcomes in {known[0].path} and {log.path}: leave out one of them"
            )
        known.append(log)
    kept = [log for log in logs if any(log is other for other in alike[_identity(log)])]
    return kept, say_copies(copies)


def saved_again(tables: "Mapping[Path, pd.DataFrame]") -> list[Path]:
    """Return the tables that equal another one of their folder and name, in another format."""
    alike: dict[Path, list[Path]] = {}
    copies = []
    for path, table in tables.items():
        known = alike.setdefault(path.with_name(Path(plain_name(path)).stem), [])
        if any(tables[other].astype(str).equals(table.astype(str)) for other in known):
            copies.append(path)
        else:
            known.append(path)
    return copies


def say_alike(table: "pd.DataFrame", files: ArrayLike, paths: Sequence[Path]) -> list[str]:
    """Caution about files with the same rows, such as two exports of one run.

    Parameters
    ----------
    table : pandas.DataFrame
        The columns that decide, of which the last one is the outcome.
    files : array_like of shape (row,)
        Place among `paths` of the file of each row.
    paths : sequence of pathlib.Path
        Files.

    Returns
    -------
    list of str
        One sentence, if there are any. Files with few rows, or equal outcomes, agree by chance.
    """
    if len(paths) < 2:
        return []
    import pandas as pd
    from pandas.util import hash_pandas_object

    # pandas loads it late, so that its type is unknown.
    rows = cast("Any", hash_pandas_object)(table, index=False)
    by_file = pd.DataFrame({"rows": rows, "outcome": table.iloc[:, -1]}).groupby(np.asarray(files))
    told = by_file.agg(sum=("rows", "sum"), size=("rows", "size"), kinds=("outcome", "nunique"))
    told = told[(told["size"] >= BY_CHANCE) & (told["kinds"] > 1)]
    for _, alike in told.groupby(["sum", "size"], sort=False):
        if len(alike) > 1:
            one, two = (in_folder(paths[place]) for place in alike.index[:2])
            return [
                f"{one} and {two} have the same outcomes, and count twice: leave out one of them "
                "if it is a copy, such as another export of one run"
            ]
    return []


def say_copies(copies: Sequence[Path]) -> list[str]:
    """Say how many copies were left out, if any."""
    plural = "copies" if len(copies) > 1 else "copy"
    return [f"{len(copies)} {plural} of a log left out ({copies[0].name})"] if copies else []


def _unmarked(path: Path) -> str:
    name = Path(plain_name(path))
    return _COPY.sub("", name.stem) + name.suffix


def _identity(log: Log) -> tuple[str, ...]:
    run = log.run or f"file {_unmarked(log.path)}"
    fields = {name: value for name, value in _fields(log).items() if name != FOLDER}
    return log.name, log.task, run, json.dumps(fields, sort_keys=True)


def _is_copy(log: Log, other: Log) -> bool:
    """Return whether logs of one identity have the same attempts, and the same bytes if no run."""
    # Outcomes that are NaN are equal here.
    pairs = zip(log.attempts, other.attempts, strict=False)
    if len(log.attempts) != len(other.attempts) or any(repr(a) != repr(b) for a, b in pairs):
        return False
    if log.run or log.path == other.path:
        return True
    folders = _differing([log.path.parent, other.path.parent]).values()
    return not _are_repeats(folders) and _digest(log.path) == _digest(other.path)


def _digest(path: Path) -> str:
    """Return a digest of the content of a file, compressed or not."""
    with open_log(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _telling(
    logs: Sequence[Log], known: Sequence[str], selection: Selection
) -> tuple[list[str], list[str]]:
    """Return the fields that separate the runs of a name, and those that differ with them."""
    fields = [_fields(log) for log in logs]
    # Tasks have conditions of their own, such as the number of shots.
    tasks = [log.task for log in logs]
    settings = {field for log in logs for field in _flat(log.settings)}
    chosen = [field for field in known if _among(field, selection.split_by)]
    others: list[str] = []
    for field in known:
        repeated = field.rpartition(".")[2] in REPEATED
        if field in chosen or repeated or _among(field, selection.pool):
            continue
        within = [""] * len(logs) if field in settings else tasks
        if _n_kinds(fields, within, [field]) == len(set(within)):
            continue
        further = _n_kinds(fields, within, [*chosen, field]) > _n_kinds(fields, within, chosen)
        (chosen if further else others).append(field)
    return chosen, others


def _n_kinds(fields: Sequence[Fields], within: Sequence[str], names: Sequence[str]) -> int:
    """Count the different values of some fields, in each task."""
    values = ([each.get(name, UNSET) for name in names] for each in fields)
    return len({(task, *each) for task, each in zip(within, values, strict=True)})


def _fields(log: Log) -> Fields:
    return _flat({**log.settings, **log.conditions})


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Fields:
    """Return nested settings by their path, without those that are empty."""
    fields: Fields = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            fields |= _flat(value, f"{prefix}{name}.")
        elif value is not None and value != [] and value != "":
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            fields[f"{prefix}{name}"] = _ADDRESS.sub("", text)
    return fields


def _among(field: str, wanted: Iterable[str]) -> bool:
    return any(
        field == name or field.endswith(f".{name}") or field.startswith(f"{name}.")
        for name in wanted
    )


def _check_known(argument: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    for name in wanted:
        if not any(_among(field, [name]) for field in known):
            raise DataError(
                f"{argument} must name fields of the logs ({', '.join(known) or 'they have none'})"
                f"; got {name!r}"
            )
