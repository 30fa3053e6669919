"""Reader of ``.npz`` archives that hold the arrays of outcomes themselves."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from bayesrank.errors import DamagedFileError, DataError
from bayesrank.outcomes import outcome_array
from bayesrank.readers.log_table import LogTable, Selection, choose, describe
from bayesrank.readers.opening import open_archive, read_member
from bayesrank.responses import Responses
from bayesrank.validation import MISSING, label_systems, unique_labels

# Arrays of an archive besides the outcomes of its tasks.
LABELS = frozenset({"models", "systems", "questions", "weights", "R0"})


def is_npz(path: Path) -> bool:
    """Return whether a file is named as a NumPy archive."""
    return path.suffix.lower() == ".npz"


def read_npz(
    paths: Sequence[Path],
    selection: Selection,
    weights: ArrayLike | None = None,
    scale: ArrayLike | None = None,
) -> Responses:
    """Read an archive with an array of outcomes and its labels.

    Arrays that are read: ``R`` of shape (system, question, trial); ``models`` or ``systems``,
    ``questions``, ``weights`` (category weights), ``R0`` (prior outcomes), all optional. Others
    are ignored. Without ``R``, every other array of that many dimensions is a task of its own,
    as in the archives of Scorio, and ``task`` names one; questions and prior outcomes are then
    read if their number is that of the task. Trial t is taken to be the same run for all systems.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        One archive.
    selection : Selection
        May name a task.
    weights : array_like of shape (category,), optional
        Category weights that replace the stored ones.
    scale : (float, float), optional
        Lowest and highest score; category weights and prior outcomes are then not read.

    Returns
    -------
    Responses

    Raises
    ------
    DataError
        If there are several archives, one that is damaged or lacks outcomes, or if the task is
        left open.
    """
    outcomes, arrays = _read_arrays(paths, selection)
    if scale is not None:
        arrays = {name: array for name, array in arrays.items() if name not in ("weights", "R0")}
    return Responses(
        outcomes,
        systems=_labels(arrays, "models", "systems"),
        questions=_labels(arrays, "questions"),
        weights=arrays.get("weights") if weights is None else weights,
        scale=scale,
        prior_outcomes=arrays.get("R0"),
    )


def read_npz_table(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read an archive as a long table, without prior outcomes and weights.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        One archive.
    selection : Selection
        May name a task.

    Returns
    -------
    LogTable
    """
    # pandas is only needed here: an archive becomes Responses without it.
    import pandas as pd

    outcomes, arrays = _read_arrays(paths, selection)
    values = outcome_array(outcomes)
    n_systems, n_questions, n_trials = values.shape
    systems = label_systems(_labels(arrays, "models", "systems"), n_systems)
    questions = unique_labels(_labels(arrays, "questions"), n_questions, "questions", "question")
    index = pd.MultiIndex.from_product(
        [systems, questions, range(n_trials)], names=["system", "question", "trial"]
    )
    outcome = np.where(values == MISSING, np.nan, values).ravel()
    frame = pd.DataFrame({"outcome": outcome}, index=index).reset_index()
    n_missing, asked = int(np.isnan(outcome).sum()), np.full(n_questions, n_trials)
    return LogTable(frame, "npz", n_missing, True, describe(n_systems, asked, n_missing))


def _read_arrays(
    paths: Sequence[Path], selection: Selection
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:
    """Return the outcomes of one task, and what goes with them."""
    if len(paths) != 1:
        raise DataError(
            f"paths must be one file in format npz; got {len(paths)}: join the arrays first"
        )
    outcomes, arrays, is_task = _load(paths[0], selection.task)
    if is_task:
        # Labels of the questions of one task do not apply to another task.
        arrays = {name: array for name, array in arrays.items() if _fits(name, array, outcomes)}
    return outcomes, arrays


def _load(path: Path, task: str | None) -> tuple[NDArray[Any], dict[str, NDArray[Any]], bool]:
    """Return the outcomes, the labels, and whether the outcomes are one task of several."""
    with open_archive(path) as archive:
        arrays = {
            name.removesuffix(".npy"): _read_array(read_member(archive, name), path)
            for name in archive.namelist()
        }
    labels = {name: array for name, array in arrays.items() if name in LABELS}
    if "R" in arrays:
        if task is not None:
            raise DataError(
                f"task must be left out for archives with an array R; got {task!r} for {path.name}"
            )
        return arrays["R"], labels, False
    tasks = [name for name in arrays if name not in LABELS and arrays[name].ndim in (2, 3)]
    if not tasks:
        raise DataError(
            f"paths must hold an array R; got {', '.join(arrays) or 'no array'} in {path.name}"
        )
    return arrays[choose("task", tasks, task, f" for {path.name}")], labels, True


def _read_array(member: bytes, path: Path) -> NDArray[Any]:
    """Return an array, whose header must announce as much as there is."""
    file = io.BytesIO(member)
    try:
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(file)
        announced, held = math.prod(shape) * dtype.itemsize, len(member) - file.tell()
        if dtype.hasobject or announced != held:
            raise ValueError(
                "pickled objects"
                if dtype.hasobject
                else f"{announced} bytes announced and {held} there"
            )
        file.seek(0)
        return npy.read_array(file, allow_pickle=False)
    except (ValueError, TypeError, SyntaxError, EOFError) as error:
        raise DamagedFileError(
            "paths must be readable .npz archives without pickled objects; got "
            f"{' '.join(str(error).split())} in {path.name}: save it again with numpy.savez"
        ) from error


def _fits(name: str, array: NDArray[Any], outcomes: NDArray[Any]) -> bool:
    if name == "questions":
        return len(array) == outcomes.shape[1]
    n_systems, n_questions = outcomes.shape[:2]
    return (
        name != "R0"
        or array.shape == (n_systems, n_questions)
        or array.shape[:-1] in ((n_questions,), (1, n_questions), (n_systems, n_questions))
    )


def _labels(arrays: dict[str, Any], *names: str) -> list[str] | None:
    for name in names:
        if name in arrays:
            return arrays[name].tolist()
    return None
