"""Reader of SWE-bench results: reports of runs, and reports of single instances."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

from bayesrank.errors import DamagedFileError
from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import read_json
from bayesrank.readers.log import Attempt, Log, name_of
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.opening import expects, in_folder, plain_name, starts_like

# The report of a run is an object with counts (..._instances) and lists (..._ids), that of an
# instance is an object with its name, and the results of a submission are one of three lists.
RUN_START = re.compile(rb'\{\s*"\w+_(?:instances|ids)"')
INSTANCE_START = re.compile(rb'\{\s*"[^"]+"\s*:\s*\{\s*"(?:patch_\w+|resolved)"\s*:')
SUBMISSION_START = re.compile(
    rb'\{\s*"(?:no_generation|no_logs|resolved)"\s*:\s*\[(?=.*?"resolved"\s*:)',
    re.DOTALL,
)

RIGHT = "resolved_ids"
UNRESOLVED = "unresolved_ids"
WRONG = (UNRESOLVED, "empty_patch_ids")
# Instances without an outcome, by reason. The harness counts errors as not resolved.
STATUS = {
    "error_ids": "error",
    "infra_failure_ids": "unscored",
    "ambiguous_failure_ids": "unscored",
    "incomplete_ids": "absent",
}
COUNTED = ("error",)

# Lists of a submission; the earliest submissions also list everything that was generated.
SUBMISSION = ("no_generation", "no_logs", "resolved")
GENERATED = "generated"

# Field with the reason of a failed evaluation of an instance.
FAILED = "infra_failure_reason"

# File that the harness writes for each instance that it tries to evaluate.
TRIED = "run_instance.log"

# sb-cli names a report <subset>__<split>__<run>.json, and the run is the submission.
SUBMITTED = re.compile(r"swe-bench\w*?(?:-\w+)?__[a-z]+__(?P<system>.+)", re.IGNORECASE)
# The harness names it <model>.<run>.json. These names of runs mark repeats.
REPEAT = re.compile(r"(?:run|trial|seed|attempt|repeat|rep|round|iter)[-_]?\d+", re.IGNORECASE)
# The dot of a version number, as in gpt-4.1, does not separate model and run.
VERSION = re.compile(r"\d\.\d")


def is_swebench(path: Path) -> bool:
    """Return whether a file starts like a report of a run, an instance or a submission."""
    return any(starts_like(path, start) for start in (RUN_START, INSTANCE_START, SUBMISSION_START))


def read_swebench(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read reports of runs, reports of instances, and results of submissions.

    The report of a run is one trial of its system. Its file is named ``<model>.<run>.json``. The
    part after the last dot is the run if it is the name of a repeat (``run2``), if all reports
    share it, or if the folder has logs of such a run; otherwise it distinguishes systems of one
    model. With ``<subset>__<split>__<name>.json`` of sb-cli, the system is the submission. Reports
    of instances are read by their folders, ``<run>/<model>/<instance>``, if there is no report of
    the run. The system of a submission (``results.json`` of SWE-bench/experiments) is its folder;
    it was asked every instance that any submission names.

    Resolved instances are right; unresolved ones and empty patches are wrong, and so are errors,
    unless other statuses count as wrong. Infrastructure failures, ambiguous failures and instances
    that were not submitted, or not evaluated, are missing.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Reports in the order of their trials.
    selection : Selection
        May name the task of submissions, distinguish systems and define what counts as wrong.

    Returns
    -------
    LogTable

    Raises
    ------
    DataError
        If a report is damaged, lacks a list, or contradicts itself.
    """
    reports = [path for path in paths if starts_like(path, RUN_START)]
    submissions = [path for path in paths if starts_like(path, SUBMISSION_START)]
    logs = [*_runs(reports), *_submissions(submissions)]
    known = {(log.name, str(log.settings.get("run"))) for log in logs}
    instances: dict[Path, list[Path]] = {}
    for path in paths:
        if path not in reports and path not in submissions:
            instances.setdefault(path.parent.parent, []).append(path)
    for folder, files in instances.items():
        log = _instances(folder, files)
        if (log.name, str(log.settings["run"])) not in known:
            logs.append(log)
    if not submissions:
        return table_of_logs(logs, "swebench", selection, wrong=COUNTED)
    table = table_of_logs(logs, "swebench", selection, wrong=(*COUNTED, "absent"))
    if any(GENERATED in read_json(path) for path in submissions):
        return table
    caution = (
        "Results of submissions do not name the instances that no system resolved: scores are "
        f"shares of the {table.frame['question'].nunique()} instances that they name."
    )
    return replace(table, cautions=(*table.cautions, caution))


def _runs(paths: Sequence[Path]) -> Iterator[Log]:
    names = {path: _split_name(path) for path in paths}
    heads = Counter(head for head, _ in names.values())
    runs = {run for _, run in names.values()}
    for path, (head, run) in names.items():
        system, settings = head, {"run": run}
        common = len(runs) == 1 and len(paths) > 1
        if run and not common and not _is_run(path, head, run):
            # Runs that are not marked as repeats, or the end of a name.
            system = head if heads[head] > 1 else f"{head}.{run}"
            settings = {"suffix": run} if heads[head] > 1 else {}
        attempts = [Attempt(*each) for each in _outcomes(path)]
        yield Log(path, system, attempts, settings=settings, place=path.parent)


