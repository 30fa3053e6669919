r"""The kernel of the pass@k family: expected payoffs of k trials with a threshold schedule.

A metric of the family pays :math:`V_x` when x of k trials are right, with :math:`V_0 = 0` and
:math:`V_x = w_1 + ... + w_x`, so that its value is :math:`\sum_t w_t P(X \ge t)`. There are two
laws for X, and every metric is evaluated under either:

- the k trials are drawn without replacement from the N that were observed (hypergeometric): the
  unbiased estimate from a finite bank of trials, :func:`finite_bank_score`;
- the k trials are new ones, each right with probability p (binomial): :func:`fresh_trials_score`;
  under a Beta posterior of p that is a beta-binomial law, whose mean is the other estimate.
"""

import operator
from collections.abc import Mapping
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.methods.accuracy import question_mean
from bayesrank.validation import check_choice, numeric

FloatArray = NDArray[np.float64]
Estimator = Literal["unbiased", "posterior_mean"]

# (1 - p)^k stays a normal number and its Horner sum finite up to here for every p <= 1/2.
_LARGEST_HORNER_K = 1000


def as_trial_count(k: SupportsIndex) -> int:
    """Return the number of trials k as an int of at least 1, or raise ValueError."""
    try:
        count = operator.index(k)
    except TypeError:
        count = 0
    if count < 1 or isinstance(k, bool):
        raise ValueError(f"k must be an integer of at least 1; got {k!r}")
    return count


def is_posterior_mean(estimator: str) -> bool:
    """Return the name of one of the two estimators, or raise ValueError."""
    check_choice("estimator", estimator, Estimator)
    return estimator == "posterior_mean"


def trials_drawn(options: Mapping[str, Any]) -> int:
    """Return the number of trials k of a metric with these options."""
    return len(options.get("threshold_weights", ())) or int(options["k"])


def hypergeometric_payoff(n: int, payoff: FloatArray) -> FloatArray:
    """Return the expected payoff of k of n trials, for 0, 1, ..., n right ones among the n.

    `payoff` holds the payoff of 0, ..., k right answers; the result has n + 1 entries.
    """
    k = payoff.size - 1
    number = np.arange(n + 1.0)
    # log C(i, x) and log C(i, k - x) by their ratios: logs of large factorials would leave errors.
    right, wrong = np.zeros(n + 1), np.zeros(n + 1)
    for x in range(k):
        wrong[x + 1 :] += np.log((number[x + 1 :] - x) / (x + 1.0))
    log_all = wrong[n]
    expected, mass = np.zeros(n + 1), np.zeros(n + 1)
    for x in range(k + 1):
        inside = slice(x, n - k + x + 1)  # the c with x <= c and k - x <= n - c
        probability = np.exp(right[inside] + wrong[k - x : n - x + 1][::-1] - log_all)
        expected[inside] += payoff[x] * probability
        mass[inside] += probability
        if x < k:
            right[x + 1 :] += np.log((number[x + 1 :] - x) / (x + 1.0))
            wrong[k - x :] -= np.log((number[k - x :] - (k - x - 1.0)) / (k - x))
    # The mass is 1 up to rounding.
    return expected / mass


def posterior_payoff(correct: FloatArray, trials: FloatArray, payoff: FloatArray) -> FloatArray:
    """Return the posterior mean of the expected payoff of k fresh trials, under a uniform prior.

    `correct` and `trials` have the shape of the result, and may be fractions.
    """
    k = payoff.size - 1
    right, wrong = correct + 1.0, trials - correct + 1.0
    log_chance = np.zeros(correct.shape)  # of x right trials, by recursion from x = 0
    for step in range(k):
        log_chance += np.log((wrong + step) / (right + wrong + step))
    expected, mass = payoff[0] * np.exp(log_chance), np.exp(log_chance)
    for x in range(k):
        log_chance += np.log((k - x) / (x + 1.0) * (right + x) / (wrong + (k - x - 1.0)))
        expected += payoff[x + 1] * np.exp(log_chance)
        mass += np.exp(log_chance)
    return expected / mass  # the mass is 1 up to rounding


def binomial_payoff(p: FloatArray, payoff: FloatArray) -> FloatArray:
    """Return the expected payoff of k fresh trials that are right with probability p each."""
    if payoff.size - 1 > _LARGEST_HORNER_K:
        return _binomial_payoff_of_many(p, payoff)
    expected = np.empty(p.shape)
    low = p <= 0.5
    # From either end the odds are at most 1, so Horner's rule has only small, positive factors.
    expected[low] = _bernstein(p[low], payoff)
    expected[~low] = _bernstein(1.0 - p[~low], payoff[::-1])
    return expected


