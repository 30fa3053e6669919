"""Factories of paired-comparison models."""

from typing import Any, Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.special import log_softmax

from bayesrank.errors import DataError
from bayesrank.models.checked_data import checks_data
from bayesrank.models.distributions import BinomialReal, MultinomialReal
from bayesrank.models.score_priors import free_variable, positive_variable, zero_sum_score
from bayesrank.options import AtLeastOne
from bayesrank.priors import Flat, Normal, Prior, PriorLike, as_prior
from bayesrank.views import Comparisons

# How the results of a pair are named, seen from its first system.
_RESULTS = ["win", "loss", "tie"]


@checks_data
def bradley_terry(
    comparisons: Comparisons,
    *,
    prior: PriorLike = Normal(0.0, 1.0),
    ties: Literal["ignore", "half"] = "ignore",
    centred: bool = True,
    order_effect: bool = False,
) -> pm.Model:
    r"""Build the Bradley-Terry model of decisive comparisons.

    System :math:`i` beats system :math:`j` with probability
    :math:`\operatorname{logit}^{-1}(\theta_i - \theta_j)`. Only differences of :math:`\theta`
    are identified, so the scores are constrained to sum to zero.

    Parameters
    ----------
    comparisons : Comparisons
        Win and tie counts; fractions are allowed.
    prior : prior or float, default Normal(0, 1)
        Prior on the scores, in logits; a float is the standard deviation of a normal.
    ties : {"ignore", "half"}, default "ignore"
        Whether a tie is dropped or counts as half a win for both sides; :func:`davidson` models
        ties.
    centred : bool, default True
        Whether the scores sum to zero; if not, only the prior places them.
    order_effect : bool, default False
        Whether the system named first has an advantage :math:`h` in logits (home advantage,
        position bias), with a Normal(0, 1) prior: :math:`\operatorname{logit} P = \theta_i -
        \theta_j + h`. Needs comparisons that know who was named first.

    Returns
    -------
    pymc.Model
        Free ``score`` with dims ``("system",)`` (and ``order_effect``); ``strength``, its
        exponential; observed ``wins`` of the first system with dims ``("pair",)``.

    Raises
    ------
    DataError
        If no pair was ever decided and the prior is flat, or the order is not known.

    References
    ----------
    .. [1] R. A. Bradley and M. E. Terry. Rank analysis of incomplete block designs: I. The method
       of paired comparisons. Biometrika 39 (1952). https://doi.org/10.1093/biomet/39.3-4.324
    .. [2] R. R. Davidson and R. J. Beaver. On extending the Bradley-Terry model to incorporate
       within-pair order effects. Biometrics 33 (1977). https://doi.org/10.2307/2529467

    Examples
    --------
    >>> from bayesrank import Comparisons
    >>> model = bradley_terry(Comparisons([[0, 3], [1, 0]]))
    >>> [variable.name for variable in model.free_RVs]
    ['score']
    """
    prior = as_prior(prior).resolve(comparisons)
    won, total, first, second = _decided(comparisons, prior, ties, order_effect=order_effect)
    with pm.Model(coords=_coords(comparisons, first, second)) as model:
        score = zero_sum_score("score", prior) if centred else _uncentred_score(prior)
        pm.Deterministic("strength", pt.exp(score), dims="system")
        advantage = pm.Normal("order_effect", 0.0, 1.0) if order_effect else 0.0
        left, right = pm.Data("first", first, dims="pair"), pm.Data("second", second, dims="pair")
        BinomialReal(
            "wins",
            n=total[first, second],
            logit_p=score[left] - score[right] + advantage,
            observed=won[first, second],
            dims="pair",
        )
    return model


@checks_data
def thurstone_mosteller(
    comparisons: Comparisons,
    *,
    prior: PriorLike = Normal(0.0, 1.0),
    ties: Literal["ignore", "half"] = "ignore",
) -> pm.Model:
    r"""Build the Thurstone-Mosteller model (Case V) of decisive comparisons.

    Each system shows a normal performance around its score, with one variance and without
    correlation. The better performance wins, so that with the standard deviation of a difference of
    two performances as the unit, system :math:`i` beats system :math:`j` with probability
    :math:`\Phi(\theta_i - \theta_j)`.

    Parameters
    ----------
    comparisons : Comparisons
        Win and tie counts; fractions are allowed.
    prior : prior or float, default Normal(0, 1)
        Prior on the scores, which sum to zero; a float is the standard deviation of a normal. A
        score of 1 is worth about 1.7 logits.
    ties : {"ignore", "half"}, default "ignore"
        Whether a tie is dropped or counts as half a win for both sides.

    Returns
    -------
    pymc.Model
        Free ``score`` with dims ``("system",)``; observed ``wins`` of the first system with dims
        ``("pair",)``.

    Raises
    ------
    DataError
        If no pair was ever decided and the prior is flat.

    References
    ----------
    .. [1] L. L. Thurstone. A law of comparative judgment. Psychological Review 34 (1927).
       https://doi.org/10.1037/h0070288
    .. [2] F. Mosteller. Remarks on the method of paired comparisons: I. The least squares solution
       assuming equal standard deviations and equal correlations. Psychometrika 16 (1951).
       https://doi.org/10.1007/BF02313422

    Examples
    --------
    >>> from bayesrank import Comparisons
    >>> model = thurstone_mosteller(Comparisons([[0, 3], [1, 0]]))
    >>> [variable.name for variable in model.free_RVs]
    ['score']
    """
    prior = as_prior(prior).resolve(comparisons)
    won, total, first, second = _decided(comparisons, prior, ties)
    with pm.Model(coords=_coords(comparisons, first, second)) as model:
        score = zero_sum_score("score", prior)
        left, right = pm.Data("first", first, dims="pair"), pm.Data("second", second, dims="pair")
        ahead = score[left] - score[right]
        BinomialReal(
            "wins",
            n=total[first, second],
            # Log-odds, since a probability next to 1 would be 1.
            logit_p=_log_normal_cdf(ahead) - _log_normal_cdf(-ahead),
            observed=won[first, second],
            dims="pair",
        )
    return model


