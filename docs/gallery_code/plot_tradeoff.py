"""
Agreement and consistency
=========================

Agreement with the gold standard against agreement of a method with itself.
"""

import bayesrank as br
from bayesrank import studies

data = br.datasets.load_olympiad("AIME'25")
methods = ["avg", "borda", "pagerank", "inverse_difficulty"]
study = studies.stability(data, methods, draws=20, reference=["gold", "self"])
gold, own = (study.sel(reference=name) for name in ("gold", "self"))
figure = br.plot_tradeoff(gold, own)
