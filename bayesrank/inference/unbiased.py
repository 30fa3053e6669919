r"""Draws around the unbiased estimates of metrics of k trials, such as pass@k.

The estimate and the draws describe the same quantity, the metric of k fresh trials averaged over
questions, whatever the chances are. A score s, as a share of the range that the metric can take,
varies as a share of successes in :math:`n = s (1 - s) / V` independent trials would [1]_, where V
is the variance of the estimate, and its draws are those of the mid-P rule for n trials, which stay
in the range and lie on both sides of the estimate.

- On a benchmark V is the variance of the trials within questions. What it is for one question with
  k trials, or always right, the trials of that question cannot tell; it is expected over the
  posterior of each chance, for which the questions of a system share a law
  (:mod:`bayesrank.inference.chance_posteriors`). At an end of the range every k trials of a
  question are one of the n.
- Over a population V is the variance of the questions or their clusters, with one more of them on
  which the metric is at either end. At an end of the range n is their number. What systems have in
  common is a Gaussian copula with the correlations over questions, of which the mid-P rule leaves
  one of the n to each system.

References
----------
.. [1] E. L. Korn and B. I. Graubard. Confidence intervals for proportions with small expected
   number of positive counts estimated from survey data. Survey Methodology 24 (1998), 193-201.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from bayesrank.inference.chance_posteriors import chance_nodes, chance_posteriors
from bayesrank.inference.clusters import warn_of_few_groups
from bayesrank.inference.estimate import Run, by_chain
from bayesrank.inference.mid_p import mid_p_quantile
from bayesrank.inference.resampling import question_clusters, require_two_trials
from bayesrank.method import Method, load_function
from bayesrank.methods.thresholds import log_factorials, trials_drawn
from bayesrank.responses import Responses

Array = NDArray[np.float64]

# Scores are rounded by less, relative to their range.
_ROUNDING = 1e-12
# With more effective trials than these, no draw would differ from the estimate but by rounding.
_MOST_TRIALS = 1e9
# Simulated data sets where a variance has no closed form: it is known to 4 %.
_SIMULATED = 1000


@dataclass(frozen=True)
class CellMetric:
    """A metric of k trials as a function of the answers to one question.

    Attributes
    ----------
    method : Method
        Row of the catalog with a functional.
    options : mapping
        Its options.
    worths : numpy.ndarray of shape (category,)
        Worth of each category; of right and wrong ones where the metric reads no other.
    """

    method: Method
    options: Mapping[str, Any]
    worths: Array

    @property
    def is_binary(self) -> bool:
        """Whether answers are right or wrong."""
        return self.method.data == "binary"

    def estimate(self, counts: Array) -> Array:
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

    def ends(self, trials: NDArray[np.int64]) -> tuple[float, float]:
        """Return the least and the largest value that an estimate or its expectation can have."""
        if not self.is_binary:
            return float(self.worths.min()), float(self.worths.max())
        sizes = np.unique(trials[trials > 0]).tolist()
        values = [self.estimate(_binary(np.arange(n + 1.0), n)) for n in sizes]
        nodes = np.concatenate([[0.0, 1.0], chance_nodes(trials_drawn(self.options))[0]])
        values.append(self.expect(_binary(nodes, 1.0)))
        return min(float(one.min()) for one in values), max(float(one.max()) for one in values)


def draw_around_unbiased(run: Run, score: Array) -> Array:
    """Draw scores around their unbiased estimates.

    Parameters
    ----------
    run : Run
        With responses and a method that has a functional.
    score : numpy.ndarray of shape (system,)
        The estimates.

    Returns
    -------
    numpy.ndarray of shape (chain, draw, system)
        Systems with the same counts have the same draws, so that they stay tied.

    Raises
    ------
    DataError
        If the data do not vary over the units of the target.
    """
    data = cast("Responses", run.data)
    worths = np.arange(2.0) if run.method.data == "binary" else data.category_weights
    metric = CellMetric(run.method, run.options, worths)
    low, high = metric.ends(data.trials)
    rng = np.random.default_rng(run.seed)
    _, first, same = np.unique(
        data.counts.reshape(len(score), -1), axis=0, return_index=True, return_inverse=True
    )
    counts = data.counts[first]
    if high - low <= _ROUNDING * max(abs(low), abs(high)):
        return by_chain(np.tile(score, (run.size, 1)))  # certain by definition
    share = np.clip((score[first] - low) / (high - low), 0.0, 1.0)
    share[share < _ROUNDING] = 0.0
    share[share > 1.0 - _ROUNDING] = 1.0
    if run.target == "population":
        warn_of_few_groups(data)
        values = (metric.estimate(counts) - low) / (high - low)
        trials, normals = _over_questions(values, share, question_clusters(data), run.size, rng)
        levels = ndtr(normals)
    else:
        if data.trials.max() < 2:
            require_two_trials(data)
        trials = _within_questions(metric, counts, share, (low, high), rng)
        levels = rng.random((run.size, len(share)))
    drawn = [mid_p_quantile(*each) for each in zip(levels.T, share, trials, strict=True)]
    return by_chain(low + (high - low) * np.stack(drawn, axis=1)[:, same.ravel()])


def _over_questions(
    values: Array, share: Array, clusters: NDArray[np.intp], size: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return effective trials by the variance over clusters, and correlated normal draws.

    Parameters
    ----------
    values : numpy.ndarray of shape (system, question)
        Estimates of the questions as shares of the range, NaN without trials.
    share : numpy.ndarray of shape (system,)
        Their means.
    clusters : numpy.ndarray of shape (question,)
        The cluster of each question.
    size : int
        Number of draws.
    rng : numpy.random.Generator
        Source of randomness.
    """
    seen = ~np.isnan(values)
    deviation = np.where(seen, values - share[:, np.newaxis], 0.0)
    member = (clusters[:, np.newaxis] == np.arange(clusters.max() + 1)).astype(np.float64)
    n_clusters = ((seen @ member) > 0).sum(axis=1)
    sums = deviation @ member / seen.sum(axis=1, keepdims=True)
    covariance = sums @ sums.T
    most = share * (1.0 - share)
    # One more cluster, at one end or the other, beside those observed.
    variance = (n_clusters * np.diag(covariance) + most / n_clusters) / (n_clusters + 1.0)
    inside = most > 0.0
    trials = np.where(inside, most / np.where(inside, variance, 1.0), n_clusters)
    # What the mid-P rule adds to each system, relative to the variance of what they share.
    own = (1.0 - 2.0 * most) / np.where(inside, trials * most, 1.0)
    diagonal = np.diag(covariance) * (1.0 + own)
    varies = inside & (diagonal > 0.0)
    scale = np.sqrt(np.where(varies, diagonal, 1.0))
    correlation = np.where(np.outer(varies, varies), covariance / np.outer(scale, scale), 0.0)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return trials, rng.standard_normal((size, len(share))) @ root.T


