"""When enough is known."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrank.planning.crossed import DEFAULT, Components, CrossedPosterior
from bayesrank.planning.goals import Goal, check_goal, unit_worths
from bayesrank.responses import Responses
from bayesrank.validation import check_between_0_and_1

FloatArray = NDArray[np.float64]

# Draws of the scores; the seed is fixed so that the same data always give the same decision.
_DRAWS = 4000
_SEED = 20_251_004


@dataclass(frozen=True)
class StopDecision:
    """Whether to stop, and what is decided then.

    Attributes
    ----------
    stop : bool
        Whether the error is at most what was allowed.
    error : float
        Posterior probability that the answer is wrong.
    answer : tuple of str
        The best system; the best k; or all of them, best first.
    """

    stop: bool
    error: float
    answer: tuple[str, ...]


def should_stop(
    data: Responses,
    *,
    goal: Goal = "best",
    k: int | None = None,
    error: float = 0.05,
    components: Components = DEFAULT,
) -> StopDecision:
    """Say whether the goal is reached with a stated probability of error.

    The error is a posterior probability. Averaged over systems and questions that the prior of
    :mod:`bayesrank.planning.crossed` describes, answers are wrong in at most this share of cases,
    however often and whenever one looks: a posterior does not depend on why the data stop where
    they do. For one particular set of systems there is no such promise, nor where effects are
    much larger than the components say.

    Parameters
    ----------
    data : Responses
        Outcomes so far; cells may have no trials.
    goal : {"best", "top_k", "full"}, default "best"
        Find the best system, the best k (in any order), or the whole order.
    k : int, optional
        For the goal ``"top_k"``.
    error : float, default 0.05
        Allowed probability that the answer is wrong.
    components : Components, optional
        Variances of the effects.

    Returns
    -------
    StopDecision

    Raises
    ------
    ValueError
        If an argument is not one that can be used.
    DataError
        If the outcomes are not categories with weights.

    Examples
    --------
    >>> data = Responses([[[1] * 20] * 9, [[0] * 20] * 9], systems=["good", "bad"])
    >>> should_stop(data)
    StopDecision(stop=True, error=0.0, answer=('good',))
    """
    n_top = check_goal(goal, k, len(data.systems))
    check_between_0_and_1(error, "error")
    posterior = CrossedPosterior(*unit_worths(data), components)
    order, wrong = decide(posterior, n_top)
    chosen = order if n_top == 0 else order[:n_top]
    return StopDecision(wrong <= error, wrong, tuple(data.systems[system] for system in chosen))


def decide(posterior: CrossedPosterior, n_top: int) -> tuple[NDArray[np.int64], float]:
    """Return systems by posterior mean, and the probability that the decision is wrong.

    Parameters
    ----------
    posterior : CrossedPosterior
        The scores.
    n_top : int
        How many systems are told from the rest; 0 for the whole order.
    """
    order = np.argsort(-posterior.mean, kind="stable")
    rng = np.random.default_rng(_SEED)
    # A square root that exists where a score has no variance left.
    values, vectors = np.linalg.eigh(posterior.covariance[np.ix_(order, order)])
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    scores = posterior.mean[order] + rng.standard_normal((_DRAWS, len(order))) @ root.T
    if n_top == 0:
        right = (np.diff(scores, axis=1) < 0).all(axis=1)
    else:
        right = scores[:, :n_top].min(axis=1) > scores[:, n_top:].max(axis=1)
    return order, float(1.0 - right.mean())
