"""
Scores from one result to the next
==================================

The scores of all systems with two, five and all runs; the six that are best at the end are in
colour.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
results = {
    f"{n} runs": br.rank(br.Responses(data.outcomes[..., :n], systems=data.systems), random_seed=1)
    for n in (2, 5, data.shape[2])
}
figure = br.plot_results_over_time(results)
