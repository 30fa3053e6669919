"""
Scores by group
===============

The best six systems on each of four benchmarks, a panel per benchmark.
"""

import bayesrank as br

names = ("AIME'24", "AIME'25", "HMMT'25", "BrUMO'25")
results = {name: br.rank(br.datasets.load_olympiad(name), random_seed=1) for name in names}
figure = br.plot_group_scores(results, top=6)
