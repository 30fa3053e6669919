"""Rankings with greedy runs, weighted by their agreement with the sampled trials."""

from typing import Literal, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from bayesrank.entrance import as_responses
from bayesrank.errors import DataError
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.methods.bayes import bayes
from bayesrank.responses import Responses, count_categories
from bayesrank.results.ranks import rank_scores
from bayesrank.studies.references import nan_mean
from bayesrank.validation import check_integer

FloatArray = NDArray[np.float64]
Score = Literal["bayes", "avg"]

# Below this many units of noise, the spread between conditions counts as zero: the weight is at its
# limit to five decimals, and the incomplete gamma function does not underflow.
_LEAST_RATIO = 1e-6
# Tolerance of halves for rounding errors of sums, so that labels of systems do not matter.
_ROUNDING = 1e-9


class Shrinkage(NamedTuple):
    """Accuracies shifted towards those of greedy runs, with leading axes for batches.

    Attributes
    ----------
    worth : numpy.ndarray of shape (..., system)
        Mean worth of an answer, shifted towards the greedy one.
    shift : numpy.ndarray of shape (..., system)
        The shift.
    weight : numpy.ndarray of shape (...)
        Share of the greedy accuracy, between 0 and 1.
    noise_sd : numpy.ndarray of shape (...)
        Standard deviation of a sampled mean worth over its trials.
    spread_sd : numpy.ndarray of shape (...)
        Standard deviation over systems of greedy minus sampled mean worth.
    """

    worth: FloatArray
    shift: FloatArray
    weight: FloatArray
    noise_sd: FloatArray
    spread_sd: FloatArray


def adaptive_greedy(data: Responses | ArrayLike, *, score: Score = "bayes") -> xr.Dataset:
    r"""Rank by Bayes@N or accuracy with greedy runs, weighted by their agreement with the trials.

    The mean worth of system l in sampled trials, :math:`y_l`, has noise of variance v. The mean
    worth of its greedy runs, :math:`g_l`, differs from the truth by a common shift of all systems
    and a shift of the system with variance :math:`\omega^2`. Given both variances the best estimate
    is

    .. math:: y_l + w (g_l - \bar g - y_l + \bar y), \qquad w = \frac{v}{v + \omega^2} .

    The differences :math:`g_l - y_l` have variance :math:`v + \omega^2`; with a flat prior on its
    logarithm above v, the weight is integrated over this variance in closed form. v is the variance
    within cells, or, with one trial per cell, the smaller of two upper bounds: the residual
    variance of the outcomes after systems and questions, and half the mean squared difference
    between greedy and sampled outcomes.

    The shift is rounded to the worth of one answer in one trial, the resolution of the data.
    If greedy and sampled accuracies disagree, the weight is small, the shift rounds to zero, and
    the ranking is that of the uniform prior with its ties. Without rounding, a tiny weight would
    break these ties by a greedy run that is hardly better than chance for them.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Outcomes with greedy outcomes (`prior_outcomes`).
    score : {"bayes", "avg"}, default "bayes"
        Posterior mean under the uniform prior plus the shift times the weight of the trials;
        or mean worth plus the shift.

    Returns
    -------
    xarray.Dataset
        Over system: ``score``, ``sd`` (its noise, given the weight), ``rank``, ``uniform`` (the
        score without greedy runs), ``uniform_rank``, ``greedy`` (mean worth of the greedy runs) and
        ``shift``. ``weight``, ``noise_sd`` and ``between_sd``, the estimate of omega.

    Raises
    ------
    DataError
        If the data have no greedy outcomes.
    ValueError
        If `score` is not known.

    References
    ----------
    .. [1] B. P. Hobbs, B. P. Carlin, S. J. Mandrekar and D. J. Sargent. Hierarchical commensurate
       and power prior models for adaptive incorporation of historical information in clinical
       trials. Biometrics 67 (2011). https://doi.org/10.1111/j.1541-0420.2011.01564.x

    Examples
    --------
    >>> from bayesrank.datasets import load_olympiad
    >>> study = adaptive_greedy(load_olympiad("BrUMO'25"))
    >>> round(float(study["weight"]), 4)
    0.0052
    """
    data = as_responses(data, "to study trials and questions")
    if score not in ("bayes", "avg"):
        raise ValueError(f"score must be 'bayes' or 'avg'; got {score!r}")
    sampled, greedy = condition_worths(data)
    unit = answer_worth(data)
    shrunk = shrink(sampled, greedy, unit=unit)
    uniform = shrunk.worth - shrunk.shift
    shift = shrunk.shift
    if score == "bayes":
        counts, weights, _ = point_arguments(data, "evidence")
        uniform = bayes(counts, weights, None)
        trials = data.trials
        shift = shift * (trials / (trials + data.n_categories)).mean(axis=1)
    return _label(data, uniform, shift, shrunk, nan_mean(nan_mean(greedy)))


