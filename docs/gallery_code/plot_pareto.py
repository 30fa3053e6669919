"""
Scores and costs
================

Systems that no other one beats in both are numbered and joined. The costs are made up: a dollar
more for each system of the list.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
costs = {name: 1.0 + place for place, name in enumerate(data.systems)}
figure = br.plot_pareto(br.rank(data, random_seed=1), costs, label="cost in dollars")
