"""
Rank probabilities
==================

The posterior probability of each rank of each system.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
result = br.rank(data, target="population", random_seed=1)
figure = br.plot_rank_probabilities(result)
