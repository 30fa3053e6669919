"""
Observed win rates
==================

The share of its battles that each system won against each other one, ties as half.
"""

import bayesrank as br

battles = br.Comparisons(
    [[0, 24, 31, 40], [16, 0, 25, 33], [9, 15, 0, 27], [5, 7, 13, 0]],
    ties=[[0, 6, 4, 3], [6, 0, 8, 5], [4, 8, 0, 7], [3, 5, 7, 0]],
    systems=["alpha", "beta", "gamma", "delta"],
)
figure = br.plot_win_rates(br.rank(battles, random_seed=1))
