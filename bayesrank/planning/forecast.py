"""How the uncertainty of a difference shrinks with further trials.

The present variance of a difference is that of the draws of :func:`bayesrank.rank`. The part that
trials explain is the sum of the variances within questions, or the whole variance if only trials
vary (target "benchmark"). The rest has other causes, such as the choice of the questions, and does
not shrink. Without further trials the forecast is the present variance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrank.planning.goals import worth_scale
from bayesrank.responses import Responses

FloatArray = NDArray[np.float64]

# Larger integers are not exact in float64; so many trials are never run.
_MOST_TRIALS = 2.0**52


@dataclass(frozen=True)
class TrialNoise:
    """Variances of the scores of systems that trials explain.

    Attributes
    ----------
    trials : numpy.ndarray of shape (number,)
        Different numbers of trials that questions have so far, with those of a prior.
    variance : numpy.ndarray of shape (system, number)
        Contribution of one trial of the questions with this number to the variance of a score: the
        sum of variances within questions, over the squared number of questions.
    """

    trials: FloatArray
    variance: FloatArray

    def of_difference(
        self, first: NDArray[np.intp], second: NDArray[np.intp], further: FloatArray | float
    ) -> FloatArray:
        """Return the explained variance of differences, after further trials per question.

        Parameters
        ----------
        first, second : numpy.ndarray of shape (pair,)
            Positions of the systems.
        further : float or numpy.ndarray of shape (pair,)
            Trials of every question beyond those so far.

        Returns
        -------
        numpy.ndarray of shape (pair,)
        """
        both = self.variance[first] + self.variance[second]
        return (both / (self.trials + np.expand_dims(further, -1))).sum(axis=-1)


def trial_noise(data: Responses, pseudo_trials: FloatArray | float = 0.0) -> TrialNoise:
    """Estimate the part of the variances of scores that trials explain.

    Parameters
    ----------
    data : Responses
        Outcomes so far. Questions without trials of a system are omitted.
    pseudo_trials : float or numpy.ndarray of shape (system, question), default 0
        As in :func:`forecast`.

    Returns
    -------
    TrialNoise
        From posterior means of the variances within questions, under uniform priors, for worths
        between 0 and 1. A fraction counts as a part of a right answer, which gives the largest
        possible variance.
    """
    variance = _within_variances(data)
    seen = data.trials > 0
    n_questions = seen.sum(axis=1)
    counted = np.where(seen, data.trials + pseudo_trials, np.nan)
    trials = np.unique(counted[seen])
    sums = np.stack(
        [np.where(counted == each, variance, 0.0).sum(axis=1) for each in trials], axis=1
    )
    return TrialNoise(trials, sums / n_questions[:, np.newaxis] ** 2)


def _within_variances(data: Responses) -> FloatArray:
    """Return posterior means of the variance of one trial, of shape (system, question)."""
    if data.scores is None:
        counts, weights = data.counts.astype(np.float64), data.category_weights
    else:
        right = np.nan_to_num(data.grades) * data.trials
        counts, weights = np.stack([data.trials - right, right], axis=-1), np.array([0.0, 1.0])
    relative = (weights - weights[0]) / worth_scale(data)[1]
    shapes = counts + 1.0
    total = shapes.sum(axis=-1)
    mean = shapes @ relative / total
    variance = shapes @ relative**2 / total - mean**2
    # A posterior mean of p (1 - p) is below that of the mean p by the posterior variance of p.
    return variance * total / (total + 1.0)


@dataclass(frozen=True)
class Forecast:
    """The spread of differences after further trials, as a fraction of the present spread.

    Attributes
    ----------
    noise : TrialNoise
    first, second : numpy.ndarray of shape (pair,)
        Positions of the systems.
    explained : numpy.ndarray of shape (pair,)
        Proportion of the present variance that trials explain.
    """

    noise: TrialNoise
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    explained: FloatArray

    def remaining(self, further: FloatArray | float) -> FloatArray:
        """Return the ratios of standard deviations after further trials to the present ones."""
        return np.sqrt(1.0 - self.explained * (1.0 - self._trial_share(further)))

    def trials_until(self, share: FloatArray) -> FloatArray:
        """Return the further trials that reduce the spread to less than a fraction of the present.

        Parameters
        ----------
        share : numpy.ndarray of shape (pair,)
            At most 1; 0 if no number is enough.

        Returns
        -------
        numpy.ndarray of shape (pair,)
            Integers of at least 1; infinite if no number is enough.
        """
        wanted = (share**2 - (1.0 - self.explained)) / self.explained
        possible = wanted > 0
        most = self.noise.trials.max()
        # Each term decreases at least as fast as the term of the largest number of trials.
        high = np.ceil(most / np.where(possible, wanted, 1.0)) + 1.0
        possible &= high < _MOST_TRIALS
        low, high = np.zeros_like(high), np.where(possible, high, 1.0)
        while (high - low > 1.0).any():
            middle = np.floor((low + high) / 2.0)
            enough = self._trial_share(middle) < wanted
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(possible, high, np.inf)

    def _trial_share(self, further: FloatArray | float) -> FloatArray:
        after = self.noise.of_difference(self.first, self.second, further)
        return after / self.noise.of_difference(self.first, self.second, 0.0)


def forecast(
    data: Responses,
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    spread: FloatArray,
    *,
    target: str,
    pseudo_trials: FloatArray | float = 0.0,
) -> Forecast:
    """Prepare the forecast of differences.

    Parameters
    ----------
    data : Responses
        Outcomes so far.
    first, second : numpy.ndarray of shape (pair,)
        Positions of the systems.
    spread : numpy.ndarray of shape (pair,)
        Present standard deviations of the differences.
    target : str
        What varies: only trials for ``"benchmark"``.
    pseudo_trials : float or numpy.ndarray of shape (system, question), default 0
        Trials that a prior counts as, which make further ones a smaller part.

    Returns
    -------
    Forecast
    """
    noise = trial_noise(data, pseudo_trials)
    explained = np.ones(len(first))
    if target != "benchmark":
        now = noise.of_difference(first, second, 0.0)
        spread = spread / worth_scale(data)[1]
        explained = np.minimum(now / np.maximum(spread**2, np.finfo(float).tiny), 1.0)
    return Forecast(noise, first, second, explained)
