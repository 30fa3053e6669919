"""Reader of MMLU-Pro outputs: a file for each subject, or ``model_outputs_<model>.json``."""

import re
from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path

from bayesrank.readers.assembly import table_of_logs
from bayesrank.readers.json_files import stream_json
from bayesrank.readers.log import Attempt, Log, digest, label
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.opening import expects, plain_name, starts_like

OUTPUTS_START = re.compile(
    rb'\[\s*\{\s*"question_id"\s*:(?=(?s:.*?)"answer_index"\s*:)'
    rb'(?=(?s:.*?)"pred"\s*:)'
)
OF_SUBJECT = re.compile(r".+_result")
SCORING = "CoT"
OF_MODEL = re.compile(r"(?:model_outputs_)?(?P<model>.+)")

# Its summary guesses if it finds no answer, which is right only by chance.
WRONG = ("unscored",)


def is_mmlu_pro(path: Path) -> bool:
    """Return whether a file starts like outputs of MMLU-Pro."""
    return starts_like(path, OUTPUTS_START)


def read_mmlu_pro(paths: Sequence[Path], selection: Selection) -> LogTable:
    """Read outputs of MMLU-Pro; the categories are groups of questions.

    The system is the folder of files for each subject, ``<subject>_result.json`` or
    ``<subject>.json``, or else the name of the file without ``model_outputs_``. An answer is right
    if its letter is that of the question. Where none could be extracted, the summary of MMLU-Pro
    guesses with a fixed seed; here it is wrong, unless other statuses are to count as wrong.

    Parameters
    ----------
    paths : sequence of pathlib.Path
        Outputs; several files of a system and subject add trials.
    selection : Selection
        Says what counts as wrong.

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
        named = OF_MODEL.fullmatch(stem)
        system, place = named["model"] if named else stem, path.parent
        attempts = list(_attempts(path))
        if OF_SUBJECT.fullmatch(stem) or stem in {each.group for each in attempts}:
            # A local run writes <model>/CoT/<subjects>/<subject>.json.
            folder = path.parents[2] if path.parents[1].name == SCORING else path.parent
            system, place = folder.name, folder.parent
        logs.append(Log(path, system, attempts, place=place))
    return table_of_logs(logs, "mmlu_pro", selection, wrong=WRONG)


def _attempts(path: Path) -> Iterator[Attempt]:
    for _, output in stream_json(path):
        with expects(path, "outputs of MMLU-Pro with a question_id, an answer and a pred"):
            predicted, group = output["pred"], str(output.get("category") or "")
            outcome = float(predicted == output["answer"]) if predicted else nan
            status = "" if predicted else "unscored"
            question, content = label(output["question_id"]), digest(output.get("question"))
            yield Attempt(question, outcome, status=status, group=group, content=content)