def shrink(sampled: FloatArray, greedy: FloatArray, *, unit: float | None = None) -> Shrinkage:
    """Shift mean worths towards those of greedy runs, on arrays; see :func:`adaptive_greedy`.

    Parameters
    ----------
    sampled : numpy.ndarray of shape (..., system, question, trial)
        Worths, NaN where a trial is missing.
    greedy : numpy.ndarray of shape (..., system, question, earlier)
        Worths of greedy outcomes, NaN where one is missing.
    unit : float, optional
        Worth to which the sum of a system's shifts is rounded; not rounded by default.

    Returns
    -------
    Shrinkage

    Examples
    --------
    >>> sampled = np.array([[[1.0], [1.0], [0.0]], [[1.0], [0.0], [0.0]]])
    >>> shrink(sampled, sampled[::-1], unit=1.0).shift
    array([0., 0.])
    """
    trials = np.count_nonzero(~np.isnan(sampled), axis=-1)
    cells = nan_mean(sampled)
    own, other = nan_mean(cells), nan_mean(nan_mean(greedy))
    noise = _trial_variance(sampled, greedy) * _trials_share(trials)
    n_systems = own.shape[-1]
    difference = other - own
    # A system without greedy runs does not move, and does not inform the weight.
    paired = ~np.isnan(difference)
    count = np.count_nonzero(paired, axis=-1)
    centred = difference - nan_mean(difference)[..., None]
    spread = np.nansum(centred**2, axis=-1) / np.maximum(count - 1, 1)
    weight = np.where(count > 1, random_effects_weight(noise, spread, np.maximum(count, 2)), 0.0)
    shift = np.where(paired, weight[..., None] * centred, 0.0)
    if unit is not None:
        steps = shift * (trials.sum(axis=(-2, -1))[..., None] / n_systems / unit)
        whole = whole_answers(steps)
        shift = np.divide(shift * whole, steps, out=np.zeros_like(shift), where=whole != 0)
    return Shrinkage(own + shift, shift, weight, np.sqrt(noise), np.sqrt(spread))


def random_effects_weight(
    noise: FloatArray, spread: FloatArray, n_systems: int | NDArray[np.int64]
) -> FloatArray:
    r"""Integrate the weight v / V over V >= v, the variance of the differences.

    With a flat prior on log V and :math:`s^2` observed on L - 1 degrees of freedom, 1 / V is a
    Gamma variable of shape a = (L - 1) / 2 cut off at 1 / v, so

    .. math:: E[v / V] = \frac{a}{x} \frac{P(a + 1, x)}{P(a, x)}, \qquad x = \frac{a s^2}{v}

    with P the regularised incomplete gamma function.

    Parameters
    ----------
    noise : numpy.ndarray of shape (...)
        Variance v of a sampled mean.
    spread : numpy.ndarray of shape (...)
        Observed variance over systems of the differences.
    n_systems : int or numpy.ndarray of shape (...)
        Number of systems L, at least 2.

    Returns
    -------
    numpy.ndarray of shape (...)
        Between 0 and 1.

    Examples
    --------
    >>> random_effects_weight(np.array([1.0, 1.0]), np.array([1.0, 100.0]), 20).round(3)
    array([0.764, 0.01 ])
    """
    from scipy.special import gammainc  # importing this package should not cost SciPy

    shape = (np.asarray(n_systems) - 1) / 2
    certain = noise <= 0
    ratio = shape * spread / np.where(certain, 1.0, noise)
    ratio = np.maximum(ratio, _LEAST_RATIO)
    weight = shape / ratio * gammainc(shape + 1, ratio) / gammainc(shape, ratio)
    return np.where(certain, 0.0, np.clip(weight, 0.0, 1.0))