def _split_name(path: Path) -> tuple[str, str]:
    """Return the system and the run in the name of a file."""
    stem = Path(plain_name(path)).stem
    submitted = SUBMITTED.fullmatch(stem)
    if submitted:
        return submitted["system"], ""
    head, dot, run = stem.rpartition(".")
    if not dot or VERSION.match(f"{head[-1:]}.{run}"):
        return stem, ""
    return head, run


def _is_run(path: Path, head: str, run: str) -> bool:
    logged = path.parent / "logs" / "run_evaluation" / run / head
    return REPEAT.fullmatch(run) is not None or logged.is_dir()


def _outcomes(path: Path) -> Iterator[tuple[str, float, int, str]]:
    """Yield question, outcome, trial and status of every instance that a report names."""
    report = read_json(path)
    if not isinstance(report, dict):
        raise DamagedFileError(
            f"paths must hold SWE-bench run reports; got no JSON object in {in_folder(path)}"
        )
    right = set(_ids(report, RIGHT, path))
    tells = UNRESOLVED in report
    submitted = set(_ids(report, "submitted_ids", path, optional=tells))
    wrong = {name for key in WRONG for name in _ids(report, key, path, optional=True)}
    # An infrastructure failure may also be listed as an error, but is not one.
    unknown = {
        name: status for key, status in STATUS.items() for name in _ids(report, key, path, True)
    }
    contradictory = sorted(right & (wrong | unknown.keys()))
    if contradictory:
        raise DamagedFileError(
            f"{RIGHT} must not share instances with the other lists; got {contradictory[0]!r} in "
            f"{in_folder(path)}: evaluate the run again"
        )
    if tells:
        # Submitted instances in no list were excluded from the evaluation, or are still pending.
        unknown |= dict.fromkeys(submitted - right - wrong - unknown.keys(), "absent")
    for name in sorted(right | wrong | submitted | unknown.keys()):  # the reports hold sets
        status = unknown.get(name, "")
        yield name, nan if status else float(name in right), 0, status


def _ids(report: dict[str, Any], key: str, path: Path, optional: bool = False) -> list[str]:
    ids = report.get(key, [] if optional else None)
    if not isinstance(ids, list):
        raise DamagedFileError(
            f"paths must hold SWE-bench run reports with a list {key}; got {ids!r} in "
            f"{in_folder(path)}: write the report again with a current SWE-bench (a report of "
            "counts only does not name the resolved instances)"
        )
    with expects(path, f"SWE-bench run reports with the names of instances in {key}"):
        return [name_of(name) for name in ids]


def _instances(folder: Path, paths: Sequence[Path]) -> Log:
    """Read the reports of the instances of one run, each in its own folder."""
    attempts = []
    for path in paths:
        report = read_json(path)
        if not isinstance(report, dict):
            raise DamagedFileError(
                f"paths must hold SWE-bench run reports; got no JSON object in {in_folder(path)}"
            )
        for name, told in report.items():
            resolved = told.get("resolved") if isinstance(told, dict) else None
            if not isinstance(resolved, bool):
                raise DamagedFileError(
                    f"paths must hold SWE-bench reports with a truth value for {name}; got "
                    f"{resolved!r} in {in_folder(path)}: evaluate it again"
                )
            # As in reports of runs, infrastructure and ambiguous failures have a reason.
            unknown = told.get(FAILED) is not None and not resolved
            outcome = nan if unknown else float(resolved)
            attempts.append(Attempt(name, outcome, status="unscored" if unknown else ""))
    # The harness writes no report of an instance whose evaluation failed.
    reported = {path.parent for path in paths}
    tried = (path.parent for path in sorted(folder.glob(f"*/{TRIED}")))
    failed = (each for each in tried if each not in reported)
    attempts += [Attempt(each.name, nan, status="error") for each in failed]
    # Submissions keep them in <submission>/logs, the harness in <run>/<model>.
    system, run = (
        (folder.parent.name, "") if folder.name == "logs" else (folder.name, folder.parent.name)
    )
    return Log(paths[0], system, attempts, settings={"run": run}, place=folder.parent.parent)


def _submissions(paths: Sequence[Path]) -> Iterator[Log]:
    """Yield the results of submissions: what none of their lists names was not resolved."""
    lists = {path: read_json(path) for path in paths}
    named = {path: _named(told, path) for path, told in lists.items()}
    for path, status in named.items():
        folder = path.parent.parent if path.parent.name == "results" else path.parent
        questions = sorted({name for each in named.values() for name in each})
        attempts = []
        for name in questions:
            kind = status.get(name, "")
            right = float(kind == "resolved")
            missing = {"no_generation": "absent", "no_logs": "error"}.get(kind, "")
            attempts.append(Attempt(name, nan if missing else right, status=missing))
        split = folder.parent
        task = split.name if split.parent.name == "evaluation" else ""
        yield Log(path, folder.name, attempts, task=task, place=split)


def _named(told: dict[str, Any], path: Path) -> dict[str, str]:
    """Return the list of each instance; early submissions also list all patches, and the logs."""
    others = [key for key in told if key not in SUBMISSION]
    return {
        name: key
        for key in (*others, *SUBMISSION)
        for name in _ids(told, key, path, optional=key != "resolved")
    }
