"""
Rank sets
=========

The ranks that each system may have: by itself, and in the joint sets that hold all ranks at
once.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
result = br.rank(data, target="population", random_seed=1)
figure = br.plot_rank_sets(result)
