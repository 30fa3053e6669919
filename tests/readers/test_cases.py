"""Cases after public bug reports: the command of each, and the right value or one clear error."""

import json

import pytest

CASES = {
    "case01/sb-cli-reports": {
        "gpt-4.1": 6 / 8,
        "claude-3.7": 5 / 8,
        "gpt-4.1-mini": 2 / 8,
        "claude-3.5": 1 / 8,
    },
    "case03/revisions": {
        "EleutherAI__pythia-160m (revision=step1000)": 1 / 8,
        "EleutherAI__pythia-160m (revision=step143000)": 7 / 8,
        "other__m": 4 / 8,
    },
    "case03/fewshot": {"org__m (n-shot=0)": 1 / 8, "org__m (n-shot=5)": 7 / 8},
    "case05/grader": {"openai/o3 (grader=g1)": 3 / 8, "openai/o3 (grader=g2)": 7 / 8},
    "case05/message_limit": {
        "m/a (message_limit=10)": 0.0,
        "m/a (message_limit=100)": 1.0,
        "m/b": 5 / 8,
    },
    "case06/effort": {
        "openai/o3 (reasoning_effort=low)": 3 / 8,
        "openai/o3 (reasoning_effort=high)": 7 / 8,
    },
    "case06/hf_local": {"hf/local (model_path=/ck/1B)": 1.0, "hf/local (model_path=/ck/8B)": 5 / 8},
    "case11/i2": {"m/a": 2 / 8, "m/b": 2 / 6},
    "case11/m1": {"m/answers-all": 0.0, "m/crashes": 0.0},
    "case12/i1": {"openai/m1": 0.5, "openai/m2": 0.5},
    "case21/runs --metric exact_match": {"openai/gpt-4o": 7 / 8, "meta/llama-3": 3 / 8},
    "case24/s4": {"20250101_agentA": 6 / 7, "20250202_agentB": 2 / 7},
    "case24/s6": {"agentA": 6 / 8, "agentB": 2 / 8},
    "case15/mtb.jsonl": {"m1": 9.5, "m2": 6.5},
    "case24/Scenario.codegeneration_8_0.6_eval_all.json": {"case24": 0.5},
    "case24/details_gsm8k|0_2026-01-01.parquet": {"case24": 0.5},
    "case24/euroeval_benchmark_results.jsonl": {"a": 0.545, "b": 0.645},
    "case24/harbor": {"terminus-2__m": 2 / 4},
    "case24/m_eval_results.json": {"m": 0.5},
    "case24/openai_evals.jsonl": {"gpt-4": 0.5},
    "case24/opencompass_result.json": {"case24": 0.5},
    "case24/promptfoo.json": {"openai:gpt-4o": 8 / 12},
    "case25/ground_truth_judgment.jsonl": {"m1": 0.3, "m2": 0.8},
    "case26/l3 --task mmlu_*": {"org__a": 18 / 24, "org__b": 9 / 24},
}


def observed(run, shared, command):
    """Return the observed mean of every system that a command ranks."""
    path, *flags = command.split()
    result = run("rank", shared / "cases" / path, *flags, "--draws", "0", "--format", "json")
    return {row["system"]: row["observed_mean"] for row in json.loads(result.stdout)}


@pytest.mark.parametrize("command", CASES)
def test_right_value(run, shared, command):
    assert observed(run, shared, command) == pytest.approx(CASES[command], abs=1e-6)


@pytest.mark.parametrize("case", ["case11/m1", "case11/i2"])
def test_nothing_speaks_for_a_system_because_of_its_errors(run, shared, case):
    result = run("rank", shared / "cases" / case, "--seed", "1", "--format", "json")
    assert all(0.2 < row["prob_best"] < 0.8 for row in json.loads(result.stdout))
    counted = observed(run, shared, f"{case} --count-as-wrong error")
    assert len(set(counted.values())) == 1


def test_counts_without_instances_are_refused(run, shared):
    result = run("rank", shared / "cases" / "case24" / "s3", code=2)
    assert "got none in s3/x.run1.json" in result.stderr
    assert result.stderr.count("\n") == 1


def test_flags_pool_and_split(run, shared):
    effort = shared / "cases" / "case06" / "effort"
    split = run("rank", effort, "--draws", "0")
    assert "--pool model_generate_config.reasoning_effort makes them trials of one" in split.stderr
    pooled = observed(run, shared, "case06/effort --pool reasoning_effort")
    assert pooled == {"openai/o3": pytest.approx(5 / 8)}
    wrong = run("rank", effort, "--split-by", "nothing", code=2)
    assert "--split-by must name fields of the logs (" in wrong.stderr
