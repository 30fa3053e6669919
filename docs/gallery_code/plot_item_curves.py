"""
Item curves
===========

The probability of a right answer against ability, for some questions. Steep curves tell
systems apart.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
result = br.rank(data, "irt_2pl", random_seed=1)
figure = br.plot_item_curves(result, questions=data.questions[:5])
