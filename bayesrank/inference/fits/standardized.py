r"""Standardized accuracy: the mean over all questions of grades, missing ones by fitted chances.

.. math:: s_l = \frac{1}{M} \sum_m (c_{lm} \bar y_{lm} + g_{lm} \hat p_{lm}),
          \qquad c_{lm} = r_{lm} / \max_m r_{lm} = 1 - g_{lm},
          \qquad r_{lm} = n_{lm} / \max_k n_{km}.

What a system lacks of the most trials of a question, which may differ between questions, is
missing, unless it lacks this share of all questions. Without missing trials the score is the mean
over questions of observed grades. With equally many trials of all questions it is the mean of
fitted chances, since the fitted and the observed grades of every system have the same sum.

Abilities are estimated by marginal likelihood, with the difficulties integrated out. With
:math:`p_{lm} = \sigma(\theta_l - b_m)` and :math:`b_m \sim N(\gamma z_m, \tau^2)` the
objective is

.. math::

    \sum_m \log \int N(b; \gamma z_m, \tau^2)
    \prod_l \sigma(\theta_l - b)^{k_{lm}} (1 - \sigma(\theta_l - b))^{n_{lm} - k_{lm}} \, db
    + \log \pi(\tau) + \log \pi(\gamma)

with a flat prior on abilities, sums of grades k in [0, n] (a quasi-likelihood if grades are
fractions), and :math:`z_m` the share of the systems that were asked question m, minus its mean. Its
derivative with respect to an ability is the observed minus the fitted grades, so at the maximum the
fitted chances of every system sum to its observed grades. The covariate z allows questions that few
systems were asked to be harder, or easier, than the others (Mundlak's device for effects that are
correlated with the design); without it, the difficulties of skipped questions would be shrunk
towards the mean.

The priors of :math:`\tau` and :math:`\gamma` are those of :mod:`bayesrank.models.standardized`:
they keep the estimate of :math:`\tau` away from 0 and from infinity.

Here the systems are the items, and the difficulties are integrated out by the trapezoidal rule
(:mod:`bayesrank.inference.fits.ability_posterior`). Derivatives are posterior moments of the
complete-data score (Fisher's and Louis' identities).

References
----------
.. [1] T. A. Louis. Finding the observed information matrix when using the EM algorithm. Journal of
   the Royal Statistical Society B 44 (1982). https://doi.org/10.1111/j.2517-6161.1982.tb01203.x
.. [2] Y. Mundlak. On the pooling of time series and cross section data. Econometrica 46 (1978).
   https://doi.org/10.2307/1913646
.. [3] Y. Chung et al. A nondegenerate penalized likelihood estimator for variance parameters in
   multilevel models. Psychometrika 78 (2013). https://doi.org/10.1007/s11336-013-9328-2
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayesrank.batches import batches
from bayesrank.counting import distinct_columns
from bayesrank.grades import UnitGrades, require_outcomes_of
from bayesrank.inference.fits.ability_posterior import ItemCurves, MarginalLikelihood
from bayesrank.inference.fits.fit import Fit
from bayesrank.inference.fits.newton import Array, Optimum, Remembered, maximise_nonconcave
from bayesrank.log_odds import finite_exp
from bayesrank.priors import POOLED_DF, Prior
from bayesrank.responses import Responses

# The trapezoidal rule converges exponentially: the integrand is analytic up to a distance of pi
# from the real line. Steps of 1/2, or of half a standard deviation if that is smaller, between the
# points where the density has fallen by `_TAIL` nats give an error of 1e-10 in the log-likelihood.
_TAIL = 30.0
_STEP = 0.5
# Number of doubles in one array of nodes: 16 MB.
_BLOCK_SIZE = 1 << 21


class _Block(NamedTuple):
    """Some kinds of questions at a point: nodes of their difficulties, weights and chances there.

    Arrays end in (question, node); `chance` begins with systems. `log_integral`, (question,).
    """

    questions: slice
    weights: Array
    chance: Array
    deviation: Array
    log_integral: Array


@dataclass(frozen=True)
class MarginalDifficulties(MarginalLikelihood):
    """The objective of the module docstring.

    Points: abilities, then gamma if the share varies, then log tau. Questions with the same trials
    and the same sum of grades over systems are one kind: they have the same posterior. `totals` and
    `trials`, (system, kind), are sums of grades in [0, 1] and numbers of trials of one of each
    kind, `counts` numbers of questions, and `right`, (system,), sums of grades over all questions.
    No system has only grades of 0 or only grades of 1, and every question has a trial.
    """

    totals: Array
    trials: Array
    counts: Array
    right: Array
    # Modes of the difficulties at the last point, from which the search at the next one starts.
    _modes: list[Array] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, totals: Array, trials: Array) -> tuple[Self, NDArray[np.intp]]:
        """Return the objective of tables (system, question), and the kind of each question."""
        sums = totals.sum(axis=0, keepdims=True)
        first, kind = distinct_columns(np.concatenate([sums, trials]))
        counts = np.bincount(kind).astype(np.float64)
        return cls(totals[:, first], trials[:, first], counts, totals.sum(axis=1)), kind

    @cached_property
    def share(self) -> Array:
        """Share of the systems that were asked each question, minus its mean."""
        share = (self.trials > 0).mean(axis=0)
        return share - np.average(share, weights=self.counts)

    @cached_property
    def has_slope(self) -> bool:
        """Whether some questions were asked more systems than others."""
        return bool(np.ptp((self.trials > 0).sum(axis=0)) > 0)

    @property
    def cells(self) -> int:
        """Number of cells of its table of counts."""
        return self.trials.size

    def scale(self, point: Array) -> Array:
        """Return the count scale of the gradient: the most trials of a system."""
        return np.full(len(point), (self.trials @ self.counts).max())

    def start(self) -> Array:
        """Return log-odds of the mean grades, no slope and a scale of one."""
        share = self.right / (self.trials @ self.counts)
        return np.append(np.log(share) - np.log1p(-share), np.zeros(1 + self.has_slope))

    def loglik(self, point: Array) -> Array:
        """Return the marginal log-likelihood at points of shape (point, p)."""
        return np.array([self._found.at(one, self._expand)[0] for one in point])

    def level(self, point: Array) -> float:
        """Return the objective at a point of shape (p,)."""
        return self._found.at(point, self._expand)[0] + self.log_prior(point)

    def derivatives(self, point: Array) -> tuple[Array, Array, Array]:
        """Return gradient, negative Hessian and diagonal of the complete-data information."""
        return self._found.at(point, self._expand)[1]

    @cached_property
    def _found(self) -> Remembered[tuple[float, tuple[Array, Array, Array]]]:
        return Remembered()

    def log_prior(self, point: Array) -> float:
        """Return the log prior up to a constant."""
        found = -POOLED_DF * (point[-1] + 0.5 * np.exp(-2.0 * point[-1]))
        if self.has_slope:
            found -= 0.5 * (POOLED_DF + 1.0) * np.log1p(point[-2] ** 2 / POOLED_DF)
        return float(found)

    def prior_derivatives(self, point: Array) -> tuple[Array, Array]:
        """Return the gradient of the log prior and its negative second derivatives."""
        first, second = np.zeros(len(point)), np.zeros(len(point))
        precision = np.exp(-2.0 * point[-1])
        first[-1], second[-1] = POOLED_DF * (precision - 1.0), 2.0 * POOLED_DF * precision
        if self.has_slope:
            square = POOLED_DF + point[-2] ** 2
            first[-2] = -(POOLED_DF + 1.0) * point[-2] / square
            second[-2] = (POOLED_DF + 1.0) * (2.0 * POOLED_DF - square) / square**2
        return first, second

    def _expand(self, point: Array) -> tuple[float, tuple[Array, Array, Array]]:
        """Return the log-likelihood and :meth:`derivatives`: nearly every step needs both."""
        p, precision, n_systems = len(point), np.exp(-2.0 * point[-1]), len(self.trials)
        loglik = float(self.right @ point[:n_systems])
        gradient, prior = self.prior_derivatives(point)
        gradient[:n_systems] += self.right
        complete, spread = np.zeros((p, p)), np.zeros((p, p))
        for block in self.blocks(point):
            some, weights = block.questions, block.weights
            counts, trials = self.counts[some], self.trials[:, some]
            loglik += float(counts @ block.log_integral)
            scores = self.complete_scores(block, precision)
            means = np.vecdot(scores, weights)
            gradient += means @ counts
            scores -= means[..., np.newaxis]
            scores *= np.sqrt(counts[:, np.newaxis] * weights)
            rows = scores.reshape(p, -1)
            spread += rows @ rows.T
            noise = np.vecdot(block.chance * (1.0 - block.chance), weights)
            np.einsum("ii->i", complete)[:n_systems] += (trials * noise) @ counts
            first, second = (counts * np.vecdot(block.deviation**k, weights) for k in (1, 2))
            complete[-1, -1] += 2.0 * precision * second.sum()
            if self.has_slope:
                share = self.share[some]
                complete[-2, -2] += precision * (counts @ share**2)
                mixed = 2.0 * precision * (share @ first)
                complete[-2, -1] += mixed
                complete[-1, -2] += mixed
        expected = np.maximum(np.diag(complete), np.abs(prior))
        return loglik, (gradient, complete - spread + np.diag(prior), expected)

    def complete_scores(self, block: _Block, precision: float) -> Array:
        """Return derivatives of the complete-data log-likelihood, (p, question, node).

        Of those by abilities the sums of grades are left out.
        """
        n_systems, *rest = block.chance.shape
        scores = np.empty((n_systems + 1 + self.has_slope, *rest))
        trials = self.trials[:, block.questions, np.newaxis]
        np.multiply(block.chance, -trials, out=scores[:n_systems])
        if self.has_slope:
            scores[-2] = precision * self.share[block.questions, np.newaxis] * block.deviation
        scores[-1] = precision * block.deviation**2 - 1.0
        return scores

    def blocks(self, point: Array) -> Iterator[_Block]:
        """Yield nodes, weights and chances of the questions, in blocks."""
        n_systems, n_questions = self.trials.shape
        ability, sd = point[:n_systems], np.exp(point[-1])
        level = point[-2] * self.share if self.has_slope else np.zeros(n_questions)
        near = self._modes[-1] / sd if self._modes else None
        slope = np.full(n_systems, -sd)
        totals, trials = (np.ascontiguousarray(table.T) for table in (self.totals, self.trials))
        curves = ItemCurves(totals, trials, slope, ability, level / sd, near, tail=_TAIL)
        (mode, curvature), (first, last) = curves.modes, (sd * end for end in curves.ends)
        self._modes[:] = [sd * mode]
        steps = _STEP * np.minimum(sd / np.sqrt(curvature), 1.0)
        n_nodes = int(np.ceil(((last - first) / steps).max())) + 1
        gap = (last - first) / (n_nodes - 1)
        easy = finite_exp(ability)[:, np.newaxis, np.newaxis]
        for part in batches(n_questions, n_systems * n_nodes, _BLOCK_SIZE):
            difficulty = first[part, np.newaxis] + gap[part, np.newaxis] * np.arange(n_nodes)
            deviation = difficulty - level[part, np.newaxis]
            odds = easy * finite_exp(-difficulty)
            sides = odds + 1.0
            log_density = -difficulty * self.totals[:, part].sum(axis=0)[:, np.newaxis]
            log_density -= np.einsum("sm,smq->mq", self.trials[:, part], np.log(sides))
            log_density -= 0.5 * (deviation / sd) ** 2
            largest = log_density.max(axis=1, keepdims=True)
            weights = np.exp(log_density - largest)
            sums = weights.sum(axis=1, keepdims=True)
            unit = np.log(gap[part]) - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
            log_integral = largest[:, 0] + np.log(sums[:, 0]) + unit
            odds /= sides
            yield _Block(part, weights / sums, odds, deviation, log_integral)


@dataclass(frozen=True)
class FittedChances:
    """Posterior moments of the chances at the optimum, and their derivatives by the parameters.

    `chance`, `variance` and `noise`, (system, question), are the posterior mean of each chance p,
    its variance given the abilities, and the mean of :math:`p (1 - p)`, the variance of an answer.
    `information`, (p, p), is the negative Hessian of the objective. `slopes`, (system, p), are the
    derivatives of the sums of chances over questions, weighted by their missing shares, and
    `shared`, (system, system), is the posterior covariance of these sums given the abilities.
    `difficulty`, (question,), are centred posterior means. `gradients`, (question, p), are those of
    the log-likelihoods of questions, 0 where nothing is missing.
    """

    problem: MarginalDifficulties
    optimum: Optimum
    chance: Array
    variance: Array
    noise: Array
    information: Array
    slopes: Array
    shared: Array
    difficulty: Array
    gradients: Array


def fit_chances(totals: Array, trials: Array, missing: Array) -> FittedChances:
    """Fit abilities, difficulties integrated out; `missing` is the missing share of each cell."""
    problem, kind = MarginalDifficulties.of(totals, trials)
    optimum = maximise_nonconcave(problem, problem.start()[np.newaxis])
    point = optimum.point[0]
    _, information, _ = problem.expand(point)
    precision, n_systems = np.exp(-2.0 * point[-1]), len(trials)
    chance, variance, noise = (np.zeros(problem.trials.shape) for _ in range(3))
    n_kinds = len(problem.counts)
    slopes, shared = np.zeros((n_systems, len(point))), np.zeros((n_systems, n_systems))
    difficulty, gradients = np.zeros(n_kinds), np.zeros((n_kinds, len(point)))
    # Of one question of each kind.
    missing = missing[:, np.unique(kind, return_index=True)[1]]
    abilities = np.arange(n_systems)
    for block in problem.blocks(point):
        part, weights = block.questions, block.weights
        chance[:, part] = mean = np.vecdot(block.chance, weights)
        centred = block.chance - mean[..., np.newaxis]
        variance[:, part] = np.vecdot(centred**2, weights)
        noise[:, part] = mean * (1.0 - mean) - variance[:, part]
        difficulty[part] = np.vecdot(block.deviation, weights)
        if missing.any():
            gap, counts = missing[:, part], problem.counts[part]
            root = np.sqrt(counts[:, np.newaxis] * weights)
            rows = (gap[..., np.newaxis] * centred * root).reshape(n_systems, -1)
            scores = problem.complete_scores(block, precision)
            gradients[part] = np.vecdot(scores, weights).T
            scores *= root
            shared += rows @ rows.T
            slopes += rows @ scores.reshape(len(point), -1).T
            slopes[abilities, abilities] += (gap * noise[:, part]) @ counts
    if problem.has_slope:
        difficulty = difficulty + point[-2] * problem.share
    difficulty, gradients = difficulty[kind] - difficulty[kind].mean(), gradients[kind]
    if missing.any():
        gradients[:, :n_systems] += totals.T
    chance, variance, noise = chance[:, kind], variance[:, kind], noise[:, kind]
    moments = (chance, variance, noise, information, slopes, shared, difficulty)
    return FittedChances(problem, optimum, *moments, gradients)


@dataclass(frozen=True, kw_only=True)
class StandardizedFit(Fit):
    """A fit of abilities whose scores are means of grades and of fitted chances.

    Its draws are those of :mod:`bayesrank.inference.backends.standardized`. `grades` are those of
    the questions that were asked, and `kept`, (system, question), are the weights c of their means.
    In `chances`, the total of a system whose grades are all at one end of the range is moved by
    half a grade. `share`, (system,), is the score as a share of the range.
    """

    data: Responses
    grades: UnitGrades
    kept: Array
    chances: FittedChances
    share: Array


def standardized_accuracy(data: Responses, prior: Prior | None = None) -> StandardizedFit | None:
    """Fit standardized accuracy by marginal likelihood; None if abilities have a prior."""
    return fit_standardized(data) if prior is None else None


def fit_standardized(data: Responses) -> StandardizedFit:
    """Fit standardized accuracy to grades; DataError if a system has no outcome."""
    for system in np.flatnonzero(~data.trials.any(axis=1)).tolist():
        require_outcomes_of(data, system)
    grades = UnitGrades.of(data)
    asked = grades.trials.any(axis=0)
    grades = UnitGrades(grades.values[:, asked], grades.low, grades.high)
    trials, observed = grades.trials, grades.totals
    n_trials, n_right = trials.sum(axis=1), observed.sum(axis=1)
    at_end = (n_right <= 0.0) | (n_right >= n_trials)
    inside = np.clip(n_right, 0.5, n_trials - 0.5) / n_trials
    totals = np.where(at_end[:, np.newaxis], trials * inside[:, np.newaxis], observed)
    most = trials.max(axis=0)
    # A system with fewer runs of everything lacks none of them.
    fullest = (trials / most).max(axis=1)
    kept = trials / most / fullest[:, np.newaxis]
    chances = fit_chances(totals, trials, 1.0 - kept)
    # Sums of whole numbers, so that systems with equal totals tie exactly.
    right = observed @ (most.max() / most) / (most.max() * fullest)
    share = (right + ((1.0 - kept) * chances.chance).sum(axis=1)) / len(most)
    share = np.where(at_end, n_right / n_trials, share)
    score, difficulty = grades.worth(share), np.full(len(asked), np.nan)
    difficulty[asked] = chances.difficulty
    return StandardizedFit.at(
        chances.problem,
        chances.optimum,
        (),
        lambda point: {"score": np.broadcast_to(score, (*point.shape[:-1], len(score)))},
        parameters={
            "difficulty": difficulty,
            "difficulty_sd": np.exp(chances.optimum.point[0, -1]),
        },
        data=data,
        grades=grades,
        kept=kept,
        chances=chances,
        share=share,
    )