def _bernstein(p: FloatArray, payoff: FloatArray) -> FloatArray:
    """Evaluate sum_x C(k, x) p^x (1 - p)^(k - x) payoff_x for p <= 1/2."""
    k = payoff.size - 1
    odds = p / (1.0 - p)
    total = np.full(p.shape, payoff[k])
    for x in range(k - 1, -1, -1):
        total *= odds * ((k - x) / (x + 1.0))
        total += payoff[x]
    return total * (1.0 - p) ** k


def _binomial_payoff_of_many(p: FloatArray, payoff: FloatArray) -> FloatArray:
    """Return the same as :func:`binomial_payoff` for a k whose powers would overflow."""
    # Imported here because scipy.special costs more than a whole ranking, and k is rarely so large.
    from scipy.special import betainc

    k = payoff.size - 1
    expected = np.full(p.shape, payoff[0])
    for t in np.flatnonzero(np.diff(payoff)) + 1:
        expected += (payoff[t] - payoff[t - 1]) * betainc(t, k - t + 1, p)
    return expected


def as_payoff(threshold_weights: ArrayLike) -> FloatArray:
    """Return the payoff of 0, ..., k right answers from the weights of the thresholds 1, ..., k."""
    weights = numeric(threshold_weights, "threshold_weights")
    if weights.ndim != 1 or weights.size == 0 or not np.isfinite(weights).all():
        raise ValueError(
            "threshold_weights must be a non-empty sequence of finite numbers; "
            f"got {threshold_weights!r}"
        )
    return np.concatenate([[0.0], np.cumsum(weights)])


def check_bank(correct: FloatArray, trials: FloatArray, k: int) -> None:
    """Raise ValueError unless the counts are whole and every observed cell has k trials."""
    whole = (correct == np.rint(correct)) & (trials == np.rint(trials))
    if not (whole & (correct >= 0) & (correct <= trials)).all():
        raise ValueError(
            "correct and trials must be whole counts with 0 <= correct <= trials for a finite bank "
            "of trials; resample questions through weights"
        )
    short = (trials > 0) & (trials < k)
    if short.any():
        cells = short.any(axis=tuple(range(short.ndim - 2)))
        raise ValueError(
            f"k must be at most the number of trials of every observed cell; got k = {k}, but "
            f"{int(trials[trials > 0].min())} in the smallest one ({int(cells.sum())} of "
            f"{cells.size} cells of a system and a question have fewer than {k}): "
            f"set estimator='posterior_mean', which takes any k"
        )


def finite_bank_score(
    correct: FloatArray,
    trials: FloatArray,
    weights: FloatArray | None,
    payoff: FloatArray,
    estimator: Estimator = "unbiased",
) -> FloatArray:
    """Average the expected payoff of k trials over questions, estimated from the observed trials.

    Parameters
    ----------
    correct, trials : numpy.ndarray of shape (..., system, question)
        Right answers and trials, whole numbers; a cell without trials is left out.
    weights : numpy.ndarray of shape (..., question) or None
        Multiplicity of each question.
    payoff : numpy.ndarray of shape (k + 1,)
        Payoff of 0, ..., k right answers.
    estimator : {"unbiased", "posterior_mean"}, default "unbiased"
        The mean over all ways to choose k of the observed trials, or the posterior mean for k fresh
        ones under uniform priors of the chances.

    Returns
    -------
    numpy.ndarray of shape (..., system)

    Raises
    ------
    ValueError
        If the estimator is not known; for the unbiased one, if a count is not whole or an observed
        cell has fewer than k trials.
    """
    correct = np.asarray(correct, dtype=np.float64)
    trials = np.asarray(trials, dtype=np.float64)
    correct, trials = np.broadcast_arrays(correct, trials)
    if is_posterior_mean(estimator):
        expected = posterior_payoff(correct, trials, payoff)
        return question_mean(np.where(trials > 0, expected, np.nan), weights)
    check_bank(correct, trials, payoff.size - 1)
    right, size = correct.astype(np.intp), trials.astype(np.intp)
    # One row of the table per number of trials; resamples and cells only look values up.
    sizes = np.flatnonzero(np.bincount(size.ravel()))
    table = np.full((sizes.size, int(sizes[-1]) + 1), np.nan)
    for row, n in enumerate(sizes):
        if n > 0:
            table[row, : n + 1] = hypergeometric_payoff(int(n), payoff)
    return question_mean(table[np.searchsorted(sizes, size), right], weights)


def fresh_trials_score(p: FloatArray, weights: FloatArray | None, payoff: FloatArray) -> FloatArray:
    """Average the expected payoff of k fresh trials over questions.

    Parameters
    ----------
    p : numpy.ndarray of shape (..., system, question)
        Probability of a right answer; NaN for a cell to leave out.
    weights : numpy.ndarray of shape (..., question) or None
        Multiplicity of each question.
    payoff : numpy.ndarray of shape (k + 1,)
        Payoff of 0, ..., k right answers.

    Returns
    -------
    numpy.ndarray of shape (..., system)
    """
    return question_mean(binomial_payoff(np.asarray(p, dtype=np.float64), payoff), weights)
