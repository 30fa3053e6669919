"""Item parameters by marginal likelihood, abilities from their exact posteriors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesrank.counting import distinct_columns, order_of_counts
from bayesrank.inference.fits.ability_posterior import AbilityPosterior
from bayesrank.inference.fits.bordered import MOST_DENSE
from bayesrank.inference.fits.exact_ties import interchangeable
from bayesrank.inference.fits.fit import Fit, gaussian_draws, identified
from bayesrank.inference.fits.log_odds import finite_exp, smoothed_log_odds
from bayesrank.inference.fits.marginal import MarginalItems
from bayesrank.inference.fits.newton import Optimum, maximise_nonconcave
from bayesrank.inference.fits.penalty import Array, checked_precision
from bayesrank.inference.fits.saddles import maximise_past_saddles

# Variance of a logistic variable that has about the distribution function of a standard normal one.
_LOGISTIC_VARIANCE = 2.89


@dataclass(frozen=True, kw_only=True)
class MarginalFit(Fit):
    """A fit whose scores are means of the `posterior` of the abilities, items at their estimates.

    `slopes` returns how much each score rises with the number right in each cell, of shape
    (system of the score, system, question); the items follow the answers. `afresh` is as
    ``without``, but each fit begins where one of these data would, not at this optimum: with
    several maxima it may reach another. `draw_items` draws deviations of the free coordinates where
    their whole information would not fit.
    """

    posterior: AbilityPosterior
    slopes: Callable[[], Array]
    afresh: Callable[[NDArray[np.bool_]], Array]
    draw_items: Callable[[int, np.random.Generator], Array] | None

    def quantile(self, probability: float) -> Array:
        """Return a posterior quantile of every ability, of shape (system,)."""
        if not 0.0 < probability < 1.0:
            raise ValueError(f"quantile must be strictly between 0 and 1; got {probability!r}")
        return self.posterior.quantile(np.full((1, len(self.score)), probability))[0]

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
    Free coordinates: intercepts -b for abilities of mean 0, then the log standard deviation unless
    it is fixed. Difficulties are infinite for questions that every system answers alike.

    Examples
    --------
    >>> fit = fit_rasch_mml([[3.0, 1.0], [2.0, 3.0], [1.0, 1.0]], 4.0, ability_sd=1.0)
    >>> bool(fit.converged), bool(fit.score[1] > fit.score[0] > fit.score[2])
    (True, True)
    """
    if ability_sd is not None and not 0.0 < ability_sd < np.inf:
        raise ValueError(f"ability_sd must be positive and finite; got {ability_sd!r}")
    if ability_sd is None:
        return _fit(_Data.of(correct, trials, ability_mean, slopes="common"))
    return _fit(_Data.of(correct, trials, ability_mean, slopes="fixed", fixed_slope=ability_sd))


def fit_irt_2pl_mml(
    correct: ArrayLike, trials: ArrayLike, *, reg_discrimination: float = 0.01
) -> MarginalFit:
    """Fit the two-parameter logistic model by marginal likelihood, with standard normal abilities.

    `reg_discrimination` weighs the sum of squared log discriminations, which keeps those of
    questions that the better systems answer worse off 0; 0 for plain maximum likelihood. Free
    coordinates: intercepts -a b, then log discriminations; infinite difficulties and no
    discriminations, NaN, for questions that every system answers alike. Two systems that could
    change places, or three in a circle, keep the same score, even where the likelihood is higher
    with them apart.

    Examples
    --------
    >>> right = [[7.0, 5.0, 2.0], [6.0, 3.0, 3.0], [2.0, 1.0, 1.0]]
    >>> fit = fit_irt_2pl_mml(right, np.full((3, 3), 8.0))
    >>> bool(fit.converged), bool(fit.score[0] > fit.score[2])
    (True, True)
    """
    checked_precision("reg_discrimination", reg_discrimination)
    return _fit(_Data.of(correct, trials, 0.0, slopes="each", slope_penalty=reg_discrimination))


