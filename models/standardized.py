"""Factory of standardised accuracy: the mean chance of a right answer over all questions."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesrank.grades import UnitGrades
from bayesrank.models.crossed import crossed_effects
from bayesrank.models.observations import BinomialReal, checks_data
from bayesrank.priors import HIERARCHICAL, POOLED_DF, Normal, PriorLike, as_prior
from bayesrank.responses import Responses


@checks_data
def standardized_accuracy(responses: Responses, *, prior: PriorLike = Normal(0.0, 2.5)) -> pm.Model:
    r"""Build the model of the accuracy of each system on all questions.

    System :math:`l` answers question :math:`m` right with probability
    :math:`p_{lm} = \operatorname{logit}^{-1}(\theta_l - b_m)`, and its score is the mean of
    :math:`p_{lm}` over all questions that any system was asked (direct standardisation, the
    g-formula), in the units of the grades. With missing outcomes, the score allows for the
    difficulty of the questions that a system was asked. Fractional grades have a quasi-likelihood.

    The back end ``mml``, the default of :func:`bayesrank.rank`, integrates the difficulties out and
    leaves the abilities free. Its score has the mean observed grade of a question in place of
    :math:`p_{lm}`, and the latter for the share of the most trials of the question that the system
    lacks: without missing trials it is the observed mean. Its draws have the sampling distribution
    of the scores: see :mod:`bayesrank.inference.backends.standardized`. ``map`` and
    ``nuts`` shrink abilities by `prior`.

    Parameters
    ----------
    responses : Responses
        Scores, or categories with weights; cells without a trial are left out.
    prior : prior or float, default Normal(0, 2.5)
        Prior on the abilities, in logits; a float is the standard deviation of a normal. None for
        ``backend="mml"``.

    Returns
    -------
    pymc.Model
        Deterministic ``score`` with dims ``("system",)``, ``ability``, ``difficulty`` with dims
        ``("question",)``; observed ``graded`` with dims ``("cell",)``, a cell being a system and a
        question with at least one trial. If the number of systems differs between questions,
        ``asked_slope`` is the slope of the easiness of a question on the share of systems that were
        asked it, in logits.

    Raises
    ------
    DataError
        If there are more than two categories without weights.

    References
    ----------
    .. [1] J. Robins. A new approach to causal inference in mortality studies with a sustained
       exposure period. Mathematical Modelling 7 (1986).
       https://doi.org/10.1016/0270-0255(86)90088-6
    .. [2] R. W. M. Wedderburn. Quasi-likelihood functions, generalized linear models, and the
       Gauss-Newton method. Biometrika 61 (1974). https://doi.org/10.1093/biomet/61.3.439

    Examples
    --------
    >>> from bayesrank import Responses
    >>> model = standardized_accuracy(Responses([[[1, 0], [0, 0]], [[1, 1], [1, 0]]]))
    >>> [variable.name for variable in model.free_RVs]
    ['contrast', 'intercept']
    """
    grades = UnitGrades.of(responses)
    trials = grades.trials
    asked = trials.any(axis=0)
    trials, totals = trials[:, asked], grades.totals[:, asked]
    share = (trials > 0).mean(axis=0)
    system, question = np.nonzero(trials)
    systems = list(responses.systems)
    questions = [name for name, kept in zip(responses.questions, asked, strict=True) if kept]
    names = [f"{systems[i]} | {questions[m]}" for i, m in zip(system, question, strict=True)]
    coords = {"system": systems, "question": questions, "cell": names}
    with pm.Model(coords=coords) as model:
        ability, deviation = crossed_effects(
            "ability", as_prior(prior).resolve(responses), HIERARCHICAL
        )
        logit = ability[:, np.newaxis] - deviation
        if (trials.astype(bool).sum(axis=0) != (trials[:, 0] > 0).sum()).any():
            slope = pm.StudentT("asked_slope", nu=POOLED_DF, mu=0.0, sigma=1.0)
            logit = logit + slope * pm.Data("asked_share", share - share.mean(), dims="question")
        in_cell = (
            pm.Data("cell_system", system, dims="cell"),
            pm.Data("cell_question", question, dims="cell"),
        )
        BinomialReal(
            "graded",
            n=trials[system, question],
            logit_p=logit[in_cell],
            observed=totals[system, question],
            dims="cell",
        )
        worth = grades.low + (grades.high - grades.low) * pt.sigmoid(logit).mean(axis=1)
        pm.Deterministic("score", worth, dims="system")
    return model
