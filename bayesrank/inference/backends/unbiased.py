r"""Draws around the unbiased estimates of metrics of k trials, such as pass@k.

Estimate and draws describe the same quantity, the metric of k fresh trials averaged over questions.
The draws have the mid-P confidence distribution of the score
(:func:`bayesrank.inference.backends.standardized.mid_p_quantile`), which stays in the range and
has the estimate near its median.

- On a benchmark the variance is over the trials of these questions (`within` of
  :class:`Moments`). For a score at an end of the range, n is the number of blocks of k trials.
- Over a population it is the variance between questions or their clusters, with one more of them at
  an end of the range. It is at least the variance under the distribution of the chances, since a
  few questions of another kind may dominate the mean. For a score at an end of the range
  n is the number of clusters. The dependence of systems is a Gaussian copula with the
  correlations over clusters; the trial that the mid-P rule adds is independent for each system.

The trials of one question do not identify the variance of its estimate if there are at most k of
them, or if all are right. The variance is averaged over the posterior of the chance. The chances
:math:`p_m` of a system have one distribution (empirical Bayes),

.. math:: p_m = u \pi + (1 - u) b_m, \qquad
          b_m \sim \mathrm{Beta}\bigl(\pi (1 - \rho) / \rho, (1 - \pi) (1 - \rho) / \rho\bigr)

with mean :math:`\pi`, intraclass correlation :math:`\rho` of the trials of a question, and a share
u that keeps the chances away from 0 and 1. The mean is that of the trials with one more trial that
is half right. Correlation and share have uniform priors; results are averaged over their posterior.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

from bayesrank.inference.backends.standardized import UNLIMITED, mid_p_draws
from bayesrank.inference.fits.fit import symmetric_root
from bayesrank.inference.resample.trials import require_two_trials
from bayesrank.inference.resample.units import (
    ROUNDING,
    left_out_scale,
    question_clusters,
    warn_of_few_groups,
)
from bayesrank.inference.run import Run, by_chain
from bayesrank.method import Method, load_function
from bayesrank.methods.thresholds import log_factorials, trials_drawn

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

# Nodes of a uniform correlation, by Gauss and Legendre, and equally likely shares.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_SHARES = np.arange(4) / 4.0

# Nodes per standard deviation, and the fewest nodes, on the arc sine scale, where a share of n
# trials has the standard deviation 1 / (2 sqrt(n)).
_PER_SD, _FEWEST = 5.0, 64

# Simulated questions where moments have no closed form: a variance is known to 1 or 2 %.
_SIMULATED = 30_000


def draw_around_unbiased(run: Run, score: Array) -> Array:
    """Draw scores (chain, draw, system) around their unbiased estimates.

    Systems with the same counts have the same draws, so that they stay tied. DataError if the data
    do not vary over the units of the target.
    """
    data = run.responses
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
    """Return effective trials; the share of a question varies at most as much as one trial."""
    return np.clip(most / np.maximum(variance, np.finfo(np.float64).tiny), least, UNLIMITED)


def _over_clusters(
    values: Array, share: Array, clusters: NDArray[np.intp], trials: Array, normals: Array
) -> tuple[Array, Array]:
    """Return effective trials by the variance over clusters, and correlated normal draws.

    `values` are estimates of the questions as shares of the range, NaN without trials, and `share`
    their means; `trials` are effective trials under the law of the chances, an upper bound of the
    returned ones; `normals` are independent, (draw, system).
    """
    seen = ~np.isnan(values)
    deviation = np.where(seen, values - share[:, np.newaxis], 0.0)
    n_clusters = np.array([len(np.unique(clusters[own])) for own in seen])
    sums = np.stack([np.bincount(clusters, own) for own in deviation])
    sums /= seen.sum(axis=1, keepdims=True)
    # Clusters of unequal size have the leverage of the cluster jackknife, relative to equal ones.
    sizes = np.stack([np.bincount(clusters, own) for own in seen])
    n = n_clusters[:, np.newaxis]
    sums *= np.sqrt((n - 1.0) / n) * left_out_scale(sizes / sizes.sum(axis=1, keepdims=True), n)
    covariance = sums @ sums.T
    most = share * (1.0 - share)
    inside = most > 0.0
    # One more cluster, at one end of the range or the other.
    variance = (n_clusters * np.diag(covariance) + most / n_clusters) / (n_clusters + 1.0)
    by_clusters = np.where(inside, most / np.where(inside, variance, 1.0), n_clusters)
    trials = np.where(inside, np.minimum(trials, by_clusters), n_clusters)
    # The variance that the mid-P rule adds to each system, relative to the shared variance.
    own = np.where(inside, (1.0 - 2.0 * most) / np.where(inside, trials * most, 1.0), 0.0)
    shared = np.where(inside, np.diag(covariance), 0.0)
    scale = np.sqrt(np.where(shared > 0.0, shared * (1.0 + own), np.inf))
    correlation = covariance / np.outer(scale, scale)
    np.fill_diagonal(correlation, 1.0)
    return trials, normals @ symmetric_root(correlation)


@dataclass(frozen=True)
class CellMetric:
    """A metric of k trials as a function of the answers to one question."""

    # Row of the catalog with a functional, and its options.
    method: Method
    options: Mapping[str, Any]
    # Worth of each category; of right and wrong answers if the metric takes only these.
    worths: Array

    @property
    def is_binary(self) -> bool:
        """Whether answers are right or wrong."""
        return self.method.data == "binary"

    def estimate(self, counts: Array | Counts) -> Array:
        """Return unbiased estimates from counts of shape (..., category), NaN without trials."""
        trials = counts.sum(axis=-1)
        seen = trials > 0
        one = counts[seen][:, np.newaxis, np.newaxis]
        arguments = (one[..., 1], one.sum(axis=-1)) if self.is_binary else (one, self.worths)
        found = np.full(seen.shape, np.nan)
        found[seen] = load_function(self.method.function)(*arguments, **self.options)[:, 0]
        return found

    def expect(self, chances: Array) -> Array:
        """Return the metric of k fresh trials for chances of shape (..., category)."""
        one = chances[..., np.newaxis, np.newaxis, :]
        arguments = (one[..., 1],) if self.is_binary else (one, self.worths)
        options = self.method.functional_options(self.options)
        return load_function(self.method.functional or "")(*arguments, **options)[..., 0]

    def range(self, trials: Counts) -> tuple[float, float]:
        """Return the least and the largest value that an estimate or its expectation can have."""
        if not self.is_binary:
            return float(self.worths.min()), float(self.worths.max())
        sizes = np.unique(trials[trials > 0]).tolist()
        values = [self.estimate(_binary(np.arange(n + 1.0), n)) for n in sizes]
        nodes = np.concatenate([[0.0, 1.0], chance_nodes(trials_drawn(self.options))[0]])
        values.append(self.expect(_binary(nodes, 1.0)))
        return min(float(one.min()) for one in values), max(float(one.max()) for one in values)


class Moments(NamedTuple):
    """Moments of a metric over the questions of a system, as shares of its range."""

    # Mean, and its distance from the upper end of the range.
    mean: float
    rest: float
    # Variance of the estimate of a question by its trials.
    within: float
    # Variance of the metric from question to question.
    between: float


def system_moments(
    metric: CellMetric, counts: Counts, ends: tuple[float, float], rng: np.random.Generator
) -> list[Moments]:
    """Return moments of each system, expected over the posteriors of its chances.

    From counts (system, question, category); `rng` is for more than two categories.
    """
    moments_of: Callable[[Counts, Counts], Moments] = partial(_simulated_moments, metric, ends, rng)
    if metric.is_binary:
        moments_of = _BinaryMoments(metric, ends, counts.sum(axis=-1)).of
    kinds = [np.unique(own[own.any(axis=-1)], axis=0, return_counts=True) for own in counts]
    return [moments_of(*each) for each in kinds]


class _BinaryMoments:
    """Moments where answers are right or wrong, by quadrature over the chances."""

    def __init__(self, metric: CellMetric, ends: tuple[float, float], trials: Counts) -> None:
        self.nodes, self.edges = chance_nodes(int(trials.max()))
        self.expected = _share(metric.expect(_binary(self.nodes, 1.0)), ends)
        self.noise = {
            n: self._noise(n, _share(metric.estimate(_binary(np.arange(n + 1.0), n)), ends))
            for n in np.unique(trials[trials > 0]).tolist()
        }

    def _noise(self, n_trials: int, estimates: Array) -> Array:
        """Return the variance of the estimates from 0, ..., n right answers, at each node."""
        right, ways = np.arange(n_trials + 1.0), log_factorials(n_trials)
        log_chance = np.log(self.nodes)[:, np.newaxis] * right
        log_chance += np.log1p(-self.nodes)[:, np.newaxis] * (n_trials - right)
        chance = np.exp(log_chance + ways[-1] - ways - ways[::-1])
        return (chance * (estimates - self.expected[:, np.newaxis]) ** 2).sum(axis=1)

    def of(self, rows: Counts, times: Counts) -> Moments:
        """Return the moments of a system from counts of wrong and right answers, `times` each."""
        trials = rows.sum(axis=1)
        mass = chance_posteriors(rows[:, 1], trials, times, self.nodes, self.edges)
        mass *= (times / times.sum())[:, np.newaxis]
        total = mass.sum(axis=0)
        mean = float(total @ self.expected)
        within = float((mass * np.stack([self.noise[n] for n in trials.tolist()])).sum())
        between = float(total @ (self.expected - mean) ** 2)
        return Moments(mean, float(total @ (1.0 - self.expected)), within, between)


def _simulated_moments(
    metric: CellMetric,
    ends: tuple[float, float],
    rng: np.random.Generator,
    rows: Counts,
    times: Counts,
) -> Moments:
    """Return the moments for any number of categories, by simulation.

    From the highest worth down, an answer is in a category or below it, with a chance that has its
    own posterior.
    """
    order = np.argsort(metric.worths, kind="stable")
    at_most = np.cumsum(rows[:, order], axis=1)
    nodes, edges = chance_nodes(int(rows.sum(axis=1).max()))
    below = np.ones((-(-_SIMULATED // int(times.sum())), int(times.sum())))
    shares = np.empty((*below.shape, len(order)))
    for place in range(len(order) - 1, 0, -1):
        right, trials = at_most[:, place - 1], at_most[:, place]
        mass = chance_posteriors(right, trials, times, nodes, edges)
        cumulative = np.cumsum(mass, axis=1) / mass.sum(axis=1, keepdims=True)
        level = np.split(rng.random(below.shape), np.cumsum(times)[:-1], axis=1)
        drawn = [np.searchsorted(*each) for each in zip(cumulative, level, strict=True)]
        chance = nodes[np.minimum(np.concatenate(drawn, axis=1), len(nodes) - 1)]
        shares[..., order[place]] = below * (1.0 - chance)
        below = below * chance
    shares[..., order[0]] = below
    counts = rng.multinomial(np.repeat(rows.sum(axis=1), times), shares)
    expected = _share(metric.expect(shares), ends)
    within = ((_share(metric.estimate(counts), ends) - expected) ** 2).mean()
    mean = expected.mean()
    rest, between = (1.0 - expected).mean(), ((expected - mean) ** 2).mean()
    return Moments(float(mean), float(rest), float(within), float(between))


def _share(values: Array, ends: tuple[float, float]) -> Array:
    low, high = ends
    return np.clip((values - low) / (high - low), 0.0, 1.0)


def _binary(right: Array, trials: float) -> Array:
    """Return counts, or chances, of wrong and right answers."""
    return np.stack([trials - right, right], axis=-1)


def chance_nodes(most_trials: int) -> tuple[Array, Array]:
    """Return nodes between 0 and 1 and the edges of their cells, for up to this many trials."""
    size = _FEWEST + int(np.pi * _PER_SD * np.sqrt(most_trials))
    edges = np.sin(np.arange(size + 1) * np.pi / (2.0 * size)) ** 2
    nodes = np.sin((np.arange(size) + 0.5) * np.pi / (2.0 * size)) ** 2
    return nodes, edges


def chance_posteriors(
    right: Counts, trials: Counts, times: Counts, nodes: Array, edges: Array
) -> Array:
    """Return posterior masses (cell, node) on the nodes of the chances of one system.

    Arguments are right answers and trials of its cells, and the number of questions of each cell;
    nodes and edges are those of :func:`chance_nodes`.
    """
    mean = float((times @ right + 0.5) / (times @ trials + 1.0))
    masses, weights = _laws(mean, edges)
    log_likelihood = right[:, np.newaxis] * np.log(nodes)
    log_likelihood += (trials - right)[:, np.newaxis] * np.log1p(-nodes)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    evidence = np.maximum(likelihood @ masses.T, np.finfo(np.float64).tiny)
    log_weight = times @ np.log(evidence) + np.log(weights)
    weight = np.exp(log_weight - log_weight.max())
    return likelihood * ((weight / weight.sum() / evidence) @ masses)


def _laws(mean: float, edges: Array) -> tuple[Array, Array]:
    """Return the distributions that chances may have, of shape (law, node), and prior weights."""
    correlation, share = np.meshgrid((_NODES + 1.0) / 2.0, _SHARES, indexing="ij")
    strength = ((1.0 - correlation) / correlation).reshape(-1, 1)
    share = share.reshape(-1, 1)
    inner = np.clip((edges - share * mean) / (1.0 - share), 0.0, 1.0)
    below = betainc(strength * mean, strength * (1.0 - mean), inner)
    return np.diff(below, axis=1), np.repeat(_WEIGHTS, len(_SHARES))
