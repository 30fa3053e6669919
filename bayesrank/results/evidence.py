"""How much was observed of each system, and what it says without any model."""

import math
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.inference.run import Data, label_index
from bayesrank.priors import as_dirichlet
from bayesrank.responses import Responses
from bayesrank.views import Ballots, Comparisons

# A quarter of the outcomes has twice the standard error.
FEW_SHARE = 0.25


def summarize_evidence(data: Data, *, ci_prob: float) -> xr.Dataset:
    """Summarise the observed mean and the number of observations of each system.

    Parameters
    ----------
    data : Responses, Comparisons or Ballots
        What was ranked.
    ci_prob : float
        Probability of the intervals.

    Returns
    -------
    xarray.Dataset
        Over ``system``: ``observed_mean``, the mean grade in the units of the outcomes, where every
        question with an outcome counts the same; of battles the win rate with ties as half, of
        ballots the mean share of the others that a system is placed above. ``n_outcomes``, the
        number of outcomes, battles or ballots; of responses also ``n_questions`` with an outcome.
        ``few`` says where this is little, see :func:`is_little`. The mean is NaN where there is
        none: of categories without a worth, or of a system without outcomes.

    Examples
    --------
    >>> summary = summarize_evidence(Responses([[[1, 0], [1, -1]]]), ci_prob=0.95)
    >>> [summary[name].item() for name in ("observed_mean", "n_outcomes", "n_questions", "few")]
    [0.75, 3, 2, True]
    """
    variables: dict[str, Any] = {}
    if isinstance(data, Responses):
        has_worth = data.scale is not None or data.weights is not None
        grades = data.grades if has_worth else np.full(data.shape[:2], np.nan)
        mean = data.in_units(mean_grade(grades))
        n_outcomes = data.trials.sum(axis=1)
        variables["n_questions"] = np.count_nonzero(data.trials, axis=1)
    elif isinstance(data, Comparisons):
        n_outcomes = _whole(data.totals.sum(axis=1))
        mean = _ratio((data.wins + data.ties / 2).sum(axis=1), n_outcomes)
    else:
        mean, n_outcomes = _places(data)
    least = least_outcomes(ci_prob)
    numbers = [n_outcomes, *variables.values()]
    variables = {"observed_mean": mean, "n_outcomes": n_outcomes, **variables}
    variables["few"] = is_little(*numbers, least=least)
    return xr.Dataset(
        {name: ("system", values) for name, values in variables.items()},
        coords={"system": label_index("system", data.systems)},
        attrs={"least_outcomes": least},
    )


def mean_grade(grades: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of grades (system, question) over the questions that have one, else NaN."""
    return _ratio(np.nansum(grades, axis=1), np.count_nonzero(~np.isnan(grades), axis=1))


def least_outcomes(ci_prob: float) -> int:
    """Return the number of outcomes from which on they can tell a system from a coin.

    With fewer, a system that tosses a coin for its answers has all of them right with a probability
    above that of either tail of the intervals.

    Examples
    --------
    >>> least_outcomes(0.95)
    6
    """
    return math.ceil(math.log2(2.0 / (1.0 - ci_prob)))


def is_little(*numbers: NDArray[Any], least: int) -> NDArray[np.bool_]:
    """Return which systems have little evidence.

    Those whose outcomes are fewer than `least`, or of whom a quarter as much was observed as of the
    median system, so that their standard error is twice its own.

    Parameters
    ----------
    *numbers : numpy.ndarray of shape (system,)
        Outcomes of each system, and further numbers that measure evidence.
    least : int
        What :func:`least_outcomes` returned.

    Examples
    --------
    >>> is_little(np.array([260, 250, 40]), least=6)
    array([False, False,  True])
    """
    little = numbers[0] < least
    for number in numbers:
        little = little | (number < FEW_SHARE * np.median(number))
    return little


def shrunk_towards(result: xr.DataTree) -> float | None:
    """Return towards what the score of a result is shrunk by its prior, None if it is not."""
    if result.attrs.get("shrunk") != "yes":
        return None
    weights = result["constant_data"].to_dataset()["category_weights"].values
    return as_dirichlet(result.attrs["prior"]).mean(weights)


def _places(data: Ballots) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the mean share of the others that each system is above, and its ballots."""
    grades = data.grades
    seen = np.isfinite(grades)
    above = (grades[:, np.newaxis] > grades).sum(axis=1)
    equal = (grades[:, np.newaxis] == grades).sum(axis=1) - seen  # all but itself
    others = np.where(seen, seen.sum(axis=0) - 1, 0)
    shares = np.where(others > 0, (above + equal / 2) / np.maximum(others, 1), 0.0)
    mean = _ratio(shares.sum(axis=1), np.count_nonzero(others, axis=1))
    return mean, np.count_nonzero(seen, axis=1)


def _ratio(total: NDArray[np.float64], number: NDArray[Any]) -> NDArray[np.float64]:
    return np.where(number > 0, total / np.where(number > 0, number, 1), np.nan)


def _whole(numbers: NDArray[np.float64]) -> NDArray[Any]:
    """Return counts as integers, unless weights of battles make fractions of them."""
    rounded = numbers.round()
    return rounded.astype(np.int64) if np.array_equal(numbers, rounded) else numbers