@checks_data
def davidson(
    comparisons: Comparisons,
    *,
    prior: PriorLike = Normal(0.0, 1.0),
    tie_prior: PriorLike = "normal(0, 2)",
) -> pm.Model:
    r"""Build Davidson's model of comparisons with ties.

    With strengths :math:`\pi_i = e^{\theta_i}`, a win of :math:`i`, a win of :math:`j` and a tie
    have probabilities in the proportion
    :math:`\pi_i : \pi_j : \nu \sqrt{\pi_i \pi_j}`.

    Parameters
    ----------
    comparisons : Comparisons
        Win and tie counts; fractions are allowed.
    prior : prior or float, default Normal(0, 1)
        Prior on the scores, which sum to zero, in logits.
    tie_prior : prior or float, default "normal(0, 2)"
        Prior on the logarithm of :math:`\nu`.

    Returns
    -------
    pymc.Model
        Free ``score`` with dims ``("system",)`` and ``log_tie_strength``; their exponentials
        ``strength`` and ``tie_strength``; observed ``results`` with dims ``("pair", "result")``.

    Raises
    ------
    DataError
        If there are no comparisons.

    References
    ----------
    .. [1] R. R. Davidson. On extending the Bradley-Terry model to accommodate ties in paired
       comparison experiments. Journal of the American Statistical Association 65 (1970).
       https://doi.org/10.1080/01621459.1970.10481082

    Examples
    --------
    >>> from bayesrank import Comparisons
    >>> model = davidson(Comparisons([[0, 3], [1, 0]], [[0, 2], [2, 0]]))
    >>> [variable.name for variable in model.free_RVs]
    ['score', 'log_tie_strength']
    """
    prior = as_prior(prior).resolve(comparisons)
    first, second = comparisons.pairs
    if not first.size:
        raise DataError("comparisons must hold one at least; got none")
    coords = _coords(comparisons, first, second) | {"result": _RESULTS}
    with pm.Model(coords=coords) as model:
        score = zero_sum_score("score", prior)
        pm.Deterministic("strength", pt.exp(score), dims="system")
        log_tie = free_variable("log_tie_strength", as_prior(tie_prior))
        pm.Deterministic("tie_strength", pt.exp(log_tie))
        left, right = pm.Data("first", first, dims="pair"), pm.Data("second", second, dims="pair")
        tied = log_tie + (score[left] + score[right]) / 2
        MultinomialReal(
            "results",
            log_p=log_softmax(pt.stack([score[left], score[right], tied], axis=-1), axis=-1),
            observed=_results(comparisons, first, second),
            dims=("pair", "result"),
        )
    return model


