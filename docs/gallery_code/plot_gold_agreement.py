"""
Methods against the gold standard
=================================

Agreement of each method, on all trials, with the gold standard.
"""

import bayesrank as br
from bayesrank import studies

data = br.datasets.load_olympiad("AIME'25")
study = studies.consensus(data, ["bayes", "avg", "borda", "pagerank", "inverse_difficulty"])
figure = br.plot_gold_agreement(study)
