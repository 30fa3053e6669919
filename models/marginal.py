"""Factories of item response models with normally distributed abilities.

These are the models whose item parameters the back end ``mml`` estimates by marginal likelihood,
abilities integrated out; NUTS samples abilities and items together.
"""

from typing import Any

import pymc as pm
import pytensor.tensor as pt

from bayesrank.models.observations import BinomialReal, Cells, cells_of, checks_data
from bayesrank.models.pooled_priors import pooled, pooled_zero_sum
from bayesrank.models.score_priors import zero_sum_score
from bayesrank.priors import Normal
from bayesrank.responses import Responses
from bayesrank.validation import Finite, NonNegative, Positive, Probability

# Prior standard deviation of log discriminations, as in bayesrank.models.irt_2pl.
_LOG_DISCRIMINATION = Normal(0.0, 0.5)


@checks_data
def rasch_mml(
    responses: Responses,
    *,
    ability_mean: Finite | None = None,
    ability_sd: Positive | None = None,
    quantile: Probability | None = None,
) -> pm.Model:
    r"""Build the Rasch model with normally distributed abilities, for marginal likelihood.

    System :math:`l` answers question :math:`m` right with probability
    :math:`\operatorname{logit}^{-1}(\theta_l - b_m)` and :math:`\theta_l \sim N(\mu, \sigma^2)`.
    A given mean :math:`\mu` of the abilities fixes the location, else difficulties sum to zero. The
    unit slope fixes the scale, which is that of log-odds.

    The back end ``mml`` estimates :math:`b`, :math:`\mu` and :math:`\sigma` by marginal likelihood,
    leaves out questions that every system answered alike, and scores by the posterior mean of each
    ability given the items. Under NUTS the difficulties and an unknown :math:`\sigma` have the
    hierarchical priors of :func:`bayesrank.models.rasch`.

    Parameters
    ----------
    responses : Responses
        Binary outcomes; cells without a trial are left out.
    ability_mean : float, optional
        Mean of the abilities, in logits; estimated when omitted.
    ability_sd : float, optional
        Standard deviation of the abilities, in logits; estimated when omitted.
    quantile : float, optional
        The back end ``mml`` scores by this posterior quantile of each ability instead of the mean;
        the model and its draws are the same.

    Returns
    -------
    pymc.Model
        Free ``contrast``, abilities around their mean, with dims ``("system",)``, ``intercept``,
        log-odds of a system of mean ability, with dims ``("question",)``, and ``shift``, the mean
        ability, where `ability_mean` is given; deterministic ``score`` (the ability),
        ``difficulty`` and ``ability_sd``, the standard deviation over the systems; observed
        ``correct`` with dims ``("cell",)``.

    Raises
    ------
    DataError
        If outcomes are not binary.
    ValueError
        If `ability_sd` is not positive or `quantile` not between 0 and 1.

    References
    ----------
    .. [1] R. D. Bock and M. Aitkin. Marginal maximum likelihood estimation of item parameters:
       application of an EM algorithm. Psychometrika 46 (1981). https://doi.org/10.1007/BF02293801

    Examples
    --------
    >>> from bayesrank import Responses
    >>> model = rasch_mml(Responses([[[1, 0], [0, 0]], [[1, 1], [1, 0]]]))
    >>> [variable.name for variable in model.free_RVs]
    ['contrast', 'intercept']
    """
    cells = cells_of(responses)
    with pm.Model(coords=cells.coords) as model:
        contrast = _contrast(ability_sd)
        intercept = pooled("intercept", dims="question")
        spread = pm.Deterministic("ability_sd", _spread(contrast))
        if ability_mean is None:
            shift = intercept.mean()
        else:
            # The mean of this many abilities; the likelihood does not depend on it.
            n = contrast.shape[0].astype("float64")
            sd = spread if ability_sd is None else ability_sd
            shift = pm.Normal("shift", ability_mean, sd / pt.sqrt(n))
        pm.Deterministic("score", contrast + shift, dims="system")
        pm.Deterministic("difficulty", shift - intercept, dims="question")
        _observe(cells, contrast, intercept)
    return model


