"""Small files written by hand in the layout of each harness, of invented answers.

Each example is a name of a format, its files, what has to be chosen, and what must be read: for
every system the outcomes of the questions in the order of the file, None where one is missing.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

type Content = dict[str, Any] | list[Any]


@dataclass(frozen=True)
class Example:
    """One log, and what must be read from it."""

    format: str
    files: dict[str, Content]
    right: dict[str, list[float | None]]
    message: str = ""
    groups: list[str] | None = None
    chosen: dict[str, str] = field(default_factory=dict)
    lines: bool = False

    def write(self, folder: Path) -> None:
        """Write the files; those of JSON lines one element a line, Parquet one element a row."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".parquet":
                pd.DataFrame.from_records(content).to_parquet(path)
            elif path.suffix == ".jsonl":
                path.write_text("\n".join(map(json.dumps, content)))
            else:
                path.write_text(json.dumps(content))


def _harbor(task: str, trial: str, reward: float | None, **more: Any) -> Content:
    rewards = None if reward is None else {"rewards": {"reward": reward}}
    agent = {"name": "terminus-2", "version": "2.0", "model_info": {"name": "m", "provider": "p"}}
    return {
        "id": f"id-{trial}",
        "task_name": task,
        "trial_name": trial,
        "source": "tb2",
        "agent_info": agent,
        "verifier_result": rewards,
        "exception_info": None,
        **more,
    }


def _tb(task: str, resolved: bool | None, mode: str = "unset") -> Content:
    return {
        "id": f"{task}-{mode}",
        "trial_name": f"{task}.1-of-1",
        "task_id": task,
        "instruction": "do it",
        "is_resolved": resolved,
        "failure_mode": mode,
    }


def _lcb(question: str, grades: list[bool]) -> Content:
    code = ["x"] * len(grades)
    return {
        "question_title": "t",
        "question_id": question,
        "output_list": code,
        "code_list": code,
        "graded_list": grades,
        "pass@1": sum(grades) / len(grades),
    }


def _promptfoo(provider: str, test: int, success: bool, **more: Any) -> Content:
    return {
        "promptIdx": 0,
        "testIdx": test,
        "provider": {"id": provider},
        "prompt": {"raw": "{{q}}", "label": "p"},
        "success": success,
        "score": float(success),
        "failureReason": 0 if success else 1,
        "gradingResult": {"pass": success},
        **more,
    }


def _deepeval(name: str, *passed: bool | None) -> Content:
    metrics = [
        {"name": f"m{number}", "threshold": 0.5, "success": bool(each), "score": float(each)}
        if each is not None
        else {"name": f"m{number}", "threshold": 0.5, "success": False, "error": "timeout"}
        for number, each in enumerate(passed)
    ]
    told = {"input": f"ask {name}", "success": all(passed), "metricsData": metrics}
    return {"name": name, **told}


def _event(number: int, kind: str, data: Content) -> Content:
    return {
        "run_id": "r",
        "event_id": number,
        "sample_id": f"e.{number}",
        "type": kind,
        "data": data,
    }


def _mmlu_pro(question: int, category: str, answer: str, pred: str | None) -> Content:
    return {
        "question_id": question,
        "question": "?",
        "options": ["a", "b"],
        "answer": answer,
        "answer_index": 0,
        "cot_content": "",
        "category": category,
        "src": "s",
        "pred": pred,
        "model_outputs": "x",
    }


def _euroeval(dataset: str, model: str, scores: list[float], **more: Any) -> Content:
    raw = [{"test_mcc": score, "test_macro_f1": 0.9} for score in scores]
    results = {"raw": raw, "total": {"test_mcc": 50.0}}
    languages = ["da"]
    return {
        "dataset": dataset,
        "task": "sentiment-classification",
        "languages": languages,
        "model": model,
        "results": results,
        **more,
    }


def _livebench(model: str, question: str, category: str, score: float) -> Content:
    return {
        "question_id": question,
        "task": f"{category}_task",
        "model": model,
        "score": score,
        "turn": 1,
        "tstamp": 1.5,
        "category": category,
    }


def _rating(model: str, question: int, turn: int, score: float) -> Content:
    return {
        "question_id": question,
        "model": model,
        "judge": ["gpt-4", "single-v1"],
        "user_prompt": "?",
        "judgment": "[[9]]",
        "score": score,
        "turn": turn,
        "tstamp": 1.5,
    }


def _mcpmark(task: str, service: str, success: bool, error: str | None = None) -> Content:
    return {
        "task_name": task,
        "model_name": "m",
        "litellm_run_model_name": "org/m",
        "reasoning_effort": "default",
        "mcp": service,
        "timeout": 3600,
        "execution_result": {"success": success, "error_message": error},
        "token_usage": {},
    }