def whole_answers(steps: FloatArray) -> FloatArray:
    """Round to integers, halves up, with a tolerance for rounding errors of sums."""
    return np.floor(np.round(steps + 0.5, 9) + _ROUNDING)


def power_prior(data: Responses | ArrayLike, *, n_weights: int = 101) -> xr.Dataset:
    r"""Rank by Bayes@N with the greedy likelihood to an estimated power.

    A greedy outcome counts as :math:`a_0` trials, with a uniform prior on :math:`a_0` in [0, 1] and
    the normalised power prior of [1]_: its posterior is proportional to the probability of the
    sampled categories under the Dirichlet-multinomial distribution given the greedy outcomes. There
    is one power for all systems and questions. It measures how well greedy outcomes predict single
    answers, and does not detect shifts of whole systems that change a ranking;
    :func:`adaptive_greedy` does.

    Parameters
    ----------
    data : Responses, pandas.DataFrame or array_like
        Outcomes with greedy outcomes (`prior_outcomes`).
    n_weights : int, default 101
        Number of powers between 0 and 1 that the integral uses.

    Returns
    -------
    xarray.Dataset
        Over system: ``score``, ``rank``, ``uniform`` and ``uniform_rank``. Over power: its
        ``posterior``. ``weight``, the posterior mean of the power.

    Raises
    ------
    DataError
        If the data have no greedy outcomes.
    ValueError
        If `n_weights` is not an integer of at least 2.

    References
    ----------
    .. [1] Y. Duan, K. Ye and E. P. Smith. Evaluating water quality using power priors to
       incorporate historical information. Environmetrics 17 (2006).
       https://doi.org/10.1002/env.752

    Examples
    --------
    >>> from bayesrank.datasets import load_olympiad
    >>> power_prior(load_olympiad("BrUMO'25"))["score"].shape
    (20,)
    """
    data = as_responses(data, "to study trials and questions")
    check_integer(n_weights, "n_weights", least=2)
    from scipy.special import gammaln  # importing this package should not cost SciPy

    earlier = count_categories(greedy_outcomes(data), data.n_categories)
    powers = np.linspace(0.0, 1.0, n_weights)
    log_density, scores = np.empty(n_weights), np.empty((n_weights, len(data.systems)))
    for position, power in enumerate(powers):
        prior = 1.0 + power * earlier
        after = prior + data.counts
        log_density[position] = (
            gammaln(after).sum()
            - gammaln(prior).sum()
            + gammaln(prior.sum(axis=-1)).sum()
            - gammaln(after.sum(axis=-1)).sum()
        )
        scores[position] = bayes(data.counts + power * earlier, data.category_weights, None)
    posterior = np.exp(log_density - log_density.max())
    posterior /= posterior.sum()
    score = np.einsum("p,pl->l", posterior, scores)
    return xr.Dataset(
        {
            "score": ("system", score),
            "rank": ("system", rank_scores(score)),
            "uniform": ("system", scores[0]),
            "uniform_rank": ("system", rank_scores(scores[0])),
            "posterior": ("power", posterior),
            "weight": ((), posterior @ powers),
        },
        coords={"system": list(data.systems), "power": powers},
        attrs={"study": "power_prior"},
    )


def condition_worths(data: Responses) -> tuple[FloatArray, FloatArray]:
    """Return worths of sampled and greedy outcomes, NaN where missing.

    Raises
    ------
    DataError
        If there are no greedy outcomes.
    """
    greedy = greedy_outcomes(data)
    if data.scores is not None:
        return sampled_worths(data), np.where(greedy >= 0, greedy, np.nan).astype(np.float64)
    return sampled_worths(data), np.where(greedy >= 0, data.category_weights[greedy], np.nan)


