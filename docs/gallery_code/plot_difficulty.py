"""
Difficulty of questions
=======================

Difficulties of a Rasch model with 95 % intervals, the hardest question on top.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
result = br.rank(data, "rasch", random_seed=1)
figure = br.plot_difficulty(result)
