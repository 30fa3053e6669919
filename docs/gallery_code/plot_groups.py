"""
Groups
======

Systems that share a line are not distinguished, with a joint decision for all pairs.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
result = br.rank(data, random_seed=1)
figure = br.plot_groups(result)
