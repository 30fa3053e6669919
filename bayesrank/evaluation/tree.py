"""Evaluations as a result tree."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bayesrank.evaluation.metrics import parse_metrics
from bayesrank.evaluation.posteriors import metric_draws
from bayesrank.evaluation.table import (
    COLUMNS,
    as_responses,
    default_metrics,
    evaluate,
    metric_weights,
    prior_evidence,
    ranked_scores,
)
from bayesrank.inference.estimate import N_CHAINS
from bayesrank.responses import Responses
from bayesrank.results.tree import data_groups
from bayesrank.validation import checked_seed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Doubles per batch of category probabilities: 32 MB.
_BATCH_SIZE = 2**22


def evaluation_tree(
    data: "Responses | ArrayLike",
    metrics: str | Sequence[str] | None = None,
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
        Same seed, same draws.

    Returns
    -------
    xarray.DataTree
        Follows ArviZ's InferenceData schema. The group ``posterior`` has ``score`` (chain, draw,
        system, metric): one draw of the category probabilities gives the scores of all metrics.
        The group ``evaluation`` has the columns of :func:`evaluate` over (system, metric), where
        intervals are exact; ``observed_data`` and ``constant_data`` have the counts and what else
        a new evaluation needs.

    Raises
    ------
    ValueError
        If an argument is not one that can be used.
    DataError
        If the data do not have what a metric needs.

    Examples
    --------
    >>> tree = evaluation_tree([[1, 1, 0], [1, 1, 1]], "bayes", draws=10, random_seed=1)
    >>> tree["posterior"]["score"].shape
    (4, 10, 1, 1)
    """
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
        raise ValueError(f"draws must be an integer of at least 1; got {draws!r}")
    responses = as_responses(data)
    names = default_metrics(responses) if metrics is None else metrics
    wanted = parse_metrics(names)
    table = evaluate(responses, names, prior_weight=prior_weight, ci_prob=ci_prob)
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
    if responses.scale is not None:
        _, scores = ranked_scores(responses, draws=draws, random_seed=random_seed)
        return _arrange(scores[..., np.newaxis], summary, responses)
    score = np.empty((N_CHAINS, draws, len(responses.systems), len(labels)))
    counts = responses.counts.astype(np.float64)
    prior = prior_evidence(responses, prior_weight)
    step = max(1, _BATCH_SIZE // counts.size)
    for chain, seed in enumerate(np.random.SeedSequence(checked_seed(random_seed)).spawn(N_CHAINS)):
        rng = np.random.default_rng(seed)
        for start in range(0, draws, step):
            size = min(step, draws - start)
            # Gamma variables add up, so both draws come from the same trials.
            later = rng.standard_gamma(1.0 + counts, (size, *counts.shape))
            both = later + rng.standard_gamma(prior, (size, *counts.shape))
            p, p_later = _normalized(both), _normalized(later)
            for column, metric in enumerate(wanted):
                weights = metric_weights(metric, responses)
                score[chain, start : start + size, :, column] = metric_draws(
                    metric, p, p_later, counts.sum(axis=-1), weights
                )
    return _arrange(score, summary, responses)


def _arrange(score: NDArray[np.float64], summary: xr.Dataset, responses: Responses) -> xr.DataTree:
    """Return draws of shape (chain, draw, system, metric), the table and the data as a tree."""
    dims = ("chain", "draw", "system", "metric")
    numbers = {dim: np.arange(score.shape[axis]) for axis, dim in enumerate(dims[:2])}
    posterior = xr.Dataset({"score": (dims, score)}, coords={**numbers, **summary.coords})
    groups = {"posterior": posterior, "evaluation": summary}
    return xr.DataTree.from_dict(groups | data_groups(responses, "counts"))


def _normalized(gammas: NDArray[np.float64]) -> NDArray[np.float64]:
    return gammas / gammas.sum(axis=-1, keepdims=True)
