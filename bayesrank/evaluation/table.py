"""The table of metrics with their posteriors."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayesrank.catalog import DEFAULT_METHOD, METHODS
from bayesrank.design import part_with_outcomes
from bayesrank.display import to_html
from bayesrank.entrance import as_data, as_responses
from bayesrank.errors import DataError
from bayesrank.evaluation.averages import Average
from bayesrank.evaluation.metrics import WORTH_METRICS, Metric, metric_names, parse_metrics
from bayesrank.evaluation.posteriors import metric_posterior
from bayesrank.evaluation.ranked import metric_weights, ranked_result, worth_range
from bayesrank.inference.resample.arguments import point_arguments
from bayesrank.method import load_function
from bayesrank.methods.accuracy import question_mean
from bayesrank.responses import Responses, prior_counts
from bayesrank.results.leaderboard import result_draws
from bayesrank.results.summary import mean_grade
from bayesrank.validation import check_between_0_and_1, check_number, power_of_two
from bayesrank.views import Comparisons

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike

FloatArray = NDArray[np.float64]
IntervalKind = Literal["exact", "normal"]
COLUMNS = ("system", "metric", "score", "observed_mean", "mean", "sd", "lower", "upper")
# Score, mean, standard deviation, and both ends of the interval.
Row = tuple[float, float, float, float, float]


class Evaluation(pd.DataFrame):
    """A table of :func:`evaluate`; notebooks show the digits that its intervals support."""

    @property
    def _constructor(self) -> type["Evaluation"]:
        return Evaluation

    def _repr_html_(self) -> str | None:
        return to_html("evaluation_html", self) or super()._repr_html_()


def evaluate(
    data: Responses | Comparisons | ArrayLike,
    metrics: str | Sequence[str] | None = None,
    *,
    prior_weight: float = 0.0,
    ci_prob: float = 0.95,
    interval: IntervalKind = "exact",
    random_seed: int | None = None,
) -> pd.DataFrame:
    r"""Evaluate each system by metrics with a posterior.

    The accuracy (``avg``, or the default method of :func:`bayesrank.rank`) and the metrics of
    k trials, such as ``pass_at_k``, have the draws of :func:`bayesrank.rank`: score and interval
    are those of its leaderboard.

    ``bayes`` and metrics of k trials with ``estimator="posterior_mean"`` have the posterior for
    these questions under a uniform prior. The outcomes of every question are
    draws from category probabilities with a uniform Dirichlet prior [1]_, and a metric is a
    function of the probabilities: the mean worth for ``bayes``, the chance that one of k new trials
    is right for ``pass_at_k``, and so on. The table has the posterior mean, standard deviation
    and quantiles of this function, by numerical convolution over questions.

    Parameters
    ----------
    data : Responses, Battles, Comparisons, pandas.DataFrame or array_like
        Categories of all systems; or of one system, of shape (question, trial). A question without
        trials has its prior for ``bayes`` and is left out of every other metric; a system without
        any has no score (NaN). Or battles, as for
        :func:`bayesrank.evaluation.battles.evaluate_battles`.
    metrics : str or sequence of str, optional
        The accuracy by default, for battles the win rates. Names, with options in parentheses:
        ``"pass_at_k(k=4)"``, ``"g_pass_at_k_tau(k=4, tau=0.5)"``,
        ``"pass_hat_k(k=4, estimator='posterior_mean')"``, ``"bayes(weights=(0, 0.5, 1))"`` for
        a worth of categories other than that of the data.
    prior_weight : float, default 0
        Weight in pseudo-trials of each earlier outcome (`prior_outcomes` of the data); 1 counts
        them as trials. The accuracy and unbiased estimates do not use them.
    ci_prob : float, default 0.95
        Probability of the equal-tailed intervals.
    interval : {"exact", "normal"}, default "exact"
        Quantiles of the draws or of the posterior; or the published normal approximation [1]_ to
        the posterior under a uniform prior, cut at the range of the metric, with its mean and
        standard deviation. For ``avg`` it is the posterior of ``bayes`` stretched about the prior
        mean by (1 + C + N) / N, so that its mean is the plain average (equation 20).
    random_seed : int, optional
        As in :func:`bayesrank.rank`.

    Returns
    -------
    pandas.DataFrame
        One row per system and metric: ``system``, ``metric``, ``score`` (that of
        :func:`bayesrank.rank`), ``observed_mean`` (the mean grade with equal weights of questions),
        ``mean``, ``sd``, ``lower`` and ``upper``; scores are in the units of their scale.
        ``attrs["target"]`` has the target by metric.

    Raises
    ------
    ValueError
        If a metric, an option or a number is invalid.
    DataError
        If the data do not have what a metric needs.

    References
    ----------
    .. [1] M. Hariri et al. Don't Pass@k: a Bayesian framework for large language model
       evaluation (2025). https://doi.org/10.48550/arXiv.2510.04265

    Examples
    --------
    >>> table = evaluate([[1, 1, 0], [1, 1, 1]], ["bayes", "pass_at_k(k=2)"])
    >>> table[["metric", "score", "lower", "upper"]].round(3)
               metric  score  lower  upper
    0           bayes    0.7  0.425  0.919
    1  pass_at_k(k=2)    1.0  0.370  1.000
    """
    known = evaluated_data(data)
    if isinstance(known, Comparisons):
        from bayesrank.evaluation.battles import BATTLE_METRICS, evaluate_battles  # imports this

        if prior_weight:
            raise ValueError(f"prior_weight must be 0 for battles; got {prior_weight!r}")
        if interval != "exact":
            raise ValueError(f"interval must be 'exact' for battles; got {interval!r}")
        names = BATTLE_METRICS if metrics is None else metrics
        return evaluate_battles(known, names, ci_prob=ci_prob, random_seed=random_seed)
    whole, responses = known, part_with_outcomes(known)
    wanted = parse_metrics(DEFAULT_METHOD if metrics is None else metrics)
    check_between_0_and_1(ci_prob, "ci_prob")
    if interval not in ("exact", "normal"):
        raise ValueError(f"interval must be 'exact' or 'normal'; got {interval!r}")
    check_prior_weight(responses, prior_weight)
    for metric in wanted:
        require_outcomes(metric, responses)
    published = interval == "normal"
    rows, targets = [], {}
    for metric in wanted:
        if metric.ranked and not (published and metric.name != DEFAULT_METHOD):
            result = ranked_result(metric, responses, ci_prob=ci_prob, random_seed=random_seed)
            targets[metric.label] = result.attrs["target"]
            found = _ranked_rows(metric, responses, result, ci_prob, published)
        else:
            targets[metric.label] = "benchmark"
            found = _posterior_rows(metric, responses, prior_weight, ci_prob, published)
        rows += [
            (name, metric.label, estimate, observed, *values)
            for name, observed, (estimate, *values) in zip(
                responses.systems, observed_means(metric, responses), found, strict=True
            )
        ]
    unranked = set(whole.systems).difference(responses.systems)
    nothing = (np.nan,) * (len(COLUMNS) - 2)
    rows += [(name, metric.label, *nothing) for name in unranked for metric in wanted]
    # By system in the order of the data, then by metric as asked.
    rows.sort(key=lambda row: whole.systems.index(row[0]))
    table = Evaluation(rows, columns=pd.Index(COLUMNS))
    table.attrs.update(target=targets, ci_prob=ci_prob, empty="no outcome")
    return table


def _ranked_rows(
    metric: Metric, data: Responses, result: "xr.DataTree", ci_prob: float, normal: bool
) -> Iterator[Row]:
    """Return score, moments and interval of each system from a result of rank()."""
    ranking, draws = result["ranking"].to_dataset(), result_draws(result)
    unit = power_of_two(draws)  # squares of very large or small scores leave the range of float64
    mean, sd = draws.mean(axis=0), unit * (draws / unit).std(axis=0)
    lower, upper = ranking["score_lower"].values, ranking["score_upper"].values
    if normal:
        lower, upper = _normal_interval(mean, sd, ci_prob, *worth_range(metric, data))
    columns = (ranking["score"].values, mean, sd, lower, upper)
    return zip(*(column.tolist() for column in columns), strict=True)


def _posterior_rows(
    metric: Metric, data: Responses, prior_weight: float, ci_prob: float, normal: bool
) -> Iterator[Row]:
    """Return score, moments and interval of each system from its Dirichlet posteriors."""
    require_categories(data, metric.label)
    tails = np.array([] if normal else [0.5 - ci_prob / 2, 0.5 + ci_prob / 2])
    ends = _metric_range(metric, data) if normal else (-np.inf, np.inf)
    for estimate, posterior in zip(
        metric_estimates(metric, data), _posteriors(metric, data, prior_weight, tails), strict=True
    ):
        lower, upper = (
            posterior.quantiles
            if not normal
            else _normal_interval(posterior.mean, posterior.sd, ci_prob, *ends)
        )
        value = posterior.mean if np.isnan(estimate) else estimate
        yield value, posterior.mean, posterior.sd, lower, upper


def evaluated_data(data: Any) -> Responses | Comparisons:
    """Return responses or battles; an array of two dimensions is the matrix of one system."""
    known = as_data(data)
    labelled = any(hasattr(data, name) for name in ("systems", "dims", "columns"))
    if not labelled and np.ndim(data) == 2:
        return Responses(np.asarray(data)[np.newaxis])
    return known if isinstance(known, Comparisons) else as_responses(known, "or battles")


def responses_of(data: Any) -> Responses:
    """Return responses, as :func:`evaluated_data`."""
    return as_responses(evaluated_data(data), "to evaluate answers to questions")


def require_outcomes(metric: Metric, data: Responses) -> None:
    """Raise if a metric cannot take these outcomes.

    Raises
    ------
    DataError
        If the outcomes are scores or more than two categories; the message has the possible
        metrics.
    """
    if data.scale is not None and not metric.graded:
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
        If the outcomes are scores.
    """
    if data.scale is not None:
        remedy = f"evaluate {DEFAULT_METHOD}, or turn them into categories with"
        raise DataError(
            f"outcomes must be categories for {what}; got scores {data.scale}",
            in_python=f"{remedy} categorize(edges=...)",
            in_shell=f"{remedy} edges=(e1, ...)",
        )


