"""Files that the tools wrote themselves; samples/README.md says how."""

from pathlib import Path

import numpy as np
import pytest

from bayesrank.errors import DataError
from bayesrank.readers import read_responses, read_table

SAMPLES = Path(__file__).parent / "samples"


def test_helm_per_instance_stats():
    data = read_responses(SAMPLES / "helm", metric="exact_match", filter="test")
    assert data.systems == ("org/large", "org/small")
    assert data.questions == ("id1", "id2")
    assert data.paired
    assert data.outcomes.tolist() == [[[1, 1], [1, 0]], [[1, 0], [0, 0]]]
    assert read_table(SAMPLES / "helm", metric="exact_match", filter="test").source == "helm"


def test_helm_perturbations():
    data = read_responses(SAMPLES / "helm", metric="exact_match", filter="test+misspellings")
    assert data.outcomes.tolist() == [[[0]], [[0]]]
    with pytest.raises(DataError, match="metric must name one of exact_match, num_bytes"):
        read_responses(SAMPLES / "helm")


def test_every_eval_ever_samples():
    table = read_table(SAMPLES / "every_eval_ever")
    assert (table.source, table.n_missing) == ("every_eval_ever", 0)
    data = read_responses(SAMPLES / "every_eval_ever")
    assert data.systems == ("org/large", "org/small")
    np.testing.assert_array_equal(data.outcomes[..., 0], [[1, 1, 0], [1, 0, 0]])


def test_py_irt_lines():
    data = read_responses(SAMPLES / "py_irt")
    assert (data.systems, data.questions) == (("ann", "bo"), ("q1", "q2", "q3"))
    assert data.outcomes[..., 0].tolist() == [[1, 0, 1], [0, -1, 1]]


def test_harbor_jobs_and_trials():
    trials = read_responses(SAMPLES / "harbor")
    assert trials.systems == ("terminus-2__large",)
    outcomes = dict(zip(trials.questions, trials.outcomes[0].tolist(), strict=True))
    assert outcomes == {"t1": [1, 0], "t2": [0, -1], "t3": [0, -1]}
    # Its job says the same.
    job = read_responses(SAMPLES / "harbor" / "job" / "result.json")
    assert dict(zip(job.questions, job.outcomes[0].tolist(), strict=True)) == outcomes
    table = read_table(SAMPLES / "harbor")
    status = dict(zip(table.frame["question"], table.frame["status"], strict=True))
    assert (status["t2"], status["t3"]) == ("limit", "error")


def test_terminal_bench_results():
    table = read_table(SAMPLES / "terminal_bench")
    assert table.source == "terminal_bench"
    assert table.frame["system"].unique().tolist() == ["terminus__org/large"]
    assert table.frame["outcome"].tolist() == [1, 0, 0, 0]
    assert table.frame["status"].tolist() == ["", "limit", "error", ""]


def test_samples_df_of_inspect():
    data = read_responses(SAMPLES / "inspect_frames")
    assert data.systems == ("mockllm/large", "mockllm/small")
    assert data.questions == ("1", "2")
    assert data.outcomes.tolist() == [[[1, 0], [0, 0]], [[1, 0], [0, 0]]]
