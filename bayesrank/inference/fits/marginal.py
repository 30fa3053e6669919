r"""The marginal likelihood of Rasch and 2PL items, abilities integrated out.

With standard normal z and :math:`x_m = a_m z + d_m`, the objective is the sum over systems of the
log of :math:`\int \phi(z) \prod_m \sigma(x_m)^{k_m} (1 - \sigma(x_m))^{n_m - k_m} dz`, less
:math:`\rho \sum w (\log a)^2`. In the Rasch model all a are one: the standard deviation of the
abilities. Integrals are exact to rounding (:mod:`ability_posterior`), so that Fisher's and Louis'
identities give exact derivatives: posterior means of the complete-data score, and complete-data
information less its posterior covariance.

References
----------
.. [1] R. D. Bock and M. Aitkin. Marginal maximum likelihood estimation of item parameters:
   application of an EM algorithm. Psychometrika 46 (1981). https://doi.org/10.1007/BF02293801
.. [2] T. A. Louis. Finding the observed information matrix when using the EM algorithm. Journal of
   the Royal Statistical Society B 44 (1982). https://doi.org/10.1111/j.2517-6161.1982.tb01203.x
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.counting import distinct_columns, order_of_counts
from bayesrank.inference.fits.ability_posterior import (
    AbilityPosterior,
    ItemCurves,
    MarginalLikelihood,
)
from bayesrank.inference.fits.fit import MOST_DENSE, Fit, gaussian_draws, identified, merge_noise
from bayesrank.inference.fits.item_likelihoods import item_counts, known, limited
from bayesrank.inference.fits.newton import Array, Optimum, Remembered, maximise_nonconcave
from bayesrank.inference.fits.symmetry import maximise_past_saddles
from bayesrank.log_odds import finite_exp, smoothed_log_odds

Slopes = Literal["each", "common", "fixed"]
# exp of this is a slope of zero: a coordinate that still falls is fixed there.
_LEAST_LOG_SLOPE = -9.0
# Nodes with less than this fraction of a density are omitted from its covariance.
_NEGLIGIBLE = 1e-18
# Points whose posteriors are kept: of a few that are maximised together; the next modes are near.
_KEPT = 8
# Variance of a logistic variable with about the distribution function of a standard normal one.
_LOGISTIC_VARIANCE = 2.89


@dataclass(frozen=True)
class MarginalItems(MarginalLikelihood):
    """Penalised marginal log-likelihood of item parameters.

    Points: intercepts d, then log slopes: one per question ("each"), one for all ("common"), or
    none ("fixed": `fixed_slope`). Counts, (system, question), are 0 in questions that all systems
    answer alike; `weights`, (question,), say how many questions each one stands for.
    """

    right: Array
    trials: Array
    weights: Array
    slopes: Slopes
    fixed_slope: float = 1.0
    slope_penalty: float = 0.0
    _curves: Remembered[ItemCurves] = field(
        default_factory=partial(Remembered, _KEPT), init=False, repr=False, compare=False
    )

    @property
    def cells(self) -> int:
        """Cells per point: those of the matrix of its Newton step."""
        return (2 * len(self.weights)) ** 2

    def scale(self, point: Array) -> Array:
        """Return the count scale of the gradient: the number of answers."""
        return np.full(len(point), (self.weights * self.trials).sum())

    def loglik(self, point: Array) -> Array:
        """Return the marginal log-likelihood at points of shape (point, p)."""
        return np.array([self.curves(one).grid[2].sum() for one in point])

    def level(self, point: Array) -> float:
        """Return the penalised objective at a point of shape (p,)."""
        found = self.curves(point).grid[2].sum()
        if self.slopes == "each":
            found -= self.slope_penalty * self.weights @ point[len(self.weights) :] ** 2
        return float(found)

    @cached_property
    def _weighted(self) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Counts times weights, and which questions have none."""
        trials = self.weights * self.trials
        return self.weights * self.right, trials, ~trials.any(axis=0)

    def curves(self, point: Array) -> ItemCurves:
        """Return the items at a point of shape (p,)."""
        return self._curves.at(point, self._curves_at)

    def _curves_at(self, point: Array) -> ItemCurves:
        n_questions = len(self.weights)
        slope = np.full(n_questions, self.fixed_slope)
        if self.slopes != "fixed":
            slope[:] = np.exp(point[n_questions:])
        (right, trials, _), last = self._weighted, list(self._curves.found.values())[-1:]
        near = last[0].modes[0] if last else None
        return ItemCurves(right, trials, slope, point[:n_questions], near=near)

    def derivatives(self, point: Array) -> tuple[Array, Array, Array]:
        """Return gradient, negative Hessian and diagonal of the complete-data information.

        What is held is apart from all else, without a gradient.
        """
        curves, n_questions = self.curves(point), len(self.weights)
        nodes, weights, _ = curves.grid
        chance = curves.chances(nodes)
        pull, leaning, own, crossed, bent = self._complete(curves, chance)
        gradient = np.concatenate([pull, self.contract(leaning)])
        bend = self.contract(np.diag(bent))
        complete = np.diag(own), self.contract(np.diag(crossed)), self.contract(bend.T)
        spread = self._spread(curves, nodes, weights, chance)
        one, mixed, other = (whole - part for whole, part in zip(complete, spread, strict=True))
        matrix = np.empty((len(point), len(point)))  # np.block takes longer
        matrix[:n_questions, :n_questions], matrix[n_questions:, n_questions:] = one, other
        matrix[:n_questions, n_questions:], matrix[n_questions:, :n_questions] = mixed, mixed.T
        if self.slopes == "each":
            penalty = 2.0 * self.slope_penalty * self.weights
            gradient[n_questions:] -= penalty * point[n_questions:]
            np.einsum("ii->i", matrix)[n_questions:] += penalty
        held = self.held(point, gradient)
        gradient[held], matrix[held], matrix[:, held] = 0.0, 0.0, 0.0
        np.einsum("ii->i", matrix)[held] = 1.0
        diagonal = np.concatenate([own, np.diag(complete[2])])
        return gradient, matrix, np.where(held, 0.0, np.abs(diagonal))

    def moved(self, point: Array, step: Array) -> Array:
        """Return where steps lead along straight lines of intercepts and slopes.

        On these an item can become steeper where it is. At the same intercept its place -d / a
        would move, and steps would have to be as short as the item is steep.
        """
        ends, n_questions = point + step, len(self.weights)
        if self.slopes == "each":
            rise = step[:, n_questions:]
            share = np.where(rise == 0.0, 1.0, np.expm1(rise) / (rise + (rise == 0.0)))
            ends[:, :n_questions] = point[:, :n_questions] + share * step[:, :n_questions]
        return ends

    def length(self, point: Array, step: Array) -> Array:
        """Return the longest step of a log slope, an intercept or, where shorter, a place -d / a.

        The intercept of a steep item is large, and a small step of its place changes it by much.
        """
        if self.slopes != "each":
            return super().length(point, step)
        here, log_slope = np.split(point, 2, axis=-1)
        intercept, slope = np.split(step, 2, axis=-1)
        with np.errstate(over="ignore"):  # steps of matrices that are nearly singular
            place = np.abs(intercept - here * slope) * finite_exp(-log_slope)
        nearer = np.minimum(np.abs(intercept), place)
        return np.maximum(nearer, np.abs(slope)).max(axis=-1)

    def _complete(self, curves: ItemCurves, chance: Array) -> tuple[Array, ...]:
        """Return means of the complete-data scores, and of their information by question.

        Of intercepts and log slopes; then of intercepts, of both, and of log slopes.
        """
        nodes, weights, _ = curves.grid
        # Numbers right expected at each node and question, and the variance they have there.
        expected = (weights.T @ curves.trials) * chance
        own, by_z, by_square = np.stack([np.ones_like(nodes), nodes, nodes**2]) @ (
            expected * (1.0 - chance)
        )
        pull = curves.right.sum(axis=0) - expected.sum(axis=0)
        leaning = curves.slope * ((weights @ nodes) @ curves.right - nodes @ expected)
        bent = curves.slope**2 * by_square - leaning
        return pull, leaning, own, curves.slope * by_z, bent

    def own_blocks(self, point: Array) -> Array:
        """Return the information of the answers on one question of each kind, given the abilities.

        Blocks are those of complete data and penalty, (question, k, k), 1 without answers.
        """
        curves = self.curves(point)
        _, _, own, crossed, bent = self._complete(curves, curves.chances(curves.grid[0]))
        found = own[:, None, None]
        if self.slopes == "each":
            bent = bent + 2.0 * self.slope_penalty * self.weights
            found = np.stack([own, crossed, crossed, bent], axis=-1).reshape(-1, 2, 2)
        found = found / np.maximum(self.weights, 1.0)[:, None, None]
        found[self._weighted[2]] = np.eye(found.shape[-1])
        return found

    def held(self, point: Array, gradient: Array) -> NDArray[np.bool_]:
        """Return which coordinates have no data, or are log slopes that go to minus infinity."""
        n_questions, unasked = len(self.weights), self._weighted[2]
        held = (point <= _LEAST_LOG_SLOPE) & (gradient <= 0.0)
        held[:n_questions] = unasked
        if self.slopes == "each":
            held[n_questions:] |= unasked
        return held

    def contract(self, values: Array) -> Array:
        """Turn derivatives in log slopes of all questions (last axis) into those in free ones."""
        if self.slopes == "each":
            return values
        return values.sum(axis=-1, keepdims=True) if self.slopes == "common" else values[..., :0]

    def _spread(
        self, curves: ItemCurves, nodes: Array, weights: Array, chance: Array
    ) -> Iterable[Array]:
        """Return the posterior covariance of the complete-data scores, summed over systems.

        Of intercepts, of intercepts with log slopes, and of log slopes.
        """
        same = (curves.trials == curves.trials[:1]).all()
        groups = [slice(None)] if same else [slice(row, row + 1) for row in range(len(weights))]
        parts = []
        for group in groups:
            some = weights[group]
            near = np.flatnonzero(some.max(axis=0) > _NEGLIGIBLE)
            expected = curves.trials[group][0] * chance[near]
            part = (expected, nodes[near], some[:, near], curves.right[group], curves.slope)
            parts.append(self._group_spread(*part))
        return [reduce(np.add, blocks) for blocks in zip(*parts, strict=True)]

    def _group_spread(
        self, expected: Array, z: Array, weights: Array, right: Array, slope: Array
    ) -> tuple[Array, Array, Array]:
        """Return that of systems with the same numbers of trials.

        With e the expected numbers right at a node, the scores are k - e for intercepts and (k - e)
        a z for log slopes. Systems differ only by what is linear in z.
        """
        # Squares of these, summed over nodes, are moments of all systems together.
        root = np.sqrt(weights.sum(axis=0))[:, None] * expected
        powers = np.stack([weights, weights * z, weights * z**2])
        mean, first, second = powers @ expected
        _, mean_z, mean_square = powers.sum(axis=-1, keepdims=True)
        moved, moved_z, linear, twice = (
            self.contract(each * slope) for each in (root * z[:, None], first, right, second)
        )
        own = root.T @ root - mean.T @ mean
        crossed = root.T @ moved - mean.T @ moved_z - (first - mean_z * mean).T @ linear
        squared = moved.T @ moved - moved_z.T @ moved_z
        both = (twice - mean_z * moved_z).T @ linear
        squared += linear.T @ (linear * (mean_square - mean_z**2)) - both - both.T
        return own, crossed, squared

    def score_slopes(self, point: Array, *, centred: bool) -> list[tuple[str, Array, Array]]:
        r"""Return how much each posterior mean ability rises with the number right in a cell.

        With the items known, the posterior mean of a function of z rises with the number right in a
        cell by its posterior covariance with the log-odds :math:`x_m` there. That holds for z
        itself and for the complete-data scores g, whose sum is zero at the optimum; the items x
        therefore follow by :math:`H^{-1} \partial u / \partial k`, with H the negative Hessian and
        u the sum of the means of g, and the mean of z follows the items by its covariance with g.

        With `centred`, abilities have the mean that puts the mean difficulty at 0, instead of a
        given one. The result is what :class:`MarginalFit` has, by kind of question.
        """
        curves, n_questions = self.curves(point), self.right.shape[1]
        nodes, weights, _ = curves.grid
        chance = curves.chances(nodes)
        mean = weights @ nodes
        lean = weights * (nodes - mean[:, None])  # of which sums are covariances with z
        variance = (lean @ nodes)[:, None]
        # With the scores k - n p of an intercept, and (k - n p) a z of a log slope.
        by_slope = curves.right * variance - curves.trials * (lean @ (chance * nodes[:, None]))
        by_slope = self.contract(by_slope * curves.slope)
        covariance = np.concatenate([-curves.trials * (lean @ chance), by_slope], axis=-1)
        gradient, information, _ = self.expand(point)
        scale = self.ability_sd(point)
        of_items = scale * covariance
        if self.slopes == "common":
            of_items[:, -1] += scale * mean
        if centred:
            of_items[:, :n_questions] += self.weights / max(self.weights.sum(), 1.0)
        # How each score follows the gradient of the items.
        follow = np.linalg.solve(information, of_items.T).T
        follow[:, self.held(point, gradient)] = 0.0
        by_system = follow @ covariance.T
        np.einsum("ss->s", by_system)[...] += scale * variance[:, 0]
        asked = ~self._weighted[2]
        found = [
            ("l", by_system, asked * curves.slope[np.newaxis]),
            ("m", follow[:, :n_questions], asked[np.newaxis]),
        ]
        if self.slopes != "fixed":
            found.append(("m", follow[:, n_questions:] * curves.slope, asked * mean[:, None]))
        return found

    def ability_sd(self, point: Array) -> float:
        """Return the standard deviation of the abilities."""
        if self.slopes == "common":
            return float(np.exp(point[-1]))
        return self.fixed_slope if self.slopes == "fixed" else 1.0