@checks_data
def rao_kupper(
    comparisons: Comparisons,
    *,
    prior: PriorLike = Normal(0.0, 1.0),
    tie_strength: AtLeastOne | None = None,
    threshold_prior: PriorLike = "normal(0, 2)",
) -> pm.Model:
    r"""Build the Rao-Kupper model of comparisons with ties.

    A difference below the threshold :math:`\log\kappa` is not noticed: with strengths
    :math:`\pi_i = e^{\theta_i}`,

    .. math:: P(i \text{ beats } j) = \frac{\pi_i}{\pi_i + \kappa \pi_j}, \qquad
        P(\text{tie}) = \frac{(\kappa^2 - 1) \pi_i \pi_j}
            {(\pi_i + \kappa \pi_j)(\kappa \pi_i + \pi_j)}.

    Parameters
    ----------
    comparisons : Comparisons
        Win and tie counts; fractions are allowed.
    prior : prior or float, default Normal(0, 1)
        Prior on the scores, which sum to zero, in logits.
    tie_strength : float, optional
        The threshold :math:`\kappa`, at least 1; estimated by default.
    threshold_prior : prior or float, default "normal(0, 2)"
        Prior on :math:`\log\kappa`, of which the positive half is taken; its location must be 0.

    Returns
    -------
    pymc.Model
        Free ``score`` with dims ``("system",)`` and, where it is estimated, ``log_tie_strength``;
        ``strength`` and ``tie_strength``, their exponentials; observed ``results`` with dims
        ``("pair", "result")``.

    Raises
    ------
    DataError
        If there are no comparisons.
    ValueError
        If `tie_strength` is below 1, or 1 although there are ties.

    References
    ----------
    .. [1] P. V. Rao and L. L. Kupper. Ties in paired-comparison experiments: a generalization of
       the Bradley-Terry model. Journal of the American Statistical Association 62 (1967).
       https://doi.org/10.1080/01621459.1967.10482901

    Examples
    --------
    >>> from bayesrank import Comparisons
    >>> model = rao_kupper(Comparisons([[0, 3], [1, 0]], [[0, 2], [2, 0]]), tie_strength=1.1)
    >>> [variable.name for variable in model.free_RVs]
    ['score']
    """
    prior = as_prior(prior).resolve(comparisons)
    first, second = comparisons.pairs
    if not first.size:
        raise DataError("comparisons must hold one at least; got none")
    if tie_strength is not None:
        _check_tie_strength(tie_strength, comparisons)
    coords = _coords(comparisons, first, second) | {"result": _RESULTS}
    with pm.Model(coords=coords) as model:
        score = zero_sum_score("score", prior)
        pm.Deterministic("strength", pt.exp(score), dims="system")
        if tie_strength is None:
            threshold = positive_variable("log_tie_strength", as_prior(threshold_prior))
        else:
            threshold = pt.log(pm.Data("fixed_tie_strength", np.float64(tie_strength)))
        pm.Deterministic("tie_strength", pt.exp(threshold))
        left, right = pm.Data("first", first, dims="pair"), pm.Data("second", second, dims="pair")
        ahead = score[left] - score[right]
        win, loss = -pt.softplus(threshold - ahead), -pt.softplus(threshold + ahead)
        # The logarithm of kappa squared less 1.
        tie = win + loss + 2 * threshold + pt.log1mexp(-2 * threshold)
        MultinomialReal(
            "results",
            log_p=pt.stack([win, loss, tie], axis=-1),
            observed=_results(comparisons, first, second),
            dims=("pair", "result"),
        )
    return model


def _decided(
    comparisons: Comparisons, prior: Prior, ties: str, *, order_effect: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return wins and decisive comparisons, and the systems of each pair that has some."""
    won, lost = _ordered(comparisons) if order_effect else (comparisons.wins, comparisons.wins.T)
    if ties == "half":
        shared = comparisons.ties / 2
        if order_effect:
            # Ties that do not say who was named first are split between the two orders.
            known = comparisons.first_ties
            shared = shared / 2 if known is None else known / 2
        won, lost = won + shared, lost + shared
    total = won + lost
    first, second = np.nonzero(total if order_effect else np.triu(total))
    if isinstance(prior, Flat) and not first.size:
        raise DataError("comparisons must hold a decisive one for a flat prior; got only ties")
    return won, total, first, second


def _log_normal_cdf(x: Any) -> Any:
    """Return log Phi in double precision; that of PyMC takes a square root of 2 in single."""
    # Neither branch overflows where it is not taken, nor bends where they meet.
    low, high = pt.minimum(x, 1.0) * 0.5**0.5, pt.maximum(x, -1.0) * 0.5**0.5
    return pt.switch(x < 0.0, pt.log(pt.erfcx(-low) / 2) - low**2, pt.log1p(-pt.erfc(high) / 2))


def _results(comparisons: Comparisons, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return wins, losses and ties of each pair, of shape (pair, result)."""
    wins, ties = comparisons.wins, comparisons.ties
    return np.stack([wins[first, second], wins[second, first], ties[first, second]], axis=-1)


def _check_tie_strength(tie_strength: float, comparisons: Comparisons) -> None:
    if tie_strength == 1.0 and comparisons.ties.any():
        raise ValueError(
            "tie_strength must be greater than 1 when the comparisons contain ties; got 1"
        )


def _uncentred_score(prior: Prior) -> Any:
    """Give scores that need not sum to zero independent priors.

    Independent normals are a zero-sum part and a common shift, independent of each other. The
    comparisons inform the first alone, so that keeping them apart lets both mix.
    """
    if not isinstance(prior, Normal):
        return free_variable("score", prior, dims="system")
    contrast = zero_sum_score("contrast", prior)
    shift = pm.Normal("shift", prior.mu, prior.sigma * contrast.shape[0] ** -0.5)
    return pm.Deterministic("score", contrast + shift, dims="system")


def _ordered(comparisons: Comparisons) -> tuple[np.ndarray, np.ndarray]:
    """Return wins and losses of each system against each other when it was named first."""
    if comparisons.first_wins is None or comparisons.second_wins is None:
        raise DataError(
            "comparisons must know who was named first for order_effect=True; got counts without "
            "an order",
            in_python="build them with Comparisons.from_battles",
            in_shell="rank battles, which name one system first",
        )
    return comparisons.first_wins, comparisons.second_wins.T


def _coords(
    comparisons: Comparisons, first: np.ndarray, second: np.ndarray
) -> dict[str, list[str]]:
    names = comparisons.systems
    pairs = [f"{names[i]} | {names[j]}" for i, j in zip(first, second, strict=True)]
    return {"system": list(names), "pair": pairs}
