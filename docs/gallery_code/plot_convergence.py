"""
Convergence
===========

After how many trials rankings of bootstrapped data stay as they are.
"""

import bayesrank as br
from bayesrank import studies

data = br.datasets.load_olympiad("AIME'25")
study = studies.convergence(data, replicates=10_000)
figure = br.plot_convergence(study)
