"""The two file formats of inspect_ai logs, read one sample at a time."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayesrank.readers.json_files import parse_json, stream_json
from bayesrank.readers.log import digest, label, name_of
from bayesrank.readers.opening import expects, in_folder, open_archive, read_member, starts_like

# A JSON log starts with its version and status; other files of a log folder list headers by name.
LOG_START = re.compile(rb'\{\s*(?="(?:version|status|eval)")(?s:.*?)"eval"\s*:\s*\{')

# The journal holds the specification from the start, the header from the end of the run.
SPEC_MEMBERS = ("header.json", "_journal/start.json")

# Settings of the system in the specification...
SETTINGS = ("model_base_url", "model_args", "model_generate_config")
# ... and conditions of the measurement, beside its limits.
CONDITIONS = ("solver", "solver_args", "task_version", "task_args")
LIMITS = (
    "message_limit",
    "token_limit",
    "turn_limit",
    "time_limit",
    "working_limit",
    "cost_limit",
)

# The stop reason of a model that refused to answer.
REFUSAL = "content_filter"


@dataclass(frozen=True)
class Spec:
    """The description of a run in its log.

    Attributes
    ----------
    path : pathlib.Path
        The log.
    model, task : str
        Who answered what.
    run : str
        Identifier that a run shares with its retries.
    created : str
        ISO time.
    questions : tuple of str
        Samples that the log announces, none if it does not.
    n_epochs : int
        Epochs that the log announces.
    settings : dict
        What makes another system of the same model.
    conditions : dict
        How it was measured.
    scorers : dict
        Options of its scorers by name.
    """

    path: Path
    model: str
    task: str
    run: str
    created: str
    questions: tuple[str, ...]
    n_epochs: int
    settings: dict[str, object]
    conditions: dict[str, object]
    scorers: dict[str, object]


@dataclass(frozen=True, slots=True)
class Sample:
    """The fields of one sample that are kept.

    Attributes
    ----------
    question : str
        Its name.
    epoch : int
        From 1.
    values : dict
        Values by scorer, none if the sample was invalidated or was not scored.
    limit : str
        Limit that ended it, such as ``token`` or ``time``; empty if none did.
    error : str
        Message of the error that ended it; empty if none did.
    status : str
        ``error``, ``limit`` or ``refused``, also if it was scored; empty else.
    content : str
        Digest of its input.
    """

    question: str
    epoch: int
    values: dict[str, object]
    limit: str = ""
    error: str = ""
    status: str = ""
    content: str = ""


def is_inspect_log(path: Path) -> bool:
    """Return whether a file is an inspect archive by name, or starts like a JSON log."""
    return _is_archive(path) or starts_like(path, LOG_START)


def read_spec(path: Path) -> Spec:
    """Read the description of a run from its log.

    Parameters
    ----------
    path : pathlib.Path
        Log.

    Returns
    -------
    Spec

    Raises
    ------
    DataError
        If the log is damaged or names no model and task.
    """
    header: Any = None
    if _is_archive(path):
        with open_archive(path) as archive:
            members = [name for name in SPEC_MEMBERS if name in archive.namelist()]
            if members:
                header = parse_json(read_member(archive, members[0]), in_folder(path))
    else:
        members = stream_json(path, {"samples"})
        header = {}
        for key, value in members:
            # The samples, which may be large, come after what is looked for.
            if key == "samples" or {"eval", "plan"} <= header.keys():
                break
            header[key] = value
    with expects(path, "inspect logs that name their model and task"):
        spec, plan = header["eval"], header.get("plan") or {}
        config = spec.get("config") or {}
        return Spec(
            path=path,
            model=name_of(spec["model"]),
            task=str(spec["task"]),
            run=str(spec.get("task_id") or path),
            created=str(spec.get("created")),
            questions=tuple(map(label, (spec.get("dataset") or {}).get("sample_ids") or ())),
            n_epochs=int(config.get("epochs") or 1),
            settings={name: spec.get(name) for name in SETTINGS},
            conditions={
                **{name: config.get(name) for name in LIMITS},
                **_roles(spec.get("model_roles") or {}),
                **{name: spec.get(name) for name in CONDITIONS},
                "dataset": (spec.get("dataset") or {}).get("name"),
                "generate_config": plan.get("config"),
                "steps": [[step.get("solver"), step.get("params")] for step in plan["steps"]]
                if plan.get("steps")
                else None,
            },
            scorers={
                # Scores are named without the package of their scorer.
                str(scorer["name"]).rpartition("/")[2]: scorer.get("options")
                for scorer in spec.get("scorers") or ()
            },
        )


def read_samples(path: Path) -> Iterator[Sample]:
    """Read the samples of a log, with one in memory at a time.

    Parameters
    ----------
    path : pathlib.Path
        Log.

    Yields
    ------
    Sample

    Raises
    ------
    DataError
        If the log is damaged.
    """
    if not _is_archive(path):
        for key, sample in stream_json(path, {"samples"}):
            if key == "samples" and sample is not None:
                yield _reduce(sample, path)
        return
    with open_archive(path) as archive:
        # A sample that was written again has the same name twice; the last one is read.
        for name in dict.fromkeys(archive.namelist()):
            if name.startswith("samples/") and name.endswith(".json"):
                yield _reduce(
                    parse_json(read_member(archive, name), f"{in_folder(path)}, {name}"), path
                )


def _reduce(sample: Any, path: Path) -> Sample:
    with expects(path, "inspect samples with an id, an epoch from 1 and scores with a value"):
        question, epoch = label(sample["id"]), int(sample["epoch"])
        if epoch < 1:
            raise ValueError(f"epoch {epoch}")
        invalid = sample.get("invalidation") is not None
        # The first versions have one scorer, and do not name it here.
        single = {} if sample.get("score") is None else {"score": sample["score"]}
        scores = {} if invalid else sample.get("scores") or single
        values = {name: score["value"] for name, score in scores.items()}
        limit, error = sample.get("limit") or {}, sample.get("error") or {}
        return Sample(
            question,
            epoch,
            values,
            str(limit.get("type", "")),
            str(error.get("message", "")),
            "error" if error else "limit" if limit else "refused" if _refused(sample) else "",
            digest(_without_ids(sample.get("input"))),
        )


def _without_ids(asked: Any) -> Any:
    """Return the input without the ids of messages, which are new in every run."""
    if not isinstance(asked, list):
        return asked
    return [{name: told for name, told in each.items() if name != "id"} for each in asked]


def _roles(roles: dict[str, Any]) -> dict[str, Any]:
    """Return the models of graders and other roles, and their settings."""
    found = {}
    for role, told in roles.items():
        found[role] = told.get("model")
        found[f"{role}_settings"] = {key: told[key] for key in told.keys() - {"model"}}
    return found


def _refused(sample: dict[str, Any]) -> bool:
    choices = (sample.get("output") or {}).get("choices") or [{}]
    return choices[0].get("stop_reason") == REFUSAL


def _is_archive(path: Path) -> bool:
    return path.suffix.lower() == ".eval"
