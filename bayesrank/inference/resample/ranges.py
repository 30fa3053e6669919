"""The range of a score by its definition, which no draw leaves."""

import math
from typing import cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.run import Run
from bayesrank.responses import Responses


def within_range(run: Run, draws: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return draws of shape (..., system), those outside the range of the score at its ends.

    A truth is never outside, so that no interval loses it.
    """
    n_systems, name = draws.shape[-1], run.method.range
    if not name:
        return draws
    if name == "grades":
        data = cast("Responses", run.data)
        # Scores on a scale are shares of it until the result is built.
        worths = np.array([0.0, 1.0]) if data.scores is not None else data.category_weights
        ends = worths.min(), worths.max()
    elif name == "payoffs":
        is_margin = run.options.get("score_type") == "advantage_vs_equilibrium"
        ends = (-1.0 if is_margin else 0.0, 1.0)
    else:
        # Of a vector of norm one and sum zero.
        longest = math.sqrt(1.0 - 1.0 / n_systems)
        n_questions = run.data.shape[1] if isinstance(run.data, Responses) else 0
        ends = {
            "shares": (0, 1),
            "unit vector": (-longest, longest),
            "levels": (1, n_systems),
            "rounds": (0, n_systems - 1),
            "balance": (1 - n_systems, n_systems - 1),
            "points": (0, n_questions * (n_systems - 1)),
            "losses": (-n_questions, 0),
        }[name]
    low, high = ends
    return np.clip(draws, low, high)
