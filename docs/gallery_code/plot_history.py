"""
A leaderboard over time
=======================

Scores of an arena from month to month, with bands. The votes are simulated: one system gets
better, the others stay where they are.
"""

import numpy as np

import bayesrank as br

rng = np.random.default_rng(2)
names = np.array(["newcomer", "leader", "middle", "last"])
months = 8
score = np.tile([0.0, 0.7, 0.0, -0.7], (months, 1))
score[:, 0] = np.linspace(-0.6, 1.2, months)
month = np.sort(rng.integers(months, size=4000))
first = rng.integers(4, size=4000)
second = (first + rng.integers(1, 4, size=4000)) % 4
won = rng.logistic(size=4000) < score[month, first] - score[month, second]
log = br.Battles(
    names[first], names[second], won.astype(int), time=1.767e9 + 30.44 * 86_400 * month
)
result = br.rank(log, "dynamic_comparisons", random_seed=1)
figure = br.plot_history(br.rescale(result, "elo"))
