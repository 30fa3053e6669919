"""
Ability over time
=================

Abilities that may change from trial to trial. The trials of this example are exchangeable, so
the lines are flat.
"""

import bayesrank as br

full = br.datasets.load_olympiad("AIME'25")
data = br.Responses(full.outcomes[:6, :, :10], systems=full.systems[:6])
result = br.rank(data, "dynamic_irt", assume_time_axis=True, random_seed=1)
figure = br.plot_trajectories(result)