def _within_questions(
    metric: CellMetric,
    counts: NDArray[np.int64],
    share: Array,
    ends: tuple[float, float],
    rng: np.random.Generator,
) -> Array:
    """Return effective trials by the variance of the trials of each system.

    Parameters
    ----------
    metric : CellMetric
        The metric.
    counts : numpy.ndarray of shape (system, question, category)
        Counts of the answers.
    share : numpy.ndarray of shape (system,)
        The scores as shares of the range.
    ends : tuple of float
        The range.
    rng : numpy.random.Generator
        Source of randomness where the variance is simulated.
    """
    most_trials = int(counts.sum(axis=-1).max())
    noise = _BinaryNoise(metric, ends, most_trials) if metric.is_binary else None
    trials = np.empty(len(share))
    for system, cells in enumerate(counts):
        observed = cells[cells.any(axis=-1)]
        rows, times = np.unique(observed, axis=0, return_counts=True)
        if share[system] in (0.0, 1.0):
            trials[system] = observed.sum() / trials_drawn(metric.options)
            continue
        if noise is not None:
            mean, rest, variance = noise.moments(rows, times)
        else:
            mean, rest, variance = _simulated_moments(metric, ends, rows, times, rng)
        found = len(observed) * mean * rest / max(variance, np.finfo(np.float64).tiny)
        trials[system] = np.clip(found, len(observed), _MOST_TRIALS)
    return trials


class _BinaryNoise:
    """Variance of the estimate of a question with right and wrong answers, for any chance.

    Parameters
    ----------
    metric : CellMetric
        The metric.
    ends : tuple of float
        Its range.
    most_trials : int
        Largest number of trials of a question.
    """

    def __init__(self, metric: CellMetric, ends: tuple[float, float], most_trials: int) -> None:
        self.metric, self.ends = metric, ends
        self.nodes, self.edges = chance_nodes(most_trials)
        self.expected = self._share(metric.expect(_binary(self.nodes, 1.0)))
        self._of_trials: dict[int, Array] = {}

    def moments(self, rows: NDArray[np.int64], times: NDArray[np.int64]) -> tuple[float, ...]:
        """Return the mean metric, its distance from the upper end, and the mean variance.

        All are shares of the range, averaged over the questions of a system and the posteriors of
        their chances. `rows` holds wrong and right answers, `times` how many questions have them.
        """
        trials = rows.sum(axis=1)
        mass = chance_posteriors(rows[:, 1], trials, times, self.nodes, self.edges)
        noise = np.stack([self._variance(n) for n in trials.tolist()])
        each = (self.expected, 1.0 - self.expected, noise)
        return tuple(float(times @ (mass * one).sum(axis=1)) / times.sum() for one in each)

    def _variance(self, n_trials: int) -> Array:
        """Return the variance of the estimate from so many trials at each node."""
        if n_trials not in self._of_trials:
            right = np.arange(n_trials + 1.0)
            ways = log_factorials(n_trials)
            log_chance = ways[-1] - ways - ways[::-1]
            log_chance = log_chance + np.log(self.nodes)[:, np.newaxis] * right
            log_chance += np.log1p(-self.nodes)[:, np.newaxis] * (n_trials - right)
            values = self._share(self.metric.estimate(_binary(right, n_trials)))
            deviation = values - self.expected[:, np.newaxis]
            self._of_trials[n_trials] = (np.exp(log_chance) * deviation**2).sum(axis=1)
        return self._of_trials[n_trials]

    def _share(self, values: Array) -> Array:
        low, high = self.ends
        return np.clip((values - low) / (high - low), 0.0, 1.0)


def _simulated_moments(
    metric: CellMetric,
    ends: tuple[float, float],
    rows: NDArray[np.int64],
    times: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[float, ...]:
    """Return the moments of :class:`_BinaryNoise` of any categories, by simulation.

    From the highest worth down, an answer is below a category or in it, with a chance that has a
    posterior of its own.
    """
    order = np.argsort(metric.worths, kind="stable")
    at_most = np.cumsum(rows[:, order], axis=1)
    nodes, edges = chance_nodes(int(rows.sum(axis=1).max()))
    below = np.ones((_SIMULATED, int(times.sum())))
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
    low, high = ends
    expected = (metric.expect(shares) - low) / (high - low)
    noise = ((metric.estimate(counts) - low) / (high - low) - expected) ** 2
    return float(expected.mean()), float((1.0 - expected).mean()), float(noise.mean())


def _binary(right: Array, trials: float) -> Array:
    """Return counts, or chances, of wrong and right answers."""
    return np.stack([trials - right, right], axis=-1)