@checks_data
def irt_2pl_mml(
    responses: Responses,
    *,
    reg_discrimination: NonNegative = 0.01,
    quantile: Probability | None = None,
) -> pm.Model:
    r"""Build the two-parameter logistic model with standard normal abilities.

    System :math:`l` answers question :math:`m` right with probability
    :math:`\operatorname{logit}^{-1}(a_m (\theta_l - b_m))` and :math:`\theta_l \sim N(0, 1)`, which
    fixes location and scale: an ability is in standard deviations between systems.

    The back end ``mml`` estimates :math:`a` and :math:`b` by marginal likelihood, leaves out
    questions that every system answered alike, and scores by the posterior mean of each ability
    given the items. Under NUTS the discriminations and intercepts have the default priors of
    :func:`bayesrank.models.irt_2pl`, and the abilities at hand have mean 0 and standard deviation
    1.

    With single answers of few systems the data hardly determine discriminations, which become very
    large, and ``mml`` slow: 12 systems on 300 questions take 1 second, on 800 questions 12, on
    2,228 two minutes, and draws 25 times as long. :func:`bayesrank.models.irt_2pl`, with priors on
    the questions, takes less than a second.

    Parameters
    ----------
    responses : Responses
        Binary outcomes; cells without a trial are left out.
    reg_discrimination : float, default 0.01
        The back end ``mml`` subtracts :math:`\rho \sum_m (\log a_m)^2` from the log-likelihood: a
        question on which better systems do worse has no finite maximum otherwise. Under NUTS the
        prior does that.
    quantile : float, optional
        The back end ``mml`` scores by this posterior quantile of each ability instead of the mean;
        the model and its draws are the same.

    Returns
    -------
    pymc.Model
        Free ``contrast``, abilities in logits of a typical question, with dims ``("system",)``,
        ``log_slope`` and ``intercept`` with dims ``("question",)``; deterministic ``score`` (the
        standardised ability), ``discrimination`` and ``difficulty``; observed ``correct`` with dims
        ``("cell",)``.

    Raises
    ------
    DataError
        If outcomes are not binary.
    ValueError
        If `reg_discrimination` is negative or `quantile` not between 0 and 1.

    References
    ----------
    .. [1] R. D. Bock and M. Aitkin. Marginal maximum likelihood estimation of item parameters:
       application of an EM algorithm. Psychometrika 46 (1981). https://doi.org/10.1007/BF02293801

    Examples
    --------
    >>> from bayesrank import Responses
    >>> model = irt_2pl_mml(Responses([[[1, 0], [0, 0]], [[1, 1], [1, 0]]]))
    >>> [variable.name for variable in model.free_RVs]
    ['contrast', 'log_slope', 'intercept']
    """
    cells = cells_of(responses)
    with pm.Model(coords=cells.coords) as model:
        contrast = _contrast(None)
        slope = pt.exp(zero_sum_score("log_slope", _LOG_DISCRIMINATION, dims="question"))
        intercept = pooled("intercept", dims="question")
        spread = _spread(contrast)
        discrimination = pm.Deterministic("discrimination", slope * spread, dims="question")
        pm.Deterministic("score", contrast / spread, dims="system")
        pm.Deterministic("difficulty", -intercept / discrimination, dims="question")
        _observe(cells, contrast, intercept, slope)
    return model


def _contrast(ability_sd: float | None) -> Any:
    """State abilities around their mean."""
    if ability_sd is None:
        return pooled_zero_sum("contrast", dims="system")
    return zero_sum_score("contrast", Normal(0.0, ability_sd))


def _spread(contrast: Any) -> Any:
    """Return the standard deviation over the systems."""
    return pt.sqrt((contrast**2).sum() / pt.maximum(contrast.shape[0] - 1, 1))


def _observe(cells: Cells, contrast: Any, intercept: Any, slope: Any = None) -> None:
    system, question = cells.indices()
    lean = contrast[system] if slope is None else slope[question] * contrast[system]
    BinomialReal(
        "correct",
        n=cells.trials,
        logit_p=lean + intercept[question],
        observed=cells.correct,
        dims="cell",
    )
