"""The formats that can be read: one row each."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import ArrayLike

from bayesrank.battle_tables import BASELINE, RESULTS, SIDES
from bayesrank.battles import Battles
from bayesrank.columns import COLUMNS, NAMES, NUMBERS, QUESTIONS, SELECTORS, field_name
from bayesrank.readers.battles import FORMATS, is_json_of_battles, read_battle_files
from bayesrank.readers.deepeval import is_deepeval, read_deepeval
from bayesrank.readers.euroeval import is_euroeval, read_euroeval
from bayesrank.readers.evalplus import (
    is_bigcodebench,
    is_evalplus,
    read_bigcodebench,
    read_evalplus,
)
from bayesrank.readers.every_eval_ever import is_every_eval_ever, read_every_eval_ever
from bayesrank.readers.harbor import is_harbor, read_harbor
from bayesrank.readers.helm import is_instance_stats, read_helm
from bayesrank.readers.inspect_files import is_inspect_log
from bayesrank.readers.inspect_frames import ENDINGS as FRAMES
from bayesrank.readers.inspect_frames import IDS, SCORE, read_inspect_frames
from bayesrank.readers.inspect_logs import read_inspect
from bayesrank.readers.judgments import is_livebench, is_mt_bench, read_livebench, read_mt_bench
from bayesrank.readers.lighteval import is_lighteval, read_lighteval
from bayesrank.readers.livecodebench import is_livecodebench, read_livecodebench
from bayesrank.readers.lm_eval import is_samples_file, read_lm_eval
from bayesrank.readers.log_table import LogTable, Selection
from bayesrank.readers.mcpmark import is_mcpmark, read_mcpmark
from bayesrank.readers.mmlu_pro import is_mmlu_pro, read_mmlu_pro
from bayesrank.readers.npz import is_npz, read_npz, read_npz_table
from bayesrank.readers.openai_evals import is_openai_evals, read_openai_evals
from bayesrank.readers.opencompass import is_opencompass, read_opencompass
from bayesrank.readers.opening import plain_name
from bayesrank.readers.promptfoo import is_promptfoo, read_promptfoo
from bayesrank.readers.py_irt import is_py_irt, read_py_irt
from bayesrank.readers.swebench import is_swebench, read_swebench
from bayesrank.readers.swebench_pro import is_swebench_pro, read_swebench_pro
from bayesrank.readers.table_files import LINES, SUFFIXES, HasColumns, read_long_tables
from bayesrank.readers.tau_bench import (
    is_tau2_results,
    is_tau_results,
    read_tau2_bench,
    read_tau_bench,
)
from bayesrank.readers.terminal_bench import is_terminal_bench, read_terminal_bench
from bayesrank.responses import Responses

type ReadArrays = Callable[
    [Sequence[Path], Selection, ArrayLike | None, ArrayLike | None], Responses
]

type ReadBattles = Callable[[Sequence[Path]], Battles]


@dataclass(frozen=True)
class Reader:
    """One format of logs.

    Attributes
    ----------
    name : str
        Its name in the argument `format`.
    title : str
        A short description.
    recognises : callable
        Whether a file is in this format, from its name and first bytes.
    read : callable, optional
        Converts files and a selection to a :class:`LogTable`; None for battles, which have no
        questions.
    selectors : tuple of str
        The arguments among task, scorer, filter and metric that the format supports.
    choices : tuple of str
        The arguments among split_by, pool, count_as_wrong and the columns that it supports.
    read_arrays : callable, optional
        Converts files, a selection, category weights and a scale directly to responses, for formats
        with arrays.
    read_battles : callable, optional
        Converts files to :class:`~bayesrank.battles.Battles`.
    plain : bool
        Whether the format is general, so that a file may also be a summary beside logs of a tool.
    beside : str
        Pattern of the names of files that tools write beside the logs, and that are not logs.
    endings : tuple of str
        Endings of the names of its files, before that of a compression; other files are not opened.
    """

    name: str
    title: str
    recognises: Callable[[Path], bool]
    read: Callable[[Sequence[Path], Selection], LogTable] | None
    selectors: tuple[str, ...] = ()
    choices: tuple[str, ...] = ("split_by", "pool", "count_as_wrong")
    read_arrays: ReadArrays | None = None
    read_battles: ReadBattles | None = None
    plain: bool = False
    beside: str = r"(?!)"
    endings: tuple[str, ...] = (".json",)

    def has_beside(self, path: Path, folders: Collection[Path]) -> bool:
        """Return whether a tool writes a file of this name into the folders of its logs."""
        return path.parent in folders and bool(re.fullmatch(self.beside, plain_name(path)))


def _named(role: str) -> list[tuple[str]]:
    """Return the alternative names of a column of tables."""
    others = (*NUMBERS, *QUESTIONS) if role == "question" else ()
    return [(name,) for name in (*NAMES[role], *others)]


_ROWS = (
    Reader(
        "npz",
        "NumPy archive with an array R, or one for each task",
        is_npz,
        read_npz_table,
        ("task",),
        choices=(),
        read_arrays=read_npz,
        plain=True,
        endings=(".npz",),
    ),
    Reader(
        "inspect",
        "inspect_ai logs, .eval and .json",
        is_inspect_log,
        read_inspect,
        ("task", "scorer", "metric"),
        endings=(".eval", ".json"),
    ),
    Reader(
        "lm_eval",
        "lm-evaluation-harness samples, one folder per model",
        is_samples_file,
        read_lm_eval,
        ("task", "filter", "metric"),
        beside=r"results_.*\.json",
        endings=(".json", *LINES),
    ),
    Reader(
        "swebench",
        "SWE-bench reports of runs, instances and submissions, .json",
        is_swebench,
        read_swebench,
        # Files that are not reports; damaged reports must not match.
        beside=r".*\.(?:log|txt|sh|diff|md|yaml)|(?:all_)?preds\.jsonl?",
    ),
    Reader(
        "helm",
        "HELM runs, <run>/per_instance_stats.json",
        is_instance_stats,
        read_helm,
        ("task", "filter", "metric"),
        beside=r"(?:display_\w+|instances|run_spec|scenario|scenario_state|stats)\.json",
    ),
    Reader(
        "evalplus",
        "EvalPlus results, <model>_eval_results.json",
        is_evalplus,
        read_evalplus,
        ("metric",),
    ),
    Reader(
        "bigcodebench",
        "BigCodeBench results, <model>_eval_results.json",
        is_bigcodebench,
        read_bigcodebench,
        beside=r".*_pass_at_k\.json",
    ),
    Reader(
        "swebench_pro",
        "SWE-bench Pro results, eval_results.json",
        is_swebench_pro,
        read_swebench_pro,
        beside=r".*\.json",
    ),
    Reader(
        "terminal_bench",
        "Terminal-Bench results, results.json of runs and trials",
        is_terminal_bench,
        read_terminal_bench,
        ("task",),
        beside=r".*",
    ),
    Reader(
        "harbor",
        "Harbor results, result.json of jobs and trials",
        is_harbor,
        read_harbor,
        ("task", "metric"),
        beside=r".*",
    ),
    Reader(
        "livecodebench",
        "LiveCodeBench results, ..._eval_all.json",
        is_livecodebench,
        read_livecodebench,
        ("task",),
        beside=r".*(?<!_eval_all)\.json",
    ),
    Reader(
        "lighteval",
        "lighteval details, details_<task>_<time>.parquet",
        is_lighteval,
        read_lighteval,
        ("task", "metric"),
        endings=(".parquet",),
    ),
    Reader(
        "mcpmark",
        "MCPMark results, meta.json of tasks",
        is_mcpmark,
        read_mcpmark,
        beside=r".*\.(?:json|log|txt)",
    ),
    Reader(
        "mmlu_pro",
        "MMLU-Pro outputs",
        is_mmlu_pro,
        read_mmlu_pro,
        beside=r".*_summary\.(?:json|txt)",
    ),
    Reader(
        "promptfoo",
        "promptfoo results, .json, .jsonl and .csv",
        is_promptfoo,
        read_promptfoo,
        ("metric",),
        endings=(".json", ".csv", *LINES),
    ),
    Reader("deepeval", "test runs of DeepEval, .json", is_deepeval, read_deepeval, ("metric",)),
    Reader(
        "openai_evals",
        "logs of OpenAI evals, .jsonl",
        is_openai_evals,
        read_openai_evals,
        ("task", "metric"),
        endings=LINES,
    ),
    Reader(
        "euroeval",
        "EuroEval results, euroeval_benchmark_results.jsonl",
        is_euroeval,
        read_euroeval,
        ("task", "metric"),
        endings=LINES,
    ),
    Reader(
        "livebench",
        "LiveBench judgments, ground_truth_judgment.jsonl",
        is_livebench,
        read_livebench,
        ("task",),
        endings=LINES,
    ),
    Reader(
        "mt_bench",
        "MT-bench ratings of single answers, <judge>_single.jsonl",
        is_mt_bench,
        read_mt_bench,
        endings=LINES,
    ),
    Reader(
        "opencompass",
        "OpenCompass results with details, <model>/<dataset>.json",
        is_opencompass,
        read_opencompass,
        ("task",),
    ),
    Reader("tau_bench", "tau-bench results", is_tau_results, read_tau_bench),
    Reader("tau2_bench", "tau2-bench results", is_tau2_results, read_tau2_bench, ("task",)),
    Reader(
        "every_eval_ever",
        "Every Eval Ever samples, <uuid>_samples.jsonl",
        is_every_eval_ever,
        read_every_eval_ever,
        ("task", "scorer", "metric"),
        beside=r".*\.json",
        endings=LINES,
    ),
    Reader(
        "py_irt",
        "responses of subjects in the format of py-irt, .jsonl",
        is_py_irt,
        read_py_irt,
        endings=LINES,
    ),
    Reader(
        "inspect_frames",
        "tables of samples_df of inspect_ai",
        HasColumns((((IDS,), ((f"{SCORE}*",),)),), endings=FRAMES),
        read_inspect_frames,
        ("task", "scorer"),
        endings=FRAMES,
    ),
    Reader(
        "battles",
        "battles of arenas and judges, .csv, .parquet, .jsonl and .json",
        HasColumns(((SIDES, RESULTS), ((BASELINE,),)), field_name, FORMATS, is_json_of_battles),
        None,
        choices=(),
        read_battles=read_battle_files,
        plain=True,
        endings=FORMATS,
    ),
    # Last, because samples and battles are .csv and .jsonl files, too.
    Reader(
        "table",
        "tables, .csv, .tsv, .json, .jsonl, .parquet and .feather",
        HasColumns((tuple(map(_named, ("system", "question", "outcome"))),), field_name),
        read_long_tables,
        SELECTORS,
        choices=("split_by", "pool", "count_as_wrong", *COLUMNS, "wide"),
        plain=True,
        endings=SUFFIXES,
    ),
)

READERS: dict[str, Reader] = {row.name: row for row in _ROWS}
