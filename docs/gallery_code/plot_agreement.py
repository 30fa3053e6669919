"""
Agreement by number of trials
=============================

What more trials buy: agreement with the ranking from all trials.
"""

import bayesrank as br
from bayesrank import studies

data = br.datasets.load_olympiad("AIME'25")
study = studies.stability(data, ["avg", "borda"], n=[1, 2, 4, 8, 16], draws=20)
figure = br.plot_agreement(study)
