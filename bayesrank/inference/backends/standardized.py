"""Standardised accuracy: the sampling distribution of its scores, inside the range of the grades.

A score is the mean of observed grades, and of fitted chances where trials are missing
(:mod:`bayesrank.inference.fits.standardized`). Its error is the sum of the noise of the
observed cells and of the error of the parameters, which affects the fitted chances of missing
cells. Over a population the spread of the questions is added.

- *Noise* is the variance of the trials within cells relative to E p (1 - p) of the item model: the
  dispersion of each system. If cells have one trial, it comes from residuals. One more unit has the
  dispersion of independent right or wrong answers, so that the variance is never zero.
- *Marginal distributions* are mid-P confidence distributions of a proportion: a score s, as
  a share of its range, has the distribution of the share of successes in n = s (1 - s) / V
  independent trials, where V is its variance (Korn and Graubard 1998). The degrees of freedom of
  estimated variances reduce the effective number of trials as Student's t widens an interval.
- *Dependence* between systems is that of a Gaussian copula with the correlations of the errors.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, expit, logit, ndtr, ndtri, stdtrit

from bayesrank.design import has_repeated_trials
from bayesrank.inference.fits.fit import symmetric_root
from bayesrank.inference.fits.standardized import StandardizedFit, fit_standardized
from bayesrank.inference.resample.units import (
    ROUNDING,
    SOME_UNITS,
    UNLIMITED,
    asked_clusters,
    effective_number,
    freedom_of,
    left_out_scale,
    sums_over_clusters,
)
from bayesrank.inference.run import Estimate, Run

Array = NDArray[np.float64]

# Probability of the intervals that convert degrees of freedom into effective trials (Korn and
# Graubard 1998): at others the widening of Student's t is approximate.
_CI_PROB = 0.95

_TINY = np.finfo(np.float64).tiny

# Probabilities at which distribution functions of scores are tabulated between their ends. Between
# two of them a quantile has an error below 0.4 % of a standard deviation.
_TAIL = np.geomspace(ROUNDING, 0.06, 60)
_TABLE = np.concatenate([_TAIL, np.linspace(0.06, 0.94, 120)[1:-1], 1.0 - _TAIL[::-1]])


@dataclass(frozen=True)
class Spread:
    """Sampling distribution of standardised accuracies."""

    fit: StandardizedFit
    # Whether the questions are fixed (benchmark) or vary too (population).
    target: str
    # Whether the trials of a system are independent, or its answers of one run may fail together.
    unit: str = "trial"
    # Whether to assume independent answers, as the item model does.
    model_based: bool = False

    @cached_property
    def inside(self) -> NDArray[np.bool_]:
        """Whether a system has grades that are not all at one end."""
        return (self.fit.share > 0.0) & (self.fit.share < 1.0)

    @cached_property
    def observed(self) -> NDArray[np.bool_]:
        """Which cells have a trial."""
        return self.fit.grades.trials > 0

    @cached_property
    def means(self) -> Array:
        """Mean grades of the cells, 0 where missing; moved by half a grade off the ends."""
        grades = self.fit.grades
        n_trials = grades.trials.sum(axis=1, keepdims=True)
        means = grades.totals / np.maximum(grades.trials, 1.0)
        inner = np.clip(means, 0.5 / n_trials, 1.0 - 0.5 / n_trials)
        return np.where(self.inside[:, np.newaxis], means, np.where(self.observed, inner, 0.0))

    @cached_property
    def leverage(self) -> tuple[Array, Array]:
        """Leverage of a mean grade on its own fitted chance, by the difficulty and the ability."""
        chances, trials = self.fit.chances, self.fit.grades.trials
        information = trials * chances.noise
        own = np.minimum(trials * chances.variance / chances.noise, 1.0)
        return own, information / information.sum(axis=1, keepdims=True)

    @cached_property
    def dispersion(self) -> tuple[Array, Array]:
        """Variance of answers relative to the item model by system, and its degrees of freedom."""
        trials, chances = self.fit.grades.trials, self.fit.chances
        n_systems = len(trials)
        if self.model_based:
            return np.ones(n_systems), np.full(n_systems, UNLIMITED)
        by_difficulty, by_ability = self.leverage
        expected = chances.noise / np.maximum(trials, 1.0)
        counted = self.observed & self.inside[:, np.newaxis]
        if has_repeated_trials(self.fit.data):
            counted = counted & (trials >= 2)
            found = self.fit.grades.variances / np.maximum(trials, 1.0)
        else:
            left = (1.0 - by_difficulty) * (1.0 - by_ability)
            counted = counted & (left > ROUNDING)  # a single answer is its own fit
            expected, found = expected * left, (self.means - chances.chance) ** 2
        x, y = np.where(counted, found, 0.0), np.where(counted, expected, 0.0)
        totals, of_x, of_y = np.maximum(y.sum(), _TINY), x.sum(axis=1), y.sum(axis=1)
        # The variance of a ratio is that of cells around the ratio of all systems.
        squares = (y**2).sum(axis=1)
        around = ((x - x.sum() / totals * y) ** 2).sum() / np.maximum(squares.sum(), _TINY)
        # Each system has one more cell with the common dispersion. The other systems together have
        # one more cell with the dispersion of right or wrong answers; a single system has no
        # others. A system that is always right has no variance to compare, and near an end
        # p (1 - p) is 1 - p for any dispersion inside the range.
        n_cells = counted.sum(axis=1)
        n_others = n_cells.sum() - n_cells
        prior = (n_others * x.sum() / totals + 1.0) / (n_others + 1.0)
        some = np.where(of_y > 0.0, of_y, 1.0)
        own = (n_cells * of_x / some + prior) / (n_cells + 1.0)
        variance = (n_cells / (n_cells + 1.0) / some) ** 2 * around * squares
        freedom = np.divide(2.0 * own**2, variance, where=variance > 0.0, out=UNLIMITED * own)
        return np.where(self.inside, own, 1.0), np.where(self.inside, freedom, UNLIMITED)

    @cached_property
    def covariance(self) -> Array:
        """Covariance of the errors of the scores, as shares of the range."""
        chances, kept, n_questions = self.fit.chances, self.fit.kept, self.fit.kept.shape[1]
        missing = 1.0 - kept
        dispersion = self.dispersion[0][:, np.newaxis]
        noise = dispersion * chances.noise
        in_cells = np.where(self.observed, noise / np.maximum(self.fit.grades.trials, 1.0), 0.0)
        # The missing part of a cell has the error of the observed part.
        filled = 2.0 * kept * missing * dispersion * chances.variance
        total = self._by_parameters(noise) + chances.shared + np.diag(filled.sum(axis=1))
        of_trials = (kept**2 * in_cells).sum(axis=1)
        if self.target == "population":
            total = self._over_questions(of_trials, total)
        else:
            total += np.diag(of_trials) + self._shared_trials(of_trials)
        if self.unit == "run":
            total += self._over_runs(of_trials)
        return total / n_questions**2

    def _by_parameters(self, noise: Array) -> Array:
        """Return the covariance from the error of the parameters, through the missing cells."""
        chances, trials = self.fit.chances, self.fit.grades.trials
        if not chances.slopes.any():
            return np.zeros((len(trials), len(trials)))
        by_difficulty, _ = self.leverage
        left = 1.0 - by_difficulty
        response = np.linalg.solve(chances.information, chances.slopes.T).T
        # The variance under the item model, and the term of dispersion.
        more = left * trials * (noise - chances.noise)
        # Of the likelihood, without the priors.
        priors = chances.problem.prior_derivatives(chances.optimum.point[0])[1]
        variability = chances.information - np.diag(priors)
        systems = np.arange(len(trials))
        variability[systems, systems] += more.sum(axis=1)
        shared = response[:, : len(trials)] * (self.fit.kept * left * noise).sum(axis=1)
        return response @ variability @ response.T + shared + shared.T

    def _over_questions(self, of_trials: Array, of_missing: Array) -> Array:
        """Return the covariance of the sums of grades and fitted chances over questions.

        `of_missing` is the part of missing cells in it if the item model holds.
        """
        chances, by_cluster = self.fit.chances, self._by_cluster
        n = len(by_cluster)
        found = by_cluster.T @ by_cluster
        # The same under the item model: one more unit, or the only one at an end of the range.
        around = chances.chance - chances.chance.mean(axis=1, keepdims=True)
        noise = of_trials + chances.variance.sum(axis=1)
        expected = around @ around.T + np.diag(noise) + of_missing
        trusted = self.inside & (n > 1)
        mixed = np.diag(np.diag(expected))
        inner = np.ix_(trusted, trusted)
        mixed[inner] = (n * found[inner] + expected[inner]) / (n + 1.0)
        # The variance over questions is at least the noise of the trials and, if few questions
        # decide it, that of the missing cells.
        share = np.minimum(SOME_UNITS / effective_number(by_cluster**2), 1.0)
        least = of_trials + share * np.diag(of_missing)
        np.fill_diagonal(mixed, np.maximum(np.diag(mixed), least))
        return mixed

    @cached_property
    def _filled(self) -> Array:
        """Mean grades of the cells, their missing parts filled by fitted chances."""
        return self.fit.kept * self.means + (1.0 - self.fit.kept) * self.fit.chances.chance

    @cached_property
    def _by_cluster(self) -> Array:
        """Contributions of clusters of questions to the sums over questions, (cluster, system).

        Their products add up to the covariance of the sums. A question contributes its deviation
        from the mean, and moves the parameters, with these the fitted chances of missing cells.
        """
        clusters, chances = asked_clusters(self.fit.data), self.fit.chances
        clusters = clusters[clusters >= 0]  # of questions in the fit
        trials = self.fit.grades.trials.sum(axis=0)
        deviations = self._filled.T - self._filled.mean(axis=1)
        moved = chances.gradients @ np.linalg.solve(chances.information, chances.slopes.T)
        moved -= np.outer(trials / trials.sum(), moved.sum(axis=0))  # the shift by the prior
        rows = np.zeros((int(clusters.max()) + 1, deviations.shape[1]))
        for each, weight in ((deviations, np.ones_like(trials)), (moved, trials)):
            share = np.bincount(clusters, weight) / weight.sum()
            scale = left_out_scale(share, len(share))
            rows += scale[:, np.newaxis] * sums_over_clusters(each, clusters)
        return rows

    def _shared_trials(self, of_trials: Array) -> Array:
        """Return the covariance of trials that are the same runs for all systems."""
        n_systems, data = len(of_trials), self.fit.data
        if self.model_based or not data.paired or not has_repeated_trials(data):
            return np.zeros((n_systems, n_systems))
        trials = self.fit.grades.trials
        scale = self.fit.kept / np.sqrt(np.maximum(trials * (trials - 1.0), 1.0))
        rows = (scale[..., np.newaxis] * self.fit.grades.deviations).reshape(n_systems, -1)
        size, sd = np.sqrt((rows**2).sum(axis=1)), np.sqrt(of_trials)
        rows *= np.divide(sd, size, out=np.zeros_like(size), where=size > 0.0)[:, np.newaxis]
        products = rows @ rows.T
        return products - np.diag(np.diag(products))

    def _over_runs(self, of_trials: Array) -> Array:
        """Return the variance of the totals of runs beyond that of independent trials."""
        trials = self.fit.grades.trials
        scale = (self.fit.kept / np.maximum(trials, 1.0))[..., np.newaxis]
        totals = (scale * self.fit.grades.deviations).sum(axis=1)
        products, n_runs = totals @ totals.T, self._n_runs
        own = np.diag(products)
        found = n_runs / np.maximum(n_runs - 1.0, 1.0) * own
        beyond = np.where(n_runs > 1, np.maximum(found - of_trials, 0.0), 0.0)
        if not self.fit.data.paired:
            return np.diag(beyond)
        factor = np.sqrt(np.divide(beyond, own, out=np.zeros_like(own), where=own > 0.0))
        return products * np.outer(factor, factor)

    @cached_property
    def _n_runs(self) -> Array:
        return (~np.isnan(self.fit.grades.values)).any(axis=1).sum(axis=1).astype(np.float64)

    @cached_property
    def freedom(self) -> Array:
        """Degrees of freedom of the variances, by system; infinite if the score determines them."""
        if self.unit == "run":
            return np.maximum(self._n_runs - 1.0, 1.0)
        if self.target == "benchmark" or self.model_based:
            return self.dispersion[1]
        clusters = asked_clusters(self.fit.data)
        sizes = np.bincount(clusters[clusters >= 0])
        return np.where(self.inside, freedom_of(sizes), UNLIMITED)

    @cached_property
    def effective_trials(self) -> Array:
        """Numbers of independent right or wrong answers with as much information."""
        centre = np.where(self.inside, self.fit.share, self._filled.mean(axis=1))
        number = centre * (1.0 - centre) / np.diag(self.covariance)
        tail = 0.5 + _CI_PROB / 2.0
        freedom = np.clip(self.freedom, 1.0, UNLIMITED)
        # A variable between 0 and 1 varies at most as much as a single answer of this mean.
        return np.maximum(number * (ndtri(tail) / stdtrit(freedom, tail)) ** 2, 1.0)

    def draw(self, normals: Array, centre: Array | None = None) -> Array:
        """Turn independent normal draws (draw, system) into draws of scores in units of the grades.

        Around a centre of shares of the range (system,), by default the estimate.
        """
        sd = np.sqrt(np.diag(self.covariance))
        root = symmetric_root(self.covariance / np.outer(sd, sd))
        root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
        levels = ndtr(normals @ root.T)
        centre = self.fit.share if centre is None else centre
        drawn = mid_p_draws(levels, centre, self.effective_trials)
        return self.fit.grades.worth(drawn)


def sampled_scores(
    run: Run,
    fit: StandardizedFit | None,
    *,
    model_based: bool = False,
    like: Estimate | None = None,
) -> Array:
    """Draw scores from their sampling distribution, the `spread` of the row of the catalog.

    They have the shape (draw, system), or the shape, order and centre of the draws of `like`. With
    None as `fit` the data are fitted here. `model_based` assumes that the item model holds:
    independent answers and fixed questions.
    """
    data = run.responses
    target, unit = ("benchmark", "trial") if model_based else (run.target, run.unit)
    spread = Spread(fit_standardized(data) if fit is None else fit, target, unit, model_based)
    if like is None or like.draws is None:
        rng = np.random.default_rng(run.seed)
        return spread.draw(rng.standard_normal((run.size, len(data.systems))))
    flat = like.draws.reshape(-1, len(data.systems))
    centre = spread.fit.grades.share_of(like.score)
    return spread.draw(_independent_normals(flat), centre).reshape(like.draws.shape)


def _independent_normals(draws: Array) -> Array:
    """Return normal scores of the draws of each system, made uncorrelated."""
    ranks = draws.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    normals = ndtri((ranks + 0.5) / len(draws))
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(normals, rowvar=False)))
    return normals @ (vectors / np.sqrt(np.maximum(values, ROUNDING))) @ vectors.T


def mid_p_draws(levels: Array, share: Array, number: Array) -> Array:
    """Return quantiles at levels (draw, system) for shares and numbers of trials (system,)."""
    columns = zip(levels.T, share, number, strict=True)
    return np.stack([mid_p_quantile(*column) for column in columns], axis=1)


def mid_p_quantile(level: Array, share: float, number: float) -> Array:
    r"""Return quantiles of the mid-P confidence distribution of a binomial probability.

    Its distribution function is the mean of those of :math:`\mathrm{Beta}(k, n - k + 1)` and
    :math:`\mathrm{Beta}(k + 1, n - k)`, with successes k among n trials that need not be whole; at
    k = 0 the first of them is a point at 0, at k = n the second one is a point at 1.

    Examples
    --------
    >>> mid_p_quantile(np.array([0.025, 0.5, 0.975]), 1.0, 20.0).round(3)
    array([0.861, 1.   , 1.   ])
    >>> mid_p_quantile(np.array([0.025, 0.5, 0.975]), 0.5, 20.0).round(3)
    array([0.289, 0.5  , 0.711])
    """
    right, wrong = number * share, number * (1.0 - share)
    points = betaincinv(right + 0.5, wrong + 0.5, _TABLE)  # near the quantiles: Jeffreys' prior
    lower = betainc(right, wrong + 1.0, points) if right > 0.0 else np.ones(len(points))
    upper = betainc(right + 1.0, wrong, points) if wrong > 0.0 else np.zeros(len(points))
    known = (lower + upper) / 2.0
    inner = (points > 0.0) & (points < 1.0) & (known > 0.0) & (known < 1.0)
    # Smooth on the scale of log-odds, points at the ends apart.
    found = expit(np.interp(logit(level), logit(known[inner]), logit(points[inner])))
    found = np.where((right <= 0.0) & (level <= 0.5), 0.0, found)
    return np.where((wrong <= 0.0) & (level >= 0.5), 1.0, found)
