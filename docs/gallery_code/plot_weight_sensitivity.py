"""
Sensitivity to weights of categories
====================================

The ranks of each system when the weights of the categories of a rubric are drawn at random.
"""

import bayesrank as br
from bayesrank import rubrics

attempts = br.datasets.load_attempts("AIME'25")
data = rubrics.rubric_responses(attempts, "conservative")
table = rubrics.weight_sensitivity(data, random_seed=1)
figure = rubrics.plot_weight_sensitivity(table)