@dataclass(frozen=True, kw_only=True)
class MarginalFit(Fit):
    """A fit whose scores are means of the `posterior` of the abilities, items at their estimates.

    `slopes` returns how much each score rises with the number right in each cell, the items
    following the answers, as a sum of products: of an array (system of the score, system), or
    (system of the score, question), as "l" or "m" before it says, with an array that broadcasts to
    (system, question). `afresh` is as ``without``, but each fit
    begins where one of these data would: with several maxima it may reach another. `draw_items`
    draws deviations of the free coordinates where their whole information would not fit.
    """

    posterior: AbilityPosterior
    slopes: Callable[[], list[tuple[str, Array, Array]]]
    afresh: Callable[[NDArray[np.bool_]], Array]
    draw_items: Callable[[int, np.random.Generator], Array] | None

    def quantile(self, probability: float) -> Array:
        """Return a posterior quantile of every ability, of shape (system,)."""
        return merge_noise(self.posterior.quantile(probability)[np.newaxis])[0]

    def draw(self, n_draws: int, rng: np.random.Generator) -> dict[str, Array]:
        """Draw items from their Gaussian approximation, abilities given the items' estimates."""
        if self.draw_items is None:
            drawn = super().draw(n_draws, rng)
        else:
            with identified():
                drawn = self.unpack(self.free + self.draw_items(n_draws, rng))
        return drawn | {"score": self.posterior.draw(n_draws, rng)}


