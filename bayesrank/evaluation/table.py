"""The table of metrics with their posteriors."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.evaluation.averages import Average
from bayesrank.evaluation.metrics import WORTH_METRICS, Metric, parse_metrics
from bayesrank.evaluation.posteriors import metric_posterior
from bayesrank.inference.arguments import point_arguments, prior_counts
from bayesrank.method import load_function
from bayesrank.methods.accuracy import question_mean
from bayesrank.responses import Responses
from bayesrank.validation import check_between_0_and_1

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FloatArray = NDArray[np.float64]
IntervalKind = Literal["exact", "normal"]


def evaluate(
    data: "Responses | ArrayLike",
    metrics: str | Sequence[str] = ("bayes", "avg"),
    *,
    prior_weight: float = 0.0,
    ci_prob: float = 0.95,
    interval: IntervalKind = "exact",
) -> pd.DataFrame:
    r"""Evaluate each system by metrics with a posterior.

    The outcomes of every question are draws from category probabilities with a uniform Dirichlet
    prior [1]_. What a metric would give for ever more trials on these questions is a function of
    the probabilities, so it has a posterior: of the mean worth for ``bayes``, of the chance that
    one of k new trials is right for ``pass_at_k``, and so on. The table holds its mean, its
    standard deviation and quantiles, all by numerical convolution over questions.

    ``avg`` is the posterior of ``bayes`` stretched about the prior mean by (1 + C + N) / N, which
    makes its mean the plain average [1]_ (equation 20). Its interval is cut at the smallest and
    largest weight, where the stretched one may leave them; ``bayes`` needs no cut.

    Parameters
    ----------
    data : Responses or array_like
        Categories of all systems; or of one system, of shape (question, trial). A question without
        trials has its prior for ``bayes`` and is left out of every other metric.
    metrics : str or sequence of str, default ("bayes", "avg")
        Names, with options in parentheses: ``"pass_at_k(k=4)"``,
        ``"g_pass_at_k_tau(k=4, tau=0.5)"``, ``"bayes(weights=(0, 0.5, 1))"`` for a worth of
        categories other than that of the data.
    prior_weight : float, default 0
        Pseudo-trials that each earlier outcome (`prior_outcomes` of the data) counts as; 1 takes
        an earlier version of a system for the system itself. ``avg`` does not use them.
    ci_prob : float, default 0.95
        Probability of the equal-tailed intervals.
    interval : {"exact", "normal"}, default "exact"
        Quantiles of the posterior, or the normal approximation of [1]_ cut at the range of the
        metric.

    Returns
    -------
    pandas.DataFrame
        One row per system and metric: ``system``, ``metric``, ``estimate`` (the unbiased estimate
        from the observed trials; the posterior mean for ``bayes``), ``mean``, ``sd``, ``lower``
        and ``upper``.

    Raises
    ------
    ValueError
        If a metric, an option or a number is not one that can be used.
    DataError
        If the data do not have what a metric needs.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025). https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> table = evaluate([[1, 1, 0], [1, 1, 1]], ["bayes", "pass_at_k(k=2)"])
    >>> table[["metric", "estimate", "lower", "upper"]].round(3)
               metric  estimate  lower  upper
    0           bayes       0.7  0.425  0.919
    1  pass_at_k(k=2)       1.0  0.619  0.992
    """
    responses = as_responses(data)
    wanted = parse_metrics(metrics)
    check_between_0_and_1(ci_prob, "ci_prob")
    if interval not in ("exact", "normal"):
        raise ValueError(f"interval must be 'exact' or 'normal'; got {interval!r}")
    tails = np.array([0.5 - ci_prob / 2, 0.5 + ci_prob / 2] if interval == "exact" else [])
    rows = []
    for metric in wanted:
        estimates = metric_estimates(metric, responses)
        for system, (estimate, posterior) in enumerate(
            zip(estimates, _posteriors(metric, responses, prior_weight, tails), strict=True)
        ):
            if interval == "exact":
                lower, upper = posterior.quantiles
            else:
                lower, upper = _normal_interval(metric, responses, posterior, ci_prob)
            value = posterior.mean if np.isnan(estimate) else estimate
            moments = (value, posterior.mean, posterior.sd, lower, upper)
            rows.append((responses.systems[system], metric.label, *moments))
    columns = ["system", "metric", "estimate", "mean", "sd", "lower", "upper"]
    table = pd.DataFrame(rows, columns=columns)
    # By system in the order of the data, then by metric as asked.
    order = np.arange(len(rows)).reshape(len(wanted), -1).T.ravel()
    return table.iloc[order].reset_index(drop=True)


def as_responses(data: Any) -> Responses:
    """Return responses as they are, or those of one system from a (question, trial) matrix."""
    if isinstance(data, Responses):
        responses = data
    elif hasattr(data, "dims") and hasattr(data, "coords"):
        responses = Responses.from_dataarray(data)
    else:
        outcomes = np.asarray(data)
        responses = Responses(outcomes[np.newaxis] if outcomes.ndim == 2 else outcomes)
    if responses.scores is not None:
        raise DataError(
            "outcomes must be categories for a posterior of metrics; got fractional scores: turn "
            "them into categories with categorize(edges=...)"
        )
    return responses


def metric_weights(metric: Metric, data: Responses) -> FloatArray:
    """Return the worth of each category under a metric.

    Raises
    ------
    DataError
        If neither the metric nor the data have one that fits.
    """
    own = metric.category_weights(None)
    if own is None:
        return data.category_weights
    if own.shape != (data.n_categories,) or not np.isfinite(own).all():
        raise DataError(
            f"weights of {metric.label} must be {data.n_categories} finite numbers, one per "
            f"category; got {metric.options['weights']!r}"
        )
    return own


def metric_estimates(metric: Metric, data: Responses) -> FloatArray:
    """Return the unbiased estimates from the observed trials, NaN for a posterior mean."""
    if metric.name == "bayes":
        return np.full(len(data.systems), np.nan)
    if metric.name == "avg":
        worth = data.counts @ metric_weights(metric, data)
        return question_mean(np.where(data.trials > 0, worth, np.nan) / np.maximum(data.trials, 1))
    function = load_function(metric.method.function)
    return function(*point_arguments(data, metric.method.data), **metric.options)


def prior_evidence(data: Responses, prior_weight: float) -> FloatArray:
    """Return pseudo-trials of earlier outcomes, of shape (system, question, category).

    Raises
    ------
    ValueError
        If the weight is not a number of at least 0.
    DataError
        If it is positive and there are no earlier outcomes.
    """
    if not 0 <= prior_weight < np.inf:
        raise ValueError(f"prior_weight must be a number of at least 0; got {prior_weight!r}")
    if prior_weight == 0:
        return np.zeros(data.counts.shape)
    earlier = prior_counts(data)
    if earlier is None:
        raise DataError(f"prior_outcomes must be given for prior_weight = {prior_weight}; got None")
    return prior_weight * np.broadcast_to(earlier, data.counts.shape).astype(np.float64)


def _posteriors(
    metric: Metric, data: Responses, prior_weight: float, tails: FloatArray
) -> Iterator[Average]:
    prior = prior_evidence(data, prior_weight)
    weights = metric_weights(metric, data)
    for counts, before in zip(data.counts.astype(np.float64), prior, strict=True):
        yield metric_posterior(metric, counts, before, weights, tails)


def _normal_interval(
    metric: Metric, data: Responses, posterior: Average, ci_prob: float
) -> tuple[float, float]:
    from scipy.special import ndtri  # exact intervals do not need SciPy

    half = float(ndtri(0.5 + ci_prob / 2)) * posterior.sd
    if metric.name in WORTH_METRICS or metric.method.data == "counts":
        weights = metric_weights(metric, data)
        low, high = float(weights.min()), float(weights.max())
    else:
        ends = load_function(metric.method.functional or "")(
            np.array([0.0, 1.0])[:, None, None], None, **metric.options
        )
        low, high = float(ends.min()), float(ends.max())
    return max(low, posterior.mean - half), min(high, posterior.mean + half)
