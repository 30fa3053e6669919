"""Compiled counts of preferences against those of NumPy."""

import numpy as np
import pytest

from bayesrank.methods import preferences


@pytest.mark.parametrize("shape", [(3, 2, 1), (2, 5, 9), (4, 7, 20)])
def test_many_votes_are_counted_as_few_are(shape, monkeypatch):
    rng = np.random.default_rng(3)
    grades = rng.integers(0, 4, shape) / 3.0
    grades[rng.random(shape) < 0.2] = np.nan
    few = preferences.preference_counts(grades)
    monkeypatch.setattr(preferences, "_MANY_COMPARISONS", 0)
    many = preferences.preference_counts(grades)
    np.testing.assert_array_equal(many, few)
    above = grades[:, :, np.newaxis] > grades[:, np.newaxis]
    np.testing.assert_array_equal(few, above.sum(axis=-1))