def fit_rasch_mml(
    correct: ArrayLike,
    trials: ArrayLike,
    *,
    ability_mean: float | None = None,
    ability_sd: float | None = None,
) -> MarginalFit:
    """Fit the Rasch model by marginal likelihood, with normal abilities.

    Counts are of shape (system, question), 0 trials where a cell is missing. A mean of the
    abilities that is not given is estimated, and the mean difficulty of the questions kept is 0; so
    is their standard deviation, 0 where the systems differ by no more than chance would have them.
    """
    if ability_sd is None:
        return _fit(_Data.of(correct, trials, ability_mean, slopes="common"))
    return _fit(_Data.of(correct, trials, ability_mean, slopes="fixed", fixed_slope=ability_sd))


def fit_irt_2pl_mml(
    correct: ArrayLike, trials: ArrayLike, *, reg_discrimination: float = 0.01
) -> MarginalFit:
    """Fit the two-parameter logistic model by marginal likelihood, with standard normal abilities.

    `reg_discrimination` weighs the sum of squared log discriminations, which keeps those of
    questions that the better systems answer worse off 0. Two systems that could change places, or
    three in a circle, keep the same score, even where the likelihood is higher with them apart.
    """
    return _fit(_Data.of(correct, trials, 0.0, slopes="each", slope_penalty=reg_discrimination))


