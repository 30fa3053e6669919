"""
Prior sensitivity
=================

The ranks that every system has under several priors.
"""

import bayesrank as br
from bayesrank import studies

full = br.datasets.load_olympiad("AIME'25")
data = br.Responses(full.outcomes[..., :2], systems=full.systems)
study = studies.prior_sensitivity(data, "rasch", [0.3, 1.0, 3.0], power_scaling=False)
figure = br.plot_prior_sensitivity(study)
