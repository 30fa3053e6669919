"""Majority judgment against taking medians off one by one."""

import tracemalloc

import numpy as np
import pytest

from bayesrank.methods.majority_judgment import TieBreak, majority_judgment


def majority_value(grades: np.ndarray) -> list[float]:
    """List the lower medians that come up when one median after another is taken off."""
    left = sorted(grades[~np.isnan(grades)].tolist())
    return [left.pop((len(left) - 1) // 2) for _ in range(len(left))]


def dense_scores(keys: list) -> list[float]:
    distinct = sorted(set(map(tuple, keys)), reverse=True)
    return [float(len(keys) - distinct.index(tuple(key))) for key in keys]


@pytest.mark.parametrize("seed", range(30))
def test_majority_values_equal_their_definition(seed: int):
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 3, (6, 1 + seed % 9)) / 2
    assert majority_judgment(grades).tolist() == dense_scores([majority_value(g) for g in grades])


def test_lower_median_counts():
    assert majority_judgment(np.array([[1.0, 0.0], [0.5, 0.5]])).tolist() == [1.0, 2.0]


def test_different_numbers_of_answers_compare_at_equal_shares():
    # Answering the same grades twice over changes nothing.
    once = np.array([0.0, 0.5, 1.0])
    grades = np.full((2, 6), np.nan)
    grades[0, :3] = once
    grades[1] = np.repeat(once, 2)
    assert majority_judgment(grades).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("tie_break", ["majority_value", "majority_gauge"])
@pytest.mark.parametrize("seed", range(10))
def test_weights_count_as_repeated_questions(seed: int, tie_break: str):
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 3, (5, 6)) / 2
    grades[rng.random(grades.shape) < 0.2] = np.nan
    grades[:, 0] = 0.5
    counts = np.array([1, 2, 0, 3, 1, 2])
    weighted = majority_judgment(grades, counts.astype(float), tie_break=tie_break)
    repeated = majority_judgment(np.repeat(grades, counts, axis=1), tie_break=tie_break)
    assert (weighted == repeated).all()


def test_gauge_by_hand():
    grades = np.array(
        [
            [0.0, 0.5, 0.5, 1.0, 1.0],  # 2 above, 1 below: plus
            [0.5, 0.5, 0.5, 0.5, 1.0],  # 1 above, none below: plus, but fewer above
            [0.0, 0.5, 0.5, 0.5, 1.0],  # 1 above, 1 below: minus
            [0.0, 0.0, 0.5, 0.5, 0.5],  # none above, 2 below: minus, and more below
            [0.0, 0.0, 0.0, 1.0, 1.0],  # a lower median
        ]
    )
    assert majority_judgment(grades, tie_break="majority_gauge").tolist() == [5, 4, 3, 2, 1]


def test_gauge_leaves_equal_shares_tied():
    grades = np.array([[0.0, 0.5, 0.5, 0.5, 0.75], [0.0, 0.5, 0.5, 0.5, 1.0]])
    assert majority_judgment(grades, tie_break="majority_gauge").tolist() == [2.0, 2.0]
    assert majority_judgment(grades).tolist() == [1.0, 2.0]


def test_systems_without_answers_come_last():
    grades = np.array([[0.0, 0.0], [np.nan, np.nan], [np.nan, 1.0]])
    assert majority_judgment(grades).tolist() == [2.0, 1.0, 3.0]
    # The only answer of the last system has no weight here.
    assert majority_judgment(grades, np.array([1.0, 0.0])).tolist() == [3.0, 2.0, 2.0]


def test_a_batch_equals_a_loop():
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 3, (40, 5, 8)) / 2
    weights = rng.dirichlet(np.ones(8), 40)
    together = majority_judgment(grades, weights)
    alone = [majority_judgment(g, w) for g, w in zip(grades, weights, strict=True)]
    assert (together == np.stack(alone)).all()


@pytest.mark.parametrize("n_levels", [3, 1000])
@pytest.mark.parametrize("tie_break", ["majority_value", "majority_gauge"])
def test_resamples_are_compared_in_batches(
    n_levels: int, tie_break: TieBreak, monkeypatch: pytest.MonkeyPatch
):
    rng = np.random.default_rng(2)
    grades = rng.integers(0, n_levels, (8, 300)) / n_levels
    grades[rng.random(grades.shape) < 0.1] = np.nan
    weights = rng.multinomial(300, np.full(300, 1 / 300), size=200).astype(float)
    alone = [majority_judgment(grades, w, tie_break=tie_break) for w in weights]
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 2**15)
    tracemalloc.start()
    together = majority_judgment(grades, weights, tie_break=tie_break)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (together == np.stack(alone)).all()
    assert most < 3 << 20  # a table of all resamples, systems and questions has 4 MB


def test_an_unknown_tie_break_is_named():
    with pytest.raises(ValueError, match="tie_break must be one of majority_value, majority_gauge"):
        majority_judgment(np.zeros((2, 2)), tie_break="typical")  # type: ignore[arg-type]