def is_scalogram(right: NDArray[Any], trials: NDArray[Any]) -> bool:
    """Return whether some order of systems and questions (Guttman's) explains every answer.

    That is, no chain of systems above questions (right) above systems (wrong) is a circle. Those
    that nothing is above are taken away until nothing is left, or a circle.
    """
    won, lost = right > 0, right < trials
    n_left = -1
    while n_left != (n_left := np.count_nonzero(won) + np.count_nonzero(lost)):
        won = won & lost.any(axis=1, keepdims=True)
        lost = lost & won.any(axis=0)
    return n_left == 0


@dataclass(frozen=True)
class _Data:
    """What is fitted: the objective, with one question in the place of all that have equal items.

    These are, with discriminations, questions that all systems answer alike; else questions with as
    many trials of each system and as many right answers in all, of which each system has the mean.
    `right` and `trials` are of shape (system, question); `alike`, (question,), says where each
    question is. Questions that are not `kept` have a weight of 0; `limit` is as in
    :class:`ItemCounts`. Systems are added up in `order`, (system,): where the likelihood is flat,
    rounding decides where a fit ends.
    """

    right: Array
    trials: Array
    alike: NDArray[np.intp]
    kept: NDArray[np.bool_]
    limit: Array | None
    ability_mean: float | None
    order: NDArray[np.intp]
    # What :class:`MarginalItems` has beside counts and weights.
    items: Mapping[str, Any]

    @classmethod
    def of(
        cls, correct: ArrayLike, trials: ArrayLike, ability_mean: float | None, **items: Any
    ) -> "_Data":
        """Leave out questions that all systems answer alike, and merge the others."""
        data = item_counts(correct, trials, drop=True)
        right, total, kept = data.right[0], data.trials[0], ~data.left_out[0]
        order = order_of_counts(right, total)[0]
        answers = right[order] if items["slopes"] == "each" else data.by_question
        alike = distinct_columns(np.concatenate([answers, total[order]]))[1]
        return cls(right, total, alike, kept, data.limit, ability_mean, order, items)

    @cached_property
    def problem(self) -> MarginalItems:
        """The objective of the questions that differ."""
        weights = np.bincount(self.alike, self.kept)
        right, trials = (
            _sums(np.where(self.kept, table, 0.0).T, self.alike).T / np.maximum(weights, 1.0)
            for table in (self.right, self.trials)
        )
        return MarginalItems(right, trials, weights, **self.items)

    @cached_property
    def every(self) -> NDArray[np.intp]:
        """Where each free coordinate is among those of the questions that differ."""
        n_distinct, slopes = len(self.problem.weights), self.problem.slopes
        of_slopes = {"fixed": [], "common": [n_distinct], "each": n_distinct + self.alike}
        return np.append(self.alike, of_slopes[slopes]).astype(np.intp)

    @cached_property
    def apart(self) -> MarginalItems:
        """The objective of the questions one by one."""
        alike, weights = self.alike, self.kept.astype(np.float64)
        right, trials = self.problem.right[:, alike], self.problem.trials[:, alike]
        return replace(self.problem, right=right, trials=trials, weights=weights)

    def fit(self, start: Array | None = None) -> Optimum:
        """Maximise, from a point of the questions that differ."""
        right, trials = self.problem.right[self.order], self.problem.trials[self.order]
        problem = replace(self.problem, right=right, trials=trials)
        begin = (_first_point(problem) if start is None else start)[np.newaxis]
        if problem.slopes == "each":
            return maximise_past_saddles(problem, begin, only_asymmetric=True)
        # Given the common slope, the likelihood of the other parameters is log-concave.
        return maximise_nonconcave(problem, begin)

    def unpack(self, free: Array) -> dict[str, Array]:
        """Name the parameters at free coordinates of shape (..., p)."""
        problem, n_questions = self.problem, len(self.kept)
        intercept, slope = free[..., :n_questions], finite_exp(free[..., n_questions:])
        if problem.slopes == "each":
            difficulty = limited(-intercept / slope, self.limit)
            return {"difficulty": difficulty, "discrimination": known(slope, self.limit)}
        mean = self.mean(free, self.kept)
        common = problem.slopes == "common"
        return {
            "difficulty": limited(mean[..., np.newaxis] - intercept, self.limit),
            "ability_mean": mean,
            "ability_sd": slope[..., 0] if common else np.full(mean.shape, problem.fixed_slope),
        }

    def mean(self, point: Array, weights: Array | NDArray[np.bool_]) -> Array:
        """Return the mean of the abilities: known, or that which puts the mean difficulty at 0."""
        if self.ability_mean is not None:
            return np.full(point.shape[:-1], self.ability_mean)
        return point[..., : len(weights)] @ weights / max(weights.sum(), 1.0)


