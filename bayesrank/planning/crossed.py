r"""The posterior that decisions about further trials are based on.

Trials go to some cells and not to others, so the posterior has to use the correlation of cells: a
system that was asked only easy questions is not better for this reason. The model of the worth of a
trial is

.. math:: y_{lmn} = \mu + a_l + b_m + c_{lm} + e_{lmn}

with independent normal effects of the system, the question, their combination, and the trial.
Scores are the means of :math:`\mu + a_l + b_m + c_{lm}` over questions. Given the variances
the posterior is normal, and linear algebra gives it and its change by a further trial of any cell.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayesrank.validation import check_number

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Components:
    """Variances of the effects, for worths between 0 and 1.

    The defaults are for benchmarks on which both systems and questions differ. With a mean of 1/2
    the first three leave 0.09 for the mean of p (1 - p); the variance of a trial is larger, which
    is conservative.

    Attributes
    ----------
    system, question, cell, trial : float
    """

    system: float = 0.04
    question: float = 0.08
    cell: float = 0.04
    trial: float = 0.12

    def __post_init__(self) -> None:
        for name in ("system", "question", "cell", "trial"):
            check_number(getattr(self, name), name, above=0)


DEFAULT = Components()


class CrossedPosterior:
    """Normal posterior of the scores of systems, and the information of further trials.

    Parameters
    ----------
    totals : numpy.ndarray of shape (system, question)
        Sum of the worths of the trials, each between 0 and 1.
    trials : numpy.ndarray of shape (system, question)
        Number of trials, 0 or more.
    components : Components
        Variances of the effects.

    Attributes
    ----------
    mean : numpy.ndarray of shape (system,)
        Posterior mean of the scores.
    covariance : numpy.ndarray of shape (system, system)
        Their posterior covariance.
    leverage : numpy.ndarray of shape (system, system, question)
        Covariance of the score of the first system with the worth of a cell.
    trial_variance : numpy.ndarray of shape (system, question)
        Variance of the worth of the next trial of a cell.
    """

    def __init__(
        self, totals: FloatArray, trials: FloatArray, components: Components = DEFAULT
    ) -> None:
        n_systems, n_questions = trials.shape
        observed = trials > 0
        n = np.where(observed, trials, 1.0)
        # The effect of a cell is integrated out: its mean is an observation with this variance.
        noise = components.cell + components.trial / n
        precision = np.where(observed, 1.0 / noise, 0.0)
        kept = np.where(observed, components.cell / noise, 0.0)  # variance of the residual, by cell
        worth = np.where(observed, totals / n - 0.5, 0.0)

        effects = self._covariance_of_effects(precision, components)
        pull = precision * worth
        estimate = effects @ np.concatenate([pull.sum(axis=1), pull.sum(axis=0)])

        form = np.zeros((n_systems, n_systems + n_questions))
        own = np.arange(n_systems)
        form[own, own] = 1.0 - kept.mean(axis=1)
        form[:, n_systems:] = (1.0 - kept) / n_questions
        self.mean = 0.5 + form @ estimate + (kept * worth).mean(axis=1)

        left = components.cell * (1.0 - kept)
        projected = form @ effects
        self.covariance = projected @ form.T
        self.covariance[own, own] += left.sum(axis=1) / n_questions**2

        by_system, by_question = projected[:, :n_systems], projected[:, n_systems:]
        self.leverage = (1.0 - kept) * (by_system[:, :, None] + by_question[:, None, :])
        self.leverage[own, own] += left / n_questions
        spread = np.diag(effects)
        of_sum = spread[:n_systems, None] + spread[n_systems:]
        of_sum = of_sum + 2.0 * effects[:n_systems, n_systems:]
        self.trial_variance = (1.0 - kept) ** 2 * of_sum + left + components.trial

    @staticmethod
    def _covariance_of_effects(precision: FloatArray, components: Components) -> FloatArray:
        """Return the posterior covariance of the effects of systems, then questions."""
        n_systems, n_questions = precision.shape
        # The common mean needs no effect of its own: the effects of questions include it.
        of_system = precision.sum(axis=1) + 1.0 / components.system
        of_question = precision.sum(axis=0) + 1.0 / components.question
        # Both diagonal blocks are diagonal: only the Schur complement of the systems is inverted.
        share = precision / of_question
        covariance = np.empty((n_systems + n_questions,) * 2)
        systems = np.linalg.inv(np.diag(of_system) - share @ precision.T)
        covariance[:n_systems, :n_systems] = systems
        covariance[:n_systems, n_systems:] = mixed = -systems @ share
        covariance[n_systems:, :n_systems] = mixed.T
        covariance[n_systems:, n_systems:] = -share.T @ mixed
        questions = np.arange(n_systems, n_systems + n_questions)
        covariance[questions, questions] += 1.0 / of_question
        return covariance
