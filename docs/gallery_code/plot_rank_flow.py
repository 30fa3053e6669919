"""
Ranks over several rankings
===========================

One line per system, through the rankings of four benchmarks.
"""

import bayesrank as br

results = {
    name: br.rank(br.datasets.load_olympiad(name), random_seed=1)
    for name in ("AIME'24", "AIME'25", "HMMT'25", "BrUMO'25")
}
figure = br.plot_rank_flow(results)