def sampled_worths(data: Responses) -> FloatArray:
    """Return worths of sampled outcomes, NaN where missing."""
    if data.scores is not None:
        return np.asarray(data.scores)
    return np.where(data.observed, data.category_weights[data.outcomes], np.nan)


def answer_worth(data: Responses) -> float | None:
    """Return the smallest difference between the worths of two categories."""
    if data.scores is not None:
        return None
    gaps = np.diff(np.unique(data.category_weights))
    return float(gaps.min()) if len(gaps) else None


def greedy_outcomes(data: Responses) -> NDArray[np.int8]:
    """Return greedy outcomes of shape (system, question, d), repeated if systems share them."""
    greedy = data.prior_sets
    if greedy is None:
        raise DataError("prior_outcomes must hold greedy outcomes; got none")
    return np.broadcast_to(greedy, (*data.shape[:2], greedy.shape[-1]))


def _trials_share(trials: NDArray[np.int64]) -> FloatArray:
    """Return the variance of a system's mean per unit of trial variance, averaged over systems."""
    seen = trials > 0
    inverse = np.where(seen, 1.0 / np.maximum(trials, 1), 0.0).sum(axis=-1)
    return (inverse / np.maximum(seen.sum(axis=-1), 1) ** 2).mean(axis=-1)


def _trial_variance(sampled: FloatArray, greedy: FloatArray) -> FloatArray:
    """Estimate the variance of one trial, averaged over cells."""
    trials = np.count_nonzero(~np.isnan(sampled), axis=-1)
    if (trials >= 2).any():
        squares = np.nansum((sampled - nan_mean(sampled)[..., None]) ** 2, axis=-1)
        within = np.where(trials >= 2, squares / np.maximum(trials - 1, 1), np.nan)
        return nan_mean(within.reshape(*within.shape[:-2], -1))
    cells, before = nan_mean(sampled), nan_mean(greedy)
    earlier = np.count_nonzero(~np.isnan(greedy), axis=-1)
    squared = (cells - before) ** 2 / (1.0 + 1.0 / np.maximum(earlier, 1))
    return np.fmin(_residual_variance(cells), nan_mean(squared.reshape(*squared.shape[:-2], -1)))


def _residual_variance(cells: FloatArray) -> FloatArray:
    """Return the residual variance after the means of systems and questions."""
    system, question = nan_mean(cells), nan_mean(np.swapaxes(cells, -1, -2))
    overall = nan_mean(cells.reshape(*cells.shape[:-2], -1))
    residual = cells - system[..., None] - question[..., None, :] + overall[..., None, None]
    n_systems, n_questions = cells.shape[-2:]
    used = n_systems + n_questions - 1
    free = np.count_nonzero(~np.isnan(cells), axis=(-2, -1)) - used
    squares = np.nansum(residual**2, axis=(-2, -1))
    return np.where(free > 0, squares / np.maximum(free, 1), np.nan)


def _label(
    data: Responses,
    uniform: FloatArray,
    shift: FloatArray,
    shrunk: Shrinkage,
    greedy: FloatArray,
) -> xr.Dataset:
    score = uniform + shift
    between = np.sqrt(np.maximum(shrunk.spread_sd**2 - shrunk.noise_sd**2, 0.0))
    sd = shrunk.noise_sd * np.sqrt(1.0 - shrunk.weight)
    return xr.Dataset(
        {
            "score": ("system", score),
            "sd": ("system", np.full(len(score), sd)),
            "rank": ("system", rank_scores(score)),
            "uniform": ("system", uniform),
            "uniform_rank": ("system", rank_scores(uniform)),
            "greedy": ("system", greedy),
            "shift": ("system", shift),
            "weight": ((), shrunk.weight),
            "noise_sd": ((), shrunk.noise_sd),
            "between_sd": ((), between),
        },
        coords={"system": list(data.systems)},
        attrs={"study": "adaptive_greedy"},
    )
