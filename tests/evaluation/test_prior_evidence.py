"""Earlier versions of systems as evidence; what it does to rankings is in tests/studies."""

import pytest

from bayesrank import Responses
from bayesrank.evaluation import evaluate


def test_evidence_enters_the_table_with_its_weight():
    data = Responses([[[1], [0]]], prior_outcomes=[[1, 1], [1, 0]])
    half = evaluate(data, "bayes", prior_weight=0.5)["mean"][0]
    assert half == pytest.approx(((2 + 1) / 4 + (1 + 0.5) / 4) / 2)
