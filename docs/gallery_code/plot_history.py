"""
Scores from period to period
============================

The score of each system from week to week, with bands, of battles that have a time.
"""

import numpy as np

import bayesrank as br

rng = np.random.default_rng(1)
names = np.array(["alpha", "beta", "gamma"])
first = rng.integers(0, 3, 600)
second = (first + rng.integers(1, 3, 600)) % 3
day = np.linspace(0.0, 60.0, 600)
strength = np.array([[0.0], [0.5], [-0.5]]) + np.array([[0.03], [-0.01], [0.0]]) * day
gap = strength[first, np.arange(600)] - strength[second, np.arange(600)]
winner = np.where(rng.random(600) < 1 / (1 + np.exp(-gap)), "first", "second")
battles = br.Battles(names[first], names[second], winner, time=day * 86_400)
figure = br.plot_history(br.rank(battles, "dynamic_comparisons", random_seed=1))
