"""Which trials to run next: the expected value of their information."""

from typing import NamedTuple, SupportsIndex

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrank.entrance import as_data, as_responses
from bayesrank.planning.battles import suggest_battles
from bayesrank.planning.crossed import DEFAULT, Components, CrossedPosterior
from bayesrank.planning.forecast import forecast
from bayesrank.planning.goals import Goal, check_goal, critical_pairs, unit_worths, worth_scale
from bayesrank.planning.stopping import present_state
from bayesrank.responses import Responses
from bayesrank.results.leaderboard import gaps_of, ranking_of
from bayesrank.validation import check_integer
from bayesrank.views import Comparisons

FloatArray = NDArray[np.float64]

# Numbers of trials in the look-ahead. One trial may be too few to reverse an order that many trials
# can reverse, so the value of a trial is the largest value of n trials, divided by n.
_HORIZONS = np.array([1.0, 4.0, 16.0, 64.0, 256.0])


class PairState(NamedTuple):
    """Posterior of the differences of the pairs that matter for a goal.

    Attributes
    ----------
    first, second : numpy.ndarray of shape (pair,)
        Positions of the better and the worse system.
    gap, variance : numpy.ndarray of shape (pair,)
        Posterior mean and variance of the difference, for worths between 0 and 1.
    explained : numpy.ndarray of shape (pair,)
        Proportion of the variance that trials explain.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    gap: FloatArray
    variance: FloatArray
    explained: FloatArray


def suggest(
    data: Responses | Comparisons | ArrayLike,
    budget: int,
    *,
    goal: Goal = "best",
    k: int | None = None,
    components: Components = DEFAULT,
    max_trials: int | None = None,
    random_seed: int | None = None,
) -> pd.DataFrame:
    r"""Suggest which systems to run on which questions next.

    Each trial of the budget goes to the cell with the highest expected value of information. For a
    pair of systems whose order matters, this value is the expected gain from a decision after the
    trial instead of now, :math:`\tau \varphi(d / \tau) - d \Phi(-d / \tau)`, where d is the
    difference of their posterior means and :math:`\tau` the standard deviation of its change. The
    present posterior is that of :func:`bayesrank.rank` by its default method. The model of
    :mod:`bayesrank.planning.crossed`, in which questions differ in difficulty, predicts how much a
    trial reduces the part of the variance that trials explain
    (:mod:`bayesrank.planning.forecast`). Trials that were already suggested reduce the value of
    further ones.

    Run the trials, add their outcomes to the data, and call this function again: smaller budgets
    adapt better.

    Parameters
    ----------
    data : Responses, Battles, Comparisons, pandas.DataFrame or array_like
        Outcomes so far; cells may have no trials. If a whole system has none, and so cannot be
        ranked, the present posterior is that of :mod:`bayesrank.planning.crossed`. Or battles, as
        for :func:`bayesrank.planning.battles.suggest_battles`.
    budget : int
        Number of further trials, or battles.
    goal : {"best", "top_k", "full"}, default "best"
        Find the best system, the best k, or the whole order.
    k : int, optional
        For the goal ``"top_k"``.
    components : Components, optional
        Variances of the effects, for trials; those of ``Components()`` by default.
    max_trials : int, optional
        Largest number of trials of a cell, including those of the data; no limit by default.
    random_seed : int, optional
        As in :func:`bayesrank.rank`.

    Returns
    -------
    pandas.DataFrame
        ``system``, ``question`` and ``trials`` (further ones), in the order of the data, only for
        cells with further trials.

    Raises
    ------
    ValueError
        If an argument is invalid, or the budget is larger than the room of the cells.
    DataError
        If the outcomes have no worth.

    References
    ----------
    .. [1] S. E. Chick and K. Inoue. New two-stage and sequential procedures for selecting the best
       simulated system. Operations Research 49 (2001).
       https://doi.org/10.1287/opre.49.5.732.10615
    .. [2] P. I. Frazier and W. B. Powell. Paradoxes in learning and the marginal value of
       information. Decision Analysis 7 (2010). https://doi.org/10.1287/deca.1100.0190

    Examples
    --------
    >>> data = Responses([[[1, 1], [1, 1]], [[1, 1], [1, 0]], [[0, 0], [0, 0]]])
    >>> suggest(data, 4).groupby("system")["trials"].sum().to_dict()
    {'system 1': 2, 'system 2': 2}
    """
    known = as_data(data)
    if isinstance(known, Comparisons):
        if max_trials is not None:
            raise ValueError(f"max_trials must be None for battles; got {max_trials!r}")
        return suggest_battles(known, budget, goal=goal, k=k, random_seed=random_seed)
    data = as_responses(known, "or battles")
    n_top = check_goal(goal, k, len(data.systems))
    totals, trials = unit_worths(data)
    extra = allocate(
        totals,
        trials,
        budget,
        n_top=n_top,
        present=_present_pairs(data, n_top, random_seed) if trials.any(axis=1).all() else None,
        components=components,
        max_trials=max_trials,
    )
    system, question = np.nonzero(extra)
    return pd.DataFrame(
        {
            "system": np.array(data.systems)[system],
            "question": np.array(data.questions)[question],
            "trials": extra[system, question],
        }
    )


def allocate(
    totals: FloatArray,
    trials: FloatArray,
    budget: SupportsIndex,
    *,
    n_top: int = 1,
    present: PairState | None = None,
    components: Components = DEFAULT,
    max_trials: int | None = None,
) -> NDArray[np.int64]:
    """Allocate further trials to cells, on arrays; see :func:`suggest`.

    Parameters
    ----------
    totals, trials : numpy.ndarray of shape (system, question)
        Sums of worths between 0 and 1, and numbers of trials.
    budget : int
        Number of further trials.
    n_top : int, default 1
        Number of top systems to separate from the rest; 0 for the whole order. Not used if
        `present` is given.
    present : PairState, optional
        Posterior of the pairs that matter for the goal; by default that of
        :mod:`bayesrank.planning.crossed`, which needs no trials.
    components : Components
        Variances of the effects.
    max_trials : int, optional
        Largest number of trials of a cell.

    Returns
    -------
    numpy.ndarray of int64 and shape (system, question)

    Raises
    ------
    ValueError
        If the budget is not an integer of at least 0, or is larger than the room of the cells.
    """
    check_integer(budget, "budget", least=0)
    bound = np.inf if max_trials is None else check_integer(max_trials, "max_trials")
    room = np.maximum(bound - trials, 0.0).sum()
    if budget > room:
        raise ValueError(
            f"budget must be at most the {room:g} trials that cells can take with "
            f"max_trials = {max_trials}; got {budget}"
        )
    posterior = CrossedPosterior(totals, trials, components)
    if present is None:
        first, second = critical_pairs(posterior.mean, n_top)
        gap = posterior.mean[first] - posterior.mean[second]
        between = _between(posterior, first, second)
        present = PairState(first, second, gap, between, np.ones(len(gap)))
    # Part of the model's variance of a difference that trials explain.
    scale = (
        present.explained * present.variance / _between(posterior, present.first, present.second)
    )
    extra = np.zeros(trials.shape, dtype=np.int64)
    for _ in range(int(budget)):
        full = trials + extra >= bound
        extra[_most_valuable(posterior, present, scale, full)] += 1
        # Outcomes are not known yet, so the means stay; the variance is reduced.
        posterior = CrossedPosterior(totals, trials + extra, components)
    return extra


def _most_valuable(
    posterior: CrossedPosterior, present: PairState, scale: FloatArray, full: NDArray[np.bool_]
) -> tuple[int, int]:
    """Return the cell whose next trial has the highest value of information per trial."""
    leverage, (first, second) = posterior.leverage, present[:2]
    explained = scale * _between(posterior, first, second)
    between = (1.0 - present.explained) * present.variance + explained
    rival = _closest_rivals(first, second, present.gap / np.sqrt(between), len(leverage))

    # One candidate per system: the most informative question on it and its closest rival.
    own = np.arange(len(leverage))
    told = (leverage[own, own] - leverage[rival, own]) ** 2 / posterior.trial_variance
    told[full] = -1.0
    question = told.argmax(axis=1)
    change = leverage[first][:, own, question] - leverage[second][:, own, question]
    one = scale[:, None] * change**2 / posterior.trial_variance[own, question]  # (pair, candidate)
    value = _value_of_information(present.gap[:, None], explained[:, None], one)
    value[told[own, question] < 0] = -1.0
    system = int(value.argmax())
    return system, int(question[system])


def _between(
    posterior: CrossedPosterior, first: NDArray[np.intp], second: NDArray[np.intp]
) -> FloatArray:
    """Return the variances of differences in the model."""
    covariance = posterior.covariance
    variance = np.diag(covariance)
    return np.maximum(variance[first] + variance[second] - 2 * covariance[first, second], 1e-15)


def _present_pairs(data: Responses, n_top: int, random_seed: int | None) -> PairState:
    """Return the posterior by rank() of the pairs that matter, for worths between 0 and 1."""
    _, width = worth_scale(data)
    # Resolved pairs do not matter here, so any value of error works.
    result = present_state(data, error=0.05, random_seed=random_seed)
    pairs = gaps_of(result)
    first, second = critical_pairs(ranking_of(result)["score"].values, n_top)
    spread = pairs.spread[first, second]
    ahead = forecast(data, first, second, spread, target=result.attrs["target"])
    gap = np.abs(pairs.gap[first, second]) / width
    return PairState(first, second, gap, (spread / width) ** 2, ahead.explained)


def _closest_rivals(
    first: NDArray[np.intp], second: NDArray[np.intp], z: FloatArray, n_systems: int
) -> NDArray[np.int64]:
    """Return for each system its opponent in its least certain pair."""
    closest = np.full((n_systems, n_systems), np.inf)
    closest[first, second] = z
    closest[second, first] = z
    return closest.argmin(axis=1)


def _value_of_information(gap: FloatArray, between: FloatArray, one: FloatArray) -> FloatArray:
    """Return the expected gain per trial, over pairs, with the best look ahead, per candidate."""
    from scipy.special import ndtr  # importing this module should not import SciPy

    horizon = _HORIZONS[:, None, None]
    # Variance explained by many such trials, at most the present variance.
    tau = np.sqrt(between * -np.expm1(-horizon * one / between))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.where(tau > 0, gap / tau, np.inf)
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        gain = np.where(tau > 0, tau * density - gap * ndtr(-z), 0.0)
    return (np.maximum(gain, 0.0).sum(axis=1) / _HORIZONS[:, None]).max(axis=0)