def observed_means(metric: Metric, data: Responses) -> FloatArray:
    """Return the mean grade of each system, with the weights of the metric if it has them."""
    if data.scale is not None:
        return data.in_units(mean_grade(data.grades))
    if metric.category_weights(None) is None and data.weights is None:
        return np.full(len(data.systems), np.nan)
    worth = data.counts @ metric_weights(metric, data)
    return mean_grade(np.where(data.trials > 0, worth / np.maximum(data.trials, 1), np.nan))


def metric_estimates(metric: Metric, data: Responses) -> FloatArray:
    """Return the unbiased estimates from the observed trials, NaN for a posterior mean."""
    if not metric.ranked:
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
    check_prior_weight(data, prior_weight)
    earlier = prior_counts(data) if prior_weight else None
    if earlier is None:
        return np.zeros(data.counts.shape)
    return prior_weight * np.broadcast_to(earlier, data.counts.shape).astype(np.float64)


def check_prior_weight(data: Responses, prior_weight: float) -> None:
    """Raise for an invalid weight of earlier outcomes, and for a weight without such outcomes.

    Raises
    ------
    ValueError, DataError
        As :func:`prior_evidence`.
    """
    check_number(prior_weight, "prior_weight", least=0)
    if prior_weight and data.prior_outcomes is None:
        raise DataError(f"prior_outcomes must be given for prior_weight = {prior_weight}; got None")


def _posteriors(
    metric: Metric, data: Responses, prior_weight: float, tails: FloatArray
) -> Iterator[Average]:
    prior = prior_evidence(data, prior_weight)
    weights = metric_weights(metric, data)
    for counts, before in zip(data.counts.astype(np.float64), prior, strict=True):
        yield metric_posterior(metric, counts, before, weights, tails)


def _normal_interval(
    mean: Any, sd: Any, ci_prob: float, low: float, high: float
) -> tuple[Any, Any]:
    """Return the normal interval, cut at the least and the largest score."""
    from scipy.special import ndtri  # exact intervals do not need SciPy

    half = float(ndtri(0.5 + ci_prob / 2)) * sd
    return np.maximum(low, mean - half), np.minimum(high, mean + half)


def _metric_range(metric: Metric, data: Responses) -> tuple[float, float]:
    if metric.name in WORTH_METRICS or metric.method.data == "counts":
        return worth_range(metric, data)
    ends = load_function(metric.method.functional or "")(
        np.array([0.0, 1.0])[:, None, None], None, **metric.functional_options
    )
    return float(ends.min()), float(ends.max())
