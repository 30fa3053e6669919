"""
Questions that separate systems
===============================

The mean grade of each system on the questions where systems that do well elsewhere do better
than the others, from easy to hard.
"""

import bayesrank as br

data = br.datasets.load_olympiad("AIME'25")
figure = br.plot_questions(br.rank(data, random_seed=1))
