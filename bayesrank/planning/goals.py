"""Goals of a decision, and the pairs of systems that matter for them."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.responses import Responses

FloatArray = NDArray[np.float64]
Goal = Literal["best", "top_k", "full"]
GOALS = ("best", "top_k", "full")


def check_goal(goal: str, k: int | None, n_systems: int) -> int:
    """Return the number of top systems to separate from the rest; 0 for the full order.

    Raises
    ------
    ValueError
        If the goal is unknown, or k is invalid for it.
    """
    if goal not in GOALS:
        raise ValueError(f"goal must be one of {', '.join(GOALS)}; got {goal!r}")
    if n_systems < 2:
        raise ValueError(f"data must have two systems or more; got {n_systems}")
    if goal != "top_k":
        if k is not None:
            raise ValueError(f"k must be None for the goal {goal!r}; got {k!r}")
        return int(goal == "best")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k < n_systems:
        raise ValueError(f"k must be from 1 to {n_systems - 1} for the goal 'top_k'; got {k!r}")
    return int(k)


def pairs_goal(goal: str | None, k: int | None, n_systems: int) -> int | None:
    """Return the result of :func:`check_goal`; None for all pairs, without a goal.

    Raises
    ------
    ValueError
        As there, or if k is given without a goal.
    """
    if goal is not None:
        return check_goal(goal, k, n_systems)
    if k is not None:
        raise ValueError(f"k must be None without the goal 'top_k'; got {k!r}")
    return None


def critical_pairs(
    mean: FloatArray, n_top: int | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs whose order matters, the better system of each first.

    Parameters
    ----------
    mean : numpy.ndarray of shape (system,)
        Posterior means of the scores.
    n_top : int
        Result of :func:`pairs_goal`.
    """
    order = np.argsort(-mean, kind="stable")
    if n_top is None:
        first, second = np.triu_indices(len(order), 1)
        return order[first], order[second]
    if n_top == 0:
        return order[:-1], order[1:]
    first, second = np.meshgrid(order[:n_top], order[n_top:], indexing="ij")
    return first.ravel(), second.ravel()


def worth_scale(data: Responses) -> tuple[float, float]:
    """Return the least worth of an outcome, and the range of worths.

    Raises
    ------
    DataError
        If all categories are worth the same, or have no worth.
    """
    if data.scores is not None:
        return 0.0, 1.0
    weights = data.category_weights
    width = float(weights.max() - weights.min())
    if width == 0:
        raise DataError(f"weights must differ to compare systems; got {weights.tolist()}")
    return float(weights.min()), width


def unit_worths(data: Responses) -> tuple[FloatArray, FloatArray]:
    """Return sums of worths on a scale from 0 to 1, and trials, of shape (system, question).

    Raises
    ------
    DataError
        If all categories are worth the same, or have no worth.
    """
    low, width = worth_scale(data)
    trials = data.trials.astype(np.float64)
    return np.nan_to_num((data.grades - low) / width) * trials, trials
