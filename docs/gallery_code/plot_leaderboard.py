"""
Leaderboard
===========

Scores with 95 % intervals and lower credible bounds, the best system on top.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
result = br.rank(data, random_seed=1)
figure = br.plot_leaderboard(result)
