"""
Agreement of rubrics
====================

Agreement of rankings under several rubrics with each reference.
"""

import bayesrank as br
from bayesrank import studies

attempts = br.datasets.load_attempts("AIME'25")
schemes = ["verifier_only", "conservative", "format_aware"]
study = studies.categorical(attempts, schemes, draws=5)
figure = br.plot_rubric_agreement(study)
