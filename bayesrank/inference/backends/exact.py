r"""The exact back end: scores drawn from a posterior in closed form, or around unbiased estimates.

Unbiased estimates of metrics of k trials, such as pass@k, and their draws describe the same
quantity, the metric of k fresh trials averaged over questions. The draws have the mid-P confidence
distribution of the score (:func:`bayesrank.inference.backends.standardized.mid_p_quantile`), which
stays in the range and has the estimate near its median.

- On a benchmark the variance is over the trials of these questions (`within` of
  :class:`Moments`). For a score at an end of the range, n is the number of blocks of k trials.
- Over a population it is the variance between questions or their clusters, with one more of them at
  an end of the range. It is at least the variance under the distribution of the chances, since a
  few questions of another kind may dominate the mean. For a score at an end of the range
  n is the number of clusters. The dependence of systems is a Gaussian copula with the
  correlations over clusters; the trial that the mid-P rule adds is independent for each system.

The trials of one question do not identify the variance of its estimate if there are at most k of
them, or if all are right. The variance is averaged over the posterior of the chances. The chances
of a system have one Dirichlet distribution (:func:`prior_counts_of`), whose mean and strength are
estimated (empirical Bayes).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.counting import sum_over_levels
from bayesrank.errors import DataError
from bayesrank.inference.fits.fit import symmetric_root
from bayesrank.inference.resample.arguments import Arguments, Array, point_arguments
from bayesrank.inference.resample.corrections import jackknife_corrected, with_pseudo_unit
from bayesrank.inference.resample.units import (
    ROUNDING,
    UNLIMITED,
    left_out_scale,
    question_clusters,
    warn_of_few_groups,
)
from bayesrank.inference.resample.weights import question_weights, require_two_trials
from bayesrank.inference.run import Estimate, Run, by_chain, draw_chains, split_scores
from bayesrank.method import Method, load_function
from bayesrank.methods.thresholds import is_posterior_mean, trials_drawn
from bayesrank.responses import Responses, prior_counts
from bayesrank.validation import NonNegative

Counts = NDArray[np.int64]

# Simulated questions of a system: a variance has an error of about 3 %.
_SIMULATED = 4_000
# Chances at which the range of a metric is looked up: no error for monotone metrics.
_NODES = 1001


def exact(run: Run, *, prior_weight: NonNegative = 0.0) -> Estimate:
    """Estimate a score and draw it from its closed-form posterior, or around an unbiased estimate.

    Unbiased estimates of functionals of probabilities have draws with the variance of the estimate,
    see the module. The closed forms describe the questions at
    hand. For the population target the draws weight the questions at random instead, as in the
    bootstrap back end; these draws include the noise of the trials.

    Parameters
    ----------
    run : Run
        With a method that has a closed form.
    prior_weight : float, default 0.0
        Pseudo-trials that each earlier outcome (`prior_outcomes` of the data) counts as in the
        posterior of a probability; 1 takes earlier outcomes for trials. For functionals of
        probabilities with ``estimator="posterior_mean"`` and the benchmark target; ``bayes`` has an
        option of this name.

    Raises
    ------
    ValueError
        If `prior_weight` is negative or not finite, or not for this method, estimator or target.
    DataError
        If the data do not have what the method needs, or no earlier outcomes to weigh.
    """
    is_unbiased = run.method.functional is not None and not is_posterior_mean(
        run.options.get("estimator", "unbiased")
    )
    _check_prior_weight(run, prior_weight, is_unbiased)
    arguments = point_arguments(run.data, run.method.data)
    if prior_weight:
        arguments = _with_earlier(run, arguments, prior_weight)
    ranker = load_function(run.method.function)
    score, parameters = split_scores(ranker(*arguments, **run.ranker_options))
    if run.draws == 0:
        return Estimate(score, None, point=parameters)
    if is_unbiased:
        return Estimate(score, draw_around_unbiased(run, score), point=parameters)

    per_draw = arguments[0].size
    if run.target == "population" and run.responses.trials.all():
        per_draw = sum(run.responses.shape)  # weights of questions, and scores

    def draw_chain(seed: np.random.SeedSequence) -> Array:
        rng = np.random.default_rng(seed)
        sizes = [some.stop - some.start for some in batches(run.draws, per_draw)]
        return np.concatenate([_draw(run, arguments, size, rng) for size in sizes])

    draws = draw_chains(run.seed, draw_chain)
    if run.target == "population":
        warn_of_few_groups(run.responses)
        corrected = jackknife_corrected(
            run, draws, lambda given: split_scores(ranker(*given, **run.ranker_options))[0]
        )
        # The ends of the draws are in the range of the score, whatever the method and the weights.
        draws = np.clip(corrected, draws.min(axis=(0, 1)), draws.max(axis=(0, 1)))
        rng = np.random.default_rng(run.seed.spawn(1)[0])
        draws = with_pseudo_unit(
            run, draws, lambda given: _draw(run, given[:-1], len(given[-1]), rng, given[-1]), rng
        )
    return Estimate(score, draws, point=parameters)


def _check_prior_weight(run: Run, prior_weight: float, is_unbiased: bool) -> None:
    """Raise if there is a weight, but earlier outcomes cannot be weighted for this run."""
    if prior_weight == 0.0:
        return
    if run.method.functional is None:
        raise ValueError(
            f"prior_weight must be 0 for {run.method.name}, which is no functional of "
            f"probabilities; got {prior_weight!r}"
        )
    if is_unbiased:
        raise ValueError(
            f"prior_weight must be 0 for the unbiased estimate of {run.method.name}, which uses "
            f"only the trials; got {prior_weight!r}: set estimator='posterior_mean'"
        )
    if run.target != "benchmark":
        raise ValueError(
            f"prior_weight must be 0 for target={run.target!r}, whose draws weigh questions; "
            f"got {prior_weight!r}: use target='benchmark'"
        )
    if isinstance(run.data, Responses) and run.data.prior_outcomes is None:
        raise DataError(f"prior_outcomes must be given for prior_weight={prior_weight!r}; got None")


def _with_earlier(run: Run, arguments: Arguments, prior_weight: float) -> Arguments:
    """Return right answers and trials, or counts and worths, with earlier outcomes added.

    Questions with only earlier outcomes stay without trials.
    """
    data = run.responses
    seen = (data.trials > 0)[..., np.newaxis]
    counts = data.counts + prior_weight * cast("NDArray[np.int64]", prior_counts(data)) * seen
    if run.method.data == "binary":
        return counts[..., 1], counts.sum(axis=-1)
    return counts, arguments[1]


def _draw(
    run: Run,
    arguments: Arguments,
    size: int,
    rng: np.random.Generator,
    weights: Array | None = None,
) -> Array:
    """Draw scores of shape (size, system), of questions with random weights over a population."""
    if weights is None and run.target == "population":
        weights = question_weights(run.responses, size, rng)
    if run.method.exact is not None:
        sampler = load_function(run.method.exact)
        return sampler(*arguments, weights, size=size, rng=rng, **run.sampler_options)
    if weights is not None:
        return load_function(run.method.function)(*arguments, weights, **run.options)
    functional = load_function(run.method.functional or "")
    options = run.method.functional_options(run.options)
    return functional(*draw_probabilities(arguments, size, rng), **options)


def draw_probabilities(arguments: Arguments, size: int, rng: np.random.Generator) -> Arguments:
    """Draw the probabilities of a functional under the uniform prior, as its arguments.

    From right answers and trials (system, question), or counts by category and the worths:
    probabilities with the draws first, NaN where nothing was observed, and the worths.
    """
    counts, other = arguments
    if counts.ndim == 2:
        p = rng.beta(1.0 + counts, 1.0 + other - counts, (size, *counts.shape))
        return (np.where(other > 0, p, np.nan),)
    gammas = rng.standard_gamma(1.0 + counts, (size, *counts.shape))
    p = gammas / sum_over_levels(gammas)[..., np.newaxis]
    return np.where(counts.sum(axis=-1, keepdims=True) > 0, p, np.nan), other


def draw_around_unbiased(run: Run, score: Array) -> Array:
    """Draw scores (chain, draw, system) around their unbiased estimates.

    Systems with the same counts have the same draws, so that they stay tied. DataError if the data
    do not vary over the units of the target.
    """
    # SciPy's functions take longer to load than many methods to rank.
    from bayesrank.inference.backends.standardized import mid_p_draws

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
    moments = [system_moments(metric, own, (low, high)) for own in counts]
    mean, rest, within, between = np.transpose(moments)
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
        values.append(self.expect(_binary(np.linspace(0.0, 1.0, _NODES), 1.0)))
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


def system_moments(metric: CellMetric, counts: Counts, ends: tuple[float, float]) -> Moments:
    """Return moments of a system, expected over simulated posteriors of its chances.

    From counts (question, category).
    """
    rng = np.random.default_rng(0)
    observed = counts[counts.any(axis=-1)]
    repeated = np.repeat(observed, -(-_SIMULATED // len(observed)), axis=0)
    shapes = repeated + prior_counts_of(observed)
    chances = rng.standard_gamma(shapes) + np.finfo(np.float64).tiny
    chances /= chances.sum(axis=1, keepdims=True)
    found = metric.estimate(rng.multinomial(repeated.sum(axis=1), chances))
    expected = _share(metric.expect(chances), ends)
    within = ((_share(found, ends) - expected) ** 2).mean()
    mean, rest, between = expected.mean(), (1.0 - expected).mean(), expected.var()
    return Moments(float(mean), float(rest), float(within), float(between))


def prior_counts_of(counts: Counts) -> Array:
    """Return counts of the Dirichlet prior that the chances of a system have in common.

    The mean is that of the trials with one more trial. The strength follows from the share of
    pairs of trials of a question that differ, with one more question of independent trials. It is
    at least one trial, so that chances keep away from 0 and 1.
    """
    trials, total = counts.sum(axis=1), counts.sum(axis=0)
    mean = (total + 1.0 / len(total)) / (total.sum() + 1.0)
    independent = 1.0 - (mean**2).sum()
    pairs = trials * (trials - 1.0)
    same = (counts * (counts - 1.0)).sum(axis=1)
    differ = 1.0 - np.divide(same, pairs, out=np.zeros_like(pairs), where=pairs > 0.0)
    share = (differ[pairs > 0.0].sum() + independent) / (np.count_nonzero(pairs) + 1.0)
    share = min(share / independent, 1.0 - 1.0 / UNLIMITED)
    return mean * max(share / (1.0 - share), 1.0)


def _share(values: Array, ends: tuple[float, float]) -> Array:
    low, high = ends
    return np.clip((values - low) / (high - low), 0.0, 1.0)


def _binary(right: Array, trials: float) -> Array:
    """Return counts, or chances, of wrong and right answers."""
    return np.stack([trials - right, right], axis=-1)