def _fit(data: _Data) -> MarginalFit:
    optimum, problem = data.fit(), data.problem
    point = optimum.point[0]
    curves, sd = problem.curves(point), problem.ability_sd(point)
    posterior = AbilityPosterior.of(curves, float(data.mean(point, problem.weights)), sd)
    score = merge_noise(posterior.mean()[np.newaxis])[0]
    slopes = partial(problem.score_slopes, point, centred=data.ability_mean is None)
    return MarginalFit.at(
        data.apart,
        replace(optimum, point=optimum.point[:, data.every]),
        (),
        lambda free: (
            {"score": np.broadcast_to(score, (*free.shape[:-1], len(score)))} | data.unpack(free)
        ),
        log_likelihood=lambda: problem.loglik(optimum.point)[0],
        draw_items=partial(_draw_items, data, point) if len(data.every) > MOST_DENSE else None,
        posterior=posterior,
        slopes=lambda: [
            (axis, rate if axis == "l" else rate[:, data.alike], by_cell[:, data.alike])
            for axis, rate, by_cell in slopes()
        ],
        without=partial(_without, data, point),
        afresh=partial(_without, data, None),
    )


def _first_point(problem: MarginalItems) -> Array:
    """Begin at the log-odds of the questions, stretched by the spread of the systems'."""
    kept = problem.weights > 0.0
    by_question, asked = problem.right.sum(axis=0), problem.trials.sum(axis=0)
    ability = smoothed_log_odds(problem.right @ problem.weights, problem.trials @ problem.weights)
    spread = max(float(ability.std()), 0.2)
    if problem.slopes != "common":
        spread = problem.fixed_slope
    stretch = np.sqrt(1.0 + spread**2 / _LOGISTIC_VARIANCE)
    intercept = np.where(kept, smoothed_log_odds(by_question, asked) * stretch, 0.0)
    slopes = {"fixed": [], "common": [np.log(spread)], "each": np.zeros(len(kept))}
    return np.concatenate([intercept, slopes[problem.slopes]])


