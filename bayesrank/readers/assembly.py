"""From runs of systems to one long table: tasks, names, questions and trials."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bayesrank.errors import DamagedFileError, DataError
from bayesrank.printable import listing
from bayesrank.readers.log import Attempt, Log
from bayesrank.readers.log_table import (
    ROW,
    LogTable,
    Selection,
    build_table,
    choose_tasks,
    say_left_out,
)
from bayesrank.readers.naming import (
    compare_conditions,
    drop_copies,
    name_folders,
    name_systems,
    say_alike,
)
from bayesrank.readers.opening import in_folder

if TYPE_CHECKING:
    import pandas as pd


def table_of_logs(
    logs: Sequence[Log],
    source: str,
    selection: Selection,
    *,
    paired: bool = False,
    details: Sequence[str] = (),
    wrong: Sequence[str] = (),
) -> LogTable:
    """Put runs of systems into one table.

    Further runs of a system are further trials. The task, where there are several, and the group
    of a question, where its name occurs in several groups, become part of its name. A name that
    stands for different inputs is a question for each of them.

    Parameters
    ----------
    logs : sequence of Log
        Runs, in the order of their trials.
    source : str
        Name of the format.
    selection : Selection
        Tasks, what distinguishes systems, and what counts as wrong.
    paired : bool, default False
        Whether trials have the same number in all logs, and are the same run for all systems.
    details : sequence of str, optional
        Names of what attempts keep.
    wrong : sequence of str, optional
        Statuses that the harness itself counts as wrong.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a choice is left open, a log repeats a question, or there is no outcome.
    """
    unnamed: list[str] = []
    if any(log.task for log in logs):
        tasks = choose_tasks((log.task for log in logs if log.task), selection.task)
        logs, unnamed = _of_tasks(logs, tasks)
    elif selection.task is not None:
        raise DataError(
            f"task must be left out in format {source} where the logs name none; got "
            f"{selection.task!r}"
        )
    grouped = any(each.group for log in logs for each in log.attempts)
    for log in logs:
        _refuse_blanks(log, grouped)
        _refuse_repeats(log)
    logs, renamed = _split_questions(logs)
    logs, notes = drop_copies(name_folders(logs))
    names, apart = name_systems(logs, selection)
    frame = _frame(logs, names, paired, details)
    counted = wrong if selection.count_as_wrong is None else selection.count_as_wrong
    table = build_table(frame, source, paired=paired, details=details, wrong=counted)
    message = "; ".join([table.message, *notes, *renamed, *apart])
    answered = {log.name for log in logs if log.attempts}
    left_out = say_left_out((log.name for log in logs), answered)
    files = {path: place for place, path in enumerate(dict.fromkeys(log.path for log in logs))}
    places = [files[log.path] for log in logs for _ in log.attempts]
    alike = say_alike(frame.reindex(columns=["system", "question", "outcome"]), places, list(files))
    cautions = (*table.cautions, *unnamed, *left_out, *compare_conditions(logs, names), *alike)
    return replace(table, message=message, cautions=cautions)


def _of_tasks(logs: Sequence[Log], tasks: Sequence[str]) -> tuple[list[Log], list[str]]:
    """Return the logs of tasks, and a caution about those that name none.

    A log without the name of its task is of the only chosen one if it has no other questions.
    """
    known = {each.question for log in logs if log.task in tasks for each in log.attempts}
    kept, left_out = [], []
    for log in logs:
        if not log.task and len(tasks) == 1 and {each.question for each in log.attempts} <= known:
            kept.append(replace(log, task=tasks[0]))
        elif log.task in tasks:
            kept.append(log)
        elif not log.task:
            left_out.append(log.name)
    if not left_out:
        return kept, []
    names = listing(dict.fromkeys(left_out))
    return kept, [f"Logs of {names} name no task, and are left out: they may be of another one."]


def _split_questions(logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """Give each input its own name, if several have one name."""
    inputs: dict[tuple[str, str, str], list[str]] = {}
    for log in logs:
        for each in log.attempts:
            known = inputs.setdefault((log.task, each.group, each.question), [])
            if each.content and each.content not in known:
                known.append(each.content)
    several = {cell: known for cell, known in inputs.items() if len(known) > 1}
    if not several:
        return list(logs), []
    renamed = [replace(log, attempts=_renamed(log, several)) for log in logs]
    _, _, example = next(iter(several))
    names = f"{len(several)} name{'s' * (len(several) != 1)}"
    note = (
        f"{names} of questions, such as {example!r}, stand for several inputs: each is a question"
    )
    return renamed, [note]


def _renamed(log: Log, several: Mapping[tuple[str, str, str], Sequence[str]]) -> list[Attempt]:
    """Give the inputs of a name numbers; an attempt without one is like most of its log."""
    places: list[int | None] = []
    for each in log.attempts:
        known = several.get((log.task, each.group, each.question), ())
        if not known:
            places.append(0)
        else:
            places.append(known.index(each.content) if each.content else None)
    usual = Counter(
        place
        for place, each in zip(places, log.attempts, strict=True)
        if (log.task, each.group, each.question) in several and place is not None
    )
    default = usual.most_common(1)[0][0] if usual else 0
    return [
        replace(each, question=f"{each.question}#{number + 1}") if number else each
        for place, each in zip(places, log.attempts, strict=True)
        for number in [default if place is None else place]
    ]


def _frame(
    logs: Sequence[Log], names: Sequence[str], paired: bool, details: Sequence[str]
) -> "pd.DataFrame":
    """Lay the attempts out as rows."""
    import pandas as pd  # 0.3 s, only when a log is read

    questions, groups = _questions(logs)
    offsets = [0] * len(logs) if paired else _offsets(logs, names, questions)
    rows = [
        (name, question, offset + each.trial, each.outcome, each.status, *each.details)
        for log, name, own, offset in zip(logs, names, questions, offsets, strict=True)
        for question, each in zip(own, log.attempts, strict=True)
    ]
    frame = pd.DataFrame(rows, columns=pd.Index([*ROW, "status", *details]))
    return frame.assign(group=groups) if any(groups) else frame


def _questions(logs: Sequence[Log]) -> tuple[list[list[str]], list[str]]:
    """Return the names of questions by log, and the group of every attempt."""
    if len({log.task for log in logs}) > 1:
        named = [[f"{log.task}/{each.question}" for each in log.attempts] for log in logs]
        return named, [log.task for log in logs for _ in log.attempts]
    groups = [each.group for log in logs for each in log.attempts]
    cells = {(each.question, each.group) for log in logs for each in log.attempts}
    if len(cells) == len({question for question, _ in cells}):
        return [[each.question for each in log.attempts] for log in logs], groups
    return [[f"{each.group}/{each.question}" for each in log.attempts] for log in logs], groups


def _offsets(
    logs: Sequence[Log], names: Sequence[str], questions: Sequence[Sequence[str]]
) -> list[int]:
    """Return the first trial of each log: after the trials of its system on the same questions."""
    used: dict[tuple[str, str], int] = {}
    offsets = []
    for log, name, own in zip(logs, names, questions, strict=True):
        offset = max((used.get((name, question), 0) for question in own), default=0)
        offsets.append(offset)
        for question, attempt in zip(own, log.attempts, strict=True):
            used[name, question] = max(used.get((name, question), 0), offset + attempt.trial + 1)
    return offsets


def _refuse_blanks(log: Log, grouped: bool) -> None:
    """Raise if a log leaves the name of its system, a question or, among others, a group blank."""
    names = {"system": {log.name}, "question": {each.question for each in log.attempts}}
    for role, found in names.items():
        if not all(map(str.strip, found)):
            raise DamagedFileError(
                f"paths must name the {role} of every answer; got a blank in "
                f"{in_folder(log.path)}: leave it out"
            )
    # A run may be of several files.
    blank = next((each.question for each in log.attempts if not each.group.strip()), None)
    if grouped and blank is not None:
        raise DamagedFileError(
            f"paths must name the group of every question or of none; got a blank for {blank!r} of "
            f"{log.name!r}: leave out its file"
        )


def _refuse_repeats(log: Log) -> None:
    """Raise if a log answers a question twice in one trial."""
    seen = set()
    for each in log.attempts:
        cell = (each.group, each.question, each.trial)
        if cell in seen:
            raise DataError(
                f"paths must name every question of a trial once; got {each.question!r} twice in "
                f"trial {each.trial} of {in_folder(log.path)}: number the repeats as trials, or "
                "give questions of different subjects different names"
            )
        seen.add(cell)
