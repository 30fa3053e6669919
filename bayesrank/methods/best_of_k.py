"""max@k: the expected best of k graded answers."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.methods.accuracy import question_mean
from bayesrank.methods.thresholds import (
    Estimator,
    as_trial_count,
    is_posterior_mean,
    log_factorials,
)

FloatArray = NDArray[np.float64]


def _category_weights(category_weights: ArrayLike, n_categories: int) -> FloatArray:
    values = np.asarray(category_weights, dtype=np.float64)
    if values.shape != (n_categories,) or not np.isfinite(values).all():
        raise ValueError(
            f"category_weights must be {n_categories} finite numbers, one per category; "
            f"got {category_weights!r}"
        )
    return values


def _expected_best(chance_all_below: FloatArray, ordered: FloatArray) -> FloatArray:
    """Return the mean of the best weight from the chance that no draw exceeds each category."""
    return ordered[-1] - (chance_all_below[..., :-1] * np.diff(ordered)).sum(axis=-1)


def beta_moment(first: FloatArray, total: FloatArray, power: int) -> FloatArray:
    """Return E p^power for p ~ Beta(first, total - first)."""
    rise = np.arange(power)
    return np.prod((first[..., None] + rise) / (total[..., None] + rise), axis=-1)


def max_at_k(
    counts: FloatArray,
    category_weights: ArrayLike,
    weights: FloatArray | None = None,
    *,
    k: int,
    estimator: Estimator = "unbiased",
) -> FloatArray:
    r"""Score systems by the expected weight of the best of k answers.

    .. math::

        s_l = \frac1M \sum_m E \max_{1 \le t \le k} w_{R_t}
            = \frac1M \sum_m \Bigl[w_{(C)} - \sum_{c < C} (w_{(c+1)} - w_{(c)})
              \binom{n_{lm}(c)}{k} \Big/ \binom{N}{k}\Bigr]

    where the k answers are drawn without replacement from the N observed ones, categories are
    ordered by weight and :math:`n_{lm}(c)` answers weigh at most :math:`w_{(c)}`. With weights
    (0, 1) this is pass@k.

    Parameters
    ----------
    counts : numpy.ndarray of shape (..., system, question, category)
        Number of answers in each category, whole numbers; a cell without answers is left out.
    category_weights : array_like of shape (category,)
        Worth of each category, in any order.
    weights : numpy.ndarray of shape (..., question), optional
        Multiplicity of each question, 1 by default.
    k : int
        Number of answers drawn; for the unbiased estimate at most the number observed in any cell.
    estimator : {"unbiased", "posterior_mean"}, default "unbiased"
        The mean over all choices of k of the observed answers; or the posterior mean for k new
        answers under a uniform Dirichlet prior of the categories, which is shrunk towards that
        prior.

    Returns
    -------
    numpy.ndarray of shape (..., system)
        Weight averaged over questions; higher is better.

    Raises
    ------
    ValueError
        If k is not an integer of at least 1, or the estimator, the counts or the category weights
        are not valid; for the unbiased estimate, if an observed cell has fewer than k answers.

    References
    ----------
    .. [1] M. Chen et al. Evaluating large language models trained on code (2021).
       https://doi.org/10.48550/arXiv.2107.03374

    Examples
    --------
    >>> counts = np.array([[[1, 1, 2]], [[0, 4, 0]]])
    >>> max_at_k(counts, (0.0, 0.5, 1.0), k=2).round(4)
    array([0.9167, 0.5   ])
    """
    k = as_trial_count(k)
    counts = np.asarray(counts, dtype=np.float64)
    values = _category_weights(category_weights, counts.shape[-1])
    order = np.argsort(values, kind="stable")
    if is_posterior_mean(estimator):
        below = np.cumsum(1.0 + counts[..., order], axis=-1)
        best = _expected_best(beta_moment(below, below[..., -1:], k), values[order])
        return question_mean(np.where(counts.sum(axis=-1) > 0, best, np.nan), weights)
    if not ((counts >= 0.0) & (counts == np.rint(counts))).all():
        raise ValueError("counts must be whole and non-negative; resample questions via weights")
    at_most = np.cumsum(counts[..., order], axis=-1).astype(np.intp)
    trials = at_most[..., -1]
    short = (trials > 0) & (trials < k)
    if short.any():
        raise ValueError(
            f"k must be at most the number of answers in every observed cell; got k = {k} with "
            f"{int(trials[trials > 0].min())} answers in the smallest one: set "
            "estimator='posterior_mean', which takes any k"
        )
    lf = log_factorials(int(trials.max(initial=0)))
    n = np.arange(lf.size)
    log_ways = np.where(n >= k, lf[n] - lf[np.maximum(n - k, 0)], -np.inf)
    total = np.where(trials > 0, log_ways[trials], np.inf)
    best = _expected_best(np.exp(log_ways[at_most] - total[..., None]), values[order])
    return question_mean(np.where(trials > 0, best, np.nan), weights)


def max_at_k_probability(
    p: FloatArray,
    category_weights: ArrayLike,
    weights: FloatArray | None = None,
    *,
    k: int,
) -> FloatArray:
    """Map category probabilities to the expected weight of the best of k fresh answers.

    `p` has shape (..., system, question, category) and sums to one over categories; the score has
    shape (..., system); see :func:`max_at_k`.
    """
    k = as_trial_count(k)
    p = np.asarray(p, dtype=np.float64)
    values = _category_weights(category_weights, p.shape[-1])
    order = np.argsort(values, kind="stable")
    at_most = np.minimum(np.cumsum(p[..., order], axis=-1), 1.0)
    return question_mean(_expected_best(at_most**k, values[order]), weights)
