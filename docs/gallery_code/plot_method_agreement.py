"""
Agreement of methods
====================

Kendall's tau-b between the rankings of several methods on the same data.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
methods = ("avg", "borda", "rasch", "pagerank", "inverse_difficulty", "nash")
results = {name: br.rank(data, name, random_seed=1) for name in methods}
figure = br.plot_method_agreement(results)
