import tracemalloc

import numpy as np
import pytest

from bayesrank.methods import preferences
from bayesrank.methods.preferences import (
    exact_weights,
    observed_together,
    pairwise_votes,
    preference_counts,
    won_and_lost,
)

GRADES = np.array([[1.0, 0.5, np.nan, 0.0], [0.5, 0.5, 1.0, np.nan], [0.0, 1.0, 0.5, 0.0]])


def counted(grades: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Count preferences one comparison at a time."""
    n_systems, n_questions = grades.shape
    counts = np.zeros((n_systems, n_systems))
    for i in range(n_systems):
        for j in range(n_systems):
            for m in range(n_questions):
                counts[i, j] += weights[m] * (grades[i, m] > grades[j, m])
    return counts


def test_counts_by_hand():
    assert preference_counts(GRADES).tolist() == [[0, 1, 1], [0, 0, 2], [1, 1, 0]]


def test_both_must_have_answered():
    assert observed_together(GRADES).tolist() == [[3, 2, 3], [2, 3, 3], [3, 3, 4]]


def test_equal_grades_are_halved_or_ignored():
    assert pairwise_votes(GRADES).tolist() == [[0, 1.5, 1.5], [0.5, 0, 2], [1.5, 1, 0]]
    ignored = pairwise_votes(GRADES, tie_policy="ignore")
    assert (ignored == preference_counts(GRADES)).all()


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("grades_batch", [(), (6,)])
@pytest.mark.parametrize("weights_batch", [None, (), (6,)])
def test_every_combination_of_batches_equals_a_loop(
    missing: float, grades_batch: tuple, weights_batch: tuple | None
):
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 4, (*grades_batch, 5, 11)) / 3
    grades[rng.random(grades.shape) < missing] = np.nan
    weights = None if weights_batch is None else rng.integers(0, 3, (*weights_batch, 11)) + 0.5
    batch = np.broadcast_shapes(grades_batch, weights_batch or ())
    got = preference_counts(grades, weights)
    all_grades = np.broadcast_to(grades, (*batch, 5, 11)).reshape(-1, 5, 11)
    one_each = np.ones(11) if weights is None else weights
    all_weights = np.broadcast_to(one_each, (*batch, 11)).reshape(-1, 11)
    expected = [counted(g, w) for g, w in zip(all_grades, all_weights, strict=True)]
    assert (got == np.reshape(expected, (*batch, 5, 5))).all()


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("grades_batch", [(), (6,)])
@pytest.mark.parametrize("weights_batch", [None, (), (6,)])
def test_comparisons_won_and_lost_are_sums_of_counts(
    missing: float, grades_batch: tuple, weights_batch: tuple | None
):
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 4, (*grades_batch, 5, 11)) / 3
    grades[rng.random(grades.shape) < missing] = np.nan
    weights = None if weights_batch is None else rng.random((*weights_batch, 11)) + 0.1
    counts = preference_counts(grades, weights)
    won, lost = won_and_lost(grades, weights)
    assert (won == counts.sum(axis=-1)).all()
    assert (lost == counts.sum(axis=-2)).all()


@pytest.mark.parametrize("weight", [1.0, 0.1])
def test_grades_that_resamples_share_are_compared_in_blocks(
    weight: float, monkeypatch: pytest.MonkeyPatch
):
    grades = np.random.default_rng(1).integers(0, 2, (60, 500)).astype(float)
    weights = np.full((2, 500), weight)
    whole = preference_counts(grades, weights)
    monkeypatch.setattr("bayesrank.batches.AT_ONCE", 2**16)
    tracemalloc.start()
    blocks = preference_counts(grades, weights)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (blocks == whole).all()
    assert most < 5 << 20  # a table of all pairs by question has 14 MB


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch):
    grades = np.random.default_rng(1).random((9, 4, 7))
    whole = preference_counts(grades)
    monkeypatch.setattr(preferences, "COMPARISONS_AT_ONCE", 250)
    assert (preference_counts(grades) == whole).all()


def test_averages_of_category_weights_that_are_equal_compare_as_equal():
    # 0.1 + 0.2 and 0.3 differ in the last bit.
    grades = np.array([[(0.1 + 0.2) / 2], [0.3 / 2]])
    assert grades[0] != grades[1]
    assert preference_counts(grades).sum() == 0.0


def test_sums_of_rounded_weights_do_not_depend_on_their_order():
    rng = np.random.default_rng(2)
    weights = exact_weights(rng.dirichlet(np.ones(200), 50), 200)
    shuffled = rng.permuted(weights, axis=1)
    assert (weights.sum(axis=1) == shuffled.sum(axis=1)).all()
    assert (np.cumsum(weights, axis=1)[:, -1] == weights.sum(axis=1)).all()


def test_rounding_weights_is_slight_and_spares_whole_numbers():
    weights = np.random.default_rng(3).random(50)
    np.testing.assert_allclose(exact_weights(weights, 50), weights, atol=1e-10)
    whole = np.array([0.0, 1.0, 7.0, 123456.0])
    assert (exact_weights(whole, 4) == whole).all()


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        ([-1.0, 2.0], "weight of -1.0 and a smallest sum of 1.0"),
        ([0.0, 0.0], "weight of 0.0 and a smallest sum of 0.0"),
        ([np.nan, 1.0], "weight of nan"),
        ([np.inf, 1.0], "sum of inf"),
    ],
)
def test_weights_without_meaning_are_refused(weights: list[float], found: str):
    with pytest.raises(ValueError, match=f"weights must be finite and non-negative .* {found}"):
        exact_weights(np.array(weights), 2)


def test_an_unknown_tie_policy_is_named():
    with pytest.raises(ValueError, match="tie_policy must be one of ignore, half; got 'skip'"):
        pairwise_votes(GRADES, tie_policy="skip")  # type: ignore[arg-type]
