"""The bundled attempts: answers of the bundled outcomes, signals within their ranges."""

import numpy as np
import pandas as pd
import pytest

from bayesrank.datasets import load_attempts, load_olympiad
from bayesrank.rubrics import SIGNALS, rubric_responses
from bayesrank.rubrics.library import CORRECTNESS

LABELS = ["system", "question", "trial", "group", "greedy"]


@pytest.fixture(scope="module")
def attempts() -> pd.DataFrame:
    return load_attempts()


def test_answers_are_those_of_the_outcomes(attempts: pd.DataFrame):
    data, all_systems = rubric_responses(attempts, CORRECTNESS), load_olympiad()
    kept = [all_systems.systems.index(system) for system in data.systems]
    assert len(kept) == 11
    np.testing.assert_array_equal(data.outcomes, all_systems.outcomes[kept])
    assert all_systems.prior_outcomes is not None
    np.testing.assert_array_equal(data.prior_outcomes, all_systems.prior_outcomes[kept])
    assert data.questions == all_systems.questions
    assert data.groups == all_systems.groups


def test_every_attempt_has_the_nine_signals(attempts: pd.DataFrame):
    signals = attempts.columns.drop(LABELS)
    assert len(signals) == 9
    assert set(signals) <= set(SIGNALS)
    assert np.isfinite(attempts[signals].to_numpy()).all()
    for name in ("has_box", "is_correct", "repeated_pattern", "greedy"):
        assert set(attempts[name]) == {0, 1}
    labels = attempts[["compass_A", "compass_B", "compass_C"]]
    np.testing.assert_allclose(labels.sum(axis=1), 1.0)
    assert (labels >= 0).all(axis=None)
    assert attempts["token_ratio"].between(0, 1, inclusive="right").all()
    assert (attempts[["prompt_bpt", "completion_bpt"]] > 0).all(axis=None)


def test_signals_fit_each_other(attempts: pd.DataFrame):
    cut = attempts["repeated_pattern"] == 1
    np.testing.assert_array_equal(cut, attempts["token_ratio"] == 1)
    assert not attempts.loc[cut, ["has_box", "is_correct"]].any(axis=None)
    # A prompt is the same in all attempts at it.
    assert (attempts.groupby(["system", "question"])["prompt_bpt"].nunique() == 1).all()
    right = attempts["is_correct"] == 1
    accepted = attempts["compass_A"] > 0.5
    assert 0.7 < (accepted == right).mean() < 0.95
    bits = attempts.groupby("is_correct")["completion_bpt"].mean()
    assert bits[1] < bits[0]


def test_a_benchmark_is_a_part_of_all(attempts: pd.DataFrame):
    part = load_attempts("HMMT'25")
    whole = attempts[attempts["group"] == "HMMT'25"].reset_index(drop=True)
    pd.testing.assert_frame_equal(part, whole)
    with pytest.raises(ValueError, match=r"benchmark must be one of AIME'24.*got 'AIME'"):
        load_attempts("AIME")


def test_a_table_is_the_callers_own():
    changed = load_attempts("AIME'24")
    changed["is_correct"] = 1
    assert set(load_attempts("AIME'24")["is_correct"]) == {0, 1}
