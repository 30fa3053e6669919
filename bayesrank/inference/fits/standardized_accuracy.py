r"""Standardised accuracy: scores that are means over all questions of fitted chances.

.. math:: s_l = \frac{1}{M} \sum_m \hat p_{lm}
          = \frac{1}{M} \sum_m (c_{lm} \bar y_{lm} + g_{lm} \hat p_{lm}),
          \qquad c_{lm} = n_{lm} / \max_m n_{lm} = 1 - g_{lm},

where the second form holds because fitted and observed grades of every system have the same sum.
The chances are those of :mod:`bayesrank.inference.fits.standardized`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrank.grades import UnitGrades, require_outcomes_of
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.standardized import FittedChances, fit_chances
from bayesrank.priors import Prior
from bayesrank.responses import Responses

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class StandardizedFit(Fit):
    """A fit of abilities whose scores are means of fitted chances.

    Its draws are those of :mod:`bayesrank.inference.calibrate.standardization`.

    Attributes
    ----------
    data : Responses
        What was fitted.
    grades : UnitGrades
        Grades of the questions that somebody was asked.
    chances : FittedChances
        Fitted chances. Systems with grades all at an end have half a grade less, or more, there.
    share : numpy.ndarray of shape (system,)
        The score as a share of the range of the grades.
    """

    data: Responses
    grades: UnitGrades
    chances: FittedChances
    share: Array


def standardized_accuracy(data: Responses, prior: Prior | None = None) -> StandardizedFit | None:
    """Fit standardised accuracy by marginal likelihood, where abilities have no prior."""
    return fit_standardized(data) if prior is None else None


def fit_standardized(data: Responses) -> StandardizedFit:
    """Fit standardised accuracy by marginal maximum likelihood.

    Parameters
    ----------
    data : Responses
        Grades: scores, or categories with weights. Every system has an outcome.

    Returns
    -------
    StandardizedFit
        Not batched.

    Raises
    ------
    DataError
        If a system has no outcome.

    Examples
    --------
    >>> fit = fit_standardized(Responses([[1, 1, 0, 1], [1, 0, 0, -1]]))
    >>> fit.score.round(3)
    array([0.75 , 0.348])
    """
    for system in np.flatnonzero(~data.trials.any(axis=1)).tolist():
        require_outcomes_of(data, system)
    grades = UnitGrades.of(data)
    asked = grades.trials.any(axis=0)
    grades = UnitGrades(grades.values[:, asked], grades.low, grades.high)
    trials, observed = grades.trials, grades.totals
    n_trials, n_right = trials.sum(axis=1), observed.sum(axis=1)
    at_end = (n_right <= 0.0) | (n_right >= n_trials)
    inside = np.clip(n_right, 0.5, n_trials - 0.5) / n_trials
    totals = np.where(at_end[:, np.newaxis], trials * inside[:, np.newaxis], observed)
    most = trials.max(axis=1, keepdims=True)
    chances = fit_chances(totals, trials, 1.0 - trials / most)
    # Sums of fitted and observed grades are equal, which holds to the last digit here.
    n_questions = trials.shape[1]
    filled = ((1.0 - trials / most) * chances.chance).sum(axis=1) / n_questions
    share = n_right / (most[:, 0] * n_questions) + filled
    share = np.where(at_end, n_right / n_trials, share)
    score, difficulty = grades.worth(share), np.full(len(asked), np.nan)
    difficulty[asked] = chances.difficulty
    return StandardizedFit.at(
        chances.problem,
        chances.optimum,
        (),
        lambda point: {"score": np.broadcast_to(score, (*point.shape[:-1], len(score)))},
        parameters={
            "difficulty": difficulty,
            "difficulty_sd": np.exp(chances.optimum.point[0, -1]),
        },
        data=data,
        grades=grades,
        chances=chances,
        share=share,
    )
