"""Scoring rules with questions as voters: Borda, Copeland and the share of pairwise wins."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayesrank.methods.preferences import (
    exact_weights,
    preference_counts,
    won_and_lost,
)
from bayesrank.validation import checks_options

FloatArray = NDArray[np.float64]


def borda(grades: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Score systems by the Borda count over questions.

    .. math:: s_l = \sum_m w_m (L - r_{lm})

    with :math:`r_{lm}` the average rank of system :math:`l` on question :math:`m`, 1 for the best.

    If only n of the L systems answered a question, the n - r opponents that a system beats among
    them count as :math:`(n - r)(L - 1)/(n - 1)`. If opponents are absent at random, this has the
    same expectation as the points against all opponents. A question that a system did not answer,
    or that only it answered, has no information on the system. Its score is its mean over the
    other questions times the number of questions, and (L - 1)/2 each if there are none.

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; NaN where a cell was not observed. Leading axes are resamples.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        Points summed over questions; higher is better.

    References
    ----------
    .. [1] J.-C. de Borda. Memoire sur les elections au scrutin. Histoire de l'Academie royale des
       sciences (1781).

    Examples
    --------
    >>> borda(np.array([[1.0, 0.5], [0.5, 0.5], [0.0, 0.0]]))
    array([3.5, 2.5, 0. ])
    """
    values = np.asarray(grades, dtype=np.float64)
    n_systems, n_questions = values.shape[-2:]
    w = exact_weights(weights, n_questions)
    observed = ~np.isnan(values)
    opponents = np.maximum(observed.sum(axis=-2) - 1, 0)
    scaled = w * np.where(opponents > 0, (n_systems - 1.0) / np.maximum(opponents, 1), 1.0)
    complete = observed.all()
    won, lost = won_and_lost(values, weights if complete else scaled)
    observed = observed[..., :1, :] if complete else observed  # all systems are alike
    compared = np.swapaxes(observed & (opponents > 0)[..., None, :], -1, -2).astype(np.float64)
    answered = np.matmul(w[..., None, :], compared)[..., 0, :]
    each = exact_weights(scaled, n_questions) * opponents
    points = (np.matmul(each[..., None, :], compared)[..., 0, :] + won - lost) / 2.0
    weight = w.sum(axis=-1)[..., None]
    mean = points * (weight / np.where(answered > 0.0, answered, 1.0))
    return np.where(answered > 0.0, mean, (n_systems - 1.0) / 2.0 * weight)


def copeland(grades: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Score systems by the number of opponents beaten minus the number lost to.

    .. math:: s_i = \sum_j \operatorname{sign}(C_{ij} - C_{ji})

    with :math:`C_{ij}` the number of questions on which the grade of i is higher than that of j.

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; a question counts for a pair when both answered it, NaN otherwise.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        Whole numbers from 1 - L to L - 1; higher is better.

    References
    ----------
    .. [1] A. H. Copeland. A reasonable social welfare function. Seminar on mathematics in social
       sciences, University of Michigan (1951).

    Examples
    --------
    >>> copeland(np.array([[1.0, 0.5], [0.5, 0.5], [0.0, 0.0]]))
    array([ 2.,  0., -2.])
    """
    counts = preference_counts(grades, weights)
    return np.sign(counts - np.swapaxes(counts, -1, -2)).sum(axis=-1)


def win_rate_step(_: Mapping[str, Any], n_systems: int, n_questions: int) -> float:
    """Return what one comparison is of all that a system may win, 0 if there is no other system."""
    return 1.0 / (n_questions * (n_systems - 1)) if n_systems > 1 else 0.0


def win_rate(grades: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    r"""Score systems by the share of their decisive pairwise comparisons that they win.

    .. math:: s_i = \sum_j C_{ij} \Big/ \sum_j (C_{ij} + C_{ji})

    with :math:`C_{ij}` the number of questions on which the grade of i is higher than that of j,
    and 1/2 for a system without a decisive comparison.

    Parameters
    ----------
    grades : numpy.ndarray of shape (..., system, question)
        Grades; a question counts for a pair when both answered it, NaN otherwise.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        Share in [0, 1]; higher is better.

    References
    ----------
    .. [1] M. Hariri et al. Ranking reasoning LLMs under test-time scaling (2026).
       https://doi.org/10.48550/arXiv.2603.10960

    Examples
    --------
    >>> win_rate(np.array([[1.0, 0.5], [0.5, 0.5], [0.0, 0.0]]))
    array([1.        , 0.66666667, 0.        ])
    """
    won, lost = won_and_lost(grades, weights)
    decisive = won + lost
    return np.where(decisive > 0.0, won / np.where(decisive > 0.0, decisive, 1.0), 0.5)


@checks_options
def battle_win_rate(
    wins: FloatArray, ties: FloatArray, *, ties_count: Literal["zero", "half", "ignore"] = "zero"
) -> FloatArray:
    r"""Score systems by the share of their battles that they win.

    Parameters
    ----------
    wins : numpy.ndarray of shape (..., system, opponent)
        ``wins[..., i, j]``: how often i beat j. Leading axes are resamples.
    ties : numpy.ndarray of shape (..., system, opponent)
        Symmetric tie counts.
    ties_count : {"zero", "half", "ignore"}, default "zero"
        Value of a tie: zero for both, half a win for both, or not counted as a battle.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        Share in [0, 1]; higher is better, and 1/2 for a system without battles that count.

    Raises
    ------
    ValueError
        If `ties_count` is unknown.

    References
    ----------
    .. [1] M. Hariri et al. Ranking reasoning LLMs under test-time scaling (2026).
       https://doi.org/10.48550/arXiv.2603.10960

    Examples
    --------
    >>> wins, ties = np.array([[0.0, 3.0], [1.0, 0.0]]), np.array([[0.0, 4.0], [4.0, 0.0]])
    >>> battle_win_rate(wins, ties), battle_win_rate(wins, ties, ties_count="half")
    (array([0.375, 0.125]), array([0.625, 0.375]))
    """
    won, lost, tied = wins.sum(axis=-1), wins.sum(axis=-2), ties.sum(axis=-1)
    battles = won + lost if ties_count == "ignore" else won + lost + tied
    points = won + 0.5 * tied if ties_count == "half" else won
    return np.where(battles > 0.0, points / np.where(battles > 0.0, battles, 1.0), 0.5)
