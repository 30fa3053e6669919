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
