"""The table of metrics with their posteriors."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayesrank.catalog import METHODS
from bayesrank.errors import DataError
from bayesrank.evaluation.averages import Average
from bayesrank.evaluation.metrics import WORTH_METRICS, Metric, metric_names, parse_metrics
from bayesrank.evaluation.posteriors import metric_posterior
from bayesrank.inference.arguments import point_arguments, prior_counts
from bayesrank.method import load_function
from bayesrank.methods.accuracy import question_mean
from bayesrank.ranking import rank
from bayesrank.responses import Responses
from bayesrank.results.evidence import mean_grade
from bayesrank.validation import check_between_0_and_1

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike

FloatArray = NDArray[np.float64]
IntervalKind = Literal["exact", "normal"]

COLUMNS = ("system", "metric", "estimate", "observed_mean", "mean", "sd", "lower", "upper")

# The same data always have the same table.
_SEED = 20_251_125


def evaluate(
    data: "Responses | ArrayLike",
    metrics: str | Sequence[str] | None = None,
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

    Scores on a scale have no categories. Of them there is ``avg`` alone, with the posterior that
    :func:`bayesrank.rank` draws for it.

    Parameters
    ----------
    data : Responses or array_like
        Outcomes of all systems; or of one system, of shape (question, trial). A question without
        trials has its prior for ``bayes`` and is left out of every other metric.
    metrics : str or sequence of str, optional
        By default ``bayes`` and ``avg``, of scores ``avg`` alone. Names, with options in
        parentheses: ``"pass_at_k(k=4)"``, ``"g_pass_at_k_tau(k=4, tau=0.5)"``,
        ``"bayes(weights=(0, 0.5, 1))"`` for a worth of categories other than that of the data.
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
        from the observed trials; the posterior mean for ``bayes``), ``observed_mean`` (the mean
        grade of the outcomes as they are), ``mean``, ``sd``, ``lower`` and ``upper``; scores are in
        the units of their scale.

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
    wanted = parse_metrics(default_metrics(responses) if metrics is None else metrics)
    check_between_0_and_1(ci_prob, "ci_prob")
    if interval not in ("exact", "normal"):
        raise ValueError(f"interval must be 'exact' or 'normal'; got {interval!r}")
    tails = np.array([0.5 - ci_prob / 2, 0.5 + ci_prob / 2] if interval == "exact" else [])
    for metric in wanted:
        require_outcomes(metric, responses)
    if responses.scale is not None:
        return _scores_table(responses, ci_prob, interval)
    rows = []
    for metric in wanted:
        observed = observed_means(metric, responses)
        estimates = metric_estimates(metric, responses)
        for system, (estimate, posterior) in enumerate(
            zip(estimates, _posteriors(metric, responses, prior_weight, tails), strict=True)
        ):
            if interval == "exact":
                lower, upper = posterior.quantiles
            else:
                lower, upper = _normal_interval(metric, responses, posterior, ci_prob)
            value = posterior.mean if np.isnan(estimate) else estimate
            moments = (value, observed[system], posterior.mean, posterior.sd, lower, upper)
            rows.append((responses.systems[system], metric.label, *moments))
    table = pd.DataFrame(rows, columns=pd.Index(COLUMNS))
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
    return responses


def default_metrics(data: Responses) -> tuple[str, ...]:
    """Return the metrics that are evaluated where none is named."""
    return ("bayes", "avg") if data.scale is None else ("avg",)


def require_outcomes(metric: Metric, data: Responses) -> None:
    """Raise for a metric of other outcomes than these.

    Raises
    ------
    DataError
        If the outcomes are scores or more than two categories; the message says which metrics
        there are for them.
    """
    if data.scale is not None and metric.label != "avg":
        require_categories(data, metric.label)
    if metric.method.data == "binary" and not data.is_binary:
        others = [name for name in metric_names() if METHODS[name].data != "binary"]
        raise DataError(
            f"outcomes must be right or wrong for {metric.label}; got {data.n_categories} "
            f"categories: evaluate {', '.join(others)}"
        )


def require_categories(data: Responses, what: str) -> None:
    """Raise for scores, which have no categories.

    Raises
    ------
    DataError
        If the outcomes are scores; the message says what needs categories.
    """
    if data.scale is not None:
        remedy = "evaluate avg, or turn them into categories with"
        raise DataError(
            f"outcomes must be categories for {what}; got scores {data.scale}",
            in_python=f"{remedy} categorize(edges=...)",
            in_shell=f"{remedy} edges=(e1, ...)",
        )


def observed_means(metric: Metric, data: Responses) -> FloatArray:
    """Return the mean grade of each system, by the worth of the metric where it has one."""
    own = metric.category_weights(None)
    if own is None and data.weights is None:
        return np.full(len(data.systems), np.nan)
    worth = data.counts @ metric_weights(metric, data)
    return mean_grade(np.where(data.trials > 0, worth / np.maximum(data.trials, 1), np.nan))


def _scores_table(data: Responses, ci_prob: float, interval: IntervalKind) -> pd.DataFrame:
    """Return the table of the mean of scores, as rank() has it."""
    ranking, draws = ranked_scores(data, ci_prob=ci_prob)
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    lower, upper = ranking["score_lower"].values, ranking["score_upper"].values
    if interval == "normal" and data.scale is not None:
        from scipy.special import ndtri  # exact intervals do not need SciPy

        half = float(ndtri(0.5 + ci_prob / 2)) * sd
        lower = np.maximum(mean - half, data.scale.low)
        upper = np.minimum(mean + half, data.scale.high)
    estimate, observed = ranking["score"].values, ranking["observed_mean"].values
    columns = (list(data.systems), "avg", estimate, observed, mean, sd, lower, upper)
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def ranked_scores(
    data: Responses,
    *,
    ci_prob: float = 0.95,
    draws: int | None = None,
    random_seed: int | None = _SEED,
) -> "tuple[xr.Dataset, FloatArray]":
    """Return what rank() says of the mean of scores, and its draws (chain, draw, system)."""
    tree = rank(data, "avg", ci_prob=ci_prob, draws=draws, random_seed=random_seed)
    return tree["ranking"].to_dataset(), tree["posterior"].to_dataset()["score"].values


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
            f"metrics must give {data.n_categories} finite weights, one per category; got "
            f"{metric.label!r}"
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
