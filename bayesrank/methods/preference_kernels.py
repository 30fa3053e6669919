"""Compiled counts of preferences, imported when there are many to count."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def count_preferences(grades, counts):
    """Count how often each system's grade is higher than each other's.

    Takes grades of shape (resample, system, question), NaN where unobserved, and fills counts of
    shape (resample, system, opponent), which hold zeros.
    """
    size, n_systems, n_questions = grades.shape
    for b in range(size):
        for i in range(n_systems):
            one = grades[b, i]
            for j in range(i):
                other = grades[b, j]
                # As wide as what the compiler makes of eight comparisons at a time.
                above, below = np.int32(0), np.int32(0)
                for question in range(n_questions):
                    above += np.int32(one[question] > other[question])
                    below += np.int32(one[question] < other[question])
                counts[b, i, j], counts[b, j, i] = above, below