def _sample(model: str, question: int, epoch: int, score: str | None, **more: Any) -> Content:
    return {
        "sample_id": f"{model}-{question}-{epoch}",
        "eval_id": f"eval-{model}",
        "log": "logs/x.eval",
        "id": question,
        "epoch": epoch,
        "model": model,
        "task_name": "sums",
        "error": None,
        "limit": None,
        "score_match": score,
        **more,
    }


EXAMPLES = [
    Example(
        "inspect_frames",
        {
            "samples.parquet": [
                _sample("openai/a", 1, 1, "C"),
                _sample("openai/a", 1, 2, "I", error="tool crashed"),
                _sample("openai/a", 2, 1, "I", limit="token"),
                _sample("openai/a", 2, 2, None, error="503"),
                _sample("openai/b", 1, 1, "C"),
                _sample("openai/b", 1, 2, "C"),
                _sample("openai/b", 2, 1, "I"),
                _sample("openai/b", 2, 2, "P"),
            ]
        },
        {"openai/a": [0.5, 0], "openai/b": [1, 0.25]},
        "1 of 8 outcomes missing (1 error); failed attempts are left out "
        "(count_as_wrong='error' counts them)",
    ),
    Example(
        "bigcodebench",
        {
            "m--bigcodebench-instruct_eval_results.json": {
                "date": "2026-01-01 00:00",
                "eval": {
                    "BigCodeBench/0": [{"task_id": "BigCodeBench/0", "status": "pass"}],
                    "BigCodeBench/1": [{"task_id": "BigCodeBench/1", "status": "timeout"}],
                },
            }
        },
        {"m--bigcodebench-instruct": [1, 0]},
    ),
    Example(
        "swebench_pro",
        {
            "a/eval_results.json": {"instance_x__y-1": True, "instance_x__y-2": False},
            "b/eval_results.json": {"instance_x__y-1": False},
        },
        {"a": [1, 0], "b": [0, None]},
        "1 of 4 outcomes missing (1 absent)",
    ),
    Example(
        "terminal_bench",
        {
            "run1/results.json": {
                "id": "x",
                "results": [
                    _tb("t1", True),
                    _tb("t2", False, "agent_timeout"),
                    _tb("t3", None, "unknown_agent_error"),
                ],
                "accuracy": 1 / 3,
            },
            "run1/run_metadata.json": {
                "run_id": "run1",
                "agent_name": "terminus",
                "model_name": "m",
                "dataset_name": "core",
            },
            "run1/t1/t1.1-of-1/results.json": _tb("t1", True),
        },
        {"terminus__m": [1, 0, 0]},
        "0 of 3 outcomes missing; 1 error counted as wrong",
    ),
    Example(
        "harbor",
        {
            "job/result.json": {
                "id": "j",
                "n_total_trials": 3,
                "stats": {"n_trials": 3, "evals": {"terminus-2__m__tb2": {"n_trials": 3}}},
            },
            "job/t1__a/result.json": _harbor("t1", "t1__a", 1.0),
            "job/t2__b/result.json": _harbor(
                "t2", "t2__b", 0.0, exception_info={"exception_type": "AgentTimeoutError"}
            ),
            "job/t3__c/result.json": _harbor(
                "t3", "t3__c", None, exception_info={"exception_type": "RuntimeError"}
            ),
        },
        {"terminus-2__m": [1, 0, 0]},
        "0 of 3 outcomes missing; 1 error counted as wrong",
    ),
    Example(
        "livecodebench",
        {
            f"{model}/Scenario.codegeneration_2_0.2_eval_all.json": [
                _lcb("3000", [True, right]),
                _lcb("3001", [False, right]),
            ]
            for model, right in (("GPT-4.1", True), ("GPT-4.1-mini", False))
        },
        {"GPT-4.1": [1, 0.5], "GPT-4.1-mini": [0.5, 0]},
    ),
    Example(
        "lighteval",
        {
            f"details/org/{model}/2026-01-01T00/details_gsm8k|0_2026-01-01T00.parquet": [
                {
                    "doc": {"query": "?", "id": str(place)},
                    "model_response": {"text": ["x"]},
                    "metric": {"extractive_match": value, "f1": 0.5},
                }
                for place, value in enumerate(values)
            ]
            for model, values in (("m", [1.0, 0.0]), ("n", [0.0, 0.0]))
        },
        {"org/m": [1, 0], "org/n": [0, 0]},
        chosen={"metric": "extractive_match"},
    ),
    Example(
        "mcpmark",
        {
            "exp/m__notion/run-1/a__one/meta.json": _mcpmark("a__one", "notion", True),
            "exp/m__github/run-1/b__two/meta.json": _mcpmark(
                "b__two", "github", False, "timed out"
            ),
            "exp/m__notion/run-2/a__one/meta.json": _mcpmark("a__one", "notion", False),
            "exp/m__github/run-2/b__two/meta.json": _mcpmark("b__two", "github", False),
        },
        {"m": [0, 0.5]},
        groups=["github", "notion"],
    ),
    Example(
        "mmlu_pro",
        {
            "model_outputs_gpt-4.1_5shots.json": [
                _mmlu_pro(70, "law", "A", "A"),
                _mmlu_pro(71, "math", "B", None),
            ],
            "m/law_result.json": [_mmlu_pro(70, "law", "A", "B")],
            "m/math_result.json": [_mmlu_pro(71, "math", "B", "B")],
        },
        {"gpt-4.1_5shots": [1, 0], "m": [0, 1]},
        "0 of 4 outcomes missing; 1 unscored counted as wrong",
        groups=["law", "math"],
    ),
    Example(
        "promptfoo",
        {
            "results.json": {
                "evalId": "e",
                "results": {
                    "version": 3,
                    "results": [
                        _promptfoo("openai:a", 0, True),
                        _promptfoo("openai:a", 1, False, error="expected 4"),
                        _promptfoo("openai:b", 0, False, error="HTTP 503", failureReason=2),
                        _promptfoo("openai:b", 1, True),
                    ],
                },
                "config": {},
            }
        },
        {"openai:a": [1, 0], "openai:b": [0, 1]},
        "0 of 4 outcomes missing; 1 error counted as wrong",
    ),
    Example(
        "deepeval",
        {
            "a.json": {
                "testCases": [_deepeval("t0", True, True), _deepeval("t1", True, False)],
                "hyperparameters": {"model": "gpt-4o"},
            },
            "b.json": {"testCases": [_deepeval("t0", True, None), _deepeval("t1", True, True)]},
        },
        {"gpt-4o": [1, 0], "b": [0, 1]},
        "0 of 4 outcomes missing; 1 error counted as wrong",
    ),
    Example(
        "openai_evals",
        {
            "log.jsonl": [
                {"spec": {"completion_fns": ["gpt-4"], "eval_name": "e.v0", "run_id": "r"}},
                _event(0, "match", {"correct": True, "expected": "a", "picked": "a"}),
                _event(1, "sampling", {"prompt": "?", "sampled": "b"}),
                _event(1, "match", {"correct": False, "expected": "a", "picked": "b"}),
                _event(2, "error", {"type": "APIError", "message": "503"}),
                {"final_report": {"accuracy": 0.5}},
            ],
            "other.jsonl": [
                {"spec": {"completion_fns": ["gpt-5"], "eval_name": "e.v0", "run_id": "s"}},
                _event(0, "match", {"correct": True}),
                _event(1, "match", {"correct": True}),
                _event(2, "match", {"correct": True}),
            ],
        },
        {"gpt-4": [1, 0, None], "gpt-5": [1, 1, 1]},
        "1 of 6 outcomes missing (1 error); failed attempts are left out "
        "(count_as_wrong='error' counts them)",
    ),
    Example(
        "euroeval",
        {
            "euroeval_benchmark_results.jsonl": [
                _euroeval("angry-tweets", "a", [0.5, 0.6], few_shot=True),
                _euroeval("swerec", "a", [0.7, 0.8], few_shot=True),
                _euroeval("angry-tweets", "b", [0.4, 0.4], few_shot=True),
                _euroeval("swerec", "b", [0.2, 0.4], few_shot=True),
            ]
        },
        {"a": [0.55, 0.75], "b": [0.4, 0.3]},
    ),
    Example(
        "livebench",
        {
            "ground_truth_judgment.jsonl": [
                _livebench("a", "q1", "math", 0),
                _livebench("a", "q1", "math", 1),
                _livebench("a", "q2", "language", 0.25),
                _livebench("b", "q1", "math", 0),
                _livebench("b", "q2", "language", 0.5),
            ]
        },
        {"a": [1, 0.25], "b": [0, 0.5]},
        groups=["math", "language"],
    ),
    Example(
        "mt_bench",
        {
            "gpt-4_single.jsonl": [
                _rating("a", 81, 1, 10),
                _rating("a", 81, 2, 5.5),
                _rating("b", 81, 1, 1),
                _rating("b", 81, 2, -1),
            ]
        },
        {"a": [10, 5.5], "b": [1, None]},
        "1 of 4 outcomes missing (1 unscored); scores from 1 to 10",
    ),
    Example(
        "opencompass",
        {
            f"results/{model}/gsm8k.json": {
                "accuracy": 50.0,
                "details": {
                    "type": "GEN",
                    "0": {"pred": ["1"], "answer": "1", "correct": [first]},
                    "1": {"pred": ["2"], "answer": "1", "correct": [False]},
                },
            }
            for model, first in (("m-1.5", True), ("m-1.5-chat", False))
        },
        {"m-1.5": [1, 0], "m-1.5-chat": [0, 0]},
    ),
]
BY_FORMAT = {example.format: example for example in EXAMPLES}
