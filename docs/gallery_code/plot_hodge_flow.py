"""
Cycles
======

HodgeRank splits pairwise margins into a ranking (gradient) and cycles (curl).
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
result = br.rank(data, "hodge_rank", random_seed=1)
figure = br.plot_hodge_flow(result)
