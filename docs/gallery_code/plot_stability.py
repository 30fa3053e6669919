"""
Stability from few trials
=========================

Agreement of rankings from one trial with the ranking from all trials, per method.
"""

import bayesrank as br
from bayesrank import studies

data = br.datasets.load_olympiad("AIME'25")
study = studies.stability(data, ["avg", "borda", "pagerank", "inverse_difficulty"], draws=20)
figure = br.plot_stability(study)
