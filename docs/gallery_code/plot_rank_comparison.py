"""
Two rankings
============

How far each system rises or falls from one ranking to another: here from the score to its
lower credible bound when questions are a sample.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
table = br.leaderboard(br.rank(data, target="population", random_seed=1)).set_index("system")
figure = br.plot_rank_comparison({"score": table["rank"], "lower bound": table["lcb_rank"]})
