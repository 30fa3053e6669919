"""
Superiority
===========

The probability that the system of the row is better than that of the column.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
result = br.rank(data, target="population", random_seed=1)
figure = br.plot_superiority(result)
