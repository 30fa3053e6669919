"""Draws around the unbiased estimates of metrics of k trials, such as pass@k.

Estimate and draws describe the same quantity, the metric of k fresh trials averaged over questions.
The draws have the mid-P confidence distribution of the score
(:mod:`bayesrank.inference.calibrate.mid_p`), which stays in the range and has the estimate near
its median.

- On a benchmark the variance is that by the trials of these questions (`within` of
  :mod:`bayesrank.inference.backends.cell_metrics`). For a score at an end of the range, n is the
  number of blocks of k trials.
- Over a population it is the variance between questions or their clusters, one more of them at an
  end of the range included. It is at least the variance by the distribution of the chances, since a
  few questions of a kind that was not asked may decide the mean. For a score at an end of the range
  n is the number of clusters. Systems depend on each other by a Gaussian copula with the
  correlations over clusters; the trial that the mid-P rule adds is each system's own.
"""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.inference.backends.cell_metrics import CellMetric, system_moments
from bayesrank.inference.calibrate.mid_p import UNLIMITED, mid_p_draws
from bayesrank.inference.fits.bordered import symmetric_root
from bayesrank.inference.resample.clusters import warn_of_few_groups
from bayesrank.inference.resample.contributions import ROUNDING
from bayesrank.inference.resample.trials import require_two_trials
from bayesrank.inference.resample.weights import question_clusters
from bayesrank.inference.run import Run, by_chain
from bayesrank.methods.thresholds import trials_drawn
from bayesrank.responses import Responses

Array = NDArray[np.float64]


def draw_around_unbiased(run: Run, score: Array) -> Array:
    """Draw scores (chain, draw, system) around their unbiased estimates.

    Systems with the same counts have the same draws, so that they stay tied. DataError if the data
    do not vary over the units of the target.
    """
    data = cast("Responses", run.data)
    worths = np.arange(2.0) if run.method.data == "binary" else data.category_weights
    metric = CellMetric(run.method, run.options, worths)
    low, high = metric.range(data.trials)
    if high - low <= ROUNDING * max(abs(low), abs(high)):
        return by_chain(np.tile(score, (run.size, 1)))  # certain by definition
    _, first, same = np.unique(
        data.counts.reshape(len(score), -1), axis=0, return_index=True, return_inverse=True
    )
    counts = data.counts[first]
    share = np.clip((score[first] - low) / (high - low), 0.0, 1.0)
    share = np.where(share < ROUNDING, 0.0, np.where(share > 1.0 - ROUNDING, 1.0, share))
    rng = np.random.default_rng(run.seed)
    mean, rest, within, between = np.transpose(system_moments(metric, counts, (low, high), rng))
    n_questions = counts.any(axis=-1).sum(axis=1).astype(np.float64)
    normals = rng.standard_normal((run.size, len(share)))
    if run.target == "population":
        warn_of_few_groups(data)
        values = (metric.estimate(counts) - low) / (high - low)
        trials = _ratio(n_questions * mean * rest, within + between, n_questions)
        trials, normals = _over_clusters(values, share, question_clusters(data), trials, normals)
    else:
        require_two_trials(data)
        trials = _ratio(n_questions * mean * rest, within, n_questions)
        blocks = counts.sum(axis=(1, 2)) / trials_drawn(run.options)
        trials = np.where((share > 0.0) & (share < 1.0), trials, blocks)
    # Evenly spread, so that intervals do not depend on the seed.
    levels = (normals.argsort(axis=0).argsort(axis=0) + 0.5) / run.size
    drawn = mid_p_draws(levels, share, trials)
    return by_chain(low + (high - low) * drawn[:, same.ravel()])


def _ratio(most: Array, variance: Array, least: Array) -> Array:
    """Return effective trials; a share of each question varies no more than one trial does."""
    return np.clip(most / np.maximum(variance, np.finfo(np.float64).tiny), least, UNLIMITED)


def _over_clusters(
    values: Array, share: Array, clusters: NDArray[np.intp], trials: Array, normals: Array
) -> tuple[Array, Array]:
    """Return effective trials by the variance over clusters, and correlated normal draws.

    `values` are estimates of the questions as shares of the range, NaN without trials, and `share`
    their means; `trials` are effective trials by the law of the chances, the most that are
    returned; `normals` are independent, (draw, system).
    """
    seen = ~np.isnan(values)
    deviation = np.where(seen, values - share[:, np.newaxis], 0.0)
    n_clusters = np.array([len(np.unique(clusters[own])) for own in seen])
    sums = np.stack([np.bincount(clusters, own) for own in deviation])
    sums /= seen.sum(axis=1, keepdims=True)
    covariance = sums @ sums.T
    most = share * (1.0 - share)
    inside = most > 0.0
    # One more cluster, at one end or the other, beside those observed.
    variance = (n_clusters * np.diag(covariance) + most / n_clusters) / (n_clusters + 1.0)
    by_clusters = np.where(inside, most / np.where(inside, variance, 1.0), n_clusters)
    trials = np.where(inside, np.minimum(trials, by_clusters), n_clusters)
    # What the mid-P rule adds to each system, relative to the variance of what they share.
    own = np.where(inside, (1.0 - 2.0 * most) / np.where(inside, trials * most, 1.0), 0.0)
    shared = np.where(inside, np.diag(covariance), 0.0)
    scale = np.sqrt(np.where(shared > 0.0, shared * (1.0 + own), np.inf))
    correlation = covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    return trials, normals @ symmetric_root(correlation)
