"""Metrics that are methods of :func:`bayesrank.rank`, with the same results."""

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.errors import DataError
from bayesrank.evaluation.metrics import Metric
from bayesrank.ranking import rank
from bayesrank.responses import Responses


def ranked_result(
    metric: Metric,
    data: Responses,
    *,
    ci_prob: float = 0.95,
    draws: int | None = None,
    random_seed: int | None = None,
) -> xr.DataTree:
    """Rank by a metric that is a method with a posterior of its own.

    Parameters
    ----------
    metric : Metric
        A metric with a true attribute ``ranked``.
    data : Responses
        The data to be evaluated.
    ci_prob, draws, random_seed
        As in :func:`bayesrank.rank`.

    Returns
    -------
    xarray.DataTree
        The result of :func:`bayesrank.rank`, with the weights of the metric if it has them.
    """
    options = dict(metric.options)
    if options.pop("weights", None) is not None:
        data = Responses(
            data.outcomes,
            systems=data.systems,
            questions=data.questions,
            weights=metric_weights(metric, data),
            groups=data.groups,
            paired=data.paired,
        )
    return rank(data, metric.name, ci_prob=ci_prob, draws=draws, random_seed=random_seed, **options)


def metric_weights(metric: Metric, data: Responses) -> NDArray[np.float64]:
    """Return the worth of each category under a metric.

    Raises
    ------
    DataError
        If neither the metric nor the data have a worth for each category.
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


def worth_range(metric: Metric, data: Responses) -> tuple[float, float]:
    """Return the least and the largest score that a metric of the mean worth can have."""
    if data.scale is not None:
        return data.scale.low, data.scale.high
    weights = metric_weights(metric, data)
    return float(weights.min()), float(weights.max())
