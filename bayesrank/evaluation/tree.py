"""Evaluations as a result tree."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.catalog import DEFAULT_METHOD
from bayesrank.design import part_with_outcomes
from bayesrank.evaluation.metrics import Metric, parse_metrics
from bayesrank.evaluation.posteriors import metric_draws
from bayesrank.evaluation.ranked import metric_weights, ranked_result
from bayesrank.evaluation.table import (
    COLUMNS,
    evaluate,
    prior_evidence,
    require_categories,
    responses_of,
)
from bayesrank.inference.run import N_CHAINS
from bayesrank.responses import Responses
from bayesrank.results.storage import SCHEMA_VERSION
from bayesrank.results.tree import data_groups
from bayesrank.validation import check_integer, seed_sequence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FloatArray = NDArray[np.float64]


def evaluation_tree(
    data: "Responses | ArrayLike",
    metrics: str | Sequence[str] = DEFAULT_METHOD,
    *,
    prior_weight: float = 0.0,
    ci_prob: float = 0.95,
    draws: int = 500,
    random_seed: int | None = None,
) -> xr.DataTree:
    """Evaluate each system by metrics, as InferenceData.

    Parameters
    ----------
    data, metrics, prior_weight, ci_prob
        As in :func:`evaluate`.
    draws : int, default 500
        Draws per chain, of four chains.
    random_seed : int, optional
        As in :func:`bayesrank.rank`.

    Returns
    -------
    xarray.DataTree
        Follows ArviZ's InferenceData schema. The group ``posterior`` has ``score`` (chain, draw,
        system, metric): one draw of the category probabilities gives the scores of ``bayes`` and of
        all posterior means; the draws of other metrics are those of :func:`bayesrank.rank`.
        The group ``evaluation`` has the columns of :func:`evaluate` over (system, metric), where
        intervals are exact; ``observed_data`` and ``constant_data`` have the counts and all other
        data that a new evaluation needs.

    Raises
    ------
    ValueError
        If an argument is invalid.
    DataError
        If the data do not have what a metric needs.

    Examples
    --------
    >>> tree = evaluation_tree([[1, 1, 0], [1, 1, 1]], "bayes", draws=10, random_seed=1)
    >>> tree["posterior"]["score"].shape
    (4, 10, 1, 1)
    """
    check_integer(draws, "draws")
    responses = part_with_outcomes(responses_of(data))
    wanted = parse_metrics(metrics)
    table = evaluate(
        responses, metrics, prior_weight=prior_weight, ci_prob=ci_prob, random_seed=random_seed
    )
    labels = [metric.label for metric in wanted]
    coords = {"system": list(responses.systems), "metric": labels}
    summary = xr.Dataset(
        {
            name: (("system", "metric"), table[name].to_numpy().reshape(-1, len(labels)))
            for name in COLUMNS[2:]
        },
        coords=coords,
        attrs={"ci_prob": ci_prob, "prior_weight": prior_weight},
    )
    score = np.empty((N_CHAINS, draws, len(responses.systems), len(labels)))
    by_column = dict(enumerate(wanted))
    for column, metric in by_column.items():
        if metric.ranked:
            result = ranked_result(
                metric, responses, ci_prob=ci_prob, draws=draws, random_seed=random_seed
            )
            score[..., column] = result["posterior"].to_dataset()["score"].values
    others = {column: metric for column, metric in by_column.items() if not metric.ranked}
    if others:
        seed = seed_sequence(random_seed, responses.fingerprint)
        _draw_probabilities(score, others, responses, prior_weight, seed)
    posterior = xr.Dataset(
        {"score": (("chain", "draw", "system", "metric"), score)},
        coords={"chain": np.arange(N_CHAINS), "draw": np.arange(draws), **coords},
    )
    groups = {"posterior": posterior, "evaluation": summary}
    tree = xr.DataTree.from_dict(groups | data_groups(responses, "counts"))
    tree.attrs["schema_version"] = SCHEMA_VERSION
    return tree


def _draw_probabilities(
    score: FloatArray,
    metrics: Mapping[int, Metric],
    data: Responses,
    prior_weight: float,
    seed: np.random.SeedSequence,
) -> None:
    """Fill in the scores of metrics, by column, from draws of the category probabilities."""
    require_categories(data, next(iter(metrics.values())).label)
    counts = data.counts.astype(np.float64)
    prior = prior_evidence(data, prior_weight)
    for chain, own_seed in enumerate(seed.spawn(N_CHAINS)):
        rng = np.random.default_rng(own_seed)
        for part in batches(score.shape[1], counts.size):
            size = part.stop - part.start
            gammas = rng.standard_gamma(1.0 + counts + prior, (size, *counts.shape))
            p = gammas / gammas.sum(axis=-1, keepdims=True)
            for column, metric in metrics.items():
                score[chain, part, :, column] = metric_draws(
                    metric, p, counts.sum(axis=-1), metric_weights(metric, data)
                )