@dataclass(frozen=True)
class _Data:
    """What is fitted: the objective, with one question in the place of all answered alike.

    Questions that are left out have a weight of 0. `alike`, of shape (question,), says where each
    question is. `limit`, (question,), is the difficulty of those left out: minus infinity if
    everybody was right, infinity if everybody was wrong, NaN if nobody was asked; 0 for the others.
    `ability_mean` is the mean of the abilities, if it is known. Systems are added up in `order`,
    (system,): where the likelihood is flat, rounding decides where a fit ends.
    """

    problem: MarginalItems
    alike: NDArray[np.intp]
    limit: Array
    ability_mean: float | None
    order: NDArray[np.intp]

    @classmethod
    def of(
        cls, correct: ArrayLike, trials: ArrayLike, ability_mean: float | None, **items: Any
    ) -> "_Data":
        """Leave out questions that all systems answer alike, and merge the others."""
        right = np.asarray(correct, dtype=np.float64)
        total = np.broadcast_to(np.asarray(trials, dtype=np.float64), right.shape)
        some_right, some_wrong = right.any(axis=0), (total > right).any(axis=0)
        kept = some_right & some_wrong
        limit = np.where(some_right, -np.inf, np.where(some_wrong, np.inf, np.nan))
        right, total = right * kept, total * kept
        order = order_of_counts(right, total)[0]
        first, alike = distinct_columns(np.concatenate([right[order], total[order]]))
        weights = np.bincount(alike, kept)
        problem = MarginalItems(right[:, first], total[:, first], weights, **items)
        return cls(problem, alike, np.where(kept, 0.0, limit), ability_mean, order)

    @cached_property
    def every(self) -> NDArray[np.intp]:
        """Where each free coordinate is among those of the questions that differ."""
        n_distinct, slopes = len(self.problem.weights), self.problem.slopes
        of_slopes = {"fixed": [], "common": [n_distinct], "each": n_distinct + self.alike}
        return np.append(self.alike, of_slopes[slopes]).astype(np.intp)

    @cached_property
    def apart(self) -> MarginalItems:
        """The objective of the questions one by one."""
        one, alike = self.problem, self.alike
        kept = (self.limit == 0.0).astype(np.float64)
        return replace(one, right=one.right[:, alike], trials=one.trials[:, alike], weights=kept)

    def fit(self, start: Array | None = None) -> Optimum:
        """Maximise, from a point of the questions that differ."""
        right, trials = self.problem.right[self.order], self.problem.trials[self.order]
        problem = replace(self.problem, right=right, trials=trials)
        begin = (_first_point(problem) if start is None else start)[np.newaxis]
        if problem.slopes == "each":
            return maximise_past_saddles(problem, begin, only_asymmetric=True)
        # Given the one slope that they share, the likelihood of all else is log-concave.
        return maximise_nonconcave(problem, begin)

    def unpack(self, free: Array) -> dict[str, Array]:
        """Name the parameters at free coordinates of shape (..., p)."""
        problem, n_questions = self.problem, len(self.limit)
        intercept, slope = free[..., :n_questions], finite_exp(free[..., n_questions:])
        if problem.slopes == "each":
            difficulty = np.where(self.limit == 0.0, -intercept / slope, self.limit)
            discrimination = np.where(self.limit == 0.0, slope, np.nan)
            return {"difficulty": difficulty, "discrimination": discrimination}
        mean = self.mean(free, self.limit == 0.0)
        difficulty = mean[..., np.newaxis] - intercept
        common = problem.slopes == "common"
        return {
            "difficulty": np.where(self.limit == 0.0, difficulty, self.limit),
            "ability_mean": mean,
            "ability_sd": slope[..., 0] if common else np.full(mean.shape, problem.fixed_slope),
        }

    def mean(self, point: Array, weights: Array) -> Array:
        """Return the mean of the abilities: known, or that which puts the mean difficulty at 0."""
        if self.ability_mean is not None:
            return np.full(point.shape[:-1], self.ability_mean)
        return point[..., : len(weights)] @ weights / max(weights.sum(), 1.0)


def _fit(data: _Data) -> MarginalFit:
    optimum, problem = data.fit(), data.problem
    point = optimum.point[0]
    curves, sd = problem.curves(point), problem.ability_sd(point)
    posterior = AbilityPosterior.of(curves, float(data.mean(point, problem.weights)), sd)
    # The same object for systems that cannot differ.
    first = interchangeable((curves.right @ curves.slope)[None], rows=curves.trials[None])
    posterior = posterior if first is None else posterior.take(first[0])
    score = posterior.mean()
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
        slopes=lambda: slopes()[..., data.alike],
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
    sizes = np.bincount(alike)
    starts = np.append(0, np.cumsum(sizes)[:-1])
    sums = np.add.reduceat(apart[np.argsort(alike, kind="stable")], starts)
    apart -= (sums / sizes[:, np.newaxis, np.newaxis])[alike]
    drawn = shared[:, data.every]
    drawn[:, : own.shape[1] * len(alike)] += apart.transpose(2, 1, 0).reshape(n_draws, -1)
    return drawn


def _without(data: _Data, start: Array | None, left_out: NDArray[np.bool_]) -> Array:
    """Return scores without some questions; see :class:`Fit`."""
    found = []
    for kept in ~left_out & (data.limit == 0.0):
        problem, weights = data.problem, np.bincount(data.alike, kept)
        some = weights > 0.0
        some[0] |= ~some.any()  # where none is left any one says nothing
        problem = replace(
            problem,
            right=problem.right[:, some],
            trials=problem.trials[:, some],
            weights=weights[some],
        )
        fewer = replace(data, problem=problem)
        of_slopes = {"fixed": [], "common": [True], "each": some}
        begin = None if start is None else start[np.append(some, of_slopes[problem.slopes]) > 0]
        point = fewer.fit(begin).point[0]
        nodes, share, _ = problem.curves(point).grid
        mean = fewer.mean(point, problem.weights)
        found.append(mean + problem.ability_sd(point) * (share @ nodes))
    return np.stack(found)
