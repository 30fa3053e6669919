"""
Spread of the agreement
=======================

The distribution of that agreement over the draws of a trial.
"""

import bayesrank as br
from bayesrank import studies

data = br.datasets.load_olympiad("AIME'25")
study = studies.stability(data, ["avg", "borda", "pagerank", "inverse_difficulty"], draws=40)
figure = br.plot_tau_distribution(study)