def _draw_items(data: _Data, point: Array, n_draws: int, rng: np.random.Generator) -> Array:
    """Draw deviations of the items, (draw, p): of those that differ, then of like ones apart.

    Answers to other questions tell nothing of the differences between questions answered alike.
    """
    problem, alike = data.problem, data.alike
    information = problem.information(point[np.newaxis])[0]
    shared = gaussian_draws(information, np.zeros((len(information), 0)), n_draws, rng)
    own = np.linalg.cholesky(problem.own_blocks(point))[alike].swapaxes(1, 2)
    apart = np.linalg.solve(own, rng.standard_normal((*own.shape[:2], n_draws)))
    sizes = np.bincount(alike)[:, np.newaxis, np.newaxis]
    apart -= (_sums(apart, alike) / sizes)[alike]
    drawn = shared[:, data.every]
    drawn[:, : own.shape[1] * len(alike)] += apart.transpose(2, 1, 0).reshape(n_draws, -1)
    return drawn


def _sums(values: Array, kinds: NDArray[np.intp]) -> Array:
    """Return sums of the values of each kind, (kind, ...); every kind has one."""
    order = np.argsort(kinds, kind="stable")
    return np.add.reduceat(values[order], np.flatnonzero(np.diff(kinds[order], prepend=-1)))


def _without(data: _Data, start: Array | None, left_out: NDArray[np.bool_]) -> Array:
    """Return scores without some questions; see :class:`Fit`."""
    found = []
    for kept in ~left_out & data.kept:
        fewer, begin = replace(data, kept=kept), start
        common, left = data.items["slopes"] == "common", (data.right[:, kept], data.trials[:, kept])
        if begin is not None and common and is_scalogram(*left):
            # These have no finite estimate of the standard deviation: it stays that of all.
            sd = data.problem.ability_sd(begin)
            fewer = replace(fewer, items={"slopes": "fixed", "fixed_slope": sd})
            begin = begin[:-1]
        point, problem = fewer.fit(begin).point[0], fewer.problem
        nodes, share, _ = problem.curves(point).grid
        mean = fewer.mean(point, problem.weights)
        found.append(mean + problem.ability_sd(point) * (share @ nodes))
    return np.stack(found)
